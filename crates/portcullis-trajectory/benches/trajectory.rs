//! What reading a result and judging a call cost, and that it does not grow with the run.

use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use portcullis_core::bundle::MonitorSettings;
use portcullis_detect::{Detector, Head};
use portcullis_trajectory::flow::built_in;
use portcullis_trajectory::judge::{Settings, judge};
use portcullis_trajectory::kind::{CallKind, ToolView};
use portcullis_trajectory::monitors::{Monitors, Vocabulary};
use portcullis_trajectory::redact::redact;
use portcullis_trajectory::trajectory::{Call, Trajectory};
use serde_json::{Value, json};

const READ: ToolView<'static> = ToolView {
    name: "get_received_emails",
    description: "Returns all the received emails in the inbox.",
    tool_type: "RETRIEVE_DOCS",
    side_effecting: false,
    declared: true,
};
const SEND: ToolView<'static> = ToolView {
    name: "send_email",
    description: "Sends an email with the given body to the recipients.",
    tool_type: "SEND_EMAIL",
    side_effecting: true,
    declared: true,
};

/// A result of about `bytes` bytes: mails in YAML, one sentence in ten an order.
fn mails(bytes: usize, salt: usize) -> String {
    let mut text = String::new();
    let mut number = salt;
    while text.len() < bytes {
        number += 1;
        text.push_str(&format!(
            "- id: '{number}'\n  sender: person{number}@example.com\n  subject: Minutes of meeting {number}\n  body: \
             'Dear all, the figures of project P{number} are in the shared folder. We met on Monday and talked about the \
             plan for the next quarter; the budget is as before. Please send the report to office{number}@example.com \
             by Friday. The weather was fine. See www.example.com/p/{number} for more.'\n"
        ));
    }
    text.truncate(text.floor_char_boundary(bytes));
    text
}

fn run_of(steps: usize) -> Trajectory {
    let mut run = Trajectory::new(built_in());
    let said = run.read_input("Summarise my mails and send the summary to anna@example.com");
    run.record_input(said);
    let call = Call::new(run.lexicon(), CallKind::of(run.lexicon(), &READ), &Value::Null);
    for step in 0..steps {
        let seen = run.read_result(&call, &mails(700, step * 10));
        run.record_result(step as u64, &call, seen);
    }
    run
}

fn trajectory(c: &mut Criterion) {
    let text = mails(4_096, 0);
    let run = run_of(10);
    let call = Call::new(run.lexicon(), CallKind::of(run.lexicon(), &READ), &Value::Null);
    let mut group = c.benchmark_group("trajectory");
    group.throughput(Throughput::Bytes(text.len() as u64));
    group.bench_function("read a result of 4 KiB", |b| b.iter(|| black_box(run.read_result(&call, &text))));
    let monitors = Monitors::new(Arc::new(Vocabulary::new(&MonitorSettings::built_in())));
    group.bench_function("the monitors read it", |b| b.iter(|| black_box(monitors.read_result(None, &text))));
    if let Ok(detector) = Detector::shipped() {
        group.bench_function("the detector scans it", |b| {
            b.iter(|| black_box(detector.scan(&text, Head::Order)));
        });
        group.bench_function("all three", |b| {
            b.iter(|| {
                let hits = detector.scan(&text, Head::Order);
                black_box((hits, run.read_result(&call, &text), monitors.read_result(None, &text)))
            });
        });
    }
    group.bench_function("secrets are looked for in it", |b| b.iter(|| black_box(redact(&text))));
    group.bench_function("read and record a result of 4 KiB", |b| {
        b.iter_batched_ref(
            || run.clone(),
            |run| {
                let seen = run.read_result(&call, &text);
                run.record_result(11, &call, seen);
            },
            criterion::BatchSize::SmallInput,
        );
    });
    group.finish();
    let arguments =
        json!({"recipients": ["office12@example.com"], "subject": "Minutes", "body": "Here they are."});
    let lexicon = Arc::clone(&built_in());
    for steps in [10, 1_000, 10_000] {
        let run = run_of(steps);
        c.bench_function(&format!("judge a call at step {steps}"), |b| {
            b.iter(|| {
                let call = Call::new(&lexicon, CallKind::of(&lexicon, &SEND), &arguments);
                black_box(judge(&run, &call, &arguments, &[], Settings::default()))
            });
        });
    }
}

criterion_group!(benches, trajectory);
criterion_main!(benches);
