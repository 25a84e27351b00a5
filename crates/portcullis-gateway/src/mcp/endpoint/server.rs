//! One server of a client of the endpoint, behind a gate of its own.

use std::ffi::OsString;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use portcullis_core::bundle::{McpServer, McpServerAt};
use portcullis_core::event::Place;
use portcullis_session::credentials::Identity;
use portcullis_session::gate::Gate as Runs;
use portcullis_session::surface::Local;
use portcullis_wire::mcp::translate::Unmatched;
use tokio::sync::{mpsc, oneshot};

use super::owner::Owner;
use super::standing::Standing;
use super::{GateError, OpenError};
use crate::api::OpenRun;
use crate::home::{APPROVER_TOKEN_VARIABLE, Home};
use crate::mcp::contained::Confined;
use crate::mcp::gate::{Gate, LineWriter};
use crate::mcp::gated_run::{GatedRun, InsideRun};
use crate::mcp::remote::request::RepeatedArguments;
use crate::mcp::remote::{self, Remote, RemoteServer};
use crate::mcp::to_server::ToServer;
use crate::mcp::{ServerAt, close, conduct, start};

/// A server that a client speaks to.
#[derive(Debug)]
pub(super) struct Server {
    /// Its name in the bundle.
    pub(super) name: String,
    /// What its tools' names begin with; empty where it is alone.
    pub(super) prefix: String,
    pub(super) gate: Arc<Gate>,
    /// Arguments of its tools that headers repeat.
    pub(super) arguments: RepeatedArguments,
    alive: Arc<AtomicBool>,
    ending: Mutex<Option<oneshot::Sender<()>>>,
}

/// What a server is started for.
pub(super) struct For<'f> {
    pub(super) home: &'f Home,
    pub(super) local: &'f Local,
    pub(super) runs: &'f Arc<Runs>,
    pub(super) identity: &'f Identity,
    pub(super) owner: &'f Owner,
    /// The session by which the client's servers share a run.
    pub(super) session: &'f str,
    pub(super) lines: &'f mpsc::Sender<(usize, Vec<u8>)>,
    /// What becomes of what a server offers that the client's generation has no counterpart for.
    pub(super) unmatched: Unmatched,
    /// Where it is noted that the server has ended by itself.
    pub(super) standing: &'f Arc<Standing>,
}

impl Server {
    /// Opens or joins the client's run and starts the server.
    pub(super) async fn start(
        of: &For<'_>,
        index: usize,
        name: &str,
        server: &McpServer,
        prefix: String,
    ) -> Result<Self, OpenError> {
        let failed = |why: String| OpenError::Server { name: name.to_owned(), why };
        let at = server_at(server).map_err(failed)?;
        let known_as = at.known_as();
        let opened = of
            .local
            .open(
                of.identity.clone(),
                OpenRun {
                    surface: "mcp".to_owned(),
                    session: Some(of.session.to_owned()),
                    client: Some(format!("/mcp, server {name}")),
                    server: Some(known_as.clone()),
                    server_name: Some(name.to_owned()),
                    server_place: Some(Place::default()),
                    ..OpenRun::default()
                },
            )
            .await?;
        let run = of.local.run(of.identity, opened.run).map_err(|error| OpenError::Run(error.into()))?;
        if !of.owner.opened(run.clone().run().principal()) {
            return Err(OpenError::OtherRoles);
        }
        let attachment = of.runs.attach_inside(opened.run).map_err(|error| OpenError::Run(error.into()))?;
        let run = GatedRun::Inside(InsideRun {
            run,
            _attachment: attachment,
            disabled_tools: opened.disabled_tools,
        });
        let confined = opened.server.as_ref().map(|contain| Confined::new(contain, None)).transpose();
        let confined = match confined {
            Ok(confined) => confined,
            Err(error) => {
                let _ = close(&run).await;
                return Err(failed(error.to_string()));
            }
        };
        let uncontained = if confined.is_some() { Vec::new() } else { opened.contained_servers };
        let to_client = LineWriter::channel(of.lines.clone(), index);
        let made = |run, to_server| {
            let to_server = ToServer::new(to_server, of.unmatched);
            Arc::new(Gate::new(run, known_as.clone(), name.to_owned(), to_client, to_server, uncontained))
        };
        let (alive, (end, ended)) = (Arc::new(AtomicBool::new(true)), oneshot::channel());
        let noted = Noted { standing: Arc::clone(of.standing), name: name.to_owned() };
        let gate = match at {
            ServerAt::Command(command) => {
                command_server(run, &command, confined, made, (&alive, ended, noted)).await
            }
            ServerAt::Address(address) => {
                address_server(run, (&address, of.home, name), made, (&alive, ended, noted)).await
            }
        };
        Ok(Self {
            name: name.to_owned(),
            prefix,
            gate: gate.map_err(failed)?,
            arguments: RepeatedArguments::default(),
            alive,
            ending: Mutex::new(Some(end)),
        })
    }

    /// Whether it can still be spoken to.
    pub(super) fn is_alive(&self) -> bool {
        self.alive.load(Ordering::SeqCst)
    }

    /// Has it left.
    pub(super) fn end(&self) {
        drop(self.ending.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}

type Ending<'e> = (&'e Arc<AtomicBool>, oneshot::Receiver<()>, Noted);

/// Where it is noted what becomes of a server.
struct Noted {
    standing: Arc<Standing>,
    name: String,
}

async fn command_server(
    run: GatedRun,
    command: &[OsString],
    confined: Option<Confined>,
    made: impl FnOnce(GatedRun, LineWriter) -> Arc<Gate>,
    (alive, ended, noted): Ending<'_>,
) -> Result<Arc<Gate>, String> {
    let started = start(command, confined.as_ref(), &[APPROVER_TOKEN_VARIABLE]);
    let (mut child, input, output) = match started {
        Ok(started) => started,
        Err(error) => {
            let _ = close(&run).await;
            let program = command.first().map(|program| program.to_string_lossy()).unwrap_or_default();
            return Err(format!("`{program}` cannot be started: {error}"));
        }
    };
    let gate = made(run, LineWriter::new(input));
    let (shared, alive) = (Arc::clone(&gate), Arc::clone(alive));
    tokio::spawn(async move {
        let name = shared.server_name();
        let told = conduct(&shared, std::future::pending(), output, left(ended), &mut child, &name).await;
        alive.store(false, Ordering::SeqCst);
        if let Some(confined) = &confined {
            confined.report(&shared.run, shared.command()).await;
        }
        Box::pin(finish(&shared, told.map(drop), &noted)).await;
    });
    Ok(gate)
}

async fn address_server(
    run: GatedRun,
    (address, home, name): (&RemoteServer, &Home, &str),
    made: impl FnOnce(GatedRun, LineWriter) -> Arc<Gate>,
    (alive, ended, noted): Ending<'_>,
) -> Result<Arc<Gate>, String> {
    let pipe = remote::pipe();
    let gate = made(run, LineWriter::new(pipe.input));
    let mut remote = match Remote::start(address, (home, name), Arc::clone(&gate), pipe.far) {
        Ok(remote) => remote,
        Err(why) => {
            let _ = close(&gate.run).await;
            return Err(why);
        }
    };
    let (shared, alive) = (Arc::clone(&gate), Arc::clone(alive));
    tokio::spawn(async move {
        let name = shared.server_name();
        let told =
            conduct(&shared, std::future::pending(), pipe.output, left(ended), &mut remote, &name).await;
        alive.store(false, Ordering::SeqCst);
        Box::pin(finish(&shared, told.map(drop), &noted)).await;
    });
    Ok(gate)
}

/// Resolves when the client has gone.
async fn left(ended: oneshot::Receiver<()>) {
    let _ = ended.await;
}

async fn finish(gate: &Gate, told: Result<(), GateError>, noted: &Noted) {
    match told {
        Ok(()) => {}
        Err(GateError::ServerEnded { how, .. }) => {
            noted.standing.is_amiss(&noted.name, &format!("ended by itself ({how})"));
        }
        Err(error) => tracing::warn!("{error}"),
    }
    if let Err(error) = close(&gate.run).await {
        tracing::debug!("{error}");
    }
}

fn server_at(server: &McpServer) -> Result<ServerAt, String> {
    Ok(match &server.at {
        McpServerAt::Command(command) => ServerAt::Command(command.iter().map(OsString::from).collect()),
        McpServerAt::Address(url) => {
            let mut address = RemoteServer::new(url)?;
            if let Some(seconds) = server.silent_s {
                address.patience = Duration::from_secs(seconds.into());
            }
            ServerAt::Address(address)
        }
    })
}
