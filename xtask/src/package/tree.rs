//! A tree of files as a package holds it, and its archives, whose bytes depend on nothing but the tree.
//!
//! Order, owners, modes and times are fixed here: two runs of the packing step, on whichever machine, give the same
//! bytes. Compression is the one of `Cargo.lock`, not of the machine.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write};

use flate2::{Compression, GzBuilder};
use sha2::{Digest as _, Sha256};
use tar::{Builder, EntryType, Header};

use crate::process::{Failure, Result, doing};

/// Bytes of all files of a package; a program with debugging information stays far below.
const BYTES_MAX: usize = 1 << 30;

/// A file that is a program, or a folder.
pub(super) const PROGRAM: u32 = 0o755;
/// Any other file.
pub(super) const TEXT: u32 = 0o644;

/// What is at a path.
#[derive(Debug, Clone)]
enum Entry {
    File { bytes: Vec<u8>, mode: u32 },
    Folder { mode: u32, owner: u64 },
    Link { to: String },
}

/// Files by path, without a slash before it. Folders above a file are there by themselves.
#[derive(Debug, Clone, Default)]
pub(super) struct Tree {
    entries: BTreeMap<String, Entry>,
    /// As in [`BYTES_MAX`].
    bytes: usize,
}

impl Tree {
    /// Adds a file that everybody may read.
    pub(super) fn file(&mut self, path: &str, bytes: impl Into<Vec<u8>>, mode: u32) {
        let bytes = bytes.into();
        self.bytes = self.bytes.saturating_add(bytes.len());
        self.put(path, Entry::File { bytes, mode });
    }

    /// Adds a folder that belongs to this user and group, or gives one another mode.
    pub(super) fn folder(&mut self, path: &str, mode: u32, owner: u64) {
        self.put(path, Entry::Folder { mode, owner });
    }

    /// Adds a symbolic link.
    pub(super) fn link(&mut self, path: &str, to: &str) {
        self.put(path, Entry::Link { to: to.to_owned() });
    }

    fn put(&mut self, path: &str, entry: Entry) {
        let mut above = path;
        while let Some((folder, _)) = above.rsplit_once('/') {
            let folder_entry = Entry::Folder { mode: PROGRAM, owner: 0 };
            self.entries.entry(folder.to_owned()).or_insert(folder_entry);
            above = folder;
        }
        self.entries.insert(path.to_owned(), entry);
    }

    /// The files with their bytes and modes, in order.
    pub(super) fn files(&self) -> impl Iterator<Item = (&str, &[u8], u32)> {
        self.entries.iter().filter_map(|(path, entry)| match entry {
            Entry::File { bytes, mode } => Some((path.as_str(), bytes.as_slice(), *mode)),
            _ => None,
        })
    }

    /// Bytes of all files.
    pub(super) fn size(&self) -> usize {
        self.bytes
    }

    /// As a tar archive whose paths begin with `before`. `time` is in seconds since the epoch.
    pub(super) fn tar(&self, before: &str, time: u64) -> Result<Vec<u8>> {
        if self.bytes > BYTES_MAX {
            return Err(Failure::new(format!("a package of {} bytes; {BYTES_MAX} at most", self.bytes)));
        }
        let mut archive = Builder::new(Vec::with_capacity(self.bytes + (1 << 20)));
        let packed = self
            .entries
            .iter()
            .try_for_each(|(path, entry)| append(&mut archive, &format!("{before}{path}"), entry, time));
        doing("pack an archive", packed.and_then(|()| archive.into_inner()))
    }

    /// The same, compressed.
    pub(super) fn tar_gz(&self, before: &str, time: u64, level: Compression) -> Result<Vec<u8>> {
        gzip(&self.tar(before, time)?, level)
    }
}

fn append(archive: &mut Builder<Vec<u8>>, path: &str, entry: &Entry, time: u64) -> io::Result<()> {
    let mut header = Header::new_gnu();
    header.set_mtime(time);
    let (mode, owner) = match entry {
        Entry::File { mode, .. } => (*mode, 0),
        Entry::Folder { mode, owner } => (*mode, *owner),
        Entry::Link { .. } => (0o777, 0),
    };
    header.set_mode(mode);
    header.set_uid(owner);
    header.set_gid(owner);
    header.set_size(0);
    match entry {
        Entry::File { bytes, .. } => {
            header.set_entry_type(EntryType::Regular);
            header.set_size(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
            archive.append_data(&mut header, path, bytes.as_slice())
        }
        Entry::Folder { .. } => {
            header.set_entry_type(EntryType::Directory);
            archive.append_data(&mut header, format!("{path}/"), io::empty())
        }
        Entry::Link { to } => {
            header.set_entry_type(EntryType::Symlink);
            archive.append_link(&mut header, path, to)
        }
    }
}

/// Compresses without a name and a time.
pub(super) fn gzip(bytes: &[u8], level: Compression) -> Result<Vec<u8>> {
    let mut writer = GzBuilder::new().write(Vec::with_capacity(bytes.len() / 2), level);
    doing("compress", writer.write_all(bytes).and_then(|()| writer.finish()))
}

/// SHA-256, in hexadecimal digits.
pub(super) fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::with_capacity(64), |mut text, byte| {
        let _never_fails = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Tree {
        let mut tree = Tree::default();
        tree.file("usr/bin/b", "two", PROGRAM);
        tree.link("usr/bin/a", "b");
        tree.folder("var/lib/x", 0o700, 65_532);
        tree
    }

    #[test]
    fn folders_come_before_what_they_hold_and_everything_has_its_owner() {
        let bytes = sample().tar("", 1_000).unwrap();
        let mut archive = tar::Archive::new(bytes.as_slice());
        let found: Vec<(String, u32, u64, u64)> = archive
            .entries()
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                let header = entry.header();
                let path = entry.path().unwrap().display().to_string();
                (path, header.mode().unwrap(), header.uid().unwrap(), header.mtime().unwrap())
            })
            .collect();
        let expected = [
            ("usr/", 0o755, 0),
            ("usr/bin/", 0o755, 0),
            ("usr/bin/a", 0o777, 0),
            ("usr/bin/b", 0o755, 0),
            ("var/", 0o755, 0),
            ("var/lib/", 0o755, 0),
            ("var/lib/x/", 0o700, 65_532),
        ];
        let expected: Vec<_> = expected.map(|(path, mode, uid)| (path.to_owned(), mode, uid, 1_000)).into();
        assert_eq!(found, expected);
    }

    #[test]
    fn the_same_tree_gives_the_same_bytes_in_whichever_order_it_was_made() {
        let mut other = Tree::default();
        other.folder("var/lib/x", 0o700, 65_532);
        other.link("usr/bin/a", "b");
        other.file("usr/bin/b", "two", PROGRAM);
        assert_eq!(
            sample().tar_gz("./", 7, Compression::fast()).unwrap(),
            other.tar_gz("./", 7, Compression::fast()).unwrap()
        );
        other.file("usr/bin/b", "three", PROGRAM);
        assert_ne!(
            sample().tar_gz("./", 7, Compression::fast()).unwrap(),
            other.tar_gz("./", 7, Compression::fast()).unwrap()
        );
    }

    #[test]
    fn a_digest_is_that_of_sha256sum() {
        assert_eq!(digest(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
