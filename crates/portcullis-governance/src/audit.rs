//! The audit log of a run: the trace in its seven columns, and besides what the trace of a simulation leaves out.
//!
//! One JSON object a line. The rows are a projection; what is proven is `run.export`, from which they are made and whose
//! events the manifest names for each line.

use std::collections::BTreeMap;

use portcullis_core::aside::OBSERVED;
use portcullis_core::event::{About, Actor, Event, EventBody};
use portcullis_core::id::{ActionId, RunId};
use portcullis_core::state::EDITED_ARGUMENTS;
use portcullis_core::time::Timestamp;
use portcullis_core::verdict::PolicyAction;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::projection::{ALLOWED, numbered_rows};
use crate::record::Record;
use crate::trace::{EventType, TraceRow};

/// The type of a line: the six types of a trace, and further ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum AuditEvent {
    /// One of a trace.
    Trace(EventType),
    /// One beyond it.
    Beyond(Beyond),
}

/// What a trace leaves out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Beyond {
    /// The run began.
    RunOpened,
    /// Bundle, tools or segment changed.
    ConfigurationChanged,
    /// The user or the operator spoke.
    InputReceived,
    /// What a tool returned was found wanting.
    ResultJudged,
    /// Something contained was seen to do this.
    ContainedObserved,
    /// A person, or the lapse of time, answered a request.
    ApprovalDecided,
    /// A grant was used.
    GrantClaimed,
    /// The checks of a reply were made.
    VerificationRun,
    /// Something else that bears on a claim.
    EvidenceRecorded,
    /// Something was done to a work item, or refused.
    WorkItemChanged,
    /// A key of the session state was written, or that was refused.
    StateChanged,
    /// A fact that outlives the run was established, read or forgotten, or that was refused.
    FactKept,
    /// A person took hold of the run.
    ControlApplied,
    /// Events are lost.
    EventsLost,
    /// The run, or a segment of it, ended.
    RunClosed,
}

/// A line. Serialized, its fields are the columns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AuditRow {
    /// The run.
    pub run_id: RunId,
    /// Number of the agent's step; 0 before the first.
    pub step_number: u32,
    /// What happened.
    pub event_type: AuditEvent,
    /// What policy decided; null where there was nothing to decide.
    pub policy_action: Option<PolicyAction>,
    /// Why.
    pub policy_reason: Option<String>,
    /// When, by the writer's clock.
    pub timestamp: Timestamp,
    /// The particulars.
    pub payload: Value,
}

impl From<TraceRow> for AuditRow {
    fn from(row: TraceRow) -> Self {
        Self {
            run_id: row.run_id,
            step_number: row.step_number,
            event_type: AuditEvent::Trace(row.event_type),
            policy_action: Some(row.policy_action),
            policy_reason: Some(row.policy_reason),
            timestamp: row.timestamp,
            payload: row.payload,
        }
    }
}

/// The rows of a record in the order of their events, each with the number of its event.
#[must_use]
pub fn rows(record: &Record) -> Vec<(u64, AuditRow)> {
    let payload = |commitment: &_| record.payload(commitment).map(|payload| payload.bytes.clone());
    let trace = numbered_rows(record.run(), record.events(), payload);
    let mut rows: Vec<(u64, AuditRow)> = trace.into_iter().map(|(seq, row)| (seq, row.into())).collect();
    rows.extend(beyond(record));
    rows.sort_by_key(|(seq, _)| *seq);
    rows
}

fn beyond(record: &Record) -> Vec<(u64, AuditRow)> {
    let mut rows: Vec<(u64, AuditRow)> = Vec::new();
    // Inputs by event, since their verdict comes later; results by event, for theirs.
    let (mut inputs, mut results) = (BTreeMap::new(), BTreeMap::new());
    let mut tools: BTreeMap<ActionId, String> = BTreeMap::new();
    let mut step = 0;
    for event in record.events() {
        if let EventBody::Proposed(proposed) = &event.body {
            step = proposed.step;
            tools.extend(proposed.tool.clone().map(|tool| (proposed.action, tool)));
        }
        if let (EventBody::Verdict(verdict), Some(cause)) = (&event.body, event.cause)
            && verdict.action.is_none()
        {
            let judged = (Some(verdict.policy_action), verdict.reason.clone());
            if let Some((_, row)) = inputs.get(&cause).and_then(|at: &usize| rows.get_mut(*at)) {
                (row.policy_action, row.policy_reason) = judged;
            } else if let Some(tool) = results.get(&cause) {
                let payload = json!({"tool": tool, "result_event": cause, "rule": verdict.rule});
                rows.push((event.seq, row(record, event, step, Beyond::ResultJudged, payload)));
                if let Some((_, row)) = rows.last_mut() {
                    (row.policy_action, row.policy_reason) = judged;
                }
            }
            continue;
        }
        match &event.body {
            EventBody::Input { .. } => {
                inputs.insert(event.seq, rows.len());
            }
            EventBody::Observation { label, .. } => {
                results.insert(event.seq, label.to_string());
            }
            EventBody::Observed(observed) => {
                let tool =
                    observed.action.and_then(|action| tools.get(&action)).map(|tool| format!("tool:{tool}"));
                let server = || observed.server.as_ref().map(|server| format!("server:{server}"));
                results.insert(event.seq, tool.or_else(server).unwrap_or_default());
            }
            _ => {}
        }
        if let Some((kind, payload)) = particulars(record, event) {
            let mut row = row(record, event, step, kind, payload);
            // Of an input against which nothing was found there is no verdict.
            if kind == Beyond::InputReceived {
                (row.policy_action, row.policy_reason) =
                    (Some(PolicyAction::Allowed), Some(ALLOWED.to_owned()));
            }
            rows.push((event.seq, row));
        }
    }
    rows
}

fn row(record: &Record, event: &Event, step: u32, kind: Beyond, payload: Value) -> AuditRow {
    AuditRow {
        run_id: record.run(),
        step_number: step,
        event_type: AuditEvent::Beyond(kind),
        policy_action: None,
        policy_reason: None,
        timestamp: event.t,
        payload,
    }
}

fn particulars(record: &Record, event: &Event) -> Option<(Beyond, Value)> {
    let text =
        |name: &str| record.named(event, name).map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    let actor = event.actor.as_str();
    Some(match &event.body {
        EventBody::RunOpened(opened) => (Beyond::RunOpened, json!(opened)),
        EventBody::Config(change) => (Beyond::ConfigurationChanged, json!(change)),
        EventBody::Input { label } => (Beyond::InputReceived, json!({"from": label, "text": text("text")})),
        EventBody::ApprovalDecided { approval, decision, scope, lasting, shown, note, labels: _ } => {
            let payload = json!({
                "approval": approval, "decision": decision, "scope": scope, "until": lasting.until,
                "task": lasting.task, "arguments": text(EDITED_ARGUMENTS), "shown": shown, "note": note,
                "by": actor,
            });
            (Beyond::ApprovalDecided, payload)
        }
        EventBody::GrantClaimed { approval, about: About::Action(action) } => {
            (Beyond::GrantClaimed, json!({"approval": approval, "action": action}))
        }
        EventBody::GrantClaimed { approval, about: About::Text(reply) } => {
            (Beyond::GrantClaimed, json!({"approval": approval, "reply": reply}))
        }
        EventBody::Observed(observed) => {
            let seen = text(OBSERVED).and_then(|text| serde_json::from_str::<Value>(&text).ok());
            (Beyond::ContainedObserved, json!({"summary": observed, "observed": seen}))
        }
        EventBody::Evidence { name, digest } => {
            let kind = match event.actor == Actor::gate() && name == "verification" {
                true => Beyond::VerificationRun,
                false => Beyond::EvidenceRecorded,
            };
            let results = text("results").and_then(|text| serde_json::from_str::<Value>(&text).ok());
            (kind, json!({"name": name, "digest": digest, "by": actor, "results": results}))
        }
        EventBody::Work(work) => (Beyond::WorkItemChanged, json!({"work": work, "by": actor})),
        EventBody::State(state) => (Beyond::StateChanged, json!({"state": state, "by": actor})),
        EventBody::Fact(fact) => (Beyond::FactKept, json!({"fact": fact, "by": actor})),
        EventBody::Control { control, note } => {
            (Beyond::ControlApplied, json!({"control": control, "note": note, "by": actor}))
        }
        EventBody::Gap { from, to, cause } => {
            (Beyond::EventsLost, json!({"from": from, "to": to, "cause": cause}))
        }
        EventBody::RunClosed { state, count, successor } => {
            (Beyond::RunClosed, json!({"state": state, "events": count, "successor": successor}))
        }
        _ => return None,
    })
}
