//! The console as a user starts it, with the official Python client waiting behind it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use portcullis_core::principal::CredentialKind;
use serde_json::json;

use crate::browser::Browser;
use crate::daemon::State;
use crate::peers::{SUPERVISED, Stage, report, shown};

/// Waits until a daemon says that it serves the console, and gives the port.
fn port_of(daemon: &mut Child) -> u16 {
    let mut lines = BufReader::new(daemon.stderr.take().unwrap()).lines();
    let line = lines.find(|line| line.as_ref().unwrap().contains("serving the console")).unwrap().unwrap();
    std::thread::spawn(move || lines.for_each(drop));
    let port = line.split_once(".localhost:").unwrap().1;
    port.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_held_call_of_an_mcp_client_is_granted_from_the_page_and_executes_once() {
    let Some(stage) = Stage::set("filesystem") else { return };
    stage.add("policies/supervised.toml", SUPERVISED);
    stage.set_main("approval_wait_s = 60");
    let bundle = stage.bundle().display().to_string();
    let mut daemon = stage.portcullis(&["serve", "--bundle", &bundle, "--console", "127.0.0.1:0"]);
    let mut daemon = daemon.stderr(Stdio::piped()).spawn().unwrap();
    port_of(&mut daemon);
    let Some(browser) = Browser::start().await else { return };
    let link = stage.portcullis(&["console"]).output().unwrap();
    assert!(link.status.success(), "{}", shown(&link));
    browser.sign_in(String::from_utf8(link.stdout).unwrap().trim()).await;
    browser.until("document.body.innerText.includes('No agent has come to it yet')").await;
    let target = stage.path("files/new.txt");
    let arguments = json!({"path": target, "content": "approved\n"});
    let steps = json!([{"tool": "write_file", "arguments": arguments, "id": "held"}]);
    let client = stage.filesystem(&[stage.gated("filesystem", "supervised")], &steps);
    // The page fills by itself.
    browser.until("document.body.innerText.includes('1 call waits for a person')").await;
    // It is said before it is drawn.
    browser.until("document.querySelector('.waiting a') !== null").await;
    browser.press(".waiting a").await;
    browser.until("document.querySelector('#decide') !== null").await;
    let page = browser.text("article.ask").await;
    assert!(page.contains("approved") && page.contains(target.to_str().unwrap()), "{page}");
    assert!(!target.exists(), "nothing is written before the grant");
    browser.press("#decide button[value=grant]").await;
    let report = report(client);
    assert_eq!(report["steps"][0]["isError"], false, "{report}");
    assert_eq!(std::fs::read_to_string(&target).unwrap(), "approved\n");
    browser.until("document.querySelector('section.decide').innerText.includes('used')").await;
    let run = stage.api(CredentialKind::Approver).runs(1).await.unwrap().remove(0).run.to_string();
    let events = crate::peers::events(&stage.api(CredentialKind::Approver), &run).await;
    let executed = events.iter().filter(|event| event.body.kind() == "outcome").count();
    assert_eq!(executed, 1);
    browser.end().await;
    drop(stage);
    daemon.wait().unwrap();
}

#[test]
fn a_daemon_with_streams_open_stops_in_under_a_second() {
    let state = State::new();
    let mut daemon =
        state.command(&["serve", "--console", "127.0.0.1:0"]).stderr(Stdio::piped()).spawn().unwrap();
    let port = port_of(&mut daemon);
    let link = state.command(&["console"]).output().unwrap();
    let link = String::from_utf8(link.stdout).unwrap();
    let (origin, token) = link.trim().split_once("/sign-in/link?token=").unwrap();
    let host = origin.trim_start_matches("http://");
    let body = format!("token={token}");
    let request = format!(
        "POST /sign-in/link HTTP/1.1\r\nHost: {host}\r\nOrigin: {origin}\r\nConnection: close\r\n\
         Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let cookie = answer.split_once("set-cookie: ").unwrap().1.split(';').next().unwrap().to_owned();
    let mut streams: Vec<TcpStream> = (0..8)
        .map(|_| {
            let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
            let request = format!("GET /live HTTP/1.1\r\nHost: {host}\r\nCookie: {cookie}\r\n\r\n");
            stream.write_all(request.as_bytes()).unwrap();
            let mut head = [0; 12];
            stream.read_exact(&mut head).unwrap();
            assert_eq!(&head, b"HTTP/1.1 200");
            stream
        })
        .collect();
    let began = Instant::now();
    assert!(Command::new("kill").args(["-s", "TERM", &daemon.id().to_string()]).status().unwrap().success());
    assert_eq!(daemon.wait().unwrap().code(), Some(0));
    let took = began.elapsed();
    assert!(took < Duration::from_secs(1), "{took:?}");
    for stream in &mut streams {
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).unwrap();
        assert!(rest.ends_with(b"0\r\n\r\n"), "the stream ended in good order");
    }
}

#[test]
fn who_asks_for_a_console_is_told_where_there_is_none() {
    let state = State::new();
    // Started by the command, as a shim does it: without a console.
    let refused = state.command(&["console"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(1), "{}", shown(&refused));
    assert!(shown(&refused).contains("portcullis serve --console"), "{}", shown(&refused));
    let second = state.command(&["serve", "--console", "127.0.0.1:0"]).output().unwrap();
    assert_eq!(second.status.code(), Some(1), "{}", shown(&second));
    assert!(shown(&second).contains("not the console on 127.0.0.1:0"), "{}", shown(&second));
}
