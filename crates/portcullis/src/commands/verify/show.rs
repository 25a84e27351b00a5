//! The answer for people.

use anstyle::Style;
use portcullis_proof::log::LogReport;
use portcullis_proof::report::Check;
use portcullis_proof::{CheckResult, LoggedReport, Status};

use crate::failure::Failure;
use crate::out::{self, Out, clean_line};
use crate::trust::Believed;

pub(super) fn report(report: &LoggedReport, believed: &Believed, out: &mut Out) -> Result<(), Failure> {
    answer(report, out)?;
    let export = &report.export;
    if let (Some(run), Some(origin)) = (export.run, &export.origin) {
        out.line(format_args!("  run         {run} of `{}`", clean_line(origin)))?;
    }
    if let Some(head) = export.head {
        out.line(format_args!("  head        {} {}", head.count, head.link))?;
    }
    checks(&export.checks, "", out)?;
    if let Some(log) = &report.log {
        let tree = log
            .tree_size
            .map_or_else(|| "nothing of it".to_owned(), |size| out::count(size, "leaf", "leaves"));
        out.line(format_args!("  log         {tree}"))?;
        checks(&log.checks, "  ", out)?;
    }
    for name in &report.ignored {
        let (faint, name) = (out::FAINT, clean_line(name));
        out.line(format_args!(
            "{faint}  `{name}` came with the export and was not read: what to believe is yours to say{faint:#}"
        ))?;
    }
    hints(report, believed, out)
}

fn answer(report: &LoggedReport, out: &mut Out) -> Result<(), Failure> {
    let (status, style) = match report.status {
        Status::Valid => ("VALID", out::GOOD),
        Status::Invalid => ("INVALID", out::BAD),
        Status::Incomplete => ("INCOMPLETE", out::NOTICE),
    };
    if let Some(failure) = &report.export.failure {
        let event = failure.seq.map_or_else(String::new, |seq| format!(", event {seq}"));
        out.line(format_args!("{style}{status} {}{style:#}", failure.attack))?;
        out.line(format_args!("  at line {}, byte {}{event}", failure.line, failure.byte))?;
        return out.line(format_args!("  {}", clean_line(&failure.message)));
    }
    if let Some(failure) = report.log.as_ref().and_then(|log: &LogReport| log.failure.as_ref()) {
        let line = failure.line.map_or_else(String::new, |line| format!(", line {line}"));
        out.line(format_args!("{style}{status} {}{style:#}", failure.attack))?;
        out.line(format_args!("  at `{}`{line}, byte {}", clean_line(&failure.file), failure.byte))?;
        return out.line(format_args!("  {}", clean_line(&failure.message)));
    }
    out.line(format_args!("{style}{status}{style:#}"))
}

fn checks(checks: &[Check], indent: &str, out: &mut Out) -> Result<(), Failure> {
    for check in checks {
        let (word, style) = match check.result {
            CheckResult::Pass => ("pass", out::GOOD),
            CheckResult::Fail => ("FAIL", out::BAD),
            CheckResult::NotChecked => ("not checked", Style::new().dimmed()),
        };
        let detail = clean_line(&check.detail);
        out.line(format_args!("  {indent}{:<11} {style}{word:<11}{style:#}  {detail}", check.name))?;
    }
    Ok(())
}

fn hints(report: &LoggedReport, believed: &Believed, out: &mut Out) -> Result<(), Failure> {
    let hint = if report.status != Status::Incomplete {
        return Ok(());
    } else if believed.heads.is_none() && believed.policy.is_none() {
        "give --trust FILE to hold the chain against what you know"
    } else if believed.policy.as_ref().is_some_and(|policy| !policy.policy.has_quorum())
        && report.log.is_some()
    {
        "a policy with witnesses, or one that remembers a tree, shows that no one is shown a different log"
    } else {
        return Ok(());
    };
    let faint = out::FAINT;
    out.line(format_args!("{faint}  {hint}{faint:#}"))
}
