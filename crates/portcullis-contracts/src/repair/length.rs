//! Sentences joined and split, duplicates taken out.

use std::collections::HashSet;

use super::candidate::{
    Candidate, Change, StepKind, Surroundings, apply, capitalised, last_before, open_lines,
};
use crate::bound::Bound;
use crate::limits::MAX_EDITS;
use crate::text::sentences::sentences;
use crate::text::{Span, cut, from, trimmed, words};

/// Words a duplicate has at least.
const DUPLICATE_WORDS: usize = 3;

/// Takes out exact duplicates from the end, until the count holds.
pub(super) fn without_duplicates(text: &str, holds: impl Fn(&str) -> bool) -> Vec<Candidate> {
    let mut current = text.to_owned();
    for _ in 0..MAX_EDITS {
        let Some(span) = duplicate(&current) else { return Vec::new() };
        current = apply(&current, &[(span, String::new())]);
        if holds(&current) {
            let what = "removed duplicate sentences";
            return vec![Candidate::new(StepKind::Duplicate, what, current.trim_end().to_owned())];
        }
    }
    Vec::new()
}

/// The last line or sentence that stands before, word for word.
fn duplicate(text: &str) -> Option<Span> {
    let repeated = |spans: Vec<Span>| {
        let mut seen = HashSet::new();
        let mut last = None;
        for span in spans {
            let content = cut(text, span.clone()).trim();
            if !seen.insert(content) && words::count(content) >= DUPLICATE_WORDS {
                last = Some(span);
            }
        }
        last
    };
    if let Some(line) = repeated(open_lines(text)) {
        let end = (line.end + 1).min(text.len());
        return Some(line.start..end);
    }
    let span = repeated(sentences(text))?;
    let rest = from(text, span.end);
    let space = rest.len() - rest.trim_start_matches(' ').len();
    Some(span.start..span.end + space)
}

/// The number of sentences, by joining or splitting as many as needed.
pub(super) fn sentence_count(text: &str, count: &Bound, context: Surroundings<'_>) -> Vec<Candidate> {
    let holds = |text: &str| count.holds(sentences(text).len());
    let found = sentences(text).len();
    let sets = if count.below.is_some_and(|below| found >= below as usize) {
        let (numbers, joins) = (number_edits(text), join_edits(text));
        let both = merged(numbers.clone(), joins.clone());
        vec![
            ("wrote list numbers with brackets", numbers),
            ("joined sentences with `;`", joins),
            ("joined sentences with `;`", both),
        ]
    } else {
        let (lines, clauses) = (line_end_edits(text, context), clause_edits(text));
        let both = merged(lines.clone(), clauses.clone());
        vec![("ended lines with a full stop", lines), ("split sentences", clauses), ("split sentences", both)]
    };
    let mut out = Vec::new();
    for (what, edits) in sets {
        out.extend(fewest(text, &edits, &holds).map(|text| Candidate::layout(what, text)));
    }
    out
}

fn merged(mut first: Vec<Change>, second: Vec<Change>) -> Vec<Change> {
    first.extend(second.into_iter().take(MAX_EDITS));
    first
}

/// As few of the edits, in their order of preference, as make the text hold.
fn fewest(text: &str, edits: &[Change], holds: &impl Fn(&str) -> bool) -> Option<String> {
    (1..=edits.len().min(MAX_EDITS)).find_map(|n| {
        let mut some = edits.get(..n)?.to_vec();
        some.sort_by_key(|(span, _)| span.start);
        let changed = apply(text, &some);
        holds(&changed).then_some(changed)
    })
}

/// `1.` at a line's start as `1)`: it ends no sentence then.
fn number_edits(text: &str) -> Vec<Change> {
    open_lines(text)
        .into_iter()
        .filter_map(|line| {
            let inner = trimmed(cut(text, line.clone()), line.start);
            let body = cut(text, inner.clone());
            let digits = body.len() - body.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            let dot = inner.start + digits;
            (digits > 0 && digits < 4 && from(body, digits).starts_with(". "))
                .then(|| (dot..dot + 1, ")".to_owned()))
        })
        .collect()
}

/// A full stop between two sentences as `;`, the shortest pairs first.
fn join_edits(text: &str) -> Vec<Change> {
    let sentences = sentences(text);
    let mut edits: Vec<(usize, Change)> = sentences
        .windows(2)
        .filter_map(|pair| {
            let [a, b] = pair else { return None };
            let body = cut(text, a.clone());
            let plain = body.ends_with('.') && !body.ends_with("..") && !is_number(body);
            let same_line = !cut(text, a.end..b.start).contains("\n\n");
            (plain && same_line).then(|| (b.end - a.start, (a.end - 1..a.end, ";".to_owned())))
        })
        .collect();
    edits.sort_by_key(|(length, _)| *length);
    edits.into_iter().map(|(_, edit)| edit).collect()
}

fn is_number(sentence: &str) -> bool {
    let last = sentence.split_whitespace().next_back().unwrap_or_default();
    last.trim_end_matches('.').chars().all(|c| c.is_ascii_digit())
}

/// A full stop at the end of lines that have no mark there and something below.
fn line_end_edits(text: &str, context: Surroundings<'_>) -> Vec<Change> {
    let lines = open_lines(text);
    let last = lines.len().saturating_sub(1);
    lines
        .into_iter()
        .take(last)
        .filter_map(|line| {
            let inner = trimmed(cut(text, line.clone()), line.start);
            let body = cut(text, inner.clone());
            let ends = body.chars().next_back().is_some_and(|c| c.is_alphanumeric() || c == ')' || c == '"');
            (ends && words::count(body) > 0 && !context.is_delimiter(body))
                .then(|| (inner.end..inner.end, ".".to_owned()))
        })
        .collect()
}

/// Clauses that may stand alone: after `;`, and before a conjunction behind a comma.
fn clause_edits(text: &str) -> Vec<Change> {
    let mut out: Vec<Change> = Vec::new();
    for (at, _) in text.match_indices("; ") {
        out.push((at..at + 2, ". ".to_owned()));
        out.extend(capital_at(text, at + 2));
    }
    for conjunction in [", and ", ", but ", ", so ", ", because ", ", yet ", ", or ", ", while ", ", which "]
    {
        for (at, found) in text.match_indices(conjunction) {
            let word = found.trim_start_matches(", ");
            out.push((at..at + found.len(), format!(". {}", capitalised(word))));
        }
    }
    out
}

fn capital_at(text: &str, at: usize) -> Option<Change> {
    let first = from(text, at).chars().next().filter(|c| c.is_lowercase())?;
    Some((at..at + first.len_utf8(), first.to_uppercase().collect()))
}

/// Every sentence within its bound: long ones are split where a mark or a line's end allows it, short ones joined.
pub(super) fn sentence_length(text: &str, count: &Bound, context: Surroundings<'_>) -> Vec<Candidate> {
    let mut current = text.to_owned();
    for _ in 0..MAX_EDITS {
        let spans = sentences(&current);
        let length = |span: &Span| words::count(cut(&current, span.clone()));
        let failing = spans
            .iter()
            .enumerate()
            .map(|(at, span)| (at, length(span)))
            .find(|&(_, n)| n > 0 && !count.holds(n));
        let Some((at, n)) = failing else {
            return vec![Candidate::layout("split or joined sentences", current)];
        };
        let too_long = count.below.is_some_and(|below| n >= below as usize);
        let changes = if too_long {
            split(&current, spans.get(at), count, context)
        } else {
            join(&current, &spans, at)
        };
        let Some(changes) = changes else { return Vec::new() };
        current = apply(&current, &changes);
    }
    Vec::new()
}

/// The split of a sentence that leaves the longest first part that holds; the one nearest to it where none does.
fn split(text: &str, span: Option<&Span>, count: &Bound, context: Surroundings<'_>) -> Option<Vec<Change>> {
    let span = span?.clone();
    let within = |change: &Change| change.0.start > span.start && change.0.end < span.end;
    let mut points: Vec<Change> = line_end_edits(text, context).into_iter().filter(within).collect();
    points.extend(
        clause_edits(text)
            .into_iter()
            .filter(|(at, new)| within(&(at.clone(), new.clone())) && new.starts_with('.')),
    );
    for (mark, new) in
        [(": ", ". "), (" - ", ". "), (" – ", ". "), (" — ", ". "), ("—", ". "), (":\n", ".\n")]
    {
        let sentence = cut(text, span.clone());
        points.extend(sentence.match_indices(mark).map(|(at, found)| {
            let at = span.start + at;
            (at..at + found.len(), new.to_owned())
        }));
    }
    let most = count.most()? as usize;
    let least = count.at_least.max(1) as usize;
    let starts: Vec<usize> =
        words::words(cut(text, span.clone())).map(|word| span.start + word.start).collect();
    let before = |at: usize| starts.partition_point(|&start| start < at);
    let parts = |change: &Change| (before(change.0.start), starts.len() - before(change.0.end));
    let best = points
        .iter()
        .filter(|change| {
            let (left, right) = parts(change);
            left >= least && right >= least
        })
        .max_by_key(|change| {
            let (left, _) = parts(change);
            if left <= most { (1, left) } else { (0, usize::MAX - left) }
        })?
        .clone();
    let capital = capital_at(text, best.0.end).filter(|_| !best.1.contains(char::is_alphabetic));
    let mut changes = vec![best];
    changes.extend(capital);
    Some(changes)
}

/// Joins a short sentence to the next one, or to the one before.
fn join(text: &str, spans: &[Span], at: usize) -> Option<Vec<Change>> {
    let span = spans.get(at)?;
    let body = cut(text, span.clone());
    let dot = span.end.checked_sub(1)?;
    let is_last = at + 1 >= spans.len();
    if is_number(body) && !is_last {
        return Some(vec![(dot..span.end, ")".to_owned())]);
    }
    if !is_last && body.ends_with('.') && !body.ends_with("..") {
        return Some(vec![(dot..span.end, ";".to_owned())]);
    }
    let before = spans.get(at.checked_sub(1)?)?;
    let (mark, c) = last_before(text, before.end)?;
    (c == '.' && mark + 1 == before.end && !cut(text, before.clone()).ends_with(".."))
        .then(|| vec![(mark..before.end, ";".to_owned())])
}
