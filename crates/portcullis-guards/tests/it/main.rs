//! Runs every Markdown case under `tests/cases` against the bundle that ships.

#![cfg(test)]

mod contracts;
mod laws;
mod security_texts;

#[path = "../../../../engines/for_tests.rs"]
mod engine;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use portcullis_core::verdict::Verdict;
use portcullis_session::bundle_dir;
use portcullis_session::cases::{CaseFile, run_file};

fn path(relative: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(relative)
}

fn case_files() -> Vec<(String, CaseFile)> {
    let mut files: Vec<_> = std::fs::read_dir(path("tests/cases"))
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            let text = std::fs::read_to_string(&path).unwrap();
            let file = CaseFile::parse(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            (name, file)
        })
        .collect();
    files.sort_by(|a, b| a.0.cmp(&b.0));
    files
}

#[test]
fn every_case_gets_its_verdicts() {
    engine::put_into(std::env::current_exe().unwrap().parent().unwrap());
    let base = bundle_dir::read_files(&path("../../examples/bundle")).unwrap();
    let pipeline = Arc::new(portcullis_session::policy::pipeline());
    let mut problems = Vec::new();
    let mut passed = 0;
    for (name, file) in case_files() {
        let report = run_file(&file, &base, &pipeline);
        passed += report.passed;
        problems.extend(
            report.mismatches.iter().map(|m| format!("{name}.md:{}: {}: {}", m.line, m.case, m.message)),
        );
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(passed >= 30, "only {passed} cases ran");
}

/// Each guard has a file of its own with a case in which its rule is the headline and one in which a call is
/// allowed.
#[test]
fn every_guard_is_seen_firing_and_silent() {
    let files = case_files();
    for guard in portcullis_guards::catalogue() {
        let id = guard.meta().id;
        let stem = match id.rsplit_once('/') {
            _ if id == "runtime-policy" => "ladder".to_owned(),
            Some((_, stem)) => stem.replace('-', "_"),
            None => id.replace('-', "_"),
        };
        let (_, file) =
            files.iter().find(|(name, _)| *name == stem).unwrap_or_else(|| panic!("no {stem}.md"));
        let expectations: Vec<_> =
            file.cases.iter().flat_map(|case| &case.steps).filter_map(|step| step.expect.as_ref()).collect();
        let own = |rule: &str| rule.starts_with(id);
        assert!(expectations.iter().any(|e| e.rule.as_deref().is_some_and(own)), "{id} is never seen firing");
        assert!(expectations.iter().any(|e| e.verdict == Verdict::Allow), "{id} is never seen silent");
    }
}
