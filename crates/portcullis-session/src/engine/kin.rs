//! Runs that open others for delegated agents: what is written of it, and what the run above says of a call.

use portcullis_core::action::{Action, Grant, Pending, Subject};
use portcullis_core::delegation::{Objection, ParentAnswer};
use portcullis_core::event::{Actor, ClosedState, ConfigChange, Enforced, Event, EventBody};
use portcullis_core::id::{Digest, RunId};
use portcullis_core::label::{Label, LabelSet};
use portcullis_core::memory::Texts;
use portcullis_core::pipeline::{Decision, reserved};
use portcullis_core::taint::Tainted;
use portcullis_core::time::Timestamp;

use super::{Engine, Reach, TEXT, TextJudgement};
use crate::batch::Batch;
use crate::env::Env;
use crate::facts::Sources;

/// A call of a run that another one opened, about which that one is asked.
#[derive(Debug, Clone, Copy)]
pub struct Asking<'a> {
    /// The call.
    pub(crate) action: &'a Action,
    /// The grant that covers it in the run that proposes it.
    pub(crate) grant: Option<&'a Grant>,
    /// The bundle in force there.
    pub(crate) bundle: Digest,
    /// It was proposed before, and counted then.
    pub(crate) again: bool,
}

/// The end of a run that another one opened.
#[derive(Debug, Clone)]
pub(crate) struct ChildEnd {
    /// The run.
    pub(crate) run: RunId,
    /// How it ended.
    pub(crate) state: ClosedState,
    /// Number of its last event; 0 if it never began.
    pub(crate) count: u64,
    /// The link of that event.
    pub(crate) link: Option<Digest>,
    /// What its agent had seen.
    pub(crate) labels: LabelSet,
    /// Its latest reply.
    pub(crate) reply: Option<String>,
}

impl ChildEnd {
    /// Of a run that never began.
    pub(crate) fn never_began(run: RunId) -> Self {
        let (state, labels) = (ClosedState::Abandoned, LabelSet::default());
        Self { run, state, count: 0, link: None, labels, reply: None }
    }
}

impl Engine {
    /// The run opens another one.
    pub(crate) fn open_child(&self, env: &mut dyn Env, run: RunId) -> Batch {
        let mut batch = self.builder(env);
        batch.push(Actor::gate(), None, EventBody::Config(ConfigChange::ChildOpened { run }));
        batch.finish()
    }

    /// The agent of the run above, which has seen what has these labels, speaks to that of this one.
    pub(crate) fn parent_saw(&self, env: &mut dyn Env, labels: LabelSet) -> Batch {
        let mut batch = self.builder(env);
        batch.push(Actor::gate(), None, EventBody::Config(ConfigChange::ParentSaw { labels }));
        batch.finish()
    }

    /// A run that this one opened has ended. What its agent saw and said may have reached the agent of this one, so all of
    /// it counts as others' words.
    pub(crate) fn child_closed(
        &self,
        env: &mut dyn Env,
        end: &ChildEnd,
        sources: &dyn Sources,
    ) -> (Batch, Option<TextJudgement>) {
        let mut batch = self.builder(env);
        let ChildEnd { run, state, count, link, labels, reply } = end;
        let closed = ConfigChange::ChildClosed { run: *run, state: *state, count: *count, link: *link };
        let cause = batch.push(Actor::gate(), None, EventBody::Config(closed));
        let judgement = (*count > 0).then(|| {
            let text = reply.as_deref().unwrap_or_default();
            let whole = (!text.is_empty()).then_some(0..text.len());
            let tainted = Tainted { labels: labels.clone(), stretches: whole.into_iter().collect() };
            let label = Label::Run(*run);
            let (label_seen, seen) = (label.clone(), Some(tainted.clone()));
            let body = EventBody::Observation { action: None, label: label_seen, tainted: seen };
            let payload = ("content", TEXT, text.as_bytes().to_vec());
            let actor = Actor::agent(self.principal());
            let said = batch.push_with(actor, Some(cause), body, [Some(payload)]);
            let subject = Subject::Observation { action: None, text, label: &label, tainted: Some(&tainted) };
            self.judge_text(&mut batch, subject, said, Reach::Tell, sources)
        });
        (batch.finish(), judgement)
    }

    /// Whether this run may make a call of a run that it opened, as it stands now. Nothing is written.
    ///
    /// A grant of the other run answers what would be held here as well, if both are under one bundle: the bundle says who
    /// may grant.
    pub(crate) fn may(&self, asking: &Asking<'_>, at: Timestamp, sources: &dyn Sources) -> ParentAnswer {
        let Asking { action, grant, bundle, .. } = asking;
        let seq = self.state.seq();
        let action = action.with_arguments(action.arguments.clone());
        let action = action.marked_by(&self.bundle.sequences).keyed(self.key.as_ref());
        let read = self.read(Pending { at, subject: Subject::Action(&action), grant: None }, &action);
        let same_bundle = *bundle == self.bundle.digest();
        let grant = grant.filter(|_| same_bundle);
        let (_, decision) = self.decide(at, &action, grant, &read, sources);
        let decision = self.unless_refused(&action, decision);
        let granted = decision.findings.iter().find(|finding| finding.granted);
        // The user said yes to a call of this run, not to one of the other.
        let confirmed = decision.findings.iter().find(|finding| finding.confirmed);
        let (holds, reason) = match self.enforced(&decision) {
            Enforced::Executed | Enforced::LetPass if confirmed.is_some() => (false, confirmed),
            Enforced::Executed | Enforced::LetPass if granted.is_none() => {
                return ParentAnswer { seq, objection: None };
            }
            // What is replaced here would go ahead there as it is.
            Enforced::Replaced | Enforced::Withheld | Enforced::Asked => (false, decision.headline()),
            Enforced::Held => (same_bundle, decision.headline()),
            Enforced::Executed | Enforced::LetPass => (true, granted),
        };
        let rule = reason.map_or_else(String::new, |reason| reason.rule.to_string());
        let why = reason.map_or_else(String::new, |reason| reason.message.clone());
        ParentAnswer { seq, objection: Some(Objection { holds, rule, why }) }
    }

    /// How this run counts a call of a run that it opened: whether as a side effect, and at which cost, in millionths.
    pub(crate) fn weigh(&self, tool: &str) -> (bool, u64) {
        (self.is_side_effecting(Some(tool)), self.cost(Some(tool)))
    }

    /// Whether all of a text was said in this run by the one with that label.
    pub(crate) fn heard(&self, text: &str, label: &Label) -> bool {
        self.heard.all_of(text, label)
    }

    /// The latest reply of the run, where its text is still there.
    pub fn latest_reply(&self) -> Option<&str> {
        self.reply.as_deref()
    }

    pub(super) fn learn_reply(&mut self, event: &Event, texts: &Texts) {
        if matches!(event.body, EventBody::Output {}) {
            self.reply = texts.get("text").cloned();
        }
    }

    /// Whether a decision rests on a limit or failure of the gate itself, on a person's hold on the run, or on what the run
    /// above may not do.
    pub(super) fn binds_always(&self, decision: &Decision) -> bool {
        let failures = [reserved::FACT_MISSING, reserved::GUARD_FAILED, reserved::GUARD_PANICKED];
        decision.findings.iter().filter(|finding| !finding.effective().permits()).any(|finding| {
            [reserved::LIMIT, reserved::FROZEN].contains(&&*finding.rule)
                || finding.rule.starts_with("run/phase/")
                || finding.rule.starts_with("run/parent/")
                || (self.state.parent().is_some() && failures.contains(&&*finding.rule))
        })
    }
}
