//! What servers' tools looked like when a person accepted them: one file a server in the state folder.
//!
//! What a server lists first is accepted; a later listing that differs is a change, which a person accepts or leaves.
//! The whole entry of a tool counts, and the instructions of the server like a tool of their own. An entry that
//! cannot be read with certainty is a change that cannot be accepted. Servers are told apart by the command that
//! started them, which the operator wrote, and not by the name they give themselves. A file that cannot be read
//! refuses the listing: what stood accepted must not be forgotten by damaging a file.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::env::{Env as _, SystemEnv};
use portcullis_core::event::ListedTool;
use portcullis_core::id::{Digest, DigestBuilder, canonical_json};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::surface::{ReportedTool, ToolWords, UnreadableTool};

/// Most servers that one principal makes known while the daemon runs: each is a file.
const SERVERS_OF_PRINCIPAL_MAX: usize = 64;
/// Largest file of one server, in bytes.
const FILE_BYTES_MAX: u64 = 64 << 20;
/// The file with the key of short digests, beside the servers' files.
const KEY_FILE: &str = "short.key";
/// Hex digits of a short digest: a server that cannot compute them has one guess in 2^48.
const SHORT_DIGITS: usize = 12;

/// Why the listings cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ListingsError {
    /// The file cannot be read or written.
    #[error("cannot use the accepted tools in `{}`: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file is not what this program wrote.
    #[error(
        "the accepted tools in `{}` cannot be read: {why}; move the file away to accept the server again",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// Nothing to accept.
    #[error("the tool `{0}` has no change to accept; `portcullis tools changed` lists changes")]
    NoChange(String),
    /// What is listed cannot be read.
    #[error(
        "the entry of the tool `{tool}` cannot be accepted, because it is ambiguous: {why}; its server must list it differently"
    )]
    Unreadable {
        /// The tool.
        tool: String,
        /// Why, in words that are not the server's.
        why: String,
    },
    /// Something changed since the person looked.
    #[error("the changes are not the ones that were shown; review them again: portcullis tools changed")]
    OtherList,
    /// One principal makes servers up without end.
    #[error(
        "`{0}` has introduced {SERVERS_OF_PRINCIPAL_MAX} new servers since the daemon started, which is the limit; restart it if these are real"
    )]
    TooMany(String),
    /// No key for short digests.
    #[error("cannot make a key for short digests: {0}")]
    Randomness(#[from] crate::env::NoRandomness),
    /// Several servers changed a tool of that name.
    #[error("several servers changed the tool `{0}`; say which with --server")]
    Ambiguous(String),
    /// The tool changed again since the person looked.
    #[error("the tool `{0}` has changed again since it was shown; review it again")]
    ChangedAgain(String),
}

/// A tool that its server describes otherwise than a person accepted it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChangedTool {
    /// The command that starts the server.
    pub server: String,
    /// The tool's name.
    pub tool: String,
    /// Digest of what is offered now.
    pub digest: Digest,
    /// The same in a few digits, for people to repeat. It is made with a key of this state folder, so that no server can
    /// prepare two descriptions that share it.
    #[serde(default)]
    pub short: String,
    /// The accepted entry; empty if nothing of the tool could be read yet.
    pub accepted: ToolWords,
    /// What is offered now; empty where it cannot be read.
    pub offered: ToolWords,
    /// Why the entry cannot be read with certainty: it cannot be accepted either.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unreadable: Option<String>,
}

/// A tool as its server lists it and a person accepted it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownTool {
    /// The command that starts the server.
    pub server: String,
    /// The tool's name.
    pub tool: String,
    /// What was accepted; nothing while no entry of it could be read.
    pub accepted: Option<ToolWords>,
}

/// Changes that wait for a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChangedTools {
    /// One a tool, by server and name.
    pub changed: Vec<ChangedTool>,
    /// What the list as a whole is accepted by, in a few digits; made like [`ChangedTool::short`].
    #[serde(default)]
    pub short: String,
}

/// One server's file.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Server {
    /// The command that starts it.
    server: String,
    /// Its tools by name.
    tools: BTreeMap<String, Known>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Known {
    /// `None` while no entry of it could be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    accepted: Option<ToolWords>,
    /// The tool as it was listed last, where that differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    offered: Option<ToolWords>,
    /// What was listed last, where that cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unreadable: Option<UnreadableTool>,
}

impl Known {
    /// Takes an entry into account that could be read. Returns whether anything is to be written.
    fn listed(&mut self, words: ToolWords) -> bool {
        let was_unreadable = self.unreadable.take().is_some();
        let Some(accepted) = &mut self.accepted else {
            self.accepted = Some(words);
            return true;
        };
        // Files of earlier releases do not have all of the entry: what is listed now stands accepted with the rest.
        let adopts = accepted.rest.is_none() && words.rest.is_some() && same(accepted, &words);
        if adopts {
            accepted.rest.clone_from(&words.rest);
        }
        let offered = (!same(accepted, &words)).then_some(words);
        let changes = self.offered != offered;
        self.offered = offered;
        was_unreadable || adopts || changes
    }

    /// Digest of what is listed now and not accepted, and of what is, or `None` if nothing is waiting for a person.
    fn change(&self) -> Option<(Digest, Digest)> {
        let offered = self.unreadable.as_ref().map(|entry| entry.digest);
        let offered = offered.or_else(|| self.offered.as_ref().map(digest))?;
        let nothing = || DigestBuilder::new("portcullis/no-listed-tool/v1").finish();
        Some((offered, self.accepted.as_ref().map_or_else(nothing, digest)))
    }
}

/// Whether two say the same of a tool. What one of them does not know is not compared.
fn same(one: &ToolWords, other: &ToolWords) -> bool {
    let rest = one.rest.is_none() || other.rest.is_none() || one.rest == other.rest;
    rest && one.description == other.description && one.input_schema == other.input_schema
}

/// The folder of listings. Changes take turns.
#[derive(Debug)]
pub struct Listings {
    folder: PathBuf,
    /// Held while files are read or written. How many servers each principal has made known since the start.
    turn: Mutex<HashMap<String, usize>>,
}

/// A change that a person accepted.
#[derive(Debug)]
pub struct Accepted {
    /// The command that starts the server.
    pub server: String,
    /// The tool.
    pub tool: String,
    /// What it is from here on.
    pub digest: Digest,
}

/// What a digest of a tool covers: its description, the schema of its arguments and, where that is known, all else.
pub fn digest(words: &ToolWords) -> Digest {
    let label = match &words.rest {
        None => "portcullis/listed-tool/v1",
        Some(_) => "portcullis/listed-tool/v2",
    };
    let digest = DigestBuilder::new(label)
        .part(words.description.as_bytes())
        .part(canonical_json(&words.input_schema).as_bytes());
    match &words.rest {
        None => digest.finish(),
        Some(rest) => digest.part(canonical_json(rest).as_bytes()).finish(),
    }
}

impl Listings {
    /// The listings in a folder, which is created with the first one.
    pub fn at(folder: PathBuf) -> Self {
        Self { folder, turn: Mutex::default() }
    }

    /// Compares a listing with the accepted one. Returns the accepted digest of each tool that changed. New tools of
    /// a known server, and all tools of a new one, are accepted. Blocks on the disk.
    pub fn listed(
        &self,
        principal: &str,
        server: &str,
        tools: &[ReportedTool],
        unreadable: &[UnreadableTool],
    ) -> Result<BTreeMap<String, Digest>, ListingsError> {
        let mut turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let path = self.file(server);
        let known = read(&path)?;
        if known.is_none() {
            let made = turn.entry(principal.to_owned()).or_default();
            if *made >= SERVERS_OF_PRINCIPAL_MAX {
                return Err(ListingsError::TooMany(principal.to_owned()));
            }
            *made += 1;
        }
        let mut file = known.unwrap_or_default();
        server.clone_into(&mut file.server);
        let mut touched = false;
        for tool in tools {
            let words = ToolWords {
                description: tool.description.clone(),
                input_schema: tool.input_schema.clone(),
                rest: tool.rest.clone(),
            };
            touched |= file.tools.entry(tool.name.clone()).or_default().listed(words);
        }
        // After the others: a name that is in the list in both ways cannot be read with certainty.
        for entry in unreadable {
            let known = file.tools.entry(entry.name.clone()).or_default();
            touched |= known.unreadable.as_ref() != Some(entry);
            known.unreadable = Some(entry.clone());
        }
        if touched {
            write(&path, &file)?;
        }
        let names = tools.iter().map(|tool| &tool.name).chain(unreadable.iter().map(|entry| &entry.name));
        let change = |name: &String| Some((name.clone(), file.tools.get(name)?.change()?.1));
        Ok(names.filter_map(change).collect())
    }

    /// The tools of a server that wait for a person, as a listing would tell of them.
    pub fn waiting(&self, server: &str) -> Result<Vec<ListedTool>, ListingsError> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let file = read(&self.file(server))?.unwrap_or_default();
        let waiting = file.tools.into_iter().filter_map(|(name, known)| {
            let (digest, accepted) = known.change()?;
            Some(ListedTool {
                name,
                digest,
                read_only_hint: None,
                destructive_hint: None,
                changed_from: Some(accepted),
            })
        });
        Ok(waiting.collect())
    }

    /// All tools that servers have listed, by server and name.
    ///
    /// # Errors
    /// [`ListingsError`] if a file cannot be read.
    pub fn known(&self) -> Result<Vec<KnownTool>, ListingsError> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = Vec::new();
        for_each_server(&self.folder, |file| {
            let server = file.server;
            all.extend(file.tools.into_iter().map(|(tool, known)| KnownTool {
                server: server.clone(),
                tool,
                accepted: known.accepted,
            }));
        })?;
        all.sort_by(|a, b| (&a.server, &a.tool).cmp(&(&b.server, &b.tool)));
        Ok(all)
    }

    /// The changes that wait for a person.
    pub fn changes(&self) -> Result<ChangedTools, ListingsError> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let mut changed = changed_in(&self.folder)?;
        if changed.is_empty() {
            return Ok(ChangedTools { changed, short: String::new() });
        }
        let key = self.key()?;
        let mut all = DigestBuilder::new("portcullis/shown-changes/v1").part(&key);
        for change in &mut changed {
            let (server, tool) = (change.server.as_bytes(), change.tool.as_bytes());
            all = all.part(server).part(tool).part(change.digest.as_bytes());
            let one = DigestBuilder::new("portcullis/shown-change/v1").part(&key).part(server).part(tool);
            change.short = short(one.part(change.digest.as_bytes()));
        }
        Ok(ChangedTools { changed, short: short(all) })
    }

    /// Accepts a change, if the tool is still what the person was shown.
    pub fn accept(
        &self,
        tool: &str,
        server: Option<&str>,
        shown: Option<&str>,
    ) -> Result<Accepted, ListingsError> {
        let mut waiting = self.changes()?.changed;
        waiting.retain(|change| change.tool == tool && server.is_none_or(|server| change.server == server));
        let change = match (waiting.pop(), waiting.is_empty()) {
            (Some(change), true) => change,
            (None, _) => return Err(ListingsError::NoChange(tool.to_owned())),
            (Some(_), false) => return Err(ListingsError::Ambiguous(tool.to_owned())),
        };
        if let Some(why) = change.unreadable {
            return Err(ListingsError::Unreadable { tool: tool.to_owned(), why });
        }
        if shown.is_some_and(|shown| shown != change.digest.to_string() && shown != change.short) {
            return Err(ListingsError::ChangedAgain(tool.to_owned()));
        }
        self.put_in_force(&change)
    }

    /// Accepts all changes that can be, if they are still those of the list that the person was shown.
    pub fn accept_all(&self, shown: &str) -> Result<Vec<Accepted>, ListingsError> {
        let list = self.changes()?;
        if list.short != shown || shown.is_empty() {
            return Err(ListingsError::OtherList);
        }
        list.changed
            .iter()
            .filter(|change| change.unreadable.is_none())
            .map(|change| self.put_in_force(change))
            .collect()
    }

    fn put_in_force(&self, change: &ChangedTool) -> Result<Accepted, ListingsError> {
        let ChangedTool { server, tool, digest: shown, .. } = change;
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let path = self.file(server);
        let mut file = read(&path)?.ok_or_else(|| ListingsError::NoChange(tool.clone()))?;
        let known = file.tools.get_mut(tool).ok_or_else(|| ListingsError::NoChange(tool.clone()))?;
        match known.offered.take() {
            Some(offered) if known.unreadable.is_none() && digest(&offered) == *shown => {
                known.accepted = Some(offered);
            }
            _ => return Err(ListingsError::ChangedAgain(tool.clone())),
        }
        write(&path, &file)?;
        Ok(Accepted { server: server.clone(), tool: tool.clone(), digest: *shown })
    }

    /// The key of short digests, which is made with the first of them.
    fn key(&self) -> Result<Vec<u8>, ListingsError> {
        let path = self.folder.join(KEY_FILE);
        let io = |source| ListingsError::Io { path: path.clone(), source };
        match fs::read(&path) {
            Ok(key) if key.len() == 32 => return Ok(key),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(io(error)),
        }
        let key = SystemEnv::new()?.salt();
        replace(&path, &key).map_err(io)?;
        Ok(key.to_vec())
    }

    fn file(&self, server: &str) -> PathBuf {
        let name = DigestBuilder::new("portcullis/listing-file/v1").part(server.as_bytes()).finish();
        self.folder.join(format!("{name}.json"))
    }
}

fn short(digest: DigestBuilder) -> String {
    let mut digits = digest.finish().to_string();
    digits.truncate(SHORT_DIGITS);
    digits
}

/// The changes that wait for a person, by server and name, without their short digests.
///
/// # Errors
/// [`ListingsError`] if a file cannot be read.
pub fn changed_in(folder: &Path) -> Result<Vec<ChangedTool>, ListingsError> {
    let mut changes = Vec::new();
    for_each_server(folder, |file| {
        for (tool, known) in file.tools {
            let Some((digest, _)) = known.change() else { continue };
            changes.push(ChangedTool {
                server: file.server.clone(),
                tool,
                digest,
                short: String::new(),
                accepted: known.accepted.unwrap_or_default(),
                offered: known.offered.filter(|_| known.unreadable.is_none()).unwrap_or_default(),
                unreadable: known.unreadable.map(|entry| entry.why),
            });
        }
    })?;
    changes.sort_by(|a, b| (&a.server, &a.tool).cmp(&(&b.server, &b.tool)));
    Ok(changes)
}

/// Reads the files of all servers. A folder that is not there yet has none.
fn for_each_server(folder: &Path, mut take: impl FnMut(Server)) -> Result<(), ListingsError> {
    let io = |source| ListingsError::Io { path: folder.to_owned(), source };
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(io(error)),
    };
    for entry in entries {
        let path = entry.map_err(io)?.path();
        if path.extension().is_some_and(|extension| extension == "json")
            && let Some(file) = read(&path)?
        {
            take(file);
        }
    }
    Ok(())
}

fn read(path: &Path) -> Result<Option<Server>, ListingsError> {
    let io = |source| ListingsError::Io { path: path.to_owned(), source };
    let damaged = |why: String| ListingsError::Damaged { path: path.to_owned(), why };
    match fs::metadata(path) {
        Ok(metadata) if metadata.len() > FILE_BYTES_MAX => {
            return Err(damaged(format!("it has more than {FILE_BYTES_MAX} bytes")));
        }
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(io(error)),
    }
    let bytes = fs::read(path).map_err(io)?;
    serde_json::from_slice(&bytes).map(Some).map_err(|error| damaged(error.to_string()))
}

/// Replaces the file as a whole: a reader sees the old or the new one, and a crash leaves one of them.
fn write(path: &Path, file: &Server) -> Result<(), ListingsError> {
    let io = |source| ListingsError::Io { path: path.to_owned(), source };
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(io)?;
    let bytes = serde_json::to_vec_pretty(file).map_err(|error| io(io::Error::other(error)))?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(io(io::Error::other(format!(
            "the server's tools need more than {FILE_BYTES_MAX} bytes"
        ))));
    }
    replace(path, &bytes).map_err(io)
}

fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = path.with_extension("new");
    let mut new = fs::OpenOptions::new();
    let mut new = new.write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
    new.write_all(bytes).and_then(|()| new.sync_all())?;
    fs::rename(&temporary, path)?;
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::File::open(folder).and_then(|folder| folder.sync_all())
}

#[cfg(test)]
mod tests;
