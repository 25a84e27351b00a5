//! `portcullis train`: a model of the detector from labelled texts.

use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};

use indicatif::{ProgressBar, ProgressDrawTarget};
use portcullis_detect::train::{self, Calibration, Example};
use portcullis_detect::{Head, Model, material};
use portcullis_eval::data;
use serde::Serialize;
use serde_json::Value;

use crate::cli::Global;
use crate::exit;
use crate::failure::Failure;
use crate::out::{self, Out};

const EXAMPLES: &str = "\
Examples:
  portcullis train --head order --data orders.jsonl --data more.jsonl.gz \\
      --out order.model
  portcullis train --head override --data grammar.toml --data prompts.jsonl \\
      --hold-out 5 --fpr 0.01 --out override.model

A line of data is {\"text\": \"…\", \"label\": true}: for the order head true means that the text tells its reader to do \
something, for the override head that it tries to change the rules. A file ending in .toml is a grammar from which \
sentences are drawn. The same data in the same order gives the same file.

With --hold-out N every Nth text is kept out of training; --fpr then sets the threshold on those, as `portcullis \
calibrate` does on data of its own. A model without a threshold flags nothing.

Exit codes: 0 done, 1 the data cannot give a model, 3 something could not be read or written.";

/// Train a model of the detector from labelled texts
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// What the model is to tell apart
    #[arg(long, value_enum)]
    head: HeadArg,
    /// Labelled texts, JSON Lines, gzip or not; or a grammar in TOML. May be given several times
    #[arg(long, value_name = "F", required = true)]
    data: Vec<PathBuf>,
    /// Where the model is written
    #[arg(long, value_name = "M")]
    out: PathBuf,
    /// Keep every Nth text out of training
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..), requires = "fpr")]
    hold_out: Option<u32>,
    /// Set the threshold on the texts held out, to this share of innocent ones
    #[arg(long, value_name = "RATE", requires = "hold_out")]
    fpr: Option<f64>,
}

/// The head on a command line.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(crate) enum HeadArg {
    /// For what tools return: sentences that tell the reader to do something
    Order,
    /// For what users write: sentences that try to change the rules
    Override,
}

impl From<HeadArg> for Head {
    fn from(head: HeadArg) -> Self {
        match head {
            HeadArg::Order => Self::Order,
            HeadArg::Override => Self::Override,
        }
    }
}

/// What `train` and `calibrate` tell programs.
#[derive(Debug, Serialize)]
pub(crate) struct Summary {
    head: &'static str,
    /// Digest of data and settings.
    recipe: String,
    bytes: usize,
    /// None where the model flags nothing yet.
    threshold: Option<f32>,
    fpr: f32,
    /// Sentences or texts, and how many of them are flagged.
    innocent: Option<(usize, usize)>,
    wanted: Option<(usize, usize)>,
}

impl Summary {
    pub(crate) fn of(model: &Model, bytes: usize, calibration: Option<&Calibration>) -> Self {
        Self {
            head: model.head().name(),
            recipe: model.recipe().iter().map(|byte| format!("{byte:02x}")).collect(),
            bytes,
            threshold: Some(model.threshold()).filter(|threshold| threshold.is_finite()),
            fpr: model.fpr(),
            innocent: calibration.map(|done| done.innocent),
            wanted: calibration.map(|done| done.wanted),
        }
    }

    pub(crate) fn show(&self, path: &Path, json: bool) -> Result<u8, Failure> {
        let mut out = Out::new();
        if json {
            out.json(self)?;
            out.finish()?;
            return Ok(exit::YES);
        }
        let strong = out::STRONG;
        out.line(format_args!(
            "{strong}{}{strong:#}: {} head, {} bytes, recipe {}",
            path.display(),
            self.head,
            self.bytes,
            self.recipe
        ))?;
        match (self.threshold, self.innocent, self.wanted) {
            (Some(threshold), Some(innocent), Some(wanted)) => {
                out.line(format_args!("threshold {threshold:.4}, for at most {} of the innocent", self.fpr))?;
                out.line(format_args!(
                    "flagged {} of {} innocent, {} of {} wanted",
                    innocent.1, innocent.0, wanted.1, wanted.0
                ))?;
            }
            _ => out.line(format_args!("no threshold yet: `portcullis calibrate` sets one"))?,
        }
        out.finish()?;
        Ok(exit::YES)
    }
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    let mut examples = Vec::new();
    for path in &args.data {
        examples.extend(examples_of(path)?);
    }
    let every = args.hold_out.and_then(|every| usize::try_from(every).ok());
    let (mut trained, mut held) = (Vec::new(), Vec::new());
    for (number, example) in examples.into_iter().enumerate() {
        if every.is_some_and(|every| number.is_multiple_of(every)) {
            held.push(example);
        } else {
            trained.push(example);
        }
    }
    let bar = if io::stderr().is_terminal() {
        ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr())
    } else {
        ProgressBar::hidden()
    };
    let model = train::train(args.head.into(), &trained, |done, of| {
        bar.set_length(of.try_into().unwrap_or(u64::MAX));
        bar.set_position(done.try_into().unwrap_or(u64::MAX));
    })
    .map_err(Failure::no)?;
    bar.finish_and_clear();
    let calibration = match args.fpr {
        Some(fpr) => Some(train::calibrate(model.clone(), &held, fpr).map_err(Failure::no)?),
        None => None,
    };
    let model = calibration.as_ref().map_or(model, |done| done.model.clone());
    let bytes = write(&args.out, &model)?;
    Summary::of(&model, bytes, calibration.as_ref()).show(&args.out, global.json)
}

/// Writes a model. Returns its size.
pub(crate) fn write(path: &Path, model: &Model) -> Result<usize, Failure> {
    let bytes = model.to_bytes();
    std::fs::write(path, &bytes)
        .map_err(|error| Failure::unreadable(format!("cannot write `{}`: {error}", path.display())))?;
    Ok(bytes.len())
}

/// The labelled texts of a file.
pub(crate) fn examples_of(path: &Path) -> Result<Vec<Example>, Failure> {
    if path.extension().is_some_and(|extension| extension == "toml") {
        let text = data::text(path).map_err(Failure::unreadable)?;
        return material::draw(&text)
            .map_err(|error| Failure::unreadable(format!("`{}`: {error}", path.display())));
    }
    let records = data::records(path).map_err(Failure::unreadable)?;
    records
        .into_iter()
        .enumerate()
        .map(|(number, record)| {
            let wrong = |what: &str| {
                Failure::unreadable(format!("`{}`, record {}: {what}", path.display(), number + 1))
                    .help("a record is {\"text\": \"…\", \"label\": true}")
            };
            let record = record.map_err(|error| wrong(&error))?;
            let text = record.get("text").and_then(Value::as_str).ok_or_else(|| wrong("it has no `text`"))?;
            let label = match record.get("label") {
                Some(Value::Bool(label)) => *label,
                Some(Value::Number(label)) if label.as_u64().is_some_and(|label| label <= 1) => {
                    label.as_u64() == Some(1)
                }
                _ => return Err(wrong("its `label` is neither true or false nor 1 or 0")),
            };
            Ok(Example { text: text.to_owned(), label })
        })
        .collect()
}
