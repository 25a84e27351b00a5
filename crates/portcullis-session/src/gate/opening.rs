//! How a run is opened: joined where it is live, taken up where it is stored, begun otherwise.
//!
//! Nothing here waits for the store while it holds what other requests need: a request holds the keys of its own
//! session and run alone, and is [announced](super::arrivals) meanwhile, so that limits count it and no change of
//! policy passes it by.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use portcullis_core::bundle::Bundle;
use portcullis_core::event::{ClosedState, Parent, Place, RunOpened};
use portcullis_core::id::{RunId, SegmentId};
use portcullis_core::limits::APPROVALS_PENDING_MAX;
use portcullis_core::principal::Principal;
use portcullis_ledger::{Head, LedgerError, NewSegment, OpenedSegment, Reader, SegmentState, read_aside};

use super::arrivals::Arrival;
use super::keys::Key;
use super::requests::{check_bound, check_names};
use super::{Entry, Gate, settle, stored};
use crate::bundle_dir::BundleError;
use crate::bundles::Source;
use crate::configuration;
use crate::credentials::Identity;
use crate::dry::UnknownPolicy;
use crate::engine::Engine;
use crate::env::{Env as _, SystemEnv};
use crate::error::SessionError;
use crate::run::{Around, Run};
use crate::taints::Taints;

/// A request for a run.
#[derive(Debug, Clone)]
pub struct RunRequest {
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
    /// The run that delegates work to this one. A run keeps its parent for life.
    pub parent: Option<RunId>,
}

impl RunRequest {
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
            parent: None,
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

/// Why a run could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The bundle.
    #[error(transparent)]
    Bundle(#[from] BundleError),
    /// Anything else.
    #[error(transparent)]
    Session(#[from] SessionError),
}

impl Gate {
    /// Opens a run, joins the live one of the same session, or takes up one whose daemon died.
    pub async fn open(&self, request: RunRequest) -> Result<Opened, OpenError> {
        check_names(&request)?;
        check_bound(&request)?;
        self.load_freezes().await?;
        let principal = request.identity.principal.id.clone();
        let session = request.session.clone().map(|session| Key::Session(principal.clone(), session));
        let _session = match session {
            Some(key) => Some(self.keys.hold(key).await),
            None => None,
        };
        let arrival = self.announce(&principal, self.bundles.source(request.bundle.as_deref()))?;
        let bundle = self.bundle_for(arrival.source()).await?;
        let request = self.with_latest(request, &bundle).await?;
        let _run = match request.resume {
            Some(id) => Some(self.keys.hold(Key::Run(id)).await),
            None => None,
        };
        let policy = self.policy_for(&request, &bundle).await?;
        if let Some(run) = self.join(&request, arrival.source(), &policy)? {
            return Ok(Opened { run, policy, bundle, shared: true });
        }
        arrival.take_room()?;
        let run = match (request.resume, request.parent) {
            (Some(id), _) => self.take_up(id, &request, &bundle).await?,
            (None, Some(parent)) => self.open_below(parent, &request, &policy, &bundle).await?,
            (None, None) => self.open_new(&request, &policy, &bundle).await?,
        };
        let bundle = self.register(arrival, run, request.session, &policy, bundle).await?;
        Ok(bundle)
    }

    /// The bundle of a source. Folders are read off the async threads.
    async fn bundle_for(&self, source: &Source) -> Result<Arc<Bundle>, OpenError> {
        if let Some(bundle) = self.bundles.known(source) {
            return Ok(bundle);
        }
        let (bundles, source, in_use) = (Arc::clone(&self.bundles), source.clone(), self.sources());
        let loaded = tokio::task::spawn_blocking(move || bundles.get_for_run(source, &in_use)).await;
        Ok(loaded.map_err(|_| SessionError::CutShort)??)
    }

    /// The policy that will govern the run. The owner of a stored run is checked first, so that the policy of another
    /// principal's run is never revealed; a run that is taken up keeps its policy.
    async fn policy_for(&self, request: &RunRequest, bundle: &Bundle) -> Result<String, SessionError> {
        let wanted = request.policy.clone().or_else(|| request.identity.policy.clone());
        let live = request.resume.and_then(|id| self.look_at(id));
        if let Some(run) = live.as_ref().filter(|run| run.principal().id != request.identity.principal.id) {
            return Err(SessionError::UnknownRun(run.id().to_string()));
        }
        let policy = match request.resume.filter(|_| live.is_none()) {
            Some(id) => {
                let governed = self.opening_for(id, &request.identity.principal.id).await?.policy;
                if let Some(wanted) = wanted.filter(|wanted| *wanted != governed) {
                    let (wanted, governed) = (format!("the policy `{wanted}`"), format!("`{governed}`"));
                    return Err(SessionError::Mismatch { run: id, wanted, governed });
                }
                governed
            }
            None => wanted.unwrap_or_else(|| bundle.default_policy().to_owned()),
        };
        UnknownPolicy::check(bundle, &policy)?;
        Ok(policy)
    }

    /// The request, with the run that it continues where it asks for the session's latest. A run whose policy the
    /// bundle no longer has is not continued.
    async fn with_latest(
        &self,
        mut request: RunRequest,
        bundle: &Bundle,
    ) -> Result<RunRequest, SessionError> {
        let Some(session) = request.session.clone().filter(|_| request.rejoin && request.resume.is_none())
        else {
            return Ok(request);
        };
        let principal = request.identity.principal.id.clone();
        if self.lock().by_session.contains_key(&(principal.clone(), session.clone())) {
            return Ok(request);
        }
        let latest = self
            .read(move |reader| {
                let Some(latest) = reader.latest_run(&principal, &session)? else { return Ok(None) };
                Ok(Some((latest, stored::opening_of(reader, latest)?.policy)))
            })
            .await?;
        request.resume = latest
            .filter(|(_, policy)| request.policy.as_ref().is_none_or(|wanted| wanted == policy))
            .filter(|(_, policy)| bundle.policy(policy).is_some())
            .map(|(latest, _)| latest);
        Ok(request)
    }

    /// How a stored run began, for anyone who asks on behalf of a principal. A run of another principal is unknown to
    /// it.
    async fn opening_for(&self, id: RunId, principal: &str) -> Result<RunOpened, SessionError> {
        let opened = self.read(move |reader| stored::opening_of(reader, id)).await?;
        if opened.principal.id == principal {
            Ok(opened)
        } else {
            Err(SessionError::UnknownRun(id.to_string()))
        }
    }

    /// Asks the store, off the async threads.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        queries: impl FnOnce(&dyn Reader) -> Result<T, SessionError> + Send + 'static,
    ) -> Result<T, SessionError> {
        read_aside(&self.ledger, move |reader| Ok::<_, LedgerError>(queries(reader))).await?
    }

    /// The live run of the same principal and session.
    fn join(
        &self,
        request: &RunRequest,
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
        check_parent(id, request, entry.run.lineage().first().copied())?;
        entry.last_used = Instant::now();
        Ok(Some(Arc::clone(&entry.run)))
    }

    async fn open_new(
        &self,
        request: &RunRequest,
        policy: &str,
        bundle: &Arc<Bundle>,
    ) -> Result<Arc<Run>, SessionError> {
        let mut env = SystemEnv::new()?;
        let id = RunId::from_bytes(env.id());
        self.begin(id, request, policy, bundle, None).await
    }

    /// Begins a new run.
    pub(super) async fn begin(
        &self,
        id: RunId,
        request: &RunRequest,
        policy: &str,
        bundle: &Arc<Bundle>,
        below: Option<(Parent, Vec<RunId>)>,
    ) -> Result<Arc<Run>, SessionError> {
        let mut env = SystemEnv::new()?;
        let (parent, lineage) = below.map_or((None, Vec::new()), |(parent, above)| (Some(parent), above));
        let principal = request.identity.principal.clone();
        let opened = self.open_segment(id, &principal, request, &mut env).await?;
        let engine = self.engine_of(id, bundle);
        let run = self.run_of(engine, env, opened.head, principal.clone(), lineage).await?;
        let first = RunOpened {
            principal,
            surface: request.surface.clone(),
            session: request.session.clone(),
            policy: policy.to_owned(),
            bundle: bundle.digest(),
            configuration: Some(configuration::digest(bundle.digest())),
            mode: bundle.mode,
            place: request.place.clone(),
            parent,
        };
        run.begin(|engine, env| engine.open(env, first)).await?;
        Ok(Arc::new(run))
    }

    /// Continues a run in a new segment, with the state that its events add up to.
    async fn take_up(
        &self,
        id: RunId,
        request: &RunRequest,
        bundle: &Arc<Bundle>,
    ) -> Result<Arc<Run>, SessionError> {
        let RunOpened { principal, policy, parent, .. } =
            self.opening_for(id, &request.identity.principal.id).await?;
        check_parent(id, request, parent.as_ref().map(|parent| parent.run))?;
        if bundle.policy(&policy).is_none() {
            return Err(SessionError::PolicyGone { policy });
        }
        let mut env = SystemEnv::new()?;
        let opened = self.open_segment(id, &principal, request, &mut env).await?;
        // Read only now: opening may have closed what a dead writer left behind.
        let (engine, count) = (self.engine_of(id, bundle), opened.head.count);
        let engine = self.read(move |reader| stored::recalled(reader, engine, count)).await?;
        let before = match opened.parent {
            Some(SegmentState::Closed) => ClosedState::Closed,
            _ => ClosedState::Abandoned,
        };
        let lineage = self.read(move |reader| stored::lineage(reader, parent)).await?;
        let run = Arc::new(self.run_of(engine, env, opened.head, principal, lineage).await?);
        let mode = bundle.mode;
        run.begin(|engine, env| engine.resume(env, before, mode)).await?;
        self.meet_children(&run).await?;
        Ok(run)
    }

    async fn open_segment(
        &self,
        run: RunId,
        principal: &Principal,
        request: &RunRequest,
        env: &mut SystemEnv,
    ) -> Result<OpenedSegment, LedgerError> {
        let new = NewSegment {
            run,
            segment: SegmentId::from_bytes(env.id()),
            principal: principal.id.clone(),
            session_key: request.session.clone(),
            opened: env.now(),
        };
        self.ledger.open_segment(new).await
    }

    fn engine_of(&self, id: RunId, bundle: &Arc<Bundle>) -> Engine {
        Engine::new(id, Arc::clone(bundle), Arc::clone(&self.pipeline)).waiting_at_most(APPROVALS_PENDING_MAX)
    }

    async fn run_of(
        &self,
        engine: Engine,
        env: SystemEnv,
        head: Head,
        principal: Principal,
        lineage: Vec<RunId>,
    ) -> Result<Run, SessionError> {
        let around = Around {
            ledger: Arc::clone(&self.ledger),
            principals: Arc::clone(&self.principals),
            freezes: Arc::clone(&self.freezes),
            commits: self.commits.clone(),
            sources: Arc::clone(&self.sources),
            taints: self.taints().await?,
            family: Arc::clone(&self.family),
        };
        Ok(Run::new(engine, env, head, principal, lineage, around))
    }

    /// What is known of things that outlive runs.
    async fn taints(&self) -> Result<Arc<Taints>, SessionError> {
        let stored = || async {
            let stored = read_aside(&self.ledger, |reader| reader.taints()).await?;
            let lost = || LedgerError::Corrupt {
                place: self.ledger.origin().to_owned(),
                detail: "the store has lost the key of its taints".to_owned(),
            };
            Taints::of(stored).map(Arc::new).ok_or_else(lost)
        };
        Ok(Arc::clone(self.taints.get_or_try_init(stored).await?))
    }

    /// Puts a run among the live ones, then has it catch up with what changed while it was being opened.
    async fn register(
        &self,
        arrival: Arrival<'_>,
        run: Arc<Run>,
        session: Option<String>,
        policy: &str,
        bundle: Arc<Bundle>,
    ) -> Result<Opened, OpenError> {
        let (source, accepted) = arrival.arrive(Entry::new(Arc::clone(&run), session, policy.to_owned()));
        run.follow_freezes().await?;
        for tool in accepted {
            if run.with_state(|state, _| state.tool_changed(&tool.tool, None)).await {
                run.tool_accepted(&tool.server, &tool.tool, tool.digest, &tool.approver).await?;
            }
        }
        let current = self.bundles.known(&source).filter(|current| current.digest() != bundle.digest());
        let Some(current) = current else {
            return Ok(Opened { run, policy: policy.to_owned(), bundle, shared: false });
        };
        if current.policy(policy).is_none() {
            self.close(run.id(), ClosedState::Closed).await?;
            return Err(SessionError::PolicyGone { policy: policy.to_owned() }.into());
        }
        let (changed, reloaded) = (Arc::clone(&run), Arc::clone(&current));
        settle(async move { changed.reload(reloaded).await }).await?;
        Ok(Opened { run, policy: policy.to_owned(), bundle: current, shared: false })
    }
}

/// Refuses a request for a run that has another parent than it names. One that names none takes the run as it is.
fn check_parent(run: RunId, request: &RunRequest, opened_by: Option<RunId>) -> Result<(), SessionError> {
    match request.parent {
        Some(parent) if opened_by != Some(parent) => Err(SessionError::OtherParent { run, opened_by }),
        _ => Ok(()),
    }
}
