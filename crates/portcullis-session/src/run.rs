//! A live run: the engine with a ledger behind it.
//!
//! All changes go through [`Live::commit`]: build the lines, chain them, wait until they are durable, and only
//! then let the state move. A lock serialises them; what waits for a person waits outside the lock.

mod append;
mod approval_rows;
mod contained;
mod frozen;
mod judging;
mod kept;
mod kin;
mod taint_rows;
mod work;

use std::sync::Arc;

use portcullis_contracts::verify::Document;
use portcullis_core::action::Subject;
use portcullis_core::bundle::Bundle;
use portcullis_core::event::{ClosedState, Control, ListedTool, OutcomeStatus};
use portcullis_core::id::{ActionId, ApprovalId, Digest, RunId, SegmentId};
use portcullis_core::label::Label;
use portcullis_core::limits::NOTE_BYTES_MAX;
use portcullis_core::principal::Principal;
use portcullis_core::state::{Phase, RunState};
use portcullis_core::time::Timestamp;
use portcullis_core::usage::Used;
use portcullis_ledger::{Head, Ledger};
use tokio::sync::{Mutex, MutexGuard, Notify};

use self::judging::Needs;
pub use self::kept::{FactsAsked, FactsPage, HISTORY_PAGE_MAX};
pub(crate) use self::kin::{Above, Family, digest_of};

use crate::batch::Batch;
use crate::commits::Commits;
use crate::delegated::Delegated;
use crate::engine::{Answer, Engine, Reach, Reported, Teller, TextJudgement, WriteCheck};
use crate::env::{Env, SystemEnv};
use crate::error::SessionError;
use crate::facts::{Asked, FactSources, Gathered, NoSources, ReplyShown, Sources};
use crate::freezes::Freezes;
use crate::principals::Principals;
use crate::taints::Taints;

/// A run that this process writes.
#[derive(Debug)]
pub struct Run {
    id: RunId,
    segment: SegmentId,
    principal: Principal,
    ledger: Arc<dyn Ledger>,
    principals: Arc<Principals>,
    sources: Arc<FactSources>,
    taints: Arc<Taints>,
    family: Arc<Family>,
    /// The runs above, the nearest first.
    lineage: Vec<RunId>,
    /// What the runs below have used up.
    below: Arc<Delegated>,
    live: Arc<Mutex<Live>>,
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
    family: Arc<Family>,
    /// The runs above, the nearest first.
    lineage: Vec<RunId>,
    /// What the runs below have used up.
    below: Arc<Delegated>,
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
    pub(crate) family: Arc<Family>,
}

impl Run {
    /// A run whose segment is open in the ledger and whose engine is at `head`.
    pub(crate) fn new(
        engine: Engine,
        env: SystemEnv,
        head: Head,
        principal: Principal,
        lineage: Vec<RunId>,
        around: Around,
    ) -> Self {
        let id = engine.run();
        let Around { ledger, principals, freezes, commits, sources, taints, family } = around;
        // A run that is taken up may have opened others before.
        let below = match engine.state().children().is_empty() {
            true => Arc::new(Delegated::default()),
            false => Arc::new(Delegated::incomplete()),
        };
        let live = Live {
            engine,
            env,
            ledger: Arc::clone(&ledger),
            principals: Arc::clone(&principals),
            freezes,
            taints: Arc::clone(&taints),
            commits,
            family: Arc::clone(&family),
            lineage: lineage.clone(),
            below: Arc::clone(&below),
            head,
            in_doubt: false,
            closed: false,
            logged: false,
        };
        let (live, changed, segment) = (Arc::new(Mutex::new(live)), Notify::new(), head.segment);
        Self {
            id,
            segment,
            principal,
            ledger,
            principals,
            sources,
            taints,
            family,
            lineage,
            below,
            live,
            changed,
        }
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

    /// Locks the run, unless it is closed, once it stands as the freezes say.
    async fn lock_open(&self) -> Result<MutexGuard<'_, Live>, SessionError> {
        let mut live = self.live.lock().await;
        live.check_open()?;
        if live.follow_freezes().await? {
            self.changed.notify_waiters();
        }
        Ok(live)
    }

    /// Waits until `changed` is told, from the moment of the call.
    pub(crate) fn changed(&self) -> tokio::sync::futures::Notified<'_> {
        self.changed.notified()
    }

    /// Records something that bears on the run and is neither said, done nor seen by the agent.
    pub async fn evidence(&self, name: String, digest: Digest) -> Result<u64, SessionError> {
        self.write(|engine, env| Ok(engine.evidence(env, name, digest))).await
    }

    /// Records of the files that an action was to write whether they have in them what was written: as a payload, which
    /// can be erased, and of the answers alone a digest. `cause` is its outcome.
    ///
    /// # Errors
    /// Those of every write.
    pub async fn writes_checked(&self, cause: u64, checks: &[WriteCheck]) -> Result<u64, SessionError> {
        self.write(|engine, env| Ok(engine.writes_checked(env, cause, checks))).await
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
        let label = self.spoken_by(&text, label).await?;
        let subject = Subject::Input { text: &text, label: &label };
        let judged = self.judge_text(
            |engine, at, sources| engine.needs_of_text(at, subject, sources),
            |engine, env, sources| Ok(engine.input(env, &text, &label, reach, sources)),
        );
        Ok(judged.await?.1)
    }

    /// Records and judges that the user says yes to the action that was asked about.
    ///
    /// # Errors
    /// Besides those of every write: this run does not wait for the user to confirm that action.
    pub async fn confirm(&self, action: ActionId, text: String) -> Result<TextJudgement, SessionError> {
        let label = self.spoken_by(&text, Label::User).await?;
        let subject = Subject::Input { text: &text, label: &label };
        let judged = self.judge_text(
            |engine, at, sources| engine.needs_of_text(at, subject, sources),
            |engine, env, sources| {
                let confirmed = engine.confirmation(env, action, (&text, &label), sources);
                confirmed.ok_or(SessionError::NotAsked(action))
            },
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
        self.reply(text, documents, reach, false).await
    }

    /// The same, where the surface may say that it is the last reply.
    pub(crate) async fn reply(
        &self,
        text: String,
        documents: Option<&[Document]>,
        reach: Reach,
        last: bool,
    ) -> Result<TextJudgement, SessionError> {
        let shown = ReplyShown { last, replaces: reach == Reach::Replace };
        let given = documents.map(|documents| {
            let given = documents.iter().map(|one| serde_json::json!({"id": one.id, "text": one.text}));
            serde_json::Value::from_iter(given).to_string()
        });
        let given = given.as_deref();
        let judged = self.judge_text(
            |engine, at, sources| {
                engine.needs_of_reply(at, (&text, given), reach, sources).about_reply(shown)
            },
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
        let seq = live.commit_with(batch, Used::default(), Some(bundle)).await?;
        drop(live);
        // What waits for a person is judged again.
        self.changed.notify_waiters();
        Ok(seq)
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
        let (facts, principal, below) = (&known.facts, self.principal.id.as_str(), &self.below);
        let (usage, above, again) = (&NoSources, &[][..], false);
        let (batch, judged) =
            judge(engine, env, &Gathered { facts, usage, taints, principal, below, above, again })?;
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
