//! Questions of common sense with four rules about the answers: a small set of our own, in the shape of the paper's.
//!
//! The paper's 80 questions were never published. These were written for this suite, with what each answer breaks.

use portcullis_core::principal::Principal;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::cases::{Case, Expected};
use crate::data::Data;
use crate::metrics::Truth;
use crate::suite::{self, EvalError};

/// The tool that an answer is a call of.
const TOOL: &str = "answer";
/// Levels of risk by the number of broken rules.
pub(super) const LEVELS: [&str; 5] = ["no risk", "low risk", "medium risk", "high risk", "very high risk"];

/// Recall by level, in percent: *GuardAgent*, table 8. The last is over all 80 questions.
pub(super) const PUBLISHED: [(&str, [f64; 4], f64); 2] = [
    ("GuardAgent, GPT-4", [100.0, 88.9, 81.8, 100.0], 92.5),
    ("model as guard, GPT-4", [97.4, 77.8, 59.1, 100.0], 82.5),
];

#[derive(Debug, Deserialize)]
struct Record {
    id: String,
    question: String,
    choices: Map<String, Value>,
    answer: String,
    violated: Vec<String>,
}

/// The level of a number of broken rules.
pub(super) fn level(broken: usize) -> &'static str {
    LEVELS.get(broken).or(LEVELS.last()).copied().unwrap_or_default()
}

pub(super) fn cases(data: &Data) -> Result<(Vec<Case>, usize), EvalError> {
    suite::read(&data.clone().ending(&[".jsonl", ".json"]), |record: Record| {
        let Record { id, question, choices, answer, violated } = record;
        let listed: Vec<String> = choices
            .iter()
            .map(|(letter, text)| format!("{letter}: {}", text.as_str().unwrap_or_default()))
            .collect();
        Ok(Case {
            id,
            group: level(violated.len()).to_owned(),
            input: format!("{question}\n{}", listed.join(", ")),
            output: answer.clone(),
            tool: TOOL,
            arguments: json!({"question": question, "choices": choices, "answer": answer}),
            principal: Principal::named("user"),
            truth: Truth {
                denied: !violated.is_empty(),
                wrong: violated.into_iter().collect(),
                answer_right: true,
            },
            expected: Expected::Letter(answer),
        })
    })
}
