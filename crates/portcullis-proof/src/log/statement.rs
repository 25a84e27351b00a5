//! Statements about verified work, signed by a log's key: in-toto statements in DSSE envelopes.
//!
//! ```text
//! envelope = {"payloadType":"application/vnd.in-toto+json","payload":base64(S),"signatures":[{"keyid":<vkey>,"sig":...}]}
//! signed   = "DSSEv1" SP len(type) SP type SP len(S) SP S          the lengths in decimal, of bytes
//! ```
//!
//! `S` says which event of which run verified the item, by the hash of that event, so that who has an export of the run can
//! find it there. Others' tools for in-toto and DSSE read it; specs/work.md §6 says what is in it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::chain::{Digest, Id};
use crate::log::key::{KeyKind, NoteSigner, VerifierKey};
use crate::log::text::{base64_bytes, base64_text};

/// What an envelope says that it holds.
pub const PAYLOAD_TYPE: &str = "application/vnd.in-toto+json";
/// The version of in-toto.
pub const STATEMENT_TYPE: &str = "https://in-toto.io/Statement/v1";
/// What is said.
pub const PREDICATE_TYPE: &str = "https://github.com/portcullis-gate/portcullis/work-item/v1";
/// The longest envelope in bytes.
pub const ENVELOPE_BYTES_MAX: usize = 1 << 20;
/// The most signatures of an envelope that are read.
const SIGNATURES_MAX: usize = 16;
/// The state of an item that can be stated.
const VERIFIED: &str = "verified";

/// What is stated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Statement {
    /// [`STATEMENT_TYPE`].
    #[serde(rename = "_type")]
    pub kind: String,
    /// The event that verified the item.
    pub subject: Vec<Subject>,
    /// [`PREDICATE_TYPE`].
    #[serde(rename = "predicateType")]
    pub predicate_type: String,
    /// The item.
    pub predicate: Predicate,
}

/// What a statement is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subject {
    /// `run RUN event SEQ`.
    pub name: String,
    /// Its hash.
    pub digest: SubjectDigest,
}

/// The hash of an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubjectDigest {
    /// As the chain has it: see `specs/run-chain.md`.
    #[serde(rename = "portcullis-event/v1")]
    pub event: Digest,
}

/// An item as it was when it was verified.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Predicate {
    /// The run.
    pub run: Id,
    /// Number of the event that verified it.
    pub event: u64,
    /// When.
    pub at: String,
    /// Who: `gate`, or `approver:NAME`.
    pub by: String,
    /// Number of the item.
    pub item: u64,
    /// What was to be done.
    pub title: String,
    /// `verified`.
    pub state: String,
    /// `checked` or `attested`.
    pub verified: String,
    /// Whether the evidence is stale by now.
    pub stale: bool,
    /// What it was measured by.
    pub criteria: Vec<Value>,
    /// What came of each.
    pub results: Vec<Value>,
    /// The calls that the claim cites.
    pub evidence: Vec<Value>,
}

/// A signed statement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Envelope {
    #[serde(rename = "payloadType")]
    payload_type: String,
    payload: String,
    signatures: Vec<Signed>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Signed {
    keyid: String,
    sig: String,
}

/// Why something is no statement about verified work that is to be believed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StatementError {
    /// It is not of its form.
    #[error("it is not a signed statement: {0}")]
    Form(String),
    /// No signature of this key is on it.
    #[error("`{0}` did not sign it")]
    NotSigned(String),
    /// A signature does not hold: statement or signature were changed.
    #[error("the signature of `{0}` does not hold: it was changed, or another key signed it")]
    Signature(String),
    /// It states something else.
    #[error("it states something else than verified work: {0}")]
    Other(String),
}

/// What is signed: the type and the bytes, each after its length.
#[must_use]
pub fn pre_authentication(payload_type: &str, payload: &[u8]) -> Vec<u8> {
    let head = format!("DSSEv1 {} {payload_type} {} ", payload_type.len(), payload.len());
    [head.as_bytes(), payload].concat()
}

impl Statement {
    /// That an event of a run verified an item.
    ///
    /// # Errors
    /// The item is not verified.
    pub fn of(predicate: Predicate, event: Digest) -> Result<Self, StatementError> {
        let name = format!("run {} event {}", predicate.run, predicate.event);
        let subject = vec![Subject { name, digest: SubjectDigest { event } }];
        let (kind, predicate_type) = (STATEMENT_TYPE.to_owned(), PREDICATE_TYPE.to_owned());
        let statement = Self { kind, subject, predicate_type, predicate };
        statement.check()?;
        Ok(statement)
    }

    fn check(&self) -> Result<(), StatementError> {
        let other = |what: String| Err(StatementError::Other(what));
        if self.kind != STATEMENT_TYPE || self.predicate_type != PREDICATE_TYPE {
            return other(format!("`{}`", self.predicate_type.escape_debug()));
        }
        let Predicate { run, event, state, .. } = &self.predicate;
        if state != VERIFIED {
            return other(format!("the item is `{}`", state.escape_debug()));
        }
        let name = format!("run {run} event {event}");
        match self.subject.as_slice() {
            [subject] if subject.name == name => Ok(()),
            _ => other("its subject is not the event that it names".to_owned()),
        }
    }
}

impl Envelope {
    /// Signs a statement with a log's key.
    ///
    /// # Errors
    /// The key is no log's.
    pub fn sign(statement: &Statement, signer: &NoteSigner) -> Result<Self, StatementError> {
        let key = signer.verifier();
        if key.kind() != KeyKind::Ed25519 {
            return Err(StatementError::Form(format!("`{key}` is not the key of a log")));
        }
        let payload =
            serde_json::to_vec(statement).map_err(|error| StatementError::Form(error.to_string()))?;
        let signature = signer.sign_bytes(&pre_authentication(PAYLOAD_TYPE, &payload));
        let signatures = vec![Signed { keyid: key.to_string(), sig: base64_text(&signature) }];
        Ok(Self { payload_type: PAYLOAD_TYPE.to_owned(), payload: base64_text(&payload), signatures })
    }

    /// Reads an envelope.
    ///
    /// # Errors
    /// It is too long, or none.
    pub fn parse(bytes: &[u8]) -> Result<Self, StatementError> {
        if bytes.len() > ENVELOPE_BYTES_MAX {
            return Err(StatementError::Form(format!("it has more than {ENVELOPE_BYTES_MAX} bytes")));
        }
        let envelope: Self =
            serde_json::from_slice(bytes).map_err(|error| StatementError::Form(error.to_string()))?;
        match envelope.signatures.len() {
            1..=SIGNATURES_MAX => Ok(envelope),
            number => {
                let why = format!("it has {number} signatures; 1 to {SIGNATURES_MAX} are read");
                Err(StatementError::Form(why))
            }
        }
    }

    /// The keys that it says signed it. Anybody can write that.
    #[must_use]
    pub fn keys(&self) -> Vec<VerifierKey> {
        self.signatures.iter().filter_map(|signed| signed.keyid.parse().ok()).collect()
    }

    /// What is stated, where the key signed it.
    ///
    /// # Errors
    /// The key did not sign it, the signature does not hold, or it is no statement about verified work.
    pub fn verified_by(&self, key: &VerifierKey) -> Result<Statement, StatementError> {
        let name = key.to_string();
        let Some(signed) = self.signatures.iter().find(|signed| signed.keyid == name) else {
            return Err(StatementError::NotSigned(name));
        };
        let payload = base64_bytes(&self.payload).map_err(StatementError::Form)?;
        let signature = base64_bytes(&signed.sig).map_err(StatementError::Form)?;
        let message = pre_authentication(&self.payload_type, &payload);
        let holds = key.kind() == KeyKind::Ed25519 && key.verify_bytes(&message, &signature).is_ok();
        if !holds {
            return Err(StatementError::Signature(name));
        }
        if self.payload_type != PAYLOAD_TYPE {
            return Err(StatementError::Other(format!("`{}`", self.payload_type.escape_debug())));
        }
        let statement: Statement =
            serde_json::from_slice(&payload).map_err(|error| StatementError::Form(error.to_string()))?;
        statement.check()?;
        Ok(statement)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::Hex;

    fn predicate() -> Predicate {
        Predicate {
            run: Hex([1; 16]),
            event: 9,
            at: "2026-11-28T10:00:00.000000Z".into(),
            by: "gate".into(),
            item: 1,
            title: "fix the parser".into(),
            state: "verified".into(),
            verified: "checked".into(),
            stale: false,
            criteria: vec![serde_json::json!({"type": "git_clean"})],
            results: Vec::new(),
            evidence: Vec::new(),
        }
    }

    fn signer(seed: u8) -> NoteSigner {
        NoteSigner::from_seed("logs.example/gate", KeyKind::Ed25519, &[seed; 32]).unwrap()
    }

    /// The example of the DSSE protocol, version 1.0.2.
    #[test]
    fn what_is_signed_is_what_others_sign() {
        let signed = pre_authentication("http://example.com/HelloWorld", b"hello world");
        assert_eq!(signed, b"DSSEv1 29 http://example.com/HelloWorld 11 hello world");
    }

    #[test]
    fn a_statement_holds_under_its_key_alone_and_unchanged() {
        let key = signer(1);
        let statement = Statement::of(predicate(), Hex([7; 32])).unwrap();
        let envelope = Envelope::sign(&statement, &key).unwrap();
        let bytes = serde_json::to_vec(&envelope).unwrap();
        let read = Envelope::parse(&bytes).unwrap();
        assert_eq!(read.keys(), [key.verifier().clone()]);
        assert_eq!(read.verified_by(key.verifier()), Ok(statement.clone()));
        let other = signer(2);
        assert!(matches!(read.verified_by(other.verifier()), Err(StatementError::NotSigned(_))));
        // Under another's name.
        let mut forged = Envelope::sign(&statement, &other).unwrap();
        forged.signatures[0].keyid = key.verifier().to_string();
        assert!(matches!(forged.verified_by(key.verifier()), Err(StatementError::Signature(_))));
        // Every bit of what is stated counts, and the type of it does.
        let mut payload = base64_bytes(&read.payload).unwrap();
        for at in 0..payload.len() {
            payload[at] ^= 1;
            let changed = Envelope { payload: base64_text(&payload), ..read.clone() };
            assert!(matches!(changed.verified_by(key.verifier()), Err(StatementError::Signature(_))), "{at}");
            payload[at] ^= 1;
        }
        let typed = Envelope { payload_type: "text/plain".into(), ..read.clone() };
        assert!(matches!(typed.verified_by(key.verifier()), Err(StatementError::Signature(_))));
        // A witness's key signs times, and nothing else.
        let witness = NoteSigner::from_seed("w", KeyKind::Cosignature, &[1; 32]).unwrap();
        assert!(Envelope::sign(&statement, &witness).is_err());
    }

    #[test]
    fn what_is_not_verified_is_not_stated_and_not_believed() {
        for state in ["claimed", "in_progress", "pending", "VERIFIED"] {
            let predicate = Predicate { state: state.into(), ..predicate() };
            assert!(
                matches!(Statement::of(predicate, Hex([7; 32])), Err(StatementError::Other(_))),
                "{state}"
            );
        }
        let key = signer(1);
        let honest = Statement::of(predicate(), Hex([7; 32])).unwrap();
        let signed = |change: fn(&mut Statement)| {
            let mut statement = honest.clone();
            change(&mut statement);
            Envelope::sign(&statement, &key).unwrap().verified_by(key.verifier())
        };
        let other = |result| matches!(result, Err(StatementError::Other(_)));
        assert!(other(signed(|statement| statement.predicate.state = "claimed".into())));
        assert!(other(signed(|statement| statement.predicate.event = 8)));
        assert!(other(signed(|statement| statement.subject.clear())));
        assert!(other(signed(|statement| statement.predicate_type = "https://example.org/x".into())));
        for bytes in [&b"{}"[..], b"[]", b"", br#"{"payloadType":"x","payload":"","signatures":[]}"#] {
            assert!(matches!(Envelope::parse(bytes), Err(StatementError::Form(_))));
        }
    }
}
