//! The monitor: reads every leaf of a log, in order, and says what no export can show.
//!
//! An export shows that its heads are in the log. That the log has no other heads of the run, and that no run was left
//! out, shows only the whole log. What contradicts what came before is an [`Alert`] at once. What may still come is
//! kept: numbers that a writer has passed over ([`Monitor::missing`]) and segments without end ([`Monitor::open`]),
//! each with the index since when, so that the caller can set deadlines.
//!
//! It takes the leaves for granted: the caller has read them from tiles of a checkpoint that it follows. What it
//! knows can be put aside and taken up again ([`Monitor::state`], [`Monitor::resume`]).

mod state;

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::chain::{Digest, Id};
use crate::log::key::VerifierKey;
use crate::log::leaf::{KeyId, Leaf, RunHead, RunState, SignedLeaf, key_id};

pub use self::state::{MonitorState, StateError};

/// The most heads of a log that one monitor follows.
pub const MONITOR_HEADS_MAX: usize = 1 << 22;

/// The most numbers of one writer that may be missing at a time; more at once are an alert and are not kept.
pub const MONITOR_MISSING_MAX: u64 = 4096;

/// What is wrong with a leaf.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AlertKind {
    /// It is not a leaf of this version.
    LeafMalformed,
    /// It is of another log.
    WrongOrigin,
    /// Someone enrolled or revoked a writer who may not.
    AdminUnknown,
    /// Its signature does not hold.
    LeafForged,
    /// Nobody enrolled its signer, or the writer that it names.
    WriterNotEnrolled,
    /// Its signer was revoked.
    WriterRevoked,
    /// A segment does not begin with an open head.
    NotOpened,
    /// More numbers are passed over than are kept, or a writer admits that it opened more than the log knows.
    RunsMissing,
    /// A number, or a segment, has another one already.
    RunNumberReused,
    /// A head has fewer events than the one before, or follows the end.
    HeadRegressed,
    /// A head does not follow the last head of its segment.
    HeadForked,
    /// A segment ends a second time.
    ClosedTwice,
    /// A writer begins another epoch than the next, or has one that no leaf began.
    EpochSkipped,
    /// A writer knows of fewer segments than it opened: its state was lost or put back.
    EpochForgot,
}

/// Something that should not be in the log.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Alert {
    /// The index of the leaf.
    pub index: u64,
    /// What is wrong.
    pub kind: AlertKind,
    /// What was expected, and what was found instead.
    pub message: String,
}

/// A log has more heads than a monitor follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the log has more than {MONITOR_HEADS_MAX} heads; begin a new log and freeze this one")]
pub struct MonitorFull;

/// A number that a writer passed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct MissingRun {
    /// The writer.
    pub writer: KeyId,
    /// The epoch.
    pub epoch: u64,
    /// The number.
    pub run_no: u64,
    /// The index of the leaf that passed it over.
    pub since: u64,
}

/// A segment that has no end yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenSegment {
    /// The run.
    pub run: Id,
    /// The segment.
    pub segment: Id,
    /// The number of events that are logged.
    pub count: u64,
    /// The index of its last head.
    pub since: u64,
}

struct Writer {
    public: [u8; 32],
    revoked: bool,
    epoch: u64,
    /// The number that the next segment has.
    next: u64,
}

struct Segment {
    run: Id,
    number: (KeyId, u64, u64),
    state: RunState,
    count: u64,
    last: Digest,
    since: u64,
}

/// What one reader of a whole log knows.
pub struct Monitor {
    origin: String,
    admins: Vec<VerifierKey>,
    next: u64,
    writers: HashMap<KeyId, Writer>,
    segments: HashMap<Id, Segment>,
    /// Numbers that were passed over, by writer, epoch and number, with the index since when.
    missing: BTreeMap<(KeyId, u64, u64), u64>,
    /// The hash of every head, since one that is handed in again is not a contradiction.
    heads: HashSet<Digest>,
}

impl std::fmt::Debug for Monitor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let counts = (self.next, self.writers.len(), self.segments.len());
        f.debug_struct("Monitor")
            .field("origin", &self.origin)
            .field("counts", &counts)
            .finish_non_exhaustive()
    }
}

impl Monitor {
    /// A monitor of the log of an origin, whose writers these keys enrol.
    #[must_use]
    pub fn new(origin: &str, admins: Vec<VerifierKey>) -> Monitor {
        Monitor {
            origin: origin.to_owned(),
            admins,
            next: 0,
            writers: HashMap::new(),
            segments: HashMap::new(),
            missing: BTreeMap::new(),
            heads: HashSet::new(),
        }
    }

    /// The index of the leaf that is read next.
    #[must_use]
    pub fn next_index(&self) -> u64 {
        self.next
    }

    /// Numbers that were passed over and did not come yet.
    pub fn missing(&self) -> impl Iterator<Item = MissingRun> {
        let missing = self.missing.iter();
        missing.map(|((writer, epoch, run_no), since)| MissingRun {
            writer: *writer,
            epoch: *epoch,
            run_no: *run_no,
            since: *since,
        })
    }

    /// Segments without end, in no order.
    pub fn open(&self) -> impl Iterator<Item = OpenSegment> {
        self.segments.iter().filter(|(_, segment)| !segment.state.is_final()).map(|(id, segment)| {
            OpenSegment { run: segment.run, segment: *id, count: segment.count, since: segment.since }
        })
    }

    /// Reads the next leaf. One whose signature does not count changes nothing.
    ///
    /// # Errors
    /// When the log has more heads than a monitor follows; the leaf is not read then.
    pub fn read(&mut self, entry: &[u8]) -> Result<Vec<Alert>, MonitorFull> {
        if self.heads.len() >= MONITOR_HEADS_MAX {
            return Err(MonitorFull);
        }
        let mut alerts = Alerts { index: self.next, found: Vec::new() };
        self.next += 1;
        match SignedLeaf::parse(entry) {
            Ok(leaf) if leaf.leaf.origin() != self.origin => {
                let message = format!("the leaf is of `{}`", leaf.leaf.origin().escape_debug());
                alerts.add(AlertKind::WrongOrigin, message);
            }
            Ok(leaf) => {
                if let Err((kind, message)) = self.signed(&leaf) {
                    alerts.add(kind, message);
                } else {
                    self.follow(&leaf, &mut alerts);
                }
            }
            Err(error) => alerts.add(AlertKind::LeafMalformed, error.to_string()),
        }
        Ok(alerts.found)
    }

    /// Whether the signature of a leaf counts.
    fn signed(&self, leaf: &SignedLeaf) -> Result<(), (AlertKind, String)> {
        let signer = leaf.leaf.signer();
        let public = match &leaf.leaf {
            Leaf::Enrol { .. } | Leaf::Revoke { .. } => {
                let admin = self.admins.iter().find(|admin| key_id(admin.public()) == signer);
                let message = || format!("key `{signer}` may not enrol or revoke writers");
                admin.ok_or_else(|| (AlertKind::AdminUnknown, message()))?.public()
            }
            Leaf::Epoch { .. } | Leaf::Head(_) => {
                let unknown = |key| (AlertKind::WriterNotEnrolled, format!("key `{key}` is not enrolled"));
                let writer = self.writers.get(&signer).ok_or_else(|| unknown(signer))?;
                if writer.revoked {
                    return Err((AlertKind::WriterRevoked, format!("key `{signer}` is revoked")));
                }
                if let Leaf::Head(head) = &leaf.leaf
                    && !self.writers.contains_key(&head.writer)
                {
                    return Err(unknown(head.writer));
                }
                &writer.public
            }
        };
        leaf.verify(public).map_err(|error| (AlertKind::LeafForged, format!("{error} under key `{signer}`")))
    }

    fn follow(&mut self, leaf: &SignedLeaf, alerts: &mut Alerts) {
        match &leaf.leaf {
            Leaf::Enrol { public, .. } => {
                let writer = Writer { public: *public, revoked: false, epoch: 0, next: 0 };
                self.writers.entry(key_id(public)).or_insert(writer);
            }
            Leaf::Revoke { writer, .. } => {
                if let Some(writer) = self.writers.get_mut(writer) {
                    writer.revoked = true;
                }
            }
            Leaf::Epoch { writer, epoch, runs, .. } => {
                let Some(known) = self.writers.get_mut(writer) else { return };
                if *epoch != known.epoch.saturating_add(1) {
                    alerts.add(AlertKind::EpochSkipped, format!("epoch {epoch} after epoch {}", known.epoch));
                }
                if *runs < known.next {
                    let message = format!("the writer knows of {runs} segments, the log has {}", known.next);
                    alerts.add(AlertKind::EpochForgot, message);
                } else if *runs > known.next {
                    let message = format!("the writer opened {runs} segments, the log has {}", known.next);
                    alerts.add(AlertKind::RunsMissing, message);
                }
                (known.epoch, known.next) = (*epoch, 0);
            }
            Leaf::Head(head) => {
                let hash = leaf.hash();
                if self.heads.insert(hash) {
                    self.head(head, hash, alerts);
                }
            }
        }
    }

    fn head(&mut self, head: &RunHead, hash: Digest, alerts: &mut Alerts) {
        let number = (head.writer, head.epoch, head.run_no);
        if let Some(segment) = self.segments.get_mut(&head.segment) {
            segment.head(head, number, hash, alerts);
            return;
        }
        if head.state != RunState::Open {
            alerts.add(
                AlertKind::NotOpened,
                format!("segment `{}` begins with {}", head.segment, head.state.as_str()),
            );
        }
        self.number(number, alerts);
        let (run, state, count, since) = (head.run, head.state, head.count, alerts.index);
        self.segments.insert(head.segment, Segment { run, number, state, count, last: hash, since });
    }

    /// A writer gives a number to a segment.
    fn number(&mut self, number: (KeyId, u64, u64), alerts: &mut Alerts) {
        if self.missing.remove(&number).is_some() {
            return;
        }
        let (key, epoch, run_no) = number;
        let Some(writer) = self.writers.get_mut(&key) else { return };
        if epoch != writer.epoch {
            alerts.add(
                AlertKind::EpochSkipped,
                format!("a segment of epoch {epoch} in epoch {}", writer.epoch),
            );
            return;
        }
        if run_no < writer.next {
            alerts.add(AlertKind::RunNumberReused, format!("number {run_no} of epoch {epoch} is taken"));
            return;
        }
        if run_no - writer.next > MONITOR_MISSING_MAX {
            let message = format!("numbers {} to {run_no} of epoch {epoch} are passed over", writer.next);
            alerts.add(AlertKind::RunsMissing, message);
        } else {
            self.missing.extend((writer.next..run_no).map(|run_no| ((key, epoch, run_no), alerts.index)));
        }
        writer.next = run_no.saturating_add(1);
    }
}

impl Segment {
    fn head(&mut self, head: &RunHead, number: (KeyId, u64, u64), hash: Digest, alerts: &mut Alerts) {
        let mut bad =
            |kind, message: String| alerts.add(kind, format!("segment `{}`: {message}", head.segment));
        if self.state.is_final() {
            let again = head.state.is_final();
            let kind = if again { AlertKind::ClosedTwice } else { AlertKind::HeadRegressed };
            bad(kind, format!("{} after its end at index {}", head.state.as_str(), self.since));
            return;
        }
        if (self.run, self.number) != (head.run, number) {
            bad(AlertKind::RunNumberReused, "it had another run, writer or number before".to_owned());
        }
        if head.previous != Some(self.last) {
            bad(AlertKind::HeadForked, format!("the head does not follow the one at index {}", self.since));
        }
        if head.count < self.count {
            bad(AlertKind::HeadRegressed, format!("{} events after {}", head.count, self.count));
        }
        (self.state, self.count, self.last, self.since) = (head.state, head.count, hash, alerts.index);
    }
}

/// What is wrong with one leaf.
struct Alerts {
    index: u64,
    found: Vec<Alert>,
}

impl Alerts {
    fn add(&mut self, kind: AlertKind, message: String) {
        self.found.push(Alert { index: self.index, kind, message });
    }
}
