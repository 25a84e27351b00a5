//! How many, how much, and how much without a person.

use super::clause::{Found, words_of};
use super::context::Context;
use super::lexicon::{is_filler, sense};
use super::quantity::{Quantity, Says};
use super::scope::{ACTORS, CALLS, RETURNING, Scope, scope};
use super::tools::{argument, is_number, money_arguments, unit_of};
use crate::draft::{Put, Topic};
use crate::rule::{Asks, Compare, Condition, Number, Past, Stop, Test, Window};
use crate::spec::{Argument, Tool};

/// Whether a clause limits something although it has no number that was read.
pub(super) fn is_limit(found: &Found) -> bool {
    found.look.find(&["limit|limits|capped|cap|rate-limit|ratelimit"]).is_some()
}

/// Holds what has to be approved.
pub(super) fn approval(context: &mut Context<'_>, found: &mut Found) -> bool {
    let Some(approval) = found.approval.clone() else { return false };
    if let Some(vague) = &approval.vague {
        let text = format!("who approves: who is `{}`? name a role", words_of(found, vague));
        context.ask(Topic::Who, found.place(vague), text, Put::Replace);
    }
    let tools = found.tools.clone();
    let Some(tool) = tools.first().and_then(|tool| context.tools.spec.tool(tool)) else { return false };
    let mut when = found.filters(true);
    if !found.who.only.is_empty() {
        when.push(Condition::Not(Box::new(Condition::Role(found.who.only.clone()))));
    }
    for quantity in found.quantities.clone() {
        let Some(condition) = compared(context, found, tool, &quantity, false) else { return true };
        if quantity.currency.is_some() {
            context.last_amount = Some(quantity);
        }
        when.push(condition);
    }
    let by = match approval.by.as_slice() {
        [] => None,
        [one] => Some(one.clone()),
        [first, ..] => {
            let text = format!("one of {} approves; which role?", approval.by.join(", "));
            context.ask_or(Topic::Who, found.place(&approval.range), text, first, Put::Choice);
            Some(first.clone())
        }
    };
    missing(context, found, &when);
    context.rule(found.sentence.clone(), &tools, when, None, Stop::Hold(by));
    true
}

/// What becomes of a call that lacks an argument by which it is judged.
pub(super) fn missing(context: &mut Context<'_>, found: &Found, when: &[Condition]) {
    let optional = when.iter().find_map(|condition| match condition {
        Condition::Argument(argument, Test::Compares(..)) => Some(argument.clone()),
        _ => None,
    });
    if let Some(argument) = optional {
        let text = format!("what becomes of a call in which `{argument}` is missing or no number?");
        context.ask_or(Topic::Missing, found.span.clone(), text, "stopped", Put::Choice);
    }
}

/// `not twice`, `only once`, `not again within an hour`, `10 minutes between two`.
pub(super) fn repeated(context: &mut Context<'_>, found: &mut Found) -> Option<bool> {
    let once = found.look.find(&[
        "twice",
        "more than once",
        "only once",
        "at most once",
        "just once",
        "one time only",
        "a second time",
        "again",
        "once only",
        "once per|a|an|every|in|within|each",
        "once",
        "double",
        "duplicate|duplicates",
    ])?;
    let at_most = match found.look.text(once.start) {
        // `at most twice a day`
        "twice" if !found.negative && found.look.find(&["at most", "maximum", "up to", "only"]).is_some() => {
            2
        }
        "twice" if found.look.phrase_at(once.start.wrapping_sub(2), "more than twice").is_some() => 2,
        "again" | "double" | "duplicate" | "duplicates" | "twice" if !found.negative => return None,
        "once" if found.only == 0 && !found.negative && found.window.is_none() => return None,
        _ => 1,
    };
    found.look.take(once);
    found.only = 0;
    Some(count(context, found, at_most))
}

/// Reads limits: of a number of calls, of an amount, of entries.
pub(super) fn read(context: &mut Context<'_>, found: &mut Found) -> bool {
    if found.quantities.is_empty() {
        let place = found.span.clone();
        context.ask(Topic::Amount, place, "how many, or how much?", Put::Append);
        return true;
    }
    let total = found
        .look
        .find(&[
            "in total",
            "altogether",
            "total",
            "sum",
            "combined",
            "overall",
            "cumulative|cumulatively",
            "together",
            "in sum",
            "aggregate",
        ])
        .is_some();
    for quantity in found.quantities.clone() {
        limit(context, found, &quantity, total);
    }
    true
}

fn limit(context: &mut Context<'_>, found: &mut Found, quantity: &Quantity, total: bool) {
    let tools = found.tools.clone();
    let Some(tool) = tools.first().and_then(|tool| context.tools.spec.tool(tool)) else { return };
    let unit = found.look.text(quantity.unit).to_owned();
    let is_age = age(found).is_some() && quantity.currency.is_none();
    if is_age {
        let mut when = found.filters(true);
        when.extend(age(found));
        context.rule(found.sentence.clone(), &tools, when, None, Stop::Deny);
        return;
    }
    if quantity.currency.is_none() && !unit.ends_with('%') {
        let words = found.look.slice(quantity.unit..(quantity.unit + 2).min(found.look.len()));
        let own = argument(tool, words.get(..1).unwrap_or_default()).or_else(|| argument(tool, &words));
        let counted = own.filter(|own| own.kind == "array" || is_number(own));
        let named = CALLS.contains(&unit.as_str())
            || super::lexicon::parts(&tool.name).iter().any(|part| sense(part) == sense(&unit));
        match counted {
            Some(own) if own.kind == "array" => return items(context, found, own, quantity),
            Some(own) if !named && found.window.is_none() => return number(context, found, own, quantity),
            _ => {}
        }
        let numeric = numeric_named(found, tool, quantity);
        match numeric {
            Some(own) if !named && found.window.is_none() => return number(context, found, own, quantity),
            _ => {}
        }
        let most = match quantity.says {
            Says::Under => quantity.value.0 / Number::ONE - 1,
            Says::AtLeast if found.negative => quantity.value.0 / Number::ONE - 1,
            _ => quantity.value.0 / Number::ONE,
        };
        count(context, found, u32::try_from(most.max(0)).unwrap_or(u32::MAX));
        return;
    }
    let scope = scope(found, tool);
    let sums = total || found.window.is_some() && !scope.single;
    if sums {
        sum(context, found, tool, quantity, scope);
        return;
    }
    let Some(condition) = compared(context, found, tool, quantity, true) else { return };
    let mut when = found.filters(true);
    when.push(condition);
    if let Some(condition) = currency_of(context, found, tool, quantity) {
        when.push(condition);
    }
    missing(context, found, &when);
    let tentative = !found.negative && found.only == 0 && !found.must && quantity.says == Says::AtMost;
    let id = context.rule(found.sentence.clone(), &tools, when, None, Stop::Deny);
    if tentative {
        context.tentative.push(id);
    }
    context.last_amount = Some(quantity.clone());
}

/// A number argument that is named anywhere in the clause.
fn numeric_named<'t>(found: &Found, tool: &'t Tool, quantity: &Quantity) -> Option<&'t Argument> {
    let words = found.look.slice(0..found.look.len());
    let words: Vec<_> = words.into_iter().filter(|word| !is_filler(&word.text)).collect();
    let _ = quantity;
    let fits = |own: &&Argument| {
        is_number(own) && {
            let parts = super::lexicon::parts(&own.name);
            words.iter().any(|word| parts.iter().any(|part| sense(part) == word.sense && part.len() > 2))
        }
    };
    tool.arguments.iter().find(fits)
}

fn items(context: &mut Context<'_>, found: &mut Found, own: &Argument, quantity: &Quantity) {
    let most = u32::try_from(quantity.value.0 / Number::ONE).unwrap_or(u32::MAX);
    let compare = fires(quantity, found.negative);
    let mut when = found.filters(true);
    when.push(Condition::Argument(own.name.clone(), Test::Items(compare, most)));
    let unit = quantity.unit;
    found.look.take(unit..unit + 1);
    context.rule(found.sentence.clone(), &found.tools, when, None, Stop::Deny);
}

fn number(context: &mut Context<'_>, found: &mut Found, own: &Argument, quantity: &Quantity) {
    let compare = fires(quantity, found.negative);
    let mut when = found.filters(true);
    when.push(Condition::Argument(own.name.clone(), Test::Compares(compare, quantity.value)));
    missing(context, found, &when);
    context.rule(found.sentence.clone(), &found.tools, when, None, Stop::Deny);
}

/// When a limit stops a call: at most 5 stops what is over, `not 5 or more` what is at least 5.
fn fires(quantity: &Quantity, negative: bool) -> Compare {
    match quantity.says {
        Says::AtMost | Says::Over | Says::Bare => Compare::Over,
        Says::Under => {
            if negative {
                Compare::Under
            } else {
                Compare::AtLeast
            }
        }
        Says::AtLeast => {
            if negative {
                Compare::AtLeast
            } else {
                Compare::Under
            }
        }
    }
}

/// The condition that an amount is beyond a limit.
fn compared(
    context: &mut Context<'_>,
    found: &Found,
    tool: &Tool,
    quantity: &Quantity,
    limits: bool,
) -> Option<Condition> {
    let own = amount_argument(context, found, tool, quantity)?;
    let value = in_unit(context, found, own, quantity)?;
    let compare = match (quantity.says, limits) {
        (_, true) => fires(quantity, found.negative),
        (Says::AtLeast, false) => Compare::AtLeast,
        (Says::Under, false) => Compare::Under,
        (Says::AtMost, false) => Compare::AtMost,
        (Says::Over | Says::Bare, false) => Compare::Over,
    };
    Some(Condition::Argument(own.name.clone(), Test::Compares(compare, value)))
}

fn amount_argument<'t>(
    context: &mut Context<'_>,
    found: &Found,
    tool: &'t Tool,
    quantity: &Quantity,
) -> Option<&'t Argument> {
    let candidates = if quantity.currency.is_some() { money_arguments(tool) } else { Vec::new() };
    if let [one] = candidates.as_slice() {
        return Some(one);
    }
    if let Some(own) = numeric_named(found, tool, quantity) {
        return Some(own);
    }
    let numbers: Vec<&Argument> = tool.arguments.iter().filter(|own| is_number(own)).collect();
    if let [one] = numbers.as_slice() {
        return Some(one);
    }
    let names: Vec<&str> = numbers.iter().chain(&candidates).map(|own| own.name.as_str()).collect();
    let text = if names.is_empty() {
        format!("no argument of `{}` is an amount; which one is meant?", tool.name)
    } else {
        format!("which argument of `{}` is the amount: {}?", tool.name, names.join(" or "))
    };
    context.ask(Topic::Argument, found.place(&quantity.range), text, Put::Append);
    None
}

/// The amount in the unit of the argument.
fn in_unit(context: &mut Context<'_>, found: &Found, own: &Argument, quantity: &Quantity) -> Option<Number> {
    let (code, cents) = unit_of(own);
    let wanted = quantity.currency.as_deref().filter(|code| !code.is_empty());
    if let (Some(code), Some(wanted)) = (code, wanted)
        && code != wanted
    {
        let text = format!(
            "`{}` is in {code} and the request speaks of {wanted}; what is the limit in {code}?",
            own.name
        );
        context.ask(Topic::Currency, found.place(&quantity.range), text, Put::Replace);
        return None;
    }
    let factor = if cents && quantity.currency.is_some() { 100 } else { 1 };
    Some(Number(quantity.value.0.saturating_mul(factor)))
}

/// Where a tool has an argument for the currency, the limit is about the one that is named.
fn currency_of(
    context: &mut Context<'_>,
    found: &Found,
    tool: &Tool,
    quantity: &Quantity,
) -> Option<Condition> {
    let wanted = quantity.currency.clone().filter(|code| !code.is_empty())?;
    let own = tool
        .arguments
        .iter()
        .find(|own| super::lexicon::parts(&own.name).iter().any(|part| part == "currency"))?;
    let several = found.quantities.iter().filter(|other| other.currency.is_some()).count() > 1;
    context.mentioned.entry(own.name.clone()).or_default().push(wanted.clone());
    if !several {
        let text = format!("this is about amounts in {wanted}; what about other currencies?");
        context.ask_or(
            Topic::Currency,
            found.place(&quantity.range),
            text,
            "not limited by this",
            Put::Choice,
        );
    }
    Some(Condition::Argument(own.name.clone(), Test::OneOf(vec![wanted])))
}

/// `under 18`, of whoever asks.
pub(super) fn age(found: &Found) -> Option<Condition> {
    let people = found.who.anybody || found.look.find(&["minors|minor|anyone|anybody|customers|customer|users|user|people|persons|guests|members|patients|clients|adults|children|buyers|drivers|aged|age|older|younger|old|those|somebody|someone"]).is_some();
    let quantity = found.quantities.iter().find(|quantity| {
        quantity.currency.is_none()
            && quantity.says != Says::Bare
            && (5..=120).contains(&(quantity.value.0 / Number::ONE))
    })?;
    let years = found.look.is_any(quantity.unit, &["years", "year"])
        || found.look.find(&["aged|age|older|younger|old"]).is_some();
    let stands_before = quantity.range.start <= 6 || years;
    let is_count = CALLS.contains(&found.look.text(quantity.unit)) || found.window.is_some();
    if !people
        || is_count
        || !stands_before
        || !(years || matches!(quantity.says, Says::Under | Says::AtLeast | Says::Over))
    {
        return None;
    }
    let compare = match quantity.says {
        Says::Under => Compare::Under,
        Says::Over => Compare::Over,
        Says::AtMost => Compare::AtMost,
        Says::AtLeast | Says::Bare => Compare::AtLeast,
    };
    let condition = Condition::Attribute("age".to_owned(), compare, quantity.value);
    let inverse = found.only > 0 || found.must && !found.negative;
    Some(if inverse { Condition::Not(Box::new(condition)) } else { condition })
}

/// A limit on how often.
fn count(context: &mut Context<'_>, found: &mut Found, at_most: u32) -> bool {
    let Some(tool) = found.tools.first().and_then(|tool| context.tools.spec.tool(tool)) else { return false };
    let scope = scope(found, tool);
    past(context, found, scope, Asks::Count(at_most), at_most)
}

fn sum(context: &mut Context<'_>, found: &mut Found, tool: &Tool, quantity: &Quantity, scope: Scope) {
    let Some(own) = amount_argument(context, found, tool, quantity) else { return };
    let Some(value) = in_unit(context, found, own, quantity) else { return };
    let value = if quantity.says == Says::Under { Number(value.0.saturating_sub(1)) } else { value };
    let name = own.name.clone();
    past(context, found, scope, Asks::Sum(name, value), 2);
}

/// A limit over time: asks for what is left open.
fn past(context: &mut Context<'_>, found: &mut Found, scope: Scope, asks: Asks, at_most: u32) -> bool {
    let span = found.sentence.clone();
    let place = found.span.clone();
    place_scope(found, &scope);
    let returning = RETURNING.iter().any(|noun| sense(noun) == sense(&scope.noun));
    let window = match &found.window {
        Some(window) => {
            if let Some(unit) = window.either {
                let word = serde_json::to_value(unit)
                    .ok()
                    .and_then(|unit| unit.as_str().map(str::to_owned))
                    .unwrap_or_default();
                let text = format!("a calendar {word}, or any stretch as long as a {word}?");
                context.ask_or(
                    Topic::Window,
                    found.place(&window.range),
                    text,
                    &format!("rolling {word}"),
                    Put::Replace,
                );
            }
            window.window
        }
        None if scope.key.is_some() && at_most <= 1 && !returning => {
            context.ask_or(Topic::Window, place.clone(), "in which time?", "ever", Put::Append);
            None
        }
        None => {
            context.ask(
                Topic::Window,
                place.clone(),
                "within which time? such as `per day`, `in 30 days`, `per session`",
                Put::Append,
            );
            return true;
        }
    };
    let in_session = found.window.as_ref().is_some_and(|window| window.window.is_none());
    if scope.key.is_none() && !scope.actor && !in_session {
        context.ask(
            Topic::Scope,
            place,
            "for whom is it counted? such as `per user` or `per customer`",
            Put::Append,
        );
        return true;
    }
    if let Some(Window::Calendar(_)) = window {
        let message =
            "sequences count over a stretch of time, not yet from one midnight or month to the next";
        context.refuse(
            found.window.as_ref().map_or(span, |window| found.place(&window.range)),
            message,
            "write a stretch, such as `in 30 days`",
        );
        return true;
    }
    if let Some(noun) = unexempted(context, found) {
        let help = "leave the exception out, or write two requests";
        context.refuse(
            span,
            format!("a limit over time cannot be narrowed to some of the calls: {noun}"),
            help,
        );
        return true;
    }
    let same = scope.key.map(|key| (key.clone(), key));
    let tools = found.tools.clone();
    context.rule(span, &tools, Vec::new(), Some(Past { asks, same, within: window }), Stop::Deny);
    true
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

/// What narrows a limit over time, which a sequence cannot.
fn unexempted(context: &Context<'_>, found: &Found) -> Option<String> {
    if !found.who.except.is_empty() {
        return Some(format!("not for {}", found.who.except.join(", ")));
    }
    let only = found.tools.first().map(|tool| context.only_roles(tool)).unwrap_or_default();
    let covered = found.who.about.iter().all(|role| only.contains(role)) && !only.is_empty();
    if !found.who.about.is_empty() && !covered {
        return Some(format!("for {}", found.who.about.join(", ")));
    }
    if let Some(value) = found.values.first() {
        return Some(format!("by `{}`", value.argument));
    }
    found.timing.times.as_ref().map(|_| "by the hour".to_owned())
}

/// Seconds of a gap: a call exactly as late as it has to be is let through.
pub(super) fn gap(seconds: u64) -> Window {
    Window::Seconds(seconds.saturating_sub(1).max(1))
}
