//! Settings in TOML, with a table `[[hooks]]` for each event. Ours stand at the end, each behind an empty line, so that the
//! rest of the file stays as it is written.

use std::ops::Range;
use std::path::Path;

use portcullis_wire::hook::Agent;
use serde_json::{Map, Value};
use toml_edit::{ArrayOfTables, Document, DocumentMut, Item, Table, value};

use super::changed::Told;
use super::command::is_own;
use super::edit::{Edit, edited, line_ending};
use super::{Change, InstallError, Standing, agents, standing_of, text_of};

/// Where the tables are.
const HOOKS: &str = "hooks";

/// A settings file as it was read.
struct File {
    text: Option<String>,
    document: Document<String>,
}

impl File {
    fn read(path: &Path) -> Result<Self, InstallError> {
        let text = text_of(path)?;
        let document = Document::parse(text.clone().unwrap_or_default());
        let unfit = |why: String| InstallError::unfit(path, &why);
        let document = document.map_err(|error| unfit(format!("it has to be TOML: {error}")))?;
        match document.get(HOOKS) {
            None | Some(Item::ArrayOfTables(_)) => Ok(Self { text, document }),
            Some(_) => {
                Err(unfit("`hooks` is not written as tables; write each as `[[hooks]]` first".to_owned()))
            }
        }
    }

    fn text(&self) -> &str {
        self.text.as_deref().unwrap_or_default()
    }

    fn tables(&self) -> impl Iterator<Item = &Table> {
        self.document.get(HOOKS).and_then(Item::as_array_of_tables).into_iter().flatten()
    }

    /// The text without the tables of an earlier installation, and how many those were; no text if they were all of it.
    fn without_ours(&self) -> (Option<String>, usize) {
        let text = self.text();
        let mut last = 0;
        let mut whole = true;
        let cut: Vec<Edit> = self
            .tables()
            .filter(|table| own_command(table).is_some())
            .map(|table| {
                let lines = lines_of(text, table);
                last = last.max(lines.end);
                let at = with_empty_line(text, lines);
                whole &= at.start > 0 || text.starts_with('[');
                Edit { at, text: String::new() }
            })
            .collect();
        let number = cut.len();
        let mut rest = edited(text, cut);
        if number > 0 && last == text.len() && !text.ends_with('\n') {
            // The line before ours had no end.
            let line = rest.strip_suffix('\n').map(|line| line.strip_suffix('\r').unwrap_or(line).len());
            rest.truncate(line.unwrap_or(rest.len()));
        }
        let is_all = number > 0 && rest.is_empty() && whole;
        (self.text.as_ref().filter(|_| !is_all).map(|_| rest), number)
    }

    /// Whether a table is there for each event as an installation writes it; `number` is that of all of ours.
    fn is_installed(&self, agent: Agent, command: &str, number: usize) -> bool {
        let events = agents::place(agent).events;
        let entries: Vec<Value> = self.tables().map(entry).collect();
        let is_there =
            |(event, blocks): &(&str, bool)| entries.contains(&agents::entry(agent, event, *blocks, command));
        number == events.len() && events.iter().all(is_there)
    }

    fn change(self, path: &Path, agent: Agent, replaced: usize, after: Option<String>) -> Change {
        let events = agents::place(agent).events.iter().map(|(event, _)| *event).collect();
        Change { file: path.to_owned(), events, replaced, before: self.text, after, ..Change::default() }
    }
}

/// The command of a table that starts the gate.
fn own_command(table: &Table) -> Option<&str> {
    table.get("command").and_then(Item::as_str).filter(|command| is_own(command))
}

/// The end of a table and of what is in it.
fn end_of(item: &Item) -> usize {
    let end = |span: Option<Range<usize>>| span.map_or(0, |span| span.end);
    let inner = |table: &Table| table.iter().map(|(_, item)| end_of(item)).max().unwrap_or_default();
    match item {
        Item::Table(table) => end(table.span()).max(inner(table)),
        Item::ArrayOfTables(tables) => {
            tables.iter().map(|table| end(table.span()).max(inner(table))).max().unwrap_or_default()
        }
        item => end(item.span()),
    }
}

/// The lines of a table, whole.
fn lines_of(text: &str, table: &Table) -> Range<usize> {
    let header = table.span().unwrap_or_default();
    let end = table.iter().map(|(_, item)| end_of(item)).max().unwrap_or_default().max(header.end);
    let start = text.get(..header.start).and_then(|before| before.rfind('\n')).map_or(0, |line| line + 1);
    let rest = text.get(end..).unwrap_or_default();
    start..end + rest.find('\n').map_or(rest.len(), |line| line + 1)
}

/// The same with the empty line before, if there is one.
fn with_empty_line(text: &str, lines: Range<usize>) -> Range<usize> {
    let before = text.get(..lines.start).unwrap_or_default();
    let line = before.strip_suffix('\n').map(|line| line.strip_suffix('\r').unwrap_or(line));
    match line {
        Some(line) if line.is_empty() || line.ends_with('\n') => line.len()..lines.end,
        _ => lines,
    }
}

/// The tables of an installation.
fn ours(agent: Agent, command: &str) -> String {
    let mut tables = ArrayOfTables::new();
    for (event, blocks) in agents::place(agent).events {
        let entry = agents::entry(agent, event, *blocks, command);
        let mut table = Table::new();
        for (name, member) in entry.as_object().into_iter().flatten() {
            let member = match (member.as_str(), member.as_i64()) {
                (Some(text), _) => value(text),
                (None, Some(number)) => value(number),
                (None, None) => continue,
            };
            table.insert(name, member);
        }
        tables.push(table);
    }
    let mut document = DocumentMut::new();
    document.insert(HOOKS, Item::ArrayOfTables(tables));
    document.to_string()
}

pub(super) fn install(agent: Agent, path: &Path, command: String) -> Result<Change, InstallError> {
    let file = File::read(path)?;
    let (rest, replaced) = file.without_ours();
    let after = if file.is_installed(agent, &command, replaced) {
        file.text.clone()
    } else {
        let line = line_ending(file.text());
        let ours = ours(agent, &command).replace('\n', line);
        Some(match rest {
            None => ours,
            Some(rest) if rest.is_empty() || rest.ends_with('\n') => [rest.as_str(), line, &ours].concat(),
            // As the file had no end of its last line, it has none now.
            Some(rest) => [rest.as_str(), line, line, ours.trim_end()].concat(),
        })
    };
    Ok(Change { command: Some(command), ..file.change(path, agent, replaced, after) })
}

pub(super) fn uninstall(agent: Agent, path: &Path) -> Result<Change, InstallError> {
    let file = File::read(path)?;
    let (rest, removed) = file.without_ours();
    Ok(file.change(path, agent, removed, rest))
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

    use super::super::{Scope, Settings, install, settings_file, standing, uninstall};
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
            let after = fs::read_to_string(&file).ok();
            assert_eq!(after.as_deref(), before, "what was there before is there again");
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
