//! `portcullis completions`: completions for a shell.
//!
//! The script that is printed asks this program at each completion, so that ids of runs and approvals are completed as
//! well as commands and options, and an upgrade needs no new script.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io::{self, Write as _};

use clap::CommandFactory as _;
use clap::builder::StyledStr;
use clap_complete::Shell;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use clap_complete::env::Shells;
use portcullis_gateway::home::Home;
use portcullis_ledger::{ApprovalFilter, ApprovalState, LedgerError, Reader, RunFilter};

use crate::cli::Cli;
use crate::exit;
use crate::failure::Failure;
use crate::out::clean_line;

/// Names the shell when its script asks for completions.
const SHELL_VARIABLE: &str = "PORTCULLIS_COMPLETE";
/// The latest ids that are offered.
const IDS_MAX: usize = 100;

const EXAMPLES: &str = "\
Examples:
  portcullis completions bash \\
      > ~/.local/share/bash-completion/completions/portcullis
  portcullis completions zsh > ~/.zfunc/_portcullis
  portcullis completions fish > ~/.config/fish/completions/portcullis.fish";

/// Print completions for a shell
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The shell
    shell: Shell,
}

pub(crate) fn run(args: &Args) -> Result<u8, Failure> {
    let name = args.shell.to_string();
    let mut script = Vec::new();
    let shells = Shells::builtins();
    let Some(shell) = shells.completer(&name) else {
        return Err(Failure::usage(format!("there are no completions for `{name}`")));
    };
    shell.write_registration(SHELL_VARIABLE, "portcullis", "portcullis", "portcullis", &mut script)?;
    let mut out = io::stdout().lock();
    match out.write_all(&script).and_then(|()| out.flush()) {
        // Whoever looked at the first lines has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(exit::YES),
        written => Ok(written.map(|()| exit::YES)?),
    }
}

/// Answers a shell's script that asks for completions; whether this was such a question. `arguments` are those of the
/// process: the script puts `--` before the words of the command line, which no command line of a user begins with.
pub(crate) fn answered(arguments: &[OsString]) -> bool {
    let Some(name) = std::env::var_os(SHELL_VARIABLE) else { return false };
    let Some((_, [separator, words @ ..])) = arguments.split_first() else { return false };
    if separator != "--" {
        return false;
    }
    // A completion that fails is one that offers nothing: a message would stand in the user's prompt.
    let _silent = complete(&name.to_string_lossy(), words.to_vec());
    true
}

fn complete(shell: &str, words: Vec<OsString>) -> io::Result<()> {
    let shells = Shells::builtins();
    let Some(shell) = shells.completer(shell) else { return Ok(()) };
    let folder = std::env::current_dir().ok();
    let mut answer = Vec::new();
    shell.write_complete(&mut Cli::command(), words, folder.as_deref(), &mut answer)?;
    let mut out = io::stdout().lock();
    out.write_all(&answer)?;
    out.flush()
}

/// Completes the id of a run from the store.
pub(crate) fn run_ids() -> ArgValueCompleter {
    ArgValueCompleter::new(|typed: &OsStr| {
        candidates(typed, |reader| {
            let filter = RunFilter { limit: Some(IDS_MAX), ..RunFilter::default() };
            let runs = reader.runs(&filter)?.into_iter();
            Ok(runs.map(|run| (run.run.to_string(), run.principal)).collect())
        })
    })
}

/// Completes the name of a principal from the latest runs.
pub(crate) fn principals() -> ArgValueCompleter {
    ArgValueCompleter::new(|typed: &OsStr| {
        candidates(typed, |reader| {
            let filter = RunFilter { limit: Some(IDS_MAX), ..RunFilter::default() };
            let names: BTreeSet<String> =
                reader.runs(&filter)?.into_iter().map(|run| run.principal).collect();
            Ok(names.into_iter().map(|name| (name, "has runs".to_owned())).collect())
        })
    })
}

/// Completes the id of an approval that waits.
pub(crate) fn approval_ids() -> ArgValueCompleter {
    ArgValueCompleter::new(|typed: &OsStr| {
        candidates(typed, |reader| {
            let state = Some(ApprovalState::Pending);
            let filter = ApprovalFilter { state, limit: Some(IDS_MAX), ..ApprovalFilter::default() };
            let waiting = reader.approvals(&filter)?.into_iter();
            Ok(waiting.map(|row| (row.approval.to_string(), format!("of run {}", row.run))).collect())
        })
    })
}

/// The ids or names that begin as what was typed, each with what is said about it; none where the store cannot be read.
fn candidates(
    typed: &OsStr,
    read: impl Fn(&dyn Reader) -> Result<Vec<(String, String)>, LedgerError>,
) -> Vec<CompletionCandidate> {
    let Some(typed) = typed.to_str() else { return Vec::new() };
    let Some(home) = home(std::env::args_os()) else { return Vec::new() };
    let ids = home.store().reader().and_then(|reader| read(reader.as_ref())).unwrap_or_default();
    ids.into_iter()
        .filter(|(id, _)| id.starts_with(typed))
        .map(|(id, about)| {
            CompletionCandidate::new(id).help(Some(StyledStr::from(clean_line(&about).into_owned())))
        })
        .collect()
}

/// The state folder that the words typed so far name, or the usual one.
fn home(words: impl Iterator<Item = OsString>) -> Option<Home> {
    let words: Vec<OsString> = words.collect();
    let next = words.iter().zip(words.iter().skip(1)).find(|(word, _)| *word == "--home");
    let joined = || words.iter().find_map(|word| word.to_str()?.strip_prefix("--home=").map(OsString::from));
    let given = next.map(|(_, folder)| folder.clone()).or_else(joined);
    Home::resolve(given.as_deref().map(std::path::Path::new)).ok()
}
