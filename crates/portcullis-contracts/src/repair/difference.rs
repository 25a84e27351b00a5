//! What a repair changed: edits on the original, and how much of it they are.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use similar::{Algorithm, DiffOp, capture_diff_slices};

use crate::limits::MAX_DIFF_CELLS;
use crate::text::words::is_word;
use crate::text::{Span, cut};

/// A replacement on the original reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "RepairEdit")]
pub struct Edit {
    /// What is replaced; empty where something is put in.
    pub span: Span,
    /// What comes there.
    pub replacement: String,
}

/// The edits that make `after` of `before`, and the share of both texts that they concern: characters taken out and put
/// in, over the characters of both. Indentation at the start of a line counts for nothing.
#[must_use]
pub fn difference(before: &str, after: &str) -> (Vec<Edit>, f64) {
    if before == after {
        return (Vec::new(), 0.0);
    }
    let mut edits = Vec::new();
    let mut changed = 0;
    for (span, put) in hunks(before, after) {
        changed += weight(before, span.clone()) + weight(after, put.clone());
        edits.push(Edit { span, replacement: cut(after, put).to_owned() });
    }
    let total = weight(before, 0..before.len()) + weight(after, 0..after.len());
    (edits, if total == 0 { 0.0 } else { changed as f64 / total as f64 })
}

/// What differs: spans before and after. Words are compared where that is cheap enough, else lines.
fn hunks(before: &str, after: &str) -> Vec<(Span, Span)> {
    let ends = |text: &str| {
        text.split_inclusive('\n')
            .scan(0, |at, line| {
                let span = *at..*at + line.len();
                *at = span.end;
                Some(span)
            })
            .collect::<Vec<Span>>()
    };
    let fits = |old: &[Span], new: &[Span]| old.len().saturating_mul(new.len()) <= MAX_DIFF_CELLS;
    let (old, new) = (tokens(before), tokens(after));
    if fits(&old, &new) {
        return compared(before, &old, after, &new);
    }
    let (old, new) = (ends(before), ends(after));
    if fits(&old, &new) {
        return compared(before, &old, after, &new);
    }
    vec![(0..before.len(), 0..after.len())]
}

fn compared(before: &str, old: &[Span], after: &str, new: &[Span]) -> Vec<(Span, Span)> {
    let texts =
        |text, tokens: &[Span]| tokens.iter().map(|span| cut(text, span.clone())).collect::<Vec<&str>>();
    let covered = |tokens: &[Span], range: std::ops::Range<usize>, length: usize| {
        let start = tokens.get(range.start).map_or(length, |span| span.start);
        let last =
            range.end.checked_sub(1).filter(|&last| last >= range.start).and_then(|last| tokens.get(last));
        start..last.map_or(start, |span| span.end)
    };
    // What stands between two equal stretches is one change, in whichever order it is reported.
    let mut out = Vec::new();
    let (mut old_at, mut new_at) = (0, 0);
    let operations = capture_diff_slices(Algorithm::Myers, &texts(before, old), &texts(after, new));
    let equal = operations.iter().filter(|operation| matches!(operation, DiffOp::Equal { .. }));
    let stretches = equal.map(|operation| (operation.old_range(), operation.new_range()));
    for (old_range, new_range) in stretches.chain([(old.len()..old.len(), new.len()..new.len())]) {
        if old_at < old_range.start || new_at < new_range.start {
            let span = covered(old, old_at..old_range.start, before.len());
            out.push((span, covered(new, new_at..new_range.start, after.len())));
        }
        (old_at, new_at) = (old_range.end, new_range.end);
    }
    out
}

/// Words, runs of spaces, and single marks.
fn tokens(text: &str) -> Vec<Span> {
    let mut out: Vec<Span> = Vec::new();
    let mut class = ' ';
    for (at, c) in text.char_indices() {
        let this = match c {
            c if is_word(c) => 'w',
            ' ' | '\t' => 's',
            _ => 'm',
        };
        let end = at + c.len_utf8();
        match out.last_mut() {
            Some(last) if this == class && this != 'm' => last.end = end,
            _ => out.push(at..end),
        }
        class = this;
    }
    out
}

/// Characters of a span, without indentation.
fn weight(text: &str, span: Span) -> usize {
    let starts_line = span.start == 0 || crate::text::to(text, span.start).ends_with('\n');
    let mut indented = starts_line;
    cut(text, span)
        .chars()
        .filter(|&c| {
            let counts = !(indented && matches!(c, ' ' | '\t'));
            indented = c == '\n' || indented && !counts;
            counts
        })
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_make_the_one_of_the_other() {
        for (a, b) in
            [("one two three", "one three"), ("a b", "a, c b"), ("x", ""), ("", "x"), ("a\nb", "  a\n  b")]
        {
            let (edits, ratio) = difference(a, b);
            let mut out = String::new();
            let mut at = 0;
            for edit in edits {
                out.push_str(cut(a, at..edit.span.start));
                out.push_str(&edit.replacement);
                at = edit.span.end;
            }
            out.push_str(crate::text::from(a, at));
            assert_eq!(out, b);
            assert!((0.0..=1.0).contains(&ratio));
        }
        assert!(difference("a\nb", "  a\n  b").1 < f64::EPSILON);
    }
}
