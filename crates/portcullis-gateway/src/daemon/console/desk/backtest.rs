//! The back-test of a change over the latest recorded runs.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use portcullis_console::outcome::{Backtest, Blast, Group};
use portcullis_core::bundle::Bundle;
use portcullis_core::id::{Digest, RunId};
use portcullis_core::verdict::Verdict;
use portcullis_ledger::{ExportOptions, RunFilter, clock};
use portcullis_sim::backtest::compare;
use portcullis_sim::replay::{Row, Source};
use tokio::sync::Semaphore;

use super::super::Seen;

/// Runs that are looked at, the latest first.
const RUNS_MAX: usize = 200;
/// Events of a run that is still judged: the longest of them would take all of the time.
const EVENTS_MAX: u64 = 5_000;
/// How long it may take: somebody types meanwhile.
const TIME_MAX: Duration = Duration::from_millis(1_500);
/// Results that are remembered: of those who edit at the same time.
const KNOWN_MAX: usize = 16;

/// Old bundle, new bundle, latest run, number of its events.
type Key = (Digest, Digest, Option<RunId>, u64);

/// The latest results.
pub(in super::super) type Known = Mutex<Vec<(Key, Backtest)>>;

/// One at a time: it takes a processor.
pub(in super::super) fn room() -> &'static Semaphore {
    static ROOM: OnceLock<Semaphore> = OnceLock::new();
    ROOM.get_or_init(|| Semaphore::new(1))
}

/// What the new bundle would have said of the latest runs. None where there is no time or no record to say it.
pub(super) async fn over_recorded(seen: &Seen, old: &Arc<Bundle>, new: &Arc<Bundle>) -> Option<Backtest> {
    let _turn = room().acquire().await.ok()?;
    let (gate, old, new) = (Arc::clone(&seen.shared.gate), Arc::clone(old), Arc::clone(new));
    let console = Arc::clone(&seen.console);
    let judged = tokio::task::spawn_blocking(move || {
        let began = Instant::now();
        let latest = RunFilter { limit: Some(RUNS_MAX), ..RunFilter::default() };
        let runs = gate.ledger().read(|reader| reader.runs(&latest)).ok()?;
        let first = runs.first();
        let key = (old.digest(), new.digest(), first.map(|run| run.run), first.map_or(0, |run| run.events));
        let known = |known: &Known| {
            let all = known.lock().unwrap_or_else(PoisonError::into_inner);
            all.iter().find(|(at, _)| *at == key).map(|(_, found)| found.clone())
        };
        if let Some(found) = known(&console.backtests) {
            return Some(found);
        }
        let mut sums = Sums::default();
        for run in runs.iter().filter(|run| run.events > 0) {
            if began.elapsed() > TIME_MAX {
                sums.found.cut = true;
                break;
            }
            if run.events > EVENTS_MAX {
                sums.found.too_long += 1;
                continue;
            }
            let mut bytes = Vec::new();
            let exported = gate
                .ledger()
                .read(|reader| reader.export_run(run.run, &mut bytes, ExportOptions { payloads: true }));
            let compared = exported
                .ok()
                .and_then(|_| compare(&Source::memory(bytes), [&old, &new], gate.pipeline(), None).ok());
            let Some(compared) = compared else {
                sums.found.unreadable += 1;
                continue;
            };
            if compared.calls == 0 && compared.unmatched == 0 {
                continue;
            }
            sums.found.runs += 1;
            sums.found.calls += compared.calls;
            sums.found.unmatched += compared.unmatched;
            sums.found.since = Some(run.opened);
            sums.found.runs_changed += usize::from(!compared.changes.is_empty());
            compared.changes.into_iter().for_each(|(old, new)| sums.add(run.run, old, new));
        }
        let found = sums.done(began.elapsed());
        if !found.cut {
            let mut all = console.backtests.lock().unwrap_or_else(PoisonError::into_inner);
            all.push((key, found.clone()));
            let surplus = all.len().saturating_sub(KNOWN_MAX);
            all.drain(..surplus);
        }
        Some(found)
    });
    judged.await.ok().flatten()
}

#[derive(Default)]
struct Sums {
    found: Backtest,
    groups: BTreeMap<(Option<String>, Verdict, Verdict, Option<String>), Group>,
}

impl Sums {
    fn add(&mut self, run: RunId, old: Row, new: Row) {
        let key = (old.tool.clone(), old.verdict, new.verdict, new.rule.clone());
        let group = self.groups.entry(key).or_insert_with(|| Group {
            calls: 0,
            blast: Blast::of(old.verdict, new.verdict),
            old: old.verdict,
            new: new.verdict,
            rule: new.rule.or(old.rule).unwrap_or_default(),
            message: new.message.or(old.message).unwrap_or_default(),
            tool: old.tool.unwrap_or_else(|| "a thinking step".to_owned()),
            run: run.to_string(),
            event: old.seq.unwrap_or(1),
        });
        group.calls += 1;
    }

    fn done(mut self, took: Duration) -> Backtest {
        self.found.groups = self.groups.into_values().collect();
        // What is let pass that was not is the first thing to look at.
        self.found.groups.sort_by_key(|group| (group.blast, std::cmp::Reverse(group.calls)));
        self.found.took_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        self.found.now = Some(clock::now());
        self.found
    }
}
