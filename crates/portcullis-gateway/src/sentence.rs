//! A denial in words, the same on every surface.

use portcullis_core::denial::{Denial, DenialClass, Retry};

/// The denial in words, for a model.
pub(crate) fn sentence(denial: &Denial) -> String {
    let what = match denial.class {
        DenialClass::ResultWithheld => {
            return format!(
                "Portcullis withholds the result of `{}` ({}): {}. The call was executed; do not assume that it failed.",
                denial.target, denial.rule, denial.message
            );
        }
        DenialClass::Denied => "was denied",
        DenialClass::ApprovalPending => "is waiting for a person's approval",
        DenialClass::ApprovalRefused => "was refused by a person",
        DenialClass::ClarificationNeeded => "needs an answer from the user first",
        DenialClass::Paused => "was not made, because the run is paused",
        DenialClass::Halted => "was not made, because the run was halted",
        DenialClass::Frozen => "was not made, because a person froze the run",
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
        Retry::AfterInput => " Ask the user before continuing.".to_owned(),
        Retry::Never { .. } => " Repeating the same call will not help.".to_owned(),
    });
    text
}

/// Why a prompt does not reach the agent, for who wrote it.
pub(crate) fn prompt_sentence(denial: &Denial) -> String {
    let next = match denial.class {
        DenialClass::ClarificationNeeded => "Answer with your next prompt.".to_owned(),
        DenialClass::Paused => "The run is paused until your next prompt.".to_owned(),
        DenialClass::Halted => {
            format!("The run is halted; resume it with `portcullis runs resume {}`.", denial.run)
        }
        _ => "The agent has not seen it.".to_owned(),
    };
    format!("Portcullis withholds this prompt ({}): {}. {next}", denial.rule, denial.message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use portcullis_core::id::{ActionId, ApprovalId, RunId};
    use portcullis_core::verdict::Verdict;

    #[test]
    fn a_denial_reads_as_a_sentence() {
        let denial = Denial {
            class: DenialClass::ApprovalPending,
            verdict: Verdict::Review,
            rule: "runtime-policy/approval".into(),
            target: "send_email".into(),
            message: "side effects need a person's approval".into(),
            instead: Some("a draft".into()),
            retry: Retry::After { seconds: 10 },
            approval: Some(ApprovalId::from_bytes([0xab; 16])),
            run: RunId::from_bytes([1; 16]),
            action: Some(ActionId::from_bytes([2; 16])),
        };
        let id = "ab".repeat(16);
        assert_eq!(
            sentence(&denial),
            format!(
                "Portcullis: the call of `send_email` is waiting for a person's approval (runtime-policy/approval): \
                 side effects need a person's approval. Allowed instead: a draft. Approval {id}: a person \
                 decides with `portcullis approvals grant {id}` or `refuse`. Repeat the identical call after \
                 10 s to learn the decision."
            )
        );
    }
}
