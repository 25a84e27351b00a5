//! The state of a run: a fold over its events, O(1) an event.
//!
//! [`RunState::apply`] is the only way the state changes, and it sees nothing but the event. Anyone who holds the
//! events of a run, across all its segments, holds its state at every point.

use crate::action::{Action, Grant};
use crate::event::{
    About, Actor, ClosedState, ConfigChange, Control, Enforced, Event, EventBody, Mode, OutcomeStatus,
    Parent, Place, Proposed, VerdictRecord,
};
use crate::finding::Finding;
use crate::id::{ActionId, ApprovalId, Digest};
use crate::label::{Label, LabelSet};
use crate::likeness::Likeness;
use crate::limits::{DENIALS_REMEMBERED_MAX, OPEN_ACTIONS_MAX};
use crate::listed::ListedTools;
use crate::pipeline::reserved;
use crate::principal::Principal;
use crate::recent::Recent;
use crate::sequence::Mark;
use crate::time::Timestamp;
use crate::usage::{Usage, Used};
use crate::verdict::Verdict;

mod approvals;
mod children;
pub mod confirmations;
pub mod contained;
mod counts;
mod frozen;
mod kept;
pub mod marks;
pub mod progress;
mod work;

use self::approvals::Approvals;
pub use self::approvals::{Approval, ApprovalState, EDITED_ARGUMENTS, EDITED_TEXT, Endorsement, Given};
pub use self::children::Children;
use self::confirmations::{CONFIRMED, Confirmations};
use self::contained::Containments;
use self::counts::VerdictCounts;
use self::frozen::RunClock;
pub use self::frozen::RunFreeze;
pub use self::kept::Kept;
pub use self::marks::Marks;
pub use self::work::Works;

/// Whether the run may go on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Phase {
    /// It may.
    #[default]
    Running,
    /// A question was put to the user; the next input is its answer.
    Clarifying {
        /// The question.
        question: String,
    },
    /// Waiting for a person's resume or, unless a person paused it, for a user input.
    Paused {
        /// Whether a person paused it.
        by_person: bool,
    },
    /// Ended; only a person resumes it.
    Halted,
    /// The last segment is closed.
    Closed(ClosedState),
}

/// An action between its proposal and its outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenAction {
    /// The tool, none for a thinking step.
    pub tool: Option<String>,
    /// What its server is known by, where that is known.
    pub server: Option<String>,
    /// Digest of tool and arguments.
    pub digest: Digest,
    /// Whether it counts as a side effect.
    pub side_effecting: bool,
    /// Its step number.
    pub step: u32,
    /// Sequence number of the event to name as cause of what follows.
    pub last_event: u64,
    /// Whether it was let through.
    pub executing: bool,
    /// What it costs, in millionths of the bundle's unit.
    pub cost_micros: u64,
    /// The surface's own id of the call.
    pub call: Option<String>,
    /// What near-identical calls have in common.
    pub likeness: Option<Likeness>,
    /// What the latest verdict on it marked it with.
    pub marks: Vec<Mark>,
}

/// The fold over a run's events.
#[derive(Debug, Clone, Default)]
pub struct RunState {
    seq: u64,
    principal: Option<Principal>,
    place: Option<Place>,
    parent: Option<Parent>,
    children: Children,
    surface: String,
    policy: String,
    mode: Mode,
    bundle: Option<Digest>,
    phase: Phase,
    /// Set while no segment is open. The phase before it applies again afterwards.
    closed: Option<Phase>,
    /// Stands beside the phase, which it leaves as it is.
    freeze: Option<RunFreeze>,
    clock: RunClock,
    steps: u32,
    side_effects: u32,
    verdicts: VerdictCounts,
    labels: LabelSet,
    actions: Recent<ActionId, OpenAction>,
    executing: usize,
    /// Actions whose outcome was recorded as unknown: the surface may still report it.
    unresolved: Recent<ActionId, OpenAction>,
    approvals: Approvals,
    confirmations: Confirmations,
    /// How often each action was denied in a row, by action digest.
    denials: Recent<Digest, u32>,
    /// What servers say of their tools.
    listed: ListedTools,
    usage: Usage,
    contained: Containments,
    works: Works,
    kept: Kept,
    marks: Marks,
}

impl RunState {
    /// The state before any event.
    pub fn new() -> Self {
        Self::default()
    }

    /// The state after all the given events.
    pub fn fold<'e>(events: impl IntoIterator<Item = &'e Event>) -> Self {
        let mut state = Self::new();
        for event in events {
            state.apply(event);
        }
        state
    }

    /// Number of the last event; 0 before the first.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// On whose behalf the agent acts.
    pub fn principal(&self) -> Option<&Principal> {
        self.principal.as_ref()
    }

    /// Whether what a server says of a tool changed since it was accepted. Where the server is not known, the tool of
    /// any server counts.
    pub fn tool_changed(&self, tool: &str, server: Option<&str>) -> bool {
        self.listed.changed(tool, server)
    }

    /// Where the agent works, if its surface said so.
    pub fn place(&self) -> Option<&Place> {
        self.place.as_ref()
    }

    /// The run that opened this one, if another run did.
    pub fn parent(&self) -> Option<&Parent> {
        self.parent.as_ref()
    }

    /// The runs that this one opened.
    pub fn children(&self) -> &Children {
        &self.children
    }

    /// Name of the runtime policy.
    pub fn policy(&self) -> &str {
        &self.policy
    }

    /// Whether verdicts are enforced.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Digest of the bundle in force.
    pub fn bundle(&self) -> Option<Digest> {
        self.bundle
    }

    /// Whether the run may go on.
    pub fn phase(&self) -> &Phase {
        self.closed.as_ref().unwrap_or(&self.phase)
    }

    /// Steps taken so far: every proposed action counts once, whatever became of it.
    pub fn steps(&self) -> u32 {
        self.steps
    }

    /// Side effects that executed or are executing.
    pub fn side_effects(&self) -> u32 {
        self.side_effects
    }

    /// What the run has used up, and how it repeats itself.
    pub fn usage(&self) -> &Usage {
        &self.usage
    }

    /// The sum of it.
    pub fn used(&self) -> Used {
        Used {
            steps: self.steps.into(),
            side_effects: self.side_effects.into(),
            bytes: self.usage.bytes(),
            cost_micros: self.usage.cost_micros(),
        }
    }

    /// What runs contained, and what was reported of it.
    pub fn contained(&self) -> &Containments {
        &self.contained
    }

    /// The work items, and the calls that evidence may cite.
    pub fn works(&self) -> &Works {
        &self.works
    }

    /// The session state, and what the run did to facts that outlive it.
    pub fn kept(&self) -> &Kept {
        &self.kept
    }

    /// What calls that went ahead were marked with.
    pub fn marks(&self) -> &Marks {
        &self.marks
    }

    /// How the agent is connected, as whoever opened the run says: `mcp`, `http`, `trace`, ...
    pub fn surface(&self) -> &str {
        &self.surface
    }

    /// The sources of everything that the agent has seen.
    pub fn labels(&self) -> &LabelSet {
        &self.labels
    }

    /// How often this very action was denied in a row.
    pub fn denials(&self, action: Digest) -> u32 {
        self.denials.get(&action).copied().unwrap_or(0)
    }

    /// Whether every server that lists a tool calls it read-only: a claim, not a fact.
    pub fn hinted_read_only(&self, tool: &str) -> bool {
        self.listed.hinted_read_only(tool)
    }

    /// An action whose outcome is not known yet.
    pub fn open_action(&self, action: ActionId) -> Option<&OpenAction> {
        self.actions.get(&action)
    }

    /// An action whose outcome may be reported: it is executing, or its outcome was recorded as unknown.
    pub fn awaits_outcome(&self, action: ActionId) -> Option<&OpenAction> {
        let executing = self.actions.get(&action).filter(|open| open.executing);
        executing.or_else(|| self.unresolved.get(&action))
    }

    /// The latest action that awaits an outcome and that the surface knows by this id. Bounded by the actions that
    /// may be open.
    pub fn awaits_outcome_of_call(&self, call: &str) -> Option<ActionId> {
        let same = |open: &OpenAction| open.call.as_deref() == Some(call);
        let executing = self.actions.iter().filter(|(_, open)| open.executing && same(open));
        let latest = executing.max_by_key(|(_, open)| open.last_event).map(|(id, _)| *id);
        latest.or_else(|| self.unresolved.iter().find(|(_, open)| same(open)).map(|(id, _)| *id))
    }

    /// Number of actions that were let through and have no outcome yet.
    pub fn executing(&self) -> usize {
        self.executing
    }

    /// The actions that were let through and have no outcome yet.
    pub fn executing_actions(&self) -> Vec<ActionId> {
        self.actions.iter().filter(|(_, action)| action.executing).map(|(id, _)| *id).collect()
    }

    /// Whether a person refused anything in this run.
    pub fn has_refusals(&self) -> bool {
        self.approvals.has_refusals()
    }

    /// What the user was asked about an action, and confirmed.
    pub fn confirmations(&self) -> &Confirmations {
        &self.confirmations
    }

    /// The approval of that id.
    pub fn approval(&self, id: ApprovalId) -> Option<&Approval> {
        self.approvals.get(id)
    }

    /// Whether another bundle has come into force since an approval was asked for.
    pub fn is_under_other_rules(&self, approval: &Approval) -> bool {
        self.approvals.is_under_other_rules(approval)
    }

    /// The undecided approvals, with what waits for them.
    pub fn pending_approvals(&self) -> Vec<(ApprovalId, About)> {
        self.approvals.pending().collect()
    }

    /// Whether a person refused what a grant digest names, with the note: at most
    /// [`NOTE_TOLD_CHARS_MAX`](crate::limits::NOTE_TOLD_CHARS_MAX) characters.
    pub fn refusal(&self, grant_digest: Digest) -> Option<Option<&str>> {
        self.approvals.refusal(grant_digest)
    }

    /// Whether a person refused the same as what these findings hold, in other words, or a part of it; with the note.
    /// Linear in the refusals that are compared and in the findings.
    pub fn refused_alike(&self, action: &Action, findings: &[Finding]) -> Option<Option<&str>> {
        self.approvals.refused_alike(action, findings)
    }

    /// The latest approval bound to a grant digest.
    pub fn approval_for(&self, grant_digest: Digest) -> Option<(ApprovalId, &Approval)> {
        self.approvals.bound_to(grant_digest)
    }

    /// The grant that covers an action now: one that was given for this very action, or one for its tool. Grants for
    /// effects are [`Self::effect_grants`]: only the findings show what they cover.
    /// A grant holds until the time that it names, or else for `ttl_micros` after it was given, and only while the run
    /// has seen nothing that the approver was not shown. Time during which the run was frozen does not count.
    pub fn grant_for(
        &self,
        action: &Action,
        grant_digest: Digest,
        at: Timestamp,
        ttl_micros: u64,
    ) -> Option<Grant> {
        self.approvals.grant_for(action, grant_digest, |given| self.is_live(given, at, ttl_micros))
    }

    /// The grant of an approval, if it holds now. What a person gave in place of the agent's words is covered by no other:
    /// [`Self::grant_for`] does not answer with it.
    pub fn own_grant(&self, id: ApprovalId, at: Timestamp, ttl_micros: u64) -> Option<Grant> {
        self.approvals.own_grant(id, |given| self.is_live(given, at, ttl_micros))
    }

    /// The grants that are given for effects of a server's tools, by name or by pattern, and hold now, the latest first,
    /// at most [`EFFECT_GRANTS_TRIED_MAX`](crate::limits::EFFECT_GRANTS_TRIED_MAX).
    pub fn effect_grants(&self, server: Option<&str>, at: Timestamp, ttl_micros: u64) -> Vec<Grant> {
        self.approvals.effect_grants(server, |given| self.is_live(given, at, ttl_micros))
    }

    fn is_live(&self, given: &Given, at: Timestamp, ttl_micros: u64) -> bool {
        let now = self.clock.read(at);
        let in_time = match given.until {
            Some(until) => now <= until,
            None => now.micros_since(given.at) <= ttl_micros,
        };
        in_time && self.labels.is_subset(&given.labels)
    }

    /// Takes one more event into account. Total: an event that does not fit changes nothing but the count.
    pub fn apply(&mut self, event: &Event) {
        self.seq = event.seq;
        self.usage.apply(event);
        self.works.follow(event);
        self.labels.extend(self.kept.follow(event).into_iter().flat_map(LabelSet::iter).cloned());
        match &event.body {
            EventBody::RunOpened(opened) => {
                self.principal = Some(opened.principal.clone());
                self.place.clone_from(&opened.place);
                if let Some(parent) = &opened.parent {
                    self.labels.extend(parent.labels.iter().cloned());
                    self.parent = Some(parent.clone());
                }
                self.surface.clone_from(&opened.surface);
                self.policy.clone_from(&opened.policy);
                self.mode = opened.mode;
                self.bundle = Some(opened.bundle);
            }
            EventBody::Config(change) => self.apply_config(change, event.seq),
            EventBody::Input { label } => self.apply_input(label),
            EventBody::Proposed(proposed) => self.apply_proposed(proposed, event.seq),
            EventBody::Verdict(record) => {
                self.contained.judged(event, record);
                self.apply_verdict(record, event.seq);
            }
            EventBody::Enforcement { action: Some(action), enforced, call, contained } => {
                if let (true, Some(contained), Some(open)) =
                    (enforced.proceeds(), contained, self.actions.get(action))
                {
                    self.contained.permitted(*action, open, contained, event.seq);
                }
                self.apply_enforcement(*action, *enforced, call.as_deref(), event);
            }
            EventBody::ApprovalRequested { about, .. } => {
                let open = about.action().and_then(|action| self.actions.get(&action));
                self.approvals.apply(event, self.clock.read(event.t), open);
            }
            EventBody::ApprovalDecided { .. } | EventBody::GrantClaimed { .. } => {
                self.approvals.apply(event, self.clock.read(event.t), None);
            }
            EventBody::Outcome { action, status } => {
                self.apply_outcome(*action, *status, event);
            }
            EventBody::Observation { label, tainted, .. } => {
                self.labels.insert(label.clone());
                let earlier = tainted.iter().flat_map(|tainted| tainted.labels.iter());
                self.labels.extend(earlier.cloned());
            }
            EventBody::Observed(record) => self.contained.observed(record, event.seq),
            EventBody::Control { control, note } => match control {
                Control::Halt => self.phase = Phase::Halted,
                Control::Pause => self.phase = Phase::Paused { by_person: true },
                Control::Resume => {
                    self.phase = Phase::Running;
                    self.contained.forgive();
                }
                Control::Freeze | Control::ReleaseReads | Control::Release => {
                    self.apply_freeze(*control, note.as_deref(), event.t);
                }
            },
            EventBody::RunClosed { state, .. } => self.closed = Some(Phase::Closed(*state)),
            EventBody::Evidence { name, digest } => self.apply_evidence(name, *digest, &event.actor),
            EventBody::Enforcement { action: None, .. }
            | EventBody::Output {}
            | EventBody::Work(_)
            | EventBody::State(_)
            | EventBody::Fact(_)
            | EventBody::Gap { .. } => {}
        }
    }

    fn apply_config(&mut self, change: &ConfigChange, seq: u64) {
        match change {
            ConfigChange::BundleLoaded { policy, mode, bundle, .. } => {
                if self.bundle.replace(*bundle) != Some(*bundle) {
                    self.approvals.next_rules();
                }
                self.policy.clone_from(policy);
                self.mode = *mode;
                // What was denied under other rules says nothing about these.
                self.denials = Recent::default();
            }
            ConfigChange::Resumed { .. } => self.closed = None,
            ConfigChange::ToolsListed { server, origin, tools } => {
                self.listed.listed(server, origin.as_deref(), tools);
            }
            ConfigChange::ToolAccepted { server, tool, digest } => {
                self.listed.accepted(server, tool, *digest);
            }
            ConfigChange::ParentSaw { labels } => self.labels.extend(labels.iter().cloned()),
            ConfigChange::ServerContained { server, contained } => {
                self.contained.started(server, contained, seq);
            }
            ConfigChange::ChildOpened { run } => self.children.opened(*run),
            ConfigChange::ChildClosed { run, count, .. } => self.children.closed(*run, *count),
        }
    }

    fn apply_evidence(&mut self, name: &str, digest: Digest, actor: &Actor) {
        if name == CONFIRMED && *actor == Actor::user() {
            self.confirmations.given(digest);
        }
    }

    fn apply_input(&mut self, label: &Label) {
        self.labels.insert(label.clone());
        if *label == Label::User {
            self.approvals.next_task();
            self.confirmations.lapse();
            self.contained.forgive();
        }
        let waits_for_user =
            matches!(self.phase, Phase::Clarifying { .. } | Phase::Paused { by_person: false });
        if *label == Label::User && waits_for_user {
            self.phase = Phase::Running;
        }
    }

    fn apply_proposed(&mut self, proposed: &Proposed, seq: u64) {
        self.steps = self.steps.max(proposed.step);
        let action = OpenAction {
            tool: proposed.tool.clone(),
            server: proposed.server.clone(),
            digest: proposed.digest,
            side_effecting: proposed.side_effecting,
            step: proposed.step,
            last_event: seq,
            executing: false,
            cost_micros: proposed.cost_micros,
            call: proposed.call.clone(),
            likeness: proposed.likeness,
            marks: Vec::new(),
        };
        self.actions.insert(proposed.action, action, OPEN_ACTIONS_MAX);
    }

    fn apply_verdict(&mut self, record: &VerdictRecord, seq: u64) {
        self.verdicts.add(record.verdict);
        self.approvals.judged(record);
        let Some(id) = record.action else { return self.apply_stop(record) };
        if let Some(action) = self.actions.get_mut(&id) {
            action.last_event = seq;
            action.marks.clone_from(&record.marks);
            let digest = action.digest;
            self.confirmations.judged(id, digest, record);
            // That the run is frozen says nothing about the action.
            let by_freeze = record.rule.as_deref() == Some(reserved::FROZEN);
            if record.verdict == Verdict::Deny && !by_freeze {
                let count = self.denials.get(&digest).copied().unwrap_or(0).saturating_add(1);
                self.denials.insert(digest, count, DENIALS_REMEMBERED_MAX);
            } else if record.verdict.permits() {
                self.denials.remove(&digest);
            }
        }
        self.apply_stop(record);
    }

    /// Verdicts that stop the run. In observe mode they are noted and nothing stops.
    fn apply_stop(&mut self, record: &VerdictRecord) {
        if self.mode == Mode::Observe
            || matches!(self.phase, Phase::Halted | Phase::Paused { by_person: true })
        {
            return;
        }
        match record.verdict {
            Verdict::Clarify => {
                let question = record.findings.iter().find_map(|finding| finding.question.clone());
                let question = question.or_else(|| record.reason.clone()).unwrap_or_default();
                self.phase = Phase::Clarifying { question };
            }
            Verdict::Pause => self.phase = Phase::Paused { by_person: false },
            Verdict::Halt => self.phase = Phase::Halted,
            _ => {}
        }
    }

    fn apply_enforcement(&mut self, id: ActionId, enforced: Enforced, call: Option<&str>, event: &Event) {
        let Some(action) = self.actions.get_mut(&id) else { return };
        action.last_event = event.seq;
        if let Some(call) = call {
            action.call = Some(call.to_owned());
        }
        // What was left to the client's prompt may happen, so it counts as if it did.
        if enforced.may_happen() && !action.executing {
            action.executing = true;
            self.executing += 1;
            self.usage.pay(action.cost_micros);
            let now = marks::Now { at: event.t, step: action.step, seq: event.seq };
            self.marks.happened(&action.marks, now);
            // A call that takes up one that asked for more input counts, too: that the first one did nothing is only
            // the word of its server.
            if action.side_effecting {
                self.side_effects = self.side_effects.saturating_add(1);
            }
        } else if enforced == Enforced::Withheld {
            self.actions.remove(&id);
        }
    }

    fn apply_outcome(&mut self, id: ActionId, status: OutcomeStatus, event: &Event) {
        let (by_gate, seq) = (event.actor == Actor::gate(), event.seq);
        let action = match self.actions.remove(&id) {
            Some(action) => {
                self.executing -= usize::from(action.executing);
                action
            }
            None => match self.unresolved.remove(&id) {
                Some(action) => action,
                None => return,
            },
        };
        self.works.ended(id, &action, status, seq);
        if status == OutcomeStatus::Ok {
            self.marks.succeeded(&action.marks, marks::Now { at: event.t, step: action.step, seq });
        }
        // Only what may have happened counts against the limit, and only the gate itself knows that it did not: an
        // agent or a server would say so of everything.
        let never_happened = status == OutcomeStatus::NotExecuted && by_gate;
        if never_happened && action.executing && action.side_effecting {
            self.side_effects = self.side_effects.saturating_sub(1);
        }
        if status == OutcomeStatus::Unknown {
            self.unresolved.insert(id, action, OPEN_ACTIONS_MAX);
        }
    }
}
