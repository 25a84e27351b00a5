//! Recorded runs of many kinds of agents, in one table.

use std::path::PathBuf;

use portcullis_eval::agent_bundle;
use portcullis_eval::predictions::Predictions;
use portcullis_eval::worlds::names::Choice;
use portcullis_eval::worlds::table::Report;
use portcullis_eval::worlds::{self, Job};

use super::{failed, progress, skipped, tell, unwritable};
use crate::bundle::{Opened, SuiteBundleArg};
use crate::cli::Json;
use crate::exit;
use crate::failure::Failure;
use crate::out::{self, Out};

/// What `eval worlds` understands.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The data: a folder that is searched for recorded runs, cases, texts and prompts
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    #[command(flatten)]
    bundle: SuiteBundleArg,
    /// Judge this world and no other; can be given more than once
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Leave this world out; can be given more than once
    #[arg(long, value_name = "NAME")]
    leave_out: Vec<String>,
    /// Tell nothing but totals of this world: no predictions, no rules; can be given more than once
    #[arg(long, value_name = "NAME")]
    totals_only: Vec<String>,
    /// Hold every run against variants of it that must not change a verdict, and print the violations
    #[arg(long)]
    metamorphic: bool,
    /// Write the report as JSON to a file; `-` for standard output
    #[arg(long, value_name = "F", value_parser = Json::file, default_value = Json::NONE, hide_default_value = true)]
    json: Json,
    /// Write one line a run, text or prompt: what was decided; with --metamorphic one line a violation
    #[arg(long, value_name = "F.jsonl")]
    predictions: Option<PathBuf>,
}

impl Args {
    pub(super) fn run(&self) -> Result<u8, Failure> {
        let Opened { bundle, .. } = self.bundle.open_or(agent_bundle::files)?;
        let predictions = match &self.predictions {
            Some(path) => Predictions::create(path).map_err(|error| unwritable(path, &error))?,
            None => Predictions::none(),
        };
        let bar = progress(0);
        let job = Job {
            folder: self.data.clone(),
            settings: bundle,
            choice: Choice {
                only: self.only.clone(),
                leave_out: self.leave_out.clone(),
                totals_only: self.totals_only.clone(),
            },
            predictions,
            progress: &mut |done, of| {
                bar.set_length(of);
                bar.set_position(done);
            },
        };
        let report = if self.metamorphic { worlds::run_metamorphic(job) } else { worlds::run(job) };
        bar.finish_and_clear();
        let report = match report {
            Ok(report) => report,
            Err(error) => return Err(failed(worlds::NAME, error)?),
        };
        if report.judged == 0 {
            skipped(worlds::NAME, report.skipped.iter().map(|skipped| skipped.count).sum())?;
            return Ok(exit::INCOMPLETE);
        }
        tell(&self.json, &report, || show(&report, self.metamorphic))
    }
}

fn show(report: &Report, metamorphic: bool) -> Result<(), Failure> {
    let mut out = Out::new();
    for line in report.table().markdown(1) {
        out.line(format_args!("{}", out::clean_line(&line)))?;
    }
    out.line(format_args!(""))?;
    for skipped in &report.skipped {
        let notice = out::NOTICE;
        let records = out::count(skipped.count, "record", "records");
        out.line(format_args!("{notice}SKIPPED{notice:#} {records}: {}", out::clean_line(&skipped.why)))?;
    }
    match metamorphic {
        true => out.line(format_args!("95 % intervals by Wilson, over all runs and of the worst world"))?,
        false => out.line(format_args!(
            "95 % intervals by Wilson; of suites and of characters by cluster bootstrap over tasks and texts"
        ))?,
    }
    let judged = match metamorphic {
        true => out::count(report.judged, "pair of runs", "pairs of runs"),
        false => out::count(report.judged, "record", "records"),
    };
    out.line(format_args!("{judged} judged in {:.1} s", report.seconds))?;
    out.line(format_args!("settings {}", report.bundle))?;
    out.line(format_args!("configuration {}", report.configuration))?;
    out.finish()
}
