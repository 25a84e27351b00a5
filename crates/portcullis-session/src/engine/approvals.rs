//! Calls that wait for a person, and the person's answer.

use portcullis_core::action::{Action, Grant};
use portcullis_core::event::{Actor, ApprovalDecision, Enforced, EventBody, GrantScope, Mode};
use portcullis_core::id::{ActionId, ApprovalId, Digest};
use portcullis_core::label::{Label, LabelSet};
use portcullis_core::pipeline::{Decision, reserved};
use portcullis_core::state::{Approval, ApprovalState};
use portcullis_core::time::Timestamp;
use portcullis_core::verdict::Verdict;

use super::{Engine, Judgement, MICROS_PER_SECOND, Standing, denied, pending};
use crate::batch::{Batch, BatchBuilder};
use crate::denial::explain;
use crate::env::Env;
use crate::facts::Sources;

/// A person's answer to an approval request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Granted or refused.
    pub decision: ApprovalDecision,
    /// How far a grant reaches.
    pub scope: GrantScope,
    /// A note for the record.
    pub note: Option<String>,
    /// Who answers.
    pub approver: String,
    /// The run's labels as the person was shown them: a grant is rejected if the run has seen more since. `None` in
    /// rehearsals and cases, which show nothing to a person.
    pub shown: Option<LabelSet>,
}

/// Why an approval could not be answered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// There is no approval with this id in this run.
    #[error("there is no approval {0} in this run")]
    Unknown(ApprovalId),
    /// It was answered before.
    #[error("approval {0} was already decided")]
    Decided(ApprovalId),
    /// It lapsed before it was answered.
    #[error("approval {0} lapsed before it was answered; the agent must repeat the call")]
    Lapsed(ApprovalId),
    /// The run went on between the look and the answer.
    #[error("the run has read more since approval {0} was shown; review it again, then answer")]
    Changed(ApprovalId),
    /// A tool scope that names another tool than the one that waits.
    #[error("the grant names the tool `{named}`, but the approval is for `{waiting}`")]
    OtherTool {
        /// In the scope.
        named: String,
        /// In the request.
        waiting: String,
    },
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
        let open = self.state.open_action(approval.action)?;
        // The retry is the same action: its id, its step.
        let mut held = action.clone();
        held.id = approval.action;
        let call = call.filter(|call| open.call.as_ref() != Some(*call)).cloned();
        let standing = Standing { step: open.step, cause: open.last_event, bound_to, call, ask: false };
        match &approval.state {
            ApprovalState::Pending => {
                if self.has_lapsed(approval, batch.at()) {
                    self.expire(batch, id, approval.action);
                    return None;
                }
                let read = self.read(pending(batch, &held), &held);
                let decision = self.decide(batch, &held, None, &read, sources).1;
                drop(read);
                Some(self.held(held, open.step, decision, id))
            }
            ApprovalState::Granted { .. } => {
                let ttl = u64::from(self.bundle.approvals.grant_ttl_s) * MICROS_PER_SECOND;
                let Some(grant) = self.state.grant_for(&held, bound_to, batch.at(), ttl) else {
                    self.expire(batch, id, approval.action);
                    return None;
                };
                if !self.covers_words(&grant, action) {
                    // The announcement changed since it was shown, so a person is asked again.
                    self.expire(batch, id, approval.action);
                    return None;
                }
                Some(self.judge(batch, held, standing, Some(grant), sources))
            }
            ApprovalState::Refused => Some(self.judge(batch, held, standing, None, sources)),
            ApprovalState::Expired | ApprovalState::Claimed => None,
        }
    }

    /// Whether a grant covers what is said with a call: one for a single call was given on what was said with that.
    pub(super) fn covers_words(&self, grant: &Grant, action: &Action) -> bool {
        let held = self.state.approval(grant.approval).map(|approval| approval.action);
        grant.scope != GrantScope::Once
            || held.is_some_and(|held| self.words.same(held, action, &self.bundle))
    }

    /// Whether a request has waited for longer than the bundle lets it.
    fn has_lapsed(&self, approval: &Approval, at: Timestamp) -> bool {
        at.micros_since(approval.requested_at)
            > u64::from(self.bundle.approvals.request_ttl_s) * MICROS_PER_SECOND
    }

    /// The approval lapses, and with it the action that waited.
    pub(super) fn expire(&self, batch: &mut BatchBuilder<'_>, approval: ApprovalId, action: ActionId) {
        let body = EventBody::ApprovalDecided {
            approval,
            decision: ApprovalDecision::Expired,
            scope: None,
            labels: self.state.labels().clone(),
            note: None,
        };
        let expired = batch.push(Actor::gate(), None, body);
        let body = EventBody::Enforcement { action: Some(action), enforced: Enforced::Withheld, call: None };
        batch.push(Actor::gate(), Some(expired), body);
    }

    /// A decision that would have one more call wait for a person, unless too many of the run do already: a flood of
    /// questions hides the one that matters.
    pub(super) fn unless_too_many_wait(&self, decision: Decision) -> Decision {
        let asks = decision.verdict == Verdict::Review && self.state.mode() != Mode::Observe;
        let Some(limit) = self.waiting_max.filter(|_| asks) else { return decision };
        if self.state.pending_approvals().len() < limit {
            return decision;
        }
        let message = format!(
            "{limit} calls of this run are waiting for a person, which is the limit; more are denied until some are answered"
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
        digest: Digest,
    ) -> Judgement {
        let held = EventBody::Enforcement { action: Some(action.id), enforced: Enforced::Held, call: None };
        let cause = batch.push(Actor::gate(), Some(cause), held);
        let approval = ApprovalId::from_bytes(batch.id());
        let tool = action.tool().unwrap_or_default().to_owned();
        let body = EventBody::ApprovalRequested { approval, action: action.id, digest, tool };
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
            seq: 0,
        }
    }

    /// A person answers. The labels of the run at this moment are what the person was shown.
    pub fn answer(&self, env: &mut dyn Env, id: ApprovalId, answer: Answer) -> Result<Batch, AnswerError> {
        let approval = self.state.approval(id).ok_or(AnswerError::Unknown(id))?;
        if approval.state != ApprovalState::Pending {
            return Err(AnswerError::Decided(id));
        }
        if self.has_lapsed(approval, env.now()) {
            return Err(AnswerError::Lapsed(id));
        }
        let granted = answer.decision == ApprovalDecision::Granted;
        if granted && answer.shown.as_ref().is_some_and(|shown| shown != self.state.labels()) {
            return Err(AnswerError::Changed(id));
        }
        if let GrantScope::Tool(named) = &answer.scope
            && *named != approval.tool
        {
            return Err(AnswerError::OtherTool { named: named.clone(), waiting: approval.tool.clone() });
        }
        let mut labels = self.state.labels().clone();
        if granted && answer.scope != GrantScope::Once {
            // Approving further calls includes approving that the results of the tool will be seen.
            labels.insert(Label::Tool(approval.tool.clone()));
            // Its server may say something beside each result: how far it has come, what it logs.
            labels.extend(approval.server.clone().map(Label::Server));
        }
        let cause = self.state.open_action(approval.action).map(|action| action.last_event);
        let mut batch = self.builder(env);
        let body = EventBody::ApprovalDecided {
            approval: id,
            decision: answer.decision,
            scope: granted.then_some(answer.scope),
            labels,
            note: answer.note,
        };
        batch.push(Actor::approver(&answer.approver), cause, body);
        Ok(batch.finish())
    }
}
