//! Calls, attributes and subscripts: what is reached through a value.

use std::ops::Range;
use std::rc::Rc;

use portcullis_core::effect::{Resource, ResourceKind, Verb};
use ruff_python_ast::Expr;
use smol_str::format_smolstr;

use super::expression::key_of;
use super::interpreter::{Arguments, Interpreter};
use super::modules;
use super::value::{Atom, Object, Value};

impl<'a> Interpreter<'a, '_> {
    /// Calls what a value may be.
    pub(super) fn call(&mut self, function: &Value, arguments: Arguments) -> Value {
        let mut all = Value::none();
        for atom in function.atoms() {
            let follow = self.enter(arguments.range.clone());
            let value = if follow { self.call_atom(atom, &arguments) } else { Value::unknown() };
            self.leave();
            all = all.or(&value);
        }
        all
    }

    fn call_atom(&mut self, atom: &Atom, arguments: &Arguments) -> Value {
        match atom {
            Atom::Declared(name) => self.declared(name, arguments),
            Atom::Function(id) => self.call_function(*id, arguments),
            Atom::Class(id) => self.instantiate(*id, arguments),
            Atom::Object(id) => {
                let method = self.member(*id, "__call__", arguments.range.clone());
                self.call(&method, arguments.clone())
            }
            Atom::Name(name) => self.call_name(name, arguments),
            Atom::Method(method) => {
                let (receiver, name) = &**method;
                self.call_method(receiver, name, arguments)
            }
            Atom::Partial(partial) => {
                let mut arguments = arguments.clone();
                arguments.positional.splice(0..0, partial.positional.iter().cloned());
                let given = |name: &String| arguments.named.iter().any(|(known, _)| known == name);
                let preset: Vec<_> = partial.named.iter().filter(|(name, _)| !given(name)).cloned().collect();
                arguments.named.extend(preset);
                self.call(&partial.function, arguments)
            }
            Atom::Series | Atom::Mask | Atom::Nothing => Value::data(),
            _ => {
                self.unknown(
                    format!("{} is not known", self.callee(&arguments.range)),
                    arguments.range.clone(),
                );
                self.hand_over(arguments);
                Value::unknown()
            }
        }
    }

    /// How the function of a call is written.
    fn callee(&self, range: &Range<usize>) -> String {
        let text = self.source.get(range.clone()).unwrap_or_default();
        let name: String = text.chars().take_while(|character| *character != '(').take(60).collect();
        if name.is_empty() { "a function".to_owned() } else { format!("the function `{}`", name.trim()) }
    }

    fn instantiate(&mut self, id: usize, arguments: &Arguments) -> Value {
        let Some(class) = self.classes.get_mut(id) else { return Value::unknown() };
        let first = !std::mem::replace(&mut class.started, true);
        let members = class.members;
        let foreign = class.bases.iter().any(|base| {
            base.any(|atom| match atom {
                Atom::Class(_) => false,
                Atom::Name(name) => !modules::is_harmless(name) && !is_plain(name),
                _ => true,
            })
        });
        if foreign {
            self.unknown("a class is built on one that is not known", arguments.range.clone());
        }
        let object: Value = Atom::Object(id).into();
        let constructor = self.member(id, "__init__", arguments.range.clone());
        if constructor.any(|atom| matches!(atom, Atom::Method(_))) {
            self.call(&constructor, arguments.clone());
        }
        // Fields of a data class.
        for (name, value) in &arguments.named {
            self.change(members, |object| super::expression::store_entry(object, Some(name.clone()), value));
        }
        if first {
            // Methods that run without being called by name.
            let special: Vec<String> = match self.object(members) {
                Some(Object::Dict { entries, .. }) => entries
                    .keys()
                    .filter(|name| {
                        name.starts_with("__") && !matches!(name.as_str(), "__init__" | "__call__")
                    })
                    .cloned()
                    .collect(),
                _ => Vec::new(),
            };
            for name in special {
                let method = self.member(id, &name, arguments.range.clone());
                if method.any(|atom| matches!(atom, Atom::Method(_))) {
                    let call = Arguments {
                        rest: Some(Value::unknown()),
                        ..Arguments::of(Vec::new(), arguments.range.clone())
                    };
                    self.call(&method, call);
                }
            }
        }
        object
    }

    /// A method or attribute of an object of a class that the code defines.
    fn member(&mut self, id: usize, name: &str, range: Range<usize>) -> Value {
        let mut open = vec![id];
        let mut seen = Vec::new();
        let mut found = Value::none();
        while let Some(id) = open.pop() {
            if seen.contains(&id) {
                continue;
            }
            seen.push(id);
            let Some(class) = self.classes.get(id).cloned() else { continue };
            if let Some(Object::Dict { entries, .. }) = self.object(class.members)
                && let Some(value) = entries.get(name)
            {
                found = found.or(value);
                continue;
            }
            open.extend(class.bases.iter().flat_map(Value::atoms).filter_map(|base| match base {
                Atom::Class(id) => Some(*id),
                _ => None,
            }));
        }
        let object: Value = seen.first().map_or_else(Value::unknown, |id| Atom::Object(*id).into());
        let mut bound = Value::none();
        for atom in found.atoms() {
            let value = match atom {
                Atom::Function(_) => {
                    Atom::Method(Rc::new((object.clone(), format_smolstr!("\0{name}")))).into()
                }
                Atom::Method(property) if property.1 == "@property" => {
                    let getter = property.0.clone();
                    self.call(&getter, Arguments::of(vec![object.clone()], range.clone()))
                }
                other => other.clone().into(),
            };
            bound = bound.or(&value);
        }
        bound
    }

    /// A member of a class that is in one of its bases; data where none has it.
    pub(super) fn inherited(&self, id: usize, name: &str) -> Value {
        let mut open = vec![id];
        let mut seen = Vec::new();
        let mut found = Value::none();
        while let Some(class) = open.pop().filter(|id| !seen.contains(id)).and_then(|id| {
            seen.push(id);
            self.classes.get(id)
        }) {
            match self.object(class.members) {
                Some(Object::Dict { entries, .. }) if entries.contains_key(name) => {
                    found = entries.get(name).map_or(found.clone(), |value| found.or(value));
                }
                _ => open.extend(class.bases.iter().flat_map(Value::atoms).filter_map(|base| match base {
                    Atom::Class(id) => Some(*id),
                    _ => None,
                })),
            }
        }
        if found.is_none() { Value::data() } else { found }
    }

    /// Calls a method that the code itself defines.
    fn own_method(&mut self, object: &Value, name: &str, arguments: &Arguments) -> Value {
        let mut all = Value::none();
        for atom in object.atoms() {
            let Atom::Object(id) = atom else { continue };
            let mut open = vec![*id];
            let mut left = 32;
            while let Some(id) = open.pop() {
                left -= 1;
                let Some(class) = self.classes.get(id).cloned() else { continue };
                let method = match self.object(class.members) {
                    Some(Object::Dict { entries, .. }) => entries.get(name).cloned(),
                    _ => None,
                };
                match method {
                    Some(method) => {
                        for atom in method.atoms() {
                            if let Atom::Function(function) = atom {
                                let mut arguments = arguments.clone();
                                arguments.positional.insert(0, object.clone());
                                all = all.or(&self.call_function(*function, &arguments));
                            }
                        }
                    }
                    None if left > 0 => open.extend(class.bases.iter().flat_map(Value::atoms).filter_map(
                        |base| {
                            if let Atom::Class(id) = base { Some(*id) } else { None }
                        },
                    )),
                    None => {}
                }
            }
        }
        all
    }

    fn call_method(&mut self, receiver: &Value, name: &str, arguments: &Arguments) -> Value {
        if let Some(name) = name.strip_prefix('\0') {
            return self.own_method(receiver, name, arguments);
        }
        if name == "@property" {
            return self.call(receiver, arguments.clone());
        }
        let mut all = Value::none();
        for atom in receiver.atoms() {
            let value = match atom {
                Atom::Table(frame) => self.frame_method(frame, name, arguments),
                Atom::Row(frame) => self.row_method(frame, name, arguments),
                Atom::Series => self.series_method(name, arguments),
                Atom::Text(text) => self.text_method(text, name, arguments),
                Atom::List(id) => self.list_method(*id, name, arguments),
                Atom::Dict(id) => self.dict_method(*id, name, arguments),
                Atom::Location(path) => self.location_method(path, name, arguments),
                Atom::Client(kind) => self.client_method(kind, name, arguments),
                Atom::Data | Atom::Nothing => self.data_method(name, arguments),
                _ => {
                    self.hand_over(arguments);
                    Value::data()
                }
            };
            all = all.or(&value);
        }
        all
    }

    /// `value.name`
    pub(super) fn attribute(&mut self, value: &Value, name: &str, range: Range<usize>) -> Value {
        let reflective = name.starts_with("__")
            && !matches!(
                name,
                "__name__" | "__doc__" | "__init__" | "__len__" | "__version__" | "__file__" | "__str__"
            )
            || matches!(
                name,
                "f_globals" | "f_locals" | "f_back" | "gi_frame" | "tb_frame" | "cr_frame" | "func_globals"
            );
        if reflective && !value.atoms().iter().all(|atom| matches!(atom, Atom::Object(_))) {
            self.unknown(format!("`{name}` reaches into the interpreter"), range);
            return Value::unknown();
        }
        let mut all = Value::none();
        for atom in value.atoms() {
            let found = self.attribute_of(atom, name, &range);
            all = all.or(&found);
        }
        all
    }

    fn attribute_of(&mut self, atom: &Atom, name: &str, range: &Range<usize>) -> Value {
        let method = || Atom::Method(Rc::new((atom.clone().into(), name.into()))).into();
        match atom {
            Atom::Table(frame) => self.frame_attribute(frame, name, range.clone()),
            Atom::Row(frame) => self.row_attribute(frame, name, range.clone()),
            Atom::Series => Self::series_attribute(name),
            Atom::Mask => Self::series_attribute(name),
            Atom::Text(_) | Atom::List(_) | Atom::Dict(_) => method(),
            Atom::Data | Atom::Integer(_) | Atom::Nothing => {
                Atom::Method(Rc::new((Value::data(), name.into()))).into()
            }
            Atom::Location(path) => self.location_attribute(&Rc::clone(path), name),
            Atom::Client(kind) => self.client_attribute(kind, name),
            Atom::Name(module) => Value::name(format_smolstr!("{module}.{name}")),
            Atom::Object(id) => {
                let found = self.member(*id, name, range.clone());
                if !found.is_none() {
                    return found;
                }
                let own = self.classes.get(*id).is_some_and(|class| {
                    class
                        .bases
                        .iter()
                        .all(|base| base.any(|atom| matches!(atom, Atom::Class(_) | Atom::Name(_))))
                });
                // Set later, or by a base that is known to be harmless.
                if own { Value::data() } else { Value::unknown() }
            }
            Atom::Class(id) => {
                let members = self.classes.get(*id).map(|class| class.members);
                match members.and_then(|members| self.object(members)) {
                    Some(Object::Dict { entries, .. }) if entries.contains_key(name) => {
                        entries.get(name).cloned().unwrap_or_else(Value::data)
                    }
                    Some(_) => self.inherited(*id, name),
                    None => Value::unknown(),
                }
            }
            Atom::Function(_) | Atom::Declared(_) | Atom::Partial(_) => Value::data(),
            // What a method gives is not known before it is called; a property of data is data.
            Atom::Method(method) if method.0.atoms() == [Atom::Data] => {
                Atom::Method(Rc::new((Value::data(), name.into()))).into()
            }
            Atom::Method(_) | Atom::Unknown => Value::unknown(),
        }
    }

    /// `value[index]`
    pub(super) fn subscript(
        &mut self,
        value: &Value,
        index: &Value,
        expression: &'a Expr,
        range: Range<usize>,
    ) -> Value {
        let mut all = Value::none();
        for atom in value.atoms() {
            let found = match atom {
                Atom::Table(frame) => self.frame_subscript(frame, index, expression, range.clone()),
                Atom::Row(frame) => self.row_subscript(frame, index, range.clone()),
                Atom::Method(method) => match (method.0.atoms(), method.1.as_str()) {
                    (atoms, locator @ ("loc" | "iloc" | "at" | "iat")) => {
                        let mut all = Value::none();
                        for atom in atoms {
                            if let Atom::Table(frame) = atom {
                                all = all.or(&self.locate(
                                    &Rc::clone(frame),
                                    locator,
                                    index,
                                    expression,
                                    range.clone(),
                                ));
                            }
                        }
                        all
                    }
                    _ => Value::data(),
                },
                Atom::List(id) => self.list_item(*id, index, expression, &range),
                Atom::Dict(id) => self.dict_item(*id, index),
                Atom::Series if index.any(|atom| *atom == Atom::Mask) => Atom::Series.into(),
                Atom::Mask => Atom::Mask.into(),
                Atom::Name(name) => self.name_item(name, index, range.clone()),
                Atom::Class(id) => {
                    let hook = self.attribute_of(atom, "__class_getitem__", &range);
                    if hook.any(|atom| matches!(atom, Atom::Function(_) | Atom::Partial(_))) {
                        let arguments = vec![Atom::Class(*id).into(), index.clone()];
                        self.call(&hook, Arguments::of(arguments, range.clone()))
                    } else {
                        Value::unknown()
                    }
                }
                Atom::Object(id) => {
                    let method = self.member(*id, "__getitem__", range.clone());
                    self.call(&method, Arguments::of(vec![index.clone()], range.clone()))
                }
                Atom::Unknown | Atom::Function(_) | Atom::Declared(_) | Atom::Partial(_) => Value::unknown(),
                _ => Value::data(),
            };
            all = all.or(&found);
        }
        all
    }

    fn list_item(
        &mut self,
        id: super::value::HeapId,
        index: &Value,
        expression: &Expr,
        range: &Range<usize>,
    ) -> Value {
        if let (Some(Atom::Integer(at)), Some(Object::List { items, exact: true, .. })) =
            (index.single(), self.object(id))
        {
            let length = i64::try_from(items.len()).unwrap_or(i64::MAX);
            let at = if *at < 0 { at + length } else { *at };
            let item = usize::try_from(at).ok().and_then(|at| items.get(at));
            return item.cloned().unwrap_or_else(Value::data);
        }
        let items = self.items_of(id);
        if matches!(expression, Expr::Slice(_)) {
            return self.list(items, (range.start, 40));
        }
        if items.is_none() { Value::data() } else { items }
    }

    pub(super) fn dict_item(&mut self, id: super::value::HeapId, index: &Value) -> Value {
        let Some(Object::Dict { entries, rest }) = self.object(id) else { return self.items_of(id) };
        let found = match key_of(index) {
            Some(key) => match entries.get(&key) {
                Some(value) => rest.or(value),
                None => rest.clone(),
            },
            None => self.items_of(id),
        };
        if found.is_none() { Value::data() } else { found }
    }

    /// `os.environ['X']`, `sys.modules['os']`
    fn name_item(&mut self, name: &str, index: &Value, range: Range<usize>) -> Value {
        match name {
            "os.environ" | "os.environb" => {
                self.environment(Verb::Read, index, &range);
                Value::data()
            }
            "sys.argv" | "sys.version_info" => Value::data(),
            _ if name.starts_with("typing.") || name.starts_with("builtins.") => Value::name(name),
            _ if modules::is_harmless(name) => Value::data(),
            _ => {
                self.unknown(format!("a part of `{name}`"), range);
                Value::unknown()
            }
        }
    }

    /// `os.environ['X'] = …`
    pub(super) fn store_in_name(&mut self, name: &str, index: &Value, range: Range<usize>) {
        match name {
            "os.environ" => self.environment(Verb::Configure, index, &range),
            _ => self.unknown(format!("a part of `{name}` is replaced"), range),
        }
    }

    pub(super) fn environment(&mut self, verb: Verb, name: &Value, range: &Range<usize>) {
        for text in self.strings(Some(name), range) {
            let name = text.known().unwrap_or("*").to_owned();
            let secret = name == "*" || is_secret_name(&name);
            let variable = Resource::new(ResourceKind::Environment, name).with("secret", secret);
            self.effect(verb, variable, range.clone());
        }
    }
}

/// Whether a name of the built-in ones is a function or type that touches nothing.
pub(super) fn is_plain(name: &str) -> bool {
    name.strip_prefix("builtins.").is_some_and(|name| !modules::is_weighty_builtin(name))
}

/// Whether an environment variable of that name holds a credential.
fn is_secret_name(name: &str) -> bool {
    let name = name.to_uppercase();
    ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "PRIVATE", "AUTH"]
        .iter()
        .any(|word| name.contains(word))
}
