//! Facts are gathered while the run is not locked, at every hook, and recorded with the verdict.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use portcullis_core::action::{Hook, Pending, Subject};
use portcullis_core::event::{Control, Enforced, Event, EventBody, OutcomeStatus};
use portcullis_core::fact::{FactAnswer, FactRecord, FactRequest, Facts};
use portcullis_core::finding::Finding;
use portcullis_core::guard::{Context, Guard, GuardFailure, GuardMeta};
use portcullis_core::label::Label;
use portcullis_core::memory::Memory;
use portcullis_core::verdict::Verdict;
use portcullis_guards::run::phase::RunPhase;
use portcullis_ledger::{OpenOptions, SqliteLedger};
use portcullis_session::bundles::Bundles;
use portcullis_session::engine::Reach;
use portcullis_session::facts::{FactSource, FactSources, Question};
use portcullis_session::gate::{Extensions, Gate, Opened};
use portcullis_session::policy;
use serde_json::{Value, json};
use tokio::sync::{Semaphore, oneshot};

use crate::{call, files, open};

/// Denies what the oracle says no to.
#[derive(Debug)]
struct Asker;

static META: GuardMeta = GuardMeta {
    id: "test/asker",
    hooks: &[Hook::Input, Hook::Action, Hook::Observation, Hook::Output],
    owasp: &[],
    unfaithful_to: None,
};

fn question(pending: &Pending<'_>) -> FactRequest {
    let question = match pending.subject {
        Subject::Action(action) => action.arguments.to_string(),
        subject => subject.text().unwrap_or_default().to_owned(),
    };
    FactRequest { source: "oracle".into(), question }
}

impl<M: Memory> Guard<M> for Asker {
    fn meta(&self) -> &'static GuardMeta {
        &META
    }

    fn sources(&self) -> &'static [&'static str] {
        &["oracle"]
    }

    fn needs(&self, _: &Context<'_, M>, pending: &Pending<'_>) -> Vec<FactRequest> {
        vec![question(pending)]
    }

    fn decide(
        &self,
        _: &Context<'_, M>,
        pending: &Pending<'_>,
        facts: &Facts,
    ) -> Result<Vec<Finding>, GuardFailure> {
        match facts.get(&question(pending)) {
            Some(FactAnswer::Known(Value::Bool(true))) => Ok(Vec::new()),
            other => Ok(vec![Finding::new("test/asker", Verdict::Deny, format!("{other:?}"))]),
        }
    }
}

/// Says yes unless it is asked about something bad; takes its time, or panics, where it is asked to.
#[derive(Debug)]
struct Oracle {
    asked: Semaphore,
    slow: Semaphore,
}

impl FactSource for Oracle {
    fn name(&self) -> &str {
        "oracle"
    }

    fn answer<'a>(&'a self, question: &'a Question) -> Pin<Box<dyn Future<Output = FactAnswer> + Send + 'a>> {
        Box::pin(async move {
            assert_eq!(question.principal, "agent");
            assert!(!question.question.contains("panic"), "as it was asked to");
            if question.question.contains("slow") {
                self.asked.add_permits(1);
                self.slow.acquire().await.unwrap().forget();
            }
            FactAnswer::Known(json!(!question.question.contains("bad")))
        })
    }
}

fn gate_of_oracle(folder: &std::path::Path, wait: Duration) -> (Arc<Gate>, Arc<Oracle>) {
    let ledger = SqliteLedger::open(&folder.join("ledger"), OpenOptions::default()).unwrap();
    let oracle = Arc::new(Oracle { asked: Semaphore::new(0), slow: Semaphore::new(0) });
    let sources = FactSources::default().within(wait).with(Arc::clone(&oracle) as Arc<dyn FactSource>);
    let pipeline = policy::pipeline_of(vec![Box::new(RunPhase), Box::new(Asker)]);
    let bundles = Bundles::new(None, &files("")).unwrap();
    let extensions = Extensions { pipeline, sources, observers: Vec::new() };
    (Gate::extended(Arc::new(ledger), bundles, extensions).unwrap(), oracle)
}

/// The recorded facts, by the number of the event that they are about.
fn recorded(gate: &Gate, opened: &Opened) -> BTreeMap<u64, Vec<FactRecord>> {
    let lines = gate.ledger().read(|reader| reader.events(opened.run.id(), 0, 1_000)).unwrap();
    let events = lines.iter().map(|stored| Event::from_line(&stored.line).unwrap());
    events
        .filter_map(|event| match event.body {
            EventBody::Verdict(record) => Some((event.cause.unwrap(), record.facts)),
            _ => None,
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn facts_are_asked_at_every_hook_and_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let (gate, _) = gate_of_oracle(folder.path(), Duration::from_secs(10));
    let opened = open(&gate).await;
    for (suffix, passes) in [("good", true), ("bad", false)] {
        let asked =
            opened.run.input(format!("an input, {suffix}"), Label::User, Reach::Replace).await.unwrap();
        assert_eq!(asked.enforced == Enforced::Executed, passes);
        let proposal = call("read", json!({"text": suffix}));
        let (_, permit) = gate.propose(&opened.run, proposal, Duration::ZERO).await.unwrap();
        assert_eq!(permit.is_some(), passes);
        if let Some(permit) = permit {
            let content = Some("a result, bad".to_owned());
            let (_, seen) = opened
                .run
                .outcome(permit.action(), OutcomeStatus::Ok, content, Reach::Replace)
                .await
                .unwrap();
            assert_eq!(seen.unwrap().enforced, Enforced::Withheld);
        }
        let (_, told) =
            opened.run.told("server", format!("a notice, {suffix}"), Reach::Replace).await.unwrap();
        assert_eq!(told.enforced == Enforced::Executed, passes);
        let reply = opened.run.output(format!("a reply, {suffix}"), None, Reach::Replace).await.unwrap();
        assert_eq!(reply.enforced == Enforced::Executed, passes);
    }
    let recorded = recorded(&gate, &opened);
    assert_eq!(recorded.len(), 9, "every verdict, those that found nothing included");
    assert!(recorded.values().all(|facts| facts.len() == 1), "{recorded:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_goes_on_while_a_source_takes_its_time() {
    let folder = tempfile::tempdir().unwrap();
    let (gate, oracle) = gate_of_oracle(folder.path(), Duration::from_secs(60));
    let opened = open(&gate).await;
    let (answer, answered) = oneshot::channel();
    let (slow_gate, run) = (Arc::clone(&gate), Arc::clone(&opened.run));
    tokio::spawn(async move {
        let proposal = call("read", json!({"text": "slow"}));
        answer.send(slow_gate.propose(&run, proposal, Duration::ZERO).await.unwrap().1.is_some()).unwrap();
    });
    oracle.asked.acquire().await.unwrap().forget();
    // The source is being asked: other calls, texts and people get through.
    let other = gate.propose(&opened.run, call("read", json!({"text": "quick"})), Duration::ZERO);
    assert!(other.await.unwrap().1.is_some());
    opened.run.output("done".into(), None, Reach::Replace).await.unwrap();
    opened.run.control(Control::Halt, "ann", None).await.unwrap();
    oracle.slow.add_permits(1);
    assert!(!answered.await.unwrap(), "the verdict is made of the run as it is then: halted");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_that_is_late_or_panics_has_failed_and_the_call_is_denied() {
    let folder = tempfile::tempdir().unwrap();
    let (gate, _) = gate_of_oracle(folder.path(), Duration::from_millis(50));
    let opened = open(&gate).await;
    for (text, why) in [("slow", "no answer within 50 ms"), ("panic", "the source panicked")] {
        let proposal = call("read", json!({"text": text}));
        let (judgement, permit) = gate.propose(&opened.run, proposal, Duration::ZERO).await.unwrap();
        assert!(permit.is_none());
        let message = &judgement.decision.headline().unwrap().message;
        assert!(message.contains(why), "{message}");
    }
    let failed = |facts: &Vec<FactRecord>| matches!(facts[0].answer, FactAnswer::Failed(_));
    assert_eq!(recorded(&gate, &opened).values().filter(|facts| failed(facts)).count(), 2);
}
