//! Lines: YAML as tools print it, `key: value` headers, list items, and plain paragraphs.
//!
//! This is no YAML reader. It knows what matters for where a sentence begins and ends: a name before a colon is no
//! text, a scalar goes on over deeper lines (folded with a blank), quotes around a scalar are none of it. A name of
//! several words is a name only before a quoted scalar, since prose has colons too.

use std::borrow::Cow;
use std::ops::Range;

use super::structured::{is_wordy, read_embedded};
use super::{Leaves, WHOLE, escapes};
use crate::limits;
use crate::places::Draft;

/// Reads `text` from `start` to its end.
pub(super) fn read<'t>(text: &'t str, start: usize, leaves: &mut Leaves<'t>) {
    let budget = text.len().saturating_mul(limits::FAILED_READS);
    let mut reader =
        Reader { text, at: start, keys: Vec::new(), items: Vec::new(), paragraph: None, budget, leaves };
    while reader.at < text.len() && !reader.leaves.is_full() {
        reader.line();
    }
    reader.flush();
}

/// One line: where its content begins after indentation and item signs, and its name if it has one.
struct Line<'t> {
    /// Columns before the first sign that is not blank.
    indent: usize,
    /// Columns before the content, behind item signs.
    column: usize,
    item: bool,
    /// The content, without the line break and blanks at its end.
    content: Range<usize>,
    key: Option<(&'t str, Range<usize>)>,
    /// Where the next line begins.
    next: usize,
}

struct Reader<'t, 'l> {
    text: &'t str,
    at: usize,
    /// Names that hold nested lines, with their columns.
    keys: Vec<(usize, &'t str)>,
    /// Items that are records, with their columns.
    items: Vec<(usize, u32)>,
    paragraph: Option<Range<usize>>,
    /// Bytes that may still be read in vain, looking for the end of what was taken for a document or a quoted scalar.
    budget: usize,
    leaves: &'l mut Leaves<'t>,
}

impl<'t> Reader<'t, '_> {
    fn slice(&self, range: Range<usize>) -> &'t str {
        self.text.get(range).unwrap_or_default()
    }

    fn parse(&self, at: usize) -> Line<'t> {
        let rest = self.slice(at..self.text.len());
        let length = rest.find('\n').unwrap_or(rest.len());
        let next = at.saturating_add(length).saturating_add(1).min(self.text.len());
        let line = rest.get(..length).unwrap_or_default().trim_end();
        let end = at.saturating_add(line.len());
        let mut body = line.trim_start();
        let indent = line.len().saturating_sub(body.len());
        let mut item = false;
        while let Some(after) = body.strip_prefix("- ").or_else(|| body.strip_prefix("* ")) {
            item = true;
            body = after.trim_start();
        }
        if body == "-" {
            item = true;
            body = "";
        }
        let content = end.saturating_sub(body.len())..end;
        let column = content.start.saturating_sub(at);
        let key = self.key_of(body, content.start);
        Line { indent, column, item, content, key, next }
    }

    /// The name that a line begins with, and what stands behind its colon.
    fn key_of(&self, body: &'t str, start: usize) -> Option<(&'t str, Range<usize>)> {
        let quote = body.chars().next().filter(|first| matches!(first, '\'' | '"'));
        let (name, colon) = if let Some(quote) = quote {
            let close = body.get(1..)?.find(quote)?.saturating_add(1);
            (body.get(1..close)?, close.saturating_add(1))
        } else {
            let colon = body.as_bytes().iter().take(limits::FIELD_BYTES).position(|byte| *byte == b':')?;
            (body.get(..colon)?, colon)
        };
        let after = body.get(colon..)?.strip_prefix(':')?;
        let named = name.len() <= limits::FIELD_BYTES
            && !name.is_empty()
            && name.chars().all(|sign| sign.is_alphanumeric() || matches!(sign, '_' | '-' | '.' | ' ' | '/'));
        if !named || !(after.is_empty() || after.starts_with([' ', '\t'])) {
            return None;
        }
        let value = after.trim_start();
        if quote.is_none() && name.contains(' ') && !value.starts_with(['\'', '"']) {
            return None;
        }
        let end = start.saturating_add(body.len());
        Some((name, end.saturating_sub(value.len())..end))
    }

    fn line(&mut self) {
        let line = self.parse(self.at);
        if line.content.is_empty() && !line.item {
            self.flush();
            self.at = line.next;
            return;
        }
        if line.key.is_none() && !line.item {
            self.place(&line);
            if self.embedded(&line) {
                return;
            }
            let start = self.paragraph.take().map_or(line.content.start, |paragraph| paragraph.start);
            self.paragraph = Some(start..line.content.end);
            self.at = line.next;
            return;
        }
        self.flush();
        self.place(&line);
        let depth = if line.key.is_some() { line.column } else { line.indent.saturating_add(1) };
        self.keys.retain(|(column, _)| *column < depth);
        match line.key.clone() {
            Some((name, value)) => {
                if is_wordy(name) {
                    let at = line.content.clone();
                    self.push_plain(at.start..value.start, None);
                }
                if self.keys.len() < limits::INDENTED_KEYS {
                    self.keys.push((line.column, name));
                }
                self.value(&line, value, line.column, Some(name));
            }
            None => {
                let field = self.keys.last().map(|(_, name)| *name);
                self.value(&line, line.content.clone(), line.indent, field);
            }
        }
    }

    /// An item with a name begins a record, which goes on over the deeper lines.
    fn place(&mut self, line: &Line<'t>) {
        self.items.retain(|(indent, _)| *indent < line.indent);
        let around = self.items.last().map_or(WHOLE, |(_, record)| *record);
        self.leaves.record = around;
        if line.item && line.key.is_some() && self.items.len() < limits::INDENTED_KEYS {
            let record = self.leaves.begin_record(around);
            self.items.push((line.indent, record));
        }
    }

    /// A line that is a JSON document.
    fn embedded(&mut self, line: &Line<'t>) -> bool {
        let structured = matches!(self.text.as_bytes().get(line.content.start), Some(b'{' | b'['));
        if !structured || self.budget == 0 {
            return false;
        }
        self.flush();
        match read_embedded(self.text, line.content.start, self.leaves) {
            Ok(end) => {
                self.at = end.saturating_add(1);
                true
            }
            Err(read) => {
                self.budget = self.budget.saturating_sub(read);
                false
            }
        }
    }

    /// The value of a key or item that stands in `column`.
    fn value(&mut self, line: &Line<'t>, value: Range<usize>, column: usize, field: Option<&'t str>) {
        let written = self.slice(value.clone());
        self.at = line.next;
        if written.is_empty() {
            return;
        }
        if matches!(written, "|" | "|-" | "|+" | ">" | ">-" | ">+") {
            self.block(column, written.starts_with('|'), field);
            return;
        }
        let quote = written.bytes().next().filter(|first| matches!(first, b'\'' | b'"'));
        if let Some(quote) = quote.filter(|_| self.budget > 0)
            && let Some(end) = self.quoted_end(value.start, quote, line.next, column)
        {
            self.quoted(value.start.saturating_add(1)..end, quote, field);
            return;
        }
        if written.starts_with(['{', '[']) && self.budget > 0 {
            let before = self.leaves.len();
            match read_embedded(self.text, value.start, self.leaves) {
                Ok(end) => {
                    for leaf in self.leaves.leaves.iter_mut().skip(before) {
                        leaf.field = leaf.field.take().or(field.map(Cow::Borrowed));
                    }
                    self.at = end.saturating_add(1);
                    return;
                }
                Err(read) => self.budget = self.budget.saturating_sub(read),
            }
        }
        self.scalar(value, line.indent, column, field);
    }

    /// A plain scalar and the lines it goes on over.
    fn scalar(&mut self, first: Range<usize>, indent: usize, column: usize, field: Option<&'t str>) {
        let mut draft = Draft::new(self.text, first.start);
        let mut end = first.end;
        escapes::plain(self.text, first, &mut draft);
        while self.at < self.text.len() {
            let line = self.parse(self.at);
            if line.content.is_empty() || line.key.is_some() || line.item || line.indent < indent {
                break;
            }
            // Deeper lines are folded; lines as deep as the first keep their breaks, for they may be prose.
            if line.indent > column {
                draft.atom(end..line.content.start, " ");
            } else {
                draft.literal(end..line.content.start);
            }
            end = line.content.end;
            escapes::plain(self.text, line.content, &mut draft);
            self.at = line.next;
        }
        let (text, places) = draft.finish();
        self.leaves.push(text, places, field.map(Cow::Borrowed));
    }

    /// A block scalar: all deeper lines, with their breaks or folded.
    fn block(&mut self, column: usize, keep: bool, field: Option<&'t str>) {
        let mut draft = Draft::new(self.text, self.at);
        let mut end: Option<usize> = None;
        let mut blank = false;
        while self.at < self.text.len() {
            let line = self.parse(self.at);
            let content = self.at.saturating_add(line.indent)..line.content.end;
            if content.is_empty() {
                blank = true;
                self.at = line.next;
                continue;
            }
            if line.indent <= column {
                break;
            }
            if let Some(end) = end {
                let between = end..content.start;
                draft.atom(
                    between,
                    if blank {
                        "\n\n"
                    } else if keep {
                        "\n"
                    } else {
                        " "
                    },
                );
            }
            end = Some(content.end);
            blank = false;
            escapes::plain(self.text, content, &mut draft);
            self.at = line.next;
        }
        let (text, places) = draft.finish();
        self.leaves.push(text, places, field.map(Cow::Borrowed));
    }

    /// Where the quoted scalar that begins at `start` ends: at a quote with nothing behind it, on this line or on a
    /// deeper one.
    fn quoted_end(&mut self, start: usize, quote: u8, next: usize, column: usize) -> Option<usize> {
        let mut from = start.saturating_add(1);
        let mut next = next;
        loop {
            let line = self.slice(from..next).trim_end();
            let end = from.saturating_add(line.len());
            let quotes = line.bytes().rev().take_while(|byte| *byte == quote).count();
            let escaped = quote == b'"'
                && line.trim_end_matches('"').bytes().rev().take_while(|byte| *byte == b'\\').count() % 2
                    == 1;
            if quotes > 0 && (quotes % 2 == 1 || line.len() == quotes) && !(escaped && quotes == 1) {
                return end.checked_sub(1);
            }
            if next >= self.text.len() && from > start.saturating_add(1) {
                // Several lines were read, all deeper: the text was cut off inside the scalar.
                return Some(self.text.len());
            }
            let following = self.parse(next);
            let ends = next >= self.text.len()
                || !following.content.is_empty() && following.indent <= column
                || following.next <= next;
            if ends {
                self.budget = self.budget.saturating_sub(next.saturating_sub(start));
                return None;
            }
            from = next;
            next = following.next;
        }
    }

    /// A quoted scalar: escapes undone, folded lines joined, blank lines kept.
    fn quoted(&mut self, range: Range<usize>, quote: u8, field: Option<&'t str>) {
        let bytes = self.text.as_bytes();
        let mut draft = Draft::new(self.text, range.start);
        let (mut from, mut at) = (range.start, range.start);
        while let Some(byte) = bytes.get(at).filter(|_| at < range.end) {
            match byte {
                b'\n' => {
                    let kept = self.slice(from..at).trim_end().len();
                    let text_end = from.saturating_add(kept);
                    draft.literal(from..text_end);
                    let gap = self.slice(at..range.end);
                    let after = range.end.saturating_sub(gap.trim_start().len());
                    let breaks = self.slice(at..after).matches('\n').count();
                    draft.atom(text_end..after, if breaks == 1 { " " } else { "\n" });
                    (from, at) = (after, after);
                }
                b'\\' if quote == b'"' => {
                    draft.literal(from..at);
                    at = match bytes.get(at.saturating_add(1)) {
                        // A line that ends with a backslash goes on without a blank.
                        Some(b'\n') => {
                            let gap = self.slice(at.saturating_add(1)..range.end);
                            range.end.saturating_sub(gap.trim_start().len())
                        }
                        Some(b' ') => at.saturating_add(1),
                        _ => escapes::string_escape(self.text, at, &mut draft).min(range.end),
                    };
                    from = at;
                }
                b'\'' if quote == b'\'' && bytes.get(at.saturating_add(1)) == Some(&b'\'') => {
                    draft.literal(from..at);
                    draft.atom(at..at.saturating_add(2), "'");
                    (from, at) = (at.saturating_add(2), at.saturating_add(2));
                }
                b'\\' => {
                    // With the whole of the letter behind it.
                    let next = self.slice(at.saturating_add(1)..range.end).chars().next();
                    let end = at.saturating_add(1).saturating_add(next.map_or(0, char::len_utf8));
                    draft.literal(from..at);
                    escapes::plain(self.text, at..end, &mut draft);
                    (from, at) = (end, end);
                }
                _ => at = at.saturating_add(1),
            }
        }
        draft.literal(from..range.end);
        let (text, places) = draft.finish();
        self.leaves.push(text, places, field.map(Cow::Borrowed));
        let rest = self.slice(range.end..self.text.len());
        self.at =
            rest.find('\n').map_or(self.text.len(), |line| range.end.saturating_add(line).saturating_add(1));
    }

    fn push_plain(&mut self, range: Range<usize>, field: Option<&'t str>) {
        let mut draft = Draft::new(self.text, range.start);
        escapes::plain(self.text, range, &mut draft);
        let (text, places) = draft.finish();
        self.leaves.push(text, places, field.map(Cow::Borrowed));
    }

    fn flush(&mut self) {
        if let Some(range) = self.paragraph.take() {
            self.push_plain(range, None);
        }
    }
}
