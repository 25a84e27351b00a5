//! What the agent had kept in this run: the cells of its session state, and which facts it wrote and forgot.

use std::collections::{BTreeMap, BTreeSet};

use crate::event::{Event, EventBody};
use crate::id::RequestId;
use crate::kept::{
    CELLS_MAX, Cell, CellId, CellRecord, FACTS_OF_RUN_MAX, KeptId, KeptOp, KeptRecord,
    REQUESTS_REMEMBERED_MAX,
};
use crate::label::LabelSet;
use crate::recent::Recent;

/// At most [`CELLS_MAX`] cells and [`FACTS_OF_RUN_MAX`] facts.
#[derive(Debug, Clone, Default)]
pub struct Kept {
    cells: BTreeMap<CellId, Cell>,
    by_key: BTreeMap<String, CellId>,
    bytes: usize,
    /// Events of this run that established a fact.
    written: BTreeSet<u64>,
    /// Facts that were forgotten in this run, its own and others.
    forgotten: BTreeSet<KeptId>,
    /// The events of the latest requests that have a name.
    requests: Recent<RequestId, u64>,
    /// Others' words were among the facts that were read.
    read_foreign: bool,
}

impl Kept {
    /// The cell of a key.
    #[must_use]
    pub fn cell(&self, key: &str) -> Option<&Cell> {
        self.by_key.get(key).and_then(|id| self.cells.get(id))
    }

    /// All cells, in the order in which their keys were first written.
    pub fn cells(&self) -> impl Iterator<Item = &Cell> {
        self.cells.values()
    }

    /// How many there are.
    #[must_use]
    pub fn cells_made(&self) -> usize {
        self.cells.len()
    }

    /// Bytes of all keys and values.
    #[must_use]
    pub fn state_bytes(&self) -> usize {
        self.bytes
    }

    /// The number of the next one.
    pub(crate) fn next_cell(&self) -> CellId {
        CellId(u32::try_from(self.cells.len()).unwrap_or(u32::MAX).saturating_add(1))
    }

    /// How many facts the run has established.
    #[must_use]
    pub fn facts_written(&self) -> usize {
        self.written.len()
    }

    /// Whether an event of this run established a fact.
    #[must_use]
    pub fn wrote(&self, seq: u64) -> bool {
        self.written.contains(&seq)
    }

    /// Whether this run has forgotten a fact.
    #[must_use]
    pub fn forgot(&self, fact: KeptId) -> bool {
        self.forgotten.contains(&fact)
    }

    /// How many it has forgotten.
    #[must_use]
    pub fn facts_forgotten(&self) -> usize {
        self.forgotten.len()
    }

    /// Whether others' words were among the facts that it has read.
    #[must_use]
    pub fn read_foreign(&self) -> bool {
        self.read_foreign
    }

    /// The event that a request of that name led to, if it was made before.
    #[must_use]
    pub fn done(&self, request: RequestId) -> Option<u64> {
        self.requests.get(&request).copied()
    }

    /// Takes an event into account. What was refused changes nothing. Returns the labels that the run has from here on:
    /// whoever is handed what was kept has seen what the run had seen that kept it.
    pub(super) fn follow<'e>(&mut self, event: &'e Event) -> Option<&'e LabelSet> {
        match &event.body {
            EventBody::State(record) if record.refused.is_none() => self.put(record, event.seq),
            EventBody::Fact(record) if record.refused.is_none() => {
                self.kept(event, record);
                return (record.op == KeptOp::Read).then_some(&record.labels);
            }
            _ => {}
        }
        None
    }

    fn remember(&mut self, request: Option<RequestId>, seq: u64) {
        if let Some(request) = request {
            self.requests.insert(request, seq, REQUESTS_REMEMBERED_MAX);
        }
    }

    fn put(&mut self, record: &CellRecord, seq: u64) {
        let Some(id) = record.cell else { return };
        let is_next = self.cells.len() < CELLS_MAX && id == self.next_cell();
        if !is_next && !self.cells.contains_key(&id) {
            return;
        }
        self.remember(record.request, seq);
        let (key, value) = (record.words.key.clone(), record.words.after.clone());
        let labels = record.labels.clone();
        let mut cell = Cell { id, key, value, version: seq, labels };
        if let Some(before) = self.cells.get(&id) {
            self.bytes = self.bytes.saturating_sub(before.bytes());
            if cell.key.is_empty() {
                cell.key.clone_from(&before.key);
            }
        }
        self.bytes += cell.bytes();
        if !cell.key.is_empty() {
            self.by_key.insert(cell.key.clone(), id);
        }
        self.cells.insert(id, cell);
    }

    fn kept(&mut self, event: &Event, record: &KeptRecord) {
        self.remember(record.request, event.seq);
        match record.op {
            KeptOp::Write if self.written.len() < FACTS_OF_RUN_MAX => {
                self.written.insert(event.seq);
            }
            KeptOp::Forget if self.forgotten.len() < FACTS_OF_RUN_MAX => {
                self.forgotten.extend(record.fact);
            }
            KeptOp::Read => self.read_foreign |= !record.foreign.is_empty(),
            KeptOp::Write | KeptOp::Forget => {}
        }
    }
}
