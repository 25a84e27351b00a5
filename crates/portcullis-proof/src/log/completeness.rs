//! Whether an export of many runs leaves none out.
//!
//! A writer numbers its segments without holes. An export of a span of time, or of what one principal did, brings for
//! every number from its first to its last one head that the log has; the runs of some of them are in the export, of
//! the others there is the head alone. So a reader sees how many there were, and that none was dropped from the middle.
//! That there was nothing before the first number and after the last takes a monitor, or the reader's own question.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use crate::chain::Id;
use crate::log::leaf::{KeyId, Leaf, RunHead, SignedLeaf};
use crate::log::policy::TrustPolicy;
use crate::log::verdict::{Evidence, LogFailure, TooMuchEvidence, verified_heads};

/// The most leaves that account for numbers.
pub const ACCOUNTED_LEAVES_MAX: usize = 1 << 17;
/// The most missing numbers that are named.
const MISSING_NAMED_MAX: usize = 100;

/// The numbers of one writer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NumberSpan {
    /// The writer.
    pub writer: KeyId,
    /// Its epoch.
    pub epoch: u64,
    /// The first number.
    pub first: u64,
    /// The last number.
    pub last: u64,
    /// Numbers whose runs are in the export.
    pub exported: u64,
    /// Numbers of which there is the head alone.
    pub withheld: u64,
    /// Numbers in between of which there is nothing.
    pub missing: u64,
    /// The first hundred of them.
    pub missing_named: Vec<u64>,
}

/// What was found about the numbers of an export of many runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Completeness {
    /// The first thing that is wrong.
    pub failure: Option<LogFailure>,
    /// Why it could not be judged to the end.
    pub open: Option<String>,
    /// The numbers, by writer.
    pub spans: Vec<NumberSpan>,
    /// Segments in the export whose number no head accounts for.
    pub unaccounted: u64,
}

impl Completeness {
    /// Whether nothing is wrong, and the export has every run from the first number to the last. Numbers of which there
    /// is the head alone leave it open: whose runs they are, a head does not say.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.failure.is_none()
            && self.open.is_none()
            && self.unaccounted == 0
            && !self.spans.is_empty()
            && self.spans.iter().all(|span| span.missing == 0 && span.withheld == 0)
    }
}

/// Holds the runs of an export against the numbers that the log knows. `evidence` is one head a number, `exported` what
/// the runs of the export bring of the log; each of those was verified on its own. Takes time in proportion to the
/// numbers.
///
/// # Errors
/// When there is more evidence than is read.
pub fn complete(
    evidence: &Evidence<'_>,
    trust: &TrustPolicy,
    origin: &str,
    exported: &[Evidence<'_>],
) -> Result<Completeness, TooMuchEvidence> {
    let found = evidence.leaves.len();
    if found > ACCOUNTED_LEAVES_MAX {
        let (what, limit) = ("leaves that account for numbers", ACCOUNTED_LEAVES_MAX);
        return Err(TooMuchEvidence { what, found, limit });
    }
    let (heads, open) = match verified_heads(evidence, trust, origin) {
        Ok(verified) => verified,
        Err(failure) => {
            return Ok(Completeness {
                failure: Some(failure),
                open: None,
                spans: Vec::new(),
                unaccounted: 0,
            });
        }
    };
    let numbers = exported_numbers(exported);
    let mut accounted: BTreeMap<(KeyId, u64), BTreeMap<u64, Id>> = BTreeMap::new();
    for head in &heads {
        accounted.entry((head.writer, head.epoch)).or_default().insert(head.run_no, head.segment);
    }
    let known = |number: &(KeyId, u64, u64), segment: &Id| {
        accounted.get(&(number.0, number.1)).and_then(|numbers| numbers.get(&number.2)) == Some(segment)
    };
    let unaccounted = numbers.iter().filter(|(number, segment)| !known(number, segment)).count() as u64;
    let spans = accounted
        .iter()
        .filter_map(|((writer, epoch), accounted)| {
            let is_exported = |number: u64| numbers.contains_key(&(*writer, *epoch, number));
            span(*writer, *epoch, accounted, is_exported)
        })
        .collect();
    Ok(Completeness { failure: None, open, spans, unaccounted })
}

/// The numbers of the segments whose runs are in the export.
fn exported_numbers(exported: &[Evidence<'_>]) -> HashMap<(KeyId, u64, u64), Id> {
    let leaves = exported.iter().flat_map(|evidence| &evidence.leaves);
    let heads = leaves.filter_map(|logged| match SignedLeaf::parse(logged.leaf.bytes).ok()?.leaf {
        Leaf::Head(RunHead { writer, epoch, run_no, segment, .. }) => {
            Some(((writer, epoch, run_no), segment))
        }
        _ => None,
    });
    heads.collect()
}

fn span(
    writer: KeyId,
    epoch: u64,
    accounted: &BTreeMap<u64, Id>,
    is_exported: impl Fn(u64) -> bool,
) -> Option<NumberSpan> {
    let (first, last) = (*accounted.first_key_value()?.0, *accounted.last_key_value()?.0);
    let exported = accounted.keys().filter(|number| is_exported(**number)).count() as u64;
    let present = accounted.len() as u64;
    let mut missing_named = Vec::new();
    let mut next = first;
    for number in accounted.keys() {
        let room = MISSING_NAMED_MAX.saturating_sub(missing_named.len());
        missing_named.extend((next..*number).take(room));
        next = number.saturating_add(1);
    }
    Some(NumberSpan {
        writer,
        epoch,
        first,
        last,
        exported,
        withheld: present - exported,
        missing: (last - first).saturating_add(1) - present,
        missing_named,
    })
}
