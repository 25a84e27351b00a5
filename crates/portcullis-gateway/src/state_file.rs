//! Small files of the state folder. What lies there may have been replaced by something that never ends or that waits for
//! a writer: only regular files are read, without waiting, and up to a size.

use std::fs::OpenOptions;
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
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
