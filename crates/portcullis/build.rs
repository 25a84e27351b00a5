//! Tells the commit that the program is built from. The engine of guard programs is built with this script, too.
//!
//! `.git` is read as files, where it is there. An archive of the sources has none: in one that git made, for which
//! `.gitattributes` asks, git wrote the commit into `packaging/commit`. No program is needed.

use std::fs;
use std::path::{Path, PathBuf};

/// Digits of a commit that are told.
const DIGITS: usize = 12;

fn main() {
    // With one such line, other files of the package do not have this run again; this one is there wherever it runs.
    println!("cargo::rerun-if-changed=Cargo.toml");
    let version = std::env::var("CARGO_PKG_VERSION").unwrap_or_default();
    let sources = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default()).join("../..");
    let told = match (checked_out(&sources), archived(&sources)) {
        (Some(commit), _) => format!("{version} ({commit})"),
        (None, Some(commit)) => format!("{version} ({commit}, from an archive of the sources)"),
        (None, None) => format!("{version} (from sources that name no commit)"),
    };
    println!("cargo::rustc-env=PORTCULLIS_VERSION={told}");
}

/// The commit of the working tree.
fn checked_out(sources: &Path) -> Option<String> {
    let git = git_folder(&sources.join(".git"))?;
    // Of a branch that is packed no file of its own changes when it gets a commit, and this one does.
    println!("cargo::rerun-if-changed={}", git.join("logs/HEAD").display());
    let head = read(&git.join("HEAD"))?;
    short(&match head.strip_prefix("ref: ") {
        None => head,
        Some(name) => reference(&git, name)?,
    })
}

/// The commit that git wrote into an archive.
fn archived(sources: &Path) -> Option<String> {
    short(&read(&sources.join("packaging/commit"))?)
}

fn short(commit: &str) -> Option<String> {
    let hex = commit.len() >= DIGITS && commit.bytes().all(|b| b.is_ascii_hexdigit());
    hex.then(|| commit.get(..DIGITS).unwrap_or_default().to_owned())
}

/// The folder itself or, in a worktree, the one that the file of that name points to.
fn git_folder(git: &Path) -> Option<PathBuf> {
    if git.is_dir() {
        return Some(git.to_owned());
    }
    let text = fs::read_to_string(git).ok()?;
    let folder = text.trim().strip_prefix("gitdir: ")?;
    Some(git.parent()?.join(folder))
}

/// The commit of a branch: in a file of its own or packed, here or in the repository that this is a worktree of.
fn reference(git: &Path, name: &str) -> Option<String> {
    let common = fs::read_to_string(git.join("commondir")).ok().map(|common| git.join(common.trim()));
    let folders = [Some(git.to_owned()), common];
    folders.into_iter().flatten().find_map(|folder| {
        read(&folder.join(name)).or_else(|| {
            let packed = read(&folder.join("packed-refs"))?;
            let line = packed.lines().find(|line| line.split(' ').nth(1) == Some(name))?;
            Some(line.split(' ').next()?.to_owned())
        })
    })
}

/// Reads a file that says which commit it is, and has cargo run this again when it changes.
fn read(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    println!("cargo::rerun-if-changed={}", path.display());
    Some(text.trim().to_owned())
}
