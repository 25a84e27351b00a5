//! `portcullis mcp`: the gate in front of an MCP server, which it starts, or which is behind an address.
//!
//! ```text
//! client --stdin--> upstream:   a call is proposed to the daemon; with a permit, the line goes on --> server
//! client <--stdout- downstream: a result is recorded and judged; then the line goes on            <-- server
//! ```
//!
//! The gate is a pipe with a conscience. It never writes a message again: what it lets through is the line that
//! came, byte for byte, with fields and methods it has never heard of. Three things it takes apart: calls of
//! tools, their results, and lists of tools. Of all else that the server says it reads the text. What could be taken
//! for one of these by another reader, but not with certainty by this one, is refused.
//!
//! Read in this order: `upstream` (the decision), `downstream` (the result), `listing` (what the server says of
//! itself), `calls` (what belongs to what).

mod answers;
mod asking;
mod calls;
mod contained;
mod downstream;
pub(crate) mod endpoint;
mod gate;
mod gated_run;
mod held;
mod kept;
mod listing;
mod remote;
mod session_key;
mod stdin;
#[cfg(test)]
mod tests;
mod to_server;
mod translation;
mod unasked;
mod upstream;
mod work_items;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use portcullis_core::id::RunId;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;
use tokio::time::timeout;

pub use calls::{CANCELLED_MAX, OPEN_CALLS_MAX, OPEN_REQUESTS_MAX, TASKS_MAX};
pub use remote::{PATIENCE, RemoteServer};
pub use session_key::SESSION_VARIABLE;
pub use upstream::ID_BYTES_MAX;
pub use work_items::{WorkServer, WorkServerError, serve_work};

use crate::api::OpenRun;
use crate::client::{ClientError, Run, StartOptions};
use crate::home::Home;
use crate::signals::{StopSignal, StopSignals};
use contained::Confined;
use gate::{Gate, LineWriter};
use gated_run::GatedRun;
pub use gated_run::GatedRunError;
use portcullis_wire::mcp::translate::Unmatched;
use remote::Remote;
pub(crate) use remote::request::stateless_version;
use to_server::ToServer;
use upstream::Gone;

/// How long calls that are being judged may take when the client has no more to say.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// How long the server may take to end once its input is closed.
const SERVER_ENDS_MAX: Duration = Duration::from_secs(5);
/// How long a signal may come after the server has gone: Ctrl-C and the end of a terminal reach both, and the server may
/// be the first to end.
const SIGNAL_AFTER: Duration = Duration::from_millis(200);
/// How long results may take to be recorded at the end.
const SETTLE_MAX: Duration = Duration::from_secs(10);

/// What to put the gate in front of, and under which rules.
#[derive(Debug, Clone)]
pub struct GateOptions {
    /// The state folder.
    pub home: Home,
    /// The bundle's folder; none: the daemon's own.
    pub bundle: Option<PathBuf>,
    /// Name of the runtime policy; none: the credential's or the bundle's.
    pub policy: Option<String>,
    /// The client session; none: [`SESSION_VARIABLE`], else the process that started this one.
    pub session: Option<String>,
    /// The run that delegates work to the client's agent.
    pub parent: Option<RunId>,
    /// The server.
    pub server_at: ServerAt,
    /// The server's name in the bundle; none: the name of its program.
    pub server: Option<String>,
    /// A profile of the bundle that the server is to run under; none: what the bundle says of a server of that name.
    pub contain: Option<String>,
    /// The program that serves as daemon, and runs the server where that is contained; none: the one that is running.
    pub program: Option<PathBuf>,
}

/// Where a server is.
#[derive(Debug, Clone)]
pub enum ServerAt {
    /// The gate starts it: its program and arguments.
    Command(Vec<OsString>),
    /// It is behind an address.
    Address(RemoteServer),
}

impl ServerAt {
    /// Which server it is, across runs: the command line, or the address.
    fn known_as(&self) -> String {
        match self {
            Self::Command(command) => {
                let parts: Vec<_> = command.iter().map(|part| part.to_string_lossy()).collect();
                parts.join(" ")
            }
            Self::Address(server) => server.known_as(),
        }
    }

    /// What it is called until it introduces itself: its program without the folder, or the host.
    fn name(&self) -> String {
        match self {
            Self::Command(command) => {
                let program = command.first().map(Path::new);
                let name = program.map(|program| program.file_name().unwrap_or(program.as_os_str()));
                name.unwrap_or_default().to_string_lossy().into_owned()
            }
            Self::Address(server) => server.host().to_owned(),
        }
    }
}

/// Why the gate did not open, or ended otherwise than by its client.
#[derive(Debug, thiserror::Error)]
pub enum GateError {
    /// No server is named.
    #[error("name the server's command after `--`, or its address with `--url`")]
    NoCommand,
    /// The bundle's folder cannot be found.
    #[error("cannot find the bundle `{}`: {source}", path.display())]
    Bundle {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// There is no run, so there is no server either.
    #[error("the gate stays shut, and `{server}` was not started: {source}")]
    Run {
        /// The server.
        server: String,
        /// Why.
        source: ClientError,
    },
    /// The server cannot be started.
    #[error("cannot start the server `{server}`: {source}{}", hint(server))]
    Spawn {
        /// Its program.
        server: String,
        /// Why.
        source: io::Error,
    },
    /// The server cannot run under its profile.
    #[error("the server was not started: its profile `{profile}` is not available here: {why}")]
    Contain {
        /// The profile.
        profile: String,
        /// Why.
        why: String,
    },
    /// The server cannot be spoken to.
    #[error("cannot speak to the server `{server}`: {why}")]
    Unreachable {
        /// The server.
        server: String,
        /// Why.
        why: String,
    },
    /// Signals cannot be received.
    #[error("cannot listen for signals: {0}")]
    Signals(#[source] io::Error),
    /// The server ended while its client was there.
    #[error(
        "the server `{server}` ended by itself ({how}); what it was working on was answered with an error"
    )]
    ServerEnded {
        /// The server.
        server: String,
        /// Its exit status.
        how: String,
    },
    /// The run could not be closed in good order.
    #[error("the run could not be closed in good order: {0}")]
    Close(#[source] GatedRunError),
}

/// What may help someone whose program cannot be started.
pub(crate) fn hint(program: &str) -> &'static str {
    match program.contains("://") {
        true => "; a server at an address is named with `--url`",
        false => "",
    }
}

/// A session that ended normally.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// Its run, which is closed unless other gates of the session are in it.
    pub run: RunId,
    /// What ended it; `None` if the client did.
    pub signal: Option<StopSignal>,
}

/// A client, and what has the gate end before the client does.
#[derive(Debug)]
pub struct ClientEnds<R, W, S> {
    /// What the client says.
    pub input: R,
    /// What is said to it.
    pub output: W,
    /// Ends the gate in good order.
    pub stop: S,
}

/// Relays between the server and a client on standard input and output, until either goes away or a signal arrives. The
/// process should exit afterwards, without waiting for standard input.
///
/// # Errors
/// [`GateError`]. The server is not started unless the run is open.
pub async fn run(options: GateOptions) -> Result<Ended, GateError> {
    // Before anything is started that a signal should end in good order.
    let mut signals = StopSignals::listen().map_err(GateError::Signals)?;
    let client = ClientEnds { input: stdin::reader(), output: tokio::io::stdout(), stop: signals.next() };
    relay(options, client).await
}

/// Opens a run, starts the server or prepares to speak to it, and relays between it and the client until either goes away
/// or the gate is stopped.
///
/// # Errors
/// [`GateError`]. The server is not started unless the run is open.
pub async fn relay<R, W, S>(options: GateOptions, client: ClientEnds<R, W, S>) -> Result<Ended, GateError>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
    S: Future<Output = StopSignal>,
{
    if matches!(&options.server_at, ServerAt::Command(command) if command.is_empty()) {
        return Err(GateError::NoCommand);
    }
    let run = open_run(&options).await?;
    match &options.server_at {
        ServerAt::Command(command) => in_front_of_command(&options, command, run, client).await,
        ServerAt::Address(server) => in_front_of_address(&options, server, run, client).await,
    }
}

async fn in_front_of_command<R, W, S>(
    options: &GateOptions,
    command: &[OsString],
    run: Run,
    client: ClientEnds<R, W, S>,
) -> Result<Ended, GateError>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
    S: Future<Output = StopSignal>,
{
    let (server, known_as) = (options.server_at.name(), options.server_at.known_as());
    let opened = run.opened();
    let confined =
        match opened.server.as_ref().map(|contain| Confined::new(contain, options.program.as_deref())) {
            None => None,
            Some(Ok(confined)) => Some(confined),
            Some(Err(error)) => {
                close(&GatedRun::Socket(run)).await?;
                return Err(error);
            }
        };
    let (mut child, input, output) = match start(command, confined.as_ref(), &[]) {
        Ok(started) => started,
        Err(source) => {
            close(&GatedRun::Socket(run)).await?;
            let server = command.first().map_or(server, |program| program.to_string_lossy().into_owned());
            return Err(GateError::Spawn { server, source });
        }
    };
    // A server that says it is one of these, and does not run contained, is another than was meant.
    let uncontained = if confined.is_some() { Vec::new() } else { opened.contained_servers };
    let to_client = LineWriter::new(client.output);
    let run = GatedRun::Socket(run);
    let to_server = ToServer::new(LineWriter::new(input), Unmatched::Refuse);
    let gate = Gate::new(run, known_as.clone(), server.clone(), to_client, to_server, uncontained);
    let gate = Arc::new(gate);
    let heard = upstream::pump(&gate, client.input);
    let ended = conduct(&gate, heard, output, client.stop, &mut child, &server).await;
    if let Some(confined) = &confined {
        confined.report(&gate.run, &known_as).await;
    }
    end(&gate, ended).await
}

async fn in_front_of_address<R, W, S>(
    options: &GateOptions,
    server: &RemoteServer,
    run: Run,
    client: ClientEnds<R, W, S>,
) -> Result<Ended, GateError>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
    S: Future<Output = StopSignal>,
{
    let (name, known_as) = (options.server_at.name(), options.server_at.known_as());
    let pipe = remote::pipe();
    let to_client = LineWriter::new(client.output);
    let uncontained = run.opened().contained_servers;
    let run = GatedRun::Socket(run);
    let to_server = ToServer::new(LineWriter::new(pipe.input), Unmatched::Refuse);
    let gate = Gate::new(run, known_as, name.clone(), to_client, to_server, uncontained);
    let gate = Arc::new(gate);
    let called = options.server.as_deref().unwrap_or(&name);
    let started = Remote::start(server, (&options.home, called), Arc::clone(&gate), pipe.far);
    let mut remote = match started {
        Ok(remote) => remote,
        Err(why) => {
            close(&gate.run).await?;
            return Err(GateError::Unreachable { server: name, why });
        }
    };
    let heard = upstream::pump(&gate, client.input);
    let ended = conduct(&gate, heard, pipe.output, client.stop, &mut remote, &name).await;
    end(&gate, ended).await
}

/// Closes the run.
async fn end(gate: &Gate, ended: Result<Option<StopSignal>, GateError>) -> Result<Ended, GateError> {
    let closed = close(&gate.run).await;
    let signal = ended?;
    closed.map(|()| Ended { run: gate.run.id(), signal })
}

/// Starts a server, under its profile where it has one, and without some variables of the environment.
fn start(
    command: &[OsString],
    confined: Option<&Confined>,
    without: &[&str],
) -> io::Result<(Child, ChildStdin, ChildStdout)> {
    let mut starting = match (confined, command) {
        (Some(confined), _) => {
            let mut starting = Command::new(confined.program());
            starting.args(confined.arguments(command));
            starting
        }
        (None, [program, arguments @ ..]) => {
            let mut starting = Command::new(program);
            starting.args(arguments);
            starting
        }
        (None, []) => return Err(io::ErrorKind::InvalidInput.into()),
    };
    without.iter().for_each(|variable| {
        starting.env_remove(variable);
    });
    let mut child = starting
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .kill_on_drop(true)
        .spawn()?;
    match (child.stdin.take(), child.stdout.take()) {
        (Some(input), Some(output)) => Ok((child, input, output)),
        _ => Err(io::Error::other("it has no standard input or output")),
    }
}

async fn close(run: &GatedRun) -> Result<(), GateError> {
    run.close().await.map_err(GateError::Close)
}

async fn open_run(options: &GateOptions) -> Result<Run, GateError> {
    let server = options.server_at.name();
    let bundle = match &options.bundle {
        None => None,
        Some(path) => {
            let failed = |source| GateError::Bundle { path: path.clone(), source };
            Some(std::fs::canonicalize(path).map_err(failed)?)
        }
    };
    let open = OpenRun {
        surface: "mcp".to_owned(),
        session: session_key::session_key(options.session.clone()),
        policy: options.policy.clone(),
        bundle: bundle.as_ref().map(|path| path.to_string_lossy().into_owned()),
        client: Some(match &options.server_at {
            ServerAt::Command(_) => format!("portcullis mcp -- {server}"),
            ServerAt::Address(_) => format!("portcullis mcp --url {server}"),
        }),
        parent: options.parent,
        server: Some(options.server_at.known_as()),
        server_name: Some(options.server.clone().unwrap_or_else(|| server.clone())),
        server_profile: options.contain.clone(),
        server_place: Some(contained::place()),
        ..OpenRun::default()
    };
    let start = StartOptions { bundle, program: options.program.clone(), ..StartOptions::default() };
    let run = Run::open(&options.home, start, open).await;
    run.map_err(|source| GateError::Run { server, source })
}

/// The server's process, or what stands for it in a test.
trait Process {
    /// Waits until it has ended.
    async fn ended(&mut self) -> String;
    /// Ends it.
    async fn kill(&mut self);
}

impl Process for Child {
    async fn ended(&mut self) -> String {
        self.wait().await.map_or_else(|error| error.to_string(), |status: ExitStatus| status.to_string())
    }

    async fn kill(&mut self) {
        if let Err(error) = Child::kill(self).await {
            tracing::warn!("the server could not be killed: {error}");
        }
    }
}

/// From the first message to the last.
async fn conduct<S>(
    gate: &Arc<Gate>,
    client: impl Future<Output = Gone>,
    output: impl AsyncRead + Unpin + Send + 'static,
    stop: impl Future<Output = S>,
    server: &mut impl Process,
    name: &str,
) -> Result<Option<S>, GateError> {
    let shared = Arc::clone(gate);
    let mut downstream = tokio::spawn(async move { downstream::pump(&shared, output).await });
    let mut stop = std::pin::pin!(stop);
    let (gone, mut signal) = tokio::select! {
        gone = client => (gone, None),
        _ = &mut downstream => (Gone::Server, None),
        signal = &mut stop => (Gone::Client, Some(signal)),
    };
    if gone == Gone::Server {
        signal = timeout(SIGNAL_AFTER, stop).await.ok();
    }
    if gone == Gone::Server && signal.is_none() {
        let how = Box::pin(server_ends(gate, &mut downstream, server)).await;
        let why = format!("the server `{name}` ended by itself ({how})");
        Box::pin(gate.abandon(Some(&why))).await;
        return Err(GateError::ServerEnded { server: name.to_owned(), how });
    }
    // Calls that are being judged at this moment may still go ahead, held ones not: nobody waits for them.
    let _ = timeout(LAST_WORDS, gate.calls.all_judged()).await;
    Box::pin(server_ends(gate, &mut downstream, server)).await;
    Box::pin(gate.abandon(None)).await;
    Ok(signal)
}

/// Ends the server, takes what it has left to say, and finishes what that began. Returns how it ended.
async fn server_ends(gate: &Arc<Gate>, downstream: &mut JoinHandle<()>, server: &mut impl Process) -> String {
    let ends = async {
        gate.to_server.close().await;
        if !downstream.is_finished() {
            let _ = (&mut *downstream).await;
        }
        server.ended().await
    };
    let how = match timeout(SERVER_ENDS_MAX, ends).await {
        Ok(how) => how,
        Err(_) => {
            server.kill().await;
            format!("it did not end within {} s and was killed", SERVER_ENDS_MAX.as_secs())
        }
    };
    downstream.abort();
    gate.calls.give_up_waiting();
    gate.settle(SETTLE_MAX).await;
    how
}
