//! Opening a run and proposing actions, as messages.

use portcullis_core::denial::Denial;
use portcullis_core::event::{Enforced, Mode, Place};
use portcullis_core::finding::Finding;
use portcullis_core::id::{ActionId, ApprovalId, Digest, RunId, SegmentId};
use portcullis_core::observed::{Connection, Observed};
use portcullis_core::profile::Profile;
use portcullis_core::verdict::Verdict;
use portcullis_wire::strict;
use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::engine::{Contain, Ticket};

/// Largest request body, in bytes: the largest message of a protocol behind the gate, and room around it.
pub const REQUEST_BYTES_MAX: usize = 24 * 1024 * 1024;

/// Longest that a held call may wait for a decision inside its request, in milliseconds.
pub const WAIT_MS_MAX: u32 = 50_000;

/// Longest name of a piece of evidence, in bytes.
pub const EVIDENCE_NAME_BYTES_MAX: usize = 256;

/// Longest folder of a place or a proposal, in bytes.
pub const FOLDER_BYTES_MAX: usize = 4096;

/// Most actions of one turn.
pub const TURN_ACTIONS_MAX: usize = 64;

/// Opens a run, joins the live run of the same principal and session, or continues one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OpenRun {
    /// How the agent connects, such as `mcp`.
    pub surface: String,
    /// The client session the run belongs to; none: a run of its own, uncorrelated.
    #[serde(default)]
    pub session: Option<String>,
    /// Name of the runtime policy; none: the credential's, else the bundle's default.
    #[serde(default)]
    pub policy: Option<String>,
    /// Absolute path of the bundle's folder, or the name of a bundle that ships; none: the daemon's own bundle.
    #[serde(default)]
    pub bundle: Option<String>,
    /// The client, as it names itself.
    #[serde(default)]
    pub client: Option<String>,
    /// The command that starts the server whose tools will be called, where the surface stands before one: what is
    /// known of changes to them holds from the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The server's name in the bundle, where it stands there: `[server."NAME"]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_name: Option<String>,
    /// A profile of the bundle for the server, instead of the one that the bundle gives it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_profile: Option<String>,
    /// Where the server is started, and the user's home folder: what paths of its profile are taken from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_place: Option<Place>,
    /// Continue this run in a new segment.
    #[serde(default)]
    pub resume: Option<RunId>,
    /// Where no run of the session is live, continue its latest one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rejoin: bool,
    /// Where the agent works; a run keeps the place that it was opened with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
    /// The live run that delegates work to the agent of this one: this run may do no more than that one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<RunId>,
}

/// A run is open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OpenedRun {
    /// The run.
    pub run: RunId,
    /// The segment that the daemon writes.
    pub segment: SegmentId,
    /// Name of the runtime policy that governs it.
    pub policy: String,
    /// Digest of the bundle that governs it.
    pub bundle: Digest,
    /// Whether verdicts are enforced.
    pub mode: Mode,
    /// The run was live already, for another connection of the same session.
    pub shared: bool,
    /// Names and ids of disabled tools.
    #[serde(default)]
    pub disabled_tools: Vec<String>,
    /// The profile that the server is to run under, and the ticket for what is seen of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<Contain>,
    /// Names of servers that the bundle has run contained.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contained_servers: Vec<String>,
}

/// Proposes an action.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProposeAction {
    /// The tool as the agent named it, or `None` for a thinking step.
    #[serde(default)]
    pub tool: Option<String>,
    /// The command that starts its server, where the surface knows that: a tool of the same name of another server is
    /// another tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The arguments: an object. Read strictly: what could be read in two ways is refused.
    #[serde(default, deserialize_with = "strictly")]
    #[schemars(with = "Value")]
    pub arguments: Value,
    /// What the agent said it was about to do.
    #[serde(default)]
    pub planned: Option<String>,
    /// What a call carries besides its arguments when it takes up one that asked for more: read and judged like them.
    #[serde(default, deserialize_with = "strictly_if_there", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Value>")]
    pub continuation: Option<Value>,
    /// The surface's own id of the call.
    #[serde(default)]
    pub call: Option<String>,
    /// The working directory, absolute: what relative paths in the arguments start from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// Where a person has to decide, the client's own prompt will: the action is not held but
    /// [asked](Enforced::Asked), without a permit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ask: bool,
    /// The surface runs command lines contained, where it is given a profile: it gets the permit's
    /// [`contain`](ActionAnswer), and runs the action under it or not at all.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub contains: bool,
    /// How sure the agent or its planner is of this step, 0 to 1, where it knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// How long a held call waits for the decision, at most [`WAIT_MS_MAX`]; none: as the bundle says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<u32>,
}

/// Reads a value by the rules of [`strict`]: without equal keys, and with numbers that every reader takes for the same.
fn strictly<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
    let raw = Box::<RawValue>::deserialize(deserializer)?;
    strict::parse_str(raw.get(), REQUEST_BYTES_MAX).map_err(D::Error::custom)
}

fn strictly_if_there<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    strictly(deserializer).map(|value| Some(value).filter(|value| !value.is_null()))
}

/// What the gate says of an action.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ActionAnswer {
    /// The action's name from here on. A retry of a held call keeps the name it had.
    pub action: ActionId,
    /// Its number in the run, from 1.
    pub step: u32,
    /// The join of all findings.
    pub verdict: Verdict,
    /// What is done about it.
    pub enforced: Enforced,
    /// The verdict is durable and the action may happen, exactly once.
    pub permit: bool,
    /// The arguments to use instead, only where `enforced` is `replaced`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
    /// Why not, if there is no permit.
    #[serde(default)]
    pub denial: Option<Denial>,
    /// The approval that is waited for, or was.
    #[serde(default)]
    pub approval: Option<ApprovalId>,
    /// It may happen, and all that it does is in its text, or a person granted this very call. False where the run
    /// was opened without a place.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub seen: bool,
    /// How it is to be contained, where there is a permit and the bundle says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contain: Option<Contain>,
    /// It may happen as it is; git in it is to run no hooks.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub without_hooks: bool,
    /// All findings in declared order.
    #[serde(default)]
    pub findings: Vec<Finding>,
    /// Number of the last event written for it.
    pub seq: u64,
}

/// Reports something that bears on the run and is neither said, done nor seen by the agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReportEvidence {
    /// What it is, at most [`EVIDENCE_NAME_BYTES_MAX`].
    pub name: String,
    /// Digest of the thing itself.
    pub digest: Digest,
}

/// Reports what was seen of something that runs contained: how it ended, or a connection as it happens. One of `action`,
/// `call` and `server` names it; one of `observed` and `connection` is what was seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReportObserved {
    /// The action.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<ActionId>,
    /// The surface's own id of the call, while its outcome is awaited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// The command that starts the server, where it is a server that runs contained.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The ticket that came with the permit. A report without it is refused, and that it was made is recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ticket: Option<Ticket>,
    /// Digest of the profile that it ran under.
    pub profile_digest: Digest,
    /// All that was seen, once it has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed: Option<Observed>,
    /// A connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection: Option<Connection>,
}

/// Takes the profile of an action that is run contained now. Once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TakeTicket {
    /// The ticket that came with the permit.
    pub ticket: Ticket,
}

/// What a ticket stands for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TakenTicket {
    /// The run.
    pub run: RunId,
    /// The action.
    pub action: ActionId,
    /// What the action runs under.
    pub profile: Profile,
}

/// What an agent that wants to stop is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StopAnswer {
    /// The work that is not shown to be done, in words; `None` where there is none, or where it was told before and
    /// nothing has happened since.
    #[serde(default)]
    pub open: Option<String>,
    /// All that was begun and is not shown to be done, for the user, whether or not it was told before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unshown: Option<String>,
}

/// Proposes the actions of one turn of the agent: calls that it makes side by side. They are judged in this order.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProposeTurn {
    /// The actions, at most [`TURN_ACTIONS_MAX`].
    pub actions: Vec<ProposeAction>,
}

/// What the gate says of the actions of one turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TurnAnswer {
    /// An answer for each, in the order of the proposals.
    pub answers: Vec<ActionAnswer>,
}
