//! The nine checks, in order. Each sees only what the ones before it let pass.

use std::collections::{BTreeMap, HashMap};

use super::report::{LogAttack, LogFailure, LogReport};
use super::{Evidence, File, LoggedLeaf, NamedHead, RunFacts, SegmentFacts};
use crate::chain::{Digest, Hex, Id};
use crate::export::SegmentState;
use crate::log::leaf::{KeyId, Leaf, RunHead, RunState, SignedLeaf, key_id};
use crate::log::note::NoteError;
use crate::log::policy::{Endorsed, PolicyError, TrustPolicy};
use crate::log::proof::TlogProof;
use crate::log::text::{Place, TextError};
use crate::log::tree::{TreeHead, verify_consistency};
use crate::log::witness::AddCheckpoint;

/// What a check found: what it can say, or why it could not be made.
type Found = Result<Result<String, String>, LogFailure>;

/// A leaf with its proof, both read.
struct Entry<'a> {
    files: LoggedLeaf<'a>,
    leaf: SignedLeaf,
    proof: TlogProof<'a>,
}

impl Entry<'_> {
    fn in_leaf(&self, attack: LogAttack, byte: u64, message: impl Into<String>) -> LogFailure {
        let file = self.files.leaf.name.to_owned();
        LogFailure { attack, file, line: None, byte, message: message.into() }
    }

    fn in_proof(&self, attack: LogAttack, place: Place, message: impl Into<String>) -> LogFailure {
        in_text(self.files.proof, attack, place, message)
    }

    /// The run head, when the leaf is one.
    fn head(&self) -> Option<&RunHead> {
        match &self.leaf.leaf {
            Leaf::Head(head) => Some(head),
            _ => None,
        }
    }
}

fn in_text(file: File<'_>, attack: LogAttack, place: Place, message: impl Into<String>) -> LogFailure {
    let (file, message) = (file.name.to_owned(), message.into());
    LogFailure { attack, file, line: Some(place.line), byte: place.byte, message }
}

fn misread(file: File<'_>, attack: LogAttack, error: TextError) -> LogFailure {
    in_text(file, attack, Place { line: error.line, byte: error.byte }, error.message)
}

/// What has been read and found so far.
struct Judge<'e, 'a> {
    trust: &'e TrustPolicy,
    run: &'e RunFacts<'e>,
    /// In the order of the log.
    entries: Vec<Entry<'a>>,
    consistency: Vec<(File<'a>, AddCheckpoint<'a>)>,
    /// What the policy says of the checkpoint of each entry.
    endorsed: Vec<Endorsed>,
    /// Whether every tree is shown to be the beginning of the largest one.
    connected: bool,
}

pub(super) fn report<'a>(evidence: &Evidence<'a>, trust: &TrustPolicy, run: &RunFacts<'_>) -> LogReport {
    let (entries, consistency) = (Vec::new(), Vec::new());
    let mut judge = Judge { trust, run, entries, consistency, endorsed: Vec::new(), connected: false };
    let mut made = Vec::new();
    let failure = judge.check_all(evidence, &mut made).err();
    let failed = failure.is_some();
    let mut report = LogReport::conclude(made, failure);
    let largest =
        judge.entries.iter().map(|entry| entry.proof.checkpoint.head()).max_by_key(|head| head.size);
    report.tree_size = largest.map(|head| head.size);
    report.root = largest.map(|head| head.root);
    if !failed {
        let heads = judge.entries.iter().zip(&judge.endorsed);
        let last = heads.filter_map(|(entry, endorsed)| Some((entry.head()?, endorsed)));
        let last = last.max_by_key(|(head, _)| (head.count, head.state));
        report.anchored = last.map(|(head, _)| head.count);
        report.seen_by = last.and_then(|(_, endorsed)| endorsed.seen_by());
    }
    report
}

/// The first six checks, over leaves of any runs.
pub(super) fn verified_heads(
    evidence: &Evidence<'_>,
    trust: &TrustPolicy,
    origin: &str,
) -> Result<(Vec<NamedHead>, Option<String>), LogFailure> {
    let run = RunFacts { origin, run: Hex([0; 16]), segments: Vec::new() };
    let (entries, consistency) = (Vec::new(), Vec::new());
    let mut judge = Judge { trust, run: &run, entries, consistency, endorsed: Vec::new(), connected: false };
    let mut made = Vec::new();
    judge.check_leaves(evidence, &mut made)?;
    made.push(judge.split_view());
    let open = made.into_iter().find_map(Result::err);
    let named = |entry: &Entry<'_>| Some((entry.files.leaf.name.to_owned(), entry.head()?.clone()));
    Ok((judge.entries.iter().filter_map(named).collect(), open))
}

impl<'a> Judge<'_, 'a> {
    fn check_all(
        &mut self,
        evidence: &Evidence<'a>,
        made: &mut Vec<Result<String, String>>,
    ) -> Result<(), LogFailure> {
        self.check_leaves(evidence, made)?;
        made.push(self.heads()?);
        made.push(self.closure());
        made.push(self.split_view());
        Ok(())
    }

    /// What holds of leaves whatever run they speak of.
    fn check_leaves(
        &mut self,
        evidence: &Evidence<'a>,
        made: &mut Vec<Result<String, String>>,
    ) -> Result<(), LogFailure> {
        made.push(self.format(evidence)?);
        made.push(self.origin()?);
        made.push(self.checkpoint()?);
        made.push(self.inclusion()?);
        made.push(self.history()?);
        made.push(self.writers()?);
        Ok(())
    }

    fn format(&mut self, evidence: &Evidence<'a>) -> Found {
        for files in &evidence.leaves {
            let leaf = SignedLeaf::parse(files.leaf.bytes).map_err(|error| LogFailure {
                attack: LogAttack::LeafMalformed,
                file: files.leaf.name.to_owned(),
                line: None,
                byte: error.byte,
                message: error.message,
            })?;
            let proof = TlogProof::parse(files.proof.bytes)
                .map_err(|error| misread(files.proof, LogAttack::ProofMalformed, error))?;
            self.entries.push(Entry { files: *files, leaf, proof });
        }
        self.entries.sort_by_key(|entry| entry.proof.index);
        for file in &evidence.consistency {
            let proof = AddCheckpoint::parse(file.bytes)
                .map_err(|error| misread(*file, LogAttack::ConsistencyMalformed, error))?;
            self.consistency.push((*file, proof));
        }
        Ok(Ok(format!("{} leaves and {} consistency proofs", self.entries.len(), self.consistency.len())))
    }

    fn origin(&self) -> Found {
        let expected = self.run.origin;
        let other = |found: &str| {
            format!("the log is `{}`, the run is of `{}`", found.escape_debug(), expected.escape_debug())
        };
        for entry in &self.entries {
            let found = entry.leaf.leaf.origin();
            if found != expected {
                return Err(entry.in_leaf(LogAttack::WrongOrigin, entry.leaf.origin_at(), other(found)));
            }
            let found = entry.proof.checkpoint.origin();
            if found != expected {
                return Err(entry.in_proof(LogAttack::WrongOrigin, entry.proof.note_at, other(found)));
            }
        }
        for (file, proof) in &self.consistency {
            let found = proof.checkpoint.origin();
            if found != expected {
                return Err(in_text(*file, LogAttack::WrongOrigin, proof.note_at, other(found)));
            }
        }
        Ok(Ok(format!("all of it is of `{}`", expected.escape_debug())))
    }

    fn checkpoint(&mut self) -> Found {
        // Most leaves of an export are proven in one tree, whose signatures are checked once.
        let mut known: HashMap<String, Endorsed> = HashMap::new();
        for entry in &self.entries {
            let text = entry.proof.note.to_string();
            let endorsed = match known.get(&text) {
                Some(endorsed) => endorsed.clone(),
                None => {
                    let checked = self.trust.policy.check(&entry.proof.note);
                    checked.map_err(|error| refused(entry.files.proof, entry.proof.note_at, &error))?
                }
            };
            known.insert(text, endorsed.clone());
            self.endorsed.push(endorsed);
        }
        for (file, proof) in &self.consistency {
            // A tree on the way needs no witnesses: it only connects trees that have them.
            match self.trust.policy.check(&proof.note) {
                Ok(_) | Err(PolicyError::Quorum { .. }) => {}
                Err(error) => return Err(refused(*file, proof.note_at, &error)),
            }
        }
        Ok(match known.len() {
            0 => Err("the export has no checkpoint".to_owned()),
            trees => Ok(format!("{trees} checkpoints, signed by a log of the policy and as its quorum asks")),
        })
    }

    fn inclusion(&self) -> Found {
        for entry in &self.entries {
            entry.proof.verify_leaf(entry.leaf.hash()).map_err(|error| {
                entry.in_proof(LogAttack::NotInLog, entry.proof.index_at, error.to_string())
            })?;
        }
        Ok(match self.entries.len() {
            0 => Err("the export has no leaf".to_owned()),
            leaves => Ok(format!("{leaves} leaves are in the log")),
        })
    }

    fn history(&mut self) -> Found {
        for pair in self.entries.windows(2) {
            let [one, other] = pair else { continue };
            if one.proof.index == other.proof.index && one.leaf.hash() != other.leaf.hash() {
                let message = format!("another leaf also has index {}", other.proof.index);
                return Err(other.in_proof(LogAttack::LogForked, other.proof.index_at, message));
            }
        }
        let mut trees: BTreeMap<u64, TreeHead> = BTreeMap::new();
        let remembered = self.trust.remembered.iter().filter(|known| known.origin() == self.run.origin);
        trees.extend(remembered.map(|known| (known.size(), known.head())));
        for entry in &self.entries {
            let head = entry.proof.checkpoint.head();
            if trees.insert(head.size, head).is_some_and(|before| before.root != head.root) {
                let message = format!("another tree of {} leaves is known", head.size);
                return Err(entry.in_proof(LogAttack::LogForked, entry.proof.note_at, message));
            }
        }
        let mut steps = Vec::new();
        for (file, proof) in &self.consistency {
            let fail = |message: String| in_text(*file, LogAttack::LogNotContinued, Place::START, message);
            let new = proof.checkpoint.head();
            let Some(old) = trees.get(&proof.old).filter(|_| trees.get(&new.size) == Some(&new)) else {
                let message = format!(
                    "no proof and no memory names the trees of {} and {} leaves",
                    proof.old, new.size
                );
                return Err(fail(message));
            };
            verify_consistency(*old, new, &proof.path).map_err(|error| fail(error.to_string()))?;
            steps.push((old.size, new.size));
        }
        // Two beginnings of one tree agree with each other; so each has to lead to the largest.
        let mut shown: Vec<u64> = trees.last_key_value().map(|(size, _)| *size).into_iter().collect();
        for size in trees.keys().rev().skip(1) {
            if *size == 0 || steps.iter().any(|(old, new)| old == size && shown.contains(new)) {
                shown.push(*size);
            } else {
                let largest = shown.first().copied().unwrap_or(0);
                return Ok(Err(format!(
                    "no proof leads from the tree of {size} leaves to that of {largest}"
                )));
            }
        }
        self.connected = true;
        Ok(Ok(format!("{} trees, each the beginning of the next", trees.len())))
    }

    fn writers(&self) -> Found {
        let mut enrolled: HashMap<KeyId, ([u8; 32], u64)> = HashMap::new();
        let mut revoked: HashMap<KeyId, u64> = self.trust.revoked.iter().copied().collect();
        let mut signers = 0;
        for entry in &self.entries {
            let (index, signer) = (entry.proof.index, entry.leaf.leaf.signer());
            let public = match &entry.leaf.leaf {
                Leaf::Enrol { .. } | Leaf::Revoke { .. } => {
                    let mut admins = self.trust.admins(self.run.origin);
                    let admin = admins.find(|admin| key_id(admin.public()) == signer);
                    *admin
                        .ok_or_else(|| {
                            let message =
                                format!("key `{signer}` may not enrol or revoke writers of this log");
                            entry.in_leaf(LogAttack::AdminUnknown, entry.leaf.signature_at(), message)
                        })?
                        .public()
                }
                Leaf::Epoch { .. } | Leaf::Head(_) => {
                    let known = enrolled.get(&signer).filter(|(_, since)| *since < index);
                    let not = || {
                        let message = format!("no leaf before index {index} enrols key `{signer}`");
                        entry.in_leaf(LogAttack::WriterNotEnrolled, entry.leaf.signature_at(), message)
                    };
                    if let Some(until) = revoked.get(&signer).filter(|until| **until <= index) {
                        let message =
                            format!("key `{signer}` was revoked at index {until}, the leaf has {index}");
                        return Err(entry.in_leaf(
                            LogAttack::WriterRevoked,
                            entry.leaf.signature_at(),
                            message,
                        ));
                    }
                    signers += 1;
                    known.ok_or_else(not)?.0
                }
            };
            entry.leaf.verify(&public).map_err(|error| {
                let message = format!("{error} under key `{signer}`");
                entry.in_leaf(LogAttack::LeafForged, entry.leaf.signature_at(), message)
            })?;
            // Entries are in the order of the log, so what counts is known before it is needed.
            match &entry.leaf.leaf {
                Leaf::Enrol { public, .. } => {
                    enrolled.entry(key_id(public)).or_insert((*public, index));
                }
                Leaf::Revoke { writer, .. } => {
                    let first = revoked.entry(*writer).or_insert(index);
                    *first = (*first).min(index);
                }
                Leaf::Epoch { .. } | Leaf::Head(_) => {}
            }
        }
        Ok(Ok(format!("{signers} leaves of {} enrolled writers", enrolled.len())))
    }

    fn heads(&self) -> Found {
        let mut latest: HashMap<Id, &Entry<'a>> = HashMap::new();
        let mut numbers: HashMap<(KeyId, u64, u64), Id> = HashMap::new();
        let mut followed: HashMap<Digest, Digest> = HashMap::new();
        let mut unknown = None;
        for entry in &self.entries {
            let Some(head) = entry.head() else { continue };
            let fail = |attack, message: String| Err(entry.in_leaf(attack, 0, message));
            let segment = self.segment(entry, head)?;
            if segment.link(head.count).is_none() {
                unknown = Some(head.count);
            }
            if let Some(before) = latest.insert(head.segment, entry) {
                follows(before, entry, head)?;
            }
            let hash = entry.leaf.hash();
            if let Some(previous) = head.previous
                && followed.insert(previous, hash).is_some_and(|other| other != hash)
            {
                return fail(LogAttack::HeadForked, format!("another head also follows head `{previous}`"));
            }
            let number = numbers.entry((head.writer, head.epoch, head.run_no)).or_insert(head.segment);
            if *number != head.segment {
                let message =
                    format!("segment `{number}` also has number {} of epoch {}", head.run_no, head.epoch);
                return fail(LogAttack::RunNumberReused, message);
            }
        }
        Ok(match unknown {
            Some(count) => Err(format!("the link after event {count} was not computed")),
            None => Ok(format!("the heads of {} segments agree with the chain", latest.len())),
        })
    }

    /// Holds one head against the chain of its segment.
    fn segment(&self, entry: &Entry<'_>, head: &RunHead) -> Result<&SegmentFacts, LogFailure> {
        let fail = |attack, message: String| Err(entry.in_leaf(attack, 0, message));
        if head.run != self.run.run {
            return fail(LogAttack::HeadOfAnotherRun, format!("a head of run `{}`", head.run));
        }
        let Some(segment) = self.run.segments.iter().find(|segment| segment.segment == head.segment) else {
            return fail(
                LogAttack::TailMissing,
                format!("the log has segment `{}`, the export has not", head.segment),
            );
        };
        if (segment.ordinal, segment.parent) != (head.ordinal, head.parent)
            || head.count < segment.start.count
        {
            return fail(
                LogAttack::HeadMismatch,
                "the head has a different ordinal, parent or start".to_owned(),
            );
        }
        if head.count > segment.end.count {
            let (logged, found) = (head.count, segment.end.count);
            return fail(LogAttack::TailMissing, format!("the log has {logged} events, the export {found}"));
        }
        if segment.link(head.count).is_some_and(|link| link != head.link) {
            let message = format!("the log has a different link after event {}", head.count);
            return fail(LogAttack::ChainRewritten, message);
        }
        let state = match head.state {
            RunState::Closed => Some(SegmentState::Closed),
            RunState::Abandoned => Some(SegmentState::Abandoned),
            RunState::Open | RunState::Progress => None,
        };
        if state.is_some_and(|state| state != segment.state || head.count != segment.end.count) {
            let (word, end) = (segment.state.as_str(), segment.end.count);
            let message = format!(
                "{} with event {} in the log, {word} with event {end} in the export",
                head.state.as_str(),
                head.count
            );
            return fail(LogAttack::HeadMismatch, message);
        }
        Ok(segment)
    }

    /// Whether the log knows the end of the run.
    fn closure(&self) -> Result<String, String> {
        let last = self.run.segments.last().ok_or("the run has no segment")?;
        let heads = || self.entries.iter().filter_map(Entry::head);
        if heads().any(|head| head.segment == last.segment && head.state.is_final()) {
            return Ok(format!("the log has the end of the run, after event {}", last.end.count));
        }
        Err(match heads().map(|head| head.count).max() {
            Some(count) => format!("the log has {count} events and no end; later events are not anchored"),
            None => "the log has no record of the run".to_owned(),
        })
    }

    /// Whether someone else vouches that there is one tree.
    fn split_view(&self) -> Result<String, String> {
        let size = |entry: &Entry<'_>| entry.proof.checkpoint.size();
        let largest = self.entries.iter().map(size).max().ok_or("the export has no checkpoint")?;
        if self.endorsed.iter().all(|endorsed| endorsed.quorum) {
            return Ok("the witnesses of the policy saw the same tree".to_owned());
        }
        let remembered = self.trust.remembered.iter().filter(|known| known.origin() == self.run.origin);
        if self.connected && remembered.map(|known| known.size()).max() >= Some(largest) {
            return Ok("the tree is the beginning of one that the reader remembers".to_owned());
        }
        Err("the policy asks for no witness; the log may show others another tree".to_owned())
    }
}

/// Holds a head against the head before it of its segment. A head that was logged twice is not a contradiction.
fn follows(before: &Entry<'_>, entry: &Entry<'_>, head: &RunHead) -> Result<(), LogFailure> {
    let Some(earlier) = before.head().filter(|_| before.leaf.hash() != entry.leaf.hash()) else {
        return Ok(());
    };
    if (earlier.writer, earlier.epoch, earlier.run_no) != (head.writer, head.epoch, head.run_no) {
        let message = format!("index {} of the log gives the segment another number", before.proof.index);
        return Err(entry.in_leaf(LogAttack::HeadMismatch, 0, message));
    }
    if earlier.state.is_final() {
        let ended = head.state.is_final();
        let attack = if ended { LogAttack::ClosedTwice } else { LogAttack::HeadRegressed };
        let message = format!("index {} of the log ends the segment", before.proof.index);
        return Err(entry.in_leaf(attack, 0, message));
    }
    if head.count < earlier.count || head.state == RunState::Open {
        let (word, then) = (head.state.as_str(), earlier.state.as_str());
        let message = format!("{word} after {} events, {then} after {} before it", head.count, earlier.count);
        return Err(entry.in_leaf(LogAttack::HeadRegressed, 0, message));
    }
    Ok(())
}

/// The failure that a checkpoint which the policy refuses amounts to.
fn refused(file: File<'_>, note_at: Place, error: &PolicyError) -> LogFailure {
    let below = |line: u64, byte: u64| Place {
        line: note_at.line + line.saturating_sub(1),
        byte: note_at.byte + byte,
    };
    let (attack, place) = match error {
        PolicyError::Text(error) => (LogAttack::ProofMalformed, below(error.line, error.byte)),
        PolicyError::UnknownLog { .. } => (LogAttack::UnknownLog, note_at),
        PolicyError::Signature(NoteError::Forged { line, byte, .. }) => {
            (LogAttack::CheckpointForged, below(*line, *byte))
        }
        PolicyError::Signature(NoteError::Unsigned { .. }) => (LogAttack::CheckpointForged, note_at),
        PolicyError::Quorum { .. } => (LogAttack::QuorumMissing, note_at),
    };
    let message = match error {
        PolicyError::Signature(NoteError::Forged { name, .. }) => {
            format!("the signature of `{name}` does not hold")
        }
        other => other.to_string(),
    };
    in_text(file, attack, place, message)
}
