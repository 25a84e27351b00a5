//! Charts: SVG made of classes and presentation attributes, since the policy of the pages allows no inline style. Each
//! says in words what it shows.

use std::fmt::Write as _;

use maud::{Markup, html};
use portcullis_core::verdict::Verdict;

use crate::when;

/// Decisions of a stretch of time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stretch {
    /// Went ahead.
    pub ahead: u32,
    /// Waits, or was asked back.
    pub held: u32,
    /// Did not happen.
    pub denied: u32,
}

impl Stretch {
    /// All of them.
    #[must_use]
    pub const fn all(self) -> u32 {
        self.ahead.saturating_add(self.held).saturating_add(self.denied)
    }
}

const WIDTH: f64 = 1_092.0;
const LEFT: f64 = 36.0;
const BASE: f64 = 128.0;
const HEIGHT: f64 = 112.0;

/// Decisions a minute: one bar for each stretch, the oldest first. `labels` stand below the stretches that they name.
#[must_use]
pub fn decisions(stretches: &[Stretch], minutes_each: u32, labels: &[(usize, String)]) -> Markup {
    let each = f64::from(minutes_each.max(1));
    let most = stretches.iter().map(|stretch| f64::from(stretch.all()) / each).fold(0.0, f64::max);
    let top = ceiling(most);
    let step = WIDTH / f64::from(u32::try_from(stretches.len().max(1)).unwrap_or(1));
    let x = |place: usize| LEFT + step * f64::from(u32::try_from(place).unwrap_or(0));
    let last = stretches.last().map_or(0.0, |stretch| f64::from(stretch.all()) / each);
    let said = format!("Decisions a minute over the last day: at most {most:.1}, now {last:.1}.");
    html! {
        svg .ch.full viewBox="0 0 1140 150" role="img" aria-label=(said) {
            @for line in 0..=2_u32 {
                @let value = top * f64::from(line) / 2.0;
                @let y = BASE - HEIGHT * f64::from(line) / 2.0;
                path .axis d={ "M36 " (one(y)) "H1128" } {}
                text x="28" y=(one(y + 4.0)) text-anchor="end" { (figure(value)) }
            }
            @for (place, stretch) in stretches.iter().enumerate() { (bar(x(place), step, *stretch, each, top)) }
            @for (place, label) in labels { text x=(one(x(*place))) y="146" { (label) } }
            text x="1128" y="146" text-anchor="end" { "now" }
        }
    }
}

fn bar(x: f64, step: f64, stretch: Stretch, minutes: f64, top: f64) -> Markup {
    let high = |count: u32| f64::from(count) / minutes / top * HEIGHT;
    // Few among many must still be seen.
    let seen = |count: u32| if count == 0 { 0.0 } else { high(count).max(2.5) };
    let (ahead, held, denied) = (high(stretch.ahead), seen(stretch.held), seen(stretch.denied));
    let width = one((step - 1.6).max(1.0));
    html! {
        @if ahead > 0.0 { rect .bar1 x=(one(x)) y=(one(BASE - ahead)) width=(width) height=(one(ahead)) {} }
        @if held > 0.0 { rect .fill.review x=(one(x)) y=(one(BASE - ahead - held)) width=(width) height=(one(held)) {} }
        @if denied > 0.0 { rect .fill.deny x=(one(x)) y=(one(BASE - ahead - held - denied)) width=(width) height=(one(denied)) {} }
    }
}

/// A round number that is at least `value`.
fn ceiling(value: f64) -> f64 {
    let decades = (1..12).map(|power| 10_f64.powi(power));
    let larger = decades.flat_map(|decade| [decade, decade * 2.0, decade * 5.0]);
    // Counts end long before the last of them.
    [2.0, 4.0].into_iter().chain(larger).find(|round| *round >= value).unwrap_or(value)
}

fn figure(value: f64) -> String {
    if value.fract() == 0.0 { format!("{value:.0}") } else { format!("{value:.1}") }
}

fn one(value: f64) -> String {
    format!("{value:.1}")
}

/// A bar beside a count, as a part of the largest.
#[must_use]
pub fn share(count: u64, largest: u64) -> Markup {
    let percent = count.saturating_mul(100).checked_div(largest).map_or(0, |percent| percent.max(1));
    html! { svg .ch viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true" { rect .ch-b x="0" y="0" width=(percent) height="8" {} } }
}

/// A run at a glance: how its events and verdicts lie over it, and drift where it is known.
#[derive(Debug, Clone, Default)]
pub struct Density {
    /// Events of the run.
    pub events: u64,
    /// For each stretch of it, how many events it has and the strictest verdict among them.
    pub stretches: Vec<(u32, Option<Verdict>)>,
    /// Which part of it the page shows: the first and the last event.
    pub window: (u64, u64),
    /// Event and drift after it, in order.
    pub drift: Vec<(u64, f64)>,
    /// Event and the tool risk that the request does not cover.
    pub risk: Vec<(u64, f64)>,
    /// The thresholds on drift: the least value, and what it causes.
    pub thresholds: Vec<(f64, Verdict)>,
}

impl Density {
    /// Whether there is something to draw above the strip.
    #[must_use]
    pub fn has_chart(&self) -> bool {
        !self.drift.is_empty() || !self.risk.is_empty()
    }

    /// Drift after the last event.
    #[must_use]
    pub fn drift_now(&self) -> f64 {
        self.drift.last().map_or(0.0, |(_, drift)| *drift)
    }

    fn x(&self, seq: f64) -> f64 {
        let events = count(self.events.max(1));
        44.0 + 998.0 * (seq / events).clamp(0.0, 1.0)
    }
}

#[expect(clippy::cast_precision_loss, reason = "places in a picture")]
fn count(number: u64) -> f64 {
    number as f64
}

/// The strip, and above it the chart of drift and risk if the run has any. Each stretch is a link to its events.
#[must_use]
pub fn density(density: &Density, query: &str) -> Markup {
    let chart = density.has_chart();
    let top = if chart { 118.0 } else { 6.0 };
    let height = if chart { 172 } else { 60 };
    let most = density.stretches.iter().map(|(events, _)| *events).max().unwrap_or(1).max(1);
    let now = density.drift_now();
    let said = match chart {
        true => format!("Drift and tool risk over {} events; drift is {now:.2} now.", density.events),
        false => format!("Where the verdicts lie among {} events.", density.events),
    };
    html! {
        svg .ch.full viewBox={ "0 0 1160 " (height) } role="group" aria-label=(said) {
            @if chart { (drift(density)) }
            rect .ground x="44" y=(one(top)) width="998" height="34" {}
            @for (place, (events, strictest)) in density.stretches.iter().enumerate() {
                @if *events > 0 { (stretch(density, place, *events, *strictest, most, top, query)) }
            }
            (window(density, top))
            text x="1050" y=(one(top + 22.0)) { (when::count(density.events)) " events" }
            text x="44" y=(one(top + 48.0)) { "1" }
            text x="1042" y=(one(top + 48.0)) text-anchor="end" { (when::count(density.events)) }
        }
    }
}

fn stretch(
    density: &Density,
    place: usize,
    events: u32,
    strictest: Option<Verdict>,
    most: u32,
    top: f64,
    query: &str,
) -> Markup {
    let stretches = count(density.stretches.len().max(1) as u64);
    let width = 998.0 / stretches;
    let x = 44.0 + width * count(place as u64);
    let grey = 4.0 + 10.0 * f64::from(events) / f64::from(most);
    let high = |verdict: Verdict| 12.0 + 3.0 * f64::from(verdict as u8);
    let first = first_event(density, place);
    let what = strictest.map_or_else(String::new, |verdict| format!(", strictest {}", verdict.as_str()));
    html! {
        a href={ "?at=" (first) (query) "#timeline" } aria-label={ "from event " (first) (what) } {
            rect .pick x=(one(x)) y=(one(top)) width=(one(width.max(1.0))) height="34" {}
            @match strictest.filter(|verdict| *verdict > Verdict::Allow) {
                None => { rect .bar1 x=(one(x)) y=(one(top + 34.0 - grey)) width=(one((width - 0.6).max(0.8))) height=(one(grey)) {} }
                Some(verdict) => {
                    rect class={ "fill " (verdict.as_str()) } x=(one(x)) y=(one(top + 34.0 - high(verdict).min(34.0))) width=(one((width - 0.4).max(2.0))) height=(one(high(verdict).min(34.0))) {}
                }
            }
        }
    }
}

/// The first event of a stretch.
fn first_event(density: &Density, place: usize) -> u64 {
    let stretches = density.stretches.len().max(1) as u64;
    density.events.saturating_mul(place as u64) / stretches + 1
}

fn window(density: &Density, top: f64) -> Markup {
    let (first, last) = density.window;
    let from = density.x(count(first.saturating_sub(1)));
    let to = density.x(count(last)).max(from + 4.0);
    let whole = first <= 1 && last >= density.events;
    html! { @if !whole && last > 0 { rect .win x=(one(from)) y=(one(top - 2.0)) width=(one(to - from)) height="38" {} } }
}

fn drift(density: &Density) -> Markup {
    let y = |value: f64| 104.0 - 90.0 * value.clamp(0.0, 1.0);
    let mut line = String::new();
    let mut last = 0.0;
    for (number, (seq, value)) in density.drift.iter().enumerate() {
        let x = density.x(count(*seq));
        // A step: drift stays where it is until something moves it.
        let _infallible = match number {
            0 => write!(line, "M44 {:.1}H{x:.1}V{:.1}", y(0.0), y(*value)),
            _ => write!(line, "H{x:.1}V{:.1}", y(*value)),
        };
        last = *value;
    }
    if line.is_empty() {
        line.push_str("M44 104");
    }
    line.push_str("H1042");
    html! {
        @for (value, verdict) in &density.thresholds {
            g class=(verdict.as_str()) {
                path .th d={ "M44 " (one(y(*value))) "H1042" } {}
                text .th-l x="1050" y=(one(y(*value) + 4.0)) { (figure(*value)) " " (verdict.as_str()) }
            }
        }
        path .axis d="M44 104H1042" {}
        text x="36" y="108" text-anchor="end" { "0" }
        text x="36" y="18" text-anchor="end" { "1" }
        path .l1 d=(line) {}
        circle .fill.now-dot cx="1042" cy=(one(y(last))) r="3" {}
        @for (seq, value) in &density.risk {
            @let x = one(density.x(count(*seq)));
            path .l3 d={ "M" (x) " 104V" (one(y(*value) + 2.5)) } {}
            circle .pub cx=(x) cy=(one(y(*value))) r="2.5" {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_end_at_round_numbers() {
        assert_eq!([0.0, 3.0, 9.0, 42.0, 180.0].map(ceiling), [2.0, 4.0, 10.0, 50.0, 200.0]);
    }

    #[test]
    fn stretches_cover_the_run() {
        let density = Density { events: 1_000, stretches: vec![(5, None); 200], ..Density::default() };
        assert_eq!((first_event(&density, 0), first_event(&density, 199)), (1, 996));
        let html = super::density(&density, "&q=x").into_string();
        assert!(html.contains("?at=996&amp;q=x#timeline") && !html.contains("style="), "{html}");
    }
}
