//! Replies that wait for a person, and the person's answer.
//!
//! A held reply is known by its text and the documents that go with it: the agent gives it again to learn what became of
//! it. It is granted once. Unlike a call, it is recorded only when it is first given.

use std::borrow::Cow;

use portcullis_core::action::{Grant, Pending, Subject};
use portcullis_core::event::{About, Actor, Enforced, EventBody};
use portcullis_core::fact::Facts;
use portcullis_core::finding::Finding;
use portcullis_core::id::{ApprovalId, Digest, DigestBuilder};
use portcullis_core::pipeline::Decision;
use portcullis_core::state::{Approval, ApprovalState, Given};
use portcullis_core::time::Timestamp;
use portcullis_core::verdict::Verdict;
use portcullis_guards::approval::refused;
use serde_json::Value;

use super::texts::{Reach, TextJudgement, shown_text};
use super::{ANSWERED, EDITED, Engine, denied};
use crate::batch::BatchBuilder;
use crate::denial::explain_text;
use crate::facts::{Asked, FactSources, Sources};

/// A reply as the agent gives it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reply<'a> {
    pub(super) text: &'a str,
    /// Documents that were handed over with it, as JSON.
    pub(super) documents: Option<&'a str>,
    pub(super) reach: Reach,
}

impl<'a> Reply<'a> {
    fn subject(self) -> Subject<'a> {
        Subject::Output { text: self.text, documents: self.documents }
    }
}

/// A reply that was held: its request, and the event that has its text.
#[derive(Clone, Copy)]
struct Held<'a> {
    id: ApprovalId,
    approval: &'a Approval,
    said: u64,
}

impl Engine {
    /// What a grant for a reply is bound to.
    pub(super) fn bound_to_reply(&self, reply: Reply<'_>) -> Digest {
        let key = self.key.as_ref().map_or(&[][..], |key| key.as_bytes());
        DigestBuilder::new("portcullis/grant-of-reply/v1")
            .part(key)
            .part(reply.text.as_bytes())
            .part(reply.documents.unwrap_or_default().as_bytes())
            .part(self.bundle.digest().as_bytes())
            .part(self.principal().as_bytes())
            .finish()
    }

    /// What guards want to know before they judge a reply: of the words that a person gave in its place, if one did.
    pub fn needs_of_reply(
        &self,
        at: Timestamp,
        (text, documents): (&str, Option<&str>),
        reach: Reach,
        sources: &FactSources,
    ) -> Asked {
        let reply = Reply { text, documents, reach };
        match self.held_reply(reply) {
            Some(held) => match &held.approval.state {
                ApprovalState::Granted(given) => {
                    let Some(text) = self.granted_text(held, given, reply) else { return Asked::default() };
                    self.needs_of_text(at, Subject::Output { text: &text, documents }, sources)
                }
                ApprovalState::Expired | ApprovalState::Revoked | ApprovalState::Claimed => {
                    self.needs_of_text(at, reply.subject(), sources)
                }
                ApprovalState::Pending if self.has_lapsed(held.approval, at) => {
                    self.needs_of_text(at, reply.subject(), sources)
                }
                ApprovalState::Pending | ApprovalState::Refused | ApprovalState::Answered(_) => {
                    Asked::default()
                }
            },
            None => self.needs_of_text(at, reply.subject(), sources),
        }
    }

    /// The request for this very reply, if there is one.
    fn held_reply(&self, reply: Reply<'_>) -> Option<Held<'_>> {
        if reply.reach == Reach::Tell {
            return None;
        }
        let (id, approval) = self.state.approval_for(self.bound_to_reply(reply))?;
        match approval.about {
            About::Text(said) => Some(Held { id, approval, said }),
            About::Action(_) => None,
        }
    }

    /// The words that were granted, or `None` if they were erased.
    fn granted_text<'a>(&'a self, held: Held<'_>, given: &Given, reply: Reply<'a>) -> Option<Cow<'a, str>> {
        match given.edited {
            true => self.words.edited(held.id).and_then(Value::as_str).map(Cow::Borrowed),
            false => Some(Cow::Borrowed(reply.text)),
        }
    }

    /// What became of a reply that waits for a person, if it does. `None`: it is to be judged as a new one.
    pub(super) fn meet_reply(
        &self,
        batch: &mut BatchBuilder<'_>,
        reply: Reply<'_>,
        sources: &dyn Sources,
    ) -> Option<TextJudgement> {
        let held = self.held_reply(reply)?;
        let undecided = matches!(held.approval.state, ApprovalState::Pending | ApprovalState::Granted(_));
        if undecided && let Some(decision) = self.frozen(&reply.subject()) {
            // The request stays as it is, and the reply waits on once the run is released.
            return Some(self.withheld(reply, decision, Some(held.id)));
        }
        match &held.approval.state {
            ApprovalState::Pending if self.has_lapsed(held.approval, batch.at()) => {
                self.expire(batch, held.id, held.approval.about);
                None
            }
            ApprovalState::Pending => Some(self.waits_on(reply, held)),
            ApprovalState::Granted(given) => self.release(batch, reply, held, given, sources),
            ApprovalState::Refused => {
                let note = self.state.refusal(held.approval.digest).flatten();
                let finding = refused::finding(note, refused::Known::SameReply);
                let decision = Decision { verdict: Verdict::Deny, findings: vec![finding], modified: None };
                Some(self.stopped(batch, reply, held, decision))
            }
            ApprovalState::Answered(sentence) => {
                let message = format!("an approver answered instead of deciding: {sentence}");
                Some(self.stopped(batch, reply, held, denied(ANSWERED, message)))
            }
            ApprovalState::Expired | ApprovalState::Revoked | ApprovalState::Claimed => None,
        }
    }

    /// A reply that was granted is given again: all guards judge it once more, with the grant.
    fn release(
        &self,
        batch: &mut BatchBuilder<'_>,
        reply: Reply<'_>,
        held: Held<'_>,
        given: &Given,
        sources: &dyn Sources,
    ) -> Option<TextJudgement> {
        let grant = self.state.own_grant(held.id, batch.at(), self.grant_ttl());
        let text = self.granted_text(held, given, reply);
        let (Some(grant), Some(text)) = (grant, text) else {
            self.expire(batch, held.id, held.approval.about);
            return None;
        };
        let subject = Subject::Output { text: &text, documents: reply.documents };
        let pending = Pending { at: batch.at(), subject, grant: Some(&grant) };
        let (facts, decision, reading) = self.decide_text(&pending, sources);
        let decision = match given.edited {
            true => replacing(&text, decision),
            false => decision,
        };
        let mut cause = held.said;
        if let Some(context) = self.context() {
            let record = decision.record(&context, &pending, &facts);
            cause = batch.push(Actor::gate(), Some(cause), EventBody::Verdict(record));
        }
        let asked = match decision.verdict {
            // The grant answers all that holds a reply: this cannot be.
            Verdict::Review => Enforced::Withheld,
            _ => self.enforced_text(&decision),
        };
        let enforced = reply.reach.done(asked);
        if enforced.proceeds() {
            cause = self.claim(batch, &grant, held, cause);
        }
        let body = EventBody::Enforcement { action: None, enforced, call: None, contained: None };
        batch.push(Actor::gate(), Some(cause), body);
        let shown = shown_text(&decision, asked, enforced);
        let denial = (!enforced.proceeds()).then(|| explain_text(self.run, &reply.subject(), &decision));
        let verification = reading.and_then(|reading| reading.verification).filter(|_| !given.edited);
        let verification = verification.map(|verification| verification.of_event(held.said));
        let approval = None;
        Some(TextJudgement { decision, enforced, shown, denial, approval, verification, seq: batch.seq() })
    }

    fn claim(&self, batch: &mut BatchBuilder<'_>, grant: &Grant, held: Held<'_>, cause: u64) -> u64 {
        let body = EventBody::GrantClaimed { approval: grant.approval, about: held.approval.about };
        batch.push(Actor::gate(), Some(cause), body)
    }

    /// A reply that still waits: nothing is recorded of its being given again.
    fn waits_on(&self, reply: Reply<'_>, held: Held<'_>) -> TextJudgement {
        let why = "an approver has not decided about this reply yet";
        let rules = held.approval.held_by.iter().map(|held| held.rule.clone());
        let findings = rules.map(|rule| Finding::new(rule, Verdict::Review, why)).collect();
        let decision = Decision { verdict: Verdict::Review, findings, modified: None };
        let judgement = self.withheld(reply, decision, Some(held.id));
        TextJudgement { enforced: Enforced::Held, ..judgement }
    }

    /// A reply that an answer stops, on the record.
    fn stopped(
        &self,
        batch: &mut BatchBuilder<'_>,
        reply: Reply<'_>,
        held: Held<'_>,
        decision: Decision,
    ) -> TextJudgement {
        let mut cause = held.said;
        if let Some(context) = self.context() {
            let pending = Pending { at: batch.at(), subject: reply.subject(), grant: None };
            let record = decision.record(&context, &pending, &Facts::none());
            cause = batch.push(Actor::gate(), Some(cause), EventBody::Verdict(record));
        }
        let enforced = Enforced::Withheld;
        batch.push(
            Actor::gate(),
            Some(cause),
            EventBody::Enforcement { action: None, enforced, call: None, contained: None },
        );
        TextJudgement { seq: batch.seq(), ..self.withheld(reply, decision, None) }
    }

    fn withheld(&self, reply: Reply<'_>, decision: Decision, approval: Option<ApprovalId>) -> TextJudgement {
        let mut denial = explain_text(self.run, &reply.subject(), &decision);
        denial.approval = approval;
        TextJudgement {
            decision,
            enforced: Enforced::Withheld,
            shown: None,
            denial: Some(denial),
            approval,
            verification: None,
            seq: self.state.seq(),
        }
    }

    /// Asks for a person's approval of the reply that was recorded as event `said`.
    pub(super) fn ask_about_reply(
        &self,
        batch: &mut BatchBuilder<'_>,
        reply: Reply<'_>,
        said: u64,
        cause: u64,
    ) -> ApprovalId {
        let approval = ApprovalId::from_bytes(batch.id());
        let (about, digest) = (About::Text(said), self.bound_to_reply(reply));
        let (tool, effects, patterns) = (String::new(), None, false);
        let body = EventBody::ApprovalRequested { approval, about, digest, tool, effects, patterns };
        batch.push(Actor::gate(), Some(cause), body);
        approval
    }
}

/// A decision on words that a person gave, as one that replaces those of the agent.
fn replacing(text: &str, mut decision: Decision) -> Decision {
    if decision.verdict.permits() {
        decision.findings.push(Finding::new(EDITED, Verdict::Modify, "an approver changed the reply"));
        decision.verdict = Verdict::Modify;
        decision.modified = Some(decision.modified.unwrap_or_else(|| Value::from(text)));
    }
    decision
}
