//! Rules in plain English: what was understood, in other words than the request's.
//!
//! The sentences are *canonical*: `read::canonical` reads each of them back into the same rule, so that a sentence can be
//! offered as an answer. What is written here is read there; a property test holds both.

use std::fmt::Write as _;

use crate::rule::{Asks, Compare, Condition, Past, Rule, Stop, Test, Times, Unit, Window};

const DAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// One rule as a sentence.
pub fn sentence(rule: &Rule) -> String {
    let mut text = format!("A call of {}", list(&rule.tools, "or", true));
    match &rule.stop {
        Stop::Deny => text.push_str(" is denied"),
        Stop::Hold(None) => text.push_str(" is held until a person approves it"),
        Stop::Hold(Some(role)) => {
            let _infallible = write!(text, " is held until somebody with the role `{role}` approves it");
        }
    }
    let mut when: Vec<String> = rule.when.iter().map(condition).collect();
    when.extend(rule.past.as_ref().map(past));
    if when.is_empty() {
        text.push_str(", always");
    } else {
        let _infallible = write!(text, " if {}", when.join(", and "));
    }
    text.push('.');
    text
}

/// Why a call is stopped, for the agent and the approver.
pub fn reason(rule: &Rule) -> String {
    let when: Vec<String> = rule.when.iter().map(condition).collect();
    match (when.is_empty(), &rule.stop) {
        (true, Stop::Deny) => "this is never allowed".to_owned(),
        (true, Stop::Hold(_)) => "this needs an approval".to_owned(),
        (false, _) => when.join(", and "),
    }
}

fn list(items: &[String], joint: &str, code: bool) -> String {
    let items: Vec<String> =
        items.iter().map(|item| if code { format!("`{item}`") } else { item.clone() }).collect();
    match items.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} {joint} {last}", rest.join(", ")),
        None => String::new(),
    }
}

fn compared(compare: Compare) -> &'static str {
    match compare {
        Compare::Over => "more than",
        Compare::AtLeast => "at least",
        Compare::Under => "less than",
        Compare::AtMost => "at most",
        Compare::Equal => "exactly",
    }
}

/// A condition as a clause.
pub fn condition(condition: &Condition) -> String {
    match condition {
        Condition::Role(roles) => format!("the caller has the role {}", list(roles, "or", true)),
        Condition::Attribute(name, compare, value) => {
            format!("the caller's `{name}` is {} {value}", compared(*compare))
        }
        Condition::Flag(name) => format!("the caller's `{name}` is true"),
        Condition::Argument(name, test) => format!("`{name}` {}", tested(test, true)),
        Condition::At(times) => format!("the time is {}", timed(times)),
        Condition::Not(inner) => match inner.as_ref() {
            Condition::Role(roles) => {
                format!("the caller does not have the role {}", list(roles, "or", true))
            }
            Condition::Argument(name, test) => format!("`{name}` {}", tested(test, false)),
            Condition::At(times) => format!("the time is not {}", timed(times)),
            other => format!("it is not so that ({})", self::condition(other)),
        },
        Condition::Any(all) => {
            format!("({})", all.iter().map(self::condition).collect::<Vec<_>>().join("; or "))
        }
        Condition::All(all) => {
            format!("({})", all.iter().map(self::condition).collect::<Vec<_>>().join("; and "))
        }
    }
}

fn tested(test: &Test, holds: bool) -> String {
    let is = if holds { "is" } else { "is not" };
    match test {
        Test::OneOf(values) => format!("{is} {}", list(values, "or", true)),
        Test::Compares(compare, value) => format!("{is} {} {value}", compared(*compare)),
        Test::InDomain(domains, true) => format!("{is} at {} or below", list(domains, "or", true)),
        Test::InDomain(domains, false) => format!("{is} at exactly {}", list(domains, "or", true)),
        Test::Under(folders) => format!("{is} in the folder {}", list(folders, "or", true)),
        Test::Named(names) => format!("{is} a file named {}", list(names, "or", true)),
        Test::Starts(starts) => {
            format!(
                "{} {}",
                if holds { "begins with" } else { "does not begin with" },
                list(starts, "or", true)
            )
        }
        Test::Contains(parts) => {
            format!("{} {}", if holds { "contains" } else { "does not contain" }, list(parts, "or", true))
        }
        Test::Given => (if holds { "is given" } else { "is missing or empty" }).to_owned(),
        Test::Items(compare, count) => {
            format!("{} {} {count} entries", if holds { "has" } else { "does not have" }, compared(*compare))
        }
    }
}

fn timed(times: &Times) -> String {
    let mut parts = Vec::new();
    if !times.weekdays.is_empty() {
        let days = times.weekdays.iter().filter_map(|day| DAYS.get(usize::from(*day)));
        parts.push(format!(
            "on {}",
            list(&days.map(|day| (*day).to_owned()).collect::<Vec<_>>(), "or", false)
        ));
    }
    if let Some((from, until)) = times.minutes {
        let clock = |minute: u16| format!("{:02}:{:02}", minute / 60, minute % 60);
        parts.push(format!("from {} and before {}", clock(from), clock(until)));
    }
    match &times.dates {
        Some((from, until)) if until.is_empty() => parts.push(format!("on or after {from}")),
        Some((from, until)) if from.is_empty() => parts.push(format!("on or before {until}")),
        Some((from, until)) => parts.push(format!("on a day from {from} to {until}")),
        None => {}
    }
    let zone = match times.offset {
        0 => "UTC".to_owned(),
        offset => format!(
            "UTC{}{:02}:{:02}",
            if offset < 0 { '-' } else { '+' },
            offset.unsigned_abs() / 60,
            offset.unsigned_abs() % 60
        ),
    };
    format!("{} ({zone})", parts.join(", "))
}

fn past(past: &Past) -> String {
    let same = past.same.as_ref().map_or_else(String::new, |(earlier, judged)| {
        if earlier == judged {
            format!(" with the same `{judged}`")
        } else {
            format!(" with a `{earlier}` equal to its `{judged}`")
        }
    });
    let called = |tools: &[String]| match past.earlier.as_slice() {
        [] => list(tools, "or", true),
        earlier => {
            let earlier: Vec<String> = earlier.iter().map(condition).collect();
            format!("{} with ({})", list(tools, "or", true), earlier.join("; and "))
        }
    };
    let within = past.within.map_or_else(String::new, |window| format!(" within {}", windowed(window)));
    let within = match past.is_over_principal() {
        true => format!("{within} in all runs of the principal"),
        false => format!("{within} in the run"),
    };
    match &past.asks {
        Asks::Count(most) => {
            let times = if *most == 1 { "once".to_owned() } else { format!("{most} times") };
            format!("it would be more than {times}{same}{within}")
        }
        Asks::Sum(argument, most) => {
            format!("`{argument}` of all such calls{same} would come to more than {most}{within}")
        }
        Asks::After(tools) => format!("{} was called before{same}{within}", called(tools)),
        Asks::Before(tools) => format!("{} has not succeeded before{same}{within}", called(tools)),
    }
}

/// A window in words.
pub fn windowed(window: Window) -> String {
    match window {
        Window::Seconds(seconds) => {
            let units = [(86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second")];
            let unit =
                units.into_iter().find(|(size, _)| seconds.is_multiple_of(*size)).unwrap_or((1, "second"));
            let count = seconds / unit.0;
            if count == 1 { format!("1 {}", unit.1) } else { format!("{count} {}s", unit.1) }
        }
        Window::Calendar(unit) => format!("one calendar {}", named(unit)),
    }
}

fn named(unit: Unit) -> &'static str {
    match unit {
        Unit::Hour => "hour",
        Unit::Day => "day",
        Unit::Week => "week",
        Unit::Month => "month",
        Unit::Year => "year",
    }
}
