//! What a verification found, for programs (JSON) and for people (`Display`).

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::chain::{Digest, Id};
use crate::export::SegmentState;

/// The exit code of a program that could not read the export or the trust file at all.
pub const EXIT_COULD_NOT_READ: u8 = 3;

/// The head of a chain: the seq of an event and its link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// The seq of the event.
    pub count: u64,
    /// Its link.
    pub link: Digest,
}

/// The answer. There are three: what cannot be judged is neither good nor bad.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Status {
    /// Nothing was changed, nothing is missing, and a trusted head says so.
    Valid,
    /// Something was changed or is missing.
    Invalid,
    /// What is there is sound, but not all of it is there or is anchored in the trust file.
    Incomplete,
}

/// What was done to an export, according to the evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Attack {
    /// The first line is not that of an export.
    NotAPortcullisExport,
    /// A line is neither an event nor a record in its one spelling, or is over the limit.
    LineMalformed,
    /// A record is in the place of another one.
    RecordOutOfOrder,
    /// The file ends before its end record, or within a line.
    Truncated,
    /// Something follows the end record.
    TrailingData,
    /// The end record counts other segments, events or payloads than the file holds.
    CountMismatch,
    /// The start of a segment does not hash to its first link.
    SegmentAltered,
    /// A segment does not continue the segment before it.
    SegmentSpliced,
    /// An event does not hash to its link.
    EventAltered,
    /// An event is chained, but malformed.
    EventMalformed,
    /// An event is not there.
    EventMissing,
    /// An event is later than its place.
    EventReordered,
    /// An event occurs a second time.
    EventDuplicated,
    /// The head of a segment does not match its chain.
    HeadMismatch,
    /// The events contradict each other.
    StateMachine,
    /// A payload does not open its commitment.
    PayloadAltered,
    /// A payload that no event of the run names.
    PayloadUnknown,
    /// A payload that the end record counts is not there.
    PayloadMissing,
    /// The run is from a different store than the trust file names.
    WrongOrigin,
    /// The chain is sound in itself, but is not the one that the trust file remembers.
    ChainRewritten,
    /// The trust file remembers more events than the run has.
    TailMissing,
}

impl Attack {
    /// The check that finds it.
    fn check(self) -> usize {
        match self {
            Attack::NotAPortcullisExport
            | Attack::LineMalformed
            | Attack::RecordOutOfOrder
            | Attack::Truncated
            | Attack::TrailingData
            | Attack::CountMismatch => 0,
            Attack::SegmentAltered
            | Attack::SegmentSpliced
            | Attack::EventAltered
            | Attack::EventMalformed
            | Attack::EventMissing
            | Attack::EventReordered
            | Attack::EventDuplicated
            | Attack::HeadMismatch => 1,
            Attack::StateMachine => 2,
            Attack::PayloadAltered | Attack::PayloadUnknown | Attack::PayloadMissing => 3,
            Attack::WrongOrigin | Attack::ChainRewritten | Attack::TailMissing => 4,
        }
    }
}

impl fmt::Display for Attack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Serialize::serialize(self, f)
    }
}

/// The first thing that is wrong with an export.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// What was done to it.
    pub attack: Attack,
    /// The line, from 1.
    pub line: u64,
    /// The offset of the line's first byte in the file.
    pub byte: u64,
    /// The seq of the event, where it is known.
    pub seq: Option<u64>,
    /// What was expected, and what was found instead.
    pub message: String,
}

/// How one check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CheckResult {
    /// Checked, and good.
    Pass,
    /// Checked, and bad.
    Fail,
    /// Not checked, or not to the end.
    NotChecked,
}

/// One check of a verification.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// `format`, `chain`, `trajectory`, `payloads`, `anchor` or `closure`.
    pub name: &'static str,
    /// How it ended.
    pub result: CheckResult,
    /// What it found.
    pub detail: String,
}

/// The payloads of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PayloadCounts {
    /// Named by its events.
    pub named: u64,
    /// In the file, and opening their commitment.
    pub verified: u64,
    /// Not in the file, for whatever reason.
    pub withheld: u64,
    /// Not in the file because the store erased them, as the file says.
    #[serde(default)]
    pub erased: u64,
}

/// What a verification found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The answer.
    pub status: Status,
    /// The first thing that is wrong, when the answer is `INVALID`.
    pub failure: Option<Failure>,
    /// Every check, in order.
    pub checks: Vec<Check>,
    /// The store, as the export states it.
    pub origin: Option<String>,
    /// The run, as the export states it.
    pub run: Option<Id>,
    /// The state of its last segment.
    pub state: Option<SegmentState>,
    /// The number of segments read.
    pub segments: u64,
    /// The number of events read.
    pub events: u64,
    /// The last event that was read and follows from all before it.
    pub head: Option<Head>,
    /// The last event that a trusted head covers.
    pub anchored: Option<u64>,
    /// Its payloads.
    pub payloads: PayloadCounts,
}

/// The names of the checks, in the order of [`Attack::check`]; the last, `closure`, cannot fail.
const CHECKS: [&str; 6] = ["format", "chain", "trajectory", "payloads", "anchor", "closure"];

impl Report {
    /// The exit code of a program that says this: 0 valid, 1 invalid, 2 incomplete.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self.status {
            Status::Valid => 0,
            Status::Invalid => 1,
            Status::Incomplete => 2,
        }
    }

    /// Fills in checks and status. `details` say for each check what it found, with whether it could be made.
    pub(crate) fn conclude(mut self, details: [Result<String, String>; 6]) -> Report {
        let failed = self.failure.as_ref().map(|failure| failure.attack.check());
        for (index, (name, detail)) in CHECKS.into_iter().zip(details).enumerate() {
            let (result, detail) = match (&self.failure, detail) {
                (Some(failure), _) if failed == Some(index) => (CheckResult::Fail, failure.message.clone()),
                (Some(_), _) => (CheckResult::NotChecked, "stopped at the first failure".to_owned()),
                (None, Ok(detail)) => (CheckResult::Pass, detail),
                (None, Err(detail)) => (CheckResult::NotChecked, detail),
            };
            self.checks.push(Check { name, result, detail });
        }
        self.status = match &self.failure {
            Some(_) => Status::Invalid,
            None if self.checks.iter().all(|check| check.result == CheckResult::Pass) => Status::Valid,
            None => Status::Incomplete,
        };
        self
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let status = match self.status {
            Status::Valid => "VALID",
            Status::Invalid => "INVALID",
            Status::Incomplete => "INCOMPLETE",
        };
        f.write_str(status)?;
        if let Some(failure) = &self.failure {
            write!(f, " {} at line {}, byte {}", failure.attack, failure.line, failure.byte)?;
            if let Some(seq) = failure.seq {
                write!(f, ", event {seq}")?;
            }
            write!(f, ": {}", failure.message)?;
        }
        writeln!(f)?;
        if let (Some(run), Some(origin)) = (self.run, &self.origin) {
            writeln!(f, "  run         {run} of `{}`", origin.escape_debug())?;
        }
        if let Some(head) = self.head {
            writeln!(f, "  head        {} {}", head.count, head.link)?;
        }
        for check in &self.checks {
            let result = match check.result {
                CheckResult::Pass => "pass",
                CheckResult::Fail => "FAIL",
                CheckResult::NotChecked => "not checked",
            };
            writeln!(f, "  {:<11} {result}: {}", check.name, check.detail)?;
        }
        Ok(())
    }
}
