//! `portcullis manual`: the manual pages of all commands, as packages install them.

use std::fs;
use std::path::PathBuf;

use clap::CommandFactory as _;

use crate::cli::Cli;
use crate::exit;
use crate::failure::Failure;

const EXAMPLES: &str = "\
Examples:
  portcullis manual man1
  portcullis manual ~/.local/share/man/man1";

/// Write manual pages, one for each command, into a folder
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Where to; the folder is made if it is not there
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

pub(crate) fn run(args: &Args) -> Result<u8, Failure> {
    let folder = &args.folder;
    let failed = |error: std::io::Error| {
        Failure::unreadable(format!("cannot write into `{}`: {error}", folder.display()))
    };
    fs::create_dir_all(folder).map_err(failed)?;
    clap_mangen::generate_to(Cli::command(), folder).map_err(failed)?;
    Ok(exit::YES)
}
