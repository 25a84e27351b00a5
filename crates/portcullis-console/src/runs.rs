//! The list of runs: newest first, a page at a time, and never a count of all.

use maud::{Markup, html};
use portcullis_core::event::Mode;
use portcullis_core::state::progress::{RunPhase, VerdictCounts};
use portcullis_core::time::Timestamp;
use portcullis_core::verdict::Verdict;

use crate::foreign::{PREVIEW_CHARS, shown, start};
use crate::marks::{self, Standing, result};
use crate::when;

/// A run in the list.
#[derive(Debug, Clone)]
pub struct Line {
    /// The run.
    pub run: String,
    /// When it was opened.
    pub opened: Timestamp,
    /// The first thing that was said in it.
    pub asked: Option<String>,
    /// On whose behalf.
    pub principal: String,
    /// How the agent came in.
    pub surface: String,
    /// The runtime policy.
    pub policy: String,
    /// How often each verdict was given.
    pub verdicts: VerdictCounts,
    /// Steps.
    pub steps: u32,
    /// Events.
    pub events: u64,
    /// Requests that wait.
    pub waiting: u64,
    /// Whether verdicts are enforced.
    pub mode: Mode,
    /// How it stands.
    pub phase: RunPhase,
    /// A freeze stops it.
    pub frozen: bool,
}

/// What to look for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wanted {
    /// A principal, the start of an id, or words of what a list shows of a run.
    pub find: String,
    /// Only those that stand like this.
    pub state: State,
}

/// How runs stand.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum State {
    /// In any way.
    #[default]
    Any,
    /// Somebody is writing them.
    Live,
    /// Something waits for a person.
    Held,
    /// Something was denied, or they were halted.
    Stopped,
}

impl State {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Any, Self::Live, Self::Held, Self::Stopped];

    /// The word in the address.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Any => "all",
            Self::Live => "live",
            Self::Held => "held",
            Self::Stopped => "stopped",
        }
    }

    /// The state of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == name)
    }
}

/// The list.
#[derive(Debug)]
pub struct List<'a> {
    /// The runs.
    pub lines: &'a [Line],
    /// What was looked for.
    pub wanted: &'a Wanted,
    /// Where the next page begins, if there is one.
    pub next: Option<String>,
    /// The time of the page.
    pub now: Timestamp,
    /// It is not the first page.
    pub later: bool,
}

/// The page.
#[must_use]
pub fn list(list: &List<'_>) -> Markup {
    html! {
        div .head { div { h1 { "Runs" } } }
        form .filter role="search" method="get" action="/runs" {
            label .sr for="p" { "Find runs" }
            input #p type="search" name="find" value=(list.wanted.find) placeholder="Principal, start of an id, or words" autocapitalize="off" spellcheck="false";
            @if list.wanted.state != State::Any { input type="hidden" name="state" value=(list.wanted.state.as_str()); }
            button .btn type="submit" { "Find" }
        }
        nav .row.filter aria-label="Which runs" {
            @for state in State::ALL {
                a .chip href=(link(state, &list.wanted.find, None)) aria-current=[(state == list.wanted.state).then_some("true")] {
                    (capital(state.as_str()))
                }
            }
        }
        section .panel aria-label="Runs" data-live="runs" {
            @if list.lines.is_empty() { (none(list)) } @else { (table(list)) }
            div .pager {
                span { "Newest first, times in UTC" }
                span .right.row {
                    @if list.later { a .btn.small href=(link(list.wanted.state, &list.wanted.find, None)) { "Newest" } }
                    @if let Some(next) = &list.next { a .btn.small href=(link(list.wanted.state, &list.wanted.find, Some(next))) rel="next" { "Older" } }
                }
            }
        }
    }
}

fn none(list: &List<'_>) -> Markup {
    let any = list.wanted.state == State::Any && list.wanted.find.is_empty();
    html! {
        div .pad.flow {
            @if any && !list.later {
                p { b { "No agent has come to the gate yet." } }
                p .soft { "A run begins with the first message of an agent that comes through " code { "portcullis mcp" } ", a hook or the API. " a href="/" { "How to put the gate in front of one" } }
            } @else {
                p .soft { "None of these runs is like that." @if list.next.is_some() { " Look at older ones." } }
            }
        }
    }
}

fn link(state: State, find: &str, before: Option<&str>) -> String {
    let mut query = vec![format!("state={}", state.as_str())];
    if !find.is_empty() {
        query.push(format!("find={}", percent(find)));
    }
    query.extend(before.map(|before| format!("before={before}")));
    format!("/runs?{}", query.join("&"))
}

/// A text as a part of a query.
#[must_use]
pub fn percent(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                shown.push(char::from(byte))
            }
            _ => shown.push_str(&format!("%{byte:02X}")),
        }
    }
    shown
}

fn table(list: &List<'_>) -> Markup {
    html! {
        div .scroll tabindex="0" role="region" aria-label="Table of runs" {
            table .t.runs {
                thead { tr {
                    th scope="col" { "Opened" } th scope="col" { "Run" } th scope="col" { "Asked for" } th scope="col" { "Principal" }
                    th scope="col" { "Surface" } th scope="col" { "Policy" } th scope="col" { "Strictest" } th scope="col" { "Verdicts" }
                    th scope="col" .nums { "Steps" } th scope="col" .nums { "Events" } th scope="col" .nums { "Waiting" } th scope="col" { "State" }
                } }
                tbody { @for line in list.lines { (row(line, list.now)) } }
            }
        }
    }
}

fn row(line: &Line, now: Timestamp) -> Markup {
    let href = format!("/runs/{}", line.run);
    html! {
        tr data-id=(line.run) {
            td .nowrap { (when::day_and_minute(line.opened, now)) }
            td { a .mono href=(href) { (line.run.get(..8).unwrap_or(&line.run)) } }
            td .ask-c {
                @match &line.asked {
                    Some(asked) => { a .plainl href=(href) { (start(asked, 120)) } }
                    None => { span .muted { "nothing was said" } }
                }
            }
            td .nowrap { (shown(&line.principal)) }
            td { (shown(&line.surface)) }
            td .nowrap.pol-c { (start(&line.policy, 32)) }
            td .nowrap { @match strictest(&line.verdicts) { Some(verdict) => { (marks::verdict(verdict)) } None => { span .muted { "none yet" } } } }
            td { (spark(&line.verdicts)) }
            td .nums { (when::count(line.steps.into())) }
            td .nums { (when::count(line.events)) }
            td .nums { @if line.waiting > 0 { b .review { (line.waiting) } } @else { "" } }
            td .nowrap { (state(line.phase, line.frozen, line.waiting > 0, line.mode)) }
        }
    }
}

/// How a run stands, in a word.
#[must_use]
pub fn state(phase: RunPhase, frozen: bool, held: bool, mode: Mode) -> Markup {
    let live = !matches!(phase, RunPhase::Closed | RunPhase::Abandoned);
    html! {
        @match phase {
            _ if live && frozen => { (result(Standing::Bad, "frozen")) }
            RunPhase::Halted => { (result(Standing::Bad, "halted")) }
            RunPhase::Abandoned => { (result(Standing::Idle, "abandoned")) }
            RunPhase::Closed => { span .muted { "closed" } }
            _ if held => { (result(Standing::Alert, "held")) }
            RunPhase::Paused => { (result(Standing::Alert, "paused")) }
            RunPhase::Clarifying => { (result(Standing::Alert, "asked back")) }
            RunPhase::Running => { b { "live" } }
        }
        @if mode == Mode::Observe { " " span .muted { "only observed" } }
    }
}

fn counts(verdicts: &VerdictCounts) -> [(Verdict, u32); 8] {
    [
        (Verdict::Allow, verdicts.allow),
        (Verdict::Warn, verdicts.warn),
        (Verdict::Modify, verdicts.modify),
        (Verdict::Clarify, verdicts.clarify),
        (Verdict::Pause, verdicts.pause),
        (Verdict::Review, verdicts.review),
        (Verdict::Deny, verdicts.deny),
        (Verdict::Halt, verdicts.halt),
    ]
}

/// The strictest verdict that was given.
#[must_use]
pub fn strictest(verdicts: &VerdictCounts) -> Option<Verdict> {
    counts(verdicts).into_iter().rev().find(|(_, count)| *count > 0).map(|(verdict, _)| verdict)
}

/// How often each verdict was given: a bar each, by its logarithm, in the order from mild to strict.
fn spark(verdicts: &VerdictCounts) -> Markup {
    let all = counts(verdicts);
    let said: Vec<String> = all
        .iter()
        .filter(|(_, count)| *count > 0)
        .map(|(verdict, count)| format!("{count} {}", verdict.as_str()))
        .collect();
    let said = if said.is_empty() { "no verdicts".to_owned() } else { said.join(", ") };
    let high = |count: u32| (5.0 + 3.6 * f64::from(count).log10()).min(14.0);
    html! {
        svg .ch.spark viewBox="0 0 84 14" role="img" aria-label=(said) {
            title { (said) }
            @for (place, (verdict, count)) in all.iter().enumerate() {
                @let height = if *count == 0 { 1.0 } else { high(*count) };
                rect class={ @if *count == 0 || *verdict == Verdict::Allow { "bar1" } @else { "fill " (verdict.as_str()) } }
                    x=(place * 10) y=(format!("{:.1}", 14.0 - height)) width="7" height=(format!("{height:.1}")) {}
            }
        }
    }
}

pub(crate) fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect()
}

/// The beginning of what a run was asked, for a heading.
#[must_use]
pub fn heading(asked: Option<&str>) -> Markup {
    match asked {
        Some(asked) => start(asked, PREVIEW_CHARS / 2),
        None => html! { "A run in which nothing was asked" },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_of_others_stays_in_its_place() {
        assert_eq!(
            link(State::Held, "a&b=\"c", Some("00ff")),
            "/runs?state=held&find=a%26b%3D%22c&before=00ff"
        );
    }

    #[test]
    fn the_strictest_verdict_is_found() {
        let verdicts = VerdictCounts { allow: 9, review: 1, ..VerdictCounts::default() };
        assert_eq!(strictest(&verdicts), Some(Verdict::Review));
        assert_eq!(strictest(&VerdictCounts::default()), None);
    }
}
