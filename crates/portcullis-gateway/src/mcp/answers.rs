//! What the client is told when it does not get what it asked for.
//!
//! A denial is a tool result with `isError`, because that is what a model gets to see: a sentence to read and
//! the typed [`Denial`] to act upon. What is wrong with the message itself, or with the gate, is an error of
//! the protocol.

use portcullis_core::denial::{Denial, DenialClass, Retry};
use portcullis_core::id::{ActionId, RunId};
use portcullis_core::verdict::Verdict;
use portcullis_wire::mcp::call::denial_result;
use serde_json::json;

use super::calls::Call;

/// The result could not be read with certainty.
pub(super) const UNREADABLE_RESULT: &str = "gate/unreadable-result";
/// The result has more text than guards read.
pub(super) const RESULT_TOO_LONG: &str = "gate/result-too-long";
/// The result could not be recorded.
pub(super) const NOT_RECORDED: &str = "gate/not-recorded";
/// A guard withholds the result.
pub(super) const WITHHELD: &str = "gate/withheld";

/// The answer to a call that a denial stops.
pub(super) fn denied(call: &Call, denial: &Denial) -> Vec<u8> {
    let structured = serde_json::to_value(denial).unwrap_or_else(|_| json!({}));
    denial_result(&call.id_raw, &sentence(denial), &structured, call.with_result_type)
}

/// A denial of the gate's own, for a result that must not be shown.
pub(super) fn withheld(
    run: RunId,
    action: ActionId,
    tool: &str,
    rule: &'static str,
    message: String,
) -> Denial {
    Denial {
        class: DenialClass::ResultWithheld,
        verdict: Verdict::Deny,
        rule: rule.to_owned(),
        target: tool.to_owned(),
        message,
        instead: None,
        retry: Retry::Never { left: 0 },
        approval: None,
        run,
        action,
    }
}

/// The denial in words, for a model.
fn sentence(denial: &Denial) -> String {
    let what = match denial.class {
        DenialClass::ResultWithheld => {
            return format!(
                "Portcullis withholds the result of `{}` ({}): {}. The call was executed; do not assume that it failed.",
                denial.target, denial.rule, denial.message
            );
        }
        DenialClass::Denied => "was denied",
        DenialClass::ApprovalPending => "waits for a person's approval",
        DenialClass::ApprovalRefused => "was refused by a person",
        DenialClass::ClarificationNeeded => "needs an answer of the user first",
        DenialClass::Paused => "was not made, because the run is paused",
        DenialClass::Halted => "was not made, because the run was halted",
    };
    let mut text = format!("Portcullis: the call of `{}` {what}", denial.target);
    if !denial.rule.is_empty() {
        text.push_str(&format!(" ({})", denial.rule));
    }
    if !denial.message.is_empty() {
        text.push_str(&format!(": {}", denial.message));
    }
    text.push('.');
    if let Some(instead) = &denial.instead {
        text.push_str(&format!(" Allowed instead: {instead}."));
    }
    if let (Some(approval), DenialClass::ApprovalPending) = (&denial.approval, denial.class) {
        text.push_str(&format!(
            " Approval {approval}: a person decides with `portcullis approvals grant {approval}` or `refuse`."
        ));
    }
    text.push_str(&match denial.retry {
        Retry::After { seconds } => {
            format!(" Repeat the identical call after {seconds} s to learn the decision.")
        }
        Retry::AfterInput => " Ask the user before going on.".to_owned(),
        Retry::Never { .. } => " Repeating the same call will not help.".to_owned(),
    });
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use portcullis_core::id::ApprovalId;

    #[test]
    fn a_denial_reads_as_a_sentence() {
        let mut denial = withheld(
            RunId::from_bytes([1; 16]),
            ActionId::from_bytes([2; 16]),
            "send_email",
            "runtime-policy/approval",
            "side effects need a person's approval".into(),
        );
        denial.class = DenialClass::ApprovalPending;
        denial.approval = Some(ApprovalId::from_bytes([0xab; 16]));
        denial.retry = Retry::After { seconds: 10 };
        denial.instead = Some("a draft".into());
        let id = "ab".repeat(16);
        assert_eq!(
            sentence(&denial),
            format!(
                "Portcullis: the call of `send_email` waits for a person's approval (runtime-policy/approval): \
                 side effects need a person's approval. Allowed instead: a draft. Approval {id}: a person \
                 decides with `portcullis approvals grant {id}` or `refuse`. Repeat the identical call after \
                 10 s to learn the decision."
            )
        );
    }
}
