//! The engine of guard programs: a program in a workspace of its own, which is built, checked and tested apart.

use std::fs;
use std::path::{Path, PathBuf};

use crate::process::{Failure, Program, Result, doing, root};

/// Its manifest.
pub(crate) const MANIFEST: &str = "engines/starlark/Cargo.toml";
/// Where it is built; tests of other crates build it there, too.
pub(crate) const TARGET: &str = "target/engines";
/// Its name.
const NAME: &str = "portcullis-starlark";

/// Holds its code to the rules and runs its tests.
///
/// # Errors
/// The code is not formatted, clippy has something to say, or a test fails.
pub(crate) fn check() -> Result<()> {
    Program::cargo(["fmt", "--check", "--manifest-path", MANIFEST]).run()?;
    let cargo = |command: &'static str| {
        Program::cargo([
            command,
            "--release",
            "--locked",
            "--manifest-path",
            MANIFEST,
            "--target-dir",
            TARGET,
        ])
    };
    cargo("clippy").args(["--all-targets", "--", "-D", "warnings"]).run()?;
    cargo("test").run()?;
    // Tests of other crates start it, and some of them look at the clock.
    cargo("build").run()
}

/// Formats its code.
///
/// # Errors
/// It cannot be formatted.
pub(crate) fn format() -> Result<()> {
    Program::cargo(["fmt", "--manifest-path", MANIFEST]).run()
}

/// The page with what programs may call.
pub(crate) const PAGE: &str = "docs/programs.md";

/// The page with the manual of the toolbox as the engine prints it, which is what its code says.
///
/// # Errors
/// The engine does not run, or the page has no place for it.
pub(crate) fn page(page: &str) -> Result<String> {
    const BEGIN: &str = "<!-- toolbox: written by `cargo xtask docs` -->\n";
    const END: &str = "<!-- end of toolbox -->\n";
    let run = [
        "run",
        "--release",
        "--locked",
        "--quiet",
        "--manifest-path",
        MANIFEST,
        "--target-dir",
        TARGET,
        "toolbox",
    ];
    let manual = Program::cargo(run)
        .answer()
        .ok_or_else(|| Failure::new(format!("`{NAME} toolbox` fails; `cargo xtask engine` says why")))?;
    let parts = page.split_once(BEGIN).and_then(|(before, rest)| Some((before, rest.split_once(END)?.1)));
    let (before, after) = parts.ok_or_else(|| Failure::new(format!("{PAGE}: no place for the toolbox")))?;
    Ok(format!("{before}{BEGIN}{manual}\n{END}{after}"))
}

/// Builds it and puts it into a folder.
///
/// # Errors
/// It cannot be built or copied.
pub(crate) fn put_into(folder: &Path) -> Result<()> {
    if !cfg!(target_os = "linux") {
        return Ok(());
    }
    Program::cargo(["build", "--release", "--locked", "--manifest-path", MANIFEST, "--target-dir", TARGET])
        .run()?;
    let built: PathBuf = root().join(TARGET).join("release").join(NAME);
    let beside = folder.join(NAME);
    // In place at once: it may be running.
    let new = beside.with_extension("new");
    doing(&format!("copy `{}`", built.display()), fs::copy(&built, &new))?;
    doing(&format!("write `{}`", beside.display()), fs::rename(&new, &beside))
}
