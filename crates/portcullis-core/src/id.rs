//! Identifiers and digests.
//!
//! Ids are 16 opaque bytes printed as 32 lower-case hex digits; digests are 32 bytes printed as 64. The core
//! never makes an id: randomness and clocks belong to the driver of a run.

use std::fmt;
use std::str::FromStr;

use ring::digest::{Context, SHA256};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Text that is not an id or a digest of the wanted length.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not {want} lower-case hex digits")]
pub struct ParseHexError {
    text: String,
    want: usize,
}

fn parse_hex<const N: usize>(text: &str) -> Result<[u8; N], ParseHexError> {
    let error = || ParseHexError { text: text.chars().take(80).collect(), want: N * 2 };
    if text.len() != N * 2 {
        return Err(error());
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        let mut value = 0;
        for digit in pair {
            let nibble = match digit {
                b'0'..=b'9' => digit - b'0',
                b'a'..=b'f' => digit - b'a' + 10,
                _ => return Err(error()),
            };
            value = value << 4 | nibble;
        }
        *byte = value;
    }
    Ok(bytes)
}

fn write_hex(bytes: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = [0_u8; 64];
    for (pair, byte) in text.chunks_exact_mut(2).zip(bytes) {
        if let ([high, low], Some(h), Some(l)) =
            (pair, DIGITS.get(usize::from(byte >> 4)), DIGITS.get(usize::from(byte & 15)))
        {
            (*high, *low) = (*h, *l);
        }
    }
    let digits = text.get(..bytes.len() * 2).unwrap_or_default();
    f.pad(std::str::from_utf8(digits).map_err(|_| fmt::Error)?)
}

macro_rules! hex_newtype {
    ($(#[$meta:meta])* $name:ident, $len:literal, $digits:literal) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name([u8; $len]);

        impl $name {
            /// Wraps the given bytes.
            pub const fn from_bytes(bytes: [u8; $len]) -> Self {
                Self(bytes)
            }

            /// The bytes themselves.
            pub const fn as_bytes(&self) -> &[u8; $len] {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write_hex(&self.0, f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write_hex(&self.0, f)
            }
        }

        impl FromStr for $name {
            type Err = ParseHexError;

            fn from_str(text: &str) -> Result<Self, ParseHexError> {
                parse_hex(text).map(Self)
            }
        }

        impl Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "pattern": concat!("^[0-9a-f]{", stringify!($digits), "}$") })
            }
        }
    };
}

hex_newtype!(/// Names a run for its whole life, across segments.
    RunId, 16, 32);
hex_newtype!(/// Names one segment of a run: the stretch written by one writer.
    SegmentId, 16, 32);
hex_newtype!(/// Names one proposed action of a run.
    ActionId, 16, 32);
hex_newtype!(/// Names one request for a person's approval, and the grant that may follow.
    ApprovalId, 16, 32);
hex_newtype!(/// Names a request that may be made again, so that it counts once.
    RequestId, 16, 32);
hex_newtype!(/// A SHA-256 digest of something this crate defines the bytes of.
    Digest, 32, 64);
hex_newtype!(/// A salted commitment to a payload: binds the bytes without revealing them (`specs/run-chain.md`).
    Commitment, 32, 64);

/// Builds a [`Digest`] from a domain label and length-prefixed parts, so that no two inputs collide by
/// concatenation.
#[derive(Clone)]
pub struct DigestBuilder(Context);

impl fmt::Debug for DigestBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DigestBuilder").finish_non_exhaustive()
    }
}

impl DigestBuilder {
    /// Starts a digest. `label` names what is hashed and its version, e.g. `portcullis/action/v1`.
    pub fn new(label: &str) -> Self {
        let mut hasher = Context::new(&SHA256);
        hasher.update(label.as_bytes());
        hasher.update(&[0]);
        Self(hasher)
    }

    /// Adds one part, prefixed with its length as eight big-endian bytes.
    #[must_use]
    pub fn part(mut self, bytes: &[u8]) -> Self {
        self.0.update(&(bytes.len() as u64).to_be_bytes());
        self.0.update(bytes);
        self
    }

    /// The digest of the label and all parts.
    pub fn finish(self) -> Digest {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(self.0.finish().as_ref());
        Digest(bytes)
    }
}

/// JSON text with the keys of every object in order, so that two spellings of one value have one digest,
/// however the parser kept them.
pub fn canonical_json(value: &Value) -> String {
    // A value without keys that are not text always has a text; the fallback is never a digest of nothing.
    serde_json::to_string(&Canonical(value)).unwrap_or_else(|_| value.to_string())
}

struct Canonical<'a>(&'a Value);

impl Serialize for Canonical<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Object(map) => {
                let mut entries: Vec<(&String, &Value)> = map.iter().collect();
                entries.sort_unstable_by_key(|(key, _)| *key);
                serializer.collect_map(entries.into_iter().map(|(key, value)| (key, Canonical(value))))
            }
            Value::Array(items) => serializer.collect_seq(items.iter().map(Canonical)),
            scalar => scalar.serialize(serializer),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canonical_json_orders_keys_and_is_the_same_text_otherwise() {
        let value: Value = serde_json::from_str(r#"{"b":[{"z":1,"a":null}],"a":"ä\n","c":1.50}"#).unwrap();
        assert_eq!(canonical_json(&value), r#"{"a":"ä\n","b":[{"a":null,"z":1}],"c":1.5}"#);
    }

    #[test]
    fn hex_round_trips_and_rejects_other_text() {
        let id = RunId::from_bytes(*b"\x00\x01\xfeabcdefghijklm");
        assert_eq!(id.to_string().parse(), Ok(id));
        assert_eq!(format!("{id:.8}"), "0001fe61");
        for text in ["", "00", &"0".repeat(31), &"G".repeat(32), &"A".repeat(32)] {
            assert!(text.parse::<RunId>().is_err(), "{text}");
        }
    }

    #[test]
    fn parts_cannot_be_shifted_into_each_other() {
        let digest = |a: &[u8], b: &[u8]| DigestBuilder::new("t").part(a).part(b).finish();
        assert_ne!(digest(b"ab", b"c"), digest(b"a", b"bc"));
        assert_ne!(DigestBuilder::new("t").finish(), DigestBuilder::new("u").finish());
    }
}
