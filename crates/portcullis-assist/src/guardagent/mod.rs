//! From a guard request to a guard program, as GuardAgent does it (seed 004): plan, code, execute, debug.
//!
//! Given are guard requests in plain language, what the target agent is for, its input and its output log. A model plans in
//! four steps, writes a program by the plan, by examples and by the toolbox; the program runs in a contained worker, and
//! where it does not, the model gets the error, at most three times. The answer is what the program says, not what the
//! model says: without a program that ran there is no answer, and whoever asked denies.
//!
//! What the target agent wrote is hostile until shown otherwise. It stands between tags that it cannot close, but a model
//! may still believe it. What bounds the harm is elsewhere: the program can only deny, hold or say nothing, runs where it can
//! do nothing else, and has no word for *allow*. So at worst a program does not see what it should have seen, which the
//! other guards of the gate do not rely on.

mod baseline;
mod demonstrations;
mod execute;
mod memory;
mod plan;
mod prompt;
mod source;
mod toolbox;

use std::time::Duration;

use portcullis_core::program::{Answer, Says};

use crate::budget::{Budget, Metered, Spent};
use crate::clock::Clock;
use crate::limits::{MAX_PLANS, MAX_REQUEST_BYTES, MAX_ROUNDS, MAX_SHOTS, MAX_TARGET_BYTES};
use crate::model::{Finish, Model, ModelError, Request};

pub use baseline::{Opinion, model_as_guard, rules_in_the_prompt};
pub use demonstrations::{DemonstrationError, demonstration, demonstrations};
pub use execute::{Execute, Executed, Workers};
pub use memory::{Example, Found, Memory, MemoryError, Order};
pub use plan::Plan;
pub use toolbox::Toolbox;

/// What a program is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Target<'a> {
    /// What the operator wants to be guarded.
    pub requests: &'a str,
    /// What the target agent is for, and the form of what it reads and writes.
    pub specification: &'a str,
    /// What the target agent was asked.
    pub input: &'a str,
    /// What it did or wants to do.
    pub output: &'a str,
    /// What the program is told: JSON of the form that guard programs get (`docs/programs.md`).
    pub told: &'a str,
}

/// How to go about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Examples that the model is shown.
    pub shots: usize,
    /// Which ones.
    pub order: Order,
    /// Rounds of debugging.
    pub rounds: u32,
    /// What the model may cost for one target.
    pub budget: Budget,
    /// How long it may take for one target, from the first question on.
    pub time: Option<Duration>,
}

impl Default for Settings {
    fn default() -> Self {
        let time = Some(Duration::from_secs(120));
        Self { shots: 1, order: Order::Nearest, rounds: MAX_ROUNDS, budget: Budget::default(), time }
    }
}

/// Who works on it.
#[derive(Debug, Clone, Copy)]
pub struct Crew<'a> {
    /// Who plans and writes.
    pub model: &'a dyn Model,
    /// Who runs what was written.
    pub workers: &'a dyn Execute,
    /// What programs may call.
    pub toolbox: &'a Toolbox,
    /// What was done before.
    pub memory: &'a Memory,
    /// What waits and deadlines go by.
    pub clock: &'a dyn Clock,
}

/// A program that was written and what came of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Try {
    /// The program; none where the model's answer had none.
    pub program: Option<String>,
    /// Why it did not run to an answer; none where it did.
    pub error: Option<String>,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failed {
    /// The model did not answer.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// Something given is too long; nothing was asked.
    #[error("{what} {what_has} {bytes} bytes; at most {limit} are taken", what_has = if *.plural { "have" } else { "has" })]
    TooLong {
        /// What.
        what: &'static str,
        /// Whether that is a plural.
        plural: bool,
        /// How long it is.
        bytes: usize,
        /// How long it may be.
        limit: usize,
    },
    /// No plan had its four steps.
    #[error("no plan of {0} had its four steps; the last lacked {1}")]
    NoPlan(u32, String),
    /// No program ran.
    #[error("no program of {tries} ran; the last one: {error}")]
    NotExecutable {
        /// Programs that were written.
        tries: usize,
        /// Why the last did not run.
        error: String,
    },
}

/// What came of it.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The answer of the program that ran, or why there is none.
    pub answer: Result<Answer, Failed>,
    /// The plan, where there was one.
    pub plan: Option<Plan>,
    /// Programs in the order in which they were written.
    pub tries: Vec<Try>,
    /// Names of the examples that were shown, the first one first.
    pub shown: Vec<String>,
    /// What the model was asked for.
    pub spent: Spent,
}

impl Outcome {
    /// Whether the first program ran.
    #[must_use]
    pub fn ran_at_once(&self) -> bool {
        self.tries.first().is_some_and(|one| one.error.is_none())
    }

    /// Whether one ran in the end.
    #[must_use]
    pub fn ran(&self) -> bool {
        self.answer.is_ok()
    }

    /// Whether the action is to be stopped: an objection, or no answer at all.
    #[must_use]
    pub fn stops(&self) -> bool {
        self.answer.as_ref().map_or(true, |answer| !answer.objections.is_empty())
    }

    /// Whether the program denies, and does not only hold.
    #[must_use]
    pub fn denies(&self) -> bool {
        let denied = |answer: &Answer| answer.objections.iter().any(|one| one.says == Says::Deny);
        self.answer.as_ref().map_or(true, denied)
    }

    /// What a memory may keep of it: plan and program that ran. Whether the answer was right is not asked: who remembers
    /// only what agrees with a label has learned the labels.
    #[must_use]
    pub fn example(&self, name: &str, target: &Target<'_>) -> Option<Example> {
        let program = self.tries.last().filter(|one| one.error.is_none())?.program.clone()?;
        Some(Example {
            name: name.to_owned(),
            input: target.input.to_owned(),
            output: target.output.to_owned(),
            plan: self.plan.as_ref()?.text().to_owned(),
            program,
        })
    }
}

/// Writes a program for a target and runs it on it.
pub async fn guard(crew: &Crew<'_>, target: &Target<'_>, settings: &Settings) -> Outcome {
    let metered = Metered::new(crew.model, crew.clock, settings.budget);
    let mut work = Work::new(crew, target, settings, &metered);
    let answer = work.run().await;
    let Work { plan, tries, shown, .. } = work;
    Outcome { answer, plan, tries, shown, spent: metered.spent() }
}

struct Work<'a> {
    crew: &'a Crew<'a>,
    target: &'a Target<'a>,
    settings: &'a Settings,
    model: &'a dyn Model,
    start: Duration,
    plan: Option<Plan>,
    tries: Vec<Try>,
    shown: Vec<String>,
}

impl<'a> Work<'a> {
    fn new(crew: &'a Crew<'a>, target: &'a Target<'a>, settings: &'a Settings, model: &'a dyn Model) -> Self {
        let start = crew.clock.now();
        Self { crew, target, settings, model, start, plan: None, tries: Vec::new(), shown: Vec::new() }
    }

    async fn run(&mut self) -> Result<Answer, Failed> {
        within_limits(self.target)?;
        let Crew { memory, toolbox, .. } = *self.crew;
        let shots = self.settings.shots.min(MAX_SHOTS);
        let found = memory.nearest(self.target.input, self.target.output, shots, self.settings.order);
        self.shown = found.examples.iter().map(|example| example.name.clone()).collect();
        let plan = self.plan(&found.examples).await?;
        self.plan = Some(plan.clone());
        let mut asked = prompt::program(self.target, toolbox, &found.examples, &plan);
        for round in 0..=self.settings.rounds.min(MAX_ROUNDS) {
            let (one, answer) = self.attempt(&asked).await?;
            self.tries.push(one.clone());
            match answer {
                Some(answer) => return Ok(answer),
                None if round < self.settings.rounds.min(MAX_ROUNDS) => {
                    asked = prompt::debug(self.target, toolbox, &found.examples, &plan, &one);
                }
                None => {}
            }
        }
        let error = self.tries.last().and_then(|one| one.error.clone()).unwrap_or_default();
        Err(Failed::NotExecutable { tries: self.tries.len(), error })
    }

    /// A plan with its four steps: what lacks one is asked for again, and told what it lacks.
    async fn plan(&self, examples: &[&Example]) -> Result<Plan, Failed> {
        let mut lacked = None;
        for _ in 0..MAX_PLANS {
            let (text, finish) = self.ask(prompt::plan(self.target, examples, lacked.as_deref())).await?;
            match Plan::read(&text) {
                Ok(plan) if finish != Finish::Length => return Ok(plan),
                Ok(_) => lacked = Some("its end: the limit of tokens has cut it".to_owned()),
                Err(lacks) => lacked = Some(lacks),
            }
        }
        Err(Failed::NoPlan(MAX_PLANS, lacked.unwrap_or_default()))
    }

    /// One program, and its answer if it runs.
    async fn attempt(&self, asked: &Request) -> Result<(Try, Option<Answer>), Failed> {
        let (text, finish) = self.ask(asked.clone()).await?;
        let program = match source::read(&text, finish) {
            Ok(program) => program,
            Err(why) => return Ok((Try { program: None, error: Some(why) }, None)),
        };
        let failed = |program, error| Ok((Try { program: Some(program), error: Some(error) }, None));
        if let Some(name) = self.crew.toolbox.not_offered(&program) {
            let error = format!("`{name}` is not among the functions that may be called");
            return failed(program, error);
        }
        match self.crew.workers.run(&program, self.target.told).await {
            Executed::Answered(answer) => Ok((Try { program: Some(program), error: None }, Some(answer))),
            Executed::Failed(error) => failed(program, error),
        }
    }

    async fn ask(&self, mut request: Request) -> Result<(String, Finish), ModelError> {
        if let Some(time) = self.settings.time {
            let elapsed = self.crew.clock.now().saturating_sub(self.start);
            let left = time.saturating_sub(elapsed);
            if left.is_zero() {
                return Err(ModelError::TimedOut(format!("took longer than {} s", time.as_secs_f64())));
            }
            request.time_left = Some(left);
        }
        let completion = self.model.complete(&request).await?;
        Ok((completion.text, completion.finish))
    }
}

fn within_limits(target: &Target<'_>) -> Result<(), Failed> {
    for (what, plural, text, limit) in [
        ("the guard requests", true, target.requests, MAX_REQUEST_BYTES),
        ("the specification", false, target.specification, MAX_REQUEST_BYTES),
        ("the target agent's input", false, target.input, MAX_TARGET_BYTES),
        ("the target agent's output", false, target.output, MAX_TARGET_BYTES),
    ] {
        if text.len() > limit {
            return Err(Failed::TooLong { what, plural, bytes: text.len(), limit });
        }
    }
    Ok(())
}
