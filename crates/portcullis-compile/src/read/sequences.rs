//! Rules about what happened before: orders of calls, and gaps between them.

use std::ops::Range;

use super::clause::Found;
use super::context::Context;
use super::look::Look;
use super::order::{Order, shared};
use super::quantity;
use super::tools::{About, argument};
use super::values;
use super::words::Word;
use crate::draft::{Put, Topic};
use crate::rule::{Asks, Condition, Past, Stop, Window};
use crate::spec::Tool;

/// The tools that a stretch of words is about; none where that is open.
pub(super) fn about(context: &Context<'_>, found: &Found, range: &Range<usize>) -> Vec<String> {
    let words: Vec<&Word> =
        found.look.left_in(range.clone()).into_iter().filter_map(|at| found.look.words.get(at)).collect();
    match context.tools.about(&words, |_| true) {
        About::These(tools) => tools,
        About::Either(tools) if context.choice.is_some() => context.chosen(&tools),
        About::Either(mut tools) => {
            tools.truncate(1);
            tools
        }
        About::Nothing => Vec::new(),
    }
}

/// The tools of both parts of an order. Where both are about one tool, its values tell the calls apart: `goes to production
/// only after it was deployed to staging`.
pub(super) fn sides(
    context: &Context<'_>,
    found: &Found,
    judged: &Range<usize>,
    other: &Range<usize>,
) -> Option<(Vec<String>, Vec<String>)> {
    let (mut judging, mut needed) = (about(context, found, judged), about(context, found, other));
    if !judging.is_empty() && !needed.is_empty() && judging != needed {
        return Some((judging, needed));
    }
    if judging.is_empty() {
        judging.clone_from(&needed);
    } else if needed.is_empty() {
        needed.clone_from(&judging);
    }
    let [name] = judging.as_slice() else { return None };
    let tool = context.tools.spec.tool(name)?;
    let mut look = found.look.clone();
    let (one, two) = (narrowing(&mut look, tool, judged), narrowing(&mut look, tool, other));
    let same_arguments =
        !one.is_empty() && one.iter().map(Condition::argument).eq(two.iter().map(Condition::argument));
    (judging == needed && same_arguments && one != two).then_some((judging, needed))
}

/// Makes the rule of an order.
pub(super) fn order(context: &mut Context<'_>, found: &mut Found, order: &Order) {
    let Some((judged, earlier)) = sides(context, found, &order.judged, &order.other) else { return };
    found.tools = judged.iter().chain(&earlier).cloned().collect();
    found.look.take(order.by.clone());
    for at in 0..found.look.len() {
        if found.look.is_any(
            at,
            &["before", "beforehand", "first", "earlier", "previously", "prior", "then", "afterwards"],
        ) {
            found.look.take(at..at + 1);
        }
    }
    let of = |name: Option<&String>| name.and_then(|name| context.tools.spec.tool(name));
    let (Some(judging), Some(first)) = (of(judged.first()), of(earlier.first())) else { return };
    context.last_tools.clone_from(&judged);
    let when = narrowing(&mut found.look, judging, &order.judged);
    let needed = narrowing(&mut found.look, first, &order.other);
    let mentioned = |argument: &str, tool: &Tool| {
        found.look.words.iter().any(|word| argument_named(tool, word, argument))
    };
    let told_apart =
        |name: &str, conditions: &[Condition]| conditions.iter().any(|one| one.argument() == Some(name));
    let preferred = |one: &str, other: &str| {
        let narrowed = told_apart(one, &needed) || told_apart(other, &when);
        // `the same build`
        let said = (0..found.look.len()).any(|at| {
            let word =
                found.look.phrase_at(at, "the|that|this very? same").and_then(|at| found.look.words.get(at));
            word.is_some_and(|word| argument_named(first, word, one) || argument_named(judging, word, other))
        });
        (!narrowed).then_some(if said { 10 } else { 0 })
    };
    let same = match shared(first, judging, &preferred) {
        None => None,
        Some((one, other)) if mentioned(&one, first) || mentioned(&other, judging) || order.oneself => {
            Some((one, other))
        }
        Some((one, other)) if order.requires => {
            let text = format!("has it to be for the same `{one}`?");
            context.ask_or(
                Topic::Scope,
                found.span.clone(),
                text,
                &format!("for the same {one}"),
                Put::Append,
            );
            Some((one, other))
        }
        Some((one, _)) => {
            let text = format!("after any of them, or only for the same `{one}`?");
            context.ask_or(Topic::Scope, found.span.clone(), text, "after any", Put::Append);
            None
        }
    };
    let within = found.window.as_ref().and_then(|window| window.window);
    // Where several are required, each of them is.
    let sets: Vec<Vec<String>> = match order.requires {
        true => earlier.iter().map(|tool| vec![tool.clone()]).collect(),
        false => vec![earlier.clone()],
    };
    for set in sets {
        let asks = if order.requires { Asks::Before(set) } else { Asks::After(set) };
        let past = Past { asks, earlier: needed.clone(), same: same.clone(), within };
        context.rule(found.sentence.clone(), &judged, when.clone(), Some(past), Stop::Deny);
    }
}

fn argument_named(tool: &Tool, word: &Word, name: &str) -> bool {
    argument(tool, &[word]).is_some_and(|argument| argument.name == name)
}

/// What a stretch of words says of the arguments of a tool. Its words are taken.
fn narrowing(look: &mut Look, tool: &Tool, range: &Range<usize>) -> Vec<Condition> {
    let mut part = look.clone();
    part.take(0..range.start);
    part.take(range.end..look.len());
    let mut all = Vec::new();
    for value in values::read(&mut part, tool, false) {
        let said = Condition::Argument(value.argument.clone(), value.test.clone());
        let first = value.words.iter().min().copied().unwrap_or(range.start);
        let inverted = look.is_inverted(first) || look.is_any(first.wrapping_sub(1), &["not"]);
        all.push(if inverted { Condition::Not(Box::new(said)) } else { said });
        for at in value.words {
            look.take(at..at + 1);
        }
    }
    all
}

/// `between two reboots of the same host 10 minutes`, `wait 10 minutes between …`: the time after one in which no other may
/// come.
pub(super) fn gap(context: &mut Context<'_>, found: &mut Found) -> bool {
    let Some(between) = found.look.find_left(&[
        "between|apart two|any|consecutive|each|successive|every? two|of|consecutive|successive?",
        "apart",
        "wait",
        "cool-down|cooldown|pause|gap|spacing",
    ]) else {
        return false;
    };
    let stretch = (0..found.look.len())
        .filter(|at| !found.look.is_any(*at, &["a", "an"]))
        .find_map(|at| quantity::stretch(&found.look, at).map(|(seconds, length)| (at, seconds, length)));
    let Some((at, seconds, length)) = stretch else { return false };
    if found.look.find(&["after|before|following"]).is_some() {
        return false;
    }
    let mut rest = found.look.clone();
    rest.take(at..at + length);
    let words: Vec<&Word> =
        rest.left_in(0..rest.len()).into_iter().filter_map(|at| rest.words.get(at)).collect();
    let About::These(tools) = context.tools.about(&words, |_| true) else { return false };
    let Some(tool) = tools.first().and_then(|tool| context.tools.spec.tool(tool)) else { return false };
    let key = (0..found.look.len()).find_map(|at| {
        let lead =
            found.look.phrase_at(at, "same|each|per|one|every|of|on|a|given the|a|any|same|single?")?;
        let word = found.look.words.get(lead)?;
        argument(tool, &[word]).map(|argument| argument.name.clone())
    });
    found.look.take(between);
    found.look.take(at.saturating_sub(2)..at + length);
    found.tools.clone_from(&tools);
    let same = key.map(|key| (key.clone(), key));
    // A call exactly as late as it has to be is let through.
    let within = Some(Window::Seconds(seconds.saturating_sub(1).max(1)));
    let past = Past { asks: Asks::Count(1), earlier: Vec::new(), same, within };
    context.rule(found.sentence.clone(), &tools, Vec::new(), Some(past), Stop::Deny);
    context.last_tools = tools;
    true
}
