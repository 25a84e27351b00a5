//! `portcullis export`: one run as a file that a stranger can verify.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use portcullis_ledger::{ExportOptions, ExportSummary, LedgerError, Reader, Refusal};
use serde_json::json;

use crate::cli::Global;
use crate::exit;
use crate::failure::Failure;
use crate::out::{Out, count};

const EXAMPLES: &str = "\
Examples:
  portcullis export 0199ab3c -o run.export --trust-out run.trust
  portcullis export 0199ab3c --no-payloads > run.export
  portcullis verify run.export --trust run.trust

A run's id may be shortened to six digits or more. Keep the trust file where whoever can change the store cannot \
change it: it is what the export is held against.";

/// Export a run
///
/// Reads the store of the state folder directly; no daemon is needed. The events are handed over byte for byte,
/// with the payloads (arguments, results, texts) unless --no-payloads is given.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The run, or the start of its id
    run: String,
    /// Where to write the export; standard output if left out
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Where to write the trust file: where the run stands now
    #[arg(long, value_name = "FILE")]
    trust_out: Option<PathBuf>,
    /// Leave the payloads out; their commitments stay
    #[arg(long)]
    no_payloads: bool,
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    let folder = global.home()?.ledger();
    let reader = Reader::open(&folder).map_err(|error| {
        Failure::unreadable(error).help("--home gives another state folder; a store is made at the first run")
    })?;
    let run = reader.find_run(&args.run).map_err(|error| refused(&error))?;
    let options = ExportOptions { payloads: !args.no_payloads };
    let export = |out: &mut dyn Write| reader.export_run(run, out, options).map_err(|error| refused(&error));
    let summary = match &args.output {
        Some(path) => write_to(path, export)?,
        // The export may not fit into memory, so it goes out as it is read.
        None => export(&mut io::stdout().lock())?,
    };
    if let Some(path) = &args.trust_out {
        let trust = reader.trust_text(&[run]).map_err(|error| refused(&error))?;
        write_to(path, |out| Ok(out.write_all(trust.as_bytes())?))?;
    }
    if let Some(path) = &args.output {
        tell(path, &run.to_string(), &summary, args, global)?;
    }
    Ok(exit::YES)
}

fn refused(error: &LedgerError) -> Failure {
    match error {
        LedgerError::Refused(Refusal::RunUnknown(_) | Refusal::RunAmbiguous { .. }) => {
            Failure::no(error).help("`portcullis runs list` lists the runs")
        }
        // Whoever read standard output went away.
        LedgerError::Output { detail } if detail.contains("Broken pipe") => Failure::OutputClosed,
        _ => Failure::unreadable(error),
    }
}

/// Writes a file beside its place and moves it there when it is whole, so that half an export is never taken
/// for one.
fn write_to<T>(path: &Path, write: impl FnOnce(&mut dyn Write) -> Result<T, Failure>) -> Result<T, Failure> {
    let failed = |error: &dyn std::fmt::Display| {
        Failure::unreadable(format!("cannot write `{}`: {error}", path.display()))
    };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(|error| failed(&error))?;
    let written = write(file.as_file_mut())?;
    file.as_file().sync_all().map_err(|error| failed(&error))?;
    let _file: File = file.persist(path).map_err(|error| failed(&error))?;
    Ok(written)
}

fn tell(
    path: &Path,
    run: &str,
    summary: &ExportSummary,
    args: &Args,
    global: &Global,
) -> Result<(), Failure> {
    let mut out = Out::new();
    if global.json {
        out.json(&json!({
            "record": "exported", "run": run, "file": path, "trust": args.trust_out,
            "state": summary.state, "segments": summary.segments, "events": summary.events,
            "payloads": summary.payloads, "head": summary.head,
        }))?;
        return out.finish();
    }
    let number = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    out.line(format_args!(
        "{}: {} and {} of run {run}, {}",
        path.display(),
        count(number(summary.events), "event", "events"),
        count(number(summary.payloads), "payload", "payloads"),
        summary.state.as_str()
    ))?;
    if let Some(trust) = &args.trust_out {
        out.line(format_args!("{}: what to verify it against", trust.display()))?;
    }
    out.finish()
}
