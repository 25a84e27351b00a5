//! A recorded run judged again, under the bundle in force or an earlier version; and a run verified where it is stored.

use maud::{Markup, html};
use portcullis_core::verdict::Verdict;

use crate::foreign::{sentence, shown, start};
use crate::log::{self, Verified};
use crate::marks::{Standing, note, result, verdict};
use crate::outcome::Blast;

/// Calls that are listed; those that differ come first into the page in any case.
const CALLS_MAX: usize = 200;
/// What is shown of a reason, in characters.
const REASON_CHARS: usize = 200;

/// A call, as it was judged and as it would be.
#[derive(Debug, Clone)]
pub struct Call {
    /// The event of its verdict.
    pub event: u64,
    /// The tool; none for a thinking step.
    pub tool: Option<String>,
    /// The verdict in the record.
    pub recorded: Verdict,
    /// What it would be.
    pub now: Verdict,
    /// The rule that would decide.
    pub rule: Option<String>,
    /// Its reason.
    pub message: Option<String>,
}

/// The page.
#[derive(Debug, Default)]
pub struct Replayed {
    /// The run.
    pub run: String,
    /// The beginning of the digest under which it is judged again.
    pub bundle: String,
    /// The beginning of the one that judged it.
    pub own: String,
    /// Versions that can be chosen: the number, what they are, whether it is the chosen one.
    pub versions: Vec<(u64, String, bool)>,
    /// Every call that could be judged.
    pub calls: Vec<Call>,
    /// Calls whose arguments were withheld or erased.
    pub not_judged: usize,
    /// Why the run cannot be judged again.
    pub refused: Option<String>,
}

/// The page of a replay, with differences highlighted.
#[must_use]
pub fn page(page: &Replayed) -> Markup {
    let differ = page.calls.iter().filter(|call| call.recorded != call.now).count();
    html! {
        div .head { div {
            p .crumbs { a href="/runs" { "Runs" } " / " a href={ "/runs/" (page.run) } { "run " (page.run.get(..8).unwrap_or(&page.run)) } " / replay" }
            h1 { @if page.refused.is_some() { "This run cannot be judged again" } @else if differ == 0 { "No verdict would be another" } @else { (differ) " of " (page.calls.len()) " verdicts would be others" } }
            p { "Judged again by the same engine under bundle " span .dig { (page.bundle) } "; the record was judged under " span .dig { (page.own) } ". Nothing executes." }
        } }
        form .row.runpick method="get" action={ "/runs/" (page.run) "/replay" } {
            label for="with" { b { "Under" } }
            select #with name="with" {
                option value="0" selected[page.versions.iter().all(|version| !version.2)] { "the bundle in force" }
                @for (number, what, chosen) in &page.versions { option value=(number) selected[*chosen] { "version " (number) ": " (shown(what)) } }
            }
            button .btn.main type="submit" { "Judge again" }
        }
        @if let Some(why) = &page.refused { section { (note(Standing::Bad, &html! { p { (sentence(why)) } })) } }
        @if page.not_judged > 0 { section { (note(Standing::Alert, &html! { p { (page.not_judged) " calls cannot be judged: their arguments were withheld or erased." } })) } }
        @if !page.calls.is_empty() { (calls(page)) }
    }
}

fn calls(page: &Replayed) -> Markup {
    html! {
        section aria-labelledby="h-calls" {
            div .sh { h2 #h-calls { "Calls" } p { "those that differ are marked; an agent does not react to a verdict that it did not get" } }
            div .panel.scroll tabindex="0" role="region" aria-label="Calls" {
                table .t.cards {
                    thead { tr { th .nums scope="col" { "Event" } th scope="col" { "Tool" } th scope="col" { "Recorded" } th scope="col" { "Would be" } th scope="col" { "Rule and reason" } th scope="col" { "Means" } } }
                    tbody { @for call in page.calls.iter().take(CALLS_MAX) {
                        @let differs = call.recorded != call.now;
                        tr .differs[differs] {
                            td .nums { a href={ "/runs/" (page.run) "?at=" (call.event) "&event=" (call.event) "#e" (call.event) } { (call.event) } }
                            td .mono { @match &call.tool { Some(tool) => { (shown(tool)) } None => { span .muted { "thought" } } } }
                            td { (verdict(call.recorded)) }
                            td { @if differs { (verdict(call.now)) } @else { span .muted { "the same" } } }
                            td .wrap { @if call.now > Verdict::Allow || differs { @if let Some(rule) = &call.rule { span .dig { (shown(rule)) } " " } @if let Some(message) = &call.message { span .soft { (start(message, REASON_CHARS)) } } } }
                            td .nowrap { @if differs { (means(Blast::of(call.recorded, call.now))) } }
                        }
                    } }
                }
                @if page.calls.len() > CALLS_MAX { p .pager { (page.calls.len() - CALLS_MAX) " further calls are the same, or are in `portcullis verify --replay`." } }
            }
        }
    }
}

fn means(blast: Blast) -> Markup {
    if blast.is_looser() {
        result(Standing::Alert, blast.words())
    } else {
        html! { (blast.words()) }
    }
}

/// The page of a run that was verified where it is stored.
#[must_use]
pub fn verified(run: &str, found: &Verified) -> Markup {
    html! {
        div .head { div {
            p .crumbs { a href="/runs" { "Runs" } " / " a href={ "/runs/" (run) } { "run " (run.get(..8).unwrap_or(run)) } " / verify" }
            h1 { "The record of this run" }
            p { "Exported as it is stored, and read by the verifier that strangers use." }
        } div .acts { a .btn href={ "/audit/" (run) "/run.export?unverified=true" } download { "Download the export" } } }
        section .panel.pad.form { (log::verified(found)) }
    }
}
