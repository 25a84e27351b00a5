//! Versions of the bundle that the console wrote: who, when, what, and all files, so that any can be put back.
//!
//! A version is a small file with the names of its files and the digests of their content, which lies once in `blobs`
//! however many versions have it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use portcullis_core::bundle::Bundle;
use portcullis_ledger::clock;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::super::page;
use super::{Files, Kept};

/// Versions that are kept; beyond them the oldest go.
const VERSIONS_MAX: usize = 500;
/// Size of the file of one version, in bytes: a line for each of its files.
const VERSION_BYTES_MAX: u64 = 4 << 20;

/// A version.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in super::super) struct Version {
    /// From 1.
    pub(in super::super) number: u64,
    /// When.
    pub(in super::super) at: String,
    /// Who wrote it; nobody of the console for what was found.
    pub(in super::super) by: Option<String>,
    /// What they said of it.
    pub(in super::super) what: String,
    /// The digest of the bundle.
    pub(in super::super) digest: String,
    /// SHA-256 of each file.
    files: BTreeMap<String, String>,
}

/// The folder of versions. Whoever writes has the desk's turn.
#[derive(Debug)]
pub(in super::super) struct Versions {
    folder: PathBuf,
}

impl Versions {
    pub(super) fn at(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// All versions, the newest first.
    pub(in super::super) fn list(&self) -> io::Result<Vec<Version>> {
        let mut all = Vec::new();
        for number in self.numbers()? {
            all.extend(self.get(number)?);
        }
        all.reverse();
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
    pub(in super::super) fn get(&self, number: u64) -> io::Result<Option<Version>> {
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
    pub(in super::super) fn files(&self, version: &Version) -> io::Result<Files> {
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
    pub(super) fn keep(&self, kept: &Kept<'_>) -> io::Result<u64> {
        page::make_private(&self.folder.join("blobs"))?;
        let numbers = self.numbers()?;
        let last = match numbers.last() {
            Some(number) => self.get(*number)?,
            None => None,
        };
        let mut number = last.as_ref().map_or(0, |last| last.number);
        let before = Bundle::digest_of(kept.old).to_string();
        if last.is_none_or(|last| last.digest != before) {
            number += 1;
            let what = if number == 1 { "as it was found" } else { "changed outside of the console" };
            self.write(number, None, what, kept.old)?;
        }
        number += 1;
        self.write(number, Some(kept.by), kept.what, kept.new)?;
        self.forget()?;
        Ok(number)
    }

    fn write(&self, number: u64, by: Option<&str>, what: &str, files: &Files) -> io::Result<()> {
        let mut names = BTreeMap::new();
        for (path, content) in files {
            let digest = sha(content);
            let blob = self.blob(&digest);
            if !blob.exists() {
                page::write_private(&blob, content)?;
            }
            names.insert(path.clone(), digest);
        }
        let version = Version {
            number,
            at: clock::now().to_string(),
            by: by.map(ToOwned::to_owned),
            what: what.to_owned(),
            digest: Bundle::digest_of(files).to_string(),
            files: names,
        };
        page::write_private(&self.file(number), &serde_json::to_vec_pretty(&version)?)
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
            self.list()?.into_iter().flat_map(|version| version.files.into_values()).collect();
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

fn sha(bytes: &[u8]) -> String {
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
        let versions = Versions::at(folder.path().join("versions"));
        assert!(versions.list().unwrap().is_empty());
        let (one, two, three) = (files("1"), files("2"), files("3"));
        assert_eq!(versions.keep(&Kept { old: &one, new: &two, by: "ann", what: "more" }).unwrap(), 2);
        // Somebody else wrote in between.
        assert_eq!(versions.keep(&Kept { old: &three, new: &one, by: "bo", what: "back" }).unwrap(), 4);
        let list = versions.list().unwrap();
        let said: Vec<(u64, Option<&str>, &str)> =
            list.iter().map(|v| (v.number, v.by.as_deref(), v.what.as_str())).collect();
        assert_eq!(
            said,
            [
                (4, Some("bo"), "back"),
                (3, None, "changed outside of the console"),
                (2, Some("ann"), "more"),
                (1, None, "as it was found")
            ]
        );
        assert_eq!(versions.files(&list[1]).unwrap(), three);
        assert_eq!(versions.files(&list[3]).unwrap(), one);
        assert_eq!(fs::read_dir(folder.path().join("versions/blobs")).unwrap().count(), 4);
        let blob = versions.blob(&list[0].files["policies/a.toml"]);
        fs::write(blob, "other").unwrap();
        assert!(versions.files(&list[0]).unwrap_err().to_string().contains("policies/a.toml"));
    }
}
