//! Settings in TOML, with a table `[[hooks]]` for each event. Whatever else is in the file stays as it was written.

use std::path::Path;

use portcullis_wire::hook::Agent;
use serde_json::{Map, Value};
use toml_edit::{ArrayOfTables, DocumentMut, Item, Table, value};

use super::{Change, InstallError, Settings, Standing, Told, agents, is_own, standing_of, text_of};

/// Where the tables are.
const HOOKS: &str = "hooks";

/// A settings file as it was read.
struct File<'a> {
    path: &'a Path,
    text: Option<String>,
    document: DocumentMut,
}

impl<'a> File<'a> {
    fn read(path: &'a Path) -> Result<Self, InstallError> {
        let text = text_of(path)?;
        let document = text.as_deref().unwrap_or_default().parse::<DocumentMut>();
        let unfit = |why: String| InstallError::Unfit { path: path.to_owned(), why };
        let document = document.map_err(|error| unfit(format!("it has to be TOML: {error}")))?;
        match document.get(HOOKS) {
            None | Some(Item::ArrayOfTables(_)) => Ok(Self { path, text, document }),
            Some(_) => Err(unfit("`hooks` has to be tables, `[[hooks]]`, to be changed safely".to_owned())),
        }
    }

    fn tables(&self) -> impl Iterator<Item = &Table> {
        self.document.get(HOOKS).and_then(Item::as_array_of_tables).into_iter().flatten()
    }

    /// Takes out what an earlier installation put in; how many tables that were.
    fn remove_own(&mut self) -> usize {
        let Some(tables) = self.document.get_mut(HOOKS).and_then(Item::as_array_of_tables_mut) else {
            return 0;
        };
        let before = tables.len();
        tables.retain(|table| own_command(table).is_none());
        let removed = before - tables.len();
        if tables.is_empty() {
            self.document.remove(HOOKS);
        }
        removed
    }

    fn changed(self, agent: Agent, command: Option<String>, replaced: usize) -> Change {
        let events = agents::place(agent).events.iter().map(|(event, _)| *event).collect();
        let is_change = command.is_some() || replaced > 0;
        let after = if is_change { Some(self.document.to_string()) } else { self.text.clone() };
        Change {
            file: self.path.to_owned(),
            command,
            events,
            replaced,
            before: self.text,
            after,
            ..Change::default()
        }
    }
}

/// The command of a table that starts the gate.
fn own_command(table: &Table) -> Option<&str> {
    table.get("command").and_then(Item::as_str).filter(|command| is_own(command))
}

pub(super) fn install(settings: &Settings, command: String) -> Result<Change, InstallError> {
    let mut file = File::read(&settings.file)?;
    let replaced = file.remove_own();
    let hooks = file.document.entry(HOOKS).or_insert_with(|| Item::ArrayOfTables(ArrayOfTables::new()));
    for (event, blocks) in agents::place(settings.agent).events {
        let entry = agents::entry(settings.agent, event, *blocks, &command);
        let mut table = Table::new();
        for (name, member) in entry.as_object().into_iter().flatten() {
            let member = match (member.as_str(), member.as_i64()) {
                (Some(text), _) => value(text),
                (None, Some(number)) => value(number),
                (None, None) => continue,
            };
            table.insert(name, member);
        }
        if let Some(tables) = hooks.as_array_of_tables_mut() {
            tables.push(table);
        }
    }
    Ok(file.changed(settings.agent, Some(command), replaced))
}

pub(super) fn uninstall(agent: Agent, path: &Path) -> Result<Change, InstallError> {
    let mut file = File::read(path)?;
    let replaced = file.remove_own();
    Ok(file.changed(agent, None, replaced))
}

pub(super) fn standing(agent: Agent, path: &Path) -> Result<Standing, InstallError> {
    let file = File::read(path)?;
    let entries: Vec<Value> = file.tables().map(entry).collect();
    let events = agents::place(agent).events.iter().map(|(event, blocks)| {
        let of_event = entries.iter().filter(|entry| entry["event"] == *event).cloned();
        (*event, Told { agent, event, blocks: *blocks }.by(&of_event.collect::<Vec<_>>()))
    });
    Ok(standing_of(events.collect()))
}

/// A table as an entry of JSON.
fn entry(table: &Table) -> Value {
    let value = |item: &Item| match (item.as_str(), item.as_integer(), item.as_bool()) {
        (Some(text), ..) => text.into(),
        (_, Some(number), _) => number.into(),
        (.., Some(truth)) => truth.into(),
        // Of no kind that is installed: its text differs from all that are.
        _ => item.to_string().into(),
    };
    table.iter().map(|(name, item)| (name.to_owned(), value(item))).collect::<Map<_, _>>().into()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use portcullis_hook::limit::WHOLE_MAX;

    use super::super::{Scope, install, settings_file, standing, uninstall};
    use super::*;

    const AGENT: Agent = Agent::KimiCode;
    const THEIRS: &str = "# mine\ndefault_model = \"m\" # the small one\n\n[[hooks]]\nevent = \"Stop\"\ncommand = \"say done\"\n\n[providers.a]\napi_key = \"k\"\n";

    fn settings(folder: &Path, program: &str) -> Settings {
        Settings {
            agent: AGENT,
            file: folder.join("config.toml"),
            program: program.into(),
            arguments: vec!["--defer".to_owned()],
        }
    }

    #[test]
    fn tables_are_added_once_and_the_rest_stays() {
        let folder = tempfile::tempdir().unwrap();
        let settings = settings(folder.path(), "/opt/my tools/portcullis");
        let file = settings.file.clone();
        for before in [None, Some(""), Some(THEIRS)] {
            let _gone = fs::remove_file(&file);
            if let Some(before) = before {
                fs::write(&file, before).unwrap();
            }
            assert_eq!(standing(AGENT, &file).unwrap(), Standing::Absent);
            install(&settings).unwrap().write().unwrap();
            assert!(install(&settings).unwrap().is_nothing(), "{before:?}");
            let text = fs::read_to_string(&file).unwrap();
            let read: toml::Table = text.parse().unwrap();
            let hooks = read["hooks"].as_array().unwrap();
            let own: Vec<_> =
                hooks.iter().filter(|hook| hook["command"].as_str() != Some("say done")).collect();
            assert_eq!(own.len(), agents::place(AGENT).events.len(), "{text}");
            for (hook, (event, blocks)) in own.iter().zip(agents::place(AGENT).events) {
                assert_eq!(hook["event"].as_str(), Some(*event));
                let command = hook["command"].as_str().unwrap();
                let starts = "'/opt/my tools/portcullis' hook --agent kimi-code --defer";
                assert!(command.starts_with(starts), "{command}");
                assert_eq!(command.contains("exit 2"), *blocks, "{command}");
                assert!(hook["timeout"].as_integer().unwrap() > WHOLE_MAX.as_secs().cast_signed());
                // Releases refuse a file with members that they do not know.
                assert_eq!(hook.as_table().unwrap().len(), 3);
            }
            let Standing::Broken(why) = standing(AGENT, &file).unwrap() else { panic!("{before:?}") };
            assert!(why.contains("is no program"), "{why}");
            uninstall(AGENT, &file).unwrap().write().unwrap();
            let after = fs::read_to_string(&file).unwrap();
            assert_eq!(after, before.unwrap_or_default(), "what was there before is there again");
            assert!(uninstall(AGENT, &file).unwrap().is_nothing());
        }
    }

    #[test]
    fn a_table_that_is_missing_or_looks_at_some_calls_only_is_missed() {
        let folder = tempfile::tempdir().unwrap();
        let settings = settings(folder.path(), "/opt/portcullis");
        install(&settings).unwrap().write().unwrap();
        let text = fs::read_to_string(&settings.file).unwrap();
        for changed in [
            text.replace("\"PreToolUse\"", "\"Interrupt\""),
            text.replace("event = \"PreToolUse\"", "event = \"PreToolUse\"\nmatcher = \"Bash\""),
        ] {
            assert_ne!(changed, text);
            fs::write(&settings.file, &changed).unwrap();
            let (Standing::Broken(why) | Standing::Changed(why)) = standing(AGENT, &settings.file).unwrap()
            else {
                panic!("{changed}")
            };
            assert!(why.contains("PreToolUse"), "{why}");
        }
    }

    #[test]
    fn what_cannot_be_changed_safely_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let settings = settings(folder.path(), "/opt/portcullis");
        for text in ["hooks = 1", "hooks = []", "a = 1\na = 2", "[[hooks]", "[hooks]\na = 1"] {
            fs::write(&settings.file, text).unwrap();
            assert!(matches!(install(&settings), Err(InstallError::Unfit { .. })), "{text}");
            assert!(matches!(standing(AGENT, &settings.file), Err(InstallError::Unfit { .. })), "{text}");
            assert_eq!(fs::read_to_string(&settings.file).unwrap(), text);
        }
    }

    #[test]
    fn there_is_one_file_for_all_projects() {
        let home = Path::new("/home/u");
        assert_eq!(settings_file(AGENT, Scope::Project, home), None);
        assert_eq!(settings_file(AGENT, Scope::Local, home), None);
    }
}
