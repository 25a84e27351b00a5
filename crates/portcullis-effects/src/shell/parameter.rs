//! `$NAME`, `${NAME:-word}` and the other forms of parameters.

use std::ops::Range;

use portcullis_core::effect::Verb;

use super::commands::environment;
use super::expand::Quoting;
use super::fields::Fields;
use super::interpreter::Interpreter;
use super::scan;
use super::state::Value;
use super::word::{Gaps, Word};

/// A parameter: its name and, of an array, which element.
struct Parameter<'t> {
    name: &'t str,
    index: Option<&'t str>,
}

impl Interpreter<'_, '_> {
    /// Expands what is in `${…}`, or after a `$`.
    pub(super) fn parameter(
        &mut self,
        inside: &str,
        quoting: Quoting,
        range: &Range<usize>,
        fields: &mut Fields,
    ) {
        let quoted = quoting != Quoting::None;
        let length = inside.len() > 1 && inside.starts_with('#');
        let indirect = inside.len() > 1 && inside.starts_with('!');
        let body = if length || indirect { inside.get(1..).unwrap_or_default() } else { inside };
        let Some((parameter, operation)) = take(body) else {
            self.unknown("shell", "a parameter cannot be read", range.clone());
            fields.unknown();
            return;
        };
        if let Some(index) = parameter.index {
            self.arithmetic(index, range);
        }
        // `${TOKEN:+x}` and `${#TOKEN}` tell nothing of it.
        let tells = !self.compares && !length && !operation.trim_start_matches(':').starts_with('+');
        if tells && !self.state.assigns(parameter.name) && environment::is_secret(parameter.name) {
            environment::read(Verb::Read, &Word::known(parameter.name, range.clone()), self);
        }
        let mut value = self.lookup(&parameter);
        // `${!PREFIX*}` and `${!ARRAY[@]}` give names, not values.
        let names = matches!(operation, "@" | "*") || matches!(parameter.index, Some("@" | "*"));
        if indirect && names {
            value = Value::Unknown;
        } else if indirect {
            value = self.indirect(&parameter, value, operation, tells, range);
        }
        if length {
            match value {
                Value::Text(text) => fields.value(&text.chars().count().to_string(), quoted),
                _ => fields.unknown(),
            }
            return;
        }
        self.operation(&parameter, value, operation, quoting, range, fields);
    }

    /// The value of the variable whose name a parameter holds.
    fn indirect(
        &mut self,
        parameter: &Parameter<'_>,
        value: Value,
        operation: &str,
        tells: bool,
        range: &Range<usize>,
    ) -> Value {
        match value {
            Value::Text(name) => {
                if tells && !self.state.assigns(&name) && environment::is_secret(&name) {
                    environment::read(Verb::Read, &Word::known(name.as_str(), range.clone()), self);
                }
                if operation.is_empty() {
                    self.lookup(&Parameter { name: &name, index: None })
                } else {
                    Value::Unknown
                }
            }
            // The last argument, and the one that is looked at.
            _ if matches!(parameter.name, "#" | "OPTIND") => Value::Unknown,
            _ => {
                if tells {
                    environment::read(Verb::Read, &Word::known("*", range.clone()), self);
                }
                Value::Unknown
            }
        }
    }

    fn lookup(&self, parameter: &Parameter<'_>) -> Value {
        let name = parameter.name;
        let positional = self.state.positional.as_deref();
        let value = match name {
            "@" | "*" => {
                return match positional {
                    Some(values) => match values.as_slice() {
                        [one @ Value::Glob(_)] => one.clone(),
                        values => {
                            let known: Option<Vec<String>> =
                                values.iter().map(|value| value.text().map(ToOwned::to_owned)).collect();
                            known.map_or(Value::Unknown, Value::List)
                        }
                    },
                    None => Value::Unknown,
                };
            }
            "#" => return positional.map_or(Value::Unknown, |values| Value::Text(values.len().to_string())),
            "HOME" => return self.home().map_or(Value::Unknown, Value::Text),
            "PWD" if !self.state.assigns("PWD") => {
                return self.state.directory().map_or(Value::Unknown, |folder| match folder.contains('*') {
                    true => Value::Shape(folder.to_owned(), Gaps::Letters),
                    false => Value::Text(folder.to_owned()),
                });
            }
            "PATH" if !self.state.assigns("PATH") && !self.state.forgets_variables() => {
                return Value::Shape("*".to_owned(), Gaps::Search);
            }
            _ => match name.parse::<usize>() {
                Ok(0) => return Value::Unknown,
                Ok(number) => match positional.map(|values| values.get(number - 1)) {
                    Some(Some(value)) => return value.clone(),
                    Some(None) => return Value::Unset,
                    None => return Value::Unknown,
                },
                Err(_) => self.state.variable(name),
            },
        };
        match (value, parameter.index) {
            (value @ (Value::Text(_) | Value::List(_)), Some("@" | "*")) => value,
            (Value::List(values), None) => values.first().cloned().map_or(Value::Unset, Value::Text),
            (Value::List(values), Some(index)) => match index.parse::<usize>() {
                Ok(number) => values.get(number).cloned().map_or(Value::Unset, Value::Text),
                Err(_) => Value::Unknown,
            },
            (value, None) => value,
            (_, Some(_)) => Value::Unknown,
        }
    }

    fn operation(
        &mut self,
        parameter: &Parameter<'_>,
        value: Value,
        operation: &str,
        quoting: Quoting,
        range: &Range<usize>,
        fields: &mut Fields,
    ) {
        let quoted = quoting != Quoting::None;
        let colon = operation.starts_with(':');
        let operator = operation.strip_prefix(':').unwrap_or(operation);
        let word = operator.get(1..).unwrap_or_default();
        let missing = match &value {
            Value::Unset => Some(true),
            Value::Text(text) => Some(colon && text.is_empty()),
            Value::List(values) => Some(values.is_empty()),
            Value::Glob(_) => Some(false),
            Value::Shape(..) | Value::Unknown => None,
        };
        match (operator.chars().next(), missing) {
            (None, _) => emit(&value, parameter, quoted, fields),
            (Some('-' | '='), Some(true)) | (Some('+'), Some(false)) => {
                self.pieces(word, quoting, range, fields);
            }
            (Some('+'), Some(true)) => {}
            (Some('-' | '=' | '?'), Some(false)) => emit(&value, parameter, quoted, fields),
            (Some(operator @ ('-' | '=' | '?' | '+')), _) => {
                self.pieces(word, quoting, range, &mut Fields::new(false));
                if operator == '=' {
                    self.assign_unread(parameter.name, range);
                }
                fields.unknown();
            }
            (Some('@'), _) => {
                // `@P` expands the value like a prompt, commands and all.
                if operation.contains('P') {
                    self.unknown("shell", "a value is expanded like a prompt", range.clone());
                }
                fields.unknown();
            }
            _ => {
                let argument = self.argument(operation, range);
                if colon {
                    // Offsets and lengths are arithmetic.
                    self.evaluated(argument.as_deref().unwrap_or_default(), range);
                    self.evaluated_names(operation, range);
                }
                match (value, argument) {
                    (Value::Text(text), Some(argument)) => match change(&text, operation, &argument) {
                        Some(changed) => fields.value(&changed, quoted),
                        None => fields.unknown(),
                    },
                    _ => fields.unknown(),
                }
            }
        }
    }

    /// The words of a pattern operation, expanded, or `None` if they are not plain text.
    fn argument(&mut self, operation: &str, range: &Range<usize>) -> Option<String> {
        let text = operation.trim_start_matches(['#', '%', '^', ',', '/', ':']);
        let word = self.expand_one(text, range);
        word.literal().map(ToOwned::to_owned)
    }
}

fn take(text: &str) -> Option<(Parameter<'_>, &str)> {
    let first = text.bytes().next()?;
    let alphanumeric = |byte: &u8| *byte == b'_' || byte.is_ascii_alphanumeric();
    let length = match first {
        b'0'..=b'9' => text.bytes().take_while(u8::is_ascii_digit).count(),
        b'@' | b'*' | b'#' | b'?' | b'-' | b'$' | b'!' => 1,
        _ => text.bytes().take_while(alphanumeric).count(),
    };
    if length == 0 {
        return None;
    }
    let (name, rest) = text.split_at_checked(length)?;
    let Some(after) = rest.strip_prefix('[') else { return Some((Parameter { name, index: None }, rest)) };
    let mut at = 0;
    while scan::byte(after, at)? != b']' {
        at = scan::piece(after, at, 0).ok()?;
    }
    let (index, rest) = after.split_at_checked(at)?;
    Some((Parameter { name, index: Some(index) }, rest.get(1..)?))
}

fn emit(value: &Value, parameter: &Parameter<'_>, quoted: bool, fields: &mut Fields) {
    let joined = parameter.name == "*" || parameter.index == Some("*");
    match value {
        Value::Text(text) => fields.value(text, quoted),
        Value::List(values) if joined && quoted => fields.value(&values.join(" "), true),
        Value::List(values) => fields.list(values.iter().map(|value| Some(value.as_str())), quoted),
        Value::Unset => {}
        Value::Glob(glob) => fields.literal(glob, false),
        Value::Shape(shape, gaps) => fields.gap(shape, *gaps, quoted),
        Value::Unknown => fields.unknown(),
    }
}

/// What an operation makes of a value, for patterns that are plain text.
fn change(text: &str, operation: &str, argument: &str) -> Option<String> {
    let changed = match operation.chars().next()? {
        '#' => text.strip_prefix(argument).unwrap_or(text).to_owned(),
        '%' => text.strip_suffix(argument).unwrap_or(text).to_owned(),
        '^' if argument.is_empty() && operation == "^^" => text.to_uppercase(),
        ',' if argument.is_empty() && operation == ",," => text.to_lowercase(),
        '/' => {
            let (from, to) = argument.split_once('/').unwrap_or((argument, ""));
            match operation.get(1..2) {
                _ if from.is_empty() => text.to_owned(),
                Some("/") => text.replace(from, to),
                Some("#" | "%") => return None,
                _ => text.replacen(from, to, 1),
            }
        }
        ':' => {
            let (from, length) = argument.split_once(':').unwrap_or((argument, ""));
            let from = from.trim().parse::<usize>().ok()?;
            let rest = text.chars().skip(from);
            if length.is_empty() {
                rest.collect()
            } else {
                rest.take(length.trim().parse::<usize>().ok()?).collect()
            }
        }
        _ => return None,
    };
    Some(changed)
}
