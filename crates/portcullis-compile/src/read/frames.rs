//! From slots to rules. A clause fills some slots (who, which values, when, how much, what has to be given) and says of
//! them that they are forbidden, or that nothing else is allowed; positions only decide which slot *only* is about.

use super::clause::{Found, people_of};
use super::context::Context;
use super::lexicon::{parts, sense};
use super::limits;
use super::quantity::Says;
use super::tools::{Tools, argument, reads};
use super::values::{self, Value};
use super::words::Word;
use crate::draft::{Put, Topic};
use crate::rule::{Condition, Past, Stop, Test};
use crate::spec::Tool;

/// What a clause stops of one tool.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Made {
    pub(super) when: Vec<Condition>,
    pub(super) past: Option<Past>,
    pub(super) stop: Stop,
}

impl Made {
    pub(super) fn deny(when: Vec<Condition>) -> Self {
        Self { when, past: None, stop: Stop::Deny }
    }
}

/// One clause and one of its tools.
pub(super) struct Frame<'f, 's> {
    pub(super) found: &'f mut Found,
    pub(super) tool: &'s Tool,
    pub(super) values: Vec<Value>,
}

/// Makes the rules of a clause. Whether there is one.
pub(super) fn build(context: &mut Context<'_>, found: &mut Found) -> bool {
    if let Some(vague) = found.timing.vague.clone() {
        let text = format!("from when until when are `{}`, and in which time zone?", found.words(&vague));
        context.ask(Topic::Hours, found.place(&vague), text, Put::Replace);
        return true;
    }
    if let Some(vague) = found.who.vague.clone() {
        let text = format!("who is `{}`? name a role", found.words(&vague));
        context.ask(Topic::Who, found.place(&vague), text, Put::Replace);
        return true;
    }
    zones(context, found);
    let spec = context.tools.spec;
    let mut all: Vec<(String, Vec<Made>)> = Vec::new();
    let before = found.look.clone();
    let mut taken = found.look.clone();
    for name in found.tools.clone() {
        let Some(tool) = spec.tool(&name) else { continue };
        found.look = before.clone();
        let values = values::read(&mut found.look, tool, found.mood.bans.is_some());
        let mut frame = Frame { found, tool, values };
        let made = one(context, &mut frame);
        taken.take_all(&found.look);
        all.push((name, made));
    }
    found.look = taken;
    let mut is_made = false;
    // Tools of which the same is said share a rule.
    while let Some((name, made)) = (!all.is_empty()).then(|| all.remove(0)) {
        for one in made {
            let mut tools = vec![name.clone()];
            for (other, theirs) in &mut all {
                if let Some(place) = theirs.iter().position(|their| *their == one) {
                    theirs.remove(place);
                    tools.push(other.clone());
                }
            }
            is_made = true;
            context.rule(found.sentence.clone(), &tools, one.when, one.past, one.stop);
        }
    }
    is_made || context.has_asked(&found.span)
}

fn zones(context: &mut Context<'_>, found: &Found) {
    if let Some(place) = &found.timing.place_zone {
        let text = "which offset from UTC? zones with summer time change twice a year";
        context.ask(Topic::Zone, found.place(place), text, Put::Replace);
    }
    if let Some(place) = &found.timing.yearless {
        context.ask(Topic::Hours, found.place(place), "in which year?", Put::Append);
    }
    let timed = found.timing.times.as_ref().is_some_and(|times| times.minutes.is_some());
    if timed && !found.timing.zoned && found.timing.place_zone.is_none() {
        let place = found.timing.at.clone().unwrap_or(0..found.look.len());
        context.ask_or(Topic::Zone, found.place(&place), "in which time zone?", "UTC", Put::Append);
    }
}

fn one(context: &mut Context<'_>, frame: &mut Frame<'_, '_>) -> Vec<Made> {
    if frame.found.approval.is_some() {
        return limits::approval(context, frame);
    }
    if let Some(made) = limits::repeated(context, frame) {
        return made;
    }
    if !frame.found.quantities.is_empty() && !filters_by_amount(frame) {
        return limits::read(context, frame);
    }
    if limits::is_limit(frame.found) {
        let place = frame.found.span.clone();
        context.ask(Topic::Amount, place, "how many, or how much?", Put::Append);
        return Vec::new();
    }
    generic(context, frame)
}

/// Whether the amounts of a clause only say which calls it is about: `above 100 only managers`.
fn filters_by_amount(frame: &Frame<'_, '_>) -> bool {
    let found = &frame.found;
    let beyond = found.quantities.iter().all(|quantity| {
        matches!(quantity.says, Says::Over | Says::AtLeast | Says::Under) && quantity.range.start > 0
            || quantity.range.start == 0
    });
    let other = !found.who.only.is_empty()
        || required(found, frame.tool).is_some()
        || found.mood.only.is_some() && (found.timing.times.is_some() || !frame.values.is_empty());
    beyond && other && found.window.is_none()
}

/// A slot: what it says of a call, and where it stands.
struct Slot {
    condition: Condition,
    at: usize,
    fixed: bool,
}

/// Who, when, which values, what has to be given: forbidden, or nothing else allowed.
fn generic(context: &mut Context<'_>, frame: &mut Frame<'_, '_>) -> Vec<Made> {
    let mut slots = slots(context, frame);
    let mut when = people_of(&frame.found.who);
    when.extend(limits::filters(context, frame));
    if let Some((name, places)) = required(frame.found, frame.tool) {
        for at in places {
            frame.found.look.take(at..at + 1);
        }
        when.extend(slots.into_iter().map(|slot| slot.condition));
        when.push(Condition::Not(Box::new(Condition::Argument(name, Test::Given))));
        return vec![Made::deny(when)];
    }
    if !frame.found.who.only.is_empty() {
        when.extend(slots.into_iter().map(|slot| slot.condition));
        when.push(Condition::Not(Box::new(Condition::Role(frame.found.who.only.clone()))));
        return vec![Made::deny(when)];
    }
    let mood = &frame.found.mood;
    let inverts = slots.iter().any(|slot| slot.fixed);
    if mood.bans.is_some() || inverts {
        let plain = mood.bans.is_some() || mood.must.is_some();
        when.extend(slots.into_iter().map(|slot| slot.condition));
        return if plain { vec![Made::deny(when)] } else { Vec::new() };
    }
    let anchor = mood.only.as_ref().or(mood.must.as_ref());
    let topical = frame.found.topic > 0 && frame.found.timing.times.is_some();
    let at = match anchor {
        Some(anchor) => anchor.start,
        None if topical => 0,
        None => return Vec::new(),
    };
    if slots.is_empty() {
        asks_what(context, frame);
        return Vec::new();
    }
    let focus = focus(&slots, at);
    let focused = slots.remove(focus);
    when.extend(slots.into_iter().map(|slot| slot.condition));
    when.push(Condition::Not(Box::new(focused.condition)));
    vec![Made::deny(when)]
}

/// The slot that *only* is about: the first one after it, or the last one before.
fn focus(slots: &[Slot], anchor: usize) -> usize {
    let after =
        slots.iter().enumerate().filter(|(_, slot)| slot.at >= anchor).min_by_key(|(_, slot)| slot.at);
    let before = slots.iter().enumerate().max_by_key(|(_, slot)| slot.at);
    after.or(before).map_or(0, |(place, _)| place)
}

fn slots(context: &mut Context<'_>, frame: &Frame<'_, '_>) -> Vec<Slot> {
    let found = &frame.found;
    let mut slots = Vec::new();
    for value in &frame.values {
        let at = value.words.iter().min().copied().unwrap_or(0);
        let said = Condition::Argument(value.argument.clone(), value.test.clone());
        let inverted = found.inverted(at);
        let condition = if inverted { Condition::Not(Box::new(said)) } else { said };
        slots.push(Slot { condition, at, fixed: inverted });
        if let Test::OneOf(values) = &value.test {
            context.mentioned.entry(value.argument.clone()).or_default().extend(values.iter().cloned());
        }
    }
    if let Some((at, name, known)) = remaining(context, frame) {
        let known = Condition::Argument(name, Test::OneOf(known));
        slots.push(Slot { condition: Condition::Not(Box::new(known)), at, fixed: false });
    }
    if let Some(times) = &found.timing.times {
        let at = found.timing.at.as_ref().map_or(0, |at| at.start);
        let said = Condition::At(times.clone());
        let inverted = found.inverted(at);
        let condition = if inverted { Condition::Not(Box::new(said)) } else { said };
        slots.push(Slot { condition, at, fixed: inverted });
    }
    slots
}

/// `any other currency`: all values but those that were named before.
fn remaining(context: &Context<'_>, frame: &Frame<'_, '_>) -> Option<(usize, String, Vec<String>)> {
    let look = &frame.found.look;
    let other = look.find_left(&["other|others|different|remaining|another"])?;
    let words = look.slice(other.end..(other.end + 2).min(look.len()));
    let named = argument(frame.tool, &words).or_else(|| argument(frame.tool, words.get(..1)?))?;
    let known = context.mentioned.get(&named.name).filter(|known| !known.is_empty())?;
    let is_value = frame.values.iter().any(|value| value.argument == named.name);
    (!is_value).then(|| (other.start, named.name.clone(), known.clone()))
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
    "country",
    "channel",
    "folder",
    "address",
    "region",
    "contact",
    "organisation",
    "organization",
    "company",
    "recipient",
    "customer",
    "account",
    "host",
    "repository",
    "repo",
    "site",
    "colleague",
    "bank",
    "provider",
    "place",
    "path",
    "director",
    "namespace",
    "cluster",
    "bucket",
    "service",
    "team",
    "project",
    "branch",
    "environment",
    "queue",
];

/// Asks what *only* is about.
fn asks_what(context: &mut Context<'_>, frame: &Frame<'_, '_>) {
    let found = &frame.found;
    let single = |word: &str| match word.strip_suffix("ies") {
        Some(rest) => format!("{rest}y"),
        None => word.trim_end_matches(['s', '\'']).to_owned(),
    };
    let listed = found.look.left_in(0..found.look.len()).into_iter().find(|at| {
        let own = single(found.look.text(*at));
        LISTED.iter().any(|noun| noun.trim_end_matches('s') == own)
    });
    let Some(noun) = listed else {
        if found.mood.only.is_some() {
            let text = "only what? say who, when, how much, or which values";
            context.ask(Topic::Meaning, found.span.clone(), text, Put::Replace);
        }
        return;
    };
    let stops = [
        "to", "at", "from", "in", "on", "with", "for", "by", "under", "only", "be", "of", "is", "are",
        "into", "via",
    ];
    let first = (0..noun).rev().take_while(|at| !found.look.is_any(*at, &stops)).last().unwrap_or(noun);
    let range = first..noun + 1;
    let text = format!("which are `{}`? list them", found.words(&range));
    context.ask(Topic::List, found.place(&range), text, Put::Replace);
}

/// Words before an argument that has to be given.
const HAVING: &str = "have|has|carry|carries|include|includes|contain|contains|give|gives|given|need|needs|require|requires|state|states|stating|name|names|mention|with|specify|specifies|provide|provides|quote|bear|come|comes|fill|set|without|no|missing|lack|lacks|lacking|empty|blank|accompanied|reference|references|cite";

/// Words after an argument that has to be given.
const GIVEN: &str = "must|should|shall|has|have|needs|need to? be given|stated|specified|provided|supplied|filled|entered|recorded|noted|quoted|included";

/// The argument that has to be given, where a clause says so, and the places of its words.
fn required(found: &Found, tool: &Tool) -> Option<(String, Vec<usize>)> {
    let mood = &found.mood;
    let look = &found.look;
    let lacks = look.find(&["without|missing|lacking|lacks|lack|empty|blank"]);
    if mood.must.is_none() && !(mood.bans.is_some() && lacks.is_some()) {
        return None;
    }
    if let Some(given) = look.find(&[GIVEN]).filter(|_| mood.must.is_some() && lacks.is_none()) {
        // `a reason must be given`
        let near = given.start.saturating_sub(4)..given.start;
        let at =
            near.rev().find(|at| look.words.get(*at).is_some_and(|word| argument(tool, &[word]).is_some()));
        if let Some((at, word)) = at.and_then(|at| Some((at, look.words.get(at)?))) {
            return argument(tool, &[word])
                .map(|named| (named.name.clone(), (at..at + 1).chain(given).collect()));
        }
    }
    let having = match lacks {
        Some(lacks) => lacks.end,
        None => look.find(&[HAVING]).filter(|found| found.len() == 1)?.end,
    };
    let near = having..look.len().min(having + 5);
    let ends = look
        .find_in(near.clone(), &[",", "when|if|before|after|for|that|which|of"])
        .map_or(near.end, |ends| ends.start);
    let words: Vec<&Word> = look.slice(having..ends);
    let named =
        argument(tool, &words).or_else(|| words.iter().rev().find_map(|word| argument(tool, &[word])))?;
    let own: Vec<String> = parts(&named.name).iter().map(|part| sense(part)).collect();
    let places = (having..ends).filter(|at| {
        look.words.get(*at).is_some_and(|word| own.contains(&word.sense) || argument(tool, &[word]).is_some())
    });
    let is_value = (having..ends).any(|at| look.is_used(at));
    (!is_value).then(|| (named.name.clone(), places.collect()))
}

/// `read access only`, `read-only`: it is about all tools that do more.
pub(super) fn read_only(found: &mut Found, tools: &Tools<'_>) {
    let Some(phrase) = found.look.find_left(&[
        "read access only|rights?",
        "read-only access|rights|permissions?",
        "only read",
        "only have|get|has|gets read|viewing|view access|rights|permission?",
        "readonly access?",
        "read only access?",
        "look but|not touch",
        "hands off writes?",
    ]) else {
        return;
    };
    let acting: Vec<String> =
        tools.spec.tools.iter().filter(|tool| !reads(tool)).map(|tool| tool.name.clone()).collect();
    if acting.is_empty() {
        return;
    }
    found.look.take(phrase.clone());
    found.mood.bans = Some(phrase);
    found.mood.only = None;
    found.tools = acting;
}
