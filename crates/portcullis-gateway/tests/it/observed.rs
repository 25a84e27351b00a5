//! Reports of what contained actions did, as `/v1` takes them.

use portcullis_core::principal::CredentialKind;

use super::daemon::{Daemon, open, raw_unix, token};

#[tokio::test]
async fn reports_of_what_nobody_permitted_are_refused() {
    let daemon = Daemon::start().await;
    let token = token(&daemon.home, CredentialKind::Agent);
    let agent = daemon.agent();
    let run = agent.open_run(&open("mail", None)).await.unwrap().run;
    let post = |path: String, body: &str| {
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: gate\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        raw_unix(daemon.home.socket(), request)
    };
    // A report of what nobody permitted is refused, and that somebody made it is in the record.
    let digest = "0".repeat(64);
    let named = format!(r#""action": "{}", "profile_digest": "{digest}""#, "0".repeat(32));
    let connection = r#""connection": {"host": "a.example", "port": 443, "sent": 0, "received": 0, "verdict": "permitted"}"#;
    for (body, status, told) in [
        (format!("{{{named}, {connection}}}"), "409", "not_contained"),
        (format!("{{{named}}}"), "400", "one of `observed` and `connection`"),
        (format!(r#"{{"profile_digest": "{digest}", {connection}}}"#), "400", "one of `action`, `call`"),
        (format!(r#"{{{named}, {connection}, "tickt": ""}}"#), "400", "tickt"),
    ] {
        let refused = post(format!("/v1/runs/{run}/observed"), &body).await;
        assert!(refused.starts_with(&format!("HTTP/1.1 {status}")) && refused.contains(told), "{refused}");
    }
    let recorded = agent.events(&run.to_string(), 0, 100).await.unwrap();
    assert!(String::from_utf8_lossy(&recorded.lines).contains("observed-refused"));
}
