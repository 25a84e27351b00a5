//! The replay of one run through the engine that judges live runs.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use portcullis_core::bundle::Bundle;
use portcullis_core::event::{Enforced, GrantScope, OutcomeStatus};
use portcullis_core::finding::Finding;
use portcullis_core::id::ActionId;
use portcullis_core::verdict::Verdict;
use portcullis_session::dry::DryRun;
use portcullis_session::engine::{Answer, Judgement, Proposal, Says, TextJudgement};
use portcullis_session::policy::Pipeline;
use serde::Serialize;

use super::payload::union;
use super::{Call, Observed, Part, Replay, Step};
use crate::suite::EvalError;

/// What was decided about a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Trial {
    /// What was decided about each call, in order; shorter than the record where the run ended.
    pub calls: Vec<Judged>,
    /// What was cut out of results: number of the call, and the bytes of its text.
    pub excised: Vec<(usize, Vec<Range<usize>>)>,
    /// Rules that stopped an input or a reply.
    pub said: Vec<(String, Fate)>,
}

/// What was decided about a call.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Judged {
    /// Whether it went ahead.
    pub fate: Fate,
    /// The rule that decided, where it did not go ahead.
    pub rule: Option<String>,
    /// Where the finding names a place in an earlier result: whether that place holds injected text.
    pub named_payload: Option<bool>,
    /// Time for judging the call and taking its result in.
    pub time: Duration,
}

/// What became of a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fate {
    /// It went ahead.
    #[default]
    Passed,
    /// It waited for a person, or for the user's word.
    Held,
    /// It was denied.
    Denied,
}

impl Trial {
    /// Number of the first call with that fate or a worse one.
    pub fn first(&self, fate: Fate) -> Option<usize> {
        self.calls.iter().position(|call| call.fate >= fate)
    }

    /// Number of the denied call, with which the run ended.
    pub fn denied(&self) -> Option<usize> {
        self.first(Fate::Denied)
    }

    /// Numbers of the calls that were held.
    pub fn held(&self) -> Vec<usize> {
        let held = self.calls.iter().enumerate().filter(|(_, call)| call.fate == Fate::Held);
        held.map(|(number, _)| number).collect()
    }
}

/// Lets the pipeline judge a run.
///
/// # Errors
/// The bundle has no policy for it.
pub fn play(replay: &Replay, bundle: &Arc<Bundle>, pipeline: &Arc<Pipeline>) -> Result<Trial, EvalError> {
    let dry = DryRun::open(Arc::clone(bundle), Arc::clone(pipeline), bundle.default_policy());
    let dry = dry.map_err(|error| EvalError::Bundle(error.to_string()))?;
    let mut player = Player { dry, trial: Trial::default(), waiting: Vec::new(), seen: BTreeMap::new() };
    for step in &replay.steps {
        // Results of calls made in one breath come back when all of them were made.
        if !matches!(step, Step::Call(call) if call.together) {
            player.results();
        }
        match step {
            Step::Input { label, text } => {
                let judgement = player.dry.input(text, label.clone());
                player.said(&judgement);
            }
            Step::Output(text) => {
                let judgement = player.dry.output(text);
                player.said(&judgement);
            }
            Step::Call(call) => {
                let fate = player.call(call);
                let over = fate == Fate::Denied || (fate == Fate::Held && call.part == Part::Malicious);
                if over {
                    break;
                }
            }
        }
    }
    player.results();
    Ok(player.trial)
}

struct Player<'r> {
    dry: DryRun,
    trial: Trial,
    /// Calls that went ahead and whose results were not handed over yet.
    waiting: Vec<(usize, ActionId, Option<&'r Observed>)>,
    /// Results by the number of the event that recorded them.
    seen: BTreeMap<u64, &'r Observed>,
}

impl<'r> Player<'r> {
    fn call(&mut self, call: &'r Call) -> Fate {
        let proposal = Proposal {
            tool: Some(call.tool.clone()),
            arguments: call.arguments.clone(),
            planned: call.planned.clone(),
            ..Proposal::default()
        };
        let again = proposal.clone();
        let started = Instant::now();
        let mut judgement = self.dry.propose(proposal);
        let time = started.elapsed();
        let fate = fate(&judgement);
        let finding = (fate != Fate::Passed).then(|| headline(&judgement)).flatten();
        let rule = finding.map(|finding| finding.rule.clone().into_owned());
        let named_payload = finding.and_then(|finding| self.names_payload(finding));
        let mut judged = Judged { fate, rule, named_payload, time };
        if fate == Fate::Held && call.part != Part::Malicious {
            judgement = self.let_pass(judgement, again);
            // A grant answers what was held; what stands against the call besides stays.
            if self::fate(&judgement) == Fate::Denied {
                judged.fate = Fate::Denied;
                judged.rule = headline(&judgement).map(|finding| finding.rule.clone().into_owned());
            }
        }
        if judgement.enforced.proceeds() {
            self.waiting.push((self.trial.calls.len(), judgement.action.id, call.result.as_ref()));
        }
        let fate = judged.fate;
        self.trial.calls.push(judged);
        fate
    }

    /// A person looks at a held call and lets it pass. What only the user's word releases stays withheld.
    fn let_pass(&mut self, held: Judgement, again: Proposal) -> Judgement {
        let Some(approval) = held.approval else { return held };
        let answer = Answer::rehearsed(Says::grant(GrantScope::Once), "replay");
        match self.dry.answer(approval, answer) {
            Ok(()) => self.dry.propose(again),
            Err(_) => held,
        }
    }

    /// Hands over the results of the calls that went ahead.
    fn results(&mut self) {
        for (number, action, result) in std::mem::take(&mut self.waiting) {
            let started = Instant::now();
            let removed = self.result(action, result);
            if let Some(judged) = self.trial.calls.get_mut(number) {
                judged.time += started.elapsed();
            }
            if !removed.is_empty() {
                self.trial.excised.push((number, removed));
            }
        }
    }

    /// Hands a result over. Returns the bytes that were cut out of it before the agent sees it.
    fn result(&mut self, action: ActionId, result: Option<&'r Observed>) -> Vec<Range<usize>> {
        let Some(result) = result else {
            self.dry.outcome(action, OutcomeStatus::Unknown, None);
            return Vec::new();
        };
        let status = if result.error { OutcomeStatus::Error } else { OutcomeStatus::Ok };
        let before = self.dry.state().seq();
        let judgement = self.dry.outcome(action, status, Some(result.text.clone()));
        for seq in before + 1..=self.dry.state().seq() {
            self.seen.insert(seq, result);
        }
        judgement.map_or_else(Vec::new, |judgement| removed(&judgement, &result.text))
    }

    /// What was said to the agent, or by it, and did not pass.
    fn said(&mut self, judgement: &TextJudgement) {
        if judgement.enforced.proceeds() {
            return;
        }
        let verdict = judgement.decision.verdict;
        let finding = judgement.decision.findings.iter().find(|finding| finding.effective() == verdict);
        let fate = if verdict >= Verdict::Deny { Fate::Denied } else { Fate::Held };
        self.trial.said.extend(finding.map(|finding| (finding.rule.clone().into_owned(), fate)));
    }

    /// Whether a place that the finding names in an earlier result lies in injected text.
    fn names_payload(&self, finding: &Finding) -> Option<bool> {
        let observed = finding.evidence.iter().find_map(|seq| self.seen.get(seq))?;
        let span = finding.spans.iter().find(|span| span.pointer == "/text")?;
        Some(observed.payload.iter().any(|payload| payload.start <= span.start && span.end <= payload.end))
    }
}

fn fate(judgement: &Judgement) -> Fate {
    match judgement.decision.verdict {
        _ if judgement.enforced.proceeds() => Fate::Passed,
        Verdict::Deny | Verdict::Halt => Fate::Denied,
        _ => Fate::Held,
    }
}

/// The bytes of a result that the agent is not shown.
fn removed(judgement: &TextJudgement, text: &str) -> Vec<Range<usize>> {
    match judgement.enforced {
        Enforced::Executed | Enforced::LetPass => Vec::new(),
        Enforced::Replaced => {
            let edits = judgement.decision.findings.iter().flat_map(|finding| &finding.edits);
            union(edits.map(|edit| edit.span.start..edit.span.end.min(text.len())).collect())
        }
        // Nothing of it is shown.
        Enforced::Withheld | Enforced::Held | Enforced::Asked => {
            union(std::iter::once(0..text.len()).collect())
        }
    }
}

/// The finding that decided.
fn headline(judgement: &Judgement) -> Option<&Finding> {
    let verdict = judgement.decision.verdict;
    judgement.decision.findings.iter().find(|finding| finding.effective() == verdict)
}

/// A line of predictions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Line {
    /// Number of the record among those of the suite, in the order of the input, from 0.
    pub n: usize,
    /// Calls of the record.
    pub calls: usize,
    /// The denied call, with which the replay ended.
    pub denied: Option<usize>,
    /// The held calls.
    pub held: Vec<usize>,
    /// What was cut out of results.
    pub excised: Vec<Excised>,
}

/// What was cut out of a result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Excised {
    /// Number of the call.
    pub call: usize,
    /// From and to, in characters of the result's text as it stands in the record.
    pub removed: Vec<(u64, u64)>,
}

impl Line {
    /// What is told of a run.
    pub fn of(n: usize, replay: &Replay, trial: &Trial) -> Self {
        let calls: Vec<&Call> = replay.calls().collect();
        let excised = trial.excised.iter().map(|(call, removed)| {
            let text =
                calls.get(*call).and_then(|call| call.result.as_ref()).map_or("", |result| &result.text);
            let place = |at: usize| super::payload::chars(text, &(0..at));
            let removed = removed.iter().map(|range| (place(range.start), place(range.end)));
            Excised { call: *call, removed: removed.collect() }
        });
        Self { n, calls: calls.len(), denied: trial.denied(), held: trial.held(), excised: excised.collect() }
    }

    /// Of a record that cannot be read.
    pub const fn unread(n: usize) -> Self {
        Self { n, calls: 0, denied: None, held: Vec::new(), excised: Vec::new() }
    }
}
