//! Calls that wait for a person, over `/v1`.

use std::time::Duration;

use portcullis_core::denial::DenialClass;
use portcullis_core::event::{Control, Enforced};
use portcullis_gateway::api::{
    ApprovalFilter, ApprovalPhase, ControlRun, GrantApproval, ProposeAction, RefuseApproval, ReportInput,
    Role, Scope,
};
use portcullis_gateway::client::Client;
use portcullis_session::engine::Reach;
use serde_json::json;

use crate::daemon::{Daemon, POLICY, done, mail, open};

/// Looks at a request and grants it.
async fn grant(approver: &Client, id: &str) {
    let shown = approver.approval(id).await.unwrap();
    approver.grant(id, &GrantApproval::of(&shown)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grant_covers_what_was_looked_at_and_nothing_after() {
    let daemon = Daemon::start().await;
    let (agent, approver) = (daemon.agent(), daemon.approver());
    let run = agent.open_run(&open("mail", None)).await.unwrap().run;
    let held = agent.propose(run, &mail(1, 0)).await.unwrap();
    let id = held.judged().approval.unwrap().to_string();

    let unseen = approver.grant(&id, &GrantApproval::default()).await.unwrap_err();
    assert_eq!(unseen.code(), Some("not_shown"));
    let listed = approver.approvals(ApprovalFilter::Pending).await.unwrap();
    assert_eq!(listed[0].shown, None, "a listing is no place to decide from");
    let shown = approver.approval(&id).await.unwrap();
    // Between the look and the answer the run reads something.
    let said = ReportInput { text: "hello".into(), role: Role::Operator, reach: Reach::Replace };
    approver.input(run, &said).await.unwrap();
    let changed = approver.grant(&id, &GrantApproval::of(&shown)).await.unwrap_err();
    assert_eq!(changed.code(), Some("changed"));
    assert!(!agent.propose(run, &mail(1, 0)).await.unwrap().is_permitted());

    grant(&approver, &id).await;
    let note = Some("not before noon".to_owned());
    assert!(agent.propose(run, &mail(1, 0)).await.unwrap().is_permitted());
    let other = agent.propose(run, &mail(2, 0)).await.unwrap().judged().approval.unwrap().to_string();
    approver.refuse(&other, &RefuseApproval { note }).await.unwrap();
    let refused = agent.propose(run, &mail(2, 0)).await.unwrap().denial().cloned().unwrap();
    assert!(refused.message.ends_with(": not before noon"), "the agent is told why: {}", refused.message);
    let after = approver.approval(&other).await.unwrap();
    assert_eq!(after.note.as_deref(), Some("not before noon"));
    assert!(after.decided_by.is_some() && after.decided_at.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_shown_with_the_answers_and_the_directory_that_go_along() {
    let daemon = Daemon::start().await;
    let (agent, approver) = (daemon.agent(), daemon.approver());
    let run = agent.open_run(&open("mail", None)).await.unwrap().run;
    let answers = json!({"inputResponses": {"to": "otto@example.com"}});
    let proposal = ProposeAction {
        continuation: Some(answers.clone()),
        directory: Some("/srv/work".into()),
        ..mail(1, 0)
    };
    let held = agent.propose(run, &proposal).await.unwrap();
    let shown = approver.approval(&held.judged().approval.unwrap().to_string()).await.unwrap();
    assert_eq!((shown.continuation, shown.directory.as_deref()), (Some(answers), Some("/srv/work")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_held_calls_is_denied_and_hides_nobody_elses() {
    let daemon = Daemon::start_with_bundle(|bundle| {
        let roomy = POLICY.replace("max_steps = 50", "max_steps = 500");
        std::fs::write(bundle.join("policies/mail.toml"), roomy).unwrap();
    })
    .await;
    let (agent, approver) = (daemon.agent(), daemon.approver());
    let run = agent.open_run(&open("mail", None)).await.unwrap().run;
    let said = ReportInput { text: "Never write to Otto!".into(), role: Role::User, reach: Reach::Replace };
    approver.input(run, &said).await.unwrap();
    for number in 0..100 {
        assert_eq!(agent.propose(run, &mail(number, 0)).await.unwrap().judged().enforced, Enforced::Held);
    }
    let over = agent.propose(run, &mail(100, 0)).await.unwrap().denial().cloned().unwrap();
    assert!(over.message.contains("100 requests of this run are waiting for a person"), "{}", over.message);
    let again = agent.propose(run, &mail(3, 0)).await.unwrap();
    assert_eq!(again.judged().enforced, Enforced::Held, "what waits already goes on waiting");
    let waiting = approver.approvals(ApprovalFilter::Pending).await.unwrap();
    assert_eq!(waiting.len(), 100);
    // Nor does it hide what the user said, some 400 events ago.
    let latest = waiting.iter().max_by_key(|request| request.requested_at).unwrap();
    let shown = approver.approval(&latest.approval.to_string()).await.unwrap();
    let before: Vec<(&str, &str)> =
        shown.before.iter().map(|before| (before.who.as_str(), before.text.as_str())).collect();
    assert_eq!(before[0], ("user", "Never write to Otto!"));
    assert!(before.len() == 6 && shown.earlier, "{before:?}");
    let text = portcullis_gateway::request_text::fields(&shown);
    let (_, text) = text.iter().find(|(name, _)| *name == "before").unwrap();
    assert!(text.starts_with("(not all that happened before is shown)\n"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_held_call_executes_once_after_a_grant_and_agents_cannot_grant() {
    let daemon = Daemon::start().await;
    let (agent, approver) = (daemon.agent(), daemon.approver());
    let run = agent.open_run(&open("mail", None)).await.unwrap().run;
    let held = agent.propose(run, &mail(1, 0)).await.unwrap();
    assert_eq!((held.judged().enforced, held.is_permitted()), (Enforced::Held, false));
    let denial = held.denial().cloned().unwrap();
    assert_eq!((denial.class, denial.approval), (DenialClass::ApprovalPending, held.judged().approval));
    let id = held.judged().approval.unwrap().to_string();

    let refused = agent.grant(&id, &GrantApproval::default()).await.unwrap_err();
    assert_eq!(refused.code(), Some("forbidden"));
    let listed = approver.approvals(ApprovalFilter::Pending).await.unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].arguments.as_ref().unwrap()["subject"], "1");
    assert_eq!(listed[0].rule.as_deref(), Some("runtime-policy/approval"));

    // A waiting call goes ahead the moment the grant is durable.
    let waiting = {
        let agent = daemon.agent();
        tokio::spawn(async move { agent.propose(run, &mail(1, 20_000)).await.unwrap() })
    };
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(!waiting.is_finished());
    grant(&approver, id.get(..8).unwrap()).await;
    let granted = waiting.await.unwrap();
    assert_eq!(
        (granted.is_permitted(), granted.judged().action, granted.judged().step),
        (true, held.judged().action, held.judged().step)
    );
    agent.outcome(run, &done(granted.judged())).await.unwrap();

    // The grant is used up: the same call is held again, under a new approval.
    let again = agent.propose(run, &mail(1, 0)).await.unwrap();
    assert_eq!(again.judged().enforced, Enforced::Held);
    assert_ne!(again.judged().approval, held.judged().approval);
    let shown = approver.approval(&id).await.unwrap();
    let decided = approver.grant(&id, &GrantApproval::of(&shown)).await.unwrap_err();
    assert_eq!(decided.code(), Some("conflict"));
    approver.refuse(&again.judged().approval.unwrap().to_string(), &RefuseApproval::default()).await.unwrap();
    let no = agent.propose(run, &mail(1, 0)).await.unwrap();
    assert_eq!(no.denial().cloned().unwrap().class, DenialClass::ApprovalRefused);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_when_a_run_is_closed_lapses() {
    let daemon = Daemon::start().await;
    let (agent, approver) = (daemon.agent(), daemon.approver());
    let run = agent.open_run(&open("mail", None)).await.unwrap().run;
    let held = agent.propose(run, &mail(1, 0)).await.unwrap();
    assert!(held.judged().seq > 0);
    agent.close(run).await.unwrap();
    assert!(approver.approvals(ApprovalFilter::Pending).await.unwrap().is_empty());
    let lapsed = approver.approval(&held.judged().approval.unwrap().to_string()).await.unwrap();
    assert_eq!(lapsed.state, ApprovalPhase::Expired);
    let mut export = Vec::new();
    agent.export(&run.to_string(), &mut export).await.unwrap();
    let report = portcullis_proof::verify(export.as_slice(), None).unwrap();
    assert_eq!(
        (report.status, report.failure),
        (portcullis_proof::Status::Incomplete, None),
        "only unanchored"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grant_for_a_tool_covers_its_calls_up_to_the_limit() {
    let daemon = Daemon::start().await;
    let (agent, approver) = (daemon.agent(), daemon.approver());
    let run = agent.open_run(&open("mail", None)).await.unwrap().run;
    let held = agent.propose(run, &mail(1, 0)).await.unwrap();
    let id = held.judged().approval.unwrap().to_string();
    let shown = approver.approval(&id).await.unwrap();
    let grant =
        GrantApproval { scope: Scope::Tool, note: Some("this batch".into()), ..GrantApproval::of(&shown) };
    approver.grant(&id, &grant).await.unwrap();
    for number in 1..=2 {
        let answer = agent.propose(run, &mail(number, 0)).await.unwrap();
        assert!(answer.is_permitted(), "{answer:?}");
        agent.outcome(run, &done(answer.judged())).await.unwrap();
    }
    let over = agent.propose(run, &mail(3, 0)).await.unwrap();
    assert_eq!(over.denial().cloned().unwrap().rule, "runtime-policy/side-effect-limit");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_that_goes_away_while_waiting_executes_nothing() {
    let daemon = Daemon::start().await;
    let (agent, approver) = (daemon.agent(), daemon.approver());
    let run = agent.open_run(&open("mail", None)).await.unwrap().run;
    let waiting = {
        let agent = daemon.agent();
        tokio::spawn(async move { agent.propose(run, &mail(1, 20_000)).await })
    };
    let approval = loop {
        if let Some(approval) = approver.approvals(ApprovalFilter::Pending).await.unwrap().pop() {
            break approval;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    waiting.abort();
    tokio::time::sleep(Duration::from_millis(100)).await;
    grant(&approver, &approval.approval.to_string()).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    let info = approver.run(&run.to_string()).await.unwrap();
    assert_eq!(info.side_effects, 0, "nothing executes without a live caller");
    assert!(agent.propose(run, &mail(1, 0)).await.unwrap().is_permitted(), "the retry claims the grant");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_note_that_no_event_should_hold_is_refused_with_its_limit() {
    let daemon = Daemon::start().await;
    let (agent, approver) = (daemon.agent(), daemon.approver());
    let run = agent.open_run(&open("mail", None)).await.unwrap().run;
    let id = agent.propose(run, &mail(1, 0)).await.unwrap().judged().approval.unwrap().to_string();
    let note = Some("x".repeat(2 << 20));
    let shown = approver.approval(&id).await.unwrap();
    let granted = GrantApproval { note: note.clone(), ..GrantApproval::of(&shown) };
    let control = ControlRun { control: Control::Halt, note: note.clone() };
    for refused in [
        approver.grant(&id, &granted).await.map(drop),
        approver.refuse(&id, &RefuseApproval { note }).await.map(drop),
        approver.control(&run.to_string(), &control).await.map(drop),
    ] {
        let refused = refused.unwrap_err();
        assert_eq!(refused.code(), Some("bad_request"), "{refused}");
        assert!(refused.to_string().contains("longer than the limit of 16384 bytes"), "{refused}");
    }
    let note = Some("x".repeat(16 << 10));
    approver.refuse(&id, &RefuseApproval { note }).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_for_another_list_gets_it_when_it_is_there() {
    let daemon = Daemon::start().await;
    let (agent, approver) = (daemon.agent(), daemon.approver());
    let run = agent.open_run(&open("mail", None)).await.unwrap().run;
    let empty = approver.next_approvals(None).await.unwrap();
    assert!(empty.approvals.is_empty());
    let waiting = {
        let approver = daemon.approver();
        tokio::spawn(async move { approver.next_approvals(empty.version).await })
    };
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!waiting.is_finished(), "the list is still the same");
    let id = agent.propose(run, &mail(1, 0)).await.unwrap().judged().approval.unwrap();
    let soon = Duration::from_secs(10);
    let listed = tokio::time::timeout(soon, waiting).await.expect("told").unwrap().unwrap();
    assert_eq!(listed.approvals.iter().map(|info| info.approval).collect::<Vec<_>>(), [id]);
    // A list that is another one already is not waited for.
    let at_once = approver.next_approvals(empty.version);
    let at_once = tokio::time::timeout(soon, at_once).await.expect("at once").unwrap();
    assert_eq!(at_once.version, listed.version);
    let decided = {
        let approver = daemon.approver();
        tokio::spawn(async move { approver.next_approvals(listed.version).await })
    };
    approver.refuse(&id.to_string(), &RefuseApproval { note: None }).await.unwrap();
    let after = tokio::time::timeout(soon, decided).await.expect("told").unwrap().unwrap();
    assert_eq!((after.approvals.len(), after.version), (0, empty.version));
    let info = approver.run(&run.to_string()).await.unwrap();
    assert_eq!((info.pending_approvals, info.verdicts.review, info.segments), (0, 1, 1));
}
