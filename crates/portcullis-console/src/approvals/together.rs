//! Several requests that are alike, decided at once: each shown whole, each granted once or not at all.

use maud::{Markup, html};

use super::request::Request;
use crate::foreign::shown;
use crate::frame::csrf;
use crate::marks::{Standing, result};
use crate::when;

/// The page.
#[derive(Debug)]
pub struct Together<'a> {
    /// The requests, each of the same tool, rule and principal.
    pub requests: &'a [Request],
    /// Goes with the form.
    pub csrf: &'a str,
}

/// What became of one of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The approval.
    pub id: String,
    /// Why it was not granted, or `None` if it was.
    pub skipped: Option<String>,
}

/// Requests that are alike.
#[must_use]
pub fn together(page: &Together<'_>) -> Markup {
    let first = page.requests.first();
    let typed = page.requests.iter().find_map(|request| request.offer.typed.as_ref());
    let note = page.requests.iter().any(|request| request.wanted.note);
    html! {
        div .head { div {
            p .crumbs { a href="/approvals" { "Approvals" } " / together" }
            h1 { (page.requests.len()) " requests that are alike" }
            @if let Some(first) = first {
                p { code { (shown(&first.tool)) } " for " b { (shown(&first.principal)) } ", held by " span .dig { (shown(&first.rule)) } ": " (crate::foreign::sentence(&first.reason)) }
            }
        } }
        form .stack method="post" action="/approvals/together" {
            (csrf(page.csrf))
            @for request in page.requests {
                section .panel.pad {
                    label .check {
                        input type="checkbox" name="one" value={ (request.id) ":" (request.display) } checked;
                        span { b { (shown(&request.sentence)) } small { "waiting " (when::span(when::seconds_between(request.requested_at, request.now))) " · " a href={ "/approvals/" (request.id) } { "alone" } } }
                    }
                    (super::request::facts(request))
                }
            }
            section .panel.pad.decide.flow {
                div .form {
                    div .field { label for="why" { "Reason, for each" } input #why type="text" name="note" maxlength="2000" required[note]; }
                    @if let Some(word) = typed {
                        div .field { label for="typed" { "Type " code { (word) } " to grant" } input #typed type="text" name="typed" autocomplete="off" autocapitalize="off" spellcheck="false" required; }
                    }
                    p .soft.small { "Each is granted once, as shown here. One that changed meanwhile is skipped, with the reason." }
                    div .row { button .btn.main type="submit" name="do" value="grant" { "Grant those that are ticked" } a .btn href="/approvals" { "Back" } }
                }
            }
        }
    }
}

/// What became of them.
#[must_use]
pub fn outcome(outcomes: &[Outcome]) -> Markup {
    let granted = outcomes.iter().filter(|one| one.skipped.is_none()).count();
    html! {
        div .head { div {
            p .crumbs { a href="/approvals" { "Approvals" } " / together" }
            h1 { (granted) " of " (outcomes.len()) " granted" }
        } }
        section .panel.scroll tabindex="0" {
            table .t.cards {
                thead { tr { th scope="col" { "Request" } th scope="col" { "Result" } th scope="col" { "Why" } } }
                tbody {
                    @for one in outcomes {
                        tr {
                            td { a .mono href={ "/approvals/" (one.id) } { (one.id.get(..8).unwrap_or(&one.id)) } }
                            td { @if one.skipped.is_none() { (result(Standing::Ok, "granted")) } @else { (result(Standing::Alert, "skipped")) } }
                            td .soft.wrap { @if let Some(why) = &one.skipped { (shown(why)) } }
                        }
                    }
                }
            }
        }
        p { a .btn href="/approvals" { "Back to what waits" } }
    }
}
