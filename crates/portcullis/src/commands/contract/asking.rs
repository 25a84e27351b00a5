//! Who is asked about what code cannot do, and how: what `check` and `repair` have in common beside the contracts.

use std::path::PathBuf;
use std::time::Duration;

use portcullis_assist::{Detect, Helpers, ModelError, Program, Settings, Strategy};

use crate::failure::Failure;
use crate::model::{ModelArgs, Opened};

/// Who judges what code cannot.
#[derive(Debug, clap::Args)]
pub(super) struct Judging {
    #[command(flatten)]
    model: ModelArgs,
    /// How the model is asked about statements that code cannot check: `batch`, all in one call, or `single`
    #[arg(long, value_name = "WAY", default_value_t = Detect::Batch, help_heading = "Model")]
    detect: Detect,
    /// Let this program judge them instead: it gets JSON on standard input and answers with JSON
    #[arg(long, value_name = "PROGRAM", help_heading = "Judge")]
    judge: Option<PathBuf>,
    /// How long it may take for one reply, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = crate::model::seconds, help_heading = "Judge")]
    judge_timeout: Duration,
}

/// How a model is asked for rewrites.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Repair")]
pub(super) struct Repairing {
    /// `mechanical`, `batch`, `iterative`, `retry`, `best-of-n`, `best-of-n-oracle` or `map-reduce`; `batch` with a model,
    /// else `mechanical`
    #[arg(long)]
    strategy: Option<Strategy>,
    /// Most rewrites of `retry` and `best-of-n`
    #[arg(long, value_name = "N", default_value_t = Strategy::DEFAULT_REWRITES)]
    candidates: u32,
    /// Temperature of the second and later rewrites of `retry` and `best-of-n`, 0 to 2
    #[arg(long, value_name = "T", default_value_t = Settings::default().temperature)]
    temperature: f64,
    /// Refuse a rewrite that breaks a contract that held, whatever it mends
    #[arg(long)]
    no_degrade: bool,
    /// Judge the rewrite of `batch` and `map-reduce` too; otherwise statements that code cannot check stay open
    #[arg(long)]
    verify: bool,
    /// Do not ask whether the rewrite still answers --prompt
    #[arg(long)]
    no_post_check: bool,
}

/// A model and a judge that are ready, and how to ask them.
#[derive(Debug)]
pub(super) struct Ready {
    pub(super) model: Option<Opened>,
    pub(super) judge: Option<Program>,
    pub(super) settings: Settings,
}

impl Judging {
    /// Opens what is named.
    pub(super) fn open(&self, repairing: Option<&Repairing>) -> Result<Ready, Failure> {
        let default = if self.model.is_named() { Strategy::Batch } else { Strategy::Mechanical };
        let strategy = repairing.and_then(|repairing| repairing.strategy).unwrap_or(default);
        if strategy != Strategy::Mechanical && !self.model.is_named() {
            let message = format!("the strategy `{strategy}` asks a model for rewrites, and none is named");
            return Err(Failure::usage(message).help(
                "name one with `--model http://127.0.0.1:8080/v1/NAME`, or take `--strategy mechanical`",
            ));
        }
        let mut settings = Settings { strategy, detect: self.detect, ..Settings::default() };
        if let Some(repairing) = repairing {
            settings.strategy = strategy.with_rewrites(repairing.candidates);
            settings.temperature = repairing.temperature;
            settings.no_degrade = repairing.no_degrade;
            settings.verify = repairing.verify;
            settings.post_check = !repairing.no_post_check;
        }
        let model = self.model.open()?;
        if let Some(model) = &model {
            settings.budget = model.counting();
        }
        let judge = self.judge.as_ref().map(|path| Program::new(path, self.judge_timeout));
        Ok(Ready { model, judge, settings })
    }
}

/// Who helps, how, and where the waiting is done.
#[derive(Debug)]
pub(super) struct Desk<'a> {
    pub(super) helpers: Helpers<'a>,
    pub(super) settings: &'a Settings,
    pub(super) clock: &'a dyn portcullis_assist::Clock,
    pub(super) runtime: tokio::runtime::Runtime,
}

/// A runtime for a command that asks one thing after the other.
pub(super) fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::unreadable(format!("cannot start: {error}")))
}

/// What a model or a judge that gave no answer is to the caller.
pub(crate) fn unanswered(place: &str, error: &ModelError) -> Failure {
    let failure = Failure::unreadable(format!("{place}{error}"));
    match error {
        ModelError::Refused { status: 401 | 403, .. } => {
            failure.help("name the variable that holds the key with `--key-env`")
        }
        ModelError::Refused { status: 404, .. } => failure
            .help("`--model` takes the server's address and the model's name, as in `http://host/v1/NAME`"),
        ModelError::Cassette(_) => {
            failure.help("record a new one with `--record`, with the server's address in `--model`")
        }
        _ => failure,
    }
}
