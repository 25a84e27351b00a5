//! The Simulation Runner: plans through the daemon's own gate, as runs in the record like any other.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Redirect, Response};
use portcullis_console::Role;
use portcullis_console::editor::Told;
use portcullis_console::frame::Place;
use portcullis_console::simulate::{
    self as pages, Cell, Choice, Ended, Judged, Page, Planned, Rehearsed, Side, Step, Trace, Watched,
};
use portcullis_core::bundle::Plan;
use portcullis_core::id::RunId;
use portcullis_core::limits::PLAN_STEPS_MAX;
use portcullis_sim::planner::REQUEST_BYTES_MAX;
use portcullis_sim::rehearsal;
use portcullis_sim::simulator::{Follower, Options, Simulation, StepOutcome, simulate_followed};
use serde::Deserialize;
use tokio::sync::{Notify, Semaphore, mpsc};

use super::desk::{self, Standing};
use super::policies::{draft, trouble};
use super::visitor::{Form, Visitor};
use super::{Seen, page as pages_of};

pub(super) use self::plans::{plan, save_plan};

mod plans;
mod scenarios;

/// Simulations that are remembered, with what became of their steps; their runs stay in the record.
const KEPT_MAX: usize = 16;
/// Runs of simulations at one time.
const AT_ONCE: usize = 4;
/// How long a press waits for what it caused, so that the page that follows shows it.
const PATIENCE: Duration = Duration::from_secs(3);

/// The latest simulations.
#[derive(Debug)]
pub(super) struct Simulations {
    all: Mutex<(u64, VecDeque<Arc<Simulated>>)>,
    room: Arc<Semaphore>,
}

impl Default for Simulations {
    fn default() -> Self {
        Self { all: Mutex::default(), room: Arc::new(Semaphore::new(AT_ONCE)) }
    }
}

/// One plan under one or two policies.
#[derive(Debug)]
struct Simulated {
    number: u64,
    plan: Plan,
    choice: Choice,
    sides: Vec<Arc<OneSide>>,
}

#[derive(Debug)]
struct OneSide {
    policy: String,
    turns: Option<Arc<Semaphore>>,
    now: Mutex<Progress>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Progress {
    run: Option<RunId>,
    steps: Vec<StepOutcome>,
    ended: Option<Result<Simulation, String>>,
}

impl OneSide {
    fn with<T>(&self, look: impl FnOnce(&mut Progress) -> T) -> T {
        let answer = look(&mut self.now.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_waiters();
        answer
    }

    fn look<T>(&self, look: impl FnOnce(&Progress) -> T) -> T {
        look(&self.now.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits until something holds, for as long as a press waits.
    async fn until(&self, holds: impl Fn(&Progress) -> bool) {
        let wait = async {
            loop {
                let changed = self.changed.notified();
                if self.look(&holds) {
                    return;
                }
                changed.await;
            }
        };
        // What takes longer appears on the page later.
        let _ = tokio::time::timeout(PATIENCE, wait).await;
    }

    fn stop(&self) {
        if let Some(turns) = &self.turns {
            turns.close();
        }
    }
}

impl Simulations {
    fn get(&self, number: u64) -> Option<Arc<Simulated>> {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.1.iter().find(|one| one.number == number).cloned()
    }

    fn add(&self, make: impl FnOnce(u64) -> Simulated) -> Arc<Simulated> {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.0 += 1;
        let made = Arc::new(make(all.0));
        all.1.push_back(Arc::clone(&made));
        if all.1.len() > KEPT_MAX
            && let Some(oldest) = all.1.pop_front()
        {
            oldest.sides.iter().for_each(|side| side.stop());
        }
        made
    }
}

/// Follows one side to its end.
async fn follow(seen: Seen, side: Arc<OneSide>, plan: String, options: Options) {
    let room = Arc::clone(&seen.console.simulations.room);
    let Ok(_room) = room.acquire_owned().await else { return };
    let (opened, mut run) = mpsc::channel(1);
    let (told, mut steps) = mpsc::channel(PLAN_STEPS_MAX);
    let follower = Follower { opened: Some(opened), steps: Some(told), turns: side.turns.clone() };
    let hears = Arc::clone(&side);
    let hearing = tokio::spawn(async move {
        if let Some(run) = run.recv().await {
            hears.with(|now| now.run = Some(run));
        }
        while let Some(step) = steps.recv().await {
            hears.with(|now| now.steps.push(step));
        }
    });
    let ended = match tempfile::tempdir() {
        Err(error) => Err(format!("cannot make a folder for the tools: {error}")),
        Ok(folder) => {
            let tools = folder.path().join("tools");
            let gate = &seen.shared.gate;
            let simulated = simulate_followed(gate, &plan, &side.policy, &tools, options, &follower).await;
            simulated.map_err(|error| error.to_string())
        }
    };
    drop(follower);
    // All steps are told before the end is.
    let _ = hearing.await;
    side.with(|now| now.ended = Some(ended));
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Which {
    #[serde(default)]
    plan: String,
    #[serde(default)]
    policy: String,
    #[serde(default)]
    request: String,
    #[serde(default)]
    scenario: String,
}

fn choice(standing: &Standing, which: &Which) -> Choice {
    let bundle = &standing.bundle;
    let mut plans: Vec<String> = bundle.plans.iter().map(|plan| plan.name.clone()).collect();
    plans.sort();
    let policies: Vec<String> = bundle.policies().iter().map(|policy| policy.name.clone()).collect();
    let policy = if bundle.policy(&which.policy).is_some() { &which.policy } else { bundle.default_policy() };
    Choice { policy: policy.to_owned(), plan: which.plan.clone(), plans, policies, ..Choice::default() }
}

pub(super) async fn page(State(seen): State<Seen>, visitor: Visitor, Query(which): Query<Which>) -> Response {
    if let Err(refused) = visitor.at_least(Role::Approver) {
        return refused.page(&seen, &visitor).await;
    }
    let standing = match desk::standing(&seen).await {
        Ok(standing) => standing,
        Err(why) => return trouble(&seen, &visitor, &why).await,
    };
    let mut page = Page {
        choice: choice(&standing, &which),
        draft: draft(&visitor, &standing, None),
        ..Page::default()
    };
    if !which.request.trim().is_empty() {
        page.request = which.request.chars().take(REQUEST_BYTES_MAX).collect();
        page.rehearsed = rehearse(&seen, &standing, &page.choice.policy, &page.request).await;
    }
    page.scenarios = played(&seen, &standing, &page.choice.policy, &which.scenario).await;
    framed(&seen, &visitor, StatusCode::OK, &page).await
}

async fn played(seen: &Seen, standing: &Standing, policy: &str, id: &str) -> pages::Scenarios {
    let (bundle, pipeline) = (Arc::clone(&standing.bundle), Arc::clone(seen.shared.gate.pipeline()));
    let (policy, id) = (policy.to_owned(), id.to_owned());
    let played = tokio::task::spawn_blocking(move || scenarios::played(&bundle, &pipeline, &policy, &id));
    played.await.unwrap_or_default()
}

async fn framed(seen: &Seen, visitor: &Visitor, status: StatusCode, page: &Page) -> Response {
    let body = pages::page(page);
    pages_of::framed_as(status, seen, visitor, Some(Place::Simulation), Place::Simulation.name(), body).await
}

async fn rehearse(seen: &Seen, standing: &Standing, policy: &str, request: &str) -> Option<Rehearsed> {
    let (bundle, pipeline) = (Arc::clone(&standing.bundle), Arc::clone(seen.shared.gate.pipeline()));
    let (policy, text) = (policy.to_owned(), request.to_owned());
    let rehearsed =
        tokio::task::spawn_blocking(move || rehearsal::rehearse(&bundle, pipeline, &policy, &text).ok());
    let found = rehearsed.await.ok()??;
    let judged = |of: rehearsal::Judged| Judged { verdict: of.verdict, reasons: of.reasons };
    let plan = &found.plan;
    Some(Rehearsed {
        request: request.to_owned(),
        plan: (plan.actions.len(), plan.confidence, plan.because.map(ToOwned::to_owned)),
        said: judged(found.request),
        steps: found
            .steps
            .into_iter()
            .map(|step| Planned {
                tool: step.planned.tool.map(ToOwned::to_owned),
                description: step.planned.description.into_owned(),
                risk: step.planned.risk,
                action: judged(step.action),
                result: step.result.map(judged),
            })
            .collect(),
    })
}

/// Starts a simulation.
pub(super) async fn start(State(seen): State<Seen>, visitor: Visitor, form: Form) -> Response {
    if let Err(refused) = visitor.at_least(Role::Approver).and_then(|()| form.of(&visitor)) {
        return refused.page(&seen, &visitor).await;
    }
    let standing = match desk::standing(&seen).await {
        Ok(standing) => standing,
        Err(why) => return trouble(&seen, &visitor, &why).await,
    };
    let which =
        Which { plan: form.get("plan").into(), policy: form.get("policy").into(), ..Which::default() };
    let mut choice = choice(&standing, &which);
    let yes = |name: &str| form.get(name) == "yes";
    (choice.go_on, choice.approve, choice.stepwise) = (yes("go_on"), yes("approve"), yes("stepwise"));
    form.get("beside").clone_into(&mut choice.beside);
    let known = |policy: &str| standing.bundle.policy(policy).is_some();
    let beside = Some(choice.beside.clone()).filter(|beside| *beside != choice.policy && known(beside));
    let Some(plan) = standing.bundle.plan(&choice.plan).cloned() else {
        let told = Told::bad("No such plan.", "Choose one of the list, or write one.");
        let page = Page { choice, draft: draft(&visitor, &standing, Some(told)), ..Page::default() };
        return framed(&seen, &visitor, StatusCode::NOT_FOUND, &page).await;
    };
    if seen.console.simulations.room.available_permits() == 0 {
        let told =
            Told::bad("Too many simulations run.", "End one that waits for its next step, and try again.");
        let page = Page { choice, draft: draft(&visitor, &standing, Some(told)), ..Page::default() };
        return framed(&seen, &visitor, StatusCode::SERVICE_UNAVAILABLE, &page).await;
    }
    let options = Options { go_on: choice.go_on, approve: choice.approve };
    let side = |policy: String| {
        let turns = choice.stepwise.then(|| Arc::new(Semaphore::new(0)));
        Arc::new(OneSide { policy, turns, now: Mutex::default(), changed: Notify::new() })
    };
    let sides: Vec<Arc<OneSide>> = std::iter::once(choice.policy.clone()).chain(beside).map(side).collect();
    let name = plan.name.clone();
    let simulated = seen.console.simulations.add(|number| Simulated { number, plan, choice, sides });
    for side in &simulated.sides {
        tokio::spawn(follow(seen.clone(), Arc::clone(side), name.clone(), options));
    }
    let stepwise = simulated.choice.stepwise;
    for side in &simulated.sides {
        side.until(|now| now.ended.is_some() || (stepwise && now.run.is_some())).await;
    }
    Redirect::to(&format!("/simulate/{}#sim", simulated.number)).into_response()
}

/// A simulation as it stands.
pub(super) async fn watched(State(seen): State<Seen>, visitor: Visitor, Path(number): Path<u64>) -> Response {
    if let Err(refused) = visitor.at_least(Role::Approver) {
        return refused.page(&seen, &visitor).await;
    }
    let Some(simulated) = seen.console.simulations.get(number) else {
        return pages_of::nothing_here(State(seen), visitor).await;
    };
    let standing = match desk::standing(&seen).await {
        Ok(standing) => standing,
        Err(why) => return trouble(&seen, &visitor, &why).await,
    };
    let which = Which {
        plan: simulated.choice.plan.clone(),
        policy: simulated.choice.policy.clone(),
        ..Which::default()
    };
    let Choice { plans, policies, .. } = choice(&standing, &which);
    let page = Page {
        choice: Choice { plans, policies, ..simulated.choice.clone() },
        watched: Some(shown(&simulated)),
        draft: draft(&visitor, &standing, None),
        ..Page::default()
    };
    framed(&seen, &visitor, StatusCode::OK, &page).await
}

fn shown(simulated: &Simulated) -> Watched {
    let steps = &simulated.plan.steps;
    let sides: Vec<Side> =
        simulated.sides.iter().map(|side| side.look(|now| shown_side(side, now, steps.len()))).collect();
    Watched {
        number: simulated.number,
        prompt: simulated.plan.prompt.clone(),
        steps: steps
            .iter()
            .map(|step| Step {
                tool: step.tool.clone(),
                action: step.action.clone(),
                args: step.args.to_string(),
            })
            .collect(),
        waits: simulated.choice.stepwise && sides.iter().any(|side| matches!(side.ended, Ended::Not)),
        sides,
    }
}

fn shown_side(side: &OneSide, now: &Progress, steps: usize) -> Side {
    let mut cells: Vec<Option<Cell>> = vec![None; steps];
    for step in &now.steps {
        if let Some(cell) = cells.get_mut(step.place) {
            *cell = Some(Cell {
                verdict: step.verdict,
                enforced: step.enforced,
                rule: step.rule.clone(),
                message: step.message.clone(),
                result: step.result.clone(),
            });
        }
    }
    let whole = now.ended.as_ref().and_then(|ended| ended.as_ref().ok());
    let trace = whole.map(|whole| whole.trace.iter().map(trace_row).collect()).unwrap_or_default();
    Side {
        policy: side.policy.clone(),
        run: now.run.map(|run| run.to_string()),
        output: whole.and_then(|whole| whole.output.clone()),
        ended: ended(now, steps),
        cells,
        trace,
    }
}

fn trace_row(row: &portcullis_governance::trace::TraceRow) -> Trace {
    Trace {
        step: row.step_number,
        event_type: row.event_type.to_string(),
        policy_action: row.policy_action.to_string(),
        policy_reason: row.policy_reason.clone(),
    }
}

fn ended(now: &Progress, steps: usize) -> Ended {
    match &now.ended {
        None => Ended::Not,
        Some(Err(why)) => Ended::Failed(why.clone()),
        Some(Ok(whole)) => match (&whole.stopped, &whole.withheld) {
            (Some(stopped), _) => Ended::Stopped(stopped.step, stopped.held, stopped.message.clone()),
            (None, Some(withheld)) => Ended::Withheld(withheld.message.clone()),
            (None, None) if now.steps.len() < steps => {
                Ended::Failed("it was stopped before its end".to_owned())
            }
            (None, None) => Ended::Completed,
        },
    }
}

/// The next step of a simulation, all that are left, or none any more.
pub(super) async fn step(
    State(seen): State<Seen>,
    visitor: Visitor,
    Path(number): Path<u64>,
    form: Form,
) -> Response {
    if let Err(refused) = visitor.at_least(Role::Approver).and_then(|()| form.of(&visitor)) {
        return refused.page(&seen, &visitor).await;
    }
    let Some(simulated) = seen.console.simulations.get(number) else {
        return pages_of::nothing_here(State(seen), visitor).await;
    };
    for side in &simulated.sides {
        let Some(turns) = &side.turns else { continue };
        let before = side.look(|now| now.steps.len());
        match form.get("do") {
            "next" => turns.add_permits(1),
            "rest" => turns.add_permits(PLAN_STEPS_MAX),
            _ => side.stop(),
        }
        let one = form.get("do") == "next";
        side.until(|now| now.ended.is_some() || (one && now.steps.len() > before)).await;
    }
    // The last step may be the end, too.
    tokio::task::yield_now().await;
    Redirect::to(&format!("/simulate/{number}#sim")).into_response()
}
