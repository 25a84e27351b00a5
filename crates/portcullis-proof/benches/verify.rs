//! How fast a run is verified, parsing included: `cargo bench -p portcullis-proof`. Prints one row for each shape of
//! run, and what reading and hashing alone cost, which is what a change has to look at.
#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark prints, and stops when it cannot run"
)]

use std::time::{Duration, Instant};

use portcullis_proof::event::Event;
use portcullis_proof::export::{
    EXPORT_FORMAT, EndRecord, ExportRecord, HeadRecord, PayloadRecord, SegmentRecord, SegmentState,
    event_parts, write_event, write_record,
};
use portcullis_proof::trust::{head_line, preamble};
use portcullis_proof::{
    Digest, Head, Hex, Id, SegmentStart, Status, Trust, event_hash, event_link, payload_commitment,
    segment_link, verify,
};

const ORIGIN: &str = "portcullis/bench";
const RUN: Id = Hex([1; 16]);
const SEGMENT: Id = Hex([2; 16]);
/// Actions of the run, with four events each.
const ACTIONS: u64 = 30_000;
/// How often each figure is taken; the best one is printed, for the machine is never quite idle.
const TIMES: usize = 7;

fn main() {
    println!("{:<34} {:>9} {:>8} {:>12} {:>9}", "run", "events", "MB", "events/s", "MB/s");
    for (name, payload) in [("events alone", None), ("with payloads of 256 B", Some(256))] {
        let (text, trust) = export(payload);
        let events = ACTIONS * 4 + 2;
        let row = |what: &str, took: Duration| {
            println!(
                "{:<34} {events:>9} {:>8.1} {:>12.0} {:>9.0}",
                format!("{name}: {what}"),
                text.len() as f64 / 1e6,
                events as f64 / took.as_secs_f64(),
                text.len() as f64 / 1e6 / took.as_secs_f64()
            );
        };
        row("verified", best(|| assert_eq!(verify(&*text, Some(&trust)).unwrap().status, Status::Valid)));
        let lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
        let events: Vec<&[u8]> = lines.iter().filter_map(|line| Some(event_parts(line)?.1)).collect();
        row("read alone", best(|| events.iter().for_each(|line| drop(Event::from_line(line).unwrap()))));
        let zero: Digest = Hex([0; 32]);
        let hashed = || {
            let link = |link, line: &&[u8]| event_link(RUN, SEGMENT, 1, link, event_hash(line));
            std::hint::black_box(events.iter().fold(zero, link));
        };
        row("hashed alone", best(hashed));
    }
}

fn best(mut work: impl FnMut()) -> Duration {
    let time = |_| {
        let start = Instant::now();
        work();
        start.elapsed()
    };
    (0..TIMES).map(time).min().unwrap()
}

/// A run as the gate records it, in one segment, and the trust file of its end.
fn export(payload: Option<usize>) -> (Vec<u8>, Trust) {
    let mut text = Vec::new();
    let record = ExportRecord { format: EXPORT_FORMAT.into(), origin: ORIGIN.into(), run: RUN };
    write_record(&mut text, &record).unwrap();
    let start = SegmentStart {
        origin: ORIGIN,
        run: RUN,
        segment: SEGMENT,
        writer: "writer",
        ordinal: 0,
        after: 0,
        parent: None,
    };
    let mut head = Head { count: 0, link: segment_link(&start) };
    let writer = "writer".into();
    let record =
        SegmentRecord { segment: SEGMENT, writer, ordinal: 0, after: 0, parent: None, link: head.link };
    write_record(&mut text, &record).unwrap();
    let mut payloads = Vec::new();
    let mut event = |kind: &str, named: &str, body: &str| {
        head.count += 1;
        let seq = head.count;
        let line = format!(
            r#"{{"v":1,"seq":{seq},"t":"2026-11-21T01:02:03.123456Z","kind":"{kind}","actor":"gate","cause":null,"payloads":{{{named}}},"body":{body}}}"#
        );
        head.link = event_link(RUN, SEGMENT, seq, head.link, event_hash(line.as_bytes()));
        write_event(&mut text, head.link, line.as_bytes()).unwrap();
    };
    let digest = Hex([7u8; 32]);
    event("run-opened", "", "{}");
    for number in 0..ACTIONS {
        let action = format!("{number:032x}");
        let named = payload.map_or_else(String::new, |bytes| {
            let arguments = format!("{number:0>bytes$}").into_bytes();
            let commitment = payload_commitment(&digest.0, "application/json", &arguments);
            payloads.push((commitment, arguments));
            format!(
                r#""arguments":{{"commitment":"{commitment}","media_type":"application/json","bytes":{bytes}}}"#
            )
        });
        let proposed = format!(
            r#"{{"action":"{action}","step":{number},"tool":"write_file","side_effecting":true,"digest":"{digest}"}}"#
        );
        event("proposed", &named, &proposed);
        let verdict = format!(
            r#"{{"action":"{action}","verdict":"allow","policy_action":"allow","escalation":"none","findings":[],"bundle":"{digest}","policy":"strict","facts":[]}}"#
        );
        event("verdict", "", &verdict);
        event("enforcement", "", &format!(r#"{{"action":"{action}","enforced":"executed"}}"#));
        event("outcome", "", &format!(r#"{{"action":"{action}","status":"ok"}}"#));
    }
    let count = ACTIONS * 4 + 2;
    event("run-closed", "", &format!(r#"{{"state":"closed","count":{count}}}"#));
    let record = HeadRecord { segment: SEGMENT, state: SegmentState::Closed, count, link: head.link };
    write_record(&mut text, &record).unwrap();
    payloads.sort_unstable();
    for (commitment, bytes) in &payloads {
        write_record(&mut text, &PayloadRecord::new(*commitment, digest, "application/json", bytes)).unwrap();
    }
    let payloads = payloads.len() as u64;
    write_record(&mut text, &EndRecord { segments: 1, events: count, payloads, erased: None }).unwrap();
    let trust = format!("{}{}\n", preamble(ORIGIN), head_line(RUN, head));
    (text, Trust::parse(&trust).unwrap())
}
