//! What was found about a run in a log, for programs (JSON) and for people (`Display`).

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::chain::Digest;
use crate::report::{Check, CheckResult, Status};

/// What was done to a run, its evidence or its log, according to the evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LogAttack {
    /// A file is there twice, or its other half is not, or no export has one of this name.
    FilesMismatched,
    /// A leaf is malformed.
    LeafMalformed,
    /// A proof, or the checkpoint in it, is malformed.
    ProofMalformed,
    /// A consistency proof is malformed.
    ConsistencyMalformed,
    /// A leaf or a checkpoint is of another log than the run.
    WrongOrigin,
    /// The policy does not name the log.
    UnknownLog,
    /// The log did not sign the checkpoint, or a trusted signature on it does not hold.
    CheckpointForged,
    /// Too few witnesses cosigned the checkpoint.
    QuorumMissing,
    /// The leaf is not in the tree.
    NotInLog,
    /// The log signed two trees of one size, or two leaves in one place.
    LogForked,
    /// A tree does not continue another.
    LogNotContinued,
    /// Someone enrolled or revoked a writer who may not.
    AdminUnknown,
    /// The signature of a leaf does not hold.
    LeafForged,
    /// The signer of a head was not enrolled before the head was logged.
    WriterNotEnrolled,
    /// The signer of a head was revoked before the head was logged.
    WriterRevoked,
    /// A head is of another run.
    HeadOfAnotherRun,
    /// A head is not of the segment that the export has.
    HeadMismatch,
    /// The log knows more of the run than the export has.
    TailMissing,
    /// The chain is sound in itself, but is not the one that was logged.
    ChainRewritten,
    /// A later head has fewer events, or follows the end.
    HeadRegressed,
    /// Two heads follow the same head: the writer signed two histories.
    HeadForked,
    /// A segment ended twice.
    ClosedTwice,
    /// A writer gave one number to two segments.
    RunNumberReused,
}

impl LogAttack {
    /// The place in [`CHECKS`] of the check that finds it.
    fn check(self) -> usize {
        match self {
            LogAttack::FilesMismatched
            | LogAttack::LeafMalformed
            | LogAttack::ProofMalformed
            | LogAttack::ConsistencyMalformed => 0,
            LogAttack::WrongOrigin => 1,
            LogAttack::UnknownLog | LogAttack::CheckpointForged | LogAttack::QuorumMissing => 2,
            LogAttack::NotInLog => 3,
            LogAttack::LogForked | LogAttack::LogNotContinued => 4,
            LogAttack::AdminUnknown
            | LogAttack::LeafForged
            | LogAttack::WriterNotEnrolled
            | LogAttack::WriterRevoked => 5,
            LogAttack::HeadOfAnotherRun
            | LogAttack::HeadMismatch
            | LogAttack::TailMissing
            | LogAttack::ChainRewritten
            | LogAttack::HeadRegressed
            | LogAttack::HeadForked
            | LogAttack::ClosedTwice
            | LogAttack::RunNumberReused => 6,
        }
    }
}

impl fmt::Display for LogAttack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Serialize::serialize(self, f)
    }
}

/// The first thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogFailure {
    /// What was done.
    pub attack: LogAttack,
    /// In which file.
    pub file: String,
    /// The line, from 1, where the file has lines.
    pub line: Option<u64>,
    /// The offset in the file.
    pub byte: u64,
    /// What was expected, and what was found instead.
    pub message: String,
}

/// The names of the checks, in order; the last two cannot fail.
pub(super) const CHECKS: [&str; 9] =
    ["format", "origin", "checkpoint", "inclusion", "history", "writers", "heads", "closure", "split-view"];

/// What no export can show alone. It takes a monitor that reads the whole log.
pub const UNPROVEN: [&str; 4] = [
    "uniqueness: the log may hold other heads of this run",
    "suppression: other runs of the writer may have been left out; its run numbers tell",
    "revocation: only revocations in the export or the policy are known",
    "source: the writer may have recorded what did not happen",
];

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LogReport {
    /// The answer.
    pub status: Status,
    /// The first thing that is wrong, when the answer is `INVALID`.
    pub failure: Option<LogFailure>,
    /// Every check, in order.
    pub checks: Vec<Check>,
    /// The size of the largest tree that the export proves something in.
    pub tree_size: Option<u64>,
    /// Its root.
    pub root: Option<Digest>,
    /// The last event that a head in the log covers.
    pub anchored: Option<u64>,
    /// The time by which a witness says that it had seen the last head, in seconds since 1970.
    pub seen_by: Option<u64>,
    /// What the answer does not say, whatever it is: [`UNPROVEN`].
    pub unproven: &'static [&'static str],
}

impl LogReport {
    /// The exit code of a program that says this: 0 valid, 1 invalid, 2 incomplete.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self.status {
            Status::Valid => 0,
            Status::Invalid => 1,
            Status::Incomplete => 2,
        }
    }

    /// The report over the checks that were made; the first that failed is the last of them.
    pub(crate) fn conclude(made: Vec<Result<String, String>>, failure: Option<LogFailure>) -> LogReport {
        let failed = failure.as_ref().map(|failure| failure.attack.check());
        let mut made = made.into_iter();
        let mut checks = Vec::with_capacity(CHECKS.len());
        for (index, name) in CHECKS.into_iter().enumerate() {
            let (result, detail) = match (&failure, made.next()) {
                (Some(failure), _) if failed == Some(index) => (CheckResult::Fail, failure.message.clone()),
                (_, Some(Ok(detail))) => (CheckResult::Pass, detail),
                (_, Some(Err(detail))) => (CheckResult::NotChecked, detail),
                (_, None) => (CheckResult::NotChecked, "stopped at the first failure".to_owned()),
            };
            checks.push(Check { name, result, detail });
        }
        let status = match failure {
            Some(_) => Status::Invalid,
            None if checks.iter().all(|check| check.result == CheckResult::Pass) => Status::Valid,
            None => Status::Incomplete,
        };
        let unproven = &UNPROVEN;
        LogReport {
            status,
            failure,
            checks,
            tree_size: None,
            root: None,
            anchored: None,
            seen_by: None,
            unproven,
        }
    }
}

impl fmt::Display for LogReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let status = match self.status {
            Status::Valid => "VALID",
            Status::Invalid => "INVALID",
            Status::Incomplete => "INCOMPLETE",
        };
        f.write_str(status)?;
        if let Some(failure) = &self.failure {
            write!(f, " {} in `{}`, ", failure.attack, failure.file.escape_debug())?;
            if let Some(line) = failure.line {
                write!(f, "line {line}, ")?;
            }
            write!(f, "byte {}: {}", failure.byte, failure.message)?;
        }
        writeln!(f)?;
        for check in &self.checks {
            let result = match check.result {
                CheckResult::Pass => "pass",
                CheckResult::Fail => "FAIL",
                CheckResult::NotChecked => "not checked",
            };
            writeln!(f, "  {:<11} {result}: {}", check.name, check.detail)?;
        }
        self.unproven.iter().try_for_each(|limit| writeln!(f, "  not proven  {limit}"))
    }
}
