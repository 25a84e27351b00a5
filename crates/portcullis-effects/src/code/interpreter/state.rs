//! Variables and objects: where values live, and what is known where two ways meet.

use std::rc::Rc;

use smol_str::format_smolstr;

use super::{Arguments, Interpreter, Scope, State};
use crate::code::value::{Atom, HeapId, Object, Value};

impl<'a> Interpreter<'a, '_> {
    pub(in crate::code) fn lookup(&self, name: &str) -> Value {
        let mut scope = Some(self.current);
        while let Some(at) = scope.and_then(|at| self.state.get(at)) {
            if let Some(value) = at.variables.get(name) {
                return value.clone();
            }
            scope = at.parent;
        }
        if self.surroundings.settings.functions.contains_key(name) {
            let declared = Atom::Declared(name.into()).into();
            return if self.rebound.contains(name) { Value::unknown().or(&declared) } else { declared };
        }
        if crate::code::modules::is_builtin(name) {
            let built_in = Value::name(format_smolstr!("builtins.{name}"));
            return if self.rebound.contains(name) { built_in.or(&Value::unknown()) } else { built_in };
        }
        Value::unknown()
    }

    /// What a name means outside of the innermost scope.
    pub(in crate::code) fn lookup_outside(&mut self, name: &str) -> Value {
        let inner = self.current;
        let Some(outer) = self.state.get(inner).and_then(|scope| scope.parent) else { return Value::none() };
        self.current = outer;
        let value = self.lookup(name);
        self.current = inner;
        value
    }

    pub(in crate::code) fn assign(&mut self, name: &'a str, value: Value) {
        let current = self.current;
        let at = self.state.get(current).and_then(|scope| scope.elsewhere.get(name)).copied();
        self.assign_in(at.unwrap_or(current), name, value);
    }

    pub(super) fn assign_in(&mut self, scope: usize, name: &'a str, value: Value) {
        // A function that has effects and is only perhaps replaced is still the other one as well.
        let declared = self.surroundings.settings.functions.contains_key(name);
        let value = if declared {
            value.or(&Atom::Declared(name.into()).into())
        } else if crate::code::modules::is_weighty_builtin(name) {
            value.or(&Value::name(format_smolstr!("builtins.{name}")))
        } else {
            value
        };
        for recorder in &mut self.recorders {
            recorder.push((scope, name, value.clone()));
        }
        if let Some(scope) = self.state.get_mut(scope) {
            Rc::make_mut(&mut scope.variables).insert(name, value);
        }
    }

    /// Puts back what a name meant before, as at the end of a comprehension.
    pub(in crate::code) fn restore(&mut self, name: &'a str, before: Option<Value>) {
        let current = self.current;
        if let Some(scope) = self.state.get_mut(current) {
            let variables = Rc::make_mut(&mut scope.variables);
            match before {
                Some(value) => variables.insert(name, value),
                None => variables.remove(name),
            };
        }
    }

    /// What a name means in the innermost scope.
    pub(in crate::code) fn local(&self, name: &str) -> Option<Value> {
        self.state.get(self.current)?.variables.get(name).cloned()
    }

    /// Anything may have happened to every variable.
    pub(in crate::code) fn forget_variables(&mut self) {
        for scope in &mut self.state {
            for value in Rc::make_mut(&mut scope.variables).values_mut() {
                *value = value.or(&Value::unknown());
            }
        }
    }

    /// The object made at a place of the code; made again there, it may be either.
    pub(in crate::code) fn allocate(&mut self, site: (usize, u16), object: Object) -> HeapId {
        if let Some(id) = self.sites.get(&site).copied() {
            self.merge(id, object);
            return id;
        }
        let id = HeapId(self.heap.len());
        self.heap.push(object);
        self.heap_version += 1;
        self.sites.insert(site, id);
        id
    }

    pub(super) fn merge(&mut self, id: HeapId, object: Object) {
        let Some(known) = self.heap.get_mut(id.0) else { return };
        if *known == object {
            return;
        }
        let joined = match (&*known, &object) {
            (Object::List { items: a, exact: true, rest }, Object::List { items: b, exact: true, .. })
                if a.len() == b.len() =>
            {
                let items = a.iter().zip(b).map(|(a, b)| a.or(b)).collect();
                Object::List { items, exact: true, rest: rest.clone() }
            }
            (Object::List { items: a, rest: x, .. }, Object::List { items: b, rest: y, .. }) => {
                let rest = a.iter().chain(b).fold(x.or(y), |all, item| all.or(item));
                Object::List { items: Vec::new(), exact: false, rest }
            }
            (Object::Dict { entries: a, rest: x }, Object::Dict { entries: b, rest: y }) => {
                let mut entries = a.clone();
                for (key, value) in b {
                    let joined = entries.get(key).map_or_else(|| value.clone(), |known| known.or(value));
                    entries.insert(key.clone(), joined);
                }
                Object::Dict { entries, rest: x.or(y) }
            }
            (known, _) => known.clone(),
        };
        if *known != joined {
            *known = joined;
            self.heap_version += 1;
        }
    }

    pub(in crate::code) fn object(&self, id: HeapId) -> Option<&Object> {
        self.heap.get(id.0)
    }

    /// Changes an object in place.
    pub(in crate::code) fn change(&mut self, id: HeapId, change: impl FnOnce(&mut Object)) {
        if let Some(object) = self.heap.get_mut(id.0) {
            let before = object.clone();
            change(object);
            if *object != before {
                self.heap_version += 1;
            }
        }
    }

    pub(super) fn enclosing(&self, name: &str) -> usize {
        let mut scope = self.state.get(self.current).and_then(|scope| scope.parent);
        while let Some((at, found)) = scope.and_then(|at| Some((at, self.state.get(at)?))) {
            if found.variables.contains_key(name) {
                return at;
            }
            scope = found.parent;
        }
        0
    }

    pub(super) fn elsewhere(
        &mut self,
        names: impl Iterator<Item = &'a str>,
        find: impl Fn(&Self, &str) -> usize,
    ) {
        let current = self.current;
        for name in names {
            let at = find(self, name);
            if at != current
                && let Some(scope) = self.state.get_mut(current)
            {
                Rc::make_mut(&mut scope.elsewhere).insert(name, at);
            }
        }
    }

    pub(super) fn widen_heap(&mut self) {
        for object in &mut self.heap {
            match object {
                Object::List { items, exact, rest } => {
                    items.clear();
                    *exact = false;
                    *rest = rest.or(&Value::unknown());
                }
                Object::Dict { entries, rest } => {
                    for value in entries.values_mut() {
                        *value = value.or(&Value::unknown());
                    }
                    *rest = rest.or(&Value::unknown());
                }
            }
        }
        self.heap_version += 1;
    }
}

pub(super) fn join_into<'a>(into: &mut Option<State<'a>>, state: State<'a>) {
    *into = Some(match into.take() {
        Some(known) => join(known, state),
        None => state,
    });
}

/// Either of two states.
pub(super) fn join<'a>(mut a: State<'a>, b: State<'a>) -> State<'a> {
    for (at, scope) in b.into_iter().enumerate() {
        let Some(known) = a.get_mut(at) else {
            a.push(scope);
            continue;
        };
        if Rc::ptr_eq(&known.variables, &scope.variables) {
            continue;
        }
        let changed: Vec<_> = scope
            .variables
            .iter()
            .filter(|(name, value)| known.variables.get(*name) != Some(value))
            .map(|(name, value)| (*name, value.clone()))
            .collect();
        let unbound = if known.class { unbound_on_one_way(known, &scope) } else { Vec::new() };
        let parent = known.parent;
        if !changed.is_empty() {
            let variables = Rc::make_mut(&mut known.variables);
            for (name, value) in changed {
                let joined = variables.get(name).map_or_else(|| value.clone(), |known| known.or(&value));
                variables.insert(name, joined);
            }
        }
        for name in unbound {
            let Some(outside) = bound_outside(&a, parent, name) else { continue };
            if let Some(value) =
                a.get_mut(at).and_then(|scope| Rc::make_mut(&mut scope.variables).get_mut(name))
            {
                *value = value.or(&outside);
            }
        }
    }
    a
}

/// Names that only one of two ways through a class bound.
fn unbound_on_one_way<'a>(a: &Scope<'a>, b: &Scope<'a>) -> Vec<&'a str> {
    let only = |here: &Scope<'a>, there: &Scope<'a>| -> Vec<&'a str> {
        here.variables.keys().filter(|name| !there.variables.contains_key(*name)).copied().collect()
    };
    let mut names = only(a, b);
    names.extend(only(b, a));
    names
}

/// What a name is bound to outside of a class.
fn bound_outside(state: &State<'_>, mut scope: Option<usize>, name: &str) -> Option<Value> {
    while let Some(at) = scope.and_then(|at| state.get(at)) {
        if let Some(value) = at.variables.get(name) {
            return Some(value.clone());
        }
        scope = at.parent;
    }
    None
}

pub(super) fn same(a: &State<'_>, b: &State<'_>) -> bool {
    a.len() == b.len()
        && a.iter().zip(b).all(|(a, b)| Rc::ptr_eq(&a.variables, &b.variables) || a.variables == b.variables)
}

/// Makes unknown what differs between two rounds.
pub(super) fn widen(before: &State<'_>, after: &mut State<'_>) {
    for (at, scope) in after.iter_mut().enumerate() {
        let Some(before) = before.get(at) else { continue };
        if before.variables == scope.variables {
            continue;
        }
        for (name, value) in Rc::make_mut(&mut scope.variables) {
            if before.variables.get(name) != Some(value) {
                *value = widened(value);
            }
        }
    }
}

/// Arguments with any number for each that is known.
pub(super) fn numberless(arguments: &Arguments) -> Arguments {
    let forget = |value: &Value| -> Value {
        let atoms = value.atoms().iter();
        atoms.map(|atom| if matches!(atom, Atom::Integer(_)) { Atom::Data } else { atom.clone() }).collect()
    };
    Arguments {
        positional: arguments.positional.iter().map(forget).collect(),
        named: arguments.named.iter().map(|(name, value)| (name.clone(), forget(value))).collect(),
        rest: arguments.rest.as_ref().map(forget),
        range: arguments.range.clone(),
    }
}

/// Strings and numbers that keep growing become any data; other things become unknown.
pub(super) fn widened(value: &Value) -> Value {
    let growing = |atom: &Atom| matches!(atom, Atom::Text(_) | Atom::Integer(_) | Atom::Data | Atom::Nothing);
    if value.any(|atom| !growing(atom)) { value.or(&Value::unknown()) } else { Value::data() }
}
