//! Whether an export of many runs leaves none out.
//!
//! A writer numbers its segments without holes. An export of a span of time, or of what one principal did, brings for
//! every number from its first to its last one head that the log has; the runs of some of them are in the export, of
//! the others there is the head alone. So a reader sees how many there were, and that none was dropped from the middle.
//! That there was nothing before the first number and after the last takes a monitor, or the reader's own question.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use serde::Serialize;

use crate::chain::Id;
use crate::log::leaf::{KeyId, Leaf, RunHead, SignedLeaf};
use crate::log::policy::TrustPolicy;
use crate::log::verdict::{
    Evidence, LogAttack, LogFailure, LoggedLeaf, NamedHead, TooMuchEvidence, verified_heads,
};

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

/// What a run of the export brings of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exported<'a> {
    /// The prefix of its file names in failures.
    pub folder: &'a str,
    /// The files, which were verified with the run.
    pub evidence: Evidence<'a>,
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
    exported: &[Exported<'_>],
) -> Result<Completeness, TooMuchEvidence> {
    let found = evidence.leaves.len();
    if found > ACCOUNTED_LEAVES_MAX {
        let (what, limit) = ("leaves that account for numbers", ACCOUNTED_LEAVES_MAX);
        return Err(TooMuchEvidence { what, found, limit });
    }
    let failed =
        |failure| Completeness { failure: Some(failure), open: None, spans: Vec::new(), unaccounted: 0 };
    let (accounting, open) = match verified_heads(evidence, trust, origin) {
        Ok(verified) => verified,
        Err(failure) => return Ok(failed(failure)),
    };
    let mut numbering = Numbering::default();
    let exporting: Vec<NamedHead> = exported.iter().flat_map(heads_of).collect();
    for (file, head) in accounting.iter().chain(&exporting) {
        if let Err(failure) = numbering.add(file, head) {
            return Ok(failed(failure));
        }
    }
    let mut accounted: BTreeMap<(KeyId, u64), BTreeSet<u64>> = BTreeMap::new();
    for (_, head) in &accounting {
        accounted.entry((head.writer, head.epoch)).or_default().insert(head.run_no);
    }
    let numbers: HashSet<Number> = exporting.iter().map(|(_, head)| number(head)).collect();
    let is_accounted = |(writer, epoch, run_no): &&Number| {
        accounted.get(&(*writer, *epoch)).is_some_and(|numbers| numbers.contains(run_no))
    };
    let unaccounted = (numbers.len() - numbers.iter().filter(is_accounted).count()) as u64;
    let spans = accounted
        .iter()
        .filter_map(|((writer, epoch), accounted)| {
            let is_exported = |number: u64| numbers.contains(&(*writer, *epoch, number));
            span(*writer, *epoch, accounted, is_exported)
        })
        .collect();
    Ok(Completeness { failure: None, open, spans, unaccounted })
}

/// A number that a writer gave to a segment: writer, epoch, number.
type Number = (KeyId, u64, u64);

fn number(head: &RunHead) -> Number {
    (head.writer, head.epoch, head.run_no)
}

/// The heads that a run brings, each with its file.
fn heads_of(exported: &Exported<'_>) -> Vec<NamedHead> {
    let head = |logged: &LoggedLeaf<'_>| match SignedLeaf::parse(logged.leaf.bytes).ok()?.leaf {
        Leaf::Head(head) => Some((format!("{}{}", exported.folder, logged.leaf.name), head)),
        _ => None,
    };
    exported.evidence.leaves.iter().filter_map(head).collect()
}

/// Which segment of which run has which number, as far as heads have said it.
#[derive(Default)]
struct Numbering {
    numbers: HashMap<Number, (Id, Id)>,
    segments: HashMap<(Id, Id), Number>,
}

impl Numbering {
    fn add(&mut self, file: &str, head: &RunHead) -> Result<(), LogFailure> {
        let (segment, number) = ((head.run, head.segment), number(head));
        let fail =
            |attack, message| Err(LogFailure { attack, file: file.to_owned(), line: None, byte: 0, message });
        let other = *self.numbers.entry(number).or_insert(segment);
        if other != segment {
            let message = format!("segment `{}` also has number {} of epoch {}", other.1, number.2, number.1);
            return fail(LogAttack::RunNumberReused, message);
        }
        if *self.segments.entry(segment).or_insert(number) != number {
            let message = format!("segment `{}` has another number elsewhere", segment.1);
            return fail(LogAttack::HeadMismatch, message);
        }
        Ok(())
    }
}

fn span(
    writer: KeyId,
    epoch: u64,
    accounted: &BTreeSet<u64>,
    is_exported: impl Fn(u64) -> bool,
) -> Option<NumberSpan> {
    let (first, last) = (*accounted.first()?, *accounted.last()?);
    let exported = accounted.iter().filter(|number| is_exported(**number)).count() as u64;
    let present = accounted.len() as u64;
    let mut missing_named = Vec::new();
    let mut next = first;
    for number in accounted {
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
