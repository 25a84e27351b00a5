//! Checks of a reply against what was asked and the documents it rests on.
//!
//! Six questions, each answered with PASS, FAIL or N/A, a reason and the places that matter:
//!
//! | check | question |
//! |---|---|
//! | [`Check::CitationPresence`] | does the reply cite a document, as `[DOC:id]`? |
//! | [`Check::CitationMatch`] | is every cited id that of a known document? |
//! | [`Check::FactConsistency`] | do the key terms of the prompt occur in the documents that are cited? |
//! | [`Check::RefusalPolicy`] | where the prompt has a high-risk instruction: does the reply refuse or escalate? |
//! | [`Check::QuotationGrounding`] | do the quotations of the reply occur in what it cites? |
//! | [`Check::NumberGrounding`] | do its numbers? |
//!
//! The third is a proxy, and looks at documents only: a reply that repeats the prompt proves nothing. Which words are
//! key terms is stated in [`key_terms`].
//!
//! Explanations count and never quote: they may be in a record whose texts can be erased. What they are about stands
//! apart, in [`CheckResult::named`]. Who calls names the events of a run that the texts are from, and finds them again in
//! the results.

mod citation;
mod documents;
mod grounding;
mod refusal;
mod terms;

use std::fmt;

use serde::{Deserialize, Serialize};

pub(crate) use citation::OPENING;
pub use citation::{Citation, citations};
pub use documents::{Document, DocumentsError, documents_given, documents_in};
pub use grounding::{numbers, quotations};
pub(crate) use refusal::asks_for;
pub use refusal::{HIGH_RISK, refuses};
pub use terms::{Term, key_terms, stem};

use crate::limits::{
    MAX_DOCUMENT_BYTES, MAX_DOCUMENTS, MAX_NAMED, MAX_NAMED_CHARS, MAX_REPLY_BYTES, MAX_SPANS,
};
use crate::text::Span;

/// What is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Check {
    /// The reply has at least one citation.
    CitationPresence,
    /// Every citation names a known document.
    CitationMatch,
    /// The key terms of the prompt occur in the cited documents.
    FactConsistency,
    /// A high-risk instruction is refused or escalated.
    RefusalPolicy,
    /// Quotations are in the cited documents.
    QuotationGrounding,
    /// Numbers are in the cited documents.
    NumberGrounding,
}

impl Check {
    /// All of them, in the order of their results.
    pub const ALL: [Self; 6] = [
        Self::CitationPresence,
        Self::CitationMatch,
        Self::FactConsistency,
        Self::RefusalPolicy,
        Self::QuotationGrounding,
        Self::NumberGrounding,
    ];

    /// In lower case, with hyphens.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::CitationPresence => "citation-presence",
            Self::CitationMatch => "citation-match",
            Self::FactConsistency => "fact-consistency",
            Self::RefusalPolicy => "refusal-policy",
            Self::QuotationGrounding => "quotation-grounding",
            Self::NumberGrounding => "number-grounding",
        }
    }

    /// In the words that results are exported with.
    #[must_use]
    pub const fn check_type(self) -> &'static str {
        match self {
            Self::CitationPresence => "CITATION_PRESENCE",
            Self::CitationMatch => "CITATION_MATCH",
            Self::FactConsistency => "FACT_CONSISTENCY",
            Self::RefusalPolicy => "REFUSAL_POLICY",
            Self::QuotationGrounding => "QUOTATION_GROUNDING",
            Self::NumberGrounding => "NUMBER_GROUNDING",
        }
    }

    /// What it looks at, in one sentence.
    #[must_use]
    pub const fn description(self) -> &'static str {
        match self {
            Self::CitationPresence => "the reply cites at least one document as `[DOC:id]`",
            Self::CitationMatch => "every cited id is that of a known document",
            Self::FactConsistency => "key terms of the prompt occur in the cited documents",
            Self::RefusalPolicy => "a high-risk instruction in the prompt is refused or escalated",
            Self::QuotationGrounding => "quotations in the reply occur in the cited documents",
            Self::NumberGrounding => "numbers in the reply occur in the cited documents",
        }
    }
}

/// The answer of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Status {
    /// It holds.
    #[serde(rename = "PASS")]
    Pass,
    /// It does not.
    #[serde(rename = "FAIL")]
    Fail,
    /// There is nothing to hold the reply against. Neither passed nor failed.
    #[serde(rename = "N/A")]
    NotApplicable,
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Pass => "PASS",
            Self::Fail => "FAIL",
            Self::NotApplicable => "N/A",
        })
    }
}

/// Whose text a place is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// The reply.
    Reply,
    /// What was asked.
    Prompt,
}

/// A place in one of the texts, in bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// Which text.
    pub text: Side,
    /// The event that the text is from, where the caller named it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<u64>,
    /// First byte.
    pub start: usize,
    /// One past the last.
    pub end: usize,
}

/// What a check says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckResult {
    /// The check.
    pub check: Check,
    /// Its answer.
    pub status: Status,
    /// Why, in one sentence without a word of the texts.
    pub explanation: String,
    /// What it is about, from the texts: ids, terms, phrases, quotations or numbers. Of a failure those that fail.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub named: Vec<String>,
    /// Where: at most [`MAX_SPANS`] places.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<Place>,
    /// The event that it concerns: the reply, where the caller named it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<u64>,
    /// The events that it rests on besides: those of prompts and documents.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub related: Vec<u64>,
}

/// A text and the event it is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Said<'a> {
    /// The words.
    pub text: &'a str,
    /// The event.
    pub event: Option<u64>,
}

impl<'a> Said<'a> {
    /// A text outside of any run.
    #[must_use]
    pub const fn new(text: &'a str) -> Self {
        Self { text, event: None }
    }
}

/// When a reply has to cite.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CitationDuty {
    /// Always.
    #[default]
    Always,
    /// Where there are documents.
    WithDocuments,
    /// Never; what is cited is held against the documents all the same.
    Never,
}

/// What may differ from place to place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// When a reply has to cite.
    pub citations: CitationDuty,
    /// Instructions that have to be refused or escalated; at first [`HIGH_RISK`].
    pub high_risk: Vec<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self { citations: CitationDuty::default(), high_risk: HIGH_RISK.map(str::to_owned).into() }
    }
}

/// A reply with all it is held against.
#[derive(Debug, Clone, Copy)]
pub struct Reply<'a> {
    /// The reply.
    pub said: Said<'a>,
    /// What was asked; empty where that is not known.
    pub prompts: &'a [Said<'a>],
    /// The documents that it may cite, or `None` if nothing is known of documents.
    pub documents: Option<&'a [Document]>,
    /// Other texts that quotations and numbers may be from: what tools that give no documents returned.
    pub others: &'a [&'a str],
}

/// Answers all checks, in the order of [`Check::ALL`]. Total: a reply, a prompt or documents over the limits fail every
/// check, since they are not read.
#[must_use]
pub fn verify(reply: &Reply<'_>, settings: &Settings) -> Vec<CheckResult> {
    let findings = findings(reply, settings, &Check::ALL);
    findings.into_iter().map(|(check, finding)| finding.result(check, reply)).collect()
}

/// Answers some checks, as [`verify`] does all.
pub(crate) fn findings(reply: &Reply<'_>, settings: &Settings, checks: &[Check]) -> Vec<(Check, Finding)> {
    if let Some(why) = over_limits(reply) {
        return checks.iter().map(|check| (*check, Finding::fail(why.clone()))).collect();
    }
    let cited = citation::Cited::of(reply);
    // Two others ask whether the reply refuses.
    let asks = [Check::CitationPresence, Check::FactConsistency, Check::RefusalPolicy];
    let refusal = checks.iter().any(|check| asks.contains(check)).then(|| refusal::check(reply, settings));
    let refused = refusal.as_ref().is_some_and(|refusal| refusal.status == Status::Pass);
    let finding = |check: &Check| match check {
        Check::CitationPresence => citation::presence(&cited, reply, settings, refused),
        Check::CitationMatch => citation::matches(&cited, reply),
        Check::FactConsistency => terms::consistency(&cited, reply, refused),
        Check::RefusalPolicy => refusal.clone().unwrap_or_else(|| refusal::check(reply, settings)),
        Check::QuotationGrounding => grounding::quoted(&cited, reply),
        Check::NumberGrounding => grounding::numbered(&cited, reply),
    };
    checks.iter().map(|check| (*check, finding(check))).collect()
}

fn over_limits(reply: &Reply<'_>) -> Option<String> {
    let prompts: usize = reply.prompts.iter().map(|said| said.text.len()).sum();
    for (what, bytes) in [("reply", reply.said.text.len()), ("prompt", prompts)] {
        if bytes > MAX_REPLY_BYTES {
            return Some(format!("the {what} has {bytes} bytes; the limit is {MAX_REPLY_BYTES}"));
        }
    }
    let documents = reply.documents.unwrap_or_default();
    if documents.len() > MAX_DOCUMENTS {
        let count = documents.len();
        return Some(format!("there are {count} documents; the limit is {MAX_DOCUMENTS}"));
    }
    let others: usize = reply.others.iter().map(|text| text.len()).sum();
    let bytes = others + documents.iter().map(|document| document.text.len()).sum::<usize>();
    (bytes > MAX_DOCUMENT_BYTES)
        .then(|| format!("the documents have {bytes} bytes; the limit is {MAX_DOCUMENT_BYTES}"))
}

/// What a statement about a reply comes to where its check does not apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Absence {
    /// The reply or the prompt has nothing that it speaks of, so that it holds of all there is.
    Nothing,
    /// What it speaks of is there, and rests on nothing.
    Support,
    /// It cannot be told, or does not count here.
    Knowledge,
}

/// A result in the making.
#[derive(Debug, Clone)]
pub(crate) struct Finding {
    pub(crate) status: Status,
    /// Set where the check does not apply.
    pub(crate) absent: Option<Absence>,
    pub(crate) explanation: String,
    pub(crate) named: Vec<String>,
    pub(crate) places: Vec<Place>,
    related: Vec<u64>,
}

impl Finding {
    fn new(status: Status, explanation: impl Into<String>) -> Self {
        let explanation = explanation.into();
        let (named, places, related) = (Vec::new(), Vec::new(), Vec::new());
        Self { status, absent: None, explanation, named, places, related }
    }

    fn pass(explanation: impl Into<String>) -> Self {
        Self::new(Status::Pass, explanation)
    }

    fn fail(explanation: impl Into<String>) -> Self {
        Self::new(Status::Fail, explanation)
    }

    fn not_applicable(absent: Absence, explanation: impl Into<String>) -> Self {
        Self { absent: Some(absent), ..Self::new(Status::NotApplicable, explanation) }
    }

    /// Adds what it is about.
    fn named(mut self, named: impl IntoIterator<Item = impl AsRef<str>>) -> Self {
        for name in named {
            if self.named.len() >= MAX_NAMED {
                break;
            }
            let name: String = name.as_ref().chars().take(MAX_NAMED_CHARS).collect();
            if !self.named.contains(&name) {
                self.named.push(name);
            }
        }
        self
    }

    /// Adds places in the reply.
    fn in_reply(self, reply: &Reply<'_>, spans: impl IntoIterator<Item = Span>) -> Self {
        self.at(Side::Reply, reply.said.event, spans)
    }

    fn at(mut self, text: Side, event: Option<u64>, spans: impl IntoIterator<Item = Span>) -> Self {
        let room = MAX_SPANS.saturating_sub(self.places.len());
        let places = spans.into_iter().take(room);
        self.places.extend(places.map(|span| Place { text, event, start: span.start, end: span.end }));
        self
    }

    fn resting_on(mut self, events: impl IntoIterator<Item = Option<u64>>) -> Self {
        for event in events.into_iter().flatten() {
            if !self.related.contains(&event) && self.related.len() < MAX_SPANS {
                self.related.push(event);
            }
        }
        self
    }

    fn result(self, check: Check, reply: &Reply<'_>) -> CheckResult {
        let Self { status, explanation, named, places, related, .. } = self;
        CheckResult { check, status, explanation, named, places, event: reply.said.event, related }
    }
}

/// `1 word`, `2 words`.
fn count(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}
