//! `portcullis upstream` as people use it, against an authorization server by script.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::command::{Ran, portcullis};

#[expect(dead_code, reason = "the gateway's tests use all of it")]
#[path = "../../../portcullis-gateway/tests/it/oauth/server.rs"]
mod server;

use server::Server;

/// The head of an answer.
fn get(url: &str) -> String {
    let (host, target) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    stream.write_all(format!("GET /{target} HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn a_person_logs_in_looks_tries_and_logs_out() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let server = runtime.block_on(Server::start());
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    let with = |args: &[&str]| {
        let mut all = vec!["--home", home.to_str().unwrap(), "upstream"];
        all.extend(args);
        portcullis(&all)
    };
    let run = |args: &[&str]| Ran::from(with(args).output().unwrap());
    let status = run(&["status"]);
    assert_eq!((status.code, status.stdout.as_str()), (0, "there is no credential for any upstream\n"));
    let unknown = run(&["login", "tickets"]);
    assert_eq!(unknown.code, 1);
    assert!(unknown.stderr.contains("say where it is with `--url URL`"), "{}", unknown.stderr);

    let args = ["login", "tickets", "--url", &server.mcp(), "--no-browser", "--json"];
    let mut login = with(&args).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(login.stdout.take().unwrap()).lines();
    let visit: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    let agreed = get(visit["visit"].as_str().unwrap());
    let back = agreed.lines().find_map(|line| line.strip_prefix("Location: ")).unwrap();
    assert!(get(back).ends_with("You can close this page."));
    let standing: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    assert_eq!((&standing["state"], &standing["scopes"]), (&json!("ready"), &json!(["read"])));
    assert!(login.wait().unwrap().success());

    let tried = run(&["try", "tickets"]);
    assert_eq!(
        (tried.code, tried.stdout.as_str()),
        (0, "`tickets` does not refuse the credential (HTTP status 200)\n"),
        "{}",
        tried.stderr
    );
    server.revoke_all();
    let ended = run(&["try", "tickets"]);
    assert_eq!(ended.code, 1);
    assert!(
        ended.stderr.contains("upstream login tickets --url")
            && ended.stderr.contains("run `portcullis --home"),
        "{}",
        ended.stderr
    );
    let status = run(&["status"]);
    assert!(status.code == 2 && status.stdout.contains("needs a login"), "{}", status.stdout);
    let out = run(&["logout", "tickets"]);
    assert_eq!(out.code, 0, "{}", out.stderr);
    assert!(out.stdout.contains("is forgotten; it had ended"), "{}", out.stdout);
    assert_eq!(run(&["logout", "tickets"]).code, 1);
    assert_eq!(run(&["try", "tickets"]).code, 1);
}

/// Logs in as the client of a document, and out again, as JSON and in words.
#[test]
fn a_printed_document_is_the_client_and_a_logout_says_what_became_of_the_tokens() {
    const ADDRESS: &str = "https://gate.example/portcullis.json";
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let server = runtime.block_on(Server::start());
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    let with = |args: &[&str]| {
        let mut all = vec!["--home", home.to_str().unwrap(), "upstream"];
        all.extend(args);
        portcullis(&all)
    };
    let run = |args: &[&str]| Ran::from(with(args).output().unwrap());
    let wrong = run(&["document", "https://gate.example"]);
    assert!(wrong.code == 64 && wrong.stderr.contains("needs a path"), "{}", wrong.stderr);
    let printed = run(&["document", ADDRESS, "--name", "Our gate", "--port", "28699"]);
    let document: Value = serde_json::from_str(&printed.stdout).unwrap();
    assert_eq!((&document["client_id"], &document["client_name"]), (&json!(ADDRESS), &json!("Our gate")));
    server.script(|script| {
        script.server.insert("client_id_metadata_document_supported".to_owned(), json!(true));
        script.document = Some(document);
    });
    let log_in = || {
        let args = ["login", "tickets", "--url", &server.mcp(), "--no-browser", "--json"];
        let more = ["--client-document", ADDRESS, "--port", "28699"];
        let mut login = with(&[&args[..], &more[..]].concat()).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(login.stdout.take().unwrap()).lines();
        let visit: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        let agreed = get(visit["visit"].as_str().unwrap());
        get(agreed.lines().find_map(|line| line.strip_prefix("Location: ")).unwrap());
        assert!(login.wait().unwrap().success());
    };
    log_in();
    let out: Value = serde_json::from_str(&run(&["logout", "tickets", "--json"]).stdout).unwrap();
    let url = &server.url;
    assert_eq!(out, json!({ "logged_out": "tickets", "issuer": url, "revoked": true, "why_not": null }));
    assert_eq!(server.living(), (0, 0));
    log_in();
    server.script(|script| script.revocation_answer = Some(server::answer(503, "", "")));
    let out = run(&["logout", "tickets"]);
    assert!(out.code == 2 && out.stdout.contains("HTTP status 503"), "{}", out.stdout);
    assert_eq!(run(&["logout", "tickets"]).code, 1, "it is forgotten all the same");
}

#[test]
fn what_is_wrong_with_the_settings_is_said_without_secrets() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("upstreams.toml");
    std::fs::write(
        &file,
        "[[upstream]]\nname = 'x'\nurl = 'https://me:s3cret@x.example'\ntoken_file = '/t'\n",
    )
    .unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    let ran = Ran::from(
        portcullis(&["--home", folder.path().to_str().unwrap(), "upstream", "status"]).output().unwrap(),
    );
    assert_eq!(ran.code, 3);
    assert!(ran.stderr.contains("upstream `x`") && !ran.stderr.contains("s3cret"), "{}", ran.stderr);
}
