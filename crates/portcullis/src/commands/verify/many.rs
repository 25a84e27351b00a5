//! The answer over an export of many runs: each run for itself, and whether none was left out.

use std::collections::HashSet;
use std::path::Path;

use portcullis_proof::kin::{self, Kin, KinFailure, Member, TREE_FILE};
use portcullis_proof::log::completeness::{Completeness, Exported, complete};
use portcullis_proof::log::files::{Collection, EXPORT_FILE, RUNS_FOLDER};
use portcullis_proof::log::{ExportFiles, File as NamedFile, LogAttack, LogFailure};
use portcullis_proof::{Id, LoggedReport, Report, Status};
use serde::Serialize;
use serde_json::{Value, json};

use super::{answered, read_files, unreadable, verify_in};
use crate::archive::Archive;
use crate::cli::Global;
use crate::failure::Failure;
use crate::out::{self, BAD, GOOD, NOTICE, Out, clean_line, count};
use crate::trust::Believed;

/// Names and bytes.
type Files = Vec<(String, Vec<u8>)>;

/// A run of the export.
struct Verified {
    folder: String,
    report: LoggedReport,
    files: Files,
}

/// The first thing that is wrong, with the path of its file in the export.
#[derive(Serialize)]
struct Wrong {
    attack: Value,
    file: String,
    line: Option<u64>,
    byte: u64,
    seq: Option<u64>,
    message: String,
}

impl Wrong {
    /// A failure of the log's evidence below a folder.
    fn logged(folder: &str, failure: &LogFailure) -> Wrong {
        let LogFailure { attack, file, line, byte, message } = failure;
        let (attack, file, message) = (json!(attack), format!("{folder}{file}"), message.clone());
        Wrong { attack, file, line: *line, byte: *byte, seq: None, message }
    }

    /// Runs that do not agree on which opened which.
    fn of_kin(runs: &[Verified], failure: &KinFailure) -> Wrong {
        let KinFailure { attack, member, seq, message } = failure;
        let of = member.and_then(|place| runs.get(place));
        let file = of.map_or_else(|| TREE_FILE.to_owned(), |run| format!("{}{EXPORT_FILE}", run.folder));
        Wrong { attack: json!(attack), file, line: None, byte: 0, seq: *seq, message: message.clone() }
    }

    /// What is wrong with one run.
    fn of_run(run: &Verified) -> Option<Wrong> {
        let logged = || Some(Wrong::logged(&run.folder, run.report.log.as_ref()?.failure.as_ref()?));
        let Some(failure) = &run.report.export.failure else { return logged() };
        Some(Wrong {
            attack: json!(failure.attack),
            file: format!("{}{EXPORT_FILE}", run.folder),
            line: Some(failure.line),
            byte: failure.byte,
            seq: failure.seq,
            message: failure.message.clone(),
        })
    }
}

pub(super) fn run(
    path: &Path,
    mut archive: Archive,
    believed: &Believed,
    global: &Global,
) -> Result<u8, Failure> {
    let names = archive.names().to_vec();
    let named: Vec<_> = names.iter().map(|name| NamedFile { name, bytes: b"" }).collect();
    let sorted = Collection::sort(&named);
    let mut runs = Vec::new();
    for folder in &sorted.folders {
        let mut files = Vec::new();
        let report = verify_in(path, &mut archive, folder, believed, &mut files)?;
        runs.push(Verified { folder: (*folder).to_owned(), report, files });
    }
    let first = runs.first().ok_or_else(|| unreadable(path, "it has no run"))?;
    let mut files = Vec::new();
    read_files(
        &mut archive,
        "",
        |name| !sorted.folders.iter().any(|folder| name.starts_with(folder)),
        &mut files,
    )?;
    let root = match &sorted.tree {
        Some(_) => Some(kin::root_of(&archive.read(TREE_FILE)?)),
        None => None,
    };
    // Of a tree, the records of its runs say whether one was left out.
    let numbers = match (&sorted.beside.problem, &root) {
        (None, None) => numbers(path, &runs, &files, believed)?,
        _ => None,
    };
    let wrong = sorted.beside.problem.as_ref().map(|problem| Wrong::logged("", problem));
    let wrong = wrong.or_else(|| runs.iter().find_map(Wrong::of_run)).or_else(|| together(&runs));
    let in_kin = || related(&runs, root.as_ref()).err().map(|failure| Wrong::of_kin(&runs, &failure));
    let in_numbers = || Some(Wrong::logged("", numbers.as_ref()?.failure.as_ref()?));
    let wrong = wrong.or_else(in_kin).or_else(in_numbers);
    let whole = root.is_some() || numbers.as_ref().is_some_and(Completeness::holds);
    let status = status(&runs, wrong.is_some(), whole);
    let code = Report { status, ..first.report.export.clone() }.exit_code();
    let root = root.and_then(Result::ok);
    let answer = Answer { status, wrong, root, numbers };
    answered(code, tell(path, &answer, &runs, global))
}

/// What is said of all runs together.
struct Answer {
    status: Status,
    wrong: Option<Wrong>,
    /// Of a tree: the run that all others are below.
    root: Option<Id>,
    numbers: Option<Completeness>,
}

/// Whether the runs agree on which opened which, and are a whole tree where they are said to be one.
fn related(runs: &[Verified], root: Option<&Result<Id, KinFailure>>) -> Result<(), KinFailure> {
    let root = root.cloned().transpose()?;
    let member = |run: &Verified| Some((run.report.export.run?, run.report.kin.clone()));
    let known: Vec<(Id, Kin)> = runs.iter().filter_map(member).collect();
    let members: Vec<Member<'_>> = known.iter().map(|(run, kin)| Member { run: *run, kin }).collect();
    kin::check(&members, root)
}

/// What is wrong with runs that are good each for itself: one that stands twice, or is of another store.
fn together(runs: &[Verified]) -> Option<Wrong> {
    let origin = runs.first()?.report.export.origin.as_deref();
    let mut known = HashSet::new();
    runs.iter().find_map(|run| {
        let export = &run.report.export;
        let (attack, line, message) = if export.origin.as_deref() != origin {
            (LogAttack::WrongOrigin, Some(1), "the run is of another store than the first one")
        } else if !known.insert(export.run) {
            (LogAttack::FilesMismatched, None, "the run occurs twice in the export")
        } else {
            return None;
        };
        let (file, message) = (EXPORT_FILE.to_owned(), message.to_owned());
        Some(Wrong::logged(&run.folder, &LogFailure { attack, file, line, byte: 0, message }))
    })
}

/// Without a policy, nobody's word on the numbers can be believed.
fn numbers(
    path: &Path,
    runs: &[Verified],
    files: &[(String, Vec<u8>)],
    believed: &Believed,
) -> Result<Option<Completeness>, Failure> {
    let Some(policy) = &believed.policy else { return Ok(None) };
    let Some(origin) = runs.iter().find_map(|run| run.report.export.origin.as_deref()) else {
        return Ok(None);
    };
    let named: Vec<_> = files.iter().map(|(name, bytes)| NamedFile { name, bytes }).collect();
    let of_runs: Vec<Vec<NamedFile<'_>>> = runs
        .iter()
        .map(|run| run.files.iter().map(|(name, bytes)| NamedFile { name, bytes }).collect())
        .collect();
    let exported: Vec<Exported<'_>> = runs
        .iter()
        .zip(&of_runs)
        .map(|(run, files)| Exported { folder: &run.folder, evidence: ExportFiles::sort(files).evidence })
        .collect();
    let evidence = Collection::sort(&named).beside.evidence;
    let found = complete(&evidence, policy, origin, &exported).map_err(|error| unreadable(path, error))?;
    Ok(Some(found))
}

fn status(runs: &[Verified], is_wrong: bool, whole: bool) -> Status {
    let all = |status| runs.iter().all(|run| run.report.status == status);
    if is_wrong {
        Status::Invalid
    } else if all(Status::Valid) && whole {
        Status::Valid
    } else {
        Status::Incomplete
    }
}

fn tell(path: &Path, answer: &Answer, runs: &[Verified], global: &Global) -> Result<(), Failure> {
    let Answer { status, wrong, root, numbers } = answer;
    let mut out = Out::new();
    if global.json {
        let of_runs: Vec<_> =
            runs.iter().map(|run| json!({"folder": run.folder, "report": run.report})).collect();
        out.json(&json!({
            "record": "verification-of-many", "file": path, "status": status, "failure": wrong,
            "runs": of_runs, "tree": root, "numbers": numbers,
        }))?;
        return out.finish();
    }
    let (word, style) = word(*status);
    match wrong {
        None => out.line(format_args!("{style}{word}{style:#}"))?,
        Some(Wrong { attack, file, line, byte, message, .. }) => {
            let attack = attack.as_str().unwrap_or_default();
            let line = line.map_or_else(String::new, |line| format!(", line {line}"));
            out.line(format_args!("{style}{word} {attack}{style:#}"))?;
            out.line(format_args!("  at `{}`{line}, byte {byte}", clean_line(file)))?;
            out.line(format_args!("  {}", clean_line(message)))?;
        }
    }
    for run in runs {
        let (word, style) = self::word(run.report.status);
        let report = &run.report;
        let why = report.export.failure.as_ref().map(|failure| failure.message.clone());
        let why =
            why.or_else(|| report.log.as_ref()?.failure.as_ref().map(|failure| failure.message.clone()));
        let why = why.map_or_else(
            || count(report.export.events, "event", "events"),
            |why| clean_line(&why).into_owned(),
        );
        let name = run.folder.trim_start_matches(RUNS_FOLDER).trim_end_matches('/');
        out.line(format_args!("  {} {style}{word:<10}{style:#}  {why}", clean_line(name)))?;
    }
    if let Some(root) = root {
        let runs = count(runs.len() as u64, "run", "runs");
        let (word, style) = if wrong.is_none() { ("whole", GOOD) } else { ("not whole", BAD) };
        out.line(format_args!("  tree        {style}{word}{style:#}: {runs}, run {root} and all below it"))?;
    }
    match numbers {
        None if wrong.is_some() || root.is_some() => {}
        None => {
            let faint = out::FAINT;
            out.line(format_args!(
                "{faint}  give --trust with a policy to learn whether a run was left out{faint:#}"
            ))?;
        }
        Some(numbers) => tell_numbers(numbers, &mut out)?,
    }
    out.finish()
}

fn tell_numbers(numbers: &Completeness, out: &mut Out) -> Result<(), Failure> {
    if numbers.failure.is_some() {
        return out.line(format_args!("  numbers     {BAD}cannot be believed{BAD:#}"));
    }
    for span in &numbers.spans {
        let style = if span.missing == 0 && span.withheld == 0 { GOOD } else { NOTICE };
        let writer: String = span.writer.to_string().chars().take(8).collect();
        out.line(format_args!(
            "  numbers     {style}{} to {}{style:#} of writer {writer}: {} exported, {} known by their heads alone, {} missing",
            span.first, span.last, span.exported, span.withheld, span.missing
        ))?;
    }
    if numbers.spans.is_empty() {
        out.line(format_args!("  numbers     {NOTICE}nothing accounts for them{NOTICE:#}"))?;
    }
    if numbers.unaccounted > 0 {
        out.line(format_args!(
            "  numbers     {NOTICE}no head accounts for {}{NOTICE:#}",
            count(numbers.unaccounted, "segment", "segments")
        ))?;
    }
    if let Some(open) = &numbers.open {
        out.line(format_args!("  numbers     {NOTICE}not to the end{NOTICE:#}: {}", clean_line(open)))?;
    }
    Ok(())
}

fn word(status: Status) -> (&'static str, anstyle::Style) {
    match status {
        Status::Valid => ("VALID", GOOD),
        Status::Invalid => ("INVALID", BAD),
        Status::Incomplete => ("INCOMPLETE", NOTICE),
    }
}
