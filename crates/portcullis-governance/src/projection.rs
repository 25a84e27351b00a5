//! From the events of a run to the rows of a trace: the record in the seven columns of a trace.
//!
//! The rows are a projection of the ledger, not a second account of what happened. A step's selection and its
//! verdict are one row, since they are one decision.

use std::collections::BTreeMap;

use portcullis_core::event::{Enforced, Event, EventBody, VerdictRecord};
use portcullis_core::id::{ActionId, Commitment, RunId};
use portcullis_core::verdict::PolicyAction;
use serde_json::{Map, Value, json};

use crate::trace::{EventType, TraceRow};

/// What the rows say of a step that nothing stands against.
pub(crate) const ALLOWED: &str = "allowed by policy";

/// The rows of a run. `payload` gives the bytes behind a commitment, where they are at hand.
#[must_use]
pub fn rows(
    run: RunId,
    events: &[Event],
    payload: impl FnMut(&Commitment) -> Option<Vec<u8>>,
) -> Vec<TraceRow> {
    numbered_rows(run, events, payload).into_iter().map(|(_, row)| row).collect()
}

/// The same, each with the number of the event that it tells of.
#[must_use]
pub fn numbered_rows(
    run: RunId,
    events: &[Event],
    mut payload: impl FnMut(&Commitment) -> Option<Vec<u8>>,
) -> Vec<(u64, TraceRow)> {
    let mut projection = Projection {
        run,
        rows: Vec::new(),
        actions: BTreeMap::new(),
        step: 0,
        results: BTreeMap::new(),
        reply: None,
    };
    for event in events {
        if let EventBody::Observation { action: Some(action), .. } = &event.body {
            let text = named(event, "content", &mut payload).unwrap_or_default();
            projection.results.insert(*action, text);
        }
    }
    for event in events {
        projection.event(event, &mut payload);
    }
    projection.rows
}

struct Projection {
    run: RunId,
    rows: Vec<(u64, TraceRow)>,
    actions: BTreeMap<ActionId, Step>,
    step: u32,
    results: BTreeMap<ActionId, String>,
    /// The latest reply: number of its event and of its row.
    reply: Option<(u64, usize)>,
}

struct Step {
    number: u32,
    tool: Option<String>,
    details: Map<String, Value>,
    decision: Option<(PolicyAction, String)>,
}

fn named(
    event: &Event,
    name: &str,
    payload: &mut impl FnMut(&Commitment) -> Option<Vec<u8>>,
) -> Option<String> {
    let bytes = payload(&event.payloads.get(name)?.commitment)?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

impl Projection {
    fn row(
        &mut self,
        event: &Event,
        step: u32,
        kind: EventType,
        decision: (PolicyAction, String),
        payload: Value,
    ) {
        let row = TraceRow {
            run_id: self.run,
            step_number: step,
            event_type: kind,
            policy_action: decision.0,
            policy_reason: decision.1,
            timestamp: event.t,
            payload,
        };
        self.rows.push((event.seq, row));
    }

    fn event(&mut self, event: &Event, payload: &mut impl FnMut(&Commitment) -> Option<Vec<u8>>) {
        match &event.body {
            EventBody::Proposed(proposed) => {
                let mut details = Map::new();
                if let Some(planned) = named(event, "planned", payload) {
                    details.insert("planned_action".into(), planned.into());
                }
                if let Some(tool) = &proposed.tool {
                    details.insert("tool".into(), tool.as_str().into());
                    let arguments = named(event, "arguments", payload);
                    let arguments = arguments.and_then(|text| serde_json::from_str(&text).ok());
                    details.insert("tool_args".into(), arguments.unwrap_or(Value::Null));
                }
                let (number, tool) = (proposed.step, proposed.tool.clone());
                self.step = number;
                self.actions.insert(proposed.action, Step { number, tool, details, decision: None });
            }
            EventBody::Verdict(record) => self.verdict(event, record),
            EventBody::Enforcement { action: Some(action), enforced, .. } => {
                self.enforcement(event, *action, *enforced)
            }
            EventBody::Outcome { action, status } => {
                let Some(step) = self.actions.get(action).filter(|step| step.tool.is_some()) else { return };
                let (number, tool) = (step.number, step.tool.clone());
                let decision = step.decision.clone().unwrap_or((PolicyAction::Allowed, ALLOWED.into()));
                let result = self.results.get(action).cloned();
                let details = json!({"tool": tool, "status": status, "tool_result": result});
                self.row(event, number, EventType::ToolExecuted, decision, details);
            }
            EventBody::Output {} => {
                let text = named(event, "text", payload);
                let decision = (PolicyAction::Allowed, ALLOWED.to_owned());
                self.reply = Some((event.seq, self.rows.len()));
                self.row(event, self.step, EventType::OutputGenerated, decision, json!({"output": text}));
            }
            _ => {}
        }
    }

    fn verdict(&mut self, event: &Event, record: &VerdictRecord) {
        if let (None, Some((seq, row))) = (record.action, self.reply)
            && event.cause == Some(seq)
            && let Some((_, row)) = self.rows.get_mut(row)
        {
            row.policy_action = record.policy_action;
            row.policy_reason = record.reason.clone().unwrap_or_else(|| ALLOWED.to_owned());
        }
        let Some(step) = record.action.and_then(|action| self.actions.get_mut(&action)) else { return };
        let reason = record.reason.clone().unwrap_or_else(|| ALLOWED.to_owned());
        let decision = (record.policy_action, reason);
        let first = step.decision.replace(decision.clone()).is_none();
        let kind = if step.tool.is_some() { EventType::ToolSelected } else { EventType::LlmThinking };
        let (number, details) = (step.number, step.details.clone());
        // A second verdict answers a grant; the selection was told already.
        if first {
            self.row(event, number, kind, decision, Value::Object(details));
        }
    }

    fn enforcement(&mut self, event: &Event, action: ActionId, enforced: Enforced) {
        let Some(step) = self.actions.get(&action) else { return };
        let kind = match enforced {
            Enforced::Withheld => EventType::ToolBlocked,
            Enforced::Held | Enforced::Asked => EventType::ApprovalRequested,
            Enforced::Executed | Enforced::Replaced | Enforced::LetPass => return,
        };
        let (number, details) = (step.number, step.details.clone());
        let decision = step.decision.clone().unwrap_or((PolicyAction::Denied, String::new()));
        self.row(event, number, kind, decision, Value::Object(details));
    }
}
