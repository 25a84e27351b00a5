//! The second verifier, `verifiers/python`, held to the vectors that the first one is held to.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use portcullis_proof::{Trust, verify};
use serde_json::{Value, json};

/// The lists of vectors that the second verifier answers, by file.
const LISTS: [(&str, &[&str]); 2] = [
    ("run-chain", &["hashes", "exports"]),
    (
        "transparency-log",
        &["trees", "inclusion", "consistency", "keys", "keys", "notes", "leaves", "verdicts"],
    ),
];

fn specs_vectors() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../specs/vectors")
}

/// What `vectors.py` says; its arguments are `words` and then `folder`.
fn second(words: &[&str], folder: &Path) -> std::process::Output {
    let script = specs_vectors().join("../../verifiers/python/vectors.py");
    let mut command = Command::new("python3");
    command.arg(script).args(words).arg(folder);
    command.output().expect("this test needs `python3`, 3.9 or later, in PATH")
}

#[test]
fn the_second_verifier_agrees_on_every_vector() {
    let vectors = specs_vectors();
    let output = second(&[], &vectors);
    let said = String::from_utf8_lossy(&output.stdout);
    let wrong: Vec<&str> = said.lines().filter(|line| line.starts_with("DIFFERS")).collect();
    assert!(output.status.success(), "{wrong:#?}\n{}", String::from_utf8_lossy(&output.stderr));
    // Each key is held twice, as it is written and by its id in leaves; one more are the tampered files.
    let count: usize = LISTS
        .iter()
        .map(|(folder, lists)| {
            let text = fs::read_to_string(vectors.join(folder).join("vectors.json")).unwrap();
            let all: Value = serde_json::from_str(&text).unwrap();
            lists.iter().map(|list| all[*list].as_array().unwrap().len()).sum::<usize>()
        })
        .sum::<usize>()
        + 1;
    let archives = fs::read_to_string(vectors.join("archives/vectors.json")).unwrap();
    let count = count + serde_json::from_str::<Vec<Value>>(&archives).unwrap().len();
    assert_eq!(said.lines().last(), Some(&*format!("{count} vectors, {count} agree, 0 differ")));
}

/// How many changed exports both verifiers are asked about, and the seed of the changes.
const CHANGED: u64 = 600;
const SEED: u64 = 6;

/// Numbers below `limit` from one seed: SplitMix64 (Steele, Lea and Flood 2014).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % limit as u64) as usize
    }
}

/// One small change: of a bit, or of the order and number of lines.
fn changed(export: &[u8], numbers: &mut Numbers) -> Vec<u8> {
    let mut lines: Vec<Vec<u8>> = export.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    let (from, to) = (numbers.below(lines.len()), numbers.below(lines.len()));
    let byte = numbers.below(lines[from].len());
    match numbers.below(6) {
        0 => drop(lines.remove(from)),
        1 => lines.insert(to, lines[from].clone()),
        2 => lines.swap(from, to),
        3 => lines[from].truncate(byte),
        _ => lines[from][byte] ^= 1 << numbers.below(8),
    }
    lines.concat()
}

#[test]
fn the_second_verifier_agrees_on_changed_exports() {
    let vectors = specs_vectors().join("run-chain");
    let all: Value =
        serde_json::from_str(&fs::read_to_string(vectors.join("vectors.json")).unwrap()).unwrap();
    let exports = all["exports"].as_array().unwrap();
    let folder = std::env::temp_dir().join(format!("portcullis-second-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let mut numbers = Numbers(SEED);
    let mut expected = Vec::new();
    while (expected.len() as u64) < CHANGED {
        let vector = &exports[numbers.below(exports.len())];
        let export = fs::read(vectors.join(vector["file"].as_str().unwrap())).unwrap();
        if export.is_empty() {
            continue;
        }
        let export = changed(&export, &mut numbers);
        let trust = vector["trust"].as_str().unwrap_or_default();
        let name = format!("{:04}.export", expected.len());
        fs::write(folder.join(&name), &export).unwrap();
        fs::write(folder.join(&name).with_extension("trust"), trust).unwrap();
        let trust = (!trust.is_empty()).then(|| Trust::parse(trust).unwrap());
        let report = verify(&*export, trust.as_ref()).unwrap();
        let found = serde_json::to_value(&report.failure).unwrap();
        let answer =
            json!([name, report.status, found["attack"], found["line"], found["byte"], found["seq"]]);
        expected.push(answer);
    }
    let output = second(&["--answers"], &folder);
    fs::remove_dir_all(&folder).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8(output.stdout).unwrap();
    let said: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(said.len(), expected.len());
    for (said, expected) in said.iter().zip(&expected) {
        assert_eq!(said, expected, "seed {SEED}");
    }
    let attacks: BTreeSet<_> = expected.iter().map(|answer| answer[2].to_string()).collect();
    assert!(attacks.len() > 15, "the changes are not varied enough: {attacks:?}");
}
