//! The next event lines, parsed and hashed before their turn, on as many threads as the machine has.
//!
//! Reading a line and hashing it is most of the work, and neither needs anything but the line and the link on the line
//! before. What the line means for the run is judged after that, one line after the other.

use std::num::NonZero;
use std::thread;

use memchr::memchr;

use crate::chain::{Digest, Id, event_hash, event_link};
use crate::event::Event;
use crate::export::{LINE_BYTES_MAX, event_parts};

/// Bytes of lines that are read ahead: enough that starting threads costs little beside them, and few enough that
/// what was parsed is still in the processor's cache when its turn comes.
pub(super) const AHEAD_BYTES: usize = 1 << 20;
/// Bytes of lines that are worth a thread.
const THREAD_BYTES: usize = 64 << 10;
/// The most threads.
const THREADS_MAX: usize = 8;

/// An event line of what was read ahead.
#[derive(Clone, Copy)]
pub(super) struct Line<'a> {
    /// Its bytes in the file, with the newline.
    pub(super) bytes: usize,
    /// The link that it carries.
    pub(super) link: Digest,
    /// The event.
    pub(super) text: &'a [u8],
}

/// What an event line says, and the link that follows from it; why it says nothing where it cannot be read.
pub(super) type Read<'a> = Result<(Event<'a>, Digest), String>;

/// The event lines at the beginning of `ahead`, up to the first line that is none or needs a closer look.
pub(super) fn lines(ahead: &[u8]) -> Vec<Line<'_>> {
    let mut rest = ahead;
    let mut lines = Vec::new();
    while let Some(end) = memchr(b'\n', rest).filter(|end| *end <= LINE_BYTES_MAX)
        && let Some((line, after)) = rest.split_at_checked(end)
        && !line.contains(&b'\r')
        && let Some((link, text)) = event_parts(line)
    {
        lines.push(Line { bytes: end + 1, link, text });
        rest = after.get(1..).unwrap_or_default();
    }
    lines
}

/// Which chain the lines continue.
#[derive(Clone, Copy)]
pub(super) struct After {
    pub(super) run: Id,
    pub(super) segment: Id,
    pub(super) link: Digest,
}

/// Parses and hashes lines, each as the one that follows the line before it.
pub(super) fn read<'a>(after: After, lines: &[Line<'a>]) -> Vec<Read<'a>> {
    let bytes: usize = lines.iter().map(|line| line.bytes).sum();
    let threads = thread::available_parallelism().map_or(1, NonZero::get).min(THREADS_MAX);
    read_with(after, lines, threads.min(bytes / THREAD_BYTES).max(1))
}

fn read_with<'a>(after: After, lines: &[Line<'a>], threads: usize) -> Vec<Read<'a>> {
    let (mine, others) = lines.split_at_checked(lines.len().div_ceil(threads)).unwrap_or((lines, &[]));
    let Some(last) = mine.last().filter(|_| !others.is_empty()) else { return read_in_turn(after, lines) };
    let next = After { link: last.link, ..after };
    thread::scope(|scope| {
        let other = thread::Builder::new().spawn_scoped(scope, || read_with(next, others, threads - 1));
        let mut read = read_in_turn(after, mine);
        match other.map(thread::ScopedJoinHandle::join) {
            Ok(Ok(more)) => read.extend(more),
            // A machine that has no thread to spare is slower, and that is all.
            Ok(Err(_)) | Err(_) => read.extend(read_in_turn(next, others)),
        }
        read
    })
}

fn read_in_turn<'a>(after: After, lines: &[Line<'a>]) -> Vec<Read<'a>> {
    let After { run, segment, mut link } = after;
    let read = |line: &Line<'a>| {
        let before = std::mem::replace(&mut link, line.link);
        let event = Event::from_line(line.text)?;
        let link = event_link(run, segment, event.seq, before, event_hash(line.text));
        Ok((event, link))
    };
    lines.iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::Hex;
    use crate::export::write_event;

    const AFTER: After = After { run: Hex([1; 16]), segment: Hex([2; 16]), link: Hex([3; 32]) };

    /// Lines of a chain, and their file.
    fn chain(events: u64) -> Vec<u8> {
        let mut file = Vec::new();
        let mut link = AFTER.link;
        for seq in 1..=events {
            let kind = if seq % 7 == 0 { "no-such-kind" } else { "input" };
            let line = format!(
                r#"{{"v":1,"seq":{seq},"t":"","kind":"{kind}","actor":"a","cause":null,"payloads":{{}},"body":{{}}}}"#
            );
            link = event_link(AFTER.run, AFTER.segment, seq, link, event_hash(line.as_bytes()));
            write_event(&mut file, link, line.as_bytes()).unwrap();
        }
        file
    }

    fn told(reads: Vec<Read<'_>>) -> Vec<Result<(u64, Digest), String>> {
        reads.into_iter().map(|read| read.map(|(event, link)| (event.seq, link))).collect()
    }

    #[test]
    fn threads_read_what_one_reads() {
        let file = chain(100);
        let lines = lines(&file);
        let alone = told(read_in_turn(AFTER, &lines));
        for (number, (line, read)) in lines.iter().zip(&alone).enumerate() {
            match read {
                Ok((seq, link)) => assert_eq!((*seq, *link), (number as u64 + 1, line.link)),
                Err(message) => assert!(number % 7 == 6 && message.contains("no-such-kind"), "{message}"),
            }
        }
        for threads in 1..=9 {
            for count in [100, 99, 10, 9, 8, 2, 1, 0] {
                assert_eq!(told(read_with(AFTER, &lines[..count], threads)), alone[..count]);
            }
        }
    }

    #[test]
    fn only_whole_event_lines_are_taken() {
        let file = chain(3);
        let count = |file: &[u8]| lines(file).len();
        assert_eq!(lines(&file).iter().map(|line| line.bytes).sum::<usize>(), file.len());
        assert_eq!((count(&file), count(&file[..file.len() - 1]), count(&[])), (3, 2, 0));
        let second = file.iter().position(|byte| *byte == b'\n').unwrap() + 1;
        let with = |inserted: &[u8]| [&file[..second], inserted, &file[second..]].concat();
        for other in [&b"{\"record\":\"head\"}\n"[..], b"\n", b"\r\n", b"short\n"] {
            assert_eq!(count(&with(other)), 1, "{other:?}");
        }
        let mut carriage = file.clone();
        carriage[second + 70] = b'\r';
        assert_eq!(count(&carriage), 1);
        let long = [&file[..second - 1], &vec![b' '; LINE_BYTES_MAX], b"\n"].concat();
        assert_eq!(count(&long), 0);
    }
}
