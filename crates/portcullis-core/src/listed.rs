//! What servers say of their tools, as a run has heard it. Part of [`RunState`](crate::state::RunState).
//!
//! Each server speaks for its own tools. What it is known by is the command that started it, which the operator wrote;
//! listings of earlier releases have only the name that it gives itself.

use std::collections::BTreeMap;

use crate::aside::NOTE;
use crate::event::ListedTool;
use crate::id::Digest;
use crate::limits::TOOLS_MAX;

/// The latest listings of all servers of a run.
#[derive(Debug, Clone, Default)]
pub(crate) struct ListedTools {
    /// Whether servers call tools read-only. A claim, which counts only where the bundle trusts hints.
    read_only: ByServer<bool>,
    /// More tools were listed than are remembered: no hint counts any more.
    hints_lost: bool,
    /// Tools that changed since a person accepted them.
    changed: ByServer<Changed>,
    /// More tools changed than are remembered, or one whose name held a secret: every tool counts as changed.
    all_changed: bool,
}

/// A tool that changed since a person accepted it.
#[derive(Debug, Clone, Copy)]
struct Changed {
    /// What it is now.
    digest: Digest,
    /// The server is known by its command.
    origin_known: bool,
}

impl ListedTools {
    /// The latest listing of a server counts, and says nothing of tools of other servers.
    pub(crate) fn listed(&mut self, server: &str, origin: Option<&str>, tools: &[ListedTool]) {
        let (key, origin_known) = (origin.unwrap_or(server), origin.is_some());
        for tool in tools {
            let read_only = tool.read_only_hint == Some(true);
            self.hints_lost |= !self.read_only.insert(&tool.name, key, read_only);
            if tool.changed_from.is_none() {
                self.changed.retain(&tool.name, |name, _| name != key);
                continue;
            }
            let changed = Changed { digest: tool.digest, origin_known };
            let noted = tool.name.contains(NOTE);
            self.all_changed |= noted || !self.changed.insert(&tool.name, key, changed);
        }
    }

    /// A person accepted a tool of a server as it is now.
    pub(crate) fn accepted(&mut self, server: &str, tool: &str, digest: Digest) {
        let accepted = |name: &str, changed: &Changed| {
            changed.digest == digest && (name == server || !changed.origin_known)
        };
        self.changed.retain(tool, |name, changed| !accepted(name, changed));
    }

    /// Whether a tool changed. Where its server is not known, or one that changed the tool is known only by its own
    /// word, the tool of any server counts.
    pub(crate) fn changed(&self, tool: &str, server: Option<&str>) -> bool {
        let is_of = |name: &str, changed: &Changed| {
            !changed.origin_known || server.is_none_or(|server| server == name)
        };
        let changed = self.changed.of(tool);
        self.all_changed
            || changed.is_some_and(|servers| servers.iter().any(|(name, changed)| is_of(name, changed)))
    }

    /// Whether every server that lists a tool calls it read-only.
    pub(crate) fn hinted_read_only(&self, tool: &str) -> bool {
        let hints = self.read_only.of(tool).filter(|_| !self.hints_lost);
        hints.is_some_and(|servers| servers.values().all(|read_only| *read_only))
    }
}

/// Something of tools, by the tool's name and then by its server. At most [`TOOLS_MAX`] entries.
#[derive(Debug, Clone)]
struct ByServer<T> {
    tools: BTreeMap<String, BTreeMap<String, T>>,
    entries: usize,
}

impl<T> Default for ByServer<T> {
    fn default() -> Self {
        Self { tools: BTreeMap::new(), entries: 0 }
    }
}

impl<T> ByServer<T> {
    fn of(&self, tool: &str) -> Option<&BTreeMap<String, T>> {
        self.tools.get(tool)
    }

    /// False if there is no room.
    fn insert(&mut self, tool: &str, server: &str, said: T) -> bool {
        let known = self.of(tool).is_some_and(|servers| servers.contains_key(server));
        if !known && self.entries >= TOOLS_MAX {
            return false;
        }
        self.entries += usize::from(!known);
        self.tools.entry(tool.to_owned()).or_default().insert(server.to_owned(), said);
        true
    }

    fn retain(&mut self, tool: &str, keep: impl Fn(&str, &T) -> bool) {
        let Some(servers) = self.tools.get_mut(tool) else { return };
        let before = servers.len();
        servers.retain(|server, said| keep(server, said));
        self.entries -= before - servers.len();
        if servers.is_empty() {
            self.tools.remove(tool);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(changed: bool, read_only: bool) -> [ListedTool; 1] {
        [ListedTool {
            name: "t".into(),
            digest: Digest::from_bytes([1; 32]),
            read_only_hint: Some(read_only),
            destructive_hint: None,
            changed_from: changed.then(|| Digest::from_bytes([0; 32])),
        }]
    }

    #[test]
    fn a_server_speaks_for_its_own_tools_alone() {
        let mut listed = ListedTools::default();
        listed.listed("mail", Some("run a"), &tool(true, true));
        listed.listed("mail", Some("run b"), &tool(false, true));
        listed.listed("mail", None, &tool(false, true));
        assert!(listed.changed("t", Some("run a")) && listed.changed("t", None));
        assert!(!listed.changed("t", Some("run b")));
        listed.accepted("run b", "t", Digest::from_bytes([1; 32]));
        listed.accepted("run a", "t", Digest::from_bytes([2; 32]));
        assert!(listed.changed("t", Some("run a")));
        listed.accepted("run a", "t", Digest::from_bytes([1; 32]));
        assert!(!listed.changed("t", None));
        // One that says otherwise is enough.
        assert!(listed.hinted_read_only("t"));
        listed.listed("mail", Some("run c"), &tool(false, false));
        assert!(!listed.hinted_read_only("t"));
    }

    #[test]
    fn listings_of_earlier_releases_are_accepted_by_their_digest() {
        let mut listed = ListedTools::default();
        listed.listed("mail", None, &tool(true, false));
        assert!(listed.changed("t", Some("run a")), "whose tool it is, is not known");
        listed.accepted("run a", "t", Digest::from_bytes([1; 32]));
        assert!(!listed.changed("t", None));
    }

    #[test]
    fn what_cannot_be_remembered_counts_as_changed() {
        let mut listed = ListedTools::default();
        for number in 0..=TOOLS_MAX {
            listed.listed("mail", Some(&number.to_string()), &tool(true, true));
        }
        assert!(listed.changed("another", Some("x")) && !listed.hinted_read_only("t"));
    }
}
