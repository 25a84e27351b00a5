//! How a live run judges an action: what has to be known before, the judgement, and what it is charged for.

use std::sync::Arc;
use std::time::Duration;

use portcullis_core::bundle::AnchorTime;
use portcullis_core::fact::FactRecord;
use portcullis_core::program::SOURCE;
use portcullis_core::usage::Used;
use portcullis_ledger::clock::now;
use tokio::sync::MutexGuard;

use super::kin::{Above, AskedAbove};
use super::{Live, Run};
use crate::batch::Batch;
use crate::engine::{Judgement, Proposal};
use crate::env::Env as _;
use crate::error::SessionError;
use crate::facts::{Asked, FactSources, Gathered, NoSources, Sources};
use crate::permit::Permit;
use crate::principals::{Account, Counted, Uncounted, Wanted, at_most};

/// How long an action waits for its run to be in the transparency log, where the bundle asks for that.
const LOG_WAIT: Duration = Duration::from_secs(10);

/// What has to be known or to have happened before something is judged, and takes time.
#[derive(Debug, Default)]
pub(super) struct Needs {
    /// The transparency log must have the segment.
    pub(super) log: bool,
    /// This has to be read of the principal from the store.
    pub(super) usage: Wanted,
    /// Questions to the sources.
    pub(super) facts: Asked,
}

/// What became of [`Needs`].
#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) logged: bool,
    /// Why the usage of the principal is not known.
    pub(super) uncounted: Option<String>,
    pub(super) facts: Vec<FactRecord>,
}

impl Run {
    /// Judges an action once and makes the judgement durable. The permit exists only after that.
    ///
    /// The future must run to its end: spawn it rather than dropping it half-way.
    pub async fn propose(&self, proposal: Proposal) -> Result<(Judgement, Option<Permit>), SessionError> {
        let asked = self.ask_above(&proposal).await?;
        let (mut live, known) = self.lock_with(|live| live.needs(&proposal, &self.sources, &asked)).await?;
        let known = self.with_programs(&mut live, &proposal, known).await;
        // Upwards only: a run never waits for one below it while it is locked.
        let above = self.lock_above(asked).await?;
        let (batch, judgement, charged) = live.judge_action(proposal, &known, &above);
        for run in &above {
            run.charge(live.engine.state(), &batch.events);
        }
        drop(above);
        let seq = match batch.events.is_empty() {
            true => live.head.count,
            false => live.commit_charged(batch, charged).await?,
        };
        let permit = Permit::issue(&judgement, seq);
        Ok((judgement, permit))
    }

    /// Locks the run once all is known that is needed to judge what is next. Nothing is waited for under the lock. If
    /// the run went on meanwhile and more is needed now, it is left out: guards deny what they cannot know.
    pub(super) async fn lock_with(
        &self,
        needs: impl FnOnce(&mut Live) -> Needs + Send,
    ) -> Result<(MutexGuard<'_, Live>, Known), SessionError> {
        let mut live = self.lock_open().await?;
        let needs = needs(&mut live);
        if !needs.log && needs.usage.is_empty() && needs.facts.is_empty() {
            return Ok((live, Known::default()));
        }
        drop(live);
        let known = self.gather(needs).await?;
        let mut live = self.lock_open().await?;
        live.logged |= known.logged;
        Ok((live, known))
    }

    /// Asks guard programs again where the run went on since they were asked: calls that are proposed at the same time
    /// would otherwise be denied for it. Their run is locked meanwhile, for 200 ms at most once a worker is free.
    async fn with_programs(&self, live: &mut Live, proposal: &Proposal, mut known: Known) -> Known {
        let now = live.env.now();
        let Some(question) = live.engine.asks_programs(now, proposal) else { return known };
        if !known.facts.iter().any(|record| record.request == question) {
            let asked = live.engine.needs(now, proposal, &self.sources).only(SOURCE);
            known.facts.extend(self.sources.gather(self.id, &self.principal.id, asked).await);
        }
        known
    }

    async fn gather(&self, needs: Needs) -> Result<Known, SessionError> {
        let Needs { log, usage, facts } = needs;
        if log {
            let logged = tokio::time::timeout(LOG_WAIT, self.ledger.logged(self.segment)).await;
            if !matches!(logged, Ok(Ok(()))) {
                return Err(SessionError::NotLogged(self.id));
            }
        }
        let count = async {
            if usage.is_empty() {
                return None;
            }
            let wanted = (usage, self.taints.key_for("marks of principals"));
            self.principals.count(&self.principal.id, now(), &self.ledger, wanted).await.err()
        };
        let facts = self.sources.gather(self.id, &self.principal.id, facts);
        let (uncounted, facts) = tokio::join!(count, facts);
        Ok(Known { logged: log, uncounted, facts })
    }
}

impl Live {
    /// Whether the bundle wants the transparency log to have the run before a proposal has an effect.
    pub(super) fn wants_log(&self, proposal: &Proposal) -> bool {
        let asked = self.engine.bundle().ledger.anchor == AnchorTime::BeforeEffects;
        asked && self.engine.may_have_effect(proposal)
    }

    /// What has to be known or to have happened before a proposal is judged, here and in the runs above.
    fn needs(&mut self, proposal: &Proposal, sources: &FactSources, above: &AskedAbove) -> Needs {
        if self.engine.is_stopped(proposal.tool.as_deref()) {
            return Needs::default();
        }
        let log = !self.logged && (self.wants_log(proposal) || above.log);
        let wanted = self.engine.counts_principal().and(above.usage.clone());
        let usage = match self.account(&wanted) {
            Some(_) => Wanted::default(),
            None => wanted,
        };
        let facts = self.engine.needs(self.env.now(), proposal, sources);
        Needs { log, usage, facts }
    }

    /// What is wanted of the principal, if it was read from the store.
    fn account(&self, wanted: &Wanted) -> Option<Arc<Account>> {
        let principal = self.engine.state().principal()?;
        self.principals.counted(&principal.id, wanted)
    }

    /// Judges an action. Where its principal has a budget, takes what the action would use up, so that no other run of
    /// the principal can take it meanwhile.
    fn judge_action(
        &mut self,
        proposal: Proposal,
        known: &Known,
        above: &[Above],
    ) -> (Batch, Judgement, Used) {
        let own = self.engine.counts_principal();
        let wanted = above.iter().map(Above::counts_principal).fold(own, Wanted::and);
        let counted = (!wanted.is_empty()).then(|| self.account(&wanted));
        let Self { engine, env, taints, below, .. } = self;
        let principal = engine.state().principal().map_or("", |principal| &principal.id);
        let judge = |usage: &dyn Sources| {
            let (facts, again) = (&known.facts, false);
            engine.propose(env, proposal, &Gathered { facts, usage, taints, principal, below, above, again })
        };
        let Some(account) = counted else {
            let (batch, judgement) = judge(&NoSources);
            return (batch, judgement, Used::default());
        };
        let Some(account) = account else {
            let why =
                known.uncounted.clone().unwrap_or_else(|| "it was not counted yet; try again".to_owned());
            let (batch, judgement) = judge(&Uncounted(why));
            return (batch, judgement, Used::default());
        };
        let (mut counts, mut past) = (account.lock(), account.past());
        let (batch, judgement) = judge(&Counted { counts: &counts, past: &past });
        let charged = at_most(self.engine.state(), &batch);
        if let Some(event) = batch.events.first() {
            counts.charge(event.t, charged);
        }
        past.judged(&judgement.action, &self.engine.bundle().sequences, &batch.events);
        drop((counts, past));
        (batch, judgement, charged)
    }
}
