//! `portcullis openapi`: the description of the HTTP API.

use std::io::{self, Write as _};

use portcullis_gateway::daemon;

use crate::exit;
use crate::failure::Failure;

const EXAMPLES: &str = "\
Examples:
  portcullis openapi > portcullis.openapi.json

A daemon serves the same document at /v1/openapi.json.";

/// Print the OpenAPI document of the HTTP API
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {}

pub(crate) fn run(Args {}: &Args) -> Result<u8, Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(daemon::openapi().as_bytes()).and_then(|()| out.flush()) {
        // Whoever looked at the first lines has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(exit::YES),
        written => Ok(written.map(|()| exit::YES)?),
    }
}
