//! The trust policy: whose checkpoints are believed (C2SP `tlog-policy`), and what else a reader knows already.
//!
//! ```text
//! log logs.example.com/gate+1c5a2cb8+AQ...            a log, by its key
//! witness w1 witness.example/w1+0af3b1c2+BA...        a witness
//! witness w2 witness.example/w2+7d10c9ee+BA...
//! group two all w1 w2                                 how many of whom
//! quorum two                                          what a checkpoint needs; `none` for a log alone
//! ```
//!
//! It comes from the reader and never from an export. A policy without witnesses is a policy: it says that its reader
//! takes the log's word that it shows everybody the same tree.
//!
//! [`TrustPolicy`] adds three lines of our own, which a reader of plain policies refuses: `admin`, `remember` and
//! `revoked`. A policy without them is a plain one.

mod read;

use crate::log::checkpoint::Checkpoint;
use crate::log::key::VerifierKey;
use crate::log::leaf::KeyId;
use crate::log::note::{Note, NoteError};
use crate::log::text::TextError;

/// The longest policy in bytes.
pub const POLICY_BYTES_MAX: usize = 256 << 10;

/// The most logs, witnesses, groups, members of one group, and lines of each kind of our own.
pub const POLICY_ITEMS_MAX: usize = 256;

/// A log whose checkpoints are believed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyLog {
    /// Its key. The key's name is the origin of its checkpoints.
    pub key: VerifierKey,
    /// Where it is; what that means is up to the application.
    pub url: Option<Vec<u8>>,
}

/// A witness whose cosignatures count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyWitness {
    /// Its name in the policy, which means nothing elsewhere.
    pub name: Vec<u8>,
    /// Its key.
    pub key: VerifierKey,
    /// Where it is.
    pub url: Option<Vec<u8>>,
}

/// What a name stands for, by its place among its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Member {
    Witness(usize),
    Group(usize),
}

/// Some of whom are needed.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Group {
    name: Vec<u8>,
    needed: usize,
    members: Vec<Member>,
}

/// Which checkpoints are believed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    logs: Vec<PolicyLog>,
    witnesses: Vec<PolicyWitness>,
    groups: Vec<Group>,
    /// `None` for `quorum none`.
    quorum: Option<Member>,
}

/// A policy with what else its reader knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustPolicy {
    /// Which checkpoints are believed.
    pub policy: Policy,
    /// Keys that may enrol and revoke writers. Without any, the keys of the logs may.
    pub admins: Vec<VerifierKey>,
    /// Checkpoints that the reader saw before, at most one for an origin and size.
    pub remembered: Vec<Checkpoint>,
    /// Writers that the reader knows to be revoked, each with the index of the first leaf that no longer counts.
    pub revoked: Vec<(KeyId, u64)>,
}

/// A checkpoint that satisfies a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endorsed {
    /// The checkpoint.
    pub checkpoint: Checkpoint,
    /// The witnesses that cosigned it, by their names in the policy, each with the time that it states.
    pub cosigned: Vec<(Vec<u8>, u64)>,
    /// Whether the policy asks for cosignatures at all.
    pub quorum: bool,
}

impl Endorsed {
    /// The earliest time by which a witness says that it had seen the tree, in seconds since 1970.
    #[must_use]
    pub fn seen_by(&self) -> Option<u64> {
        self.cosigned.iter().map(|(_, time)| *time).min()
    }
}

/// Why a checkpoint does not satisfy a policy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// It is not a checkpoint.
    #[error(transparent)]
    Text(#[from] TextError),
    /// The policy does not name its log.
    #[error("the policy names no log `{origin}`")]
    UnknownLog {
        /// The origin that the checkpoint states.
        origin: String,
    },
    /// A signature of a key in the policy does not hold, or the log did not sign.
    #[error(transparent)]
    Signature(#[from] NoteError),
    /// Too few witnesses cosigned.
    #[error("the quorum `{quorum}` is not reached: {cosigned} of {witnesses} witnesses cosigned")]
    Quorum {
        /// The name of the quorum.
        quorum: String,
        /// How many witnesses of the policy cosigned.
        cosigned: usize,
        /// How many the policy names.
        witnesses: usize,
    },
}

impl Policy {
    /// Reads a policy.
    ///
    /// # Errors
    /// The first line that is not as the format says.
    pub fn parse(bytes: &[u8]) -> Result<Policy, TextError> {
        read::read(bytes, false).map(|trust| trust.policy)
    }

    /// The logs.
    #[must_use]
    pub fn logs(&self) -> &[PolicyLog] {
        &self.logs
    }

    /// The witnesses.
    #[must_use]
    pub fn witnesses(&self) -> &[PolicyWitness] {
        &self.witnesses
    }

    /// Whether the policy asks for cosignatures.
    #[must_use]
    pub fn has_quorum(&self) -> bool {
        self.quorum.is_some()
    }

    /// Whether these witnesses are enough: for each, in the order of [`Policy::witnesses`], whether it counts. Nobody is
    /// enough for `quorum none`.
    #[must_use]
    pub fn is_quorum(&self, counts: &[bool]) -> bool {
        self.quorum.is_none_or(|quorum| self.reached(quorum, counts))
    }

    /// Checks a signed checkpoint.
    ///
    /// # Errors
    /// Why it is not to be believed.
    pub fn check(&self, note: &Note<'_>) -> Result<Endorsed, PolicyError> {
        let checkpoint = Checkpoint::parse(note.text())?;
        let of_origin = |key: &&VerifierKey| key.name() == checkpoint.origin();
        let (logs, witnesses) = (self.logs.iter().map(|log| &log.key), self.witnesses.iter());
        if !logs.clone().any(|key| of_origin(&key)) {
            return Err(PolicyError::UnknownLog { origin: checkpoint.origin().to_owned() });
        }
        // One bad signature of a key in the policy condemns the note, no matter who else signed it.
        let signed = note.verify(logs.chain(witnesses.map(|witness| &witness.key)).collect::<Vec<_>>())?;
        if !signed.iter().any(|signed| signed.time.is_none() && of_origin(&signed.key)) {
            return Err(note.unsigned().into());
        }
        let time = |witness: &PolicyWitness| {
            signed.iter().find(|signed| *signed.key == witness.key).and_then(|signed| signed.time)
        };
        let times: Vec<Option<u64>> = self.witnesses.iter().map(time).collect();
        let counts: Vec<bool> = times.iter().map(Option::is_some).collect();
        let cosigned: Vec<_> = self
            .witnesses
            .iter()
            .zip(&times)
            .filter_map(|(witness, time)| Some((witness.name.clone(), (*time)?)))
            .collect();
        let Some(quorum) = self.quorum else {
            return Ok(Endorsed { checkpoint, cosigned, quorum: false });
        };
        if !self.reached(quorum, &counts) {
            return Err(PolicyError::Quorum {
                quorum: String::from_utf8_lossy(self.name(quorum)).into_owned(),
                cosigned: cosigned.len(),
                witnesses: self.witnesses.len(),
            });
        }
        Ok(Endorsed { checkpoint, cosigned, quorum: true })
    }

    /// Whether enough witnesses cosigned. Groups name only what stands before them, so one pass decides them all.
    fn reached(&self, quorum: Member, counts: &[bool]) -> bool {
        let mut groups: Vec<bool> = Vec::with_capacity(self.groups.len());
        let holds = |member: &Member, groups: &[bool]| match member {
            Member::Witness(place) => counts.get(*place).copied().unwrap_or(false),
            Member::Group(place) => groups.get(*place).copied().unwrap_or(false),
        };
        for group in &self.groups {
            let count = group.members.iter().filter(|member| holds(member, &groups)).count();
            groups.push(count >= group.needed);
        }
        holds(&quorum, &groups)
    }

    fn name(&self, member: Member) -> &[u8] {
        match member {
            Member::Witness(place) => self.witnesses.get(place).map_or(&[], |witness| &witness.name),
            Member::Group(place) => self.groups.get(place).map_or(&[], |group| &group.name),
        }
    }

    /// The policy as a file, in one spelling.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut line = |words: &[&[u8]]| {
            out.extend_from_slice(&words.join(&b' '));
            out.push(b'\n');
        };
        for log in &self.logs {
            let key = log.key.to_string();
            line(&[&b"log"[..], key.as_bytes()].into_iter().chain(log.url.as_deref()).collect::<Vec<_>>());
        }
        for witness in &self.witnesses {
            let key = witness.key.to_string();
            let words = [&b"witness"[..], &witness.name, key.as_bytes()];
            line(&words.into_iter().chain(witness.url.as_deref()).collect::<Vec<_>>());
        }
        for group in &self.groups {
            let needed = group.needed.to_string();
            let words = [&b"group"[..], &group.name, needed.as_bytes()];
            let members = group.members.iter().map(|member| self.name(*member));
            line(&words.into_iter().chain(members).collect::<Vec<_>>());
        }
        line(&[b"quorum", self.quorum.map_or(b"none", |quorum| self.name(quorum))]);
        out
    }
}

impl TrustPolicy {
    /// Reads a policy that may have lines of our own.
    ///
    /// # Errors
    /// The first line that is not as the format says.
    pub fn parse(bytes: &[u8]) -> Result<TrustPolicy, TextError> {
        read::read(bytes, true)
    }

    /// The keys that may enrol and revoke writers in the log of an origin.
    pub fn admins<'a>(&'a self, origin: &'a str) -> impl Iterator<Item = &'a VerifierKey> {
        let logs = self.policy.logs.iter().map(|log| &log.key).filter(move |key| key.name() == origin);
        let of_log = self.admins.is_empty();
        self.admins.iter().chain(logs.filter(move |_| of_log))
    }

    /// The policy as a file, in one spelling.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = self.policy.to_bytes();
        for admin in &self.admins {
            out.extend_from_slice(format!("admin {admin}\n").as_bytes());
        }
        for known in &self.remembered {
            let root = crate::log::text::base64_text(&known.root().0);
            out.extend_from_slice(
                format!("remember {} {} {root}\n", known.origin(), known.size()).as_bytes(),
            );
        }
        for (key, index) in &self.revoked {
            out.extend_from_slice(format!("revoked {key} {index}\n").as_bytes());
        }
        out
    }
}
