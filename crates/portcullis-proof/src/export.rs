//! The export: one run as a text file that a stranger can verify, `portcullis-export/v1` and `/v2`.
//!
//! ```text
//! {"record":"export",...}            whose run this is
//! {"record":"segment",...}           then for every segment: its start,
//! <link> {"v":1,"seq":1,...}         its events, each with its link, byte-exact,
//! <link> {"v":1,"seq":2,...}
//! {"record":"head",...}              and where it stands
//! {"record":"payload",...}           the payloads that are handed over, in order of commitment, and
//! {"record":"erased",...}            in version 2, between them in the same order, those that the store erased
//! {"record":"end",...}               what a complete file holds
//! ```
//!
//! Version 2 differs from version 1 in the record `erased` and its count alone. A run of which nothing was erased is
//! handed over as version 1, so that anyone who could read it before still can.
//!
//! A record has exactly one spelling: the reader writes it again and compares the bytes, so white space, key
//! order, duplicate keys, number formats and escapes leave no room in which a file could be changed unnoticed.

mod lines;

use std::borrow::Cow;
use std::io::{self, Write};

use serde::{Deserialize, Serialize};

use crate::chain::{Digest, Id, Parent, hex_bytes, hex_text};

pub use lines::{LineError, Lines};

/// The name and version of the format, for a run of which nothing was erased.
pub const EXPORT_FORMAT: &str = "portcullis-export/v1";

/// The version that says which payloads were erased.
pub const EXPORT_FORMAT_ERASED: &str = "portcullis-export/v2";

/// The longest event line in bytes, without link and newline.
pub const EVENT_BYTES_MAX: usize = 1 << 20;

/// The longest line of the part of a file that holds segments: a link, a space and an event.
pub const LINE_BYTES_MAX: usize = 65 + EVENT_BYTES_MAX;

/// The longest payload record in bytes, without newline.
pub const PAYLOAD_RECORD_BYTES_MAX: usize = 64 << 20;

/// The longest payload in bytes that a writer may commit to: one JSON escape takes at most six bytes a byte, so
/// its record stays within [`PAYLOAD_RECORD_BYTES_MAX`].
pub const PAYLOAD_BYTES_MAX: usize = 10 << 20;

/// How a segment stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SegmentState {
    /// Its writer may still add events.
    Open,
    /// Its writer ended it.
    Closed,
    /// Its writer died; a successor ended it.
    Abandoned,
}

impl SegmentState {
    /// The word used in files.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            SegmentState::Open => "open",
            SegmentState::Closed => "closed",
            SegmentState::Abandoned => "abandoned",
        }
    }
}

/// The first record: whose run the file holds.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "record", rename = "export")]
pub struct ExportRecord<'a> {
    /// [`EXPORT_FORMAT`] or [`EXPORT_FORMAT_ERASED`].
    #[serde(borrow)]
    pub format: Cow<'a, str>,
    /// The name of the store.
    #[serde(borrow)]
    pub origin: Cow<'a, str>,
    /// The run.
    pub run: Id,
}

/// The start of a segment.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "record", rename = "segment")]
pub struct SegmentRecord<'a> {
    /// The segment.
    pub segment: Id,
    /// Its writer.
    #[serde(borrow)]
    pub writer: Cow<'a, str>,
    /// The number of segments before it.
    pub ordinal: u64,
    /// The seq of the last event before it.
    pub after: u64,
    /// The segment before it and that segment's last link.
    pub parent: Option<Parent>,
    /// Its first link, `link_0`.
    pub link: Digest,
}

/// Where a segment stands after its last event in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "record", rename = "head")]
pub struct HeadRecord {
    /// The segment.
    pub segment: Id,
    /// Its state.
    pub state: SegmentState,
    /// The seq of its last event, or of the last event before the segment if it has none.
    pub count: u64,
    /// The link of that event, or the first link of the segment if it has none.
    pub link: Digest,
}

/// A payload with what opens its commitment.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "record", rename = "payload")]
pub struct PayloadRecord<'a> {
    /// The commitment that an event names.
    pub commitment: Digest,
    /// The salt.
    pub salt: Digest,
    /// The media type.
    #[serde(borrow)]
    pub media_type: Cow<'a, str>,
    /// The bytes, when they are UTF-8.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub text: Option<Cow<'a, str>>,
    /// The bytes in hexadecimal, when they are not.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub hex: Option<Cow<'a, str>>,
}

impl<'a> PayloadRecord<'a> {
    /// The record of a payload.
    #[must_use]
    pub fn new(commitment: Digest, salt: Digest, media_type: &'a str, bytes: &'a [u8]) -> PayloadRecord<'a> {
        let (text, hex) = match std::str::from_utf8(bytes) {
            Ok(text) => (Some(Cow::Borrowed(text)), None),
            Err(_) => (None, Some(Cow::Owned(hex_text(bytes)))),
        };
        PayloadRecord { commitment, salt, media_type: Cow::Borrowed(media_type), text, hex }
    }

    /// The bytes of the payload.
    ///
    /// # Errors
    /// When neither or both of `text` and `hex` are in the record, or `hex` where `text` would do.
    pub fn bytes(&self) -> Result<Cow<'_, [u8]>, String> {
        match (&self.text, &self.hex) {
            (Some(text), None) => Ok(Cow::Borrowed(text.as_bytes())),
            (None, Some(hex)) => match hex_bytes(hex) {
                None => Err("`hex` is not lower-case hexadecimal".to_owned()),
                Some(bytes) if std::str::from_utf8(&bytes).is_ok() => {
                    Err("`hex` holds UTF-8, which belongs in `text`".to_owned())
                }
                Some(bytes) => Ok(Cow::Owned(bytes)),
            },
            _ => Err("a payload has either `text` or `hex`".to_owned()),
        }
    }
}

/// A payload that is not there because the store erased it, as stated by the writer of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "record", rename = "erased")]
pub struct ErasedRecord {
    /// The commitment that an event names.
    pub commitment: Digest,
}

/// The last record: what a complete file holds.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "record", rename = "end")]
pub struct EndRecord {
    /// The number of segments.
    pub segments: u64,
    /// The number of event lines.
    pub events: u64,
    /// The number of payload records.
    pub payloads: u64,
    /// The number of records of erased payloads; none, and only then none, in version 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub erased: Option<u64>,
}

/// Writes a record and its newline.
///
/// # Errors
/// Those of the writer.
pub fn write_record<T: Serialize>(out: &mut impl Write, record: &T) -> io::Result<()> {
    serde_json::to_writer(&mut *out, record).map_err(io::Error::from)?;
    out.write_all(b"\n")
}

/// Writes an event line: link, space, the stored bytes, newline.
///
/// # Errors
/// Those of the writer.
pub fn write_event(out: &mut impl Write, link: Digest, line: &[u8]) -> io::Result<()> {
    out.write_all(hex_text(&link.0).as_bytes())?;
    out.write_all(b" ")?;
    out.write_all(line)?;
    out.write_all(b"\n")
}

/// Reads a record and refuses every spelling but its one.
///
/// # Errors
/// A text that says what is wrong.
pub fn read_record<'a, T: Serialize + Deserialize<'a>>(line: &'a [u8]) -> Result<T, String> {
    let record: T = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    let mut rest = Rest(line);
    match serde_json::to_writer(&mut rest, &record) {
        Ok(()) if rest.0.is_empty() => Ok(record),
        _ => Err("the record is not in its canonical spelling".to_owned()),
    }
}

/// Compares what is written with what was read, without a second copy of it.
struct Rest<'a>(&'a [u8]);

impl Write for Rest<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.0.strip_prefix(bytes) {
            Some(rest) => {
                self.0 = rest;
                Ok(bytes.len())
            }
            None => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The kind of a record line, or `None` if the line is not a record.
#[must_use]
pub fn record_kind(line: &[u8]) -> Option<&str> {
    let rest = line.strip_prefix(b"{\"record\":\"")?;
    let end = rest.iter().position(|byte| *byte == b'"')?;
    std::str::from_utf8(rest.get(..end)?).ok()
}

/// An event line taken apart: its link and its stored bytes, or `None` if the line is not one.
#[must_use]
pub fn event_parts(line: &[u8]) -> Option<(Digest, &[u8])> {
    let (link, rest) = line.split_at_checked(64)?;
    Some((Digest::from_digits(link).ok()?, rest.strip_prefix(b" ")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_has_one_spelling() {
        let good = br#"{"record":"end","segments":1,"events":2,"payloads":0}"#;
        let record: EndRecord = read_record(good).unwrap();
        let mut written = Vec::new();
        write_record(&mut written, &record).unwrap();
        assert_eq!(written.strip_suffix(b"\n").unwrap(), good);
        for wrong in [
            r#"{"record":"end","segments":1,"events":2,"payloads":0} "#,
            r#"{"record":"end", "segments":1,"events":2,"payloads":0}"#,
            r#"{"record":"end","events":2,"segments":1,"payloads":0}"#,
            r#"{"record":"end","segments":1,"segments":1,"events":2,"payloads":0}"#,
            r#"{"record":"end","segments":1,"events":2,"payloads":0,"more":0}"#,
            r#"{"record":"end","segments":1,"events":2,"payloads":-0}"#,
            r#"{"record":"head","segments":1,"events":2,"payloads":0}"#,
            r#"{"segments":1,"events":2,"payloads":0}"#,
        ] {
            assert!(read_record::<EndRecord>(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn payload_text_and_hex_do_not_overlap() {
        let zero: Digest = crate::chain::Hex([0; 32]);
        for bytes in [&b"plain \"\\\n\x01"[..], "é".as_bytes(), b"\xff\xfe", b""] {
            let record = PayloadRecord::new(zero, zero, "text/plain", bytes);
            let mut line = Vec::new();
            write_record(&mut line, &record).unwrap();
            let read: PayloadRecord<'_> = read_record(line.strip_suffix(b"\n").unwrap()).unwrap();
            assert_eq!(&*read.bytes().unwrap(), bytes);
        }
        let as_hex = PayloadRecord {
            text: None,
            hex: Some(Cow::Borrowed("61")),
            ..PayloadRecord::new(zero, zero, "text/plain", b"")
        };
        assert!(as_hex.bytes().unwrap_err().contains("belongs in `text`"));
    }
}
