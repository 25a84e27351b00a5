//! Replay: a recorded trace judged as if it happened now, by the same engine that judges live runs.
//!
//! Two kinds of record are read, gzip or not: chat messages in the OpenAI form (JSON or JSON Lines, one run a
//! record), and the gate's own export. Nothing executes; no permit exists.
//!
//! **Open loop.** The agent of a record does not react to the gate. Calls are judged one after another. A call
//! that the gate lets pass is answered with the result that was recorded for it. A call that it denies or
//! holds is answered with nothing, its recorded result is left out, and the record goes on with its next
//! message, as if nobody had ever granted the call. What the agent would have done instead, nobody knows.
//!
//! **Two passes.** The first collects the tools that the bundle does not know, so that the whole file is
//! judged under one registry, whose unknown tools are drafted by [`portcullis_core::infer`] from the schemas
//! in the file, or from names and observed arguments where it has none. The second judges.
//!
//! **Exports** are verified first (see [`portcullis_proof`]), then their proposed actions are judged again
//! with the recorded inputs, outcomes and decisions of people around them. When the bundle is the one that
//! judged the run, no tool is inferred, so that the verdicts must be the same. Time is replaced by a counter,
//! so the lapse of approvals is taken from the record.

mod chat;
mod export;
mod recompute;
mod source;
mod tools;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use portcullis_core::bundle::Bundle;
use portcullis_core::event::{Enforced, RunOpened};
use portcullis_core::verdict::Verdict;
use portcullis_session::dry::UnknownPolicy;
use portcullis_session::engine::{Judgement, TextJudgement, Verification};
use portcullis_session::policy::Pipeline;
use serde::Serialize;

pub use recompute::{Comparison, Lack, Lacking, Outcome, Ruling};
pub use source::{DECOMPRESSED_BYTES_MAX, Source, UNSEEKABLE_BYTES_MAX, is_export};
pub use tools::InferredTool;

/// The most events of an export that are judged again.
pub const EXPORT_EVENTS_MAX: usize = 1 << 20;
/// The most bytes of payloads of an export that are judged again: 512 MiB.
pub const EXPORT_PAYLOAD_BYTES_MAX: usize = 512 << 20;
/// Rule of a call whose recorded arguments cannot be read: what cannot be judged does not pass.
pub const UNREADABLE_ARGUMENTS: &str = "trace/unreadable-arguments";

/// How to judge.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The runtime policy; otherwise the bundle's default, or for an export the one that was recorded, if the
    /// bundle has it.
    pub policy: Option<String>,
    /// Judges tools that the bundle does not know by its `unknown_tools` instead of inferring them.
    pub strict_tools: bool,
}

/// One judged call.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Number of the run in the file, from 1.
    pub run: usize,
    /// Name of the run, where the record has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Line of the file on which the record, or the event, stands, from 1.
    pub line: usize,
    /// Number of the call in its run, from 1.
    pub call: usize,
    /// The record's own id of the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The tool; none for a thinking step.
    pub tool: Option<String>,
    /// Whether the tool's classification was inferred.
    pub inferred: bool,
    /// The verdict.
    pub verdict: Verdict,
    /// Rule of the headline finding.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Message of the headline finding.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// What the gate would have done.
    pub enforced: Enforced,
    /// The verdict in the record, where it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recorded: Option<Verdict>,
    /// Number of the verdict's event, where the record is an export.
    #[serde(skip)]
    pub seq: Option<u64>,
}

impl Row {
    /// Whether the verdict differs from the recorded one.
    #[must_use]
    pub fn changed(&self) -> bool {
        self.recorded.is_some_and(|recorded| recorded != self.verdict)
    }
}

/// One verified reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReplyRow {
    /// Number of the run in the file, from 1.
    pub run: usize,
    /// Name of the run, where the record has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Line of the file on which the record, or the event, stands, from 1.
    pub line: usize,
    /// Number of the reply in its run, from 1.
    pub reply: usize,
    /// The verdict on it, whatever it rests on.
    pub verdict: Verdict,
    /// What the gate would have done.
    pub enforced: Enforced,
    /// What the checks say. Numbers of events are those of the export or, of chat messages, of the steps that the record
    /// was read as, from 1.
    #[serde(flatten)]
    pub verification: Verification,
}

/// What a replay hands out as it goes.
#[derive(Debug)]
pub enum Item<'a> {
    /// The first pass is over: the tools that were inferred.
    Tools(&'a [InferredTool]),
    /// A call was judged.
    Decision(&'a Row),
    /// A reply was verified, as the bundle wants it.
    Verified(&'a ReplyRow),
    /// An export begins: what it says of the run, and of the bundle that judged it.
    Opened(&'a RunOpened),
    /// A verdict of an export, beside the one that was computed.
    Compared(&'a Comparison),
    /// A record cannot be read; the others follow.
    Unreadable {
        /// Where it starts, from 1.
        line: usize,
        /// Why.
        message: &'a str,
    },
    /// An action of an export cannot be judged, because its arguments were withheld or erased.
    NotJudged {
        /// Line of the event, from 1.
        line: usize,
        /// The tool.
        tool: Option<&'a str>,
    },
    /// So many bytes of the file were read, both passes together. A file is read twice.
    Progress(u64),
}

/// Receives items; breaking ends the replay.
pub type Sink<'s> = &'s mut dyn FnMut(Item<'_>) -> ControlFlow<()>;

/// The sums of a replay.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Summary {
    /// Runs that were read.
    pub runs: usize,
    /// Calls that were judged.
    pub calls: usize,
    /// How many of each verdict.
    pub verdicts: BTreeMap<Verdict, usize>,
    /// Replies that were verified.
    pub replies: usize,
    /// Those of which a check fails.
    pub replies_failed: usize,
    /// Those that the gate would not have let pass for it.
    pub replies_stopped: usize,
    /// Records that could not be read.
    pub unreadable: usize,
    /// Actions of exports that could not be judged for want of their arguments.
    pub not_judged: usize,
    /// Verdicts that differ from the recorded ones.
    pub changed: usize,
    /// Tools that were inferred.
    pub inferred: Vec<InferredTool>,
    /// Tools that were too many, or whose names are too long, to be inferred: judged as unknown.
    pub left_unknown: usize,
    /// The runtime policies under which was judged.
    pub policies: BTreeSet<String>,
    /// Time spent judging, without reading and showing.
    pub judging: Duration,
}

impl Summary {
    /// How many calls got a verdict for which `is` holds.
    pub fn count(&self, is: impl Fn(Verdict) -> bool) -> usize {
        self.verdicts.iter().filter(|(verdict, _)| is(**verdict)).map(|(_, count)| count).sum()
    }

    /// Adds the sums of another file.
    pub fn add(&mut self, other: Self) {
        self.runs += other.runs;
        self.calls += other.calls;
        for (verdict, count) in other.verdicts {
            *self.verdicts.entry(verdict).or_default() += count;
        }
        self.replies += other.replies;
        self.replies_failed += other.replies_failed;
        self.replies_stopped += other.replies_stopped;
        self.unreadable += other.unreadable;
        self.not_judged += other.not_judged;
        self.changed += other.changed;
        self.inferred.extend(other.inferred);
        self.left_unknown += other.left_unknown;
        self.policies.extend(other.policies);
        self.judging += other.judging;
    }

    fn count_reply(&mut self, row: &ReplyRow) {
        let fails = row.verification.fails();
        self.replies += 1;
        self.replies_failed += usize::from(fails);
        self.replies_stopped += usize::from(fails && !row.verdict.permits());
    }

    fn count_row(&mut self, row: &Row) {
        self.calls += 1;
        *self.verdicts.entry(row.verdict).or_default() += 1;
        self.changed += usize::from(row.changed());
    }
}

/// Why a file could not be judged to its end.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The file cannot be read.
    #[error("cannot read the trace: {0}")]
    Io(#[from] io::Error),
    /// A line, or a value over many lines, is over the limit.
    #[error("line {line}: the record has more than {limit} bytes, which is the limit")]
    RecordTooLong {
        /// Where it starts, from 1.
        line: usize,
        /// The limit.
        limit: usize,
    },
    /// There is nothing in the file.
    #[error("the trace is empty")]
    Empty,
    /// The export does not verify.
    #[error("line {line} of the export: {message}")]
    UnsoundExport {
        /// Where, from 1.
        line: u64,
        /// What is wrong.
        message: String,
    },
    /// The export is larger than what is judged again.
    #[error("the export has more than {limit} {what}, which is the limit of a replay")]
    TooLarge {
        /// What there is too much of.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
    /// The bundle has no such runtime policy.
    #[error(transparent)]
    Policy(#[from] UnknownPolicy),
    /// The receiver wants no more.
    #[error("the replay was stopped")]
    Stopped,
}

/// Judges a recorded trace under one runtime policy. See the [module documentation](self).
///
/// # Errors
/// [`ReplayError`] where the file as a whole cannot be judged. Single records that cannot be read are items,
/// and counted.
pub fn replay(
    source: &Source,
    bundle: &Arc<Bundle>,
    pipeline: &Arc<Pipeline>,
    options: &Options,
    sink: Sink<'_>,
) -> Result<Summary, ReplayError> {
    if let Some(policy) = &options.policy {
        UnknownPolicy::check(bundle, policy)?;
    }
    let judge = Judge { source, bundle, pipeline, options };
    if source::is_export(source)? { export::replay(&judge, sink) } else { chat::replay(&judge, sink) }
}

/// What both kinds of record are judged with.
struct Judge<'a> {
    source: &'a Source,
    bundle: &'a Arc<Bundle>,
    pipeline: &'a Arc<Pipeline>,
    options: &'a Options,
}

fn send(sink: &mut dyn FnMut(Item<'_>) -> ControlFlow<()>, item: Item<'_>) -> Result<(), ReplayError> {
    match sink(item) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(ReplayError::Stopped),
    }
}

/// The row of a reply, if it was verified, with what its run is filled in by the caller. `number` gives the number of an
/// event in the record.
fn reply_row(judged: TextJudgement, reply: usize, number: impl Fn(u64) -> Option<u64>) -> Option<ReplyRow> {
    let verification = judged.verification?.renumbered(number);
    let (verdict, enforced) = (judged.decision.verdict, judged.enforced);
    Some(ReplyRow { run: 0, name: None, line: 0, reply, verdict, enforced, verification })
}

/// A row, with what its run and call are filled in by the caller.
fn row(bundle: &Bundle, judgement: &Judgement) -> Row {
    let headline = judgement.decision.headline();
    let tool = judgement.action.tool().map(str::to_owned);
    let inferred =
        tool.as_deref().and_then(|name| bundle.registry.get(name)).is_some_and(|tool| tool.inferred);
    Row {
        run: 0,
        name: None,
        line: 0,
        call: 0,
        id: None,
        tool,
        inferred,
        verdict: judgement.decision.verdict,
        rule: headline.map(|finding| finding.rule.to_string()),
        message: headline.map(|finding| finding.message.clone()),
        enforced: judgement.enforced,
        recorded: None,
        seq: None,
    }
}
