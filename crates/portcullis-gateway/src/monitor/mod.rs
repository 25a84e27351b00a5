//! A monitor: follows one log, reads every leaf of it, and says what no export can show (`specs/run-heads.md` §4).
//!
//! ```text
//! checkpoint ─ signed by a log of the policy? ─ continues what is remembered? ─> leaves, 256 at a time ─ in the tree?
//!                                                        │                              │
//!                                                   fork: a proof             numbers, heads, writers
//! ```
//!
//! Nothing that is read is believed before it was held against a signed tree, so it does not matter from where it
//! comes. A *leaf* is reported on once. A *standing* alert (a log that forked, a number that does not come, a
//! cosignature that is too old) is reported when it begins, and again when it begins again.
//!
//! Between two starts it keeps what it remembers (`memory`) and what it has read (`leaves`). A state that cannot be used is
//! an alert, is set aside, and everything begins again: nothing of it is believed.

mod fork;
mod leaves;
mod memory;
mod source;

use std::collections::BTreeSet;
use std::path::Path;

use portcullis_ledger::log::put;
use portcullis_proof::Digest;
use portcullis_proof::log::tile::{TILE_WIDTH, read_bundle};
use portcullis_proof::log::tree::{root, verify_consistency};
use portcullis_proof::log::{
    Checkpoint, Note, PolicyError, TileError, TileId, TileKind, TileReader, TileSource as _, TreeHead,
    TrustPolicy, VerifierKey, leaf_hash,
};
use serde::Serialize;

pub use self::fork::{FORK_BYTES_MAX, ForkError, ForkProof};
pub use self::source::LogSource;
pub use crate::kept::KeptError;

use self::leaves::Read;
use self::memory::Memory;
use crate::kept::{Kept, beside};

/// The ending of the name of the file with what was read.
const LEAVES_ENDING: &str = ".leaves";
/// What was read is filed once this many leaves are new, and an eighth of it.
const LEAVES_A_FILE_MIN: u64 = 256;
/// The most alerts reported per check; beyond that, only the number is reported.
pub const ALERTS_MAX: usize = 1000;

/// What to watch, and for what.
#[derive(Debug, Clone)]
pub struct WatchOptions {
    /// Whom to believe.
    pub trust: TrustPolicy,
    /// Which log of the policy.
    pub origin: String,
    /// How long a number may be missing, in seconds.
    pub missing_for: u64,
    /// How long a segment may have no end and no new head, in seconds.
    pub open_for: u64,
    /// How old the newest cosignature may be, in seconds, where the policy names witnesses.
    pub stale: u64,
}

/// Something that should not be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WatchAlert {
    /// What it is, in words joined by hyphens.
    pub kind: String,
    /// The index of the leaf, where it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<u64>,
    /// What was expected, and what was found instead.
    pub message: String,
    /// The proof of a fork.
    #[serde(skip)]
    pub fork: Option<Box<ForkProof>>,
}

/// What one look found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Look {
    /// The tree that is followed now, or `None` before the first.
    pub tree: Option<TreeHead>,
    /// Leaves that were reported on for the first time.
    pub leaves: u64,
    /// What is new. At most [`ALERTS_MAX`].
    pub alerts: Vec<WatchAlert>,
    /// How many more alerts there are.
    pub more: u64,
    /// Alerts in effect, new or reported before, other than those of leaves.
    pub standing: usize,
    /// Why the look did not come to its end.
    pub incomplete: Option<String>,
    /// Numbers that were passed over and did not come.
    pub missing: u64,
    /// Segments without end.
    pub open: u64,
    /// The newest time that a witness stated, in seconds since 1970.
    pub cosigned: Option<u64>,
}

/// One reader's watch over one log.
#[derive(Debug)]
pub struct Watch {
    options: WatchOptions,
    kept: Option<Kept>,
    memory: Memory,
    /// Whose enrolments count.
    admins: Vec<VerifierKey>,
    read: Read,
    /// How many leaves the file has of what was read.
    filed: u64,
    /// Whether what was read is of an earlier process, and was not yet held against the log.
    resumed: bool,
    /// What is wrong with the state, until it is told.
    unusable: Vec<WatchAlert>,
    /// Whether the state is to be set aside before another takes its place.
    aside: bool,
    standing: BTreeSet<(String, String)>,
}

/// Why a look ends early.
enum Stop {
    /// Something could not be read: another look may.
    Unread(String),
    /// The log did something that no log may.
    Alert(WatchAlert),
}

impl Watch {
    /// Begins, or continues from the state; without one, everything is new.
    ///
    /// # Errors
    /// When the state cannot be used.
    pub fn open(options: WatchOptions, state: Option<&Path>) -> Result<Self, KeptError> {
        let admins: Vec<VerifierKey> = options.trust.admins(&options.origin).cloned().collect();
        let mut watch = Self {
            kept: None,
            memory: Memory::new(&options.origin),
            read: Read::nothing(&options.origin, &admins),
            options,
            admins,
            filed: 0,
            resumed: false,
            unusable: Vec::new(),
            aside: false,
            standing: BTreeSet::new(),
        };
        if let Some(path) = state {
            watch.take_up(path)?;
        }
        Ok(watch)
    }

    /// Goes on from a state.
    fn take_up(&mut self, path: &Path) -> Result<(), KeptError> {
        let (kept, memory, unusable) = Memory::open(path, &self.options.origin, &self.options.trust)?;
        (self.kept, self.memory) = (Some(kept), memory);
        if let Some(why) = unusable {
            self.aside = true;
            self.unusable.push(unusable_state(format!(
                "the state `{}` cannot be used: {why}; it is set aside, so a log that forked or went back in the meantime is not noticed",
                path.display()
            )));
            return Ok(());
        }
        let newest = self.memory.newest().map(|(checkpoint, _)| checkpoint);
        let leaves = beside(path, LEAVES_ENDING);
        let (origin, told) = (&self.options.origin, self.memory.told);
        match Read::from_file(&leaves, origin, &self.admins, told, newest.as_ref()) {
            Ok(Some(read)) => {
                (self.filed, self.resumed) = (read.range.size(), true);
                self.read = read;
            }
            Ok(None) => {}
            Err(why) => self.unusable.push(unusable_state(format!(
                "`{}` cannot be used: {why}; all leaves are read again",
                leaves.display()
            ))),
        }
        Ok(())
    }

    /// Looks at the log. `now` is in seconds since 1970.
    pub fn look(&mut self, source: &LogSource, now: u64) -> Look {
        let mut look = Look::default();
        for alert in std::mem::take(&mut self.unusable) {
            look.add(alert);
        }
        let mut standing = Vec::new();
        match self.follow(source, now, &mut look) {
            Ok(()) => {}
            Err(Stop::Unread(why)) => look.incomplete = Some(why),
            Err(Stop::Alert(alert)) => standing.push(alert),
        }
        self.deadlines(now, &mut standing);
        let names = |alert: &WatchAlert| (alert.kind.clone(), alert.message.clone());
        let mut holds: BTreeSet<_> = standing.iter().map(names).collect();
        look.standing = holds.len();
        for alert in standing {
            if !self.standing.contains(&names(&alert)) {
                look.add(alert);
            }
        }
        // What could not be looked at still holds.
        if look.incomplete.is_some() {
            holds.append(&mut self.standing);
        }
        self.standing = holds;
        look.tree = self.memory.newest().map(|(checkpoint, _)| checkpoint.head());
        (look.missing, look.open) =
            (self.read.monitor.missing().count() as u64, self.read.monitor.open().count() as u64);
        look.cosigned = self.memory.cosigned;
        look
    }

    /// Makes durable what was reported, and what was read if much of it is new. Call it once the alerts of a check
    /// are out: after a crash before that, they are reported again.
    ///
    /// # Errors
    /// When the state could not be written.
    pub fn remember(&mut self) -> Result<(), KeptError> {
        let Some(kept) = &self.kept else { return Ok(()) };
        if std::mem::take(&mut self.aside)
            && let Err(error) = kept.set_aside()
        {
            self.aside = true;
            return Err(error);
        }
        self.memory.put(kept)?;
        let new = self.read.range.size().saturating_sub(self.filed);
        if new >= LEAVES_A_FILE_MIN.max(self.filed / 8) { self.file_leaves().map(drop) } else { Ok(()) }
    }

    /// Makes durable what was read, so that the next start reads on from here. To be called after [`Watch::remember`].
    /// The answer is whether it is: of a log that is too long for it, the beginning stays.
    ///
    /// # Errors
    /// When the file could not be written.
    pub fn file_leaves(&mut self) -> Result<bool, KeptError> {
        let (size, told) = (self.read.range.size(), self.memory.told);
        let Some(kept) = self.kept.as_ref().filter(|_| size != self.filed && size <= told) else {
            return Ok(true);
        };
        let Some(bytes) = self.read.to_bytes(&self.options.origin, &self.admins) else { return Ok(false) };
        put(&beside(kept.path(), LEAVES_ENDING), &bytes, 0o600)?;
        self.filed = size;
        Ok(true)
    }

    fn follow(&mut self, source: &LogSource, now: u64, look: &mut Look) -> Result<(), Stop> {
        let bytes = source.checkpoint().map_err(Stop::Unread)?;
        let (note, checkpoint) = Checkpoint::from_note(&bytes)
            .map_err(|error| Stop::Unread(format!("what is shown is not a checkpoint: {error}")))?;
        let lacking = self.believe(&note, &checkpoint)?;
        let head = checkpoint.head();
        let reader = TileReader::new(source, head);
        for known in
            self.options.trust.remembered.iter().filter(|known| known.origin() == checkpoint.origin())
        {
            continues(source, (known, None), (&checkpoint, &note), &reader)?;
        }
        if let Some((known, signed)) = self.memory.newest() {
            continues(source, (&known, Some(signed)), (&checkpoint, &note), &reader)?;
        }
        self.memory.advance(&checkpoint, note.to_string(), now);
        self.check_resumed(&reader, head, look)?;
        while self.read.range.size() < head.size {
            self.read_bundle(source, &reader, head, look)?;
        }
        lacking.map_or(Ok(()), |why| Err(Stop::Unread(why)))
    }

    /// Checks the signatures of a checkpoint. The answer says what the policy would still ask for.
    fn believe(&mut self, note: &Note<'_>, checkpoint: &Checkpoint) -> Result<Option<String>, Stop> {
        let policy = &self.options.trust.policy;
        if checkpoint.origin() != self.options.origin {
            let found = checkpoint.origin();
            let message = format!("a checkpoint of `{found}` is shown for `{}`", self.options.origin);
            return Err(stop("wrong-origin", message));
        }
        match policy.check(note) {
            Ok(endorsed) => {
                let newest = endorsed.cosigned.iter().map(|(_, time)| *time).max();
                self.memory.cosigned = self.memory.cosigned.max(newest);
                Ok(None)
            }
            Err(error @ PolicyError::Quorum { .. }) => Ok(Some(error.to_string())),
            Err(error) => Err(stop("checkpoint-forged", error.to_string())),
        }
    }

    /// Holds what an earlier process read against the tree that the log shows, which continues the one that was
    /// remembered. What is not its beginning is not believed.
    fn check_resumed(
        &mut self,
        reader: &TileReader<'_, LogSource>,
        head: TreeHead,
        look: &mut Look,
    ) -> Result<(), Stop> {
        let read = self.read.range.head();
        if !self.resumed {
            return Ok(());
        }
        let shown = match read.size {
            0 => read.root,
            size if size == head.size => head.root,
            size => beginning(reader, size, head)?.0,
        };
        self.resumed = false;
        if shown != read.root {
            (self.read, self.filed) = (Read::nothing(&self.options.origin, &self.admins), 0);
            look.add(unusable_state(format!(
                "what was read of the leaves is not the beginning of the tree of {} leaves that the log signed: it is of \
                 another history, or was changed; all leaves are read again",
                head.size
            )));
        }
        Ok(())
    }

    /// Reads leaves up to the end of a bundle. The monitor gets them once they are known to be in the tree.
    fn read_bundle(
        &mut self,
        source: &LogSource,
        reader: &TileReader<'_, LogSource>,
        head: TreeHead,
        look: &mut Look,
    ) -> Result<(), Stop> {
        let (first, width) = (self.read.range.size(), u64::from(TILE_WIDTH));
        let differ = |message: String| stop("leaves-differ", message);
        let tile = TileId::in_tree(TileKind::Entries, first / width, head.size)
            .ok_or_else(|| differ(format!("a tree of {} leaves has no leaf {first}", head.size)))?;
        let unread = |error: String| Stop::Unread(format!("could not read `{tile}`: {error}"));
        let bytes = source.tile(tile).map_err(unread)?;
        let entries =
            read_bundle(&bytes, tile.width()).map_err(|error| differ(format!("`{tile}`: {error}")))?;
        let fresh: Vec<&[u8]> = entries.into_iter().skip((first % width) as usize).collect();
        let mut range = self.read.range.clone();
        for entry in &fresh {
            range.push(leaf_hash(entry)).map_err(|error| differ(error.to_string()))?;
        }
        let path = reader.consistency(range.size()).map_err(of_tiles)?;
        verify_consistency(range.head(), head, &path).map_err(|error| {
            let last = range.size().saturating_sub(1);
            differ(format!("the leaves {first} to {last} that are shown are not those of the tree: {error}"))
        })?;
        for (entry, index) in fresh.iter().zip(first..) {
            let read = &mut self.read;
            let alerts = read.monitor.read(entry).map_err(|error| Stop::Unread(error.to_string()))?;
            read.range.push(leaf_hash(entry)).map_err(|error| differ(error.to_string()))?;
            if index < self.memory.told {
                continue;
            }
            self.memory.told = index + 1;
            look.leaves += 1;
            for alert in alerts {
                let kind = serde_json::to_value(alert.kind).ok();
                let kind = kind.as_ref().and_then(|kind| kind.as_str()).unwrap_or_default().to_owned();
                look.add(WatchAlert { kind, index: Some(index), message: alert.message, fork: None });
            }
        }
        Ok(())
    }

    /// What should have come by now.
    fn deadlines(&mut self, now: u64, standing: &mut Vec<WatchAlert>) {
        let memory = &self.memory;
        let overdue =
            |since: u64, limit: u64| memory.seen(since).is_some_and(|seen| now.saturating_sub(seen) >= limit);
        let alert = |kind: &str, index: Option<u64>, message: String| WatchAlert {
            kind: kind.to_owned(),
            index,
            message,
            fork: None,
        };
        let missing = self.read.monitor.missing().filter(|run| overdue(run.since, self.options.missing_for));
        standing.extend(missing.take(ALERTS_MAX).map(|run| {
            let (writer, epoch, number) = (run.writer, run.epoch, run.run_no);
            let message = format!("number {number} of epoch {epoch} of writer `{writer}` was skipped");
            alert("run-missing", Some(run.since), message)
        }));
        let open = self.read.monitor.open().filter(|segment| overdue(segment.since, self.options.open_for));
        let mut open: Vec<_> = open.collect();
        open.sort_by_key(|segment| segment.since);
        standing.extend(open.into_iter().take(ALERTS_MAX).map(|segment| {
            let (run, id, count) = (segment.run, segment.segment, segment.count);
            let message =
                format!("segment `{id}` of run `{run}` has no end; its last head has {count} events");
            alert("run-open", Some(segment.since), message)
        }));
        let fresh_at = self.memory.fresh_at(now);
        if !self.options.trust.policy.witnesses().is_empty()
            && now.saturating_sub(fresh_at) > self.options.stale
        {
            let message = match self.memory.cosigned {
                Some(time) => format!("no witness has cosigned since {time} (seconds since 1970)"),
                None => "no witness has cosigned since the first look".to_owned(),
            };
            standing.push(alert("cosignature-stale", None, message));
        }
    }
}

impl Look {
    fn add(&mut self, alert: WatchAlert) {
        if self.alerts.len() < ALERTS_MAX { self.alerts.push(alert) } else { self.more += 1 }
    }
}

fn unusable_state(message: String) -> WatchAlert {
    WatchAlert { kind: "state-unusable".to_owned(), index: None, message, fork: None }
}

fn stop(kind: &str, message: String) -> Stop {
    Stop::Alert(WatchAlert { kind: kind.to_owned(), index: None, message, fork: None })
}

/// What a failure to read tiles means: nothing, where they did not come; else that the log shows something false.
fn of_tiles(error: TileError<String>) -> Stop {
    match error {
        TileError::Source { .. } => Stop::Unread(error.to_string()),
        _ => stop("tiles-differ", error.to_string()),
    }
}

/// Whether the shown tree continues a known one, which the log signed where there is a note of it.
fn continues(
    source: &LogSource,
    (known, known_note): (&Checkpoint, Option<&str>),
    (shown, shown_note): (&Checkpoint, &Note<'_>),
    reader: &TileReader<'_, LogSource>,
) -> Result<(), Stop> {
    let (from, to) = (known.head(), shown.head());
    if to.size < from.size {
        return Err(went_back(source, (known, known_note), (shown, shown_note)));
    }
    let (beginning, path) =
        if to.size == from.size { (to.root, Vec::new()) } else { beginning(reader, from.size, to)? };
    if beginning == from.root {
        return Ok(());
    }
    let message = format!(
        "the tree of {} leaves does not begin with the tree of {} leaves that was signed before",
        to.size, from.size
    );
    Err(forked(message, known_note, Some(&shown_note.to_string()), beginning, path))
}

/// The root that the first `size` leaves of a tree have, and the proof of it, verified.
fn beginning(
    reader: &TileReader<'_, LogSource>,
    size: u64,
    tree: TreeHead,
) -> Result<(Digest, Vec<Digest>), Stop> {
    let beginning = root(reader, size).map_err(of_tiles)?;
    let path = reader.consistency(size).map_err(of_tiles)?;
    verify_consistency(TreeHead { size, root: beginning }, tree, &path).map_err(|error| {
        stop(
            "tiles-differ",
            format!("the tiles do not lead to the checkpoint of {} leaves: {error}", tree.size),
        )
    })?;
    Ok((beginning, path))
}

/// A log that shows fewer leaves than before was restored from an old copy, or shows one. Where the tree that was
/// there is still to be read, it may be shown that the smaller one is another.
fn went_back(
    source: &LogSource,
    (known, known_note): (&Checkpoint, Option<&str>),
    (shown, shown_note): (&Checkpoint, &Note<'_>),
) -> Stop {
    let reader = TileReader::new(source, known.head());
    if shown.size() > 0
        && let Ok((beginning, path)) = beginning(&reader, shown.size(), known.head())
        && beginning != shown.root()
    {
        let message = format!(
            "the tree of {} leaves is not the beginning of the tree of {} leaves that was signed before",
            shown.size(),
            known.size()
        );
        return forked(message, Some(&shown_note.to_string()), known_note, beginning, path);
    }
    let message = format!("the log had {} leaves and now shows {}", known.size(), shown.size());
    stop("rolled-back", message)
}

fn forked(
    message: String,
    smaller: Option<&str>,
    larger: Option<&str>,
    beginning: Digest,
    path: Vec<Digest>,
) -> Stop {
    let notes = smaller.zip(larger);
    let fork = notes.map(|(smaller, larger)| Box::new(ForkProof::new(smaller, larger, beginning, path)));
    Stop::Alert(WatchAlert { kind: "log-forked".to_owned(), index: None, message, fork })
}
