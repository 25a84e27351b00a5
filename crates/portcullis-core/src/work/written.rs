//! What is written where, and whether that bears on what an item covers.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::WorkError;
use super::{COVERS_MAX, WORDS_BYTES_MAX};
use crate::effect::{Effects, ResourceKind, Verb};
use crate::observed::{Observed, Seen};

/// Folders that programs write in the course of checking and committing, and make again when they are gone. Where an
/// item does not say what it covers, they are not.
const MADE_AGAIN: [&str; 12] = [
    ".git",
    "node_modules",
    "target",
    "__pycache__",
    ".pytest_cache",
    ".mypy_cache",
    ".ruff_cache",
    ".tox",
    ".nox",
    ".venv",
    ".gradle",
    ".cache",
];

/// Most names that are kept of what an action writes; more count as anything.
const WRITTEN_MAX: usize = 4_096;

/// What has to stay as it is for evidence to count: paths, with all that is below them, and tables as `table NAME`.
/// Where nothing is said it is the folder in which the agent works, without what programs make again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Covers(Vec<String>);

impl Covers {
    /// Reads a list of absolute paths and tables. A path that is not absolute is in the folder in which the agent works.
    ///
    /// # Errors
    /// Too many, too long, or relative where no folder is known.
    pub fn read(list: &[String], workspace: Option<&str>) -> Result<Self, WorkError> {
        if list.len() > COVERS_MAX {
            return Err(WorkError::field("covers", format!("has more than {COVERS_MAX} entries")));
        }
        let mut covers = Vec::with_capacity(list.len());
        for (at, name) in list.iter().enumerate() {
            let field = format!("covers[{at}]");
            if name.is_empty() || name.len() > WORDS_BYTES_MAX {
                return Err(WorkError::field(field, format!("must have 1 to {WORDS_BYTES_MAX} bytes")));
            }
            covers.push(match (name.starts_with("table "), workspace) {
                (true, _) => name.clone(),
                _ if name.starts_with('/') => plain(name),
                (false, Some(workspace)) => plain(&format!("{workspace}/{name}")),
                (false, None) => {
                    return Err(WorkError::field(
                        field,
                        "is relative, and nobody said in which folder the agent works",
                    ));
                }
            });
        }
        Ok(Self(covers))
    }

    /// The paths and tables.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.0
    }

    pub(super) fn is_default(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn each_text(&mut self, show: &mut dyn FnMut(&mut String)) {
        self.0.iter_mut().for_each(show);
    }
}

/// What an action writes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Written {
    /// Paths and tables.
    names: BTreeSet<String>,
    /// It may write anything: its text does not say.
    anything: bool,
}

impl Written {
    /// What the effects of an action say.
    #[must_use]
    pub fn of(effects: &Effects) -> Self {
        let mut written = Self { anything: !effects.are_seen(), ..Self::default() };
        for effect in effects.iter() {
            let writes = matches!(effect.verb, Verb::Write | Verb::Delete | Verb::Configure);
            match effect.resource.kind {
                ResourceKind::Path if writes => written.add(&effect.resource.name),
                ResourceKind::Table if writes => written.add(&format!("table {}", effect.resource.name)),
                _ => {}
            }
        }
        // What an unseen effect only reads, or sends, changes nothing here.
        let changes = |verb| !matches!(verb, Verb::Read | Verb::Send | Verb::Pay);
        let only_looks = effects.iter().all(|effect| effect.is_seen() || !changes(effect.verb));
        if only_looks && !effects.is_empty() {
            written.anything = false;
        }
        written
    }

    /// The paths that it writes, where its text says all of them.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        let names = self.names.iter().filter(|_| !self.anything).map(String::as_str);
        names.filter(|name| name.starts_with('/'))
    }

    /// An action of which nothing was read.
    #[must_use]
    pub fn anything() -> Self {
        Self { anything: true, ..Self::default() }
    }

    /// What was seen of it while it ran contained. Where all files were seen, that is what it wrote, whatever its text says.
    pub fn seen(&mut self, observed: &Observed) {
        if observed.files.seen == Seen::All {
            *self = Self::default();
        }
        for change in &observed.files.changes {
            self.add(&change.path.to_string_lossy());
        }
    }

    fn add(&mut self, name: &str) {
        if self.names.len() >= WRITTEN_MAX {
            self.anything = true;
        } else {
            self.names.insert(name.to_owned());
        }
    }

    /// Whether it writes nothing.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        self.names.is_empty() && !self.anything
    }

    /// Whether it bears on what an item covers, in a run whose agent works in this folder.
    #[must_use]
    pub fn touches(&self, covers: &Covers, workspace: Option<&str>) -> bool {
        self.anything || self.names.iter().any(|name| touches(name, covers, workspace))
    }
}

fn touches(name: &str, covers: &Covers, workspace: Option<&str>) -> bool {
    if name.starts_with("table ") {
        return covers.is_default() || covers.0.iter().any(|covered| covered.eq_ignore_ascii_case(name));
    }
    if !name.starts_with('/') || name.contains('*') {
        // Nobody knows where that is.
        return true;
    }
    let name = plain(name);
    let meets = |covered: &str| is_within(&name, covered) || is_within(covered, &name);
    if !covers.is_default() {
        return covers.0.iter().any(|covered| meets(covered));
    }
    match workspace.map(plain) {
        Some(workspace) if is_within(&name, &workspace) => {
            let below = name.get(workspace.len()..).unwrap_or_default();
            !below.split('/').any(|part| MADE_AGAIN.contains(&part))
        }
        Some(workspace) => meets(&workspace),
        None => true,
    }
}

fn is_within(path: &str, folder: &str) -> bool {
    let rest = path.strip_prefix(folder);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || folder == "/")
}

/// An absolute path without `.`, `..` and doubled strokes, by its text.
fn plain(path: &str) -> String {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}
