//! The second verifier, `verifiers/python`, held to the vectors that the first one is held to.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

/// The lists of vectors that the second verifier answers, by file.
const LISTS: [(&str, &[&str]); 2] = [
    ("run-chain", &["hashes", "exports"]),
    (
        "transparency-log",
        &["trees", "inclusion", "consistency", "keys", "keys", "notes", "leaves", "verdicts"],
    ),
];

#[test]
fn the_second_verifier_agrees_on_every_vector() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let vectors = root.join("specs/vectors");
    let output = Command::new("python3")
        .arg(root.join("verifiers/python/portcullis_verify.py"))
        .arg("--vectors")
        .arg(&vectors)
        .output()
        .expect("this test needs `python3`, 3.9 or later, in PATH");
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
