//! What is known about variables, functions and the working directory at a point of the text.
//!
//! Where ways through the text meet, what differs is not known. Values come only from the text itself and from the
//! surroundings; everything else (the environment, files, input) is not known.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use brush_parser::ast;

use super::environment::{self, Influence};
use super::unit::Unit;
use super::word::{Gaps, Word};

/// Most variables that are followed; beyond, none is known.
const VARIABLES_MAX: usize = 256;
/// Longest value that is followed, in bytes.
pub(super) const VALUE_BYTES_MAX: usize = 8 << 10;
/// Most working directories that may be meant at one point.
const DIRECTORIES_MAX: usize = 4;

/// Most folders that `pushd` keeps; beyond, which they are is not known.
const STACK_MAX: usize = 16;

/// The value of a variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    Text(String),
    List(Vec<String>),
    Unset,
    /// Names of files that a glob stands for.
    Glob(String),
    /// Known but for parts: `*` stands for them.
    Shape(String, Gaps),
    Unknown,
}

impl Value {
    /// The value that a program gets with a word.
    pub(super) fn of(word: &Word) -> Self {
        match &word.value {
            Some(text) if word.glob => Self::Glob(text.clone()),
            Some(text) => Self::Text(text.clone()),
            None if word.shape == "*" => Self::Unknown,
            None => Self::Shape(word.shape.clone(), word.gaps),
        }
    }

    /// The text, if it is known completely.
    pub(super) fn text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }
}

/// A function, with the text that it stands in.
#[derive(Debug, Clone)]
pub(super) struct Function {
    pub(super) unit: Rc<Unit>,
    pub(super) body: Rc<ast::FunctionBody>,
}

/// What a name means as a program.
#[derive(Debug, Clone)]
pub(super) enum Meaning {
    Function(Function),
    Alias(String),
    /// One of several, or one that is not known.
    Unclear,
}

impl PartialEq for Meaning {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Function(one), Self::Function(two)) => Rc::ptr_eq(&one.body, &two.body),
            (Self::Alias(one), Self::Alias(two)) => one == two,
            (Self::Unclear, Self::Unclear) => true,
            _ => false,
        }
    }
}

/// What is known at a point.
#[derive(Debug, Clone)]
pub(super) struct State {
    variables: Rc<BTreeMap<String, Value>>,
    meanings: Rc<BTreeMap<String, Meaning>>,
    /// `$1`, `$2`, …, or `None` if they are not known.
    pub(super) positional: Option<Rc<Vec<Value>>>,
    /// The working directory: each that may be meant, where `None` is one that is not known.
    pub(super) directories: Vec<Option<String>>,
    /// The working directory before the last change.
    previous: Vec<Option<String>>,
    /// What `popd` goes back to, last first out, or `None` if that is not known.
    stack: Option<Rc<Vec<Vec<Option<String>>>>>,
    /// Programs are no longer what their names say: `PATH` was changed, or a library is loaded into each.
    pub(super) tampered: bool,
    /// Values are split at other places than blanks.
    pub(super) splits_elsewhere: bool,
    /// Unset and unfollowed variables may hold anything; true also after too many were set.
    overflowed: bool,
    /// This point is not reached.
    pub(super) dead: bool,
    /// Shared by all points of the text.
    changes: Rc<RefCell<Changes>>,
}

/// When variables and names were last given a meaning, in the order of the walk.
#[derive(Debug, Default)]
struct Changes {
    count: u64,
    variables: BTreeMap<String, u64>,
    /// Any variable.
    all: u64,
    /// Functions and aliases.
    meanings: BTreeMap<String, u64>,
}

impl Changes {
    fn variable(&mut self, name: &str) {
        self.count += 1;
        if self.variables.len() < VARIABLES_MAX || self.variables.contains_key(name) {
            self.variables.insert(name.to_owned(), self.count);
        } else {
            self.all = self.count;
        }
    }

    fn all(&mut self) {
        self.count += 1;
        self.all = self.count;
    }

    fn meaning(&mut self, name: &str) {
        self.count += 1;
        self.meanings.insert(name.to_owned(), self.count);
    }

    fn is_changed(&self, name: &str, since: u64) -> bool {
        self.all > since || self.variables.get(name).is_some_and(|at| *at > since)
    }
}

impl State {
    pub(super) fn new(directory: Option<&str>) -> Self {
        Self {
            variables: Rc::default(),
            meanings: Rc::default(),
            positional: None,
            directories: vec![directory.map(ToOwned::to_owned)],
            previous: vec![None],
            stack: Some(Rc::default()),
            tampered: false,
            splits_elsewhere: false,
            overflowed: false,
            dead: false,
            changes: Rc::default(),
        }
    }

    pub(super) fn variable(&self, name: &str) -> Value {
        if self.overflowed {
            Value::Unknown
        } else {
            self.variables.get(name).cloned().unwrap_or(Value::Unknown)
        }
    }

    /// Whether the text itself gave the variable a value.
    pub(super) fn assigns(&self, name: &str) -> bool {
        self.variables.contains_key(name)
    }

    /// Gives a variable a value. Some names change the meaning of later commands.
    pub(super) fn assign(&mut self, name: &str, value: Value) {
        let text = if let Value::Text(text) = &value { Some(text.as_str()) } else { None };
        match environment::influence(name, text) {
            // Which folders a known list names is looked at by those who assign one.
            Influence::Programs if name == "PATH" => {
                self.tampered |= !matches!(value, Value::Text(_) | Value::Shape(_, Gaps::Search));
            }
            Influence::Programs if value != Value::Unset => self.tampered = true,
            Influence::Splitting if value != Value::Unset => self.splits_elsewhere = true,
            _ => {}
        }
        self.changes.borrow_mut().variable(name);
        let value = match value {
            Value::Text(text) if text.len() > VALUE_BYTES_MAX => Value::Unknown,
            value => value,
        };
        if self.variables.len() >= VARIABLES_MAX && !self.variables.contains_key(name) {
            self.overflowed = true;
            return;
        }
        Rc::make_mut(&mut self.variables).insert(name.to_owned(), value);
    }

    pub(super) fn meaning(&self, name: &str) -> Option<&Meaning> {
        self.meanings.get(name)
    }

    pub(super) fn define(&mut self, name: &str, meaning: Option<Meaning>) {
        match meaning {
            Some(meaning) => {
                if self.meanings.len() < VARIABLES_MAX || self.meanings.contains_key(name) {
                    self.changes.borrow_mut().meaning(name);
                    Rc::make_mut(&mut self.meanings).insert(name.to_owned(), meaning);
                } else {
                    self.tampered = true;
                }
            }
            None => {
                self.changes.borrow_mut().meaning(name);
                Rc::make_mut(&mut self.meanings).remove(name);
            }
        }
    }

    /// The variable is as it was before the text.
    pub(super) fn unassign(&mut self, name: &str) {
        Rc::make_mut(&mut self.variables).remove(name);
    }

    /// What is known at the end of the shell of what was known here, of which the changes up to here are given: text
    /// that runs at some time in between finds this.
    pub(super) fn until(mut self, end: &Self, changes_before: u64) -> Self {
        let changes = self.changes.borrow();
        if !self.variables.is_empty() {
            for (name, value) in Rc::make_mut(&mut self.variables) {
                if changes.is_changed(name, changes_before) {
                    *value = Value::Unknown;
                }
            }
        }
        for (name, _) in changes.meanings.iter().filter(|(_, at)| **at > changes_before) {
            Rc::make_mut(&mut self.meanings).insert(name.clone(), Meaning::Unclear);
        }
        drop(changes);
        self.tampered |= end.tampered;
        self.splits_elsewhere |= end.splits_elsewhere;
        self.overflowed |= end.overflowed;
        self.dead = false;
        self.positional = None;
        self.lose_directories();
        self
    }

    /// How many changes there were so far.
    pub(super) fn changes(&self) -> u64 {
        self.changes.borrow().count
    }

    /// Another shell starts here: it knows the environment at most.
    pub(super) fn forget_locals(&mut self) {
        if !self.variables.is_empty() {
            for value in Rc::make_mut(&mut self.variables).values_mut() {
                *value = Value::Unknown;
            }
        }
        self.meanings = Rc::default();
        self.positional = None;
        self.stack = Some(Rc::default());
        self.splits_elsewhere = false;
    }

    /// Anything may have happened to variables and names: a script that is not known ran in this shell.
    pub(super) fn forget_all(&mut self) {
        self.changes.borrow_mut().all();
        self.overflowed = true;
        self.tampered = true;
        self.positional = None;
        self.lose_directories();
    }

    /// The working directory may be any.
    pub(super) fn lose_directories(&mut self) {
        self.directories = vec![None];
        self.previous = vec![None];
        self.stack = None;
    }

    /// The working directory becomes one of these.
    pub(super) fn enter(&mut self, directories: Vec<Option<String>>) {
        self.previous = std::mem::replace(&mut self.directories, directories);
    }

    /// The same, and `popd` comes back.
    pub(super) fn enter_and_keep(&mut self, directories: Vec<Option<String>>) {
        let here = self.directories.clone();
        self.enter(directories);
        self.stack = self.stack.take().filter(|stack| stack.len() < STACK_MAX).map(|mut stack| {
            Rc::make_mut(&mut stack).push(here);
            stack
        });
    }

    /// Goes back to where it was before the last change.
    pub(super) fn go_back(&mut self) {
        // The variable that holds it may have been set to something else.
        let previous = if self.assigns("OLDPWD") { vec![None] } else { self.previous.clone() };
        self.enter(previous);
    }

    /// Goes back to what was kept last.
    pub(super) fn pop(&mut self) {
        let kept = self.stack.as_mut().and_then(|stack| Rc::make_mut(stack).pop());
        self.enter(kept.unwrap_or_else(|| vec![None]));
    }

    /// Whether no variable is known: there are too many, or some are other than assignments say.
    pub(super) fn forgets_variables(&self) -> bool {
        self.overflowed
    }

    /// No variable is known from here on.
    pub(super) fn forget_variables(&mut self) {
        self.changes.borrow_mut().all();
        self.overflowed = true;
    }

    /// The working directory, if exactly one is meant.
    pub(super) fn directory(&self) -> Option<&str> {
        match self.directories.as_slice() {
            [one] => one.as_deref(),
            _ => None,
        }
    }

    /// Whether two points know the same.
    pub(super) fn same(&self, other: &Self) -> bool {
        (Rc::ptr_eq(&self.variables, &other.variables) || self.variables == other.variables)
            && (Rc::ptr_eq(&self.meanings, &other.meanings) || self.meanings == other.meanings)
            && self.positional == other.positional
            && self.directories == other.directories
            && self.previous == other.previous
            && self.stack == other.stack
            && (self.tampered, self.splits_elsewhere, self.overflowed, self.dead)
                == (other.tampered, other.splits_elsewhere, other.overflowed, other.dead)
    }

    /// What is known where this way and another meet.
    pub(super) fn join(mut self, other: Self) -> Self {
        if self.dead {
            return other;
        }
        if other.dead || self.same(&other) {
            return self;
        }
        if !Rc::ptr_eq(&self.variables, &other.variables) {
            let mine = Rc::make_mut(&mut self.variables);
            for (name, value) in mine.iter_mut() {
                if other.variables.get(name) != Some(value) {
                    *value = Value::Unknown;
                }
            }
            for name in other.variables.keys() {
                mine.entry(name.clone()).or_insert(Value::Unknown);
            }
        }
        if !Rc::ptr_eq(&self.meanings, &other.meanings) {
            let mine = Rc::make_mut(&mut self.meanings);
            for (name, meaning) in mine.iter_mut() {
                if other.meanings.get(name) != Some(meaning) {
                    *meaning = Meaning::Unclear;
                }
            }
            for name in other.meanings.keys() {
                mine.entry(name.clone()).or_insert(Meaning::Unclear);
            }
        }
        if self.positional != other.positional {
            self.positional = None;
        }
        either(&mut self.directories, other.directories);
        either(&mut self.previous, other.previous);
        self.stack = self
            .stack
            .zip(other.stack)
            .map(|(mine, others)| if mine == others { mine } else { either_stack(&mine, &others) });
        self.tampered |= other.tampered;
        self.splits_elsewhere |= other.splits_elsewhere;
        self.overflowed |= other.overflowed;
        self
    }
}

/// Folders of which one is meant, by one way or another.
fn either(mine: &mut Vec<Option<String>>, others: Vec<Option<String>>) {
    for directory in others {
        if !mine.contains(&directory) {
            mine.push(directory);
        }
    }
    if mine.len() > DIRECTORIES_MAX {
        *mine = vec![None];
    }
}

/// What `popd` goes back to by one way or another. Where only one way kept so many, the other goes back to what was
/// kept before the text, if anything.
fn either_stack(
    mine: &[Vec<Option<String>>],
    others: &[Vec<Option<String>>],
) -> Rc<Vec<Vec<Option<String>>>> {
    let (long, short) = if mine.len() >= others.len() { (mine, others) } else { (others, mine) };
    let mut stack = long.to_vec();
    let others = short.iter().rev().cloned().chain(std::iter::repeat(vec![None]));
    for (level, other) in stack.iter_mut().rev().zip(others) {
        either(level, other);
    }
    Rc::new(stack)
}
