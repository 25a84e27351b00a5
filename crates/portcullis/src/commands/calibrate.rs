//! `portcullis calibrate`: the threshold of a model, for a stated share of false positives.

use std::path::PathBuf;

use portcullis_detect::{Model, train};

use super::train::{Summary, examples_of, write};
use crate::cli::Global;
use crate::failure::Failure;

const EXAMPLES: &str = "\
Examples:
  portcullis calibrate --model order.model --data mails.jsonl --fpr 0.01
  portcullis calibrate --model override.model --data prompts.jsonl --fpr 0.005 \\
      --out strict.model --json

The data has the form that `portcullis train` reads, and must not be what the model was trained on: texts of the kind \
that it will see, mostly innocent. Of the order head at most the given share of innocent sentences is flagged, of the \
override head of innocent texts. The model is changed in place unless --out names another file.

Exit codes: 0 done, 1 there are too few texts for that rate, 3 something could not be read or written.";

/// Set the threshold of a model for a stated share of false positives
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The model
    #[arg(long, value_name = "M")]
    model: PathBuf,
    /// Labelled texts that it was not trained on. May be given several times
    #[arg(long, value_name = "F", required = true)]
    data: Vec<PathBuf>,
    /// The share of what is innocent that may be flagged, between 0 and 1
    #[arg(long, value_name = "RATE")]
    fpr: f64,
    /// Where the model is written; the model itself unless given
    #[arg(long, value_name = "M")]
    out: Option<PathBuf>,
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    let path = args.model.display();
    let bytes = std::fs::read(&args.model)
        .map_err(|error| Failure::unreadable(format!("cannot read `{path}`: {error}")))?;
    let model = Model::from_bytes(&bytes).map_err(|error| {
        Failure::unreadable(format!("`{path}`: {error}")).help("create one with `portcullis train`")
    })?;
    let mut examples = Vec::new();
    for path in &args.data {
        examples.extend(examples_of(path)?);
    }
    let done = train::calibrate(model, &examples, args.fpr).map_err(Failure::no)?;
    let out = args.out.as_ref().unwrap_or(&args.model);
    let bytes = write(out, &done.model)?;
    Summary::of(&done.model, bytes, Some(&done)).show(out, global.json)
}
