//! JSON that shows what it says: the same values, with escapes for what cannot be seen in their texts.

use std::io;

use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::{CompactFormatter, Formatter};

use super::{is_unseen, walk};

/// Writes a value as JSON on one line. Any reader of JSON gets the same value as without the escapes; whoever looks at the
/// text sees what is in it, as with [`visible`](super::visible).
///
/// # Errors
/// As [`serde_json::to_writer`].
pub fn write_json(to: impl io::Write, value: &(impl Serialize + ?Sized)) -> serde_json::Result<()> {
    value.serialize(&mut Serializer::with_formatter(to, Seen))
}

/// Escapes what cannot be seen.
#[derive(Debug)]
struct Seen;

impl Formatter for Seen {
    fn write_string_fragment<W: ?Sized + io::Write>(&mut self, to: &mut W, text: &str) -> io::Result<()> {
        if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
            return CompactFormatter.write_string_fragment(to, text);
        }
        let mut written = Ok(());
        walk(text, is_unseen, |c, escaped| {
            if written.is_ok() {
                written = if escaped { write_escaped(to, c) } else { write!(to, "{c}") };
            }
        });
        written
    }
}

/// `\uXXXX`, twice for a character beyond the basic plane: RFC 8259 §7.
fn write_escaped<W: ?Sized + io::Write>(to: &mut W, c: char) -> io::Result<()> {
    c.encode_utf16(&mut [0; 2]).iter().try_for_each(|unit| write!(to, "\\u{unit:04x}"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn the_value_is_the_same_and_everything_in_it_is_seen() {
        let value = json!({
            "pay\u{200b}ee": "a\u{202e}b\u{7f}\u{9b}2J", "tag\u{e0041}": "\u{1b}]0;x\u{7}", "path": "/srv/\u{430}pp",
            "plain": "größe 価格 \"x\" \\ 😀", "n": [1, 2.5, null, true],
        });
        let mut written = Vec::new();
        write_json(&mut written, &value).unwrap();
        let text = String::from_utf8(written).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
        assert!(!text.contains(is_unseen), "{text:?}");
        for shown in [
            "pay\\u200bee",
            "\\u202e",
            "\\u007f\\u009b2J",
            "tag\\udb40\\udc41",
            "/srv/\\u0430pp",
            "größe 価格",
            "😀",
        ] {
            assert!(text.contains(shown), "{shown} in {text}");
        }
    }
}
