//! Rehearsed conversations, and what is left of their protection without some of its parts.

use std::path::PathBuf;
use std::sync::Arc;

use portcullis_eval::report::Table;
use portcullis_eval::scenarios::{self, Job, Report};
use portcullis_eval::{ablation, agent_bundle, chaos};

use super::{Common, tell};
use crate::bundle::{Opened, SuiteBundleArg};
use crate::cli::Json;
use crate::exit;
use crate::failure::Failure;
use crate::out::{self, Out};

/// `portcullis eval scenarios`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    common: Common,
    /// Run the paraphrases in `unseen/` instead; only totals are told
    #[arg(long)]
    unseen: bool,
    /// Sensitivity of the monitors, 0 to 1, instead of the bundle's
    #[arg(long, value_name = "S", value_parser = fraction)]
    sensitivity: Option<f64>,
}

/// `portcullis eval ablation` and `chaos`.
#[derive(Debug, clap::Args)]
pub(super) struct Parts {
    /// The folder with the scenarios
    #[arg(long, value_name = "PATH")]
    data: PathBuf,
    #[command(flatten)]
    bundle: SuiteBundleArg,
    /// Write the report as JSON to a file; `-` for standard output
    #[arg(long, value_name = "F", value_parser = Json::file, default_value = Json::NONE, hide_default_value = true)]
    json: Json,
}

fn fraction(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if (0.0..=1.0).contains(&value) => Ok(value),
        _ => Err("a sensitivity is a number from 0 to 1, such as 0.5".to_owned()),
    }
}

impl Args {
    pub(super) fn run(&self) -> Result<u8, Failure> {
        let Opened { bundle, .. } = self.common.bundle.open_or(agent_bundle::stopping)?;
        let job = Job {
            folder: self.common.data.clone(),
            unseen: self.unseen,
            sensitivity: self.sensitivity,
            bundle,
            pipeline: Arc::new(portcullis_session::policy::pipeline()),
            predictions: self.common.predictions()?,
        };
        let report = scenarios::run(job).map_err(Failure::unreadable)?;
        tell(&self.common.json, &report, || show(&report))
    }
}

impl Parts {
    /// Leaves parts of the protection out.
    pub(super) fn ablation(&self) -> Result<u8, Failure> {
        let Opened { bundle, .. } = self.bundle.open_or(agent_bundle::stopping)?;
        let report = ablation::run(&self.data, &bundle).map_err(Failure::unreadable)?;
        tell(&self.json, &report, || {
            lines(&report.table(), &report.notes(), [&report.bundle, &report.configuration])
        })
    }

    /// Breaks parts of the protection.
    pub(super) fn chaos(&self) -> Result<u8, Failure> {
        let Opened { bundle, .. } = self.bundle.open_or(agent_bundle::stopping)?;
        let report = chaos::run(&self.data, &bundle).map_err(Failure::unreadable)?;
        let code = if report.failed() { exit::NO } else { exit::YES };
        tell(&self.json, &report, || {
            lines(&report.table(), &report.notes(), [&report.bundle, &report.configuration])
        })?;
        Ok(code)
    }
}

fn show(report: &Report) -> Result<(), Failure> {
    let head = ["", "misuse", "at level", "stopped", "early", "benign", "stopped", "noisy", "out of bounds"];
    let rows = report.lines.iter().map(|(name, figures)| {
        let numbers = [
            figures.misuse,
            figures.reached,
            figures.stopped,
            figures.early,
            figures.benign,
            figures.benign_stopped,
            figures.benign_noisy,
            figures.out_of_bounds,
        ];
        std::iter::once(name.clone()).chain(numbers.map(|number| number.to_string())).collect()
    });
    let table = Table { head: head.map(str::to_owned).to_vec(), rows: rows.collect() };
    let mut notes: Vec<String> =
        report.problems.iter().map(|problem| format!("{}: {}", problem.run, problem.what)).collect();
    let (p50, p99) = (report.decisions.p50_us, report.decisions.p99_us);
    notes.push(format!(
        "sensitivity {}; a decision took {p50:.1} us p50, {p99:.1} us p99",
        report.sensitivity
    ));
    lines(&table, &notes, [&report.bundle, &report.configuration])
}

fn lines(table: &Table, notes: &[String], [bundle, configuration]: [&str; 2]) -> Result<(), Failure> {
    let mut out = Out::new();
    let strong = out::STRONG;
    for (number, line) in table.lines().iter().enumerate() {
        match number {
            0 => out.line(format_args!("{strong}{line}{strong:#}"))?,
            _ => out.line(format_args!("{line}"))?,
        }
    }
    out.line(format_args!(""))?;
    for note in notes {
        out.line(format_args!("{note}"))?;
    }
    out.line(format_args!("bundle {bundle}"))?;
    out.line(format_args!("configuration {configuration}"))?;
    out.finish()
}
