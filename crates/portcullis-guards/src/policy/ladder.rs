//! The ladder of seed 000 §4 as one guard with one finding: the first step that matches decides.

use portcullis_core::action::{Action, Hook, Pending};
use portcullis_core::bundle::PolicyRef;
use portcullis_core::edit;
use portcullis_core::fact::Facts;
use portcullis_core::finding::{Finding, Span};
use portcullis_core::guard::{Guard, GuardFailure, GuardMeta, Unfaithful};
use portcullis_core::limits::JSON_DEPTH_MAX;
use portcullis_core::verdict::Verdict;
use portcullis_trajectory::memory::{Context, RunMemory};
use serde_json::Value;

/// ## What it does
/// Checks each step of a run against the runtime policy. The first of these rules that matches decides:
/// 1. `runtime-policy/tool-type`: the type of the tool is not allowed: deny;
/// 2. `runtime-policy/step-limit`: the step's number exceeds `max_steps`: deny;
/// 3. `runtime-policy/restricted-keyword`: a restricted keyword occurs in the planned action, or in any key or value of
///    the arguments: deny;
/// 4. `runtime-policy/approval`: the tool has side effects and the policy requires approval for them: review;
/// 5. `runtime-policy/side-effect-limit`: as many side effects as `max_side_effects` permits have executed:
///    deny;
/// 6. otherwise there is no objection.
///
/// ## Why it matters
/// It bounds the worst that a run can do, whatever the agent was talked into.
///
/// ## Fires on
/// See above. A limit of N permits exactly N side effects; only actions that executed, or are executing, count. With a
/// grant, rule 5 is checked before the grant satisfies rule 4, so approvals do not lift the limit.
///
/// Keywords match as parts of words, regardless of case, after NFKC normalisation, removal of zero-width characters and
/// normalisation of unusual white space.
///
/// ## Does not cover
/// What the arguments mean: a keyword can be paraphrased.
///
/// ## Configuration
/// The `[[policy]]` tables of the bundle.
///
/// ## False positives
/// Keywords inside innocent words: `wire` matches `wireless`.
///
/// ## References
/// Seed 000 §3-4. OWASP ASI02, LLM06, LLM10.
#[derive(Debug)]
pub struct Ladder;

static META: GuardMeta = GuardMeta {
    id: "runtime-policy",
    hooks: &[Hook::Action],
    owasp: &["ASI02", "LLM06", "LLM10"],
    unfaithful_to: Some(Unfaithful::Task),
};

impl Guard<RunMemory> for Ladder {
    fn meta(&self) -> &'static GuardMeta {
        &META
    }

    fn decide(
        &self,
        context: &Context<'_>,
        pending: &Pending<'_>,
        _facts: &Facts,
    ) -> Result<Vec<Finding>, GuardFailure> {
        let Some(action) = pending.subject.action() else { return Ok(Vec::new()) };
        Ok(climb(context, action, pending.grant.is_some())?.into_iter().collect())
    }
}

fn climb(context: &Context<'_>, action: &Action, granted: bool) -> Result<Option<Finding>, GuardFailure> {
    let policy = context.policy;
    let tool = action.tool().and_then(|name| context.bundle.registry.get(name));
    if let Some(tool) = tool
        && !policy.allowed_types.contains(&tool.tool_type)
    {
        let message = format!("tool type {} is not allowed by `{}`", tool.tool_type, policy.name);
        let allowed: Vec<&str> = policy.allowed_types.iter().map(String::as_str).collect();
        return Ok(Some(
            Finding::new("runtime-policy/tool-type", Verdict::Deny, message)
                .instead(format!("tools of the types {}", allowed.join(", "))),
        ));
    }
    let run = context.run;
    let step = run.open_action(action.id).map_or(run.steps().saturating_add(1), |open| open.step);
    if step > policy.max_steps {
        let message = format!("step {step} exceeds the {}-step limit of `{}`", policy.max_steps, policy.name);
        return Ok(Some(
            Finding::new("runtime-policy/step-limit", Verdict::Deny, message)
                .instead("finish with what is known, or ask the user to start a new run"),
        ));
    }
    if let Some(finding) = restricted_keyword(policy, action)? {
        return Ok(Some(finding));
    }
    let side_effecting = action.tool().is_some_and(|name| context.is_side_effecting(name));
    if !side_effecting {
        return Ok(None);
    }
    let approval = policy.approval_for_side_effects.then(|| {
        let message = format!("`{}` requires human approval for side effects", policy.name);
        Finding::new("runtime-policy/approval", Verdict::Review, message)
    });
    if approval.is_some() && !granted {
        return Ok(approval);
    }
    if run.side_effects() >= policy.max_side_effects {
        let message = format!(
            "the limit of {} side effects set by `{}` is used up",
            policy.max_side_effects, policy.name
        );
        return Ok(Some(
            Finding::new("runtime-policy/side-effect-limit", Verdict::Deny, message)
                .instead("tools without side effects"),
        ));
    }
    // The pipeline marks it as answered by the grant.
    Ok(approval)
}

type Hit<'p> = (&'p str, Span);

fn restricted_keyword(policy: PolicyRef<'_>, action: &Action) -> Result<Option<Finding>, GuardFailure> {
    if policy.restricted_keywords.is_empty() {
        return Ok(None);
    }
    let planned = action.planned.as_deref();
    let in_planned = planned.and_then(|text| {
        let (keyword, range) = policy.find_keyword(text)?;
        Some((keyword, Span { pointer: "/planned".into(), start: range.start, end: range.end }))
    });
    let hit = match in_planned {
        Some(hit) => Some(hit),
        None => match (in_value(policy, &action.arguments, 0)?, &action.continuation) {
            (None, Some(continuation)) => in_value(policy, continuation, 0)?.map(|(keyword, mut span)| {
                span.pointer = format!("/continuation{}", span.pointer.trim_start_matches(edit::ARGUMENTS));
                (keyword, span)
            }),
            (hit, _) => hit,
        },
    };
    Ok(hit.map(|(keyword, span)| {
        let message = format!("the restricted keyword `{keyword}` occurs at {}", span.pointer);
        Finding::new("runtime-policy/restricted-keyword", Verdict::Deny, message)
            .at(span)
            .instead("an action that does not need it")
    }))
}

/// Searches keys and values depth first. The pointer is only built on the way back from a hit.
fn in_value<'p>(policy: PolicyRef<'p>, value: &Value, depth: usize) -> Result<Option<Hit<'p>>, GuardFailure> {
    if depth > JSON_DEPTH_MAX {
        return Err(GuardFailure(format!("the arguments are nested deeper than {JSON_DEPTH_MAX} levels")));
    }
    match value {
        Value::Null => Ok(None),
        Value::String(text) => Ok(policy.find_keyword(text).map(hit)),
        Value::Bool(on) => Ok(policy.find_keyword(if *on { "true" } else { "false" }).map(hit)),
        Value::Number(number)
            if number.as_u64().is_some_and(|number| policy.is_shorter_than_keywords(number)) =>
        {
            Ok(None)
        }
        Value::Number(number) => Ok(policy.find_keyword(&number.to_string()).map(hit)),
        Value::Array(items) => {
            for (number, item) in items.iter().enumerate() {
                if let Some(found) = in_value(policy, item, depth + 1)? {
                    return Ok(Some(below(found, &number.to_string())));
                }
            }
            Ok(None)
        }
        Value::Object(map) => {
            for (key, item) in map {
                let found = match policy.find_keyword(key) {
                    Some(found) => Some(hit(found)),
                    None => in_value(policy, item, depth + 1)?,
                };
                if let Some(found) = found {
                    return Ok(Some(below(found, key)));
                }
            }
            Ok(None)
        }
    }
}

fn hit((keyword, range): (&str, std::ops::Range<usize>)) -> Hit<'_> {
    (keyword, Span { pointer: edit::ARGUMENTS.into(), start: range.start, end: range.end })
}

/// Puts one more token (RFC 6901) in front of the pointer.
fn below<'p>((keyword, mut span): Hit<'p>, token: &str) -> Hit<'p> {
    let escaped = token.replace('~', "~0").replace('/', "~1");
    span.pointer.insert_str(edit::ARGUMENTS.len(), &format!("/{escaped}"));
    (keyword, span)
}
