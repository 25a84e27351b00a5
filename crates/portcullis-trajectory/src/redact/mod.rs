//! Secrets in texts that are about to be stored, and the same texts without them.
//!
//! Anyone who may read the record need not be anyone who may use a key that is in it. So before a payload is stored,
//! each secret that is recognised becomes a note, `[secret:KIND]`; guards and the agent see what was there.
//!
//! The gate's own tokens and keys are kept from the store always, all others unless the bundle says that they are kept.
//!
//! A secret is recognised by form alone (`forms`): by the beginning and the alphabet that its issuer publishes, by the frame
//! around it (a private key, the password in a URL, `Authorization:`), or by the name of the field that holds it. What
//! merely looks random is left alone: digests, identifiers and images do, too, and a record without them is of little
//! use. So this is a net with holes, and no reason to hand secrets to agents.
//!
//! Texts are often JSON, and what is in it may be JSON again. Notes have no quote and no backslash, and nothing
//! that is replaced has either, save whole escapes of line breaks: what was JSON before is JSON after.

mod forms;
mod secret;

use std::borrow::Cow;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, MatchKind};

use forms::{ANCHORS, OWN, Rule, Seen};
pub use secret::Secret;

/// A text, without its secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redacted<'t> {
    /// The text with a note in place of each secret.
    pub text: Cow<'t, str>,
    /// How many were replaced.
    pub secrets: usize,
}

/// One automaton over all places at which a secret may be told. Its patterns are constants that fit; a test builds it.
static AUTOMATON: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| automaton(OWN.iter().chain(ANCHORS)));
/// The same for the gate's own alone.
static OWN_AUTOMATON: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| automaton(OWN.iter()));

fn automaton<'a>(anchors: impl Iterator<Item = &'a (&'a str, Rule)>) -> Option<AhoCorasick> {
    AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .match_kind(MatchKind::LeftmostLongest)
        .build(anchors.map(|anchor| anchor.0))
        .ok()
}

/// The secrets in a text, in order, none within another.
pub fn find(text: &str) -> Vec<Secret> {
    find_with(AUTOMATON.as_ref(), text)
}

fn find_with(automaton: Option<&AhoCorasick>, text: &str) -> Vec<Secret> {
    let mut found: Vec<Secret> = Vec::new();
    let Some(automaton) = automaton else { return found };
    let mut seen = Seen::default();
    for anchor in automaton.find_iter(text) {
        let rule = OWN.iter().chain(ANCHORS).nth(anchor.pattern().as_usize());
        let Some((_, rule)) = rule else { continue };
        let Some(secret) = rule.secret(text, anchor.range(), &mut seen) else { continue };
        match found.last_mut() {
            // The value of a field is told once more by its own form, which says more than the name of the field.
            Some(last) if last.range == secret.range => *last = secret,
            // What is in a secret is gone with it; of the gate's own no end is left over either.
            Some(last) if secret.range.start < last.range.end => {
                if anchor.pattern().as_usize() < OWN.len() {
                    last.range.end = last.range.end.max(secret.range.end);
                }
            }
            _ => found.push(secret),
        }
    }
    found
}

/// The text without its secrets.
pub fn redact(text: &str) -> Redacted<'_> {
    without(text, find(text))
}

/// The text without the gate's own tokens and keys: for records that keep all other secrets.
pub fn redact_own(text: &str) -> Redacted<'_> {
    without(text, find_with(OWN_AUTOMATON.as_ref(), text))
}

fn without(text: &str, found: Vec<Secret>) -> Redacted<'_> {
    if found.is_empty() {
        return Redacted { text: Cow::Borrowed(text), secrets: 0 };
    }
    let mut left = String::with_capacity(text.len());
    let mut at = 0;
    for Secret { range, kind } in &found {
        left.push_str(text.get(at..range.start).unwrap_or_default());
        left.push_str("[secret:");
        left.push_str(kind);
        left.push(']');
        at = range.end;
    }
    left.push_str(text.get(at..).unwrap_or_default());
    Redacted { text: Cow::Owned(left), secrets: found.len() }
}

#[cfg(test)]
mod tests;
