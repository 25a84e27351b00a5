//! Puts the questions of a log to its witnesses: `POST <url>/add-checkpoint`, to all of them at once.
//!
//! A round of the log waits for the answers, and not longer than [`ANSWER_TIME_MAX`]: a witness that hangs delays the
//! anchoring of runs by that much, seldom (the ledger leaves it alone for longer each time), and no decision ever.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use portcullis_ledger::log::{Ask, Cosigner, Log, LogError, WitnessAnswer};
use portcullis_proof::log::note::NOTE_BYTES_MAX;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use tracing::{info, warn};

use crate::fetch::Fetcher;

/// How long a witness may take.
pub const ANSWER_TIME_MAX: Duration = Duration::from_secs(2);

/// What asks the witnesses of a log when it is opened, while it waits for them, and after each of its rounds; see [`portcullis_ledger::log::LogThread::start`].
pub fn after_round() -> impl FnMut(&mut Log) -> Result<(), LogError> + Send + 'static {
    let mut cosigner = Cosigner::new();
    let mut witnesses = Witnesses::default();
    move |log| {
        let news = cosigner.round(log, Instant::now(), |asks| witnesses.ask(asks))?;
        for news in news {
            match news.failure {
                None => info!(witness = news.witness, "cosigns the log"),
                Some(failure) => warn!(witness = news.witness, "does not cosign the log: {failure}"),
            }
        }
        Ok(())
    }
}

/// The ways to witnesses.
#[derive(Debug, Default)]
struct Witnesses {
    /// Made when someone is asked first.
    runtime: Option<Runtime>,
    known: HashMap<String, Fetcher>,
}

impl Witnesses {
    fn ask(&mut self, asks: Vec<Ask>) -> Vec<WitnessAnswer> {
        let runtime = match self.runtime.take() {
            Some(runtime) => runtime,
            None => match tokio::runtime::Builder::new_current_thread().enable_all().build() {
                Ok(runtime) => runtime,
                Err(error) => {
                    return vec![WitnessAnswer::Unreachable(error.to_string()); asks.len()];
                }
            },
        };
        let answers = runtime.block_on(self.all(asks));
        self.runtime = Some(runtime);
        answers
    }

    async fn all(&mut self, asks: Vec<Ask>) -> Vec<WitnessAnswer> {
        let mut answers = vec![WitnessAnswer::Unreachable("it was not asked".to_owned()); asks.len()];
        let mut asked = JoinSet::new();
        for (place, ask) in asks.into_iter().enumerate() {
            let fetcher = match self.known.remove(&ask.url) {
                Some(fetcher) => Ok(fetcher),
                None => Fetcher::new(&ask.url, ANSWER_TIME_MAX),
            };
            asked.spawn(async move {
                let (fetcher, answer) = match fetcher {
                    Err(error) => (None, Err(error)),
                    Ok(mut fetcher) => {
                        let answer = fetcher.post("add-checkpoint", ask.body, NOTE_BYTES_MAX).await;
                        (Some(fetcher), answer)
                    }
                };
                (place, ask.url, fetcher, answer)
            });
        }
        while let Some(done) = asked.join_next().await {
            let Ok((place, url, fetcher, answer)) = done else { continue };
            if let Some(fetcher) = fetcher {
                self.known.insert(url, fetcher);
            }
            if let Some(slot) = answers.get_mut(place) {
                *slot = match answer {
                    Ok((status, body)) => WitnessAnswer::Answered { status, body },
                    Err(error) => WitnessAnswer::Unreachable(error),
                };
            }
        }
        answers
    }
}
