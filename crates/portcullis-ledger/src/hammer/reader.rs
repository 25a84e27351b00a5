//! A reader: a stranger who believes the log's key, and computes everything else again.
//!
//! What was acknowledged to a writer, a reader then requires of the store: the acknowledged head is in a trust file.
//! Every run that was closed is exported with its evidence and has to be `VALID`. Between those, runs that go on are
//! exported, leaves are drawn by lot, and the checkpoint that is published is followed along consistency proofs from
//! the one that this reader saw before.

use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use portcullis_proof::log::files::EXPORT_FILE;
use portcullis_proof::log::{Checkpoint, File, History, TileReader, TreeHead, TrustPolicy};
use portcullis_proof::trust::{head_line, preamble};
use portcullis_proof::{Hex, LoggedReport, Status, Trust, verify, verify_files};

use super::{Closed, Random, Shared};
use crate::log::LogReader;
use crate::{ExportOptions, Head, SqliteReader};

/// How often a reader looks at what is not closed yet.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// How long a reader with nothing to do waits.
const IDLE: Duration = Duration::from_millis(5);
/// Leaves of one look.
const LEAVES_A_LOOK: u64 = 4;

/// How often a reader follows the log for one run.
const FOLLOW_MAX: usize = 10;

/// What a reader read, all of it verified.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct HammerReads {
    /// Runs that were closed, exported with their evidence, and found `VALID`.
    pub runs: u64,
    /// Events whose links were computed again, in those and in runs that went on.
    pub events: u64,
    /// Exports of runs that went on, held to the head that was acknowledged last.
    pub open_runs: u64,
    /// Leaves that were read from tiles with their proofs.
    pub leaves: u64,
    /// Checkpoints that were shown to continue the one before.
    pub checkpoints: u64,
}

impl HammerReads {
    pub(super) fn add(&mut self, other: HammerReads) {
        self.runs += other.runs;
        self.events += other.events;
        self.open_runs += other.open_runs;
        self.leaves += other.leaves;
        self.checkpoints += other.checkpoints;
    }
}

struct Stranger<'s> {
    shared: &'s Shared<'s>,
    reader: SqliteReader,
    log: LogReader,
    history: Option<History>,
    random: Random,
    reads: HammerReads,
}

/// Reads until everything that was closed is verified.
pub(super) fn read(shared: &Shared<'_>) -> Result<HammerReads, String> {
    let told = |error: &dyn std::fmt::Display| format!("reading: {error}");
    let mut stranger = Stranger {
        shared,
        reader: SqliteReader::open(shared.ledger.folder()).map_err(|error| told(&error))?,
        log: LogReader::open(&shared.places).map_err(|error| told(&error))?,
        history: None,
        random: Random::new()?,
        reads: HammerReads::default(),
    };
    let mut looked = Instant::now();
    loop {
        match shared.next_proven() {
            Some(closed) => stranger.closed_run(&closed)?,
            None if shared.is_observed() => return Ok(stranger.reads),
            None => std::thread::sleep(IDLE),
        }
        if looked.elapsed() >= LOOK_EVERY {
            looked = Instant::now();
            stranger.follow()?;
            stranger.leaves()?;
            stranger.open_run()?;
        }
    }
}

impl Stranger<'_> {
    /// Continues to the published checkpoint.
    fn follow(&mut self) -> Result<(), String> {
        let told = |error: &dyn std::fmt::Display| format!("the published checkpoint: {error}");
        let Some((text, _)) = self.shared.places.published().map_err(|error| told(&error))? else {
            return Err("no checkpoint is published".to_owned());
        };
        let (note, found) = Checkpoint::from_note(text.as_bytes()).map_err(|error| told(&error))?;
        note.verify([&self.shared.key]).map_err(|error| told(&error))?;
        let Some(history) = &mut self.history else {
            self.history = Some(History::new(found));
            return Ok(());
        };
        let known = history.newest().size();
        if known == found.size() && history.newest() == &found {
            return Ok(());
        }
        let tiles = self.shared.places.tiles();
        let path = TileReader::new(&tiles, found.head()).consistency(known).map_err(|error| told(&error))?;
        history.advance(found, &path).map_err(|error| told(&error))?;
        self.reads.checkpoints += 1;
        Ok(())
    }

    /// Reads leaves at places drawn by lot.
    fn leaves(&mut self) -> Result<(), String> {
        let Some(head) = self.history.as_ref().map(|history| history.newest().head()) else { return Ok(()) };
        let tiles = self.shared.places.tiles();
        let reader = TileReader::new(&tiles, head);
        for _ in 0..LEAVES_A_LOOK.min(head.size) {
            let index = self.random.below(head.size);
            reader.leaf(index).map_err(|error| format!("leaf {index} of {}: {error}", head.size))?;
            self.reads.leaves += 1;
        }
        Ok(())
    }

    /// Reads an open run, up to its current head.
    fn open_run(&mut self) -> Result<(), String> {
        let slot = self.random.below(self.shared.slots() as u64);
        let Some(head) = self.shared.live(slot) else { return Ok(()) };
        let (export, trust) = self.export(head)?;
        let report = verify(&*export, Some(&trust)).map_err(|error| format!("run {}: {error}", head.run))?;
        let there = report.head.map_or(0, |head| head.count);
        if report.failure.is_some() || there < head.count {
            return Err(format!("run {}, acknowledged up to event {}: {report}", head.run, head.count));
        }
        self.reads.open_runs += 1;
        self.reads.events += report.events;
        Ok(())
    }

    /// Verifies a run that was closed, as a stranger with a policy that remembers a tree.
    fn closed_run(&mut self, closed: &Closed) -> Result<(), String> {
        let head = closed.head;
        let told = |error: &dyn std::fmt::Display| format!("run {}: {error}", head.run);
        let (export, trust) = self.export(head)?;
        let mut tries = 0;
        loop {
            self.follow()?;
            let Some(known) = self.history.as_ref().map(|history| history.newest().head()) else {
                return Err(told(&"no checkpoint to hold it to"));
            };
            let report = self.judge(head, known, &export, &trust).map_err(|error| told(&error))?;
            let log = report.log.as_ref();
            // The log has gone on since this reader looked, so it does not know the tree of the proof yet.
            let newer = log.and_then(|log| log.tree_size).is_some_and(|size| size > known.size);
            tries += 1;
            if report.status == Status::Incomplete && newer && tries < FOLLOW_MAX {
                continue;
            }
            if report.status != Status::Valid {
                let what = log.and_then(|log| log.failure.as_ref()).map(|failure| failure.message.as_str());
                return Err(told(&format!("{:?}: {}", report.status, what.unwrap_or("no failure is named"))));
            }
            self.reads.runs += 1;
            self.reads.events += report.export.events;
            self.shared.verified();
            return Ok(());
        }
    }

    /// What a stranger says who remembers a tree.
    fn judge(
        &self,
        head: Head,
        known: TreeHead,
        export: &[u8],
        trust: &Trust,
    ) -> Result<LoggedReport, Box<dyn std::error::Error>> {
        let root = STANDARD.encode(known.root.0);
        let (key, origin) = (&self.shared.key, self.shared.ledger.origin());
        let policy = format!("log {key}\nquorum none\nremember {origin} {} {root}\n", known.size);
        let policy = TrustPolicy::parse(policy.as_bytes())?;
        let evidence = self.log.evidence(head.run, &[known.size])?;
        let mut files = vec![File { name: EXPORT_FILE, bytes: export }];
        files.extend(evidence.iter().map(|file| File { name: &file.name, bytes: &file.bytes }));
        Ok(verify_files(&files, Some(trust), &policy)?)
    }

    /// A run as it is, and a trust file with what was acknowledged of it.
    fn export(&self, head: Head) -> Result<(Vec<u8>, Trust), String> {
        let told = |error: &dyn std::fmt::Display| format!("run {}: {error}", head.run);
        let mut export = Vec::new();
        let options = ExportOptions { payloads: true };
        self.reader.export_run(head.run, &mut export, options).map_err(|error| told(&error))?;
        let known = portcullis_proof::Head { count: head.count, link: head.link };
        let line = head_line(Hex(*head.run.as_bytes()), known);
        let text = format!("{}{line}\n", preamble(self.shared.ledger.origin()));
        let trust = Trust::parse(&text).map_err(|error| told(&error))?;
        Ok((export, trust))
    }
}
