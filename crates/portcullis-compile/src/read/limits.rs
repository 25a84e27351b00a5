//! How many, how much, and how much without a person.

use super::clause::{Found, people_of};
use super::context::Context;
use super::frames::{Frame, Made};
use super::lexicon::{is_filler, parts, sense};
use super::quantity::{Quantity, Says};
use super::scope::{ACTORS, CALLS, RETURNING, Scope, scope};
use super::tools::{argument, is_number, money_arguments, unit_of};
use super::words::Word;
use crate::draft::{Put, Topic};
use crate::rule::{Asks, Compare, Condition, Number, Past, Stop, Test, Window};
use crate::spec::Argument;

/// Whether a clause limits something although it has no number that was read.
pub(super) fn is_limit(found: &Found) -> bool {
    found.look.find_left(&["limit|limits|capped|cap|rate-limit|ratelimit"]).is_some()
}

/// Amounts that only say which calls are meant.
pub(super) fn filters(context: &mut Context<'_>, frame: &Frame<'_, '_>) -> Vec<Condition> {
    let mut when: Vec<Condition> = age(frame.found).into_iter().collect();
    if !when.is_empty() {
        return when;
    }
    for quantity in frame.found.quantities.clone() {
        when.extend(compared(context, frame, &quantity, false));
        when.extend(currency_of(context, frame, &quantity));
    }
    when
}

/// Holds what has to be approved.
pub(super) fn approval(context: &mut Context<'_>, frame: &mut Frame<'_, '_>) -> Vec<Made> {
    let Some(approval) = frame.found.approval.clone() else { return Vec::new() };
    if let Some(vague) = &approval.vague {
        let text = format!("who approves: who is `{}`? name a role", frame.found.words(vague));
        context.ask(Topic::Who, frame.found.place(vague), text, Put::Replace);
    }
    let mut when = people_of(&frame.found.who);
    let inverted = |found: &Found, words: &[usize]| words.iter().min().is_some_and(|at| found.inverted(*at));
    for value in &frame.values {
        let said = Condition::Argument(value.argument.clone(), value.test.clone());
        when.push(if inverted(frame.found, &value.words) { Condition::Not(Box::new(said)) } else { said });
    }
    if let Some(times) = &frame.found.timing.times {
        let said = Condition::At(times.clone());
        let at = frame.found.timing.at.as_ref().map_or(0, |at| at.start);
        when.push(if frame.found.inverted(at) { Condition::Not(Box::new(said)) } else { said });
    }
    if !frame.found.who.only.is_empty() {
        when.push(Condition::Not(Box::new(Condition::Role(frame.found.who.only.clone()))));
    }
    for quantity in frame.found.quantities.clone() {
        let Some(condition) = compared(context, frame, &quantity, false) else { return Vec::new() };
        if quantity.currency.is_some() {
            context.last_amount = Some(quantity.clone());
        }
        when.push(condition);
        when.extend(currency_of(context, frame, &quantity));
    }
    let by = match approval.by.as_slice() {
        [] => None,
        [one] => Some(one.clone()),
        [first, ..] => {
            let text = format!("one of {} approves; which role?", approval.by.join(", "));
            context.ask_or(Topic::Who, frame.found.place(&approval.range), text, first, Put::Choice);
            Some(first.clone())
        }
    };
    missing(context, frame.found, &when);
    vec![Made { when, past: None, stop: Stop::Hold(by) }]
}

/// What becomes of a call that lacks an argument by which it is judged.
fn missing(context: &mut Context<'_>, found: &Found, when: &[Condition]) {
    let optional = when.iter().find_map(|condition| match condition {
        Condition::Argument(argument, Test::Compares(..)) => Some(argument.clone()),
        _ => None,
    });
    if let Some(argument) = optional {
        let text = format!("what becomes of a call in which `{argument}` is missing or no number?");
        context.ask_or(Topic::Missing, found.span.clone(), text, "stopped", Put::Choice);
    }
}

/// `not twice`, `only once`, `not again within an hour`.
pub(super) fn repeated(context: &mut Context<'_>, frame: &mut Frame<'_, '_>) -> Option<Vec<Made>> {
    let found = &mut *frame.found;
    let negative = found.negative();
    let once = found.look.find_left(&[
        "twice",
        "thrice",
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
        "twice"
            if !negative && found.look.find(&["at most", "maximum|max|tops", "up to", "only"]).is_some() =>
        {
            2
        }
        "twice" if found.look.phrase_at(once.start.wrapping_sub(2), "more than twice").is_some() => 2,
        "twice" if !negative && found.window.is_some() => 2,
        "thrice" => 3,
        "again" | "double" | "duplicate" | "duplicates" | "twice" if !negative => return None,
        "once" if found.mood.only.is_none() && !negative && found.window.is_none() => return None,
        _ => 1,
    };
    found.look.take(once);
    found.mood.only = None;
    Some(count(context, frame, at_most))
}

/// Reads limits: of a number of calls, of an amount, of entries.
pub(super) fn read(context: &mut Context<'_>, frame: &mut Frame<'_, '_>) -> Vec<Made> {
    let total = frame
        .found
        .look
        .find(&[
            "in total",
            "altogether|total|sum|combined|overall|cumulative|cumulatively|together|aggregate",
            "in sum",
            "added up",
            "adds|add up",
        ])
        .is_some();
    let quantities = frame.found.quantities.clone();
    if let [low, high] = quantities.as_slice()
        && let Some(made) = span(context, frame, low, high)
    {
        return made;
    }
    quantities.iter().flat_map(|quantity| limit(context, frame, quantity, total)).collect()
}

/// `between 2 and 40`, `within 2-40`: neither less nor more.
fn span(
    context: &mut Context<'_>,
    frame: &mut Frame<'_, '_>,
    low: &Quantity,
    high: &Quantity,
) -> Option<Vec<Made>> {
    let look = &frame.found.look;
    let joined = high.range.start == low.range.end + 1
        && look.is_any(low.range.end, &["-", "–", "—", "to", "and"])
        && low.says == Says::Bare;
    let led =
        look.is_any(low.range.start.wrapping_sub(1), &["between", "within", "from", "range", "of", "in"]);
    if !joined || !led || low.value >= high.value || frame.found.negative() {
        return None;
    }
    let unit = look.text(high.unit).to_owned();
    let (low, high) = (
        Quantity { says: Says::AtLeast, unit: high.unit, currency: high.currency.clone(), ..low.clone() },
        Quantity { says: Says::AtMost, ..high.clone() },
    );
    let mut made = Vec::new();
    for quantity in [&low, &high] {
        match of_argument(context, frame, quantity, &unit) {
            Some(more) => made.extend(more),
            None => made.extend(bound(context, frame, quantity)),
        }
    }
    Some(made)
}

/// Who, which values and when: what a limit is about.
fn about(frame: &Frame<'_, '_>) -> Vec<Condition> {
    let mut when = people_of(&frame.found.who);
    let money = frame.found.quantities.iter().any(|quantity| quantity.currency.is_some());
    for value in &frame.values {
        // The currency goes with its amount.
        if money && parts(&value.argument).iter().any(|part| part == "currency") {
            continue;
        }
        let said = Condition::Argument(value.argument.clone(), value.test.clone());
        let inverted = value.words.iter().min().is_some_and(|at| frame.found.inverted(*at));
        when.push(if inverted { Condition::Not(Box::new(said)) } else { said });
    }
    if let Some(times) = &frame.found.timing.times {
        when.push(Condition::At(times.clone()));
    }
    when
}

fn limit(
    context: &mut Context<'_>,
    frame: &mut Frame<'_, '_>,
    quantity: &Quantity,
    total: bool,
) -> Vec<Made> {
    if quantity.currency.is_none()
        && let Some(age) = age(frame.found)
    {
        let mut when = about(frame);
        when.push(age);
        return vec![Made::deny(when)];
    }
    let percent = frame.found.look.is_any(quantity.unit, &["%", "percent", "per", "pct"]);
    let unit = frame.found.look.text(quantity.unit).to_owned();
    if quantity.currency.is_none() && !unit.ends_with('%') && !percent {
        if let Some(made) = of_argument(context, frame, quantity, &unit) {
            return made;
        }
        if !counts_calls(frame, quantity, &unit) {
            let numbers = frame.tool.arguments.iter().any(is_number);
            if quantity.says == Says::Bare || !numbers {
                let words = frame.found.words(&quantity.range);
                context.unplaced.push((words, frame.found.place(&quantity.range)));
                return Vec::new();
            }
            return bound(context, frame, quantity);
        }
        let most = match quantity.says {
            Says::Under => quantity.value.0 / Number::ONE - 1,
            Says::AtLeast if frame.found.negative() => quantity.value.0 / Number::ONE - 1,
            _ => quantity.value.0 / Number::ONE,
        };
        return count(context, frame, u32::try_from(most.max(0)).unwrap_or(u32::MAX));
    }
    let scope = scope(frame.found, frame.tool);
    if total || frame.found.window.is_some() && !scope.single && quantity.currency.is_some() {
        return sum(context, frame, quantity, scope);
    }
    bound(context, frame, quantity)
}

/// Whether a number is one of calls.
fn counts_calls(frame: &Frame<'_, '_>, quantity: &Quantity, unit: &str) -> bool {
    let found = &*frame.found;
    let noun = (quantity.unit..(quantity.unit + 3).min(found.look.len())).any(|at| {
        let sense = found.look.sense(at);
        !is_filler(found.look.text(at))
            && parts(&frame.tool.name).iter().any(|part| super::lexicon::sense(part) == sense)
    });
    let limited =
        quantity.says != Says::Bare || is_limit(found) || found.mood.only.is_some() || found.negative();
    CALLS.contains(&unit) || found.window.is_some() || noun && limited
}

/// A limit on an argument.
fn bound(context: &mut Context<'_>, frame: &mut Frame<'_, '_>, quantity: &Quantity) -> Vec<Made> {
    let Some(condition) = compared(context, frame, quantity, true) else { return Vec::new() };
    let mut when = about(frame);
    when.push(condition);
    when.extend(currency_of(context, frame, quantity));
    missing(context, frame.found, &when);
    let mood = &frame.found.mood;
    let tentative =
        mood.bans.is_none() && mood.only.is_none() && mood.must.is_none() && quantity.says == Says::AtMost;
    if tentative {
        context.tentative_next = true;
    }
    context.last_amount = Some(quantity.clone());
    vec![Made::deny(when)]
}

/// A limit on a number, or on the entries of a list, that is an argument.
fn of_argument(
    context: &mut Context<'_>,
    frame: &mut Frame<'_, '_>,
    quantity: &Quantity,
    unit: &str,
) -> Option<Vec<Made>> {
    let tool = frame.tool;
    let look = &frame.found.look;
    let words = look.slice(quantity.unit..(quantity.unit + 2).min(look.len()));
    let own = argument(tool, words.get(..1).unwrap_or_default()).or_else(|| argument(tool, &words));
    let counted = own.filter(|own| own.kind == "array" || is_number(own));
    let named = CALLS.contains(&unit) || parts(&tool.name).iter().any(|part| sense(part) == sense(unit));
    let numeric = match counted {
        Some(own) if own.kind == "array" => {
            let most = u32::try_from(quantity.value.0 / Number::ONE).unwrap_or(u32::MAX);
            let mut when = about(frame);
            when.push(Condition::Argument(
                own.name.clone(),
                Test::Items(fires(quantity, frame.found.negative()), most),
            ));
            let unit = quantity.unit;
            frame.found.look.take(unit..unit + 1);
            return Some(vec![Made::deny(when)]);
        }
        Some(own) => Some(own),
        None => numeric_named(frame.found, frame),
    };
    let own = numeric.filter(|_| !named && frame.found.window.is_none())?;
    let mut when = about(frame);
    when.push(Condition::Argument(
        own.name.clone(),
        Test::Compares(fires(quantity, frame.found.negative()), quantity.value),
    ));
    missing(context, frame.found, &when);
    Some(vec![Made::deny(when)])
}

/// A number argument that is named anywhere in the clause.
fn numeric_named<'t>(found: &Found, frame: &Frame<'_, 't>) -> Option<&'t Argument> {
    let words: Vec<&Word> =
        found.look.slice(0..found.look.len()).into_iter().filter(|word| !is_filler(&word.text)).collect();
    let fits = |own: &&'t Argument| {
        let described = own.description.split(|c: char| !c.is_alphanumeric()).map(str::to_lowercase);
        let named: Vec<String> = parts(&own.name)
            .into_iter()
            .chain(described)
            .filter(|part| part.len() > 2)
            .map(|part| sense(&part))
            .collect();
        is_number(own) && words.iter().any(|word| named.contains(&word.sense))
    };
    let all: Vec<&Argument> = frame.tool.arguments.iter().filter(fits).collect();
    match all.as_slice() {
        [one] => Some(one),
        _ => all.into_iter().find(|own| {
            let own: Vec<String> = parts(&own.name).iter().map(|part| sense(part)).collect();
            words.iter().any(|word| own.contains(&word.sense))
        }),
    }
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
    frame: &Frame<'_, '_>,
    quantity: &Quantity,
    limits: bool,
) -> Option<Condition> {
    let found = &*frame.found;
    let own = amount_argument(context, frame, quantity)?;
    let value = in_unit(context, found, own, quantity)?;
    let compare = match (quantity.says, limits) {
        (_, true) => fires(quantity, found.negative()),
        (Says::AtLeast, false) => Compare::AtLeast,
        (Says::Under, false) => Compare::Under,
        (Says::AtMost, false) => Compare::AtMost,
        (Says::Over | Says::Bare, false) => Compare::Over,
    };
    Some(Condition::Argument(own.name.clone(), Test::Compares(compare, value)))
}

fn amount_argument<'t>(
    context: &mut Context<'_>,
    frame: &Frame<'_, 't>,
    quantity: &Quantity,
) -> Option<&'t Argument> {
    let (found, tool) = (&*frame.found, frame.tool);
    let candidates = if quantity.currency.is_some() { money_arguments(tool) } else { Vec::new() };
    if let [one] = candidates.as_slice() {
        return Some(one);
    }
    if let Some(own) = numeric_named(found, frame) {
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
fn currency_of(context: &mut Context<'_>, frame: &Frame<'_, '_>, quantity: &Quantity) -> Option<Condition> {
    let (found, tool) = (&*frame.found, frame.tool);
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
    if found.look.is_any(quantity.unit, &["%", "percent", "pct"]) {
        return None;
    }
    let years = found.look.is_any(quantity.unit, &["years", "year"])
        || found.look.find(&["aged|age|older|younger|old"]).is_some();
    const OLD: &[&str] = &[
        "customer",
        "customers",
        "user",
        "users",
        "people",
        "persons",
        "guests",
        "members",
        "patients",
        "clients",
        "those",
        "buyers",
        "drivers",
        "anyone",
        "anybody",
        "children",
        "minors",
        "person",
        "who",
        "are",
    ];
    let stands_before = found.look.is_any(quantity.range.start.wrapping_sub(1), OLD) || years;
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
    let inverse = found.mood.only.is_some() || found.mood.must.is_some() && !found.negative();
    Some(if inverse { Condition::Not(Box::new(condition)) } else { condition })
}

/// A limit on how often.
fn count(context: &mut Context<'_>, frame: &mut Frame<'_, '_>, at_most: u32) -> Vec<Made> {
    let scope = scope(frame.found, frame.tool);
    past(context, frame, scope, Asks::Count(at_most), at_most)
}

fn sum(context: &mut Context<'_>, frame: &mut Frame<'_, '_>, quantity: &Quantity, scope: Scope) -> Vec<Made> {
    let Some(own) = amount_argument(context, frame, quantity) else { return Vec::new() };
    let Some(value) = in_unit(context, frame.found, own, quantity) else { return Vec::new() };
    let value = if quantity.says == Says::Under { Number(value.0.saturating_sub(1)) } else { value };
    let name = own.name.clone();
    past(context, frame, scope, Asks::Sum(name, value), 2)
}

/// A limit over time: asks for what is left open.
fn past(
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
    if frame.found.look.find(&["different|distinct|separate|unique"]).is_some() {
        let message = "sequences count calls, and not how many different values an argument has";
        context.refuse(place, message, "limit the calls, or write a guard program");
        return Vec::new();
    }
    let same = scope.key.map(|key| (key.clone(), key));
    let when = of_limit(context, frame);
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

/// Which calls a limit over time is about. Those who alone may call the tool need not be told apart again.
fn of_limit(context: &Context<'_>, frame: &Frame<'_, '_>) -> Vec<Condition> {
    let only = context.only_roles(&frame.tool.name);
    let covered = !only.is_empty() && frame.found.who.about.iter().all(|role| only.contains(role));
    let is_covered = |condition: &Condition| covered && matches!(condition, Condition::Role(_));
    about(frame).into_iter().filter(|condition| !is_covered(condition)).collect()
}
