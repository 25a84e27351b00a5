//! What a person says to a request.
//!
//! A yes is bound to what was shown. Who may say it, how many have to, and how long it lasts is in the bundle:
//! [`ApprovalSettings`](portcullis_core::bundle::ApprovalSettings).

use std::collections::BTreeSet;

use portcullis_core::bundle::Requirement;
use portcullis_core::event::{About, Actor, ApprovalDecision, EventBody, GrantScope, Lasting};
use portcullis_core::grant::{fits, not_a_pattern};
use portcullis_core::id::{ApprovalId, Digest};
use portcullis_core::label::{Label, LabelSet};
use portcullis_core::state::{Approval, ApprovalState, EDITED_ARGUMENTS, EDITED_TEXT, Endorsement};
use portcullis_core::time::Timestamp;
use serde_json::Value;

use super::{Engine, JSON, MICROS_PER_SECOND, TEXT};
use crate::batch::{Batch, note_secrets};
use crate::env::Env;

/// A person's answer to a request.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// What they say.
    pub says: Says,
    /// A note for the record, and for the agent where it is stopped.
    pub note: Option<String>,
    /// Who answers.
    pub by: Decider,
}

impl Answer {
    /// An answer in a rehearsal, a case or a replay.
    #[must_use]
    pub fn rehearsed(says: Says, by: impl Into<String>) -> Self {
        Self { says, note: None, by: Decider::Rehearsed(by.into()) }
    }
}

/// What a person says.
#[derive(Debug, Clone, PartialEq)]
pub enum Says {
    /// Yes.
    Grant {
        /// How far.
        scope: GrantScope,
        /// For how long.
        lasts: Lasts,
        /// With this, and not with what the agent gave.
        edit: Option<Edit>,
    },
    /// No, for the rest of the run.
    Refuse,
    /// Neither: the agent gets the note instead, and may go on otherwise.
    Answer,
    /// The yes that was given before is taken back.
    Revoke,
}

/// What a person gives in place of what the agent gave.
#[derive(Debug, Clone, PartialEq)]
pub enum Edit {
    /// Arguments of the call.
    Arguments(Value),
    /// The reply.
    Text(String),
}

impl Says {
    /// Yes, so far, for as long as usual.
    #[must_use]
    pub fn grant(scope: GrantScope) -> Self {
        Self::Grant { scope, lasts: Lasts::Usual, edit: None }
    }
}

/// How long a grant is to last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Lasts {
    /// As long as the bundle says: `approval_grant_ttl_s`.
    #[default]
    Usual,
    /// Until the user speaks again, or for as long as the bundle lets any grant last.
    Task,
    /// Until the run ends, or for as long as the bundle lets any grant last.
    Session,
    /// Until then.
    Until(Timestamp),
}

/// Who answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decider {
    /// A person, known from a credential.
    Approver {
        /// The principal of the credential.
        id: String,
        /// Its roles.
        roles: BTreeSet<String>,
        /// What they were shown. A refusal can do without.
        shown: Option<ShownRequest>,
    },
    /// Somebody in a rehearsal, a case or a replay. Nobody is asked there, so nothing is required of them.
    Rehearsed(String),
}

/// What a person was shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownRequest {
    /// Digest of all of it.
    pub digest: Digest,
    /// The run's labels at that moment.
    pub labels: LabelSet,
}

impl Decider {
    fn id(&self) -> &str {
        match self {
            Self::Approver { id, .. } | Self::Rehearsed(id) => id,
        }
    }

    fn shown(&self) -> Option<&ShownRequest> {
        match self {
            Self::Approver { shown, .. } => shown.as_ref(),
            Self::Rehearsed(_) => None,
        }
    }
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
    /// It is to be revoked and no grant of it holds.
    #[error("approval {0} has no grant that could be revoked")]
    NotGranted(ApprovalId),
    /// It lapsed before it was answered, or another bundle came into force.
    #[error(
        "approval {0} lapsed, or the bundle changed, before it was answered; the agent must repeat the call"
    )]
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
    /// The bundle wants somebody else to grant it.
    #[error("approval {approval} can only be granted by {}", roles.join(" or "))]
    NotEntitled {
        /// The request.
        approval: ApprovalId,
        /// The roles that may, each as `role X`.
        roles: Vec<String>,
    },
    /// The bundle wants another person than the one on whose behalf the agent acts.
    #[error("approval {0} was asked for on your own behalf; someone else must grant it")]
    OwnRequest(ApprovalId),
    /// The bundle wants several people, and this one has agreed before.
    #[error("you have already agreed to approval {0}; {1} more must do so")]
    AlreadyEndorsed(ApprovalId, u32),
    /// The bundle wants a note, or the answer is one.
    #[error("this decision needs a note")]
    NoNote,
    /// The grant is to last longer than the bundle lets it.
    #[error("a grant lasts at most {0} s (`grant_max_s`)")]
    TooLong(u32),
    /// The grant is to last until a time that has passed.
    #[error("the grant would end before it begins")]
    Ended,
    /// A pattern that may not be granted, or not for this call.
    #[error("this pattern cannot be granted: {0}")]
    Pattern(String),
    /// A scope that a reply does not have.
    #[error("a reply is granted once; other scopes are for calls")]
    ReplyOnce,
    /// A change that may not be granted.
    #[error("it cannot be changed: {0}")]
    Edit(&'static str),
}

impl Engine {
    /// A person answers. The labels of the run at this moment are what the person was shown.
    ///
    /// # Errors
    /// [`AnswerError`]; the request stands as it stood.
    pub fn answer(&self, env: &mut dyn Env, id: ApprovalId, answer: Answer) -> Result<Batch, AnswerError> {
        let approval = self.state.approval(id).ok_or(AnswerError::Unknown(id))?;
        let now = env.now();
        let asked = Asked { id, approval, requirement: self.requirement_for(approval), now };
        asked.check_open(&answer.says, self)?;
        asked.check_note(&answer)?;
        let by = Actor::approver(answer.by.id());
        let mut labels = self.state.labels().clone();
        let (decision, scope, lasting, edit) = match answer.says {
            Says::Refuse => (ApprovalDecision::Refused, None, Lasting::default(), None),
            Says::Answer => (ApprovalDecision::Answered, None, Lasting::default(), None),
            Says::Revoke => (ApprovalDecision::Revoked, None, Lasting::default(), None),
            Says::Grant { scope, lasts, edit } => {
                let decision = asked.check_grant(self, &scope, edit.as_ref(), &answer.by)?;
                if scope != GrantScope::Once {
                    // Approving further calls includes approving that the results of the tool will be seen.
                    labels.insert(Label::Tool(approval.tool.clone()));
                    // Its server may say something beside each result: how far it has come, what it logs.
                    labels.extend(approval.server.clone().map(Label::Server));
                }
                let lasting = asked.lasting(self, lasts, &answer.by)?;
                (decision, Some(scope), lasting, edit)
            }
        };
        let cause = match approval.about {
            About::Action(action) => self.state.open_action(action).map(|action| action.last_event),
            About::Text(said) => Some(said),
        };
        let body = EventBody::ApprovalDecided {
            approval: id,
            decision,
            scope,
            lasting,
            shown: answer.by.shown().map(|shown| shown.digest),
            labels,
            note: answer.note,
        };
        let given = edit.map(|edit| match edit {
            Edit::Arguments(value) => (EDITED_ARGUMENTS, JSON, value.to_string().into_bytes()),
            Edit::Text(text) => (EDITED_TEXT, TEXT, text.into_bytes()),
        });
        let mut batch = self.builder(env);
        batch.push_with(by, cause, body, [given]);
        Ok(batch.finish())
    }

    /// What a decision about an approval requires.
    pub fn requirement_for(&self, approval: &Approval) -> &Requirement {
        let rules = approval.held_by.iter().map(|held| held.rule.as_str());
        self.bundle.approvals.requirement_for(rules, &approval.tool)
    }

    /// Whether an approval has waited so long that other roles may grant it as well.
    pub fn is_escalated(&self, approval: &Approval, now: Timestamp) -> bool {
        let waited_s = self.state.waited_micros(approval, now) / MICROS_PER_SECOND;
        self.requirement_for(approval).escalated_to(waited_s).is_some()
    }
}

/// A request that somebody answers now.
struct Asked<'a> {
    id: ApprovalId,
    approval: &'a Approval,
    requirement: &'a Requirement,
    now: Timestamp,
}

impl Asked<'_> {
    fn check_open(&self, says: &Says, engine: &Engine) -> Result<(), AnswerError> {
        match (&self.approval.state, says) {
            (ApprovalState::Granted(_), Says::Revoke) => Ok(()),
            (_, Says::Revoke) => Err(AnswerError::NotGranted(self.id)),
            (ApprovalState::Pending, _) if engine.has_lapsed(self.approval, self.now) => {
                Err(AnswerError::Lapsed(self.id))
            }
            (ApprovalState::Pending, _) => Ok(()),
            _ => Err(AnswerError::Decided(self.id)),
        }
    }

    fn check_note(&self, answer: &Answer) -> Result<(), AnswerError> {
        let given = answer.note.as_ref().is_some_and(|note| !note.trim().is_empty());
        let required = match (&answer.by, &answer.says) {
            (Decider::Rehearsed(_), _) => false,
            (_, Says::Answer) => true,
            _ => self.requirement.require_note,
        };
        if required && !given { Err(AnswerError::NoNote) } else { Ok(()) }
    }

    /// Whether the yes may be given, and whether it is enough.
    fn check_grant(
        &self,
        engine: &Engine,
        scope: &GrantScope,
        edit: Option<&Edit>,
        by: &Decider,
    ) -> Result<ApprovalDecision, AnswerError> {
        self.check_scope(scope)?;
        if let Some(edit) = edit {
            self.check_edit(engine, scope, edit)?;
        }
        let Decider::Approver { id, roles, shown } = by else { return Ok(ApprovalDecision::Granted) };
        let labels = engine.state.labels();
        if shown.as_ref().is_none_or(|shown| shown.labels != *labels) {
            return Err(AnswerError::Changed(self.id));
        }
        if self.requirement.four_eyes && id == engine.principal() {
            return Err(AnswerError::OwnRequest(self.id));
        }
        let waited_s = engine.state.waited_micros(self.approval, self.now) / MICROS_PER_SECOND;
        if !self.requirement.may_grant(roles, waited_s) {
            let roles = self.requirement.roles.iter().map(|role| format!("role `{role}`")).collect();
            return Err(AnswerError::NotEntitled { approval: self.id, roles });
        }
        self.among_others(id, labels)
    }

    /// Whether enough people have agreed with this one. Whoever was shown other labels agreed to something else.
    fn among_others(&self, id: &str, labels: &LabelSet) -> Result<ApprovalDecision, AnswerError> {
        let actor = Actor::approver(id);
        let agreed: BTreeSet<&str> = self
            .approval
            .endorsed
            .iter()
            .filter(|one| one.labels == *labels)
            .map(|one: &Endorsement| one.by.as_str())
            .collect();
        let others = u32::try_from(agreed.len()).unwrap_or(u32::MAX);
        if agreed.contains(actor.as_str()) {
            return Err(AnswerError::AlreadyEndorsed(
                self.id,
                self.requirement.quorum.saturating_sub(others),
            ));
        }
        match others.saturating_add(1) >= self.requirement.quorum {
            true => Ok(ApprovalDecision::Granted),
            false => Ok(ApprovalDecision::Endorsed),
        }
    }

    fn check_scope(&self, scope: &GrantScope) -> Result<(), AnswerError> {
        match scope {
            GrantScope::Tool(named) if *named != self.approval.tool => {
                Err(AnswerError::OtherTool { named: named.clone(), waiting: self.approval.tool.clone() })
            }
            GrantScope::Once => Ok(()),
            _ if self.approval.about.action().is_none() => Err(AnswerError::ReplyOnce),
            _ if self.requirement.quorum > 1 => Err(AnswerError::Pattern(
                "several people have to agree, and each call needs them again".into(),
            )),
            GrantScope::Pattern(granted) => {
                if !self.approval.patterns {
                    let why = "the call was not read completely, or something leaves by it";
                    return Err(AnswerError::Pattern(why.into()));
                }
                for pattern in granted.iter().flat_map(|granted| &granted.resources) {
                    if let Some(why) = not_a_pattern(pattern) {
                        return Err(AnswerError::Pattern(format!("`{pattern}`: {why}")));
                    }
                }
                let covered = |rule: &str, resource: &String| {
                    let of_rule = granted.iter().filter(|granted| granted.rule == rule);
                    of_rule.flat_map(|granted| &granted.resources).any(|pattern| fits(pattern, resource))
                };
                let mut held = self.approval.held_by.iter();
                let all = held.all(|held| {
                    !held.resources.is_empty()
                        && held.resources.iter().all(|resource| covered(&held.rule, resource))
                });
                match all {
                    true => Ok(()),
                    false => Err(AnswerError::Pattern("it does not cover what this call is held for".into())),
                }
            }
            GrantScope::Arguments | GrantScope::Tool(_) | GrantScope::Effects(_) => Ok(()),
        }
    }

    fn check_edit(&self, engine: &Engine, scope: &GrantScope, edit: &Edit) -> Result<(), AnswerError> {
        if *scope != GrantScope::Once {
            return Err(AnswerError::Edit("what was changed is granted once only"));
        }
        if self.requirement.quorum > 1 {
            return Err(AnswerError::Edit("several people have to agree, each to the same call"));
        }
        let text = match (edit, self.approval.about) {
            (Edit::Arguments(Value::Object(object)), About::Action(_)) => {
                Value::from(object.clone()).to_string()
            }
            (Edit::Arguments(_), About::Action(_)) => {
                return Err(AnswerError::Edit("arguments are an object"));
            }
            (Edit::Text(text), About::Text(_)) => text.clone(),
            (Edit::Arguments(_), About::Text(_)) => {
                return Err(AnswerError::Edit("a reply has no arguments"));
            }
            (Edit::Text(_), About::Action(_)) => {
                return Err(AnswerError::Edit("it is a call, and no reply: give arguments"));
            }
        };
        let mut noted = text.clone();
        note_secrets(&mut noted, &engine.bundle);
        if noted != text {
            return Err(AnswerError::Edit("what is new contains a secret, which the record would not keep"));
        }
        Ok(())
    }

    fn lasting(&self, engine: &Engine, lasts: Lasts, by: &Decider) -> Result<Lasting, AnswerError> {
        let settings = &engine.bundle.approvals;
        let after = |seconds: u32| {
            let micros = i64::from(seconds).saturating_mul(1_000_000);
            Timestamp::from_micros(self.now.as_micros().saturating_add(micros))
        };
        let longest = after(settings.grant_max_s);
        let until = match lasts {
            Lasts::Usual => after(settings.grant_ttl_s),
            Lasts::Task | Lasts::Session => longest,
            Lasts::Until(until) if matches!(by, Decider::Rehearsed(_)) => until,
            Lasts::Until(until) if until > longest => return Err(AnswerError::TooLong(settings.grant_max_s)),
            Lasts::Until(until) if until <= self.now => return Err(AnswerError::Ended),
            Lasts::Until(until) => until,
        };
        Ok(Lasting { until: Some(until), task: lasts == Lasts::Task })
    }
}
