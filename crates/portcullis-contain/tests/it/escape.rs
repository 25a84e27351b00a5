//! Programs that try to get out, each run for real without containment and at each level.
//!
//! A program in `escapes/` leaves with 0 when it got what it wanted and with 7 when it was refused; its first
//! lines say what is expected. `open`: it gets out. `held`: it is refused. `undone`: it is let, and nothing is left of
//! it. `any`: it depends on the machine. `process below 6` is for Landlock before ABI 6. Whatever it says, nothing outside may have changed unless `open` is expected.
//! Root would be let past much of this, so under root the programs run as user 65534.

use std::fs;
use std::path::Path;
use std::process::Command;

use portcullis_contain::{ContainError, Ended, Level, Probe, Profile, Sockets, probe};

use super::expected::is_skipped;
use super::world::{self, World, contained, invocation, programs};

pub(super) const PYTHON: &str = "/usr/bin/python3";
/// The ABI of Landlock from which on nothing else is expected.
const ABI_OF_ALL: u32 = 6;
/// What a program leaves with when it was refused.
const REFUSED: u8 = 7;
/// What one is ended with that makes calls of another architecture.
const KILLED_BY_FILTER: Ended = Ended::Signal(31);

/// A program, with what its first lines say.
struct Escape {
    name: String,
    says: Vec<(String, String)>,
}

impl Escape {
    fn says(&self, key: &str) -> Option<&str> {
        self.says.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str())
    }

    /// What is expected at a level with an ABI of Landlock; without one, with that of this kernel.
    fn expected(&self, level: Level, abi: Option<u32>) -> &str {
        let older = abi.into_iter().flat_map(|abi| abi + 1..=ABI_OF_ALL);
        let mut older = older.filter_map(|newer| self.says(&format!("{level} below {newer}")));
        older.next().or(self.says(level.as_str())).unwrap()
    }
}

fn escapes() -> Vec<Escape> {
    let mut all = Vec::new();
    for entry in fs::read_dir(programs()).unwrap().map(Result::unwrap) {
        let text = fs::read_to_string(entry.path()).unwrap();
        let lines = text.lines().map_while(|line| line.strip_prefix("# ")?.split_once(": "));
        let says: Vec<_> = lines.map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        if !says.is_empty() {
            let name = entry.path().file_stem().unwrap().to_string_lossy().into_owned();
            all.push(Escape { name, says });
        }
    }
    all.sort_by(|one, two| one.name.cmp(&two.name));
    assert!(all.len() >= 150, "{} programs", all.len());
    all
}

/// Whether this machine can run the programs at a level.
pub(super) fn reaches(level: Level) -> bool {
    let Probe { reached, failed, .. } = probe(&contained()).unwrap();
    if is_skipped(level, reached, &format!("{failed:?}")) {
        return false;
    }
    let python = fs::exists(PYTHON).unwrap_or(false);
    assert!(python || std::env::var("CI").is_err(), "CI needs {PYTHON}");
    if !python {
        println!("SKIPPED at `{level}`: no {PYTHON}");
    }
    python
}

/// Runs every program at a level, as with this ABI of Landlock.
pub(super) fn every_program_at(level: Level, abi: Option<u32>) {
    if !reaches(level) {
        return;
    }
    let contained = match abi {
        Some(abi) => contained().as_with_landlock(abi),
        None => contained(),
    };
    let mut problems = Vec::new();
    for escape in escapes() {
        let world = World::make();
        let before = world.state();
        let ports = escape.says("ports").map(|port| port.parse().unwrap()).into_iter().collect();
        let mut command = invocation(&world, PYTHON, &world.arguments(&escape.name), level);
        command.folder = Some(world.project().join(escape.says("folder").unwrap_or("")));
        let sockets = match escape.says("sockets") {
            None => Sockets::None,
            Some("own") => Sockets::Own,
            Some(path) => Sockets::Paths(vec![world.outside().join(path)]),
        };
        let profile = Profile { sockets, ..world.profile(ports) };
        let expected = escape.expected(level, abi);
        let observed = match contained.run(&profile, &command) {
            Ok(observed) => observed,
            Err(error) => {
                if expected != "not run"
                    || !matches!(error, ContainError::Level { .. } | ContainError::Profile(_))
                {
                    problems.push(format!("{}: expected {expected}: {error}", escape.name));
                }
                continue;
            }
        };
        let is_expected = match (expected, observed.ended) {
            ("open" | "undone", Ended::Status(0)) => true,
            ("held", ended) => ended == Ended::Status(REFUSED) || ended == KILLED_BY_FILTER,
            _ => false,
        };
        let mut complain = |what: &str| {
            let said = String::from_utf8_lossy(&observed.stdout).into_owned();
            let errors = String::from_utf8_lossy(&observed.stderr);
            problems.push(format!("{}: {what}: {:?} {said} {errors}", escape.name, observed.ended));
        };
        if !is_expected {
            complain(&format!("expected {expected}"));
        }
        if expected != "open" && world.state() != before {
            complain("something outside changed");
        }
        if !world.traces().is_empty() {
            complain(&format!("left {:?}, {:?}", world.traces(), observed.put_back));
        }
        assert_eq!(observed.level, level);
    }
    assert!(problems.is_empty(), "{level}, ABI {abi:?}:\n{}", problems.join("\n"));
}

#[test]
fn every_escape_has_its_result_at_the_process_level() {
    every_program_at(Level::Process, None);
}

#[test]
fn every_escape_has_its_result_at_the_namespace_level() {
    every_program_at(Level::Namespace, None);
}

/// A program that nothing stops shows nothing by failing.
#[test]
fn every_escape_works_where_nothing_is_contained() {
    if !fs::exists(PYTHON).unwrap_or(false) {
        return println!("SKIPPED: no {PYTHON}");
    }
    for escape in escapes() {
        let world = World::make();
        let mut program = Command::new(PYTHON);
        program.args(world.arguments(&escape.name));
        program.current_dir(world.project().join(escape.says("folder").unwrap_or("")));
        program.env("SECRET_TOKEN", "of the caller").env("LD_PRELOAD", "/none.so");
        world::as_nobody(&mut program);
        let output = program.output().unwrap();
        let expected = escape.says("plain").unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        match expected {
            "open" => assert!(output.status.success(), "{}: {said} {errors}", escape.name),
            _ => assert_eq!(expected, "any", "{}", escape.name),
        }
        world.traces();
    }
}

/// What a level does not hold is said where users read.
#[test]
fn the_manual_has_every_program_with_its_results() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let manual = fs::read_to_string(root.join("docs/contain.md")).unwrap();
    let rows = escapes().into_iter().flat_map(|escape| {
        let name = escape.name.replace('_', " ");
        let result = |level| escape.says(level).unwrap_or("not said").to_owned();
        let now = format!("| {name} | {} | {} |", result("process"), result("namespace"));
        let older = escape.says.iter().filter_map(|(key, result)| {
            let (level, abi) = key.split_once(" below ")?;
            Some(format!("| {name} | {level} | {abi} | {result} |"))
        });
        std::iter::once(now).chain(older).collect::<Vec<_>>()
    });
    let missing: Vec<String> = rows.filter(|row| !manual.lines().any(|line| line == row)).collect();
    assert!(missing.is_empty(), "docs/contain.md lacks:\n{}", missing.join("\n"));
}
