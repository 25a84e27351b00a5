//! Replies held against the documents of a run: retrieved ones, and those that come with the reply.

use portcullis_core::event::{Enforced, OutcomeStatus};
use portcullis_core::verdict::Verdict;
use portcullis_gateway::api::{ReportInput, ReportOutcome, ReportOutput, Role};
use portcullis_session::engine::Reach;
use serde_json::{Value, json};

use crate::daemon::{Daemon, call, open};

fn reply(text: &str, documents: Option<Value>) -> ReportOutput {
    ReportOutput { text: text.into(), documents, reach: Reach::Replace, wait_ms: None, last: false }
}

#[tokio::test(flavor = "multi_thread")]
async fn replies_are_held_against_the_documents_that_the_run_retrieved() {
    let daemon = Daemon::start().await;
    let agent = daemon.agent();
    let opened = agent.open_run(&open("Strict Compliance Policy", None)).await.unwrap();
    let run = opened.run;
    let said = |text: &str| ReportInput { text: text.into(), role: Role::User, reach: Reach::Replace };
    let asked = agent.input(run, &said("How are external reports anonymized?")).await.unwrap();
    let retrieve = call("retrieve_compliance_documents", json!({"query": "external report"}), 0);
    let answer = agent.propose(run, &retrieve).await.unwrap();
    assert!(answer.is_permitted());
    let content =
        json!({"documents": [{"id": "doc_001", "snippet": "External reports are anonymized first."}]});
    let outcome = ReportOutcome::of(answer.judged().action, OutcomeStatus::Ok, Some(content.to_string()));
    let seen = agent.outcome(run, &outcome).await.unwrap();

    let good = agent.output(run, &reply("They are anonymized first [DOC:doc_001].", None)).await.unwrap();
    assert_eq!((good.verdict, good.enforced), (Verdict::Allow, Enforced::Executed));
    let verified = good.verification.unwrap();
    assert!(!verified.fails());
    // The reply is the event before the evidence about it; it rests on the input and on the result.
    assert!(verified.checks.iter().all(|result| result.event == Some(good.seq - 1)));
    assert!(verified.checks[2].related.contains(&(asked.seq)), "{:?} {}", verified.checks[2], asked.seq);
    assert_eq!(verified.documents[0].event, Some(seen.seq));

    let bad = agent.output(run, &reply("They are not [DOC:doc_999].", None)).await.unwrap();
    assert_eq!((bad.verdict, bad.enforced), (Verdict::Review, Enforced::Held));
    let denial = bad.denial.unwrap();
    assert_eq!(denial.rule, "output/verification/citation-match");
    assert!(bad.verification.unwrap().fails());

    // The shipped bundle takes no documents on the word of whoever hands the reply over.
    let given = json!({"doc_999": "External reports are anonymized first."});
    let refused = agent.output(run, &reply("So [DOC:doc_999].", Some(given.clone()))).await.unwrap_err();
    assert!(refused.to_string().contains("does not accept documents"), "{refused}");
    let wrong = agent.output(run, &reply("So [DOC:doc_999].", Some(json!([1])))).await.unwrap_err();
    assert!(wrong.to_string().contains("documents must be a list"), "{wrong}");
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_may_come_with_the_reply_where_the_bundle_takes_them() {
    let mut bundle = None;
    let daemon = Daemon::start_with(|options| {
        let main = options.bundle.clone().unwrap().join("portcullis.toml");
        let text = std::fs::read_to_string(&main).unwrap();
        std::fs::write(&main, text + "\nverification.given_documents = true\n").unwrap();
        bundle = Some(main);
    })
    .await;
    let agent = daemon.agent();
    let run = agent.open_run(&open("Strict Compliance Policy", None)).await.unwrap().run;
    let given = json!([{"id": "a-1", "text": "External reports are anonymized first."}]);
    let good = agent.output(run, &reply("So it is [DOC:a-1].", Some(given.clone()))).await.unwrap();
    assert_eq!(good.verdict, Verdict::Allow);
    let verified = good.verification.unwrap();
    assert_eq!((verified.documents[0].id.as_str(), verified.documents[0].event), ("a-1", None));
    let bad = agent.output(run, &reply("So it is [DOC:a-2].", Some(given))).await.unwrap();
    assert_eq!(bad.verdict, Verdict::Review);
}
