//! The same with things taken away that a machine may not have: namespaces, rights in them, control groups, and the
//! newer ABIs of Landlock.
//!
//! `without.py` takes one away and starts the same test again there.

use std::path::Path;
use std::process::Command;

use portcullis_contain::{ContainError, Level, Profile, probe};

use super::escape::{PYTHON, every_program_at, reaches};
use super::world::{World, contained, invocation};

const INSIDE: &str = "PORTCULLIS_TEST_WITHOUT";

/// Runs `inside` where something is missing. `name` is the test.
fn without(what: &str, name: &str, inside: impl Fn()) {
    if std::env::var_os(INSIDE).is_some() {
        return inside();
    }
    if !reaches(Level::Namespace) {
        return;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/without.py");
    let mut there = Command::new(PYTHON);
    there.arg(script).arg(what).arg(std::env::current_exe().unwrap());
    there.args(["--exact", &format!("without::{name}"), "--nocapture"]).env(INSIDE, "");
    let output = there.output().unwrap();
    let told = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(output.status.success(), "without {what}: {}{}", told[0], told[1]);
    assert!(told[0].contains("1 passed"), "{}", told[0]);
}

/// The probe reaches this level, and names the step on the way to the next one.
fn probe_reaches(level: Level, step: &str) {
    let found = probe(&contained()).unwrap();
    assert_eq!(found.reached, level, "{found:?}");
    assert_eq!(found.failed.as_ref().map(|failed| failed.name.as_str()), Some(step), "{found:?}");
}

/// What needs no more runs at the lower level and says so; what needs more is not run.
fn runs_at_the_process_level_only(step: &str) {
    probe_reaches(Level::Process, step);
    let world = World::make();
    let mut command =
        invocation(&world, "/bin/sh", &["-c".to_owned(), "echo x > made".to_owned()], Level::Process);
    command.level = None;
    let observed = contained().run(&world.profile(Vec::new()), &command).unwrap();
    assert_eq!((observed.level, observed.ended.code()), (Level::Process, 0));
    std::fs::remove_file(world.project().join("made")).unwrap();
    let strict = Profile { level: Level::Namespace, ..world.profile(Vec::new()) };
    match contained().run(&strict, &command).unwrap_err() {
        ContainError::Level { failed, .. } => assert_eq!(failed.name, step),
        other => panic!("{other}"),
    }
    assert!(!world.project().join("made").exists());
}

#[test]
fn user_namespaces() {
    without("user_namespaces", "user_namespaces", || {
        runs_at_the_process_level_only("unshare");
        every_program_at(Level::Process, None);
    });
}

/// As in a container with Docker's filter.
#[test]
fn the_call_for_namespaces() {
    without("unshare", "the_call_for_namespaces", || runs_at_the_process_level_only("unshare"));
}

/// As on Ubuntu: a namespace can be made, and the next step fails.
#[test]
fn rights_in_a_namespace() {
    without("rights", "rights_in_a_namespace", || runs_at_the_process_level_only("setgroups"));
}

/// As in a container with the rights for namespaces, whose `/proc` is masked in parts.
#[test]
fn a_whole_proc() {
    without("proc", "a_whole_proc", || runs_at_the_process_level_only("/proc"));
}

/// As in a container of systemd-nspawn: the table of mounts has lines for what other mounts hide, with other options.
#[test]
fn one_mount_a_path() {
    without("one_mount_a_path", "one_mount_a_path", || {
        let found = probe(&contained()).unwrap();
        assert!(found.reached == Level::Namespace && found.failed.is_none(), "{found:?}");
    });
}

/// No level uses them.
#[test]
fn control_groups() {
    without("control_groups", "control_groups", || every_program_at(Level::Namespace, None));
}

/// Then nothing is run at all.
#[test]
fn landlock() {
    without("landlock", "landlock", || {
        probe_reaches(Level::None, "landlock");
        let world = World::make();
        let mut command = invocation(&world, "/bin/true", &[], Level::Process);
        command.level = None;
        let refused = contained().run(&world.profile(Vec::new()), &command).unwrap_err().to_string();
        assert!(refused.contains("the step `landlock` failed"), "{refused}");
    });
}

#[test]
fn filters_of_calls() {
    without("seccomp", "filters_of_calls", || probe_reaches(Level::None, "seccomp"));
}

#[test]
fn newer_landlock_at_the_process_level() {
    older_landlock(Level::Process);
}

#[test]
fn newer_landlock_at_the_namespace_level() {
    older_landlock(Level::Namespace);
}

/// The oldest one always; with `PORTCULLIS_TEST_LONG=1` those after which a right was added.
fn older_landlock(level: Level) {
    every_program_at(level, Some(1));
    if std::env::var_os("PORTCULLIS_TEST_LONG").is_none() {
        return println!("SKIPPED without PORTCULLIS_TEST_LONG=1: the ABIs 2 to 6");
    }
    for abi in 2..=6 {
        every_program_at(level, Some(abi));
    }
}
