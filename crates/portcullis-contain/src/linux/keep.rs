//! Protected files, kept before a command runs and put back after it.
//!
//! Landlock grants folders and cannot except what is in them, and a file that does not exist cannot be made read-only
//! without making it. So what a level cannot prevent is undone when everything of the command has ended. Every step
//! goes from a handle of the folder, beneath it and through no link: a command that put a link in the way gains
//! nothing.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use crate::error::ContainError;
use crate::protected::Guarded;
use portcullis_core::observed::{PutBack, PutBackHow};

/// Most protected files below the writable folders of one command.
const FILES_MAX: usize = 4096;
/// Most bytes of them together.
const BYTES_MAX: usize = 32 << 20;
/// How deep a protected folder is looked into.
const DEPTH_MAX: usize = 8;
/// Names that are tried for a file that is set aside.
const ASIDE_MAX: u32 = 1000;

/// What is at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Entry {
    File {
        content: Vec<u8>,
        mode: u32,
    },
    Link(OsString),
    Folder,
    /// A device, a pipe, a socket; or what cannot be looked at.
    Other(String),
}

type Entries = BTreeMap<PathBuf, Entry>;

/// The protected files of one folder, as they were.
#[derive(Debug)]
struct Kept {
    root: PathBuf,
    handle: OwnedFd,
    names: Vec<PathBuf>,
    entries: Entries,
    /// The folders between, such as `.git`: what is there, without what is in it.
    between: BTreeMap<PathBuf, Option<Entry>>,
}

/// All protected files, as they were.
#[derive(Debug)]
pub(super) struct Keep {
    folders: Vec<Kept>,
}

impl Keep {
    /// Reads them.
    ///
    /// # Errors
    /// A folder cannot be opened, or there is more than can be kept.
    pub(super) fn new(guarded: Vec<Guarded>) -> Result<Self, ContainError> {
        let mut room = Room { files: FILES_MAX, bytes: BYTES_MAX };
        let mut folders = Vec::new();
        for Guarded { root, names } in guarded {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let handle = rustix::fs::open(&root, flags, Mode::empty())
                .map_err(|error| ContainError::io(format!("open `{}`", root.display()))(error.into()))?;
            let entries = look(&handle, &names, &mut room).ok_or_else(|| {
                ContainError::Profile(format!(
                    "more than {FILES_MAX} files or {} MiB are protected below `{}` and the folders before it; let it write narrower folders",
                    BYTES_MAX >> 20,
                    root.display()
                ))
            })?;
            let between = between(&handle, &names, &mut room);
            folders.push(Kept { root, handle, names, entries, between });
        }
        Ok(Self { folders })
    }

    /// What exists of them, and the folders between them and the writable ones.
    pub(super) fn existing(&self) -> (Vec<PathBuf>, Vec<PathBuf>) {
        let (mut shut, mut pinned) = (Vec::new(), Vec::new());
        for kept in &self.folders {
            // What a link leads to counts where it exists.
            let exists = |name: &Path| kept.root.join(name).exists();
            let names = kept.names.iter().filter(|name| kept.entries.contains_key(*name) && exists(name));
            shut.extend(names.map(|name| kept.root.join(name)));
            for (path, entry) in &kept.between {
                match entry {
                    Some(Entry::Folder) => pinned.push(kept.root.join(path)),
                    // The `.git` of a worktree says where hooks and settings are.
                    Some(Entry::File { .. }) => shut.push(kept.root.join(path)),
                    _ => {}
                }
            }
        }
        pinned.sort();
        (shut, pinned)
    }

    /// Puts back what was changed.
    pub(super) fn put_back(self) -> Vec<PutBack> {
        let mut done = Vec::new();
        for kept in self.folders {
            kept.clear_the_way(&mut done);
            // Twice the room: a command that fills it must not hide what it did.
            let mut room = Room { files: FILES_MAX * 2, bytes: BYTES_MAX * 2 };
            let Some(now) = look(&kept.handle, &kept.names, &mut room) else {
                let how = PutBackHow::Failed("more was written there than can be looked at".to_owned());
                done.push(PutBack { path: kept.root, how });
                continue;
            };
            let is_new = |path: &Path| now.contains_key(path) && !kept.entries.contains_key(path);
            for path in now.keys().filter(|path| is_new(path)) {
                // A new folder is set aside with all that is in it.
                if !path.ancestors().skip(1).any(is_new) {
                    let how = set_aside(&kept.handle, path, &kept.root);
                    done.push(PutBack { path: kept.root.join(path), how });
                }
            }
            for (path, entry) in kept.entries.iter().filter(|(path, entry)| now.get(*path) != Some(*entry)) {
                let how = restore(&kept.handle, path, entry, &kept.root);
                done.push(PutBack { path: kept.root.join(path), how });
            }
        }
        done
    }
}

impl Kept {
    /// Sees that protected files are looked for where they were: a link, or a `.git` that is a file, leads elsewhere.
    fn clear_the_way(&self, done: &mut Vec<PutBack>) {
        let mut room = Room { files: FILES_MAX, bytes: BYTES_MAX };
        for (path, now) in between(&self.handle, &self.names, &mut room) {
            let before = self.between.get(&path).cloned().flatten();
            if now == before {
                continue;
            }
            let how = match (before, now) {
                (Some(before), _) => restore(&self.handle, &path, &before, &self.root),
                // What is in a new folder is looked at later; a file or link would lead elsewhere.
                (None, None | Some(Entry::Folder)) => continue,
                (None, Some(_)) => set_aside(&self.handle, &path, &self.root),
            };
            done.push(PutBack { path: self.root.join(&path), how });
        }
    }
}

/// What is at the folders above these names, those above first.
fn between(root: &OwnedFd, names: &[PathBuf], room: &mut Room) -> BTreeMap<PathBuf, Option<Entry>> {
    let mut all = BTreeMap::new();
    for above in names.iter().flat_map(|name| name.ancestors().skip(1)) {
        if !above.as_os_str().is_empty() && !all.contains_key(above) {
            let found =
                entry(root, above, room).unwrap_or_else(|error| Some(Entry::Other(error.to_string())));
            all.insert(above.to_owned(), found);
        }
    }
    all
}

/// What may still be read.
struct Room {
    files: usize,
    bytes: usize,
}

/// All that is at these paths and below them; nothing where it is more than there is room for.
fn look(root: &OwnedFd, names: &[PathBuf], room: &mut Room) -> Option<Entries> {
    let mut entries = Entries::new();
    for name in names {
        look_at(root, name, DEPTH_MAX, room, &mut entries)?;
    }
    Some(entries)
}

fn look_at(root: &OwnedFd, path: &Path, depth: usize, room: &mut Room, into: &mut Entries) -> Option<()> {
    let entry = match entry(root, path, room) {
        Ok(Some(entry)) => entry,
        Ok(None) => return Some(()),
        Err(Errno::TOOBIG) => return None,
        Err(error) => Entry::Other(error.to_string()),
    };
    room.files = room.files.checked_sub(1)?;
    let is_folder = entry == Entry::Folder;
    into.insert(path.to_owned(), entry);
    if !is_folder {
        return Some(());
    }
    let depth = depth.checked_sub(1)?;
    let Ok(folder) = below(root, path, OFlags::RDONLY | OFlags::DIRECTORY) else { return Some(()) };
    for found in Dir::read_from(&folder).ok()?.filter_map(Result::ok) {
        let name = OsStr::from_bytes(found.file_name().to_bytes());
        if name != "." && name != ".." {
            look_at(root, &path.join(name), depth, room, into)?;
        }
    }
    Some(())
}

/// What is at a path; nothing where there is nothing.
fn entry(root: &OwnedFd, path: &Path, room: &mut Room) -> Result<Option<Entry>, Errno> {
    let (Some(above), Some(name)) = (path.parent(), path.file_name()) else { return Ok(None) };
    let absent = |error| matches!(error, Errno::NOENT | Errno::NOTDIR);
    // Most names are at the top, which is open already.
    let opened = match above {
        top if top.as_os_str().is_empty() => None,
        above => match above_of(root, above) {
            Err(error) if absent(error) => return Ok(None),
            other => Some(other?),
        },
    };
    let above = opened.as_ref().unwrap_or(root);
    let stat = match rustix::fs::statat(above, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(error) if absent(error) => return Ok(None),
        other => other?,
    };
    Ok(Some(match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => Entry::Folder,
        FileType::Symlink => {
            let target = rustix::fs::readlinkat(above, name, Vec::new())?;
            Entry::Link(OsStr::from_bytes(target.to_bytes()).to_owned())
        }
        FileType::RegularFile => {
            let file = below(above, Path::new(name), OFlags::RDONLY | OFlags::NONBLOCK)?;
            let mut content = Vec::new();
            let limit = u64::try_from(room.bytes).unwrap_or(u64::MAX).saturating_add(1);
            let file = std::fs::File::from(file);
            file.take(limit).read_to_end(&mut content).map_err(|_| Errno::IO)?;
            room.bytes = room.bytes.checked_sub(content.len()).ok_or(Errno::TOOBIG)?;
            Entry::File { content, mode: stat.st_mode & 0o7777 }
        }
        other => Entry::Other(format!("{other:?}")),
    }))
}

fn above_of(root: &OwnedFd, above: &Path) -> Result<OwnedFd, Errno> {
    let above = if above.as_os_str().is_empty() { Path::new(".") } else { above };
    below(root, above, OFlags::PATH | OFlags::DIRECTORY)
}

/// Opens beneath a folder, through no link.
fn below(root: &OwnedFd, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let how = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    rustix::fs::openat2(root, path, flags | OFlags::CLOEXEC | OFlags::NOFOLLOW, Mode::empty(), how)
}

/// Gives a new file a name under which nothing runs or obeys it.
fn set_aside(root: &OwnedFd, path: &Path, shown: &Path) -> PutBackHow {
    match aside(root, path) {
        Ok(name) => PutBackHow::SetAside(shown.join(path.with_file_name(name))),
        Err(error) => PutBackHow::Failed(error.to_string()),
    }
}

fn aside(root: &OwnedFd, path: &Path) -> Result<OsString, Errno> {
    let (Some(above), Some(name)) = (path.parent(), path.file_name()) else { return Err(Errno::INVAL) };
    let above = above_of(root, above)?;
    for number in 1..=ASIDE_MAX {
        let mut new = name.to_owned();
        new.push(format!(".contained-{number}"));
        match rustix::fs::renameat_with(&above, name, &above, &new, rustix::fs::RenameFlags::NOREPLACE) {
            Err(Errno::EXIST) => {}
            other => return other.map(|()| new),
        }
    }
    Err(Errno::EXIST)
}

/// Puts an old entry in its place again; what is there now is set aside.
fn restore(root: &OwnedFd, path: &Path, entry: &Entry, shown: &Path) -> PutBackHow {
    let failed = |error: &dyn std::fmt::Display| PutBackHow::Failed(error.to_string());
    match aside(root, path) {
        // Only what is inside of a folder counts, or it is gone.
        Ok(_) | Err(Errno::NOENT) => {}
        Err(error) => return failed(&error),
    }
    let (Some(above), Some(name)) = (path.parent(), path.file_name()) else { return failed(&"no name") };
    let above = match above_of(root, above) {
        Ok(above) => above,
        Err(error) => return failed(&format!("`{}`: {error}", shown.join(above).display())),
    };
    let done = match entry {
        Entry::File { content, mode } => write(&above, name, content, *mode),
        Entry::Link(target) => rustix::fs::symlinkat(target, &above, name).map_err(Into::into),
        Entry::Folder => rustix::fs::mkdirat(&above, name, Mode::from_raw_mode(0o755)).map_err(Into::into),
        Entry::Other(what) => return failed(&format!("it was {what}")),
    };
    match done {
        Ok(()) => PutBackHow::Restored,
        Err(error) => failed(&error),
    }
}

fn write(above: &OwnedFd, name: &OsStr, content: &[u8], mode: u32) -> std::io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::openat(above, name, flags, Mode::from_raw_mode(0o600))?;
    let mut file = std::fs::File::from(file);
    file.write_all(content)?;
    Ok(rustix::fs::fchmod(&file, Mode::from_raw_mode(mode))?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn kept(folder: &Path) -> Keep {
        Keep::new(crate::protected::guarded(&[folder.to_owned()], folder)).unwrap()
    }

    #[test]
    fn changed_files_get_their_content_and_new_ones_another_name() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at(".git/hooks")).unwrap();
        fs::write(at(".git/config"), "old").unwrap();
        fs::write(at(".git/hooks/pre-push"), "old").unwrap();
        let keep = kept(folder.path());
        fs::write(at(".git/config"), "new").unwrap();
        fs::remove_file(at(".git/hooks/pre-push")).unwrap();
        fs::write(at(".git/hooks/pre-commit"), "new").unwrap();
        fs::write(at(".envrc"), "new").unwrap();
        fs::write(at("harmless"), "new").unwrap();
        let done = keep.put_back();
        assert_eq!(done.len(), 4, "{done:?}");
        assert_eq!(fs::read_to_string(at(".git/config")).unwrap(), "old");
        assert_eq!(fs::read_to_string(at(".git/hooks/pre-push")).unwrap(), "old");
        assert!(!at(".git/hooks/pre-commit").exists() && !at(".envrc").exists() && at("harmless").exists());
        assert_eq!(fs::read_to_string(at(".envrc.contained-1")).unwrap(), "new");
    }

    #[test]
    fn nothing_is_written_through_a_link_in_the_way() {
        let (folder, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::create_dir(folder.path().join(".git")).unwrap();
        fs::write(folder.path().join(".git/config"), "old").unwrap();
        let keep = kept(folder.path());
        fs::rename(folder.path().join(".git"), folder.path().join("moved")).unwrap();
        fs::write(outside.path().join("config"), "theirs").unwrap();
        std::os::unix::fs::symlink(outside.path(), folder.path().join(".git")).unwrap();
        let done = keep.put_back();
        assert!(!done.iter().any(|one| matches!(one.how, PutBackHow::Failed(_))), "{done:?}");
        assert_eq!(fs::read_to_string(outside.path().join("config")).unwrap(), "theirs");
        assert_eq!(fs::read_to_string(folder.path().join(".git/config")).unwrap(), "old");
        assert!(folder.path().join(".git.contained-1").is_symlink());
    }

    #[test]
    fn the_file_that_leads_to_a_worktrees_folder_is_protected() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join(".git");
        fs::write(&link, "gitdir: elsewhere").unwrap();
        let keep = kept(folder.path());
        assert_eq!(keep.existing().0, std::slice::from_ref(&link));
        fs::remove_file(&link).unwrap();
        fs::create_dir_all(link.join("hooks")).unwrap();
        keep.put_back();
        assert_eq!(fs::read_to_string(&link).unwrap(), "gitdir: elsewhere");
    }

    #[test]
    fn what_was_not_touched_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("AGENTS.md"), "text").unwrap();
        let (shut, pinned) = kept(folder.path()).existing();
        assert_eq!((shut, pinned.len()), (vec![folder.path().join("AGENTS.md")], 0));
        assert_eq!(kept(folder.path()).put_back(), []);
    }
}
