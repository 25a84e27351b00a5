//! Whose calls a limit counts together.

use std::ops::Range;

use super::clause::Found;
use super::lexicon::sense;
use super::tools::{argument, is_number};
use crate::spec::Tool;

/// Nouns of what is counted where calls are.
pub(super) const CALLS: &[&str] = &[
    "time",
    "times",
    "call",
    "calls",
    "request",
    "requests",
    "attempt",
    "attempts",
    "invocations",
    "operations",
    "actions",
    "uses",
    "tries",
    "executions",
    "lookups",
    "occasions",
    "transactions",
];
/// Whoever acts.
pub(super) const ACTORS: &[&str] = &[
    "agent",
    "user",
    "caller",
    "person",
    "operator",
    "principal",
    "bot",
    "assistant",
    "employee",
    "colleague",
    "analyst",
    "head",
    "individual",
    "login",
    "account holder",
    "agents",
    "users",
    "token",
    "identity",
];
/// Nouns of parties that come back again and again: without a window, a limit on them is open.
pub(super) const RETURNING: &[&str] = &[
    "customer",
    "client",
    "user",
    "employee",
    "patient",
    "account",
    "member",
    "guest",
    "person",
    "recipient",
    "supplier",
    "vendor",
    "household",
    "student",
    "tenant",
    "subscriber",
    "contact",
    "driver",
    "card",
    "iban",
    "address",
    "phone",
    "team",
    "project",
    "host",
    "device",
    "player",
    "donor",
];

/// Whose calls are counted together.
#[derive(Debug, Default)]
pub(super) struct Scope {
    /// The argument that has to be equal.
    pub(super) key: Option<String>,
    /// The noun.
    pub(super) noun: String,
    /// Whether it is the principal.
    pub(super) actor: bool,
    /// `per refund`: each by itself.
    pub(super) single: bool,
}

/// Whose calls are counted together, by `per customer`, `the same host`.
pub(super) fn scope(found: &Found, tool: &Tool) -> Scope {
    let look = &found.look;
    let mut scope = Scope::default();
    let mut at = 0;
    while at < look.len() {
        let lead = look
            .phrase_at(at, "for|to|of|from|on|per|by|with|at|in the|a|an|any|each|every|one? very? same|single|individual|given|one|particular")
            .or_else(|| look.phrase_at(at, "per|each|every the|a?"))
            .or_else(|| look.phrase_at(at, "the|one|any? very? same|identical"))
            .or_else(|| look.phrase_at(at, "for|to|of|with|on each|every|any|one|a"))
            .or_else(|| look.phrase_at(at, "that|this"))
            .or_else(|| look.phrase_at(at, "a|an|one"))
            .or_else(|| (at > 0 && look.is_any(at, &["and", "or"])).then_some(at + 1));
        let Some(lead) = lead else {
            at += 1;
            continue;
        };
        let end = (lead..look.len().min(lead + 4))
            .find(|place| {
                look.is_any(
                    *place,
                    &[
                        ",", "and", "or", "per", "in", "within", "a", "an", "each", "every", "at", "on",
                        "is", "are", "may", "can", "must", "unless", "than", "the", "to", "for", "that",
                        "more", "once", "twice", "only",
                    ],
                ) || look.is_used(*place)
            })
            .unwrap_or(look.len().min(lead + 4));
        note_scope(found, tool, at, lead..end, &mut scope);
        at = lead.max(at + 1);
    }
    let subject = look.find(&[
        "user|agent|caller|person|employee|analyst|bot|assistant|everyone|everybody|anyone|nobody|who|we|it",
    ]);
    let named =
        subject.is_some_and(|subject| subject.start < 3) || found.who.anybody || !found.who.about.is_empty();
    scope.actor |= named;
    scope
}

fn note_scope(found: &Found, tool: &Tool, at: usize, range: Range<usize>, scope: &mut Scope) {
    let look = &found.look;
    let words = look.slice(range.clone());
    let Some(first) = words.first() else { return };
    let strong = look.is_any(at, &["per", "each", "every", "and"])
        || look
            .find_in(
                at..range.start,
                &["same|each|every|single|individual|identical|given|one|any|particular"],
            )
            .is_some();
    let weak = !strong;
    if CALLS.contains(&first.text.as_str())
        || super::lexicon::parts(&tool.name).iter().any(|part| sense(part) == first.sense)
            && words.len() == 1
            && argument(tool, &words).is_none()
    {
        scope.single |= strong;
        return;
    }
    let own = argument(tool, &words).filter(|own| own.kind == "string" || own.kind == "integer");
    let own = own.filter(|own| {
        !is_number(own)
            || super::lexicon::parts(&own.name)
                .iter()
                .any(|part| ["id", "number", "nr", "no"].contains(&part.as_str()))
    });
    if let Some(own) = own {
        if scope.key.is_none()
            && (strong
                || words.iter().any(|word| RETURNING.iter().any(|noun| sense(noun) == word.sense))
                || found.negative()
                || weak && look.is_any(at, &["that", "a", "an", "for"]))
        {
            scope.key = Some(own.name.clone());
            scope.noun = first.text.clone();
        }
    } else if strong && words.iter().any(|word| ACTORS.contains(&word.text.as_str())) {
        scope.actor = true;
    } else if strong
        && look.is_any(at, &["per", "each", "every", "and"])
        && !first.text.is_empty()
        && super::quantity::number(look, range.start).is_none()
    {
        // `per doctor`: whoever acts.
        scope.actor = true;
        scope.noun = first.text.clone();
    }
}
