//! The decision: what may be granted, and the forms that say so.

use maud::{Markup, html};
use portcullis_core::time::Timestamp;

use super::request::{Request, to_edit};
use crate::Role;
use crate::foreign::shown;
use crate::frame::csrf;
use crate::marks::{self, Standing, result};

/// What may be granted besides this call once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Offer {
    /// The effects that a grant by effect would cover, or `None` where it is not offered.
    pub effects: Option<Vec<String>>,
    /// Resources may be granted by a pattern.
    pub patterns: bool,
    /// What has to be typed.
    pub typed: Option<String>,
}

/// What became of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decided {
    /// In a word: granted, refused, ...
    pub word: String,
    /// When.
    pub at: Option<Timestamp>,
    /// By whom.
    pub by: String,
    /// Why.
    pub note: Option<String>,
    /// How far a grant reaches, in words.
    pub scope: Option<String>,
    /// It may still be taken back.
    pub revocable: bool,
}

/// What became of it, and taking it back.
pub(super) fn decided(request: &Request, decided: &Decided, role: Role, token: &str) -> Markup {
    let standing = match decided.word.as_str() {
        "granted" | "claimed" => Standing::Ok,
        "refused" => Standing::Bad,
        _ => Standing::Idle,
    };
    html! {
        section .decide {
            h2 { (result(standing, &decided.word)) }
            dl .facts {
                @if !decided.by.is_empty() { dt { "by" } dd { (shown(&decided.by)) } }
                @if let Some(at) = decided.at { dt { "at" } dd { (at.without_fraction()) } }
                @if let Some(scope) = &decided.scope { dt { "covers" } dd { (shown(scope)) } }
                @if let Some(note) = &decided.note { dt { "reason" } dd { (shown(note)) } }
            }
            @if decided.revocable && role >= Role::Approver {
                form .form method="post" action={ "/approvals/" (request.id) } {
                    (csrf(token))
                    div .row { button .btn.no type="submit" name="do" value="revoke" { "Revoke the grant" } span .small.soft { "It was not used yet, or not used up." } }
                }
            }
        }
    }
}

/// The form below everything that is granted.
pub(super) fn form(request: &Request, token: &str) -> Markup {
    html! {
        section .decide {
            form .form #decide method="post" action={ "/approvals/" (request.id) } {
                (csrf(token))
                (looked_at(request))
                @if request.reply.is_none() { (scopes(request)) }
                (conditions(request))
                p .seal {
                    span { (marks::gate()) }
                    span {
                        b { "What you see is what you grant." }
                        " Your answer is bound to this page as shown, "
                        span .dig { "display " (groups(&request.display)) }
                        ". If the call, the policy or what the agent has read changes, it is not granted."
                    }
                }
                div .row {
                    button .btn.main type="submit" name="do" value="grant" { "Grant" kbd data-key="" hidden { "A" } }
                    button .btn.no type="submit" name="do" value="refuse" formnovalidate { "Refuse" }
                }
            }
            (others(request, token))
        }
    }
}

/// What was looked at: goes back with the answer.
fn looked_at(request: &Request) -> Markup {
    let upto = request.before.iter().map(|before| before.seq).max().unwrap_or(0);
    html! {
        input type="hidden" name="shown" value=(request.display);
        input type="hidden" name="upto" value=(upto);
        @for label in &request.labels { input type="hidden" name="label" value=(label); }
    }
}

fn scopes(request: &Request) -> Markup {
    let offer = &request.offer;
    html! {
        fieldset .scope {
            legend { "Grant covers" }
            label {
                input type="radio" name="scope" value="once" checked;
                span { "This call with these arguments, once" }
                small { "Lapses earlier when the agent reads something that you were not shown." }
            }
            label {
                input type="radio" name="scope" value="arguments";
                span { "This call with these arguments, as often as it is made" }
            }
            @match &offer.effects {
                Some(effects) => {
                    label {
                        input type="radio" name="scope" value="effects";
                        span { "What it is held for, in later calls too" }
                        small { (shown(&effects.join(", "))) ". Nothing else." }
                    }
                }
                None => {
                    label .off {
                        input type="radio" name="scope" value="effects" disabled;
                        span { "What it is held for, in later calls too" }
                        small { "Not offered: it is held for something that is no effect, or that could not be read." }
                    }
                }
            }
            label {
                input type="radio" name="scope" value="tool";
                span { "Every call of " code { (shown(&request.tool)) } }
                small { "Whatever its arguments are. Other rules still judge each call." }
            }
            @if offer.patterns {
                label {
                    input type="radio" name="scope" value="pattern";
                    span { "Resources by a pattern" }
                    small { "Name it below, such as " code { "path /srv/app/*" } "." }
                }
            }
        }
    }
}

fn conditions(request: &Request) -> Markup {
    let required = request.wanted.note;
    html! {
        div .three {
            @if request.reply.is_none() {
                div .field {
                    label for="lasts" { "Lasts" }
                    select #lasts name="lasts" {
                        option value="usual" { "as the bundle says" }
                        option value="hour" { "an hour" }
                        option value="day" { "8 hours" }
                        option value="task" { "until the user speaks" }
                        option value="session" { "until the run ends" }
                    }
                    span .hint { "At most as long as the bundle allows." }
                }
            }
            div .field {
                label for="why" { "Reason" }
                input #why type="text" name="note" maxlength="2000" required[required];
                span .hint { "Stands in the record" @if required { "; the bundle requires one" } "." }
            }
            @if request.offer.patterns {
                div .field {
                    label for="pattern" { "Pattern" }
                    input #pattern type="text" name="pattern" autocapitalize="off" spellcheck="false";
                }
            }
            @if let Some(word) = &request.offer.typed {
                div .field {
                    label for="typed" { "Type " code { (word) } " to grant" }
                    input #typed type="text" name="typed" autocomplete="off" autocapitalize="off" spellcheck="false" required;
                    span .hint { "Asked because it cannot be taken back." }
                }
            }
        }
    }
}

/// The other two answers, each with a form of its own.
fn others(request: &Request, token: &str) -> Markup {
    let (title, name) = match request.reply {
        Some(_) => ("Let other words pass…", "text"),
        None => ("Edit the call…", "arguments"),
    };
    let text = match (&request.reply, &request.arguments) {
        (Some(reply), _) => Some(without_unseen(reply)),
        (None, Some(arguments)) => Some(to_edit(arguments)),
        (None, None) => None,
    };
    html! {
        div .others {
            @if let Some(text) = &text {
                details {
                    summary { (title) }
                    form .form method="post" action={ "/approvals/" (request.id) } {
                        (csrf(token)) (looked_at(request))
                        div .field {
                            label for="edit" { @if name == "text" { "What the reply says instead" } @else { "The arguments with which it may go ahead, once" } }
                            textarea #edit name=(name) rows=(rows(text)) spellcheck="false" { (text) }
                            span .hint { "They are judged again, and no grant lifts a denial." @if name == "text" { " Characters that cannot be seen were left out here." } }
                        }
                        div .field { label for="edit-why" { "Reason" } input #edit-why type="text" name="note" maxlength="2000" required[request.wanted.note]; }
                        @if let Some(word) = &request.offer.typed {
                            div .field { label for="edit-typed" { "Type " code { (word) } " to grant" } input #edit-typed type="text" name="typed" autocomplete="off" autocapitalize="off" spellcheck="false" required; }
                        }
                        div .row { button .btn.main type="submit" name="do" value="edit" { "Grant with this, once" } }
                    }
                }
            }
            details {
                summary { "Answer instead…" }
                form .form method="post" action={ "/approvals/" (request.id) } {
                    (csrf(token))
                    div .field {
                        label for="answer" { "What the agent is told" }
                        textarea #answer name="note" rows="3" maxlength="2000" required {}
                        span .hint { "Neither yes nor no: the call does not go ahead, and the agent may ask again with another wording." }
                    }
                    div .row { button .btn.main type="submit" name="do" value="answer" { "Send the answer" } }
                }
            }
        }
    }
}

fn rows(text: &str) -> usize {
    text.lines().count().clamp(3, 24)
}

fn without_unseen(text: &str) -> String {
    let mut seen = String::with_capacity(text.len());
    portcullis_core::display::each(text, |c, marked| {
        if !marked || c == '\n' {
            seen.push(c);
        }
    });
    seen
}

/// A digest in groups that can be read out: its first sixteen digits.
fn groups(digest: &str) -> String {
    let hex = digest.rsplit(':').next().unwrap_or(digest);
    let digits: Vec<char> = hex.chars().take(16).collect();
    digits.chunks(4).map(|four| four.iter().collect::<String>()).collect::<Vec<_>>().join(" ")
}
