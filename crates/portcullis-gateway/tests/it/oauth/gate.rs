//! The gate as a resource server: a daemon whose bundle names the issuer.

use std::path::Path;
use std::time::{Duration, Instant};

use portcullis_core::principal::CredentialKind;
use serde_json::{Value, json};

use super::server::{Server, answer, pair};
use crate::daemon::{Daemon, raw_unix};

const RESOURCE: &str = "https://gate.example/mcp";
const METADATA: &str = "https://gate.example/.well-known/oauth-protected-resource/mcp";

/// A daemon that believes the tokens of an issuer: those of `u1` as alice's, and those of others by their name.
async fn gate(issuer: &str, more: &str) -> Daemon {
    let oauth = format!(
        "\n[oauth]\nresource = '{RESOURCE}'\nscopes = ['mcp']\n[[oauth.issuer]]\nurl = '{issuer}'\n\
         roles_claim = 'groups'\nroles = {{ analysts = 'analyst' }}\n{more}"
    );
    let listed = format!(
        "[[oauth.subject]]\nissuer = '{issuer}'\nsubject = 'u1'\nprincipal = 'alice'\nroles = ['reader']\n"
    );
    Daemon::start_with_bundle(|bundle: &Path| {
        let file = bundle.join("portcullis.toml");
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::write(&file, format!("{text}{oauth}{listed}")).unwrap();
    })
    .await
}

/// Status, head and body of a request with a token.
async fn call(daemon: &Daemon, target: &str, token: Option<&str>) -> (u16, String, Value) {
    let authorization = token.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
    let request = format!("GET {target} HTTP/1.1\r\nHost: gate\r\nConnection: close\r\n{authorization}\r\n");
    let answer = raw_unix(daemon.home.socket(), request).await;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, head.to_lowercase(), serde_json::from_str(body).unwrap_or(Value::Null))
}

async fn caller(daemon: &Daemon, token: &str) -> (u16, String, Value) {
    call(daemon, "/v1/caller", Some(token)).await
}

fn says(answer: &(u16, String, Value), status: u16, words: &str) {
    let message = answer.2["error"]["message"].as_str().unwrap_or_default();
    assert!(answer.0 == status && message.contains(words), "{answer:?}, not {status} {words}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_of_the_issuer_stands_for_a_principal_of_the_bundle() {
    let server = Server::start().await;
    let daemon = gate(&server.url, "prefix = 'login:'\n").await;
    let (status, _, body) =
        caller(&daemon, &server.token(RESOURCE, &json!({ "groups": ["analysts", "x"] }))).await;
    assert_eq!(status, 200, "{body}");
    assert_eq!(
        body,
        json!({ "kind": "agent", "principal": "alice", "roles": ["reader", "analyst"], "policy": null })
    );
    let (_, _, body) = caller(&daemon, &server.token(RESOURCE, &json!({ "sub": "u2" }))).await;
    assert_eq!((&body["principal"], &body["roles"]), (&json!("login:u2"), &json!([])));
    let rs256 = server.signed(&json!({ "alg": "RS256", "kid": "r1" }), RESOURCE, &json!({}), Server::rs256);
    assert_eq!(caller(&daemon, &rs256).await.2["principal"], "alice");
    // The gate's own tokens are as good as before, and those of the issuer are for `/mcp` alone.
    let own = std::fs::read_to_string(daemon.home.token(CredentialKind::Approver)).unwrap();
    assert_eq!(caller(&daemon, own.trim()).await.2["kind"], "approver");
    assert_eq!(call(&daemon, "/v1/runs", Some(&rs256)).await.0, 401);
}

/// An MCP server that answers `initialize`.
const MCP_SERVER: &str = r#"
[server.a]
command = ['sh', '-c', '''while read -r line; do case "$line" in *'"initialize"'*)
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"a","version":"1"}}}';;
esac; done''']
"#;

/// Status and session of a message to `/mcp`.
async fn say(daemon: &Daemon, token: &str, headers: &str, body: &Value) -> (u16, Option<String>) {
    let body = body.to_string();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nHost: gate\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n{headers}\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let answer = raw_unix(daemon.home.socket(), request).await;
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    let session = answer.lines().find_map(|line| line.strip_prefix("mcp-session-id: "));
    (status, session.map(|id| id.trim().to_owned()))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_that_of_the_roles_it_was_opened_with() {
    let server = Server::start().await;
    let daemon = gate(&server.url, MCP_SERVER).await;
    let token = |groups: &Value| server.token(RESOURCE, &json!({ "groups": groups }));
    let (analyst, plain) = (token(&json!(["analysts"])), token(&json!([])));
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}});
    let (status, session) = say(&daemon, &analyst, "", &hello).await;
    assert_eq!(status, 200);
    let in_session = format!("Mcp-Session-Id: {}\r\n", session.unwrap());
    let met = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let again = token(&json!(["others", "analysts"]));
    for (token, expected) in [(&analyst, 202), (&plain, 404), (&again, 202)] {
        assert_eq!(say(&daemon, token, &in_session, &met).await.0, expected);
    }
    let named = "Portcullis-Session: shared\r\n";
    for (token, expected) in [(&analyst, 200), (&plain, 409), (&again, 200)] {
        assert_eq!(say(&daemon, token, named, &hello).await.0, expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_gate_says_where_to_get_a_token() {
    let server = Server::start().await;
    let daemon = gate(&server.url, "").await;
    let challenge = format!("www-authenticate: bearer scope=\"mcp\", resource_metadata=\"{METADATA}\"");
    let (status, head, _) = call(&daemon, "/v1/caller", None).await;
    assert!(status == 401 && head.contains(&challenge), "{head}");
    let (status, head, _) = caller(&daemon, "guess").await;
    assert!(
        status == 401 && head.contains("bearer error=\"invalid_token\", scope=\"mcp\", resource_metadata="),
        "{head}"
    );
    let narrow = caller(&daemon, &server.token(RESOURCE, &json!({ "scope": "mcpx" }))).await;
    says(&narrow, 403, "needs the scopes `mcp`");
    assert!(narrow.1.contains("error=\"insufficient_scope\", scope=\"mcp\""), "{}", narrow.1);
    for place in ["", "/mcp"] {
        let (status, _, body) =
            call(&daemon, &format!("/.well-known/oauth-protected-resource{place}"), None).await;
        assert_eq!(status, 200);
        let servers = json!([server.url]);
        assert_eq!((&body["resource"], &body["authorization_servers"]), (&json!(RESOURCE), &servers));
        assert_eq!(body["scopes_supported"], json!(["mcp"]));
    }
    assert_eq!(call(&daemon, "/.well-known/oauth-protected-resource/other", None).await.0, 404);
    let plain = Daemon::start().await;
    assert_eq!(call(&plain, "/.well-known/oauth-protected-resource", None).await.0, 404);
    let (status, head, _) = call(&plain, "/v1/caller", None).await;
    assert!(status == 401 && head.contains("www-authenticate: bearer\r\n"), "{head}");
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_that_are_not_for_the_gate_are_refused() {
    let server = Server::start().await;
    let other = Server::start().await;
    let daemon = gate(&server.url, "").await;
    let with = |changes: Value| server.token(RESOURCE, &changes);
    let signed =
        |header: Value, sign: fn(&[u8]) -> Vec<u8>| server.signed(&header, RESOURCE, &json!({}), sign);
    for (token, status, words) in [
        (server.token("https://other.example/mcp", &json!({})), 401, "its audience is another"),
        (server.token("https://gate.example", &json!({})), 401, "its audience is another"),
        (with(json!({ "iss": "https://evil.example" })), 401, "an issuer whose tokens are not accepted"),
        (with(json!({ "exp": 1_000 })), 401, "has expired"),
        (with(json!({ "nbf": 99_999_999_999_u64 })), 401, "not valid yet"),
        (with(json!({ "exp": null })), 401, "does not say when it expires"),
        (with(json!({ "sub": "u2" })), 403, "stands for nobody whom this gate knows"),
        (with(json!({ "sub": ["u1"] })), 403, "has no claim `sub`"),
        (with(json!({ "cnf": { "jkt": "x" } })), 401, "bound to a key"),
        (signed(json!({ "alg": "none" }), |_| Vec::new()), 401, "is not signed with"),
        (signed(json!({ "alg": "HS256", "kid": "k1" }), by_public_key), 401, "is not signed with"),
        (signed(json!({ "alg": "EdDSA", "kid": "k2" }), by_key_1), 401, "has no such key"),
        (signed(json!({ "alg": "EdDSA", "kid": "r1" }), by_key_1), 401, "has no such key"),
        (signed(json!({ "alg": "RS256", "kid": "k1" }), Server::rs256), 401, "has no such key"),
        (
            signed(json!({ "alg": "EdDSA", "kid": "k1", "jku": "x" }), |m| pair(9).sign(m).as_ref().to_vec()),
            401,
            "not the issuer's",
        ),
        (
            signed(json!({ "alg": "EdDSA", "kid": "k1", "typ": "secevent+jwt" }), by_key_1),
            401,
            "not an access token",
        ),
        // The key of another issuer, which names itself and which names this one.
        (other.token(RESOURCE, &json!({})), 401, "an issuer whose tokens are not accepted"),
        (
            other.signed(
                &json!({ "alg": "EdDSA", "kid": "k1" }),
                RESOURCE,
                &json!({ "iss": server.url }),
                |m| pair(2).sign(m).as_ref().to_vec(),
            ),
            401,
            "not the issuer's",
        ),
    ] {
        says(&caller(&daemon, &token).await, status, words);
    }
    let token = with(json!({}));
    says(
        &call(&daemon, &format!("/v1/caller?access_token={token}"), None).await,
        400,
        "in the address is not accepted",
    );
    says(
        &call(&daemon, "/v1/caller?access_token=x", Some(&token)).await,
        400,
        "in the address is not accepted",
    );
    let two = format!("{token}\r\nAuthorization: Bearer {token}");
    says(&caller(&daemon, &two).await, 400, "two `Authorization`");
    assert_eq!(caller(&daemon, &token).await.0, 200);
}

fn by_key_1(message: &[u8]) -> Vec<u8> {
    pair(1).sign(message).as_ref().to_vec()
}

/// What the issuer publishes, taken for a shared secret.
fn by_public_key(message: &[u8]) -> Vec<u8> {
    use ring::signature::KeyPair as _;
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, pair(1).public_key().as_ref());
    ring::hmac::sign(&key, message).as_ref().to_vec()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_key_is_fetched_and_who_makes_up_names_of_keys_has_nothing_fetched() {
    let server = Server::start().await;
    let daemon = gate(&server.url, "").await;
    // Many at once that know no key yet: it is asked once.
    let token = server.token(RESOURCE, &json!({}));
    let all = (0..16).map(|_| caller(&daemon, &token));
    for answer in futures(all).await {
        assert_eq!(answer.0, 200, "{answer:?}");
    }
    assert_eq!(server.seen("/jwks").len(), 1);
    for made_up in 0..40 {
        let token = server.signed(
            &json!({ "alg": "EdDSA", "kid": format!("x{made_up}") }),
            RESOURCE,
            &json!({}),
            by_key_1,
        );
        says(&caller(&daemon, &token).await, 401, "has no such key");
    }
    assert_eq!(server.seen("/jwks").len(), 1, "not within ten seconds");
    assert_eq!(caller(&daemon, &token).await.0, 200, "the known key is as good as before");
    // The issuer rotates; ten seconds after the last fetch the gate sees it.
    server.publish(&[("k2", 2)]);
    let rotated = server.signed(&json!({ "alg": "EdDSA", "kid": "k2" }), RESOURCE, &json!({}), |message| {
        pair(2).sign(message).as_ref().to_vec()
    });
    let start = Instant::now();
    while caller(&daemon, &rotated).await.0 != 200 {
        assert!(start.elapsed() < Duration::from_secs(30), "the new key was never fetched");
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    says(&caller(&daemon, &token).await, 401, "has no such key");
    assert_eq!(server.seen("/jwks").len(), 2);
}

/// All of them at once.
async fn futures<T>(all: impl Iterator<Item = impl Future<Output = T>>) -> Vec<T> {
    let mut all: Vec<_> = all.map(Box::pin).collect();
    let mut done: Vec<Option<T>> = all.iter().map(|_| None).collect();
    std::future::poll_fn(move |context| {
        for (future, done) in all.iter_mut().zip(&mut done) {
            if done.is_none()
                && let std::task::Poll::Ready(value) = future.as_mut().poll(context)
            {
                *done = Some(value);
            }
        }
        match done.iter().all(Option::is_some) {
            true => std::task::Poll::Ready(done.iter_mut().filter_map(Option::take).collect()),
            false => std::task::Poll::Pending,
        }
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_issuer_says_of_itself_is_not_followed_anywhere() {
    let huge = format!("{{\"issuer\":\"{}\"}}", "x".repeat(300 << 10));
    for metadata in [
        answer(302, "Location: http://127.0.0.1:1/\r\n", ""),
        answer(200, "", &huge),
        answer(200, "", "<html>"),
        answer(200, "", "{\"issuer\":\"http://127.0.0.1:1\"}"),
        "HTTP/1.1 200 X\r\nContent-Length: 90\r\n\r\n{".to_owned(),
    ] {
        let server = Server::start().await;
        server.script(|script| script.metadata_answer = Some(metadata.clone()));
        let daemon = gate(&server.url, "").await;
        let answer = caller(&daemon, &server.token(RESOURCE, &json!({}))).await;
        says(&answer, 503, "keys of the token's issuer cannot be fetched");
        assert_eq!(answer.2["error"]["code"], "issuer_unreachable", "{metadata}");
    }
    for keys in ["http://169.254.169.254/keys", "http://10.0.0.1/keys", "file:///etc/passwd"] {
        let server = Server::start().await;
        server.script(|script| drop(script.server.insert("jwks_uri".to_owned(), json!(keys))));
        let daemon = gate(&server.url, "").await;
        says(&caller(&daemon, &server.token(RESOURCE, &json!({}))).await, 503, "cannot be fetched");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_issuer_delays_nobody_else() {
    let server = Server::start().await;
    server.script(|script| script.metadata_delay = Duration::from_secs(60));
    let daemon = gate(&server.url, "").await;
    let own = std::fs::read_to_string(daemon.home.token(CredentialKind::Agent)).unwrap();
    let token = server.token(RESOURCE, &json!({}));
    let start = Instant::now();
    let (slow, quick) = tokio::join!(caller(&daemon, &token), async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        let answer = caller(&daemon, own.trim()).await;
        (answer.0, start.elapsed())
    });
    says(&slow, 503, "cannot be fetched");
    assert!(start.elapsed() < Duration::from_secs(20), "a slow issuer is given up");
    assert!(quick.0 == 200 && quick.1 < Duration::from_secs(5), "{quick:?}");
}
