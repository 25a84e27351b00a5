//! `portcullis fsck`: the whole store and its log, derived again.

use portcullis_ledger::log::{check, verifier_key};
use serde_json::json;

use crate::cli::Global;
use crate::exit;
use crate::failure::Failure;
use crate::out::{BAD, GOOD, Out, clean_line, count};

const EXAMPLES: &str = "\
Examples:
  portcullis fsck
  portcullis fsck --home /restore/portcullis --json

Nothing is changed. Run it on a restored copy before it is put to use.
Exit codes: 0 all holds, 1 something does not, 3 something could not be read.";

/// Check the store and its log: every link, every leaf, every tile, and each against the other
///
/// Computes every link of every run again, derives the tree from its leaves, compares every published tile, checks
/// every signature, and holds every head of the log against the store.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {}

pub(crate) fn run(_: &Args, global: &Global) -> Result<u8, Failure> {
    let places = global.home()?.store().log();
    let reader = places.store.reader().map_err(|error| {
        Failure::unreadable(error).help("--home selects another state folder; the first run creates a store")
    })?;
    let store = reader.integrity_check().map_err(Failure::unreadable)?;
    let key = verifier_key(&places).map_err(Failure::unreadable)?;
    let log = check(&places, &key).map_err(Failure::unreadable)?;
    let sound = store.problems.is_empty() && log.problems.is_empty();
    let mut out = Out::new();
    if global.json {
        out.json(&json!({
            "record": "fsck", "sound": sound,
            "store": {"runs": store.runs, "events": store.events, "problems": store.problems},
            "log": {"leaves": log.leaves, "heads": log.heads, "tiles": log.tiles, "open": log.open,
                "problems": log.problems},
        }))?;
    } else {
        let word = |sound: bool| if sound { (GOOD, "sound") } else { (BAD, "DAMAGED") };
        let (style, text) = word(store.problems.is_empty());
        out.line(format_args!(
            "store  {style}{text}{style:#}  {}, {}: every link computed again",
            count(store.runs, "run", "runs"),
            count(store.events, "event", "events")
        ))?;
        let (style, text) = word(log.problems.is_empty());
        out.line(format_args!(
            "log    {style}{text}{style:#}  {}, {} derived again, {} held against the store, {} open",
            count(log.leaves, "leaf", "leaves"),
            count(log.tiles, "tile", "tiles"),
            count(log.heads, "head", "heads"),
            count(log.open, "segment", "segments")
        ))?;
        for problem in store.problems.iter().chain(&log.problems) {
            out.line(format_args!("  {}", clean_line(problem)))?;
        }
    }
    out.finish()?;
    Ok(if sound { exit::YES } else { exit::NO })
}
