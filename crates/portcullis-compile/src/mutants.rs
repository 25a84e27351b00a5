//! Rules with one thing changed. A changed rule that no test tells from the rule itself is a question: is it meant?
//!
//! They are judged by [`meaning`](crate::meaning), so that hundreds of them take milliseconds. That the emitted files mean
//! the same as the rules is what the generated tests show.

use crate::cases::Run;
use crate::english;
use crate::meaning;
use crate::rule::{Asks, Compare, Condition, Number, Past, Rule, Test, Window};

/// A rule with one thing changed.
#[derive(Debug, Clone, PartialEq)]
pub struct Mutant {
    /// The rule's place in the draft.
    pub rule: usize,
    /// The changed rule; none where it is left out.
    pub changed: Option<Rule>,
}

impl Mutant {
    /// What it would mean.
    pub fn sentence(&self) -> String {
        self.changed.as_ref().map_or_else(|| "There is no such rule.".to_owned(), english::sentence)
    }
}

/// What runs show of rules.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Shown {
    /// How many changes the runs tell from the rules.
    pub killed: usize,
    /// Those that they do not.
    pub survivors: Vec<Mutant>,
    /// Places of rules without which every verdict is the same: no run reaches them.
    pub vacuous: Vec<usize>,
}

/// Holds runs to the changes of rules.
pub fn shown(rules: &[Rule], runs: &[Run]) -> Shown {
    let judged = |rules: &[Rule]| -> Vec<Vec<meaning::Must>> {
        runs.iter().map(|run| meaning::judge(rules, &run.caller, &run.calls)).collect()
    };
    let meant = judged(rules);
    let mut shown = Shown::default();
    for (place, rule) in rules.iter().enumerate() {
        let without = Mutant { rule: place, changed: None };
        let changed = mutants(rule).into_iter().map(|changed| Mutant { rule: place, changed: Some(changed) });
        for mutant in changed.chain([without]) {
            let all = rules.iter().enumerate().filter_map(|(other, rule)| {
                if other == place { mutant.changed.clone() } else { Some(rule.clone()) }
            });
            if judged(&all.collect::<Vec<_>>()) != meant {
                shown.killed += 1;
            } else if mutant.changed.is_none() {
                shown.vacuous.push(place);
            } else {
                shown.survivors.push(mutant);
            }
        }
    }
    shown
}

/// The rule with one thing changed, in all ways.
pub fn mutants(rule: &Rule) -> Vec<Rule> {
    let mut found = Vec::new();
    for (place, condition) in rule.when.iter().enumerate() {
        let mut dropped = rule.clone();
        dropped.when.remove(place);
        found.push(dropped);
        for changed in conditions(condition) {
            let mut mutant = rule.clone();
            if let Some(own) = mutant.when.get_mut(place) {
                *own = changed;
            }
            found.push(mutant);
        }
    }
    let pasts = rule.past.iter().flat_map(pasts);
    found.extend(pasts.map(|past| Rule { past: Some(past), ..rule.clone() }));
    found
}

fn conditions(condition: &Condition) -> Vec<Condition> {
    match condition {
        Condition::Not(inner) => {
            let mut found: Vec<Condition> =
                conditions(inner).into_iter().map(|inner| Condition::Not(Box::new(inner))).collect();
            found.push(inner.as_ref().clone());
            found
        }
        Condition::Role(roles) if roles.len() > 1 => {
            without_one(roles).into_iter().map(Condition::Role).collect()
        }
        Condition::Argument(name, test) => {
            tests(test).into_iter().map(|test| Condition::Argument(name.clone(), test)).collect()
        }
        _ => Vec::new(),
    }
}

fn without_one(items: &[String]) -> Vec<Vec<String>> {
    let without = |place: usize| {
        let mut items = items.to_vec();
        items.remove(place);
        items
    };
    (0..items.len()).map(without).collect()
}

fn turned(compare: Compare) -> Compare {
    match compare {
        Compare::Over => Compare::AtLeast,
        Compare::AtLeast => Compare::Over,
        Compare::Under => Compare::AtMost,
        Compare::AtMost | Compare::Equal => Compare::Under,
    }
}

fn tests(test: &Test) -> Vec<Test> {
    match test {
        Test::Compares(compare, limit) => {
            let cent = Number::ONE / 100;
            let moved = |step: i64| Test::Compares(*compare, Number(limit.0.saturating_add(step)));
            vec![Test::Compares(turned(*compare), *limit), moved(cent), moved(-cent)]
        }
        Test::Items(compare, count) => {
            vec![Test::Items(turned(*compare), *count), Test::Items(*compare, count.saturating_add(1))]
        }
        Test::OneOf(values) if values.len() > 1 => without_one(values).into_iter().map(Test::OneOf).collect(),
        Test::Starts(starts) if starts.len() > 1 => {
            without_one(starts).into_iter().map(Test::Starts).collect()
        }
        Test::Contains(parts) if parts.len() > 1 => {
            without_one(parts).into_iter().map(Test::Contains).collect()
        }
        Test::InDomain(domains, below) => vec![Test::InDomain(domains.clone(), !below)],
        _ => Vec::new(),
    }
}

fn pasts(past: &Past) -> Vec<Past> {
    let mut found = Vec::new();
    if past.same.is_some() {
        found.push(Past { same: None, ..past.clone() });
    }
    if let Some(Window::Seconds(seconds)) = past.within {
        found.push(Past { within: Some(Window::Seconds(seconds.saturating_mul(2))), ..past.clone() });
        found.push(Past { within: None, ..past.clone() });
    }
    for (place, condition) in past.earlier.iter().enumerate() {
        let mut dropped = past.clone();
        dropped.earlier.remove(place);
        found.push(dropped);
        for changed in conditions(condition) {
            let mut mutant = past.clone();
            if let Some(own) = mutant.earlier.get_mut(place) {
                *own = changed;
            }
            found.push(mutant);
        }
    }
    match &past.asks {
        Asks::Count(most) => {
            let counts = [most.saturating_add(1), most.saturating_sub(1)];
            found.extend(counts.map(|most| Past { asks: Asks::Count(most), ..past.clone() }));
        }
        Asks::Sum(argument, most) => {
            let more = Asks::Sum(argument.clone(), Number(most.0.saturating_add(10_000)));
            found.push(Past { asks: more, ..past.clone() });
        }
        Asks::After(_) | Asks::Before(_) => {}
    }
    found
}
