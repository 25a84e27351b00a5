//! Cassettes: what a model's server answered, recorded once and replayed byte for byte ever after.
//!
//! Tests, examples and audits of a repair run without a network and give the same result each time. An exchange is
//! found by its request's body, byte for byte; a request that was made several times gets its answers in the order in
//! which they were recorded. What is not on the cassette is an error, never a call. Refusals, time-outs and answers
//! that broke off are recorded too, so that retries replay. The format is `specs/cassette.md`.

use std::collections::{HashMap, VecDeque};
use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::client::{Head, Sink, Transport};
use crate::clock::{BoxFuture, Clock, VirtualClock};
use crate::limits::{MAX_CASSETTE_BYTES, MAX_EXCHANGES};
use crate::model::ModelError;

/// The version of the format.
const VERSION: u32 = 1;

/// Why a cassette cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CassetteError {
    /// The file.
    #[error("cannot use the cassette `{}`: {source}", path.display())]
    File {
        /// Its path.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A line.
    #[error("line {line} of the cassette `{}` cannot be read: {why}; record it again", path.display())]
    Line {
        /// The cassette.
        path: PathBuf,
        /// Which line, from 1.
        line: usize,
        /// Why.
        why: String,
    },
    /// It is too large.
    #[error("the cassette `{}` has more than {what}; record in parts", path.display())]
    TooLarge {
        /// The cassette.
        path: PathBuf,
        /// Which limit.
        what: String,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    cassette: u32,
}

/// One request and what came of it: a line of the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Exchange {
    request: String,
    /// 0 where no head came.
    status: u16,
    media_type: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    retry_after: Option<String>,
    body: Bytes,
    end: End,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    why: String,
    ms: u64,
}

/// Bytes: as text where they are UTF-8, else in hexadecimal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Bytes {
    Text(String),
    Hex(String),
}

impl Bytes {
    fn of(bytes: Vec<u8>) -> Self {
        match String::from_utf8(bytes) {
            Ok(text) => Self::Text(text),
            Err(error) => Self::Hex(error.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect()),
        }
    }

    /// The bytes; none where the digits are none.
    fn bytes(&self) -> Option<Vec<u8>> {
        match self {
            Self::Text(text) => Some(text.clone().into_bytes()),
            Self::Hex(digits) => {
                let digit =
                    |byte: &u8| char::from(*byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
                let pair = |pair: &[u8]| match pair {
                    [high, low] => Some(digit(high)? << 4 | digit(low)?),
                    _ => None,
                };
                digits.as_bytes().chunks(2).map(pair).collect()
            }
        }
    }
}

/// How the transport ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum End {
    Complete,
    Broken,
    TimedOut,
    Unreachable,
}

impl End {
    /// How it ended, and in which words; none for what has nothing to do with the server.
    fn of(result: &Result<(), ModelError>) -> Option<(Self, String)> {
        match result {
            Ok(()) => Some((Self::Complete, String::new())),
            Err(ModelError::Broken(why)) => Some((Self::Broken, why.clone())),
            Err(ModelError::TimedOut(why)) => Some((Self::TimedOut, why.clone())),
            Err(ModelError::Connect(why)) => Some((Self::Unreachable, why.clone())),
            Err(_) => None,
        }
    }

    fn result(self, why: String) -> Result<(), ModelError> {
        match self {
            Self::Complete => Ok(()),
            Self::Broken => Err(ModelError::Broken(why)),
            Self::TimedOut => Err(ModelError::TimedOut(why)),
            Self::Unreachable => Err(ModelError::Connect(why)),
        }
    }
}

/// A transport that writes down what passes through another one.
///
/// What may hold a secret is not written: answers with status 401 or 403, and any that repeats the key, which is an error.
#[derive(Debug)]
pub struct Recorder {
    inner: Arc<dyn Transport>,
    clock: Arc<dyn Clock>,
    path: PathBuf,
    tape: Mutex<Tape>,
}

#[derive(Debug)]
struct Tape {
    file: File,
    bytes: usize,
    exchanges: usize,
}

impl Recorder {
    /// Starts a new cassette. One that exists is not touched: recordings are not mixed.
    ///
    /// # Errors
    /// The file exists, or cannot be written.
    pub fn create(
        path: &Path,
        inner: Arc<dyn Transport>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, CassetteError> {
        let failed = |source| CassetteError::File { path: path.to_owned(), source };
        let mut file = OpenOptions::new().write(true).create_new(true).open(path).map_err(failed)?;
        let line = format!("{{\"cassette\":{VERSION}}}\n");
        file.write_all(line.as_bytes()).map_err(failed)?;
        let tape = Mutex::new(Tape { file, bytes: line.len(), exchanges: 0 });
        Ok(Self { inner, clock, path: path.to_owned(), tape })
    }

    fn write(&self, exchange: &Exchange) -> Result<(), ModelError> {
        let path = self.path.display();
        let failed =
            |why: String| ModelError::Cassette(format!("cannot record on the cassette `{path}`: {why}"));
        let mut line = serde_json::to_string(exchange).map_err(|error| failed(error.to_string()))?;
        line.push('\n');
        if self.inner.is_secret(line.as_bytes()) {
            return Err(failed("the server's answer repeats the key".to_owned()));
        }
        let mut tape = self.tape.lock().unwrap_or_else(PoisonError::into_inner);
        if tape.exchanges >= MAX_EXCHANGES || tape.bytes.saturating_add(line.len()) > MAX_CASSETTE_BYTES {
            return Err(failed(format!("it is full: {MAX_EXCHANGES} exchanges, {MAX_CASSETTE_BYTES} bytes")));
        }
        tape.file.write_all(line.as_bytes()).map_err(|error| failed(error.to_string()))?;
        tape.exchanges += 1;
        tape.bytes += line.len();
        Ok(())
    }
}

impl Transport for Recorder {
    fn post<'a>(
        &'a self,
        body: &'a str,
        time_left: Option<Duration>,
        sink: &'a mut dyn Sink,
    ) -> BoxFuture<'a, Result<(), ModelError>> {
        Box::pin(async move {
            let start = self.clock.now();
            let mut tee = Tee { head: None, bytes: Vec::new(), sink };
            let result = self.inner.post(body, time_left, &mut tee).await;
            let Some((end, why)) = End::of(&result) else { return result };
            let head = tee.head.unwrap_or(Head { status: 0, media_type: String::new(), retry_after: None });
            if !matches!(head.status, 401 | 403) {
                let elapsed = self.clock.now().saturating_sub(start);
                self.write(&Exchange {
                    request: body.to_owned(),
                    status: head.status,
                    media_type: head.media_type,
                    retry_after: head.retry_after,
                    body: Bytes::of(tee.bytes),
                    end,
                    why,
                    ms: u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
                })?;
            }
            result
        })
    }

    fn is_secret(&self, bytes: &[u8]) -> bool {
        self.inner.is_secret(bytes)
    }
}

/// Passes on what it keeps.
struct Tee<'a> {
    head: Option<Head>,
    bytes: Vec<u8>,
    sink: &'a mut dyn Sink,
}

impl Sink for Tee<'_> {
    fn head(&mut self, head: &Head) {
        self.head = Some(head.clone());
        self.sink.head(head);
    }

    fn bytes(&mut self, bytes: &[u8]) -> ControlFlow<()> {
        self.bytes.extend_from_slice(bytes);
        self.sink.bytes(bytes)
    }
}

/// A transport that answers from a cassette, and only from it. Its clock moves on by what the exchanges took.
#[derive(Debug)]
pub struct Replay {
    path: PathBuf,
    clock: Arc<VirtualClock>,
    answers: Mutex<HashMap<String, VecDeque<Exchange>>>,
}

impl Replay {
    /// Reads a cassette.
    ///
    /// # Errors
    /// The file cannot be read, is too large, or is no cassette of this version.
    pub fn open(path: &Path) -> Result<Self, CassetteError> {
        let failed = |source| CassetteError::File { path: path.to_owned(), source };
        let wrong = |line, why: String| CassetteError::Line { path: path.to_owned(), line, why };
        let large = |what| CassetteError::TooLarge { path: path.to_owned(), what };
        let file = File::open(path).map_err(failed)?;
        let mut lines = BufReader::new(file.take(MAX_CASSETTE_BYTES as u64 + 1));
        let mut answers: HashMap<String, VecDeque<Exchange>> = HashMap::new();
        let mut text = String::new();
        let (mut line, mut bytes) = (0, 0);
        loop {
            text.clear();
            let read = lines.read_line(&mut text).map_err(failed)?;
            if read == 0 {
                break;
            }
            (line, bytes) = (line + 1, bytes + read);
            if bytes > MAX_CASSETTE_BYTES {
                return Err(large(format!("{MAX_CASSETTE_BYTES} bytes")));
            }
            if line > MAX_EXCHANGES + 1 {
                return Err(large(format!("{MAX_EXCHANGES} exchanges")));
            }
            if line == 1 {
                let header: Header =
                    serde_json::from_str(&text).map_err(|error| wrong(1, error.to_string()))?;
                if header.cassette != VERSION {
                    return Err(wrong(1, format!("version {} is not {VERSION}", header.cassette)));
                }
                continue;
            }
            if !text.ends_with('\n') {
                return Err(wrong(line, "it is cut off".to_owned()));
            }
            let exchange: Exchange =
                serde_json::from_str(&text).map_err(|error| wrong(line, error.to_string()))?;
            if exchange.body.bytes().is_none() {
                return Err(wrong(line, "the body's hexadecimal digits are none".to_owned()));
            }
            answers.entry(exchange.request.clone()).or_default().push_back(exchange);
        }
        if line == 0 {
            return Err(wrong(1, "the file is empty".to_owned()));
        }
        Ok(Self { path: path.to_owned(), clock: Arc::new(VirtualClock::new()), answers: Mutex::new(answers) })
    }

    /// The clock that goes with it: give it to the client, so that waits take no time.
    #[must_use]
    pub fn clock(&self) -> Arc<VirtualClock> {
        Arc::clone(&self.clock)
    }

    /// Exchanges that nobody asked for yet. A test that replays all of a recording leaves none.
    #[must_use]
    pub fn left(&self) -> usize {
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        answers.values().map(VecDeque::len).sum()
    }

    fn take(&self, request: &str) -> Result<Exchange, ModelError> {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let known = answers.get_mut(request);
        let why = if known.is_some() { "no more answers to" } else { "no answer to" };
        known.and_then(VecDeque::pop_front).ok_or_else(|| {
            let path = self.path.display();
            ModelError::Cassette(format!("the cassette `{path}` has {why} this request; record it again"))
        })
    }
}

impl Transport for Replay {
    fn post<'a>(
        &'a self,
        body: &'a str,
        _: Option<Duration>,
        sink: &'a mut dyn Sink,
    ) -> BoxFuture<'a, Result<(), ModelError>> {
        let mut play = move || {
            let exchange = self.take(body)?;
            self.clock.advance(Duration::from_millis(exchange.ms));
            if exchange.status != 0 {
                sink.head(&Head {
                    status: exchange.status,
                    media_type: exchange.media_type,
                    retry_after: exchange.retry_after,
                });
                // A reader that has enough said so when it was recorded, too.
                let _ = sink.bytes(&exchange.body.bytes().unwrap_or_default());
            }
            exchange.end.result(exchange.why)
        };
        Box::pin(std::future::ready(play()))
    }
}
