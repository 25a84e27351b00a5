//! `cargo xtask test`: everything that continuous integration runs.
//!
//! Every step runs even when one before it failed, so that one run shows all there is to mend. At the end stands a
//! table of durations, then the command that repeats each failed step, then one line that counts: the tests of
//! `cargo test` one by one, every other step as one.

use std::time::{Duration, Instant};

use crate::docs;
use crate::engine;
use crate::fuzz;
use crate::mutants;
use crate::package;
use crate::peers;
use crate::process::{Failure, Program, Result};
use crate::programs;
use crate::tidy;

/// What the whole suite may take from nothing on two cores; a run that takes longer says so.
const BUDGET: Duration = Duration::from_secs(40 * 60);

/// Set for the tests when the long ones are asked for.
const LONG_TESTS: &str = "PORTCULLIS_TEST_LONG";

/// Set for the tests so that those against foreign peers fail, rather than being skipped, when the peers are missing.
const PEERS_DEMANDED: &str = "PORTCULLIS_TEST_PEERS";

/// How many things passed and failed.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Count {
    passed: u64,
    failed: u64,
}

struct Step {
    name: &'static str,
    repeat: String,
    work: Box<dyn FnOnce() -> (Count, Result<()>)>,
}

struct Done {
    name: &'static str,
    repeat: String,
    took: Duration,
    count: Count,
    failure: Option<Failure>,
}

/// Clippy as it is run everywhere.
pub(crate) fn clippy() -> Program {
    Program::cargo(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"])
}

/// Runs every step and prints what came of it; whether all passed. The line that counts is the last that is printed.
pub(crate) fn run(long: bool) -> bool {
    let steps = steps(long);
    let total = steps.len();
    let mut done = Vec::with_capacity(total);
    for (index, step) in steps.into_iter().enumerate() {
        println!("\n== {}/{total} {}: {}", index + 1, step.name, step.repeat);
        let start = Instant::now();
        let (count, outcome) = (step.work)();
        let took = start.elapsed();
        let failure = outcome.err();
        match &failure {
            None => println!("== {} passed in {}", step.name, seconds(took)),
            Some(why) => println!("== {} FAILED after {}: {why}", step.name, seconds(took)),
        }
        done.push(Done { name: step.name, repeat: step.repeat, took, count, failure });
    }
    print!("{}", summary(&done));
    done.iter().all(|step| step.failure.is_none())
}

fn steps(long: bool) -> Vec<Step> {
    let mut steps = vec![
        program("format", || Program::cargo(["fmt", "--all", "--check"])),
        one("tidy", "cargo xtask tidy", tidy::run),
        program("clippy", clippy),
        one("engine", "cargo xtask engine", engine::check),
        if long {
            one("peers", "cargo xtask peers --all", peers::install_all)
        } else {
            one("peers", "cargo xtask peers", peers::install)
        },
        program("peer scripts", peers::self_test),
        one("programs", "cargo xtask programs", programs::install),
        Step {
            name: "tests",
            repeat: typed(&cargo_test(long), long),
            work: Box::new(move || tests(cargo_test(long))),
        },
        one("docs", "cargo xtask docs --check", docs::check),
        one("packages", "cargo xtask package --check", || package::run(&["--check"])),
        if long {
            one("fuzz", "cargo xtask fuzz", || fuzz::long(None))
        } else {
            one("fuzz", "cargo xtask fuzz --smoke", fuzz::smoke)
        },
    ];
    if long {
        steps.push(one("release", "cargo xtask package --check --release", || {
            package::run(&["--check", "--release"])
        }));
        steps.extend(package::foreign_targets().map(|triple| {
            let repeat = format!("cargo xtask package --check --target {triple}");
            one("other machine", &repeat, move || package::run(&["--check", "--target", triple]))
        }));
        steps.push(one("mutants", "cargo xtask mutants", || mutants::run(None)));
    }
    steps
}

fn one(name: &'static str, repeat: &str, work: impl FnOnce() -> Result<()> + 'static) -> Step {
    let counted = move || {
        let outcome = work();
        (Count { passed: outcome.is_ok().into(), failed: outcome.is_err().into() }, outcome)
    };
    Step { name, repeat: repeat.to_owned(), work: Box::new(counted) }
}

fn program(name: &'static str, make: fn() -> Program) -> Step {
    let counted = move || {
        let outcome = make().run();
        (Count { passed: outcome.is_ok().into(), failed: outcome.is_err().into() }, outcome)
    };
    Step { name, repeat: make().shown(), work: Box::new(counted) }
}

fn cargo_test(long: bool) -> Program {
    let program = Program::cargo(["test", "--workspace", "--no-fail-fast"]).env(PEERS_DEMANDED, "1");
    if long { program.env(LONG_TESTS, "1") } else { program }
}

fn typed(program: &Program, long: bool) -> String {
    if long { format!("{LONG_TESTS}=1 {}", program.shown()) } else { program.shown() }
}

/// Runs `cargo test`, passing on what it prints and adding up its results.
fn tests(program: Program) -> (Count, Result<()>) {
    let mut count = Count::default();
    let outcome = program.lines(|line| {
        println!("{line}");
        if let Some(result) = test_result(line) {
            count.passed += result.passed;
            count.failed += result.failed;
        }
    });
    if outcome.is_err() && count.failed == 0 {
        // It did not build, or a test took its whole process down.
        count.failed = 1;
    }
    (count, outcome)
}

/// Reads `test result: ok. 3 passed; 1 failed; ...`.
fn test_result(line: &str) -> Option<Count> {
    let (_, numbers) = line.strip_prefix("test result: ")?.split_once(". ")?;
    let mut parts = numbers.split("; ");
    let passed = parts.next()?.strip_suffix(" passed")?.parse().ok()?;
    let failed = parts.next()?.strip_suffix(" failed")?.parse().ok()?;
    Some(Count { passed, failed })
}

fn summary(done: &[Done]) -> String {
    let total: Duration = done.iter().map(|step| step.took).sum();
    let mut text = String::from("\nstep            result       time\n");
    for step in done {
        let result = if step.failure.is_none() { "passed" } else { "FAILED" };
        text.push_str(&format!("{:<15} {result:<6} {:>10}\n", step.name, seconds(step.took)));
    }
    text.push_str(&format!("{:<15} {:<6} {:>10}\n", "all", "", seconds(total)));
    if total > BUDGET {
        text.push_str(&format!(
            "this is over the budget of {} for a cold run on two cores\n",
            seconds(BUDGET)
        ));
    }
    for step in done {
        if let Some(why) = &step.failure {
            text.push_str(&format!("\n{} failed: {why}\n  to repeat: {}\n", step.name, step.repeat));
        }
    }
    let passed: u64 = done.iter().map(|step| step.count.passed).sum();
    let failed: u64 = done.iter().map(|step| step.count.failed).sum();
    text.push_str(&format!("\n{passed} passed, {failed} failed\n"));
    text
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_line_that_closes_a_test_binary() {
        let line = "test result: FAILED. 12 passed; 3 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.1s";
        assert_eq!(test_result(line), Some(Count { passed: 12, failed: 3 }));
        assert_eq!(test_result("test result: something else"), None);
        assert_eq!(test_result("test a::b ... ok"), None);
    }

    #[test]
    fn the_last_line_counts_and_failures_say_how_to_repeat() {
        let step = |name, count, failure: Option<&str>| Done {
            name,
            repeat: format!("cargo {name}"),
            took: Duration::from_millis(1500),
            count,
            failure: failure.map(Failure::new),
        };
        let text = summary(&[
            step("tidy", Count { passed: 0, failed: 1 }, Some("2 problems")),
            step("tests", Count { passed: 41, failed: 0 }, None),
        ]);
        assert_eq!(text.lines().last(), Some("41 passed, 1 failed"));
        assert!(text.contains("tidy failed: 2 problems\n  to repeat: cargo tidy"), "{text}");
        assert!(text.contains("all                         3.0 s"), "{text}");
    }

    #[test]
    fn a_program_that_dies_without_a_result_counts_as_one_failure() {
        let (count, outcome) = tests(Program::new("false"));
        assert!(outcome.is_err());
        assert_eq!(count, Count { passed: 0, failed: 1 });
    }
}
