//! What the source of facts about contracts is asked, and what it answers. Both are recorded: the question in the
//! line of the verdict, the answer, which quotes texts, beside it.

use std::collections::BTreeMap;

use portcullis_core::fact::FactRequest;
use portcullis_core::id::DigestBuilder;
use serde::{Deserialize, Serialize};

use super::{GateContract, SOURCE};

/// What is asked about a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum ContractQuestion {
    /// Whether it keeps these contracts, which are left to a judge.
    Judge(Asked),
    /// The same of the text as code repairs it; and, where a contract names a strategy, a rewrite that keeps what is
    /// still broken. These are all contracts that are about the text.
    Repair(Asked),
}

/// Contracts that a question is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    /// Their names.
    pub contracts: Vec<String>,
    /// A digest of what they say, so that an answer is not taken for one about other statements.
    pub of: String,
}

/// What judges and models say.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContractAnswer {
    /// By name, the contracts that are left to a judge.
    pub judged: BTreeMap<String, Said>,
    /// A rewrite, where one was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rewritten: Option<Rewritten>,
    /// Why a rewrite that was wanted was not made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

/// What a judge says of one contract.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Said {
    /// Whether it holds, or `None` if the judge could not tell.
    pub holds: Option<bool>,
    /// Why, in the judge's words; or why it could not tell.
    pub why: String,
}

/// A text that a model has rewritten.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rewritten {
    /// The text.
    pub text: String,
    /// What the judges say of it.
    pub judged: BTreeMap<String, Said>,
}

impl Asked {
    pub(super) fn of(contracts: &[&GateContract]) -> Self {
        /// Hex digits of a digest that tells statements apart.
        const DIGITS: usize = 16;
        let mut digest = DigestBuilder::new("portcullis/contracts/v1");
        for GateContract { settings, .. } in contracts {
            digest = digest.part(settings.statement.as_bytes());
            digest = digest.part(format!("{:?} {:?}", settings.judge, settings.strategy).as_bytes());
            digest = digest.part(format!("{:?}", settings.on_fail).as_bytes());
        }
        let digest = digest.finish().to_string();
        let names = contracts.iter().map(|contract| contract.settings.name.clone());
        Self { contracts: names.collect(), of: digest.get(..DIGITS).unwrap_or_default().to_owned() }
    }

    /// Whether these are the contracts that were meant.
    pub fn is_about(&self, contracts: &[&GateContract]) -> bool {
        *self == Self::of(contracts)
    }
}

impl ContractQuestion {
    /// The request to the source.
    pub fn request(&self) -> FactRequest {
        // A list of names always has a JSON text.
        let question = serde_json::to_string(self).unwrap_or_default();
        FactRequest { source: SOURCE.to_owned(), question }
    }
}
