//! A file of hooks that each name their event: of Kiro. The agent reads all files of a folder, so that ours holds nothing else.

use std::path::Path;

use portcullis_wire::hook::Agent;
use serde_json::{Value, json};

use super::changed::Told;
use super::command::own_command;
use super::{Change, InstallError, Standing, agents, standing_of, text_of};

/// The version of the form.
const VERSION: &str = "v1";

/// The file that starts a command.
fn file(agent: Agent, command: &str) -> String {
    let entry = |(event, blocks): &(&str, bool)| agents::entry(agent, event, *blocks, command);
    let hooks: Vec<Value> = agents::place(agent).events.iter().map(entry).collect();
    format!("{:#}\n", json!({"version": VERSION, "hooks": hooks}))
}

/// The text that is there, and its hooks. Those of somebody else are left alone.
fn own(path: &Path) -> Result<(Option<String>, Vec<Value>), InstallError> {
    let unfit = |why: &str| InstallError::unfit(path, why);
    let text = match text_of(path)? {
        Some(text) if !text.trim().is_empty() => text,
        nothing => return Ok((nothing, Vec::new())),
    };
    let read: Value = serde_json::from_str(&text)
        .map_err(|error| unfit(&format!("{error}; correct it there, or remove the file")))?;
    let hooks = read.get("hooks").and_then(Value::as_array).cloned();
    let hooks = hooks.ok_or_else(|| unfit("it has no list `hooks`; remove it, or give it another name"))?;
    if hooks.iter().any(|hook| own_command(hook).is_none()) {
        return Err(unfit("it has other hooks; give that file another name"));
    }
    Ok((Some(text), hooks))
}

pub(super) fn install(agent: Agent, path: &Path, command: String) -> Result<Change, InstallError> {
    let (before, hooks) = own(path)?;
    let after = Some(file(agent, &command));
    Ok(Change { command: Some(command), after, ..change(agent, path, before, &hooks) })
}

pub(super) fn uninstall(agent: Agent, path: &Path) -> Result<Change, InstallError> {
    let (before, hooks) = own(path)?;
    // One without hooks is not of our making.
    let after = before.clone().filter(|_| hooks.is_empty());
    Ok(Change { after, ..change(agent, path, before, &hooks) })
}

/// One that takes the file away.
fn change(agent: Agent, path: &Path, before: Option<String>, hooks: &[Value]) -> Change {
    let events = agents::place(agent).events.iter().map(|(event, _)| *event).collect();
    Change { file: path.to_owned(), events, replaced: hooks.len(), before, ..Change::default() }
}

pub(super) fn standing(agent: Agent, path: &Path) -> Result<Standing, InstallError> {
    let (_, hooks) = own(path)?;
    // One that is turned off is not counted.
    let on: Vec<&Value> = hooks.iter().filter(|hook| hook.get("enabled") != Some(&false.into())).collect();
    let found = agents::place(agent).events.iter().map(|(event, blocks)| {
        let of_event = on.iter().filter(|hook| hook["trigger"] == **event);
        let entries: Vec<Value> = of_event.map(|hook| (*hook).clone()).collect();
        (*event, Told { agent, event, blocks: *blocks }.by(&entries))
    });
    Ok(standing_of(found.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(path: &Path, value: &Value) {
        std::fs::write(path, value.to_string()).unwrap();
    }

    #[test]
    fn its_file_is_written_and_taken_away_as_a_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("portcullis.json");
        assert_eq!(standing(Agent::Kiro, &path).unwrap(), Standing::Absent);
        assert!(uninstall(Agent::Kiro, &path).unwrap().is_nothing());
        let program = folder.path().join("portcullis-hook");
        let command = format!("{} --agent kiro", program.display());
        let change = install(Agent::Kiro, &path, command.clone()).unwrap();
        assert_eq!(change.replaced, 0);
        change.write().unwrap();
        assert!(install(Agent::Kiro, &path, command.clone()).unwrap().is_nothing());
        assert!(
            matches!(standing(Agent::Kiro, &path).unwrap(), Standing::Broken(why) if why.contains("is no program"))
        );
        std::os::unix::fs::symlink("/bin/true", &program).unwrap();
        let governed = standing(Agent::Kiro, &path).unwrap();
        assert!(matches!(&governed, Standing::Governed(own) if own.starts_with(&command)), "{governed:?}");

        let text: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let first = &text["hooks"][0];
        assert_eq!((&first["trigger"], &first["timeout"]), (&json!("PreToolUse"), &json!(60)));
        assert_eq!(text["version"], "v1");
        for (member, value) in
            [("enabled", json!(false)), ("matcher", json!("fs_write")), ("trigger", json!("Stop"))]
        {
            let mut less = text.clone();
            less["hooks"][0][member] = value;
            write(&path, &less);
            let standing = standing(Agent::Kiro, &path).unwrap();
            assert!(
                matches!(&standing, Standing::Broken(why) | Standing::Changed(why) if why.contains("PreToolUse")),
                "{standing:?}"
            );
        }
        let removed = uninstall(Agent::Kiro, &path).unwrap();
        assert_eq!(removed.replaced, 5);
        removed.write().unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn an_empty_file_is_nobodys() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("portcullis.json");
        for text in ["", "\n", "{\"hooks\": []}"] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(standing(Agent::Kiro, &path).unwrap(), Standing::Absent, "{text}");
            assert!(uninstall(Agent::Kiro, &path).unwrap().is_nothing(), "{text}");
            assert!(
                !install(Agent::Kiro, &path, "/opt/portcullis-hook".into()).unwrap().is_nothing(),
                "{text}"
            );
        }
        std::fs::write(&path, "{").unwrap();
        let error = install(Agent::Kiro, &path, "x".into()).unwrap_err().to_string();
        assert!(error.contains("line 1 column 1; correct it there"), "{error}");
    }

    #[test]
    fn hooks_of_others_stay() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("portcullis.json");
        for text in [
            json!([]),
            json!({"version": "v1"}),
            json!({"version": "v1", "hooks": [{"trigger": "Stop", "action": {"type": "command", "command": "make"}}]}),
            json!({"version": "v1", "hooks": [{"trigger": "Stop", "action": {"type": "agent", "prompt": "Go on."}}]}),
        ] {
            write(&path, &text);
            assert!(
                matches!(install(Agent::Kiro, &path, "x".into()), Err(InstallError::Unfit { .. })),
                "{text}"
            );
            assert!(matches!(uninstall(Agent::Kiro, &path), Err(InstallError::Unfit { .. })), "{text}");
            assert!(matches!(standing(Agent::Kiro, &path), Err(InstallError::Unfit { .. })), "{text}");
        }
    }

    #[test]
    fn what_must_block_blocks_when_the_program_is_gone() {
        for (event, blocks) in agents::place(Agent::Kiro).events {
            let entry = agents::entry(Agent::Kiro, event, *blocks, "/gone/portcullis-hook");
            let command = own_command(&entry).unwrap();
            let ran = std::process::Command::new("sh").args(["-c", command]).output().unwrap();
            assert_eq!(ran.status.code() == Some(2), *blocks, "{event}: {command}");
            assert!(!ran.stderr.is_empty());
        }
    }
}
