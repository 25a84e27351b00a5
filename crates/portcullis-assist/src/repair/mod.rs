//! Repair: rewriting a reply until its contracts hold, mechanically first, with a model for what is left.
//!
//! Candidate 0 is the reply itself, mechanically repaired. A rewrite takes its place only where more holds, by
//! priority; ties go to the earlier candidate, so the result is never worse than what came in. A rewrite is repaired
//! mechanically too before it is judged.
//!
//! Calls, for *v* contracts that are broken after mechanical repair and have not given way in a conflict, and *D* calls a detection
//! ([`Detect::calls`](crate::Detect::calls): of judged contracts only; where none is judged, *D* is 0):
//!
//! | strategy | calls after the first detection (D) |
//! |---|---|
//! | `mechanical` | 0 |
//! | `batch` | 1, and D with `verify` or `no_degrade` |
//! | `iterative` | k(1 + D), k at most v: those mended along the way are skipped |
//! | `retry` | k(1 + D), k at most r, ends as soon as clean |
//! | `best-of-n` | k(1 + D), k at most n, ends as soon as clean |
//! | `best-of-n`, oracle | k, and D for the chosen one where contracts are judged |
//! | `map-reduce` | v + 1, and D with `verify` or `no_degrade` |
//!
//! A reply that is clean takes D calls. A rewrite that cannot be read is not judged and saves its D. The post-check is
//! one call more where the model's rewrite is chosen and the request is known.

mod attempt;
mod prompt;
mod score;
mod settings;
mod strategy;

use std::cmp::Reverse;

use portcullis_contracts::{Conflict, Contract, Repair, conflicts};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use attempt::Attempt;
pub use settings::{Priorities, Settings, SettingsError, Strategy};

use crate::budget::{Metered, Spent};
use crate::clock::BoxFuture;
use crate::clock::Clock;
use crate::judge::{Judge, Judgement, Program, Task, answers, detect, exact};
use crate::model::{Completion, Exhausted, Model, ModelError, Request};
use attempt::Candidate;
use score::Scale;
use strategy::Work;

/// Why a repair ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// Every contract holds.
    Clean,
    /// The strategy is through, or nothing is left that is known to be broken and has not given way in a conflict.
    Done,
    /// A budget is used up. The best until then is kept.
    Budget(Exhausted),
    /// The model gave no answer. The best until then is kept.
    Model(ModelError),
}

/// What the post-check said of a model's rewrite.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "RepairAnswers")]
pub enum Answers {
    /// It was not asked: it is switched off, the request is not known, or no rewrite was chosen.
    NotAsked,
    /// The rewrite answers the request.
    Yes,
    /// It does not; candidate 0 is kept.
    No,
    /// Nobody could tell; candidate 0 is kept.
    Undecided,
}

/// What came of a repair.
#[derive(Debug, Clone, PartialEq)]
pub struct Repaired {
    /// The reply to use.
    pub reply: String,
    /// What held before: exact contracts of the reply as it came, judged ones of candidate 0.
    pub before: Vec<Judgement>,
    /// What holds of `reply`.
    pub after: Vec<Judgement>,
    /// What mechanical repair did; none where it is switched off. Its text is candidate 0.
    pub mechanical: Option<Repair>,
    /// Sets of contracts that cannot hold together.
    pub conflicts: Vec<Conflict>,
    /// Ids of contracts that gave way in a conflict: no rewrite is asked for on their account.
    pub gave_way: Vec<String>,
    /// Which candidate `reply` is: 0, or the number of the attempt, from 1.
    pub chosen: usize,
    /// The rewrites, in order.
    pub attempts: Vec<Attempt>,
    /// What the post-check said.
    pub answers: Answers,
    /// Why it ended.
    pub ended: Ended,
    /// What was used up.
    pub spent: Spent,
}

impl Repaired {
    /// Whether every contract is known to hold.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.after.iter().all(Judgement::holds)
    }

    /// Ids of contracts that held before and are not known to hold any more.
    #[must_use]
    pub fn degraded(&self) -> Vec<&str> {
        let lost =
            self.before.iter().zip(&self.after).filter(|(before, after)| before.holds() && !after.holds());
        lost.map(|(before, _)| before.id.as_str()).collect()
    }
}

/// Who helps with what code cannot do.
#[derive(Debug, Clone, Copy, Default)]
pub struct Helpers<'a> {
    /// Who rewrites and, where no program does, judges.
    pub model: Option<&'a dyn Model>,
    /// Who judges. Its runs are no calls and are not counted as such; budgets of time end before or after one.
    pub program: Option<&'a Program>,
}

impl<'a, M: Model> From<&'a M> for Helpers<'a> {
    fn from(model: &'a M) -> Self {
        Self { model: Some(model), program: None }
    }
}

/// The model of those who have none.
#[derive(Debug)]
struct Nobody;

impl Model for Nobody {
    fn complete<'a>(&'a self, _: &'a Request) -> BoxFuture<'a, Result<Completion, ModelError>> {
        Box::pin(std::future::ready(Err(ModelError::Nobody)))
    }
}

/// Repairs a reply.
///
/// Errors of the model and budgets that run out are no errors here: what was reached until then is the result, which says
/// in `ended` what happened. Mechanical repair works on the calling thread, for as long as `portcullis-contracts` says.
///
/// Of contracts that cannot hold together one gives way before anything is paid for: the one of the lowest priority,
/// among equals one that is broken, then the later. Under `no_degrade` one that is broken gives way first.
///
/// # Errors
/// The settings do not fit the task.
pub async fn repair(
    helpers: impl Into<Helpers<'_>>,
    clock: &dyn Clock,
    task: &Task<'_>,
    settings: &Settings,
) -> Result<Repaired, SettingsError> {
    let helpers = helpers.into();
    if helpers.model.is_none() && settings.strategy != Strategy::Mechanical {
        return Err(SettingsError::NoModel(settings.strategy));
    }
    let (scale, contracts) = Scale::new(&settings.priorities, task.contracts)?;
    settings.check(task)?;
    let task = &Task { contracts: &contracts, ..*task };
    let metered = Metered::new(helpers.model.unwrap_or(&Nobody), clock, settings.budget);
    let judge = match helpers {
        Helpers { program: Some(program), .. } => Judge::Program(program),
        Helpers { model: Some(_), .. } => Judge::Model(&metered, settings.detect),
        Helpers { .. } => Judge::Nobody,
    };
    let before = exact(task, judge, "not asked");
    let mechanical =
        settings.mechanical.then(|| portcullis_contracts::repair(task.contracts, task.reply, task.context));
    let reply = mechanical.as_ref().map_or(task.reply, |repair| repair.text.as_str()).to_owned();
    let detection = detect(judge, &Task { reply: &reply, ..*task }).await;
    let first = Candidate { number: 0, reply, detection, judged: true };
    let conflicts = conflicts(task.contracts, task.context);
    let gave_way = gave_way(&conflicts, task.contracts, &first, settings.no_degrade);

    // Judged contracts were asked about once, of candidate 0.
    let before: Vec<Judgement> =
        (task.contracts.iter().zip(before.judgements).zip(&first.detection.judgements))
            .map(|((contract, exact), all)| if task.is_judged(contract) { all.clone() } else { exact })
            .collect();
    let mut work = Work {
        model: &metered,
        judge,
        task,
        settings,
        scale,
        before: &before,
        gave_way: &gave_way,
        best: first.clone(),
        first,
        attempts: Vec::new(),
    };
    let stopped = work.run().await.err();
    let (post, refused) = post_check(&metered, task, settings, &work).await;
    let Work { first, best, attempts, .. } = work;
    let best = if matches!(post, Answers::No | Answers::Undecided) { first } else { best };
    let ended = match refused.or(stopped) {
        Some(ModelError::Budget(exhausted)) => Ended::Budget(exhausted),
        Some(error) => Ended::Model(error),
        None if best.detection.is_clean() => Ended::Clean,
        None => Ended::Done,
    };
    let id = |at: &usize| task.contracts.get(*at).map(|contract| contract.id.clone());
    Ok(Repaired {
        reply: best.reply,
        after: best.detection.judgements,
        mechanical,
        conflicts,
        gave_way: gave_way.iter().filter_map(id).collect(),
        chosen: best.number,
        attempts,
        answers: post,
        ended,
        spent: metered.spent(),
        before,
    })
}

/// Places of contracts that give way in a conflict, one for each set of which none has yet.
fn gave_way(
    conflicts: &[Conflict],
    contracts: &[Contract],
    first: &Candidate,
    no_degrade: bool,
) -> Vec<usize> {
    let mut gave_way: Vec<usize> = Vec::new();
    for conflict in conflicts {
        let all = contracts.iter().zip(&first.detection.judgements).enumerate();
        let members: Vec<_> =
            all.filter(|(_, (contract, _))| conflict.contracts.contains(&contract.id)).collect();
        if members.iter().any(|(at, _)| gave_way.contains(at)) {
            continue;
        }
        let lowest = members.iter().min_by_key(|(at, (contract, judgement))| {
            let holds = judgement.holds();
            (no_degrade && holds, contract.priority, holds, Reverse(*at))
        });
        gave_way.extend(lowest.map(|(at, _)| *at));
    }
    gave_way
}

/// Asks whether the chosen rewrite still answers.
async fn post_check(
    model: &dyn Model,
    task: &Task<'_>,
    settings: &Settings,
    work: &Work<'_>,
) -> (Answers, Option<ModelError>) {
    let Some(prompt) = task.context.prompt.filter(|_| settings.post_check && work.best.number != 0) else {
        return (Answers::NotAsked, None);
    };
    match answers(model, prompt, &work.best.reply).await {
        Ok(Some(true)) => (Answers::Yes, None),
        Ok(Some(false)) => (Answers::No, None),
        Ok(None) => (Answers::Undecided, None),
        Err(error) => (Answers::Undecided, Some(error)),
    }
}
