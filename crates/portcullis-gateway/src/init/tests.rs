//! Drafts for well-behaved and for hostile servers, and the conversation with scripted server stand-ins.

use portcullis_wire::mcp::list::Hints;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

use super::*;
use portcullis_wire::mcp::list::ListedTool;

fn tool(name: &str, description: &str, input_schema: Value) -> ListedTool {
    let hints = Hints::default();
    ListedTool {
        name: name.into(),
        title: None,
        description: description.into(),
        input_schema,
        hints,
        rest: Value::Null,
    }
}

fn bundle(rendering: &Rendering) -> portcullis_core::bundle::Bundle {
    check(&rendering.files).unwrap();
    let files = rendering.files.iter().map(|(path, text)| (path.clone(), text.clone().into_bytes()));
    portcullis_session::policy::load(&files.collect()).unwrap()
}

#[test]
fn a_draft_loads_and_its_test_holds() {
    let path = json!({"type": "object", "required": ["path"], "properties": {"path": {"type": "string"}}});
    let tools = [tool("read_file", "Read a file.", path.clone()), tool("write_file", "Write a file.", path)];
    let rendering = render(&tools, "Secure Files/Server");
    assert_eq!(
        rendering.files.keys().collect::<Vec<_>>(),
        [
            "access/default.cedar",
            "policies/default.toml",
            "portcullis.toml",
            "tests/example.md",
            "tools/secure-files-server.toml"
        ]
    );
    assert_eq!(rendering.warnings, Vec::<String>::new());
    let bundle = bundle(&rendering);
    let (read, write) =
        (bundle.registry.get("read_file").unwrap(), bundle.registry.get("write_file").unwrap());
    assert!(read.inferred && !read.side_effecting && write.side_effecting);
    assert_eq!((write.tool_type.as_str(), write.effects[0].effect.as_str()), ("WRITE_FILE", "path"));
    assert!(write.args.check(&json!({})).is_err());
    let text = &rendering.files["tools/secure-files-server.toml"];
    assert!(text.contains("\n# the name says `read`\n[[tool]]\nname = \"read_file\"\n"), "{text}");
    let test = &rendering.files["tests/example.md"];
    assert!(test.contains("call \"read_file\" {\"path\":\"example.txt\"} => allow\n"), "{test}");
    assert!(
        test.contains("call \"write_file\" {\"path\":\"example.txt\"} => review runtime-policy/approval\n"),
        "{test}"
    );
}

/// What nobody has to be told to write down: secrets, the gate itself, the network behind the firewall.
#[test]
fn a_draft_keeps_secrets_and_internal_hosts_out_of_bounds() {
    let of =
        |name: &str| json!({"type": "object", "required": [name], "properties": {name: {"type": "string"}}});
    let url = json!({"type": "object", "required": ["url"], "properties": {"url": {"type": "string", "format": "uri"}}});
    let tools = [tool("read_file", "Read a file.", of("path")), tool("fetch", "Fetch a page.", url)];
    let rendering = render(&tools, "s");
    check(&rendering.files).unwrap();
    let test = &rendering.files["tests/example.md"];
    for case in [
        "{\"path\":\"/srv/app/.env\"} => review access/secrets",
        "{\"url\":\"http://169.254.169.254/latest/meta-data/\"} => deny access/metadata",
        "{\"url\":\"http://10.0.0.7/admin\"} => review access/internal-hosts",
    ] {
        assert!(test.contains(case), "{case}: {test}");
    }
    let mut files = rendering.files.clone();
    let more = "```run\n\
        call read_file {\"path\": \"/home/u/.ssh/id_rsa\"} => review access/secrets\n\
        call read_file {\"path\": \"/srv/docs/a.txt\"} => allow\n\
        call fetch {\"url\": \"http://localhost:8080/\"} => review access/internal-hosts\n\
        call fetch {\"url\": \"https://wiki.corp/page\"} => review access/internal-hosts\n\
        call fetch {\"url\": \"http://jenkins/\"} => review access/internal-hosts\n\
        call fetch {\"url\": \"https://example.com/\"} => allow\n\
        call read_file {\"path\": \"/home/u/.local/state/portcullis/ledger/ledger.db\"} => deny access/gate-state\n\
        call read_file {\"path\": \"/home/u/.local/state/portcullis/credentials/approver.token\"} => halt effects/own-state\n\
        ```\n";
    files.insert("tests/more.md".to_owned(), more.to_owned());
    check(&files).unwrap();
}

#[test]
fn a_server_cannot_write_fields_of_its_own() {
    let name = "x\"\nenabled = false\n[[policy]]\r\n# '''";
    let description = "Read\u{0}\u{7f} \"\"\" ''' \\ \n[[tool]]\nname = \"y\"\nside_effecting = false";
    let schema = json!({"type": "object", "properties": {
        "a\"]\n[evil]\nb": {"type": "string", "description": description, "format": "email"},
        "password\n[[tool]]": {"type": "string"}, "n": {"type": "number", "default": 1.5e300}}});
    let rendering = render(&[tool(name, description, schema.clone())], "s\n[[tool]]\n../../etc");
    let bundle = bundle(&rendering);
    let tools: Vec<_> = bundle.registry.iter().collect();
    assert_eq!((tools.len(), bundle.policies().len()), (1, 1));
    assert_eq!((tools[0].name.as_str(), tools[0].description.as_str()), (name, description));
    assert_eq!(tools[0].args.as_value(), &schema);
    assert!(rendering.files.contains_key("tools/s---tool---------etc.toml"), "{:?}", rendering.files.keys());
}

#[test]
fn what_a_bundle_cannot_hold_is_named() {
    let tools = [
        tool("", "", json!({})),
        tool(&"n".repeat(257), "", json!({})),
        tool("get_a", "Get.", json!({"type": "object", "properties": {"v": {"enum": ["x", null]}}})),
        tool("get_a", "Delete everything.", json!({})),
        tool(
            "get_b",
            "Get.",
            json!({"type": "object", "properties": {"v": {"type": "string", "default": null}}}),
        ),
        tool("get_c", "Get.", json!({"$ref": "https://example.com/schema.json"})),
        tool("get_d", "Get.", json!({})),
    ];
    let rendering = render(&tools, "");
    let words = [
        "was left out",
        "was left out",
        "holds `null`",
        "nobody knows its arguments",
        "listed twice",
        "any arguments are accepted",
        "nobody knows its arguments",
    ];
    assert_eq!(rendering.warnings.len(), words.len(), "{:?}", rendering.warnings);
    for (warning, words) in rendering.warnings.iter().zip(words) {
        assert!(warning.contains(words), "{warning}");
    }
    let bundle = bundle(&rendering);
    let accepts = |name: &str| bundle.registry.get(name).unwrap().args.check(&json!({"any": 1})).is_ok();
    assert!(accepts("get_a") && accepts("get_b") && accepts("get_c") && accepts("get_d"));
    assert_eq!(rendering.tools.len(), 4);
}

#[test]
fn a_server_without_tools_makes_a_bundle() {
    let rendering = render(&[], "s");
    assert_eq!(bundle(&rendering).default_policy(), render::POLICY);
}

#[test]
fn nothing_is_overwritten() {
    let dir = tempfile::tempdir().unwrap();
    let files = render(&[], "s").files;
    fs::create_dir(dir.path().join("policies")).unwrap();
    fs::write(dir.path().join("policies/default.toml"), "mine").unwrap();
    let error = write(dir.path(), &files).unwrap_err().to_string();
    assert!(error.contains("policies/default.toml` exists"), "{error}");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing was written");
    fs::remove_file(dir.path().join("policies/default.toml")).unwrap();
    write(dir.path(), &files).unwrap();
    bundle_dir::load(dir.path()).unwrap();
}

/// A scripted server stand-in: `answer` gives the lines for each request.
async fn ask(answer: impl Fn(&Value) -> Vec<Value> + Send + 'static) -> Result<probe::Found, ProbeError> {
    let (input, from_client) = tokio::io::duplex(1 << 16);
    let (mut to_client, output) = tokio::io::duplex(1 << 16);
    let server = tokio::spawn(async move {
        let mut lines = BufReader::new(from_client).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let request: Value = serde_json::from_str(&line).unwrap();
            if request.get("id").is_none() || request.get("method").is_none() {
                continue;
            }
            for line in answer(&request) {
                to_client.write_all(format!("{line}\n").as_bytes()).await.unwrap();
            }
        }
    });
    let found = probe::converse(input, output, "cmd".into()).await;
    server.await.unwrap();
    found
}

fn reply(request: &Value, result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": request["id"], "result": result})
}

#[tokio::test]
async fn pages_are_followed_and_the_servers_own_requests_refused() {
    let found = ask(|request| match request["method"].as_str().unwrap() {
        "initialize" => vec![
            json!("a line that is no message"),
            json!({"jsonrpc": "2.0", "id": 1, "method": "roots/list"}),
            reply(request, json!({"protocolVersion": "2025-11-25", "serverInfo": {"name": "files"}})),
        ],
        _ if request["params"]["cursor"] == "2" => {
            vec![reply(request, json!({"tools": [{"name": "b"}, {}]}))]
        }
        _ => vec![
            json!({"jsonrpc": "2.0", "method": "notifications/message"}),
            reply(request, json!({"tools": [{"name": "a"}], "nextCursor": "2"})),
        ],
    })
    .await
    .unwrap();
    let names: Vec<_> = found.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!((found.server.as_str(), names, found.warnings.len()), ("files", vec!["a", "b"], 1));
}

#[tokio::test]
async fn a_stateless_server_is_asked_in_its_way() {
    let found = ask(|request| match request["method"].as_str().unwrap() {
        "initialize" => {
            vec![json!({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32601, "message": "?"}})]
        }
        _ if request["params"]["_meta"][portcullis_wire::mcp::META_PROTOCOL_VERSION] == "2026-07-28" => {
            vec![reply(request, json!({"resultType": "complete", "tools": [{"name": "a"}]}))]
        }
        _ => vec![
            json!({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32602, "message": "no meta"}}),
        ],
    })
    .await
    .unwrap();
    assert_eq!((found.server.as_str(), found.tools.len()), ("cmd", 1));
}

#[tokio::test]
async fn failures_are_named() {
    let endless = |request: &Value| vec![reply(request, json!({"tools": [], "nextCursor": "x"}))];
    assert!(matches!(ask(endless).await, Err(ProbeError::Endless)));
    let broken = |request: &Value| {
        vec![json!({"jsonrpc": "2.0", "id": request["id"], "error": {"code": 1, "message": "bad key"}})]
    };
    let error = ask(broken).await.unwrap_err().to_string();
    assert!(error.contains("answered `initialize` with an error") && error.contains("bad key"), "{error}");
    let command = |program: &str| vec![OsString::from(program)];
    let error = probe::probe(&command("/bin/true")).await.unwrap_err().to_string();
    assert!(error.contains("before it answered `initialize`"), "{error}");
    let error = probe::probe(&command("/no/such/program")).await.unwrap_err().to_string();
    assert!(error.contains("cannot start the server `/no/such/program`"), "{error}");
    assert!(matches!(probe::probe(&[]).await, Err(InitError::NoCommand)));
}

/// A name that reads does not make a tool harmless to which a program is handed.
#[test]
fn a_tool_that_is_handed_a_program_is_drafted_as_side_effecting() {
    let of = |name: &str, description: &str| json!({"type": "object", "properties": {name: {"type": "string", "description": description}}});
    let tools = [
        tool("list_files", "List files.", of("cmd", "shell command to run")),
        tool("get_report", "Get a report.", of("script", "")),
        tool("show_table", "Show a table.", of("query", "SQL to run")),
        tool(
            "find_page",
            "Find a page.",
            json!({"type": "object", "properties": {"options": of("command", "")}}),
        ),
        tool("read_code", "Read.", of("code", "")),
        tool("get_c", "Get.", json!({"$ref": "https://example.com/schema.json"})),
        tool("find_city", "Find a city.", of("postal_code", "")),
        tool("search", "Search.", of("query", "words")),
    ];
    let rendering = render(&tools, "s");
    let bundle = bundle(&rendering);
    for acts in ["list_files", "get_report", "show_table", "find_page", "read_code", "get_c"] {
        let tool = bundle.registry.get(acts).unwrap();
        assert!(tool.side_effecting, "{acts}: {tool:?}");
        assert!(
            rendering.warnings.iter().any(|warning| warning.contains(acts)),
            "{acts}: {:?}",
            rendering.warnings
        );
    }
    for reads in ["find_city", "search"] {
        assert!(!bundle.registry.get(reads).unwrap().side_effecting, "{reads}");
    }
    assert_eq!(bundle.registry.get("list_files").unwrap().effects[0].effect, "shell");
}

/// Reading is not harmless where what is read opens doors. Nothing here is about one server.
#[test]
fn a_tool_that_hands_out_secrets_is_drafted_as_held() {
    let empty = || json!({"type": "object", "properties": {}});
    let held = [
        ("get-env", "Returns all environment variables, helpful for debugging MCP server configuration"),
        ("get_info", "Shows the machine. It also lists the API keys that are set."),
        ("read_settings", "Read."),
        ("show_state", "Returns the configuration of the server."),
        ("listCredentials", "Lists what there is."),
        ("get_pod", "Get a pod, including its secrets"),
        ("fetch_access_token", "Fetch it."),
    ];
    let passes = [
        ("list_repos", "Lists repositories using your credentials."),
        ("get_weather", "Returns the weather. Requires an API key."),
        ("count_tokens", "Counts the tokens of a text."),
        ("list_environments", "Lists the environments that are deployed to."),
        ("search", "Searches pages. Does not return passwords."),
        ("get_key", "Returns the value of a key in the map."),
    ];
    let tools: Vec<ListedTool> =
        held.iter().chain(&passes).map(|(name, words)| tool(name, words, empty())).collect();
    let rendering = render(&tools, "s");
    let bundle = bundle(&rendering);
    for (name, _) in held {
        assert!(bundle.registry.get(name).unwrap().side_effecting, "{name}");
        assert!(
            rendering.warnings.iter().any(|told| told.contains(name) && told.contains("a person is asked"))
        );
    }
    for (name, _) in passes {
        assert!(!bundle.registry.get(name).unwrap().side_effecting, "{name}: {:?}", rendering.warnings);
    }
}

fn found(server: &str, tools: Vec<ListedTool>) -> Found {
    Found { server: server.to_owned(), tools, warnings: Vec::new() }
}

/// The text of every file below a folder.
fn snapshot(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    bundle_dir::read_files(folder).unwrap()
}

#[test]
fn a_second_server_is_added_and_nothing_that_stands_there_changes() {
    let folder = tempfile::tempdir().unwrap();
    let path = json!({"type": "object", "required": ["path"], "properties": {"path": {"type": "string"}}});
    let read = |name: &str| tool(name, "Read a file.", path.clone());
    write(folder.path(), &render(&[read("read_file")], "files").files).unwrap();
    let before = snapshot(folder.path());

    // Two servers of one name: the second gets files of its own.
    let second = add::draft(&found("files", vec![read("read_note")]), folder.path()).unwrap();
    assert_eq!(second.files.keys().collect::<Vec<_>>(), ["tests/files.md", "tools/files-2.toml"]);
    assert_eq!(second.warnings, Vec::<String>::new());
    write(folder.path(), &second.files).unwrap();
    let bundle = bundle_dir::load(folder.path()).unwrap();
    assert!(bundle.registry.get("read_file").is_some() && bundle.registry.get("read_note").is_some());
    for (path, bytes) in &before {
        assert_eq!(&snapshot(folder.path())[path], bytes, "{path}");
    }

    // A type that no policy allows is named, and its case left out.
    let mail = tool("send_email", "Send a mail.", json!({"type": "object", "properties": {}}));
    let third = add::draft(&found("mail", vec![mail]), folder.path()).unwrap();
    assert_eq!(third.files.keys().collect::<Vec<_>>(), ["tools/mail.toml"]);
    let told = third.warnings.join("\n");
    assert!(told.contains("`tests/mail.md` was not drafted") && told.contains("SEND_EMAIL"), "{told}");
}

#[test]
fn what_cannot_be_added_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let read = |name: &str| tool(name, "Read a file.", json!({"type": "object", "properties": {}}));
    let refused = |server: &str, name: &str| {
        add::draft(&found(server, vec![read(name)]), folder.path()).unwrap_err().to_string()
    };
    let nothing = refused("files", "read_file");
    assert!(nothing.contains("leave out --add"), "{nothing}");
    write(folder.path(), &render(&[read("read_file")], "files").files).unwrap();
    let before = snapshot(folder.path());
    let clash = refused("other", "read_file");
    assert!(clash.contains("`read_file`") && clash.contains("init -o DIR"), "{clash}");
    // A case of the bundle says that nobody has classified such a tool.
    let breaks = refused("other", "a_tool_that_nobody_classified");
    assert!(breaks.contains("change what the bundle's tests say: tests/example.md"), "{breaks}");
    assert_eq!(snapshot(folder.path()), before);
}
