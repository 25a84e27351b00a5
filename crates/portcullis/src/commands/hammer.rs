//! `portcullis hammer`: the store and its log under load, everything that is read verified.

use std::path::PathBuf;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use portcullis_ledger::hammer::{
    HAMMER_GOAL_MAX, HAMMER_READERS_MAX, HAMMER_WRITERS_MAX, HammerOptions, HammerReport, Spread, hammer,
};
use serde::Serialize;

use crate::cli::Global;
use crate::commands::bench::{thousands, time};
use crate::exit;
use crate::failure::Failure;
use crate::out::{BAD, FAINT, GOOD, Out, STRONG, clean_line};

const EXAMPLES: &str = "\
Examples:
  portcullis hammer --goal 20000
  portcullis hammer --writers 64 --readers 16 --goal 200000 --max-runtime 120s
  portcullis hammer --home /mnt/disk-to-measure/hammer &&
    portcullis fsck --home /mnt/disk-to-measure/hammer

Exit codes: 0 the goal was reached in time and all that was read verified, 1 not, 3 no store could be made. \
docs/benchmarks.md has figures of the project's own machine, and says what they mean.";

const SECONDS_MAX: u64 = 3_600;

/// Hammer a store: many writers and readers at once, everything that is read verified
///
/// Writers append runs and wait for the disk each time; the log anchors them; readers export them, verify them with
/// their proofs, and follow the log. At the end the whole store is derived again. Writes to a store of its own.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Writers at a time
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..=HAMMER_WRITERS_MAX as u64))]
    writers: u64,
    /// Readers at a time
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u64).range(1..=HAMMER_READERS_MAX as u64))]
    readers: u64,
    /// Events to write
    #[arg(long, value_name = "N", default_value_t = 200_000, value_parser = clap::value_parser!(u64).range(1..=HAMMER_GOAL_MAX))]
    goal: u64,
    /// How long the writing may take, in seconds: `120s`
    #[arg(long, value_name = "TIME", default_value = "120s", value_parser = seconds)]
    max_runtime: Duration,
}

/// What is printed with `--json`.
#[derive(Serialize)]
struct Record<'r> {
    record: &'static str,
    #[serde(flatten)]
    report: &'r HammerReport,
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    // A state folder that is named is kept, to be looked at; it must be new, for what is written is no record.
    let kept = global.home_given()?.map(|home| home.ledger());
    let temporary = match kept {
        Some(_) => None,
        None => Some(tempfile::Builder::new().prefix("portcullis-hammer-").tempdir().map_err(|error| {
            Failure::unreadable(format!(
                "cannot make a folder in `{}`: {error}",
                std::env::temp_dir().display()
            ))
        })?),
    };
    let folder = match (kept, &temporary) {
        (Some(kept), _) => kept,
        (None, Some(temporary)) => temporary.path().join("ledger"),
        (None, None) => PathBuf::new(),
    };
    let options = HammerOptions {
        folder,
        writers: usize::try_from(args.writers).unwrap_or(HAMMER_WRITERS_MAX),
        readers: usize::try_from(args.readers).unwrap_or(HAMMER_READERS_MAX),
        goal: args.goal,
        time_max: args.max_runtime,
    };
    let bar = progress_bar(args.goal, global.json);
    let report = hammer(&options, &mut |progress| {
        bar.set_position(progress.events);
        bar.set_message(format!("{} of {} runs verified", progress.verified, progress.closed));
    });
    bar.finish_and_clear();
    let report = report.map_err(Failure::unreadable)?;
    let mut out = Out::new();
    if global.json {
        out.json(&Record { record: "hammer", report: &report })?;
    } else {
        show(&mut out, &report)?;
    }
    out.finish()?;
    Ok(if report.passed { exit::YES } else { exit::NO })
}

/// A bar for people on a terminal, nothing elsewhere.
fn progress_bar(goal: u64, json: bool) -> ProgressBar {
    if json {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(goal);
    if let Ok(style) = ProgressStyle::with_template("{wide_bar} {pos}/{len} events, {per_sec}; {msg}") {
        bar.set_style(style);
    }
    bar
}

fn show(out: &mut Out, report: &HammerReport) -> Result<(), Failure> {
    if cfg!(debug_assertions) {
        out.line(format_args!("{FAINT}not an optimised build: the figures mean nothing{FAINT:#}"))?;
    }
    let (style, word) = if report.passed { (GOOD, "PASSED") } else { (BAD, "FAILED") };
    out.line(format_args!(
        "{style}{word}{style:#}  {STRONG}{} durable events a second{STRONG:#}: {} of {} in {:.1} s, {} writers, {} readers",
        thousands(report.events_per_second),
        thousands(report.events as f64),
        thousands(report.goal as f64),
        report.seconds,
        report.writers,
        report.readers
    ))?;
    let spread = |name: &str, spread: &Spread| {
        format!(
            "  {name:<34} p50 {:>8}  p99 {:>8}  max {:>8}  ({})",
            time(spread.p50_ns),
            time(spread.p99_ns),
            time(spread.max_ns),
            thousands(spread.count as f64)
        )
    };
    for (name, times) in [
        ("append, all writing", &report.append),
        ("fdatasync of 4 KiB meanwhile", &report.fdatasync),
        ("a decision's append, alone", &report.append_alone),
        ("fdatasync of 4 KiB in turns", &report.fdatasync_alone),
        ("from a run's end to its proof", &report.close_to_proof),
    ] {
        out.line(format_args!("{}", spread(name, times)))?;
    }
    out.line(format_args!(
        "  append over fdatasync, p50: {:.2} alone, {:.2} with all writing; {:.0} events a transaction",
        report.append_alone_over_fdatasync,
        report.append_over_fdatasync,
        report.events as f64 / report.transactions.max(1) as f64
    ))?;
    out.line(format_args!(
        "  log: {} leaves, {:.0} a second",
        thousands(report.leaves as f64),
        report.leaves_per_second
    ))?;
    let reads = &report.reads;
    out.line(format_args!(
        "  verified: {} closed runs with proofs, {} open ones, {} events, {} leaves, {} steps between checkpoints; \
         store and log derived again in {:.1} s",
        thousands(reads.runs as f64),
        thousands(reads.open_runs as f64),
        thousands(reads.events as f64),
        thousands(reads.leaves as f64),
        thousands(reads.checkpoints as f64),
        report.check_seconds
    ))?;
    for problem in &report.problems {
        out.line(format_args!("  {BAD}{}{BAD:#}", clean_line(problem)))?;
    }
    Ok(())
}

/// `120s` or `120`.
fn seconds(text: &str) -> Result<Duration, String> {
    let number = text.strip_suffix('s').unwrap_or(text).parse().ok();
    number
        .filter(|seconds| (1..=SECONDS_MAX).contains(seconds))
        .map(Duration::from_secs)
        .ok_or_else(|| format!("whole seconds from 1 to {SECONDS_MAX}, such as `120s`"))
}
