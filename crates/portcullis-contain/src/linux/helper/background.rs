//! What a command leaves running goes on, where the profile says so.
//!
//! Two stages stand before the others then. `front` is the child of the supervisor, and leaves when the command has
//! ended. `keeper` stays until the last process has ended, and removes the folder for temporary files. Until the
//! command has ended each dies with the one before it; then `keeper` does so no more.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{PipeReader, Read as _, Write as _};
use std::os::fd::AsFd as _;

use nix::sys::signal::Signal;
use nix::sys::signalfd::SignalFd;
use nix::unistd::Pid;
use rustix::event::{PollFd, PollFlags};
use rustix::process::WaitOptions;

use super::reap::{block_signals, ended_of};
use super::report::{Reporter, hand_on, inherited};
use super::{Failed, at, die_with_parent, stage};
use crate::linux::order::Order;

/// Tells the stage before that the command has ended, and how.
#[derive(Debug)]
pub(super) struct Notice(Option<File>);

impl Notice {
    /// Nobody waits for it.
    pub(super) fn none() -> Self {
        Self(None)
    }

    /// Where the stage before waits.
    pub(super) fn at_descriptor(number: i32) -> std::io::Result<Self> {
        inherited(number, File::options().write(true)).map(|file| Self(Some(file)))
    }

    /// Its descriptor, which the command does not inherit.
    pub(super) fn file(&self) -> Option<&File> {
        self.0.as_ref()
    }

    /// Tells it.
    pub(super) fn tell(&mut self, code: u8) {
        if let Some(mut file) = self.0.take() {
            // The stage before may be gone: then this one ends soon.
            let _gone = file.write_all(&[code]);
        }
    }
}

/// Leaves when the command has ended.
pub(super) fn front(
    order: &Order,
    next: &str,
    command: &[OsString],
    reporter: &Reporter,
) -> Result<u8, Failed> {
    reporter.close_others(&[]).map_err(at("descriptors"))?;
    die_with_parent(Some(order.supervisor))?;
    stand(&format!("keeper-{next}"), command, |_| true)
}

/// Stays until the last process has ended.
pub(super) fn keeper(
    order: &Order,
    next: &str,
    command: &[OsString],
    mut notice: Notice,
    reporter: &Reporter,
) -> Result<u8, Failed> {
    reporter.close_others(&[notice.file()]).map_err(at("descriptors"))?;
    die_with_parent(None)?;
    let code = stand(next, command, |code| {
        // From now on it is nobody's.
        let _kept = nix::sys::prctl::set_pdeathsig(None::<Signal>);
        notice.tell(code);
        false
    });
    // The supervisor removes the rest.
    let _gone = fs::remove_dir_all(&order.temporary);
    let _gone = order.temporary.parent().map(fs::remove_dir);
    code
}

/// Starts a stage, hands signals on to it, and waits for its notice: `leaves` says whether that is the end.
fn stand(next: &str, command: &[OsString], mut leaves: impl FnMut(u8) -> bool) -> Result<u8, Failed> {
    let signals = block_signals()?;
    let (reader, writer) = std::io::pipe().map_err(at("notice"))?;
    let number = hand_on(&writer).map_err(at("notice"))?;
    let child = stage(&format!("{next}:{number}"), command).spawn().map_err(at("background"))?.id();
    drop(writer);
    let child = Pid::from_raw(i32::try_from(child).unwrap_or(i32::MAX));
    let mut reader = Some(reader);
    loop {
        if let Some(code) = has_ended(child) {
            return Ok(code);
        }
        let is_told = wait(&signals, reader.as_ref())?;
        while let Ok(Some(signal)) = signals.read_signal() {
            super::reap::hand_on_to(&signal, child);
        }
        if !is_told {
            continue;
        }
        let mut code = [0];
        let told = reader.take().is_some_and(|mut reader| reader.read_exact(&mut code).is_ok());
        let [code] = code;
        if told && leaves(code) {
            return Ok(code);
        }
    }
}

fn has_ended(child: Pid) -> Option<u8> {
    let child = rustix::process::Pid::from_raw(child.as_raw())?;
    let (_, status) = rustix::process::waitpid(Some(child), WaitOptions::NOHANG).ok()??;
    ended_of(status).map(|ended| ended.code())
}

/// Waits for a signal or a notice; whether it was a notice.
fn wait(signals: &SignalFd, reader: Option<&PipeReader>) -> Result<bool, Failed> {
    let mut on = vec![PollFd::from_borrowed_fd(signals.as_fd(), PollFlags::IN)];
    on.extend(reader.map(|reader| PollFd::from_borrowed_fd(reader.as_fd(), PollFlags::IN)));
    match rustix::event::poll(&mut on, None) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => return Err(at("wait")(error)),
    }
    Ok(on.get(1).is_some_and(|notice| !notice.revents().is_empty()))
}
