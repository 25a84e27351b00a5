//! Files as criteria name them. What lies in the folder in which the agent works is looked up within that folder: a link
//! that leads out of it is not followed.

use std::fs::File;
use std::io::Read as _;
use std::path::{Component, Path, PathBuf};

use rustix::fd::OwnedFd;
use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, openat};
use rustix::io::Errno;

use super::{Found, NotPassed, error, fail};

/// Most bytes of a file that is read.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// Opens a path without leaving the folder, whatever is put in its way meanwhile.
#[cfg(target_os = "linux")]
fn open_beneath(folder: &File, name: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    use rustix::fs::{ResolveFlags, openat2};

    openat2(folder, name, flags, Mode::empty(), ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS)
}

/// Other systems have no such call: there no file of the project is read.
#[cfg(not(target_os = "linux"))]
fn open_beneath(_folder: &File, _name: &Path, _flags: OFlags) -> Result<OwnedFd, Errno> {
    Err(Errno::NOSYS)
}

/// Where files are looked up.
pub(super) struct Place<'a> {
    pub(super) workspace: Option<&'a Path>,
}

impl Place<'_> {
    /// The folder and the path in it, or an absolute path elsewhere.
    fn locate<'p>(&self, path: &'p str) -> Result<(Option<&Path>, &'p Path), NotPassed> {
        let path = Path::new(path);
        if path.is_relative() {
            return match self.workspace {
                Some(workspace) => Ok((Some(workspace), path)),
                None => error(format!(
                    "`{}` is relative, and nobody said in which folder the agent works",
                    path.display()
                )),
            };
        }
        match self.workspace.and_then(|workspace| Some((workspace, path.strip_prefix(workspace).ok()?))) {
            Some((workspace, below)) => Ok((Some(workspace), below)),
            None => Ok((None, path)),
        }
    }

    /// The file, open. Never waits for a pipe.
    fn open(&self, path: &str) -> Result<File, NotPassed> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
        let opened = match self.locate(path)? {
            (Some(folder), below) => {
                let folder = File::open(folder).or_else(|why| {
                    error(format!("the folder `{}` cannot be opened: {why}", folder.display()))
                })?;
                let name = if below.as_os_str().is_empty() { Path::new(".") } else { below };
                open_beneath(&folder, name, flags)
            }
            (None, path) => openat(CWD, path, flags, Mode::empty()),
        };
        match opened {
            Ok(file) => Ok(File::from(file)),
            Err(Errno::NOENT | Errno::NOTDIR) => fail(format!("there is no file `{path}`")),
            Err(Errno::NOSYS) => error(format!(
                "`{path}` cannot be opened: files of the project are looked up safely on Linux 5.6 or later alone"
            )),
            Err(Errno::XDEV) => error(format!("`{path}` leads out of the folder in which the agent works")),
            Err(why) => error(format!("`{path}` cannot be opened: {why}")),
        }
    }

    /// Whether there is a file.
    pub(super) fn exists(&self, path: &str) -> Found {
        let file = self.open(path)?;
        match file.metadata() {
            Ok(found) if found.is_dir() => fail(format!("`{path}` is a folder")),
            Ok(found) => Ok(format!("`{path}` has {} bytes", found.len())),
            Err(why) => error(format!("`{path}` cannot be looked at: {why}")),
        }
    }

    /// The content of a file.
    pub(super) fn read(&self, path: &str) -> Result<Vec<u8>, NotPassed> {
        let file = self.open(path)?;
        let kind = fstat(&file).map(|found| FileType::from_raw_mode(found.st_mode));
        if kind != Ok(FileType::RegularFile) {
            return fail(format!("`{path}` is no regular file"));
        }
        let mut content = Vec::new();
        match file.take(FILE_BYTES_MAX + 1).read_to_end(&mut content) {
            Ok(_) if content.len() as u64 > FILE_BYTES_MAX => {
                error(format!("`{path}` has more than {FILE_BYTES_MAX} bytes, which is the limit"))
            }
            Ok(_) => Ok(content),
            Err(why) => error(format!("`{path}` cannot be read: {why}")),
        }
    }

    /// The path of a regular file that is there, without links.
    pub(super) fn find(&self, path: &str) -> Result<PathBuf, NotPassed> {
        self.read_nothing(path)?;
        let whole = match self.locate(path)? {
            (Some(folder), below) => folder.join(below),
            (None, path) => path.to_owned(),
        };
        whole.canonicalize().or_else(|why| error(format!("`{path}` cannot be found: {why}")))
    }

    fn read_nothing(&self, path: &str) -> Result<(), NotPassed> {
        let file = self.open(path)?;
        let kind = fstat(&file).map(|found| FileType::from_raw_mode(found.st_mode));
        if kind == Ok(FileType::RegularFile) { Ok(()) } else { fail(format!("`{path}` is no regular file")) }
    }

    /// A folder that a criterion names, or the one in which the agent works.
    pub(super) fn folder(&self, name: Option<&str>) -> Result<PathBuf, NotPassed> {
        let whole = match (name, self.workspace) {
            (None, None) => return error("nobody said in which folder the agent works"),
            (None, Some(workspace)) => workspace.to_owned(),
            (Some(name), _) => match self.locate(name)? {
                (Some(folder), below) => folder.join(below),
                (None, path) => path.to_owned(),
            },
        };
        let found = whole.canonicalize();
        let found =
            found.or_else(|why| error(format!("the folder `{}` is not there: {why}", whole.display())))?;
        let named = name.map(Path::new).unwrap_or(Path::new(""));
        let stays = named.is_absolute() || !named.components().any(|part| part == Component::ParentDir);
        let inside = self.workspace.and_then(|folder| folder.canonicalize().ok());
        if named.is_relative() && !(stays && inside.is_some_and(|folder| found.starts_with(folder))) {
            return error(format!("`{}` leads out of the folder in which the agent works", named.display()));
        }
        Ok(found)
    }
}
