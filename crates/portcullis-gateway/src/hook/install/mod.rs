//! Setting an agent up: entries in its settings file that start a program for each event: `portcullis-hook` where it
//! stands beside `portcullis`, else `portcullis hook`.
//!
//! Whatever else is in the file stays, in its order. Entries that an earlier installation made are replaced, so
//! that installing again is how one changes the options. What is to be written is worked out first ([`Change`]), so that it
//! can be shown; the file is replaced as a whole, and one that cannot be read as settings is left alone.

mod agents;
mod members;

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use portcullis_wire::hook::Agent;
use serde_json::Value;

pub use agents::{Scope, besides, is_there, settings_file};
use members::Members;

/// The program that answers quickly where the daemon runs.
const SMALL: &str = "portcullis-hook";
/// Largest settings file, in bytes.
const SETTINGS_BYTES_MAX: u64 = 4 << 20;
/// Lines around a difference that are shown with it.
const CONTEXT_LINES: usize = 2;

/// Where to install.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Whose settings they are.
    pub agent: Agent,
    /// The settings file; it is made if it is not there.
    pub file: PathBuf,
    /// Where `portcullis` is, absolute.
    pub program: PathBuf,
    /// Options of the hook.
    pub arguments: Vec<String>,
}

/// What is to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The file.
    pub file: PathBuf,
    /// The command that the agent runs; of an installation only.
    pub command: Option<String>,
    /// The events.
    pub events: Vec<&'static str>,
    /// Entries of an earlier installation that are replaced or removed.
    pub replaced: usize,
    before: Option<String>,
    after: String,
}

/// What stands in an agent's settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// Every event is told to the gate, by this command.
    Governed(String),
    /// There are entries, and something is wrong with them.
    Broken(String),
    /// There is no entry.
    Absent,
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

/// What an installation would write.
///
/// # Errors
/// [`InstallError`] if the file cannot be read as settings.
pub fn install(settings: &Settings) -> Result<Change, InstallError> {
    let file = File::read(&settings.file)?;
    let command = command(settings);
    let events = agents::place(settings.agent).events;
    let (mut hooks, replaced) = file.without_own(events)?;
    for (event, blocks) in events {
        let mut entries = file.entries(event, hooks.get(event))?;
        entries.push(agents::entry(settings.agent, event, *blocks, &command));
        hooks.set(event, &entries).map_err(|error| file.unfit(error))?;
    }
    file.changed(Some(hooks), replaced, Some(command), events)
}

/// What taking an installation out would write.
///
/// # Errors
/// [`InstallError`] if the file cannot be read as settings.
pub fn uninstall(agent: Agent, path: &Path) -> Result<Change, InstallError> {
    let file = File::read(path)?;
    let (hooks, replaced) = file.without_own(&[])?;
    let hooks = Some(hooks).filter(|hooks| !hooks.0.is_empty());
    file.changed(hooks, replaced, None, agents::place(agent).events)
}

/// What stands in a settings file.
///
/// # Errors
/// [`InstallError`] if the file cannot be read as settings.
pub fn standing(agent: Agent, path: &Path) -> Result<Standing, InstallError> {
    let file = File::read(path)?;
    let hooks = file.hooks()?;
    let mut missing = Vec::new();
    let mut found: Option<String> = None;
    for (event, _) in agents::place(agent).events {
        let entries = file.entries(event, hooks.get(event))?;
        match entries.iter().flat_map(hooks_of).find_map(own_command) {
            Some(command) => found = found.or(Some(command.to_owned())),
            None => missing.push(*event),
        }
    }
    let Some(command) = found else { return Ok(Standing::Absent) };
    let (program, _) = program_of(&command);
    Ok(if !missing.is_empty() {
        Standing::Broken(format!("there is no entry for {}", missing.join(", ")))
    } else if !is_program(Path::new(program)) {
        Standing::Broken(format!("`{program}` is no program"))
    } else {
        Standing::Governed(command)
    })
}

impl Change {
    /// Whether nothing is to be written.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        self.before.as_ref() == Some(&self.after) || self.before.is_none() && self.command.is_none()
    }

    /// What is different, as a unified diff; empty if nothing is.
    #[must_use]
    pub fn difference(&self) -> String {
        if self.is_nothing() {
            return String::new();
        }
        let before = self.before.as_deref().unwrap_or_default();
        let diff = similar::TextDiff::from_lines(before, &self.after);
        let name = self.file.display().to_string();
        let from = if self.before.is_some() { name.as_str() } else { "/dev/null" };
        diff.unified_diff().context_radius(CONTEXT_LINES).header(from, &name).to_string()
    }

    /// Replaces the file as a whole: an agent that reads it meanwhile sees the old one or the new one.
    ///
    /// # Errors
    /// [`InstallError::Io`]; the file is as it was.
    pub fn write(&self) -> Result<(), InstallError> {
        if self.is_nothing() {
            return Ok(());
        }
        replace(&self.file, &self.after)
            .map_err(|source| InstallError::Io { path: self.file.clone(), source })
    }
}

/// A settings file as it was read.
struct File {
    path: PathBuf,
    text: Option<String>,
    root: Members,
}

impl File {
    fn read(path: &Path) -> Result<Self, InstallError> {
        let failed = |source| InstallError::Io { path: path.to_owned(), source };
        let unfit = |why: String| InstallError::Unfit { path: path.to_owned(), why };
        let text = match fs::metadata(path) {
            Ok(meta) if meta.len() > SETTINGS_BYTES_MAX => {
                return Err(unfit(format!("it has {} bytes; the limit is {SETTINGS_BYTES_MAX}", meta.len())));
            }
            Ok(_) => Some(fs::read_to_string(path).map_err(failed)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(failed(error)),
        };
        let root = serde_json::from_str(text.as_deref().unwrap_or("{}")).map_err(|error| {
            unfit(format!("{error}; it has to be JSON without comments to be changed safely"))
        })?;
        Ok(Self { path: path.to_owned(), text, root })
    }

    fn unfit(&self, why: impl ToString) -> InstallError {
        InstallError::Unfit { path: self.path.clone(), why: why.to_string() }
    }

    fn hooks(&self) -> Result<Members, InstallError> {
        let hooks = self.root.get("hooks").map_or(Ok(Members::default()), serde_json::from_str);
        hooks.map_err(|error| self.unfit(format!("`hooks`: {error}")))
    }

    fn entries(&self, event: &str, entries: Option<&str>) -> Result<Vec<Value>, InstallError> {
        let entries = entries.map_or(Ok(Vec::new()), serde_json::from_str);
        entries.map_err(|error| self.unfit(format!("`hooks.{event}`: {error}")))
    }

    /// The hooks without those of an earlier installation, and how many those were. Events that are written again keep
    /// their place.
    fn without_own(&self, again: &[(&str, bool)]) -> Result<(Members, usize), InstallError> {
        let mut all = 0;
        let mut kept = Members::default();
        for (event, raw) in self.hooks()?.0 {
            // What is under the name of no event is not looked into.
            let Ok(mut entries) = serde_json::from_str::<Vec<Value>>(raw.get()) else {
                kept.0.push((event, raw));
                continue;
            };
            match remove_own(&mut entries) {
                0 => kept.0.push((event, raw)),
                removed => {
                    all += removed;
                    if !entries.is_empty() || again.iter().any(|(known, _)| *known == event) {
                        kept.set(&event, &entries).map_err(|error| self.unfit(error))?;
                    }
                }
            }
        }
        Ok((kept, all))
    }

    fn changed(
        mut self,
        hooks: Option<Members>,
        replaced: usize,
        command: Option<String>,
        events: &'static [(&'static str, bool)],
    ) -> Result<Change, InstallError> {
        let is_change = command.is_some() || replaced > 0;
        match hooks {
            Some(hooks) => self.root.set("hooks", &hooks).map_err(|error| self.unfit(error))?,
            None => self.root.remove("hooks"),
        }
        // What was not touched is not laid out anew either.
        let after = match &self.text {
            Some(text) if !is_change => text.clone(),
            _ => self.root.pretty(),
        };
        let events = events.iter().map(|(event, _)| *event).collect();
        Ok(Change { file: self.path, command, events, replaced, before: self.text, after })
    }
}

fn command(settings: &Settings) -> String {
    let small = settings.program.with_file_name(SMALL);
    let words =
        if is_program(&small) { vec![small] } else { vec![settings.program.clone(), PathBuf::from("hook")] };
    let words = words.iter().map(|word| word.to_string_lossy());
    let agent = match settings.agent {
        Agent::ClaudeCode => Vec::new(),
        agent => vec!["--agent", agent.id()],
    };
    let words = words.chain(agent.into_iter().map(Into::into));
    let words = words.chain(settings.arguments.iter().map(|word| word.as_str().into()));
    words.map(|word| quoted(&word)).collect::<Vec<_>>().join(" ")
}

fn is_program(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// A word for the shell.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:@%+,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// The hooks in an entry: those in its list, or itself.
fn hooks_of(entry: &Value) -> Vec<&Value> {
    match entry.get("hooks").and_then(Value::as_array) {
        Some(hooks) => hooks.iter().collect(),
        None => vec![entry],
    }
}

/// Takes out what an earlier installation put in; how many hooks that were.
fn remove_own(entries: &mut Vec<Value>) -> usize {
    let mut removed = 0;
    entries.retain_mut(|entry| match entry.get_mut("hooks").and_then(Value::as_array_mut) {
        None => {
            let own = own_command(entry).is_some();
            removed += usize::from(own);
            !own
        }
        Some(hooks) => {
            let before = hooks.len();
            hooks.retain(|hook| own_command(hook).is_none());
            removed += before - hooks.len();
            before == hooks.len() || !hooks.is_empty()
        }
    });
    removed
}

/// The command of a hook that starts `portcullis-hook`, or `portcullis` with `hook`.
fn own_command(hook: &Value) -> Option<&str> {
    let command = hook.get("command").and_then(Value::as_str)?;
    let (program, rest) = program_of(command);
    let own = match Path::new(program).file_name().and_then(OsStr::to_str) {
        Some(SMALL) => true,
        Some("portcullis") => rest.split_whitespace().next() == Some("hook"),
        _ => false,
    };
    own.then_some(command)
}

/// The program of a command line, whose path may be quoted and hold spaces, and the rest.
fn program_of(command: &str) -> (&str, &str) {
    match command.strip_prefix('\'') {
        Some(quoted) => quoted.split_once('\'').unwrap_or((quoted, "")),
        None => command.split_once(' ').unwrap_or((command, "")),
    }
}

fn replace(path: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    // Through links, so that a file that is kept elsewhere stays there.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut beside = tempfile::NamedTempFile::new_in(folder)?;
    beside.write_all(text.as_bytes())?;
    // A new file is readable like others; one that is there keeps its rights.
    let mode = fs::metadata(&path).map_or(0o644, |meta| meta.permissions().mode());
    beside.as_file().set_permissions(fs::Permissions::from_mode(mode))?;
    beside.as_file().sync_all()?;
    beside.persist(&path).map(drop).map_err(|error| error.error)
}

#[cfg(test)]
mod tests;
