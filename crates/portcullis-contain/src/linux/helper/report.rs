//! What the helper tells its supervisor.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;

use rustix::fs::FlockOperation;

use super::super::order::Report;

/// Descriptors that belong to the command: input, output, errors.
const STANDARD: i32 = 2;

/// The file for reports, open. The command does not inherit it.
#[derive(Debug)]
pub(super) struct Reporter {
    file: File,
}

impl Reporter {
    /// Opens it by its path.
    pub(super) fn at_path(path: &Path) -> io::Result<Self> {
        Ok(Self { file: OpenOptions::new().append(true).open(path)? })
    }

    /// Opens it by the descriptor that the stage before left open: its path may be hidden by now.
    pub(super) fn at_descriptor(number: i32) -> io::Result<Self> {
        Self::at_path(format!("/proc/self/fd/{number}").as_ref())
    }

    /// Lets the next stage inherit it; the number.
    pub(super) fn hand_on(&self) -> io::Result<i32> {
        rustix::io::fcntl_setfd(&self.file, rustix::io::FdFlags::empty())?;
        Ok(self.file.as_raw_fd())
    }

    /// Writes one line. Where that fails the supervisor misses it, and takes the run for one that was not started.
    pub(super) fn tell(&mut self, report: &Report) {
        let Ok(mut line) = serde_json::to_vec(report) else { return };
        line.push(b'\n');
        let _missed = self.file.write_all(&line);
    }

    /// Tells that a step worked.
    pub(super) fn done(&mut self, step: &str) {
        self.tell(&Report::Done(step.to_owned()));
    }

    /// Waits until the supervisor has looked at what the command could change.
    pub(super) fn wait_for_gate(&self) -> io::Result<()> {
        rustix::fs::flock(&self.file, FlockOperation::LockShared)?;
        Ok(rustix::fs::flock(&self.file, FlockOperation::Unlock)?)
    }

    /// Closes every descriptor but the standard ones, this one and these: what the caller left open is no power of the
    /// command.
    pub(super) fn close_others(&self, but: &[Option<&File>]) -> io::Result<()> {
        let own: Vec<_> =
            but.iter().copied().chain([Some(&self.file)]).map(|file| file.map(File::as_raw_fd)).collect();
        let mut open = Vec::new();
        for entry in std::fs::read_dir("/proc/self/fd")? {
            let number = entry?.file_name().to_str().and_then(|name| name.parse::<i32>().ok());
            open.extend(number.filter(|number| *number > STANDARD && !own.contains(&Some(*number))));
        }
        for number in open {
            // The one that listed the folder is closed by now.
            let _closed = nix::unistd::close(number);
        }
        Ok(())
    }
}

/// Lets the next stage inherit an end of a pipe; the number.
pub(super) fn hand_on(end: &(impl AsFd + AsRawFd)) -> io::Result<i32> {
    rustix::io::fcntl_setfd(end, rustix::io::FdFlags::empty())?;
    Ok(end.as_raw_fd())
}

/// Opens what a stage inherited once more, so that the command does not.
pub(super) fn inherited(number: i32, how: &OpenOptions) -> io::Result<File> {
    let file = how.open(format!("/proc/self/fd/{number}"))?;
    // The one that was inherited has done its work.
    let _closed = nix::unistd::close(number);
    Ok(file)
}

/// A stage waits for a word from the one before it: whether it is watched.
#[derive(Debug)]
pub(super) struct Word(File);

impl Word {
    /// What a stage inherited.
    pub(super) fn at_descriptor(number: i32) -> io::Result<Self> {
        inherited(number, File::options().read(true)).map(Self)
    }

    /// Its descriptor, which the command does not inherit.
    pub(super) fn file(&self) -> Option<&File> {
        Some(&self.0)
    }

    /// Waits for it.
    pub(super) fn wait(mut self) -> io::Result<bool> {
        let mut word = [0];
        self.0.read_exact(&mut word)?;
        Ok(word == *Self::of(true))
    }

    /// The word for it.
    pub(super) fn of(is_watched: bool) -> &'static [u8; 1] {
        if is_watched { b"1" } else { b"0" }
    }
}
