//! `portcullis bench approvals`: what people are asked and say, with an empty store and with a full one.

use portcullis_gateway::bench::{
    self, ApprovalTimes, ApprovalsOptions, ApprovalsReport, Distribution, STORED,
};

use super::{Approvals, failed, thousands, time};
use crate::failure::Failure;
use crate::out::{GOOD, Out, STRONG};

pub(super) fn measure(args: &Approvals) -> Result<ApprovalsReport, Failure> {
    let within = args.dir.clone().unwrap_or_else(std::env::temp_dir);
    let unusable = |error| Failure::unreadable(format!("cannot measure in `{}`: {error}", within.display()));
    let folder =
        tempfile::Builder::new().prefix("portcullis-bench-").tempdir_in(&within).map_err(unusable)?;
    let options = ApprovalsOptions {
        program: std::env::current_exe().map_err(unusable)?,
        folder: folder.path().to_owned(),
        time: args.time.duration(),
        stored: usize::try_from(args.stored).unwrap_or(STORED),
    };
    bench::approvals(&options).map_err(failed)
}

pub(super) fn show(out: &mut Out, report: &ApprovalsReport) -> Result<(), Failure> {
    let flush = report.fdatasync.p50_ns;
    let stores = [("an empty store".to_owned(), &report.empty), (full(report), &report.full)];
    for (store, times) in stores {
        out.line(format_args!("{STRONG}with {store}{STRONG:#}, {} live runs", times.runs))?;
        out.line(format_args!(
            "{:<34} {:>9} {:>9} {:>9}  {:>20}  {:>7}",
            "", "p50", "p90", "p99", "p50 besides a flush", "calls"
        ))?;
        for (what, of) in rows(times) {
            out.line(format_args!(
                "{what:<34} {:>9} {:>9} {:>9}  {:>20}  {:>7}",
                time(of.p50_ns),
                time(of.p90_ns),
                time(of.p99_ns),
                time(of.p50_ns.saturating_sub(flush)),
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

fn full(report: &ApprovalsReport) -> String {
    format!("{} approvals, half of them waiting", thousands(report.stored as f64))
}

fn rows(times: &ApprovalTimes) -> [(&'static str, &Distribution); 7] {
    [
        ("a call that nobody holds", &times.decision),
        ("a call that is held", &times.request),
        ("looking at the request", &times.look),
        ("granting it", &times.grant),
        ("the call again: the grant is used", &times.claim),
        ("freezing the run", &times.freeze),
        ("freezing all runs", &times.freeze_all),
    ]
}
