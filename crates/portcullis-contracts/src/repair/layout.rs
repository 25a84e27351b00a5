//! Paragraphs merged and broken at places where lines and sentences end already.

use super::candidate::{Candidate, StepKind, Surroundings, apply, extent, openings};
use crate::bound::Bound;
use crate::check::bare;
use crate::family::Divider;
use crate::limits::MAX_EDITS;
use crate::text::paragraphs::{is_blank, pieces};
use crate::text::sentences::sentences;
use crate::text::{Span, cut, from, marks, to, trimmed, words};

/// Words up to which a single line is a heading.
const HEADING_WORDS: usize = 10;

/// The number of paragraphs.
pub(super) fn paragraphs(text: &str, count: &Bound, divider: Divider) -> Vec<Candidate> {
    let wanted = |found: usize| {
        if found < count.at_least as usize {
            count.at_least as usize
        } else {
            count.most().unwrap_or(count.at_least) as usize
        }
    };
    match divider {
        Divider::BlankLine => {
            let found = filled(text).len();
            rebroken(text, wanted(found))
                .map(|text| {
                    Candidate::layout("merged or broke paragraphs where lines or sentences end", text)
                })
                .into_iter()
                .collect()
        }
        Divider::Stars => {
            let found = filled(text);
            let target = wanted(found.len());
            if text.contains("***") || found.len() < target || target == 0 {
                return Vec::new();
            }
            // Every paragraph up to the last divider that is needed gets one behind it.
            let changes: Vec<_> = found
                .windows(2)
                .take(target.saturating_sub(1))
                .filter_map(|pair| match pair {
                    [a, b] => Some((a.end..b.start, "\n\n***\n\n".to_owned())),
                    _ => None,
                })
                .collect();
            vec![Candidate::new(StepKind::Literal, "put dividers between paragraphs", apply(text, &changes))]
        }
    }
}

/// Paragraphs that have something in them, without white space around it.
fn filled(text: &str) -> Vec<Span> {
    pieces(text, "\n\n")
        .into_iter()
        .filter(|span| !is_blank(text, span))
        .map(|span| trimmed(cut(text, span.clone()), span.start))
        .collect()
}

/// A text with exactly so many paragraphs, if its lines and sentences allow that.
pub(super) fn rebroken(text: &str, target: usize) -> Option<String> {
    if target == 0 {
        return None;
    }
    let mut current = text.to_owned();
    let steps = filled(text).len().abs_diff(target);
    if steps > MAX_EDITS {
        return None;
    }
    for _ in 0..steps {
        let spans = filled(&current);
        current = if spans.len() > target { merge(&current, &spans)? } else { divide(&current, &spans)? };
    }
    (filled(&current).len() == target).then_some(current)
}

/// Two paragraphs as one: a heading with what is below it or items of a list before others, and shorter ones first.
fn merge(text: &str, spans: &[Span]) -> Option<String> {
    let lists = marks::bullets(text);
    let is_item = |span: &Span| {
        let body = cut(text, span.clone());
        lists.iter().any(|bullet| bullet.start == span.start)
            || body.starts_with(|c: char| c.is_ascii_digit())
    };
    let (_, gap) = spans
        .windows(2)
        .filter_map(|pair| {
            let [a, b] = pair else { return None };
            let first = cut(text, a.clone());
            let heading = !first.contains('\n')
                && words::count(first) <= HEADING_WORDS
                && !first.ends_with(['.', '!', '?']);
            let class = if is_item(a) && is_item(b) { 0 } else { usize::from(!heading && !is_item(b)) + 1 };
            Some(((class, b.end - a.start), a.end..b.start))
        })
        .min_by_key(|(key, _)| *key)?;
    Some(apply(text, &[(gap, "\n".to_owned())]))
}

/// The longest paragraph that can be broken, broken near its middle: at a line's end, or else after a sentence.
fn divide(text: &str, spans: &[Span]) -> Option<String> {
    let mut by_length: Vec<&Span> = spans.iter().collect();
    by_length.sort_by_key(|span| std::cmp::Reverse(span.end - span.start));
    by_length.into_iter().find_map(|span| {
        let body = cut(text, span.clone());
        if body.contains("```") {
            return None;
        }
        let middle = body.len() / 2;
        let line =
            body.match_indices('\n').map(|(at, _)| at..at + 1).min_by_key(|gap| gap.start.abs_diff(middle));
        let gaps = sentences(body);
        let sentence = gaps
            .windows(2)
            .filter_map(|pair| match pair {
                [a, b] if cut(body, a.clone()).chars().any(char::is_alphabetic) => Some(a.end..b.start),
                _ => None,
            })
            .min_by_key(|gap| gap.start.abs_diff(middle));
        // A line's end is kept with what follows it, a sentence goes on in the indentation of its line.
        let (gap, indent) = match line {
            Some(gap) => (gap, ""),
            None => (sentence?, indentation(text, span.start)),
        };
        Some(apply(text, &[(span.start + gap.start..span.start + gap.end, format!("\n\n{indent}"))]))
    })
}

/// The white space that opens the line of a place.
fn indentation(text: &str, at: usize) -> &str {
    let start = to(text, at).rfind('\n').map_or(0, |newline| newline + 1);
    let line = cut(text, start..at);
    if line.trim().is_empty() { line } else { "" }
}

/// A break where the word already opens a sentence or line, with the right number of paragraphs before it.
pub(super) fn paragraph_word(
    text: &str,
    nth: u32,
    word: &str,
    within: u32,
    total: Option<u32>,
    context: Surroundings<'_>,
) -> Vec<Candidate> {
    let total = total.map(Bound::exactly).or_else(|| context.paragraphs());
    let before_count = (nth as usize).saturating_sub(1);
    let opens = |at: usize| {
        from(text, at)
            .split_whitespace()
            .take(within as usize)
            .any(|token| bare(token).to_lowercase() == word.to_lowercase())
    };
    let mut out: Vec<String> = Vec::new();
    for at in openings(text).into_iter().filter(|&at| opens(at)) {
        let (before, after) = (to(text, at).trim_end(), from(text, at));
        let head = if before_count == 0 {
            if before.trim().is_empty() { Some(String::new()) } else { None }
        } else {
            rebroken(before.trim_start(), before_count)
        };
        let Some(head) = head.map(|head| squeezed(&head)) else { continue };
        let indent = indentation(text, at);
        let join = if head.is_empty() { String::new() } else { format!("{head}\n\n{indent}") };
        out.push(format!("{join}{after}"));
        if let Some(rest) =
            total.and_then(|total| total.most()).and_then(|most| (most as usize).checked_sub(before_count))
            && let Some(tail) = rebroken(after, rest)
        {
            out.push(format!("{join}{tail}"));
        }
    }
    out.sort_by_key(|candidate| extent(text, candidate));
    out.into_iter()
        .map(|text| Candidate::layout("broke paragraphs where the word opens a sentence or line", text))
        .collect()
}

/// A text without empty paragraphs.
fn squeezed(text: &str) -> String {
    let mut out = text.to_owned();
    while out.contains("\n\n\n") {
        out = out.replace("\n\n\n", "\n\n");
    }
    out
}
