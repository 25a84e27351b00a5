//! `portcullis bench programs`: what guard programs add to a decision.

use portcullis_gateway::bench::ProgramsReport;

use super::{thousands, time};
use crate::failure::Failure;
use crate::out::{GOOD, Out};

pub(super) fn show(out: &mut Out, report: &ProgramsReport) -> Result<(), Failure> {
    out.line(format_args!("{:<34} {:>9} {:>9} {:>9}  {:>9}", "a decision", "p50", "p90", "p99", "calls"))?;
    let many = format!("with {} programs", report.many);
    let rows = [
        ("without programs", &report.without),
        ("with one program", &report.with_one),
        (many.as_str(), &report.with_many),
    ];
    for (what, of) in rows {
        out.line(format_args!(
            "{what:<34} {:>9} {:>9} {:>9}  {:>9}",
            time(of.p50_ns),
            time(of.p90_ns),
            time(of.p99_ns),
            thousands(of.count as f64)
        ))?;
    }
    out.line(format_args!(""))?;
    out.line(format_args!(
        "one program adds {GOOD}{}{GOOD:#}, its round trip included",
        time(report.one_adds_ns)
    ))?;
    out.line(format_args!("{} programs add {GOOD}{}{GOOD:#}", report.many, time(report.many_add_ns)))?;
    out.line(format_args!(
        "inside the worker, a program with a table of {} columns takes {GOOD}{}{GOOD:#}",
        report.columns,
        time(report.each_ns)
    ))
}
