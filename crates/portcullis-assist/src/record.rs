//! What became of a reply, as programs read it: the lines of `portcullis contract --json` and the answers of
//! `/v1/contracts/*` are these.

use portcullis_contracts::{
    Conflict, Context, Contract, Edit, Need, Span, Step, Unrepaired, Verdict, conflicts, difference,
};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::budget::{Metered, Spent};
use crate::clock::Clock;
use crate::judge::{Decider, Judge, Judgement, Standing, Task, detect};
use crate::model::ModelError;
use crate::repair::{Answers, Ended, Helpers, Repaired, Settings, SettingsError, Strategy, repair};
use crate::written::Compiled;

/// A contract and what became of it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "HeldContract")]
pub struct Held {
    /// The contract's id.
    pub id: String,
    /// What it says.
    pub statement: String,
    /// None where it is left to a judge.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub family: Option<&'static str>,
    /// What is checked, in words.
    pub reading: String,
    /// Whether it holds; what is not applicable is not known to.
    pub verdict: Verdict,
    /// Who decided.
    pub by: Decider,
    /// Why.
    pub explanation: String,
    /// Where, in bytes of the reply.
    pub spans: Vec<Span>,
    /// Whether something had to be decided when the statement was read.
    pub ambiguous: bool,
    /// What was not given and would have let code decide.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub needs: Option<Need>,
}

fn held(compiled: &Compiled, context: &Context<'_>, judgements: Vec<Judgement>) -> Vec<Held> {
    let one = |(contract, judgement): (&Contract, Judgement)| Held {
        id: contract.id.clone(),
        statement: contract.statement.clone(),
        family: contract.family().map(|family| family.name()),
        reading: contract.family().map_or_else(|| contract.statement.clone(), ToString::to_string),
        verdict: match judgement.standing {
            Standing::Holds => Verdict::Pass,
            Standing::Broken => Verdict::Fail,
            Standing::Undecided => Verdict::NotApplicable,
        },
        by: judgement.by,
        explanation: judgement.explanation,
        spans: judgement.spans,
        ambiguous: compiled.ambiguous.contains(&contract.id),
        needs: contract.family().and_then(|family| context.lacks(family)),
    };
    compiled.contracts.iter().zip(judgements).map(one).collect()
}

/// What was used up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Used {
    /// Calls of the model.
    pub calls: u32,
    /// Requests that were sent for them.
    pub attempts: u32,
    /// Tokens of requests.
    pub input_tokens: u64,
    /// Tokens of answers.
    pub output_tokens: u64,
    /// Calls whose tokens the server did not say.
    pub estimated_calls: u32,
    /// Millionths of a currency, where prices are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_micros: Option<u64>,
    /// Milliseconds.
    pub ms: u64,
}

impl From<Spent> for Used {
    fn from(spent: Spent) -> Self {
        let Spent { calls, attempts, input_tokens, output_tokens, estimated_calls, cost_micros, time } =
            spent;
        let ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        Self { calls, attempts, input_tokens, output_tokens, estimated_calls, cost_micros, ms }
    }
}

/// A reply that was checked.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Checked {
    record: &'static str,
    /// The caller's name for the reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<Value>,
    /// What became of each contract.
    pub contracts: Vec<Held>,
    /// Contracts that cannot hold together.
    pub conflicts: Vec<Conflict>,
    /// What a model cost; absent where none was named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spent: Option<Used>,
    /// Why the judge gave no answer.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "in_words")]
    #[schemars(with = "Option<String>")]
    pub error: Option<ModelError>,
}

/// A reply as it came.
#[derive(Debug, Clone, Copy)]
pub struct Reply<'a> {
    /// The caller's name for it.
    pub key: Option<&'a Value>,
    /// The request that it answers, and what else it is held against, as far as that is known.
    pub context: Context<'a>,
    /// The reply.
    pub text: &'a str,
}

/// Checks a reply: exactly what can be, and by a judge, where there is one, the rest. Of the settings it reads how judged
/// contracts are asked about and the budget.
pub async fn check_reply(
    reply: Reply<'_>,
    compiled: &Compiled,
    helpers: Helpers<'_>,
    settings: &Settings,
    clock: &dyn Clock,
) -> Checked {
    let task = Task { context: reply.context, reply: reply.text, contracts: &compiled.contracts };
    let metered = helpers.model.map(|model| Metered::new(model, clock, settings.budget));
    let judge = match (helpers.program, &metered) {
        (Some(program), _) => Judge::Program(program),
        (None, Some(model)) => Judge::Model(model, settings.detect),
        (None, None) => Judge::Nobody,
    };
    let detection = detect(judge, &task).await;
    Checked {
        record: "check",
        key: reply.key.cloned(),
        contracts: held(compiled, &reply.context, detection.judgements),
        conflicts: conflicts(&compiled.contracts, reply.context),
        spent: metered.map(|metered| metered.spent().into()),
        error: detection.error,
    }
}

/// A reply that was repaired.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Mended {
    record: &'static str,
    /// The caller's name for the reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<Value>,
    /// Whether each contract held before; what nobody could tell does not.
    pub compliance: Vec<bool>,
    /// The reply to use.
    pub repaired: String,
    /// Whether each contract holds of it.
    pub compliance_after: Vec<bool>,
    /// Characters taken out and put in, over the characters of both texts.
    pub edit_ratio: f64,
    /// What changed.
    pub edits: Vec<Edit>,
    /// What code did.
    pub steps: Vec<Step>,
    /// What is known not to hold, and why it was not mended.
    pub unrepaired: Vec<Unrepaired>,
    /// Contracts that cannot hold together.
    pub conflicts: Vec<Conflict>,
    /// What a model or a guard program did; absent where nobody was named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assist: Option<Assisted>,
    /// What became of each contract.
    #[serde(skip)]
    pub after: Vec<Held>,
}

/// What a model or a guard program did for a reply.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Assisted {
    /// In which way the model was asked for rewrites.
    pub strategy: String,
    /// Rewrites that it was asked for.
    pub rewrites: usize,
    /// Which one was taken, from 1; 0 for none.
    pub chosen: usize,
    /// Whether the one that was taken still answers the request.
    pub answers: Answers,
    /// Ids of contracts that gave way in a conflict.
    pub gave_way: Vec<String>,
    /// Why it ended: `clean`, `done`, `budget` or `model`.
    pub ended: &'static str,
    /// What is the matter with the budget or the model.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "in_words")]
    #[schemars(with = "Option<String>")]
    pub error: Option<ModelError>,
    /// What became of each contract.
    pub contracts: Vec<Held>,
    /// What it cost.
    pub spent: Used,
}

/// Repairs a reply. What the contracts are worth beside each other is theirs, not the settings'.
///
/// # Errors
/// The settings do not fit the contracts.
pub async fn repair_reply(
    reply: Reply<'_>,
    compiled: &Compiled,
    helpers: Helpers<'_>,
    settings: &Settings,
    clock: &dyn Clock,
) -> Result<Mended, SettingsError> {
    let settings = &Settings { priorities: compiled.priorities.clone(), ..settings.clone() };
    let task = Task { context: reply.context, reply: reply.text, contracts: &compiled.contracts };
    let repaired = repair(helpers, clock, &task, settings).await?;
    let assisted = helpers.model.is_some() || helpers.program.is_some();
    Ok(Mended::of(reply, compiled, repaired, assisted.then_some(settings.strategy)))
}

impl Mended {
    fn of(reply: Reply<'_>, compiled: &Compiled, repaired: Repaired, strategy: Option<Strategy>) -> Self {
        let held_of = |judgements: &[Judgement]| judgements.iter().map(Judgement::holds).collect();
        let (compliance, compliance_after) = (held_of(&repaired.before), held_of(&repaired.after));
        let after = held(compiled, &reply.context, repaired.after);
        let mechanical = repaired.mechanical.filter(|_| repaired.chosen == 0);
        let steps = mechanical.as_ref().map(|repair| repair.steps.clone()).unwrap_or_default();
        let by_code = strategy.is_none_or(|strategy| strategy == Strategy::Mechanical);
        let why = |held: &Held| {
            let left = mechanical.as_ref().map(|repair| repair.unrepaired.as_slice()).unwrap_or_default();
            let code = left.iter().find(|left| left.contract == held.id && by_code);
            code.map_or_else(|| held.explanation.clone(), |left| left.reason.clone())
        };
        let failing = after.iter().filter(|held| held.verdict == Verdict::Fail);
        let unrepaired =
            failing.map(|held| Unrepaired { contract: held.id.clone(), reason: why(held) }).collect();
        let (edits, edit_ratio) = match &mechanical {
            Some(repair) => (repair.edits.clone(), repair.edit_ratio),
            None => difference(reply.text, &repaired.reply),
        };
        let (ended, error) = match repaired.ended {
            Ended::Clean => ("clean", None),
            Ended::Done => ("done", None),
            Ended::Budget(exhausted) => ("budget", Some(ModelError::Budget(exhausted))),
            Ended::Model(ModelError::Budget(exhausted)) => ("budget", Some(ModelError::Budget(exhausted))),
            Ended::Model(error) => ("model", Some(error)),
        };
        let assist = strategy.map(|strategy| Assisted {
            strategy: strategy.to_string(),
            rewrites: repaired.attempts.len(),
            chosen: repaired.chosen,
            answers: repaired.answers,
            gave_way: repaired.gave_way,
            ended,
            error,
            contracts: after.clone(),
            spent: repaired.spent.into(),
        });
        Self {
            record: "repair",
            key: reply.key.cloned(),
            compliance,
            repaired: repaired.reply,
            compliance_after,
            edit_ratio,
            edits,
            steps,
            unrepaired,
            conflicts: repaired.conflicts,
            assist,
            after,
        }
    }

    /// Why a model or a judge gave no answer; a budget that is used up is none of it.
    #[must_use]
    pub fn error(&self) -> Option<&ModelError> {
        let error = self.assist.as_ref()?.error.as_ref()?;
        (!matches!(error, ModelError::Budget(_))).then_some(error)
    }
}

impl Checked {
    /// Why the judge gave no answer; a budget that is used up is none of it.
    #[must_use]
    pub fn error(&self) -> Option<&ModelError> {
        self.error.as_ref().filter(|error| !matches!(error, ModelError::Budget(_)))
    }
}

#[expect(clippy::ref_option, reason = "the form that serde asks for")]
fn in_words<S: serde::Serializer>(error: &Option<ModelError>, serializer: S) -> Result<S::Ok, S::Error> {
    match error {
        Some(error) => serializer.collect_str(error),
        None => serializer.serialize_none(),
    }
}
