//! Abstract values: what a variable may hold, without running anything.
//!
//! A [`Value`] is a small set of possibilities. It never leaves one out: where the set would grow beyond its limit
//! or is not known, it has [`Atom::Unknown`] in it. Lists and dictionaries live in a heap, since they are changed
//! through whatever name they go by.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use smol_str::SmolStr;

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
    Declared(SmolStr),
    /// A module, function or class by its full dotted name; the built-in ones begin with `builtins.`.
    Name(SmolStr),
    /// A method of a value.
    Method(Rc<(Value, SmolStr)>),
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
    /// The tables that it was made of, lower case, or `None` if that is not known.
    pub(super) tables: Option<BTreeSet<String>>,
    /// The columns that are left in it; all when absent.
    pub(super) shown: Option<BTreeSet<String>>,
    /// Columns that the code itself put into it.
    pub(super) derived: BTreeSet<String>,
}

/// What a variable may hold.
#[derive(Debug, Clone)]
pub(super) struct Value(Possibilities);

/// Nearly every value has one possibility, and needs no memory of its own.
#[derive(Debug, Clone)]
enum Possibilities {
    None,
    One(Atom),
    Several(Rc<[Atom]>),
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        if let (Possibilities::Several(mine), Possibilities::Several(others)) = (&self.0, &other.0)
            && Rc::ptr_eq(mine, others)
        {
            return true;
        }
        let (mine, others) = (self.atoms(), other.atoms());
        mine.len() == others.len() && mine.iter().all(|atom| others.contains(atom))
    }
}

impl From<Atom> for Value {
    fn from(atom: Atom) -> Self {
        Self(Possibilities::One(atom))
    }
}

impl FromIterator<Atom> for Value {
    fn from_iter<T: IntoIterator<Item = Atom>>(atoms: T) -> Self {
        let mut atoms = atoms.into_iter();
        let Some(first) = atoms.next() else { return Self::none() };
        let Some(second) = atoms.find(|atom| *atom != first) else { return first.into() };
        let mut all = vec![first, second];
        for atom in atoms {
            if !all.contains(&atom) {
                all.push(atom);
            }
        }
        let mut all = bounded(all);
        match (all.pop(), all.is_empty()) {
            (Some(only), true) => only.into(),
            (last, _) => {
                all.extend(last);
                Self(Possibilities::Several(all.into()))
            }
        }
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
        Self(Possibilities::None)
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

    pub(super) fn name(name: impl Into<SmolStr>) -> Self {
        Atom::Name(name.into()).into()
    }

    pub(super) fn atoms(&self) -> &[Atom] {
        match &self.0 {
            Possibilities::None => &[],
            Possibilities::One(atom) => std::slice::from_ref(atom),
            Possibilities::Several(atoms) => atoms,
        }
    }

    pub(super) fn is_none(&self) -> bool {
        self.atoms().is_empty()
    }

    pub(super) fn any(&self, is: impl Fn(&Atom) -> bool) -> bool {
        self.atoms().iter().any(is)
    }

    /// Either this or the other.
    pub(super) fn or(&self, other: &Self) -> Self {
        if other.atoms().iter().all(|atom| self.atoms().contains(atom)) {
            return self.clone();
        }
        if self.is_none() {
            return other.clone();
        }
        self.atoms().iter().chain(other.atoms()).cloned().collect()
    }

    /// The only possibility, if there is one.
    pub(super) fn single(&self) -> Option<&Atom> {
        if let Possibilities::One(atom) = &self.0 { Some(atom) } else { None }
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
