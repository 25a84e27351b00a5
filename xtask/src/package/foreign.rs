//! `cargo xtask package --check --target TRIPLE`: the packages for another machine, as far as this one can try them.
//!
//! All programs are built for it, without optimisation, and packed. The packages have to name the machine; the programs of
//! the archive are run under emulation. Programs that start others are not tried: the kernel would have to know the
//! emulator.

use std::fs;
use std::path::Path;

use super::programs::{ALL, MAIN, Programs, Target};
use super::root::Root;
use super::tools::Tools;
use super::{Made, packages};
use crate::process::{Failure, Program, Result, doing};

/// Builds, packs and tries.
///
/// # Errors
/// What does not do as it should, with what it said.
pub(super) fn check(target: Target) -> Result<()> {
    let tools = Tools::of(target)?;
    let programs = Programs::quick(target, &tools)?;
    let made = packages(&programs)?;
    let folder = Root::empty()?;
    for Made { name, bytes } in &made {
        doing(&format!("write `{name}`"), fs::write(folder.path("tmp").join(name), bytes))?;
    }
    let package = |ending: &str| {
        let found = made.iter().find(|made| made.name.ends_with(ending));
        found.map(|made| folder.path("tmp").join(&made.name)).unwrap_or_default()
    };
    names_machine(target, &package(".deb"), &package("-oci.tar"))?;
    let unpacked = folder.path("root");
    let archive = package("-linux.tar.gz");
    let words = ["-xzf".as_ref(), archive.as_os_str(), "-C".as_ref(), unpacked.as_os_str()];
    Program::new("tar").args(words).args(["--strip-components=1"]).run()?;
    let says = |name: &str, words: &[&str], text: &str| {
        let program = tools.program(&unpacked.join("bin").join(name)).args(words);
        let program = program.env("HOME", &unpacked).env("PORTCULLIS_HOME", unpacked.join("state"));
        let shown = program.shown();
        let said = program.output()?;
        if said.contains(text) {
            return Ok(());
        }
        Err(Failure::new(format!("`{shown}` should say `{text}`:\n{said}")))
    };
    for name in ALL {
        says(name, &["--version"], &format!("{name} {}", programs.told))?;
    }
    says(MAIN, &["openapi"], "\"openapi\"")?;
    println!("package: the programs for {} are packed and run", target.triple);
    Ok(())
}

/// Whether the Debian package and the image are for that machine.
fn names_machine(target: Target, debian: &Path, image: &Path) -> Result<()> {
    let architecture = Program::new("dpkg-deb").arg("--field").arg(debian).arg("Architecture").output()?;
    let index = Program::new("tar").arg("-xOf").arg(image).arg("index.json").output()?;
    let wanted = format!("\"architecture\":\"{}\"", target.debian);
    if architecture.trim() == target.debian && index.contains(&wanted) {
        return Ok(());
    }
    Err(Failure::new(format!("packages for {} say {} and {index}", target.machine, architecture.trim())))
}
