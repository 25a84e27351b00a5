//! What goes to a tool beside its arguments when a call takes up one that asked for more: the client's answers
//! (`inputResponses`) and the state that the server gave it (`requestState`).
//!
//! Nobody declares what is in them, and the tool gets them as it gets its arguments. Each object in them is therefore
//! read as if its members were arguments of the call, beside the others; a text that is JSON, by what is in it.

use std::collections::BTreeSet;
use std::fmt;

use portcullis_core::action::Action;
use portcullis_core::effect::Effects;
use portcullis_core::tool::Tool;
use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use crate::arguments::looks_like_text;
use crate::arguments::plan::escaped;
use crate::limits::{ANSWERS_MAX, ARGUMENTS_BYTES_MAX, LEAVES_MAX, NESTING_MAX};
use crate::reader::read_answer;
use crate::{Sink, Surroundings};

/// How often a text may be encoded within itself.
const DECODINGS_MAX: usize = 3;

/// Adds the effects of what `action` carries beside its arguments.
pub(crate) fn read(
    tool: Option<&Tool>,
    name: &str,
    action: &Action,
    continuation: &Value,
    surroundings: &Surroundings<'_>,
    effects: &mut Effects,
) {
    let none = Map::new();
    let arguments = action.arguments.as_object().unwrap_or(&none);
    let mut answers =
        Answers { tool, name, arguments, surroundings, effects, objects: 0, values: 0, full: false };
    answers.value(continuation, "/continuation", 0);
}

/// The answers of one call while they are read.
struct Answers<'a> {
    tool: Option<&'a Tool>,
    name: &'a str,
    arguments: &'a Map<String, Value>,
    surroundings: &'a Surroundings<'a>,
    effects: &'a mut Effects,
    objects: usize,
    values: usize,
    full: bool,
}

impl Answers<'_> {
    fn value(&mut self, value: &Value, pointer: &str, depth: usize) {
        self.values += 1;
        if depth > NESTING_MAX || self.values > LEAVES_MAX {
            self.stop("the answers hold more than is read", pointer);
        }
        if self.full || self.effects.is_full() {
            return;
        }
        match value {
            Value::Object(members) => self.object(members, pointer, depth),
            Value::Array(items) => {
                for (at, item) in items.iter().enumerate() {
                    self.value(item, &format!("{pointer}/{at}"), depth + 1);
                }
            }
            Value::String(text) => self.text(text, pointer, depth),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn object(&mut self, members: &Map<String, Value>, pointer: &str, depth: usize) {
        self.objects += 1;
        if self.objects > ANSWERS_MAX {
            return self.stop("the answers hold more objects than are read", pointer);
        }
        let found = read_answer(self.tool, self.name, members, self.arguments, pointer, self.surroundings);
        self.effects.absorb(found);
        for (name, member) in members {
            self.value(member, &format!("{pointer}/{}", escaped(name)), depth + 1);
        }
    }

    /// A text within the answers, and what it is an encoding of.
    fn text(&mut self, text: &str, pointer: &str, depth: usize) {
        if text.len() > ARGUMENTS_BYTES_MAX {
            return self.stop("a text in the answers is longer than is read", pointer);
        }
        self.plain(text, pointer, depth);
        let mut inner = vec![text.to_owned()];
        for level in 1..=DECODINGS_MAX {
            let found: Vec<String> = inner.iter().flat_map(|text| decoded(text)).collect();
            for text in &found {
                self.plain(text, pointer, depth + level);
            }
            // JSON is taken apart by now, with what is encoded in it.
            inner = found.into_iter().filter(|text| !text.starts_with(['{', '['])).collect();
        }
        if inner.iter().any(|text| decoded(text).iter().any(|text| text.starts_with(['{', '[']))) {
            self.stop("a text in the answers is encoded more often than is read", pointer);
        }
    }

    /// A text as it is: JSON, or a value that can be told by its looks.
    fn plain(&mut self, text: &str, pointer: &str, depth: usize) {
        if text.trim_start().starts_with(['{', '[']) && serde_json::from_str::<IgnoredAny>(text).is_ok() {
            return match serde_json::from_str::<Unique>(text).and_then(|_| serde_json::from_str(text)) {
                Ok(value) => self.value(&value, pointer, depth + 1),
                Err(_) => self.stop("JSON in the answers can be read in two ways", pointer),
            };
        }
        if looks_like_text(text.trim()).is_some() {
            // Under a name of its own, which says nothing.
            let only: Map<String, Value> =
                [(String::new(), Value::String(text.to_owned()))].into_iter().collect();
            let place = pointer.rsplit_once('/').map_or("", |(before, _)| before);
            let found = read_answer(None, self.name, &only, self.arguments, place, self.surroundings);
            self.effects.absorb(found.map(|mut effect| {
                if let Some(span) = &mut effect.span {
                    span.pointer = pointer.to_owned();
                }
                effect
            }));
        }
    }

    fn stop(&mut self, why: &str, pointer: &str) {
        if !self.full {
            self.full = true;
            Sink::new(self.effects, pointer).unknown("arguments", why, 0..0);
        }
    }
}

/// What a text says in base64, in either alphabet, or in the form of a query; nothing where it is neither.
fn decoded(text: &str) -> Vec<String> {
    let text = text.trim();
    let mut found = Vec::new();
    if let Some(inner) = base64(text) {
        found.push(inner);
    }
    if text.contains(['%', '=', '&']) && !text.contains(char::is_whitespace) {
        let pairs: Map<String, Value> = url::form_urlencoded::parse(text.as_bytes())
            .map(|(name, value)| (name.into_owned(), Value::String(value.into_owned())))
            .collect();
        found.push(Value::Object(pairs).to_string());
    }
    found
}

/// Text that is in base64, with or without padding.
fn base64(text: &str) -> Option<String> {
    let digits = text.trim_end_matches('=');
    let mut bytes = Vec::with_capacity(digits.len() / 4 * 3 + 3);
    let (mut buffer, mut bits) = (0_u32, 0_u32);
    for digit in digits.bytes() {
        let value = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return None,
        };
        buffer = (buffer << 6 | u32::from(value)) & 0xff_ffff;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push(u8::try_from(buffer >> bits & 0xff).unwrap_or_default());
        }
    }
    // A word is base64 by chance; what it says is then no text.
    String::from_utf8(bytes)
        .ok()
        .filter(|text| text.len() >= 8 && !text.contains(|c: char| c.is_control() && !c.is_whitespace()))
}

/// JSON in which no object has a key twice.
struct Unique;

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Self)
    }
}

impl<'de> Visitor<'de> for Unique {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON without equal keys")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self, A::Error> {
        let mut keys = BTreeSet::new();
        while let Some((key, Self)) = map.next_entry::<String, Self>()? {
            if !keys.insert(key) {
                return Err(A::Error::custom("a key stands twice"));
            }
        }
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self, A::Error> {
        while items.next_element::<Self>()?.is_some() {}
        Ok(self)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_unit<E>(self) -> Result<Self, E> {
        Ok(self)
    }
}
