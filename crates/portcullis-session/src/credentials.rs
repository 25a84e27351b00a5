//! Credentials: who may open runs, and who may decide on approvals.
//!
//! Two tokens are made at the first start, each in a file that only its owner can read. An agent's credential
//! opens runs and proposes actions; only an approver's decides. Further credentials, with the principal,
//! roles and attributes they stand for, are mapped in the bundle by the SHA-256 of the token.

use std::fs::{self, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use portcullis_core::bundle::Bundle;
use portcullis_core::principal::{CredentialKind, Principal};
use ring::digest::{SHA256, digest};

/// File of the agent's token within the credentials folder.
pub const AGENT_FILE: &str = "agent.token";
/// File of the approver's token.
pub const APPROVER_FILE: &str = "approver.token";
/// Longest token that is accepted, in bytes.
const TOKEN_BYTES_MAX: u64 = 512;
/// How the tokens that are made here begin, by what they entitle to.
const AGENT_PREFIX: &str = "pcag_";
const APPROVER_PREFIX: &str = "pcap_";
/// Digits after that.
const TOKEN_HEX_DIGITS: usize = 64;

/// Why the credentials cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CredentialError {
    /// A file or folder cannot be read or made.
    #[error("cannot use the credential `{}`: {source}", path.display())]
    Io {
        /// Where.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Others can read a token.
    #[error("the credential `{}` can be read by others (mode {mode:o}); run: chmod 600 {}", path.display(), path.display())]
    Exposed {
        /// Where.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// The file holds no token.
    #[error("the credential `{}` holds no token; delete the file, and a new one is created", .0.display())]
    Empty(PathBuf),
    /// The file holds something else than a token that was made here.
    #[error(
        "the credential `{}` holds no token that was made here ({prefix} and {TOKEN_HEX_DIGITS} hex digits): put it back as it was, or remove the file to have another made, which everybody who has a copy of the old one then needs", path.display()
    )]
    Other {
        /// Where.
        path: PathBuf,
        /// How such a token begins.
        prefix: &'static str,
    },
    /// No random bytes.
    #[error("cannot create a token: {0}")]
    NoRandomness(getrandom::Error),
}

/// The identity behind a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// What the token entitles to.
    pub kind: CredentialKind,
    /// The principal that it identifies.
    pub principal: Principal,
    /// The runtime policy that its runs are bound to.
    pub policy: Option<String>,
    /// Whether it is one of the two tokens of this machine rather than one that the bundle maps.
    pub of_this_machine: bool,
}

/// The two tokens of a machine, as their digests: more is not needed to know them again.
#[derive(Clone)]
pub struct Credentials {
    agent_sha256: String,
    approver_sha256: String,
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credentials").finish_non_exhaustive()
    }
}

impl Credentials {
    /// Reads the tokens in `folder`, making folder and tokens where they are missing.
    pub fn load_or_create(folder: &Path) -> Result<Self, CredentialError> {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(|source| CredentialError::Io { path: folder.to_owned(), source })?;
        Ok(Self {
            agent_sha256: sha256_hex(&read_or_create(&folder.join(AGENT_FILE), AGENT_PREFIX)?),
            approver_sha256: sha256_hex(&read_or_create(&folder.join(APPROVER_FILE), APPROVER_PREFIX)?),
        })
    }

    /// Whose token this is: one of the two of this machine, or one that the bundle maps. Where the bundle maps an
    /// approver, the approver's token of this machine is worth nothing.
    pub fn authenticate(&self, token: &str, bundle: &Bundle) -> Option<Identity> {
        // Comparing digests takes the same time wherever the tokens begin to differ.
        let presented = sha256_hex(token);
        let mapped = bundle.credentials.iter().find(|credential| credential.token_sha256 == presented);
        if let Some(credential) = mapped {
            return Some(Identity {
                kind: credential.kind,
                principal: credential.principal.clone(),
                policy: credential.policy.clone(),
                of_this_machine: false,
            });
        }
        // An operator who maps an approver has moved deciding out of reach of this user's other processes.
        let moved = bundle.credentials.iter().any(|credential| credential.kind == CredentialKind::Approver);
        let local = |kind, name: &str| Identity {
            kind,
            principal: Principal::named(name),
            policy: None,
            of_this_machine: true,
        };
        if presented == self.approver_sha256 {
            (!moved).then(|| local(CredentialKind::Approver, "local-approver"))
        } else if presented == self.agent_sha256 {
            Some(local(CredentialKind::Agent, "local-agent"))
        } else {
            None
        }
    }
}

/// The token in `path`. Refuses a file that others can read.
pub fn read_token(path: &Path) -> Result<String, CredentialError> {
    let failed = |source| CredentialError::Io { path: path.to_owned(), source };
    // A pipe in its place would be waited for.
    let opened = fs::OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path);
    let file = opened.map_err(failed)?;
    let meta = file.metadata().map_err(failed)?;
    if !meta.is_file() {
        return Err(failed(io::Error::other("it is not a regular file; remove it and restart the daemon")));
    }
    let mode = meta.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(CredentialError::Exposed { path: path.to_owned(), mode });
    }
    let mut token = String::new();
    file.take(TOKEN_BYTES_MAX).read_to_string(&mut token).map_err(failed)?;
    match token.trim() {
        "" => Err(CredentialError::Empty(path.to_owned())),
        token => Ok(token.to_owned()),
    }
}

/// The token in a file that the daemon made, as it made it: what somebody else could have written there is none.
///
/// # Errors
/// [`CredentialError`].
pub fn read_made_token(path: &Path, kind: CredentialKind) -> Result<String, CredentialError> {
    read_made(
        path,
        match kind {
            CredentialKind::Agent => AGENT_PREFIX,
            CredentialKind::Approver => APPROVER_PREFIX,
        },
    )
}

fn read_made(path: &Path, prefix: &'static str) -> Result<String, CredentialError> {
    let token = read_token(path)?;
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let is_made = |hex: &str| hex.len() == TOKEN_HEX_DIGITS && hex.bytes().all(is_digit);
    match token.strip_prefix(prefix).is_some_and(is_made) {
        true => Ok(token),
        false => Err(CredentialError::Other { path: path.to_owned(), prefix }),
    }
}

fn read_or_create(path: &Path, prefix: &'static str) -> Result<String, CredentialError> {
    let failed = |source| CredentialError::Io { path: path.to_owned(), source };
    match read_made(path, prefix) {
        Err(CredentialError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
        result => return result,
    }
    let mut random = [0; 32];
    getrandom::fill(&mut random).map_err(CredentialError::NoRandomness)?;
    let token = format!("{prefix}{}", hex(&random));
    // Written aside and linked into place, so that a reader never sees half a token, and one of two processes that
    // start at once wins.
    let aside = path.with_extension(format!("{}.tmp", std::process::id()));
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&aside)
        .map_err(failed)?;
    file.write_all(format!("{token}\n").as_bytes()).and_then(|()| file.sync_all()).map_err(failed)?;
    let linked = fs::hard_link(&aside, path);
    fs::remove_file(&aside).map_err(failed)?;
    match linked {
        Ok(()) => Ok(token),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => read_made(path, prefix),
        Err(error) => Err(failed(error)),
    }
}

/// SHA-256 of a token in hex, as it appears in a bundle.
pub fn sha256_hex(token: &str) -> String {
    hex(digest(&SHA256, token.as_bytes()).as_ref())
}

fn hex(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from_digit(u32::from(value), 16).unwrap_or('0');
    let digits = bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 0xf)]);
    let mut text = String::with_capacity(2 * bytes.len());
    text.extend(digits);
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn bundle(more: &str) -> Bundle {
        let policy = "[[policy]]\nname = 'p'\nallowed_types = []\nmax_steps = 1\nmax_side_effects = 0\n";
        let files = [("portcullis.toml", format!("version = 1\n{more}")), ("policies/p.toml", policy.into())];
        Bundle::load(&files.into_iter().map(|(k, v)| (k.into(), v.into_bytes())).collect::<BTreeMap<_, _>>())
            .unwrap()
    }

    #[test]
    fn tokens_are_made_once_and_tell_agent_from_approver() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("credentials");
        let credentials = Credentials::load_or_create(&dir).unwrap();
        let again = Credentials::load_or_create(&dir).unwrap();
        assert_eq!(credentials.agent_sha256, again.agent_sha256);
        assert_ne!(credentials.agent_sha256, credentials.approver_sha256);
        let token = |file| read_token(&dir.join(file)).unwrap();
        let kind = |token: &str| credentials.authenticate(token, &bundle("")).map(|identity| identity.kind);
        assert_eq!(kind(&token(AGENT_FILE)), Some(CredentialKind::Agent));
        assert_eq!(kind(&token(APPROVER_FILE)), Some(CredentialKind::Approver));
        assert_eq!(kind("guess"), None);
        assert_eq!(kind(""), None);
    }

    #[test]
    fn exposed_and_empty_tokens_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        Credentials::load_or_create(folder.path()).unwrap();
        let path = folder.path().join(AGENT_FILE);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(matches!(read_token(&path), Err(CredentialError::Exposed { mode: 0o644, .. })));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(&path, "\n").unwrap();
        assert!(matches!(Credentials::load_or_create(folder.path()), Err(CredentialError::Empty(_))));
        // Nor is what anybody could guess a token, or the token of the other kind.
        let approver = credentials_approver(folder.path());
        for other in ["wrong", "pcag_", &"0".repeat(64), &format!("pcag_{}", "g".repeat(64)), &approver] {
            fs::write(&path, other).unwrap();
            let refused = Credentials::load_or_create(folder.path()).map(drop).unwrap_err().to_string();
            assert!(
                refused.contains("remove the file") && refused.contains(AGENT_FILE),
                "{other}: {refused}"
            );
        }
    }

    #[test]
    fn the_bundle_maps_tokens_to_principals() {
        let folder = tempfile::tempdir().unwrap();
        let credentials = Credentials::load_or_create(folder.path()).unwrap();
        let digest = sha256_hex("my-token");
        let bundle = bundle(&format!(
            "[[credential]]\ntoken_sha256 = '{digest}'\nprincipal = 'alice'\nroles = ['analyst']\npolicy = 'p'\n"
        ));
        let identity = credentials.authenticate("my-token", &bundle).unwrap();
        assert_eq!(identity.principal.id, "alice");
        assert_eq!(identity.principal.roles, ["analyst"]);
        assert_eq!(identity.policy.as_deref(), Some("p"));
        assert_eq!(identity.kind, CredentialKind::Agent);
        assert!(credentials.authenticate(&credentials_approver(folder.path()), &bundle).is_some());
    }

    fn credentials_approver(folder: &Path) -> String {
        read_token(&folder.join(APPROVER_FILE)).unwrap()
    }

    #[test]
    fn a_mapped_approver_replaces_the_one_of_this_machine() {
        let folder = tempfile::tempdir().unwrap();
        let credentials = Credentials::load_or_create(folder.path()).unwrap();
        let digest = sha256_hex("kept-elsewhere");
        let bundle = bundle(&format!(
            "[[credential]]\ntoken_sha256 = '{digest}'\nprincipal = 'ann'\nkind = 'approver'\n"
        ));
        assert_eq!(credentials.authenticate(&credentials_approver(folder.path()), &bundle), None);
        let ann = credentials.authenticate("kept-elsewhere", &bundle).unwrap();
        assert_eq!((ann.kind, ann.principal.id.as_str()), (CredentialKind::Approver, "ann"));
    }
}
