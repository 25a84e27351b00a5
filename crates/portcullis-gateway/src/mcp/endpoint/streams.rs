//! Streams of messages to one client.
//!
//! Each request has a stream, which ends with its response; the server's own messages go to one of their own. Where a
//! client reads a stream by events with ids, and the connection breaks, the events behind an id can be had again (up to
//! 2025-11-25). What is kept for that is bounded: the oldest goes first.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::str::FromStr;

use tokio::sync::mpsc;

/// The stream of messages that belong to no request.
pub(crate) const STANDALONE: u64 = 0;
/// Messages that wait for a client to read them, for each stream, besides the last one, which always has room.
const WAITING_MAX: usize = 64;
/// What is kept of one client's streams, in events and in bytes.
const KEPT_MAX: usize = 256;
const KEPT_BYTES_MAX: usize = 256 * 1024;

/// The place of an event in a client's streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EventId {
    stream: u64,
    number: u64,
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.stream, self.number)
    }
}

impl FromStr for EventId {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (stream, number) = text.split_once('-').ok_or(())?;
        let number_of = |text: &str| match text.bytes().all(|byte| byte.is_ascii_digit()) {
            true => text.parse().map_err(|_| ()),
            false => Err(()),
        };
        Ok(Self { stream: number_of(stream)?, number: number_of(number)? })
    }
}

/// A message for the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) id: EventId,
    pub(crate) line: Vec<u8>,
    /// The stream ends with it.
    pub(crate) last: bool,
}

/// A stream, read by the client.
#[derive(Debug)]
pub(crate) struct Reading {
    pub(crate) stream: u64,
    pub(crate) events: mpsc::Receiver<Event>,
}

#[derive(Debug, Default)]
pub(super) struct Streams {
    streams: u64,
    events: u64,
    open: HashMap<u64, Stream>,
    kept: VecDeque<Kept>,
    kept_bytes: usize,
}

#[derive(Debug, Default)]
struct Stream {
    reader: Option<mpsc::Sender<Event>>,
    /// The client was given ids, and can come back with one.
    resumable: bool,
    /// It was waited for in vain: it misses what it has no room for.
    is_slow: bool,
}

impl Stream {
    fn read_by(reader: mpsc::Sender<Event>, resumable: bool) -> Self {
        Self { reader: Some(reader), resumable, is_slow: false }
    }

    /// There is room for another message besides the last one.
    fn has_room(&self) -> bool {
        self.reader.as_ref().is_none_or(|reader| reader.is_closed() || reader.capacity() > 1)
    }
}

#[derive(Debug)]
struct Kept {
    event: Event,
    sent: bool,
}

impl Streams {
    /// A stream for a request.
    pub(super) fn open(&mut self) -> Reading {
        self.streams += 1;
        let (reader, events) = mpsc::channel(WAITING_MAX + 1);
        self.open.insert(self.streams, Stream::read_by(reader, false));
        Reading { stream: self.streams, events }
    }

    /// The client reads a stream by events with ids from now on.
    pub(super) fn has_ids(&mut self, stream: u64) {
        if let Some(stream) = self.open.get_mut(&stream) {
            stream.resumable = true;
        }
    }

    /// The place from which a stream could be taken up before it has told anything.
    pub(super) fn start_of(&mut self, stream: u64) -> EventId {
        self.events += 1;
        EventId { stream, number: self.events }
    }

    /// Whether somebody reads any stream.
    pub(super) fn are_read(&self) -> bool {
        self.open.values().any(|stream| stream.reader.as_ref().is_some_and(|reader| !reader.is_closed()))
    }

    /// The stream of messages that belong to no request, or, with an id, the rest of the stream behind it. Whoever read it
    /// before reads it no longer. `None`: there is no such stream any more.
    pub(super) fn read(&mut self, after: Option<EventId>) -> Option<Reading> {
        let stream = after.map_or(STANDALONE, |after| after.stream);
        let is_kept = self.kept.iter().any(|kept| kept.event.id.stream == stream);
        if stream != STANDALONE && !is_kept && !self.open.contains_key(&stream) {
            return None;
        }
        let (reader, events) = mpsc::channel(WAITING_MAX.max(KEPT_MAX) + 1);
        let mut ended = false;
        for kept in self.kept.iter_mut().filter(|kept| kept.event.id.stream == stream) {
            let wanted = after.map_or(!kept.sent, |after| kept.event.id.number > after.number);
            if wanted && reader.try_send(kept.event.clone()).is_ok() {
                kept.sent = true;
                ended |= kept.event.last;
            }
        }
        if !ended && (stream == STANDALONE || self.open.contains_key(&stream)) {
            self.open.insert(stream, Stream::read_by(reader, true));
        }
        Some(Reading { stream, events })
    }

    /// Puts a message into a stream, the last one or not.
    pub(super) fn put(&mut self, stream: u64, line: Vec<u8>, last: bool) {
        self.events += 1;
        let event = Event { id: EventId { stream, number: self.events }, line, last };
        let to = self.open.get_mut(&stream);
        let resumable = to.as_ref().map_or(stream == STANDALONE, |to| to.resumable);
        let mut sent = false;
        if let Some(to) = to
            && let Some(reader) = &to.reader
        {
            let has_room = last || to.has_room();
            sent = has_room && reader.try_send(event.clone()).is_ok();
            to.is_slow &= !sent;
            if !sent && (has_room || to.resumable) {
                // It has gone, or does not keep up: it can come back, where it has ids. Elsewhere it misses this message.
                to.reader = None;
            }
        }
        if last {
            self.open.remove(&stream);
        }
        if resumable {
            self.keep(Kept { event, sent });
        }
    }

    /// Whether somebody who reads is worth waiting for, as there is no room left in a stream.
    pub(super) fn are_full(&self) -> bool {
        self.open.values().any(|stream| !stream.is_slow && !stream.has_room())
    }

    /// Those who read streams without room are waited for no longer, until they have read something.
    pub(super) fn give_up_waiting(&mut self) {
        for stream in self.open.values_mut().filter(|stream| !stream.has_room()) {
            tracing::warn!("an MCP client does not keep up with what a server says, and misses some of it");
            stream.is_slow = true;
        }
    }

    /// A stream that is no longer read, and whose request is given up.
    pub(super) fn drop_stream(&mut self, stream: u64) {
        self.open.remove(&stream);
    }

    fn keep(&mut self, kept: Kept) {
        self.kept_bytes += kept.event.line.len();
        self.kept.push_back(kept);
        while self.kept.len() > KEPT_MAX || self.kept_bytes > KEPT_BYTES_MAX {
            let Some(oldest) = self.kept.pop_front() else { break };
            self.kept_bytes -= oldest.event.line.len();
            if !oldest.sent {
                tracing::warn!("a message to an MCP client was dropped: it reads none of its streams");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(reading: &mut Reading) -> Vec<String> {
        let mut lines = Vec::new();
        while let Ok(event) = reading.events.try_recv() {
            lines.push(String::from_utf8(event.line).unwrap());
        }
        lines
    }

    #[test]
    fn a_stream_can_be_taken_up_behind_an_event() {
        let mut streams = Streams::default();
        let mut first = streams.open();
        streams.has_ids(first.stream);
        streams.put(first.stream, b"a".to_vec(), false);
        streams.put(first.stream, b"b".to_vec(), false);
        let event = first.events.try_recv().unwrap();
        drop(first);
        streams.put(event.id.stream, b"c".to_vec(), false);
        let mut other = streams.open();
        streams.put(other.stream, b"of another request".to_vec(), true);
        assert_eq!(read(&mut other), ["of another request"]);
        let id: EventId = event.id.to_string().parse().unwrap();
        let mut again = streams.read(Some(id)).unwrap();
        streams.put(event.id.stream, b"d".to_vec(), true);
        assert_eq!(read(&mut again), ["b", "c", "d"]);
        let mut whole = streams.read(Some(id)).unwrap();
        assert_eq!(read(&mut whole), ["b", "c", "d"], "also when it has ended");
        assert!(whole.events.try_recv() == Err(mpsc::error::TryRecvError::Disconnected));
        assert!(streams.read(Some("77-1".parse().unwrap())).is_none());
        for wrong in ["", "1", "-", "1-", "+1-2", "1-2-3", "a-b"] {
            assert!(wrong.parse::<EventId>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn messages_of_no_request_wait_for_a_reader() {
        let mut streams = Streams::default();
        streams.put(STANDALONE, b"early".to_vec(), false);
        let mut reading = streams.read(None).unwrap();
        streams.put(STANDALONE, b"later".to_vec(), false);
        assert_eq!(read(&mut reading), ["early", "later"]);
        let mut second = streams.read(None).unwrap();
        streams.put(STANDALONE, b"once".to_vec(), false);
        assert_eq!((read(&mut second), read(&mut reading)), (vec!["once".to_owned()], vec![]));
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut streams = Streams::default();
        for _ in 0..2 * KEPT_MAX {
            streams.put(STANDALONE, vec![b'x'; 2048], false);
        }
        assert!(streams.kept.len() <= KEPT_MAX && streams.kept_bytes <= KEPT_BYTES_MAX);
        let mut slow = streams.open();
        assert!(!streams.are_full());
        for _ in 0..=WAITING_MAX {
            streams.put(slow.stream, b"x".to_vec(), false);
        }
        assert_eq!(slow.events.len(), WAITING_MAX, "who does not keep up misses something");
        streams.put(slow.stream, b"response".to_vec(), true);
        let told: Vec<_> = std::iter::from_fn(|| slow.events.try_recv().ok()).collect();
        assert!(
            told.last().is_some_and(|event| event.last && event.line == b"response"),
            "but not the last word"
        );
        let mut cut = streams.open();
        streams.has_ids(cut.stream);
        for _ in 0..=WAITING_MAX {
            streams.put(cut.stream, b"x".to_vec(), false);
        }
        let read = read(&mut cut).len();
        assert_eq!((read, cut.events.is_closed()), (WAITING_MAX, true), "who can come back is cut off");
    }
}
