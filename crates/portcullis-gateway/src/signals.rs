//! Signals that ask a process to end.

use std::fmt;
use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// A signal that asks a process to end. All of them end it in good order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopSignal {
    /// `SIGTERM`: somebody ended the process.
    Terminate,
    /// `SIGINT`: Ctrl-C.
    Interrupt,
    /// `SIGHUP`: the terminal was closed.
    Hangup,
}

impl fmt::Display for StopSignal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Terminate => "SIGTERM",
            Self::Interrupt => "SIGINT",
            Self::Hangup => "SIGHUP",
        })
    }
}

/// Receives these signals. While it lives, they do not end the process by themselves.
#[derive(Debug)]
pub struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
}

impl StopSignals {
    /// Begins to receive them.
    ///
    /// # Errors
    /// The system refuses.
    pub fn listen() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for the next one.
    pub async fn next(&mut self) -> StopSignal {
        tokio::select! {
            _ = self.terminate.recv() => StopSignal::Terminate,
            _ = self.interrupt.recv() => StopSignal::Interrupt,
            _ = self.hangup.recv() => StopSignal::Hangup,
        }
    }
}
