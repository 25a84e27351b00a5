//! Whose a session is.

use portcullis_core::id::{Digest, DigestBuilder};
use portcullis_core::principal::Principal;
use portcullis_session::credentials::Identity;

/// A principal as its token described it: a run keeps the roles that it was opened with, so whoever comes with others, as
/// where an issuer has withdrawn one, must not go on in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Owner {
    principal: Principal,
    policy: Option<String>,
}

impl Owner {
    pub(crate) fn of(identity: &Identity) -> Self {
        Self { principal: described(&identity.principal), policy: identity.policy.clone() }
    }

    /// The principal's name, whatever its roles.
    pub(super) fn name(&self) -> &str {
        &self.principal.id
    }

    /// Whether a run was opened for it. Which policy it has is compared where a run is joined.
    pub(super) fn opened(&self, run_of: &Principal) -> bool {
        self.principal == described(run_of)
    }

    pub(super) fn digest(&self) -> Digest {
        // Text and maps with texts as keys can be written as JSON.
        let text = serde_json::to_vec(&(&self.principal, &self.policy)).unwrap_or_default();
        DigestBuilder::new("portcullis/mcp-owner/v1").part(&text).finish()
    }
}

/// Issuers list roles in any order.
fn described(principal: &Principal) -> Principal {
    let mut principal = principal.clone();
    principal.roles.sort_unstable();
    principal.roles.dedup();
    principal
}
