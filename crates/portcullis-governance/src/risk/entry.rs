//! One risk, and how it is told.

use crate::facts::ActionFact;
use crate::markdown::names;

/// One risk.
pub(super) struct Risk {
    pub(super) title: &'static str,
    /// What was counted.
    pub(super) fact: String,
    /// What would reduce it.
    pub(super) reduce: &'static str,
}

pub(super) fn risk(
    found: &[u64],
    title: &'static str,
    fact: impl FnOnce() -> String,
    reduce: &'static str,
) -> Option<Risk> {
    (!found.is_empty()).then(|| Risk { title, fact: fact(), reduce })
}

pub(super) fn tool_names(actions: &[&ActionFact]) -> String {
    let mut tools: Vec<&str> = actions.iter().map(|action| action.name()).collect();
    tools.sort_unstable();
    tools.dedup();
    names(tools)
}
