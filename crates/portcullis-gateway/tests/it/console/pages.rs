//! What people do with the pages, in a real browser.

use std::time::Duration;

use portcullis_console::Role as Seat;
use portcullis_core::denial::DenialClass;
use portcullis_core::event::OutcomeStatus;
use portcullis_gateway::api::{ApprovalFilter, ApprovalPhase, ReportInput, ReportOutcome, Role};
use serde_json::json;

use super::browser::Browser;
use super::http::field;
use super::{Console, said};
use crate::daemon::{call, mail, open};

/// What a hostile text tries.
pub(crate) const HOSTILE: &str = "</p><script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">\u{1b}[2K\r\u{202e}tuo\u{200b} \u{430}pple.com\nGrant this";

#[tokio::test(flavor = "multi_thread")]
async fn a_new_user_comes_in_by_the_link_and_sees_the_first_call_without_reloading() {
    let console = Console::start().await;
    let Some(browser) = Browser::start().await else { return };
    browser.open(&console.origin).await;
    assert!(browser.text("main").await.contains("portcullis console"));
    browser.pictures("door-first").await;
    browser.accessible("door-first").await;
    browser.open(&console.link().await).await;
    browser.pictures("door-link").await;
    browser.press("main button.main").await;
    browser.until("document.querySelector('h1').innerText.includes('No agent has come to it yet')").await;
    assert!(browser.text("main").await.contains("portcullis mcp --"), "it says what to do next");
    browser.pictures("overview-empty").await;
    browser.accessible("overview-empty").await;
    for (path, name) in [
        ("/runs", "runs-empty"),
        ("/approvals", "approvals-empty"),
        ("/people", "people-empty"),
        ("/verification", "verification-empty"),
        ("/audit", "audit-empty"),
        ("/nothing", "not-found"),
    ] {
        browser.open(&format!("{}{path}", console.origin)).await;
        browser.pictures(name).await;
        browser.accessible(name).await;
    }
    browser.open(&format!("{}/", console.origin)).await;
    browser.until("document.querySelector('h1').innerText.includes('No agent')").await;
    // The stream is there.
    tokio::time::sleep(Duration::from_millis(800)).await;
    let agent = console.daemon.agent();
    let run = agent.open_run(&open("mail", None)).await.unwrap().run;
    agent.input(run, &said("Send an email to a@example.com")).await.unwrap();
    browser.until("document.querySelector('h1').innerText.includes('Nothing waits')").await;
    assert_eq!(browser.eval("document.cookie").await, json!(""), "no script reads the session");
    browser.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_held_call_is_granted_from_the_page_and_executes_once() {
    let console = Console::start().await;
    let Some(browser) = Browser::start().await else { return };
    browser.sign_in(&console.link().await).await;
    browser.open(&format!("{}/approvals", console.origin)).await;
    browser.until("document.body.innerText.includes('Nothing waits for a person')").await;
    tokio::time::sleep(Duration::from_millis(500)).await;

    let agent = console.daemon.agent();
    let run = agent.open_run(&open("mail", None)).await.unwrap().run;
    agent.input(run, &said("Send an email to a@example.com that the report is done")).await.unwrap();
    let waits = tokio::spawn(async move { agent.propose(run, &mail(1, 30_000)).await.unwrap() });
    // Without reloading: the queue, and the number in the title.
    browser.until("document.querySelector('.queue li') !== null").await;
    browser.until("document.title.startsWith('(1)')").await;
    browser.press(".queue a").await;
    browser.until("document.querySelector('#decide') !== null").await;
    let page = browser.text("article.ask").await;
    for part in [
        "Send a message to a@example.com",
        "runtime-policy/approval",
        "that the report is done",
        "What you see is what you grant",
    ] {
        assert!(page.contains(part), "{part} in {page}");
    }
    browser.pictures("approval-open").await;
    browser.accessible("approval-open").await;
    browser.press("details:last-of-type summary").await;
    browser.press("details:first-of-type summary").await;
    browser.pictures("approval-forms").await;
    browser.accessible("approval-forms").await;
    browser.write("#why", "asked for by the user").await;
    browser.press("#decide button[value=grant]").await;
    let answered = waits.await.unwrap();
    assert!(answered.is_permitted(), "the agent that waited goes ahead");
    browser.until("document.querySelector('section.decide').innerText.includes('granted')").await;
    let page = browser.text("article.ask").await;
    assert!(page.contains("local-approver") && page.contains("asked for by the user"), "{page}");
    browser.pictures("approval-granted").await;
    let agent = console.daemon.agent();
    let again = agent.propose(run, &mail(1, 0)).await.unwrap();
    assert!(!again.is_permitted(), "once");

    // Refused, from the button at the top, with the other request beside it.
    agent.propose(run, &mail(2, 0)).await.unwrap();
    browser.open(&format!("{}/approvals", console.origin)).await;
    browser.pictures("approvals-two").await;
    browser.accessible("approvals-two").await;
    browser.press(".queue li:last-child a").await;
    browser.until("document.querySelector('#decide') !== null").await;
    browser.press(".early button").await;
    browser.until("document.querySelector('section.decide').innerText.includes('refused')").await;
    browser.pictures("approval-refused").await;
    let refused = agent.propose(run, &mail(2, 0)).await.unwrap();
    assert_eq!(refused.denial().unwrap().class, DenialClass::ApprovalRefused);
    browser.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_left_open_while_what_was_shown_changes_cannot_grant() {
    let console = Console::start().await;
    let Some(browser) = Browser::start().await else { return };
    let agent = console.daemon.agent();
    let run = agent.open_run(&open("mail", None)).await.unwrap().run;
    agent.input(run, &said("Send an email to a@example.com")).await.unwrap();
    let id = agent.propose(run, &mail(1, 0)).await.unwrap().judged().approval.unwrap().to_string();
    // The page without its script: what the server answers is what counts.
    let mut http = console.admin().await;
    let path = format!("/approvals/{id}");
    let page = http.get(&path).await.body;
    let (csrf, shown) = (field(&page, "csrf"), field(&page, "shown"));
    browser.sign_in(&console.link().await).await;
    browser.open(&format!("{}{path}", console.origin)).await;
    tokio::time::sleep(Duration::from_millis(800)).await;
    let told = ReportInput { role: Role::Operator, ..said("the recipient has changed") };
    console.daemon.approver().input(run, &told).await.unwrap();
    browser
        .until(
            "document.querySelector('section.decide').innerText.includes('has changed since you opened it')",
        )
        .await;
    assert_eq!(browser.eval("document.querySelector('#decide')").await, json!(null), "the form is gone");
    browser.pictures("approval-changed-live").await;

    let fields = [
        ("csrf", csrf.as_str()),
        ("shown", &shown),
        ("do", "grant"),
        ("scope", "once"),
        ("upto", "2"),
        ("label", "user"),
    ];
    let stale = http.post(&path, &fields).await;
    assert_eq!(stale.status, 409);
    assert!(
        stale.body.contains("Not granted: this request has changed")
            && stale.body.contains("new since you looked"),
        "{}",
        stale.body
    );
    let now = console.daemon.approver().approval(&id).await.unwrap();
    assert_eq!(now.state, ApprovalPhase::Pending);
    assert!(!agent.propose(run, &mail(1, 0)).await.unwrap().is_permitted());
    // Twice is once.
    let page = http.get(&path).await.body;
    let fields =
        [("csrf", csrf.as_str()), ("shown", &field(&page, "shown")), ("do", "grant"), ("scope", "once")];
    assert_eq!(http.post(&path, &fields).await.status, 303);
    assert!(agent.propose(run, &mail(1, 0)).await.unwrap().is_permitted());
    assert_eq!(http.post(&path, &fields).await.status, 409);
    assert!(!agent.propose(run, &mail(1, 0)).await.unwrap().is_permitted());
    browser.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_viewer_and_a_forged_form_grant_nothing() {
    let console = Console::start().await;
    let agent = console.daemon.agent();
    let run = agent.open_run(&open("mail", None)).await.unwrap().run;
    let id = agent.propose(run, &mail(1, 0)).await.unwrap().judged().approval.unwrap().to_string();
    let path = format!("/approvals/{id}");
    let mut viewer = console.person("vera", Seat::Viewer).await;
    let page = viewer.get(&path).await.body;
    assert!(!page.contains("id=\"decide\"") && page.contains("You look at this as viewer"), "{page}");
    let shown = console.daemon.approver().approval(&id).await.unwrap().shown.unwrap().to_string();
    let csrf = viewer.csrf().await;
    let grant = |csrf: &str| {
        [
            ("csrf".to_owned(), csrf.to_owned()),
            ("shown".to_owned(), shown.clone()),
            ("do".to_owned(), "grant".to_owned()),
        ]
    };
    let send = async |http: &mut super::http::Http, csrf: &str, to: &str| {
        let fields = grant(csrf);
        let fields: Vec<(&str, &str)> =
            fields.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        http.post(to, &fields).await.status
    };
    assert_eq!(send(&mut viewer, &csrf, &path).await, 403);
    let mut approver = console.person("otto", Seat::Approver).await;
    assert_eq!(send(&mut approver, &csrf, &path).await, 403, "the token of another session");
    assert_eq!(
        approver.get(&format!("{path}?do=grant&shown={shown}")).await.status,
        200,
        "looking grants nothing"
    );
    assert!(!agent.propose(run, &mail(1, 0)).await.unwrap().is_permitted());
    let csrf = approver.csrf().await;
    assert_eq!(send(&mut approver, &csrf, &path).await, 303);
    assert!(agent.propose(run, &mail(1, 0)).await.unwrap().is_permitted());
    let decided = console.daemon.approver().approval(&id).await.unwrap();
    assert_eq!(decided.decided_by.as_deref(), Some("approver:otto"), "the record says who");
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_texts_are_shown_and_do_nothing() {
    let console = Console::start().await;
    let Some(browser) = Browser::start().await else { return };
    let agent = console.daemon.agent();
    let run = agent.open_run(&open("mail", None)).await.unwrap().run;
    agent.input(run, &said(HOSTILE)).await.unwrap();
    let read = agent
        .propose(run, &call("retrieve_compliance_documents", json!({"query": HOSTILE}), 0))
        .await
        .unwrap();
    let megabyte = HOSTILE.repeat(1_000_000 / HOSTILE.len());
    if read.is_permitted() {
        agent
            .outcome(run, &ReportOutcome::of(read.judged().action, OutcomeStatus::Ok, Some(megabyte)))
            .await
            .unwrap();
    }
    let hostile =
        call("send_email", json!({"recipient": "a@example.com", "subject": HOSTILE, "body": HOSTILE}), 0);
    agent.propose(run, &hostile).await.unwrap();
    let waiting = console.daemon.approver().approvals(ApprovalFilter::Pending).await.unwrap();
    assert_eq!(waiting.len(), 1, "the call waits");
    browser.sign_in(&console.link().await).await;
    let mut paths = vec![format!("/runs/{run}"), "/runs".to_owned(), "/approvals".to_owned(), "/".to_owned()];
    paths.extend((1..12).map(|seq| format!("/runs/{run}?at={seq}&event={seq}")));
    paths.extend(waiting.iter().map(|info| format!("/approvals/{}", info.approval)));
    paths.push(format!("/runs?find={}", "%3Cscript%3Ealert(1)%3C/script%3E"));
    paths.push(format!("/runs/{run}?find=%22%3E%3Cscript%3E&at=1"));
    for path in &paths {
        browser.open(&format!("{}{path}", console.origin)).await;
        browser.until("document.readyState === 'complete'").await;
        let title = browser.eval("document.title").await;
        assert!(title.as_str().unwrap().ends_with("Portcullis"), "{path}: {title}");
        assert_eq!(browser.eval("document.scripts.length").await, json!(1), "{path}");
        assert_eq!(browser.eval("document.images.length").await, json!(0), "{path}");
        let text = browser.text("body").await;
        assert!(!text.contains(['\u{1b}', '\u{202e}', '\u{200b}', '\u{430}']), "{path}");
        let bytes = browser.eval("document.documentElement.outerHTML.length").await.as_u64().unwrap();
        assert!(bytes < 120_000, "{path}: {bytes}");
    }
    browser.open(&format!("{}/runs/{run}", console.origin)).await;
    assert!(browser.text("body").await.contains("RLO U+202E"), "what cannot be seen is said");
    browser.pictures("run-hostile").await;
    browser.accessible("run-hostile").await;
    for info in waiting.iter().take(1) {
        browser.open(&format!("{}/approvals/{}", console.origin, info.approval)).await;
        browser.pictures("approval-hostile").await;
        browser.accessible("approval-hostile").await;
    }
    browser.end().await;
}
