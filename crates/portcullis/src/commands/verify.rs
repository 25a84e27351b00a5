//! `portcullis verify`: checks an export offline.

use std::fs::File;
use std::io::{self, BufReader, Read as _};
use std::path::{Path, PathBuf};

use anstyle::Style;
use portcullis_proof::trust::TRUST_HEADS_MAX;
use portcullis_proof::{CheckResult, Report, Status, Trust};
use serde::Serialize;

use crate::cli::Global;
use crate::failure::Failure;
use crate::out::{self, Out, clean_line};

/// The longest trust file in bytes: all the heads it may hold, and as much again for comments.
const TRUST_BYTES_MAX: u64 = TRUST_HEADS_MAX as u64 * 256;

const EXAMPLES: &str = "\
Examples:
  portcullis verify run.export --trust audit.trust
  portcullis verify - < run.export
  portcullis verify run.export --json

Exit codes: 0 VALID, 1 INVALID, 2 INCOMPLETE, 3 could not read.
Without a trust file the best answer is INCOMPLETE: an export that was written anew as a whole agrees with \
itself. The trust file holds heads that somebody kept elsewhere.";

/// Verify an export of a run, offline
///
/// Recomputes every hash of the export, holds its events against the rules of a run, and its chain against the
/// heads of the trust file. Of an export that was changed it names the attack, the line, the byte and the event.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The export; `-` for standard input
    file: PathBuf,
    /// The trust file: heads that are believed already
    #[arg(long, value_name = "FILE")]
    trust: Option<PathBuf>,
}

/// What is printed with `--json`.
#[derive(Serialize)]
struct Verification<'r> {
    record: &'static str,
    file: &'r Path,
    #[serde(flatten)]
    report: &'r Report,
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    let trust = args.trust.as_deref().map(read_trust).transpose()?;
    let report = if args.file == Path::new("-") {
        portcullis_proof::verify(io::stdin().lock(), trust.as_ref())
    } else {
        let file = File::open(&args.file).map_err(|error| unreadable(&args.file, error))?;
        portcullis_proof::verify(BufReader::new(file), trust.as_ref())
    };
    let report = report.map_err(|error| unreadable(&args.file, error))?;
    let mut out = Out::new();
    if global.json {
        out.json(&Verification { record: "verification", file: &args.file, report: &report })?;
    } else {
        show(&report, args.trust.is_some(), &mut out)?;
    }
    out.finish()?;
    Ok(report.exit_code())
}

fn unreadable(path: &Path, error: impl std::fmt::Display) -> Failure {
    Failure::unreadable(format!("cannot verify `{}`: {error}", path.display()))
}

fn read_trust(path: &Path) -> Result<Trust, Failure> {
    let failed = |why: String| Failure::unreadable(format!("cannot use `{}`: {why}", path.display()));
    let file = File::open(path).map_err(|error| failed(error.to_string()))?;
    let mut text = String::new();
    file.take(TRUST_BYTES_MAX + 1).read_to_string(&mut text).map_err(|error| failed(error.to_string()))?;
    if text.len() as u64 > TRUST_BYTES_MAX {
        return Err(failed(format!("a trust file has at most {TRUST_BYTES_MAX} bytes")));
    }
    Trust::parse(&text).map_err(|error| {
        failed(error.to_string()).help("the format stands in specs/run-chain.md; the first line is its name")
    })
}

fn show(report: &Report, with_trust: bool, out: &mut Out) -> Result<(), Failure> {
    let (status, style) = match report.status {
        Status::Valid => ("VALID", out::GOOD),
        Status::Invalid => ("INVALID", out::BAD),
        Status::Incomplete => ("INCOMPLETE", out::NOTICE),
    };
    match &report.failure {
        None => out.line(format_args!("{style}{status}{style:#}"))?,
        Some(failure) => {
            let event = failure.seq.map_or_else(String::new, |seq| format!(", event {seq}"));
            out.line(format_args!("{style}{status} {}{style:#}", failure.attack))?;
            out.line(format_args!("  at line {}, byte {}{event}", failure.line, failure.byte))?;
            out.line(format_args!("  {}", clean_line(&failure.message)))?;
        }
    }
    if let (Some(run), Some(origin)) = (report.run, &report.origin) {
        out.line(format_args!("  run         {run} of `{}`", clean_line(origin)))?;
    }
    if let Some(head) = report.head {
        out.line(format_args!("  head        {} {}", head.count, head.link))?;
    }
    for check in &report.checks {
        let (word, style) = match check.result {
            CheckResult::Pass => ("pass", out::GOOD),
            CheckResult::Fail => ("FAIL", out::BAD),
            CheckResult::NotChecked => ("not checked", Style::new().dimmed()),
        };
        let detail = clean_line(&check.detail);
        out.line(format_args!("  {:<11} {style}{word:<11}{style:#}  {detail}", check.name))?;
    }
    if report.status == Status::Incomplete && !with_trust {
        let faint = out::FAINT;
        out.line(format_args!(
            "{faint}  give --trust FILE to hold the chain against what you know{faint:#}"
        ))?;
    }
    Ok(())
}
