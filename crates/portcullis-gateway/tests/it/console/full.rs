//! A console with something on it: many runs, a long one, tabs side by side.

use std::time::{Duration, Instant};

use portcullis_console::Role as Seat;
use portcullis_core::event::{Event, EventBody, OutcomeStatus};
use portcullis_core::id::RunId;
use portcullis_core::principal::CredentialKind;
use portcullis_gateway::api::{ApprovalFilter, RefuseApproval, ReportOutcome};
use portcullis_gateway::client::Client;
use serde_json::json;

use super::browser::Browser;
use super::{Console, said};
use crate::daemon::{call, mail, open};

/// A run that reads documents, one call after the other.
async fn reads(agent: &Client, run: RunId, calls: usize) {
    for number in 0..calls {
        let query = json!({"query": format!("anonymization, part {number}")});
        let read = agent.propose(run, &call("retrieve_compliance_documents", query, 0)).await.unwrap();
        if read.is_permitted() {
            let text = format!("External reports are anonymized before they leave, part {number}.");
            agent
                .outcome(run, &ReportOutcome::of(read.judged().action, OutcomeStatus::Ok, Some(text)))
                .await
                .unwrap();
        }
    }
}

async fn filled(console: &Console) -> Vec<RunId> {
    let agent = console.daemon.agent();
    let mut runs = Vec::new();
    for (number, asked) in [
        "How are external reports anonymized?",
        "Send an email to a@example.com that the report is done",
        "Work through the open data access requests",
        "Which channels are approved for raw financial data?",
    ]
    .into_iter()
    .enumerate()
    {
        let run = agent
            .open_run(&open(if number == 1 { "mail" } else { "Permissive Exploration Policy" }, None))
            .await
            .unwrap()
            .run;
        agent.input(run, &said(asked)).await.unwrap();
        reads(&agent, run, 2 + number).await;
        runs.push(run);
    }
    let held = agent.propose(runs[1], &mail(1, 0)).await.unwrap().judged().approval.unwrap().to_string();
    let note = Some("not before the numbers are checked".to_owned());
    console.daemon.approver().refuse(&held, &RefuseApproval { note }).await.unwrap();
    agent
        .propose(
            runs[1],
            &call("send_email", json!({"recipient": "b@example.com", "subject": "2", "body": "b"}), 0),
        )
        .await
        .unwrap();
    agent
        .propose(
            runs[1],
            &call("send_email", json!({"recipient": "c@example.com", "subject": "3", "body": "b"}), 0),
        )
        .await
        .unwrap();
    agent.propose(runs[2], &call("restart_server", json!({"host": "db1"}), 0)).await.unwrap();
    agent
        .propose(
            runs[2],
            &call("write_file_to_storage", json!({"filename": "classified.txt", "content": "classified"}), 0),
        )
        .await
        .unwrap();
    let answer = "By removing names [DOC:doc_001], and for 95 % of them in time.";
    let output = serde_json::from_value(json!({"text": answer})).unwrap();
    agent.output(runs[0], &output).await.unwrap();
    agent.close(runs[3]).await.unwrap();
    runs
}

/// The event of the first call of a tool.
async fn call_of(console: &Console, run: RunId, tool: &str) -> u64 {
    let (_, _, lines) =
        console.daemon.gets(CredentialKind::Approver).get(&format!("/v1/runs/{run}/events?limit=1000")).await;
    let mut events = lines.split(|byte| *byte == b'\n').filter_map(|line| Event::from_line(line).ok());
    let is_call = |event: &Event| matches!(&event.body, EventBody::Proposed(call) if call.tool.as_deref() == Some(tool));
    events.find(is_call).unwrap().seq
}

#[tokio::test(flavor = "multi_thread")]
async fn what_goes_on_is_seen_on_every_page() {
    let console = Console::start().await;
    let Some(browser) = Browser::start().await else { return };
    let runs = filled(&console).await;
    console.person("vera", Seat::Viewer).await;
    console.person("otto", Seat::Approver).await;
    browser.sign_in(&console.link().await).await;
    browser.until("document.querySelector('h1').innerText.includes('calls wait for a person')").await;
    let gaps = browser.text("[aria-label='What is not covered']").await;
    assert!(gaps.contains("restart_server") && gaps.contains("Tool Registry"), "{gaps}");
    browser.pictures("overview-full").await;
    browser.accessible("overview-full").await;
    let waiting = console.daemon.approver().approvals(ApprovalFilter::Pending).await.unwrap();
    let unknown = waiting.iter().find(|info| info.tool == "restart_server").unwrap();
    let unknown = format!("/approvals/{}", unknown.approval);
    let run = format!("/runs/{}", runs[1]);
    let sent = format!("{run}?event={}", call_of(&console, runs[1], "send_email").await);
    for (path, name, expected) in [
        ("/runs".to_owned(), "runs-full", "Work through the open data access requests"),
        ("/runs?state=held".to_owned(), "runs-held", "that the report is done"),
        ("/runs?find=data+ACCESS".to_owned(), "runs-found", "Work through the open data access requests"),
        ("/runs?find=nobody".to_owned(), "runs-none", "None of these runs is like that"),
        (run.clone(), "run-full", "not before the numbers are checked"),
        (format!("{run}?at=12&event=12"), "run-event", "The line as it is stored"),
        (sent.clone(), "run-call", "Where its values come from"),
        (format!("/runs/{}", runs[0]), "run-reply", "1 of 1 number does not occur"),
        (format!("{run}?only=review"), "run-filtered", "review"),
        (format!("{run}?find=nothing"), "run-none", "Nothing in this run is like that"),
        ("/approvals".to_owned(), "approvals-full", "Send a message to b@example.com"),
        (unknown, "approval-unknown-tool", "Classify the tool"),
        ("/approvals?show=decided".to_owned(), "approvals-decided", "refused"),
        ("/approvals?show=lapsed".to_owned(), "approvals-lapsed", "No request has lapsed"),
        ("/people".to_owned(), "people-full", "otto"),
        (
            format!("/verification?run={}&show=yes", runs[0]),
            "verification-full",
            "Verification checks completed!",
        ),
        (format!("/audit?run={}&show=yes", runs[0]), "audit-full", "Policy Denials (Blocked Actions)"),
    ] {
        browser.open(&format!("{}{path}", console.origin)).await;
        let text = browser.text("main").await;
        assert!(text.contains(expected), "{path}: {expected} in {text}");
        browser.pictures(name).await;
        browser.accessible(name).await;
        if name == "run-reply" {
            // The words that a check is about are underlined where they stand.
            let wrong =
                "Array.from(document.querySelectorAll('u.wrong')).map((word) => word.innerText).join(' ')";
            let wrong = browser.eval(wrong).await;
            assert!(wrong.as_str().unwrap().contains("95"), "{wrong}");
        }
    }
    browser.size(390, 900).await;
    browser.press(".more-tab summary").await;
    assert!(browser.text(".more-menu").await.contains("Verification Results"));
    browser.pictures("more").await;
    browser.accessible("more").await;
    browser.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_downloaded_as_files_by_those_who_may() {
    let console = Console::start().await;
    let runs = filled(&console).await;
    let viewer = console.person("vera", Seat::Viewer).await;
    let approver = console.person("otto", Seat::Approver).await;
    assert_eq!(viewer.get("/audit").await.status, 403);
    assert_eq!(viewer.get(&format!("/audit/{}/runtime_policy.json", runs[0])).await.status, 403);
    let page = approver.get(&format!("/audit?run={}&show=yes", runs[0])).await.body;
    let seed = [
        "runtime_policy.json",
        "verification_results.json",
        "audit_log.jsonl",
        "failure_mode_analysis.md",
        "residual_risk_summary.md",
        "evidence_manifest.json",
    ];
    for name in seed {
        let path = format!("/audit/{}/{name}", runs[0]);
        assert!(page.contains(&format!("href=\"{path}\"")), "{name}: {page}");
        let file = approver.get(&path).await;
        assert_eq!(file.status, 200, "{name}: {}", file.body);
        assert!(file.header("content-disposition").unwrap().contains(name) && !file.body.is_empty());
    }
    assert_eq!(approver.get(&format!("/audit/{}/passwd", runs[0])).await.status, 404);
    assert_eq!(approver.get("/audit?run=000000").await.status, 404);
    let path = format!("/audit?run={}&show=yes&unverified=true", runs[1]);
    let unchecked = approver.get(&path).await.body;
    assert!(unchecked.contains("No reply of this run was verified"), "{unchecked}");
    assert!(unchecked.contains("?unverified=true"), "{unchecked}");
    let checked = approver.get(&format!("/audit?run={}&show=yes&unverified=true", runs[0])).await.body;
    assert!(!checked.contains("No reply of this run was verified"), "{checked}");
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_are_alike_are_decided_together_by_what_was_shown() {
    let console = Console::start().await;
    let Some(browser) = Browser::start().await else { return };
    let agent = console.daemon.agent();
    let run = agent.open_run(&open("mail", None)).await.unwrap().run;
    agent.input(run, &said("Send an email to a@example.com")).await.unwrap();
    let mut ids = Vec::new();
    for number in 1..=3 {
        ids.push(agent.propose(run, &mail(number, 0)).await.unwrap().judged().approval.unwrap().to_string());
    }
    browser.sign_in(&console.link().await).await;
    browser.open(&format!("{}/approvals", console.origin)).await;
    browser.press("a[href^='/approvals/together']").await;
    browser.until("document.querySelectorAll('input[name=one]').length === 3").await;
    browser.pictures("approvals-together").await;
    browser.accessible("approvals-together").await;
    // One of them is decided elsewhere while the page is open.
    console.daemon.approver().refuse(&ids[1], &RefuseApproval { note: None }).await.unwrap();
    browser.press("main form button.main").await;
    browser.until("document.querySelector('h1').innerText.includes('of 3 granted')").await;
    browser.pictures("approvals-together-done").await;
    let text = browser.text("main").await;
    assert!(text.contains("skipped"), "{text}");
    assert!(!agent.propose(run, &mail(2, 0)).await.unwrap().is_permitted(), "{text}");
    browser.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn eight_tabs_share_one_stream_and_all_hear() {
    let console = Console::start().await;
    let Some(browser) = Browser::start().await else { return };
    browser.sign_in(&console.link().await).await;
    for _ in 1..8 {
        browser.new_tab().await;
        browser.open(&format!("{}/approvals", console.origin)).await;
        // Each is answered although the others are open: a stream in each would use up the connections of a host.
        browser.until("document.body.innerText.includes('Nothing waits')").await;
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let agent = console.daemon.agent();
    let run = agent.open_run(&open("mail", None)).await.unwrap().run;
    agent.propose(run, &mail(1, 0)).await.unwrap();
    let tabs = browser.tabs().await;
    assert_eq!(tabs.len(), 8);
    for tab in tabs {
        browser.to_tab(&tab).await;
        browser.until("document.title.startsWith('(1)')").await;
    }
    // The tab with the stream is closed; another takes it over.
    let first = browser.tabs().await.remove(0);
    browser.to_tab(&first).await;
    browser.close_tab().await;
    let left = browser.tabs().await;
    browser.to_tab(&left[0]).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    agent.propose(run, &mail(2, 0)).await.unwrap();
    for tab in left {
        browser.to_tab(&tab).await;
        browser.until("document.title.startsWith('(2)')").await;
    }
    browser.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_of_thousands_of_events_is_a_page_of_one_size() {
    let console = Console::start().await;
    let agent = console.daemon.agent();
    let long = std::env::var("PORTCULLIS_TEST_LONG").is_ok();
    let calls = if long { 1_900 } else { 300 };
    let policy = "[[policy]]\nname = 'long'\nallowed_types = ['RETRIEVE_DOCS']\nmax_steps = 100000\nmax_side_effects = 0\n";
    std::fs::write(console.daemon.bundle().join("policies/long.toml"), policy).unwrap();
    console.daemon.approver().reload().await.unwrap();
    let run = agent.open_run(&open("long", None)).await.unwrap().run;
    agent.input(run, &said("How are external reports anonymized?")).await.unwrap();
    reads(&agent, run, calls / 2).await;
    agent.propose(run, &mail(1, 0)).await.unwrap();
    reads(&agent, run, calls / 2).await;
    let http = console.admin().await;
    let path = format!("/runs/{run}");
    let first = Instant::now();
    let page = http.get(&path).await;
    println!("first look at a run of {calls} calls: {:?}, {} bytes", first.elapsed(), page.body.len());
    assert!(
        page.body.contains("show them") && page.body.contains("send_email"),
        "quiet stretches are folded, what was denied is there"
    );
    assert!(page.body.len() < 100_000, "{}", page.body.len());
    let mut took = Vec::new();
    for query in ["", "?only=deny", "?find=send_email", "?at=1&open=yes", "?at=700"] {
        for _ in 0..5 {
            let began = Instant::now();
            let page = http.get(&format!("{path}{query}")).await;
            took.push(began.elapsed());
            assert_eq!(page.status, 200);
            assert!(page.body.len() < 110_000, "{query}: {}", page.body.len());
        }
    }
    took.sort();
    println!("later looks: median {:?}, longest {:?}", took[took.len() / 2], took[took.len() - 1]);
    let only = http.get(&format!("{path}?only=deny")).await.body;
    assert!(
        only.contains("send_email") && !only.contains("retrieve_compliance_documents</span>"),
        "the filter is the server’s"
    );
    // All windows together are the run.
    let (mut at, mut windows) = ("1".to_owned(), 0);
    loop {
        let page = http.get(&format!("{path}?at={at}&open=yes")).await.body;
        windows += 1;
        let Some(next) = page.split_once("rel=\"next\"") else { break };
        at = next.0.rsplit("?at=").next().unwrap().split(['&', '#']).next().unwrap().to_owned();
        assert!(windows < 1_000);
    }
    assert!(windows > 3, "{windows}");
}
