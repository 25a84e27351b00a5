//! What is wrong with the servers of the bundle, as their clients found.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The last word on each server that some client could not use, by its name in the bundle.
#[derive(Debug, Default)]
pub(crate) struct Standing(Mutex<BTreeMap<String, String>>);

impl Standing {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes why a server cannot be used.
    pub(super) fn is_amiss(&self, name: &str, why: &str) {
        tracing::warn!("the MCP server `{name}` {why}");
        self.lock().insert(name.to_owned(), why.to_owned());
    }

    /// Notes that a server answers.
    pub(super) fn is_well(&self, name: &str) {
        self.lock().remove(name);
    }

    /// What is wrong with a server.
    pub(super) fn of(&self, name: &str) -> Option<String> {
        self.lock().get(name).cloned()
    }

    /// What is wrong, a sentence for each of the servers that the bundle still has.
    pub(crate) fn amiss(&self, is_known: impl Fn(&str) -> bool) -> Vec<String> {
        let mut amiss = self.lock();
        amiss.retain(|name, _| is_known(name));
        amiss.iter().map(|(name, why)| format!("the MCP server `{name}` {why}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_word_on_each_server_stands_while_the_bundle_has_it() {
        let standing = Standing::default();
        standing.is_amiss("a", "is slow");
        standing.is_amiss("a", "ended");
        standing.is_amiss("b", "is slow");
        standing.is_amiss("c", "is slow");
        standing.is_well("c");
        let told = ["the MCP server `a` ended", "the MCP server `b` is slow"];
        assert_eq!(standing.amiss(|_| true), told);
        assert_eq!(standing.amiss(|name| name == "a"), told[..1]);
        assert_eq!(standing.amiss(|_| true), told[..1]);
    }
}
