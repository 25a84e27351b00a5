//! What was found out about the gate itself: whether the tests of the bundle hold, at start and after each change of it;
//! how far this machine contains commands; which guards have found something so far.

use std::sync::{Arc, Mutex, PoisonError};

use portcullis_console::marks::Standing;
use portcullis_console::overview::{Gap, Reliance};
use portcullis_core::bundle::Bundle;
use portcullis_core::id::Digest;
use portcullis_core::profile::Level;
use portcullis_session::cases::{CaseFile, run_file};
use portcullis_session::policy::Pipeline;

use super::Seen;
use super::selftest::{self, Tested};
use crate::contained;

/// Before so many decisions of a day, silence says nothing.
const JUDGED_MIN: u64 = 200;
/// Guards that are named.
const NAMED: usize = 6;

/// What is known so far.
#[derive(Debug, Default)]
pub(super) struct Health(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    /// The bundle whose tests run or ran.
    bundle: Option<Digest>,
    tests: Option<Tests>,
    level: Option<Level>,
    guards: Option<Tested>,
}

#[derive(Debug, Clone, Default)]
struct Tests {
    passed: usize,
    failed: usize,
    first: Option<String>,
}

impl Health {
    fn with<T>(&self, look: impl FnOnce(&mut Known) -> T) -> T {
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Finds out what is not known yet about the bundle in force, beside whoever asks.
pub(super) fn look(seen: &Seen) {
    let Ok((_, bundle)) = seen.shared.gate.bundles().get(None) else { return };
    let digest = bundle.digest();
    let due = seen.console.health.with(|known| {
        let due = known.bundle != Some(digest);
        if due {
            (known.bundle, known.tests) = (Some(digest), None);
        }
        due
    });
    if !due {
        return;
    }
    let (console, gate) = (Arc::clone(&seen.console), Arc::clone(&seen.shared.gate));
    tokio::task::spawn_blocking(move || {
        let ends = || *console.closing.borrow();
        if console.health.with(|known| known.level.is_none()) {
            let level = contained::look();
            console.health.with(|known| known.level = Some(level));
        }
        if console.health.with(|known| known.guards.is_none()) {
            let tested = selftest::run(gate.pipeline(), &ends);
            console.health.with(|known| known.guards = Some(tested));
        }
        let Some(files) = gate.bundles().files_of(digest) else { return };
        let found = tests(&bundle, &files, gate.pipeline(), &ends);
        console.health.with(|known| {
            if known.bundle == Some(digest) {
                known.tests = Some(found);
            }
        });
    });
}

fn tests(
    bundle: &Bundle,
    files: &super::desk::Files,
    pipeline: &Arc<Pipeline>,
    ends: &dyn Fn() -> bool,
) -> Tests {
    let mut all = Tests::default();
    for (path, text) in bundle.tests.iter().take_while(|_| !ends()) {
        let Ok(file) = CaseFile::parse(text) else { continue };
        let report = run_file(&file, files, pipeline);
        all.passed += report.passed;
        all.failed += report.failed.len();
        if let (None, Some(first)) = (&all.first, report.mismatches.first()) {
            all.first = Some(format!("{path}:{}: {}", first.line, first.message));
        }
    }
    all
}

/// What of it bears on whether the gate can be relied on.
pub(super) fn reliance(seen: &Seen) -> Vec<Reliance> {
    look(seen);
    let (tests, level, guards) =
        seen.console.health.with(|known| (known.tests.clone(), known.level, known.guards.clone()));
    let row = |what, standing, word: &str, detail: String| Reliance {
        what,
        standing,
        word: word.to_owned(),
        detail,
    };
    let tests = match tests {
        None => {
            row("Bundle’s tests", Standing::Idle, "runs", "the tests of the bundle are being run".to_owned())
        }
        Some(Tests { passed: 0, failed: 0, .. }) => row(
            "Bundle’s tests",
            Standing::Alert,
            "none",
            "the bundle has no tests that show its guards firing".to_owned(),
        ),
        Some(Tests { passed, failed: 0, .. }) => row(
            "Bundle’s tests",
            Standing::Ok,
            "holds",
            format!("{passed} cases of the bundle get the verdicts that they must get"),
        ),
        Some(Tests { passed, failed, first }) => row(
            "Bundle’s tests",
            Standing::Bad,
            "fails",
            format!("{failed} of {} cases; the first: {}", passed + failed, first.unwrap_or_default()),
        ),
    };
    let contained = match level {
        None => {
            row("Containment", Standing::Idle, "not known yet", "this machine is being looked at".to_owned())
        }
        Some(Level::None) => row(
            "Containment",
            Standing::Alert,
            "none",
            "commands are not contained here, and judged by their text alone; `portcullis doctor` says why"
                .to_owned(),
        ),
        Some(level) => row(
            "Containment",
            Standing::Ok,
            level.as_str(),
            "what is permitted is all that a contained command can do".to_owned(),
        ),
    };
    vec![guards_tested(guards), tests, contained]
}

/// What the test of all guards at start came to.
fn guards_tested(guards: Option<Tested>) -> Reliance {
    let row =
        |standing, word: &str, detail| Reliance { what: "Guards", standing, word: word.to_owned(), detail };
    let Some(tested) = guards else {
        return row(Standing::Idle, "tested now", "each guard is tested once at start".to_owned());
    };
    if let Some((guard, why)) = tested.unsound.first() {
        let all = tested.sound + tested.unsound.len();
        let detail = format!(
            "{} of {all} guards do not do what their cases say; `{guard}`: {why}. Do not rely on this build.",
            tested.unsound.len()
        );
        return row(Standing::Bad, "fail", detail);
    }
    let left_out = match tested.left_out {
        0 => String::new(),
        count => format!("; {count} that run programs are tested with the bundle"),
    };
    let detail = format!(
        "{} guards fired and kept silent as their {} cases say, at start{left_out}",
        tested.sound, tested.cases
    );
    row(Standing::Ok, "hold", detail)
}

/// Guards that have found nothing so far.
pub(super) fn silent(seen: &Seen) -> Option<Gap> {
    let fired = seen.console.tally.fired();
    // A guard's rules begin with its name; a reason of the gate itself is `gate/` and the name.
    let spoke = |guard: &str| {
        let reserved = format!("gate/{}", guard.replace('/', "-"));
        fired.iter().any(|rule| {
            *rule == reserved
                || rule.strip_prefix(guard).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    };
    let guards: Vec<&str> = seen.shared.gate.pipeline().guards().map(|guard| guard.meta().id).collect();
    let silent: Vec<&str> = guards.iter().copied().filter(|guard| !spoke(guard)).collect();
    if seen.console.tally.decisions() < JUDGED_MIN || silent.is_empty() {
        return None;
    }
    let more = silent.len().saturating_sub(NAMED);
    let named: Vec<&str> = silent.iter().copied().take(NAMED).collect();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let detail =
        format!("of {} have found nothing since the gate started: {}{more}", guards.len(), named.join(", "));
    Some(Gap { what: "Guards", count: silent.len() as u64, detail, mended_at: None })
}
