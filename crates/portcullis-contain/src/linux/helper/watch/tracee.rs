//! Looking at a stopped process: its registers, its memory, its names for files.
//!
//! The registers and the stack are the process's own; paths are read from its memory and could be changed by another
//! thread before the kernel reads them again. What is told from here is what a witness saw, and holds nothing.

use std::io::IoSliceMut;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Component, Path, PathBuf};

use libc::{c_long, user_regs_struct};
use nix::sys::ptrace;
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::Pid;
use rustix::fs::{Mode, OFlags};

/// Most bytes of a path, as the kernel has it.
const PATH_MAX: usize = 4096;
/// Bytes of a page: memory is read up to its end at once.
const PAGE: usize = 4096;
/// Bytes that are read first: most paths are shorter.
const FIRST: usize = 256;
/// Most bytes of a socket's address.
const ADDRESS_MAX: usize = 128;

/// The registers of a system call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Registers(user_regs_struct);

impl Registers {
    /// Those of a stopped process.
    pub(super) fn of(pid: Pid) -> nix::Result<Self> {
        ptrace::getregs(pid).map(Self)
    }

    /// Gives them to a stopped process.
    pub(super) fn put(self, pid: Pid) -> nix::Result<()> {
        ptrace::setregs(pid, self.0)
    }
}

#[cfg(target_arch = "x86_64")]
impl Registers {
    /// The instruction that makes a system call.
    pub(super) const CALL: &'static [u8] = &[0x0f, 0x05];
    /// Bytes to which it is aligned.
    pub(super) const CALL_ALIGNED: usize = 1;

    /// The number of the call.
    pub(super) fn call(&self) -> c_long {
        c_long::try_from(self.0.orig_rax).unwrap_or(-1)
    }

    /// An argument of the call, from 0.
    pub(super) fn argument(&self, index: usize) -> u64 {
        let Self(all) = self;
        [all.rdi, all.rsi, all.rdx, all.r10, all.r8, all.r9].get(index).copied().unwrap_or(0)
    }

    /// What the call came to.
    pub(super) fn result(&self) -> i64 {
        self.0.rax.cast_signed()
    }

    /// With another result.
    pub(super) fn with_result(mut self, result: i64) -> Self {
        self.0.rax = result.cast_unsigned();
        self
    }

    /// With a call that is made next, at an address where [`Self::CALL`] is.
    pub(super) fn with_call(mut self, at: u64, number: u64, arguments: [u64; 4]) -> Self {
        let all = &mut self.0;
        (all.rip, all.rax, all.orig_rax) = (at, number, u64::MAX);
        [all.rdi, all.rsi, all.rdx, all.r10] = arguments;
        self
    }

    /// With another first argument, as a function gets it.
    pub(super) fn with_first(mut self, value: u64) -> Self {
        self.0.rdi = value;
        self
    }

    /// Where the stack ends.
    pub(super) fn stack(&self) -> u64 {
        self.0.rsp
    }
}

#[cfg(target_arch = "aarch64")]
impl Registers {
    /// The instruction that makes a system call.
    pub(super) const CALL: &'static [u8] = &[0x01, 0x00, 0x00, 0xd4];
    /// Bytes to which it is aligned.
    pub(super) const CALL_ALIGNED: usize = 4;

    /// The number of the call.
    pub(super) fn call(&self) -> c_long {
        self.0.regs.get(8).and_then(|number| c_long::try_from(*number).ok()).unwrap_or(-1)
    }

    /// An argument of the call, from 0.
    pub(super) fn argument(&self, index: usize) -> u64 {
        self.0.regs.get(index).filter(|_| index < 6).copied().unwrap_or(0)
    }

    /// What the call came to.
    pub(super) fn result(&self) -> i64 {
        self.argument(0).cast_signed()
    }

    /// With another result.
    pub(super) fn with_result(mut self, result: i64) -> Self {
        if let Some(first) = self.0.regs.get_mut(0) {
            *first = result.cast_unsigned();
        }
        self
    }

    /// With a call that is made next, at an address where [`Self::CALL`] is.
    pub(super) fn with_call(mut self, at: u64, number: u64, arguments: [u64; 4]) -> Self {
        self.0.pc = at;
        for (register, value) in arguments.into_iter().enumerate().chain([(8, number)]) {
            if let Some(place) = self.0.regs.get_mut(register) {
                *place = value;
            }
        }
        self
    }

    /// With another first argument, as a function gets it.
    pub(super) fn with_first(self, value: u64) -> Self {
        self.with_result(value.cast_signed())
    }

    /// Where the stack ends.
    pub(super) fn stack(&self) -> u64 {
        self.0.sp
    }
}

/// The system's list of processes, as this process knows them: it is opened before a stage mounts another one.
#[derive(Debug)]
pub(in crate::linux::helper) struct Processes(OwnedFd);

impl Processes {
    pub(super) fn open() -> rustix::io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        rustix::fs::open("/proc", flags, Mode::empty()).map(Self)
    }

    /// Where a link of a process leads, such as `exe` or `cwd`.
    pub(super) fn link(&self, pid: Pid, name: &str) -> Option<PathBuf> {
        let target = rustix::fs::readlinkat(&self.0, format!("{pid}/{name}"), Vec::new()).ok()?;
        Some(std::ffi::OsString::from_vec(target.into_bytes()).into())
    }

    /// A small file of a process, such as `status`.
    pub(super) fn text(&self, pid: Pid, name: &str) -> Option<String> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.0, format!("{pid}/{name}"), flags, Mode::empty()).ok()?;
        std::io::read_to_string(std::fs::File::from(file)).ok()
    }

    /// A field of `status`.
    pub(super) fn status(&self, pid: Pid, field: &str) -> Option<String> {
        let text = self.text(pid, "status")?;
        let line = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))?;
        Some(line.trim().to_owned())
    }

    /// A path of a call, made absolute: from a folder's descriptor, or from where the process is.
    pub(super) fn path(&self, pid: Pid, folder: Option<u64>, at: u64) -> Option<PathBuf> {
        let named = if at == 0 { PathBuf::new() } else { path_at(pid, at)? };
        if named.is_absolute() {
            return Some(plain(&named));
        }
        let base = match folder.map(descriptor) {
            None | Some(libc::AT_FDCWD) => self.link(pid, "cwd")?,
            Some(number) => self.link(pid, &format!("fd/{number}"))?,
        };
        Some(plain(&base.join(named)))
    }

    /// The path of an open file.
    pub(super) fn open_file(&self, pid: Pid, number: u64) -> Option<PathBuf> {
        self.link(pid, &format!("fd/{}", descriptor(number))).filter(|path| path.is_absolute())
    }
}

/// A descriptor is the lower half of a register.
fn descriptor(register: u64) -> i32 {
    let [a, b, c, d, ..] = register.to_le_bytes();
    i32::from_le_bytes([a, b, c, d])
}

/// Memory of a process, as far as it is there.
pub(super) fn memory(pid: Pid, at: u64, into: &mut [u8]) -> Option<usize> {
    let base = usize::try_from(at).ok()?;
    let remote = [RemoteIoVec { base, len: into.len() }];
    process_vm_readv(pid, &mut [IoSliceMut::new(into)], &remote).ok()
}

/// Writes words into the memory of a stopped process.
pub(super) fn write(pid: Pid, at: u64, words: &[u64]) -> Option<()> {
    for (index, word) in (0_u64..).zip(words) {
        let at = usize::try_from(at.checked_add(index.checked_mul(8)?)?).ok()?;
        ptrace::write(pid, std::ptr::without_provenance_mut(at), c_long::from_ne_bytes(word.to_ne_bytes()))
            .ok()?;
    }
    Some(())
}

/// Words of the memory of a process.
pub(super) fn words<const N: usize>(pid: Pid, at: u64) -> Option<[u64; N]> {
    let mut words = [0; N];
    for (index, word) in (0_u64..).zip(&mut words) {
        let mut bytes = [0; 8];
        let read = memory(pid, at.checked_add(index.checked_mul(8)?)?, &mut bytes)?;
        *word = (read == bytes.len()).then_some(u64::from_ne_bytes(bytes))?;
    }
    Some(words)
}

/// A text that ends with a zero.
fn path_at(pid: Pid, at: u64) -> Option<PathBuf> {
    let mut bytes = Vec::new();
    let mut from = at;
    while bytes.len() < PATH_MAX {
        let page_left = PAGE - usize::try_from(from).ok()? % PAGE;
        let most = if bytes.is_empty() { FIRST } else { PAGE };
        let mut part = vec![0; page_left.min(most)];
        let length = memory(pid, from, &mut part)?;
        let part = part.get(..length).filter(|part| !part.is_empty())?;
        if let Some(end) = part.iter().position(|byte| *byte == 0) {
            bytes.extend(part.get(..end)?);
            return Some(std::ffi::OsString::from_vec(bytes).into());
        }
        bytes.extend(part);
        from = from.checked_add(u64::try_from(length).ok()?)?;
    }
    None
}

/// The address of a socket call: `host:port`, or a path.
pub(super) fn address_at(pid: Pid, at: u64, length: u64) -> Option<String> {
    let length = usize::try_from(length).ok()?.min(ADDRESS_MAX);
    let mut bytes = vec![0; length];
    let read = memory(pid, at, &mut bytes)?;
    let bytes = bytes.get(..read)?;
    let two = |from: usize| Some([*bytes.get(from)?, *bytes.get(from + 1)?]);
    let port = two(2).map(u16::from_be_bytes);
    match i32::from(u16::from_ne_bytes(two(0)?)) {
        libc::AF_INET => {
            let host: [u8; 4] = bytes.get(4..8)?.try_into().ok()?;
            Some(std::net::SocketAddr::from((host, port?)).to_string())
        }
        libc::AF_INET6 => {
            let host: [u8; 16] = bytes.get(8..24)?.try_into().ok()?;
            Some(std::net::SocketAddr::from((host, port?)).to_string())
        }
        libc::AF_UNIX => {
            let name = bytes.get(2..)?;
            let (mark, name) = match name.split_first() {
                Some((0, rest)) => ("@", rest),
                _ => ("", name),
            };
            let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
            Some(format!("{mark}{}", String::from_utf8_lossy(name.get(..end)?)))
        }
        _ => None,
    }
}

/// Without `.` and `..`. What links lead to is not followed.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_made_plain() {
        assert_eq!(plain(Path::new("/a/./b/../c//d")), Path::new("/a/c/d"));
        assert_eq!(plain(Path::new("/../x")), Path::new("/x"));
    }

    #[test]
    fn memory_and_addresses_of_this_process_are_read() {
        let this = Pid::this();
        let text = b"/a/path\0".to_vec();
        assert_eq!(path_at(this, text.as_ptr() as u64).unwrap(), Path::new("/a/path"));
        let address = [2_u16.to_ne_bytes(), 443_u16.to_be_bytes(), [192, 0], [2, 7]].concat();
        let at = address.as_ptr() as u64;
        assert_eq!(address_at(this, at, 8).unwrap(), "192.0.2.7:443");
        assert_eq!(address_at(this, 16, 8), None);
    }
}
