//! Keys as files.
//!
//! A key is 32 random bytes in one line of text, in a file that only its owner can read. The log's key has the form
//! of C2SP signed notes (`PRIVATE+KEY+<name>+<id>+<base64>`), so that others' tools can use it; a writer's key has
//! the same form, with `writer` for its name.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use portcullis_proof::Hex;
use portcullis_proof::log::leaf::LeafSigner;
use portcullis_proof::log::{KeyId, KeyKind, NoteSigner};

use super::error::LogError;
use super::folder::{LogPlaces, put, sync_folder};

/// The longest key file that is read, in bytes.
const KEY_FILE_BYTES_MAX: u64 = 1024;
/// The name in a writer's key file: heads name keys by their hash, so it says no more than what the file is.
const WRITER_NAME: &str = "writer";
const PREFIX: &str = "PRIVATE+KEY+";

/// The log's own key: it signs checkpoints, and, while no other admin is named, enrols writers.
#[derive(Debug)]
pub(super) struct LogKey {
    pub(super) notes: NoteSigner,
    pub(super) admin: LeafSigner,
}

impl LogPlaces {
    /// The file of the log's key.
    #[must_use]
    pub fn log_key(&self) -> PathBuf {
        self.keys.join("log.key")
    }

    /// The file of a writer's key.
    #[must_use]
    pub fn writer_key(&self, key: KeyId) -> PathBuf {
        let id = key.to_string();
        self.keys.join(format!("writer-{}.key", id.get(..16).unwrap_or(&id)))
    }
}

/// A new seed.
pub(super) fn new_seed(places: &LogPlaces) -> Result<[u8; 32], LogError> {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).map_err(|error| LogError::Io {
        path: places.keys.clone(),
        action: "draw a random key for",
        detail: error.to_string(),
    })?;
    Ok(seed)
}

/// Reads the log's key.
pub(super) fn load_log_key(places: &LogPlaces, origin: &str) -> Result<LogKey, LogError> {
    let path = places.log_key();
    let seed = read(&path, origin)?;
    log_key(&path, origin, &seed)
}

/// Creates the log's key if there is none.
pub(super) fn create_log_key(places: &LogPlaces, origin: &str) -> Result<LogKey, LogError> {
    let path = places.log_key();
    if !path.exists() {
        write_new(&path, origin, &new_seed(places)?)?;
    }
    load_log_key(places, origin)
}

fn log_key(path: &Path, origin: &str, seed: &[u8; 32]) -> Result<LogKey, LogError> {
    let notes = NoteSigner::from_seed(origin, KeyKind::Ed25519, seed)
        .map_err(|error| LogError::KeyMalformed { path: path.to_owned(), message: error.to_string() })?;
    Ok(LogKey { notes, admin: LeafSigner::from_seed(seed) })
}

/// Makes a writer's key.
pub(super) fn create_writer_key(places: &LogPlaces) -> Result<LeafSigner, LogError> {
    let seed = new_seed(places)?;
    let signer = LeafSigner::from_seed(&seed);
    write_new(&places.writer_key(signer.id()), WRITER_NAME, &seed)?;
    Ok(signer)
}

/// Reads a writer's key.
pub(super) fn load_writer_key(places: &LogPlaces, key: KeyId) -> Result<LeafSigner, LogError> {
    let path = places.writer_key(key);
    let signer = LeafSigner::from_seed(&read(&path, WRITER_NAME)?);
    if signer.id() == key {
        Ok(signer)
    } else {
        let message = format!("it is the key of writer `{}`, not of `{key}`", signer.id());
        Err(LogError::KeyMalformed { path, message })
    }
}

/// What a writer signs notes with, under the name of its store: what it hands over beside the log is signed by the key
/// that signs the heads of its runs.
///
/// # Errors
/// When its key file is missing, or holds another key.
pub fn writer_notes(places: &LogPlaces, key: KeyId, origin: &str) -> Result<NoteSigner, LogError> {
    load_writer_key(places, key)?;
    let path = places.writer_key(key);
    let seed = read(&path, WRITER_NAME)?;
    NoteSigner::from_seed(origin, KeyKind::Ed25519, &seed)
        .map_err(|error| LogError::KeyMalformed { path, message: error.to_string() })
}

/// Makes a key for a witness, or reads the one that is there.
///
/// # Errors
/// When the file cannot be read or written, or holds another key than one of this name.
pub fn witness_key(path: &Path, name: &str) -> Result<NoteSigner, LogError> {
    if !path.exists() {
        let mut seed = [0; 32];
        getrandom::fill(&mut seed).map_err(|error| LogError::Io {
            path: path.to_owned(),
            action: "draw a random key for",
            detail: error.to_string(),
        })?;
        write_new(path, name, &seed)?;
    }
    let seed = read(path, name)?;
    NoteSigner::from_seed(name, KeyKind::Cosignature, &seed)
        .map_err(|error| LogError::KeyMalformed { path: path.to_owned(), message: error.to_string() })
}

/// The id in the file is that of the name and the key as a log's key, whatever it is used for.
fn id_of(name: &str, seed: &[u8; 32]) -> Result<String, String> {
    let signer = NoteSigner::from_seed(name, KeyKind::Ed25519, seed).map_err(|error| error.to_string())?;
    Ok(Hex(signer.verifier().id().to_be_bytes()).to_string())
}

fn write_new(path: &Path, name: &str, seed: &[u8; 32]) -> Result<(), LogError> {
    let malformed = |message: String| LogError::KeyMalformed { path: path.to_owned(), message };
    let id = id_of(name, seed).map_err(malformed)?;
    let mut typed = [1u8; 33];
    typed.iter_mut().skip(1).zip(seed).for_each(|(place, byte)| *place = *byte);
    put(path, format!("{PREFIX}{name}+{id}+{}\n", STANDARD.encode(typed)).as_bytes(), 0o600)?;
    path.parent().map_or(Ok(()), sync_folder)
}

fn read(path: &Path, name: &str) -> Result<[u8; 32], LogError> {
    let malformed = |message: String| LogError::KeyMalformed { path: path.to_owned(), message };
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => LogError::KeyMissing { path: path.to_owned() },
        _ => LogError::io(path, "read", &error),
    };
    if fs::metadata(path).map_err(failed)?.len() > KEY_FILE_BYTES_MAX {
        return Err(malformed(format!("more than {KEY_FILE_BYTES_MAX} bytes")));
    }
    let text = fs::read_to_string(path).map_err(failed)?;
    let fields = text.strip_suffix('\n').unwrap_or(&text).strip_prefix(PREFIX);
    let fields = fields.ok_or_else(|| malformed(format!("it does not begin with `{PREFIX}`")))?;
    let mut parts = fields.splitn(3, '+');
    let (Some(found), Some(id), Some(key)) = (parts.next(), parts.next(), parts.next()) else {
        return Err(malformed("a key file is one line: prefix, name, id, key".to_owned()));
    };
    if found != name {
        return Err(malformed(format!("it is a key of `{}`, not of `{name}`", found.escape_debug())));
    }
    let typed: [u8; 33] = STANDARD
        .decode(key)
        .ok()
        .and_then(|bytes| bytes.try_into().ok())
        .ok_or_else(|| malformed("the key is not base64 of 33 bytes".to_owned()))?;
    let Some((1, seed)) = typed.split_first() else {
        return Err(malformed("the key is not an Ed25519 key".to_owned()));
    };
    let seed: [u8; 32] = seed.try_into().map_err(|_| malformed("the key has not 32 bytes".to_owned()))?;
    if id_of(name, &seed).map_err(malformed)? != id {
        return Err(malformed("its id does not match its name and key".to_owned()));
    }
    Ok(seed)
}
