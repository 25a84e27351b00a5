//! Webhooks between a daemon and a real receiver on loopback.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use portcullis_core::event::Enforced;
use portcullis_core::id::RunId;
use portcullis_core::principal::CredentialKind;
use portcullis_gateway::api::{ApprovalPhase, RefuseApproval};
use portcullis_gateway::client::Client;
use serde_json::{Value, json};
use sha2::Sha256;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpListener;

use crate::daemon::{Daemon, POLICY, mail, open};

const SECRET: &[u8] = b"thirty-two random bytes, or so..";
const PATIENCE: Duration = Duration::from_secs(20);

fn signature(id: &str, at: &str, body: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(SECRET).unwrap();
    mac.update(format!("{id}.{at}.{body}").as_bytes());
    format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
}

fn now_s() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs()
}

/// A message as it came in, with its headers in lower case.
#[derive(Debug, Clone)]
struct Received {
    head: String,
    body: Value,
    at: Instant,
}

impl Received {
    fn header(&self, name: &str) -> &str {
        let line = self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        line.unwrap_or_else(|| panic!("no `{name}` in {}", self.head))
    }
}

/// Takes messages, checks their signatures, and answers with a status that may depend on how many came before.
#[derive(Clone)]
struct Receiver {
    url: String,
    received: Arc<Mutex<Vec<Received>>>,
}

impl Receiver {
    async fn start(status: impl Fn(usize) -> u16 + Send + Sync + 'static, delay: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let received: Arc<Mutex<Vec<Received>>> = Arc::default();
        let (kept, status) = (Arc::clone(&received), Arc::new(status));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (kept, status) = (Arc::clone(&kept), Arc::clone(&status));
                tokio::spawn(async move {
                    let mut reader = BufReader::new(stream);
                    let (mut head, mut length) = (String::new(), 0);
                    loop {
                        let mut line = String::new();
                        if reader.read_line(&mut line).await.unwrap() <= 2 {
                            break;
                        }
                        if let Some(bytes) = line.to_lowercase().strip_prefix("content-length: ") {
                            length = bytes.trim().parse().unwrap();
                        }
                        head.push_str(&line);
                    }
                    let mut body = vec![0; length];
                    reader.read_exact(&mut body).await.unwrap();
                    let body = String::from_utf8(body).unwrap();
                    let message =
                        Received { head, body: serde_json::from_str(&body).unwrap(), at: Instant::now() };
                    let expected =
                        signature(message.header("webhook-id"), message.header("webhook-timestamp"), &body);
                    assert_eq!(message.header("webhook-signature"), expected);
                    assert!(message.head.starts_with("POST /hook HTTP/1.1"), "{}", message.head);
                    tokio::time::sleep(delay).await;
                    let before = {
                        let mut kept = kept.lock().unwrap();
                        kept.push(message);
                        kept.len() - 1
                    };
                    let answer = format!(
                        "HTTP/1.1 {} X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
                        status(before)
                    );
                    let _gone = reader.get_mut().write_all(answer.as_bytes()).await;
                });
            }
        });
        Self { url, received }
    }

    /// The first message of a type about an approval, or about any.
    async fn message(&self, kind: &str, approval: Option<&str>) -> Received {
        let start = Instant::now();
        loop {
            let of = |message: &&Received| {
                message.body["type"] == kind
                    && approval.is_none_or(|id| message.body["data"]["approval"] == id)
            };
            if let Some(message) = self.received.lock().unwrap().iter().rev().find(of) {
                return message.clone();
            }
            assert!(start.elapsed() < PATIENCE, "no {kind} came: {:?}", self.received.lock().unwrap());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// The time between two attempts to deliver one message, once there were two.
    fn pause_before_a_repeat(&self) -> Option<Duration> {
        let received = self.received.lock().unwrap();
        let id = |message: &Received| message.header("webhook-id").to_owned();
        received.iter().enumerate().find_map(|(place, first)| {
            let again = received[place + 1..].iter().find(|later| id(later) == id(first))?;
            Some(again.at - first.at)
        })
    }
}

/// A daemon with webhooks of these names and addresses, and what else the bundle says of approvals.
async fn daemon(webhooks: &[(&str, &str)], approvals: &str) -> Daemon {
    let webhooks: Vec<_> =
        webhooks.iter().map(|(name, url)| ((*name).to_owned(), (*url).to_owned())).collect();
    let approvals = approvals.to_owned();
    Daemon::start_with_bundle(move |bundle: &Path| {
        let secret = bundle.parent().unwrap().join("secret");
        std::fs::write(&secret, format!("whsec_{}\n", STANDARD.encode(SECRET))).unwrap();
        std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o600)).unwrap();
        let roomy = POLICY.replace("max_side_effects = 2", "max_side_effects = 40");
        std::fs::write(bundle.join("policies/mail.toml"), roomy).unwrap();
        let main = bundle.join("portcullis.toml");
        let mut text = std::fs::read_to_string(&main).unwrap() + &approvals;
        for (name, url) in webhooks {
            let secret = secret.display();
            text += &format!(
                "\n[[approvals.webhook]]\nname = '{name}'\nurl = '{url}'\nsecret_file = '{secret}'\n"
            );
        }
        std::fs::write(main, text).unwrap();
    })
    .await
}

async fn held(agent: &Client, run: RunId, number: u32) -> String {
    let held = agent.propose(run, &mail(number, 0)).await.unwrap();
    assert_eq!(held.judged().enforced, Enforced::Held);
    held.judged().approval.unwrap().to_string()
}

/// What an approver's service sends back to a message.
fn reply(message: &Received, decision: &str) -> Value {
    let data = &message.body["data"];
    json!({"approval": data["approval"], "shown": data["shown"], "nonce": data["nonce"], "decision": decision,
           "note": "by pager"})
}

/// Posts a signed answer with a token of that kind; `change` may spoil the headers and the body.
async fn send(
    daemon: &Daemon,
    kind: CredentialKind,
    reply: &Value,
    change: impl FnOnce(&mut [(&'static str, String); 3], &mut String),
) -> (u16, Value) {
    let (at, mut body) = (now_s().to_string(), reply.to_string());
    let mut headers = [
        ("webhook-id", "answer-1".to_owned()),
        ("webhook-timestamp", at.clone()),
        ("webhook-signature", signature("answer-1", &at, &body)),
    ];
    change(&mut headers, &mut body);
    daemon.gets(kind).post_with("/v1/webhooks/oncall/answers", &headers, &body).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_is_told_granted_by_an_answer_and_the_decision_told() {
    let receiver = Receiver::start(|_| 204, Duration::ZERO).await;
    let daemon = daemon(&[("oncall", &receiver.url)], "").await;
    let agent = daemon.agent();
    let run = agent.open_run(&open("mail", None)).await.unwrap().run;
    let id = held(&agent, run, 1).await;
    let message = receiver.message("approval.requested", Some(&id)).await;
    let data = &message.body["data"];
    assert_eq!((&data["tool"], &data["whole"]), (&json!("send_email"), &json!(true)));
    let arguments = data["fields"].as_array().unwrap().iter().find(|field| field[0] == "arguments").unwrap();
    assert!(arguments[1].as_str().unwrap().contains("a@example.com"), "{data}");
    let (status, told) = send(&daemon, CredentialKind::Approver, &reply(&message, "grant"), |_, _| {}).await;
    assert_eq!((status, &told["state"]), (200, &json!("granted")), "{told}");
    let decided = receiver.message("approval.decided", Some(&id)).await;
    assert_eq!(decided.body["data"]["state"], "granted");
    assert_eq!(decided.body["data"]["by"], "approver:local-approver");
    assert!(agent.propose(run, &mail(1, 0)).await.unwrap().is_permitted());
    let webhooks = daemon.approver().webhooks().await.unwrap().webhooks;
    assert_eq!((webhooks[0].name.as_str(), webhooks[0].waiting), ("oncall", 0));
    assert!(webhooks[0].delivered >= 2 && !webhooks[0].host.contains("hook"), "{webhooks:?}");
    assert_eq!(agent.webhooks().await.unwrap_err().code(), Some("forbidden"));
}

#[tokio::test(flavor = "multi_thread")]
async fn forged_altered_late_and_repeated_answers_are_refused() {
    let receiver = Receiver::start(|_| 200, Duration::ZERO).await;
    let daemon = daemon(&[("oncall", &receiver.url)], "").await;
    let agent = daemon.agent();
    let run = agent.open_run(&open("mail", None)).await.unwrap().run;
    let (first, second) = (held(&agent, run, 1).await, held(&agent, run, 2).await);
    let approver = CredentialKind::Approver;
    let message = receiver.message("approval.requested", Some(&first)).await;
    let other = receiver.message("approval.requested", Some(&second)).await;
    let grant = reply(&message, "grant");
    let code =
        |(status, told): (u16, Value)| (status, told["error"]["code"].as_str().unwrap_or("").to_owned());
    let refused = |status: u16, code: &str| (status, code.to_owned());
    let forged = send(&daemon, approver, &grant, |headers, _| {
        headers[2].1 = format!("v1,{}", STANDARD.encode([0; 32]))
    });
    assert_eq!(code(forged.await), refused(401, "webhook_signature"));
    let altered = send(&daemon, approver, &grant, |_, body| *body = body.replace("pager", "Pager"));
    assert_eq!(code(altered.await), refused(401, "webhook_signature"));
    let late = send(&daemon, approver, &grant, |headers, body| {
        let at = (now_s() - 301).to_string();
        headers[2].1 = signature("answer-1", &at, body);
        headers[1].1 = at;
    });
    assert_eq!(code(late.await), refused(401, "webhook_time"));
    assert_eq!(
        code(send(&daemon, CredentialKind::Agent, &grant, |_, _| {}).await),
        refused(403, "forbidden")
    );
    let mut swapped = grant.clone();
    swapped["nonce"] = other.body["data"]["nonce"].clone();
    assert_eq!(code(send(&daemon, approver, &swapped, |_, _| {}).await), refused(409, "webhook_nonce"));
    let mut unseen = grant.clone();
    unseen["shown"] = other.body["data"]["shown"].clone();
    assert_eq!(code(send(&daemon, approver, &unseen, |_, _| {}).await), refused(409, "webhook_nonce"));
    assert_eq!(
        daemon.approver().approval(&first).await.unwrap().state,
        ApprovalPhase::Pending,
        "nothing was decided"
    );
    let (status, _) = send(&daemon, approver, &reply(&message, "refuse"), |_, _| {}).await;
    assert_eq!(status, 200);
    // The same message again, and another decision with its nonce.
    assert_eq!(
        code(send(&daemon, approver, &reply(&message, "refuse"), |_, _| {}).await),
        refused(409, "webhook_nonce")
    );
    assert_eq!(code(send(&daemon, approver, &grant, |_, _| {}).await), refused(409, "webhook_nonce"));
    let unknown = daemon.gets(approver).post_with("/v1/webhooks/nobody/answers", &[], "{}").await;
    assert_eq!(unknown.0, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_went_on_is_told_again_and_several_people_each_get_a_nonce() {
    let receiver = Receiver::start(|_| 200, Duration::ZERO).await;
    let approvals = "\n[approvals]\nquorum = 2\n[[credential]]\nkind = 'approver'\nprincipal = 'ann'\ntoken_sha256 = \
                     'ANN'\n[[credential]]\nkind = 'approver'\nprincipal = 'bob'\ntoken_sha256 = 'BOB'\n";
    let sha = |token: &str| {
        use sha2::Digest as _;
        sha2::Sha256::digest(token).iter().map(|byte| format!("{byte:02x}")).collect::<String>()
    };
    let (ann, bob) = ("ann-token-0123456789abcdef", "bob-token-0123456789abcdef");
    let approvals = approvals.replace("ANN", &sha(ann)).replace("BOB", &sha(bob));
    let daemon = daemon(&[("oncall", &receiver.url)], &approvals).await;
    let agent = daemon.agent();
    let run = agent.open_run(&open("mail", None)).await.unwrap().run;
    let id = held(&agent, run, 1).await;
    let message = receiver.message("approval.requested", Some(&id)).await;
    let by = async |token: &str, message: &Received| {
        let (at, body) = (now_s().to_string(), reply(message, "grant").to_string());
        let headers = [
            ("webhook-id", "a".to_owned()),
            ("webhook-timestamp", at.clone()),
            ("webhook-signature", signature("a", &at, &body)),
        ];
        let requests = daemon.gets(CredentialKind::Approver).with_token(token);
        requests.post_with("/v1/webhooks/oncall/answers", &headers, &body).await
    };
    let (status, told) = by(ann, &message).await;
    assert_eq!(
        (status, &told["state"], &told["wanted"]["agreed"]),
        (200, &json!("pending"), &json!(["approver:ann"]))
    );
    assert_eq!(by(bob, &message).await.1["error"]["code"], "webhook_nonce", "it was used");
    let start = Instant::now();
    let again = loop {
        let latest = receiver.message("approval.requested", Some(&id)).await;
        if latest.body["data"]["nonce"] != message.body["data"]["nonce"] {
            break latest;
        }
        assert!(start.elapsed() < PATIENCE);
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert_ne!(again.header("webhook-id"), message.header("webhook-id"));
    assert_eq!(by(bob, &again).await.1["state"], "granted");
    assert!(agent.propose(run, &mail(1, 0)).await.unwrap().is_permitted());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_waited_for_too_long_is_told_again_as_escalated() {
    let receiver = Receiver::start(|_| 200, Duration::ZERO).await;
    let approvals = "\n[[approvals.rule]]\nroles = ['finance']\nescalate_after_s = 1\nescalate_to = ['security']\n\
                     [[credential]]\nkind = 'approver'\nprincipal = 'sam'\nroles = ['security']\ntoken_sha256 = 'SAM'\n";
    let token = "sam-token-0123456789abcdef";
    let sha: String = {
        use sha2::Digest as _;
        sha2::Sha256::digest(token).iter().map(|byte| format!("{byte:02x}")).collect()
    };
    let daemon = daemon(&[("oncall", &receiver.url)], &approvals.replace("SAM", &sha)).await;
    let agent = daemon.agent();
    let run = agent.open_run(&open("mail", None)).await.unwrap().run;
    let id = held(&agent, run, 1).await;
    let start = Instant::now();
    let escalated = loop {
        let latest = receiver.message("approval.requested", Some(&id)).await;
        if latest.body["data"]["escalated"] == true {
            break latest;
        }
        assert_eq!(latest.body["data"]["escalated"], false);
        assert!(start.elapsed() < PATIENCE, "nobody was told that the request is escalated");
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    let messages: Vec<Received> = receiver.received.lock().unwrap().clone();
    assert_eq!(messages.len(), 2, "once as it was made, once as it is escalated");
    assert_ne!(messages[0].header("webhook-id"), escalated.header("webhook-id"));
    assert_eq!(escalated.body["data"]["wanted"]["escalates_to"], json!(["security"]));
    let (at, body) = (now_s().to_string(), reply(&escalated, "grant").to_string());
    let headers = [
        ("webhook-id", "a".to_owned()),
        ("webhook-timestamp", at.clone()),
        ("webhook-signature", signature("a", &at, &body)),
    ];
    let sam = daemon.gets(CredentialKind::Approver).with_token(token);
    let (status, told) = sam.post_with("/v1/webhooks/oncall/answers", &headers, &body).await;
    assert_eq!((status, &told["state"]), (200, &json!("granted")), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_fails_is_tried_again_and_a_slow_endpoint_holds_up_nobody() {
    // The first two attempts fail; the other endpoint takes its time; the third is not there.
    let flaky = Receiver::start(|before| if before < 2 { 503 } else { 200 }, Duration::ZERO).await;
    let slow = Receiver::start(|_| 200, Duration::from_secs(5)).await;
    let webhooks = [("flaky", flaky.url.as_str()), ("slow", &slow.url), ("dead", "http://127.0.0.1:1/")];
    let daemon = daemon(&webhooks, "").await;
    let (agent, approver) = (daemon.agent(), daemon.approver());
    let run = agent.open_run(&open("mail", None)).await.unwrap().run;
    let start = Instant::now();
    let id = held(&agent, run, 1).await;
    let note = Some("no".to_owned());
    approver.refuse(&id, &RefuseApproval { note }).await.unwrap();
    assert!(!agent.propose(run, &mail(1, 0)).await.unwrap().is_permitted());
    assert!(start.elapsed() < Duration::from_secs(4), "nothing waits for an endpoint");
    let second = held(&agent, run, 2).await;
    flaky.message("approval.requested", Some(&second)).await;
    let pause = loop {
        if let Some(pause) = flaky.pause_before_a_repeat() {
            break pause;
        }
        assert!(start.elapsed() < PATIENCE, "{:?}", flaky.received.lock().unwrap());
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert!(pause >= Duration::from_secs(1), "{pause:?}");
    let infos = approver.webhooks().await.unwrap().webhooks;
    let dead = infos.iter().find(|info| info.name == "dead").unwrap();
    assert!(dead.waiting > 0 && dead.last_error.is_some() && dead.delivered == 0, "{dead:?}");
    slow.message("approval.requested", None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_of_others_are_told_as_they_are_and_never_cut() {
    let receiver = Receiver::start(|_| 200, Duration::ZERO).await;
    let daemon = daemon(&[("oncall", &receiver.url)], "").await;
    let agent = daemon.agent();
    let run = agent.open_run(&open("mail", None)).await.unwrap().run;
    let hostile =
        json!({"recipient": "a@example.com", "subject": "\u{202e}gpj", "body": "x\u{200b}y\u{1b}[2J"});
    let held = agent.propose(run, &crate::daemon::call("send_email", hostile, 0)).await.unwrap();
    let id = held.judged().approval.unwrap().to_string();
    let message = receiver.message("approval.requested", Some(&id)).await;
    let text = message.body.to_string();
    assert!(text.contains("\\\\u{202e}gpj") && text.contains("\\\\u{200b}"), "{text}");
    assert!(!text.contains('\u{202e}') && !text.contains('\u{200b}'), "{text}");
    // A body that is too long is told without its texts, and cannot be granted from there.
    let long = json!({"recipient": "a@example.com", "subject": "s", "body": "x".repeat(100_000)});
    let held = agent.propose(run, &crate::daemon::call("send_email", long, 0)).await.unwrap();
    let long = held.judged().approval.unwrap().to_string();
    let message = receiver.message("approval.requested", Some(&long)).await;
    let data = &message.body["data"];
    assert_eq!((&data["whole"], &data["nonce"], &data["fields"]), (&json!(false), &Value::Null, &json!([])));
}
