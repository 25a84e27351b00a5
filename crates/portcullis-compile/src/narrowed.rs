//! Conditions of rules about the past, as `where` and `unless_roles` of marks and sequences.
//!
//! A sequence can be narrowed by values and amounts of arguments, and by roles that it is not for. Other conditions have no
//! form there; a rule with one of them is refused.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::emit::pointer;
use crate::english;
use crate::rule::{Asks, Compare, Condition, Number, Rule, Test};
use crate::spec::{Spec, quoted};

/// What of a rule about the past has no form in a sequence; nothing if all of it has.
pub(crate) fn unstated(rule: &Rule, spec: &Spec) -> Option<String> {
    let past = rule.past.as_ref()?;
    let is_list = |tools: &[String], name: &str| {
        tools.iter().any(|tool| {
            let argument = spec.tool(tool).and_then(|tool| tool.argument(name));
            argument.is_none_or(|argument| argument.kind == "array")
        })
    };
    let stated = |condition: &Condition, tools: &[String]| {
        // A list has several values, of which a program and a sequence judge differently.
        argument(condition).is_some_and(|name| !is_list(tools, name)) && table_entry(condition).is_some()
    };
    let clashes = [&rule.when, &past.earlier].into_iter().find_map(|conditions| clash(conditions));
    let judged =
        rule.when.iter().find(|condition| !is_exemption(condition) && !stated(condition, &rule.tools));
    let none = Vec::new();
    let before = match &past.asks {
        Asks::After(tools) | Asks::Before(tools) => tools,
        _ => &none,
    };
    let earlier = past.earlier.iter().find(|condition| !stated(condition, before));
    judged.or(earlier).or(clashes).map(english::condition)
}

/// A condition on an argument of which another says the same kind of thing: the table has one place for both.
fn clash(conditions: &[Condition]) -> Option<&Condition> {
    let kind = |condition: &Condition| match table_entry(condition)? {
        Entry::Values(_) => Some("value".to_owned()),
        Entry::Field(text) => text.split(' ').next().map(str::to_owned),
    };
    conditions.iter().enumerate().find_map(|(place, condition)| {
        let own = (argument(condition)?, kind(condition)?);
        let mut before = conditions.iter().take(place);
        before
            .any(|other| {
                argument(other) == Some(own.0)
                    && kind(other).is_some_and(|kind| kind == own.1 || kind == "value" || own.1 == "value")
            })
            .then_some(condition)
    })
}

fn is_exemption(condition: &Condition) -> bool {
    matches!(condition, Condition::Not(inner) if matches!(inner.as_ref(), Condition::Role(_)))
}

fn argument(condition: &Condition) -> Option<&str> {
    match condition {
        Condition::Argument(name, _) => Some(name),
        Condition::Not(inner) => match inner.as_ref() {
            Condition::Argument(name, _) => Some(name),
            _ => None,
        },
        _ => None,
    }
}

/// A condition as entries of the table of its argument, or as the value in the table's place.
fn table_entry(condition: &Condition) -> Option<Entry> {
    match condition {
        Condition::Argument(_, Test::OneOf(values)) => Some(Entry::Values(values.clone())),
        Condition::Argument(_, Test::Compares(compare, number)) => bound(*compare, *number, false),
        Condition::Not(inner) => match inner.as_ref() {
            Condition::Argument(_, Test::OneOf(values)) => {
                Some(Entry::Field(format!("not = {}", list(values))))
            }
            Condition::Argument(_, Test::Compares(compare, number)) => bound(*compare, *number, true),
            _ => None,
        },
        _ => None,
    }
}

enum Entry {
    Values(Vec<String>),
    Field(String),
}

fn bound(compare: Compare, number: Number, negated: bool) -> Option<Entry> {
    let word = match (compare, negated) {
        (Compare::Over, false) | (Compare::AtMost, true) => "over",
        (Compare::AtLeast, false) | (Compare::Under, true) => "at_least",
        (Compare::Under, false) | (Compare::AtLeast, true) => "under",
        (Compare::AtMost, false) | (Compare::Over, true) => "at_most",
        (Compare::Equal, _) => return None,
    };
    (number.0 >= 0).then(|| Entry::Field(format!("{word} = {number}")))
}

/// Values as texts, and as the numbers or booleans that they also are.
fn list(values: &[String]) -> String {
    let all = values.iter().flat_map(|value| {
        let plain = value == "true" || value == "false" || is_number(value);
        [Some(quoted(value)), plain.then(|| value.clone())].into_iter().flatten()
    });
    format!("[{}]", all.collect::<Vec<_>>().join(", "))
}

fn is_number(text: &str) -> bool {
    text.len() < 16 && !text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit()) || text == "0"
}

/// The line `where = { … }`; empty without conditions on arguments.
pub(crate) fn table(conditions: &[Condition]) -> String {
    let mut of: BTreeMap<&str, Vec<Entry>> = BTreeMap::new();
    for condition in conditions {
        if let (Some(name), Some(entry)) = (argument(condition), table_entry(condition)) {
            of.entry(name).or_default().push(entry);
        }
    }
    let arguments: Vec<String> = of
        .into_iter()
        .map(|(name, entries)| {
            let value = match entries.as_slice() {
                [Entry::Values(values)] => list(values),
                entries => {
                    let fields = entries.iter().filter_map(|entry| match entry {
                        Entry::Field(text) => Some(text.as_str()),
                        Entry::Values(_) => None,
                    });
                    format!("{{ {} }}", fields.collect::<Vec<_>>().join(", "))
                }
            };
            format!("{} = {value}", quoted(&pointer(name)))
        })
        .collect();
    if arguments.is_empty() { String::new() } else { format!("where = {{ {} }}\n", arguments.join(", ")) }
}

/// The line `unless_roles = […]`; empty where nobody is exempt.
pub(crate) fn roles(conditions: &[Condition]) -> String {
    let of = conditions.iter().filter_map(|condition| match condition {
        Condition::Not(inner) => match inner.as_ref() {
            Condition::Role(roles) => Some(roles),
            _ => None,
        },
        _ => None,
    });
    let all: Vec<String> = of.flatten().map(|role| quoted(role)).collect();
    let mut text = String::new();
    if !all.is_empty() {
        let _infallible = writeln!(text, "unless_roles = [{}]", all.join(", "));
    }
    text
}
