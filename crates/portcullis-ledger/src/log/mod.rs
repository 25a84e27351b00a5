//! The transparency log of a store: what makes its chains hold against anyone who owns it.
//!
//! ```text
//! ledger ─ heads ─> waiting leaves ─ sequencer ─> signed tree ─> tiles and checkpoint as files
//!                                        │                             │
//!                                   log.db (lock)             witnesses, monitors, exports
//! ```
//!
//! One process at a time has the log of a store ([`Log::open`]); the others write events all the same, and theirs
//! are logged too. Nothing here is on the path of a decision. When it fails, runs go on unanchored: the log says why,
//! and catches up once it can.
//!
//! Formats: `specs/transparency-log.md`, `specs/run-heads.md`. Read `database` (what is trusted), `heads` (what is
//! logged), `sequencer` (how), `cosign` (who vouches), `confirm` (when nothing is signed); `folder` and `keys` are
//! files.

mod admin;
mod confirm;
mod cosign;
mod database;
mod error;
mod evidence;
mod folder;
mod fsck;
mod heads;
mod keys;
mod sequencer;
mod standing;
mod thread;

use std::fs::File;
use std::path::Path;

use portcullis_proof::log::leaf::LeafSigner;
use portcullis_proof::log::tree::empty_root;
use portcullis_proof::log::{KeyId, Leaf, NoteSigner, RunHead, TreeHead, VerifierKey};
use rusqlite::params;

use self::confirm::Waiting;
use self::database::{Database, LoggedSegment, WriterRow, insert_leaf, put_segment, put_writer};
use self::folder::make_folder;
use self::heads::{DueHead, Follower};
use self::keys::LogKey;
use crate::ledger::Reader;

pub use self::confirm::LogWait;
pub use self::cosign::{
    Ask, CONFIRM_EVERY, COSIGN_AGAIN_EVERY, Cosigner, WitnessAnswer, WitnessNews, witness_policy,
};
pub use self::database::WriterState;
pub use self::error::LogError;
pub use self::evidence::{EvidenceFile, LogReader, LogStatus, LogWriter};
pub use self::folder::{LogPlaces, Tiles, put};
pub use self::fsck::{LogCheck, check};
pub use self::heads::{PROGRESS_EVENTS, PROGRESS_EVERY};
pub use self::keys::{witness_key, writer_notes};
pub use self::sequencer::{ROUND_LEAVES_MAX, Round};
pub use self::standing::check_standing;
pub use self::thread::{Anchor, LogThread, NotAnchored, ROUND_EVERY};

/// The name of the published checkpoint.
const CHECKPOINT_FILE: &str = "checkpoint";
/// Segments whose heads are made in one transaction.
const HEADS_A_TRANSACTION: usize = 1024;
/// What a first writer is called in its enrolment.
const LABEL: &str = "gate";

/// One process's hand on the log of a store.
#[derive(Debug)]
pub struct Log {
    places: LogPlaces,
    database: Database,
    key: LogKey,
    signers: Vec<LeafSigner>,
    follower: Follower,
    reader: Box<dyn Reader>,
    /// Why nothing may be signed yet.
    waiting: Option<Waiting>,
    /// Holding the file is holding the log.
    _lock: File,
}

impl Log {
    /// Opens the log of a store, creating it and its keys if there is none, and finishes what a dead process had
    /// begun. An existing log with witnesses waits for them ([`Log::waits`]).
    ///
    /// # Errors
    /// [`LogError::Busy`] when another process has it; otherwise the reason not to sign anything.
    pub fn open(places: &LogPlaces) -> Result<Log, LogError> {
        let reader = places.store.reader()?;
        let lock = take_lock(places)?;
        let origin = reader.origin()?;
        let (database, key, found) = match Database::open(places, true)? {
            Some(database) => {
                let key = keys::load_log_key(places, &origin)?;
                (database, key, true)
            }
            None => {
                let (database, key) = create(places, &origin)?;
                (database, key, false)
            }
        };
        let settled = database.tree()?.settled;
        let mut log = Log {
            places: places.clone(),
            database,
            key,
            signers: Vec::new(),
            follower: Follower::new(settled),
            reader,
            waiting: None,
            _lock: lock,
        };
        if found {
            log.begin_to_wait()?;
        }
        log.check_published()?;
        log.publish()?;
        check_standing(places)?;
        log.enrol_first()?;
        Ok(log)
    }

    /// The key that the log's signatures are checked with.
    #[must_use]
    pub fn verifier(&self) -> &VerifierKey {
        self.key.notes.verifier()
    }

    /// Makes the heads that are due and gives every leaf that waits its place.
    ///
    /// # Errors
    /// What keeps the log from going on, [`LogError::Unconfirmed`] while it waits for its witnesses; what was signed
    /// before stays as it is.
    pub fn round(&mut self) -> Result<Round, LogError> {
        self.publish()?;
        let tree = self.database.tree()?;
        if let Some(reason) = tree.frozen {
            return Err(LogError::Frozen { reason });
        }
        self.check_confirmed()?;
        self.make_heads()?;
        let mut all = Round::default();
        loop {
            let round = self.sequence()?;
            all.leaves += round.leaves;
            all.size = round.size;
            if round.leaves < ROUND_LEAVES_MAX as u64 {
                return Ok(all);
            }
        }
    }

    /// Checks that the published tree is not ahead of the remembered one.
    fn check_published(&self) -> Result<(), LogError> {
        let known = self.database.tree()?.head;
        let Some((_, published)) = self.places.published()? else { return Ok(()) };
        if published.size() > known.size {
            let seen_by = format!("`{}`", self.places.checkpoint().display());
            return Err(LogError::RolledBack { known: known.size, seen: published.size(), seen_by });
        }
        if published.size() == known.size && published.root() != known.root {
            return Err(LogError::Forked { size: known.size });
        }
        Ok(())
    }

    /// Enrols a first writer.
    fn enrol_first(&mut self) -> Result<(), LogError> {
        let writers = self.database.writers()?;
        if writers.iter().any(|row| row.state == WriterState::Current) {
            return Ok(());
        }
        self.enrol(LABEL)
    }

    /// Makes a key, enrols it, and has it sign from now on.
    fn enrol(&mut self, label: &str) -> Result<(), LogError> {
        let signer = keys::create_writer_key(&self.places)?;
        let leaf = Leaf::Enrol {
            origin: self.reader.origin()?,
            public: signer.public(),
            label: label.to_owned(),
            admin: self.key.admin.id(),
        };
        let leaf = leaf.sign(&self.key.admin).map_err(LogError::tiles)?;
        let row = WriterRow {
            key: signer.id(),
            public: signer.public(),
            epoch: 0,
            next: 0,
            state: WriterState::Current,
        };
        self.database.write(|transaction| {
            transaction.execute("UPDATE writers SET state = 'retired' WHERE state = 'current'", [])?;
            insert_leaf(transaction, &leaf, None, Some(row.key))?;
            put_writer(transaction, &row)
        })?;
        self.signers.push(signer);
        Ok(())
    }

    /// Puts every head that is due in line.
    fn make_heads(&mut self) -> Result<(), LogError> {
        loop {
            let Log { follower, reader, database, .. } = self;
            let more = follower.take_up(reader.as_ref(), |segment| database.segment(segment))?;
            let rows = self.follower.rows();
            for rows in rows.chunks(HEADS_A_TRANSACTION) {
                self.make_heads_of(rows)?;
            }
            if !more {
                break;
            }
        }
        let settled = self.follower.settled();
        if settled != self.database.tree()?.settled {
            self.database.write(|transaction| {
                transaction.execute("UPDATE tree SET settled = ?1", params![settled]).map(drop)
            })?;
        }
        Ok(())
    }

    fn make_heads_of(&mut self, rows: &[i64]) -> Result<(), LogError> {
        let mut due = Vec::new();
        for row in rows {
            let heads = self.follower.due(self.reader.as_ref(), *row)?;
            if !heads.is_empty() {
                due.push((*row, heads));
            }
        }
        if due.is_empty() {
            return Ok(());
        }
        let origin = self.reader.origin()?;
        let mut writers = self.database.writers()?;
        let mut signed = Vec::new();
        let mut stands = Vec::new();
        for (row, heads) in due {
            let Some(watched) = self.follower.get(row) else { continue };
            if watched.logged.is_some_and(|logged| is_revoked(&writers, logged.writer)) {
                // Nothing that its key signs counts, so the log never sees its end.
                self.follower.give_up(row);
                continue;
            }
            let (run, segment, ordinal, parent) =
                (watched.run, watched.segment, watched.ordinal, watched.parent);
            let mut logged = watched.logged;
            for due in heads {
                let stand = next_stand(logged, run, &mut writers)?;
                let head = run_head(&origin, &stand, segment, ordinal, parent, due, logged);
                let leaf = Leaf::Head(head).sign(self.signer(stand.writer)?).map_err(LogError::tiles)?;
                logged =
                    Some(LoggedSegment { state: due.state, count: due.count, last: leaf.hash(), ..stand });
                signed.push((segment, leaf));
            }
            if let Some(logged) = logged {
                stands.push((row, segment, logged));
            }
        }
        self.database.write(|transaction| {
            for (segment, leaf) in &signed {
                insert_leaf(transaction, leaf, Some(*segment), None)?;
            }
            for (_, segment, logged) in &stands {
                put_segment(transaction, *segment, logged)?;
            }
            writers.iter().try_for_each(|writer| put_writer(transaction, writer))
        })?;
        for (row, _, logged) in stands {
            self.follower.made(row, logged);
        }
        Ok(())
    }

    fn signer(&mut self, key: KeyId) -> Result<&LeafSigner, LogError> {
        let place = match self.signers.iter().position(|signer| signer.id() == key) {
            Some(place) => place,
            None => {
                self.signers.push(keys::load_writer_key(&self.places, key)?);
                self.signers.len() - 1
            }
        };
        self.signers.get(place).ok_or(LogError::WriterUnknown(key))
    }
}

fn is_revoked(writers: &[WriterRow], key: KeyId) -> bool {
    writers.iter().any(|row| row.key == key && row.state == WriterState::Revoked)
}

/// The state of a segment before its next head: unchanged, or numbered again.
fn next_stand(
    logged: Option<LoggedSegment>,
    run: portcullis_proof::Id,
    writers: &mut [WriterRow],
) -> Result<LoggedSegment, LogError> {
    if let Some(logged) = logged {
        return Ok(logged);
    }
    let current = writers.iter_mut().find(|row| row.state == WriterState::Current);
    let Some(writer) = current else {
        return Err(LogError::LeafRefused { message: "no writer is enrolled".to_owned() });
    };
    let run_no = writer.next;
    writer.next += 1;
    Ok(LoggedSegment {
        run,
        writer: writer.key,
        epoch: writer.epoch,
        run_no,
        state: portcullis_proof::log::RunState::Open,
        count: 0,
        last: empty_root(),
    })
}

fn run_head(
    origin: &str,
    stand: &LoggedSegment,
    segment: portcullis_proof::Id,
    ordinal: u64,
    parent: Option<portcullis_proof::Parent>,
    due: DueHead,
    before: Option<LoggedSegment>,
) -> RunHead {
    RunHead {
        origin: origin.to_owned(),
        run: stand.run,
        segment,
        ordinal,
        parent,
        writer: stand.writer,
        epoch: stand.epoch,
        run_no: stand.run_no,
        state: due.state,
        count: due.count,
        link: due.link,
        bundle: due.bundle,
        previous: before.map(|before| before.last),
        signer: stand.writer,
    }
}

fn take_lock(places: &LogPlaces) -> Result<File, LogError> {
    let path = places.lock();
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path)
        .map_err(|error| LogError::io(&path, "open the lock", &error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(std::fs::TryLockError::WouldBlock) => Err(LogError::Busy { folder: places.database.clone() }),
        Err(std::fs::TryLockError::Error(error)) => Err(LogError::io(&path, "take the lock", &error)),
    }
}

/// Makes a log: keys, a signed tree without leaves, the folder that is published.
fn create(places: &LogPlaces, origin: &str) -> Result<(Database, LogKey), LogError> {
    if places.checkpoint().exists() {
        let (database, checkpoint) = (places.database_file(), places.checkpoint());
        return Err(LogError::StateLost { database, checkpoint });
    }
    make_folder(&places.keys, 0o700)?;
    make_folder(&places.public, 0o755)?;
    let key = keys::create_log_key(places, origin)?;
    let head = TreeHead { size: 0, root: empty_root() };
    let note = sequencer::sign(&key.notes, origin, head)?;
    Database::create(places, origin, head, &note)?;
    let database =
        Database::open(places, true)?.ok_or_else(|| LogError::NoLog { folder: places.database.clone() })?;
    Ok((database, key))
}

/// The key that the log of a store signs with, as others check it. Reads `log.key`.
///
/// # Errors
/// When the key is missing or malformed.
pub fn verifier_key(places: &LogPlaces) -> Result<VerifierKey, LogError> {
    let origin = places.store.reader()?.origin()?;
    Ok(keys::load_log_key(places, &origin)?.notes.verifier().clone())
}

/// The key of the log of a store, to sign statements with. Reads `log.key`.
///
/// # Errors
/// When the key is missing or malformed.
pub fn statement_signer(places: &LogPlaces) -> Result<NoteSigner, LogError> {
    let origin = places.store.reader()?.origin()?;
    Ok(keys::load_log_key(places, &origin)?.notes)
}

/// Whether a path looks like a place with a log.
#[must_use]
pub fn exists(ledger: &Path) -> bool {
    LogPlaces::beside(ledger).database_file().exists()
}
