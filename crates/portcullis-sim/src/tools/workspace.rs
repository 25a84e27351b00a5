//! The folder that the simulated tools work on.
//!
//! ```text
//! DIR/database.sqlite   invented customers, transactions and access requests
//! DIR/outbox/           one .eml file a mail
//! DIR/storage/          files written by the agent
//! DIR/tmp/              files being written; a rename or link out of here makes them appear whole
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{ToolError, query_internal_database, quoted};

/// Most documents a knowledge base may have.
pub(super) const MAX_DOCUMENTS: usize = 10_000;
/// Longest document, in bytes.
pub(super) const MAX_DOCUMENT_BYTES: usize = 256 * 1024;
/// Longest document id, in bytes.
pub(super) const MAX_DOCUMENT_ID_BYTES: usize = 128;

/// A folder with the five tools on it. Cheap to share: calls take `&self`.
#[derive(Debug)]
pub struct Workspace {
    root: PathBuf,
    knowledge: BTreeMap<String, String>,
    /// Held while the outbox or the storage is counted and added to, so that two calls cannot both
    /// take the last free place.
    writing: Mutex<()>,
}

/// Numbers the temporary files of this process, over all its workspaces: two may share a folder.
static NEXT_TEMPORARY: AtomicU64 = AtomicU64::new(0);

impl Workspace {
    /// Opens the folder `dir` for the tools, making it and what is missing in it. What is already
    /// there stays, so that a second run continues in the same world. `knowledge` maps document ids
    /// to texts.
    ///
    /// # Errors
    /// [`ToolError::Io`] if the folder cannot be made, or one of its parts is a symbolic link;
    /// [`ToolError::Knowledge`] and [`ToolError::Limit`] if the documents cannot be used;
    /// [`ToolError::Query`] if the database cannot be filled.
    pub fn create(dir: &Path, knowledge: &BTreeMap<String, String>) -> Result<Self, ToolError> {
        check_knowledge(knowledge)?;
        fs::create_dir_all(dir).map_err(|error| io_error("create the folder", dir, error))?;
        let root = dir.canonicalize().map_err(|error| io_error("open the folder", dir, error))?;
        let workspace = Self { root, knowledge: knowledge.clone(), writing: Mutex::new(()) };
        for part in [workspace.outbox(), workspace.storage(), workspace.temporary()] {
            ensure_folder(&part)?;
        }
        let database = workspace.database();
        if kind_of(&database)?.is_none() {
            let unfinished = workspace.new_temporary_path();
            query_internal_database::fill(&unfinished)?;
            publish(&unfinished, &database, "create the database")?;
        }
        Ok(workspace)
    }

    /// The folder, with symbolic links resolved.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    pub(super) fn knowledge(&self) -> &BTreeMap<String, String> {
        &self.knowledge
    }

    pub(super) fn database(&self) -> PathBuf {
        self.root.join("database.sqlite")
    }

    pub(super) fn outbox(&self) -> PathBuf {
        self.root.join("outbox")
    }

    pub(super) fn storage(&self) -> PathBuf {
        self.root.join("storage")
    }

    fn temporary(&self) -> PathBuf {
        self.root.join("tmp")
    }

    pub(super) fn lock_writing(&self) -> MutexGuard<'_, ()> {
        // The lock protects a count that is taken afresh by every holder, so a holder that panicked
        // left nothing half done behind it.
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn new_temporary_path(&self) -> PathBuf {
        let number = NEXT_TEMPORARY.fetch_add(1, Ordering::Relaxed);
        self.temporary().join(format!("{}-{number}", std::process::id()))
    }

    /// Writes `content` into a new temporary file and makes it durable.
    pub(super) fn write_temporary(&self, content: &[u8]) -> Result<PathBuf, ToolError> {
        let path = self.new_temporary_path();
        // A process of the same id may have died here before; its leftover is nobody's.
        let _ = fs::remove_file(&path);
        let written = fs::File::create_new(&path).and_then(|mut file| {
            file.write_all(content)?;
            file.sync_all()
        });
        match written {
            Ok(()) => Ok(path),
            Err(error) => {
                let _ = fs::remove_file(&path);
                Err(io_error("write", &path, error))
            }
        }
    }
}

/// Lets the finished file `from` appear as `to`. If `to` exists by now it stays and `from` goes:
/// whoever made it was first, and made the same.
fn publish(from: &Path, to: &Path, doing: &'static str) -> Result<(), ToolError> {
    let linked = fs::hard_link(from, to);
    let _ = fs::remove_file(from);
    match linked {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(io_error(doing, to, error)),
        _ => Ok(()),
    }
}

/// What is at `path`, without following a symbolic link; `None` if nothing is.
pub(super) fn kind_of(path: &Path) -> Result<Option<fs::FileType>, ToolError> {
    match fs::symlink_metadata(path) {
        Ok(metadata) => Ok(Some(metadata.file_type())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(io_error("look at", path, error)),
    }
}

/// Makes the folder `path` unless it is there. A symbolic link there is refused: it would let the
/// tools write somewhere else.
pub(super) fn ensure_folder(path: &Path) -> Result<(), ToolError> {
    let refused = |what: &str| Err(io_error("use the folder", path, std::io::Error::other(what)));
    match kind_of(path)? {
        Some(kind) if kind.is_dir() => Ok(()),
        Some(kind) if kind.is_symlink() => refused("it is a symbolic link, which could lead outside"),
        Some(_) => refused("it is not a folder"),
        None => match fs::create_dir(path) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                Err(io_error("create the folder", path, error))
            }
            _ => Ok(()),
        },
    }
}

pub(super) fn io_error(doing: &'static str, path: &Path, error: std::io::Error) -> ToolError {
    ToolError::Io { doing, path: path.display().to_string(), error }
}

fn check_knowledge(knowledge: &BTreeMap<String, String>) -> Result<(), ToolError> {
    if knowledge.len() > MAX_DOCUMENTS {
        return Err(ToolError::Limit {
            what: "a knowledge base",
            limit: format!("{MAX_DOCUMENTS} documents"),
            remedy: "remove some, or join short ones",
        });
    }
    for (id, text) in knowledge {
        let refuse = |problem: String| Err(ToolError::Knowledge { id: quoted(id), problem });
        if id.is_empty() || id.len() > MAX_DOCUMENT_ID_BYTES {
            return refuse(format!("needs an id of 1 to {MAX_DOCUMENT_ID_BYTES} bytes"));
        }
        // An id is cited as `[DOC:id]`.
        if id.chars().any(|c| c == ']' || c.is_control() || c.is_whitespace()) {
            return refuse("needs an id without spaces and `]`, so that it can be cited".to_owned());
        }
        if text.len() > MAX_DOCUMENT_BYTES {
            return refuse(format!("is {} bytes long; the limit is {MAX_DOCUMENT_BYTES}", text.len()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opening_twice_keeps_what_is_there() {
        let dir = tempfile::tempdir().unwrap();
        let first = Workspace::create(dir.path(), &BTreeMap::new()).unwrap();
        fs::write(first.storage().join("kept.txt"), "kept").unwrap();
        let before = fs::read(first.database()).unwrap();
        let second = Workspace::create(dir.path(), &BTreeMap::new()).unwrap();
        assert_eq!(fs::read_to_string(second.storage().join("kept.txt")).unwrap(), "kept");
        assert_eq!(fs::read(second.database()).unwrap(), before);
        assert_eq!(fs::read_dir(second.temporary()).unwrap().count(), 0);
    }

    #[cfg(unix)]
    #[test]
    fn a_linked_part_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), dir.path().join("outbox")).unwrap();
        let error = Workspace::create(dir.path(), &BTreeMap::new()).unwrap_err().to_string();
        assert!(error.ends_with("it is a symbolic link, which could lead outside"), "{error}");
    }

    #[test]
    fn documents_that_cannot_be_cited_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        for id in ["", "a]b", "a b", "a\nb"] {
            let knowledge = BTreeMap::from([(id.to_owned(), "text".to_owned())]);
            assert!(matches!(Workspace::create(dir.path(), &knowledge), Err(ToolError::Knowledge { .. })));
        }
        let long = BTreeMap::from([("doc".to_owned(), "x".repeat(MAX_DOCUMENT_BYTES + 1))]);
        assert!(matches!(Workspace::create(dir.path(), &long), Err(ToolError::Knowledge { .. })));
    }
}
