//! Versions of bundles: who changed one, when and why, and all files, so that any can be put back. The Policy Editor of the
//! console writes them, and so do `portcullis policy promote` and `rollback`: there is one place for what was in force.
//!
//! A version is a small file with the names of its files and the digests of their content, which lies once in `blobs`
//! however many versions have it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use portcullis_core::bundle::Bundle;
use portcullis_core::id::{Digest, RunId};
use portcullis_ledger::clock;
use portcullis_session::bundle_dir::change;
pub use portcullis_session::bundle_dir::change::{Changes, is_own_path};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::home::Home;
use crate::state_file::{make_private, write_private};

/// The files of a bundle by path.
pub type Files = BTreeMap<String, Vec<u8>>;

/// Versions that are kept; beyond them the oldest go.
const VERSIONS_MAX: usize = 500;
/// Size of the file of one version, in bytes: a line for each of its files.
const VERSION_BYTES_MAX: u64 = 4 << 20;

/// A version.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Version {
    /// From 1.
    pub number: u64,
    /// When.
    pub at: String,
    /// Who wrote it; nobody for what was found.
    pub by: Option<String>,
    /// What they said of it.
    pub what: String,
    /// The digest of the bundle.
    pub digest: String,
    /// The folder of the bundle. Versions of the time before there were several have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// The run in which the record says what was done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<RunId>,
    /// SHA-256 of each file.
    files: BTreeMap<String, String>,
}

/// The folder of versions.
#[derive(Debug, Clone)]
pub struct Versions {
    folder: PathBuf,
}

/// What is kept of a change.
#[derive(Debug, Clone, Copy)]
pub struct Kept<'a> {
    /// The folder of the bundle; none for the one that ships.
    pub folder: Option<&'a Path>,
    /// The files before.
    pub old: &'a Files,
    /// The files after.
    pub new: &'a Files,
    /// Who.
    pub by: &'a str,
    /// What they said of it.
    pub what: &'a str,
    /// The run in which the record says what was done.
    pub record: Option<RunId>,
}

/// Why a folder is not written to, or the commit is left to a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Closed {
    /// Git manages the folder: what is in force is what was committed.
    Git(PathBuf),
    /// It may not be written to.
    ReadOnly(PathBuf),
}

/// Why nothing is written to a folder: a work tree of git begins there or above it, or it cannot be written to.
pub fn closed(folder: &Path) -> Option<Closed> {
    let real = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    if let Some(root) = real.ancestors().find(|above| above.join(".git").exists()) {
        return Some(Closed::Git(root.to_owned()));
    }
    let read_only = fs::metadata(&real).is_ok_and(|meta| meta.permissions().readonly());
    read_only.then_some(Closed::ReadOnly(real))
}

/// Makes a change of a bundle's folder, whole or not at all, if its files are still those of a digest.
///
/// # Errors
/// They are others by now, or cannot be written: nothing was changed.
pub fn write(folder: &Path, base: Digest, changes: &Changes) -> io::Result<()> {
    change::make(folder, Some(base), changes)
}

/// The changes that make some files others. Files that are not written to stay as they are.
pub fn changes_between(from: &Files, to: &Files) -> Changes {
    let paths: BTreeSet<&String> = from.keys().chain(to.keys()).collect();
    paths
        .into_iter()
        .filter(|path| is_own_path(path) && from.get(*path) != to.get(*path))
        .map(|path| (path.clone(), to.get(path).map(|bytes| String::from_utf8_lossy(bytes).into_owned())))
        .collect()
}

impl Versions {
    /// Those of a state folder.
    pub fn of(home: &Home) -> Self {
        Self { folder: home.console().join("versions") }
    }

    /// All versions of a bundle, the newest first.
    pub fn list(&self, bundle: Option<&Path>) -> io::Result<Vec<Version>> {
        let wanted = bundle.map(named);
        let mut all = self.all()?;
        all.retain(|version| is_of(version, wanted.as_deref()));
        all.reverse();
        Ok(all)
    }

    /// The version before one, of the same bundle.
    pub fn before(&self, version: &Version) -> io::Result<Option<Version>> {
        let earlier =
            |other: &Version| other.number < version.number && is_of(other, version.folder.as_deref());
        Ok(self.all()?.into_iter().rfind(earlier))
    }

    fn all(&self) -> io::Result<Vec<Version>> {
        let mut all = Vec::new();
        for number in self.numbers()? {
            all.extend(self.get(number)?);
        }
        Ok(all)
    }

    fn numbers(&self) -> io::Result<Vec<u64>> {
        let entries = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut numbers = Vec::new();
        for entry in entries {
            let name = entry?.file_name();
            let number: Option<u64> = name.to_str().and_then(|name| name.strip_suffix(".json")?.parse().ok());
            numbers.extend(number);
        }
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// The version of that number.
    pub fn get(&self, number: u64) -> io::Result<Option<Version>> {
        let file = self.file(number);
        match fs::metadata(&file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
            Ok(meta) if meta.len() > VERSION_BYTES_MAX => {
                Err(io::Error::other(format!("`{}` is too large", file.display())))
            }
            Ok(_) => {
                let bytes = fs::read(&file)?;
                let damaged =
                    |error| io::Error::other(format!("`{}` cannot be read: {error}", file.display()));
                serde_json::from_slice(&bytes).map(Some).map_err(damaged)
            }
        }
    }

    /// The files of a version, each checked against its digest.
    pub fn files(&self, version: &Version) -> io::Result<Files> {
        let read = |(path, digest): (&String, &String)| {
            let bytes = fs::read(self.blob(digest))?;
            if sha(&bytes) != *digest {
                return Err(io::Error::other(format!("the kept content of `{path}` is not what was kept")));
            }
            Ok((path.clone(), bytes))
        };
        version.files.iter().map(read).collect()
    }

    /// Keeps a change: what was there before, where no version is like it, and what is there now. Gives its number.
    pub fn keep(&self, kept: &Kept<'_>) -> io::Result<u64> {
        make_private(&self.folder.join("blobs"))?;
        // The console and commands take turns; released when it is closed.
        let turn = fs::File::create(self.folder.join("lock"))?;
        turn.lock()?;
        let mut number = self.numbers()?.last().copied().unwrap_or(0);
        let last = self.list(kept.folder)?.into_iter().next();
        let before = Bundle::digest_of(kept.old).to_string();
        if last.as_ref().is_none_or(|last| last.digest != before) {
            number += 1;
            let what = if last.is_none() { "as it was found" } else { "changed by somebody else" };
            self.write(number, None, &Kept { what, record: None, new: kept.old, ..*kept })?;
        }
        number += 1;
        self.write(number, Some(kept.by), kept)?;
        self.forget()?;
        Ok(number)
    }

    fn write(&self, number: u64, by: Option<&str>, kept: &Kept<'_>) -> io::Result<()> {
        let mut names = BTreeMap::new();
        for (path, content) in kept.new {
            let digest = sha(content);
            let blob = self.blob(&digest);
            if !blob.exists() {
                write_private(&blob, content)?;
            }
            names.insert(path.clone(), digest);
        }
        let version = Version {
            number,
            at: clock::now().to_string(),
            by: by.map(ToOwned::to_owned),
            what: kept.what.to_owned(),
            digest: Bundle::digest_of(kept.new).to_string(),
            folder: kept.folder.map(named),
            record: kept.record,
            files: names,
        };
        write_private(&self.file(number), &serde_json::to_vec_pretty(&version)?)
    }

    /// Removes the oldest versions beyond the limit, and content that no version has.
    fn forget(&self) -> io::Result<()> {
        let numbers = self.numbers()?;
        let surplus = numbers.len().saturating_sub(VERSIONS_MAX);
        if surplus == 0 {
            return Ok(());
        }
        for number in numbers.into_iter().take(surplus) {
            fs::remove_file(self.file(number))?;
        }
        let kept: BTreeSet<String> =
            self.all()?.into_iter().flat_map(|version| version.files.into_values()).collect();
        for entry in fs::read_dir(self.folder.join("blobs"))? {
            let path = entry?.path();
            if path.file_name().and_then(|name| name.to_str()).is_some_and(|name| !kept.contains(name)) {
                fs::remove_file(path)?;
            }
        }
        Ok(())
    }

    fn file(&self, number: u64) -> PathBuf {
        self.folder.join(format!("{number:06}.json"))
    }

    fn blob(&self, digest: &str) -> PathBuf {
        // A damaged version names no file elsewhere.
        let plain = digest.len() == 64 && digest.bytes().all(|b| b.is_ascii_hexdigit());
        self.folder.join("blobs").join(Path::new(if plain { digest } else { "none" }))
    }
}

/// Whether a version is of the bundle of that name.
fn is_of(version: &Version, wanted: Option<&str>) -> bool {
    version.folder.as_deref().is_none_or(|folder| wanted == Some(folder))
}

/// The name of a bundle's folder, whatever link leads there.
fn named(folder: &Path) -> String {
    fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned()).to_string_lossy().into_owned()
}

/// SHA-256 of some bytes.
pub fn sha(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(text: &str) -> Files {
        [
            ("portcullis.toml".to_owned(), b"version = 1\n".to_vec()),
            ("policies/a.toml".to_owned(), text.into()),
        ]
        .into()
    }

    #[test]
    fn each_version_can_be_read_again_and_content_lies_there_once() {
        let folder = tempfile::tempdir().unwrap();
        let versions = Versions { folder: folder.path().join("versions") };
        let bundle = folder.path().join("bundle");
        let kept = |old, new, by, what| {
            let kept = Kept { folder: Some(&bundle), old, new, by, what, record: None };
            versions.keep(&kept).unwrap()
        };
        assert!(versions.list(Some(&bundle)).unwrap().is_empty());
        let (one, two, three) = (files("1"), files("2"), files("3"));
        assert_eq!(kept(&one, &two, "ann", "more"), 2);
        // Somebody else wrote in between.
        assert_eq!(kept(&three, &one, "bo", "back"), 4);
        // Another bundle has versions of its own.
        let other = Kept {
            folder: Some(folder.path()),
            old: &two,
            new: &three,
            by: "cy",
            what: "other",
            record: None,
        };
        assert_eq!(versions.keep(&other).unwrap(), 6);
        let numbers = |bundle: &Path| -> Vec<u64> {
            versions.list(Some(bundle)).unwrap().iter().map(|version| version.number).collect()
        };
        assert_eq!(numbers(folder.path()), [6, 5]);
        assert_eq!(kept(&one, &two, "ann", "again"), 7);
        assert_eq!(versions.before(&versions.get(7).unwrap().unwrap()).unwrap().unwrap().number, 4);
        let list = versions.list(Some(&bundle)).unwrap();
        let said: Vec<(u64, Option<&str>, &str)> =
            list.iter().map(|v| (v.number, v.by.as_deref(), v.what.as_str())).collect();
        assert_eq!(
            said,
            [
                (7, Some("ann"), "again"),
                (4, Some("bo"), "back"),
                (3, None, "changed by somebody else"),
                (2, Some("ann"), "more"),
                (1, None, "as it was found")
            ]
        );
        assert_eq!(versions.files(&list[2]).unwrap(), three);
        assert_eq!(versions.files(&list[4]).unwrap(), one);
        assert_eq!(fs::read_dir(folder.path().join("versions/blobs")).unwrap().count(), 4);
        let blob = versions.blob(&list[0].files["policies/a.toml"]);
        fs::write(blob, "other").unwrap();
        assert!(versions.files(&list[0]).unwrap_err().to_string().contains("policies/a.toml"));
    }

    #[test]
    fn a_folder_of_git_is_known() {
        let folder = tempfile::tempdir().unwrap();
        let bundle = folder.path().join("deep/bundle");
        fs::create_dir_all(&bundle).unwrap();
        assert_eq!(closed(&bundle), None);
        fs::create_dir(folder.path().join(".git")).unwrap();
        assert!(matches!(closed(&bundle), Some(Closed::Git(_))));
    }
}
