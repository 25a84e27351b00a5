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

use portcullis_contracts::verify::Document;
use portcullis_core::bundle::{Bundle, level_answer, level_request};
use portcullis_core::delegation::{self, Objection, ParentAnswer};
use portcullis_core::fact::{FactAnswer, FactRecord, FactRequest};
use portcullis_core::id::RunId;
use portcullis_core::label::LabelSet;
use portcullis_core::policy::Window;
use portcullis_core::profile::Level;
use portcullis_core::program::{self, Answer};
use portcullis_core::taint::{Marks, Taint, Tainted};
use portcullis_core::time::Timestamp;
use portcullis_core::usage::Used;
use portcullis_guards::contracts::{self, answer::ContractAnswer};
use portcullis_guards::flow::second_opinion::{self, Opinion};
use portcullis_guards::program::per_action;

use crate::delegated::Delegated;
use crate::engine::Asking;
use crate::principals::Past;
pub use crate::principals::past::OfPrincipal;
use crate::programs::{self, ProgramSource};
use crate::run::Above;
use crate::taints::Taints;

/// How long sources may take to answer the questions of one decision, where nothing else is said.
pub const FACTS_WAIT: Duration = Duration::from_secs(10);
/// The most questions of one decision.
const FACTS_MAX: usize = 64;

/// A named source of facts: what a guard needs from outside and the record must hold. It is asked before a decision,
/// while nothing of the run is locked, so it may take its time within the deadline of its [`FactSources`].
pub trait FactSource: fmt::Debug + Send + Sync {
    /// The name by which guards ask it.
    fn name(&self) -> &str;

    /// How long it may take for a question, where that is another time than its [`FactSources`] give to all.
    fn wait(&self, _question: &Question) -> Option<Duration> {
        None
    }

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
    /// What is judged.
    pub shown: Arc<Shown>,
}

/// What a source is shown beside its question. The record has it already.
#[derive(Debug, Clone)]
pub struct Shown {
    /// The bundle in force.
    pub bundle: Arc<Bundle>,
    /// What was said or seen, when it is a text.
    pub text: Option<String>,
    /// Of a reply: what was asked since the one before, where the run remembers it.
    pub prompt: Option<String>,
    /// Of a reply: the documents that it may cite, where the bundle says which are.
    pub documents: Option<Vec<Document>>,
    /// Of a reply: what becomes of it.
    pub reply: Option<ReplyShown>,
    /// Of an action: what guard programs and engines are told of it, as JSON, where there are any.
    pub told: Option<String>,
    /// Of an action: what a model is told of it that may give a second opinion, where one is asked.
    pub second_opinion: Option<second_opinion::Asked>,
    /// Of an action: what a model is told of it that writes a program, where one does.
    pub per_action: Option<per_action::Asked>,
}

/// What becomes of a reply once it was judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplyShown {
    /// The surface says that it is the last one.
    pub last: bool,
    /// It can be shown with stretches replaced.
    pub replaces: bool,
}

/// The questions of one decision.
#[derive(Debug, Clone, Default)]
pub struct Asked {
    requests: Vec<FactRequest>,
    shown: Option<Arc<Shown>>,
}

impl Asked {
    /// Questions with what their sources are shown, which is only made where there are questions.
    pub(crate) fn of(requests: Vec<FactRequest>, shown: impl FnOnce() -> Shown) -> Self {
        let shown = (!requests.is_empty()).then(|| Arc::new(shown()));
        Self { requests, shown }
    }

    /// The same, where it is about a reply.
    pub(crate) fn about_reply(mut self, reply: ReplyShown) -> Self {
        if let Some(shown) = self.shown.as_mut().and_then(Arc::get_mut) {
            shown.reply = Some(reply);
        }
        self
    }

    /// Those of a source.
    #[must_use]
    pub(crate) fn only(mut self, source: &str) -> Self {
        self.requests.retain(|request| request.source == source);
        self
    }

    /// Whether nothing is asked.
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }
}

/// The sources that a gate asks, by name.
#[derive(Debug, Clone)]
pub struct FactSources {
    by_name: BTreeMap<String, Arc<dyn FactSource>>,
    wait: Duration,
}

impl Default for FactSources {
    fn default() -> Self {
        let none = Self { by_name: BTreeMap::new(), wait: FACTS_WAIT };
        none.with(Arc::new(ProgramSource))
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

    /// Adds a source under a name that has none yet.
    #[must_use]
    pub fn or_with(mut self, source: Arc<dyn FactSource>) -> Self {
        self.by_name.entry(source.name().to_owned()).or_insert(source);
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
        Asked { requests, shown }: Asked,
    ) -> Vec<FactRecord> {
        let Some(shown) = shown else { return Vec::new() };
        let (mut asked, all_wait) = (Vec::new(), self.wait);
        for (number, request) in requests.into_iter().enumerate() {
            let source = self.by_name.get(&request.source).filter(|_| number < FACTS_MAX).map(Arc::clone);
            let (principal, question) = (principal.to_owned(), request.question.clone());
            let question = Question { run, principal, question, shown: Arc::clone(&shown) };
            let answer = source.map(|source| {
                tokio::spawn(async move {
                    let wait = source.wait(&question).unwrap_or(all_wait);
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
#[derive(Clone, Copy)]
pub(crate) struct Gathered<'a> {
    /// The answers of the sources.
    pub facts: &'a [FactRecord],
    /// Answers about the principal's usage.
    pub usage: &'a dyn Sources,
    /// What is known of things that outlive runs.
    pub taints: &'a Taints,
    /// Who asks.
    pub principal: &'a str,
    /// What the runs below have used up.
    pub below: &'a Delegated,
    /// The runs above, the nearest first, as far as they are live.
    pub above: &'a [Above],
    /// What is judged was counted below before.
    pub again: bool,
}

impl Sources for Gathered<'_> {
    fn answer(&self, request: &FactRequest, at: Timestamp) -> FactAnswer {
        if *request == delegation::used_below() {
            return self.below.answer(self.again);
        }
        match self.facts.iter().find(|record| record.request == *request) {
            Some(record) => record.answer.clone(),
            // Of a surface that contains nothing it is not asked.
            None if *request == level_request() => level_answer(Level::None),
            None => self.usage.answer(request, at),
        }
    }

    fn of_parent(&self, _: &FactRequest, asking: &Asking<'_>, at: Timestamp) -> FactAnswer {
        let answer = match self.above.split_first() {
            Some((parent, above)) => parent.may(asking, at, Gathered { above, ..*self }),
            None => ParentAnswer { seq: 0, objection: Some(gone()) },
        };
        match serde_json::to_value(answer) {
            Ok(value) => FactAnswer::Known(value),
            Err(error) => FactAnswer::Failed(error.to_string()),
        }
    }

    fn of_principal(&self, request: &FactRequest, call: &OfPrincipal<'_>, at: Timestamp) -> FactAnswer {
        self.usage.of_principal(request, call, at)
    }

    fn of_programs(
        &self,
        request: &FactRequest,
        bundle: &Bundle,
        told: &dyn Fn() -> Option<String>,
        _: Timestamp,
    ) -> FactAnswer {
        match self.facts.iter().find(|record| record.request == *request) {
            Some(record) => record.answer.clone(),
            // A minute began since they were asked.
            None => programs::again(bundle, told, None),
        }
    }

    fn tainted(&self, things: &[String], text: &str) -> Option<Tainted> {
        self.taints.tainted(self.principal, things, text)
    }

    fn carried(&self, things: &[String]) -> Option<(LabelSet, Option<Marks>)> {
        self.taints.carried(self.principal, things)
    }

    fn is_outdated(&self, taint: &Taint) -> bool {
        self.taints.is_outdated(self.principal, taint)
    }
}

/// The run above is closed, or nobody writes it.
fn gone() -> Objection {
    Objection {
        holds: false,
        rule: "run/phase/closed".to_owned(),
        why: "it is closed or not live; take it up again, or open a run of its own for this".to_owned(),
    }
}

/// Answers the questions of one decision from what is at hand. A failure is an answer, too: the guard that asked
/// denies.
pub trait Sources {
    /// The answer, as things stood at that time.
    fn answer(&self, request: &FactRequest, at: Timestamp) -> FactAnswer;

    /// What the run above says of an action.
    fn of_parent(&self, request: &FactRequest, _asking: &Asking<'_>, at: Timestamp) -> FactAnswer {
        self.answer(request, at)
    }

    /// What of the calls of all runs of the principal counts for one.
    fn of_principal(&self, request: &FactRequest, _call: &OfPrincipal<'_>, at: Timestamp) -> FactAnswer {
        self.answer(request, at)
    }

    /// What the programs of a bundle say of an action of which they are told this.
    fn of_programs(
        &self,
        request: &FactRequest,
        _bundle: &Bundle,
        _told: &dyn Fn() -> Option<String>,
        at: Timestamp,
    ) -> FactAnswer {
        self.answer(request, at)
    }

    /// What of a text others had written into one of the things that it was read from.
    fn tainted(&self, _things: &[String], _text: &str) -> Option<Tainted> {
        None
    }

    /// What others had written into things that an action copies: their labels, and which words, `None` for all.
    fn carried(&self, _things: &[String]) -> Option<(LabelSet, Option<Marks>)> {
        None
    }

    /// Whether more is known of a thing than that this was written into it.
    fn is_outdated(&self, _taint: &Taint) -> bool {
        false
    }
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
    /// What judges and models say of contracts.
    pub contracts: Option<&'a ContractAnswer>,
    /// What this and all other runs of the principal have used up.
    pub used: Used,
    /// What the record says of the result that is told next.
    pub tainted: Option<Tainted>,
    /// What the run above says.
    pub parent: Option<&'a ParentAnswer>,
    /// What sequences over the principal go by.
    pub past: &'a Past,
    /// What the runs below have used up.
    pub below: Used,
    /// The level at which the surface runs command lines contained.
    pub level: Option<Level>,
    /// What engines say that are not asked; nothing is known where it is missing.
    pub engines: Option<&'a BTreeMap<String, Answer>>,
    /// What a model says that is not asked about calls in the grey zone.
    pub opinion: Option<Opinion>,
}

impl Recorded<'_> {
    /// The record of an answer to a question. Where the question names the action, it does so under the key of its run,
    /// which a replay does not have: there, the record is about the same action anyway.
    fn recorded(&self, request: &FactRequest) -> Option<&FactRecord> {
        let of_action = [program::SOURCE, program::ENGINE_SOURCE].contains(&request.source.as_str());
        let whom = |question: &str| question.split_once(" on ").map(|(whom, _)| whom.to_owned());
        self.facts.iter().find(|record| {
            let same_source = record.request.source == request.source;
            let same_party = of_action && whom(&record.request.question) == whom(&request.question);
            same_source && (same_party || record.request.question == request.question)
        })
    }
}

impl Sources for Recorded<'_> {
    fn answer(&self, request: &FactRequest, _: Timestamp) -> FactAnswer {
        match self.recorded(request) {
            Some(record) => record.answer.clone(),
            None if window_of(request).is_some() => usage(self.used),
            None if *request == delegation::used_below() => usage(self.below),
            None if *request == delegation::may() => match self.parent.map(serde_json::to_value) {
                Some(Ok(answer)) => FactAnswer::Known(answer),
                _ => unknown(request),
            },
            None if *request == level_request() => match self.level {
                Some(level) => level_answer(level),
                None => unknown(request),
            },
            None if request.source == program::ENGINE_SOURCE => {
                let said = self.engines.map(|all| all.get(program::engine_of(&request.question)));
                match said.map(|said| serde_json::to_value(said.cloned().unwrap_or_default())) {
                    Some(Ok(answer)) => FactAnswer::Known(answer),
                    _ => unknown(request),
                }
            }
            None if request.source == second_opinion::SOURCE => {
                match self.opinion.map(serde_json::to_value) {
                    Some(Ok(answer)) => FactAnswer::Known(answer),
                    _ => unknown(request),
                }
            }
            None if request.source == contracts::SOURCE => match self.contracts.map(serde_json::to_value) {
                Some(Ok(answer)) => FactAnswer::Known(answer),
                _ => unknown(request),
            },
            None => unknown(request),
        }
    }

    fn of_principal(&self, request: &FactRequest, call: &OfPrincipal<'_>, at: Timestamp) -> FactAnswer {
        match self.recorded(request) {
            Some(record) => record.answer.clone(),
            None => self.past.answer(call, at),
        }
    }

    fn of_programs(
        &self,
        request: &FactRequest,
        bundle: &Bundle,
        told: &dyn Fn() -> Option<String>,
        _: Timestamp,
    ) -> FactAnswer {
        let record = self.recorded(request);
        programs::again(bundle, told, record.map(|record| &record.answer))
    }

    fn tainted(&self, _: &[String], _: &str) -> Option<Tainted> {
        self.tainted.clone()
    }
}
