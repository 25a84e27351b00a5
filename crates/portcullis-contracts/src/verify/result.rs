//! What a check asks, and what it says.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::reply::Reply;
use crate::limits::{MAX_NAMED, MAX_NAMED_CHARS, MAX_SPANS};
use crate::text::Span;

/// What is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[schemars(rename = "ReplyCheck")]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ReplyCheckStatus")]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// The reply.
    Reply,
    /// What was asked.
    Prompt,
}

/// A place in one of the texts, in bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ReplyPlace")]
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ReplyCheckResult")]
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
    pub(super) fn new(status: Status, explanation: impl Into<String>) -> Self {
        let explanation = explanation.into();
        let (named, places, related) = (Vec::new(), Vec::new(), Vec::new());
        Self { status, absent: None, explanation, named, places, related }
    }

    pub(super) fn pass(explanation: impl Into<String>) -> Self {
        Self::new(Status::Pass, explanation)
    }

    pub(super) fn fail(explanation: impl Into<String>) -> Self {
        Self::new(Status::Fail, explanation)
    }

    pub(super) fn not_applicable(absent: Absence, explanation: impl Into<String>) -> Self {
        Self { absent: Some(absent), ..Self::new(Status::NotApplicable, explanation) }
    }

    /// Adds what it is about.
    pub(super) fn named(mut self, named: impl IntoIterator<Item = impl AsRef<str>>) -> Self {
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
    pub(super) fn in_reply(self, reply: &Reply<'_>, spans: impl IntoIterator<Item = Span>) -> Self {
        self.at(Side::Reply, reply.said.event, spans)
    }

    pub(super) fn at(
        mut self,
        text: Side,
        event: Option<u64>,
        spans: impl IntoIterator<Item = Span>,
    ) -> Self {
        let room = MAX_SPANS.saturating_sub(self.places.len());
        let places = spans.into_iter().take(room);
        self.places.extend(places.map(|span| Place { text, event, start: span.start, end: span.end }));
        self
    }

    pub(super) fn resting_on(mut self, events: impl IntoIterator<Item = Option<u64>>) -> Self {
        for event in events.into_iter().flatten() {
            if !self.related.contains(&event) && self.related.len() < MAX_SPANS {
                self.related.push(event);
            }
        }
        self
    }

    pub(super) fn result(self, check: Check, reply: &Reply<'_>) -> CheckResult {
        let Self { status, explanation, named, places, related, .. } = self;
        CheckResult { check, status, explanation, named, places, event: reply.said.event, related }
    }
}

/// `1 word`, `2 words`.
pub(super) fn count(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}
