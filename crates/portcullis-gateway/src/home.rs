//! The state folder of a daemon: one folder, one daemon, one store.
//!
//! ```text
//! gate.sock                    the socket
//! daemon.lock                  held by the daemon while it lives
//! daemon.pid  daemon.log       for people
//! bundle.path                  the folder of the bundle that it is served with; missing: the shipped one
//! ledger/                      the store, and what its transparency log remembers
//! log/                         the log as it is published
//! keys/                        what the log and its writers sign with
//! archive/                     stores that were rotated out, each a state folder
//! listings/                    what servers' tools were when a person accepted them
//! console/                     who may sign in to the console, and its host name
//! credentials/agent.token      opens runs, proposes, reports
//! credentials/approver.token   decides on approvals, takes hold of runs
//! credentials/upstreams/       what logins for upstreams gave
//! upstreams.toml               where the gate's credentials for upstreams come from
//! ```

use std::env;
use std::io;
use std::path::{Path, PathBuf};

use portcullis_core::principal::CredentialKind;
use portcullis_hook::folder::{self, SOCKET_PATH_BYTES_MAX};
use portcullis_ledger::Location;

/// Names the file with the approver's token, where it is not the one in the state folder.
pub const APPROVER_TOKEN_VARIABLE: &str = "PORTCULLIS_APPROVER_TOKEN_FILE";

/// Why there is no state folder.
#[derive(Debug, thiserror::Error)]
pub enum HomeError {
    /// Nothing says where it is.
    #[error("there is no state folder: give --home DIR, or set PORTCULLIS_HOME, XDG_STATE_HOME or HOME")]
    Nowhere,
    /// A relative path, and no current folder to resolve it against.
    #[error("cannot resolve the state folder `{}`: {source}", path.display())]
    Relative {
        /// The path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The path of the socket would not fit into a socket address.
    #[error(
        "the socket path `{}` has {} bytes, and sockets allow {SOCKET_PATH_BYTES_MAX}; choose a shorter --home",
        .0.display(), .0.as_os_str().len()
    )]
    SocketPath(PathBuf),
}

/// An absolute state folder, whose socket path is known to fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home(PathBuf);

impl Home {
    /// The folder given, else `$PORTCULLIS_HOME`, else `$XDG_STATE_HOME/portcullis`, else
    /// `~/.local/state/portcullis`. Nothing is created.
    ///
    /// # Errors
    /// [`HomeError`].
    pub fn resolve(given: Option<&Path>) -> Result<Self, HomeError> {
        let path = folder::state_folder(given).ok_or(HomeError::Nowhere)?;
        Self::at(&path)
    }

    /// The folder at `path`.
    ///
    /// # Errors
    /// [`HomeError`], but not [`HomeError::Nowhere`].
    pub fn at(path: &Path) -> Result<Self, HomeError> {
        let absolute = std::path::absolute(path)
            .map_err(|source| HomeError::Relative { path: path.to_owned(), source })?;
        let home = Self(absolute);
        let socket = home.socket();
        if socket.as_os_str().len() > SOCKET_PATH_BYTES_MAX {
            return Err(HomeError::SocketPath(socket));
        }
        Ok(home)
    }

    /// The folder itself.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The socket.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.0.join(folder::SOCKET)
    }

    /// The lock that the daemon holds while it lives.
    #[must_use]
    pub fn lock(&self) -> PathBuf {
        self.0.join("daemon.lock")
    }

    /// The daemon's process id.
    #[must_use]
    pub fn pid(&self) -> PathBuf {
        self.0.join("daemon.pid")
    }

    /// What the daemon says.
    #[must_use]
    pub fn log(&self) -> PathBuf {
        self.0.join("daemon.log")
    }

    /// Names the bundle that the folder is served with.
    #[must_use]
    pub fn bundle(&self) -> PathBuf {
        self.0.join("bundle.path")
    }

    /// The store, as something to open.
    #[must_use]
    pub fn store(&self) -> Location {
        Location::Folder(self.ledger())
    }

    /// The folder of the store.
    #[must_use]
    pub fn ledger(&self) -> PathBuf {
        self.0.join("ledger")
    }

    /// The mark that says which store is kept here.
    #[must_use]
    pub fn store_mark(&self) -> PathBuf {
        self.0.join("store")
    }

    /// What servers' tools were when a person accepted them.
    #[must_use]
    pub fn listings(&self) -> PathBuf {
        self.0.join("listings")
    }

    /// Which token goes to which forge; its owner writes it.
    #[must_use]
    pub fn forges(&self) -> PathBuf {
        self.0.join("forges.toml")
    }

    /// Where the gate's credentials for upstreams come from; its owner writes it.
    #[must_use]
    pub fn upstreams_toml(&self) -> PathBuf {
        self.0.join("upstreams.toml")
    }

    /// What logins for upstreams gave: beside the gate's own tokens, and guarded like them.
    #[must_use]
    pub fn upstreams(&self) -> PathBuf {
        self.credentials().join("upstreams")
    }

    /// What the console keeps: who may sign in, and its host name.
    #[must_use]
    pub fn console(&self) -> PathBuf {
        self.0.join("console")
    }

    /// The folder of the credentials.
    #[must_use]
    pub fn credentials(&self) -> PathBuf {
        self.0.join(folder::CREDENTIALS)
    }

    /// The file with the token of that kind. An approver's may be kept elsewhere, out of the agent's reach:
    /// [`APPROVER_TOKEN_VARIABLE`] says where.
    #[must_use]
    pub fn token(&self, kind: CredentialKind) -> PathBuf {
        match kind {
            CredentialKind::Agent => self.credentials().join(folder::AGENT_TOKEN),
            CredentialKind::Approver => env::var_os(APPROVER_TOKEN_VARIABLE)
                .filter(|path| !path.is_empty())
                .map_or_else(|| self.credentials().join("approver.token"), PathBuf::from),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_path_that_does_not_fit_is_refused() {
        assert!(Home::at(Path::new("/tmp/home")).is_ok());
        let error = Home::at(Path::new(&format!("/{}", "x".repeat(100)))).unwrap_err().to_string();
        assert!(error.contains("has 111 bytes") && error.contains("shorter --home"), "{error}");
    }

    #[test]
    fn files_have_their_places() {
        let home = Home::at(Path::new("/h")).unwrap();
        assert_eq!(home.token(CredentialKind::Approver), Path::new("/h/credentials/approver.token"));
        assert_eq!(home.socket(), Path::new("/h/gate.sock"));
    }
}
