//! The headless simulator: a rehearsed agent whose steps go through the real gate, the real ledger and the
//! simulated tools. Nothing is mocked but the agent.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use portcullis_core::aside::ERASED;
use portcullis_core::bundle::{Bundle, Plan, PlanStep};
use portcullis_core::event::{ClosedState, Enforced, Event, EventError, GrantScope, OutcomeStatus};
use portcullis_core::id::RunId;
use portcullis_core::label::Label;
use portcullis_core::principal::{CredentialKind, Principal};
use portcullis_core::verdict::Verdict;
use portcullis_governance::projection;
use portcullis_governance::trace::{EventType, TraceRow};
use portcullis_governance::verification::{self, VerificationRow};
use portcullis_ledger::LedgerError;
use portcullis_session::credentials::Identity;
use portcullis_session::engine::{Answer, Judgement, Proposal, Reach, Says, TextJudgement};
use portcullis_session::error::SessionError;
use portcullis_session::gate::{Gate, OpenError, RunRequest};
use portcullis_session::permit::Permit;
use portcullis_session::run::Run;
use serde::Serialize;
use serde_json::Value;
use tokio::sync::{Semaphore, mpsc};

use crate::answer::Notes;
use crate::tools::{ToolError, ToolOutput, Workspace};

/// Events read at a time for the trace.
const PAGE: usize = 1_000;

/// How to simulate.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// Go on after a step that does not happen.
    pub go_on: bool,
    /// A simulated approver grants what is held. Otherwise a held step does not happen.
    pub approve: bool,
}

/// What a simulation showed.
#[derive(Debug, Clone, Serialize)]
pub struct Simulation {
    /// The run in the ledger.
    pub run_id: RunId,
    /// The plan.
    pub plan: String,
    /// The runtime policy.
    pub policy: String,
    /// The trace.
    pub trace: Vec<TraceRow>,
    /// The agent's answer, if it came to one.
    pub output: Option<String>,
    /// The step that did not happen and why: the first one.
    pub stopped: Option<Stopped>,
    /// What the checks say of the answer, where the bundle wants replies verified.
    pub verification: Vec<VerificationRow>,
    /// Why the answer was withheld, if it was.
    pub withheld: Option<Withheld>,
}

/// An answer that its reader does not get.
#[derive(Debug, Clone, Serialize)]
pub struct Withheld {
    /// Whether a person has to look at it, rather than that it is denied.
    pub review: bool,
    /// The deciding rule.
    pub rule: String,
    /// The reason.
    pub message: String,
}

/// A step that did not happen.
#[derive(Debug, Clone, Serialize)]
pub struct Stopped {
    /// Its number.
    pub step: u32,
    /// Whether it was held for a person rather than denied.
    pub held: bool,
    /// The deciding rule.
    pub rule: String,
    /// The reason.
    pub message: String,
}

/// Why a simulation failed.
#[derive(Debug, thiserror::Error)]
pub enum SimulationError {
    /// The run could not be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The run could not go on.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The record could not be read back.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The record could not be read back.
    #[error(transparent)]
    Event(#[from] EventError),
    /// The folder of the simulated tools.
    #[error(transparent)]
    Tools(#[from] ToolError),
    /// No such plan.
    #[error("there is no plan `{name}`; the bundle has {known}")]
    UnknownPlan {
        /// The name.
        name: String,
        /// Those there are.
        known: String,
    },
}

/// What became of a step, for who follows a simulation while it runs.
#[derive(Debug, Clone)]
pub struct StepOutcome {
    /// Its place in the plan, from 0.
    pub place: usize,
    /// The verdict.
    pub verdict: Verdict,
    /// What was done.
    pub enforced: Enforced,
    /// The deciding rule, if there is one.
    pub rule: Option<String>,
    /// Its reason.
    pub message: Option<String>,
    /// The result of the tool, or why there is none.
    pub result: Option<String>,
}

/// Follows a simulation, and may hold it between two steps.
#[derive(Debug, Clone, Default)]
pub struct Follower {
    /// Is told the run.
    pub opened: Option<mpsc::Sender<RunId>>,
    /// Is told of each step. Has room for all steps of a plan, so that nobody is waited for.
    pub steps: Option<mpsc::Sender<StepOutcome>>,
    /// A step is taken for each permit; all at once where there is none. Closing it ends the plan where it is.
    pub turns: Option<Arc<Semaphore>>,
}

impl Follower {
    /// Waits for the turn of the next step; false where there is none.
    async fn turn(&self) -> bool {
        match &self.turns {
            None => true,
            Some(turns) => turns.acquire().await.map(tokio::sync::SemaphorePermit::forget).is_ok(),
        }
    }

    fn told(&self, place: usize, judgement: &Judgement, result: Option<String>) {
        let Some(steps) = &self.steps else { return };
        let headline = judgement.decision.headline();
        let outcome = StepOutcome {
            place,
            verdict: judgement.decision.verdict,
            enforced: judgement.enforced,
            rule: headline.map(|finding| finding.rule.to_string()),
            message: headline.map(|finding| finding.message.clone()),
            result,
        };
        // Who went away misses it.
        let _ = steps.try_send(outcome);
    }
}

/// Runs a plan of the gate's default bundle under one of its policies. The tools act on `folder`.
pub async fn simulate(
    gate: &Arc<Gate>,
    plan: &str,
    policy: &str,
    folder: &Path,
    options: Options,
) -> Result<Simulation, SimulationError> {
    simulate_followed(gate, plan, policy, folder, options, &Follower::default()).await
}

/// The same, told to somebody who follows it.
pub async fn simulate_followed(
    gate: &Arc<Gate>,
    plan: &str,
    policy: &str,
    folder: &Path,
    options: Options,
    follower: &Follower,
) -> Result<Simulation, SimulationError> {
    let (_, bundle) = gate.bundles().get(None).map_err(OpenError::from)?;
    let plan = find_plan(&bundle, plan)?.clone();
    let workspace = Workspace::create(folder, &bundle.knowledge)?;
    let principal = Principal::named("simulated-agent");
    let opened = gate
        .open(RunRequest {
            identity: Identity {
                kind: CredentialKind::Agent,
                principal,
                policy: None,
                of_this_machine: true,
            },
            surface: "simulator".into(),
            session: None,
            policy: Some(policy.to_owned()),
            bundle: None,
            resume: None,
            rejoin: false,
            place: None,
            parent: None,
        })
        .await?;
    let run = opened.run;
    if let Some(told) = &follower.opened {
        let _ = told.try_send(run.id());
    }
    run.input(plan.prompt.clone(), Label::User, Reach::Replace).await?;
    let mut agent = Agent {
        gate,
        bundle,
        run: Arc::clone(&run),
        workspace,
        notes: Notes::new(),
        stopped: None,
        follower,
    };
    let (mut output, mut judged) = (None, None);
    for (number, step) in plan.steps.iter().enumerate() {
        if !follower.turn().await {
            break;
        }
        let happened = agent.step(number, step, options).await?;
        if !happened && !options.go_on {
            break;
        }
        // The last step of a plan, when it is a thinking step, is the answer.
        if happened && step.tool.is_none() && number + 1 == plan.steps.len() {
            let answer = agent.notes.answer(&plan.prompt);
            judged = Some(run.output(answer.clone(), None, Reach::Replace).await?);
            output = Some(answer);
        }
    }
    let stopped = agent.stopped.take();
    gate.close(run.id(), ClosedState::Closed).await?;
    let trace = trace(gate, run.id())?;
    let verification = judged.as_ref().and_then(|judged| judged.verification.as_ref());
    let step = trace.iter().rev().find(|row| row.event_type == EventType::OutputGenerated);
    let step = step.map_or(0, |row| row.step_number);
    let verification = verification.map(|found| verification::rows(&found.checks, step)).unwrap_or_default();
    let withheld = judged.filter(|judged| !judged.enforced.proceeds()).map(|judged| withheld(&judged));
    let (plan, policy) = (plan.name, opened.policy);
    Ok(Simulation { run_id: run.id(), plan, policy, trace, output, stopped, verification, withheld })
}

fn find_plan<'b>(bundle: &'b Bundle, name: &str) -> Result<&'b Plan, SimulationError> {
    bundle.plan(name).ok_or_else(|| {
        let names: Vec<String> = bundle.plans.iter().map(|plan| format!("`{}`", plan.name)).collect();
        SimulationError::UnknownPlan { name: name.to_owned(), known: names.join(", ") }
    })
}

struct Agent<'g> {
    gate: &'g Arc<Gate>,
    bundle: Arc<Bundle>,
    run: Arc<Run>,
    workspace: Workspace,
    notes: Notes,
    stopped: Option<Stopped>,
    follower: &'g Follower,
}

impl Agent<'_> {
    /// Takes a step; false when it did not happen.
    async fn step(
        &mut self,
        place: usize,
        step: &PlanStep,
        options: Options,
    ) -> Result<bool, SimulationError> {
        let proposal = Proposal {
            tool: step.tool.clone(),
            arguments: step.args.clone(),
            planned: Some(step.action.clone()),
            ..Proposal::default()
        };
        let (mut judgement, mut permit) =
            self.gate.propose(&self.run, proposal.clone(), Duration::ZERO).await?;
        if let (Some(approval), true) = (judgement.approval, options.approve) {
            let answer = Answer {
                note: Some("granted by the simulator".into()),
                ..Answer::rehearsed(Says::grant(GrantScope::Once), "simulated-approver")
            };
            self.run.answer(approval, answer).await?;
            (judgement, permit) = self.gate.propose(&self.run, proposal, Duration::ZERO).await?;
        }
        let Some(permit) = permit else {
            self.notes.withheld(&step.action);
            self.stopped.get_or_insert(stopped(&judgement));
            self.follower.told(place, &judgement, None);
            return Ok(false);
        };
        let result = match judgement.action.tool() {
            Some(tool) => Some(self.execute(permit, tool, &judgement.action.arguments).await?),
            None => None,
        };
        self.follower.told(place, &judgement, result);
        Ok(true)
    }

    /// Calls the tool; gives what it returned.
    async fn execute(
        &mut self,
        permit: Permit,
        tool: &str,
        proposed: &Value,
    ) -> Result<String, SimulationError> {
        let id = self.bundle.registry.get(tool).map_or(tool, |tool| &tool.id).to_owned();
        let arguments = permit.edited_arguments().unwrap_or(proposed);
        let (status, content) = match self.workspace.call(&id, arguments) {
            Ok(ToolOutput { text, structured }) => {
                self.notes.executed(&id, &text, &structured);
                (OutcomeStatus::Ok, text)
            }
            Err(error) => (OutcomeStatus::Error, error.to_string()),
        };
        self.run.outcome(permit.action(), status, Some(content.clone()), Reach::Replace).await?;
        Ok(content)
    }
}

fn withheld(judged: &TextJudgement) -> Withheld {
    let headline = judged.decision.headline();
    Withheld {
        review: judged.decision.verdict == Verdict::Review,
        rule: headline.map(|finding| finding.rule.to_string()).unwrap_or_default(),
        message: headline.map(|finding| finding.message.clone()).unwrap_or_default(),
    }
}

fn stopped(judgement: &Judgement) -> Stopped {
    let headline = judgement.decision.headline();
    Stopped {
        step: judgement.step,
        held: judgement.enforced == Enforced::Held,
        rule: headline.map(|finding| finding.rule.to_string()).unwrap_or_default(),
        message: headline.map(|finding| finding.message.clone()).unwrap_or_default(),
    }
}

/// The trace of a run, from the ledger.
fn trace(gate: &Gate, run: RunId) -> Result<Vec<TraceRow>, SimulationError> {
    let ledger = gate.ledger();
    let mut events = Vec::new();
    loop {
        let after = events.last().map_or(0, |event: &Event| event.seq);
        let page = ledger.read(|reader| reader.events(run, after, PAGE))?;
        if page.is_empty() {
            break;
        }
        for stored in page {
            events.push(Event::from_line(&stored.line)?);
        }
    }
    Ok(ledger.read(|reader| {
        let payload = |commitment: &_| {
            let payload = reader.payload(run, *commitment).ok().flatten()?;
            Some(payload.bytes().to_vec())
        };
        for event in &mut events {
            let words = event.aside().and_then(|reference| payload(&reference.commitment));
            event.join(words.as_deref().and_then(|words| str::from_utf8(words).ok()), ERASED);
        }
        Ok(projection::rows(run, &events, payload))
    })?)
}
