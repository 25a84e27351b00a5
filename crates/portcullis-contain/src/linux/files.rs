//! What became of the files that could be written: they are looked at before the command starts and after everything
//! of it has ended.
//!
//! A file is another one if its inode, size, times, kind or permissions are others; no command can set the time of the
//! last change. Contents are read only of files that changed, up to [`HASHED_MAX`]. Links are not followed, and of
//! devices and pipes no more than their names is looked at.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use portcullis_core::id::Digest;
use portcullis_core::observed::{FileChange, FileChangeHow, Files, Seen};
use rustix::fs::{AtFlags, Dir, FileType, FlockOperation, Mode, OFlags};

use crate::error::ContainError;

/// Most files and folders that are looked at: some 300 bytes each.
const ENTRIES_MAX: usize = 200_000;
/// Most changes that are told.
const CHANGES_MAX: usize = 4096;
/// Most bytes of a file whose content is read.
const FILE_HASHED_MAX: u64 = 32 << 20;
/// Most bytes of all contents that are read: a fraction of a second.
const HASHED_MAX: u64 = 128 << 20;
/// Bytes that are read at once.
const CHUNK: usize = 128 << 10;
/// Threads that look, where there is much to look at.
const THREADS_MAX: usize = 4;
/// Folders that wait to be looked at before threads are worth starting.
const MUCH: usize = 24;

/// What tells a file from another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    mode: u32,
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    fn kind(&self) -> FileType {
        FileType::from_raw_mode(self.mode)
    }

    /// Folders change with what is in them, which is told by itself.
    fn is_same(&self, other: &Self) -> bool {
        if self.kind() == FileType::Directory { self.mode == other.mode } else { self == other }
    }
}

/// Folders with what is in them.
#[derive(Debug, Default)]
struct Tree {
    folders: HashMap<PathBuf, HashMap<OsString, Stamp>>,
    /// Something was not looked at.
    is_cut: bool,
}

/// The files that can be written, as they are before the command.
#[derive(Debug)]
pub(super) struct Before {
    roots: Vec<PathBuf>,
    tree: JoinHandle<Tree>,
}

impl Before {
    /// Begins to look at them. The command cannot start as long as `gate` is locked.
    ///
    /// # Errors
    /// The gate cannot be locked, or there is no thread to be had.
    pub(super) fn begin(write: &[PathBuf], gate: File) -> Result<Self, ContainError> {
        let failed = || ContainError::io("look at the files that can be written");
        let roots = outermost(write);
        rustix::fs::flock(&gate, FlockOperation::LockExclusive).map_err(|error| failed()(error.into()))?;
        let these = roots.clone();
        let look = move || {
            let tree = look(&these);
            // Closing it would unlock it as well.
            let _unlocked = rustix::fs::flock(&gate, FlockOperation::Unlock);
            tree
        };
        let tree = thread::Builder::new().spawn(look).map_err(failed())?;
        Ok(Self { roots, tree })
    }

    /// Looks again, and tells what is not as it was.
    pub(super) fn finish(self) -> Files {
        let Ok(before) = self.tree.join() else { return Files::default() };
        let after = look(&self.roots);
        let is_cut = before.is_cut || after.is_cut;
        let mut changes = compare(&before, &after);
        changes.sort_by(|one, other| one.path.cmp(&other.path));
        let is_too_many = changes.len() > CHANGES_MAX;
        changes.truncate(CHANGES_MAX);
        let is_read = read_contents(&mut changes);
        let seen = if is_cut || is_too_many || !is_read { Seen::Some } else { Seen::All };
        Files { seen, changes }
    }
}

/// Without folders that are below others.
fn outermost(paths: &[PathBuf]) -> Vec<PathBuf> {
    let mut all = paths.to_vec();
    all.sort();
    all.dedup();
    let is_below = |path: &PathBuf| paths.iter().any(|other| path != other && path.starts_with(other));
    all.retain(|path| !is_below(path));
    all
}

/// What waits to be looked at, and what was found.
#[derive(Debug)]
struct Queue {
    waiting: Vec<PathBuf>,
    /// Folders that are being looked at: they may add some.
    at_work: usize,
    left: usize,
    tree: Tree,
}

fn look(roots: &[PathBuf]) -> Tree {
    let tree = Tree::default();
    let mut queue = Queue { waiting: roots.to_vec(), at_work: 0, left: ENTRIES_MAX, tree };
    while queue.waiting.len() < MUCH {
        let Some(folder) = queue.waiting.pop() else { return queue.tree };
        let found = entries(&folder, queue.left);
        queue.add(folder, found);
    }
    let threads = thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX);
    let (queue, more) = (Mutex::new(queue), Condvar::new());
    thread::scope(|scope| {
        for _ in 1..threads {
            // Where there is no thread to be had, the others do the work.
            let _none = thread::Builder::new().spawn_scoped(scope, || work(&queue, &more));
        }
        work(&queue, &more);
    });
    queue.into_inner().unwrap_or_else(PoisonError::into_inner).tree
}

fn work(queue: &Mutex<Queue>, more: &Condvar) {
    let mut locked = lock(queue);
    loop {
        let Some(folder) = locked.waiting.pop() else {
            if locked.at_work == 0 {
                return more.notify_all();
            }
            locked = more.wait(locked).unwrap_or_else(PoisonError::into_inner);
            continue;
        };
        locked.at_work += 1;
        let left = locked.left;
        drop(locked);
        let found = entries(&folder, left);
        locked = lock(queue);
        locked.at_work -= 1;
        locked.add(folder, found);
        more.notify_all();
    }
}

fn lock(queue: &Mutex<Queue>) -> MutexGuard<'_, Queue> {
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Queue {
    fn add(&mut self, folder: PathBuf, found: Option<HashMap<OsString, Stamp>>) {
        let Some(found) = found else {
            self.tree.is_cut = true;
            return;
        };
        self.left = self.left.saturating_sub(found.len());
        let folders = found.iter().filter(|(_, stamp)| stamp.kind() == FileType::Directory);
        self.waiting.extend(folders.map(|(name, _)| folder.join(name)));
        self.tree.folders.insert(folder, found);
    }
}

/// What is in a folder; nothing where it cannot be looked at, or there is more than `most`.
fn entries(folder: &Path, most: usize) -> Option<HashMap<OsString, Stamp>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let handle = match rustix::fs::open(folder, flags, Mode::empty()) {
        Ok(handle) => handle,
        // It is gone, or something else is there now: that is told by the folder above.
        Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => return Some(HashMap::new()),
        Err(_) => return None,
    };
    let mut found = HashMap::new();
    for entry in Dir::read_from(&handle).ok()? {
        let entry = entry.ok()?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        if found.len() >= most {
            return None;
        }
        match rustix::fs::statat(&handle, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => found.insert(OsStr::from_bytes(name.to_bytes()).to_owned(), stamp(&stat)),
            Err(rustix::io::Errno::NOENT) => continue,
            Err(_) => return None,
        };
    }
    Some(found)
}

#[expect(clippy::useless_conversion, reason = "the widths of these fields differ between architectures")]
fn stamp(stat: &rustix::fs::Stat) -> Stamp {
    let nanoseconds = |part: u64| i64::try_from(part).unwrap_or(0);
    Stamp {
        mode: stat.st_mode,
        inode: stat.st_ino,
        bytes: u64::try_from(stat.st_size).unwrap_or(0),
        modified: (stat.st_mtime.into(), nanoseconds(stat.st_mtime_nsec.into())),
        changed: (stat.st_ctime.into(), nanoseconds(stat.st_ctime_nsec.into())),
    }
}

fn compare(before: &Tree, after: &Tree) -> Vec<FileChange> {
    let mut changes = Vec::new();
    let nothing = HashMap::new();
    for (folder, now) in &after.folders {
        // Folders that were not looked at before say nothing about what is in them.
        let was = match before.folders.get(folder) {
            Some(was) => was,
            None if before.is_cut => continue,
            None => &nothing,
        };
        for (name, stamp) in now {
            let how = match was.get(name) {
                Some(old) if old.is_same(stamp) => continue,
                Some(_) => FileChangeHow::Changed,
                None if stamp.kind() == FileType::Directory => continue,
                None => FileChangeHow::Made,
            };
            let is_file = stamp.kind() == FileType::RegularFile;
            let bytes = is_file.then_some(stamp.bytes);
            changes.push(FileChange { path: folder.join(name), how, bytes, digest: None });
        }
    }
    for (folder, was) in &before.folders {
        let now = match after.folders.get(folder) {
            Some(now) => now,
            None if after.is_cut => continue,
            None => &nothing,
        };
        let gone = was
            .iter()
            .filter(|(name, stamp)| stamp.kind() != FileType::Directory && !now.contains_key(*name));
        changes.extend(gone.map(|(name, _)| FileChange {
            path: folder.join(name),
            how: FileChangeHow::Deleted,
            bytes: None,
            digest: None,
        }));
    }
    changes
}

/// Adds the digests; whether all contents were read.
fn read_contents(changes: &mut [FileChange]) -> bool {
    let (mut left, mut is_read) = (HASHED_MAX, true);
    let mut chunk = vec![0; CHUNK];
    for change in changes {
        let Some(bytes) = change.bytes else { continue };
        if bytes > FILE_HASHED_MAX.min(left) {
            is_read = false;
            continue;
        }
        match digest(&change.path, &mut chunk) {
            Some((digest, read)) => {
                left = left.saturating_sub(read);
                change.digest = Some(digest);
            }
            None => is_read = false,
        }
    }
    is_read
}

/// The digest of a file's content and its length; nothing where it cannot be read or grew too long.
fn digest(path: &Path, chunk: &mut [u8]) -> Option<(Digest, u64)> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty()).ok()?);
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut file = file.take(FILE_HASHED_MAX.saturating_add(1));
    let mut context = ring::digest::Context::new(&ring::digest::SHA256);
    let mut total: u64 = 0;
    loop {
        let length = file.read(chunk).ok()?;
        if length == 0 {
            break;
        }
        context.update(chunk.get(..length)?);
        total = total.saturating_add(u64::try_from(length).ok()?);
    }
    let digest: [u8; 32] = context.finish().as_ref().try_into().ok()?;
    (total <= FILE_HASHED_MAX).then_some((Digest::from_bytes(digest), total))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    fn told(folder: &Path, change: impl FnOnce()) -> Files {
        let before = look(&[folder.to_owned()]);
        let before = Before { roots: vec![folder.to_owned()], tree: thread::spawn(move || before) };
        change();
        before.finish()
    }

    fn names(files: &Files, folder: &Path) -> Vec<(String, FileChangeHow)> {
        let name = |change: &FileChange| change.path.strip_prefix(folder).unwrap().display().to_string();
        files.changes.iter().map(|change| (name(change), change.how)).collect()
    }

    #[test]
    fn what_was_made_changed_and_deleted_is_told_with_digests() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("gone/deep")).unwrap();
        for name in ["same", "content", "mode", "gone/one", "gone/deep/two", "moved", "touched"] {
            fs::write(at(name), "old").unwrap();
        }
        symlink("same", at("link")).unwrap();
        let files = told(folder.path(), || {
            let times = fs::metadata(at("content")).unwrap().modified().unwrap();
            fs::write(at("content"), "new").unwrap();
            // Its time of modification can be set back.
            File::options().write(true).open(at("content")).unwrap().set_modified(times).unwrap();
            fs::set_permissions(at("mode"), fs::Permissions::from_mode(0o600)).unwrap();
            fs::remove_dir_all(at("gone")).unwrap();
            fs::rename(at("moved"), at("here")).unwrap();
            fs::create_dir(at("made")).unwrap();
            fs::write(at("made/file"), "abc").unwrap();
            fs::remove_file(at("link")).unwrap();
            symlink("/etc/passwd", at("link")).unwrap();
        });
        use FileChangeHow::{Changed, Deleted, Made};
        let expected = [
            ("content", Changed),
            ("gone/deep/two", Deleted),
            ("gone/one", Deleted),
            ("here", Made),
            ("link", Changed),
            ("made/file", Made),
            ("mode", Changed),
            ("moved", Deleted),
        ];
        assert_eq!(names(&files, folder.path()), expected.map(|(name, how)| (name.to_owned(), how)));
        assert_eq!(files.seen, Seen::All);
        let digest = |name: &str| files.changes.iter().find(|one| one.path == at(name)).unwrap().digest;
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert!(digest("made/file").unwrap().to_string().ends_with(abc));
        assert_eq!(digest("link"), None);
    }

    #[test]
    fn many_folders_are_looked_at_by_threads_and_a_pipe_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        for number in 0..100 {
            fs::create_dir(folder.path().join(format!("{number}"))).unwrap();
            fs::write(folder.path().join(format!("{number}/file")), "x").unwrap();
        }
        let files = told(folder.path(), || {
            fs::remove_file(folder.path().join("99/file")).unwrap();
            let pipe = folder.path().join("pipe");
            nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        });
        let expected = [("99/file", FileChangeHow::Deleted), ("pipe", FileChangeHow::Made)];
        assert_eq!(names(&files, folder.path()), expected.map(|(name, how)| (name.to_owned(), how)));
    }

    #[test]
    fn what_is_too_large_to_be_read_is_told_without_a_digest() {
        let folder = tempfile::tempdir().unwrap();
        let files = told(folder.path(), || {
            File::create(folder.path().join("large")).unwrap().set_len(FILE_HASHED_MAX + 1).unwrap();
        });
        assert_eq!((files.seen, files.changes[0].digest), (Seen::Some, None));
        assert_eq!(files.changes[0].bytes, Some(FILE_HASHED_MAX + 1));
    }

    #[test]
    fn folders_below_others_are_looked_at_once() {
        let paths = ["/w/b", "/w", "/v", "/w"].map(PathBuf::from);
        assert_eq!(outermost(&paths), ["/v", "/w"].map(PathBuf::from));
    }
}
