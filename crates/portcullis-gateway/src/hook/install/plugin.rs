//! The plugins that start the program for agents that start none themselves: OpenCode and pi.
//!
//! One says by its first line that it is ours and for whom; what follows asks the program, and what comes last is the agent's.

use std::path::Path;

use portcullis_wire::hook::Agent;

use super::changed::in_command;
use super::{Change, InstallError, Standing, agents, text_of, with_program};

/// What asks, and the place of the command line in it.
const ASK: &str = include_str!("plugin/ask.js");
const COMMAND: &str = "\"@COMMAND@\"";
/// How the line with the command line begins.
const LINE: &str = "const COMMAND = ";

/// What an agent calls.
fn called(agent: Agent) -> &'static str {
    match agent {
        Agent::Pi => include_str!("plugin/pi.js"),
        _ => include_str!("plugin/opencode.js"),
    }
}

/// By what one knows it.
fn first_line(agent: Agent) -> String {
    let id = agent.id();
    format!("// portcullis: written by `portcullis hook install {id}`, which writes it again as a whole.\n")
}

/// The plugin that starts a command.
fn plugin(agent: Agent, command: &str) -> String {
    let quoted = serde_json::Value::from(command).to_string();
    [first_line(agent).as_str(), &ASK.replacen(COMMAND, &quoted, 1), called(agent)].concat()
}

/// What is there, which has to be the plugin or nothing.
fn own_text(agent: Agent, path: &Path) -> Result<Option<String>, InstallError> {
    let text = text_of(path)?;
    let first = first_line(agent);
    if text.as_deref().is_none_or(|text| text.starts_with(&first)) {
        return Ok(text);
    }
    Err(InstallError::unfit(path, "it is another plugin; give that another name"))
}

pub(super) fn install(agent: Agent, path: &Path, command: String) -> Result<Change, InstallError> {
    let before = own_text(agent, path)?;
    let after = Some(plugin(agent, &command));
    Ok(Change { command: Some(command), after, ..change(agent, path, before) })
}

pub(super) fn uninstall(agent: Agent, path: &Path) -> Result<Change, InstallError> {
    Ok(change(agent, path, own_text(agent, path)?))
}

/// One that takes the file away.
fn change(agent: Agent, path: &Path, before: Option<String>) -> Change {
    let events = agents::place(agent).events.iter().map(|(event, _)| *event).collect();
    let replaced = usize::from(before.is_some());
    Change { file: path.to_owned(), events, replaced, before, ..Change::default() }
}

pub(super) fn standing(agent: Agent, path: &Path) -> Result<Standing, InstallError> {
    let Some(text) = own_text(agent, path)? else { return Ok(Standing::Absent) };
    let line = text.lines().find_map(|line| line.strip_prefix(LINE)?.strip_suffix(';'));
    let Some(command) = line.and_then(|line| serde_json::from_str::<String>(line).ok()) else {
        return Ok(Standing::Broken("it names no program".to_owned()));
    };
    if let Some(why) = in_command(agent, &command) {
        return Ok(Standing::Changed(why));
    }
    // An event is told by a few lines of its own, so anything that differs may have taken one away.
    Ok(if text == plugin(agent, &command) {
        with_program(command)
    } else {
        Standing::Changed("it is not as this release writes it; install it again".to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const AGENTS: [Agent; 2] = [Agent::OpenCode, Agent::Pi];

    #[test]
    fn a_plugin_names_the_program_once_and_every_event() {
        assert_eq!(ASK.matches(COMMAND).count(), 1);
        for agent in AGENTS {
            for (event, _) in agents::place(agent).events {
                assert!(called(agent).contains(&format!("\"{event}\"")), "{event}");
            }
        }
    }

    #[test]
    fn another_plugin_of_that_name_stays() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("portcullis.js");
        for (agent, other) in [(AGENTS[0], AGENTS[1]), (AGENTS[1], AGENTS[0])] {
            for text in ["export const Mine = async () => ({})\n", &plugin(other, "x")] {
                std::fs::write(&file, text).unwrap();
                assert!(matches!(install(agent, &file, "x".into()), Err(InstallError::Unfit { .. })));
                assert!(matches!(uninstall(agent, &file), Err(InstallError::Unfit { .. })));
                assert!(matches!(standing(agent, &file), Err(InstallError::Unfit { .. })));
            }
        }
    }

    #[test]
    fn a_plugin_that_was_changed_is_not_taken_for_one_that_governs() {
        for agent in AGENTS {
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("portcullis.js");
            let program = std::env::current_exe().unwrap().display().to_string();
            let command = format!("{program} hook --agent {}", agent.id());
            install(agent, &file, command.clone()).unwrap().write().unwrap();
            assert!(matches!(standing(agent, &file).unwrap(), Standing::Governed(_)));
            let text = std::fs::read_to_string(&file).unwrap();
            std::fs::write(&file, text.replace("reject(new Error", "console.log(new Error")).unwrap();
            assert!(matches!(standing(agent, &file).unwrap(), Standing::Changed(_)));
            for other in [
                format!("{command} || true"),
                format!("{command} --help"),
                format!("{program} hook --agent crush"),
                format!("{program} hook"),
                format!("{program} status"),
            ] {
                install(agent, &file, other.clone()).unwrap().write().unwrap();
                assert!(matches!(standing(agent, &file).unwrap(), Standing::Changed(_)), "{other}");
            }
        }
    }
}
