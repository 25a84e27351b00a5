//! What is at a path below a folder, looked at from a handle of the folder and through no link.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::Read as _;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::rights::Rights;

/// Most protected files below one writable folder.
pub(super) const FILES_MAX: usize = 4096;
/// Most bytes of them together.
pub(super) const BYTES_MAX: usize = 32 << 20;
/// How deep a protected folder is looked into.
const DEPTH_MAX: usize = 16;
/// Most bytes of a path that the kernel takes, without the zero at its end. Longer ones are opened in parts.
const PATH_BYTES_MAX: usize = 4095;
/// The rights that the owner of a folder needs to change what is in it.
pub(super) const OWNER: u32 = 0o700;

/// What is at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Entry {
    File {
        content: Vec<u8>,
        mode: u32,
        owner: (u32, u32),
    },
    Link(OsString),
    Folder {
        mode: u32,
    },
    /// A device, a pipe, a socket; or what cannot be looked at.
    Other(String),
}

impl Entry {
    pub(super) fn is_folder(&self) -> bool {
        matches!(self, Self::Folder { .. })
    }
}

pub(super) type Entries = BTreeMap<PathBuf, Entry>;

/// What may still be read.
#[derive(Debug)]
pub(super) struct Room {
    pub(super) files: usize,
    pub(super) bytes: usize,
}

impl Room {
    pub(super) fn full() -> Self {
        Self { files: FILES_MAX, bytes: BYTES_MAX }
    }
}

/// Whether the content of files is of interest.
#[derive(Debug, Clone, Copy)]
pub(super) enum Content<'a> {
    All,
    /// Only of those that were there before.
    Of(&'a Entries),
}

/// How much of a file is read. What is not read counts as empty.
#[derive(Debug, Clone, Copy)]
pub(super) enum Read {
    All,
    /// If it has this size: otherwise it is another one anyway.
    OfSize(usize),
    Nothing,
}

/// Adds all that is at a path and below it; nothing where it is more than there is room for.
pub(super) fn look(
    root: &OwnedFd,
    rights: &Rights,
    path: &Path,
    content: Content<'_>,
    room: &mut Room,
    into: &mut Entries,
) -> Option<()> {
    look_at((root, rights), path, DEPTH_MAX, content, room, into)
}

fn look_at(
    (root, rights): (&OwnedFd, &Rights),
    path: &Path,
    depth: usize,
    content: Content<'_>,
    room: &mut Room,
    into: &mut Entries,
) -> Option<()> {
    let read = match content {
        Content::All => Read::All,
        Content::Of(known) => match known.get(path) {
            Some(Entry::File { content, .. }) => Read::OfSize(content.len()),
            _ => Read::Nothing,
        },
    };
    let entry = match rights.entry(root, path, read, room) {
        Ok(Some(entry)) => entry,
        Ok(None) => return Some(()),
        Err(Errno::TOOBIG) => return None,
        Err(error) => Entry::Other(error.to_string()),
    };
    room.files = room.files.checked_sub(1)?;
    let is_folder = entry.is_folder();
    into.insert(path.to_owned(), rights.without(path, entry));
    if !is_folder {
        return Some(());
    }
    let depth = depth.checked_sub(1)?;
    let Ok(folder) = rights.open(root, path) else { return Some(()) };
    for found in Dir::read_from(&folder).ok()?.filter_map(Result::ok) {
        let name = OsStr::from_bytes(found.file_name().to_bytes());
        if name != "." && name != ".." {
            look_at((root, rights), &path.join(name), depth, content, room, into)?;
        }
    }
    Some(())
}

/// What is at a path; nothing where there is nothing.
pub(super) fn entry(
    root: &OwnedFd,
    path: &Path,
    read: Read,
    room: &mut Room,
) -> Result<Option<Entry>, Errno> {
    let (Some(above), Some(name)) = (path.parent(), path.file_name()) else { return Ok(None) };
    let absent = |error| matches!(error, Errno::NOENT | Errno::NOTDIR);
    let above = match above_of(root, above) {
        Err(error) if absent(error) => return Ok(None),
        other => other?,
    };
    let stat = match rustix::fs::statat(&above, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(error) if absent(error) => return Ok(None),
        other => other?,
    };
    let mode = stat.st_mode & 0o7777;
    Ok(Some(match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => Entry::Folder { mode },
        FileType::Symlink => {
            let target = rustix::fs::readlinkat(&above, name, Vec::new())?;
            Entry::Link(OsStr::from_bytes(target.to_bytes()).to_owned())
        }
        FileType::RegularFile => {
            let owner = (stat.st_uid, stat.st_gid);
            let is_read = match read {
                Read::All => true,
                Read::OfSize(size) if usize::try_from(stat.st_size) == Ok(size) => true,
                Read::OfSize(_) => return Ok(Some(Entry::Other("a file of another size".to_owned()))),
                Read::Nothing => false,
            };
            let content = if is_read { content(&above, name, room)? } else { Vec::new() };
            Entry::File { content, mode, owner }
        }
        other => Entry::Other(format!("{other:?}")),
    }))
}

/// The content of a file; *too big* where there is no room for it.
pub(super) fn content(above: &OwnedFd, name: &OsStr, room: &mut Room) -> Result<Vec<u8>, Errno> {
    let file = below(above, Path::new(name), OFlags::RDONLY | OFlags::NONBLOCK)?;
    let mut content = Vec::new();
    let limit = u64::try_from(room.bytes).unwrap_or(u64::MAX).saturating_add(1);
    std::fs::File::from(file).take(limit).read_to_end(&mut content).map_err(|_| Errno::IO)?;
    room.bytes = room.bytes.checked_sub(content.len()).ok_or(Errno::TOOBIG)?;
    Ok(content)
}

/// The folder above a path.
pub(super) fn above_of(root: &OwnedFd, above: &Path) -> Result<OwnedFd, Errno> {
    if above.as_os_str().is_empty() {
        // Not `.` of it: that takes the right to search it.
        return rustix::io::fcntl_dupfd_cloexec(root, 0);
    }
    below(root, above, OFlags::PATH | OFlags::DIRECTORY)
}

/// The permissions of a folder.
pub(super) fn folder_mode(root: &OwnedFd, path: &Path) -> Result<u32, Errno> {
    Ok(rustix::fs::fstat(above_of(root, path)?)?.st_mode & 0o7777)
}

/// Opens beneath a folder, through no link.
pub(super) fn below(root: &OwnedFd, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    if path.as_os_str().len() <= PATH_BYTES_MAX {
        return beneath(root, path, flags);
    }
    let (mut reached, mut part) = (None, PathBuf::new());
    for name in path {
        if part.as_os_str().len() + name.len() >= PATH_BYTES_MAX {
            let from = reached.as_ref().unwrap_or(root);
            reached = Some(beneath(from, &part, OFlags::PATH | OFlags::DIRECTORY)?);
            part = PathBuf::new();
        }
        part.push(name);
    }
    beneath(reached.as_ref().unwrap_or(root), &part, flags)
}

fn beneath(root: &OwnedFd, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let how = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    rustix::fs::openat2(root, path, flags | OFlags::CLOEXEC | OFlags::NOFOLLOW, Mode::empty(), how)
}

/// Sets the permissions of a folder, through a handle: it may be one that cannot be read.
pub(super) fn set_mode(root: &OwnedFd, path: &Path, mode: u32) -> Result<(), Errno> {
    let handle = above_of(root, path)?;
    rustix::fs::chmod(format!("/proc/self/fd/{}", handle.as_raw_fd()), Mode::from_raw_mode(mode))
}
