//! Calls that wait for a person, and the person's answer.

use portcullis_core::action::{Action, Grant};
use portcullis_core::effect::{Effect, Effects, Verb};
use portcullis_core::event::{
    About, Actor, ApprovalDecision, Enforced, EventBody, GrantScope, Lasting, Mode,
};
use portcullis_core::fact::Facts;
use portcullis_core::finding::Finding;
use portcullis_core::id::{ActionId, ApprovalId, Digest, DigestBuilder};
use portcullis_core::pipeline::{Decision, reserved};
use portcullis_core::state::{Approval, ApprovalState, Given};
use portcullis_core::time::Timestamp;
use portcullis_core::verdict::Verdict;
use portcullis_guards::approval::refused;

use super::{AnswerError, Engine, Judgement, MICROS_PER_SECOND, Proposal, Read, Standing, denied, pending};
use crate::batch::{Batch, BatchBuilder};
use crate::denial::explain;
use crate::env::Env;
use crate::facts::Sources;

/// The rule of what a person answered in place of a yes or a no.
pub const ANSWERED: &str = "approval/answered";
/// The rule of arguments that a person changed.
pub const EDITED: &str = "approval/edited";

/// What a request for approval says of the call beside what everybody can see.
#[derive(Debug)]
pub(super) struct Requested {
    /// What a grant is bound to.
    bound_to: Digest,
    effects: Digest,
    patterns: bool,
}

impl Engine {
    /// What became of the approval that this very call waits for, if it waits for one.
    pub(super) fn meet_approval(
        &self,
        batch: &mut BatchBuilder<'_>,
        action: &Action,
        bound_to: Digest,
        call: Option<&String>,
        sources: &dyn Sources,
    ) -> Option<Judgement> {
        let (id, approval) = self.state.approval_for(bound_to)?;
        let open_id = approval.about.action()?;
        let open = self.state.open_action(open_id)?;
        // The retry is the same action: its id, its step.
        let mut held = action.clone();
        held.id = open_id;
        let call = call.filter(|call| open.call.as_ref() != Some(*call)).cloned();
        let standing =
            Standing { step: open.step, cause: open.last_event, bound_to, call, ask: false, edited: false };
        if matches!(approval.state, ApprovalState::Pending | ApprovalState::Granted(_))
            && let Some(held_back) = self.held_back(&held, open.step, id)
        {
            return Some(held_back);
        }
        match &approval.state {
            ApprovalState::Pending => {
                if self.has_lapsed(approval, batch.at()) {
                    self.expire(batch, id, approval.about);
                    return None;
                }
                let read = self.read(pending(batch, &held), &held);
                let decision = self.decide(batch.at(), &held, None, &read, sources).1;
                drop(read);
                Some(self.held(held, open.step, decision, id))
            }
            ApprovalState::Granted(given) => {
                self.meet_grant(batch, held, (id, approval, given), standing, sources)
            }
            ApprovalState::Refused => Some(self.judge(batch, held, standing, None, sources)),
            ApprovalState::Answered(sentence) => Some(self.answered(batch, held, standing, sentence)),
            ApprovalState::Expired | ApprovalState::Revoked | ApprovalState::Claimed => None,
        }
    }

    /// A held call that was granted is proposed again.
    fn meet_grant(
        &self,
        batch: &mut BatchBuilder<'_>,
        held: Action,
        (id, approval, given): (ApprovalId, &Approval, &Given),
        standing: Standing,
        sources: &dyn Sources,
    ) -> Option<Judgement> {
        let (at, ttl) = (batch.at(), self.grant_ttl());
        let grant = match given.edited {
            true => self.state.own_grant(id, at, ttl),
            false => self.state.grant_for(&held, approval.digest, at, ttl),
        };
        // If the announcement changed since it was shown, or what the call would touch, a person is asked again.
        let same = |grant: &Grant| self.covers_words(grant, &held) && self.touches_the_same(approval, &held);
        // So it is where the arguments that the person gave were erased.
        let changed = match given.edited {
            true => {
                let given = self.words.edited(id);
                given.map(|arguments| {
                    let edited = held.with_arguments(arguments.clone()).marked_by(&self.bundle.sequences);
                    edited.keyed(self.key.as_ref())
                })
            }
            false => Some(held.clone()),
        };
        let (Some(grant), Some(action)) = (grant.filter(same), changed) else {
            self.expire(batch, id, approval.about);
            return None;
        };
        let standing = Standing { edited: given.edited, ..standing };
        Some(self.judge(batch, action, standing, Some(grant), sources))
    }

    /// A person answered with a sentence: the agent gets it, and the call does not go ahead.
    fn answered(
        &self,
        batch: &mut BatchBuilder<'_>,
        action: Action,
        standing: Standing,
        sentence: &str,
    ) -> Judgement {
        let decision = denied(ANSWERED, format!("an approver answered instead of deciding: {sentence}"));
        let mut cause = standing.cause;
        if let Some(context) = self.context() {
            let record = decision.record(&context, &pending(batch, &action), &Facts::none());
            cause = batch.push(Actor::gate(), Some(cause), EventBody::Verdict(record));
        }
        let enforced = Enforced::Withheld;
        let (action_id, call) = (Some(action.id), standing.call);
        let body = EventBody::Enforcement { action: action_id, enforced, call, contained: None };
        batch.push(Actor::gate(), Some(cause), body);
        let denial = Some(explain(&self.state, self.run, &action, &decision));
        let (step, approval, grant) = (standing.step, None, None);
        let contain = None;
        let without_hooks = false;
        Judgement {
            action,
            step,
            decision,
            enforced,
            denial,
            approval,
            grant,
            seen: false,
            contain,
            without_hooks,
            seq: 0,
        }
    }

    /// Whether a call would touch what it would have touched when a person was asked.
    fn touches_the_same(&self, approval: &Approval, action: &Action) -> bool {
        let Some(then) = approval.effects else { return true };
        then == self.effects_digest(self.pipeline.effects(&self.bundle, &self.state, action).get())
    }

    /// Names what an action would touch, under the key of the run.
    fn effects_digest(&self, effects: &Effects) -> Digest {
        let mut named: Vec<String> = effects.iter().map(named).collect();
        named.sort_unstable();
        let key = self.key.as_ref().map_or(&[][..], |key| key.as_bytes());
        let digest = DigestBuilder::new("portcullis/effects-in-run/v1").part(key);
        named.iter().fold(digest, |digest, effect| digest.part(effect.as_bytes())).finish()
    }

    /// What a proposal would touch, as it is read now: `delete path /srv/app`. None without a proposal.
    pub fn touches(&self, proposal: Option<Proposal>) -> Option<Vec<String>> {
        let (action, _) = self.action_of(proposal?, ActionId::from_bytes([0; 16]));
        let effects = self.pipeline.effects(&self.bundle, &self.state, &action);
        Some(effects.get().iter().map(named).collect())
    }

    /// Whether a grant may cover an action by a pattern.
    pub(super) fn may_be_granted_by_pattern(&self, action: &Action, read: &Read<'_>) -> bool {
        let leaves = |effect: &Effect| {
            matches!(effect.verb, Verb::Send | Verb::Pay) || effect.resource.kind.is_elsewhere()
        };
        self.pipeline.sees(&self.bundle, action, &read.effects) && !read.effects.get().iter().any(leaves)
    }

    /// How long a grant holds that does not say so itself, in microseconds.
    pub(super) fn grant_ttl(&self) -> u64 {
        u64::from(self.bundle.approvals.grant_ttl_s) * MICROS_PER_SECOND
    }

    /// A decision that would have a person asked about what a person refused, in other words or with more.
    pub(super) fn unless_refused(&self, action: &Action, mut decision: Decision) -> Decision {
        if decision.verdict != Verdict::Review {
            return decision;
        }
        let Some(note) = self.state.refused_alike(action, &decision.findings) else { return decision };
        decision.findings.push(refused::finding(note, refused::Known::Alike));
        decision.verdict = Verdict::Deny;
        decision
    }

    /// A decision on arguments that a person gave, as one that replaces those of the agent.
    pub(super) fn replacing(&self, action: &Action, mut decision: Decision) -> Decision {
        if decision.verdict.permits() {
            let message = "an approver changed the arguments";
            decision.findings.push(Finding::new(EDITED, Verdict::Modify, message));
            decision.verdict = Verdict::Modify;
            decision.modified = Some(decision.modified.unwrap_or_else(|| action.arguments.clone()));
        }
        decision
    }

    /// What a request says of a call that was read.
    pub(super) fn requested(&self, bound_to: Digest, action: &Action, read: &Read<'_>) -> Requested {
        let effects = self.effects_digest(read.effects.get());
        Requested { bound_to, effects, patterns: self.may_be_granted_by_pattern(action, read) }
    }

    /// Whether a grant covers what is said with a call: one for a single call was given on what was said with that.
    pub(super) fn covers_words(&self, grant: &Grant, action: &Action) -> bool {
        let held = self.state.approval(grant.approval).and_then(|approval| approval.about.action());
        grant.scope != GrantScope::Once
            || held.is_some_and(|held| self.words.same(held, action, &self.bundle))
    }

    /// Whether a request has waited for longer than the bundle lets it, or was made under another bundle: then the call or
    /// reply has to be judged again.
    pub fn has_lapsed(&self, approval: &Approval, at: Timestamp) -> bool {
        self.state.is_under_other_rules(approval)
            || self.state.waited_micros(approval, at)
                > u64::from(self.bundle.approvals.request_ttl_s) * MICROS_PER_SECOND
    }

    /// An approval that waits, or was granted, lapses.
    ///
    /// # Errors
    /// There is no such approval, or it does neither.
    pub fn lapse(&self, env: &mut dyn Env, id: ApprovalId) -> Result<Batch, AnswerError> {
        let approval = self.state.approval(id).ok_or(AnswerError::Unknown(id))?;
        if !matches!(approval.state, ApprovalState::Pending | ApprovalState::Granted(_)) {
            return Err(AnswerError::Decided(id));
        }
        let mut batch = self.builder(env);
        self.expire(&mut batch, id, approval.about);
        Ok(batch.finish())
    }

    /// The approval lapses, and with it what waited.
    pub(super) fn expire(&self, batch: &mut BatchBuilder<'_>, approval: ApprovalId, about: About) {
        let body = EventBody::ApprovalDecided {
            approval,
            decision: ApprovalDecision::Expired,
            scope: None,
            lasting: Lasting::default(),
            shown: None,
            labels: self.state.labels().clone(),
            note: None,
        };
        let expired = batch.push(Actor::gate(), None, body);
        let action = about.action();
        let body =
            EventBody::Enforcement { action, enforced: Enforced::Withheld, call: None, contained: None };
        batch.push(Actor::gate(), Some(expired), body);
    }

    /// A decision that would have one more call or reply wait for a person, unless too many of the run do already: a flood
    /// of questions hides the one that matters.
    pub(super) fn unless_too_many_wait(&self, decision: Decision) -> Decision {
        let asks = decision.verdict == Verdict::Review && self.state.mode() != Mode::Observe;
        let Some(limit) = self.waiting_max.filter(|_| asks) else { return decision };
        if self.state.pending_approvals().len() < limit {
            return decision;
        }
        let message = format!(
            "{limit} requests of this run are waiting for a person, which is the limit; more are denied until some are answered"
        );
        denied(reserved::LIMIT, message)
    }

    /// Asks for a person's approval.
    pub(super) fn ask(
        &self,
        batch: &mut BatchBuilder<'_>,
        action: Action,
        step: u32,
        decision: Decision,
        cause: u64,
        requested: Requested,
    ) -> Judgement {
        let held = EventBody::Enforcement {
            action: Some(action.id),
            enforced: Enforced::Held,
            call: None,
            contained: None,
        };
        let cause = batch.push(Actor::gate(), Some(cause), held);
        let approval = ApprovalId::from_bytes(batch.id());
        let tool = action.tool().unwrap_or_default().to_owned();
        let Requested { bound_to, effects, patterns } = requested;
        let (about, digest, effects) = (About::Action(action.id), bound_to, Some(effects));
        let body = EventBody::ApprovalRequested { approval, about, digest, tool, effects, patterns };
        batch.push(Actor::gate(), Some(cause), body);
        self.held(action, step, decision, approval)
    }

    pub(super) fn held(
        &self,
        action: Action,
        step: u32,
        decision: Decision,
        approval: ApprovalId,
    ) -> Judgement {
        let mut denial = explain(&self.state, self.run, &action, &decision);
        denial.approval = Some(approval);
        Judgement {
            action,
            step,
            decision,
            enforced: Enforced::Held,
            denial: Some(denial),
            approval: Some(approval),
            grant: None,
            seen: false,
            contain: None,
            without_hooks: false,
            seq: 0,
        }
    }
}

/// An effect in words.
fn named(effect: &Effect) -> String {
    format!("{} {} {}", effect.verb, effect.resource.kind, effect.resource.name)
}
