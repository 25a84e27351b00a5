//! The client's answer when its request is denied.
//!
//! A denial is a tool result with `isError`, because that is what a model gets to see: a sentence to read and
//! the typed [`Denial`] to act upon. What is wrong with the message itself, or with the gate, is an error of
//! the protocol.

use portcullis_core::denial::{Denial, DenialClass, Retry};
use portcullis_core::id::{ActionId, RunId};
use portcullis_core::verdict::Verdict;
use portcullis_wire::mcp::call::{denial_result, input_required_result};
use serde_json::json;

use super::calls::Call;
use super::held;
use crate::sentence::sentence;

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

/// The answer to a held call of a client that can come back with a state.
pub(super) fn input_required(call: &Call, state: &str, denial: &Denial) -> Vec<u8> {
    input_required_result(&call.id_raw, state, &held::told(denial))
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
        action: Some(action),
    }
}
