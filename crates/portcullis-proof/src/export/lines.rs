//! The lines of a file, each with its place: one at a time, or as many as are read already.

use std::io::{self, Read};

use memchr::memchr;

/// Bytes asked of the reader at a time.
const READ_BYTES: usize = 64 << 10;

/// The lines of a file, one at a time in one buffer, each with its place.
///
/// The buffer grows to the longest line that was asked for, or to what [`Lines::fill`] was asked for.
#[derive(Debug)]
pub struct Lines<R> {
    reader: R,
    buffer: Vec<u8>,
    /// Where the current line begins and ends in the buffer, without its newline, and where the next one begins.
    start: usize,
    end: usize,
    next: usize,
    /// Whether the reader has nothing more, and how it failed: told when what was read before it is used up.
    ended: bool,
    failed: Option<io::Error>,
    /// The number of the current line, from 1; 0 before the first.
    pub number: u64,
    /// The offset of the current line's first byte.
    pub byte: u64,
    next_byte: u64,
}

/// Why there is no next line.
#[derive(Debug)]
pub enum LineError {
    /// The reader failed.
    Read(io::Error),
    /// The file ends within the line.
    Unfinished,
    /// The line is longer than the limit that held for it.
    TooLong(usize),
}

impl<R: Read> Lines<R> {
    /// Lines of `reader`, from its current position.
    pub fn new(reader: R) -> Lines<R> {
        Lines {
            reader,
            buffer: Vec::new(),
            start: 0,
            end: 0,
            next: 0,
            ended: false,
            failed: None,
            number: 0,
            byte: 0,
            next_byte: 0,
        }
    }

    /// Goes to the next line; false at the end of the file.
    ///
    /// # Errors
    /// See [`LineError`].
    pub fn advance(&mut self, bytes_max: usize) -> Result<bool, LineError> {
        self.number += 1;
        self.byte = self.next_byte;
        (self.start, self.end) = (self.next, self.next);
        let mut searched = 0;
        loop {
            let ahead = self.ahead();
            let within = ahead.get(searched..ahead.len().min(bytes_max + 1)).unwrap_or_default();
            if let Some(newline) = memchr(b'\n', within) {
                self.end = self.next + searched + newline;
                self.step(searched + newline + 1);
                return Ok(true);
            }
            searched += within.len();
            if searched > bytes_max {
                return Err(LineError::TooLong(bytes_max));
            }
            if let Some(error) = self.failed.take() {
                return Err(LineError::Read(error));
            }
            if self.ended && searched == 0 {
                return Ok(false);
            }
            if self.ended {
                self.step(searched);
                return Err(LineError::Unfinished);
            }
            self.read(READ_BYTES);
        }
    }

    /// The offset of the first byte after the current line.
    #[must_use]
    pub fn next_byte(&self) -> u64 {
        self.next_byte
    }

    /// The current line without its newline.
    #[must_use]
    pub fn line(&self) -> &[u8] {
        self.buffer.get(self.start..self.end).unwrap_or_default()
    }

    /// Reads on until `bytes` bytes are read ahead, unless half as many are, or the file ends or cannot be read:
    /// what is read is moved in the buffer, and so each byte at most once.
    pub fn fill(&mut self, bytes: usize) {
        let ahead = self.ahead().len();
        if ahead < bytes.div_ceil(2) && !self.ended && self.failed.is_none() {
            self.read(bytes - ahead);
        }
    }

    /// What is read ahead: all that follows the current line in the buffer, up to a place within a line.
    #[must_use]
    pub fn ahead(&self) -> &[u8] {
        self.buffer.get(self.next..).unwrap_or_default()
    }

    /// Skips lines in [`Lines::ahead`], given their number and their bytes with newlines.
    pub fn skip(&mut self, lines: u64, bytes: usize) {
        self.number += lines;
        self.step(bytes);
        (self.start, self.end) = (self.next, self.next);
    }

    fn step(&mut self, bytes: usize) {
        self.next += bytes;
        self.next_byte += bytes as u64;
    }

    /// Reads more, after what was passed is forgotten. The current line is not kept.
    fn read(&mut self, bytes: usize) {
        self.buffer.drain(..self.next.min(self.buffer.len()));
        (self.start, self.end, self.next) = (0, 0, 0);
        match (&mut self.reader).take(bytes as u64).read_to_end(&mut self.buffer) {
            Ok(read) => self.ended = read < bytes,
            Err(error) => self.failed = Some(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_know_their_place() {
        let mut lines = Lines::new(&b"ab\n\nabcd\nxy"[..]);
        assert!(lines.advance(3).unwrap());
        assert_eq!(lines.line(), b"ab");
        assert!(lines.advance(3).unwrap());
        assert_eq!((lines.line(), lines.number, lines.byte), (&b""[..], 2, 3));
        assert!(matches!(lines.advance(3), Err(LineError::TooLong(3))));
        assert_eq!((lines.number, lines.byte), (3, 4));
        let mut lines = Lines::new(&b"abc\nxy"[..]);
        assert!(lines.advance(3).unwrap());
        assert!(matches!(lines.advance(3), Err(LineError::Unfinished)));
        assert!(!lines.advance(3).unwrap());
    }

    #[test]
    fn lines_read_ahead_are_the_same_lines() {
        let text: String = (0..30_000).map(|number| format!("line {number}\n")).collect();
        let mut lines = Lines::new(text.as_bytes());
        assert!(lines.advance(100).unwrap());
        lines.fill(200_000);
        assert_eq!(lines.ahead().len(), 200_000);
        assert!(lines.ahead().starts_with(b"line 1\nline 2\nline 3\n"));
        for enough in [1_000, 200_000, 400_000] {
            lines.fill(enough);
            assert_eq!(lines.ahead().len(), 200_000, "at least half of {enough}");
        }
        lines.skip(2, 14);
        assert_eq!(lines.number, 3);
        assert!(lines.advance(100).unwrap());
        assert_eq!((lines.line(), lines.number, lines.byte), (&b"line 3"[..], 4, 21));
        let mut last = Vec::new();
        while lines.advance(100).unwrap() {
            last = lines.line().to_vec();
        }
        assert_eq!((&*last, lines.number, lines.byte), (&b"line 29999"[..], 30_001, text.len() as u64));
        lines.fill(10);
        assert_eq!(lines.ahead(), b"");
    }

    /// A line of the greatest length is read, wherever what is read at once ends.
    #[test]
    fn a_line_may_end_past_what_is_read_at_once() {
        for bytes in READ_BYTES - 1..=READ_BYTES + 1 {
            let text = "a".repeat(bytes) + "\n";
            let mut lines = Lines::new(text.as_bytes());
            assert!(lines.advance(bytes).unwrap());
            assert_eq!(lines.line().len(), bytes);
            let mut lines = Lines::new(text.as_bytes());
            assert!(matches!(lines.advance(bytes - 1), Err(LineError::TooLong(_))));
        }
    }

    /// What fails after lines that are there does not hide them.
    #[test]
    fn a_reader_that_fails_fails_at_its_place() {
        struct Failing;
        impl Read for Failing {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::ErrorKind::TimedOut.into())
            }
        }
        let mut lines = Lines::new(b"ab\ncd".chain(Failing));
        lines.fill(1_000);
        assert!(lines.advance(3).unwrap());
        assert_eq!(lines.line(), b"ab");
        assert!(matches!(lines.advance(3), Err(LineError::Read(_))));
    }
}
