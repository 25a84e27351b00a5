//! What is bound and changed: targets of assignments, patterns, deletions, imports.

use std::ops::Range;
use std::rc::Rc;

use ruff_python_ast::{Expr, Pattern};
use ruff_text_size::Ranged;
use smol_str::format_smolstr;

use super::{add_item, key_of, store_entry};
use crate::code::interpreter::{Interpreter, range_of};
use crate::code::value::{Atom, Object, Value};

impl<'a> Interpreter<'a, '_> {
    pub(in crate::code) fn assign_target(&mut self, target: &'a Expr, value: &Value) {
        let range = range_of(target);
        match target {
            Expr::Name(name) => self.assign(&name.id, value.clone()),
            Expr::Starred(starred) => {
                let id = self.allocate(
                    (range.start, 20),
                    Object::List { items: Vec::new(), exact: false, rest: value.clone() },
                );
                self.assign_target(&starred.value, &Atom::List(id).into());
            }
            Expr::Tuple(node) => self.unpack(&node.elts, value, range),
            Expr::List(node) => self.unpack(&node.elts, value, range),
            Expr::Subscript(node) => {
                let container = self.eval(&node.value);
                let index = self.eval(&node.slice);
                self.store(&container, &index, value, range);
                self.mark_derived(&node.value, &index);
            }
            Expr::Attribute(node) => {
                let object = self.eval(&node.value);
                self.store_attribute(&object, &node.attr.id, value, range);
            }
            other => {
                self.eval(other);
            }
        }
    }

    pub(super) fn unpack(&mut self, targets: &'a [Expr], value: &Value, range: Range<usize>) {
        let starred = targets.iter().any(Expr::is_starred_expr);
        if !starred
            && let Some(items) = self.exact_items(value)
            && items.len() == targets.len()
        {
            for (target, item) in targets.iter().zip(&items) {
                self.assign_target(target, item);
            }
            return;
        }
        let element = self.elements(value, range);
        for target in targets {
            self.assign_target(target, &element);
        }
    }

    /// `container[index] = value`.
    pub(super) fn store(&mut self, container: &Value, index: &Value, value: &Value, range: Range<usize>) {
        for atom in container.atoms() {
            match atom {
                Atom::Dict(id) => {
                    let key = key_of(index);
                    self.change(*id, |object| store_entry(object, key, value));
                }
                Atom::List(id) => self.change(*id, |object| add_item(object, value)),
                Atom::Name(name) => self.store_in_name(name, index, range.clone()),
                Atom::Client(kind) => self.store_in_name(kind, index, range.clone()),
                _ => {}
            }
        }
    }

    /// `frame['new'] = …`: from here on this frame has a column of the code's own.
    pub(super) fn mark_derived(&mut self, target: &'a Expr, index: &Value) {
        let Expr::Name(name) = target else { return };
        let Some(column) = index.known_text() else { return };
        let value = self.lookup(&name.id);
        if !value.any(|atom| matches!(atom, Atom::Table(_))) {
            return;
        }
        let column = column.trim().to_lowercase();
        let marked = value.atoms().iter().map(|atom| match atom {
            Atom::Table(frame) => {
                let mut frame = (**frame).clone();
                frame.derived.insert(column.clone());
                Atom::Table(Rc::new(frame))
            }
            other => other.clone(),
        });
        let marked = marked.collect();
        self.assign(&name.id, marked);
    }

    pub(super) fn store_attribute(&mut self, object: &Value, name: &str, value: &Value, range: Range<usize>) {
        if matches!(name, "__class__" | "__bases__" | "__dict__" | "__code__" | "__globals__") {
            self.unknown(format!("`{name}` is replaced"), range.clone());
        }
        for atom in object.atoms() {
            match atom {
                Atom::Object(id) | Atom::Class(id) => {
                    if let Some(members) = self.classes.get(*id).map(|class| class.members) {
                        self.change(members, |object| store_entry(object, Some(name.to_owned()), value));
                    }
                }
                Atom::Name(module) => {
                    self.unknown(format!("`{module}.{name}` is replaced"), range.clone());
                }
                Atom::Data
                | Atom::Nothing
                | Atom::Table(_)
                | Atom::Row(_)
                | Atom::Series
                | Atom::Client(_) => {}
                _ => self.unknown(format!("`.{name}` of something unknown is replaced"), range.clone()),
            }
        }
    }

    pub(in crate::code) fn augment(&mut self, node: &'a ruff_python_ast::StmtAugAssign) {
        let range = range_of(node);
        let old = self.eval(&node.target);
        let value = self.eval(&node.value);
        // `list += …` changes the list itself.
        for atom in old.atoms() {
            if let Atom::List(id) = atom {
                let added = self.elements(&value, range.clone());
                self.change(*id, |object| add_item(object, &added));
            }
        }
        let new = self.operate(node.op, &old, &value, range);
        self.assign_target(&node.target, &new);
    }

    pub(in crate::code) fn delete(&mut self, target: &'a Expr) {
        match target {
            Expr::Subscript(node) => {
                let container = self.eval(&node.value);
                let index = self.eval(&node.slice);
                for atom in container.atoms() {
                    if let Atom::Name(name) = atom {
                        self.store_in_name(name, &index, range_of(target));
                    }
                }
                // The items behind it move.
                self.disorder(&container);
            }
            Expr::Attribute(node) => {
                self.eval(&node.value);
            }
            // Behind it the name means what it means outside.
            Expr::Name(node) => {
                let outside = self.lookup_outside(&node.id);
                let value = self.lookup(&node.id).or(&outside);
                self.assign(&node.id, value);
            }
            Expr::Tuple(node) => node.elts.iter().for_each(|target| self.delete(target)),
            Expr::List(node) => node.elts.iter().for_each(|target| self.delete(target)),
            _ => {}
        }
    }

    pub(in crate::code) fn bind_pattern(&mut self, pattern: &'a Pattern, subject: &Value, depth: usize) {
        if depth > 32 {
            self.unknown("a pattern is nested too deeply", range_of(pattern));
            return;
        }
        let range = range_of(pattern);
        match pattern {
            Pattern::MatchAs(node) => {
                if let Some(inner) = &node.pattern {
                    self.bind_pattern(inner, subject, depth + 1);
                }
                if let Some(name) = &node.name {
                    self.assign(&name.id, subject.clone());
                }
            }
            Pattern::MatchStar(node) => {
                if let Some(name) = &node.name {
                    let element = self.elements(subject, range.clone());
                    let object = Object::List { items: Vec::new(), exact: false, rest: element };
                    let id = self.allocate((range.start, 21), object);
                    self.assign(&name.id, Atom::List(id).into());
                }
            }
            Pattern::MatchSequence(node) => {
                let exact = self.exact_items(subject).filter(|items| items.len() == node.patterns.len());
                let element = self.elements(subject, range);
                for (at, inner) in node.patterns.iter().enumerate() {
                    let item = exact.as_ref().and_then(|items| items.get(at)).unwrap_or(&element).clone();
                    self.bind_pattern(inner, &item, depth + 1);
                }
            }
            Pattern::MatchOr(node) => {
                for inner in &node.patterns {
                    self.bind_pattern(inner, subject, depth + 1);
                }
            }
            Pattern::MatchMapping(node) => {
                for (key, inner) in node.keys.iter().zip(&node.patterns) {
                    let index = self.eval(key);
                    let value = self.subscript(subject, &index, key, range.clone());
                    self.bind_pattern(inner, &value, depth + 1);
                }
                if let Some(name) = &node.rest {
                    self.assign(&name.id, subject.clone());
                }
            }
            Pattern::MatchClass(node) => {
                self.eval(&node.cls);
                self.escape(subject, range.clone());
                if !node.arguments.patterns.is_empty() {
                    self.expose(subject, &range);
                }
                for inner in &node.arguments.patterns {
                    self.bind_pattern(inner, &Value::unknown(), depth + 1);
                }
                for keyword in &node.arguments.keywords {
                    let value = self.attribute(subject, &keyword.attr.id, range.clone());
                    self.bind_pattern(&keyword.pattern, &value.or(&Value::unknown()), depth + 1);
                }
            }
            Pattern::MatchValue(node) => drop(self.eval(&node.value)),
            Pattern::MatchSingleton(_) => {}
        }
    }

    pub(in crate::code) fn import(&mut self, node: &'a ruff_python_ast::StmtImport) {
        for alias in &node.names {
            let full = alias.name.id.as_str();
            self.imported(full, range_of(&alias.range()));
            match &alias.asname {
                Some(name) => self.assign(&name.id, Value::name(full)),
                None => {
                    let top = full.split('.').next().unwrap_or(full);
                    self.assign(top, Value::name(top));
                }
            }
        }
    }

    pub(in crate::code) fn import_from(&mut self, node: &'a ruff_python_ast::StmtImportFrom) {
        let range = range_of(node);
        let module = node.module.as_ref().map_or("", |module| module.id.as_str());
        let relative = ".".repeat(usize::try_from(node.level).unwrap_or(0));
        self.imported(&format!("{relative}{module}"), range.clone());
        for alias in &node.names {
            if alias.name.id.as_str() == "*" {
                if !crate::code::modules::is_harmless(&format!("{module}.x")) {
                    self.unknown(format!("all names of the module `{module}` are imported"), range.clone());
                }
                continue;
            }
            let name = alias.asname.as_ref().unwrap_or(&alias.name);
            // A function of the bundle that is imported is the one that the bundle means.
            let declared = self.surroundings.settings.functions.contains_key(alias.name.id.as_str());
            let value = if declared {
                Atom::Declared(alias.name.id.as_str().into()).into()
            } else {
                Value::name(format_smolstr!("{relative}{module}.{}", alias.name.id))
            };
            self.assign(&name.id, value);
        }
    }
}
