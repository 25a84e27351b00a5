//! From start to stop.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::middleware;
use portcullis_core::bundle::Bundle;
use portcullis_ledger::log::{LogError, LogPlaces, LogThread, Round, check_standing};
use portcullis_ledger::{Ledger, OpenOptions};
use portcullis_session::bundles::Bundles;
use portcullis_session::credentials::Credentials;
use portcullis_session::gate::{Extensions, Gate, IDLE, NotReloaded};
use portcullis_session::listings::Listings;
use portcullis_session::shipped;
use portcullis_session::surface::Local;
use sd_notify::NotifyState;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;
use tracing::{debug, info, warn};

use super::auth::{Own, check_host_and_origin};
use super::checks::{Checks, WorkSource};
use super::connections;
use super::console::{self, Tally, TallyObserver};
use super::error::DaemonError;
use super::shares::Shares;
use super::{DaemonOptions, Listens, Shared, beside, mark, postconditions, routes, webhooks};
use crate::api;
use crate::call_models::CallModels;
use crate::contained::LevelSource;
use crate::contract_source::ContractSource;
use crate::cosign;
use crate::engine_source::EngineSource;
use crate::home::Home;
use crate::home_bundle;
use crate::signals::StopSignals;

/// How often the bundles' folders are looked at.
const RELOAD_EVERY: Duration = Duration::from_secs(1);
/// How often it is said how many summaries are still to be computed.
const DUE_EVERY: Duration = Duration::from_secs(5);
/// How often runs that nobody uses are looked for.
const SWEEP_EVERY: Duration = Duration::from_secs(60);

/// Serves until it is stopped by SIGTERM or SIGINT, then closes its runs.
pub async fn run(options: DaemonOptions) -> Result<(), DaemonError> {
    serve(options, Extensions::default()).await
}

/// The same with guards, sources of facts and observers of one's own. A source of one's own that is named like one of
/// the daemon's is asked in its place.
///
/// # Errors
/// [`DaemonError`]: what keeps it from serving, and what to do about it.
pub async fn serve(options: DaemonOptions, mut extensions: Extensions) -> Result<(), DaemonError> {
    let own = OwnSources::join(&mut extensions, &options.home);
    let tally = tally(&options, &mut extensions);
    let given = given_bundle(&options)?;
    let hold = beside::take_hold(&options, given.as_deref()).await?;
    let credentials = Credentials::load_or_create(&options.home.credentials())?;
    let controls = Arc::new(crate::governance::controls(&options.controls)?);
    let bundles =
        bundles(&options, given.as_deref())?.with_shipped(shipped::DEVELOPER, shipped::developer_bundle());
    let (source, bundle) = bundles.get(None)?;
    refuse_exposed(options.http, &bundle)?;
    let ledger = open_store(&options.home)?;
    let (failed, log_failure) = watch::channel(None);
    let log = log_thread(options.home.store().log(), failed)?;
    ledger.set_anchor(log.anchor());
    let gate = Gate::extended(ledger, bundles, extensions)
        .map_err(|source| DaemonError::Io { path: options.home.path().to_owned(), source })?;
    own.answer_for(&gate);
    tell_freezes(&gate).await?;
    let listings = Arc::new(Listings::at(options.home.listings()));
    let console = console::listen(options.console.as_ref(), &options.home, tally).await?;
    let http = bind(options.http).await?;
    let shared = Shared {
        build: options.build.clone(),
        listens: Listens::of(http.as_ref(), console.as_ref()),
        gate: Arc::clone(&gate),
        local: Local::new(
            Arc::clone(&gate),
            Arc::clone(&listings),
            Some(options.home.path().display().to_string()),
        ),
        credentials: Arc::new(credentials),
        oauth: Arc::default(),
        home: Arc::new(options.home.clone()),
        controls,
        listings,
        replies: Arc::new(Semaphore::new(api::REPLIES_AT_ONCE)),
        bodies: Arc::new(Semaphore::new(api::BODIES_BYTES_MAX >> 10)),
        exports: Shares::new(api::EXPORTS_OF_AGENT, api::EXPORTS_AT_ONCE),
        checks: own.work.checks(),
        packs: Arc::new(Semaphore::new(api::PACKS_AT_ONCE)),
        queue: Arc::default(),
        webhooks: Arc::default(),
        console: console.as_ref().map(console::Listening::console),
        mcp: Arc::default(),
        log_failure,
    };
    let (router, mcp) = (routes::router(shared.clone()), Arc::clone(&shared.mcp));
    // Before anyone can open a run that a signal would leave unclosed.
    let signals = StopSignals::listen().map_err(DaemonError::Signals)?;
    let socket = hold.listen()?;
    warn_of_same_user(&options);
    let from = source.as_deref().unwrap_or_else(|| Path::new("shipped")).display();
    info!(socket = %options.home.socket().display(), bundle = %bundle.digest(), %from, "serving");

    let (stop, stopped) = watch::channel(false);
    let tcp = http.map(|http| serve_tcp(http, &router, &gate, stopped.clone()));
    let pages = console.map(|console| serve_console(console, &shared, stopped.clone()));
    let unix = tokio::spawn(connections::serve(socket, router, connections::UNIX, stopped));

    let tasks = tasks_of(&gate, shared);
    serve_until_told(&gate, signals).await;
    tasks.iter().for_each(JoinHandle::abort);
    info!("stopping");
    // The streams first, so that none is waited for.
    let pages = pages.map(|(close, pages)| (close.send_replace(true), pages).1);
    mcp.end_all();
    gate.close_all().await;
    // Those who wait for an approver are not waited for.
    let _ = stop.send(true);
    end_all([Some(unix), tcp, pages]).await;
    // Last, so that the ends of the runs that were just closed are in the log.
    drop(log);
    Ok(())
}

/// Gives those who are served a moment to have their answers.
async fn end_all(serving: [Option<JoinHandle<()>>; 3]) {
    let grace = Duration::from_secs(1);
    for served in serving.into_iter().flatten() {
        let _ = tokio::time::timeout(grace, served).await;
    }
}

impl Listens {
    fn of(http: Option<&(TcpListener, SocketAddr)>, console: Option<&console::Listening>) -> Self {
        Self { http: http.map(|(_, address)| *address), console: console.map(|console| console.address) }
    }
}

async fn serve_until_told(gate: &Arc<Gate>, signals: StopSignals) {
    tell_service_manager(NotifyState::Ready);
    keep_house(gate, signals).await;
    tell_service_manager(NotifyState::Stopping);
}

/// Tells systemd, if that started the daemon: what waits for the service then goes on when it serves, not before.
fn tell_service_manager(state: NotifyState<'_>) {
    if let Err(error) = sd_notify::notify(&[state]) {
        warn!(%error, "systemd cannot be told how the service stands; it may end the service as one that never came up");
    }
}

/// An address that others can reach needs a way to tell them apart.
fn refuse_exposed(http: Option<SocketAddr>, bundle: &Bundle) -> Result<(), DaemonError> {
    let knows_nobody = bundle.credentials.is_empty() && bundle.oauth.is_none();
    let exposed = http.filter(|address| knows_nobody && !address.ip().is_loopback());
    exposed.map_or(Ok(()), |address| Err(DaemonError::Exposed(address)))
}

/// The folder of the bundle that was asked for.
fn given_bundle(options: &DaemonOptions) -> Result<Option<PathBuf>, DaemonError> {
    let given = options.bundle.as_deref().map(std::path::absolute).transpose();
    given.map_err(|source| DaemonError::Io { path: options.home.path().to_owned(), source })
}

/// What goes on beside the requests until the daemon stops.
fn tasks_of(gate: &Arc<Gate>, shared: Shared) -> [JoinHandle<()>; 4] {
    let looking = postconditions::keep_looking(Arc::clone(gate));
    let mcp = Arc::clone(&shared.mcp);
    let telling = webhooks::keep_telling(shared);
    let sweeping = async move { mcp.keep_sweeping().await };
    [
        tokio::spawn(tell_summaries(Arc::clone(gate))),
        tokio::spawn(telling),
        tokio::spawn(looking),
        tokio::spawn(sweeping),
    ]
}

/// The daemon's own sources of facts that ask the gate in turn.
struct OwnSources {
    judges: Arc<ContractSource>,
    engines: Arc<EngineSource>,
    models: Arc<CallModels>,
    work: WorkSource,
}

impl OwnSources {
    /// Adds the daemon's own sources, unless others of their names are there.
    fn join(extensions: &mut Extensions, home: &Home) -> Self {
        let judges = ContractSource::join(&mut extensions.sources);
        let engines = EngineSource::join(&mut extensions.sources);
        let models = CallModels::join(&mut extensions.sources);
        let (level, work) = (LevelSource::default(), WorkSource::new(Checks::new(home.forges())));
        let sources = std::mem::take(&mut extensions.sources);
        extensions.sources = sources.or_with(Arc::new(level)).or_with(Arc::new(work.clone()));
        Self { judges, engines, models, work }
    }

    fn answer_for(&self, gate: &Arc<Gate>) {
        self.judges.answer_for(gate);
        self.engines.answer_for(gate);
        self.models.answer_for(gate);
        self.work.answer_for(gate);
    }
}

/// Opens the store, unless it vanished or is older than its log.
fn open_store(home: &Home) -> Result<Arc<dyn Ledger>, DaemonError> {
    let (folder, marked, store) = (home.ledger(), home.store_mark(), home.store());
    mark::check_there(&marked, &folder)?;
    not_behind(check_standing(&store.log()))?;
    let ledger = store.open(OpenOptions::default())?;
    mark::make(&marked, &folder, ledger.origin())?;
    for closed in &ledger.recovery_report().recovered {
        info!(run = %closed.run, segment = %closed.segment, "closed as abandoned: its writer died");
    }
    Ok(ledger)
}

/// Reads what is frozen, before any run is opened, and tells it.
async fn tell_freezes(gate: &Gate) -> Result<(), DaemonError> {
    for freeze in gate.freezes().await.map_err(DaemonError::Freezes)? {
        warn!(scope = %freeze.scope, by = %freeze.frozen.by, since = %freeze.frozen.at, "a freeze is in force");
    }
    Ok(())
}

/// Takes the TCP address. Who connects before requests are served waits.
async fn bind(address: Option<SocketAddr>) -> Result<Option<(TcpListener, SocketAddr)>, DaemonError> {
    let Some(address) = address else { return Ok(None) };
    let failed = |source| DaemonError::Listen { address, source };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let own = listener.local_addr().map_err(failed)?;
    Ok(Some((listener, own)))
}

/// Serves on TCP, where the host and the origin of each request are checked.
fn serve_tcp(
    (listener, own): (TcpListener, SocketAddr),
    router: &Router,
    gate: &Arc<Gate>,
    stopped: watch::Receiver<bool>,
) -> JoinHandle<()> {
    info!(address = %own, "serving HTTP");
    let own = Own { address: own, gate: Arc::clone(gate) };
    let guarded: Router = router.clone().layer(middleware::from_fn_with_state(own, check_host_and_origin));
    tokio::spawn(connections::serve(connections::prompt(listener), guarded, connections::TCP, stopped))
}

/// Counts what is decided, where a console shows it.
fn tally(options: &DaemonOptions, extensions: &mut Extensions) -> Arc<Tally> {
    let tally = Arc::new(Tally::default());
    if options.console.is_some() {
        extensions.observers.push(Box::new(TallyObserver(Arc::clone(&tally))));
    }
    tally
}

/// Serves the console: the hand that ends its streams, and what serves.
fn serve_console(
    console: console::Listening,
    shared: &Shared,
    stopped: watch::Receiver<bool>,
) -> (watch::Sender<bool>, JoinHandle<()>) {
    let origin = console.console().origin.clone();
    let (listener, router, close) = console.router(shared.clone());
    info!(%origin, "serving the console; `portcullis console` prints a link that signs in");
    (
        close,
        tokio::spawn(connections::serve(connections::prompt(listener), router, connections::TCP, stopped)),
    )
}

/// The bundle that is given, which is the state folder's from now on; otherwise the one that was chosen for it.
fn bundles(options: &DaemonOptions, given: Option<&Path>) -> Result<Bundles, DaemonError> {
    let home = &options.home;
    if let Some(folder) = given {
        let bundles = Bundles::new(Some(folder.to_owned()), &options.shipped)?;
        // A choice that cannot be read is no reason to refuse another.
        match home_bundle::chosen(home) {
            Ok(Some(before)) if !home_bundle::is_same(&before, folder) => {
                warn!(before = %before.display(), now = %folder.display(), "another bundle serves this state folder");
            }
            _ => {}
        }
        home_bundle::choose(home, folder)?;
        return Ok(bundles);
    }
    let chosen = home_bundle::chosen(home)?;
    let is_chosen = chosen.is_some();
    Bundles::new(chosen, &options.shipped).map_err(|error| match is_chosen {
        true => DaemonError::Chosen { file: home.bundle(), error },
        false => DaemonError::Bundle(error),
    })
}

/// An old copy of a store is not written to. Whatever else keeps a log from going on holds up no run, and is told by its
/// own thread.
fn not_behind(standing: Result<(), LogError>) -> Result<(), LogError> {
    match standing {
        Err(error @ LogError::LedgerBehind { .. }) => Err(error),
        _ => Ok(()),
    }
}

/// Keeps the transparency log up with the store. What keeps it from going on is told, and holds up no run.
fn log_thread(places: LogPlaces, failed: watch::Sender<Option<String>>) -> Result<LogThread, LogError> {
    let told = move |result: Result<Round, &LogError>| {
        // What a log waits for is in its database, where the newest reason is.
        let lasting = result.as_ref().err().filter(|error| !matches!(error, LogError::Unconfirmed(_)));
        failed.send_replace(lasting.map(ToString::to_string));
        match result {
            Ok(round) => debug!(leaves = round.leaves, size = round.size, "logged"),
            Err(error) => warn!(%error, "runs continue without being anchored in the log"),
        }
    };
    LogThread::start(places, told, cosign::after_round())
}

/// Tells how far the summaries are that a store of an earlier release lacks, until it has them.
async fn tell_summaries(gate: Arc<Gate>) {
    let mut told = false;
    loop {
        match gate.ledger().summaries_computed() {
            None => {}
            Some(Ok(())) if told => return info!("the summaries of runs of earlier releases are computed"),
            Some(Ok(())) => return,
            Some(Err(error)) => {
                return warn!(
                    %error,
                    "the summaries of runs of earlier releases are not complete; lists of these runs stay slower until the next start, which tries again"
                );
            }
        }
        let gate = Arc::clone(&gate);
        if let Ok(Ok(runs)) = tokio::task::spawn_blocking(move || gate.ledger().summaries_due()).await {
            info!(
                runs,
                "computing the summaries of runs of earlier releases; until then lists of them are slower"
            );
        }
        told = true;
        tokio::time::sleep(DUE_EVERY).await;
    }
}

/// Reloads bundles and sweeps idle runs until a signal comes.
async fn keep_house(gate: &Arc<Gate>, mut signals: StopSignals) {
    let mut reload = tokio::time::interval(RELOAD_EVERY);
    let mut sweep = tokio::time::interval(SWEEP_EVERY);
    let mut complained = Vec::new();
    loop {
        tokio::select! {
            signal = signals.next() => {
                info!(%signal, "asked to end; all runs are closed");
                return;
            }
            _ = sweep.tick() => gate.close_idle(IDLE).await,
            _ = reload.tick() => {
                for NotReloaded { run, error, .. } in gate.reload(true).await {
                    warn!(%run, %error, "a run could not switch to the new bundle and continues with the old one");
                }
                let bundles = gate.bundles();
                let refusals: Vec<String> =
                    bundles.refusal().into_iter().chain(bundles.refusals_of_others()).collect();
                if refusals != complained {
                    for refusal in &refusals {
                        warn!("the current bundle stays in force: {refusal}");
                    }
                    complained = refusals;
                }
            }
        }
    }
}

/// Law 8: what a process of the same user could do is named at start-up, with the remedy.
fn warn_of_same_user(options: &DaemonOptions) {
    warn!(
        "any process of this user can read {} and approve with it, read the store, or end this process. Where \
         that matters, run the agent as another user; or map an approver in the bundle ([[credential]] kind = \
         \"approver\"), whose token this user cannot read: the one here then decides nothing",
        options.home.credentials().join("approver.token").display()
    );
}
