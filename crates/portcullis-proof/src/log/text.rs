//! Reading the texts of the log: lines with their places, decimals and base64, each in exactly one spelling.
//!
//! A text that has two spellings for one meaning gives an attacker bytes that nothing checks. So a number has no sign
//! and no leading zero, base64 has its padding and no stray bits, and a line ends in one newline.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::chain::{Digest, Hex};

/// Why a text of the log could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, byte {byte}: {message}")]
pub struct TextError {
    /// The line, from 1.
    pub line: u64,
    /// The offset of the line's first byte.
    pub byte: u64,
    /// What is wrong with it.
    pub message: String,
}

impl TextError {
    /// The same error in a text that starts `lines` lines and `bytes` bytes into a larger one.
    pub(super) fn within(mut self, place: Place) -> TextError {
        self.line += place.line.saturating_sub(1);
        self.byte += place.byte;
        self
    }
}

/// Where a line starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) line: u64,
    pub(super) byte: u64,
}

impl Place {
    pub(super) const START: Place = Place { line: 1, byte: 0 };

    pub(super) fn error(self, message: impl Into<String>) -> TextError {
        TextError { line: self.line, byte: self.byte, message: message.into() }
    }
}

/// The lines of a text, without their newlines. Every line has to end in one.
#[derive(Debug, Clone)]
pub(super) struct TextLines<'a> {
    rest: &'a [u8],
    /// Where the next line starts.
    place: Place,
}

impl<'a> TextLines<'a> {
    /// Reads a text of at most `bytes_max` bytes.
    pub(super) fn new(bytes: &'a [u8], bytes_max: usize) -> Result<TextLines<'a>, TextError> {
        if bytes.len() > bytes_max {
            let message = format!("{} bytes; such a text has at most {bytes_max}", bytes.len());
            return Err(Place::START.error(message));
        }
        Ok(TextLines { rest: bytes, place: Place::START })
    }

    /// Where the next line starts.
    pub(super) fn place(&self) -> Place {
        self.place
    }

    /// What has not been read yet.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The next line as bytes, or `None` at the end.
    pub(super) fn next_bytes(&mut self) -> Result<Option<(Place, &'a [u8])>, TextError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let place = self.place;
        let end = self.rest.iter().position(|byte| *byte == b'\n');
        let Some((line, rest)) = end.and_then(|end| self.rest.split_at_checked(end)) else {
            return Err(place.error("the text ends without a newline"));
        };
        self.rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        self.place = Place { line: place.line + 1, byte: place.byte + line.len() as u64 + 1 };
        Ok(Some((place, line)))
    }

    /// The next line as text without control characters, or `None` at the end.
    pub(super) fn next_text(&mut self) -> Result<Option<(Place, &'a str)>, TextError> {
        let Some((place, line)) = self.next_bytes()? else { return Ok(None) };
        let line = std::str::from_utf8(line).map_err(|_| place.error("the line is not UTF-8"))?;
        if line.bytes().any(|byte| byte < 0x20) {
            return Err(place.error("the line has a control character"));
        }
        Ok(Some((place, line)))
    }

    /// The next line, which has to be there.
    pub(super) fn expect(&mut self, what: &str) -> Result<(Place, &'a str), TextError> {
        match self.next_text()? {
            Some(line) => Ok(line),
            None => Err(self.place.error(format!("the text ends where {what} belongs"))),
        }
    }

    /// Hashes, one a line, up to an empty line, which is read too.
    pub(super) fn hashes(&mut self, max: usize) -> Result<Vec<Digest>, TextError> {
        let mut hashes = Vec::new();
        loop {
            let (place, line) = self.expect("a hash or an empty line")?;
            if line.is_empty() {
                return Ok(hashes);
            }
            if hashes.len() == max {
                return Err(place.error(format!("more than {max} hashes; no proof in any tree is longer")));
            }
            hashes.push(hash(line).map_err(|message| place.error(message))?);
        }
    }
}

/// A number without sign or leading zero.
pub(super) fn decimal(text: &str) -> Result<u64, String> {
    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let padded = text.len() > 1 && text.starts_with('0');
    match text.parse() {
        Ok(number) if plain && !padded => Ok(number),
        _ => Err(format!("`{}` is not a number without sign or leading zeros", text.escape_debug())),
    }
}

/// The number after `word` and one space.
pub(super) fn labelled(line: &str, word: &str) -> Result<u64, String> {
    let number = line.strip_prefix(word).and_then(|rest| rest.strip_prefix(' '));
    decimal(number.ok_or_else(|| format!("expected `{word} NUMBER`"))?)
}

/// Standard base64 with padding.
pub(super) fn base64_bytes(text: &str) -> Result<Vec<u8>, String> {
    STANDARD.decode(text).map_err(|error| format!("`{}` is not base64: {error}", text.escape_debug()))
}

/// The base64 form of bytes.
pub(super) fn base64_text(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// A SHA-256 value in base64.
pub(super) fn hash(text: &str) -> Result<Digest, String> {
    let bytes = base64_bytes(text)?;
    <[u8; 32]>::try_from(bytes.as_slice())
        .map(Hex)
        .map_err(|_| format!("`{text}` has {} bytes, a hash has 32", bytes.len()))
}

/// Hashes, one a line.
pub(super) fn hash_lines(hashes: &[Digest]) -> String {
    hashes.iter().map(|hash| format!("{}\n", base64_text(&hash.0))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_base64_have_one_spelling() {
        assert_eq!(decimal("0"), Ok(0));
        assert_eq!(decimal("18446744073709551615"), Ok(u64::MAX));
        for wrong in ["", "00", "01", "+1", "-1", " 1", "1 ", "1_0", "18446744073709551616", "٣"] {
            assert!(decimal(wrong).is_err(), "{wrong}");
        }
        assert_eq!(base64_bytes("YQ=="), Ok(b"a".to_vec()));
        for wrong in ["YQ", "YQ=", "YR==", "YQ==\n", "Y Q==", "YQ==YQ=="] {
            assert!(base64_bytes(wrong).is_err(), "{wrong}");
        }
        assert_eq!(hash("YQ==").unwrap_err(), "`YQ==` has 1 bytes, a hash has 32");
    }

    #[test]
    fn lines_know_their_place() {
        let mut lines = TextLines::new(b"ab\n\nc\x01\nd", 100).unwrap();
        assert_eq!(lines.next_text(), Ok(Some((Place::START, "ab"))));
        assert_eq!(lines.next_text(), Ok(Some((Place { line: 2, byte: 3 }, ""))));
        assert_eq!(
            lines.next_text().unwrap_err().to_string(),
            "line 3, byte 4: the line has a control character"
        );
        assert_eq!(
            lines.next_text().unwrap_err().to_string(),
            "line 4, byte 7: the text ends without a newline"
        );
        assert!(TextLines::new(b"abc", 2).unwrap_err().message.contains("at most 2"));
    }
}
