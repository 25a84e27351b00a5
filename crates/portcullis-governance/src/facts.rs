//! What is counted in a run. Every statement of a report is based on these facts, with the events that show them.

use std::collections::BTreeMap;

use portcullis_contracts::verify::{CheckResult, Status};
use portcullis_core::action::Hook;
use portcullis_core::event::{
    ApprovalDecision, Enforced, Event, EventBody, GrantScope, Mode, OutcomeStatus, Proposed, VerdictRecord,
};
use portcullis_core::fact::FactAnswer;
use portcullis_core::guard::GuardMeta;
use portcullis_core::id::{ActionId, ApprovalId};
use portcullis_core::verdict::{PolicyAction, Verdict};

use crate::record::Record;
use crate::verification::{self, ReplyVerified};

/// One proposed action and what became of it.
#[derive(Debug, Clone)]
pub(crate) struct ActionFact {
    pub(crate) step: u32,
    pub(crate) tool: Option<String>,
    pub(crate) proposed: u64,
    pub(crate) side_effecting: bool,
    /// The latest verdict.
    pub(crate) verdict: Option<(u64, Verdict)>,
    pub(crate) rule: Option<String>,
    pub(crate) reason: Option<String>,
    /// The rules of the latest verdict that would have stopped it, each by itself.
    pub(crate) stoppers: Vec<String>,
    /// Whether a grant answered it.
    pub(crate) granted: bool,
    pub(crate) enforced: Vec<(u64, Enforced)>,
    pub(crate) outcome: Option<(u64, OutcomeStatus)>,
}

impl ActionFact {
    /// The event by which it went ahead on the gate's permit.
    pub(crate) fn went_ahead(&self) -> Option<u64> {
        self.enforced.iter().find(|(_, enforced)| enforced.proceeds()).map(|(event, _)| *event)
    }

    /// The event of an enforcement.
    pub(crate) fn when(&self, wanted: Enforced) -> Option<u64> {
        self.enforced.iter().rev().find(|(_, enforced)| *enforced == wanted).map(|(event, _)| *event)
    }

    /// The event by which it was stopped, where that is how it ended.
    pub(crate) fn blocked(&self) -> Option<u64> {
        match self.enforced.last() {
            Some((event, Enforced::Withheld)) => Some(*event),
            _ => None,
        }
    }

    pub(crate) fn name(&self) -> &str {
        self.tool.as_deref().unwrap_or("thinking")
    }
}

/// A text that was judged: an input, a result or a reply.
#[derive(Debug, Clone)]
pub(crate) struct TextFact {
    pub(crate) event: u64,
    pub(crate) hook: Hook,
    pub(crate) verdict: Option<(u64, Verdict)>,
    pub(crate) rule: Option<String>,
    pub(crate) reason: Option<String>,
    pub(crate) enforced: Option<(u64, Enforced)>,
}

/// What one rule found.
#[derive(Debug, Clone)]
pub(crate) struct RuleFact {
    /// The strictest that it asked for.
    pub(crate) verdict: Verdict,
    /// The verdicts that it stands in.
    pub(crate) events: Vec<u64>,
    /// Those of them in which a grant answered it.
    pub(crate) granted: Vec<u64>,
    /// What it said first.
    pub(crate) message: String,
}

/// A request for a person.
#[derive(Debug, Clone, Default)]
pub(crate) struct ApprovalFact {
    pub(crate) requested: Option<u64>,
    pub(crate) tool: String,
    pub(crate) decided: Vec<(u64, ApprovalDecision, Option<GrantScope>)>,
    pub(crate) claimed: Vec<u64>,
}

impl ApprovalFact {
    /// The latest answer.
    pub(crate) fn latest(&self) -> Option<(u64, ApprovalDecision)> {
        self.decided.last().map(|(event, decision, _)| (*event, *decision))
    }
}

/// The source of facts whose answers are second opinions (`specs/run-chain.md`).
const SECOND_OPINION: &str = "second-opinion";

/// Verdicts for which a model was asked for a second opinion, by what it said.
#[derive(Debug, Default)]
pub(crate) struct Opinions {
    /// The request covers the call: the hold was lifted.
    pub(crate) covered: Vec<u64>,
    /// It does not: the hold became a denial.
    pub(crate) uncovered: Vec<u64>,
    /// Nothing, or nothing that can be read, in time: the hold stood.
    pub(crate) unsaid: Vec<u64>,
}

/// All that is counted.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    pub(crate) actions: Vec<ActionFact>,
    pub(crate) texts: Vec<TextFact>,
    pub(crate) rules: BTreeMap<String, RuleFact>,
    pub(crate) approvals: BTreeMap<ApprovalId, ApprovalFact>,
    pub(crate) replies: Vec<ReplyVerified>,
    /// Events of each kind.
    pub(crate) kinds: BTreeMap<&'static str, Vec<u64>>,
    /// Events judged in observe mode.
    pub(crate) observed: Vec<u64>,
    /// Verdicts on actions.
    pub(crate) action_verdicts: Vec<u64>,
    pub(crate) opinions: Opinions,
    by_action: BTreeMap<ActionId, usize>,
    by_text: BTreeMap<u64, usize>,
    mode: Mode,
}

impl Facts {
    /// Counts a record.
    pub(crate) fn of(record: &Record) -> Self {
        let mut facts = Self { replies: verification::recorded(record), ..Self::default() };
        for event in record.events() {
            facts.kinds.entry(event.body.kind()).or_default().push(event.seq);
            facts.event(event);
        }
        facts
    }

    fn event(&mut self, event: &Event) {
        match &event.body {
            EventBody::RunOpened(opened) => self.mode = opened.mode,
            EventBody::Config(portcullis_core::event::ConfigChange::BundleLoaded { mode, .. }) => {
                self.mode = *mode;
            }
            EventBody::Input { .. } => self.text(event.seq, Hook::Input),
            EventBody::Observation { .. } | EventBody::Observed(_) => {
                self.text(event.seq, Hook::Observation);
            }
            EventBody::Output {} => self.text(event.seq, Hook::Output),
            EventBody::Proposed(proposed) => self.proposed(event.seq, proposed),
            EventBody::Verdict(record) => self.verdict(event, record),
            EventBody::Enforcement { action, enforced, .. } => match action {
                Some(action) => {
                    if let Some(fact) = self.action(*action) {
                        fact.enforced.push((event.seq, *enforced));
                    }
                }
                None => {
                    if let Some(fact) = self.text_of(event.cause) {
                        fact.enforced = Some((event.seq, *enforced));
                    }
                }
            },
            EventBody::ApprovalRequested { approval, tool, .. } => {
                let fact = self.approvals.entry(*approval).or_default();
                (fact.requested, fact.tool) = (Some(event.seq), tool.clone());
            }
            EventBody::ApprovalDecided { approval, decision, scope, .. } => {
                let fact = self.approvals.entry(*approval).or_default();
                fact.decided.push((event.seq, *decision, scope.clone()));
            }
            EventBody::GrantClaimed { approval, .. } => {
                self.approvals.entry(*approval).or_default().claimed.push(event.seq);
            }
            EventBody::Outcome { action, status } => {
                if let Some(fact) = self.action(*action) {
                    fact.outcome = Some((event.seq, *status));
                }
            }
            _ => {}
        }
    }

    fn text(&mut self, event: u64, hook: Hook) {
        self.by_text.insert(event, self.texts.len());
        self.texts.push(TextFact { event, hook, verdict: None, rule: None, reason: None, enforced: None });
    }

    fn proposed(&mut self, seq: u64, proposed: &Proposed) {
        self.by_action.insert(proposed.action, self.actions.len());
        self.actions.push(ActionFact {
            step: proposed.step,
            tool: proposed.tool.clone(),
            proposed: seq,
            side_effecting: proposed.side_effecting,
            verdict: None,
            rule: None,
            reason: None,
            stoppers: Vec::new(),
            granted: false,
            enforced: Vec::new(),
            outcome: None,
        });
    }

    fn action(&mut self, action: ActionId) -> Option<&mut ActionFact> {
        self.by_action.get(&action).and_then(|at| self.actions.get_mut(*at))
    }

    /// The text that an event names, directly or through its verdict.
    fn text_of(&mut self, cause: Option<u64>) -> Option<&mut TextFact> {
        let cause = cause?;
        let at = match self.by_text.get(&cause) {
            Some(at) => *at,
            None => self.texts.iter().rposition(|text| text.verdict.is_some_and(|(seq, _)| seq == cause))?,
        };
        self.texts.get_mut(at)
    }

    fn verdict(&mut self, event: &Event, record: &VerdictRecord) {
        if self.mode == Mode::Observe {
            self.observed.push(event.seq);
        }
        for finding in &record.findings {
            let rule = self.rules.entry(finding.rule.to_string()).or_insert_with(|| RuleFact {
                verdict: finding.verdict,
                events: Vec::new(),
                granted: Vec::new(),
                message: finding.message.clone(),
            });
            rule.verdict = rule.verdict.join(finding.verdict);
            if rule.events.last() != Some(&event.seq) {
                rule.events.push(event.seq);
            }
            if finding.granted && rule.granted.last() != Some(&event.seq) {
                rule.granted.push(event.seq);
            }
        }
        let (verdict, rule, reason) =
            (Some((event.seq, record.verdict)), record.rule.clone(), record.reason.clone());
        match record.action {
            Some(action) => {
                self.action_verdicts.push(event.seq);
                self.opinion(event.seq, record);
                let stops = record.findings.iter().filter(|finding| !finding.effective().permits());
                let stoppers: Vec<String> = stops.map(|finding| finding.rule.to_string()).collect();
                if let Some(fact) = self.action(action) {
                    fact.stoppers = stoppers;
                    (fact.verdict, fact.rule, fact.reason) = (verdict, rule, reason);
                    fact.granted |= record.grant.is_some();
                }
            }
            None => {
                if let Some(fact) = self.text_of(event.cause) {
                    (fact.verdict, fact.rule, fact.reason) = (verdict, rule, reason);
                }
            }
        }
    }

    fn opinion(&mut self, event: u64, record: &VerdictRecord) {
        let facts = record.facts.iter().filter(|fact| fact.request.source == SECOND_OPINION);
        for fact in facts {
            let covers = match &fact.answer {
                FactAnswer::Known(answer) => answer.get("covers").and_then(serde_json::Value::as_bool),
                FactAnswer::Failed(_) => None,
            };
            match covers {
                Some(true) => self.opinions.covered.push(event),
                Some(false) => self.opinions.uncovered.push(event),
                None => self.opinions.unsaid.push(event),
            }
        }
    }

    /// The events at which guards of a hook looked at something.
    pub(crate) fn looked_at(&self, hook: Hook) -> Vec<u64> {
        match hook {
            Hook::Action => self.action_verdicts.clone(),
            _ => self.texts.iter().filter(|text| text.hook == hook).map(|text| text.event).collect(),
        }
    }

    /// Events of a kind.
    pub(crate) fn of_kind(&self, kind: &str) -> &[u64] {
        self.kinds.get(kind).map_or(&[], Vec::as_slice)
    }

    /// Actions that ended withheld under a verdict that seed 000 calls `DENIED`.
    pub(crate) fn denied(&self) -> Vec<&ActionFact> {
        let denied = |fact: &&ActionFact| {
            fact.blocked().is_some()
                && fact.verdict.is_some_and(|(_, verdict)| verdict.policy_action() == PolicyAction::Denied)
        };
        self.actions.iter().filter(denied).collect()
    }

    /// The answers of checks with that status, each with the event of its evidence.
    pub(crate) fn checks(&self, status: Status) -> Vec<(&ReplyVerified, &CheckResult)> {
        let all = self
            .replies
            .iter()
            .flat_map(|reply| reply.checks.iter().flatten().map(move |result| (reply, result)));
        all.filter(|(_, result)| result.status == status).collect()
    }

    /// Replies that were not verified.
    pub(crate) fn unverified_replies(&self) -> Vec<u64> {
        let verified = |event: u64| self.replies.iter().any(|reply| reply.reply == event);
        self.of_kind("output").iter().copied().filter(|event| !verified(*event)).collect()
    }

    /// The rules of a guard, which begin with its id.
    pub(crate) fn rules_of<'f>(
        &'f self,
        guard: &'f GuardMeta,
        all: &'f [&'static GuardMeta],
    ) -> impl Iterator<Item = (&'f str, &'f RuleFact)> {
        let mine = move |rule: &str| guard_of(rule, all).is_some_and(|found| found.id == guard.id);
        self.rules.iter().filter(move |(rule, _)| mine(rule)).map(|(rule, fact)| (rule.as_str(), fact))
    }
}

/// The guard that a rule belongs to: the one with the longest id that the rule begins with.
pub(crate) fn guard_of(rule: &str, guards: &[&'static GuardMeta]) -> Option<&'static GuardMeta> {
    let of = |guard: &&&'static GuardMeta| {
        rule.strip_prefix(guard.id).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    guards.iter().filter(of).max_by_key(|guard| guard.id.len()).copied()
}

/// The word for a hook.
pub(crate) fn hook_word(hook: Hook) -> &'static str {
    match hook {
        Hook::Input => "input",
        Hook::Action => "action",
        Hook::Observation => "observation",
        Hook::Output => "output",
    }
}
