//! `portcullis bench`: measures the gate on this machine.

mod all;
mod approvals;
mod console;
mod facts;
mod mcp_http;
mod programs;
mod work;

use std::path::PathBuf;
use std::time::Duration;

use portcullis_gateway::bench::{
    self, BenchError, CALLS, CALLS_MAX, CLIENTS, CLIENTS_MAX, CONSOLE_RUNS, CONSOLE_RUNS_MAX, DecideReport,
    Distribution, DurableOptions, DurablePhase, DurableReport, FACTS_STORED, FACTS_STORED_MAX,
    HookBenchOptions, HookReport, ITEMS, ITEMS_MAX, SECONDS_MAX, STORED, STORED_MAX, STREAMS, STREAMS_MAX,
    StepReport,
};
use serde::Serialize;

use crate::cli::Global;
use crate::exit;
use crate::failure::Failure;
use crate::out::{FAINT, GOOD, Out, STRONG};

const EXAMPLES: &str = "\
Examples:
  portcullis bench decide
  portcullis bench step --seconds 10
  portcullis bench durable --clients 16 --dir /var/lib/portcullis-bench
  portcullis bench approvals --seconds 5
  portcullis bench console --seconds 5
  portcullis bench facts --seconds 5
  portcullis bench mcp-http --seconds 5
  portcullis bench programs --seconds 5
  portcullis bench work --seconds 5
  portcullis bench all

Figures mean something in an optimised build on a quiet machine only: cargo run --release -- bench decide. \
docs/benchmarks.md has those of the project's own machine, and says what they mean.";

/// Characters of the longest bar.
const BAR_CHARS: u64 = 40;

/// Measure the gate on this machine
///
/// Every call is timed by itself; percentiles and a histogram are printed.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// The pure decision: all guards, 100 tools, 50 policies, 100 keywords; arguments of 256 B and 4 KiB
    #[command(after_help = "Examples:\n  portcullis bench decide --seconds 3")]
    Decide(Time),
    /// A whole step in memory, at step 10 and at step 10,000 of a run
    #[command(after_help = "Examples:\n  portcullis bench step")]
    Step(Time),
    /// Decisions over the socket of a real daemon, answered when they are on the disk
    #[command(after_help = "Examples:\n  portcullis bench durable --clients 16")]
    Durable(Durable),
    /// A coding agent's hook: a process for each call, answered when its verdict is on the disk
    #[command(after_help = "Examples:\n  portcullis bench hook --calls 1000")]
    Hook(Hook),
    /// Asking a person, granting, using a grant, freezing, with an empty store and with many approvals in it
    #[command(after_help = "Examples:\n  portcullis bench approvals --stored 10000")]
    Approvals(Approvals),
    /// Pages of the console with a large store, and what browsers cost decisions
    #[command(after_help = "Examples:\n  portcullis bench console --runs 10000")]
    Console(Console),
    /// Session state and facts, with an empty store and with many facts in it
    #[command(after_help = "Examples:\n  portcullis bench facts --stored 10000")]
    Facts(Facts),
    /// MCP over HTTP: a call with the gate and without, idle streams, a server that stalls, checking a token
    #[command(after_help = "Examples:\n  portcullis bench mcp-http --seconds 5")]
    McpHttp(McpHttp),
    /// Decisions with one guard program, with a hundred and without; a table of 960 columns
    #[command(after_help = "Examples:\n  portcullis bench programs --seconds 5")]
    Programs(Time),
    /// Work items from their making to their verification, with an empty store and with many items in it
    #[command(after_help = "Examples:\n  portcullis bench work --items 1000")]
    Work(Work),
    /// All of these but approvals, console, facts, mcp-http, programs and work in one run, each figure beside what the project aims at
    #[command(after_help = "Examples:\n  portcullis bench all --seconds 5 --json")]
    All(All),
}

#[derive(Debug, clap::Args)]
struct All {
    #[command(flatten)]
    time: Time,
    /// Where to put the store: a folder on the file system to measure; otherwise the folder for temporary files
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
struct Hook {
    /// How many calls
    #[arg(long, value_name = "N", default_value_t = CALLS, value_parser = clap::value_parser!(u64).range(1..=CALLS_MAX))]
    calls: u64,
    /// Where to put the store: a folder on the file system to measure; otherwise the folder for temporary files
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
struct Approvals {
    #[command(flatten)]
    time: Time,
    /// Approvals in the store that is not empty
    #[arg(long, value_name = "N", default_value_t = STORED as u64, value_parser = clap::value_parser!(u64).range(1..=STORED_MAX as u64))]
    stored: u64,
    /// Where to put the store: a folder on the file system to measure; otherwise the folder for temporary files
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
struct Console {
    #[command(flatten)]
    time: Time,
    /// Runs in the store
    #[arg(long, value_name = "N", default_value_t = CONSOLE_RUNS as u64, value_parser = clap::value_parser!(u64).range(1..=CONSOLE_RUNS_MAX as u64))]
    runs: u64,
    /// Where to put the store: a folder on the file system to measure; otherwise the folder for temporary files
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
struct Facts {
    #[command(flatten)]
    time: Time,
    /// Facts in the store that is not empty
    #[arg(long, value_name = "N", default_value_t = FACTS_STORED as u64, value_parser = clap::value_parser!(u64).range(1..=FACTS_STORED_MAX as u64))]
    stored: u64,
    /// Where to put the store: a folder on the file system to measure; otherwise the folder for temporary files
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
struct McpHttp {
    #[command(flatten)]
    time: Time,
    /// Sessions that do nothing, each with its stream open
    #[arg(long, value_name = "N", default_value_t = STREAMS as u64, value_parser = clap::value_parser!(u64).range(1..=STREAMS_MAX as u64))]
    streams: u64,
    /// Where to put the store: a folder on the file system to measure; otherwise the folder for temporary files
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
struct Work {
    #[command(flatten)]
    time: Time,
    /// Items in the store that is not empty
    #[arg(long, value_name = "N", default_value_t = ITEMS as u64, value_parser = clap::value_parser!(u64).range(1..=ITEMS_MAX as u64))]
    items: u64,
    /// Where to put the store: a folder on the file system to measure; otherwise the folder for temporary files
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
struct Time {
    /// How long to measure
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=SECONDS_MAX))]
    seconds: u64,
}

impl Time {
    fn duration(&self) -> Duration {
        Duration::from_secs(self.seconds)
    }
}

#[derive(Debug, clap::Args)]
struct Durable {
    #[command(flatten)]
    time: Time,
    /// Clients at a time, each with a run of its own
    #[arg(long, value_name = "N", default_value_t = CLIENTS as u64, value_parser = clap::value_parser!(u64).range(1..=CLIENTS_MAX as u64))]
    clients: u64,
    /// Where to put the store: a folder on the file system to measure; otherwise the folder for temporary files
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// What is printed with `--json`.
#[derive(Serialize)]
struct Record<'r, R> {
    record: &'static str,
    #[serde(flatten)]
    report: &'r R,
}

pub(crate) fn run(args: &Args, global: &Global) -> Result<u8, Failure> {
    let mut out = Out::new();
    match &args.what {
        What::Decide(time) => {
            let report = bench::decide(time.duration()).map_err(failed)?;
            print(&mut out, global, "bench-decide", &report, show_decide)?;
        }
        What::Step(time) => {
            let report = bench::step(time.duration()).map_err(failed)?;
            print(&mut out, global, "bench-step", &report, show_step)?;
        }
        What::Durable(args) => {
            let report = durable(args)?;
            print(&mut out, global, "bench-durable", &report, show_durable)?;
        }
        What::All(args) => all::run(args, &mut out, global)?,
        What::Hook(args) => {
            let report = hook(args)?;
            print(&mut out, global, "bench-hook", &report, show_hook)?;
        }
        What::Approvals(args) => {
            let report = approvals::measure(args)?;
            print(&mut out, global, "bench-approvals", &report, approvals::show)?;
        }
        What::Console(args) => {
            let report = console::measure(args)?;
            print(&mut out, global, "bench-console", &report, console::show)?;
        }
        What::Facts(args) => {
            let report = facts::measure(args)?;
            print(&mut out, global, "bench-facts", &report, facts::show)?;
        }
        What::McpHttp(args) => {
            let report = mcp_http::measure(args)?;
            print(&mut out, global, "bench-mcp-http", &report, mcp_http::show)?;
        }
        What::Programs(time) => {
            let report = bench::programs(time.duration()).map_err(failed)?;
            print(&mut out, global, "bench-programs", &report, programs::show)?;
        }
        What::Work(args) => {
            let report = work::measure(args)?;
            print(&mut out, global, "bench-work", &report, work::show)?;
        }
    }
    out.finish()?;
    Ok(exit::YES)
}

fn failed(error: BenchError) -> Failure {
    match error {
        error @ (BenchError::NotAllowed(_) | BenchError::NotHeld(_) | BenchError::NotVerified(_)) => {
            Failure::no(error).help("this is a defect; please report it")
        }
        error => Failure::unreadable(error),
    }
}

fn print<R: Serialize>(
    out: &mut Out,
    global: &Global,
    record: &'static str,
    report: &R,
    show: fn(&mut Out, &R) -> Result<(), Failure>,
) -> Result<(), Failure> {
    if global.json {
        return out.json(&Record { record, report });
    }
    if cfg!(debug_assertions) {
        out.line(format_args!("{FAINT}not an optimised build: the figures mean nothing{FAINT:#}"))?;
    }
    show(out, report)
}

fn durable(args: &Durable) -> Result<DurableReport, Failure> {
    let within = args.dir.clone().unwrap_or_else(std::env::temp_dir);
    let unusable = |error| Failure::unreadable(format!("cannot measure in `{}`: {error}", within.display()));
    let folder =
        tempfile::Builder::new().prefix("portcullis-bench-").tempdir_in(&within).map_err(unusable)?;
    let options = DurableOptions {
        program: std::env::current_exe().map_err(unusable)?,
        folder: folder.path().to_owned(),
        time: args.time.duration(),
        clients: usize::try_from(args.clients).unwrap_or(CLIENTS),
    };
    bench::durable(&options).map_err(failed)
}

fn hook(args: &Hook) -> Result<HookReport, Failure> {
    let within = args.dir.clone().unwrap_or_else(std::env::temp_dir);
    let unusable = |error| Failure::unreadable(format!("cannot measure in `{}`: {error}", within.display()));
    let folder =
        tempfile::Builder::new().prefix("portcullis-bench-").tempdir_in(&within).map_err(unusable)?;
    let program = std::env::current_exe().map_err(unusable)?;
    let small = program.with_file_name("portcullis-hook");
    let options = HookBenchOptions {
        small: small.is_file().then_some(small),
        program,
        folder: folder.path().to_owned(),
        calls: args.calls,
    };
    bench::hook(&options).map_err(failed)
}

fn show_hook(out: &mut Out, report: &HookReport) -> Result<(), Failure> {
    let rate = format!("input of {} bytes, process start included", report.input_bytes);
    if let Some(small) = &report.small {
        show(out, "a call with the daemon running, `portcullis-hook`", &rate, small)?;
    }
    show(out, "a call with the daemon running, `portcullis hook`", &rate, &report.call)?;
    show(out, "starting `portcullis` alone", "`--version`", &report.start)?;
    show(out, "fdatasync after appending 4 KiB", "same folder, before and after", &report.fdatasync)?;
    out.line(format_args!("the first event, which starts the daemon: {}", time(report.first_ns)))
}

fn show_decide(out: &mut Out, report: &DecideReport) -> Result<(), Failure> {
    for size in &report.sizes {
        let title = format!("decision, arguments of {} bytes", size.argument_bytes);
        let rate = format!("{} a second on one core", thousands(size.per_second));
        show(out, &title, &rate, &size.latency)?;
    }
    out.line(format_args!(
        "{FAINT}reading the clock costs {} (p50) of each call{FAINT:#}",
        time(report.clock.p50_ns)
    ))
}

fn show_step(out: &mut Out, report: &StepReport) -> Result<(), Failure> {
    for window in [&report.early, &report.late] {
        let title = format!("around step {} of a run", thousands(window.step as f64));
        let rate = format!("arguments of {} bytes", report.argument_bytes);
        show(out, &title, &rate, &window.latency)?;
    }
    out.line(format_args!("the late step costs {GOOD}{:.3}{GOOD:#} times the early one (p50)", report.ratio))
}

fn show_durable(out: &mut Out, report: &DurableReport) -> Result<(), Failure> {
    let phases =
        [("decisions", &report.decisions), ("calls: decision and report of the outcome", &report.calls)];
    for (title, phase) in phases {
        show(out, title, &durable_rate(phase, report.clients), &phase.latency)?;
        if let (Some(daemon), Some(clients)) = (phase.daemon_cpu_us, phase.clients_cpu_us) {
            out.line(format_args!(
                "  p99 is {:.2} times that of fdatasync; processor time each: daemon {daemon:.0} µs, clients {clients:.0} µs\n",
                phase.p99_over_fdatasync_p99
            ))?;
        }
    }
    show(out, "fdatasync after appending 4 KiB", "same folder, before and after", &report.fdatasync)
}

fn durable_rate(phase: &DurablePhase, clients: usize) -> String {
    format!("{} a second, {clients} clients at a time", thousands(phase.per_second))
}

fn show(out: &mut Out, title: &str, rate: &str, times: &Distribution) -> Result<(), Failure> {
    out.line(format_args!("{STRONG}{title}{STRONG:#}  {rate}"))?;
    out.line(format_args!(
        "  p50 {}  p90 {}  p99 {}  p99.9 {}  max {}  ({} calls)",
        time(times.p50_ns),
        time(times.p90_ns),
        time(times.p99_ns),
        time(times.p999_ns),
        time(times.max_ns),
        thousands(times.count as f64)
    ))?;
    let longest = times.bars.iter().map(|bar| bar.count).max().unwrap_or(0).max(1);
    for bar in &times.bars {
        let filled = usize::try_from(bar.count.saturating_mul(BAR_CHARS).div_ceil(longest)).unwrap_or(0);
        out.line(format_args!(
            "  {:>9} {GOOD}{}{GOOD:#} {}",
            time(bar.up_to_ns),
            "#".repeat(filled),
            bar.count
        ))?;
    }
    out.line(format_args!(""))
}

/// Three digits and a unit.
pub(crate) fn time(nanos: u64) -> String {
    let (value, unit) = match nanos {
        0..1_000 => return format!("{nanos} ns"),
        1_000..1_000_000 => (nanos as f64 / 1e3, "µs"),
        1_000_000..1_000_000_000 => (nanos as f64 / 1e6, "ms"),
        _ => (nanos as f64 / 1e9, "s"),
    };
    let decimals = if value < 9.995 { 2 } else { usize::from(value < 99.95) };
    format!("{value:.decimals$} {unit}")
}

/// A whole number with commas.
pub(crate) fn thousands(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_for_people() {
        let times = [999, 1_000, 9_994, 9_996, 99_960, 1_500_000, 60_000_000_000].map(time);
        assert_eq!(times, ["999 ns", "1.00 µs", "9.99 µs", "10.0 µs", "100 µs", "1.50 ms", "60.0 s"]);
        assert_eq!([0.0, 999.6, 1e6].map(thousands), ["0", "1,000", "1,000,000"]);
    }
}
