//! Suites of recorded runs.

use std::path::{Path, PathBuf};

use portcullis_eval::agent_bundle;
use portcullis_eval::data::Data;
use portcullis_eval::report::Table;
use portcullis_eval::trajectory::outline::Outline;
use portcullis_eval::trajectory::splice::Place;
use portcullis_eval::trajectory::suites::{self, Job, Name};
use portcullis_eval::trajectory::switches::Switches;

use super::{Common, progress, skipped, unwritable, write_report};
use crate::bundle::Opened;
use crate::cli::Json;
use crate::exit;
use crate::failure::Failure;
use crate::out::{self, Out};

/// Default seed of `--dropout`.
const SEED: u64 = 1;

/// What every suite of recorded runs understands.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    common: Common,
    /// Folder with the definitions of tools and goals, if they are not beside the data
    #[arg(long, value_name = "DIR")]
    definitions: Option<PathBuf>,
    /// Read no more than so many records
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Leave the goal alone of what was injected, without the template around it
    #[arg(long)]
    without_template: bool,
    /// Put goals of the set that no recorded run has into runs without attack, and judge those (agentdojo, agentdyn)
    #[arg(long, value_enum, value_name = "PLACE", conflicts_with = "without_template")]
    splice: Option<Splice>,
    /// Hold on weaker evidence
    #[arg(long)]
    strict: bool,
    /// Let no text explain a call: what is left where an order is written so that nobody finds it
    #[arg(long)]
    blind: bool,
    /// Let no text count as posing: what is left where an attack does not give itself away
    #[arg(long)]
    unposed: bool,
    /// Drop a share of the verb lexicon, 0 to 1
    #[arg(long, value_name = "SHARE", value_parser = share)]
    dropout: Option<f64>,
    /// Which verbs `--dropout` drops
    #[arg(long, value_name = "N", default_value_t = SEED, requires = "dropout")]
    seed: u64,
}

/// Where `--splice` puts a goal.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Splice {
    /// As a paragraph of its own
    OwnLine,
    /// In the middle of a sentence
    MidSentence,
}

fn share(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("a share is a number from 0 to 1, such as 0.2".to_owned()),
    }
}

impl Args {
    pub(super) fn run(&self, suite: Name) -> Result<u8, Failure> {
        let Opened { bundle, .. } = self.common.bundle.open_or(agent_bundle::files)?;
        let data = match Data::at(&self.common.data) {
            Ok(data) => data.ending(&[".jsonl"]),
            Err(error) => {
                skipped(suite.as_str(), 0)?;
                return Err(
                    Failure::unreadable(error).help("--data takes the file or folder of the data set")
                );
            }
        };
        let bar = progress(data.bytes);
        let job = Job {
            data,
            definitions: self.definitions.clone(),
            settings: bundle,
            switches: Switches {
                strict: self.strict,
                blind: self.blind,
                unposed: self.unposed,
                dropout: self.dropout.map(|share| (share, self.seed)),
            },
            without_template: self.without_template,
            splice: self.splice.map(|place| match place {
                Splice::OwnLine => Place::OwnLine,
                Splice::MidSentence => Place::MidSentence,
            }),
            limit: self.limit,
            predictions: self.common.predictions()?,
            progress: &mut |bytes| bar.set_position(bytes),
        };
        let outline = suites::run(suite, job);
        bar.finish_and_clear();
        let outline = outline.map_err(Failure::unreadable)?;
        if outline.judged == 0 {
            let unread = outline.skipped.iter().map(|skipped| skipped.count).sum();
            skipped(suite.as_str(), unread)?;
            return Ok(exit::INCOMPLETE);
        }
        match &self.common.json {
            Json::File(path) if path == Path::new("-") => {
                let mut out = Out::new();
                out.json(&outline)?;
                out.finish()?;
            }
            Json::File(path) => {
                write_report(path, &outline).map_err(|error| unwritable(path, &error))?;
                show(&outline)?;
            }
            Json::No | Json::Lines => show(&outline)?,
        }
        Ok(exit::YES)
    }
}

fn table(out: &mut Out, table: &Table) -> Result<(), Failure> {
    let strong = out::STRONG;
    for (number, line) in table.lines().iter().enumerate() {
        match number {
            0 => out.line(format_args!("{strong}{line}{strong:#}"))?,
            _ => out.line(format_args!("{line}"))?,
        }
    }
    out.line(format_args!(""))
}

fn show(outline: &Outline) -> Result<(), Failure> {
    let mut out = Out::new();
    table(&mut out, &outline.table())?;
    table(&mut out, &outline.groups())?;
    if !outline.rules.is_empty() {
        table(&mut out, &outline.rules())?;
    }
    if !outline.published.is_empty() {
        table(&mut out, &outline.published_table())?;
    }
    for arm in &outline.arms {
        let notice = out::NOTICE;
        out.line(format_args!("{notice}ARM{notice:#} {arm}"))?;
    }
    for skipped in &outline.skipped {
        let notice = out::NOTICE;
        let records = out::count(skipped.count, "record", "records");
        out.line(format_args!("{notice}SKIPPED{notice:#} {records}: {}", skipped.why))?;
    }
    for note in &outline.notes {
        out.line(format_args!("{note}"))?;
    }
    let (p50, p99) = (outline.calls.p50_us, outline.calls.p99_us);
    out.line(format_args!(
        "95 % intervals by cluster bootstrap over tasks; a call took {p50:.1} us p50, {p99:.1} us p99, its result included"
    ))?;
    out.line(format_args!("settings {}", outline.bundle))?;
    out.line(format_args!("configuration {}", outline.configuration))?;
    out.finish()
}
