//! Surfaces in the process of the gate.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use portcullis_contracts::verify::documents_given;
use portcullis_core::bundle::Bundle;
use portcullis_core::event::{Enforced, ListedTool, OutcomeStatus, Place};
use portcullis_core::id::{ActionId, Digest, DigestBuilder, RunId};
use portcullis_core::label::Label;
use portcullis_core::principal::CredentialKind;
use portcullis_core::profile::{Places, Profile};
use portcullis_core::verdict::Verdict;
use portcullis_proof::export::PAYLOAD_BYTES_MAX;
use portcullis_wire::mcp::list::INSTRUCTIONS;
use serde_json::{Map, Value};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::answers::{observation_answer, text_answer};
use super::{
    EVIDENCE_NAME_BYTES_MAX, FOLDER_BYTES_MAX, ObservationAnswer, OpenRun, OpenedRun, ProposeAction,
    ProposeTurn, ReportConfirmation, ReportEvidence, ReportInput, ReportObserved, ReportOutcome,
    ReportOutput, ReportTold, ReportTools, ReportedTool, Role, StopAnswer, Surface, TURN_ACTIONS_MAX,
    TextAnswer, ToolWords, ToolsAnswer, WAIT_MS_MAX,
};
use crate::credentials::Identity;
use crate::engine::{Contain, Judgement, Proposal, Report, ReportWhat, ReportedOf, Ticket};
use crate::error::SessionError;
use crate::gate::{Gate, OpenError, Reply, RunRequest, settle};
use crate::handed::Handed;
use crate::listings::{self, Listings, ListingsError};
use crate::permit::{Permit, Proposed};
use crate::run::Run;
use crate::tickets::Taken;

/// Name of the evidence that an action was permitted to run contained, and was not run so.
pub const UNCONTAINED: &str = "uncontained";

/// How much of a call's id an error message repeats, in characters.
const CALL_SHOWN_CHARS: usize = 80;

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum SurfaceError {
    /// The request contradicts the rules of its message.
    #[error("{0}")]
    Invalid(String),
    /// A text could not be recorded.
    #[error("the text has {bytes} bytes; the limit is {PAYLOAD_BYTES_MAX}")]
    TooLong {
        /// Its length.
        bytes: usize,
    },
    /// An agent speaks as the operator.
    #[error("an agent's credential cannot act for the operator")]
    NotTheOperator,
    /// A ticket stands for nothing.
    #[error(
        "the ticket is not known to this daemon, or was used: an action runs once, under the permit that it got"
    )]
    NoSuchTicket,
    /// The run.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The run could not be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// What is known of servers' tools.
    #[error(transparent)]
    Listings(#[from] ListingsError),
}

fn invalid(message: impl Into<String>) -> SurfaceError {
    SurfaceError::Invalid(message.into())
}

/// Opens and finds runs in this process.
#[derive(Debug, Clone)]
pub struct Local {
    gate: Arc<Gate>,
    listings: Arc<Listings>,
    /// The folder of the gate's own state, which agents must not touch.
    state: Option<String>,
}

/// A run in this process, for one caller. Cheap to make.
#[derive(Debug, Clone)]
pub struct LocalRun {
    gate: Arc<Gate>,
    listings: Arc<Listings>,
    kind: CredentialKind,
    run: Arc<Run>,
}

impl Local {
    /// The surfaces of a gate, with what is known of servers' tools.
    pub fn new(gate: Arc<Gate>, listings: Arc<Listings>, state: Option<String>) -> Self {
        Self { gate, listings, state }
    }

    /// Opens a run, joins the live one of the same session, or takes up one whose daemon died.
    ///
    /// # Errors
    /// [`SurfaceError`]; no run was opened then.
    pub async fn open(&self, identity: Identity, request: OpenRun) -> Result<OpenedRun, SurfaceError> {
        let ships = |name: &str| self.gate.bundles().ships(name);
        let bundle = request.bundle.as_deref();
        if let Some(folder) = bundle.filter(|folder| !folder.starts_with('/') && !ships(folder)) {
            return Err(invalid(format!(
                "the bundle's folder `{folder}` must be an absolute path, or name a shipped bundle"
            )));
        }
        let place = request.place.as_ref();
        for folder in [place.and_then(|p| p.workspace.as_deref()), place.and_then(|p| p.home.as_deref())] {
            check_folder("place", folder)?;
        }
        let server = request.server;
        let started_in = request.server_place.clone();
        let confined = Confined {
            name: request.server_name,
            profile: request.server_profile,
            place: request.server_place.unwrap_or_default(),
        };
        // A run that is taken up again has its server running.
        let confined = Some(confined).filter(|_| request.resume.is_none());
        let wanted = RunRequest {
            identity,
            surface: request.surface,
            session: request.session,
            policy: request.policy,
            bundle: request.bundle.map(Into::into),
            resume: request.resume,
            rejoin: request.rejoin,
            parent: request.parent,
            // Where the gate's own state lies is its own word, never a client's.
            place: Some(Place { gate: self.state.clone(), ..request.place.unwrap_or_default() }),
        };
        let gate = Arc::clone(&self.gate);
        let opened = tokio::spawn(async move { gate.open(wanted).await });
        let opened = opened.await.map_err(|_| SessionError::CutShort)??;
        if let Some(place) = started_in {
            opened.run.started_in(place).await;
        }
        let command = server.clone().unwrap_or_default();
        if let Some(server) = server {
            self.known_changes(&opened.run, server).await?;
        }
        let contain = match confined.map(|confined| confined.profile(&opened.bundle)).transpose()?.flatten() {
            Some(profile) => Some(self.contain_server(&opened.run, command, profile).await?),
            None => None,
        };
        let disabled = opened.bundle.registry.iter().filter(|tool| !tool.enabled);
        Ok(OpenedRun {
            run: opened.run.id(),
            segment: opened.run.segment(),
            policy: opened.policy,
            bundle: opened.bundle.digest(),
            mode: opened.bundle.mode,
            shared: opened.shared,
            disabled_tools: disabled.flat_map(|tool| [tool.name.clone(), tool.id.clone()]).collect(),
            server: contain,
            contained_servers: opened.bundle.contain.servers.keys().cloned().collect(),
        })
    }

    /// The live run of that id, if the caller may use it. To an agent, another principal's run does not exist.
    ///
    /// # Errors
    /// There is no such run for this caller.
    pub fn run(&self, identity: &Identity, id: RunId) -> Result<LocalRun, SessionError> {
        let run = self.gate.run(id)?;
        if identity.kind == CredentialKind::Agent && run.principal().id != identity.principal.id {
            return Err(SessionError::UnknownRun(id.to_string()));
        }
        let (gate, listings) = (Arc::clone(&self.gate), Arc::clone(&self.listings));
        Ok(LocalRun { gate, listings, kind: identity.kind, run })
    }

    /// The profile that a ticket stands for, for who runs an action under it now. Once.
    ///
    /// # Errors
    /// It is none of this caller, or was taken.
    pub fn take_ticket(&self, identity: &Identity, ticket: Ticket) -> Result<Taken, SurfaceError> {
        let taken = self.gate.tickets().take(ticket, |run| self.run(identity, run).is_ok());
        taken.ok_or(SurfaceError::NoSuchTicket)
    }

    async fn contain_server(
        &self,
        run: &Arc<Run>,
        command: String,
        profile: Profile,
    ) -> Result<Contain, SurfaceError> {
        let run = Arc::clone(run);
        Ok(settle(async move { run.contain_server(&command, profile).await }).await?)
    }

    /// Informs a run of known changes to a server's tools, before anything is listed in it.
    async fn known_changes(&self, run: &Arc<Run>, server: String) -> Result<(), SurfaceError> {
        let of = server.clone();
        let waiting = with_listings(&self.listings, move |listings| listings.waiting(&of)).await?;
        let run = Arc::clone(run);
        if !waiting.is_empty() {
            settle(async move { run.tools_listed(&server, Some(&server), waiting).await }).await?;
        }
        Ok(())
    }
}

impl Surface for LocalRun {
    type Error = SurfaceError;

    fn id(&self) -> RunId {
        self.run.id()
    }

    async fn propose(&self, action: ProposeAction) -> Result<Proposed, SurfaceError> {
        let wait = self.wait(&action).await;
        let (judgement, permit) = self.gate.propose(&self.run, proposal(action)?, wait).await?;
        Ok(Proposed::decided(judgement, permit)?)
    }

    async fn propose_turn(&self, turn: ProposeTurn) -> Result<Vec<Proposed>, SurfaceError> {
        if turn.actions.len() > TURN_ACTIONS_MAX {
            return Err(invalid(format!("a turn has at most {TURN_ACTIONS_MAX} actions")));
        }
        // Whole before any: a turn with one action that cannot be read proposes nothing.
        let mut actions = Vec::with_capacity(turn.actions.len());
        for action in turn.actions {
            let wait = self.wait(&action).await;
            actions.push((proposal(action)?, wait));
        }
        let (run, (answer, answered)) = (self.clone(), oneshot::channel());
        tokio::spawn(async move {
            let proposed = run.propose_in_order(actions).await;
            let _ = answer.send(Handed::new((run, proposed), |(run, proposed)| {
                let lost = proposed.ok()?;
                Some(async move { run.not_executed(lost).await })
            }));
        });
        let (_, proposed) = answered.await.ok().and_then(Handed::take).ok_or(SessionError::CutShort)?;
        proposed
    }

    async fn outcome(&self, outcome: ReportOutcome) -> Result<ObservationAnswer, SurfaceError> {
        check_text(outcome.content.as_deref().unwrap_or_default())?;
        let action = match (outcome.action, &outcome.call) {
            (Some(action), None) => action,
            (None, Some(call)) => self.action_of_call(call).await?,
            _ => return Err(invalid("name the action with `action` or `call`")),
        };
        let run = Arc::clone(&self.run);
        let happened = outcome.status != OutcomeStatus::NotExecuted;
        let work = async move { run.outcome(action, outcome.status, outcome.content, outcome.reach).await };
        let (seq, judged) = settle(work).await?;
        // Whoever runs it takes the profile before, and the client tells the outcome after.
        let uncontained = self.gate.tickets().give_up(self.run.id(), action) && happened;
        if uncontained {
            let digest = DigestBuilder::new("portcullis/uncontained/v1").part(action.as_bytes()).finish();
            let run = Arc::clone(&self.run);
            settle(async move { run.evidence(UNCONTAINED.to_owned(), digest).await }).await?;
        }
        Ok(match judged {
            Some(judged) => ObservationAnswer { uncontained, ..observation_answer(judged, seq) },
            None => ObservationAnswer {
                verdict: Verdict::Allow,
                enforced: Enforced::Executed,
                denial: None,
                shown: None,
                edits: Vec::new(),
                uncontained,
                seq,
            },
        })
    }

    async fn told(&self, told: ReportTold) -> Result<ObservationAnswer, SurfaceError> {
        let run = Arc::clone(&self.run);
        let work = async move { run.told(&told.server, told.content, told.reach).await };
        let (seq, judged) = settle(work).await?;
        Ok(observation_answer(judged, seq))
    }

    async fn input(&self, input: ReportInput) -> Result<TextAnswer, SurfaceError> {
        if input.role == Role::Operator && self.kind == CredentialKind::Agent {
            return Err(SurfaceError::NotTheOperator);
        }
        check_text(&input.text)?;
        let label = match input.role {
            Role::User => Label::User,
            Role::Operator => Label::Operator,
        };
        let run = Arc::clone(&self.run);
        let judged = settle(async move { run.input(input.text, label, input.reach).await }).await?;
        Ok(text_answer(judged))
    }

    async fn confirm(&self, confirmation: ReportConfirmation) -> Result<TextAnswer, SurfaceError> {
        check_text(&confirmation.text)?;
        let ReportConfirmation { action, text } = confirmation;
        let run = Arc::clone(&self.run);
        let judged = settle(async move { run.confirm(action, text).await }).await?;
        Ok(text_answer(judged))
    }

    async fn output(&self, output: ReportOutput) -> Result<TextAnswer, SurfaceError> {
        check_text(&output.text)?;
        let given = output.documents.as_ref().map(documents_given).transpose();
        let given = given.map_err(|error| invalid(error.to_string()))?;
        let reply = Reply { text: output.text, documents: given, reach: output.reach, last: output.last };
        let wait = Duration::from_millis(output.wait_ms.unwrap_or_default().min(WAIT_MS_MAX).into());
        Ok(text_answer(self.gate.output(&self.run, reply, wait).await?))
    }

    async fn evidence(&self, evidence: ReportEvidence) -> Result<TextAnswer, SurfaceError> {
        let limit = EVIDENCE_NAME_BYTES_MAX;
        if evidence.name.is_empty() || evidence.name.len() > limit {
            return Err(invalid(format!("`name` must have 1 to {limit} bytes")));
        }
        let run = Arc::clone(&self.run);
        let seq = settle(async move { run.evidence(evidence.name, evidence.digest).await }).await?;
        Ok(TextAnswer {
            seq,
            verdict: Verdict::Allow,
            enforced: Enforced::Executed,
            denial: None,
            approval: None,
            shown: None,
            edits: Vec::new(),
            verification: None,
            note: None,
        })
    }

    async fn stopping(&self) -> Result<StopAnswer, SurfaceError> {
        let run = Arc::clone(&self.run);
        Ok(settle(async move { run.stopping().await }).await?)
    }

    async fn observed(&self, reported: ReportObserved) -> Result<ObservationAnswer, SurfaceError> {
        let ReportObserved { action, call, server, ticket, profile_digest: profile, observed, connection } =
            reported;
        let of = match (action, call, server) {
            (Some(action), None, None) => ReportedOf::Action(action),
            (None, Some(call), None) => ReportedOf::Action(self.action_of_call(&call).await?),
            (None, None, Some(server)) => ReportedOf::Server(server),
            _ => return Err(invalid("name what ran with one of `action`, `call` and `server`")),
        };
        let what = match (observed, connection) {
            (Some(observed), None) => ReportWhat::Ended(Box::new(observed)),
            (None, Some(connection)) => ReportWhat::Connection(connection),
            _ => return Err(invalid("say what was seen with one of `observed` and `connection`")),
        };
        let run = Arc::clone(&self.run);
        let report = Report { of, ticket, profile, what };
        let (seq, judged) = settle(async move { run.observed(report).await }).await?;
        Ok(observation_answer(judged, seq))
    }

    async fn tools(&self, report: ReportTools) -> Result<ToolsAnswer, SurfaceError> {
        let ReportTools { server, command, tools, unreadable } = report;
        let principal = self.run.principal().id.clone();
        let origin = command.clone().unwrap_or_else(|| server.clone());
        let (tools, unreadable, changed) = with_listings(&self.listings, move |listings| {
            let changed = listings.listed(&principal, &origin, &tools, &unreadable)?;
            Ok((tools, unreadable, changed))
        })
        .await?;
        let names: Vec<String> = tools.iter().map(|tool| tool.name.clone()).collect();
        let only_instructions = !names.is_empty() && names.iter().all(|name| name == INSTRUCTIONS);
        let disabled = self
            .run
            .with_state(|_, bundle| {
                let hidden = |name: &String| {
                    changed.contains_key(name) || bundle.registry.get(name).is_some_and(|tool| !tool.enabled)
                };
                names.into_iter().filter(hidden).collect()
            })
            .await;
        let mut listed: Vec<ListedTool> = Vec::with_capacity(tools.len() + unreadable.len());
        for tool in tools {
            let changed_from = changed.get(&tool.name).copied();
            // Instructions are no tool: of interest only where they changed.
            if tool.name != INSTRUCTIONS || changed_from.is_some() {
                listed.push(listed_tool(tool, changed_from));
            }
        }
        listed.extend(unreadable.into_iter().map(|entry| ListedTool {
            changed_from: changed.get(&entry.name).copied(),
            name: entry.name,
            digest: entry.digest,
            read_only_hint: None,
            destructive_hint: None,
        }));
        let changed = changed.into_keys().collect();
        let seq = if only_instructions && listed.is_empty() {
            self.run.with_state(|state, _| state.seq()).await
        } else {
            let run = Arc::clone(&self.run);
            settle(async move { run.tools_listed(&server, command.as_deref(), listed).await }).await?
        };
        Ok(ToolsAnswer { seq, disabled, changed })
    }

    async fn close(&self) -> Result<(), SurfaceError> {
        Ok(self.gate.leave(self.run.id()).await?)
    }
}

/// An action of a turn.
enum Waiting {
    /// It is decided.
    Over(Box<Proposed>),
    /// A person is asked.
    For(JoinHandle<Result<(Judgement, Option<Permit>), SessionError>>),
}

impl Waiting {
    async fn over(self) -> Result<Proposed, SessionError> {
        match self {
            Self::Over(proposed) => Ok(*proposed),
            Self::For(task) => {
                let (judgement, permit) = task.await.map_err(|_| SessionError::CutShort)??;
                Proposed::decided(judgement, permit)
            }
        }
    }
}

impl LocalRun {
    /// The action whose outcome is awaited and that the surface knows by this id.
    async fn action_of_call(&self, call: &str) -> Result<ActionId, SessionError> {
        let action = self.run.awaits_outcome_of_call(call).await;
        action.ok_or_else(|| SessionError::NoSuchCall(call.chars().take(CALL_SHOWN_CHARS).collect()))
    }

    /// The run itself, for what people do with it.
    #[must_use]
    pub fn run(self) -> Arc<Run> {
        self.run
    }

    /// Proposes one after the other, then waits for all that are held. All are answered, or none is permitted.
    async fn propose_in_order(
        &self,
        actions: Vec<(Proposal, Duration)>,
    ) -> Result<Vec<Proposed>, SurfaceError> {
        let (mut answers, mut failed) = (Vec::with_capacity(actions.len()), None);
        for (proposal, wait) in actions {
            match self.begin_to_propose(proposal, wait).await {
                Ok(answer) => answers.push(answer),
                Err(error) => {
                    failed = Some(error);
                    break;
                }
            }
        }
        let mut proposed = Vec::with_capacity(answers.len());
        for answer in answers {
            match answer.over().await {
                Ok(answer) => proposed.push(answer),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        match failed {
            None => Ok(proposed),
            Some(error) => {
                self.not_executed(proposed).await;
                Err(error.into())
            }
        }
    }

    async fn begin_to_propose(&self, proposal: Proposal, wait: Duration) -> Result<Waiting, SessionError> {
        let (judgement, permit) = self.gate.propose(&self.run, proposal.clone(), Duration::ZERO).await?;
        if judgement.enforced != Enforced::Held || wait.is_zero() {
            return Ok(Waiting::Over(Box::new(Proposed::decided(judgement, permit)?)));
        }
        let (gate, run) = (Arc::clone(&self.gate), Arc::clone(&self.run));
        Ok(Waiting::For(tokio::spawn(async move { gate.propose(&run, proposal, wait).await })))
    }

    /// Records that these permits reached nobody.
    async fn not_executed(&self, lost: Vec<Proposed>) {
        for permit in lost.into_iter().filter_map(Proposed::permit) {
            // If this cannot be recorded either, the action stays without an outcome, which counts as executed.
            let _ = self.run.not_executed(permit.action()).await;
        }
    }

    /// How long a held action waits: as the request says, else as the bundle does.
    async fn wait(&self, action: &ProposeAction) -> Duration {
        let default = self.run.with_state(|_, bundle| bundle.approvals.wait_s.saturating_mul(1_000)).await;
        Duration::from_millis(u64::from(action.wait_ms.unwrap_or(default).min(WAIT_MS_MAX)))
    }
}

/// A server that is started.
struct Confined {
    name: Option<String>,
    /// A profile for it, by its name.
    profile: Option<String>,
    place: Place,
}

impl Confined {
    /// The profile that is named, or the one that the bundle has for a server of this name.
    fn profile(&self, bundle: &Bundle) -> Result<Option<Profile>, SurfaceError> {
        let profile = match (&self.profile, &self.name) {
            (Some(name), _) => {
                let profile = bundle.contain.profile(name);
                Some(profile.ok_or_else(|| invalid(format!("the bundle has no profile `{name}`")))?)
            }
            (None, Some(server)) => bundle.contain.servers.get(server).cloned(),
            (None, None) => None,
        };
        let folder = |folder: &Option<String>| folder.as_ref().map(PathBuf::from);
        let (workspace, home) = (folder(&self.place.workspace), folder(&self.place.home));
        let here = workspace.as_deref();
        let places = Places { workspace: here, home: home.as_deref(), here };
        let placed = profile.map(|profile| profile.at(&places)).transpose();
        placed.map_err(|why| invalid(format!("the server's profile: {why}")))
    }
}

/// Refuses a proposal that means nothing, before it is judged.
fn check_action(action: &ProposeAction) -> Result<(), SurfaceError> {
    if !action.arguments.is_object() && !action.arguments.is_null() {
        return Err(invalid("`arguments` must be an object"));
    }
    check_folder("directory", action.directory.as_deref())?;
    if action.confidence.is_some_and(|confidence| !(0.0..=1.0).contains(&confidence)) {
        return Err(invalid("`confidence` must be a number from 0 to 1"));
    }
    Ok(())
}

fn proposal(action: ProposeAction) -> Result<Proposal, SurfaceError> {
    check_action(&action)?;
    let arguments = match action.arguments {
        Value::Null => Value::Object(Map::new()),
        arguments => arguments,
    };
    Ok(Proposal {
        tool: action.tool,
        server: action.server,
        arguments,
        planned: action.planned,
        continuation: action.continuation,
        call: action.call,
        directory: action.directory,
        ask: action.ask,
        contains: action.contains,
        confidence: action.confidence,
    })
}

/// Folders stay in the record forever, and relative ones mean nothing there.
fn check_folder(field: &str, folder: Option<&str>) -> Result<(), SurfaceError> {
    let Some(folder) = folder else { return Ok(()) };
    if !folder.starts_with('/') || folder.len() > FOLDER_BYTES_MAX {
        let limit = FOLDER_BYTES_MAX;
        return Err(invalid(format!(
            "a folder of `{field}` must be an absolute path of at most {limit} bytes"
        )));
    }
    Ok(())
}

/// Refuses a text that could not be recorded, before it is judged.
fn check_text(text: &str) -> Result<(), SurfaceError> {
    match text.len() {
        bytes if bytes > PAYLOAD_BYTES_MAX => Err(SurfaceError::TooLong { bytes }),
        _ => Ok(()),
    }
}

/// Works on the listings, off the async threads.
async fn with_listings<T: Send + 'static>(
    listings: &Arc<Listings>,
    work: impl FnOnce(&Listings) -> Result<T, ListingsError> + Send + 'static,
) -> Result<T, SurfaceError> {
    let listings = Arc::clone(listings);
    let done = tokio::task::spawn_blocking(move || work(&listings)).await;
    Ok(done.map_err(|_| SessionError::CutShort)??)
}

fn listed_tool(tool: ReportedTool, changed_from: Option<Digest>) -> ListedTool {
    let words = ToolWords { description: tool.description, input_schema: tool.input_schema, rest: tool.rest };
    ListedTool {
        name: tool.name,
        digest: listings::digest(&words),
        read_only_hint: tool.read_only_hint,
        destructive_hint: tool.destructive_hint,
        changed_from,
    }
}
