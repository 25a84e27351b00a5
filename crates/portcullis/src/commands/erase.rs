//! `portcullis erase`: payloads leave the store, their commitments stay.

use std::os::unix::fs::MetadataExt as _;

use portcullis_core::id::Commitment;
use portcullis_core::time::Timestamp;
use portcullis_ledger::clock::now;
use portcullis_ledger::{Erased, LedgerError, Refusal, Selection, Tombstone};
use serde_json::json;

use crate::ask::{can_ask, says_yes};
use crate::cli::Global;
use crate::commands::completions::run_ids;
use crate::commands::export::many::parse_time;
use crate::exit;
use crate::failure::Failure;
use crate::out::{Out, clean_line, count, short};

const EXAMPLES: &str = "\
Examples:
  portcullis erase 0199ab3c --reason \"request 17\"
  portcullis erase 0199ab3c --event 12 --name arguments --yes
  portcullis erase --principal alice --contains alice@example.org --dry-run
  portcullis erase --before 2026-01-01 --compact --yes

At a terminal you are asked first; elsewhere --yes says that it is meant.

Exit codes: 0 done (or, with --dry-run, counted), 1 refused, 2 not all of it: runs in progress were left out, or the \
bytes could not be cut out of the files yet; erase again.
What guards said of it goes along, verdicts and events stay; exports and backups made before still hold what is \
erased here.";

/// From how many free bytes on they are worth a word.
const FREE_BYTES_SAID: u64 = 16 << 20;

/// Erase payloads: arguments, results, texts
///
/// Overwrites their bytes and salts in all files of the store; agents go on meanwhile. Every proof stays valid, and
/// exports say that they were erased. Payloads are chosen by all that is given.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub(crate) struct Args {
    /// The run, or the start of its id; all runs if left out
    #[arg(required_unless_present_any = ["commitment", "contains", "principal", "before"], add = run_ids())]
    run: Option<String>,
    /// Only the payloads of this event
    #[arg(long, value_name = "SEQ", requires = "run")]
    event: Option<u64>,
    /// Only payloads of this name, as events have it: `arguments`, `content`, `text`, ...
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Only the payload of this commitment
    #[arg(long, value_name = "HEX")]
    commitment: Option<Commitment>,
    /// Only payloads that hold this text, letter for letter
    #[arg(long, value_name = "TEXT")]
    contains: Option<String>,
    /// Only runs of this principal
    #[arg(long, value_name = "NAME")]
    principal: Option<String>,
    /// Only events before this day or time
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    before: Option<Timestamp>,
    /// Say what would be erased, and erase nothing
    #[arg(long)]
    dry_run: bool,
    /// Give the space back to the disk, by writing the database anew; stop the daemon first
    #[arg(long, conflicts_with = "dry_run")]
    compact: bool,
    /// Ask nobody
    #[arg(long, conflicts_with = "dry_run")]
    yes: bool,
    /// Why, for the tombstones
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

/// What to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Deed {
    /// Count.
    Rehearse,
    /// Erase.
    Erase,
    /// Erase, and write the database anew.
    EraseAndCompact,
}

impl Deed {
    pub(super) fn of(dry_run: bool, compact: bool) -> Deed {
        match (dry_run, compact) {
            (true, _) => Deed::Rehearse,
            (false, false) => Deed::Erase,
            (false, true) => Deed::EraseAndCompact,
        }
    }
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    let run = match &args.run {
        Some(run) => {
            let reader = global.home()?.store().reader().map_err(|error| failed(&error))?;
            Some(reader.find_run(run).map_err(|error| failed(&error))?)
        }
        None => None,
    };
    let selection = Selection {
        run,
        event: args.event,
        name: args.name.clone(),
        commitment: args.commitment,
        contains: args.contains.clone(),
        principal: args.principal.clone(),
        before: args.before,
    };
    if !args.dry_run && !args.yes && !is_meant(&selection, global)? {
        return Ok(exit::NO);
    }
    carry_out(&selection, args.reason.clone(), Deed::of(args.dry_run, args.compact), global)
}

/// Asks whether what is selected should go, once it is counted.
fn is_meant(selection: &Selection, global: &Global) -> Result<bool, Failure> {
    if !can_ask(global) {
        return Err(Failure::usage(
            "what is erased cannot be restored, and standard input is not a terminal",
        )
        .help("look at it with --dry-run, then give --yes"));
    }
    let mut eraser = global.home()?.store().eraser().map_err(|error| failed(&error))?;
    let erased = eraser.rehearse(selection).map_err(|error| failed(&error))?;
    drop(eraser);
    let question = format!(
        "Erase {} of {}, {}, for good?",
        count(erased.payloads, "payload", "payloads"),
        count(erased.runs.len(), "run", "runs"),
        count(erased.bytes, "byte", "bytes"),
    );
    says_yes(&mut Out::new(), &question)
}

/// Erases, or counts, and says what came of it.
pub(super) fn carry_out(
    selection: &Selection,
    reason: Option<String>,
    deed: Deed,
    global: &Global,
) -> Result<u8, Failure> {
    let dry_run = deed == Deed::Rehearse;
    let mut eraser = global.home()?.store().eraser().map_err(|error| failed(&error))?;
    let mut erased = if dry_run {
        eraser.rehearse(selection)
    } else {
        eraser.erase(selection, &Tombstone { at: now(), by: user(), reason })
    }
    .map_err(|error| failed(&error))?;
    if deed == Deed::EraseAndCompact {
        eraser.compact(&mut erased).map_err(|error| failed(&error))?;
    }
    tell(&erased, selection, dry_run, global)?;
    let whole = erased.in_progress.is_empty() && (dry_run || erased.purged);
    Ok(if whole { exit::YES } else { exit::INCOMPLETE })
}

fn failed(error: &LedgerError) -> Failure {
    match error {
        LedgerError::Refused(refusal @ (Refusal::RunUnknown(_) | Refusal::RunAmbiguous { .. })) => {
            Failure::no(refusal).help("`portcullis runs list` lists the runs")
        }
        LedgerError::Refused(Refusal::WritersAtWork { .. }) => Failure::no(error)
            .help("the request is erased; compact with the same command once the daemon is stopped"),
        LedgerError::Refused(_) => Failure::no(error),
        LedgerError::Locked { .. } => {
            Failure::unreadable(error).help("what was erased before stays erased; erase again for the rest")
        }
        LedgerError::CutShort { .. } => Failure::unreadable(error).help("what was erased stays erased"),
        _ => Failure::unreadable(error).help("--home selects another state folder"),
    }
}

fn tell(erased: &Erased, selection: &Selection, dry_run: bool, global: &Global) -> Result<(), Failure> {
    let mut out = Out::new();
    let ids = |runs: &[portcullis_core::id::RunId]| -> Vec<String> {
        runs.iter().map(ToString::to_string).collect()
    };
    if global.json {
        out.json(&json!({
            "record": "erased", "dry_run": dry_run, "payloads": erased.payloads, "bytes": erased.bytes,
            "runs": ids(&erased.runs), "in_progress": ids(&erased.in_progress),
            "lines_with_text": erased.lines_with_text, "purged": erased.purged,
            "needs_compaction": erased.needs_compaction, "free_bytes": erased.free_bytes,
        }))?;
        return out.finish();
    }
    out.line(format_args!(
        "{} of {} {}: {}",
        count(erased.payloads, "payload", "payloads"),
        count(erased.runs.len(), "run", "runs"),
        if dry_run { "would be erased" } else { "erased" },
        count(erased.bytes, "byte", "bytes"),
    ))?;
    if !dry_run && erased.purged {
        out.line(format_args!("  no file of the store holds them; exports and backups made before may"))?;
    } else if erased.needs_compaction {
        out.line(format_args!(
            "  pages of the database may still hold copies of them: stop the daemon, then erase again with --compact"
        ))?;
    } else if !dry_run {
        out.line(format_args!(
            "  files of the store still hold their bytes: something else uses it, or the disk is full; erase again"
        ))?;
    }
    if erased.free_bytes >= FREE_BYTES_SAID {
        out.line(format_args!(
            "  {} MiB of the database are free and will be filled again; --compact gives them back",
            erased.free_bytes >> 20,
        ))?;
    }
    if !erased.in_progress.is_empty() {
        let runs: Vec<String> = erased.in_progress.iter().map(short).collect();
        out.line(format_args!("  left out, in progress: {}", runs.join(", ")))?;
    }
    if let (Some(text), 1..) = (&selection.contains, erased.lines_with_text) {
        out.line(format_args!(
            "  `{}` also occurs in {}: events are never erased",
            clean_line(text),
            count(erased.lines_with_text, "event", "events"),
        ))?;
    }
    out.finish()
}

/// Who does this, as the operating system has it.
fn user() -> String {
    let id = std::fs::metadata("/proc/self").map(|metadata| metadata.uid());
    id.map_or_else(|_| "an unknown user".to_owned(), |id| format!("uid {id}"))
}
