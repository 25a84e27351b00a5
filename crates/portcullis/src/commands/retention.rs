//! `portcullis retention`: payloads go when their time is over, events stay.

use portcullis_core::time::Timestamp;
use portcullis_ledger::Selection;
use portcullis_ledger::clock::now;

use crate::cli::Global;
use crate::commands::erase::{self, Deed};
use crate::failure::Failure;

const MICROS_PER_DAY: i64 = 86_400_000_000;
/// The longest time that payloads can be kept by, in days.
const DAYS_MAX: u32 = 36_500;

const EXAMPLES: &str = "\
Examples:
  portcullis retention --payloads-older-than 180d --dry-run
  portcullis retention --payloads-older-than 180d
  portcullis retention --payloads-older-than 30d --runs-of alice

Exit codes are those of `portcullis erase`. Run it daily; agents go on meanwhile. Events, verdicts and proofs stay for \
ever; laws ask for logs to be kept (the EU AI Act, art. 19 and 26: at least six months), payloads are yours to judge.";

/// Erase payloads that are older than a number of days
///
/// As `portcullis erase` does; the tombstones say that it was for their age. Runs in progress are left out.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub(crate) struct Args {
    /// How long payloads are kept, in days: `180d`
    #[arg(long, value_name = "DAYS", value_parser = days)]
    payloads_older_than: u32,
    /// Only runs of this principal
    #[arg(long, value_name = "NAME")]
    runs_of: Option<String>,
    /// Say what would be erased, and erase nothing
    #[arg(long)]
    dry_run: bool,
    /// Give the space back to the disk, by writing the database anew; stop the daemon first
    #[arg(long, conflicts_with = "dry_run")]
    compact: bool,
}

fn days(text: &str) -> Result<u32, String> {
    text.strip_suffix('d')
        .and_then(|days| days.parse().ok())
        .filter(|days| (1..=DAYS_MAX).contains(days))
        .ok_or_else(|| format!("`{}` is not a number of days like `180d`", text.escape_debug()))
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    let days = args.payloads_older_than;
    let before = now().as_micros().saturating_sub(i64::from(days) * MICROS_PER_DAY);
    let selection = Selection {
        principal: args.runs_of.clone(),
        before: Some(Timestamp::from_micros(before)),
        ..Selection::default()
    };
    let reason = format!("retention: older than {days} days");
    erase::carry_out(&selection, Some(reason), Deed::of(args.dry_run, args.compact), global)
}
