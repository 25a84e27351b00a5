//! The summary report: the six metrics of seed 000, each with its definition and the events that it counts.

use portcullis_contracts::verify::Status;
use portcullis_core::event::EventBody;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::facts::Facts;
use crate::markdown::{self, Document, code};
use crate::record::Record;

/// The most events that a metric names; how many there are more is said.
pub const EVENTS_LISTED_MAX: usize = 1_000;

/// The surface of runs whose steps are simulated.
pub(crate) const SIMULATOR: &str = "simulator";

/// One figure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metric {
    /// Its field.
    pub id: String,
    /// Its name for people.
    pub label: String,
    /// The figure.
    pub value: usize,
    /// What exactly is counted.
    pub definition: String,
    /// The events that it counts, in order.
    pub events: Vec<u64>,
    /// Events that are counted and not named here.
    pub events_more: usize,
}

impl Metric {
    fn new(id: &str, label: &str, definition: &str, mut events: Vec<u64>) -> Self {
        let value = events.len();
        events.sort_unstable();
        events.truncate(EVENTS_LISTED_MAX);
        Self {
            id: id.to_owned(),
            label: label.to_owned(),
            value,
            definition: definition.to_owned(),
            events_more: value - events.len(),
            events,
        }
    }
}

/// The six metrics in the order of the seed, and the checks that did not apply.
pub(crate) fn metrics(record: &Record, facts: &Facts) -> Vec<Metric> {
    let simulated = record.opened().is_some_and(|opened| opened.surface == SIMULATOR);
    let checks = |status| facts.checks(status).iter().map(|(reply, _)| reply.event).collect::<Vec<u64>>();
    let (passed, failed) = (checks(Status::Pass), checks(Status::Fail));
    let not_applicable = checks(Status::NotApplicable);
    let run = [passed.as_slice(), &failed, &not_applicable].concat();
    vec![
        Metric::new(
            "total_agent_steps",
            if simulated { "Total Agent Steps Simulated" } else { "Total Agent Steps" },
            "`proposed` events: each step once, with or without a tool, regardless of the verdict",
            facts.of_kind("proposed").to_vec(),
        ),
        Metric::new(
            "policy_denials",
            "Policy Denials (Blocked Actions)",
            "actions whose last enforcement is `withheld` under a verdict that counts as DENIED (clarify, pause, deny, \
             halt); in observe mode nothing is withheld and nothing is counted",
            facts.denied().iter().filter_map(|action| action.blocked()).collect(),
        ),
        Metric::new(
            "approval_requests",
            "Approval Requests Generated",
            "`approval-requested` events: each request to a person once",
            facts.of_kind("approval-requested").to_vec(),
        ),
        Metric::new(
            "verification_checks_run",
            "Total Verification Checks Run",
            "recorded answers of checks on replies, including those that did not apply",
            run,
        ),
        Metric::new(
            "verification_checks_passed",
            "Verification Checks Passed",
            "those of them that are PASS",
            passed,
        ),
        Metric::new(
            "verification_checks_failed",
            "Verification Checks Failed",
            "those of them that are FAIL",
            failed,
        ),
        Metric::new(
            "verification_checks_not_applicable",
            "Verification Checks Not Applicable",
            "those of them that are N/A: there was nothing to check the reply against; neither passed nor failed",
            not_applicable,
        ),
    ]
}

/// What the run is, for both forms.
pub(crate) fn heading(record: &Record) -> Value {
    let Some(opened) = record.opened() else { return Value::Null };
    let last = record.events().last();
    let closed = last.filter(|event| matches!(event.body, EventBody::RunClosed { .. }));
    json!({
        "run": record.run(),
        "origin": record.origin(),
        "principal": opened.principal.id,
        "surface": opened.surface,
        "session": opened.session,
        "policy": opened.policy,
        "bundle": opened.bundle,
        "configuration": opened.configuration,
        "mode": opened.mode,
        "state": record.state(),
        "opened_at": record.events().first().map(|event| event.t),
        "closed_at": closed.map(|event| event.t),
        "events": record.events().len(),
        "segments": record.segments(),
    })
}

/// `summary_report.json`.
pub(crate) fn json(record: &Record, facts: &Facts) -> Value {
    let mut report = heading(record);
    if let Some(fields) = report.as_object_mut() {
        fields.insert("format".to_owned(), "portcullis-summary-report/v1".into());
        fields.insert("metrics".to_owned(), json!(metrics(record, facts)));
        let escalated = !facts.checks(Status::Fail).is_empty();
        fields.insert("escalation_indicator".to_owned(), escalated.into());
    }
    report
}

/// `summary_report.md`.
pub(crate) fn markdown(record: &Record, facts: &Facts) -> Vec<u8> {
    let mut document = Document::new(&format!("Summary of run {}", record.run()));
    document.paragraph(&sentence(record));
    let rows = metrics(record, facts).into_iter().map(|metric| {
        let shown = match metric.events.as_slice() {
            [] => "-".to_owned(),
            events => {
                let mut once = events.to_vec();
                once.dedup();
                markdown::events(&once)
            }
        };
        vec![metric.label, metric.value.to_string(), shown, metric.definition]
    });
    document.table("Metrics", &["metric", "value", "shown by", "what is counted"], &rows.collect::<Vec<_>>());
    let failed = facts.checks(Status::Fail);
    if !failed.is_empty() {
        document.paragraph(&format!(
            "**Escalation indicator**: {} failed; see `verification_results.json`.",
            markdown::count(failed.len(), "check", "checks")
        ));
    }
    document.finish()
}

/// Who acted, under what, and how it ended, in one paragraph.
pub(crate) fn sentence(record: &Record) -> String {
    let Some(opened) = record.opened() else { return String::new() };
    let mode = match opened.mode {
        portcullis_core::event::Mode::Enforce => "verdicts were enforced",
        portcullis_core::event::Mode::Observe => "verdicts were recorded and not enforced",
    };
    let first = record.events().first().map(|event| event.t.to_string()).unwrap_or_default();
    format!(
        "Principal {}, surface {}, opened {first}. Runtime policy {} of bundle {}; {mode}. {}, {}; the run is {}. \
         Numbers of events are those of `run.export`.",
        code(&opened.principal.id),
        code(&opened.surface),
        code(&opened.policy),
        code(&opened.bundle.to_string()),
        markdown::count(record.events().len(), "event", "events"),
        markdown::count(record.segments(), "segment", "segments"),
        record.state().as_str(),
    )
}
