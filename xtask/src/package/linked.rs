//! What is linked into the programs: crates as cargo resolves them for the target, without those that only tests, build
//! scripts and macros need, and the C code that comes with them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::programs::Target;
use crate::engine;
use crate::process::{Failure, Program, Result, doing, root};

/// Deepest chain of dependencies that is read.
const DEPTH_MAX: usize = 200;

/// A crate or a library.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Linked {
    /// A licence expression as SPDX has it.
    pub(super) licence: String,
    pub(super) repository: String,
    /// Of the archive that it came as, where it came from a registry.
    pub(super) checksum: Option<String>,
    /// Its sources.
    pub(super) folder: Option<PathBuf>,
    /// What it depends on, as in [`Everything`].
    pub(super) depends: BTreeSet<Id>,
}

/// Name and version.
pub(super) type Id = (String, String);

/// All of it.
pub(super) type Everything = BTreeMap<Id, Linked>;

/// What the programs hold.
///
/// # Errors
/// Cargo does not say, or the sources of a library in C are not where they should be.
pub(super) fn everything(target: Target) -> Result<Everything> {
    let mut all = Everything::new();
    for manifest in ["Cargo.toml", engine::MANIFEST] {
        let mut tree = Program::cargo([
            "tree",
            "--locked",
            "--edges",
            "normal,no-proc-macro",
            "--prefix",
            "depth",
            "--format",
            " {p}\t{l}\t{r}",
        ])
        .args(["--target", target.triple, "--manifest-path", manifest]);
        if manifest == "Cargo.toml" {
            tree = tree.args(["--package", super::programs::MAIN]);
        }
        read_tree(&tree.output()?, &mut all)?;
        add_sources(manifest, target, &mut all)?;
    }
    for lock in ["Cargo.lock", "engines/starlark/Cargo.lock"] {
        let text = doing(&format!("read `{lock}`"), fs::read_to_string(root().join(lock)))?;
        add_checksums(&text, &mut all)?;
    }
    add_libraries(target, &mut all)?;
    Ok(all)
}

/// Reads lines such as `2 name v1.0.0 (path)<tab>licence<tab>repository`, each below the one before with a smaller number.
fn read_tree(text: &str, all: &mut Everything) -> Result<()> {
    let mut above: Vec<Id> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        let not_read = || Failure::new(format!("`cargo tree` prints `{line}`, which is not understood"));
        let (depth, rest) = line.split_once(' ').ok_or_else(not_read)?;
        let depth: usize = depth.parse().map_err(|_| not_read())?;
        let mut parts = rest.split('\t');
        let mut words = parts.next().unwrap_or_default().split(' ');
        let name = words.next().ok_or_else(not_read)?.to_owned();
        let version = words.next().and_then(|word| word.strip_prefix('v')).ok_or_else(not_read)?.to_owned();
        let id: Id = (name, version);
        let licence = parts.next().unwrap_or_default().replace('/', " OR ");
        // A crate that was shown before ends in a mark.
        let repository = parts.next().unwrap_or_default().trim_end_matches(" (*)").to_owned();
        let linked = all.entry(id.clone()).or_default();
        linked.licence = licence;
        linked.repository = repository;
        if depth > DEPTH_MAX || depth > above.len() {
            return Err(not_read());
        }
        above.truncate(depth);
        if let Some(parent) = above.last().and_then(|parent| all.get_mut(parent)) {
            parent.depends.insert(id.clone());
        }
        above.push(id);
    }
    Ok(())
}

/// Where the sources of each crate are.
fn add_sources(manifest: &str, target: Target, all: &mut Everything) -> Result<()> {
    let text = Program::cargo(["metadata", "--format-version", "1", "--locked"])
        .args(["--filter-platform", target.triple, "--manifest-path", manifest])
        .output()?;
    let metadata: Value = doing("read cargo's metadata", serde_json::from_str(&text))?;
    let packages = metadata.get("packages").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    for package in packages {
        let field = |name: &str| package.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        if let Some(linked) = all.get_mut(&(field("name"), field("version"))) {
            linked.folder = Path::new(&field("manifest_path")).parent().map(Path::to_owned);
        }
    }
    Ok(())
}

fn add_checksums(lock: &str, all: &mut Everything) -> Result<()> {
    let lock: toml::Table = doing("read a `Cargo.lock`", lock.parse())?;
    let packages = lock.get("package").and_then(toml::Value::as_array).map(Vec::as_slice).unwrap_or_default();
    for package in packages {
        let field = |name: &str| package.get(name).and_then(toml::Value::as_str).map(str::to_owned);
        let id = (field("name").unwrap_or_default(), field("version").unwrap_or_default());
        if let Some(linked) = all.get_mut(&id) {
            linked.checksum = field("checksum");
        }
    }
    Ok(())
}

/// What is not a crate: Rust's standard library, the C library, and sources in C that crates bring with them.
fn add_libraries(target: Target, all: &mut Everything) -> Result<()> {
    let compiler = Program::new("rustc").args(["--version"]).answer();
    let compiler = compiler.ok_or_else(|| Failure::new("`rustc --version` fails"))?;
    let version = compiler.split(' ').nth(1).unwrap_or_default();
    let library = |licence: &str, repository: &str| Linked {
        licence: licence.to_owned(),
        repository: repository.to_owned(),
        ..Linked::default()
    };
    let std = library("MIT OR Apache-2.0", "https://github.com/rust-lang/rust");
    all.insert(("rust-std".to_owned(), version.to_owned()), std);
    let folder = Program::new("rustc").args(["--print", "target-libdir", "--target", target.triple]).answer();
    let libc = PathBuf::from(folder.unwrap_or_default()).join("self-contained/libc.a");
    if let Ok(bytes) = fs::read(&libc) {
        let version = musl_version(&bytes).ok_or_else(|| {
            Failure::new(format!("`{}` does not say which version of musl it is", libc.display()))
        })?;
        all.insert(("musl".to_owned(), version), library("MIT", "https://git.musl-libc.org/cgit/musl"));
    }
    let Some(((name, wrapper), folder)) = all
        .iter()
        .find(|((name, _), _)| name == "libsqlite3-sys")
        .and_then(|(id, linked)| Some((id.clone(), linked.folder.clone()?)))
    else {
        return Ok(());
    };
    let header = folder.join("sqlite3/sqlite3.h");
    let text = doing(&format!("read `{}`", header.display()), fs::read_to_string(&header))?;
    let version = text.lines().find_map(|line| line.strip_prefix("#define SQLITE_VERSION ")).map(str::trim);
    let version = version.unwrap_or_default().trim_matches('"').to_owned();
    let id = ("sqlite".to_owned(), version);
    all.insert(id.clone(), library("blessing", "https://sqlite.org/src"));
    if let Some(linked) = all.get_mut(&(name, wrapper)) {
        linked.depends.insert(id);
    }
    Ok(())
}

/// The version in musl's archive: a text by itself between zeros.
fn musl_version(archive: &[u8]) -> Option<String> {
    archive.split(|byte| *byte == 0).find_map(|text| {
        let text = std::str::from_utf8(text).ok()?;
        let numbers: Vec<&str> = text.split('.').collect();
        let fits = numbers.len() == 3 && numbers.iter().all(|number| number.parse::<u8>().is_ok());
        fits.then(|| text.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_is_read_with_what_depends_on_what() {
        let text = "0 a v0.1.0 (/x/a)\tApache-2.0\thttps://a\n1 b v2.0.0\tMIT/Apache-2.0\thttps://b\n2 c v3.0.0\tMIT\t\n1 c v3.0.0\tMIT\t\n\
                    1 d v1.0.0\tMIT\thttps://d\n2 b v2.0.0\tMIT/Apache-2.0\thttps://b (*)\n";
        let mut all = Everything::new();
        read_tree(text, &mut all).unwrap();
        let id = |name: &str, version: &str| (name.to_owned(), version.to_owned());
        let depends = |name, version| {
            all[&id(name, version)].depends.iter().map(|id| id.0.as_str()).collect::<Vec<_>>()
        };
        assert_eq!(depends("a", "0.1.0"), ["b", "c", "d"]);
        assert_eq!(depends("b", "2.0.0"), ["c"]);
        assert_eq!(depends("d", "1.0.0"), ["b"]);
        let b = &all[&id("b", "2.0.0")];
        assert_eq!((b.licence.as_str(), b.repository.as_str()), ("MIT OR Apache-2.0", "https://b"));
        for wrong in ["x", "0 a", "0 a 1.0", "3 a v1.0.0\t\t"] {
            assert!(read_tree(wrong, &mut Everything::new()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn checksums_are_those_of_the_lock() {
        let mut all = Everything::from([(("b".to_owned(), "2.0.0".to_owned()), Linked::default())]);
        let lock = "version = 4\n[[package]]\nname = \"b\"\nversion = \"2.0.0\"\nchecksum = \"ab\"\n[[package]]\nname = \"b\"\nversion = \"1.0.0\"\nchecksum = \"cd\"\n";
        add_checksums(lock, &mut all).unwrap();
        assert_eq!(all.values().next().unwrap().checksum.as_deref(), Some("ab"));
    }

    #[test]
    fn musl_says_its_version() {
        assert_eq!(musl_version(b"\x7fELF\0GCC: 12.2.0\x001.2.5\0x").as_deref(), Some("1.2.5"));
        assert_eq!(musl_version(b"\x7fELF\0GCC: 12.2.0\0"), None);
    }
}
