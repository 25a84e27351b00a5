//! Every suite whose data is there, in one table.

use std::path::PathBuf;

use portcullis_eval::agent_bundle;
use portcullis_eval::all::{self, Job, Report};

use super::{failed, progress, skipped, tell};
use crate::bundle::{Opened, SuiteBundleArg};
use crate::cli::Json;
use crate::exit;
use crate::failure::Failure;
use crate::out::{self, Out};

/// What `eval all` understands.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The data: a folder that is searched for the data of every suite
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// The folder with the scenarios, which come with the source
    #[arg(long, value_name = "DIR", default_value = "examples/scenarios")]
    scenarios: PathBuf,
    #[command(flatten)]
    bundle: SuiteBundleArg,
    /// Write the report as JSON to a file; `-` for standard output
    #[arg(long, value_name = "F", value_parser = Json::file, default_value = Json::NONE, hide_default_value = true)]
    json: Json,
}

impl Args {
    pub(super) fn run(&self) -> Result<u8, Failure> {
        let Opened { bundle, .. } = self.bundle.open_or(agent_bundle::files)?;
        let stopping = self.bundle.open_or(agent_bundle::stopping)?;
        let bar = progress(0);
        let job = Job {
            folder: self.data.clone(),
            scenarios: self.scenarios.clone(),
            rehearsed_under: stopping.bundle,
            settings: bundle,
            progress: &mut |done, of| {
                bar.set_length(of);
                bar.set_position(done);
            },
        };
        let report = all::run(job);
        bar.finish_and_clear();
        let report = match report {
            Ok(report) => report,
            Err(error) => return Err(failed(all::NAME, error)?),
        };
        if report.rows.is_empty() {
            skipped(all::NAME, 0)?;
            return Ok(exit::INCOMPLETE);
        }
        tell(&self.json, &report, || show(&report))
    }
}

fn show(report: &Report) -> Result<(), Failure> {
    let mut out = Out::new();
    for line in report.table().markdown(2) {
        out.line(format_args!("{}", out::clean_line(&line)))?;
    }
    out.line(format_args!(""))?;
    out.line(format_args!(
        "95 % intervals by Wilson; of recorded suites and of characters by cluster bootstrap; {:.1} s",
        report.seconds
    ))?;
    out.line(format_args!("settings {}", report.bundle))?;
    out.line(format_args!("configuration {}", report.configuration))?;
    out.finish()
}
