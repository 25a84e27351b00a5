//! The daemon's log as others see it: published, cosigned, followed.

use std::fs;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use portcullis_gateway::api::OpenRun;
use portcullis_gateway::monitor::{LogSource, Look, Watch, WatchOptions};
use portcullis_gateway::witness::{Witness, WitnessOptions};
use portcullis_ledger::log::{LogPlaces, verifier_key};
use portcullis_proof::log::{Checkpoint, KeyKind, NoteSigner, TrustPolicy};
use tokio::net::TcpListener;

use crate::daemon::{Daemon, raw_http};

/// Status, head and body of a request without any credential.
async fn get(address: SocketAddr, host: &str, path: &str) -> (u16, String, String) {
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    let answer = raw_http(address, request).await;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), head.to_ascii_lowercase(), body.to_owned())
}

async fn daemon() -> (Daemon, SocketAddr) {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let address: SocketAddr = format!("127.0.0.1:{port}").parse().unwrap();
    (Daemon::start_with(|options| options.http = Some(address)).await, address)
}

async fn closed_run(daemon: &Daemon) {
    let agent = daemon.agent();
    let open = OpenRun { surface: "test".into(), ..OpenRun::default() };
    let run = agent.open_run(&open).await.unwrap().run;
    agent.close(run).await.unwrap();
}

/// The published checkpoint, once it is of this size and has this in it.
async fn published(address: SocketAddr, size: u64, wanted: &str) -> String {
    for _ in 0..600 {
        let (status, _, note) = get(address, "localhost", "/log/checkpoint").await;
        if status == 200
            && note.contains(wanted)
            && Checkpoint::from_note(note.as_bytes()).unwrap().1.size() == size
        {
            return note;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("no checkpoint of {size} leaves with `{wanted}`");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_published_files_are_served_without_a_credential_and_nothing_else_is() {
    let (daemon, address) = daemon().await;
    closed_run(&daemon).await;
    let note = published(address, 3, "").await;
    let (_, head, _) = get(address, "localhost", "/log/checkpoint").await;
    assert!(head.contains("cache-control: no-store") && head.contains("text/plain"), "{head}");
    let (status, head, _) = get(address, "localhost", "/log/tile/entries/000.p/3").await;
    assert_eq!(status, 200);
    assert!(head.contains("cache-control: public, max-age=31536000, immutable"), "{head}");
    assert!(head.contains("content-type: application/octet-stream"), "{head}");
    let (status, head, _) = get(address, "localhost", "/log/tile/0/000.p/3").await;
    assert!(status == 200 && head.contains("content-length: 96"), "{head}");
    // A secret beside them, and a policy among them.
    fs::write(daemon.home.path().join("log/witnesses.policy"), "quorum none\n").unwrap();
    for path in [
        "/log",
        "/log/",
        "/log/witnesses.policy",
        "/log/tile/0/000",
        "/log/tile/0/0",
        "/log/tile/../../keys/log.key",
        "/log/tile/%2e%2e/%2e%2e/keys/log.key",
        "/log/tile/..%2f..%2fkeys%2flog.key",
        "/log/tile/0/000.p/3/",
        "/log/tile//0/000.p/3",
    ] {
        let (status, _, body) = get(address, "localhost", path).await;
        assert_eq!(status, 404, "{path}: {body}");
    }
    // A page of another site does not read it, and what has a token still needs it.
    assert_eq!(get(address, "evil.example", "/log/checkpoint").await.0, 403);
    assert_eq!(get(address, "localhost", "/v1/runs").await.0, 401);
    assert!(note.starts_with("portcullis/"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_witness_cosigns_what_the_daemon_logs_and_a_monitor_follows_it() {
    let (daemon, address) = daemon().await;
    closed_run(&daemon).await;
    published(address, 3, "").await;
    let key = verifier_key(&LogPlaces::beside(&daemon.home.ledger())).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let options = WitnessOptions {
        key: folder.path().join("w.key"),
        name: "auditor.example/w".to_owned(),
        logs: vec![key.clone()],
        state: folder.path().join("w.state"),
    };
    let witness = Witness::open(&options).unwrap();
    let vkey = witness.verifier().clone();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let serving = tokio::spawn(Arc::new(witness).serve(listener, std::future::pending()));
    // A second witness is dead; the quorum does without it.
    let dead = NoteSigner::from_seed("auditor.example/dead", KeyKind::Cosignature, &[7; 32]).unwrap();
    let dead = dead.verifier();
    let policy = format!(
        "witness w {vkey} {url}\nwitness dead {dead} http://127.0.0.1:1\ngroup one any w dead\nquorum one\n"
    );
    fs::write(daemon.home.path().join("log/witnesses.policy"), &policy).unwrap();
    // What is there already is cosigned without waiting for more.
    published(address, 3, "— auditor.example/w ").await;
    closed_run(&daemon).await;
    published(address, 5, "— auditor.example/w ").await;

    let trust = TrustPolicy::parse(format!("log {key}\n{policy}").as_bytes()).unwrap();
    let origin = key.name().to_owned();
    let look = move || -> Look {
        let options = WatchOptions { trust, origin, missing_for: 0, open_for: 3600, stale: 3600 };
        let source = LogSource::at(&format!("http://{address}/log")).unwrap();
        let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs();
        Watch::open(options, None).unwrap().look(&source, now)
    };
    let look = tokio::task::spawn_blocking(look).await.unwrap();
    assert_eq!((look.leaves, look.alerts.len(), &look.incomplete, look.open), (5, 0, &None, 0), "{look:?}");
    assert!(look.cosigned.is_some());
    serving.abort();
}
