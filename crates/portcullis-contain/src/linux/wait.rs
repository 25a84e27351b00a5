//! Waiting for the helper, with signals handed on to it.

use std::os::fd::AsFd as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, ExitStatus};

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, PidfdFlags, pidfd_open, pidfd_send_signal};

use crate::error::ContainError;
use portcullis_core::observed::Ended;

/// Signals that the command gets.
const HANDED_ON: [Signal; 6] =
    [Signal::SIGTERM, Signal::SIGHUP, Signal::SIGINT, Signal::SIGQUIT, Signal::SIGUSR1, Signal::SIGUSR2];

/// Signals of the calling thread, held back while it waits.
pub(super) struct Waiting {
    before: Option<(SigSet, SignalFd)>,
}

impl Waiting {
    /// Holds them back from now on, so that none is lost before the helper runs.
    pub(super) fn begin(forward: bool) -> Result<Self, ContainError> {
        if !forward {
            return Ok(Self { before: None });
        }
        let mut set = SigSet::empty();
        HANDED_ON.into_iter().for_each(|signal| set.add(signal));
        let before = SigSet::thread_get_mask().and_then(|before| {
            set.thread_block()?;
            let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
            Ok((before, SignalFd::with_flags(&set, flags)?))
        });
        Ok(Self { before: Some(before.map_err(|error| ContainError::io("signals")(error.into()))?) })
    }

    /// Waits for the helper.
    pub(super) fn wait(self, child: &mut Child) -> Result<Ended, ContainError> {
        if let Some((_, signals)) = &self.before {
            hand_on_until_it_ends(child, signals).map_err(ContainError::io("wait for the command"))?;
        }
        let status = child.wait().map_err(ContainError::io("wait for the command"))?;
        Ok(ended(status))
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some((before, _)) = &self.before {
            // It was the mask before, so it is a valid one.
            let _restored = before.thread_set_mask();
        }
    }
}

fn hand_on_until_it_ends(child: &Child, signals: &SignalFd) -> std::io::Result<()> {
    let process = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let process = process.ok_or_else(|| std::io::Error::other("no process id"))?;
    let process = pidfd_open(process, PidfdFlags::empty())?;
    loop {
        let mut on = [
            PollFd::from_borrowed_fd(signals.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(process.as_fd(), PollFlags::IN),
        ];
        match rustix::event::poll(&mut on, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let [_, ended] = &on;
        if ended.revents().contains(PollFlags::IN) {
            return Ok(());
        }
        while let Ok(Some(signal)) = signals.read_signal() {
            /// Sent by the kernel: the terminal, which has told the whole group.
            const FROM_KERNEL: i32 = 0x80;
            let number = i32::try_from(signal.ssi_signo).ok().filter(|_| signal.ssi_code != FROM_KERNEL);
            if let Some(signal) = number.and_then(rustix::process::Signal::from_named_raw) {
                // It may have ended meanwhile.
                let _gone = pidfd_send_signal(&process, signal);
            }
        }
    }
}

fn ended(status: ExitStatus) -> Ended {
    let small = |number: i32| u8::try_from(number).unwrap_or(u8::MAX);
    match (status.code(), status.signal()) {
        (Some(code), _) => Ended::Status(small(code)),
        (None, signal) => Ended::Signal(small(signal.unwrap_or(0))),
    }
}
