//! How fast events become durable: `cargo bench -p portcullis-ledger`. Prints one row for each shape of load,
//! beside the time that the same disk took for a bare `fdatasync` just before.
#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark prints, and stops when it cannot run"
)]

use std::collections::BTreeMap;
use std::io::{Seek as _, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use portcullis_core::event::{Actor, EVENT_VERSION, Event, EventBody};
use portcullis_core::id::{Digest, RunId, SegmentId};
use portcullis_core::time::Timestamp;
use portcullis_ledger::{Append, ChainedLine, Head, NewSegment, OpenOptions, SqliteLedger};

const MEASURED: Duration = Duration::from_secs(3);

fn main() {
    // The folder to measure in; by default the target's, which is on the disk that is built on.
    let base = std::env::var_os("PORTCULLIS_BENCH_DIR").unwrap_or_else(|| env!("CARGO_TARGET_TMPDIR").into());
    let folder = tempfile::tempdir_in(base).unwrap();
    println!("fdatasync of 4 KiB: {}", fdatasync(folder.path()));
    println!("{:<42} {:>10} {:>12} {:>9} {:>9}", "load", "events/s", "events/sync", "p50", "p99");
    for (writers, events) in [(1, 1), (1, 16), (1, 64), (1, 256), (8, 3), (64, 1), (64, 3), (256, 3)] {
        let (rate, shared, mut times) = load(folder.path(), writers, events);
        println!(
            "{:<42} {rate:>10.0} {shared:>12.1} {:>9.2?} {:>9.2?}",
            format!("{writers} runs at once, {events} events an append"),
            percentile(&mut times, 50),
            percentile(&mut times, 99),
        );
    }
}

fn fdatasync(folder: &Path) -> String {
    let mut file = std::fs::File::create(folder.join("sync")).unwrap();
    let mut times = Vec::new();
    for _ in 0..500 {
        file.rewind().unwrap();
        file.write_all(&[0; 4_096]).unwrap();
        let started = Instant::now();
        file.sync_data().unwrap();
        times.push(started.elapsed());
    }
    format!("p50 {:.2?}, p99 {:.2?}", percentile(&mut times, 50), percentile(&mut times, 99))
}

fn percentile(times: &mut [Duration], percent: usize) -> Duration {
    times.sort_unstable();
    times.get(times.len() * percent / 100).copied().unwrap_or_default()
}

/// Events a second, events for each transaction, and the time of every append.
fn load(folder: &Path, writers: usize, events: usize) -> (f64, f64, Vec<Duration>) {
    let store = folder.join(format!("{writers}-{events}"));
    let ledger = SqliteLedger::open(&store, OpenOptions::default()).unwrap();
    let heads: Vec<Head> = (0..writers).map(|number| opened(&ledger, number)).collect();
    let before = ledger.stats();
    let started = Instant::now();
    let times = std::thread::scope(|scope| {
        let threads: Vec<_> = heads
            .into_iter()
            .map(|head| {
                let ledger = &ledger;
                scope.spawn(move || write(ledger, head, events, started))
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let elapsed = started.elapsed().as_secs_f64();
    let after = ledger.stats();
    let written = (after.events - before.events) as f64;
    drop(ledger);
    std::fs::remove_dir_all(store).unwrap();
    (written / elapsed, written / (after.transactions - before.transactions) as f64, times)
}

fn write(ledger: &SqliteLedger, mut head: Head, events: usize, started: Instant) -> Vec<Duration> {
    let mut times = Vec::new();
    while started.elapsed() < MEASURED {
        let mut append = Append::default();
        for _ in 0..events {
            let line = ChainedLine::new(head, &event(head.count + 1)).unwrap();
            head = line.head();
            append.events.push(line);
        }
        let asked = Instant::now();
        ledger.append_blocking(append).unwrap();
        times.push(asked.elapsed());
    }
    times
}

fn opened(ledger: &SqliteLedger, number: usize) -> Head {
    let mut id = [0; 16];
    id[8..].copy_from_slice(&(number as u64).to_be_bytes());
    let new = NewSegment {
        run: RunId::from_bytes(id),
        segment: SegmentId::from_bytes(id),
        principal: "bench".to_owned(),
        session_key: None,
        opened: Timestamp::default(),
    };
    ledger.open_segment_blocking(new).unwrap().head
}

/// An event whose line has about 500 bytes.
fn event(seq: u64) -> Event {
    Event {
        v: EVENT_VERSION,
        seq,
        t: Timestamp::default(),
        actor: Actor::gate(),
        cause: None,
        payloads: BTreeMap::new(),
        body: EventBody::Evidence { name: "x".repeat(270), digest: Digest::from_bytes([7; 32]) },
    }
}
