//! What runs contained, what was reported of it, and which tools did more than was predicted.

use std::collections::BTreeMap;

use super::OpenAction;
use crate::event::{Contained, Event, ObservedRecord, ObservedWhat, VerdictRecord};
use crate::id::ActionId;
use crate::limits::{CONTAINED_ACTIONS_MAX, CONTAINED_SERVERS_MAX, TOOLS_COUNTED_MAX};
use crate::recent::Recent;
use crate::verdict::Verdict;

/// How the rules begin of findings about more than was predicted.
pub const MORE: &str = "contain/more/";

/// An action, or a server, that was let go ahead contained.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Containment {
    /// Its profile and its ticket.
    pub contained: Contained,
    /// Number of the event that says so.
    pub since: u64,
    /// The tool that the action calls.
    pub tool: Option<String>,
    /// Whether it was reported how it ended.
    pub ended: bool,
    /// Connections that were reported as they happened.
    pub connections: u32,
    /// The strictest verdict on what was reported.
    pub judged: Verdict,
    /// Number of the latest report that was judged so.
    pub reported: Option<u64>,
}

/// All of them that are remembered: actions at most [`CONTAINED_ACTIONS_MAX`], servers at most
/// [`CONTAINED_SERVERS_MAX`].
#[derive(Debug, Clone, Default)]
pub struct Containments {
    actions: Recent<ActionId, Containment>,
    servers: BTreeMap<String, Containment>,
    /// How much more each tool did than was predicted, since the user last spoke or a person resumed the run.
    more: BTreeMap<String, u32>,
    /// The same of further tools, all together.
    more_of_others: u32,
    /// The latest report, which the verdict that follows is about.
    latest: Option<Reported>,
}

#[derive(Debug, Clone)]
struct Reported {
    seq: u64,
    action: Option<ActionId>,
    server: Option<String>,
}

impl Containments {
    /// An action that went ahead contained.
    #[must_use]
    pub fn action(&self, action: ActionId) -> Option<&Containment> {
        self.actions.get(&action)
    }

    /// A server that runs contained, by what it is known by.
    #[must_use]
    pub fn server(&self, server: &str) -> Option<&Containment> {
        self.servers.get(server)
    }

    /// Whether there is room for one more server.
    #[must_use]
    pub fn takes_server(&self, server: &str) -> bool {
        self.servers.len() < CONTAINED_SERVERS_MAX || self.servers.contains_key(server)
    }

    /// How much counts against a tool: one for each report with a warning, two for each with a stricter verdict.
    #[must_use]
    pub fn more_by(&self, tool: &str) -> u32 {
        self.more.get(tool).copied().unwrap_or(0).saturating_add(self.more_of_others)
    }

    /// An action goes ahead contained.
    pub(super) fn permitted(&mut self, id: ActionId, action: &OpenAction, contained: &Contained, since: u64) {
        let containment = Containment::new(contained, since, action.tool.clone());
        self.actions.insert(id, containment, CONTAINED_ACTIONS_MAX);
    }

    /// A server was started contained, for the first time or again.
    pub(super) fn started(&mut self, server: &str, contained: &Contained, since: u64) {
        if self.takes_server(server) {
            self.servers.insert(server.to_owned(), Containment::new(contained, since, None));
        }
    }

    /// Something was reported.
    pub(super) fn observed(&mut self, record: &ObservedRecord, seq: u64) {
        let (action, server) = (record.action, record.server.clone());
        let containment = match (action, &server) {
            (Some(action), _) => self.actions.get_mut(&action),
            (None, Some(server)) => self.servers.get_mut(server),
            (None, None) => None,
        };
        if let Some(containment) = containment {
            match record.what {
                ObservedWhat::Ended(_) => containment.ended = true,
                ObservedWhat::Connection(_) => {
                    containment.connections = containment.connections.saturating_add(1);
                }
            }
        }
        self.latest = Some(Reported { seq, action, server });
    }

    /// A verdict that is about no action may be about what was reported.
    pub(super) fn judged(&mut self, event: &Event, record: &VerdictRecord) {
        let Some(latest) = self.latest.take_if(|latest| event.cause == Some(latest.seq)) else { return };
        let containment = match (latest.action, &latest.server) {
            (Some(action), _) => self.actions.get_mut(&action),
            (None, Some(server)) => self.servers.get_mut(server),
            (None, None) => None,
        };
        let more = record.findings.iter().filter(|finding| finding.rule.starts_with(MORE));
        let Some(verdict) = more.map(|finding| finding.verdict).max() else { return };
        let tool = containment.and_then(|containment| {
            containment.judged = containment.judged.join(verdict);
            containment.reported = Some(latest.seq);
            containment.tool.clone()
        });
        if let Some(tool) = tool {
            self.count(tool, if verdict > Verdict::Warn { 2 } else { 1 });
        }
    }

    fn count(&mut self, tool: String, more: u32) {
        let has_room = self.more.len() < TOOLS_COUNTED_MAX;
        let count = match self.more.get_mut(&tool) {
            Some(count) => count,
            None if has_room => self.more.entry(tool).or_default(),
            None => &mut self.more_of_others,
        };
        *count = count.saturating_add(more);
    }

    /// The user spoke, or a person let the run go on: what tools did before is known.
    pub(super) fn forgive(&mut self) {
        self.more.clear();
        self.more_of_others = 0;
    }
}

impl Containment {
    fn new(contained: &Contained, since: u64, tool: Option<String>) -> Self {
        let contained = contained.clone();
        let (ended, connections, judged, reported) = (false, 0, Verdict::Allow, None);
        Self { contained, since, tool, ended, connections, judged, reported }
    }
}
