//! What a command may use, what it leaves behind, and what becomes of it when somebody else ends.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use portcullis_contain::{
    Background, ContainError, Ended, Level, Limit, Limits, Observed, Output, Profile, Seen, Watch,
};

use super::escape::{PYTHON, reaches};
use super::world::{World, contained, invocation};

const LEVELS: [Level; 2] = [Level::Process, Level::Namespace];

fn run(world: &World, level: Level, script: &str, limits: Limits) -> Observed {
    let profile = Profile { limits, ..world.profile(Vec::new()) };
    let command = invocation(world, "/bin/sh", &["-c".to_owned(), script.to_owned()], level);
    contained().run(&profile, &command).unwrap()
}

fn limits() -> Limits {
    Limits { wall_seconds: Some(20), output_bytes: Some(64 << 10), ..Limits::default() }
}

fn levels() -> impl Iterator<Item = Level> {
    LEVELS.into_iter().filter(|level| reaches(*level))
}

#[test]
fn statuses_and_signals_are_those_of_the_command() {
    for level in levels() {
        let world = World::make();
        assert_eq!(run(&world, level, "exit 42", limits()).ended, Ended::Status(42));
        let killed = run(&world, level, "kill -TERM $$", limits());
        assert_eq!((killed.ended, killed.ended.code()), (Ended::Signal(15), 143));
        let told = run(&world, level, "echo out; echo err >&2", limits());
        assert_eq!((told.stdout.as_slice(), told.stderr.as_slice()), (&b"out\n"[..], &b"err\n"[..]));
    }
}

#[test]
fn a_program_that_is_missing_or_may_not_be_executed_is_told_apart() {
    for level in levels() {
        let world = World::make();
        let start = |program: &str| {
            contained().run(&world.profile(Vec::new()), &invocation(&world, program, &[], level)).unwrap_err()
        };
        assert!(matches!(start("no-such-program"), ContainError::Start { missing: true, .. }));
        let outside = world.outside().join("program").display().to_string();
        let refused = start(&outside);
        assert!(matches!(refused, ContainError::Start { missing: false, .. }), "{refused}");
        assert!(refused.to_string().contains("--read DIR"), "{refused}");
    }
}

#[test]
fn time_ends_everything() {
    for level in levels() {
        let world = World::make();
        let short = Limits { wall_seconds: Some(1), ..limits() };
        let begun = Instant::now();
        let observed = run(&world, level, "sleep 30 & sleep 30", short);
        assert!(begun.elapsed() < Duration::from_secs(10));
        assert_eq!((observed.limits, observed.ended.code()), (vec![Limit::Wall], 137));
    }
}

#[test]
fn processor_time_and_file_size_are_held() {
    for level in levels() {
        let world = World::make();
        let cpu = run(&world, level, "while :; do :; done", Limits { cpu_seconds: Some(1), ..limits() });
        assert_eq!(cpu.limits, [Limit::Cpu], "{cpu:?}");
        assert!(cpu.cpu_ms >= 500, "{cpu:?}");
        let script = "exec head -c 100000 /dev/zero > large";
        let large = run(&world, level, script, Limits { file_bytes: Some(4096), ..limits() });
        assert_eq!(large.limits, [Limit::FileSize], "{large:?}");
        assert_eq!(fs::metadata(world.project().join("large")).unwrap().len(), 4096);
    }
}

#[test]
fn an_output_bomb_is_cut_off() {
    for level in levels() {
        let world = World::make();
        let observed = run(&world, level, "yes; sleep 30", limits());
        assert_eq!((observed.limits, observed.stdout.len()), (vec![Limit::Output], 64 << 10));
    }
}

#[test]
fn a_fork_bomb_meets_its_limit() {
    for level in levels() {
        let world = World::make();
        let few = Limits { processes: Some(50), wall_seconds: Some(30), ..limits() };
        let script = "import os,sys,time\nn=0\ntry:\n  while n<4000:\n    n+=1\n    if os.fork()==0: time.sleep(60)\nexcept BlockingIOError: print(n); sys.exit(9)\n";
        let command = invocation(&world, PYTHON, &["-c".to_owned(), script.to_owned()], level);
        let profile = Profile { limits: few, ..world.profile(Vec::new()) };
        let observed = contained().run(&profile, &command).unwrap();
        assert_eq!(observed.ended, Ended::Status(9), "{observed:?}");
    }
}

/// A process that writes until it is killed.
const HEARTBEAT: &str = "while :; do echo x >> heart; sleep 0.05; done";

fn is_alive(project: &Path) -> bool {
    let length = || fs::metadata(project.join("heart")).map_or(0, |meta| meta.len());
    let before = length();
    sleep(Duration::from_millis(300));
    length() > before
}

#[test]
fn nothing_outlives_a_command() {
    for level in levels() {
        let world = World::make();
        let script = format!(
            "setsid -f /bin/sh -c '{HEARTBEAT}' >/dev/null 2>&1; while [ ! -e heart ]; do sleep 0.05; done"
        );
        let observed = run(&world, level, &script, limits());
        assert_eq!(observed.ended, Ended::Status(0), "{observed:?}");
        assert!(world.project().join("heart").exists() && !is_alive(&world.project()), "{level}");
    }
}

/// A process that is gone before it can be killed, since it has become its child; several, for so long.
const CHAINS: &str = "import os, time
end = time.time() + 20
for _ in range(6):
    if os.fork() == 0:
        os.setsid()
        while time.time() < end:
            if os.fork(): os._exit(0)
            open('heart', 'a').write('x')
        os._exit(0)
while not os.path.exists('heart'): time.sleep(0.01)
time.sleep(0.2)
";

#[test]
fn processes_that_replace_themselves_end_with_the_command() {
    for level in levels() {
        let world = World::make();
        let command = invocation(&world, PYTHON, &["-c".to_owned(), CHAINS.to_owned()], level);
        let profile = Profile { limits: limits(), watch: Watch::Nothing, ..world.profile(Vec::new()) };
        let observed = contained().run(&profile, &command).unwrap();
        assert_eq!(observed.ended, Ended::Status(0), "{observed:?}");
        assert!(!is_alive(&world.project()), "{level}");
    }
}

/// The group of the supervisor is that of the command too, and a signal to *the own group* names no process.
#[test]
fn a_signal_to_the_own_group_reaches_nothing_outside() {
    const INSIDE: &str = "PORTCULLIS_TEST_OWN_GROUP";
    if std::env::var_os(INSIDE).is_none() {
        let name = "limits::a_signal_to_the_own_group_reaches_nothing_outside";
        let mut own = Command::new(std::env::current_exe().unwrap());
        own.args(["--exact", name, "--nocapture"]).env(INSIDE, "").process_group(0);
        let output = own.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        return;
    }
    for (level, abi) in [(Level::Process, 6), (Level::Namespace, 6), (Level::Namespace, 3)] {
        if !reaches(level) {
            continue;
        }
        let world = World::make();
        let script = "trap '' TERM; kill -TERM 0; kill -KILL 0; exit 3";
        let command = invocation(&world, "/bin/sh", &["-c".to_owned(), script.to_owned()], level);
        let profile = Profile { limits: limits(), ..world.profile(Vec::new()) };
        let observed = contained().as_with_landlock(abi).run(&profile, &command).unwrap();
        assert!(observed.ended.code() != 0, "{observed:?}");
        assert!(world.victim_runs(), "{level} with ABI {abi}");
    }
}

#[test]
fn a_project_below_the_hidden_folder_for_temporary_files_is_there() {
    for level in levels() {
        let world = World::make();
        let project = tempfile::tempdir_in("/tmp").unwrap();
        std::os::unix::fs::chown(project.path(), Some(65534), Some(65534)).unwrap_or_default();
        let mut profile = world.profile(Vec::new());
        profile.write = vec![project.path().to_owned()];
        let mut command =
            invocation(&world, "/bin/sh", &["-c".to_owned(), "echo x > made".to_owned()], level);
        command.folder = Some(project.path().to_owned());
        let observed = contained().run(&profile, &command).unwrap();
        assert_eq!(observed.ended, Ended::Status(0), "{}", String::from_utf8_lossy(&observed.stderr));
        assert_eq!(fs::read_to_string(project.path().join("made")).unwrap(), "x\n");
    }
}

#[test]
fn a_level_below_the_required_one_is_refused() {
    let world = World::make();
    let profile = Profile { level: Level::Namespace, ..world.profile(Vec::new()) };
    let command = invocation(&world, "/bin/true", &[], Level::Process);
    let refused = contained().run(&profile, &command).unwrap_err().to_string();
    assert!(refused.contains("requires the level `namespace`"), "{refused}");
}

/// Whether something runs with this word in its command line.
fn runs(word: &str) -> bool {
    let processes = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let mut lines = processes.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    lines.any(|line| String::from_utf8_lossy(&line).contains(word))
}

#[test]
fn what_is_kept_goes_on_as_contained_as_it_was_until_its_time_is_over() {
    for level in levels() {
        let world = World::make();
        let outside = world.outside().display().to_string();
        let mark = format!("kept-{}", world.project().display());
        // It tries to get out for as long as it lives.
        let server = format!(
            ": {mark}; echo t > $TMPDIR/mine; while :; do cat $TMPDIR/mine >> heart; echo x > {outside}/file; sleep 0.05; done"
        );
        let script = format!(
            "/bin/sh -c '{server}' >/dev/null 2>&1 & while [ ! -e heart ]; do sleep 0.05; done; exit 3"
        );
        let limits = Limits { background_seconds: Some(3), wall_seconds: Some(20), ..Limits::default() };
        let profile = Profile { background: Background::Keep, limits, ..world.profile(Vec::new()) };
        let mut command = invocation(&world, "/bin/sh", &["-c".to_owned(), script], level);
        command.output = Output::Inherited;
        let begun = Instant::now();
        let observed = contained().run(&profile, &command).unwrap();
        assert_eq!(observed.ended, Ended::Status(3), "{observed:?}");
        assert!(observed.survivors >= 1 && begun.elapsed() < Duration::from_secs(15), "{observed:?}");
        assert_eq!((observed.programs.seen, observed.files.seen), (Seen::All, Seen::Some));
        assert!(is_alive(&world.project()), "{level}");
        assert_eq!(fs::read_to_string(world.outside().join("file")).unwrap(), "as it was");
        while runs(&mark) && begun.elapsed() < Duration::from_secs(30) {
            sleep(Duration::from_millis(100));
        }
        assert!(!runs(&mark) && !is_alive(&world.project()), "{level}");
    }
}

#[test]
fn where_nothing_is_left_to_keep_nothing_stays() {
    for level in levels() {
        let world = World::make();
        let mark = format!("ended-{}", world.project().display());
        let profile =
            Profile { background: Background::Keep, limits: Limits::default(), ..world.profile(Vec::new()) };
        let script = format!(": {mark}; pwd > heart; kill -TERM $$");
        let mut command = invocation(&world, "/bin/sh", &["-c".to_owned(), script], level);
        command.output = Output::Inherited;
        let observed = contained().run(&profile, &command).unwrap();
        assert_eq!((observed.ended, observed.survivors), (Ended::Signal(15), 0));
        let begun = Instant::now();
        while runs(&mark) && begun.elapsed() < Duration::from_secs(10) {
            sleep(Duration::from_millis(50));
        }
        assert!(!runs(&mark), "{level}");
        let counted = Profile { limits: limits(), ..profile };
        assert!(matches!(contained().run(&counted, &command), Err(ContainError::Profile(_))));
    }
}

#[test]
fn memory_beyond_its_limit_is_refused_and_told() {
    for level in levels() {
        let world = World::make();
        let limits = Limits { memory_bytes: Some(300 << 20), ..limits() };
        let profile = Profile { limits, ..world.profile(Vec::new()) };
        let script = "a = bytearray(100 << 20)\ntry: b = bytearray(400 << 20)\nexcept MemoryError: raise SystemExit(9)";
        let command = invocation(&world, PYTHON, &["-c".to_owned(), script.to_owned()], level);
        let observed = contained().run(&profile, &command).unwrap();
        assert_eq!((observed.ended, observed.limits), (Ended::Status(9), vec![Limit::Memory]));
    }
}
