//! Changes several files of a bundle folder at once.
//!
//! A folder cannot be replaced in one step without asking operators to lay it out for that. So a change writes down what
//! the files were, in a hidden file, then writes the new ones, then removes the hidden file: that is the moment at which
//! the change is made. Until then [`read_files`](super::read_files) reads the old files, also when whoever made the change
//! has died half-way; the next change puts them back first.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use portcullis_core::bundle::Bundle;
use portcullis_core::id::Digest;
use portcullis_core::limits::BUNDLE_FILE_BYTES_MAX;
use serde::{Deserialize, Serialize};

/// What becomes of files by path: their new text, or that they go.
pub type Changes = BTreeMap<String, Option<String>>;

/// The file with what the files were. Hidden, so that it is no file of the bundle.
const JOURNAL: &str = ".portcullis-change";
/// Most files of one change.
const CHANGED_MAX: usize = 256;
/// Size of the journal, in bytes: what the files were, written as JSON.
const JOURNAL_BYTES_MAX: u64 = 32 << 20;

/// What files were before a change that is being made, or was never finished.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Journal {
    before: Changes,
}

impl Journal {
    /// The journal of a folder, if a change is under way.
    pub(super) fn of(folder: &Path) -> io::Result<Option<Self>> {
        let path = folder.join(JOURNAL);
        match fs::symlink_metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
            Ok(meta) if !meta.is_file() || meta.len() > JOURNAL_BYTES_MAX => {
                return Err(damaged(&path, "it is no file that a change wrote"));
            }
            Ok(_) => {}
        }
        let bytes = match fs::read(&path) {
            // The change was finished in between.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            bytes => bytes?,
        };
        let journal: Self = serde_json::from_slice(&bytes).map_err(|error| damaged(&path, error))?;
        if journal.before.keys().any(|path| !is_own_path(path)) {
            return Err(damaged(&path, "it names files that no change writes"));
        }
        Ok(Some(journal))
    }

    /// The files as they were before the change.
    pub(super) fn undo_in(self, files: &mut BTreeMap<String, Vec<u8>>) {
        for (path, text) in self.before {
            match text {
                Some(text) => drop(files.insert(path, text.into_bytes())),
                None => drop(files.remove(&path)),
            }
        }
    }
}

fn damaged(path: &Path, why: impl std::fmt::Display) -> io::Error {
    io::Error::other(format!(
        "`{}` says what a change of the bundle was about, and cannot be used: {why}; put the files right and remove it",
        path.display()
    ))
}

/// Whether a path is one that changes are made to: a file of a bundle, and nothing besides.
#[must_use]
pub fn is_own_path(path: &str) -> bool {
    let plain = |part: &str| {
        !part.is_empty()
            && !part.starts_with('.')
            && part.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
    };
    let known =
        ["policies/", "tools/", "plans/", "access/", "programs/", "sequences/", "contracts/", "tests/"];
    let ends = [".toml", ".cedar", ".star", ".md"];
    path == "knowledge.json"
        || path == "portcullis.toml"
        || (path.len() <= 200
            && path.split('/').count() <= 3
            && path.split('/').all(plain)
            && known.iter().any(|folder| path.starts_with(folder))
            && ends.iter().any(|end| path.ends_with(end)))
}

/// A moment of a change, at which it may end without warning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// What the files were is written down, under another name.
    Noted,
    /// It is in its place.
    Begun,
    /// So many files are written.
    Written(usize),
    /// The change is made.
    Made,
}

/// Makes changes: all of them, or none; where `base` is given, of a bundle with this digest alone.
///
/// # Errors
/// The bundle is another one by now, a path is not one that is written to, a file is a link or too large, or the folder
/// cannot be written: the files are as they were.
pub fn make(folder: &Path, base: Option<Digest>, changes: &Changes) -> io::Result<()> {
    make_with(folder, base, changes, &mut |_| Ok(()))
}

/// The same, for tests that end it at a moment: an error of `at` leaves everything as it lies there.
///
/// # Errors
/// As [`make`], and those of `at`.
#[doc(hidden)]
pub fn make_with(
    folder: &Path,
    base: Option<Digest>,
    changes: &Changes,
    at: &mut dyn FnMut(Moment) -> io::Result<()>,
) -> io::Result<()> {
    if changes.len() > CHANGED_MAX {
        return Err(io::Error::other(format!("a change is of at most {CHANGED_MAX} files")));
    }
    // Released when it is closed, also by the system.
    let place = File::open(folder)?;
    place.lock()?;
    if let Some(journal) = Journal::of(folder)? {
        write_all(folder, &journal.before, &mut |_| Ok(()))?;
        finish(folder, &place)?;
    }
    if let Some(base) = base {
        let files = super::read_files(folder).map_err(io::Error::other)?;
        if Bundle::digest_of(&files) != base {
            return Err(io::Error::other("the bundle was changed meanwhile"));
        }
    }
    let mut journal = Journal::default();
    for (path, text) in changes {
        check(folder, path, text.as_deref())?;
        let before = match fs::read(folder.join(path)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            before => Some(
                String::from_utf8(before?).map_err(|_| io::Error::other(format!("`{path}` is not UTF-8")))?,
            ),
        };
        journal.before.insert(path.clone(), before);
    }
    let noted = serde_json::to_vec(&journal)?;
    if noted.len() as u64 > JOURNAL_BYTES_MAX {
        return Err(io::Error::other(format!("a change is of at most {JOURNAL_BYTES_MAX} bytes")));
    }
    put(&folder.join(JOURNAL), &noted, &mut || at(Moment::Noted))?;
    place.sync_all()?;
    at(Moment::Begun)?;
    let mut ended = false;
    let written =
        write_all(folder, changes, &mut |done| at(Moment::Written(done)).inspect_err(|_| ended = true));
    if let Err(error) = written {
        if !ended {
            // The first error is the one to tell. Where this fails too, the journal stays, and with it the old files.
            let _ = write_all(folder, &journal.before, &mut |_| Ok(())).and_then(|()| finish(folder, &place));
        }
        return Err(error);
    }
    finish(folder, &place)?;
    at(Moment::Made)
}

/// The change counts from here on.
fn finish(folder: &Path, place: &File) -> io::Result<()> {
    fs::remove_file(folder.join(JOURNAL))?;
    place.sync_all()
}

/// Whether a file can be written.
fn check(folder: &Path, path: &str, text: Option<&str>) -> io::Result<()> {
    if !is_own_path(path) {
        return Err(io::Error::other(format!("`{path}` is no file of a bundle that is written to")));
    }
    if fs::symlink_metadata(folder.join(path)).is_ok_and(|meta| meta.file_type().is_symlink()) {
        return Err(io::Error::other(format!("`{path}` is a link; change the file that it leads to")));
    }
    if text.is_some_and(|text| text.len() > BUNDLE_FILE_BYTES_MAX) {
        return Err(io::Error::other(format!("`{path}` has more than {BUNDLE_FILE_BYTES_MAX} bytes")));
    }
    Ok(())
}

fn write_all(
    folder: &Path,
    changes: &Changes,
    at: &mut dyn FnMut(usize) -> io::Result<()>,
) -> io::Result<()> {
    for (place, (path, text)) in changes.iter().enumerate() {
        let file = folder.join(path);
        let parent = file.parent().unwrap_or(folder);
        match text {
            Some(text) => {
                fs::create_dir_all(parent)?;
                put(&file, text.as_bytes(), &mut || Ok(()))?;
                File::open(parent)?.sync_all()?;
            }
            None => match fs::remove_file(&file) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            },
        }
        at(place + 1)?;
    }
    Ok(())
}

/// Puts a file into its place whole, with the permissions of the one that it replaces.
fn put(file: &Path, content: &[u8], at: &mut dyn FnMut() -> io::Result<()>) -> io::Result<()> {
    let aside = aside(file);
    // What lies there may be anything, and is not opened.
    match fs::remove_file(&aside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut out = File::create_new(&aside)?;
    out.write_all(content)?;
    if let Ok(meta) = fs::metadata(file) {
        out.set_permissions(meta.permissions())?;
    }
    out.sync_all()?;
    at()?;
    fs::rename(&aside, file)
}

fn aside(file: &Path) -> PathBuf {
    let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    // Hidden, so that it is no file of the bundle while it is written.
    file.with_file_name(format!(".{}.new", name.trim_start_matches('.')))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bundle_dir::read_files;

    fn bundle() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("policies")).unwrap();
        fs::write(folder.path().join("portcullis.toml"), "old").unwrap();
        fs::write(folder.path().join("policies/a.toml"), "old").unwrap();
        folder
    }

    fn changes() -> Changes {
        [
            ("policies/a.toml".to_owned(), None),
            ("portcullis.toml".to_owned(), Some("new".to_owned())),
            ("programs/p.star".to_owned(), Some("new".to_owned())),
        ]
        .into()
    }

    #[test]
    fn only_files_of_a_bundle_are_written() {
        for path in ["policies/a.toml", "access/dev/b-1.cedar", "knowledge.json", "programs/x.star"] {
            assert!(is_own_path(path), "{path}");
        }
        for path in [
            "../a.toml",
            "policies/../../a.toml",
            "policies/.a.toml",
            "/etc/a.toml",
            "a.toml",
            "policies/a.sh",
            "policies//a.toml",
            "tests/a b.toml",
        ] {
            assert!(!is_own_path(path), "{path}");
            let folder = bundle();
            let refused = make(folder.path(), None, &[(path.to_owned(), Some(String::new()))].into());
            assert!(refused.unwrap_err().to_string().contains("is no file of a bundle"), "{path}");
        }
    }

    #[test]
    fn a_change_that_ends_at_any_moment_leaves_the_old_bundle_or_the_new_one() {
        let moments = [
            Moment::Noted,
            Moment::Begun,
            Moment::Written(1),
            Moment::Written(2),
            Moment::Written(3),
            Moment::Made,
        ];
        for moment in moments {
            let folder = bundle();
            let old = read_files(folder.path()).unwrap();
            let ended = make_with(folder.path(), None, &changes(), &mut |now| match now == moment {
                true => Err(io::Error::other("ended")),
                false => Ok(()),
            });
            assert_eq!(ended.unwrap_err().to_string(), "ended");
            let after = read_files(folder.path()).unwrap();
            if moment == Moment::Made {
                assert_eq!(after.keys().collect::<Vec<_>>(), ["portcullis.toml", "programs/p.star"]);
            } else {
                assert_eq!(after, old, "{moment:?}");
            }
            // The next change starts from what was read, whatever lies there.
            make(folder.path(), None, &[("tests/t.md".to_owned(), Some("t".to_owned()))].into()).unwrap();
            let mut expected = after;
            expected.insert("tests/t.md".to_owned(), b"t".to_vec());
            assert_eq!(read_files(folder.path()).unwrap(), expected, "{moment:?}");
            assert!(!folder.path().join(JOURNAL).exists());
        }
    }

    #[test]
    fn what_cannot_be_written_is_put_back() {
        let folder = bundle();
        std::os::unix::fs::symlink("/etc/hostname", folder.path().join("policies/b.toml")).unwrap();
        let mut all = changes();
        all.insert("policies/b.toml".to_owned(), Some("x".to_owned()));
        let refused = make(folder.path(), None, &all).unwrap_err().to_string();
        assert!(refused.contains("is a link"), "{refused}");
        fs::remove_file(folder.path().join("policies/b.toml")).unwrap();
        // A file where a folder is needed is found only while files are written.
        let old = read_files(folder.path()).unwrap();
        fs::write(folder.path().join("tests"), "").unwrap();
        all = changes();
        all.insert("tests/t.md".to_owned(), Some("x".to_owned()));
        make(folder.path(), None, &all).unwrap_err();
        fs::remove_file(folder.path().join("tests")).unwrap();
        assert_eq!(read_files(folder.path()).unwrap(), old);
        assert!(!folder.path().join(JOURNAL).exists());
    }

    #[test]
    fn a_bundle_that_was_changed_meanwhile_is_left_alone() {
        let folder = bundle();
        let base = Bundle::digest_of(&read_files(folder.path()).unwrap());
        make(folder.path(), Some(base), &changes()).unwrap();
        let refused = make(folder.path(), Some(base), &changes()).unwrap_err().to_string();
        assert!(refused.contains("changed meanwhile"), "{refused}");
    }

    #[test]
    fn a_journal_that_nobody_wrote_is_no_bundle() {
        for text in ["", "{", r#"{"before": {"../x": "y"}}"#, r#"{"before": {}, "more": 1}"#] {
            let folder = bundle();
            fs::write(folder.path().join(JOURNAL), text).unwrap();
            let refused = read_files(folder.path()).unwrap_err().to_string();
            assert!(refused.contains("put the files right"), "{refused}");
            make(folder.path(), None, &changes()).unwrap_err();
        }
    }
}
