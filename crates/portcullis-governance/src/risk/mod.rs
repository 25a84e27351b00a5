//! `residual_risk_summary.md`: the open risks of this run, and how to reduce them.
//!
//! A risk is listed only if events of the run, or missing parts of the bundle, show it.

mod coverage;
mod entry;
mod people;
mod record;

use portcullis_contracts::verify::Status;
use portcullis_core::action::Hook;
use portcullis_core::bundle::Bundle;
use portcullis_core::event::{ApprovalDecision, Enforced, EventBody, GrantScope, OutcomeStatus};
use portcullis_core::label::Label;

use self::entry::{Risk, risk, tool_names};
use crate::facts::{ActionFact, Facts};
use crate::input::PackInput;
use crate::markdown::{Document, count, events, names};
use crate::signals::Signals;
use crate::summary;

/// Writes the file.
pub(crate) fn markdown(input: &PackInput<'_>, facts: &Facts, signals: &Signals) -> Vec<u8> {
    let mut document = Document::new(&format!("Residual risks of run {}", input.record.run()));
    document.paragraph(&summary::sentence(input.record));
    let bundle = input.record.opened().and_then(|opened| input.bundle(opened.bundle));
    let mut effects = enforcement(facts);
    effects.extend(outcomes(facts));
    effects.extend(effects_without_a_person(facts));
    effects.extend(after_reading(input, facts, bundle));
    effects.extend(unnoticed(facts));
    effects.extend(delivered(facts));
    let mut people = approvals(facts);
    people.extend(overridden(facts));
    let mut unseen = coverage::replies(facts, bundle);
    unseen.extend(coverage::tools(facts, bundle));
    unseen.extend(bundle.into_iter().flat_map(|bundle| coverage::offered(input, bundle)));
    unseen.extend(coverage::hooks(input, facts));
    unseen.extend(bundle.into_iter().flat_map(|bundle| coverage::unset(input, facts, bundle)));
    let record = record::record(input, facts, signals);
    let mut said = false;
    for (title, risks) in [
        ("What happened without a stop", effects),
        ("What people decided", people),
        ("What was not looked at", unseen),
        ("What the record does not show", record),
    ] {
        said |= !risks.is_empty();
        let points = risks
            .iter()
            .map(|risk| format!("**{}.** {} *To reduce it*: {}.", risk.title, risk.fact, risk.reduce));
        document.points(title, &points.collect::<Vec<_>>());
    }
    document.points("Who decided", &people::decisions(input.record, facts));
    document.points("What was erased", &people::erased(input));
    if !said {
        document.paragraph("The record of this run shows no open risk that can be counted.");
    }
    document.finish()
}

/// Verdicts that did not bind.
fn enforcement(facts: &Facts) -> Vec<Risk> {
    let passed: Vec<u64> = facts.actions.iter().filter_map(|action| action.when(Enforced::LetPass)).collect();
    let (mut observed, mut too_late) = (passed, Vec::new());
    for text in &facts.texts {
        let (Some((event, Enforced::LetPass)), Some((verdict, _))) = (text.enforced, text.verdict) else {
            continue;
        };
        let list = if facts.observed.contains(&verdict) { &mut observed } else { &mut too_late };
        list.push(event);
    }
    observed.sort_unstable();
    let asked: Vec<u64> = facts.actions.iter().filter_map(|action| action.when(Enforced::Asked)).collect();
    let observe = || {
        let went = match observed.as_slice() {
            [] => "none of them would have stopped a call".to_owned(),
            [only] => format!("what one of them would have stopped passed (event {only})"),
            all => format!("what {} of them would have stopped passed ({})", all.len(), events(all)),
        };
        format!(
            "{} recorded without being enforced ({}); {went}.",
            count(facts.observed.len(), "verdict was", "verdicts were"),
            events(&facts.observed)
        )
    };
    [
        risk(
            &facts.observed,
            "Observe mode",
            observe,
            "set `mode = \"enforce\"` once the denials above are as intended",
        ),
        risk(
            &too_late,
            "Texts that could not be kept back",
            || {
                format!(
                    "Verdicts were against {} that the agent had already read ({}).",
                    count(too_late.len(), "text", "texts"),
                    events(&too_late)
                )
            },
            "use a surface that can withhold texts, such as the MCP gate",
        ),
        risk(
            &asked,
            "Decided outside Portcullis",
            || {
                format!(
                    "{} left to the client's own prompt ({}), so the record has no permit and does not say who decided.",
                    count(asked.len(), "action was", "actions were"),
                    events(&asked)
                )
            },
            "let Portcullis hold these calls for an approver",
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Actions that went ahead and whose end is not known.
fn outcomes(facts: &Facts) -> Vec<Risk> {
    let open: Vec<u64> = facts
        .actions
        .iter()
        .filter(|action| action.tool.is_some() && action.outcome.is_none())
        .filter_map(ActionFact::went_ahead)
        .collect();
    let unsure = |action: &&ActionFact| {
        let unsure = [OutcomeStatus::Timeout, OutcomeStatus::Unknown, OutcomeStatus::Error];
        action.side_effecting && action.outcome.is_some_and(|(_, status)| unsure.contains(&status))
    };
    let unsure: Vec<&ActionFact> = facts.actions.iter().filter(unsure).collect();
    let unsure_at: Vec<u64> =
        unsure.iter().filter_map(|action| action.outcome.map(|(event, _)| event)).collect();
    [
        risk(
            &open,
            "No outcome reported",
            || {
                format!(
                    "{} went ahead without a reported outcome ({}).",
                    count(open.len(), "call", "calls"),
                    events(&open)
                )
            },
            "have the surface report every outcome; check in the tool what was done",
        ),
        risk(
            &unsure_at,
            "Side effects that may have happened",
            || {
                format!(
                    "{} of {} ended in an error, a time-out or unknown ({}): the effect may have happened.",
                    count(unsure.len(), "side effect", "side effects"),
                    tool_names(&unsure),
                    events(&unsure_at)
                )
            },
            "check in the tools what was done before repeating a call",
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Side effects that no person saw.
fn effects_without_a_person(facts: &Facts) -> Option<Risk> {
    // What passed in observe mode went ahead against policy, which is told apart.
    let alone = |action: &&ActionFact| {
        let by_policy = action.went_ahead().is_some() && action.when(Enforced::LetPass).is_none();
        action.side_effecting && by_policy && !action.granted
    };
    let alone: Vec<&ActionFact> = facts.actions.iter().filter(alone).collect();
    let at: Vec<u64> = alone.iter().filter_map(|action| action.went_ahead()).collect();
    risk(
        &at,
        "Side effects without a person",
        || {
            format!(
                "{} went ahead on policy alone: {} ({}).",
                count(alone.len(), "side effect", "side effects"),
                tool_names(&alone),
                events(&at)
            )
        },
        "set `approval_for_side_effects = true` in the policy, or take their types out of `allowed_types`",
    )
}

/// Side effects after the agent had read what anyone may have written.
fn after_reading(input: &PackInput<'_>, facts: &Facts, bundle: Option<&Bundle>) -> Option<Risk> {
    let trusted =
        |tool: &str| bundle.and_then(|bundle| bundle.registry.get(tool)).is_some_and(|tool| tool.trusted);
    let read: Vec<u64> = input
        .record
        .events()
        .iter()
        .filter(|event| match &event.body {
            EventBody::Observation { label: Label::Tool(tool), .. } => !trusted(tool),
            EventBody::Observation { label: Label::Server(_) | Label::Run(_) | Label::Unknown, .. } => true,
            _ => false,
        })
        .map(|event| event.seq)
        .collect();
    let first = *read.first()?;
    let after: Vec<u64> = facts
        .actions
        .iter()
        .filter(|action| action.side_effecting)
        .filter_map(ActionFact::went_ahead)
        .filter(|event| *event > first)
        .collect();
    let last = after.iter().copied().max()?;
    let read: Vec<u64> = read.into_iter().filter(|event| *event < last).collect();
    risk(
        &after,
        "Side effects after untrusted text",
        || {
            format!(
                "The agent had read results that others may have written ({}) before {} went ahead ({}).",
                events(&read),
                count(after.len(), "side effect", "side effects"),
                events(&after)
            )
        },
        "mark tools whose results are the operator's own as `trusted`, set `[flow] strict = true`, or hold these side effects",
    )
}

/// Requests without an answer, grants without a use, grants for more than one call.
fn approvals(facts: &Facts) -> Vec<Risk> {
    let at = |wanted: &dyn Fn(&crate::facts::ApprovalFact) -> Option<u64>| -> Vec<u64> {
        facts.approvals.values().filter_map(wanted).collect()
    };
    let expired = at(&|fact| {
        fact.latest().filter(|(_, decision)| *decision == ApprovalDecision::Expired).map(|(event, _)| event)
    });
    let open = |fact: &crate::facts::ApprovalFact| {
        fact.latest().is_none_or(|(_, decision)| decision == ApprovalDecision::Endorsed)
    };
    let waiting = at(&|fact| fact.requested.filter(|_| open(fact)));
    let unused = at(&|fact| {
        fact.latest()
            .filter(|(_, decision)| *decision == ApprovalDecision::Granted && fact.claimed.is_empty())
            .map(|(event, _)| event)
    });
    let wide = at(&|fact| {
        let wide = |scope: &GrantScope| !matches!(scope, GrantScope::Once);
        fact.decided.iter().find(|(_, _, scope)| scope.as_ref().is_some_and(wide)).map(|(event, _, _)| *event)
    });
    [
        risk(&waiting, "Requests that were not answered", || {
            format!("{} still waiting when the record ends ({}).", count(waiting.len(), "request", "requests"), events(&waiting))
        }, "answer them with `portcullis approvals`, and have someone watch the queue"),
        risk(&expired, "Requests and grants that expired", || {
            format!("{} expired before being answered or used ({}).", count(expired.len(), "approval", "approvals"), events(&expired))
        }, "have someone watch the queue, or lengthen `approval_request_ttl_s` and `approval_grant_ttl_s`"),
        risk(&unused, "Grants that were not used", || {
            format!("{} given but not claimed ({}); until it expires, the same call goes ahead with it.", count(unused.len(), "grant was", "grants were"), events(&unused))
        }, "shorten `approval_grant_ttl_s`, or refuse grants that are no longer needed"),
        risk(&wide, "Grants for more than one call", || {
            format!("{} for a tool or for effects rather than for one call ({}): later calls went ahead, or can, without being shown.", count(wide.len(), "grant is", "grants are"), events(&wide))
        }, "grant once, with no scope"),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Findings that a person's grant answered.
fn overridden(facts: &Facts) -> Option<Risk> {
    let granted: Vec<(&str, &[u64])> = facts
        .rules
        .iter()
        .filter(|(_, fact)| !fact.granted.is_empty())
        .map(|(rule, fact)| (rule.as_str(), fact.granted.as_slice()))
        .collect();
    let mut at: Vec<u64> = granted.iter().flat_map(|(_, events)| events.iter().copied()).collect();
    at.sort_unstable();
    at.dedup();
    risk(
        &at,
        "Findings that people overrode",
        || {
            format!(
                "Grants answered findings of {} ({}).",
                names(granted.iter().map(|(rule, _)| *rule)),
                events(&at)
            )
        },
        "have a second person review these grants",
    )
}

/// Replies that failed and were delivered.
fn delivered(facts: &Facts) -> Option<Risk> {
    let delivered = |event: u64| {
        let enforced = facts.texts.iter().find(|text| text.event == event).and_then(|text| text.enforced);
        !enforced.is_some_and(|(_, enforced)| matches!(enforced, Enforced::Withheld | Enforced::Held))
    };
    let failed = facts.checks(Status::Fail);
    let mut shown: Vec<u64> =
        failed.iter().map(|(reply, _)| reply.reply).filter(|event| delivered(*event)).collect();
    shown.dedup();
    let fact = || {
        let of_shown = failed.iter().filter(|(reply, _)| shown.contains(&reply.reply));
        let mut types: Vec<&str> = of_shown.map(|(_, result)| result.check.check_type()).collect();
        types.sort_unstable();
        types.dedup();
        format!(
            "{} reached the user ({}) and failed {}.",
            count(shown.len(), "reply", "replies"),
            events(&shown),
            names(types)
        )
    };
    risk(
        &shown,
        "Replies delivered although a check failed",
        fact,
        "set `escalate_on_verification_fail = true` in the policy, so that a person reviews them first",
    )
}

/// Inputs that raised nothing, although what the agent made of them was denied later.
fn unnoticed(facts: &Facts) -> Option<Risk> {
    let denied: Vec<u64> = facts.denied().iter().filter_map(|action| action.blocked()).collect();
    let first = *denied.first()?;
    let inputs = facts.texts.iter().filter(|text| text.hook == Hook::Input && text.event < first);
    let silent: Vec<u64> = inputs.filter(|text| text.verdict.is_none()).map(|text| text.event).collect();
    let fact = || {
        format!(
            "No guard found anything in what was asked ({}), and {} that followed {} denied ({}): the calls were \
             stopped, not the request.",
            events(&silent),
            count(denied.len(), "action", "actions"),
            if denied.len() == 1 { "was" } else { "were" },
            events(&denied)
        )
    };
    risk(
        &silent,
        "Requests without any finding",
        fact,
        "review the request; if it should have been stopped, add its words to `monitors.toml`",
    )
}
