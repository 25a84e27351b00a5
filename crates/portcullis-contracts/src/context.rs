//! What a reply is held against beside its contracts: what was asked, documents, names, high-risk instructions.
//!
//! Most families look at the reply alone. Those that do not say what they need ([`Family::needs`]), and where it is not
//! given the contract is not decided here: it is judged, and [`Need::missing`] says what would make it exact.

use std::borrow::Cow;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use crate::contract::Contract;
use crate::family::Family;
use crate::limits::{MAX_HIGH_RISK, MAX_HIGH_RISK_BYTES};
use crate::names::{Names, NamesError};
use crate::verify::{Document, DocumentsError, HIGH_RISK, asks_for, documents_given};

/// What a family looks at beside the reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Need {
    /// What was asked.
    Prompt,
    /// The documents that the reply may cite.
    Documents,
    /// The names that must not occur.
    Names,
    /// Which instructions are high-risk.
    HighRisk,
}

impl Need {
    /// The field of records and requests that has it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Prompt => "prompt",
            Self::Documents => "documents",
            Self::Names => "names",
            Self::HighRisk => "high_risk",
        }
    }

    /// Why nothing can be decided without it, and what would change that.
    #[must_use]
    pub const fn missing(self) -> &'static str {
        match self {
            Self::Prompt => "the prompt is not known: with `prompt`, this is checked by code",
            Self::Documents => "the documents are not known: with `documents`, this is checked by code",
            Self::Names => "the names are not known: with a list of them in `names`, this is checked by code",
            Self::HighRisk => {
                "the prompt has none of the built-in high-risk instructions: with your own in `high_risk`, this is checked by code"
            }
        }
    }
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Family {
    /// What the family looks at beside the reply, where it decides nothing without. High-risk instructions are not among
    /// them: there are some that ship.
    #[must_use]
    pub const fn needs(&self) -> &'static [Need] {
        match self {
            Self::Cites { known: true, .. } => &[Need::Documents],
            Self::Grounded { facts: true, .. } => &[Need::Documents, Need::Prompt],
            Self::Grounded { .. } => &[Need::Documents],
            Self::Refuses { .. } => &[Need::Prompt],
            Self::Names { names } if names.is_empty() => &[Need::Names],
            _ => &[],
        }
    }
}

impl Contract {
    /// Whether a model or a program has to decide here: the statement is of no family, or of one whose context is missing.
    #[must_use]
    pub fn is_judged(&self, context: &Context<'_>) -> bool {
        self.family().is_none_or(|family| context.lacks(family).is_some())
    }
}

/// What a reply is held against. All of it may be unknown, which is not the same as empty.
#[derive(Debug, Clone, Copy, Default)]
pub struct Context<'a> {
    /// What was asked.
    pub prompt: Option<&'a str>,
    /// The documents that the reply may cite.
    pub documents: Option<&'a [Document]>,
    /// The names that statements about listed names mean.
    pub names: Option<&'a Names>,
    /// Which instructions are high-risk, in place of those that ship.
    pub high_risk: Option<&'a [String]>,
}

impl<'a> From<Option<&'a str>> for Context<'a> {
    /// A context of which only the prompt is known.
    fn from(prompt: Option<&'a str>) -> Self {
        Self { prompt, ..Self::default() }
    }
}

impl<'a> Context<'a> {
    /// The first of what a family needs and is not here.
    ///
    /// A prompt without any of the instructions that ship may be high-risk in other words, so that only a list of the
    /// caller's own, or of the statement, says that there is nothing to refuse.
    #[must_use]
    pub fn lacks(&self, family: &Family) -> Option<Need> {
        let has = |need: &&Need| match need {
            Need::Prompt => self.prompt.is_some(),
            Need::Documents => self.documents.is_some(),
            Need::Names => self.names.is_some(),
            Need::HighRisk => true,
        };
        if let Some(need) = family.needs().iter().find(|need| !has(need)) {
            return Some(*need);
        }
        let Family::Refuses { instructions } = family else { return None };
        let shipped = instructions.is_empty() && self.high_risk.is_none();
        let unlisted = shipped && !asks_for(self.prompt.unwrap_or_default(), &HIGH_RISK);
        unlisted.then_some(Need::HighRisk)
    }

    /// The names that a family forbids: its own, or those of the list.
    pub(crate) fn names_of(&self, own: &[String]) -> Option<Cow<'a, Names>> {
        if own.is_empty() { self.names.map(Cow::Borrowed) } else { Names::of(own).ok().map(Cow::Owned) }
    }

    /// Bytes that are read beside the reply to check a family once.
    pub(crate) fn bytes_for(&self, family: &Family) -> usize {
        let documents = self.documents.unwrap_or_default().iter().map(|document| document.text.len()).sum();
        match family {
            Family::Grounded { .. } => documents,
            Family::Cites { .. } | Family::Refuses { .. } => self.prompt.map_or(0, str::len),
            _ => 0,
        }
    }
}

/// Why a context that was handed over cannot be taken.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ContextError {
    /// The documents.
    #[error("`documents`: {0}")]
    Documents(#[from] DocumentsError),
    /// The names.
    #[error("`names`: {0}")]
    Names(#[from] NamesError),
    /// High-risk instructions: none, or too many.
    #[error("`high_risk`: 1 to {MAX_HIGH_RISK} instructions are taken; found {0}")]
    HighRisk(usize),
    /// A high-risk instruction that no prompt can have.
    #[error("`high_risk`: instruction {0} has no word, or more than {MAX_HIGH_RISK_BYTES} bytes")]
    Instruction(usize),
}

/// A context as people hand it over, read and within its limits.
#[derive(Debug, Clone, Default)]
pub struct Given {
    prompt: Option<String>,
    documents: Option<Vec<Document>>,
    names: Option<Names>,
    high_risk: Option<Vec<String>>,
}

impl Given {
    /// Reads the fields of a record or a request. Documents are a list of `{"id", "text"}` or an object from id to text.
    ///
    /// # Errors
    /// Documents, names or instructions that cannot be taken; an empty list of names or instructions is one, since every
    /// reply would pass.
    pub fn of(
        prompt: Option<String>,
        documents: Option<&Value>,
        names: Option<&[String]>,
        high_risk: Option<Vec<String>>,
    ) -> Result<Self, ContextError> {
        let documents = documents.map(documents_given).transpose()?;
        Ok(Self { documents, ..Self::with(prompt, None, names, high_risk)? })
    }

    /// The same from documents that are read already.
    ///
    /// # Errors
    /// As those of [`Given::of`].
    pub fn with(
        prompt: Option<String>,
        documents: Option<Vec<Document>>,
        names: Option<&[String]>,
        high_risk: Option<Vec<String>>,
    ) -> Result<Self, ContextError> {
        if let Some(phrases) = &high_risk {
            if !(1..=MAX_HIGH_RISK).contains(&phrases.len()) {
                return Err(ContextError::HighRisk(phrases.len()));
            }
            let usable =
                |text: &String| text.contains(char::is_alphanumeric) && text.len() <= MAX_HIGH_RISK_BYTES;
            if let Some(at) = phrases.iter().position(|phrase| !usable(phrase)) {
                return Err(ContextError::Instruction(at + 1));
            }
        }
        let names = names.map(Names::of).transpose()?;
        Ok(Self { prompt, documents, names, high_risk })
    }

    /// As checkers take it.
    #[must_use]
    pub fn context(&self) -> Context<'_> {
        Context {
            prompt: self.prompt.as_deref(),
            documents: self.documents.as_deref(),
            names: self.names.as_ref(),
            high_risk: self.high_risk.as_deref(),
        }
    }

    /// The same, with what is not given here from another.
    #[must_use]
    pub fn context_or<'a>(&'a self, other: &'a Self) -> Context<'a> {
        let (own, other) = (self.context(), other.context());
        Context {
            prompt: own.prompt.or(other.prompt),
            documents: own.documents.or(other.documents),
            names: own.names.or(other.names),
            high_risk: own.high_risk.or(other.high_risk),
        }
    }
}
