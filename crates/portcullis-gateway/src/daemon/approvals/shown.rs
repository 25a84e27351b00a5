//! What a person is shown of a request, and the digest of it.

use std::sync::OnceLock;

use portcullis_core::event::{About, Event, EventBody, PayloadRef, Proposed, VerdictRecord};
use portcullis_core::grant::held_for;
use portcullis_core::id::{ApprovalId, Digest, DigestBuilder, canonical_json};
use portcullis_core::label::LabelSet;
use portcullis_core::state::Approval;
use portcullis_core::time::Timestamp;
use portcullis_ledger::{ApprovalRow, ApprovalState, Head, LedgerError, Reader, clock};
use portcullis_session::engine::{Engine, Proposal};
use serde_json::{Value, json};

use super::{Failure, Shared, find, queries, read};
use crate::api;
use crate::daemon::auth::Caller;
use crate::daemon::queries::may_see;

/// Longest texts of a call that a listing shows, in bytes; all of them are shown one by one.
const LISTED_BYTES_MAX: u64 = 4_096;
/// Events after the proposal among which verdict and request stand.
const REQUEST_EVENTS_MAX: usize = 16;
/// Events before the proposal that are looked through for the calls that came before.
const BEFORE_EVENTS: usize = 200;
/// Events before the proposal among which the last thing that the user said is looked for.
const SAID_WITHIN: u64 = 100_000;
/// Kinds of events.
const INPUT: &str = "input";
const PROPOSED: &str = "proposed";
/// Calls that are shown as what came before.
const BEFORE_CALLS: usize = 5;
/// The most that is shown of a text that came before, in characters.
const BEFORE_CHARS: usize = 1_000;

/// How much of a call is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Detail {
    /// All of it, checked against the links of the run.
    Whole,
    /// No long texts.
    Listed,
}

fn phase(state: ApprovalState, lapsed: bool) -> api::ApprovalPhase {
    match state {
        ApprovalState::Pending if lapsed => api::ApprovalPhase::Expired,
        ApprovalState::Pending => api::ApprovalPhase::Pending,
        ApprovalState::Granted => api::ApprovalPhase::Granted,
        ApprovalState::Refused => api::ApprovalPhase::Refused,
        ApprovalState::Answered => api::ApprovalPhase::Answered,
        ApprovalState::Revoked => api::ApprovalPhase::Revoked,
        ApprovalState::Expired => api::ApprovalPhase::Expired,
        ApprovalState::Claimed => api::ApprovalPhase::Claimed,
    }
}

/// What a live run says of a request.
#[derive(Default)]
struct Live {
    labels: LabelSet,
    policy: Option<String>,
    expires_at: Option<Timestamp>,
    lapsed: bool,
    wanted: Option<api::Wanted>,
    patterns: bool,
}

/// Everything that a person needs to decide. The labels are those that a grant given now would cover.
pub(super) async fn info(
    shared: &Shared,
    row: ApprovalRow,
    detail: Detail,
) -> Result<api::ApprovalInfo, Failure> {
    let head = match shared.gate.look_at(row.run).filter(|_| detail == Detail::Whole) {
        Some(run) => Some(run.head().await),
        None => None,
    };
    let standing = Standing::read(shared, &row, detail, head).await?;
    Ok(standing.info(shared, row).await)
}

/// What is stored of a request. It stays the same whatever is answered.
pub(super) struct Standing {
    request: Request,
    detail: Detail,
    /// What its call would touch, once that was read.
    touches: OnceLock<Option<Vec<String>>>,
}

impl Standing {
    /// All of a request that is granted by the digest of what was shown, with its row. The links of the run were checked
    /// when that was shown: what was changed since has another digest.
    pub(super) async fn as_shown(
        shared: &Shared,
        caller: &Caller,
        approval: &str,
    ) -> Result<(ApprovalRow, Self), Failure> {
        let detail = Detail::Whole;
        let found = match approval.parse::<ApprovalId>() {
            // Both at once: each look at the store waits for a thread.
            Ok(id) => {
                read(shared, move |reader| {
                    let Some(row) = reader.approval(id)? else { return Ok(None) };
                    let request = Request::read(reader, &row, detail)?;
                    Ok(Some((row, Self::of(request, detail))))
                })
                .await?
            }
            Err(_) => None,
        };
        match found {
            Some((row, standing)) if may_see(caller, &row.principal) => Ok((row, standing)),
            _ => {
                let row = find(shared, caller, approval).await?;
                let standing = Self::read(shared, &row, detail, None).await?;
                Ok((row, standing))
            }
        }
    }

    /// Reads it; with `links`, the whole run is checked against the end that its writer knows.
    async fn read(
        shared: &Shared,
        row: &ApprovalRow,
        detail: Detail,
        links: Option<Head>,
    ) -> Result<Self, Failure> {
        let row = row.clone();
        let request = read(shared, move |reader| {
            if let Some(head) = links {
                reader.verify_run(row.run)?;
                let last = reader.events(row.run, head.count.saturating_sub(1), 1)?;
                if last.first().is_none_or(|last| last.link != head.link) {
                    return Err(disagrees(&row));
                }
            }
            Request::read(reader, &row, detail)
        });
        Ok(Self::of(request.await?, detail))
    }

    fn of(request: Request, detail: Detail) -> Self {
        Self { request, detail, touches: OnceLock::new() }
    }

    /// The request as it stands now.
    pub(super) async fn info(&self, shared: &Shared, row: ApprovalRow) -> api::ApprovalInfo {
        let Self { request, detail, touches } = self;
        let mut live = Live::default();
        let run = shared.gate.look_at(row.run);
        let run_ended = run.is_none() && row.state == ApprovalState::Expired;
        if let Some(run) = run {
            let whole = *detail == Detail::Whole;
            let read = |engine: &Engine| engine.touches(request.proposal().filter(|_| whole));
            let of_engine = |engine: &Engine| {
                touches.get_or_init(|| read(engine));
                of_live(engine, &row)
            };
            live = run.with_engine(of_engine).await;
        }
        let findings = &request.verdict.findings;
        let mut info = api::ApprovalInfo {
            approval: row.approval,
            state: phase(row.state, live.lapsed),
            run: row.run,
            action: row.action,
            principal: row.principal,
            policy: live.policy.unwrap_or(row.policy),
            effects: held_for(findings),
            instead: findings.iter().filter_map(|finding| finding.instead.clone()).collect(),
            touches: touches.get().cloned().flatten(),
            before: request.before.clone(),
            earlier: request.earlier,
            wanted: live.wanted,
            patterns: live.patterns,
            tool: request.tool.clone().unwrap_or_default(),
            reply: request.reply.clone(),
            server: request.server.clone(),
            arguments: request.arguments.clone(),
            continuation: request.continuation.clone(),
            directory: request.directory.clone(),
            planned: request.planned.clone(),
            rule: request.verdict.rule.clone(),
            reason: request.verdict.reason.clone(),
            digest: row.digest,
            labels: live.labels,
            requested_at: row.requested,
            expires_at: live.expires_at,
            run_ended,
            decided_at: row.decided,
            decided_by: row.decided_by,
            note: row.note,
            scope: row.scope,
            cut: request.cut,
            shown: None,
        };
        info.shown = (*detail == Detail::Whole).then(|| shown(&info));
        info
    }
}

fn of_live(engine: &Engine, row: &ApprovalRow) -> Live {
    let (state, bundle) = (engine.state(), engine.bundle());
    let approval = state.approval(row.approval);
    let ttl_micros = u64::from(bundle.approvals.request_ttl_s) * 1_000_000;
    let now = clock::now();
    let lapses_at = state.lapses_at(row.approval, now, ttl_micros);
    Live {
        labels: state.labels().clone(),
        policy: Some(state.policy().to_owned()),
        expires_at: lapses_at.filter(|_| row.state == ApprovalState::Pending),
        lapsed: approval.is_some_and(|approval| engine.has_lapsed(approval, now)),
        wanted: approval.map(|approval| wanted(engine, approval)),
        patterns: approval.is_some_and(|approval| approval.patterns),
    }
}

/// What the bundle requires of a decision, and how far it has come.
fn wanted(engine: &Engine, approval: &Approval) -> api::Wanted {
    let requirement = engine.requirement_for(approval);
    let escalation = requirement.escalation.as_ref();
    let at = |(after, _): &(u32, _)| {
        let micros = i64::from(*after).saturating_mul(1_000_000);
        Timestamp::from_micros(approval.requested_at.as_micros().saturating_add(micros))
    };
    let agreed = approval.endorsed.iter().filter(|one| one.labels == *engine.state().labels());
    api::Wanted {
        roles: requirement.roles.iter().cloned().collect(),
        quorum: requirement.quorum,
        agreed: agreed.map(|one| one.by.clone()).collect(),
        note: requirement.require_note,
        four_eyes: requirement.four_eyes,
        escalates_at: escalation.map(at),
        escalates_to: escalation.map(|(_, to)| to.iter().cloned().collect()).unwrap_or_default(),
    }
}

/// The digest of what a person is shown of a request, all that a grant rests on.
fn shown(info: &api::ApprovalInfo) -> Digest {
    let all = json!({
        "approval": info.approval, "run": info.run, "action": info.action, "principal": info.principal,
        "policy": info.policy, "tool": info.tool, "server": info.server, "arguments": info.arguments,
        "continuation": info.continuation, "directory": info.directory, "planned": info.planned,
        "rule": info.rule, "reason": info.reason, "instead": info.instead, "touches": info.touches,
        "before": info.before, "earlier": info.earlier, "effects": info.effects, "digest": info.digest, "labels": info.labels,
        "reply": info.reply,
    });
    DigestBuilder::new("portcullis/shown/v4").part(canonical_json(&all).as_bytes()).finish()
}

fn disagrees(row: &ApprovalRow) -> LedgerError {
    LedgerError::IndexDisagrees { approval: row.approval, run: row.run }
}

/// What the run's events say of a request.
struct Request {
    /// The tool, where it is a call.
    tool: Option<String>,
    server: Option<String>,
    directory: Option<String>,
    verdict: VerdictRecord,
    /// The words, where it is a reply.
    reply: Option<String>,
    arguments: Option<Value>,
    continuation: Option<Value>,
    planned: Option<String>,
    /// What happened before.
    before: Vec<api::Before>,
    /// More happened before than that.
    earlier: bool,
    /// Long texts were left out.
    cut: bool,
}

impl Request {
    fn read(reader: &dyn Reader, row: &ApprovalRow, detail: Detail) -> Result<Self, LedgerError> {
        let seq = row.proposed.ok_or_else(|| disagrees(row))?;
        let (mut given, mut verdict, mut asked) = (None, None, false);
        let about = row.action.map_or(About::Text(seq), About::Action);
        for stored in reader.events(row.run, seq.saturating_sub(1), REQUEST_EVENTS_MAX)? {
            let mut line = stored.line;
            queries::join(reader, row.run, &mut line)?;
            let event = Event::from_line(&line).map_err(|_| disagrees(row))?;
            match &event.body {
                EventBody::Proposed(proposed) if About::Action(proposed.action) == about => {
                    given = Some((Some(proposed.clone()), event.payloads));
                }
                EventBody::Output {} if About::Text(event.seq) == about => {
                    given = Some((None, event.payloads));
                }
                EventBody::Verdict(record) if record.action == row.action => verdict = Some(record.clone()),
                EventBody::ApprovalRequested { approval, about: asked_about, digest, .. }
                    if *approval == row.approval =>
                {
                    asked = *asked_about == about && *digest == row.digest;
                    break;
                }
                _ => {}
            }
        }
        let (Some((proposed, payloads)), Some(verdict), true) = (given, verdict, asked) else {
            return Err(disagrees(row));
        };
        let cut =
            detail == Detail::Listed && payloads.values().any(|payload| payload.bytes > LISTED_BYTES_MAX);
        let text = |name: &str| -> Result<Option<String>, LedgerError> {
            let payload = payloads.get(name).filter(|payload| !cut || payload.bytes <= LISTED_BYTES_MAX);
            let Some(payload) = payload else { return Ok(None) };
            let stored = reader.payload(row.run, payload.commitment)?;
            Ok(stored.map(|stored| String::from_utf8_lossy(stored.bytes()).into_owned()))
        };
        let value = |name| -> Result<Option<Value>, LedgerError> {
            Ok(text(name)?.map(|text| serde_json::from_str(&text).unwrap_or(Value::String(text))))
        };
        let (before, earlier) = match detail {
            Detail::Whole => before(reader, row, seq)?,
            Detail::Listed => (Vec::new(), false),
        };
        let reply = if proposed.is_none() { text("text")? } else { None };
        let (tool, server, directory) = proposed.map_or((None, None, None), |proposed| {
            let Proposed { tool, server, directory, .. } = proposed;
            (tool, server, directory)
        });
        Ok(Self {
            reply,
            tool,
            server,
            directory,
            before,
            earlier,
            arguments: value("arguments")?,
            continuation: value("continuation")?,
            planned: text("planned")?,
            verdict,
            cut,
        })
    }

    /// The call as it was proposed, to be read again; none where its arguments are gone.
    fn proposal(&self) -> Option<Proposal> {
        Some(Proposal {
            tool: self.tool.clone(),
            server: self.server.clone(),
            arguments: self.arguments.clone()?,
            planned: self.planned.clone(),
            continuation: self.continuation.clone(),
            directory: self.directory.clone(),
            ..Proposal::default()
        })
    }
}

/// What happened in the run before a proposal: the last thing that the user said, and the latest calls; and whether
/// there was more.
fn before(
    reader: &dyn Reader,
    row: &ApprovalRow,
    proposed: u64,
) -> Result<(Vec<api::Before>, bool), LedgerError> {
    let first = proposed.saturating_sub(1).saturating_sub(BEFORE_EVENTS as u64);
    let (mut all, mut earlier) = (Vec::new(), first > 0);
    let events = reader.events(row.run, first, BEFORE_EVENTS)?;
    // From the latest on, so that nothing is read that is not shown. Most events are of another kind.
    let calls = events.iter().rev().filter(|stored| stored.seq < proposed && stored.kind == PROPOSED);
    for stored in calls {
        let event = Event::from_line(&stored.line).map_err(|_| disagrees(row))?;
        let EventBody::Proposed(call) = &event.body else { continue };
        if Some(call.action) == row.action {
            continue;
        }
        if all.len() >= BEFORE_CALLS {
            earlier = true;
            break;
        }
        let tool = call.tool.clone().unwrap_or_else(|| "thought".to_owned());
        let text = text_of(reader, row, event.payloads.get("arguments"))?;
        all.push(entry(event.seq, tool, &text));
    }
    // However long ago: what the user forbade must not be out of sight after many calls.
    if let Some(stored) = reader.last_of_kind(row.run, INPUT, proposed, SAID_WITHIN)? {
        let event = Event::from_line(&stored.line).map_err(|_| disagrees(row))?;
        if let EventBody::Input { label } = &event.body {
            let text = text_of(reader, row, event.payloads.get("text"))?;
            all.push(entry(event.seq, label.to_string(), &text));
        }
    }
    all.sort_by_key(|before| before.seq);
    Ok((all, earlier))
}

fn text_of(
    reader: &dyn Reader,
    row: &ApprovalRow,
    payload: Option<&PayloadRef>,
) -> Result<String, LedgerError> {
    let Some(payload) = payload else { return Ok(String::new()) };
    let stored = reader.payload(row.run, payload.commitment)?;
    Ok(stored
        .map_or_else(|| "erased".to_owned(), |stored| String::from_utf8_lossy(stored.bytes()).into_owned()))
}

fn entry(seq: u64, who: String, text: &str) -> api::Before {
    let shown: String = text.chars().take(BEFORE_CHARS).collect();
    let cut = shown.len() < text.len();
    api::Before { seq, who, text: shown, cut }
}
