//! Asks models about calls: for a second opinion on a hold, and for a program for a single call.
//!
//! Both are facts of guards, asked outside of the run's lock and recorded. A second opinion that fails leaves the hold as it
//! is; a program that is not written, or does not run, denies. As with contracts, a model's address and the variable with its
//! key are the operator's word, so only the daemon's own bundle is taken at it.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use portcullis_assist::guardagent::{Crew, Memory, Settings, Target, Toolbox, Workers, guard};
use portcullis_assist::opinion::{Covers, covers};
use portcullis_assist::{
    Budget, Client, Clock, EndpointError, Http, Key, Metered, Options, Retries, SystemClock, Timeouts,
};
use portcullis_core::bundle::{Bundle, CallModel, PerAction};
use portcullis_core::fact::FactAnswer;
use portcullis_guards::flow::second_opinion::{self, Opinion};
use portcullis_guards::program::per_action;
use portcullis_program::pool::Pool;
use portcullis_session::facts::{FactSource, FactSources, Question, Shown};
use portcullis_session::gate::Gate;
use tokio::sync::Semaphore;

use crate::engine_source::is_own;

/// How much longer than its time an answer is waited for, so that it says itself what was too slow.
const GRACE: Duration = Duration::from_millis(500);
/// Calls that are asked about at once. Others are not waited for: their holds stand, and their programs are missing.
const CALLS_AT_ONCE: usize = 16;
/// Calls of the model for one program: a plan and its repetitions, a program and its rounds.
const PROGRAM_CALLS: u32 = 7;

type Answer<'a> = Pin<Box<dyn Future<Output = FactAnswer> + Send + 'a>>;

/// What both sources share.
#[derive(Debug)]
pub(crate) struct CallModels {
    room: Semaphore,
    /// The gate that asks, which knows the daemon's own bundle.
    gate: OnceLock<Weak<Gate>>,
}

#[derive(Debug)]
struct SecondOpinion(Arc<CallModels>);

#[derive(Debug)]
struct Written(Arc<CallModels>);

impl CallModels {
    /// Sources among others, unless some of their names are there.
    pub(crate) fn join(sources: &mut FactSources) -> Arc<Self> {
        let own = Arc::new(Self { room: Semaphore::new(CALLS_AT_ONCE), gate: OnceLock::new() });
        let others = std::mem::take(sources);
        *sources = others
            .or_with(Arc::new(SecondOpinion(Arc::clone(&own))))
            .or_with(Arc::new(Written(Arc::clone(&own))));
        own
    }

    /// Answers for this gate. Before, and for a second one, nothing is answered.
    pub(crate) fn answer_for(&self, gate: &Arc<Gate>) {
        let _only_the_first = self.gate.set(Arc::downgrade(gate));
    }

    /// Whether this bundle may name a model, and there is room to ask one.
    fn admits(&self, bundle: &Bundle) -> Result<tokio::sync::SemaphorePermit<'_>, &'static str> {
        let gate = self.gate.get().and_then(Weak::upgrade);
        if !is_own(gate.as_ref(), bundle) {
            return Err("only the bundle that the daemon serves may name a model");
        }
        self.room.try_acquire().map_err(|_| "too many calls are asked about at once")
    }
}

impl FactSource for SecondOpinion {
    fn name(&self) -> &str {
        second_opinion::SOURCE
    }

    fn wait(&self, question: &Question) -> Option<Duration> {
        question.shown.bundle.call_models.second_opinion.as_ref().map(|model| time(model) + GRACE)
    }

    fn answer<'a>(&'a self, question: &'a Question) -> Answer<'a> {
        Box::pin(async move {
            let said = match self.0.admits(&question.shown.bundle) {
                Ok(_room) => opinion(&question.shown).await,
                Err(why) => Err(why.to_owned()),
            };
            match said.map(serde_json::to_value) {
                Ok(Ok(answer)) => FactAnswer::Known(answer),
                Ok(Err(error)) => FactAnswer::Failed(error.to_string()),
                Err(why) => FactAnswer::Failed(why),
            }
        })
    }
}

async fn opinion(shown: &Shown) -> Result<Opinion, String> {
    let (Some(named), Some(asked)) = (&shown.bundle.call_models.second_opinion, &shown.second_opinion) else {
        return Err("nothing is asked".to_owned());
    };
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let client = client(named, &clock).map_err(|error| error.to_string())?;
    let budget = Budget { calls: Some(1), time: Some(time(named)), ..Budget::default() };
    let metered = Metered::new(&client, &*clock, budget);
    let covered = Covers {
        request: &asked.request,
        kind: &asked.kind,
        tool: asked.tool.as_deref(),
        targets: &asked.targets,
    };
    match covers(&metered, &covered).await {
        Ok(Some(covers)) => Ok(Opinion { covers }),
        Ok(None) => Err("the model is unsure, or answers with something else".to_owned()),
        // A server's own words may quote what it was asked.
        Err(error) => Err(without_words(&error)),
    }
}

impl FactSource for Written {
    fn name(&self) -> &str {
        per_action::SOURCE
    }

    fn wait(&self, question: &Question) -> Option<Duration> {
        question.shown.bundle.call_models.per_action.as_ref().map(|settings| time(&settings.model) + GRACE)
    }

    fn answer<'a>(&'a self, question: &'a Question) -> Answer<'a> {
        Box::pin(async move {
            let said = match self.0.admits(&question.shown.bundle) {
                Ok(_room) => written(&question.shown).await,
                Err(why) => Err(why.to_owned()),
            };
            said.map_or_else(FactAnswer::Failed, FactAnswer::Known)
        })
    }
}

async fn written(shown: &Shown) -> Result<serde_json::Value, String> {
    let (Some(settings), Some(asked), Some(told)) =
        (&shown.bundle.call_models.per_action, &shown.per_action, &shown.told)
    else {
        return Err("nothing is asked".to_owned());
    };
    let PerAction { model, requests, specification, .. } = settings;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let client = client(model, &clock).map_err(|error| error.to_string())?;
    let started = tokio::task::spawn_blocking(|| {
        let pool = Pool::of_process()?;
        let manual = pool.toolbox()?;
        Ok::<_, portcullis_program::EngineError>((pool, manual))
    });
    let started = started.await.map_err(|_| "the engine could not be started".to_owned())?;
    let (pool, manual) = started.map_err(|error| error.to_string())?;
    let (workers, toolbox, memory) = (Workers::new(pool), Toolbox::read(&manual), Memory::new());
    let crew = Crew { model: &client, workers: &workers, toolbox: &toolbox, memory: &memory, clock: &*clock };
    let (input, output) = (asked.request.as_str(), asked.call.as_str());
    let target = Target { requests, specification, input, output, told };
    let budget = Budget { calls: Some(PROGRAM_CALLS), ..Budget::default() };
    let settings = Settings { budget, time: Some(time(model)), ..Settings::default() };
    let outcome = guard(&crew, &target, &settings).await;
    let mut answer = outcome.answer.map_err(|failed| match failed {
        portcullis_assist::guardagent::Failed::Model(error) => without_words(&error),
        // The error of a program may quote the call.
        portcullis_assist::guardagent::Failed::NotExecutable { tries, .. } => {
            format!("no program of {tries} ran")
        }
        other => other.to_string(),
    })?;
    for objection in &mut answer.objections {
        per_action::NAME.clone_into(&mut objection.program);
    }
    serde_json::to_value(answer).map_err(|error| error.to_string())
}

fn time(model: &CallModel) -> Duration {
    Duration::from_millis(model.time_ms.into())
}

fn client(named: &CallModel, clock: &Arc<dyn Clock>) -> Result<Client, EndpointError> {
    let key = named.key_env.as_deref().map(Key::from_env).transpose()?;
    let http = Http::new(&named.endpoint, key, Timeouts::default())?;
    // There is no time for a second attempt.
    let options =
        Options { retries: Retries { attempts: 1, ..Retries::default() }, ..Options::new(&named.model) };
    Ok(Client::new(options, Arc::new(http), Arc::clone(clock)))
}

/// What went wrong, without what the server said.
fn without_words(error: &portcullis_assist::ModelError) -> String {
    use portcullis_assist::ModelError;
    match error {
        ModelError::Refused { status, .. } => format!("the model's server refused with status {status}"),
        ModelError::Broken(_) | ModelError::NotACompletion(_) => {
            "the model's server answers with something else".to_owned()
        }
        error => error.to_string(),
    }
}
