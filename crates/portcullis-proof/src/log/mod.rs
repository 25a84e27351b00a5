//! The transparency log: the anchor of a run's hash chain, so that a verifier does not have to trust its writer.
//!
//! A writer signs a *run head* when a segment of a run opens, goes on and ends. The heads are the leaves of one
//! RFC 6962 Merkle tree, whose root the log signs as a *checkpoint*; witnesses cosign it, so that the log cannot show
//! two readers two trees. An export carries its heads, their inclusion proofs and the checkpoint. A reader brings a
//! *trust policy*, which names the keys, and nothing else.
//!
//! ```text
//! leaf ── tree ── tile                    what is logged, how it is hashed, how it is stored
//! key ── note ── checkpoint               who signs the tree, in texts that others' tools read as well
//! proof ── policy ── witness              what is handed over, what is believed, who watches the log
//! history ── monitor ── verdict ── files   what a log must never do, and the answer over one run
//! completeness                           and over many
//! ```
//!
//! Everything here is pure: bytes in, values and texts out. There is no clock, no file, no network; keys are handed in.
//! The formats of the second and third row are those of C2SP, so that other logs' witnesses, mirrors and checkers
//! work on ours. The normative pages are `specs/transparency-log.md`, `specs/run-heads.md` and `specs/trust-policy.md`.

mod text;

pub mod checkpoint;
pub mod completeness;
pub mod files;
pub mod history;
pub mod key;
pub mod leaf;
pub mod monitor;
pub mod note;
pub mod policy;
pub mod proof;
pub mod statement;
pub mod tile;
pub mod tree;
pub mod verdict;
pub mod witness;

pub use checkpoint::Checkpoint;
pub use files::ExportFiles;
pub use history::{Fork, History, HistoryError};
pub use key::{KeyError, KeyKind, NoteSigner, VerifierKey};
pub use leaf::{KeyId, Leaf, LeafError, RunHead, RunState};
pub use monitor::{Alert, AlertKind, Monitor, MonitorState, StateError};
pub use note::{Note, NoteError};
pub use policy::{Endorsed, Policy, PolicyError, TrustPolicy};
pub use proof::TlogProof;
pub use statement::{Envelope, Predicate, Statement, StatementError};
pub use text::TextError;
pub use tile::{TileError, TileId, TileKind, TileReader, TileSource};
pub use tree::{CompactRange, NodeSource, ProofError, TreeHead, leaf_hash, node_hash};
pub use verdict::{
    Evidence, File, LogAttack, LogFailure, LogReport, LoggedLeaf, RunFacts, SegmentFacts, judge,
};
