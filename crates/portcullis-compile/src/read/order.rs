//! What has to come before what, what must not come after what, and how long after.

use std::ops::Range;

use super::anchors::Mood;
use super::lexicon::parts;
use super::lexicon::sense;
use super::look::Look;
use crate::spec::{Argument, Tool};

/// Two parts of a clause that are about calls, and how they stand to each other.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Order {
    /// The calls that are judged.
    pub(super) judged: Range<usize>,
    /// The earlier calls.
    pub(super) other: Range<usize>,
    /// The words that join them.
    pub(super) by: Range<usize>,
    /// Whether the earlier calls are required, and not what forbids the judged ones.
    pub(super) requires: bool,
    /// Whether it is about what the same person did.
    pub(super) oneself: bool,
}

/// After these words stands what is required.
const REQUIRED: &[&str] = &[
    "unless|until|till",
    "without first? having? having?",
    "only after|once|if|when|where|following",
    "provided|assuming|given that?",
    "as long as",
    "must|has|have to? be preceded by",
    "needs|requires|require|need a|an|the? prior|previous|recent|fresh|successful|completed|earlier|preceding",
    "needs|requires|require|need that",
    "must|has|have to? come|happen|be|follow after",
    "must|has|have to? follow",
    "if not|no",
];
/// After these words stands what came earlier.
const EARLIER: &[&str] = &["as soon as", "after|once|following|having|when|whenever|if|since", "the moment"];
/// Words with which the judged part begins after one that stands first.
const RESTARTS: &[&str] = &[
    "it|the must|may|can|should|can't|cannot|mustn't|shall|is",
    "the agent|bot|assistant",
    "no|never|nobody|nothing|don't|stop|only|block|deny|refuse",
];

/// Reads an order. `acts` says whether a stretch of words is about calls, and `differ` whether two are about different ones.
pub(super) fn order(
    look: &Look,
    mood: &Mood,
    differ: &dyn Fn(&Range<usize>, &Range<usize>) -> bool,
) -> Option<Order> {
    let found =
        |judged: Range<usize>, other: Range<usize>, by: &Range<usize>, requires: bool, oneself: bool| {
            let by = by.clone();
            (!judged.is_empty() && !other.is_empty() && differ(&judged, &other)).then_some(Order {
                judged,
                other,
                by,
                requires,
                oneself,
            })
        };
    if let Some(order) = oneself(look, mood, &found) {
        return Some(order);
    }
    let all = look.len();
    // `Before J, O`; `O before J`; `never J before O`
    if let Some(before) = look.find_left(&["before", "ahead of", "prior to"]) {
        if before.start == 0 {
            let split = restarts(look, before.end);
            if let Some(order) =
                split.into_iter().find_map(|at| found(before.end..at, at..all, &before, true, false))
            {
                return Some(order);
            }
        }
        let bans = mood.bans.as_ref().is_some_and(|bans| bans.start < before.start);
        let (left, right) = (0..before.start, before.end..all);
        let order = if bans {
            found(left, right, &before, true, false)
        } else {
            found(right, left, &before, true, false)
        };
        if order.is_some() {
            return order;
        }
    }
    for (phrases, is_required) in [(REQUIRED, true), (EARLIER, false)] {
        for joint in (0..all).filter_map(|at| at_place(look, at, phrases)) {
            let forbids = mood.bans.is_some();
            let narrows = mood.only.is_some() || mood.must.is_some();
            let requires = is_required || (!forbids && narrows);
            if !requires && !forbids {
                continue;
            }
            let order = if joint.start == 0 || look.text(joint.start.wrapping_sub(1)) == "," {
                restarts(look, joint.end)
                    .into_iter()
                    .find_map(|at| found(at..all, joint.end..at, &joint, requires, false))
            } else {
                None
            };
            let order = order.or_else(|| found(0..joint.start, joint.end..all, &joint, requires, false));
            if order.is_some() {
                return order;
            }
        }
    }
    None
}

fn at_place(look: &Look, at: usize, phrases: &[&str]) -> Option<Range<usize>> {
    let found = look.find_in(at..look.len(), phrases)?;
    (found.start == at && !look.is_used(at)).then_some(found)
}

/// Where the second part of a clause may begin whose first part begins with a connective: at a comma, at a new subject, or
/// at a word that forbids or obliges.
fn restarts(look: &Look, from: usize) -> Vec<usize> {
    let from = from + 1;
    let mut places: Vec<usize> = (from..look.len()).filter(|at| look.is_any(*at, &[",", ":"])).collect();
    for phrases in [RESTARTS, &["must|may|can|cannot|can't|should|is|are"]] {
        places.extend((from..look.len()).filter(|at| at_place(look, *at, phrases).is_some()));
    }
    places
}

/// Makes an order of two parts of a clause (judged, and earlier), their joint, whether the earlier one is required, and
/// whether one person does both. Nothing where the parts are not about two kinds of calls.
type Join<'f> = &'f dyn Fn(Range<usize>, Range<usize>, &Range<usize>, bool, bool) -> Option<Order>;

/// `whoever submits a claim can't approve it`, `nobody may approve a claim that they submitted`
fn oneself(look: &Look, mood: &Mood, found: Join<'_>) -> Option<Order> {
    let bans = mood.bans.as_ref()?;
    let all = look.len();
    if look.find_left(&["only", "unless", "until", "before", "after"]).is_some() {
        return None;
    }
    look.find(&[
        "whoever",
        "who|that",
        "themselves|himself|herself|own|self|oneself|yourself|itself",
        "you|they|they've",
    ])?;
    let who = look.find(&[
        "whoever",
        "person|user|one|employee|anyone|somebody|someone|people|those|agent|colleague who|that",
    ]);
    if let Some(who) = who {
        let (earlier, judged) = if who.start < bans.start {
            (who.end..bans.start, bans.end..all)
        } else {
            (who.end..all, bans.end..who.start)
        };
        if let Some(order) = found(judged, earlier, &who, false, true) {
            return Some(order);
        }
    }
    let that = look.find(&[
        "that|which|what|if|when they|he|she|it|you|they've|he's|the have|has|had?",
        "they|you|he|she have|has|had? themselves|himself?",
    ])?;
    found(0..that.start, that.end..all, &that, false, true)
}

/// The arguments of two tools that hold the same thing, and how sure that is.
pub(super) fn shared(earlier: &Tool, judged: &Tool) -> Option<(String, String)> {
    let mut best: Option<(u32, (String, String))> = None;
    for one in &earlier.arguments {
        for other in &judged.arguments {
            let score = alike(one, other);
            if score >= 3 && best.as_ref().is_none_or(|(known, _)| score > *known) {
                best = Some((score, (one.name.clone(), other.name.clone())));
            }
        }
    }
    best.map(|(_, pair)| pair)
}

/// Arguments that hold where or how, and not which thing.
const WHERE: &[&str] =
    &["env", "environment", "reason", "note", "comment", "text", "body", "message", "format", "dry"];

fn alike(one: &Argument, other: &Argument) -> u32 {
    let names =
        |argument: &Argument| parts(&argument.name).iter().map(|part| sense(part)).collect::<Vec<_>>();
    let (own, theirs) = (names(one), names(other));
    if one.kind != other.kind
        || own.iter().any(|part| WHERE.contains(&part.as_str()))
        || one.kind == "boolean"
    {
        return 0;
    }
    let mut score = 0;
    if own == theirs {
        score += 6;
    } else if own.iter().any(|part| theirs.contains(part) && part != "id" && part.len() > 1) {
        score += 3;
    }
    let plain = |argument: &Argument| argument.description.to_lowercase();
    if plain(one) == plain(other) && !one.description.is_empty() {
        score += 4;
    }
    let abbreviates =
        |short: &str, long: &str| long.len() > short.len() && short.len() > 2 && long.starts_with(short);
    if abbreviates(&one.name, &other.name) || abbreviates(&other.name, &one.name) {
        score += 3;
    }
    let key = own
        .iter()
        .chain(&theirs)
        .any(|part| ["id", "numb", "number", "no", "key", "ref"].contains(&part.as_str()));
    score + u32::from(key && score > 0)
}
