//! Which client the gate is at an authorization server, and how a login ends there.

use std::time::Duration;

use portcullis_gateway::upstream_auth::{LoggedOut, Login, Revocation, client_document, logout};
use serde_json::{Value, json};
use url::Url;

use super::server::{CLIENT_SECRET, Script, answer};
use super::upstream::{Place, call};

const DOCUMENT: &str = "https://gate.example/portcullis.json";

/// A server that reads documents of clients has one of ours, as it was printed.
fn reads_documents(script: &mut Script) {
    script.server.insert("client_id_metadata_document_supported".to_owned(), json!(true));
    script.document = Some(client_document(DOCUMENT, "Gate", &[]).unwrap());
}

#[tokio::test]
async fn a_client_is_registered_or_has_a_document_or_registers_itself_in_this_order() {
    let place = Place::new().await;
    let documented = |login: &mut Login| login.client_document = Some(DOCUMENT.to_owned());
    let client = |visited: &Url| {
        visited.query_pairs().find(|(name, _)| name == "client_id").map(|(_, id)| id.into_owned()).unwrap()
    };
    // The server says nothing of documents: it registers the gate.
    let (visited, _) = place.login(documented).await.unwrap();
    assert_eq!((client(&visited).as_str(), place.server.seen("/register").len()), ("registered", 1));
    // It reads them, and the browser comes back to an address of the document.
    place.server.script(reads_documents);
    let (visited, back) = place.login(documented).await.unwrap();
    assert_eq!((client(&visited).as_str(), place.server.seen("/register").len()), (DOCUMENT, 1));
    assert!(back.unwrap().as_str().starts_with("http://127.0.0.1:2867"));
    assert_eq!(place.stored()["client_id"], DOCUMENT);
    assert_eq!(call(&place.auth(), &place.server).await, Ok(200));
    place.age();
    place.auth().authorization().await.unwrap();
    assert_eq!(place.server.seen("/token").last().unwrap()["client_id"], DOCUMENT, "renewed as the same");
    // A client that is registered there goes before it.
    let (visited, _) = place
        .login(|login| {
            documented(login);
            login.client_id = Some("known".to_owned());
        })
        .await
        .unwrap();
    assert_eq!((client(&visited).as_str(), place.server.seen("/register").len()), ("known", 1));
    // The settings have one for all upstreams, and the command line another.
    place.write(&place.home.upstreams_toml(), "client_document = 'https://other.example/c'");
    let error = place.login(|login| login.patience = Duration::from_secs(1)).await.unwrap_err();
    assert!(error.contains("nobody agreed"), "the server has no such document: {error}");
    let (visited, _) = place.login(documented).await.unwrap();
    assert_eq!(client(&visited), DOCUMENT);
}

#[tokio::test]
async fn who_can_be_no_client_is_told_what_to_do() {
    let place = Place::new().await;
    place.server.script(|script| drop(script.server.insert("registration_endpoint".to_owned(), Value::Null)));
    let documented = |login: &mut Login| login.client_document = Some(DOCUMENT.to_owned());
    let error = place.login(|_| {}).await.unwrap_err();
    assert!(error.contains("--client-id ID") && !error.contains("document"), "{error}");
    let error = place.login(documented).await.unwrap_err();
    assert!(error.contains("neither reads client id metadata documents"), "{error}");
    place.server.script(reads_documents);
    let error = place.login(|_| {}).await.unwrap_err();
    assert!(error.contains("`portcullis upstream document URL`"), "{error}");
    let error = place
        .login(|login| login.client_document = Some("http://gate.example/c".to_owned()))
        .await
        .unwrap_err();
    assert!(error.contains("`https://`"), "{error}");
    assert_eq!(place.server.seen("/authorize").len(), 0);
    // The ports of the document are taken: nothing is asked of a server that would refuse another one.
    let taken: Vec<_> =
        (28_671..=28_673).map(|port| std::net::TcpListener::bind(("127.0.0.1", port))).collect();
    let error = place.login(documented).await.unwrap_err();
    assert!(error.contains("port 28673 of 127.0.0.1") && error.contains("--port PORT"), "{error}");
    drop(taken);
}

#[tokio::test]
async fn a_login_that_is_forgotten_is_revoked() {
    let place = Place::new().await;
    place.login(|_| {}).await.unwrap();
    let stored = place.stored();
    assert_eq!(place.server.living(), (1, 1));
    let out = logout(&place.home, "up").await.unwrap().unwrap();
    let revoked = LoggedOut { issuer: Some(place.server.url.clone()), revocation: Revocation::Revoked };
    assert_eq!(out, revoked);
    assert_eq!(place.server.living(), (0, 0));
    let sent = place.server.seen("/revoke");
    let said = |at: usize, name: &str| sent.get(at).and_then(|sent| sent.get(name)).cloned();
    for (at, hint) in ["refresh_token", "access_token"].into_iter().enumerate() {
        assert_eq!(said(at, "token_type_hint").as_deref(), Some(hint));
        assert_eq!(said(at, "token").as_deref(), stored[hint].as_str());
        assert_eq!(said(at, "client_id").as_deref(), Some("registered"));
    }
    // A login that has ended has nothing to revoke.
    place.login(|_| {}).await.unwrap();
    place.server.revoke_all();
    place.age();
    assert!(place.auth().authorization().await.is_err());
    let out = logout(&place.home, "up").await.unwrap().unwrap();
    assert_eq!((out.revocation, place.server.seen("/revoke").len()), (Revocation::Ended, 2));
}

#[tokio::test]
async fn a_login_is_forgotten_whatever_the_server_does() {
    let place = Place::new().await;
    let there = |place: &Place| place.home.upstreams().join("up.json").exists();
    for (change, says) in [
        (("revocation_endpoint", json!("http://10.0.0.1/revoke")), Some("in clear")),
        (("revocation_endpoint", json!("https://169.254.169.254/revoke")), Some("metadata")),
        (("revocation_endpoint", json!("nonsense")), Some("no address")),
        (("revocation_endpoint", Value::Null), None),
        (("issuer", json!("https://evil.example")), Some("https://evil.example")),
    ] {
        place.server.script(|script| script.server.clear());
        place.login(|_| {}).await.unwrap();
        place.server.script(|script| drop(script.server.insert(change.0.to_owned(), change.1.clone())));
        match (logout(&place.home, "up").await.unwrap().unwrap().revocation, says) {
            (Revocation::Failed(why), Some(says)) => assert!(why.contains(says), "{change:?}: {why}"),
            (Revocation::NotOffered, None) => {}
            (other, _) => panic!("{change:?}: {other:?}"),
        }
        assert!(!there(&place), "{change:?}");
    }
    place.server.script(|script| script.server.clear());
    for (scripted, says) in [
        (answer(503, "Retry-After: 5\r\n", ""), "HTTP status 503"),
        (answer(302, "Location: http://127.0.0.1:1/\r\n", ""), "HTTP status 302"),
        (
            answer(400, "", r#"{"error":"unsupported_token_type","error_description":"s3cret"}"#),
            "unsupported_token_type",
        ),
        ("HTTP/1.1 200 X\r\nContent-Length: 90\r\n\r\n{".to_owned(), "revoke"),
    ] {
        place.login(|_| {}).await.unwrap();
        place.server.script(|script| script.revocation_answer = Some(scripted.clone()));
        let out = logout(&place.home, "up").await.unwrap().unwrap();
        let Revocation::Failed(why) = out.revocation else { panic!("{scripted}: {:?}", out.revocation) };
        assert!(why.contains(says) && !why.contains("s3cret") && !there(&place), "{scripted}: {why}");
    }
    // A file that cannot be read is removed, and what it had is not known.
    place.write(&place.home.upstreams().join("up.json"), "{\"access_token\": \"s3cret\", ");
    let out = logout(&place.home, "up").await.unwrap().unwrap();
    let Revocation::Failed(why) = out.revocation else { panic!("{:?}", out.revocation) };
    assert!(
        out.issuer.is_none() && why.contains("damaged") && !why.contains("s3cret") && !there(&place),
        "{why}"
    );
}

#[tokio::test]
async fn a_client_with_a_secret_shows_it_when_it_revokes() {
    let place = Place::new().await;
    let file = place.secret(CLIENT_SECRET);
    let issuer = place.server.url.clone();
    place.settings(&format!(
        "[upstream.oauth]\nissuer = '{issuer}'\nclient_id = 'known'\nclient_secret_file = '{file}'"
    ));
    place.login(|_| {}).await.unwrap();
    let out = logout(&place.home, "up").await.unwrap().unwrap();
    assert_eq!(out.revocation, Revocation::Revoked);
    assert!(place.server.seen("/revoke").iter().all(|sent| sent["(authorization)"].starts_with("Basic ")));
}
