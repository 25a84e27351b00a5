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
//! Names are this strict so that they mean the same everywhere: no archive and no file system is asked what a path is.

use std::collections::BTreeMap;

use crate::log::verdict::{Evidence, File, LogAttack, LogFailure, LoggedLeaf};

/// The name of the run's file.
pub const EXPORT_FILE: &str = "run.export";

/// Where the runs of an export of many are, each in a folder of its own.
pub const RUNS_FOLDER: &str = "runs/";

/// The name of the file that is for people.
pub const README_FILE: &str = "README.txt";

/// The longest name of a file below `log/` without its ending, in bytes.
pub const EVIDENCE_NAME_BYTES_MAX: usize = 64;

/// Files of an export, by what they are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExportFiles<'a> {
    /// The run; none when it is not there.
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
        let mut sorted = ExportFiles::default();
        let mut parts: BTreeMap<&str, Parts<'a>> = BTreeMap::new();
        let (mut export, mut readme) = (None, None);
        for file in files {
            let place = match file.name {
                EXPORT_FILE => &mut export,
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
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let good = (1..=EVIDENCE_NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(plain);
    good.then_some((name, ending))
}
