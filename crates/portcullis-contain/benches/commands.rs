//! What containment costs a command, from start to end: without it, at each level, unwatched, and with other programs
//! that confine where they are installed. One round runs each once, so that a busy machine is busy for all.
//!
//! `cargo bench -p portcullis-contain --bench commands -- [ROUNDS] [NAME…]`

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "a benchmark is no part of the program: it may stop where something is wrong, and it prints"
)]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;
use portcullis_contain::{Contained, Ended, Invocation, Level, Missing, Output, Profile, Watch, settle};
use portcullis_core::bundle::built_in_profile;
use portcullis_core::profile::Places;

/// What is run, and whether it should be run more seldom, since it takes long.
struct Work {
    name: &'static str,
    words: Vec<String>,
    folder: PathBuf,
    divide: usize,
    profile: &'static str,
}

/// Rounds of the shortest work without an argument.
const ROUNDS: usize = 100;
/// The folder of a node package: `npm install --prefix F @anthropic-ai/sandbox-runtime`.
const SANDBOX_RUNTIME: &str = "SANDBOX_RUNTIME";

type Runner = Box<dyn Fn(&Work)>;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let rounds = arguments.iter().find_map(|word| word.parse().ok()).unwrap_or(ROUNDS);
    let names: Vec<&String> = arguments.iter().filter(|word| word.parse::<usize>().is_err()).collect();
    let place = tempfile::tempdir_in("/var/tmp").unwrap();
    let works = works(place.path());
    let runners = runners();
    println!("milliseconds, median (first quartile to third); the rounds are interleaved");
    for work in works.iter().filter(|work| names.is_empty() || names.iter().any(|name| *name == work.name)) {
        let rounds = (rounds / work.divide).max(5);
        let mut times: Vec<Vec<Duration>> = vec![Vec::new(); runners.len()];
        let mut used = vec![Duration::ZERO; runners.len()];
        for round in 0..=rounds {
            for (((_, run), times), used) in runners.iter().zip(&mut times).zip(&mut used) {
                let (begun, before) = (Instant::now(), processor());
                run(work);
                // The first round warms up.
                if round > 0 {
                    times.push(begun.elapsed());
                    *used += processor() - before;
                }
            }
        }
        println!("{} ({rounds} rounds)", work.name);
        let plain = median(&mut times[0]);
        for (((name, _), times), used) in runners.iter().zip(&mut times).zip(used) {
            let middle = median(times);
            let (low, high) = (times[times.len() / 4], times[times.len() * 3 / 4]);
            println!(
                "  {name:<20} {:>8.2} ({:.2} to {:.2})  {:+.2}  {:+.1} %  processor {:.2}",
                ms(middle),
                ms(low),
                ms(high),
                ms(middle) - ms(plain),
                (ms(middle) / ms(plain) - 1.0) * 100.0,
                ms(used) / rounds as f64
            );
        }
    }
}

/// Processor time of this process and all that it waited for.
fn processor() -> Duration {
    let of = |who| {
        let usage = getrusage(who).unwrap();
        let [user, system] = [usage.user_time(), usage.system_time()].map(|time| time.num_microseconds());
        Duration::from_micros((user + system).try_into().unwrap())
    };
    of(UsageWho::RUSAGE_CHILDREN) + of(UsageWho::RUSAGE_SELF)
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

fn works(place: &Path) -> Vec<Work> {
    let (project, small) = (place.join("project"), place.join("small"));
    std::fs::create_dir(&small).unwrap();
    std::fs::create_dir_all(project.join("many")).unwrap();
    for number in 0..10_000 {
        let folder = project.join(format!("many/{}", number / 100));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(number.to_string()), "x").unwrap();
    }
    std::fs::write(project.join("test_one.py"), "def test_one():\n    assert 1 + 1 == 2\n").unwrap();
    std::fs::create_dir_all(project.join("src")).unwrap();
    std::fs::write(project.join("Cargo.toml"), "[package]\nname = \"one\"\nversion = \"1.0.0\"\n").unwrap();
    std::fs::write(project.join("src/lib.rs"), "pub fn one() -> u32 { 1 }\n").unwrap();
    let made = Command::new("git").args(["init", "-q"]).arg(&project).status().unwrap();
    assert!(made.success(), "git makes a repository");
    std::fs::write(project.join("package.json"), "{\"scripts\": {\"test\": \"node -e 1\"}}").unwrap();
    let shell = |name, divide, script: &str| Work {
        name,
        words: ["sh", "-c", script].map(str::to_owned).to_vec(),
        folder: project.clone(),
        divide,
        profile: "project",
    };
    let status = Work { profile: "git", ..shell("status", 4, "git status --short") };
    vec![
        Work { folder: small, words: vec!["/bin/true".to_owned()], ..shell("true", 1, "") },
        Work { words: vec!["/bin/true".to_owned()], ..shell("many", 4, "") },
        shell("python", 2, "python3 -c 1"),
        shell("starts", 4, "i=0; while [ $i -lt 200 ]; do /bin/true; i=$((i+1)); done"),
        shell(
            "writes",
            4,
            "python3 -c \"import os\nfor n in range(2000):\n f=open('made','w'); f.close(); os.rename('made','named')\"",
        ),
        shell("pytest", 10, &format!("{} -m pytest -q -p no:cacheprovider test_one.py", with_pytest())),
        shell("cargo", 10, "rm -rf target; cargo check --offline -q"),
        shell("npm", 10, "npm test --silent"),
        shell(
            "git",
            10,
            "mkdir new && cp Cargo.toml new && cd new && git init -q && git add . && git -c user.name=a -c user.email=a@b commit -qm x; cd .. && rm -rf new",
        ),
        shell("status under `project`", 4, "git status --short"),
        status,
        shell("copy", 10, "rm -rf more; cp -r many more"),
    ]
}

/// A Python that has pytest, which has to be installed: itself and not the program of a version manager that starts it.
fn with_pytest() -> String {
    let own = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output().unwrap();
    let own = String::from_utf8(own.stdout).unwrap().trim().to_owned();
    let has_it = |python: &String| {
        let asked = Command::new(python).args(["-m", "pytest", "--version"]).output();
        asked.is_ok_and(|asked| asked.status.success())
    };
    [own, "/usr/bin/python3".to_owned()].into_iter().find(has_it).unwrap()
}

fn profile(work: &Work, home: Option<&Path>) -> Profile {
    let folder = Some(work.folder.as_path());
    let places = Places { workspace: folder, home, here: folder };
    let stated = built_in_profile(work.profile).unwrap().at(&places).unwrap();
    settle(stated, home, Missing::Refused).unwrap()
}

fn runners() -> Vec<(&'static str, Runner)> {
    let mut all: Vec<(&'static str, Runner)> = vec![("without", Box::new(|work| plain(work, &work.words)))];
    let levels = [
        ("process", Level::Process, Watch::Changes),
        ("namespace", Level::Namespace, Watch::Changes),
        ("namespace, unwatched", Level::Namespace, Watch::Nothing),
        ("namespace, programs", Level::Namespace, Watch::Programs),
        ("namespace, all", Level::Namespace, Watch::All),
    ];
    for (name, level, watch) in levels {
        let helper = Path::new(env!("CARGO_BIN_EXE_contain-helper"));
        let contained = Contained::with_helper(helper).unwrap();
        let home = std::env::var_os("HOME").map(PathBuf::from);
        all.push((
            name,
            Box::new(move |work| {
                let profile = Profile { watch, ..profile(work, home.as_deref()) };
                run_contained(&contained, profile, level, work);
            }),
        ));
    }
    if Command::new("bwrap").arg("--version").stdout(Stdio::null()).status().is_ok() {
        all.push(("bwrap", Box::new(bwrap)));
    } else {
        println!("without bwrap: not installed");
    }
    match std::env::var_os(SANDBOX_RUNTIME).map(|folder| PathBuf::from(folder).join("node_modules/.bin/srt"))
    {
        Some(program) => {
            let words = [program.display().to_string()];
            all.push((
                "sandbox-runtime",
                Box::new(move |work| plain(work, &[&words[..], &work.words].concat())),
            ));
        }
        None => println!("without sandbox-runtime: {SANDBOX_RUNTIME} does not name its folder"),
    }
    all
}

fn plain(work: &Work, words: &[String]) {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).current_dir(&work.folder).stdout(Stdio::null()).stdin(Stdio::null());
    let status = command.stderr(Stdio::null()).status().unwrap();
    assert!(status.success(), "{}: {words:?}: {status}", work.name);
}

fn bwrap(work: &Work) {
    let folder = work.folder.display().to_string();
    let start = ["bwrap", "--unshare-all", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"];
    let bind = ["--bind", &folder, &folder, "--tmpfs", "/tmp", "--die-with-parent", "--"];
    let start = start.iter().chain(&bind).map(|word| (*word).to_owned());
    plain(work, &start.chain(work.words.iter().cloned()).collect::<Vec<_>>());
}

fn run_contained(contained: &Contained, mut profile: Profile, level: Level, work: &Work) {
    profile.limits.output_bytes = Some(1 << 20);
    let command = Invocation {
        program: work.words[0].clone().into(),
        arguments: work.words[1..].iter().map(Into::into).collect(),
        folder: Some(work.folder.clone()),
        level: Some(level),
        output: Output::Kept,
        ..Invocation::default()
    };
    let observed = contained.run(&profile, &command).unwrap();
    let said = String::from_utf8_lossy(&observed.stderr);
    assert_eq!(observed.ended, Ended::Status(0), "{}: {said}", work.name);
}
