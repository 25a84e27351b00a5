//! `cargo xtask peers`: the MCP servers, the clients and the coding agents, written by others, that the integration tests
//! talk to.
//!
//! `peers/` holds the exact versions (npm's lock file, pip's requirements); `.peers/`, ignored by git, what is
//! installed. Nothing outside of the repository is touched, with one exception: a Debian machine that runs us as root
//! with `CI=true` gets the missing of node, npm and python3 from its own packages.
//!
//! The conformance suite wants a younger Node.js than some machines have. It comes from npm too, for Linux; on other
//! machines, their own is used.
//!
//! A stamp holds the manifests that were installed; while they are unchanged, there is nothing to do.

use std::fs;
use std::path::{Path, PathBuf};

use crate::process::{self, Failure, Program, Result, doing, root};

const NODE_MAJOR_MIN: u32 = 18;
const PYTHON_MINOR_MIN: u32 = 10;

/// What decides whether the installation is up to date.
const MANIFESTS: [&str; 3] = ["package.json", "package-lock.json", "requirements.txt"];
/// Coding agents, each folder with a stamp of its own.
const AGENTS: &str = "agents";
/// Those that are large programs.
const AGENTS_NATIVE: &str = "agents-native";

/// The Python of the installation.
fn python() -> PathBuf {
    root().join(".peers/python/bin/python")
}

/// Installs what is missing.
///
/// # Errors
/// Names the program that is missing and how to get it, or the command that failed.
pub(crate) fn install() -> Result<()> {
    let manifests = root().join("peers");
    let target = root().join(".peers");
    let stamp = target.join("stamp");
    let wanted = wanted(&manifests)?;
    if fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) {
        println!("peers: everything in peers/ is installed in .peers/ already");
        return agents(AGENTS);
    }
    // From here to the new stamp, what is there counts as nothing.
    if stamp.exists() {
        doing("remove the stamp of the last installation", fs::remove_file(&stamp))?;
    }
    require()?;
    npm(&manifests, &target.join("npm"), &["ci"])?;
    pip(&manifests, &target.join("python"))?;
    doing("write `.peers/stamp`", fs::write(&stamp, wanted))?;
    agents(AGENTS)?;
    println!("peers: done; remove .peers/ to undo");
    Ok(())
}

/// Installs the agents that only the long tests run as well.
///
/// # Errors
/// As [`install`].
pub(crate) fn install_all() -> Result<()> {
    install()?;
    agents(AGENTS_NATIVE)
}

/// Installs the coding agents of a folder of `peers/`.
fn agents(folder: &str) -> Result<()> {
    let (manifests, target) = (root().join("peers").join(folder), root().join(".peers").join(folder));
    let lock = manifests.join("package-lock.json");
    let wanted = doing(&format!("read `{}`", lock.display()), fs::read_to_string(&lock))?;
    let stamp = target.join("stamp");
    if fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) {
        return Ok(());
    }
    if stamp.exists() {
        doing("remove the stamp of the last installation", fs::remove_file(&stamp))?;
    }
    // Not `ci`: some optional dependencies of Qwen Code for other machines are not in every registry, so they are missing
    // in the lock file too.
    npm(&manifests, &target, &["install", "--no-save"])?;
    doing(&format!("write `{}`", stamp.display()), fs::write(&stamp, wanted))
}

/// The scripts' own tests, against the servers alone.
pub(crate) fn self_test() -> Program {
    Program::new(python()).args(["-B", "-m", "unittest", "test_peers"]).current_dir(&root().join("peers"))
}

fn wanted(manifests: &Path) -> Result<String> {
    let mut text = String::new();
    for name in MANIFESTS {
        text.push_str(&doing(&format!("read `peers/{name}`"), fs::read_to_string(manifests.join(name)))?);
    }
    Ok(text)
}

fn npm(manifests: &Path, target: &Path, how: &[&str]) -> Result<()> {
    println!("peers: installing {} into {} with npm", manifests.display(), target.display());
    doing(&format!("make `{}`", target.display()), fs::create_dir_all(target))?;
    for name in ["package.json", "package-lock.json"] {
        let from = manifests.join(name);
        doing(&format!("copy `{}`", from.display()), fs::copy(&from, target.join(name)))?;
    }
    // No package's own script runs at installation: none of these needs one.
    Program::new("npm")
        .args(how)
        .args(["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"])
        .current_dir(target)
        .run()
}

fn pip(manifests: &Path, target: &Path) -> Result<()> {
    println!(
        "peers: installing the client of peers/requirements.txt into .peers/python (a virtual environment)"
    );
    Program::new("python3").args(["-m", "venv", "--clear"]).args([target]).run()?;
    Program::new(python())
        .args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--only-binary",
            ":all:",
            "-r",
        ])
        .args([manifests.join("requirements.txt")])
        .run()
}

/// Whether node, npm and python3 are there and young enough.
fn require() -> Result<()> {
    let missing = missing();
    if missing.is_empty() {
        return Ok(());
    }
    if process::may_install() {
        println!(
            "peers: installing Debian's nodejs, npm, python3 and python3-venv, for want of {}",
            missing.join(", ")
        );
        process::install(&["nodejs", "npm", "python3", "python3-venv"])?;
    }
    let missing = self::missing();
    if missing.is_empty() {
        return Ok(());
    }
    Err(Failure::new(format!(
        "the integration tests need {}; install them (on Debian: `apt-get install nodejs npm python3 python3-venv`) \
         and run `cargo xtask peers` again",
        missing.join(", ")
    )))
}

fn missing() -> Vec<String> {
    let mut missing = Vec::new();
    let node = Program::new("node").args(["--version"]).answer();
    if node.is_none_or(|version| number(&version, "v") < Some(NODE_MAJOR_MIN)) {
        missing.push(format!("node {NODE_MAJOR_MIN} or later"));
    }
    if Program::new("npm").args(["--version"]).answer().is_none() {
        missing.push("npm".to_owned());
    }
    let python = Program::new("python3").args(["--version"]).answer();
    if python.is_none_or(|version| number(&version, "Python 3.") < Some(PYTHON_MINOR_MIN)) {
        missing.push(format!("python 3.{PYTHON_MINOR_MIN} or later"));
    } else if Program::new("python3").args(["-c", "import ensurepip, venv"]).answer().is_none() {
        missing.push("python3's venv module".to_owned());
    }
    missing
}

/// The number that follows `prefix` in `version`.
fn number(version: &str, prefix: &str) -> Option<u32> {
    version.strip_prefix(prefix)?.split('.').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_versions() {
        assert_eq!(number("v20.20.2", "v"), Some(20));
        assert_eq!(number("Python 3.11.7", "Python 3."), Some(11));
        assert_eq!(number("Python 2.7", "Python 3."), None);
    }

    #[test]
    fn every_version_is_exact_and_no_address_is_locked() {
        let peers = root().join("peers");
        let package: serde_json::Value =
            serde_json::from_str(&fs::read_to_string(peers.join("package.json")).unwrap()).unwrap();
        let named = ["dependencies", "optionalDependencies"].map(|key| package[key].as_object().unwrap());
        for (name, version) in named.into_iter().flatten() {
            assert!(version.as_str().unwrap().starts_with(|c: char| c.is_ascii_digit()), "{name} {version}");
        }
        assert!(!fs::read_to_string(peers.join("package-lock.json")).unwrap().contains("\"resolved\""));
        for line in fs::read_to_string(peers.join("requirements.txt")).unwrap().lines() {
            assert!(line.starts_with('#') || line.contains("=="), "{line}");
        }
    }
}
