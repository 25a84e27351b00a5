//! `failure_mode_analysis.md`: how this run failed, could have failed, and what stood in the way.

use std::collections::BTreeMap;

use portcullis_contracts::verify::Status;
use portcullis_core::event::{ApprovalDecision, Enforced, OutcomeStatus};
use portcullis_core::guard::GuardMeta;
use portcullis_core::verdict::Verdict;

use crate::facts::{ActionFact, Facts, guard_of, hook_word};
use crate::input::PackInput;
use crate::markdown::{Document, all_names, code, count, events, names, text};
use crate::signals::Signals;
use crate::summary;
use crate::verification;

/// The most actions of one rule that are told one by one.
const ACTIONS_TOLD_MAX: usize = 8;

/// Writes the file.
pub(crate) fn markdown(input: &PackInput<'_>, facts: &Facts, signals: &Signals) -> Vec<u8> {
    let mut document = Document::new(&format!("Failure modes of run {}", input.record.run()));
    document.paragraph(&summary::sentence(input.record));
    let stopped = stopped(input, facts);
    let mut said = false;
    for (title, points) in [
        ("What was stopped", stopped),
        ("What waited for a person", held(facts)),
        ("What a model was asked about", opinions(facts)),
        ("What failed nevertheless", failed(facts)),
        ("What was close to a limit", close(signals)),
    ] {
        said |= !points.is_empty();
        document.points(title, &points);
    }
    if !said {
        document.paragraph("Nothing was stopped, held or close to a limit, and nothing failed.");
    }
    document.table(
        "Guards that found something",
        &["guard", "rule", "strictest", "found in", "first reason"],
        &fired(input, facts),
    );
    document.points("Guards that ran and found nothing", &silent(input, facts));
    document.finish()
}

/// Denials by their deciding rule, and texts that were withheld or changed.
fn stopped(input: &PackInput<'_>, facts: &Facts) -> Vec<String> {
    let mut by_rule: BTreeMap<&str, Vec<&ActionFact>> = BTreeMap::new();
    for action in facts.denied() {
        by_rule.entry(action.rule.as_deref().unwrap_or("no rule")).or_default().push(action);
    }
    let mut points: Vec<String> =
        by_rule.into_iter().map(|(rule, actions)| stopped_by(input, rule, &actions)).collect();
    for text_fact in &facts.texts {
        let Some((event, enforced)) = text_fact.enforced else { continue };
        let what = match enforced {
            Enforced::Withheld => "was withheld",
            Enforced::Replaced => "was shown with stretches replaced",
            _ => continue,
        };
        let what_it_was = match text_fact.hook {
            portcullis_core::action::Hook::Input => "An input",
            portcullis_core::action::Hook::Observation => "The result of a tool",
            _ => "A reply",
        };
        let reason = text_fact.reason.as_deref().map(text).unwrap_or_default();
        let rule = text_fact.rule.as_deref().map(code).unwrap_or_default();
        let at = text_fact.event;
        points.push(format!("{what_it_was} (event {at}) {what} by {rule} (event {event}): {reason}."));
    }
    points
}

fn stopped_by(input: &PackInput<'_>, rule: &str, actions: &[&ActionFact]) -> String {
    let told = actions.iter().take(ACTIONS_TOLD_MAX).map(|action| {
        let event = action.blocked().unwrap_or(action.proposed);
        format!("step {} {} (event {event})", action.step, code(action.name()))
    });
    let told: Vec<String> = told.collect();
    let more = actions.len().saturating_sub(ACTIONS_TOLD_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let reason = actions.first().and_then(|action| action.reason.as_deref()).map(text).unwrap_or_default();
    let effects = actions.iter().filter(|action| action.side_effecting).count();
    let effects = match effects {
        0 => String::new(),
        all => format!(" {} would have had a side effect.", count(all, "of them", "of them")),
    };
    format!(
        "{} denied {}: {}{more}. The reason given first: {reason}.{effects} {}{}",
        code(rule),
        count(actions.len(), "action", "actions"),
        told.join(", "),
        depth(actions, input.guards),
        lower_rungs(input, rule, actions)
    )
}

/// Whether anything else would have stopped the same actions: where not, one rule is all there was.
fn depth(actions: &[&ActionFact], guards: &[&'static GuardMeta]) -> String {
    let guard = |rule: &str| guard_of(rule, guards).map_or("gate", |guard| guard.id);
    let alone: Vec<u64> = actions
        .iter()
        .filter(|action| {
            let mut stoppers: Vec<&str> = action.stoppers.iter().map(|rule| guard(rule)).collect();
            stoppers.sort_unstable();
            stoppers.dedup();
            stoppers.len() <= 1
        })
        .map(|action| action.proposed)
        .collect();
    let mut others: Vec<&str> = actions
        .iter()
        .flat_map(|action| action.stoppers.iter().map(|rule| (action.rule.as_deref(), rule)))
        .filter(|(decided, rule)| decided.is_none_or(|decided| guard(decided) != guard(rule)))
        .map(|(_, rule)| rule.as_str())
        .collect();
    others.sort_unstable();
    others.dedup();
    match (alone.len(), others.as_slice()) {
        (0, others) => {
            format!("Each would have been stopped without it too, by {}.", names(others.iter().copied()))
        }
        (some, []) if some == actions.len() => "No other guard would have stopped any of them.".to_owned(),
        (_, others) => format!(
            "No other guard would have stopped those proposed in {}; the others would also have been stopped by {}.",
            events(&alone),
            names(others.iter().copied())
        ),
    }
}

/// What the rungs below would have said of actions that the first rungs of the policy's ladder denied: it gives its
/// first reason only.
fn lower_rungs(input: &PackInput<'_>, rule: &str, actions: &[&ActionFact]) -> String {
    let first = ["runtime-policy/tool-type", "runtime-policy/step-limit"].contains(&rule);
    let opened = input.record.opened().filter(|_| first);
    let policy = opened.and_then(|opened| input.bundle(opened.bundle)?.policy(&opened.policy));
    let Some(policy) = policy else { return String::new() };
    let keyword = |action: &&&ActionFact| {
        let at = usize::try_from(action.proposed).ok().and_then(|seq| seq.checked_sub(1));
        let Some(event) = at.and_then(|at| input.record.events().get(at)) else { return false };
        let texts = input.record.texts(event);
        let arguments = texts.get("arguments").and_then(|text| serde_json::from_str(text).ok());
        texts.get("planned").is_some_and(|text| policy.find_keyword(text).is_some())
            || arguments
                .is_some_and(|arguments| any_text(&arguments, &|text| policy.find_keyword(text).is_some()))
    };
    let keywords = actions.iter().filter(keyword).count();
    let held =
        actions.iter().filter(|action| policy.approval_for_side_effects && action.side_effecting).count();
    match (keywords, held) {
        (0, 0) => " A lower step of the policy would not have either.".to_owned(),
        (keywords, held) => format!(
            " Of the policy's lower steps, restricted keywords match {keywords} of them, and approval of side effects {held}."
        ),
    }
}

/// Whether a text in a JSON value fits.
fn any_text(value: &serde_json::Value, fits: &dyn Fn(&str) -> bool) -> bool {
    match value {
        serde_json::Value::String(text) => fits(text),
        serde_json::Value::Array(items) => items.iter().any(|item| any_text(item, fits)),
        serde_json::Value::Object(map) => map.values().any(|item| any_text(item, fits)),
        _ => false,
    }
}

/// What was held, and what people said.
fn held(facts: &Facts) -> Vec<String> {
    let mut points = Vec::new();
    for approval in facts.approvals.values() {
        let asked = approval.requested.map_or_else(String::new, |event| format!(" (event {event})"));
        let answer = match approval.latest() {
            None => "it was not answered before the record ends".to_owned(),
            Some((event, ApprovalDecision::Endorsed)) => {
                format!("fewer people agreed than have to (last event {event}) before the record ends")
            }
            Some((event, ApprovalDecision::Granted)) => match approval.claimed.as_slice() {
                [] => format!("it was granted (event {event}), but the grant was never used"),
                claimed => format!("it was granted (event {event}) and used ({})", events(claimed)),
            },
            Some((event, ApprovalDecision::Refused)) => format!("a person refused it (event {event})"),
            Some((event, ApprovalDecision::Answered)) => {
                format!("a person answered with a sentence to the agent (event {event})")
            }
            Some((event, ApprovalDecision::Revoked)) => format!("the grant was revoked (event {event})"),
            Some((event, ApprovalDecision::Expired)) => format!("it expired (event {event})"),
        };
        points.push(format!("A call of {} was held{asked}: {answer}.", code(&approval.tool)));
    }
    let asked: Vec<u64> = facts.actions.iter().filter_map(|action| action.when(Enforced::Asked)).collect();
    if !asked.is_empty() {
        points.push(format!(
            "{} left to the client's own prompt ({}): the record does not say who answered.",
            count(asked.len(), "action was", "actions were"),
            events(&asked)
        ));
    }
    points
}

/// Second opinions, apart from what the gate itself decided.
fn opinions(facts: &Facts) -> Vec<String> {
    let opinions = &facts.opinions;
    let told = [
        (&opinions.covered, "a model said that the request covers it, and what would have been held was not"),
        (&opinions.uncovered, "a model said that the request does not cover it, and it was denied"),
        (&opinions.unsaid, "a model was asked and gave no answer in time, and the hold stood"),
    ];
    let told = told.into_iter().filter(|(verdicts, _)| !verdicts.is_empty());
    told.map(|(verdicts, what)| {
        format!("{}: {what} ({}).", count(verdicts.len(), "call", "calls"), events(verdicts))
    })
    .collect()
}

/// What went ahead and did not end well.
fn failed(facts: &Facts) -> Vec<String> {
    let mut points = Vec::new();
    for (status, what) in [
        (OutcomeStatus::Error, "ended in an error; the tool may have acted anyway"),
        (OutcomeStatus::Timeout, "had no answer in time; the tool may have acted anyway"),
        (OutcomeStatus::Unknown, "have no known outcome: the writer ended first"),
        (OutcomeStatus::InputRequired, "ended with the tool asking for more"),
    ] {
        let ended: Vec<(&str, u64)> = facts
            .actions
            .iter()
            .filter_map(|action| {
                action.outcome.filter(|(_, found)| *found == status).map(|(event, _)| (action.name(), event))
            })
            .collect();
        if ended.is_empty() {
            continue;
        }
        let numbers: Vec<u64> = ended.iter().map(|(_, event)| *event).collect();
        let mut tools: Vec<&str> = ended.iter().map(|(tool, _)| *tool).collect();
        tools.sort_unstable();
        tools.dedup();
        let calls = count(ended.len(), "call", "calls");
        points.push(format!("{calls} of {} {what} ({}).", names(tools), events(&numbers)));
    }
    for (reply, result) in facts.checks(Status::Fail) {
        let delivered =
            match facts.texts.iter().find(|text| text.event == reply.reply).and_then(|text| text.enforced) {
                Some((event, Enforced::Withheld | Enforced::Held)) => {
                    format!("the reply was withheld (event {event})")
                }
                _ => "the reply was delivered".to_owned(),
            };
        points.push(format!(
            "Reply {} failed {} (event {}): {}; {delivered}.",
            reply.reply,
            code(result.check.check_type()),
            reply.event,
            text(&verification::details(result)),
        ));
    }
    for (rule, fact) in facts.rules.iter().filter(|(rule, _)| rule.starts_with("gate/")) {
        points.push(format!(
            "The gate itself denied, by {} ({}): {}.",
            code(rule),
            events(&fact.events),
            text(&fact.message)
        ));
    }
    let lost = facts.of_kind("gap");
    if !lost.is_empty() {
        points.push(format!("The record states that events were lost ({}).", events(lost)));
    }
    points
}

/// Figures near a limit that they did not pass.
fn close(signals: &Signals) -> Vec<String> {
    let near = signals.near().into_iter().map(|measure| {
        let at = measure.event.map_or_else(String::new, |event| format!(" at event {event}"));
        let (value, limit) = (measure.shown(measure.value), measure.shown(measure.limit));
        format!(
            "{} reached {value} of {limit}{at} ({:.0} %): at the limit, {}.",
            capital(&measure.name),
            measure.part() * 100.0,
            measure.means
        )
    });
    near.collect()
}

fn capital(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    first + characters.as_str()
}

fn fired(input: &PackInput<'_>, facts: &Facts) -> Vec<Vec<String>> {
    let row = |(rule, fact): (&String, &crate::facts::RuleFact)| {
        let guard = guard_of(rule, input.guards).map_or("gate", |guard| guard.id);
        let granted = match fact.granted.as_slice() {
            [] => String::new(),
            granted => format!("; answered by a grant in {}", events(granted)),
        };
        vec![
            code(guard),
            code(rule),
            fact.verdict.to_string(),
            format!("{}{granted}", events(&fact.events)),
            text(&fact.message),
        ]
    };
    let strict = |verdict: Verdict| std::cmp::Reverse(verdict);
    let mut rules: Vec<_> = facts.rules.iter().collect();
    rules.sort_by_key(|(rule, fact)| (strict(fact.verdict), (*rule).clone()));
    rules.into_iter().map(row).collect()
}

/// Guards without a finding: those that looked, and those that had nothing to look at.
fn silent(input: &PackInput<'_>, facts: &Facts) -> Vec<String> {
    let mut looked: BTreeMap<Vec<&str>, (Vec<&str>, usize)> = BTreeMap::new();
    let mut points = Vec::new();
    for guard in input.guards.iter().filter(|guard| facts.rules_of(guard, input.guards).next().is_none()) {
        let hooks: Vec<&str> = guard.hooks.iter().map(|hook| hook_word(*hook)).collect();
        let times = guard.hooks.iter().map(|hook| facts.looked_at(*hook).len()).sum();
        let entry = looked.entry(hooks).or_insert((Vec::new(), times));
        entry.0.push(guard.id);
    }
    for (hooks, (guards, times)) in looked {
        let at = hooks.join(" and ");
        let guards = all_names(guards);
        points.push(match times {
            0 => format!("At {at}, which had nothing to judge, so they never ran: {guards}."),
            times => format!("At {at}, {}: {guards}.", count(times, "time", "times")),
        });
    }
    points
}
