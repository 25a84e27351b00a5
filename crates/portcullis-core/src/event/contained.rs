//! What is recorded of what runs contained: that it does, and what was seen of it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::id::{ActionId, Digest, DigestBuilder, canonical_json};
use crate::observed::{Connection, ConnectionVerdict, Counts, Ended, Limit, Observed, Seen};
use crate::profile::{Level, Profile};

/// That something runs contained. The ticket that goes with it is known to who runs it, and to nobody who reads the
/// record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contained {
    /// The profile's name.
    pub profile: String,
    /// Its [digest](crate::profile::Profile::digest).
    pub digest: Digest,
    /// Digest of the ticket with which is reported what was seen.
    pub ticket: Digest,
}

impl Contained {
    /// Something that runs under a profile, with a ticket of this digest.
    #[must_use]
    pub fn under(profile: &Profile, ticket: Digest) -> Self {
        Self { profile: profile.name.clone(), digest: profile.digest(), ticket }
    }
}

impl Profile {
    /// Names the profile with all that it says, whatever the order of its fields was.
    #[must_use]
    pub fn digest(&self) -> Digest {
        // A path that is no text has no JSON text.
        let text =
            serde_json::to_value(self).map_or_else(|_| format!("{self:?}"), |json| canonical_json(&json));
        DigestBuilder::new("portcullis/profile/v1").part(text.as_bytes()).finish()
    }
}

/// Body of `observed`. Which names it has is not checked here: one of `action` and `server`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ObservedRecord {
    /// The action that ran contained.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<ActionId>,
    /// What the server is known by that ran contained, where it is no action.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The profile's name.
    pub profile: String,
    /// Its digest.
    pub digest: Digest,
    /// What was seen.
    #[serde(flatten)]
    pub what: ObservedWhat,
}

/// What was seen of something contained.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ObservedWhat {
    /// It ended.
    Ended(EndedRecord),
    /// A connection, as it happens.
    Connection(ConnectionRecord),
}

/// What was seen of something contained that has ended: the numbers. The names are in the payload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EndedRecord {
    /// The level it ran at.
    pub level: Level,
    /// How it ended.
    pub how: Ended,
    /// Time that passed, in milliseconds.
    pub wall_ms: u64,
    /// Processor time, in milliseconds.
    pub cpu_ms: u64,
    /// Processes that it left and that were killed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub survivors: u64,
    /// Limits that were reached.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<Limit>,
    /// How much was seen.
    pub seen: SeenRecord,
    /// How many things of each kind were reported.
    pub counts: Counts,
    /// How many of them are not in the payload, because it has limits.
    #[serde(default, skip_serializing_if = "Counts::is_none")]
    pub cut: Counts,
}

/// How much was seen of what something contained did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SeenRecord {
    /// Of the programs that were started.
    pub programs: Seen,
    /// Of the files that were made, changed or deleted.
    pub files: Seen,
    /// Of what was refused.
    pub refused: Seen,
}

/// A connection: the numbers. The host is in the payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectionRecord {
    /// The port.
    pub port: u16,
    /// What became of it.
    pub verdict: ConnectionWord,
    /// Bytes that left.
    pub sent: u64,
    /// Bytes that came back.
    pub received: u64,
}

/// What became of a connection, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ConnectionWord {
    /// The host was reached.
    Permitted,
    /// It was not dialled.
    Refused,
    /// It could not be reached.
    Failed,
}

impl EndedRecord {
    /// The numbers of a report, of which `cut` is not in the payload.
    #[must_use]
    pub fn of(observed: &Observed, counts: Counts, cut: Counts) -> Self {
        Self {
            level: observed.level,
            how: observed.ended,
            wall_ms: observed.wall_ms,
            cpu_ms: observed.cpu_ms,
            survivors: observed.survivors,
            limits: observed.limits.clone(),
            seen: SeenRecord {
                programs: observed.programs.seen,
                files: observed.files.seen,
                refused: observed.refused.seen,
            },
            counts,
            cut,
        }
    }
}

impl ConnectionRecord {
    /// The numbers of a connection.
    #[must_use]
    pub fn of(connection: &Connection) -> Self {
        let verdict = match connection.verdict {
            ConnectionVerdict::Permitted => ConnectionWord::Permitted,
            ConnectionVerdict::Refused(_) => ConnectionWord::Refused,
            ConnectionVerdict::Failed(_) => ConnectionWord::Failed,
        };
        Self { port: connection.port, verdict, sent: connection.sent, received: connection.received }
    }
}

impl fmt::Display for ObservedRecord {
    /// `under project at namespace: status 0 after 120 ms; 3 programs, 10 files, 1 connection, 2 attempts refused`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "under {}", self.profile)?;
        match &self.what {
            ObservedWhat::Ended(ended) => write!(f, " {ended}"),
            ObservedWhat::Connection(connection) => write!(f, ": {connection}"),
        }
    }
}

impl fmt::Display for EndedRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at {}: ", self.level)?;
        match self.how {
            Ended::Status(status) => write!(f, "status {status}")?,
            Ended::Signal(signal) => write!(f, "signal {signal}")?,
        }
        write!(f, " after {} ms", self.wall_ms)?;
        let Counts { programs, files, connections, refused, put_back } = self.counts;
        let mut before = "; ";
        for (count, seen, one, many) in [
            (programs, Some(self.seen.programs), "program", "programs"),
            (files, Some(self.seen.files), "file", "files"),
            (connections, None, "connection", "connections"),
            (refused, Some(self.seen.refused), "attempt refused", "attempts refused"),
            (put_back, None, "protected file put back", "protected files put back"),
            (self.survivors, None, "survivor killed", "survivors killed"),
        ] {
            let name = if count == 1 { one } else { many };
            match seen {
                Some(Seen::Nothing) => write!(f, "{before}{many} not seen")?,
                Some(Seen::Some) => write!(f, "{before}{count} {name} or more")?,
                _ if count > 0 => write!(f, "{before}{count} {name}")?,
                _ => continue,
            }
            before = ", ";
        }
        let cut = self.cut;
        let cut = cut.programs + cut.files + cut.connections + cut.refused + cut.put_back;
        if cut > 0 {
            write!(f, "; {cut} of them counted only")?;
        }
        for limit in &self.limits {
            write!(f, "; reached {}", limit.field())?;
        }
        Ok(())
    }
}

impl fmt::Display for ConnectionRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.verdict {
            ConnectionWord::Permitted => "permitted",
            ConnectionWord::Refused => "refused",
            ConnectionWord::Failed => "failed",
        };
        let Self { port, sent, received, .. } = self;
        write!(f, "connection to port {port} {word}, {sent} bytes sent, {received} received")
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}
