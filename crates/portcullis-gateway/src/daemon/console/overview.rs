//! The overview.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use portcullis_console::frame::Place;
use portcullis_console::marks::Standing;
use portcullis_console::overview::{self as pages, FirstSteps, Gap, Overruled, Overview, Reliance};
use portcullis_console::when;
use portcullis_core::event::Mode;
use portcullis_core::time::Timestamp;
use portcullis_ledger::{RunFilter, RunSummary, clock};

use super::super::error::Failure;
use super::super::freezes;
use super::super::queries::{log_standing, read};
use super::approvals::waiting_items;
use super::people::SURFACE;
use super::sessions::Came;
use super::tally::{Figures, MINUTES};
use super::visitor::Visitor;
use super::{Seen, health, page, runs};
use crate::api;

/// Runs among which one of an agent is looked for.
const LOOKED_AT: usize = 50;
/// Live runs that are listed.
const LIVE_MAX: usize = 8;
/// Minutes of a bar.
const MINUTES_EACH: i64 = 10;
/// Bars between two labels.
const LABEL_EVERY: usize = 18;
/// Rules that are called overruled: so many requests at least, and nearly all of them granted.
const OVERRULED_MIN: u64 = 10;

pub(super) async fn overview(State(seen): State<Seen>, visitor: Visitor) -> Response {
    match looked(&seen, &visitor).await {
        Ok(overview) => {
            let body = pages::page(&overview);
            page::framed(&seen, &visitor, Place::Overview, "Overview", body).await
        }
        Err(failure) => page::failed(&seen, &visitor, failure).await,
    }
}

async fn looked(seen: &Seen, visitor: &Visitor) -> Result<Overview, Failure> {
    let now = clock::now();
    let unrecorded = seen.shared.gate.ledger().check_present().err().map(|error| error.to_string());
    let figures = seen.console.tally.figures(now, MINUTES_EACH);
    if unrecorded.is_some() {
        let reliance = reliance(seen, unrecorded.as_deref()).await;
        return Ok(Overview { unrecorded, reliance, ..Overview::default() });
    }
    let list = seen.console.waits.list(seen).await?;
    let stats = seen.console.stats(seen).await;
    let any = read(&seen.shared, |reader| {
        let filter = RunFilter { limit: Some(LOOKED_AT), ..RunFilter::default() };
        // Runs that record who may sign in are no agent's.
        let of_agent = |run: &RunSummary| run.progress.as_ref().is_none_or(|known| known.surface != SURFACE);
        let runs = reader.runs(&filter)?;
        Ok(runs.len() == LOOKED_AT || runs.iter().any(of_agent))
    });
    let first_steps = match any.await? {
        true => None,
        false => Some(FirstSteps {
            address: seen.console.origin.clone(),
            alone: visitor.session.came != Came::ByPassword && !seen.console.people.are_there(),
        }),
    };
    let mode = seen.shared.gate.bundles().get(None).ok().map(|(_, bundle)| bundle.mode);
    Ok(Overview {
        freezes: freezes::in_force(&seen.shared).await?.len(),
        observing: mode == Some(Mode::Observe),
        waiting: waiting_items(&list, now),
        waits: seen.console.waits.now(seen).await,
        stretches: figures.stretches.clone(),
        minutes_each: u32::try_from(MINUTES_EACH).unwrap_or(1),
        labels: labels(now),
        live: runs::live(seen, LIVE_MAX).await?,
        denials: figures.denials.clone(),
        overruled: overruled(stats.as_deref()),
        reliance: reliance(seen, None).await,
        gaps: gaps(seen, mode, &list).await,
        figures: figures_of(&figures, stats.as_deref(), now),
        unrecorded,
        first_steps,
    })
}

fn figures_of(figures: &Figures, stats: Option<&api::Stats>, now: Timestamp) -> pages::Figures {
    let granted: u64 = stats.map_or(0, |stats| stats.approvers.iter().map(|one| one.granted).sum());
    let other: u64 =
        stats.map_or(0, |stats| stats.approvers.iter().map(|one| one.refused + one.answered).sum());
    let day_s = u64::try_from(MINUTES).unwrap_or(0) * 60;
    let since = match when::seconds_between(figures.since, now) {
        seconds if seconds < day_s => format!("since the daemon started {} ago", when::span(seconds)),
        _ => "in the last 24 hours".to_owned(),
    };
    pages::Figures {
        a_minute: figures.last_minute,
        took_ms: figures.took_ms,
        decisions: figures.decisions,
        denied: figures.denied,
        decided: (granted + other, granted),
        since,
    }
}

/// The hours below the bars.
fn labels(now: Timestamp) -> Vec<(usize, String)> {
    let bars = usize::try_from(MINUTES / MINUTES_EACH).unwrap_or(0);
    let each = MINUTES_EACH * 60_000_000;
    let label = |place: usize| {
        let back = i64::try_from(bars - place).unwrap_or(0) * each;
        let at = when::clock(Timestamp::from_micros(now.as_micros() - back));
        (place, at.get(..5).unwrap_or_default().to_owned())
    };
    (0..bars.saturating_sub(LABEL_EVERY / 2)).step_by(LABEL_EVERY).map(label).collect()
}

fn overruled(stats: Option<&api::Stats>) -> Vec<Overruled> {
    let rules = stats.map(|stats| stats.rules.as_slice()).unwrap_or_default().iter();
    let of = rules.filter(|rule| {
        let decided = rule.granted + rule.refused;
        decided >= OVERRULED_MIN && rule.granted * 10 >= decided * 9
    });
    of.take(pages::RULES_MAX)
        .map(|rule| Overruled {
            rule: rule.rule.clone(),
            granted: rule.granted,
            decided: rule.granted + rule.refused,
        })
        .collect()
}

async fn reliance(seen: &Seen, unrecorded: Option<&str>) -> Vec<Reliance> {
    let row = |what, (standing, word): (Standing, &str), detail: String| Reliance {
        what,
        standing,
        word: word.to_owned(),
        detail,
    };
    let record = match unrecorded {
        None => row(
            "Record",
            (Standing::Ok, "durable"),
            "each verdict is on the disk before its call goes ahead".into(),
        ),
        Some(why) => row("Record", (Standing::Bad, "gone"), why.to_owned()),
    };
    let places = seen.shared.home.store().log();
    let failure = seen.shared.log_failure.borrow().clone();
    let log = tokio::task::spawn_blocking(move || log_standing(&places, failure)).await;
    let log = match log.as_deref() {
        Ok("ok") => row(
            "Log",
            (Standing::Ok, "growing"),
            "what is recorded is anchored in the transparency log".into(),
        ),
        Ok(why) => row("Log", (Standing::Alert, "waits"), why.to_owned()),
        Err(_) => row("Log", (Standing::Idle, "not known"), "it was not looked at".into()),
    };
    let bundles = seen.shared.gate.bundles();
    let bundle = match bundles.refusal() {
        None => {
            let from = bundles.get(None).ok().and_then(|(source, _)| source);
            let from =
                from.map_or_else(|| "the one that ships".to_owned(), |folder| folder.display().to_string());
            row("Bundle", (Standing::Ok, "in force"), from)
        }
        Some(why) => {
            row("Bundle", (Standing::Alert, "not taken up"), format!("the one before stays in force: {why}"))
        }
    };
    let mut all = vec![record, log, bundle];
    if unrecorded.is_none() {
        all.extend(health::reliance(seen));
    }
    all
}

async fn gaps(seen: &Seen, mode: Option<Mode>, list: &Arc<api::Approvals>) -> Vec<Gap> {
    let mut gaps = Vec::new();
    if mode == Some(Mode::Observe) {
        gaps.push(Gap {
            what: "Verdicts",
            count: 0,
            detail: "are only noted: the bundle says `mode = \"observe\"`".into(),
        });
    }
    let unknown = list.approvals.iter().filter(|info| info.rule.as_deref() == Some("registry/unknown-tool"));
    let mut tools: Vec<&str> = unknown.map(|info| info.tool.as_str()).collect();
    tools.sort_unstable();
    tools.dedup();
    if !tools.is_empty() {
        let detail = format!("called, and nobody has classified them: {}", tools.join(", "));
        gaps.push(Gap { what: "Tools", count: tools.len() as u64, detail });
    }
    let listings = Arc::clone(&seen.shared.listings);
    let changed = tokio::task::spawn_blocking(move || listings.changes()).await;
    if let Ok(Ok(changed)) = changed
        && !changed.changed.is_empty()
    {
        let names: Vec<&str> = changed.changed.iter().map(|tool| tool.tool.as_str()).take(8).collect();
        let detail = format!(
            "differ from what a person accepted, and are held: {}. `portcullis tools changed` shows how",
            names.join(", ")
        );
        gaps.push(Gap { what: "Changed tools", count: changed.changed.len() as u64, detail });
    }
    gaps.extend(health::silent(seen));
    gaps
}
