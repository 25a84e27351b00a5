//! `portcullis simulate --request`: what would become of a request in plain words.

use std::sync::Arc;

use portcullis_core::verdict::Verdict;
use portcullis_eval::agent_bundle;
use portcullis_sim::rehearsal::{self, Judged, Rehearsal};

use crate::bundle::{self, BundleArg, Opened};
use crate::cli::Global;
use crate::exit;
use crate::failure::Failure;
use crate::out::{BAD, FAINT, GOOD, NOTICE, Out, clean, count};

/// The bundle of its own.
const SHIPPED: &str = "the shipped one for agents that act on their own";

/// Rehearses a request; under the bundle for agents that act on their own where none is named, and none
/// was chosen for the state folder.
pub(super) fn run(
    request: &str,
    policy: Option<&str>,
    bundle: &BundleArg,
    global: &Global,
) -> Result<u8, Failure> {
    let Opened { bundle, .. } = bundle.open_or(global, SHIPPED, agent_bundle::files)?;
    bundle::check_policy(&bundle, policy)?;
    let policy = policy.unwrap_or(bundle.default_policy());
    let pipeline = Arc::new(portcullis_session::policy::pipeline());
    let rehearsal = rehearsal::rehearse(&bundle, pipeline, policy, request).map_err(Failure::unreadable)?;
    tell(&rehearsal, global)?;
    Ok(match rehearsal.verdict() {
        verdict if verdict.permits() => exit::YES,
        Verdict::Clarify | Verdict::Review => exit::INCOMPLETE,
        _ => exit::NO,
    })
}

fn tell(rehearsal: &Rehearsal, global: &Global) -> Result<(), Failure> {
    let mut out = Out::new();
    if global.json {
        out.json(rehearsal)?;
        return out.finish();
    }
    let plan = &rehearsal.plan;
    let because =
        plan.because.map_or("no kind of task is named".to_owned(), |word| format!("because of `{word}`"));
    judged(&mut out, "request", &rehearsal.request)?;
    out.line(format_args!(
        "{FAINT}plan: {}, confidence {:.2}, {because}{FAINT:#}",
        count(plan.actions.len(), "step", "steps"),
        plan.confidence
    ))?;
    for (number, step) in rehearsal.steps.iter().enumerate() {
        let (planned, tool) = (&step.planned, step.planned.tool.unwrap_or("answer"));
        out.line(format_args!(
            "{}. {}: {tool}, risk {:.1}",
            number + 1,
            clean(&planned.description),
            planned.risk
        ))?;
        judged(&mut out, "   action", &step.action)?;
        if let Some(result) = &step.result {
            judged(&mut out, &format!("   result, risk {:.1}", step.result_risk), result)?;
        }
    }
    let left = plan.actions.len() - rehearsal.steps.len();
    if left > 0 {
        out.line(format_args!("{FAINT}not reached: {} of the plan{FAINT:#}", count(left, "step", "steps")))?;
    }
    out.finish()
}

fn judged(out: &mut Out, what: &str, judged: &Judged) -> Result<(), Failure> {
    let style = match judged.verdict {
        Verdict::Allow => GOOD,
        verdict if verdict.permits() => NOTICE,
        Verdict::Clarify | Verdict::Review => NOTICE,
        _ => BAD,
    };
    out.line(format_args!("{what}: {style}{}{style:#}", judged.verdict))?;
    let indent = what.len() - what.trim_start().len() + 2;
    for reason in &judged.reasons {
        out.line(format_args!("{:indent$}{FAINT}{}{FAINT:#}", "", clean(reason)))?;
    }
    Ok(())
}
