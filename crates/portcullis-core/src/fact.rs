//! Facts: what a guard needs from outside the pure core.
//!
//! A guard asks ([`crate::guard::Guard::needs`]), the driver of the run answers, and question and answer are
//! recorded with the verdict, so that the decision can be repeated by anyone who holds the record.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A question to the outside world.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FactRequest {
    /// What kind of thing answers, e.g. `program`, `model`, `file-digest`, `time-of-day`.
    pub source: String,
    /// The question itself, in the source's terms.
    pub question: String,
}

/// The answer. Failures and time-outs are facts too.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FactAnswer {
    /// The answer.
    Known(Value),
    /// There is no answer, and why, in words that quote no text. The guard that needs it denies.
    Failed(String),
}

/// A question with its answer, as recorded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FactRecord {
    /// The question.
    #[serde(flatten)]
    pub request: FactRequest,
    /// The answer.
    pub answer: FactAnswer,
}

impl FactRecord {
    /// Whether the answer may quote a text, such as the words of a model: see [`crate::aside`].
    pub fn has_words(&self) -> bool {
        matches!(&self.answer, FactAnswer::Known(value) if has_text(value))
    }
}

fn has_text(value: &Value) -> bool {
    let mut rest = vec![value];
    while let Some(value) = rest.pop() {
        match value {
            Value::String(_) => return true,
            Value::Array(items) => rest.extend(items),
            Value::Object(map) => rest.extend(map.values()),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    false
}

/// The facts at hand for one decision.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Facts(Vec<FactRecord>);

impl Facts {
    /// No facts: what most decisions need.
    pub const fn none() -> Self {
        Self(Vec::new())
    }

    /// Adds an answer.
    pub fn insert(&mut self, request: FactRequest, answer: FactAnswer) {
        self.0.push(FactRecord { request, answer });
    }

    /// The answer to a question, if it was asked.
    pub fn get(&self, request: &FactRequest) -> Option<&FactAnswer> {
        self.0.iter().find(|record| record.request == *request).map(|record| &record.answer)
    }

    /// All questions and answers, in the order they were gathered.
    pub fn records(&self) -> &[FactRecord] {
        &self.0
    }
}
