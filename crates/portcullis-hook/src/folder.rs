//! Where a daemon is found: its state folder, its socket and the agent's token.

use std::env;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

/// The daemon's socket, in its state folder.
pub const SOCKET: &str = "gate.sock";
/// The folder of the credentials, in the state folder.
pub const CREDENTIALS: &str = "credentials";
/// The agent's token, in the folder of the credentials.
pub const AGENT_TOKEN: &str = "agent.token";
/// Longest token, in bytes.
pub const TOKEN_BYTES_MAX: usize = 4096;
/// Longest path of a Unix socket, in bytes. Systems allow 103 or 107; one limit holds on all.
pub const SOCKET_PATH_BYTES_MAX: usize = 100;

/// The folder given, else `$PORTCULLIS_HOME`, else `$XDG_STATE_HOME/portcullis`, else `~/.local/state/portcullis`, or
/// `None` if none of these is set. Of the last two a relative path counts as not set: it would name another folder in
/// each directory. Nothing is created.
#[must_use]
pub fn state_folder(given: Option<&Path>) -> Option<PathBuf> {
    let from = |name: &str, below: &str| {
        let value: OsString = env::var_os(name).filter(|value| !value.is_empty())?;
        let base = PathBuf::from(value);
        if base.is_relative() && !below.is_empty() {
            return None;
        }
        // Joining nothing would leave a slash at the end.
        Some(if below.is_empty() { base } else { base.join(below) })
    };
    given
        .map(Path::to_owned)
        .or_else(|| from("PORTCULLIS_HOME", ""))
        .or_else(|| from("XDG_STATE_HOME", "portcullis"))
        .or_else(|| from("HOME", ".local/state/portcullis"))
}

/// Whether user `own` may hand its token to a socket on which user `listener` listens, and trust the answer: this user,
/// root, or the user whose folder the socket is in, if root asks.
///
/// # Errors
/// [`io::ErrorKind::PermissionDenied`] if not; any other error if the folder cannot be looked at.
pub fn check_listener(socket: &Path, listener: u32, own: u32) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt as _;
    if listener == own || listener == 0 {
        return Ok(());
    }
    let folder = socket.parent().map(std::fs::metadata).transpose()?;
    if own == 0 && folder.is_some_and(|folder| folder.uid() == listener) {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::PermissionDenied,
        format!("its owner is user {listener}, but this is user {own}"),
    ))
}

/// The user who owns a folder, or the nearest one above it that is there, and this user, where they are two. `None` for
/// root, who may use what others own.
#[must_use]
pub fn owned_by_another(folder: &Path) -> Option<(u32, u32)> {
    use std::os::unix::fs::MetadataExt as _;
    let own = rustix::process::geteuid().as_raw();
    let owner = folder.ancestors().find_map(|folder| std::fs::symlink_metadata(folder).ok())?.uid();
    (own != 0 && owner != own).then_some((owner, own))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_user_and_root_are_trusted_with_the_token() {
        let socket = Path::new("/tmp/gate.sock");
        assert!(check_listener(socket, 1000, 1000).is_ok());
        assert!(check_listener(socket, 0, 1000).is_ok());
        let error = check_listener(socket, 1001, 1000).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        // `/tmp` is root's, not user 1001's.
        assert!(check_listener(socket, 1001, 0).is_err());
    }
}
