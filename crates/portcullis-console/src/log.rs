//! The transparency log and its witnesses; and what the verifier says of a file that somebody brings.

use maud::{Markup, html};

use crate::foreign::{sentence, shown};
use crate::frame::csrf;
use crate::marks::{Standing, note, result};
use crate::when;

/// The state of the log.
#[derive(Debug, Clone)]
pub enum Log {
    /// The first run makes it.
    None,
    /// It cannot be read.
    Unreadable(String),
    /// As it is.
    Is(Status),
}

/// The state of a log that can be read.
#[derive(Debug, Clone, Default)]
pub struct Status {
    /// Its name.
    pub origin: String,
    /// Leaves of the tree that was signed last.
    pub size: u64,
    /// The beginning of its root.
    pub root: String,
    /// The witnesses that are asked, by name.
    pub witnesses: Vec<String>,
    /// Leaves that they have seen; none without witnesses.
    pub witnessed: Option<u64>,
    /// Leaves that wait for a place.
    pub waiting: u64,
    /// Segments whose end is not in the log.
    pub open: u64,
    /// Writers whose signatures it takes.
    pub writers: usize,
    /// Why it takes nothing more.
    pub frozen: Option<String>,
    /// What it waits for, since when, and whether a witness saw another tree.
    pub waits: Option<(String, String, bool)>,
    /// Why its thread cannot go on.
    pub failure: Option<String>,
}

/// What a witness says that saw another tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forked {
    /// In its words.
    pub why: String,
    /// Since when that is known.
    pub since: String,
}

/// The state of the log, the worst first.
#[must_use]
pub fn view(log: &Log) -> Markup {
    html! {
        section aria-labelledby="h-log" {
            div .sh { h2 #h-log { "Transparency log and witnesses" } p { "the heads of all runs in one tree, so that none is rewritten or left out unnoticed" } }
            @match log {
                Log::None => { p .soft { "There is no log yet. The first run makes it." } }
                Log::Unreadable(why) => { (note(Standing::Bad, &html! { p { b { "The log cannot be read." } " " (shown(why)) } })) }
                Log::Is(status) => { (standing(status)) (facts(status)) }
            }
        }
    }
}

fn standing(status: &Status) -> Markup {
    match (&status.waits, &status.frozen, &status.failure) {
        (Some((why, since, true)), ..) => forked(&Forked { why: why.clone(), since: since.clone() }),
        (_, Some(why), _) => note(
            Standing::Bad,
            &html! { p { b { "The log is frozen." } " It takes nothing more: " (sentence(why)) "." } },
        ),
        (_, _, Some(why)) => note(
            Standing::Bad,
            &html! { p { b { "The log does not go on." } " Runs go on without being anchored in it: " (sentence(why)) "." } },
        ),
        (Some((why, since, false)), ..) => note(
            Standing::Alert,
            &html! { p { b { "The log waits for its witnesses" } " since " (since) ". Nothing is signed meanwhile: " (sentence(why)) "." } },
        ),
        _ if status.witnesses.is_empty() => note(
            Standing::Alert,
            &html! { p { b { "No witness." } " Only the log itself says that everyone is shown the same tree. Name witnesses in " code { "log/witnesses.policy" } "." } },
        ),
        _ if status.witnessed == Some(status.size) => {
            note(Standing::Ok, &html! { p { b { "Its witnesses have seen all of it." } } })
        }
        _ => note(
            Standing::Idle,
            &html! { p { "Its witnesses have seen " (when::count(status.witnessed.unwrap_or(0))) " of " (when::count(status.size)) " leaves." } },
        ),
    }
}

/// The worst that the console can say: somebody may have shown two histories.
pub(crate) fn forked(forked: &Forked) -> Markup {
    html! {
        div .worst role="alert" {
            p .lead { "A witness saw another tree." }
            p { "Somebody signed two histories with the key of this log: what one reader was shown is not what another was. Since " (forked.since) ", nothing is signed any more." }
            p .mono .wrap { (sentence(&forked.why)) }
            ol .worst-steps {
                li { "Keep everything: the store, the log and the key as they are." }
                li { "Tell everyone who relies on this log." }
                li { "Find out who had the key. Only where a witness is known to have lost its state, take it out of " code { "log/witnesses.policy" } "." }
                li { "Otherwise begin a new log: " code { "portcullis log rotate" } "." }
            }
        }
    }
}

/// The same in a line, for pages that are about something else.
pub(crate) fn forked_in_short() -> Markup {
    html! {
        p .worst.short role="alert" { b { "A witness saw another tree." } " Somebody signed two histories with the key of this log, and nothing is signed any more. " a href="/" { "What to do" } }
    }
}

fn facts(status: &Status) -> Markup {
    html! {
        div .panel.pad.under {
            dl .facts {
                dt { "log" } dd .wrap { (shown(&status.origin)) }
                dt { "tree" } dd { (when::count(status.size)) @if status.size == 1 { " leaf" } @else { " leaves" } ", root " span .dig { (status.root) } }
                dt { "witnesses" } dd { @if status.witnesses.is_empty() { (result(Standing::Idle, "none")) } @else { (shown(&status.witnesses.join(", "))) @if let Some(seen) = status.witnessed { ", have seen " (when::count(seen)) } } }
                dt { "on the way" } dd { (when::count(status.waiting)) " leaves wait for a place, " (when::count(status.open)) " segments are open" }
                dt { "writers" } dd { (status.writers) }
            }
        }
    }
}

/// What the verifier says of a file.
#[derive(Debug, Clone)]
pub struct Verified {
    /// `VALID`, `INCOMPLETE` or `INVALID`.
    pub status: &'static str,
    /// What is wrong, in the verifier's words, where it is, and the attack's name.
    pub failure: Option<(String, String, String)>,
    /// Every check: its name, `pass`, `FAIL` or `not checked`, what it found.
    pub checks: Vec<(String, &'static str, String)>,
    /// The run, as the file says.
    pub run: Option<String>,
    /// Whether this gate has that run.
    pub here: bool,
    /// Its events.
    pub events: u64,
    /// Its payloads: named, verified, withheld, erased.
    pub payloads: (u64, u64, u64, u64),
    /// The name of the file.
    pub name: String,
    /// What it was held against, in words.
    pub against: String,
    /// What follows a mistake was checked as well: in a pack each file stands for itself.
    pub all_checked: bool,
}

/// What there is to say of an upload.
#[derive(Debug, Clone)]
pub enum Upload {
    /// It is no export.
    Refused(String),
    /// What was found.
    Verified(Box<Verified>),
}

/// The form that takes a file, and what was found of the last one.
#[must_use]
pub fn upload(token: &str, found: Option<&Upload>) -> Markup {
    html! {
        section aria-labelledby="h-up" #verify {
            div .sh { h2 #h-up { "Verify an export" } p { "any run’s " code { "run.export" } ", or a whole pack as " code { ".zip" } ", from here or from another gate; nothing is stored" } }
            div .panel.pad.form {
                form .row method="post" action="/audit/verify" enctype="multipart/form-data" {
                    (csrf(token))
                    label .sr for="file" { "Export" }
                    input .filein #file type="file" name="file" required;
                    button .btn type="submit" { "Verify" }
                }
                @match found {
                    None => {}
                    Some(Upload::Refused(why)) => { (note(Standing::Bad, &html! { p { b { "Not an export." } " " (sentence(why)) } })) }
                    Some(Upload::Verified(found)) => { (verified(found)) }
                }
            }
        }
    }
}

pub(crate) fn verified(found: &Verified) -> Markup {
    let standing = match found.status {
        "VALID" => Standing::Ok,
        "INCOMPLETE" => Standing::Alert,
        _ => Standing::Bad,
    };
    let (named, verified, withheld, erased) = found.payloads;
    let (passed, other): (Vec<_>, Vec<_>) = found.checks.iter().partition(|(_, what, _)| *what == "pass");
    html! {
        (note(standing, &html! {
            p .answer { b { (found.status) } " " span .soft { (shown(&found.name)) } }
            @match (&found.failure, found.status) {
                (Some((attack, place, message)), _) => { p { b { (shown(attack)) } ", " (sentence(place)) ": " (sentence(message)) } @if !found.all_checked { p .soft { "What follows it was not looked at: of what was tampered with, nothing follows." } } }
                (None, "VALID") => { p { "It is whole, in order, and what it says it is. " (sentence(&found.against)) } }
                (None, "INCOMPLETE") => { p { "Nothing is wrong with it, and not everything can be checked with what is here. " (sentence(&found.against)) } }
                _ => {}
            }
        }))
        dl .facts {
            @if let Some(run) = &found.run { dt { "run" } dd { @if found.here { a .mono href={ "/runs/" (run) } { (run) } } @else { span .mono { (run) } " " span .muted { "not of this gate" } } } }
            dt { "events" } dd { (when::count(found.events)) }
            dt { "payloads" } dd { (when::count(named)) " named, " (when::count(verified)) " verified, " (when::count(withheld)) " withheld, " (when::count(erased)) " erased" }
        }
        @if passed.len() <= PASSED_MAX { (checks(&found.checks.iter().collect::<Vec<_>>())) }
        @else {
            @if !other.is_empty() { (checks(&other)) }
            details .under { summary { (passed.len()) " checks pass" } (checks(&passed)) }
        }
    }
}

/// Checks that pass are listed up to here; more are folded, so that the others are seen.
const PASSED_MAX: usize = 8;

fn checks(rows: &[&(String, &'static str, String)]) -> Markup {
    html! {
        div .scroll { table .t.checks.cards { tbody { @for (name, what, detail) in rows {
            tr {
                th scope="row" { (name) }
                td { @match *what { "pass" => { (result(Standing::Ok, "pass")) } "FAIL" => { (result(Standing::Bad, "FAIL")) } other => { (result(Standing::Idle, other)) } } }
                td .soft.wrap { (sentence(detail)) }
            }
        } } } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_witness_that_saw_another_tree_outweighs_everything() {
        let status = Status {
            witnesses: vec!["w".into()],
            witnessed: Some(4),
            size: 4,
            frozen: Some("the operator ended it".into()),
            waits: Some(("witness `w` saw another tree of size 4".into(), "12:00".into(), true)),
            ..Status::default()
        };
        let html = view(&Log::Is(status.clone())).into_string();
        assert!(
            html.contains("class=\"worst\"")
                && html.contains("role=\"alert\"")
                && !html.contains("seen all of it"),
            "{html}"
        );
        let calm = Status { waits: None, frozen: None, ..status };
        let html = view(&Log::Is(calm.clone())).into_string();
        assert!(html.contains("seen all of it") && !html.contains("worst"), "{html}");
        let html = view(&Log::Is(Status { witnesses: Vec::new(), witnessed: None, ..calm })).into_string();
        assert!(html.contains("No witness."), "{html}");
    }

    #[test]
    fn what_was_not_checked_does_not_look_like_passed() {
        let found = Verified {
            status: "INVALID",
            failure: Some(("<b>".into(), "line 3".into(), "x".into())),
            checks: vec![
                ("chain".into(), "FAIL", String::new()),
                ("payloads".into(), "not checked", String::new()),
            ],
            run: None,
            here: false,
            events: 2,
            payloads: (0, 0, 0, 0),
            name: "a.export".into(),
            against: String::new(),
            all_checked: false,
        };
        let html = upload("t", Some(&Upload::Verified(Box::new(found)))).into_string();
        assert!(
            html.contains("&lt;b&gt;") && html.contains("res idle") && !html.contains("res ok"),
            "{html}"
        );
    }
}
