//! Surfaces in the process of the gate.

use std::sync::Arc;
use std::time::Duration;

use portcullis_contracts::verify::documents_given;
use portcullis_core::event::{Enforced, ListedTool, Place};
use portcullis_core::finding::SpanEdit;
use portcullis_core::id::{Digest, RunId};
use portcullis_core::label::Label;
use portcullis_core::pipeline::Decision;
use portcullis_core::principal::CredentialKind;
use portcullis_core::verdict::Verdict;
use portcullis_proof::export::PAYLOAD_BYTES_MAX;
use portcullis_wire::mcp::list::INSTRUCTIONS;
use serde_json::{Map, Value};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::{
    EVIDENCE_NAME_BYTES_MAX, FOLDER_BYTES_MAX, ObservationAnswer, OpenRun, OpenedRun, ProposeAction,
    ProposeTurn, ReportConfirmation, ReportEvidence, ReportInput, ReportOutcome, ReportOutput, ReportTold,
    ReportTools, ReportedTool, Role, Surface, TURN_ACTIONS_MAX, TextAnswer, TextEdit, ToolWords, ToolsAnswer,
    WAIT_MS_MAX,
};
use crate::credentials::Identity;
use crate::engine::{EDITED, Judgement, Proposal, TextJudgement};
use crate::error::SessionError;
use crate::gate::{Gate, OpenError, Reply, RunRequest, settle};
use crate::listings::{self, Listings, ListingsError};
use crate::permit::{Permit, Proposed};
use crate::run::Run;

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
        if let Some(server) = server {
            self.known_changes(&opened.run, server).await?;
        }
        let disabled = opened.bundle.registry.iter().filter(|tool| !tool.enabled);
        Ok(OpenedRun {
            run: opened.run.id(),
            segment: opened.run.segment(),
            policy: opened.policy,
            bundle: opened.bundle.digest(),
            mode: opened.bundle.mode,
            shared: opened.shared,
            disabled_tools: disabled.flat_map(|tool| [tool.name.clone(), tool.id.clone()]).collect(),
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
            if let Err(Ok(lost)) = answer.send(run.propose_in_order(actions).await) {
                run.not_executed(lost).await;
            }
        });
        answered.await.map_err(|_| SessionError::CutShort)?
    }

    async fn outcome(&self, outcome: ReportOutcome) -> Result<ObservationAnswer, SurfaceError> {
        check_text(outcome.content.as_deref().unwrap_or_default())?;
        let action = match (outcome.action, &outcome.call) {
            (Some(action), None) => action,
            (None, Some(call)) => {
                let action = self.run.awaits_outcome_of_call(call).await;
                action
                    .ok_or_else(|| SessionError::NoSuchCall(call.chars().take(CALL_SHOWN_CHARS).collect()))?
            }
            _ => return Err(invalid("name the action with `action` or `call`")),
        };
        let run = Arc::clone(&self.run);
        let work = async move { run.outcome(action, outcome.status, outcome.content, outcome.reach).await };
        let (seq, judged) = settle(work).await?;
        Ok(match judged {
            Some(judged) => observation_answer(judged, seq),
            None => ObservationAnswer {
                verdict: Verdict::Allow,
                enforced: Enforced::Executed,
                denial: None,
                shown: None,
                edits: Vec::new(),
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
        let reply = Reply { text: output.text, documents: given, reach: output.reach };
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
        })
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

fn observation_answer(judged: TextJudgement, seq: u64) -> ObservationAnswer {
    ObservationAnswer {
        verdict: judged.decision.verdict,
        enforced: judged.enforced,
        denial: judged.denial,
        edits: if judged.shown.is_some() { edits_of(&judged.decision) } else { Vec::new() },
        shown: judged.shown,
        seq,
    }
}

fn text_answer(judged: TextJudgement) -> TextAnswer {
    let TextJudgement { decision, enforced, shown, denial, approval, verification, seq } = judged;
    // Of words that a person gave, no stretch is one of the reply's.
    let by_stretches = shown.is_some() && !decision.findings.iter().any(|finding| finding.rule == EDITED);
    let edits = if by_stretches { edits_of(&decision) } else { Vec::new() };
    TextAnswer { seq, verdict: decision.verdict, enforced, denial, approval, shown, edits, verification }
}

/// The edits of a text, in its order and each once.
fn edits_of(decision: &Decision) -> Vec<TextEdit> {
    let edits = decision.findings.iter().filter(|finding| finding.verdict == Verdict::Modify);
    let mut edits: Vec<&SpanEdit> = edits.flat_map(|finding| &finding.edits).collect();
    edits.sort();
    edits.dedup();
    edits
        .into_iter()
        .map(|edit| TextEdit {
            start: edit.span.start,
            end: edit.span.end,
            replacement: edit.replacement.clone(),
        })
        .collect()
}
