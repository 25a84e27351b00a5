//! The plugin that starts the program for OpenCode, which starts none itself.

use std::path::Path;

use portcullis_wire::hook::Agent;

use super::{Change, InstallError, Standing, agents, text_of, with_program};

/// The plugin, and the place of the command line in it.
const PLUGIN: &str = include_str!("plugin.js");
const COMMAND: &str = "\"@COMMAND@\"";
/// How the line with the command line begins.
const LINE: &str = "const COMMAND = ";

/// By what one knows it.
fn is_own(text: &str) -> bool {
    PLUGIN.lines().next().is_some_and(|first| text.starts_with(first))
}

/// What is there, which has to be the plugin or nothing.
fn own_text(path: &Path) -> Result<Option<String>, InstallError> {
    let text = text_of(path)?;
    if text.as_deref().is_none_or(is_own) {
        return Ok(text);
    }
    let why = "it is another plugin; give that another name".to_owned();
    Err(InstallError::Unfit { path: path.to_owned(), why })
}

pub(super) fn install(path: &Path, command: String) -> Result<Change, InstallError> {
    let before = own_text(path)?;
    let quoted = serde_json::Value::from(command.as_str()).to_string();
    let after = Some(PLUGIN.replacen(COMMAND, &quoted, 1));
    Ok(Change { command: Some(command), after, ..change(path, before) })
}

pub(super) fn uninstall(path: &Path) -> Result<Change, InstallError> {
    Ok(change(path, own_text(path)?))
}

/// One that takes the file away.
fn change(path: &Path, before: Option<String>) -> Change {
    let events = agents::place(Agent::OpenCode).events.iter().map(|(event, _)| *event).collect();
    let replaced = usize::from(before.is_some());
    Change { file: path.to_owned(), command: None, events, replaced, before, after: None }
}

pub(super) fn standing(path: &Path) -> Result<Standing, InstallError> {
    let Some(text) = own_text(path)? else { return Ok(Standing::Absent) };
    let line = text.lines().find_map(|line| line.strip_prefix(LINE)?.strip_suffix(';'));
    let Some(command) = line.and_then(|line| serde_json::from_str::<String>(line).ok()) else {
        return Ok(Standing::Broken("it names no program".to_owned()));
    };
    // An event is told by a few lines of its own, so anything that differs may have taken one away.
    let whole = PLUGIN.replacen(COMMAND, &serde_json::Value::from(command.as_str()).to_string(), 1);
    Ok(if text == whole {
        with_program(command)
    } else {
        Standing::Broken("it is not as this release writes it; install it again".to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plugin_names_the_program_once() {
        assert_eq!(PLUGIN.matches(COMMAND).count(), 1);
        for (event, _) in agents::place(Agent::OpenCode).events {
            assert!(PLUGIN.contains(&format!("\"{event}\"")), "{event}");
        }
    }

    #[test]
    fn another_plugin_of_that_name_stays() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("portcullis.js");
        std::fs::write(&file, "export const Mine = async () => ({})\n").unwrap();
        assert!(matches!(install(&file, "x".into()), Err(InstallError::Unfit { .. })));
        assert!(matches!(uninstall(&file), Err(InstallError::Unfit { .. })));
        assert!(matches!(standing(&file), Err(InstallError::Unfit { .. })));
    }

    #[test]
    fn a_plugin_that_was_changed_is_not_taken_for_one_that_governs() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("portcullis.js");
        let program = std::env::current_exe().unwrap().display().to_string();
        install(&file, format!("{program} hook")).unwrap().write().unwrap();
        assert!(matches!(standing(&file).unwrap(), Standing::Governed(_)));
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::write(&file, text.replace("throw new Error", "console.log")).unwrap();
        assert!(matches!(standing(&file).unwrap(), Standing::Broken(_)));
    }
}
