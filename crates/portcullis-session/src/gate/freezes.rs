//! Freezing and releasing: what a person orders, made durable, and recorded in each live run that it covers.
//!
//! A freeze is put in force in memory first, then stored, then recorded by the live runs. When the order is answered,
//! every run has gone through its lock once: no permit that was on its way before is issued later. What is released is
//! stored first.

use std::sync::Arc;

use portcullis_core::freeze::{Freeze, FreezeOrder, FreezeScope, Frozen};
use portcullis_core::id::RunId;
use portcullis_core::limits::NAME_BYTES_MAX;
use portcullis_core::time::Timestamp;
use portcullis_ledger::clock::now;
use portcullis_ledger::{FreezeFilter, read_aside};
use tokio::task::JoinSet;

use super::Gate;
use crate::batch::{note_known_secrets, note_secrets};
use crate::error::SessionError;
use crate::freezes::FREEZES_IN_FORCE_MAX;
use crate::run::{Run, check_note};

/// Live runs that record a change at the same time: enough to share commits, few enough to leave the store's queue to
/// others.
const RUNS_AT_ONCE: usize = 256;

/// How far a release goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Release {
    /// What has no side effect goes on; the rest stays frozen.
    Reads,
    /// Everything goes on.
    All,
}

/// What became of an order to freeze or to release.
#[derive(Debug)]
pub struct FreezeDone {
    /// The freeze as it stands now.
    pub freeze: Arc<Freeze>,
    /// Whether it stood like this before: nothing was changed.
    pub already: bool,
    /// Live runs that it covers.
    pub runs: usize,
    /// Those of them that another freeze stops from more.
    pub held_by_others: usize,
    /// Live runs that could not record it. They are held to it all the same, and record it before anything else.
    pub unrecorded: Vec<(RunId, SessionError)>,
}

impl Gate {
    /// Freezes all runs of a scope: nothing goes ahead from here on. In force before this answers, even where it cannot
    /// be stored. The future must run to its end, as with [`settle`](super::settle).
    ///
    /// # Errors
    /// The order contradicts a limit, and nothing is frozen; or [`SessionError::FreezeNotStored`].
    pub async fn freeze(
        &self,
        scope: FreezeScope,
        by: &str,
        note: Option<String>,
    ) -> Result<FreezeDone, SessionError> {
        check_scope(&scope)?;
        let note = self.check_order(note)?;
        self.load_freezes().await?;
        let ordering = self.freezing.lock().await;
        let before = self.freezes.of(&scope);
        if let Some(before) = &before
            && before.freeze.stops() == Some(Frozen::Everything)
            && before.stored
        {
            return Ok(self.done(Arc::clone(&before.freeze), true, Vec::new()));
        }
        if before.is_none() && scope != FreezeScope::All && self.freezes.len() >= FREEZES_IN_FORCE_MAX {
            return Err(SessionError::TooManyFreezes { limit: FREEZES_IN_FORCE_MAX });
        }
        // Of two freezes of a scope, the later one has the later time.
        let earliest = before.as_ref().map_or(i64::MIN, |before| before.freeze.frozen.at.as_micros() + 1);
        let at = Timestamp::from_micros(now().as_micros().max(earliest));
        let order = FreezeOrder { at, by: by.to_owned(), note };
        let freeze = Arc::new(Freeze { scope, frozen: order.clone(), reads_released: None, released: None });
        self.freezes.set(Arc::clone(&freeze), false);
        let replaced = before.filter(|before| before.stored);
        let replaced =
            replaced.map(|before| Freeze { released: Some(order), ..before.freeze.as_ref().clone() });
        let rows = replaced.into_iter().chain([freeze.as_ref().clone()]).collect();
        let stored = self.ledger.put_freezes(rows).await;
        self.freezes.set(Arc::clone(&freeze), stored.is_ok());
        drop(ordering);
        let unrecorded = self.follow_freezes(&freeze.scope).await;
        stored.map_err(SessionError::FreezeNotStored)?;
        Ok(self.done(freeze, false, unrecorded))
    }

    /// Releases the freeze of a scope, or the first part of it.
    ///
    /// # Errors
    /// Nothing of this scope is frozen, or the release cannot be stored: then all stays frozen.
    pub async fn release(
        &self,
        scope: &FreezeScope,
        release: Release,
        by: &str,
        note: Option<String>,
    ) -> Result<FreezeDone, SessionError> {
        let note = self.check_order(note)?;
        self.load_freezes().await?;
        let ordering = self.freezing.lock().await;
        let Some(before) = self.freezes.of(scope) else {
            return Err(SessionError::NotFrozen { scope: scope.clone() });
        };
        if release == Release::Reads && before.freeze.stops() == Some(Frozen::SideEffects) {
            return Ok(self.done(before.freeze, true, Vec::new()));
        }
        let at = now().max(before.freeze.frozen.at);
        let order = Some(FreezeOrder { at, by: by.to_owned(), note });
        let freeze = before.freeze.as_ref().clone();
        let freeze = match release {
            Release::Reads => Freeze { reads_released: order, ..freeze },
            Release::All => Freeze { released: order, ..freeze },
        };
        self.ledger.put_freezes(vec![freeze.clone()]).await?;
        let freeze = Arc::new(freeze);
        self.freezes.set(Arc::clone(&freeze), true);
        drop(ordering);
        let unrecorded = self.follow_freezes(scope).await;
        Ok(self.done(freeze, false, unrecorded))
    }

    /// The freezes that are in force.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn freezes(&self) -> Result<Vec<Arc<Freeze>>, SessionError> {
        self.load_freezes().await?;
        Ok(self.freezes.all())
    }

    /// Reads from the store what is in force, before the first run is opened.
    pub(super) async fn load_freezes(&self) -> Result<(), SessionError> {
        let load = async {
            let stored = read_aside(&self.ledger, |reader| reader.freezes(&FreezeFilter::InForce)).await?;
            stored.into_iter().for_each(|freeze| self.freezes.set(Arc::new(freeze), true));
            Ok(())
        };
        self.freezes_loaded.get_or_try_init(|| load).await.copied()
    }

    /// Has the live runs of a scope record how they stand now; gives those that could not.
    async fn follow_freezes(&self, scope: &FreezeScope) -> Vec<(RunId, SessionError)> {
        let (mut following, mut failed) = (JoinSet::new(), Vec::new());
        for run in self.live_in(scope) {
            if following.len() >= RUNS_AT_ONCE {
                failed.extend(following.join_next().await.and_then(not_followed));
            }
            following.spawn(async move { (run.id(), run.follow_freezes().await) });
        }
        while let Some(followed) = following.join_next().await {
            failed.extend(not_followed(followed));
        }
        failed
    }

    fn live_in(&self, scope: &FreezeScope) -> Vec<Arc<Run>> {
        let runs = self.lock();
        let live = runs.by_id.values().map(|entry| &entry.run);
        live.filter(|run| scope.covers(run.id(), &run.principal().id)).map(Arc::clone).collect()
    }

    fn done(&self, freeze: Arc<Freeze>, already: bool, unrecorded: Vec<(RunId, SessionError)>) -> FreezeDone {
        let live = self.live_in(&freeze.scope);
        let stops = |run: &Arc<Run>| {
            self.freezes.covering(run.id(), &run.principal().id).and_then(|freeze| freeze.stops())
        };
        let held_by_others = live.iter().filter(|run| stops(run) > freeze.stops()).count();
        FreezeDone { freeze, already, runs: live.len(), held_by_others, unrecorded }
    }

    /// A note as it may be kept.
    fn check_order(&self, note: Option<String>) -> Result<Option<String>, SessionError> {
        check_note(note.as_deref())?;
        let Some(mut note) = note else { return Ok(None) };
        match self.bundles.known(&self.bundles.source(None)) {
            Some(bundle) => note_secrets(&mut note, &bundle),
            None => note_known_secrets(&mut note),
        }
        Ok(Some(note))
    }
}

fn not_followed(
    followed: Result<(RunId, Result<(), SessionError>), tokio::task::JoinError>,
) -> Option<(RunId, SessionError)> {
    // A task that panicked has left its run as it was: held to the freeze, which it records next.
    let (run, followed) = followed.ok()?;
    Some((run, followed.err()?))
}

fn check_scope(scope: &FreezeScope) -> Result<(), SessionError> {
    match scope {
        FreezeScope::Principal(name) if name.len() > NAME_BYTES_MAX => {
            Err(SessionError::NameTooLong { what: "principal", limit: NAME_BYTES_MAX })
        }
        _ => Ok(()),
    }
}
