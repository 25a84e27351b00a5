//! What was decided lately, counted as it is recorded: in memory, for the overview alone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hdrhistogram::Histogram;
use portcullis_console::chart::Stretch;
use portcullis_core::event::{Event, EventBody};
use portcullis_core::id::RunId;
use portcullis_core::time::Timestamp;
use portcullis_core::verdict::Verdict;
use portcullis_ledger::clock;
use portcullis_session::observers::Observer;

/// Minutes that are kept: a day.
pub(in super::super) const MINUTES: i64 = 1_440;
/// Rules whose denials are counted one by one; the others are counted together.
const RULES_MAX: usize = 512;
/// Where those go.
const OTHER_RULES: &str = "others";
/// The rule whose denials are counted by policy and tool.
const TYPE_RULE: &str = "runtime-policy/tool-type";
/// Rules that are remembered as having found something.
const FIRED_MAX: usize = 4_096;
/// Pairs of a policy and a tool that are counted.
const TYPES_MAX: usize = 512;
/// Runs whose policy is remembered.
const POLICIES_MAX: usize = 4_096;
const MICROS_PER_MINUTE: i64 = 60_000_000;
/// The longest time that is told apart, in microseconds.
const TOOK_MAX: u64 = 60_000_000;

/// Decisions of the last day, or since the daemon began.
#[derive(Debug)]
pub(in super::super) struct Tally(Mutex<Counted>);

#[derive(Debug)]
struct Counted {
    since: Timestamp,
    minutes: BTreeMap<i64, Stretch>,
    /// Denials by minute and rule.
    denials: BTreeMap<i64, BTreeMap<String, u64>>,
    rules: BTreeMap<String, u64>,
    took: Option<Histogram<u64>>,
    /// Denials for the type of the tool, by policy and tool.
    types: BTreeMap<(String, String), u64>,
    /// Rules of findings that there were.
    fired: BTreeSet<String>,
    /// The policy of runs that were opened lately.
    policies: BTreeMap<RunId, String>,
}

impl Default for Tally {
    fn default() -> Self {
        Self(Mutex::new(Counted {
            since: clock::now(),
            minutes: BTreeMap::new(),
            denials: BTreeMap::new(),
            rules: BTreeMap::new(),
            took: Histogram::new_with_bounds(1, TOOK_MAX, 2).ok(),
            types: BTreeMap::new(),
            fired: BTreeSet::new(),
            policies: BTreeMap::new(),
        }))
    }
}

/// What the overview shows of it.
#[derive(Debug, Default)]
pub(super) struct Figures {
    pub(super) since: Timestamp,
    pub(super) stretches: Vec<Stretch>,
    pub(super) last_minute: u64,
    pub(super) decisions: u64,
    pub(super) denied: u64,
    pub(super) denials: Vec<(String, u64)>,
    pub(super) took_ms: Option<(f64, f64)>,
}

impl Tally {
    fn lock(&self) -> MutexGuard<'_, Counted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes how long a decision took until it was durable.
    pub(in super::super) fn took(&self, took: Duration) {
        if let Some(histogram) = &mut self.lock().took {
            let micros = u64::try_from(took.as_micros()).unwrap_or(TOOK_MAX).clamp(1, TOOK_MAX);
            // Within its bounds it always fits.
            let _ = histogram.record(micros);
        }
    }

    /// Decisions that are counted.
    pub(super) fn decisions(&self) -> u64 {
        self.lock().minutes.values().map(|one| u64::from(one.all())).sum()
    }

    /// Rules that found something since the daemon began.
    pub(super) fn fired(&self) -> BTreeSet<String> {
        self.lock().fired.clone()
    }

    /// Denials for the type of the tool since the daemon began, by policy and tool.
    pub(super) fn type_denials(&self) -> Vec<((String, String), u64)> {
        self.lock().types.iter().map(|(key, count)| (key.clone(), *count)).collect()
    }

    /// The last day in stretches of `each` minutes, and the figures.
    pub(super) fn figures(&self, now: Timestamp, each: i64) -> Figures {
        let minute = now.as_micros().div_euclid(MICROS_PER_MINUTE);
        let mut counted = self.lock();
        counted.forget(minute);
        let first = minute - MINUTES + 1;
        let stretches = (0..MINUTES / each).map(|place| {
            let from = first + place * each;
            let of = counted.minutes.range(from..from + each);
            of.fold(Stretch::default(), |sum, (_, one)| Stretch {
                ahead: sum.ahead + one.ahead,
                held: sum.held + one.held,
                denied: sum.denied + one.denied,
            })
        });
        let stretches: Vec<Stretch> = stretches.collect();
        let sum = |of: fn(&Stretch) -> u32| stretches.iter().map(|one| u64::from(of(one))).sum();
        let mut denials: Vec<(String, u64)> =
            counted.rules.iter().map(|(rule, count)| (rule.clone(), *count)).collect();
        denials.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let took = counted.took.as_ref().filter(|took| !took.is_empty());
        #[expect(clippy::cast_precision_loss, reason = "microseconds of at most a minute")]
        let ms = |micros: u64| micros as f64 / 1_000.0;
        Figures {
            since: counted.since,
            last_minute: counted.minutes.get(&(minute - 1)).map_or(0, |one| one.all().into()),
            decisions: sum(|one| one.all()),
            denied: sum(|one| one.denied),
            denials,
            took_ms: took.map(|took| (ms(took.value_at_quantile(0.5)), ms(took.value_at_quantile(0.99)))),
            stretches,
        }
    }
}

impl Counted {
    /// Counts what was denied for its type. Of a run that was opened before the daemon began, the policy is not known.
    fn add_types(&mut self, run: RunId, events: &[Event]) {
        let mut tool = None;
        for event in events {
            if let EventBody::Verdict(record) = &event.body
                && self.fired.len() < FIRED_MAX
            {
                for finding in record.findings.iter() {
                    let rule = finding.rule.to_string();
                    self.fired.insert(rule);
                }
            }
            match &event.body {
                EventBody::RunOpened(opened) => {
                    if self.policies.len() >= POLICIES_MAX {
                        self.policies.pop_first();
                    }
                    self.policies.insert(run, opened.policy.clone());
                }
                EventBody::Proposed(proposed) => tool.clone_from(&proposed.tool),
                EventBody::Verdict(record) if record.rule.as_deref() == Some(TYPE_RULE) => {
                    let policy = self.policies.get(&run).cloned();
                    let Some(key) = policy.zip(tool.clone()) else { continue };
                    if self.types.len() < TYPES_MAX || self.types.contains_key(&key) {
                        *self.types.entry(key).or_default() += 1;
                    }
                }
                _ => {}
            }
        }
    }

    fn add(&mut self, at: Timestamp, verdict: Verdict, rule: Option<&str>) {
        let minute = at.as_micros().div_euclid(MICROS_PER_MINUTE);
        let stretch = self.minutes.entry(minute).or_default();
        match verdict {
            Verdict::Allow | Verdict::Warn | Verdict::Modify => stretch.ahead += 1,
            Verdict::Clarify | Verdict::Pause | Verdict::Review => stretch.held += 1,
            Verdict::Deny | Verdict::Halt => {
                stretch.denied += 1;
                let rule = rule.unwrap_or("unknown");
                let known = self.rules.len() < RULES_MAX || self.rules.contains_key(rule);
                let rule = if known { rule } else { OTHER_RULES };
                *self.rules.entry(rule.to_owned()).or_default() += 1;
                *self.denials.entry(minute).or_default().entry(rule.to_owned()).or_default() += 1;
            }
        }
        if self.minutes.len() > usize::try_from(MINUTES).unwrap_or(usize::MAX) {
            self.forget(minute);
        }
    }

    /// Forgets what is older than a day.
    fn forget(&mut self, minute: i64) {
        let first = minute - MINUTES + 1;
        self.minutes = self.minutes.split_off(&first);
        let kept = self.denials.split_off(&first);
        for (rule, count) in std::mem::replace(&mut self.denials, kept).into_values().flatten() {
            let left = self.rules.get(&rule).map_or(0, |all| all.saturating_sub(count));
            match left {
                0 => drop(self.rules.remove(&rule)),
                left => drop(self.rules.insert(rule, left)),
            }
        }
    }
}

/// Sees what is recorded.
#[derive(Debug)]
pub(in super::super) struct TallyObserver(pub(in super::super) Arc<Tally>);

impl Observer for TallyObserver {
    fn committed(&mut self, run: RunId, events: &[Event]) {
        let mut counted = self.0.lock();
        counted.add_types(run, events);
        for event in events {
            if let EventBody::Verdict(record) = &event.body {
                counted.add(event.t, record.verdict, record.rule.as_deref());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_counted_and_no_more() {
        let tally = Tally::default();
        let at = |minute: i64| Timestamp::from_micros(minute * MICROS_PER_MINUTE + 1);
        tally.lock().add(at(100), Verdict::Deny, Some("a/b"));
        tally.lock().add(at(1_000), Verdict::Deny, Some("a/b"));
        tally.lock().add(at(1_000), Verdict::Warn, None);
        tally.lock().add(at(1_000), Verdict::Review, None);
        tally.took(Duration::from_millis(2));
        let figures = tally.figures(at(1_001), 10);
        assert_eq!((figures.decisions, figures.denied, figures.last_minute), (4, 2, 3));
        assert_eq!(figures.denials, [("a/b".to_owned(), 2)]);
        assert_eq!(figures.stretches.len(), 144);
        assert!(figures.took_ms.is_some_and(|(half, _)| (1.9..2.1).contains(&half)), "{:?}", figures.took_ms);
        let figures = tally.figures(at(100 + MINUTES), 10);
        assert_eq!((figures.decisions, figures.denials), (3, vec![("a/b".to_owned(), 1)]));
        assert_eq!(tally.figures(at(9_999), 10).decisions, 0);
    }
}
