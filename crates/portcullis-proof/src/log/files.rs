//! An export with its evidence as files: a folder, or what an archive holds.
//!
//! ```text
//! run.export                   the run
//! log/open.leaf                a leaf of the log,
//! log/open.tlog-proof          and the proof that it is there
//! log/1.consistency            from one tree to another
//! README.txt                   for people; nothing vouches for it
//! ```
//!
//! Of many runs each has a folder `runs/NAME/` of such files, and `log/` beside them accounts for their numbers. If
//! they are a run and all that it opened, `tree` stands there instead, and names that run.
//!
//! Names are this strict so that they mean the same everywhere: no archive and no file system is asked what a path is.

use std::collections::{BTreeMap, BTreeSet};

use crate::kin::TREE_FILE;
use crate::log::verdict::{Evidence, File, LogAttack, LogFailure, LoggedLeaf};

/// The name of the run's file.
pub const EXPORT_FILE: &str = "run.export";

/// Where the runs of an export of many are, each in a folder of its own.
pub const RUNS_FOLDER: &str = "runs/";

/// The name of the file that is for people.
pub const README_FILE: &str = "README.txt";

/// The longest name of a file below `log/` without its ending, and of a folder below `runs/`, in bytes.
pub const NAME_BYTES_MAX: usize = 64;

/// Files of an export, by what they are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExportFiles<'a> {
    /// The run, or `None` if it is not there.
    pub export: Option<&'a [u8]>,
    /// What the log says of it.
    pub evidence: Evidence<'a>,
    /// Files that say what to believe. They are not read: that is for the reader to bring.
    pub ignored: Vec<&'a str>,
    /// The first file that should not be there, or whose other half is missing.
    pub problem: Option<LogFailure>,
}

/// One name below `log/`, as far as its files are there.
#[derive(Default)]
struct Parts<'a> {
    leaf: Option<File<'a>>,
    proof: Option<File<'a>>,
    consistency: Option<File<'a>>,
}

impl<'a> ExportFiles<'a> {
    /// Sorts files out by their names.
    #[must_use]
    pub fn sort(files: &[File<'a>]) -> ExportFiles<'a> {
        ExportFiles::sort_with(files, true)
    }

    /// Beside the folders of runs there is no run.
    fn sort_with(files: &[File<'a>], run_belongs: bool) -> ExportFiles<'a> {
        let mut sorted = ExportFiles::default();
        let mut parts: BTreeMap<&str, Parts<'a>> = BTreeMap::new();
        let (mut export, mut readme) = (None, None);
        // Whatever the container's order is, the same file is named first.
        let mut files = files.to_vec();
        files.sort_by_key(|file| file.name);
        for file in &files {
            let place = match file.name {
                EXPORT_FILE if run_belongs => &mut export,
                README_FILE => &mut readme,
                name if name.ends_with(".policy") || name.ends_with(".trust") => {
                    sorted.ignored.push(name);
                    continue;
                }
                name => match evidence_name(name) {
                    Some((name, "leaf")) => &mut parts.entry(name).or_default().leaf,
                    Some((name, "tlog-proof")) => &mut parts.entry(name).or_default().proof,
                    Some((name, "consistency")) => &mut parts.entry(name).or_default().consistency,
                    _ => {
                        sorted.fail(name, "no export has a file of this name");
                        continue;
                    }
                },
            };
            if place.replace(*file).is_some() {
                sorted.fail(file.name, "the file is there twice");
            }
        }
        sorted.export = export.map(|file| file.bytes);
        for part in parts.into_values() {
            match (part.leaf, part.proof) {
                (Some(leaf), Some(proof)) => sorted.evidence.leaves.push(LoggedLeaf { leaf, proof }),
                (Some(leaf), None) => sorted.fail(leaf.name, "the proof of this leaf is missing"),
                (None, Some(proof)) => sorted.fail(proof.name, "the leaf of this proof is missing"),
                (None, None) => {}
            }
            sorted.evidence.consistency.extend(part.consistency);
        }
        sorted
    }

    fn fail(&mut self, file: &str, message: &str) {
        let (attack, file, message) = (LogAttack::FilesMismatched, file.to_owned(), message.to_owned());
        self.problem.get_or_insert(LogFailure { attack, file, line: None, byte: 0, message });
    }
}

/// Name and ending of a file below `log/`.
fn evidence_name(path: &str) -> Option<(&str, &str)> {
    let (name, ending) = path.strip_prefix("log/")?.split_once('.')?;
    is_plain(name).then_some((name, ending))
}

/// Whether a name means the same everywhere.
fn is_plain(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(plain)
}

/// The files of an export of many runs, by where they are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Collection<'a> {
    /// The folders of the runs, `runs/NAME/`, in the order of their bytes.
    pub folders: BTreeSet<&'a str>,
    /// The files beside them. [`ExportFiles::export`] is `None`: a run belongs in a folder.
    pub beside: ExportFiles<'a>,
    /// The file that names the root of a tree, if they are one. There is no log beside it.
    pub tree: Option<File<'a>>,
}

impl<'a> Collection<'a> {
    /// Whether files of these names are those of many runs.
    pub fn is_one<'n>(names: impl IntoIterator<Item = &'n str>) -> bool {
        names.into_iter().any(|name| name.starts_with(RUNS_FOLDER))
    }

    /// Sorts files out by their names. Those in the folders of runs are for [`ExportFiles::sort`].
    #[must_use]
    pub fn sort(files: &[File<'a>]) -> Collection<'a> {
        let folders = files.iter().filter_map(|file| run_folder(file.name)).collect();
        let mut beside: Vec<File<'a>> =
            files.iter().filter(|file| run_folder(file.name).is_none()).copied().collect();
        let tree = beside.iter().position(|file| file.name == TREE_FILE).map(|at| beside.swap_remove(at));
        let log = beside.iter().map(|file| file.name).filter(|name| name.starts_with("log/")).min();
        let log = log.filter(|_| tree.is_some());
        let mut beside = ExportFiles::sort_with(&beside, false);
        if let Some(name) = log {
            let before = beside.problem.take().filter(|problem| *problem.file < *name);
            beside.problem = before;
            beside.fail(name, "a tree has no log beside its runs");
        }
        Collection { folders, beside, tree }
    }
}

/// The folder of the run that a file belongs to.
fn run_folder(path: &str) -> Option<&str> {
    let (name, _) = path.strip_prefix(RUNS_FOLDER)?.split_once('/')?;
    if is_plain(name) { path.get(..RUNS_FOLDER.len() + name.len() + 1) } else { None }
}
