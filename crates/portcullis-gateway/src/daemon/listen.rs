//! Taking hold of the state folder: lock, socket, pid file.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;
use std::time::Duration;

use axum::serve::Listener;
use tokio::net::unix::SocketAddr;
use tokio::net::{UnixListener, UnixStream};
use tokio::time::timeout;

use super::error::DaemonError;
use crate::home::Home;

/// How often it is looked whether the socket is still there.
const LOOKED_AT_EVERY: Duration = Duration::from_secs(1);

/// The state folder, held by this process until it is dropped or the process dies.
#[derive(Debug)]
pub(super) struct Hold {
    home: Home,
    lock: File,
}

impl Hold {
    /// Makes the folder if it is missing and takes its lock.
    pub(super) fn take(home: &Home) -> Result<Self, DaemonError> {
        let failed = |path: &Path, source| DaemonError::Io { path: path.to_owned(), source };
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(home.path())
            .map_err(|error| failed(home.path(), error))?;
        check_owner(home.path()).map_err(|error| failed(home.path(), error))?;
        let lock = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(PRIVATE)
            // A pipe in its place would be waited for.
            .custom_flags(libc::O_NONBLOCK)
            .open(home.lock())
            .map_err(|error| failed(&home.lock(), error))?;
        // Anyone who may open it may hold it, and keep the daemon from starting.
        lock.set_permissions(fs::Permissions::from_mode(PRIVATE))
            .map_err(|error| failed(&home.lock(), error))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { home: home.clone(), lock }),
            Err(TryLockError::WouldBlock) => Err(DaemonError::AlreadyRunning(home.path().to_owned())),
            Err(TryLockError::Error(error)) => Err(failed(&home.lock(), error)),
        }
    }

    /// Listens on the socket. A socket file left behind by a dead daemon is replaced; the lock says that there
    /// is no living one.
    pub(super) fn listen(&self) -> Result<Socket, DaemonError> {
        let path = self.home.socket();
        let failed = |source| DaemonError::Io { path: path.clone(), source };
        remove(&path).map_err(failed)?;
        let listener = bind(&path).map_err(failed)?;
        let pid = self.home.pid();
        let failed = |source| DaemonError::Io { path: pid.clone(), source };
        remove(&pid).map_err(failed)?;
        fs::write(&pid, format!("{}\n", std::process::id())).map_err(failed)?;
        let held = self.lock.metadata().map_err(failed)?;
        Ok(Socket { home: self.home.clone(), held: (held.dev(), held.ino()), listener })
    }
}

/// Listens at a path, for this user alone.
fn bind(path: &Path) -> io::Result<UnixListener> {
    let listener = UnixListener::bind(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(PRIVATE))?;
    Ok(listener)
}

/// The socket of a state folder. Something that tidies up may take its file away, after which nobody reaches the daemon
/// and no other can start: then it is made again.
#[derive(Debug)]
pub(super) struct Socket {
    home: Home,
    /// The file that is locked while this daemon holds the folder.
    held: (u64, u64),
    listener: UnixListener,
}

impl Listener for Socket {
    type Io = UnixStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            match timeout(LOOKED_AT_EVERY, Listener::accept(&mut self.listener)).await {
                Ok(accepted) => return accepted,
                Err(_) => self.put_back(),
            }
        }
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.listener.local_addr()
    }
}

impl Socket {
    fn put_back(&mut self) {
        let path = self.home.socket();
        // What somebody put in its place is theirs to explain; clients refuse to speak to it.
        let is_gone = fs::symlink_metadata(&path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
        // A folder that was removed and made again is another daemon's.
        let is_held = fs::metadata(self.home.lock()).is_ok_and(|lock| (lock.dev(), lock.ino()) == self.held);
        if !is_gone || !is_held {
            return;
        }
        match bind(&path) {
            Ok(listener) => {
                self.listener = listener;
                tracing::warn!(socket = %path.display(), "the socket was removed and is made again");
            }
            Err(error) => tracing::warn!(socket = %path.display(), %error, "the socket cannot be made again"),
        }
    }
}

/// Removes what a dead daemon left, or what was put in its place.
fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Anyone who else could change the folder could read the approver's token or take the socket's place.
fn check_owner(folder: &Path) -> io::Result<()> {
    let meta = fs::metadata(folder)?;
    let own = crate::client::own_user()?;
    let refuse = |why: String| Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    if meta.uid() != own {
        return refuse(format!(
            "it belongs to user {}, but this is user {own}; choose another folder",
            meta.uid()
        ));
    }
    if meta.mode() & OTHERS_WRITE != 0 {
        return refuse(
            "other users can write to it; run `chmod 700` on it, or choose another folder".to_owned(),
        );
    }
    Ok(())
}

/// Reading and writing by this user alone.
const PRIVATE: u32 = 0o600;
/// The permission of others to write: who may replace what is in it chooses the bundle and the store.
const OTHERS_WRITE: u32 = 0o022;

impl Drop for Hold {
    fn drop(&mut self) {
        // Left-overs are harmless: the next daemon replaces them.
        let _ = fs::remove_file(self.home.socket());
        let _ = fs::remove_file(self.home.pid());
    }
}
