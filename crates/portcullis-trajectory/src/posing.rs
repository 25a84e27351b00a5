//! The second kind of evidence: a text that addresses an agent, poses as user, system or tool, or wants to be kept from
//! the user.
//!
//! It is evidence on one call with its particulars, never a verdict on a text: a manual for agents addresses agents, too.

use portcullis_detect::automaton::Markers;
use portcullis_detect::normalise::normalise;

use crate::classes::Classes;
use crate::lexicon::Lexicon;
use crate::words::{Shape, Word};

/// Families of markers that pose. The others are about the rules of a model.
const POSING: [&str; 7] =
    ["role-delimiter", "end-of-text", "override", "new-rules", "new-role", "authority", "concealment"];

/// How a sentence gives itself away.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Posing {
    /// It does not.
    #[default]
    No,
    /// It tells an agent what to do. A source that the user handed on to may do so.
    ToAgent,
    /// It poses as user, system or tool, or hides.
    Poses,
}

/// Whether a sentence poses. `asks` says whether it instructs its reader to do something; `in_value`, whether a word
/// is part of an address or a path.
pub(crate) fn posing(
    lexicon: &Lexicon,
    text: &str,
    own: &[Word],
    asks: bool,
    in_value: impl Fn(&Word) -> bool,
) -> Posing {
    let classes = |word: &Word| lexicon.classes(word);
    if speaks_for_user(lexicon, own) || hints(text, own) && has_marker(text) {
        return Posing::Poses;
    }
    let agent = own
        .iter()
        .any(|word| classes(word).is(Classes::AGENT) && !word.shape.is(Shape::PART) && !in_value(word));
    let you = || own.iter().any(|word| word.is("you") || word.is("your") || classes(word).is(Classes::MODAL));
    // Whether a sentence in another script tells someone to do something is not known here.
    let other = || text.chars().filter(|letter| !letter.is_ascii()).count() * 4 > text.chars().count();
    if agent && (asks || you() || other()) { Posing::ToAgent } else { Posing::No }
}

/// *The user wants*, *the user has already approved*: someone else says what the user says.
fn speaks_for_user(lexicon: &Lexicon, own: &[Word]) -> bool {
    const SAYS: [&str; 13] = [
        "wants",
        "asked",
        "asks",
        "approved",
        "authorised",
        "authorized",
        "agreed",
        "confirmed",
        "requested",
        "requests",
        "consented",
        "instructed",
        "expects",
    ];
    // *The task that I gave you*, *a message from me to you*: only who gave the task can say so.
    const GAVE: [&str; 7] = ["gave", "asked", "told", "assigned", "instructed", "requested", "ordered"];
    let speaks_as_user = own.iter().zip(own.iter().skip(1)).any(|(before, word)| {
        before.is("i") && GAVE.iter().any(|gave| word.is(gave)) || before.is("from") && word.is("me")
    });
    if speaks_as_user && own.iter().any(|word| word.is("you")) {
        return true;
    }
    own.iter().enumerate().any(|(at, word)| {
        let before = at.checked_sub(1).and_then(|at| own.get(at));
        let user = (word.is("user") || word.is("owner") || word.is("principal"))
            && before
                .is_some_and(|word| lexicon.classes(word).is(Classes::DETERMINER.or(Classes::POSSESSIVE)));
        user && own.iter().skip(at + 1).take(3).any(|word| SAYS.iter().any(|said| word.is(said)))
    })
}

/// Words of which a marker has at least one, unless it is a sign.
const HINTS: [&str; 33] = [
    "ignore",
    "ignoring",
    "disregard",
    "forget",
    "override",
    "bypass",
    "system",
    "admin",
    "administrator",
    "developer",
    "instruction",
    "instructions",
    "instruction",
    "prompt",
    "rules",
    "user",
    "tell",
    "mention",
    "inform",
    "reveal",
    "pretend",
    "roleplay",
    "unrestricted",
    "end",
    "assistant",
    "human",
    "context",
    "previous",
    "prior",
    "directive",
    "restrictions",
    "owner",
    "anyone",
];

/// Whether a word in lower case is one that markers have.
pub(crate) fn is_hint(word: &str) -> bool {
    HINTS.contains(&word)
}

/// Whether a marker can be in a text at all: most have none of these.
fn hints(text: &str, own: &[Word]) -> bool {
    text.contains("<|")
        || text.contains("[/")
        || text.contains("[INST")
        || text.contains("</")
        || own.iter().any(|word| HINTS.iter().any(|hint| word.is(hint)))
}

fn has_marker(text: &str) -> bool {
    let Ok(markers) = Markers::shipped() else { return false };
    let normal = normalise(text);
    markers.find(&normal.text).iter().any(|found| POSING.contains(&found.family))
}
