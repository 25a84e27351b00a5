//! What the disk does by itself: append 4 KiB, wait until it is durable.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::time::Instant;

use super::BenchError;
use super::distribution::Recorder;

/// Bytes of one append: a page.
const BLOCK: [u8; 4_096] = [0x5a; 4_096];
/// Appends that are timed.
pub(super) const APPENDS: usize = 1_000;

/// Times `fdatasync` after single appends in `folder`.
pub(super) fn fdatasync(folder: &Path, into: &mut Recorder) -> Result<(), BenchError> {
    let path = folder.join("fdatasync.probe");
    let failed = || BenchError::io(format!("measure the disk with `{}`", path.display()));
    let mut file = File::create(&path).map_err(failed())?;
    for _ in 0..APPENDS {
        let begin = Instant::now();
        file.write_all(&BLOCK).and_then(|()| file.sync_data()).map_err(failed())?;
        into.add(begin.elapsed());
    }
    drop(file);
    std::fs::remove_file(&path).map_err(failed())
}
