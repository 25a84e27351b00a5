//! `portcullis program`: guard programs, one by one.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use portcullis_core::bundle::{Bundle, Diagnostic};
use portcullis_core::event::EventBody;
use portcullis_core::fact::FactAnswer;
use portcullis_core::label::Label;
use portcullis_core::limits::ARGUMENTS_BYTES_MAX;
use portcullis_core::principal::Principal;
use portcullis_core::program::{Answer, SOURCE, Says};
use portcullis_core::time::Timestamp;
use portcullis_core::verdict::Verdict;
use portcullis_session::dry::DryRun;
use portcullis_session::engine::Proposal;
use portcullis_session::policy;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::bundle::BundleArg;
use crate::cli::Global;
use crate::exit;
use crate::failure::Failure;
use crate::input;
use crate::out::{self, Out, clean_line};

const EXAMPLES: &str = "\
Examples:
  portcullis program run refunds.star --action refund.json --bundle mine
  portcullis program run refunds.star --action refund.json --json";

/// Longest program that is read; a bundle takes shorter ones and says so.
const SOURCE_BYTES_MAX: usize = 1 << 20;

/// Work on guard programs
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Run(RunArgs),
}

const RUN_HELP: &str = "\
Examples:
  portcullis program run refunds.star --action refund.json --bundle mine
  portcullis program run refunds.star --action refund.json --json

The action is JSON: `tool` and `args`, and where they matter `principal` (`id`, `roles`, `attributes`), `request` (what \
the user asked), `planned`, `directory` and `at` (a minute in UTC). Tools, tables and policies are the bundle's.

Exit codes: 0 the program has no objection, 1 it denies, fails or cannot be read, 2 it holds for a person, 3 a file could \
not be read.";

/// Run one program on one action, as the gate would
#[derive(Debug, clap::Args)]
#[command(after_help = RUN_HELP)]
struct RunArgs {
    /// The program; `-` for standard input
    #[arg(value_name = "FILE")]
    program: PathBuf,
    /// The action as JSON
    #[arg(long, value_name = "FILE")]
    action: PathBuf,
    #[command(flatten)]
    bundle: BundleArg,
}

/// An action as it is given.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Given {
    tool: Option<String>,
    #[serde(default)]
    args: Value,
    principal: Option<Principal>,
    request: Option<String>,
    planned: Option<String>,
    directory: Option<String>,
    /// When, to the minute; now where nothing is said.
    at: Option<String>,
}

/// What came of it.
#[derive(Debug)]
enum Outcome {
    Answered(Answer),
    /// There is no answer, and why.
    Failed(String),
    /// The program does not load.
    Mistakes(Vec<Diagnostic>),
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    match &args.command {
        Command::Run(args) => run_one(args, global),
    }
}

fn run_one(args: &RunArgs, global: &Global) -> Result<u8, Failure> {
    let text = input::text(&args.program, SOURCE_BYTES_MAX)?;
    let action = input::text(&args.action, ARGUMENTS_BYTES_MAX)?;
    let given: Given = serde_json::from_str(&action).map_err(|error| {
        input::unreadable(&args.action, error)
            .help("an action is `{\"tool\": \"refund\", \"args\": {\"amount\": \"EUR 20\"}}`")
    })?;
    let opened = args.bundle.open(global)?;
    let stem = args.program.file_stem().and_then(|stem| stem.to_str()).filter(|stem| *stem != input::STDIN);
    let path = format!("programs/{}.star", stem.unwrap_or("program").to_lowercase().replace([' ', '.'], "-"));
    let mut files = opened.files;
    // This program alone.
    files.retain(|path, _| !path.starts_with("programs/") && !path.starts_with("tests/"));
    files.insert(path, text.into_bytes());
    let outcome = match policy::load(&files) {
        Ok(bundle) => judge(Arc::new(bundle), given)?,
        Err(mistakes) => (Outcome::Mistakes(mistakes), 0),
    };
    show(&args.program, &outcome, global)
}

/// The answer, and the microseconds it took in all.
fn judge(bundle: Arc<Bundle>, given: Given) -> Result<(Outcome, u128), Failure> {
    let policy = bundle.default_policy().to_owned();
    let principal = given.principal.unwrap_or_else(|| Principal::named("nobody"));
    let pipeline = Arc::new(policy::pipeline());
    let opened = DryRun::open_as(bundle, pipeline, &policy, principal, None);
    let mut run = opened.map_err(Failure::no)?.keeping_events();
    if let Some(request) = &given.request {
        run.input(request, Label::User);
    }
    run.not_before(match given.at.as_deref() {
        Some(at) => minute(at)?,
        None => portcullis_ledger::clock::now(),
    });
    let began = Instant::now();
    run.propose(Proposal {
        tool: given.tool,
        arguments: given.args,
        planned: given.planned,
        directory: given.directory,
        ..Proposal::default()
    });
    let micros = began.elapsed().as_micros();
    let facts = run.events().iter().filter_map(|event| match &event.body {
        EventBody::Verdict(record) => Some(record.facts.iter()),
        _ => None,
    });
    let answer = facts.flatten().find(|fact| fact.request.source == SOURCE).map(|fact| &fact.answer);
    let outcome = match answer {
        Some(FactAnswer::Known(answer)) => match serde_json::from_value(answer.clone()) {
            Ok(answer) => Outcome::Answered(answer),
            Err(error) => Outcome::Failed(format!("the answer is not of its form: {error}")),
        },
        Some(FactAnswer::Failed(why)) => Outcome::Failed(why.clone()),
        None => Outcome::Failed("nobody asked the program".to_owned()),
    };
    Ok((outcome, micros))
}

/// A time as programs are told of it.
fn minute(at: &str) -> Result<Timestamp, Failure> {
    let time = at.strip_suffix('Z').and_then(|at| format!("{at}:00.000000Z").parse().ok());
    time.ok_or_else(|| Failure::unreadable("`at` of the action is no time, such as 2026-11-28T14:36Z"))
}

/// What it comes to, and why.
fn verdict(outcome: &Outcome) -> (Verdict, Vec<String>) {
    match outcome {
        Outcome::Answered(answer) => {
            let failed = answer.failures.iter().map(|failure| format!("it failed: {}", failure.why));
            let objects = answer.objections.iter().map(|objection| match objection.reasons.as_slice() {
                [] => "it gives no reason".to_owned(),
                reasons => reasons.join("; "),
            });
            let denies = !answer.failures.is_empty()
                || answer.objections.iter().any(|objection| objection.says == Says::Deny);
            let verdict = match (denies, answer.objections.is_empty()) {
                (true, _) => Verdict::Deny,
                (false, false) => Verdict::Review,
                (false, true) => Verdict::Allow,
            };
            (verdict, failed.chain(objects).collect())
        }
        Outcome::Failed(why) => (Verdict::Deny, vec![why.clone()]),
        Outcome::Mistakes(mistakes) => (Verdict::Deny, mistakes.iter().map(ToString::to_string).collect()),
    }
}

fn show(file: &Path, (outcome, micros): &(Outcome, u128), global: &Global) -> Result<u8, Failure> {
    let (verdict, reasons) = verdict(outcome);
    let mut out = Out::new();
    if global.json {
        let answer = match outcome {
            Outcome::Answered(answer) => json!(answer),
            Outcome::Failed(_) | Outcome::Mistakes(_) => Value::Null,
        };
        out.json(&json!({
            "record": "program", "file": file, "verdict": verdict, "reasons": reasons, "answer": answer,
            "micros": u64::try_from(*micros).unwrap_or(u64::MAX),
        }))?;
    } else {
        let style = out::verdict_style(verdict);
        let shown = if verdict == Verdict::Allow { "no objection" } else { verdict.as_str() };
        out.line(format_args!("{style}{shown}{style:#}"))?;
        for reason in &reasons {
            out.line(format_args!("  {}", clean_line(reason)))?;
        }
        if let Outcome::Answered(answer) = outcome {
            for denied in answer.objections.iter().flat_map(|objection| &objection.denied) {
                out.line(format_args!("  not: {}", clean_line(denied)))?;
            }
        }
    }
    out.finish()?;
    Ok(match verdict {
        Verdict::Allow => exit::YES,
        Verdict::Review => exit::INCOMPLETE,
        _ => exit::NO,
    })
}
