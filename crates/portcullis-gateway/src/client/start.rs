//! Starting the daemon if none listens.
//!
//! Several shims may find no daemon at the same moment and each start one. The daemons settle it among themselves:
//! one gets the lock of the state folder, the others exit quietly. So a daemon that exits with 0 says nothing about
//! whether one is running, and the only proof is an answer on the socket.

use std::fs::{self, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use portcullis_core::principal::CredentialKind;
use tokio::net::UnixStream;
use tokio::process::{Child, Command};
use tokio::time::sleep;

use super::{Client, ClientError};
use crate::home::Home;

/// How long a daemon may take to answer its first request.
const START_MAX: Duration = Duration::from_secs(10);
/// How often to ask.
const POLL: Duration = Duration::from_millis(25);
/// How long to wait for the holder of the lock if ours did not get it, before starting another.
const LOSER_PATIENCE: Duration = Duration::from_millis(500);
/// Size from which the log is put aside (`daemon.log.1`) before a start, in bytes.
const LOG_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// What is quoted from the end of the log: at most so many lines and bytes.
const LOG_TAIL_LINES: usize = 10;
const LOG_TAIL_BYTES: u64 = 4 * 1024;

/// How to start a daemon, and whom to talk to it as.
#[derive(Debug, Clone)]
pub struct StartOptions {
    /// The bundle of a daemon that is started for the first time. One that runs keeps its own, and one that is started
    /// again takes what was chosen for its state folder.
    pub bundle: Option<PathBuf>,
    /// The program; none: the one that is running.
    pub program: Option<PathBuf>,
    /// The credential of the client.
    pub credential: CredentialKind,
}

impl Default for StartOptions {
    fn default() -> Self {
        Self { bundle: None, program: None, credential: CredentialKind::Agent }
    }
}

/// A client of the daemon of `home`, which is started where it does not run: detached from this process and
/// its terminal, saying what it says to the log of the folder.
///
/// # Errors
/// [`ClientError`]: the daemon cannot be started, refuses the credential, or does not answer within 10 s, with
/// the end of its log.
pub async fn ensure_daemon(home: &Home, options: &StartOptions) -> Result<Client, ClientError> {
    let client = Client::new(home.clone(), options.credential);
    match client.health().await {
        Ok(_) => return Ok(client),
        Err(ClientError::Credential { .. }) if UnixStream::connect(home.socket()).await.is_ok() => {
            // A daemon has made its tokens before it listens; another would not be the one that knows them.
            return match client.health().await {
                Err(ClientError::Credential { path, why }) => Err(ClientError::CredentialGone { path, why }),
                answered => answered.map(|_| client),
            };
        }
        Err(error) if error.calls_for_starting() => {}
        Err(error) => return Err(error),
    }
    let deadline = Instant::now() + START_MAX;
    loop {
        let Spawned { mut child, log_from } = spawn(home, options)?;
        match until_up(&client, &mut child, deadline).await? {
            Waited::Up => return Ok(client),
            Waited::Lost => {}
            Waited::Down(why) => {
                let log = home.log();
                let tail =
                    tail(&log, log_from).unwrap_or_else(|error| format!("(the log cannot be read: {error})"));
                return Err(ClientError::NotUp { why, log, tail });
            }
        }
    }
}

/// A daemon that was started.
struct Spawned {
    child: Child,
    /// Length of the log before, in bytes: what stands there is about earlier starts.
    log_from: u64,
}

enum Waited {
    Up,
    /// Ours did not get the lock, and its holder is gone.
    Lost,
    Down(String),
}

async fn until_up(client: &Client, child: &mut Child, deadline: Instant) -> Result<Waited, ClientError> {
    let mut lost_since = None;
    loop {
        let error = match client.health().await {
            Ok(_) => return Ok(Waited::Up),
            Err(error) if error.calls_for_starting() => error,
            Err(error) => return Err(error),
        };
        if Instant::now() > deadline {
            return Ok(Waited::Down(format!("no answer within {} s ({error})", START_MAX.as_secs())));
        }
        if let Ok(Some(status)) = child.try_wait() {
            if !status.success() {
                // Of several that start at once one serves, and the others may leave for want of the same bundle.
                if client.health().await.is_ok() {
                    return Ok(Waited::Up);
                }
                return Ok(Waited::Down(format!("it exited with {status}")));
            }
            let since = *lost_since.get_or_insert_with(Instant::now);
            if since.elapsed() > LOSER_PATIENCE {
                return Ok(Waited::Lost);
            }
        }
        sleep(POLL).await;
    }
}

fn spawn(home: &Home, options: &StartOptions) -> Result<Spawned, ClientError> {
    let file = |path: &Path| {
        let path = path.to_owned();
        move |source| ClientError::File { path, source }
    };
    create_private(home.path()).map_err(file(home.path()))?;
    let program = match &options.program {
        Some(program) => program.clone(),
        None => std::env::current_exe()
            .map_err(|source| ClientError::Start { program: PathBuf::from("portcullis"), source })?,
    };
    let log = home.log();
    if fs::metadata(&log).is_ok_and(|meta| meta.len() > LOG_BYTES_MAX) {
        fs::rename(&log, log.with_extension("log.1")).map_err(file(&log))?;
    }
    let output = OpenOptions::new().create(true).append(true).open(&log).map_err(file(&log))?;
    let log_from = output.metadata().map_err(file(&log))?.len();
    let errors = output.try_clone().map_err(file(&log))?;
    let mut command = Command::new(&program);
    command.arg("serve").arg("--home").arg(home.path());
    if let Some(bundle) = options.bundle.as_ref().filter(|_| !home.bundle().exists()) {
        command.arg("--bundle").arg(std::path::absolute(bundle).map_err(file(bundle))?);
    }
    // A group of its own: an interrupt from the terminal ends the shim, not the daemon of all shims. The
    // folder is its current one, so that it keeps no other from being unmounted.
    command.current_dir(home.path()).process_group(0);
    command.stdin(Stdio::null()).stdout(output).stderr(errors).kill_on_drop(false);
    let child = command.spawn().map_err(|source| ClientError::Start { program, source })?;
    Ok(Spawned { child, log_from })
}

fn create_private(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// The end of what the log says from a place on; all of it where the log was put aside since.
fn tail(log: &Path, from: u64) -> io::Result<String> {
    let mut file = fs::File::open(log)?;
    let length = file.metadata()?.len();
    let from = if from > length { 0 } else { from };
    file.seek(SeekFrom::Start(from.max(length.saturating_sub(LOG_TAIL_BYTES))))?;
    let mut bytes = Vec::new();
    file.take(LOG_TAIL_BYTES).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    let from = lines.len().saturating_sub(LOG_TAIL_LINES);
    Ok(lines.get(from..).unwrap_or_default().join("\n"))
}
