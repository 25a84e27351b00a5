//! `portcullis contract`: statements about a reply, what they become, and whether it keeps them.
//!
//! `explain` tells what is checked, `check` checks, `repair` changes what code can change without writing and asks a model,
//! where one is named, for the rest ([`asking`]). The last two take one reply, or records one a line ([`records`]); what is
//! shown of them stands in [`verdict`].

mod asking;
mod explain;
mod records;
mod verdict;

use std::io::Write as _;
use std::path::{Path, PathBuf};

use portcullis_assist::record::{Reply, check_reply, repair_reply};
use portcullis_assist::{Clock, Compiled, Helpers, Metered, Model, SystemClock, Written};
use portcullis_contracts::limits::{MAX_STATEMENT_BYTES, MAX_STATEMENTS};
use portcullis_contracts::{ContextError, Given};

use crate::cli::Global;
use crate::failure::Failure;
use crate::input::{self, STDIN, unreadable};
use crate::out::Out;
use asking::{Desk, Judging, Repairing, unanswered};
use verdict::Sums;

const EXAMPLES: &str = "\
Examples:
  portcullis contract explain \"Answer in at most 100 words.\" \"Be kind.\"
  portcullis contract check reply.md -c \"Do not use commas.\" \\
      -c \"Include a title in <<double angular brackets>>.\"
  portcullis contract repair reply.md --contracts contracts.txt > repaired.md
  portcullis contract check --jsonl replies.jsonl.gz --json

What a machine can check exactly is checked exactly; a statement of no known family is left to a judge, and said to be. \
No model is asked unless one is named.";

const CHECK_EXAMPLES: &str = "\
Examples:
  portcullis contract check reply.md -c \"Do not use commas.\"
  portcullis contract check --contracts contracts.txt < reply.md
  portcullis contract check --jsonl replies.jsonl.gz --json
  portcullis contract check reply.md -c \"Must cite a known document.\" \\
      --documents knowledge.json
  portcullis contract check reply.md -c \"Be kind.\" \\
      --model http://127.0.0.1:8080/v1/NAME
  portcullis contract check reply.md -c \"Be kind.\" --judge ./kindness.py

Exit codes: 0 all contracts hold, 1 one fails, 2 none fails but one is left to a judge, is ambiguous, or cannot hold \
together with others, 3 something could not be read, or who judges gave no answer.";

const REPAIR_EXAMPLES: &str = "\
Examples:
  portcullis contract repair reply.md -c \"Do not use commas.\" > repaired.md
  portcullis contract repair --jsonl replies.jsonl --json > repaired.jsonl
  portcullis contract repair reply.md --contracts contracts.json \\
      --prompt \"What is tea?\" --strategy best-of-n \\
      --model https://host/v1/NAME --key-env API_KEY --budget-calls 20

The repaired reply goes to standard output, what was done to it to standard error. Code comes first: it writes no word \
that a contract does not demand letter by letter, and breaks nothing that held. A model is asked only where one is named, \
and only about what is left. The reply that comes out is never worse than the one that went in.

Exit codes, about the repaired reply: 0 all contracts hold, 1 one fails, 2 none fails but one is left to a judge, is \
ambiguous, or cannot hold together with others, 3 something could not be read, or the model gave no answer: the reply is \
the best until then.";

/// Check replies against statements about them, and repair what can be repaired
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
    Check {
        #[command(flatten)]
        on: On,
        #[command(flatten)]
        judging: Judging,
    },
    /// Repair a reply, or many: by code, and by a model where one is named
    #[command(after_help = REPAIR_EXAMPLES)]
    Repair {
        #[command(flatten)]
        on: On,
        #[command(flatten)]
        judging: Judging,
        #[command(flatten)]
        repairing: Repairing,
    },
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
    /// More statements, from a file: one a line, or a JSON array of texts or of objects with `statement` and
    /// `priority`, `rank` or `weight`
    #[arg(long, value_name = "FILE")]
    contracts: Option<PathBuf>,
    /// What was asked: statements about it need it, such as those about refusals
    #[arg(long, value_name = "TEXT", conflicts_with = "jsonl")]
    prompt: Option<String>,
    /// The documents that the reply may cite: a JSON list of `{"id", "text"}` or object from id to text, or JSON Lines
    #[arg(long, value_name = "FILE")]
    documents: Option<PathBuf>,
    /// The names that statements such as "no customer names" mean, one a line
    #[arg(long, value_name = "FILE")]
    names: Option<PathBuf>,
    /// An instruction that has to be refused, in place of those that ship; repeat it for more
    #[arg(long, value_name = "PHRASE")]
    high_risk: Vec<String>,
    /// The file has records, one a line, gzip or not: `{"key", "prompt", "response", "contracts": [statement, …],
    /// "documents", "names", "high_risk"}`
    #[arg(long)]
    jsonl: bool,
}

/// The longest file of statements in bytes.
const STATEMENTS_BYTES_MAX: usize = MAX_STATEMENTS * MAX_STATEMENT_BYTES;

/// What is done with a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Deed {
    Check,
    Repair,
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    match &args.command {
        Command::Explain(args) => args.run(global),
        Command::Check { on, judging } => on.run(judging, None, global),
        Command::Repair { on, judging, repairing } => on.run(judging, Some(repairing), global),
    }
}

impl On {
    fn run(&self, judging: &Judging, repairing: Option<&Repairing>, global: &Global) -> Result<u8, Failure> {
        let written = self.all_contracts()?;
        let given = self.given()?;
        let ready = judging.open(repairing)?;
        let metered = ready.model.as_ref().map(crate::model::Opened::metered);
        let system = SystemClock::new();
        let clock: &dyn Clock = ready.model.as_ref().map_or(&system, crate::model::Opened::clock);
        let model = metered.as_ref().map(|metered: &Metered<'_>| metered as &dyn Model);
        let helpers = Helpers { model, program: ready.judge.as_ref() };
        let runtime = asking::runtime()?;
        let desk = Desk { helpers, settings: &ready.settings, clock, runtime };
        let deed = if repairing.is_some() { Deed::Repair } else { Deed::Check };
        let code = if self.jsonl {
            records::run(&self.file, &written, &given, deed, &desk, global.json)?
        } else {
            self.one(&written, &given, deed, &desk, global.json)?
        };
        if let Some(metered) = metered.filter(|_| self.jsonl && !global.json) {
            writeln!(anstream::stderr(), "{}", crate::model::used(&metered.spent().into()))?;
        }
        Ok(code)
    }

    fn one(
        &self,
        written: &[Written],
        given: &Given,
        deed: Deed,
        desk: &Desk<'_>,
        json: bool,
    ) -> Result<u8, Failure> {
        if written.is_empty() {
            return Err(Failure::usage("there is no contract to check the reply against")
                .help("name one with `--contract \"Do not use commas.\"`, or a file with `--contracts`"));
        }
        let compiled = Compiled::of(written).map_err(Failure::unreadable)?;
        let text = input::reply(&self.file)?;
        let reply = Reply { key: None, context: given.context(), text: &text };
        let Desk { helpers, settings, clock, runtime } = desk;
        let mut sums = Sums::default();
        let mut out = Out::new();
        let error = match deed {
            Deed::Check => {
                let checked = runtime.block_on(check_reply(reply, &compiled, *helpers, settings, *clock));
                sums.checked(&checked);
                if json {
                    out.json(&checked)?;
                } else {
                    let lines = verdict::of_checked(&checked, "", false);
                    lines.iter().try_for_each(|line| out.line(format_args!("{line}")))?;
                    out.line(format_args!("{}", sums.line()))?;
                }
                out.finish()?;
                checked.error().cloned()
            }
            Deed::Repair => {
                let mended = runtime.block_on(repair_reply(reply, &compiled, *helpers, settings, *clock));
                let mended = mended.map_err(Failure::usage)?;
                sums.mended(&mended);
                if json {
                    out.json(&mended)?;
                    out.finish()?;
                } else {
                    out.verbatim(mended.repaired.as_bytes())?;
                    out.finish()?;
                    let mut errors = anstream::stderr().lock();
                    for line in verdict::of_mended(&mended, "") {
                        writeln!(errors, "{line}")?;
                    }
                    writeln!(errors, "{}", sums.line())?;
                }
                mended.error().cloned()
            }
        };
        match error {
            Some(error) => Err(unanswered("", &error)),
            None => Ok(sums.code()),
        }
    }

    /// Those of the command line, then those of the file.
    fn all_contracts(&self) -> Result<Vec<Written>, Failure> {
        let mut written: Vec<Written> = self.statements.iter().map(|text| text.as_str().into()).collect();
        let Some(path) = &self.contracts else { return Ok(written) };
        let text = input::text(path, STATEMENTS_BYTES_MAX)?;
        if text.trim_start().starts_with('[') {
            let array: Vec<Written> = serde_json::from_str(&text).map_err(|error| {
                unreadable(path, error)
                    .help("a file of contracts is a JSON array of texts or objects, or one statement a line")
            })?;
            written.extend(array);
        } else {
            written.extend(input::lines(&text).map(Written::from));
        }
        Ok(written)
    }

    /// What replies are held against, as far as the command line says.
    fn given(&self) -> Result<Given, Failure> {
        let twice = |path: &Option<PathBuf>| path.as_deref() == Some(Path::new(STDIN));
        if [&self.documents, &self.names, &self.contracts].into_iter().filter(|path| twice(path)).count()
            + usize::from(self.file == Path::new(STDIN))
            > 1
        {
            return Err(Failure::usage("standard input cannot be the reply and something else"));
        }
        let documents = self.documents.as_deref().map(input::documents).transpose()?;
        let names = self.names.as_deref().map(input::names).transpose()?;
        let high_risk = Some(self.high_risk.clone()).filter(|phrases| !phrases.is_empty());
        Given::with(self.prompt.clone(), documents, names.as_deref(), high_risk).map_err(|error| {
            match (&error, &self.names) {
                (ContextError::Names(error), Some(path)) => unreadable(path, error),
                _ => Failure::unreadable(error),
            }
        })
    }
}
