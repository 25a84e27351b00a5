//! Guard programs as a source of facts: asked while the run is not locked, and again when a record is replayed.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use portcullis_core::bundle::Bundle;
use portcullis_core::fact::FactAnswer;
use portcullis_core::program::SOURCE;
use portcullis_program::compile;
use portcullis_program::set::Begun;

use crate::facts::{FactSource, Question};

/// How long a thread of the runtime waits for an answer. Nearly all are there by then; the others are waited for on a
/// thread that may block.
const PATIENCE: Duration = Duration::from_micros(300);
/// Whom a replay asks as: it goes through one action after the other.
const REPLAY: &str = "(replay)";

/// Answers with what the programs of the bundle in force say.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProgramSource;

impl FactSource for ProgramSource {
    fn name(&self) -> &str {
        SOURCE
    }

    fn answer<'a>(&'a self, question: &'a Question) -> Pin<Box<dyn Future<Output = FactAnswer> + Send + 'a>> {
        Box::pin(async move {
            let Some(set) = compile::of(&question.shown.bundle) else { return not_loaded() };
            let Some(told) = question.shown.told.clone() else { return untold() };
            let of = question.run.to_string();
            let waited = match set.begin(&told, &of, PATIENCE) {
                Begun::Answered(answer) => return answer,
                Begun::Runs(running) => tokio::task::spawn_blocking(|| running.finish()),
                Begun::NotYet => {
                    let set = Arc::clone(set);
                    tokio::task::spawn_blocking(move || set.check(&told, &of))
                }
            };
            waited.await.unwrap_or_else(|_| FactAnswer::Failed("the source panicked".to_owned()))
        })
    }
}

/// What the programs say where there is perhaps a record of it. They are run again, so that a record that says otherwise
/// does not pass; where they cannot be, or where the record is that they could not be, the record stands.
pub(crate) fn again(
    bundle: &Bundle,
    told: &dyn Fn() -> Option<String>,
    recorded: Option<&FactAnswer>,
) -> FactAnswer {
    if let Some(failed @ FactAnswer::Failed(_)) = recorded {
        return failed.clone();
    }
    let Some(set) = compile::of(bundle) else { return recorded.cloned().unwrap_or_else(not_loaded) };
    let Some(told) = told() else { return untold() };
    match (set.check(&told, REPLAY), recorded) {
        (FactAnswer::Failed(_), Some(recorded)) => recorded.clone(),
        (answer, _) => answer,
    }
}

fn not_loaded() -> FactAnswer {
    FactAnswer::Failed("the programs of this bundle were not loaded".to_owned())
}

fn untold() -> FactAnswer {
    FactAnswer::Failed("what programs would be told cannot be written".to_owned())
}
