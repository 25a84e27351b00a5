//! What stands below a folder: files are known by the shape of their records, whatever they are called.
//!
//! | record | is |
//! |---|---|
//! | `source`, `kind` (`benign`, `attack`), `messages` | a recorded run; all of one source are a world |
//! | `class`, `expect`, `messages` | a case: a run with what is expected of each call |
//! | `source`, `text` | a prompt where the folder is called `prompts`, otherwise an honest text |
//! | runs of AgentDojo, AgentDyn, InjecAgent, ASB, tau | those of [`crate::trajectory`], a row for each folder |

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use super::names::Choice;
use crate::data::{self, Data};
use crate::stream;
use crate::suite::EvalError;
use crate::trajectory::suites::Name;
use crate::trajectory::{asb, dojo, injecagent, tau};

/// Records of a file that are looked at to know it: some sets begin with a line about themselves.
const RECORDS_PEEKED: usize = 3;
/// Folder of prompts: they have the shape of honest texts.
const PROMPTS: &str = "prompts";

/// Whether somebody attacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Nobody does.
    Benign,
    /// Somebody does.
    Attack,
}

/// The runs of one source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct World {
    /// The source.
    pub name: String,
    /// Whether somebody attacks in them.
    pub kind: Kind,
    /// The records as they stand in the file.
    pub lines: Vec<String>,
    /// Of each record: number of the malicious call from 0, where it says so.
    pub malicious: Vec<Option<usize>>,
}

/// Cases of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaseFile {
    /// Name of the folder.
    pub name: String,
    /// Where they stand.
    pub path: PathBuf,
}

/// Texts of one source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Texts {
    /// The source.
    pub name: String,
    /// The texts, each with its id.
    pub texts: Vec<(String, String)>,
}

/// A folder of runs that a suite of [`crate::trajectory`] reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// The folder, as seen from the one that was searched.
    pub name: String,
    /// Which suite.
    pub suite: Name,
    /// The files.
    pub data: Data,
}

/// All that was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// Worlds by kind and source.
    pub worlds: Vec<World>,
    /// Cases.
    pub cases: Vec<CaseFile>,
    /// Honest texts.
    pub texts: Vec<Texts>,
    /// Prompts.
    pub prompts: Vec<Texts>,
    /// Folders of other suites.
    pub recorded: Vec<Recorded>,
    /// All honest texts, whether they are judged or not: some checks put parts of them into results.
    pub material: Vec<String>,
    /// Lines of known files that are not of their shape.
    pub unread: usize,
}

/// What the records of a file are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Run,
    Case,
    Text,
    Recorded(Name),
}

impl Shape {
    fn of(record: &Value) -> Option<Self> {
        let has = |field: &str| record.get(field).is_some_and(|value| !value.is_null());
        if has("messages") && has("expect") && has("class") {
            return Some(Self::Case);
        }
        if has("messages") && has("source") && has("kind") {
            return Some(Self::Run);
        }
        if has("source") && has("text") {
            return Some(Self::Text);
        }
        if dojo::is_exported(record) {
            return Some(Self::Recorded(Name::AgentDojo));
        }
        if dojo::is_run_file(record) {
            return Some(Self::Recorded(Name::AgentDyn));
        }
        if injecagent::is_output(record) {
            return Some(Self::Recorded(Name::InjecAgent));
        }
        if asb::is_run(record) {
            return Some(Self::Recorded(Name::Asb));
        }
        tau::set_of(record).map(|_| Self::Recorded(Name::Benign))
    }

    /// By the first records of a file.
    fn of_file(path: &Path) -> Result<Option<Self>, EvalError> {
        let mut shape = None;
        let mut peeked = 0;
        stream::records::<EvalError>(path, |_, record| {
            shape = record.ok().as_ref().and_then(Self::of);
            peeked += 1;
            Ok(shape.is_none() && peeked < RECORDS_PEEKED)
        })?;
        Ok(shape)
    }
}

/// The fields of a run that are read here; its messages are read by the replay.
#[derive(Debug, Deserialize)]
struct Run {
    source: String,
    kind: Kind,
    malicious_call: Option<usize>,
    messages: Vec<Value>,
}

#[derive(Debug, Deserialize)]
struct Text {
    source: String,
    #[serde(default)]
    id: String,
    text: String,
}

/// Looks through a folder for what the choice wants.
///
/// # Errors
/// A file cannot be read, or the choice names what is not there.
pub fn find(folder: &Path, choice: &Choice) -> Result<Found, EvalError> {
    let data = Data::at(folder)?.ending(&[".jsonl"]);
    let mut finder = Finder { root: data.root.clone(), ..Finder::default() };
    for path in &data.files {
        match Shape::of_file(path)? {
            Some(Shape::Run) => finder.runs(path)?,
            Some(Shape::Case) => finder.cases(path),
            Some(Shape::Text) => finder.texts(path)?,
            Some(Shape::Recorded(suite)) => finder.recorded(path, suite),
            None => {}
        }
    }
    finder.chosen(choice)
}

/// Number of each call that a record marks, with the number of calls of the record.
type Marked = Vec<(Option<usize>, usize)>;

#[derive(Default)]
struct Finder {
    root: PathBuf,
    worlds: BTreeMap<(Kind, String), (Vec<String>, Marked)>,
    cases: Vec<CaseFile>,
    texts: BTreeMap<(bool, String), Texts>,
    recorded: BTreeMap<(PathBuf, &'static str), Recorded>,
    unread: usize,
}

impl Finder {
    fn runs(&mut self, path: &Path) -> Result<(), EvalError> {
        for line in data::text(path)?.lines().filter(|line| !line.trim().is_empty()) {
            let Ok(run) = serde_json::from_str::<Run>(line) else {
                self.unread += 1;
                continue;
            };
            let calls = run.messages.iter().filter_map(|message| message.get("tool_calls")?.as_array());
            let calls = calls.map(Vec::len).sum();
            let (lines, marked) = self.worlds.entry((run.kind, run.source)).or_default();
            lines.push(line.trim().to_owned());
            marked.push((run.malicious_call, calls));
        }
        Ok(())
    }

    fn cases(&mut self, path: &Path) {
        let folder = folder_name(path);
        let taken = self.cases.iter().any(|cases| cases.name == folder);
        let name = if taken { format!("{folder}/{}", stem(path)) } else { folder };
        self.cases.push(CaseFile { name, path: path.to_owned() });
    }

    fn texts(&mut self, path: &Path) -> Result<(), EvalError> {
        let prompts = folder_name(path) == PROMPTS;
        for record in data::records(path)? {
            let Some(text) = record.ok().and_then(|record| serde_json::from_value::<Text>(record).ok())
            else {
                self.unread += 1;
                continue;
            };
            let known = self.texts.entry((prompts, text.source.clone()));
            let texts = known.or_insert_with(|| Texts { name: text.source, texts: Vec::new() });
            texts.texts.push((text.id, text.text));
        }
        Ok(())
    }

    fn recorded(&mut self, path: &Path, suite: Name) {
        let folder = path.parent().unwrap_or(path);
        let name = folder.strip_prefix(&self.root).unwrap_or(folder).to_string_lossy().into_owned();
        let name = if name.is_empty() { folder_name(path) } else { name };
        let empty = Data { root: folder.to_owned(), files: Vec::new(), bytes: 0 };
        let known = self.recorded.entry((folder.to_owned(), suite.as_str()));
        let found = known.or_insert_with(|| Recorded { name, suite, data: empty });
        found.data.files.push(path.to_owned());
        found.data.bytes += std::fs::metadata(path).map_or(0, |meta| meta.len());
    }

    /// What the choice wants of it.
    fn chosen(self, choice: &Choice) -> Result<Found, EvalError> {
        let worlds = self.worlds.into_iter().map(|((kind, name), (lines, marked))| {
            let malicious = from_zero(&marked);
            World { name, kind, lines, malicious }
        });
        let mut found = Found {
            worlds: worlds.collect(),
            cases: self.cases,
            recorded: self.recorded.into_values().collect(),
            unread: self.unread,
            ..Found::default()
        };
        for ((prompts, _), texts) in self.texts {
            if !prompts {
                found.material.extend(texts.texts.iter().map(|(_, text)| text.clone()));
            }
            if prompts { &mut found.prompts } else { &mut found.texts }.push(texts);
        }
        choice.check(&found.names())?;
        found.worlds.retain(|world| choice.wants(&world.name));
        found.cases.retain(|cases| choice.wants(&cases.name));
        found.texts.retain(|texts| choice.wants(&texts.name));
        found.prompts.retain(|texts| choice.wants(&texts.name));
        found.recorded.retain(|folder| choice.wants(&folder.name));
        Ok(found)
    }
}

impl Found {
    /// The names of all that was found.
    pub fn names(&self) -> Vec<&str> {
        let worlds = self.worlds.iter().map(|world| world.name.as_str());
        let cases = self.cases.iter().map(|cases| cases.name.as_str());
        let texts = self.texts.iter().chain(&self.prompts).map(|texts| texts.name.as_str());
        let recorded = self.recorded.iter().map(|folder| folder.name.as_str());
        worlds.chain(cases).chain(texts).chain(recorded).collect()
    }
}

/// Numbers of calls from 0. Some sets count from 1: that shows where a number is that of a call behind the last one.
fn from_zero(marked: &Marked) -> Vec<Option<usize>> {
    let some = || marked.iter().filter_map(|(number, calls)| Some(((*number)?, *calls)));
    let from_one = some().any(|(number, calls)| number >= calls) && some().all(|(number, _)| number > 0);
    marked.iter().map(|(number, _)| number.map(|number| number - usize::from(from_one))).collect()
}

fn folder_name(path: &Path) -> String {
    let folder = path.parent().and_then(Path::file_name);
    folder.map_or_else(|| stem(path), |name| name.to_string_lossy().into_owned())
}

/// The name of a file without its endings.
fn stem(path: &Path) -> String {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    name.split('.').next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn write(folder: &Path, name: &str, records: &[Value]) {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let lines: Vec<String> = records.iter().map(Value::to_string).collect();
        std::fs::write(path, lines.join("\n")).unwrap();
    }

    fn run(source: &str, kind: &str, malicious: Option<usize>) -> Value {
        json!({"source": source, "kind": kind, "id": "a", "tools": [], "malicious_call": malicious, "messages": [
            {"role": "user", "content": "Count the chairs"}, {"role": "assistant", "tool_calls": [{"id": "1"}, {"id": "2"}]}]})
    }

    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let write = |name, records: &[Value]| write(folder.path(), name, records);
        write(
            "a/runs.jsonl",
            &[run("garden", "benign", None), run("kitchen", "benign", None), json!({"x": 1})],
        );
        write("b/more.jsonl", &[run("garden", "attack", Some(1)), run("garden", "benign", None)]);
        let case = json!({"id": "a", "class": "benign", "expect": [], "messages": []});
        write("everyday/cases.jsonl", std::slice::from_ref(&case));
        write("everyday/more.jsonl", &[case]);
        let text = json!({"source": "notes", "id": "1", "text": "Bring a chair."});
        write("letters/notes.jsonl", std::slice::from_ref(&text));
        write("prompts/notes.jsonl", &[text]);
        let dojo = json!({"messages": [], "metadata": {"suite_name": "library"}});
        write("old/runs/x.jsonl", &[json!({"metadata": {"about": "the file"}}), dojo]);
        write("unknown.jsonl", &[json!({"a": 1})]);
        write("notes.txt", &[json!("no data")]);
        folder
    }

    #[test]
    fn files_are_known_by_the_shape_of_their_records() {
        let folder = folder();
        let found = find(folder.path(), &Choice::default()).unwrap();
        let worlds: Vec<_> =
            found.worlds.iter().map(|world| (world.kind, world.name.as_str(), world.lines.len())).collect();
        assert_eq!(
            worlds,
            [(Kind::Benign, "garden", 2), (Kind::Benign, "kitchen", 1), (Kind::Attack, "garden", 1)]
        );
        let names = |texts: &[Texts]| texts.iter().map(|texts| texts.name.clone()).collect::<Vec<_>>();
        assert_eq!(
            (names(&found.texts), names(&found.prompts)),
            (vec!["notes".into()], vec!["notes".into()])
        );
        assert_eq!(
            found.cases.iter().map(|file| &file.name).collect::<Vec<_>>(),
            ["everyday", "everyday/more"]
        );
        let [recorded] = &found.recorded[..] else { panic!("{:?}", found.recorded) };
        assert_eq!(
            (recorded.name.as_str(), recorded.suite, recorded.data.files.len()),
            ("old/runs", Name::AgentDojo, 1)
        );
        assert_eq!((found.unread, found.material), (1, vec!["Bring a chair.".to_owned()]));
    }

    #[test]
    fn only_what_is_wanted_is_kept() {
        let folder = folder();
        let only = Choice { only: vec!["garden".into(), "old".into()], ..Choice::default() };
        let found = find(folder.path(), &only).unwrap();
        assert_eq!(found.names(), ["garden", "garden", "old/runs"]);
        // Texts that are not judged are material still.
        assert_eq!(found.material.len(), 1);
        let wrong = Choice { leave_out: vec!["gardn".into()], ..Choice::default() };
        assert!(matches!(find(folder.path(), &wrong), Err(EvalError::UnknownName { .. })));
    }

    #[test]
    fn calls_are_counted_from_zero_or_one_as_the_set_does() {
        assert_eq!(from_zero(&vec![(Some(1), 2), (None, 3), (Some(2), 5)]), [Some(1), None, Some(2)]);
        assert_eq!(from_zero(&vec![(Some(2), 2), (None, 3), (Some(1), 5)]), [Some(1), None, Some(0)]);
        // A set that has both cannot be told; its numbers stay.
        assert_eq!(from_zero(&vec![(Some(2), 2), (Some(0), 5)]), [Some(2), Some(0)]);
    }
}
