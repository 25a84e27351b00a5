//! The next lines, parsed and hashed before their turn, on as many threads as the machine has.
//!
//! Reading a line and hashing it is most of the work, and neither needs anything but the line, and for an event the
//! link on the line before. What the line means for the run is judged after that, one line after the other.

use std::io::BufRead;
use std::num::NonZero;
use std::sync::OnceLock;
use std::thread;

use memchr::memchr;

use super::{Expect, Stop, Verifier};
use crate::chain::{Digest, Id, event_hash, event_link, payload_commitment};
use crate::diagnose::Place;
use crate::event::Event;
use crate::export::{LINE_BYTES_MAX, Lines, PayloadRecord, event_parts, read_record, record_kind};

/// Bytes of lines that are read ahead: enough that starting threads costs little beside them, and few enough that
/// what was parsed is still in the processor's cache when its turn comes.
const AHEAD_BYTES: usize = 1 << 20;
/// Bytes of lines that are worth a thread.
const THREAD_BYTES: usize = 64 << 10;
/// The most threads.
const THREADS_MAX: usize = 8;

/// How many of the lines that were read ahead were taken, the last of them perhaps to be refused.
struct Taken {
    lines: u64,
    bytes: usize,
    result: Result<(), Stop>,
}

impl Taken {
    /// Whether any was taken.
    fn settle<R: BufRead>(self, lines: &mut Lines<R>) -> Result<bool, Stop> {
        lines.skip(self.lines, self.bytes);
        self.result.map(|()| self.lines > 0)
    }
}

impl Verifier<'_> {
    /// Takes the lines of one kind that are read ahead; false if there is none, and the next line has to be looked
    /// at by itself.
    pub(super) fn ahead<R: BufRead>(&mut self, lines: &mut Lines<R>) -> Result<bool, Stop> {
        let (run, segment) = (self.run(), self.segment);
        match self.expect {
            Expect::EventOrHead => {
                lines.fill(AHEAD_BYTES);
                let events = event_lines(lines.ahead(), self.link);
                let read = read(&events, |line| line.read(run, segment));
                let end = self.in_turn(lines, &events, read, Verifier::event);
                end.settle(lines)
            }
            Expect::SegmentOrPayloadOrEnd | Expect::PayloadOrEnd => {
                lines.fill(AHEAD_BYTES);
                let payloads = payload_lines(lines.ahead());
                let read = read(&payloads, PayloadLine::read);
                let end = self.in_turn(lines, &payloads, read, |verifier, place, _, read| {
                    verifier.payload(place, read)
                });
                end.settle(lines)
            }
            Expect::Export | Expect::Segment | Expect::Nothing => Ok(false),
        }
    }

    /// Takes lines that were read, one after the other, up to the first that is wrong.
    fn in_turn<R: BufRead, L: Placed, T>(
        &mut self,
        lines: &Lines<R>,
        ahead: &[L],
        read: Vec<T>,
        take: impl Fn(&mut Self, Place, &L, T) -> Result<(), Stop>,
    ) -> Taken {
        let mut taken = Taken { lines: 0, bytes: 0, result: Ok(()) };
        for (line, read) in ahead.iter().zip(read) {
            let byte = lines.next_byte() + taken.bytes as u64;
            taken.lines += 1;
            taken.bytes += line.bytes();
            taken.result = take(self, Place { line: lines.number + taken.lines, byte }, line, read);
            if taken.result.is_err() {
                break;
            }
        }
        taken
    }
}

/// A line of what was read ahead that has its place in the file.
trait Placed {
    /// Its bytes in the file, with the newline.
    fn bytes(&self) -> usize;
}

/// An event line.
#[derive(Clone, Copy)]
pub(super) struct EventLine<'a> {
    /// The link on the line before.
    pub(super) before: Digest,
    /// The link that it carries.
    pub(super) link: Digest,
    /// The event.
    pub(super) text: &'a [u8],
}

impl Placed for EventLine<'_> {
    fn bytes(&self) -> usize {
        // A link in hexadecimal, a space, and the newline.
        self.text.len() + 2 * self.link.0.len() + 2
    }
}

/// What an event line says, and the link that follows from it; why it says nothing where it cannot be read.
pub(super) type ReadEvent<'a> = Result<(Event<'a>, Digest), String>;

impl<'a> EventLine<'a> {
    /// Parses and hashes the line, as an event of this run and segment.
    pub(super) fn read(&self, run: Id, segment: Id) -> ReadEvent<'a> {
        let event = Event::from_line(self.text)?;
        let link = event_link(run, segment, event.seq, self.before, event_hash(self.text));
        Ok((event, link))
    }
}

/// A payload record.
#[derive(Clone, Copy)]
pub(super) struct PayloadLine<'a>(pub(super) &'a [u8]);

impl Placed for PayloadLine<'_> {
    fn bytes(&self) -> usize {
        self.0.len() + 1
    }
}

/// A payload record, the number of its bytes, and the commitment that follows from it; why it is none.
pub(super) type ReadPayload<'a> = Result<(PayloadRecord<'a>, u64, Digest), String>;

impl<'a> PayloadLine<'a> {
    /// Parses and hashes the record.
    pub(super) fn read(&self) -> ReadPayload<'a> {
        let record: PayloadRecord<'a> = read_record(self.0)?;
        let bytes = record.bytes()?;
        let commitment = payload_commitment(&record.salt.0, &record.media_type, &bytes);
        let length = bytes.len() as u64;
        drop(bytes);
        Ok((record, length, commitment))
    }
}

/// The event lines at the beginning of `ahead`, which follow `link`, up to the first line that is none or needs a
/// closer look.
fn event_lines(ahead: &[u8], link: Digest) -> Vec<EventLine<'_>> {
    let mut before = link;
    let event = |line| {
        let (link, text) = event_parts(line)?;
        let before = std::mem::replace(&mut before, link);
        Some(EventLine { before, link, text })
    };
    lines(ahead, event)
}

/// The payload records at the beginning of `ahead`, up to the first line that is none or needs a closer look.
fn payload_lines(ahead: &[u8]) -> Vec<PayloadLine<'_>> {
    lines(ahead, |line| (record_kind(line) == Some("payload")).then_some(PayloadLine(line)))
}

fn lines<'a, T>(ahead: &'a [u8], mut taken: impl FnMut(&'a [u8]) -> Option<T>) -> Vec<T> {
    let mut rest = ahead;
    let mut lines = Vec::new();
    while let Some(end) = memchr(b'\n', rest).filter(|end| *end <= LINE_BYTES_MAX)
        && let Some((line, after)) = rest.split_at_checked(end)
        && !line.contains(&b'\r')
        && let Some(line) = taken(line)
    {
        lines.push(line);
        rest = after.get(1..).unwrap_or_default();
    }
    lines
}

/// Reads every line; the results are in the order of the lines.
fn read<L: Placed + Sync, R: Send>(lines: &[L], read: impl Fn(&L) -> R + Sync) -> Vec<R> {
    let bytes: usize = lines.iter().map(Placed::bytes).sum();
    read_on(threads().min(bytes / THREAD_BYTES), lines, &read)
}

/// The threads that the machine has. Asking it means reading files, which takes longer than a short segment.
fn threads() -> usize {
    static THREADS: OnceLock<usize> = OnceLock::new();
    *THREADS.get_or_init(|| thread::available_parallelism().map_or(1, NonZero::get).min(THREADS_MAX))
}

fn read_on<L: Sync, R: Send>(threads: usize, lines: &[L], read: &(impl Fn(&L) -> R + Sync)) -> Vec<R> {
    let in_turn = |lines: &[L]| lines.iter().map(read).collect::<Vec<R>>();
    let share = lines.len().div_ceil(threads.max(1));
    let Some((mine, others)) = lines.split_at_checked(share).filter(|(_, others)| !others.is_empty()) else {
        return in_turn(lines);
    };
    thread::scope(|scope| {
        let other = thread::Builder::new().spawn_scoped(scope, || read_on(threads - 1, others, read));
        let mut results = in_turn(mine);
        match other.map(thread::ScopedJoinHandle::join) {
            Ok(Ok(more)) => results.extend(more),
            // A machine that has no thread to spare is slower, and that is all.
            Ok(Err(_)) | Err(_) => results.extend(in_turn(others)),
        }
        results
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::Hex;
    use crate::export::write_event;

    const RUN: Id = Hex([1; 16]);
    const SEGMENT: Id = Hex([2; 16]);
    const LINK: Digest = Hex([3; 32]);

    /// Lines of a chain, and their file.
    fn chain(events: u64) -> Vec<u8> {
        let mut file = Vec::new();
        let mut link = LINK;
        for seq in 1..=events {
            let kind = if seq % 7 == 0 { "no-such-kind" } else { "input" };
            let line = format!(
                r#"{{"v":1,"seq":{seq},"t":"","kind":"{kind}","actor":"a","cause":null,"payloads":{{}},"body":{{}}}}"#
            );
            link = event_link(RUN, SEGMENT, seq, link, event_hash(line.as_bytes()));
            write_event(&mut file, link, line.as_bytes()).unwrap();
        }
        file
    }

    fn told(line: &EventLine<'_>) -> Result<(u64, Digest), String> {
        line.read(RUN, SEGMENT).map(|(event, link)| (event.seq, link))
    }

    #[test]
    fn threads_read_what_one_reads() {
        let file = chain(100);
        let lines = event_lines(&file, LINK);
        let alone: Vec<_> = lines.iter().map(told).collect();
        for (number, (line, read)) in lines.iter().zip(&alone).enumerate() {
            match read {
                Ok((seq, link)) => assert_eq!((*seq, *link), (number as u64 + 1, line.link)),
                Err(message) => assert!(number % 7 == 6 && message.contains("no-such-kind"), "{message}"),
            }
        }
        for threads in 0..=9 {
            for count in [100, 99, 10, 9, 8, 2, 1, 0] {
                assert_eq!(read_on(threads, &lines[..count], &told), alone[..count]);
            }
        }
    }

    #[test]
    fn only_whole_event_lines_are_taken() {
        let file = chain(3);
        let count = |file: &[u8]| event_lines(file, LINK).len();
        assert_eq!(event_lines(&file, LINK).iter().map(Placed::bytes).sum::<usize>(), file.len());
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
        let payloads = b"{\"record\":\"payload\",1}\n{\"record\":\"payload\",2}\n{\"record\":\"end\"}\n";
        let taken = payload_lines(payloads);
        assert_eq!(taken.len(), 2);
        assert_eq!(taken.iter().map(Placed::bytes).sum::<usize>(), payloads.len() - 17);
    }
}
