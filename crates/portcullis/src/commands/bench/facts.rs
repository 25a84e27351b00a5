//! `portcullis bench facts`: session state and facts, with an empty store and with a full one.

use portcullis_gateway::bench::{self, Distribution, FACTS_STORED, FactTimes, FactsOptions, FactsReport};

use super::{Facts, failed, thousands, time};
use crate::failure::Failure;
use crate::out::{GOOD, Out, STRONG};

pub(super) fn measure(args: &Facts) -> Result<FactsReport, Failure> {
    let within = args.dir.clone().unwrap_or_else(std::env::temp_dir);
    let unusable = |error| Failure::unreadable(format!("cannot measure in `{}`: {error}", within.display()));
    let folder =
        tempfile::Builder::new().prefix("portcullis-bench-").tempdir_in(&within).map_err(unusable)?;
    let options = FactsOptions {
        program: std::env::current_exe().map_err(unusable)?,
        folder: folder.path().to_owned(),
        time: args.time.duration(),
        stored: usize::try_from(args.stored).unwrap_or(FACTS_STORED),
    };
    bench::facts(&options).map_err(failed)
}

pub(super) fn show(out: &mut Out, report: &FactsReport) -> Result<(), Failure> {
    let flush = report.fdatasync.p50_ns;
    let full = format!("{} facts", thousands(report.stored as f64));
    for (store, times) in [("an empty store", &report.empty), (full.as_str(), &report.full)] {
        out.line(format_args!("{STRONG}with {store}{STRONG:#}"))?;
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

fn rows(times: &FactTimes) -> [(&'static str, &Distribution); 6] {
    [
        ("a call that nobody holds", &times.decision),
        ("putting a key of the state", &times.put),
        ("writing a fact", &times.write),
        ("reading the newest 20", &times.read),
        ("reading the newest 20 of a topic", &times.topic),
        ("forgetting a fact", &times.forget),
    ]
}
