//! What code hands to others: functions that someone else calls, objects whose methods someone else uses.

use std::ops::Range;

use super::call::is_plain;
use super::interpreter::{Arguments, Interpreter};
use super::modules;
use super::value::{Atom, HeapId, Object, Value};

/// How deep functions are looked for in lists within lists.
const CONTAINERS_DEPTH_MAX: usize = 4;

impl Interpreter<'_, '_> {
    /// The use of the arguments is not known.
    pub(super) fn hand_over(&mut self, arguments: &Arguments) {
        for value in arguments.all() {
            self.escape(value, arguments.range.clone());
            self.expose(value, &arguments.range);
        }
        self.run_callbacks(arguments);
    }

    /// Calls the functions among arguments with arguments that are not known.
    pub(super) fn run_callbacks(&mut self, arguments: &Arguments) -> Value {
        self.run_callbacks_with(arguments, &Value::unknown())
    }

    /// Calls the functions among arguments with a value.
    pub(super) fn run_callbacks_with(&mut self, arguments: &Arguments, given: &Value) -> Value {
        let is_function = |atom: &Atom| {
            matches!(atom, Atom::Function(_) | Atom::Partial(_) | Atom::Declared(_) | Atom::Object(_))
                || matches!(atom, Atom::Name(name) if !modules::is_harmless(name) && !is_plain(name))
                || matches!(atom, Atom::Method(method) if method.0.any(|atom| matches!(atom, Atom::Object(_) | Atom::Table(_) | Atom::Row(_) | Atom::Client(_) | Atom::Location(_))))
        };
        let mut result = Value::none();
        for value in arguments.all() {
            let functions: Value = value.atoms().iter().filter(|atom| is_function(atom)).cloned().collect();
            if !functions.is_none() {
                let call = Arguments {
                    rest: Some(given.clone()),
                    ..Arguments::of(Vec::new(), arguments.range.clone())
                };
                result = result.or(&self.call(&functions, call));
            }
        }
        result
    }

    /// Objects, classes, connections and lists of functions come into other hands: all that can be called on them
    /// may be, with anything. Functions themselves are left to [`Self::run_callbacks`].
    pub(super) fn expose(&mut self, value: &Value, range: &Range<usize>) {
        // Most arguments are plain values.
        let has_parts = |atom: &Atom| {
            matches!(atom, Atom::Object(_) | Atom::Class(_) | Atom::List(_) | Atom::Dict(_) | Atom::Client(_))
        };
        if !value.any(has_parts) {
            return;
        }
        let mut open = vec![(value.clone(), 0)];
        let mut seen: Vec<HeapId> = Vec::new();
        while let Some((value, depth)) = open.pop() {
            for atom in value.atoms() {
                match atom {
                    Atom::Object(id) | Atom::Class(id) => self.expose_class(*id, range),
                    Atom::List(id) | Atom::Dict(id) if depth < CONTAINERS_DEPTH_MAX && !seen.contains(id) => {
                        seen.push(*id);
                        let items = self.items_of(*id);
                        self.run_callbacks(&Arguments::of(vec![items.clone()], range.clone()));
                        open.push((items, depth + 1));
                    }
                    Atom::Client(kind)
                        if matches!(*kind, "sql" | "http" | "socket" | "mail" | "exit stack") =>
                    {
                        self.unknown(format!("a connection ({kind}) is handed on"), range.clone());
                    }
                    _ => {}
                }
            }
        }
    }

    /// Calls all methods of a class once, with anything.
    fn expose_class(&mut self, id: usize, range: &Range<usize>) {
        if !self.exposed.insert(id) {
            return;
        }
        let Some(class) = self.classes.get(id).cloned() else { return };
        for base in class.bases.iter().flat_map(|base| base.atoms().to_vec()) {
            if let Atom::Class(base) = base {
                self.expose_class(base, range);
            }
        }
        let members = match self.object(class.members) {
            Some(Object::Dict { entries, .. }) => entries.keys().cloned().collect::<Vec<_>>(),
            _ => Vec::new(),
        };
        for name in members {
            // A property runs when it is taken.
            let member = self.attribute(&Atom::Object(id).into(), &name, range.clone());
            let callable =
                |atom: &&Atom| matches!(atom, Atom::Method(_) | Atom::Function(_) | Atom::Partial(_));
            let methods: Value = member.atoms().iter().filter(callable).cloned().collect();
            if !methods.is_none() {
                let call =
                    Arguments { rest: Some(Value::unknown()), ..Arguments::of(Vec::new(), range.clone()) };
                self.call(&methods, call);
            }
        }
    }
}
