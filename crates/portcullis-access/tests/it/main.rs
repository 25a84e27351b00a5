//! Runs the Markdown cases of the guard against the bundle that ships.

#![cfg(test)]

use std::path::Path;
use std::sync::Arc;

use portcullis_session::bundle_dir;
use portcullis_session::cases::{CaseFile, run_file};

#[test]
fn the_cases_of_the_guard_get_their_verdicts() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(folder.join("tests/cases/guard.md")).unwrap();
    let file = CaseFile::parse(&text).unwrap();
    let base = bundle_dir::read_files(&folder.join("../../examples/bundle")).unwrap();
    let report = run_file(&file, &base, &Arc::new(portcullis_session::policy::pipeline()));
    let problems: Vec<String> =
        report.mismatches.iter().map(|m| format!("guard.md:{}: {}: {}", m.line, m.case, m.message)).collect();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert_eq!(report.passed, 4);
}
