//! What a repair may propose: a changed text, how it was changed, and the test that the change is honest.

use schemars::JsonSchema;

use crate::contract::Contract;
use crate::family::Family;
use crate::text::{Span, cut, from, to, words};

/// How a step changes a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StepKind {
    /// Marks, breaks and case only: every word stays, in order.
    Layout,
    /// A text that the contract itself demands was put in: a phrase, a marker, the request.
    Literal,
    /// A sentence or line that stands elsewhere, word for word, was taken out.
    Duplicate,
    /// The reply was put into a format, or escapes in it were read.
    Format,
}

/// A proposed text.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    pub(super) text: String,
    pub(super) kind: StepKind,
    /// What was done, for a person.
    pub(super) what: &'static str,
}

impl Candidate {
    pub(super) fn new(kind: StepKind, what: &'static str, text: String) -> Self {
        Self { text, kind, what }
    }

    pub(super) fn layout(what: &'static str, text: String) -> Self {
        Self::new(StepKind::Layout, what, text)
    }

    /// Whether the change is what its kind says: no word lost, none added beyond what the family demands.
    pub(super) fn is_honest(&self, before: &str, family: &Family, prompt: Option<&str>) -> bool {
        match self.kind {
            StepKind::Layout => lower_words(before).eq(lower_words(&self.text)),
            StepKind::Literal => {
                let allowed: Vec<String> =
                    literals(family, prompt).iter().flat_map(|text| lower_words(text)).collect();
                adds_only(before, &self.text, &allowed)
            }
            // Removals and formats are what they are by construction: whole duplicates, whole escapes.
            StepKind::Duplicate | StepKind::Format => true,
        }
    }
}

fn lower_words(text: &str) -> impl Iterator<Item = String> + '_ {
    words::words(text).map(|span| cut(text, span).to_lowercase())
}

/// Whether `after` has the words of `before` in order, and beside them only allowed ones and numbers.
fn adds_only(before: &str, after: &str, allowed: &[String]) -> bool {
    let mut old = lower_words(before).peekable();
    for word in lower_words(after) {
        if old.peek() == Some(&word) {
            old.next();
        } else if !allowed.contains(&word) && !word.chars().all(char::is_numeric) {
            return false;
        }
    }
    old.next().is_none()
}

/// The texts a family may put in.
fn literals(family: &Family, prompt: Option<&str>) -> Vec<String> {
    match family {
        Family::BeginsWith { phrase } | Family::EndsWith { phrase } => vec![phrase.clone()],
        Family::Postscript { marker } | Family::Sections { marker, .. } => vec![marker.clone()],
        Family::RepeatRequest { request } => {
            request.clone().or_else(|| prompt.map(str::to_owned)).into_iter().collect()
        }
        Family::Title => prompt.map(str::to_owned).into_iter().collect(),
        Family::Responses { separator, .. } => vec![separator.clone()],
        Family::Options { options } => options.clone(),
        _ => Vec::new(),
    }
}

/// What generators of candidates know beside the text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Surroundings<'a> {
    pub(super) contracts: &'a [&'a Contract],
    pub(super) prompt: Option<&'a str>,
}

impl Surroundings<'_> {
    /// Whether a line is the delimiter of some contract, which others leave alone even while it fails.
    pub(super) fn is_delimiter(&self, line: &str) -> bool {
        let line = line.trim();
        self.contracts.iter().filter_map(|contract| contract.family()).any(|family| match family {
            Family::Responses { separator, .. } => separator
                .chars()
                .next()
                .is_some_and(|mark| line.len() >= 3 && line.chars().all(|c| c == mark)),
            Family::Sections { marker, .. } => {
                line.trim_start_matches(['*', '#', ' ']).starts_with(marker.trim_matches('*'))
            }
            Family::Title => line.starts_with("<<"),
            Family::Postscript { marker } => {
                line.get(..marker.len()).is_some_and(|head| head.eq_ignore_ascii_case(marker))
            }
            _ => false,
        })
    }

    /// How many paragraphs parted by empty lines some contract demands.
    pub(super) fn paragraphs(&self) -> Option<crate::Bound> {
        self.contracts.iter().filter_map(|contract| contract.family()).find_map(|family| match family {
            Family::Paragraphs { count, divider: crate::Divider::BlankLine } => Some(*count),
            _ => None,
        })
    }
}

/// A replacement of a span.
pub(super) type Change = (Span, String);

/// A text with changes applied; they must be in order and not overlap, and one that does is left out.
pub(super) fn apply(text: &str, changes: &[Change]) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    let mut at = 0;
    for (span, replacement) in changes {
        if span.start < at {
            continue;
        }
        out.push_str(cut(text, at..span.start));
        out.push_str(replacement);
        at = span.end;
    }
    out.push_str(from(text, at));
    out
}

/// Lines, without their ends.
pub(super) fn lines(text: &str) -> Vec<Span> {
    let mut start = 0;
    text.split('\n')
        .map(|line| {
            let span = start..start + line.len();
            start = span.end + 1;
            span
        })
        .collect()
}

/// Lines outside code fences that have something in them.
pub(super) fn open_lines(text: &str) -> Vec<Span> {
    let mut inside = false;
    lines(text)
        .into_iter()
        .filter(|span| {
            let line = cut(text, span.clone()).trim();
            let fence = line.starts_with("```");
            if fence {
                inside = !inside;
            }
            !inside && !fence && !line.is_empty()
        })
        .collect()
}

/// Places of sentence and line starts outside fences, in order.
pub(super) fn openings(text: &str) -> Vec<usize> {
    let lines = open_lines(text);
    let inside = |at: usize| lines.iter().any(|line| line.contains(&at));
    let mut out: Vec<usize> = crate::text::sentences::sentences(text)
        .into_iter()
        .map(|span| span.start)
        .filter(|&at| inside(at))
        .chain(lines.iter().map(|line| {
            let text = cut(text, line.clone());
            line.start + text.len() - text.trim_start().len()
        }))
        .collect();
    out.sort_unstable();
    out.dedup();
    out
}

/// How much of a text a change concerns: what is left without common ends.
pub(super) fn extent(before: &str, after: &str) -> usize {
    let head = before.bytes().zip(after.bytes()).take_while(|(a, b)| a == b).count();
    let rest = before.len().min(after.len()) - head;
    let tail = before.bytes().rev().zip(after.bytes().rev()).take(rest).take_while(|(a, b)| a == b).count();
    before.len().max(after.len()) - head - tail
}

/// The first letter in upper case.
pub(super) fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// The last character before a place that is no white space, with its own place.
pub(super) fn last_before(text: &str, at: usize) -> Option<(usize, char)> {
    to(text, at).trim_end().char_indices().next_back()
}
