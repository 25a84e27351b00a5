//! Scripts that an agent runs by the names of its events, one file for each: of Cline.
//!
//! It takes a script that fails for one that has nothing to say, so that ours says no whenever the program says nothing.

use std::path::Path;

use portcullis_wire::hook::Agent;

use super::{Change, InstallError, Standing, agents, text_of, with_program};

/// What stands around the command line.
const BEFORE: &str = "answer=$(";
const AFTER: &str =
    ") && [ -n \"$answer\" ] || answer='{\"cancel\":true,\"errorMessage\":\"portcullis: not permitted\"}'";
/// The agent's folder, and that of the script, is told to the program in a variable.
const FIRST: &str = "export PWD\n";
const LAST: &str = "printf '%s\\n' \"$answer\"\n";

/// By what one knows it.
fn first_lines(agent: Agent) -> String {
    let id = agent.id();
    format!(
        "#!/bin/sh\n# portcullis: written by `portcullis hook install {id}`, which writes it again as a whole.\n"
    )
}

/// The script that starts a command.
fn script(agent: Agent, command: &str) -> String {
    let line = [BEFORE, command, AFTER, "\n"].concat();
    [first_lines(agent).as_str(), FIRST, &line, LAST].concat()
}

/// What is there, which has to be the script or nothing.
fn own_text(agent: Agent, path: &Path) -> Result<Option<String>, InstallError> {
    let text = text_of(path)?;
    if text.as_deref().is_none_or(|text| text.starts_with(&first_lines(agent))) {
        return Ok(text);
    }
    let why = "it is another script; have it run from one with an ending, such as `.sh`";
    Err(InstallError::unfit(path, why))
}

pub(super) fn install(agent: Agent, path: &Path, command: String) -> Result<Change, InstallError> {
    let script = script(agent, &command);
    change(agent, path, Some(command), Some(&script))
}

pub(super) fn uninstall(agent: Agent, path: &Path) -> Result<Change, InstallError> {
    change(agent, path, None, None)
}

/// One of all files: that of the first event, and the others beside it.
fn change(
    agent: Agent,
    path: &Path,
    command: Option<String>,
    script: Option<&str>,
) -> Result<Change, InstallError> {
    let events: Vec<&str> = agents::place(agent).events.iter().map(|(event, _)| *event).collect();
    let mut changes = Vec::new();
    for event in &events {
        let file = path.with_file_name(event);
        let before = own_text(agent, &file)?;
        let replaced = usize::from(before.is_some());
        let after = script.map(str::to_owned);
        changes.push(Change { file, replaced, before, after, ..Change::default() });
    }
    let replaced = changes.iter().map(|change| change.replaced).sum();
    let mut changes = changes.into_iter();
    let first = changes.next().unwrap_or_default();
    Ok(Change { command, events, replaced, beside: changes.collect(), ..first })
}

pub(super) fn standing(agent: Agent, path: &Path) -> Result<Standing, InstallError> {
    let mut found: Option<String> = None;
    let mut missing = Vec::new();
    for (event, _) in agents::place(agent).events {
        let Some(text) = own_text(agent, &path.with_file_name(event))? else {
            missing.push(*event);
            continue;
        };
        let command = text.lines().find_map(|line| line.strip_prefix(BEFORE)?.strip_suffix(AFTER));
        let command = command.filter(|command| text == script(agent, command));
        let Some(command) = command.filter(|command| found.as_ref().is_none_or(|found| found == command))
        else {
            let why = format!("`{event}` is not as this release writes it; install it again");
            return Ok(Standing::Broken(why));
        };
        found = Some(command.to_owned());
    }
    Ok(match found {
        None => Standing::Absent,
        Some(command) if missing.is_empty() => with_program(command),
        Some(_) => Standing::Broken(format!("there is no script for {}", missing.join(", "))),
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::process::{Command, Stdio};
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use super::*;

    /// What a script that was written answers, if the program is this one.
    fn answered(folder: &Path, program: Option<&str>) -> String {
        let file = folder.join("portcullis-hook");
        if let Some(text) = program {
            fs::write(&file, text).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let path = folder.join("hooks/PreToolUse");
        install(Agent::Cline, &path, format!("'{}' --agent cline", file.display())).unwrap().write().unwrap();
        let mut asked = Command::new("sh")
            .arg(&path)
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        asked.stdin.take().unwrap().write_all(b"{\"hookName\": \"tool_call\"}").unwrap();
        let asked = asked.wait_with_output().unwrap();
        assert!(asked.status.success());
        String::from_utf8(asked.stdout).unwrap()
    }

    #[test]
    fn a_script_always_answers() {
        let folder = tempfile::tempdir().unwrap();
        let cancelled = "{\"cancel\":true,\"errorMessage\":\"portcullis: not permitted\"}\n";
        assert_eq!(answered(folder.path(), None), cancelled);
        for (program, answer) in [
            ("#!/bin/sh\ncat >/dev/null\nexit 2\n", cancelled),
            ("#!/bin/sh\ncat >/dev/null\n", cancelled),
            ("#!/bin/sh\ncat >/dev/null\nprintf '{\"cancel\"'\nkill -9 $$\n", cancelled),
            ("#!/bin/sh\ncat\n", "{\"hookName\": \"tool_call\"}\n"),
            ("#!/bin/sh\ncat >/dev/null\nprintf '%s' '{\"a\": \"\\n %s\"}'\n", "{\"a\": \"\\n %s\"}\n"),
        ] {
            assert_eq!(answered(folder.path(), Some(program)), answer, "{program}");
        }
    }

    #[test]
    fn scripts_are_written_and_taken_away_together() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("PreToolUse");
        assert_eq!(standing(Agent::Cline, &path).unwrap(), Standing::Absent);
        assert!(uninstall(Agent::Cline, &path).unwrap().is_nothing());
        let program = std::env::current_exe().unwrap().display().to_string();
        let change = install(Agent::Cline, &path, program.clone()).unwrap();
        assert_eq!(change.difference().matches("+#!/bin/sh").count(), 3, "{}", change.difference());
        change.write().unwrap();
        assert!(install(Agent::Cline, &path, program.clone()).unwrap().is_nothing());
        assert_eq!(standing(Agent::Cline, &path).unwrap(), Standing::Governed(program));

        let other = folder.path().join("PostToolUse");
        let text = fs::read_to_string(&other).unwrap();
        fs::write(&other, text.replace("\"cancel\":true", "\"cancel\":false")).unwrap();
        assert!(matches!(standing(Agent::Cline, &path).unwrap(), Standing::Broken(_)));
        fs::remove_file(&other).unwrap();
        let broken = standing(Agent::Cline, &path).unwrap();
        assert_eq!(broken, Standing::Broken("there is no script for PostToolUse".into()));

        let removed = uninstall(Agent::Cline, &path).unwrap();
        assert_eq!(removed.replaced, 2);
        removed.write().unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn scripts_of_others_stay() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("PreToolUse");
        fs::write(folder.path().join("TaskComplete"), "#!/bin/sh\nmake\n").unwrap();
        assert!(matches!(install(Agent::Cline, &path, "x".into()), Err(InstallError::Unfit { .. })));
        assert!(matches!(uninstall(Agent::Cline, &path), Err(InstallError::Unfit { .. })));
        assert!(matches!(standing(Agent::Cline, &path), Err(InstallError::Unfit { .. })));
        assert!(!path.exists());
    }
}
