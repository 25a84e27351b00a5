//! Newline framing, as MCP's stdio transport uses it: one message a line, no newline inside a message.
//!
//! The splitter does no I/O. Feed it what was read, then take lines until it has none. A line that exceeds
//! the limit is reported once and skipped to its end, so that one oversized message costs its sender that
//! message and nobody the session.

use crate::jsonrpc::MESSAGE_BYTES_MAX;

/// A line was longer than the limit; it was dropped, and the next line follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a message is longer than {limit} bytes and was dropped; send it in smaller parts")]
pub struct LineTooLong {
    /// The limit, in bytes, without the newline.
    pub limit: usize,
}

/// Splits a byte stream into lines. Holds at most one limit's worth of bytes plus the last piece fed,
/// provided that lines are taken between feeds.
#[derive(Debug)]
pub struct LineSplitter {
    buffer: Vec<u8>,
    /// Bytes before this were handed out.
    start: usize,
    /// Bytes before this hold no newline that was not handed out.
    scanned: usize,
    limit: usize,
    /// The rest of an oversized line, up to its newline, is being dropped.
    skipping: bool,
}

impl Default for LineSplitter {
    fn default() -> Self {
        Self::new(MESSAGE_BYTES_MAX)
    }
}

impl LineSplitter {
    /// A splitter that refuses lines longer than `limit` bytes.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self { buffer: Vec::new(), start: 0, scanned: 0, limit, skipping: false }
    }

    /// Adds bytes as they were read.
    pub fn feed(&mut self, bytes: &[u8]) {
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.scanned -= self.start;
            self.start = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// The next complete line, without its newline (a carriage return stays: what is forwarded must be what was
    /// received, and [`peek`](crate::jsonrpc::peek) refuses those that end a line to others). Lines may be empty.
    /// `None`: feed more.
    pub fn next_line(&mut self) -> Option<Result<&[u8], LineTooLong>> {
        loop {
            let Some(end) = self.find_newline() else {
                return self.check_unfinished();
            };
            let start = std::mem::replace(&mut self.start, end + 1);
            self.scanned = self.start;
            if std::mem::take(&mut self.skipping) {
                continue;
            }
            if end - start > self.limit {
                return Some(Err(LineTooLong { limit: self.limit }));
            }
            return self.buffer.get(start..end).map(Ok);
        }
    }

    /// The bytes after the last newline, for when the stream has ended. A skipped line has no remainder.
    #[must_use]
    pub fn remainder(&self) -> &[u8] {
        self.buffer.get(self.start..).unwrap_or_default()
    }

    fn find_newline(&mut self) -> Option<usize> {
        let unseen = self.buffer.get(self.scanned..)?;
        let found = unseen.iter().position(|byte| *byte == b'\n').map(|at| self.scanned + at);
        self.scanned = found.unwrap_or(self.buffer.len());
        found
    }

    /// There is no newline yet: drop what is being skipped, and give up on a line that is already too long.
    fn check_unfinished(&mut self) -> Option<Result<&[u8], LineTooLong>> {
        let too_long = !self.skipping && self.buffer.len() - self.start > self.limit;
        if too_long || self.skipping {
            self.skipping = true;
            self.buffer.clear();
            self.buffer.shrink_to(self.limit.min(64 * 1024));
            self.start = 0;
            self.scanned = 0;
        }
        too_long.then_some(Err(LineTooLong { limit: self.limit }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn drain(splitter: &mut LineSplitter, out: &mut Vec<Result<Vec<u8>, LineTooLong>>) {
        while let Some(line) = splitter.next_line() {
            out.push(line.map(<[u8]>::to_vec));
        }
    }

    #[test]
    fn lines_across_pieces() {
        let mut splitter = LineSplitter::new(10);
        let mut lines = Vec::new();
        for piece in ["ab", "c\r\n\nde", "", "f\nrest"] {
            splitter.feed(piece.as_bytes());
            drain(&mut splitter, &mut lines);
        }
        let lines: Vec<_> = lines.into_iter().map(|line| String::from_utf8(line.unwrap()).unwrap()).collect();
        assert_eq!(lines, ["abc\r", "", "def"]);
        assert_eq!(splitter.remainder(), b"rest");
    }

    #[test]
    fn an_oversized_line_is_reported_once_and_skipped() {
        for pieces in [vec!["ok\n1234567", "89", "0123\nnext\n"], vec!["ok\n1234567890123\nnext\n"]] {
            let mut splitter = LineSplitter::new(8);
            let mut lines = Vec::new();
            for piece in pieces {
                splitter.feed(piece.as_bytes());
                drain(&mut splitter, &mut lines);
            }
            assert_eq!(lines, [Ok(b"ok".to_vec()), Err(LineTooLong { limit: 8 }), Ok(b"next".to_vec())]);
        }
    }

    #[test]
    fn a_line_of_exactly_the_limit_passes() {
        let mut splitter = LineSplitter::new(4);
        let mut lines = Vec::new();
        splitter.feed(b"1234");
        drain(&mut splitter, &mut lines);
        splitter.feed(b"\n");
        drain(&mut splitter, &mut lines);
        assert_eq!(lines, [Ok(b"1234".to_vec())]);
    }

    #[test]
    fn memory_does_not_grow_while_skipping() {
        let mut splitter = LineSplitter::new(1000);
        let mut lines = Vec::new();
        for _ in 0..10_000 {
            splitter.feed(&[b'x'; 1000]);
            drain(&mut splitter, &mut lines);
            assert!(splitter.buffer.capacity() <= 4000, "{}", splitter.buffer.capacity());
        }
        assert_eq!(lines.len(), 1);
        assert!(splitter.remainder().is_empty());
    }

    proptest! {
        #[test]
        fn pieces_do_not_matter(bytes in prop::collection::vec(prop_oneof![Just(b'\n'), any::<u8>()], 0..300), cut in 1usize..40) {
            let mut splitter = LineSplitter::new(20);
            let mut lines = Vec::new();
            for piece in bytes.chunks(cut) {
                splitter.feed(piece);
                drain(&mut splitter, &mut lines);
            }
            let mut expected: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
            let rest = expected.pop().unwrap();
            prop_assert_eq!(lines.len(), expected.len() + usize::from(rest.len() > 20));
            for (line, expected) in lines.iter().zip(expected) {
                match line {
                    Ok(line) => prop_assert_eq!(line, expected),
                    Err(_) => prop_assert!(expected.len() > 20),
                }
            }
        }
    }
}
