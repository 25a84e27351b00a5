//! Suites of replies and what was demanded of them.

use std::path::PathBuf;

use portcullis_assist::{Clock, Helpers, Model, Settings, Strategy, SystemClock};
use portcullis_eval::data::Data;
use portcullis_eval::policy_guard::Arm;
use portcullis_eval::predictions::Predictions;
use portcullis_eval::report::{Skipped, Table, Timing};
use portcullis_eval::suite::EvalError;
use portcullis_eval::{claims, ifeval, policy_guard};
use serde::Serialize;

use super::{progress, skipped, tell, unwritable};
use crate::cli::Json;
use crate::exit;
use crate::failure::Failure;
use crate::model::{ModelArgs, Opened};
use crate::out::{self, Out, clean_line, count};

/// What these suites understand; no bundle is asked.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The data: a file or folder
    #[arg(long, value_name = "PATH")]
    data: PathBuf,
    /// Write the report as JSON to a file; `-` for standard output
    #[arg(long, value_name = "F", value_parser = Json::file, default_value = Json::NONE, hide_default_value = true)]
    json: Json,
    /// Write one line a record: what was decided
    #[arg(long, value_name = "F.jsonl")]
    predictions: Option<PathBuf>,
}

/// What replies with statements can be asked for beside that.
#[derive(Debug, clap::Args)]
pub(super) struct Plotted {
    #[command(flatten)]
    args: Args,
    /// Draw compliance by the number of statements, a line a strategy
    #[arg(long, value_name = "F.svg")]
    plot: Option<PathBuf>,
    /// Repair by this strategy; repeat it for more, of which predictions and families are of the first: `mechanical`,
    /// `batch`, `iterative`, `retry`, `best-of-n`, `best-of-n-oracle`, `map-reduce`
    #[arg(long, default_value = "mechanical")]
    strategy: Vec<Strategy>,
    /// Most rewrites of `retry` and `best-of-n`
    #[arg(long, value_name = "N", default_value_t = Strategy::DEFAULT_REWRITES)]
    candidates: u32,
    /// Refuse a rewrite that breaks a statement that held, whatever it mends
    #[arg(long)]
    no_degrade: bool,
    #[command(flatten)]
    model: ModelArgs,
}

/// What both reports have.
trait Figures: Serialize {
    fn judged(&self) -> usize;
    fn skipped(&self) -> &[Skipped];
    fn table(&self) -> Table;
    /// What stands below the table.
    fn remarks(&self) -> Vec<String>;
}

impl Figures for ifeval::Report {
    fn judged(&self) -> usize {
        self.judged
    }

    fn skipped(&self) -> &[Skipped] {
        &self.skipped
    }

    fn table(&self) -> Table {
        self.table()
    }

    fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        if self.unread > 0 {
            let instructions = count(self.unread, "instruction", "instructions");
            remarks.push(format!("{instructions} could not be read and count as not followed"));
        }
        remarks.push(timing("a check", self.checks));
        remarks
    }
}

impl Figures for claims::Report {
    fn judged(&self) -> usize {
        self.judged
    }

    fn skipped(&self) -> &[Skipped] {
        &self.skipped
    }

    fn table(&self) -> Table {
        self.table()
    }

    fn remarks(&self) -> Vec<String> {
        vec![
            "95 % intervals by Wilson".to_owned(),
            "Flagged: the last reply may say that something was done, and no call of the run shows it."
                .to_owned(),
        ]
    }
}

impl Figures for policy_guard::Report {
    fn judged(&self) -> usize {
        self.judged
    }

    fn skipped(&self) -> &[Skipped] {
        &self.skipped
    }

    fn table(&self) -> Table {
        self.table()
    }

    fn remarks(&self) -> Vec<String> {
        let (recognised, edits) = (self.recognised, &self.edits);
        let mut remarks = vec![
            format!("{} of {} statements recognised, {} broken", recognised.hits, recognised.of, self.broken),
            format!(
                "{} changed, edit ratio {:.3} p50, {:.3} p75, {:.3} p90, {:.3} at most",
                count(edits.changed, "reply", "replies"),
                edits.p50,
                edits.p75,
                edits.p90,
                edits.max
            ),
            timing("a repair", self.repairs),
        ];
        for one in self.strategies.iter().filter(|one| one.spent.calls > 0) {
            let mut remark =
                format!("{}: {} broken, {}", one.strategy, one.broken, crate::model::used(&one.spent));
            for (number, one, many) in [
                (one.out_of_budget, "repair beyond the budget", "repairs beyond the budget"),
                (one.unanswered, "repair without an answer", "repairs without an answer"),
            ] {
                if number > 0 {
                    remark.push_str(&format!(", {}", count(number, one, many)));
                }
            }
            remarks.push(remark);
        }
        remarks.push(String::new());
        for left in &self.left {
            remarks.push(format!("left {} {}: {}", left.count, left.family, clean_line(&left.reason)));
        }
        remarks.push(String::new());
        for clash in &self.conflicts {
            remarks.push(format!("conflict in {}: {}", clash.key, clean_line(&clash.reason)));
        }
        remarks
    }
}

fn timing(what: &str, times: Timing) -> String {
    format!("95 % intervals by Wilson; {what} took {:.1} us p50, {:.1} us p99", times.p50_us, times.p99_us)
}

impl Args {
    pub(super) fn ifeval(&self) -> Result<u8, Failure> {
        self.run(ifeval::NAME, |data, predictions, done| ifeval::run(data, predictions, done), |_| Ok(()))
    }

    pub(super) fn claims(&self) -> Result<u8, Failure> {
        self.run(claims::NAME, |data, predictions, done| claims::run(data, predictions, done), |_| Ok(()))
    }

    /// `also` gets the report before it is shown.
    fn run<R: Figures>(
        &self,
        suite: &str,
        judge: impl FnOnce(&Data, Predictions, &mut dyn FnMut(u64)) -> Result<R, EvalError>,
        also: impl FnOnce(&R) -> Result<(), Failure>,
    ) -> Result<u8, Failure> {
        let data = match Data::at(&self.data) {
            Ok(data) => data.ending(&[".jsonl"]),
            Err(error) => {
                skipped(suite, 0)?;
                return Err(
                    Failure::unreadable(error).help("--data takes the file or folder of the data set")
                );
            }
        };
        let predictions = match &self.predictions {
            Some(path) => Predictions::create(path).map_err(|error| unwritable(path, &error))?,
            None => Predictions::none(),
        };
        let bar = progress(data.bytes);
        let report = judge(&data, predictions, &mut |bytes| bar.set_position(bytes));
        bar.finish_and_clear();
        let report = report.map_err(Failure::unreadable)?;
        if report.judged() == 0 {
            skipped(suite, report.skipped().iter().map(|skipped| skipped.count).sum())?;
            return Ok(exit::INCOMPLETE);
        }
        also(&report)?;
        tell(&self.json, &report, || show(&report))
    }
}

impl Plotted {
    pub(super) fn run(&self) -> Result<u8, Failure> {
        let opened = self.model.open()?;
        let metered = opened.as_ref().map(Opened::metered);
        let system = SystemClock::new();
        let clock: &dyn Clock = opened.as_ref().map_or(&system, Opened::clock);
        let helpers = Helpers { model: metered.as_ref().map(|metered| metered as &dyn Model), program: None };
        let mut arms = Vec::new();
        for strategy in &self.strategy {
            if opened.is_none() && *strategy != Strategy::Mechanical {
                let message =
                    format!("the strategy `{strategy}` asks a model for rewrites, and none is named");
                return Err(Failure::usage(message)
                    .help("name one with `--model http://127.0.0.1:8080/v1/NAME`, or a cassette"));
            }
            let mut settings = Settings {
                strategy: strategy.with_rewrites(self.candidates),
                no_degrade: self.no_degrade,
                // Statements are all that is counted here.
                post_check: false,
                ..Settings::default()
            };
            settings.budget = opened.as_ref().map(Opened::counting).unwrap_or_default();
            arms.push(Arm { settings, helpers, clock });
        }
        self.args.run(
            policy_guard::NAME,
            |data, predictions, done| policy_guard::run(data, predictions, &arms, done),
            |report| match &self.plot {
                Some(path) => std::fs::write(path, report.plot()).map_err(|error| unwritable(path, &error)),
                None => Ok(()),
            },
        )
    }
}

fn show(report: &impl Figures) -> Result<(), Failure> {
    let mut out = Out::new();
    let (strong, notice) = (out::STRONG, out::NOTICE);
    for (number, line) in report.table().lines().iter().enumerate() {
        match number {
            0 => out.line(format_args!("{strong}{line}{strong:#}"))?,
            _ => out.line(format_args!("{line}"))?,
        }
    }
    out.line(format_args!(""))?;
    for skipped in report.skipped() {
        let records = count(skipped.count, "record", "records");
        out.line(format_args!("{notice}SKIPPED{notice:#} {records}: {}", skipped.why))?;
    }
    for remark in report.remarks() {
        out.line(format_args!("{remark}"))?;
    }
    out.finish()
}
