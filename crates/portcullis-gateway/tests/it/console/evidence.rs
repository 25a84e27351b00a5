//! What a run proves: exports that are uploaded, runs that are judged again, reports of evaluations.

use std::io::{Cursor, Read as _, Write as _};

use portcullis_console::Role as Seat;
use portcullis_core::principal::CredentialKind;
use serde_json::json;

use super::browser::Browser;
use super::{Console, said};
use crate::daemon::{mail, open};

/// A run with a held call and a denied one, and its export.
async fn exported(console: &Console) -> (String, String) {
    let agent = console.daemon.agent();
    let run = agent.open_run(&open("mail", None)).await.unwrap().run;
    agent.input(run, &said("Send an email to a@example.com")).await.unwrap();
    agent.propose(run, &mail(1, 0)).await.unwrap();
    agent
        .propose(run, &crate::daemon::call("perform_calculation", json!({"expression": "1 + 1"}), 0))
        .await
        .unwrap();
    agent.close(run).await.unwrap();
    let file = console.admin().await.get(&format!("/audit/{run}/run.export?unverified=true")).await;
    assert_eq!(file.status, 200, "{}", file.body);
    (run.to_string(), file.body)
}

/// A pack is checked as a whole, and a file of it that was changed is named.
async fn packs_are_verified(console: &Console, browser: &Browser, run: &str) {
    let approver = console.daemon.gets(CredentialKind::Approver);
    let (status, _, pack) = approver.get(&format!("/v1/runs/{run}/governance?unverified=true")).await;
    assert_eq!(status, 200);
    let mut archive = zip::ZipArchive::new(Cursor::new(pack.clone())).unwrap();
    let mut changed = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for number in 0..archive.len() {
        let mut entry = archive.by_index(number).unwrap();
        let (name, mut bytes) = (entry.name().unwrap().into_owned(), Vec::new());
        entry.read_to_end(&mut bytes).unwrap();
        if name.ends_with("failure_mode_analysis.md") {
            bytes.push(b' ');
        }
        changed.start_file(name, zip::write::SimpleFileOptions::default()).unwrap();
        changed.write_all(&bytes).unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("audit_artifacts.zip");
    for (bytes, name, status, part) in [
        (pack, "upload-pack", "VALID", "held against the log of this gate"),
        (
            changed.finish().unwrap().into_inner(),
            "upload-pack-changed",
            "INVALID",
            "failure_mode_analysis.md",
        ),
    ] {
        std::fs::write(&at, bytes).unwrap();
        browser.open(&format!("{}/audit", console.origin)).await;
        browser.choose_file("#file", &at).await;
        browser.press("#verify button").await;
        browser.until("document.querySelector('#verify .note') !== null").await;
        let page = browser.text("#verify").await;
        assert!(page.contains(status) && page.contains(part), "{name}: {page}");
        browser.pictures(name).await;
        browser.accessible(name).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_uploaded_export_is_verified_and_the_result_is_named() {
    let (console, other) = (Console::start().await, Console::start().await);
    let Some(browser) = Browser::start().await else { return };
    let (run, export) = exported(&console).await;
    let (_, foreign) = exported(&other).await;
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("run.export");
    browser.sign_in(&console.link().await).await;
    let changed = export.replacen("mail", "nail", 1);
    assert_ne!(changed, export);
    let cut: String = export.lines().take(4).map(|line| format!("{line}\n")).collect();
    for (text, name, expected) in [
        (export.as_str(), "upload-valid", "VALID"),
        (&foreign, "upload-incomplete", "INCOMPLETE"),
        (&changed, "upload-invalid", "INVALID"),
        (&cut, "upload-cut", "INVALID"),
        ("hello\n", "upload-none", "INVALID"),
    ] {
        std::fs::write(&at, text).unwrap();
        browser.open(&format!("{}/audit", console.origin)).await;
        browser.choose_file("#file", &at).await;
        browser.press("#verify button").await;
        browser.until("document.querySelector('#verify .answer') !== null || document.querySelector('#verify .note') !== null").await;
        let said = browser.text("#verify .answer b").await;
        assert_eq!(said, expected, "{name}: {}", browser.text("#verify").await);
        browser.pictures(name).await;
        browser.accessible(name).await;
    }
    packs_are_verified(&console, &browser, &run).await;
    browser.open(&format!("{}/runs/{run}/verify", console.origin)).await;
    assert_eq!(browser.text(".answer b").await, "VALID");
    let said = browser.text("main").await;
    assert!(said.contains("held against what this gate has"), "{said}");
    browser.pictures("run-verified").await;
    browser.accessible("run-verified").await;
    let viewer = console.person("vera", Seat::Viewer).await;
    assert_eq!(viewer.clone().post("/audit/verify", &[("csrf", &viewer.csrf().await)]).await.status, 403);
    browser.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_judged_again_under_what_policy_has_become() {
    let console = Console::start().await;
    let Some(browser) = Browser::start().await else { return };
    let (run, _) = exported(&console).await;
    browser.sign_in(&console.link().await).await;
    browser.open(&format!("{}/runs/{run}/replay", console.origin)).await;
    browser.until("document.querySelector('h1').innerText.includes('No verdict would be another')").await;
    browser.pictures("replay-same").await;
    let file = console.daemon.bundle().join("policies/mail.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(
        file,
        text.replace("approval_for_side_effects = true", "approval_for_side_effects = false")
            .replace("'RETRIEVE_DOCS'", "'CALCULATE'"),
    )
    .unwrap();
    console.daemon.approver().reload().await.unwrap();
    browser.open(&format!("{}/runs/{run}/replay", console.origin)).await;
    browser.until("document.querySelector('h1').innerText.includes('verdicts would be others')").await;
    let page = browser.text("main").await;
    assert!(page.contains("newly passing") && page.contains("send_email"), "{page}");
    browser.pictures("replay-differs").await;
    browser.accessible("replay-differs").await;
    for _ in 0..80 {
        browser.open(&format!("{}/", console.origin)).await;
        if browser.text("main").await.contains("cases of the bundle") {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(250)).await;
    }
    assert!(browser.text("main").await.contains("cases of the bundle"));
    browser.pictures("overview-tested").await;
    browser.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_of_evaluations_are_drawn() {
    let console = Console::start().await;
    let Some(browser) = Browser::start().await else { return };
    browser.sign_in(&console.link().await).await;
    browser.open(&format!("{}/evaluation", console.origin)).await;
    assert!(browser.text("main").await.contains("portcullis eval scenarios"));
    browser.pictures("evaluation-empty").await;
    browser.accessible("evaluation-empty").await;
    let folder = console.daemon.home.path().join("evaluations");
    let figure = |hits: u32, of: u32, low: f64, high: f64| json!({"hits": hits, "of": of, "value": f64::from(hits) / f64::from(of), "interval_95": {"low": low, "high": high}});
    let report = |hits| {
        json!({
            "suite": "eicu-ac", "bundle": "sha256:9e21c04b00000000", "all": {"records": 317, "lpa": figure(hits, 317, 0.959, 1.0), "fra": figure(hits - 4, 317, 0.94, 0.99)},
            "groups": [{"name": "physician", "lpa": figure(100, 106, 0.88, 0.974)}],
            "published": [{"name": "GuardAgent, GPT-4", "lpa": 98.7, "fra": 100.0}],
            "decisions": {"p50_us": 84.0, "p99_us": 210.0}, "skipped": [{"count": 3, "why": "the label is known to be wrong"}],
            "notes": ["Labels of four records are known to be wrong."],
        })
    };
    std::fs::write(folder.join("eicu-1.json"), report(311).to_string()).unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    std::fs::write(folder.join("eicu-2.json"), report(315).to_string()).unwrap();
    std::fs::write(folder.join("broken.json"), "{").unwrap();
    browser.open(&format!("{}/evaluation", console.origin)).await;
    let page = browser.text("main").await;
    for part in ["eicu-ac", "physician lpa", "99.4", "+1.3", "SKIPPED 3", "cannot be read"] {
        assert!(page.contains(part), "{part} in {page}");
    }
    browser.pictures("evaluation").await;
    browser.accessible("evaluation").await;
    browser.end().await;
}
