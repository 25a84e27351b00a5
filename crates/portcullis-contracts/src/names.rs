//! A list of names, and where they are in a text.
//!
//! A name is found as whole words, upper and lower case alike, in Unicode's compatibility form (NFKC): `ada lovelace`,
//! `ADA LOVELACE` and full-width letters are one. Between its words may stand white space, hyphens, apostrophes, marks of
//! emphasis, and the dot of an initial or of an address, so that `J. R. Smith`, `J.R. Smith` and `Ada\nLovelace` are
//! found. Invisible characters do not hide a name, and what surrounds it (`Ada's`, `ada@example.com`) does not either.
//! Nothing is guessed: a name without its accents, a nickname or a first name alone is found only where it is listed.
//!
//! Scripts that put no spaces between words (Han, Kana, Hangul with its particles, Thai, Lao, Khmer, Burmese) have no whole
//! words to go by; there a name is found wherever its characters stand.

use std::collections::{BTreeSet, HashMap};
use std::fmt;

use thiserror::Error;
use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

use crate::limits::{MAX_NAME_BYTES, MAX_NAME_WORDS, MAX_NAMES};
use crate::text::{Span, cut};

/// Most characters between two words of one name.
const MAX_GAP_CHARS: usize = 8;
/// Letters of what may be shortened with a dot, as initials and titles are.
const MAX_SHORT_CHARS: usize = 3;

/// Why a list of names cannot be taken.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NamesError {
    /// No name, or too many.
    #[error("1 to {MAX_NAMES} names are taken; found {0}")]
    Count(usize),
    /// A name without a letter or digit.
    #[error("name {0} has no letter")]
    NoWord(usize),
    /// A name that is too long.
    #[error("name {0} has more than {MAX_NAME_BYTES} bytes or {MAX_NAME_WORDS} words")]
    TooLong(usize),
}

/// Names to look for, as a tree of their words.
#[derive(Clone, Default)]
pub struct Names {
    words: HashMap<String, u32>,
    /// From a node and a word to the next node. The root is 0.
    edges: HashMap<(u32, u32), u32>,
    /// Nodes at which a name ends.
    ends: BTreeSet<u32>,
    /// Nodes, the root included.
    nodes: u32,
}

impl fmt::Debug for Names {
    /// Names stay out of logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Names").field("len", &self.len()).finish_non_exhaustive()
    }
}

impl Names {
    /// A list of names.
    ///
    /// # Errors
    /// None at all, too many, one without a letter, or one that is too long.
    pub fn of(names: &[impl AsRef<str>]) -> Result<Self, NamesError> {
        if !(1..=MAX_NAMES).contains(&names.len()) {
            return Err(NamesError::Count(names.len()));
        }
        let mut list = Self { nodes: 1, ..Self::default() };
        for (at, name) in names.iter().enumerate() {
            let name = name.as_ref();
            let parts = words(name);
            if name.len() > MAX_NAME_BYTES || parts.len() > MAX_NAME_WORDS {
                return Err(NamesError::TooLong(at + 1));
            }
            if parts.is_empty() {
                return Err(NamesError::NoWord(at + 1));
            }
            let mut node = 0;
            for (_, part) in parts {
                let fresh = u32::try_from(list.words.len()).unwrap_or(u32::MAX);
                let word = *list.words.entry(part).or_insert(fresh);
                node = *list.edges.entry((node, word)).or_insert_with(|| {
                    list.nodes += 1;
                    list.nodes - 1
                });
            }
            list.ends.insert(node);
        }
        Ok(list)
    }

    /// How many different names there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none; never so for a list that was taken.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Where names stand, the longest at each place, not overlapping; and how many different ones.
    #[must_use]
    pub fn find(&self, text: &str) -> (Vec<Span>, usize) {
        let places: Vec<(Span, Option<u32>)> =
            words(text).into_iter().map(|(span, word)| (span, self.words.get(&word).copied())).collect();
        let (mut spans, mut found) = (Vec::new(), BTreeSet::new());
        let mut at = 0;
        while let Some(rest) = places.get(at..).filter(|rest| !rest.is_empty()) {
            match self.longest(text, rest) {
                Some((length, node, span)) => {
                    spans.push(span);
                    found.insert(node);
                    at += length;
                }
                None => at += 1,
            }
        }
        (spans, found.len())
    }

    /// The longest name that starts with the first of some words: its words, its node and its place.
    fn longest(&self, text: &str, rest: &[(Span, Option<u32>)]) -> Option<(usize, u32, Span)> {
        let (mut node, mut best) = (0, None);
        let start = rest.first()?.0.start;
        let mut before: Option<&Span> = None;
        for (length, (span, word)) in rest.iter().take(MAX_NAME_WORDS).enumerate() {
            let joined = before.is_none_or(|before| joins(text, before, span));
            let next = word.filter(|_| joined).and_then(|word| self.edges.get(&(node, word)));
            let Some(next) = next else { break };
            node = *next;
            if self.ends.contains(&node) {
                best = Some((length + 1, node, start..span.end));
            }
            before = Some(span);
        }
        best
    }
}

/// Whether what stands between two words leaves them one name.
fn joins(text: &str, before: &Span, after: &Span) -> bool {
    let gap = cut(text, before.end..after.start);
    let is_short = cut(text, before.clone()).chars().count() <= MAX_SHORT_CHARS;
    let may = |c: char| match c {
        '.' => is_short || gap == ".",
        '-' | '‐' | '‑' | '–' | '\'' | '’' | '‘' | 'ʼ' | '`' | '´' | '·' | '・' | '*' | '_' | '~' => {
            true
        }
        c => c.is_whitespace() || is_invisible(c) || is_combining_mark(c),
    };
    gap.chars().count() <= MAX_GAP_CHARS && gap.chars().all(may)
}

/// The words of a text as they are compared, each with its place.
fn words(text: &str) -> Vec<(Span, String)> {
    let mut found: Vec<(Span, String)> = Vec::new();
    let mut open: Option<usize> = None;
    let mut close = |open: &mut Option<usize>, end: usize| {
        if let Some(start) = open.take() {
            found.push((start..end, folded(cut(text, start..end))));
        }
    };
    // A character of a script without spaces is a word of its own, with the marks on it.
    let mut single = false;
    for (at, c) in text.char_indices() {
        let clings = is_combining_mark(c) || is_invisible(c) || matches!(c, '\u{ff9e}' | '\u{ff9f}');
        if clings {
            continue;
        }
        let unspaced = is_unspaced(c);
        if !c.is_alphanumeric() || unspaced || single {
            close(&mut open, at);
            single = false;
        }
        if c.is_alphanumeric() && open.is_none() {
            open = Some(at);
            single = unspaced;
        }
    }
    close(&mut open, text.len());
    found
}

/// A word in compatibility form, without case and without what cannot be seen.
fn folded(word: &str) -> String {
    if word.is_ascii() {
        return word.to_ascii_lowercase();
    }
    // By way of upper case, so that `ß` and `ss`, and both forms of sigma, are alike.
    let visible = word.chars().filter(|c| !is_invisible(*c)).nfkc();
    visible.flat_map(char::to_uppercase).flat_map(char::to_lowercase).nfkc().collect()
}

/// Characters without a form of their own: soft hyphens, joiners, marks of direction, variation selectors.
const fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}'
        | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
        | '\u{e0000}'..='\u{e0fff}')
}

/// Letters of scripts that put no spaces between words, or particles right behind names.
const fn is_unspaced(c: char) -> bool {
    matches!(c,
        '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' | '\u{3005}'..='\u{3007}'
        | '\u{3040}'..='\u{30ff}' | '\u{31f0}'..='\u{31ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7af}' | '\u{f900}'..='\u{faff}' | '\u{ff66}'..='\u{ff9d}'
        | '\u{20000}'..='\u{3fffd}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found<'t>(names: &[&str], text: &'t str) -> Vec<&'t str> {
        Names::of(names).unwrap().find(text).0.into_iter().map(|span| cut(text, span)).collect()
    }

    #[test]
    fn names_are_found_as_whole_words_in_any_case_and_form() {
        for (name, text, expected) in [
            ("Ada", "ADA's adage, Adam; ada@example.com", &["ADA", "ada"][..]),
            (
                "Ada Lovelace",
                "ada\nlovelace, Ada **Lovelace**, ada_lovelace",
                &["ada\nlovelace", "Ada **Lovelace", "ada_lovelace"],
            ),
            ("Ada Lovelace", "Ada, Lovelace. Lovelace Ada", &[]),
            ("J. R. Smith", "J.R. Smith and J R Smith", &["J.R. Smith", "J R Smith"]),
            ("Jonathan Doe", "jonathan.doe@x.org met Jonathan. Doe met", &["jonathan.doe"]),
            ("Jean-Luc O'Neill", "Jean Luc O’Neill", &["Jean Luc O’Neill"]),
            ("José", "Jos\u{65}\u{301} and Jose", &["Jos\u{65}\u{301}"]),
            ("Ada", "Ａｄａ and A\u{200b}d\u{ad}a", &["Ａｄａ", "A\u{200b}d\u{ad}a"]),
            ("Strauß", "STRAUSS Strauß", &["STRAUSS", "Strauß"]),
            ("Σίσυφος", "ΣΊΣΥΦΟΣ", &["ΣΊΣΥΦΟΣ"]),
            ("田中", "今日は田中さんが来た", &["田中"]),
            ("김철수", "김철수는 왔다", &["김철수"]),
            ("สมชาย", "คุณสมชายมา", &["สมชาย"]),
            ("Żółć", "Z\u{307}o\u{301}ł\u{63}\u{301}", &["Z\u{307}o\u{301}ł\u{63}\u{301}"]),
        ] {
            assert_eq!(found(&[name], text), expected, "{name} in {text}");
        }
    }

    #[test]
    fn the_longest_counts_and_names_stay_out_of_logs() {
        let names = Names::of(&["Ada", "Ada Lovelace", "ada  LOVELACE", "Bob"]).unwrap();
        assert_eq!(names.find("Ada Lovelace met Ada and Ada Smith."), (vec![0..12, 17..20, 25..28], 2));
        assert_eq!(names.len(), 3);
        assert!(!format!("{names:?}").contains("ada"));
    }

    #[test]
    fn lists_that_forbid_nothing_are_errors() {
        let none: [&str; 0] = [];
        assert_eq!(Names::of(&none).unwrap_err(), NamesError::Count(0));
        assert_eq!(Names::of(&["Ada", " - "]).unwrap_err(), NamesError::NoWord(2));
        assert_eq!(Names::of(&["a".repeat(300)]).unwrap_err(), NamesError::TooLong(1));
        assert_eq!(Names::of(&vec!["a"; MAX_NAMES + 1]).unwrap_err(), NamesError::Count(MAX_NAMES + 1));
    }
}
