//! `cargo xtask tidy`: the rules that no compiler knows.
//!
//! Each rule is a module and a function from facts to problems, so that its tests can show it firing and staying
//! silent without a repository: [`sources`] reads the text of files, [`guards`] asks every guard for its Markdown
//! test, [`edges`] holds the dependencies between our crates to the design, [`licences`] those of others to
//! `deny.toml`, [`permits`] says who may make permits, and [`dead`] finds public items that nothing uses.

mod dead;
mod edges;
pub(crate) mod guards;
mod licences;
mod permits;
mod sources;

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;

use crate::process::{Failure, Program, Result, doing, root};

/// The text files of the repository, by path from its top.
type Files = BTreeMap<String, String>;

/// Checks everything.
///
/// # Errors
/// The number of problems, each printed before; or what could not be read.
pub(crate) fn run() -> Result<()> {
    let files = files()?;
    let metadata = metadata()?;
    let rules = doing("read `deny.toml`", fs::read_to_string(root().join("deny.toml")))?;

    let mut problems = sources::check(&files);
    problems.extend(guards::check(&files));
    problems.extend(dead::check(&files));
    problems.extend(permits::check(&files));
    problems.extend(edges::check(&metadata)?);
    problems.extend(licences::check(&metadata, &rules)?);
    for problem in &problems {
        println!("{problem}");
    }
    if problems.is_empty() {
        println!("tidy: {} text files and {} packages are in order", files.len(), licences::count(&metadata));
        Ok(())
    } else {
        Err(Failure::new(format!("{} problems of tidiness", problems.len())))
    }
}

/// Everything that git tracks or would, except what is not text.
fn files() -> Result<Files> {
    let listed = Program::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .output()?;
    let mut files = Files::new();
    for path in listed.split_terminator('\0') {
        let whole = root().join(path);
        // A file may be tracked and deleted, or a link to a folder.
        if whole.is_file()
            && let Ok(text) = String::from_utf8(doing(&format!("read `{path}`"), fs::read(&whole))?)
            && !text.contains('\0')
        {
            files.insert(path.to_owned(), text);
        }
    }
    Ok(files)
}

/// What cargo knows about every package that any of our crates depends on, anywhere.
fn metadata() -> Result<Value> {
    let text = Program::cargo(["metadata", "--format-version", "1", "--locked"]).output()?;
    doing("read cargo's metadata", serde_json::from_str(&text))
}
