//! `portcullis demo-server`: a small real MCP server to put behind the gate.

use std::path::PathBuf;

use crate::exit;
use crate::failure::Failure;

const EXAMPLES: &str = "\
Examples:
  portcullis demo-server /tmp/workspace
  npx @modelcontextprotocol/inspector portcullis demo-server /tmp/workspace";

/// Serve five working tools over MCP, on standard input and output
///
/// A small real MCP server: documents to search, a database to query, a mailbox, a file store and a
/// calculator, all inside one folder. It executes whatever it is asked; what a policy prevents is what is not
/// in the folder afterwards. It ends when its client closes standard input.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The folder to work on; made if it is missing
    dir: PathBuf,
}

pub(crate) fn run(args: &Args) -> Result<u8, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::unreadable(format!("cannot start: {error}")))?;
    runtime.block_on(portcullis_sim::demo_server::run(&args.dir)).map_err(|error| {
        Failure::unreadable(format!("{error}, folder `{}`", args.dir.display()))
            .help("standard input and output must be connected to an MCP client")
    })?;
    Ok(exit::YES)
}
