//! The Tool Registry: changed, waiting to be classified, configured; and the form of one tool.

use std::collections::BTreeSet;

use maud::{Markup, html};

use crate::diff::{self, FileDiff};
use crate::editor::{self, Draft};
use crate::foreign::{sentence, shown, start};
use crate::frame::csrf;
use crate::marks::{Standing, note, result};
use crate::outcome::{self, Outcome};
use crate::policies::encoded;

/// What is shown of a server's description in a table, in characters.
const SAYS_CHARS: usize = 160;

/// A tool of the registry.
#[derive(Debug, Clone)]
pub struct Row {
    /// The name on the wire.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: String,
    /// What it does.
    pub description: String,
    /// Whether a call changes or reveals something.
    pub side_effecting: bool,
    /// 0 to 1.
    pub risk: f64,
    /// Its arguments.
    pub args: Vec<String>,
    /// Whether agents may use it.
    pub enabled: bool,
    /// Its server describes it otherwise than it was accepted.
    pub changed: bool,
    /// Nobody has confirmed the entry.
    pub inferred: bool,
}

/// A tool that its server describes otherwise than it was accepted.
#[derive(Debug, Clone)]
pub struct Changed {
    /// The command that starts the server.
    pub server: String,
    /// The tool.
    pub tool: String,
    /// What it is accepted by.
    pub digest: String,
    /// The same in a few digits.
    pub short: String,
    /// What differs: description, arguments, the rest.
    pub diffs: Vec<FileDiff>,
    /// Why it cannot be accepted.
    pub unreadable: Option<String>,
    /// What it means for effects, in sentences.
    pub means: Vec<String>,
}

/// A tool that a server lists and the registry does not.
#[derive(Debug, Clone)]
pub struct Waiting {
    /// The command that starts the server.
    pub server: String,
    /// The tool.
    pub tool: String,
    /// What the server says of it.
    pub description: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// What the entry would say.
    pub proposed: String,
}

/// The page.
#[derive(Debug, Default)]
pub struct Registry {
    /// Changed tools.
    pub changed: Vec<Changed>,
    /// What all of them together are accepted by.
    pub all: String,
    /// Waiting to be classified.
    pub waiting: Vec<Waiting>,
    /// Configured.
    pub rows: Vec<Row>,
    /// The verdict on those that are not classified.
    pub unknown: String,
    /// Whether whoever looks may accept changes.
    pub accepts: bool,
    /// Forms.
    pub draft: Draft,
}

/// The page of tools.
#[must_use]
pub fn registry(page: &Registry) -> Markup {
    html! {
        div .head {
            div { h1 { "Tool Registry" } p { "What each tool may do to the world. Type, side effects and enabled are what policies rest on." } }
            @if page.draft.may { div .acts { a .btn.main href="/tools/edit" { "New Tool" } } }
        }
        (editor::above(&page.draft))
        @if !page.changed.is_empty() { (changed(page)) }
        @if !page.waiting.is_empty() { (waiting(page)) }
        (configured(page))
    }
}

fn changed(page: &Registry) -> Markup {
    let readable = page.changed.iter().filter(|tool| tool.unreadable.is_none()).count();
    html! {
        section aria-labelledby="h-ch" {
            div .sh { h2 #h-ch { "Changed since it was accepted" } p { "calls of it are held until somebody decides" } }
            div .stack {
                @for tool in &page.changed { (change(page, tool)) }
                @if page.accepts && readable > 1 {
                    form .row method="post" action="/tools/accept" {
                        (csrf(&page.draft.csrf))
                        input type="hidden" name="all" value=(page.all);
                        button .btn type="submit" { "Accept all " (readable) " changes" }
                        span .hint { "as they are shown here, " span .dig { (page.all) } }
                    }
                }
            }
        }
    }
}

fn change(page: &Registry, tool: &Changed) -> Markup {
    html! {
        div .panel.pad.flow {
            p { b .mono { (shown(&tool.tool)) } " " span .soft { "is described otherwise by the server " code .wrap { (shown(&tool.server)) } } }
            @if let Some(why) = &tool.unreadable {
                (note(Standing::Bad, &html! { p { b { "It cannot be accepted." } " What is listed now cannot be read in one way: " (sentence(why)) "." } }))
            }
            @if !tool.means.is_empty() { (note(Standing::Alert, &html! { @for means in &tool.means { p { (sentence(means)) } } })) }
            @for file in &tool.diffs { (diff::view(file)) }
            @if page.accepts && tool.unreadable.is_none() {
                form .row method="post" action="/tools/accept" {
                    (csrf(&page.draft.csrf))
                    input type="hidden" name="tool" value=(tool.tool);
                    input type="hidden" name="server" value=(tool.server);
                    input type="hidden" name="digest" value=(tool.digest);
                    button .btn.main type="submit" { "Accept this change" }
                    @if page.draft.may { a .btn href={ "/tools/edit?tool=" (encoded(&tool.tool)) "&server=" (encoded(&tool.server)) "&disable=yes" } { "Disable the tool" } }
                    span .hint { "Leave it, and the accepted description stays: its calls are held. Accepting is bound to this difference, " span .dig { (tool.short) } }
                }
            }
        }
    }
}

fn waiting(page: &Registry) -> Markup {
    html! {
        section aria-labelledby="h-di" {
            div .sh { h2 #h-di { "Seen, not classified" } p { "their calls get " b { (page.unknown) } ", as the bundle says for unknown tools" } }
            div .panel.scroll tabindex="0" role="region" aria-label="Seen, not classified" {
                table .t.cards {
                    thead { tr { th scope="col" { "Tool" } th scope="col" { "What the server says of it" } th scope="col" { "Arguments" } th scope="col" { "Proposed" } th scope="col" { "Server" } th scope="col" { span .sr { "Act" } } } }
                    tbody { @for tool in &page.waiting { tr {
                        th .mono scope="row" { (shown(&tool.tool)) }
                        td .wrap { span .foreign { (start(&tool.description, SAYS_CHARS)) } }
                        td .mono.soft.wrap { (shown(&tool.args.join(", "))) }
                        td .soft.wrap { (sentence(&tool.proposed)) }
                        td .mono.soft.wrap { (start(&tool.server, SAYS_CHARS)) }
                        td .nums { @if page.draft.may { a href={ "/tools/edit?tool=" (encoded(&tool.tool)) "&server=" (encoded(&tool.server)) } { "Classify" span .sr { " " (shown(&tool.tool)) } } } }
                    } } }
                }
            }
        }
    }
}

fn configured(page: &Registry) -> Markup {
    html! {
        section aria-labelledby="h-co" {
            div .sh { h2 #h-co { "Configured Tools" } }
            div .panel.scroll tabindex="0" role="region" aria-label="Configured Tools" {
                table .t.toolt {
                    thead { tr { th scope="col" { "Name" } th scope="col" { "Type" } th scope="col" { "Description" } th scope="col" { "Side effects" } th .nums scope="col" { "Risk" } th scope="col" { "Arguments" } th scope="col" { "State" } th scope="col" { span .sr { "Act" } } } }
                    tbody {
                        @if page.rows.is_empty() { tr { td colspan="8" .muted { "No tool is configured. Add one, or let a server come to the gate: its tools wait here to be classified." } } }
                        @for tool in &page.rows { tr {
                            th .wrap scope="row" { (shown(&tool.name)) @if tool.id != tool.name { p .mono.small.muted { (shown(&tool.id)) } } }
                            td .mono { (shown(&tool.kind)) }
                            td .soft.wrap { (start(&tool.description, SAYS_CHARS)) }
                            td { @if tool.side_effecting { b { "yes" } } @else { span .muted { "no" } } }
                            td .nums { (format!("{:.1}", tool.risk)) }
                            td .mono.soft.wrap { (shown(&tool.args.join(", "))) }
                            td .nowrap { (state(tool)) }
                            td .nums { @if page.draft.may { a href={ "/tools/edit?id=" (encoded(&tool.id)) } { "Edit" span .sr { " " (shown(&tool.name)) } } } }
                        } }
                    }
                }
            }
        }
    }
}

fn state(tool: &Row) -> Markup {
    match (tool.enabled, tool.changed, tool.inferred) {
        (false, ..) => result(Standing::Idle, "disabled"),
        (_, true, _) => result(Standing::Alert, "changed, held"),
        (_, _, true) => result(Standing::Alert, "not confirmed"),
        _ => result(Standing::Ok, "enabled"),
    }
}

/// The fields of a tool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fields {
    /// The name on the wire.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: String,
    /// What it does.
    pub description: String,
    /// 0 to 1.
    pub risk: String,
    /// Whether a call changes or reveals something.
    pub side_effecting: bool,
    /// Whether agents may use it.
    pub enabled: bool,
    /// JSON Schema, or a property map.
    pub schema: String,
}

/// The form of a tool.
#[derive(Debug, Default)]
pub struct Editing {
    /// It does not exist yet.
    pub new: bool,
    /// The file in which its entry is, or will be.
    pub path: String,
    /// The form.
    pub fields: Fields,
    /// Types that there are.
    pub types: BTreeSet<String>,
    /// Why the schema is none.
    pub schema_refused: Option<String>,
    /// Why the entry was drafted as it is.
    pub reasons: Vec<String>,
    /// What it would mean.
    pub outcome: Outcome,
    /// Forms.
    pub draft: Draft,
}

/// The form of a tool.
#[must_use]
pub fn edit(page: &Editing) -> Markup {
    let heading = if page.new { "New Tool".to_owned() } else { format!("Edit {}", page.fields.name) };
    html! {
        div .head { div { p .crumbs { a href="/tools" { "Tools" } " / " (shown(&heading)) } h1 { (shown(&heading)) } p { "In " span .mono { (shown(&page.path)) } "." } } }
        (editor::above(&page.draft))
        @if !page.reasons.is_empty() {
            section { (note(Standing::Idle, &html! { p { b { "Drafted from what the server says." } " Check it: a server can describe its tools as it likes." } ul { @for reason in &page.reasons { li { (sentence(reason)) } } } })) }
        }
        form #draft .panel.pad.form method="post" action="/tools/edit" data-draft="" {
            (editor::fields(&page.draft))
            input type="hidden" name="path" value=(page.path);
            @if page.new { input type="hidden" name="new" value="yes"; }
            div .cols {
                (about(page))
                div .field data-part="schema" {
                    label for="ts" { "Arguments, as JSON Schema" }
                    textarea #ts name="schema" rows="16" spellcheck="false" aria-invalid=[page.schema_refused.as_ref().map(|_| "true")] aria-describedby="ts-e" { "\n" (page.fields.schema) }
                    @match &page.schema_refused {
                        Some(why) => { p .err #ts-e { span { "Invalid JSON for arguments schema. " (sentence(why)) " The old schema is still in force." } } }
                        None => { span .hint #ts-e { "A JSON Schema, or a map from each argument to its schema. A call that does not fit is denied." } }
                    }
                }
            }
        }
        (editor::save(&page.draft, "draft", "Save Tool", "/tools"))
        (outcome::view(&page.outcome))
    }
}

fn about(page: &Editing) -> Markup {
    let fields = &page.fields;
    html! {
        div .form {
            div .two {
                div .field { label for="tn" { "Name" } input #tn type="text" name="name" value=(fields.name) maxlength="200" autocomplete="off"; }
                div .field { label for="ti" { "Id, the name on the wire" } input #ti .mono type="text" name="id" value=(fields.id) maxlength="200" readonly[!page.new] autocomplete="off" spellcheck="false"; }
            }
            div .field { label for="tt" { "Type" } input #tt .mono type="text" name="kind" value=(fields.kind) list="types" maxlength="64" autocomplete="off" spellcheck="false"; datalist #types { @for kind in &page.types { option value=(kind) {} } } span .hint { "What policies allow or not. A word of your own makes a type of your own." } }
            div .field { label for="td" { "Description" } textarea #td name="description" rows="3" { "\n" (fields.description) } }
            div .field { label for="tr" { "Risk" } input .n #tr type="text" name="risk" value=(fields.risk) inputmode="decimal" autocomplete="off"; span .hint { "0 harmless, 1 the worst this agent can do" } }
            label .check { input type="checkbox" name="side_effecting" value="yes" checked[fields.side_effecting]; span { "It has side effects" small { "In doubt: yes. What it returns may be personal data." } } }
            label .check { input type="checkbox" name="enabled" value="yes" checked[fields.enabled]; span { "Enabled" small { "A disabled tool is hidden from agents, and every call of it is denied." } } }
        }
    }
}
