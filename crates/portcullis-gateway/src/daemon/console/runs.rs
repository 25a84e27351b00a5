//! The list of runs.

use axum::extract::{Query, State};
use axum::response::Response;
use portcullis_console::frame::Place;
use portcullis_console::runs::{self as pages, Line, List, Wanted};
use portcullis_core::event::Event;
use portcullis_core::id::RunId;
use portcullis_core::state::progress::RunPhase;
use portcullis_ledger::{LedgerError, Reader, RunFilter, RunSummary, clock};
use serde::Deserialize;

use super::super::error::Failure;
use super::super::queries::{complete, read};
use super::visitor::Visitor;
use super::{Seen, page};

/// Runs of a page.
const PAGE: usize = 50;
/// Runs that are looked through for those of a page: beyond them the next page goes on.
const LOOKED_AT: usize = 500;
/// The same where words are looked for, since the first texts of each have to be read.
const READ_THROUGH: usize = 200;
/// Events among which the first thing that was said is looked for.
const SAID_WITHIN: usize = 8;
/// The most that is read of it, in characters.
const SAID_CHARS: usize = 400;

#[derive(Debug, Default, Deserialize)]
pub(super) struct Which {
    #[serde(default)]
    find: String,
    #[serde(default)]
    state: String,
    #[serde(default)]
    before: String,
}

pub(super) async fn list(State(seen): State<Seen>, visitor: Visitor, Query(which): Query<Which>) -> Response {
    let wanted = Wanted {
        find: which.find.trim().chars().take(200).collect(),
        state: pages::State::from_name(&which.state).unwrap_or_default(),
    };
    let before: Option<RunId> = which.before.parse().ok();
    let looked = {
        let wanted = wanted.clone();
        read(&seen.shared, move |reader| lines(reader, &wanted, before)).await
    };
    match looked {
        Ok((lines, next)) => {
            let body = pages::list(&List {
                lines: &lines,
                wanted: &wanted,
                next: next.map(|run| run.to_string()),
                now: clock::now(),
                later: before.is_some(),
            });
            page::framed(&seen, &visitor, Place::Runs, "Runs", body).await
        }
        Err(failure) => page::failed(&seen, &visitor, failure).await,
    }
}

/// A page of runs, and the run behind which the next one begins.
pub(super) fn lines(
    reader: &dyn Reader,
    wanted: &Wanted,
    before: Option<RunId>,
) -> Result<(Vec<Line>, Option<RunId>), LedgerError> {
    if let Some(run) = by_id(reader, &wanted.find)? {
        return Ok((vec![line(reader, run)?], None));
    }
    let principal = (!wanted.find.is_empty()).then(|| wanted.find.clone());
    let of_principal = RunFilter { principal: principal.clone(), limit: Some(1), ..RunFilter::default() };
    // What is nobody's name is looked for in words.
    let words = match principal.is_some() && reader.runs(&of_principal)?.is_empty() {
        true => Some(wanted.find.to_lowercase()),
        false => None,
    };
    let looked_at = match (wanted.state, &words) {
        (_, Some(_)) => READ_THROUGH,
        (pages::State::Any, None) => PAGE + 1,
        _ => LOOKED_AT,
    };
    let filter = RunFilter {
        principal: principal.filter(|_| words.is_none()),
        older_than: before,
        limit: Some(looked_at),
        ..RunFilter::default()
    };
    let summaries = reader.runs(&filter)?;
    let read = summaries.len();
    let full = Some(read) == filter.limit;
    let (mut found, mut last) = (Vec::new(), None);
    for mut summary in summaries {
        if found.len() == PAGE {
            return Ok((found, last));
        }
        last = Some(summary.run);
        // What could not be opened has nothing to show.
        if summary.events == 0 {
            continue;
        }
        complete(reader, &mut summary)?;
        if is_like(&summary, wanted.state) {
            let line = line(reader, summary)?;
            if words.as_ref().is_none_or(|words| says(&line, words)) {
                found.push(line);
            }
        }
    }
    Ok((found, last.filter(|_| full)))
}

/// Whether words in lower case stand in what a list shows of a run.
fn says(line: &Line, words: &str) -> bool {
    let asked = line.asked.as_deref().unwrap_or_default();
    [asked, &line.principal, &line.policy, &line.surface]
        .iter()
        .any(|text| text.to_lowercase().contains(words))
}

fn by_id(reader: &dyn Reader, text: &str) -> Result<Option<RunSummary>, LedgerError> {
    let hex = text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    if !hex || !(crate::api::ID_PREFIX_MIN..=32).contains(&text.len()) {
        return Ok(None);
    }
    match reader.find_run(text) {
        Ok(run) => {
            let mut summary = reader.run(run)?;
            summary.iter_mut().try_for_each(|summary| complete(reader, summary))?;
            Ok(summary.filter(|summary| summary.events > 0))
        }
        // A principal may be called like that.
        Err(LedgerError::Refused(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

fn is_like(summary: &RunSummary, state: pages::State) -> bool {
    let Some(progress) = &summary.progress else { return state == pages::State::Any };
    let live = !matches!(progress.phase, RunPhase::Closed | RunPhase::Abandoned);
    match state {
        pages::State::Any => true,
        pages::State::Live => live,
        pages::State::Held => live && summary.pending_approvals > 0,
        pages::State::Stopped => {
            progress.verdicts.deny > 0 || progress.verdicts.halt > 0 || progress.phase == RunPhase::Halted
        }
    }
}

/// A run as a line of a list.
pub(super) fn line(reader: &dyn Reader, summary: RunSummary) -> Result<Line, LedgerError> {
    let progress = summary.progress.unwrap_or_default();
    let live = !matches!(progress.phase, RunPhase::Closed | RunPhase::Abandoned);
    Ok(Line {
        run: summary.run.to_string(),
        opened: summary.opened,
        asked: asked(reader, summary.run)?,
        principal: summary.principal,
        surface: progress.surface,
        policy: progress.policy,
        verdicts: progress.verdicts,
        steps: progress.steps,
        events: summary.events,
        waiting: if live { summary.pending_approvals } else { 0 },
        mode: progress.mode,
        phase: progress.phase,
        frozen: progress.frozen.is_some(),
    })
}

/// The first thing that was said in a run, if it was said soon.
pub(super) fn asked(reader: &dyn Reader, run: RunId) -> Result<Option<String>, LedgerError> {
    for stored in reader.events(run, 0, SAID_WITHIN)? {
        if stored.kind != "input" {
            continue;
        }
        let Ok(event) = Event::from_line(&stored.line) else { continue };
        let Some(payload) = event.payloads.get("text") else { continue };
        let text = reader.payload(run, payload.commitment)?;
        return Ok(text.map(|text| String::from_utf8_lossy(text.bytes()).chars().take(SAID_CHARS).collect()));
    }
    Ok(None)
}

/// The latest live runs, at most a page of them.
pub(super) async fn live(seen: &Seen) -> Result<Vec<Line>, Failure> {
    let wanted = Wanted { state: pages::State::Live, ..Wanted::default() };
    read(&seen.shared, move |reader| lines(reader, &wanted, None)).await.map(|(lines, _)| lines)
}
