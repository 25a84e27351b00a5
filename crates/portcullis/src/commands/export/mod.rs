//! `portcullis export`: one run as a file that a stranger can verify.

mod anchored;
pub(crate) mod many;

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use portcullis_core::time::Timestamp;
use portcullis_ledger::log::EvidenceFile;
use portcullis_ledger::{ExportOptions, ExportSummary, LedgerError, Location, Reader, Refusal};
use portcullis_proof::log::TrustPolicy;
use portcullis_proof::log::files::{EXPORT_FILE, README_FILE};
use serde_json::json;

use crate::archive::ArchiveWriter;
use crate::cli::Global;
use crate::commands::completions::run_ids;
use crate::exit;
use crate::failure::Failure;
use crate::out::{Out, count};

pub(crate) use self::anchored::note_waiting;

const EXAMPLES: &str = "\
Examples:
  portcullis export 0199ab3c -o run.zip
  portcullis export --since 2026-11-01 --until 2026-12-01 -o november.zip
  portcullis export --principal alice -o alice.zip
  portcullis export --tree 0199ab3c -o tree.zip
  portcullis export 0199ab3c -o run.export --trust-out run.trust
  portcullis export 0199ab3c --no-payloads > run.export
  portcullis verify run.zip --trust trust.policy

A run's id may be shortened to six digits or more. An archive (.zip) has what the transparency log says of the run, \
with proofs; `portcullis log policy` prints what to verify it against. A trust file does the same for one run \
without a log. Keep either where whoever can change the store cannot change it.";

/// What stands in an archive for people.
const README: &str = "\
This archive holds one recorded run of an agent and what a transparency log says of it.

run.export     the run: events, and the payloads that were handed over
log/           leaves of the log on this run, each with the proof that the log has it

Verify it with a trust policy that you already have, never with one that came along:

    portcullis verify THIS.zip --trust trust.policy
";

/// Export a run
///
/// Reads the store of the state folder directly; no daemon is needed. The events are handed over byte for byte,
/// with the payloads (arguments, results, texts) unless --no-payloads is given. An archive waits for the log to have
/// the run.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The run, or the start of its id
    #[arg(required_unless_present_any = ["since", "until", "principal"], conflicts_with_all = ["since", "until", "principal"], add = run_ids())]
    run: Option<String>,
    /// With all runs that it opened for delegated agents, and that those opened, into one archive
    #[arg(long, requires_all = ["run", "output"], conflicts_with = "trust_out")]
    tree: bool,
    /// All runs that were opened at this day or time or later (UTC), into one archive
    #[arg(long, value_name = "TIME", value_parser = many::parse_time, requires = "output")]
    since: Option<Timestamp>,
    /// All runs that were opened before this day or time
    #[arg(long, value_name = "TIME", value_parser = many::parse_time, requires = "output")]
    until: Option<Timestamp>,
    /// All runs of this principal
    #[arg(long, value_name = "NAME", requires = "output")]
    principal: Option<String>,
    /// Where to write the export, an archive where the name ends in `.zip`; standard output if left out
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The policy that the archive will be verified with: proofs from the trees that it remembers are added
    #[arg(long, value_name = "FILE")]
    trust: Option<PathBuf>,
    /// Where to write the trust file: where the run stands now
    #[arg(long, value_name = "FILE")]
    trust_out: Option<PathBuf>,
    /// Leave the payloads out; their commitments stay
    #[arg(long)]
    no_payloads: bool,
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    let store = global.home()?.store();
    let reader = store.reader().map_err(|error| {
        Failure::unreadable(error).help("--home selects another state folder; the first run creates a store")
    })?;
    let options = ExportOptions { payloads: !args.no_payloads };
    let policy = args.trust.as_deref().map(crate::trust::policy).transpose()?;
    let Some(run) = &args.run else {
        return many(args, reader.as_ref(), &store, options, policy.as_ref(), global);
    };
    let run = reader.find_run(run).map_err(|error| refused(&error))?;
    if args.tree {
        let Some(path) = args.output.as_deref().filter(|path| is_archive(path)) else {
            return Err(Failure::usage("an export of several runs is an archive")
                .help("use -o with a name that ends in `.zip`"));
        };
        return many::tree(reader.as_ref(), &store, run, options, policy.as_ref(), path, global);
    }
    let export = |out: &mut dyn Write| reader.export_run(run, out, options).map_err(|error| refused(&error));
    let mut proved = None;
    let summary = match &args.output {
        Some(path) if is_archive(path) => {
            // First the log, then the run: a run that goes on meanwhile has more events than its heads say, not fewer.
            let evidence = anchored::evidence(reader.as_ref(), &store, run, policy.as_ref())?;
            let summary = write_to(path, |file| {
                let mut archive = ArchiveWriter::new(file);
                archive.put(README_FILE, README.as_bytes())?;
                let summary = export(archive.begin(EXPORT_FILE)?)?;
                for EvidenceFile { name, bytes } in &evidence {
                    archive.put(name, bytes)?;
                }
                archive.finish()?;
                Ok(summary)
            })?;
            proved = Some(evidence.iter().filter(|file| file.name.ends_with(".leaf")).count());
            summary
        }
        Some(path) => write_to(path, |file| export(file))?,
        // The export may not fit into memory, so it goes out as it is read.
        None => export(&mut io::stdout().lock())?,
    };
    if let Some(path) = &args.trust_out {
        let trust = reader.trust_text(&[run]).map_err(|error| refused(&error))?;
        write_to(path, |out| Ok(out.write_all(trust.as_bytes())?))?;
    }
    if let Some(path) = &args.output {
        tell(path, &run.to_string(), &summary, proved, args, global)?;
    }
    Ok(exit::YES)
}

fn many(
    args: &Args,
    reader: &dyn Reader,
    store: &Location,
    options: ExportOptions,
    policy: Option<&TrustPolicy>,
    global: &Global,
) -> Result<u8, Failure> {
    let selection =
        many::Selection { since: args.since, until: args.until, principal: args.principal.as_deref() };
    match &args.output {
        Some(path) if is_archive(path) && args.trust_out.is_none() => {
            many::run(reader, store, &selection, options, policy, path, global)
        }
        _ => Err(Failure::usage("an export of several runs is an archive and needs no trust file")
            .help("use -o with a name that ends in `.zip`, and omit --trust-out")),
    }
}

fn is_archive(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("zip"))
}

pub(super) fn refused(error: &LedgerError) -> Failure {
    match error {
        LedgerError::Refused(refusal @ (Refusal::RunUnknown(_) | Refusal::RunAmbiguous { .. })) => {
            Failure::no(refusal).help("`portcullis runs list` lists the runs")
        }
        // Whoever read standard output went away.
        LedgerError::Output { detail } if detail.contains("Broken pipe") => Failure::OutputClosed,
        LedgerError::DiskFull { detail, .. } => Failure::unreadable(format!("no space is left: {detail}"))
            .help("make room, or name a file on another disk; the store is as it was"),
        _ => Failure::unreadable(error),
    }
}

/// Writes a file beside its place and moves it there when it is whole, so that half an export is never taken
/// for one.
pub(super) fn write_to<T>(
    path: &Path,
    write: impl FnOnce(&mut File) -> Result<T, Failure>,
) -> Result<T, Failure> {
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
    proved: Option<usize>,
    args: &Args,
    global: &Global,
) -> Result<(), Failure> {
    let mut out = Out::new();
    if global.json {
        out.json(&json!({
            "record": "exported", "run": run, "file": path, "trust": args.trust_out,
            "state": summary.state, "segments": summary.segments, "events": summary.events,
            "payloads": summary.payloads, "erased": summary.erased, "head": summary.head, "leaves": proved,
        }))?;
        return out.finish();
    }
    out.line(format_args!(
        "{}: {} and {} of run {run}, {}",
        path.display(),
        count(summary.events, "event", "events"),
        count(summary.payloads, "payload", "payloads"),
        summary.state.as_str()
    ))?;
    if summary.erased > 0 {
        let erased = count(summary.erased, "payload was", "payloads were");
        out.line(format_args!("{erased} erased from the store, and the export says so"))?;
    }
    match proved {
        Some(0) => out.line(format_args!("the log does not have this run yet"))?,
        Some(leaves) => {
            out.line(format_args!("the log has its position in {}", count(leaves, "leaf", "leaves")))?;
        }
        None => {}
    }
    if let Some(trust) = &args.trust_out {
        out.line(format_args!("{}: what to verify it against", trust.display()))?;
    }
    out.finish()
}
