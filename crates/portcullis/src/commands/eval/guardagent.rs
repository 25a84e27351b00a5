//! `portcullis eval guardagent`: programs that a model writes for every record.

use std::path::PathBuf;
use std::sync::Arc;

use portcullis_assist::Clock;
use portcullis_assist::guardagent::{Toolbox, Workers, demonstrations};
use portcullis_assist::limits::MAX_REQUEST_BYTES;
use portcullis_core::bundle::Bundle;
use portcullis_eval::data::Data;
use portcullis_eval::guardagent::{self, Arm, Asked, Job, Report, Suite, shipped};
use portcullis_eval::predictions::Predictions;
use portcullis_eval::report::Table;
use portcullis_eval::{health_records, web_rules};
use portcullis_program::pool::Pool;

use super::{progress, skipped, tell, unwritable};
use crate::bundle::SuiteBundleArg;
use crate::cli::Json;
use crate::exit;
use crate::failure::Failure;
use crate::input;
use crate::model::{ModelArgs, used};
use crate::out::{self, Out, count};

/// Longest program that is read; the engine takes shorter ones and says so.
const PROGRAM_BYTES_MAX: usize = 1 << 20;

pub(super) const EXAMPLES: &str = "\
Examples:
  portcullis eval guardagent --suite csqa \\
      --data examples/guardagent/csqa/questions.jsonl \\
      --model http://127.0.0.1:8080/v1/NAME --arm all --plot arms.svg
  portcullis eval guardagent --suite eicu-ac --data eicu_ac/ \\
      --program examples/guardagent/eicu-ac/program.star

The model writes a program for every record, which a contained worker runs. Without --arm the pipeline is measured as \
the paper has it; with --program alone, that program and no model. Labels are read for scoring only.";

/// Which records.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Records {
    /// Roles over health records
    EicuAc,
    /// Rules about a user's profile
    Mind2webSc,
    /// Four rules about answers to questions
    Csqa,
}

/// Measures the pipeline of GuardAgent.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The records
    #[arg(long)]
    suite: Records,
    /// The data: a file or folder
    #[arg(long, value_name = "PATH")]
    data: PathBuf,
    /// Only the first so many records
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Measure this, or `all` of them: `guardagent`, `model-as-guard`, `hard-coded`, `k=0` to `k=3`, `least-similar`,
    /// `no-toolbox`, `no-toolbox-no-memory`, and with --program `program`
    #[arg(long, value_name = "ARM")]
    arm: Vec<String>,
    /// Measure this guard program too, the same for all records
    #[arg(long, value_name = "F.star")]
    program: Option<PathBuf>,
    /// Guard requests instead of the shipped ones
    #[arg(long, value_name = "FILE")]
    requests: Option<PathBuf>,
    /// Specification of the target agent instead of the shipped one
    #[arg(long, value_name = "FILE")]
    specification: Option<PathBuf>,
    /// Demonstrations instead of the shipped ones: a folder of files *.toml
    #[arg(long, value_name = "DIR")]
    demonstrations: Option<PathBuf>,
    /// Let every program that ran be an example for the records after it, right or wrong
    #[arg(long)]
    remember: bool,
    #[command(flatten)]
    bundle: SuiteBundleArg,
    /// Draw LPA, LPR and EA of every arm
    #[arg(long, value_name = "F.svg")]
    plot: Option<PathBuf>,
    /// Write the report as JSON to a file; `-` for standard output
    #[arg(long, value_name = "F", value_parser = Json::file, default_value = Json::NONE, hide_default_value = true)]
    json: Json,
    /// Write one line a record and arm: what was decided
    #[arg(long, value_name = "F.jsonl")]
    predictions: Option<PathBuf>,
    #[command(flatten)]
    model: ModelArgs,
}

impl Args {
    pub(super) fn run(&self) -> Result<u8, Failure> {
        let arms = self.arms()?;
        let suite = match self.suite {
            Records::EicuAc => Suite::EicuAc,
            Records::Mind2webSc => Suite::Mind2WebSc,
            Records::Csqa => Suite::Csqa,
        };
        let data = match Data::at(&self.data) {
            Ok(data) => data,
            Err(error) => {
                skipped(guardagent::NAME, 0)?;
                return Err(
                    Failure::unreadable(error).help("--data takes the file or folder of the data set")
                );
            }
        };
        let opened = self.model.open()?;
        let metered = opened.as_ref().map(|opened| (opened, opened.metered()));
        let name = self.model.described();
        let asked = metered.as_ref().map(|(opened, model)| Asked {
            model,
            name: &name,
            clock: opened.clock() as &dyn Clock,
            counting: opened.counting(),
        });
        let pool = Pool::of_process().map_err(Failure::unreadable)?;
        let toolbox = Toolbox::read(&pool.toolbox().map_err(Failure::unreadable)?);
        let workers = Workers::new(pool);
        let given = shipped::of(suite);
        let job = Job {
            suite,
            data,
            limit: self.limit,
            bundle: self.bundle(suite)?,
            arms,
            asked,
            workers: &workers,
            toolbox,
            requests: text(self.requests.as_ref(), given.requests)?,
            specification: text(self.specification.as_ref(), given.specification)?,
            memory: match &self.demonstrations {
                Some(folder) => demonstrations(folder).map_err(Failure::unreadable)?,
                None => given.memory(),
            },
            remember: self.remember,
            program: match &self.program {
                Some(path) => Some(input::text(path, PROGRAM_BYTES_MAX)?),
                None => None,
            },
            predictions: self.predictions()?,
        };
        let report = measured(job)?;
        if report.judged == 0 {
            skipped(guardagent::NAME, report.skipped.iter().map(|skipped| skipped.count).sum())?;
            return Ok(exit::INCOMPLETE);
        }
        if let Some(path) = &self.plot {
            std::fs::write(path, report.plot()).map_err(|error| unwritable(path, &error))?;
        }
        tell(&self.json, &report, || show(&report))
    }

    /// What is measured. An arm that asks needs a model, and the program's arm a program.
    fn arms(&self) -> Result<Vec<Arm>, Failure> {
        let mut arms = Vec::new();
        for name in &self.arm {
            match name.as_str() {
                "all" => arms.extend(Arm::ASKING),
                name => arms
                    .push(name.parse().map_err(|error| Failure::usage(format!("`--arm {name}`: {error}")))?),
            }
        }
        if arms.is_empty() && (self.model.is_named() || self.program.is_none()) {
            arms.push(Arm::GuardAgent);
        }
        if self.program.is_some() && !arms.contains(&Arm::Program) {
            arms.push(Arm::Program);
        }
        if let Some(arm) = arms.iter().find(|arm| arm.asks()).filter(|_| !self.model.is_named()) {
            let message = format!("the arm `{arm}` asks a model, and none is named");
            return Err(Failure::usage(message)
                .help("name one with `--model http://127.0.0.1:8080/v1/NAME`, or give a `--program`"));
        }
        if arms.contains(&Arm::Program) && self.program.is_none() {
            return Err(Failure::usage("the arm `program` needs a program").help("name one with `--program`"));
        }
        Ok(arms)
    }

    /// By what programs are told of effects; questions touch nothing.
    fn bundle(&self, suite: Suite) -> Result<Option<Arc<Bundle>>, Failure> {
        Ok(match suite {
            Suite::EicuAc => Some(self.bundle.open_or(health_records::files)?.bundle),
            Suite::Mind2WebSc => Some(self.bundle.open_or(web_rules::files)?.bundle),
            Suite::Csqa => None,
        })
    }

    fn predictions(&self) -> Result<Predictions, Failure> {
        match &self.predictions {
            Some(path) => Predictions::create(path).map_err(|error| unwritable(path, &error)),
            None => Ok(Predictions::none()),
        }
    }
}

fn measured(job: Job<'_>) -> Result<Report, Failure> {
    let bar = progress(0);
    let report = guardagent::run(job, &mut |done, all| {
        bar.set_length(all);
        bar.set_position(done);
    });
    bar.finish_and_clear();
    report.map_err(Failure::unreadable)
}

/// A file's text, or what is shipped.
fn text(path: Option<&PathBuf>, shipped: &str) -> Result<String, Failure> {
    match path {
        Some(path) => input::text(path, MAX_REQUEST_BYTES),
        None => Ok(shipped.to_owned()),
    }
}

fn show(report: &Report) -> Result<(), Failure> {
    let mut out = Out::new();
    let (strong, notice) = (out::STRONG, out::NOTICE);
    let table = |out: &mut Out, table: &Table| -> Result<(), Failure> {
        for (number, line) in table.lines().iter().enumerate() {
            match number {
                0 => out.line(format_args!("{strong}{line}{strong:#}"))?,
                _ => out.line(format_args!("{line}"))?,
            }
        }
        out.line(format_args!(""))?;
        Ok(())
    };
    table(&mut out, &report.table())?;
    if let Some(levels) = report.levels() {
        table(&mut out, &levels)?;
    }
    for skipped in &report.skipped {
        let records = count(skipped.count, "record", "records");
        out.line(format_args!("{notice}SKIPPED{notice:#} {records}: {}", skipped.why))?;
    }
    let model = report.model.as_deref().unwrap_or("none");
    out.line(format_args!("model: {model}"))?;
    for arm in report.arms.iter().filter(|arm| arm.spent.calls > 0 || arm.unanswered > 0) {
        let unanswered = count(arm.unanswered, "record", "records");
        out.line(format_args!("{}: {unanswered} without an answer, {}", arm.arm, used(&arm.spent)))?;
    }
    for note in &report.notes {
        out.line(format_args!("{note}"))?;
    }
    out.finish()
}
