//! `portcullis mcp`: the gate in front of an MCP server.

use std::ffi::OsString;
use std::io::Write as _;
use std::time::Duration;

use anstream::ColorChoice;
use portcullis_core::id::RunId;
use portcullis_gateway::mcp::{self, GateError, GateOptions, RemoteServer, ServerAt};
use tracing_subscriber::filter::LevelFilter;

use crate::advice::AdvisedErrors;
use crate::bundle::{BundleArg, check_folder};
use crate::cli::Global;
use crate::commands::completions::run_ids;
use crate::daemon::runtime;
use crate::exit;
use crate::failure::Failure;

const USAGE: &str = "\
portcullis mcp [OPTIONS] -- <CMD>...
       portcullis mcp [OPTIONS] --url <URL>";

const EXAMPLES: &str = "\
Examples:
  portcullis mcp -- npx -y @modelcontextprotocol/server-filesystem /srv/files
  portcullis mcp --bundle my-bundle --policy \"Strict Compliance Policy\" \\
      -- my-server --flag
  portcullis mcp --url https://mcp.example.com/mcp
  portcullis mcp --contain project -- my-server
  portcullis mcp -- portcullis demo-server /tmp/workspace

Put it where the server's command stands in your client's configuration. The daemon is started when it is not \
running. Standard output belongs to the protocol; what the gate has to say goes to standard error.";

/// Put the gate in front of an MCP server
///
/// Starts the server, or speaks to one over HTTP with `--url`, and stands between it and the client on standard input
/// and output. Calls of tools are judged and recorded before they reach the server, and what the server says before it
/// reaches the client; messages that nothing is held against pass byte for byte.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, override_usage = USAGE)]
#[command(mut_arg("bundle", |bundle| bundle.help("Folder of the bundle of this run; if left out, the one that the daemon serves")))]
pub(crate) struct Args {
    #[command(flatten)]
    bundle: BundleArg,
    /// Name of the runtime policy; otherwise that of the credential or of the bundle
    #[arg(long, value_name = "NAME")]
    policy: Option<String>,
    /// The client session, by which several servers of one client share a run
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// The run that delegates work to the client's agent, which may do no more than that one
    #[arg(long, value_name = "RUN", add = run_ids())]
    parent: Option<RunId>,
    /// The server's name in the bundle, where that has it run contained; otherwise the name of its program
    #[arg(long, value_name = "NAME")]
    server: Option<String>,
    /// Run the server under this profile of the bundle
    #[arg(long, value_name = "PROFILE")]
    contain: Option<String>,
    /// The address of a server that speaks Streamable HTTP, in place of a command
    #[arg(long, value_name = "URL", value_parser = RemoteServer::new, conflicts_with_all = ["contain", "command"])]
    url: Option<RemoteServer>,
    /// Seconds for which the server behind `--url` may say nothing while it works on a request
    #[arg(long, value_name = "SECONDS", requires = "url", value_parser = clap::value_parser!(u32).range(1..))]
    timeout: Option<u32>,
    /// The server and its arguments
    #[arg(last = true, required_unless_present = "url", value_name = "CMD")]
    command: Vec<OsString>,
}

/// Has warnings written to standard error, which may be a terminal that is gone.
fn warn_on_stderr() {
    let ansi = anstream::AutoStream::choice(&std::io::stderr()) != ColorChoice::Never;
    let log = tracing_subscriber::fmt().with_writer(|| AdvisedErrors).with_ansi(ansi).with_target(false);
    log.with_max_level(LevelFilter::WARN).log_internal_errors(false).init();
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    warn_on_stderr();
    // Mistakes are shown with their places, here rather than as an answer of the daemon.
    args.bundle.folder().map_or(Ok(()), check_folder)?;
    let server_at = match args.url.clone() {
        None => ServerAt::Command(args.command.clone()),
        Some(mut server) => {
            server.patience =
                args.timeout.map_or(server.patience, |seconds| Duration::from_secs(seconds.into()));
            ServerAt::Address(server)
        }
    };
    let options = GateOptions {
        home: global.home()?,
        bundle: args.bundle.folder().map(ToOwned::to_owned),
        policy: args.policy.clone(),
        session: args.session.clone(),
        parent: args.parent,
        server_at,
        server: args.server.clone(),
        contain: args.contain.clone(),
        program: None,
    };
    let runtime = runtime()?;
    let ended = runtime.block_on(mcp::run(options));
    // A read of standard input may never return, and nobody waits for it any more.
    runtime.shutdown_background();
    match ended {
        Ok(ended) => {
            if let Some(signal) = ended.signal {
                // Standard error may be a terminal that is gone.
                let _unwritten = writeln!(std::io::stderr(), "portcullis: {signal}: run {} ended", ended.run);
            }
            Ok(exit::YES)
        }
        Err(error @ GateError::NoCommand) => Err(Failure::usage(error)),
        Err(error @ GateError::ServerEnded { .. }) => Err(Failure::no(error)),
        Err(error) => Err(Failure::unreadable(error)),
    }
}
