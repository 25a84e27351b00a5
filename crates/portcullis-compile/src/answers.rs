//! What was answered to the questions of a draft.

use serde::{Deserialize, Serialize};

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// The question's id.
    pub question: String,
    /// The answer, in plain English; empty where the default is accepted.
    pub text: String,
}

impl Answer {
    /// Reads `question=value`.
    ///
    /// # Errors
    /// It is not of this form.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (question, text) = text.split_once('=').unwrap_or((text, ""));
        let (question, text) = (question.trim(), text.trim());
        if question.is_empty() || text.is_empty() {
            return Err("an answer is `question=value`, as in `window=per calendar month`".to_owned());
        }
        Ok(Self { question: question.to_owned(), text: text.to_owned() })
    }

    /// Whether the default is accepted.
    pub fn accepts(&self) -> bool {
        self.text.is_empty()
    }
}
