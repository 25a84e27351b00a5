//! What is judged: a reply, and what it is held against.

use portcullis_contracts::{Context, Contract};

/// A reply, what it is held against, and what it has to keep.
#[derive(Debug, Clone, Copy)]
pub struct Task<'a> {
    /// The request that the reply answers, documents, names: as far as they are known. A model is shown the request only.
    pub context: Context<'a>,
    /// The reply.
    pub reply: &'a str,
    /// The contracts.
    pub contracts: &'a [Contract],
}

impl Task<'_> {
    /// Whether a contract is left to a judge: code has no checker for it, or not what the checker needs.
    pub(crate) fn is_judged(&self, contract: &Contract) -> bool {
        contract.is_judged(&self.context)
    }
}
