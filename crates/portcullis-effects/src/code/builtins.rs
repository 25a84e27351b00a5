//! Built-in functions.

use std::collections::BTreeMap;
use std::rc::Rc;

use portcullis_core::effect::Verb;

use super::interpreter::{Arguments, Interpreter};
use super::value::{Atom, Object, Partial, Value};

impl Interpreter<'_, '_> {
    /// Calls a built-in function.
    pub(super) fn builtin(&mut self, name: &str, arguments: &Arguments) -> Value {
        let range = arguments.range.clone();
        let first = arguments.positional.first().or(arguments.rest.as_ref()).cloned();
        match name {
            "print" | "display" | "help" => self.told(arguments),
            "str" | "repr" | "ascii" | "format" => match first {
                Some(value) => {
                    let plain = name == "str" || (name == "format" && arguments.positional.len() == 1);
                    self.shown(&value, plain, &range).into_iter().map(Atom::Text).collect()
                }
                None => Value::text(super::text::Text::literal("", range)),
            },
            "int" | "abs" | "round" => number_of(name, first.as_ref()),
            "chr" | "bytes" | "bytearray" | "bin" | "hex" | "oct" | "ord" | "float" | "complex" | "bool"
            | "len" | "isinstance" | "issubclass" | "callable" | "hasattr" | "id" | "hash" | "dir"
            | "slice" | "divmod" | "pow" | "memoryview" | "exit" | "quit" | "property" | "object" => {
                self.simple(name, arguments)
            }
            "max" | "min" => self.extreme(arguments),
            "sum" | "any" | "all" => {
                if let Some(value) = first {
                    self.escape(&value, range);
                }
                Value::data()
            }
            "list" | "tuple" | "set" | "frozenset" | "sorted" | "reversed" | "iter" | "aiter" => {
                self.sequence_of(name, arguments)
            }
            "dict" => self.dict_of(arguments),
            "enumerate" | "zip" => self.zipped(name, arguments),
            "range" => self.numbers(arguments),
            "map" | "filter" => self.mapped(name, arguments),
            "next" | "anext" => {
                let element = first.map_or_else(Value::data, |value| self.elements(&value, range));
                arguments.positional.get(1).map_or(element.clone(), |default| element.or(default))
            }
            "type" if arguments.positional.len() == 1 => Value::data(),
            "super" => {
                let objects: Value = (0..self.classes.len()).map(Atom::Object).collect();
                if objects.is_none() { Value::data() } else { objects }
            }
            "staticmethod" => first.map_or_else(Value::data, |function| {
                let partial = Partial { function, positional: Vec::new(), named: Vec::new() };
                Atom::Partial(Rc::new(partial)).into()
            }),
            "classmethod" => first.unwrap_or_else(Value::data),
            "open" => self.open_file(arguments),
            "input" => Value::data(),
            "getattr" => self.get_attribute(arguments),
            "setattr" | "delattr" => {
                self.unknown("an attribute is changed whose name is computed", range);
                Value::data()
            }
            "eval" | "exec" => self.nested_code(name, arguments),
            "__import__" => self.import_by_name(arguments),
            "globals" | "locals" | "vars" | "compile" | "breakpoint" | "type" => {
                self.unknown(format!("`{name}` reaches into the interpreter"), range);
                self.hand_over(arguments);
                Value::unknown()
            }
            _ if super::modules::is_exception(name) => self.told(arguments),
            _ => self.builtin_member(name, arguments),
        }
    }

    /// Arguments that leave the program: they are shown, or are the text of an exception.
    fn told(&mut self, arguments: &Arguments) -> Value {
        for value in arguments.all() {
            self.escape(value, arguments.range.clone());
        }
        Value::data()
    }

    fn simple(&mut self, name: &str, arguments: &Arguments) -> Value {
        if name == "property" {
            return match arguments.positional.first() {
                Some(getter) => Atom::Method(Rc::new((getter.clone(), "@property".into()))).into(),
                None => Value::data(),
            };
        }
        Value::data()
    }

    /// `str.join(…)`, `dict.fromkeys(…)`: methods called through their type.
    fn builtin_member(&mut self, name: &str, arguments: &Arguments) -> Value {
        let range = arguments.range.clone();
        if let Some((type_, method)) = name.split_once('.') {
            match (type_, method) {
                ("str", "maketrans") | ("bytes" | "int" | "float" | "datetime", _) => return Value::data(),
                ("dict", "fromkeys") => {
                    let rest = arguments.positional.get(1).cloned().unwrap_or_else(Value::data);
                    let id =
                        self.allocate((range.start, 50), Object::Dict { entries: BTreeMap::new(), rest });
                    return Atom::Dict(id).into();
                }
                ("str" | "list" | "dict" | "set" | "tuple", _) => {
                    if let Some((receiver, others)) = arguments.positional.split_first() {
                        let function = self.attribute(receiver, method, range);
                        let call = Arguments { positional: others.to_vec(), ..arguments.clone() };
                        return self.call(&function, call);
                    }
                }
                _ => {}
            }
        }
        self.unknown(format!("the function `{name}` is not known"), range);
        self.hand_over(arguments);
        Value::unknown()
    }

    fn extreme(&mut self, arguments: &Arguments) -> Value {
        let range = arguments.range.clone();
        let result = match arguments.positional.as_slice() {
            [one] => self.elements(one, range),
            several => several.iter().fold(Value::none(), |all, value| all.or(value)),
        };
        self.run_callbacks_with(arguments, &result);
        let result = arguments.named("default").map_or(result.clone(), |default| result.or(default));
        if result.is_none() { Value::data() } else { result }
    }

    /// `list(…)`, `sorted(…)` and similar.
    fn sequence_of(&mut self, name: &str, arguments: &Arguments) -> Value {
        let range = arguments.range.clone();
        let Some(value) = arguments.positional.first().or(arguments.rest.as_ref()).cloned() else {
            let empty = Object::List { items: Vec::new(), exact: true, rest: Value::none() };
            return Atom::List(self.allocate((range.start, 51), empty)).into();
        };
        if matches!(value.single(), Some(Atom::Data | Atom::Series)) {
            // The items are data too.
            self.run_callbacks_with(arguments, &Value::data());
            return Value::data();
        }
        let exact = if matches!(name, "list" | "tuple" | "iter") { self.exact_items(&value) } else { None };
        let object = match exact {
            Some(items) => Object::List { items, exact: true, rest: Value::none() },
            None => {
                let element = self.elements(&value, range.clone());
                self.run_callbacks_with(arguments, &element);
                Object::List { items: Vec::new(), exact: false, rest: element }
            }
        };
        Atom::List(self.allocate((range.start, 52), object)).into()
    }

    fn dict_of(&mut self, arguments: &Arguments) -> Value {
        let range = arguments.range.clone();
        let mut entries: BTreeMap<String, Value> = arguments.named.iter().cloned().collect();
        let mut rest = arguments.rest.clone().unwrap_or_else(Value::none);
        if let Some(value) = arguments.positional.first().cloned() {
            if value.any(|atom| matches!(atom, Atom::Row(_))) {
                return value;
            }
            if matches!(value.single(), Some(Atom::Dict(_))) {
                let (more, unknown) = self.entries_of(&value);
                entries.extend(more);
                rest = rest.or(&unknown);
            } else {
                // Pairs: whatever is in them may be a value.
                let pairs = self.elements(&value, range.clone());
                let inner = self.elements(&pairs, range.clone());
                rest = rest.or(&inner);
            }
        }
        Atom::Dict(self.allocate((range.start, 53), Object::Dict { entries, rest })).into()
    }

    fn zipped(&mut self, name: &str, arguments: &Arguments) -> Value {
        let range = arguments.range.clone();
        let mut columns: Vec<Option<Vec<Value>>> = Vec::new();
        let mut elements = Vec::new();
        let values: Vec<Value> = arguments.positional.iter().chain(&arguments.rest).cloned().collect();
        for value in values.iter().take(if name == "enumerate" { 1 } else { usize::MAX }) {
            columns.push(self.exact_items(value));
            elements.push(self.elements(value, range.clone()));
        }
        let lengths: Option<Vec<usize>> = columns.iter().map(|items| items.as_ref().map(Vec::len)).collect();
        let length = lengths.and_then(|lengths| lengths.into_iter().min()).filter(|length| *length <= 32);
        let mut items = Vec::new();
        for at in 0..length.unwrap_or(1) {
            let mut tuple: Vec<Value> = Vec::new();
            if name == "enumerate" {
                let number = i64::try_from(at).ok().filter(|_| length.is_some() && arguments.at(1).is_none());
                tuple.push(number.map_or_else(Value::data, |number| Atom::Integer(number).into()));
            }
            for (column, element) in columns.iter().zip(&elements) {
                let exact = length.and(column.as_ref()).and_then(|items| items.get(at));
                tuple.push(exact.unwrap_or(element).clone());
            }
            let site = u16::try_from(100 + at).unwrap_or(u16::MAX);
            let tuple = Object::List { items: tuple, exact: true, rest: Value::none() };
            items.push(Atom::List(self.allocate((range.start, site), tuple)).into());
        }
        let object = if length.is_some() {
            Object::List { items, exact: true, rest: Value::none() }
        } else {
            let rest = items.first().cloned().unwrap_or_else(Value::none);
            Object::List { items: Vec::new(), exact: false, rest }
        };
        Atom::List(self.allocate((range.start, 54), object)).into()
    }

    /// `range(3)`: its numbers, when they are few.
    fn numbers(&mut self, arguments: &Arguments) -> Value {
        let known = |value: &Value| match value.single() {
            Some(Atom::Integer(number)) => Some(*number),
            _ => None,
        };
        let (start, end) = match arguments.positional.as_slice() {
            [end] => (Some(0), known(end)),
            [start, end] => (known(start), known(end)),
            _ => (None, None),
        };
        let site = (arguments.range.start, 55);
        if let (Some(start), Some(end)) = (start, end)
            && arguments.rest.is_none()
            && end.saturating_sub(start) <= 16
        {
            let items = (start..end).map(|number| Atom::Integer(number).into()).collect();
            return Atom::List(self.allocate(site, Object::List { items, exact: true, rest: Value::none() }))
                .into();
        }
        self.list(Value::data(), site)
    }

    fn mapped(&mut self, name: &str, arguments: &Arguments) -> Value {
        let range = arguments.range.clone();
        let Some((function, iterables)) = arguments.positional.split_first() else { return Value::data() };
        let elements: Vec<Value> =
            iterables.iter().map(|value| self.elements(value, range.clone())).collect();
        let kept = elements.first().cloned().unwrap_or_else(Value::data);
        let callable = function.any(|atom| !matches!(atom, Atom::Data));
        let result = if callable {
            self.call(function, Arguments::of(elements, range.clone()))
        } else {
            Value::data()
        };
        self.list(if name == "map" { result } else { kept }, (range.start, 56))
    }

    fn get_attribute(&mut self, arguments: &Arguments) -> Value {
        let range = arguments.range.clone();
        let object = arguments.positional.first().cloned().unwrap_or_else(Value::unknown);
        let mut all = arguments.positional.get(2).cloned().unwrap_or_else(Value::none);
        for text in self.strings(arguments.at(1), &range) {
            let found = match text.known() {
                Some(name) => {
                    let name = name.to_owned();
                    self.attribute(&object, &name, range.clone())
                }
                None => {
                    self.unknown("an attribute is taken whose name is computed", range.clone());
                    self.escape(&object, range.clone());
                    Value::unknown()
                }
            };
            all = all.or(&found);
        }
        all
    }

    /// `exec` and `eval` of text that is known is code like any other; it may change every variable.
    fn nested_code(&mut self, name: &str, arguments: &Arguments) -> Value {
        let range = arguments.range.clone();
        for text in self.strings(arguments.positional.first().or(arguments.rest.as_ref()), &range) {
            let Some(code) = text.known() else {
                self.unknown(format!("`{name}` of text that is not known"), range.clone());
                continue;
            };
            let place = text.range();
            self.rebound.extend(super::names_bound(code));
            if let Some(mut nested) = self.sink.nested(place) {
                super::read_nested(code, self.surroundings, &mut nested);
            }
        }
        self.forget_variables();
        Value::unknown()
    }

    pub(super) fn import_by_name(&mut self, arguments: &Arguments) -> Value {
        let range = arguments.range.clone();
        let mut all = Value::none();
        for text in self.strings(arguments.positional.first().or(arguments.rest.as_ref()), &range) {
            let found = match text.known() {
                Some(name) => {
                    self.imported(name, range.clone());
                    Value::name(name)
                }
                None => {
                    self.unknown("a module is imported whose name is computed", range.clone());
                    Value::unknown()
                }
            };
            all = all.or(&found);
        }
        all
    }

    fn open_file(&mut self, arguments: &Arguments) -> Value {
        let range = arguments.range.clone();
        let path = arguments.get(0, "file").cloned().unwrap_or_else(Value::unknown);
        let mode =
            arguments.positional.get(1).or_else(|| arguments.named("mode")).or(arguments.rest.as_ref());
        for verb in self.modes(mode.cloned().as_ref(), &range) {
            self.path_effect(verb, &path, &range, &[]);
        }
        Value::data()
    }

    /// What a mode such as `r`, `w` or `a+` allows.
    pub(super) fn modes(&mut self, mode: Option<&Value>, range: &std::ops::Range<usize>) -> Vec<Verb> {
        let Some(mode) = mode else { return vec![Verb::Read] };
        let mut verbs = Vec::new();
        for text in self.strings(Some(mode), range) {
            let mode = text.known().unwrap_or("r+");
            if mode.contains('r') || mode.contains('+') || !mode.contains(['w', 'a', 'x']) {
                verbs.push(Verb::Read);
            }
            if mode.contains(['w', 'a', 'x', '+']) {
                verbs.push(Verb::Write);
            }
        }
        verbs.sort_unstable();
        verbs.dedup();
        verbs
    }
}

/// What `int`, `abs` and `round` make of a value.
fn number_of(name: &str, value: Option<&Value>) -> Value {
    match value.and_then(Value::single) {
        Some(Atom::Integer(number)) if name == "int" || *number >= 0 => Atom::Integer(*number).into(),
        Some(Atom::Text(text)) if name == "int" => {
            let number = text.known().and_then(|text| text.trim().parse().ok());
            number.map_or_else(Value::data, |number| Atom::Integer(number).into())
        }
        Some(Atom::Series) => Atom::Series.into(),
        _ => Value::data(),
    }
}
