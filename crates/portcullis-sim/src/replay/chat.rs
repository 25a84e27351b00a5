//! Judges runs recorded as chat messages.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use portcullis_core::bundle::Bundle;
use portcullis_core::event::{Enforced, OutcomeStatus};
use portcullis_core::id::ActionId;
use portcullis_core::label::Label;
use portcullis_core::verdict::Verdict;
use portcullis_session::dry::DryRun;
use portcullis_session::engine::Proposal;
use portcullis_wire::openai::TraceStep;
use portcullis_wire::trace::{Record, TraceRecord};
use serde_json::Value;

use super::source::Records;
use super::tools::Collector;
use super::{
    Item, Judge, ReplayError, ReplyRow, Row, Sink, Summary, UNREADABLE_ARGUMENTS, reply_row, row, send,
};

pub(super) fn replay(judge: &Judge<'_>, sink: Sink<'_>) -> Result<Summary, ReplayError> {
    let mut summary = Summary::default();
    let mut bundle = Arc::clone(judge.bundle);
    if !judge.options.strict_tools {
        let tools = collect(judge, sink)?;
        (bundle, summary.inferred, summary.left_unknown) = tools.register(judge.bundle);
        send(sink, Item::Tools(&summary.inferred))?;
    }
    let policy = judge.options.policy.as_deref().unwrap_or(bundle.default_policy()).to_owned();
    let mut records = Records::open(judge.source)?;
    while let Some((line, record)) = records.next()? {
        match record {
            Ok(Record::Trace(record)) => {
                summary.runs += 1;
                let dry = DryRun::open(Arc::clone(&bundle), Arc::clone(judge.pipeline), &policy)?;
                let (rows, replies, judging) = judge_run(dry, &bundle, record, line, summary.runs);
                summary.judging += judging;
                for row in &rows {
                    summary.count_row(row);
                    send(sink, Item::Decision(row))?;
                }
                for reply in &replies {
                    summary.count_reply(reply);
                    send(sink, Item::Verified(reply))?;
                }
            }
            Ok(Record::Metadata(_)) => {}
            Err(error) => {
                summary.unreadable += 1;
                send(sink, Item::Unreadable { line, message: &error.to_string() })?;
            }
        }
        send(sink, Item::Progress(judge.source.bytes_read()))?;
    }
    summary.policies.insert(policy);
    Ok(summary)
}

/// The first pass: which tools there are.
fn collect(judge: &Judge<'_>, sink: Sink<'_>) -> Result<Collector, ReplayError> {
    let mut tools = Collector::default();
    let mut records = Records::open(judge.source)?;
    while let Some((_, record)) = records.next()? {
        if let Ok(Record::Trace(record)) = record {
            for tool in &record.tools {
                tools.offered(judge.bundle, tool);
            }
            for step in &record.steps {
                if let TraceStep::Call { tool, arguments, .. } = step {
                    tools.called(judge.bundle, tool, arguments.as_ref().ok());
                }
            }
        }
        send(sink, Item::Progress(judge.source.bytes_read()))?;
    }
    Ok(tools)
}

/// A run while it is judged.
struct Run<'b> {
    dry: DryRun,
    bundle: &'b Bundle,
    /// Calls that went ahead and whose results were not seen yet, by the record's ids.
    executing: HashMap<String, ActionId>,
    rows: Vec<Row>,
    replies: Vec<ReplyRow>,
    /// Replies, verified or not.
    replied: usize,
    /// Steps of the record by the events they were told as.
    steps: HashMap<u64, u64>,
}

fn judge_run(
    dry: DryRun,
    bundle: &Bundle,
    record: TraceRecord,
    line: usize,
    number: usize,
) -> (Vec<Row>, Vec<ReplyRow>, Duration) {
    let mut run = Run {
        dry,
        bundle,
        executing: HashMap::new(),
        rows: Vec::new(),
        replies: Vec::new(),
        replied: 0,
        steps: HashMap::new(),
    };
    let started = Instant::now();
    for (number, step) in (1..).zip(record.steps) {
        run.step(number, step);
    }
    let judging = started.elapsed();
    for (index, row) in run.rows.iter_mut().enumerate() {
        (row.run, row.line, row.call) = (number, line, index + 1);
        row.name.clone_from(&record.name);
    }
    for row in &mut run.replies {
        (row.run, row.line) = (number, line);
        row.name.clone_from(&record.name);
    }
    (run.rows, run.replies, judging)
}

impl Run<'_> {
    /// The next event, or the one after so many others, tells this step.
    fn told(&mut self, number: u64, after: u64) {
        self.steps.insert(self.dry.state().seq() + 1 + after, number);
    }

    fn step(&mut self, number: u64, step: TraceStep) {
        match step {
            TraceStep::Input { role, text } => {
                self.give_up_on_results();
                self.told(number, 0);
                self.dry.input(&text, if role == "user" { Label::User } else { Label::Operator });
            }
            TraceStep::Output { text } => {
                self.give_up_on_results();
                self.told(number, 0);
                let judged = self.dry.output(&text);
                self.replied += 1;
                self.replies.extend(reply_row(judged, self.replied, |event| self.steps.get(&event).copied()));
            }
            TraceStep::Call { id, tool, arguments, planned } => self.call(id, tool, arguments, planned),
            TraceStep::Observation { call_id, text, is_error, .. } => {
                // The result of a call that did not go ahead is not known here, and left out.
                if let Some(action) = call_id.and_then(|id| self.executing.remove(&id)) {
                    let status = if is_error { OutcomeStatus::Error } else { OutcomeStatus::Ok };
                    // An outcome comes before its observation.
                    self.told(number, 1);
                    self.dry.outcome(action, status, Some(text));
                }
            }
        }
    }

    fn call(&mut self, id: String, tool: String, arguments: Result<Value, String>, planned: Option<String>) {
        let (arguments, unreadable) = match arguments {
            Ok(arguments) => (arguments, None),
            Err(reason) => (Value::Null, Some(reason)),
        };
        let proposal =
            Proposal { tool: Some(tool), arguments, planned, call: Some(id.clone()), ..Proposal::default() };
        let judgement = self.dry.propose(proposal);
        let mut row = row(self.bundle, &judgement);
        self.executing.remove(&id);
        if let Some(reason) = unreadable {
            if judgement.enforced.proceeds() {
                self.dry.outcome(judgement.action.id, OutcomeStatus::NotExecuted, None);
            }
            row.verdict = row.verdict.join(Verdict::Deny);
            row.enforced = Enforced::Withheld;
            (row.rule, row.message) = (Some(UNREADABLE_ARGUMENTS.to_owned()), Some(reason));
        } else if judgement.enforced.proceeds() {
            self.executing.insert(id.clone(), judgement.action.id);
        }
        row.id = Some(id);
        self.rows.push(row);
    }

    /// The conversation went on without the results of these calls.
    fn give_up_on_results(&mut self) {
        let mut left: Vec<ActionId> = self.executing.drain().map(|(_, action)| action).collect();
        left.sort_unstable();
        for action in left {
            self.dry.outcome(action, OutcomeStatus::Unknown, None);
        }
    }
}
