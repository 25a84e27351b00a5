//! `cargo xtask mutants`: does a test fail for whatever is changed in the verifier?
//!
//! cargo-mutants changes the code of `portcullis-proof` in one place at a time (another operator, a function that
//! answers at once, an arm of a match that is gone) and runs the crate's tests. A mutant that no test fails for is a
//! hole in the tests, unless nobody can tell it from the code: those are listed with the reason in [`LIST`], and the
//! list is held to both ways. It names mutants by file, change and function, never by line, so that it outlives what
//! is written above them; of several alike in one function, by their number from the top.
//!
//! One run of the tests takes longer than one build, and a mutant is killed by the first test that fails. So cargo
//! calls us in place of the tests' programs ([`runner`]): the quick ones run first, and the first that fails ends it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use crate::fuzz;
use crate::process::{Failure, Program, Result, doing, root};

/// Another version makes other mutants and calls them by other names.
const VERSION: &str = "27.1.0";

const CRATE: &str = "crates/portcullis-proof";

/// The survivors that are known, with the reasons.
const LIST: &str = "crates/portcullis-proof/mutants.toml";

/// Set for the tests' programs, and so for ourselves when cargo calls us in place of them.
const RUNS: &str = "PORTCULLIS_XTASK_RUNS_TESTS";

/// Where the names of slow tests have something in common: these run when all others have passed.
const SLOW: &[&str] = &["tamper::", "second::", "simulation::", "a_tree_that_begins_otherwise"];

/// How cargo-mutants ends when it came to the end: all were caught, some survived, some ran out of time.
const ENDED: &[i32] = &[0, 2, 3];

/// The files that cargo-mutants leaves, one mutant a line.
const CAUGHT: &str = "caught.txt";
const MISSED: &str = "missed.txt";
const TIMED_OUT: &str = "timeout.txt";
const UNVIABLE: &str = "unviable.txt";

/// Runs the mutants of every file of the verifier, or of the one that is named from `src/`.
///
/// # Errors
/// A survivor that is not on the list, an entry of the list that does not survive, or a run that did not end.
pub(crate) fn run(file: Option<&str>) -> Result<()> {
    let listed = doing(&format!("read `{LIST}`"), fs::read_to_string(root().join(LIST)))?;
    let listed = survivors(&listed)?;
    let tool = tool()?;
    let ourselves = doing("find the program that runs", std::env::current_exe())?;
    let runner = format!("CARGO_TARGET_{}_RUNNER", fuzz::host()?.replace(['-', '.'], "_").to_uppercase());
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let mut program = Program::new(tool)
        .args(["mutants", "--package", "portcullis-proof", "--profile", "mutants", "--output", "target"])
        .args(["--colors", "never", "--jobs", &jobs.to_string()])
        .env(&runner, ourselves)
        .env(RUNS, "1")
        // A test that fails has done its work; a smaller input that fails too is for a person.
        .env("PROPTEST_MAX_SHRINK_ITERS", "0");
    if let Some(file) = file {
        program = program.args(["--file", &format!("{CRATE}/src/{file}")]);
    }
    // Benchmarks and examples in comments are no tests.
    let code = program.args(["--", "--lib", "--test", "it"]).code()?;
    if !ENDED.contains(&code) {
        return Err(Failure::new(format!("cargo-mutants ended with {code}; see `target/mutants.out/log`")));
    }
    let outcome = Outcome::read(&root().join("target/mutants.out"))?;
    println!("mutants: {}", outcome.counts());
    let problems = compare(&listed, &outcome, file);
    for problem in &problems {
        println!("{problem}");
    }
    if problems.is_empty() {
        Ok(())
    } else {
        Err(Failure::new(format!("{} mutants are not as `{LIST}` says", problems.len())))
    }
}

/// The program, installed in `target/tools` where it is not there already.
fn tool() -> Result<PathBuf> {
    let folder = root().join("target/tools");
    let tool = folder.join("bin/cargo-mutants");
    let wanted = format!("cargo-mutants {VERSION}");
    let there =
        |tool: &Path| Program::new(tool).args(["mutants", "--version"]).answer() == Some(wanted.clone());
    if there(&tool) {
        return Ok(tool);
    }
    let own = PathBuf::from("cargo-mutants");
    if there(&own) {
        return Ok(own);
    }
    println!("mutants: installing {wanted} into target/tools");
    let installed = Program::cargo(["install", "cargo-mutants", "--locked", "--version", VERSION, "--root"])
        .args([&folder])
        .run();
    installed.map(|()| tool).map_err(|failure| {
        Failure::new(format!(
            "{failure}; this step needs it: `cargo install cargo-mutants --locked --version {VERSION}`"
        ))
    })
}

/// Where cargo calls us in place of a program of tests: runs it, the quick tests first, until one fails.
pub(crate) fn runner() -> Option<ExitCode> {
    std::env::var_os(RUNS)?;
    let mut arguments = std::env::args_os().skip(1);
    let program = PathBuf::from(arguments.next()?);
    let quick = SLOW.iter().flat_map(|name| ["--skip", name]).collect::<Vec<_>>();
    let passed = passes(&program, &quick).and_then(|passed| Ok(passed && passes(&program, SLOW)?));
    match passed {
        Ok(true) => Some(ExitCode::SUCCESS),
        Ok(false) => Some(ExitCode::FAILURE),
        Err(failure) => {
            eprintln!("xtask: {failure}");
            Some(ExitCode::FAILURE)
        }
    }
}

/// Whether the tests pass that these arguments choose; the first that fails ends the program.
fn passes(program: &Path, arguments: &[&str]) -> Result<bool> {
    let shown = program.display();
    let started = Command::new(program).args(arguments).stdout(Stdio::piped()).spawn();
    let mut child = doing(&format!("start `{shown}`"), started)?;
    if let Some(output) = child.stdout.take() {
        for line in BufReader::new(output).lines() {
            let line = doing(&format!("read from `{shown}`"), line)?;
            println!("{line}");
            if line.starts_with("test ") && line.ends_with(" FAILED") {
                doing(&format!("stop `{shown}`"), child.kill())?;
                break;
            }
        }
    }
    Ok(doing(&format!("wait for `{shown}`"), child.wait())?.success())
}

/// What became of the mutants, by name.
struct Outcome {
    all: BTreeSet<String>,
    missed: BTreeSet<String>,
    caught: usize,
    timed_out: usize,
    unviable: usize,
}

impl Outcome {
    fn read(folder: &Path) -> Result<Outcome> {
        let lines = |name: &str| -> Result<Vec<String>> {
            let text = doing(&format!("read `{name}`"), fs::read_to_string(folder.join(name)))?;
            Ok(text.lines().map(str::to_owned).collect())
        };
        let (caught, missed) = (lines(CAUGHT)?, lines(MISSED)?);
        let (timed_out, unviable) = (lines(TIMED_OUT)?, lines(UNVIABLE)?);
        let names = names(caught.iter().chain(&missed).chain(&timed_out).chain(&unviable))?;
        Ok(Outcome {
            missed: missed.iter().filter_map(|line| names.get(line)).cloned().collect(),
            all: names.into_values().collect(),
            caught: caught.len(),
            timed_out: timed_out.len(),
            unviable: unviable.len(),
        })
    }

    fn counts(&self) -> String {
        format!(
            "{} in all: {} killed, {} killed by running out of time, {} that do not build, {} survived",
            self.all.len(),
            self.caught,
            self.timed_out,
            self.unviable,
            self.missed.len()
        )
    }
}

/// The names that the list uses, by those of cargo-mutants: `…/src/FILE:LINE:COLUMN: CHANGE` is `FILE: CHANGE`, with
/// `#2` and so on where the same is changed again further down.
fn names<'a>(lines: impl Iterator<Item = &'a String>) -> Result<BTreeMap<String, String>> {
    let mut placed = Vec::new();
    for line in lines {
        let place = place(line).ok_or_else(|| Failure::new(format!("`{line}` names no mutant")))?;
        placed.push((place, line));
    }
    placed.sort();
    let (mut names, mut seen) = (BTreeMap::new(), BTreeMap::<String, usize>::new());
    for ((file, _, change), line) in placed {
        let name = format!("{file}: {change}");
        let count = seen.entry(name.clone()).or_default();
        *count += 1;
        let name = if *count == 1 { name } else { format!("{name} #{count}") };
        names.insert(line.clone(), name);
    }
    Ok(names)
}

/// File, line with column, and change.
fn place(line: &str) -> Option<(&str, (u32, u32), &str)> {
    let (place, change) = line.split_once(": ")?;
    let mut parts = place.strip_prefix(CRATE)?.strip_prefix("/src/")?.split(':');
    let file = parts.next()?;
    Some((file, (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?), change))
}

/// The names on the list. Every reason is checked to be there.
fn survivors(text: &str) -> Result<BTreeSet<String>> {
    let table: toml::Table = doing(&format!("read `{LIST}`"), text.parse())?;
    let mut names = BTreeSet::new();
    let groups = table.get("survivors").and_then(toml::Value::as_array).map_or(&[][..], Vec::as_slice);
    for (index, group) in groups.iter().enumerate() {
        let broken = |what: &str| Failure::new(format!("`{LIST}`, survivors, group {}: {what}", index + 1));
        if group.get("why").and_then(toml::Value::as_str).is_none_or(str::is_empty) {
            return Err(broken("`why` is missing: the reason why nobody can tell them from the code"));
        }
        let mutants = group.get("mutants").and_then(toml::Value::as_array);
        for mutant in mutants.ok_or_else(|| broken("`mutants` is missing: their names"))? {
            let name = mutant.as_str().ok_or_else(|| broken("a name is no string"))?;
            if !names.insert(name.to_owned()) {
                return Err(broken(&format!("`{name}` is listed twice")));
            }
        }
    }
    Ok(names)
}

/// Where list and outcome differ.
fn compare(listed: &BTreeSet<String>, outcome: &Outcome, file: Option<&str>) -> Vec<String> {
    let mut problems = Vec::new();
    for name in outcome.missed.difference(listed) {
        problems
            .push(format!("survived: {name}\n  write a test that fails for it, or list it with the reason"));
    }
    let asked = |name: &&String| {
        file.is_none_or(|file| name.strip_prefix(file).is_some_and(|rest| rest.starts_with(": ")))
    };
    for name in listed.difference(&outcome.missed).filter(asked) {
        let what = if outcome.all.contains(name) { "a test fails for it" } else { "there is none such" };
        problems.push(format!("listed: {name}\n  {what}; strike it from the list"));
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str =
        "[[survivors]]\nwhy = \"the same\"\nmutants = [\"log/a.rs: replace < with <= in f #2\"]\n";

    fn outcome(missed: &[&str]) -> Outcome {
        let lines = [
            "crates/portcullis-proof/src/log/a.rs:10:5: replace < with <= in f",
            "crates/portcullis-proof/src/log/a.rs:9:30: replace < with <= in f",
            "crates/portcullis-proof/src/b.rs:1:1: replace g -> Option<u8> with None",
        ]
        .map(str::to_owned);
        let all = names(lines.iter()).unwrap().into_values().collect();
        let missed = missed.iter().map(|name| (*name).to_owned()).collect();
        Outcome { all, missed, caught: 0, timed_out: 0, unviable: 0 }
    }

    #[test]
    fn names_hold_no_lines() {
        let all: Vec<String> = outcome(&[]).all.into_iter().collect();
        let expected = [
            "b.rs: replace g -> Option<u8> with None",
            "log/a.rs: replace < with <= in f",
            "log/a.rs: replace < with <= in f #2",
        ];
        assert_eq!(all, expected);
        assert!(names(["src/main.rs:1:1: replace x".to_owned()].iter()).is_err());
    }

    #[test]
    fn the_list_is_held_to_both_ways() {
        let listed = survivors(GOOD).unwrap();
        let second = "log/a.rs: replace < with <= in f #2";
        assert_eq!(compare(&listed, &outcome(&[second]), None), Vec::<String>::new());
        let other = compare(&listed, &outcome(&["log/a.rs: replace < with <= in f"]), None);
        assert!(other[0].starts_with("survived: log/a.rs: replace < with <= in f\n"), "{other:?}");
        assert!(
            other[1].starts_with("listed: log/a.rs: replace < with <= in f #2\n  a test fails"),
            "{other:?}"
        );
        assert_eq!(compare(&listed, &outcome(&[]), Some("b.rs")), Vec::<String>::new());
        let gone = survivors(&GOOD.replace("log/a.rs", "log/c.rs")).unwrap();
        assert!(
            compare(&gone, &outcome(&[]), None)[0].ends_with("there is none such; strike it from the list")
        );
    }

    #[test]
    fn a_survivor_needs_a_reason() {
        assert!(survivors(&GOOD.replace("the same", "")).is_err());
        assert!(survivors(&GOOD.replace("mutants", "mutant")).is_err());
        assert!(survivors(&format!("{GOOD}{GOOD}")).is_err());
    }

    #[test]
    fn the_list_can_be_read() {
        let text = fs::read_to_string(root().join(LIST)).unwrap();
        for name in survivors(&text).unwrap() {
            let (file, _) = name.split_once(": ").unwrap();
            assert!(root().join(CRATE).join("src").join(file).is_file(), "{name}");
        }
    }

    #[test]
    fn a_program_of_tests_is_run_until_one_fails() {
        let shell = Path::new("/bin/sh");
        assert!(passes(shell, &["-c", "echo test a ... ok"]).unwrap());
        assert!(!passes(shell, &["-c", "exit 101"]).unwrap());
        assert!(!passes(shell, &["-c", "echo test a ... FAILED; exec sleep 600"]).unwrap());
    }
}
