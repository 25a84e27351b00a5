//! What people were asked in a run, and what they answered.

use crate::action::{Action, Grant};
use crate::event::{About, ApprovalDecision, Event, EventBody, GrantScope, VerdictRecord};
use crate::finding::Finding;
use crate::grant::{GrantedEffects, fits};
use crate::id::{ActionId, ApprovalId, Digest};
use crate::label::LabelSet;
use crate::likeness::Likeness;
use crate::limits::{
    APPROVALS_MAX, EFFECT_GRANTS_TRIED_MAX, NOTE_TOLD_CHARS_MAX, REFUSALS_COMPARED_MAX,
    REFUSALS_REMEMBERED_MAX, REFUSED_RESOURCES_MAX,
};
use crate::recent::Recent;
use crate::state::OpenAction;
use crate::time::Timestamp;
use crate::verdict::Verdict;

/// An approval as the run knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approval {
    /// What waits.
    pub about: About,
    /// What a grant for one call or text is bound to.
    pub digest: Digest,
    /// The tool that waits; empty for a text.
    pub tool: String,
    /// What its server is known by, where that is known.
    pub server: Option<String>,
    /// When it was asked for, by the run's clock: that stands still while the run is frozen.
    pub requested_at: Timestamp,
    /// Digest of its effects as they were read.
    pub effects: Option<Digest>,
    /// Whether a grant may cover resources by a pattern.
    pub patterns: bool,
    /// The rules that hold it, with the resources that they hold it for.
    pub held_by: Vec<GrantedEffects>,
    /// Who has said yes so far, where several people have to.
    pub endorsed: Vec<Endorsement>,
    /// Where it is.
    pub state: ApprovalState,
    likeness: Option<Likeness>,
    /// How often another bundle had come into force when it was asked for.
    rules: u64,
}

/// A yes that needs others beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endorsement {
    /// Who said it, as the event has it: `approver:NAME`.
    pub by: String,
    /// The run's labels as the person was shown them.
    pub labels: LabelSet,
}

/// The state of an approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApprovalState {
    /// It is not decided yet.
    Pending,
    /// Yes.
    Granted(Given),
    /// No.
    Refused,
    /// Neither: the agent gets this sentence.
    Answered(String),
    /// The yes was taken back.
    Revoked,
    /// Too late.
    Expired,
    /// A `once` grant that was used.
    Claimed,
}

/// A yes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Given {
    /// How far.
    pub scope: GrantScope,
    /// What the person was shown of the run's labels.
    pub labels: LabelSet,
    /// When, by the run's clock.
    pub at: Timestamp,
    /// Until when it can be claimed, by the run's clock; none: for as long as the bundle lets grants last.
    pub until: Option<Timestamp>,
    /// It ends with the next thing that the user says.
    of_task: bool,
    /// The call may go ahead with the arguments that the person gave, and not with its own; or the reply with the
    /// person's words.
    pub edited: bool,
    /// Things that the user had said by then: a grant for a task ends with the next.
    task: u64,
    /// Bundles that had come into force by then: a grant ends with the next.
    rules: u64,
}

/// A call that a person refused, as later calls are compared with it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Refused {
    tool: String,
    server: Option<String>,
    likeness: Option<Likeness>,
    held_by: Vec<GrantedEffects>,
    note: Option<String>,
}

impl Refused {
    /// Whether a call that these findings hold is the refused one in other words, or reaches at least as far: what held
    /// that one holds this one too, for the same resources or for what contains them.
    fn covers(&self, action: &Action, findings: &[Finding]) -> bool {
        let of_tool = action.tool() == Some(self.tool.as_str()) && action.server == self.server;
        if of_tool && self.likeness.is_some() && self.likeness == action.likeness() {
            return true;
        }
        let names = self.held_by.iter().any(|held| !held.resources.is_empty());
        names && self.held_by.iter().all(|held| reaches_as_far(findings, held))
    }
}

/// Whether findings that hold a call are about at least these resources, by the same rule.
fn reaches_as_far(findings: &[Finding], held: &GrantedEffects) -> bool {
    let mut same = holding(findings).filter(|finding| finding.rule == held.rule).peekable();
    if held.resources.is_empty() {
        return same.peek().is_some();
    }
    let now: Vec<&String> = same.flat_map(|finding| &finding.resources).collect();
    held.resources.iter().all(|resource| now.iter().any(|now| contains(now, resource)))
}

/// Whether touching one resource touches the other: it is the same, a folder that has it, or a pattern that it fits.
fn contains(outer: &str, inner: &str) -> bool {
    let below =
        || outer.starts_with("path ") && inner.strip_prefix(outer).is_some_and(|rest| rest.starts_with('/'));
    outer == inner || below() || fits(outer, inner)
}

/// The findings that hold a call.
fn holding(findings: &[Finding]) -> impl Iterator<Item = &Finding> {
    findings.iter().filter(|finding| finding.effective() == Verdict::Review)
}

/// Rules that hold a call, with their resources; without any resources where there are too many to be kept.
fn held_by(findings: &[Finding]) -> Vec<GrantedEffects> {
    let few =
        holding(findings).map(|finding| finding.resources.len()).sum::<usize>() <= REFUSED_RESOURCES_MAX;
    let kept = |finding: &Finding| if few { finding.resources.clone() } else { Vec::new() };
    holding(findings)
        .map(|finding| GrantedEffects { rule: finding.rule.to_string(), resources: kept(finding) })
        .collect()
}

/// All approvals of a run, and what is remembered of those that were refused.
#[derive(Debug, Clone, Default)]
pub(super) struct Approvals {
    all: Recent<ApprovalId, Approval>,
    /// Pending or decided approvals by the digest they are bound to.
    by_digest: Recent<Digest, ApprovalId>,
    /// What a person refused, with the note, by the digest that the approval was bound to. Kept apart from the
    /// approvals, which are forgotten sooner: a refused call is not asked about again.
    refusals: Recent<Digest, Option<String>>,
    /// The latest of them, with what is needed to know them in another form.
    refused: Recent<ApprovalId, Refused>,
    /// The latest verdict that holds something, with what holds it: an action, or none for a text.
    held: Option<(Option<ActionId>, Vec<GrantedEffects>)>,
    /// How often the user has spoken.
    task: u64,
    /// How often another bundle has come into force.
    rules: u64,
}

impl Approvals {
    pub(super) fn get(&self, id: ApprovalId) -> Option<&Approval> {
        self.all.get(&id)
    }

    pub(super) fn is_under_other_rules(&self, approval: &Approval) -> bool {
        approval.rules != self.rules
    }

    pub(super) fn pending(&self) -> impl Iterator<Item = (ApprovalId, About)> {
        let pending = self.all.iter().filter(|(_, approval)| approval.state == ApprovalState::Pending);
        pending.map(|(id, approval)| (*id, approval.about))
    }

    pub(super) fn bound_to(&self, digest: Digest) -> Option<(ApprovalId, &Approval)> {
        let id = *self.by_digest.get(&digest)?;
        self.all.get(&id).map(|approval| (id, approval))
    }

    pub(super) fn has_refusals(&self) -> bool {
        !self.refusals.is_empty()
    }

    pub(super) fn refusal(&self, digest: Digest) -> Option<Option<&str>> {
        self.refusals.get(&digest).map(Option::as_deref)
    }

    pub(super) fn refused_alike(&self, action: &Action, findings: &[Finding]) -> Option<Option<&str>> {
        let mut refused = self.refused.iter().map(|(_, refused)| refused);
        refused.find(|refused| refused.covers(action, findings)).map(|refused| refused.note.as_deref())
    }

    pub(super) fn grant_for(
        &self,
        action: &Action,
        digest: Digest,
        live: impl Fn(&Given) -> bool,
    ) -> Option<Grant> {
        // The agent's own arguments are not those that a person gave in their place.
        let live = |approval| {
            self.live(approval, &live).filter(|given| !given.edited).map(|given| given.scope.clone())
        };
        let bound = self.bound_to(digest).and_then(|(id, approval)| Some((id, live(approval)?)));
        let bound_or_of_tool = bound.or_else(|| {
            let tool = action.tool()?;
            self.all.iter().find_map(|(id, approval)| match live(approval)? {
                GrantScope::Tool(granted) if granted == tool && approval.server == action.server => {
                    Some((*id, GrantScope::Tool(granted)))
                }
                _ => None,
            })
        });
        bound_or_of_tool.map(|(approval, scope)| Grant { approval, scope })
    }

    pub(super) fn own_grant(&self, id: ApprovalId, live: impl Fn(&Given) -> bool) -> Option<Grant> {
        let given = self.live(self.all.get(&id)?, live)?;
        Some(Grant { approval: id, scope: given.scope.clone() })
    }

    pub(super) fn effect_grants(&self, server: Option<&str>, live: impl Fn(&Given) -> bool) -> Vec<Grant> {
        let of_server = self.all.iter().filter(|(_, approval)| approval.server.as_deref() == server);
        let mut grants: Vec<(Timestamp, Grant)> = of_server
            .filter_map(|(id, approval)| match &self.live(approval, &live)?.scope {
                scope @ (GrantScope::Effects(_) | GrantScope::Pattern(_)) => {
                    Some((approval.requested_at, Grant { approval: *id, scope: scope.clone() }))
                }
                GrantScope::Once | GrantScope::Arguments | GrantScope::Tool(_) => None,
            })
            .collect();
        grants.sort_by_key(|(requested, _)| std::cmp::Reverse(*requested));
        grants.into_iter().take(EFFECT_GRANTS_TRIED_MAX).map(|(_, grant)| grant).collect()
    }

    /// A yes that holds now. `live` knows of labels and times.
    fn live<'s>(&self, approval: &'s Approval, live: impl Fn(&Given) -> bool) -> Option<&'s Given> {
        match &approval.state {
            ApprovalState::Granted(given) => {
                let same_task = !given.of_task || given.task == self.task;
                let same_rules = given.rules == self.rules;
                (same_task && same_rules && live(given)).then_some(given)
            }
            _ => None,
        }
    }

    /// The user speaks, and a task begins.
    pub(super) fn next_task(&mut self) {
        self.task = self.task.saturating_add(1);
    }

    /// Another bundle comes into force: what waits was held by other rules, and refusals and grants were given under them.
    pub(super) fn next_rules(&mut self) {
        self.rules = self.rules.saturating_add(1);
        self.refused = Recent::default();
    }

    pub(super) fn judged(&mut self, record: &VerdictRecord) {
        if record.verdict == Verdict::Review {
            self.held = Some((record.action, held_by(&record.findings)));
        }
    }

    /// Takes an event about approvals into account, with the time by the run's clock, and the action that it is about,
    /// where that is open.
    pub(super) fn apply(&mut self, event: &Event, now: Timestamp, open: Option<&OpenAction>) {
        match &event.body {
            EventBody::ApprovalRequested { approval, about, digest, tool, effects, patterns } => {
                let held = self.held.take().filter(|(held, _)| *held == about.action());
                let entry = Approval {
                    about: *about,
                    digest: *digest,
                    tool: tool.clone(),
                    server: open.and_then(|open| open.server.clone()),
                    requested_at: now,
                    effects: *effects,
                    patterns: *patterns,
                    held_by: held.map(|(_, held_by)| held_by).unwrap_or_default(),
                    endorsed: Vec::new(),
                    state: ApprovalState::Pending,
                    likeness: open.and_then(|open| open.likeness),
                    rules: self.rules,
                };
                self.all.insert(*approval, entry, APPROVALS_MAX);
                self.by_digest.insert(*digest, *approval, APPROVALS_MAX);
            }
            EventBody::ApprovalDecided { approval, decision, scope, lasting, labels, note, .. } => {
                let given = || Given {
                    scope: scope.clone().unwrap_or(GrantScope::Once),
                    labels: labels.clone(),
                    at: now,
                    until: lasting.until.map(|until| after(now, until.micros_since(event.t))),
                    of_task: lasting.task,
                    edited: [EDITED_ARGUMENTS, EDITED_TEXT]
                        .iter()
                        .any(|name| event.payloads.contains_key(*name)),
                    task: self.task,
                    rules: self.rules,
                };
                let given = (*decision == ApprovalDecision::Granted).then(given);
                let by = event.actor.as_str();
                self.decide(
                    *approval,
                    *decision,
                    given,
                    Endorsement { by: by.to_owned(), labels: labels.clone() },
                    note.as_deref(),
                );
            }
            EventBody::GrantClaimed { approval, .. } => {
                if let Some(entry) = self.all.get_mut(approval)
                    && matches!(&entry.state, ApprovalState::Granted(given) if given.scope == GrantScope::Once)
                {
                    entry.state = ApprovalState::Claimed;
                }
            }
            _ => {}
        }
    }

    fn decide(
        &mut self,
        id: ApprovalId,
        decision: ApprovalDecision,
        given: Option<Given>,
        endorsement: Endorsement,
        note: Option<&str>,
    ) {
        let Some(entry) = self.all.get_mut(&id) else { return };
        let told = note.map(|note| note.chars().take(NOTE_TOLD_CHARS_MAX).collect::<String>());
        entry.state = match (decision, given) {
            (ApprovalDecision::Granted, Some(given)) => ApprovalState::Granted(given),
            (ApprovalDecision::Granted, None) => return,
            (ApprovalDecision::Endorsed, _) => {
                entry.endorsed.push(endorsement);
                return;
            }
            (ApprovalDecision::Refused, _) => {
                let refused = Refused {
                    tool: entry.tool.clone(),
                    server: entry.server.clone(),
                    likeness: entry.likeness,
                    held_by: std::mem::take(&mut entry.held_by),
                    note: told.clone(),
                };
                self.refusals.insert(entry.digest, told, REFUSALS_REMEMBERED_MAX);
                if entry.about.action().is_some() {
                    self.refused.insert(id, refused, REFUSALS_COMPARED_MAX);
                }
                ApprovalState::Refused
            }
            (ApprovalDecision::Answered, _) => ApprovalState::Answered(told.unwrap_or_default()),
            (ApprovalDecision::Revoked, _) => ApprovalState::Revoked,
            (ApprovalDecision::Expired, _) => ApprovalState::Expired,
        };
    }
}

fn after(at: Timestamp, micros: u64) -> Timestamp {
    Timestamp::from_micros(at.as_micros().saturating_add_unsigned(micros))
}

/// Name of the payload with the arguments that a person gave in place of the agent's.
pub const EDITED_ARGUMENTS: &str = "arguments";
/// Name of the payload with the words that a person gave in place of the agent's reply.
pub const EDITED_TEXT: &str = "text";
