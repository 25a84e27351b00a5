//! `portcullis governance`: what a run shows of the controls over it, as signed files, and the check of such files.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use anstyle::Style;
use portcullis_core::bundle::{Bundle, nearest};
use portcullis_core::id::Digest;
use portcullis_gateway::governance::{self, Files, GovernanceError, PackOptions};
use portcullis_governance::check::FileResult;
use portcullis_governance::manifest::sha256;
use portcullis_governance::zip::{self, FILES_MAX};
use portcullis_governance::{FILES, Pack, PackCheck, PackError};
use portcullis_ledger::Reader;
use portcullis_proof::log::VerifierKey;
use portcullis_proof::{CheckResult, Status};
use portcullis_session::bundle_dir;
use portcullis_sim::{default_bundle, developer_bundle};
use serde_json::json;

use super::export::{refused, write_to};
use super::verify::read_trust;
use crate::cli::Global;
use crate::exit;
use crate::failure::Failure;
use crate::out::{self, Out, clean_line, count};

/// The largest archive that is read, in bytes.
const ARCHIVE_BYTES_MAX: u64 = 1 << 30;
/// The longest file with a key.
const KEY_BYTES_MAX: u64 = 4_096;
/// Standard output.
const STDOUT: &str = "-";

const EXAMPLES: &str = "\
Examples:
  portcullis governance 0199ab3c
  portcullis governance 0199ab3c -o pack.zip --key-out store.vkey
  portcullis governance 0199ab3c --file residual_risk_summary.md
  portcullis governance 0199ab3c --bundle policies/2026-03 -o pack.zip
  portcullis governance --check pack.zip --key store.vkey

Without -o and --file the figures of the summary are shown. A run's id may be shortened to six digits or more.
Hand the key over by another way than the pack: a pack that brings its own key proves nothing.

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
    #[arg(required_unless_present = "check")]
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
    /// Make the pack although no reply of the run was verified
    #[arg(long, conflicts_with = "check")]
    unverified: bool,
    /// Where to write the store's public key
    #[arg(long, value_name = "FILE", conflicts_with = "check")]
    key_out: Option<PathBuf>,
    /// Check this pack, an archive or a folder
    #[arg(long, value_name = "PACK", conflicts_with = "run")]
    check: Option<PathBuf>,
    /// The store's public key, as you got it from whoever runs the store
    #[arg(long, value_name = "FILE", requires = "check")]
    key: Option<PathBuf>,
    /// A trust file: heads that are believed already
    #[arg(long, value_name = "FILE", requires = "check")]
    trust: Option<PathBuf>,
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
    let home = global.home()?;
    let reader = Reader::open(&home.ledger()).map_err(|error| {
        Failure::unreadable(error).help("--home gives another state folder; a store is made at the first run")
    })?;
    let run = reader.find_run(args.run.as_deref().unwrap_or_default()).map_err(|error| refused(&error))?;
    let mut bundles = vec![default_bundle::files(), developer_bundle::files()];
    for folder in &args.bundle {
        bundles.push(bundle_dir::read_files(folder).map_err(Failure::unreadable)?);
    }
    let files_of = |digest: Digest| -> Option<Files> {
        bundles.iter().find(|files| Bundle::digest_of(files) == digest).cloned()
    };
    let options = PackOptions { allow_unverified: args.unverified };
    let pack = governance::pack(&reader, run, &home.credentials(), files_of, options)
        .map_err(|error| told(&error, args))?;
    if let Some(path) = &args.key_out {
        let origin = reader.origin().map_err(Failure::unreadable)?;
        let signer = governance::signer(&home.credentials(), &origin).map_err(Failure::unreadable)?;
        let key = format!("{}\n", signer.verifier());
        write_to(path, |out| Ok(out.write_all(key.as_bytes())?))?;
    }
    hand_over(&pack, args, global)?;
    Ok(exit::YES)
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
        count(FILES.len(), "file", "files")
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
            "record": "governance", "run": pack.run, "output": path, "key": args.key_out, "metrics": pack.metrics,
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
    if let Some(key) = &args.key_out {
        out.line(format_args!("{}: the key to check it with", key.display()))?;
    }
    out.finish()
}

fn check(path: &Path, args: &Args, global: &Global) -> Result<u8, Failure> {
    let unreadable = |error: &dyn std::fmt::Display| {
        Failure::unreadable(format!("cannot check `{}`: {error}", path.display()))
    };
    let key = args.key.as_deref().map(read_key).transpose()?;
    let trust = args.trust.as_deref().map(read_trust).transpose()?;
    let files = if path.is_dir() {
        read_folder(path)?
    } else {
        let size = fs::metadata(path).map_err(|error| unreadable(&error))?.len();
        if size > ARCHIVE_BYTES_MAX {
            return Err(unreadable(&format!("it has {size} bytes, the limit is {ARCHIVE_BYTES_MAX}")));
        }
        let bytes = fs::read(path).map_err(|error| unreadable(&error))?;
        match zip::read(&bytes) {
            Ok(files) => files,
            Err(zip::ZipError::File { name, message }) => return damaged(&name, &message, global),
            Err(error) => {
                return Err(unreadable(&error).help(
                    "give the archive that `portcullis governance -o` wrote, or a folder with its files",
                ));
            }
        }
    };
    let report = portcullis_governance::check(&files, key.as_ref(), trust.as_ref());
    let mut out = Out::new();
    if global.json {
        out.json(&json!({"record": "governance-check", "pack": path, "report": report}))?;
    } else {
        show(&report, args, &mut out)?;
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
            "  {:<26} {bad}FAIL{bad:#}         {}",
            clean_line(name),
            clean_line(message)
        ))?;
    }
    out.finish()?;
    Ok(exit::NO)
}

fn read_key(path: &Path) -> Result<VerifierKey, Failure> {
    let failed = |why: String| Failure::unreadable(format!("cannot use `{}`: {why}", path.display()));
    let size = fs::metadata(path).map_err(|error| failed(error.to_string()))?.len();
    if size > KEY_BYTES_MAX {
        return Err(failed(format!("a key has at most {KEY_BYTES_MAX} bytes")));
    }
    let text = fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
    text.trim().parse().map_err(|error: portcullis_proof::log::KeyError| {
        failed(error.to_string()).help("`portcullis governance RUN --key-out FILE` writes the key of a store")
    })
}

fn read_folder(path: &Path) -> Result<Vec<zip::Named>, Failure> {
    let failed = |error: io::Error| Failure::unreadable(format!("cannot read `{}`: {error}", path.display()));
    let mut files = Vec::new();
    for entry in fs::read_dir(path).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if files.len() == FILES_MAX {
            return Err(Failure::unreadable(format!("`{}` has more than {FILES_MAX} files", path.display())));
        }
        if !entry.file_type().map_err(failed)?.is_file() {
            continue;
        }
        files.push((
            entry.file_name().to_string_lossy().into_owned(),
            fs::read(entry.path()).map_err(failed)?,
        ));
    }
    files.sort();
    Ok(files)
}

fn show(report: &PackCheck, args: &Args, out: &mut Out) -> Result<(), Failure> {
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
            "  {:<26} {style}{word:<11}{style:#}  {}",
            clean_line(&file.file),
            clean_line(&file.message)
        ))?;
    }
    for check in report.record.iter().flat_map(|record| &record.checks) {
        if check.result == CheckResult::NotChecked && report.status == Status::Incomplete {
            out.line(format_args!("  the record's {}: {}", check.name, clean_line(&check.detail)))?;
        }
    }
    if report.status == Status::Incomplete && args.key.is_none() {
        let faint = out::FAINT;
        out.line(format_args!(
            "{faint}  give --key FILE to hold the signature against the store's key{faint:#}"
        ))?;
    }
    Ok(())
}
