//! What became of the files that could be written: their names are listed before the command starts, and they are
//! looked at after everything of it has ended.
//!
//! Where there are many, only their names are listed before. The kernel notes the time of each file's last change,
//! whatever it was, and no command can set it: a file is another one if that is not before the command's start, or if it
//! has another inode. The command is not started before the kernel's clock for files has gone past the time that is
//! compared with. Few files, and those of file systems that may go by another clock, are looked at before as well, and
//! compared. Contents are read only of files that changed, up to [`HASHED_MAX`]. Links are not followed, and of devices
//! and pipes no more than their names is looked at.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use portcullis_core::id::Digest;
use portcullis_core::observed::{FileChange, FileChangeHow, Files, Seen};
use rustix::fs::{AtFlags, Dir, FileType, FlockOperation, FsWord, Mode, OFlags};
use rustix::time::ClockId;

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
/// A tick takes 1 to 10 ms.
const PART_OF_A_TICK: Duration = Duration::from_micros(500);
/// Where the clock was set back meanwhile, it is not waited for.
const TICKS_MAX: u32 = 40;
/// Files and folders that are looked at one by one before the command: it takes less time than a tick.
const FEW: usize = 1000;
/// File systems that go by this kernel's clock: ext4, XFS, Btrfs, F2FS, bcachefs, ZFS, tmpfs, overlayfs.
const KERNEL_TIMED: [FsWord; 8] =
    [0xef53, 0x5846_5342, 0x9123_683e, 0xf2f5_2010, 0xca45_1a4e, 0x2fc1_2fc1, 0x0102_1994, 0x794c_7630];
/// Folders that wait to be looked at before threads are worth starting.
const MUCH: usize = 24;

/// A time of the kernel's clock, in seconds and nanoseconds.
type Time = (i64, i64);

/// A file or folder.
#[derive(Debug, Clone, Copy)]
struct Entry {
    kind: FileType,
    inode: u64,
    /// Size and time of the last change, where it was looked at.
    looked: Option<(u64, Time)>,
}

/// A folder with what is in it, in the order of names.
#[derive(Debug, Default)]
struct Folder {
    mode: u32,
    entries: Vec<(OsString, Entry)>,
}

impl Folder {
    fn get(&self, name: &OsStr) -> Option<&Entry> {
        let place = self.entries.binary_search_by(|(other, _)| other.as_os_str().cmp(name)).ok()?;
        self.entries.get(place).map(|(_, entry)| entry)
    }
}

/// Folders with what is in them.
#[derive(Debug, Default)]
struct Tree {
    folders: HashMap<PathBuf, Folder>,
    /// Something was not looked at.
    is_cut: bool,
}

/// How closely files are looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Closely {
    /// On these devices their names and inodes only: a fifth of the time.
    Listed(Vec<u64>),
    Looked,
}

impl Closely {
    /// Lists where the time of a file's last change is the kernel's.
    fn listed(roots: &[PathBuf]) -> Self {
        let timed = |root: &&PathBuf| {
            let kind = rustix::fs::statfs(root.as_path()).map(|found| found.f_type);
            kind.is_ok_and(|kind| KERNEL_TIMED.contains(&kind))
        };
        let devices = roots.iter().filter(timed).filter_map(|root| rustix::fs::stat(root.as_path()).ok());
        Self::Listed(devices.map(|found| found.st_dev).collect())
    }

    fn looks_at(&self, device: u64) -> bool {
        match self {
            Self::Listed(devices) => !devices.contains(&device),
            Self::Looked => true,
        }
    }
}

/// The files that can be written, as they are before the command.
#[derive(Debug)]
pub(super) struct Before {
    roots: Vec<PathBuf>,
    since: Time,
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
        let since = now(ClockId::Realtime);
        let look = move || {
            let mut tree = look(&these, &Closely::Looked, FEW);
            if tree.is_cut {
                tree = look(&these, &Closely::listed(&these), ENTRIES_MAX);
                wait_until(since);
            }
            // Closing it would unlock it as well.
            let _unlocked = rustix::fs::flock(&gate, FlockOperation::Unlock);
            tree
        };
        let tree = thread::Builder::new().spawn(look).map_err(failed())?;
        Ok(Self { roots, since, tree })
    }

    /// Looks again, and tells what is not as it was.
    ///
    /// `meanwhile` goes on beside it, and says whether it changed files: then they are looked at after it.
    pub(super) fn finish(self, meanwhile: impl FnOnce() -> bool) -> Files {
        let look = || look(&self.roots, &Closely::Looked, ENTRIES_MAX);
        let (after, has_changed) = thread::scope(|scope| {
            // Where there is no thread to be had, it is done afterwards.
            let after = thread::Builder::new().spawn_scoped(scope, look);
            let has_changed = meanwhile();
            (after.ok().and_then(|after| after.join().ok()), has_changed)
        });
        let Ok(before) = self.tree.join() else { return Files::default() };
        let after = after.filter(|_| !has_changed).unwrap_or_else(look);
        let is_cut = before.is_cut || after.is_cut;
        let mut changes = compare(&before, &after, self.since);
        changes.sort_by(|one, other| one.path.cmp(&other.path));
        let is_too_many = changes.len() > CHANGES_MAX;
        changes.truncate(CHANGES_MAX);
        let is_read = read_contents(&mut changes);
        let seen = if is_cut || is_too_many || !is_read { Seen::Some } else { Seen::All };
        Files { seen, changes }
    }
}

fn now(clock: ClockId) -> Time {
    let time = rustix::time::clock_gettime(clock);
    (time.tv_sec, time.tv_nsec)
}

/// Waits until changes of files get a time that is not before this one: the kernel's clock for them ticks.
fn wait_until(since: Time) {
    for _ in 0..TICKS_MAX {
        if now(ClockId::RealtimeCoarse) >= since {
            return;
        }
        thread::sleep(PART_OF_A_TICK);
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

fn look(roots: &[PathBuf], closely: &Closely, most: usize) -> Tree {
    let tree = Tree::default();
    let mut queue = Queue { waiting: roots.to_vec(), at_work: 0, left: most, tree };
    while queue.waiting.len() < MUCH {
        let Some(folder) = queue.waiting.pop() else { return queue.tree };
        let found = entries(&folder, queue.left, closely);
        queue.add(folder, found);
    }
    let threads = thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX);
    let (queue, more) = (Mutex::new(queue), Condvar::new());
    thread::scope(|scope| {
        for _ in 1..threads {
            // Where there is no thread to be had, the others do the work.
            let _none = thread::Builder::new().spawn_scoped(scope, || work(&queue, &more, closely));
        }
        work(&queue, &more, closely);
    });
    queue.into_inner().unwrap_or_else(PoisonError::into_inner).tree
}

fn work(queue: &Mutex<Queue>, more: &Condvar, closely: &Closely) {
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
        let found = entries(&folder, left, closely);
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
    fn add(&mut self, folder: PathBuf, found: Option<Folder>) {
        let Some(found) = found else {
            self.tree.is_cut = true;
            return;
        };
        self.left = self.left.saturating_sub(found.entries.len());
        let folders = found.entries.iter().filter(|(_, entry)| entry.kind == FileType::Directory);
        self.waiting.extend(folders.map(|(name, _)| folder.join(name)));
        self.tree.folders.insert(folder, found);
    }
}

/// What is in a folder; nothing where it cannot be looked at, or there is more than `most`.
fn entries(folder: &Path, most: usize, closely: &Closely) -> Option<Folder> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let handle = match rustix::fs::open(folder, flags, Mode::empty()) {
        Ok(handle) => handle,
        // It is gone, or something else is there now: that is told by the folder above.
        Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => return Some(Folder::default()),
        Err(_) => return None,
    };
    let own = rustix::fs::fstat(&handle).ok()?;
    let (mode, looks) = (own.st_mode, closely.looks_at(own.st_dev));
    let mut found = Vec::new();
    for listed in Dir::read_from(&handle).ok()? {
        let listed = listed.ok()?;
        let name = listed.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        if found.len() >= most {
            return None;
        }
        let mut entry = Entry { kind: listed.file_type(), inode: listed.ino(), looked: None };
        // Where a folder is changed is told by what is in it.
        if entry.kind == FileType::Unknown || looks && entry.kind != FileType::Directory {
            match rustix::fs::statat(&handle, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => entry = looked(&stat, entry.inode),
                Err(rustix::io::Errno::NOENT) => continue,
                Err(_) => return None,
            }
        }
        found.push((OsStr::from_bytes(name.to_bytes()).to_owned(), entry));
    }
    found.sort_by(|(one, _), (other, _)| one.cmp(other));
    Some(Folder { mode, entries: found })
}

#[allow(
    clippy::allow_attributes,
    clippy::useless_conversion,
    reason = "the widths of these fields differ between architectures"
)]
fn looked(stat: &rustix::fs::Stat, inode: u64) -> Entry {
    let bytes = u64::try_from(stat.st_size).unwrap_or(0);
    let changed = (stat.st_ctime.into(), i64::try_from(stat.st_ctime_nsec).unwrap_or(0));
    Entry { kind: FileType::from_raw_mode(stat.st_mode), inode, looked: Some((bytes, changed)) }
}

fn compare(before: &Tree, after: &Tree, since: Time) -> Vec<FileChange> {
    let mut changes = Vec::new();
    for (folder, now) in &after.folders {
        let was = before.folders.get(folder);
        // Folders that were not looked at before say nothing about what is in them.
        if was.is_none() && before.is_cut {
            continue;
        }
        if was.is_some_and(|was| was.mode != 0 && was.mode != now.mode) {
            let how = FileChangeHow::Changed;
            changes.push(FileChange { path: folder.clone(), how, bytes: None, digest: None });
        }
        for (name, entry) in now.entries.iter().filter(|(_, entry)| entry.kind != FileType::Directory) {
            let how = match was.and_then(|was| was.get(name)).filter(|old| old.kind != FileType::Directory) {
                Some(old) if entry.is_same(old, since) => continue,
                Some(_) => FileChangeHow::Changed,
                None => FileChangeHow::Made,
            };
            let bytes = entry.looked.filter(|_| entry.kind == FileType::RegularFile).map(|(bytes, _)| bytes);
            changes.push(FileChange { path: folder.join(name), how, bytes, digest: None });
        }
    }
    for (folder, was) in &before.folders {
        let now = after.folders.get(folder);
        if now.is_none() && after.is_cut {
            continue;
        }
        let is_there = |name: &OsString| {
            let entry = now.and_then(|now| now.get(name));
            entry.is_some_and(|entry| entry.kind != FileType::Directory)
        };
        let gone = was.entries.iter().filter(|(_, entry)| entry.kind != FileType::Directory);
        changes.extend(gone.filter(|(name, _)| !is_there(name)).map(|(name, _)| FileChange {
            path: folder.join(name),
            how: FileChangeHow::Deleted,
            bytes: None,
            digest: None,
        }));
    }
    changes
}

impl Entry {
    /// Whether it is what was there before this time.
    fn is_same(&self, was: &Self, since: Time) -> bool {
        let is_unchanged = match (was.looked, self.looked) {
            (Some(was), Some(now)) => was == now,
            (_, now) => now.is_some_and(|(_, changed)| changed < since),
        };
        is_unchanged && was.inode == self.inode
    }
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
    use std::os::fd::AsRawFd as _;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    fn told(folder: &Path, change: impl FnOnce()) -> Files {
        let gate = tempfile::tempfile().unwrap();
        let other = File::open(format!("/proc/self/fd/{}", gate.as_raw_fd())).unwrap();
        let before = Before::begin(&[folder.to_owned()], gate).unwrap();
        rustix::fs::flock(&other, FlockOperation::LockShared).unwrap();
        change();
        before.finish(|| false)
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
        fs::create_dir(at("shut")).unwrap();
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
            fs::set_permissions(at("shut"), fs::Permissions::from_mode(0o700)).unwrap();
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
            ("shut", Changed),
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
