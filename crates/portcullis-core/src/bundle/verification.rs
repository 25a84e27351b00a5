//! Reads `[verification]` of `portcullis.toml`.
//!
//! ```toml
//! [verification]
//! sources = ["retrieve_compliance_documents"]   # tools whose results are documents; else those of type RETRIEVE_DOCS
//! citations = "with-documents"                  # or "always", "never"
//! given_documents = false                       # whether documents that come with a reply count
//! high_risk = ["wire transfer"]                 # instructions that a reply must refuse or escalate
//! ```

use std::collections::BTreeSet;

use super::placed::{Placed, placed};
use super::toml_table::{File, Table};
use crate::limits::{HIGH_RISK_MAX, NAME_BYTES_MAX};

/// What replies are verified against.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerificationSettings {
    /// Tools whose results are documents, by name or id, or `None` for those of type `RETRIEVE_DOCS`.
    pub sources: Option<BTreeSet<String>>,
    /// When a reply has to cite.
    pub citations: Citations,
    /// Whether documents handed over with the reply count.
    pub given_documents: bool,
    /// Instructions that a reply has to refuse or escalate, or `None` for those that ship.
    pub high_risk: Option<Vec<String>>,
}

/// When a reply has to cite a document.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Citations {
    /// Always.
    Always,
    /// Where the run has retrieved documents.
    #[default]
    WithDocuments,
    /// Never. What is cited is held against the documents all the same.
    Never,
}

/// The settings, and the tools they name with their places.
pub(super) fn read(file: &File<'_>, mut table: Table<'_, '_>) -> (VerificationSettings, Vec<Placed<String>>) {
    let words = [
        ("always", Citations::Always),
        ("with-documents", Citations::WithDocuments),
        ("never", Citations::Never),
    ];
    let sources: Option<Vec<Placed<String>>> =
        table.strings("sources").map(|fields| fields.into_iter().map(|field| placed(file, field)).collect());
    let citations = table.word("citations", &words).unwrap_or_default();
    let given_documents = table.boolean("given_documents").unwrap_or(false);
    let high_risk = table.strings("high_risk").map(|fields| {
        if let Some(field) = fields.get(HIGH_RISK_MAX) {
            let message = format!("more than {HIGH_RISK_MAX} high-risk instructions");
            file.report(file.at(field.span.clone(), message));
        }
        for field in &fields {
            let words = field.value.chars().any(char::is_alphanumeric);
            if !words || field.value.len() > NAME_BYTES_MAX {
                let message =
                    format!("an instruction must contain a word and have at most {NAME_BYTES_MAX} bytes");
                file.report(file.at(field.span.clone(), message));
            }
        }
        fields.into_iter().map(|field| field.value).collect()
    });
    table.finish();
    let names = sources.as_ref().map(|sources| sources.iter().map(|source| source.value.clone()).collect());
    let settings = VerificationSettings { sources: names, citations, given_documents, high_risk };
    (settings, sources.unwrap_or_default())
}
