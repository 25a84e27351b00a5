//! What a surface of the gate does with a run, wherever the gate is.
//!
//! MCP servers, hooks of coding agents and whatever else stands in front of an agent speak to a [`Surface`]. One is
//! served over the daemon's socket by its client, one in this process by [`LocalRun`]. Both take the same messages and
//! give the same answers: what a message may hold, and what is meant where it says nothing, is decided here, once for
//! all of them.

mod answers;
mod local;
mod requests;
mod texts;
mod tools;

use portcullis_core::id::RunId;

pub use self::local::{Local, LocalRun, SurfaceError, UNCONTAINED};
pub use self::requests::{
    ActionAnswer, EVIDENCE_NAME_BYTES_MAX, FOLDER_BYTES_MAX, OpenRun, OpenedRun, ProposeAction, ProposeTurn,
    REQUEST_BYTES_MAX, ReportEvidence, ReportObserved, StopAnswer, TURN_ACTIONS_MAX, TakeTicket, TakenTicket,
    TurnAnswer, WAIT_MS_MAX,
};
pub use self::texts::{
    ObservationAnswer, ReportConfirmation, ReportInput, ReportOutcome, ReportOutput, ReportTold, Role,
    TextAnswer, TextEdit,
};
pub use self::tools::{ReportTools, ReportedTool, ToolWords, ToolsAnswer, UnreadableTool};
use crate::permit::Proposed;

/// One run, as a surface sees it. Every error means that nothing may go ahead and nothing may be shown.
pub trait Surface: Send + Sync {
    /// Why a request failed.
    type Error: std::error::Error + Send;

    /// The run.
    fn id(&self) -> RunId;

    /// Proposes an action; a held one waits for a person, for as long as the request or the bundle says. Dropping the
    /// future gives up the wait and nothing else.
    fn propose(&self, action: ProposeAction) -> impl Future<Output = Result<Proposed, Self::Error>> + Send;

    /// Proposes the actions of one turn, side by side: they are judged in this order, and those that are held wait
    /// together. An answer for each, in the same order.
    fn propose_turn(
        &self,
        turn: ProposeTurn,
    ) -> impl Future<Output = Result<Vec<Proposed>, Self::Error>> + Send;

    /// Reports what became of an action; what the tool answered is judged.
    fn outcome(
        &self,
        outcome: ReportOutcome,
    ) -> impl Future<Output = Result<ObservationAnswer, Self::Error>> + Send;

    /// Reports what a server says other than answers to actions.
    fn told(&self, told: ReportTold) -> impl Future<Output = Result<ObservationAnswer, Self::Error>> + Send;

    /// Reports what was said to the agent.
    fn input(&self, input: ReportInput) -> impl Future<Output = Result<TextAnswer, Self::Error>> + Send;

    /// Reports that the user said yes to a call that they were asked about: the same call is then judged once without the
    /// question. It answers nothing that an approver has to.
    fn confirm(
        &self,
        confirmation: ReportConfirmation,
    ) -> impl Future<Output = Result<TextAnswer, Self::Error>> + Send;

    /// Reports the agent's reply.
    fn output(&self, output: ReportOutput) -> impl Future<Output = Result<TextAnswer, Self::Error>> + Send;

    /// Reports something that bears on the run and is neither said, done nor seen by the agent.
    fn evidence(
        &self,
        evidence: ReportEvidence,
    ) -> impl Future<Output = Result<TextAnswer, Self::Error>> + Send;

    /// Reports what was seen of something contained. It is judged beside what was predicted.
    fn observed(
        &self,
        observed: ReportObserved,
    ) -> impl Future<Output = Result<ObservationAnswer, Self::Error>> + Send;

    /// The agent wants to stop.
    fn stopping(&self) -> impl Future<Output = Result<StopAnswer, Self::Error>> + Send;

    /// Reports the tools that a server lists.
    fn tools(&self, tools: ReportTools) -> impl Future<Output = Result<ToolsAnswer, Self::Error>> + Send;

    /// Leaves the run in good order: it is closed once nobody is attached to it.
    fn close(&self) -> impl Future<Output = Result<(), Self::Error>> + Send;
}
