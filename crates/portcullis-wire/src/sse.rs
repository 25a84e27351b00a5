//! Server-sent events, read as they arrive ([HTML, 9.2.6](https://html.spec.whatwg.org/multipage/server-sent-events.html)).
//!
//! The decoder does no I/O. Feed it what was read, in whatever pieces it came, then take events until it has none. An event
//! whose fields exceed the limit is an error, after which the stream cannot be read on: what was cut off may have been the
//! part that mattered.

/// One event with something to tell.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Event {
    /// Its kind, where the server names one; `message` otherwise.
    pub kind: Option<String>,
    /// Its data: the `data` fields, joined by newlines. Empty for an event that only sets the id.
    pub data: Vec<u8>,
    /// The last id that the stream has set, this event's or an earlier one's.
    pub id: Option<String>,
}

/// Why a stream cannot be read on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EventError {
    /// An event is longer than the limit.
    #[error("an event of the stream has more than {0} bytes")]
    TooLong(usize),
    /// A field's name, an id or a kind is not UTF-8.
    #[error("a field of the stream is not UTF-8")]
    InvalidUtf8,
}

/// Longest id and kind of an event, in bytes.
pub const NAME_BYTES_MAX: usize = 1024;

/// Reads a stream of events.
#[derive(Debug)]
pub struct EventDecoder {
    /// What was fed and not yet read as lines.
    buffer: Vec<u8>,
    /// Bytes before this were read.
    start: usize,
    /// Bytes before this hold no line end that was not read.
    scanned: usize,
    /// The last line ended with a carriage return: a newline that follows belongs to it.
    after_return: bool,
    /// Nothing was read yet, so a byte order mark may stand here.
    at_begin: bool,
    limit: usize,
    data: Option<Vec<u8>>,
    kind: Option<String>,
    id: Option<String>,
    has_new_id: bool,
    retry_ms: Option<u64>,
}

impl EventDecoder {
    /// A decoder that refuses events of more than `limit` bytes.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            buffer: Vec::new(),
            start: 0,
            scanned: 0,
            after_return: false,
            at_begin: true,
            limit,
            data: None,
            kind: None,
            id: None,
            has_new_id: false,
            retry_ms: None,
        }
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

    /// The next complete event that has data or a new id. `None`: feed more. An event that the stream's end cuts off is
    /// none.
    ///
    /// # Errors
    /// [`EventError`]; nothing can be read after it.
    pub fn next_event(&mut self) -> Result<Option<Event>, EventError> {
        while let Some(line) = self.next_line()? {
            if line.is_empty() {
                let kind = self.kind.take();
                let new_id = std::mem::take(&mut self.has_new_id);
                if let Some(data) = self.data.take().or_else(|| new_id.then(Vec::new)) {
                    return Ok(Some(Event { kind, data, id: self.id.clone() }));
                }
                continue;
            }
            self.field(&line)?;
        }
        Ok(None)
    }

    /// How long the server asks to wait before the stream is opened again, in milliseconds.
    #[must_use]
    pub fn retry_ms(&self) -> Option<u64> {
        self.retry_ms
    }

    fn next_line(&mut self) -> Result<Option<Vec<u8>>, EventError> {
        if self.after_return && self.buffer.get(self.start) == Some(&b'\n') {
            self.start += 1;
            self.scanned = self.start;
        }
        let unseen = self.buffer.get(self.scanned..).unwrap_or_default();
        let Some(end) = unseen.iter().position(|byte| matches!(byte, b'\n' | b'\r')) else {
            self.after_return &= unseen.is_empty();
            self.scanned = self.buffer.len();
            return match self.buffer.len() - self.start > self.limit {
                true => Err(EventError::TooLong(self.limit)),
                false => Ok(None),
            };
        };
        let end = self.scanned + end;
        let line = self.buffer.get(self.start..end).unwrap_or_default();
        let line = match std::mem::take(&mut self.at_begin) {
            true => line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line),
            false => line,
        };
        let line = line.to_vec();
        self.after_return = self.buffer.get(end) == Some(&b'\r');
        self.start = end + 1;
        self.scanned = self.start;
        Ok(Some(line))
    }

    fn field(&mut self, line: &[u8]) -> Result<(), EventError> {
        let (name, value) = match line.iter().position(|byte| *byte == b':') {
            Some(0) => return Ok(()),
            Some(colon) => (line.get(..colon).unwrap_or_default(), line.get(colon + 1..).unwrap_or_default()),
            None => (line, b"".as_slice()),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"data" => {
                let before = self.data.as_ref().map_or(0, |data| data.len() + 1);
                if before + value.len() > self.limit {
                    return Err(EventError::TooLong(self.limit));
                }
                match &mut self.data {
                    None => self.data = Some(value.to_vec()),
                    Some(data) => {
                        data.push(b'\n');
                        data.extend_from_slice(value);
                    }
                }
            }
            b"event" => self.kind = Some(text(value)?),
            b"id" if !value.contains(&0) => {
                self.id = Some(text(value)?).filter(|id| !id.is_empty());
                self.has_new_id = true;
            }
            b"retry" => {
                let digits =
                    std::str::from_utf8(value).ok().filter(|text| text.bytes().all(|b| b.is_ascii_digit()));
                self.retry_ms = digits.and_then(|digits| digits.parse().ok()).or(self.retry_ms);
            }
            _ => {}
        }
        Ok(())
    }
}

fn text(value: &[u8]) -> Result<String, EventError> {
    if value.len() > NAME_BYTES_MAX {
        return Err(EventError::TooLong(NAME_BYTES_MAX));
    }
    std::str::from_utf8(value).map(str::to_owned).map_err(|_| EventError::InvalidUtf8)
}

/// Writes one event: its data must hold no line end. With an id, the stream can be taken up again after it.
#[must_use]
pub fn write_event(data: &[u8], id: Option<&str>) -> Vec<u8> {
    let mut event = Vec::with_capacity(data.len() + 40);
    if let Some(id) = id {
        event.extend_from_slice(b"id: ");
        event.extend_from_slice(id.as_bytes());
        event.push(b'\n');
    }
    event.extend_from_slice(b"data: ");
    event.extend_from_slice(data);
    event.extend_from_slice(b"\n\n");
    event
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decode(pieces: &[&[u8]]) -> Result<Vec<Event>, EventError> {
        let mut decoder = EventDecoder::new(64);
        let mut events = Vec::new();
        for piece in pieces {
            decoder.feed(piece);
            while let Some(event) = decoder.next_event()? {
                events.push(event);
            }
        }
        Ok(events)
    }

    fn event(data: &str, id: Option<&str>) -> Event {
        Event { kind: None, data: data.into(), id: id.map(str::to_owned) }
    }

    #[test]
    fn the_examples_of_the_standard() {
        let stream =
            b": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n";
        assert_eq!(
            decode(&[stream]).unwrap(),
            [event("first event", Some("1")), event("second event", None), event(" third event", None)]
        );
        let stream = b"data: YHOO\ndata: +2\ndata: 10\n\n";
        assert_eq!(decode(&[stream]).unwrap(), [event("YHOO\n+2\n10", None)]);
        let stream = b"data\n\ndata\ndata\n\ndata:";
        assert_eq!(decode(&[stream]).unwrap(), [event("", None), event("\n", None)]);
        assert_eq!(
            decode(&[b"data:test\n\ndata: test\n\n"]).unwrap(),
            [event("test", None), event("test", None)]
        );
    }

    #[test]
    fn an_event_that_only_sets_the_id_is_told() {
        assert_eq!(
            decode(&[b"id: a\ndata:\n\nid: b\n\n"]).unwrap(),
            [event("", Some("a")), event("", Some("b"))]
        );
        let mut decoder = EventDecoder::new(64);
        decoder.feed(b"retry: 250\nretry: soon\nid: x\0y\n\n");
        assert_eq!(decoder.next_event(), Ok(None));
        assert_eq!((decoder.retry_ms(), decoder.id), (Some(250), None));
    }

    #[test]
    fn a_kind_is_of_one_event() {
        let events = decode(&[b"event: endpoint\ndata: /m\n\ndata: x\n\n"]).unwrap();
        assert_eq!(
            events.iter().map(|event| event.kind.as_deref()).collect::<Vec<_>>(),
            [Some("endpoint"), None]
        );
    }

    #[test]
    fn what_exceeds_the_limit_ends_the_stream() {
        let long = [b"data: ".as_slice(), &[b'x'; 65], b"\n\n"].concat();
        assert_eq!(decode(&[&long]), Err(EventError::TooLong(64)));
        let many = b"data: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\ndata: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n\n";
        assert_eq!(decode(&[many]), Err(EventError::TooLong(64)));
        assert_eq!(decode(&[&[b'y'; 65]]), Err(EventError::TooLong(64)), "a line without an end");
        assert_eq!(decode(&[b"id: \xff\n\n"]), Err(EventError::InvalidUtf8));
    }

    #[test]
    fn what_is_written_is_read() {
        let written = write_event(br#"{"a":1}"#, Some("s-1"));
        assert_eq!(decode(&[&written]).unwrap(), [event(r#"{"a":1}"#, Some("s-1"))]);
        assert_eq!(decode(&[&write_event(b"x", None)]).unwrap(), [event("x", None)]);
    }

    proptest! {
        /// However a stream is cut into pieces and whichever line ends it has, it says the same.
        #[test]
        fn pieces_and_line_ends_do_not_matter(cuts in proptest::collection::vec(0_usize..80, 0..6), ends in 0..3_usize) {
            let end = ["\n", "\r\n", "\r"][ends];
            let stream = "\u{feff}id: 7\ndata: one\ndata: two\n\n:c\n\nevent: e\ndata: three\n\n".replace('\n', end);
            let bytes = stream.as_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
            let third = Event { kind: Some("e".into()), ..event("three", Some("7")) };
            prop_assert_eq!(decode(&pieces).unwrap(), [event("one\ntwo", Some("7")), third]);
        }

        #[test]
        fn nothing_panics(pieces in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 0..6)) {
            let pieces: Vec<&[u8]> = pieces.iter().map(Vec::as_slice).collect();
            let _ = decode(&pieces);
        }
    }
}
