//! The thread that keeps the log up with the ledger.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use super::Log;
use super::error::LogError;
use super::folder::LogPlaces;
use super::sequencer::Round;

/// How often the ledger is looked at.
pub const ROUND_EVERY: Duration = Duration::from_millis(500);
/// How long to wait after a failure before the next try, at most.
const BACK_OFF_MAX: Duration = Duration::from_secs(60);

/// A thread with the log of a store; dropping it makes one last round, so that what has ended is anchored.
#[derive(Debug)]
pub struct LogThread {
    stop: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl LogThread {
    /// Starts the thread. `told` hears what each round that did something did, and each failure once until it passes;
    /// after each round `after` may go on with the log, for example ask witnesses. It is also run on a log that was just
    /// opened, before anything is signed: what it then refuses is not signed.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn start(
        places: LogPlaces,
        told: impl Fn(Result<Round, &LogError>) + Send + 'static,
        after: impl FnMut(&mut Log) -> Result<(), LogError> + Send + 'static,
    ) -> Result<LogThread, LogError> {
        let (stop, stopped) = sync_channel(0);
        let folder = places.ledger.clone();
        let thread = std::thread::Builder::new()
            .name("ledger-log".to_owned())
            .spawn(move || run(&places, &told, after, &stopped))
            .map_err(|error| LogError::io(&folder, "start the log of", &error))?;
        Ok(LogThread { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for LogThread {
    fn drop(&mut self) {
        drop(self.stop.take());
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
    stopped: &Receiver<()>,
) {
    let mut log: Option<Log> = None;
    let mut failure: Option<LogError> = None;
    let mut wait = ROUND_EVERY;
    loop {
        let last = stopped.recv_timeout(wait) != Err(RecvTimeoutError::Timeout);
        match step(places, &mut log, &mut after) {
            Ok(round) => {
                if round.leaves > 0 || failure.take().is_some() {
                    told(Ok(round));
                }
                wait = ROUND_EVERY;
            }
            Err(error) => {
                // Opening again is recovery, whatever went wrong.
                log = None;
                if failure.as_ref() != Some(&error) {
                    told(Err(&error));
                }
                let again = if error.is_passing() { wait * 2 } else { BACK_OFF_MAX };
                wait = again.min(BACK_OFF_MAX);
                failure = Some(error);
            }
        }
        if last {
            return;
        }
    }
}

fn step(
    places: &LogPlaces,
    log: &mut Option<Log>,
    after: &mut impl FnMut(&mut Log) -> Result<(), LogError>,
) -> Result<Round, LogError> {
    let open = match log {
        Some(open) => open,
        None => {
            let open = log.insert(Log::open(places)?);
            after(open)?;
            open
        }
    };
    let round = open.round()?;
    after(open)?;
    Ok(round)
}
