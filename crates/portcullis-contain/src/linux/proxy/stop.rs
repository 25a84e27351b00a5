//! How threads of the proxy learn that the command has ended: the other end of a pipe is closed.

use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};

/// What threads wait on. Ready to be read for ever once the other end is gone.
#[derive(Debug, Clone)]
pub(super) struct Stop(Arc<PipeReader>);

impl Stop {
    /// The end that threads wait on, and the one that stops them when it is dropped.
    pub(super) fn pair() -> io::Result<(Self, PipeWriter)> {
        let (reader, writer) = io::pipe()?;
        Ok((Self(Arc::new(reader)), writer))
    }

    /// Waits until something can be read, or written, or the time is up, or the command has ended. What it was.
    pub(super) fn wait(&self, on: impl AsFd, flags: PollFlags, left: Duration) -> io::Result<Woken> {
        let until = Instant::now() + left;
        let on = on.as_fd();
        loop {
            let mut on =
                [PollFd::from_borrowed_fd(self.as_fd(), PollFlags::IN), PollFd::from_borrowed_fd(on, flags)];
            let left = until.saturating_duration_since(Instant::now());
            poll(&mut on, left)?;
            let [stop, on] = &on;
            match (stop.revents().is_empty(), on.revents().is_empty()) {
                (false, _) => return Ok(Woken::Stopped),
                (true, false) => return Ok(Woken::Ready),
                (true, true) if left.is_zero() => return Ok(Woken::TimeUp),
                (true, true) => {}
            }
        }
    }
}

impl AsFd for Stop {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Why waiting ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Woken {
    Ready,
    Stopped,
    TimeUp,
}

/// Waits for one of these, or for so long. A signal ends it early.
pub(super) fn poll(on: &mut [PollFd<'_>], left: Duration) -> io::Result<()> {
    let left = Timespec::try_from(left).map_err(io::Error::other)?;
    match rustix::event::poll(on, Some(&left)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
