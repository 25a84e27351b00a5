//! Both directions by whole conversations: what each side sends, and what the other one gets.

mod ended;

use serde_json::{Value, json};

use super::*;
use crate::mcp::*;

fn line(value: &Value) -> Vec<u8> {
    value.to_string().into_bytes()
}

fn read(lines: &[Vec<u8>]) -> Vec<Value> {
    lines.iter().map(|line| serde_json::from_slice(line).unwrap()).collect()
}

/// What the translator does with a message, as values.
#[derive(Debug, PartialEq)]
struct Done {
    to_server: Vec<Value>,
    to_client: Vec<Value>,
}

fn done(turn: Option<Turn>, as_it_is: Value, from_client: bool) -> Done {
    match turn {
        Some(turn) => {
            let ended = turn.ended.into_iter().map(|ended| ended.line);
            let to_client: Vec<_> = turn.to_client.into_iter().chain(ended).collect();
            Done { to_server: read(&turn.to_server), to_client: read(&to_client) }
        }
        None if from_client => Done { to_server: vec![as_it_is], to_client: vec![] },
        None => Done { to_server: vec![], to_client: vec![as_it_is] },
    }
}

struct Between(Translator);

impl Between {
    fn new() -> Self {
        Self(Translator::new(Unmatched::Refuse))
    }

    fn client(&mut self, message: Value) -> Done {
        done(self.0.client_says(&line(&message)), message, true)
    }

    fn server(&mut self, message: Value) -> Done {
        done(self.0.server_says(&line(&message)), message, false)
    }

    /// A message of the client of which the server gets the one that is returned, and the client nothing.
    #[track_caller]
    fn sends(&mut self, message: Value) -> Value {
        let done = self.client(message);
        assert_eq!((done.to_client.len(), done.to_server.len()), (0, 1), "{done:?}");
        done.to_server.into_iter().next().unwrap()
    }

    /// A message of the server of which the client gets the one that is returned, and the server nothing.
    #[track_caller]
    fn tells(&mut self, message: Value) -> Value {
        let done = self.server(message);
        assert_eq!((done.to_client.len(), done.to_server.len()), (1, 0), "{done:?}");
        done.to_client.into_iter().next().unwrap()
    }

    /// A message of the client that is answered without the server.
    #[track_caller]
    fn answers(&mut self, message: Value) -> Value {
        let done = self.client(message);
        assert_eq!((done.to_client.len(), done.to_server.len()), (1, 0), "{done:?}");
        done.to_client.into_iter().next().unwrap()
    }
}

fn request(id: impl Into<Value>, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id.into(), "method": method, "params": params})
}

fn result(id: impl Into<Value>, result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id.into(), "result": result})
}

fn error(id: impl Into<Value>, code: i64) -> Value {
    json!({"jsonrpc": "2.0", "id": id.into(), "error": {"code": code, "message": "no"}})
}

fn note(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

fn hello() -> Value {
    let client = json!({"name": "old", "version": "1"});
    let capabilities = json!({"elicitation": {}, "sampling": {}, "tasks": {"list": {}}});
    request(
        0,
        INITIALIZE,
        json!({"protocolVersion": "2025-06-18", "capabilities": capabilities, "clientInfo": client}),
    )
}

/// What each request of the client of [`hello`] carries.
fn old_meta() -> Value {
    json!({
        META_PROTOCOL_VERSION: V_2026_07_28,
        META_CLIENT_INFO: {"name": "old", "version": "1"},
        META_CLIENT_CAPABILITIES: {"elicitation": {}, "sampling": {}},
    })
}

/// A client of sessions before a server without, once they have met.
fn up() -> Between {
    let mut between = Between::new();
    assert_eq!(between.sends(hello()), hello());
    let asked = between.server(error(0, -32601));
    assert_eq!(asked.to_server, [request(DISCOVER_ID, DISCOVER, json!({"_meta": old_meta()}))]);
    let introduced = between.tells(result(
        DISCOVER_ID,
        json!({
            "resultType": "complete", "supportedVersions": ["2026-07-28"], "instructions": "Be brief.",
            "capabilities": {"tools": {"listChanged": true}, "resources": {"subscribe": true}, "extensions": {"x/y": {}}},
            "_meta": {META_SERVER_INFO: {"name": "new", "version": "2"}}, "ttlMs": 1, "cacheScope": "public",
        }),
    ));
    let told = json!({
        "protocolVersion": "2025-06-18", "serverInfo": {"name": "new", "version": "2"}, "instructions": "Be brief.",
        "capabilities": {"tools": {"listChanged": true}, "resources": {"subscribe": true}},
    });
    assert_eq!(introduced, result(0, told));
    let listens = between.sends(json!({"jsonrpc": "2.0", "method": INITIALIZED}));
    assert_eq!(
        listens,
        request(
            "portcullis-listen-1",
            SUBSCRIPTIONS_LISTEN,
            json!({"notifications": {"toolsListChanged": true}, "_meta": old_meta()})
        )
    );
    between
}

fn new_meta() -> Value {
    json!({
        META_PROTOCOL_VERSION: V_2026_07_28,
        META_CLIENT_INFO: {"name": "new", "version": "2"},
        META_CLIENT_CAPABILITIES: {"elicitation": {}},
    })
}

/// The same of a client that shows its roots as well.
fn with_roots(mut call: Value) -> Value {
    call["params"]["_meta"][META_CLIENT_CAPABILITIES] = json!({"roots": {}});
    call
}

/// A client without sessions before a server of sessions, once they have met.
fn down() -> Between {
    let mut between = Between::new();
    let first = request(1, DISCOVER, json!({"_meta": new_meta()}));
    assert_eq!(between.sends(first.clone()), first);
    let opens = between.server(error(1, -32601));
    let params = json!({
        "protocolVersion": V_2025_11_25, "capabilities": {"elicitation": {}}, "clientInfo": {"name": "new", "version": "2"},
    });
    assert_eq!(opens.to_server, [request(INITIALIZE_ID, INITIALIZE, params)]);
    let opened = between.server(result(
        INITIALIZE_ID,
        json!({
            "protocolVersion": "2025-06-18", "serverInfo": {"name": "old", "version": "1"},
            "capabilities": {"tools": {"listChanged": true}, "resources": {"subscribe": true}, "logging": {}},
        }),
    ));
    assert_eq!(opened.to_server, [json!({"jsonrpc": "2.0", "method": INITIALIZED})]);
    let [discovered] = opened.to_client.as_slice() else { panic!("{opened:?}") };
    assert_eq!(discovered["id"], 1);
    assert_eq!(discovered["result"]["supportedVersions"], json!([V_2026_07_28]));
    assert_eq!(discovered["result"]["_meta"][META_SERVER_INFO]["name"], "old");
    between
}

#[test]
fn one_generation_passes_byte_for_byte() {
    for (first, answer) in [
        (hello(), result(0, json!({"protocolVersion": "2025-06-18"}))),
        (
            request(1, DISCOVER, json!({"_meta": new_meta()})),
            result(1, json!({"supportedVersions": [V_2026_07_28]})),
        ),
        (request(1, "tools/list", json!({"_meta": new_meta()})), error(1, -32020)),
    ] {
        let mut translator = Translator::new(Unmatched::Refuse);
        assert!(translator.client_says(&line(&first)).is_none());
        assert!(!translator.is_settled());
        assert!(translator.server_says(&line(&answer)).is_none());
        assert!(translator.is_settled(), "{first}");
    }
}

#[test]
fn a_server_that_speaks_neither_is_passed_on_with_its_own_words() {
    let mut between = Between::new();
    between.sends(hello());
    between.server(error(0, -32603));
    assert_eq!(
        between.client(json!({"jsonrpc": "2.0", "method": "x"})).to_server,
        Vec::<Value>::new(),
        "it waits"
    );
    let told = between.server(error(DISCOVER_ID, -32601));
    assert_eq!(told.to_client, [error(0, -32603)]);
    assert_eq!(told.to_server, [json!({"jsonrpc": "2.0", "method": "x"})]);
    assert!(between.0.is_settled());

    // Over a transport that says so in another way.
    let mut translator = Translator::new(Unmatched::Refuse);
    translator.client_says(&line(&hello()));
    assert_eq!(translator.lost(&Id::Integer(0), true, "status 400").to_server.len(), 1);
    let lost = translator.lost(&Id::String(DISCOVER_ID.into()), true, "status 404").lost;
    assert_eq!(lost, [Loss { id: Id::Integer(0), why: Some("status 400".to_owned()) }]);

    // A server that cannot be reached is not asked twice.
    let mut translator = Translator::new(Unmatched::Refuse);
    translator.client_says(&line(&hello()));
    let turn = translator.lost(&Id::Integer(0), false, "unreachable");
    assert_eq!((turn.to_server.len(), turn.lost.len()), (0, 1));
}

#[test]
fn each_request_of_a_session_says_who_asks() {
    let mut between = up();
    let asked =
        between.sends(request(2, "tools/list", json!({"cursor": "c", "_meta": {"progressToken": 5}})));
    let mut meta = old_meta();
    meta["progressToken"] = 5.into();
    assert_eq!(asked, request(2, "tools/list", json!({"cursor": "c", "_meta": meta})));
    let tools = result(2, json!({"resultType": "complete", "tools": [], "ttlMs": 0, "cacheScope": "public"}));
    assert_eq!(between.tells(tools.clone()), tools);

    assert_eq!(between.answers(request(3, PING, json!({}))), result(3, json!({})));
    assert_eq!(between.answers(request(4, SET_LEVEL, json!({"level": "error"}))), result(4, json!({})));
    let asked = between.sends(request(5, "prompts/list", json!({})));
    assert_eq!(asked["params"]["_meta"][META_LOG_LEVEL], "error");
    for swallowed in [ROOTS_CHANGED, PROGRESS] {
        assert_eq!(between.client(note(swallowed, json!({}))), Done { to_server: vec![], to_client: vec![] });
    }
    let as_task = between.answers(request(6, TOOLS_CALL, json!({"name": "t", "task": {"ttl": 1}})));
    assert!(as_task["error"]["message"].as_str().unwrap().contains("leave `task` out"));
    let taken = between.answers(request("portcullis-again-1", "tools/list", json!({})));
    assert!(taken["error"]["message"].as_str().unwrap().contains("the gate's own"));
    let batch = between.0.client_says(b"[{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"ping\"}]").unwrap();
    assert!(
        done(Some(batch), json!({}), true).to_client[0]["error"]["message"]
            .as_str()
            .unwrap()
            .contains("no batches")
    );
}

#[test]
fn what_a_server_needs_is_asked_of_the_client_and_the_call_made_again() {
    let mut between = up();
    let call = between.sends(request(7, TOOLS_CALL, json!({"name": "t", "arguments": {"a": 1}})));
    let form = json!({"message": "Which?", "requestedSchema": {"type": "object"}});
    let needs = json!({
        "resultType": "input_required", "requestState": "s\u{e9}1",
        "inputRequests": {
            "which": {"method": "elicitation/create", "params": form},
            "model": {"method": "sampling/createMessage", "params": {"messages": []}},
        },
    });
    let asked = between.server(result(7, needs)).to_client;
    assert_eq!(asked[0], request("portcullis-input-2", "elicitation/create", form));
    assert_eq!(asked[1]["method"], "sampling/createMessage");
    let said = json!({"action": "accept", "content": {}});
    assert_eq!(between.client(result("portcullis-input-2", said.clone())).to_server, Vec::<Value>::new());
    let turn = between.0.client_says(&line(&result("portcullis-input-3", json!({"role": "assistant"}))));
    let turn = turn.unwrap();
    assert_eq!(
        (turn.to_server.len(), &turn.again[0].id),
        (0, &Id::Integer(7)),
        "it has to be permitted first"
    );
    let again = &read(&[turn.again[0].line.clone()])[0];
    assert_eq!(again["id"], "portcullis-again-4");
    assert_eq!(again["params"]["arguments"], call["params"]["arguments"]);
    assert_eq!(again["params"]["requestState"], "s\u{e9}1");
    assert_eq!(again["params"]["inputResponses"], json!({"which": said, "model": {"role": "assistant"}}));
    assert_eq!(again["params"]["_meta"], old_meta());

    // Only a state: made again after a pause, with that alone.
    let turn = between.0.server_says(&line(&result(
        "portcullis-again-4",
        json!({"resultType": "input_required", "requestState": "s2"}),
    )));
    let (pause, id) = turn.unwrap().later.unwrap();
    assert!(pause >= Duration::from_millis(250) && id == Id::Integer(7));
    let turn = between.0.due(&id);
    assert!(turn.to_server.is_empty());
    let again = read(&[turn.again[0].line.clone()]);
    assert_eq!(again[0]["params"]["requestState"], "s2");
    assert_eq!(again[0]["params"].get("inputResponses"), None);
    let done = json!({"resultType": "complete", "content": []});
    assert_eq!(between.tells(result(again[0]["id"].clone(), done.clone())), result(7, done));
    assert_eq!(between.0.due(&id), Turn::default(), "it is done");

    // Of one that is not permitted, nothing is left.
    between.sends(request(8, TOOLS_CALL, json!({"name": "t"})));
    let needs = json!({"resultType": "input_required", "requestState": "s3"});
    assert!(between.0.server_says(&line(&result(8, needs))).unwrap().later.is_some());
    let again = read(&[between.0.due(&Id::Integer(8)).again[0].line.clone()]);
    assert_eq!(between.0.forget(&Id::Integer(8)), Turn::default());
    assert_eq!(between.0.due(&Id::Integer(8)), Turn::default());
    assert_eq!(between.0.server_says(&line(&result(again[0]["id"].clone(), json!({})))), None);
}

#[test]
fn a_call_whose_question_is_not_answered_fails_with_words() {
    let mut between = up();
    let needs = |asked: &str| json!({"resultType": "input_required", "inputRequests": {"k": {"method": asked, "params": {}}, "l": {"method": asked}}});
    between.sends(request(7, TOOLS_CALL, json!({"name": "t"})));
    between.server(result(7, needs("roots/list")));
    let told = between.client(error("portcullis-input-2", -1)).to_client;
    assert_eq!(told[0], note(CANCELLED, json!({"requestId": "portcullis-input-3"})));
    assert!(
        told[1]["error"]["message"]
            .as_str()
            .unwrap()
            .contains("what the server needs for this was not given")
    );
    assert_eq!(told[1]["id"], 7);

    between.sends(request(8, TOOLS_CALL, json!({"name": "t"})));
    let told = between.tells(result(8, needs("tools/call")));
    assert!(told["error"]["message"].as_str().unwrap().contains("no client can answer"));

    // Given up while it is asked about: the client need not answer, and the server hears nothing more.
    between.sends(request(9, TOOLS_CALL, json!({"name": "t"})));
    between.server(result(9, needs("roots/list")));
    let given_up = between.client(note(CANCELLED, json!({"requestId": 9})));
    assert_eq!(given_up.to_server, [note(CANCELLED, json!({"requestId": 9}))]);
    assert_eq!(given_up.to_client.len(), 2, "{given_up:?}");
    assert_eq!(between.0.lost(&Id::Integer(9), false, "x").lost.len(), 1);
}

#[test]
fn changes_are_told_by_subscriptions_of_the_translators_own() {
    let mut between = up();
    let changed = "notifications/tools/list_changed";
    let told = between.tells(note(changed, json!({"_meta": {META_SUBSCRIPTION: "portcullis-listen-1"}})));
    assert_eq!(told, note(changed, json!({})));
    let listens = between.sends(request(3, RESOURCES_SUBSCRIBE, json!({"uri": "file:///a"})));
    assert_eq!(listens["params"]["notifications"], json!({"resourceSubscriptions": ["file:///a"]}));
    let agreed = |uris: Value| {
        let meta = json!({META_SUBSCRIPTION: "portcullis-listen-2"});
        note(
            SUBSCRIPTIONS_ACKNOWLEDGED,
            json!({"_meta": meta, "notifications": {"resourceSubscriptions": uris}}),
        )
    };
    assert_eq!(between.tells(agreed(json!(["file:///a"]))), result(3, json!({})));
    let updated = json!({"uri": "file:///a", "_meta": {META_SUBSCRIPTION: "portcullis-listen-2"}});
    assert_eq!(
        between.tells(note(RESOURCES_UPDATED, updated)),
        note(RESOURCES_UPDATED, json!({"uri": "file:///a"}))
    );
    let ended = between.client(request(4, RESOURCES_UNSUBSCRIBE, json!({"uri": "file:///a"})));
    assert_eq!(ended.to_server, [note(CANCELLED, json!({"requestId": "portcullis-listen-2"}))]);
    assert_eq!(ended.to_client, [result(4, json!({}))]);

    // One that breaks off is opened again.
    let broken = Id::String("portcullis-listen-1".into());
    let (_, id) = between.0.lost(&broken, false, "broke off").later.unwrap();
    let again = read(&between.0.due(&id).to_server);
    assert_eq!(again[0]["params"]["notifications"], json!({"toolsListChanged": true}));
    let ended = note(CANCELLED, json!({"requestId": again[0]["id"]}));
    assert!(between.0.server_says(&line(&ended)).unwrap().later.is_some());

    // One that the client gives up before it is open is answered.
    between.sends(request(6, RESOURCES_SUBSCRIBE, json!({"uri": "file:///c"})));
    let ended = between.client(request(7, RESOURCES_UNSUBSCRIBE, json!({"uri": "file:///c"}))).to_client;
    assert_eq!((&ended[0]["id"], &ended[1]["id"]), (&json!(7), &json!(6)));

    between.sends(request(5, RESOURCES_SUBSCRIBE, json!({"uri": "file:///b"})));
    let refused = between.tells(error("portcullis-listen-5", -32602));
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(5), &json!(-32602)));
}

#[test]
fn a_server_of_sessions_serves_a_client_without() {
    let mut between = down();
    let mut meta = new_meta();
    meta["progressToken"] = 1.into();
    meta[META_LOG_LEVEL] = "info".into();
    let call = between.client(request(2, TOOLS_CALL, json!({"name": "t", "arguments": {}, "_meta": meta})));
    assert_eq!(call.to_server[0]["method"], SET_LEVEL);
    assert_eq!(
        call.to_server[1],
        request(2, TOOLS_CALL, json!({"name": "t", "arguments": {}, "_meta": {"progressToken": 1}}))
    );
    assert_eq!(
        between.server(result(call.to_server[0]["id"].clone(), json!({}))),
        Done { to_server: vec![], to_client: vec![] }
    );
    let logged = note(LOG_MESSAGE, json!({"level": "info", "data": 1}));
    assert_eq!(between.tells(logged.clone()), logged);
    let told = between.tells(result(2, json!({"content": []})));
    assert_eq!(told, result(2, json!({"content": [], "resultType": "complete"})));
    assert_eq!(between.server(logged).to_client, Vec::<Value>::new(), "nobody asked for it");

    between.sends(request(3, "tools/list", json!({"_meta": new_meta()})));
    let told = between.tells(result(3, json!({"tools": [], "ttlMs": 9})));
    assert_eq!(
        told["result"],
        json!({"tools": [], "ttlMs": 9, "resultType": "complete", "cacheScope": "private"})
    );
    between.sends(request(4, RESOURCES_READ, json!({"uri": "x:", "_meta": new_meta()})));
    assert_eq!(
        between.tells(error(4, -32002)),
        json!({"jsonrpc": "2.0", "id": 4, "error": {"message": "no", "code": -32602}})
    );
    between.sends(request(5, RESOURCES_READ, json!({"uri": "x:", "_meta": new_meta()})));
    assert_eq!(between.tells(error(5, -32042))["error"]["code"], -32603);
    assert_eq!(between.server(request(9, PING, json!({}))).to_server, [result(9, json!({}))]);
}

#[test]
fn a_question_of_a_session_waits_for_the_call_to_be_made_again() {
    let mut between = down();
    let call = |id: i64, more: Value| {
        let mut params = json!({"name": "t", "arguments": {"a": 1}, "_meta": new_meta()});
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        request(id, TOOLS_CALL, params)
    };
    between.sends(call(2, json!({})));
    let form = json!({"message": "Which?", "requestedSchema": {}});
    let told = between.tells(request("q", "elicitation/create", form.clone()));
    assert_eq!((&told["id"], &told["result"]["resultType"]), (&json!(2), &json!("input_required")));
    assert_eq!(
        told["result"]["inputRequests"][INPUT_NAME],
        json!({"method": "elicitation/create", "params": form})
    );
    let state = told["result"]["requestState"].clone();
    let said = json!({"action": "decline"});
    let answers = json!({"inputResponses": {INPUT_NAME: said}, "requestState": state});
    assert_eq!(between.sends(call(3, answers.clone())), result("q", said), "the call is not made again");
    let told = between.answers(call(4, answers));
    assert!(told["error"]["message"].as_str().unwrap().contains("used before"), "{told}");
    assert_eq!(between.tells(result(2, json!({"content": []})))["id"], 3);

    // What the client cannot do it is not asked for.
    between.sends(call(4, json!({})));
    let refused = between.server(request("x", "roots/list", json!({})));
    assert_eq!((&refused.to_server[0]["error"]["code"], refused.to_client.len()), (&json!(-32601), 0));
    between.tells(result(4, json!({"content": []})));

    // Other arguments than those of the call that waits go nowhere, and the server is told.
    between.sends(with_roots(call(5, json!({}))));
    let state = between.tells(request("r", "roots/list", json!({})))["result"]["requestState"].clone();
    let other = between.client(call(
        6,
        json!({"arguments": {"a": 2}, "requestState": state, "inputResponses": {INPUT_NAME: {}}}),
    ));
    assert_eq!(
        (&other.to_server[0]["id"], &other.to_server[0]["error"]["code"]),
        (&json!("r"), &json!(-32603))
    );
    assert_eq!(other.to_client[0]["error"]["code"], -32602);

    // An answer that is no retry goes nowhere, and a call that is never made again holds up no other one.
    between.sends(with_roots(call(20, json!({}))));
    between.tells(request("t", "roots/list", json!({})));
    assert_eq!(between.client(result("t", json!({}))), Done { to_server: vec![], to_client: vec![] });
    let same = between.answers(with_roots(call(20, json!({}))));
    assert!(same["error"]["message"].as_str().unwrap().contains("send another"), "{same}");
    between.sends(with_roots(call(21, json!({}))));
    assert_eq!(between.tells(request("u", "roots/list", json!({})))["id"], 21);

    // With two calls under way nobody can tell whose question it is.
    between.sends(call(7, json!({})));
    between.sends(call(8, json!({})));
    let refused = between.server(request("s", "roots/list", json!({})));
    assert_eq!((&refused.to_server[0]["id"], refused.to_client.len()), (&json!("s"), 0));
}

const INPUT_NAME: &str = "input";

#[test]
fn subscriptions_tell_what_a_session_tells() {
    let mut between = down();
    let wanted =
        json!({"toolsListChanged": true, "promptsListChanged": true, "resourceSubscriptions": ["file:///a"]});
    let asked = between.sends(request(
        "l",
        SUBSCRIPTIONS_LISTEN,
        json!({"notifications": wanted, "_meta": new_meta()}),
    ));
    assert_eq!(
        (&asked["method"], &asked["params"]),
        (&json!(RESOURCES_SUBSCRIBE), &json!({"uri": "file:///a"}))
    );
    let meta = json!({META_SUBSCRIPTION: "l"});
    let agreed = json!({"toolsListChanged": true, "resourceSubscriptions": ["file:///a"]});
    assert_eq!(
        between.tells(result(asked["id"].clone(), json!({}))),
        note(SUBSCRIPTIONS_ACKNOWLEDGED, json!({"_meta": meta, "notifications": agreed}))
    );
    let changed = note("notifications/tools/list_changed", json!({}));
    assert_eq!(between.tells(changed), note("notifications/tools/list_changed", json!({"_meta": meta})));
    let updated = note(RESOURCES_UPDATED, json!({"uri": "file:///a/b"}));
    assert_eq!(between.tells(updated), note(RESOURCES_UPDATED, json!({"uri": "file:///a/b", "_meta": meta})));
    assert_eq!(
        between.server(note(RESOURCES_UPDATED, json!({"uri": "file:///ab"}))).to_client,
        Vec::<Value>::new()
    );
    let ended = between.sends(note(CANCELLED, json!({"requestId": "l"})));
    assert_eq!(ended["method"], RESOURCES_UNSUBSCRIBE);
}

#[test]
fn what_has_no_counterpart_is_refused_where_the_client_can_do_otherwise() {
    let opened =
        result(INITIALIZE_ID, json!({"protocolVersion": V_2025_11_25, "capabilities": {"tasks": {}}}));
    for (unmatched, translates) in [(Unmatched::Refuse, false), (Unmatched::LeaveOut, true)] {
        let mut between = Between(Translator::new(unmatched));
        between.sends(request(1, DISCOVER, json!({"_meta": new_meta()})));
        between.server(error(1, -32601));
        let told = between.server(opened.clone());
        assert_eq!(between.0.is_settled(), !translates);
        match translates {
            true => assert_eq!(told.to_client[0]["result"]["capabilities"], json!({})),
            false => {
                assert_eq!(told.to_client[0]["error"]["code"], -32601);
                let why = told.to_client[0]["error"]["message"].as_str().unwrap();
                assert!(why.contains("offers tasks") && why.contains("initialize"), "{why}");
            }
        }
    }
}

#[test]
fn requests_that_were_sent_at_once_are_all_translated() {
    let mut between = Between::new();
    for (id, method) in [(1, "tools/list"), (2, "prompts/list"), (3, TOOLS_CALL)] {
        between.sends(request(id, method, json!({"_meta": new_meta()})));
    }
    between.server(error(1, -32601));
    assert_eq!(between.server(error(2, -32601)), Done { to_server: vec![], to_client: vec![] });
    assert_eq!(between.tells(error(3, -32601)), error(3, -32601), "it may have been done");
    between.server(error(DISCOVER_ID, -32601));
    let sent = between.server(result(INITIALIZE_ID, json!({"protocolVersion": V_2025_11_25}))).to_server;
    let methods: Vec<&Value> = sent.iter().map(|line| &line["method"]).collect();
    assert_eq!(methods, [INITIALIZED, "tools/list", "prompts/list"]);
}

#[test]
fn nothing_is_done_twice_to_find_out_who_speaks_what() {
    let call = request(1, TOOLS_CALL, json!({"name": "t", "_meta": new_meta()}));
    // An error does not tell that nothing was done.
    let mut between = Between::new();
    between.sends(call.clone());
    assert_eq!(between.tells(error(1, -32000)), error(1, -32000));
    // A status that refuses it does.
    let mut between = Between::new();
    between.sends(call.clone());
    between.0.refused(&Id::Integer(1));
    let asked = between.server(error(1, -32000));
    assert_eq!(asked.to_server[0]["method"], DISCOVER);
    assert_eq!(asked.to_server[0]["params"]["_meta"], new_meta());
    // A server that knows no sessions is not asked for one, and the client gets what it was answered.
    let found = between.server(result(DISCOVER_ID, json!({})));
    assert_eq!((found.to_client, found.to_server.len()), (vec![error(1, -32000)], 0));

    let mut translator = Translator::new(Unmatched::Refuse);
    translator.client_says(&line(&call));
    assert_eq!(translator.lost(&Id::Integer(1), true, "400").to_server.len(), 1);
    assert_eq!(translator.lost(&Id::String(DISCOVER_ID.into()), true, "400").to_server.len(), 1);
    let opened =
        translator.server_says(&line(&result(INITIALIZE_ID, json!({"protocolVersion": V_2025_11_25}))));
    let sent = read(&opened.unwrap().to_server);
    assert_eq!(sent.len(), 2);
    assert_eq!(sent[1], request(1, TOOLS_CALL, json!({"name": "t"})));
}
