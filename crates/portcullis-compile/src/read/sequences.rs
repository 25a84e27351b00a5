//! Rules about what happened before: orders of calls, and gaps between them.

use std::ops::Range;

use super::clause::Found;
use super::context::Context;
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

/// Makes the rule of an order.
pub(super) fn order(context: &mut Context<'_>, found: &mut Found, order: &Order) {
    let (judged, earlier) = (about(context, found, &order.judged), about(context, found, &order.other));
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
    let when = narrowing(found, judging, &order.judged);
    let before = narrowing(found, first, &order.other);
    context.last_tools.clone_from(&judged);
    let mentioned = |argument: &str, tool: &Tool| {
        found.look.words.iter().any(|word| argument_named(tool, word, argument))
    };
    let same = match shared(first, judging) {
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
        let past = Past { asks, earlier: before.clone(), same: same.clone(), within };
        context.rule(found.sentence.clone(), &judged, when.clone(), Some(past), Stop::Deny);
    }
}

fn argument_named(tool: &Tool, word: &Word, name: &str) -> bool {
    argument(tool, &[word]).is_some_and(|argument| argument.name == name)
}

/// Whether two stretches of words are about different calls of one tool: to staging, and to production.
pub(super) fn differ(
    context: &Context<'_>,
    found: &Found,
    tools: &[String],
    one: &Range<usize>,
    other: &Range<usize>,
) -> bool {
    let Some(tool) = tools.first().and_then(|tool| context.tools.spec.tool(tool)) else { return false };
    let of = |range| narrowing(&mut found.clone(), tool, range);
    let (one, other) = (of(one), of(other));
    !one.is_empty() && !other.is_empty() && one != other
}

/// Which calls of a tool a stretch of words is about, by values of its arguments. Their words are taken.
fn narrowing(found: &mut Found, tool: &Tool, range: &Range<usize>) -> Vec<Condition> {
    let mut part = found.look.clone();
    part.take(0..range.start);
    part.take(range.end..found.look.len());
    let values = values::read(&mut part, tool, false);
    let conditions = values.iter().map(|value| {
        let said = Condition::Argument(value.argument.clone(), value.test.clone());
        let is_inverted = value.words.iter().min().is_some_and(|at| found.inverted(*at));
        if is_inverted { Condition::Not(Box::new(said)) } else { said }
    });
    let conditions = conditions.collect();
    for at in values.iter().flat_map(|value| &value.words) {
        found.look.take(*at..*at + 1);
    }
    conditions
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
