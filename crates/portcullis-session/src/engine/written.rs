//! When actions wrote what, as far as is known: what evidence is held against.
//!
//! An action may write at any time between the permit and its outcome, so a call is shown nothing by if any part of that
//! stretch lies after the call began.

use std::collections::{BTreeMap, VecDeque};

use portcullis_core::event::{Event, EventBody, ObservedRecord, ObservedWhat};
use portcullis_core::id::ActionId;
use portcullis_core::limits::OPEN_ACTIONS_MAX;
use portcullis_core::observed::Observed;
use portcullis_core::state::RunState;
use portcullis_core::work::{Call, Covers, WorkItem, Written};

/// Actions that are over and wrote something, of which it is remembered what: the latest ones.
const WRITES_MAX: usize = 4_096;

/// An action that may write.
#[derive(Debug, Clone)]
struct Writing {
    action: ActionId,
    /// Number of the event by which it went ahead.
    began: u64,
    /// Number of the event with its outcome.
    ended: Option<u64>,
    written: Written,
    /// It runs contained, and what was seen of it is not known yet.
    unseen: bool,
}

/// What the actions of a run write.
#[derive(Debug, Default)]
pub(super) struct Writes {
    /// Of actions that were recalled and may go ahead yet.
    proposed: BTreeMap<ActionId, Written>,
    open: BTreeMap<ActionId, Writing>,
    over: VecDeque<Writing>,
    /// Up to this event nothing is known any more.
    forgotten: u64,
}

impl Writes {
    /// Takes an event into account that is now part of the run, with what was read of its action.
    pub(super) fn learn(
        &mut self,
        event: &Event,
        written: Option<Written>,
        observed: Option<&str>,
        state: &RunState,
    ) {
        match &event.body {
            EventBody::Proposed(proposed) => {
                if self.proposed.len() >= OPEN_ACTIONS_MAX {
                    self.proposed.retain(|action, _| state.open_action(*action).is_some());
                }
                self.proposed.extend(written.map(|written| (proposed.action, written)));
            }
            EventBody::Enforcement { action: Some(action), enforced, contained, .. } => {
                let written = written.or_else(|| self.proposed.remove(action));
                if let Some(written) =
                    written.filter(|written| enforced.may_happen() && !written.is_nothing())
                {
                    let (action, began, unseen) = (*action, event.seq, contained.is_some());
                    self.open.insert(action, Writing { action, began, ended: None, written, unseen });
                }
            }
            EventBody::Outcome { action, .. } => {
                if let Some(writing) = self.open.remove(action) {
                    self.keep(Writing { ended: Some(event.seq), ..writing });
                }
            }
            EventBody::Observed(ObservedRecord {
                action: Some(action),
                what: ObservedWhat::Ended(_),
                ..
            }) => {
                let observed = observed.and_then(|text| serde_json::from_str::<Observed>(text).ok());
                let over = self.over.iter_mut().rev().find(|writing| writing.action == *action);
                if let Some(writing) = over.or_else(|| self.open.get_mut(action)) {
                    writing.unseen = false;
                    match observed {
                        Some(observed) => writing.written.seen(&observed),
                        None => writing.written = Written::anything(),
                    }
                }
            }
            _ => {}
        }
    }

    fn keep(&mut self, writing: Writing) {
        if self.over.len() >= WRITES_MAX
            && let Some(oldest) = self.over.pop_front()
        {
            self.forgotten = self.forgotten.max(oldest.ended.unwrap_or_default());
        }
        self.over.push_back(writing);
    }

    /// The paths that an action writes whose outcome is awaited, where they are known: at most `limit`, or none.
    pub(super) fn paths(&self, action: ActionId, limit: usize) -> Vec<String> {
        let writing = self.open.get(&action).filter(|writing| !writing.unseen);
        let paths: Vec<String> = writing
            .into_iter()
            .flat_map(|writing| writing.written.paths())
            .take(limit + 1)
            .map(str::to_owned)
            .collect();
        if paths.len() > limit { Vec::new() } else { paths }
    }

    /// Number of the event, after a call began, by which something was written that bears on what is covered.
    pub(super) fn since(
        &self,
        action: ActionId,
        call: &Call,
        covers: &Covers,
        workspace: Option<&str>,
    ) -> Option<u64> {
        if call.started <= self.forgotten {
            return Some(self.forgotten);
        }
        let all = self.open.values().chain(self.over.iter().rev());
        let after = all.filter(|writing| writing.ended.is_none_or(|ended| ended > call.started));
        let mut others = after.filter(|writing| writing.action != action);
        let found = others.find(|writing| writing.written.touches(covers, workspace));
        found.map(|writing| writing.ended.unwrap_or(writing.began))
    }

    /// Whether what an action wrote, now that it is known, bears on what an item's evidence shows. What it is going to be
    /// seen of one that runs contained is waited for.
    pub(super) fn outdates(
        &self,
        action: ActionId,
        seen: Option<&Observed>,
        item: &WorkItem,
        workspace: Option<&str>,
    ) -> bool {
        let over = self.over.iter().rev().find(|writing| writing.action == action);
        let Some(writing) = self.open.get(&action).or(over) else { return false };
        let written = match seen {
            Some(observed) => {
                let mut written = writing.written.clone();
                written.seen(observed);
                written
            }
            None if writing.unseen => return false,
            None => writing.written.clone(),
        };
        let others = item.evidence.iter().any(|evidence| evidence.action != action);
        others && written.touches(&item.covers, workspace)
    }
}
