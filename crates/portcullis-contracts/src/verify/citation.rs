//! Citations: `[DOC:id]`, where an id is any characters but `]`.

use std::collections::BTreeSet;

use super::documents::Document;
use super::reply::{CitationDuty, Reply, Settings};
use super::result::{Absence, Finding, count};
use crate::limits::MAX_DOCUMENT_ID_BYTES;
use crate::text::{Span, from, to};

/// How a marker begins.
pub(crate) const OPENING: &str = "[DOC:";

/// A marker in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Citation<'a> {
    /// The id without white space around it, or `None` if the marker is not closed, empty, or longer than an id can be.
    pub id: Option<&'a str>,
    /// The whole marker, or as much as there is of it.
    pub span: Span,
}

/// All markers of a text, in order. `[DOC:` alone is a marker without an id, and cites nothing.
#[must_use]
pub fn citations(text: &str) -> Vec<Citation<'_>> {
    let mut found = Vec::new();
    let mut start = 0;
    while let Some(at) = from(text, start).find(OPENING) {
        let open = start + at;
        let inside = open + OPENING.len();
        // What is longer is not an id, so nobody looks further for its end.
        let window = text.floor_char_boundary(inside + MAX_DOCUMENT_ID_BYTES + 1);
        match from(to(text, window), inside).split_once(']').map(|(id, _)| id) {
            Some(id) => {
                let end = inside + id.len() + 1;
                let id = Some(id.trim()).filter(|id| !id.is_empty());
                found.push(Citation { id, span: open..end });
                start = end;
            }
            None => {
                found.push(Citation { id: None, span: open..inside });
                start = inside;
            }
        }
    }
    found
}

/// The citations of a reply, and what they name.
#[derive(Debug)]
pub(super) struct Cited<'a> {
    pub(super) all: Vec<Citation<'a>>,
    /// The known documents that are cited, each once.
    pub(super) documents: Vec<&'a Document>,
}

impl<'a> Cited<'a> {
    pub(super) fn of(reply: &Reply<'a>) -> Self {
        let all = citations(reply.said.text);
        let ids: BTreeSet<&str> = all.iter().filter_map(|citation| citation.id).collect();
        let known = reply.documents.unwrap_or_default();
        let documents = known.iter().filter(|document| ids.contains(document.id.as_str())).collect();
        Self { all, documents }
    }

    /// Whether anything is cited, known or not.
    pub(super) fn cites(&self) -> bool {
        self.all.iter().any(|citation| citation.id.is_some())
    }

    pub(super) fn events(&self) -> impl Iterator<Item = Option<u64>> + '_ {
        self.documents.iter().map(|document| document.event)
    }
}

pub(super) fn presence(cited: &Cited<'_>, reply: &Reply<'_>, settings: &Settings, refused: bool) -> Finding {
    let whole = cited.all.iter().filter(|citation| citation.id.is_some());
    let spans: Vec<Span> = whole.map(|citation| citation.span.clone()).collect();
    if !spans.is_empty() {
        let explanation = format!("the reply has {}", count(spans.len(), "citation", "citations"));
        return Finding::pass(explanation).in_reply(reply, spans);
    }
    if refused {
        return Finding::not_applicable(Absence::Knowledge, "the reply refuses, so there is nothing to cite");
    }
    if settings.citations == CitationDuty::Never {
        return Finding::not_applicable(Absence::Knowledge, "a reply does not have to cite here");
    }
    let without = reply.documents.unwrap_or_default().is_empty();
    if without && settings.citations == CitationDuty::WithDocuments {
        return Finding::not_applicable(Absence::Knowledge, "there is no document to cite");
    }
    let bare: Vec<Span> = cited.all.iter().map(|citation| citation.span.clone()).collect();
    let explanation = match bare.len() {
        0 => "the reply has no citation; write one as `[DOC:id]`",
        _ => "the reply has no whole citation: a marker is not closed, or has no id",
    };
    Finding::fail(explanation).in_reply(reply, bare)
}

pub(super) fn matches(cited: &Cited<'_>, reply: &Reply<'_>) -> Finding {
    if cited.all.is_empty() {
        return Finding::not_applicable(Absence::Nothing, "the reply has no citation");
    }
    let Some(known) = reply.documents else {
        return Finding::not_applicable(
            Absence::Knowledge,
            "the documents that could be cited are not known",
        );
    };
    let ids: BTreeSet<&str> = known.iter().map(|document| document.id.as_str()).collect();
    let wrong = |citation: &&Citation<'_>| citation.id.is_none_or(|id| !ids.contains(id));
    let wrong: Vec<&Citation<'_>> = cited.all.iter().filter(wrong).collect();
    // A marker that names nothing is the business of presence as long as there is no other.
    if !cited.cites() {
        return Finding::not_applicable(Absence::Support, "the reply has no whole citation");
    }
    if wrong.is_empty() {
        let documents = count(cited.documents.len(), "known document is", "known documents are");
        let explanation = format!("{documents} cited, and nothing else");
        let named = cited.documents.iter().map(|document| &document.id);
        return Finding::pass(explanation).named(named).resting_on(cited.events());
    }
    let explanation = format!(
        "{} of {} {} no known document",
        wrong.len(),
        count(cited.all.len(), "citation", "citations"),
        if wrong.len() == 1 { "names" } else { "name" }
    );
    let named = wrong.iter().filter_map(|citation| citation.id);
    Finding::fail(explanation)
        .named(named)
        .in_reply(reply, wrong.iter().map(|citation| citation.span.clone()))
        .resting_on(cited.events())
}
