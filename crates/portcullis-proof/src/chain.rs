//! The run chain: four hashes, and nothing else that is cryptographic.
//!
//! Every hash starts with a label that ends in NUL and carries a version, so that no value of one kind can stand
//! for a value of another kind or of another version. Every part of variable length is preceded by its length,
//! so that no two different inputs have the same encoding. What is hashed of an event is its line *as stored*:
//! nothing is parsed and written again on the way to a hash.
//!
//! ```text
//! event_hash = H("portcullis/event/v1\0"   || lp(line))
//! link_0     = H("portcullis/segment/v1\0" || lp(origin) || run || segment || lp(writer) || u64(ordinal)
//!                                          || u64(after) || parent segment or zeros || parent link or zeros)
//! link_n     = H("portcullis/link/v1\0"    || run || segment || u64(seq) || link before || event_hash)
//! commitment = H("portcullis/payload/v1\0" || salt || lp(media type) || lp(bytes))
//! ```
//!
//! `H` is SHA-256, integers are big-endian, `lp(x)` is `u32(length of x) || x`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::hash::Sha256;

const EVENT_LABEL: &[u8] = b"portcullis/event/v1\0";
const SEGMENT_LABEL: &[u8] = b"portcullis/segment/v1\0";
const LINK_LABEL: &[u8] = b"portcullis/link/v1\0";
const PAYLOAD_LABEL: &[u8] = b"portcullis/payload/v1\0";

/// Bytes of fixed length, written everywhere as lower-case hexadecimal.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Hex<const N: usize>(pub [u8; N]);

/// The id of a run, segment, action or approval.
pub type Id = Hex<16>;

/// A SHA-256 value: an event hash, a link or a payload commitment.
pub type Digest = Hex<32>;

/// Why a text is not the hexadecimal form of `N` bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected {expected} lower-case hexadecimal digits")]
pub struct HexError {
    /// The number of digits that a well-formed value has.
    pub expected: usize,
}

impl<const N: usize> Hex<N> {
    /// Reads exactly `2 * N` lower-case digits.
    ///
    /// # Errors
    /// When the length differs or a character is not one of `0-9a-f`.
    pub fn from_digits(digits: &[u8]) -> Result<Hex<N>, HexError> {
        let error = HexError { expected: 2 * N };
        if digits.len() != 2 * N {
            return Err(error);
        }
        let mut bytes = [0u8; N];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let [high, low] = *pair else { return Err(error) };
            *byte = digit(high).zip(digit(low)).map(|(high, low)| high << 4 | low).ok_or(error)?;
        }
        Ok(Hex(bytes))
    }
}

fn digit(character: u8) -> Option<u8> {
    match character {
        b'0'..=b'9' => Some(character - b'0'),
        b'a'..=b'f' => Some(character - b'a' + 10),
        _ => None,
    }
}

/// The lower-case hexadecimal form of bytes of any length.
#[must_use]
pub fn hex_text(bytes: &[u8]) -> String {
    let character = |nibble: u8| char::from(if nibble < 10 { b'0' + nibble } else { b'a' - 10 + nibble });
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        text.push(character(byte >> 4));
        text.push(character(byte & 15));
    }
    text
}

/// The bytes of a lower-case hexadecimal text of any length, or `None` if it is not one.
#[must_use]
pub fn hex_bytes(text: &str) -> Option<Vec<u8>> {
    let pairs = text.as_bytes().chunks_exact(2);
    if !pairs.remainder().is_empty() {
        return None;
    }
    pairs
        .map(|pair| match *pair {
            [high, low] => digit(high).zip(digit(low)).map(|(high, low)| high << 4 | low),
            _ => None,
        })
        .collect()
}

impl<const N: usize> fmt::Display for Hex<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex_text(&self.0))
    }
}

impl<const N: usize> fmt::Debug for Hex<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl<const N: usize> FromStr for Hex<N> {
    type Err = HexError;

    fn from_str(text: &str) -> Result<Hex<N>, HexError> {
        Hex::from_digits(text.as_bytes())
    }
}

impl<const N: usize> From<[u8; N]> for Hex<N> {
    fn from(bytes: [u8; N]) -> Hex<N> {
        Hex(bytes)
    }
}

impl<const N: usize> Serialize for Hex<N> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&hex_text(&self.0))
    }
}

impl<'de, const N: usize> Deserialize<'de> for Hex<N> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Hex<N>, D::Error> {
        struct Text<const N: usize>;
        impl<const N: usize> serde::de::Visitor<'_> for Text<N> {
            type Value = Hex<N>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{} lower-case hexadecimal digits", 2 * N)
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Hex<N>, E> {
                Hex::from_digits(text.as_bytes()).map_err(E::custom)
            }
        }
        deserializer.deserialize_str(Text::<N>)
    }
}

/// The segment that a segment continues, and that segment's last link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parent {
    /// The segment before.
    pub segment: Id,
    /// The link of its last event (of its start, when it has no event).
    pub link: Digest,
}

/// All that the first link of a segment binds.
#[derive(Debug, Clone, Copy)]
pub struct SegmentStart<'a> {
    /// The name of the store that the run was written in.
    pub origin: &'a str,
    /// The run.
    pub run: Id,
    /// The segment.
    pub segment: Id,
    /// The text id of the writer that owns the segment.
    pub writer: &'a str,
    /// The number of segments of the run before this one.
    pub ordinal: u64,
    /// The seq of the last event of the run before this segment, 0 for the first.
    pub after: u64,
    /// The segment before, none for the first.
    pub parent: Option<Parent>,
}

/// The hash of one event: of its line exactly as it is stored, without the newline.
#[must_use]
pub fn event_hash(line: &[u8]) -> Digest {
    let mut hash = Sha256::new();
    hash.update(EVENT_LABEL);
    part(&mut hash, line);
    Hex(hash.finish())
}

/// `link_0`: the link from which the first event of a segment follows.
#[must_use]
pub fn segment_link(start: &SegmentStart<'_>) -> Digest {
    let mut hash = Sha256::new();
    hash.update(SEGMENT_LABEL);
    part(&mut hash, start.origin.as_bytes());
    hash.update(start.run.0);
    hash.update(start.segment.0);
    part(&mut hash, start.writer.as_bytes());
    hash.update(start.ordinal.to_be_bytes());
    hash.update(start.after.to_be_bytes());
    hash.update(start.parent.map_or([0; 16], |parent| parent.segment.0));
    hash.update(start.parent.map_or([0; 32], |parent| parent.link.0));
    Hex(hash.finish())
}

/// `link_n`: the link of event `seq`, which follows from the link before it.
#[must_use]
pub fn event_link(run: Id, segment: Id, seq: u64, before: Digest, event_hash: Digest) -> Digest {
    let mut hash = Sha256::new();
    hash.update(LINK_LABEL);
    hash.update(run.0);
    hash.update(segment.0);
    hash.update(seq.to_be_bytes());
    hash.update(before.0);
    hash.update(event_hash.0);
    Hex(hash.finish())
}

/// What is in an event for a payload. The random salt keeps a short payload from being guessed; deleting salt
/// and bytes erases the payload while every link still holds.
#[must_use]
pub fn payload_commitment(salt: &[u8; 32], media_type: &str, bytes: &[u8]) -> Digest {
    let mut hash = Sha256::new();
    hash.update(PAYLOAD_LABEL);
    hash.update(salt);
    part(&mut hash, media_type.as_bytes());
    part(&mut hash, bytes);
    Hex(hash.finish())
}

/// Hashes `lp(bytes)`. The limits of the format keep every part far below the 4 GiB that a `u32` can state.
fn part(hash: &mut Sha256, bytes: &[u8]) {
    hash.update(u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_be_bytes());
    hash.update(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_is_strict() {
        assert_eq!("00ff".parse::<Hex<2>>(), Ok(Hex([0, 255])));
        for wrong in ["", "00f", "00fff", "00FF", "00fg", "0x00"] {
            assert_eq!(wrong.parse::<Hex<2>>(), Err(HexError { expected: 4 }), "{wrong}");
        }
        assert_eq!(hex_bytes("00ff"), Some(vec![0, 255]));
        assert_eq!(hex_bytes("0"), None);
        assert_eq!(hex_bytes("0g"), None);
        assert_eq!(hex_text(&[0, 255]), "00ff");
    }

    #[test]
    fn lengths_keep_parts_apart() {
        assert_ne!(payload_commitment(&[0; 32], "ab", b"c"), payload_commitment(&[0; 32], "a", b"bc"));
    }
}
