//! Runs over a real ledger: permits, observe mode, and verdicts that can be computed again.
#![cfg(test)]

mod approvals;
mod bundle_dir;
mod commits;
mod confirmations;
mod contained;
mod dogwood;
mod erased;
mod facts;
mod freezes;
mod kept;
mod kin;
mod named_bundles;
mod principals;
mod programs;
mod reach;
mod redact;
mod replies;
mod sequences;
mod taints;
mod work;

#[path = "../../../../engines/for_tests.rs"]
mod engine;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use portcullis_core::action::{Action, Pending, Subject};
use portcullis_core::aside::{DIGEST_KEY, ERASED};
use portcullis_core::event::{Control, Enforced, Event, EventBody, GrantScope, ListedTool, OutcomeStatus};
use portcullis_core::fact::Facts;
use portcullis_core::guard::Context;
use portcullis_core::id::{ApprovalId, Digest};
use portcullis_core::memory::LazyReading;
use portcullis_core::principal::{CredentialKind, Principal};
use portcullis_core::state::RunState;
use portcullis_core::verdict::Verdict;
use portcullis_ledger::{LedgerError, OpenOptions, SqliteLedger};
use portcullis_session::bundles::Bundles;
use portcullis_session::credentials::Identity;
use portcullis_session::engine::{Answer, Proposal, Reach, Says};
use portcullis_session::error::SessionError;
use portcullis_session::gate::{Gate, Opened, RunRequest};
use serde_json::{Value, json};

const TOOLS: &str = "[[tool]]\nname = 'read'\ntype = 'RETRIEVE_DOCS'\nside_effecting = false\n\
                     [[tool]]\nname = 'send'\ntype = 'SEND_EMAIL'\nside_effecting = true\n";
const POLICY: &str = "[[policy]]\nname = 'p'\nallowed_types = ['RETRIEVE_DOCS', 'SEND_EMAIL']\nmax_steps = 100\n\
                      max_side_effects = 2\nrestricted_keywords = ['wire']\n";

fn files(main: &str) -> BTreeMap<String, Vec<u8>> {
    [
        ("portcullis.toml", format!("version = 1\n{main}")),
        ("tools/t.toml", TOOLS.into()),
        ("policies/p.toml", POLICY.into()),
    ]
    .into_iter()
    .map(|(path, text)| (path.to_owned(), text.into_bytes()))
    .collect()
}

fn gate(folder: &Path, main: &str, options: OpenOptions) -> Arc<Gate> {
    let ledger = SqliteLedger::open(&folder.join("ledger"), options).unwrap();
    let bundles = Bundles::new(None, &files(main)).unwrap();
    Gate::new(Arc::new(ledger), Arc::new(portcullis_session::policy::pipeline()), bundles)
}

async fn open(gate: &Gate) -> Opened {
    let identity = Identity {
        kind: CredentialKind::Agent,
        principal: Principal::named("agent"),
        policy: None,
        of_this_machine: true,
    };
    gate.open(RunRequest::new(identity, "test")).await.unwrap()
}

fn call(tool: &str, arguments: Value) -> Proposal {
    Proposal { tool: Some(tool.into()), arguments, planned: None, ..Proposal::default() }
}

fn events(gate: &Gate, opened: &Opened) -> Vec<Event> {
    let stored = gate.ledger().read(|reader| reader.events(opened.run.id(), 0, 100_000)).unwrap();
    let whole = |line: &[u8]| {
        let mut event = Event::from_line(line).unwrap();
        let words = event.aside().and_then(|words| {
            gate.ledger().read(|reader| reader.payload(opened.run.id(), words.commitment)).unwrap()
        });
        event.join(words.as_ref().map(|words| str::from_utf8(words.bytes()).unwrap()), ERASED);
        event
    };
    stored.iter().map(|stored| whole(&stored.line)).collect()
}

/// Law 2: a permit comes after its events are durable, and none comes when they are not.
#[tokio::test(flavor = "multi_thread")]
async fn no_record_no_permit() {
    let folder = tempfile::tempdir().unwrap();
    let options = OpenOptions { bytes_max: Some(400_000), ..OpenOptions::default() };
    let gate = gate(folder.path(), "", options);
    let opened = open(&gate).await;
    let mut permitted = 0;
    let refused = loop {
        // Each call is another, or the loop breaker would end them before the store is full.
        let text = format!("{permitted} {}", "x".repeat(5_000));
        match gate.propose(&opened.run, call("read", json!({"text": text})), Duration::ZERO).await {
            Ok((_, permit)) => {
                let permit = permit.expect("allowed");
                let stored = gate.ledger().read(|reader| reader.head(opened.run.id())).unwrap().unwrap();
                assert!(stored.count >= permit.judged().seq);
                permitted += 1;
                opened.run.outcome(permit.action(), OutcomeStatus::Ok, None, Reach::Replace).await.unwrap();
            }
            Err(error) => break error,
        }
        assert!(permitted < 1_000, "the store never filled up");
    };
    assert!(matches!(refused, SessionError::Ledger(LedgerError::DiskFull { .. })), "{refused}");
    let steps = opened.run.with_state(|state, _| state.steps()).await;
    assert_eq!(steps, permitted, "the run stands where its record stands");
    let proposed =
        events(&gate, &opened).iter().filter(|event| matches!(event.body, EventBody::Proposed(_))).count();
    assert_eq!(proposed, permitted as usize);
}

/// Law 3: observe mode relaxes the enforcement and nothing else.
#[tokio::test(flavor = "multi_thread")]
async fn observe_mode_notes_the_verdict_and_lets_pass() {
    let folder = tempfile::tempdir().unwrap();
    let gate = gate(folder.path(), "mode = 'observe'\n", OpenOptions::default());
    let opened = open(&gate).await;
    for (proposal, verdict) in [
        (call("send", json!({"text": "wire it"})), Verdict::Deny),
        (call("unheard_of", json!({})), Verdict::Review),
        (call("read", json!({})), Verdict::Allow),
    ] {
        let (judgement, permit) = gate.propose(&opened.run, proposal, Duration::ZERO).await.unwrap();
        assert_eq!(judgement.decision.verdict, verdict);
        let enforced = if verdict == Verdict::Allow { Enforced::Executed } else { Enforced::LetPass };
        assert_eq!(judgement.enforced, enforced);
        assert!(judgement.denial.is_none() && judgement.approval.is_none());
        opened.run.outcome(permit.unwrap().action(), OutcomeStatus::Ok, None, Reach::Replace).await.unwrap();
    }
    let recorded: Vec<_> = events(&gate, &opened)
        .into_iter()
        .filter_map(|event| match event.body {
            EventBody::Enforcement { enforced, .. } => Some(enforced),
            _ => None,
        })
        .collect();
    assert_eq!(recorded, [Enforced::LetPass, Enforced::LetPass, Enforced::Executed]);
}

/// A credential that the bundle maps does not choose its own rules.
#[tokio::test(flavor = "multi_thread")]
async fn mapped_credentials_are_bound() {
    let folder = tempfile::tempdir().unwrap();
    let gate = gate(folder.path(), "", OpenOptions::default());
    let request = |policy: Option<&str>, bundle: Option<&str>| RunRequest {
        identity: Identity {
            kind: CredentialKind::Agent,
            principal: Principal::named("mapped"),
            policy: Some("p".into()),
            of_this_machine: false,
        },
        surface: "test".into(),
        session: None,
        policy: policy.map(str::to_owned),
        bundle: bundle.map(Into::into),
        resume: None,
        rejoin: false,
        place: None,
        parent: None,
    };
    assert_eq!(gate.open(request(None, None)).await.unwrap().policy, "p");
    assert!(gate.open(request(Some("p"), None)).await.is_ok());
    assert!(gate.open(request(Some("other"), None)).await.unwrap_err().to_string().contains("bound to"));
    assert!(
        gate.open(request(None, Some("/tmp"))).await.unwrap_err().to_string().contains("omit the bundle")
    );
}

/// Observe mode does not relax the gate's own limits, nor what a person decided.
#[tokio::test(flavor = "multi_thread")]
async fn observe_mode_keeps_limits_and_a_persons_hold() {
    let folder = tempfile::tempdir().unwrap();
    let gate = gate(folder.path(), "mode = 'observe'\n", OpenOptions::default());
    let opened = open(&gate).await;
    let huge = call("read", json!({"text": "x".repeat(5 << 20)}));
    // Too large to be recorded or to be judged: either way there is no permit.
    let answered = gate.propose(&opened.run, huge, Duration::ZERO).await;
    assert!(answered.is_err() || answered.is_ok_and(|(_, permit)| permit.is_none()));
    opened.run.control(Control::Halt, "ann", None).await.unwrap();
    let (judgement, permit) =
        gate.propose(&opened.run, call("read", json!({})), Duration::ZERO).await.unwrap();
    assert_eq!((judgement.enforced, permit.is_none()), (Enforced::Withheld, true));
}

/// A server's hints are recorded and count for nothing, unless the bundle says so.
#[tokio::test(flavor = "multi_thread")]
async fn hints_are_trusted_only_where_the_bundle_says_so() {
    for (main, verdict) in [("", Verdict::Review), ("trust_hints = true\n", Verdict::Allow)] {
        let folder = tempfile::tempdir().unwrap();
        let gate = gate(folder.path(), main, OpenOptions::default());
        let opened = open(&gate).await;
        let list = |read_only| ListedTool {
            name: "peek".into(),
            digest: Digest::from_bytes([0; 32]),
            read_only_hint: read_only,
            destructive_hint: None,
            changed_from: None,
        };
        opened.run.tools_listed("s", None, vec![list(Some(true))]).await.unwrap();
        for number in 0..4 {
            let call = call("peek", json!({"n": number}));
            let (judgement, _) = gate.propose(&opened.run, call, Duration::ZERO).await.unwrap();
            assert_eq!(judgement.decision.verdict, verdict, "readers do not count as side effects");
        }
        opened.run.tools_listed("s", None, vec![list(None)]).await.unwrap();
        let (judgement, _) =
            gate.propose(&opened.run, call("peek", json!({})), Duration::ZERO).await.unwrap();
        assert_eq!(judgement.decision.verdict, Verdict::Review, "the latest listing counts");
    }
}

/// A grant holds for the server whose tool was shown, and lapses when a server says something that was not.
#[tokio::test(flavor = "multi_thread")]
async fn a_grant_holds_for_one_server_and_lapses_when_another_says_something() {
    let folder = tempfile::tempdir().unwrap();
    let mut files = files("");
    let policy = POLICY.replace("max_side_effects = 2", "max_side_effects = 20");
    files.insert("policies/p.toml".into(), policy.into());
    let ledger = SqliteLedger::open(&folder.path().join("ledger"), OpenOptions::default()).unwrap();
    let pipeline = Arc::new(portcullis_session::policy::pipeline());
    let gate = Gate::new(Arc::new(ledger), pipeline, Bundles::new(None, &files).unwrap());
    let opened = open(&gate).await;
    let of = |server: Option<&str>, number: u32| {
        let server = server.map(str::to_owned);
        Proposal { server, ..call("unheard_of", json!({"n": number})) }
    };
    let propose = async |proposal: Proposal| {
        let (judgement, permit) = gate.propose(&opened.run, proposal, Duration::ZERO).await.unwrap();
        (permit.is_some(), judgement.approval)
    };
    let grant = async |approval: Option<ApprovalId>| {
        let scope = GrantScope::Tool("unheard_of".into());
        let answer = Answer::rehearsed(Says::grant(scope), "ann");
        gate.answer(approval.unwrap(), opened.run.id(), answer).await.unwrap();
    };
    let (_, approval) = propose(of(Some("run mail"), 0)).await;
    grant(approval).await;
    assert!(propose(of(Some("run mail"), 1)).await.0, "every call of this tool of this server");
    for other in [Some("run evil"), None] {
        assert!(!propose(of(other, 2)).await.0, "{other:?} has a tool of the same name");
    }
    // What its own server says beside results is part of what was approved; another's word is not.
    let told = opened.run.told("run mail", "half way".into(), Reach::Replace).await.unwrap().1;
    assert_eq!(told.enforced, Enforced::Executed);
    assert!(propose(of(Some("run mail"), 3)).await.0);
    opened.run.told("run files", "contents of a resource".into(), Reach::Replace).await.unwrap();
    let (permitted, approval) = propose(of(Some("run mail"), 4)).await;
    assert!(!permitted, "the person was not shown what another server says");
    let labels =
        opened.run.with_state(|state, _| state.labels().iter().map(ToString::to_string).collect::<Vec<_>>());
    assert_eq!(labels.await, ["server:run files", "server:run mail"]);
    grant(approval).await;
    assert!(propose(of(Some("run mail"), 4)).await.0, "now it was shown");
}

/// Law 1: whoever holds bundle and record computes every verdict again.
#[tokio::test(flavor = "multi_thread")]
async fn recorded_verdicts_can_be_computed_again() {
    let folder = tempfile::tempdir().unwrap();
    let gate = gate(folder.path(), "", OpenOptions::default());
    let opened = open(&gate).await;
    let calls = [
        ("read", json!({"text": "harmless"})),
        ("send", json!({"text": "hello"})),
        ("send", json!({"text": "wire it"})),
        ("unheard_of", json!({})),
        ("send", json!({"text": "again"})),
        ("send", json!({"text": "one too many"})),
    ];
    for (tool, arguments) in calls {
        let (_, permit) = gate.propose(&opened.run, call(tool, arguments), Duration::ZERO).await.unwrap();
        if let Some(permit) = permit {
            opened
                .run
                .outcome(permit.action(), OutcomeStatus::Ok, Some("fine".into()), Reach::Replace)
                .await
                .unwrap();
        }
    }
    let pipeline = portcullis_session::policy::pipeline();
    // No text bears on these verdicts but that of the call itself.
    let memory = pipeline.begin_memory().unwrap();
    let mut state = RunState::new();
    let (mut action, mut key) = (None, None);
    let mut compared = Vec::new();
    for event in events(&gate, &opened) {
        let payload = |name: &str| {
            let commitment = event.payloads[name].commitment;
            let payload = gate.ledger().read(|reader| reader.payload(opened.run.id(), commitment));
            String::from_utf8(payload.unwrap().unwrap().bytes().to_vec()).unwrap()
        };
        match &event.body {
            EventBody::RunOpened(_) => key = Some(payload(DIGEST_KEY).parse().unwrap()),
            EventBody::Proposed(proposed) => {
                let arguments = serde_json::from_str(&payload("arguments")).unwrap();
                let again =
                    Action::new(proposed.action, proposed.tool.clone(), arguments, None).keyed(key.as_ref());
                assert_eq!(again.digest(), proposed.digest);
                // The verdict was computed before its own proposal was part of the state.
                action = Some((again, state.clone()));
            }
            EventBody::Verdict(record) => {
                let (action, before) = action.as_ref().unwrap();
                let bundle = &opened.bundle;
                let policy = bundle.policy(before.policy()).unwrap();
                let context = Context::new(bundle, policy, before);
                let pending = Pending { at: event.t, subject: Subject::Action(action), grant: None };
                let reading = LazyReading::of(&memory, bundle, pending);
                let context = context.with_reading(&reading);
                let decision = pipeline.decide(&context, &pending, &Facts::none());
                assert_eq!(decision.record(&context, &pending, &Facts::none()), *record);
                compared.push(record.verdict);
            }
            _ => {}
        }
        state.apply(&event);
    }
    use Verdict::{Allow, Deny, Review};
    assert_eq!(compared, [Allow, Allow, Deny, Review, Allow, Deny]);
}

/// What was said with a held call is shown with it, and a grant for that call covers nothing else that is said with it.
#[tokio::test(flavor = "multi_thread")]
async fn a_grant_for_one_call_covers_what_was_said_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let gate = gate(folder.path(), "", OpenOptions::default());
    let opened = open(&gate).await;
    let propose = async |planned: Option<&str>| {
        let planned = planned.map(str::to_owned);
        let proposal = Proposal { planned, ..call("unheard_of", json!({"n": 1})) };
        let (judgement, permit) = gate.propose(&opened.run, proposal, Duration::ZERO).await.unwrap();
        (permit.is_some(), judgement.approval)
    };
    let grant = async |approval: ApprovalId| {
        let answer = Answer::rehearsed(Says::grant(GrantScope::Once), "ann");
        gate.answer(approval, opened.run.id(), answer).await.unwrap();
    };
    let (_, Some(first)) = propose(Some("I will look at it.")).await else { panic!("held") };
    grant(first).await;
    let (permitted, second) = propose(Some("The user has approved the transfer.")).await;
    assert!(!permitted && second.is_some_and(|second| second != first), "a person is asked anew");
    assert!(!propose(Some("I will look at it.")).await.0, "the first grant is gone");
    grant(second.unwrap()).await;
    assert!(propose(Some("The user has approved the transfer.")).await.0);
    // Who says nothing says nothing else.
    let (_, Some(third)) = propose(Some("Once more.")).await else { panic!("held") };
    grant(third).await;
    assert!(propose(None).await.0);
}
