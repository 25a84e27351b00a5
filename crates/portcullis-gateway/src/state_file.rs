//! Small files of the state folder. What lies there may have been replaced by something that never ends or that waits for
//! a writer: only regular files are read, without waiting, and up to a size.

use std::fs::{self, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

/// The text of a file of at most `limit` bytes.
///
/// # Errors
/// It is no regular file, longer, no UTF-8, or cannot be read.
pub(crate) fn read(path: &Path, limit: u64) -> io::Result<String> {
    let invalid = |why: String| Err(io::Error::new(io::ErrorKind::InvalidData, why));
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path)?;
    if !file.metadata()?.is_file() {
        return invalid("it is not a regular file".to_owned());
    }
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return invalid(format!("it has more than {limit} bytes"));
    }
    String::from_utf8(bytes).or_else(|_| invalid("it is not UTF-8".to_owned()))
}

/// Makes a folder that nobody else enters.
pub(crate) fn make_private(folder: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Writes a file that nobody else reads, whole or not at all.
pub(crate) fn write_private(file: &Path, content: &[u8]) -> io::Result<()> {
    let aside = file.with_extension("tmp");
    let mut out = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&aside)?;
    out.write_all(content)?;
    out.sync_all()?;
    fs::rename(&aside, file)
}
