//! `cargo xtask dogwood`: decisions under rules about the past, beside those of another engine.
//!
//! Dogwood is Cedar with conditions on the past; its engine is a crate of its own and needs another version of Cedar than
//! the gate does. So there are two programs, which take turns: `crates/portcullis-session/benches/beside.rs` and
//! `peers/dogwood`. Both print what they decided on the same calls, which has to be the same, and what it took.

use serde_json::Value;

use crate::process::{Failure, Program, Result};

/// How many rules.
const RULES: [usize; 4] = [10, 100, 1_000, 10_000];
/// Each is measured so often.
const ROUNDS: usize = 3;
/// The other engine's workspace.
const MANIFEST: &str = "peers/dogwood/Cargo.toml";
const TARGET: &str = "target";

/// Builds both, measures and prints a table.
///
/// # Errors
/// A program cannot be built or fails, or the two decide differently.
pub(crate) fn run() -> Result<()> {
    theirs(None).run()?;
    Program::cargo(["bench", "--locked", "-p", "portcullis-session", "--bench", "beside", "--no-run"])
        .run()?;
    println!("p50 of {ROUNDS} rounds that take turns; flush: fdatasync of 4 KiB in the same minute");
    println!(
        "{:>7}  {:>26}  {:>26}  {:>26}  {:>26}  {:>20}",
        "rules", "ours, in memory", "Dogwood, in memory", "ours, durable", "Dogwood, durable", "flush"
    );
    for rules in RULES {
        let mut columns = [const { Vec::new() }; 5];
        for _ in 0..ROUNDS {
            let theirs = measured(theirs(Some(rules)))?;
            let ours = measured(ours(rules))?;
            if ours.get("verdicts") != theirs.get("verdicts") {
                return Err(Failure::new(format!("with {rules} rules the two engines decide differently")));
            }
            let figures = [
                time(&ours, "memory"),
                time(&theirs, "memory"),
                time(&ours, "durable"),
                time(&theirs, "durable"),
                time(&ours, "fdatasync"),
            ];
            for (column, figure) in columns.iter_mut().zip(figures) {
                column.push(figure);
            }
        }
        let [one, two, three, four, five] = columns.map(|column| column.join(", "));
        println!("{rules:>7}  {one:>26}  {two:>26}  {three:>26}  {four:>26}  {five:>20}");
    }
    Ok(())
}

fn ours(rules: usize) -> Program {
    let bench = ["bench", "--locked", "--quiet", "-p", "portcullis-session", "--bench", "beside", "--"];
    Program::cargo(bench).args([rules.to_string()])
}

/// The other engine: built, or asked.
fn theirs(rules: Option<usize>) -> Program {
    let what = if rules.is_some() { "run" } else { "build" };
    let program =
        Program::cargo([what, "--release", "--locked", "--manifest-path", MANIFEST, "--target-dir", TARGET]);
    match rules {
        Some(rules) => program.args(["--quiet", "--", &rules.to_string()]),
        None => program,
    }
}

fn measured(program: Program) -> Result<Value> {
    let line = program.output()?;
    serde_json::from_str(&line).map_err(|error| Failure::new(format!("no figures in `{line}`: {error}")))
}

/// The p50 of a figure, for people.
fn time(figures: &Value, of: &str) -> String {
    match figures.get(of).and_then(|of| of.get("p50_ns")).and_then(Value::as_f64) {
        Some(ns) if ns < 1e6 => format!("{:.1} µs", ns / 1e3),
        Some(ns) => format!("{:.2} ms", ns / 1e6),
        None => "-".to_owned(),
    }
}
