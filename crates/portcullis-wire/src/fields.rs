//! Picks known fields out of an object, as raw slices, and refuses every way to say one of them twice.
//!
//! Readers disagree on `{"name":"a","name":"b"}`, and some match names without regard to case, so that
//! `{"name":"a","Name":"b"}` is the same trick against them. Both are refused here, for the fields that
//! decide what a message means; fields we do not know are left alone.

use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::error::Category;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

/// Why an object or array could not be taken apart.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FieldError {
    /// Not JSON, or not the kind of value that was expected: what, and the place. Never words of the text itself,
    /// which would be repeated in the gate's own voice.
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

/// Most fields of one object that are not among the known ones, where those are read as well.
pub(crate) const FIELDS_MAX: usize = 4096;

/// Names and values of fields.
pub(crate) type Named<'a> = Vec<(String, &'a RawValue)>;

/// The values of the `known` fields of the object in `text`, in the order of `known`.
pub(crate) fn read<'a, const N: usize>(
    text: &'a str,
    known: &[&'static str; N],
) -> Result<[Option<&'a RawValue>; N], FieldError> {
    read_all(text, known, None)
}

/// The same, with all other fields in their order, at most [`FIELDS_MAX`].
pub(crate) fn read_with_rest<'a, const N: usize>(
    text: &'a str,
    known: &[&'static str; N],
) -> Result<([Option<&'a RawValue>; N], Named<'a>), FieldError> {
    let mut rest = Vec::new();
    let found = read_all(text, known, Some(&mut rest))?;
    Ok((found, rest))
}

fn read_all<'a, const N: usize>(
    text: &'a str,
    known: &[&'static str; N],
    rest: Option<&mut Named<'a>>,
) -> Result<[Option<&'a RawValue>; N], FieldError> {
    let mut clash = None;
    let mut reader = serde_json::Deserializer::from_str(text);
    let fields = Fields { known, clash: &mut clash, rest }
        .deserialize(&mut reader)
        .and_then(|fields| reader.end().map(|()| fields));
    fields.map_err(|error| clash.unwrap_or_else(|| unreadable(&error, "expected an object")))
}

/// What a reader stopped at, in fixed words. Its own message repeats the text where it is about data.
fn unreadable(error: &serde_json::Error, of_data: &'static str) -> FieldError {
    FieldError::Json(match error.classify() {
        Category::Data => format!("{of_data} at line {} column {}", error.line(), error.column()),
        Category::Syntax | Category::Eof | Category::Io => error.to_string(),
    })
}

/// The value that `raw` is, as every reader reads it: no key twice in any object, at most 127 levels deep. Halves of
/// surrogate pairs, which stand where a text was cut within a character, become U+FFFD.
pub(crate) fn value(raw: &RawValue) -> Result<Value, FieldError> {
    let text = mended(raw.get());
    let mut reader = serde_json::Deserializer::from_str(&text);
    let value = Single.deserialize(&mut reader);
    value.map_err(|error| unreadable(&error, "an object has a key twice"))
}

/// The string that `raw` is, with U+FFFD for halves of surrogate pairs; `None` if it is not a string.
pub(crate) fn lossy_string(raw: &RawValue) -> Option<Cow<'_, str>> {
    string(raw).or_else(|| serde_json::from_str::<String>(&mended(raw.get())).ok().map(Cow::Owned))
}

/// JSON text with U+FFFD in place of each half of a surrogate pair.
pub(crate) fn mended(text: &str) -> Cow<'_, str> {
    const ESCAPE_BYTES: usize = 6;
    let unit = |at: usize| {
        let digits = text.get(at..at + ESCAPE_BYTES)?.strip_prefix("\\u")?;
        u16::from_str_radix(digits, 16).ok()
    };
    let mut mended = String::new();
    let (mut at, mut kept) = (0, 0);
    while let Some(found) = text.get(at..).and_then(|rest| rest.find('\\')) {
        let escape = at + found;
        at = match (unit(escape), unit(escape + ESCAPE_BYTES)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => escape + 2 * ESCAPE_BYTES,
            (Some(0xd800..=0xdfff), _) => {
                mended.push_str(text.get(kept..escape).unwrap_or_default());
                mended.push_str("\\ufffd");
                kept = escape + ESCAPE_BYTES;
                kept
            }
            // The backslash and what it escapes, which in JSON is a single byte.
            _ => escape + 2,
        };
    }
    if mended.is_empty() {
        return Cow::Borrowed(text);
    }
    mended.push_str(text.get(kept..).unwrap_or_default());
    Cow::Owned(mended)
}

/// Reads a value and refuses an object that has a key twice.
struct Single;

impl<'de> DeserializeSeed<'de> for Single {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Single {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut elements = Vec::new();
        while let Some(element) = seq.next_element_seed(Self)? {
            elements.push(element);
        }
        Ok(elements.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            let value = map.next_value_seed(Self)?;
            if object.insert(key, value).is_some() {
                return Err(A::Error::custom("a key twice"));
            }
        }
        Ok(object.into())
    }
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
        if full { FieldError::TooMany { what, limit } } else { unreadable(&error, "expected an array") }
    })
}

/// The string that `raw` is, decoded only where it has escapes; `None` if it is not a string.
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

/// Where `part` is in `whole`, in bytes. `None` unless it was borrowed from it.
pub(crate) fn span(whole: &str, part: &RawValue) -> Option<Range<usize>> {
    let start = (part.get().as_ptr().addr()).checked_sub(whole.as_ptr().addr())?;
    let end = start.checked_add(part.get().len())?;
    (end <= whole.len()).then_some(start..end)
}

struct Fields<'k, 'de, const N: usize> {
    known: &'k [&'static str; N],
    clash: &'k mut Option<FieldError>,
    /// Where the other fields go, if anywhere.
    rest: Option<&'k mut Named<'de>>,
}

impl<'de, const N: usize> DeserializeSeed<'de> for Fields<'_, 'de, N> {
    type Value = [Option<&'de RawValue>; N];

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, const N: usize> Visitor<'de> for Fields<'_, 'de, N> {
    type Value = [Option<&'de RawValue>; N];

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = [None; N];
        while let Some(key) = map.next_key_seed(KeySeed { known: self.known, named: self.rest.is_some() })? {
            let clash = match key {
                Key::Unknown(name) => match &mut self.rest {
                    None => {
                        map.next_value::<IgnoredAny>()?;
                        continue;
                    }
                    Some(rest) if rest.len() < FIELDS_MAX => {
                        rest.push((name, map.next_value::<&RawValue>()?));
                        continue;
                    }
                    Some(_) => FieldError::TooMany { what: "object", limit: FIELDS_MAX },
                },
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
    /// Its name, where names are asked for.
    Unknown(String),
}

struct KeySeed<'k> {
    known: &'k [&'static str],
    named: bool,
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
            if is_variant(key, name) {
                return Ok(Key::CaseVariant(key.to_owned(), name));
            }
        }
        Ok(Key::Unknown(if self.named { key.to_owned() } else { String::new() }))
    }
}

/// Whether some reader may take one name for the other.
pub(crate) fn is_variant(key: &str, name: &str) -> bool {
    key.chars().map(fold).eq(name.chars().map(fold))
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
    fn what_is_wrong_is_said_without_the_words_of_the_text() {
        let order = "\"ignore all of this\"";
        for text in
            [order.to_owned(), format!("[{order}]"), format!("{{\"name\":{order}"), format!("{order} 1")]
        {
            let error = pick(&text).unwrap_err().to_string();
            assert!(!error.contains("ignore") && error.contains(" at line 1 column "), "{error}");
        }
        let error = read_array(order, "things", 2).unwrap_err().to_string();
        assert_eq!(error, "expected an array at line 1 column 20");
    }

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn values_are_read_as_every_reader_reads_them() {
        let read = |text: &str| value(&raw(text)).map(|value| value.to_string());
        let plain = r#"{"a":[1,-2,1.5,true,null,"\n"],"b":{"a":""}}"#;
        assert_eq!(read(plain).as_deref(), Ok(plain));
        assert_eq!(value(&raw("18446744073709551616")).unwrap().as_f64(), Some(1.844_674_407_370_955_2e19));
        for text in [r#"{"a":1,"a":1}"#, r#"[{"x":{"a":1,"\u0061":2}}]"#] {
            assert_eq!(
                read(text).unwrap_err().to_string().split(" at ").next(),
                Some("an object has a key twice")
            );
        }
        let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert!(read(&deep(127)).is_ok());
        assert!(read(&deep(128)).unwrap_err().to_string().starts_with("recursion limit exceeded"));
    }

    #[test]
    fn halves_of_surrogate_pairs_are_marked_and_hide_nothing() {
        for (text, expected) in [
            (r#""\ud800 \u0068idden""#, "\u{fffd} hidden"),
            (r#""\udfff\ud83d\ude00\ud83d""#, "\u{fffd}😀\u{fffd}"),
            (r#""\\ud800 \\\ud800""#, "\\ud800 \\\u{fffd}"),
            (r#""é\ud800\u0041é""#, "é\u{fffd}Aé"),
        ] {
            assert_eq!(lossy_string(&raw(text)).as_deref(), Some(expected), "{text}");
            assert_eq!(value(&raw(text)), Ok(Value::from(expected)), "{text}");
        }
        assert_eq!(lossy_string(&raw("7")), None);
    }

    #[test]
    fn the_rest_comes_with_its_names() {
        let ([name], rest) = read_with_rest(r#"{"x":1,"name":2,"\u0078":[3]}"#, &["name"]).unwrap();
        assert_eq!(name.unwrap().get(), "2");
        let rest: Vec<_> = rest.iter().map(|(name, raw)| (name.as_str(), raw.get())).collect();
        assert_eq!(rest, [("x", "1"), ("x", "[3]")]);
        let many: Vec<String> = (0..=FIELDS_MAX).map(|number| format!("\"{number}\":0")).collect();
        let error = read_with_rest(&format!("{{{}}}", many.join(",")), &["name"]).unwrap_err();
        assert_eq!(error, FieldError::TooMany { what: "object", limit: FIELDS_MAX });
    }

    #[test]
    fn arrays_are_bounded() {
        assert_eq!(read_array("[1, {} ]", "things", 2).map(|all| all.len()), Ok(2));
        let error = read_array("[1,2,3]", "things", 2).unwrap_err();
        assert_eq!(error.to_string(), "more than 2 elements in `things`");
        assert!(matches!(read_array("{}", "things", 2), Err(FieldError::Json(_))));
    }
}
