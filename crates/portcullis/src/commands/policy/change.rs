//! Changes of a bundle that a person makes from the command line: what they would allow, who says so, where that is
//! recorded, and how they are written.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use portcullis_core::bundle::{Bundle, Difference, Direction};
use portcullis_core::id::{Digest, RunId};
use portcullis_gateway::api::{OpenRun, ReportInput, Role};
use portcullis_gateway::request_text::SHOWN_DIGITS_MIN;
use portcullis_gateway::versions::{self, Changes, Closed, Kept, Versions};
use portcullis_session::cases::{CaseFile, run_file};
use portcullis_session::engine::Reach;
use portcullis_session::policy::Pipeline;
use serde_json::{Value, json};

use super::differences;
use crate::ask::{can_ask, says_yes};
use crate::bundle::{self, Opened};
use crate::cli::Global;
use crate::daemon::Daemon;
use crate::exit;
use crate::failure::Failure;
use crate::out::{self, Out, clean_line, short};

/// The surface of the runs that record what was done.
const SURFACE: &str = "policy";

/// Which bundle is changed, and what a person says of it.
#[derive(Debug, clap::Args)]
pub(super) struct ChangeArgs {
    /// Folder of the bundle; the one that the state folder is served with if left out
    #[arg(long, value_name = "DIR")]
    bundle: Option<PathBuf>,
    /// Why a change that may allow more is wanted, for the record
    #[arg(long, value_name = "REASON")]
    widen: Option<String>,
    /// The digest of the bundle that a check ended with, or the start of it, where there is no terminal to ask at
    #[arg(long, value_name = "DIGEST", requires = "widen")]
    shown: Option<String>,
    /// Show what would be done, and write nothing
    #[arg(long)]
    check: bool,
}

/// The bundle's folder, or that of the state folder.
pub(super) fn folder(named: Option<&Path>, global: &Global) -> Result<PathBuf, Failure> {
    if let Some(folder) = named {
        return Ok(folder.to_owned());
    }
    bundle::in_force(global)?.ok_or_else(|| {
        Failure::usage("the state folder is served with the bundle that ships, which has no folder")
            .help("give `--bundle DIR`, with a copy of your own")
    })
}

/// What is to be done.
pub(super) struct Change<'a> {
    /// As a verb: `promotes the draft x into`.
    pub(super) verb: String,
    /// In the list of versions.
    pub(super) what: String,
    /// For the record.
    pub(super) provenance: Value,
    /// The files.
    pub(super) changes: &'a Changes,
    /// The bundle as it stands.
    pub(super) old: &'a Opened,
    /// The files after.
    pub(super) files: &'a BTreeMap<String, Vec<u8>>,
    /// Parts that may allow more.
    pub(super) widening: &'a [Difference],
}

/// What came of it.
pub(super) enum Done {
    /// Made: as this version where one is kept, recorded in this run.
    Made {
        /// The version.
        version: Option<u64>,
        /// The run with the record.
        record: RunId,
        /// Why the daemon did not take it up.
        late: Option<String>,
    },
    /// Only looked at.
    Checked,
    /// It may allow more, and nobody said that this is meant.
    Waits,
    /// A person said no.
    Declined,
}

impl ChangeArgs {
    pub(super) fn folder(&self, global: &Global) -> Result<PathBuf, Failure> {
        folder(self.bundle.as_deref(), global)
    }

    /// Makes a change: asked about where it may allow more, recorded, kept as a version, written, taken up.
    pub(super) fn make(
        &self,
        out: &mut Out,
        change: &Change<'_>,
        folder: &Path,
        global: &Global,
    ) -> Result<Done, Failure> {
        let (before, after) = (change.old.bundle.digest(), Bundle::digest_of(change.files));
        if self.check {
            return Ok(Done::Checked);
        }
        if !change.widening.is_empty() {
            let Some(reason) = &self.widen else { return Ok(Done::Waits) };
            if reason.trim().is_empty() {
                return Err(Failure::usage("--widen takes the reason, for the record"));
            }
            if !self.confirmed(out, after, global)? {
                return Ok(Done::Declined);
            }
        }
        let closed = versions::closed(folder);
        if let Some(Closed::ReadOnly(folder)) = &closed {
            return Err(Failure::no(format!("`{}` may not be written to", folder.display()))
                .help("make it writable for you, or change the bundle where it comes from"));
        }
        let daemon = Daemon::as_approver(global)?;
        let direction = if change.widening.is_empty() { "narrows" } else { "may widen" };
        let said = json!({
            "direction": direction, "reason": self.widen, "before": before, "after": after,
            "widening": change.widening, "of": change.provenance,
        });
        let (record, by) = recorded(&daemon, &change.verb, folder, &said)?;
        let version = if closed.is_none() {
            let what = match &self.widen {
                Some(reason) if !change.widening.is_empty() => format!("{}: {reason}", change.what),
                _ => change.what.clone(),
            };
            let kept = Kept {
                folder: Some(folder),
                old: &change.old.files,
                new: change.files,
                by: &by,
                what: &what,
                record: Some(record),
            };
            let versions = Versions::of(&global.home()?);
            Some(versions.keep(&kept).map_err(|error| unwritten(folder, &error))?)
        } else {
            // What git has, it keeps.
            None
        };
        versions::write(folder, before, change.changes).map_err(|error| unwritten(folder, &error))?;
        let late = daemon.try_ask(|client| client.reload()).err().map(|error| error.to_string());
        Ok(Done::Made { version, record, late })
    }

    /// Whether a person means it: asked at a terminal, elsewhere by the digest of what was shown.
    fn confirmed(&self, out: &mut Out, after: Digest, global: &Global) -> Result<bool, Failure> {
        if let Some(given) = &self.shown {
            if given.len() >= SHOWN_DIGITS_MIN && after.to_string().starts_with(given.as_str()) {
                return Ok(true);
            }
            return Err(Failure::no(format!(
                "`{given}` is not the bundle that this would make: something changed since it was shown, or there are fewer than {SHOWN_DIGITS_MIN} digits"
            ))
            .help("look at it again, with `--check`"));
        }
        if !can_ask(global) {
            return Err(Failure::usage(
                "a change that may allow more must name what was reviewed, and standard input is not a terminal",
            )
            .help("give `--shown` with the digest that `--check` ends with"));
        }
        says_yes(out, "This may allow more than before. Put it in force?")
    }
}

fn unwritten(folder: &Path, error: &std::io::Error) -> Failure {
    Failure::unreadable(format!("the bundle at `{}` was not changed: {error}", folder.display()))
}

/// Says in the ledger what is done, before it is, as a run of its own: its id, and who that is.
fn recorded(daemon: &Daemon, verb: &str, folder: &Path, said: &Value) -> Result<(RunId, String), Failure> {
    let open = OpenRun { surface: SURFACE.to_owned(), ..OpenRun::default() };
    let run = daemon.ask(|client| client.open_run(&open))?.run;
    let id = run.to_string();
    let by = daemon.ask(|client| client.run(&id))?.principal;
    let text = format!("{by} {verb} `{}`.\n{said}", folder.display());
    let input = ReportInput { text, role: Role::Operator, reach: Reach::Replace };
    daemon.ask(|client| client.input(run, &input))?;
    daemon.ask(|client| client.close(run))?;
    Ok((run, by))
}

/// The parts of a bundle that may allow more. A mark alone stops nothing and lets nothing pass.
pub(super) fn widening(old: &Bundle, new: &Bundle) -> Vec<Difference> {
    let is_new_mark = |part: &Difference| part.part.starts_with("mark `") && part.old == "none";
    let mut parts = old.differences(new);
    parts.retain(|part| match part.direction {
        Direction::Loosened => true,
        Direction::Changed => !is_new_mark(part),
        Direction::Tightened | Direction::Neutral => false,
    });
    parts
}

/// A test that does not hold.
pub(super) struct Failed {
    /// The file.
    pub(super) file: String,
    /// The run.
    pub(super) case: String,
    /// Line in the file.
    pub(super) line: usize,
    /// The expected and the actual answer.
    pub(super) message: String,
}

/// The tests of a bundle that do not hold, and how many do.
pub(super) fn failing(
    bundle: &Bundle,
    files: &BTreeMap<String, Vec<u8>>,
    pipeline: &Arc<Pipeline>,
) -> (Vec<Failed>, usize) {
    let (mut failed, mut passed) = (Vec::new(), 0);
    for (file, text) in &bundle.tests {
        match CaseFile::parse(text) {
            Ok(cases) => {
                let report = run_file(&cases, files, pipeline);
                passed += report.passed;
                failed.extend(report.mismatches.into_iter().map(|mismatch| Failed {
                    file: file.clone(),
                    case: mismatch.case,
                    line: mismatch.line,
                    message: mismatch.message,
                }));
            }
            Err(error) => failed.push(Failed {
                file: file.clone(),
                case: String::new(),
                line: error.line,
                message: error.message,
            }),
        }
    }
    (failed, passed)
}

/// What a change allows, for people.
pub(super) fn show(
    out: &mut Out,
    old: &Bundle,
    new: &Bundle,
    widening: &[Difference],
) -> Result<(), Failure> {
    differences::show(out, &old.differences(new))?;
    let (style, word) = match widening.len() {
        0 => (out::GOOD, "narrows".to_owned()),
        parts => (out::NOTICE, format!("may widen, in {}", out::count(parts, "part", "parts"))),
    };
    out.line(format_args!("{style}{word}{style:#}: bundle {} -> {}", old.digest(), new.digest()))
}

/// What came of a change, for people; the exit code.
pub(super) fn told(
    out: &mut Out,
    done: &Done,
    (did, after): (&str, Digest),
    folder: &Path,
) -> Result<u8, Failure> {
    match done {
        Done::Checked | Done::Declined => out.line(format_args!("nothing was written"))?,
        Done::Waits => {
            let notice = out::NOTICE;
            out.line(format_args!(
                "{notice}waits for a person{notice:#}: give --widen with the reason and, where there is no terminal, --shown {}",
                short(&after)
            ))?;
        }
        Done::Made { version, record, late } => {
            let good = out::GOOD;
            let place = clean_line(&folder.to_string_lossy()).into_owned();
            let as_version = match version {
                Some(version) => format!("as version {version}"),
                None => "and the commit is left to you: git manages the folder".to_owned(),
            };
            out.line(format_args!(
                "{good}{did}{good:#} into `{place}`, {as_version}; recorded in run {}",
                short(record)
            ))?;
            if let Some(late) = late {
                let notice = out::NOTICE;
                out.line(format_args!(
                    "{notice}the daemon has not taken it up{notice:#}: {}",
                    clean_line(late)
                ))?;
            }
        }
    }
    Ok(code(done))
}

/// The exit code of what came of a change.
pub(super) fn code(done: &Done) -> u8 {
    match done {
        Done::Checked | Done::Made { .. } => exit::YES,
        Done::Waits => exit::INCOMPLETE,
        Done::Declined => exit::NO,
    }
}

/// What came of a change, as a record.
pub(super) fn record(done: &Done, did: &str, (old, new): (Digest, Digest), widening: &[Difference]) -> Value {
    let (result, version, run, late) = match done {
        Done::Checked => ("checked", None, None, None),
        Done::Waits => ("waits", None, None, None),
        Done::Declined => ("declined", None, None, None),
        Done::Made { version, record, late } => (did, *version, Some(*record), late.as_deref()),
    };
    json!({
        "record": "change", "result": result, "version": version, "recorded_in": run, "late": late,
        "before": old, "after": new, "widening": widening,
    })
}

/// The bundle in a folder.
pub(super) fn open(folder: &Path) -> Result<Opened, Failure> {
    bundle::open(folder)
}
