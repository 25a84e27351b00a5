//! One run: its page, and taking hold of it.

use std::sync::{Arc, PoisonError};

use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Redirect, Response};
use portcullis_console::Role;
use portcullis_console::frame::Place;
use portcullis_console::marks::Standing;
use portcullis_console::run::{self as pages, Act, Filter, RunPage, WorkItem};
use portcullis_core::bundle::Bundle;
use portcullis_core::escalation::Signal;
use portcullis_core::event::{Control, Event, EventBody};
use portcullis_core::id::RunId;
use portcullis_core::state::progress::Progress;
use portcullis_core::verdict::Verdict;
use portcullis_core::work::ItemState;
use portcullis_ledger::{ApprovalFilter, ApprovalState, LedgerError, Reader, RunSummary, clock};
use serde::Deserialize;

use super::super::auth::Caller;
use super::super::error::Failure;
use super::super::queries::{complete, find_run, read};
use super::super::routes::settle;
use super::index::Index;
use super::traced::Traced;
use super::visitor::{Form, Visitor};
use super::{Seen, page, rows, runs, window};

/// Requests of a run that its page names.
const WAITING_MAX: usize = 5;
/// Acts of people that it lists.
const ACTS_SHOWN: usize = 8;
/// Longest text that is looked for, in characters.
const FIND_CHARS: usize = 200;

#[derive(Debug, Default, Deserialize)]
pub(super) struct Which {
    at: Option<u64>,
    event: Option<u64>,
    #[serde(default)]
    find: String,
    #[serde(default)]
    only: String,
    #[serde(default)]
    open: String,
}

impl Which {
    fn filter(&self) -> Filter {
        Filter {
            find: self.find.trim().chars().take(FIND_CHARS).collect(),
            only: Verdict::from_name(&self.only),
            people: self.only == "people",
        }
    }
}

pub(super) async fn page(
    State(seen): State<Seen>,
    visitor: Visitor,
    Path(run): Path<String>,
    Query(which): Query<Which>,
) -> Response {
    match shown(&seen, &visitor, &run, which, None).await {
        Ok(response) => response,
        Err(failure) => page::failed(&seen, &visitor, failure).await,
    }
}

/// What a live run says of itself.
#[derive(Debug, Default)]
struct Live {
    bundle: Option<Arc<Bundle>>,
    labels: Vec<String>,
    work: Vec<WorkItem>,
}

async fn shown(
    seen: &Seen,
    visitor: &Visitor,
    run: &str,
    which: Which,
    told: Option<(Standing, String)>,
) -> Result<Response, Failure> {
    let id = find_run(&seen.shared, &Caller(visitor.looking()), run).await?;
    let live = live(seen, id).await;
    let bundle =
        live.bundle.clone().or_else(|| seen.shared.gate.bundles().get(None).ok().map(|(_, bundle)| bundle));
    let (index, filter) = (seen.console.indexes.of(id), which.filter());
    let looked = read(&seen.shared, move |reader| {
        let mut index = index.lock().unwrap_or_else(PoisonError::into_inner);
        Looked::at(reader, id, &mut index, bundle.as_ref(), &which)
    });
    let mut looked = looked.await?;
    if let Some(traced) = looked.traced.take() {
        looked.trace(seen, id, traced).await;
    }
    if let Some(bundle) = looked.unwatched.clone() {
        catch_up(seen, id, bundle);
    }
    let title = format!("Run {}", id.to_string().get(..8).unwrap_or_default());
    let body = pages::page(&looked.page(live, filter, told, visitor));
    Ok(page::framed(seen, visitor, Place::Runs, &title, body).await)
}

/// Reads on for the chart, which the next look at the run has.
fn catch_up(seen: &Seen, id: RunId, bundle: Arc<Bundle>) {
    let (index, ledger) = (seen.console.indexes.of(id), Arc::clone(seen.shared.gate.ledger()));
    tokio::task::spawn_blocking(move || {
        // A part at a time, so that a page of the run does not wait for all of it.
        loop {
            let mut index = index.lock().unwrap_or_else(PoisonError::into_inner);
            let before = index.is_watched();
            let seen = ledger.read(|reader| index.watch(reader, id, &bundle));
            if before || seen.is_err() {
                return;
            }
        }
    });
}

async fn live(seen: &Seen, id: RunId) -> Live {
    let Some(run) = seen.shared.gate.look_at(id) else { return Live::default() };
    run.with_engine(|engine| {
        let state = engine.state();
        let item = |item: &portcullis_core::work::WorkItem| WorkItem {
            title: format!("{} {}", item.id, item.title),
            state: item.state.as_str().replace('_', " "),
            verified: item.state == ItemState::Verified,
        };
        Live {
            bundle: Some(Arc::clone(engine.bundle())),
            labels: state.labels().iter().map(ToString::to_string).collect(),
            work: state.works().items().filter(|item| !item.buried).map(item).collect(),
        }
    })
    .await
}

/// What was read of a run for its page.
struct Looked {
    summary: RunSummary,
    progress: Progress,
    asked: Option<String>,
    parent: Option<String>,
    erased: u64,
    waiting: Vec<String>,
    density: portcullis_console::chart::Density,
    counts: Vec<(Verdict, u64)>,
    parts: Vec<pages::Part>,
    earlier: Option<u64>,
    later: Option<u64>,
    chosen: Option<pages::Chosen>,
    traced: Option<Traced>,
    acts: Vec<Act>,
    children: Vec<String>,
    /// The bundle that judged it, where the chart is not drawn yet.
    unwatched: Option<Arc<Bundle>>,
}

impl Looked {
    fn at(
        reader: &dyn Reader,
        id: RunId,
        index: &mut Index,
        bundle: Option<&Arc<Bundle>>,
        which: &Which,
    ) -> Result<Self, LedgerError> {
        index.go_on(reader, id)?;
        let mut summary = reader.run(id)?.ok_or(LedgerError::Stopped)?;
        complete(reader, &mut summary)?;
        let progress = summary.progress.clone().unwrap_or_default();
        // Under another bundle than the one that judged it, the figures would be others.
        let own = bundle.filter(|bundle| progress.bundle == Some(bundle.digest()));
        if let Some(bundle) = own {
            index.watch(reader, id, bundle)?;
        }
        let found = window::window(index, which.at, which.open == "yes", &which.filter());
        let mut density = index.density(span(&found.parts));
        density.thresholds = own.map(|bundle| thresholds(bundle)).unwrap_or_default();
        let waiting = ApprovalFilter {
            state: Some(ApprovalState::Pending),
            run: Some(id),
            live: true,
            limit: Some(WAITING_MAX),
            ..ApprovalFilter::default()
        };
        Ok(Self {
            asked: runs::asked(reader, id)?,
            parent: parent(reader, id)?,
            erased: reader.erasures(id)?.iter().map(|erasure| erasure.payloads).sum(),
            waiting: reader.approvals(&waiting)?.iter().map(|row| row.approval.to_string()).collect(),
            counts: index.counts(),
            parts: parts(reader, id, &found.parts)?,
            earlier: found.earlier,
            later: found.later,
            chosen: which.event.map(|seq| rows::chosen(reader, id, seq)).transpose()?.flatten(),
            traced: which.event.map(|seq| Traced::of(reader, id, index, seq)).transpose()?.flatten(),
            children: index.children.iter().map(ToString::to_string).collect(),
            acts: index.acts.iter().rev().take(ACTS_SHOWN).map(act).collect(),
            unwatched: own.filter(|_| !index.is_watched()).map(Arc::clone),
            summary,
            progress,
            density,
        })
    }

    /// Adds what is known of the call that is looked at. What it would touch can be read while the run is live.
    async fn trace(&mut self, seen: &Seen, id: RunId, mut traced: Traced) {
        let predicted = match (seen.shared.gate.look_at(id), traced.proposal.take()) {
            (Some(run), Some(proposal)) => run.with_engine(|engine| engine.touches(Some(proposal))).await,
            _ => None,
        };
        if let Some(chosen) = &mut self.chosen {
            chosen.effects = traced.effects(predicted.as_deref());
            chosen.origins = traced.origins;
        }
    }

    fn page<'a>(
        self,
        live: Live,
        filter: Filter,
        told: Option<(Standing, String)>,
        visitor: &'a Visitor,
    ) -> RunPage<'a> {
        let digest = self.progress.bundle.map(|bundle| bundle.to_string()).unwrap_or_default();
        let hex = digest.rsplit(':').next().unwrap_or_default();
        RunPage {
            run: self.summary.run.to_string(),
            asked: self.asked,
            principal: self.summary.principal,
            surface: self.progress.surface,
            policy: self.progress.policy,
            bundle: hex.get(..8).unwrap_or_default().to_owned(),
            mode: self.progress.mode,
            phase: self.progress.phase,
            frozen: self.progress.frozen.is_some(),
            opened: self.summary.opened,
            steps: self.progress.steps,
            waiting: self.waiting,
            parent: self.parent,
            children: self.children,
            erased: self.erased,
            density: self.density,
            parts: self.parts,
            earlier: self.earlier,
            later: self.later,
            filter,
            counts: self.counts,
            chosen: self.chosen,
            people: self.acts,
            work: live.work,
            labels: live.labels,
            now: clock::now(),
            told,
            role: visitor.session.role,
            csrf: &visitor.session.csrf,
        }
    }
}

/// The first and the last event that is shown.
fn span(parts: &[window::Part]) -> (u64, u64) {
    let ends = |part: &window::Part| match part {
        window::Part::Step(step) => (step.first, step.last),
        window::Part::Quiet { first, last, .. } => (*first, *last),
    };
    (parts.first().map_or(0, |part| ends(part).0), parts.last().map_or(0, |part| ends(part).1))
}

/// From which drift on the bundle does what.
fn thresholds(bundle: &Bundle) -> Vec<(f64, Verdict)> {
    let rows = bundle.escalation.table.rows().iter();
    let of_drift = rows.filter_map(|row| match row.conditions.as_slice() {
        [one] if one.signal == Signal::Drift => {
            Some((one.at_least, row.level_under(bundle.scores).verdict()))
        }
        _ => None,
    });
    of_drift.filter(|(_, verdict)| *verdict > Verdict::Allow).collect()
}

fn parts(reader: &dyn Reader, run: RunId, parts: &[window::Part]) -> Result<Vec<pages::Part>, LedgerError> {
    let mut shown = Vec::with_capacity(parts.len());
    for part in parts {
        shown.push(match part {
            window::Part::Step(step) => {
                let events = rows::events(reader, run, step.first, step.last)?;
                pages::Part::Step(rows::rows(reader, run, &events)?)
            }
            window::Part::Quiet { first, last, calls } => {
                pages::Part::Quiet { first: *first, last: *last, calls: *calls }
            }
        });
    }
    Ok(shown)
}

fn parent(reader: &dyn Reader, run: RunId) -> Result<Option<String>, LedgerError> {
    let first = reader.events(run, 0, 1)?;
    let event = first.first().and_then(|stored| Event::from_line(&stored.line).ok());
    Ok(match event.map(|event| event.body) {
        Some(EventBody::RunOpened(opened)) => opened.parent.map(|parent| parent.run.to_string()),
        _ => None,
    })
}

fn act(act: &super::index::Act) -> Act {
    Act { seq: act.seq, at: act.at, who: act.who.clone(), what: act.what.clone() }
}

/// Takes hold of a run.
pub(super) async fn control(
    State(seen): State<Seen>,
    visitor: Visitor,
    Path(run): Path<String>,
    form: Form,
) -> Response {
    if let Err(refused) = visitor.at_least(Role::Approver).and_then(|()| form.of(&visitor)) {
        return refused.page(&seen, &visitor).await;
    }
    let control = match form.get("do") {
        "halt" => Control::Halt,
        "pause" => Control::Pause,
        "resume" => Control::Resume,
        _ => {
            return page::failed(&seen, &visitor, Failure::bad_request("the form does not say what to do"))
                .await;
        }
    };
    let done = async {
        let id = find_run(&seen.shared, &Caller(visitor.looking()), &run).await?;
        let live = seen.shared.gate.run(id)?;
        let (by, note) = (visitor.session.principal.id.clone(), form.said("note"));
        settle(async move { live.control(control, &by, note).await }).await?;
        Ok::<RunId, Failure>(id)
    };
    match done.await {
        Ok(id) => Redirect::to(&format!("/runs/{id}")).into_response(),
        Err(failure) => {
            let (status, (_, message)) = (failure.status(), failure.told());
            match shown(&seen, &visitor, &run, Which::default(), Some((Standing::Bad, message))).await {
                Ok(mut response) => {
                    *response.status_mut() =
                        if status.is_success() { StatusCode::BAD_REQUEST } else { status };
                    response
                }
                Err(failure) => page::failed(&seen, &visitor, failure).await,
            }
        }
    }
}
