//! What was answered to the questions of a draft.

use portcullis_core::id::Digest;
use serde::{Deserialize, Serialize};

/// An answer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// The question's id.
    pub question: String,
    /// The answer, in plain English; empty where the default is accepted.
    pub text: String,
    /// Who suggested it, where it was not the person who gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suggested_by: Option<Suggester>,
}

/// A model that suggested an answer. The cassette is the record of what it was asked and said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suggester {
    /// Its name.
    pub model: String,
    /// SHA-256 of the cassette.
    pub cassette: Digest,
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
        Ok(Self { text: text.to_owned(), ..Self::accepting(question) })
    }

    /// Accepts the default of a question.
    pub fn accepting(question: impl Into<String>) -> Self {
        Self { question: question.into(), ..Self::default() }
    }

    /// Whether the default is accepted.
    pub fn accepts(&self) -> bool {
        self.text.is_empty()
    }
}
