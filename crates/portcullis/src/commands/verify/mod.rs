//! `portcullis verify`: checks an export offline.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _};
use std::path::{Path, PathBuf};

use portcullis_proof::log::files::{Collection, EXPORT_FILE};
use portcullis_proof::log::{ExportFiles, File as NamedFile};
use portcullis_proof::{LoggedReport, verify_sorted, verify_unlogged};
use serde::Serialize;

use crate::archive::{Archive, ZIP_MAGIC};
use crate::bundle::BundleArg;
use crate::cli::Global;
use crate::exit;
use crate::failure::Failure;
use crate::out::Out;
use crate::trust::Believed;

mod many;
mod replay;
mod show;
mod statement;

const EXAMPLES: &str = "\
Examples:
  portcullis verify run.zip --trust trust.policy
  portcullis verify run.export --trust audit.trust
  portcullis verify - < run.export
  portcullis verify run.export --json
  portcullis verify run.zip --trust trust.policy --replay --bundle policy/

Exit codes: 0 VALID, 1 INVALID, 2 INCOMPLETE, 3 could not read.
With --replay also 1 where a verdict comes out otherwise, and 2 where one cannot be computed: a text is withheld, \
erased or redacted.
Without --trust the best answer is INCOMPLETE: an export that was written anew as a whole agrees with itself. A \
trust policy names the keys of logs and witnesses that you believe (specs/trust-policy.md); a trust file holds heads \
that somebody kept elsewhere. Neither may come with the export.";

/// Verify an export of a run, offline
///
/// Recomputes every hash of the export, holds its events against the rules of a run, and its chain against the
/// transparency log that the trust policy believes, or the heads of a trust file. Of an export that was changed it
/// names the attack, the file, the line, the byte and the event.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The export: an archive, a folder, or the text of a run; `-` for such a text on standard input. Or a statement of
    /// `portcullis work statement`
    file: PathBuf,
    /// What to believe: a trust policy or a trust file; once for each
    #[arg(long, value_name = "FILE")]
    trust: Vec<PathBuf>,
    /// Compute every verdict anew, with the bundle that judged the run, and report those that differ
    #[arg(long)]
    replay: bool,
    #[command(flatten)]
    bundle: BundleArg,
}

/// What is printed with `--json`.
#[derive(Serialize)]
struct Verification<'r> {
    record: &'static str,
    file: &'r Path,
    #[serde(flatten)]
    report: &'r portcullis_proof::Report,
    #[serde(skip_serializing_if = "Option::is_none")]
    log: Option<&'r portcullis_proof::log::LogReport>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    ignored: &'r [String],
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    if args.bundle.folder().is_some() && !args.replay {
        return Err(Failure::usage("--bundle is what verdicts are computed with").help("add --replay"));
    }
    let believed = Believed::read(&args.trust)?;
    if let Some(bytes) = statement::read(&args.file)? {
        if args.replay {
            return Err(Failure::usage("a statement has no verdicts to compute"));
        }
        return statement::verify(&bytes, &believed, global);
    }
    let replay =
        if args.replay { Some(replay::Replay::open(&args.file, &args.bundle, global)?) } else { None };
    let archive = if args.file == Path::new("-") { None } else { Archive::open(&args.file)? };
    let report = match archive {
        Some(archive) if Collection::is_one(archive.names().iter().map(String::as_str)) => {
            if replay.is_some() {
                return Err(Failure::usage("verdicts are computed for one run at a time")
                    .help("`portcullis export RUN -o run.zip` exports one run"));
            }
            return many::run(&args.file, archive, &believed, global);
        }
        Some(mut archive) => verify_in(&args.file, &mut archive, "", &believed, &mut Vec::new())?,
        None => {
            let text = match &replay {
                Some(replay) => replay.text()?,
                None => text(&args.file)?,
            };
            judge(&args.file, text, &ExportFiles::default(), &believed)?
        }
    };
    let mut code = portcullis_proof::Report { status: report.status, ..report.export.clone() }.exit_code();
    let mut out = Out::new();
    let mut told = tell(args, &report, &believed, &mut out, global);
    // Of what was tampered with, nothing follows.
    if let Some(replay) = replay.filter(|_| code != exit::NO) {
        let found = replay.compare()?;
        code = found.code(code);
        told = told.and_then(|()| replay.tell(&found, &mut out, global));
    }
    answered(code, told.and_then(|()| out.finish()))
}

/// The answer stands, whether or not somebody reads it to its end.
fn answered(code: u8, told: Result<(), Failure>) -> Result<u8, Failure> {
    match told {
        Ok(()) | Err(Failure::OutputClosed) => Ok(code),
        Err(failure) => Err(failure),
    }
}

fn tell(
    args: &Args,
    report: &LoggedReport,
    believed: &Believed,
    out: &mut Out,
    global: &Global,
) -> Result<(), Failure> {
    if global.json {
        // The answer is the one over both.
        let export = portcullis_proof::Report { status: report.status, ..report.export.clone() };
        out.json(&Verification {
            record: "verification",
            file: &args.file,
            report: &export,
            log: report.log.as_ref(),
            ignored: &report.ignored,
        })
    } else {
        show::report(report, believed, out)
    }
}

/// The text of a run alone. An archive is read from its end, which a pipe does not have before it is over.
fn text(path: &Path) -> Result<Box<dyn BufRead>, Failure> {
    let mut reader: Box<dyn BufRead> = if path == Path::new("-") {
        Box::new(io::stdin().lock())
    } else {
        Box::new(BufReader::new(File::open(path).map_err(|error| unreadable(path, error))?))
    };
    let mut start = Vec::new();
    let length = ZIP_MAGIC.len() as u64;
    reader.by_ref().take(length).read_to_end(&mut start).map_err(|error| unreadable(path, error))?;
    if start == ZIP_MAGIC {
        return Err(unreadable(path, "an archive cannot be read from a pipe")
            .help("store it as a file, and give its name"));
    }
    Ok(Box::new(io::Cursor::new(start).chain(reader)))
}

/// The run below a folder of an archive. `files` gets what the log says of it.
fn verify_in(
    path: &Path,
    archive: &mut Archive,
    folder: &str,
    believed: &Believed,
    files: &mut Vec<(String, Vec<u8>)>,
) -> Result<LoggedReport, Failure> {
    read_files(archive, folder, |_| true, files)?;
    let named: Vec<_> = files.iter().map(|(name, bytes)| NamedFile { name, bytes }).collect();
    let sorted = ExportFiles::sort(&named);
    if sorted.export.is_none() {
        return Err(unreadable(path, format!("there is no `{folder}{EXPORT_FILE}` in it"))
            .help("`portcullis export RUN -o run.zip` makes such an archive"));
    }
    let export = format!("{folder}{EXPORT_FILE}");
    let report = judge(path, archive.reader(&export)?, &sorted, believed)?;
    if report.export.failure.is_some() {
        // It was not read to its end, and a damaged archive has no answer, wherever the damage is.
        archive.check(&export)?;
    }
    Ok(report)
}

/// Reads the files below a folder by their names in it: those of the log; of all others only whether the archive is
/// sound there.
fn read_files(
    archive: &mut Archive,
    folder: &str,
    wanted: impl Fn(&str) -> bool,
    files: &mut Vec<(String, Vec<u8>)>,
) -> Result<(), Failure> {
    for name in archive.names().to_vec() {
        let Some(inner) = name.strip_prefix(folder).filter(|inner| wanted(inner)) else { continue };
        let bytes = if inner.starts_with("log/") {
            archive.read(&name)?
        } else {
            if inner != EXPORT_FILE {
                archive.check(&name)?;
            }
            Vec::new()
        };
        files.push((inner.to_owned(), bytes));
    }
    Ok(())
}

/// Without a policy nothing of the log can be believed, and the answer is over the run alone.
fn judge(
    path: &Path,
    export: impl BufRead,
    sorted: &ExportFiles<'_>,
    believed: &Believed,
) -> Result<LoggedReport, Failure> {
    let heads = believed.heads.as_ref();
    match &believed.policy {
        Some(policy) => verify_sorted(export, sorted, heads, policy).map_err(|error| unreadable(path, error)),
        None => verify_unlogged(export, sorted, heads).map_err(|error| unreadable(path, error)),
    }
}

fn unreadable(path: &Path, error: impl std::fmt::Display) -> Failure {
    Failure::unreadable(format!("cannot verify `{}`: {error}", path.display()))
}
