//! Reads that nobody asked for, and what is sent after them.

use portcullis_core::action::{Hook, Pending};
use portcullis_core::fact::Facts;
use portcullis_core::finding::Finding;
use portcullis_core::guard::{Context, Guard, GuardFailure, GuardMeta, Unfaithful};
use portcullis_trajectory::rules::Rule;

/// ## What it does
/// Watches for the two halves of a theft: reading something that only a text asks for, and sending something to an
/// address that only a text gives, also where they are steps apart and by different tools.
///
/// ## Why it matters
/// Reading is harmless by itself and sending is common; together they are how data leaves.
///
/// ## Fires on
/// A read that an order in a tool's result asks for and the user does not: *deny* where the order speaks as the user and
/// of sending, else *review*. After a read of something sensitive that nobody asked for, a call that sends to an address
/// which stands only inside text: *deny*.
///
/// ## Does not cover
/// Theft through reads that the user's request covers.
///
/// ## Configuration
/// None.
///
/// ## False positives
/// Documents that tell their reader where to look for more.
///
/// ## References
/// OWASP ASI01, LLM02.
#[derive(Debug)]
pub struct SensitiveThenSend;

static META: GuardMeta = GuardMeta {
    id: "flow/sensitive-then-send",
    hooks: &[Hook::Action],
    owasp: &["ASI01", "LLM02"],
    unfaithful_to: Some(Unfaithful::Task),
};

const RULES: &[Rule] = &[Rule::ForeignRead, Rule::SensitiveSend];

const INSTEAD: &str = "reads that the user's request needs";

impl Guard for SensitiveThenSend {
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
