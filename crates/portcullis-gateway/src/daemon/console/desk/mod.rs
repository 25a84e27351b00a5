//! Where the bundle is changed: checked as it would be loaded, kept as a version, recorded, written.
//!
//! What is saved is what was shown: a form carries the digest of the bundle that it was opened on and the digest of the
//! one that its page showed as the outcome, and nothing is written where either is another by now. A bundle with a
//! mistake is not written. A file is put into its place whole; where several change, the daemon takes up none of them
//! before all are there, since it believes a change only when it has seen the same files twice.

mod backtest;
pub(super) mod check;
pub(super) mod toml_text;
mod versions;

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use portcullis_core::bundle::{Bundle, Diagnostic};
use portcullis_core::limits::BUNDLE_FILE_BYTES_MAX;
use portcullis_session::bundles::Source;
use portcullis_session::{bundle_dir, policy};

pub(super) use self::backtest::Known as KnownBacktests;
pub(super) use self::check::{Checked, Depth, check};
pub(super) use self::versions::{Version, Versions};
use super::Seen;
use super::people;
use super::visitor::Visitor;
use crate::home_bundle;

/// The folder of the state folder in which a bundle of one's own begins, where the daemon serves the shipped one.
const OWN: &str = "bundle";

/// The files of a bundle by path.
pub(super) type Files = BTreeMap<String, Vec<u8>>;

/// What becomes of files: their new text, or that they go.
pub(super) type Changes = BTreeMap<String, Option<String>>;

/// Changes of the bundle take turns.
#[derive(Debug)]
pub(super) struct Desk {
    turn: tokio::sync::Mutex<()>,
    versions: Versions,
}

/// Why the console does not write a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Closed {
    /// Git manages the folder: what is in force is what was committed.
    Git(PathBuf),
    /// The daemon may not write there.
    ReadOnly(PathBuf),
}

impl Closed {
    /// In a sentence.
    pub(super) fn sentence(&self) -> String {
        match self {
            Self::Git(root) => format!(
                "The folder is managed by git (`{}`), so this page shows and checks, and writes nothing: commit the change there.",
                root.display()
            ),
            Self::ReadOnly(folder) => {
                format!(
                    "The gate may not write to `{}`, so this page shows and checks only.",
                    folder.display()
                )
            }
        }
    }
}

/// The bundle as it stands.
#[derive(Debug, Clone)]
pub(super) struct Standing {
    pub(super) source: Source,
    pub(super) files: Arc<Files>,
    /// The one in force, which may be older than the files where they no longer load.
    pub(super) bundle: Arc<Bundle>,
    /// Why nothing is written.
    pub(super) closed: Option<Closed>,
}

impl Standing {
    /// The digest of the files as they lie there.
    pub(super) fn digest(&self) -> String {
        Bundle::digest_of(&self.files).to_string()
    }

    /// A file as a text; empty if it is not there.
    pub(super) fn text(&self, path: &str) -> String {
        self.files.get(path).map(|bytes| String::from_utf8_lossy(bytes).into_owned()).unwrap_or_default()
    }

    /// The files after changes.
    pub(super) fn with(&self, changes: &Changes) -> Files {
        let mut files = (*self.files).clone();
        for (path, text) in changes {
            match text {
                Some(text) => drop(files.insert(path.clone(), text.clone().into_bytes())),
                None => drop(files.remove(path)),
            }
        }
        files
    }

    /// The folder, for people.
    pub(super) fn place(&self) -> String {
        self.source
            .as_deref()
            .map_or_else(|| "the bundle that ships".to_owned(), |path| path.display().to_string())
    }
}

/// Why nothing was saved.
#[derive(Debug)]
pub(super) enum NotSaved {
    Closed(Closed),
    /// The bundle is another than the one the page was opened on.
    Meanwhile,
    Mistakes(Vec<Diagnostic>),
    Nothing,
    Failed(String),
}

impl NotSaved {
    /// In a sentence.
    pub(super) fn sentence(&self) -> String {
        match self {
            Self::Closed(closed) => closed.sentence(),
            Self::Meanwhile => {
                "The bundle was changed since you opened this page. Nothing was saved; what you wrote is still below, compared with the bundle as it is now.".to_owned()
            }
            Self::Mistakes(mistakes) => {
                let first = mistakes.first().map(ToString::to_string).unwrap_or_default();
                format!("Nothing was saved: {first}. The bundle before stays in force.")
            }
            Self::Nothing => "Nothing was changed.".to_owned(),
            Self::Failed(why) => format!("Nothing was saved: {why}."),
        }
    }
}

impl Desk {
    pub(super) fn at(console: &Path) -> Self {
        Self { turn: tokio::sync::Mutex::default(), versions: Versions::at(console.join("versions")) }
    }

    pub(super) fn versions(&self) -> &Versions {
        &self.versions
    }

    /// Saves changes, for whoever makes them: recorded first, then written. Gives the number of the version and of the
    /// runs that could not take it up.
    pub(super) async fn save(
        &self,
        seen: &Seen,
        visitor: &Visitor,
        base: &str,
        changes: &Changes,
        what: &str,
    ) -> Result<u64, NotSaved> {
        let _turn = self.turn.lock().await;
        let standing = standing(seen).await.map_err(NotSaved::Failed)?;
        if let Some(closed) = standing.closed {
            return Err(NotSaved::Closed(closed));
        }
        if standing.digest() != base {
            return Err(NotSaved::Meanwhile);
        }
        let files = standing.with(changes);
        let (before, after) = (standing.digest(), Bundle::digest_of(&files).to_string());
        if before == after {
            return Err(NotSaved::Nothing);
        }
        let loaded = {
            let files = files.clone();
            tokio::task::spawn_blocking(move || policy::load(&files)).await
        };
        loaded.map_err(|error| NotSaved::Failed(error.to_string()))?.map_err(NotSaved::Mistakes)?;
        let by = &visitor.session.principal;
        let names: Vec<String> = changes.keys().map(|path| format!("`{path}`")).collect();
        let said = format!(
            "{} changes {} of the bundle in the console: {what}. Bundle {} before, {} after.",
            by.id,
            names.join(", "),
            short(&before),
            short(&after)
        );
        let recorded = people::record(seen, by.clone(), said).await;
        recorded.map_err(|failure| NotSaved::Failed(failure.told().1))?;
        let failed = |error: io::Error| NotSaved::Failed(error.to_string());
        let kept = Kept { old: &standing.files, new: &files, by: &by.id, what };
        let number = self.versions.keep(&kept).map_err(failed)?;
        match &standing.source {
            Some(folder) => write_all(folder, &standing.files, changes).map_err(failed)?,
            None => begin_own(seen, &files).map_err(NotSaved::Failed)?,
        }
        // What a run cannot record it goes on without, under the old bundle; the daemon's log says so.
        let _ = seen.shared.gate.reload(false).await;
        Ok(number)
    }
}

/// What is kept of a change.
struct Kept<'a> {
    old: &'a Files,
    new: &'a Files,
    by: &'a str,
    what: &'a str,
}

/// The first digits of a digest.
pub(super) fn short(digest: &str) -> &str {
    digest.rsplit(':').next().and_then(|hex| hex.get(..8)).unwrap_or(digest)
}

/// The bundle as it stands.
pub(super) async fn standing(seen: &Seen) -> Result<Standing, String> {
    let bundles = Arc::clone(&seen.shared.gate);
    let read = tokio::task::spawn_blocking(move || {
        let (source, bundle) = bundles.bundles().get(None).map_err(|error| error.to_string())?;
        let (files, closed) = match &source {
            Some(folder) => {
                let files = bundle_dir::read_files(folder).map_err(|error| error.to_string())?;
                (files, closed(folder))
            }
            None => (bundles.bundles().files_of(bundle.digest()).unwrap_or_default(), None),
        };
        Ok(Standing { source, files: Arc::new(files), bundle, closed })
    });
    read.await.map_err(|error| error.to_string())?
}

/// Why nothing is written to a folder: a work tree of git begins there or above it, or it cannot be written to.
fn closed(folder: &Path) -> Option<Closed> {
    let real = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    if let Some(root) = real.ancestors().find(|above| above.join(".git").exists()) {
        return Some(Closed::Git(root.to_owned()));
    }
    let read_only = fs::metadata(&real).is_ok_and(|meta| meta.permissions().readonly());
    read_only.then_some(Closed::ReadOnly(real))
}

/// Whether a path is one that the console writes to.
pub(super) fn is_own_path(path: &str) -> bool {
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

/// Writes all changes, or puts back what was written.
fn write_all(folder: &Path, before: &Files, changes: &Changes) -> io::Result<()> {
    let mut done: Vec<&str> = Vec::new();
    for (path, text) in changes {
        let written = write_one(folder, path, text.as_deref().map(str::as_bytes));
        if let Err(error) = written {
            for path in done {
                // The first error is the one to tell; what cannot be put back is seen by the next reload.
                let _ = write_one(folder, path, before.get(path).map(Vec::as_slice));
            }
            return Err(error);
        }
        done.push(path);
    }
    Ok(())
}

fn write_one(folder: &Path, path: &str, content: Option<&[u8]>) -> io::Result<()> {
    if !is_own_path(path) {
        return Err(io::Error::other(format!("`{path}` is no file that the console writes")));
    }
    let file = folder.join(path);
    if fs::symlink_metadata(&file).is_ok_and(|meta| meta.file_type().is_symlink()) {
        return Err(io::Error::other(format!("`{path}` is a link; change the file that it leads to")));
    }
    let Some(content) = content else {
        return match fs::remove_file(&file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        };
    };
    if content.len() > BUNDLE_FILE_BYTES_MAX {
        return Err(io::Error::other(format!("`{path}` has more than {BUNDLE_FILE_BYTES_MAX} bytes")));
    }
    let parent = file.parent().unwrap_or(folder);
    fs::create_dir_all(parent)?;
    let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    // Hidden, so that it is no file of the bundle while it is written.
    let aside = parent.join(format!(".{name}.new"));
    let mut out = fs::File::create(&aside)?;
    out.write_all(content)?;
    if let Ok(meta) = fs::metadata(&file) {
        out.set_permissions(meta.permissions())?;
    }
    out.sync_all()?;
    fs::rename(&aside, &file)
}

/// Begins a bundle of one's own in the state folder, and makes it the one that is served, from now on and after the next
/// start.
fn begin_own(seen: &Seen, files: &Files) -> Result<(), String> {
    let folder = seen.shared.home.path().join(OWN);
    if folder.exists() {
        let place = folder.display();
        return Err(format!("`{place}` is there already; serve it with `portcullis serve --bundle {place}`"));
    }
    let failed = |error: io::Error| format!("cannot write `{}`: {error}", folder.display());
    for (path, content) in files {
        let file = folder.join(path);
        file.parent()
            .map_or(Ok(()), fs::create_dir_all)
            .and_then(|()| fs::write(&file, content))
            .map_err(failed)?;
    }
    seen.shared.gate.bundles().adopt(folder.clone()).map_err(|error| error.to_string())?;
    home_bundle::choose(&seen.shared.home, &folder).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

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
            "tools/a b.toml",
        ] {
            assert!(!is_own_path(path), "{path}");
        }
    }

    #[test]
    fn a_change_of_several_files_is_made_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("policies")).unwrap();
        fs::write(folder.path().join("policies/a.toml"), "old").unwrap();
        std::os::unix::fs::symlink("/etc/hostname", folder.path().join("policies/b.toml")).unwrap();
        let before: Files = [("policies/a.toml".to_owned(), b"old".to_vec())].into();
        let changes: Changes = [
            ("policies/a.toml".to_owned(), Some("new".to_owned())),
            ("policies/b.toml".to_owned(), Some("x".to_owned())),
        ]
        .into();
        let refused = write_all(folder.path(), &before, &changes).unwrap_err().to_string();
        assert!(refused.contains("is a link"), "{refused}");
        assert_eq!(fs::read_to_string(folder.path().join("policies/a.toml")).unwrap(), "old");
        let changes: Changes = [
            ("policies/a.toml".to_owned(), Some("new".to_owned())),
            ("tools/c.toml".to_owned(), Some("c".to_owned())),
        ]
        .into();
        write_all(folder.path(), &before, &changes).unwrap();
        assert_eq!(fs::read_to_string(folder.path().join("policies/a.toml")).unwrap(), "new");
        assert_eq!(fs::read_to_string(folder.path().join("tools/c.toml")).unwrap(), "c");
        write_all(folder.path(), &before, &[("tools/c.toml".to_owned(), None)].into()).unwrap();
        assert!(!folder.path().join("tools/c.toml").exists());
    }

    #[test]
    fn a_folder_of_git_is_not_written_to() {
        let folder = tempfile::tempdir().unwrap();
        let bundle = folder.path().join("deep/bundle");
        fs::create_dir_all(&bundle).unwrap();
        assert_eq!(closed(&bundle), None);
        fs::create_dir(folder.path().join(".git")).unwrap();
        let found = closed(&bundle).unwrap();
        assert!(matches!(found, Closed::Git(_)) && found.sentence().contains("commit"), "{found:?}");
    }
}
