//! What the command sees of the file system: everything read-only, but for what it may write.
//!
//! Landlock stops neither `chmod` nor changes of times and attributes; a read-only mount does. Nothing is made in the
//! user's folders: they are mounted over themselves.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use nix::mount::{MsFlags, mount};
use rustix::fs::{Mode, OFlags, StatVfsMountFlags};

use super::{Failed, at};
use crate::linux::order::Order;

/// Folders where the sockets of services are: the command gets empty ones of its own.
const MASKED: &[&str] = &["/run", "/var/run", "/dev/shm"];
/// Most mounts of a machine that are made read-only.
const MOUNTS_MAX: usize = 4096;
/// Bytes of a file system of the command's own in memory.
const OWN_OPTIONS: &str = "mode=0755,size=64m";
const SHARED_OPTIONS: &str = "mode=1777,size=1g";

/// A path of the order, opened before anything hides it.
struct Opened {
    path: PathBuf,
    handle: OwnedFd,
    is_folder: bool,
    writable: bool,
}

/// Makes all of it.
pub(super) fn make(order: &Order) -> Result<(), Failed> {
    let none: Option<&str> = None;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none).map_err(at("mount private"))?;
    let opened = open(order)?;
    let temporary = handle(&order.temporary).map_err(at("temporary folder"))?;
    read_only()?;
    for masked in MASKED.iter().map(Path::new).filter(|path| path.is_dir() && !path.is_symlink()) {
        let options = if masked.ends_with("shm") { SHARED_OPTIONS } else { OWN_OPTIONS };
        let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
        mount(Some("tmpfs"), masked, Some("tmpfs"), flags, Some(options)).map_err(named("mask", masked))?;
    }
    bind(&temporary, Path::new("/tmp"), true).map_err(named("mask", Path::new("/tmp")))?;
    let terminals = Path::new("/dev/pts");
    if terminals.is_dir() {
        let options = Some("newinstance,ptmxmode=0666,mode=0620");
        let flags = MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC;
        mount(Some("devpts"), terminals, Some("devpts"), flags, options).map_err(named("mask", terminals))?;
    }
    for opened in &opened {
        let hidden = is_hidden(&opened.path);
        if hidden {
            place(opened)?;
        }
        if hidden || opened.writable {
            bind(&opened.handle, &opened.path, opened.writable).map_err(named("bind", &opened.path))?;
        }
    }
    for (step, paths, writable) in [("pin", &order.pinned, true), ("protect", &order.shut, false)] {
        for path in paths {
            match handle(path) {
                Ok(handle) => bind(&handle, path, writable).map_err(named(step, path))?,
                // A link to where the command sees nothing, and writes nothing.
                Err(rustix::io::Errno::NOENT) => {}
                Err(error) => return Err(named(step, path)(error)),
            }
        }
    }
    hide(&order.hidden)?;
    // The old folder lies below the mounts now.
    std::env::set_current_dir(&order.folder).map_err(named("folder", &order.folder))
}

fn named<E: std::fmt::Display>(step: &'static str, path: &Path) -> impl Fn(E) -> Failed {
    move |error| at(step)(format!("`{}`: {error}", path.display()))
}

/// Puts nothing in the place of sockets. What is gone, or what this user cannot get at, the command cannot reach either.
fn hide(sockets: &[PathBuf]) -> Result<(), Failed> {
    let nothing = handle(Path::new("/dev/null")).map_err(at("hide"))?;
    for socket in sockets {
        match bind(&nothing, socket, false) {
            Ok(()) | Err(nix::Error::EACCES | nix::Error::ENOENT) => {}
            Err(error) => return Err(named("hide", socket)(error)),
        }
    }
    Ok(())
}

fn is_hidden(path: &Path) -> bool {
    MASKED.iter().chain(&["/tmp"]).any(|masked| path.starts_with(masked))
}

/// Opens what the order names, those above before those below. What does not exist is left out.
fn open(order: &Order) -> Result<Vec<Opened>, Failed> {
    let mut paths: Vec<(PathBuf, bool)> = order.write.iter().map(|path| (path.clone(), true)).collect();
    for path in order.read.iter().chain(&order.execute).chain(order.sockets.paths()) {
        if !paths.iter().any(|(known, _)| known == path) {
            paths.push((path.clone(), false));
        }
    }
    paths.sort();
    let mut opened = Vec::new();
    for (path, writable) in paths {
        match handle(&path) {
            Ok(handle) => opened.push(Opened { is_folder: path.is_dir(), path, handle, writable }),
            Err(_) if !writable => {}
            Err(error) => return Err(named("open", &path)(error)),
        }
    }
    Ok(opened)
}

fn handle(path: &Path) -> rustix::io::Result<OwnedFd> {
    rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
}

/// Something to mount on, in a file system of the command's own.
fn place(opened: &Opened) -> Result<(), Failed> {
    let made = match opened.path.parent() {
        _ if opened.path.exists() => Ok(()),
        _ if opened.is_folder => fs::create_dir_all(&opened.path),
        Some(above) => fs::create_dir_all(above).and_then(|()| fs::write(&opened.path, "")),
        None => Ok(()),
    };
    made.map_err(named("place", &opened.path))
}

/// Mounts what a handle stands for at a path. Options of the mount it comes from are kept: they are locked.
fn bind(handle: &OwnedFd, path: &Path, writable: bool) -> nix::Result<()> {
    let from = format!("/proc/self/fd/{}", handle.as_raw_fd());
    let none: Option<&str> = None;
    mount(Some(from.as_str()), path, none, MsFlags::MS_BIND | MsFlags::MS_REC, none)?;
    let options =
        rustix::fs::statvfs(path).map_err(|error| nix::Error::from_raw(error.raw_os_error()))?.f_flag;
    let mut flags = MsFlags::MS_REMOUNT | MsFlags::MS_BIND | MsFlags::MS_NOSUID;
    flags.set(MsFlags::MS_NODEV, options.contains(StatVfsMountFlags::NODEV));
    flags.set(MsFlags::MS_NOEXEC, options.contains(StatVfsMountFlags::NOEXEC));
    flags.set(MsFlags::MS_RDONLY, !writable);
    mount(none, path, none, flags, none)
}

/// Makes every mount read-only.
fn read_only() -> Result<(), Failed> {
    let table = fs::read("/proc/self/mountinfo").map_err(at("mountinfo"))?;
    let lines: Vec<&[u8]> = table.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).collect();
    if lines.len() > MOUNTS_MAX {
        return Err(at("mountinfo")(format!("more than {MOUNTS_MAX} mounts")));
    }
    // Where one mount hides another, both have a line, and only the options of one fit what is seen there.
    let (mut done, mut refused) = (BTreeSet::new(), BTreeMap::new());
    for line in lines {
        let (point, options) = mounted(line)?;
        let flags = MsFlags::MS_REMOUNT | MsFlags::MS_BIND | MsFlags::MS_RDONLY | options;
        let none: Option<&str> = None;
        match mount(none, &point, none, flags, none) {
            Ok(()) => drop(done.insert(point)),
            // What this user cannot get at, or what another mount covers, the command cannot write either.
            Err(nix::Error::EACCES | nix::Error::ENOENT | nix::Error::EINVAL) => {}
            Err(error) => drop(refused.insert(point, error)),
        }
    }
    match refused.into_iter().find(|(point, _)| !done.contains(point)) {
        Some((point, error)) => Err(named("read-only", &point)(error)),
        None => Ok(()),
    }
}

/// Where a line of the table has its mount, and which of its options are locked.
fn mounted(line: &[u8]) -> Result<(PathBuf, MsFlags), Failed> {
    let mut fields = line.split(|byte| *byte == b' ').skip(4);
    let (Some(point), Some(options)) = (fields.next(), fields.next()) else {
        return Err(at("mountinfo")("a line without its fields"));
    };
    let has = |option: &[u8]| options.split(|byte| *byte == b',').any(|one| one == option);
    let mut flags = MsFlags::empty();
    flags.set(MsFlags::MS_NOSUID, has(b"nosuid"));
    flags.set(MsFlags::MS_NODEV, has(b"nodev"));
    flags.set(MsFlags::MS_NOEXEC, has(b"noexec"));
    Ok((PathBuf::from(std::ffi::OsString::from_vec(unescaped(point))), flags))
}

/// `\040` stands for a space in the table, and so on.
fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    let mut rest = text;
    while let Some((first, more)) = rest.split_first() {
        let digits =
            more.get(..3).filter(|_| *first == b'\\').and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                plain.push(byte);
                rest = more.get(3..).unwrap_or_default();
            }
            None => {
                plain.push(*first);
                rest = more;
            }
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    #[test]
    fn names_in_the_table_of_mounts_are_read() {
        assert_eq!(super::unescaped(br"/a\040b\134c\"), b"/a b\\c\\");
    }
}
