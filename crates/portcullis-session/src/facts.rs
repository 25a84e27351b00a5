//! Facts: what guards need from outside, and where it comes from.
//!
//! Guards say what they need ([`Engine::needs`](crate::engine::Engine::needs)), the named sources are asked
//! asynchronously while the run is not locked, and the decision is then made from what was [gathered](Gathered). What
//! the gate counts itself, the usage of a principal, is read under the lock, so that two runs cannot use up the same
//! allowance.

use std::collections::BTreeMap;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use portcullis_core::fact::{FactAnswer, FactRecord, FactRequest};
use portcullis_core::id::RunId;
use portcullis_core::policy::Window;
use portcullis_core::time::Timestamp;
use portcullis_core::usage::Used;

/// How long sources may take to answer the questions of one decision, where nothing else is said.
pub const FACTS_WAIT: Duration = Duration::from_secs(10);
/// The most questions of one decision.
const FACTS_MAX: usize = 64;

/// A named source of facts: what a guard needs from outside and the record must hold. It is asked before a decision,
/// while nothing of the run is locked, so it may take its time within the deadline of its [`FactSources`].
pub trait FactSource: fmt::Debug + Send + Sync {
    /// The name by which guards ask it.
    fn name(&self) -> &str;

    /// The answer to a question. It is recorded, so it must hold no secret; a failure is an answer, too.
    fn answer<'a>(&'a self, question: &'a Question) -> Pin<Box<dyn Future<Output = FactAnswer> + Send + 'a>>;
}

/// What a source is asked.
#[derive(Debug, Clone)]
pub struct Question {
    /// The run.
    pub run: RunId,
    /// On whose behalf the agent acts.
    pub principal: String,
    /// The question, in the terms of the source.
    pub question: String,
}

/// The sources that a gate asks, by name.
#[derive(Debug, Clone)]
pub struct FactSources {
    by_name: BTreeMap<String, Arc<dyn FactSource>>,
    wait: Duration,
}

impl Default for FactSources {
    fn default() -> Self {
        Self { by_name: BTreeMap::new(), wait: FACTS_WAIT }
    }
}

impl FactSources {
    /// The same with another deadline than [`FACTS_WAIT`].
    #[must_use]
    pub fn within(self, wait: Duration) -> Self {
        Self { wait, ..self }
    }

    /// Adds a source. The one added last under a name is asked.
    #[must_use]
    pub fn with(mut self, source: Arc<dyn FactSource>) -> Self {
        self.by_name.insert(source.name().to_owned(), source);
        self
    }

    /// Those of the questions that these sources answer.
    pub(crate) fn answerable(&self, mut requests: Vec<FactRequest>) -> Vec<FactRequest> {
        requests.retain(|request| self.by_name.contains_key(&request.source));
        requests
    }

    /// Whether one of these names is a source. Looks at none where there are no sources.
    pub(crate) fn any_of<'n>(&self, mut names: impl Iterator<Item = &'n str>) -> bool {
        !self.by_name.is_empty() && names.any(|name| self.by_name.contains_key(name))
    }

    /// Asks all questions at once, and waits until the last is answered or the deadline has passed. A source that is
    /// late, that panics, or that is asked too much has failed.
    pub(crate) async fn gather(
        &self,
        run: RunId,
        principal: &str,
        requests: Vec<FactRequest>,
    ) -> Vec<FactRecord> {
        let (mut asked, wait) = (Vec::new(), self.wait);
        for (number, request) in requests.into_iter().enumerate() {
            let source = self.by_name.get(&request.source).filter(|_| number < FACTS_MAX).map(Arc::clone);
            let question =
                Question { run, principal: principal.to_owned(), question: request.question.clone() };
            let answer = source.map(|source| {
                tokio::spawn(async move {
                    let answer = tokio::time::timeout(wait, source.answer(&question)).await;
                    answer.unwrap_or_else(|_| {
                        FactAnswer::Failed(format!("no answer within {} ms", wait.as_millis()))
                    })
                })
            });
            asked.push((request, answer));
        }
        let mut facts = Vec::with_capacity(asked.len());
        for (request, answer) in asked {
            let answer = match answer {
                Some(answer) => {
                    answer.await.unwrap_or_else(|_| FactAnswer::Failed("the source panicked".to_owned()))
                }
                None => FactAnswer::Failed(format!("more than {FACTS_MAX} questions at once")),
            };
            facts.push(FactRecord { request, answer });
        }
        facts
    }
}

/// What was gathered for one decision, and what the gate counts itself.
pub(crate) struct Gathered<'a> {
    /// The answers of the sources.
    pub facts: &'a [FactRecord],
    /// Answers about the principal's usage.
    pub usage: &'a dyn Sources,
}

impl Sources for Gathered<'_> {
    fn answer(&self, request: &FactRequest, at: Timestamp) -> FactAnswer {
        match self.facts.iter().find(|record| record.request == *request) {
            Some(record) => record.answer.clone(),
            None => self.usage.answer(request, at),
        }
    }
}

/// Answers the questions of one decision from what is at hand. A failure is an answer, too: the guard that asked
/// denies.
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
