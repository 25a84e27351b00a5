//! Credentials in what tools return: by the form that their issuers give them, by the field that holds them, and by
//! looking random.

use std::borrow::Cow;

use portcullis_detect::Leaf;
use serde_json::Value as Json;

use crate::arguments::DEPTH_MAX;
use crate::classes::Classes;
use crate::lexicon::Lexicon;
use crate::words::{hash, words};

/// Most credentials that are remembered of one run.
pub const SECRETS_MAX: usize = 1_024;
/// Shortest credential, in bytes: shorter ones occur by chance.
pub const SECRET_BYTES_MIN: usize = 6;
/// Longest credential, in bytes.
pub const SECRET_BYTES_MAX: usize = 4_096;
/// Beginnings that issuers publish so that credentials can be found, and the fewest bytes that follow.
const PREFIXES: &[(&str, usize)] = &[
    ("AKIA", 12),
    ("ASIA", 12),
    ("ghp_", 20),
    ("gho_", 20),
    ("ghu_", 20),
    ("ghs_", 20),
    ("ghr_", 20),
    ("github_pat_", 20),
    ("glpat-", 16),
    ("sk-", 20),
    ("sk_live_", 16),
    ("sk_test_", 16),
    ("rk_live_", 16),
    ("xoxb-", 16),
    ("xoxp-", 16),
    ("xoxa-", 16),
    ("xapp-", 16),
    ("AIza", 30),
    ("ya29.", 20),
    ("npm_", 20),
    ("pypi-", 20),
    ("hf_", 20),
    ("SG.", 20),
    ("dop_v1_", 20),
    ("shpat_", 20),
    ("eyJ", 40),
];
/// The shortest of these with what follows.
const ISSUED_BYTES_MIN: usize = 16;
/// Shortest token that may count as random.
const RANDOM_BYTES_MIN: usize = 32;
/// The line that opens a private key.
const PRIVATE_KEY: &str = "PRIVATE KEY-----";

fn tokens(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| {
        letter.is_whitespace() || matches!(letter, '"' | '\'' | '`' | ',' | ';' | '<' | '>' | '(' | ')' | '=')
    })
    .map(|token| token.trim_matches(['.', ':', '!', '?', '&']))
    .filter(|token| (SECRET_BYTES_MIN..=SECRET_BYTES_MAX).contains(&token.len()))
}

/// Whether a token has the form of a credential.
pub fn is_credential(token: &str) -> bool {
    if token.len() < ISSUED_BYTES_MIN {
        return false;
    }
    let issued = PREFIXES.iter().any(|(prefix, rest)| {
        token.strip_prefix(prefix).is_some_and(|after| {
            after.len() >= *rest
                && after.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'))
        })
    });
    issued || looks_random(token)
}

/// Long, of small letters, capitals and digits in turn, without words in it.
fn looks_random(token: &str) -> bool {
    if token.len() < RANDOM_BYTES_MIN
        || !token
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'_' | b'-'))
    {
        return false;
    }
    let class = |byte: u8| match byte {
        b'a'..=b'z' => 0,
        b'A'..=b'Z' => 1,
        b'0'..=b'9' => 2,
        _ => 3,
    };
    let changes = token.bytes().zip(token.bytes().skip(1)).filter(|(a, b)| class(*a) != class(*b)).count();
    let has = |which| token.bytes().any(|byte| class(byte) == which);
    has(0) && has(1) && has(2) && changes * 3 > token.len()
}

/// Hashes of the credentials in a leaf.
pub fn in_leaf(lexicon: &Lexicon, leaf: &Leaf<'_>) -> Vec<u64> {
    let text = leaf.text.trim();
    let field = leaf.field.as_deref().unwrap_or_default();
    let field = if field.contains('_') { Cow::Owned(field.replace('_', " ")) } else { Cow::Borrowed(field) };
    let named = words(&field).iter().any(|word| lexicon.classes(word).is(Classes::CREDENTIAL));
    if named
        && !text.contains(char::is_whitespace)
        && (SECRET_BYTES_MIN..=SECRET_BYTES_MAX).contains(&text.len())
    {
        return vec![hash(text.as_bytes())];
    }
    if let Some(at) = text.find(PRIVATE_KEY) {
        // The lines of the key itself: each is as secret as the whole.
        let body = text.get(at + PRIVATE_KEY.len()..).unwrap_or_default();
        return tokens(body)
            .filter(|token| token.len() >= RANDOM_BYTES_MIN)
            .take(SECRETS_MAX)
            .map(hash_of)
            .collect();
    }
    long_runs(text)
        .flat_map(tokens)
        .filter(|token| is_credential(token))
        .take(SECRETS_MAX)
        .map(hash_of)
        .collect()
}

/// Stretches without ASCII white space that are long enough for a credential: seldom so in prose.
fn long_runs(text: &str) -> impl Iterator<Item = &str> {
    let runs = text.as_bytes().split(u8::is_ascii_whitespace).scan(0, |at, run| {
        let start = *at;
        *at = start + run.len() + 1;
        Some(start..start + run.len())
    });
    runs.filter(|run| run.len() >= ISSUED_BYTES_MIN).filter_map(|run| text.get(run))
}

fn hash_of(token: &str) -> u64 {
    hash(token.as_bytes())
}

/// Whether the strings of a call's arguments hold a credential that `is_known` knows.
pub fn leave_with(arguments: &Json, depth: usize, is_known: &impl Fn(u64) -> bool) -> bool {
    match arguments {
        Json::String(text) => {
            let parts = text.split(['/', '?', '&', '=', '#', '"', '\'']);
            tokens(text).chain(parts).any(|token| is_known(hash_of(token)))
        }
        Json::Array(items) => {
            depth < DEPTH_MAX && items.iter().any(|item| leave_with(item, depth + 1, is_known))
        }
        Json::Object(map) => {
            depth < DEPTH_MAX && map.values().any(|item| leave_with(item, depth + 1, is_known))
        }
        Json::Null | Json::Bool(_) | Json::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use portcullis_detect::leaves;

    use super::*;
    use crate::lexicon::BUILT_IN;

    fn found(text: &str) -> usize {
        let lexicon = Lexicon::parse(BUILT_IN).unwrap();
        leaves(text).iter().flat_map(|leaf| in_leaf(&lexicon, leaf)).count()
    }

    #[test]
    fn credentials_are_known_by_form_field_and_randomness() {
        let issued = format!("use {}{} here", "ghp", "_abcdefghijklmnopqrstuvwxyz0123456789");
        assert_eq!(found(&issued), 1);
        assert_eq!(found(r#"{"user": "emma", "password": "correct-horse"}"#), 1);
        assert_eq!(found("xK9f2LqP0aZr7TbY3mWc8NdV5sHg1JeU"), 1);
        let key =
            format!("-----BEGIN {} KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSj\n-----END", "PRIVATE");
        assert_eq!(found(&key), 1);
    }

    #[test]
    fn prose_digests_and_names_are_not() {
        for text in [
            "the password is not written here",
            "2fd4e1c67a2d28fced849ee1bb76e7391b93eb12",
            "AbstractSingletonProxyFactoryBeanGenerator",
            r#"{"id": "ORDER-104674", "subject": "hello"}"#,
        ] {
            assert_eq!(found(text), 0, "{text}");
        }
    }
}
