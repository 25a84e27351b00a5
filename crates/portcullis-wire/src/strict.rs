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
    /// An object has the same key twice (compared after decoding escapes).
    DuplicateKey(String),
    /// Something other than white space follows the value.
    TrailingData,
    /// The text ends inside a value.
    UnexpectedEnd,
    /// The text is not JSON; names what was expected.
    Expected(&'static str),
    /// A control character stands unescaped in a string.
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
                "number `{literal}` has more digits than a 64-bit float holds, so that readers take it for different \
                 numbers; pass it as a text"
            ),
        }
    }
}

/// Reads one JSON value of at most `limit` bytes.
///
/// # Errors
/// [`StrictError`] where the bytes are not UTF-8, not one JSON value, or a value that readers understand
/// differently: duplicate keys, numbers out of range or with too many digits, nesting beyond [`DEPTH_MAX`].
pub fn parse(bytes: &[u8], limit: usize) -> Result<Value, StrictError> {
    check_size(bytes, limit)?;
    parse_checked(utf8(bytes)?, Numbers::Exact)
}

/// [`parse`] for what was recorded: integers may have all digits of 64 bits, as earlier releases accepted them.
///
/// # Errors
/// As [`parse`], [`StrictErrorKind::InexactNumber`] aside.
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
    let mut reader = Reader { text, bytes: text.as_bytes(), at: 0, numbers };
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

/// How many bytes stand before the next quote, backslash or control character; `None` where there is none.
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
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    const LIMIT: usize = 1 << 20;

    fn refused(text: &str) -> StrictError {
        parse(text.as_bytes(), LIMIT).unwrap_err()
    }

    #[test]
    fn reads_every_kind_of_value() {
        let text = r#" {"a":[1,-2,3.5,1e2,true,false,null],"b\u0041\n":"\ud83d\ude00é/\/","c":{}} "#;
        let value = parse(text.as_bytes(), LIMIT).unwrap();
        assert_eq!(value, json!({"a":[1,-2,3.5,100.0,true,false,null],"bA\n":"😀é//","c":{}}));
    }

    #[test]
    fn duplicate_keys_are_refused_at_any_depth_and_after_decoding() {
        let error = refused("{\"a\": 1,\n \"é\": {\"x\": 1, \"\\u0078\": 2}}");
        assert_eq!(error.kind, StrictErrorKind::DuplicateKey("x".to_owned()));
        assert_eq!((error.line, error.column, error.offset), (2, 16, 25));
        assert_eq!(error.to_string(), "duplicate key `x` at line 2, column 16 (byte 25)");
    }

    #[test]
    fn nesting_is_bounded_exactly() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(parse(nested(DEPTH_MAX).as_bytes(), LIMIT).is_ok());
        let error = refused(&nested(DEPTH_MAX + 1));
        assert_eq!((error.kind, error.offset), (StrictErrorKind::TooDeep, DEPTH_MAX));
        assert_eq!(refused(&"[".repeat(100_000)).kind, StrictErrorKind::TooDeep);
    }

    #[test]
    fn numbers_keep_their_value_or_are_refused() {
        for (text, value) in [
            ("9007199254740992", json!(9_007_199_254_740_992_u64)),
            ("9007199254740994", json!(9_007_199_254_740_994_u64)),
            ("1700000000123456800", json!(1_700_000_000_123_456_800_u64)),
            ("-9223372036854775808", json!(i64::MIN)),
            ("1e308", json!(1e308)),
            ("6.02214076e23", json!(6.022_140_76e23)),
            ("0.1000000000000000055511151231257827", json!(0.1)),
            ("0.0e-999", json!(0.0)),
            ("0", json!(0)),
        ] {
            assert_eq!(parse(text.as_bytes(), LIMIT).unwrap(), value, "{text}");
        }
        for text in ["18446744073709551616", "-9223372036854775809", "1e309", "-1e400", "1e-400"] {
            assert_eq!(refused(text).kind, StrictErrorKind::NumberOutOfRange(text.to_owned()), "{text}");
        }
        // Readers that keep numbers as floats see another one.
        for text in [
            "9007199254740993",
            "-9007199254740993",
            "9007199254740993.0",
            "9.007199254740993e15",
            "90071992547409930e-1",
            "18446744073709551615",
            "[1, {\"id\": 1234567890123456789}]",
        ] {
            assert!(matches!(refused(text).kind, StrictErrorKind::InexactNumber(_)), "{text}");
            assert!(parse_recorded(text.as_bytes(), LIMIT).is_ok(), "{text}");
        }
        assert_eq!(parse_recorded(b"18446744073709551615", LIMIT).unwrap(), json!(u64::MAX));
        let negative_zero = parse(b"-0", LIMIT).unwrap();
        assert!(negative_zero.as_f64().unwrap().is_sign_negative());
    }

    #[test]
    fn broken_text_names_the_place() {
        for (text, kind, offset) in [
            ("", StrictErrorKind::UnexpectedEnd, 0),
            ("{\"a\":1} x", StrictErrorKind::TrailingData, 8),
            ("[1,]", StrictErrorKind::Expected("a value"), 3),
            ("{\"a\":1,}", StrictErrorKind::Expected("a key in quotes"), 7),
            ("{\"a\" 1}", StrictErrorKind::Expected("`:` after a key"), 5),
            ("[1 2]", StrictErrorKind::Expected("`,` or `]`"), 3),
            ("\"abc", StrictErrorKind::UnexpectedEnd, 4),
            ("\"a\\", StrictErrorKind::UnexpectedEnd, 3),
            ("\"a\nb\"", StrictErrorKind::ControlCharacter, 2),
            ("\"\\x\"", StrictErrorKind::InvalidEscape, 1),
            ("\"\\ud800\"", StrictErrorKind::InvalidEscape, 1),
            ("\"\\ud800\\u0041\"", StrictErrorKind::InvalidEscape, 1),
            ("01", StrictErrorKind::Expected("a number without leading zeros"), 0),
            ("1.", StrictErrorKind::UnexpectedEnd, 2),
            ("tru", StrictErrorKind::Expected("a value"), 0),
            ("NaN", StrictErrorKind::Expected("a value"), 0),
        ] {
            let error = refused(text);
            assert_eq!((error.kind, error.offset), (kind, offset), "{text}");
        }
    }

    #[test]
    fn special_bytes_are_found_at_every_offset() {
        for byte in 0..=u8::MAX {
            for at in 0..20 {
                let mut text = [0xe9; 20];
                text[at] = byte;
                let special = matches!(byte, b'"' | b'\\' | 0..=0x1f);
                assert_eq!(plain_prefix(&text), special.then_some(at), "{byte} at {at}");
            }
        }
    }

    #[test]
    fn size_and_encoding_are_checked_first() {
        let error = parse(b"[1,2,3]", 6).unwrap_err();
        assert_eq!(error.kind, StrictErrorKind::TooLarge { bytes: 7, limit: 6 });
        let error = parse(b"\"a\xff\"", LIMIT).unwrap_err();
        assert_eq!((error.kind, error.offset), (StrictErrorKind::InvalidUtf8, 2));
    }

    /// Equal, where floats may differ in the last place: the other reader rounds less exactly.
    fn alike(ours: &Value, theirs: &Value) -> bool {
        match (ours, theirs) {
            (Value::Array(a), Value::Array(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| alike(a, b))
            }
            (Value::Object(a), Value::Object(b)) => {
                a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| alike(a, b)))
            }
            (Value::Number(a), Value::Number(b)) if a.is_f64() && b.is_f64() => {
                let (a, b) = (a.as_f64().unwrap(), b.as_f64().unwrap());
                a == b || ((a - b) / b).abs() <= f64::EPSILON
            }
            _ => ours == theirs,
        }
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::Bool),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(5, 64, 8, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
                prop::collection::hash_map(any::<String>(), inner, 0..8)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn reads_what_was_written(value in any_value(), pretty: bool) {
            let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) };
            let text = text.unwrap();
            let read = parse_recorded(text.as_bytes(), LIMIT).unwrap();
            prop_assert_eq!(&read, &value);
            if let Ok(read) = parse(text.as_bytes(), LIMIT) {
                prop_assert_eq!(read, value);
            }
        }

        #[test]
        fn what_a_float_is_written_as_is_read(float in any::<f64>().prop_filter("finite", |float| float.is_finite())) {
            let text = Value::from(float).to_string();
            prop_assert_eq!(parse(text.as_bytes(), LIMIT).unwrap(), Value::from(float));
        }

        #[test]
        fn what_is_accepted_means_the_same_elsewhere(
            text in r#"[ \n]{0,2}(\{("[a-c]{0,2}":(-?[0-9]{1,22}|-?[0-9]\.[0-9]{1,3}(e-?[0-9]{1,3})?|"[a\\u0-9d]{0,8}"|\[\]|null),?){0,4}\}?|.{0,12})"#
        ) {
            if let Ok(ours) = parse(text.as_bytes(), LIMIT) {
                let theirs: Value = serde_json::from_str(&text).unwrap();
                prop_assert!(alike(&ours, &theirs), "{:?} and {:?}", ours, theirs);
            }
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&bytes, LIMIT);
        }

        #[test]
        fn json_like_bytes_never_panic(text in r#"[\[\]{}",:\\u0-9ae.tn -]{0,80}"#) {
            let ours = parse(text.as_bytes(), LIMIT);
            if ours.is_ok() {
                prop_assert!(serde_json::from_str::<Value>(&text).is_ok());
            }
        }
    }
}
