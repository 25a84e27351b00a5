//! Words written in capitals, over the tokens of a Treebank-like tokeniser.
//!
//! `I`, `A`, `5G` and `P.S.` count; hyphens and slashes do not part a token; `I'M` and `CAN'T` are two, `CANNOT` too.

use super::{Span, cut};

/// Every token without a lower-case and with at least one upper-case letter.
#[must_use]
pub fn capital_words(text: &str) -> Vec<Span> {
    let mut out = Vec::new();
    let mut start = None;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let next = chars.peek().map(|&(_, c)| c);
        let doubled = matches!(c, '.' | '-' | '\'') && next == Some(c);
        let number = matches!(c, ':' | ',') && next.is_some_and(char::is_numeric);
        if is_separator(c) && !number || doubled {
            if let Some(start) = start.take() {
                push(text, start..at, &mut out);
            }
            if doubled {
                while chars.peek().is_some_and(|&(_, follow)| follow == c) {
                    chars.next();
                }
            }
        } else if start.is_none() {
            start = Some(at);
        }
    }
    if let Some(start) = start {
        push(text, start..text.len(), &mut out);
    }
    out
}

fn is_separator(c: char) -> bool {
    if c.is_ascii_alphanumeric() {
        return false;
    }
    c.is_whitespace()
        || matches!(
            c,
            '«' | '»'
                | '“'
                | '”'
                | '‘'
                | '’'
                | '„'
                | '`'
                | '"'
                | ';'
                | '@'
                | '#'
                | '$'
                | '%'
                | '&'
                | '?'
                | '!'
        )
        || matches!(c, '*' | '[' | ']' | '(' | ')' | '{' | '}' | '<' | '>' | ':' | ',')
}

/// Adds a token, or the two that a contraction is.
fn push(text: &str, token: Span, out: &mut Vec<Span>) {
    let word = cut(text, token.clone());
    if !word.contains(char::is_uppercase) {
        return;
    }
    let split = contraction(word).unwrap_or(word.len());
    for part in [token.start..token.start + split, token.start + split..token.end] {
        if is_upper(cut(text, part.clone())) {
            out.push(part);
        }
    }
}

/// Where a token splits into two.
fn contraction(word: &str) -> Option<usize> {
    let word = word.trim_end_matches('.');
    let ends = |suffix: &str| {
        let at = word.len().checked_sub(suffix.len())?;
        (at > 0 && word.get(at..)?.eq_ignore_ascii_case(suffix)).then_some(at)
    };
    let whole = |first: usize, all: &str| word.eq_ignore_ascii_case(all).then_some(first);
    ["'s", "'m", "'d", "'ll", "'re", "'ve", "n't"]
        .iter()
        .find_map(|suffix| ends(suffix))
        .or_else(|| whole(3, "cannot"))
        .or_else(|| ["gonna", "gotta", "gimme", "lemme", "wanna"].iter().find_map(|all| whole(3, all)))
}

/// Some letter is upper-case and none is lower-case.
#[must_use]
pub fn is_upper(text: &str) -> bool {
    text.chars().any(char::is_uppercase) && !text.chars().any(char::is_lowercase)
}

/// Some letter is lower-case and none is upper-case.
#[must_use]
pub fn is_lower(text: &str) -> bool {
    text.chars().any(char::is_lowercase) && !text.chars().any(char::is_uppercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capital_words_are_tokens_without_lower_case() {
        for (text, n) in [
            ("I am", 1),
            ("5G P.S. NASA-ESA a", 3),
            ("I'M CAN'T CANNOT", 6),
            ("TV's", 1),
            ("A/B", 1),
            ("A,B", 2),
            ("1,000 12:30", 0),
            ("WOW...YES", 2),
            ("", 0),
        ] {
            assert_eq!(capital_words(text).len(), n, "{text}");
        }
    }
}
