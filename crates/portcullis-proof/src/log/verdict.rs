//! The verdict over one run: whether the log says of it what its export says.
//!
//! The export gives leaves, each with its proof, and consistency proofs; the chain of the run gives [`RunFacts`], which
//! are computed and not read; the reader gives a [`TrustPolicy`]. [`judge`] makes nine checks in a fixed order and
//! stops at the first that fails. What cannot be checked with what is there is neither good nor bad: `INCOMPLETE`.

mod judge;
mod report;

use std::collections::BTreeMap;

use crate::chain::{Digest, Id, Parent};
use crate::export::SegmentState;
use crate::log::leaf::{Leaf, RunHead, SignedLeaf};
use crate::log::policy::TrustPolicy;
use crate::report::Head;

pub use report::{LogAttack, LogFailure, LogReport, UNPROVEN};

/// The most leaves in one export.
pub const EVIDENCE_LEAVES_MAX: usize = 4096;

/// The most consistency proofs in one export.
pub const EVIDENCE_CONSISTENCY_MAX: usize = 256;

/// A file of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct File<'a> {
    /// What a failure calls it.
    pub name: &'a str,
    /// Its bytes.
    pub bytes: &'a [u8],
}

/// A leaf, and the proof that it is in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoggedLeaf<'a> {
    /// The leaf, as [`SignedLeaf::parse`] reads it.
    pub leaf: File<'a>,
    /// The proof, as [`crate::log::TlogProof::parse`] reads it.
    pub proof: File<'a>,
}

/// What an export says of the log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Evidence<'a> {
    /// Heads, and the enrolments of those who signed them.
    pub leaves: Vec<LoggedLeaf<'a>>,
    /// Consistency proofs, as [`crate::log::witness::AddCheckpoint::parse`] reads them: from the tree of `old` leaves,
    /// which another file or the policy names, to the checkpoint.
    pub consistency: Vec<File<'a>>,
}

impl Evidence<'_> {
    /// The places of the chain that the heads speak of, as far as they can be read: segment and count. Who computes
    /// the chain keeps its links there.
    #[must_use]
    pub fn wanted(&self) -> Vec<(Id, u64)> {
        let leaves = self.leaves.iter().take(EVIDENCE_LEAVES_MAX);
        let heads = leaves.filter_map(|logged| match SignedLeaf::parse(logged.leaf.bytes).ok()?.leaf {
            Leaf::Head(head) => Some((head.segment, head.count)),
            _ => None,
        });
        heads.collect()
    }
}

/// A run, as its chain was computed from its events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunFacts<'a> {
    /// The store that the first link of every segment binds.
    pub origin: &'a str,
    /// The run.
    pub run: Id,
    /// Its segments, in order.
    pub segments: Vec<SegmentFacts>,
}

/// A segment, as its chain was computed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentFacts {
    /// The segment.
    pub segment: Id,
    /// The number of segments before it.
    pub ordinal: u64,
    /// The segment before it.
    pub parent: Option<Parent>,
    /// Its state.
    pub state: SegmentState,
    /// Before its first event: the seq of the last event before it, and the first link.
    pub start: Head,
    /// After its last event.
    pub end: Head,
    /// The links of events in between, at least where [`Evidence::wanted`] asks for them.
    pub links: BTreeMap<u64, Digest>,
}

impl SegmentFacts {
    fn link(&self, count: u64) -> Option<Digest> {
        [self.start, self.end]
            .into_iter()
            .find(|head| head.count == count)
            .map(|head| head.link)
            .or_else(|| self.links.get(&count).copied())
    }
}

/// There is more evidence than a verifier reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the export has {found} {what}; this verifier reads at most {limit}")]
pub struct TooMuchEvidence {
    /// What there is too much of.
    pub what: &'static str,
    /// How much there is.
    pub found: usize,
    /// The limit.
    pub limit: usize,
}

/// Holds the chain of a run against what the log says of it.
///
/// # Errors
/// When there is more evidence than is read. Everything that is wrong *with* the evidence is an answer, not an error.
pub fn judge(
    evidence: &Evidence<'_>,
    trust: &TrustPolicy,
    run: &RunFacts<'_>,
) -> Result<LogReport, TooMuchEvidence> {
    let bounded =
        |what, found, limit| if found > limit { Err(TooMuchEvidence { what, found, limit }) } else { Ok(()) };
    bounded("leaves", evidence.leaves.len(), EVIDENCE_LEAVES_MAX)?;
    bounded("consistency proofs", evidence.consistency.len(), EVIDENCE_CONSISTENCY_MAX)?;
    Ok(judge::report(evidence, trust, run))
}

/// A run head and the name of its leaf.
pub(crate) type NamedHead = (String, RunHead);

/// The run heads among leaves, in the order of the log, when all of them are in a log that the policy believes and
/// signed by its writers; with why the trees could not be connected, where that is so.
///
/// # Errors
/// The first thing that is wrong.
pub(crate) fn verified_heads(
    evidence: &Evidence<'_>,
    trust: &TrustPolicy,
    origin: &str,
) -> Result<(Vec<NamedHead>, Option<String>), LogFailure> {
    judge::verified_heads(evidence, trust, origin)
}
