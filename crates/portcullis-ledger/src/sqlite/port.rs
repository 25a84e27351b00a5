//! The port, served by this kind of store: nothing but delegation.

use std::io::Write;
use std::pin::Pin;

use portcullis_core::freeze::Freeze;
use portcullis_core::id::{ApprovalId, Commitment, RunId, SegmentId};
use portcullis_core::kept::KeptId;
use portcullis_core::state::progress::Progress;
use portcullis_core::time::Timestamp;
use portcullis_proof::Digest;

use crate::chain::{Append, Head, StoredPayload};
use crate::erasure::{Erased, ErasureRow, Selection, Tombstone};
use crate::error::LedgerError;
use crate::facts::{FactFilter, FactRow};
use crate::ledger::{Eraser, Later, Ledger, NewSegment, OpenedSegment, Reader, RecoveryReport, SegmentStand};
use crate::log::{Anchor, NotAnchored};
use crate::rows::{
    ApprovalFilter, ApprovalRow, ExportOptions, ExportSummary, FreezeFilter, Integrity, RunFilter,
    RunSummary, SegmentRow, StoredEvent,
};
use crate::sqlite::{SqliteEraser, SqliteLedger, SqliteReader};
use crate::taints::StoredTaints;

type Answer<T> = Result<T, LedgerError>;

impl Ledger for SqliteLedger {
    fn origin(&self) -> &str {
        self.origin()
    }

    fn open_segment(&self, new: NewSegment) -> Later<'_, OpenedSegment> {
        Box::pin(self.open_segment(new))
    }

    fn append(&self, append: Append) -> Later<'_, Head> {
        Box::pin(self.append(append))
    }

    fn put_freezes(&self, freezes: Vec<Freeze>) -> Later<'_, ()> {
        Box::pin(self.put_freezes(freezes))
    }

    fn lend_reader(&self, queries: &mut dyn FnMut(&dyn Reader) -> Answer<()>) -> Answer<()> {
        self.read(|reader| queries(reader))
    }

    fn check_present(&self) -> Answer<()> {
        self.check_present()
    }

    fn recovery_report(&self) -> &RecoveryReport {
        self.recovery_report()
    }

    fn set_anchor(&self, anchor: Anchor) {
        self.set_anchor(anchor);
    }

    fn logged(
        &self,
        segment: SegmentId,
    ) -> Pin<Box<dyn Future<Output = Result<(), NotAnchored>> + Send + '_>> {
        Box::pin(self.logged(segment))
    }

    fn summaries_due(&self) -> Answer<u64> {
        self.summaries_due()
    }

    fn summaries_computed(&self) -> Option<Answer<()>> {
        self.summaries_computed()
    }
}

impl Reader for SqliteReader {
    fn origin(&self) -> Answer<String> {
        self.origin()
    }

    fn runs(&self, filter: &RunFilter) -> Answer<Vec<RunSummary>> {
        self.runs(filter)
    }

    fn run(&self, run: RunId) -> Answer<Option<RunSummary>> {
        self.run(run)
    }

    fn progress(&self, run: RunId) -> Answer<Option<Progress>> {
        self.progress(run)
    }

    fn find_run_of(&self, prefix: &str, principal: Option<&str>) -> Answer<RunId> {
        self.find_run_of(prefix, principal)
    }

    fn latest_run(&self, principal: &str, session_key: &str) -> Answer<Option<RunId>> {
        self.latest_run(principal, session_key)
    }

    fn runs_since(&self, principal: &str, since: Timestamp, limit: usize) -> Answer<Vec<RunId>> {
        self.runs_since(principal, since, limit)
    }

    fn segments(&self, run: RunId) -> Answer<Vec<SegmentRow>> {
        self.segments(run)
    }

    fn head(&self, run: RunId) -> Answer<Option<Head>> {
        self.head(run)
    }

    fn events(&self, run: RunId, after: u64, limit: usize) -> Answer<Vec<StoredEvent>> {
        self.events(run, after, limit)
    }

    fn payload(&self, run: RunId, commitment: Commitment) -> Answer<Option<StoredPayload>> {
        self.payload(run, commitment)
    }

    fn taints(&self) -> Answer<StoredTaints> {
        self.taints()
    }

    fn facts(&self, filter: &FactFilter) -> Answer<Vec<FactRow>> {
        self.facts(filter)
    }

    fn fact(&self, id: KeptId) -> Answer<Option<FactRow>> {
        self.fact(id)
    }

    fn facts_ever(&self) -> Answer<u64> {
        self.facts_ever()
    }

    fn approvals(&self, filter: &ApprovalFilter) -> Answer<Vec<ApprovalRow>> {
        self.approvals(filter)
    }

    fn approval(&self, approval: ApprovalId) -> Answer<Option<ApprovalRow>> {
        self.approval(approval)
    }

    fn find_approvals(&self, prefix: &str, principal: Option<&str>) -> Answer<Vec<ApprovalRow>> {
        self.find_approvals(prefix, principal)
    }

    fn freezes(&self, filter: &FreezeFilter) -> Answer<Vec<Freeze>> {
        self.freezes(filter)
    }

    fn last_of_kind(&self, run: RunId, kind: &str, before: u64, within: u64) -> Answer<Option<StoredEvent>> {
        self.last_of_kind(run, kind, before, within)
    }

    fn erasures(&self, run: RunId) -> Answer<Vec<ErasureRow>> {
        self.erasures(run)
    }

    fn export_run(&self, run: RunId, out: &mut dyn Write, options: ExportOptions) -> Answer<ExportSummary> {
        self.export_run(run, out, options)
    }

    fn trust_line(&self, run: RunId) -> Answer<Option<String>> {
        self.trust_line(run)
    }

    fn verify_run(&self, run: RunId) -> Answer<()> {
        self.verify_run(run)
    }

    fn integrity_check(&self) -> Answer<Integrity> {
        self.integrity_check()
    }

    fn segments_from(&self, after: i64, limit: usize) -> Answer<Vec<(RunId, SegmentRow)>> {
        self.segments_from(after, limit)
    }

    fn segment_stand(&self, place: i64, segment: SegmentId) -> Answer<Option<SegmentStand>> {
        self.segment_stand(place, segment)
    }

    fn link_at(&self, segment: SegmentId, count: u64) -> Answer<Option<Option<Digest>>> {
        self.link_at(segment, count)
    }

    fn last_event_of(&self, segment: SegmentId) -> Answer<Option<u64>> {
        self.last_event_of(segment)
    }

    fn configuration_lines(&self, run: RunId, after: u64, until: u64) -> Answer<Vec<Vec<u8>>> {
        self.configuration_lines(run, after, until)
    }
}

impl Eraser for SqliteEraser {
    fn erase(&mut self, selection: &Selection, tombstone: &Tombstone) -> Answer<Erased> {
        self.erase(selection, tombstone)
    }

    fn rehearse(&mut self, selection: &Selection) -> Answer<Erased> {
        self.rehearse(selection)
    }

    fn compact(&mut self, erased: &mut Erased) -> Answer<()> {
        self.compact(erased)
    }
}
