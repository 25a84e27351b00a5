//! Entries of every agent, changed in each of the ways that let calls pass.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::super::{Form, Scope, Settings, Standing, install, settings_file, standing};
use super::*;

/// An agent's settings in a folder with a space in its name, as they are installed with all options.
fn installed(agent: Agent, folder: &Path) -> (PathBuf, String) {
    let bin = folder.join("my tools");
    fs::create_dir_all(&bin).unwrap();
    let program = bin.join("portcullis");
    fs::write(&program, "").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let file = settings_file(agent, Scope::User, folder).unwrap();
    let options =
        ["--home", "/a b/c", "--bundle", "/d'e", "--policy", "p", "--ask", "--defer", "--uncontained"];
    let arguments = options.map(str::to_owned).to_vec();
    install(&Settings { agent, file: file.clone(), program, arguments }).unwrap().write().unwrap();
    let text = fs::read_to_string(&file).unwrap();
    assert!(matches!(standing(agent, &file).unwrap(), Standing::Governed(_)), "{agent:?}: {text}");
    (file, text)
}

fn why(agent: Agent, file: &Path, text: &str) -> String {
    fs::write(file, text).unwrap();
    match standing(agent, file).unwrap() {
        Standing::Changed(why) => why,
        other => panic!("{agent:?}: {other:?}: {text}"),
    }
}

fn with_json() -> impl Iterator<Item = Agent> {
    let json = |agent: &Agent| matches!(agents::place(*agent).form, Form::Settings | Form::Events);
    Agent::ALL.into_iter().filter(json)
}

/// The first entry of the event before a call, in the text of a settings file.
fn first(agent: Agent, root: &mut Value) -> &mut Value {
    let place = agents::place(agent);
    let hooks = if place.form == Form::Events { root } else { &mut root["hooks"] };
    let event = place
        .events
        .iter()
        .map(|(event, _)| *event)
        .find(|event| matches!(*event, "PreToolUse" | "preToolUse" | "BeforeTool" | "pre_run_command"));
    &mut hooks[event.unwrap()][0]
}

/// The hook of an entry: in its list, or itself.
fn hook_in(entry: &mut Value) -> &mut Value {
    if entry.get("hooks").is_some() { &mut entry["hooks"][0] } else { entry }
}

#[test]
fn an_entry_that_lets_calls_pass_is_named_with_what_differs() {
    for agent in with_json() {
        let folder = tempfile::tempdir().unwrap();
        let (file, text) = installed(agent, folder.path());
        let mut root: Value = serde_json::from_str(&text).unwrap();
        let timeout = hook_in(first(agent, &mut root));
        // Windsurf has none.
        let timeout = ["timeout", "timeoutSec"].into_iter().find(|name| timeout.get(name).is_some());
        for (member, value) in [
            ("matcher", json!("NoSuchTool")),
            ("type", json!("prompt")),
            (timeout.unwrap_or("if"), json!(1)),
            (timeout.unwrap_or("if"), json!("60")),
            ("async", json!(true)),
            ("asyncRewake", json!(true)),
            ("if", json!("Bash(never *)")),
            ("once", json!(true)),
            ("enabled", json!("no")),
        ] {
            // In the entry and in its hook, where they are two.
            for inner in [false, true] {
                let mut changed = root.clone();
                let entry = first(agent, &mut changed);
                if !inner && entry.get("hooks").is_some() && Some(member) == timeout {
                    continue;
                }
                if inner {
                    hook_in(entry)[member] = value.clone()
                } else {
                    entry[member] = value.clone()
                }
                let why = why(agent, &file, &changed.to_string());
                assert!(why.contains(": `"), "{agent:?}: {why}");
                assert!(why.contains(&format!("`{member}` is")), "{agent:?}: {why}");
            }
        }
        // What is longer, or is only shown, lets nothing pass.
        let mut longer = root.clone();
        let hook = hook_in(first(agent, &mut longer));
        if let Some(timeout) = timeout {
            hook[timeout] = json!(hook[timeout].as_u64().unwrap() * 2);
        }
        hook["statusMessage"] = "asks".into();
        hook["async"] = false.into();
        fs::write(&file, longer.to_string()).unwrap();
        assert!(matches!(standing(agent, &file).unwrap(), Standing::Governed(_)), "{agent:?}");
    }
}

#[test]
fn a_command_that_does_anything_else_is_named() {
    for agent in with_json() {
        let folder = tempfile::tempdir().unwrap();
        let (file, text) = installed(agent, folder.path());
        let root: Value = serde_json::from_str(&text).unwrap();
        let command = |root: &mut Value| {
            let hook = hook_in(first(agent, root));
            let name = if hook.get("bash").is_some() { "bash" } else { "command" };
            (name, hook[name].as_str().unwrap().to_owned())
        };
        let (name, whole) = command(&mut root.clone());
        let end = agents::unanswered(agent);
        let base = whole.strip_suffix(end).unwrap().to_owned();
        for changed in [
            format!("{base} >/dev/null 2>&1 || true"),
            format!("{whole}; exit 0"),
            format!("{whole} || true"),
            format!("{base} >/dev/null{end}"),
            format!("{base}; true{end}"),
            format!("{base} & true{end}"),
            format!("{base} $X{end}"),
            format!("{base}\ntrue{end}"),
            format!("{base} --help{end}"),
            format!("{base} --agent no-such-agent{end}"),
            format!("{base} --bundle{end}"),
            format!("{base} 'open{end}"),
            base.clone(),
        ] {
            let mut root = root.clone();
            hook_in(first(agent, &mut root))[name] = changed.clone().into();
            let why = why(agent, &file, &root.to_string());
            assert!(why.contains("its command "), "{agent:?}: {changed}: {why}");
        }
        // A whole entry beside it suffices.
        let mut both = root.clone();
        let entry = first(agent, &mut both).clone();
        let place = agents::place(agent);
        let hooks = if place.form == Form::Events { &mut both } else { &mut both["hooks"] };
        for entries in hooks.as_object_mut().unwrap().values_mut().filter_map(Value::as_array_mut) {
            if entries.first() == Some(&entry) {
                let mut broken = entry.clone();
                hook_in(&mut broken)[name] = base.clone().into();
                entries.insert(0, broken);
            }
        }
        fs::write(&file, both.to_string()).unwrap();
        assert!(matches!(standing(agent, &file).unwrap(), Standing::Governed(_)), "{agent:?}");
    }
}

#[test]
fn a_setting_that_turns_hooks_off_is_named() {
    for agent in with_json() {
        let folder = tempfile::tempdir().unwrap();
        let (file, text) = installed(agent, folder.path());
        let command = format!("{}/portcullis-hook --agent gemini-cli", folder.path().display());
        for (name, value) in [
            ("disableAllHooks", json!(true)),
            ("disableAllHooks", json!("true")),
            ("hooksDisabled", json!(true)),
            ("hooksConfig", json!({"enabled": false})),
            ("hooksConfig", json!({"disabled": ["portcullis"]})),
            ("hooksConfig", json!({"enabled": true, "disabled": ["lint", command]})),
        ] {
            let mut root: Value = serde_json::from_str(&text).unwrap();
            root[name] = value;
            assert!(why(agent, &file, &root.to_string()).contains(name), "{agent:?}");
        }
        let mut root: Value = serde_json::from_str(&text).unwrap();
        root["disableAllHooks"] = false.into();
        root["hooksConfig"] = json!({"enabled": true, "disabled": ["lint"]});
        fs::write(&file, root.to_string()).unwrap();
        assert!(matches!(standing(agent, &file).unwrap(), Standing::Governed(_)), "{agent:?}");
        // Without entries there is nothing to turn off.
        fs::write(&file, json!({"disableAllHooks": true}).to_string()).unwrap();
        assert_eq!(standing(agent, &file).unwrap(), Standing::Absent, "{agent:?}");
    }
}

#[test]
fn a_table_that_lets_calls_pass_is_named_with_what_differs() {
    let agent = Agent::KimiCode;
    let folder = tempfile::tempdir().unwrap();
    let (file, text) = installed(agent, folder.path());
    let event = "event = \"PreToolUse\"";
    for (from, to, named) in [
        (event, "event = \"PreToolUse\"\nmatcher = \"Bash\"", "`matcher` is"),
        (event, "event = \"PreToolUse\"\nasync = true", "`async` is"),
        (event, "event = \"PreToolUse\"\nfail_mode = \"open\"", "`fail_mode` is"),
        ("timeout = 60", "timeout = 1", "`timeout` is"),
        ("--uncontained", "--uncontained; true", "its command "),
        ("--agent kimi-code", "--agent pi", "its command "),
    ] {
        let changed = text.replace(from, to);
        assert_ne!(changed, text, "{from}");
        let why = why(agent, &file, &changed);
        assert!(why.contains("PreToolUse: ") && why.contains(named), "{why}");
    }
    // As its users are told to do where their release knows it.
    fs::write(&file, text.replace(event, "event = \"PreToolUse\"\nfail_mode = \"closed\"")).unwrap();
    assert!(matches!(standing(agent, &file).unwrap(), Standing::Governed(_)));
}
