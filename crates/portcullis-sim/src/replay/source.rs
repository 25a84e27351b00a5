//! Where a trace comes from: a file that can be read twice, plain or gzip.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::bufread::MultiGzDecoder;
use portcullis_wire::trace::{self, RECORD_BYTES_MAX, Record, TraceError};

use super::ReplayError;

/// The most bytes of a trace, after decompression: 16 GiB. A gzip file can unpack to a thousand times its size.
pub const DECOMPRESSED_BYTES_MAX: u64 = 16 << 30;
/// The most bytes of a trace that cannot be read twice (a pipe), before decompression: 512 MiB.
pub const UNSEEKABLE_BYTES_MAX: u64 = 512 << 20;

/// The first bytes of a gzip file.
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
/// How the first line of an export begins.
const EXPORT_PREFIX: &[u8] = b"{\"record\":\"export\"";

/// A trace that can be read more than once.
#[derive(Debug)]
pub struct Source {
    bytes: Bytes,
    /// Size in bytes, before decompression.
    pub size: u64,
    read: Arc<AtomicU64>,
}

#[derive(Debug)]
enum Bytes {
    File(PathBuf),
    Memory(Arc<[u8]>),
}

impl Source {
    /// A file. What is not a regular file (a pipe) is read into memory.
    ///
    /// # Errors
    /// Those of opening and reading, and a pipe with more than [`UNSEEKABLE_BYTES_MAX`] bytes.
    pub fn file(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let meta = file.metadata()?;
        if meta.is_dir() {
            return Err(io::Error::new(io::ErrorKind::IsADirectory, "this is a folder, not a trace"));
        }
        if !meta.is_file() {
            return Self::stream(file);
        }
        Ok(Self { bytes: Bytes::File(path.to_owned()), size: meta.len(), read: Arc::default() })
    }

    /// A stream such as standard input, read into memory.
    ///
    /// # Errors
    /// Those of reading, and more than [`UNSEEKABLE_BYTES_MAX`] bytes.
    pub fn stream(stream: impl Read) -> io::Result<Self> {
        let mut bytes = Vec::new();
        stream.take(UNSEEKABLE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > UNSEEKABLE_BYTES_MAX {
            let why = format!("a trace from a pipe has at most {UNSEEKABLE_BYTES_MAX} bytes; give a file");
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
        }
        Ok(Self::memory(bytes))
    }

    /// Bytes that are in memory already.
    #[must_use]
    pub fn memory(bytes: Vec<u8>) -> Self {
        Self { size: bytes.len() as u64, bytes: Bytes::Memory(bytes.into()), read: Arc::default() }
    }

    /// How many bytes were read so far, all passes together.
    pub(super) fn bytes_read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    /// The text from its start, decompressed where it is gzip.
    ///
    /// # Errors
    /// Those of opening the file, and of a compressed one that is none.
    pub fn open(&self) -> io::Result<Box<dyn BufRead>> {
        let raw: Box<dyn Read> = match &self.bytes {
            Bytes::File(path) => Box::new(File::open(path)?),
            Bytes::Memory(bytes) => Box::new(Cursor::new(Arc::clone(bytes))),
        };
        let mut raw = BufReader::new(Counted { inner: raw, read: Arc::clone(&self.read) });
        let gzip = raw.fill_buf()?.starts_with(&GZIP_MAGIC);
        let text: Box<dyn Read> = if gzip { Box::new(MultiGzDecoder::new(raw)) } else { Box::new(raw) };
        Ok(Box::new(BufReader::new(Limited { inner: text, left: DECOMPRESSED_BYTES_MAX })))
    }
}

/// Counts what is read, for showing progress.
struct Counted<R> {
    inner: R,
    read: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.read.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

/// Fails, rather than ends, at the limit.
struct Limited<R> {
    inner: R,
    left: u64,
}

impl<R: Read> Read for Limited<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        match self.left.checked_sub(read as u64) {
            Some(left) => self.left = left,
            None => {
                let why = format!("the trace unpacks to more than {DECOMPRESSED_BYTES_MAX} bytes");
                return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
            }
        }
        Ok(read)
    }
}

/// Whether a source is the gate's own export; otherwise it is chat messages.
///
/// # Errors
/// [`ReplayError`] where it cannot be read.
pub fn is_export(source: &Source) -> Result<bool, ReplayError> {
    let mut start = Vec::new();
    source.open()?.take(EXPORT_PREFIX.len() as u64).read_to_end(&mut start)?;
    Ok(start == EXPORT_PREFIX)
}

/// A record with the line it starts on, or why it cannot be read.
pub(super) type Numbered = (usize, Result<Record, TraceError>);

/// The records of a file of chat messages, one line at a time where it is JSON Lines.
pub(super) struct Records {
    lines: Lines,
    /// What was read while finding out the layout.
    ahead: std::collections::VecDeque<(usize, Vec<u8>)>,
    /// The records of a file that is one value.
    whole: std::vec::IntoIter<Numbered>,
}

impl Records {
    pub(super) fn open(source: &Source) -> Result<Self, ReplayError> {
        let mut lines = Lines { reader: source.open()?, number: 0 };
        let mut ahead = std::collections::VecDeque::new();
        let mut whole = Vec::new();
        let Some((start, first)) = lines.next_filled()? else { return Err(ReplayError::Empty) };
        let complete = serde_json::from_slice::<serde::de::IgnoredAny>(&first).is_ok();
        match if complete { lines.next_filled()? } else { None } {
            Some(second) => ahead.extend([(start, first), second]),
            None => {
                let text = lines.rest(start, first)?;
                whole = trace::records(&text);
                for (line, _) in &mut whole {
                    *line += start - 1;
                }
            }
        }
        Ok(Self { lines, ahead, whole: whole.into_iter() })
    }

    pub(super) fn next(&mut self) -> Result<Option<Numbered>, ReplayError> {
        if let Some(record) = self.whole.next() {
            return Ok(Some(record));
        }
        let line = match self.ahead.pop_front() {
            Some(line) => Some(line),
            None => self.lines.next_filled()?,
        };
        Ok(line.map(|(number, line)| (number, trace::read_record(&line))))
    }
}

struct Lines {
    reader: Box<dyn BufRead>,
    number: usize,
}

impl Lines {
    /// The next line that is not blank, with its number.
    fn next_filled(&mut self) -> Result<Option<(usize, Vec<u8>)>, ReplayError> {
        loop {
            let mut line = Vec::new();
            let limited = &mut (&mut self.reader).take(RECORD_BYTES_MAX as u64 + 1);
            if limited.read_until(b'\n', &mut line)? == 0 {
                return Ok(None);
            }
            self.number += 1;
            if line.len() > RECORD_BYTES_MAX {
                return Err(ReplayError::RecordTooLong { line: self.number, limit: RECORD_BYTES_MAX });
            }
            if !line.trim_ascii().is_empty() {
                return Ok(Some((self.number, line.trim_ascii().to_vec())));
            }
        }
    }

    /// A value over many lines: `first`, which stands on line `start`, and all that follows.
    fn rest(&mut self, start: usize, first: Vec<u8>) -> Result<Vec<u8>, ReplayError> {
        let mut text = first;
        text.push(b'\n');
        (&mut self.reader).take(RECORD_BYTES_MAX as u64 + 1).read_to_end(&mut text)?;
        if text.len() > RECORD_BYTES_MAX {
            return Err(ReplayError::RecordTooLong { line: start, limit: RECORD_BYTES_MAX });
        }
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    fn lines_of(bytes: &[u8]) -> Vec<(usize, bool)> {
        let mut records = Records::open(&Source::memory(bytes.to_vec())).unwrap();
        let mut found = Vec::new();
        while let Some((line, record)) = records.next().unwrap() {
            found.push((line, record.is_ok()));
        }
        found
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn layouts_are_told_apart_while_streaming() {
        assert_eq!(lines_of(b"\n{\"messages\":[]}\n\n[]\n{\n"), [(2, true), (4, true), (5, false)]);
        assert_eq!(lines_of(b"\n\n{\n\"messages\": []\n}\n"), [(3, true)]);
        assert_eq!(lines_of(b"[{\"messages\":[]},{\"messages\":[]}]"), [(1, true), (1, true)]);
        assert_eq!(lines_of(b"{\"messages\":[]"), [(1, false)]);
        assert!(matches!(Records::open(&Source::memory(b"\n \n".to_vec())), Err(ReplayError::Empty)));
    }

    #[test]
    fn gzip_is_known_by_its_first_bytes_in_any_number_of_members() {
        let mut bytes = gzip(b"{\"messages\":[]}\n");
        bytes.extend(gzip(b"{\"messages\":[]}\n"));
        assert_eq!(lines_of(&bytes), [(1, true), (2, true)]);
        let source = Source::memory(bytes);
        assert!(!is_export(&source).unwrap());
        assert!(is_export(&Source::memory(gzip(b"{\"record\":\"export\",\"format\":\"x\"}"))).unwrap());
    }

    #[test]
    fn a_torn_gzip_file_is_an_error() {
        let mut bytes = gzip(&b"{\"messages\":[]}\n".repeat(100));
        bytes.truncate(bytes.len() - 9);
        let mut records = Records::open(&Source::memory(bytes)).unwrap();
        let end = loop {
            match records.next() {
                Ok(Some(_)) => {}
                other => break other,
            }
        };
        assert!(matches!(end, Err(ReplayError::Io(_))), "{end:?}");
    }

    #[test]
    fn the_limit_fails_rather_than_ends() {
        let mut limited = Limited { inner: &b"12345"[..], left: 4 };
        assert!(limited.read_to_end(&mut Vec::new()).is_err());
    }
}
