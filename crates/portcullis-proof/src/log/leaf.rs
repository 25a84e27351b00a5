//! The leaves of the log: who may write, and the head of each run.
//!
//! ```text
//! enrol    = "portcullis/enrol/v1\0"    lp(origin) type public-key lp(label) admin                         signature
//! revoke   = "portcullis/revoke/v1\0"   lp(origin) writer lp(reason) admin                                 signature
//! epoch    = "portcullis/epoch/v1\0"    lp(origin) writer u64(epoch) u64(runs) last-head                   signature
//! run-head = "portcullis/run-head/v1\0" lp(origin) run segment u64(ordinal) parent-segment parent-link
//!            writer u64(epoch) u64(run_no) state u64(count) link bundle previous-head signer               signature
//! ```
//!
//! A signature is Ed25519 over everything before it. What is signed starts with the label and so holds a zero byte,
//! which no note may: a key that signs notes too cannot be made to say the one by the other.
//!
//! A writer numbers the segments that it opens densely, from 0 in every epoch, so that one that was left out leaves a
//! hole; a new epoch, which starts the count again, is a leaf itself. A head names the head before it of its segment.

use ed25519_dalek::{Signer as _, SigningKey};

use crate::chain::{Digest, Hex, Id, Parent};
use crate::hash::Sha256;
use crate::log::key::{SignatureInvalid, check_signature, public_key};
use crate::log::tile::ENTRY_BYTES_MAX;
use crate::log::tree::leaf_hash;
use crate::trust::{ORIGIN_BYTES_MAX, check_origin};

const ENROL_LABEL: &[u8] = b"portcullis/enrol/v1\0";
const REVOKE_LABEL: &[u8] = b"portcullis/revoke/v1\0";
const EPOCH_LABEL: &[u8] = b"portcullis/epoch/v1\0";
const HEAD_LABEL: &[u8] = b"portcullis/run-head/v1\0";
const KEY_LABEL: &[u8] = b"portcullis/key/v1\0";

/// The type of an Ed25519 key, the only one.
const ED25519: u8 = 0x01;

/// The longest label of a writer, and the longest reason of a revocation, in bytes.
pub const LEAF_TEXT_BYTES_MAX: usize = 256;

/// The length of a signature.
const SIGNATURE_BYTES: usize = 64;

/// The id of a key in leaves: `H("portcullis/key/v1\0" || type || public key)`.
pub type KeyId = Digest;

/// The id of an Ed25519 key.
#[must_use]
pub fn key_id(public: &[u8; 32]) -> KeyId {
    let mut hash = Sha256::new();
    hash.update(KEY_LABEL);
    hash.update([ED25519]);
    hash.update(public);
    Hex(hash.finish())
}

/// How a segment of a run stands, as its head says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RunState {
    /// It has begun. Logged before its first effect.
    Open,
    /// It goes on.
    Progress,
    /// Its writer ended it.
    Closed,
    /// Its writer died; a successor ended it.
    Abandoned,
}

impl RunState {
    pub(super) const ALL: [RunState; 4] =
        [RunState::Open, RunState::Progress, RunState::Closed, RunState::Abandoned];

    /// The word for people.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            RunState::Open => "open",
            RunState::Progress => "progress",
            RunState::Closed => "closed",
            RunState::Abandoned => "abandoned",
        }
    }

    /// Whether no head of the segment follows.
    #[must_use]
    pub fn is_final(self) -> bool {
        matches!(self, RunState::Closed | RunState::Abandoned)
    }
}

/// Where a segment of a run stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunHead {
    /// The log, and the store that the run was written in.
    pub origin: String,
    /// The run.
    pub run: Id,
    /// The segment.
    pub segment: Id,
    /// The number of segments of the run before it.
    pub ordinal: u64,
    /// The segment before, none for the first.
    pub parent: Option<Parent>,
    /// The writer that opened the segment.
    pub writer: KeyId,
    /// The epoch of the writer in which it did.
    pub epoch: u64,
    /// The number of segments that the writer opened in this epoch before.
    pub run_no: u64,
    /// The state of the segment.
    pub state: RunState,
    /// The seq of its last event, or of the last event before the segment if it has none.
    pub count: u64,
    /// The link of that event, or the first link of the segment if it has none.
    pub link: Digest,
    /// The digest of the bundle in force.
    pub bundle: Digest,
    /// The leaf hash of the head before it of the segment, or `None` for `open`.
    pub previous: Option<Digest>,
    /// The signer: the writer, or its successor for `abandoned`.
    pub signer: KeyId,
}

/// What a leaf says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Leaf {
    /// A key may write from here on.
    Enrol {
        /// The log.
        origin: String,
        /// The Ed25519 public key of the writer.
        public: [u8; 32],
        /// What people call it.
        label: String,
        /// Who signs.
        admin: KeyId,
    },
    /// A key may not write from here on.
    Revoke {
        /// The log.
        origin: String,
        /// The key.
        writer: KeyId,
        /// Why.
        reason: String,
        /// Who signs.
        admin: KeyId,
    },
    /// A writer lost count and starts again.
    Epoch {
        /// The log.
        origin: String,
        /// The writer, who signs.
        writer: KeyId,
        /// The number of the new epoch, from 1. Epoch 0 begins with the enrolment.
        epoch: u64,
        /// The number of segments of the epoch before, as far as the writer knows.
        runs: u64,
        /// The leaf hash of the last head that the writer knows of.
        last: Option<Digest>,
    },
    /// Where a segment of a run stands.
    Head(RunHead),
}

/// A leaf with its signature, as it appears in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedLeaf {
    /// What it says. Not to be believed before its signature is verified.
    pub leaf: Leaf,
    bytes: Vec<u8>,
}

/// Why bytes are not a leaf, or a leaf cannot be written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("byte {byte} of the leaf: {message}")]
pub struct LeafError {
    /// The offset.
    pub byte: u64,
    /// What is wrong there.
    pub message: String,
}

/// A key that signs leaves. It is wiped from memory when dropped.
pub struct LeafSigner(SigningKey);

impl LeafSigner {
    /// The key of a seed of 32 random bytes.
    #[must_use]
    pub fn from_seed(seed: &[u8; 32]) -> LeafSigner {
        LeafSigner(SigningKey::from_bytes(seed))
    }

    /// The public key, as an enrolment states it.
    #[must_use]
    pub fn public(&self) -> [u8; 32] {
        self.0.verifying_key().to_bytes()
    }

    /// The id of the key.
    #[must_use]
    pub fn id(&self) -> KeyId {
        key_id(&self.public())
    }
}

impl std::fmt::Debug for LeafSigner {
    /// Says whose key it is, and nothing of the key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("LeafSigner").field(&self.id()).finish()
    }
}

impl Leaf {
    /// The log that the leaf is of.
    #[must_use]
    pub fn origin(&self) -> &str {
        match self {
            Leaf::Enrol { origin, .. } | Leaf::Revoke { origin, .. } | Leaf::Epoch { origin, .. } => origin,
            Leaf::Head(head) => &head.origin,
        }
    }

    /// The id of the key that signs it.
    #[must_use]
    pub fn signer(&self) -> KeyId {
        match self {
            Leaf::Enrol { admin, .. } | Leaf::Revoke { admin, .. } => *admin,
            Leaf::Epoch { writer, .. } => *writer,
            Leaf::Head(head) => head.signer,
        }
    }

    /// Signs the leaf.
    ///
    /// # Errors
    /// When the leaf contradicts itself, or names another key as its signer.
    pub fn sign(self, key: &LeafSigner) -> Result<SignedLeaf, LeafError> {
        if key.id() != self.signer() {
            let message =
                format!("the leaf is to be signed by key `{}`, not by `{}`", self.signer(), key.id());
            return Err(LeafError { byte: 0, message });
        }
        let mut bytes = self.body();
        let signature = key.0.sign(&bytes);
        bytes.extend_from_slice(&signature.to_bytes());
        // What is written has to be readable, so the rules of reading hold for it too.
        let written = SignedLeaf::parse(&bytes)?;
        if written.leaf == self {
            Ok(written)
        } else {
            Err(LeafError {
                byte: 0,
                message: "the leaf has no encoding; a hash in it is all zeros".to_owned(),
            })
        }
    }

    /// What is signed.
    fn body(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(512);
        match self {
            Leaf::Enrol { origin, public, label, admin } => {
                out.extend_from_slice(ENROL_LABEL);
                part(&mut out, origin);
                out.push(ED25519);
                out.extend_from_slice(public);
                part(&mut out, label);
                out.extend_from_slice(&admin.0);
            }
            Leaf::Revoke { origin, writer, reason, admin } => {
                out.extend_from_slice(REVOKE_LABEL);
                part(&mut out, origin);
                out.extend_from_slice(&writer.0);
                part(&mut out, reason);
                out.extend_from_slice(&admin.0);
            }
            Leaf::Epoch { origin, writer, epoch, runs, last } => {
                out.extend_from_slice(EPOCH_LABEL);
                part(&mut out, origin);
                out.extend_from_slice(&writer.0);
                out.extend_from_slice(&epoch.to_be_bytes());
                out.extend_from_slice(&runs.to_be_bytes());
                out.extend_from_slice(&last.unwrap_or(Hex([0; 32])).0);
            }
            Leaf::Head(head) => head.body(&mut out),
        }
        out
    }
}

impl RunHead {
    fn body(&self, out: &mut Vec<u8>) {
        let zero = Hex([0; 32]);
        out.extend_from_slice(HEAD_LABEL);
        part(out, &self.origin);
        out.extend_from_slice(&self.run.0);
        out.extend_from_slice(&self.segment.0);
        out.extend_from_slice(&self.ordinal.to_be_bytes());
        out.extend_from_slice(&self.parent.map_or([0; 16], |parent| parent.segment.0));
        out.extend_from_slice(&self.parent.map_or(zero, |parent| parent.link).0);
        out.extend_from_slice(&self.writer.0);
        out.extend_from_slice(&self.epoch.to_be_bytes());
        out.extend_from_slice(&self.run_no.to_be_bytes());
        out.push(self.state as u8);
        out.extend_from_slice(&self.count.to_be_bytes());
        out.extend_from_slice(&self.link.0);
        out.extend_from_slice(&self.bundle.0);
        out.extend_from_slice(&self.previous.unwrap_or(zero).0);
        out.extend_from_slice(&self.signer.0);
    }
}

/// Writes `lp(text)`; texts are far below what a `u32` can state.
fn part(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(&u32::try_from(text.len()).unwrap_or(u32::MAX).to_be_bytes());
    out.extend_from_slice(text.as_bytes());
}

impl SignedLeaf {
    /// Reads a leaf.
    ///
    /// # Errors
    /// The first byte that is not as the formats say.
    pub fn parse(bytes: &[u8]) -> Result<SignedLeaf, LeafError> {
        if bytes.len() > ENTRY_BYTES_MAX {
            let message = format!("{} bytes; a leaf has at most {ENTRY_BYTES_MAX}", bytes.len());
            return Err(LeafError { byte: 0, message });
        }
        let mut fields = Fields { all: bytes, rest: bytes };
        let leaf = fields.leaf()?;
        fields.bytes::<SIGNATURE_BYTES>()?;
        if !fields.rest.is_empty() {
            return Err(fields.fail("something follows the signature"));
        }
        Ok(SignedLeaf { leaf, bytes: bytes.to_vec() })
    }

    /// The bytes that are in the log.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The hash of the leaf in the tree.
    #[must_use]
    pub fn hash(&self) -> Digest {
        leaf_hash(&self.bytes)
    }

    /// The offset of the signature.
    pub(super) fn signature_at(&self) -> u64 {
        self.bytes.len().saturating_sub(SIGNATURE_BYTES) as u64
    }

    /// The offset of the origin.
    pub(super) fn origin_at(&self) -> u64 {
        let label = match self.leaf {
            Leaf::Enrol { .. } => ENROL_LABEL,
            Leaf::Revoke { .. } => REVOKE_LABEL,
            Leaf::Epoch { .. } => EPOCH_LABEL,
            Leaf::Head(_) => HEAD_LABEL,
        };
        label.len() as u64 + 4
    }

    /// Checks the signature with the public key of the signer's id.
    ///
    /// # Errors
    /// When the key is another one, or the signature does not hold.
    pub fn verify(&self, public: &[u8; 32]) -> Result<(), SignatureInvalid> {
        if key_id(public) != self.leaf.signer() {
            return Err(SignatureInvalid);
        }
        let key = public_key(public).map_err(|_| SignatureInvalid)?;
        let at = self.bytes.len().checked_sub(SIGNATURE_BYTES).ok_or(SignatureInvalid)?;
        let (body, signature) = self.bytes.split_at_checked(at).ok_or(SignatureInvalid)?;
        check_signature(&key, body, signature)
    }
}

/// What is left of a leaf that is read.
struct Fields<'a> {
    all: &'a [u8],
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    fn fail(&self, message: impl Into<String>) -> LeafError {
        LeafError { byte: (self.all.len() - self.rest.len()) as u64, message: message.into() }
    }

    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], LeafError> {
        let Some((bytes, rest)) = self.rest.split_first_chunk::<N>() else {
            return Err(self.fail(format!("{} bytes are left, {N} belong here", self.rest.len())));
        };
        self.rest = rest;
        Ok(*bytes)
    }

    fn hex<const N: usize>(&mut self) -> Result<Hex<N>, LeafError> {
        self.bytes().map(Hex)
    }

    fn number(&mut self) -> Result<u64, LeafError> {
        self.bytes().map(u64::from_be_bytes)
    }

    /// A hash that may be missing, which is written as zeros.
    fn optional<const N: usize>(&mut self) -> Result<Option<Hex<N>>, LeafError> {
        self.hex().map(|hex| (hex != Hex([0; N])).then_some(hex))
    }

    fn text(&mut self, max: usize) -> Result<&'a str, LeafError> {
        let start = self.rest;
        let length = u32::from_be_bytes(self.bytes()?) as usize;
        let text = if length <= max { self.rest.split_at_checked(length) } else { None };
        let Some((text, rest)) = text else {
            self.rest = start;
            return Err(
                self.fail(format!("a text of {length} bytes; it may have {max}, and has to be there"))
            );
        };
        match std::str::from_utf8(text) {
            Ok(text) if !text.chars().any(char::is_control) => {
                self.rest = rest;
                Ok(text)
            }
            _ => Err(self.fail("the text is not UTF-8 without control characters")),
        }
    }

    fn origin(&mut self) -> Result<String, LeafError> {
        let before = self.rest;
        let origin = self.text(ORIGIN_BYTES_MAX)?;
        check_origin(origin).map_err(|message| Fields { all: self.all, rest: before }.fail(message))?;
        Ok(origin.to_owned())
    }

    fn leaf(&mut self) -> Result<Leaf, LeafError> {
        let mut is = |label: &[u8]| {
            let rest = self.rest.strip_prefix(label);
            self.rest = rest.unwrap_or(self.rest);
            rest.is_some()
        };
        if is(HEAD_LABEL) {
            self.head().map(Leaf::Head)
        } else if is(ENROL_LABEL) {
            let origin = self.origin()?;
            let [ED25519] = self.bytes()? else {
                return Err(self.fail("the key before this byte is not of type 0x01, Ed25519"));
            };
            let public = self.bytes()?;
            public_key(&public).map_err(|message| self.fail(message))?;
            let label = self.text(LEAF_TEXT_BYTES_MAX)?.to_owned();
            Ok(Leaf::Enrol { origin, public, label, admin: self.hex()? })
        } else if is(REVOKE_LABEL) {
            let (origin, writer) = (self.origin()?, self.hex()?);
            let reason = self.text(LEAF_TEXT_BYTES_MAX)?.to_owned();
            Ok(Leaf::Revoke { origin, writer, reason, admin: self.hex()? })
        } else if is(EPOCH_LABEL) {
            let (origin, writer, epoch) = (self.origin()?, self.hex()?, self.number()?);
            if epoch == 0 {
                return Err(self.fail("epoch 0 begins with the enrolment and has no leaf"));
            }
            Ok(Leaf::Epoch { origin, writer, epoch, runs: self.number()?, last: self.optional()? })
        } else {
            Err(self.fail("the leaf is of a kind or version that this verifier does not know"))
        }
    }

    fn head(&mut self) -> Result<RunHead, LeafError> {
        let (origin, run, segment, ordinal) = (self.origin()?, self.hex()?, self.hex()?, self.number()?);
        let parent = match (self.optional()?, self.optional()?) {
            (None, None) => None,
            (Some(segment), Some(link)) => Some(Parent { segment, link }),
            _ => return Err(self.fail("the parent before this byte has a segment or a link, not both")),
        };
        if parent.is_some() != (ordinal > 0) {
            return Err(self.fail("the first segment, and no other, is without parent"));
        }
        let (writer, epoch, run_no) = (self.hex()?, self.number()?, self.number()?);
        let [state] = self.bytes()?;
        let Some(state) = RunState::ALL.get(usize::from(state)).copied() else {
            return Err(self.fail(format!("state {state}; there are 0 to 3")));
        };
        let (count, link, bundle) = (self.number()?, self.hex()?, self.hex()?);
        let previous = self.optional()?;
        if previous.is_none() != (state == RunState::Open) {
            return Err(self.fail("an open head, and no other, is without a head before it"));
        }
        let signer = self.hex()?;
        if signer != writer && state != RunState::Abandoned {
            return Err(self.fail("only an abandoned segment may be ended by another key than its writer's"));
        }
        Ok(RunHead {
            origin,
            run,
            segment,
            ordinal,
            parent,
            writer,
            epoch,
            run_no,
            state,
            count,
            link,
            bundle,
            previous,
            signer,
        })
    }
}
