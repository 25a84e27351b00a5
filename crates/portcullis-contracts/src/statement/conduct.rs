//! Statements about what a reply refuses and whom it names.
//!
//! As strict as those about documents: *refuses illegal requests* and *names nobody* are more than lists can tell.

use super::quantity::is_negation;
use super::reading::{Found, Reading};
use super::token::Kind;
use crate::family::Family;

const REFUSE: &[&str] = &["refuse", "refusal", "decline", "reject", "deny"];
const COMPLY: &[&str] =
    &["comply", "follow", "carry", "carried", "execute", "fulfil", "fulfill", "obey", "perform", "act"];
const INSTRUCTION: &[&str] =
    &["instruction", "request", "prompt", "order", "command", "task", "operation", "action", "demand"];
const DANGEROUS: &[&str] = &["dangerous", "unsafe", "harmful", "hazardous", "risky"];

/// High-risk instructions are refused or escalated.
pub(super) fn refuses(reading: &Reading) -> Option<Found> {
    let negations = reading.head().iter().filter(|token| is_negation(token)).count();
    let refuse = reading.has(REFUSE);
    let escalate = reading.has(&["escalate", "escalation"]);
    let complies = negations == 1 && reading.has(COMPLY) && !refuse;
    if !(complies || negations == 0 && (refuse || escalate)) || !reading.quantities.is_empty() {
        return None;
    }
    let high = reading.has(&["risk"]) && reading.has(&["high"]);
    let dangerous = reading.head().iter().find(|token| token.is(DANGEROUS));
    let (used, instructions) = named(reading);
    let listed = !instructions.is_empty();
    if !(listed || (high || dangerous.is_some()) && reading.has(INSTRUCTION)) {
        return None;
    }
    let mut found = Found::new(
        Family::Refuses { instructions },
        &[
            "refuse",
            "refusal",
            "decline",
            "reject",
            "deny",
            "escalate",
            "escalation",
            "comply",
            "follow",
            "carry",
            "carried",
            "execute",
            "fulfil",
            "fulfill",
            "obey",
            "perform",
            "act",
            "instruction",
            "request",
            "prompt",
            "order",
            "command",
            "task",
            "operation",
            "action",
            "demand",
            "high",
            "risk",
            "dangerous",
            "unsafe",
            "harmful",
            "hazardous",
            "risky",
            "out",
            "upon",
            "cannot",
            "can't",
            "won't",
        ],
    )
    .using(used)
    .strictly();
    if let Some(word) = dangerous.filter(|_| !listed) {
        found = found.note(format!("`{}` is read as high-risk: those on the list", word.raw));
    }
    if complies {
        found =
            found.note("not doing it is read as refusing or escalating it; a reply that ignores it fails");
    } else if !refuse {
        found = found.note("`escalate` is read as refuse or escalate");
    }
    Some(found)
}

/// Whose names a list can hold.
const PERSONS: &[&str] = &[
    "customer",
    "client",
    "patient",
    "employee",
    "user",
    "person",
    "people",
    "individual",
    "staff",
    "colleague",
    "coworker",
    "worker",
    "personnel",
    "member",
    "student",
    "pupil",
    "teacher",
    "child",
    "children",
    "guest",
    "tenant",
    "donor",
    "supplier",
    "vendor",
    "partner",
    "competitor",
    "company",
    "companies",
    "organization",
    "organisation",
    "applicant",
    "candidate",
    "subscriber",
    "buyer",
    "witness",
    "victim",
    "contact",
    "participant",
];

/// None of some names occurs.
pub(super) fn names(reading: &Reading) -> Option<Found> {
    let negations = reading.head().iter().filter(|token| is_negation(token)).count();
    let redacts = reading.has(&["redact", "remove", "mask", "anonymize", "anonymise", "hide", "withhold"])
        || reading.pair(&["leave", "left"], &["out"]).is_some();
    let name = reading.has(&["name"]);
    let persons = reading.has(PERSONS);
    let listed = reading.head().iter().any(|token| {
        ["listed", "list", "following", "these", "below"]
            .iter()
            .any(|word| token.raw.eq_ignore_ascii_case(word))
    });
    let forbids = negations == 1 || negations == 0 && redacts;
    if !forbids || !reading.quantities.is_empty() || !(name || persons && listed) {
        return None;
    }
    let (used, names) = named(reading);
    let whose = persons || listed || !names.is_empty();
    let mut found = Found::new(
        Family::Names { names },
        &[
            "name",
            "mention",
            "reveal",
            "disclose",
            "contain",
            "list",
            "listed",
            "following",
            "below",
            "these",
            "none",
            "redact",
            "remove",
            "mask",
            "anonymize",
            "anonymise",
            "hide",
            "withhold",
            "leave",
            "left",
            "out",
            "omit",
            "exclude",
            "free",
            "personal",
            "real",
            "private",
            "actual",
            "appear",
            "occur",
            "leak",
            "expose",
            "print",
            "repeat",
            "state",
            "spell",
            "their",
        ],
    )
    .explaining(PERSONS)
    .using(used)
    .strictly();
    if !whose {
        found.obstacle = Some(
            "it does not say whose names: write `customer names`, or `the listed names`, and list them"
                .to_owned(),
        );
    }
    Some(found)
}

/// What the statement itself puts in quotation marks; an example is not a list.
fn named(reading: &Reading) -> (Vec<usize>, Vec<String>) {
    let mut out = (Vec::new(), Vec::new());
    for (at, token) in reading.head().iter().enumerate() {
        let texts = match &token.kind {
            Kind::Literal(text) => std::slice::from_ref(text),
            Kind::List(texts) => texts.as_slice(),
            _ => continue,
        };
        let texts = texts.iter().map(|text| text.trim()).filter(|text| text.contains(char::is_alphanumeric));
        out.1.extend(texts.map(str::to_owned));
        out.0.push(at);
    }
    out
}
