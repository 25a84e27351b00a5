//! `portcullis eval`: measures a bundle on a public data set.

mod all;
mod contracts;
mod guardagent;
mod recorded;
mod scenarios;
mod worlds;

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use portcullis_detect::{Detector, Head, Model};
use portcullis_eval::data::Data;
use portcullis_eval::predictions::Predictions;
use portcullis_eval::report::Report;
use portcullis_eval::suite::{EvalError, Job};
use portcullis_eval::trajectory::suites::Name;
use portcullis_eval::{
    claims, eicu_ac, health_records, ifeval, mind2web_sc, policy_guard, text, unrelated, web_rules,
};

use crate::bundle::{Opened, SuiteBundleArg};
use crate::cli::Json;
use crate::exit;
use crate::failure::Failure;
use crate::out::{self, Out};

const EXAMPLES: &str = "\
Examples:
  portcullis eval eicu-ac --data eicu_ac/ --from code
  portcullis eval mind2web-sc --data mind2web_sc.jsonl
  portcullis eval agentdojo --data agentdojo_invariant/
  portcullis eval mind2web-sc --data sets/ --bundle my-bundle \\
      --json report.json --predictions out.jsonl
  portcullis eval text --data sets/

The data is not part of the program: --data names a file, or a folder whose files are read in the order of their \
names, gzip or not. Labels are read for scoring only.

Exit codes: 0 it ran to the end, 2 there was no record to judge, 3 the data could not be read.";

const WORLDS_EXAMPLES: &str = "\
Examples:
  portcullis eval worlds --data sets/
  portcullis eval worlds --data sets/ --only library --predictions library.jsonl
  portcullis eval worlds --data sets/ --totals-only kitchen --json report.json
  portcullis eval worlds --data sets/ --metamorphic

Files are known by the shape of their records: runs (`source`, `kind`, `messages`), cases (`class`, `expect`, \
`messages`), honest texts (`source`, `text`), prompts (the same in a folder `prompts`), and runs of AgentDojo, \
AgentDyn, InjecAgent, ASB and tau. A call that would be denied or held gets no result, and the record goes on.

A name is that of a source or of a folder. `--totals-only` keeps a world unseen by whoever tunes.";

/// Measure a bundle on a public data set
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    suite: Suite,
}

#[derive(Debug, clap::Subcommand)]
enum Suite {
    /// Roles over health records, for an agent that answers questions with code
    #[command(name = eicu_ac::NAME)]
    #[command(after_help = "Examples:\n  portcullis eval eicu-ac --data eicu_ac/ --from code")]
    EicuAc {
        #[command(flatten)]
        common: Common,
        /// What is judged: the columns that the record says are needed, or the last code of the agent's log
        #[arg(long, value_enum, default_value_t = From::Code)]
        from: From,
        #[command(flatten)]
        more: More,
    },
    /// Rules about a user's profile for a web agent
    #[command(name = mind2web_sc::NAME)]
    #[command(after_help = "Examples:\n  portcullis eval mind2web-sc --data mind2web_sc.jsonl")]
    Mind2WebSc {
        #[command(flatten)]
        common: Common,
        #[command(flatten)]
        more: More,
    },
    /// Recorded runs of 17 agents in an office, with one attack on every task and without
    #[command(name = Name::AgentDojo.as_str())]
    #[command(after_help = "Examples:\n  portcullis eval agentdojo --data agentdojo_invariant/ --limit 194")]
    AgentDojo(recorded::Args),
    /// Recorded runs with newer attacks, where third parties also ask for things that are wanted
    #[command(name = Name::AgentDyn.as_str())]
    #[command(after_help = "Examples:\n  portcullis eval agentdyn --data agentdyn/")]
    AgentDyn(recorded::Args),
    /// Recorded runs in which a tool's result says what it wants, without a marker
    #[command(name = Name::InjecAgent.as_str())]
    #[command(after_help = "Examples:\n  portcullis eval injecagent --data injecagent/")]
    InjecAgent(recorded::Args),
    /// Recorded runs in which a tool's result tells the agent to use one more tool, and clean ones
    #[command(name = Name::Asb.as_str())]
    #[command(after_help = "Examples:\n  portcullis eval asb --data asb/")]
    Asb(recorded::Args),
    /// Recorded runs without attack, of the sets above and of tau-bench and tau2
    #[command(name = Name::Benign.as_str())]
    #[command(after_help = "Examples:\n  portcullis eval benign --data sets/")]
    Benign(recorded::Args),
    /// Recorded runs of many kinds of agents, cases, honest texts and prompts, in one table
    #[command(name = portcullis_eval::worlds::NAME)]
    #[command(after_help = WORLDS_EXAMPLES)]
    Worlds(worlds::Args),
    /// Every suite whose data is there, in one table
    #[command(name = portcullis_eval::all::NAME)]
    #[command(
        after_help = "Examples:\n  portcullis eval all --data sets/\n  portcullis eval all --data sets/ --json all.json"
    )]
    All(all::Args),
    /// Innocent prompts that look like attacks, and attacks, before the detector of inputs
    #[command(name = text::NAME)]
    #[command(after_help = "Examples:\n  portcullis eval text --data sets/")]
    Text(TextArgs),
    /// Replies of models to instructions, against the verdicts of the published grader
    #[command(name = ifeval::NAME)]
    #[command(after_help = "Examples:\n  portcullis eval ifeval --data ifeval/ --predictions follow.jsonl")]
    Ifeval(contracts::Args),
    /// Replies with statements about each, checked, repaired by code or by strategies with a model, and checked again
    #[command(name = policy_guard::NAME)]
    #[command(
        after_help = "Examples:\n  portcullis eval policy-guard --data sample_responses.jsonl \\\n      --plot compliance.svg"
    )]
    PolicyGuard(contracts::Plotted),
    /// Programs that a model writes for every record, and what they are compared with
    #[command(name = portcullis_eval::guardagent::NAME)]
    #[command(after_help = guardagent::EXAMPLES)]
    Guardagent(guardagent::Args),
    /// Claims that something is done, in the last replies of recorded runs, and whether the record shows it
    #[command(name = claims::NAME)]
    #[command(after_help = "Examples:\n  portcullis eval claims --data tau2_retail_claude_runs/")]
    Claims(contracts::Args),
    /// Rehearsed conversations, harmless and harmful, with the level that each must reach
    #[command(after_help = "Examples:\n  portcullis eval scenarios --data examples/scenarios")]
    Scenarios(scenarios::Args),
    /// The rehearsed conversations without safeguards, with those before, during and after an action
    #[command(after_help = "Examples:\n  portcullis eval ablation --data examples/scenarios")]
    Ablation(scenarios::Parts),
    /// What is left of the protection when a guard is dropped, delayed or wrong, or the ledger is blocked
    #[command(after_help = "Examples:\n  portcullis eval chaos --data examples/scenarios")]
    Chaos(scenarios::Parts),
}

/// What the detector is measured on.
#[derive(Debug, clap::Args)]
pub(crate) struct TextArgs {
    /// The data: a file or folder with those of NotInject, XSTest and Tensor Trust
    #[arg(long, value_name = "PATH")]
    data: PathBuf,
    /// Another model of the override head than the shipped one
    #[arg(long, value_name = "M")]
    model: Option<PathBuf>,
    /// Write the report as JSON to a file; `-` for standard output
    #[arg(long, value_name = "F", value_parser = Json::file, default_value = Json::NONE, hide_default_value = true)]
    json: Json,
    /// Write one line a record: whether it was flagged, and the model's score
    #[arg(long, value_name = "F.jsonl")]
    predictions: Option<PathBuf>,
}

/// What a record of eICU-AC is judged by.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum From {
    /// The columns that the record says are needed
    Access,
    /// The last code of the agent's log
    Code,
}

/// What every suite understands.
#[derive(Debug, clap::Args)]
pub(crate) struct Common {
    /// The data: a file or folder
    #[arg(long, value_name = "PATH")]
    data: PathBuf,
    #[command(flatten)]
    bundle: SuiteBundleArg,
    /// Write the report as JSON to a file; `-` for standard output
    #[arg(long, value_name = "F", value_parser = Json::file, default_value = Json::NONE, hide_default_value = true)]
    json: Json,
    /// Write one line a record: what was decided
    #[arg(long, value_name = "F.jsonl")]
    predictions: Option<PathBuf>,
}

/// What a decision is timed among.
#[derive(Debug, clap::Args)]
pub(crate) struct More {
    /// Add so many access policies about other things, to see what they add to a decision
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    unrelated: usize,
}

pub(crate) fn run(args: &Args) -> Result<u8, Failure> {
    match &args.suite {
        Suite::EicuAc { common, from: From::Access, more } => {
            common.run(eicu_ac::NAME, health_records::files, more, eicu_ac::run_access)
        }
        Suite::EicuAc { common, from: From::Code, more } => {
            common.run(eicu_ac::NAME, health_records::files, more, eicu_ac::run_code)
        }
        Suite::Text(args) => args.run(),
        Suite::Ifeval(args) => args.ifeval(),
        Suite::PolicyGuard(args) => args.run(),
        Suite::Guardagent(args) => args.run(),
        Suite::Claims(args) => args.claims(),
        Suite::Scenarios(args) => args.run(),
        Suite::Ablation(parts) => parts.ablation(),
        Suite::Chaos(parts) => parts.chaos(),
        Suite::Mind2WebSc { common, more } => {
            common.run(mind2web_sc::NAME, web_rules::files, more, mind2web_sc::run)
        }
        Suite::AgentDojo(args) => args.run(Name::AgentDojo),
        Suite::AgentDyn(args) => args.run(Name::AgentDyn),
        Suite::InjecAgent(args) => args.run(Name::InjecAgent),
        Suite::Asb(args) => args.run(Name::Asb),
        Suite::Benign(args) => args.run(Name::Benign),
        Suite::Worlds(args) => args.run(),
        Suite::All(args) => args.run(),
    }
}

type Files = std::collections::BTreeMap<String, Vec<u8>>;

impl Common {
    fn predictions(&self) -> Result<Predictions, Failure> {
        match &self.predictions {
            Some(path) => Predictions::create(path).map_err(|error| unwritable(path, &error)),
            None => Ok(Predictions::none()),
        }
    }

    fn run(
        &self,
        suite: &str,
        shipped: fn() -> Files,
        more: &More,
        judge: fn(Job<'_>) -> Result<Report, EvalError>,
    ) -> Result<u8, Failure> {
        let Opened { bundle, .. } = match more.unrelated {
            0 => self.bundle.open_or(shipped)?,
            count => self.bundle.open_with(shipped, unrelated::FILE, unrelated::policies(count))?,
        };
        let data = match Data::at(&self.data) {
            Ok(data) => data,
            Err(error) => {
                skipped(suite, 0)?;
                return Err(
                    Failure::unreadable(error).help("--data takes the file or folder of the data set")
                );
            }
        };
        let predictions = self.predictions()?;
        let bar = progress(data.bytes);
        let job = Job { data, bundle, predictions, progress: &mut |bytes| bar.set_position(bytes) };
        let report = judge(job);
        bar.finish_and_clear();
        let report = report.map_err(Failure::unreadable)?;
        if report.judged == 0 {
            let unread = report.skipped.iter().map(|skipped| skipped.count).sum();
            skipped(suite, unread)?;
            return Ok(exit::INCOMPLETE);
        }
        match &self.json {
            Json::File(path) if path == Path::new("-") => {
                let mut out = Out::new();
                out.json(&report)?;
                out.finish()?;
            }
            Json::File(path) => {
                write_report(path, &report).map_err(|error| unwritable(path, &error))?;
                show(&report)?;
            }
            Json::No | Json::Lines => show(&report)?,
        }
        Ok(exit::YES)
    }
}

impl TextArgs {
    fn run(&self) -> Result<u8, Failure> {
        let data = Data::at(&self.data).map_err(|error| {
            Failure::unreadable(error).help("--data takes the file or folder of the data set")
        })?;
        let shipped = Detector::shipped().map_err(Failure::unreadable)?;
        let given = match &self.model {
            Some(path) => Some(with_model(shipped, path)?),
            None => None,
        };
        let predictions = match &self.predictions {
            Some(path) => Predictions::create(path).map_err(|error| unwritable(path, &error))?,
            None => Predictions::none(),
        };
        let bar = progress(data.bytes);
        let detector = given.as_ref().unwrap_or(shipped);
        let report = text::run(&data, detector, predictions, &mut |bytes| bar.set_position(bytes));
        bar.finish_and_clear();
        let report = report.map_err(Failure::unreadable)?;
        if report.judged == 0 {
            skipped(text::NAME, report.skipped.iter().map(|skipped| skipped.count).sum())?;
            return Ok(exit::INCOMPLETE);
        }
        tell(&self.json, &report, || show_text(&report))
    }
}

/// The shipped detector with another model of the override head.
fn with_model(shipped: &Detector, path: &Path) -> Result<Detector, Failure> {
    let unreadable =
        |error: &dyn std::fmt::Display| Failure::unreadable(format!("`{}`: {error}", path.display()));
    let bytes = std::fs::read(path).map_err(|error| unreadable(&error))?;
    let model = Model::from_bytes(&bytes).map_err(|error| unreadable(&error))?;
    Detector::with(shipped.model(Head::Order).clone(), model).map_err(|error| unreadable(&error))
}

fn show_text(report: &text::Report) -> Result<(), Failure> {
    let mut out = Out::new();
    let strong = out::STRONG;
    for (number, line) in report.table().lines().iter().enumerate() {
        match number {
            0 => out.line(format_args!("{strong}{line}{strong:#}"))?,
            _ => out.line(format_args!("{line}"))?,
        }
    }
    let (p50, p99) = (report.texts.p50_us, report.texts.p99_us);
    out.line(format_args!(""))?;
    out.line(format_args!("95 % intervals by Wilson; a text took {p50:.1} us p50, {p99:.1} us p99"))?;
    out.line(format_args!("model {}, threshold {:.4}", report.recipe, report.threshold))?;
    out.finish()
}

/// Writes JSON, or shows the report, or both.
fn tell<R: serde::Serialize>(
    json: &Json,
    report: &R,
    show: impl FnOnce() -> Result<(), Failure>,
) -> Result<u8, Failure> {
    match json {
        Json::File(path) if path == Path::new("-") => {
            let mut out = Out::new();
            out.json(report)?;
            out.finish()?;
        }
        Json::File(path) => {
            write_report(path, report).map_err(|error| unwritable(path, &error))?;
            show()?;
        }
        Json::No | Json::Lines => show()?,
    }
    Ok(exit::YES)
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    Failure::unreadable(format!("cannot write `{}`: {error}", path.display()))
}

fn write_report(path: &Path, report: &impl serde::Serialize) -> io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    serde_json::to_writer_pretty(&mut file, report)?;
    file.write_all(b"\n")?;
    file.flush()
}

fn progress(bytes: u64) -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::with_draw_target(Some(bytes), ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("{wide_bar} {percent}%  {eta}");
    // Only a wrong template gives the default.
    bar.with_style(style.unwrap_or(ProgressStyle::default_bar()))
}

/// Why a suite of a whole folder did not run; says that nothing was judged where the folder cannot be read.
fn failed(suite: &str, error: EvalError) -> Result<Failure, Failure> {
    let unread = matches!(error, EvalError::Data(_));
    let failure = Failure::unreadable(error);
    if unread {
        skipped(suite, 0)?;
        return Ok(failure.help("--data takes a folder, which is searched for data sets"));
    }
    Ok(failure)
}

/// Says that nothing was judged.
fn skipped(suite: &str, unread: usize) -> Result<(), Failure> {
    let notice = out::NOTICE;
    let mut out = Out::new();
    let unread = out::count(unread, "record", "records");
    out.line(format_args!("{notice}SKIPPED{notice:#} {suite}: 0 records judged, {unread} of another form"))?;
    out.finish()
}

fn show(report: &Report) -> Result<(), Failure> {
    let mut out = Out::new();
    let strong = out::STRONG;
    for (number, line) in report.table().lines().iter().enumerate() {
        match number {
            0 => out.line(format_args!("{strong}{line}{strong:#}"))?,
            _ => out.line(format_args!("{line}"))?,
        }
    }
    out.line(format_args!(""))?;
    for skipped in &report.skipped {
        let notice = out::NOTICE;
        let records = out::count(skipped.count, "record", "records");
        out.line(format_args!("{notice}SKIPPED{notice:#} {records}: {}", skipped.why))?;
    }
    for note in &report.notes {
        out.line(format_args!("{note}"))?;
    }
    let (p50, p99) = (report.decisions.p50_us, report.decisions.p99_us);
    out.line(format_args!("95 % intervals by Wilson; a decision took {p50:.1} us p50, {p99:.1} us p99"))?;
    let (p50, p99) = (report.access.p50_us, report.access.p99_us);
    out.line(format_args!(
        "of that, reading effects and asking the access policies {p50:.1} us p50, {p99:.1} us p99"
    ))?;
    out.line(format_args!("bundle {}", report.bundle))?;
    out.line(format_args!("configuration {}", report.configuration))?;
    out.finish()
}
