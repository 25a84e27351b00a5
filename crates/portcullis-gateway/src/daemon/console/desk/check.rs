//! What a change of the bundle would mean, before it is saved: mistakes, differences of files and of parts, lints, tests,
//! and what recorded runs would have met.

use std::collections::BTreeSet;
use std::sync::Arc;

use portcullis_console::diff::{FileDiff, of_texts};
use portcullis_console::outcome::{Linted, Outcome, Tests};
use portcullis_core::bundle::{Bundle, Lint};
use portcullis_session::cases::{CaseFile, run_file};
use portcullis_session::policy::{self, Pipeline};

use super::super::Seen;
use super::{Changes, Files, Standing, backtest, short};

/// Failures of tests that are shown.
const FAILURES_MAX: usize = 20;

/// A change that was checked.
#[derive(Debug)]
pub(in super::super) struct Checked {
    /// The digest of the files that it would make.
    pub(in super::super) after: String,
    /// The bundle that it would make, if it loads.
    pub(in super::super) bundle: Option<Arc<Bundle>>,
    /// For people.
    pub(in super::super) outcome: Outcome,
}

/// How much is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Depth {
    /// Whether it loads, and what differs.
    Files,
    /// Tests and recorded runs as well.
    Runs,
}

/// Checks a change.
pub(in super::super) async fn check(
    seen: &Seen,
    standing: &Standing,
    changes: &Changes,
    depth: Depth,
) -> Result<Checked, String> {
    let pipeline = Arc::clone(seen.shared.gate.pipeline());
    let (of, what) = (standing.clone(), changes.clone());
    let checked = tokio::task::spawn_blocking(move || checked(&of, &what, &pipeline, depth)).await;
    let mut checked = checked.map_err(|error| error.to_string())?;
    if depth == Depth::Runs
        && let Some(bundle) = &checked.bundle
        && bundle.digest() != standing.bundle.digest()
    {
        checked.outcome.backtest = backtest::over_recorded(seen, &standing.bundle, bundle).await;
    }
    Ok(checked)
}

fn checked(standing: &Standing, changes: &Changes, pipeline: &Arc<Pipeline>, depth: Depth) -> Checked {
    let files = standing.with(changes);
    let after = Bundle::digest_of(&files).to_string();
    let mut outcome = Outcome {
        from: short(&standing.digest()).to_owned(),
        to: short(&after).to_owned(),
        diffs: differences(&standing.files, &files),
        ..Outcome::default()
    };
    let bundle = match policy::load(&files) {
        Ok(bundle) => bundle,
        Err(mistakes) => {
            for mistake in &mistakes {
                let text = files.get(&mistake.file).map(|bytes| String::from_utf8_lossy(bytes).into_owned());
                outcome.sources.extend(text.map(|text| (mistake.file.clone(), text)));
            }
            outcome.mistakes = mistakes;
            return Checked { after, bundle: None, outcome };
        }
    };
    outcome.parts = standing.bundle.differences(&bundle);
    outcome.lints = lints(&standing.bundle, &bundle);
    if depth == Depth::Runs && after != standing.digest() {
        outcome.tests = Some(tests(&bundle, &files, pipeline));
    }
    Checked { after, bundle: Some(Arc::new(bundle)), outcome }
}

/// The difference of each file that differs.
pub(in super::super) fn differences(old: &Files, new: &Files) -> Vec<FileDiff> {
    let paths: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let text = |files: &Files, path: &String| {
        files.get(path).map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    };
    paths
        .into_iter()
        .filter(|path| old.get(*path) != new.get(*path))
        .map(|path| of_texts(path, text(old, path).as_deref(), text(new, path).as_deref()))
        .collect()
}

/// All lints of a bundle.
pub(in super::super) fn all_lints(bundle: &Bundle) -> Vec<Lint> {
    let mut lints = bundle.lint();
    lints.extend(portcullis_access::lint(bundle));
    lints.extend(portcullis_guards::contracts::lint(bundle));
    lints
}

/// The lints of the new bundle, those that the old one does not have first.
fn lints(old: &Bundle, new: &Bundle) -> Vec<Linted> {
    let known: BTreeSet<(&'static str, String)> =
        all_lints(old).into_iter().map(|lint| (lint.name, lint.diagnostic.message)).collect();
    let mut lints: Vec<Linted> = all_lints(new)
        .into_iter()
        .map(|lint| Linted { new: !known.contains(&(lint.name, lint.diagnostic.message.clone())), lint })
        .collect();
    lints.sort_by_key(|linted| !linted.new);
    lints
}

fn tests(bundle: &Bundle, files: &Files, pipeline: &Arc<Pipeline>) -> Tests {
    let mut tests = Tests::default();
    for (path, text) in &bundle.tests {
        let Ok(file) = CaseFile::parse(text) else { continue };
        let report = run_file(&file, files, pipeline);
        tests.passed += report.passed;
        tests.failed += report.failed.len();
        let room = FAILURES_MAX.saturating_sub(tests.failures.len());
        let failure = |found: &portcullis_session::cases::Mismatch| {
            (format!("{path}:{}", found.line), format!("{}: {}", found.case, found.message))
        };
        tests.failures.extend(report.mismatches.iter().take(room).map(failure));
    }
    tests
}
