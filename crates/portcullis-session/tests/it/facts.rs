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
use portcullis_core::principal::{CredentialKind, Principal};
use portcullis_core::verdict::Verdict;
use portcullis_guards::run::parent::Parent;
use portcullis_guards::run::phase::RunPhase;
use portcullis_ledger::{OpenOptions, SqliteLedger};
use portcullis_session::bundles::Bundles;
use portcullis_session::credentials::Identity;
use portcullis_session::engine::Reach;
use portcullis_session::facts::{FactSource, FactSources, Question};
use portcullis_session::gate::{Extensions, Gate, Opened, RunRequest};
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

/// Denies what the oracle says no to of a call under the run's own policy.
#[derive(Debug)]
struct OfThePolicy;

static OF_THE_POLICY: GuardMeta =
    GuardMeta { id: "test/of-the-policy", hooks: &[Hook::Action], owasp: &[], unfaithful_to: None };

fn question_of(policy: &str, pending: &Pending<'_>) -> FactRequest {
    FactRequest { source: "oracle".into(), question: format!("{policy}: {}", question(pending).question) }
}

impl<M: Memory> Guard<M> for OfThePolicy {
    fn meta(&self) -> &'static GuardMeta {
        &OF_THE_POLICY
    }

    fn sources(&self) -> &'static [&'static str] {
        &["oracle"]
    }

    fn needs(&self, context: &Context<'_, M>, pending: &Pending<'_>) -> Vec<FactRequest> {
        vec![question_of(&context.policy.name, pending)]
    }

    fn decide(
        &self,
        context: &Context<'_, M>,
        pending: &Pending<'_>,
        facts: &Facts,
    ) -> Result<Vec<Finding>, GuardFailure> {
        match facts.get(&question_of(&context.policy.name, pending)) {
            Some(FactAnswer::Known(Value::Bool(true))) => Ok(Vec::new()),
            other => Ok(vec![Finding::new("test/of-the-policy", Verdict::Deny, format!("{other:?}"))]),
        }
    }
}

/// The parent of a run is asked with what its own sources say of the call, and a source that fails there denies here.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_of_a_child_is_judged_by_the_facts_of_its_parent_too() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = SqliteLedger::open(&folder.path().join("ledger"), OpenOptions::default()).unwrap();
    let oracle = Arc::new(Oracle { asked: Semaphore::new(0), slow: Semaphore::new(0) });
    let sources = FactSources::default()
        .within(Duration::from_secs(10))
        .with(Arc::clone(&oracle) as Arc<dyn FactSource>);
    let pipeline = policy::pipeline_of(vec![Box::new(Parent), Box::new(OfThePolicy)]);
    let mut files = files("");
    let policies: String = ["good", "bad", "panic"]
        .map(|name| {
            format!(
                "[[policy]]\nname = '{name}'\nallowed_types = ['RETRIEVE_DOCS']\nmax_steps = 9\nmax_side_effects = 0\n"
            )
        })
        .concat();
    files.insert("policies/p.toml".into(), policies.into_bytes());
    let bundles = Bundles::new(None, &files).unwrap();
    let gate =
        Gate::extended(Arc::new(ledger), bundles, Extensions { pipeline, sources, observers: Vec::new() })
            .unwrap();
    let open = async |policy: &str, parent: Option<&Opened>| {
        let identity = Identity {
            kind: CredentialKind::Agent,
            principal: Principal::named("agent"),
            policy: None,
            of_this_machine: true,
        };
        let parent = parent.map(|parent| parent.run.id());
        let policy = Some(policy.to_owned());
        gate.open(RunRequest { policy, parent, ..RunRequest::new(identity, "test") }).await.unwrap()
    };
    for (parent, expected) in
        [("good", None), ("bad", Some("run/parent/denied")), ("panic", Some("run/parent/denied"))]
    {
        let parent = open(parent, None).await;
        let child = open("good", Some(&parent)).await;
        let (judged, permit) =
            gate.propose(&child.run, call("read", json!({"n": 1})), Duration::ZERO).await.unwrap();
        let rule = judged.decision.headline().map(|finding| finding.rule.to_string());
        assert_eq!((rule.as_deref(), permit.is_some()), (expected, expected.is_none()));
        let facts = recorded(&gate, &child);
        let sources: Vec<&str> = facts.values().flatten().map(|fact| fact.request.source.as_str()).collect();
        assert_eq!(
            sources,
            ["parent", "oracle"],
            "the parent's answer is one fact, its own sources are not here"
        );
        assert!(recorded(&gate, &parent).is_empty(), "nothing is written in the parent");
    }
}
