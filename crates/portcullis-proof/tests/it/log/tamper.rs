//! The total tamper test of an export with what the log says of it: every small change to any of its files.
//!
//! What is not found stands in a written list. Each entry says what a reader loses by it; the list is asserted whole,
//! so that it cannot grow unseen. Names of files are tried elsewhere.

use std::collections::BTreeMap;

use portcullis_proof::Status;
use portcullis_proof::log::{RunState, TrustPolicy};

use super::logged::{Files, add_heads, check_files, proven_scene, scene_files};
use super::world::{Log, Scene};
use crate::sample::{ORIGIN, closed};

/// Where the reader of the export saw the log.
const REMEMBERED: u64 = 2;

/// An export of a run with three leaves, their proofs and a consistency proof; and one of another run of the same log.
struct World {
    files: Files,
    foreign: Files,
    policy: TrustPolicy,
}

fn world() -> World {
    let heads = [(0, RunState::Open, 0), (0, RunState::Closed, 10)];
    let (export, other) = (closed(0x01, "what is due?"), closed(0x03, "what is new?"));
    let mut log = Log::default();
    let proven = add_heads(&mut log, &export, &heads);
    let others = add_heads(&mut log, &other, &heads);
    let with_history = |mut scene: Scene| {
        scene.consistency.push(("old.consistency".into(), log.consistency(REMEMBERED, log.size()).into()));
        scene
    };
    let scene = with_history(proven_scene(&log, &proven));
    let foreign = with_history(proven_scene(&log, &others));
    let known = log.checkpoint(REMEMBERED, &[]);
    let root = known.lines().nth(2).unwrap();
    let policy = format!("{}remember {ORIGIN} {REMEMBERED} {root}\n", scene.policy);
    World {
        files: scene_files(&export, &scene),
        foreign: scene_files(&other, &foreign),
        policy: TrustPolicy::parse(policy.as_bytes()).unwrap(),
    }
}

/// Whether the tests that take minutes are asked for.
fn is_long() -> bool {
    std::env::var_os("PORTCULLIS_TEST_LONG").is_some()
}

/// Applies changes and keeps those after which the answer is not `INVALID`.
struct Tampering<'w> {
    world: &'w World,
    tried: usize,
    survivors: BTreeMap<String, Status>,
}

impl<'w> Tampering<'w> {
    fn new(world: &'w World) -> Tampering<'w> {
        let report = check_files(&world.files, &world.policy).unwrap();
        assert_eq!(report.status, Status::Valid, "{report:?}");
        Tampering { world, tried: 0, survivors: BTreeMap::new() }
    }

    fn files(&mut self, what: impl Fn() -> String, files: &Files) {
        self.tried += 1;
        // That a run is missing altogether is an error and no answer, as it should be.
        let Ok(report) = check_files(files, &self.world.policy) else { return };
        if report.status != Status::Invalid {
            self.survivors.insert(what(), report.status);
        }
    }

    fn bytes(&mut self, what: impl Fn() -> String, place: usize, bytes: Vec<u8>) {
        if bytes == self.world.files[place].1 {
            return;
        }
        let mut files = self.world.files.clone();
        files[place].1 = bytes;
        self.files(|| format!("{}: {}", files[place].0, what()), &files);
    }
}

/// Runs a part of the test for every file, on as many threads as there are files.
fn for_each_file(work: impl Fn(&mut Tampering<'_>, usize) + Sync) -> (usize, Vec<String>) {
    let world = world();
    let done = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..world.files.len())
            .map(|place| {
                let (world, work) = (&world, &work);
                scope.spawn(move || {
                    let mut tampering = Tampering::new(world);
                    work(&mut tampering, place);
                    (tampering.tried, tampering.survivors)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    let tried = done.iter().map(|(tried, _)| tried).sum();
    let named = |(what, status): (String, Status)| format!("{what}: {status:?}");
    (tried, done.into_iter().flat_map(|(_, survivors)| survivors).map(named).collect())
}

#[test]
fn every_flipped_bit_of_every_file_is_found() {
    // All bits of the run by itself are flipped in another test; here they take longest.
    let bits = |name: &str| if name == "run.export" && !is_long() { 1 } else { 8 };
    let (tried, survivors) = for_each_file(|tampering, place| {
        let (name, bytes) = &tampering.world.files[place];
        for byte in 0..bytes.len() {
            for bit in 0..bits(name) {
                let mut flipped = bytes.clone();
                flipped[byte] ^= 1 << bit;
                tampering.bytes(|| format!("bit {bit} of byte {byte}"), place, flipped);
            }
        }
    });
    assert_eq!(survivors, Vec::<String>::new());
    let world = world();
    assert_eq!(tried, world.files.iter().map(|(name, bytes)| bytes.len() * bits(name)).sum::<usize>());
}

#[test]
fn every_truncation_and_every_byte_more_is_found() {
    let (tried, survivors) = for_each_file(|tampering, place| {
        let bytes = &tampering.world.files[place].1;
        for length in 0..bytes.len() {
            tampering.bytes(|| format!("cut to {length} bytes"), place, bytes[..length].to_vec());
        }
        for more in 0..=255u8 {
            let longer = bytes.iter().copied().chain([more]).collect();
            tampering.bytes(|| format!("byte {more} after the end"), place, longer);
        }
    });
    assert_eq!(survivors, Vec::<String>::new());
    let world = world();
    assert_eq!(tried, world.files.iter().map(|(_, bytes)| bytes.len() + 256).sum::<usize>());
}

fn lines(bytes: &[u8]) -> Vec<&[u8]> {
    bytes.split_inclusive(|byte| *byte == b'\n').collect()
}

#[test]
fn every_line_that_is_dropped_doubled_swapped_or_of_another_run_is_found() {
    let (tried, survivors) = for_each_file(|tampering, place| {
        let world = tampering.world;
        let (name, bytes) = &world.files[place];
        if name.ends_with(".leaf") {
            return;
        }
        let ours = lines(bytes);
        for i in 0..ours.len() {
            let mut dropped = ours.clone();
            dropped.remove(i);
            tampering.bytes(|| format!("line {i} dropped"), place, dropped.concat());
            for j in 0..=ours.len() {
                let mut doubled = ours.clone();
                doubled.insert(j, ours[i]);
                tampering.bytes(|| format!("line {i} doubled at {j}"), place, doubled.concat());
            }
            for j in i + 1..ours.len() {
                let mut swapped = ours.clone();
                swapped.swap(i, j);
                tampering.bytes(|| format!("lines {i} and {j} swapped"), place, swapped.concat());
            }
        }
        // Lines of every file of the other run in the place of as many of ours; but not a whole file, which is below.
        for (foreign_name, foreign) in &world.foreign {
            let theirs = lines(foreign);
            let both = ours.len().min(theirs.len());
            for i in 0..both {
                for j in i + 1..=both {
                    let mut spliced = ours.clone();
                    spliced.splice(i..j, theirs[i..j].iter().copied());
                    if spliced.concat() != *foreign {
                        let what = || format!("lines {i}..{j} of the other run's {foreign_name}");
                        tampering.bytes(what, place, spliced.concat());
                    }
                }
            }
        }
    });
    // Signatures of a note may stand in any order, and one more than once: each names its key and covers the same text,
    // so a reader loses nothing. A proof has three, of the log and two witnesses; the consistency proof one.
    let mut expected = Vec::new();
    for name in ["writer", "head-0", "head-1"] {
        for line in 10..13 {
            expected.extend(
                (10..=13).map(|at| format!("log/{name}.tlog-proof: line {line} doubled at {at}: Valid")),
            );
        }
        for (one, other) in [(10, 11), (10, 12), (11, 12)] {
            expected.push(format!("log/{name}.tlog-proof: lines {one} and {other} swapped: Valid"));
        }
    }
    expected.extend((8..=9).map(|at| format!("log/old.consistency: line 8 doubled at {at}: Valid")));
    assert_eq!((survivors.len(), survivors), (3 * (12 + 3) + 2, expected));
    assert!(tried > 1_000, "{tried}");
}

#[test]
fn every_file_that_is_dropped_doubled_swapped_or_of_another_run_is_found() {
    let (tried, survivors) = for_each_file(|tampering, place| {
        let world = tampering.world;
        let (name, bytes) = &world.files[place];
        let stem = |name: &str| name.split_once('.').unwrap().0.to_owned();
        let with_stem = |files: &Files| -> Vec<(String, Vec<u8>)> {
            files.iter().filter(|(other, _)| stem(other) == stem(name)).cloned().collect()
        };
        let mut dropped = world.files.clone();
        dropped.remove(place);
        tampering.files(|| format!("{name} dropped"), &dropped);
        for (other, foreign) in &world.foreign {
            tampering.bytes(|| format!("the other run's {other} in its place"), place, foreign.clone());
        }
        for other in place + 1..world.files.len() {
            let mut swapped = world.files.clone();
            let (one, two) = (swapped[place].1.clone(), swapped[other].1.clone());
            (swapped[place].1, swapped[other].1) = (two, one);
            tampering.files(|| format!("{name} swapped with {}", swapped[other].0), &swapped);
        }
        // A leaf goes with its proof: once for both.
        if name.ends_with(".tlog-proof") {
            return;
        }
        let pair = with_stem(&world.files);
        let mut without = world.files.clone();
        without.retain(|(other, _)| stem(other) != stem(name));
        tampering.files(|| format!("{} dropped with its proof", stem(name)), &without);
        let mut doubled = world.files.clone();
        doubled.extend(pair.iter().map(|(name, bytes)| (name.replace('.', "-2."), bytes.clone())));
        tampering.files(|| format!("{} doubled under another name", stem(name)), &doubled);
        let mut more = world.files.clone();
        let theirs = with_stem(&world.foreign);
        more.extend(theirs.iter().map(|(name, bytes)| (name.replace('.', "-2."), bytes.clone())));
        tampering.files(|| format!("the other run's {} added", stem(name)), &more);
        let mut instead = without.clone();
        instead.extend(theirs);
        tampering.files(|| format!("the other run's {} instead", stem(name)), &instead);
        assert!(!bytes.is_empty());
    });
    // Left out: without its end in the log, or without the step from the tree that the reader remembers, an export is
    // INCOMPLETE, which no reader takes for proof. An open head says nothing that the closed one does not.
    // Said twice, or said of the writer and the tree and not of the run: true all the same. The two runs are of one log,
    // whose enrolment of the writer and whose trees are the same for both.
    let expected = [
        "log/writer doubled under another name: Valid",
        "the other run's log/writer added: Valid",
        "log/head-0 doubled under another name: Valid",
        "log/head-0 dropped with its proof: Valid",
        "log/head-1 doubled under another name: Valid",
        "log/head-1 dropped with its proof: Incomplete",
        "log/old doubled under another name: Valid",
        "log/old dropped with its proof: Incomplete",
        "log/old.consistency dropped: Incomplete",
        "the other run's log/old added: Valid",
        "the other run's log/old instead: Valid",
    ];
    assert_eq!((survivors.len(), survivors), (11, expected.map(str::to_owned).to_vec()));
    assert!(tried > 100, "{tried}");
}
