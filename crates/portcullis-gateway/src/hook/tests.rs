//! What is decided here without a daemon. Against one: `tests/it/hook.rs`, and the binary's own tests.

use portcullis_core::id::ActionId;
use portcullis_core::verdict::Verdict;

use super::*;

fn options(project: Option<&str>, home: Option<&str>) -> HookOptions {
    HookOptions {
        home: Home::at(Path::new("/tmp/none")).unwrap(),
        bundle: None,
        policy: None,
        ask: false,
        defer: false,
        project: project.map(PathBuf::from),
        user_home: home.map(PathBuf::from),
        program: None,
    }
}

fn input(cwd: Option<&str>) -> HookInput {
    HookInput {
        session: "s".into(),
        directory: cwd.map(str::to_owned),
        permission_mode: None,
        name: "SessionStart".into(),
        event: HookEvent::SessionStart,
    }
}

#[test]
fn a_folder_that_holds_the_home_is_no_project() {
    let workspace = |project, cwd, home| place(&input(cwd), &options(project, home)).workspace;
    let home = Some("/home/u");
    assert_eq!(workspace(Some("/home/u/p"), Some("/x"), home).as_deref(), Some("/home/u/p"));
    assert_eq!(workspace(None, Some("/home/u/p/src"), home).as_deref(), Some("/home/u/p/src"));
    for wide in ["/", "/home", "/home/u"] {
        assert_eq!(workspace(Some(wide), None, home), None, "{wide}");
    }
    assert_eq!(workspace(Some("/srv/p"), None, None).as_deref(), Some("/srv/p"));
    assert_eq!(workspace(None, None, home), None);
}

#[test]
fn a_link_to_a_folder_that_holds_the_home_is_no_project() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("u");
    std::fs::create_dir_all(home.join("p")).unwrap();
    for (name, target) in [("root", Path::new("/")), ("home", &home), ("above", folder.path())] {
        let link = home.join(name);
        std::os::unix::fs::symlink(target, &link).unwrap();
        let place = place(&input(None), &options(link.to_str(), home.to_str()));
        assert_eq!(place.workspace, None, "{name}");
    }
    let link = home.join("project");
    std::os::unix::fs::symlink(home.join("p"), &link).unwrap();
    let place = place(&input(None), &options(link.to_str(), home.to_str()));
    assert_eq!(place.workspace.as_deref(), link.to_str());
}

fn judged(enforced: Enforced, permit: bool) -> ActionAnswer {
    let finding = Finding::new("access/outside-delete", Verdict::Review, "deletes outside the project")
        .against(["path /etc/x".to_owned()])
        .at(Span { pointer: "/arguments/command".into(), start: 0, end: 9 });
    ActionAnswer {
        action: ActionId::from_bytes([1; 16]),
        step: 1,
        verdict: Verdict::Review,
        enforced,
        permit,
        arguments: None,
        denial: None,
        approval: None,
        findings: vec![finding],
        seq: 1,
    }
}

#[test]
fn answers_become_decisions() {
    let call = HookCall { tool: "Bash".into(), arguments: json!({"command": "rm /etc/x"}), id: None };
    let decided = |enforced, permit, defer| decide(&judged(enforced, permit), &call, defer);
    assert_eq!(decided(Enforced::Executed, true, false), Some(Decision::Allow(None)));
    assert_eq!(decided(Enforced::Executed, true, true), None);
    assert_eq!(decided(Enforced::LetPass, true, false), None, "observing changes nothing");
    let mut replaced = judged(Enforced::Replaced, true);
    replaced.arguments = Some(json!({"command": "true"}));
    assert_eq!(decide(&replaced, &call, true), Some(Decision::Allow(Some(json!({"command": "true"})))));
    let Some(Decision::Ask(why)) = decided(Enforced::Asked, false, false) else { panic!() };
    assert_eq!(
        why,
        "Portcullis (access/outside-delete): deletes outside the project: path /etc/x (`rm /etc/x`)"
    );
    assert!(matches!(decided(Enforced::Held, false, true), Some(Decision::Deny(_))));
    assert!(matches!(decided(Enforced::Withheld, false, false), Some(Decision::Deny(_))));
}

#[test]
fn what_is_quoted_is_one_short_line() {
    let text = format!("a\n`b` {}", "x".repeat(200));
    let span = Span { pointer: "/arguments/command".into(), start: 0, end: text.len() };
    let quoted = stretch(&json!({ "command": text }), &span).unwrap();
    assert!(
        quoted.starts_with("a  b  xx") && quoted.ends_with('…') && quoted.chars().count() == 121,
        "{quoted}"
    );
    let out = Span { end: text.len() + 9, ..span };
    assert_eq!(stretch(&json!({ "command": text }), &out), None);
}

#[test]
fn a_call_without_an_id_is_known_by_what_it_is() {
    let call = |arguments| HookCall { tool: "Bash".into(), arguments, id: None };
    assert_eq!(call_id(&call(json!({"a": 1, "b": 2}))), call_id(&call(json!({"b": 2, "a": 1}))));
    assert_ne!(call_id(&call(json!({"a": 1}))), call_id(&call(json!({"a": 2}))));
}

#[test]
fn prompts_are_shown_in_some_modes_only() {
    for mode in [None, Some("default"), Some("plan"), Some("acceptEdits")] {
        assert!(shows_prompts(mode), "{mode:?}");
    }
    for mode in ["auto", "dontAsk", "bypassPermissions", "novel"] {
        assert!(!shows_prompts(Some(mode)), "{mode}");
    }
}
