//! The archive of a pack, and a strict reader of it.
//!
//! A pack is a handful of files, so this is the part of the ZIP format that they need: local headers, one central
//! directory, deflate or nothing, no time stamps (the same files make the same archive). The reader takes archives that
//! other programs have packed again, as long as each file stands in them once, whole, and under its plain name.

use std::io::Read as _;

use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use flate2::{Compression, Crc};
use std::io::Write as _;

/// The most files of an archive that are looked at.
pub const FILES_MAX: usize = 256;
/// The longest name of a file, in bytes.
const NAME_BYTES_MAX: usize = 128;
/// The largest file, in bytes.
pub const FILE_BYTES_MAX: usize = 1 << 30;
/// The largest archive, unpacked, in bytes.
pub const ARCHIVE_BYTES_MAX: usize = 2 << 30;

const LOCAL: u32 = 0x0403_4b50;
const CENTRAL: u32 = 0x0201_4b50;
const END: u32 = 0x0605_4b50;
const END_BYTES: usize = 22;
/// The longest comment at the end of an archive.
const COMMENT_BYTES_MAX: usize = 1 << 16;
/// 1980-01-01, the first day that the format knows.
const DATE: u16 = 0x21;
const VERSION: u16 = 20;
const STORED: u16 = 0;
const DEFLATED: u16 = 8;

/// Why an archive cannot be written or read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ZipError {
    /// It is not an archive of this kind.
    #[error("not a ZIP archive that this program reads: {0}")]
    Form(String),
    /// A file in it is damaged.
    #[error("`{name}`: {message}")]
    File {
        /// Its name.
        name: String,
        /// What is wrong with it.
        message: String,
    },
    /// A limit is reached.
    #[error("{what}: the limit is {limit}")]
    TooLarge {
        /// What there is too much of.
        what: String,
        /// The limit.
        limit: usize,
    },
}

/// A file by its name.
pub type Named = (String, Vec<u8>);

/// Packs files in their order.
///
/// # Errors
/// When a file or the archive is over a limit.
pub fn write(files: &[Named]) -> Result<Vec<u8>, ZipError> {
    let too_large = |what: &str, limit| ZipError::TooLarge { what: what.to_owned(), limit };
    if files.len() > FILES_MAX {
        return Err(too_large("files of an archive", FILES_MAX));
    }
    let (mut archive, mut directory) = (Vec::new(), Vec::new());
    for (name, bytes) in files {
        if bytes.len() > FILE_BYTES_MAX || archive.len() > FILE_BYTES_MAX {
            return Err(too_large("bytes of an archive", FILE_BYTES_MAX));
        }
        let packed = deflate(bytes);
        let (method, data) = if packed.len() < bytes.len() {
            (DEFLATED, packed.as_slice())
        } else {
            (STORED, bytes.as_slice())
        };
        let mut header = Vec::new();
        put16(&mut header, VERSION);
        // Bit 11: the name is UTF-8.
        put16(&mut header, 1 << 11);
        put16(&mut header, method);
        put16(&mut header, 0);
        put16(&mut header, DATE);
        put32(&mut header, crc(bytes));
        put32(&mut header, length(data.len())?);
        put32(&mut header, length(bytes.len())?);
        put16(
            &mut header,
            u16::try_from(name.len()).map_err(|_| too_large("bytes of a name", NAME_BYTES_MAX))?,
        );
        put16(&mut header, 0);
        put32(&mut directory, CENTRAL);
        put16(&mut directory, VERSION);
        directory.extend_from_slice(&header);
        // No comment, first disk, no attributes.
        directory.extend_from_slice(&[0; 10]);
        put32(&mut directory, length(archive.len())?);
        directory.extend_from_slice(name.as_bytes());
        put32(&mut archive, LOCAL);
        archive.extend_from_slice(&header);
        archive.extend_from_slice(name.as_bytes());
        archive.extend_from_slice(data);
    }
    let (start, size) = (length(archive.len())?, length(directory.len())?);
    let number = u16::try_from(files.len()).map_err(|_| too_large("files of an archive", FILES_MAX))?;
    archive.extend_from_slice(&directory);
    put32(&mut archive, END);
    put32(&mut archive, 0);
    put16(&mut archive, number);
    put16(&mut archive, number);
    put32(&mut archive, size);
    put32(&mut archive, start);
    put16(&mut archive, 0);
    Ok(archive)
}

/// The files of an archive in the order of its directory.
///
/// # Errors
/// When it is not one, a file in it is damaged or stands in it twice, or a limit is reached.
pub fn read(archive: &[u8]) -> Result<Vec<Named>, ZipError> {
    let form = |message: &str| ZipError::Form(message.to_owned());
    let end = find_end(archive).ok_or_else(|| form("it has no directory; it may be cut short"))?;
    let mut tail = Cursor { bytes: archive, at: end + 8 };
    let (here, number) = (tail.u16(), tail.u16());
    let (size, start) = (tail.u32(), tail.u32());
    let (Some(here), Some(number), Some(_), Some(start)) = (here, number, size, start) else {
        return Err(form("its directory is cut short"));
    };
    let number = usize::from(number);
    if here != u16::try_from(number).unwrap_or(u16::MAX) || number > FILES_MAX {
        return Err(ZipError::TooLarge { what: "files of an archive".to_owned(), limit: FILES_MAX });
    }
    let mut directory = Cursor { bytes: archive, at: usize::try_from(start).unwrap_or(usize::MAX) };
    let mut files: Vec<Named> = Vec::with_capacity(number);
    let mut unpacked = 0_usize;
    for _ in 0..number {
        let entry = directory.entry().ok_or_else(|| form("its directory is damaged"))?;
        if files.iter().any(|(name, _)| *name == entry.name) {
            return Err(ZipError::File { name: entry.name, message: "it is there twice".to_owned() });
        }
        unpacked = unpacked.saturating_add(entry.bytes);
        if unpacked > ARCHIVE_BYTES_MAX {
            return Err(ZipError::TooLarge {
                what: "bytes of an archive".to_owned(),
                limit: ARCHIVE_BYTES_MAX,
            });
        }
        let bytes = entry.unpack(archive)?;
        files.push((entry.name, bytes));
    }
    Ok(files)
}

/// Whether bytes begin as an archive does.
#[must_use]
pub fn looks_like(bytes: &[u8]) -> bool {
    bytes.starts_with(&LOCAL.to_le_bytes()) || bytes.starts_with(&END.to_le_bytes())
}

struct Entry {
    name: String,
    method: u16,
    crc: u32,
    packed: usize,
    bytes: usize,
    offset: usize,
}

impl Entry {
    fn unpack(&self, archive: &[u8]) -> Result<Vec<u8>, ZipError> {
        let damaged = |message: &str| ZipError::File { name: self.name.clone(), message: message.to_owned() };
        let mut local = Cursor { bytes: archive, at: self.offset };
        let data = local.local(self).ok_or_else(|| damaged("its header does not fit the directory"))?;
        let limit = self.bytes.min(FILE_BYTES_MAX);
        let mut bytes = Vec::new();
        match self.method {
            STORED => bytes.extend_from_slice(data),
            DEFLATED => {
                let mut decoder = DeflateDecoder::new(data).take(limit as u64 + 1);
                decoder.read_to_end(&mut bytes).map_err(|_| damaged("its packed bytes are damaged"))?;
            }
            _ => return Err(damaged("it is packed in a way that this program does not read")),
        }
        if bytes.len() != self.bytes || crc(&bytes) != self.crc {
            return Err(damaged("its bytes are not those that the archive was made of"));
        }
        Ok(bytes)
    }
}

#[derive(Clone, Copy)]
struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let taken = self.bytes.get(self.at..self.at.checked_add(bytes)?)?;
        self.at += bytes;
        Some(taken)
    }

    fn u16(&mut self) -> Option<u16> {
        self.take(2)?.try_into().ok().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take(4)?.try_into().ok().map(u32::from_le_bytes)
    }

    fn size(&mut self) -> Option<usize> {
        usize::try_from(self.u32()?).ok()
    }

    fn name(&mut self, bytes: usize) -> Option<String> {
        if bytes == 0 || bytes > NAME_BYTES_MAX {
            return None;
        }
        let name = std::str::from_utf8(self.take(bytes)?).ok()?;
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '/');
        name.chars().all(plain).then(|| name.to_owned())
    }

    /// An entry of the central directory.
    fn entry(&mut self) -> Option<Entry> {
        if self.u32()? != CENTRAL {
            return None;
        }
        self.take(6)?;
        let method = self.u16()?;
        self.take(4)?;
        let (crc, packed, bytes) = (self.u32()?, self.size()?, self.size()?);
        let (name, extra, comment) = (self.u16()?, self.u16()?, self.u16()?);
        self.take(8)?;
        let offset = self.size()?;
        let name = self.name(usize::from(name))?;
        self.take(usize::from(extra) + usize::from(comment))?;
        Some(Entry { name, method, crc, packed, bytes, offset })
    }

    /// The packed bytes behind a local header, where it speaks of the same file.
    fn local(&mut self, entry: &Entry) -> Option<&'a [u8]> {
        if self.u32()? != LOCAL {
            return None;
        }
        self.take(4)?;
        let method = self.u16()?;
        self.take(16)?;
        let (name, extra) = (self.u16()?, self.u16()?);
        let name = self.name(usize::from(name))?;
        self.take(usize::from(extra))?;
        if method != entry.method || name != entry.name {
            return None;
        }
        self.take(entry.packed)
    }
}

/// Where the record at the end of an archive begins.
fn find_end(archive: &[u8]) -> Option<usize> {
    let last = archive.len().checked_sub(END_BYTES)?;
    let first = last.saturating_sub(COMMENT_BYTES_MAX);
    (first..=last).rev().find(|at| Cursor { bytes: archive, at: *at }.u32() == Some(END))
}

fn deflate(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    // Writing into memory cannot fail; if it did, the file is stored as it is.
    match encoder.write_all(bytes).and_then(|()| encoder.finish()) {
        Ok(packed) => packed,
        Err(_) => bytes.to_vec(),
    }
}

fn crc(bytes: &[u8]) -> u32 {
    let mut crc = Crc::new();
    crc.update(bytes);
    crc.sum()
}

fn length(bytes: usize) -> Result<u32, ZipError> {
    u32::try_from(bytes)
        .map_err(|_| ZipError::TooLarge { what: "bytes of an archive".to_owned(), limit: FILE_BYTES_MAX })
}

fn put16(out: &mut Vec<u8>, value: u16) {
    out.extend_from_slice(&value.to_le_bytes());
}

fn put32(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files() -> Vec<Named> {
        vec![
            ("a.json".to_owned(), b"{}".to_vec()),
            ("b.md".to_owned(), "long ".repeat(500).into_bytes()),
            ("log/c.leaf".to_owned(), (0..=255).collect()),
            ("empty".to_owned(), Vec::new()),
        ]
    }

    #[test]
    fn what_is_packed_is_unpacked_and_the_same_files_make_the_same_bytes() {
        let archive = write(&files()).unwrap();
        assert_eq!(read(&archive).unwrap(), files());
        assert_eq!(archive, write(&files()).unwrap());
        assert!(looks_like(&archive) && archive.len() < 2_000);
        let mut with_comment = archive.clone();
        let at = with_comment.len() - 2;
        with_comment[at..].copy_from_slice(&3_u16.to_le_bytes());
        with_comment.extend_from_slice(b"abc");
        assert_eq!(read(&with_comment).unwrap(), files());
    }

    #[test]
    fn every_flipped_bit_is_an_error_or_changes_nothing_that_is_read() {
        let archive = write(&files()).unwrap();
        let mut silent = 0;
        for at in 0..archive.len() {
            for bit in 0..8 {
                let mut flipped = archive.clone();
                flipped[at] ^= 1 << bit;
                match read(&flipped) {
                    Err(_) => {}
                    Ok(read) if read == files() => silent += 1,
                    // Names are held against the manifest by whoever checks a pack.
                    Ok(read) => {
                        let bytes =
                            |files: &[Named]| files.iter().map(|file| file.1.clone()).collect::<Vec<_>>();
                        assert_eq!(bytes(&read), bytes(&files()), "byte {at}, bit {bit}");
                    }
                }
            }
        }
        // Versions, flags, dates, attributes and sizes that stand in two places.
        assert!(silent < 2_000, "{silent}");
    }

    #[test]
    fn cut_and_doubled_archives_are_refused() {
        let archive = write(&files()).unwrap();
        for end in 0..archive.len() {
            assert!(read(&archive[..end]).is_err(), "{end}");
        }
        let twice = write(&[files()[0].clone(), files()[0].clone()]).unwrap();
        assert!(read(&twice).unwrap_err().to_string().contains("there twice"));
        let slip = write(&[("../../x y".to_owned(), Vec::new())]).unwrap();
        assert!(read(&slip).is_err());
    }
}
