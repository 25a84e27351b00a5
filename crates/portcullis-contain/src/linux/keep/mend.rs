//! Putting one thing back: what is there now gets a name under which nothing runs or obeys it, what was there its place.

use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, RenameFlags, Uid};
use rustix::io::Errno;

use super::entry::{Entry, OWNER, above_of, set_mode};
use super::rights::Rights;
use portcullis_core::observed::PutBackHow;

/// Numbers that are tried for the name of a file that is set aside, before others that nobody can have taken.
const ASIDE_MAX: u32 = 100;
/// Names besides, of the time.
const OTHERS_MAX: u32 = 16;
/// Most bytes of the part of such a name that is the old one. A name has 255.
const NAME_BYTES_MAX: usize = 200;

/// Gives what is at a path a name under which nothing runs or obeys it. `top` is the protected path that it belongs
/// to: what is in a protected folder is taken out of it, since there any name may do.
pub(super) fn set_aside(
    root: &OwnedFd,
    rights: &Rights,
    path: &Path,
    top: &Path,
    shown: &Path,
) -> PutBackHow {
    match aside(root, rights, path, top) {
        Ok(new) => PutBackHow::SetAside(shown.join(new)),
        Err(error) => PutBackHow::Failed(error.to_string()),
    }
}

fn aside(root: &OwnedFd, rights: &Rights, path: &Path, top: &Path) -> Result<PathBuf, Errno> {
    let (Some(within), Some(name)) = (path.parent(), path.file_name()) else { return Err(Errno::INVAL) };
    rights.lend(root, within);
    let above = above_of(root, within)?;
    let stat = rustix::fs::statat(&above, name, AtFlags::SYMLINK_NOFOLLOW)?;
    let is_folder = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
    if is_folder && stat.st_mode & OWNER != OWNER {
        set_mode(root, path, stat.st_mode & 0o7777 | OWNER)?;
    }
    let (to, old) = match (top.parent(), top.file_name()) {
        (Some(to), Some(above)) if path != top => (to, [above.as_bytes(), b"-", name.as_bytes()].concat()),
        _ => (within, name.as_bytes().to_vec()),
    };
    rights.lend(root, to);
    let target = above_of(root, to)?;
    let old = old.get(..NAME_BYTES_MAX).unwrap_or(&old);
    for number in 1..=ASIDE_MAX + OTHERS_MAX {
        let suffix = if number <= ASIDE_MAX { u128::from(number) } else { time() };
        let new = [old, format!(".contained-{suffix}").as_bytes()].concat();
        let new = OsString::from_vec(new);
        match rustix::fs::renameat_with(&above, name, &target, &new, RenameFlags::NOREPLACE) {
            Err(Errno::EXIST) => {}
            other => {
                other?;
                rights.forget(path);
                return Ok(to.join(new));
            }
        }
    }
    Err(Errno::EXIST)
}

/// Nanoseconds of the clock: a command cannot have taken all names that end so.
fn time() -> u128 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_nanos())
}

/// Puts an old entry in its place again; what is there now is set aside.
pub(super) fn restore(
    root: &OwnedFd,
    rights: &Rights,
    path: &Path,
    top: &Path,
    entry: &Entry,
    shown: &Path,
) -> PutBackHow {
    let failed = |error: &dyn std::fmt::Display| PutBackHow::Failed(error.to_string());
    let (Some(above), Some(name)) = (path.parent(), path.file_name()) else { return failed(&"no name") };
    rights.lend(root, above);
    if let Entry::Folder { mode } = entry
        && set_mode(root, path, *mode).is_ok()
    {
        rights.settle(path);
        return PutBackHow::Restored;
    }
    match aside(root, rights, path, top) {
        // Only what is inside of a folder counts, or it is gone.
        Ok(_) | Err(Errno::NOENT) => {}
        Err(error) => return failed(&error),
    }
    let above = match above_of(root, above) {
        Ok(above) => above,
        Err(error) => return failed(&format!("`{}`: {error}", shown.join(above).display())),
    };
    let done = match entry {
        Entry::File { content, mode, owner } => write(&above, name, content, *mode, *owner),
        Entry::Link(target) => rustix::fs::symlinkat(target, &above, name).map_err(Into::into),
        Entry::Folder { mode } => {
            rustix::fs::mkdirat(&above, name, Mode::from_raw_mode(*mode | OWNER)).map_err(Into::into)
        }
        Entry::Other(what) => return failed(&format!("it was {what}")),
    };
    match done {
        Ok(()) => PutBackHow::Restored,
        Err(error) => failed(&error),
    }
}

fn write(
    above: &OwnedFd,
    name: &OsStr,
    content: &[u8],
    mode: u32,
    (user, group): (u32, u32),
) -> std::io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::openat(above, name, flags, Mode::from_raw_mode(0o600))?;
    let mut file = std::fs::File::from(file);
    file.write_all(content)?;
    // Only root can give it to somebody else, and has to: a file of root's own would be lost for its user.
    let _own = rustix::fs::fchown(&file, Some(Uid::from_raw(user)), Some(Gid::from_raw(group)));
    Ok(rustix::fs::fchmod(&file, Mode::from_raw_mode(mode))?)
}
