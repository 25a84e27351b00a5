//! All live runs of a process: opening, sharing, waiting for approvers, closing.
//!
//! Several surfaces of one agent session (five MCP servers, say) meet in one run: the key is the principal and
//! the client's session id. Each surface is *attached*; when the last one leaves, the run is closed, in good
//! order or as abandoned.

mod all_runs;
mod attachment;
mod opening;
mod requests;

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use portcullis_core::aside::{DIGEST_KEY, ERASED, SCOPE};
use portcullis_core::bundle::Bundle;
use portcullis_core::event::{ClosedState, Enforced, Event, Place, RunOpened};
use portcullis_core::id::{ApprovalId, RunId, SegmentId};
use portcullis_core::limits::APPROVALS_PENDING_MAX;
use portcullis_core::memory::Texts;
use portcullis_core::principal::Principal;
use portcullis_ledger::{Head, Ledger, NewSegment, SegmentState};

use crate::bundles::{Bundles, Source};
use crate::commits::{CommitWatch, Commits};
use crate::configuration;
use crate::credentials::Identity;
use crate::dry::UnknownPolicy;
use crate::engine::{Answer, Engine, Judgement, Proposal};
use crate::env::{Env as _, SystemEnv};
use crate::error::SessionError;
use crate::permit::Permit;
use crate::policy::Pipeline;
use crate::principals::Principals;
use crate::run::Run;

pub use self::all_runs::NotReloaded;
pub use self::attachment::Attachment;
pub use self::requests::SESSION_BYTES_MAX;
use self::requests::{check_bound, check_names};

/// Runs that may be live at once.
pub const RUNS_LIVE_MAX: usize = 10_000;
/// Live runs per principal: a principal that opens runs without end leaves room for others.
pub const RUNS_OF_PRINCIPAL_MAX: usize = 1_000;
/// Bundles besides the default one that the live runs of one principal may use at once.
pub const BUNDLES_OF_PRINCIPAL_MAX: usize = 64;
/// Surfaces that may be attached to the runs of one principal at once: each keeps a connection.
pub const ATTACHED_OF_PRINCIPAL_MAX: usize = 160;
/// A run with nothing attached that was not used for this long is closed as abandoned.
pub const IDLE: Duration = Duration::from_secs(3_600);
/// How long a run that the last surface has left waits for another before it is closed.
const LEFT: Duration = Duration::from_millis(300);
/// Events read at a time when a run is taken up again.
const RESUME_PAGE: usize = 1_000;
/// Latest events whose texts are read again when a run is taken up, which is what its caller waits for.
const EVENTS_RECALLED_MAX: u64 = 1_000;

/// A request for a run.
#[derive(Debug, Clone)]
pub struct OpenRun {
    /// Who asks.
    pub identity: Identity,
    /// The way in: `mcp`, `http`, ...
    pub surface: String,
    /// The client's session, or `None` for a run of its own.
    pub session: Option<String>,
    /// The runtime policy, or `None` for that of the credential or the bundle.
    pub policy: Option<String>,
    /// The bundle's folder, or `None` for the default.
    pub bundle: Option<PathBuf>,
    /// A run that this client was using when its daemon died.
    pub resume: Option<RunId>,
    /// Where no run of the session is live, its latest one is continued.
    pub rejoin: bool,
    /// Where the agent works; a run keeps the place that it was opened with.
    pub place: Option<Place>,
}

impl OpenRun {
    /// A run of its own, under the default policy of the default bundle.
    pub fn new(identity: Identity, surface: impl Into<String>) -> Self {
        Self {
            identity,
            surface: surface.into(),
            session: None,
            policy: None,
            bundle: None,
            resume: None,
            rejoin: false,
            place: None,
        }
    }
}

/// An opened run.
#[derive(Debug, Clone)]
pub struct Opened {
    /// The run.
    pub run: Arc<Run>,
    /// The runtime policy that governs it.
    pub policy: String,
    /// The bundle that governs it.
    pub bundle: Arc<Bundle>,
    /// Whether another surface of the same session had opened it.
    pub shared: bool,
}

/// See the [module documentation](self).
#[derive(Debug)]
pub struct Gate {
    ledger: Arc<Ledger>,
    pipeline: Arc<Pipeline>,
    bundles: Bundles,
    principals: Arc<Principals>,
    commits: Commits,
    runs: Mutex<Runs>,
    /// Held while a run is being opened, so that two surfaces that start at once share it.
    opening: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct Runs {
    by_id: BTreeMap<RunId, Entry>,
    by_session: HashMap<(String, String), RunId>,
    by_principal: HashMap<String, usize>,
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
    /// How many of the attached have said that they leave.
    leaving: usize,
    /// How the last surface left, while none is attached.
    left: Option<ClosedState>,
    last_used: Instant,
}

impl Gate {
    /// A gate over a ledger.
    pub fn new(ledger: Arc<Ledger>, pipeline: Arc<Pipeline>, bundles: Bundles) -> Arc<Self> {
        let (runs, opening) = (Mutex::default(), tokio::sync::Mutex::default());
        let (principals, commits) = (Arc::default(), Commits::default());
        Arc::new(Self { ledger, pipeline, bundles, principals, commits, runs, opening })
    }

    /// The ledger.
    pub fn ledger(&self) -> &Arc<Ledger> {
        &self.ledger
    }

    /// The bundles.
    pub fn bundles(&self) -> &Bundles {
        &self.bundles
    }

    /// Watches what becomes durable in live runs, from now on.
    pub fn watch(&self) -> CommitWatch {
        self.commits.watch()
    }

    /// Number of live runs.
    pub fn live(&self) -> usize {
        self.lock().by_id.len()
    }

    fn live_of(&self, principal: &str) -> usize {
        self.lock().by_principal.get(principal).copied().unwrap_or_default()
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

    /// Opens a run, joins the live one of the same session, or takes up one whose daemon died.
    pub async fn open(&self, request: OpenRun) -> Result<Opened, OpenError> {
        check_names(&request)?;
        check_bound(&request)?;
        // Held from the look at the bundle on, so that no reload falls between that and the run's registration.
        let _opening = self.opening.lock().await;
        self.check_share_of_bundles(&request)?;
        let (source, bundle) = self.bundles.get_for_run(request.bundle.as_deref(), || self.sources())?;
        let request = self.with_latest(request, &bundle)?;
        let wanted = request.policy.clone().or_else(|| request.identity.policy.clone());
        let live = |id: &RunId| self.lock().by_id.get(id).map(|entry| Arc::clone(&entry.run));
        if let Some(run) = request.resume.as_ref().and_then(live)
            && run.principal().id != request.identity.principal.id
        {
            return Err(SessionError::UnknownRun(run.id().to_string()).into());
        }
        let resumed = request.resume.filter(|id| !self.lock().by_id.contains_key(id));
        let policy = match resumed {
            Some(id) => self.policy_of(id, &request.identity.principal.id, wanted)?,
            None => wanted.unwrap_or_else(|| bundle.default_policy().to_owned()),
        };
        UnknownPolicy::check(&bundle, &policy).map_err(SessionError::from)?;
        if let Some(shared) = self.join(&request, &source, &policy)? {
            return Ok(Opened { run: shared, policy, bundle, shared: true });
        }
        if self.live() >= RUNS_LIVE_MAX {
            return Err(SessionError::TooManyRuns { limit: RUNS_LIVE_MAX }.into());
        }
        if self.live_of(&request.identity.principal.id) >= RUNS_OF_PRINCIPAL_MAX {
            let principal = request.identity.principal.id;
            return Err(SessionError::TooManyOfPrincipal { principal, limit: RUNS_OF_PRINCIPAL_MAX }.into());
        }
        let run = match request.resume {
            Some(id) => self.take_up(id, &request, &bundle).await?,
            None => self.open_new(&request, &policy, &bundle).await?,
        };
        let run = Arc::new(run);
        let mut runs = self.lock();
        if let Some(session) = &request.session {
            runs.by_session.insert((request.identity.principal.id.clone(), session.clone()), run.id());
        }
        let entry = Entry {
            run: Arc::clone(&run),
            session: request.session,
            source,
            policy: policy.clone(),
            attached: 0,
            leaving: 0,
            left: None,
            last_used: Instant::now(),
        };
        *runs.by_principal.entry(run.principal().id.clone()).or_default() += 1;
        runs.by_id.insert(run.id(), entry);
        Ok(Opened { run, policy, bundle, shared: false })
    }

    /// The request, with the run that it continues where it asks for the session's latest. A run whose policy the
    /// bundle no longer has is not continued.
    fn with_latest(&self, mut request: OpenRun, bundle: &Bundle) -> Result<OpenRun, SessionError> {
        let Some(session) = request.session.as_ref().filter(|_| request.rejoin && request.resume.is_none())
        else {
            return Ok(request);
        };
        let principal = &request.identity.principal.id;
        if self.lock().by_session.contains_key(&(principal.clone(), session.clone())) {
            return Ok(request);
        }
        let Some(latest) = self.ledger.read(|reader| reader.latest_run(principal, session))? else {
            return Ok(request);
        };
        let policy = self.opening_of(latest)?.policy;
        let same = request.policy.as_ref().is_none_or(|wanted| *wanted == policy);
        request.resume = Some(latest).filter(|_| same && bundle.policy(&policy).is_some());
        Ok(request)
    }

    /// A run that is taken up keeps its policy; another one is refused. The owner is checked first, so that the
    /// policy of another principal's run is never revealed.
    fn policy_of(&self, id: RunId, principal: &str, wanted: Option<String>) -> Result<String, SessionError> {
        let governed = self.opening_for(id, principal)?.policy;
        match wanted {
            Some(wanted) if wanted != governed => Err(SessionError::Mismatch {
                run: id,
                wanted: format!("the policy `{wanted}`"),
                governed: format!("`{governed}`"),
            }),
            _ => Ok(governed),
        }
    }

    /// The live run of the same principal and session.
    fn join(
        &self,
        request: &OpenRun,
        source: &Source,
        policy: &str,
    ) -> Result<Option<Arc<Run>>, SessionError> {
        let mut runs = self.lock();
        let by_session = request.session.as_ref().and_then(|session| {
            runs.by_session.get(&(request.identity.principal.id.clone(), session.clone())).copied()
        });
        let Some(entry) = by_session.or(request.resume).and_then(|id| runs.by_id.get_mut(&id)) else {
            return Ok(None);
        };
        let id = entry.run.id();
        if entry.run.principal().id != request.identity.principal.id {
            return Err(SessionError::UnknownRun(id.to_string()));
        }
        if entry.source != *source || entry.policy != policy {
            let name = |source: &Source, policy: &str| match source {
                Some(folder) => format!("policy `{policy}` of `{}`", folder.display()),
                None => format!("policy `{policy}` of the shipped bundle"),
            };
            let (wanted, governed) = (name(source, policy), name(&entry.source, &entry.policy));
            return Err(SessionError::Mismatch { run: id, wanted, governed });
        }
        entry.last_used = Instant::now();
        Ok(Some(Arc::clone(&entry.run)))
    }

    async fn open_new(
        &self,
        request: &OpenRun,
        policy: &str,
        bundle: &Arc<Bundle>,
    ) -> Result<Run, SessionError> {
        let mut env = SystemEnv::new()?;
        let id = RunId::from_bytes(env.id());
        let principal = request.identity.principal.clone();
        let opened = self
            .ledger
            .open_segment(NewSegment {
                run: id,
                segment: SegmentId::from_bytes(env.id()),
                principal: principal.id.clone(),
                session_key: request.session.clone(),
                opened: env.now(),
            })
            .await?;
        let engine = self.engine_of(id, bundle);
        let run = self.run_of(engine, env, opened.head, principal.clone());
        let first = RunOpened {
            principal,
            surface: request.surface.clone(),
            session: request.session.clone(),
            policy: policy.to_owned(),
            bundle: bundle.digest(),
            configuration: Some(configuration::digest(bundle.digest())),
            mode: bundle.mode,
            place: request.place.clone(),
        };
        run.begin(|engine, env| engine.open(env, first)).await?;
        Ok(run)
    }

    fn engine_of(&self, id: RunId, bundle: &Arc<Bundle>) -> Engine {
        Engine::new(id, Arc::clone(bundle), Arc::clone(&self.pipeline)).waiting_at_most(APPROVALS_PENDING_MAX)
    }

    fn run_of(&self, engine: Engine, env: SystemEnv, head: Head, principal: Principal) -> Run {
        let (ledger, principals) = (Arc::clone(&self.ledger), Arc::clone(&self.principals));
        Run::new(engine, env, ledger, principals, self.commits.clone(), head, principal)
    }

    /// Continues a run in a new segment, with the state that its events add up to.
    async fn take_up(&self, id: RunId, request: &OpenRun, bundle: &Arc<Bundle>) -> Result<Run, SessionError> {
        let RunOpened { principal, policy, .. } = self.opening_for(id, &request.identity.principal.id)?;
        if bundle.policy(&policy).is_none() {
            return Err(SessionError::PolicyGone { policy });
        }
        let mut env = SystemEnv::new()?;
        let opened = self
            .ledger
            .open_segment(NewSegment {
                run: id,
                segment: SegmentId::from_bytes(env.id()),
                principal: principal.id.clone(),
                session_key: request.session.clone(),
                opened: env.now(),
            })
            .await?;
        // Read only now: opening may have closed what a dead writer left behind. What was changed since it was stored is
        // not believed.
        self.ledger.read(|reader| reader.verify_run(id))?;
        let mut engine = self.engine_of(id, bundle);
        // Earlier texts count as erased: values from them have an unknown origin.
        let remembered = opened.head.count.saturating_sub(EVENTS_RECALLED_MAX);
        self.each_event(id, |mut event| {
            let bears_on_state = [DIGEST_KEY, SCOPE].iter().any(|name| event.payloads.contains_key(*name));
            let read = event.seq > remembered || bears_on_state;
            let texts = if read { self.texts_of(id, &event)? } else { Texts::new() };
            let words = event.aside_name().and_then(|name| texts.get(name));
            event.join(words.map(String::as_str), ERASED);
            engine.recall(&event, &texts);
            Ok(())
        })?;
        let parent = match opened.parent {
            Some(SegmentState::Closed) => ClosedState::Closed,
            _ => ClosedState::Abandoned,
        };
        let run = self.run_of(engine, env, opened.head, principal);
        let mode = bundle.mode;
        run.begin(|engine, env| engine.resume(env, parent, mode)).await?;
        Ok(run)
    }

    /// Shows the stored events of a run in order, all of them or none the last.
    fn each_event(
        &self,
        id: RunId,
        mut show: impl FnMut(Event) -> Result<(), SessionError>,
    ) -> Result<(), SessionError> {
        let mut seen = 0;
        loop {
            let page = self.ledger.read(|reader| reader.events(id, seen, RESUME_PAGE))?;
            if page.is_empty() {
                return Ok(());
            }
            for stored in &page {
                let event = Event::from_line(&stored.line).map_err(|_| SessionError::OutOfStep(id))?;
                if event.seq != stored.seq || event.seq <= seen {
                    return Err(SessionError::OutOfStep(id));
                }
                seen = event.seq;
                show(event)?;
            }
        }
    }

    /// The texts of a stored event that are still there.
    fn texts_of(&self, id: RunId, event: &Event) -> Result<Texts, SessionError> {
        let mut texts = Texts::new();
        for (name, payload) in &event.payloads {
            let stored = self.ledger.read(|reader| reader.payload(id, payload.commitment))?;
            if let Some(text) = stored.and_then(|stored| String::from_utf8(stored.bytes().to_vec()).ok()) {
                texts.insert(name.clone(), text);
            }
        }
        Ok(texts)
    }

    /// Judges an action; a held one waits up to `wait` for a person's decision. Dropping the future gives up
    /// the wait and nothing else: what is being recorded is recorded to the end.
    pub async fn propose(
        &self,
        run: &Arc<Run>,
        proposal: Proposal,
        wait: Duration,
    ) -> Result<(Judgement, Option<Permit>), SessionError> {
        let deadline = tokio::time::Instant::now() + wait;
        loop {
            let (judgement, permit) = propose_to_the_end(run, proposal.clone()).await?;
            let Some(approval) = judgement.approval.filter(|_| judgement.enforced == Enforced::Held) else {
                return Ok((judgement, permit));
            };
            // Registered before the look, so that no decision falls between the two.
            let mut changed = std::pin::pin!(run.changed());
            changed.as_mut().enable();
            loop {
                if !run.is_pending(approval).await {
                    break;
                }
                if tokio::time::timeout_at(deadline, changed.as_mut()).await.is_err() {
                    return Ok((judgement, permit));
                }
                changed.set(run.changed());
                changed.as_mut().enable();
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

    /// Attaches a surface to a run. The run lives at least as long as the attachment.
    pub fn attach(self: &Arc<Self>, id: RunId) -> Result<Attachment, SessionError> {
        let mut runs = self.lock();
        let unknown = || SessionError::UnknownRun(id.to_string());
        let principal = runs.by_id.get(&id).ok_or_else(unknown)?.run.principal().id.clone();
        let own = runs.by_id.values().filter(|entry| entry.run.principal().id == principal);
        if own.map(|entry| entry.attached).sum::<usize>() >= ATTACHED_OF_PRINCIPAL_MAX {
            return Err(SessionError::TooManyAttached { principal, limit: ATTACHED_OF_PRINCIPAL_MAX });
        }
        let entry = runs.by_id.get_mut(&id).ok_or_else(unknown)?;
        entry.attached += 1;
        entry.left = None;
        Ok(Attachment { gate: Arc::clone(self), run: id })
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
        settle(async move { run.close(state).await }).await?;
        self.lock().remove(id);
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
            let _ = settle(async move { run.close(state).await }).await;
        }
    }
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
        if let Err(Ok((_, Some(permit)))) = answer.send(run.propose(proposal).await) {
            // If this cannot be recorded either, the action stays without an outcome, which counts as executed.
            let _ = run.not_executed(permit.action()).await;
        }
    });
    answered.await.map_err(|_| SessionError::CutShort)?
}

/// Runs work to its end even if the caller goes away half-way.
async fn settle<T: Send + 'static>(
    work: impl Future<Output = Result<T, SessionError>> + Send + 'static,
) -> Result<T, SessionError> {
    tokio::spawn(work).await.map_err(|_| SessionError::CutShort)?
}

/// Why a run could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The bundle.
    #[error(transparent)]
    Bundle(#[from] crate::bundle_dir::BundleError),
    /// Anything else.
    #[error(transparent)]
    Session(#[from] SessionError),
}
