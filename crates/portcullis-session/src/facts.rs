//! Sources of the facts that guards need from outside.

use portcullis_core::fact::{FactAnswer, FactRecord, FactRequest};
use portcullis_core::policy::Window;
use portcullis_core::time::Timestamp;
use portcullis_core::usage::Used;

/// Answers the questions of one decision. A failure is an answer, too: the guard that asked denies.
pub trait Sources {
    /// The answer, as things stood at that time.
    fn answer(&self, request: &FactRequest, at: Timestamp) -> FactAnswer;
}

/// A source that answers nothing.
#[derive(Debug, Clone, Copy)]
pub struct NoSources;

impl Sources for NoSources {
    fn answer(&self, request: &FactRequest, _: Timestamp) -> FactAnswer {
        unknown(request)
    }
}

/// The answer to an unknown question.
pub(crate) fn unknown(request: &FactRequest) -> FactAnswer {
    FactAnswer::Failed(format!("no fact source named `{}` is connected", request.source))
}

/// The window that a question about a principal's usage is about, or `None` for another question.
pub(crate) fn window_of(request: &FactRequest) -> Option<Window> {
    (request.source == Window::SOURCE).then(|| Window::from_name(&request.question))?
}

/// The answer to a question about a principal's usage.
pub(crate) fn usage(used: Used) -> FactAnswer {
    match serde_json::to_value(used) {
        Ok(value) => FactAnswer::Known(value),
        Err(error) => FactAnswer::Failed(error.to_string()),
    }
}

/// For a run that is judged in memory: the answers that a record has of it, else what is known of the run alone.
#[derive(Debug)]
pub(crate) struct Recorded<'a> {
    /// Recorded answers.
    pub facts: &'a [FactRecord],
    /// What this and all other runs of the principal have used up.
    pub used: Used,
}

impl Sources for Recorded<'_> {
    fn answer(&self, request: &FactRequest, _: Timestamp) -> FactAnswer {
        match self.facts.iter().find(|record| record.request == *request) {
            Some(record) => record.answer.clone(),
            None if window_of(request).is_some() => usage(self.used),
            None => unknown(request),
        }
    }
}
