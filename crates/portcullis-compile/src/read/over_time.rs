//! Limits over time: what is left open of them, and what narrows them.

use super::clause::Found;
use super::context::Context;
use super::frames::{Frame, Made};
use super::lexicon::sense;
use super::scope::{ACTORS, CALLS, RETURNING, Scope};
use crate::draft::{Put, Topic};
use crate::rule::{Asks, Condition, Past, Stop, Window};

/// A limit over time: asks for what is left open.
pub(super) fn past(
    context: &mut Context<'_>,
    frame: &mut Frame<'_, '_>,
    scope: Scope,
    asks: Asks,
    at_most: u32,
) -> Vec<Made> {
    let place = frame.found.span.clone();
    place_scope(frame.found, &scope);
    let Some(window) = window(context, frame.found, &scope, at_most) else { return Vec::new() };
    let in_session = frame.found.window.as_ref().is_some_and(|window| window.window.is_none());
    if scope.key.is_none() && !scope.actor && !in_session {
        let text = "for whom is it counted? such as `per user` or `per customer`";
        context.ask(Topic::Scope, place, text, Put::Append);
        return Vec::new();
    }
    if let Some(Window::Calendar(_)) = window {
        let message =
            "sequences count over a stretch of time, not yet from one midnight or month to the next";
        let at = frame.found.window.as_ref().map_or(place, |window| frame.found.place(&window.range));
        context.refuse(at, message, "write a stretch, such as `in 30 days`");
        return Vec::new();
    }
    if let Some(noun) = unexempted(context, frame) {
        let message = format!("a limit over time cannot be narrowed to some of the calls: {noun}");
        context.refuse(place, message, "leave the exception out, or write two requests");
        return Vec::new();
    }
    let mut when = narrowing(frame);
    if !frame.found.who.except.is_empty() {
        when.push(Condition::Not(Box::new(Condition::Role(frame.found.who.except.clone()))));
    }
    let same = scope.key.map(|key| (key.clone(), key));
    let past = Some(Past { asks, earlier: Vec::new(), same, within: window });
    vec![Made { when, past, stop: Stop::Deny }]
}

/// How far back counts; nothing where that had to be asked.
fn window(context: &mut Context<'_>, found: &Found, scope: &Scope, at_most: u32) -> Option<Option<Window>> {
    if let Some(window) = &found.window {
        if let Some(unit) = window.either {
            let word = serde_json::to_value(unit)
                .ok()
                .and_then(|unit| unit.as_str().map(str::to_owned))
                .unwrap_or_default();
            let text = format!("a calendar {word}, or any stretch as long as a {word}?");
            let default = format!("rolling {word}");
            context.ask_or(Topic::Window, found.place(&window.range), text, &default, Put::Replace);
        }
        return Some(window.window);
    }
    let returning = RETURNING.iter().any(|noun| sense(noun) == sense(&scope.noun));
    if scope.key.is_some() && at_most <= 1 && !returning {
        context.ask_or(Topic::Window, found.span.clone(), "in which time?", "ever", Put::Append);
        return Some(None);
    }
    let text = "within which time? such as `per day`, `in 30 days`, `per session`";
    context.ask(Topic::Window, found.span.clone(), text, Put::Append);
    None
}

/// Words of the scope are placed.
fn place_scope(found: &mut Found, scope: &Scope) {
    let noun = scope.noun.clone();
    for at in 0..found.look.len() {
        if !noun.is_empty() && found.look.text(at) == noun
            || ACTORS.contains(&found.look.text(at))
            || CALLS.contains(&found.look.text(at))
        {
            found.look.take(at..at + 1);
        }
    }
}

/// The values that say which calls a limit over time counts.
fn narrowing(frame: &Frame<'_, '_>) -> Vec<Condition> {
    let of = |value: &super::values::Value| {
        let said = Condition::Argument(value.argument.clone(), value.test.clone());
        let inverted = value.words.iter().min().is_some_and(|at| frame.found.inverted(*at));
        if inverted { Condition::Not(Box::new(said)) } else { said }
    };
    frame.values.iter().map(of).collect()
}

/// What narrows a limit over time, which a sequence cannot.
fn unexempted(context: &Context<'_>, frame: &Frame<'_, '_>) -> Option<String> {
    let found = &*frame.found;
    if found.look.find(&["different|distinct|separate|unique"]).is_some() {
        return Some("how many different ones".to_owned());
    }
    let only = context.only_roles(&frame.tool.name);
    let covered = found.who.about.iter().all(|role| only.contains(role)) && !only.is_empty();
    if !found.who.about.is_empty() && !covered {
        return Some(format!("for {}", found.who.about.join(", ")));
    }
    found.timing.times.as_ref().map(|_| "by the hour".to_owned())
}
