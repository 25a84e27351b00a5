//! Checks of work items that the daemon makes itself: of claims, and of what replies may claim.
//!
//! A claim is checked when it is made, or when somebody asks. Where a reply may say that something is done, or is the last
//! one, the criteria of what was begun are run before the reply is judged. What comes of that is a fact of the reply's
//! verdict; only of a claimed item it is also a check, and that one counts like any other.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use portcullis_contain::Contained;
use portcullis_core::fact::FactAnswer;
use portcullis_core::id::RunId;
use portcullis_core::work::{
    Came, Check, CheckResult, Criterion, ItemId, ItemState, Operation, Party, WorkItem,
};
use portcullis_guards::output::open_work::{self, Unshown, UnshownItem, is_unshown};
use portcullis_session::engine::{ToCheck, WorkBy};
use portcullis_session::error::SessionError;
use portcullis_session::facts::{FactSource, Question};
use portcullis_session::gate::Gate;
use portcullis_session::run::Run;
use portcullis_work::{Checker, may_say_done};
use tokio::sync::Semaphore;

use super::forges;
use crate::api;

/// How long a reply waits for checks. Clients wait 30 s for an answer.
const REPLY_WAIT: Duration = Duration::from_secs(20);
/// How much longer its source is waited for, so that the answer says what was not known in time.
const GRACE: Duration = Duration::from_secs(2);
/// For so long, results of an item count again where nothing has happened in the run since.
const RESULTS_LAST: Duration = Duration::from_secs(30);
/// Most items of which results are kept.
const RESULTS_MAX: usize = 1_024;
/// Most items that a reply is told about.
const ITEMS_TOLD_MAX: usize = 10;
/// Most characters of what was found that a reply is told.
const FOUND_CHARS_MAX: usize = 200;

/// Checks items for a daemon.
#[derive(Debug, Clone)]
pub(super) struct Checks {
    room: Arc<Semaphore>,
    forges: Arc<PathBuf>,
}

impl Checks {
    /// With the file that has the tokens of forges.
    pub(super) fn new(forges: PathBuf) -> Self {
        Self { room: Arc::new(Semaphore::new(api::CHECKS_AT_ONCE)), forges: Arc::new(forges) }
    }

    /// Checks the criteria of a claimed item, outside the run's lock, and records what came of it.
    pub(super) async fn check(&self, run: Arc<Run>, item: ItemId) -> Result<WorkItem, SessionError> {
        let room = Arc::clone(&self.room).acquire_owned().await.map_err(|_| SessionError::CutShort)?;
        let is_ready = run.with_state(|state, _| state.works().item(item).is_some_and(is_ready)).await;
        let to_check = run.to_check(item).await?;
        let version = to_check.version;
        let results = match is_ready {
            true => self.results(&run, to_check).await?,
            // Nothing runs for an answer that would be refused.
            false => Vec::new(),
        };
        drop(room);
        record(&run, item, version, results).await
    }

    async fn results(&self, run: &Arc<Run>, to_check: ToCheck) -> Result<Vec<CheckResult>, SessionError> {
        let ToCheck { criteria, since, .. } = to_check;
        let tools = criteria.iter().filter_map(|criterion| match &criterion.check {
            Check::ToolCallSucceeded { tool } => Some(tool.clone()),
            _ => None,
        });
        let tools: Vec<String> = tools.collect();
        let (called, workspace, home, reply) = run
            .with_engine(|engine| {
                let called = tools.into_iter().filter(|tool| engine.succeeded_since(tool, since));
                let called: BTreeSet<String> = called.collect();
                let reply = engine.latest_reply().map(str::to_owned);
                let (workspace, home) = (engine.work_folder(), engine.work_home());
                (called, workspace.map(PathBuf::from), home.map(PathBuf::from), reply)
            })
            .await;
        let forges = Arc::clone(&self.forges);
        let check = move || {
            let contained =
                Contained::new().inspect_err(|error| tracing::warn!("no checks by command: {error}")).ok();
            let succeeded = |tool: &str| called.contains(tool);
            let token_of = |url: &str| forges::token(&forges, url);
            let checker = Checker {
                contained: contained.as_ref(),
                workspace,
                home,
                succeeded: &succeeded,
                reply,
                token_of: &token_of,
            };
            checker.check_all(&criteria)
        };
        tokio::task::spawn_blocking(check).await.map_err(|_| SessionError::CutShort)
    }
}

fn is_ready(item: &WorkItem) -> bool {
    item.state == ItemState::Claimed && !item.waits && !item.buried
}

async fn record(
    run: &Arc<Run>,
    item: ItemId,
    version: u64,
    results: Vec<CheckResult>,
) -> Result<WorkItem, SessionError> {
    let harness = WorkBy { party: Party::Harness, person: String::new() };
    run.work(harness, Operation::Check { item, version, results }, None).await
}

/// What came of checking an item that was begun, and when.
#[derive(Debug, Clone)]
struct Known {
    /// The event that had changed it last, and the latest event that bears on work.
    version: (u64, u64),
    at: Instant,
    results: Vec<CheckResult>,
}

/// Says of a reply what is not shown to be done.
#[derive(Debug, Clone)]
pub(super) struct WorkSource(Arc<Looks>);

/// What the looks of all runs share.
#[derive(Debug)]
struct Looks {
    checks: Checks,
    gate: OnceLock<Weak<Gate>>,
    known: Mutex<BTreeMap<(RunId, ItemId), Known>>,
}

impl WorkSource {
    pub(super) fn new(checks: Checks) -> Self {
        Self(Arc::new(Looks { checks, gate: OnceLock::new(), known: Mutex::default() }))
    }

    /// What checks claims, with which it shares its room.
    pub(super) fn checks(&self) -> Checks {
        self.0.checks.clone()
    }

    /// Answers for this gate. Before, and for a second one, nothing is answered.
    pub(super) fn answer_for(&self, gate: &Arc<Gate>) {
        let _only_the_first = self.0.gate.set(Arc::downgrade(gate));
    }
}

impl Looks {
    async fn unshown(self: Arc<Self>, run: Arc<Run>) -> Vec<UnshownItem> {
        let begun = run.with_state(|state, _| {
            state.works().items().filter(|item| is_unshown(item)).take(ITEMS_TOLD_MAX).cloned().collect()
        });
        let begun: Vec<WorkItem> = begun.await;
        let until = tokio::time::Instant::now() + REPLY_WAIT;
        // A check goes on when nobody waits for it any more.
        let looks: Vec<_> = begun
            .into_iter()
            .map(|item| (item.clone(), tokio::spawn(Arc::clone(&self).missing(Arc::clone(&run), item))))
            .collect();
        let mut unshown = Vec::with_capacity(looks.len());
        for (item, look) in looks {
            let missing = match tokio::time::timeout_at(until, look).await {
                Ok(Ok(missing)) => missing,
                Ok(Err(_)) => Some(vec!["its criteria were not checked: the check was cut short".to_owned()]),
                Err(_) => {
                    Some(vec![format!("its criteria were not checked within {} s", REPLY_WAIT.as_secs())])
                }
            };
            unshown.extend(missing.map(|missing| UnshownItem::of(&item, missing)));
        }
        unshown
    }

    /// What is missing of an item that was begun; nothing where it is verified now.
    async fn missing(self: Arc<Self>, run: Arc<Run>, item: WorkItem) -> Option<Vec<String>> {
        if item.waits {
            return Some(vec!["it waits for a person".to_owned()]);
        }
        if item.criteria.is_empty() {
            let why = if is_ready(&item) { "a person has to attest it" } else { "it was not claimed" };
            return Some(vec![why.to_owned()]);
        }
        let to_check = match run.to_check(item.id).await {
            Ok(to_check) => to_check,
            Err(why) => return Some(vec![why.reason]),
        };
        let latest = run.with_state(|state, _| state.works().latest()).await;
        let version = (to_check.version, latest);
        let results = match self.known(run.id(), item.id, version) {
            Some(results) => results,
            None => {
                let Ok(_room) = Arc::clone(&self.checks.room).acquire_owned().await else {
                    return Some(Vec::new());
                };
                match self.checks.results(&run, to_check).await {
                    Ok(results) => results,
                    Err(why) => return Some(vec![format!("its criteria were not checked: {why}")]),
                }
            }
        };
        let answered = results.iter().all(|one| matches!(one.came, Came::Pass))
            || results.iter().any(|one| matches!(one.came, Came::Fail));
        if is_ready(&item) && answered {
            // It was claimed, and this is an answer.
            match record(&run, item.id, version.0, results.clone()).await {
                Ok(now) if now.state == ItemState::Verified => return None,
                // Its evidence was stale, whatever the criteria say.
                Ok(now) if results.iter().all(|one| one.came == Came::Pass) => return Some(vec![now.reason]),
                _ => {}
            }
        }
        let missing = told(&item.criteria, &results);
        self.keep(run.id(), item.id, Known { version, at: Instant::now(), results });
        Some(missing)
    }

    fn known(&self, run: RunId, item: ItemId, version: (u64, u64)) -> Option<Vec<CheckResult>> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = |known: &&Known| known.version == version && known.at.elapsed() < RESULTS_LAST;
        known.get(&(run, item)).filter(fits).map(|known| known.results.clone())
    }

    fn keep(&self, run: RunId, item: ItemId, results: Known) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= RESULTS_MAX {
            known.retain(|_, known| known.at.elapsed() < RESULTS_LAST);
        }
        if known.len() < RESULTS_MAX {
            known.insert((run, item), results);
        }
    }
}

/// What is missing, by the results.
fn told(criteria: &[Criterion], results: &[CheckResult]) -> Vec<String> {
    let mut missing = Vec::new();
    for (number, (criterion, result)) in criteria.iter().zip(results).enumerate() {
        let came = match result.came {
            Came::Pass => continue,
            Came::Fail => "fails",
            Came::Error => "could not be checked",
            Came::Timeout => "was not known in time",
        };
        let line = result.detail.split_whitespace().collect::<Vec<_>>().join(" ");
        let found: String = line.chars().filter(|c| !c.is_control()).take(FOUND_CHARS_MAX).collect();
        let before = if found.is_empty() { "" } else { ": " };
        missing.push(format!(
            "criterion {} (`{}`) {came}{before}{found}",
            number + 1,
            criterion.check.kind()
        ));
    }
    if missing.is_empty() {
        missing.push("its criteria hold now, and it was not claimed".to_owned());
    }
    missing
}

impl FactSource for WorkSource {
    fn name(&self) -> &str {
        open_work::SOURCE
    }

    fn wait(&self, _: &Question) -> Option<Duration> {
        Some(REPLY_WAIT + GRACE)
    }

    fn answer<'a>(&'a self, question: &'a Question) -> Pin<Box<dyn Future<Output = FactAnswer> + Send + 'a>> {
        Box::pin(async move {
            let failed = |why: &str| FactAnswer::Failed(why.to_owned());
            if question.question != open_work::request().question {
                return failed("there is no such question about work items");
            }
            let shown = &question.shown;
            let Some(reply) = shown.reply else { return failed("it is not about a reply") };
            let says = shown.text.as_deref().is_some_and(may_say_done);
            let mut unshown = Unshown { items: Vec::new(), replaces: reply.replaces };
            if reply.last || says {
                let run =
                    self.0.gate.get().and_then(Weak::upgrade).and_then(|gate| gate.run(question.run).ok());
                let Some(run) = run else { return failed("the run is not live") };
                unshown.items = Arc::clone(&self.0).unshown(run).await;
            }
            match serde_json::to_value(unshown) {
                Ok(answer) => FactAnswer::Known(answer),
                Err(_) => failed("the answer has no JSON text"),
            }
        })
    }
}
