//! What programs do, by name: models of commands.
//!
//! A model is a [`Spec`]: data that lists the options of a program and says what its operands are. Families of
//! programs have a file each:
//!
//! | file | programs |
//! |---|---|
//! | `files` | make, copy, move, show, remove files; permissions; checksums |
//! | `archives` | tar, zip, compressors |
//! | `text`, `sed`, `awk` | search and transform text |
//! | `curl`, `network` | transfers, probes, name service, mail |
//! | `git`, `git_config`, `git_files`, `git_options` | git |
//! | `packages`, `package_models`, `toolchains` | package managers, cargo, go |
//! | `build` | builds, tests, linters, compilers, runtimes with a file |
//! | `containers`, `kubernetes` | docker and its kin, kubectl, helm |
//! | `cloud` | code hosts, clouds, object stores, terraform, ansible |
//! | `system` | processes, services, accounts, disks, network, builtins of the shell |
//! | `secrets` | keys, password stores, openssl |
//! | `databases` | SQL and other clients |
//! | `desktop` | editors, openers |
//!
//! # To add a program
//!
//! 1. Find the family, and write a [`spec`](spec::spec) with all names of the program, one line a kind of option:
//!
//!    ```text
//!    spec("shred").each(DELETE).options(&[
//!        force("-f --force"),                    // marks the effects on operands
//!        does("--random-source", READ),          // an act on the value
//!        values("-n --iterations -s --size"),    // take a value that is nothing: else it would be an operand
//!        flags("-u -z --zero -v --verbose"),     // nothing
//!    ]),
//!    ```
//! 2. List options completely. One that is not listed makes the call *not known*, and its words are read as
//!    operands. Where no option that exists, now or in another edition of the program, can write, run or send
//!    anything, say `lenient()`; options with values are listed all the same.
//! 3. What a table cannot say is a function: `by(|call, shell| …)`, which returns false when it does not understand.
//! 4. Subcommands are specs of their own: `subcommands(&[…])`. One that is not listed is not known.
//! 5. Add cases to `tests/cases/shell/commands-*.md`: the plain use, and each way to make it do more than it looks.
//!
//! What a command only names as text (a pattern, a message) is not an effect.

mod apply;
mod archives;
mod awk;
mod build;
mod cloud;
mod containers;
mod curl;
mod databases;
mod desktop;
pub(super) mod environment;
mod files;
mod git;
mod git_config;
mod git_files;
mod git_options;
mod kubernetes;
mod lists;
mod network;
pub(super) mod opt;
pub(super) mod options;
mod package_models;
mod packages;
mod secrets;
mod sed;
mod spec;
mod system;
mod text;
mod toolchains;
mod words;

use std::collections::HashMap;
use std::sync::LazyLock;

use super::interpreter::{Call, Interpreter, Stdin};
use super::word::Word;
use spec::Spec;

const FAMILIES: &[&[Spec]] = &[
    files::SPECS,
    archives::SPECS,
    text::SPECS,
    curl::SPECS,
    network::SPECS,
    git::SPECS,
    packages::SPECS,
    build::SPECS,
    containers::SPECS,
    kubernetes::SPECS,
    cloud::SPECS,
    system::SPECS,
    secrets::SPECS,
    databases::SPECS,
    desktop::SPECS,
];

/// Every model by each of its names.
static BY_NAME: LazyLock<HashMap<&'static str, &'static Spec>> = LazyLock::new(|| {
    let specs = FAMILIES.iter().copied().flatten();
    specs.flat_map(|spec| spec.names.split_ascii_whitespace().map(move |name| (name, spec))).collect()
});

fn find(program: &str) -> Option<&'static Spec> {
    BY_NAME.get(program).copied()
}

/// Adds what one simple command does. False when the program is not known, or not all of what it does: the command
/// is then marked so.
pub(crate) fn effects(call: &Call<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    let Some(spec) = find(call.program) else { return false };
    let args = without_toolchain(call.program, call.args);
    let call = Call { program: call.program, args, range: call.range.clone(), stdin: call.stdin };
    apply::run(spec, &call, shell)
}

/// The word of a command that says what to do: `push` of `git push`.
pub(crate) fn subcommand<'w>(program: &str, args: &'w [Word]) -> Option<&'w str> {
    let args = without_toolchain(program, args);
    apply::subcommand(find(program)?, &Call { program: "", args, range: 0..0, stdin: Stdin::None })
}

/// `cargo +nightly build` is `cargo build` with another compiler.
fn without_toolchain<'w>(program: &str, args: &'w [Word]) -> &'w [Word] {
    match args.split_first() {
        Some((first, rest))
            if matches!(program, "cargo" | "rustc") && words::text(first).starts_with('+') =>
        {
            rest
        }
        _ => args,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_has_one_model() {
        let mut seen: HashMap<&str, usize> = HashMap::new();
        for spec in FAMILIES.iter().copied().flatten() {
            for name in spec.names.split_ascii_whitespace() {
                *seen.entry(name).or_default() += 1;
            }
        }
        let twice: Vec<_> = seen.iter().filter(|(_, count)| **count > 1).map(|(name, _)| *name).collect();
        assert!(twice.is_empty(), "{twice:?} are modelled twice");
    }

    #[test]
    fn an_option_is_listed_once_and_has_dashes() {
        fn check(spec: &Spec) {
            let mut seen = std::collections::HashSet::new();
            for name in spec.options.iter().flat_map(|opt| opt.names.split_ascii_whitespace()) {
                assert!(name.starts_with('-'), "`{name}` of {} has no dash", spec.names);
                assert!(seen.insert(name), "`{name}` of {} is listed twice", spec.names);
            }
            spec.subcommands.iter().for_each(check);
        }
        FAMILIES.iter().copied().flatten().for_each(check);
    }
}
