//! `residual_risk_summary.md`: what this run leaves open, and what would close it.
//!
//! A risk stands here only where events of the run, or what the bundle does not have, show it.

use portcullis_contracts::verify::Status;
use portcullis_core::action::Hook;
use portcullis_core::bundle::Bundle;
use portcullis_core::event::{Actor, ApprovalDecision, Enforced, EventBody, GrantScope, OutcomeStatus};
use portcullis_core::label::Label;
use portcullis_proof::export::SegmentState;

use crate::facts::{ActionFact, Facts, hook_word};
use crate::manifest;
use crate::markdown::{Document, all_names, code, count, events, names};
use crate::pack::PackInput;
use crate::policy;
use crate::signals::Signals;
use crate::summary;

/// One risk.
struct Risk {
    title: &'static str,
    /// What was counted.
    fact: String,
    /// What would reduce it.
    reduce: &'static str,
}

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
    let mut coverage = replies(facts, bundle);
    coverage.extend(tools(facts, bundle));
    coverage.extend(hooks(input, facts));
    coverage.extend(bundle.into_iter().flat_map(|bundle| unset(input, facts, bundle)));
    let record = record(input, facts, signals);
    let mut said = false;
    for (title, risks) in [
        ("What happened without a stop", effects),
        ("What people decided", people),
        ("What was not looked at", coverage),
        ("What the record does not show", record),
    ] {
        said |= !risks.is_empty();
        let points = risks
            .iter()
            .map(|risk| format!("**{}.** {} *To reduce it*: {}.", risk.title, risk.fact, risk.reduce));
        document.points(title, &points.collect::<Vec<_>>());
    }
    if !said {
        document.paragraph("Nothing in the record of this run leaves a risk open that can be counted.");
    }
    document.finish()
}

fn risk(
    found: &[u64],
    title: &'static str,
    fact: impl FnOnce() -> String,
    reduce: &'static str,
) -> Option<Risk> {
    (!found.is_empty()).then(|| Risk { title, fact: fact(), reduce })
}

fn tool_names(actions: &[&ActionFact]) -> String {
    let mut tools: Vec<&str> = actions.iter().map(|action| action.name()).collect();
    tools.sort_unstable();
    tools.dedup();
    names(tools)
}

/// Verdicts that did not bind.
fn enforcement(facts: &Facts) -> Vec<Risk> {
    let passed: Vec<u64> = facts.actions.iter().filter_map(|action| action.when(Enforced::LetPass)).collect();
    let texts: Vec<u64> = facts
        .texts
        .iter()
        .filter_map(|text| text.enforced.filter(|(_, enforced)| *enforced == Enforced::LetPass))
        .map(|(event, _)| event)
        .collect();
    let asked: Vec<u64> = facts.actions.iter().filter_map(|action| action.when(Enforced::Asked)).collect();
    [
        risk(&facts.observed, "Observe mode", || {
            let went = match passed.as_slice() {
                [] => "none of them would have stopped an action".to_owned(),
                passed => format!("{} would have been stopped and went ahead ({})", count(passed.len(), "action", "actions"), events(passed)),
            };
            format!("{} recorded without being enforced ({}); {went}.", count(facts.observed.len(), "verdict was", "verdicts were"), events(&facts.observed))
        }, "set `mode = \"enforce\"` once the denials above are what is meant"),
        risk(&texts, "Texts that could not be kept back", || {
            format!("{} reached their reader although the verdict was against them ({}).", count(texts.len(), "text", "texts"), events(&texts))
        }, "use a surface that can withhold texts, such as the MCP gate"),
        risk(&asked, "Decided outside of the gate", || {
            format!("{} left to the client's own prompt ({}), so there is no permit and nobody is on record as having decided.", count(asked.len(), "action was", "actions were"), events(&asked))
        }, "let the gate hold these calls for an approver"),
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
                    "{} went ahead and nothing was reported of what became of them ({}).",
                    count(open.len(), "call", "calls"),
                    events(&open)
                )
            },
            "have the surface report every outcome; look into the tool for what was done",
        ),
        risk(
            &unsure_at,
            "Side effects that may have happened",
            || {
                format!(
                    "{} of {} ended in an error, a time-out or unknown ({}): the effect may have come about.",
                    count(unsure.len(), "side effect", "side effects"),
                    tool_names(&unsure),
                    events(&unsure_at)
                )
            },
            "look into the tools for what was done, and repeat nothing before that",
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Side effects that no person saw.
fn effects_without_a_person(facts: &Facts) -> Option<Risk> {
    let alone =
        |action: &&ActionFact| action.side_effecting && action.went_ahead().is_some() && !action.granted;
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

/// Side effects after the agent had read what anybody may have written.
fn after_reading(input: &PackInput<'_>, facts: &Facts, bundle: Option<&Bundle>) -> Option<Risk> {
    let trusted =
        |tool: &str| bundle.and_then(|bundle| bundle.registry.get(tool)).is_some_and(|tool| tool.trusted);
    let read: Vec<u64> = input
        .record
        .events()
        .iter()
        .filter(|event| match &event.body {
            EventBody::Observation { label: Label::Tool(tool), .. } => !trusted(tool),
            EventBody::Observation { label: Label::Unknown, .. } => true,
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
    let waiting = at(&|fact| if fact.decided.is_empty() { fact.requested } else { None });
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
        risk(&waiting, "Requests that nobody answered", || {
            format!("{} still waited when the record ends ({}).", count(waiting.len(), "request", "requests"), events(&waiting))
        }, "answer them with `portcullis approvals`, and see to it that somebody watches the queue"),
        risk(&expired, "Requests and grants that ran out", || {
            format!("{} ran out before it was answered or used ({}).", count(expired.len(), "approval", "approvals"), events(&expired))
        }, "see to it that somebody watches the queue, or lengthen `approval_request_ttl_s` and `approval_grant_ttl_s`"),
        risk(&unused, "Grants that were not used", || {
            format!("{} given and not claimed ({}); until it runs out, the same call goes ahead on it.", count(unused.len(), "grant was", "grants were"), events(&unused))
        }, "shorten `approval_grant_ttl_s`, or refuse what is no longer wanted"),
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
        "have a second person look at these grants",
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
        "set `escalate_on_verification_fail = true` in the policy, so that a person looks first",
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
        "Requests in which nothing was noticed",
        fact,
        "look at the request; where it should have been stopped, add its words to `monitors.toml`",
    )
}

/// Replies that nobody held against anything.
fn replies(facts: &Facts, bundle: Option<&Bundle>) -> Vec<Risk> {
    let unverified = facts.unverified_replies();
    let empty: Vec<u64> = facts
        .replies
        .iter()
        .filter(|reply| {
            reply
                .checks
                .as_ref()
                .is_some_and(|checks| checks.iter().all(|check| check.status == Status::NotApplicable))
        })
        .map(|reply| reply.reply)
        .collect();
    let withheld: Vec<u64> =
        facts.replies.iter().filter(|reply| reply.checks.is_none()).map(|reply| reply.event).collect();
    let none = if bundle.is_some_and(|bundle| bundle.verification.is_none()) {
        ": the bundle has no `[verification]`"
    } else {
        ""
    };
    [
        risk(
            &unverified,
            "Replies that nobody verified",
            || {
                format!(
                    "{} given without a check ({}){none}.",
                    count(unverified.len(), "reply was", "replies were"),
                    events(&unverified)
                )
            },
            "add `[verification]` to the bundle and name the tools whose results are documents",
        ),
        risk(
            &empty,
            "Replies that no check could say anything about",
            || {
                format!(
                    "All checks of {} were N/A ({}).",
                    count(empty.len(), "reply", "replies"),
                    events(&empty)
                )
            },
            "retrieve documents before the reply, or set `citations = \"always\"`",
        ),
        risk(
            &withheld,
            "Answers of checks that are not at hand",
            || {
                format!(
                    "The answers of {} are withheld or erased ({}).",
                    count(withheld.len(), "verification", "verifications"),
                    events(&withheld)
                )
            },
            "make the pack with payloads",
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Tools that nobody classified.
fn tools(facts: &Facts, bundle: Option<&Bundle>) -> Vec<Risk> {
    let Some(bundle) = bundle else { return Vec::new() };
    let called = |wanted: &dyn Fn(&str) -> bool| -> Vec<&ActionFact> {
        facts.actions.iter().filter(|action| action.tool.as_deref().is_some_and(wanted)).collect()
    };
    let unknown = called(&|tool| bundle.registry.get(tool).is_none());
    let inferred = called(&|tool| bundle.registry.get(tool).is_some_and(|tool| tool.inferred));
    let at = |actions: &[&ActionFact]| -> Vec<u64> { actions.iter().map(|action| action.proposed).collect() };
    let went =
        |actions: &[&ActionFact]| actions.iter().filter(|action| action.went_ahead().is_some()).count();
    [
        risk(
            &at(&unknown),
            "Tools that the registry does not know",
            || {
                format!(
                    "{} of {} ({}), of which {} went ahead; the bundle answers unknown tools with *{}*.",
                    count(unknown.len(), "call", "calls"),
                    tool_names(&unknown),
                    events(&at(&unknown)),
                    went(&unknown),
                    bundle.unknown_tools
                )
            },
            "describe them in `tools/`, or set `unknown_tools = \"deny\"`",
        ),
        risk(
            &at(&inferred),
            "Tools whose classification was guessed",
            || {
                format!(
                    "{} of {} ({}), classified by what their server says and by nobody else.",
                    count(inferred.len(), "call", "calls"),
                    tool_names(&inferred),
                    events(&at(&inferred))
                )
            },
            "look at their entries in `tools/` and take `inferred` out",
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Hooks at which nothing came up, with the guards that had nothing to look at.
fn hooks(input: &PackInput<'_>, facts: &Facts) -> Vec<Risk> {
    let mut risks = Vec::new();
    let why = [
        (Hook::Input, "what the user said", "have the surface report inputs"),
        (Hook::Observation, "what tools returned", "have the surface report outcomes with their content"),
        (Hook::Output, "what the agent replied", "have the surface report replies"),
    ];
    for (hook, what, reduce) in why {
        // Without a call that went ahead there is no result to look at.
        let expected = match hook {
            Hook::Observation => {
                facts.actions.iter().any(|action| action.tool.is_some() && action.went_ahead().is_some())
            }
            _ => true,
        };
        if !expected || !facts.looked_at(hook).is_empty() {
            continue;
        }
        let guards: Vec<&str> =
            input.guards.iter().filter(|guard| guard.hooks.contains(&hook)).map(|guard| guard.id).collect();
        risks.push(Risk {
            title: "Guards that had nothing to look at",
            fact: format!(
                "Nothing is recorded of {what}, so {} at the hook {} never ran there: {}.",
                count(guards.len(), "guard", "guards"),
                hook_word(hook),
                all_names(guards)
            ),
            reduce,
        });
    }
    risks
}

/// What the bundle leaves open, where the run had use for it.
fn unset(input: &PackInput<'_>, facts: &Facts, bundle: &Bundle) -> Vec<Risk> {
    let calls: Vec<u64> =
        facts.actions.iter().filter(|action| action.tool.is_some()).map(|action| action.proposed).collect();
    let mut risks = Vec::new();
    let policy = input.record.opened().and_then(|opened| bundle.policy(&opened.policy));
    if let Some(policy) = policy {
        let mut missing = Vec::new();
        for (name, set) in [
            ("max_bytes", policy.max_bytes.is_some()),
            ("max_cost", policy.max_cost_micros.is_some()),
            ("principal", policy.principal.is_some()),
        ] {
            if !set {
                missing.push(name);
            }
        }
        if !missing.is_empty() {
            risks.extend(risk(
                &calls,
                "Limits that the policy does not set",
                || {
                    format!(
                        "{} were held against no {} of {}.",
                        count(calls.len(), "call", "calls"),
                        names(missing),
                        code(&policy.name)
                    )
                },
                "set them in the policy; `principal` bounds all runs of one principal together",
            ));
        }
    }
    if bundle.access.files.is_empty() {
        risks.extend(risk(&calls, "No access policies", || {
            format!("Nothing says who may do what to which resource: {} were judged by type and limits alone.", count(calls.len(), "call", "calls"))
        }, "write `access/*.cedar`"));
    }
    if bundle.tests.is_empty() {
        risks.push(Risk {
            title: "Policies without cases",
            fact: format!(
                "The bundle {} has no file in `tests/`: nothing says what its policies must answer.",
                code(&bundle.digest().to_string())
            ),
            reduce: "write cases and run `portcullis policy test`",
        });
    }
    risks
}

/// What the record itself leaves open.
fn record(input: &PackInput<'_>, facts: &Facts, signals: &Signals) -> Vec<Risk> {
    let record = input.record;
    let mut risks = Vec::new();
    let head = record.head();
    match record.state() {
        SegmentState::Closed => {}
        SegmentState::Open => risks.push(Risk {
            title: "The run is still open",
            fact: format!("The record ends with event {} and more may follow.", head.count),
            reduce: "close the run and make the pack again",
        }),
        SegmentState::Abandoned => risks.push(Risk {
            title: "The writer ended before the run did",
            fact: format!("The last segment was closed by somebody else (event {}): what happened after its last event and before that is not known.", head.count),
            reduce: "look into the tools for what was done",
        }),
    }
    let withheld = record.report().payloads.withheld;
    if withheld > 0 {
        risks.push(Risk {
            title: "Texts that are not at hand",
            fact: format!(
                "{withheld} of {} payloads are withheld or erased; only their commitments are here.",
                record.report().payloads.named
            ),
            reduce: "make the pack with payloads, where they are still there",
        });
    }
    risks.extend(risk(
        &signals.unread,
        "Signals that rest on less than the gate knew",
        || {
            format!(
                "Texts of {} were not there, so what came close to a limit after them is not known here.",
                events(&signals.unread)
            )
        },
        "make the pack with payloads",
    ));
    let gone: Vec<u64> = policy::periods(record)
        .into_iter()
        .filter(|period| input.bundle(period.bundle).is_none())
        .map(|period| period.from)
        .collect();
    risks.extend(risk(
        &gone,
        "Bundles that are not at hand",
        || format!("From {} on the run was judged by a bundle that this pack does not hold.", events(&gone)),
        "give its folder with `--bundle`",
    ));
    let gate = Actor::gate();
    let said: Vec<u64> = record
        .events()
        .iter()
        .filter(|event| event.actor != gate && matches!(event.body, EventBody::Evidence { .. }))
        .map(|event| event.seq)
        .collect();
    risks.extend(risk(
        &said,
        "Evidence on the agent's word",
        || {
            format!(
                "{} recorded by others than the gate ({}); nothing here checked it.",
                count(said.len(), "piece of evidence was", "pieces of evidence were"),
                events(&said)
            )
        },
        "hold the digests against the things themselves",
    ));
    let lost = facts.of_kind("gap");
    risks.extend(risk(
        lost,
        "Lost events",
        || format!("The record admits holes ({}).", events(lost)),
        "find out why; `portcullis doctor` checks the store",
    ));
    if record.opened().is_some_and(|opened| opened.session.is_none() && opened.surface != "simulator") {
        risks.push(Risk {
            title: "No client session",
            fact: "The run names no session of its client (event 1): what the same agent did in other runs is not connected to it.".to_owned(),
            reduce: "use a surface that names its session",
        });
    }
    let other: Vec<u64> = policy::periods(record)
        .into_iter()
        .filter(|period| {
            let here = input.source(period.bundle).map(|source| source.configuration);
            period.configuration.is_some() && here.is_some() && period.configuration != here
        })
        .map(|period| period.from)
        .collect();
    risks.extend(risk(
        &other,
        "Signals of another release",
        || {
            format!(
                "From {} on the run was judged by other built-in patterns, models or code than made this pack, so what \
                 came close to a limit may have been closer or further then.",
                events(&other)
            )
        },
        "make the pack with the release that judged the run",
    ));
    risks.extend(witnesses(input));
    risks
}

/// Who vouches for the record besides its writer.
fn witnesses(input: &PackInput<'_>) -> Option<Risk> {
    let head = input.record.head();
    let fact = match manifest::logged(input.evidence) {
        Some(log) if log.cosignatures > 0 => return None,
        Some(log) => format!(
            "The log has the run in a tree of {}, and its checkpoint is signed by the log alone: others could be shown \
             another tree.",
            count(usize::try_from(log.size).unwrap_or(usize::MAX), "leaf", "leaves")
        ),
        None => format!(
            "No checkpoint of the transparency log covers the head ({} events, link {}): whoever holds the store and \
             its key could write another record.",
            head.count,
            code(&head.link.to_string())
        ),
    };
    Some(Risk {
        title: "No witness but the store",
        fact,
        reduce: "have witnesses cosign the log, or keep its checkpoint where the store's owner cannot write",
    })
}
