//! Every guard of the catalogue, tested once at start by the cases that it is developed with: one in which it fires, and one
//! in which it stays silent. A build in which a guard does not do what its page says would otherwise be noticed late.

use std::collections::BTreeSet;
use std::sync::Arc;

use portcullis_session::cases::{CaseFile, run_file};
use portcullis_session::policy::Pipeline;
use portcullis_session::shipped;

/// Guards whose cases start the engine of guard programs, which is a program of its own.
const WITH_ENGINE: [&str; 2] = ["check", "engine"];

macro_rules! cases {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_str!(concat!("../../../../portcullis-guards/tests/cases/", $name, ".md")))),*]
    };
}

/// The cases of each guard.
const CASES: [(&str, &str); 30] = cases![
    "anomaly",
    "args_schema",
    "authority",
    "budget",
    "changed_tool",
    "check",
    "children",
    "contained",
    "contract",
    "disabled_tool",
    "drift",
    "engine",
    "injection",
    "intent",
    "ladder",
    "loop_breaker",
    "more",
    "open_work",
    "own_state",
    "parent",
    "phase",
    "planted_order",
    "refused",
    "sequence",
    "table",
    "unknown_tool",
    "unread",
    "verification",
    "verifier",
    "violations",
];

/// What came of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Tested {
    /// Guards whose cases all hold.
    pub(super) sound: usize,
    /// Cases that held.
    pub(super) cases: usize,
    /// Guards of which one does not hold, with the first that does not.
    pub(super) unsound: Vec<(String, String)>,
    /// Guards that were not tested.
    pub(super) left_out: usize,
}

/// Tests all guards that need nothing else. Where `ends` turns true in between, those that are left are not tested: a
/// daemon that is to end waits for what it does beside.
pub(super) fn run(pipeline: &Arc<Pipeline>, ends: &dyn Fn() -> bool) -> Tested {
    let (base, mut tested) = (shipped::default_bundle(), Tested::default());
    let skipped: BTreeSet<&str> = WITH_ENGINE.into();
    for (name, text) in CASES {
        if ends() || skipped.contains(name) {
            tested.left_out += 1;
            continue;
        }
        match CaseFile::parse(text) {
            Err(error) => tested.unsound.push((name.to_owned(), error.to_string())),
            Ok(file) => {
                let report = run_file(&file, &base, pipeline);
                tested.cases += report.passed;
                match report.mismatches.first() {
                    None => tested.sound += 1,
                    Some(first) => {
                        tested.unsound.push((name.to_owned(), format!("{}: {}", first.case, first.message)))
                    }
                }
            }
        }
    }
    tested
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_guard_is_tested_at_start() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../portcullis-guards/tests/cases");
        let files = std::fs::read_dir(folder).unwrap().count();
        assert_eq!(CASES.len(), files, "cases of a guard are missing in `CASES`");
        let tested = run(&Arc::new(portcullis_session::policy::pipeline()), &|| false);
        assert_eq!(tested.unsound, []);
        assert_eq!(tested.sound + tested.left_out, files);
        assert!(tested.cases > 100, "{tested:?}");
    }
}
