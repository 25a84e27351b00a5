//! `cargo xtask docs`: the manual's generated pages, and the proof that its commands work.
//!
//! Two things rot in a manual: pages that repeat what the code says, and commands that nobody has typed since. So the
//! pages about guards are written from the guards' own doc comments ([`guards`]), tables of the map from the code
//! ([`map`]), and every block of commands in
//! `README.md` and `docs/` is run, its output compared with what the page shows ([`console`]). Links between pages are
//! followed too, and tests that a page names looked up ([`links`]).

mod console;
mod guards;
mod links;
mod map;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::engine;
use crate::pictures;
use crate::process::{Failure, Result, doing, root};

/// Where the generated pages are.
const GUARDS: &str = "docs/guards";
/// Pages at the top of the repository.
const TOP: [&str; 5] = ["ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "README.md", "SECURITY.md"];
/// Files of the manual, or of the crates; more than there will ever be.
const FILES_MAX: usize = 4_000;
/// Deepest folder of either.
const DEPTH_MAX: usize = 8;

/// Text files by path from the top of the repository.
type Files = BTreeMap<String, String>;

/// Writes the pages about guards and removes those of guards that are gone.
///
/// # Errors
/// A guard's doc comment lacks a section, or a file cannot be read or written.
pub(crate) fn write() -> Result<()> {
    let pages = guards::pages(&sources()?)?;
    for stale in manual()?.keys().filter(|path| is_generated(path) && !pages.contains_key(*path)) {
        doing(&format!("remove `{stale}`"), fs::remove_file(root().join(stale)))?;
        println!("docs: removed {stale}");
    }
    doing(&format!("make `{GUARDS}`"), fs::create_dir_all(root().join(GUARDS)))?;
    for (path, text) in &pages {
        doing(&format!("write `{path}`"), fs::write(root().join(path), text))?;
    }
    println!("docs: {} pages in {GUARDS}/", pages.len());
    let page = map(&manual()?)?;
    doing(&format!("write `{}`", map::PAGE), fs::write(root().join(map::PAGE), page))?;
    println!("docs: tables in {}", map::PAGE);
    let page = engine::page(manual()?.get(engine::PAGE).map(String::as_str).unwrap_or_default())?;
    doing(&format!("write `{}`", engine::PAGE), fs::write(root().join(engine::PAGE), page))?;
    Ok(())
}

/// The program as the tests build it, with what an installation puts beside it.
///
/// # Errors
/// It cannot be built.
pub(crate) fn built() -> Result<PathBuf> {
    console::build()
}

/// Holds the generated pages to the code, and runs the commands of the manual.
///
/// # Errors
/// The number of problems, each printed before; or what could not be read or built.
pub(crate) fn check() -> Result<()> {
    let manual = manual()?;
    let crates = sources()?;
    let mut problems = outdated(&manual, &guards::pages(&crates)?);
    if manual.get(map::PAGE) != Some(&map(&manual)?) {
        problems.push(format!("{}: its tables differ from the code; run `cargo xtask docs`", map::PAGE));
    }
    let page = manual.get(engine::PAGE).map(String::as_str).unwrap_or_default();
    if engine::page(page)? != page {
        problems
            .push(format!("{}: its toolbox differs from the engine's; run `cargo xtask docs`", engine::PAGE));
    }
    problems.extend(pictures::check());
    problems.extend(links::check(&manual));
    problems.extend(links::missing_tests(&manual, &crates));
    problems.extend(console::check(&manual)?);
    for problem in &problems {
        println!("{problem}");
    }
    if problems.is_empty() {
        Ok(())
    } else {
        Err(Failure::new(format!("{} problems in the manual", problems.len())))
    }
}

/// `ARCHITECTURE.md` with its tables as the code has them.
fn map(manual: &Files) -> Result<String> {
    let page = manual.get(map::PAGE).map(String::as_str).unwrap_or_default();
    let mut manifests = Files::new();
    collect("crates", "toml", 0, &mut manifests)?;
    manifests.retain(|path, _| path.ends_with("/Cargo.toml"));
    map::page(page, &manifests, &sources()?)
}

fn is_generated(path: &str) -> bool {
    path.strip_prefix(GUARDS).is_some_and(|rest| rest.starts_with('/'))
}

/// Pages that differ from what the code says, are missing, or belong to no guard.
fn outdated(manual: &Files, wanted: &Files) -> Vec<String> {
    let mut problems = Vec::new();
    for (path, text) in wanted {
        match manual.get(path) {
            Some(found) if found == text => {}
            Some(_) => {
                problems.push(format!("{path}: differs from the guard's doc comment; run `cargo xtask docs`"))
            }
            None => problems.push(format!("{path}: missing; run `cargo xtask docs`")),
        }
    }
    let left_over = manual.keys().filter(|path| is_generated(path) && !wanted.contains_key(*path));
    problems.extend(left_over.map(|path| format!("{path}: no guard has this page; run `cargo xtask docs`")));
    problems
}

/// The pages at the top and everything in Markdown under `docs/`.
fn manual() -> Result<Files> {
    let mut files = Files::new();
    for name in TOP {
        let text = doing(&format!("read `{name}`"), fs::read_to_string(root().join(name)))?;
        files.insert(name.to_owned(), text);
    }
    collect("docs", "md", 0, &mut files)?;
    Ok(files)
}

/// The source of our crates.
fn sources() -> Result<Files> {
    let mut files = Files::new();
    collect(guards::SOURCES, "rs", 0, &mut files)?;
    Ok(files)
}

fn collect(folder: &str, extension: &str, depth: usize, files: &mut Files) -> Result<()> {
    let whole = root().join(folder);
    if !whole.is_dir() {
        return Ok(());
    }
    if depth > DEPTH_MAX || files.len() > FILES_MAX {
        return Err(Failure::new(format!(
            "`{folder}` is deeper than {DEPTH_MAX} folders or has too many files"
        )));
    }
    let entries = doing(&format!("read `{folder}`"), fs::read_dir(&whole))?;
    for entry in entries {
        let entry = doing(&format!("read `{folder}`"), entry)?;
        let path = format!("{folder}/{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            collect(&path, extension, depth + 1, files)?;
        } else if Path::new(&path).extension().is_some_and(|found| found == extension) {
            let text = doing(&format!("read `{path}`"), fs::read_to_string(entry.path()))?;
            files.insert(path, text);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(entries: &[(&str, &str)]) -> Files {
        entries.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect()
    }

    #[test]
    fn generated_pages_are_held_to_the_code() {
        let wanted = files(&[("docs/guards/a.md", "a"), ("docs/guards/b.md", "b")]);
        assert!(outdated(&wanted, &wanted).is_empty());
        let manual =
            files(&[("docs/guards/a.md", "old"), ("docs/guards/c.md", "c"), ("docs/guards.md", "by hand")]);
        let problems = outdated(&manual, &wanted);
        assert_eq!(problems.len(), 3, "{problems:?}");
        assert!(problems[0].starts_with("docs/guards/a.md: differs"));
        assert!(problems[1].starts_with("docs/guards/b.md: missing"));
        assert!(problems[2].starts_with("docs/guards/c.md: no guard"));
    }
}
