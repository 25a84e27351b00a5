//! Asks the engines of the bundle.

use portcullis_core::action::{Hook, Pending};
use portcullis_core::fact::{FactRequest, Facts};
use portcullis_core::finding::Finding;
use portcullis_core::guard::{Guard, GuardFailure, GuardMeta, Unfaithful};
use portcullis_core::program::{ENGINE_SOURCE, engine_request};
use portcullis_trajectory::memory::{Context, RunMemory};

use super::answer::{answer, finding};

/// ## What it does
/// Asks the engines in `engines.toml` about actions, and denies or holds what they object to. An engine is an executable of
/// the operator, such as a classifier, that speaks the worker protocol and runs contained.
///
/// ## Why it matters
/// A team may know things about its own work that no rule states, and have a program that can tell. It gets a say, and
/// cannot let anything pass: it has no word for *allow*.
///
/// ## Fires on
/// What an engine says: `deny` is a *deny*, `hold` a *review*. The rule is `program/engine/` and the engine's name. One that
/// is late, ends, cannot be started or answers something else denies as `gate/fact-missing`. Its answer is a fact that is
/// recorded with the verdict, and a replay goes by the record.
///
/// ## Does not cover
/// Inputs, results and replies. Whether an engine is right.
///
/// ## Configuration
/// `engines.toml`: see [Guard programs](../programs.md#engines).
///
/// ## False positives
/// Those of the engine. A machine so busy that it does not answer within `wait_ms`.
///
/// ## References
/// Seed 004, toolbox and engines that users add. OWASP LLM06, ASI02.
#[derive(Debug)]
pub struct EngineCheck;

/// What the rules of its findings begin with, which is its name.
pub const RULE: &str = "program/engine";

static META: GuardMeta = GuardMeta {
    id: RULE,
    hooks: &[Hook::Action],
    owasp: &["LLM06", "ASI02"],
    unfaithful_to: Some(Unfaithful::Task),
};

impl Guard<RunMemory> for EngineCheck {
    fn meta(&self) -> &'static GuardMeta {
        &META
    }

    fn sources(&self) -> &'static [&'static str] {
        &[ENGINE_SOURCE]
    }

    fn needs(&self, context: &Context<'_>, pending: &Pending<'_>) -> Vec<FactRequest> {
        questions(context, pending).map(|(_, question)| question).collect()
    }

    fn decide(
        &self,
        context: &Context<'_>,
        pending: &Pending<'_>,
        facts: &Facts,
    ) -> Result<Vec<Finding>, GuardFailure> {
        let mut findings = Vec::new();
        for (engine, question) in questions(context, pending) {
            let who = format!("the engine `{engine}`");
            let answer = answer(facts, &question, &who)?;
            if let Some(failure) = answer.failures.first() {
                return Err(GuardFailure(format!("{who} failed: {}", failure.why)));
            }
            let objections = answer.objections.iter();
            findings.extend(objections.map(|objection| finding((RULE, engine), &who, objection)));
        }
        Ok(findings)
    }
}

/// The engines that are asked about an action, with the question to each.
fn questions<'a>(
    context: &'a Context<'_>,
    pending: &'a Pending<'_>,
) -> impl Iterator<Item = (&'a str, FactRequest)> {
    let action = pending.subject.action();
    let asked = context.bundle.engines.iter();
    asked.filter_map(move |engine| {
        let action = action.filter(|action| engine.wants(action.tool()))?;
        Some((engine.name.as_str(), engine_request(engine, action)))
    })
}
