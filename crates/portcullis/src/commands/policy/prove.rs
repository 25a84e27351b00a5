//! `portcullis policy diff --prove`: that a change of access policies permits nothing new, or a request that it does; and
//! what else of the bundle was loosened.

use std::path::Path;

use portcullis_core::bundle::{Difference, Direction};
use portcullis_prove::{Proof, Through, Times, outside, prove_narrowing};
use serde_json::json;

use super::differences;
use crate::bundle::Opened;
use crate::cli::Global;
use crate::exit;
use crate::failure::Failure;
use crate::out::{self, Out, clean, clean_line, count};

pub(super) fn run(old: &Opened, new: &Opened, solver: &Path, global: &Global) -> Result<u8, Failure> {
    let proof = prove_narrowing(&old.bundle, &new.bundle, solver, Times::default());
    let outside = outside(&old.bundle, &new.bundle);
    let loosened = outside.iter().any(|found| found.direction == Direction::Loosened);
    let (result, code) = match &proof {
        Proof::Counterexample { .. } => ("counterexample", exit::NO),
        _ if loosened => ("loosened", exit::NO),
        Proof::Proved { .. } if outside.is_empty() => ("proved", exit::YES),
        Proof::Proved { .. } => ("not-covered", exit::INCOMPLETE),
        Proof::Unknown { .. } => ("unknown", exit::INCOMPLETE),
        Proof::SolverMissing { .. } => ("solver-missing", exit::INCOMPLETE),
    };
    let mut out = Out::new();
    if global.json {
        let (mut request, mut policies, mut why, mut questions) = (None, None, None, None);
        match &proof {
            Proof::Proved { questions: asked } => questions = Some(asked),
            Proof::Counterexample { request: found, policies: by, .. } => {
                (request, policies) = (Some(found), Some(by))
            }
            Proof::Unknown { why: reason } | Proof::SolverMissing { why: reason } => why = Some(reason),
        }
        out.json(&json!({
            "record": "proof", "result": result, "questions": questions, "request": request,
            "policies": policies, "why": why, "outside": outside,
            "old": old.bundle.digest(), "new": new.bundle.digest(),
        }))?;
    } else {
        show(&mut out, &proof, outside.is_empty())?;
        show_outside(&mut out, &outside)?;
    }
    out.finish()?;
    Ok(code)
}

/// What the proof does not cover.
fn show_outside(out: &mut Out, outside: &[Difference]) -> Result<(), Failure> {
    let Some(first) = outside.first() else { return Ok(()) };
    let (style, what) = match first.direction {
        Direction::Loosened => (out::BAD, "loosened"),
        _ => (out::NOTICE, "not covered"),
    };
    let parts = count(outside.len(), "part", "parts");
    out.line(format_args!(
        "{style}{what}{style:#}: {parts} outside the access policies may allow more than before"
    ))?;
    differences::show(out, outside)
}

/// The request with those of its entities that it is about: the principal and the resource. Solvers list every entity
/// that any policy names; `--json` has them all.
fn concerned(request: &str) -> Vec<&str> {
    let resource = request.lines().find_map(|line| Some(line.split_once("resource: ")?.1));
    let mut shown = Vec::new();
    let mut keep = true;
    for line in request.lines() {
        let entity = line.strip_prefix("  ").filter(|rest| !rest.starts_with([' ', ']', '}']));
        if let Some(entity) = entity.filter(|_| shown.iter().any(|line: &&str| line.starts_with("entities:")))
        {
            let named =
                |name: &str| entity.strip_prefix(name).is_some_and(|rest| rest.starts_with([' ', ',']));
            keep = entity.starts_with("Principal::") || resource.is_some_and(named);
        } else if !line.starts_with(' ') {
            keep = true;
        }
        if keep {
            shown.push(line);
        }
    }
    shown
}

fn show(out: &mut Out, proof: &Proof, whole: bool) -> Result<(), Failure> {
    let (good, bad, notice) = (out::GOOD, out::BAD, out::NOTICE);
    match proof {
        Proof::Proved { questions } => {
            let questions = count(*questions, "question", "questions");
            let rest = if whole { "; every other part is the same or stricter" } else { "" };
            // The word is for the bundle as a whole; of a part of it is said which.
            let word = if whole { "proved" } else { "access policies proved" };
            out.line(format_args!(
                "{good}{word}{good:#}: the new access policies permit nothing that the old ones did not ({questions}){rest}"
            ))
        }
        Proof::Counterexample { through, request, policies } => {
            let what = match through {
                Through::Passes => "this passes now and did not before",
                Through::MayBeGranted => "a person may let this pass now, and it was denied before",
            };
            out.line(format_args!("{bad}not narrower{bad:#}: {what}"))?;
            for line in concerned(request) {
                out.line(format_args!("  {}", clean(line)))?;
            }
            out.line(format_args!("  permitted by {}", clean_line(&policies.join(", "))))
        }
        Proof::Unknown { why } => out.line(format_args!("{notice}not proved{notice:#}: {}", clean_line(why))),
        Proof::SolverMissing { why } => {
            out.line(format_args!("{notice}no solver{notice:#}: {}", clean_line(why)))
        }
    }
}
