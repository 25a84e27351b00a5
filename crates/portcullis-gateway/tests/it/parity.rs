//! The same actions through every surface: the same verdicts, for the same reasons.
//!
//! `parity/actions.jsonl` has one action a line: the tool and the arguments in the words of bundles, the verdict, and the rule
//! that decides. How each agent would say it is written here a second time, independently of the adapters.

use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use portcullis_core::event::{EventBody, Place};
use portcullis_core::finding::Finding;
use portcullis_core::verdict::Verdict;
use portcullis_gateway::api::{OpenRun, ProposeAction};
use portcullis_session::{policy, shipped};
use portcullis_sim::replay::{self, Item, Options, Source};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::daemon::{Daemon, events};

const PROJECT: &str = "/home/dev/shop";
const HOME: &str = "/home/dev";
/// Fewest actions that each agent has a tool for.
const ACTIONS_MIN: usize = 60;

#[derive(Deserialize)]
struct Action {
    tool: String,
    arguments: Value,
    verdict: Verdict,
    rule: Option<String>,
}

/// What was judged, in words that do not depend on ids, times and places in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Judged {
    verdict: Verdict,
    findings: Vec<String>,
}

fn judged(verdict: Verdict, findings: &[Finding]) -> Judged {
    let words = |finding: &Finding| {
        let verdict = finding.effective().as_str();
        format!("{verdict} {}: {} {:?}", finding.rule, finding.message, finding.resources)
    };
    Judged { verdict, findings: findings.iter().map(words).collect() }
}

fn actions() -> Vec<Action> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/parity/actions.jsonl");
    let text = fs::read_to_string(file).unwrap();
    text.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}

/// The shipped bundle of a developer's machine, which answers what is held at once.
fn bundle() -> BTreeMap<String, Vec<u8>> {
    let mut files: BTreeMap<String, Vec<u8>> = shipped::developer_bundle();
    let main = files.get_mut("portcullis.toml").unwrap();
    let text = String::from_utf8(main.clone()).unwrap();
    // `check` has no surface that would name the folders.
    let folders = format!("[effects]\nworkspace = \"{PROJECT}\"\nhome = \"{HOME}\"");
    let text = text.replace("approval_wait_s = 20", "approval_wait_s = 0");
    *main = text.replacen("[effects]", &folders, 1).into_bytes();
    files
}

/// Gives arguments other names.
fn renamed(arguments: &Value, names: &[(&str, &str)]) -> Value {
    let name = |name: &String| {
        names.iter().find(|(ours, _)| ours == name).map_or(name.clone(), |(_, theirs)| (*theirs).into())
    };
    arguments
        .as_object()
        .unwrap()
        .iter()
        .map(|(key, value)| (name(key), value.clone()))
        .collect::<Map<_, _>>()
        .into()
}

/// What an agent calls an action; `None` if it has no such tool.
fn theirs(agent: &str, action: &Action) -> Option<(&'static str, Value)> {
    let (tool, names): (&str, &[(&str, &str)]) = match (agent, action.tool.as_str()) {
        (_, "do_something") => ("do_something", &[]),
        ("claude-code", "Bash") | ("codex", "Bash") | ("copilot-cli", "Bash") => ("Bash", &[]),
        ("claude-code", "Read") => ("Read", &[]),
        ("claude-code", "Write") => ("Write", &[]),
        ("claude-code", "Edit") => ("Edit", &[]),
        ("claude-code", "Glob") | ("copilot-cli", "Glob") => ("Glob", &[]),
        ("claude-code", "Grep") | ("copilot-cli" | "cursor", "Grep") => ("Grep", &[]),
        ("claude-code", "LS") => ("LS", &[]),
        ("claude-code" | "copilot-cli" | "cursor", "WebFetch") => ("WebFetch", &[]),
        ("claude-code" | "copilot-cli", "WebSearch") => ("WebSearch", &[]),
        ("claude-code", "ApplyPatch") => ("ApplyPatch", &[]),
        ("claude-code", "Delete") => ("Delete", &[]),
        ("gemini-cli", "Bash") => ("run_shell_command", &[]),
        ("gemini-cli", "Read") => ("read_file", &[]),
        ("gemini-cli", "Write") => ("write_file", &[]),
        ("gemini-cli", "Edit") => ("replace", &[]),
        ("gemini-cli", "Glob") => ("glob", &[("path", "dir_path")]),
        ("gemini-cli", "Grep") => ("grep_search", &[("path", "dir_path"), ("glob", "include_pattern")]),
        ("gemini-cli", "LS") => ("list_directory", &[("path", "dir_path")]),
        ("gemini-cli", "WebFetch") => ("web_fetch", &[("url", "prompt")]),
        ("gemini-cli", "WebSearch") => ("google_web_search", &[]),
        ("codex", "Read") => ("read_file", &[]),
        ("codex", "Grep") => ("grep_files", &[("glob", "include")]),
        ("codex", "LS") => ("list_dir", &[("path", "dir_path")]),
        ("codex", "ApplyPatch") => ("apply_patch", &[("patch", "command")]),
        ("cursor", "Bash") => ("Shell", &[]),
        ("cursor", "Read") => ("Read", &[("file_path", "path")]),
        ("cursor", "Write") => ("Write", &[("file_path", "path"), ("content", "contents")]),
        ("cursor", "Edit") => ("StrReplace", &[("file_path", "path")]),
        ("cursor", "Glob") => ("Glob", &[("pattern", "glob_pattern"), ("path", "target_directory")]),
        ("cursor", "LS") => ("LS", &[("path", "target_directory")]),
        ("cursor", "WebSearch") => ("WebSearch", &[("query", "search_term")]),
        ("cursor", "Delete") => ("Delete", &[("file_path", "path")]),
        ("copilot-cli", "Read") => ("Read", &[("file_path", "path")]),
        ("copilot-cli", "Write") => ("Write", &[("file_path", "path"), ("content", "file_text")]),
        ("copilot-cli", "Edit") => {
            ("Edit", &[("file_path", "path"), ("old_string", "old_str"), ("new_string", "new_str")])
        }
        ("copilot-cli", "ApplyPatch") => ("Edit", &[("patch", "input")]),
        ("opencode", "Bash") => ("bash", &[]),
        ("opencode", "Read") => ("read", &[("file_path", "filePath")]),
        ("opencode", "Write") => ("write", &[("file_path", "filePath")]),
        ("opencode", "Edit") => {
            ("edit", &[("file_path", "filePath"), ("old_string", "oldString"), ("new_string", "newString")])
        }
        ("opencode", "Glob") => ("glob", &[]),
        ("opencode", "Grep") => ("grep", &[("glob", "include")]),
        ("opencode", "LS") => ("list", &[]),
        ("opencode", "WebFetch") => ("webfetch", &[]),
        ("opencode", "WebSearch") => ("websearch", &[]),
        ("opencode", "ApplyPatch") => ("apply_patch", &[("patch", "patchText")]),
        _ => return None,
    };
    Some((tool, renamed(&action.arguments, names)))
}

/// The event before a call, as an agent tells it.
fn event(agent: &str, session: &str, tool: &str, arguments: &Value) -> String {
    let (name, field) = match agent {
        "gemini-cli" => ("BeforeTool", "session_id"),
        "cursor" => ("preToolUse", "conversation_id"),
        "opencode" => ("tool.execute.before", "session_id"),
        _ => ("PreToolUse", "session_id"),
    };
    json!({field: session, "hook_event_name": name, "cwd": PROJECT, "tool_name": tool, "tool_input": arguments})
        .to_string()
}

/// Runs through the daemon, under the bundle.
struct Through {
    daemon: Daemon,
    bundle: String,
}

impl Through {
    fn open(&self, surface: &str, session: &str) -> OpenRun {
        OpenRun {
            surface: surface.into(),
            session: Some(session.into()),
            bundle: Some(self.bundle.clone()),
            rejoin: true,
            place: Some(Place { workspace: Some(PROJECT.into()), home: Some(HOME.into()), gate: None }),
            ..OpenRun::default()
        }
    }

    async fn v1(&self, number: usize, action: &Action) -> Judged {
        let client = self.daemon.agent();
        let run = client.open_run(&self.open("http", &format!("v1-{number}"))).await.unwrap().run;
        let proposal = ProposeAction {
            tool: Some(action.tool.clone()),
            arguments: action.arguments.clone(),
            directory: Some(PROJECT.into()),
            ..ProposeAction::default()
        };
        let proposed = client.propose(run, &proposal).await.unwrap();
        judged(proposed.judged().verdict, &proposed.judged().findings)
    }

    /// What the record says after an agent's hook has asked.
    async fn hook(&self, agent: &str, number: usize, tool: &str, arguments: &Value) -> Judged {
        let session = format!("{agent}-{number}");
        let mut asked = json!({
            "input": event(agent, &session, tool, arguments), "bundle": self.bundle, "workspace": PROJECT,
            "home": HOME, "uncontained": true,
        });
        if agent != "claude-code" {
            asked["agent"] = agent.into();
        }
        let (status, answer) = self.daemon.requests().post("/v1/hook", &asked).await;
        assert_eq!((status, answer["exit"].as_u64()), (200, Some(0)), "{agent} {tool}: {answer}");
        let client = self.daemon.agent();
        let run = client.open_run(&self.open("hook", &session)).await.unwrap().run;
        let page = client.events_joined(&run.to_string(), 0, 1_000).await.unwrap();
        let verdicts: Vec<Judged> = events(&page.lines)
            .into_iter()
            .filter_map(|event| match event.body {
                EventBody::Verdict(record) => Some(judged(record.verdict, &record.findings)),
                _ => None,
            })
            .collect();
        let [verdict] = verdicts.try_into().unwrap_or_else(|other| panic!("{agent} {tool}: {other:?}"));
        verdict
    }
}

/// What `portcullis check` makes of a record of these actions, one a run: the verdict and the rule that decides.
fn checked(files: &BTreeMap<String, Vec<u8>>, actions: &[Action]) -> Vec<(Verdict, Option<String>)> {
    let record = |action: &Action| {
        let arguments = action.arguments.to_string();
        let call =
            json!({"id": "c", "type": "function", "function": {"name": action.tool, "arguments": arguments}});
        json!({"messages": [{"role": "user", "content": "Go on."}, {"role": "assistant", "content": null, "tool_calls": [call]}]})
            .to_string()
    };
    let text: Vec<String> = actions.iter().map(record).collect();
    let source = Source::stream(text.join("\n").as_bytes()).unwrap();
    let bundle = Arc::new(policy::load(files).unwrap());
    let options = Options { policy: None, strict_tools: true };
    let mut found = Vec::new();
    replay::replay(&source, &bundle, &Arc::new(policy::pipeline()), &options, &mut |item| {
        if let Item::Decision(row) = item {
            found.push((row.verdict, row.rule.clone()));
        }
        ControlFlow::Continue(())
    })
    .unwrap();
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn every_surface_judges_the_same_action_alike() {
    let folder = tempfile::tempdir().unwrap();
    let files = bundle();
    for (path, bytes) in &files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    let through =
        Through { daemon: Daemon::start().await, bundle: folder.path().to_str().unwrap().to_owned() };
    let actions = actions();
    assert!(actions.len() >= ACTIONS_MIN, "{}", actions.len());
    let checked = checked(&files, &actions);
    assert_eq!(checked.len(), actions.len());
    let mut wrong = Vec::new();
    let mut asked = BTreeMap::<&str, usize>::new();
    for (number, (action, checked)) in actions.iter().zip(checked).enumerate() {
        let words = format!("{} {}", action.tool, action.arguments);
        let v1 = through.v1(number, action).await;
        if (action.verdict, &action.rule) != (checked.0, &checked.1) {
            wrong.push(format!("check: {words}: {} {:?}", checked.0.as_str(), checked.1));
        }
        if v1.verdict != action.verdict {
            wrong.push(format!("/v1: {words}: {v1:?}"));
        }
        for agent in ["claude-code", "gemini-cli", "codex", "cursor", "copilot-cli", "opencode"] {
            let Some((tool, arguments)) = theirs(agent, action) else { continue };
            *asked.entry(agent).or_default() += 1;
            let hook = through.hook(agent, number, tool, &arguments).await;
            if hook != v1 {
                wrong.push(format!("{agent}: {words}: {hook:?}, not {v1:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), actions.len(), wrong.join("\n"));
    println!("{} actions through check and /v1; through hooks: {asked:?}", actions.len());
    // An agent for which nothing is asked would agree with everything.
    assert!(asked.values().all(|number| *number >= ACTIONS_MIN - 15), "{asked:?}");
}
