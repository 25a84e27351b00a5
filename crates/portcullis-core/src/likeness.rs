//! What near-identical calls have in common.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::id::{Digest, DigestBuilder};

/// Levels of nesting in arguments that are looked into; what is deeper counts as one.
const DEPTH_MAX: usize = 32;

/// A number that is the same for calls of one tool whose arguments have the same words, whatever their case, white
/// space and punctuation. Numbers, names and the order of words still tell calls apart.
///
/// FNV-1a, 64 bits (<http://www.isthe.com/chongo/tech/comp/fnv/>): an agent that makes two calls collide only has
/// more of its own calls denied. In events it is written as sixteen hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Likeness(u64);

impl Likeness {
    /// The likeness of a call, or `None` without arguments: repeating such a call is how an agent learns that
    /// something changed. Linear in the arguments.
    pub fn of(tool: &str, arguments: &Value) -> Option<Self> {
        let mut hash = Fnv::new();
        hash.text(tool);
        hash.mark(b'(');
        let named = hash.words;
        hash.value(arguments, DEPTH_MAX);
        (hash.words > named).then_some(Self(hash.state))
    }

    /// The likeness under a run's key: the first eight bytes of a SHA-256 over both. Without the key, no one can test
    /// whether it is the likeness of a guessed call.
    #[must_use]
    pub(crate) fn keyed(self, key: &Digest) -> Self {
        let digest = DigestBuilder::new("portcullis/likeness-in-run/v1")
            .part(key.as_bytes())
            .part(&self.0.to_be_bytes())
            .finish();
        let (first, _) = digest.as_bytes().split_first_chunk::<8>().unwrap_or((&[0; 8], &[]));
        Self(u64::from_be_bytes(*first))
    }
}

struct Fnv {
    state: u64,
    words: usize,
}

impl Fnv {
    const fn new() -> Self {
        Self { state: 0xcbf2_9ce4_8422_2325, words: 0 }
    }

    fn mark(&mut self, byte: u8) {
        self.state = (self.state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }

    fn text(&mut self, text: &str) {
        for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
            self.words += 1;
            if word.is_ascii() {
                word.bytes().for_each(|byte| self.mark(byte.to_ascii_lowercase()));
            } else {
                let mut utf8 = [0; 4];
                for c in word.chars().flat_map(char::to_lowercase) {
                    c.encode_utf8(&mut utf8).bytes().for_each(|byte| self.mark(byte));
                }
            }
            self.mark(b' ');
        }
    }

    fn value(&mut self, value: &Value, depth: usize) {
        match value {
            _ if depth == 0 => self.mark(b'~'),
            Value::String(text) => self.text(text),
            Value::Null | Value::Bool(_) | Value::Number(_) => {
                self.words += 1;
                value.to_string().bytes().for_each(|byte| self.mark(byte));
            }
            Value::Array(items) => {
                for item in items {
                    self.value(item, depth - 1);
                    self.mark(b',');
                }
            }
            Value::Object(map) => {
                let mut entries: Vec<_> = map.iter().collect();
                entries.sort_unstable_by_key(|(key, _)| *key);
                for (key, value) in entries {
                    self.words += 1;
                    key.bytes().for_each(|byte| self.mark(byte));
                    self.mark(b':');
                    self.value(value, depth - 1);
                    self.mark(b',');
                }
            }
        }
    }
}

impl fmt::Display for Likeness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// Not sixteen hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a likeness: expected sixteen hexadecimal digits")]
pub struct NoLikeness;

impl FromStr for Likeness {
    type Err = NoLikeness;

    fn from_str(text: &str) -> Result<Self, NoLikeness> {
        let digits = text.len() == 16 && text.bytes().all(|b| b.is_ascii_hexdigit());
        digits.then(|| u64::from_str_radix(text, 16).ok()).flatten().map(Self).ok_or(NoLikeness)
    }
}

impl Serialize for Likeness {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Likeness {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn like(arguments: &str) -> Option<Likeness> {
        Likeness::of("t", &serde_json::from_str(arguments).unwrap())
    }

    #[test]
    fn calls_that_differ_in_spelling_only_are_alike() {
        let this = like(r#"{"q":"find the cheapest flight to ÉVORA","n":1}"#);
        assert_eq!(like(r#"{"n":1,"q":"Find  the Cheapest, flight! to évora"}"#), this);
        for other in [
            r#"{"q":"find the cheapest flight to évora","n":2}"#,
            r#"{"q":"find the cheapest hotel to évora","n":1}"#,
            r#"{"q":"the cheapest flight find to évora","n":1}"#,
            r#"{"q":["find the cheapest flight to évora"],"n":1}"#,
        ] {
            assert_ne!(like(other), this, "{other}");
        }
        assert_ne!(Likeness::of("u", &serde_json::json!({"a": 1})), like(r#"{"a":1}"#));
        assert_eq!((like("{}"), like("[]")), (None, None));
    }

    #[test]
    fn it_is_written_as_digits() {
        let this = like(r#"{"a":1}"#).unwrap();
        let line = serde_json::to_string(&this).unwrap();
        assert_eq!((line.len(), serde_json::from_str::<Likeness>(&line).unwrap()), (18, this));
        assert!("1".parse::<Likeness>().is_err() && "+123456789abcdef".parse::<Likeness>().is_err());
    }
}
