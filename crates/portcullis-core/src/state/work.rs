//! The items of a run, and the finished calls that evidence may cite.

use std::collections::{BTreeMap, BTreeSet};

use super::OpenAction;
use crate::event::{Actor, Event, EventBody, ObservedRecord, ObservedWhat, OutcomeStatus};
use crate::id::ActionId;
use crate::limits::OPEN_ACTIONS_MAX;
use crate::recent::Recent;
use crate::work::{
    CALLS_CITED_MAX, Call, ItemId, ItemState, OPEN_TOLD, WORK_ITEMS_MAX, WorkItem, WorkRecord,
};

/// All items, at most [`WORK_ITEMS_MAX`], and the latest finished calls, at most [`CALLS_CITED_MAX`].
#[derive(Debug, Clone, Default)]
pub struct Works {
    items: BTreeMap<ItemId, WorkItem>,
    /// Claimed and verified items with evidence that is not stale.
    fresh: BTreeSet<ItemId>,
    calls: Recent<ActionId, Call>,
    /// Number of the latest event by which a call ended, or an item changed.
    latest: u64,
    /// Number of the event by which the agent was last told what is open.
    told: u64,
    /// Exit statuses of contained actions whose outcome is awaited.
    exits: Recent<ActionId, u8>,
}

impl Works {
    /// The item of that number.
    #[must_use]
    pub fn item(&self, id: ItemId) -> Option<&WorkItem> {
        self.items.get(&id)
    }

    /// All items in the order in which they were made.
    pub fn items(&self) -> impl Iterator<Item = &WorkItem> {
        self.items.values()
    }

    /// How many there are, which is the number of the latest one.
    #[must_use]
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The items that are not shown to be done and that the agent can do something about.
    pub fn open(&self) -> impl Iterator<Item = &WorkItem> {
        let is_the_agents = |item: &&WorkItem| {
            let decided = item.state == ItemState::Claimed && (item.waits || item.criteria.is_empty());
            item.is_open() && !decided && item.proposed.is_empty()
        };
        self.items.values().filter(is_the_agents)
    }

    /// Number of the latest event by which a call ended, or an item changed.
    #[must_use]
    pub fn latest(&self) -> u64 {
        self.latest
    }

    /// Whether anything has happened since the agent was last told what is open.
    #[must_use]
    pub fn has_news(&self) -> bool {
        self.latest > self.told
    }

    /// The claimed and verified items with evidence that is not stale.
    pub fn fresh(&self) -> impl Iterator<Item = &WorkItem> {
        self.fresh.iter().filter_map(|id| self.items.get(id))
    }

    /// A finished call.
    #[must_use]
    pub fn call(&self, action: ActionId) -> Option<&Call> {
        self.calls.get(&action)
    }

    /// The latest finished call that the surface knows by this id. Linear in the calls that are remembered.
    #[must_use]
    pub fn call_named(&self, name: &str) -> Option<ActionId> {
        let named = self.calls.iter().filter(|(_, call)| call.call.as_deref() == Some(name));
        named.max_by_key(|(_, call)| call.outcome).map(|(id, _)| *id)
    }

    /// The latest finished calls, the latest first, at most `limit`. Linear in the calls that are remembered.
    #[must_use]
    pub fn latest_calls(&self, limit: usize) -> Vec<(ActionId, &Call)> {
        let mut calls: Vec<(ActionId, &Call)> = self.calls.iter().map(|(id, call)| (*id, call)).collect();
        calls.sort_unstable_by_key(|(_, call)| std::cmp::Reverse(call.outcome));
        calls.truncate(limit);
        calls
    }

    /// The latest call of a tool that succeeded and began after an event, and its id. Linear in the calls that are
    /// remembered.
    #[must_use]
    pub fn succeeded_since(&self, tool: &str, seq: u64) -> Option<(ActionId, &Call)> {
        let fits = |call: &Call| call.tool.as_deref() == Some(tool) && call.started > seq && call.succeeded();
        let calls = self.calls.iter().filter(|(_, call)| fits(call));
        calls.max_by_key(|(_, call)| call.outcome).map(|(id, call)| (*id, call))
    }

    /// Takes an event into account. Outcomes come by [`Self::ended`], with what is known of the action.
    pub(super) fn follow(&mut self, event: &Event) {
        match &event.body {
            EventBody::Work(record) => self.apply(record, event.seq),
            EventBody::Observed(record) => self.observed(record),
            EventBody::Observation { action: Some(action), .. } => {
                if let (Some(call), Some(content)) =
                    (self.calls.get_mut(action), event.payloads.get("content"))
                {
                    call.content = Some(content.commitment);
                }
            }
            EventBody::Evidence { name, .. } if name == OPEN_TOLD && event.actor == Actor::gate() => {
                self.told = event.seq;
            }
            _ => {}
        }
    }

    fn apply(&mut self, record: &WorkRecord, seq: u64) {
        if record.refused.is_some() {
            return;
        }
        for id in &record.items {
            if let Some(item) = self.items.get_mut(id) {
                let fresh = item.evidence.iter_mut().filter(|evidence| evidence.stale.is_none());
                fresh.for_each(|evidence| evidence.stale = Some(seq));
                self.fresh.remove(id);
            }
        }
        let Some(after) = record.after.as_deref() else { return };
        self.latest = seq;
        let is_next = self.items.len() < WORK_ITEMS_MAX && after.id.0 as usize == self.items.len() + 1;
        if is_next || self.items.contains_key(&after.id) {
            let counts = matches!(after.state, ItemState::Claimed | ItemState::Verified) && !after.buried;
            let is_fresh = counts && after.evidence.iter().any(|evidence| evidence.stale.is_none());
            match is_fresh {
                true => self.fresh.insert(after.id),
                false => self.fresh.remove(&after.id),
            };
            self.items.insert(after.id, after.clone());
        }
    }

    /// An action ended that went ahead.
    pub(super) fn ended(&mut self, id: ActionId, action: &OpenAction, status: OutcomeStatus, seq: u64) {
        if !action.executing || action.tool.is_none() {
            return;
        }
        let call = Call {
            tool: action.tool.clone(),
            call: action.call.clone(),
            action: action.digest,
            started: action.last_event,
            outcome: seq,
            status,
            content: None,
            exit: self.exits.remove(&id),
        };
        self.calls.insert(id, call, CALLS_CITED_MAX);
        self.latest = seq;
    }

    /// How something contained ended.
    fn observed(&mut self, record: &ObservedRecord) {
        let (ObservedWhat::Ended(ended), Some(action)) = (&record.what, record.action) else { return };
        match self.calls.get_mut(&action) {
            Some(call) => call.exit = Some(ended.how.code()),
            None => self.exits.insert(action, ended.how.code(), OPEN_ACTIONS_MAX),
        }
    }
}
