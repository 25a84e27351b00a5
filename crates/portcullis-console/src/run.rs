//! One run: its shape, its timeline in windows, and what belongs to it.
//!
//! The timeline is flat: a step is a call with the events that belong to it, in their order. The server chooses the
//! window and folds stretches in which nothing but *allow* happened, so a run of any length is a page of one size.

use maud::{Markup, html};
use portcullis_core::event::{Enforced, Mode};
use portcullis_core::state::progress::RunPhase;
use portcullis_core::time::Timestamp;
use portcullis_core::verdict::Verdict;

use crate::Role;
use crate::chart::{self, Density};
use crate::event;
pub use crate::event::{Chosen, Found};
use crate::foreign::{self, shown};
use crate::frame::csrf;
use crate::marks::{self, Standing, note, result};
use crate::runs::{self, heading, percent};
use crate::when;

/// The page.
#[derive(Debug)]
pub struct RunPage<'a> {
    /// The run.
    pub run: String,
    /// What it was asked.
    pub asked: Option<String>,
    /// On whose behalf.
    pub principal: String,
    /// How the agent came in.
    pub surface: String,
    /// The runtime policy.
    pub policy: String,
    /// The beginning of the bundle's digest.
    pub bundle: String,
    /// Whether verdicts are enforced.
    pub mode: Mode,
    /// How it stands.
    pub phase: RunPhase,
    /// A freeze stops it.
    pub frozen: bool,
    /// When it was opened.
    pub opened: Timestamp,
    /// Steps.
    pub steps: u32,
    /// Requests of it that wait: their ids.
    pub waiting: Vec<String>,
    /// The run that opened it, and those that it opened.
    pub parent: Option<String>,
    /// See [`Self::parent`].
    pub children: Vec<String>,
    /// Texts of it that were erased.
    pub erased: u64,
    /// Its shape.
    pub density: Density,
    /// The stretch that is shown.
    pub parts: Vec<Part>,
    /// Where the window before begins, and where the next one does.
    pub earlier: Option<u64>,
    /// See [`Self::earlier`].
    pub later: Option<u64>,
    /// What was looked for.
    pub filter: Filter,
    /// How often each verdict occurs in the run.
    pub counts: Vec<(Verdict, u64)>,
    /// The event that is looked at.
    pub chosen: Option<Chosen>,
    /// What people did in it, the latest first.
    pub people: Vec<Act>,
    /// Its work items.
    pub work: Vec<WorkItem>,
    /// Where what the agent has seen came from.
    pub labels: Vec<String>,
    /// The time of the page.
    pub now: Timestamp,
    /// What happened with the last order.
    pub told: Option<(Standing, String)>,
    /// May the person take hold of it?
    pub role: Role,
    /// Goes with every form.
    pub csrf: &'a str,
}

/// What is looked for in a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// A part of a tool's or a rule's name.
    pub find: String,
    /// Only this verdict.
    pub only: Option<Verdict>,
    /// Only what people did.
    pub people: bool,
}

impl Filter {
    /// Whether everything is shown.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn query(&self) -> String {
        let mut query = String::new();
        if !self.find.is_empty() {
            query.push_str(&format!("&find={}", percent(&self.find)));
        }
        if let Some(verdict) = self.only {
            query.push_str(&format!("&only={}", verdict.as_str()));
        }
        if self.people {
            query.push_str("&only=people");
        }
        query
    }
}

/// A part of the timeline.
#[derive(Debug, Clone)]
pub enum Part {
    /// A step or an event on its own.
    Step(Vec<Row>),
    /// Steps in which nothing but *allow* happened.
    Quiet {
        /// The first event.
        first: u64,
        /// The last event.
        last: u64,
        /// Calls among them.
        calls: usize,
    },
}

/// An event of the timeline.
#[derive(Debug, Clone)]
pub struct Row {
    /// Its number.
    pub seq: u64,
    /// When.
    pub at: Timestamp,
    /// What it is, in a word.
    pub key: &'static str,
    /// The call, where it is one.
    pub call: Option<Call>,
    /// Verdict and enforcement, where it says so.
    pub mark: Option<(Verdict, Option<Enforced>)>,
    /// What happened, in our words. Names of others in it are displayed like all texts of others.
    pub words: String,
    /// The rule that it rests on.
    pub rule: Option<String>,
    /// A text that belongs to it.
    pub text: Option<Text>,
    /// Where to go from it: an address and the words of the link.
    pub link: Option<(String, &'static str)>,
    /// What a model said that was asked about the call.
    pub opinion: Option<Opinion>,
}

/// What became of a hold that a model was asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opinion {
    /// It said that the request covers the call: the call was not held.
    Lifted,
    /// It said that the request does not: the call was denied.
    Denied,
    /// It said nothing in time: the hold stood.
    Silent,
}

impl Opinion {
    fn shown(self) -> Markup {
        let asked = "A model was asked whether the request covers this call.";
        let (standing, word, said) = match self {
            Self::Lifted => {
                (Standing::Alert, "second opinion: hold lifted", "It said yes; nobody was asked.")
            }
            Self::Denied => {
                (Standing::Bad, "second opinion: denied", "It said no; the hold became a denial.")
            }
            Self::Silent => {
                (Standing::Idle, "second opinion: none", "It gave no answer in time; the hold stood.")
            }
        };
        html! { span .why { (result(standing, word)) " " span .soft { (asked) " " (said) } } }
    }
}

/// A call.
#[derive(Debug, Clone)]
pub struct Call {
    /// The number of the step.
    pub step: u32,
    /// The tool, or none for a thinking step.
    pub tool: Option<String>,
    /// The beginning of its arguments.
    pub arguments: String,
    /// What the agent said it was about to do.
    pub planned: Option<String>,
}

/// A text of others.
#[derive(Debug, Clone, Default)]
pub struct Text {
    /// Who wrote it, and how long it is.
    pub by: String,
    /// The text, or the beginning of it.
    pub text: String,
    /// It goes on.
    pub cut: bool,
    /// What was taken out before it was handed on: from byte to byte, and what stands there now.
    pub edits: Vec<(usize, usize, String)>,
    /// Where checks of a reply say that it is wrong: from byte to byte, and the number of the check in [`Self::failed`].
    pub wrong: Vec<(usize, usize, usize)>,
    /// The checks of a reply that failed: name and explanation.
    pub failed: Vec<(String, String)>,
}

/// What somebody did.
#[derive(Debug, Clone)]
pub struct Act {
    /// The event.
    pub seq: u64,
    /// When.
    pub at: Timestamp,
    /// Who.
    pub who: String,
    /// What.
    pub what: String,
}

/// A work item.
#[derive(Debug, Clone)]
pub struct WorkItem {
    /// What is to be done.
    pub title: String,
    /// How it stands.
    pub state: String,
    /// It was shown to be done.
    pub verified: bool,
}

/// The page.
#[must_use]
pub fn page(page: &RunPage<'_>) -> Markup {
    let has_chart = page.density.events > 0;
    html! {
        (head(page))
        @if let Some((standing, told)) = &page.told { section { (note(*standing, &html! { p { (shown(told)) } })) } }
        @if has_chart { (shape(page)) }
        (filter(page))
        div .cols.wide-l #timeline {
            section .panel.tl aria-label="Timeline" data-live="timeline" data-run=(page.run) data-last=(page.density.events) {
                (timeline(page))
            }
            aside .side.stack aria-label="Beside the timeline" {
                @if let Some(chosen) = &page.chosen { (event::panel(chosen, &page.run)) }
                (facts(page))
                (work(page))
                (people(page))
            }
        }
    }
}

fn head(page: &RunPage<'_>) -> Markup {
    let live = !matches!(page.phase, RunPhase::Closed | RunPhase::Abandoned);
    html! {
        div .head {
            div {
                p .crumbs { a href="/runs" { "Runs" } " / " span .mono.wrap { (page.run) } }
                h1 { (heading(page.asked.as_deref())) }
                p {
                    (runs::state(page.phase, page.frozen, !page.waiting.is_empty(), page.mode))
                    " · " b { (shown(&page.principal)) } " · " (shown(&page.surface)) " · " (shown(&page.policy))
                    " · bundle " span .dig { (page.bundle) }
                    " · opened " (when::day_and_minute(page.opened, page.now)) " UTC, " (when::count(page.steps.into())) " steps"
                }
                @if !page.waiting.is_empty() {
                    p {
                        @match page.waiting.len() { 1 => { "1 of its calls waits for a person: " } count => { (count) " of its calls wait for a person: " } }
                        @for id in &page.waiting { a .mono href={ "/approvals/" (id) } { (id.get(..8).unwrap_or(id)) } " " }
                    }
                }
            }
            div .acts.run-acts {
                @if live && page.role >= Role::Approver { (orders(page)) }
                div .row {
                    a .btn href={ "/runs/" (page.run) "/verify" } { "Verify" }
                    @if page.role >= Role::Approver {
                        a .btn href={ "/audit/" (page.run) "/run.export?unverified=true" } download { "Export" }
                        a .btn href={ "/runs/" (page.run) "/replay" } { "Replay under another bundle" }
                    }
                }
            }
        }
    }
}

fn orders(page: &RunPage<'_>) -> Markup {
    let stopped = matches!(page.phase, RunPhase::Paused | RunPhase::Halted);
    html! {
        form .acts method="post" action={ "/runs/" (page.run) } {
            (csrf(page.csrf))
            label .sr for="order-note" { "Reason, for the record" }
            input #order-note type="text" name="note" maxlength="2000" placeholder="Reason, for the record";
            @if stopped { button .btn type="submit" name="do" value="resume" { "Let it go on" } }
            @else { button .btn type="submit" name="do" value="pause" { "Pause" } }
            @if page.phase != RunPhase::Halted { button .btn.no type="submit" name="do" value="halt" { "Halt" } }
        }
    }
}

fn shape(page: &RunPage<'_>) -> Markup {
    let chart = page.density.has_chart();
    html! {
        section .panel.pad aria-labelledby="h-strip" {
            div .sh {
                h2 #h-strip { @if chart { "Drift " (format!("{:.2}", page.density.drift_now())) } @else { "Where the verdicts lie" } }
                p {
                    @if chart { "line: drift · rings: tool risk that the request does not cover · below: " }
                    "all events; what is not allow stands out, the stricter the taller"
                }
            }
            div .scroll.end tabindex="0" role="region" aria-label="The shape of the run" { (chart::density(&page.density, &page.filter.query())) }
        }
    }
}

fn filter(page: &RunPage<'_>) -> Markup {
    let filter = &page.filter;
    let base = format!("/runs/{}", page.run);
    html! {
        form .filter role="search" method="get" action=(base) {
            label .sr for="q" { "Find in this run" }
            input #q type="search" name="find" value=(filter.find) placeholder="Find in this run: a tool or a rule" autocapitalize="off" spellcheck="false";
            @if let Some(only) = filter.only { input type="hidden" name="only" value=(only.as_str()); }
            button .btn.small type="submit" { "Find" }
            a .chip href=(base) aria-current=[filter.is_empty().then_some("true")] { "All events" }
            @for (verdict, count) in &page.counts {
                @if *verdict != Verdict::Allow && *count > 0 {
                    a .chip href={ (base) "?only=" (verdict.as_str()) } aria-current=[(filter.only == Some(*verdict)).then_some("true")] {
                        (marks::verdict(*verdict)) " " (when::count(*count))
                    }
                }
            }
            @if !page.people.is_empty() {
                a .chip href={ (base) "?only=people" } aria-current=[filter.people.then_some("true")] { "people" }
            }
        }
    }
}

fn timeline(page: &RunPage<'_>) -> Markup {
    let query = page.filter.query();
    let base = format!("/runs/{}", page.run);
    html! {
        @if let Some(at) = page.earlier {
            div .foldrow { span { "There is more before." } span .right { a href={ (base) "?at=" (at) (query) "#timeline" } rel="prev" { "Earlier" } " · " a href={ (base) "?at=1" (query) "#timeline" } { "from the start" } } }
        }
        @if page.parts.is_empty() { div .pad { p .soft { @if page.filter.is_empty() { "Nothing is recorded yet." } @else { "Nothing in this run is like that." } } } }
        @for part in &page.parts {
            @match part {
                Part::Step(rows) => { (step(rows, page)) }
                Part::Quiet { first, last, calls } => {
                    div .foldrow {
                        span { "Events " b { (when::count(*first)) " to " (when::count(*last)) } ": " (calls) " calls, each " (marks::verdict(Verdict::Allow)) }
                        span .right { a href={ (base) "?at=" (first) "&open=yes#e" (first) } { "show them" } }
                    }
                }
            }
        }
        @if let Some(at) = page.later {
            div .foldrow { span { "There is more behind." } span .right { a href={ (base) "?at=" (at) (query) "#timeline" } rel="next" { "Later" } " · " a href={ (base) "?" (query.trim_start_matches('&')) "#timeline" } { "to the end" } } }
        } @else {
            div .foldrow role="status" data-live="end" { span .muted { "End of the record so far." } }
        }
    }
}

fn step(rows: &[Row], page: &RunPage<'_>) -> Markup {
    let first = rows.first().map(|row| row.at);
    let on = page.chosen.as_ref().is_some_and(|chosen| rows.iter().any(|row| row.seq == chosen.seq));
    html! {
        article .step .on[on] {
            @for (place, row) in rows.iter().enumerate() {
                @let base = first.filter(|_| place > 0);
                div .ev .call[row.call.is_some()] id={ "e" (row.seq) } {
                    a .no href={ "/runs/" (page.run) "?at=" (row.seq) "&event=" (row.seq) "#e" (row.seq) } aria-label={ "event " (row.seq) } { (when::count(row.seq)) }
                    span .tm { @match base { None => { (when::clock_ms(row.at)) } Some(base) => { (after(base, row.at)) } } }
                    span .rail { @match row.mark { Some((verdict, enforced)) => { (marks::gate_mark(verdict, enforced)) } None => { i {} } } }
                    (content(row))
                }
            }
        }
    }
}

/// Seconds since the first event of a step.
fn after(base: Timestamp, at: Timestamp) -> String {
    let micros = at.micros_since(base);
    match micros {
        0..=59_999_999 => format!("+{}.{:03}", micros / 1_000_000, micros / 1_000 % 1_000),
        _ => format!("+{}", when::span(micros / 1_000_000)),
    }
}

fn content(row: &Row) -> Markup {
    let Some(call) = &row.call else {
        return html! {
            div .kv {
                span .k { (row.key) }
                div {
                    (shown(&row.words))
                    @if let Some(rule) = &row.rule { " " span .dig { (shown(rule)) } }
                    @if let Some((href, words)) = &row.link { " " a href=(href) { (words) } }
                    @if let Some(text) = &row.text { (text_of(text)) }
                }
            }
        };
    };
    html! {
        div {
            div .call-h {
                span .soft { (call.step) }
                @match &call.tool { Some(tool) => { span .tool { (shown(tool)) } } None => { span .soft { "thought" } } }
                span .cut-end.mono { (shown(&call.arguments)) }
                @if let Some((verdict, _)) = row.mark { (marks::verdict(verdict)) }
            }
            @if let Some(planned) = &call.planned { span .why.foreign { (foreign::start(planned, 300)) } }
            @if !row.words.is_empty() {
                span .why { (foreign::sentence(&row.words)) @if let Some(rule) = &row.rule { " " span .dig { (shown(rule)) } } }
            }
            @if let Some(opinion) = row.opinion { (opinion.shown()) }
        }
    }
}

/// A text of others, with what was taken out struck through in its place.
fn text_of(text: &Text) -> Markup {
    html! {
        span .sub.foreign {
            @if !text.by.is_empty() { span .by { (shown(&text.by)) } }
            (struck(text))
            @if text.cut { "…" }
        }
        (failed(text))
    }
}

/// The checks that failed, by the numbers under which the text has their places.
fn failed(text: &Text) -> Markup {
    html! {
        @if !text.failed.is_empty() {
            ol .failed-checks {
                @for (name, why) in &text.failed { li { (result(Standing::Bad, "FAIL")) " " code { (name) } " " (foreign::sentence(why)) } }
            }
        }
    }
}

/// Stretches of a text that are wrong, underlined and numbered. Where two overlap, the first is drawn.
fn underlined(text: &Text) -> Markup {
    let mut wrong = text.wrong.clone();
    wrong.sort_unstable();
    let mut from = 0;
    let mut pieces = Vec::new();
    for (start, end, number) in wrong {
        let (Some(before), Some(stretch)) = (text.text.get(from..start), text.text.get(start..end)) else {
            continue;
        };
        pieces.push((before, stretch, number));
        from = end;
    }
    html! {
        @for (before, stretch, number) in &pieces { (shown(before)) u .wrong { (shown(stretch)) } sup { (number) } }
        (shown(text.text.get(from..).unwrap_or_default()))
    }
}

pub(crate) fn struck(text: &Text) -> Markup {
    if text.edits.is_empty() {
        return underlined(text);
    }
    let mut edits = text.edits.clone();
    edits.sort_by_key(|edit| edit.0);
    let mut from = 0;
    let mut pieces = Vec::new();
    for (start, end, instead) in edits {
        let (Some(before), Some(gone)) = (text.text.get(from..start), text.text.get(start..end)) else {
            break;
        };
        pieces.push((before, gone, instead));
        from = end;
    }
    let rest = text.text.get(from..).unwrap_or_default();
    html! {
        @for (before, gone, instead) in &pieces {
            (shown(before)) del .gone { (shown(gone)) }
            @if !instead.is_empty() { " " ins .soft { (shown(instead)) } }
        }
        (shown(rest))
    }
}

fn facts(page: &RunPage<'_>) -> Markup {
    let run = |id: &String| html! { a .mono href={ "/runs/" (id) } { (id.get(..8).unwrap_or(id)) } " " };
    html! {
        section .panel.pad {
            h2 { "This run" }
            dl .facts {
                dt { "has read" } dd { @if page.labels.is_empty() { span .muted { "nothing, or it is no longer live" } } (shown(&page.labels.join(", "))) }
                @if let Some(parent) = &page.parent { dt { "opened by" } dd { (run(parent)) } }
                @if !page.children.is_empty() { dt { "opened" } dd { @for child in &page.children { (run(child)) } } }
                @if page.erased > 0 { dt { "erased" } dd { (when::count(page.erased)) " texts" } }
                dt { "export" } dd { code .wrap { "portcullis export " (page.run.get(..16).unwrap_or(&page.run)) } }
            }
        }
    }
}

fn work(page: &RunPage<'_>) -> Markup {
    html! {
        @if !page.work.is_empty() {
            section .panel.pad {
                h2 { "Work items" }
                ul .crit { @for item in &page.work {
                    li { (shown(&item.title)) @if item.verified { (result(Standing::Ok, &item.state)) } @else { (result(Standing::Idle, &item.state)) } }
                } }
            }
        }
    }
}

fn people(page: &RunPage<'_>) -> Markup {
    html! {
        @if !page.people.is_empty() {
            section .panel.pad {
                h2 { "People in this run" }
                ul .hist.acts-of { @for act in &page.people {
                    li { time { (when::clock(act.at)) } span { b { (shown(&act.who)) } " " (shown(&act.what)) " " a href={ "/runs/" (page.run) "?at=" (act.seq) "&event=" (act.seq) "#e" (act.seq) } { "event " (when::count(act.seq)) } } }
                } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_check_says_is_wrong_is_underlined_and_numbered() {
        let text = Text {
            text: "By hand, for 95 % of <them>.".into(),
            wrong: vec![(13, 15, 2), (0, 7, 1), (5, 9, 3), (90, 95, 4)],
            failed: vec![("CITATION_MATCH".into(), "names `doc_9`".into())],
            ..Text::default()
        };
        let html = text_of(&text).into_string();
        for part in [
            "<u class=\"wrong\">By hand</u><sup>1</sup>, for ",
            "<u class=\"wrong\">95</u><sup>2</sup> % of &lt;them&gt;.",
            "FAIL",
            "<code>doc_9</code>",
        ] {
            assert!(html.contains(part), "{part} in {html}");
        }
        assert_eq!(html.matches("<sup>").count(), 2, "{html}");
    }

    #[test]
    fn what_was_taken_out_is_struck_through_in_its_place() {
        let text = Text {
            text: "Hello. Send it to Bob. Bye".into(),
            edits: vec![(7, 22, String::new())],
            ..Text::default()
        };
        assert_eq!(struck(&text).into_string(), "Hello. <del class=\"gone\">Send it to Bob.</del> Bye");
        let wrong = Text { text: "größe".into(), edits: vec![(3, 4, String::new())], ..Text::default() };
        assert_eq!(struck(&wrong).into_string(), "größe", "an edit within a character strikes nothing");
    }
}
