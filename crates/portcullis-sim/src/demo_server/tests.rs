//! The demo server against the client of the SDK, and against hand-written lines.

use rmcp::model::{CallToolRequestParams, CallToolResult};
use rmcp::service::{RoleClient, RunningService};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream};
use tokio::task::JoinHandle;

use super::*;

const BUFFER_BYTES: usize = 64 * 1024;

fn start(dir: &Path) -> (DuplexStream, JoinHandle<Result<(), DemoServerError>>) {
    let (client, server) = tokio::io::duplex(BUFFER_BYTES);
    let dir = dir.to_path_buf();
    (client, tokio::spawn(async move { serve(&dir, server).await }))
}

async fn connect(dir: &Path) -> (RunningService<RoleClient, ()>, JoinHandle<Result<(), DemoServerError>>) {
    let (stream, server) = start(dir);
    (().serve(stream).await.unwrap(), server)
}

async fn call(
    client: &RunningService<RoleClient, ()>,
    tool: &'static str,
    arguments: Value,
) -> Result<CallToolResult, rmcp::ServiceError> {
    let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
    client.call_tool(CallToolRequestParams::new(tool).with_arguments(arguments)).await
}

fn text(result: &CallToolResult) -> &str {
    &result.content[0].as_text().unwrap().text
}

#[tokio::test]
async fn offers_the_five_tools_with_honest_hints() {
    let dir = tempfile::tempdir().unwrap();
    let (client, server) = connect(dir.path()).await;
    assert_eq!(client.peer_info().unwrap().server_info.as_ref().unwrap().name, "portcullis-demo-server");
    let tools = client.list_all_tools().await.unwrap();
    let hints: Vec<(&str, Option<bool>, Option<bool>)> = tools
        .iter()
        .map(|tool| {
            let hints = tool.annotations.as_ref().unwrap();
            (tool.name.as_ref(), hints.read_only_hint, hints.destructive_hint)
        })
        .collect();
    assert_eq!(
        hints,
        [
            ("retrieve_compliance_documents", Some(true), Some(false)),
            ("send_email", Some(false), Some(false)),
            ("query_internal_database", Some(true), Some(false)),
            ("write_file_to_storage", Some(false), Some(true)),
            ("perform_calculation", Some(true), Some(false)),
        ]
    );
    assert_eq!(
        Value::Object((*tools[1].input_schema).clone())["required"],
        json!(["recipient", "subject", "body"])
    );
    client.cancel().await.unwrap();
    server.await.unwrap().unwrap();
}

#[tokio::test]
async fn calls_change_the_folder_and_return_both_forms() {
    let dir = tempfile::tempdir().unwrap();
    let (client, server) = connect(dir.path()).await;
    let found =
        call(&client, "retrieve_compliance_documents", json!({"query": "incident response"})).await.unwrap();
    assert_eq!(found.structured_content.as_ref().unwrap()["documents"][0]["id"], "doc_004");
    assert!(text(&found).starts_with("doc_004: "));
    assert_eq!(found.is_error, Some(false));

    let rows = call(&client, "query_internal_database", json!({"query": "SELECT count(*) FROM customers"}))
        .await
        .unwrap();
    assert_eq!(rows.structured_content.unwrap()["rows"], json!([[6]]));
    let sum = call(&client, "perform_calculation", json!({"expression": "2 ^ 10"})).await.unwrap();
    assert_eq!(text(&sum), "2 ^ 10 = 1024");

    let mail = json!({"recipient": "ann@example.com", "subject": "Hello", "body": "Text"});
    call(&client, "send_email", mail).await.unwrap();
    assert!(dir.path().join("outbox/00001.eml").exists());
    call(&client, "write_file_to_storage", json!({"filename": "a/b.txt", "content": "x"})).await.unwrap();
    assert_eq!(std::fs::read_to_string(dir.path().join("storage/a/b.txt")).unwrap(), "x");
    client.cancel().await.unwrap();
    server.await.unwrap().unwrap();
}

#[tokio::test]
async fn failures_are_told_to_the_agent_and_change_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (client, server) = connect(dir.path()).await;
    for (tool, arguments, told) in [
        ("perform_calculation", json!({"expression": "1 / 0"}), "division by zero"),
        ("query_internal_database", json!({"query": "DROP TABLE customers"}), "only SELECT"),
        ("write_file_to_storage", json!({"filename": "../out.txt", "content": "x"}), "outside the storage"),
        (
            "send_email",
            json!({"recipient": "ann@example.com"}),
            "argument `subject` of `send_email` is missing",
        ),
    ] {
        let result = call(&client, tool, arguments).await.unwrap();
        assert_eq!(result.is_error, Some(true), "{tool}");
        assert!(text(&result).contains(told), "{tool}: {}", text(&result));
    }
    let unknown = call(&client, "launch_missile", json!({})).await.unwrap_err().to_string();
    assert!(unknown.contains("there is no tool `launch_missile` here"), "{unknown}");
    assert_eq!(std::fs::read_dir(dir.path().join("outbox")).unwrap().count(), 0);
    assert!(!dir.path().join("out.txt").exists());
    client.cancel().await.unwrap();
    server.await.unwrap().unwrap();
}

#[tokio::test]
async fn too_many_calls_at_once_are_turned_away() {
    let dir = tempfile::tempdir().unwrap();
    let workspace = Arc::new(Workspace::create(dir.path(), &BTreeMap::new()).unwrap());
    let calls = Arc::new(Semaphore::new(1));
    let server = DemoServer { workspace, calls: Arc::clone(&calls) };
    let (near, far) = tokio::io::duplex(BUFFER_BYTES);
    let session = tokio::spawn(async move { server.serve(far).await.unwrap().waiting().await });
    let client = ().serve(near).await.unwrap();
    let busy = calls.try_acquire().unwrap();
    let result = call(&client, "perform_calculation", json!({"expression": "1"})).await.unwrap();
    assert_eq!((result.is_error, text(&result)), (Some(true), "16 calls are running already; try again"));
    drop(busy);
    let result = call(&client, "perform_calculation", json!({"expression": "1"})).await.unwrap();
    assert_eq!(text(&result), "1 = 1");
    client.cancel().await.unwrap();
    session.await.unwrap().unwrap();
}

/// Sends `request` and returns the answer with the same id.
async fn ask(stream: &mut BufReader<DuplexStream>, request: Value) -> Value {
    stream.write_all(format!("{request}\n").as_bytes()).await.unwrap();
    loop {
        let mut line = String::new();
        assert_ne!(stream.read_line(&mut line).await.unwrap(), 0, "the server closed the session");
        let answer: Value = serde_json::from_str(&line).unwrap();
        if answer["id"] == request["id"] {
            return answer;
        }
    }
}

#[tokio::test]
async fn the_stateless_protocol_is_spoken_too() {
    let dir = tempfile::tempdir().unwrap();
    let (stream, server) = start(dir.path());
    let mut stream = BufReader::new(stream);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "0"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let discover = json!({"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": meta}});
    let discovered = ask(&mut stream, discover).await;
    let versions = discovered["result"]["supportedVersions"].as_array().unwrap().clone();
    assert!(versions.contains(&json!("2026-07-28")), "{discovered}");
    let params = json!({"_meta": meta, "name": "perform_calculation", "arguments": {"expression": "6 * 7"}});
    let called =
        ask(&mut stream, json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params})).await;
    assert_eq!(called["result"]["structuredContent"]["result"], 42, "{called}");
    drop(stream);
    server.await.unwrap().unwrap();
}

#[tokio::test]
async fn errors_at_the_start_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    let (_client, server) = start(&file);
    let error = server.await.unwrap().unwrap_err().to_string();
    assert!(error.starts_with("the demo server cannot use its folder: cannot create the folder"), "{error}");

    let (client, server) = start(dir.path());
    drop(client);
    assert!(matches!(server.await.unwrap(), Err(DemoServerError::Session(_))));
}
