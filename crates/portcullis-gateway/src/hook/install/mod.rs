//! Setting an agent up: entries in its settings file that start a program for each event: `portcullis-hook` where it
//! stands beside `portcullis`, else `portcullis hook`.
//!
//! Whatever else is in the file stays, in its order. Entries that an earlier installation made are replaced, so
//! that installing again is how one changes the options. What is to be written is worked out first ([`Change`]), so that it
//! can be shown; the file is replaced as a whole, and one that cannot be read as settings is left alone.

mod agents;
mod changed;
mod listed;
mod members;
mod plugin;
mod scripts;
mod tables;

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use portcullis_wire::hook::Agent;
use serde_json::Value;

use agents::Form;
pub use agents::{Scope, besides, is_there, settings_file};
use changed::{Found, Told};
use members::Members;

/// The program that answers quickly where the daemon runs.
const SMALL: &str = "portcullis-hook";
/// Largest settings file, in bytes.
const SETTINGS_BYTES_MAX: u64 = 4 << 20;
/// Lines around a difference that are shown with it; none of TOML, where agents keep keys of models in the same file.
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
#[derive(Debug, Clone, Default, PartialEq, Eq)]
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
    /// `None`: the file goes.
    after: Option<String>,
    /// Files that belong to it.
    beside: Vec<Self>,
}

/// What stands in an agent's settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// Every event is told to the gate, by this command.
    Governed(String),
    /// There are entries that differ from what an installation writes, or a setting that turns them off.
    Changed(String),
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
    let command = command(settings);
    let place = agents::place(settings.agent);
    match place.form {
        Form::Plugin => return plugin::install(settings.agent, &settings.file, command),
        Form::Tables => return tables::install(settings, command),
        Form::Listed => return listed::install(settings.agent, &settings.file, command),
        Form::Scripts => return scripts::install(settings.agent, &settings.file, command),
        Form::Settings | Form::Events => {}
    }
    let mut file = File::read(&settings.file, place.form)?;
    file.shadows_nothing(place.shadows)?;
    if let Some(version) = place.version {
        file.begin_with_version(version)?;
    }
    let events = place.events;
    let (mut hooks, replaced) = file.without_own(events)?;
    for (event, blocks) in events {
        let mut entries = file.entries(event, hooks.get(event))?;
        entries.push(agents::entry(settings.agent, event, *blocks, &command));
        hooks.set(event, &entries).map_err(|error| file.unfit(error))?;
    }
    file.changed(Some(hooks), replaced, Some(command), settings.agent)
}

/// What taking an installation out would write.
///
/// # Errors
/// [`InstallError`] if the file cannot be read as settings.
pub fn uninstall(agent: Agent, path: &Path) -> Result<Change, InstallError> {
    let form = agents::place(agent).form;
    match form {
        Form::Plugin => return plugin::uninstall(agent, path),
        Form::Tables => return tables::uninstall(agent, path),
        Form::Listed => return listed::uninstall(agent, path),
        Form::Scripts => return scripts::uninstall(agent, path),
        Form::Settings | Form::Events => {}
    }
    let file = File::read(path, form)?;
    let (hooks, replaced) = file.without_own(&[])?;
    let hooks = Some(hooks).filter(|hooks| !hooks.0.is_empty());
    file.changed(hooks, replaced, None, agent)
}

/// What stands in a settings file.
///
/// # Errors
/// [`InstallError`] if the file cannot be read as settings.
pub fn standing(agent: Agent, path: &Path) -> Result<Standing, InstallError> {
    let form = agents::place(agent).form;
    match form {
        Form::Plugin => return plugin::standing(agent, path),
        Form::Tables => return tables::standing(agent, path),
        Form::Listed => return listed::standing(agent, path),
        Form::Scripts => return scripts::standing(agent, path),
        Form::Settings | Form::Events => {}
    }
    let file = File::read(path, form)?;
    let hooks = file.hooks()?;
    let mut found = Vec::new();
    for (event, blocks) in agents::place(agent).events {
        let entries = file.entries(event, hooks.get(event))?;
        found.push((*event, Told { agent, event, blocks: *blocks }.by(&entries)));
    }
    Ok(match (standing_of(found), changed::switched_off(&file.root)) {
        (Standing::Absent, _) => Standing::Absent,
        (_, Some(why)) => Standing::Changed(why),
        (standing, None) => standing,
    })
}

/// What stands there, by what becomes of each event.
fn standing_of(found: Vec<(&str, Found)>) -> Standing {
    let mut command = None;
    let mut missing = Vec::new();
    let mut changed = Vec::new();
    for (event, found) in found {
        match found {
            Found::Nothing => missing.push(event),
            Found::Whole(whole) => command = command.or(Some(whole)),
            Found::Changed(why) => changed.push(why),
        }
    }
    match command {
        None if changed.is_empty() => Standing::Absent,
        _ if !changed.is_empty() => Standing::Changed(changed.join("; ")),
        Some(command) if missing.is_empty() => with_program(command),
        _ => Standing::Broken(format!("there is no entry for {}", missing.join(", "))),
    }
}

/// A command that is started, if its program is there.
fn with_program(command: String) -> Standing {
    let (program, _) = program_of(&command);
    if is_program(Path::new(program)) {
        Standing::Governed(command)
    } else {
        Standing::Broken(format!("`{program}` is no program"))
    }
}

impl Change {
    /// Whether nothing is to be written.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        self.before == self.after && self.beside.iter().all(Self::is_nothing)
    }

    /// What is different, as a unified diff; empty if nothing is.
    #[must_use]
    pub fn difference(&self) -> String {
        let beside: String = self.beside.iter().map(Self::difference).collect();
        if self.before == self.after {
            return beside;
        }
        let before = self.before.as_deref().unwrap_or_default();
        let after = self.after.as_deref().unwrap_or_default();
        let diff = similar::TextDiff::from_lines(before, after);
        let name = self.file.display().to_string();
        let shown = |text: &Option<String>| if text.is_some() { name.as_str() } else { "/dev/null" };
        let context =
            if self.file.extension().is_some_and(|kind| kind == "toml") { 0 } else { CONTEXT_LINES };
        let mut diff = diff.unified_diff();
        let own = diff.context_radius(context).header(shown(&self.before), shown(&self.after)).to_string();
        own + &beside
    }

    /// Replaces each file as a whole: an agent that reads it meanwhile sees the old one or the new one.
    ///
    /// # Errors
    /// [`InstallError::Io`]; the file it names is as it was.
    pub fn write(&self) -> Result<(), InstallError> {
        self.beside.iter().try_for_each(Self::write)?;
        if self.before == self.after {
            return Ok(());
        }
        let done = match &self.after {
            Some(after) => replace(&self.file, after),
            None => fs::remove_file(&self.file),
        };
        done.map_err(|source| InstallError::Io { path: self.file.clone(), source })
    }
}

/// A settings file as it was read.
struct File {
    path: PathBuf,
    form: Form,
    text: Option<String>,
    root: Members,
}

impl File {
    fn read(path: &Path, form: Form) -> Result<Self, InstallError> {
        let text = text_of(path)?;
        let root = serde_json::from_str(text.as_deref().unwrap_or("{}")).map_err(|error| {
            let why = format!("{error}; it has to be JSON without comments to be changed safely");
            InstallError::Unfit { path: path.to_owned(), why }
        })?;
        let file = Self { path: path.to_owned(), form, text, root };
        match file.root.get("hooks") {
            Some(_) if form == Form::Events => {
                Err(file
                    .unfit("it has `hooks`, which is not read in this file; move what is in it to the top"))
            }
            _ => Ok(file),
        }
    }

    /// Refuses to make the file if hooks in files beside it would no longer be read.
    fn shadows_nothing(&self, beside: &[&str]) -> Result<(), InstallError> {
        if self.text.is_some() {
            return Ok(());
        }
        for name in beside {
            let other = Self::read(&self.path.with_file_name(name), Form::Settings)?;
            let has_hooks =
                other.root.0.iter().any(|(member, _)| member == "hooks" || name.ends_with("hooks.json"));
            if has_hooks {
                let file = self.path.display();
                return Err(
                    other.unfit(format!("its hooks would no longer be read: move them to `{file}` first"))
                );
            }
        }
        Ok(())
    }

    /// Puts the version first, where there is none.
    fn begin_with_version(&mut self, version: u64) -> Result<(), InstallError> {
        if self.root.get("version").is_none() {
            let raw = serde_json::value::to_raw_value(&version).map_err(|error| self.unfit(error))?;
            self.root.0.insert(0, ("version".to_owned(), raw));
        }
        Ok(())
    }

    fn unfit(&self, why: impl ToString) -> InstallError {
        InstallError::Unfit { path: self.path.clone(), why: why.to_string() }
    }

    fn hooks(&self) -> Result<Members, InstallError> {
        if self.form == Form::Events {
            return Ok(self.root.clone());
        }
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
        agent: Agent,
    ) -> Result<Change, InstallError> {
        let place = agents::place(agent);
        let is_change = command.is_some() || replaced > 0;
        match hooks {
            hooks if self.form == Form::Events => self.root = hooks.unwrap_or_default(),
            Some(hooks) => self.root.set("hooks", &hooks).map_err(|error| self.unfit(error))?,
            None => self.root.remove("hooks"),
        }
        // What was not touched is not laid out anew either.
        let is_empty = self.root.0.iter().all(|(name, _)| name == "version");
        let after = match &self.text {
            text if !is_change => text.clone(),
            _ if command.is_none() && place.own_file && is_empty => None,
            _ => Some(self.root.pretty()),
        };
        let events = place.events.iter().map(|(event, _)| *event).collect();
        Ok(Change {
            file: self.path,
            command,
            events,
            replaced,
            before: self.text,
            after,
            beside: Vec::new(),
        })
    }
}

/// The text of a settings file, or `None` if there is none.
fn text_of(path: &Path) -> Result<Option<String>, InstallError> {
    let failed = |source| InstallError::Io { path: path.to_owned(), source };
    match fs::metadata(path) {
        // A pipe in its place would be waited for.
        Ok(meta) if !meta.is_file() => {
            Err(InstallError::Unfit { path: path.to_owned(), why: "it is not a regular file".to_owned() })
        }
        Ok(meta) if meta.len() > SETTINGS_BYTES_MAX => {
            let why = format!("it has {} bytes; the limit is {SETTINGS_BYTES_MAX}", meta.len());
            Err(InstallError::Unfit { path: path.to_owned(), why })
        }
        Ok(_) => fs::read_to_string(path).map(Some).map_err(failed),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed(error)),
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

/// Whether a shell takes the letter for itself.
fn is_plain(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "-_./=:@%+,".contains(letter)
}

/// A word for the shell.
fn quoted(word: &str) -> String {
    if !word.is_empty() && word.chars().all(is_plain) {
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
    // Copilot CLI names the shell, Kiro an action.
    let command = hook.get("command").or_else(|| hook.get("bash"));
    let command = command.or_else(|| hook.pointer("/action/command")).and_then(Value::as_str)?;
    is_own(command).then_some(command)
}

fn is_own(command: &str) -> bool {
    let (program, rest) = program_of(command);
    match Path::new(program).file_name().and_then(OsStr::to_str) {
        Some(SMALL) => true,
        Some("portcullis") => rest.split_whitespace().next() == Some("hook"),
        _ => false,
    }
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
