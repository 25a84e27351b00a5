//! What the principals have used up in the windows of their budgets, and what [sequences](past) go by, over all runs.
//!
//! A principal is counted from the first time that a policy asks about it: by then its events of the window are read
//! from the store, once, and from there on each batch that becomes durable is added. A decision costs one look.
//!
//! Two runs that decide at the same time must not both take what is left for one. So what an action would use up is
//! taken while the count is locked, before its verdict is durable, and set right afterwards. Where the count cannot be
//! right, it is too high: a batch that may have been lost stays counted, what was permitted and did not happen is not
//! given back, and a clock that goes back does not fill a budget up again.

pub(crate) mod past;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use portcullis_core::bundle::Bundle;
use portcullis_core::event::{Event, EventBody};
use portcullis_core::fact::{FactAnswer, FactRequest};
use portcullis_core::id::{ActionId, Digest, RunId};
use portcullis_core::limits::{EVENTS_COUNTED_MAX, PRINCIPALS_COUNTED_MAX};
use portcullis_core::policy::Window;
use portcullis_core::state::RunState;
use portcullis_core::time::Timestamp;
use portcullis_core::usage::Used;
use portcullis_ledger::{Ledger, Reader, read_aside};

pub(crate) use self::past::Past;
use self::past::{Noted, OfPrincipal, StoredRun, window_start};
use crate::batch::Batch;
use crate::facts::{Sources, unknown, usage, window_of};

/// Runs of one principal that are read to count it.
const RUNS_COUNTED_MAX: usize = 5_000;
/// Events read at a time.
const PAGE: usize = 1_000;

/// The counts of all principals that were asked about.
#[derive(Debug, Default)]
pub(crate) struct Principals {
    by_id: Mutex<HashMap<String, Arc<Account>>>,
}

/// What is to be known of a principal.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wanted {
    /// What it has used up.
    pub(crate) usage: bool,
    /// What the sequences of this bundle go by.
    pub(crate) past: Option<Arc<Bundle>>,
}

impl Wanted {
    /// Both together.
    #[must_use]
    pub(crate) fn and(self, other: Self) -> Self {
        Self { usage: self.usage || other.usage, past: self.past.or(other.past) }
    }

    /// Nothing.
    pub(crate) fn is_empty(&self) -> bool {
        !self.usage && self.past.is_none()
    }
}

/// The counts of one principal.
#[derive(Debug)]
pub(crate) struct Account {
    counts: Mutex<Counts>,
    past: Mutex<Past>,
    /// Held while the store is read.
    reading: tokio::sync::Mutex<()>,
    /// The store was read for the counts.
    is_complete: AtomicBool,
}

#[derive(Debug, Clone, Copy, Default)]
struct Count {
    start: Timestamp,
    used: Used,
}

/// What a principal has used up in the latest window of each kind.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counts([Count; Window::ALL.len()]);

impl Principals {
    /// Counts a principal from what is stored of it, so that [`Self::counted`] gives its counts from here on.
    ///
    /// # Errors
    /// The reason that the caller is given when they are not available.
    pub(crate) async fn count(
        &self,
        principal: &str,
        at: Timestamp,
        ledger: &Arc<dyn Ledger>,
        (wanted, key): (Wanted, Digest),
    ) -> Result<(), String> {
        // From the moment that it is in the map everything that becomes durable is added to it. So what the store
        // is read for afterwards may be counted twice, but never missed.
        let account = self.account(principal, at, key, PRINCIPALS_COUNTED_MAX)?;
        let _reading = account.reading.lock().await;
        if let Some(bundle) = wanted.past.filter(|bundle| !account.past().is_for(&bundle.sequences)) {
            account.read_past(principal, at, ledger, (bundle, key)).await?;
        }
        if wanted.usage && !account.is_complete.load(Ordering::Acquire) {
            let principal = principal.to_owned();
            let stored = read_aside(ledger, move |reader| Ok(stored(reader, &principal, at))).await;
            let stored = stored.map_err(|error| error.to_string())??;
            account.lock().add(&stored);
            account.is_complete.store(true, Ordering::Release);
        }
        Ok(())
    }

    /// What is known of a principal, if it is all that is wanted.
    pub(crate) fn counted(&self, principal: &str, wanted: &Wanted) -> Option<Arc<Account>> {
        self.get(principal).filter(|account| {
            let used = !wanted.usage || account.is_complete.load(Ordering::Acquire);
            used && wanted.past.as_ref().is_none_or(|bundle| account.past().is_for(&bundle.sequences))
        })
    }

    fn account(
        &self,
        principal: &str,
        at: Timestamp,
        key: Digest,
        limit: usize,
    ) -> Result<Arc<Account>, String> {
        let mut by_id = self.lock();
        if let Some(account) = by_id.get(principal) {
            return Ok(Arc::clone(account));
        }
        if by_id.len() >= limit {
            // A principal that did nothing today can be read again.
            by_id.retain(|_, account| Arc::strong_count(account) > 1 || !account.is_over(at));
        }
        if by_id.len() >= limit {
            return Err(format!("more than {limit} principals acted today, which is the limit"));
        }
        let account = Arc::new(Account::new(key));
        by_id.insert(principal.to_owned(), Arc::clone(&account));
        Ok(account)
    }

    /// The counts of a principal, where it is counted.
    pub(crate) fn get(&self, principal: &str) -> Option<Arc<Account>> {
        self.lock().get(principal).map(Arc::clone)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Account>>> {
        self.by_id.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Account {
    fn new(key: Digest) -> Self {
        let (counts, past) = (Mutex::default(), Mutex::new(Past::new(key)));
        Self { counts, past, reading: tokio::sync::Mutex::default(), is_complete: AtomicBool::new(false) }
    }

    /// What sequences go by. Locked after the counts, where both are.
    pub(crate) fn past(&self) -> MutexGuard<'_, Past> {
        self.past.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether nothing happened for as long as anything looks back.
    fn is_over(&self, at: Timestamp) -> bool {
        self.lock().is_over(at) && self.past().is_over(at)
    }

    async fn read_past(
        &self,
        principal: &str,
        at: Timestamp,
        ledger: &Arc<dyn Ledger>,
        (bundle, key): (Arc<Bundle>, Digest),
    ) -> Result<(), String> {
        self.past().begin(&bundle);
        let principal = principal.to_owned();
        let read = move |reader: &dyn Reader| Ok(stored_past(reader, &principal, at, (&bundle, key)));
        let stored =
            read_aside(ledger, read).await.map_err(|error| error.to_string()).and_then(|stored| stored);
        match stored {
            Ok(stored) => self.past().finish(stored),
            Err(why) => {
                self.past().give_up();
                return Err(why);
            }
        }
        Ok(())
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counts {
    /// Adds what was used up at a time.
    pub(crate) fn charge(&mut self, at: Timestamp, used: Used) {
        for (window, count) in Window::ALL.into_iter().zip(&mut self.0) {
            let start = window.start(at);
            if start > count.start {
                *count = Count { start, used: Used::default() };
            }
            count.used = count.used.plus(used);
        }
    }

    /// Replaces what was charged with what was actually used.
    pub(crate) fn settle(&mut self, at: Timestamp, charged: Used, used: Used) {
        for (window, count) in Window::ALL.into_iter().zip(&mut self.0) {
            if count.start == window.start(at) {
                count.used = count.used.plus(used).minus(charged);
            }
        }
    }

    fn add(&mut self, other: &Self) {
        for (count, other) in self.0.iter_mut().zip(&other.0) {
            *count = match count.start.cmp(&other.start) {
                std::cmp::Ordering::Less => *other,
                std::cmp::Ordering::Equal => Count { used: count.used.plus(other.used), ..*count },
                std::cmp::Ordering::Greater => *count,
            };
        }
    }

    fn is_over(&self, at: Timestamp) -> bool {
        Window::ALL.into_iter().zip(&self.0).all(|(window, count)| count.start < window.start(at))
    }

    fn used(&self, wanted: Window, at: Timestamp) -> Used {
        let mut counts = Window::ALL.into_iter().zip(&self.0);
        let count = counts.find(|(window, count)| *window == wanted && count.start >= window.start(at));
        count.map(|(_, count)| count.used).unwrap_or_default()
    }
}

/// What is known of a principal, locked.
#[derive(Debug)]
pub(crate) struct Counted<'a> {
    pub(crate) counts: &'a Counts,
    pub(crate) past: &'a Past,
}

impl Sources for Counted<'_> {
    fn answer(&self, request: &FactRequest, at: Timestamp) -> FactAnswer {
        window_of(request).map_or_else(|| unknown(request), |window| usage(self.counts.used(window, at)))
    }

    fn of_principal(&self, _: &FactRequest, call: &OfPrincipal<'_>, at: Timestamp) -> FactAnswer {
        self.past.answer(call, at)
    }
}

/// Counting is not possible, and why.
#[derive(Debug)]
pub(crate) struct Uncounted(pub String);

impl Sources for Uncounted {
    fn answer(&self, request: &FactRequest, _: Timestamp) -> FactAnswer {
        match window_of(request) {
            Some(_) => FactAnswer::Failed(self.0.clone()),
            None => unknown(request),
        }
    }

    fn of_principal(&self, _: &FactRequest, _: &OfPrincipal<'_>, _: Timestamp) -> FactAnswer {
        FactAnswer::Failed(self.0.clone())
    }
}

/// The most that a batch about a proposal uses up.
pub(crate) fn at_most(state: &RunState, batch: &Batch) -> Used {
    let mut used = Used::default();
    let mut proposed: Option<(ActionId, bool, u64)> = None;
    for event in &batch.events {
        used.bytes = used.bytes.saturating_add(event.payloads.values().map(|payload| payload.bytes).sum());
        match &event.body {
            EventBody::Proposed(new) => {
                used.steps += 1;
                proposed = Some((new.action, new.side_effecting, new.cost_micros));
            }
            EventBody::Enforcement { action: Some(action), enforced, .. } if enforced.may_happen() => {
                let held = || state.open_action(*action).map(|open| (open.side_effecting, open.cost_micros));
                let new = proposed.filter(|(id, ..)| id == action).map(|(_, side, cost)| (side, cost));
                let (side_effecting, cost) = new.or_else(held).unwrap_or((true, 0));
                used.side_effects += u64::from(side_effecting);
                used.cost_micros = used.cost_micros.saturating_add(cost);
            }
            _ => {}
        }
    }
    used
}

/// What a principal has used up by its stored events.
fn stored(reader: &dyn Reader, principal: &str, at: Timestamp) -> Result<Counts, String> {
    let since = Window::ALL.into_iter().map(|window| window.start(at)).min().unwrap_or(at);
    let mut counts = Counts::default();
    let mut events = 0;
    for run in runs(reader, principal, since)? {
        let mut state = RunState::new();
        each_event(reader, run, since, &mut events, |event| {
            let before = state.used();
            state.apply(event);
            if event.t >= since {
                counts.charge(event.t, state.used().minus(before));
            }
            Ok(())
        })?;
    }
    Ok(counts)
}

/// What sequences over a principal go by, from its stored events.
fn stored_past(
    reader: &dyn Reader,
    principal: &str,
    at: Timestamp,
    (bundle, key): (&Bundle, Digest),
) -> Result<Vec<Noted>, String> {
    let since = window_start(at);
    let (mut noted, mut events) = (Vec::new(), 0);
    for run in runs(reader, principal, since)? {
        let mut stored = StoredRun::new(run, reader, &bundle.sequences, key);
        each_event(reader, run, since, &mut events, |event| {
            noted.extend(stored.note(event)?.filter(|noted| noted.at >= since));
            Ok(())
        })?;
    }
    Ok(noted)
}

/// The runs of a principal in which something happened at `since` or later.
fn runs(reader: &dyn Reader, principal: &str, since: Timestamp) -> Result<Vec<RunId>, String> {
    let runs =
        reader.runs_since(principal, since, RUNS_COUNTED_MAX + 1).map_err(|error| error.to_string())?;
    if runs.len() > RUNS_COUNTED_MAX {
        return Err(format!("it has more than {RUNS_COUNTED_MAX} runs since {since}, which is the limit"));
    }
    Ok(runs)
}

/// The events of a run, of which `events` counts those of all runs together.
fn each_event(
    reader: &dyn Reader,
    run: RunId,
    since: Timestamp,
    events: &mut usize,
    mut see: impl FnMut(&Event) -> Result<(), String>,
) -> Result<(), String> {
    let mut seq = 0;
    loop {
        let page = reader.events(run, seq, PAGE).map_err(|error| error.to_string())?;
        if page.is_empty() {
            return Ok(());
        }
        *events += page.len();
        if *events > EVENTS_COUNTED_MAX {
            return Err(format!(
                "its runs since {since} have more than {EVENTS_COUNTED_MAX} events, which is the limit"
            ));
        }
        for stored in &page {
            let event = Event::from_line(&stored.line).map_err(|_| format!("run {run} cannot be read"))?;
            if event.seq != stored.seq || event.seq <= seq {
                return Err(format!("run {run} cannot be read"));
            }
            seq = event.seq;
            see(&event)?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    const KEY: Digest = Digest::from_bytes([3; 32]);

    fn steps(steps: u64) -> Used {
        Used { steps, ..Used::default() }
    }

    #[test]
    fn counting_starts_anew_with_each_window() {
        let mut counts = Counts::default();
        let (ten, eleven) = (at("2026-05-01T10:59:59.000000Z"), at("2026-05-01T11:00:00.000000Z"));
        counts.charge(ten, steps(3));
        assert_eq!(counts.used(Window::Hour, ten), steps(3));
        assert_eq!(counts.used(Window::Hour, eleven), steps(0), "nothing happened in this hour yet");
        counts.charge(eleven, steps(2));
        assert_eq!(
            (counts.used(Window::Hour, eleven), counts.used(Window::Day, eleven)),
            (steps(2), steps(5))
        );
        // A clock that goes back fills nothing up.
        assert_eq!(counts.used(Window::Hour, ten), steps(2));
        counts.charge(ten, steps(1));
        assert_eq!((counts.used(Window::Hour, eleven), counts.used(Window::Day, ten)), (steps(3), steps(6)));
    }

    #[test]
    fn what_was_charged_is_set_right_in_its_own_window() {
        let mut counts = Counts::default();
        let (before, after) = (at("2026-05-01T23:59:59.999999Z"), at("2026-05-02T00:00:00.000000Z"));
        counts.charge(before, steps(2));
        counts.settle(before, steps(2), steps(1));
        assert_eq!(counts.used(Window::Day, before), steps(1));
        counts.charge(before, steps(2));
        counts.charge(after, steps(7));
        counts.settle(before, steps(2), steps(1));
        assert_eq!(counts.used(Window::Day, after), steps(7));
    }

    #[test]
    fn who_did_nothing_today_makes_room() {
        let principals = Principals::default();
        let (monday, tuesday) = (at("2026-05-04T12:00:00.000000Z"), at("2026-05-05T12:00:00.000000Z"));
        for name in ["ann", "bob"] {
            principals.account(name, monday, KEY, 2).unwrap().lock().charge(monday, steps(1));
        }
        let refused = principals.account("cid", monday, KEY, 2).unwrap_err();
        assert!(refused.contains("more than 2 principals"), "{refused}");
        principals.account("ann", monday, KEY, 2).unwrap().lock().charge(tuesday, steps(1));
        principals.account("cid", tuesday, KEY, 2).unwrap();
        assert!(principals.get("ann").is_some() && principals.get("bob").is_none());
    }
}
