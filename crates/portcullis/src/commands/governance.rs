//! `portcullis governance`: what a run shows of the controls over it, as signed files, and the check of such files.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use anstyle::Style;
use portcullis_core::bundle::{Bundle, nearest};
use portcullis_core::id::Digest;
use portcullis_gateway::governance::{self, Files, GovernanceError, OwnControlsError, PackOptions};
use portcullis_governance::check::FileResult;
use portcullis_governance::manifest::sha256;
use portcullis_governance::{FILES, Pack, PackCheck, PackError};
use portcullis_proof::log::Checkpoint;
use portcullis_proof::{CheckResult, Status};
use portcullis_session::{bundle_dir, shipped};
use serde_json::json;

use super::export::{note_waiting, refused, write_to};
use crate::archive::Archive;
use crate::cli::Global;
use crate::commands::completions::run_ids;
use crate::exit;
use crate::failure::Failure;
use crate::out::{self, Out, clean_line, count};
use crate::trust::Believed;

/// Standard output.
const STDOUT: &str = "-";

const EXAMPLES: &str = "\
Examples:
  portcullis governance 0199ab3c
  portcullis governance 0199ab3c -o pack.zip
  portcullis governance 0199ab3c --file residual_risk_summary.md
  portcullis governance 0199ab3c --bundle policies/2026-03 -o pack.zip
  portcullis governance 0199ab3c --controls our-controls --file controls.md
  portcullis log policy --remember > trust.policy
  portcullis governance --check pack.zip --trust trust.policy

Without -o and --file the figures of the summary are shown. A run's id may be shortened to six digits or more. What \
to believe is handed over by another way than the pack: a pack that brings its own key proves nothing.

Exit codes: 0 made, or VALID; 1 there is no such run, or INVALID; 2 no reply of the run was verified, or INCOMPLETE; \
3 could not read.";

/// Make the governance pack of a run, or check one
///
/// Summary, runtime policy, verification results, audit log, analysis of failure modes, residual risks, controls and
/// the run's record, with a signed manifest of their hashes. Everything is made from the record of the run and the
/// bundle that judged it; no daemon is needed.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The run, or the start of its id
    #[arg(required_unless_present = "check", add = run_ids())]
    run: Option<String>,
    /// Where to write the pack, or the one file; `-` for standard output
    #[arg(long, short, value_name = "FILE", conflicts_with = "check")]
    output: Option<PathBuf>,
    /// One file of the pack alone, by its name
    #[arg(long, value_name = "NAME", conflicts_with = "check")]
    file: Option<String>,
    /// Folder of the bundle that judged the run, where it is not a shipped one; may be given again
    #[arg(long, value_name = "DIR", conflicts_with = "check")]
    bundle: Vec<PathBuf>,
    /// Folder whose `*.toml` say what is evidence for which controls, besides those that ship; may be given again
    #[arg(long, value_name = "DIR", conflicts_with = "check")]
    controls: Vec<PathBuf>,
    /// Make the pack although no reply of the run was verified
    #[arg(long, conflicts_with = "check")]
    unverified: bool,
    /// Check this pack, an archive or a folder
    #[arg(long, value_name = "PACK", conflicts_with = "run")]
    check: Option<PathBuf>,
    /// What to believe: a trust policy or a trust file, once for each. Of a pack that is made: the policy that it will
    /// be checked with, from whose remembered trees proofs are added
    #[arg(long, value_name = "FILE")]
    trust: Vec<PathBuf>,
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    match &args.check {
        Some(pack) => check(pack, args, global),
        None => make(args, global),
    }
}

fn make(args: &Args, global: &Global) -> Result<u8, Failure> {
    if let Some(name) = args.file.as_deref().filter(|name| !FILES.contains(name)) {
        let help = match nearest(name, &FILES) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("a pack has: {}", FILES.join(", ")),
        };
        return Err(Failure::usage(format!("a governance pack has no file `{name}`")).help(help));
    }
    let controls = governance::controls(&args.controls).map_err(controls_refused)?;
    let home = global.home()?;
    let reader = home.store().reader().map_err(|error| {
        Failure::unreadable(error).help("--home selects another state folder; the first run creates a store")
    })?;
    let run = reader.find_run(args.run.as_deref().unwrap_or_default()).map_err(|error| refused(&error))?;
    let mut bundles = vec![shipped::default_bundle(), shipped::developer_bundle()];
    for folder in &args.bundle {
        bundles.push(bundle_dir::read_files(folder).map_err(Failure::unreadable)?);
    }
    let files_of = |digest: Digest| -> Option<Files> {
        bundles.iter().find(|files| Bundle::digest_of(files) == digest).cloned()
    };
    let believed = Believed::read(&args.trust)?;
    let remembered: Vec<u64> =
        believed.policy.iter().flat_map(|policy| &policy.remembered).map(Checkpoint::size).collect();
    let options =
        PackOptions { allow_unverified: args.unverified, controls: Some(&controls), remembered: &remembered };
    let places = home.store().log();
    let pack = governance::pack(reader.as_ref(), run, &places, files_of, options)
        .map_err(|error| told(&error, args))?;
    note_waiting(&places);
    hand_over(&pack, args, global)?;
    Ok(exit::YES)
}

/// Mappings that are not taken, each mistake with its place.
pub(super) fn controls_refused(error: OwnControlsError) -> Failure {
    match error {
        OwnControlsError::Mistakes { error, files } => {
            let mistakes = count(error.diagnostics.len(), "error", "errors");
            let source = |file: &str| (file.to_owned(), files.get(file).cloned().unwrap_or_default());
            Failure::mistakes(
                "controls_invalid",
                format!("the controls do not load: {mistakes}"),
                error.diagnostics,
                source,
            )
            .help("fix the errors above; docs/governance.md describes mappings")
        }
        error => Failure::unreadable(error)
            .help("--controls takes a folder with mappings like those of docs/governance.md"),
    }
}

fn told(error: &GovernanceError, args: &Args) -> Failure {
    match error {
        GovernanceError::Ledger(error) => refused(error),
        GovernanceError::Pack(PackError::NotVerified { .. }) => Failure::incomplete(error).help(
            "add `[verification]` to the bundle, so that replies of later runs are verified (docs/verify-output.md); \
             --unverified makes the pack all the same, and each report says what is missing",
        ),
        GovernanceError::Pack(PackError::BundleMissing(_)) => {
            let given = match args.bundle.as_slice() {
                [] => "give its folder as it was then with --bundle; only the shipped bundles are known otherwise",
                _ => "the files in the folders of --bundle have other digests: restore the files as they were then",
            };
            Failure::no(error).help(given)
        }
        error => Failure::unreadable(error),
    }
}

/// Writes what was asked for.
fn hand_over(pack: &Pack, args: &Args, global: &Global) -> Result<(), Failure> {
    let bytes = match &args.file {
        Some(name) => pack.file(name).unwrap_or_default().to_vec(),
        None if args.output.is_some() => pack.zip().map_err(Failure::unreadable)?,
        None => return figures(pack, global),
    };
    match args.output.as_deref() {
        None => write_out(&bytes),
        Some(path) if path == Path::new(STDOUT) => write_out(&bytes),
        Some(path) => {
            write_to(path, |out| Ok(out.write_all(&bytes)?))?;
            written(pack, path, args, global)
        }
    }
}

fn write_out(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    Ok(out.write_all(bytes).and_then(|()| out.flush())?)
}

/// What a pack consists of, for programs.
fn listed(pack: &Pack) -> Vec<serde_json::Value> {
    let file = |(name, bytes): &(String, Vec<u8>)| json!({"file": name, "bytes": bytes.len(), "sha256": sha256(bytes)});
    pack.files.iter().map(file).collect()
}

fn figures(pack: &Pack, global: &Global) -> Result<(), Failure> {
    let mut out = Out::new();
    if global.json {
        let record = json!({
            "record": "governance", "run": pack.run, "metrics": pack.metrics, "files": listed(pack),
        });
        out.json(&record)?;
        return out.finish();
    }
    for metric in &pack.metrics {
        out.line(format_args!("{:<36}  {:>6}", metric.label, metric.value))?;
    }
    let faint = out::FAINT;
    out.line(format_args!(
        "{faint}run {}; -o pack.zip writes {}{faint:#}",
        pack.run,
        count(pack.files.len(), "file", "files")
    ))?;
    out.finish()
}

fn written(pack: &Pack, path: &Path, args: &Args, global: &Global) -> Result<(), Failure> {
    let mut out = Out::new();
    if global.json {
        let files = match &args.file {
            Some(name) => listed(pack).into_iter().filter(|file| file["file"] == name.as_str()).collect(),
            None => listed(pack),
        };
        let record = json!({
            "record": "governance", "run": pack.run, "output": path, "metrics": pack.metrics,
            "files": files,
        });
        out.json(&record)?;
        return out.finish();
    }
    let path = path.display();
    match &args.file {
        Some(name) => out.line(format_args!("{path}: {name} of run {}", pack.run))?,
        None => out.line(format_args!(
            "{path}: {} of run {}, signed",
            count(pack.files.len(), "file", "files"),
            pack.run
        ))?,
    }
    out.finish()
}

fn check(path: &Path, args: &Args, global: &Global) -> Result<u8, Failure> {
    let unreadable = |error: &dyn std::fmt::Display| {
        Failure::unreadable(format!("cannot check `{}`: {error}", path.display()))
    };
    let believed = Believed::read(&args.trust)?;
    let Some(mut archive) = Archive::open(path)? else {
        return Err(unreadable(&"it is neither an archive nor a folder")
            .help("give the archive that `portcullis governance RUN -o` wrote, or a folder with its files"));
    };
    let mut files = Vec::new();
    for name in archive.names().to_vec() {
        match archive.read(&name) {
            Ok(bytes) => files.push((name, bytes)),
            // An archive holds a sum of each file.
            Err(failure) => return damaged(&name, failure.message(), global),
        }
    }
    let report = portcullis_governance::check(&files, believed.heads.as_ref(), believed.policy.as_ref());
    let mut out = Out::new();
    if global.json {
        out.json(&json!({"record": "governance-check", "pack": path, "report": report}))?;
    } else {
        show(&report, &believed, &mut out)?;
    }
    out.finish()?;
    Ok(report.exit_code())
}

/// A file of the archive whose bytes are not those that were packed.
fn damaged(name: &str, message: &str, global: &Global) -> Result<u8, Failure> {
    let mut out = Out::new();
    if global.json {
        let failed = json!({"file": name, "result": "fail", "message": message});
        out.json(&json!({"record": "governance-check", "report": {"status": "INVALID", "files": [failed]}}))?;
    } else {
        let bad = out::BAD;
        out.line(format_args!("{bad}INVALID{bad:#}"))?;
        out.line(format_args!(
            "  {:<32} {bad}FAIL{bad:#}         {}",
            clean_line(name),
            clean_line(message)
        ))?;
    }
    out.finish()?;
    Ok(exit::NO)
}

fn show(report: &PackCheck, believed: &Believed, out: &mut Out) -> Result<(), Failure> {
    let (status, style) = match report.status {
        Status::Valid => ("VALID", out::GOOD),
        Status::Invalid => ("INVALID", out::BAD),
        Status::Incomplete => ("INCOMPLETE", out::NOTICE),
    };
    out.line(format_args!("{style}{status}{style:#}"))?;
    if let Some(pack) = &report.pack {
        out.line(format_args!("  run {} of `{}`", clean_line(&pack.run), clean_line(&pack.origin)))?;
        out.line(format_args!("  head {} {}", pack.head.count, pack.head.link))?;
    }
    for file in &report.files {
        let (word, style) = match file.result {
            FileResult::Pass => ("pass", out::GOOD),
            FileResult::Fail => ("FAIL", out::BAD),
            FileResult::NotChecked => ("not checked", Style::new().dimmed()),
        };
        out.line(format_args!(
            "  {:<32} {style}{word:<11}{style:#}  {}",
            clean_line(&file.file),
            clean_line(&file.message)
        ))?;
    }
    let record = report.record.iter().flat_map(|record| &record.checks);
    let log = report.log.iter().flat_map(|log| &log.checks);
    for (of, check) in record.map(|check| ("record", check)).chain(log.map(|check| ("log", check))) {
        if check.result == CheckResult::NotChecked && report.status == Status::Incomplete {
            out.line(format_args!("  the {of}'s {}: {}", check.name, clean_line(&check.detail)))?;
        }
    }
    if report.status == Status::Incomplete && believed.policy.is_none() {
        let faint = out::FAINT;
        out.next_step(format_args!(
            "{faint}  give --trust FILE, a trust policy: `portcullis log policy --remember` prints that of a store{faint:#}"
        ))?;
    }
    Ok(())
}
