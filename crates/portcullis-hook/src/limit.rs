//! How long a hook may take, and how much it reads.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use crate::event::Answered;

/// How long judging an event may take, starting the daemon included.
pub const ANSWER_MAX: Duration = Duration::from_secs(55);
/// Longest time from the start to the answer, in all: reading the event included. Clients give a hook 60 s and go on
/// without its answer afterwards.
pub const WHOLE_MAX: Duration = Duration::from_secs(58);
/// Largest input of a hook, in bytes.
pub const INPUT_BYTES_MAX: usize = 16 << 20;

/// What `work` returns, on a thread of its own: neither a panic nor a system call that does not come back (an input
/// that never ends, a file system that hangs) must let the call pass.
///
/// # Errors
/// The answer that blocks, if `work` does not return in time.
pub fn within<T: Send + 'static>(
    limit: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Answered> {
    let (sender, receiver) = mpsc::sync_channel(1);
    let started = thread::Builder::new().spawn(move || sender.send(work()));
    match started.map(|_| receiver.recv_timeout(limit)) {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(RecvTimeoutError::Timeout)) => {
            Err(Answered::blocked(format!("no answer within {} s", WHOLE_MAX.as_secs())))
        }
        Ok(Err(RecvTimeoutError::Disconnected)) => Err(Answered::blocked("the hook failed unexpectedly")),
        Err(error) => Err(Answered::blocked(format!("cannot start: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_does_not_come_back_blocks() {
        let limit = Duration::from_millis(20);
        let late = within(limit, || thread::sleep(Duration::from_secs(5))).unwrap_err();
        assert_eq!((late.exit, late.output.as_str()), (crate::event::BLOCKED, ""));
        let failed = within(limit, || panic!("on purpose")).unwrap_err();
        assert_eq!(failed.exit, crate::event::BLOCKED, "{}", failed.error);
        assert_eq!(within(WHOLE_MAX, || 7), Ok(7));
    }
}
