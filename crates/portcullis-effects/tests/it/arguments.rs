//! Which argument holds what, and the effects of whole calls.

use std::collections::BTreeMap;

use portcullis_core::action::Action;
use portcullis_core::bundle::Bundle;
use portcullis_core::effect::{EffectReader, Effects, ResourceKind, Verb};
use portcullis_core::id::ActionId;
use portcullis_core::state::RunState;
use portcullis_effects::arguments::explain;
use portcullis_effects::{Reader, Surroundings, read_call};
use serde_json::{Value, json};

use crate::cases::describe;

/// A bundle with one tool: `fields` are what its table says besides the rest.
fn bundle(name: &str, fields: &str) -> Bundle {
    let mut files: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    files.insert("portcullis.toml".into(), b"version = 1\n".to_vec());
    let policy = "[[policy]]\nname = \"p\"\nallowed_types = []\nmax_steps = 1\nmax_side_effects = 0\n";
    files.insert("policies/p.toml".into(), policy.into());
    let mut tool =
        format!("[[tool]]\nid = \"{name}\"\nname = \"{name}\"\nrisk = 0.5\nenabled = true\n{fields}");
    for (field, default) in [("type", "\"OTHER\""), ("description", "\"x\""), ("side_effecting", "true")] {
        if !fields.contains(&format!("{field} = ")) {
            tool.push_str(&format!("{field} = {default}\n"));
        }
    }
    if !fields.contains("args") {
        tool.push_str("args.type = \"object\"\nargs.properties = {}\n");
    }
    files.insert("tools/t.toml".into(), tool.into());
    Bundle::load(&files).unwrap_or_else(|mistakes| panic!("{mistakes:?}"))
}

fn call(bundle: &Bundle, name: &str, arguments: &Value) -> Effects {
    let surroundings = Surroundings {
        settings: &bundle.effects,
        workspace: Some("/home/u/project"),
        home: Some("/home/u"),
        directory: Some("/home/u/project"),
    };
    let effects = read_call(bundle.registry.get(name), name, arguments, &surroundings);
    by_the_plan_that_is_kept(bundle, name, arguments);
    for effect in effects.iter() {
        let span = effect.span.as_ref().unwrap();
        let pointer = span.pointer.strip_prefix("/arguments").unwrap();
        let value = arguments.pointer(pointer).unwrap_or_else(|| panic!("{pointer} leads nowhere"));
        let text = value.as_str().unwrap_or_default();
        assert!(text.get(span.start..span.end).is_some(), "{effect} is placed outside of {pointer}");
    }
    effects
}

/// The plan that is kept beside the registry says of every call what reading its tool anew says.
fn by_the_plan_that_is_kept(bundle: &Bundle, name: &str, arguments: &Value) {
    let run = RunState::new();
    let action = Action::new(ActionId::from_bytes([0; 16]), Some(name.to_owned()), arguments.clone(), None);
    let afresh = Surroundings::of(bundle, &run, &action);
    let afresh = read_call(bundle.registry.get(name), name, arguments, &afresh);
    for _ in 0..2 {
        assert_eq!(Reader.read(bundle, &run, &action), afresh, "{name}");
    }
}

/// Verbs, kinds and names of the effects, without attributes.
fn short(effects: &Effects) -> Vec<String> {
    effects.iter().map(|effect| format!("{} {}", effect.verb, effect.resource.name)).collect()
}

fn effects(name: &str, fields: &str, arguments: Value) -> Vec<String> {
    short(&call(&bundle(name, fields), name, &arguments))
}

/// The effects of a tool that the bundle does not know.
fn unknown(name: &str, arguments: Value) -> Vec<String> {
    short(&call(&bundle("other", ""), name, &arguments))
}

#[test]
fn the_name_of_a_tool_says_what_it_does_to_a_path() {
    let path = |name: &str| unknown(name, json!({"path": "x"})).join(", ");
    let x = "/home/u/project/x";
    for (name, verbs) in [
        ("read_file", "read"),
        ("mcp__files__list_directory", "read"),
        ("write_file", "write"),
        ("createDirectory", "write"),
        ("files.delete", "delete"),
        ("run_script", "execute"),
        ("chmod_file", "configure"),
        ("frobnicate", "read write"),
        ("move_file", "read write delete"),
    ] {
        let expected: Vec<String> = verbs.split(' ').map(|verb| format!("{verb} {x}")).collect();
        assert_eq!(path(name), expected.join(", "), "{name}");
    }
}

#[test]
fn moving_and_copying_have_two_ends() {
    let ends = json!({"source": "a", "destination": "../b"});
    assert_eq!(
        unknown("move_file", ends.clone()),
        ["write /home/u/b", "read /home/u/project/a", "delete /home/u/project/a"]
    );
    assert_eq!(unknown("copy_file", ends), ["write /home/u/b", "read /home/u/project/a"]);
}

#[test]
fn the_type_of_a_tool_decides_where_its_name_says_nothing() {
    let with = |type_: &str, side_effecting: bool| {
        let fields = format!("type = \"{type_}\"\nside_effecting = {side_effecting}\neffects.x = \"path\"\n");
        effects("frob", &fields, json!({"x": "y"})).join(", ").replace("/home/u/project/", "")
    };
    assert_eq!(with("WRITE_FILE", true), "write y");
    assert_eq!(with("RETRIEVE_DOCS", false), "read y");
    assert_eq!(with("DELETE", true), "delete y");
    assert_eq!(with("MINE", true), "read y, write y");
    assert_eq!(with("MINE", false), "read y");
}

#[test]
fn a_harmless_name_does_not_hide_a_dangerous_type() {
    let fields = "type = \"DELETE\"\neffects.path = \"path\"\n";
    assert_eq!(effects("get_rid", fields, json!({"path": "/x"})), ["read /x", "delete /x"]);
}

#[test]
fn what_the_bundle_declares_is_all_there_is() {
    let fields = "type = \"SEND_EMAIL\"\neffects.wohin = \"email\"\n";
    let arguments = json!({"wohin": "a@b.example", "path": "/etc/passwd"});
    assert_eq!(effects("senden", fields, arguments.clone()), ["send a@b.example"]);
    let inferred = effects("senden", "type = \"SEND_EMAIL\"\n", arguments);
    assert_eq!(inferred, ["read /etc/passwd"], "the names say `path` and nothing of `wohin`");
}

#[test]
fn lists_and_objects_are_read_value_by_value() {
    let fields = "type = \"SEND_EMAIL\"\neffects.to = \"email\"\n";
    let arguments = json!({"to": ["a@b.example", {"name": "C", "email": "c@d.example"}, null, [["e@f.example, g@h.example"]]]});
    let found = call(&bundle("send", fields), "send", &arguments);
    let places: Vec<String> = found
        .iter()
        .map(|effect| {
            let span = effect.span.as_ref().unwrap();
            format!("{} {} {}..{}", effect.resource.name, span.pointer, span.start, span.end)
        })
        .collect();
    assert_eq!(
        places,
        [
            "a@b.example /arguments/to/0 0..11",
            "c@d.example /arguments/to/1/email 0..11",
            "e@f.example /arguments/to/3/0/0 0..11",
            "g@h.example /arguments/to/3/0/0 13..24",
        ]
    );
    let files = json!({"files": [{"path": "/a", "content": "/b"}, {"path": "/c"}]});
    assert_eq!(unknown("write_files", files), ["write /a", "write /c"]);
}

#[test]
fn names_are_escaped_in_pointers() {
    let arguments = json!({"a/b~path": "/x"});
    let found = call(&bundle("other", ""), "read_thing", &arguments);
    assert_eq!(found[0].span.as_ref().unwrap().pointer, "/arguments/a~1b~0path");
}

#[test]
fn a_value_of_another_type_is_unknown() {
    for value in [json!(7), json!(true), json!([1]), json!({"path": false})] {
        let found = unknown("read_file", json!({"path": value}));
        assert_eq!(found, ["execute path"], "{value}");
    }
    assert_eq!(unknown("read_file", json!({"path": null})), Vec::<String>::new());
    assert_eq!(unknown("read_file", json!([1])), ["execute arguments"]);
}

#[test]
fn values_of_unknown_tools_are_recognised_by_their_looks() {
    let arguments = json!({
        "a": "/etc/passwd", "b": "https://evil.example/x", "c": "ann@corp.example", "d": "and/or",
        "e": ["../x", "y"], "f": 7, "g": "file:///etc/hosts", "h": "say hello@ the world",
    });
    assert_eq!(
        unknown("frobnicate", arguments),
        [
            "read /etc/passwd",
            "write /etc/passwd",
            "read evil.example",
            "send evil.example",
            "send ann@corp.example",
            "read /home/u/x",
            "write /home/u/x",
            "read /home/u/project/y",
            "write /home/u/project/y",
            "read /etc/hosts",
            "write /etc/hosts",
        ]
    );
}

#[test]
fn a_request_with_a_body_sends() {
    let fields = "type = \"WEB_FETCH\"\nside_effecting = false\n";
    let fetch = |arguments: Value| effects("fetch", fields, arguments);
    assert_eq!(fetch(json!({"url": "https://a.example/"})), ["read a.example"]);
    assert_eq!(fetch(json!({"url": "https://a.example/", "method": "get", "body": ""})), ["read a.example"]);
    let both = ["read a.example", "send a.example"];
    assert_eq!(fetch(json!({"url": "https://a.example/", "body": "x"})), both);
    assert_eq!(fetch(json!({"url": "https://a.example/", "method": "DELETE"})), both);
    assert_eq!(fetch(json!({"url": "https://a.example/", "method": 1})), both);
    let webhook = effects("trigger_webhook", "", json!({"url": "https://a.example/"}));
    assert_eq!(webhook, ["send a.example"]);
}

#[test]
fn looking_an_address_up_sends_nothing_to_it() {
    let fields = "type = \"RETRIEVE_DOCS\"\nside_effecting = false\neffects.email = \"email\"\n";
    assert_eq!(effects("find_contact", fields, json!({"email": "a@b.example"})), ["read a@b.example"]);
}

#[test]
fn a_stated_working_directory_moves_relative_paths() {
    let read = |arguments: Value| unknown("read_file", arguments);
    assert!(read(json!({"path": "passwd", "cwd": "/etc"})).contains(&"read /etc/passwd".to_owned()));
    assert!(read(json!({"path": "x", "cwd": "sub"})).contains(&"read /home/u/project/sub/x".to_owned()));
    let doubtful = call(&bundle("other", ""), "read_file", &json!({"path": "x", "cwd": "$X"}));
    let path = doubtful.iter().find(|effect| effect.resource.name == "x").unwrap();
    assert_eq!(describe(path), "read path x (not resolved)");
}

#[test]
fn payments_have_payee_amount_and_currency() {
    let arguments = json!({"recipient": "DE89 3704 0044 0532 0130 00", "amount": "12.50", "currency": "eur"});
    let found = call(&bundle("other", ""), "send_money", &arguments);
    let lines: Vec<String> = found.iter().map(describe).collect();
    assert_eq!(lines, ["pay payee DE89370400440532013000 (amount=12.5000, currency=EUR)"]);
    let fields = "type = \"PAY\"\neffects.payments = \"money\"\n";
    let many = json!({"payments": [{"to": "a", "amount": 1}, {"to": "b", "amount": 2}]});
    assert_eq!(effects("pay", fields, many), ["pay a", "pay b"]);
}

#[test]
fn there_are_limits() {
    let many: Vec<Value> = (0..3000).map(|_| json!("x")).collect();
    let found = call(&bundle("other", ""), "read_files", &json!({"paths": many}));
    assert!(found.iter().any(|effect| effect.resource.kind == ResourceKind::Unknown));
    let mut deep = json!("x");
    for _ in 0..100 {
        deep = json!([deep]);
    }
    let found = call(&bundle("other", ""), "read_file", &json!({"path": deep}));
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].verb, found[0].resource.kind), (Verb::Execute, ResourceKind::Unknown));
}

#[test]
fn explanations_say_why() {
    let fields = "type = \"WRITE_FILE\"\nargs.path = { type = \"string\" }\nargs.link = { type = \"string\", format = \"uri\" }\nargs.content = { type = \"string\" }\n";
    let bundle = bundle("write_file", fields);
    let lines: Vec<String> = explain(bundle.registry.get("write_file").unwrap())
        .into_iter()
        .map(|found| {
            format!("{} {} {:?} {} {}", found.argument, found.holds, found.verbs, found.declared, found.why)
        })
        .collect();
    assert_eq!(
        lines,
        [
            "link url [Send] false its format is `uri`; the tool has side effects",
            "path path [Write] false its name says `path`; `write` in the tool's name writes it",
        ]
    );
    let fields = "type = \"QUERY_DB\"\neffects.frage = \"sql\"\n";
    let bundle = self::bundle("ask", fields);
    let found = explain(bundle.registry.get("ask").unwrap());
    assert_eq!((found[0].declared, found[0].why.as_str()), (true, "the bundle declares it"));
}

/// The effects of a call that takes up an earlier one with these answers.
fn continued(bundle: &Bundle, name: &str, arguments: &Value, continuation: &Value) -> Vec<String> {
    let run = RunState::new();
    let action = Action::new(ActionId::from_bytes([0; 16]), Some(name.to_owned()), arguments.clone(), None)
        .with_continuation(Some(continuation.clone()))
        .in_directory(Some("/home/u/project".into()));
    Reader.read(bundle, &run, &action).iter().map(|effect| effect.to_string()).collect()
}

#[test]
fn answers_are_read_as_arguments_are() {
    let declared = bundle("read_file", "effects = { path = \"path\" }\n");
    let described = bundle(
        "read_file",
        "type = \"OTHER\"\nargs.type = \"object\"\nargs.properties.path = { type = \"string\" }\n",
    );
    let unknown = bundle("other", "");
    let shadow = "read path /etc/shadow";
    for bundle in [&declared, &described, &unknown] {
        let read =
            |arguments: Value, continuation: Value| continued(bundle, "read_file", &arguments, &continuation);
        for continuation in [
            json!({"inputResponses": {"f": {"action": "accept", "content": {"path": "/etc/shadow"}}}}),
            json!({"inputResponses": {"f": {"action": "accept", "content": {"PATH": "/etc/shadow"}}}}),
            json!({"inputResponses": {"f": {"action": "accept", "content": {"which": "/etc/shadow"}}}}),
            json!({"inputResponses": {"f": {"action": "accept", "content": {"which": ["a b", "/etc/shadow"]}}}}),
            json!({"inputResponses": [["x", "/etc/shadow"]]}),
            json!({"inputResponses": {"f": {"content": {"type": "text", "text": "{\"path\": \"/etc/shadow\"}"}}}}),
            json!({"requestState": "{\"path\": \"/etc/shadow\"}"}),
            json!({"requestState": {"deep": [{"path": "../../../etc/shadow"}]}}),
            json!({"requestState": "/etc/shadow"}),
        ] {
            let found = read(json!({"path": "a"}), continuation.clone());
            assert!(found.iter().any(|effect| effect == shadow), "{continuation}: {found:?}");
        }
        // The working directory that the arguments name is that of the answers.
        let found =
            read(json!({"cwd": "/etc"}), json!({"inputResponses": {"f": {"content": {"path": "shadow"}}}}));
        assert!(found.iter().any(|effect| effect == shadow), "{found:?}");
        let found = read(
            json!({"path": "a"}),
            json!({"requestState": "{\"path\": \"a\", \"path\": \"/etc/shadow\"}"}),
        );
        assert!(found.iter().any(|effect| effect == "execute unknown arguments"), "{found:?}");
        let found = read(
            json!({"path": "a"}),
            json!({"inputResponses": {"f": {"action": "decline"}}, "requestState": "c29tZQ"}),
        );
        assert!(found.iter().all(|effect| effect.ends_with("/home/u/project/a")), "{found:?}");
    }
}

#[test]
fn answers_without_end_are_unknown() {
    let bundle = bundle("read_file", "effects = { path = \"path\" }\n");
    let many: Vec<Value> = (0..5_000).map(|n| json!({ "path": format!("/srv/{n}") })).collect();
    let mut deep = json!({"path": "/srv/x"});
    (0..200).for_each(|_| deep = json!([deep]));
    for answers in [json!(many), deep] {
        let found =
            continued(&bundle, "read_file", &json!({"path": "a"}), &json!({"inputResponses": answers}));
        assert!(found.iter().any(|effect| effect.starts_with("execute unknown")), "{found:?}");
    }
}

#[test]
fn names_that_differ_in_case_are_read_alike() {
    let shadow = "read path /etc/shadow";
    let declared = bundle("read_file", "effects = { path = \"path\" }\n");
    let odd = bundle("read_file", "effects = { what = \"path\", tasks = \"path\" }\n");
    let format = bundle(
        "fetch_thing",
        "type = \"OTHER\"\nargs.type = \"object\"\nargs.properties.thing = { type = \"string\", format = \"uri\" }\n",
    );
    for (bundle, name, arguments) in [
        (&declared, "read_file", json!({"path": "a", "Path": "/etc/shadow"})),
        (&declared, "read_file", json!({"PATH": "/etc/shadow"})),
        (&odd, "read_file", json!({"what": "a", "What": "/etc/shadow"})),
        (&odd, "read_file", json!({"ta\u{17f}k\u{17f}": "/etc/shadow"})),
        (&odd, "read_file", json!({"tas\u{212a}s": "/etc/shadow"})),
    ] {
        let found = call(bundle, name, &arguments);
        assert!(found.iter().any(|effect| effect.to_string() == shadow), "{arguments}: {found:?}");
    }
    let found = call(&format, "fetch_thing", &json!({"thing": "https://a.example", "Thing": "evil.example"}));
    assert!(found.iter().any(|effect| effect.to_string() == "send host evil.example"), "{found:?}");
    // Other names of a tool that declares its arguments stay what they were.
    let found = call(&declared, "read_file", &json!({"path": "a", "paths": "/etc/shadow"}));
    assert!(found.iter().all(|effect| effect.to_string() != shadow), "{found:?}");
}

#[test]
fn a_header_line_within_a_field_is_a_recipient() {
    let declared = bundle("send_email", "effects = { to = \"email\" }\n");
    let unknown = bundle("other", "");
    for bundle in [&declared, &unknown] {
        for subject in [
            json!("Hello\r\nBcc: x@evil.example"),
            json!("Hello\nBcc: x@evil.example\n"),
            json!("Hello\rTo: ann@corp.example, \"X\" <X@evil.example>"),
            json!(["Hello", "a\u{2028}cc:x@evil.example"]),
        ] {
            let found = call(bundle, "send_email", &json!({"to": "ann@corp.example", "subject": subject}));
            let found: Vec<String> = found.iter().map(ToString::to_string).collect();
            assert!(
                found.iter().any(|effect| effect == "send recipient x@evil.example"),
                "{subject}: {found:?}"
            );
            assert!(
                found.iter().any(|effect| effect == "execute unknown mail header"),
                "{subject}: {found:?}"
            );
        }
        // The message itself has lines, and may name whom it likes.
        let plain = json!({"to": "ann@corp.example", "subject": "Hello \n", "body": "Hi,\nwrite to x@evil.example\n"});
        let found = call(bundle, "send_email", &plain);
        assert_eq!(
            found.iter().map(ToString::to_string).collect::<Vec<_>>(),
            ["send recipient ann@corp.example"]
        );
    }
    let found = call(
        &unknown,
        "send_email",
        &json!({"to": "a@corp.example", "headers": {"X-A": "b\nBcc: x@evil.example"}}),
    );
    assert!(found.iter().any(|effect| effect.to_string() == "send recipient x@evil.example"), "{found:?}");
}

#[test]
fn tools_that_take_folders_as_a_whole_reach_what_lies_below() {
    let recursive = |name: &str, arguments: Value| {
        let effects = call(&bundle("other", ""), name, &arguments);
        effects.iter().any(|effect| effect.is("recursive") && effect.verb == Verb::Read)
    };
    for name in
        ["search_files", "walk_directory", "directory_tree", "grep", "copy_directory", "archive_folder"]
    {
        assert!(recursive(name, json!({"path": "/home/u", "pattern": "x"})), "{name}");
    }
    assert!(!recursive("copy_file", json!({"path": "/home/u", "recursive": false})));
    assert!(!recursive("read_file", json!({"path": "/home/u/x"})));
}

#[test]
fn answers_are_read_in_base64_and_as_a_query() {
    let bundle = bundle("read_file", "");
    // `{"path":"/home/u/.netrc"}` with padding and without.
    for state in [
        "eyJwYXRoIjoiL2hvbWUvdS8ubmV0cmMifQ==",
        "eyJwYXRoIjoiL2hvbWUvdS8ubmV0cmMifQ",
        "path=%2Fhome%2Fu%2F.netrc&x=1",
        "path=/home/u/.netrc",
    ] {
        let found = continued(&bundle, "read_file", &json!({"path": "a"}), &json!({"requestState": state}));
        assert!(found.iter().any(|effect| effect.contains("/home/u/.netrc")), "{state}: {found:?}");
    }
    let plain = continued(&bundle, "read_file", &json!({"path": "a"}), &json!({"requestState": "step-2"}));
    assert!(plain.iter().all(|effect| !effect.contains("unknown")), "{plain:?}");
}

#[test]
fn answers_are_read_in_base64_of_base64() {
    use base64::Engine as _;
    let encode = |text: &str| base64::engine::general_purpose::STANDARD.encode(text);
    let bundle = bundle("read_file", "");
    let call =
        |state: &str| continued(&bundle, "read_file", &json!({"path": "a"}), &json!({"requestState": state}));
    let path = r#"{"path":"/home/u/.netrc"}"#;
    for state in [
        encode(&encode(path)),
        encode(&encode(&encode(path))),
        encode(&json!({"state": encode(&json!({"inner": encode(path)}).to_string())}).to_string()),
        encode(&encode(&json!({"state": encode(path)}).to_string())),
    ] {
        let found = call(&state);
        assert!(found.iter().any(|effect| effect.contains("/home/u/.netrc")), "{state}: {found:?}");
    }
    let deeper = call(&encode(&encode(&encode(&encode(path)))));
    assert!(deeper.iter().any(|effect| effect.contains("unknown")), "{deeper:?}");
    for opaque in [
        "step-2",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
        "c3RlcC0yLW9mLTM=",
        "WXpOU2JHTkRNSGhNVjFWMA==",
        "9f2b41c07d3e9f2b41c07d3e9f2b41c07d3e9f2b",
        "550e8400-e29b-41d4-a716-446655440000",
    ] {
        let found = call(opaque);
        assert!(found.iter().all(|effect| !effect.contains("unknown")), "{opaque}: {found:?}");
    }
}
