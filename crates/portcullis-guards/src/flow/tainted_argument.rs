//! Addresses and values from untrusted text in an action.

use portcullis_core::action::{Hook, Pending};
use portcullis_core::fact::Facts;
use portcullis_core::finding::Finding;
use portcullis_core::guard::{Context, Guard, GuardFailure, GuardMeta, Unfaithful};
use portcullis_trajectory::rules::Rule;

/// ## What it does
/// Follows values (mail addresses, URLs, accounts, ids, names) from tools' results into the arguments of calls that change
/// something or fetch a page.
///
/// ## Why it matters
/// The user wants a payment made; a note says to make it elsewhere. Tool and verb are right, the account is not.
///
/// ## Fires on
/// An address that an order in a tool's result gives, for an action that the user wants: *deny* where the user named
/// another address of that kind or did not point at the source, else *review*. A value of such an order that is not the
/// user's; a value that was found by a call that an order had asked for; an address that stood only inside running text,
/// never as a field, for an action that nobody asked for: *review*.
///
/// ## Does not cover
/// Values that text from a tool changes without an order. Values that the agent rewrites beyond recognition.
///
/// ## Configuration
/// None.
///
/// ## False positives
/// Bills and invitations, which give orders and addresses for good reasons.
///
/// ## References
/// OWASP ASI01, ASI02, LLM01.
#[derive(Debug)]
pub struct TaintedArgument;

static META: GuardMeta = GuardMeta {
    id: "flow/tainted-argument",
    hooks: &[Hook::Action],
    owasp: &["ASI01", "ASI02", "LLM01"],
    unfaithful_to: Some(Unfaithful::Observations),
};

const RULES: &[Rule] = &[Rule::Diverted, Rule::Carried, Rule::Derived, Rule::Prose];

const INSTEAD: &str = "the address or value that the user named";

impl Guard for TaintedArgument {
    fn meta(&self) -> &'static GuardMeta {
        &META
    }

    fn decide(
        &self,
        context: &Context<'_>,
        pending: &Pending<'_>,
        _facts: &Facts,
    ) -> Result<Vec<Finding>, GuardFailure> {
        super::findings(context, pending, META.id, RULES, INSTEAD)
    }
}
