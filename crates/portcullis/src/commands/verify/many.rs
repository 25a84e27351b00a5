//! The answer over an export of many runs: each run for itself, and whether none was left out.

use std::collections::BTreeSet;
use std::path::Path;

use portcullis_proof::log::completeness::{Completeness, complete};
use portcullis_proof::log::files::RUNS_FOLDER;
use portcullis_proof::log::{Evidence, ExportFiles, File as NamedFile};
use portcullis_proof::{LoggedReport, Report, Status};
use serde_json::json;

use super::{read_files, unreadable, verify_in};
use crate::archive::Archive;
use crate::cli::Global;
use crate::failure::Failure;
use crate::out::{self, BAD, GOOD, NOTICE, Out, clean_line};
use crate::trust::Believed;

/// Names and bytes.
type Files = Vec<(String, Vec<u8>)>;

/// Whether an archive holds many runs.
pub(super) fn is_collection(archive: &Archive) -> bool {
    archive.names().iter().any(|name| name.starts_with(RUNS_FOLDER))
}

/// A run of the export.
struct Verified {
    folder: String,
    report: LoggedReport,
    files: Files,
}

pub(super) fn run(
    path: &Path,
    mut archive: Archive,
    believed: &Believed,
    global: &Global,
) -> Result<u8, Failure> {
    let inner = archive.names().iter().filter_map(|name| name.strip_prefix(RUNS_FOLDER)?.split_once('/'));
    let folders: BTreeSet<String> = inner.map(|(folder, _)| format!("{RUNS_FOLDER}{folder}/")).collect();
    let mut runs = Vec::new();
    for folder in folders {
        let mut files = Vec::new();
        let report = verify_in(path, &mut archive, &folder, believed, &mut files)?;
        runs.push(Verified { folder, report, files });
    }
    let mut files = Vec::new();
    read_files(&mut archive, "", |name| !name.starts_with(RUNS_FOLDER), &mut files)?;
    let numbers = numbers(path, &runs, &files, believed)?;
    let status = status(&runs, numbers.as_ref());
    tell(path, status, &runs, numbers.as_ref(), global)?;
    Ok(Report {
        status,
        ..runs
            .into_iter()
            .next()
            .map(|run| run.report.export)
            .ok_or_else(|| unreadable(path, "it has no run"))?
    }
    .exit_code())
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
    let sorted = ExportFiles::sort(&named);
    if let Some(failure) = sorted.problem {
        return Ok(Some(Completeness {
            failure: Some(failure),
            open: None,
            spans: Vec::new(),
            unaccounted: 0,
        }));
    }
    let of_runs: Vec<Vec<NamedFile<'_>>> = runs
        .iter()
        .map(|run| run.files.iter().map(|(name, bytes)| NamedFile { name, bytes }).collect())
        .collect();
    let exported: Vec<Evidence<'_>> = of_runs.iter().map(|files| ExportFiles::sort(files).evidence).collect();
    let found =
        complete(&sorted.evidence, policy, origin, &exported).map_err(|error| unreadable(path, error))?;
    Ok(Some(found))
}

fn status(runs: &[Verified], numbers: Option<&Completeness>) -> Status {
    let all = |status| runs.iter().all(|run| run.report.status == status);
    let origins: BTreeSet<_> = runs.iter().map(|run| run.report.export.origin.as_deref()).collect();
    let invalid = runs.iter().any(|run| run.report.status == Status::Invalid)
        || numbers.is_some_and(|numbers| numbers.failure.is_some())
        || origins.len() > 1;
    if invalid {
        Status::Invalid
    } else if all(Status::Valid) && numbers.is_some_and(Completeness::holds) {
        Status::Valid
    } else {
        Status::Incomplete
    }
}

fn tell(
    path: &Path,
    status: Status,
    runs: &[Verified],
    numbers: Option<&Completeness>,
    global: &Global,
) -> Result<(), Failure> {
    let mut out = Out::new();
    if global.json {
        let of_runs: Vec<_> =
            runs.iter().map(|run| json!({"folder": run.folder, "report": run.report})).collect();
        out.json(&json!({
            "record": "verification-of-many", "file": path, "status": status, "runs": of_runs,
            "numbers": numbers,
        }))?;
        return out.finish();
    }
    let (word, style) = word(status);
    out.line(format_args!("{style}{word}{style:#}"))?;
    for run in runs {
        let (word, style) = self::word(run.report.status);
        let report = &run.report;
        let why = report.export.failure.as_ref().map(|failure| failure.message.clone());
        let why =
            why.or_else(|| report.log.as_ref()?.failure.as_ref().map(|failure| failure.message.clone()));
        let why = why
            .map_or_else(|| format!("{} events", report.export.events), |why| clean_line(&why).into_owned());
        let name = run.folder.trim_start_matches(RUNS_FOLDER).trim_end_matches('/');
        out.line(format_args!("  {} {style}{word:<10}{style:#}  {why}", clean_line(name)))?;
    }
    match numbers {
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
    if let Some(failure) = &numbers.failure {
        out.line(format_args!(
            "  numbers     {BAD}{}{BAD:#} in `{}`",
            failure.attack,
            clean_line(&failure.file)
        ))?;
        return out.line(format_args!("              {}", clean_line(&failure.message)));
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
            "  numbers     {NOTICE}no head accounts for {} segments{NOTICE:#}",
            numbers.unaccounted
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
