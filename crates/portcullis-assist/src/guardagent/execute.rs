//! Running what a model wrote, in the contained workers of `portcullis-program`.

use std::fmt;
use std::sync::Arc;

use portcullis_core::fact::FactAnswer;
use portcullis_core::program::Answer;
use portcullis_program::compile;
use portcullis_program::pool::Pool;

use crate::clock::BoxFuture;

/// Who the pool lends a worker to: one at a time, so that drafts never take the workers of runs.
const BORROWER: &str = "(a draft)";
/// The name under which a draft runs.
const NAME: &str = "draft";

/// What came of running a program.
#[derive(Debug, Clone, PartialEq)]
pub enum Executed {
    /// It ran, and this is its answer.
    Answered(Answer),
    /// It did not, and why, in words for its author.
    Failed(String),
}

/// Something that runs programs.
pub trait Execute: fmt::Debug + Send + Sync {
    /// Runs a program on what it is told.
    fn run<'a>(&'a self, program: &'a str, told: &'a str) -> BoxFuture<'a, Executed>;
}

/// The contained workers.
#[derive(Debug, Clone)]
pub struct Workers(Arc<Pool>);

impl Workers {
    /// Those of a pool.
    #[must_use]
    pub fn new(pool: Arc<Pool>) -> Self {
        Self(pool)
    }
}

impl Execute for Workers {
    fn run<'a>(&'a self, program: &'a str, told: &'a str) -> BoxFuture<'a, Executed> {
        let (pool, program, told) = (Arc::clone(&self.0), program.to_owned(), told.to_owned());
        Box::pin(async move {
            // A worker is waited for, so on a thread that may wait.
            let ran = tokio::task::spawn_blocking(move || run(&pool, &program, &told)).await;
            ran.unwrap_or_else(|_| Executed::Failed("the program could not be run".to_owned()))
        })
    }
}

fn run(pool: &Arc<Pool>, program: &str, told: &str) -> Executed {
    let set = match compile::alone(NAME, program, pool) {
        Ok(set) => set,
        Err(mistake) => return Executed::Failed(mistake.to_string()),
    };
    match set.check(told, BORROWER) {
        FactAnswer::Failed(why) => Executed::Failed(why),
        FactAnswer::Known(answer) => match serde_json::from_value::<Answer>(answer) {
            Ok(answer) => match answer.failures.first() {
                Some(failure) => Executed::Failed(failure.why.clone()),
                None => Executed::Answered(answer),
            },
            Err(error) => Executed::Failed(error.to_string()),
        },
    }
}
