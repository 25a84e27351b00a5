//! How fast a list of runs is: `cargo bench -p portcullis-ledger --bench lists`. Writes a store of 100,000 runs (600 MiB),
//! prints how long pages of them take from summaries, as the daemon lists them, and from events, as it did before there
//! were summaries; then how long the summaries of all of them take where an earlier release wrote the store.
#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark prints, and stops when it cannot run"
)]

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use portcullis_core::event::{
    Actor, ClosedState, EVENT_VERSION, Enforced, Event, EventBody, Mode, OutcomeStatus, Proposed, RunOpened,
    VerdictRecord,
};
use portcullis_core::id::{ActionId, Digest, RunId, SegmentId};
use portcullis_core::principal::Principal;
use portcullis_core::state::RunState;
use portcullis_core::time::Timestamp;
use portcullis_core::verdict::Verdict;
use portcullis_ledger::{
    Append, ChainedLine, NewSegment, OpenOptions, RunFilter, SqliteLedger, SqliteReader,
};

/// Runs of the store.
const RUNS: i64 = 100_000;
const BUNDLE: Digest = Digest::from_bytes([7; 32]);

fn main() {
    let base = std::env::var_os("PORTCULLIS_BENCH_DIR").unwrap_or_else(|| env!("CARGO_TARGET_TMPDIR").into());
    let folder = tempfile::tempdir_in(base).unwrap();
    one_run(folder.path());
    multiply(folder.path());
    let ledger = SqliteLedger::open(folder.path(), OpenOptions::default()).unwrap();
    println!("{:<28} {:>14} {:>14}", "page", "from summaries", "from events");
    for (of, page) in [("all", 20), ("all", 100), ("all", 1_000), ("alice", 1_000), ("bob", 1_000)] {
        let principal = (of != "all").then(|| of.to_owned());
        let filter = RunFilter { principal, limit: Some(page), ..RunFilter::default() };
        let (list, listed) = timed(|| ledger.read(|reader| reader.runs(&filter)).unwrap());
        assert!(listed.len() == page && listed.iter().all(|run| run.progress.is_some()));
        let folded =
            |reader: &SqliteReader| listed.iter().try_for_each(|run| reader.progress(run.run).map(drop));
        let (fold, ()) = timed(|| ledger.read(folded).unwrap());
        println!("{:<28} {list:>14.2?} {fold:>14.2?}", format!("{page} runs of {of}"));
    }
    let pages = RunFilter { limit: Some(100), ..RunFilter::default() };
    let whole = ledger.read(|reader| reader.runs(&pages)).unwrap();
    drop(ledger);
    as_of_an_earlier_release(folder.path());
    let start = Instant::now();
    let ledger = SqliteLedger::open(folder.path(), OpenOptions::default()).unwrap();
    let opened = start.elapsed();
    while ledger.summaries_due().unwrap() > 0 {
        std::thread::sleep(Duration::from_millis(50));
    }
    println!("opened in {opened:.2?}; all summaries were computed after {:.1?}", start.elapsed());
    assert_eq!(ledger.read(|reader| reader.runs(&pages)).unwrap(), whole);
}

/// A closed run of three actions.
fn one_run(folder: &Path) {
    let ledger = SqliteLedger::open(folder, OpenOptions::default()).unwrap();
    let new = NewSegment {
        run: RunId::from_bytes([1; 16]),
        segment: SegmentId::from_bytes([1; 16]),
        principal: "alice".to_owned(),
        session_key: None,
        opened: Timestamp::default(),
    };
    let mut head = ledger.open_segment_blocking(new).unwrap().head;
    let mut bodies = vec![EventBody::RunOpened(RunOpened {
        principal: Principal::named("alice"),
        surface: "bench".to_owned(),
        session: None,
        policy: "bench".to_owned(),
        bundle: BUNDLE,
        configuration: None,
        mode: Mode::Enforce,
        place: None,
        parent: None,
    })];
    bodies.extend((1..=3).flat_map(action));
    let count = bodies.len() as u64 + 1;
    bodies.push(EventBody::RunClosed { state: ClosedState::Closed, count, successor: None });
    let (mut append, mut state) = (Append::default(), RunState::new());
    for body in bodies {
        let event = Event {
            v: EVENT_VERSION,
            seq: head.count + 1,
            t: Timestamp::default(),
            actor: Actor::gate(),
            cause: None,
            payloads: BTreeMap::new(),
            body,
        };
        let line = ChainedLine::new(head, &event).unwrap();
        head = line.head();
        state.apply(&event);
        append.events.push(line);
    }
    append.progress = state.progress();
    ledger.append_blocking(append).unwrap();
}

/// What is recorded of an action that goes ahead.
fn action(step: u8) -> [EventBody; 4] {
    let action = ActionId::from_bytes([step; 16]);
    [
        EventBody::Proposed(Proposed {
            action,
            step: step.into(),
            tool: Some("write_file".to_owned()),
            server: None,
            side_effecting: true,
            likeness: None,
            cost_micros: 0,
            digest: BUNDLE,
            directory: None,
            call: None,
            confidence: None,
        }),
        EventBody::Verdict(VerdictRecord {
            action: Some(action),
            verdict: Verdict::Allow,
            policy_action: Verdict::Allow.policy_action(),
            escalation: Verdict::Allow.escalation(),
            rule: None,
            reason: None,
            findings: Vec::new(),
            bundle: BUNDLE,
            policy: "bench".to_owned(),
            facts: Vec::new(),
            grant: None,
            marks: Vec::new(),
        }),
        EventBody::Enforcement {
            action: Some(action),
            enforced: Enforced::Executed,
            call: None,
            contained: None,
        },
        EventBody::Outcome { action, status: OutcomeStatus::Ok },
    ]
}

/// Takes away what version 4 of the tables added, so that the store is migrated when it is opened.
fn as_of_an_earlier_release(folder: &Path) {
    let database = rusqlite::Connection::open(folder.join("ledger.db")).unwrap();
    let earlier = "DROP TABLE summaries;
        DROP INDEX runs_by_principal;
        DROP TABLE approvals;
        DROP TABLE freezes;
        CREATE TABLE approvals (approval BLOB PRIMARY KEY, run INTEGER, action BLOB, digest BLOB, principal TEXT,
            state TEXT, scope TEXT, requested INTEGER, decided INTEGER, decided_by TEXT, detail TEXT);
        PRAGMA user_version = 3;";
    database.execute_batch(earlier).unwrap();
}

/// The median of 21 times, and what came of it.
fn timed<T>(mut work: impl FnMut() -> T) -> (Duration, T) {
    let mut result = work();
    let mut times: Vec<Duration> = (0..21)
        .map(|_| {
            let start = Instant::now();
            result = work();
            start.elapsed()
        })
        .collect();
    times.sort_unstable();
    (times.get(times.len() / 2).copied().unwrap_or_default(), result)
}

/// Copies the one run of a store until there are [`RUNS`], every tenth of another principal. Their links are those of
/// the first, which lists do not look at.
fn multiply(folder: &Path) {
    let database = rusqlite::Connection::open(folder.join("ledger.db")).unwrap();
    database.pragma_update(None, "foreign_keys", false).unwrap();
    let copies =
        format!("WITH RECURSIVE copy (n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM copy WHERE n < {RUNS})");
    let of_summary =
        "events, last_event, pending_approvals, surface, policy, bundle, mode, phase, steps, side_effects,
        allowed, warned, modified, clarified, paused, reviewed, denied, halted";
    database
        .execute_batch(&format!(
            "BEGIN;
             INSERT INTO runs {copies} SELECT n, randomblob(16), CASE n % 10 WHEN 0 THEN 'bob' ELSE principal END,
                 session_key, opened + n FROM copy, runs WHERE number = 1;
             INSERT INTO segments {copies} SELECT n, randomblob(16), n, writer, ordinal, after, NULL, NULL, first_link,
                 state, opened FROM copy, segments WHERE number = 1;
             INSERT INTO events {copies} SELECT n << 32 | (key & 4294967295), n, kind, action, t, link, line
                 FROM copy, events WHERE key < 2 << 32;
             INSERT INTO summaries (run, {of_summary}) {copies} SELECT n, {of_summary} FROM copy, summaries
                 WHERE run = 1;
             COMMIT;"
        ))
        .unwrap();
}
