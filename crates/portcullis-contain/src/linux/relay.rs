//! Output that passes through a pipe, so that it can be counted or kept.

use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::error::ContainError;
use crate::profile::Output;

/// Bytes that are passed on at once.
const CHUNK: usize = 32 << 10;
/// How long is waited for output after everything should have ended: a process that got away may hold the pipe.
const PATIENCE: Duration = Duration::from_secs(2);
/// The signal with which the helper is told to end everything; its `END`.
const END: Signal = Signal::ALARM;

/// The threads that pass output on.
pub(super) struct Relay {
    stdout: Option<Receiver<Vec<u8>>>,
    stderr: Option<Receiver<Vec<u8>>>,
    too_much: Arc<AtomicBool>,
}

/// What both threads share.
#[derive(Clone)]
struct Meter {
    left: Arc<AtomicU64>,
    too_much: Arc<AtomicBool>,
    helper: Arc<OwnedFd>,
    keep: bool,
}

impl Relay {
    /// Begins to read, where there is a limit.
    pub(super) fn begin(child: &mut Child, limit: Option<u64>, output: Output) -> Result<Self, ContainError> {
        let too_much = Arc::new(AtomicBool::new(false));
        let Some(limit) = limit else { return Ok(Self { stdout: None, stderr: None, too_much }) };
        let failed = || ContainError::io("watch the helper");
        let id = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let id = id.ok_or_else(|| failed()(std::io::Error::other("no process id")))?;
        let helper = Arc::new(pidfd_open(id, PidfdFlags::empty()).map_err(|error| failed()(error.into()))?);
        let left = Arc::new(AtomicU64::new(limit));
        let meter = Meter { left, too_much: Arc::clone(&too_much), helper, keep: output == Output::Kept };
        let stdout = child.stdout.take().map(|from| pass_on(from, std::io::stdout(), meter.clone()));
        let stderr = child.stderr.take().map(|from| pass_on(from, std::io::stderr(), meter.clone()));
        Ok(Self { stdout, stderr, too_much })
    }

    /// What was kept, and whether there was more than the limit.
    pub(super) fn finish(self) -> (Vec<u8>, Vec<u8>, bool) {
        let take = |from: Option<Receiver<Vec<u8>>>| {
            from.and_then(|from| from.recv_timeout(PATIENCE).ok()).unwrap_or_default()
        };
        let (stdout, stderr) = (take(self.stdout), take(self.stderr));
        (stdout, stderr, self.too_much.load(Ordering::Acquire))
    }
}

fn pass_on(
    mut from: impl Read + Send + 'static,
    mut to: impl Write + Send + 'static,
    meter: Meter,
) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let mut kept = Vec::new();
        let mut chunk = vec![0; CHUNK];
        while let Ok(length @ 1..) = from.read(&mut chunk) {
            let part = chunk.get(..meter.take(length)).unwrap_or_default();
            if meter.keep {
                kept.extend_from_slice(part);
            } else if to.write_all(part).and_then(|()| to.flush()).is_err() {
                // Nobody reads: the command learns it from its own pipe, as without us.
                break;
            }
        }
        // Nobody waits for it any more where it came too late.
        let _late = sender.send(kept);
    });
    receiver
}

impl Meter {
    /// How many of these bytes may pass.
    fn take(&self, length: usize) -> usize {
        let length = u64::try_from(length).unwrap_or(u64::MAX);
        let update = |left: u64| Some(left.saturating_sub(length));
        let left = self.left.fetch_update(Ordering::AcqRel, Ordering::Acquire, update).unwrap_or(0);
        if length > left {
            self.too_much.store(true, Ordering::Release);
            // It may have ended meanwhile.
            let _gone = pidfd_send_signal(&self.helper, END);
        }
        usize::try_from(length.min(left)).unwrap_or(0)
    }
}
