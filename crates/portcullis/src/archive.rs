//! Exports as files: a folder, or an archive.
//!
//! Both are read only as far as one reading of them is possible: what another program could take for other files than
//! those that were verified is refused.

mod zip;

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read as _, Seek as _, Write};
use std::path::{Path, PathBuf};

use ::zip::write::SimpleFileOptions;
use ::zip::{CompressionMethod, ZipWriter};

use self::zip::ZipFile;
use crate::failure::Failure;

/// The most files of an export.
const FILES_MAX: usize = 262_144;
/// The most bytes of the files that are read into memory, which is all but the runs.
const MEMORY_BYTES_MAX: u64 = 256 << 20;
/// How an archive begins. No export of a run by itself does.
pub(crate) const ZIP_MAGIC: &[u8; 2] = b"PK";

/// The files of an export.
pub(crate) struct Archive {
    path: PathBuf,
    /// In the order of their bytes.
    names: Vec<String>,
    source: Source,
    /// Bytes that may still be read into memory.
    room: u64,
}

enum Source {
    Folder,
    Zip(Box<ZipFile>),
}

impl Archive {
    /// Opens a folder or an archive; none when the path is a file of another kind, or one that can be read but once.
    pub(crate) fn open(path: &Path) -> Result<Option<Archive>, Failure> {
        let failed = |error: &dyn std::fmt::Display| unreadable(path, error);
        let kind = fs::metadata(path).map_err(|error| failed(&error))?;
        if kind.is_dir() {
            let mut names = Vec::new();
            list(path, "", &mut names).map_err(|error| failed(&error))?;
            names.sort_unstable();
            return Ok(Some(Archive::of(path, names, Source::Folder)));
        }
        if !kind.is_file() {
            return Ok(None);
        }
        let mut file = File::open(path).map_err(|error| failed(&error))?;
        let mut magic = Vec::new();
        (&file).take(ZIP_MAGIC.len() as u64).read_to_end(&mut magic).map_err(|error| failed(&error))?;
        if magic != ZIP_MAGIC {
            return Ok(None);
        }
        file.rewind().map_err(|error| failed(&error))?;
        let archive = ZipFile::open(file).map_err(|why| failed(&why))?;
        let names = archive.names().map(str::to_owned).collect();
        Ok(Some(Archive::of(path, names, Source::Zip(Box::new(archive)))))
    }

    fn of(path: &Path, names: Vec<String>, source: Source) -> Archive {
        Archive { path: path.to_owned(), names, source, room: MEMORY_BYTES_MAX }
    }

    /// The names, with `/` between folders, in the order of their bytes.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// A file, to be read as it comes.
    pub(crate) fn reader(&mut self, name: &str) -> Result<Box<dyn BufRead + '_>, Failure> {
        let path = self.path.clone();
        match &mut self.source {
            Source::Folder => {
                let file =
                    File::open(path.join(name)).map_err(|error| unreadable(&path.join(name), error))?;
                Ok(Box::new(BufReader::new(file)))
            }
            Source::Zip(archive) => {
                let file = archive.reader(name).map_err(|error| unreadable(&path, error))?;
                Ok(Box::new(BufReader::new(file)))
            }
        }
    }

    /// A file as a whole.
    pub(crate) fn read(&mut self, name: &str) -> Result<Vec<u8>, Failure> {
        let (path, room) = (self.path.clone(), self.room);
        let mut bytes = Vec::new();
        let failed = |error: &dyn std::fmt::Display| unreadable(&path, format!("`{name}`: {error}"));
        self.reader(name)?.take(room + 1).read_to_end(&mut bytes).map_err(|error| failed(&error))?;
        match room.checked_sub(bytes.len() as u64) {
            Some(left) => self.room = left,
            None => return Err(failed(&format!("files beside the runs have over {MEMORY_BYTES_MAX} bytes"))),
        }
        Ok(bytes)
    }

    /// Whether the data of a file whose content nobody needs are as the archive says. A folder says nothing of them.
    pub(crate) fn check(&mut self, name: &str) -> Result<(), Failure> {
        if matches!(self.source, Source::Folder) {
            return Ok(());
        }
        let path = self.path.clone();
        let read = io::copy(&mut self.reader(name)?, &mut io::sink());
        read.map(drop).map_err(|error| unreadable(&path, format!("`{name}`: {error}")))
    }
}

fn unreadable(path: &Path, error: impl std::fmt::Display) -> Failure {
    Failure::unreadable(format!("cannot read `{}`: {error}", path.display()))
}

/// The files below a folder, by their path in it. What is neither a file nor a folder is refused: what a link leads to
/// is not in the export, and a pipe or a device need not end.
fn list(folder: &Path, prefix: &str, names: &mut Vec<String>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_str().ok_or_else(|| io::Error::other("it has a name that is not UTF-8"))?;
        let name = format!("{prefix}{name}");
        let kind = entry.file_type()?;
        if kind.is_dir() {
            list(&entry.path(), &format!("{name}/"), names)?;
        } else if kind.is_file() {
            names.push(name);
        } else {
            return Err(io::Error::other(format!(
                "`{name}` in it is not a regular file or a folder; remove it"
            )));
        }
        if names.len() > FILES_MAX {
            return Err(io::Error::other(format!("more than {FILES_MAX} files")));
        }
    }
    Ok(())
}

/// Writes an archive. The same files make the same bytes.
pub(crate) struct ArchiveWriter<W: Write + io::Seek> {
    zip: ZipWriter<W>,
}

impl<W: Write + io::Seek> ArchiveWriter<W> {
    pub(crate) fn new(out: W) -> ArchiveWriter<W> {
        ArchiveWriter { zip: ZipWriter::new(out) }
    }

    /// Begins a file; what is written next goes into it.
    pub(crate) fn begin(&mut self, name: &str) -> Result<&mut (impl Write + use<W>), Failure> {
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Deflated)
            // A run may have more bytes than the old format can count.
            .large_file(true)
            .unix_permissions(0o644);
        self.zip.start_file(name, options).map_err(|error| unwritable(name, error))?;
        Ok(&mut self.zip)
    }

    /// Writes a whole file.
    pub(crate) fn put(&mut self, name: &str, bytes: &[u8]) -> Result<(), Failure> {
        self.begin(name)?.write_all(bytes).map_err(|error| unwritable(name, error))
    }

    pub(crate) fn finish(self) -> Result<(), Failure> {
        self.zip.finish().map(drop).map_err(|error| unwritable("the end of the archive", error))
    }
}

fn unwritable(name: &str, error: impl std::fmt::Display) -> Failure {
    Failure::unreadable(format!("cannot write `{name}` into the archive: {error}"))
}
