//! Postconditions of writes: an action that ended well and was to write a file, and whether the file has in it what was
//! written. The look at the file is made elsewhere, after the outcome was answered.

use portcullis_core::event::{Actor, Event, EventBody, OutcomeStatus};
use portcullis_core::id::{ActionId, DigestBuilder};
use portcullis_core::work::Covers;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{Engine, JSON};
use crate::batch::Batch;
use crate::commits::Wrote;
use crate::env::Env;

/// Name of the evidence that says what was found.
pub const FILE_WRITTEN: &str = "file-written";
/// Version of its payload.
const VERSION: u32 = 1;
/// Most files of one action that are looked at.
const FILES_MAX: usize = 16;

/// What came of a look at a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WriteCame {
    /// It has what was written in it.
    Holds,
    /// It does not, or is not there.
    Broken,
    /// Nobody looked: it is not a file of this machine in the folder in which the agent works, or it cannot be known.
    NotChecked,
}

impl WriteCame {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Broken => "broken",
            Self::NotChecked => "not-checked",
        }
    }
}

/// A file that an action was to write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WriteCheck {
    /// The file.
    pub path: String,
    /// What came of the look at it.
    pub came: WriteCame,
    /// What was found, or why nobody looked.
    pub why: String,
}

impl Engine {
    /// The actions that these events end well and that were to write files. Call before they are
    /// [committed](Self::commit).
    pub(crate) fn wrote(&self, events: &[Event]) -> Vec<Wrote> {
        let ended = events.iter().filter_map(|event| match &event.body {
            EventBody::Outcome { action, status: OutcomeStatus::Ok } => Some((*action, event.seq)),
            _ => None,
        });
        let wrote = ended.map(|(action, outcome)| {
            let paths = self.writes.paths(action, FILES_MAX);
            Wrote { action, outcome, paths }
        });
        wrote.filter(|wrote| !wrote.paths.is_empty()).collect()
    }

    /// Whether another action may have written a file since this one began, or that is not known any more.
    pub fn written_again(&self, action: ActionId, path: &str) -> bool {
        let covers = Covers::read(&[path.to_owned()], None);
        let (Some(call), Ok(covers)) = (self.state.works().call(action), covers) else { return true };
        self.writes.since(action, call, &covers, self.work_folder()).is_some()
    }

    /// Records what was found of the files that an action was to write.
    pub fn writes_checked(&self, env: &mut dyn Env, cause: u64, checks: &[WriteCheck]) -> Batch {
        let mut digest = DigestBuilder::new("portcullis/file-written/v1").part(&cause.to_be_bytes());
        for check in checks {
            digest = digest.part(check.came.as_str().as_bytes());
        }
        let results = json!({"v": VERSION, "outcome": cause, "files": checks});
        let payload = ("results", JSON, results.to_string().into_bytes());
        let body = EventBody::Evidence { name: FILE_WRITTEN.to_owned(), digest: digest.finish() };
        let mut batch = self.builder(env);
        batch.push_with(Actor::gate(), Some(cause), body, [Some(payload)]);
        batch.finish()
    }
}
