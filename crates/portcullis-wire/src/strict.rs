//! A JSON reader for values that are about to be judged.
//!
//! A guard must see what the tool will see. Ordinary JSON readers disagree about the odd corners: which of
//! two equal keys wins, what becomes of a number that does not fit, how deep a value may nest. Each
//! disagreement is a place to hide an argument from the guard. This reader therefore accepts only values
//! that every conforming reader understands alike, and refuses the rest with the place where it stopped.
//!
//! It is one pass over the bytes (after one pass that checks UTF-8) and recurses at most [`DEPTH_MAX`] deep.

use serde_json::map::Entry;
use serde_json::{Map, Number, Value};
use std::fmt;

/// Deepest nesting of arrays and objects that is read; a scalar has depth 0, `[[]]` has depth 2.
pub const DEPTH_MAX: usize = 64;

/// Most values in one text, each array, object, member and element: what each takes in memory is many times what it
/// takes in the text.
pub const VALUES_MAX: usize = 250_000;

/// Longest part of an offending key or number that an error message repeats, in bytes.
pub const ERROR_EXCERPT_BYTES_MAX: usize = 80;

/// Why a text was refused, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind} at line {line}, column {column} (byte {offset})")]
pub struct StrictError {
    /// What is wrong.
    pub kind: StrictErrorKind,
    /// Offset from the start of the text, in bytes, from 0.
    pub offset: usize,
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1: characters since the start of the line (bytes, where the text is not UTF-8).
    pub column: usize,
}

/// What is wrong with a refused text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StrictErrorKind {
    /// The text is longer than the caller's limit; both in bytes.
    TooLarge {
        /// Length of the text.
        bytes: usize,
        /// The caller's limit.
        limit: usize,
    },
    /// The text is not UTF-8.
    InvalidUtf8,
    /// Arrays and objects nest deeper than [`DEPTH_MAX`].
    TooDeep,
    /// There are more values than [`VALUES_MAX`].
    TooManyValues,
    /// An object has the same key twice (compared after decoding escapes).
    DuplicateKey(String),
    /// Something other than white space follows the value.
    TrailingData,
    /// The text ends inside a value.
    UnexpectedEnd,
    /// The text is not JSON; names what was expected.
    Expected(&'static str),
    /// An unescaped control character in a string.
    ControlCharacter,
    /// An escape that JSON does not have, or half of a surrogate pair.
    InvalidEscape,
    /// An integer outside `i64` and `u64`, or a real number that becomes infinite or vanishes as `f64`.
    NumberOutOfRange(String),
    /// A number from 2^53 up that becomes another one in readers that keep numbers as `f64`.
    InexactNumber(String),
}

impl fmt::Display for StrictErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge { bytes, limit } => {
                write!(f, "the text has {bytes} bytes, more than the limit of {limit}")
            }
            Self::InvalidUtf8 => f.write_str("invalid UTF-8"),
            Self::TooDeep => write!(f, "arrays and objects nest deeper than {DEPTH_MAX}"),
            Self::TooManyValues => write!(f, "there are more than {VALUES_MAX} values"),
            Self::DuplicateKey(key) => write!(f, "duplicate key `{key}`"),
            Self::TrailingData => f.write_str("more data after the value"),
            Self::UnexpectedEnd => f.write_str("the text ends inside a value"),
            Self::Expected(what) => write!(f, "expected {what}"),
            Self::ControlCharacter => f.write_str("unescaped control character in a string"),
            Self::InvalidEscape => f.write_str("invalid escape in a string"),
            Self::NumberOutOfRange(literal) => {
                write!(f, "number `{literal}` fits neither a 64-bit integer nor a 64-bit float")
            }
            Self::InexactNumber(literal) => write!(
                f,
                "number `{literal}` has more digits than a 64-bit float holds, so that readers disagree on its value; pass it as a string"
            ),
        }
    }
}

/// Reads one JSON value of at most `limit` bytes.
///
/// # Errors
/// [`StrictError`] if the bytes are not UTF-8, not one JSON value, or a value that readers understand
/// differently: duplicate keys, numbers out of range or with too many digits, nesting beyond [`DEPTH_MAX`], more values than [`VALUES_MAX`].
pub fn parse(bytes: &[u8], limit: usize) -> Result<Value, StrictError> {
    check_size(bytes, limit)?;
    parse_checked(utf8(bytes)?, Numbers::Exact)
}

/// [`parse`] for what was recorded: integers may have all digits of 64 bits, and there may be any number of values, as
/// earlier releases accepted them.
///
/// # Errors
/// As [`parse`], [`StrictErrorKind::InexactNumber`] and [`StrictErrorKind::TooManyValues`] aside.
pub fn parse_recorded(bytes: &[u8], limit: usize) -> Result<Value, StrictError> {
    check_size(bytes, limit)?;
    parse_checked(utf8(bytes)?, Numbers::Recorded)
}

/// [`parse`] for text that is known to be UTF-8.
///
/// # Errors
/// As [`parse`].
pub fn parse_str(text: &str, limit: usize) -> Result<Value, StrictError> {
    check_size(text.as_bytes(), limit)?;
    parse_checked(text, Numbers::Exact)
}

fn utf8(bytes: &[u8]) -> Result<&str, StrictError> {
    std::str::from_utf8(bytes)
        .map_err(|error| locate(bytes, error.valid_up_to(), StrictErrorKind::InvalidUtf8))
}

/// Which numbers are accepted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Numbers {
    /// Those that all readers take for the same.
    Exact,
    /// Those that a 64-bit type holds.
    Recorded,
}

fn check_size(bytes: &[u8], limit: usize) -> Result<(), StrictError> {
    if bytes.len() > limit {
        let kind = StrictErrorKind::TooLarge { bytes: bytes.len(), limit };
        return Err(StrictError { kind, offset: limit, line: 1, column: 1 });
    }
    Ok(())
}

fn parse_checked(text: &str, numbers: Numbers) -> Result<Value, StrictError> {
    let mut reader = Reader { text, bytes: text.as_bytes(), at: 0, numbers, values: 0 };
    reader.document().map_err(|Stop { kind, at }| locate(text.as_bytes(), at, kind))
}

fn locate(bytes: &[u8], offset: usize, kind: StrictErrorKind) -> StrictError {
    let before = bytes.get(..offset).unwrap_or(bytes);
    let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
    let line_start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let on_line = before.get(line_start..).unwrap_or_default();
    let column = 1 + std::str::from_utf8(on_line).map_or(on_line.len(), |text| text.chars().count());
    StrictError { kind, offset, line, column }
}

/// At most [`ERROR_EXCERPT_BYTES_MAX`] bytes of `text`, cut at a character.
pub(crate) fn excerpt(text: &str) -> String {
    if text.len() <= ERROR_EXCERPT_BYTES_MAX {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(ERROR_EXCERPT_BYTES_MAX);
    format!("{}…", text.get(..end).unwrap_or_default())
}

/// A refusal before its line and column are counted.
struct Stop {
    kind: StrictErrorKind,
    at: usize,
}

struct Reader<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    numbers: Numbers,
    values: usize,
}

impl Reader<'_> {
    fn document(&mut self) -> Result<Value, Stop> {
        let value = self.value(0)?;
        match self.peek() {
            None => Ok(value),
            Some(_) => Err(self.stop(StrictErrorKind::TrailingData)),
        }
    }

    fn stop(&self, kind: StrictErrorKind) -> Stop {
        Stop { kind, at: self.at }
    }

    fn expected(&self, what: &'static str) -> Stop {
        if self.at >= self.bytes.len() {
            return self.stop(StrictErrorKind::UnexpectedEnd);
        }
        self.stop(StrictErrorKind::Expected(what))
    }

    /// The next byte that is not white space, not consumed.
    fn peek(&mut self) -> Option<u8> {
        loop {
            match self.bytes.get(self.at) {
                Some(b' ' | b'\n' | b'\r' | b'\t') => self.at += 1,
                other => return other.copied(),
            }
        }
    }

    fn value(&mut self, depth: usize) -> Result<Value, Stop> {
        self.values += 1;
        if self.values > VALUES_MAX && self.numbers == Numbers::Exact {
            return Err(self.stop(StrictErrorKind::TooManyValues));
        }
        match self.peek() {
            Some(b'"') => self.string().map(Value::String),
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'-' | b'0'..=b'9') => self.number().map(Value::Number),
            Some(b't') => self.word("true", Value::Bool(true)),
            Some(b'f') => self.word("false", Value::Bool(false)),
            Some(b'n') => self.word("null", Value::Null),
            _ => Err(self.expected("a value")),
        }
    }

    fn word(&mut self, word: &'static str, value: Value) -> Result<Value, Stop> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        if rest.starts_with(word.as_bytes()) {
            self.at += word.len();
            return Ok(value);
        }
        Err(self.stop(StrictErrorKind::Expected("a value")))
    }

    fn enter(&mut self, depth: usize) -> Result<usize, Stop> {
        if depth >= DEPTH_MAX {
            return Err(self.stop(StrictErrorKind::TooDeep));
        }
        self.at += 1;
        Ok(depth + 1)
    }

    fn object(&mut self, depth: usize) -> Result<Value, Stop> {
        let depth = self.enter(depth)?;
        let mut map = Map::new();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(Value::Object(map));
        }
        loop {
            if self.peek() != Some(b'"') {
                return Err(self.expected("a key in quotes"));
            }
            let key_at = self.at;
            let key = self.string()?;
            let slot = match map.entry(key) {
                Entry::Vacant(slot) => slot,
                Entry::Occupied(slot) => {
                    return Err(Stop {
                        kind: StrictErrorKind::DuplicateKey(excerpt(slot.key())),
                        at: key_at,
                    });
                }
            };
            if self.peek() != Some(b':') {
                return Err(self.expected("`:` after a key"));
            }
            self.at += 1;
            slot.insert(self.value(depth)?);
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    return Ok(Value::Object(map));
                }
                _ => return Err(self.expected("`,` or `}`")),
            }
        }
    }

    fn array(&mut self, depth: usize) -> Result<Value, Stop> {
        let depth = self.enter(depth)?;
        let mut items = Vec::new();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(Value::Array(items));
        }
        loop {
            items.push(self.value(depth)?);
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => {
                    self.at += 1;
                    return Ok(Value::Array(items));
                }
                _ => return Err(self.expected("`,` or `]`")),
            }
        }
    }

    /// Reads a string whose opening quote is the next byte. The common case, no escapes, is one copy.
    fn string(&mut self) -> Result<String, Stop> {
        self.at += 1;
        let mut decoded = String::new();
        loop {
            let start = self.at;
            let rest = self.bytes.get(start..).unwrap_or_default();
            let plain = plain_prefix(rest)
                .ok_or(Stop { kind: StrictErrorKind::UnexpectedEnd, at: self.bytes.len() })?;
            self.at = start + plain;
            decoded.push_str(self.text.get(start..self.at).unwrap_or_default());
            match self.bytes.get(self.at) {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(decoded);
                }
                Some(b'\\') => decoded.push(self.escape()?),
                _ => return Err(self.stop(StrictErrorKind::ControlCharacter)),
            }
        }
    }

    /// Reads one escape whose backslash is the next byte.
    fn escape(&mut self) -> Result<char, Stop> {
        let start = self.at;
        let letter = self.bytes.get(start + 1).copied();
        self.at += 2;
        let invalid = Stop { kind: StrictErrorKind::InvalidEscape, at: start };
        let simple = match letter {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                let first = self.hex4().ok_or(invalid)?;
                return self.code_point(first, start);
            }
            None => return Err(Stop { kind: StrictErrorKind::UnexpectedEnd, at: self.bytes.len() }),
            Some(_) => return Err(invalid),
        };
        Ok(simple)
    }

    /// Joins a surrogate pair where `first` opens one; `start` is where the escape began.
    fn code_point(&mut self, first: u32, start: usize) -> Result<char, Stop> {
        let lone = || Stop { kind: StrictErrorKind::InvalidEscape, at: start };
        if !(0xd800..0xdc00).contains(&first) {
            return char::from_u32(first).ok_or_else(lone);
        }
        if self.bytes.get(self.at..self.at + 2) != Some(b"\\u") {
            return Err(lone());
        }
        self.at += 2;
        let second = self.hex4().filter(|second| (0xdc00..0xe000).contains(second)).ok_or_else(lone)?;
        char::from_u32(0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00)).ok_or_else(lone)
    }

    fn hex4(&mut self) -> Option<u32> {
        let digits = self.bytes.get(self.at..self.at + 4)?;
        let mut number = 0;
        for digit in digits {
            number = number * 16 + char::from(*digit).to_digit(16)?;
        }
        self.at += 4;
        Some(number)
    }

    fn digits(&mut self) -> usize {
        let start = self.at;
        while matches!(self.bytes.get(self.at), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        self.at - start
    }

    fn number(&mut self) -> Result<Number, Stop> {
        let start = self.at;
        let negative = self.bytes.get(self.at) == Some(&b'-');
        if negative {
            self.at += 1;
        }
        let leading_zero = self.bytes.get(self.at) == Some(&b'0');
        let whole = self.digits();
        if whole == 0 || (leading_zero && whole > 1) {
            return Err(Stop {
                kind: StrictErrorKind::Expected("a number without leading zeros"),
                at: start,
            });
        }
        let mut integer = true;
        if self.bytes.get(self.at) == Some(&b'.') {
            self.at += 1;
            integer = false;
            if self.digits() == 0 {
                return Err(self.expected("a digit after the decimal point"));
            }
        }
        let mantissa = self.text.get(start..self.at).unwrap_or_default();
        if matches!(self.bytes.get(self.at), Some(b'e' | b'E')) {
            self.at += 1;
            integer = false;
            if matches!(self.bytes.get(self.at), Some(b'+' | b'-')) {
                self.at += 1;
            }
            if self.digits() == 0 {
                return Err(self.expected("a digit in the exponent"));
            }
        }
        let literal = self.text.get(start..self.at).unwrap_or_default();
        let number = represent(literal, mantissa, integer, negative)
            .ok_or_else(|| Stop { kind: StrictErrorKind::NumberOutOfRange(excerpt(literal)), at: start })?;
        if self.numbers == Numbers::Exact && !survives_float(mantissa, &number) {
            return Err(Stop { kind: StrictErrorKind::InexactNumber(excerpt(literal)), at: start });
        }
        Ok(number)
    }
}

/// How many bytes stand before the next quote, backslash or control character; `None` if there is none.
/// Eight bytes at a time: strings are most of what agents send.
fn plain_prefix(bytes: &[u8]) -> Option<usize> {
    let (words, _) = bytes.as_chunks::<8>();
    let plain_words = words.iter().take_while(|word| !has_special(u64::from_le_bytes(**word))).count();
    let start = plain_words * 8;
    let rest = bytes.get(start..)?;
    rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..=0x1f)).map(|at| start + at)
}

/// Whether any of eight bytes is a quote, a backslash or below 0x20, by the usual borrow trick: subtracting
/// from a byte that is too small borrows into its top bit. A false alarm only costs the slow look that follows.
fn has_special(word: u64) -> bool {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const TOPS: u64 = 0x8080_8080_8080_8080;
    let quote = word ^ (ONES * 0x22);
    let backslash = word ^ (ONES * 0x5c);
    let small = |word: u64, bound: u64| word.wrapping_sub(ONES * bound) & !word;
    (small(quote, 1) | small(backslash, 1) | small(word, 0x20)) & TOPS != 0
}

/// The number a literal stands for, where a 64-bit type holds it. `-0` is the float, as elsewhere.
fn represent(literal: &str, mantissa: &str, integer: bool, negative: bool) -> Option<Number> {
    if integer && !negative {
        return literal.parse::<u64>().ok().map(Number::from);
    }
    if integer && literal != "-0" {
        return literal.parse::<i64>().ok().map(Number::from);
    }
    let float = literal.parse::<f64>().ok()?;
    let vanished = float == 0.0 && mantissa.bytes().any(|byte| matches!(byte, b'1'..=b'9'));
    if vanished { None } else { Number::from_f64(float) }
}

/// From here on a 64-bit float does not hold every integer.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// Whether a reader that keeps numbers as 64-bit floats has the number that was written: it holds it exactly, or writes
/// the same digits again. Below 2^53 whatever is lost is a far decimal place.
fn survives_float(mantissa: &str, number: &Number) -> bool {
    let Some(float) = number.as_f64().map(f64::abs).filter(|float| *float >= EXACT_MAX) else { return true };
    let written = significant(mantissa);
    // Display writes the shortest digits that mean this float, with `.0` its exact value.
    written == significant(&format!("{float}")) || written == significant(&format!("{float:.0}"))
}

/// The digits of a number without sign and point, and without zeros at either end.
fn significant(digits: &str) -> String {
    let digits: String = digits.chars().filter(char::is_ascii_digit).collect();
    digits.trim_matches('0').to_owned()
}

#[cfg(test)]
mod tests;
