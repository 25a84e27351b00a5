//! The inbox: what waits, one request whole, and a person's answer.

use std::sync::PoisonError;

use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Redirect, Response};
use maud::html;
use portcullis_console::approvals::{
    self as pages, Before, Decided, Habit, Inbox, Item, Offer, Outcome, Request, Tab, Together, Wanted,
};
use portcullis_console::frame::Place;
use portcullis_console::marks::Standing;
use portcullis_console::{Markup, Role};
use portcullis_core::event::{GrantScope, GrantedEffects};
use portcullis_core::time::Timestamp;
use portcullis_ledger::{ApprovalFilter, ApprovalRow, ApprovalState, clock};
use portcullis_session::engine::Says;
use serde::Deserialize;

use super::super::approvals::{READ_MAX, find, grant_each, granted, say, shown_whole};
use super::super::auth::Caller;
use super::super::error::Failure;
use super::super::queries::read;
use super::visitor::{Form, Refused, Visitor};
use super::{Seen, page, traced};
use crate::api;

/// Requests of a list of decided or lapsed ones.
const LISTED_MAX: usize = 100;
/// Requests that are looked at together.
const TOGETHER_MAX: usize = 20;

#[derive(Debug, Default, Deserialize)]
pub(super) struct Which {
    #[serde(default)]
    show: String,
    #[serde(default)]
    whole: String,
    #[serde(default)]
    like: String,
}

pub(super) async fn inbox(
    State(seen): State<Seen>,
    visitor: Visitor,
    Query(which): Query<Which>,
) -> Response {
    let tab = Tab::from_name(&which.show).unwrap_or_default();
    let made = async {
        let items = listed(&seen, tab).await?;
        // The oldest is open: it is the one to decide.
        let first = items.first().filter(|_| tab == Tab::Waiting).map(|item| item.id.clone());
        let open = match first {
            Some(id) => Some(whole(&seen, &visitor, &id).await?),
            None => None,
        };
        Ok((items, open))
    };
    match made.await {
        Ok((items, open)) => shown(&seen, &visitor, StatusCode::OK, tab, &items, open.as_ref(), None).await,
        Err(failure) => page::failed(&seen, &visitor, failure).await,
    }
}

pub(super) async fn open(
    State(seen): State<Seen>,
    visitor: Visitor,
    Path(approval): Path<String>,
    Query(which): Query<Which>,
) -> Response {
    match whole(&seen, &visitor, &approval).await {
        Ok(mut request) => {
            request.whole = which.whole == "yes";
            one(&seen, &visitor, StatusCode::OK, &request, None).await
        }
        Err(failure) => page::failed(&seen, &visitor, failure).await,
    }
}

/// The inbox with one request open.
async fn one(
    seen: &Seen,
    visitor: &Visitor,
    status: StatusCode,
    request: &Request,
    told: Option<(Standing, Markup)>,
) -> Response {
    let tab = match &request.decided {
        None => Tab::Waiting,
        Some(decided) if decided.word == "lapsed" => Tab::Lapsed,
        Some(_) => Tab::Decided,
    };
    match listed(seen, tab).await {
        Ok(items) => shown(seen, visitor, status, tab, &items, Some(request), told).await,
        Err(failure) => page::failed(seen, visitor, failure).await,
    }
}

async fn shown(
    seen: &Seen,
    visitor: &Visitor,
    status: StatusCode,
    tab: Tab,
    items: &[Item],
    open: Option<&Request>,
    told: Option<(Standing, Markup)>,
) -> Response {
    let list = match tab {
        Tab::Waiting => seen.console.waits.list(seen).await.ok(),
        _ => None,
    };
    let behind = list.as_ref().map_or(0, |list| list.approvals.len().saturating_sub(READ_MAX));
    let queued = list.and_then(|list| list.queued.clone()).map(|queued| queued_words(&queued));
    let queued = match behind {
        0 => queued,
        behind => Some(format!("{behind} more wait behind these. {}", queued.unwrap_or_default())),
    };
    let body = pages::inbox(&Inbox {
        tab,
        items,
        queued,
        open,
        told,
        habit: habit(seen, &visitor.session.principal.id).await,
        role: visitor.session.role,
        csrf: &visitor.session.csrf,
    });
    page::framed_as(status, seen, visitor, Some(Place::Approvals), "Approvals", body).await
}

fn queued_words(queued: &api::QueuedInfo) -> String {
    let most = queued
        .rule
        .as_ref()
        .map_or_else(String::new, |rule| format!(" {} of the last hour’s came from {rule}.", queued.of_rule));
    format!(
        "{} more wait for their turn: the bundle puts {} an hour before people.{most}",
        queued.waiting, queued.per_hour
    )
}

async fn habit(seen: &Seen, name: &str) -> Option<Habit> {
    let stats = seen.console.stats(seen).await?;
    let of = stats.approvers.iter().find(|one| one.approver == name)?;
    let decided = of.granted + of.refused + of.answered;
    Some(Habit { decided, granted: of.granted, median_s: of.median_s })
}

async fn listed(seen: &Seen, tab: Tab) -> Result<Vec<Item>, Failure> {
    let now = clock::now();
    if tab == Tab::Waiting {
        let list = seen.console.waits.list(seen).await?;
        return Ok(waiting_items(&list, now));
    }
    let states: &[ApprovalState] = match tab {
        Tab::Lapsed => &[ApprovalState::Expired],
        _ => &[
            ApprovalState::Granted,
            ApprovalState::Refused,
            ApprovalState::Answered,
            ApprovalState::Revoked,
            ApprovalState::Claimed,
        ],
    };
    let rows = read(&seen.shared, move |reader| {
        let mut rows = Vec::new();
        for state in states {
            let filter =
                ApprovalFilter { state: Some(*state), limit: Some(LISTED_MAX), ..ApprovalFilter::default() };
            rows.extend(reader.approvals(&filter)?);
        }
        Ok(rows)
    });
    let mut rows = rows.await?;
    rows.sort_by_key(|row| std::cmp::Reverse(row.decided.unwrap_or(row.requested)));
    rows.truncate(LISTED_MAX);
    Ok(rows.into_iter().map(|row| decided_item(row, now)).collect())
}

/// What waits, the oldest first.
pub(super) fn waiting_items(list: &api::Approvals, now: Timestamp) -> Vec<Item> {
    let mut waiting: Vec<&api::ApprovalInfo> = list.approvals.iter().collect();
    waiting.sort_by_key(|info| (info.requested_at, info.approval));
    waiting.truncate(READ_MAX);
    waiting.into_iter().map(|info| waiting_item(info, now)).collect()
}

fn waiting_item(info: &api::ApprovalInfo, now: Timestamp) -> Item {
    let rule = info.rule.clone().unwrap_or_default();
    Item {
        id: info.approval.to_string(),
        sentence: pages::sentence(
            &info.tool,
            info.tool.is_empty(),
            &rule,
            info.touches.as_deref().unwrap_or_default(),
        ),
        tool: info.tool.clone(),
        principal: info.principal.clone(),
        rule,
        age_s: now.micros_since(info.requested_at) / 1_000_000,
        became: String::new(),
    }
}

fn decided_item(row: ApprovalRow, now: Timestamp) -> Item {
    let rule = row.rule.unwrap_or_default();
    Item {
        id: row.approval.to_string(),
        sentence: pages::sentence(&row.tool, row.tool.is_empty(), &rule, &[]),
        age_s: now.micros_since(row.decided.unwrap_or(row.requested)) / 1_000_000,
        became: match row.state {
            ApprovalState::Expired => "lapsed".to_owned(),
            ApprovalState::Claimed => "granted, used".to_owned(),
            state => state.as_str().to_owned(),
        },
        tool: row.tool,
        principal: row.principal,
        rule,
    }
}

fn resources(effects: Option<&[GrantedEffects]>) -> Vec<String> {
    effects.unwrap_or_default().iter().flat_map(|granted| granted.resources.iter().cloned()).collect()
}

/// All of a request.
async fn whole(seen: &Seen, visitor: &Visitor, id: &str) -> Result<Request, Failure> {
    let row = find(&seen.shared, &Caller(visitor.looking()), id).await?;
    let (run, place) = (row.run, row.proposed.zip(row.action));
    let info = shown_whole(&seen.shared, row).await?;
    let mut request = request(info);
    if let Some((proposed, action)) = place {
        let index = seen.console.indexes.of(run);
        let before: Vec<u64> = request.before.iter().map(|before| before.seq).collect();
        let found = read(&seen.shared, move |reader| {
            let mut index = index.lock().unwrap_or_else(PoisonError::into_inner);
            index.go_on(reader, run)?;
            let seen = before.iter().map(|call| traced::seen_of(reader, run, &index, *call));
            let seen = seen.collect::<Result<Vec<_>, _>>()?;
            Ok((super::rows::findings(reader, run, proposed, action)?, seen))
        });
        let seen;
        (request.findings, seen) = found.await?;
        for (before, seen) in request.before.iter_mut().zip(seen) {
            before.seen = seen;
        }
    }
    Ok(request)
}

fn request(info: api::ApprovalInfo) -> Request {
    let rule = info.rule.clone().unwrap_or_default();
    let touches = info.touches.clone();
    let effects = touches.clone().unwrap_or_default();
    let held = resources(info.effects.as_deref());
    let decided = decided(&info);
    let wanted = info.wanted.unwrap_or_default();
    Request {
        id: info.approval.to_string(),
        sentence: pages::sentence(&info.tool, info.reply.is_some() || info.tool.is_empty(), &rule, &effects),
        run: info.run.to_string(),
        tool: info.tool,
        reply: info.reply,
        server: info.server,
        directory: info.directory,
        arguments: info.arguments,
        continuation: info.continuation,
        planned: info.planned,
        principal: info.principal,
        policy: info.policy,
        rule,
        reason: info.reason.unwrap_or_default(),
        findings: Vec::new(),
        instead: info.instead,
        offer: Offer {
            effects: info.effects.is_some().then(|| held.clone()),
            patterns: info.patterns,
            typed: pages::typed_word(&effects),
        },
        touches,
        held_for: held,
        before: info
            .before
            .into_iter()
            .map(|before| Before {
                seq: before.seq,
                who: before.who,
                text: before.text,
                cut: before.cut,
                seen: None,
            })
            .collect(),
        earlier: info.earlier,
        labels: info.labels.iter().map(ToString::to_string).collect(),
        requested_at: info.requested_at,
        expires_at: info.expires_at,
        now: clock::now(),
        wanted: Wanted {
            roles: wanted.roles,
            quorum: wanted.quorum,
            agreed: wanted.agreed,
            note: wanted.note,
            four_eyes: wanted.four_eyes,
        },
        decided,
        display: info.shown.map(|shown| shown.to_string()).unwrap_or_default(),
        seen: None,
        whole: false,
    }
}

fn decided(info: &api::ApprovalInfo) -> Option<Decided> {
    let word = match info.state {
        api::ApprovalPhase::Pending => return None,
        api::ApprovalPhase::Granted => "granted",
        api::ApprovalPhase::Refused => "refused",
        api::ApprovalPhase::Answered => "answered",
        api::ApprovalPhase::Revoked => "revoked",
        api::ApprovalPhase::Expired => "lapsed",
        api::ApprovalPhase::Claimed => "granted, and used",
    };
    Some(Decided {
        word: word.to_owned(),
        at: info.decided_at,
        by: info.decided_by.clone().unwrap_or_default(),
        note: info.note.clone(),
        scope: info.scope.as_ref().map(scope_words),
        revocable: info.state == api::ApprovalPhase::Granted,
    })
}

fn scope_words(scope: &GrantScope) -> String {
    match scope {
        GrantScope::Once => "this call, once".to_owned(),
        GrantScope::Arguments => "this call with these arguments".to_owned(),
        GrantScope::Tool(tool) => format!("every call of {tool}"),
        GrantScope::Effects(granted) | GrantScope::Pattern(granted) => resources(Some(granted)).join(", "),
    }
}

/// What a form says.
enum Answer {
    Grant(Box<api::GrantApproval>),
    Say(Says),
}

pub(super) async fn decide(
    State(seen): State<Seen>,
    visitor: Visitor,
    Path(approval): Path<String>,
    form: Form,
) -> Response {
    if let Err(refused) = checked(&visitor, &form) {
        return refused.page(&seen, &visitor).await;
    }
    let done = async {
        match answer_of(&form)? {
            Answer::Say(says) => {
                say(&seen.shared, visitor.identity(), &approval, says, form.said("note")).await.map(drop)
            }
            Answer::Grant(grant) => {
                let now = whole(&seen, &visitor, &approval).await?;
                check_typed(&now, &form)?;
                granted(&seen.shared, &visitor.identity(), &approval, *grant).await.map(drop)
            }
        }
    };
    let done = done.await;
    seen.console.waits.forget();
    match done {
        Ok(()) => Redirect::to(&format!("/approvals/{}", path_of(&approval))).into_response(),
        Err(failure) => again(&seen, &visitor, &approval, &form, failure).await,
    }
}

fn checked(visitor: &Visitor, form: &Form) -> Result<(), Refused> {
    visitor.at_least(Role::Approver)?;
    form.of(visitor)
}

/// An id of ours, or nothing: it becomes part of an address.
fn path_of(id: &str) -> &str {
    if id.bytes().all(|b| b.is_ascii_hexdigit()) { id } else { "" }
}

/// The request once more, with what kept the answer from being taken.
async fn again(seen: &Seen, visitor: &Visitor, approval: &str, form: &Form, failure: Failure) -> Response {
    let status = failure.status();
    let (code, message) = failure.told();
    let mut request = match whole(seen, visitor, approval).await {
        Ok(request) => request,
        Err(failure) => return page::failed(seen, visitor, failure).await,
    };
    let changed = code == api::code::CHANGED;
    let told = match changed {
        true => {
            html! { p { b { "Not granted: this request has changed since you opened it." } } p { "What is new is marked below. Look at it again, then decide." } }
        }
        false => html! { p { b { "Not done: " } (portcullis_console::foreign::shown(&message)) } },
    };
    if changed {
        let labels = form.all("label").map(ToOwned::to_owned).collect();
        let upto = form.get("upto").parse().unwrap_or(0);
        request.seen = Some(pages::Seen { upto, labels });
    }
    one(seen, visitor, status, &request, Some((Standing::Bad, told))).await
}

fn answer_of(form: &Form) -> Result<Answer, Failure> {
    let bad = |message: &str| Failure::bad_request(message);
    Ok(match form.get("do") {
        "refuse" => Answer::Say(Says::Refuse),
        "revoke" => Answer::Say(Says::Revoke),
        "answer" if form.said("note").is_none() => return Err(bad("say what the agent is told")),
        "answer" => Answer::Say(Says::Answer),
        "grant" => Answer::Grant(Box::new(grant_of(form)?)),
        "edit" => {
            let once =
                api::GrantApproval { scope: api::Scope::Once, lasts: None, until: None, ..grant_of(form)? };
            let arguments = form.said("arguments").map(|text| serde_json::from_str(&text)).transpose();
            let arguments =
                arguments.map_err(|error| bad(&format!("the arguments are not JSON: {error}")))?;
            let text = form.said("text").map(|text| text.replace("\r\n", "\n"));
            if arguments.is_none() && text.is_none() {
                return Err(bad("the edited call is empty"));
            }
            Answer::Grant(Box::new(api::GrantApproval { arguments, text, ..once }))
        }
        _ => return Err(bad("the form does not say what to do")),
    })
}

fn grant_of(form: &Form) -> Result<api::GrantApproval, Failure> {
    let shown = form.get("shown").parse().map_err(|_| {
        Failure::new(StatusCode::PRECONDITION_REQUIRED, "not_shown", "the form does not name what was shown")
    })?;
    let scope = match form.get("scope") {
        "" | "once" => api::Scope::Once,
        "arguments" => api::Scope::Arguments,
        "tool" => api::Scope::Tool,
        "effects" => api::Scope::Effects,
        "pattern" => api::Scope::Pattern,
        _ => return Err(Failure::bad_request("there is no such scope")),
    };
    let (lasts, until) = match form.get("lasts") {
        "" | "usual" => (None, None),
        "hour" => (None, Some(after_hours(1))),
        "day" => (None, Some(after_hours(8))),
        "task" => (Some(api::Lasting::Task), None),
        "session" => (Some(api::Lasting::Session), None),
        _ => return Err(Failure::bad_request("a grant does not last that long")),
    };
    let patterns = match scope {
        api::Scope::Pattern => form.said("pattern").into_iter().collect(),
        _ => Vec::new(),
    };
    Ok(api::GrantApproval {
        scope,
        lasts,
        until,
        patterns,
        shown: Some(shown),
        note: form.said("note"),
        ..api::GrantApproval::default()
    })
}

/// So many hours from now. The bundle may end a grant earlier.
fn after_hours(hours: i64) -> Timestamp {
    Timestamp::from_micros(clock::now().as_micros() + hours * 3_600_000_000)
}

/// Refuses a grant of what cannot be taken back unless its name was typed.
fn check_typed(request: &Request, form: &Form) -> Result<(), Failure> {
    match &request.offer.typed {
        Some(word) if form.get("typed").trim() != word => Err(Failure::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "not_typed",
            format!("type `{word}` to grant what cannot be taken back"),
        )),
        _ => Ok(()),
    }
}

/// Requests that are alike, each whole.
async fn alike(seen: &Seen, visitor: &Visitor, like: &str) -> Result<Vec<Request>, Failure> {
    let items = listed(seen, Tab::Waiting).await?;
    let first = items.iter().find(|item| item.id == like);
    let first = first.ok_or_else(|| Failure::not_found("this request no longer waits"))?;
    let mut requests = Vec::new();
    for item in items.iter().filter(|item| pages::are_alike(first, item)).take(TOGETHER_MAX) {
        requests.push(whole(seen, visitor, &item.id).await?);
    }
    // The same tool and rule, for the same kind of effect; a long one is read on a page of its own.
    let verbs = |request: &Request| -> Vec<String> {
        let effects = request.touches.iter().flatten();
        effects.filter_map(|effect| Some(effect.split_once(' ')?.0.to_owned())).collect()
    };
    let of_first = requests.iter().find(|request| request.id == like).map(verbs).unwrap_or_default();
    requests.retain(|request| verbs(request) == of_first && !request.is_long() && request.decided.is_none());
    Ok(requests)
}

pub(super) async fn together(
    State(seen): State<Seen>,
    visitor: Visitor,
    Query(which): Query<Which>,
) -> Response {
    if let Err(refused) = visitor.at_least(Role::Approver) {
        return refused.page(&seen, &visitor).await;
    }
    match alike(&seen, &visitor, &which.like).await {
        Ok(requests) => {
            let body = pages::together(&Together { requests: &requests, csrf: &visitor.session.csrf });
            page::framed(&seen, &visitor, Place::Approvals, "Approvals together", body).await
        }
        Err(failure) => page::failed(&seen, &visitor, failure).await,
    }
}

pub(super) async fn grant_together(State(seen): State<Seen>, visitor: Visitor, form: Form) -> Response {
    if let Err(refused) = checked(&visitor, &form) {
        return refused.page(&seen, &visitor).await;
    }
    match granted_together(&seen, &visitor, &form).await {
        Ok(outcomes) => {
            seen.console.waits.forget();
            let body = pages::outcome(&outcomes);
            page::framed(&seen, &visitor, Place::Approvals, "Approvals together", body).await
        }
        Err(failure) => page::failed(&seen, &visitor, failure).await,
    }
}

async fn granted_together(seen: &Seen, visitor: &Visitor, form: &Form) -> Result<Vec<Outcome>, Failure> {
    let mut shown = Vec::new();
    for pair in form.all("one") {
        let (approval, digest) = pair.split_once(':').unwrap_or((pair, ""));
        let digest =
            digest.parse().map_err(|_| Failure::bad_request("a request lacks what was shown of it"))?;
        check_typed(&whole(seen, visitor, approval).await?, form)?;
        shown.push(api::ShownApproval { approval: approval.to_owned(), shown: digest });
    }
    let grants = api::GrantApprovals { approvals: shown, note: form.said("note") };
    let done = grant_each(&seen.shared, &visitor.identity(), grants).await?;
    let granted = done.granted.into_iter().map(|id| Outcome { id: id.to_string(), skipped: None });
    let skipped =
        done.skipped.into_iter().map(|one| Outcome { id: one.approval, skipped: Some(one.message) });
    Ok(granted.chain(skipped).collect())
}
