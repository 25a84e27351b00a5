//! Abstract values: what a variable may hold, without running anything.
//!
//! A [`Value`] is a small set of possibilities. It never leaves one out: where the set would grow beyond its limit
//! or is not known, it has [`Atom::Unknown`] in it. Lists and dictionaries live in a heap, since they are changed
//! through whatever name they go by.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::text::Text;
use crate::limits::CODE_VALUES_MAX;

/// Most different numbers that a value keeps apart.
const INTEGERS_MAX: usize = 8;

/// One thing that a value may be.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Atom {
    /// Ordinary data of which nothing is known: numbers, dates, texts, and lists of them. Nothing can be reached
    /// through it.
    Data,
    /// `None`.
    Nothing,
    /// Anything at all.
    Unknown,
    /// A whole number.
    Integer(i64),
    /// A string.
    Text(Rc<Text>),
    /// A table, or some rows of it.
    Table(Rc<Frame>),
    /// One row of a table.
    Row(Rc<Frame>),
    /// The values of a column that was read.
    Series,
    /// Truth values, one a row: selects rows.
    Mask,
    /// A list, tuple or set.
    List(HeapId),
    /// A dictionary.
    Dict(HeapId),
    /// A function that the code defines.
    Function(usize),
    /// A class that the code defines.
    Class(usize),
    /// An object of a class that the code defines.
    Object(usize),
    /// A function of the bundle.
    Declared(Rc<str>),
    /// A module, function or class by its full dotted name; the built-in ones begin with `builtins.`.
    Name(Rc<str>),
    /// A method of a value.
    Method(Rc<(Value, String)>),
    /// A function with some arguments given.
    Partial(Rc<Partial>),
    /// A path of `pathlib`.
    Location(Rc<Text>),
    /// An object through which a module's functions are called: a session, a connection.
    Client(&'static str),
}

/// A function with some arguments given: they come before those of the call, and by name after them.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Partial {
    pub(super) function: Value,
    pub(super) positional: Vec<Value>,
    pub(super) named: Vec<(String, Value)>,
}

/// A list or dictionary in the heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct HeapId(pub(super) usize);

/// A table as code holds it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Frame {
    /// The tables that it was made of, lower case; none when that is not known.
    pub(super) tables: Option<BTreeSet<String>>,
    /// The columns that are left in it; all when absent.
    pub(super) shown: Option<BTreeSet<String>>,
    /// Columns that the code itself put into it.
    pub(super) derived: BTreeSet<String>,
}

/// What a variable may hold.
#[derive(Debug, Clone)]
pub(super) struct Value(Rc<Vec<Atom>>);

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
            || (self.0.len() == other.0.len() && self.0.iter().all(|atom| other.0.contains(atom)))
    }
}

impl From<Atom> for Value {
    fn from(atom: Atom) -> Self {
        Self(Rc::new(vec![atom]))
    }
}

impl FromIterator<Atom> for Value {
    fn from_iter<T: IntoIterator<Item = Atom>>(atoms: T) -> Self {
        let mut all: Vec<Atom> = Vec::new();
        for atom in atoms {
            if !all.contains(&atom) {
                all.push(atom);
            }
        }
        Self(Rc::new(bounded(all)))
    }
}

/// Replaces what is too much by what stands for all.
fn bounded(mut all: Vec<Atom>) -> Vec<Atom> {
    let integers = all.iter().filter(|atom| matches!(atom, Atom::Integer(_))).count();
    if integers > INTEGERS_MAX {
        all.retain(|atom| !matches!(atom, Atom::Integer(_) | Atom::Data));
        all.push(Atom::Data);
    }
    let texts = all.iter().filter(|atom| matches!(atom, Atom::Text(_))).count();
    if texts > CODE_VALUES_MAX {
        all.retain(|atom| !matches!(atom, Atom::Text(_) | Atom::Data));
        all.push(Atom::Data);
    }
    if all.len() > 2 * CODE_VALUES_MAX {
        all = vec![Atom::Unknown];
    }
    all
}

impl Value {
    /// No possibility: of code that is not reached, or not yet.
    pub(super) fn none() -> Self {
        Self(Rc::new(Vec::new()))
    }

    pub(super) fn data() -> Self {
        Atom::Data.into()
    }

    pub(super) fn nothing() -> Self {
        Atom::Nothing.into()
    }

    pub(super) fn unknown() -> Self {
        Atom::Unknown.into()
    }

    pub(super) fn text(text: Text) -> Self {
        Atom::Text(Rc::new(text)).into()
    }

    pub(super) fn name(name: &str) -> Self {
        Atom::Name(name.into()).into()
    }

    pub(super) fn atoms(&self) -> &[Atom] {
        &self.0
    }

    pub(super) fn is_none(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn any(&self, is: impl Fn(&Atom) -> bool) -> bool {
        self.0.iter().any(is)
    }

    /// Either this or the other.
    pub(super) fn or(&self, other: &Self) -> Self {
        if other.0.iter().all(|atom| self.0.contains(atom)) {
            return self.clone();
        }
        if self.0.is_empty() {
            return other.clone();
        }
        self.0.iter().chain(other.0.iter()).cloned().collect()
    }

    /// The only possibility, if there is one.
    pub(super) fn single(&self) -> Option<&Atom> {
        match self.0.as_slice() {
            [atom] => Some(atom),
            _ => None,
        }
    }

    /// The string, when it is known.
    pub(super) fn known_text(&self) -> Option<&str> {
        match self.single() {
            Some(Atom::Text(text)) => text.known(),
            _ => None,
        }
    }

    /// Whether it is a table, a row, or something that came from a table's columns as a whole.
    pub(super) fn is_tabular(&self) -> bool {
        self.any(|atom| matches!(atom, Atom::Table(_) | Atom::Row(_)))
    }
}

/// What a list or dictionary holds.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Object {
    /// Items in order while `exact`; else `rest` is any of them.
    List { items: Vec<Value>, exact: bool, rest: Value },
    /// Values by key, and those whose key is not known.
    Dict { entries: BTreeMap<String, Value>, rest: Value },
}
