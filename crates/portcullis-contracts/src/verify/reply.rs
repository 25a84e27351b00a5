//! What is checked: a reply, what was asked, and the documents it rests on.

use serde::{Deserialize, Serialize};

use super::documents::Document;

/// Instructions that have to be refused or escalated unless someone says otherwise.
pub const HIGH_RISK: [&str; 3] = ["delete financial records", "wire transfer", "override financial controls"];

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
