//! `kill -9` of the daemon or of its clients at random points, while 16 runs write.
//!
//! The writers are processes of their own. Each proposes calls, keeps every answer in a file of its own that
//! is on the disk before it acts on it, and "executes" what is permitted by writing to a second one. When all
//! is over, the ledger is held against these files: what was acknowledged must be there, and what was executed
//! must have been permitted before.

mod audit;
mod grants;
mod kept;
mod store;
mod world;
mod writer;

use std::time::{Duration, Instant};

pub(crate) use world::Rng;
use world::World;

/// Runs that write at any time.
const WRITERS: usize = 16;
/// Times that something is killed, and in the long form.
const POINTS: u64 = 200;
const POINTS_LONG: u64 = 2_000;
/// The longest pause before a kill, in milliseconds.
const PAUSE_MS_MAX: u64 = 150;

/// Whether the tests that take minutes are asked for.
fn is_long() -> bool {
    std::env::var("PORTCULLIS_TEST_LONG").as_deref() == Ok("1")
}

#[test]
fn nothing_acknowledged_is_lost_whatever_is_killed() {
    let begin = Instant::now();
    let points = if is_long() { POINTS_LONG } else { POINTS };
    let mut rng = Rng::seeded();
    println!("seed {}; again with PORTCULLIS_TEST_SEED={}", rng.seed(), rng.seed());
    let mut world = World::new(WRITERS);
    world.wait_until_all_write();
    let (mut daemons, mut writers) = (0, 0);
    for point in 0..points {
        std::thread::sleep(Duration::from_millis(rng.below(PAUSE_MS_MAX)));
        if rng.below(3) == 0 {
            daemons += u64::from(world.kill_daemon());
        } else {
            let victim = usize::try_from(rng.below(WRITERS as u64)).unwrap();
            world.kill_writer(victim);
            writers += 1;
        }
        // One in four kills meets what the last one left: recovery, start-up, runs being taken up again.
        if rng.below(4) != 0 {
            world.wait_until_all_write();
        }
        if point % 50 == 49 {
            println!("{} kills, {:.0?}", point + 1, begin.elapsed());
        }
    }
    world.wait_until_all_write();
    let story = world.end();
    let seen = audit::audit(&story);
    println!(
        "{points} kills ({daemons} of the daemon, {writers} of writers) in {:.0?}: {} runs, {} segments, {} events, \
         {} answers, {} executed, {} outcomes refused",
        begin.elapsed(),
        seen.runs,
        seen.segments,
        seen.events,
        seen.answers,
        seen.executed,
        seen.outcomes_refused
    );
    // Else the test shows nothing.
    assert!(
        daemons > points / 10 && seen.segments > seen.runs && seen.executed > points,
        "too little happened"
    );
}
