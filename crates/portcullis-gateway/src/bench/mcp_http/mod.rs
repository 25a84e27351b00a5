//! MCP over HTTP: what the gate adds to a call, what sessions cost that do nothing, what a server that stalls costs the
//! others, and what checking a token costs.
//!
//! The daemon is a process of its own, and so is `mcp --url`. The servers behind the gate are in a thread of the bench process,
//! and answer by script; the clients are in another one. So each call has the same two ends with the gate and without.

mod calls;
mod client;
mod stalled;
mod streams;
mod tokens;
mod upstream;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use portcullis_core::principal::CredentialKind;
use portcullis_session::workload;
use serde::Serialize;

use super::BenchError;
use super::daemon::Daemon;
pub use calls::McpCallTimes;
use client::At;
pub use stalled::McpStalled;
pub use streams::McpIdleStreams;
pub use tokens::McpTokens;
use tokens::{Keys, RESOURCE, SUBJECT};
use upstream::{Pace, Upstream};

/// Idle streams, by default.
pub const STREAMS: usize = 1_000;
/// The most of them: as many runs as a principal may have.
pub const STREAMS_MAX: usize = crate::mcp::endpoint::SESSIONS_OF_PRINCIPAL_MAX;

/// How to measure.
#[derive(Debug, Clone)]
pub struct McpHttpOptions {
    /// The program whose `serve` is the daemon, and whose `mcp --url` is measured.
    pub program: PathBuf,
    /// An existing empty folder, on the file system to measure. What is left in it is the caller's to remove.
    pub folder: PathBuf,
    /// How long each of the parts takes, but for the idle streams.
    pub time: Duration,
    /// Idle streams, at most [`STREAMS_MAX`].
    pub streams: usize,
}

/// What [`mcp_http`] found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct McpHttpReport {
    /// One call at a time.
    pub calls: McpCallTimes,
    /// Sessions that do nothing.
    pub idle: McpIdleStreams,
    /// Calls beside a server that stalls.
    pub stalled: McpStalled,
    /// Checking tokens.
    pub tokens: McpTokens,
}

/// Measures the daemon. Blocks; makes a runtime of its own.
///
/// # Errors
/// [`BenchError`].
pub fn mcp_http(options: &McpHttpOptions) -> Result<McpHttpReport, BenchError> {
    let keys = Keys::new()?;
    let upstream = Upstream::start(keys.published())?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(BenchError::io("start the clients"))?;
    // Each part has a daemon of its own, so that none has the memory or the runs of another.
    let start = |part: &str, files: &BTreeMap<String, Vec<u8>>| {
        let folder = options.folder.join(part);
        std::fs::create_dir(&folder).map_err(BenchError::io("make a folder"))?;
        let daemon = Daemon::start_with(&options.program, &folder, files, &["--http", "127.0.0.1:0"])?;
        runtime.block_on(daemon.wait())?;
        Ok::<_, BenchError>(daemon)
    };
    let one = bundle_files(&server("one", &upstream.url(Pace::AtOnce, "one")), &oauth(&upstream.issuer()));
    let daemon = start("calls", &one)?;
    let direct = At::new(&upstream.url(Pace::AtOnce, "one"), None)?;
    let (gate, url) = (at(&daemon, "/mcp")?, upstream.url(Pace::AtOnce, "one"));
    let ends = (&direct, &gate);
    let calls = runtime.block_on(calls::measure(&daemon, &options.program, ends, (&url, options.time)))?;
    let caller = at(&daemon, "/v1/caller")?;
    let issuer = upstream.issuer();
    let tokens = runtime.block_on(tokens::measure(&keys, &issuer, (&caller, options.time)))?;
    drop(daemon);

    let daemon = start("streams", &one)?;
    let streams = options.streams.min(STREAMS_MAX);
    let idle = runtime.block_on(streams::measure(&daemon, &at(&daemon, "/mcp")?, streams))?;
    drop(daemon);

    let daemon = start("stalled", &bundle_files(&five(upstream), ""))?;
    let stalled = runtime.block_on(stalled::measure(&at(&daemon, "/mcp")?, options.time))?;
    Ok(McpHttpReport { calls, idle, stalled, tokens })
}

/// A place of the daemon, for an agent.
fn at(daemon: &Daemon, path: &str) -> Result<At, BenchError> {
    let token = std::fs::read_to_string(daemon.home.token(CredentialKind::Agent));
    let token = token.map_err(BenchError::io("read the agent's token"))?;
    At::new(&format!("http://{}{path}", daemon.http()?), Some(token.trim().to_owned()))
}

/// The workload's bundle, with servers.
fn bundle_files(servers: &str, oauth: &str) -> BTreeMap<String, Vec<u8>> {
    let mut files = workload::bundle_files();
    if let Some(main) = files.get_mut("portcullis.toml") {
        main.extend_from_slice(servers.as_bytes());
        main.extend_from_slice(oauth.as_bytes());
    }
    files
}

fn server(name: &str, url: &str) -> String {
    format!("\n[server.{name}]\nurl = \"{url}\"\n")
}

/// Four servers that take their time, and one that never answers.
fn five(upstream: Upstream) -> String {
    let mut servers = String::new();
    let paces = stalled::PREFIXES.into_iter().map(|prefix| (prefix, Pace::Later));
    for (prefix, pace) in paces.chain([(stalled::STALLED_PREFIX, Pace::Never)]) {
        let name = prefix.trim_end_matches('_');
        let table = server(name, &upstream.url(pace, name));
        // Writing to a string does not fail.
        let _ = writeln!(servers, "{table}prefix = \"{prefix}\"");
    }
    servers
}

/// An issuer whose tokens are believed.
fn oauth(issuer: &str) -> String {
    format!(
        "\n[oauth]\nresource = '{RESOURCE}'\nscopes = ['mcp']\n[[oauth.issuer]]\nurl = '{issuer}'\n\
         [[oauth.subject]]\nissuer = '{issuer}'\nsubject = '{SUBJECT}'\nprincipal = 'ada'\n"
    )
}
