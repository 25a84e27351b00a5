//! Detection: which contracts a reply keeps.
//!
//! Exact contracts are checked by code and cost nothing. Of the judged ones, `batch` asks about all in one call, and
//! `single` makes a call for each. Where no contract is judged, no call is made. Instead of a model a guard program
//! ([`Program`]) may judge; and where nobody is asked, judged contracts are undecided.

mod answer;
mod program;
mod prompt;
mod task;

use std::fmt;
use std::str::FromStr;

use portcullis_contracts::{Contract, Span, Verdict, check};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::{Finish, Model, ModelError};
use answer::{Row, Said, shortened};
pub use program::Program;
pub use task::Task;

/// How judged contracts are asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Detect {
    /// All of them in one call.
    #[default]
    Batch,
    /// One call for each.
    Single,
}

impl Detect {
    /// Calls that one detection takes for so many judged contracts: the *D* of the table in [`repair`](crate::repair).
    #[must_use]
    pub fn calls(self, judged: usize) -> usize {
        match self {
            Self::Batch => judged.min(1),
            Self::Single => judged,
        }
    }
}

impl FromStr for Detect {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "batch" => Ok(Self::Batch),
            "single" => Ok(Self::Single),
            _ => Err(format!("`{name}` is no way to detect; take `batch` or `single`")),
        }
    }
}

impl fmt::Display for Detect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Batch => "batch",
            Self::Single => "single",
        })
    }
}

/// Whether a contract holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// It holds.
    Holds,
    /// It does not.
    Broken,
    /// Nobody could tell, or nobody was asked. This is not compliance.
    Undecided,
}

/// Who decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Decider {
    /// Code.
    Exact,
    /// A model.
    Model,
    /// A guard program.
    Program,
    /// Nobody was asked.
    Nobody,
}

/// Who is asked about judged contracts.
#[derive(Debug, Clone, Copy)]
pub enum Judge<'a> {
    /// Nobody: they are undecided.
    Nobody,
    /// A model, in one of two ways.
    Model(&'a dyn Model, Detect),
    /// A guard program, once a reply.
    Program(&'a Program),
}

impl Judge<'_> {
    const fn decider(self) -> Decider {
        match self {
            Self::Nobody => Decider::Nobody,
            Self::Model(..) => Decider::Model,
            Self::Program(_) => Decider::Program,
        }
    }
}

/// What became of one contract.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Judgement {
    /// The contract's id.
    pub id: String,
    /// Whether it holds.
    pub standing: Standing,
    /// Who decided, or would have had to.
    pub by: Decider,
    /// Why. From a model these are the model's words.
    pub explanation: String,
    /// Where, as [`Check::spans`](portcullis_contracts::Check::spans) says; none from a judge.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spans: Vec<Span>,
}

impl Judgement {
    fn judged(contract: &Contract, by: Decider, standing: Standing, explanation: impl Into<String>) -> Self {
        let (id, explanation) = (contract.id.clone(), explanation.into());
        Self { id, standing, by, explanation, spans: Vec::new() }
    }

    /// Whether the contract holds; what is undecided does not.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.standing == Standing::Holds
    }
}

/// What became of all contracts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Detection {
    /// A judgement for each contract, in order.
    pub judgements: Vec<Judgement>,
    /// Why the model gave no answer, where it gave none. The judged contracts it was to be asked about are undecided.
    pub error: Option<ModelError>,
}

impl Detection {
    /// Whether every contract holds.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.judgements.iter().all(Judgement::holds)
    }

    /// Whether a judged contract could not be decided: the detection failed, and must not pass for compliance.
    #[must_use]
    pub fn failed(&self) -> bool {
        self.judgements.iter().any(|judgement| judgement.standing == Standing::Undecided)
    }
}

/// Judges every contract on a reply.
pub async fn detect(judge: Judge<'_>, task: &Task<'_>) -> Detection {
    let mut detection = exact(task, judge, "it must be judged, but no judge was asked");
    let judged: Vec<&Contract> = task.contracts.iter().filter(|contract| task.is_judged(contract)).collect();
    if judged.is_empty() {
        return detection;
    }
    let failed = |by, error: &ModelError| {
        let undecided = |contract: &&Contract| undecided(contract, by, &error.to_string());
        judged.iter().map(undecided).collect()
    };
    let rows = match judge {
        Judge::Nobody => return detection,
        Judge::Program(program) => program.judge(task, &judged).await.unwrap_or_else(|error| {
            let rows = failed(Decider::Program, &error);
            detection.error = Some(error);
            rows
        }),
        Judge::Model(model, Detect::Batch) => batch(model, task, &judged).await.unwrap_or_else(|error| {
            let rows = failed(Decider::Model, &error);
            detection.error = Some(error);
            rows
        }),
        Judge::Model(model, Detect::Single) => {
            let mut rows = Vec::with_capacity(judged.len());
            for contract in &judged {
                // A model that gives no answer is not asked the rest: it would be as long about each.
                let row = match &detection.error {
                    Some(error) => undecided(contract, Decider::Model, &error.to_string()),
                    None => single(model, task, contract).await.unwrap_or_else(|error| {
                        let row = undecided(contract, Decider::Model, &error.to_string());
                        detection.error = Some(error);
                        row
                    }),
                };
                rows.push(row);
            }
            rows
        }
    };
    let places = detection.judgements.iter_mut().filter(|judgement| judgement.by != Decider::Exact);
    for (place, row) in places.zip(rows) {
        *place = row;
    }
    detection
}

/// Judges the exact contracts; the judged ones, which are the judge's to decide, are undecided for the reason given.
pub(crate) fn exact(task: &Task<'_>, judge: Judge<'_>, why: &str) -> Detection {
    let one = |contract: &Contract| {
        if task.is_judged(contract) {
            let lacks = contract.family().and_then(|family| task.context.lacks(family));
            let why = lacks.map_or_else(|| why.to_owned(), |need| format!("{}; {why}", need.missing()));
            return Judgement::judged(contract, judge.decider(), Standing::Undecided, why);
        }
        let found = check(contract, task.reply, task.context);
        let standing = match found.verdict {
            Verdict::Pass => Standing::Holds,
            Verdict::Fail => Standing::Broken,
            Verdict::NotApplicable => Standing::Undecided,
        };
        let (explanation, spans) = (found.explanation, found.spans);
        Judgement { id: contract.id.clone(), standing, by: Decider::Exact, explanation, spans }
    };
    Detection { judgements: task.contracts.iter().map(one).collect(), error: None }
}

fn undecided(contract: &Contract, by: Decider, why: &str) -> Judgement {
    Judgement::judged(contract, by, Standing::Undecided, format!("the detection failed: {why}"))
}

async fn batch(
    model: &dyn Model,
    task: &Task<'_>,
    judged: &[&Contract],
) -> Result<Vec<Judgement>, ModelError> {
    let completion = model.complete(&prompt::batch(task, judged)).await?;
    let rows = answer::rows(&completion.text, judged.len());
    Ok(judged.iter().zip(rows).map(|(contract, row)| decide(contract, row, completion.finish)).collect())
}

async fn single(model: &dyn Model, task: &Task<'_>, contract: &Contract) -> Result<Judgement, ModelError> {
    let completion = model.complete(&prompt::single(task, contract)).await?;
    Ok(decide(contract, answer::one(&completion.text), completion.finish))
}

fn decide(contract: &Contract, row: Result<Row, &'static str>, finish: Finish) -> Judgement {
    let said = |standing, explanation| Judgement::judged(contract, Decider::Model, standing, explanation);
    match row {
        Ok(Row { said: Said::Yes, explanation }) => said(Standing::Holds, explanation),
        Ok(Row { said: Said::No, explanation }) => said(Standing::Broken, explanation),
        Err(why) if finish == Finish::Length => {
            let why = format!("{why}; the answer was cut off at its limit of tokens");
            undecided(contract, Decider::Model, &why)
        }
        Err(why) => undecided(contract, Decider::Model, why),
    }
}

/// Asks whether a reply still answers its request. None where the model's answer cannot be read.
///
/// # Errors
/// The model gave no answer.
pub async fn answers(model: &dyn Model, prompt: &str, reply: &str) -> Result<Option<bool>, ModelError> {
    let completion = model.complete(&prompt::answers(prompt, reply)).await?;
    Ok(answer::one(&completion.text).ok().map(|row| row.said == Said::Yes))
}
