//! Reading a ZIP archive, as far as only one reading of it is possible (`specs/transparency-log.md` §7.2).
//!
//! A ZIP archive says twice what it holds: in a header before each file, and in a directory at its end. Programs differ
//! in which they believe, in where they look for the directory, and in what they make of bytes that neither speaks of.
//! So an archive is taken only if both agree, in order and in every value, and no byte belongs to neither.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek as _, SeekFrom, Take};

use flate2::{Crc, Decompress, FlushDecompress, Status};

use super::FILES_MAX;

/// The most bytes of a directory.
const DIRECTORY_BYTES_MAX: u64 = 64 << 20;

const LOCAL: u32 = 0x0403_4b50;
const CENTRAL: u32 = 0x0201_4b50;
const END: u32 = 0x0605_4b50;
const END_64: u32 = 0x0606_4b50;
const LOCATOR_64: u32 = 0x0706_4b50;

/// The length of the last record, of the locator before it, and of the record that this one leads to.
const END_BYTES: u64 = 22;
const LOCATOR_64_BYTES: u64 = 20;
const END_64_BYTES: u64 = 56;

/// Flags that change nothing: how hard the packer tried, and that a name is UTF-8.
const FLAGS_HARMLESS: u16 = 0b1000_0000_0110;
const STORED: u16 = 0;
const DEFLATED: u16 = 8;

/// The extra field with numbers that do not fit into 32 bits, and those with times and owners.
const EXTRA_ZIP64: u16 = 0x0001;
const EXTRA_HARMLESS: [u16; 5] = [0x000a, 0x5455, 0x5855, 0x7855, 0x7875];

/// Why an archive is not read.
pub(super) type Refused = String;

/// An archive whose directory and headers agree.
pub(super) struct ZipFile {
    file: BufReader<File>,
    /// In the order of their names.
    entries: Vec<Entry>,
}

/// A file in an archive.
struct Entry {
    name: String,
    method: u16,
    crc: u32,
    compressed: u64,
    bytes: u64,
    /// Where its data start.
    data: u64,
}

/// What directory and header say of a file, each.
#[derive(PartialEq, Eq)]
struct Said {
    flags: u16,
    method: u16,
    crc: u32,
    compressed: u64,
    bytes: u64,
    name: Vec<u8>,
}

impl ZipFile {
    /// Reads directory and headers.
    ///
    /// # Errors
    /// The first thing that another program could read differently.
    pub(super) fn open(file: File) -> Result<ZipFile, Refused> {
        let mut file = BufReader::new(file);
        let end = End::read(&mut file)?;
        let mut directory = vec![0; usize::try_from(end.size).map_err(shown)?];
        file.seek(SeekFrom::Start(end.offset))
            .and_then(|_| file.read_exact(&mut directory))
            .map_err(shown)?;
        let mut rest = Fields(&directory);
        let mut entries = Vec::new();
        let mut at = 0;
        for _ in 0..end.entries {
            let (said, offset) = central(&mut rest)?;
            let name = plain_name(&said.name)?;
            if offset != at {
                return Err(format!("`{name}` does not start where the file before it ends"));
            }
            file.seek(SeekFrom::Start(at)).map_err(shown)?;
            let (header, length) = local(&mut file)?;
            if header != said {
                return Err(format!("directory and header differ on `{name}`"));
            }
            let data = at + length;
            at = data.checked_add(said.compressed).ok_or("a length is past the end")?;
            if at > end.offset {
                return Err(format!("`{name}` goes on past the start of the directory"));
            }
            let Said { method, crc, compressed, bytes, .. } = said;
            entries.push(Entry { name, method, crc, compressed, bytes, data });
        }
        if at != end.offset || !rest.0.is_empty() {
            return Err("it has bytes that do not belong to any of its files".to_owned());
        }
        entries.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        distinct(&entries)?;
        // A folder holds nothing.
        entries.retain(|entry| !entry.name.ends_with('/'));
        Ok(ZipFile { file, entries })
    }

    /// The names of its files, in order.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|entry| entry.name.as_str())
    }

    /// A file, to be read as it comes. Reading it to its end fails where its data are not as its header says.
    pub(super) fn reader(&mut self, name: &str) -> io::Result<EntryReader<'_>> {
        let place = self.entries.binary_search_by(|entry| entry.name.as_str().cmp(name));
        let entry = place.ok().and_then(|place| self.entries.get(place));
        let entry = entry.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        self.file.seek(SeekFrom::Start(entry.data))?;
        Ok(EntryReader {
            data: self.file.by_ref().take(entry.compressed),
            inflate: (entry.method == DEFLATED).then(|| Box::new(Decompress::new(false))),
            ended: false,
            crc: Crc::new(),
            expected: entry.crc,
            left: entry.bytes,
        })
    }
}

fn shown(error: impl std::fmt::Display) -> Refused {
    error.to_string()
}

/// Where the directory is.
struct End {
    entries: u64,
    size: u64,
    offset: u64,
}

impl End {
    fn read(file: &mut BufReader<File>) -> Result<End, Refused> {
        let length = file.get_ref().metadata().map_err(shown)?.len();
        let unfinished =
            || "it does not end like an archive: it was truncated, or something follows it".to_owned();
        let last_at = length.checked_sub(END_BYTES).ok_or_else(unfinished)?;
        let bytes = read_at::<{ END_BYTES as usize }>(file, last_at)?;
        let mut last = Fields(&bytes);
        if last.u32()? != END {
            return Err(unfinished());
        }
        let (disk, first_disk) = (last.u16()?, last.u16()?);
        let (here, entries) = (last.u16()?, last.u16()?);
        let (size, offset, comment) = (last.u32()?, last.u32()?, last.u16()?);
        if (disk, first_disk, comment) != (0, 0, 0) || here != entries {
            return Err("it has a comment, or parts in other files".to_owned());
        }
        let small = End { entries: entries.into(), size: size.into(), offset: offset.into() };
        let large = End::read_64(file, last_at)?;
        let tail = if large.is_some() { END_64_BYTES + LOCATOR_64_BYTES } else { 0 };
        let fits = |small: u64, ones: u64, large: u64| small == large || small == ones;
        let end = match large {
            Some(large)
                if fits(small.entries, u16::MAX.into(), large.entries)
                    && fits(small.size, u32::MAX.into(), large.size)
                    && fits(small.offset, u32::MAX.into(), large.offset) =>
            {
                large
            }
            Some(_) => return Err("it states the place of its directory twice, differently".to_owned()),
            None => small,
        };
        if end.offset.checked_add(end.size) != last_at.checked_sub(tail) {
            return Err("its directory is not at the stated place".to_owned());
        }
        if end.size > DIRECTORY_BYTES_MAX || end.entries > FILES_MAX as u64 {
            return Err(format!(
                "it has {} files in a directory of {} bytes; at most {FILES_MAX} in {DIRECTORY_BYTES_MAX} are read",
                end.entries, end.size
            ));
        }
        Ok(end)
    }

    /// The record for large archives, which stands before the last one; none where there is none.
    fn read_64(file: &mut BufReader<File>, last_at: u64) -> Result<Option<End>, Refused> {
        let Some(locator_at) = last_at.checked_sub(LOCATOR_64_BYTES) else { return Ok(None) };
        let bytes = read_at::<{ LOCATOR_64_BYTES as usize }>(file, locator_at)?;
        let mut locator = Fields(&bytes);
        if locator.u32()? != LOCATOR_64 {
            return Ok(None);
        }
        let misplaced = || "the record before its last one is malformed".to_owned();
        let record_at = locator_at.checked_sub(END_64_BYTES).ok_or_else(misplaced)?;
        let (disk, at, disks) = (locator.u32()?, locator.u64()?, locator.u32()?);
        let bytes = read_at::<{ END_64_BYTES as usize }>(file, record_at)?;
        let mut record = Fields(&bytes);
        let (signature, length) = (record.u32()?, record.u64()?);
        let _versions = record.u32()?;
        let (on_disk, first_disk) = (record.u32()?, record.u32()?);
        let (here, entries, size, offset) = (record.u64()?, record.u64()?, record.u64()?, record.u64()?);
        let whole = signature == END_64 && length == END_64_BYTES - 12 && here == entries;
        if whole && at == record_at && (disk, disks, on_disk, first_disk) == (0, 1, 0, 0) {
            Ok(Some(End { entries, size, offset }))
        } else {
            Err(misplaced())
        }
    }
}

fn read_at<const N: usize>(file: &mut BufReader<File>, at: u64) -> Result<[u8; N], Refused> {
    let mut bytes = [0; N];
    file.seek(SeekFrom::Start(at)).and_then(|_| file.read_exact(&mut bytes)).map_err(shown)?;
    Ok(bytes)
}

/// An entry of the directory, and where its header starts.
fn central(rest: &mut Fields<'_>) -> Result<(Said, u64), Refused> {
    if rest.u32()? != CENTRAL {
        return Err("its directory has fewer files than it states".to_owned());
    }
    let _versions = rest.u32()?;
    let mut said = Said::fixed(rest)?;
    let (name, extra, comment) = (rest.u16()?, rest.u16()?, rest.u16()?);
    let (disk, _inner) = (rest.u16()?, rest.u16()?);
    let (attributes, offset) = (rest.u32()?, rest.u32()?);
    said.name = rest.bytes(name.into())?.to_vec();
    let mut large = zip64(rest.bytes(extra.into())?)?;
    said.widen(&mut large)?;
    let offset = widened(offset, &mut large)?;
    large.finish()?;
    let name = String::from_utf8_lossy(&said.name);
    if comment != 0 || disk != 0 {
        return Err(format!("`{name}` has a comment, or is in another file"));
    }
    if said.flags & !FLAGS_HARMLESS != 0 {
        return Err(format!(
            "`{name}` is encrypted, or was written as a stream: its flags are {:#06x}; pack the files again, with `zip -r`",
            said.flags
        ));
    }
    let is_folder = said.name.ends_with(b"/");
    let (stored, empty) = (said.method == STORED, said.bytes == 0 && said.compressed == 0 && said.crc == 0);
    if !(stored && said.bytes == said.compressed || said.method == DEFLATED)
        || is_folder && !(stored && empty)
    {
        return Err(format!(
            "`{name}`: files are stored or deflated, and folders are empty; this has method {} and {} bytes",
            said.method, said.bytes
        ));
    }
    // The kind of file, as Unix and as DOS tell it: a link that is taken for a file is another file elsewhere.
    let (unix, dos_folder) = (attributes >> 28, attributes & 0x10 != 0);
    if !matches!((unix, is_folder), (0, _) | (4, true) | (8, false)) || dos_folder && !is_folder {
        return Err(format!("`{name}` is neither a file nor a folder"));
    }
    Ok((said, offset))
}

/// The header that stands before the data of a file, and its length.
fn local(file: &mut BufReader<File>) -> Result<(Said, u64), Refused> {
    const FIXED: usize = 30;
    let mut fixed = [0; FIXED];
    file.read_exact(&mut fixed).map_err(shown)?;
    let mut fields = Fields(&fixed);
    if fields.u32()? != LOCAL {
        return Err("a file in it has no header where one should be".to_owned());
    }
    let _version = fields.u16()?;
    let mut said = Said::fixed(&mut fields)?;
    let (name, extra) = (fields.u16()?, fields.u16()?);
    let mut variable = vec![0; usize::from(name) + usize::from(extra)];
    file.read_exact(&mut variable).map_err(shown)?;
    let mut rest = Fields(&variable);
    said.name = rest.bytes(name.into())?.to_vec();
    let mut large = zip64(rest.0)?;
    said.widen(&mut large)?;
    large.finish()?;
    Ok((said, (FIXED + variable.len()) as u64))
}

impl Said {
    /// What stands in the same order in both, without the name.
    fn fixed(fields: &mut Fields<'_>) -> Result<Said, Refused> {
        let (flags, method, _time, crc) = (fields.u16()?, fields.u16()?, fields.u32()?, fields.u32()?);
        let (compressed, bytes) = (fields.u32()?.into(), fields.u32()?.into());
        Ok(Said { flags, method, crc, compressed, bytes, name: Vec::new() })
    }

    /// Takes the numbers that did not fit.
    fn widen(&mut self, large: &mut Fields<'_>) -> Result<(), Refused> {
        for number in [&mut self.bytes, &mut self.compressed] {
            *number = widened(u32::try_from(*number).map_err(shown)?, large)?;
        }
        Ok(())
    }
}

fn widened(number: u32, large: &mut Fields<'_>) -> Result<u64, Refused> {
    if number == u32::MAX { large.u64() } else { Ok(number.into()) }
}

/// The numbers that do not fit into 32 bits, from the extra fields, of which no other may say what a file is.
fn zip64(extra: &[u8]) -> Result<Fields<'_>, Refused> {
    let mut rest = Fields(extra);
    let mut seen = HashSet::new();
    let mut large = Fields(&[]);
    while !rest.0.is_empty() {
        let (id, length) = (rest.u16()?, rest.u16()?);
        let field = rest.bytes(length.into())?;
        if !seen.insert(id) || (id != EXTRA_ZIP64 && !EXTRA_HARMLESS.contains(&id)) {
            return Err(format!("an extra field {id:#06x} in it is unknown or occurs twice"));
        }
        if id == EXTRA_ZIP64 {
            large = Fields(field);
        }
    }
    Ok(large)
}

/// A name that means the same to every program.
fn plain_name(name: &[u8]) -> Result<String, Refused> {
    let text = String::from_utf8_lossy(name);
    let printable = name.iter().all(|byte| matches!(byte, b' '..=b'~') && *byte != b'\\');
    let path = text.strip_suffix('/').unwrap_or(&text);
    if printable && path.split('/').all(|part| !matches!(part, "" | "." | "..")) {
        Ok(text.into_owned())
    } else {
        Err(format!("`{}` is not a name that means the same everywhere", text.escape_debug()))
    }
}

/// Whether no name stands twice, and none is both a file and a folder.
fn distinct(entries: &[Entry]) -> Result<(), Refused> {
    let mut files = HashSet::new();
    let mut folders = HashSet::new();
    for entry in entries {
        let path = entry.name.strip_suffix('/').unwrap_or(&entry.name);
        if !files.insert(path) {
            return Err(format!(
                "it has two files of one name, `{path}`, so that programs may see different ones"
            ));
        }
        let is_folder = entry.name.ends_with('/');
        folders.extend(is_folder.then_some(path));
        folders.extend(path.match_indices('/').filter_map(|(at, _)| path.get(..at)));
    }
    match entries.iter().find(|entry| folders.contains(entry.name.as_str())) {
        Some(entry) => Err(format!("`{}` is a file and a folder", entry.name)),
        None => Ok(()),
    }
}

/// What is left of a record.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn array<const N: usize>(&mut self) -> Result<[u8; N], Refused> {
        let (bytes, rest) = self.0.split_first_chunk().ok_or("a record in it is truncated")?;
        self.0 = rest;
        Ok(*bytes)
    }

    fn u16(&mut self) -> Result<u16, Refused> {
        self.array().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Result<u32, Refused> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, Refused> {
        self.array().map(u64::from_le_bytes)
    }

    fn bytes(&mut self, length: usize) -> Result<&'a [u8], Refused> {
        let (bytes, rest) = self.0.split_at_checked(length).ok_or("a record in it is truncated")?;
        self.0 = rest;
        Ok(bytes)
    }

    fn finish(&self) -> Result<(), Refused> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err("a number is in the large form where the small form is enough".to_owned())
        }
    }
}

/// A file in an archive, as it is read: at its end length, sum and stream are held against its header.
pub(super) struct EntryReader<'a> {
    data: Take<&'a mut BufReader<File>>,
    /// None of a file that is stored.
    inflate: Option<Box<Decompress>>,
    /// Whether the deflated data said that they end.
    ended: bool,
    crc: Crc,
    expected: u32,
    left: u64,
}

impl EntryReader<'_> {
    fn next(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(inflate) = &mut self.inflate else {
            return self.data.read(buffer);
        };
        while !self.ended {
            let input = self.data.fill_buf()?;
            let over = input.is_empty();
            let (before_in, before_out) = (inflate.total_in(), inflate.total_out());
            let status =
                inflate.decompress(input, buffer, FlushDecompress::None).map_err(io::Error::other)?;
            let (taken, given) = (inflate.total_in() - before_in, inflate.total_out() - before_out);
            // Neither is longer than the slice that it was counted in.
            self.data.consume(usize::try_from(taken).unwrap_or(usize::MAX));
            self.ended = status == Status::StreamEnd;
            if given > 0 || self.ended {
                return Ok(usize::try_from(given).unwrap_or(usize::MAX));
            }
            if over {
                return Err(io::Error::other("its data end early"));
            }
        }
        Ok(0)
    }
}

impl Read for EntryReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        let read = self.next(buffer)?;
        self.left = self
            .left
            .checked_sub(read as u64)
            .ok_or_else(|| io::Error::other("it has more bytes than its header says"))?;
        self.crc.update(buffer.get(..read).unwrap_or_default());
        if read == 0 && (self.left > 0 || self.data.limit() > 0 || self.crc.sum() != self.expected) {
            return Err(io::Error::other("its data do not match its header"));
        }
        Ok(read)
    }
}
