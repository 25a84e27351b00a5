//! `portcullis contract explain`: what statements become.

use portcullis_assist::{Compiled, Written};
use portcullis_contracts::{Checker, Explanation, conflicts, explain, no_repair};
use serde::Serialize;

use super::verdict::{conflict, option};
use crate::cli::Global;
use crate::exit;
use crate::failure::Failure;
use crate::out::{self, Out, clean_line};

pub(super) const EXAMPLES: &str = "\
Examples:
  portcullis contract explain \"Answer in at most 100 words.\" \"Be kind.\"
  portcullis contract explain \"Must cite a known document.\" \\
      \"Contains no customer names.\"
  portcullis contract explain \"Your answer must be JSON.\" \\
      \"Use three bullet points.\" --json

Exit codes: 0 all are exact and can hold together, 2 one is left to a judge, is ambiguous, or cannot hold together with \
others, 3 one is empty or too long.";

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Statements about a reply
    #[arg(required = true, value_name = "STATEMENT")]
    statements: Vec<String>,
}

/// What a statement became, for programs.
#[derive(Serialize)]
struct Line<'e> {
    record: &'static str,
    id: &'e str,
    #[serde(flatten)]
    explanation: &'e Explanation,
    ambiguous: bool,
    /// Why code cannot repair it, where it never can.
    #[serde(skip_serializing_if = "Option::is_none")]
    no_repair: Option<&'e str>,
}

/// Statements that cannot hold together, for programs.
#[derive(Serialize)]
struct Clash<'c> {
    record: &'static str,
    #[serde(flatten)]
    conflict: &'c portcullis_contracts::Conflict,
}

impl Args {
    pub(super) fn run(&self, global: &Global) -> Result<u8, Failure> {
        let written: Vec<Written> = self.statements.iter().map(|text| text.as_str().into()).collect();
        let compiled = Compiled::of(&written).map_err(Failure::unreadable)?;
        let found = conflicts(&compiled.contracts, None);
        let mut out = Out::new();
        let mut sure = found.is_empty() && compiled.ambiguous.is_empty();
        for contract in &compiled.contracts {
            let explanation = explain(&contract.statement);
            let unrepairable = contract.family().and_then(no_repair);
            sure &= explanation.checker != Checker::Judged;
            if global.json {
                out.json(&Line {
                    record: "explanation",
                    id: &contract.id,
                    ambiguous: explanation.is_ambiguous(),
                    explanation: &explanation,
                    no_repair: unrepairable,
                })?;
            } else {
                show(&contract.id, &explanation, unrepairable, &mut out)?;
            }
        }
        for one in &found {
            if global.json {
                out.json(&Clash { record: "conflict", conflict: one })?;
            } else {
                out.line(format_args!("{}", conflict("", one)))?;
            }
        }
        out.finish()?;
        Ok(if sure { exit::YES } else { exit::INCOMPLETE })
    }
}

fn show(id: &str, told: &Explanation, no_repair: Option<&str>, out: &mut Out) -> Result<(), Failure> {
    let (style, word) = match told.checker {
        Checker::Exact(_) => (out::GOOD, "exact"),
        Checker::Judged => (out::NOTICE, "judged"),
    };
    out.line(format_args!("{style}{word:<6}{style:#}  {id}  {}", clean_line(&told.statement)))?;
    out.line(format_args!("        {}", clean_line(&told.reading)))?;
    for note in &told.notes {
        out.line(format_args!("        ambiguous: {}", clean_line(note)))?;
    }
    if matches!(told.checker, Checker::Exact(_)) && !told.not_understood.is_empty() {
        let words = told.not_understood.join("`, `");
        out.line(format_args!("        passed over: `{}`", clean_line(&words)))?;
    }
    if !told.checks.is_empty() {
        let names: Vec<&str> = told.checks.iter().map(|check| check.name()).collect();
        out.line(format_args!("        decided by: {} of `verify-output`", names.join(", ")))?;
    }
    if !told.needs.is_empty() {
        let options: Vec<String> = told.needs.iter().map(|need| format!("`{}`", option(*need))).collect();
        out.line(format_args!("        needs: {}; without, it is judged", options.join(", ")))?;
    }
    if let Some(reason) = no_repair {
        out.line(format_args!("        no mechanical repair: {}", clean_line(reason)))?;
    }
    Ok(())
}
