//! Setting a client up: entries in its settings file that start a program for each event: `portcullis-hook` where it
//! stands beside `portcullis`, else `portcullis hook`.
//!
//! Whatever else is in the file stays, in its order. Entries that an earlier installation made are replaced, so
//! that installing again is how one changes the options.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

/// The events that are told to the gate, and whether a failure to tell must block. See the module documentation of
/// [`super`] for the others.
const EVENTS: [(&str, bool); 9] = [
    ("PreToolUse", true),
    ("PostToolUse", true),
    ("PostToolUseFailure", true),
    ("UserPromptSubmit", true),
    ("PermissionDenied", false),
    ("SessionStart", false),
    ("SessionEnd", false),
    ("Stop", false),
    ("ConfigChange", false),
];
/// What the client gives a hook, in seconds: more than [`ANSWER_MAX`](portcullis_hook::limit::ANSWER_MAX).
const TIMEOUT_S: u64 = 60;
/// The program that answers quickly where the daemon runs.
const SMALL: &str = "portcullis-hook";
/// Largest settings file, in bytes.
const SETTINGS_BYTES_MAX: u64 = 4 << 20;

/// Where to install.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The settings file; it is made if it is not there.
    pub file: PathBuf,
    /// Where `portcullis` is, absolute.
    pub program: PathBuf,
    /// Options of the hook.
    pub arguments: Vec<String>,
}

/// What was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    /// The command that the client runs.
    pub command: String,
    /// The events.
    pub events: Vec<&'static str>,
    /// Entries of an earlier installation that were replaced.
    pub replaced: usize,
}

/// Why it was not.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// A file or folder.
    #[error("cannot use `{}`: {source}", path.display())]
    Io {
        /// Where.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file holds something else than settings; it was left alone.
    #[error("`{}` was not changed: {why}", path.display())]
    Unfit {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
}

/// Writes the entries.
///
/// # Errors
/// [`InstallError`]; the file is as it was.
pub fn install(settings: &Settings) -> Result<Installed, InstallError> {
    let path = &settings.file;
    let failed = |source| InstallError::Io { path: path.clone(), source };
    let unfit = |why: String| InstallError::Unfit { path: path.clone(), why };
    let text = match fs::metadata(path) {
        Ok(meta) if meta.len() > SETTINGS_BYTES_MAX => {
            return Err(unfit(format!("it has {} bytes; the limit is {SETTINGS_BYTES_MAX}", meta.len())));
        }
        Ok(_) => fs::read_to_string(path).map_err(failed)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => "{}".to_owned(),
        Err(error) => return Err(failed(error)),
    };
    let mut root: Members = serde_json::from_str(&text).map_err(|error| unfit(error.to_string()))?;
    let mut hooks = match root.get("hooks") {
        Some(hooks) => serde_json::from_str(hooks).map_err(|error| unfit(format!("`hooks`: {error}")))?,
        None => Members::default(),
    };
    let command = command(settings);
    let mut replaced = 0;
    let mut written = Members::default();
    for (event, entries) in &hooks.0 {
        let entries = serde_json::from_str::<Vec<Value>>(entries.get());
        let mut entries = entries.map_err(|error| unfit(format!("`hooks.{event}`: {error}")))?;
        let removed = remove_own(&mut entries);
        replaced += removed;
        if removed == 0 || !entries.is_empty() {
            written.set(event, &entries).map_err(|error| unfit(error.to_string()))?;
        }
    }
    hooks = written;
    for (event, blocks) in EVENTS {
        let entries = hooks.get(event).map_or(Ok(Vec::new()), serde_json::from_str::<Vec<Value>>);
        let mut entries = entries.map_err(|error| unfit(format!("`hooks.{event}`: {error}")))?;
        entries.push(entry(event, blocks, &command));
        hooks.set(event, &entries).map_err(|error| unfit(error.to_string()))?;
    }
    root.set("hooks", &hooks).map_err(|error| unfit(error.to_string()))?;
    write(path, &root.pretty()).map_err(failed)?;
    Ok(Installed { command, events: EVENTS.map(|(event, _)| event).to_vec(), replaced })
}

/// The members of an object in their order, as they were written.
#[derive(Debug, Default)]
struct Members(Vec<(String, Box<RawValue>)>);

impl Members {
    fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.get())
    }

    fn set(&mut self, name: &str, value: &impl Serialize) -> serde_json::Result<()> {
        let value = to_raw_value(value)?;
        match self.0.iter_mut().find(|(key, _)| key == name) {
            Some((_, old)) => *old = value,
            None => self.0.push((name.to_owned(), value)),
        }
        Ok(())
    }

    /// The object with one member a line; what was not touched, as it was written.
    fn pretty(&self) -> String {
        let member = |(key, value): &(String, Box<RawValue>)| {
            let indented =
                serde_json::from_str::<Self>(value.get()).ok().filter(|_| key == "hooks").map_or_else(
                    || value.get().to_owned(),
                    |hooks| hooks.pretty().trim_end().replace('\n', "\n  "),
                );
            format!("  {}: {indented}", Value::from(key.as_str()))
        };
        let members: Vec<String> = self.0.iter().map(member).collect();
        format!("{{\n{}\n}}\n", members.join(",\n"))
    }
}

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Members;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Members::default();
                while let Some(member) = map.next_entry()? {
                    members.0.push(member);
                }
                Ok(members)
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

impl Serialize for Members {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}

/// One entry. A shell runs the command; whatever keeps the program from answering (it is gone, it was killed) must
/// block where blocking is possible, and clients take any other code than 2 for a failure to be ignored.
fn entry(event: &str, blocks: bool, command: &str) -> Value {
    let command = if blocks { format!("{command} || exit 2") } else { command.to_owned() };
    let hook = json!({"type": "command", "command": command, "timeout": TIMEOUT_S});
    match event {
        "PreToolUse" | "PostToolUse" | "PostToolUseFailure" | "PermissionDenied" => {
            json!({"matcher": "*", "hooks": [hook]})
        }
        _ => json!({ "hooks": [hook] }),
    }
}

fn command(settings: &Settings) -> String {
    let small = settings.program.with_file_name(SMALL);
    let is_there =
        fs::metadata(&small).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0);
    let words = if is_there { vec![small] } else { vec![settings.program.clone(), PathBuf::from("hook")] };
    let words = words.iter().map(|word| word.to_string_lossy());
    let words = words.chain(settings.arguments.iter().map(|word| word.as_str().into()));
    words.map(|word| quoted(&word)).collect::<Vec<_>>().join(" ")
}

/// A word for the shell.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:@%+,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Takes out what an earlier installation put in; how many hooks that were.
fn remove_own(entries: &mut Vec<Value>) -> usize {
    let mut removed = 0;
    for entry in entries.iter_mut() {
        if let Some(hooks) = entry.get_mut("hooks").and_then(Value::as_array_mut) {
            let before = hooks.len();
            hooks.retain(|hook| !is_own(hook));
            removed += before - hooks.len();
        }
    }
    if removed > 0 {
        entries.retain(|entry| {
            entry.get("hooks").and_then(Value::as_array).is_none_or(|hooks| !hooks.is_empty())
        });
    }
    removed
}

/// Whether a hook starts `portcullis-hook`, or `portcullis` with `hook`.
fn is_own(hook: &Value) -> bool {
    let command = hook.get("command").and_then(Value::as_str).unwrap_or_default();
    // The program's path may be quoted, and hold spaces.
    let (program, rest) = match command.strip_prefix('\'') {
        Some(quoted) => quoted.split_once('\'').unwrap_or((quoted, "")),
        None => command.split_once(' ').unwrap_or((command, "")),
    };
    match Path::new(program).file_name().and_then(OsStr::to_str) {
        Some(SMALL) => true,
        Some("portcullis") => rest.split_whitespace().next() == Some("hook"),
        _ => false,
    }
}

/// Replaces the file as a whole: a client that reads it meanwhile sees the old one or the new one.
fn write(path: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    // Through links, so that a file that is kept elsewhere stays there.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let beside = path.with_extension("json.portcullis");
    fs::write(&beside, text)?;
    fs::rename(&beside, &path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(folder: &Path, arguments: &[&str]) -> Settings {
        Settings {
            file: folder.join(".claude/settings.json"),
            program: PathBuf::from("/opt/my tools/portcullis"),
            arguments: arguments.iter().map(|word| (*word).to_owned()).collect(),
        }
    }

    fn read(settings: &Settings) -> Value {
        serde_json::from_slice(&fs::read(&settings.file).unwrap()).unwrap()
    }

    #[test]
    fn entries_are_added_once_and_the_rest_stays() {
        let folder = tempfile::tempdir().unwrap();
        let first = settings(folder.path(), &[]);
        fs::create_dir(folder.path().join(".claude")).unwrap();
        let before = r#"{"model":"m","hooks":{"PreToolUse":[{"matcher":"Bash","hooks":[{"type":"command","command":"lint"}]}]},"env":{"A":"1"}}"#;
        fs::write(&first.file, before).unwrap();
        let installed = install(&first).unwrap();
        assert_eq!((installed.replaced, installed.events.len()), (0, EVENTS.len()));
        let text = read(&first);
        let kept = fs::read_to_string(&first.file).unwrap();
        assert!(kept.starts_with("{\n  \"model\": \"m\",\n  \"hooks\": {\n    \"PreToolUse\": ["), "{kept}");
        assert!(kept.ends_with("\n  \"env\": {\"A\":\"1\"}\n}\n"), "{kept}");
        let entries = text["hooks"]["PreToolUse"].as_array().unwrap();
        assert_eq!(entries[0]["hooks"][0]["command"], "lint");
        assert_eq!(entries[1]["matcher"], "*");
        assert_eq!(entries[1]["hooks"][0]["command"], "'/opt/my tools/portcullis' hook || exit 2");
        assert_eq!(text["hooks"]["Stop"][0]["hooks"][0]["command"], "'/opt/my tools/portcullis' hook");

        let again = Settings { program: "/usr/bin/portcullis".into(), ..settings(folder.path(), &["--ask"]) };
        assert_eq!(install(&again).unwrap().replaced, EVENTS.len());
        assert_eq!(install(&again).unwrap().replaced, EVENTS.len());
        let entries = read(&again)["hooks"]["PreToolUse"].as_array().unwrap().clone();
        assert_eq!(
            entries.last().unwrap()["hooks"][0]["command"],
            "/usr/bin/portcullis hook --ask || exit 2"
        );
    }

    #[test]
    fn the_program_that_answers_quickly_is_started_where_it_is_installed() {
        let folder = tempfile::tempdir().unwrap();
        let settings =
            Settings { program: folder.path().join("portcullis"), ..settings(folder.path(), &["--ask"]) };
        let small = folder.path().join("portcullis-hook");
        let whole = format!("{} hook --ask", settings.program.display());
        let quick = format!("{} --ask", small.display());
        assert_eq!(install(&settings).unwrap().command, whole);
        fs::write(&small, "").unwrap();
        fs::set_permissions(&small, fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(install(&settings).unwrap().command, whole, "not a program");
        fs::set_permissions(&small, fs::Permissions::from_mode(0o755)).unwrap();
        let installed = install(&settings).unwrap();
        assert_eq!((installed.command, installed.replaced), (quick.clone(), EVENTS.len()));
        let hooks = &read(&settings)["hooks"];
        assert_eq!(hooks["PreToolUse"][0]["hooks"][0]["command"], format!("{quick} || exit 2"));
        fs::remove_file(&small).unwrap();
        let installed = install(&settings).unwrap();
        assert_eq!((installed.command, installed.replaced), (whole, EVENTS.len()));
    }

    #[test]
    fn what_is_no_settings_file_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let settings = settings(folder.path(), &[]);
        fs::create_dir(folder.path().join(".claude")).unwrap();
        for text in ["[]", "{", r#"{"hooks":[]}"#, r#"{"hooks":{"PreToolUse":{}}}"#] {
            fs::write(&settings.file, text).unwrap();
            assert!(matches!(install(&settings), Err(InstallError::Unfit { .. })), "{text}");
            assert_eq!(fs::read_to_string(&settings.file).unwrap(), text);
        }
    }
}
