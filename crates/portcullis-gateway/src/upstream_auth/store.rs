//! What logins gave, one file for each upstream in `credentials/upstreams/` of the state folder, which nobody else reads.
//!
//! A refresh token may be used once only, and two processes of one user may want it at the same time. Who uses it holds the
//! lock of its file, reads the file then, and has written the new one before anything else is done with it.

use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use url::Url;

use super::secret::Secret;
use crate::home::Home;
use crate::oauth::outbound::{Place, TIME_MAX};
use crate::state_file;

/// Longest file, in bytes.
const FILE_BYTES_MAX: u64 = 64 << 10;
/// The only form so far.
const VERSION: u32 = 1;
/// How often it is tried to get the lock of a file, for a little longer than who holds it may take.
const LOCK_EVERY: Duration = Duration::from_millis(20);
const LOCK_MAX: Duration = TIME_MAX.saturating_mul(2);

/// A login, as it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Kept {
    pub(super) version: u32,
    /// The upstream's address. The tokens go nowhere else.
    pub(super) url: String,
    /// What they are for, as the upstream says of itself.
    pub(super) resource: String,
    pub(super) issuer: String,
    pub(super) token_endpoint: String,
    /// From where the address of the endpoint is known.
    pub(super) learned_from: Place,
    pub(super) client_id: String,
    /// How the client shows itself.
    pub(super) client_auth: ClientAuth,
    /// The secret that the server gave the client at its registration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) client_secret: Option<Secret>,
    /// None: the login has ended.
    #[serde(default)]
    pub(super) access_token: Option<Secret>,
    /// In seconds since 1970; none: it did not say.
    #[serde(default)]
    pub(super) expires_at_s: Option<u64>,
    #[serde(default)]
    pub(super) refresh_token: Option<Secret>,
    #[serde(default)]
    pub(super) scopes: Vec<String>,
}

/// How a client shows itself at the token endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ClientAuth {
    /// By its id alone.
    None,
    /// By its secret, in a header.
    Basic,
    /// By its secret, in the body.
    Post,
}

impl Kept {
    /// The version of a new one.
    pub(super) const VERSION: u32 = VERSION;
}

/// The place of the login for one upstream.
#[derive(Debug, Clone)]
pub(super) struct Store {
    folder: PathBuf,
    name: String,
}

/// What tells two states of a file apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp(u64, i64, i64, u64);

/// The state of a file; none: it is not there.
pub(super) fn stamp(file: &std::path::Path) -> Option<Stamp> {
    let meta = std::fs::metadata(file).ok()?;
    Some(Stamp(meta.ino(), meta.mtime(), meta.mtime_nsec(), meta.size()))
}

/// Held while a login is being changed.
#[derive(Debug)]
pub(super) struct Locked {
    _file: File,
}

impl Store {
    /// The login for the upstream of a name, which must have been checked.
    pub(super) fn of(home: &Home, name: &str) -> Self {
        Self { folder: home.upstreams(), name: name.to_owned() }
    }

    pub(super) fn file(&self) -> PathBuf {
        self.folder.join(format!("{}.json", self.name))
    }

    /// The login; none: there is none.
    pub(super) fn read(&self) -> Result<Option<Kept>, String> {
        let file = self.file();
        let wrong = |why: &str| format!("`{}`: {why}", file.display());
        let text = match state_file::read(&file, FILE_BYTES_MAX) {
            Ok(text) => zeroize::Zeroizing::new(text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(wrong(&error.to_string())),
        };
        // What does not fit is not repeated: it is secret.
        let kept: Kept = serde_json::from_str(&text)
            .map_err(|error| wrong(&format!("it is damaged at line {}; log in again", error.line())))?;
        match kept.version {
            VERSION => Ok(Some(kept)),
            other => Err(wrong(&format!("it is of version {other}, which this program does not know"))),
        }
    }

    pub(super) fn write(&self, kept: &Kept, _locked: &Locked) -> Result<(), String> {
        let failed = |error: &dyn std::fmt::Display| format!("`{}`: {error}", self.file().display());
        let text = serde_json::to_vec_pretty(kept).map_err(|error| failed(&error))?;
        let text = zeroize::Zeroizing::new(text);
        state_file::write_private(&self.file(), &text).map_err(|error| failed(&error))
    }

    /// Removes the login, and says whether there was one.
    pub(super) fn remove(&self, _locked: &Locked) -> Result<bool, String> {
        match std::fs::remove_file(self.file()) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(format!("`{}`: {error}", self.file().display())),
        }
    }

    /// Waits until nobody else changes the login.
    pub(super) async fn lock(&self) -> Result<Locked, String> {
        let path = self.folder.join(format!("{}.lock", self.name));
        let failed = |error: io::Error| format!("`{}`: {error}", path.display());
        state_file::make_private(&self.folder).map_err(failed)?;
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            // A pipe in its place would be waited for.
            .custom_flags(libc::O_NONBLOCK)
            .open(&path)
            .map_err(failed)?;
        let start = std::time::Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Locked { _file: file }),
                Err(TryLockError::WouldBlock) if start.elapsed() < LOCK_MAX => {
                    tokio::time::sleep(LOCK_EVERY).await;
                }
                Err(TryLockError::WouldBlock) => {
                    return Err(format!("`{}` is held by another process; try again", path.display()));
                }
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            }
        }
    }

    /// The names of all logins.
    pub(super) fn names(home: &Home) -> Result<Vec<String>, String> {
        let folder = home.upstreams();
        let failed = |error: io::Error| format!("`{}`: {error}", folder.display());
        let entries = match std::fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed(error)),
        };
        let mut names = Vec::new();
        for entry in entries {
            let name = entry.map_err(failed)?.file_name();
            let name = name.to_str().and_then(|name| name.strip_suffix(".json"));
            names.extend(name.filter(|name| super::settings::check_name(name).is_ok()).map(str::to_owned));
        }
        names.sort();
        Ok(names)
    }
}

/// The address of an endpoint that was kept.
pub(super) fn endpoint(kept: &Kept) -> Result<Url, String> {
    Url::parse(&kept.token_endpoint).map_err(|error| format!("its token endpoint: {error}; log in again"))
}

/// Now, in seconds since 1970.
pub(super) fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
