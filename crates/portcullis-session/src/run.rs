//! A live run: the engine with a ledger behind it.
//!
//! All changes go through [`Live::commit`]: build the lines, chain them, wait until they are durable, and only
//! then let the state move. A lock serialises them; what waits for a person waits outside the lock.

mod append;
mod approval_rows;
mod frozen;
mod taint_rows;

use std::sync::Arc;
use std::time::Duration;

use portcullis_contracts::verify::Document;
use portcullis_core::action::Subject;
use portcullis_core::bundle::{AnchorTime, Bundle};
use portcullis_core::event::{ClosedState, Control, ListedTool, OutcomeStatus};
use portcullis_core::fact::FactRecord;
use portcullis_core::id::{ActionId, ApprovalId, Digest, RunId, SegmentId};
use portcullis_core::label::Label;
use portcullis_core::limits::NOTE_BYTES_MAX;
use portcullis_core::principal::Principal;
use portcullis_core::state::{Phase, RunState};
use portcullis_core::time::Timestamp;
use portcullis_core::usage::Used;
use portcullis_ledger::clock::now;
use portcullis_ledger::{Head, Ledger};
use tokio::sync::{Mutex, MutexGuard, Notify};

use crate::batch::Batch;
use crate::commits::Commits;
use crate::engine::{Answer, Engine, Judgement, Proposal, Reach, Reported, Teller, TextJudgement};
use crate::env::{Env, SystemEnv};
use crate::error::SessionError;
use crate::facts::{Asked, FactSources, Gathered, NoSources, Sources};
use crate::freezes::Freezes;
use crate::permit::Permit;
use crate::principals::{Account, Principals, Uncounted, at_most};
use crate::taints::Taints;

/// How long an action waits for its run to be in the transparency log, where the bundle asks for that.
const LOG_WAIT: Duration = Duration::from_secs(10);

/// A run that this process writes.
#[derive(Debug)]
pub struct Run {
    id: RunId,
    segment: SegmentId,
    principal: Principal,
    ledger: Arc<dyn Ledger>,
    principals: Arc<Principals>,
    sources: Arc<FactSources>,
    live: Mutex<Live>,
    /// Notified whenever something happens that a caller may wait for.
    changed: Notify,
}

#[derive(Debug)]
struct Live {
    engine: Engine,
    env: SystemEnv,
    ledger: Arc<dyn Ledger>,
    principals: Arc<Principals>,
    freezes: Arc<Freezes>,
    taints: Arc<Taints>,
    commits: Commits,
    head: Head,
    /// A failed append leaves open whether it was stored; the head is compared before the next one.
    in_doubt: bool,
    closed: bool,
    /// The transparency log is known to have this segment.
    logged: bool,
}

/// What the runs of a gate share.
#[derive(Debug, Clone)]
pub(crate) struct Around {
    pub(crate) ledger: Arc<dyn Ledger>,
    pub(crate) principals: Arc<Principals>,
    pub(crate) freezes: Arc<Freezes>,
    pub(crate) commits: Commits,
    pub(crate) sources: Arc<FactSources>,
    pub(crate) taints: Arc<Taints>,
}

/// What has to be known or to have happened before something is judged, and takes time.
#[derive(Debug, Default)]
struct Needs {
    /// The transparency log must have the segment.
    log: bool,
    /// The usage of the principal has to be read from the store.
    usage: bool,
    /// Questions to the sources.
    facts: Asked,
}

/// What became of [`Needs`].
#[derive(Debug, Default)]
struct Known {
    logged: bool,
    /// Why the usage of the principal is not known.
    uncounted: Option<String>,
    facts: Vec<FactRecord>,
}

impl Run {
    /// A run whose segment is open in the ledger and whose engine is at `head`.
    pub(crate) fn new(
        engine: Engine,
        env: SystemEnv,
        head: Head,
        principal: Principal,
        around: Around,
    ) -> Self {
        let id = engine.run();
        let Around { ledger, principals, freezes, commits, sources, taints } = around;
        let live = Live {
            engine,
            env,
            ledger: Arc::clone(&ledger),
            principals: Arc::clone(&principals),
            freezes,
            taints,
            commits,
            head,
            in_doubt: false,
            closed: false,
            logged: false,
        };
        let (live, changed) = (Mutex::new(live), Notify::new());
        Self { id, segment: head.segment, principal, ledger, principals, sources, live, changed }
    }

    /// The run's id.
    pub fn id(&self) -> RunId {
        self.id
    }

    /// The segment that this process writes.
    pub fn segment(&self) -> SegmentId {
        self.segment
    }

    /// On whose behalf the agent acts.
    pub fn principal(&self) -> &Principal {
        &self.principal
    }

    /// The head of the run: its last event and that event's link, as this process wrote it.
    pub async fn head(&self) -> Head {
        self.live.lock().await.head
    }

    /// Looks at the state.
    pub async fn with_state<T>(&self, look: impl FnOnce(&RunState, &Arc<Bundle>) -> T) -> T {
        let live = self.live.lock().await;
        look(live.engine.state(), live.engine.bundle())
    }

    /// Looks at the engine.
    pub async fn with_engine<T>(&self, look: impl FnOnce(&Engine) -> T) -> T {
        look(&self.live.lock().await.engine)
    }

    /// The latest action that awaits an outcome and that the surface knows by this id.
    pub async fn awaits_outcome_of_call(&self, call: &str) -> Option<ActionId> {
        let live = self.live.lock().await;
        live.engine.state().awaits_outcome_of_call(&live.engine.call_name(call))
    }

    /// Writes the first events of the segment.
    pub(crate) async fn begin(
        &self,
        first: impl FnOnce(&Engine, &mut dyn Env) -> Batch + Send,
    ) -> Result<u64, SessionError> {
        let mut live = self.live.lock().await;
        let Live { engine, env, .. } = &mut *live;
        let batch = first(engine, env);
        live.commit(batch).await
    }

    /// Judges an action once and makes the judgement durable. The permit exists only after that.
    ///
    /// The future must run to its end: spawn it rather than dropping it half-way.
    pub async fn propose(&self, proposal: Proposal) -> Result<(Judgement, Option<Permit>), SessionError> {
        let (mut live, known) = self.lock_with(|live| live.needs(&proposal, &self.sources)).await?;
        let (batch, judgement, charged) = live.judge_action(proposal, &known);
        let seq = match batch.events.is_empty() {
            true => live.head.count,
            false => live.commit_charged(batch, charged).await?,
        };
        let permit = Permit::issue(&judgement, seq);
        Ok((judgement, permit))
    }

    /// Locks the run once all is known that is needed to judge what is next. Nothing is waited for under the lock. If
    /// the run went on meanwhile and more is needed now, it is left out: guards deny what they cannot know.
    async fn lock_with(
        &self,
        needs: impl FnOnce(&mut Live) -> Needs + Send,
    ) -> Result<(MutexGuard<'_, Live>, Known), SessionError> {
        let mut live = self.lock_open().await?;
        let needs = needs(&mut live);
        if !needs.log && !needs.usage && needs.facts.is_empty() {
            return Ok((live, Known::default()));
        }
        drop(live);
        let known = self.gather(needs).await?;
        let mut live = self.lock_open().await?;
        live.logged |= known.logged;
        Ok((live, known))
    }

    /// Locks the run, unless it is closed, once it stands as the freezes say.
    async fn lock_open(&self) -> Result<MutexGuard<'_, Live>, SessionError> {
        let mut live = self.live.lock().await;
        live.check_open()?;
        if live.follow_freezes().await? {
            self.changed.notify_waiters();
        }
        Ok(live)
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
            match usage {
                true => self.principals.count(&self.principal.id, now(), &self.ledger).await.err(),
                false => None,
            }
        };
        let facts = self.sources.gather(self.id, &self.principal.id, facts);
        let (uncounted, facts) = tokio::join!(count, facts);
        Ok(Known { logged: log, uncounted, facts })
    }

    /// Waits until `changed` is told, from the moment of the call.
    pub(crate) fn changed(&self) -> tokio::sync::futures::Notified<'_> {
        self.changed.notified()
    }

    /// Records something that bears on the run and is neither said, done nor seen by the agent.
    pub async fn evidence(&self, name: String, digest: Digest) -> Result<u64, SessionError> {
        self.write(|engine, env| Ok(engine.evidence(env, name, digest))).await
    }

    /// A person answers an approval request.
    pub async fn answer(&self, approval: ApprovalId, answer: Answer) -> Result<u64, SessionError> {
        check_note(answer.note.as_deref())?;
        self.write(|engine, env| Ok(engine.answer(env, approval, answer)?)).await
    }

    /// Records what became of an action, and judges what the agent would see of it. Returns the number of the last
    /// event, and the judgement where there was something to see.
    pub async fn outcome(
        &self,
        action: ActionId,
        status: OutcomeStatus,
        content: Option<String>,
        reach: Reach,
    ) -> Result<(u64, Option<TextJudgement>), SessionError> {
        let content = content.as_deref();
        let reported = Reported { action, status, content, reach, teller: Teller::Surface };
        self.judge_text(
            |engine, at, sources| engine.needs_of_outcome(at, reported, sources),
            |engine, env, sources| {
                if engine.state().awaits_outcome(action).is_none() {
                    return Err(SessionError::NotExecuting(action));
                }
                Ok(engine.outcome(env, reported, sources))
            },
        )
        .await
    }

    /// Records that a permit was not received, so that its action was not executed.
    pub(crate) async fn not_executed(&self, action: ActionId) -> Result<u64, SessionError> {
        let reported = Reported::by_gate(action, OutcomeStatus::NotExecuted);
        self.write(|engine, env| Ok(engine.outcome(env, reported, &NoSources).0)).await
    }

    /// Records and judges what a server says other than answers to actions.
    pub async fn told(
        &self,
        server: &str,
        content: String,
        reach: Reach,
    ) -> Result<(u64, TextJudgement), SessionError> {
        self.judge_text(
            |engine, at, sources| engine.needs_of_told(at, server, &content, sources),
            |engine, env, sources| Ok(engine.told(env, server, &content, reach, sources)),
        )
        .await
    }

    /// Records and judges what is said to the agent.
    pub async fn input(
        &self,
        text: String,
        label: Label,
        reach: Reach,
    ) -> Result<TextJudgement, SessionError> {
        let subject = Subject::Input { text: &text, label: &label };
        let judged = self.judge_text(
            |engine, at, sources| engine.needs_of_text(at, subject, sources),
            |engine, env, sources| Ok(engine.input(env, &text, &label, reach, sources)),
        );
        Ok(judged.await?.1)
    }

    /// Records and judges the agent's reply, with the documents that were handed over for it to cite, if any.
    ///
    /// # Errors
    /// Besides those of every write: there are documents, and the bundle does not take them.
    pub async fn output(
        &self,
        text: String,
        documents: Option<&[Document]>,
        reach: Reach,
    ) -> Result<TextJudgement, SessionError> {
        let given = documents.map(|documents| {
            let given = documents.iter().map(|one| serde_json::json!({"id": one.id, "text": one.text}));
            serde_json::Value::from_iter(given).to_string()
        });
        let given = given.as_deref();
        let judged = self.judge_text(
            |engine, at, sources| engine.needs_of_reply(at, (&text, given), reach, sources),
            |engine, env, sources| {
                let settings = engine.bundle().verification.as_ref();
                if given.is_some() && !settings.is_some_and(|settings| settings.given_documents) {
                    return Err(SessionError::DocumentsNotTaken);
                }
                Ok(engine.output(env, &text, given, reach, sources))
            },
        );
        Ok(judged.await?.1)
    }

    /// Records that a person accepted a tool as its server describes it now.
    pub async fn tool_accepted(
        &self,
        server: &str,
        tool: &str,
        digest: Digest,
        approver: &str,
    ) -> Result<u64, SessionError> {
        self.write(|engine, env| Ok(engine.tool_accepted(env, server, tool, digest, approver))).await
    }

    /// Records what a server says of its tools.
    pub async fn tools_listed(
        &self,
        server: &str,
        origin: Option<&str>,
        tools: Vec<ListedTool>,
    ) -> Result<u64, SessionError> {
        self.write(|engine, env| Ok(engine.tools_listed(env, server, origin, tools))).await
    }

    /// A person halts, pauses or resumes the run. For a freeze see [`Gate::freeze`](crate::gate::Gate::freeze).
    pub async fn control(
        &self,
        control: Control,
        approver: &str,
        note: Option<String>,
    ) -> Result<u64, SessionError> {
        check_note(note.as_deref())?;
        if control.is_of_freeze() {
            return Err(SessionError::ControlOfFreeze);
        }
        self.write(|engine, env| Ok(engine.control(env, control, approver, note))).await
    }

    /// Puts another bundle in force, if it has the run's policy.
    pub async fn reload(&self, bundle: Arc<Bundle>) -> Result<u64, SessionError> {
        let mut live = self.live.lock().await;
        live.check_open()?;
        let Live { engine, env, .. } = &mut *live;
        let policy = engine.state().policy();
        if bundle.policy(policy).is_none() {
            return Err(SessionError::PolicyGone { policy: policy.to_owned() });
        }
        let batch = engine.reload(env, &bundle);
        live.commit_with(batch, Used::default(), Some(bundle)).await
    }

    /// Ends the segment. Actions that are still executing get the outcome `unknown`.
    pub async fn close(&self, state: ClosedState) -> Result<u64, SessionError> {
        let mut live = self.live.lock().await;
        if live.closed {
            return Ok(live.head.count);
        }
        let dangling = live.engine.state().executing_actions();
        for action in dangling {
            let Live { engine, env, .. } = &mut *live;
            let reported = Reported::by_gate(action, OutcomeStatus::Unknown);
            let (batch, _) = engine.outcome(env, reported, &NoSources);
            live.commit(batch).await?;
        }
        let Live { engine, env, .. } = &mut *live;
        let batch = engine.close(env, state);
        let seq = live.commit(batch).await?;
        live.closed = true;
        drop(live);
        self.changed.notify_waiters();
        Ok(seq)
    }

    async fn write(
        &self,
        build: impl FnOnce(&Engine, &mut dyn Env) -> Result<Batch, SessionError> + Send,
    ) -> Result<u64, SessionError> {
        let mut live = self.live.lock().await;
        live.check_open()?;
        let Live { engine, env, .. } = &mut *live;
        let batch = build(engine, env)?;
        let seq = live.commit(batch).await?;
        drop(live);
        self.changed.notify_waiters();
        Ok(seq)
    }

    /// Judges a text with the facts that its guards need, makes the batch durable, and only then gives out what was
    /// judged.
    async fn judge_text<T>(
        &self,
        needs: impl FnOnce(&Engine, Timestamp, &FactSources) -> Asked + Send,
        judge: impl FnOnce(&Engine, &mut dyn Env, &dyn Sources) -> Result<(Batch, T), SessionError> + Send,
    ) -> Result<(u64, T), SessionError> {
        let of_text = |live: &mut Live| {
            let facts = needs(&live.engine, live.env.now(), &self.sources);
            Needs { facts, ..Needs::default() }
        };
        let (mut live, known) = self.lock_with(of_text).await?;
        let Live { engine, env, taints, .. } = &mut *live;
        let (facts, principal) = (&known.facts, self.principal.id.as_str());
        let (batch, judged) = judge(engine, env, &Gathered { facts, usage: &NoSources, taints, principal })?;
        let seq = match batch.events.is_empty() {
            true => live.head.count,
            false => live.commit(batch).await?,
        };
        drop(live);
        self.changed.notify_waiters();
        Ok((seq, judged))
    }
}

impl Live {
    fn check_open(&self) -> Result<(), SessionError> {
        if self.closed || matches!(self.engine.state().phase(), Phase::Closed(_)) {
            return Err(SessionError::Closed(self.engine.run()));
        }
        Ok(())
    }

    /// What has to be known or to have happened before a proposal is judged.
    fn needs(&mut self, proposal: &Proposal, sources: &FactSources) -> Needs {
        if self.engine.is_stopped(proposal.tool.as_deref()) {
            return Needs::default();
        }
        let asked = self.engine.bundle().ledger.anchor == AnchorTime::BeforeEffects;
        let log = !self.logged && asked && self.engine.may_have_effect(proposal);
        let usage = self.engine.counts_principal() && self.account().is_none();
        let facts = self.engine.needs(self.env.now(), proposal, sources);
        Needs { log, usage, facts }
    }

    /// The counts of the principal, if they were read from the store.
    fn account(&self) -> Option<Arc<Account>> {
        let principal = self.engine.state().principal()?;
        self.principals.counted(&principal.id)
    }

    /// Judges an action. Where its principal has a budget, takes what the action would use up, so that no other run of
    /// the principal can take it meanwhile.
    fn judge_action(&mut self, proposal: Proposal, known: &Known) -> (Batch, Judgement, Used) {
        let counted = self.engine.counts_principal().then(|| self.account());
        let Self { engine, env, taints, .. } = self;
        let principal = engine.state().principal().map_or("", |principal| &principal.id);
        let judge = |usage: &dyn Sources| {
            let sources = Gathered { facts: &known.facts, usage, taints, principal };
            engine.propose(env, proposal, &sources)
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
        let mut counts = account.lock();
        let (batch, judgement) = judge(&*counts);
        let charged = at_most(self.engine.state(), &batch);
        if let Some(event) = batch.events.first() {
            counts.charge(event.t, charged);
        }
        drop(counts);
        (batch, judgement, charged)
    }
}

/// Refuses a note that no event should hold.
pub(crate) fn check_note(note: Option<&str>) -> Result<(), SessionError> {
    match note {
        Some(note) if note.len() > NOTE_BYTES_MAX => {
            Err(SessionError::NameTooLong { what: "note", limit: NOTE_BYTES_MAX })
        }
        _ => Ok(()),
    }
}
