//! The pages before somebody is signed in.

use maud::{Markup, PreEscaped, html};

use crate::Role;
use crate::foreign::shown;
use crate::frame::{Theme, csrf, document};
use crate::marks::{self, Standing, note};

const GRILLE: &str = include_str!("../assets/grille.svg");

/// What stands at the door.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Door<'a> {
    /// Name and password.
    SignIn {
        /// The name that was given before.
        name: &'a str,
        /// Why that did not work.
        refused: Option<&'a str>,
        /// Whether anybody has a password yet.
        people: bool,
    },
    /// A link that signs in, once.
    Link {
        /// The token of the link.
        token: &'a str,
        /// Whom it signs in.
        name: &'a str,
        /// As what.
        role: Role,
    },
    /// A link with which somebody chooses a password.
    Invitation {
        /// The token of the link.
        token: &'a str,
        /// Who.
        name: &'a str,
        /// As what.
        role: Role,
        /// Why the password was not taken.
        refused: Option<&'a str>,
    },
    /// A link that is no longer any good.
    Spent,
    /// A request that another page may have caused.
    Elsewhere,
    /// Too many requests.
    Pause {
        /// How long to wait, in seconds.
        seconds: u64,
    },
}

/// Fewest characters of a password.
pub const PASSWORD_CHARS_MIN: usize = 12;

/// The document.
#[must_use]
pub fn page(door: &Door<'_>, host: &str, theme: Theme) -> String {
    let title = match door {
        Door::SignIn { .. } => "Sign in",
        Door::Link { .. } => "Continue",
        Door::Invitation { .. } => "Choose a password",
        Door::Spent => "This link is spent",
        Door::Elsewhere => "Refused",
        Door::Pause { .. } => "A pause",
    };
    let content = html! {
        main .door #main {
            div .grille { (PreEscaped(GRILLE)) }
            div .side-d {
                p .brand { (marks::gate()) span { "Portcullis" } }
                div { h1 { (title) } @if host.contains(".localhost:") { p .soft { "on this machine" } } @else { p .soft { "on " b { (shown(host)) } } } }
                (inside(door))
            }
        }
    };
    document(&format!("{title} · Portcullis"), theme, Some("alone"), &content)
}

fn inside(door: &Door<'_>) -> Markup {
    match door {
        Door::SignIn { name, refused, people } => sign_in(name, *refused, *people),
        Door::Link { token, name, role } => html! {
            p { "This link signs you in as " b { (shown(name)) } ", " (role.as_str()) ", once." }
            form .form method="post" action="/sign-in/link" {
                input type="hidden" name="token" value=(token);
                button .btn.main type="submit" autofocus { "Continue" }
            }
            p .small.muted { "If you did not ask for it, close this page: the link ends by itself after a few minutes." }
        },
        Door::Invitation { token, name, role, refused } => invitation(token, name, *role, *refused),
        Door::Spent => html! {
            p { "A link works once, and for a few minutes. This one was used, or its time is over." }
            p { "For another one run " code { "portcullis console" } ", or " a href="/sign-in" { "sign in with a password" } "." }
        },
        Door::Elsewhere => html! {
            (note(Standing::Bad, &html! { p { "The request did not come from a page of this console. Nothing was changed." } }))
            p { a .btn href="/" { "Open the console" } }
        },
        Door::Pause { seconds } => html! {
            (note(Standing::Bad, &html! { p { "Too many requests. Try again in " (seconds) " seconds." } }))
            p { a .btn href="/" { "Try again" } }
        },
    }
}

fn sign_in(name: &str, refused: Option<&str>, people: bool) -> Markup {
    html! {
        @if let Some(refused) = refused { (note(Standing::Bad, &html! { p { (refused) } })) }
        @if people {
            form .form method="post" action="/sign-in" {
                div .field {
                    label for="u" { "Name" }
                    input #u type="text" name="name" value=(name) autocomplete="username" autocapitalize="off" spellcheck="false" required;
                }
                div .field {
                    label for="p" { "Password" }
                    input #p type="password" name="password" autocomplete="current-password" required;
                }
                button .btn.main type="submit" { "Sign in" }
            }
            p .small.muted { "No password yet? Whoever holds the approver’s token signs in with " code { "portcullis console" } " and can invite you. Agents’ tokens do not open this door." }
        } @else {
            p { "Nobody has a password yet. On the machine of the gate, run" }
            pre .code tabindex="0" { "portcullis console" }
            p { "It prints a link that signs you in, once. It needs the approver’s token; agents’ tokens do not open this door." }
        }
    }
}

fn invitation(token: &str, name: &str, role: Role, refused: Option<&str>) -> Markup {
    html! {
        @if let Some(refused) = refused { (note(Standing::Bad, &html! { p { (refused) } })) }
        p { "You are invited as " b { (shown(name)) } ", " (role.as_str()) "." }
        form .form method="post" action="/sign-in/invitation" {
            input type="hidden" name="token" value=(token);
            input type="hidden" name="name" value=(name) autocomplete="username";
            div .field {
                label for="p" { "Password" }
                input #p type="password" name="password" autocomplete="new-password" minlength=(PASSWORD_CHARS_MIN) required
                    aria-describedby="p-hint";
                span .hint #p-hint { "At least " (PASSWORD_CHARS_MIN) " characters. A few words are easier to keep than one." }
            }
            div .field {
                label for="p2" { "The same again" }
                input #p2 type="password" name="again" autocomplete="new-password" required;
            }
            button .btn.main type="submit" { "Sign in" }
        }
    }
}

/// Somebody who may sign in with a password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    /// Their name.
    pub name: String,
    /// As what.
    pub role: Role,
    /// Who invited them, and when, in words.
    pub invited: String,
    /// Signed in at this moment.
    pub here: bool,
}

/// Who may sign in, and the form that invites others.
#[must_use]
pub fn people(people: &[Person], token: &str, told: Option<(Standing, &Markup)>, decides: bool) -> Markup {
    html! {
        div .head { div {
            h1 { "People" }
            p { "Whoever holds the approver’s token signs in with " code { "portcullis console" } ". Everybody else has a name and a password." }
        } }
        @if let Some((standing, told)) = told { section { (note(standing, told)) } }
        @if !decides {
            section { (note(Standing::Alert, &html! { p { "The bundle maps an approver, so people with a password only look: this machine’s files do not say who decides. Approvers sign in with a link." } })) }
        }
        div .cols.wide-l {
            section aria-label="People" {
                div .panel.scroll tabindex="0" {
                    table .t.cards {
                        thead { tr { th scope="col" { "Name" } th scope="col" { "Role" } th scope="col" { "Invited" } th scope="col" { "Now" } th scope="col" { span .sr { "Remove" } } } }
                        tbody {
                            @if people.is_empty() { tr { td colspan="5" .muted { "Nobody has a password yet." } } }
                            @for person in people {
                                tr {
                                    td { b { (shown(&person.name)) } }
                                    td { (person.role.as_str()) }
                                    td .soft { (shown(&person.invited)) }
                                    td { @if person.here { (marks::result(Standing::Ok, "signed in")) } }
                                    td .nums {
                                        form method="post" action="/people/remove" {
                                            (csrf(token))
                                            input type="hidden" name="name" value=(person.name);
                                            button .btn.no.small type="submit" { "Remove" span .sr { " " (shown(&person.name)) } }
                                        }
                                    }
                                }
                            }
                        }
                    }
                }
            }
            section .panel.pad aria-labelledby="h-invite" {
                h2 #h-invite { "Invite somebody" }
                form .form method="post" action="/people" {
                    (csrf(token))
                    div .field { label for="n" { "Name" } input #n type="text" name="name" maxlength="64" autocapitalize="off" spellcheck="false" required; }
                    div .field {
                        label for="r" { "May" }
                        select #r name="role" {
                            @for role in Role::ALL {
                                option value=(role.as_str()) selected[role == Role::Viewer] { (may(role)) }
                            }
                        }
                    }
                    button .btn.main type="submit" { "Make a link" }
                    p .hint { "The link lets them choose a password. It works once, within a day; hand it over yourself." }
                }
            }
        }
    }
}

fn may(role: Role) -> &'static str {
    match role {
        Role::Viewer => "look (viewer)",
        Role::Approver => "decide on approvals, stop runs (approver)",
        Role::Editor => "the same and change policy (editor)",
        Role::Admin => "all of it and say who signs in (admin)",
    }
}
