//! Settings of every agent: what is written, what stays, and what is left alone.

use serde_json::{Value, json};

use super::command::hooks_of;
use super::*;

/// The agents whose settings are JSON.
fn with_settings() -> impl Iterator<Item = Agent> {
    let json = |agent: &Agent| matches!(agents::place(*agent).form, Form::Settings | Form::Events);
    Agent::ALL.into_iter().filter(json)
}

/// Where the events stand in a settings file.
fn hooks_in(agent: Agent, text: &mut Value) -> &mut Value {
    match agents::place(agent).form {
        Form::Events => text,
        _ => &mut text["hooks"],
    }
}

/// Settings of an agent in a folder, with the program at a path that needs quotes.
fn settings(agent: Agent, folder: &Path, arguments: &[&str]) -> Settings {
    Settings {
        agent,
        file: settings_file(agent, Scope::Project, folder).unwrap(),
        program: PathBuf::from("/opt/my tools/portcullis"),
        arguments: arguments.iter().map(|word| (*word).to_owned()).collect(),
    }
}

fn installed(settings: &Settings) -> Change {
    let change = install(settings).unwrap();
    change.write().unwrap();
    change
}

fn read(settings: &Settings) -> Value {
    serde_json::from_slice(&fs::read(&settings.file).unwrap()).unwrap()
}

fn write(settings: &Settings, text: &str) {
    fs::create_dir_all(settings.file.parent().unwrap()).unwrap();
    fs::write(&settings.file, text).unwrap();
}

#[test]
fn entries_are_added_once_and_the_rest_stays() {
    let folder = tempfile::tempdir().unwrap();
    let first = settings(Agent::ClaudeCode, folder.path(), &[]);
    let events = agents::place(Agent::ClaudeCode).events.len();
    write(
        &first,
        r#"{"model":"m","hooks":{"PreToolUse":[{"matcher":"Bash","hooks":[{"type":"command","command":"lint"}]}]},"env":{"A":"1"}}"#,
    );
    let change = installed(&first);
    assert_eq!((change.replaced, change.events.len()), (0, events));
    let text = read(&first);
    let kept = fs::read_to_string(&first.file).unwrap();
    let theirs = r#"{"model":"m","hooks":{"PreToolUse":[{"matcher":"Bash","hooks":[{"type":"command","command":"lint"}]}, {"matcher": "*", "#;
    assert!(kept.starts_with(theirs), "{kept}");
    assert!(kept.ends_with("\n  ]},\"env\":{\"A\":\"1\"}}"), "{kept}");
    let entries = text["hooks"]["PreToolUse"].as_array().unwrap();
    assert_eq!(entries[0]["hooks"][0]["command"], "lint");
    assert_eq!(entries[1]["matcher"], "*");
    assert_eq!(entries[1]["hooks"][0]["command"], "'/opt/my tools/portcullis' hook || exit 2");
    assert_eq!(text["hooks"]["Stop"][0]["hooks"][0]["command"], "'/opt/my tools/portcullis' hook");

    let again = Settings {
        program: "/usr/bin/portcullis".into(),
        ..settings(Agent::ClaudeCode, folder.path(), &["--ask"])
    };
    let change = installed(&again);
    assert_eq!((change.replaced, change.is_nothing()), (events, false));
    let change = installed(&again);
    assert_eq!((change.replaced, change.is_nothing(), change.difference().as_str()), (events, true, ""));
    let entries = read(&again)["hooks"]["PreToolUse"].as_array().unwrap().clone();
    assert_eq!(entries.last().unwrap()["hooks"][0]["command"], "/usr/bin/portcullis hook --ask || exit 2");
}

/// What every agent has in common.
#[test]
fn what_is_installed_is_shown_first_and_can_be_taken_out() {
    for agent in with_settings() {
        let folder = tempfile::tempdir().unwrap();
        let settings = settings(agent, folder.path(), &[]);
        assert_eq!(standing(agent, &settings.file).unwrap(), Standing::Absent, "{agent:?}");
        assert!(uninstall(agent, &settings.file).unwrap().is_nothing(), "{agent:?}");
        let shown = install(&settings).unwrap();
        assert!(!settings.file.exists(), "{agent:?}: what is only shown is not written");
        let difference = shown.difference();
        assert!(difference.starts_with("--- /dev/null\n+++ /"), "{agent:?}: {difference}");
        shown.write().unwrap();
        assert!(install(&settings).unwrap().is_nothing(), "{agent:?}");
        let Standing::Broken(why) = standing(agent, &settings.file).unwrap() else { panic!("{agent:?}") };
        assert!(why.contains("is no program"), "{agent:?}: {why}");
        let there = Settings { program: std::env::current_exe().unwrap(), ..settings.clone() };
        // Its name is neither of the two that start the gate.
        installed(&there);
        assert_eq!(standing(agent, &settings.file).unwrap(), Standing::Absent, "{agent:?}");

        let beside = folder.path().join("bin");
        fs::create_dir(&beside).unwrap();
        let small = beside.join("portcullis-hook");
        fs::write(&small, "").unwrap();
        fs::set_permissions(&small, fs::Permissions::from_mode(0o755)).unwrap();
        fs::remove_file(&settings.file).unwrap();
        let else_ = "\"Else\": [{\"hooks\": [{\"command\": \"x\"}]}]";
        match agents::place(agent).form {
            Form::Events => write(&settings, &format!("{{\"novel\": [1.0, 2],\n {else_}}}")),
            _ => write(&settings, &format!("{{\"novel\": [1.0, 2],\n \"hooks\": {{{else_}}}}}")),
        }
        let before = fs::read_to_string(&settings.file).unwrap();
        installed(&Settings { program: beside.join("portcullis"), ..settings.clone() });
        let Standing::Governed(command) = standing(agent, &settings.file).unwrap() else {
            panic!("{agent:?}")
        };
        assert!(command.starts_with(&small.display().to_string()), "{agent:?}: {command}");
        assert_eq!(command.contains(&format!(" --agent {}", agent.id())), agent != Agent::ClaudeCode);

        // An event that someone took out is missed.
        let mut text = read(&settings);
        let first = agents::place(agent).events[0].0;
        hooks_in(agent, &mut text).as_object_mut().unwrap().remove(first);
        write(&settings, &text.to_string());
        match standing(agent, &settings.file).unwrap() {
            Standing::Broken(why) => assert!(why.contains(first), "{agent:?}: {why}"),
            // That was its only one.
            other => {
                assert_eq!((other, agents::place(agent).events.len()), (Standing::Absent, 1), "{agent:?}")
            }
        }

        let removed = uninstall(agent, &settings.file).unwrap();
        assert_eq!(removed.replaced, agents::place(agent).events.len() - 1, "{agent:?}");
        removed.write().unwrap();
        let after: Value = serde_json::from_slice(&fs::read(&settings.file).unwrap()).unwrap();
        let mut expected: Value = serde_json::from_str(&before).unwrap();
        if let Some(version) = after.get("version") {
            expected["version"] = version.clone();
        }
        assert_eq!(after, expected, "{agent:?}: what was there before is there again");
        assert!(uninstall(agent, &settings.file).unwrap().is_nothing(), "{agent:?}");
    }
}

#[test]
fn what_must_block_blocks_when_the_program_is_gone_and_says_why() {
    for agent in with_settings() {
        let folder = tempfile::tempdir().unwrap();
        let settings = Settings { program: "/gone/portcullis".into(), ..settings(agent, folder.path(), &[]) };
        installed(&settings);
        let mut text = read(&settings);
        for (event, blocks) in agents::place(agent).events {
            let entry = &hooks_in(agent, &mut text)[event][0];
            let hook = hooks_of(entry)[0];
            let command = hook.get("command").unwrap_or(&hook["bash"]).as_str().unwrap();
            for shell in ["sh", "bash"] {
                let ran = std::process::Command::new(shell).args(["-c", command]).output().unwrap();
                assert_eq!(ran.status.code() == Some(2), *blocks, "{agent:?} {event}: {command}");
                assert!(ran.stdout.is_empty());
                // Gemini CLI and Codex go on after code 2 with nothing on standard error.
                assert!(!ran.stderr.is_empty());
            }
        }
    }
}

#[test]
fn an_agent_waits_longer_than_the_hook_takes() {
    for (agent, field, unit) in [
        (Agent::ClaudeCode, "timeout", 1),
        (Agent::GeminiCli, "timeout", 1000),
        (Agent::Codex, "timeout", 1),
        (Agent::Cursor, "timeout", 1),
        (Agent::CopilotCli, "timeoutSec", 1),
        (Agent::QwenCode, "timeout", 1000),
        (Agent::Droid, "timeout", 1),
        (Agent::Crush, "timeout", 1),
    ] {
        for (event, _) in agents::place(agent).events {
            let entry = agents::entry(agent, event, true, "x");
            let timeout = hooks_of(&entry)[0][field].as_u64().unwrap();
            if (agent, *event) == (Agent::Codex, "SessionEnd") {
                assert_eq!(timeout, 3, "it gives no more, and the end of a session waits for nothing");
                continue;
            }
            assert!(timeout > portcullis_hook::limit::WHOLE_MAX.as_secs() * unit, "{agent:?} {event}");
        }
    }
}

#[test]
fn the_program_that_answers_quickly_is_started_where_it_is_installed() {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings {
        program: folder.path().join("portcullis"),
        ..settings(Agent::ClaudeCode, folder.path(), &["--ask"])
    };
    let small = folder.path().join("portcullis-hook");
    let whole = format!("{} hook --ask", settings.program.display());
    let quick = format!("{} --ask", small.display());
    assert_eq!(installed(&settings).command.as_ref(), Some(&whole));
    fs::write(&small, "").unwrap();
    fs::set_permissions(&small, fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(installed(&settings).command.as_ref(), Some(&whole), "not a program");
    fs::set_permissions(&small, fs::Permissions::from_mode(0o755)).unwrap();
    let change = installed(&settings);
    assert_eq!((change.command, change.replaced), (Some(quick.clone()), change.events.len()));
    let hooks = &read(&settings)["hooks"];
    assert_eq!(hooks["PreToolUse"][0]["hooks"][0]["command"], format!("{quick} || exit 2"));
    fs::remove_file(&small).unwrap();
    assert_eq!(installed(&settings).command, Some(whole));
}

#[test]
fn what_is_no_settings_file_is_left_alone() {
    for agent in with_settings() {
        let folder = tempfile::tempdir().unwrap();
        let settings = settings(agent, folder.path(), &[]);
        let event = agents::place(agent).events[0].0;
        let whole = agents::place(agent).form == Form::Settings;
        let events = |events: &str| if whole { format!("{{\"hooks\":{events}}}") } else { events.to_owned() };
        for text in [
            "[]".to_owned(),
            "{".to_owned(),
            // Of a file that is all events, hooks that are not read.
            if whole { r#"{"hooks":[]}"# } else { r#"{"hooks":{}}"# }.to_owned(),
            events(&format!(r#"{{"{event}":{{}}}}"#)),
            events(&format!(r#"{{"{event}":[],"{event}":[]}}"#)),
            "\u{feff}{}".to_owned(),
            "{\"a\": 1,}".to_owned(),
            "{\"a\": \"line\nbreak\"}".to_owned(),
            "{\"a\": 01}".to_owned(),
            "{} {}".to_owned(),
        ] {
            write(&settings, &text);
            let error = install(&settings).unwrap_err();
            assert!(matches!(error, InstallError::Unfit { .. }), "{agent:?}: {text}");
            assert!(!error.to_string().contains("was not changed"), "`status` changes nothing: {error}");
            standing(agent, &settings.file).unwrap_err();
            uninstall(agent, &settings.file).unwrap_err();
            assert_eq!(fs::read_to_string(&settings.file).unwrap(), text);
        }
    }
}

#[test]
fn a_mistake_is_named_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let settings = settings(Agent::ClaudeCode, folder.path(), &[]);
    for (text, said) in [
        ("{\n  \"a\": 1,\n}", "line 2, column 9: trailing commas are not allowed; correct it there first"),
        ("{\n\"a\": }", "line 2, column 6: "),
        ("{\n \"hooks\": {},\n \"hooks\": {}}", "line 3, column 2: `hooks` is there twice"),
        (
            "{\"hooks\": {\"Stop\": [], \"Stop\": []}}",
            "line 1, column 24: `Stop` is there twice, and agents differ in which they take; leave one of them",
        ),
        ("{\"a\": \"x\ny\"}", "line 1, column 8: control character"),
        ("[1]", "it is not an object"),
        (
            "{\n  // mine\n}",
            "line 2, column 3: a comment; Claude Code is not known to read settings with comments",
        ),
    ] {
        write(&settings, text);
        let error = install(&settings).unwrap_err().to_string();
        assert!(error.contains(said), "{text}: {error}");
    }
    // What is there twice elsewhere is nobody's business here.
    write(&settings, "{\"a\": 1, \"a\": 2}");
    installed(&settings);
}

/// Whoever does not read comments reads nothing of a file that has some, so that the entries are only shown.
#[test]
fn comments_stay_where_they_are_read_and_are_refused_elsewhere() {
    for agent in with_settings() {
        let folder = tempfile::tempdir().unwrap();
        let settings = settings(agent, folder.path(), &["--defer"]);
        write(&settings, "{ // mine\n}");
        if matches!(agent, Agent::GeminiCli | Agent::QwenCode) {
            installed(&settings);
            assert!(fs::read_to_string(&settings.file).unwrap().contains("} // mine\n}"), "{agent:?}");
            assert!(matches!(standing(agent, &settings.file).unwrap(), Standing::Broken(_)));
            continue;
        }
        let Err(InstallError::Unfit { by_hand: Some(by_hand), .. }) = install(&settings) else {
            panic!("{agent:?}")
        };
        fs::remove_file(&settings.file).unwrap();
        installed(&settings);
        assert_eq!(fs::read_to_string(&settings.file).unwrap(), by_hand, "{agent:?}");
    }
}

/// A comment that ends with a carriage return ends there for one parser and goes on for another.
#[test]
fn a_comment_ends_where_all_see_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let settings = settings(Agent::GeminiCli, folder.path(), &[]);
    write(&settings, "{// mine\r\"hooks\": {}\n}");
    let error = install(&settings).unwrap_err().to_string();
    assert!(error.contains("line 1, column 9: a comment ends with a carriage return alone"), "{error}");
}

/// A shell takes the program from whatever folder it is in, and so do we.
#[test]
fn a_program_is_known_again_whatever_its_path() {
    for name in ["it's", "a b", "$HOME", "q\"q", "back\\slash", "semi;colon", "ümlaut", "(x)&"] {
        for agent in Agent::ALL {
            let folder = tempfile::tempdir().unwrap();
            let bin = folder.path().join(name);
            fs::create_dir(&bin).unwrap();
            let program = bin.join("portcullis");
            fs::write(&program, "").unwrap();
            fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
            let file = settings_file(agent, Scope::User, folder.path()).unwrap();
            let settings =
                Settings { agent, file, program, arguments: vec!["--home".into(), "/it's".into()] };
            installed(&settings);
            let governed = standing(agent, &settings.file).unwrap();
            assert!(matches!(governed, Standing::Governed(_)), "{agent:?} {name}: {governed:?}");
            assert!(install(&settings).unwrap().is_nothing(), "{agent:?} {name}");
            let removed = uninstall(agent, &settings.file).unwrap();
            assert!(removed.replaced > 0, "{agent:?} {name}");
            removed.write().unwrap();
            assert!(!settings.file.exists(), "{agent:?} {name}");
        }
    }
}

#[test]
fn what_one_line_cannot_hold_is_refused() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;
    let folder = tempfile::tempdir().unwrap();
    for name in [OsStr::new("/a\nb/portcullis"), OsStr::from_bytes(b"/\xff/portcullis")] {
        for agent in Agent::ALL {
            let file = settings_file(agent, Scope::User, folder.path()).unwrap();
            let settings = Settings { agent, file, program: name.into(), arguments: Vec::new() };
            assert!(matches!(install(&settings), Err(InstallError::Unfit { .. })), "{agent:?}");
        }
    }
}

#[test]
fn a_link_that_leads_nowhere_is_left_alone() {
    for agent in Agent::ALL {
        let folder = tempfile::tempdir().unwrap();
        let file = settings_file(agent, Scope::User, folder.path()).unwrap();
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink("../gone.json", &file).unwrap();
        let settings =
            Settings { agent, file: file.clone(), program: "/opt/portcullis".into(), arguments: Vec::new() };
        for error in [
            install(&settings).unwrap_err(),
            uninstall(agent, &file).unwrap_err(),
            standing(agent, &file).unwrap_err(),
        ] {
            let error = error.to_string();
            assert!(
                error.contains("a link to `../gone.json`, which is not there; make that file"),
                "{error}"
            );
        }
        assert!(fs::symlink_metadata(&file).unwrap().is_symlink());
    }
}

/// The file that a link leads to is kept elsewhere, so that it stays, with nothing in it.
#[test]
fn what_a_link_leads_to_is_not_removed() {
    let folder = tempfile::tempdir().unwrap();
    let settings = settings(Agent::ClaudeCode, folder.path(), &[]);
    installed(&settings);
    let kept = folder.path().join("kept.json");
    fs::rename(&settings.file, &kept).unwrap();
    std::os::unix::fs::symlink(&kept, &settings.file).unwrap();
    uninstall(Agent::ClaudeCode, &settings.file).unwrap().write().unwrap();
    assert!(fs::symlink_metadata(&settings.file).unwrap().is_symlink());
    assert_eq!(fs::read_to_string(&kept).unwrap(), "{}\n");
}

#[test]
fn a_file_keeps_its_rights_and_the_link_that_leads_to_it() {
    let folder = tempfile::tempdir().unwrap();
    let settings = settings(Agent::Codex, folder.path(), &[]);
    let kept = folder.path().join("kept.json");
    fs::write(&kept, json!({"a": 1}).to_string()).unwrap();
    fs::set_permissions(&kept, fs::Permissions::from_mode(0o600)).unwrap();
    fs::create_dir_all(settings.file.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink(&kept, &settings.file).unwrap();
    installed(&settings);
    assert!(fs::symlink_metadata(&settings.file).unwrap().is_symlink());
    assert_eq!(fs::metadata(&kept).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(read(&settings)["a"], 1);
}

/// Droid reads the hooks of one of several files.
#[test]
fn hooks_in_other_files_are_not_put_out_of_force() {
    let folder = tempfile::tempdir().unwrap();
    let settings = settings(Agent::Droid, folder.path(), &[]);
    let others = [("settings.json", r#"{"hooks": {}}"#), ("hooks/hooks.json", r#"{"Stop": []}"#)];
    for (name, text) in others {
        let other = settings.file.with_file_name(name);
        fs::create_dir_all(other.parent().unwrap()).unwrap();
        fs::write(&other, text).unwrap();
        let error = install(&settings).unwrap_err().to_string();
        assert!(error.contains(name) && error.contains("move them"), "{error}");
        fs::write(&other, "{}").unwrap();
    }
    installed(&settings);
    // Where the file is there, they are not read anyway.
    fs::write(settings.file.with_file_name("settings.json"), r#"{"hooks": {}}"#).unwrap();
    assert!(install(&settings).unwrap().is_nothing());
}
