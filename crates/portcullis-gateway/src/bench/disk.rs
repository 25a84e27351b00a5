//! What the disk does by itself: append 4 KiB, wait until it is durable.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::BenchError;
use super::distribution::Recorder;

/// Bytes of one append: a page.
const BLOCK: [u8; 4_096] = [0x5a; 4_096];
/// Appends that are timed.
pub(super) const APPENDS: usize = 1_000;

/// A file that is appended to.
pub(super) struct Probe {
    path: PathBuf,
    file: File,
}

impl Probe {
    /// A new one in `folder`.
    pub(super) fn new(folder: &Path) -> Result<Self, BenchError> {
        let path = folder.join("fdatasync.probe");
        let file = File::create(&path).map_err(failed(&path))?;
        Ok(Self { path, file })
    }

    /// Times one append and its `fdatasync`.
    pub(super) fn append(&mut self) -> Result<Duration, BenchError> {
        let begin = Instant::now();
        self.file.write_all(&BLOCK).and_then(|()| self.file.sync_data()).map_err(failed(&self.path))?;
        Ok(begin.elapsed())
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        // What is left goes with the folder.
        let _ = std::fs::remove_file(&self.path);
    }
}

fn failed(path: &Path) -> impl FnOnce(std::io::Error) -> BenchError {
    BenchError::io(format!("measure the disk with `{}`", path.display()))
}

/// Times `fdatasync` after single appends in `folder`.
pub(super) fn fdatasync(folder: &Path, into: &mut Recorder) -> Result<(), BenchError> {
    let mut probe = Probe::new(folder)?;
    for _ in 0..APPENDS {
        into.add(probe.append()?);
    }
    Ok(())
}
