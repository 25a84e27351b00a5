//! From a decision to the typed denial that the agent gets.

use portcullis_core::action::Action;
use portcullis_core::denial::{Denial, DenialClass, Retry};
use portcullis_core::id::RunId;
use portcullis_core::pipeline::Decision;
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
        Verdict::Clarify => DenialClass::ClarificationNeeded,
        Verdict::Pause => DenialClass::Paused,
        Verdict::Halt => DenialClass::Halted,
        _ if rule == refused::RULE => DenialClass::ApprovalRefused,
        _ => DenialClass::Denied,
    };
    let retry = match class {
        DenialClass::ApprovalPending => Retry::After { seconds: RETRY_AFTER_S },
        DenialClass::ClarificationNeeded | DenialClass::Paused => Retry::AfterInput,
        DenialClass::Denied
        | DenialClass::ApprovalRefused
        | DenialClass::Halted
        | DenialClass::ResultWithheld => {
            // This denial is not counted in the state yet.
            let denied = state.denials(action.digest()).saturating_add(1);
            Retry::Never { left: DENIALS_BEFORE_BREAK.saturating_sub(denied) }
        }
    };
    let question = headline.and_then(|finding| finding.question.as_deref());
    let message = match (headline, question) {
        (Some(finding), Some(question)) => format!("{}: {question}", finding.message),
        (Some(finding), None) => finding.message.clone(),
        (None, _) => String::new(),
    };
    Denial {
        class,
        verdict: decision.verdict,
        rule: rule.to_owned(),
        target: action.tool.clone().unwrap_or_else(|| "thinking step".to_owned()),
        message,
        instead: headline.and_then(|finding| finding.instead.clone()),
        retry,
        approval: None,
        run,
        action: action.id,
    }
}
