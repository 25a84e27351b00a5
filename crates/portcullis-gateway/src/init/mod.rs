//! `portcullis init -- CMD`: asks an MCP server for its tools and drafts a bundle to edit.
//!
//! Three steps: `probe` speaks just enough of the protocol to list the tools, [`render`] turns them into files
//! without touching anything, and [`draft`] writes those, never over something that is there. What is drafted
//! loads, and its example test holds: both are checked before the first file is written.

mod add;
mod disclosures;
mod probe;
mod programs;
mod render;
mod sample;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use portcullis_core::bundle::Diagnostic;
use portcullis_session::bundle_dir::{self, BundleError};
use portcullis_session::cases::{CaseFile, run_file};
use portcullis_session::listings::ChangedTool;
use portcullis_wire::mcp::list::INSTRUCTIONS;

use crate::daemon::changed_tools;
use crate::home::Home;
use probe::Found;
pub use probe::{ANSWER_S_MAX, PAGES_MAX, ProbeError};
pub use render::{DraftedTool, Rendering, render};

/// What to ask, and where the draft goes.
#[derive(Debug, Clone)]
pub struct DraftOptions {
    /// The server and its arguments.
    pub command: Vec<OsString>,
    /// The folder of the bundle; made if it is missing.
    pub folder: PathBuf,
    /// The folder holds a bundle already: the tools are added to it, and none of its files changes.
    pub add: bool,
    /// Where the command is a gate in front of the server: what that gate knows it as.
    pub behind_gate: Option<BehindGate>,
}

/// A server that is asked through a gate, which keeps tools back.
#[derive(Debug, Clone)]
pub struct BehindGate {
    /// The state folder of the gate.
    pub home: Home,
    /// The server, as the gate knows it across runs.
    pub known_as: String,
}

/// What was drafted.
#[derive(Debug, Clone, PartialEq)]
pub struct DraftSummary {
    /// The folder.
    pub folder: PathBuf,
    /// The files in it, relative to it.
    pub files: Vec<String>,
    /// The server, as it named itself or was started.
    pub server: String,
    /// The tools with their classification.
    pub tools: Vec<DraftedTool>,
    /// What could not be taken over as the server says it.
    pub warnings: Vec<String>,
}

/// Why there is no draft.
#[derive(Debug, thiserror::Error)]
pub enum InitError {
    /// No server is named.
    #[error("name the server's command after `--`")]
    NoCommand,
    /// The server did not list its tools.
    #[error(transparent)]
    Probe(#[from] ProbeError),
    /// Nothing is left to draft.
    #[error("`{server}` lists no tool that could be drafted, so nothing was written{}", reasons(.warnings))]
    NoTools {
        /// The server, as it named itself or was started.
        server: String,
        /// Why each was left out.
        warnings: Vec<String>,
    },
    /// It is not known which tools are kept back.
    #[error("it is not known which tools are kept back, and nothing was written: {0}")]
    KeptBack(String),
    /// A file is there already.
    #[error(
        "`{}` exists and is not overwritten; choose another folder with -o, or add this server's tools to the \
         bundle that is there with --add", .0.display()
    )]
    Exists(PathBuf),
    /// There is nothing to add to.
    #[error(
        "the tools cannot be added to `{}`, and nothing was written: {why}; mend that bundle, or leave out --add \
         to draft one", folder.display()
    )]
    NoBundle {
        /// The folder.
        folder: PathBuf,
        /// Why.
        why: String,
    },
    /// A tool of that name is there.
    #[error(
        "the bundle at `{}` has tools of these names already, and nothing was written: {tools}. A bundle has one \
         tool of each name: draft this server into a bundle of its own (`portcullis init -o DIR`, without --add) \
         and name that in front of it (`portcullis mcp --bundle DIR`), or remove the old tools first",
        folder.display()
    )]
    Clash {
        /// The folder.
        folder: PathBuf,
        /// The names.
        tools: String,
    },
    /// A file cannot be written.
    #[error("cannot write `{}`: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// What the server says of its tools does not make a bundle.
    #[error("what was drafted does not load, and nothing was written: {}", list(.0))]
    Mistakes(Vec<Diagnostic>),
    /// The example test does not hold.
    #[error("the drafted test does not hold, and nothing was written: {0}")]
    Test(String),
    /// The draft does not load together with what is in the folder besides.
    #[error("the files were written, but do not load together with what was in the folder: {0}")]
    Together(#[source] BundleError),
}

fn reasons(warnings: &[String]) -> String {
    warnings.iter().map(|warning| format!("; {warning}")).collect()
}

fn list(diagnostics: &[Diagnostic]) -> String {
    diagnostics.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// Starts the server, lists its tools and writes the draft.
///
/// # Errors
/// [`InitError`].
pub async fn draft(options: DraftOptions) -> Result<DraftSummary, InitError> {
    let mut found = probe::probe(&options.command).await?;
    found.warnings.extend(options.behind_gate.as_ref().map(kept_back).transpose()?.unwrap_or_default());
    if found.tools.is_empty() {
        return Err(InitError::NoTools { server: found.server, warnings: found.warnings });
    }
    let mut rendering = match options.add {
        true => add::draft(&found, &options.folder)?,
        false => whole_bundle(&found)?,
    };
    rendering.warnings.splice(0..0, found.warnings);
    write(&options.folder, &rendering.files)?;
    bundle_dir::load(&options.folder).map_err(InitError::Together)?;
    Ok(DraftSummary {
        folder: options.folder,
        files: rendering.files.into_keys().collect(),
        server: found.server,
        tools: rendering.tools,
        warnings: rendering.warnings,
    })
}

/// The tools that the gate keeps back because they are not as a person accepted them, each in a sentence.
fn kept_back(behind: &BehindGate) -> Result<Vec<String>, InitError> {
    let changed = changed_tools(&behind.home).map_err(InitError::KeptBack)?;
    let of_server =
        changed.iter().filter(|change| change.server == behind.known_as && change.tool != INSTRUCTIONS);
    let told = |change: &ChangedTool| match &change.unreadable {
        Some(why) => format!("`{}` was left out, because it cannot be read: {why}", change.tool),
        None => format!(
            "`{}` was left out, because its description changed since a person accepted it; `portcullis tools changed` \
             shows how, and how to accept it",
            change.tool
        ),
    };
    Ok(of_server.map(told).collect())
}

fn whole_bundle(found: &Found) -> Result<Rendering, InitError> {
    let mut rendering = render(&found.tools, &found.server);
    if let Err(InitError::Test(_)) = check(&rendering.files) {
        // Of an unusual tool other guards may say more about such a call than the drafted policies do.
        rendering = render::without_out_of_bounds(&found.tools, &found.server);
    }
    check(&rendering.files)?;
    Ok(rendering)
}

/// The files load as a bundle, and their test holds.
fn check(files: &BTreeMap<String, String>) -> Result<(), InitError> {
    let bytes: BTreeMap<String, Vec<u8>> =
        files.iter().map(|(path, text)| (path.clone(), text.clone().into_bytes())).collect();
    mismatch(&bytes)?.map_or(Ok(()), |mismatch| Err(InitError::Test(mismatch)))
}

/// The first test of a bundle that does not hold.
fn mismatch(files: &BTreeMap<String, Vec<u8>>) -> Result<Option<String>, InitError> {
    let bundle = portcullis_session::policy::load(files).map_err(InitError::Mistakes)?;
    let pipeline = Arc::new(portcullis_session::policy::pipeline());
    for (path, text) in &bundle.tests {
        let cases = CaseFile::parse(text).map_err(|error| InitError::Test(format!("{path}: {error}")))?;
        if let Some(mismatch) = run_file(&cases, files, &pipeline).mismatches.first() {
            return Ok(Some(format!("{path}, line {}: {}", mismatch.line, mismatch.message)));
        }
    }
    Ok(None)
}

fn write(folder: &Path, files: &BTreeMap<String, String>) -> Result<(), InitError> {
    for path in files.keys() {
        let path = folder.join(path);
        // A link to nowhere is something too.
        if fs::symlink_metadata(&path).is_ok() {
            return Err(InitError::Exists(path));
        }
    }
    for (path, text) in files {
        let path = folder.join(path);
        let failed = |source: io::Error| match source.kind() {
            io::ErrorKind::AlreadyExists => InitError::Exists(path.clone()),
            _ => InitError::Write { path: path.clone(), source },
        };
        fs::create_dir_all(path.parent().unwrap_or(folder)).map_err(failed)?;
        let mut file = File::create_new(&path).map_err(failed)?;
        file.write_all(text.as_bytes()).map_err(failed)?;
    }
    Ok(())
}
