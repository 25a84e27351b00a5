//! Claims: sentences that say that something has been settled, or as what it is to be taken. *The deposit is 0, as agreed
//! with the committee*; *W-4473 counts as passed*.
//!
//! Who may settle a thing does so in a field, or tells the user. A claim is not an order and may be true; but a value
//! that is in it alone rests on nothing else.

use crate::classes::Classes;
use crate::lexicon::Lexicon;
use crate::words::Word;

/// How many words before a participle its auxiliary may stand.
const AUXILIARY_REACH: usize = 4;
/// How many words after *counts* its *as* may stand.
const AS_REACH: usize = 5;

/// Whether a sentence claims that something has been settled.
pub(crate) fn claims(lexicon: &Lexicon, own: &[Word]) -> bool {
    own.iter().enumerate().any(|(at, word)| {
        let classes = lexicon.classes(word);
        classes.is(Classes::SETTLED) && (is_passive(own, at) || lexicon.is_translated(word.stem))
            || classes.is(Classes::TAKEN) && is_taken(own, at)
            || word.is("be") && is_to(own, at)
    })
}

/// *Has been agreed*, *is waived*, *as settled*, *approved by*.
fn is_passive(own: &[Word], at: usize) -> bool {
    const AUXILIARIES: [&str; 11] =
        ["has", "have", "had", "been", "was", "were", "is", "are", "already", "as", "be"];
    const AGENTS: [&str; 2] = ["by", "with"];
    let mut before = own.iter().take(at).rev().take(AUXILIARY_REACH);
    before.any(|word| AUXILIARIES.iter().any(|auxiliary| word.is(auxiliary)))
        || own.get(at + 1).is_some_and(|next| AGENTS.iter().any(|agent| next.is(agent)))
}

/// *Counts as passed*, *is to be treated as urgent*.
fn is_taken(own: &[Word], at: usize) -> bool {
    own.iter().skip(at + 1).take(AS_REACH).any(|word| word.is("as"))
}

/// *Is to be entered*, *are to be released*.
fn is_to(own: &[Word], at: usize) -> bool {
    let word = |back: usize| at.checked_sub(back).and_then(|at| own.get(at));
    word(1).is_some_and(|word| word.is("to")) && word(2).is_some_and(|word| word.is("is") || word.is("are"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::built_in;
    use crate::words::words;

    #[test]
    fn what_is_said_to_be_settled_is_a_claim() {
        for text in [
            "The deposit is 0, as already settled with the committee.",
            "Front office has granted full compensation.",
            "Accepted by the lab manager, W-4473 counts as passed.",
            "The mark is to be entered without changes.",
            "Das ist mit der Leitung vereinbart.",
        ] {
            assert!(claims(&built_in(), &words(text)), "{text}");
        }
    }

    #[test]
    fn reports_and_requests_claim_nothing() {
        for text in [
            "Please approve the invoice by Friday.",
            "The deposit is 250 for private parties.",
            "We count on you.",
            "Rehearsal moved to Thursday 19:30.",
        ] {
            assert!(!claims(&built_in(), &words(text)), "{text}");
        }
    }
}
