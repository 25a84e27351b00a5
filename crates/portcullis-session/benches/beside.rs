//! Decisions under many sequences, to be put beside those of another engine: `cargo xtask dogwood`.
//!
//! `cargo bench -p portcullis-session --bench beside -- N` prints one line of JSON for N sequences. Each denies `read` after
//! one of ten kinds of login to the same server; windows differ, so that no two rules are the same. The workload is that of
//! `peers/dogwood/src/main.rs`, and verdicts of the past are printed so that they can be compared.
//!
//! *In memory* is the whole of a proposal: effects, all guards, digests, events, payload commitments and state. *Durable* is
//! that, written to the store and flushed, when the permit is there.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark stops when it cannot run, and prints"
)]

use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use portcullis_core::event::OutcomeStatus;
use portcullis_core::principal::{CredentialKind, Principal};
use portcullis_ledger::{OpenOptions, SqliteLedger};
use portcullis_session::bundles::Bundles;
use portcullis_session::credentials::Identity;
use portcullis_session::dry::DryRun;
use portcullis_session::engine::{Proposal, Reach};
use portcullis_session::gate::{Gate, RunRequest};
use portcullis_session::policy;
use serde_json::json;

/// Calls before the first that is timed.
const PAST: usize = 200;
/// One call in so many is a login, and logins are of so many kinds.
const LOGIN_EVERY: usize = 5;
const LOGINS: usize = 10;
/// Not a multiple of [`LOGIN_EVERY`], so that some reads are of servers with a login.
const SERVERS: usize = 49;
/// Decisions that are timed, and for how long at most.
const TIMED: usize = 400;
const TIME: Duration = Duration::from_secs(20);

fn files(count: usize) -> BTreeMap<String, Vec<u8>> {
    let tool =
        |name: &str| format!("[[tool]]\nname = '{name}'\ntype = 'RETRIEVE_DOCS'\nside_effecting = false\n");
    let logins = (0..LOGINS).map(|kind| format!("login-{kind}"));
    let tools: String = logins.clone().chain(["read".to_owned()]).map(|name| tool(&name)).collect();
    let marks =
        logins.map(|name| format!("[[mark]]\nname = '{name}'\ntools = ['{name}']\nkey = '/server'\n"));
    let rules = (0..count).map(|number| {
        let (kind, seconds) = (number % LOGINS, 3_600 + number / LOGINS);
        let of = format!("after = 'login-{kind}'\nwithin = '{seconds}s'\nsame = '/server'\n");
        format!("[[sequence]]\nid = 'r{number}'\ntools = ['read']\n{of}")
    });
    let policy = "[[policy]]\nname = 'p'\nallowed_types = ['RETRIEVE_DOCS']\nmax_steps = 100000\nmax_side_effects = 0\n";
    let files = [
        // Calls that are alike, and denials, are what this is about.
        ("portcullis.toml", "version = 1\n[loops]\nalike = 0\ndenials = 0\n".to_owned()),
        ("tools/t.toml", tools),
        ("policies/p.toml", policy.to_owned()),
        ("sequences/s.toml", marks.chain(rules).collect()),
    ];
    files.into_iter().map(|(path, text)| (path.to_owned(), text.into_bytes())).collect()
}

fn call(tool: &str, server: &str, number: usize) -> Proposal {
    let arguments = json!({"server": server, "document": format!("document {number}")});
    Proposal { tool: Some(tool.to_owned()), arguments, planned: None, ..Proposal::default() }
}

fn past(number: usize) -> Proposal {
    let server = format!("s{}", number % SERVERS);
    match number % LOGIN_EVERY {
        0 => call(&format!("login-{}", number / LOGIN_EVERY % LOGINS), &server, number),
        _ => call("read", &server, number),
    }
}

fn timed(mut decide: impl FnMut(Proposal) -> (bool, Duration)) -> serde_json::Value {
    let (begin, mut times) = (Instant::now(), Vec::new());
    while times.len() < TIMED && begin.elapsed() < TIME {
        let (allowed, time) = decide(call("read", "quiet", PAST + times.len()));
        assert!(allowed, "a read that should be allowed was denied");
        times.push(time);
    }
    percentiles(times)
}

fn percentiles(mut times: Vec<Duration>) -> serde_json::Value {
    times.sort();
    let at = |share: usize| times.get(times.len() * share / 100).map_or(0, Duration::as_nanos) as u64;
    json!({"p50_ns": at(50), "p90_ns": at(90), "count": times.len()})
}

fn letter((allowed, _): (bool, Duration)) -> char {
    if allowed { 'a' } else { 'd' }
}

fn in_memory(count: usize) -> (String, serde_json::Value) {
    let bundle = Arc::new(policy::load(&files(count)).unwrap());
    let mut run = DryRun::open(bundle, Arc::new(policy::pipeline()), "p").unwrap();
    let mut decide = |proposal| {
        let begin = Instant::now();
        let judged = run.propose(proposal);
        let time = begin.elapsed();
        let allowed = judged.decision.verdict.permits();
        if allowed {
            run.outcome(judged.action.id, OutcomeStatus::Ok, None);
        }
        (allowed, time)
    };
    let verdicts = (0..PAST).map(|number| letter(decide(past(number)))).collect();
    (verdicts, timed(decide))
}

fn durable(count: usize, folder: &std::path::Path) -> (String, serde_json::Value) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let ledger = SqliteLedger::open(&folder.join("ledger"), OpenOptions::default()).unwrap();
    let bundles = Bundles::new(None, &files(count)).unwrap();
    let gate = Gate::new(Arc::new(ledger), Arc::new(policy::pipeline()), bundles);
    let identity = Identity {
        kind: CredentialKind::Agent,
        principal: Principal::named("ann"),
        policy: None,
        of_this_machine: true,
    };
    let opened = runtime.block_on(gate.open(RunRequest::new(identity, "bench"))).unwrap();
    let decide = |proposal| {
        let begin = Instant::now();
        let judged = runtime.block_on(gate.propose(&opened.run, proposal, Duration::ZERO)).unwrap();
        let time = begin.elapsed();
        let allowed = judged.1.is_some();
        if let Some(permit) = judged.1 {
            let done = opened.run.outcome(permit.action(), OutcomeStatus::Ok, None, Reach::Replace);
            runtime.block_on(done).unwrap();
        }
        (allowed, time)
    };
    let verdicts = (0..PAST).map(|number| letter(decide(past(number)))).collect();
    let times = timed(decide);
    runtime.block_on(gate.close_all());
    (verdicts, times)
}

/// What the disk takes for 4 KiB, appended and flushed.
fn flush(folder: &std::path::Path) -> serde_json::Value {
    let mut file = std::fs::File::create(folder.join("flush")).unwrap();
    let times = (0..TIMED).map(|_| {
        let begin = Instant::now();
        file.write_all(&[7; 4 << 10]).unwrap();
        file.sync_data().unwrap();
        begin.elapsed()
    });
    percentiles(times.collect())
}

fn main() {
    // Cargo adds `--bench` behind what it is told.
    let Some(count) = std::env::args().skip(1).find_map(|argument| argument.parse().ok()) else { return };
    let folder = tempfile::tempdir().unwrap();
    let (verdicts, memory) = in_memory(count);
    let (again, disk) = durable(count, folder.path());
    assert_eq!(verdicts, again);
    let fdatasync = flush(folder.path());
    let line = json!({
        "policies": count, "verdicts": verdicts, "memory": memory, "durable": disk, "fdatasync": fdatasync,
    });
    println!("{line}");
}
