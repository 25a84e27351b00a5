//! What is put before people, where the bundle limits how many questions they get in an hour.
//!
//! A request is put before them when it is made or, if the last hour is full, as soon as there is room. Which requests
//! wait for that follows from the index alone, so that a daemon that starts again goes on in the same order.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use portcullis_core::id::ApprovalId;
use portcullis_core::time::Timestamp;
use portcullis_ledger::{ApprovalFilter, ApprovalRow, ApprovalState, clock};

use super::{Failure, Shared, read};
use crate::api;

const HOUR_MICROS: i64 = 3_600_000_000;

/// The requests that wait to be put before people.
#[derive(Debug, Default)]
pub(super) struct Queue {
    per_hour: u32,
    waiting: BTreeSet<ApprovalId>,
    /// The rule that most of the last hour's requests came from, and how many came from it.
    most: Option<(String, usize)>,
}

impl Queue {
    pub(super) fn holds(&self, approval: ApprovalId) -> bool {
        self.waiting.contains(&approval)
    }

    /// What to tell the operator, if anything waits.
    pub(super) fn told(&self) -> Option<api::QueuedInfo> {
        let (rule, of_rule) = self.most.clone().unzip();
        (!self.waiting.is_empty()).then(|| api::QueuedInfo {
            waiting: self.waiting.len(),
            per_hour: self.per_hour,
            rule,
            of_rule: of_rule.unwrap_or(0),
        })
    }

    /// The queue at a time, from the requests so far in any order.
    fn of(mut rows: Vec<ApprovalRow>, per_hour: u32, now: Timestamp) -> Self {
        rows.sort_by_key(|row| (row.requested, row.approval));
        let mut queue = Self { per_hour, ..Self::default() };
        let mut put: VecDeque<i64> = VecDeque::new();
        let mut by_rule: BTreeMap<String, usize> = BTreeMap::new();
        let room = usize::try_from(per_hour).unwrap_or(usize::MAX);
        for row in rows {
            let requested = row.requested.as_micros();
            if now.as_micros().saturating_sub(requested) < HOUR_MICROS {
                *by_rule.entry(row.rule.clone().unwrap_or_default()).or_default() += 1;
            }
            let full = put.len() >= room;
            let earliest = put.front().filter(|_| full).map_or(requested, |first| first + HOUR_MICROS);
            let at = requested.max(earliest);
            if row.decided.is_some_and(|decided| decided.as_micros() < at) {
                // Decided by its id before its turn, or lapsed.
                continue;
            }
            if at > now.as_micros() {
                if row.state == ApprovalState::Pending {
                    queue.waiting.insert(row.approval);
                }
                continue;
            }
            if full {
                put.pop_front();
            }
            put.push_back(at);
        }
        queue.most = by_rule.into_iter().filter(|(rule, _)| !rule.is_empty()).max_by_key(|(_, count)| *count);
        queue
    }
}

/// The queue of a daemon as it is now. Empty where its bundle sets no limit.
pub(super) async fn now(shared: &Shared) -> Result<Queue, Failure> {
    let bundles = shared.gate.bundles();
    // The daemon's own bundle: what an agent names for its run says nothing about people.
    let own = bundles.known(&bundles.source(None));
    let limit = own.and_then(|bundle| bundle.approvals.questions_per_hour);
    let Some(per_hour) = limit else { return Ok(Queue::default()) };
    let rows = read(shared, |reader| reader.approvals(&ApprovalFilter::default())).await?;
    Ok(Queue::of(rows, per_hour, clock::now()))
}

#[cfg(test)]
mod tests {
    use portcullis_core::id::{ActionId, Digest, RunId};

    use super::*;

    fn row(number: u8, minute: i64, rule: &str) -> ApprovalRow {
        ApprovalRow {
            approval: ApprovalId::from_bytes([number; 16]),
            run: RunId::from_bytes([1; 16]),
            action: Some(ActionId::from_bytes([number; 16])),
            digest: Digest::from_bytes([0; 32]),
            principal: "ida".into(),
            state: ApprovalState::Pending,
            scope: None,
            requested: at(minute),
            decided: None,
            decided_by: None,
            tool: "t".into(),
            policy: "p".into(),
            proposed: None,
            note: None,
            rule: Some(rule.into()),
        }
    }

    fn at(minute: i64) -> Timestamp {
        Timestamp::from_micros(minute * 60_000_000)
    }

    fn waiting(rows: &[ApprovalRow], minute: i64) -> Vec<u8> {
        let queue = Queue::of(rows.to_vec(), 2, at(minute));
        queue.waiting.iter().map(|approval| approval.as_bytes()[0]).collect()
    }

    #[test]
    fn beyond_the_limit_requests_wait_until_the_hour_has_room() {
        let rows = [row(1, 0, "a/b"), row(2, 10, "a/b"), row(3, 11, "c/d"), row(4, 12, "a/b")];
        assert_eq!(waiting(&rows, 12), [3, 4]);
        assert_eq!(waiting(&rows, 59), [3, 4]);
        assert_eq!(waiting(&rows, 60), [4], "the first was put an hour ago");
        assert_eq!(waiting(&rows, 69), [4]);
        assert_eq!(waiting(&rows, 70), [0; 0]);
        let told = Queue::of(rows.to_vec(), 2, at(12)).told().unwrap();
        let expected = api::QueuedInfo { waiting: 2, per_hour: 2, rule: Some("a/b".into()), of_rule: 3 };
        assert_eq!(told, expected);
    }

    #[test]
    fn what_is_decided_before_its_turn_takes_no_room() {
        let refused =
            ApprovalRow { state: ApprovalState::Refused, decided: Some(at(20)), ..row(3, 11, "a/b") };
        let rows = [row(1, 0, "a/b"), row(2, 10, "a/b"), refused, row(4, 12, "a/b")];
        assert_eq!(waiting(&rows, 30), [4]);
        assert_eq!(waiting(&rows, 60), [0; 0]);
        assert!(Queue::of(rows.to_vec(), 9, at(30)).told().is_none());
    }
}
