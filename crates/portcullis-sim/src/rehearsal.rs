//! What would become of a request: its words are judged, a [`plan`](super::planner) is made of it, and each step is put
//! to the gate, without a ledger and without anything being done. A step that may run has a result of one line, which
//! is judged as well and carries the higher risk of its tool and its step.

use std::sync::Arc;

use portcullis_core::bundle::Bundle;
use portcullis_core::event::OutcomeStatus;
use portcullis_core::infer::EffectArgument;
use portcullis_core::label::Label;
use portcullis_core::pipeline::Decision;
use portcullis_core::tool::{ArgsSchema, Tool};
use portcullis_core::verdict::Verdict;
use portcullis_session::dry::{DryRun, UnknownPolicy};
use portcullis_session::engine::Proposal;
use portcullis_session::policy::Pipeline;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::planner::{self, ActionType, PlannedAction, RequestPlan};

/// What a request led to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Rehearsal {
    /// What the planner would do.
    pub plan: RequestPlan,
    /// What is said of the request itself.
    pub request: Judged,
    /// The steps up to the first that does not go ahead, with it.
    pub steps: Vec<Step>,
}

/// What the gate says, with its reasons.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Judged {
    /// The verdict.
    pub verdict: Verdict,
    /// `RULE: MESSAGE`, in the order of the findings.
    pub reasons: Vec<String>,
}

/// A step of the plan before the gate.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Step {
    /// What is planned.
    pub planned: PlannedAction,
    /// What is said of it.
    pub action: Judged,
    /// What is said of its result; none where it did not run or has none.
    pub result: Option<Judged>,
    /// The risk of the result: see [`planner::propagate`].
    pub result_risk: f64,
}

impl Rehearsal {
    /// The strictest verdict of all.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        let steps = self.steps.iter().flat_map(|step| std::iter::once(&step.action).chain(&step.result));
        std::iter::once(&self.request)
            .chain(steps)
            .map(|judged| judged.verdict)
            .fold(Verdict::Allow, Verdict::join)
    }
}

impl From<&Decision> for Judged {
    fn from(decision: &Decision) -> Self {
        let reasons =
            decision.findings.iter().map(|finding| format!("{}: {}", finding.rule, finding.message));
        Self { verdict: decision.verdict, reasons: reasons.collect() }
    }
}

/// Rehearses a request under a runtime policy of the bundle, with the simulator's [`tools`] added to the bundle's.
///
/// # Errors
/// There is no such runtime policy.
pub fn rehearse(
    bundle: &Bundle,
    pipeline: Arc<Pipeline>,
    policy: &str,
    request: &str,
) -> Result<Rehearsal, RehearsalError> {
    let bundle = Arc::new(bundle.with_tools(tools().map_err(RehearsalError::Tools)?));
    let mut run = DryRun::open(bundle, pipeline, policy)?;
    let plan = planner::plan(request);
    let said = run.input(request, Label::User);
    let mut rehearsal = Rehearsal { request: Judged::from(&said.decision), steps: Vec::new(), plan };
    if !rehearsal.request.verdict.permits() {
        return Ok(rehearsal);
    }
    for planned in &rehearsal.plan.actions {
        let judgement = run.propose(proposal(planned, request, rehearsal.plan.confidence));
        let goes_on = judgement.enforced.proceeds();
        let result = planned.tool.filter(|_| goes_on).and_then(|tool| {
            let content = format!("{tool}: done, {}", planned.description);
            run.outcome(judgement.action.id, OutcomeStatus::Ok, Some(content))
        });
        let step = Step {
            planned: planned.clone(),
            action: Judged::from(&judgement.decision),
            result: result.map(|seen| Judged::from(&seen.decision)),
            result_risk: planned.tool.map_or(planned.risk, |tool| planner::propagate(tool, planned.risk)),
        };
        rehearsal.steps.push(step);
        if !goes_on {
            break;
        }
    }
    Ok(rehearsal)
}

/// Why a request cannot be rehearsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RehearsalError {
    /// No such runtime policy.
    #[error(transparent)]
    Policy(#[from] UnknownPolicy),
    /// The simulator's tools cannot be described.
    #[error("the tools of the simulator: {0}")]
    Tools(String),
}

/// A step as the agent would propose it. What is searched for is the request; more the planner does not know.
fn proposal(planned: &PlannedAction, request: &str, confidence: f64) -> Proposal {
    let arguments = match planned.action {
        ActionType::Search => json!({"query": request}),
        _ => json!({}),
    };
    Proposal {
        tool: planned.tool.map(str::to_owned),
        arguments,
        planned: Some(planned.description.clone().into_owned()),
        confidence: Some(confidence),
        ..Proposal::default()
    }
}

/// The tools of the seed's simulator with their risks, and `send_message`.
///
/// # Errors
/// Never: the schemas are fixed.
pub fn tools() -> Result<Vec<Tool>, String> {
    let of = |name: &str, tool_type: &str, side_effecting: bool, args: &[(&str, &str)]| {
        let risk = planner::propagate(name, 0.0);
        let properties: Map<String, Value> =
            args.iter().map(|(argument, _)| ((*argument).to_owned(), json!({"type": "string"}))).collect();
        let effects = args.iter().filter(|(_, effect)| !effect.is_empty());
        let schema = json!({"type": "object", "properties": properties});
        Ok(Tool {
            id: name.to_owned(),
            name: name.to_owned(),
            tool_type: tool_type.to_owned(),
            description: String::new(),
            side_effecting,
            risk,
            cost_micros: 0,
            trusted: false,
            excise: true,
            enabled: true,
            effects: effects
                .map(|(argument, effect)| EffectArgument {
                    argument: (*argument).to_owned(),
                    effect: (*effect).to_owned(),
                })
                .collect(),
            inferred: false,
            args: ArgsSchema::compile(&schema)?,
        })
    };
    [
        of("web_search", "RETRIEVE_DOCS", false, &[("query", "")]),
        of("academic_search", "RETRIEVE_DOCS", false, &[("query", "")]),
        of("document_reader", "RETRIEVE_DOCS", false, &[("path", "path")]),
        of("document_writer", "WRITE_FILE", true, &[("path", "path"), ("content", "")]),
        of("file_system", "MODIFY", true, &[("operation", ""), ("path", "path")]),
        of("code_executor", "EXECUTE", true, &[("code", "shell")]),
        of("send_message", "SEND_EMAIL", true, &[("recipient", "email"), ("body", "")]),
    ]
    .into_iter()
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_of_the_planner_is_described_with_its_risk() {
        let described = tools().unwrap();
        assert_eq!(described.len(), planner::TOOLS.len());
        for tool in planner::TOOLS {
            let found = described.iter().find(|known| known.name == tool.name);
            assert_eq!(found.map(|known| known.risk), Some(tool.risk), "{}", tool.name);
        }
    }
}
