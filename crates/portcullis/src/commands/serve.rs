//! `portcullis serve`: the daemon.

use std::net::SocketAddr;
use std::path::PathBuf;

use anstream::ColorChoice;
use portcullis_gateway::daemon::{self, ConsoleAt, DaemonError, DaemonOptions};
use portcullis_session::shipped;
use tracing::info;

use crate::bundle::{self, BundleArg};
use crate::cli::Global;
use crate::commands::governance::controls_refused;
use crate::daemon::runtime;
use crate::exit;
use crate::failure::Failure;

/// Where the console is served unless told otherwise.
const CONSOLE: &str = "127.0.0.1:7413";

const EXAMPLES: &str = "\
Examples:
  portcullis serve
  portcullis serve --console
  portcullis serve --bundle my-bundle --controls my-controls
  portcullis serve --home /srv/portcullis --http 127.0.0.1:7777

`portcullis mcp`, `approvals` and `runs` start it when it is not running. It ends in good order on SIGTERM or \
SIGINT. The bundle that is named with --bundle is the state folder's from then on, whoever starts the daemon; the file \
`bundle.path` in it names it, and without the file the shipped bundle is served. A second daemon for the same state folder \
leaves at once: with exit code 0 where the folder is served as asked, with 1 where another bundle is, or where --http \
or --console names an address that is not served.";

/// Serve the gate: own the store, listen on the socket and, where asked, on HTTP
///
/// One daemon a state folder. It listens on the Unix socket `gate.sock` in it; requests need one of the tokens
/// in `credentials`, or one that the bundle maps. The bundle's folder is watched: a changed bundle is taken up
/// while running, a broken one is refused and the one before it stays.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
#[command(mut_arg("bundle", |bundle| bundle.help("Folder of the bundle; if left out, the one that was served last")))]
pub(crate) struct Args {
    #[command(flatten)]
    bundle: BundleArg,
    /// Listen on this TCP address too; one that other machines can reach needs a [[credential]] in the bundle
    #[arg(long, value_name = "ADDR:PORT", value_parser = address)]
    http: Option<SocketAddr>,
    /// Serve the console, on this address or on 127.0.0.1:7413; `portcullis console` prints a link that signs in
    #[arg(long, value_name = "ADDR:PORT", num_args = 0..=1, default_missing_value = CONSOLE, value_parser = address)]
    console: Option<SocketAddr>,
    /// How browsers reach the console, such as https://gate.example.com, where something in front of it speaks TLS
    #[arg(long, value_name = "ORIGIN", requires = "console")]
    console_origin: Option<String>,
    /// Folder whose `*.toml` say what is evidence for which controls in governance packs, besides the shipped ones; may
    /// be given again. Read at the start
    #[arg(long, value_name = "DIR")]
    controls: Vec<PathBuf>,
}

/// Where to listen. No names: what a name means changes, and the gate must not be reachable from elsewhere by accident.
fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "give an IP address and a port, such as 127.0.0.1:7777".to_owned())
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    let home = global.home()?;
    let ansi = anstream::AutoStream::choice(&std::io::stderr()) != ColorChoice::Never;
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_ansi(ansi).with_target(false).init();
    let options = DaemonOptions {
        home,
        bundle: args.bundle.folder().map(ToOwned::to_owned),
        shipped: shipped::default_bundle(),
        http: args.http,
        console: args.console.map(|address| ConsoleAt { address, origin: args.console_origin.clone() }),
        controls: args.controls.clone(),
        build: Some(env!("PORTCULLIS_VERSION").to_owned()),
    };
    match runtime()?.block_on(daemon::run(options)) {
        Ok(()) => Ok(exit::YES),
        // Of several that are started at once, one serves; the others have nothing left to do.
        Err(error @ DaemonError::AlreadyRunning(_)) => {
            info!("{error}");
            Ok(exit::YES)
        }
        // Whoever names a bundle or an address must not believe that it is served.
        Err(error @ (DaemonError::OtherBundle { .. } | DaemonError::OtherAddress { .. })) => {
            Err(Failure::no(error))
        }
        Err(error @ DaemonError::Listen { .. }) => Err(Failure::unreadable(error)
            .help("choose another port, or end what listens there: `ss -ltnp` names it")),
        Err(error @ DaemonError::Chosen { .. }) => Err(Failure::unreadable(error)),
        // Only who serves loads the bundle; its mistakes are shown with their places.
        Err(DaemonError::Bundle(error)) => Err(bundle::refused(args.bundle.folder(), error)),
        Err(DaemonError::Controls(error)) => Err(controls_refused(error)),
        Err(error) => {
            Err(Failure::unreadable(error).help("`portcullis doctor` checks the state folder piece by piece"))
        }
    }
}
