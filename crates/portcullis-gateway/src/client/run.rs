//! A run that is held open, and resumed when the daemon dies.
//!
//! The run lives as long as someone is attached to it: a connection that stays open and carries nothing but
//! heartbeats. When it breaks, the daemon has died or will think that we have, so the run is opened again with
//! `resume`, in a new segment. Requests that fail for the same reason wait for that and are made once more. A
//! proposal that was made twice leaves a first one behind that nobody acts upon; it never executes twice.
//!
//! Losing the run again and again is not repaired forever: after [`RESUMES_IN_A_ROW_MAX`] without one answer in
//! between, every request fails, which the callers turn into refusals.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex as StdMutex, PoisonError};
use std::time::{Duration, Instant};

use portcullis_core::id::{RequestId, RunId};
use portcullis_session::env::{Env as _, SystemEnv};
use portcullis_session::surface::Surface;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::{Client, ClientError, Connection, Incoming, Proposed, StartOptions, ensure_daemon, next_frame};
use crate::api::{
    FactAnswer, FactRequest, HEARTBEAT_S, ObservationAnswer, OpenRun, OpenedRun, ProposeAction, ProposeTurn,
    ReportConfirmation, ReportEvidence, ReportInput, ReportObserved, ReportOutcome, ReportOutput, ReportTold,
    ReportTools, StateAnswer, StateRequest, StopAnswer, TextAnswer, ToolsAnswer, WorkAnswer, WorkList,
    WorkRequest,
};
use crate::home::Home;

/// How often a run may be taken up again without having answered anything, or lived for 30 s, in between.
pub const RESUMES_IN_A_ROW_MAX: u32 = 8;
/// The pause before the second of them; each further one is twice as long, up to [`BACKOFF_MAX`].
const BACKOFF_MIN: Duration = Duration::from_millis(50);
const BACKOFF_MAX: Duration = Duration::from_secs(2);
/// A run that lived for so long is not on the brink any more.
const SETTLED: Duration = Duration::from_secs(30);
/// Silence after which the daemon counts as dead: three heartbeats.
const SILENCE_MAX: Duration = Duration::from_secs(3 * HEARTBEAT_S);
/// How often one request is made.
const TRIES_MAX: u32 = 3;

/// One run, open as long as this value lives or until [`Run::close`].
#[derive(Debug)]
pub struct Run {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    home: Home,
    start: StartOptions,
    open: OpenRun,
    run: RunId,
    client: Client,
    /// Held while the run is being taken up again.
    life: Mutex<Life>,
    latest: StdMutex<(u64, OpenedRun)>,
    attached: StdMutex<Option<JoinHandle<()>>>,
    /// A request was answered since the run was last taken up.
    answered: AtomicBool,
    closing: AtomicBool,
}

#[derive(Debug)]
struct Life {
    since: Instant,
    resumes: u32,
}

impl Run {
    /// Starts the daemon where needed, opens the run and attaches to it.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn open(home: &Home, start: StartOptions, open: OpenRun) -> Result<Self, ClientError> {
        let client = ensure_daemon(home, &start).await?;
        let opened = client.open_run(&open).await?;
        let attached = client.attach(opened.run).await?;
        let shared = Arc::new(Shared {
            home: home.clone(),
            start,
            open,
            run: opened.run,
            client,
            life: Mutex::new(Life { since: Instant::now(), resumes: 0 }),
            latest: StdMutex::new((0, opened)),
            attached: StdMutex::new(None),
            answered: AtomicBool::new(false),
            closing: AtomicBool::new(false),
        });
        Shared::watch(&shared, 0, attached);
        Ok(Self { shared })
    }

    /// What the daemon said when the run was last opened.
    #[must_use]
    pub fn opened(&self) -> OpenedRun {
        self.shared.latest().1
    }

    /// Does something to a work item of the run.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn work(&self, request: &WorkRequest) -> Result<WorkAnswer, ClientError> {
        let run = self.shared.run.to_string();
        self.persistently(|| self.shared.client.work(&run, request)).await
    }

    /// The work items of the run, and the calls that can be cited.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn work_list(&self) -> Result<WorkList, ClientError> {
        let run = self.shared.run.to_string();
        self.persistently(|| self.shared.client.work_list(&run)).await
    }

    /// Does something to the session state of the run. Made again because the daemon died, it counts once.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn state(&self, request: StateRequest) -> Result<StateAnswer, ClientError> {
        let run = self.shared.run.to_string();
        let request = StateRequest { request: request.request.or_else(named), ..request };
        if request.request.is_none() {
            return self.shared.client.state(&run, &request).await;
        }
        self.persistently(|| self.shared.client.state(&run, &request)).await
    }

    /// Does something to facts. Made again because the daemon died, it counts once.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn facts(&self, request: FactRequest) -> Result<FactAnswer, ClientError> {
        let run = self.shared.run.to_string();
        let request = FactRequest { request: request.request.or_else(named), ..request };
        if request.request.is_none() {
            return self.shared.client.facts(&run, &request).await;
        }
        self.persistently(|| self.shared.client.facts(&run, &request)).await
    }

    async fn persistently<A, F>(&self, request: impl Fn() -> F) -> Result<A, ClientError>
    where
        F: Future<Output = Result<A, ClientError>>,
    {
        let mut tries = 1;
        loop {
            let (generation, _) = self.shared.latest();
            match request().await {
                Err(error) if error.calls_for_resuming() && tries < TRIES_MAX => {
                    tracing::warn!("{error}; reconnecting to the run");
                    Shared::resume(&self.shared, generation).await?;
                    tries += 1;
                }
                answer => {
                    if answer.is_ok() {
                        self.shared.answered.store(true, Ordering::SeqCst);
                    }
                    return answer;
                }
            }
        }
    }
}

/// A name for a request that may be made again. Without randomness it has none, and is made once.
fn named() -> Option<RequestId> {
    SystemEnv::new().ok().map(|mut env| RequestId::from_bytes(env.id()))
}

impl Surface for Run {
    type Error = ClientError;

    fn id(&self) -> RunId {
        self.shared.run
    }

    async fn propose(&self, action: ProposeAction) -> Result<Proposed, ClientError> {
        self.persistently(|| self.shared.client.propose(self.shared.run, &action)).await
    }

    async fn propose_turn(&self, turn: ProposeTurn) -> Result<Vec<Proposed>, ClientError> {
        self.persistently(|| self.shared.client.propose_turn(self.shared.run, &turn)).await
    }

    async fn outcome(&self, outcome: ReportOutcome) -> Result<ObservationAnswer, ClientError> {
        self.persistently(|| self.shared.client.outcome(self.shared.run, &outcome)).await
    }

    async fn told(&self, told: ReportTold) -> Result<ObservationAnswer, ClientError> {
        self.persistently(|| self.shared.client.told(self.shared.run, &told)).await
    }

    async fn input(&self, input: ReportInput) -> Result<TextAnswer, ClientError> {
        self.persistently(|| self.shared.client.input(self.shared.run, &input)).await
    }

    async fn confirm(&self, confirmation: ReportConfirmation) -> Result<TextAnswer, ClientError> {
        self.persistently(|| self.shared.client.confirm(self.shared.run, &confirmation)).await
    }

    async fn output(&self, output: ReportOutput) -> Result<TextAnswer, ClientError> {
        self.persistently(|| self.shared.client.output(self.shared.run, &output)).await
    }

    async fn evidence(&self, evidence: ReportEvidence) -> Result<TextAnswer, ClientError> {
        self.persistently(|| self.shared.client.evidence(self.shared.run, &evidence)).await
    }

    async fn stopping(&self) -> Result<StopAnswer, ClientError> {
        self.persistently(|| self.shared.client.stopping(self.shared.run)).await
    }

    async fn observed(&self, observed: ReportObserved) -> Result<ObservationAnswer, ClientError> {
        self.persistently(|| self.shared.client.observed(self.shared.run, &observed)).await
    }

    async fn tools(&self, tools: ReportTools) -> Result<ToolsAnswer, ClientError> {
        self.persistently(|| self.shared.client.tools(self.shared.run, &tools)).await
    }

    /// Closes this caller's share of the run; it is not resumed. If that fails, the daemon marks the run as abandoned.
    async fn close(&self) -> Result<(), ClientError> {
        self.shared.closing.store(true, Ordering::SeqCst);
        self.shared.client.close(self.shared.run).await
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.shared.closing.store(true, Ordering::SeqCst);
        let attached = self.shared.attached.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(task) = attached {
            task.abort();
        }
    }
}

impl Shared {
    fn latest(&self) -> (u64, OpenedRun) {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Holds a connection until it breaks, then takes the run up again.
    fn watch(this: &Arc<Self>, generation: u64, attached: (Incoming, Connection)) {
        let shared = Arc::clone(this);
        let task = tokio::spawn(async move {
            let (mut body, _connection) = attached;
            let why = loop {
                match timeout(SILENCE_MAX, next_frame(&mut body)).await {
                    Ok(Ok(Some(_))) => {}
                    Ok(Ok(None)) => break "the daemon closed the connection".to_owned(),
                    Ok(Err(error)) => break error.to_string(),
                    Err(_) => break format!("no heartbeat for {} s", SILENCE_MAX.as_secs()),
                }
            };
            // What breaks while the run is being closed, breaks as it should.
            if shared.closing.load(Ordering::SeqCst) {
                return;
            }
            tracing::warn!("the connection to run {} was lost: {why}; reconnecting", shared.run);
            // On a task of its own, since taking the run up again ends this one.
            drop(tokio::spawn(async move {
                while let Err(error) = Self::resume(&shared, generation).await {
                    tracing::warn!("could not reconnect to run {}: {error}", shared.run);
                    if matches!(error, ClientError::GivenUp(_)) || shared.closing.load(Ordering::SeqCst) {
                        break;
                    }
                }
            }));
        });
        let old = this.attached.lock().unwrap_or_else(PoisonError::into_inner).replace(task);
        if let Some(old) = old {
            old.abort();
        }
    }

    /// Takes the run up again, unless someone has done so since `seen`.
    async fn resume(this: &Arc<Self>, seen: u64) -> Result<(), ClientError> {
        let mut life = this.life.lock().await;
        let (generation, _) = this.latest();
        if generation != seen || this.closing.load(Ordering::SeqCst) {
            return Ok(());
        }
        if this.answered.swap(false, Ordering::SeqCst) || life.since.elapsed() > SETTLED {
            life.resumes = 0;
        }
        if life.resumes >= RESUMES_IN_A_ROW_MAX {
            return Err(ClientError::GivenUp(life.resumes));
        }
        if life.resumes > 0 {
            sleep((BACKOFF_MIN * 2_u32.saturating_pow(life.resumes)).min(BACKOFF_MAX)).await;
        }
        life.resumes += 1;
        life.since = Instant::now();
        // Its answer is what matters; the connections of `this.client` are as good.
        ensure_daemon(&this.home, &this.start).await?;
        let open = OpenRun { resume: Some(this.run), ..this.open.clone() };
        let opened = this.client.open_run(&open).await?;
        let attached = this.client.attach(opened.run).await?;
        tracing::warn!("run {} continues in segment {}", this.run, opened.segment);
        *this.latest.lock().unwrap_or_else(PoisonError::into_inner) = (generation + 1, opened);
        Self::watch(this, generation + 1, attached);
        Ok(())
    }
}
