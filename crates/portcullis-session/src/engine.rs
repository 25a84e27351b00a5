//! The engine of a run, without I/O: turns what happens into events.
//!
//! Every method looks at the state and returns a [`Batch`] of events with what to tell the caller; nothing changes
//! until [`Engine::commit`] is given the batch back. In between the driver makes it durable. If that fails, the batch
//! is dropped and the run is unchanged.

mod answers;
mod approvals;
mod contained;
mod frozen;
mod heard;
mod kept;
mod key;
mod kin;
mod postconditions;
mod questions;
mod record;
mod replies;
mod server;
mod size;
mod taints;
mod texts;
mod words;
mod work;
mod written;

use std::collections::BTreeMap;
use std::sync::Arc;

use portcullis_core::action::{Action, Grant, Pending, Subject};
use portcullis_core::bundle::{Bundle, PolicyRef};
use portcullis_core::denial::Denial;
use portcullis_core::effect::LazyEffects;
use portcullis_core::event::{
    About, Actor, Enforced, Event, EventBody, GrantScope, Mode, OutcomeStatus, Place, Proposed,
};
use portcullis_core::fact::Facts;
use portcullis_core::finding::Finding;
use portcullis_core::id::{ActionId, ApprovalId, Digest, RunId};
use portcullis_core::memory::{LazyReading, Memory as _, Texts};
use portcullis_core::pipeline::{Decision, reserved};
use portcullis_core::state::RunState;
use portcullis_core::time::Timestamp;
use portcullis_core::verdict::Verdict;
use portcullis_trajectory::memory::{Context, RunMemory};
use serde_json::Value;

pub use portcullis_trajectory::sources::Verification;

pub use self::answers::{Answer, AnswerError, Decider, Edit, Lasts, Says, ShownRequest};
pub use self::approvals::{ANSWERED, EDITED};
use self::contained::Predictions;
pub use self::contained::{Contain, REPORT_REFUSED, Report, ReportError, ReportWhat, ReportedOf, Ticket};
use self::heard::Heard;
use self::kept::Echoes;
pub use self::kept::{FACTS_SERVER, FactsRead};
pub use self::key::UNNAMED_CALL;
pub use self::kin::Asking;
pub(crate) use self::kin::ChildEnd;
pub use self::postconditions::{FILE_WRITTEN, WriteCame, WriteCheck};
use self::server::server_name;
use self::taints::Recalled;
pub use self::texts::{Reach, Reported, TextJudgement, VERIFICATION};
use self::words::Words;
pub use self::work::{ToCheck, WorkBy};
use self::written::Writes;
use crate::batch::{Batch, BatchBuilder, Said};
use crate::denial::explain;
use crate::env::Env;
use crate::facts::Sources;
use crate::policy::Pipeline;
use crate::principals::Wanted;

/// Approvals that lapse with the closing of a run, two events each; more would not fit into one append. Any others
/// stay open in the index and cannot be claimed, since the run is closed.
const LAPSES_PER_CLOSE_MAX: usize = 400;
const MICROS_PER_SECOND: u64 = 1_000_000;
const JSON: &str = "application/json";
const TEXT: &str = "text/plain; charset=utf-8";

/// What an agent wants to do.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Proposal {
    /// The tool, by name or id, or `None` for a thinking step.
    pub tool: Option<String>,
    /// What the server of the tool is known by, where the surface knows it: the command that started it.
    pub server: Option<String>,
    /// The arguments.
    pub arguments: Value,
    /// What the agent said it was about to do.
    pub planned: Option<String>,
    /// What the call carries besides its arguments when it takes up one that asked for more input.
    pub continuation: Option<Value>,
    /// The surface's own id of the call.
    pub call: Option<String>,
    /// The working directory, where the surface knows it.
    pub directory: Option<String>,
    /// Where a person has to decide, the client's own prompt may: see [`Enforced::Asked`].
    pub ask: bool,
    /// The surface runs command lines contained, where it is given a profile.
    pub contains: bool,
    /// How sure the agent or its planner is of this step, 0 to 1, where the surface reports it.
    pub confidence: Option<f64>,
}

/// What the gate answers to a [`Proposal`].
#[derive(Debug, Clone)]
pub struct Judgement {
    /// The action.
    pub action: Action,
    /// Its step number.
    pub step: u32,
    /// The verdict with all reasons.
    pub decision: Decision,
    /// What is done about it.
    pub enforced: Enforced,
    /// For the agent, when the action does not go ahead.
    pub denial: Option<Denial>,
    /// The approval that the call is waiting for.
    pub approval: Option<ApprovalId>,
    /// The grant that was used.
    pub grant: Option<ApprovalId>,
    /// It goes ahead, and there is nothing to it that neither policy nor a person had before them: all that it does
    /// is in its text, or a person granted this very call. Only set if the surface said where the agent works.
    pub seen: bool,
    /// It goes ahead contained, and how.
    pub contain: Option<Contain>,
    /// See [`Permit::is_without_hooks`](crate::permit::Permit::is_without_hooks).
    pub without_hooks: bool,
    /// Number of the last event about it.
    pub seq: u64,
}

/// Who reports the outcome of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Teller {
    /// The surface that executed it, on the word of tool or agent.
    Surface,
    /// The gate, of its own knowledge.
    Gate,
}

/// The position of an action in the run when it is judged.
#[derive(Debug)]
struct Standing {
    step: u32,
    /// The event to name as cause of the verdict.
    cause: u64,
    /// What a grant is bound to.
    bound_to: Digest,
    /// The surface's id of the call, where it is another than the one proposed.
    call: Option<String>,
    /// Whether the client's own prompt may decide.
    ask: bool,
    /// The arguments are those that a person gave.
    edited: bool,
}

/// What is read in an action: each part once for all decisions on it, on first use.
struct Read<'a> {
    effects: LazyEffects<'a>,
    reading: LazyReading<'a, RunMemory>,
}

impl Read<'_> {
    fn in_context<'a>(&'a self, context: Context<'a>) -> Context<'a> {
        context.with_effects(&self.effects).with_reading(&self.reading)
    }
}

/// See the [module documentation](self).
#[derive(Debug)]
pub struct Engine {
    run: RunId,
    bundle: Arc<Bundle>,
    pipeline: Arc<Pipeline>,
    state: RunState,
    memory: Option<RunMemory>,
    /// Goes into digests of actions: see [`key`].
    key: Option<Digest>,
    /// Calls that may wait for a person at once, or `None` in rehearsals, which ask no one.
    waiting_max: Option<usize>,
    /// What was said with calls that wait.
    words: Words,
    /// What user and operator said.
    heard: Heard,
    /// The latest reply.
    reply: Option<String>,
    /// What actions touch whose outcome is awaited.
    touches: taints::Open,
    /// What was read of contained actions.
    predictions: Predictions,
    /// What actions write.
    writes: Writes,
    /// Others' words among the facts that were read.
    echoes: Echoes,
    /// Where servers were started, for work items of a run whose surface does not say where the agent works.
    started_in: Option<Place>,
}

impl Engine {
    /// The engine of a new run. A resumed run gets its events from [`Self::recall`].
    pub fn new(run: RunId, bundle: Arc<Bundle>, pipeline: Arc<Pipeline>) -> Self {
        let memory = pipeline.begin_memory();
        Self {
            run,
            bundle,
            pipeline,
            state: RunState::new(),
            memory,
            key: None,
            waiting_max: None,
            words: Words::default(),
            heard: Heard::default(),
            reply: None,
            touches: taints::Open::default(),
            predictions: Predictions::default(),
            writes: Writes::default(),
            echoes: Echoes::default(),
            started_in: None,
        }
    }

    /// Lets at most so many calls wait for a person at once.
    #[must_use]
    pub(crate) fn waiting_at_most(mut self, limit: usize) -> Self {
        self.waiting_max = Some(limit);
        self
    }

    /// Takes a stored event of the run into account, with those of its texts that are still there.
    pub fn recall(&mut self, event: &Event, texts: &Texts) {
        self.state.apply(event);
        self.learn(event, texts);
        let read = self.recall_read(event, texts);
        self.learn_read(event, texts, read);
        if let Some(memory) = &mut self.memory {
            memory.record(&self.bundle, event, texts, None);
        }
    }

    fn learn(&mut self, event: &Event, texts: &Texts) {
        self.words.learn(event, texts, &self.state);
        self.learn_key(event, texts);
        self.heard.learn(event, texts);
        self.learn_reply(event, texts);
        self.echoes.learn(event, texts);
    }

    /// The run.
    pub fn run(&self) -> RunId {
        self.run
    }

    /// The state after everything that was committed.
    pub fn state(&self) -> &RunState {
        &self.state
    }

    /// What of all runs of the principal the run's policy and bundle go by.
    pub(crate) fn counts_principal(&self) -> Wanted {
        let usage = self.policy().is_some_and(|policy| policy.principal.is_some());
        let past = self.bundle.sequences.are_over_principal().then(|| Arc::clone(&self.bundle));
        Wanted { usage, past }
    }

    /// The bundle in force.
    pub fn bundle(&self) -> &Arc<Bundle> {
        &self.bundle
    }

    /// Takes events that are now durable into account, with what was said in them.
    pub fn commit(&mut self, events: &[Event], mut said: BTreeMap<u64, Said>) {
        for event in events {
            self.state.apply(event);
            let Said { texts, reading, touched, prediction, written } =
                said.remove(&event.seq).unwrap_or_default();
            self.learn(event, &texts);
            self.learn_read(event, &texts, Recalled { touched, prediction, written });
            if let Some(memory) = &mut self.memory {
                memory.record(&self.bundle, event, &texts, reading);
            }
        }
    }

    /// Puts another bundle in force. Call only once the batch of [`Self::reload`] is durable, and before it is
    /// [committed](Self::commit).
    pub fn set_bundle(&mut self, bundle: Arc<Bundle>) {
        self.bundle = bundle;
    }

    fn builder<'e>(&self, env: &'e mut dyn Env) -> BatchBuilder<'e> {
        BatchBuilder::new(env, self.state.seq(), Arc::clone(&self.bundle))
    }

    /// What is read in something pending, computed on first use.
    fn reading<'a>(&'a self, pending: Pending<'a>) -> LazyReading<'a, RunMemory> {
        match &self.memory {
            Some(memory) => LazyReading::of(memory, &self.bundle, pending),
            None => LazyReading::none(),
        }
    }

    fn read<'a>(&'a self, pending: Pending<'a>, action: &'a Action) -> Read<'a> {
        Read {
            effects: self.pipeline.effects(&self.bundle, &self.state, action),
            reading: self.reading(pending),
        }
    }

    pub(crate) fn principal(&self) -> &str {
        self.state.principal().map_or("", |principal| &principal.id)
    }

    fn policy(&self) -> Option<PolicyRef<'_>> {
        self.bundle.policy(self.state.policy())
    }

    /// What guards look at, or `None` if the run's policy is gone.
    fn context(&self) -> Option<Context<'_>> {
        self.policy().map(|policy| Context::new(&self.bundle, policy, &self.state))
    }

    /// The action that a proposal is, and the surface's name of the call.
    fn action_of(&self, proposal: Proposal, id: ActionId) -> (Action, Option<String>) {
        let Proposal { tool, server, arguments, planned, continuation, call, directory, confidence, .. } =
            proposal;
        let action = Action::new(id, tool, arguments, planned)
            .with_continuation(continuation)
            .in_directory(directory)
            .of_server(server.map(|server| server_name(&server)))
            .with_confidence(confidence)
            .marked_by(&self.bundle.sequences)
            .keyed(self.key.as_ref());
        (action, call.map(|call| self.call_name(&call)))
    }

    /// Judges what the agent wants to do. A retry of a held call meets its approval again.
    pub fn propose(
        &self,
        env: &mut dyn Env,
        proposal: Proposal,
        sources: &dyn Sources,
    ) -> (Batch, Judgement) {
        let mut batch = self.builder(env);
        let new_id = ActionId::from_bytes(batch.id());
        let ask = proposal.ask;
        let (action, call) = self.action_of(proposal, new_id);
        let bound_to = action.grant_digest(self.bundle.digest(), self.principal());
        let judgement = match self.meet_approval(&mut batch, &action, bound_to, call.as_ref(), sources) {
            Some(judgement) => judgement,
            None => self.judge_new(&mut batch, action, bound_to, call, ask, sources),
        };
        let judgement = Judgement { seq: batch.seq(), ..judgement };
        (batch.finish(), judgement)
    }

    /// Whether what is proposed may have an effect: what is not known to have none may.
    pub(crate) fn may_have_effect(&self, proposal: &Proposal) -> bool {
        self.is_side_effecting(proposal.tool.as_deref())
    }

    fn is_side_effecting(&self, tool: Option<&str>) -> bool {
        tool.is_some_and(|name| match self.context() {
            Some(context) => context.is_side_effecting(name),
            None => true,
        })
    }

    fn judge_new(
        &self,
        batch: &mut BatchBuilder<'_>,
        action: Action,
        bound_to: Digest,
        call: Option<String>,
        ask: bool,
        sources: &dyn Sources,
    ) -> Judgement {
        let step = self.state.steps().saturating_add(1);
        let side_effecting = self.is_side_effecting(action.tool());
        let proposed = Proposed {
            directory: action.directory.clone(),
            action: action.id,
            step,
            tool: action.tool().map(str::to_owned),
            server: action.server.clone(),
            side_effecting,
            digest: action.digest(),
            likeness: action.likeness(),
            cost_micros: self.cost(action.tool()),
            call,
            confidence: action.confidence,
        };
        let arguments =
            action.is_call().then(|| ("arguments", JSON, action.arguments.to_string().into_bytes()));
        let planned = action.planned.clone().map(|text| ("planned", TEXT, text.into_bytes()));
        let continuation =
            action.continuation.as_ref().map(|value| ("continuation", JSON, value.to_string().into_bytes()));
        let actor = Actor::agent(self.principal());
        let payloads = [arguments, planned, continuation];
        let cause = batch.push_with(actor, None, EventBody::Proposed(proposed), payloads);
        // Whoever delegated the work has the say, not the client of the agent that it was delegated to.
        let ask = ask && self.state.parent().is_none();
        let grant = self.state.grant_for(&action, bound_to, batch.at(), self.grant_ttl());
        let grant = grant.filter(|grant| self.covers_words(grant, &action));
        let standing = Standing { step, cause, bound_to, call: None, ask, edited: false };
        self.judge(batch, action, standing, grant, sources)
    }

    fn cost(&self, tool: Option<&str>) -> u64 {
        tool.and_then(|name| self.bundle.registry.get(name)).map_or(0, |tool| tool.cost_micros)
    }

    /// Facts, decision, verdict event, enforcement.
    fn judge(
        &self,
        batch: &mut BatchBuilder<'_>,
        action: Action,
        standing: Standing,
        grant: Option<Grant>,
        sources: &dyn Sources,
    ) -> Judgement {
        let Standing { step, cause, bound_to, call, ask, edited } = standing;
        let read = self.read(pending(batch, &action), &action);
        let (facts, decision, grant) = self.decide_with_grants(batch.at(), &action, grant, &read, sources);
        let decision = match edited {
            true => self.replacing(&action, decision),
            false => self.unless_refused(&action, decision),
        };
        let decision = if ask { decision } else { self.unless_too_many_wait(decision) };
        // Arguments that a person gave go ahead by that person's grant, even where nothing would hold them.
        let used = grant.filter(|_| edited || decision.findings.iter().any(|finding| finding.granted));
        let pending = Pending { at: batch.at(), subject: Subject::Action(&action), grant: used.as_ref() };
        let mut verdict = cause;
        if let Some(context) = self.context() {
            let record = decision.record(&context, &pending, &facts);
            verdict = batch.push(Actor::gate(), Some(cause), EventBody::Verdict(record));
        }
        let enforced = self.enforced(&decision);
        let enforced = if ask && enforced == Enforced::Held { Enforced::Asked } else { enforced };
        let seen = enforced.proceeds() && self.sees(&action, used.as_ref(), &read.effects);
        let requested = (enforced == Enforced::Held).then(|| self.requested(bound_to, &action, &read));
        if let Some(requested) = requested {
            batch.keep_reading(cause, read.reading.into_reading());
            return self.ask(batch, action, step, decision, verdict, requested);
        }
        if enforced.proceeds()
            && let Some(grant) = &used
        {
            let body = EventBody::GrantClaimed { approval: grant.approval, about: About::Action(action.id) };
            verdict = batch.push(Actor::gate(), Some(verdict), body);
        }
        // Facts say which level is reached where the surface contains, and nothing elsewhere.
        let without_hooks = self.is_left_without_hooks(&action, &read, enforced, &facts);
        let (profile, prediction) =
            self.profile_by_bundle(&action, &read, &decision, enforced, &facts).unzip();
        let (contain, contained) = profile.map(|profile| Self::contain(batch, profile)).unzip();
        let body = EventBody::Enforcement { action: Some(action.id), enforced, call, contained };
        let touched = match enforced.may_happen() {
            true => self.touched(&action, &read, sources),
            false => Default::default(),
        };
        let enforcement = batch.push_tainted(Actor::gate(), Some(verdict), body, Self::written(&touched));
        batch.keep_touched(enforcement, touched);
        batch.keep_prediction(enforcement, prediction);
        if enforced.may_happen() {
            batch.keep_written(enforcement, self.written_by(&action, &read));
        }
        batch.keep_reading(cause, read.reading.into_reading());
        if !action.is_call() && enforced.proceeds() {
            // Thinking is over as soon as it is permitted.
            let body = EventBody::Outcome { action: action.id, status: OutcomeStatus::Ok };
            batch.push(Actor::agent(self.principal()), Some(enforcement), body);
        }
        let denial = (!enforced.proceeds()).then(|| explain(&self.state, self.run, &action, &decision));
        Judgement {
            action,
            step,
            decision,
            enforced,
            denial,
            approval: None,
            grant: used.map(|g| g.approval),
            seen,
            contain,
            without_hooks,
            seq: 0,
        }
    }

    /// See [`Judgement::seen`].
    fn sees(&self, action: &Action, grant: Option<&Grant>, effects: &LazyEffects<'_>) -> bool {
        let granted = grant.is_some_and(|grant| grant.scope == GrantScope::Once);
        self.state.place().is_some() && (granted || self.pipeline.sees(&self.bundle, action, effects))
    }

    /// Decides with the grant at hand or, where the action would be held without one, with the first grant for
    /// effects that covers all that it would be held for.
    fn decide_with_grants(
        &self,
        at: Timestamp,
        action: &Action,
        grant: Option<Grant>,
        read: &Read<'_>,
        sources: &dyn Sources,
    ) -> (Facts, Decision, Option<Grant>) {
        let (facts, decision) = self.decide(at, action, grant.as_ref(), read, sources);
        if decision.verdict == Verdict::Review && grant.is_none() {
            for grant in self.state.effect_grants(action.server.as_deref(), at, self.grant_ttl()) {
                let by_pattern = matches!(grant.scope, GrantScope::Pattern(_));
                if by_pattern && !self.may_be_granted_by_pattern(action, read) {
                    continue;
                }
                let (facts, decision) = self.decide(at, action, Some(&grant), read, sources);
                if decision.verdict.permits() {
                    return (facts, decision, Some(grant));
                }
            }
        }
        (facts, decision, grant)
    }

    fn decide(
        &self,
        at: Timestamp,
        action: &Action,
        grant: Option<&Grant>,
        read: &Read<'_>,
        sources: &dyn Sources,
    ) -> (Facts, Decision) {
        if let Some(denial) = self.frozen(&Subject::Action(action)) {
            return (Facts::none(), denial);
        }
        let Some(context) = self.context().map(|context| read.in_context(context)) else {
            let message = format!("the bundle no longer has the runtime policy `{}`", self.state.policy());
            return (Facts::none(), denied(reserved::LIMIT, message));
        };
        if let Some(limit) = self.exceeded(action) {
            return (Facts::none(), denied(reserved::LIMIT, limit));
        }
        let pending = Pending { at, subject: Subject::Action(action), grant };
        let facts = self.gather(&context, &pending, sources);
        let decision = self.pipeline.decide(&context, &pending, &facts);
        (facts, decision)
    }

    fn enforced(&self, decision: &Decision) -> Enforced {
        match decision.verdict {
            Verdict::Allow | Verdict::Warn => Enforced::Executed,
            Verdict::Modify if decision.modified.is_some() => Enforced::Replaced,
            Verdict::Modify => Enforced::Executed,
            // Observe mode relaxes verdicts of policy, never the gate's own limits or what a person decided.
            _ if self.state.mode() == Mode::Observe && !self.binds_always(decision) => Enforced::LetPass,
            Verdict::Review => Enforced::Held,
            Verdict::Clarify | Verdict::Pause | Verdict::Deny | Verdict::Halt => Enforced::Withheld,
        }
    }
}

/// An action as what waits for a verdict, no matter who approved it.
fn pending<'a>(batch: &BatchBuilder<'_>, action: &'a Action) -> Pending<'a> {
    Pending { at: batch.at(), subject: Subject::Action(action), grant: None }
}

fn denied(rule: &'static str, message: String) -> Decision {
    let finding = Finding::new(rule, Verdict::Deny, message);
    Decision { verdict: Verdict::Deny, findings: vec![finding], modified: None }
}
