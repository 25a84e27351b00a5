//! Methods of strings, lists and dictionaries, and putting strings together.

use std::ops::Range;
use std::rc::Rc;

use smallvec::smallvec;

use super::expression::{add_item, key_of, store_entry};
use super::interpreter::{Arguments, Interpreter};
use super::text::{Piece, Text, Texts, brace_template, concatenate, percent_template};
use super::value::{Atom, HeapId, Object, Value};

impl Interpreter<'_, '_> {
    /// Calls a method of a string.
    pub(super) fn text_method(&mut self, text: &Rc<Text>, name: &str, arguments: &Arguments) -> Value {
        let range = arguments.range.clone();
        let first = arguments.positional.first();
        let as_value = |text: Text| Value::text(text);
        match name {
            "format" | "format_map" => self.brace_format(text, name, arguments),
            "join" => self.joined(text, arguments),
            "lower" | "casefold" => as_value(text.map(str::to_lowercase)),
            "upper" => as_value(text.map(str::to_uppercase)),
            "strip" | "lstrip" | "rstrip" | "removeprefix" | "removesuffix" => match (text.known(), first) {
                (Some(known), given) => stripped(known, name, given.map(Value::known_text))
                    .map_or_else(Value::data, |known| as_value(Text::literal(known, text.range()))),
                (None, None) => Atom::Text(Rc::clone(text)).into(),
                _ => Value::data(),
            },
            "replace" => match (
                text.known(),
                first.and_then(Value::known_text),
                arguments.at(1).and_then(Value::known_text),
            ) {
                (Some(known), Some(from), Some(to))
                    if known.len() < 4096 && to.len() < 256 && arguments.at(2).is_none() =>
                {
                    as_value(Text::literal(known.replace(from, to), text.range()))
                }
                (None, Some("'" | "\"" | " " | "[" | "]"), Some("")) => Atom::Text(Rc::clone(text)).into(),
                _ => Value::text(Text::hole(range)),
            },
            "split" | "rsplit" | "splitlines" => match (text.known(), first.map(Value::known_text)) {
                (Some(known), separator) if arguments.at(1).is_none() => {
                    self.split_up(known, separator, text, name, &range)
                }
                _ => Value::data(),
            },
            "title" | "capitalize" | "swapcase" | "zfill" | "ljust" | "rjust" | "center" | "expandtabs"
            | "translate" | "encode" | "decode" => Value::text(Text::hole(range)),
            _ => {
                self.hand_over(arguments);
                Value::data()
            }
        }
    }

    fn split_up(
        &mut self,
        known: &str,
        separator: Option<Option<&str>>,
        text: &Text,
        name: &str,
        range: &Range<usize>,
    ) -> Value {
        let pieces: Vec<String> = match separator {
            _ if name == "splitlines" => known.lines().map(str::to_owned).collect(),
            None => known.split_whitespace().map(str::to_owned).collect(),
            Some(Some(separator)) if !separator.is_empty() => {
                known.split(separator).map(str::to_owned).collect()
            }
            Some(_) => return Value::data(),
        };
        if pieces.len() > 64 {
            return Value::data();
        }
        let items = pieces.into_iter().map(|piece| Value::text(Text::literal(piece, text.range()))).collect();
        let object = Object::List { items, exact: true, rest: Value::none() };
        Atom::List(self.allocate((range.start, 60), object)).into()
    }

    /// `'a {} {b}'.format(…)`
    fn brace_format(&mut self, template: &Text, name: &str, arguments: &Arguments) -> Value {
        let range = arguments.range.clone();
        let pieces = template.known().and_then(brace_template);
        let Some(pieces) = pieces else {
            self.hand_over(arguments);
            return Value::text(Text::hole(range));
        };
        let mut next = 0;
        let mut texts: Texts = smallvec![Rc::new(Text::literal("", template.range()))];
        for piece in pieces {
            let filled = match piece {
                Piece::Literal(literal) => smallvec![Rc::new(Text::literal(literal, template.range()))],
                Piece::Field { name: field, plain } => {
                    let head = field.split(['.', '[']).next().unwrap_or_default();
                    let value = if name == "format_map" {
                        arguments.positional.first().cloned().map(|map| self.entry(&map, head))
                    } else if head.is_empty() {
                        next += 1;
                        arguments.positional.get(next - 1).or(arguments.rest.as_ref()).cloned()
                    } else if let Ok(position) = head.parse::<usize>() {
                        arguments.positional.get(position).or(arguments.rest.as_ref()).cloned()
                    } else {
                        arguments.named(head).or(arguments.rest.as_ref()).cloned()
                    };
                    let value = value.unwrap_or_else(Value::data);
                    let deep = field.len() > head.len();
                    if deep && field.contains("__") {
                        self.unknown("a format string reaches into the interpreter", range.clone());
                    }
                    for part in field.split(['.', '[']).skip(1).filter(|_| deep) {
                        self.attribute(&value, part.trim_end_matches(']'), range.clone());
                    }
                    self.shown(&value, plain && !deep, &range)
                }
            };
            texts = concatenate(&texts, &filled);
        }
        texts.into_iter().map(Atom::Text).collect()
    }

    fn entry(&mut self, map: &Value, key: &str) -> Value {
        let key = Value::text(Text::literal(key, 0..0));
        match map.single() {
            Some(Atom::Dict(id)) => self.dict_item(*id, &key),
            _ => map.clone(),
        }
    }

    /// `'a %s' % …`
    pub(super) fn percent(&mut self, template: &Value, given: &Value, range: Range<usize>) -> Value {
        let mut all = Value::none();
        for atom in template.atoms() {
            let Atom::Text(text) = atom else { continue };
            let Some(pieces) = text.known().and_then(percent_template) else {
                self.escape(given, range.clone());
                all = all.or(&Value::text(Text::hole(range.clone())));
                continue;
            };
            let items = self.exact_items(given);
            let mut next = 0;
            let mut texts: Texts = smallvec![Rc::new(Text::literal("", text.range()))];
            for piece in pieces {
                let filled = match piece {
                    Piece::Literal(literal) => smallvec![Rc::new(Text::literal(literal, text.range()))],
                    Piece::Field { name, plain } => {
                        let value = if !name.is_empty() {
                            self.entry(given, &name)
                        } else if let Some(items) = &items {
                            next += 1;
                            items.get(next - 1).cloned().unwrap_or_else(Value::data)
                        } else {
                            given.clone()
                        };
                        self.shown(&value, plain, &range)
                    }
                };
                texts = concatenate(&texts, &filled);
            }
            all = all.or(&texts.into_iter().map(Atom::Text).collect());
        }
        if all.is_none() { Value::data() } else { all }
    }

    /// `', '.join(…)`
    fn joined(&mut self, separator: &Rc<Text>, arguments: &Arguments) -> Value {
        let range = arguments.range.clone();
        let Some(value) = arguments.positional.first().cloned() else { return Value::data() };
        match self.exact_items(&value) {
            Some(items) if items.len() <= 64 => {
                let mut texts: Texts = smallvec![Rc::new(Text::literal("", separator.range()))];
                for (at, item) in items.iter().enumerate() {
                    if at > 0 {
                        texts = concatenate(&texts, std::slice::from_ref(separator));
                    }
                    let item = self.shown(item, true, &range);
                    texts = concatenate(&texts, &item);
                }
                texts.into_iter().map(Atom::Text).collect()
            }
            _ => {
                // Any number of the items, with the separator between them.
                let element = self.elements(&value, range.clone());
                self.escape(&element, range.clone());
                Value::text(Text::hole(range))
            }
        }
    }

    /// Calls a method of a list, tuple or set.
    pub(super) fn list_method(&mut self, id: HeapId, name: &str, arguments: &Arguments) -> Value {
        let range = arguments.range.clone();
        let itself: Value = Atom::List(id).into();
        match name {
            "append" | "add" | "appendleft" | "insert" | "extend" | "update" | "extendleft" => {
                let position = usize::from(name == "insert");
                let value = arguments.positional.get(position).or(arguments.rest.as_ref()).cloned();
                let value = value.unwrap_or_else(Value::none);
                let many = matches!(name, "extend" | "update" | "extendleft");
                let value = if many { self.elements(&value, range) } else { value };
                self.change(id, |object| add_item(object, &value));
                Value::data()
            }
            "pop" | "popleft" | "__next__" => {
                let items = self.items_of(id);
                // The items behind it move.
                self.disorder(&itself);
                if items.is_none() { Value::data() } else { items }
            }
            "copy" => itself,
            "union" | "intersection" | "difference" | "symmetric_difference" => {
                let mut rest = self.items_of(id);
                for value in &arguments.positional {
                    rest = rest.or(&self.elements(value, range.clone()));
                }
                self.list(rest, (range.start, 61))
            }
            "sort" | "reverse" => {
                let items = self.items_of(id);
                self.run_callbacks_with(arguments, &items);
                // The order changes: any item may be anywhere.
                self.change(id, |object| add_item(object, &Value::none()));
                Value::data()
            }
            "index" | "count" | "issubset" | "issuperset" | "isdisjoint" => Value::data(),
            "remove" | "clear" | "discard" => {
                self.disorder(&itself);
                Value::data()
            }
            _ => {
                self.disorder(&itself);
                self.escape(&itself, range);
                self.hand_over(arguments);
                Value::data()
            }
        }
    }

    /// Calls a method of a dictionary.
    pub(super) fn dict_method(&mut self, id: HeapId, name: &str, arguments: &Arguments) -> Value {
        let range = arguments.range.clone();
        let itself: Value = Atom::Dict(id).into();
        let first = arguments.positional.first().cloned().unwrap_or_else(Value::unknown);
        match name {
            "get" | "pop" | "setdefault" => {
                let default = arguments.positional.get(1).or_else(|| arguments.named("default")).cloned();
                if name == "setdefault" {
                    let value = default.clone().unwrap_or_else(Value::data);
                    self.change(id, |object| store_entry(object, key_of(&first), &value));
                }
                let found = self.dict_item(id, &first);
                found.or(&default.unwrap_or_else(Value::data))
            }
            "popitem" => self.items_of(id),
            "keys" => {
                let keys = self.elements(&itself, range.clone());
                self.list(keys, (range.start, 62))
            }
            "values" => {
                let exact = match self.object(id) {
                    Some(Object::Dict { entries, rest }) if rest.is_none() => {
                        Some(entries.values().cloned().collect())
                    }
                    _ => None,
                };
                let object = match exact {
                    Some(items) => Object::List { items, exact: true, rest: Value::none() },
                    None => Object::List { items: Vec::new(), exact: false, rest: self.items_of(id) },
                };
                Atom::List(self.allocate((range.start, 63), object)).into()
            }
            "items" => self.pairs(id, &range),
            "copy" => itself,
            "update" => {
                let (mut entries, mut rest) = if arguments.positional.is_empty() {
                    (Vec::new(), Value::none())
                } else {
                    self.entries_of(&first)
                };
                entries.extend(arguments.named.iter().cloned());
                rest = rest.or(arguments.rest.as_ref().unwrap_or(&Value::none()));
                self.change(id, |object| {
                    for (key, value) in entries {
                        store_entry(object, Some(key), &value);
                    }
                    store_entry(object, None, &rest);
                });
                Value::data()
            }
            "clear" => Value::data(),
            _ => {
                self.escape(&itself, range);
                self.hand_over(arguments);
                Value::data()
            }
        }
    }

    /// The keys of a dictionary with their values.
    fn pairs(&mut self, id: HeapId, range: &Range<usize>) -> Value {
        let Some(Object::Dict { entries, rest }) = self.object(id).cloned() else { return Value::unknown() };
        let mut items: Vec<Value> = Vec::new();
        for (at, (key, value)) in entries.iter().take(64).enumerate() {
            let key = match key.strip_prefix('#') {
                Some(_) => Value::data(),
                None => Value::text(Text::literal(key.clone(), range.clone())),
            };
            let site = u16::try_from(200 + at).unwrap_or(u16::MAX);
            let pair = Object::List { items: vec![key, value.clone()], exact: true, rest: Value::none() };
            items.push(Atom::List(self.allocate((range.start, site), pair)).into());
        }
        if !rest.is_none() || entries.len() > 64 {
            let all = entries.values().fold(rest, |all, value| all.or(value));
            let pair = Object::List { items: vec![Value::data(), all], exact: true, rest: Value::none() };
            let pair: Value = Atom::List(self.allocate((range.start, 64), pair)).into();
            let element = items.iter().fold(pair, |all, item| all.or(item));
            return self.list(element, (range.start, 65));
        }
        let object = Object::List { items, exact: true, rest: Value::none() };
        Atom::List(self.allocate((range.start, 66), object)).into()
    }
}

fn stripped(text: &str, method: &str, characters: Option<Option<&str>>) -> Option<String> {
    let stripped = match (method, characters) {
        ("strip", None) => text.trim(),
        ("lstrip", None) => text.trim_start(),
        ("rstrip", None) => text.trim_end(),
        ("removeprefix", Some(Some(prefix))) => text.strip_prefix(prefix).unwrap_or(text),
        ("removesuffix", Some(Some(suffix))) => text.strip_suffix(suffix).unwrap_or(text),
        ("strip", Some(Some(set))) => text.trim_matches(|character| set.contains(character)),
        ("lstrip", Some(Some(set))) => text.trim_start_matches(|character| set.contains(character)),
        ("rstrip", Some(Some(set))) => text.trim_end_matches(|character| set.contains(character)),
        _ => return None,
    };
    Some(stripped.to_owned())
}
