//! Picks known fields out of an object, as raw slices, and refuses every way to say one of them twice.
//!
//! Readers disagree on `{"name":"a","name":"b"}`, and some match names without regard to case, so that
//! `{"name":"a","Name":"b"}` is the same trick against them. Both are refused here, for the fields that
//! decide what a message means; fields we do not know are left alone.

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

/// Why an object or array could not be taken apart.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FieldError {
    /// Not JSON, or not the kind of value that was expected; the reader's own words and place.
    #[error("{0}")]
    Json(String),
    /// A field that decides the meaning occurs twice.
    #[error("field `{0}` occurs twice; send it once")]
    Duplicate(&'static str),
    /// A field's name differs from a known one only in case, and some readers take one for the other.
    #[error("field `{found}` differs from `{known}` only in case; spell it `{known}`")]
    CaseVariant {
        /// The name as sent.
        found: String,
        /// The name it can be taken for.
        known: &'static str,
    },
    /// An array has more elements than its limit.
    #[error("more than {limit} elements in `{what}`")]
    TooMany {
        /// What the array holds.
        what: &'static str,
        /// The limit, in elements.
        limit: usize,
    },
}

/// The values of the `known` fields of the object in `text`, in the order of `known`.
pub(crate) fn read<'a, const N: usize>(
    text: &'a str,
    known: &[&'static str; N],
) -> Result<[Option<&'a RawValue>; N], FieldError> {
    let mut clash = None;
    let mut reader = serde_json::Deserializer::from_str(text);
    let fields = Fields { known, clash: &mut clash }
        .deserialize(&mut reader)
        .and_then(|fields| reader.end().map(|()| fields));
    fields.map_err(|error| clash.unwrap_or_else(|| FieldError::Json(error.to_string())))
}

/// The elements of the array in `text`, at most `limit`.
pub(crate) fn read_array<'a>(
    text: &'a str,
    what: &'static str,
    limit: usize,
) -> Result<Vec<&'a RawValue>, FieldError> {
    let mut full = false;
    let mut reader = serde_json::Deserializer::from_str(text);
    let elements = Elements { limit, full: &mut full }
        .deserialize(&mut reader)
        .and_then(|elements| reader.end().map(|()| elements));
    elements.map_err(|error| {
        if full { FieldError::TooMany { what, limit } } else { FieldError::Json(error.to_string()) }
    })
}

/// The string that `raw` is, decoded only where it has escapes; `None` where it is no string.
pub(crate) fn string(raw: &RawValue) -> Option<Cow<'_, str>> {
    let inner = raw.get().strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') {
        return serde_json::from_str::<String>(raw.get()).ok().map(Cow::Owned);
    }
    Some(Cow::Borrowed(inner))
}

/// Whether `raw` is `null`.
pub(crate) fn is_null(raw: &RawValue) -> bool {
    raw.get() == "null"
}

/// `raw`, unless it is absent or `null`.
pub(crate) fn present(raw: Option<&RawValue>) -> Option<&RawValue> {
    raw.filter(|raw| !is_null(raw))
}

/// Where `part` lies in `whole`, in bytes. `None` unless it was borrowed from it.
pub(crate) fn span(whole: &str, part: &RawValue) -> Option<Range<usize>> {
    let start = (part.get().as_ptr().addr()).checked_sub(whole.as_ptr().addr())?;
    let end = start.checked_add(part.get().len())?;
    (end <= whole.len()).then_some(start..end)
}

struct Fields<'k, const N: usize> {
    known: &'k [&'static str; N],
    clash: &'k mut Option<FieldError>,
}

impl<'de, const N: usize> DeserializeSeed<'de> for Fields<'_, N> {
    type Value = [Option<&'de RawValue>; N];

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, const N: usize> Visitor<'de> for Fields<'_, N> {
    type Value = [Option<&'de RawValue>; N];

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = [None; N];
        while let Some(key) = map.next_key_seed(KeySeed { known: self.known })? {
            let clash = match key {
                Key::Unknown => {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
                Key::Known(index, name) => match found.get_mut(index) {
                    Some(slot @ None) => {
                        *slot = Some(map.next_value::<&RawValue>()?);
                        continue;
                    }
                    _ => FieldError::Duplicate(name),
                },
                Key::CaseVariant(found, known) => FieldError::CaseVariant { found, known },
            };
            *self.clash = Some(clash);
            return Err(serde::de::Error::custom("ambiguous field"));
        }
        Ok(found)
    }
}

enum Key {
    Known(usize, &'static str),
    CaseVariant(String, &'static str),
    Unknown,
}

struct KeySeed<'k> {
    known: &'k [&'static str],
}

impl<'de> DeserializeSeed<'de> for KeySeed<'_> {
    type Value = Key;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Key, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for KeySeed<'_> {
    type Value = Key;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<Key, E> {
        for (index, name) in self.known.iter().enumerate() {
            if key == *name {
                return Ok(Key::Known(index, name));
            }
        }
        for name in self.known {
            if key.chars().map(fold).eq(name.chars().map(fold)) {
                return Ok(Key::CaseVariant(key.to_owned(), name));
            }
        }
        Ok(Key::Unknown)
    }
}

/// Simple case folding as far as it can reach an ASCII letter: two letters beyond ASCII fold into it.
fn fold(letter: char) -> char {
    match letter {
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        other => other.to_ascii_lowercase(),
    }
}

struct Elements<'k> {
    limit: usize,
    full: &'k mut bool,
}

impl<'de> DeserializeSeed<'de> for Elements<'_> {
    type Value = Vec<&'de RawValue>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Elements<'_> {
    type Value = Vec<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut elements = Vec::new();
        while let Some(element) = seq.next_element::<&RawValue>()? {
            if elements.len() >= self.limit {
                *self.full = true;
                return Err(serde::de::Error::custom("too many elements"));
            }
            elements.push(element);
        }
        Ok(elements)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pick(text: &str) -> Result<[Option<&str>; 2], FieldError> {
        read(text, &["name", "task"]).map(|found| found.map(|raw| raw.map(RawValue::get)))
    }

    #[test]
    fn known_fields_are_raw_slices_and_others_are_ignored() {
        assert_eq!(
            pick(r#"{"x":[1],"task": {"a" : 1} ,"n\u0061me":"b"}"#),
            Ok([Some("\"b\""), Some("{\"a\" : 1}")])
        );
        assert_eq!(pick("{}"), Ok([None, None]));
    }

    #[test]
    fn saying_a_field_twice_is_refused() {
        assert_eq!(pick(r#"{"name":1,"n\u0061me":2}"#), Err(FieldError::Duplicate("name")));
        for text in [r#"{"Name":1}"#, r#"{"tas\u212a":1}"#, r#"{"ta\u017fk":1}"#] {
            assert!(matches!(pick(text), Err(FieldError::CaseVariant { .. })), "{text}");
        }
        assert!(pick(r#"{"x":1,"x":2,"X":3}"#).is_ok());
    }

    #[test]
    fn what_is_no_object_is_refused() {
        for text in ["[]", "1", "", "{\"name\":1", "{} {}", "{\"name\":nul}"] {
            assert!(matches!(pick(text), Err(FieldError::Json(_))), "{text}");
        }
    }

    #[test]
    fn arrays_are_bounded() {
        assert_eq!(read_array("[1, {} ]", "things", 2).map(|all| all.len()), Ok(2));
        let error = read_array("[1,2,3]", "things", 2).unwrap_err();
        assert_eq!(error.to_string(), "more than 2 elements in `things`");
        assert!(matches!(read_array("{}", "things", 2), Err(FieldError::Json(_))));
    }
}
