//! What approvers can say, over `/v1`, and what becomes of it.

use std::path::Path;
use std::time::{Duration, Instant};

use portcullis_core::denial::DenialClass;
use portcullis_core::event::Enforced;
use portcullis_core::id::{Digest, RunId};
use portcullis_gateway::api::{
    AnswerApproval, ApprovalFilter, ApprovalInfo, ApprovalPhase, GrantApproval, GrantApprovals, Lasting,
    RefuseApproval, RevokeApproval, Scope, ShownApproval,
};
use portcullis_gateway::client::{Client, Proposed};
use serde_json::json;

use crate::daemon::{Daemon, POLICY, done, mail, open};

/// A daemon whose bundle says this of approvals, and whose runs may send much mail.
async fn daemon(approvals: &'static str) -> Daemon {
    Daemon::start_with_bundle(move |bundle: &Path| {
        let roomy = POLICY.replace("max_steps = 50", "max_steps = 500");
        let roomy = roomy.replace("max_side_effects = 2", "max_side_effects = 400");
        std::fs::write(bundle.join("policies/mail.toml"), roomy).unwrap();
        let main = bundle.join("portcullis.toml");
        let text = std::fs::read_to_string(&main).unwrap();
        std::fs::write(main, format!("{text}\n{approvals}")).unwrap();
    })
    .await
}

async fn held(agent: &Client, run: RunId, number: u32) -> String {
    let held = agent.propose(run, &mail(number, 0)).await.unwrap();
    assert_eq!(held.judged().enforced, Enforced::Held);
    held.judged().approval.unwrap().to_string()
}

async fn shown(approver: &Client, id: &str) -> ShownApproval {
    let shown = approver.approval(id).await.unwrap().shown.unwrap();
    ShownApproval { approval: id.to_owned(), shown }
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_granted_together_as_they_were_shown() {
    let daemon = daemon("").await;
    let (agent, approver) = (daemon.agent(), daemon.approver());
    let run = agent.open_run(&open("mail", None)).await.unwrap().run;
    let ids = [held(&agent, run, 1).await, held(&agent, run, 2).await, held(&agent, run, 3).await];
    let mut approvals = Vec::new();
    for id in &ids {
        approvals.push(shown(&approver, id).await);
    }
    approver.refuse(&ids[1], &RefuseApproval::default()).await.unwrap();
    approvals[2].shown = Digest::from_bytes([0; 32]);
    approvals.push(ShownApproval { approval: "ffffffffffff".into(), shown: approvals[0].shown });
    let request = GrantApprovals { approvals, note: Some("the batch".into()) };
    let refused = agent.grant_together(&request).await.unwrap_err();
    assert_eq!(refused.code(), Some("forbidden"));
    let done = approver.grant_together(&request).await.unwrap();
    assert_eq!(done.granted.iter().map(ToString::to_string).collect::<Vec<_>>(), [ids[0].clone()]);
    let why: Vec<(&str, &str)> =
        done.skipped.iter().map(|skipped| (skipped.approval.as_str(), skipped.code.as_str())).collect();
    let expected = [(ids[1].as_str(), "conflict"), (&ids[2], "changed"), ("ffffffffffff", "not_found")];
    assert_eq!(why, expected);
    assert!(agent.propose(run, &mail(1, 0)).await.unwrap().is_permitted());
    assert!(!agent.propose(run, &mail(2, 0)).await.unwrap().is_permitted());
    assert!(!agent.propose(run, &mail(3, 0)).await.unwrap().is_permitted());
    assert_eq!(approver.approval(&ids[0]).await.unwrap().note.as_deref(), Some("the batch"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_and_changed_arguments_reach_the_agent_that_waits() {
    let daemon = daemon("").await;
    let (agent, approver) = (daemon.agent(), daemon.approver());
    let run = agent.open_run(&open("mail", None)).await.unwrap().run;
    let waiting = |number: u32| {
        let agent = daemon.agent();
        tokio::spawn(async move { agent.propose(run, &mail(number, 20_000)).await.unwrap() })
    };
    let request = async || loop {
        if let Some(request) = approver.approvals(ApprovalFilter::Pending).await.unwrap().pop() {
            return approver.approval(&request.approval.to_string()).await.unwrap();
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    };

    let call = waiting(1);
    let id = request().await.approval.to_string();
    let note = "write to the list, not to her".to_owned();
    let answered = approver.answer(&id, &AnswerApproval { note: note.clone() }).await.unwrap();
    assert_eq!(answered.state, ApprovalPhase::Answered);
    let denial = call.await.unwrap().denial().cloned().unwrap();
    assert_eq!((denial.class, denial.rule.as_str()), (DenialClass::Denied, "approval/answered"));
    assert!(denial.message.ends_with(&note), "{}", denial.message);

    let call = waiting(2);
    let request = request().await;
    let arguments = json!({"recipient": "list@example.com", "subject": "2", "body": "b"});
    let edit = GrantApproval { arguments: Some(arguments.clone()), ..GrantApproval::of(&request) };
    approver.grant(&request.approval.to_string(), &edit).await.unwrap();
    let Proposed::Permitted(permit) = call.await.unwrap() else { panic!("it was granted") };
    assert_eq!(permit.judged().enforced, Enforced::Replaced);
    assert_eq!(permit.edited_arguments(), Some(&arguments));
    agent.outcome(run, &done(permit.judged())).await.unwrap();
    let mut export = Vec::new();
    approver.export(&run.to_string(), &mut export).await.unwrap();
    let report = portcullis_proof::verify(export.as_slice(), None).unwrap();
    assert_eq!(report.failure, None, "the verifier knows these decisions");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grant_says_how_far_and_how_long_it_reaches_and_can_be_revoked() {
    let daemon = daemon("[approvals]\nrequire_note = true\n").await;
    let (agent, approver) = (daemon.agent(), daemon.approver());
    let run = agent.open_run(&open("mail", None)).await.unwrap().run;
    let id = held(&agent, run, 1).await;
    let request = approver.approval(&id).await.unwrap();
    assert!(request.wanted.as_ref().is_some_and(|wanted| wanted.note));
    let grant = |change: fn(GrantApproval) -> GrantApproval| {
        let base = GrantApproval { note: Some("ok".into()), ..GrantApproval::of(&request) };
        change(base)
    };
    for (wrong, code) in [
        (grant(|grant| GrantApproval { note: None, ..grant }), "conflict"),
        (grant(|grant| GrantApproval { scope: Scope::Pattern, ..grant }), "bad_request"),
        (grant(|grant| GrantApproval { patterns: vec!["path /srv/*".into()], ..grant }), "bad_request"),
        (grant(|grant| GrantApproval { scope: Scope::Effects, ..grant }), "not_by_effects"),
        (
            grant(|grant| GrantApproval {
                lasts: Some(Lasting::Task),
                until: Some(grant.until.unwrap_or(portcullis_core::time::Timestamp::from_micros(0))),
                ..grant
            }),
            "bad_request",
        ),
    ] {
        let error = approver.grant(&id, &wrong).await.unwrap_err();
        assert_eq!(error.code(), Some(code), "{wrong:?}: {error}");
    }
    let session =
        grant(|grant| GrantApproval { scope: Scope::Arguments, lasts: Some(Lasting::Session), ..grant });
    approver.grant(&id, &session).await.unwrap();
    for _ in 0..2 {
        let answer = agent.propose(run, &mail(1, 0)).await.unwrap();
        assert!(answer.is_permitted());
        agent.outcome(run, &done(answer.judged())).await.unwrap();
    }
    let forbidden = agent.revoke(&id, &RevokeApproval::default()).await.unwrap_err();
    assert_eq!(forbidden.code(), Some("forbidden"));
    let note = Some("enough".to_owned());
    let revoked: ApprovalInfo = approver.revoke(&id, &RevokeApproval { note }).await.unwrap();
    assert_eq!(revoked.state, ApprovalPhase::Revoked);
    assert_eq!(agent.propose(run, &mail(1, 0)).await.unwrap().judged().enforced, Enforced::Held);
}

#[tokio::test(flavor = "multi_thread")]
async fn beyond_the_limit_requests_are_queued_and_the_operator_is_told_what_asks() {
    let daemon = daemon("[approvals]\nquestions_per_hour = 2\n").await;
    let (agent, approver) = (daemon.agent(), daemon.approver());
    let run = agent.open_run(&open("mail", None)).await.unwrap().run;
    let mut ids = Vec::new();
    for number in 0..5 {
        ids.push(held(&agent, run, number).await);
    }
    let list = approver.list_approvals(ApprovalFilter::Pending).await.unwrap();
    assert_eq!(list.approvals.len(), 2);
    let queued = list.queued.unwrap();
    assert_eq!((queued.waiting, queued.per_hour, queued.of_rule), (3, 2, 5));
    assert_eq!(queued.rule.as_deref(), Some("runtime-policy/approval"));
    assert_eq!(agent.list_approvals(ApprovalFilter::Pending).await.unwrap().queued, None);
    // What is queued is decided by its id; nothing is decided by the limit.
    let last = ids.last().unwrap();
    let ShownApproval { shown, .. } = shown(&approver, last).await;
    approver.grant(last, &GrantApproval { shown: Some(shown), ..GrantApproval::default() }).await.unwrap();
    assert!(agent.propose(run, &mail(4, 0)).await.unwrap().is_permitted());
    assert!(!agent.propose(run, &mail(3, 0)).await.unwrap().is_permitted());
    let stats = approver.approval_stats().await.unwrap();
    assert_eq!((stats.rules[0].asked, stats.rules[0].granted), (5, 1));
    assert_eq!((stats.approvers[0].approver.as_str(), stats.approvers[0].granted), ("local-approver", 1));
    assert_eq!(agent.approval_stats().await.unwrap_err().code(), Some("forbidden"));
}

#[tokio::test(flavor = "multi_thread")]
async fn of_thirty_two_claimants_one_gets_the_grant() {
    let daemon = daemon("").await;
    let (agent, approver) = (daemon.agent(), daemon.approver());
    let run = agent.open_run(&open("mail", None)).await.unwrap().run;
    let id = held(&agent, run, 1).await;
    let claimants: Vec<_> = (0..32)
        .map(|_| {
            let agent = daemon.agent();
            tokio::spawn(async move { agent.propose(run, &mail(1, 20_000)).await })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(200)).await;
    let ShownApproval { shown, .. } = shown(&approver, &id).await;
    approver.grant(&id, &GrantApproval { shown: Some(shown), ..GrantApproval::default() }).await.unwrap();
    let begun = Instant::now();
    let mut permits = 0;
    // Whoever came too late asks a new question, which is refused.
    let (mut left, mut refused) = (claimants, false);
    while let Some(next) = left.pop() {
        while !next.is_finished() && begun.elapsed() < Duration::from_secs(15) {
            let again = approver.approvals(ApprovalFilter::Pending).await.unwrap();
            if let Some(request) = again.first().filter(|_| !refused) {
                refused = true;
                approver.refuse(&request.approval.to_string(), &RefuseApproval::default()).await.unwrap();
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        permits += usize::from(next.await.unwrap().unwrap().is_permitted());
    }
    assert_eq!(permits, 1);
    let info = approver.run(&run.to_string()).await.unwrap();
    assert_eq!(info.side_effects, 1);
}
