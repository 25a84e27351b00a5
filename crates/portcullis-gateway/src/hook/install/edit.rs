//! Puts values into a text and takes them out again, so that nothing else of it changes.
//!
//! What is put in stands behind what is there. Taken out again, the text is as it was, also where an object or a list
//! was empty: one that was there and empty gets its first value behind one blank (`[ {…} ]`), one that is made begins with
//! a line break, so that the two can be told apart ([`was_empty`]).

use std::ops::Range;

use serde_json::Value;

use super::document::{Document, Kind, Node};

/// A part of a text and what is to stand in its place.
pub(super) struct Edit {
    pub(super) at: Range<usize>,
    pub(super) text: String,
}

impl Edit {
    fn put(at: usize, text: String) -> Self {
        Self { at: at..at, text }
    }

    fn cut(at: Range<usize>) -> Self {
        Self { at, text: String::new() }
    }
}

/// The text with all of its edits, which do not overlap.
pub(super) fn edited(text: &str, mut edits: Vec<Edit>) -> String {
    edits.sort_by_key(|edit| edit.at.start);
    let mut all = String::with_capacity(text.len());
    let mut from = 0;
    for edit in edits {
        all.push_str(text.get(from..edit.at.start).unwrap_or_default());
        all.push_str(&edit.text);
        from = edit.at.end;
    }
    all + text.get(from..).unwrap_or_default()
}

/// How a file breaks and indents its lines.
pub(super) struct Layout {
    pub(super) line: &'static str,
    unit: String,
}

/// How far a line is indented, and what stands on it first.
fn line_of(document: &Document, at: usize) -> (&str, bool) {
    let before = document.before(at);
    let line = before.rsplit('\n').next().unwrap_or_default();
    let indent = line.len() - line.trim_start_matches([' ', '\t']).len();
    (line.get(..indent).unwrap_or_default(), indent == line.len() && line.len() < before.len())
}

/// The line ending of a text: the first one, or that of Unix.
pub(super) fn line_ending(text: &str) -> &'static str {
    match text.split_once('\n') {
        Some((first, _)) if first.ends_with('\r') => "\r\n",
        _ => "\n",
    }
}

impl Layout {
    /// That of a file.
    pub(super) fn of(document: &Document) -> Self {
        let first = document.root.as_ref().and_then(|root| root.children().into_iter().next());
        let unit = match first.map(|first| line_of(document, first.start)) {
            Some((indent, true)) if !indent.is_empty() => indent,
            _ => "  ",
        };
        Self { line: line_ending(&document.text), unit: unit.to_owned() }
    }

    /// One level deeper.
    pub(super) fn deeper(&self, indent: &str) -> String {
        format!("{indent}{}", self.unit)
    }

    /// An object or a list that is made, with each of its values on a line.
    pub(super) fn made(&self, brackets: [char; 2], values: &[String], indent: &str) -> String {
        let Self { line, unit } = self;
        let values = values.join(&format!(",{line}{indent}{unit}"));
        let [open, close] = brackets;
        format!("{open}{line}{indent}{unit}{values}{line}{indent}{close}")
    }

    /// How far what is put into an object or a list is indented.
    pub(super) fn indent_in(&self, document: &Document, node: &Node) -> String {
        match node.children().last().map(|last| line_of(document, last.start)) {
            Some((indent, true)) => indent.to_owned(),
            _ => self.deeper(line_of(document, node.range.start).0),
        }
    }
}

/// Puts values behind those that an object or a list has.
pub(super) fn put_into(document: &Document, layout: &Layout, node: &Node, values: &[String]) -> Vec<Edit> {
    let broken = format!("{}{}", layout.line, layout.indent_in(document, node));
    let Some(last) = node.children().pop() else {
        return vec![Edit::put(node.range.start + 1, format!(" {}", values.join(&format!(",{broken}"))))];
    };
    let end = document.after_comments(last.end);
    let stays_on_line =
        matches!(node.kind, Kind::Array(_)) && end == last.end && !line_of(document, last.start).1;
    let between = if stays_on_line { " " } else { broken.as_str() };
    let values = format!("{between}{}", values.join(&format!(",{between}")));
    vec![Edit::put(last.end, ",".to_owned()), Edit::put(end, values)]
}

/// Whether an object or a list was there and empty before its first value was put in.
pub(super) fn was_empty(document: &Document, node: &Node) -> bool {
    let mut letters = document.text.get(node.range.start + 1..).unwrap_or_default().chars();
    letters.next() == Some(' ') && letters.next().is_some_and(|second| !second.is_whitespace())
}

/// Takes values out of an object or a list: those that are marked. With the blanks before them, unless a line comment would
/// go on into what follows.
pub(super) fn take_out(document: &Document, node: &Node, gone: &[bool], blanks: bool) -> Vec<Edit> {
    let comma_behind = |child: &Range<usize>| {
        let rest = document.after(child.end);
        let at = child.end + (rest.len() - rest.trim_start().len());
        Edit::cut(at..at + 1)
    };
    let children = node.children();
    let stays = gone.iter().rposition(|gone| !gone);
    let mut edits = Vec::new();
    for (number, (child, gone)) in children.iter().zip(gone).enumerate() {
        if *gone {
            let start = if blanks { document.blank_before(child.start) } else { child.start };
            edits.push(Edit::cut(start..child.end));
        }
        // Each takes the comma behind it along, and so does the last one that stays.
        if (*gone || Some(number) == stays) && number + 1 < children.len() {
            edits.push(comma_behind(child));
        }
    }
    edits
}

/// A value on one line.
pub(super) fn on_one_line(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let members = members
                .iter()
                .map(|(name, value)| format!("{}: {}", Value::from(name.as_str()), on_one_line(value)));
            format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
        }
        Value::Array(values) => {
            format!("[{}]", values.iter().map(on_one_line).collect::<Vec<_>>().join(", "))
        }
        scalar => scalar.to_string(),
    }
}
