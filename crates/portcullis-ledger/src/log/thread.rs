//! The thread that keeps the log up with the ledger.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use portcullis_core::id::SegmentId;
use portcullis_proof::log::TreeHead;
use tokio::sync::oneshot;

use super::Log;
use super::error::LogError;
use super::evidence::LogReader;
use super::folder::LogPlaces;
use super::sequencer::Round;

/// How often the ledger is read.
pub const ROUND_EVERY: Duration = Duration::from_millis(500);
/// How long to wait after a failure before the next try, at most.
const BACK_OFF_MAX: Duration = Duration::from_secs(60);

/// The most segments that wait for their first head at a time.
const WAITING_MAX: usize = 1024;

/// A thread with the log of a store; dropping it makes one last round, so that what has ended is anchored.
#[derive(Debug)]
pub struct LogThread {
    messages: SyncSender<Message>,
    thread: Option<JoinHandle<()>>,
}

/// Asks the thread for the first heads of segments.
#[derive(Debug, Clone)]
pub struct Anchor {
    messages: SyncSender<Message>,
}

#[derive(Debug)]
enum Message {
    Opened(Wanted),
    Stop,
}

/// A segment whose first head someone waits for.
#[derive(Debug)]
struct Wanted {
    segment: SegmentId,
    answer: oneshot::Sender<()>,
}

/// A segment is not in the log, and it cannot be said when it will be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the log does not accept the run; `portcullis log status` and the daemon's log show why")]
pub struct NotAnchored;

impl Anchor {
    /// Waits until a segment, which has an event, is in the published log. How long is up to the caller.
    ///
    /// # Errors
    /// [`NotAnchored`] when the thread has ended, or too many wait.
    pub async fn opened(&self, segment: SegmentId) -> Result<(), NotAnchored> {
        let (answer, answered) = oneshot::channel();
        match self.messages.try_send(Message::Opened(Wanted { segment, answer })) {
            Ok(()) => answered.await.map_err(|_| NotAnchored),
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => Err(NotAnchored),
        }
    }
}

impl LogThread {
    /// Starts the thread. `told` hears what each round that did something did, and each failure once until it passes;
    /// after each round `after` may go on with the log, for example ask witnesses. It is also run on a log that was just
    /// opened, before anything is signed, and as long as the log waits: what it then refuses is not signed.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn start(
        places: LogPlaces,
        told: impl Fn(Result<Round, &LogError>) + Send + 'static,
        after: impl FnMut(&mut Log) -> Result<(), LogError> + Send + 'static,
    ) -> Result<LogThread, LogError> {
        let (messages, heard) = sync_channel(WAITING_MAX);
        let folder = places.database.clone();
        let thread = std::thread::Builder::new()
            .name("ledger-log".to_owned())
            .spawn(move || run(&places, &told, after, &heard))
            .map_err(|error| LogError::io(&folder, "start the log of", &error))?;
        Ok(LogThread { messages, thread: Some(thread) })
    }

    /// A handle for callers that wait for first heads.
    #[must_use]
    pub fn anchor(&self) -> Anchor {
        Anchor { messages: self.messages.clone() }
    }
}

impl Drop for LogThread {
    fn drop(&mut self) {
        // A thread that has ended hears nothing any more.
        let _ = self.messages.send(Message::Stop);
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has ended as well.
            let _ = thread.join();
        }
    }
}

fn run(
    places: &LogPlaces,
    told: &impl Fn(Result<Round, &LogError>),
    mut after: impl FnMut(&mut Log) -> Result<(), LogError>,
    heard: &Receiver<Message>,
) {
    let mut log: Option<Log> = None;
    // How this process left the log when it had to open it again.
    let mut left = None;
    let mut failure: Option<LogError> = None;
    let mut wanted = Vec::new();
    let mut wait = ROUND_EVERY;
    loop {
        let last = listen(heard, wait, &mut wanted);
        let stepped = step(places, &mut log, left, &mut after);
        // Anyone who waits for the log does not wait for what comes after it.
        answer(places, &mut wanted);
        let stepped = stepped.and_then(|round| log.as_mut().map_or(Ok(()), &mut after).map(|()| round));
        match stepped {
            Ok(round) => {
                let passed = failure.take().is_some();
                if passed || round.leaves > 0 {
                    told(Ok(round));
                }
                wait = ROUND_EVERY;
            }
            Err(error) => {
                match &error {
                    // Waiting for witnesses is nothing that opening again would mend.
                    LogError::Unconfirmed(_) => {}
                    // A log that someone contradicted needs another's word, however it was left.
                    LogError::RolledBack { .. } | LogError::Forked { .. } => (log, left) = (None, None),
                    // Opening again is recovery, whatever went wrong.
                    _ => left = log.take().map_or(left, |log| log.vouched()),
                }
                if failure.as_ref() != Some(&error) {
                    told(Err(&error));
                }
                wait = match &error {
                    // Whom to ask when, the witnesses' own back-off says.
                    LogError::Unconfirmed(_) => ROUND_EVERY,
                    error if error.is_passing() => (wait * 2).min(BACK_OFF_MAX),
                    _ => BACK_OFF_MAX,
                };
                failure = Some(error);
            }
        }
        if last {
            return;
        }
    }
}

/// Waits for the next round, or for a request for an earlier one. Returns whether it is the last.
fn listen(heard: &Receiver<Message>, wait: Duration, wanted: &mut Vec<Wanted>) -> bool {
    let mut next = heard.recv_timeout(wait);
    loop {
        match next {
            Ok(Message::Opened(segment)) => wanted.push(segment),
            Ok(Message::Stop) | Err(RecvTimeoutError::Disconnected) => return true,
            Err(RecvTimeoutError::Timeout) => return false,
        }
        // Anyone who else asked meanwhile is served by the same round.
        next = heard.recv_timeout(Duration::ZERO);
    }
}

/// Answers those whose segment is in the published log, whichever process put it there, and forgets those who left.
fn answer(places: &LogPlaces, wanted: &mut Vec<Wanted>) {
    wanted.retain(|wanted| !wanted.answer.is_closed());
    if wanted.is_empty() {
        return;
    }
    let Ok(log) = LogReader::open(places) else { return };
    for Wanted { segment, answer } in std::mem::take(wanted) {
        if log.is_opened(segment).unwrap_or(false) {
            // Anyone who asked may have gone.
            let _ = answer.send(());
        } else {
            wanted.push(Wanted { segment, answer });
        }
    }
}

fn step(
    places: &LogPlaces,
    log: &mut Option<Log>,
    left: Option<TreeHead>,
    after: &mut impl FnMut(&mut Log) -> Result<(), LogError>,
) -> Result<Round, LogError> {
    let (open, found) = match log {
        Some(open) => (open, false),
        None => {
            let open = log.insert(Log::open(places)?);
            if let Some(left) = left {
                open.resume(left)?;
            }
            (open, true)
        }
    };
    if found || open.waits().is_some() {
        after(open)?;
    }
    open.round()
}
