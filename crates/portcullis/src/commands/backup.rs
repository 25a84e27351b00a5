//! `portcullis backup`: copies the store and its log while the daemon runs.

use std::path::PathBuf;

use portcullis_gateway::backup::{self, BackupError};
use portcullis_ledger::LedgerError;
use serde_json::json;

use crate::cli::Global;
use crate::exit;
use crate::failure::Failure;
use crate::out::{Out, STRONG};

const EXAMPLES: &str = "\
Examples:
  portcullis backup /backup/portcullis-monday
  portcullis doctor --home /backup/portcullis-monday

The copy is a state folder with the store, the transparency log, the tools that were accepted and the choice of the \
bundle, all as of one moment. It holds payloads as the store does, so only its owner can read it. Credentials and keys \
are not in it: keep a copy of the folder `keys/` apart. The daemon may run meanwhile.

Never run a daemon on the copy and on the original: both would write different events under the same heads.";

/// Copy the store and its log to a new folder
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The new folder
    #[arg(value_name = "DIR")]
    target: PathBuf,
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    let home = global.home()?;
    backup::backup(&home, &args.target).map_err(|error| match error {
        BackupError::Exists(_) | BackupError::Inside(_) => Failure::usage(error),
        BackupError::Store(LedgerError::DiskFull { detail, .. }) => {
            Failure::unreadable(format!("no space is left for `{}`: {detail}", args.target.display()))
                .help("make room there, or name a folder on another disk; the store is as it was")
        }
        error => Failure::unreadable(error),
    })?;
    let (home, target) = (home.path().display(), args.target.display());
    let mut out = Out::new();
    if global.json {
        out.json(&json!({"record": "backup", "home": home.to_string(), "target": target.to_string()}))?;
    } else {
        out.line(format_args!("copied {home} to {STRONG}{target}{STRONG:#}"))?;
        out.line(format_args!("not in it: credentials/ and keys/; keep a copy of keys/ apart"))?;
    }
    out.finish()?;
    Ok(exit::YES)
}
