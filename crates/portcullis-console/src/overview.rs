//! The overview: one sentence that says what is the case, then what waits, what goes on, and what to rely on.

use maud::{Markup, html};

use crate::approvals::Item;
use crate::chart::{self, Stretch};
use crate::foreign::{sentence as words, shown};
use crate::marks::{self, Standing, note, result};
use crate::runs::{Line, heading, strictest};
use crate::when;

/// Requests that the overview lists.
pub const WAITING_MAX: usize = 6;
/// Rules that it lists.
pub const RULES_MAX: usize = 8;

/// Everything on the page.
#[derive(Debug, Default)]
pub struct Overview {
    /// Why nothing can be recorded, or `None` if it can.
    pub unrecorded: Option<String>,
    /// How many freezes are in force.
    pub freezes: usize,
    /// Verdicts are only noted.
    pub observing: bool,
    /// What waits, the oldest first.
    pub waiting: Vec<Item>,
    /// How many wait in all, and for how long the oldest has, in seconds.
    pub waits: crate::frame::Waits,
    /// The figures since the daemon started, or for a day.
    pub figures: Figures,
    /// Decisions by stretches of a day, the oldest first.
    pub stretches: Vec<Stretch>,
    /// Minutes that a stretch has.
    pub minutes_each: u32,
    /// What stands below the stretches.
    pub labels: Vec<(usize, String)>,
    /// Live runs, the newest first.
    pub live: Vec<Line>,
    /// What denies most.
    pub denials: Vec<(String, u64)>,
    /// Rules whose holds people grant most.
    pub overruled: Vec<Overruled>,
    /// Whether it can be relied on.
    pub reliance: Vec<Reliance>,
    /// What is not covered.
    pub gaps: Vec<Gap>,
    /// The steps that lead out of an empty console, or `None` once something came.
    pub first_steps: Option<FirstSteps>,
}

/// Figures.
#[derive(Debug, Clone, Default)]
pub struct Figures {
    /// Decisions in the last whole minute.
    pub a_minute: u64,
    /// Half of the decisions were made, and durable, within so many milliseconds; 99 of 100 within the second figure.
    pub took_ms: Option<(f64, f64)>,
    /// Decisions.
    pub decisions: u64,
    /// Those that stopped something.
    pub denied: u64,
    /// Requests that were decided, and those of them that were granted.
    pub decided: (u64, u64),
    /// Since when, in words.
    pub since: String,
}

/// A rule that people overrule.
#[derive(Debug, Clone)]
pub struct Overruled {
    /// The rule.
    pub rule: String,
    /// Requests that were granted, of those decided.
    pub granted: u64,
    /// Requests that were granted or refused.
    pub decided: u64,
}

/// One thing to rely on.
#[derive(Debug, Clone)]
pub struct Reliance {
    /// What.
    pub what: &'static str,
    /// How it stands.
    pub standing: Standing,
    /// In a word.
    pub word: String,
    /// What is behind it.
    pub detail: String,
}

/// Something that is not covered.
#[derive(Debug, Clone)]
pub struct Gap {
    /// What.
    pub what: &'static str,
    /// How many.
    pub count: u64,
    /// What is meant.
    pub detail: String,
    /// Where it is mended.
    pub mended_at: Option<(&'static str, &'static str)>,
}

/// How to get a first agent to the gate.
#[derive(Debug, Clone)]
pub struct FirstSteps {
    /// The address of the console.
    pub address: String,
    /// Whether somebody signed in by a link and nobody has a password.
    pub alone: bool,
}

/// The page.
#[must_use]
pub fn page(overview: &Overview) -> Markup {
    if let (Some(steps), None) = (&overview.first_steps, &overview.unrecorded) {
        return first_steps(steps, overview);
    }
    html! {
        div .head data-live="now-sentence" { div { (sentence(overview)) } }
        div data-live="now-waiting" { @if !overview.waiting.is_empty() { (waiting(overview)) } }
        div data-live="now-figures" {
        section aria-labelledby="h-d" {
            div .sh {
                h2 #h-d { "Decisions a minute" }
                p { "grey: went ahead · " span .review { (marks::shape(portcullis_core::verdict::Verdict::Review)) " held" } " · " span .deny { (marks::shape(portcullis_core::verdict::Verdict::Deny)) " denied" } }
                span .more { (overview.figures.since) ", times in UTC" }
            }
            div .panel.pad { div .scroll.end tabindex="0" role="region" aria-label="Decisions a minute" { (chart::decisions(&overview.stretches, overview.minutes_each, &overview.labels)) } }
        }
        (figures(&overview.figures))
        }
        div .cols {
            div data-live="now-runs" { (live_runs(overview)) (denials(overview)) (overruled(overview)) }
            div data-live="now-sides" { (reliance(overview)) (gaps(overview)) }
        }
    }
}

fn sentence(overview: &Overview) -> Markup {
    let waits = overview.waits;
    if let Some(why) = &overview.unrecorded {
        return html! {
            h1 .lead { "Nothing can be recorded, so nothing is permitted." }
            (note(Standing::Bad, &html! { p { (shown(why)) } p { code { "portcullis doctor" } " checks the state folder piece by piece." } }))
        };
    }
    let rest = match (overview.freezes, overview.observing) {
        (0, false) => "Everything else is decided and on record.",
        (0, true) => "Verdicts are only noted: every call passes.",
        _ => "A freeze is in force: what it covers does not go ahead.",
    };
    html! {
        h1 .lead {
            @match waits.count {
                0 if overview.freezes == 0 && !overview.observing => { "Nothing waits for a person. Everything is decided and on record." }
                0 => { "Nothing waits for a person. " (rest) }
                1 => { "1 call waits for a person, for " (when::span(waits.oldest_s)) ". " (rest) }
                count => { (count) " calls wait for a person, the oldest for " (when::span(waits.oldest_s)) ". " (rest) }
            }
        }
    }
}

fn waiting(overview: &Overview) -> Markup {
    html! {
        section aria-labelledby="h-w" {
            div .sh { h2 #h-w { "Waiting" } a .more href="/approvals" { "all approvals" } }
            div .panel.scroll tabindex="0" role="region" aria-label="What waits" {
                table .t.waiting {
                    thead { tr { th scope="col" { "For" } th scope="col" { "What would happen" } th scope="col" { "Tool" } th scope="col" { "Held by" } th scope="col" { "On behalf of" } } }
                    tbody {
                        @for item in overview.waiting.iter().take(WAITING_MAX) {
                            tr {
                                td .age .old[item.age_s >= 180] data-age=(item.age_s) { (when::span(item.age_s)) }
                                td { a href={ "/approvals/" (item.id) } { b { (shown(&item.sentence)) } } }
                                td .mono { @if item.tool.is_empty() { "reply" } @else { (shown(&item.tool)) } }
                                td .mono { (shown(&item.rule)) }
                                td { (shown(&item.principal)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn figures(figures: &Figures) -> Markup {
    html! {
        section aria-label="Figures" {
            dl .figs {
                div { dt { "decisions in the last minute" } dd { (when::count(figures.a_minute)) } }
                div {
                    dt { "decided and durable, p50 / p99" }
                    dd { @match figures.took_ms { Some((half, most)) => { (ms(half)) " / " (ms(most)) " " small { "ms" } } None => { small { "none yet" } } } }
                }
                div { dt { "denied" } dd { (when::count(figures.denied)) " " small { "of " (when::count(figures.decisions)) } } }
                div { dt { "held and decided" } dd { (when::count(figures.decided.1)) " " small { "granted of " (when::count(figures.decided.0)) } } }
            }
        }
    }
}

fn ms(value: f64) -> String {
    if value < 10.0 { format!("{value:.1}") } else { format!("{value:.0}") }
}

fn live_runs(overview: &Overview) -> Markup {
    html! {
        section aria-labelledby="h-r" {
            div .sh { h2 #h-r { "Live runs" } a .more href="/runs" { "all runs" } }
            div .panel.scroll tabindex="0" role="region" aria-label="Live runs" {
                table .t.cards {
                    thead { tr { th scope="col" { "Run" } th scope="col" { "Asked for" } th scope="col" .nums { "Steps" } th scope="col" { "Strictest" } } }
                    tbody {
                        @if overview.live.is_empty() { tr { td colspan="4" .muted { "No agent is connected." } } }
                        @for line in &overview.live {
                            tr {
                                td { a .mono href={ "/runs/" (line.run) } { (line.run.get(..8).unwrap_or(&line.run)) } }
                                td .wrap { (heading(line.asked.as_deref())) }
                                td .nums { (line.steps) }
                                td { @if let Some(verdict) = strictest(&line.verdicts) { (marks::verdict(verdict)) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn denials(overview: &Overview) -> Markup {
    let largest = overview.denials.iter().map(|(_, count)| *count).max().unwrap_or(0);
    html! {
        section aria-labelledby="h-g" {
            div .sh { h2 #h-g { "Denied, by rule" } p { (overview.figures.since) } }
            div .panel.pad {
                @if overview.denials.is_empty() { p .muted { "Nothing was denied." } }
                div .hb {
                    @for (rule, count) in overview.denials.iter().take(RULES_MAX) {
                        span .cut-end { (shown(rule)) } (chart::share(*count, largest)) span .nums { (when::count(*count)) }
                    }
                }
            }
        }
    }
}

fn overruled(overview: &Overview) -> Markup {
    html! {
        @if !overview.overruled.is_empty() {
            section aria-labelledby="h-o" {
                div .sh { h2 #h-o { "Overruled most" } p { "holds that people nearly always grant" } }
                div .panel.scroll tabindex="0" role="region" aria-label="Overruled most" {
                    table .t {
                        thead { tr { th scope="col" { "Rule" } th scope="col" .nums { "Granted" } } }
                        tbody { @for rule in &overview.overruled { tr { td .mono { (shown(&rule.rule)) } td .nums { (rule.granted) " of " (rule.decided) } } } }
                    }
                }
            }
        }
    }
}

fn reliance(overview: &Overview) -> Markup {
    html! {
        section aria-labelledby="h-h" {
            div .sh { h2 #h-h { "Can it be relied on?" } }
            div .panel.scroll tabindex="0" role="region" aria-label="Can it be relied on?" {
                table .t.cards { tbody {
                    @for row in &overview.reliance {
                        tr { th scope="row" { (row.what) } td { (result(row.standing, &row.word)) } td .soft.wrap { (words(&row.detail)) } }
                    }
                } }
            }
        }
    }
}

fn gaps(overview: &Overview) -> Markup {
    html! {
        section aria-labelledby="h-c" {
            div .sh { h2 #h-c { "What is not covered" } }
            div .panel.scroll tabindex="0" role="region" aria-label="What is not covered" {
                table .t.cards { tbody {
                    @if overview.gaps.is_empty() { tr { td .muted { "Every tool that was seen is known, and every verdict is enforced." } } }
                    @for gap in &overview.gaps {
                        tr { th scope="row" { (gap.what) } td .nums { b { (gap.count) } } td .soft.wrap { (words(&gap.detail)) @if let Some((path, name)) = gap.mended_at { ". " a href=(path) { (name) } } } }
                    }
                } }
            }
        }
    }
}

fn first_steps(steps: &FirstSteps, overview: &Overview) -> Markup {
    let step = |title: &str, body: Markup| html! { div .flow { h2 { (title) } (body) } };
    html! {
        div .head { div {
            h1 .lead { "The gate is up. No agent has come to it yet." }
            p { "Three steps, and this page fills by itself. Nothing has to be restarted, and nothing leaves this machine." }
        } }
        div .cols.wide-l {
            ol .steps {
                li .done { (step("Start the gate", html! { p .soft { "The console is on " code .wrap { (shown(&steps.address)) } "." } })) }
                li { (step("Put it in front of an MCP server", html! {
                    p .soft { "Where your client’s configuration names the server’s command, write this before it:" }
                    pre .code tabindex="0" { "portcullis mcp -- " span .muted { "npx -y @modelcontextprotocol/server-filesystem /srv/files" } }
                    p .soft { "For a coding agent: " code { "portcullis hook install" } ". For an agent that speaks HTTP: " code { "portcullis serve --http" } "." }
                })) }
                li { (step("Say what its tools are", html! {
                    p .soft { "Until somebody does, each call of an unknown tool is held for you. A first draft comes from the server’s own list:" }
                    pre .code tabindex="0" { "portcullis init -- " span .muted { "npx -y @modelcontextprotocol/server-filesystem /srv/files" } }
                    p .soft { "Not sure yet? With " code { "mode = \"observe\"" } " verdicts are made and recorded, and every call passes." }
                })) }
            }
            aside .stack {
                @if steps.alone {
                    section .panel.pad.flow {
                        h2 { "Who gets in" }
                        p .soft { "You are here by a link. For others, or to come back without the terminal, invite people with a password." }
                        p { a .btn href="/people" { "Invite people" } }
                    }
                }
                (reliance(overview))
                p .small.muted role="status" data-live="first" { "Listening. The first call appears here without reloading." }
            }
        }
    }
}
