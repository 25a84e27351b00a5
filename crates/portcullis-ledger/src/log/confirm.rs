//! Whether this process may sign, or its log may be an old copy.
//!
//! A log that was restored from a backup looks like one that was merely stopped: nothing on this machine tells them
//! apart. Those who cosigned what came after the backup can. So a process that finds a log which names witnesses signs
//! no tree before they have confirmed the one that it found. It records runs meanwhile, asks again every few seconds,
//! and goes on by itself. What was signed before and not yet put out is put out all the same: it is no other history.
//!
//! *What confirms:* a cosignature, made for this process, over the very tree that the log remembers. A witness gives none
//! when it knows a larger tree or another root. No other answer says as much: a witness may not watch the log, or a
//! proxy may answer in its place. A witness that contradicts keeps the log waiting, no matter who else confirms.
//!
//! *How many:* those who confirm are a quorum of `log/witnesses.policy`, or no quorum can do without them; one at least.
//! Where any two quorums have a witness in common, someone who confirms was then part of every quorum that ever
//! cosigned, so no tree which a reader of that policy accepted is contradicted. That is one of *all*, two of *two of
//! three*, and no more than what an export needs anyway. Quorums that have nobody in common (*any of two*, `none`) do not
//! keep their readers from being shown two histories by the log itself; more than one answer would only stop it longer.
//!
//! A log that this process made needs nobody's word, since its key is new. Neither does one that this process left
//! as it finds it ([`Log::resume`]). `docs/adr/0019-who-confirms-a-log.md` has what was not taken.

use std::fmt;

use portcullis_core::time::Timestamp;
use portcullis_proof::log::TreeHead;

use super::Log;
use super::cosign::witness_policy;
use super::error::LogError;
use crate::clock::now;

/// What a log waits for before it signs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogWait {
    /// Since when.
    pub since: Timestamp,
    /// What each witness that did not confirm said, in one line.
    pub why: String,
    /// Whether a witness saw a different history, which waiting does not resolve.
    pub contradicted: bool,
}

impl fmt::Display for LogWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the log has been waiting since {} for its witnesses to confirm that it is not an old copy, and signs nothing until then: {}",
            self.since, self.why
        )
    }
}

/// The state of a process's log with its witnesses.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) wait: LogWait,
    /// Whether anyone was asked on behalf of this process.
    pub(super) begun: bool,
}

impl Log {
    /// What the log waits for before it signs, or `None` if it signs.
    #[must_use]
    pub fn waits(&self) -> Option<&LogWait> {
        self.waiting.as_ref().map(|waiting| &waiting.wait)
    }

    /// The tree that the log signed last, to [`Log::resume`] from. `None` if the log is waiting for witnesses, or if
    /// its database can no longer be read.
    #[must_use]
    pub fn vouched(&self) -> Option<TreeHead> {
        if self.waiting.is_some() {
            return None;
        }
        self.database.tree().ok().map(|tree| tree.head)
    }

    /// Continues without asking witnesses if the log is still as this process left it.
    ///
    /// # Errors
    /// When the database fails.
    pub fn resume(&mut self, left: TreeHead) -> Result<(), LogError> {
        if self.database.tree()?.head == left { self.confirmed() } else { Ok(()) }
    }

    /// Waits from now on, where there are witnesses who could know more.
    pub(super) fn begin_to_wait(&mut self) -> Result<(), LogError> {
        let why = match witness_policy(&self.places) {
            Ok(policy) if policy.as_ref().is_none_or(|policy| policy.witnesses().is_empty()) => {
                return self.confirmed();
            }
            Ok(_) => "no witness was asked yet".to_owned(),
            Err(error) => error.to_string(),
        };
        let wait = LogWait { since: now(), why, contradicted: false };
        self.database.put_wait(Some(&wait))?;
        self.waiting = Some(Waiting { wait, begun: false });
        Ok(())
    }

    /// The log is not an old copy, according to what is known.
    pub(super) fn confirmed(&mut self) -> Result<(), LogError> {
        self.database.put_wait(None)?;
        self.waiting = None;
        Ok(())
    }

    /// Keeps waiting, for this reason.
    pub(super) fn wait_on(&mut self, why: String, contradicted: bool) -> Result<(), LogError> {
        let as_before = |wait: &LogWait| wait.why == why && wait.contradicted == contradicted;
        let Some(waiting) = self.waiting.as_mut().filter(|waiting| !as_before(&waiting.wait)) else {
            return Ok(());
        };
        (waiting.wait.why, waiting.wait.contradicted) = (why, contradicted);
        self.database.put_wait(Some(&waiting.wait))
    }

    /// Nothing new is signed by a log that waits.
    pub(super) fn check_confirmed(&self) -> Result<(), LogError> {
        self.waits().map_or(Ok(()), |wait| Err(LogError::Unconfirmed(wait.clone())))
    }
}
