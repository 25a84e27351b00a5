//! From a decision to the typed denial that the agent gets.

use portcullis_core::action::{Action, Subject};
use portcullis_core::denial::{Denial, DenialClass, Retry};
use portcullis_core::finding::Finding;
use portcullis_core::id::RunId;
use portcullis_core::label::Label;
use portcullis_core::pipeline::{Decision, reserved};
use portcullis_core::state::RunState;
use portcullis_core::verdict::Verdict;
use portcullis_guards::approval::refused;
use portcullis_guards::run::loop_breaker::DENIALS_BEFORE_BREAK;

/// How long an agent should wait before it repeats a held call, in seconds.
const RETRY_AFTER_S: u32 = 10;

/// Explains a decision that stops an action.
pub(crate) fn explain(state: &RunState, run: RunId, action: &Action, decision: &Decision) -> Denial {
    let headline = decision.headline();
    let rule = headline.map_or("", |finding| &finding.rule);
    let class = match decision.verdict {
        Verdict::Review => DenialClass::ApprovalPending,
        _ if rule == refused::RULE => DenialClass::ApprovalRefused,
        verdict => class_of(verdict, rule),
    };
    let retry = match class {
        DenialClass::ApprovalPending => Retry::After { seconds: RETRY_AFTER_S },
        DenialClass::ClarificationNeeded | DenialClass::Paused => Retry::AfterInput,
        // Such denials are not counted.
        DenialClass::Frozen => Retry::Never { left: 0 },
        DenialClass::Denied
        | DenialClass::ApprovalRefused
        | DenialClass::Halted
        | DenialClass::ResultWithheld => {
            // This denial is not counted in the state yet.
            let denied = state.denials(action.digest()).saturating_add(1);
            Retry::Never { left: DENIALS_BEFORE_BREAK.saturating_sub(denied) }
        }
    };
    Denial {
        class,
        verdict: decision.verdict,
        rule: rule.to_owned(),
        target: action.tool().unwrap_or("thinking step").to_owned(),
        message: said(headline),
        instead: headline.and_then(|finding| finding.instead.clone()),
        retry,
        approval: None,
        run,
        action: Some(action.id),
    }
}

/// Explains a decision that withholds an input, a tool's result or a reply.
pub(crate) fn explain_text(run: RunId, subject: &Subject<'_>, decision: &Decision) -> Denial {
    let headline = decision.headline();
    let rule = headline.map_or("", |finding| &finding.rule);
    let (class, target, action) = match subject {
        Subject::Observation { action, label, .. } => {
            let target = match label {
                Label::Tool(name) | Label::Server(name) => name.clone(),
                other => other.to_string(),
            };
            (DenialClass::ResultWithheld, target, *action)
        }
        Subject::Contained { action, label, .. } => {
            let target = match label {
                Label::Tool(name) | Label::Server(name) => name.clone(),
                other => other.to_string(),
            };
            (DenialClass::ResultWithheld, target, *action)
        }
        Subject::Input { .. } => (class_of(decision.verdict, rule), "input".to_owned(), None),
        Subject::Output { .. } => {
            let class = match decision.verdict {
                Verdict::Review => DenialClass::ApprovalPending,
                _ if rule == refused::RULE => DenialClass::ApprovalRefused,
                verdict => class_of(verdict, rule),
            };
            (class, "reply".to_owned(), None)
        }
        Subject::Action(action) => (class_of(decision.verdict, rule), String::new(), Some(action.id)),
    };
    let retry = match class {
        DenialClass::ApprovalPending => Retry::After { seconds: RETRY_AFTER_S },
        DenialClass::ClarificationNeeded | DenialClass::Paused => Retry::AfterInput,
        _ => Retry::Never { left: 0 },
    };
    Denial {
        class,
        verdict: decision.verdict,
        rule: rule.to_owned(),
        target,
        message: said(headline),
        instead: headline.and_then(|finding| finding.instead.clone()),
        retry,
        approval: None,
        run,
        action,
    }
}

fn class_of(verdict: Verdict, rule: &str) -> DenialClass {
    match verdict {
        _ if rule == reserved::FROZEN => DenialClass::Frozen,
        Verdict::Clarify => DenialClass::ClarificationNeeded,
        Verdict::Pause => DenialClass::Paused,
        Verdict::Halt => DenialClass::Halted,
        _ => DenialClass::Denied,
    }
}

/// The reason for people, with the question that goes with it.
fn said(headline: Option<&Finding>) -> String {
    let question = headline.and_then(|finding| finding.question.as_deref());
    match (headline, question) {
        (Some(finding), Some(question)) => format!("{}: {question}", finding.message),
        (Some(finding), None) => finding.message.clone(),
        (None, _) => String::new(),
    }
}
