//! Asks judges and models about contracts of a bundle: the source of the facts that the guard of contracts wants.
//!
//! Code has checked what it can before anyone is asked, and checks a rewrite again after. Whatever goes wrong here is an
//! answer, too: a judge that cannot be reached, is late or says something else leaves its contracts undecided, which is
//! not compliance.
//!
//! A model's address, the variable with its key and the path of a program are the operator's word. Anyone who opens a run
//! may name a bundle for it, so only the daemon's own bundle is taken at it.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use portcullis_assist::Standing as Judged;
use portcullis_assist::{
    Answers, Budget, Client, Clock, Detect, Ended, EndpointError, Helpers, Http, Judge, Judgement, Key,
    Metered, Model, Options, Program, Repaired, Settings, SettingsError, Strategy, SystemClock, Task,
    Timeouts, detect, repair,
};
use portcullis_contracts::{Context, Contract};
use portcullis_core::bundle::{Bundle, ContractJudge, ContractModel, OnFail};
use portcullis_core::fact::FactAnswer;
use portcullis_guards::contracts::answer::{ContractAnswer, ContractQuestion, Rewritten, Said};
use portcullis_guards::contracts::{GateContract, GateContracts, HeldText, SOURCE, Standing};
use portcullis_session::facts::{FACTS_WAIT, FactSource, FactSources, Question, Shown};
use portcullis_session::gate::Gate;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

/// Longest time for one text, whatever the bundle says: clients of the gate wait 30 s for an answer.
const WAIT_MAX: Duration = Duration::from_secs(25);
/// How much longer than its work a text is waited for, so that the answer says what was too slow.
const GRACE: Duration = Duration::from_secs(1);
/// Texts that are judged or rewritten at once. Others wait, and that is part of their time.
const TEXTS_AT_ONCE: usize = 16;

/// See the [module documentation](self).
#[derive(Debug)]
pub(crate) struct ContractSource {
    room: Arc<Semaphore>,
    /// The gate that asks, which knows the daemon's own bundle.
    gate: OnceLock<Weak<Gate>>,
}

impl Default for ContractSource {
    fn default() -> Self {
        Self { room: Arc::new(Semaphore::new(TEXTS_AT_ONCE)), gate: OnceLock::new() }
    }
}

impl ContractSource {
    /// A source among others, unless one of its name is there.
    pub(crate) fn join(sources: &mut FactSources) -> Arc<Self> {
        let own = Arc::new(Self::default());
        *sources = std::mem::take(sources).or_with(Arc::clone(&own) as Arc<dyn FactSource>);
        own
    }

    /// Answers for this gate. Before, and for a second one, nothing is answered.
    pub(crate) fn answer_for(&self, gate: &Arc<Gate>) {
        let _only_the_first = self.gate.set(Arc::downgrade(gate));
    }
}

/// Whether a bundle is the daemon's own, as it is now.
pub(crate) fn is_own(gate: Option<&Arc<Gate>>, bundle: &Bundle) -> bool {
    let own = gate.and_then(|gate| gate.bundles().get(None).ok());
    own.is_some_and(|(_, own)| own.digest() == bundle.digest())
}

impl FactSource for ContractSource {
    fn name(&self) -> &str {
        SOURCE
    }

    fn wait(&self, question: &Question) -> Option<Duration> {
        Some(time(&question.shown.bundle) + GRACE)
    }

    fn answer<'a>(&'a self, question: &'a Question) -> Pin<Box<dyn Future<Output = FactAnswer> + Send + 'a>> {
        Box::pin(async move {
            let failed = |why: &str| FactAnswer::Failed(why.to_owned());
            let Ok(asked) = serde_json::from_str(&question.question) else {
                return failed("the question is not of its form");
            };
            let Ok(room) = Arc::clone(&self.room).acquire_owned().await else {
                return failed("the daemon stops");
            };
            let (shown, handle) = (Arc::clone(&question.shown), Handle::current());
            let gate = self.gate.get().and_then(Weak::upgrade);
            // Repairs by code may take a while, and the daemon's threads have runs to serve.
            let work = tokio::task::spawn_blocking(move || {
                let _room = room;
                if !is_own(gate.as_ref(), &shown.bundle) {
                    return Err("only the bundle that the daemon serves may name a judge or a model");
                }
                handle.block_on(answer(&shown, &asked))
            });
            match work.await {
                Ok(Ok(answer)) => match serde_json::to_value(answer) {
                    Ok(answer) => FactAnswer::Known(answer),
                    Err(_) => failed("the answer has no JSON text"),
                },
                Ok(Err(why)) => failed(why),
                Err(_) => failed("the work was interrupted"),
            }
        })
    }
}

/// The client of a bundle's model.
///
/// # Errors
/// The address or the key cannot be used.
pub(crate) fn client(named: &ContractModel, clock: &Arc<dyn Clock>) -> Result<Client, EndpointError> {
    let key = named.key_env.as_deref().map(Key::from_env).transpose()?;
    let http = Http::new(&named.endpoint, key, Timeouts::default())?;
    Ok(Client::new(Options::new(&named.model), Arc::new(http), Arc::clone(clock)))
}

/// How long a text may take.
fn time(bundle: &Bundle) -> Duration {
    let named = bundle.contract_model.as_ref().map(|model| Duration::from_secs(model.time_s.into()));
    named.unwrap_or(FACTS_WAIT).min(WAIT_MAX)
}

async fn answer(shown: &Shown, question: &ContractQuestion) -> Result<ContractAnswer, &'static str> {
    let bundle = &*shown.bundle;
    let (asked, repairs) = match question {
        ContractQuestion::Judge(asked) => (asked, false),
        ContractQuestion::Repair(asked) => (asked, true),
    };
    let contracts = GateContracts::of(bundle).and_then(|contracts| contracts.named(&asked.contracts));
    let contracts = contracts.filter(|contracts| asked.is_about(contracts));
    let (Some(contracts), Some(text)) = (contracts, shown.text.as_deref()) else {
        return Err("the question is about other contracts than the bundle has");
    };
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let model = bundle.contract_model.as_ref().map(|named| client(named, &clock));
    let model = model.map(|client| client.map_err(|error| error.to_string()));
    let budget = Budget {
        calls: bundle.contract_model.as_ref().map(|named| named.calls),
        time: Some(time(bundle)),
        ..Budget::default()
    };
    let asker = Asker {
        context: Context {
            prompt: shown.prompt.as_deref(),
            documents: shown.documents.as_deref(),
            names: None,
            high_risk: bundle.verification.as_ref().and_then(|settings| settings.high_risk.as_deref()),
        },
        model: match &model {
            Some(Ok(client)) => Ok(Metered::new(client, &*clock, budget)),
            Some(Err(why)) => Err(why.clone()),
            None => Err("the bundle names no model".to_owned()),
        },
        clock: &*clock,
        time: time(bundle),
    };
    let held = HeldText::of(contracts.clone(), text, asker.context);
    let by_code = if repairs { held.repaired_by_code() } else { None };
    let text = by_code.as_ref().map_or(text, |repair| &repair.text);
    let held = HeldText::of(contracts.clone(), text, asker.context);
    let mut answer = ContractAnswer { judged: asker.judge(&held, text).await, ..ContractAnswer::default() };
    if repairs {
        match asker.rewrite(&contracts, &held, text, &answer.judged).await {
            Some(Ok(rewritten)) => answer.rewritten = Some(rewritten),
            Some(Err(why)) => answer.failed = Some(why),
            None => {}
        }
    }
    Ok(answer)
}

/// Who is asked about one text, and within which limits.
struct Asker<'a> {
    context: Context<'a>,
    /// The model within its budget, or why there is none.
    model: Result<Metered<'a>, String>,
    clock: &'a dyn Clock,
    time: Duration,
}

impl Asker<'_> {
    /// What judges say of a text: each program once, then the model about all that are left to it.
    async fn judge(&self, held: &HeldText<'_>, text: &str) -> BTreeMap<String, Said> {
        let mut by_judge: BTreeMap<Option<&str>, Vec<Contract>> = BTreeMap::new();
        for GateContract { settings, contract } in held.judged() {
            let program = match &settings.judge {
                ContractJudge::Program(path) => Some(path.as_str()),
                ContractJudge::Model | ContractJudge::Nobody => None,
            };
            by_judge.entry(program).or_default().push(contract.clone());
        }
        let mut said = BTreeMap::new();
        for (program, contracts) in by_judge.iter().rev() {
            let task = Task { context: self.context, reply: text, contracts };
            let detection = match (program, &self.model) {
                (Some(path), _) => detect(Judge::Program(&Program::new(path, self.time)), &task).await,
                (None, Ok(model)) => detect(Judge::Model(model, Detect::Batch), &task).await,
                (None, Err(why)) => {
                    let nobody = |one: &Contract| (one.id.clone(), Said { holds: None, why: why.clone() });
                    said.extend(contracts.iter().map(nobody));
                    continue;
                }
            };
            said.extend(detection.judgements.into_iter().map(as_said));
        }
        said
    }

    /// A text that the model made of this one, or why there is none; `None` if no contract that is broken wants one.
    async fn rewrite(
        &self,
        contracts: &[&GateContract],
        held: &HeldText<'_>,
        text: &str,
        judged: &BTreeMap<String, Said>,
    ) -> Option<Result<Rewritten, String>> {
        let standings = held.standings(&Ok(judged.clone()));
        let broken: Vec<&GateContract> = contracts
            .iter()
            .zip(&standings)
            .filter(|(one, standing)| {
                one.settings.on_fail == OnFail::Repair && matches!(standing, Standing::Broken(..))
            })
            .map(|(one, _)| *one)
            .collect();
        let strategy: Strategy = broken.iter().find_map(|one| one.settings.strategy)?.parse().ok()?;
        let model = match &self.model {
            Ok(model) => model,
            Err(why) => return Some(Err(why.clone())),
        };
        let program = broken.iter().find_map(|one| match &one.settings.judge {
            ContractJudge::Program(path) => Some(Program::new(path, self.time)),
            ContractJudge::Model | ContractJudge::Nobody => None,
        });
        let set: Vec<Contract> = held.kept().chain(broken).map(|one| one.contract.clone()).collect();
        let task = Task { context: self.context, reply: text, contracts: &set };
        let settings = Settings { strategy, no_degrade: true, verify: true, ..Settings::default() };
        let helpers = Helpers { model: Some(model as &dyn Model), program: program.as_ref() };
        let repaired = match repair(helpers, self.clock, &task, &settings).await {
            Ok(repaired) if repaired.reply == text => return Some(Err(why_unchanged(&repaired))),
            Ok(repaired) => repaired.reply,
            Err(error) => return Some(Err(SettingsError::to_string(&error))),
        };
        let held = HeldText::of(contracts.to_vec(), &repaired, self.context);
        let judged = self.judge(&held, &repaired).await;
        Some(Ok(Rewritten { text: repaired.clone(), judged }))
    }
}

fn as_said(judgement: Judgement) -> (String, Said) {
    let holds = match judgement.standing {
        Judged::Holds => Some(true),
        Judged::Broken => Some(false),
        Judged::Undecided => None,
    };
    (judgement.id, Said { holds, why: judgement.explanation })
}

fn why_unchanged(repaired: &Repaired) -> String {
    match (&repaired.ended, repaired.answers) {
        (Ended::Budget(exhausted), _) => exhausted.to_string(),
        (Ended::Model(error), _) => error.to_string(),
        (_, Answers::No) => "the model's rewrite no longer answers the request".to_owned(),
        (_, Answers::Undecided) => {
            "nobody could tell whether the model's rewrite answers the request".to_owned()
        }
        _ => "no rewrite of the model keeps more contracts without breaking others".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use portcullis_core::bundle::REPAIR_STRATEGIES;

    use super::*;

    #[test]
    fn every_strategy_of_a_bundle_is_one_of_the_models() {
        for name in REPAIR_STRATEGIES {
            let strategy: Strategy = name.parse().unwrap();
            assert!(strategy != Strategy::Mechanical && strategy.to_string() == name, "{name}");
        }
    }
}
