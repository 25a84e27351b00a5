//! A daemon that is started beside another one of the same state folder: it leaves, and says whether the other serves
//! what was asked for.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use portcullis_core::principal::CredentialKind;

use super::DaemonOptions;
use super::error::DaemonError;
use super::listen::Hold;
use crate::api::Health;
use crate::client::Client;
use crate::home::Home;
use crate::home_bundle;
use crate::state_file;

/// How often, and after which pause, a daemon that is just starting is looked at: for five seconds together.
const SETTLES_AFTER: u32 = 100;
const SETTLE: Duration = Duration::from_millis(50);
/// Longest file with the id of a process, in bytes.
const PID_BYTES_MAX: u64 = 64;

/// Takes hold of the state folder, unless another daemon has it.
pub(super) async fn take_hold(options: &DaemonOptions, given: Option<&Path>) -> Result<Hold, DaemonError> {
    match Hold::take(&options.home) {
        Err(already @ DaemonError::AlreadyRunning(_)) => {
            if let Some(other) = other_bundle(&options.home, given).await {
                return Err(other);
            }
            Err(other_address(options).await.unwrap_or(already))
        }
        hold => hold,
    }
}

/// What to say to anyone who wants to serve a state folder with another bundle than the daemon that holds it does.
async fn other_bundle(home: &Home, given: Option<&Path>) -> Option<DaemonError> {
    let given = given?;
    let mut serves = None;
    // A daemon that has only just got hold of the folder notes its bundle before it listens.
    for _ in 0..SETTLES_AFTER {
        serves = home_bundle::chosen(home).ok().flatten();
        if serves.as_deref().is_some_and(|serves| home_bundle::is_same(serves, given)) {
            return None;
        }
        if tokio::net::UnixStream::connect(home.socket()).await.is_ok() {
            break;
        }
        tokio::time::sleep(SETTLE).await;
    }
    Some(DaemonError::OtherBundle { home: home.path().to_owned(), serves, process: process(home) })
}

/// What to say to anyone who wants the daemon to listen where the one that holds the folder does not.
async fn other_address(options: &DaemonOptions) -> Option<DaemonError> {
    let (http, console) = (options.http, options.console.as_ref().map(|console| console.address));
    if http.is_none() && console.is_none() {
        return None;
    }
    let home = &options.home;
    // One that does not answer serves nothing.
    let listens = listens(home).await;
    let (has_http, has_console) =
        listens.as_ref().map_or((None, None), |health| (health.http.as_deref(), health.console.as_deref()));
    let lacks = |wanted: Option<SocketAddr>, has: Option<&str>| wanted.filter(|wanted| !is_at(*wanted, has));
    let missing = [(lacks(http, has_http), "HTTP"), (lacks(console, has_console), "the console")];
    let missing: Vec<String> = missing
        .iter()
        .filter_map(|(address, what)| address.map(|address| format!("{what} on {address}")))
        .collect();
    if missing.is_empty() {
        return None;
    }
    let there = [(has_http, "HTTP"), (has_console, "the console")];
    Some(DaemonError::OtherAddress {
        home: home.path().to_owned(),
        wanted: missing.join(" or "),
        listens: there
            .iter()
            .filter_map(|(address, what)| address.map(|address| format!("{what} on {address}")))
            .collect(),
        process: process(home),
    })
}

/// Whether a daemon listens where it is wanted; port 0 is any.
fn is_at(wanted: SocketAddr, has: Option<&str>) -> bool {
    let has = has.and_then(|has| has.parse::<SocketAddr>().ok());
    has.is_some_and(|has| has == wanted || (wanted.port() == 0 && has.ip() == wanted.ip()))
}

/// What the daemon that holds the folder says of itself, once it listens.
async fn listens(home: &Home) -> Option<Health> {
    let client = Client::new(home.clone(), CredentialKind::Agent);
    for _ in 0..SETTLES_AFTER {
        match client.health().await {
            Ok(health) => return Some(health),
            Err(error) if error.calls_for_starting() => tokio::time::sleep(SETTLE).await,
            Err(_) => return None,
        }
    }
    None
}

/// The process of the daemon that holds the folder, as it wrote it down.
fn process(home: &Home) -> String {
    let process = state_file::read(&home.pid(), PID_BYTES_MAX).unwrap_or_default();
    let process = process.trim();
    let is_one = !process.is_empty() && process.bytes().all(|byte| byte.is_ascii_digit());
    if is_one { process.to_owned() } else { "?".to_owned() }
}
