//! What files have in them.

use portcullis_core::id::Digest;
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, SHA256, digest};

use super::{Found, fail};

pub(super) fn sha256(content: &[u8]) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest(&SHA256, content).as_ref());
    bytes
}

/// The name that git gives an object, in hex: by SHA-1, or by SHA-256 where names are as long as that.
pub(super) fn git_name(kind: &str, content: &[u8], digits: usize) -> String {
    let algorithm = if digits == 64 { &SHA256 } else { &SHA1_FOR_LEGACY_USE_ONLY };
    let mut object = format!("{kind} {}\0", content.len()).into_bytes();
    object.extend_from_slice(content);
    hex(digest(algorithm, &object).as_ref())
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(super) fn contains(content: &[u8], path: &str, text: &str) -> Found {
    let found = content.windows(text.len().max(1)).position(|window| window == text.as_bytes());
    match found {
        Some(at) => Ok(format!("`{path}` has it at byte {at}")),
        None => fail(format!("`{path}` does not have the text in it")),
    }
}

pub(super) fn has_hash(content: &[u8], path: &str, wanted: &Digest) -> Found {
    let found = sha256(content);
    match found == *wanted.as_bytes() {
        true => Ok(format!("`{path}` has this content")),
        false => fail(format!("`{path}` has the digest {}", hex(&found))),
    }
}
