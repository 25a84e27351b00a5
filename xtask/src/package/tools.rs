//! What building for a target takes on this machine: compilers, and a program that runs what was built for another one.
//!
//! For its own machine, Debian's `musl-gcc` compiles what is C. For another, Debian's compiler for that machine does, with
//! musl's headers in place of its own library's; Rust brings what is linked. QEMU runs the programs, which packing asks for
//! their version, manual pages and completions.

use std::env::consts::ARCH;
use std::path::Path;

use super::programs::Target;
use crate::process::{self, Failure, Program, Result};

/// How programs for a target are built, stripped and run.
#[derive(Debug, Clone)]
pub(super) struct Tools {
    pub(super) strip: String,
    /// What programs are run with, if this machine does not run them by itself.
    pub(super) runner: Option<String>,
    /// What cargo is told.
    pub(super) variables: Vec<(String, String)>,
}

/// Something that is not there, and the Debian package that has it.
struct Missing {
    what: String,
    package: Option<String>,
}

impl Tools {
    /// For programs of this machine that are built already.
    pub(super) fn of_this_machine() -> Self {
        Self { strip: "strip".to_owned(), runner: None, variables: Vec::new() }
    }

    /// For building for a target. What is missing is installed where that is ours to do.
    ///
    /// # Errors
    /// Something is missing; with all that is, and how to get it.
    pub(super) fn of(target: Target) -> Result<Self> {
        if !missing(target).is_empty() && process::may_install() {
            install(target)?;
        }
        let missing = missing(target);
        if !missing.is_empty() {
            return Err(refused(target, &missing));
        }
        if is_this(target) {
            return Ok(Self::of_this_machine());
        }
        let named = |name: &str| format!("{}-linux-gnu-{name}", target.machine);
        Ok(Self {
            strip: named("strip"),
            runner: Some(emulator(target)),
            variables: variables(target, &named("gcc"), &named("ar")),
        })
    }

    /// A program of the target as it is started here.
    pub(super) fn program(&self, path: &Path) -> Program {
        match &self.runner {
            Some(runner) => Program::new(runner).arg(path),
            None => Program::new(path),
        }
    }
}

fn is_this(target: Target) -> bool {
    target.machine == ARCH
}

fn emulator(target: Target) -> String {
    format!("qemu-{}-static", target.machine)
}

/// Where Debian has musl's headers for a machine.
fn headers(target: Target) -> String {
    format!("/usr/include/{}-linux-musl", target.machine)
}

fn missing(target: Target) -> Vec<Missing> {
    let mut missing = Vec::new();
    let mut want = |is_there: bool, what: &str, package: Option<String>| {
        if !is_there {
            missing.push(Missing { what: what.to_owned(), package });
        }
    };
    let runs = |name: &str| Program::new(name).args(["--version"]).answer().is_some();
    let folder = Program::new("rustc").args(["--print", "target-libdir", "--target", target.triple]).answer();
    let library = folder.is_some_and(|folder| Path::new(&folder).is_dir());
    want(library, &format!("Rust's standard library for {}", target.triple), None);
    if is_this(target) {
        want(runs("musl-gcc"), "musl-gcc", Some("musl-tools".to_owned()));
        want(runs("strip"), "strip", Some("binutils".to_owned()));
        return missing;
    }
    let compiler = format!("{}-linux-gnu-gcc", target.machine);
    want(runs(&compiler), &compiler, Some(format!("gcc-{}-linux-gnu", target.machine.replace('_', "-"))));
    let place = headers(target);
    want(
        Path::new(&place).join("stdio.h").is_file(),
        &format!("musl's headers in {place}"),
        Some(format!("musl-dev:{}", target.debian)),
    );
    let runner = emulator(target);
    want(runs(&runner), &runner, Some("qemu-user-static".to_owned()));
    missing
}

fn install(target: Target) -> Result<()> {
    Program::new("rustup").args(["target", "add", target.triple]).run()?;
    if !is_this(target) {
        Program::new("dpkg").args(["--add-architecture", target.debian]).run()?;
    }
    let missing = missing(target);
    let packages: Vec<&str> = missing.iter().filter_map(|missing| missing.package.as_deref()).collect();
    if packages.is_empty() { Ok(()) } else { process::install(&packages) }
}

fn refused(target: Target, missing: &[Missing]) -> Failure {
    let what: Vec<&str> = missing.iter().map(|missing| missing.what.as_str()).collect();
    let mut remedies = Vec::new();
    if missing.iter().any(|missing| missing.package.is_none()) {
        remedies.push(format!("`rustup target add {}`", target.triple));
    }
    let packages: Vec<&str> = missing.iter().filter_map(|missing| missing.package.as_deref()).collect();
    if packages.iter().any(|package| package.contains(':')) {
        remedies.push(format!("`dpkg --add-architecture {} && apt-get update`", target.debian));
    }
    if !packages.is_empty() {
        remedies.push(format!("`apt-get install {}`", packages.join(" ")));
    }
    Failure::new(format!(
        "packing for {} lacks {}; get it (on Debian) with {}",
        target.triple,
        what.join(", "),
        remedies.join(", then ")
    ))
}

/// What cargo and build scripts in C are told, but for what the caller tells them already.
fn variables(target: Target, compiler: &str, archiver: &str) -> Vec<(String, String)> {
    let name = target.triple.replace('-', "_");
    // The compiler's own headers, such as `stddef.h`, stay.
    let own = Program::new(compiler).args(["-print-file-name=include"]).answer().unwrap_or_default();
    let flags = format!("-nostdinc -isystem {} -isystem {own}", headers(target));
    [
        (format!("CC_{name}"), compiler.to_owned()),
        (format!("AR_{name}"), archiver.to_owned()),
        (format!("CFLAGS_{name}"), flags),
        (format!("CARGO_TARGET_{}_LINKER", name.to_uppercase()), compiler.to_owned()),
    ]
    .into_iter()
    .filter(|(name, _)| std::env::var_os(name).is_none())
    .collect()
}

#[cfg(test)]
mod tests {
    use super::super::programs::TARGETS;
    use super::*;

    #[test]
    fn what_is_missing_is_said_with_how_to_get_it() {
        let missing = |what: &str, package: Option<&str>| Missing {
            what: what.to_owned(),
            package: package.map(str::to_owned),
        };
        let all = [
            missing("Rust's standard library", None),
            missing("aarch64-linux-gnu-gcc", Some("gcc-aarch64-linux-gnu")),
            missing("musl's headers", Some("musl-dev:arm64")),
        ];
        assert_eq!(
            refused(TARGETS[1], &all).to_string(),
            "packing for aarch64-unknown-linux-musl lacks Rust's standard library, aarch64-linux-gnu-gcc, musl's \
             headers; get it (on Debian) with `rustup target add aarch64-unknown-linux-musl`, then `dpkg \
             --add-architecture arm64 && apt-get update`, then `apt-get install gcc-aarch64-linux-gnu musl-dev:arm64`"
        );
        let one = refused(TARGETS[1], &all[1..2]).to_string();
        assert!(one.ends_with("with `apt-get install gcc-aarch64-linux-gnu`"), "{one}");
    }

    #[test]
    fn c_is_compiled_against_musl_and_linked_for_the_target() {
        let told = variables(TARGETS[1], "cc", "ar");
        let names: Vec<&str> = told.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(
            names,
            [
                "CC_aarch64_unknown_linux_musl",
                "AR_aarch64_unknown_linux_musl",
                "CFLAGS_aarch64_unknown_linux_musl",
                "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_LINKER",
            ]
        );
        assert!(told[2].1.starts_with("-nostdinc -isystem /usr/include/aarch64-linux-musl -isystem /"));
    }
}
