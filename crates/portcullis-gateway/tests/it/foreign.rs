//! What one principal learns of another's runs and approvals: nothing, not even that they are there.

use portcullis_session::credentials::sha256_hex;
use serde_json::{Value, json};

use crate::daemon::{Daemon, Requests};

/// Opens a run of a policy.
async fn opened(agent: &Requests, policy: &str) -> String {
    let (status, answer) = agent.post("/v1/runs", &json!({"surface": "http", "policy": policy})).await;
    assert_eq!(status, 200, "{answer}");
    answer["run"].as_str().unwrap().to_owned()
}

/// An id that differs from this one in its last digit, so that nobody has it.
fn nobodys(id: &str) -> String {
    let last = if id.ends_with('0') { '1' } else { '0' };
    format!("{}{last}", start(id, 31))
}

/// Its first digits.
fn start(id: &str, digits: usize) -> &str {
    id.get(..digits).unwrap()
}

/// The start of an id that nobody has.
fn nobodys_start(id: &str) -> String {
    format!("ffffff{}", id.get(6..8).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
#[expect(clippy::too_many_lines, reason = "one scenario: each way in is compared with an id that nobody has")]
async fn runs_and_approvals_of_another_principal_are_as_if_they_were_not_there() {
    let daemon = Daemon::start_with_bundle(|bundle| {
        let path = bundle.join("portcullis.toml");
        let mut text = std::fs::read_to_string(&path).unwrap();
        for name in ["ann", "bob"] {
            text += &format!(
                "\n[[credential]]\ntoken_sha256 = '{}'\nprincipal = '{name}'\n",
                sha256_hex(&format!("token-of-{name}"))
            );
        }
        std::fs::write(path, text).unwrap();
    })
    .await;
    let requests = daemon.requests();
    let (ann, bob) = (requests.with_token("token-of-ann"), requests.with_token("token-of-bob"));
    let run = opened(&ann, "mail").await;
    let closed = opened(&ann, "mail").await;
    assert_eq!(ann.post(&format!("/v1/runs/{closed}/close"), &json!({})).await.0, 200);
    let mail = json!({"tool": "send_email", "wait_ms": 0,
        "arguments": {"recipient": "a@example.com", "subject": "s", "body": "b"}});
    let held = ann.post(&format!("/v1/runs/{run}/actions"), &mail).await.1;
    let approval = held["approval"].as_str().unwrap().to_owned();
    for (own, path) in [(&run, "runs"), (&approval, "approvals")] {
        for length in [8, 32] {
            let (status, _, body) = ann.get(&format!("/v1/{path}/{}", start(own, length))).await;
            assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
        }
    }

    // Whatever bob asks about, the answer is that to an id that nobody has, but for the id itself.
    let same = |one: (u16, String), other: (u16, String), id: &str, none: &str| {
        assert_eq!((one.0, one.1.replace(id, none)), other);
    };
    for (id, paths) in
        [(&run, ["runs/ID", "runs/ID/events", "runs/ID/export"]), (&approval, ["approvals/ID"; 3])]
    {
        for path in paths {
            for length in [8, 32] {
                // The start of the id is shared by both, so the short one is made another at its start.
                let none = if length == 32 { nobodys(id) } else { nobodys_start(id) };
                let get = async |id: &str| {
                    let (status, _, body) = bob.get(&format!("/v1/{}", path.replace("ID", id))).await;
                    (status, String::from_utf8(body).unwrap())
                };
                let (theirs, nothing) = (get(start(id, length)).await, get(&none).await);
                assert_eq!(theirs.0, 404, "{path}: {}", theirs.1);
                same(theirs, nothing, start(id, length), &none);
            }
        }
    }
    for (theirs, wanted) in [
        (&run, None),
        (&run, Some("mail")),
        (&closed, None),
        (&closed, Some("Strict Compliance Policy")),
        (&run, Some("no such")),
    ] {
        let none = nobodys(theirs);
        let resume = async |id: &str| {
            let (status, answer) =
                bob.post("/v1/runs", &json!({"surface": "http", "resume": id, "policy": wanted})).await;
            (status, answer.to_string())
        };
        same(resume(theirs).await, resume(&none).await, theirs, &none);
    }
    for length in [8, 32] {
        let none = if length == 32 { nobodys(&run) } else { nobodys_start(&run) };
        let act =
            async |id: &str| -> (u16, Value) { bob.post(&format!("/v1/runs/{id}/actions"), &mail).await };
        let (theirs, nothing) = (act(start(&run, length)).await, act(&none).await);
        same(
            (theirs.0, theirs.1.to_string()),
            (nothing.0, nothing.1.to_string()),
            start(&run, length),
            &none,
        );
    }
}
