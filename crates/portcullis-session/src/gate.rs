//! All live runs of a process: opening, sharing, waiting for approvers, closing.
//!
//! Several surfaces of one agent session (five MCP servers, say) meet in one run: the key is the principal and
//! the client's session id. Each surface is *attached*; when the last one leaves, the run is closed, in good
//! order or as abandoned.

mod all_runs;
mod arrivals;
mod attachment;
mod freezes;
mod keys;
mod kin;
mod opening;
mod requests;
mod stored;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use portcullis_contracts::verify::Document;
use portcullis_core::event::{ClosedState, Enforced};
use portcullis_core::id::{ApprovalId, RunId};
use portcullis_ledger::Ledger;

use crate::bundles::{Bundles, Source};
use crate::commits::{CommitWatch, Commits};
use crate::engine::{Answer, Judgement, Proposal, Reach, TextJudgement};
use crate::error::SessionError;
use crate::facts::FactSources;
use crate::freezes::Freezes;
use crate::handed::Handed;
use crate::observers::{Observer, Observers};
use crate::permit::Permit;
use crate::policy::{self, Pipeline};
use crate::principals::Principals;
use crate::run::{Family, Run};
use crate::taints::Taints;
use crate::tickets::Tickets;

pub use self::all_runs::NotReloaded;
use self::arrivals::Announced;
pub use self::attachment::Attachment;
pub use self::freezes::{FreezeDone, Release};
use self::keys::Keys;
pub use self::opening::{OpenError, Opened, RunRequest};
pub use self::requests::SESSION_BYTES_MAX;

/// Runs that may be live at once.
pub const RUNS_LIVE_MAX: usize = 10_000;
/// Live runs per principal: a principal that opens runs without end leaves room for others.
pub const RUNS_OF_PRINCIPAL_MAX: usize = 2_000;
/// Bundles besides the default one that the live runs of one principal may use at once.
pub const BUNDLES_OF_PRINCIPAL_MAX: usize = 64;
/// Surfaces that may be attached to the runs of one principal at once by a connection, of which the socket has 512.
pub const ATTACHED_OF_PRINCIPAL_MAX: usize = 160;
/// A run with nothing attached that was not used for this long is closed as abandoned.
pub const IDLE: Duration = Duration::from_secs(3_600);
/// How long a run that the last surface has left waits for another before it is closed.
const LEFT: Duration = Duration::from_millis(300);

/// What one adds to a gate: guards in a pipeline of one's own, sources of the facts that they ask for, and observers.
#[derive(Debug)]
pub struct Extensions {
    /// The guards, with what they need.
    pub pipeline: Pipeline,
    /// Where the facts come from.
    pub sources: FactSources,
    /// Who sees what was recorded.
    pub observers: Vec<Box<dyn Observer>>,
}

impl Default for Extensions {
    /// The built-in guards, and nothing else.
    fn default() -> Self {
        Self { pipeline: policy::pipeline(), sources: FactSources::default(), observers: Vec::new() }
    }
}

/// See the [module documentation](self).
#[derive(Debug)]
pub struct Gate {
    ledger: Arc<dyn Ledger>,
    pipeline: Arc<Pipeline>,
    bundles: Arc<Bundles>,
    principals: Arc<Principals>,
    commits: Commits,
    sources: Arc<FactSources>,
    tickets: Tickets,
    family: Arc<Family>,
    /// Read when the first run is opened.
    taints: tokio::sync::OnceCell<Arc<Taints>>,
    runs: Mutex<Runs>,
    keys: Keys,
    /// Held while changed bundles are put in force.
    reloading: tokio::sync::Mutex<()>,
    freezes: Arc<Freezes>,
    /// Set once the freezes of the store are among them.
    freezes_loaded: tokio::sync::OnceCell<()>,
    /// Held while a freeze is ordered or released, so that the store has the changes in their order.
    freezing: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct Runs {
    by_id: BTreeMap<RunId, Entry>,
    by_session: HashMap<(String, String), RunId>,
    by_principal: HashMap<String, usize>,
    /// Those on their way, by their number.
    announced: BTreeMap<u64, Announced>,
    announced_before: u64,
}

impl Runs {
    fn remove(&mut self, id: RunId) -> Option<Arc<Run>> {
        let Entry { run, session, .. } = self.by_id.remove(&id)?;
        if let Some(count) = self.by_principal.get_mut(&run.principal().id) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.by_principal.remove(&run.principal().id);
            }
        }
        if let Some(session) = session {
            let key = (run.principal().id.clone(), session);
            if self.by_session.get(&key) == Some(&id) {
                self.by_session.remove(&key);
            }
        }
        Some(run)
    }
}

#[derive(Debug)]
struct Entry {
    run: Arc<Run>,
    session: Option<String>,
    source: Source,
    policy: String,
    attached: usize,
    /// How many of the attached keep a connection.
    connected: usize,
    /// How many of the attached have said that they leave.
    leaving: usize,
    /// How the last surface left, while none is attached.
    left: Option<ClosedState>,
    last_used: Instant,
}

impl Entry {
    fn new(run: Arc<Run>, session: Option<String>, policy: String) -> Self {
        let (source, last_used) = (None, Instant::now());
        Self { run, session, source, policy, attached: 0, connected: 0, leaving: 0, left: None, last_used }
    }

    fn attach(&mut self, gate: &Arc<Gate>, connected: bool) -> Attachment {
        self.attached += 1;
        self.left = None;
        Attachment { gate: Arc::clone(gate), run: self.run.id(), connected }
    }
}

impl Gate {
    /// A gate over a ledger, with guards that need no sources of facts besides the gate's own, and no observers.
    pub fn new(ledger: Arc<dyn Ledger>, pipeline: Arc<Pipeline>, bundles: Bundles) -> Arc<Self> {
        let sources = Arc::new(FactSources::default());
        Self::with(ledger, pipeline, bundles, sources, Observers::default())
    }

    /// The same with what one adds of one's own.
    ///
    /// # Errors
    /// The system starts no thread for the observers.
    pub fn extended(
        ledger: Arc<dyn Ledger>,
        bundles: Bundles,
        extensions: Extensions,
    ) -> std::io::Result<Arc<Self>> {
        let Extensions { pipeline, sources, observers } = extensions;
        let observers = Observers::start(observers)?;
        Ok(Self::with(ledger, Arc::new(pipeline), bundles, Arc::new(sources), observers))
    }

    fn with(
        ledger: Arc<dyn Ledger>,
        pipeline: Arc<Pipeline>,
        bundles: Bundles,
        sources: Arc<FactSources>,
        observers: Observers,
    ) -> Arc<Self> {
        Arc::new(Self {
            ledger,
            pipeline,
            bundles: Arc::new(bundles),
            principals: Arc::default(),
            commits: Commits::new(observers),
            sources,
            tickets: Tickets::default(),
            family: Arc::default(),
            taints: tokio::sync::OnceCell::new(),
            runs: Mutex::default(),
            keys: Keys::default(),
            reloading: tokio::sync::Mutex::default(),
            freezes: Arc::default(),
            freezes_loaded: tokio::sync::OnceCell::new(),
            freezing: tokio::sync::Mutex::default(),
        })
    }

    /// The ledger.
    pub fn ledger(&self) -> &Arc<dyn Ledger> {
        &self.ledger
    }

    /// The bundles.
    pub fn bundles(&self) -> &Bundles {
        &self.bundles
    }

    /// The guards, for who judges beside the live runs.
    pub fn pipeline(&self) -> &Arc<Pipeline> {
        &self.pipeline
    }

    /// Watches what becomes durable in live runs, from now on.
    pub fn watch(&self) -> CommitWatch {
        self.commits.watch()
    }

    /// Number of live runs.
    pub fn live(&self) -> usize {
        self.lock().by_id.len()
    }

    fn lock(&self) -> MutexGuard<'_, Runs> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The live run with that id, for inspection only: this does not count as use.
    pub fn look_at(&self, id: RunId) -> Option<Arc<Run>> {
        self.lock().by_id.get(&id).map(|entry| Arc::clone(&entry.run))
    }

    /// The live run of that id.
    pub fn run(&self, id: RunId) -> Result<Arc<Run>, SessionError> {
        let mut runs = self.lock();
        let entry = runs.by_id.get_mut(&id).ok_or_else(|| SessionError::UnknownRun(id.to_string()))?;
        entry.last_used = Instant::now();
        Ok(Arc::clone(&entry.run))
    }

    /// Judges an action; a held one waits up to `wait` for a person's decision or a freeze. Dropping the future gives up
    /// the wait and nothing else: what is being recorded is recorded to the end.
    pub async fn propose(
        &self,
        run: &Arc<Run>,
        proposal: Proposal,
        wait: Duration,
    ) -> Result<(Judgement, Option<Permit>), SessionError> {
        let deadline = tokio::time::Instant::now() + wait;
        self.used_by_runs_below(run);
        loop {
            let (judgement, permit) = propose_to_the_end(run, proposal.clone()).await?;
            let waits_for = judgement.approval.filter(|_| judgement.enforced == Enforced::Held);
            match waits_for {
                Some(approval) if decided(run, approval, deadline).await => {}
                _ => {
                    if let Some((permit, contain)) =
                        permit.as_ref().and_then(|permit| Some((permit, permit.contain()?)))
                    {
                        self.tickets.keep(run.id(), permit.action(), contain);
                    }
                    return Ok((judgement, permit));
                }
            }
        }
    }

    /// The profiles that wait for who runs an action under them.
    pub(crate) fn tickets(&self) -> &Tickets {
        &self.tickets
    }

    /// Judges the agent's reply; a held one waits like a held action.
    pub async fn output(
        &self,
        run: &Arc<Run>,
        reply: Reply,
        wait: Duration,
    ) -> Result<TextJudgement, SessionError> {
        let deadline = tokio::time::Instant::now() + wait;
        loop {
            let (of_run, given) = (Arc::clone(run), reply.clone());
            let judgement = settle(async move {
                of_run.reply(given.text, given.documents.as_deref(), given.reach, given.last).await
            })
            .await?;
            match judgement.approval.filter(|_| judgement.enforced == Enforced::Held) {
                Some(approval) if decided(run, approval, deadline).await => {}
                _ => return Ok(judgement),
            }
        }
    }

    /// A person answers an approval of a live run.
    pub async fn answer(
        &self,
        approval: ApprovalId,
        run: RunId,
        answer: Answer,
    ) -> Result<u64, SessionError> {
        let run = self.run(run)?;
        settle(async move { run.answer(approval, answer).await }).await
    }

    /// Attaches a surface to a run by a connection that it keeps. The run lives at least as long as the attachment.
    pub fn attach(self: &Arc<Self>, id: RunId) -> Result<Attachment, SessionError> {
        let mut runs = self.lock();
        let unknown = || SessionError::UnknownRun(id.to_string());
        let principal = runs.by_id.get(&id).ok_or_else(unknown)?.run.principal().id.clone();
        let own = runs.by_id.values().filter(|entry| entry.run.principal().id == principal);
        if own.map(|entry| entry.connected).sum::<usize>() >= ATTACHED_OF_PRINCIPAL_MAX {
            return Err(SessionError::TooManyAttached { principal, limit: ATTACHED_OF_PRINCIPAL_MAX });
        }
        let entry = runs.by_id.get_mut(&id).ok_or_else(unknown)?;
        entry.connected += 1;
        Ok(entry.attach(self, true))
    }

    /// Attaches a surface that is in this process and keeps no connection. How many there are is for the surface to limit;
    /// the runs of a principal are limited as all are.
    pub fn attach_inside(self: &Arc<Self>, id: RunId) -> Result<Attachment, SessionError> {
        let mut runs = self.lock();
        let entry = runs.by_id.get_mut(&id).ok_or_else(|| SessionError::UnknownRun(id.to_string()))?;
        Ok(entry.attach(self, false))
    }

    /// A surface leaves in good order. A run that nothing is attached to is closed at once.
    pub async fn leave(&self, id: RunId) -> Result<(), SessionError> {
        {
            let mut runs = self.lock();
            let entry = runs.by_id.get_mut(&id).ok_or_else(|| SessionError::UnknownRun(id.to_string()))?;
            if entry.attached > 0 {
                entry.leaving = (entry.leaving + 1).min(entry.attached);
                return Ok(());
            }
        }
        self.close(id, ClosedState::Closed).await
    }

    /// Closes a live run.
    pub async fn close(&self, id: RunId, state: ClosedState) -> Result<(), SessionError> {
        let run = self.run(id)?;
        let closing = Arc::clone(&run);
        settle(async move { closing.close(state).await }).await?;
        self.lock().remove(id);
        self.tell_parent(&run).await;
        Ok(())
    }

    /// Closes a run once nothing is attached to it and it was not used for `quiet`: a client attaches a moment after
    /// it joins, and must not find the run closed. Once this is decided, no client can join it.
    async fn close_when_left(&self, id: RunId, state: ClosedState, quiet: Duration) {
        let run = loop {
            let wait = {
                let mut runs = self.lock();
                let Some(entry) = runs.by_id.get(&id).filter(|entry| entry.attached == 0) else { return };
                let wait = quiet.saturating_sub(entry.last_used.elapsed());
                if wait.is_zero() {
                    break runs.remove(id);
                }
                wait
            };
            tokio::time::sleep(wait).await;
        };
        if let Some(run) = run {
            // What cannot be closed now is closed as abandoned by the next process that opens the store.
            let closing = Arc::clone(&run);
            if settle(async move { closing.close(state).await }).await.is_ok() {
                self.tell_parent(&run).await;
            }
        }
    }
}

/// What an agent replies.
#[derive(Debug, Clone)]
pub struct Reply {
    /// The words.
    pub text: String,
    /// The documents that were handed over for it to cite, if any.
    pub documents: Option<Vec<Document>>,
    /// What the surface can still do about it.
    pub reach: Reach,
    /// The surface says that it is the last one.
    pub last: bool,
}

/// Waits until an approval is decided or its run is frozen. No, if that is not before the deadline.
async fn decided(run: &Run, approval: ApprovalId, deadline: tokio::time::Instant) -> bool {
    // Registered before the look, so that no decision falls between the two.
    let mut changed = std::pin::pin!(run.changed());
    changed.as_mut().enable();
    while run.waits(approval).await {
        if tokio::time::timeout_at(deadline, changed.as_mut()).await.is_err() {
            return false;
        }
        changed.set(run.changed());
        changed.as_mut().enable();
    }
    true
}

/// Judges an action and records the judgement to the end, even if the caller goes away half-way. A permit without a
/// receiver is recorded as not executed.
async fn propose_to_the_end(
    run: &Arc<Run>,
    proposal: Proposal,
) -> Result<(Judgement, Option<Permit>), SessionError> {
    let (answer, answered) = tokio::sync::oneshot::channel();
    let run = Arc::clone(run);
    tokio::spawn(async move {
        let judged = run.propose(proposal).await;
        // Whoever asked may go before the answer is there, or while it is on its way.
        let _ = answer.send(Handed::new((run, judged), not_received));
    });
    let (_, judged) = answered.await.ok().and_then(Handed::take).ok_or(SessionError::CutShort)?;
    judged
}

type Judged = Result<(Judgement, Option<Permit>), SessionError>;

/// Records that a permit reached nobody.
fn not_received((run, judged): (Arc<Run>, Judged)) -> Option<impl Future<Output = ()> + Send + 'static> {
    let permit = judged.ok()?.1?;
    Some(async move {
        // If this cannot be recorded either, the action stays without an outcome, which counts as executed.
        let _ = run.not_executed(permit.action()).await;
    })
}

/// Runs work to its end even if the caller goes away half-way.
pub async fn settle<T: Send + 'static>(
    work: impl Future<Output = Result<T, SessionError>> + Send + 'static,
) -> Result<T, SessionError> {
    tokio::spawn(work).await.map_err(|_| SessionError::CutShort)?
}
