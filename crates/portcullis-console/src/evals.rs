//! Results of `portcullis eval`: each figure as a point with its interval, beside what others published.

use maud::{Markup, html};
use portcullis_core::time::Timestamp;

use crate::foreign::{sentence, shown};
use crate::marks::{Standing, note};
use crate::when;

/// A figure of a report.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// What it is of.
    pub label: String,
    /// So many had the property.
    pub hits: u64,
    /// Of so many.
    pub of: u64,
    /// 0 to 1.
    pub value: f64,
    /// The 95 % interval, 0 to 1.
    pub low: f64,
    /// See `low`.
    pub high: f64,
    /// The best that others published, in percent, and whose it is.
    pub published: Option<(f64, String)>,
    /// The same figure of the report of that suite before this one.
    pub before: Option<f64>,
}

/// A report.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Its file.
    pub file: String,
    /// The suite.
    pub suite: String,
    /// When it was written.
    pub at: Option<Timestamp>,
    /// The beginning of the digest of the bundle that was judged.
    pub bundle: String,
    /// Its figures.
    pub figures: Vec<Figure>,
    /// Figures that are not on the page.
    pub more: usize,
    /// Half of the decisions took no longer, in microseconds, and all but one in a hundred.
    pub took_us: Option<(f64, f64)>,
    /// What to know when comparing.
    pub notes: Vec<String>,
    /// What could not be judged: how many, why.
    pub skipped: Vec<(u64, String)>,
    /// Why the file is no report.
    pub refused: Option<String>,
}

/// The page.
#[derive(Debug, Default)]
pub struct Evals {
    /// The reports, the latest first.
    pub reports: Vec<Report>,
    /// Where they lie.
    pub folder: String,
    /// The beginning of the digest of the bundle in force.
    pub bundle: String,
    /// The time of the page.
    pub now: Timestamp,
}

/// The page of evaluations.
#[must_use]
pub fn page(page: &Evals) -> Markup {
    html! {
        div .head { div { h1 { "Evaluation" } p { "Results of " code { "portcullis eval" } " on this machine, with 95 % intervals, beside what others published. A tick is the best published figure; a ring is the report before." } } }
        @if page.reports.is_empty() {
            (note(Standing::Idle, &html! { p { b { "No report yet." } " Run a suite, and keep its report where this page looks:" } }))
            pre .code.fold.gapped tabindex="0" { "portcullis eval scenarios --data examples/scenarios \\\n    --json " (shown(&page.folder)) "/scenarios.json" }
        }
        div .evals { @for report in &page.reports { (one(report, page)) } }
    }
}

fn one(report: &Report, page: &Evals) -> Markup {
    let (low, high) = range(&report.figures);
    html! {
        section .panel.pad {
            div .sh {
                h2 { @if report.suite.is_empty() { "No report" } @else { (shown(&report.suite)) } }
                p { @if let Some(at) = report.at { (when::day_and_minute(at, page.now)) " · " } span .mono { (shown(&report.file)) } }
            }
            @if let Some(why) = &report.refused { (note(Standing::Bad, &html! { p { (sentence(why)) } })) }
            @if !report.figures.is_empty() {
                table .ci {
                    thead { tr {
                        th scope="col" { span .sr { "Figure" } }
                        th .pl scope="col" { span .ax aria-hidden="true" { @for tick in ticks(low, high) { span { (tick) } } } span .sr { "Drawn" } }
                        th .nums scope="col" { "%" } th scope="col" { "95 %" } th .nums scope="col" { "of" }
                    } }
                    tbody { @for figure in &report.figures { (row(figure, low, high)) } }
                }
            }
            @if report.more > 0 { p .small.muted { (report.more) " further figures are in the file." } }
            @for (count, why) in &report.skipped { p .small { b { "SKIPPED " (when::count(*count)) } " " (sentence(why)) } }
            @if report.refused.is_none() { dl .facts.under {
                dt { "bundle" } dd { span .dig { (report.bundle) } @if !page.bundle.is_empty() && report.bundle == page.bundle { " in force" } @else if !report.bundle.is_empty() { span .muted { " another than the one in force" } } }
                @if let Some((half, most)) = report.took_us { dt { "a decision" } dd { (format!("{half:.0} µs, 99 % within {most:.0} µs")) } }
            } }
            @if !report.notes.is_empty() { details { summary { "What to know when comparing" } ul { @for text in &report.notes { li .small.soft { (sentence(text)) } } } } }
        }
    }
}

/// The part of the axis that is drawn, in percent: where all figures lie, to round tens.
fn range(figures: &[Figure]) -> (f64, f64) {
    let low = figures.iter().map(|figure| figure.low * 100.0).fold(100.0, f64::min);
    let high = figures.iter().map(|figure| figure.high * 100.0).fold(0.0, f64::max);
    let published = figures.iter().filter_map(|figure| figure.published.as_ref()).map(|(value, _)| *value);
    let low = published.fold(low, f64::min);
    let (low, high) = ((low / 10.0).floor() * 10.0, (high / 10.0).ceil() * 10.0);
    if high - low < 10.0 { ((low - 10.0).max(0.0), high.max(10.0)) } else { (low, high) }
}

fn ticks(low: f64, high: f64) -> Vec<String> {
    let step = if high - low > 50.0 { 20.0 } else { 10.0 };
    let mut at = (low / step).ceil() * step;
    let mut ticks = Vec::new();
    while at <= high + 0.1 {
        ticks.push(format!("{at:.0}"));
        at += step;
    }
    // They stand at equal distances, so only both ends where the steps do not come out even.
    let even = ((low / step).fract().abs() < 1e-9) && ((high / step).fract().abs() < 1e-9);
    if even { ticks } else { vec![format!("{low:.0}"), format!("{high:.0}")] }
}

fn row(figure: &Figure, low: f64, high: f64) -> Markup {
    let x = |percent: f64| format!("{:.1}", ((percent - low) / (high - low) * 200.0).clamp(0.0, 200.0));
    let percent = |value: f64| {
        let text = format!("{:.1}", value * 100.0);
        text.strip_suffix(".0").map(ToOwned::to_owned).unwrap_or(text)
    };
    html! {
        tr {
            th scope="row" { (shown(&figure.label)) @if let Some((value, whose)) = &figure.published { span .sr { ", best published " (format!("{value:.1}")) " by " (shown(whose)) } } }
            td .pl { svg viewBox="0 0 200 20" preserveAspectRatio="none" aria-hidden="true" {
                path .axis d="M0 19.5H200" {}
                path .cil d={ "M" (x(figure.low * 100.0)) " 10H" (x(figure.high * 100.0)) } {}
                @if let Some((value, _)) = &figure.published { path .pb d={ "M" (x(*value)) " 3V17" } {} }
                @if let Some(before) = figure.before { path .pt.was d={ "M" (x(before * 100.0)) " 10h.01" } {} }
                path .pt d={ "M" (x(figure.value * 100.0)) " 10h.01" } {}
            } }
            td .nums { b { (percent(figure.value)) } @if let Some(before) = figure.before { (change(figure.value - before)) } }
            td .muted.nowrap { (percent(figure.low)) "–" (percent(figure.high)) }
            td .nums.muted.nowrap { (when::count(figure.of)) }
        }
    }
}

/// How a figure moved. Whether that is good depends on the figure, so the sign has no colour.
fn change(by: f64) -> Markup {
    let points = by * 100.0;
    html! { @if points.abs() >= 0.05 { " " small .muted { (format!("{points:+.1}")) } } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_drawn_within_its_axis_and_says_itself_in_words() {
        let figure = Figure {
            label: "lpa <b>".into(),
            hits: 93,
            of: 100,
            value: 0.93,
            low: 0.86,
            high: 0.97,
            published: Some((90.0, "GuardAgent".into())),
            before: Some(0.91),
        };
        assert_eq!(range(std::slice::from_ref(&figure)), (80.0, 100.0));
        let html = row(&figure, 80.0, 100.0).into_string();
        for part in [
            "lpa &lt;b&gt;",
            "M60.0 10H170.0",
            "M130.0 10h.01",
            "M100.0 3V17",
            "<b>93</b>",
            "+2.0",
            "best published 90.0 by GuardAgent",
        ] {
            assert!(html.contains(part), "{part} in {html}");
        }
        assert_eq!(ticks(80.0, 100.0), ["80", "90", "100"]);
        assert_eq!(ticks(0.0, 100.0), ["0", "20", "40", "60", "80", "100"]);
        assert_eq!(ticks(30.0, 100.0), ["30", "100"]);
    }
}
