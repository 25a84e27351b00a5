//! What a run takes place in: its opening, and what governs it or lists its tools from then on.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ClosedState, Contained, Mode};
use crate::id::{Digest, RunId};
use crate::label::LabelSet;
use crate::principal::Principal;

/// Body of `run-opened`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunOpened {
    /// On whose behalf the agent acts.
    pub principal: Principal,
    /// How the agent connected: `mcp`, `http`, `simulator`, `trace`, ...
    pub surface: String,
    /// The client session the run belongs to; `None` means one run per connection, *uncorrelated*.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Name of the runtime policy that governs the run.
    pub policy: String,
    /// Digest of the bundle.
    pub bundle: Digest,
    /// Digest of all that judges: bundle, what is compiled in, and engine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configuration: Option<Digest>,
    /// Whether verdicts are enforced.
    pub mode: Mode,
    /// Where the agent works, where the surface knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
    /// The run that opened this one, if another run did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Parent>,
}

/// The run that opened another one, as it stood then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parent {
    /// The run.
    pub run: RunId,
    /// Number of its event `child-opened`, which names the run that it opened.
    pub seq: u64,
    /// The link of that event, by which the one record is bound to the other.
    pub link: Digest,
    /// Runs above the one that was opened, this one included.
    pub depth: u32,
    /// Its labels, with which the run that was opened begins.
    #[serde(default)]
    pub labels: LabelSet,
}

/// Where an agent works: what relative paths and `~` in its arguments mean.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Place {
    /// The folder that it was given to work in, absolute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// The home folder, absolute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub home: Option<String>,
    /// The state folder of the gate that judges the run, absolute. The gate says it, never its client. Older
    /// records do not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<String>,
}

/// Body of `config`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "change", rename_all = "kebab-case")]
pub enum ConfigChange {
    /// A new bundle reached the run.
    BundleLoaded {
        /// Its digest.
        bundle: Digest,
        /// Digest of all that judges: bundle, what is compiled in, and engine.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        configuration: Option<Digest>,
        /// The runtime policy from here on.
        policy: String,
        /// Whether verdicts are enforced from here on.
        mode: Mode,
    },
    /// A segment takes up where its parent ended.
    Resumed {
        /// State of the parent segment.
        parent: ClosedState,
    },
    /// A server listed its tools. Its own hints are recorded, not trusted.
    ToolsListed {
        /// The server, as it named itself or was started.
        server: String,
        /// What the server is known by, whatever it calls itself: the command that started it. `None` in runs of
        /// earlier releases, and if the surface does not report it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        origin: Option<String>,
        /// The tools.
        tools: Vec<ListedTool>,
    },
    /// A person accepted a tool as its server describes it now.
    ToolAccepted {
        /// The server that lists it.
        server: String,
        /// Its name on the wire.
        tool: String,
        /// Digest of description and schema.
        digest: Digest,
    },
    /// The run opened another one, for a delegated agent.
    ChildOpened {
        /// The run that was opened.
        run: RunId,
    },
    /// The agent of the run above speaks to that of this one, and has seen more than this one knew of.
    ParentSaw {
        /// The labels of the run above.
        labels: LabelSet,
    },
    /// A run that this one opened has ended. If it is taken up again, it ends again.
    ChildClosed {
        /// The run.
        run: RunId,
        /// How it ended.
        state: ClosedState,
        /// Number of its last event; 0 if it never began.
        count: u64,
        /// The link of that event, or `None` if it never began.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        link: Option<Digest>,
    },
    /// A server of tools was started contained.
    ServerContained {
        /// What it is known by.
        server: String,
        /// Under which profile.
        contained: Contained,
    },
}

/// A tool as its server described it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedTool {
    /// Its name on the wire.
    pub name: String,
    /// Digest of all that the server says of it, so that a later change is seen.
    pub digest: Digest,
    /// The server's `readOnlyHint`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only_hint: Option<bool>,
    /// The server's `destructiveHint`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destructive_hint: Option<bool>,
    /// The accepted digest, if this one differs from it: the tool changed. The digest of an unreadable entry differs
    /// from every other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed_from: Option<Digest>,
}
