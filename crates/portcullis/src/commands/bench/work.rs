//! `portcullis bench work`: what work items cost, and what decisions cost beside them.

use portcullis_gateway::bench::{self, Distribution, ITEMS, WorkOptions, WorkReport, WorkTimes};

use super::{Work, failed, thousands, time};
use crate::failure::Failure;
use crate::out::{GOOD, Out, STRONG};

pub(super) fn measure(args: &Work) -> Result<WorkReport, Failure> {
    let within = args.dir.clone().unwrap_or_else(std::env::temp_dir);
    let unusable = |error| Failure::unreadable(format!("cannot measure in `{}`: {error}", within.display()));
    let folder =
        tempfile::Builder::new().prefix("portcullis-bench-").tempdir_in(&within).map_err(unusable)?;
    let options = WorkOptions {
        program: std::env::current_exe().map_err(unusable)?,
        folder: folder.path().to_owned(),
        time: args.time.duration(),
        items: usize::try_from(args.items).unwrap_or(ITEMS),
    };
    bench::work(&options).map_err(failed)
}

pub(super) fn show(out: &mut Out, report: &WorkReport) -> Result<(), Failure> {
    let flush = report.fdatasync.p50_ns;
    let full = format!("{} items", thousands(report.items as f64));
    for (store, times) in [("an empty store".to_owned(), &report.empty), (full, &report.full)] {
        out.line(format_args!("{STRONG}with {store}{STRONG:#}"))?;
        out.line(format_args!(
            "{:<34} {:>9} {:>9} {:>9}  {:>20}  {:>7}",
            "", "p50", "p90", "p99", "p50 besides a flush", "calls"
        ))?;
        for (what, of, flushes) in rows(times) {
            out.line(format_args!(
                "{what:<34} {:>9} {:>9} {:>9}  {:>20}  {:>7}",
                time(of.p50_ns),
                time(of.p90_ns),
                time(of.p99_ns),
                time(of.p50_ns.saturating_sub(flush * flushes)),
                thousands(of.count as f64)
            ))?;
        }
        out.line(format_args!(""))?;
    }
    out.line(format_args!(
        "fdatasync after appending 4 KiB, before and after: p50 {}, p99 {}",
        time(flush),
        time(report.fdatasync.p99_ns)
    ))?;
    out.line(format_args!(
        "a decision costs {GOOD}{:.3}{GOOD:#} times what it costs with an empty store (p50)",
        report.decision_ratio
    ))
}

/// What was asked, how long it took, and how often it waits for the disk.
fn rows(times: &WorkTimes) -> [(&'static str, &Distribution, u64); 5] {
    [
        ("a call that is permitted", &times.decision, 1),
        ("its outcome", &times.outcome, 1),
        ("a person makes an item", &times.create, 1),
        ("the agent starts it", &times.start, 1),
        ("claim, check and verification", &times.claim, 2),
    ]
}
