//! An export and what the log says of it, verified together.
//!
//! The chain of the run is computed from the export, as always. While that goes on, its links are kept where heads
//! in the log speak of them; then the log's verdict is made over those. A good verdict is an anchor as good as a trust
//! file: better, since nobody had to keep the heads.

use std::collections::{BTreeMap, HashSet};
use std::io::BufRead;

use serde::Serialize;

use crate::chain::{Digest, Id, SegmentStart};
use crate::export::SegmentState;
use crate::kin::Kin;
use crate::log::files::{EXPORT_FILE, ExportFiles};
use crate::log::policy::TrustPolicy;
use crate::log::verdict::{Evidence, File, LogReport, RunFacts, SegmentFacts, TooMuchEvidence, judge};
use crate::report::{CheckResult, Head, Report, Status};
use crate::trust::Trust;
use crate::verify::{ReadError, verify_with};

/// The most segments of one run that are held against a log.
pub const SEGMENTS_KEPT_MAX: usize = 1 << 16;

/// What was found about an export and its log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LoggedReport {
    /// The answer over both.
    pub status: Status,
    /// What was found about the export. Its anchor is the log where the log's verdict is `VALID`.
    pub export: Report,
    /// What was found about the log, or `None` if the export itself is `INVALID`.
    pub log: Option<LogReport>,
    /// Files that the export brings to be believed, and that were not read.
    pub ignored: Vec<String>,
    /// What the run says of others, as far as it was read.
    #[serde(skip)]
    pub kin: Kin,
}

/// Why an export could not be judged at all.
#[derive(Debug, thiserror::Error)]
pub enum LoggedError {
    /// The export could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// There is more evidence than is read.
    #[error(transparent)]
    TooMuch(#[from] TooMuchEvidence),
    /// The files do not contain a run.
    #[error("there is no `{EXPORT_FILE}` among the files")]
    NoExport,
}

/// Verifies an export that is handed over as files, names and bytes.
///
/// # Errors
/// Those of [`verify_logged`], and when the run itself is not among the files.
pub fn verify_files(
    files: &[File<'_>],
    trust: Option<&Trust>,
    policy: &TrustPolicy,
) -> Result<LoggedReport, LoggedError> {
    let sorted = ExportFiles::sort(files);
    let export = sorted.export.ok_or(LoggedError::NoExport)?;
    verify_sorted(export, &sorted, trust, policy)
}

/// Verifies an export whose files were sorted out by their names. The run is read from `export`, so that it need not
/// fit into memory; [`ExportFiles::export`] is ignored.
///
/// # Errors
/// Those of [`verify_logged`].
pub fn verify_sorted(
    export: impl BufRead,
    sorted: &ExportFiles<'_>,
    trust: Option<&Trust>,
    policy: &TrustPolicy,
) -> Result<LoggedReport, LoggedError> {
    if sorted.problem.is_some() {
        // What the export itself did wrong goes first, as it does everywhere.
        return Ok(verify_unlogged(export, sorted, trust)?);
    }
    let mut report = verify_logged(export, trust, &sorted.evidence, policy)?;
    report.ignored = sorted.ignored.iter().map(|&name| name.to_owned()).collect();
    Ok(report)
}

/// Verifies an export whose files were sorted out by their names without checking the log.
///
/// # Errors
/// When the export could not be read to the point where an answer is possible.
pub fn verify_unlogged(
    export: impl BufRead,
    sorted: &ExportFiles<'_>,
    trust: Option<&Trust>,
) -> Result<LoggedReport, ReadError> {
    let mut kin = Kin::default();
    let export = verify_with(export, trust, None, &mut kin)?;
    let problem = sorted.problem.as_ref().filter(|_| export.failure.is_none());
    let log = problem.map(|problem| LogReport::conclude(Vec::new(), Some(problem.clone())));
    let status = if sorted.problem.is_some() { Status::Invalid } else { export.status };
    let ignored = sorted.ignored.iter().map(|&name| name.to_owned()).collect();
    Ok(LoggedReport { status, export, log, ignored, kin })
}

/// Verifies an export against a transparency log, and against a trust file where there is one.
///
/// # Errors
/// When the export could not be read to the point where an answer is possible, or has more evidence than is read.
pub fn verify_logged(
    reader: impl BufRead,
    trust: Option<&Trust>,
    evidence: &Evidence<'_>,
    policy: &TrustPolicy,
) -> Result<LoggedReport, LoggedError> {
    let mut segments = Segments { wanted: evidence.wanted().into_iter().collect(), facts: Vec::new() };
    let mut kin = Kin::default();
    let mut export = verify_with(reader, trust, Some(&mut segments), &mut kin)?;
    let (Some(origin), Some(run)) = (export.origin.clone(), export.run) else {
        let status = export.status;
        return Ok(LoggedReport { status, export, log: None, ignored: Vec::new(), kin });
    };
    if export.status == Status::Invalid {
        let status = Status::Invalid;
        return Ok(LoggedReport { status, export, log: None, ignored: Vec::new(), kin });
    }
    let facts = RunFacts { origin: &origin, run, segments: segments.facts };
    let log = judge(evidence, policy, &facts)?;
    if log.status == Status::Valid {
        anchor(&mut export, &log);
    }
    let status = if log.status == Status::Valid { export.status } else { log.status };
    Ok(LoggedReport { status, export, log: Some(log), ignored: Vec::new(), kin })
}

/// Makes the log the anchor of a run whose end it has.
fn anchor(export: &mut Report, log: &LogReport) {
    for check in &mut export.checks {
        if check.name == "anchor" && check.result == CheckResult::NotChecked {
            check.result = CheckResult::Pass;
            check.detail = format!("the log has the end of the run, after {} events", export.events);
        }
    }
    export.anchored = export.anchored.max(log.anchored);
    if export.checks.iter().all(|check| check.result == CheckResult::Pass) {
        export.status = Status::Valid;
    }
}

/// The segments of a run, as they are computed, with the links that heads speak of.
#[derive(Debug)]
pub(crate) struct Segments {
    wanted: HashSet<(Id, u64)>,
    facts: Vec<SegmentFacts>,
}

impl Segments {
    /// A segment begins; an error when there are more than are kept.
    pub(crate) fn start(&mut self, start: &SegmentStart<'_>, link: Digest) -> Result<(), ()> {
        if self.facts.len() == SEGMENTS_KEPT_MAX {
            return Err(());
        }
        let head = Head { count: start.after, link };
        self.facts.push(SegmentFacts {
            segment: start.segment,
            ordinal: start.ordinal,
            parent: start.parent,
            state: SegmentState::Open,
            start: head,
            end: head,
            links: BTreeMap::new(),
        });
        Ok(())
    }

    /// An event follows.
    pub(crate) fn event(&mut self, head: Head) {
        let Some(segment) = self.facts.last_mut() else { return };
        segment.end = head;
        if self.wanted.contains(&(segment.segment, head.count)) {
            segment.links.insert(head.count, head.link);
        }
    }

    /// The segment ends.
    pub(crate) fn end(&mut self, state: SegmentState) {
        if let Some(segment) = self.facts.last_mut() {
            segment.state = state;
        }
    }
}
