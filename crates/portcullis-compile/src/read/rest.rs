//! What is left of a clause: words that say nothing exact, and words that nothing was made of.

use super::clause::{ALLOWED, FREE, Found, MUST, NEGATIVE, words_of};
use super::context::Context;
use super::lexicon::{VAGUE, VAGUE_AMOUNTS, is_filler};
use crate::draft::{Put, Topic};

/// Asks about vague words. Whether there were any.
pub(super) fn vague(context: &mut Context<'_>, found: &mut Found) -> bool {
    let mut asked = false;
    let bounded =
        !found.quantities.is_empty() || found.approval.as_ref().is_some_and(|approval| approval.none);
    for at in found.look.left_in(0..found.look.len()) {
        let text = found.look.text(at).to_owned();
        let named = found.look.words.get(at).is_some_and(|word| context.tools.names(word) || word.quoted);
        if VAGUE_AMOUNTS.contains(&text.as_str()) && !bounded && !named {
            let place = found.place(&(at..at + 1));
            context.ask(
                Topic::Amount,
                place,
                format!("how much is `{text}`? such as `more than 100 EUR`"),
                Put::Replace,
            );
            asked = true;
        } else if VAGUE.contains(&text.as_str()) && !named {
            let next = found.look.words.get(at + 1).is_some_and(|word| context.tools.knows_anywhere(word));
            let range = at..at + 1 + usize::from(next);
            let text = format!(
                "what is `{}`? name what a call can be told by: an argument, an amount, a number of times",
                words_of(found, &range)
            );
            context.ask(Topic::Meaning, found.place(&range), text, Put::Replace);
            asked = true;
        } else {
            continue;
        }
        found.look.take(at..at + 1);
    }
    asked
}

/// Nouns of things of which a list is needed.
const LISTED: &[&str] = &[
    "domain",
    "list",
    "whitelist",
    "allowlist",
    "blacklist",
    "denylist",
    "partner",
    "vendor",
    "supplier",
    "countries",
    "country",
    "channel",
    "folder",
    "address",
    "region",
    "contact",
    "organisation",
    "organization",
    "company",
    "companies",
    "recipient",
    "customer",
    "account",
    "host",
    "repositories",
    "repository",
    "site",
    "colleague",
    "bank",
    "provider",
    "place",
    "path",
    "director",
];

/// Asks about words that nothing was made of.
#[expect(clippy::too_many_lines, reason = "one list of forms, in the order in which they are looked for")]
pub(super) fn left_over(context: &mut Context<'_>, found: &mut Found) {
    vague(context, found);
    let filler = |text: &str| {
        is_filler(text)
            || ALLOWED
                .iter()
                .chain(FREE)
                .chain(NEGATIVE)
                .chain(MUST)
                .any(|phrase| phrase.split([' ', '|']).any(|word| word.trim_end_matches('?') == text))
    };
    let left: Vec<usize> = found
        .look
        .left_in(0..found.look.len())
        .into_iter()
        .filter(|at| !filler(found.look.text(*at)))
        .collect();
    let known = |at: &usize| {
        found
            .look
            .words
            .get(*at)
            .is_some_and(|word| found.tools.iter().any(|tool| context.tools.knows(tool, word)))
    };
    let open: Vec<usize> = left.iter().copied().filter(|at| !known(at)).collect();
    let listed = left.iter().copied().find(|at| {
        let text = found.look.text(*at).trim_end_matches(['s', '\'']);
        LISTED.iter().any(|noun| noun.trim_end_matches('s') == text)
    });
    let wants_values = found.values.is_empty()
        && (found.only > 0 || found.must && !found.negative)
        && found.who.only.is_empty()
        && found.timing.times.is_none()
        && found.quantities.is_empty()
        && found.approval.is_none()
        && found.timing.vague.is_none();
    if let (true, Some(noun)) = (wants_values && found.who.vague.is_none(), listed) {
        let first = (0..noun)
            .rev()
            .take_while(|at| {
                !found.look.is_any(
                    *at,
                    &[
                        "to", "at", "from", "in", "on", "with", "for", "by", "under", "only", "be", "of",
                        "is", "are", "into", "via",
                    ],
                )
            })
            .last()
            .unwrap_or(noun);
        let is_listed = |at: &usize| {
            LISTED
                .iter()
                .any(|noun| noun.trim_end_matches('s') == found.look.text(*at).trim_end_matches(['s', '\'']))
        };
        let more = (noun + 1..found.look.len()).take_while(is_listed).count();
        let range = first..noun + 1 + more;
        let text = format!("which are `{}`? list them", words_of(found, &range));
        context.ask(Topic::List, found.place(&range), text, Put::Replace);
        return;
    }
    if let (Some(first), Some(last)) = (open.first(), open.last()) {
        let range = *first..*last + 1;
        let text = format!(
            "what does `{}` mean here? say it by tools, arguments, amounts, roles or times",
            words_of(found, &range)
        );
        context.ask(Topic::Meaning, found.place(&range), text, Put::Replace);
    } else if wants_values && found.who.vague.is_none() {
        context.ask(
            Topic::Meaning,
            found.span.clone(),
            "only what? say who, when, how much, or which values",
            Put::Replace,
        );
    }
}
