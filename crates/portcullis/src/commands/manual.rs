//! `portcullis manual`: the manual pages of all commands, as packages install them.

use std::path::{Path, PathBuf};
use std::{fs, io};

use clap::{Command, CommandFactory as _};
use clap_mangen::Man;

use crate::cli::Cli;
use crate::exit;
use crate::failure::Failure;

/// The head of a section.
const SYNOPSIS: &str = ".SH SYNOPSIS";

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
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    write(&mut command, folder).map_err(failed)?;
    Ok(exit::YES)
}

/// Writes the page of a command and those of its subcommands.
fn write(command: &mut Command, folder: &Path) -> io::Result<()> {
    for below in command.get_subcommands_mut().filter(|below| !below.is_hide_set()) {
        write(below, folder)?;
    }
    let page = Man::new(command.clone());
    let mut text = Vec::new();
    page.render(&mut text)?;
    let text = with_usage(&String::from_utf8_lossy(&text), &command.render_usage().to_string());
    fs::write(folder.join(page.get_filename()), text)
}

/// The page with the command's usage as its synopsis: the one that is rendered for it names options without their values,
/// and leaves out what follows `--`.
fn with_usage(page: &str, usage: &str) -> String {
    let usage = usage.trim_start_matches("Usage:").trim().replace('\\', "\\\\").replace('-', "\\-");
    let lines: Vec<&str> = usage.lines().map(str::trim).collect();
    match page.split_once(SYNOPSIS).and_then(|(before, after)| Some((before, after.split_once("\n.SH ")?))) {
        Some((before, (_, after))) => format!("{before}{SYNOPSIS}\n{}\n.SH {after}", lines.join("\n.br\n")),
        None => page.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_synopsis_has_values_and_what_follows_the_dashes() {
        let folder = tempfile::tempdir().unwrap();
        run(&Args { folder: folder.path().to_owned() }).unwrap();
        let page = fs::read_to_string(folder.path().join("portcullis-mcp.1")).unwrap();
        let synopsis = page.split_once(SYNOPSIS).unwrap().1.split_once(".SH DESCRIPTION").unwrap().0;
        assert!(synopsis.contains("<CMD>") && !synopsis.contains("\\-\\-json"), "{synopsis}");
    }
}
