//! What a change of the bundle would mean: shown beside every editor, before anything is saved.

use std::collections::BTreeMap;

use maud::{Markup, html};
use portcullis_core::bundle::{Diagnostic, Difference, Direction, Lint};
use portcullis_core::time::Timestamp;
use portcullis_core::verdict::Verdict;

use crate::diff::{self, FileDiff};
use crate::foreign::{sentence, shown};
use crate::marks::{Standing, note, result, verdict};
use crate::when;

/// Marks of changed calls that are drawn; the rest is a number.
const MARKS_MAX: usize = 40;
/// What is shown of a reason, in characters.
const REASON_CHARS: usize = 200;
/// Groups of changed calls that are listed.
const GROUPS_MAX: usize = 30;

/// See the [module documentation](self).
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// The beginning of the digest in force.
    pub from: String,
    /// The beginning of the digest that it would be.
    pub to: String,
    /// Why it does not load.
    pub mistakes: Vec<Diagnostic>,
    /// The texts of the files that have mistakes, by path.
    pub sources: BTreeMap<String, String>,
    /// What would be written.
    pub diffs: Vec<FileDiff>,
    /// The parts that differ.
    pub parts: Vec<Difference>,
    /// What is probably not meant.
    pub lints: Vec<Linted>,
    /// The tests of the bundle, where they were run.
    pub tests: Option<Tests>,
    /// Recorded runs, where they were judged.
    pub backtest: Option<Backtest>,
}

/// A lint, and whether the change brings it.
#[derive(Debug, Clone)]
pub struct Linted {
    /// The lint.
    pub lint: Lint,
    /// The bundle in force does not have it.
    pub new: bool,
}

/// The tests of a bundle.
#[derive(Debug, Clone, Default)]
pub struct Tests {
    /// Cases that hold.
    pub passed: usize,
    /// Cases that do not.
    pub failed: usize,
    /// Where and what.
    pub failures: Vec<(String, String)>,
}

/// What recorded runs would have met.
#[derive(Debug, Clone, Default)]
pub struct Backtest {
    /// Runs with calls that were judged.
    pub runs: usize,
    /// Those of them in which a call changes.
    pub runs_changed: usize,
    /// Calls that were judged under both.
    pub calls: usize,
    /// Calls that were judged under one bundle only.
    pub unmatched: usize,
    /// Runs that cannot be judged again.
    pub unreadable: usize,
    /// Runs that are too long for a page.
    pub too_long: usize,
    /// There was no time for all.
    pub cut: bool,
    /// When the oldest of them was opened.
    pub since: Option<Timestamp>,
    /// When this was made.
    pub now: Option<Timestamp>,
    /// How long it took.
    pub took_ms: u64,
    /// The calls that change, alike ones together.
    pub groups: Vec<Group>,
}

/// Which way a verdict changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Blast {
    /// Was stopped or held, and would go ahead.
    Passing,
    /// Would be stopped or held, and went ahead.
    Stopped,
    /// Milder, and does not go ahead either.
    Milder,
    /// Stricter, and did not go ahead before.
    Stricter,
    /// The same verdict for another reason.
    Reason,
}

impl Blast {
    /// The way from one verdict to another.
    #[must_use]
    pub fn of(old: Verdict, new: Verdict) -> Self {
        match (old.permits(), new.permits()) {
            (false, true) => Self::Passing,
            (true, false) => Self::Stopped,
            _ if new < old => Self::Milder,
            _ if new > old => Self::Stricter,
            _ => Self::Reason,
        }
    }

    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::Passing => "newly passing",
            Self::Stopped => "newly stopped",
            Self::Milder => "less strict",
            Self::Stricter => "stricter",
            Self::Reason => "for another rule",
        }
    }

    pub(crate) const fn is_looser(self) -> bool {
        matches!(self, Self::Passing | Self::Milder)
    }
}

/// Calls that change in the same way.
#[derive(Debug, Clone)]
pub struct Group {
    /// How many.
    pub calls: usize,
    /// Which way.
    pub blast: Blast,
    /// Their verdict.
    pub old: Verdict,
    /// What it would have been.
    pub new: Verdict,
    /// The rule that decides.
    pub rule: String,
    /// Its reason for the first of them.
    pub message: String,
    /// The tool.
    pub tool: String,
    /// The first of them: its run, and the event of its verdict.
    pub run: String,
    /// See `run`.
    pub event: u64,
}

impl Outcome {
    /// Whether the bundle would be the same.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        self.diffs.is_empty()
    }

    /// Whether any part allows more, as far as that can be said.
    fn loosened(&self) -> Vec<&Difference> {
        self.parts.iter().filter(|part| part.direction == Direction::Loosened).collect()
    }
}

/// All of it, in the order in which one asks: mistakes, what recorded runs say, what is written, what it permits, lints.
#[must_use]
pub fn view(outcome: &Outcome) -> Markup {
    html! {
        div #outcome .outcome data-part="outcome" {
            @if !outcome.mistakes.is_empty() { (mistakes(&outcome.mistakes, &outcome.sources)) }
            @if outcome.is_nothing() && outcome.mistakes.is_empty() {
                p .soft .gapped { "Nothing is changed yet. What a change would mean is shown here before it is saved." }
            }
            @if let Some(backtest) = &outcome.backtest { (backtested(backtest)) }
            @if !outcome.is_nothing() {
                div .cols {
                    section aria-labelledby="h-d" {
                        div .sh { h2 #h-d { "What will be written" } p { "bundle " span .dig { (outcome.from) } " → " span .dig { (outcome.to) } } }
                        div .stack { @for file in &outcome.diffs { (diff::view(file)) } }
                    }
                    @if outcome.mistakes.is_empty() { div .vstack { (permits(outcome)) (linted(outcome)) } }
                }
            } @else if outcome.mistakes.is_empty() && !outcome.lints.is_empty() { (linted(outcome)) }
        }
    }
}

fn mistakes(mistakes: &[Diagnostic], sources: &BTreeMap<String, String>) -> Markup {
    note(
        Standing::Bad,
        &html! {
            p { b { @if mistakes.len() == 1 { "This cannot be saved." } @else { "This cannot be saved: " (mistakes.len()) " mistakes." } } " The bundle before stays in force." }
            ul .list {
                @for mistake in mistakes.iter().take(20) {
                    li { span .mono { (shown(&mistake.file)) ":" (mistake.line) ":" (mistake.column) } " " (sentence(&mistake.message)) @if let Some(help) = &mistake.help { span .soft { " (" (sentence(help)) ")" } } @if let Some(source) = sources.get(&mistake.file) { (excerpt(mistake, source)) } }
                }
            }
        },
    )
}

/// The line of a mistake, with the wrong part marked.
fn excerpt(mistake: &Diagnostic, source: &str) -> Markup {
    let start = source.floor_char_boundary(mistake.span.start);
    let line = source.get(..start).and_then(|before| before.rfind('\n')).map_or(0, |newline| newline + 1);
    let end =
        source.get(start..).and_then(|rest| rest.find('\n')).map_or(source.len(), |newline| start + newline);
    let stop = source.ceil_char_boundary(mistake.span.end.max(start + 1)).min(end).max(start);
    let part = |from: usize, to: usize| source.get(from..to).unwrap_or_default();
    html! {
        pre .code.fold.excerpt { span .muted { (mistake.line) "  " } (shown(part(line, start))) @if stop > start { mark .wrong { (shown(part(start, stop))) } } @else { mark .wrong { "␣" } } (shown(part(stop, end))) }
    }
}

fn permits(outcome: &Outcome) -> Markup {
    let loosened = outcome.loosened();
    let unknown = outcome.parts.iter().any(|part| part.direction == Direction::Changed);
    let list = |direction: Direction| {
        html! {
            @for part in outcome.parts.iter().filter(|part| part.direction == direction) {
                li { (sentence(&part.part)) @if part.direction != Direction::Neutral { ": " (sentence(&part.old)) span .arrow { "→" } (sentence(&part.new)) } }
            }
        }
    };
    html! {
        section aria-labelledby="h-p" {
            div .sh { h2 #h-p { "Does it permit anything new?" } }
            @if !loosened.is_empty() {
                (note(Standing::Alert, &html! { p { b { "Yes." } " Less strict:" } ul { (list(Direction::Loosened)) } @if unknown { p { "Changed, and nobody can say in general which way:" } ul { (list(Direction::Changed)) } } }))
            } @else if unknown {
                (note(Standing::Alert, &html! { p { b { "It may." } " Changed, and nobody can say in general which way:" } ul { (list(Direction::Changed)) } }))
            } @else if outcome.parts.is_empty() {
                (note(Standing::Idle, &html! { p { b { "No." } " The files differ, and mean the same." } }))
            } @else {
                (note(Standing::Ok, &html! { p { b { "No." } " Each part is the same or stricter." } ul { (list(Direction::Tightened)) (list(Direction::Neutral)) } }))
            }
        }
    }
}

fn linted(outcome: &Outcome) -> Markup {
    html! {
        section aria-labelledby="h-li" {
            div .sh { h2 #h-li { "Checks" } }
            div .panel.lint { ul .list {
                @if let Some(tests) = &outcome.tests { (tested(tests)) }
                @for linted in outcome.lints.iter().take(20) {
                    @let lint = &linted.lint;
                    li {
                        (result(if linted.new { Standing::Alert } else { Standing::Idle }, lint.name))
                        " " span .mono.soft { (shown(&lint.diagnostic.file)) ":" (lint.diagnostic.line) }
                        p { (sentence(&lint.diagnostic.message)) @if let Some(help) = &lint.diagnostic.help { span .soft { "; " (sentence(help)) } } @if !linted.new { span .muted { " (as before)" } } }
                    }
                }
                @if outcome.lints.is_empty() { li { (result(Standing::Ok, "no rule is vacuous")) " Every rule can decide something, and none contradicts another." } }
            } }
        }
    }
}

fn tested(tests: &Tests) -> Markup {
    html! {
        @if tests.failed > 0 {
            li {
                (result(Standing::Bad, &format!("{} of {} policy tests fail", tests.failed, tests.failed + tests.passed)))
                @for (place, what) in &tests.failures { p { span .mono.soft { (shown(place)) } " " (shown(what)) } }
            }
        } @else if tests.passed > 0 {
            li { (result(Standing::Ok, &format!("{} policy tests pass", tests.passed))) }
        } @else {
            li { (result(Standing::Idle, "no policy tests")) " Put Markdown cases into " code { "tests/" } " of the bundle." }
        }
    }
}

fn backtested(found: &Backtest) -> Markup {
    let changed: usize = found.groups.iter().map(|group| group.calls).sum();
    let verdicts: usize =
        found.groups.iter().filter(|group| group.blast != Blast::Reason).map(|group| group.calls).sum();
    html! {
        section aria-labelledby="h-b" #backtest {
            div .sh {
                h2 #h-b {
                    @if found.calls == 0 { "No recorded call to judge" }
                    @else if verdicts == 0 { "On recorded runs it would have changed no verdict" }
                    @else { "On recorded runs it would have changed " (when::count(verdicts as u64)) " of " (when::count(found.calls as u64)) " verdicts" }
                }
                p {
                    @if found.calls == 0 { "Once agents have called tools, this says which verdicts would have changed." }
                    @if found.calls > 0 {
                        (found.runs) @if found.runs == 1 { " run" } @else { " runs" }
                        @if let (Some(since), Some(now)) = (found.since, found.now) { " since " (when::day_and_minute(since, now)) }
                        ", " (found.took_ms) " ms"
                        @if found.runs_changed > 0 { ", " (found.runs_changed) " of them touched" }
                    }
                }
            }
            @if found.calls > 0 {
                div .panel {
                    div .pad { (bar(found, changed)) }
                    @if !found.groups.is_empty() { (groups(&found.groups)) }
                }
                p .small.muted.after {
                    "A verdict that changes early in a run changes what comes after it: the agent of a record does not react to the gate."
                    @if found.cut { " There was no time for all recorded runs; " code { "portcullis policy diff" } " takes as many as you like." }
                    @if found.unmatched > 0 { " " (found.unmatched) " calls were judged under one bundle only, because an earlier verdict differs." }
                    @if found.too_long > 0 { " " (found.too_long) " long runs were left out." }
                    @if found.unreadable > 0 { " " (found.unreadable) " runs cannot be judged again: what they need was erased or withheld." }
                }
            }
        }
    }
}

/// Unchanged verdicts are one bar; each changed call is one mark, so that a few never look like nothing.
fn bar(found: &Backtest, changed: usize) -> Markup {
    let same = found.calls - changed.min(found.calls);
    let kinds = [Blast::Passing, Blast::Stopped, Blast::Milder, Blast::Stricter, Blast::Reason];
    let counts: Vec<(Blast, usize, Verdict)> = kinds
        .into_iter()
        .filter_map(|kind| {
            let of: Vec<&Group> = found.groups.iter().filter(|group| group.blast == kind).collect();
            let calls: usize = of.iter().map(|group| group.calls).sum();
            Some((kind, calls, of.first()?.new))
        })
        .collect();
    let said: Vec<String> =
        counts.iter().map(|(kind, calls, _)| format!("{calls} {}", kind.words())).collect();
    let label = format!(
        "{same} verdicts stay the same{}{}",
        if said.is_empty() { "" } else { ", " },
        said.join(", ")
    );
    let wide = if same > 0 { 620 } else { 80 };
    let mut x = wide + 30;
    let placed: Vec<(Blast, usize, Verdict, usize)> = counts
        .into_iter()
        .map(|(kind, calls, new)| {
            let at = x;
            let columns = calls.min(MARKS_MAX).div_ceil(2);
            x += (12 * columns).max(7 * (kind.words().len() + 6)) + 20;
            (kind, calls, new, at)
        })
        .collect();
    html! {
        div .scroll tabindex="0" role="region" aria-label="Verdicts, drawn" {
            svg .ch.bt viewBox={ "0 0 " (x.max(900)) " 48" } role="img" aria-label=(label) {
                text x="0" y="12" { (when::count(same as u64)) " the same" }
                @if same > 0 { rect .bar1 x="0" y="20" width=(wide) height="22" {} }
                @for (kind, calls, new, at) in placed {
                    g class=(new.as_str()) {
                        text .th-l x=(at) y="12" { (when::count(calls as u64)) " " (kind.words()) }
                        @for mark in 0..calls.min(MARKS_MAX) {
                            rect .fill x=(at + 12 * (mark / 2)) y=(20 + 12 * (mark % 2)) width="10" height="10" {}
                        }
                    }
                }
            }
        }
    }
}

/// The beginning of a reason of ours.
fn cut(text: &str) -> String {
    match text.char_indices().nth(REASON_CHARS) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
    }
}

fn groups(groups: &[Group]) -> Markup {
    html! {
        div .scroll tabindex="0" role="region" aria-label="Calls that change" {
            table .t.cards {
                thead { tr { th .nums scope="col" { "Calls" } th scope="col" { "Verdict" } th scope="col" { "Tool" } th scope="col" { "Rule and reason" } th scope="col" { "Means" } th scope="col" { span .sr { "Show" } } } }
                tbody {
                    @for group in groups.iter().take(GROUPS_MAX) {
                        tr {
                            td .nums { b { (group.calls) } }
                            td .nowrap { (verdict(group.old)) span .arrow { "→" } (verdict(group.new)) }
                            td .mono { (shown(&group.tool)) }
                            td .wrap { span .mono { (shown(&group.rule)) } p .soft { (sentence(&cut(&group.message))) } }
                            td .nowrap { @if group.blast.is_looser() { (result(Standing::Alert, group.blast.words())) } @else { (group.blast.words()) } }
                            td .nums { a href={ "/runs/" (group.run) "?at=" (group.event) "&event=" (group.event) "#e" (group.event) } { "first" span .sr { " call of these" } } }
                        }
                    }
                }
            }
            @if groups.len() > GROUPS_MAX { p .pager { (groups.len() - GROUPS_MAX) " further kinds of changes are not listed." } }
        }
    }
}
