//! What is put before people, where the bundle limits how many questions they get in an hour.
//!
//! A request is put before them when it is made or, if the last hour is full, as soon as there is room. Which requests
//! wait for that follows from the index alone, so that a daemon that starts again goes on in the same order. What is
//! settled is kept between looks, so that one costs as much as the last hour and what waits, however much is stored.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Mutex, PoisonError};

use portcullis_core::id::ApprovalId;
use portcullis_core::time::Timestamp;
use portcullis_ledger::{ApprovalFilter, ApprovalRow, ApprovalState, clock};

use super::{Failure, Shared, read};
use crate::api;

const HOUR_MICROS: i64 = 3_600_000_000;
/// How long a request may take from its time to the index.
const LATE_MICROS: i64 = 60_000_000;

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
}

/// What is settled of the queue.
#[derive(Debug, Default)]
pub(in super::super) struct Settled(Mutex<Past>);

#[derive(Debug, Default)]
struct Past {
    per_hour: u32,
    /// When requests were put before people, as far as that leaves less room now.
    put: VecDeque<i64>,
    /// Those of the requests since `from` that were put before people or decided before that, with the time of each.
    known: BTreeMap<ApprovalId, i64>,
    /// The time of the first request that the next look needs, or none before the first look.
    from: Option<i64>,
}

impl Past {
    /// The time of the first request that a look needs, where there was one under the same limit.
    fn from(&mut self, per_hour: u32) -> Option<i64> {
        if self.per_hour != per_hour {
            *self = Self { per_hour, ..Self::default() };
        }
        self.from
    }

    /// The queue at a time, from the requests since `from` in any order.
    fn look(&mut self, mut rows: Vec<ApprovalRow>, now: i64) -> Queue {
        rows.sort_by_key(|row| (row.requested, row.approval));
        let mut queue = Queue { per_hour: self.per_hour, ..Queue::default() };
        let mut by_rule: BTreeMap<String, usize> = BTreeMap::new();
        let mut from = now - HOUR_MICROS;
        for row in rows {
            let requested = row.requested.as_micros();
            if now.saturating_sub(requested) < HOUR_MICROS {
                *by_rule.entry(row.rule.clone().unwrap_or_default()).or_default() += 1;
            }
            if self.known.contains_key(&row.approval) {
                continue;
            }
            if self.settle(&row, now) {
                self.known.insert(row.approval, requested);
            } else {
                from = from.min(requested);
                queue.waiting.insert(row.approval);
            }
        }
        let from = from - LATE_MICROS;
        self.known.retain(|_, requested| *requested >= from);
        self.from = Some(from);
        queue.most = by_rule.into_iter().filter(|(rule, _)| !rule.is_empty()).max_by_key(|(_, count)| *count);
        queue
    }

    /// Puts the next request before people if there is room; whether it is no longer of the queue.
    fn settle(&mut self, row: &ApprovalRow, now: i64) -> bool {
        let requested = row.requested.as_micros();
        let full = self.put.len() >= usize::try_from(self.per_hour).unwrap_or(usize::MAX);
        let earliest = self.put.front().filter(|_| full).map_or(requested, |first| first + HOUR_MICROS);
        let at = requested.max(earliest);
        if row.decided.is_some_and(|decided| decided.as_micros() < at) {
            // Decided by its id before its turn, or lapsed.
            return true;
        }
        if at > now {
            return row.state != ApprovalState::Pending;
        }
        if full {
            self.put.pop_front();
        }
        self.put.push_back(at);
        true
    }
}

/// The queue of a daemon as it is now. Empty where its bundle sets no limit.
pub(super) async fn now(shared: &Shared) -> Result<Queue, Failure> {
    let bundles = shared.gate.bundles();
    // The daemon's own bundle: what an agent names for its run says nothing about people.
    let Some(own) = bundles.known(&bundles.source(None)) else { return Ok(Queue::default()) };
    let Some(per_hour) = own.approvals.questions_per_hour else { return Ok(Queue::default()) };
    let past = || shared.queue.0.lock().unwrap_or_else(PoisonError::into_inner);
    // Before the first look: what is older has lapsed, and was put before people more than an hour ago.
    let lasts = i64::from(own.approvals.request_ttl_s).saturating_mul(1_000_000).saturating_add(HOUR_MICROS);
    let from = past().from(per_hour).unwrap_or_else(|| clock::now().as_micros().saturating_sub(lasts));
    let filter =
        ApprovalFilter { requested_since: Some(Timestamp::from_micros(from)), ..ApprovalFilter::default() };
    let rows = read(shared, move |reader| reader.approvals(&filter)).await?;
    let queue = past().look(rows, clock::now().as_micros());
    Ok(queue)
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

    fn look(past: &mut Past, rows: &[ApprovalRow], minute: i64) -> Queue {
        past.look(rows.to_vec(), at(minute).as_micros())
    }

    fn waiting(rows: &[ApprovalRow], minute: i64) -> Vec<u8> {
        let queue = look(&mut Past { per_hour: 2, ..Past::default() }, rows, minute);
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
        let told = look(&mut Past { per_hour: 2, ..Past::default() }, &rows, 12).told().unwrap();
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
        assert!(look(&mut Past { per_hour: 9, ..Past::default() }, &rows, 30).told().is_none());
    }

    /// However often it is looked at, and although each look gets only what it asks for, the queue is the same.
    #[test]
    fn looks_that_follow_each_other_find_what_a_first_one_finds() {
        let mut rows: Vec<ApprovalRow> =
            (0..120).map(|number| row(number, i64::from(number) * 3, "a/b")).collect();
        let mut past = Past { per_hour: 10, ..Past::default() };
        let mut longest = 0;
        for minute in 0..500 {
            if let Some(row) = rows.get_mut(usize::try_from(minute / 4).unwrap()).filter(|_| minute % 7 == 0)
            {
                row.state = ApprovalState::Granted;
                row.decided = Some(at(minute));
            }
            let made: Vec<_> = rows.iter().filter(|row| row.requested <= at(minute)).cloned().collect();
            let needed = |row: &&ApprovalRow| past.from.is_none_or(|from| row.requested.as_micros() >= from);
            let asked: Vec<_> = made.iter().filter(needed).cloned().collect();
            longest = longest.max(asked.len());
            let first = look(&mut Past { per_hour: 10, ..Past::default() }, &made, minute).waiting;
            assert_eq!(look(&mut past, &asked, minute).waiting, first, "minute {minute}");
        }
        assert!(longest < 100, "{longest}");
    }
}
