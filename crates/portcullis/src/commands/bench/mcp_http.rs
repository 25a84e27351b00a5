//! `portcullis bench mcp-http`: what the gate adds to MCP over HTTP.

use portcullis_gateway::bench::{
    self, McpCallTimes, McpHttpOptions, McpHttpReport, McpStalled, McpTokens, STREAMS,
};

use super::{McpHttp, failed, thousands, time};
use crate::failure::Failure;
use crate::out::{GOOD, Out, STRONG};

const MIB: f64 = 1_048_576.0;

pub(super) fn measure(args: &McpHttp) -> Result<McpHttpReport, Failure> {
    let within = args.dir.clone().unwrap_or_else(std::env::temp_dir);
    let unusable = |error| Failure::unreadable(format!("cannot measure in `{}`: {error}", within.display()));
    let folder =
        tempfile::Builder::new().prefix("portcullis-bench-").tempdir_in(&within).map_err(unusable)?;
    let options = McpHttpOptions {
        program: std::env::current_exe().map_err(unusable)?,
        folder: folder.path().to_owned(),
        time: args.time.duration(),
        streams: usize::try_from(args.streams).unwrap_or(STREAMS),
    };
    bench::mcp_http(&options).map_err(failed)
}

pub(super) fn show(out: &mut Out, report: &McpHttpReport) -> Result<(), Failure> {
    show_calls(out, &report.calls)?;
    let idle = &report.idle;
    out.line(format_args!("{STRONG}{} sessions that do nothing{STRONG:#}", thousands(idle.streams as f64)))?;
    out.line(format_args!(
        "resident memory of the daemon: {:.1} MiB before them, {:.1} MiB with the last one, {:.1} MiB idle",
        idle.before_bytes as f64 / MIB,
        idle.opened_bytes as f64 / MIB,
        idle.idle_bytes as f64 / MIB,
    ))?;
    out.line(format_args!("they cost {GOOD}{:.1} MiB{GOOD:#}\n", idle.cost_bytes() as f64 / MIB))?;
    show_stalled(out, &report.stalled)?;
    show_tokens(out, &report.tokens)
}

fn heading(out: &mut Out, what: &str) -> Result<(), Failure> {
    out.line(format_args!(
        "{STRONG}{what:<40}{STRONG:#} {:>9} {:>9} {:>9}  {:>9}",
        "p50", "p90", "p99", "count"
    ))
}

fn row(out: &mut Out, what: &str, of: &bench::Distribution) -> Result<(), Failure> {
    out.line(format_args!(
        "{what:<40} {:>9} {:>9} {:>9}  {:>9}",
        time(of.p50_ns),
        time(of.p90_ns),
        time(of.p99_ns),
        thousands(of.count as f64)
    ))
}

fn show_calls(out: &mut Out, report: &McpCallTimes) -> Result<(), Failure> {
    heading(out, "a call at a time")?;
    row(out, "to the server", &report.direct)?;
    row(out, "through `/mcp`", &report.endpoint)?;
    row(out, "through `mcp --url`", &report.url)?;
    row(out, "fdatasync after appending 4 KiB", &report.fdatasync)?;
    let disk = report.fdatasync.p50_ns;
    for (what, adds) in [("/mcp", report.endpoint_adds_ns), ("mcp --url", report.url_adds_ns)] {
        let rest = time(adds.saturating_sub(disk));
        out.line(format_args!("`{what}` adds {GOOD}{}{GOOD:#} (p50): one fdatasync and {rest}", time(adds)))?;
    }
    out.line(format_args!(""))
}

fn show_stalled(out: &mut Out, report: &McpStalled) -> Result<(), Failure> {
    let what = format!("{} calls at a time of {} ms", report.answered_at_once, report.work_ms);
    heading(out, &what)?;
    row(out, "by themselves", &report.without)?;
    row(out, &format!("beside {} at a server that stalls", report.stalled_at_once), &report.with)?;
    let of = |nanos: i64| format!("{}{}", if nanos < 0 { "-" } else { "" }, time(nanos.unsigned_abs()));
    out.line(format_args!(
        "they are delayed by {GOOD}{}{GOOD:#} (p50), {GOOD}{}{GOOD:#} (p99)\n",
        of(report.delay_p50_ns),
        of(report.delay_p99_ns)
    ))
}

fn show_tokens(out: &mut Out, report: &McpTokens) -> Result<(), Failure> {
    heading(out, "an access token")?;
    row(out, "checking RS256, 2,048 bits", &report.rs256)?;
    row(out, "checking ES256", &report.es256)?;
    row(out, "checking EdDSA", &report.eddsa)?;
    row(out, "a request with the daemon's own token", &report.own_request)?;
    row(out, "the same with a token of ES256", &report.es256_request)?;
    out.line(format_args!("the latter takes {GOOD}{}{GOOD:#} more (p50)", time(report.request_adds_ns)))
}
