//! `cargo xtask fuzz`: libFuzzer on every parser that reads what agents or strangers wrote.
//!
//! The targets stand in `fuzz/`, a workspace of its own with one program, and are built by the stable compiler: the
//! coverage that libFuzzer needs comes from LLVM's own passes, for our crates and for the parsers of others that they
//! feed ([`COVERED`]). What a target has to walk through anyway costs time in the build and in every run. Inputs start from the corpus of effects, one file a case, and what a
//! long run finds interesting is kept in `target/fuzz/corpus`. A crash leaves its input in `target/fuzz/crashes`, and
//! the way to repeat it is printed.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::{Failure, Program, Result, doing, root};

/// Inputs a target in the smoke run of the suite.
const SMOKE_RUNS: u64 = 20_000;
/// Seconds a target may take in the smoke run.
const SMOKE_SECONDS: u64 = 20;
/// What the inputs of the smoke run are drawn by, so that the suite tries the same ones each time, as far as its
/// seconds reach. The long run draws anew each time and finds more.
const SMOKE_SEED: u64 = 1;
/// Inputs a target in the long run.
const LONG_RUNS: u64 = 10_000_000;
/// Longest input, in bytes.
const INPUT_BYTES_MAX: u64 = 4_096;
/// Longest time for one input, in seconds.
const INPUT_SECONDS_MAX: u64 = 10;

/// Makes the compiler count edges and compare values, for libFuzzer.
const COVERAGE: &[&str] = &[
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=3",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
];

/// Crates whose coverage leads the search, by how their names begin. Cedar is not among
/// them: its edges are as many as all others, mostly of a generated parser, and all are looked over after every input.
const COVERED: &[&str] =
    &["portcullis_", "brush_parser", "idna", "ruff_", "serde_json", "sqlparser", "toml", "url", "winnow"];

/// Set for cargo, and so for ourselves when it calls us in place of the compiler.
const WRAPS: &str = "PORTCULLIS_XTASK_WRAPS_RUSTC";

/// The variable that tells the program its target.
const CHOICE: &str = "PORTCULLIS_FUZZ_TARGET";

/// A target, and the fences of the corpus that hold inputs for it.
const TARGETS: &[(&str, &[&str])] = &[
    ("sql", &["sql"]),
    ("shell", &["sh"]),
    ("python", &["python"]),
    ("path", &["path"]),
    ("url", &["url"]),
    ("mail", &["email"]),
    ("task", &["task"]),
    ("policy", &["cedar"]),
    ("bundle", &["toml"]),
    ("json", &["json"]),
    ("stream", &["json"]),
    ("leaves", &["email", "json"]),
    ("detect", &["email"]),
];

/// A short run of every target.
///
/// # Errors
/// A target cannot be built, or an input crashes it.
pub(crate) fn smoke() -> Result<()> {
    // What earlier runs found interesting would change the draw.
    let corpora = root().join("target/fuzz/smoke");
    if corpora.exists() {
        doing("empty the folder of inputs", fs::remove_dir_all(&corpora))?;
    }
    let options = [format!("-seed={SMOKE_SEED}"), format!("-max_total_time={SMOKE_SECONDS}")];
    each(TARGETS.iter().copied(), &corpora, SMOKE_RUNS, &options)
}

/// Ten million inputs for every target, or for the one that is named.
///
/// # Errors
/// As [`smoke`], and where there is no such target.
pub(crate) fn long(target: Option<&str>) -> Result<()> {
    let chosen: Vec<_> =
        TARGETS.iter().copied().filter(|(name, _)| target.is_none_or(|t| t == *name)).collect();
    if chosen.is_empty() {
        let names: Vec<&str> = TARGETS.iter().map(|(name, _)| *name).collect();
        return Err(Failure::new(format!("there is no such target; there are: {}", names.join(", "))));
    }
    each(chosen.into_iter(), &root().join("target/fuzz/corpus"), LONG_RUNS, &[])
}

fn each<'t>(
    targets: impl Iterator<Item = (&'t str, &'t [&'t str])>,
    corpora: &Path,
    runs: u64,
    options: &[String],
) -> Result<()> {
    let folder = root().join("target/fuzz");
    build(&folder)?;
    let crashes = folder.join("crashes");
    doing("make the folder of crashes", fs::create_dir_all(&crashes))?;
    let program = folder.join(host()?).join("release/portcullis-fuzz");
    let mut failed = Vec::new();
    for (target, fences) in targets {
        let corpus = corpora.join(target);
        seed(&corpus, fences)?;
        println!("fuzz: {target}");
        let run = Program::new(&program)
            .env(CHOICE, target)
            .args([
                format!("-runs={runs}"),
                format!("-max_len={INPUT_BYTES_MAX}"),
                format!("-timeout={INPUT_SECONDS_MAX}"),
                format!("-artifact_prefix={}/{target}-", crashes.display()),
                "-print_final_stats=1".to_owned(),
                "-verbosity=0".to_owned(),
            ])
            .args(options)
            .args([&corpus]);
        if let Err(failure) = run.run() {
            println!("fuzz: {target} FAILED: {failure}");
            println!("  to repeat: {CHOICE}={target} {} {}/{target}-…", program.display(), crashes.display());
            failed.push(target);
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(Failure::new(format!("crashed: {}", failed.join(", ")))) }
}

fn build(folder: &Path) -> Result<()> {
    let ourselves = doing("find the program that runs", std::env::current_exe())?;
    Program::cargo(["build", "--release", "--quiet", "--manifest-path", "fuzz/Cargo.toml", "--target"])
        .args([host()?])
        .env("CARGO_TARGET_DIR", folder)
        // Tells crates that they are fuzzed; and a change of what is covered builds all of them anew.
        .env("RUSTFLAGS", format!("--cfg fuzzing --cfg covered_{}", COVERED.join("_")))
        .env("RUSTC_WRAPPER", ourselves)
        .env(WRAPS, "1")
        .run()
}

/// Where cargo calls us in place of the compiler: becomes the compiler, with [`COVERAGE`] for what is [`COVERED`].
/// Flags for some crates and not for others are nothing that cargo has a setting for.
pub(crate) fn wrapped() -> Option<Failure> {
    std::env::var_os(WRAPS)?;
    let mut arguments = std::env::args_os().skip(1);
    let mut compiler = Command::new(arguments.next()?);
    let arguments: Vec<_> = arguments.collect();
    let name = arguments.iter().skip_while(|argument| *argument != "--crate-name").nth(1);
    let name = name.and_then(|name| name.to_str()).unwrap_or_default();
    // What runs while building, macros and build scripts, gets no `--target`.
    let covered = COVERED.iter().any(|start| name.starts_with(start))
        && arguments.iter().any(|argument| argument == "--target");
    compiler.args(&arguments).args(if covered { COVERAGE } else { &[] });
    let error = compiler.exec();
    Some(Failure::new(format!("cannot start the compiler: {error}")))
}

/// The triple of this machine. Naming it keeps the flags away from build scripts and macros.
pub(crate) fn host() -> Result<String> {
    let version = Program::new("rustc").args(["-vV"]).output()?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| Failure::new("`rustc -vV` names no host"))
}

/// Writes the cases of the corpus into the target's folder, one file each, named by their number.
fn seed(corpus: &Path, fences: &[&str]) -> Result<()> {
    doing("make the folder of the corpus", fs::create_dir_all(corpus))?;
    let mut files = Vec::new();
    for folder in
        ["crates/portcullis-effects/tests/cases", "crates/portcullis-guards/tests/cases", "examples"]
    {
        markdown(&root().join(folder), &mut files)?;
    }
    files.sort();
    let mut number = 0;
    for file in files {
        let text = doing(&format!("read `{}`", file.display()), fs::read_to_string(&file))?;
        for block in blocks(&text, fences) {
            let path = corpus.join(format!("case-{number:05}"));
            doing("write the corpus", fs::write(path, block))?;
            number += 1;
        }
    }
    Ok(())
}

fn markdown(folder: &Path, into: &mut Vec<PathBuf>) -> Result<()> {
    let what = format!("read the folder `{}`", folder.display());
    for entry in doing(&what, fs::read_dir(folder))? {
        let path = doing(&what, entry)?.path();
        if path.is_dir() {
            markdown(&path, into)?;
        } else if path.extension().is_some_and(|extension| extension == "md") {
            into.push(path);
        }
    }
    Ok(())
}

/// The fenced blocks of these languages.
fn blocks(text: &str, fences: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(info) = line.strip_prefix("```").filter(|info| !info.is_empty()) else { continue };
        let body: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        if fences.contains(&info.split(' ').next().unwrap_or_default()) {
            found.push(body.join("\n"));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_found_by_language() {
        let text = "# a\n```sh\nls\n```\n```effects\nx\n```\n```sh\na\nb\n```\n```toml x.toml\nk = 1\n```\n";
        assert_eq!(blocks(text, &["sh"]), ["ls", "a\nb"]);
        assert_eq!(blocks(text, &["toml"]), ["k = 1"]);
    }

    #[test]
    fn every_target_stands_in_the_program() {
        let program = fs::read_to_string(root().join("fuzz/src/main.rs")).unwrap();
        let (_, table) = program.split_once("const TARGETS").unwrap();
        let (table, _) = table.split_once("];").unwrap();
        let there: Vec<&str> =
            table.split("    (\"").skip(1).map(|row| row.split('"').next().unwrap()).collect();
        let ours: Vec<&str> = TARGETS.iter().map(|(target, _)| *target).collect();
        assert_eq!(there, ours);
        assert!(program.contains(&format!("const CHOICE: &str = \"{CHOICE}\"")));
    }
}
