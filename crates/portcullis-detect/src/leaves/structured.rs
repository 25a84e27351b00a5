//! JSON and the notation in which Python prints its values, read by one tolerant walker.
//!
//! The walker keeps a stack of open brackets and no more: it does not build values. A quote ends a string only before a
//! comma, colon, closing bracket or the end; in well-formed JSON it always does, and in a template into which somebody
//! pasted a text with quotes the text stays whole. Whatever does not fit stops the walker; the rest is read as lines.

use std::borrow::Cow;

use super::{Leaves, escapes};
use crate::limits;
use crate::places::Draft;

/// Whether a decoded text could be JSON or Python's notation itself.
pub(super) fn looks_structured(text: &str) -> bool {
    let text = text.trim();
    let inner = unquoted(text).unwrap_or(text);
    let pair = |open, close| inner.starts_with(open) && inner.ends_with(close);
    inner.len() > 2 && (pair('{', '}') || pair('[', ']'))
}

/// What stands between quotes around a whole document whose own quotes are not escaped.
fn unquoted(text: &str) -> Option<&str> {
    let inner = text.strip_prefix('"')?.strip_suffix('"')?;
    let open = inner.strip_prefix(['{', '['])?.trim_start();
    (!open.starts_with('\\') && inner.ends_with(['}', ']'])).then_some(inner)
}

/// Reads the documents that `text` begins with. Returns where it could not go on; the rest is not structured.
pub(super) fn read_document<'t>(text: &'t str, leaves: &mut Leaves<'t>) -> usize {
    let mut at = 0;
    let trimmed = text.trim();
    if let Some(inner) = unquoted(trimmed) {
        let start = text.len().saturating_sub(text.trim_start().len()).saturating_add(1);
        let mut walker = Walker::new(text, start, start.saturating_add(inner.len()), leaves);
        if walker.document() && walker.rest_is_blank() {
            leaves.record = super::WHOLE;
            return text.len();
        }
        leaves.leaves.clear();
        leaves.record = super::WHOLE;
    }
    loop {
        let start = skip_blank(text, at);
        let before = leaves.len();
        let mut walker = Walker::new(text, start, text.len(), leaves);
        if !matches!(text.as_bytes().get(start), Some(b'{' | b'[' | b'"' | b'\'')) {
            return at;
        }
        let whole = walker.document();
        let (reached, safe) = (walker.at, walker.safe);
        leaves.record = super::WHOLE;
        if !whole {
            // Without a single value nothing was understood, and it all is plain text.
            return if leaves.len() == before { at } else { safe };
        }
        at = reached;
        if at >= text.len() || leaves.is_full() {
            return text.len();
        }
    }
}

/// Reads one document at `start`, the beginning of a line of other text, if it is whole and the line ends with it.
/// Returns where it ends; if it is none, how many bytes were read in vain.
pub(super) fn read_embedded<'t>(
    text: &'t str,
    start: usize,
    leaves: &mut Leaves<'t>,
) -> Result<usize, usize> {
    let (before, record) = (leaves.len(), leaves.record);
    let mut walker = Walker::new(text, start, text.len(), leaves);
    let whole = walker.document();
    let end = walker.at;
    leaves.record = record;
    let rest = text.get(end..).unwrap_or_default().trim_start_matches([' ', '\t', '\r']);
    if whole && (rest.is_empty() || rest.starts_with('\n')) {
        return Ok(end);
    }
    leaves.leaves.truncate(before);
    Err(end.saturating_sub(start).saturating_add(1))
}

fn skip_blank(text: &str, at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    at.saturating_add(rest.len().saturating_sub(rest.trim_start().len()))
}

struct Open<'t> {
    close: u8,
    field: Option<Cow<'t, str>>,
    /// The record outside of it.
    record: u32,
}

struct Walker<'t, 'l> {
    text: &'t str,
    at: usize,
    end: usize,
    /// Up to here everything was understood.
    safe: usize,
    stack: Vec<Open<'t>>,
    field: Option<Cow<'t, str>>,
    leaves: &'l mut Leaves<'t>,
    /// A quote ends a string only before what can come there.
    strict: bool,
}

impl<'t, 'l> Walker<'t, 'l> {
    fn new(text: &'t str, at: usize, end: usize, leaves: &'l mut Leaves<'t>) -> Self {
        Self { text, at, end, safe: at, stack: Vec::new(), field: None, leaves, strict: true }
    }

    fn byte(&self, at: usize) -> Option<u8> {
        if at < self.end { self.text.as_bytes().get(at).copied() } else { None }
    }

    fn rest_is_blank(&self) -> bool {
        self.text.get(self.at..self.end).is_some_and(|rest| rest.trim().is_empty())
    }

    fn skip(&mut self) {
        while self.byte(self.at).is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.at = self.at.saturating_add(1);
        }
    }

    /// Reads one value. Whether it was whole.
    fn document(&mut self) -> bool {
        loop {
            if self.leaves.is_full() {
                return false;
            }
            self.skip();
            self.safe = self.at;
            let Some(byte) = self.byte(self.at) else { return false };
            let understood = match byte {
                b'{' => self.open(b'}'),
                b'[' => self.open(b']'),
                b'(' => self.open(b')'),
                b'}' | b']' | b')' => self.close(byte),
                b',' => {
                    self.at = self.at.saturating_add(1);
                    !self.stack.is_empty()
                }
                b'"' | b'\'' => self.string(byte),
                _ => self.bare(),
            };
            if !understood {
                return false;
            }
            if self.stack.is_empty() {
                self.safe = self.at;
                return true;
            }
        }
    }

    fn open(&mut self, close: u8) -> bool {
        if self.stack.len() >= limits::DEPTH {
            return false;
        }
        let record = self.leaves.record;
        // A map in a list is a record, and so is a map beside others at the top.
        if close == b'}' && self.stack.last().is_none_or(|open| open.close != b'}') {
            self.leaves.begin_record(record);
        }
        self.stack.push(Open { close, field: self.field.clone(), record });
        self.at = self.at.saturating_add(1);
        true
    }

    fn close(&mut self, byte: u8) -> bool {
        self.at = self.at.saturating_add(1);
        match self.stack.pop() {
            Some(open) if open.close == byte => {
                self.field = open.field;
                self.leaves.record = open.record;
                true
            }
            _ => false,
        }
    }

    /// Whether a quote before `at` ends a string.
    fn ends_value(&self, mut at: usize) -> bool {
        if self.stack.is_empty() {
            return loop {
                match self.byte(at) {
                    None | Some(b'\n') => break true,
                    Some(b' ' | b'\t' | b'\r') => at = at.saturating_add(1),
                    Some(_) => break false,
                }
            };
        }
        while self.byte(at).is_some_and(|byte| byte.is_ascii_whitespace()) {
            at = at.saturating_add(1);
        }
        let open = self.stack.last().map(|open| open.close);
        match self.byte(at) {
            None | Some(b':') => true,
            Some(b',') => !self.strict || open != Some(b'}') || self.begins_entry(at.saturating_add(1)),
            Some(byte @ (b']' | b'}' | b')')) => !self.strict || open == Some(byte),
            Some(_) => false,
        }
    }

    /// Whether behind a comma comes what can come there in a map: a key, or its end. A comma within a text whose quotes
    /// are not escaped, as in `pay 'Ann', then 'Bob'`, is told apart by that.
    fn begins_entry(&self, mut at: usize) -> bool {
        while self.byte(at).is_some_and(|byte| byte.is_ascii_whitespace()) {
            at = at.saturating_add(1);
        }
        let rest = self.text.as_bytes().get(at..self.end).unwrap_or_default();
        let Some((first, rest)) = rest.split_first() else { return true };
        let key = rest.get(..limits::FIELD_BYTES).unwrap_or(rest);
        match first {
            b'}' => true,
            // A key may be too long to be one, or hold escapes; then the quote is taken at its word.
            b'"' | b'\'' => match key.iter().position(|byte| byte == first || *byte == b'\\') {
                Some(end) if key.get(end) == Some(first) => {
                    let behind = rest.get(end.saturating_add(1)..).unwrap_or_default().trim_ascii_start();
                    behind.first().is_none_or(|byte| *byte == b':')
                }
                _ => true,
            },
            _ => key.iter().find(|byte| matches!(byte, b':' | b' ' | b'\'' | b'"')) == Some(&b':'),
        }
    }

    fn string(&mut self, quote: u8) -> bool {
        let start = self.at.saturating_add(1);
        let mut draft = Draft::new(self.text, start);
        let (mut from, mut at) = (start, start);
        let closed = loop {
            match self.byte(at) {
                None if self.strict && !self.stack.is_empty() => {
                    // No quote stands where one should: from here on any will do.
                    self.strict = false;
                    draft = Draft::new(self.text, start);
                    (from, at) = (start, start);
                }
                None => break false,
                Some(b'\\') => {
                    draft.literal(from..at);
                    at = escapes::string_escape(self.text, at, &mut draft).min(self.end);
                    from = at;
                }
                Some(byte) if byte == quote && self.ends_value(at.saturating_add(1)) => break true,
                Some(_) => at = at.saturating_add(1),
            }
        };
        if !closed && self.stack.is_empty() {
            return false;
        }
        draft.literal(from..at);
        let (text, places) = draft.finish();
        self.at = at.saturating_add(usize::from(closed));
        self.skip();
        if self.is_key() {
            self.field = (text.len() <= limits::FIELD_BYTES).then(|| text.clone());
            if is_wordy(&text) {
                self.leaves.push(text, places, None);
            }
            self.at = self.at.saturating_add(1);
        } else {
            self.leaves.push(text, places, self.field.clone());
        }
        self.safe = self.at;
        true
    }

    fn is_key(&self) -> bool {
        self.byte(self.at) == Some(b':') && self.stack.last().is_some_and(|open| open.close == b'}')
    }

    /// A number, a constant, a name before `(`, or a key without quotes.
    fn bare(&mut self) -> bool {
        let start = self.at;
        while self
            .byte(self.at)
            .is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'+' | b'-'))
        {
            self.at = self.at.saturating_add(1);
        }
        let word = self.text.get(start..self.at).unwrap_or_default();
        if word.is_empty() {
            return false;
        }
        self.skip();
        if self.is_key() {
            self.field = (word.len() <= limits::FIELD_BYTES).then_some(Cow::Borrowed(word));
            self.at = self.at.saturating_add(1);
            return true;
        }
        if word.starts_with(|first: char| first.is_ascii_digit() || matches!(first, '-' | '+' | '.')) {
            self.leaves.push_number(word, start, self.field.clone());
            return !self.stack.is_empty();
        }
        let constant = matches!(
            word,
            "true"
                | "false"
                | "null"
                | "None"
                | "True"
                | "False"
                | "NaN"
                | "Infinity"
                | "nan"
                | "inf"
                | "undefined"
        );
        let call = self.byte(self.at) == Some(b'(');
        (constant || call) && !self.stack.is_empty()
    }
}

/// Whether a name of a field is text or an address that somebody wrote to be read.
pub(super) fn is_wordy(name: &str) -> bool {
    let address = name.contains('@') || name.contains("://");
    address || name.len() > limits::FIELD_BYTES || name.split_whitespace().nth(3).is_some()
}
