//! The OpenAPI document: that it has all routes, and that what is really sent and answered is as it says.
//!
//! [`check`] is called for every request that tests send byte by byte, those of other files included.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{LazyLock, Mutex};

use jsonschema::Validator;
use portcullis_core::principal::CredentialKind;
use portcullis_gateway::daemon;
use serde_json::{Value, json};

use crate::console::Console;
use crate::daemon::Requests;

static DOCUMENT: LazyLock<Value> = LazyLock::new(|| serde_json::from_str(daemon::openapi()).unwrap());
/// The operations whose answers were checked, by method and path.
static CHECKED: Mutex<BTreeSet<(String, String)>> = Mutex::new(BTreeSet::new());

/// Holds a request and its answer to the document.
pub(crate) fn check(method: &str, path: &str, status: u16, sent: Option<&str>, got: &[u8]) {
    let path = path.split('?').next().unwrap();
    let Some((template, operation)) = operation(method, path) else {
        assert_eq!(status, 404, "{method} {path} is not in the document");
        return;
    };
    let at = format!("{method} {path}: {status}");
    let answer = serde_json::from_slice::<Value>(got);
    if status != 200 {
        let failure =
            &DOCUMENT["components"]["responses"]["Failure"]["content"]["application/json"]["schema"];
        return held(failure, &answer.unwrap(), true, &at);
    }
    if let Some(schema) = operation["responses"]["200"]["content"]["application/json"].get("schema") {
        held(schema, &answer.unwrap(), true, &at);
        CHECKED.lock().unwrap().insert((method.to_owned(), template));
    }
    if let (Some(sent), Some(body)) = (sent, operation.get("requestBody")) {
        held(
            &body["content"]["application/json"]["schema"],
            &serde_json::from_str(sent).unwrap(),
            false,
            &at,
        );
    }
}

/// The operation of a path, with the path as the document has it.
fn operation(method: &str, path: &str) -> Option<(String, &'static Value)> {
    let fits = |template: &str| {
        let (given, wanted): (Vec<&str>, Vec<&str>) =
            (path.split('/').collect(), template.split('/').collect());
        given.len() == wanted.len()
            && given.iter().zip(&wanted).all(|(given, wanted)| wanted.starts_with('{') || given == wanted)
    };
    let paths = DOCUMENT["paths"].as_object().unwrap();
    let found = paths
        .iter()
        .filter(|(template, _)| fits(template))
        .min_by_key(|(template, _)| template.matches('{').count());
    let (template, methods) = found?;
    methods.get(method.to_lowercase()).map(|operation| (template.clone(), operation))
}

/// Holds a message to a schema. An answer has nothing that the schema does not name.
fn held(schema: &Value, message: &Value, answer: bool, at: &str) {
    static VALIDATORS: Mutex<BTreeMap<String, &'static Validator>> = Mutex::new(BTreeMap::new());
    let mut validators = VALIDATORS.lock().unwrap();
    let validator = validators.entry(format!("{answer}{schema}")).or_insert_with(|| {
        let mut whole = json!({ "components": DOCUMENT["components"], "allOf": [schema] });
        if answer {
            close(&mut whole["components"]["schemas"]);
        }
        Box::leak(Box::new(jsonschema::validator_for(&whole).unwrap()))
    });
    let wrong: Vec<String> =
        validator.iter_errors(message).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(wrong.is_empty(), "{at}: {wrong:#?}\n{message:#}\n{schema:#}");
}

/// Lets objects have no other members than those that are named.
fn close(schemas: &mut Value) {
    for schema in schemas.as_object_mut().unwrap().values_mut() {
        let named = schema.get("properties").is_some() && schema.get("additionalProperties").is_none();
        if let Some(schema) = schema.as_object_mut().filter(|_| named) {
            schema.insert("unevaluatedProperties".to_owned(), json!(false));
        }
    }
}

/// Method and path of all operations.
fn operations() -> BTreeSet<(String, String)> {
    let paths = DOCUMENT["paths"].as_object().unwrap();
    let of_path = |(path, methods): (&String, &Value)| {
        let methods: Vec<String> =
            methods.as_object().unwrap().keys().map(|method| method.to_uppercase()).collect();
        methods.into_iter().map(|method| (method, path.clone())).collect::<Vec<_>>()
    };
    paths.iter().flat_map(of_path).collect()
}

/// A path without the names of its parameters.
fn bare(path: &str) -> String {
    let part = |part: &str| if part.starts_with('{') { "{}".to_owned() } else { part.to_owned() };
    path.split('/').map(part).collect::<Vec<_>>().join("/")
}

#[test]
fn the_manual_and_the_document_have_the_same_routes() {
    let manual = include_str!("../../../../docs/http-api.md");
    let mut written = BTreeSet::new();
    for line in manual.lines().filter(|line| line.starts_with("| `GET ") || line.starts_with("| `POST ")) {
        let cell = line.split('|').nth(1).unwrap();
        let mut before: Option<(String, String)> = None;
        for quoted in cell.split('`').skip(1).step_by(2) {
            let route = match (quoted.split_once(' '), &before) {
                (Some((method, path)), _) => (method.to_owned(), path.split('?').next().unwrap().to_owned()),
                // The rest of a path that was written just before.
                (None, Some((method, path))) if quoted.starts_with('/') => {
                    (method.clone(), format!("{}{quoted}", path.rsplit_once('/').unwrap().0))
                }
                _ => continue,
            };
            written.insert((route.0.clone(), bare(&route.1)));
            before = Some(route);
        }
    }
    let described: BTreeSet<(String, String)> = operations()
        .into_iter()
        .filter(|(_, path)| path.starts_with("/v1/"))
        .map(|(method, path)| (method, bare(&path)))
        .collect();
    assert_eq!(written, described);
}

#[test]
fn names_in_the_document_are_told_apart_by_words() {
    let schemas = DOCUMENT["components"]["schemas"].as_object().unwrap();
    assert!(schemas.len() > 100, "{}", schemas.len());
    for (name, schema) in schemas {
        assert!(
            !name.ends_with(|c: char| c.is_ascii_digit()),
            "two types are called {name}; rename one with #[schemars(rename)]"
        );
        assert!(!schema.to_string().contains("](crate"), "{schema}");
    }
    let ids: Vec<&str> = operations()
        .iter()
        .map(|(method, path)| DOCUMENT["paths"][path][method.to_lowercase()]["operationId"].as_str().unwrap())
        .collect();
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len(), "{ids:?}");
}

async fn said(by: &Requests, path: &str, body: Value) -> Value {
    let (status, answer) = by.post(path, &body).await;
    assert_eq!(status, 200, "{path}: {answer}");
    answer
}

async fn looked(by: &Requests, path: &str) -> Value {
    serde_json::from_slice(&by.get(path).await.2).unwrap()
}

/// What an agent says in a run; gives the address of a request for approval and of a fact.
async fn agent_says(agent: &Requests, run: &str) -> (String, String) {
    let post = async |path: &str, body: Value| said(agent, &format!("{run}{path}"), body).await;
    post("/inputs", json!({"text": "Write to a@example.com.", "role": "user"})).await;
    let action = json!({"tool": "retrieve_compliance_documents", "arguments": {"query": "x"}});
    let action = post("/actions", action).await;
    post("/outcomes", json!({"action": action["action"], "status": "ok", "content": "found"})).await;
    post("/turns", json!({"actions": [{"tool": "no_such_tool", "arguments": {}}]})).await;
    post("/told", json!({"server": "npx files", "content": "Tools changed."})).await;
    lists(agent, run, "Reads.").await;
    lists(agent, run, "Reads and sends.").await;
    post("/evidence", json!({"name": "plan", "digest": "00".repeat(32)})).await;
    post("/outputs", json!({"text": "Done."})).await;
    post("/stopping", json!({})).await;
    let criteria = json!([{"type": "file_exists", "path": "/srv/report"}]);
    post("/work", json!({"operation": {"op": "create", "title": "Report", "criteria": criteria}})).await;
    post("/state", json!({"operation": {"op": "put", "key": "k", "value": [1]}})).await;
    post("/state", json!({"operation": {"op": "history", "key": "k"}})).await;
    let fact = post("/facts", json!({"operation": {"op": "write", "text": "Ann reads mail at nine."}})).await;
    for part in ["/work", "/state", ""] {
        agent.get(&format!("{run}{part}")).await;
    }
    for path in ["/v1/caller", "/v1/runs", "/v1/health", "/v1/freezes", "/v1/approvals?state=all"] {
        agent.get(path).await;
    }
    (waits(agent, run, 0).await, format!("/v1/facts/{}", fact["fact"].as_str().unwrap()))
}

/// A server lists a tool.
async fn lists(agent: &Requests, run: &str, description: &str) {
    let tool = json!({"name": "read", "description": description, "input_schema": {"type": "object"}});
    let listed = json!({"server": "files", "command": "npx files", "tools": [tool]});
    said(agent, &format!("{run}/tools"), listed).await;
}

/// A call that is held; the address of the request.
async fn waits(agent: &Requests, run: &str, number: u32) -> String {
    let mail = json!({"recipient": "a@example.com", "subject": number.to_string(), "body": "b"});
    let call = json!({"tool": "send_email", "arguments": mail, "wait_ms": 0});
    let held = said(agent, &format!("{run}/actions"), call).await;
    format!("/v1/approvals/{}", held["approval"].as_str().unwrap())
}

/// What an approver says and looks at.
async fn approver_says(approver: &Requests, agent: &Requests, run: &str, (approval, fact): (String, String)) {
    let say = async |path: &str, body: Value| said(approver, path, body).await;
    let shown = looked(approver, &approval).await;
    say(&format!("{approval}/grant"), json!({"shown": shown["shown"], "scope": "tool"})).await;
    say(&format!("{approval}/revoke"), json!({})).await;
    say(&format!("{}/refuse", waits(agent, run, 1).await), json!({"note": "no"})).await;
    say(&format!("{}/answer", waits(agent, run, 2).await), json!({"note": "ask Ann"})).await;
    let nobody = json!({"approval": "000000", "shown": "00".repeat(32)});
    say("/v1/approvals/grant", json!({"approvals": [nobody]})).await;
    let changed = looked(approver, "/v1/tools/changed").await;
    let one = &changed["changed"][0];
    say("/v1/tools/accept", json!({"tool": "read", "server": one["server"], "digest": one["short"]})).await;
    lists(agent, run, "Reads and pays.").await;
    let all = looked(approver, "/v1/tools/changed").await;
    say("/v1/tools/accept-all", json!({"digest": all["short"]})).await;
    for path in ["/v1/approvals/stats", "/v1/webhooks", "/v1/facts", &fact] {
        looked(approver, path).await;
    }
    say("/v1/freezes", json!({"scope": {"principal": "otto"}})).await;
    say("/v1/freezes/release", json!({"scope": {"principal": "otto"}, "stage": "all"})).await;
    let reply = json!({"response": "Tea, then coffee.", "contracts": ["Do not use commas."]});
    say("/v1/contracts/check", reply.clone()).await;
    say("/v1/contracts/repair", reply).await;
    say("/v1/bundles/reload", json!({})).await;
    say("/v1/console/links", json!({})).await;
    say("/v1/hook", json!({"input": "{}"})).await;
    say(&format!("{run}/control"), json!({"control": "pause"})).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_answered_is_as_the_document_says() {
    let console = Console::start().await;
    let (agent, approver) = (console.daemon.requests(), console.daemon.gets(CredentialKind::Approver));
    let (status, headers, body) = agent.with_token("none").get("/v1/openapi.json").await;
    assert!(status == 200 && headers.contains("application/json"), "{headers}");
    assert_eq!(body, daemon::openapi().as_bytes(), "the command prints what is served");

    let opened = said(&agent, "/v1/runs", json!({"surface": "http", "policy": "mail"})).await;
    let run = format!("/v1/runs/{}", opened["run"].as_str().unwrap());
    let addresses = agent_says(&agent, &run).await;
    approver_says(&approver, &agent, &run, addresses).await;
    said(&agent, &format!("{run}/close"), json!({})).await;

    // Checked by the tests of what they belong to: `observed`, `confirmations`, `webhooks`.
    let elsewhere = [
        ("POST", "/v1/runs/{run}/confirmations"),
        ("POST", "/v1/runs/{run}/observed"),
        ("POST", "/v1/tickets/take"),
        ("POST", "/v1/webhooks/{webhook}/answers"),
    ];
    let is_json = |(method, path): &(String, String)| {
        let answers = &DOCUMENT["paths"][path][method.to_lowercase()]["responses"]["200"];
        answers["content"].get("application/json").is_some()
    };
    let checked = CHECKED.lock().unwrap();
    let missed = operations().into_iter().filter(is_json).filter(|operation| !checked.contains(operation));
    let missed: Vec<_> =
        missed.filter(|(method, path)| !elsewhere.contains(&(method.as_str(), path.as_str()))).collect();
    assert!(missed.is_empty(), "{missed:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_route_of_the_document_is_served() {
    let console = Console::start().await;
    let (agent, anybody) = (console.daemon.requests(), console.daemon.requests().with_token("none"));
    for (method, path) in operations() {
        let concrete = path.replace("{run}", &"0".repeat(32)).replace(['{', '}'], "");
        if concrete.ends_with("/attach") {
            continue;
        }
        let answer = match method.as_str() {
            "GET" => agent.get(&concrete).await.2,
            _ => agent.post(&concrete, &json!({})).await.1.to_string().into_bytes(),
        };
        let answer = String::from_utf8_lossy(&answer);
        assert!(!answer.contains("there is no such path"), "{method} {path}: {answer}");
        // Who may call is as the document says.
        let open = DOCUMENT["paths"][&path][method.to_lowercase()]["security"].as_array().unwrap().is_empty();
        let status = match method.as_str() {
            "GET" => anybody.get(&concrete).await.0,
            _ => anybody.post(&concrete, &json!({})).await.0,
        };
        assert_eq!(status == 401, !open, "{method} {path}: {status}");
    }
}
