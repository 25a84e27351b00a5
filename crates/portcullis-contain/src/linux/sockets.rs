//! The Unix sockets of others, which a command that makes sockets must not reach.
//!
//! A connection to a path needs no right to the file that Landlock knew before ABI 9, and a read-only mount does not stop it:
//! the path must lead elsewhere. The kernel lists the sockets of its network namespace, with the paths that they were
//! given. Those are not found that were given a path from their own folder, were moved, have another name by a link or
//! another mount, or are made later.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use portcullis_core::profile::Sockets;

use crate::error::ContainError;

/// Where the kernel lists them.
const TABLE: &str = "/proc/net/unix";
/// Most bytes of the table.
const BYTES_MAX: u64 = 16 << 20;
/// Columns before the path.
const COLUMNS: usize = 7;

/// Sockets on paths that are not among those of the profile. Nothing where the command makes none.
pub(super) fn to_hide(sockets: &Sockets) -> Result<Vec<PathBuf>, ContainError> {
    if *sockets == Sockets::None {
        return Ok(Vec::new());
    }
    let failed = || ContainError::io(format!("read the sockets of this machine in `{TABLE}`"));
    let mut table = Vec::new();
    File::open(TABLE).and_then(|file| file.take(BYTES_MAX + 1).read_to_end(&mut table)).map_err(failed())?;
    let listed = listed(&table).filter(|_| table.len() as u64 <= BYTES_MAX);
    let listed = listed
        .ok_or_else(|| failed()(std::io::Error::other("it is too long, or a path in it cannot be read")))?;
    let mut hidden: Vec<PathBuf> = listed.iter().filter_map(|path| path.canonicalize().ok()).collect();
    hidden.retain(|path| is_socket(path) && !sockets.paths().iter().any(|allowed| path.starts_with(allowed)));
    hidden.sort();
    hidden.dedup();
    Ok(hidden)
}

fn is_socket(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|meta| meta.file_type().is_socket())
}

/// The absolute paths in the table; nothing where a line is none of the kernel's, as after a line feed in a path.
fn listed(table: &[u8]) -> Option<Vec<PathBuf>> {
    let mut lines = table.split(|byte| *byte == b'\n');
    let heading = lines.next()?;
    if !heading.starts_with(b"Num ") {
        return None;
    }
    let mut paths = Vec::new();
    for line in lines.filter(|line| !line.is_empty()) {
        if let Some(path) = path(line)?.filter(|path| path.is_absolute()) {
            paths.push(path);
        }
    }
    Some(paths)
}

/// The path of one line, if it has one.
fn path(line: &[u8]) -> Option<Option<PathBuf>> {
    let mut rest = line;
    for column in 0..COLUMNS {
        let start = rest.iter().position(|byte| *byte != b' ')?;
        rest = rest.get(start..)?;
        let end = rest.iter().position(|byte| *byte == b' ').unwrap_or(rest.len());
        let (field, after) = rest.split_at(end);
        let digits = if column == 0 { field.strip_suffix(b":")? } else { field };
        if digits.is_empty() || !digits.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        rest = after;
    }
    match rest.strip_prefix(b" ") {
        None => Some(None),
        Some(path) => Some(Some(PathBuf::from(OsStr::from_bytes(path)))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADING: &str = "Num       RefCount Protocol Flags    Type St Inode Path\n";

    #[test]
    fn paths_are_those_of_the_table() {
        let table = format!(
            "{HEADING}\
             0000000000000000: 00000002 00000000 00010000 0001 01 21035 /run/docker.sock\n\
             ffff8881027cd400: 00000003 00000000 00000000 0001 03    77\n\
             0000000000000000: 00000002 00000000 00010000 0005 01 21036 @abstract\n\
             0000000000000000: 00000002 00000000 00010000 0001 01 21037 public/relative\n\
             0000000000000000: 00000002 00000000 00000000 0002 01 21038 /srv/a b\n"
        );
        let expected = ["/run/docker.sock", "/srv/a b"].map(PathBuf::from);
        assert_eq!(listed(table.as_bytes()), Some(expected.to_vec()));
    }

    #[test]
    fn a_table_that_cannot_be_read_in_one_way_is_an_error() {
        let line = "0000000000000000: 00000002 00000000 00010000 0001 01 21035 /srv/a\nb\n";
        assert_eq!(listed(format!("{HEADING}{line}").as_bytes()), None);
        assert_eq!(listed(line.as_bytes()), None);
    }
}
