//! Tokens that a bundle maps to principals, found in texts by their digests: they have no form of their own, and the
//! bundle does not hold them.

use std::borrow::Cow;
use std::ops::Range;

use portcullis_core::bundle::Credential;
use portcullis_trajectory::redact::Redacted;

use crate::credentials::sha256_hex;

/// Shortest token that is looked for, in bytes: digests of shorter words cost more than they hide.
const TOKEN_BYTES_MIN: usize = 16;
/// Longest stretch without white space or quotes that is checked, in bytes.
const STRETCH_BYTES_MAX: usize = 1_024;
/// Most signs of a stretch at which a token in it may begin or end.
const JOINTS_MAX: usize = 6;
/// What replaces it.
const NOTE: &str = "[secret:portcullis-mapped-token]";

/// The text without the tokens that these credentials are for.
pub(crate) fn without_mapped<'t>(redacted: Redacted<'t>, credentials: &[Credential]) -> Redacted<'t> {
    if credentials.is_empty() {
        return redacted;
    }
    let found = find(&redacted.text, credentials);
    if found.is_empty() {
        return redacted;
    }
    let mut left = String::with_capacity(redacted.text.len());
    let mut at = 0;
    for range in &found {
        left.push_str(redacted.text.get(at..range.start).unwrap_or_default());
        left.push_str(NOTE);
        at = range.end;
    }
    left.push_str(redacted.text.get(at..).unwrap_or_default());
    Redacted { text: Cow::Owned(left), secrets: redacted.secrets + found.len() }
}

/// Where such tokens are, in order and without overlaps.
fn find(text: &str, credentials: &[Credential]) -> Vec<Range<usize>> {
    let is_end = |c: char| {
        c.is_whitespace()
            || c.is_control()
            || matches!(c, '"' | '\'' | '`' | '\\' | '<' | '>' | ',' | ';' | '(' | ')')
    };
    let mut found = Vec::new();
    let mut at = 0;
    for stretch in text.split(is_end) {
        let start = at;
        // What separates two stretches is one character, of whatever length.
        let end = start + stretch.len();
        at = end + text.get(end..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8);
        if (TOKEN_BYTES_MIN..=STRETCH_BYTES_MAX).contains(&stretch.len()) {
            let tokens = in_stretch(stretch, credentials).into_iter();
            found.extend(tokens.map(|token| start + token.start..start + token.end));
        }
    }
    found
}

fn in_stretch(stretch: &str, credentials: &[Credential]) -> Vec<Range<usize>> {
    let joints: Vec<usize> = stretch
        .match_indices(['=', ':', '/', '@', '&', '?', '.', '|', '[', ']', '{', '}'])
        .map(|(at, _)| at)
        .collect();
    let ends = joints.iter().copied().chain([stretch.len()]);
    let mut found: Vec<Range<usize>> = Vec::new();
    let starts: Vec<usize> = [0].into_iter().chain(joints.iter().map(|at| at + 1)).collect();
    for end in ends {
        let before = starts.iter().rev().filter(|start| **start < end).take(JOINTS_MAX);
        // The longest that ends here.
        let token = before
            .map(|start| *start..end)
            .filter(|range| range.len() >= TOKEN_BYTES_MIN)
            .filter(|range| stretch.get(range.clone()).is_some_and(|token| is_mapped(token, credentials)))
            .last();
        let Some(token) = token else { continue };
        found.retain(|other| other.end <= token.start);
        found.push(token);
    }
    found
}

fn is_mapped(token: &str, credentials: &[Credential]) -> bool {
    let digest = sha256_hex(token);
    credentials.iter().any(|credential| credential.token_sha256 == digest)
}

#[cfg(test)]
mod tests {
    use portcullis_core::principal::{CredentialKind, Principal};

    use super::*;

    fn kept(text: &str) -> String {
        let credential = |token: &str| Credential {
            token_sha256: sha256_hex(token),
            kind: CredentialKind::Agent,
            principal: Principal::named("ann"),
            policy: None,
        };
        let credentials = [credential("Zq8x-not_a-known.form/1=="), credential("0123456789abcdef0123")];
        let plain = Redacted { text: Cow::Borrowed(text), secrets: 0 };
        without_mapped(plain, &credentials).text.into_owned()
    }

    #[test]
    fn mapped_tokens_are_not_kept_wherever_they_stand() {
        for (text, want) in [
            ("Zq8x-not_a-known.form/1==", "#"),
            ("Authorization: Bearer Zq8x-not_a-known.form/1==\r\n", "Authorization: Bearer #\r\n"),
            ("{\"token\":\"Zq8x-not_a-known.form/1==\"}", "{\"token\":\"#\"}"),
            ("TOKEN=0123456789abcdef0123 curl", "TOKEN=# curl"),
            ("https://x.example/?t=0123456789abcdef0123&a=1", "https://x.example/?t=#&a=1"),
            ("https://u:0123456789abcdef0123@x.example/", "https://u:#@x.example/"),
            ("It is 0123456789abcdef0123.", "It is #."),
            ("é 0123456789abcdef0123\u{2003}0123456789abcdef0123", "é #\u{2003}#"),
        ] {
            assert_eq!(kept(text), want.replace('#', NOTE), "{text}");
        }
    }

    #[test]
    fn other_words_are() {
        for text in [
            "0123456789abcdef0124",
            "x0123456789abcdef0123",
            "https://x.example/a/b/c/d/e/f/g/h?x=0123456789",
            "a sentence of common words",
            "",
        ] {
            assert_eq!(kept(text), text);
        }
    }
}
