//! All automation of the project: `cargo xtask help`.
//!
//! What is checked, installed or measured is written here once, in Rust, and runs the same on a laptop and in
//! continuous integration. Each subcommand is a module; [`process`] starts other programs for all of them.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool talks on both")]

mod detector;
mod docs;
mod dogwood;
mod engine;
mod fuzz;
mod install;
mod mutants;
mod package;
mod peers;
mod pictures;
mod process;
mod programs;
mod suite;
mod tidy;
mod timings;

use std::path::Path;
use std::process::ExitCode;

use process::{Program, Result};

const HELP: &str = "\
usage: cargo xtask COMMAND

  test [--long]   everything that continuous integration runs; --long sets PORTCULLIS_TEST_LONG=1, for the tests
                  that take minutes
  install [DIR]   install the programs into cargo's folder, or DIR/bin, and record the digests of
                  `portcullis-contain` and `portcullis-starlark`
  package [--target TRIPLE] [DIR]
                  build for musl and write an archive, a Debian package, a container image, a wheel, an npm package, a
                  bill of materials and their digests into DIR, or target/package
  package --check [--release | --programs DIR | --target TRIPLE]
                  install each package into an empty root, use it and remove it; of programs as the tests build them,
                  as they are given away, or that lie in DIR; or build and pack for another machine, and run that here
  fmt             format the code
  lint            clippy over everything, warnings denied
  tidy            the rules that no compiler knows: lengths, crate edges, guards' tests, licences, wording
  docs [--check]  write the manual's pages about guards; --check holds them to the code and runs the manual's commands
  dogwood         decisions under rules about the past beside Dogwood's own engine, for docs/benchmarks.md
  engine          hold the engine of guard programs to the rules and run its tests
  engine DIR      build it and put it into DIR, beside a `portcullis` that was built there
  peers [--all]   install the MCP servers, the clients and the coding agents that the integration tests talk to, into
                  .peers/; with --all also the agents that only the long tests run
  programs        install strace and Go, which some tests want, on a Debian machine of continuous integration (root,
                  CI=true); elsewhere say which tests will be skipped
  fuzz [TARGET]   ten million inputs for every parser, or for one; --smoke for the short run of the suite
  mutants [FILE] changes the verifier in one place at a time, all over or in one file (`log/tree.rs`), and asks for a
                  test that fails; crates/portcullis-proof/mutants.toml lists those that nobody can tell
  detector SETS [--without NAMES]
                  train the shipped models of the detector from the sets that docs/models/ names; without some of
                  them into target/detector, to measure on those
  pictures        make the pictures of a terminal in the README, of what the commands print
  timings         build the demo profile from nothing; wall time, CPU seconds, heaviest crates
  help            this page

exit status: 0 done, 1 failed, 64 usage
";

const EXIT_FAILED: u8 = 1;
const EXIT_USAGE: u8 = 64;

fn main() -> ExitCode {
    if let Some(failure) = fuzz::wrapped() {
        return finish(Err(failure));
    }
    if let Some(status) = mutants::runner() {
        return status;
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["test"] => return test(false),
        ["test", "--long"] => return test(true),
        ["install"] => install::run(None),
        ["install", folder] => install::run(Some(Path::new(folder))),
        ["fmt"] => Program::cargo(["fmt", "--all"]).run().and_then(|()| engine::format()),
        ["lint"] => suite::clippy().run(),
        ["tidy"] => tidy::run(),
        ["docs"] => docs::write(),
        ["docs", "--check"] => docs::check(),
        ["package", words @ ..] => package::run(words),
        ["pictures"] => pictures::make(),
        ["dogwood"] => dogwood::run(),
        ["engine"] => engine::check(),
        ["engine", folder] => engine::put_into(Path::new(folder)),
        ["peers"] => peers::install(),
        ["peers", "--all"] => peers::install_all(),
        ["programs"] => programs::install(),
        ["fuzz"] => fuzz::long(None),
        ["fuzz", "--smoke"] => fuzz::smoke(),
        ["fuzz", target] => fuzz::long(Some(target)),
        ["mutants"] => mutants::run(None),
        ["mutants", file] => mutants::run(Some(file)),
        ["detector", sets] => detector::run(Path::new(sets), None),
        ["detector", sets, "--without", names] => detector::run(Path::new(sets), Some(names)),
        ["timings"] => timings::run(),
        ["help" | "--help" | "-h"] => {
            print!("{HELP}");
            Ok(())
        }
        [] => return usage("name a command"),
        [unknown, ..] => return usage(&format!("cannot do `{unknown}` with these arguments")),
    };
    finish(done)
}

fn test(long: bool) -> ExitCode {
    if suite::run(long) { ExitCode::SUCCESS } else { ExitCode::from(EXIT_FAILED) }
}

fn usage(problem: &str) -> ExitCode {
    eprint!("xtask: {problem}\n\n{HELP}");
    ExitCode::from(EXIT_USAGE)
}

fn finish(done: Result<()>) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("xtask: {failure}");
            ExitCode::from(EXIT_FAILED)
        }
    }
}
