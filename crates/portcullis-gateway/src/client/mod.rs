//! The client side of `/v1`: what the shims (`mcp`, `approvals`, `runs`, ...) talk to the daemon with.
//!
//! [`Client`] makes single requests. [`ensure_daemon`] starts the daemon where none listens. [`Run`] holds one
//! run open and takes it up again in a new segment when the daemon dies.

mod error;
mod freezes;
mod one;
mod pool;
mod run;
#[cfg(test)]
pub(crate) mod stand_in;
mod start;
#[cfg(test)]
mod tests;

use std::fs;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use http_body_util::BodyExt as _;
use hyper::body::{Bytes, Incoming};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderMap, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use portcullis_core::id::{Digest, RunId};
use portcullis_core::principal::CredentialKind;
use portcullis_hook::folder::TOKEN_BYTES_MAX;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};

pub use error::ClientError;
pub use one::ClientRun;
pub(crate) use pool::own_user;
use portcullis_session::engine::Ticket;
pub use portcullis_session::permit::{Judged, Permit, Proposed, Stopped};
pub use run::{RESUMES_IN_A_ROW_MAX, Run};
pub use start::{StartOptions, ensure_daemon};

use crate::api::{
    AcceptTool, AcceptTools, AcceptedTool, AcceptedTools, ActionAnswer, AnswerApproval, ApprovalFilter,
    ApprovalInfo, Approvals, CHECK_WAIT_MS, ChangedTools, ControlRun, Empty, ErrorBody, FactAnswer, FactList,
    FactRequest, FactTold, GrantApproval, GrantApprovals, Granted, Health, ID_PREFIX_MIN, MadeLink, MakeLink,
    NEXT_HEADER, ObservationAnswer, OpenRun, OpenedRun, ProposeAction, ProposeTurn, REQUEST_BYTES_MAX,
    RefuseApproval, Reloaded, ReportConfirmation, ReportEvidence, ReportInput, ReportObserved, ReportOutcome,
    ReportOutput, ReportTold, ReportTools, RevokeApproval, RunInfo, Runs, StateAnswer, StateRequest, Stats,
    StopAnswer, TakeTicket, TakenTicket, TextAnswer, ToolsAnswer, TurnAnswer, WAIT_MS_MAX, WebhookList,
    WorkAnswer, WorkList, WorkRequest,
};
use crate::home::{APPROVER_TOKEN_VARIABLE, Home};
use pool::{Body, Connection, Pool};

/// How long a list of approvals is waited for that differs from the one that is known.
pub const APPROVALS_WAIT: Duration = Duration::from_secs(30);
/// How long an answer may take, beyond the time for which a held call was told to wait.
const ANSWER_S_MAX: u64 = 30;
/// Largest answer that is taken, in bytes; exports are streamed and have no limit here.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;

/// A page of a run's events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventPage {
    /// The stored lines, verbatim, each with its newline.
    pub lines: Bytes,
    /// Where the next page begins (`after`); none: this is the last.
    pub next: Option<u64>,
}

/// Talks to the daemon of one state folder with one of its credentials. Cheap to share by reference; requests
/// run concurrently.
#[derive(Debug)]
pub struct Client {
    home: Home,
    credential: CredentialKind,
    token: Mutex<Option<HeaderValue>>,
    pool: Pool,
}

impl Client {
    /// A client; nothing is connected or read yet.
    #[must_use]
    pub fn new(home: Home, credential: CredentialKind) -> Self {
        let pool = Pool::new(home.socket());
        Self { home, credential, token: Mutex::new(None), pool }
    }

    /// The state folder.
    #[must_use]
    pub fn home(&self) -> &Home {
        &self.home
    }

    /// How the daemon is.
    pub async fn health(&self) -> Result<Health, ClientError> {
        self.get("/v1/health").await
    }

    /// Opens, joins or continues a run. Opening a run also attaches to it: see [`Run`].
    pub async fn open_run(&self, open: &OpenRun) -> Result<OpenedRun, ClientError> {
        self.post("/v1/runs", open).await
    }

    /// Proposes an action; waits for the decision as long as `wait_ms` or the bundle says.
    pub async fn propose(&self, run: RunId, action: &ProposeAction) -> Result<Proposed, ClientError> {
        let wait = Duration::from_millis(u64::from(action.wait_ms.unwrap_or(WAIT_MS_MAX)));
        let request = format!("/v1/runs/{run}/actions");
        let answer: ActionAnswer = self.post_within(&request, action, wait).await?;
        Proposed::received(answer).map_err(|why| ClientError::Answer { request, why: why.to_owned() })
    }

    /// Proposes the actions of one turn; waits for the decisions as long as the longest `wait_ms` or the bundle says.
    pub async fn propose_turn(&self, run: RunId, turn: &ProposeTurn) -> Result<Vec<Proposed>, ClientError> {
        let waits = turn.actions.iter().map(|action| action.wait_ms.unwrap_or(WAIT_MS_MAX));
        let wait = Duration::from_millis(u64::from(waits.max().unwrap_or_default()));
        let request = format!("/v1/runs/{run}/turns");
        let TurnAnswer { answers } = self.post_within(&request, turn, wait).await?;
        let understood = |why: &str| ClientError::Answer { request: request.clone(), why: why.to_owned() };
        if answers.len() != turn.actions.len() {
            return Err(understood("it does not answer each of the actions"));
        }
        answers.into_iter().map(Proposed::received).collect::<Result<_, _>>().map_err(understood)
    }

    /// Reports what became of an action; what the tool answered is judged.
    pub async fn outcome(
        &self,
        run: RunId,
        outcome: &ReportOutcome,
    ) -> Result<ObservationAnswer, ClientError> {
        self.post(&format!("/v1/runs/{run}/outcomes"), outcome).await
    }

    /// Reports what a server says other than answers to actions.
    pub async fn told(&self, run: RunId, told: &ReportTold) -> Result<ObservationAnswer, ClientError> {
        self.post(&format!("/v1/runs/{run}/told"), told).await
    }

    /// Reports the tools that a server lists.
    pub async fn tools(&self, run: RunId, tools: &ReportTools) -> Result<ToolsAnswer, ClientError> {
        self.post(&format!("/v1/runs/{run}/tools"), tools).await
    }

    /// Reports what was said to the agent.
    pub async fn input(&self, run: RunId, input: &ReportInput) -> Result<TextAnswer, ClientError> {
        self.post(&format!("/v1/runs/{run}/inputs"), input).await
    }

    /// Reports that the user said yes to a call that they were asked about.
    pub async fn confirm(
        &self,
        run: RunId,
        confirmation: &ReportConfirmation,
    ) -> Result<TextAnswer, ClientError> {
        self.post(&format!("/v1/runs/{run}/confirmations"), confirmation).await
    }

    /// Reports the agent's reply; waits for the decision as long as `wait_ms` says.
    pub async fn output(&self, run: RunId, output: &ReportOutput) -> Result<TextAnswer, ClientError> {
        let wait = Duration::from_millis(output.wait_ms.unwrap_or_default().into());
        self.post_within(&format!("/v1/runs/{run}/outputs"), output, wait).await
    }

    /// Reports something that bears on the run.
    pub async fn evidence(&self, run: RunId, evidence: &ReportEvidence) -> Result<TextAnswer, ClientError> {
        self.post(&format!("/v1/runs/{run}/evidence"), evidence).await
    }

    /// Reports what was seen of something contained.
    pub async fn observed(
        &self,
        run: RunId,
        observed: &ReportObserved,
    ) -> Result<ObservationAnswer, ClientError> {
        self.post(&format!("/v1/runs/{run}/observed"), observed).await
    }

    /// Says that the agent wants to stop.
    pub async fn stopping(&self, run: RunId) -> Result<StopAnswer, ClientError> {
        self.post(&format!("/v1/runs/{run}/stopping"), &Empty {}).await
    }

    /// Does something to a work item. `run` may be a prefix.
    pub async fn work(&self, run: &str, request: &WorkRequest) -> Result<WorkAnswer, ClientError> {
        let wait = Duration::from_millis(request.wait_ms.unwrap_or(CHECK_WAIT_MS).into());
        self.post_within(&format!("/v1/runs/{}/work", checked_id(run)?), request, wait).await
    }

    /// The work items of a live run, and the calls that can be cited. `run` may be a prefix.
    pub async fn work_list(&self, run: &str) -> Result<WorkList, ClientError> {
        self.get(&format!("/v1/runs/{}/work", checked_id(run)?)).await
    }

    /// Does something to the session state of a live run. `run` may be a prefix.
    pub async fn state(&self, run: &str, request: &StateRequest) -> Result<StateAnswer, ClientError> {
        self.post(&format!("/v1/runs/{}/state", checked_id(run)?), request).await
    }

    /// Does something to facts, in a live run. `run` may be a prefix.
    pub async fn facts(&self, run: &str, request: &FactRequest) -> Result<FactAnswer, ClientError> {
        self.post(&format!("/v1/runs/{}/facts", checked_id(run)?), request).await
    }

    /// Facts of the store, the newest first; with `gone`, also those that were replaced or forgotten.
    pub async fn facts_list(
        &self,
        gone: bool,
        before: Option<u64>,
        limit: usize,
    ) -> Result<FactList, ClientError> {
        let before = before.map_or_else(String::new, |before| format!("&before={before}"));
        self.get(&format!("/v1/facts?gone={gone}&limit={limit}{before}")).await
    }

    /// A fact, by the run that established it, or the start of its id, and the number of the event.
    pub async fn fact(&self, run: &str, seq: u64) -> Result<FactTold, ClientError> {
        self.get(&format!("/v1/facts/{}.{seq}", checked_id(run)?)).await
    }

    /// Takes the profile of an action that is run contained now.
    pub async fn take_ticket(&self, ticket: Ticket) -> Result<TakenTicket, ClientError> {
        self.post("/v1/tickets/take", &TakeTicket { ticket }).await
    }

    /// How the webhooks of the daemon's bundle stand.
    pub async fn webhooks(&self) -> Result<WebhookList, ClientError> {
        self.get("/v1/webhooks").await
    }

    /// Gives up this caller's share of a run in good order.
    pub async fn close(&self, run: RunId) -> Result<(), ClientError> {
        self.post(&format!("/v1/runs/{run}/close"), &Empty {}).await.map(|Empty {}| ())
    }

    /// Takes hold of a run. `run` may be a prefix.
    pub async fn control(&self, run: &str, control: &ControlRun) -> Result<(), ClientError> {
        let run = checked_id(run)?;
        self.post(&format!("/v1/runs/{run}/control"), control).await.map(|Empty {}| ())
    }

    /// The latest runs.
    pub async fn runs(&self, limit: u32) -> Result<Vec<RunInfo>, ClientError> {
        self.get::<Runs>(&format!("/v1/runs?limit={limit}")).await.map(|runs| runs.runs)
    }

    /// One run. `run` may be a prefix.
    pub async fn run(&self, run: &str) -> Result<RunInfo, ClientError> {
        self.get(&format!("/v1/runs/{}", checked_id(run)?)).await
    }

    /// Events of a run after number `after`, at most `limit`. `run` may be a prefix.
    pub async fn events(&self, run: &str, after: u64, limit: u32) -> Result<EventPage, ClientError> {
        self.events_page(run, after, limit, "").await
    }

    /// The same for reading: each line has the words that were set aside, so it is not the stored one.
    pub async fn events_joined(&self, run: &str, after: u64, limit: u32) -> Result<EventPage, ClientError> {
        self.events_page(run, after, limit, "&joined=true").await
    }

    async fn events_page(
        &self,
        run: &str,
        after: u64,
        limit: u32,
        more: &str,
    ) -> Result<EventPage, ClientError> {
        let path = format!("/v1/runs/{}/events?after={after}&limit={limit}{more}", checked_id(run)?);
        let (head, lines) = self.exchange(Method::GET, &path, Vec::new(), Duration::ZERO).await?;
        let next = match head.get(NEXT_HEADER) {
            None => None,
            Some(next) => Some(next.to_str().ok().and_then(|next| next.parse().ok()).ok_or_else(|| {
                ClientError::Answer { request: path, why: format!("`{NEXT_HEADER}` is not a number") }
            })?),
        };
        Ok(EventPage { lines, next })
    }

    /// Writes the export of a run to `output` as it arrives; returns its length in bytes. `run` may be a
    /// prefix. After an error, what was written is incomplete.
    pub async fn export<W>(&self, run: &str, output: &mut W) -> Result<u64, ClientError>
    where
        W: AsyncWrite + Unpin,
    {
        let path = format!("/v1/runs/{}/export", checked_id(run)?);
        let (response, connection) =
            within(&path, Duration::ZERO, self.send(Method::GET, &path, Vec::new())).await?;
        let mut body = response.into_body();
        let mut written = 0;
        while let Some(frame) = within(&path, Duration::ZERO, next_frame(&mut body)).await? {
            output
                .write_all(&frame)
                .await
                .map_err(|error| ClientError::Lost(format!("the export could not be written on: {error}")))?;
            written += frame.len() as u64;
        }
        self.pool.keep(connection);
        Ok(written)
    }

    /// Approvals that wait, or all.
    pub async fn approvals(&self, filter: ApprovalFilter) -> Result<Vec<ApprovalInfo>, ClientError> {
        self.list_approvals(filter).await.map(|list| list.approvals)
    }

    /// The same, with what is queued.
    pub async fn list_approvals(&self, filter: ApprovalFilter) -> Result<Approvals, ClientError> {
        self.get(&format!("/v1/approvals?state={}", filter.as_str())).await
    }

    /// Approvals that wait, with the version of the list. Where the list of version `since` is still the one, waits for
    /// another for as long as [`APPROVALS_WAIT`]. A daemon of an earlier release answers without a version.
    pub async fn next_approvals(&self, since: Option<Digest>) -> Result<Approvals, ClientError> {
        let path = format!("/v1/approvals?state={}", ApprovalFilter::Pending.as_str());
        match since {
            Some(since) => {
                let wait_ms = APPROVALS_WAIT.as_millis();
                self.get_within(&format!("{path}&since={since}&wait_ms={wait_ms}"), APPROVALS_WAIT).await
            }
            None => self.get(&path).await,
        }
    }

    /// One approval. `id` may be a prefix.
    pub async fn approval(&self, id: &str) -> Result<ApprovalInfo, ClientError> {
        self.get(&format!("/v1/approvals/{}", checked_id(id)?)).await
    }

    /// Says yes. `id` may be a prefix.
    pub async fn grant(&self, id: &str, grant: &GrantApproval) -> Result<ApprovalInfo, ClientError> {
        self.post(&format!("/v1/approvals/{}/grant", checked_id(id)?), grant).await
    }

    /// Says no. `id` may be a prefix.
    pub async fn refuse(&self, id: &str, refusal: &RefuseApproval) -> Result<ApprovalInfo, ClientError> {
        self.post(&format!("/v1/approvals/{}/refuse", checked_id(id)?), refusal).await
    }

    /// Says yes to several requests, each as it was shown.
    pub async fn grant_together(&self, grants: &GrantApprovals) -> Result<Granted, ClientError> {
        self.post("/v1/approvals/grant", grants).await
    }

    /// Says neither yes nor no: the agent gets the note. `id` may be a prefix.
    pub async fn answer(&self, id: &str, answer: &AnswerApproval) -> Result<ApprovalInfo, ClientError> {
        self.post(&format!("/v1/approvals/{}/answer", checked_id(id)?), answer).await
    }

    /// Takes a yes back. `id` may be a prefix.
    pub async fn revoke(&self, id: &str, revocation: &RevokeApproval) -> Result<ApprovalInfo, ClientError> {
        self.post(&format!("/v1/approvals/{}/revoke", checked_id(id)?), revocation).await
    }

    /// How approvals were decided.
    pub async fn approval_stats(&self) -> Result<Stats, ClientError> {
        self.get("/v1/approvals/stats").await
    }

    /// The tools that changed since a person accepted them.
    pub async fn changed_tools(&self) -> Result<ChangedTools, ClientError> {
        self.get("/v1/tools/changed").await
    }

    /// Accepts all of them.
    pub async fn accept_tools(&self, accept: &AcceptTools) -> Result<AcceptedTools, ClientError> {
        self.post("/v1/tools/accept-all", accept).await
    }

    /// Accepts a changed tool.
    pub async fn accept_tool(&self, accept: &AcceptTool) -> Result<AcceptedTool, ClientError> {
        self.post("/v1/tools/accept", accept).await
    }

    /// Makes a link to the console.
    pub async fn console_link(&self, make: &MakeLink) -> Result<MadeLink, ClientError> {
        self.post("/v1/console/links", make).await
    }

    /// Reads the bundle again.
    pub async fn reload(&self) -> Result<Reloaded, ClientError> {
        self.post("/v1/bundles/reload", &Empty {}).await
    }

    /// Takes a share of a run for as long as the response lives.
    async fn attach(&self, run: RunId) -> Result<(Incoming, Connection), ClientError> {
        let path = format!("/v1/runs/{run}/attach");
        let sent = self.send(Method::GET, &path, Vec::new());
        let (response, connection) = within(&path, Duration::ZERO, sent).await?;
        Ok((response.into_body(), connection))
    }

    async fn get<A: DeserializeOwned>(&self, path: &str) -> Result<A, ClientError> {
        self.get_within(path, Duration::ZERO).await
    }

    async fn get_within<A: DeserializeOwned>(&self, path: &str, wait: Duration) -> Result<A, ClientError> {
        let (_, answer) = self.exchange(Method::GET, path, Vec::new(), wait).await?;
        read(path, &answer)
    }

    async fn post<R, A>(&self, path: &str, request: &R) -> Result<A, ClientError>
    where
        R: Serialize,
        A: DeserializeOwned,
    {
        self.post_within(path, request, Duration::ZERO).await
    }

    async fn post_within<R, A>(&self, path: &str, request: &R, wait: Duration) -> Result<A, ClientError>
    where
        R: Serialize,
        A: DeserializeOwned,
    {
        let body = serde_json::to_vec(request)
            .map_err(|error| ClientError::Answer { request: path.to_owned(), why: error.to_string() })?;
        if body.len() > REQUEST_BYTES_MAX {
            return Err(ClientError::TooLarge(body.len()));
        }
        let (_, answer) = self.exchange(Method::POST, path, body, wait).await?;
        read(path, &answer)
    }

    /// One request and its whole answer.
    async fn exchange(
        &self,
        method: Method,
        path: &str,
        body: Vec<u8>,
        wait: Duration,
    ) -> Result<(HeaderMap, Bytes), ClientError> {
        let exchange = async {
            let (response, connection) = self.send(method, path, body).await?;
            let (head, body) = response.into_parts();
            let body = self.pool.finish(body, connection, ANSWER_BYTES_MAX).await?;
            Ok((head.headers, body))
        };
        within(path, wait, exchange).await
    }

    /// Sends a request; a refusal is read to its end and becomes an error.
    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Vec<u8>,
    ) -> Result<(Response<Incoming>, Connection), ClientError> {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, "localhost")
            .header(AUTHORIZATION, self.token()?)
            .header(CONTENT_TYPE, "application/json")
            .body(Body::new(Bytes::from(body)))
            .map_err(|error| ClientError::Answer { request: path.to_owned(), why: error.to_string() })?;
        let (response, connection) = self.pool.send(request).await?;
        if response.status().is_success() {
            return Ok((response, connection));
        }
        let status = response.status();
        if status == StatusCode::UNAUTHORIZED {
            // The folder may have been made again; the next request reads the token again.
            *self.token.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
        let body = self.pool.finish(response.into_body(), connection, ANSWER_BYTES_MAX).await?;
        Err(unknown_token(refused(status, &body), &self.home.token(self.credential)))
    }

    fn token(&self) -> Result<HeaderValue, ClientError> {
        let mut cached = self.token.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(token) = &*cached {
            return Ok(token.clone());
        }
        let path = self.home.token(self.credential);
        let elsewhere = match self.credential {
            CredentialKind::Agent => String::new(),
            CredentialKind::Approver => {
                format!(
                    "; where the approver's token is kept elsewhere, {APPROVER_TOKEN_VARIABLE} names its file"
                )
            }
        };
        let failed =
            |why: String| ClientError::Credential { path: path.clone(), why: format!("{why}{elsewhere}") };
        let text = fs::read_to_string(&path).map_err(|error| failed(error.to_string()))?;
        let token = text.trim();
        if token.is_empty() || token.len() > TOKEN_BYTES_MAX {
            return Err(failed(format!("it must hold one line of 1 to {TOKEN_BYTES_MAX} bytes")));
        }
        let mut header = HeaderValue::from_str(&format!("Bearer {token}"))
            .map_err(|_| failed("it holds characters that a token cannot have".to_owned()))?;
        header.set_sensitive(true);
        *cached = Some(header.clone());
        Ok(header)
    }
}

async fn next_frame(body: &mut Incoming) -> Result<Option<Bytes>, ClientError> {
    loop {
        match body.frame().await {
            None => return Ok(None),
            Some(Err(error)) => return Err(ClientError::Lost(error.to_string())),
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
        }
    }
}

async fn within<A>(
    request: &str,
    wait: Duration,
    work: impl Future<Output = Result<A, ClientError>>,
) -> Result<A, ClientError> {
    let limit = wait.saturating_add(Duration::from_secs(ANSWER_S_MAX));
    tokio::time::timeout(limit, work).await.unwrap_or_else(|_| {
        Err(ClientError::Timeout { request: request.to_owned(), seconds: limit.as_secs() })
    })
}

fn read<A: DeserializeOwned>(path: &str, answer: &[u8]) -> Result<A, ClientError> {
    serde_json::from_slice(answer)
        .map_err(|error| ClientError::Answer { request: path.to_owned(), why: error.to_string() })
}

/// Says where the token stands that the daemon does not know, and how they may come together again.
fn unknown_token(error: ClientError, file: &Path) -> ClientError {
    match error {
        ClientError::Refused { status: 401, code, message } => ClientError::Refused {
            status: 401,
            code,
            message: format!(
                "{message}: `{}` holds another than when the daemon started; put the old one back, or end the daemon, and \
                 the next one reads the file",
                file.display()
            ),
        },
        error => error,
    }
}

fn refused(status: StatusCode, body: &[u8]) -> ClientError {
    match serde_json::from_slice::<ErrorBody>(body) {
        Ok(ErrorBody { error }) => {
            ClientError::Refused { status: status.as_u16(), code: error.code, message: error.message }
        }
        Err(_) => ClientError::Refused {
            status: status.as_u16(),
            code: String::new(),
            message: format!("the daemon answered {status} without saying why"),
        },
    }
}

/// Keeps everything but hex digits out of paths.
fn checked_id(id: &str) -> Result<&str, ClientError> {
    let hex = id.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if hex && (ID_PREFIX_MIN..=32).contains(&id.len()) {
        Ok(id)
    } else {
        Err(ClientError::Id(id.chars().take(80).collect()))
    }
}
