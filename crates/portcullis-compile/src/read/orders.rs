//! Rules about what comes before what, and how long after.

use std::ops::Range;

use super::context::Context;
use super::events::{self, Order};
use super::limits;
use super::look::Look;
use super::quantity;
use super::times::Timing;
use super::tools::{About, argument};
use super::values;
use super::words::{Clause, Word};
use crate::draft::{Put, Topic};
use crate::rule::{Asks, Past, Stop};

/// Makes a rule of a clause about an order of calls, if it is one.
pub(super) fn read(context: &mut Context<'_>, look: &Look, clause: &Clause, timing: &Timing) -> bool {
    if gap(context, look, clause) {
        return true;
    }
    if timing.times.is_some() {
        return false;
    }
    let acts = |range: Range<usize>| {
        !matches!(about(context, look, clause, range.clone()), About::Nothing)
            || names_value(context, look, range)
    };
    let Some(order) = events::order(look, acts) else { return false };
    // `never below /etc when writing` is about one call.
    if let Order::Excludes { earlier, judged, oneself: false } = &order
        && look.find(&["after|once|following|having", "as soon as"]).is_none()
        && about(context, look, clause, earlier.clone()) == about(context, look, clause, judged.clone())
    {
        return false;
    }
    match order {
        Order::Requires { judged, required } => requires(context, look, clause, &judged, &required),
        Order::Excludes { earlier, judged, oneself } => {
            excludes(context, look, clause, &earlier, &judged, oneself)
        }
    }
    true
}

fn about(context: &Context<'_>, look: &Look, clause: &Clause, range: Range<usize>) -> About {
    let words: Vec<&Word> = look.left_in(range).into_iter().filter_map(|at| look.words.get(at)).collect();
    context.tools.about(&words, &clause.topic, |_| true)
}

/// Whether a value of any tool's arguments is named, such as `production`.
fn names_value(context: &Context<'_>, look: &Look, range: Range<usize>) -> bool {
    context
        .tools
        .spec
        .tools
        .iter()
        .any(|tool| has_values(context, look, std::slice::from_ref(&tool.name), &range))
}

/// The tools that a part of a clause is about, or a question.
fn tools(
    context: &mut Context<'_>,
    look: &Look,
    clause: &Clause,
    range: &Range<usize>,
) -> Option<Vec<String>> {
    match about(context, look, clause, range.clone()) {
        About::These(tools) => Some(tools),
        About::Either(tools) => {
            let text = format!("which tool is meant: {}?", tools.join(" or "));
            context.ask(Topic::Tool, look.span(range), text, Put::Append);
            None
        }
        About::Nothing => None,
    }
}

/// `between two reboots of the same host there must be at least 10 minutes`
#[expect(clippy::too_many_lines, reason = "one list of forms, in the order in which they are looked for")]
fn gap(context: &mut Context<'_>, look: &Look, clause: &Clause) -> bool {
    let lead = look.find(&[
        "between two|any|2|consecutive|successive|each|the? two|2?",
        "between",
        "wait at? least?",
        "pause|gap|break|interval|distance|cooldown|cool-down of?",
        "again within|for|until|before",
        "apart",
        "once every",
        "no more often than",
        "more often|frequently than",
        "at least",
    ]);
    let Some(lead) = lead else { return false };
    let found = (0..look.len())
        .find_map(|at| quantity::stretch(look, at).map(|(seconds, length)| (at..at + length, seconds)));
    let Some((range, seconds)) = found else { return false };
    let between = look
        .find(&[
            "between",
            "wait|waits|waited",
            "pause|gap|break|interval|cooldown|cool-down",
            "apart",
            "again within",
            "once every",
            "often|frequently than",
        ])
        .is_some();
    let minimum = look
        .find(&[
            "at least",
            "minimum|min",
            "no|not less than",
            "again within",
            "once every",
            "apart",
            "cooldown|cool-down",
            "often|frequently than",
            "pause|gap|break|interval",
            "must|has|have|wait|waits",
        ])
        .is_some();
    if !between || !minimum {
        return false;
    }
    let mut rest = look.clone();
    rest.take(range.clone());
    rest.take(lead);
    let tools = match about(context, &rest, clause, 0..rest.len()) {
        About::These(tools) => tools,
        About::Either(tools) => {
            let text = format!("which tool is meant: {}?", tools.join(" or "));
            context.ask(Topic::Tool, clause.span(), text, Put::Append);
            return true;
        }
        About::Nothing => return false,
    };
    let same = same_key(context, &rest, &tools, &tools);
    let key = match same {
        Same::Key(earlier, judged) => Some((earlier, judged)),
        Same::Unknown(range) => {
            context.ask(Topic::Argument, look.span(&range), "which argument is this?", Put::Append);
            return true;
        }
        Same::Unsaid(Some((own, _))) => {
            let text = format!("for the same `{own}`, or for all calls together?");
            context.ask_or(Topic::Scope, clause.span(), text, "for all calls together", Put::Append);
            None
        }
        Same::Unsaid(None) => None,
    };
    let past = Past { asks: Asks::Count(1), same: key, within: Some(limits::gap(seconds)) };
    context.rule(clause.sentence.clone(), &tools, Vec::new(), Some(past), Stop::Deny);
    leftovers(context, &rest, &tools, clause);
    true
}

/// Whether the two calls are about the same thing.
enum Same {
    /// The arguments of the earlier and of the judged call.
    Key(String, String),
    /// These words name no argument of both.
    Unknown(Range<usize>),
    /// Nothing is said; the argument that both have.
    Unsaid(Option<(String, String)>),
}

fn same_key(context: &Context<'_>, look: &Look, earlier: &[String], judged: &[String]) -> Same {
    let spec = context.tools.spec;
    let (Some(earlier), Some(judged)) =
        (earlier.first().and_then(|tool| spec.tool(tool)), judged.first().and_then(|tool| spec.tool(tool)))
    else {
        return Same::Unsaid(None);
    };
    let shared = judged.arguments.iter().find(|own| {
        let names_a_thing = super::lexicon::parts(&own.name)
            .iter()
            .any(|part| ["id", "number", "key", "ref", "code", "name"].contains(&part.as_str()));
        let only =
            judged.arguments.iter().filter(|other| earlier.argument(&other.name).is_some()).count() == 1;
        earlier.argument(&own.name).is_some() && (names_a_thing || only)
    });
    let shared = shared.map(|own| (own.name.clone(), own.name.clone()));
    for at in 0..look.len() {
        let Some(lead) = look
            .phrase_at(at, "the? very? same|identical|exact")
            .or_else(|| look.phrase_at(at, "that|this|per|its|their"))
        else {
            continue;
        };
        let end = look.len().min(lead + 3);
        for last in (lead + 1..=end).rev() {
            let words = look.slice(lead..last);
            if let (Some(one), Some(other)) = (argument(earlier, &words), argument(judged, &words)) {
                return Same::Key(one.name.clone(), other.name.clone());
            }
        }
        let strong = look.find_in(at..lead, &["same", "identical"]).is_some();
        if strong && shared.is_none() {
            return Same::Unknown(at..end);
        }
        let names = look.words.get(lead).is_some_and(|word| {
            context.tools.knows(&judged.name, word) && context.tools.knows(&earlier.name, word)
        });
        if let (true, Some((one, other))) = (strong || names, &shared) {
            return Same::Key(one.clone(), other.clone());
        }
    }
    // `on it`, `for them`: what was spoken of.
    let pronoun = (1..look.len()).any(|at| look.is_any(at, &["it", "them", "there", "one"]));
    match shared {
        Some((one, other)) if pronoun => Same::Key(one, other),
        shared => Same::Unsaid(shared),
    }
}

fn has_values(context: &Context<'_>, look: &Look, tools: &[String], range: &Range<usize>) -> bool {
    let mut part = look.clone();
    part.take(0..range.start);
    part.take(range.end..look.len());
    let tool = tools.first().and_then(|tool| context.tools.spec.tool(tool));
    tool.is_some_and(|tool| !values::read(&mut part, tool, false).is_empty())
}

fn requires(
    context: &mut Context<'_>,
    look: &Look,
    clause: &Clause,
    judged: &Range<usize>,
    required: &Range<usize>,
) {
    let mut look = look.clone();
    let window = quantity::window(&mut look);
    let (judging, needed) = (tools(context, &look, clause, judged), tools(context, &look, clause, required));
    let (Some(judging), Some(needed)) = (judging.clone().or_else(|| needed.clone()), needed.or(judging))
    else {
        return;
    };
    let narrowed =
        has_values(context, &look, &judging, judged) || has_values(context, &look, &needed, required);
    if narrowed || judging == needed {
        let message = "an order tells calls apart by their tool, not yet by an argument";
        context.refuse(
            clause.span(),
            message,
            "offer what differs as a tool of its own, or hold the call for a person",
        );
        return;
    }
    let same = match same_key(context, &look, &needed, &judging) {
        Same::Key(one, other) => Some((one, other)),
        Same::Unknown(range) => {
            context.ask(
                Topic::Argument,
                look.span(&range),
                "which argument of both tools is this?",
                Put::Append,
            );
            return;
        }
        Same::Unsaid(Some((one, other))) => {
            let text = format!("has it to be for the same `{one}`?");
            context.ask_or(Topic::Scope, clause.span(), text, &format!("for the same {one}"), Put::Append);
            Some((one, other))
        }
        Same::Unsaid(None) => None,
    };
    let within = window.and_then(|window| window.window);
    let past = Past { asks: Asks::Before(needed.clone()), same, within };
    context.rule(clause.sentence.clone(), &judging, Vec::new(), Some(past), Stop::Deny);
    let all: Vec<String> = judging.iter().chain(&needed).cloned().collect();
    leftovers(context, &look, &all, clause);
    context.last_tools = judging;
}

fn excludes(
    context: &mut Context<'_>,
    look: &Look,
    clause: &Clause,
    earlier: &Range<usize>,
    judged: &Range<usize>,
    oneself: bool,
) {
    let mut look = look.clone();
    let window = quantity::window(&mut look);
    let (judging, before) = (tools(context, &look, clause, judged), tools(context, &look, clause, earlier));
    let (Some(judging), Some(before)) = (judging.clone().or_else(|| before.clone()), before.or(judging))
    else {
        return;
    };
    let narrowed =
        has_values(context, &look, &judging, judged) || has_values(context, &look, &before, earlier);
    if narrowed || judging == before {
        let message = "an order tells calls apart by their tool, not yet by an argument";
        context.refuse(
            clause.span(),
            message,
            "offer what differs as a tool of its own, or hold the call for a person",
        );
        return;
    }
    let same = match same_key(context, &look, &before, &judging) {
        Same::Key(one, other) => Some((one, other)),
        Same::Unknown(range) => {
            context.ask(
                Topic::Argument,
                look.span(&range),
                "which argument of both tools is this?",
                Put::Append,
            );
            return;
        }
        Same::Unsaid(Some((one, other))) if oneself => Some((one, other)),
        Same::Unsaid(Some((one, _))) => {
            let text = format!("after any of them, or only for the same `{one}`?");
            context.ask_or(Topic::Scope, clause.span(), text, "after any", Put::Append);
            None
        }
        Same::Unsaid(None) => None,
    };
    let within = window.and_then(|window| window.window);
    let past = Past { asks: Asks::After(before.clone()), same, within };
    context.rule(clause.sentence.clone(), &judging, Vec::new(), Some(past), Stop::Deny);
    let all: Vec<String> = judging.iter().chain(&before).cloned().collect();
    leftovers(context, &look, &all, clause);
    context.last_tools = judging;
}

/// Asks about words that neither tool knows.
fn leftovers(context: &mut Context<'_>, look: &Look, tools: &[String], clause: &Clause) {
    /// Words about orders.
    const ORDER: &[&str] = &[
        "rest",
        "whoever",
        "least",
        "must",
        "never",
        "happened",
        "completed",
        "finished",
        "succeeded",
        "successfully",
        "been",
        "immediately",
        "anymore",
        "there",
        "two",
        "minutes",
        "wait",
        "gap",
        "often",
        "apart",
        "consecutive",
        "provided",
        "following",
        "ago",
        "beforehand",
        "taken",
        "was",
        "were",
        "last",
        "past",
        "remainder",
        "existing",
        "whose",
        "themselves",
        "wasn't",
        "hasn't",
        "weren't",
        "haven't",
        "can't",
        "mustn't",
        "cannot",
        "don't",
        "version",
    ];
    let open: Vec<usize> = look
        .left_in(0..look.len())
        .into_iter()
        .filter(|at| {
            let Some(word) = look.words.get(*at) else { return false };
            let plain = super::lexicon::is_filler(&word.text) || ORDER.contains(&word.text.as_str());
            !plain
                && !tools.iter().any(|tool| context.tools.knows(tool, word))
                && quantity::number(look, *at).is_none()
        })
        .collect();
    if let (Some(first), Some(last)) = (open.first(), open.last()) {
        let span = look.span(&(*first..*last + 1));
        let _ = clause;
        context.ask(
            Topic::Meaning,
            span,
            "what does this mean here? say it by tools and arguments",
            Put::Replace,
        );
    }
}
