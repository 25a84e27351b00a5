//! `portcullis contract`: statements about a reply, what they become, and whether it keeps them.
//!
//! `explain` tells what is checked, `check` checks, `repair` changes what code can change without writing. The last two
//! take one reply, or records one a line ([`records`]); what is the same for both stands in [`verdict`].

mod explain;
mod records;
mod verdict;

use std::fs::File;
use std::io::{self, Read, Write as _};
use std::path::{Path, PathBuf};

use portcullis_contracts::limits::{MAX_REPLY_BYTES, MAX_STATEMENT_BYTES, MAX_STATEMENTS};
use portcullis_contracts::{Contract, StatementError, compile, explain as read_statement};

use crate::cli::Global;
use crate::failure::Failure;
use crate::out::{Out, clean};
use verdict::{Checked, Repaired, Sums};

const EXAMPLES: &str = "\
Examples:
  portcullis contract explain \"Answer in at most 100 words.\" \"Be kind.\"
  portcullis contract check reply.md -c \"Do not use commas.\" -c \"Include a title in <<double angular brackets>>.\"
  portcullis contract repair reply.md --contracts contracts.txt > repaired.md
  portcullis contract check --jsonl replies.jsonl.gz --json

What a machine can check exactly is checked exactly; a statement of no known family is left to a judge, and said to be. \
No model is asked.";

const CHECK_EXAMPLES: &str = "\
Examples:
  portcullis contract check reply.md -c \"Do not use commas.\"
  portcullis contract check --contracts contracts.txt < reply.md
  portcullis contract check --jsonl replies.jsonl.gz --json

Exit codes: 0 all contracts hold, 1 one fails, 2 none fails but one is left to a judge, is ambiguous, or cannot hold \
together with others, 3 something could not be read.";

const REPAIR_EXAMPLES: &str = "\
Examples:
  portcullis contract repair reply.md -c \"Do not use commas.\" > repaired.md
  portcullis contract repair --jsonl replies.jsonl --json > repaired.jsonl

The repaired reply goes to standard output, what was done to it to standard error. No word is written that a contract \
does not demand letter by letter, nothing that held is broken, and what would be writing is left alone.

Exit codes, about the repaired reply: 0 all contracts hold, 1 one fails, 2 none fails but one is left to a judge, is \
ambiguous, or cannot hold together with others, 3 something could not be read.";

/// Check replies against statements about them, and repair what needs no writing
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Show what statements become, why, and which of them cannot hold together
    #[command(after_help = explain::EXAMPLES)]
    Explain(explain::Args),
    /// Check a reply, or many, against contracts
    #[command(after_help = CHECK_EXAMPLES)]
    Check(On),
    /// Repair a reply, or many, without asking a model
    #[command(after_help = REPAIR_EXAMPLES)]
    Repair(On),
}

/// Which contracts, and on what.
#[derive(Debug, clap::Args)]
struct On {
    /// The reply, or the records with --jsonl; standard input if left out, or `-`
    #[arg(value_name = "FILE", default_value = STDIN, hide_default_value = true)]
    file: PathBuf,
    /// A statement about the reply; repeat it for more
    #[arg(long = "contract", short = 'c', value_name = "STATEMENT")]
    statements: Vec<String>,
    /// More statements, from a file: one a line, or a JSON array of texts
    #[arg(long, value_name = "FILE")]
    contracts: Option<PathBuf>,
    /// What was asked: a reply that must repeat it is held against it
    #[arg(long, value_name = "TEXT", conflicts_with = "jsonl")]
    prompt: Option<String>,
    /// The file has records, one a line, gzip or not: `{"key", "prompt", "response", "contracts": [statement, …]}`
    #[arg(long)]
    jsonl: bool,
}

/// How standard input is spelt.
const STDIN: &str = "-";
/// The longest file of statements in bytes.
const STATEMENTS_BYTES_MAX: u64 = (MAX_STATEMENTS * MAX_STATEMENT_BYTES) as u64;

/// What is done with a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Deed {
    Check,
    Repair,
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    match &args.command {
        Command::Explain(args) => args.run(global),
        Command::Check(on) => on.run(Deed::Check, global),
        Command::Repair(on) => on.run(Deed::Repair, global),
    }
}

/// Statements that were compiled.
#[derive(Debug, Clone, Default)]
struct Compiled {
    contracts: Vec<Contract>,
    /// Ids of those where something had to be decided.
    ambiguous: Vec<String>,
}

impl Compiled {
    fn of(statements: &[&str]) -> Result<Self, StatementError> {
        let contracts = compile(statements)?;
        let unsure = |contract: &&Contract| read_statement(&contract.statement).is_ambiguous();
        let ambiguous = contracts.iter().filter(unsure).map(|contract| contract.id.clone()).collect();
        Ok(Self { contracts, ambiguous })
    }
}

impl On {
    fn run(&self, deed: Deed, global: &Global) -> Result<u8, Failure> {
        let statements = self.all_statements()?;
        if self.jsonl {
            return records::run(&self.file, &statements, deed, global.json);
        }
        if statements.is_empty() {
            return Err(Failure::usage("there is no contract to hold the reply against")
                .help("name one with `--contract \"Do not use commas.\"`, or a file with `--contracts`"));
        }
        let statements: Vec<&str> = statements.iter().map(String::as_str).collect();
        let compiled = Compiled::of(&statements).map_err(Failure::unreadable)?;
        let reply = self.reply()?;
        let mut sums = Sums::default();
        match deed {
            Deed::Check => {
                let checked = Checked::of(None, &compiled, &reply, self.prompt.as_deref());
                sums.checked(&checked);
                let mut out = Out::new();
                if global.json {
                    out.json(&checked)?;
                } else {
                    checked.lines("", false).iter().try_for_each(|line| out.line(format_args!("{line}")))?;
                    out.line(format_args!("{}", sums.line()))?;
                }
                out.finish()?;
            }
            Deed::Repair => {
                let repaired = Repaired::of(None, &compiled, &reply, self.prompt.as_deref());
                sums.repaired(&repaired);
                let mut out = Out::new();
                if global.json {
                    out.json(&repaired)?;
                    out.finish()?;
                } else {
                    out.verbatim(repaired.repaired.as_bytes())?;
                    out.finish()?;
                    let mut errors = anstream::stderr().lock();
                    for line in repaired.lines("") {
                        writeln!(errors, "{line}")?;
                    }
                    writeln!(errors, "{}", sums.line())?;
                }
            }
        }
        Ok(sums.code())
    }

    /// Those of the command line, then those of the file.
    fn all_statements(&self) -> Result<Vec<String>, Failure> {
        let mut statements = self.statements.clone();
        let Some(path) = &self.contracts else { return Ok(statements) };
        let file = File::open(path).map_err(|error| unreadable(path, error))?;
        let text = read(path, file, STATEMENTS_BYTES_MAX)?;
        if text.trim_start().starts_with('[') {
            let array: Vec<String> = serde_json::from_str(&text).map_err(|error| {
                unreadable(path, error)
                    .help("a file of contracts is a JSON array of texts, or one statement a line")
            })?;
            statements.extend(array);
        } else {
            let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
            statements.extend(lines.map(str::to_owned));
        }
        Ok(statements)
    }

    /// The reply without the line break at its end, which files have and replies have not.
    fn reply(&self) -> Result<String, Failure> {
        /// The line break.
        const MORE: u64 = 2;
        let limit = MAX_REPLY_BYTES as u64 + MORE;
        let mut text = if self.file == Path::new(STDIN) {
            read(&self.file, io::stdin().lock(), limit)?
        } else {
            let file = File::open(&self.file).map_err(|error| unreadable(&self.file, error))?;
            read(&self.file, file, limit)?
        };
        let whole =
            text.strip_suffix('\n').map_or(text.len(), |rest| rest.strip_suffix('\r').unwrap_or(rest).len());
        text.truncate(whole);
        Ok(text)
    }
}

fn unreadable(path: &Path, error: impl std::fmt::Display) -> Failure {
    Failure::unreadable(format!("cannot read `{}`: {error}", clean(&path.display().to_string())))
}

/// All of a text of at most so many bytes.
fn read(path: &Path, from: impl Read, limit: u64) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    from.take(limit + 1).read_to_end(&mut bytes).map_err(|error| unreadable(path, error))?;
    if bytes.len() as u64 > limit {
        return Err(unreadable(path, format!("it has more than {limit} bytes")).help("split it"));
    }
    String::from_utf8(bytes).map_err(|error| unreadable(path, error.utf8_error()))
}
