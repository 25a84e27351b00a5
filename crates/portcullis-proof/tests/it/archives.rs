//! The vectors of `specs/transparency-log.md` §7: whole exports as archives, of one run and of many, and archives that
//! programs could read differently.
//!
//! This writes the archives. `portcullis: every_archive_gets_its_answer` and the second verifier answer them; those
//! that are not written here came from a store of their own and stay as they are. `UPDATE_VECTORS=1` writes them anew.

mod containers;
mod kin;
mod many;
mod zip;

use std::fs;
use std::path::PathBuf;

use portcullis_proof::log::{Leaf, RunHead, RunState, leaf_hash};
use portcullis_proof::{Digest, Hex};
use serde_json::{Value, json};

use crate::log::world::{Log, WRITER, enrol, leaf_key, policy};
use crate::sample::{Export, ORIGIN, closed, id};
use zip::Zip;

/// The policy that all of them are held against.
const POLICY: &str = "witnesses.policy";

/// What is expected of a failure: attack, file, line, byte, event.
type Failure<'a> = (&'a str, String, Option<u64>, u64, Option<u64>);

/// An archive with its answer, stated by hand.
struct Case {
    name: &'static str,
    says: &'static str,
    bytes: Vec<u8>,
    status: &'static str,
    failure: Option<Failure<'static>>,
}

fn case(name: &'static str, says: &'static str, bytes: Vec<u8>, status: &'static str) -> Case {
    Case { name, says, bytes, status, failure: None }
}

fn invalid(name: &'static str, says: &'static str, bytes: Vec<u8>, failure: Failure<'static>) -> Case {
    Case { name, says, bytes, status: "INVALID", failure: Some(failure) }
}

impl Case {
    fn vector(&self) -> Value {
        let code =
            ["VALID", "INVALID", "INCOMPLETE", "UNREADABLE"].iter().position(|word| *word == self.status);
        let failure = self.failure.as_ref().map(|(attack, file, line, byte, seq)| {
            json!({"attack": attack, "file": file, "line": line, "byte": byte, "seq": seq})
        });
        json!({
            "file": format!("{}.zip", self.name), "policy": POLICY, "says": self.says, "status": self.status,
            "exit_code": code.unwrap(), "failure": failure,
        })
    }
}

/// A run that was logged, by its number.
#[derive(Clone)]
struct Logged {
    export: Export,
    heads: [RunHead; 2],
}

/// Run `byte` as number `run_no` of the writer.
fn logged(byte: u8, run_no: u64) -> Logged {
    logged_export(closed(byte, &format!("what is due on day {byte}?")), run_no)
}

/// An export that was logged as number `run_no` of the writer.
fn logged_export(export: Export, run_no: u64) -> Logged {
    let start: Value = serde_json::from_slice(&export.lines()[1]).unwrap();
    let start: Digest = start["link"].as_str().unwrap().parse().unwrap();
    let end = *export.heads.last().unwrap();
    let writer = leaf_key(WRITER).id();
    let head = |state, count, link| RunHead {
        origin: ORIGIN.to_owned(),
        run: export.run,
        segment: id(0x51),
        ordinal: 0,
        parent: None,
        writer,
        epoch: 0,
        run_no,
        state,
        count,
        link,
        bundle: Hex([0xb0; 32]),
        previous: None,
        signer: writer,
    };
    let heads = [head(RunState::Open, 0, start), head(RunState::Closed, end.count, end.link)];
    Logged { export, heads }
}

/// Runs in a log; each has two leaves.
struct World {
    log: Log,
    runs: Vec<Logged>,
}

impl World {
    fn of(runs: Vec<Logged>) -> World {
        let mut log = Log::default();
        log.fill(3);
        log.add_signed(enrol(WRITER, 1), 1);
        for run in &runs {
            let [open, closed] = run.heads.clone();
            let index = log.add_signed(Leaf::Head(open), WRITER);
            let previous = Some(leaf_hash(&log.leaves[index as usize]));
            log.add_signed(Leaf::Head(RunHead { previous, ..closed }), WRITER);
        }
        log.fill(2);
        World { log, runs }
    }

    /// A leaf and its proof below a folder.
    fn leaf(&self, folder: &str, name: &str, index: u64) -> Vec<(String, Vec<u8>)> {
        let proof = self.log.proof(index, self.log.size(), &[1, 2]);
        vec![
            (format!("{folder}log/{name}.leaf"), self.log.leaves[index as usize].clone()),
            (format!("{folder}log/{name}.tlog-proof"), proof.into_bytes()),
        ]
    }

    fn closed(run: usize) -> u64 {
        5 + 2 * run as u64
    }

    /// The files of one run.
    fn run(&self, folder: &str, run: usize) -> Vec<(String, Vec<u8>)> {
        let mut files = vec![(format!("{folder}run.export"), self.runs[run].export.text.clone())];
        files.extend(self.leaf(folder, "enrolment", 3));
        files.extend(self.leaf(folder, "open", World::closed(run) - 1));
        files.extend(self.leaf(folder, "closed", World::closed(run)));
        files
    }

    /// The files of all runs, and one leaf for each number.
    fn all(&self) -> Vec<(String, Vec<u8>)> {
        let mut files = self.leaf("", "enrolment", 3);
        for run in 0..self.runs.len() {
            files.extend(self.leaf("", &format!("number-{run}"), World::closed(run)));
            files.extend(self.run(&folder(run), run));
        }
        files
    }
}

/// The folder of a run.
fn folder(run: usize) -> String {
    format!("runs/{}/", id(run as u8 + 1))
}

fn vectors_folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../specs/vectors/archives")
}

#[test]
fn every_archive_is_as_it_was() {
    let cases: Vec<Case> = containers::cases().into_iter().chain(many::cases()).chain(kin::cases()).collect();
    let path = vectors_folder().join("vectors.json");
    let ours = |vector: &&Value| vector["policy"] == POLICY;
    if std::env::var_os("UPDATE_VECTORS").is_some() {
        for case in &cases {
            fs::write(vectors_folder().join(format!("{}.zip", case.name)), &case.bytes).unwrap();
        }
        fs::write(vectors_folder().join(POLICY), policy()).unwrap();
        // A vector is a line, so that a change shows as one.
        let text = fs::read_to_string(&path).unwrap();
        let is_ours = |line: &&str| line.contains(&format!("\"policy\":\"{POLICY}\""));
        let others = text.lines().filter(|line| line.starts_with("  {") && !is_ours(line));
        let others = others.map(|line| line.trim_end_matches(',').to_owned());
        let ours = cases.iter().map(|case| format!("  {}", case.vector()));
        let all: Vec<String> = others.chain(ours).collect();
        fs::write(&path, format!("[\n{}\n]\n", all.join(",\n"))).unwrap();
    }
    let committed: Vec<Value> = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let vectors: Vec<Value> = cases.iter().map(Case::vector).collect();
    assert_eq!(committed.iter().filter(ours).cloned().collect::<Vec<_>>(), vectors);
    assert_eq!(fs::read(vectors_folder().join(POLICY)).unwrap(), policy().as_bytes());
    for case in &cases {
        let found = fs::read(vectors_folder().join(format!("{}.zip", case.name))).unwrap();
        assert!(found == case.bytes, "{} changed: that is a new version of the format", case.name);
    }
    let mut named: Vec<&str> = committed.iter().map(|vector| vector["file"].as_str().unwrap()).collect();
    named.sort_unstable();
    named.dedup();
    let on_disk = fs::read_dir(vectors_folder()).unwrap();
    let archives = on_disk.filter(|file| file.as_ref().unwrap().path().extension().unwrap() == "zip").count();
    assert_eq!(archives, named.len(), "an archive in the folder is not in vectors.json");
}

/// An archive of files in the order in which they are given.
fn packed(files: &[(String, Vec<u8>)]) -> Vec<u8> {
    Zip::of(files).bytes()
}
