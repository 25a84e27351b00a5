//! `portcullis bench all`: every measurement in one run, beside what the project aims at.

use std::fs;

use portcullis_gateway::bench;
use serde::Serialize;

use super::{All, Durable, Hook, Record, Time, durable, failed, hook, thousands, time};
use crate::cli::Global;
use crate::failure::Failure;
use crate::out::{BAD, FAINT, GOOD, Out, STRONG};

/// Calls of the hook that are measured.
const HOOK_CALLS: u64 = 200;
/// Clients of a loaded daemon.
const MANY: u64 = 64;

/// One figure beside its aim.
#[derive(Debug, Serialize)]
struct Row {
    what: String,
    /// In nanoseconds, or in the unit that `what` names.
    measured: f64,
    aim: f64,
    #[serde(skip)]
    unit: Unit,
    met: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Nanoseconds,
    PerSecond,
    Megabytes,
}

#[derive(Debug, Serialize)]
struct Report {
    rows: Vec<Row>,
    missed: usize,
}

/// At most the aim.
fn at_most(what: impl Into<String>, measured: f64, aim: f64, unit: Unit) -> Row {
    Row { what: what.into(), measured, aim, unit, met: measured <= aim }
}

/// At least the aim.
fn at_least(what: impl Into<String>, measured: f64, aim: f64, unit: Unit) -> Row {
    Row { what: what.into(), measured, aim, unit, met: measured >= aim }
}

pub(super) fn run(args: &All, out: &mut Out, global: &Global) -> Result<(), Failure> {
    let mut rows = deciding(args)?;
    rows.extend(recording(args)?);
    rows.extend(hooks(args)?);
    rows.extend(size());
    let report = Report { missed: rows.iter().filter(|row| !row.met).count(), rows };
    if global.json {
        return out.json(&Record { record: "bench-all", report: &report });
    }
    if cfg!(debug_assertions) {
        out.line(format_args!("{FAINT}not an optimised build: the figures mean nothing{FAINT:#}"))?;
    }
    show(out, &report)
}

/// The pure decision, and a whole step in memory.
fn deciding(args: &All) -> Result<Vec<Row>, Failure> {
    let decide = bench::decide(args.time.duration()).map_err(failed)?;
    let mut rows = Vec::new();
    for (size, aims) in decide.sizes.iter().zip([&[3e3, 5e3][..], &[10e3][..]]) {
        let of =
            |percentile: &str| format!("decision, {} B, {percentile}", thousands(size.argument_bytes as f64));
        let measured = [("p50", size.latency.p50_ns), ("p99", size.latency.p99_ns)];
        for ((percentile, ns), aim) in measured.into_iter().zip(aims) {
            rows.push(at_most(of(percentile), ns as f64, *aim, Unit::Nanoseconds));
        }
    }
    let step = bench::step(args.time.duration()).map_err(failed)?;
    for window in [&step.early, &step.late] {
        let what = format!("step {} of a run, p50", thousands(window.step as f64));
        rows.push(at_most(what, window.latency.p50_ns as f64, 8e3, Unit::Nanoseconds));
    }
    Ok(rows)
}

/// Decisions that are on the disk: of one client, and of many.
fn recording(args: &All) -> Result<Vec<Row>, Failure> {
    let of = |clients: u64| {
        let time = Time { seconds: args.time.seconds };
        durable(&Durable { time, clients, dir: args.dir.clone() })
    };
    let (alone, loaded) = (of(1)?, of(MANY)?);
    let limit = 1.2 * alone.fdatasync.p50_ns as f64;
    let p50 = alone.decisions.latency.p50_ns as f64;
    let mut rows =
        vec![at_most("durable decision alone, p50 (1.2 × fdatasync)", p50, limit, Unit::Nanoseconds)];
    let rate = loaded.decisions.per_second;
    rows.push(at_least("durable decisions a second, 64 clients", rate, 15_000.0, Unit::PerSecond));
    if let Some(cpu) = loaded.decisions.daemon_cpu_us {
        rows.push(at_most("daemon's processor time, each", cpu * 1e3, 60e3, Unit::Nanoseconds));
    }
    Ok(rows)
}

fn hooks(args: &All) -> Result<Vec<Row>, Failure> {
    let report = hook(&Hook { calls: HOOK_CALLS, dir: args.dir.clone() })?;
    let answered = report.small.as_ref().unwrap_or(&report.call);
    Ok(vec![at_most("hook, p50", answered.p50_ns as f64, 2e6, Unit::Nanoseconds)])
}

/// The program itself.
fn size() -> Option<Row> {
    let bytes = std::env::current_exe().and_then(fs::metadata).ok()?.len();
    Some(at_most("size of the program", bytes as f64 / 1e6, 40.0, Unit::Megabytes))
}

fn show(out: &mut Out, report: &Report) -> Result<(), Failure> {
    let width = report.rows.iter().map(|row| row.what.chars().count()).max().unwrap_or_default();
    out.line(format_args!("{STRONG}{:<width$}  {:>9}  {:>9}{STRONG:#}", "", "measured", "aim"))?;
    for row in &report.rows {
        let (measured, aim) = (row.unit.shown(row.measured), row.unit.shown(row.aim));
        let (style, mark) = if row.met { (GOOD, "met") } else { (BAD, "missed") };
        out.line(format_args!("{:<width$}  {measured:>9}  {aim:>9}  {style}{mark}{style:#}", row.what))?;
    }
    let all = report.rows.len();
    out.line(format_args!("{} of {all} aims are met", all - report.missed))
}

impl Unit {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "durations of a measurement")]
    fn shown(self, value: f64) -> String {
        match self {
            Self::Nanoseconds => time(value as u64),
            Self::PerSecond => format!("{}/s", thousands(value)),
            Self::Megabytes => format!("{value:.1} MB"),
        }
    }
}
