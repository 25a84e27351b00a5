//! What both directions share: the run, the open requests, and the two ends to write to.

use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use portcullis_core::event::OutcomeStatus;
use portcullis_core::id::ActionId;
use portcullis_session::engine::Reach;
use portcullis_wire::jsonrpc::{INTERNAL_ERROR, Id, error_response};
use portcullis_wire::mcp::V_2026_07_28;
use portcullis_wire::mcp::elicitation::asks_in_requests;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::asking::Questions;
use super::calls::{Calls, Open};
use super::downstream;
use super::gated_run::{GatedRun, GatedRunError};
use super::held::HeldCalls;
use super::to_server::ToServer;
use super::unasked::Unasked;
use crate::api::{
    ObservationAnswer, ReportOutcome, ReportTold, ReportTools, ReportedTool, ToolsAnswer, UnreadableTool,
};

/// The class of errors that say, in the gate's words, why a server has not answered.
pub(super) const SERVER_FAILED: &str = "server_failed";
/// Least and most bytes that are read at once.
const READ_BYTES_MIN: usize = 1024;
const READ_BYTES_MAX: usize = 64 * 1024;
/// How much of a line is shown in a log message, in characters.
const SHOWN_CHARS_MAX: usize = 120;

/// Writes whole lines, and waits until the other side reads them, which is the back-pressure.
pub(super) struct LineWriter(Way);

enum Way {
    /// Bytes; none once this end is closed.
    Stream(tokio::sync::Mutex<Option<Stream>>),
    /// Lines to somebody in this process.
    Channel(mpsc::Sender<(usize, Vec<u8>)>, usize),
}

struct Stream {
    writer: Box<dyn AsyncWrite + Send + Unpin>,
    /// What is left to write of a line, also of one whose writing was given up: the other side gets whole lines only.
    left: Vec<u8>,
}

impl fmt::Debug for LineWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LineWriter")
    }
}

impl LineWriter {
    pub(super) fn new(writer: impl AsyncWrite + Send + Unpin + 'static) -> Self {
        Self(Way::Stream(tokio::sync::Mutex::new(Some(Stream {
            writer: Box::new(writer),
            left: Vec::new(),
        }))))
    }

    /// Lines to somebody in this process, who is told by the number from whom they are.
    pub(super) fn channel(lines: mpsc::Sender<(usize, Vec<u8>)>, number: usize) -> Self {
        Self(Way::Channel(lines, number))
    }

    /// Writes one line and its newline. Given up halfway, the rest goes out before the next one; failed, it closes this end.
    pub(super) async fn line(&self, line: &[u8]) -> io::Result<()> {
        if line.contains(&b'\n') {
            // The other side would take it for several, of which none was judged.
            tracing::warn!("a message was dropped, because it has several lines: {}", shown(line));
            return Err(io::ErrorKind::InvalidData.into());
        }
        let slot = match &self.0 {
            Way::Stream(slot) => slot,
            Way::Channel(lines, number) => {
                let sent = lines.send((*number, line.to_vec())).await;
                return sent.map_err(|_| io::ErrorKind::BrokenPipe.into());
            }
        };
        let mut slot = slot.lock().await;
        let stream = slot.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        let wrote = stream.line(line).await;
        if wrote.is_err() {
            *slot = None;
        }
        wrote
    }

    /// Closes this end; what is written later fails.
    pub(super) async fn close(&self) {
        if let Way::Stream(slot) = &self.0
            && let Some(mut stream) = slot.lock().await.take()
        {
            let _ = stream.writer.shutdown().await;
        }
    }
}

impl Stream {
    async fn line(&mut self, line: &[u8]) -> io::Result<()> {
        self.left.reserve_exact(line.len() + 1);
        self.left.extend_from_slice(line);
        self.left.push(b'\n');
        let mut written = Written { left: &mut self.left, bytes: 0 };
        while let Some(rest @ [_, ..]) = written.left.get(written.bytes..) {
            match self.writer.write(rest).await? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                bytes => written.bytes += bytes,
            }
        }
        drop(written);
        self.writer.flush().await
    }
}

/// How far a line is written. Dropped, it leaves what is not.
struct Written<'l> {
    left: &'l mut Vec<u8>,
    bytes: usize,
}

impl Drop for Written<'_> {
    fn drop(&mut self) {
        match self.bytes == self.left.len() {
            // Thousands of ends that say nothing now hold no room for what they once said.
            true => *self.left = Vec::new(),
            false => drop(self.left.drain(..self.bytes)),
        }
    }
}

/// Reads as much at once as comes: whoever says little costs little memory, and there may be thousands of them.
#[derive(Debug, Default)]
pub(super) struct Reader {
    chunk: Vec<u8>,
    /// Bytes that were read last.
    last: usize,
}

impl Reader {
    /// What comes next; nothing at the end.
    pub(super) async fn read(&mut self, from: &mut (impl AsyncRead + Unpin)) -> io::Result<&[u8]> {
        let now = self.chunk.len();
        let size = match now {
            0 => READ_BYTES_MIN,
            _ if self.last == now => (8 * now).min(READ_BYTES_MAX),
            _ if self.last < now / 8 => READ_BYTES_MIN,
            _ => now,
        };
        if size != now {
            self.chunk = vec![0; size];
        }
        self.last = from.read(&mut self.chunk).await?;
        Ok(self.chunk.get(..self.last).unwrap_or_default())
    }
}

/// What the server says about itself.
#[derive(Debug, Clone)]
struct Server {
    name: String,
    /// Protocol revision of the session, where there is one.
    version: Option<String>,
}

#[derive(Debug)]
pub(super) struct Gate {
    pub(super) run: GatedRun,
    pub(super) calls: Calls,
    pub(super) held: HeldCalls,
    pub(super) questions: Questions,
    pub(super) unasked: Unasked,
    pub(super) to_client: LineWriter,
    pub(super) to_server: ToServer,
    command: String,
    server: Mutex<Server>,
    /// Names of servers that must not be spoken to unless they run contained.
    uncontained: Vec<String>,
    tasks: Mutex<JoinSet<()>>,
}

impl Gate {
    pub(super) fn new(
        run: GatedRun,
        command: String,
        server: String,
        to_client: LineWriter,
        to_server: ToServer,
        uncontained: Vec<String>,
    ) -> Self {
        Self {
            run,
            calls: Calls::default(),
            held: HeldCalls::default(),
            questions: Questions::default(),
            unasked: Unasked::default(),
            to_client,
            to_server,
            command,
            server: Mutex::new(Server { name: server, version: None }),
            uncontained,
            tasks: Mutex::new(JoinSet::new()),
        }
    }

    /// Runs work beside the two directions. There is at most one piece for each open request.
    pub(super) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        // What is done takes no room until it is looked at.
        tasks.spawn(Box::pin(work));
    }

    /// Waits for the work beside, and gives up on what is not done in time.
    pub(super) async fn settle(&self, patience: Duration) {
        let mut tasks = std::mem::take(&mut *self.tasks.lock().unwrap_or_else(PoisonError::into_inner));
        if tokio::time::timeout(patience, async { while tasks.join_next().await.is_some() {} }).await.is_err()
        {
            tracing::warn!("{} messages were still being processed and are dropped", tasks.len());
        }
    }

    /// Notes how the server introduced itself.
    pub(super) fn introduced(&self, name: Option<String>, version: Option<String>) {
        let mut server = self.server.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(name) = name.filter(|name| !name.is_empty()) {
            server.name = name.chars().take(SHOWN_CHARS_MAX).collect();
        }
        server.version = version;
    }

    /// Whether the bundle has a server of this name run contained, and this one does not.
    pub(super) fn should_be_contained(&self, name: Option<&str>) -> bool {
        name.is_some_and(|name| self.uncontained.iter().any(|known| known == name))
    }

    /// The command line that started the server: what it is known by across runs, whatever it calls itself.
    pub(super) fn command(&self) -> &str {
        &self.command
    }

    /// The server's name: its own word for itself, or the command that started it.
    pub(super) fn server_name(&self) -> String {
        self.server.lock().unwrap_or_else(PoisonError::into_inner).name.clone()
    }

    /// Whether results need `resultType`, by the revision of the request or else of the session. Revisions are
    /// dates, so they compare as text.
    pub(super) fn wants_result_type(&self, request: Option<&str>) -> bool {
        let server = self.server.lock().unwrap_or_else(PoisonError::into_inner);
        request.or(server.version.as_deref()).is_some_and(|version| version >= V_2026_07_28)
    }

    /// Whether the session is of a revision in which a server asks the client by a request.
    pub(super) fn asks_in_requests(&self) -> bool {
        let server = self.server.lock().unwrap_or_else(PoisonError::into_inner);
        server.version.as_deref().is_some_and(asks_in_requests)
    }

    /// Reports an action that has no result to judge. What cannot be reported is closed by the daemon when the
    /// run is.
    pub(super) async fn report(&self, action: ActionId, status: OutcomeStatus) {
        let outcome = ReportOutcome::of(action, status, None);
        if let Err(error) = self.run.outcome(outcome).await {
            tracing::warn!("the outcome of action {action} could not be recorded: {error}");
        }
    }

    /// Reports a list of tools; returns the names that the client must not see, and those of them that changed.
    pub(super) async fn report_tools(
        &self,
        tools: Vec<ReportedTool>,
        unreadable: Vec<UnreadableTool>,
    ) -> Result<(Vec<String>, Vec<String>), GatedRunError> {
        let report = ReportTools {
            server: self.server_name(),
            command: Some(self.command.clone()),
            tools,
            unreadable,
        };
        let ToolsAnswer { mut disabled, changed, .. } = self.run.tools(report).await?;
        disabled.extend(self.run.disabled_tools());
        Ok((disabled, changed))
    }

    /// Reports what the server says other than answers to calls.
    pub(super) async fn told(&self, content: String) -> Result<ObservationAnswer, GatedRunError> {
        let told = ReportTold { server: self.command.clone(), content, reach: Reach::Replace };
        self.run.told(told).await
    }

    /// A request that the server was sent, or was to be sent, gets no answer from it; `refused` where it is certain that
    /// the server did not take it. Unless it can be asked in another way, the client is told why, and an action is recorded
    /// with what is known of it.
    pub(super) async fn lost(self: &Arc<Self>, id: &Id, status: OutcomeStatus, refused: bool, why: &str) {
        let turn = self.to_server.lost(id, refused, why);
        downstream::take(self, turn, status, why).await;
    }

    /// The client is told that a request has no answer.
    pub(super) async fn give_up(&self, id: &Id, status: OutcomeStatus, why: &str) {
        let Some(open) = self.calls.answered(id) else { return };
        let consequence = match &open {
            Open::Executing { action, .. } => {
                self.report(*action, status).await;
                match status {
                    OutcomeStatus::NotExecuted => "; the call was not executed",
                    OutcomeStatus::Error => "; the server says that it did not take the call",
                    _ => "; whether the tool acted is not known",
                }
            }
            _ => "",
        };
        let message = format!("the server `{}` {why}{consequence}", self.command);
        tracing::warn!("{message}");
        let data = json!({"class": SERVER_FAILED});
        let line = error_response(Some(open.id_raw()), INTERNAL_ERROR, &message, Some(&data));
        if self.to_client.line(&line).await.is_err() {
            tracing::debug!("the client has gone and did not receive: {message}");
        }
    }

    /// Ends everything that is still open: actions that the server has become `unknown`, and where `why` says
    /// what happened, the client is told.
    pub(super) async fn abandon(&self, why: Option<&str>) {
        let (open, tasks) = self.calls.drain();
        for (action, status) in tasks {
            self.report(action, status).await;
        }
        for open in open {
            let consequence = match &open {
                Open::Executing { action, .. } => {
                    self.report(*action, OutcomeStatus::Unknown).await;
                    "; whether the tool acted is not known"
                }
                Open::Waiting(..) => "; the call was not executed",
                _ => "",
            };
            if let Some(why) = why {
                let message = format!("{why}{consequence}");
                let data = json!({"class": "server_ended"});
                let line = error_response(Some(open.id_raw()), INTERNAL_ERROR, &message, Some(&data));
                if self.to_client.line(&line).await.is_err() {
                    tracing::debug!("the client has gone and did not receive: {message}");
                }
            }
        }
    }
}

/// Whether a line says nothing. Other white space than this is not JSON's, and ends a line to some readers.
pub(super) fn is_blank(line: &[u8]) -> bool {
    line.strip_suffix(b"\r").unwrap_or(line).iter().all(|byte| matches!(byte, b' ' | b'\t'))
}

/// The beginning of a line, for a log message.
pub(super) fn shown(line: &[u8]) -> String {
    let start = line.get(..SHOWN_CHARS_MAX * 4).unwrap_or(line);
    String::from_utf8_lossy(start).chars().take(SHOWN_CHARS_MAX).flat_map(char::escape_debug).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn much_is_read_in_large_pieces_and_little_in_small_ones() {
        let text: Vec<u8> = (0..300_000_u32).map(|number| (number % 251) as u8).collect();
        let (mut read, mut reader, mut from) = (Vec::new(), Reader::default(), text.as_slice());
        let mut sizes = Vec::new();
        loop {
            let piece = reader.read(&mut from).await.unwrap();
            if piece.is_empty() {
                break;
            }
            read.extend_from_slice(piece);
            sizes.push(reader.chunk.len());
        }
        assert_eq!(read, text);
        assert_eq!(sizes[..4], [1_024, 8_192, READ_BYTES_MAX, READ_BYTES_MAX]);
        assert_eq!(reader.read(&mut b"x".as_slice()).await.unwrap(), b"x");
        reader.read(&mut b"y".as_slice()).await.unwrap();
        assert_eq!(reader.chunk.len(), READ_BYTES_MIN);
    }

    #[tokio::test]
    async fn a_line_is_whole_however_long_it_is() {
        for length in [0, 10, 64 << 10, 200_000] {
            let (near, mut far) = tokio::io::duplex(1 << 20);
            let (writer, line) = (LineWriter::new(near), vec![b'x'; length]);
            writer.line(&line).await.unwrap();
            writer.close().await;
            let mut written = Vec::new();
            far.read_to_end(&mut written).await.unwrap();
            assert_eq!(written, [&line[..], b"\n"].concat());
        }
    }

    #[tokio::test]
    async fn a_line_that_is_given_up_halfway_is_whole_before_the_next_one() {
        let (near, mut far) = tokio::io::duplex(4);
        let writer = Arc::new(LineWriter::new(near));
        let given_up = tokio::time::timeout(Duration::from_millis(20), writer.line(b"a longer line")).await;
        assert!(given_up.is_err());
        let next = Arc::clone(&writer);
        let next = tokio::spawn(async move {
            next.line(b"next").await.unwrap();
            next.close().await;
        });
        let mut written = String::new();
        far.read_to_string(&mut written).await.unwrap();
        next.await.unwrap();
        assert_eq!(written, "a longer line\nnext\n");
    }
}
