//! Events as rows of a timeline: what they say, and the beginnings of their texts.

use std::collections::BTreeMap;

use portcullis_console::run::{Call, Chosen, Found, Opinion, Row, Text};
use portcullis_contracts::verify::{CheckResult, Side, Status};
use portcullis_core::event::{About, Enforced, Event, EventBody, PayloadRef, VerdictRecord};
use portcullis_core::fact::FactAnswer;
use portcullis_core::id::{ActionId, RunId};
use portcullis_core::verdict::Verdict;
use portcullis_governance::verification::details;
use portcullis_guards::flow::second_opinion;
use portcullis_ledger::{LedgerError, Reader, StoredEvent};
use portcullis_session::engine::VERIFICATION;
use serde::Deserialize;
use serde_json::Value;

use super::super::queries::join;

/// What a row shows of a text, in characters.
const PREVIEW_CHARS: usize = 280;
/// What it shows of one of which something was taken out.
const EDITED_CHARS: usize = 1_500;
/// What it shows of the arguments.
const ARGUMENTS_CHARS: usize = 120;
/// Longest text that is read for a row, in bytes.
const READ_BYTES_MAX: u64 = 256 << 10;
/// What is shown of a text of the event that is looked at, in characters.
const WHOLE_CHARS: usize = 12_000;
/// Events after a proposal among which its verdict is: facts come between them.
const FINDINGS_WITHIN: u64 = 24;
/// Texts that are no text of the user, the agent or a tool: a key, and words that are in the event.
const OWN: [&str; 4] = ["digest-key", "findings", "scope", "work"];

/// A step's events, read and joined with their words.
pub(super) fn events(
    reader: &dyn Reader,
    run: RunId,
    first: u64,
    last: u64,
) -> Result<Vec<Event>, LedgerError> {
    let count = usize::try_from(last.saturating_sub(first) + 1).unwrap_or(usize::MAX);
    let stored = reader.events(run, first.saturating_sub(1), count)?;
    stored.into_iter().filter_map(|stored| joined(reader, run, stored).transpose()).collect()
}

fn joined(reader: &dyn Reader, run: RunId, mut stored: StoredEvent) -> Result<Option<Event>, LedgerError> {
    join(reader, run, &mut stored.line)?;
    Ok(Event::from_line(&stored.line).ok())
}

/// What the verdicts of a step say of its other events.
#[derive(Debug, Default)]
struct Judged {
    /// Verdict and enforcement of each action.
    actions: BTreeMap<ActionId, (Verdict, Option<Enforced>)>,
    /// What was taken out of the text of an event.
    edits: BTreeMap<u64, Vec<(usize, usize, String)>>,
    /// What checks say of a reply.
    checks: BTreeMap<u64, Vec<CheckResult>>,
}

/// The payload of the evidence that has what the checks say.
#[derive(Deserialize)]
struct Checked {
    reply: u64,
    checks: Vec<CheckResult>,
}

impl Judged {
    fn of(reader: &dyn Reader, run: RunId, events: &[Event]) -> Result<Self, LedgerError> {
        let mut judged = Self::default();
        for event in events {
            match &event.body {
                EventBody::Verdict(record) => judged.verdict(event, record),
                EventBody::Enforcement { action: Some(action), enforced, .. } => {
                    // The first is the call's; what follows is about its result.
                    if let Some((_, known @ None)) = judged.actions.get_mut(action) {
                        *known = Some(*enforced);
                    }
                }
                EventBody::Evidence { name, .. } if name == VERIFICATION => {
                    let stored = match event.payloads.get("results") {
                        Some(payload) => reader.payload(run, payload.commitment)?,
                        None => None,
                    };
                    let read = stored.and_then(|stored| serde_json::from_slice(stored.bytes()).ok());
                    if let Some(Checked { reply, checks }) = read {
                        judged.checks.insert(reply, checks);
                    }
                }
                _ => {}
            }
        }
        Ok(judged)
    }

    fn verdict(&mut self, event: &Event, record: &VerdictRecord) {
        if let Some(action) = record.action {
            self.actions.entry(action).or_insert((record.verdict, None));
        }
        let edits = record.findings.iter().flat_map(|finding| &finding.edits);
        let of_text = edits.filter(|edit| edit.span.pointer == "/text");
        let edits: Vec<_> =
            of_text.map(|edit| (edit.span.start, edit.span.end, edit.replacement.clone())).collect();
        if let (Some(cause), false) = (event.cause, edits.is_empty()) {
            self.edits.entry(cause).or_default().extend(edits);
        }
    }
}

/// The rows of a step.
pub(super) fn rows(reader: &dyn Reader, run: RunId, events: &[Event]) -> Result<Vec<Row>, LedgerError> {
    let judged = Judged::of(reader, run, events)?;
    let mut rows = Vec::with_capacity(events.len());
    for event in events {
        // The call's row says what its first verdict and enforcement said.
        let told = match &event.body {
            EventBody::Verdict(record) => {
                record.action.is_some() && record.findings.is_empty() && rows_has_call(&rows)
            }
            EventBody::Enforcement { action: Some(_), enforced, .. } => {
                matches!(enforced, Enforced::Executed | Enforced::Withheld | Enforced::Held)
                    && rows_has_call(&rows)
            }
            _ => false,
        };
        if !told {
            rows.push(row(reader, run, event, &judged)?);
        }
    }
    if let Some(first) = rows.iter_mut().find(|row| row.call.is_some()) {
        if let Some(reason) = reason(events) {
            (first.words, first.rule) = reason;
        }
        first.opinion = events.iter().find_map(|event| match &event.body {
            EventBody::Verdict(record) => opinion(record),
            _ => None,
        });
    }
    Ok(rows)
}

/// What a model said of a call that was to be held.
fn opinion(record: &VerdictRecord) -> Option<Opinion> {
    let fact = record.facts.iter().find(|fact| fact.request.source == second_opinion::SOURCE)?;
    let covers = match &fact.answer {
        FactAnswer::Known(answer) => answer.get("covers").and_then(Value::as_bool),
        FactAnswer::Failed(_) => None,
    };
    Some(match covers {
        Some(true) => Opinion::Lifted,
        Some(false) => Opinion::Denied,
        None => Opinion::Silent,
    })
}

fn rows_has_call(rows: &[Row]) -> bool {
    rows.iter().any(|row| row.call.is_some())
}

/// Why the first call of a step was not simply allowed.
fn reason(events: &[Event]) -> Option<(String, Option<String>)> {
    let record = events.iter().find_map(|event| match &event.body {
        EventBody::Verdict(record) if record.action.is_some() => Some(record),
        _ => None,
    })?;
    Some((record.reason.clone().filter(|_| record.verdict > Verdict::Allow)?, record.rule.clone()))
}

fn row(reader: &dyn Reader, run: RunId, event: &Event, judged: &Judged) -> Result<Row, LedgerError> {
    let mut row = Row {
        seq: event.seq,
        at: event.t,
        key: key(&event.body),
        call: None,
        mark: None,
        words: String::new(),
        rule: None,
        text: None,
        link: None,
        opinion: None,
    };
    match &event.body {
        EventBody::Proposed(proposed) => {
            row.mark = judged.actions.get(&proposed.action).copied();
            row.call = Some(Call {
                step: proposed.step,
                tool: proposed.tool.clone(),
                arguments: preview(reader, run, event.payloads.get("arguments"), ARGUMENTS_CHARS)?.0,
                planned: event
                    .payloads
                    .get("planned")
                    .map(|payload| preview(reader, run, Some(payload), PREVIEW_CHARS).map(|(text, _)| text))
                    .transpose()?,
            });
        }
        EventBody::Verdict(record) => verdict_row(&mut row, record),
        EventBody::Observation { label, .. } => {
            row.words = format!("from {label}");
            row.text = text(reader, run, event, "content", judged)?;
        }
        EventBody::Input { label } => {
            row.words = format!("the {label} said");
            row.text = text(reader, run, event, "text", judged)?;
        }
        EventBody::Output {} => {
            row.words = "the agent answered".to_owned();
            row.text = text(reader, run, event, "text", judged)?;
        }
        body => (row.words, row.link) = words(event, body),
    }
    Ok(row)
}

/// What an event is, in a word.
const fn key(body: &EventBody) -> &'static str {
    match body {
        EventBody::RunOpened(_) => "opened",
        EventBody::Config(_) => "changed",
        EventBody::Input { .. } => "input",
        EventBody::Proposed(_) => "call",
        EventBody::Verdict(_) => "verdict",
        EventBody::Enforcement { .. } => "then",
        EventBody::ApprovalRequested { .. } => "held",
        EventBody::ApprovalDecided { .. } => "decided",
        EventBody::GrantClaimed { .. } => "grant",
        EventBody::Outcome { .. } => "outcome",
        EventBody::Observation { .. } => "result",
        EventBody::Observed(_) => "observed",
        EventBody::Output {} => "reply",
        EventBody::Evidence { .. } => "evidence",
        EventBody::Work(_) => "work",
        EventBody::State(_) => "state",
        EventBody::Fact(_) => "fact",
        EventBody::Control { .. } => "control",
        EventBody::Gap { .. } => "gap",
        EventBody::RunClosed { .. } => "closed",
    }
}

fn verdict_row(row: &mut Row, record: &VerdictRecord) {
    // Of a text; that of a call stands in its row.
    if record.action.is_none() {
        row.mark = Some((record.verdict, None));
    }
    let findings = record.findings.len();
    row.words = match (record.action, &record.reason) {
        (Some(_), _) => match findings {
            0 => "no findings".to_owned(),
            1 => "1 finding:".to_owned(),
            count => format!("{count} findings, the deciding one:"),
        },
        (None, Some(reason)) => reason.clone(),
        (None, None) => record.verdict.as_str().to_owned(),
    };
    row.rule.clone_from(&record.rule);
}

/// What an event says that has no text of its own.
fn words(event: &Event, body: &EventBody) -> (String, Option<(String, &'static str)>) {
    let name = |value: Result<Value, serde_json::Error>| {
        value.ok().and_then(|value| value.as_str().map(|text| text.replace('-', " "))).unwrap_or_default()
    };
    let said = |note: &Option<String>| note.as_deref().map_or_else(String::new, |note| format!(": {note}"));
    let by = event.actor.as_str().trim_start_matches("approver:");
    let words = match body {
        EventBody::RunOpened(opened) => {
            format!("by {} for {}, policy {}", opened.surface, opened.principal.id, opened.policy)
        }
        EventBody::Config(change) => {
            let change = serde_json::to_value(change).unwrap_or_default();
            change.get("change").and_then(Value::as_str).unwrap_or_default().replace('-', " ")
        }
        EventBody::Enforcement { enforced, contained, .. } => {
            let profile =
                contained.as_ref().map_or_else(String::new, |one| format!(", contained: {}", one.profile));
            format!("{}{profile}", name(serde_json::to_value(enforced)))
        }
        EventBody::ApprovalRequested { approval, about, .. } => {
            let what = if matches!(about, About::Text(_)) { "the reply waits" } else { "the call waits" };
            return (what.to_owned(), Some((format!("/approvals/{approval}"), "see the request")));
        }
        EventBody::ApprovalDecided { approval, decision, note, scope, .. } => {
            let scope = scope.as_ref().map_or("", |scope| match scope {
                portcullis_core::event::GrantScope::Once => " once",
                _ => " with a scope",
            });
            let words = format!("{}{scope} by {by}{}", name(serde_json::to_value(decision)), said(note));
            return (words, Some((format!("/approvals/{approval}"), "what was shown")));
        }
        EventBody::GrantClaimed { .. } => "the grant is used".to_owned(),
        EventBody::Outcome { status, .. } => name(serde_json::to_value(status)),
        EventBody::Observed(record) => record.to_string(),
        EventBody::Evidence { name, .. } => name.clone(),
        EventBody::Work(record) => record.to_string(),
        EventBody::State(record) => record.to_string(),
        EventBody::Fact(record) => record.to_string(),
        EventBody::Control { control, note } => {
            format!("{} by {by}{}", name(serde_json::to_value(control)), said(note))
        }
        EventBody::Gap { from, to, cause } => format!("events {from} to {to} are lost: {cause}"),
        EventBody::RunClosed { state, .. } => name(serde_json::to_value(state)),
        _ => String::new(),
    };
    (words, None)
}

fn text(
    reader: &dyn Reader,
    run: RunId,
    event: &Event,
    name: &str,
    judged: &Judged,
) -> Result<Option<Text>, LedgerError> {
    let Some(payload) = event.payloads.get(name) else { return Ok(None) };
    let edits = judged.edits.get(&event.seq).cloned().unwrap_or_default();
    let chars = if edits.is_empty() { PREVIEW_CHARS } else { EDITED_CHARS };
    let (text, cut) = preview(reader, run, Some(payload), chars)?;
    let (wrong, failed) = wrong(judged.checks.get(&event.seq).map_or(&[], Vec::as_slice));
    Ok(Some(Text { by: format!("{} bytes", payload.bytes), text, cut, edits, wrong, failed }))
}

/// From byte to byte, and the number of the check.
type Wrong = (usize, usize, usize);
/// The name of a check, and why it fails.
type Failing = (String, String);

/// Where checks say that a reply is wrong, with the numbers of those that failed.
fn wrong(checks: &[CheckResult]) -> (Vec<Wrong>, Vec<Failing>) {
    let failed = checks.iter().filter(|check| check.status == Status::Fail);
    let (mut places, mut named) = (Vec::new(), Vec::new());
    for (number, check) in failed.enumerate() {
        let of_reply = check.places.iter().filter(|place| place.text == Side::Reply);
        places.extend(of_reply.map(|place| (place.start, place.end, number + 1)));
        named.push((check.check.check_type().to_owned(), details(check)));
    }
    (places, named)
}

/// The beginning of a text, and whether it goes on.
fn preview(
    reader: &dyn Reader,
    run: RunId,
    payload: Option<&PayloadRef>,
    chars: usize,
) -> Result<(String, bool), LedgerError> {
    let Some(payload) = payload else { return Ok((String::new(), false)) };
    if payload.bytes > READ_BYTES_MAX {
        return Ok((format!("({} bytes; open the event to see the beginning)", payload.bytes), false));
    }
    let Some(stored) = reader.payload(run, payload.commitment)? else {
        return Ok(("(erased)".to_owned(), false));
    };
    let text = String::from_utf8_lossy(stored.bytes());
    match text.char_indices().nth(chars) {
        None => Ok((text.into_owned(), false)),
        Some((end, _)) => Ok((text.get(..end).unwrap_or_default().to_owned(), true)),
    }
}

/// All findings about a call: of the verdict that follows its proposal.
pub(super) fn findings(
    reader: &dyn Reader,
    run: RunId,
    proposed: u64,
    action: ActionId,
) -> Result<Vec<Found>, LedgerError> {
    for event in events(reader, run, proposed, proposed + FINDINGS_WITHIN)? {
        if let EventBody::Verdict(record) = event.body
            && record.action == Some(action)
        {
            return Ok(record.findings.iter().map(found).collect());
        }
    }
    Ok(Vec::new())
}

fn found(finding: &portcullis_core::finding::Finding) -> Found {
    Found {
        verdict: finding.verdict,
        rule: finding.rule.to_string(),
        message: finding.message.clone(),
        answered: finding.granted || finding.confirmed,
        evidence: finding.evidence.clone(),
    }
}

/// An event with all that is recorded of it.
pub(super) fn chosen(reader: &dyn Reader, run: RunId, seq: u64) -> Result<Option<Chosen>, LedgerError> {
    let Some(stored) = reader.events(run, seq.saturating_sub(1), 1)?.into_iter().find(|one| one.seq == seq)
    else {
        return Ok(None);
    };
    let line = String::from_utf8_lossy(&stored.line).into_owned();
    let Some(event) = joined(reader, run, stored)? else { return Ok(None) };
    let mut texts = Vec::new();
    for (name, payload) in event.payloads.iter().filter(|(name, _)| !OWN.contains(&name.as_str())) {
        let stored = reader.payload(run, payload.commitment)?;
        let text = stored.map(|stored| String::from_utf8_lossy(stored.bytes()).into_owned());
        let text = text.unwrap_or_else(|| "(erased)".to_owned());
        let cut = text.char_indices().nth(WHOLE_CHARS).map(|(end, _)| end);
        let shown = cut.and_then(|end| text.get(..end)).unwrap_or(&text).to_owned();
        let by = format!("{}, {} bytes", payload.media_type, payload.bytes);
        texts.push((name.clone(), Text { by, text: shown, cut: cut.is_some(), ..Text::default() }));
    }
    let mut facts = vec![("actor", event.actor.to_string()), ("time", event.t.to_string())];
    facts.extend(event.cause.map(|cause| ("cause", format!("event {cause}"))));
    let mut findings = Vec::new();
    match &event.body {
        EventBody::Verdict(record) => {
            facts.push(("verdict", record.verdict.as_str().to_owned()));
            facts.push(("policy", record.policy.clone()));
            findings.extend(record.findings.iter().map(found));
        }
        EventBody::Proposed(proposed) => {
            facts.extend(proposed.tool.clone().map(|tool| ("tool", tool)));
            facts.extend(proposed.server.clone().map(|server| ("server", server)));
            facts.extend(proposed.directory.clone().map(|directory| ("directory", directory)));
            facts.push(("side effect", if proposed.side_effecting { "yes" } else { "no" }.to_owned()));
        }
        EventBody::Observation { label, .. } => facts.push(("label", label.to_string())),
        body => {
            let said = words(&event, body).0;
            facts.extend((!said.is_empty()).then_some(("says", said)));
        }
    }
    let kind = event.body.kind().to_owned();
    Ok(Some(Chosen { seq, kind, facts, findings, effects: Vec::new(), origins: Vec::new(), line, texts }))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_model_said_of_a_hold_is_read_from_the_verdict() {
        let said = |facts: Value| {
            let record = json!({
                "verdict": "allow", "policy_action": "ALLOWED", "escalation": "NONE", "findings": [], "policy": "p",
                "bundle": "00".repeat(32), "facts": facts,
            });
            opinion(&serde_json::from_value(record).unwrap())
        };
        let fact =
            |source: &str, answer: Value| json!([{ "source": source, "question": "q", "answer": answer }]);
        let covers = |covers: bool| fact("second-opinion", json!({ "known": { "covers": covers } }));
        assert_eq!(said(covers(true)), Some(Opinion::Lifted));
        assert_eq!(said(covers(false)), Some(Opinion::Denied));
        assert_eq!(said(fact("second-opinion", json!({ "failed": "late" }))), Some(Opinion::Silent));
        assert_eq!((said(fact("program", json!({ "known": {} }))), said(json!([]))), (None, None));
    }
}
