//! Credentials that would leave.

use portcullis_core::action::{Hook, Pending};
use portcullis_core::fact::Facts;
use portcullis_core::finding::Finding;
use portcullis_core::guard::{Context, Guard, GuardFailure, GuardMeta, Unfaithful};
use portcullis_trajectory::rules::Rule;

/// ## What it does
/// Remembers credentials in what tools return (by their issuers' forms, by the field that holds them, by looking random)
/// and finds them again in the arguments of calls that send, publish, share, pay or fetch, or that name an address.
///
/// ## Why it matters
/// A key that leaves cannot be called back.
///
/// ## Fires on
/// Such a credential in such a call: *deny*; *review* where the request speaks of credentials; nothing where it also names
/// whom the call is for.
///
/// ## Does not cover
/// Credentials that were encoded or cut into pieces. Short numbers such as one-time passwords, which have to be passed on
/// to be of use.
///
/// ## Configuration
/// None.
///
/// ## False positives
/// Long identifiers that look random, in a call to an address.
///
/// ## References
/// OWASP ASI03, LLM02.
#[derive(Debug)]
pub struct SecretsLeaving;

static META: GuardMeta = GuardMeta {
    id: "flow/secrets-leaving",
    hooks: &[Hook::Action],
    owasp: &["ASI03", "LLM02"],
    unfaithful_to: Some(Unfaithful::Observations),
};

const RULES: &[Rule] = &[Rule::Secret];

const INSTEAD: &str = "the same call without the credential";

impl Guard for SecretsLeaving {
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
