//! `portcullis bench console`: pages with a large store, and what browsers cost decisions.

use portcullis_gateway::bench::{self, CONSOLE_RUNS, ConsoleOptions, ConsoleReport};

use super::{Console, failed, thousands, time};
use crate::failure::Failure;
use crate::out::{GOOD, Out, STRONG};

pub(super) fn measure(args: &Console) -> Result<ConsoleReport, Failure> {
    let within = args.dir.clone().unwrap_or_else(std::env::temp_dir);
    let unusable = |error| Failure::unreadable(format!("cannot measure in `{}`: {error}", within.display()));
    let folder =
        tempfile::Builder::new().prefix("portcullis-bench-").tempdir_in(&within).map_err(unusable)?;
    let options = ConsoleOptions {
        program: std::env::current_exe().map_err(unusable)?,
        folder: folder.path().to_owned(),
        time: args.time.duration(),
        runs: usize::try_from(args.runs).unwrap_or(CONSOLE_RUNS),
    };
    bench::console(&options).map_err(failed)
}

pub(super) fn show(out: &mut Out, report: &ConsoleReport) -> Result<(), Failure> {
    let (runs, events) = (thousands(report.runs as f64), thousands(report.events as f64));
    out.line(format_args!("{STRONG}first byte with {runs} runs, and a run of {events} events{STRONG:#}"))?;
    out.line(format_args!("{:<42} {:>9} {:>9} {:>9}  {:>8}", "", "p50", "p99", "max", "size"))?;
    for page in &report.pages {
        let of = &page.first_byte;
        out.line(format_args!(
            "{:<42} {:>9} {:>9} {:>9}  {:>5.1} kB",
            page.what,
            time(of.p50_ns),
            time(of.p99_ns),
            time(of.max_ns),
            page.bytes as f64 / 1e3
        ))?;
    }
    out.line(format_args!("the long run when it is first looked at: {}\n", time(report.first_look_ns)))?;
    out.line(format_args!(
        "{STRONG}decisions a second, without and with {} streams{STRONG:#}",
        report.streams
    ))?;
    for (without, with) in &report.pairs {
        out.line(format_args!(
            "  {:>7} {:>7}   processor time of the daemon for each: {:.1} µs, {:.1} µs",
            thousands(without.per_second),
            thousands(with.per_second),
            without.daemon_cpu_us,
            with.daemon_cpu_us
        ))?;
    }
    out.line(format_args!(
        "streams cost {GOOD}{:.1} %{GOOD:#} of the decisions a second, and add {GOOD}{:.1} %{GOOD:#} to the processor time of one (medians)",
        report.cost * 100.0,
        report.processor_cost * 100.0
    ))?;
    out.line(format_args!(
        "fdatasync after appending 4 KiB, before and after: p50 {}, p99 {}",
        time(report.fdatasync.p50_ns),
        time(report.fdatasync.p99_ns)
    ))
}
