//! The programs of one bundle, loaded.

use std::sync::Arc;
use std::time::{Duration, Instant};

use portcullis_core::fact::FactAnswer;
use portcullis_core::program::{INPUT_BYTES_MAX, PROGRAMS_MAX};

use crate::pool::{Asked, Pool};
use crate::worker::{Lost, Worker};

/// What a source is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It is loaded by others.
    Module,
    /// It is asked about actions.
    Program,
}

/// The source of one program or module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// What it is.
    pub kind: Kind,
    /// Its name.
    pub name: String,
    /// Its path in the bundle.
    pub file: String,
    /// Its text.
    pub text: String,
}

/// The programs of one bundle, and who runs them.
#[derive(Debug)]
pub struct ProgramSet {
    pub(crate) name: String,
    /// Modules first, in the order of their names: each may load those before it.
    pub(crate) sources: Arc<Vec<Source>>,
    /// The pool, or why there is none.
    pub(crate) pool: Result<Arc<Pool>, String>,
}

impl ProgramSet {
    /// The programs under the name by which workers know them.
    pub(crate) fn new(name: String, sources: Vec<Source>, pool: Result<Arc<Pool>, String>) -> Self {
        Self { name, sources: Arc::new(sources), pool }
    }

    /// Asks all programs, in one round trip. `of` is who asks, such as a run: it has at most one worker at a time, so that
    /// what one run brings upon itself is not felt by others. Waits for a worker, and for its answer until it is late.
    pub fn check(&self, input: &str, of: &str) -> FactAnswer {
        let pool = match self.pool_for(input) {
            Ok(pool) => pool,
            Err(refused) => return refused,
        };
        self.answer(match pool.worker(of) {
            Ok(mut worker) => {
                let began = pool.begin(&mut worker, self, input);
                pool.finish(worker, began, of)
            }
            Err(asked) => asked,
        })
    }

    /// The same without waiting for longer than `patience`, and not for a worker; see [`Begun`].
    pub fn begin(self: &Arc<Self>, input: &str, of: &str, patience: Duration) -> Begun {
        let pool = match self.pool_for(input) {
            Ok(pool) => pool,
            Err(refused) => return Begun::Answered(refused),
        };
        let Some(mut worker) = pool.idle_worker(of) else { return Begun::NotYet };
        let (set, of) = (Arc::clone(self), of.to_owned());
        if !worker.sets.contains(&self.name) {
            let began = Stage::Taken(input.to_owned());
            return Begun::Runs(Running { set, worker: Some(worker), began, of });
        }
        let began = pool.begin(&mut worker, self, input);
        if began.is_err() || worker.is_answering(patience) {
            return Begun::Answered(self.answer(pool.finish(worker, began, &of)));
        }
        Begun::Runs(Running { set, worker: Some(worker), began: Stage::Asked(began), of })
    }

    /// The names of the programs.
    pub fn programs(&self) -> impl Iterator<Item = &str> {
        self.of_kind_program().map(|source| source.name.as_str())
    }

    /// The programs alone, as workers count them.
    fn of_kind_program(&self) -> impl Iterator<Item = &Source> {
        self.sources.iter().filter(|source| source.kind == Kind::Program)
    }

    /// The pool, if these programs can be asked about this.
    fn pool_for(&self, input: &str) -> Result<&Pool, FactAnswer> {
        if input.len() > INPUT_BYTES_MAX {
            return Err(FactAnswer::Failed(format!(
                "what programs would be told has {} bytes; the limit is {INPUT_BYTES_MAX}",
                input.len()
            )));
        }
        self.pool.as_deref().map_err(|why| FactAnswer::Failed(why.clone()))
    }

    fn answer(&self, asked: Asked) -> FactAnswer {
        match asked {
            Asked::Answered(answer) => match serde_json::to_value(answer) {
                Ok(answer) => FactAnswer::Known(answer),
                Err(error) => FactAnswer::Failed(error.to_string()),
            },
            Asked::Lost { program, why } => FactAnswer::Failed(match self.of_kind_program().nth(program) {
                Some(source) => format!("the worker was lost with the program `{}`: {why}", source.name),
                None => format!("the engine was lost: {why}"),
            }),
            Asked::Busy(wait) => {
                FactAnswer::Failed(format!("no worker was free within {} ms; try again", wait.as_millis()))
            }
            Asked::Unstarted(why) => FactAnswer::Failed(why),
        }
    }
}

/// How far a question has come that is not waited for.
#[derive(Debug)]
pub enum Begun {
    /// It is answered.
    Answered(FactAnswer),
    /// It is being answered; [`Running::finish`] waits.
    Runs(Running),
    /// No worker was free, and nothing was asked; [`ProgramSet::check`] waits.
    NotYet,
}

/// A question that is being answered. Dropped, it leaves its worker to be replaced.
#[derive(Debug)]
pub struct Running {
    set: Arc<ProgramSet>,
    worker: Option<Worker>,
    began: Stage,
    of: String,
}

#[derive(Debug)]
enum Stage {
    /// A worker is there, which has not loaded the programs yet; and what it is to be asked.
    Taken(String),
    /// The worker was asked.
    Asked(Result<Instant, Lost>),
}

impl Running {
    /// Waits for the answer until it is late.
    pub fn finish(mut self) -> FactAnswer {
        let (Some(mut worker), Ok(pool)) = (self.worker.take(), &self.set.pool) else {
            return FactAnswer::Failed("the worker is gone".to_owned());
        };
        let began = match std::mem::replace(&mut self.began, Stage::Taken(String::new())) {
            Stage::Taken(input) => pool.begin(&mut worker, &self.set, &input),
            Stage::Asked(began) => began,
        };
        self.set.answer(pool.finish(worker, began, &self.of))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let (Some(worker), Ok(pool)) = (self.worker.take(), &self.set.pool) {
            pool.replace(worker, &self.of);
        }
    }
}

const _: () = assert!(PROGRAMS_MAX <= u16::MAX as usize);
