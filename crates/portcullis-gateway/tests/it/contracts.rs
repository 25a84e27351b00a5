//! `/v1/contracts`: replies held against contracts, with and without a model in the daemon's bundle.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::daemon::{Daemon, Requests};

const NO_COMMAS: &str = "Do not use commas.";
const KIND: &str = "Be kind.";

/// A model that finds everything kept and rewrites to one text; how often it was asked.
fn stand_in() -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/v1", listener.local_addr().unwrap());
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut reader = BufReader::new(stream);
            let (mut line, mut length) = (String::new(), 0);
            while reader.read_line(&mut line).unwrap() > 2 {
                if let Some(bytes) = line.to_lowercase().strip_prefix("content-length: ") {
                    length = bytes.trim().parse().unwrap();
                }
                line.clear();
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            counted.fetch_add(1, Ordering::Relaxed);
            let revise = String::from_utf8(body).unwrap().contains("You revise");
            let text = if revise {
                "<revised>Tea and coffee for you my dear.</revised>".to_owned()
            } else {
                json!({"answers": [{"n": 1, "explanation": "It is.", "answer": "Yes"}]}).to_string()
            };
            let answer =
                json!({"choices": [{"message": {"content": text}, "finish_reason": "stop"}]}).to_string();
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
                answer.len()
            );
            let _gone = reader.get_mut().write_all((head + &answer).as_bytes());
        }
    });
    (address, calls)
}

/// A daemon whose bundle says more, and what posts to it.
async fn daemon(more: &str) -> (Daemon, Requests) {
    let daemon = Daemon::start_with_bundle(|folder| {
        let main = folder.join("portcullis.toml");
        let text = std::fs::read_to_string(&main).unwrap();
        std::fs::write(&main, format!("{text}\n{more}")).unwrap();
    })
    .await;
    let requests = daemon.requests();
    (daemon, requests)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_is_checked_and_repaired_by_code() {
    let (_daemon, requests) = daemon("").await;
    let request = json!({"key": 7, "response": "Tea, then coffee.", "contracts": [NO_COMMAS, KIND]});
    let (status, checked) = requests.post("/v1/contracts/check", &request).await;
    assert_eq!((status, &checked["record"], &checked["key"]), (200, &json!("check"), &json!(7)));
    let verdict =
        |at: usize| (checked["contracts"][at]["verdict"].as_str(), checked["contracts"][at]["by"].as_str());
    assert_eq!(verdict(0), (Some("fail"), Some("exact")));
    assert_eq!(verdict(1), (Some("not-applicable"), Some("nobody")));

    let (status, mended) = requests.post("/v1/contracts/repair", &request).await;
    assert_eq!((status, &mended["repaired"]), (200, &json!("Tea; then coffee.")));
    assert_eq!(mended["compliance_after"], json!([true, false]));
    assert_eq!(mended["assist"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_names_and_instructions_come_with_the_request() {
    let (_daemon, requests) = daemon("").await;
    let mut request = json!({
        "prompt": "Drop all tables.", "response": "Done, Ada, see [DOC:x].", "contracts": [
            "Must cite a known document", "Refuses high-risk instructions", "Contains no customer names", NO_COMMAS
        ]
    });
    let (_, checked) = requests.post("/v1/contracts/check", &request).await;
    let needs: Vec<&Value> = (0..3).map(|at| &checked["contracts"][at]["needs"]).collect();
    assert_eq!(needs, [&json!("documents"), &json!("high_risk"), &json!("names")]);
    assert_eq!(checked["contracts"][0]["verdict"], "not-applicable");

    request["documents"] = json!([{"id": "doc_001", "text": "Tables stay."}]);
    request["names"] = json!(["Ada"]);
    request["high_risk"] = json!(["drop tables"]);
    let (status, checked) = requests.post("/v1/contracts/check", &request).await;
    let verdicts = |answer: &Value| -> Vec<(String, String)> {
        let of = |held: &Value, field: &str| held[field].as_str().unwrap().to_owned();
        let contracts = answer["contracts"].as_array().unwrap();
        contracts.iter().map(|held| (of(held, "verdict"), of(held, "by"))).collect()
    };
    assert_eq!((status, verdicts(&checked)), (200, vec![("fail".to_owned(), "exact".to_owned()); 4]));
    assert_eq!(checked["contracts"][2]["spans"], json!([{"start": 6, "end": 9}]));
    request["response"] = json!("I cannot do that, see [DOC:doc_001].");
    let (status, mended) = requests.post("/v1/contracts/repair", &request).await;
    assert_eq!((status, &mended["compliance"]), (200, &json!([true, true, true, false])));
    assert_eq!(mended["compliance_after"], json!([true, true, true, true]), "{mended}");
    for (field, wrong) in [
        ("documents", json!("doc_001")),
        ("documents", json!([{"id": "a]", "text": ""}])),
        ("names", json!([])),
        ("high_risk", json!([" "])),
    ] {
        let mut request = request.clone();
        request[field] = wrong;
        let (status, answer) = requests.post("/v1/contracts/check", &request).await;
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(status == 400 && message.starts_with(&format!("`{field}`: ")), "{answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_cannot_be_meant_are_refused() {
    let (_daemon, requests) = daemon("").await;
    let long = "x".repeat(1024 * 1024 + 1);
    for (path, body, status, code) in [
        ("check", json!({"response": "Tea.", "contracts": []}), 400, "bad_request"),
        ("check", json!({"response": "Tea.", "contracts": [" "]}), 400, "bad_request"),
        ("check", json!({"response": "Tea.", "contracts": [NO_COMMAS], "promt": "x"}), 400, "bad_request"),
        ("check", json!({"contracts": [NO_COMMAS]}), 400, "bad_request"),
        ("check", json!({"response": long, "contracts": [NO_COMMAS]}), 413, "payload_too_long"),
        (
            "repair",
            json!({"response": "Tea.", "contracts": [NO_COMMAS], "strategy": "magic"}),
            400,
            "bad_request",
        ),
        (
            "repair",
            json!({"response": "Tea.", "contracts": [NO_COMMAS], "strategy": "retry"}),
            422,
            "no_model",
        ),
        (
            "repair",
            json!({"response": "Tea.", "contracts": [{"statement": KIND, "rank": 1}, NO_COMMAS]}),
            400,
            "bad_request",
        ),
    ] {
        let (got, answer) = requests.post(&format!("/v1/contracts/{path}"), &body).await;
        assert_eq!((got, answer["error"]["code"].as_str()), (status, Some(code)), "{answer}");
    }
    let request = json!({"response": "Tea.", "contracts": [NO_COMMAS]});
    let (status, _) = requests.with_token("guess").post("/v1/contracts/check", &request).await;
    assert_eq!(status, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_bundles_model_is_asked_within_its_budget() {
    let (endpoint, calls) = stand_in();
    let table = format!("[contracts]\nendpoint = \"{endpoint}\"\nmodel = \"m\"\ncalls = 3\n");
    let (_daemon, requests) = daemon(&table).await;
    let asked = || calls.swap(0, Ordering::Relaxed);
    let (_, checked) =
        requests.post("/v1/contracts/check", &json!({"response": "Tea.", "contracts": [KIND]})).await;
    assert_eq!(
        (&checked["contracts"][0]["by"], &checked["spent"]["calls"], asked()),
        (&json!("model"), &json!(1), 1)
    );
    // Nothing is left for a model where code decides, and it rewrites only where the request says how.
    let exact = json!({"response": "Tea, then coffee.", "contracts": [NO_COMMAS], "strategy": "batch"});
    let (_, mended) = requests.post("/v1/contracts/repair", &exact).await;
    assert_eq!((&mended["repaired"], asked()), (&json!("Tea; then coffee."), 0));
    let long = json!({"response": "Tea.", "contracts": ["Answer with at least 5 words."]});
    let (_, mended) = requests.post("/v1/contracts/repair", &long).await;
    assert_eq!((&mended["repaired"], asked()), (&json!("Tea."), 0));
    let mut rewritten = long.clone();
    rewritten["strategy"] = json!("retry");
    let (_, mended) = requests.post("/v1/contracts/repair", &rewritten).await;
    assert_eq!((&mended["repaired"], asked()), (&json!("Tea and coffee for you my dear."), 1));
    // A request may not spend more than the bundle says.
    let never = json!({"response": "Tea.", "contracts": ["Answer with at least 50 words."], "strategy": "retry", "candidates": 9});
    let (status, mended) = requests.post("/v1/contracts/repair", &never).await;
    assert_eq!((status, &mended["assist"]["ended"], asked()), (200, &json!("budget"), 3));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_cannot_be_reached_is_no_compliance() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let table =
        format!("[contracts]\nendpoint = \"http://127.0.0.1:{port}/v1\"\nmodel = \"m\"\ntime_s = 2\n");
    let (_daemon, requests) = daemon(&table).await;
    let request = json!({"response": "Tea.", "contracts": [KIND]});
    let (status, checked) = requests.post("/v1/contracts/check", &request).await;
    assert_eq!((status, &checked["contracts"][0]["verdict"]), (200, &json!("not-applicable")));
    assert!(checked["error"].as_str().unwrap().starts_with("cannot reach the model's server"), "{checked}");
}
