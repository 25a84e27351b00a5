//! Setting an agent up: entries in its settings file that start a program for each event: `portcullis-hook` where it
//! stands beside `portcullis`, else `portcullis hook`.
//!
//! Whatever else is in the file stays as it is written, and taking the entries out again gives the file that was there
//! before. Entries of an earlier installation are replaced, so that installing again is how one changes the options. What is
//! to be written is worked out first ([`Change`]), so that it can be shown; the file is replaced as a whole, and one that
//! cannot be read as settings is left alone.

mod agents;
mod changed;
mod command;
mod document;
mod edit;
mod listed;
mod plugin;
mod scripts;
mod settings;
mod tables;

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use portcullis_wire::hook::Agent;

use agents::Form;
pub use agents::{Scope, besides, is_there, settings_file};
use changed::Found;
use command::{command, is_program, program_of};

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
    /// The file holds something else than settings; it is left alone.
    #[error("`{}` cannot be used: {why}", path.display())]
    Unfit {
        /// The file.
        path: PathBuf,
        /// What is wrong with it, and what to do about it.
        why: String,
        /// What a person can add to it.
        by_hand: Option<String>,
    },
}

impl InstallError {
    fn unfit(path: &Path, why: &str) -> Self {
        Self::Unfit { path: path.to_owned(), why: why.to_owned(), by_hand: None }
    }
}

/// What an installation would write.
///
/// # Errors
/// [`InstallError`] if the file cannot be read as settings.
pub fn install(settings: &Settings) -> Result<Change, InstallError> {
    let (agent, file) = (settings.agent, settings.file.as_path());
    match agents::place(agent).form {
        Form::Plugin => plugin::install(agent, file, command(settings)?),
        Form::Tables => tables::install(agent, file, command(settings)?),
        Form::Listed => listed::install(agent, file, command(settings)?),
        Form::Scripts => scripts::install(agent, file, command(settings)?),
        Form::Settings | Form::Events => settings::install(settings),
    }
}

/// What taking an installation out would write.
///
/// # Errors
/// [`InstallError`] if the file cannot be read as settings.
pub fn uninstall(agent: Agent, path: &Path) -> Result<Change, InstallError> {
    match agents::place(agent).form {
        Form::Plugin => plugin::uninstall(agent, path),
        Form::Tables => tables::uninstall(agent, path),
        Form::Listed => listed::uninstall(agent, path),
        Form::Scripts => scripts::uninstall(agent, path),
        Form::Settings | Form::Events => settings::uninstall(agent, path),
    }
}

/// What stands in a settings file.
///
/// # Errors
/// [`InstallError`] if the file cannot be read as settings.
pub fn standing(agent: Agent, path: &Path) -> Result<Standing, InstallError> {
    match agents::place(agent).form {
        Form::Plugin => plugin::standing(agent, path),
        Form::Tables => tables::standing(agent, path),
        Form::Listed => listed::standing(agent, path),
        Form::Scripts => scripts::standing(agent, path),
        Form::Settings | Form::Events => settings::standing(agent, path),
    }
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
    match program_of(&command) {
        Some((program, _)) if is_program(&program) => Standing::Governed(command),
        Some((program, _)) => Standing::Broken(format!("`{}` is no program", program.display())),
        None => Standing::Broken("its command has a quote that is not closed".to_owned()),
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

/// The text of a settings file, or `None` if there is none.
fn text_of(path: &Path) -> Result<Option<String>, InstallError> {
    let failed = |source| InstallError::Io { path: path.to_owned(), source };
    match fs::metadata(path) {
        // A pipe in its place would be waited for.
        Ok(meta) if !meta.is_file() => Err(InstallError::unfit(path, "it is not a regular file")),
        Ok(meta) if meta.len() > SETTINGS_BYTES_MAX => {
            let why = format!("it has {} bytes; the limit is {SETTINGS_BYTES_MAX}", meta.len());
            Err(InstallError::unfit(path, &why))
        }
        Ok(_) => match fs::read_to_string(path).map_err(failed)? {
            text if text.starts_with('\u{feff}') => {
                let why = "it begins with a byte order mark, with which agents may read none of it; \
                           save it as UTF-8 without one";
                Err(InstallError::unfit(path, why))
            }
            text => Ok(Some(text)),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => match fs::read_link(path) {
            Ok(target) => {
                let why = format!(
                    "it is a link to `{}`, which is not there; make that file, or remove the link",
                    target.display()
                );
                Err(InstallError::unfit(path, &why))
            }
            Err(_) => Ok(None),
        },
        Err(error) => Err(failed(error)),
    }
}

fn replace(path: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    // Through links, so that a file that is kept elsewhere stays there.
    let path = match fs::canonicalize(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => path.to_owned(),
        path => path?,
    };
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
mod kept;
#[cfg(test)]
mod tests;
