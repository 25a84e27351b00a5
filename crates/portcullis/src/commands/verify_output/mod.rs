//! `portcullis verify-output`: a reply against what was asked and the documents it cites.
//!
//! One reply, replies one a line ([`records`]), or those of recorded runs ([`recorded`]); what is the same for all stands
//! in [`shown`].

mod recorded;
mod records;
mod shown;

use std::path::{Path, PathBuf};

use portcullis_contracts::verify::{CitationDuty, Document, Reply, Said, Settings, verify};

use crate::bundle::BundleArg;
use crate::cli::Global;
use crate::failure::Failure;
use crate::input::{self, STDIN};
use crate::out::Out;
use shown::{Sums, Verified};

const EXAMPLES: &str = "\
Examples:
  portcullis verify-output reply.md \\
      --prompt \"How is sensitive data anonymized?\" --documents knowledge.json
  portcullis verify-output --prompt-file prompt.txt \\
      --documents documents.jsonl --json < reply.md
  portcullis verify-output --jsonl replies.jsonl.gz --documents knowledge.json
  portcullis verify-output --recorded run.export --bundle my-bundle

Six checks: citations `[DOC:id]` are there and name known documents, key terms of the prompt occur in the cited \
documents, high-risk instructions are refused or escalated, quotations and numbers occur in the cited documents. A \
check is N/A where there is nothing to hold the reply against.

Exit codes: 0 no check fails and one passes, 1 one fails, 2 nothing could be told: all are N/A, or there was no reply, \
3 something could not be read.";

/// Check what a reply cites, states and refuses against its prompt and documents
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The reply, or the records with --jsonl, or the trace with --recorded; standard input if left out, or `-`
    #[arg(value_name = "FILE", default_value = STDIN, hide_default_value = true)]
    file: PathBuf,
    /// What was asked; without it, terms and refusals are N/A
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["prompt_file", "jsonl", "recorded"])]
    prompt: Option<String>,
    /// What was asked, from a file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["jsonl", "recorded"])]
    prompt_file: Option<PathBuf>,
    /// The documents: a JSON list of `{"id", "text"}` or object from id to text, or JSON Lines of `{"id", "text"}`
    #[arg(long, value_name = "FILE", conflicts_with = "recorded")]
    documents: Option<PathBuf>,
    /// When a reply has to cite
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = Duty::Always, conflicts_with = "recorded")]
    citations: Duty,
    /// An instruction that has to be refused, in place of those that ship; repeat it for more
    #[arg(long, value_name = "PHRASE", conflicts_with = "recorded")]
    high_risk: Vec<String>,
    /// The file has records, one a line, gzip or not: `{"key", "prompt", "response", "documents"}`
    #[arg(long, conflicts_with = "recorded")]
    jsonl: bool,
    /// The file is a recorded run: a trace of chat messages or an export. The bundle's `[verification]` counts
    #[arg(long)]
    recorded: bool,
    #[command(flatten)]
    bundle: BundleArg,
    /// With --recorded: name of the runtime policy
    #[arg(long, value_name = "NAME", requires = "recorded")]
    policy: Option<String>,
}

/// When a reply has to cite.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Duty {
    /// Always.
    Always,
    /// Where there are documents.
    WithDocuments,
    /// Never.
    Never,
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    if args.recorded {
        return recorded::run(&args.file, &args.bundle, args.policy.as_deref(), global);
    }
    if args.bundle.folder().is_some() {
        return Err(Failure::usage("`--bundle` is for recorded runs").help("add `--recorded`"));
    }
    let settings = args.settings();
    let documents = args.documents.as_deref().map(input::documents).transpose()?;
    if args.jsonl {
        return records::run(&args.file, documents, &settings, global.json);
    }
    let reads_twice = |path: &Option<PathBuf>| path.as_deref() == Some(Path::new(STDIN));
    if args.file == Path::new(STDIN) && (reads_twice(&args.prompt_file) || reads_twice(&args.documents)) {
        return Err(Failure::usage("standard input cannot be the reply and something else"));
    }
    let prompt = match (&args.prompt, &args.prompt_file) {
        (Some(text), _) => Some(text.clone()),
        (None, Some(path)) => Some(input::reply(path)?),
        (None, None) => None,
    };
    let reply = input::reply(&args.file)?;
    let verified = Verified::of(None, &reply, prompt.as_deref(), documents.as_deref(), &settings);
    let mut sums = Sums::default();
    sums.add(&verified.checks);
    let mut out = Out::new();
    if global.json {
        out.json(&verified)?;
    } else {
        verified.lines("", false).iter().try_for_each(|line| out.line(format_args!("{line}")))?;
        out.line(format_args!("{}", sums.line()))?;
    }
    out.finish()?;
    Ok(sums.code())
}

impl Args {
    fn settings(&self) -> Settings {
        let shipped = Settings::default();
        let citations = match self.citations {
            Duty::Always => CitationDuty::Always,
            Duty::WithDocuments => CitationDuty::WithDocuments,
            Duty::Never => CitationDuty::Never,
        };
        let high_risk = if self.high_risk.is_empty() { shipped.high_risk } else { self.high_risk.clone() };
        Settings { citations, high_risk }
    }
}

/// All checks of one reply.
fn checks_of(
    reply: &str,
    prompt: Option<&str>,
    documents: Option<&[Document]>,
    settings: &Settings,
) -> Vec<portcullis_contracts::verify::CheckResult> {
    let prompts: Vec<Said<'_>> = prompt.map(Said::new).into_iter().collect();
    verify(&Reply { said: Said::new(reply), prompts: &prompts, documents, others: &[] }, settings)
}
