//! Sentences, by the rules of the Punkt splitter (Kiss and Strunk, *Unsupervised Multilingual Sentence Boundary
//! Detection*, 2006), which the published grader uses.
//!
//! A line break ends nothing: headings and list items without a full stop join what follows, and the `1.` of a list
//! ends a sentence. `.`, `?` and `!` may end one where white space or one of `) " ; } ] * : @ ' ( { [ ! ?` follows; of
//! several in a row without white space the last decides. `?` and `!` then always end; a period does unless its word is
//! an abbreviation, an ellipsis, an initial or a number, where the word that follows tells. Closing quotation marks and
//! brackets before white space belong to the sentence before.

use super::openers::{follows_number, is_abbreviation, is_opener};
use super::{Span, cut, from, to};

/// Every sentence of a text, in order. White space between sentences belongs to none.
#[must_use]
pub fn sentences(text: &str) -> Vec<Span> {
    realigned(text, slices(text))
}

/// Sentences before closing marks are given to the one they close.
fn slices(text: &str) -> Vec<Span> {
    let mut out = Vec::new();
    let mut start = 0;
    let mut candidates = Candidates { text, at: 0, run: 0 };
    while let Some(candidate) = candidates.next_run() {
        if ends_a_sentence(cut(text, candidate.run..candidate.context_end)) {
            out.push(start..candidate.end);
            start = candidate.next.unwrap_or(candidate.end);
        }
    }
    out.push(start..text.trim_end().len().max(start));
    out
}

/// A place where a sentence may end: the last one of its run of characters without white space.
struct Candidate {
    /// Start of the run.
    run: usize,
    /// Just after the mark.
    end: usize,
    /// Where the next word starts, if white space follows the mark.
    next: Option<usize>,
    /// The end of what has to be looked at: the mark that follows, or the next word.
    context_end: usize,
}

struct Candidates<'a> {
    text: &'a str,
    at: usize,
    run: usize,
}

impl Candidates<'_> {
    /// The last candidate of the next run that has one.
    fn next_run(&mut self) -> Option<Candidate> {
        let mut last: Option<Candidate> = None;
        loop {
            let Some(at) = from(self.text, self.at).find(['.', '?', '!']).map(|found| self.at + found) else {
                self.at = self.text.len();
                return last;
            };
            let run = from(self.text, self.run);
            let run = to(run, at - self.run)
                .rfind(char::is_whitespace)
                .map_or(self.run, |space| self.run + space + char_length(run, space));
            if last.as_ref().is_some_and(|candidate| candidate.run != run) {
                return last;
            }
            self.run = run;
            self.at = at + 1;
            if let Some(candidate) = candidate(self.text, run, at + 1) {
                last = Some(candidate);
            }
        }
    }
}

fn char_length(text: &str, at: usize) -> usize {
    from(text, at).chars().next().map_or(1, char::len_utf8)
}

/// The candidate whose mark ends at `end`, if what follows allows one.
fn candidate(text: &str, run: usize, end: usize) -> Option<Candidate> {
    let rest = from(text, end);
    let follow = rest.chars().next()?;
    if is_non_word(follow) {
        return Some(Candidate { run, end, next: None, context_end: end + follow.len_utf8() });
    }
    let word = rest.trim_start();
    if !follow.is_whitespace() || word.is_empty() {
        return None;
    }
    let next = text.len() - word.len();
    let length = word.find(char::is_whitespace).unwrap_or(word.len());
    Some(Candidate { run, end, next: Some(next), context_end: next + length })
}

fn is_non_word(c: char) -> bool {
    matches!(c, '”' | ')' | '"' | ';' | '}' | ']' | '*' | ':' | '@' | '\'' | '(' | '{' | '[' | '!' | '?')
}

/// Whether a sentence ends in a context of a word, its mark and what follows: some token but the last ends one.
fn ends_a_sentence(context: &str) -> bool {
    let mut tokens = tokens(context);
    let Some(mut token) = tokens.next() else { return false };
    for next in tokens {
        if is_end(token, next) {
            return true;
        }
        token = next;
    }
    false
}

/// Tokens: runs of periods or dashes, words up to a mark, single marks.
fn tokens(context: &str) -> impl Iterator<Item = &str> {
    let mut rest = context;
    std::iter::from_fn(move || {
        rest = rest.trim_start();
        let first = rest.chars().next()?;
        let length = multiple(rest).unwrap_or_else(|| {
            if matches!(
                first,
                '(' | '"' | '`' | '{' | '[' | ':' | ';' | '&' | '#' | '*' | '@' | ')' | '}' | ']' | '-' | ','
            ) {
                first.len_utf8()
            } else {
                word_length(rest)
            }
        });
        let (token, after) = rest.split_at_checked(length)?;
        rest = after;
        Some(token)
    })
}

/// The length of `--`, `..` or `. . .` and longer at the start of a text.
fn multiple(text: &str) -> Option<usize> {
    for mark in ['-', '.'] {
        let run = text.len() - text.trim_start_matches(mark).len();
        if run >= 2 {
            return Some(run);
        }
    }
    let mut length = 0;
    let mut pairs = 0;
    while let Some(after) = from(text, length).strip_prefix('.') {
        match after.chars().next() {
            Some(space) if space.is_whitespace() && space != '\n' => {
                length += 1 + space.len_utf8();
                pairs += 1;
            }
            _ => return (pairs >= 2).then_some(length + 1),
        }
    }
    None
}

fn word_length(text: &str) -> usize {
    let mut chars = text.char_indices();
    chars.next();
    chars.find(|&(at, c)| ends_word(from(text, at), c)).map_or(text.len(), |(at, _)| at)
}

fn ends_word(rest: &str, c: char) -> bool {
    if c.is_whitespace() || is_non_word(c) {
        return true;
    }
    match c {
        '-' | '.' => multiple(rest).is_some(),
        ',' => {
            let after = from(rest, 1);
            after.chars().next().is_none_or(|c| c.is_whitespace() || is_non_word(c))
                || multiple(after).is_some()
        }
        _ => false,
    }
}

/// What the word after a period says about it.
#[derive(PartialEq)]
enum Opens {
    Yes,
    No,
    Unknown,
}

fn is_end(token: &str, next: &str) -> bool {
    if matches!(token, "?" | "!") {
        return true;
    }
    let Some(word) = token.strip_suffix('.') else { return false };
    let is_ellipsis = word.ends_with('.') && token.chars().all(|c| c == '.');
    let lower = word.to_lowercase();
    let is_abbreviated = !word.ends_with('.') && is_abbreviation(&lower);
    let ends = token == "." || !word.ends_with('.') && !is_abbreviated;
    let is_initial = {
        let mut chars = word.chars();
        chars.next().is_some_and(char::is_alphabetic) && chars.next().is_none()
    };
    let next_word = next.to_lowercase();
    let next_word = next_word.strip_suffix('.').filter(|word| !word.is_empty()).unwrap_or(&next_word);
    let is_number = is_number(word);
    if is_number && follows_number(next_word) {
        return false;
    }
    if (is_abbreviated || is_ellipsis) && !is_initial {
        return opens(next, next_word) == Opens::Yes;
    }
    if is_initial || is_number {
        return match opens(next, next_word) {
            Opens::No => false,
            Opens::Unknown if is_initial => ends && !first_is(next, char::is_uppercase),
            Opens::Yes | Opens::Unknown => ends,
        };
    }
    ends
}

fn opens(token: &str, lower: &str) -> Opens {
    if matches!(token, ";" | ":" | "," | "." | "!" | "?") || first_is(token, char::is_lowercase) {
        Opens::No
    } else if first_is(token, char::is_uppercase) && is_opener(lower) {
        Opens::Yes
    } else {
        Opens::Unknown
    }
}

fn first_is(token: &str, holds: impl Fn(char) -> bool) -> bool {
    token.chars().next().is_some_and(holds)
}

/// Digits with `.`, `,` and `-` between them, perhaps signed.
fn is_number(word: &str) -> bool {
    let word = word.strip_prefix('-').unwrap_or(word);
    let word = word.strip_prefix(['.', ',']).unwrap_or(word);
    word.starts_with(char::is_numeric) && word.chars().all(|c| c.is_numeric() || matches!(c, '.' | ',' | '-'))
}

/// Gives closing marks that open a slice to the sentence before it.
fn realigned(text: &str, slices: Vec<Span>) -> Vec<Span> {
    let mut out = Vec::with_capacity(slices.len());
    let mut shift = 0;
    let mut slices = slices.into_iter().peekable();
    while let Some(slice) = slices.next() {
        let start = (slice.start + shift).min(slice.end);
        shift = 0;
        if let Some(next) = slices.peek()
            && let Some((closing, whole)) = closing_marks(cut(text, next.clone()))
        {
            out.push(start..next.start + closing);
            shift = whole;
        } else if start < slice.end {
            out.push(start..slice.end);
        }
    }
    out
}

/// The length of closing marks at the start of a slice, alone and with the white space behind them.
fn closing_marks(slice: &str) -> Option<(usize, usize)> {
    let rest = slice.trim_start_matches(['"', '”', '\'', ')', ']', '}']);
    let length = slice.len() - rest.len();
    let followed = rest.is_empty() || rest.starts_with(char::is_whitespace) || rest.starts_with("--");
    (length > 0 && followed).then(|| (length, slice.len() - rest.trim_start().len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> Vec<&str> {
        sentences(text).into_iter().map(|span| cut(text, span)).collect()
    }

    #[test]
    fn marks_end_sentences_and_lines_do_not() {
        for (text, n) in [
            ("", 0),
            (" \n ", 0),
            ("One. Two! Three?", 3),
            ("A heading\n\nA text. More", 2),
            ("1. First item\n2. Second item", 3),
            ("It grew 3.5 percent. Good.", 2),
            ("Really?! Yes.", 2),
            ("Wait... what? No.", 2),
            ("No space.Here", 1),
            ("Version 2. the rest", 1),
        ] {
            assert_eq!(split(text).len(), n, "{text:?} {:?}", split(text));
        }
    }

    #[test]
    fn abbreviations_initials_and_openers() {
        assert_eq!(
            split("Dr. Smith of the U.S. came. J. Bach too."),
            ["Dr. Smith of the U.S. came.", "J. Bach too."]
        );
        assert_eq!(split("He left the U.S. However, he came back.").len(), 2);
        assert_eq!(split("Use tools, e.g. Hammers.").len(), 2);
        assert_eq!(split("1. Who are you?").len(), 1);
    }

    #[test]
    fn closing_marks_go_with_the_sentence_before() {
        assert_eq!(
            split("He said \"Go.\" Then (he left.) **Bold.** End"),
            ["He said \"Go.\"", "Then (he left.)", "**Bold.", "** End"]
        );
    }
}
