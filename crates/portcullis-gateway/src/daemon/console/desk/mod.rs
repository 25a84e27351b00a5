//! Where the bundle is changed: checked as it would be loaded, kept as a version, recorded, written.
//!
//! What is saved is what was shown: a form carries the digest of the bundle that it was opened on and the digest of the
//! one that its page showed as the outcome, and nothing is written where either is another by now. A bundle with a
//! mistake is not written. A file is put into its place whole; where several change, the daemon takes up none of them
//! before all are there, since it believes a change only when it has seen the same files twice.

mod backtest;
pub(super) mod check;
pub(super) mod toml_text;

use std::fs;
use std::io;
use std::sync::Arc;

use portcullis_core::bundle::{Bundle, Diagnostic};
use portcullis_session::bundles::Source;
use portcullis_session::{bundle_dir, policy};

pub(super) use self::backtest::Known as KnownBacktests;
pub(super) use self::check::{Checked, Depth, check};
use super::Seen;
use super::people;
use super::visitor::Visitor;
use crate::home::Home;
use crate::home_bundle;
use crate::versions::{self, Kept, closed};
pub(super) use crate::versions::{Changes, Closed, Files, Version, Versions, changes_between, is_own_path};

/// The folder of the state folder in which a bundle of one's own begins, where the daemon serves the shipped one.
const OWN: &str = "bundle";

/// Changes of the bundle take turns.
#[derive(Debug)]
pub(super) struct Desk {
    turn: tokio::sync::Mutex<()>,
    versions: Versions,
}

/// Why the console does not write a bundle, in a sentence.
pub(super) fn sentence(closed: &Closed) -> String {
    match closed {
        Closed::Git(root) => format!(
            "The folder is managed by git (`{}`), so this page shows and checks, and writes nothing: commit the change there.",
            root.display()
        ),
        Closed::ReadOnly(folder) => {
            format!("The gate may not write to `{}`, so this page shows and checks only.", folder.display())
        }
    }
}

/// The bundle as it stands.
#[derive(Debug, Clone)]
pub(super) struct Standing {
    pub(super) source: Source,
    pub(super) files: Arc<Files>,
    /// The one in force, which may be older than the files where they no longer load.
    pub(super) bundle: Arc<Bundle>,
    /// Why nothing is written.
    pub(super) closed: Option<Closed>,
}

impl Standing {
    /// The digest of the files as they lie there.
    pub(super) fn digest(&self) -> String {
        Bundle::digest_of(&self.files).to_string()
    }

    /// A file as a text; empty if it is not there.
    pub(super) fn text(&self, path: &str) -> String {
        self.files.get(path).map(|bytes| String::from_utf8_lossy(bytes).into_owned()).unwrap_or_default()
    }

    /// The files after changes.
    pub(super) fn with(&self, changes: &Changes) -> Files {
        let mut files = (*self.files).clone();
        for (path, text) in changes {
            match text {
                Some(text) => drop(files.insert(path.clone(), text.clone().into_bytes())),
                None => drop(files.remove(path)),
            }
        }
        files
    }

    /// The folder, for people.
    pub(super) fn place(&self) -> String {
        self.source
            .as_deref()
            .map_or_else(|| "the bundle that ships".to_owned(), |path| path.display().to_string())
    }
}

/// Why nothing was saved.
#[derive(Debug)]
pub(super) enum NotSaved {
    Closed(Closed),
    /// The bundle is another than the one the page was opened on.
    Meanwhile,
    Mistakes(Vec<Diagnostic>),
    Nothing,
    Failed(String),
}

impl NotSaved {
    /// In a sentence.
    pub(super) fn sentence(&self) -> String {
        match self {
            Self::Closed(closed) => sentence(closed),
            Self::Meanwhile => {
                "The bundle was changed since you opened this page. Nothing was saved; what you wrote is still below, compared with the bundle as it is now.".to_owned()
            }
            Self::Mistakes(mistakes) => {
                let first = mistakes.first().map(ToString::to_string).unwrap_or_default();
                format!("Nothing was saved: {first}. The bundle before stays in force.")
            }
            Self::Nothing => "Nothing was changed.".to_owned(),
            Self::Failed(why) => format!("Nothing was saved: {why}."),
        }
    }
}

impl Desk {
    pub(super) fn of(home: &Home) -> Self {
        Self { turn: tokio::sync::Mutex::default(), versions: Versions::of(home) }
    }

    pub(super) fn versions(&self) -> &Versions {
        &self.versions
    }

    /// Saves changes, for whoever makes them: recorded first, then written. Gives the number of the version and of the
    /// runs that could not take it up.
    pub(super) async fn save(
        &self,
        seen: &Seen,
        visitor: &Visitor,
        base: &str,
        changes: &Changes,
        what: &str,
    ) -> Result<u64, NotSaved> {
        let _turn = self.turn.lock().await;
        let standing = standing(seen).await.map_err(NotSaved::Failed)?;
        if let Some(closed) = standing.closed {
            return Err(NotSaved::Closed(closed));
        }
        if standing.digest() != base {
            return Err(NotSaved::Meanwhile);
        }
        let files = standing.with(changes);
        let (before, after) = (standing.digest(), Bundle::digest_of(&files).to_string());
        if before == after {
            return Err(NotSaved::Nothing);
        }
        let loaded = {
            let files = files.clone();
            tokio::task::spawn_blocking(move || policy::load(&files)).await
        };
        loaded.map_err(|error| NotSaved::Failed(error.to_string()))?.map_err(NotSaved::Mistakes)?;
        let by = &visitor.session.principal;
        let names: Vec<String> = changes.keys().map(|path| format!("`{path}`")).collect();
        let said = format!(
            "{} changes {} of the bundle in the console: {what}. Bundle {} before, {} after.",
            by.id,
            names.join(", "),
            short(&before),
            short(&after)
        );
        let recorded = people::record(seen, by.clone(), said).await;
        let record = Some(recorded.map_err(|failure| NotSaved::Failed(failure.told().1))?);
        let failed = |error: io::Error| NotSaved::Failed(error.to_string());
        let own = seen.shared.home.path().join(OWN);
        let folder = Some(standing.source.as_deref().unwrap_or(&own));
        let kept = Kept { folder, old: &standing.files, new: &files, by: &by.id, what, record };
        let number = self.versions.keep(&kept).map_err(failed)?;
        match &standing.source {
            Some(folder) => {
                versions::write(folder, Bundle::digest_of(&standing.files), changes).map_err(failed)?;
            }
            None => begin_own(seen, &files).map_err(NotSaved::Failed)?,
        }
        // What a run cannot record it goes on without, under the old bundle; the daemon's log says so.
        let _ = seen.shared.gate.reload(false).await;
        Ok(number)
    }
}

/// The first digits of a digest.
pub(super) fn short(digest: &str) -> &str {
    digest.rsplit(':').next().and_then(|hex| hex.get(..8)).unwrap_or(digest)
}

/// The bundle as it stands.
pub(super) async fn standing(seen: &Seen) -> Result<Standing, String> {
    let bundles = Arc::clone(&seen.shared.gate);
    let read = tokio::task::spawn_blocking(move || {
        let (source, bundle) = bundles.bundles().get(None).map_err(|error| error.to_string())?;
        let (files, closed) = match &source {
            Some(folder) => {
                let files = bundle_dir::read_files(folder).map_err(|error| error.to_string())?;
                (files, closed(folder))
            }
            None => (bundles.bundles().files_of(bundle.digest()).unwrap_or_default(), None),
        };
        Ok(Standing { source, files: Arc::new(files), bundle, closed })
    });
    read.await.map_err(|error| error.to_string())?
}

/// Begins a bundle of one's own in the state folder, and makes it the one that is served, from now on and after the next
/// start.
fn begin_own(seen: &Seen, files: &Files) -> Result<(), String> {
    let folder = seen.shared.home.path().join(OWN);
    if folder.exists() {
        let place = folder.display();
        return Err(format!("`{place}` is there already; serve it with `portcullis serve --bundle {place}`"));
    }
    let failed = |error: io::Error| format!("cannot write `{}`: {error}", folder.display());
    for (path, content) in files {
        let file = folder.join(path);
        file.parent()
            .map_or(Ok(()), fs::create_dir_all)
            .and_then(|()| fs::write(&file, content))
            .map_err(failed)?;
    }
    seen.shared.gate.bundles().adopt(folder.clone()).map_err(|error| error.to_string())?;
    home_bundle::choose(&seen.shared.home, &folder).map_err(|error| error.to_string())
}
