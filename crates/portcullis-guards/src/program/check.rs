//! Asks the guard programs of the bundle.

use portcullis_core::action::{Action, Hook, Pending, Subject};
use portcullis_core::fact::{FactRequest, Facts};
use portcullis_core::finding::Finding;
use portcullis_core::guard::{Guard, GuardFailure, GuardMeta, Unfaithful};
use portcullis_core::pipeline::reserved;
use portcullis_core::principal::Principal;
use portcullis_core::program::{self, Failure, Input, Objection, Run, Told, Touched, minute};
use portcullis_core::time::Timestamp;
use portcullis_core::verdict::Verdict;
use portcullis_trajectory::memory::{Context, RunMemory};

use super::answer::{answer, finding};
use super::per_action;

/// ## What it does
/// Asks the programs in `programs/*.star` about every action, and denies or holds what they object to. A program is a
/// function `check(action, run, principal)` in Starlark that answers `deny(…)`, `hold(…)` or nothing. All programs are asked
/// in one round trip to a worker process, which has no files, no network and little memory.
///
/// ## Why it matters
/// Some conditions cannot be written as a limit or a policy: amounts that depend on each other, tables of who may read which
/// column, times of day. A program can state them, and can only narrow: it has no word for *allow*.
///
/// ## Fires on
/// What a program says: `deny` is a *deny*, `hold` a *review*. The rule is `program/check/` and the program's name. A program
/// that fails denies as `gate/guard-failed`, with its line. A worker that is late, goes beyond its memory or cannot be
/// started denies as `gate/fact-missing`, with the program that ran.
///
/// `[per_action]` names tools for each of whose calls a model writes a program besides, as `program/check/per-action`. Where
/// there is no model, no time or no program that runs, the call is denied as `gate/fact-missing`.
///
/// ## Does not cover
/// Inputs, results and replies. The texts that a run has read: a program knows the labels of what was seen, what the user
/// asked, and the effects of the action. Earlier calls, and their arguments.
///
/// ## Configuration
/// `programs/*.star`: see [Guard programs](../programs.md). Each is at most 64 KiB. All of them have 200 ms for an action.
/// `[per_action]`: see [Programs by a model](../guardagent.md).
///
/// ## False positives
/// A machine so busy that a worker does not answer within 200 ms. A program whose author did not think of a missing
/// argument: use `.get`.
///
/// ## References
/// Seed 004, guard programs. OWASP LLM06, ASI02.
#[derive(Debug)]
pub struct ProgramCheck;

/// What the rules of its findings begin with, which is its name.
pub const RULE: &str = "program/check";

static META: GuardMeta = GuardMeta {
    id: RULE,
    hooks: &[Hook::Action],
    owasp: &["LLM06", "ASI02"],
    unfaithful_to: Some(Unfaithful::Task),
};

impl Guard<RunMemory> for ProgramCheck {
    fn meta(&self) -> &'static GuardMeta {
        &META
    }

    fn sources(&self) -> &'static [&'static str] {
        &[program::SOURCE, per_action::SOURCE]
    }

    fn needs(&self, context: &Context<'_>, pending: &Pending<'_>) -> Vec<FactRequest> {
        question(context, pending).into_iter().chain(per_action::question(context, pending)).collect()
    }

    fn decide(
        &self,
        context: &Context<'_>,
        pending: &Pending<'_>,
        facts: &Facts,
    ) -> Result<Vec<Finding>, GuardFailure> {
        let mut findings = Vec::new();
        let questions = [question(context, pending), per_action::question(context, pending)];
        for question in questions.into_iter().flatten() {
            let answer = answer(facts, &question, "the programs")?;
            findings.extend(answer.failures.iter().map(failure));
            findings.extend(answer.objections.iter().map(objection));
        }
        Ok(findings)
    }
}

fn question(context: &Context<'_>, pending: &Pending<'_>) -> Option<FactRequest> {
    let Subject::Action(action) = pending.subject else { return None };
    let programs = &context.bundle.programs;
    let asks = !programs.is_empty();
    asks.then(|| program::request(programs.digest(), action, context.run, pending.at))
}

fn failure(failure: &Failure) -> Finding {
    let message = format!("the program `{}` failed: {}", failure.program, failure.why);
    Finding::new(reserved::GUARD_FAILED, Verdict::Deny, message)
}

fn objection(objection: &Objection) -> Finding {
    let name = objection.program.as_str();
    finding((RULE, name), &format!("the program `{name}`"), objection)
}

/// What programs are told of an action, as JSON.
///
/// # Errors
/// It cannot be written, which is a denial.
pub fn input(context: &Context<'_>, action: &Action, at: Timestamp) -> Result<String, GuardFailure> {
    let nobody = Principal::named("");
    let tool = action.tool();
    let known = tool.and_then(|name| context.bundle.registry.get(name));
    let request = context.memory().ok().and_then(|memory| memory.sources.prompt());
    let input = Input {
        action: Told {
            tool,
            server: action.server.as_deref(),
            type_: known.map(|tool| tool.tool_type.as_str()),
            side_effecting: tool.is_some_and(|name| context.is_side_effecting(name)),
            risk: known.map(|tool| tool.risk),
            args: &action.arguments,
            planned: action.planned.as_deref(),
            effects: context.effects().iter().map(Touched::from).collect(),
            at: minute(at),
        },
        run: Run {
            steps: context.run.steps(),
            side_effects: context.run.side_effects(),
            policy: context.run.policy(),
            surface: context.run.surface(),
            labels: context.run.labels().iter().map(ToString::to_string).collect(),
            request,
        },
        principal: context.run.principal().unwrap_or(&nobody).into(),
    };
    serde_json::to_string(&input).map_err(|error| GuardFailure(error.to_string()))
}
