//! The overview.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use portcullis_console::frame::Place;
use portcullis_console::marks::Standing;
use portcullis_console::overview::{self as pages, FirstSteps, Gap, Overruled, Overview, Reliance};
use portcullis_console::runs::Line;
use portcullis_console::when;
use portcullis_core::event::Mode;
use portcullis_core::time::Timestamp;
use portcullis_ledger::{RunFilter, RunSummary, clock};
use portcullis_session::listings::KnownTool;

use super::super::error::Failure;
use super::super::freezes;
use super::super::queries::read;
use super::approvals::waiting_items;
use super::people::SURFACE;
use super::sessions::Came;
use super::tally::{Figures, MINUTES};
use super::tools::is_unclassified;
use super::visitor::Visitor;
use super::{Seen, health, log, page, runs};
use crate::api;

/// Runs among which one of an agent is looked for.
const LOOKED_AT: usize = 50;
/// Live runs that are listed.
const LIVE_MAX: usize = 8;
/// Minutes of a bar.
const MINUTES_EACH: i64 = 10;
/// Bars between two labels.
const LABEL_EVERY: usize = 18;
/// Where tools are classified, and their changes accepted.
const TOOLS: Option<(&str, &str)> = Some(("/tools", "Tool Registry"));
/// Names of a row.
const NAMED: usize = 6;
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
    let mut live = runs::live(seen).await?;
    let gaps = gaps(seen, mode, &list, &live).await;
    live.truncate(LIVE_MAX);
    Ok(Overview {
        freezes: freezes::in_force(&seen.shared).await?.len(),
        observing: mode == Some(Mode::Observe),
        waiting: waiting_items(&list, now),
        waits: seen.console.waits.now(seen).await,
        stretches: figures.stretches.clone(),
        minutes_each: u32::try_from(MINUTES_EACH).unwrap_or(1),
        labels: labels(now),
        live,
        denials: figures.denials.clone(),
        overruled: overruled(stats.as_deref()),
        reliance: reliance(seen, None).await,
        gaps,
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
    let log = log::reliance(&log::log(seen).await);
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

async fn gaps(seen: &Seen, mode: Option<Mode>, list: &api::Approvals, live: &[Line]) -> Vec<Gap> {
    let mut gaps = Vec::new();
    if mode == Some(Mode::Observe) {
        let detail = "are only noted: the bundle says `mode = \"observe\"`".into();
        gaps.push(Gap { what: "Verdicts", count: 0, detail, mended_at: None });
    }
    gaps.extend(observed_only(mode, live));
    let listings = Arc::clone(&seen.shared.listings);
    let read =
        tokio::task::spawn_blocking(move || Some((listings.changes().ok()?.changed, listings.known().ok()?)));
    let Some((changed, known)) = read.await.ok().flatten() else {
        let detail = "lists of tools cannot be read; `portcullis doctor` says why".to_owned();
        gaps.push(Gap { what: "Servers", count: 0, detail, mended_at: None });
        return gaps;
    };
    gaps.extend(unclassified(seen, list, &known));
    if !changed.is_empty() {
        let names = changed.iter().map(|tool| tool.tool.as_str()).collect();
        let detail = format!("differ from what a person accepted, and are held: {}", named(names));
        gaps.push(Gap { what: "Changed tools", count: changed.len() as u64, detail, mended_at: TOOLS });
    }
    gaps.extend(health::silent(seen));
    gaps
}

/// Runs that are open and only observed, although the bundle in force enforces: they keep to the one that they have.
fn observed_only(mode: Option<Mode>, live: &[Line]) -> Option<Gap> {
    let observed = live.iter().filter(|line| line.mode == Mode::Observe);
    let surfaces: Vec<&str> = observed.map(|line| line.surface.as_str()).collect();
    if surfaces.is_empty() || mode == Some(Mode::Observe) {
        return None;
    }
    let count = surfaces.len() as u64;
    let detail = format!("are open and only observed, from: {}", named(surfaces));
    Some(Gap { what: "Runs", count, detail, mended_at: None })
}

/// Tools that servers list, or that agents called, and that nobody has classified.
fn unclassified(seen: &Seen, list: &api::Approvals, known: &[KnownTool]) -> Option<Gap> {
    let (_, bundle) = seen.shared.gate.bundles().get(None).ok()?;
    let called = list.approvals.iter().filter(|info| info.rule.as_deref() == Some("registry/unknown-tool"));
    let listed = known.iter().filter(|tool| is_unclassified(&bundle, tool));
    let tools: BTreeSet<&str> =
        called.map(|info| info.tool.as_str()).chain(listed.map(|tool| tool.tool.as_str())).collect();
    let detail =
        format!("were seen, and nobody has classified them: {}", named(tools.iter().copied().collect()));
    (!tools.is_empty()).then_some(Gap { what: "Tools", count: tools.len() as u64, detail, mended_at: TOOLS })
}

/// The first names, each once, and how many more there are.
fn named(mut names: Vec<&str>) -> String {
    names.sort_unstable();
    names.dedup();
    let more = names.len().saturating_sub(NAMED);
    let first: Vec<String> = names.into_iter().take(NAMED).map(|name| format!("`{name}`")).collect();
    match more {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}
