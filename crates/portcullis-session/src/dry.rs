//! A run without a ledger: the same engine, judged in memory. For recorded traces, policy tests and
//! benchmarks. It issues no permits, so nothing can execute on the strength of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use portcullis_core::action::Action;
use portcullis_core::bundle::Bundle;
use portcullis_core::delegation::ParentAnswer;
use portcullis_core::event::{
    ConfigChange, Control, Event, ListedTool, OutcomeStatus, Parent, Place, RunOpened,
};
use portcullis_core::fact::{FactAnswer, FactRecord};
use portcullis_core::id::{ActionId, ApprovalId, Digest, RunId};
use portcullis_core::label::{Label, LabelSet};
use portcullis_core::principal::Principal;
use portcullis_core::profile::{Level, Profile};
use portcullis_core::program;
use portcullis_core::state::RunState;
use portcullis_core::taint::Tainted;
use portcullis_core::time::Timestamp;
use portcullis_core::usage::Used;
use portcullis_core::work::{Covers, ItemId, Operation, Owner, Party};
use portcullis_guards::contracts::answer::ContractAnswer;
use portcullis_guards::flow::second_opinion::Opinion;
use portcullis_guards::output::open_work::{self, Unshown, UnshownItem, is_unshown};
use serde_json::Value;

use crate::batch::Batch;
use crate::engine::{
    Answer, AnswerError, ChildEnd, Contain, Engine, Judgement, Proposal, Reach, Report, ReportError,
    ReportWhat, Reported, ReportedOf, Teller, TextJudgement, WorkBy,
};
use crate::env::{CountingEnv, Env};
use crate::facts::Recorded;
use crate::policy::Pipeline;
use crate::principals::Past;

/// The surface of a run that is told from a trace.
pub(crate) const TRACE: &str = "trace";

/// See the [module documentation](self).
#[derive(Debug)]
pub struct DryRun {
    engine: Engine,
    env: CountingEnv,
    events: Option<Vec<Event>>,
    /// Recorded answers to what the guards ask about what is judged next.
    facts: Vec<FactRecord>,
    /// What judges and models say of the text that is judged next.
    contracts: Option<ContractAnswer>,
    /// What a record says of the result that is told next.
    tainted: Option<Tainted>,
    /// What other runs of the principal have used up.
    elsewhere: Used,
    /// What engines say, where a test says it.
    engines: Option<BTreeMap<String, program::Answer>>,
    /// What a model says of calls in the grey zone, where a test says it.
    opinion: Option<Opinion>,
    /// What sequences over the principal go by.
    past: Past,
    /// What the run above says.
    parent: Option<ParentAnswer>,
    /// What the runs below have used up.
    below: Used,
    /// The level at which the surface runs command lines contained.
    level: Option<Level>,
}

/// How a run is opened that is judged in memory.
#[derive(Debug, Clone)]
pub struct DryOpening<'a> {
    /// Name of the runtime policy.
    pub policy: &'a str,
    /// On whose behalf the agent acts.
    pub principal: Principal,
    /// Where the agent works.
    pub place: Option<Place>,
    /// The surface, on which it may depend what is asked of a reply.
    pub surface: &'a str,
    /// The run that opened it, if another run did.
    pub parent: Option<Parent>,
}

/// The bundle has no runtime policy of that name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no runtime policy `{name}`; the bundle has {known}")]
pub struct UnknownPolicy {
    /// The name.
    pub name: String,
    /// Those there are.
    pub known: String,
}

impl UnknownPolicy {
    /// Looks the policy up.
    pub fn check(bundle: &Bundle, name: &str) -> Result<(), Self> {
        if bundle.policy(name).is_some() {
            return Ok(());
        }
        let names: Vec<String> =
            bundle.policies().iter().map(|policy| format!("`{}`", policy.name)).collect();
        Err(Self { name: name.to_owned(), known: names.join(", ") })
    }
}

impl DryRun {
    /// Opens a run under a policy of the bundle.
    pub fn open(bundle: Arc<Bundle>, pipeline: Arc<Pipeline>, policy: &str) -> Result<Self, UnknownPolicy> {
        Self::open_as(bundle, pipeline, policy, Principal::named("recorded"), None)
    }

    /// Opens a run on behalf of a principal who works in a place.
    pub fn open_as(
        bundle: Arc<Bundle>,
        pipeline: Arc<Pipeline>,
        policy: &str,
        principal: Principal,
        place: Option<Place>,
    ) -> Result<Self, UnknownPolicy> {
        let surface = TRACE;
        Self::open_on(bundle, pipeline, DryOpening { policy, principal, place, surface, parent: None })
    }

    /// Opens a run in all detail.
    ///
    /// # Errors
    /// The bundle has no such policy.
    pub fn open_on(
        bundle: Arc<Bundle>,
        pipeline: Arc<Pipeline>,
        opening: DryOpening<'_>,
    ) -> Result<Self, UnknownPolicy> {
        let DryOpening { policy, principal, place, surface, parent } = opening;
        UnknownPolicy::check(&bundle, policy)?;
        let mut env = CountingEnv::default();
        let run = RunId::from_bytes(env.id());
        let opened = RunOpened {
            principal,
            surface: surface.to_owned(),
            session: None,
            policy: policy.to_owned(),
            bundle: bundle.digest(),
            configuration: None,
            mode: bundle.mode,
            place,
            parent,
        };
        let past = Past::complete(Digest::from_bytes([0; 32]), Arc::clone(&bundle));
        let engine = Engine::new(run, bundle, pipeline);
        let mut dry = Self {
            engine,
            env,
            events: None,
            facts: Vec::new(),
            contracts: None,
            tainted: None,
            elsewhere: Used::default(),
            engines: None,
            opinion: None,
            past,
            parent: None,
            below: Used::default(),
            level: None,
        };
        let batch = dry.engine.open(&mut dry.env, opened);
        dry.commit(batch);
        Ok(dry)
    }

    /// Keeps all events from here on; see [`Self::events`].
    #[must_use]
    pub fn keeping_events(mut self) -> Self {
        self.events = Some(Vec::new());
        self
    }

    /// The events since [`Self::keeping_events`].
    pub fn events(&self) -> &[Event] {
        self.events.as_deref().unwrap_or_default()
    }

    /// The state so far.
    pub fn state(&self) -> &RunState {
        self.engine.state()
    }

    fn commit(&mut self, batch: Batch) {
        self.past.ended(&batch.events);
        self.engine.commit(&batch.events, batch.said);
        if let Some(events) = &mut self.events {
            events.extend(batch.events);
        }
    }

    /// What happens from here on is not before this time. A run that is judged in memory begins in 1970.
    pub fn not_before(&mut self, at: Timestamp) {
        self.env.not_before(at);
    }

    /// What a record has as answers to the questions about what is judged next. Others are answered from what is known of
    /// this run alone.
    pub fn recall_facts(&mut self, facts: Vec<FactRecord>) {
        self.facts = facts;
    }

    /// Judges and models say this of the text that is judged next.
    pub fn say_of_contracts(&mut self, answer: ContractAnswer) {
        self.contracts = Some(answer);
    }

    /// What a record says of the result that is told next: what of it others had written.
    pub fn recall_tainted(&mut self, tainted: Option<Tainted>) {
        self.tainted = tainted;
    }

    /// Other runs of the principal have used up so much in the window.
    pub fn used_elsewhere(&mut self, used: Used) {
        self.elsewhere = used;
    }

    /// The run above says this of what is proposed from here on.
    pub fn parent_says(&mut self, answer: ParentAnswer) {
        self.parent = Some(answer);
    }

    /// The runs below have used up so much.
    pub fn used_below(&mut self, used: Used) {
        self.below = used;
    }

    /// The surface runs command lines contained at this level from here on.
    pub fn contains_at(&mut self, level: Level) {
        self.level = Some(level);
    }

    /// The agent works on an item of this title. What its criteria come to, when the next reply is judged, is this.
    pub fn work_comes_to(&mut self, title: &str, missing: &[String]) {
        let (person, agent) = ((Party::Person, "tester"), (Party::Agent, ""));
        let (title, criteria) = (title.to_owned(), Vec::new());
        let create = Operation::Create { title, criteria, owner: Owner::User, covers: Covers::default() };
        let item = ItemId(u32::try_from(self.state().works().len()).unwrap_or(u32::MAX).saturating_add(1));
        for ((party, name), operation) in [(person, create), (agent, Operation::Start { item })] {
            let by = WorkBy { party, person: name.to_owned() };
            let (batch, _) = self.engine.work(&mut self.env, &by, operation, None);
            self.commit(batch);
        }
        let items = self.state().works().items().filter(|one| is_unshown(one) && !missing.is_empty());
        let items = items.map(|one| UnshownItem::of(one, missing.to_vec())).collect();
        if let Ok(answer) = serde_json::to_value(Unshown { items, replaces: true }) {
            let answer = FactAnswer::Known(answer);
            self.facts.push(FactRecord { request: open_work::request(), answer });
        }
    }

    /// Notes that the run opens another one.
    pub fn open_child(&mut self, run: RunId) {
        let batch = self.engine.open_child(&mut self.env, run);
        self.commit(batch);
    }

    /// A record says what the agent of the run above had seen when it spoke.
    pub fn parent_saw(&mut self, labels: LabelSet) {
        let batch = self.engine.parent_saw(&mut self.env, labels);
        self.commit(batch);
    }

    /// A record says that a run ended that this one had opened, and what was seen of it if it had begun.
    pub fn child_closed(
        &mut self,
        change: &ConfigChange,
        seen: Option<(LabelSet, String)>,
    ) -> Option<TextJudgement> {
        let ConfigChange::ChildClosed { run, state, count, link } = change else { return None };
        let (labels, reply) = seen.map_or_else(Default::default, |(labels, text)| (labels, Some(text)));
        let end = ChildEnd { run: *run, state: *state, count: *count, link: *link, labels, reply };
        self.judge(|engine, env, sources| engine.child_closed(env, &end, sources))
    }

    /// Judges what is next from the recorded answers, and goes on with what is written of it.
    fn judge<T>(&mut self, judge: impl FnOnce(&Engine, &mut CountingEnv, &Recorded<'_>) -> (Batch, T)) -> T {
        let used = self.elsewhere.plus(self.engine.state().used());
        let (facts, contracts) = (std::mem::take(&mut self.facts), self.contracts.take());
        let (contracts, tainted) = (contracts.as_ref(), self.tainted.take());
        let (parent, below, level) = (self.parent.clone(), self.below, self.level);
        let parent = parent.as_ref();
        let (past, engines, opinion) = (&self.past, self.engines.as_ref(), self.opinion);
        let recorded = Recorded {
            facts: &facts,
            contracts,
            used,
            tainted,
            parent,
            past,
            below,
            level,
            engines,
            opinion,
        };
        let (batch, judged) = judge(&self.engine, &mut self.env, &recorded);
        self.commit(batch);
        judged
    }

    /// Judges an action.
    pub fn propose(&mut self, proposal: Proposal) -> Judgement {
        let over_principal = self.engine.bundle().sequences.are_over_principal();
        let mut events = Vec::new();
        let judgement = self.judge(|engine, env, sources| {
            let (batch, judgement) = engine.propose(env, proposal, sources);
            if over_principal {
                events.clone_from(&batch.events);
            }
            (batch, judgement)
        });
        self.past.judged(&judgement.action, &self.engine.bundle().sequences, &events);
        judgement
    }

    /// Engines are not asked, and have no objection to anything but what [`Self::engine_says`].
    pub fn with_silent_engines(mut self) -> Self {
        self.engines = Some(BTreeMap::new());
        self
    }

    /// What an engine says of every action from here on.
    pub fn engine_says(&mut self, engine: &str, answer: program::Answer) {
        self.engines.get_or_insert_default().insert(engine.to_owned(), answer);
    }

    /// What a model says from here on that is asked about calls in the grey zone; without one, it does not answer.
    pub fn model_says(&mut self, opinion: Option<Opinion>) {
        self.opinion = opinion;
    }

    /// Another run of the principal makes a call, which succeeds.
    pub fn called_elsewhere(&mut self, tool: &str, arguments: Value) {
        let (at, id) = (self.env.now(), ActionId::from_bytes(self.env.id()));
        self.past.elsewhere(
            at,
            &Action::new(id, Some(tool.to_owned()), arguments, None),
            &self.engine.bundle().sequences,
        );
    }

    /// Notes what became of an action, and judges what the agent would see of it.
    pub fn outcome(
        &mut self,
        action: ActionId,
        status: OutcomeStatus,
        content: Option<String>,
    ) -> Option<TextJudgement> {
        // Here the driver is the gate, and knows what was never sent.
        let teller = if status == OutcomeStatus::NotExecuted { Teller::Gate } else { Teller::Surface };
        let content = content.as_deref();
        let reported = Reported { action, status, content, reach: Reach::Replace, teller };
        self.judge(|engine, env, sources| engine.outcome(env, reported, sources))
    }

    /// Notes that a server is started contained.
    ///
    /// # Errors
    /// Too many are.
    pub fn contain_server(&mut self, server: &str, profile: Profile) -> Result<Contain, ReportError> {
        let (batch, contain) = self.engine.contain_server(&mut self.env, server, profile)?;
        self.commit(batch);
        Ok(contain)
    }

    /// Judges what something contained was seen to do.
    ///
    /// # Errors
    /// It does not have this ticket, or the ticket was used.
    pub fn observed(
        &mut self,
        of: ReportedOf,
        contain: &Contain,
        what: ReportWhat,
    ) -> Result<TextJudgement, ReportError> {
        let (ticket, profile) = (Some(contain.ticket), contain.profile.digest());
        let report = Report { of, ticket, profile, what };
        self.judge(|engine, env, sources| match engine.observed(env, report, sources) {
            Ok((batch, judgement)) => (batch, Ok(judgement)),
            Err(error) => (Batch::default(), Err(error)),
        })
    }

    /// Judges what a server says that answers no action.
    pub fn told(&mut self, server: &str, content: &str) -> TextJudgement {
        self.judge(|engine, env, sources| engine.told(env, server, content, Reach::Replace, sources))
    }

    /// Judges what was said to the agent.
    pub fn input(&mut self, text: &str, label: Label) -> TextJudgement {
        self.judge(|engine, env, sources| engine.input(env, text, &label, Reach::Replace, sources))
    }

    /// The user says yes to the action that the latest question is about; `None` if that is not this one.
    pub fn confirm(&mut self, action: ActionId, text: &str) -> Option<TextJudgement> {
        self.judge(|engine, env, sources| {
            let said = (text, &Label::User);
            match engine.confirmation(env, action, said, sources) {
                Some((batch, judged)) => (batch, Some(judged)),
                None => (Batch::default(), None),
            }
        })
    }

    /// A record says that the user confirmed what they were asked about, after what they said.
    pub fn confirmed(&mut self) {
        if let Some(batch) = self.engine.confirmed(&mut self.env) {
            self.commit(batch);
        }
    }

    /// Notes what a server lists.
    pub fn tools_listed(&mut self, server: &str, origin: Option<&str>, tools: Vec<ListedTool>) {
        let batch = self.engine.tools_listed(&mut self.env, server, origin, tools);
        self.commit(batch);
    }

    /// Notes that a person accepted a tool as its server describes it now.
    pub fn tool_accepted(&mut self, server: &str, tool: &str, digest: Digest) {
        let batch = self.engine.tool_accepted(&mut self.env, server, tool, digest, "tester");
        self.commit(batch);
    }

    /// Judges the agent's reply.
    pub fn output(&mut self, text: &str) -> TextJudgement {
        self.output_with(text, None)
    }

    /// Judges the agent's reply together with documents that were handed over with it, as JSON.
    pub fn output_with(&mut self, text: &str, documents: Option<String>) -> TextJudgement {
        self.judge(|engine, env, sources| {
            engine.output(env, text, documents.as_deref(), Reach::Replace, sources)
        })
    }

    /// A person answers.
    pub fn answer(&mut self, approval: ApprovalId, answer: Answer) -> Result<(), AnswerError> {
        let batch = self.engine.answer(&mut self.env, approval, answer)?;
        self.commit(batch);
        Ok(())
    }

    /// A record says that an approval lapsed.
    ///
    /// # Errors
    /// There is no such approval, or it does not wait.
    pub fn lapse(&mut self, approval: ApprovalId) -> Result<(), AnswerError> {
        let batch = self.engine.lapse(&mut self.env, approval)?;
        self.commit(batch);
        Ok(())
    }

    /// A record says that the run got a new key at this event: what was asked or denied before is not known again.
    pub fn renew_key(&mut self, event: u64) {
        self.engine.renew_key(event);
    }

    /// Lets time pass.
    pub fn wait(&mut self, seconds: u32) {
        self.env.wait(seconds);
    }

    /// A person takes hold of the run.
    pub fn control(&mut self, control: Control, note: Option<String>) {
        let batch = self.engine.control(&mut self.env, control, "tester", note);
        self.commit(batch);
    }
}
