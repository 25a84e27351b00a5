//! System Setup: the documents that replies are checked against.

use std::collections::BTreeSet;

use maud::{Markup, html};

use crate::editor::{self, Draft, Text};
use crate::foreign::{sentence, shown};

/// The page.
#[derive(Debug, Default)]
pub struct Setup {
    /// `knowledge.json` as a text.
    pub text: String,
    /// Lines with a mistake.
    pub wrong: BTreeSet<usize>,
    /// Why it is not JSON, or no knowledge base, with the place.
    pub refused: Option<String>,
    /// Documents in force.
    pub documents: usize,
    /// The bundle, for people: digest, mode, where, who manages it, what becomes of unknown tools.
    pub facts: Vec<(&'static str, String)>,
    /// Forms.
    pub draft: Draft,
}

/// The page of the knowledge base.
#[must_use]
pub fn page(page: &Setup) -> Markup {
    html! {
        div .head { div { h1 { "System Setup" } p { "The documents that replies are checked against. Simulator and verifier read the same ones." } } }
        (editor::above(&page.draft))
        div .cols.wide-l {
            section aria-labelledby="h-k" {
                div .sh { h2 #h-k { "Knowledge base" } p .mono { "knowledge.json" } span .more { "a JSON object: id of a document, its text" } }
                form .stack #draft method="post" action="/setup" {
                    (editor::fields(&page.draft))
                    (editor::text(&Text { name: "knowledge", label: "knowledge.json", text: &page.text, wrong: &page.wrong, readonly: !page.draft.may, rows: 10 }))
                    @if let Some(why) = &page.refused { p .err role="alert" { span { "Invalid JSON format. Please correct the knowledge base content. " (sentence(why)) " The version before is still in force." } } }
                    @if page.draft.may && page.draft.closed.is_none() {
                        div .row { button .btn.main type="submit" name="do" value="save" { "Update Knowledge Base" } a .btn.plain href="/setup" { "Discard" } }
                    }
                }
            }
            aside .stack {
                section .panel.pad aria-labelledby="h-in" { h2 #h-in { "In force" } dl .facts { dt { "documents" } dd { (page.documents) } dt { "read by" } dd { "simulator, verifier, and the checks of replies of live runs" } } }
                section .panel.pad aria-labelledby="h-bu" { h2 #h-bu { "Bundle" } dl .facts { @for (name, value) in &page.facts { dt { (name) } dd { (shown(value)) } } } }
            }
        }
    }
}
