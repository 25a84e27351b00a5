//! Opens the bundle that a command works with.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use portcullis_core::bundle::{Bundle, Diagnostic, nearest};
use portcullis_gateway::home_bundle;
use portcullis_session::bundle_dir::{self, BundleError};
use portcullis_session::{policy, shipped};

use crate::cli::Global;
use crate::failure::Failure;
use crate::out::{FAINT, clean_line};

/// The files of a bundle that is compiled in.
type Shipped = fn() -> BTreeMap<String, Vec<u8>>;

/// Shows the mistakes of a bundle that is named for later use.
pub(crate) fn check_folder(folder: &Path) -> Result<(), Failure> {
    open(folder).map(drop)
}

/// `--bundle`, the same for every command but `eval`.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct BundleArg {
    /// Folder of the bundle; if left out, the one in force in the state folder
    #[arg(long, value_name = "DIR")]
    bundle: Option<PathBuf>,
}

/// `--bundle` of a suite, whose figures must not depend on a state folder.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct SuiteBundleArg {
    /// Folder of the bundle; the shipped bundle if left out
    #[arg(long, value_name = "DIR")]
    bundle: Option<PathBuf>,
}

/// A bundle with the files it was loaded from.
#[derive(Debug)]
pub(crate) struct Opened {
    /// The bundle.
    pub(crate) bundle: Arc<Bundle>,
    /// Its files by path within it.
    pub(crate) files: BTreeMap<String, Vec<u8>>,
    folder: Option<PathBuf>,
}

impl Opened {
    /// Where a file of the bundle stands, for people.
    pub(crate) fn path(&self, file: &str) -> String {
        shown_path(self.folder.as_deref(), file)
    }

    /// Its folder, or `None` for a bundle that ships.
    pub(crate) fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }
}

fn shown_path(folder: Option<&Path>, file: &str) -> String {
    match folder {
        Some(folder) => folder.join(file).display().to_string(),
        None => format!("shipped bundle/{file}"),
    }
}

impl BundleArg {
    /// The folder, where one is given.
    pub(crate) fn folder(&self) -> Option<&Path> {
        self.bundle.as_deref()
    }

    /// Reads and loads the bundle that is given; otherwise the one in force in the state folder, which is said first.
    pub(crate) fn open(&self, global: &Global) -> Result<Opened, Failure> {
        self.open_or(global, "the shipped one", shipped::default_bundle)
    }

    /// The same with another bundle where none was chosen for the state folder.
    pub(crate) fn open_or(&self, global: &Global, named: &str, shipped: Shipped) -> Result<Opened, Failure> {
        if let Some(folder) = &self.bundle {
            return open(folder);
        }
        let chosen = in_force(global)?;
        say_which(chosen.as_deref(), named, global);
        let opened = open_in(chosen.clone(), shipped);
        match (opened, chosen) {
            (Err(failure), Some(_)) => Err(failure.help(
                "it is the bundle in force in the state folder: mend it, set another with `portcullis serve --bundle \
                 DIR`, or give this command one with --bundle",
            )),
            (opened, _) => opened,
        }
    }
}

impl SuiteBundleArg {
    /// Reads and loads the bundle that is given, or the one that ships for a suite.
    pub(crate) fn open_or(&self, shipped: Shipped) -> Result<Opened, Failure> {
        open_in(self.bundle.clone(), shipped)
    }

    /// As [`Self::open_or`], with one more file.
    pub(crate) fn open_with(&self, shipped: Shipped, path: &str, text: String) -> Result<Opened, Failure> {
        let files = files_in(self.bundle.as_deref(), shipped)?;
        load(self.bundle.clone(), [(path.to_owned(), text.into_bytes())].into_iter().chain(files).collect())
    }
}

/// The folder of the bundle with which the state folder is served, or `None` for the one that ships.
pub(crate) fn in_force(global: &Global) -> Result<Option<PathBuf>, Failure> {
    match (global.home(), global.home_given()) {
        (Ok(home), _) => home_bundle::chosen(&home).map_err(Failure::unreadable),
        (Err(failure), Ok(Some(_)) | Err(_)) => Err(failure),
        // Where there can be no state folder, nobody chose a bundle for it.
        (Err(_), Ok(None)) => Ok(None),
    }
}

/// Names the bundle that was not named. On standard error, since the output may be for a program.
fn say_which(chosen: Option<&Path>, shipped: &str, global: &Global) {
    if global.json {
        return;
    }
    let which = match chosen {
        Some(folder) => {
            format!("{}, in force in the state folder", clean_line(&folder.display().to_string()))
        }
        None => shipped.to_owned(),
    };
    // Who closed standard error does not want to know.
    let _unsaid = writeln!(anstream::stderr(), "{FAINT}bundle: {which}{FAINT:#}");
}

/// Reads and loads the bundle in a folder.
pub(crate) fn open(folder: &Path) -> Result<Opened, Failure> {
    open_in(Some(folder.to_owned()), shipped::default_bundle)
}

/// Loads the bundle that ships.
pub(crate) fn open_shipped() -> Result<Opened, Failure> {
    open_in(None, shipped::default_bundle)
}

/// The bundle in a folder, or one that ships.
pub(crate) fn open_in(folder: Option<PathBuf>, shipped: Shipped) -> Result<Opened, Failure> {
    let files = files_in(folder.as_deref(), shipped)?;
    load(folder, files)
}

fn files_in(folder: Option<&Path>, shipped: Shipped) -> Result<BTreeMap<String, Vec<u8>>, Failure> {
    match folder {
        None => Ok(shipped()),
        Some(folder) => bundle_dir::read_files(folder).map_err(|error| not_a_folder(folder, &error)),
    }
}

/// Loads files that would be those of a bundle's folder.
pub(crate) fn load_files(folder: &Path, files: BTreeMap<String, Vec<u8>>) -> Result<Opened, Failure> {
    load(Some(folder.to_owned()), files)
}

fn load(folder: Option<PathBuf>, files: BTreeMap<String, Vec<u8>>) -> Result<Opened, Failure> {
    match policy::load(&files) {
        Ok(bundle) => Ok(Opened { bundle: Arc::new(bundle), files, folder }),
        Err(diagnostics) => Err(mistakes(folder.as_deref(), diagnostics, &files)),
    }
}

/// Why the bundle in a folder, or the shipped one, is not served.
pub(crate) fn refused(folder: Option<&Path>, error: BundleError) -> Failure {
    match (error, folder) {
        (BundleError::Mistakes { diagnostics, files, .. }, _) => mistakes(folder, diagnostics, &files),
        (error, Some(folder)) => not_a_folder(folder, &error),
        (error, None) => Failure::unreadable(error),
    }
}

/// The mistakes of a bundle, each with its place.
fn mistakes(
    folder: Option<&Path>,
    diagnostics: Vec<Diagnostic>,
    files: &BTreeMap<String, Vec<u8>>,
) -> Failure {
    let place = folder.map_or_else(|| "shipped".into(), Path::to_string_lossy);
    let mistakes = crate::out::count(diagnostics.len(), "error", "errors");
    let message = format!("the bundle at `{place}` does not load: {mistakes}");
    let source = |file: &str| {
        let bytes = files.get(file).map(Vec::as_slice).unwrap_or_default();
        (shown_path(folder, file), String::from_utf8_lossy(bytes).into_owned())
    };
    Failure::mistakes("bundle_invalid", message, diagnostics, source)
        .help("fix the errors above; a bundle with errors is never used")
}

fn not_a_folder(folder: &Path, error: &BundleError) -> Failure {
    let failure = Failure::unreadable(error);
    if folder.join("portcullis.toml").exists() {
        return failure;
    }
    failure.help("a bundle is a folder with a `portcullis.toml`; `portcullis init` drafts one")
}

/// Holds a policy's name against the bundle.
pub(crate) fn check_policy(bundle: &Bundle, name: Option<&str>) -> Result<(), Failure> {
    let Some(name) = name.filter(|name| bundle.policy(name).is_none()) else { return Ok(()) };
    let known: Vec<&str> = bundle.policies().iter().map(|policy| policy.name.as_str()).collect();
    let help = match nearest(name, &known) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("the bundle has: {}", known.join(", ")),
    };
    Err(Failure::usage(format!("there is no runtime policy `{name}` in the bundle")).help(help))
}
