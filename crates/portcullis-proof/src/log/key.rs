//! Keys of notes: who may sign which text (C2SP `signed-note`, verifier keys).
//!
//! ```text
//! vkey   = <name>+<key id, 8 hex digits>+base64(<type> || <public key>)
//! key id = first 4 bytes of SHA-256(<name> "\n" <type> <public key>)
//! ```
//!
//! Two types are known, both Ed25519: `0x01` signs the text of a note, `0x04` the text with a time (a cosignature). The
//! type is part of the key id, so a log's signature never passes for a witness's. Signatures are checked one by one and
//! strictly: a batch can accept what a single check refuses.

use std::fmt;
use std::str::FromStr;

use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};

use crate::chain::Hex;
use crate::hash::Sha256;
use crate::log::text::{base64_bytes, base64_text};

/// The longest key name in bytes.
pub const KEY_NAME_BYTES_MAX: usize = 256;

/// The last time that a cosignature can state, in seconds since 1970.
pub const TIME_MAX: u64 = i64::MAX as u64;

/// What a key signs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeyKind {
    /// The text of a note: type `0x01`, the key of a log.
    Ed25519,
    /// The text of a checkpoint and a time: type `0x04`, the key of a witness.
    Cosignature,
}

impl KeyKind {
    fn byte(self) -> u8 {
        match self {
            KeyKind::Ed25519 => 0x01,
            KeyKind::Cosignature => 0x04,
        }
    }
}

/// Why a text is not a verifier key, or a key cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The name cannot be in a signature line.
    #[error(
        "key name `{name}`: it has 1 to {KEY_NAME_BYTES_MAX} bytes, no white space, no control characters, no `+`"
    )]
    Name {
        /// The name, cut to a length that can be shown.
        name: String,
    },
    /// The text does not have the three parts.
    #[error("expected a verifier key, `NAME+ID+KEY`")]
    Form,
    /// The key material is not base64.
    #[error("the verifier key of `{name}`: {message}")]
    Material {
        /// The name of the key.
        name: String,
        /// What is wrong.
        message: String,
    },
    /// The key id is not that of name and key.
    #[error("the verifier key of `{name}` states id `{found}`, name and key have `{expected}`")]
    Id {
        /// The name of the key.
        name: String,
        /// The id in the text.
        found: String,
        /// The id that follows from name and key.
        expected: String,
    },
}

/// A key that signatures of notes are checked with. `Display` and `FromStr` are its vkey.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifierKey {
    name: String,
    id: u32,
    kind: KeyKind,
    public: VerifyingKey,
}

/// Whether a name can be in a signature line.
pub(super) fn check_name(name: &str) -> Result<(), KeyError> {
    let bad = |c: char| c.is_whitespace() || c.is_control() || c == '+';
    if name.is_empty() || name.len() > KEY_NAME_BYTES_MAX || name.chars().any(bad) {
        return Err(KeyError::Name {
            name: name.chars().take(80).collect::<String>().escape_debug().to_string(),
        });
    }
    Ok(())
}

/// Reads an Ed25519 public key. One under which many signatures hold for any text is refused, and so is one that is
/// not in its one spelling (RFC 8032 §5.1.3): programs that disagree on it would disagree on all that it signed.
pub(super) fn public_key(bytes: &[u8; 32]) -> Result<VerifyingKey, &'static str> {
    let [low, middle @ .., high] = bytes;
    // A y of 2^255 - 19 or more, below the bit that is the sign of x.
    if high & 0x7f == 0x7f && middle.iter().all(|byte| *byte == 0xff) && *low >= 0xed {
        return Err("the public key is not in its one spelling");
    }
    let key = VerifyingKey::from_bytes(bytes).map_err(|_| "the bytes are not an Ed25519 public key")?;
    if key.is_weak() { Err("the public key is of low order, any text would be signed") } else { Ok(key) }
}

impl VerifierKey {
    /// A key by its parts.
    ///
    /// # Errors
    /// When the name or the key cannot be used.
    pub fn new(name: &str, kind: KeyKind, public: &[u8; 32]) -> Result<VerifierKey, KeyError> {
        check_name(name)?;
        let public = public_key(public)
            .map_err(|message| KeyError::Material { name: name.to_owned(), message: message.to_owned() })?;
        let mut hash = Sha256::new();
        hash.update(name.as_bytes());
        hash.update([b'\n', kind.byte()]);
        hash.update(public.as_bytes());
        let [a, b, c, d, ..] = hash.finish();
        Ok(VerifierKey { name: name.to_owned(), id: u32::from_be_bytes([a, b, c, d]), kind, public })
    }

    /// The name in its signature lines.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The id in its signature lines.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.id
    }

    /// What it signs.
    #[must_use]
    pub fn kind(&self) -> KeyKind {
        self.kind
    }

    /// The public key.
    #[must_use]
    pub fn public(&self) -> &[u8; 32] {
        self.public.as_bytes()
    }

    /// Checks the signature of bytes that are no note.
    pub(super) fn verify_bytes(&self, message: &[u8], signature: &[u8]) -> Result<(), SignatureInvalid> {
        check_signature(&self.public, message, signature)
    }

    /// Checks the signature of a text; of a cosignature the answer is its time.
    ///
    /// # Errors
    /// When the signature is not of this key and text.
    pub fn verify(&self, text: &str, signature: &[u8]) -> Result<Option<u64>, SignatureInvalid> {
        match self.kind {
            KeyKind::Ed25519 => {
                check_signature(&self.public, text.as_bytes(), signature)?;
                Ok(None)
            }
            KeyKind::Cosignature => {
                let (time, signature) = signature.split_first_chunk::<8>().ok_or(SignatureInvalid)?;
                let time = u64::from_be_bytes(*time);
                if time > TIME_MAX {
                    return Err(SignatureInvalid);
                }
                check_signature(&self.public, cosigned(text, time).as_bytes(), signature)?;
                Ok(Some(time))
            }
        }
    }
}

/// A signature does not hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the signature does not hold")]
pub struct SignatureInvalid;

/// Checks one Ed25519 signature, strictly.
pub(super) fn check_signature(
    key: &VerifyingKey,
    message: &[u8],
    signature: &[u8],
) -> Result<(), SignatureInvalid> {
    let signature = Signature::from_slice(signature).map_err(|_| SignatureInvalid)?;
    key.verify_strict(message, &signature).map_err(|_| SignatureInvalid)
}

/// What a witness signs of a checkpoint.
fn cosigned(text: &str, time: u64) -> String {
    format!("cosignature/v1\ntime {time}\n{text}")
}

impl fmt::Display for VerifierKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut material = vec![self.kind.byte()];
        material.extend_from_slice(self.public.as_bytes());
        write!(f, "{}+{}+{}", self.name, Hex(self.id.to_be_bytes()), base64_text(&material))
    }
}

impl FromStr for VerifierKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<VerifierKey, KeyError> {
        let mut parts = text.splitn(3, '+');
        let (Some(name), Some(id), Some(material)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(KeyError::Form);
        };
        check_name(name)?;
        let fail = |message: String| KeyError::Material { name: name.to_owned(), message };
        let material = base64_bytes(material).map_err(fail)?;
        let kind = match material.first() {
            Some(0x01) => KeyKind::Ed25519,
            Some(0x04) => KeyKind::Cosignature,
            Some(other) => {
                return Err(fail(format!(
                    "signature type 0x{other:02x}; this verifier knows 0x01 and 0x04, both Ed25519"
                )));
            }
            None => return Err(fail("the key is empty".to_owned())),
        };
        let public = material.get(1..).and_then(|public| <&[u8; 32]>::try_from(public).ok());
        let public = public.ok_or_else(|| fail("an Ed25519 key has 32 bytes after its type".to_owned()))?;
        let key = VerifierKey::new(name, kind, public)?;
        let expected = Hex(key.id.to_be_bytes()).to_string();
        if id != expected {
            let found = id.chars().take(80).collect::<String>().escape_debug().to_string();
            return Err(KeyError::Id { name: name.to_owned(), found, expected });
        }
        Ok(key)
    }
}

/// A key that signs notes. Where its seed is kept is up to the caller; it is wiped from memory when dropped.
pub struct NoteSigner {
    secret: SigningKey,
    verifier: VerifierKey,
}

impl NoteSigner {
    /// The key of a seed of 32 random bytes.
    ///
    /// # Errors
    /// When the name cannot be used.
    pub fn from_seed(name: &str, kind: KeyKind, seed: &[u8; 32]) -> Result<NoteSigner, KeyError> {
        let secret = SigningKey::from_bytes(seed);
        let verifier = VerifierKey::new(name, kind, secret.verifying_key().as_bytes())?;
        Ok(NoteSigner { secret, verifier })
    }

    /// The key that its signatures are checked with.
    #[must_use]
    pub fn verifier(&self) -> &VerifierKey {
        &self.verifier
    }

    /// The signature of bytes that are no note, and cannot be taken for one.
    pub(super) fn sign_bytes(&self, message: &[u8]) -> [u8; 64] {
        self.secret.sign(message).to_bytes()
    }

    /// The signature line of a text. `time` is what a cosignature states, in seconds since 1970; other keys leave it out.
    ///
    /// # Errors
    /// When the time is past [`TIME_MAX`].
    pub fn sign(&self, text: &str, time: u64) -> Result<String, TimeOutside> {
        let mut signature = self.verifier.id.to_be_bytes().to_vec();
        let message = match self.verifier.kind {
            KeyKind::Ed25519 => text.to_owned(),
            KeyKind::Cosignature if time > TIME_MAX => return Err(TimeOutside),
            KeyKind::Cosignature => {
                signature.extend_from_slice(&time.to_be_bytes());
                cosigned(text, time)
            }
        };
        signature.extend_from_slice(&self.secret.sign(message.as_bytes()).to_bytes());
        Ok(format!("— {} {}\n", self.verifier.name, base64_text(&signature)))
    }
}

/// A cosignature cannot state such a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the time is past {TIME_MAX} seconds since 1970, which no cosignature can state")]
pub struct TimeOutside;

impl fmt::Debug for NoteSigner {
    /// Says whose key it is, and nothing of the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NoteSigner").field("verifier", &self.verifier.to_string()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes of 2^255 - 256 + `low`, with the sign of x.
    fn spelt(low: u8, sign: u8) -> [u8; 32] {
        let mut bytes = [0xff; 32];
        (bytes[0], bytes[31]) = (low, 0x7f | sign << 7);
        bytes
    }

    #[test]
    fn a_public_key_has_one_spelling() {
        let refused = |bytes| public_key(&bytes).is_err_and(|why| why.contains("one spelling"));
        for sign in [0, 1] {
            assert!((0xed..=0xff).all(|low| refused(spelt(low, sign))));
            assert!((0..0xed).all(|low| !refused(spelt(low, sign))));
            assert!((0..0xed).any(|low| public_key(&spelt(low, sign)).is_ok()));
        }
        let mut smaller = spelt(0xff, 0);
        smaller[15] = 0xfe;
        assert!(!refused(smaller));
        (smaller[15], smaller[31]) = (0xff, 0x3f);
        assert!(!refused(smaller));
    }
}
