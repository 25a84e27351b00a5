//! Actions that text from a tool asks for and the user does not.

use portcullis_core::action::{Hook, Pending};
use portcullis_core::fact::Facts;
use portcullis_core::finding::Finding;
use portcullis_core::guard::{Context, Guard, GuardFailure, GuardMeta, Unfaithful};
use portcullis_trajectory::rules::Rule;

/// ## What it does
/// Looks, in what tools returned earlier in the run, for sentences that tell their reader to do what the pending call
/// does, and weighs them against the user's request.
///
/// ## Why it matters
/// Whoever can write a review, a mail or a web page that an agent reads can tell it what to do. Nothing in the call
/// itself shows that it was not the user's wish.
///
/// ## Fires on
/// A call that shares verb, thing or value with an order in a tool's result while the request wants nothing of the
/// kind: *deny*; *review* where the user pointed at that result, or the call fetches a page. A call of a tool that such
/// text names: *deny*. Payment, deletion, execution and the like that the request has no word for, after any order:
/// *review*. What the request hands on ("do the tasks in my list") is allowed, unless it goes to an address from there.
///
/// ## Does not cover
/// Text that informs rather than orders. The same kind of action on another thing than the user meant; see
/// `flow/tainted-argument`.
///
/// ## Configuration
/// None.
///
/// ## False positives
/// Requests in which the user leaves open what is to be done, and text that says it. A review shows the sentence.
///
/// ## References
/// OWASP ASI01, LLM01.
#[derive(Debug)]
pub struct UnrequestedAction;

static META: GuardMeta = GuardMeta {
    id: "flow/unrequested-action",
    hooks: &[Hook::Action],
    owasp: &["ASI01", "LLM01"],
    unfaithful_to: Some(Unfaithful::Task),
};

const RULES: &[Rule] = &[Rule::Named, Rule::Unrequested, Rule::Grave];

const INSTEAD: &str = "what the user asked for; ask the user whether this was meant";

impl Guard for UnrequestedAction {
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
