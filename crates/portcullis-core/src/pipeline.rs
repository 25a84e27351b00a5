//! Facts, guards, findings, verdict.
//!
//! [`Pipeline::decide`] is total and pure. The verdict is the join of all findings; all reasons are kept in the
//! declared order of the guards, and the first at the deciding rank is the headline.

use std::panic::{AssertUnwindSafe, catch_unwind};

use serde_json::Value;

use crate::action::{Action, Hook, Pending, Subject};
use crate::bundle::Bundle;
use crate::edit;
use crate::effect::{EffectReader, LazyEffects, Resource, ResourceKind};
use crate::event::VerdictRecord;
use crate::fact::{FactAnswer, FactRequest, Facts};
use crate::finding::Finding;
use crate::guard::{Context, Guard};
use crate::limits::FINDINGS_MAX;
use crate::memory::{Memory, NoMemory, Remember};
use crate::state::RunState;
use crate::state::confirmations::asks_of_the_action;
use crate::verdict::Verdict;

/// Reserved rules: reasons of the gate itself, which no guard uses.
pub mod reserved {
    /// A guard returned a failure.
    pub const GUARD_FAILED: &str = "gate/guard-failed";
    /// A guard panicked.
    pub const GUARD_PANICKED: &str = "gate/guard-panicked";
    /// A fact that a guard needs is missing or failed.
    pub const FACT_MISSING: &str = "gate/fact-missing";
    /// The edits of `modify` findings cannot be applied together.
    pub const EDIT_CONFLICT: &str = "gate/edit-conflict";
    /// A limit was reached.
    pub const LIMIT: &str = "gate/limit";
    /// A person froze the run.
    pub const FROZEN: &str = "run/frozen";
}

/// The guards in their declared order.
#[derive(Debug)]
pub struct Pipeline<M: Memory = NoMemory> {
    guards: Vec<Box<dyn Guard<M>>>,
    effects: Option<Box<dyn EffectReader>>,
    memory: Option<Box<dyn Remember<M>>>,
}

/// The outcome of judging one pending thing.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// The join of all findings.
    pub verdict: Verdict,
    /// All reasons in declared order.
    pub findings: Vec<Finding>,
    /// For `modify`: the arguments, or the text as a JSON string, with the edits applied.
    pub modified: Option<Value>,
}

impl Decision {
    /// The first finding at the deciding rank, or `None` if nothing was found.
    pub fn headline(&self) -> Option<&Finding> {
        self.findings
            .iter()
            .find(|finding| finding.effective() == self.verdict && self.verdict > Verdict::Allow)
    }

    /// The decision as it is recorded.
    pub fn record<M: Memory>(
        &self,
        context: &Context<'_, M>,
        pending: &Pending<'_>,
        facts: &Facts,
    ) -> VerdictRecord {
        let headline = self.headline();
        VerdictRecord {
            action: pending.subject.action().map(|action| action.id),
            verdict: self.verdict,
            policy_action: self.verdict.policy_action(),
            escalation: self.verdict.escalation(),
            rule: headline.map(|finding| finding.rule.to_string()),
            reason: headline.map(|finding| finding.message.clone()),
            findings: self.findings.clone(),
            bundle: context.bundle.digest(),
            policy: context.policy.name.clone(),
            facts: facts.records().to_vec(),
            grant: pending.grant.map(|grant| grant.approval),
            marks: pending
                .subject
                .action()
                .map(|action| action.marked().marks().to_vec())
                .unwrap_or_default(),
        }
    }
}

impl<M: Memory> Pipeline<M> {
    /// A pipeline of the given guards, whose order is the order of the reasons.
    pub fn new(guards: Vec<Box<dyn Guard<M>>>) -> Self {
        Self { guards, effects: None, memory: None }
    }

    /// The same with a reader of effects, for guards that ask what an action would touch.
    #[must_use]
    pub fn with_effects(self, reader: Box<dyn EffectReader>) -> Self {
        Self { effects: Some(reader), ..self }
    }

    /// The same with a memory of what is said in a run, for guards that ask for it.
    #[must_use]
    pub fn with_memory(self, memory: Box<dyn Remember<M>>) -> Self {
        Self { memory: Some(memory), ..self }
    }

    /// The memory of a run that begins, or `None` if no guard needs one.
    pub fn begin_memory(&self) -> Option<M> {
        self.memory.as_ref().map(|memory| memory.begin())
    }

    /// The effects of an action, to be [put into the context](Context::with_effects) of every decision on it, so that
    /// they are read once.
    pub fn effects<'a>(
        &'a self,
        bundle: &'a Bundle,
        run: &'a RunState,
        action: &'a Action,
    ) -> LazyEffects<'a> {
        match &self.effects {
            Some(reader) => LazyEffects::of(reader.as_ref(), bundle, run, action),
            None => LazyEffects::none(),
        }
    }

    /// What is known of an absolute path.
    pub fn path(&self, bundle: &Bundle, run: &RunState, path: &str) -> Resource {
        match &self.effects {
            Some(reader) => reader.path(bundle, run, path),
            None => Resource::new(ResourceKind::Path, path),
        }
    }

    /// The effects for a context that has none yet.
    fn missing_effects<'a>(&'a self, context: &Context<'a, M>, pending: &Pending<'a>) -> LazyEffects<'a> {
        match pending.subject.action() {
            Some(action) => self.effects(context.bundle, context.run, action),
            None => LazyEffects::none(),
        }
    }

    /// Whether an action can be judged by its text alone: its tool is one that the bundle describes, with what its
    /// arguments hold, and all that they say is [seen](crate::effect::Effect::is_seen).
    pub fn sees(&self, bundle: &Bundle, action: &Action, effects: &LazyEffects<'_>) -> bool {
        let tool = action.tool().and_then(|name| bundle.registry.get(name));
        let described = tool.is_some_and(|tool| !tool.inferred && !tool.effects.is_empty());
        described && self.effects.is_some() && effects.get().are_seen()
    }

    /// The guards in declared order.
    pub fn guards(&self) -> impl Iterator<Item = &dyn Guard<M>> {
        self.guards.iter().map(AsRef::as_ref)
    }

    /// The sources that guards at a hook may ask.
    pub fn sources(&self, hook: Hook) -> impl Iterator<Item = &'static str> {
        let here = self.guards.iter().filter(move |guard| guard.meta().hooks.contains(&hook));
        here.flat_map(|guard| guard.sources()).copied()
    }

    /// Phase one: what is asked before [`Self::decide`], without repetitions: what guards need, and what they want.
    pub fn needs(&self, context: &Context<'_, M>, pending: &Pending<'_>) -> Vec<FactRequest> {
        let effects = self.missing_effects(context, pending);
        let context = &context.or_effects(&effects);
        let hook = pending.subject.hook();
        let mut requests = Vec::new();
        for guard in self.guards.iter().filter(|guard| guard.meta().hooks.contains(&hook)) {
            // A guard that panics here panics again in `decide`, where it is turned into a denial.
            let needed = catch_unwind(AssertUnwindSafe(|| guard.needs(context, pending)));
            let wanted = catch_unwind(AssertUnwindSafe(|| guard.wants(context, pending)));
            for request in needed.unwrap_or_default().into_iter().chain(wanted.unwrap_or_default()) {
                if !requests.contains(&request) {
                    requests.push(request);
                }
            }
        }
        requests
    }

    /// Phase two: the verdict. Never fails; a failure in a guard is a denial.
    pub fn decide(&self, context: &Context<'_, M>, pending: &Pending<'_>, facts: &Facts) -> Decision {
        let effects = self.missing_effects(context, pending);
        let context = &context.or_effects(&effects);
        let hook = pending.subject.hook();
        let mut findings = Vec::new();
        for guard in self.guards.iter().filter(|guard| guard.meta().hooks.contains(&hook)) {
            let judged = catch_unwind(AssertUnwindSafe(|| judge(guard.as_ref(), context, pending, facts)));
            findings.extend(judged.unwrap_or_else(|_| {
                let message = format!("the guard {} panicked", guard.meta().id);
                vec![Finding::new(reserved::GUARD_PANICKED, Verdict::Deny, message)]
            }));
        }
        if let Some(grant) = pending.grant {
            for finding in findings.iter_mut().filter(|finding| finding.verdict == Verdict::Review) {
                finding.granted = grant.scope.answers(finding);
            }
        }
        let confirmed = |action: &Action| context.run.confirmations().covers(action.digest());
        if pending.subject.action().is_some_and(confirmed) {
            findings.iter_mut().for_each(|finding| finding.confirmed = asks_of_the_action(finding));
        }
        let mut verdict = join(&findings);
        let modified = match apply_edits(verdict, &findings, pending) {
            Ok(modified) => modified,
            Err(conflict) => {
                findings.push(Finding::new(reserved::EDIT_CONFLICT, Verdict::Deny, conflict.to_string()));
                verdict = join(&findings);
                None
            }
        };
        bound(&mut findings, verdict);
        Decision { verdict, findings, modified }
    }
}

fn judge<M: Memory>(
    guard: &dyn Guard<M>,
    context: &Context<'_, M>,
    pending: &Pending<'_>,
    facts: &Facts,
) -> Vec<Finding> {
    for request in guard.needs(context, pending) {
        let problem = match facts.get(&request) {
            Some(FactAnswer::Known(_)) => continue,
            Some(FactAnswer::Failed(why)) => why.as_str(),
            None => "nobody answered",
        };
        let message =
            format!("the guard {} needs a fact from {}: {problem}", guard.meta().id, request.source);
        return vec![Finding::new(reserved::FACT_MISSING, Verdict::Deny, message)];
    }
    guard.decide(context, pending, facts).unwrap_or_else(|failure| {
        let message = format!("the guard {} failed: {failure}", guard.meta().id);
        vec![Finding::new(reserved::GUARD_FAILED, Verdict::Deny, message)]
    })
}

fn join(findings: &[Finding]) -> Verdict {
    findings.iter().map(Finding::effective).fold(Verdict::Allow, Verdict::join)
}

/// Applies the edits when `modify` is what was decided; a stricter verdict leaves nothing to edit.
fn apply_edits(
    verdict: Verdict,
    findings: &[Finding],
    pending: &Pending<'_>,
) -> Result<Option<Value>, edit::EditError> {
    if verdict != Verdict::Modify {
        return Ok(None);
    }
    let edits = findings.iter().filter(|finding| finding.verdict == Verdict::Modify).flat_map(|f| &f.edits);
    match pending.subject {
        Subject::Action(action) => edit::apply_to_arguments(&action.arguments, edits).map(Some),
        Subject::Contained { .. } => Ok(None),
        Subject::Input { text, .. } | Subject::Observation { text, .. } | Subject::Output { text, .. } => {
            edit::apply_to_text(text, edits).map(Some)
        }
    }
}

/// Keeps at most [`FINDINGS_MAX`] findings, the headline among them.
fn bound(findings: &mut Vec<Finding>, verdict: Verdict) {
    if findings.len() <= FINDINGS_MAX {
        return;
    }
    if let Some(headline) = findings.iter().position(|finding| finding.effective() == verdict)
        && headline >= FINDINGS_MAX
    {
        findings.swap(FINDINGS_MAX - 1, headline);
    }
    findings.truncate(FINDINGS_MAX);
}
