//! Hashes of files.

use portcullis_proof::Hex;
use ring::digest::{SHA256, digest};

/// A SHA-256 in a file, in hexadecimal.
pub type Sha = Hex<32>;

/// The hash of bytes.
#[must_use]
pub fn sha256(bytes: &[u8]) -> Sha {
    let mut hash = Hex([0; 32]);
    hash.0.copy_from_slice(digest(&SHA256, bytes).as_ref());
    hash
}
