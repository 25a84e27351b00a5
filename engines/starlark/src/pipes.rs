//! Standard input and output, as the worker uses them: questions come a few microseconds apart, or minutes.

use std::io;
use std::thread::yield_now;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use rustix::stdio::{stdin, stdout};

/// How long the next question is looked for before the worker sleeps. To be woken takes tens of microseconds, which is more
/// than most programs do.
const LOOKED_FOR: Duration = Duration::from_micros(200);

/// What the gate asks. Only while questions come in quick succession, the next is looked for without sleeping.
#[derive(Debug)]
pub(crate) struct Questions {
    is_busy: bool,
}

impl Questions {
    /// # Errors
    /// Standard input does not take the flag that reading it never waits.
    pub(crate) fn new() -> io::Result<Self> {
        let flags = fcntl_getfl(stdin())?;
        fcntl_setfl(stdin(), flags | OFlags::NONBLOCK)?;
        Ok(Self { is_busy: false })
    }

    /// Waits for the next.
    fn wait(&mut self) -> rustix::io::Result<()> {
        let began = Instant::now();
        let mut question = [PollFd::from_borrowed_fd(stdin(), PollFlags::IN)];
        while self.is_busy && began.elapsed() < LOOKED_FOR {
            if poll(&mut question, Some(&Timespec::default()))? > 0 {
                return Ok(());
            }
            // Who else wants the processor gets it.
            yield_now();
        }
        poll(&mut question, None)?;
        self.is_busy = began.elapsed() < LOOKED_FOR;
        Ok(())
    }
}

impl io::Read for Questions {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            match rustix::io::read(stdin(), &mut *into) {
                Err(Errno::AGAIN) => self.wait()?,
                Err(Errno::INTR) => {}
                read => return Ok(read?),
            }
        }
    }
}

/// What is answered, without a buffer: a message is written in one go.
#[derive(Debug)]
pub(crate) struct Answers;

impl io::Write for Answers {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        rustix::io::write(stdout(), bytes).map_err(io::Error::from)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
