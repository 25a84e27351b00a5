//! GuardAgent's tables, redrawn (Xiang et al., 2025): a model writes a program for every record, a worker runs it, and what
//! it says is scored; beside it what the paper compares it with.
//!
//! Labels are read for scoring only. A memory holds demonstrations, and what was run before where that is asked for: right
//! or wrong, since who remembers what agrees with a label has learned the labels. A record without an answer counts as
//! wrong whatever its label is, as in the paper.

pub(crate) mod cases;
mod csqa;
mod plot;
mod report;
pub mod shipped;
mod tally;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use portcullis_assist::guardagent::{
    Crew, Example, Execute, Executed, Failed, Memory, Opinion, Order, Outcome, Settings, Target, Toolbox,
    guard, model_as_guard, rules_in_the_prompt,
};
use portcullis_assist::{Budget, Clock, Metered, Model, ModelError, Spent};
use portcullis_core::bundle::Bundle;
use serde::Serialize;

pub use report::{ByArm, ByGroup, Report};

use self::cases::Case;
use self::tally::Tally;
use crate::data::Data;
use crate::metrics::Prediction;
use crate::predictions::Predictions;
use crate::suite::EvalError;
use crate::{eicu_ac, mind2web_sc};

/// Name of the suite.
pub const NAME: &str = "guardagent";
/// Most examples that an arm can ask for by name.
const SHOTS_MAX: usize = 3;

/// Which records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Suite {
    /// Roles over health records.
    EicuAc,
    /// Rules about a user's profile.
    Mind2WebSc,
    /// Rules about answers to questions.
    Csqa,
}

impl Suite {
    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::EicuAc => eicu_ac::NAME,
            Self::Mind2WebSc => mind2web_sc::NAME,
            Self::Csqa => "csqa",
        }
    }

    /// Examples that the paper shows the model.
    const fn shots(self) -> usize {
        match self {
            Self::EicuAc | Self::Csqa => 1,
            Self::Mind2WebSc => 3,
        }
    }

    fn cases(self, data: &Data) -> Result<(Vec<Case>, usize), EvalError> {
        match self {
            Self::EicuAc => eicu_ac::cases(data),
            Self::Mind2WebSc => mind2web_sc::cases(data),
            Self::Csqa => csqa::cases(data),
        }
    }
}

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arm {
    /// The pipeline, with as many examples as the paper shows.
    GuardAgent,
    /// The pipeline with so many.
    Shots(usize),
    /// The pipeline with the least similar examples.
    LeastSimilar,
    /// The pipeline without the functions of the toolbox.
    NoToolbox,
    /// Without toolbox and without examples.
    NoToolboxNoMemory,
    /// The model judges by itself.
    ModelAsGuard,
    /// The target agent has the rules in its own prompt.
    HardCoded,
    /// One program for all records, and no model.
    Program,
}

impl Arm {
    /// All that ask a model, in the order of the paper.
    pub const ASKING: [Self; 10] = [
        Self::GuardAgent,
        Self::ModelAsGuard,
        Self::HardCoded,
        Self::Shots(0),
        Self::Shots(1),
        Self::Shots(2),
        Self::Shots(3),
        Self::LeastSimilar,
        Self::NoToolbox,
        Self::NoToolboxNoMemory,
    ];

    /// Whether it asks a model.
    pub const fn asks(self) -> bool {
        !matches!(self, Self::Program)
    }

    /// The pipeline's settings; none where there is no pipeline.
    fn settings(self, suite: Suite) -> Option<Settings> {
        let (shots, order) = match self {
            Self::GuardAgent | Self::NoToolbox => (suite.shots(), Order::Nearest),
            Self::Shots(shots) => (shots, Order::Nearest),
            Self::LeastSimilar => (suite.shots(), Order::Farthest),
            Self::NoToolboxNoMemory => (0, Order::Nearest),
            Self::ModelAsGuard | Self::HardCoded | Self::Program => return None,
        };
        Some(Settings { shots, order, time: None, ..Settings::default() })
    }
}

impl fmt::Display for Arm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::GuardAgent => f.write_str("guardagent"),
            Self::Shots(shots) => write!(f, "k={shots}"),
            Self::LeastSimilar => f.write_str("least-similar"),
            Self::NoToolbox => f.write_str("no-toolbox"),
            Self::NoToolboxNoMemory => f.write_str("no-toolbox-no-memory"),
            Self::ModelAsGuard => f.write_str("model-as-guard"),
            Self::HardCoded => f.write_str("hard-coded"),
            Self::Program => f.write_str("program"),
        }
    }
}

impl std::str::FromStr for Arm {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == Self::Program.to_string() {
            return Ok(Self::Program);
        }
        Self::ASKING.into_iter().find(|arm| arm.to_string() == text).ok_or_else(|| {
            let known: Vec<String> = Self::ASKING.iter().map(ToString::to_string).collect();
            format!("there is no such arm; there are {} and program", known.join(", "))
        })
    }
}

/// A model and what goes by it.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// The model.
    pub model: &'a dyn Model,
    /// Its name, for the report.
    pub name: &'a str,
    /// The clock of its waits.
    pub clock: &'a dyn Clock,
    /// What tokens cost.
    pub counting: Budget,
}

/// One evaluation.
#[derive(Debug)]
pub struct Job<'a> {
    /// Which records.
    pub suite: Suite,
    /// Where they are.
    pub data: Data,
    /// Only the first so many.
    pub limit: Option<usize>,
    /// What programs are told of effects by.
    pub bundle: Option<Arc<Bundle>>,
    /// What is compared, the first one in detail.
    pub arms: Vec<Arm>,
    /// The model; arms that ask one need it.
    pub asked: Option<Asked<'a>>,
    /// Who runs programs.
    pub workers: &'a dyn Execute,
    /// What programs may call.
    pub toolbox: Toolbox,
    /// Guard requests.
    pub requests: String,
    /// Specification of the target agent.
    pub specification: String,
    /// Examples to begin with.
    pub memory: Memory,
    /// Whether what ran becomes an example for the records after it.
    pub remember: bool,
    /// The program of [`Arm::Program`].
    pub program: Option<String>,
    /// Where predictions go.
    pub predictions: Predictions,
}

/// What came of one record.
struct Judged {
    /// None where there is no answer.
    prediction: Option<Prediction>,
    /// Whether the first program ran, and whether one did; none without programs.
    ran: Option<(bool, bool)>,
    /// An agent that does the task itself: whether it did that right.
    did_right: Option<bool>,
    example: Option<Example>,
    spent: Spent,
    took: Duration,
}

#[derive(Debug, Serialize)]
struct Line<'r> {
    id: &'r str,
    arm: String,
    /// 1 where it is denied; none where there is no answer.
    label: Option<u8>,
    named: Vec<&'r str>,
}

/// Measures every arm on every record. `progress` is told how many of how many are done.
///
/// # Errors
/// The data cannot be read, predictions cannot be written, an arm lacks its model or program, or the model can answer
/// nothing.
pub fn run(mut job: Job<'_>, progress: &mut dyn FnMut(u64, u64)) -> Result<Report, EvalError> {
    let (mut cases, unread) = job.suite.cases(&job.data)?;
    cases.truncate(job.limit.unwrap_or(usize::MAX));
    let told: Vec<String> = cases.iter().map(|case| case.told(job.bundle.as_deref())).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.map_err(EvalError::Runtime)?;
    let all = (cases.len() * job.arms.len()) as u64;
    let mut tallies = Vec::new();
    let mut done = 0;
    for arm in job.arms.clone() {
        let mut tally = Tally::new(arm, job.suite);
        let mut memory = job.memory.clone();
        for (case, told) in cases.iter().zip(&told) {
            let judged = runtime.block_on(judge(&job, arm, &memory, case, told))?;
            if let Some(example) = judged.example.clone().filter(|_| job.remember) {
                // A full memory stays as it is.
                let _full = memory.add(example);
            }
            let prediction = judged.prediction.as_ref();
            let named = prediction.map(|prediction| prediction.named.iter().map(String::as_str).collect());
            let label = prediction.map(|prediction| u8::from(prediction.label()));
            let line = Line { id: &case.id, arm: arm.to_string(), label, named: named.unwrap_or_default() };
            job.predictions.write(&line).map_err(EvalError::Predictions)?;
            tally.count(case, &judged);
            done += 1;
            progress(done, all);
        }
        tallies.push(tally);
    }
    job.predictions.finish().map_err(EvalError::Predictions)?;
    let name = job.asked.map(|asked| asked.name.to_owned());
    Ok(Report::of(job.suite, name, cases.len(), unread, tallies))
}

async fn judge(
    job: &Job<'_>,
    arm: Arm,
    memory: &Memory,
    case: &Case,
    told: &str,
) -> Result<Judged, EvalError> {
    let target = Target {
        requests: &job.requests,
        specification: &job.specification,
        input: &case.input,
        output: &case.output,
        told,
    };
    let lacks = |arm: &'static str| EvalError::Arm { arm, suite: NAME };
    if arm == Arm::Program {
        return by_program(
            job,
            job.program.as_deref().ok_or_else(|| lacks("program without a program"))?,
            told,
        )
        .await;
    }
    let asked = job.asked.ok_or_else(|| lacks("that asks a model without one"))?;
    let began = asked.clock.now();
    let mut judged = match arm.settings(job.suite) {
        Some(settings) => {
            let plain = matches!(arm, Arm::NoToolbox | Arm::NoToolboxNoMemory);
            let toolbox = if plain { job.toolbox.clone().answers_alone() } else { job.toolbox.clone() };
            let Asked { model, clock, counting, .. } = asked;
            let crew = Crew { model, workers: job.workers, toolbox: &toolbox, memory, clock };
            let settings = Settings { budget: counting, ..settings };
            let outcome = guard(&crew, &target, &settings).await;
            if let Err(Failed::Model(error)) = &outcome.answer {
                ends(error)?;
            }
            by_outcome(job.suite, &outcome, outcome.example(&case.id, &target))
        }
        None => by_opinion(job, arm, asked, memory, case, &target).await?,
    };
    judged.took = asked.clock.now().saturating_sub(began);
    Ok(judged)
}

/// One program for all.
async fn by_program(job: &Job<'_>, program: &str, told: &str) -> Result<Judged, EvalError> {
    let began = std::time::Instant::now();
    let ran = job.workers.run(program, told).await;
    let answer = match ran {
        Executed::Answered(answer) => Ok(answer),
        Executed::Failed(error) => Err(Failed::NotExecutable { tries: 1, error }),
    };
    let tries = Vec::new();
    let outcome = Outcome { answer, plan: None, tries, shown: Vec::new(), spent: Spent::default() };
    let mut judged = by_outcome(job.suite, &outcome, None);
    judged.ran = Some((outcome.ran(), outcome.ran()));
    judged.took = began.elapsed();
    Ok(judged)
}

/// What a model says without a program.
async fn by_opinion(
    job: &Job<'_>,
    arm: Arm,
    asked: Asked<'_>,
    memory: &Memory,
    case: &Case,
    target: &Target<'_>,
) -> Result<Judged, EvalError> {
    let metered = Metered::new(asked.model, asked.clock, asked.counting);
    let own = arm == Arm::HardCoded;
    let opinion = if own {
        rules_in_the_prompt(&metered, target).await.map(Some)
    } else {
        let found =
            memory.nearest(&case.input, &case.output, job.suite.shots().min(SHOTS_MAX), Order::Nearest);
        model_as_guard(&metered, target, &found.examples).await
    };
    let opinion = match opinion {
        Ok(opinion) => opinion,
        Err(error) => {
            ends(&error)?;
            None
        }
    };
    let did = |opinion: &Opinion| own.then(|| case.did_right(job.bundle.as_deref(), &opinion.text));
    let did_right = opinion.as_ref().and_then(did);
    let prediction = opinion.map(|Opinion { denies, named, text }| {
        let message = named.first().cloned().unwrap_or(text);
        prediction(job.suite, denies, &named, &named, message)
    });
    Ok(Judged {
        prediction,
        ran: None,
        did_right,
        example: None,
        spent: metered.spent(),
        took: Duration::ZERO,
    })
}

/// Errors after which the next record would fail alike.
fn ends(error: &ModelError) -> Result<(), EvalError> {
    match error.is_lasting() || matches!(error, ModelError::Budget(_)) {
        true => Err(EvalError::Model(error.clone())),
        false => Ok(()),
    }
}

fn by_outcome(suite: Suite, outcome: &Outcome, example: Option<Example>) -> Judged {
    let prediction = outcome.answer.as_ref().ok().map(|answer| {
        let reasons: Vec<String> = answer.objections.iter().flat_map(|one| one.reasons.clone()).collect();
        let denied: Vec<String> = answer.objections.iter().flat_map(|one| one.denied.clone()).collect();
        prediction(suite, outcome.stops(), &reasons, &denied, reasons.join("; "))
    });
    let ran = Some((outcome.ran_at_once(), outcome.ran()));
    Judged { prediction, ran, did_right: None, example, spent: outcome.spent, took: Duration::ZERO }
}

/// What was named, in the terms of the set: columns among the resources, rules among the reasons.
fn prediction(
    suite: Suite,
    denied: bool,
    reasons: &[String],
    resources: &[String],
    message: String,
) -> Prediction {
    let named = match suite {
        Suite::EicuAc => resources.iter().map(|name| name.trim().trim_matches('`').to_owned()).collect(),
        Suite::Mind2WebSc => {
            reasons.iter().map(|reason| reason.trim().trim_matches(['"', '`']).to_owned()).collect()
        }
        Suite::Csqa => reasons.iter().flat_map(|reason| rules(reason)).collect(),
    };
    Prediction { denied, named, message: denied.then_some(message) }
}

/// Rules that a reason names: `rule 3`.
fn rules(reason: &str) -> Vec<String> {
    let reason = reason.to_lowercase();
    let after = reason.split("rule").skip(1);
    let digit = |rest: &str| rest.trim_start_matches([' ', '#']).chars().next().filter(char::is_ascii_digit);
    after.filter_map(digit).map(|digit| format!("rule {digit}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_arm_has_a_name_that_is_read_back() {
        for arm in Arm::ASKING.into_iter().chain([Arm::Program]) {
            assert_eq!(arm.to_string().parse(), Ok(arm));
        }
        assert!("k=4".parse::<Arm>().unwrap_err().contains("k=3"));
    }

    #[test]
    fn rules_are_found_in_reasons_however_they_are_written() {
        assert_eq!(rules("Rule 1 and rule #3 are broken"), ["rule 1", "rule 3"]);
        assert!(rules("no rules are broken").is_empty());
        let said = prediction(Suite::EicuAc, true, &[], &["`cost.cost`".to_owned()], "no".to_owned());
        assert!(said.named.contains("cost.cost") && said.label());
        let said = prediction(Suite::EicuAc, false, &[], &[], String::new());
        assert!(!said.label() && said.message.is_none());
    }
}
