//! One run as evidence: its checks, its summary, its files, its raw log.

use maud::{Markup, html};
use portcullis_core::time::Timestamp;

use crate::foreign::{shown, start};
use crate::marks::{Standing, note, result};
use crate::runs::Line;
use crate::when;

/// Rows of the raw log on the page; the file has all of them.
pub const LOG_ROWS: usize = 200;
/// What a row shows of a reason, in characters.
const REASON_CHARS: usize = 240;

/// Which run the page is about, and which others there are.
#[derive(Debug)]
pub struct Choice<'a> {
    /// The latest runs.
    pub runs: &'a [Line],
    /// The one that is shown.
    pub run: Option<&'a str>,
    /// The time of the page.
    pub now: Timestamp,
}

/// The result of a check.
#[derive(Debug, Clone)]
pub struct Check {
    /// PASS, FAIL or N/A.
    pub status: String,
    /// What was checked.
    pub kind: String,
    /// What the check looks at.
    pub description: String,
    /// What it found.
    pub details: String,
    /// The step that it is about.
    pub step: u64,
    /// The event of the reply.
    pub event: Option<u64>,
}

/// What the page of checks says.
#[derive(Debug)]
pub enum Verified {
    /// There is no run with a reply.
    Nothing,
    /// They were not asked for yet.
    NotAsked,
    /// Why there are none.
    Refused(String),
    /// The checks, and whether the reply went to a person.
    Checks(Vec<Check>),
}

/// A figure of the summary.
#[derive(Debug, Clone)]
pub struct Metric {
    /// Its name.
    pub label: String,
    /// The figure.
    pub value: u64,
    /// What is counted.
    pub definition: String,
}

/// A file of the pack.
#[derive(Debug, Clone)]
pub struct File {
    /// Its name.
    pub name: String,
    /// Its size, in bytes.
    pub bytes: u64,
}

/// A line of the raw log.
#[derive(Debug, Clone)]
pub struct LogRow {
    /// The step.
    pub step: u64,
    /// What happened.
    pub event_type: String,
    /// What policy decided.
    pub policy_action: String,
    /// Why, or the particulars.
    pub reason: String,
    /// When.
    pub at: String,
}

/// What the page of files has.
#[derive(Debug)]
pub enum Files {
    /// There is no run.
    Nothing,
    /// Nothing was asked for yet.
    NotAsked,
    /// Why there is no pack, and whether one can be had without checks.
    Refused {
        /// Why.
        why: String,
        /// No reply of the run was verified: a pack can be made all the same.
        unverified: bool,
    },
    /// The pack.
    Pack {
        /// The figures.
        metrics: Vec<Metric>,
        /// The files.
        files: Vec<File>,
        /// The log.
        log: Vec<LogRow>,
        /// Lines of the log that are not on the page.
        more: usize,
        /// It was made whether or not replies were verified.
        unverified: bool,
        /// Replies were.
        checked: bool,
    },
}

fn choose(choice: &Choice<'_>, action: &str, button: &str) -> Markup {
    html! {
        form .row.runpick method="get" action=(action) {
            label for="run" { b { "Run" } }
            select #run name="run" {
                @for line in choice.runs {
                    option value=(line.run) selected[choice.run == Some(line.run.as_str())] {
                        (line.run.get(..8).unwrap_or(&line.run)) " · "
                        @match &line.asked { Some(asked) => { (plain(asked)) } None => { "nothing was said" } }
                        " · " (plain(&line.policy)) " · " (when::day_and_minute(line.opened, choice.now))
                    }
                }
            }
            button .btn.main type="submit" name="show" value="yes" { (button) }
        }
    }
}

/// A text for an option, where there is no room for marks: what cannot be seen is escaped.
fn plain(text: &str) -> String {
    portcullis_core::display::start_of(text, 60)
}

/// The checks of a run's replies.
#[must_use]
pub fn verification(choice: &Choice<'_>, verified: &Verified) -> Markup {
    html! {
        div .head { div { h1 { "Verification Results" } p { "Checks hold a reply against what was asked and the documents it cites. No model is asked." } } }
        @if !choice.runs.is_empty() { (choose(choice, "/verification", "Run Verification Checks")) }
        @match verified {
            Verified::Nothing => { (note(Standing::Alert, &html! { p { b { "No simulation has been run. Please run a simulation first." } } p { "Or let an agent come to the gate: the checks are about what it answers." } })) }
            Verified::NotAsked => { p .soft { "Choose a run. Its last replies are looked at as they are recorded." } }
            Verified::Refused(why) => { (note(Standing::Bad, &html! { p { (shown(why)) } })) }
            Verified::Checks(checks) => { (checked(choice, checks)) }
        }
    }
}

fn checked(choice: &Choice<'_>, checks: &[Check]) -> Markup {
    let count = |status: &str| checks.iter().filter(|check| check.status == status).count();
    let (passed, failed, none) = (count("PASS"), count("FAIL"), count("N/A"));
    let run = choice.run.unwrap_or_default();
    html! {
        div .stack {
            @if checks.is_empty() {
                (note(Standing::Alert, &html! { p { "No reply of this run was checked: the agent has answered nothing, or the bundle asks for no checks (" code { "[verification]" } ")." } }))
            } @else {
                (note(Standing::Ok, &html! { p { b { "Verification checks completed!" } " " (passed) " passed, " (failed) " failed, " (none) " not applicable." } }))
            }
            @if failed > 0 {
                (note(Standing::Alert, &html! { p { b { "Escalation." } " A check failed. Where the policy wants it, the reply is held for a person: " a href={ "/runs/" (run) } { "see the run" } "." } }))
            }
        }
        @if !checks.is_empty() {
            section .under aria-labelledby="h-c" {
                div .sh { h2 #h-c { "Checks of the replies of " a href={ "/runs/" (run) } { "run " (run.get(..8).unwrap_or(run)) } } }
                div .panel.scroll tabindex="0" role="region" aria-label="Checks" {
                    table .t.cards {
                        thead { tr { th scope="col" { "Result" } th scope="col" { "Check" } th scope="col" { "What it looks at" } th scope="col" { "Details" } th scope="col" { "Event" } } }
                        tbody { @for check in checks { (row(run, check)) } }
                    }
                }
            }
        }
    }
}

fn row(run: &str, check: &Check) -> Markup {
    let standing = match check.status.as_str() {
        "PASS" => Standing::Ok,
        "FAIL" => Standing::Bad,
        _ => Standing::Idle,
    };
    html! {
        tr .failrow[standing == Standing::Bad] {
            td { (result(standing, &check.status)) }
            td .mono { (check.kind) }
            td .wrap { (crate::foreign::sentence(&check.description)) }
            td .soft.wrap { (crate::foreign::sentence(&check.details)) }
            td .nowrap {
                @match check.event {
                    Some(event) => { a href={ "/runs/" (run) "?at=" (event) "&event=" (event) "#e" (event) } { "step " (check.step) ", output" } }
                    None => { "step " (check.step) }
                }
            }
        }
    }
}

/// The run as files.
#[must_use]
pub fn audit(choice: &Choice<'_>, files: &Files) -> Markup {
    html! {
        div .head { div { h1 { "Audit Log & Exports" } p { "One run as files that somebody else can check, offline, with " code { "portcullis governance --check" } " and " code { "portcullis verify" } "." } } }
        @if !choice.runs.is_empty() { (choose(choice, "/audit", "Generate & Export All Artifacts")) }
        @match files {
            Files::Nothing => { (note(Standing::Alert, &html! { p { b { "No simulation has been run. Please run a simulation first." } } p { "Or let an agent come to the gate: each of its runs can be exported." } })) }
            Files::NotAsked => { p .soft { "Choose a run. Its files are made from the record as it stands." } }
            Files::Refused { why, unverified } => {
                (note(Standing::Alert, &html! {
                    p { (shown(why)) }
                    @if *unverified { p { a href={ "/audit?show=yes&unverified=true&run=" (choice.run.unwrap_or_default()) } { "Make them without checks" } ", and let them say so." } }
                }))
            }
            Files::Pack { metrics, files, log, more, unverified, checked } => {
                @if *unverified && !checked { section { (note(Standing::Alert, &html! { p { "No reply of this run was verified. The files say so." } })) } }
                (pack(choice, metrics, files, *unverified)) (raw(choice, log, *more, *unverified)) }
        }
    }
}

fn address(run: &str, file: &str, unverified: bool) -> String {
    let query = if unverified { "?unverified=true" } else { "" };
    format!("/audit/{run}/{file}{query}")
}

fn pack(choice: &Choice<'_>, metrics: &[Metric], files: &[File], unverified: bool) -> Markup {
    let run = choice.run.unwrap_or_default();
    html! {
        div .cols {
            section aria-labelledby="h-s" {
                div .sh { h2 #h-s { "Summary Report" } a .more href=(address(run, "summary_report.json", unverified)) { "as JSON" } }
                div .panel.scroll tabindex="0" role="region" aria-label="Summary" {
                    table .t { tbody { @for metric in metrics {
                        tr { th .wrap scope="row" { (metric.label) p .small.muted { (crate::foreign::sentence(&metric.definition)) } } td .nums { b { (when::count(metric.value)) } } }
                    } } }
                }
            }
            section aria-labelledby="h-f" {
                div .sh { h2 #h-f { "Artifacts" } }
                div .panel.scroll tabindex="0" role="region" aria-label="Artifacts" {
                    table .t.files { tbody { @for file in files {
                        tr { td { a .mono href=(address(run, &file.name, unverified)) download { (file.name) } } td .soft { (says(&file.name)) } td .nums.nowrap { (size(file.bytes)) } }
                    } } }
                }
                p .row.under { a .btn.main href=(address(run, "audit_artifacts.zip", unverified)) download { "Download All Artifacts as ZIP" } }
            }
        }
    }
}

fn says(name: &str) -> &'static str {
    match name {
        "summary_report.json" | "summary_report.md" => "six metrics with their definitions",
        "runtime_policy.json" => "policy and tools in force",
        "verification_results.json" => "every check of every reply",
        "audit_log.jsonl" => "the run in seven columns",
        "failure_mode_analysis.md" => "what was stopped, and what nearly was",
        "residual_risk_summary.md" => "what happened all the same, and what was not examined",
        "controls.json" | "controls.md" => "what is evidence for which control",
        "run.export" => "the record, chained",
        "evidence_manifest.json" => "hashes of all that went in and came out",
        "evidence_manifest.note" => "the signature over the manifest",
        _ => "",
    }
}

fn size(bytes: u64) -> String {
    match bytes {
        0..=999 => format!("{bytes} B"),
        1_000..=999_999 => format!("{}.{} KB", bytes / 1_000, bytes / 100 % 10),
        _ => format!("{}.{} MB", bytes / 1_000_000, bytes / 100_000 % 10),
    }
}

fn raw(choice: &Choice<'_>, log: &[LogRow], more: usize, unverified: bool) -> Markup {
    let run = choice.run.unwrap_or_default();
    html! {
        section aria-labelledby="h-l" {
            div .sh { h2 #h-l { "Raw log" } @if more > 0 { p { (when::count(more as u64)) " further lines are in the file" } } a .more href=(address(run, "audit_log.jsonl", unverified)) download { "audit_log.jsonl" } }
            div .panel.scroll tabindex="0" role="region" aria-label="Raw log" {
                table .t.cards {
                    thead { tr { th scope="col" .nums { "Step" } th scope="col" { "event_type" } th scope="col" { "policy_action" } th scope="col" { "policy_reason, payload" } th scope="col" { "Time" } } }
                    tbody { @for row in log { tr {
                        td .nums { (row.step) }
                        td .mono { (row.event_type) }
                        td { (action(&row.policy_action)) }
                        td .wrap { (start(&row.reason, REASON_CHARS)) }
                        td .nowrap.mono { (row.at) }
                    } } }
                }
            }
        }
    }
}

pub(crate) fn action(action: &str) -> Markup {
    match action {
        "ALLOWED" => result(Standing::Ok, action),
        "DENIED" => result(Standing::Bad, action),
        "" => html! {},
        _ => result(Standing::Alert, action),
    }
}
