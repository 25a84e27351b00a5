//! Packs that somebody changed, and packs that somebody else made.

use portcullis_governance::check::FileResult;
use portcullis_governance::manifest::{Manifest, sha256, sign};
use portcullis_governance::zip::Named;
use portcullis_governance::{PackCheck, check};
use portcullis_proof::Status;
use portcullis_proof::log::{KeyKind, NoteSigner};
use serde_json::Value;

use crate::command::{project, run};

use super::{STRICT, TRANSFER, file, json, record, text};

fn with(files: &[Named], name: &str, bytes: Vec<u8>) -> Vec<Named> {
    let changed = files.iter().map(|(known, old)| {
        let bytes = if known == name { bytes.clone() } else { old.clone() };
        (known.clone(), bytes)
    });
    changed.collect()
}

fn failed(report: &PackCheck) -> Vec<&str> {
    report.failed().map(|file| file.file.as_str()).collect()
}

fn message<'r>(report: &'r PackCheck, name: &str) -> &'r str {
    let file = report.failed().find(|file| file.file == name);
    &file.unwrap_or_else(|| panic!("{name} does not fail: {report:#?}")).message
}

/// V10: one byte of any exported file is edited, and the check names that file.
#[test]
fn v10_one_changed_byte_of_any_file_is_named() {
    let (files, policy) = record(TRANSFER, STRICT).pack();
    assert_eq!(check(&files, None, Some(&policy)).status, Status::Valid);
    let mut tried = 0;
    for (name, bytes) in &files {
        // Every byte of the signature, and bytes all over the rest.
        let step = if name.ends_with(".note") { 1 } else { bytes.len().div_ceil(24) };
        for at in (0..bytes.len()).step_by(step).chain([bytes.len() - 1]) {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            let report = check(&with(&files, name, changed), None, Some(&policy));
            assert_eq!(report.status, Status::Invalid, "{name}, byte {at}");
            assert!(failed(&report).contains(&name.as_str()), "{name}, byte {at}: {report:#?}");
            tried += 1;
        }
        for changed in [Vec::new(), [bytes.as_slice(), b"x"].concat(), bytes[..bytes.len() - 1].to_vec()] {
            let report = check(&with(&files, name, changed), None, Some(&policy));
            assert!(failed(&report).contains(&name.as_str()), "{name}");
        }
        let without: Vec<Named> = files.iter().filter(|(known, _)| known != name).cloned().collect();
        assert!(failed(&check(&without, None, Some(&policy))).contains(&name.as_str()), "{name} left out");
    }
    assert!(tried > 500, "{tried}");
    let more: Vec<Named> = files.iter().cloned().chain([("notes.txt".to_owned(), b"x".to_vec())]).collect();
    assert_eq!(failed(&check(&more, None, Some(&policy))), ["notes.txt"]);
}

/// V11: an audit line is deleted, swapped or cut off, and it is detected at the right sequence number.
#[test]
fn v11_a_deleted_swapped_or_cut_audit_line_is_found_at_its_event() {
    let (files, policy) = record(TRANSFER, STRICT).pack();
    let events: Vec<u64> = json(&files, "evidence_manifest.json")["audit_log"]
        .as_array()
        .unwrap()
        .iter()
        .map(|line| line["event"].as_u64().unwrap())
        .collect();
    let log = text(&files, "audit_log.jsonl").to_owned();
    let lines: Vec<&str> = log.lines().collect();
    assert_eq!(lines.len(), events.len());
    let found = |lines: &[&str]| {
        let changed: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let report = check(&with(&files, "audit_log.jsonl", changed.into_bytes()), None, Some(&policy));
        assert_eq!((report.status, failed(&report)), (Status::Invalid, vec!["audit_log.jsonl"]));
        message(&report, "audit_log.jsonl").to_owned()
    };
    for (at, event) in events.iter().enumerate() {
        let mut deleted = lines.clone();
        deleted.remove(at);
        let said = found(&deleted);
        assert!(
            said.contains(&format!("line {}, event {event},", at + 1)) && said.contains("missing"),
            "{said}"
        );
        let said = found(&lines[..at]);
        assert!(said.starts_with(&format!("it is cut short: line {}, event {event},", at + 1)), "{said}");
        if let Some(next) = events.get(at + 1) {
            let mut swapped = lines.clone();
            swapped.swap(at, at + 1);
            let said = found(&swapped);
            assert!(said.contains(&format!("events {event} and {next}, are swapped")), "{said}");
        }
    }

    // The same in the record itself, whose chain says so without the manifest.
    let export = text(&files, "run.export").to_owned();
    let lines: Vec<&str> = export.lines().collect();
    let first = lines.iter().position(|line| line.contains("\"seq\":1,")).unwrap();
    let last = events.last().unwrap();
    let record = |lines: &[&str]| {
        let changed: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let report = check(&with(&files, "run.export", changed.into_bytes()), None, Some(&policy));
        report.record.unwrap().failure.unwrap()
    };
    for event in 1..*last {
        let at = first + usize::try_from(event).unwrap() - 1;
        let mut deleted = lines.clone();
        deleted.remove(at);
        assert_eq!(record(&deleted).seq, Some(event), "deleted");
        let mut swapped = lines.clone();
        swapped.swap(at, at + 1);
        assert_eq!(record(&swapped).seq, Some(event), "swapped");
    }
}

#[test]
fn a_pack_that_somebody_else_signed_is_not_believed() {
    let (files, policy) = record(TRANSFER, STRICT).pack();
    let (others, other) = record(TRANSFER, STRICT).pack();
    assert_ne!(check(&files, None, Some(&other)).status, Status::Valid);
    // Manifest and note of another run.
    let mixed = with(&files, "evidence_manifest.json", file(&others, "evidence_manifest.json").to_vec());
    let mixed = with(&mixed, "evidence_manifest.note", file(&others, "evidence_manifest.note").to_vec());
    let report = check(&mixed, None, Some(&policy));
    assert!(failed(&report).contains(&"run.export") && failed(&report).contains(&"audit_log.jsonl"));

    // Written anew as a whole by somebody who has all files and a key, but not the writer's.
    let forger = NoteSigner::from_seed("portcullis/forger", KeyKind::Ed25519, &[7; 32]).unwrap();
    let mut manifest: Manifest = serde_json::from_slice(file(&files, "evidence_manifest.json")).unwrap();
    let nicer = b"# Residual risks\n\nNone.\n".to_vec();
    let hash = manifest.artifacts.iter_mut().find(|file| file.name == "residual_risk_summary.md").unwrap();
    (hash.bytes, hash.sha256) = (nicer.len() as u64, sha256(&nicer));
    manifest.key = forger.verifier().to_string();
    let bytes = serde_json::to_vec_pretty(&manifest).unwrap();
    let note = sign(&manifest, &bytes, &forger).unwrap();
    let forged = with(&files, "residual_risk_summary.md", nicer);
    let forged = with(&forged, "evidence_manifest.json", bytes);
    let forged = with(&forged, "evidence_manifest.note", note.into_bytes());
    let report = check(&forged, None, Some(&policy));
    assert_eq!((report.status, report.signed, report.failed().count()), (Status::Incomplete, false, 0));
    let note = report.files.iter().find(|file| file.file.ends_with(".note")).unwrap();
    assert!(
        note.result == FileResult::NotChecked && note.message.contains("not that of the run's writer"),
        "{note:?}"
    );

    // Without anything to believe nothing vouches for the pack, and it says so.
    let report = check(&files, None, None);
    assert_eq!((report.status, report.signed), (Status::Incomplete, false));
    let note = report.files.iter().find(|file| file.file.ends_with(".note")).unwrap();
    assert!(note.message.contains("could be anyone's"), "{note:?}");
}

/// Whole packs as files: `specs/vectors/packs`.
#[test]
fn every_pack_among_the_vectors_gets_its_answer() {
    let folder = project().join("specs/vectors/packs");
    let vectors = std::fs::read(folder.join("vectors.json")).unwrap();
    let vectors: Vec<Value> = serde_json::from_slice(&vectors).unwrap();
    assert_eq!(vectors.len(), 23);
    for vector in &vectors {
        let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
        let mut words = vec!["governance".to_owned(), "--check".to_owned()];
        words.push(path(vector["file"].as_str().unwrap()));
        if let Some(policy) = vector["policy"].as_str() {
            words.extend(["--trust".to_owned(), path(policy)]);
        }
        words.push("--json".to_owned());
        let ran = run(&words.iter().map(String::as_str).collect::<Vec<_>>());
        let [said] = ran.json().try_into().unwrap();
        let report = &said["report"];
        assert_eq!(ran.code, vector["exit_code"], "{vector}\n{report:#}{}", ran.stderr);
        assert_eq!(
            (&report["status"], &report["signed"]),
            (&vector["status"], &vector["signed"]),
            "{vector}"
        );
        let files = report["files"].as_array().unwrap();
        let failed: Vec<&Value> = files.iter().filter(|file| file["result"] == "fail").collect();
        let wanted = vector["failed"].as_array().unwrap();
        assert_eq!(failed.len(), wanted.len(), "{vector}\n{report:#}");
        for (failed, wanted) in failed.iter().zip(wanted) {
            assert_eq!(failed["file"], wanted["file"], "{vector}");
            let message = failed["message"].as_str().unwrap();
            assert!(message.contains(wanted["found"].as_str().unwrap()), "{vector}: {message}");
        }
    }
}
