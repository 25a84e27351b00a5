//! `cargo xtask fuzz`: libFuzzer on every parser that reads what agents or strangers wrote.
//!
//! The targets stand in `fuzz/`, a workspace of its own, and are built by the stable compiler: the coverage that
//! libFuzzer needs comes from LLVM's own passes. Inputs start from the corpus of effects, one file a case, and what a
//! long run finds interesting is kept in `target/fuzz/corpus`. A crash leaves its input in `target/fuzz/crashes`, and
//! the way to repeat it is printed.

use std::fs;
use std::path::{Path, PathBuf};

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
const RUSTFLAGS: &str = "--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares";

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
    let mut failed = Vec::new();
    for (target, fences) in targets {
        let corpus = corpora.join(target);
        seed(&corpus, fences)?;
        println!("fuzz: {target}");
        let program = folder.join(host()?).join("release").join(target);
        let run = Program::new(&program)
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
            println!("  to repeat: {} {}/{target}-…", program.display(), crashes.display());
            failed.push(target);
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(Failure::new(format!("crashed: {}", failed.join(", ")))) }
}

fn build(folder: &Path) -> Result<()> {
    Program::cargo(["build", "--release", "--quiet", "--manifest-path", "fuzz/Cargo.toml", "--target"])
        .args([host()?])
        .env("CARGO_TARGET_DIR", folder)
        .env("RUSTFLAGS", RUSTFLAGS)
        .run()
}

/// The triple of this machine. Naming it keeps the flags away from build scripts and macros.
fn host() -> Result<String> {
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
    fn every_target_stands_in_the_folder() {
        let manifest = fs::read_to_string(root().join("fuzz/Cargo.toml")).unwrap();
        assert_eq!(manifest.matches("[[bin]]").count(), TARGETS.len());
        for (target, _) in TARGETS {
            assert!(manifest.contains(&format!("path = \"targets/{target}.rs\"")), "{target}");
        }
    }
}
