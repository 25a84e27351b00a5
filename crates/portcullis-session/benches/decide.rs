//! The pure decision and a whole step in memory: `cargo bench -p portcullis-session`.
//!
//! `portcullis bench decide|step` measures the same calls one by one and shows the distribution; this is for
//! comparing a change with what was before it.
#![expect(clippy::unwrap_used, reason = "a benchmark stops when it cannot run")]

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use portcullis_core::action::{Action, Pending, Subject};
use portcullis_core::bundle::Bundle;
use portcullis_core::event::OutcomeStatus;
use portcullis_core::fact::Facts;
use portcullis_core::guard::Context;
use portcullis_core::id::ActionId;
use portcullis_core::memory::LazyReading;
use portcullis_core::state::RunState;
use portcullis_core::state::marks::Now;
use portcullis_core::time::Timestamp;
use portcullis_core::verdict::Verdict;
use portcullis_session::dry::DryRun;
use portcullis_session::engine::Proposal;
use portcullis_session::workload;

/// Different calls that take turns.
const CALLS: usize = 64;

fn decide(criterion: &mut Criterion) {
    let bundle = Bundle::load(&workload::bundle_files()).unwrap();
    let pipeline = portcullis_session::policy::pipeline();
    let (policy, run, facts) = (bundle.policy(workload::POLICY).unwrap(), RunState::new(), Facts::none());
    let context = Context::new(&bundle, policy, &run);
    let memory = pipeline.begin_memory().unwrap();
    let mut group = criterion.benchmark_group("decide");
    for bytes in [256, 4_096] {
        let actions: Vec<Action> = (0..CALLS)
            .map(|number| {
                let id = ActionId::from_bytes([u8::try_from(number).unwrap(); 16]);
                Action::new(id, Some(workload::tool(number)), workload::arguments(number, bytes), None)
            })
            .collect();
        let mut turn = actions.iter().cycle();
        group.bench_function(BenchmarkId::from_parameter(format!("{bytes} B")), |bencher| {
            bencher.iter(|| {
                let subject = Subject::Action(turn.next().unwrap());
                let pending = Pending { at: Timestamp::default(), subject, grant: None };
                let reading = LazyReading::of(&memory, &bundle, pending);
                let context = context.with_reading(&reading);
                let decision = pipeline.decide(&context, black_box(&pending), &facts);
                assert_eq!(decision.verdict, Verdict::Allow);
                decision
            });
        });
    }
    group.finish();
}

/// The marks and rules of a bundle: every call of the workload has all marks, and every rule judges it.
fn sequences(rules: usize) -> Vec<u8> {
    let tools = "tools = ['*']";
    let mark =
        |number| format!("[[mark]]\nname = 'm{number}'\n{tools}\nkey = '/text'\namount = '/priority'\n");
    let rule = |number: usize| {
        let of = number % MARKS;
        let asks = match number % 4 {
            0 => format!("after = 'm{of}'\nwithin = '1s'\nverdict = 'warn'"),
            1 => format!("count = 'm{of}'\nat_most = 1000000000\nwithin = '1h'"),
            2 => format!("sum = 'm{of}'\nat_most = 1000000000\nsince = 'm{of}'"),
            _ => format!("count = 'm{of}'\nat_most = 1000000000\nsame = '/text'\nwithin = '100 steps'"),
        };
        format!("[[sequence]]\nid = 'r{number}'\n{tools}\n{asks}\n")
    };
    (0..MARKS).map(mark).chain((0..rules).map(rule)).collect::<String>().into_bytes()
}

/// Marks that the rules are about.
const MARKS: usize = 20;

/// What rules about the past add to a decision, in runs of two ages.
fn past(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("past");
    for rules in [0, 10, 100, 1_000] {
        let mut files = workload::bundle_files();
        files.insert("sequences/s.toml".to_owned(), sequences(rules));
        let bundle = Arc::new(Bundle::load(&files).unwrap());
        for age in [10, 10_000] {
            let pipeline = Arc::new(portcullis_session::policy::pipeline());
            let mut run = DryRun::open(Arc::clone(&bundle), pipeline, workload::POLICY).unwrap();
            for step in 0..age {
                take(&mut run, proposal(step));
            }
            let state = run.state();
            let id = ActionId::from_bytes([1; 16]);
            let action = Action::new(id, Some(workload::tool(1)), workload::arguments(1, 256), None);
            let action = action.marked_by(&bundle.sequences);
            // Long after: what happened lies outside of windows, and is searched all the same.
            let now = Now { at: Timestamp::from_micros(i64::MAX), step: state.steps() + 1, seq: state.seq() };
            group.bench_function(BenchmarkId::new(format!("{rules} rules"), age), |bencher| {
                bencher.iter(|| {
                    bundle.sequences.fired(
                        &workload::tool(1),
                        black_box(action.marked()),
                        state.marks(),
                        &[],
                        now,
                    )
                });
            });
        }
    }
    group.finish();
}

/// Steps that are timed before another run is brought to the same age.
const AT_ONE_AGE: usize = 10;

fn step(criterion: &mut Criterion) {
    let bundle = Arc::new(Bundle::load(&workload::bundle_files()).unwrap());
    let pipeline = Arc::new(portcullis_session::policy::pipeline());
    let open = || DryRun::open(Arc::clone(&bundle), Arc::clone(&pipeline), workload::POLICY).unwrap();
    let mut group = criterion.benchmark_group("step");
    for age in [10, 10_000] {
        let (mut run, mut steps) = (open(), 0);
        group.bench_function(BenchmarkId::from_parameter(age), |bencher| {
            bencher.iter_custom(|iterations| {
                let mut spent = Duration::ZERO;
                for _ in 0..iterations {
                    if steps >= age + AT_ONE_AGE {
                        (run, steps) = (open(), 0);
                    }
                    while steps < age {
                        take(&mut run, proposal(steps));
                        steps += 1;
                    }
                    let next = proposal(steps);
                    let begin = Instant::now();
                    take(&mut run, next);
                    spent += begin.elapsed();
                    steps += 1;
                }
                spent
            });
        });
    }
    group.finish();
}

fn proposal(number: usize) -> Proposal {
    let arguments = workload::arguments(number, 256);
    Proposal { tool: Some(workload::tool(number)), arguments, planned: None, ..Proposal::default() }
}

fn take(run: &mut DryRun, proposal: Proposal) {
    let judged = run.propose(proposal);
    run.outcome(judged.action.id, OutcomeStatus::Ok, Some("the note was filed".to_owned()));
}

criterion_group!(benches, decide, past, step);
criterion_main!(benches);
