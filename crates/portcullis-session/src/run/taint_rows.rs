//! The rows of the index of taints that a batch adds.

use portcullis_core::aside::TAINT;
use portcullis_core::event::Event;
use portcullis_core::taint::Taint;
use portcullis_ledger::TaintRow;

use super::Live;

impl Live {
    /// The rows of what events say was written into things.
    pub(super) fn taint_rows(&self, events: &[Event], taints: Vec<(u64, Taint)>) -> Vec<TaintRow> {
        let principal = self.engine.state().principal().map(|principal| principal.id.clone());
        let row = |(seq, taint): (u64, Taint)| {
            let event = events.iter().find(|event| event.seq == seq)?;
            Some(TaintRow {
                thing: self.taints.digest(&taint.thing),
                principal: principal.clone()?,
                seq,
                commitment: event.payloads.get(TAINT)?.commitment,
                labels: taint.labels,
                marks: taint.marks,
                replaces: taint.replaces,
            })
        };
        taints.into_iter().filter_map(row).collect()
    }
}
