//! What is handed over with a run: its leaves, each with the proof that it is in the log.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use portcullis_core::id::RunId;
use portcullis_proof::log::completeness::ACCOUNTED_LEAVES_MAX;
use portcullis_proof::log::leaf::SignedLeaf;
use portcullis_proof::log::proof::tlog_proof;
use portcullis_proof::log::tree::empty_root;
use portcullis_proof::log::verdict::EVIDENCE_LEAVES_MAX;
use portcullis_proof::log::witness::add_checkpoint;
use portcullis_proof::log::{Checkpoint, Leaf, RunState, TileReader, TreeHead, TrustPolicy};
use portcullis_proof::{Hex, Id};

use super::confirm::LogWait;
use super::cosign::witness_policy;
use super::database::{Database, SignedTree};
use super::error::LogError;
use super::folder::LogPlaces;

/// A log that is read; another process may write it.
#[derive(Debug)]
pub struct LogReader {
    places: LogPlaces,
    database: Database,
}

/// A file of an export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvidenceFile {
    /// Its name in the export.
    pub name: String,
    /// What it holds.
    pub bytes: Vec<u8>,
}

/// The state of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogStatus {
    /// Its name.
    pub origin: String,
    /// The leaves of the tree that was signed last.
    pub size: u64,
    /// Its root.
    pub root: portcullis_proof::Digest,
    /// The leaves of the newest tree that witnesses cosigned, or `None` without witnesses.
    pub witnessed: Option<u64>,
    /// Leaves that wait for a place.
    pub waiting: u64,
    /// Segments whose end is not in the log.
    pub open_segments: u64,
    /// Why it takes nothing more, where that is so.
    pub frozen: Option<String>,
    /// What it waits for before it signs, where it does: what the process that had it last wrote, and which the next
    /// one will wait for.
    pub waits: Option<LogWait>,
    /// The writers that it enrolled.
    pub writers: Vec<LogWriter>,
}

/// A writer of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogWriter {
    /// Its id.
    pub key: portcullis_proof::log::KeyId,
    /// Whether its signatures count.
    pub state: super::WriterState,
    /// The segments that it numbered.
    pub segments: u64,
    /// Whether its key file is there.
    pub key_here: bool,
}

impl LogReader {
    /// Opens the log at its places.
    ///
    /// # Errors
    /// [`LogError::NoLog`] if there is no log yet.
    pub fn open(places: &LogPlaces) -> Result<LogReader, LogError> {
        let database = Database::open(places, false)?;
        let database = database.ok_or_else(|| LogError::NoLog { folder: places.database.clone() })?;
        Ok(LogReader { places: places.clone(), database })
    }

    /// The state of the log.
    ///
    /// # Errors
    /// When its database cannot be read.
    pub fn status(&self) -> Result<LogStatus, LogError> {
        let tree = self.database.tree()?;
        let witnessed = tree.witnessed.as_ref().map(|note| checkpoint_of(note)).transpose()?;
        let writers = self.database.writers()?;
        Ok(LogStatus {
            size: tree.head.size,
            root: tree.head.root,
            witnessed: witnessed.map(|checkpoint| checkpoint.size()),
            waiting: self.database.waiting_count()?,
            open_segments: self.database.open_segments()?.len() as u64,
            frozen: tree.frozen,
            waits: self.waits()?,
            writers: writers
                .iter()
                .map(|row| LogWriter {
                    key: row.key,
                    state: row.state,
                    segments: row.next,
                    key_here: self.places.writer_key(row.key).exists(),
                })
                .collect(),
            origin: tree.origin,
        })
    }

    /// What the log waits for before it signs, or `None` if it does not, or if there is no witness left to wait for.
    ///
    /// # Errors
    /// When its database cannot be read.
    pub fn waits(&self) -> Result<Option<LogWait>, LogError> {
        let somebody = || {
            let policy = witness_policy(&self.places).ok();
            policy.is_none_or(|policy| policy.is_some_and(|policy| !policy.witnesses().is_empty()))
        };
        Ok(self.database.wait()?.filter(|_| somebody()))
    }

    /// Why the log takes nothing more, or `None` if it does.
    ///
    /// # Errors
    /// When its database cannot be read.
    pub fn frozen(&self) -> Result<Option<String>, LogError> {
        Ok(self.database.tree()?.frozen)
    }

    /// The checkpoint that was signed last, with cosignatures where there are any of it.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn checkpoint(&self) -> Result<(String, Checkpoint), LogError> {
        let tree = self.database.tree()?;
        let note = newest(&tree, tree.head.size)?;
        let checkpoint = checkpoint_of(&note)?;
        Ok((note, checkpoint))
    }

    /// A policy that trusts only this log's key. `key` is the verifier key of `log.key`; with `remember`, the policy
    /// remembers the current tree.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn policy_text(
        &self,
        key: &portcullis_proof::log::VerifierKey,
        remember: bool,
    ) -> Result<String, LogError> {
        let tree = self.published_tree()?;
        let mut text = format!("log {key}\nquorum none\n");
        if remember {
            let root = STANDARD.encode(tree.head.root.0);
            text.push_str(&format!("remember {} {} {root}\n", tree.origin, tree.head.size));
        }
        // What is handed out has to be what is read.
        TrustPolicy::parse(text.as_bytes()).map_err(LogError::tiles)?;
        Ok(text)
    }

    /// Whether every segment of a run that the log has is in the tree, with its end where it has ended; in one that a
    /// quorum cosigned, where the policy of the witnesses asks for one.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn is_settled(
        &self,
        run: RunId,
        segments: &[(portcullis_core::id::SegmentId, bool)],
    ) -> Result<bool, LogError> {
        let run = Hex(*run.as_bytes());
        let states = self.database.states_of_run(run)?;
        let in_log = segments.iter().all(|(segment, ended)| {
            let id: Id = Hex(*segment.as_bytes());
            let state = states.iter().find(|(known, _)| *known == id).map(|(_, state)| *state);
            state.is_some_and(|state: RunState| state.is_final() || !ended)
        });
        let (places, all) = self.database.places_of_run(run, EVIDENCE_LEAVES_MAX)?;
        if !in_log || !all {
            return Ok(false);
        }
        let tree = self.published_tree()?;
        let size = match tree.witnessed {
            Some(note) if self.asks_for_quorum()? => checkpoint_of(&note)?.size(),
            None if self.asks_for_quorum()? => 0,
            _ => tree.head.size,
        };
        Ok(places.last().is_none_or(|last| *last < size))
    }

    /// Whether a segment has a leaf in the published tree.
    ///
    /// # Errors
    /// When the database or the checkpoint cannot be read.
    pub fn is_opened(&self, segment: portcullis_core::id::SegmentId) -> Result<bool, LogError> {
        let Some(place) = self.database.first_place(Hex(*segment.as_bytes()))? else { return Ok(false) };
        Ok(self.places.published()?.is_some_and(|(_, checkpoint)| place < checkpoint.size()))
    }

    /// The newest tree whose files are out. Between the signing of a tree and the moment at which its last file is put
    /// out, that is the one before.
    fn published_tree(&self) -> Result<SignedTree, LogError> {
        let mut tree = self.database.tree()?;
        match self.places.published()? {
            Some((note, checkpoint)) if checkpoint.size() < tree.head.size => {
                (tree.head, tree.note) = (checkpoint.head(), note);
            }
            Some(_) => {}
            None => tree.head = TreeHead { size: 0, root: empty_root() },
        }
        Ok(tree)
    }

    /// Whether only checkpoints with a quorum of witnesses are handed out.
    fn asks_for_quorum(&self) -> Result<bool, LogError> {
        Ok(witness_policy(&self.places)?.is_some_and(|policy| policy.has_quorum()))
    }

    /// The leaves on a run with their proofs, as files of an export; empty for a run that the log does not have. If
    /// the policy of the witnesses has a quorum, leaves that no quorum has cosigned yet are left out. From each tree
    /// in `remembered`, by its number of leaves, a proof leads to the tree of the leaves.
    ///
    /// # Errors
    /// When the tiles do not lead to the checkpoint, or there are more leaves than a verifier reads.
    pub fn evidence(&self, run: RunId, remembered: &[u64]) -> Result<Vec<EvidenceFile>, LogError> {
        let (places, _) = self.database.places_of_run(Hex(*run.as_bytes()), EVIDENCE_LEAVES_MAX)?;
        self.proved(places, remembered)
    }

    /// One leaf for every number between the first and the last of these runs' segments, with their proofs: what shows
    /// that an export of many runs leaves none out. `remembered` as in [`LogReader::evidence`].
    ///
    /// # Errors
    /// When the tiles do not lead to the checkpoint, or there are more numbers than a verifier reads.
    pub fn numbers(&self, runs: &[RunId], remembered: &[u64]) -> Result<Vec<EvidenceFile>, LogError> {
        let runs: Vec<Id> = runs.iter().map(|run| Hex(*run.as_bytes())).collect();
        self.proved(self.database.places_between(&runs, ACCOUNTED_LEAVES_MAX)?, remembered)
    }

    /// The leaves at these places, which are in order, each with its proof.
    fn proved(&self, places: Vec<u64>, remembered: &[u64]) -> Result<Vec<EvidenceFile>, LogError> {
        let Some(last) = places.last() else { return Ok(Vec::new()) };
        let tree = self.published_tree()?;
        if tree.head.size == 0 {
            return Ok(Vec::new());
        }
        // As large as what the reader remembers, so that a proof leads there.
        let wanted = remembered.iter().copied().filter(|size| *size <= tree.head.size).max();
        let wanted = wanted.unwrap_or(0).max(last + 1);
        let note = if self.asks_for_quorum()? { tree.witnessed } else { Some(newest(&tree, wanted)?) };
        // What no quorum has cosigned yet is left out: incomplete for a while, rather than invalid forever.
        let Some(note) = note else { return Ok(Vec::new()) };
        let head = checkpoint_of(&note)?.head();
        let tiles = self.places.tiles();
        let reader = TileReader::new(&tiles, head);
        let mut files = Vec::with_capacity(places.len() * 2);
        for place in places.into_iter().filter(|place| *place < head.size) {
            let leaf = reader.leaf(place).map_err(LogError::tiles)?;
            let name = format!("log/{place:010}-{}", kind(&leaf.entry));
            let proof = tlog_proof(None, place, &leaf.path, &note);
            files.push(EvidenceFile { name: format!("{name}.leaf"), bytes: leaf.entry });
            files.push(EvidenceFile { name: format!("{name}.tlog-proof"), bytes: proof.into_bytes() });
        }
        for old in remembered.iter().filter(|old| (1..head.size).contains(*old)) {
            let path = reader.consistency(*old).map_err(LogError::tiles)?;
            let name = format!("log/{old:010}.consistency");
            files.push(EvidenceFile { name, bytes: add_checkpoint(*old, &path, &note).into_bytes() });
        }
        Ok(files)
    }
}

/// The newest note over at least `size` leaves: the one with cosignatures where it has that many.
fn newest(tree: &SignedTree, size: u64) -> Result<String, LogError> {
    if let Some(witnessed) = &tree.witnessed
        && checkpoint_of(witnessed)?.size() >= size
    {
        return Ok(witnessed.clone());
    }
    Ok(tree.note.clone())
}

pub(super) fn checkpoint_of(note: &str) -> Result<Checkpoint, LogError> {
    Checkpoint::from_note(note.as_bytes()).map(|(_, checkpoint)| checkpoint).map_err(LogError::tiles)
}

/// A word for people in the name of a file; which leaf is which follows from the leaf.
fn kind(entry: &[u8]) -> &'static str {
    match SignedLeaf::parse(entry).map(|leaf| leaf.leaf) {
        Ok(Leaf::Enrol { .. }) => "enrolment",
        Ok(Leaf::Revoke { .. }) => "revocation",
        Ok(Leaf::Epoch { .. }) => "epoch",
        Ok(Leaf::Head(head)) => head.state.as_str(),
        Err(_) => "leaf",
    }
}
