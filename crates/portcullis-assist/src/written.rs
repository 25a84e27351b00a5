//! Contracts as people write them down: a statement, and what it is worth beside the others.
//!
//! In files and requests a contract is a text, or an object with the text under `statement` and one of `priority` (`high`,
//! `medium`, `low`; the tags `HIGH_PRIORITY`, … mean the same), `rank` (1 is the first) and `weight`. Ranks and weights
//! compare all contracts, so that each has one or none has; they exclude each other and the tags.

use std::borrow::Cow;
use std::fmt;

use portcullis_contracts::{Contract, Priority, StatementError, compile_explained};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error as _, MapAccess, Visitor, value::MapAccessDeserializer};
use serde::{Deserialize, Deserializer};

use crate::repair::Priorities;

/// What matters more, in three words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "ContractPriority")]
pub enum Tag {
    /// It gives way first.
    #[serde(alias = "LOW_PRIORITY")]
    Low,
    /// As if there were no tag.
    #[serde(alias = "MEDIUM_PRIORITY")]
    Medium,
    /// It outweighs all others.
    #[serde(alias = "HIGH_PRIORITY")]
    High,
}

impl Tag {
    const fn priority(self) -> Priority {
        match self {
            Self::Low => Priority::LOW,
            Self::Medium => Priority::MEDIUM,
            Self::High => Priority::HIGH,
        }
    }
}

/// One contract, as it is written down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// What the reply has to keep.
    pub statement: String,
    /// A tag.
    pub priority: Option<Tag>,
    /// A rank, 1 the first.
    pub rank: Option<u32>,
    /// A weight.
    pub weight: Option<u32>,
}

impl From<&str> for Written {
    fn from(statement: &str) -> Self {
        Self { statement: statement.to_owned(), priority: None, rank: None, weight: None }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "WeighedStatement")]
struct Fields {
    statement: String,
    priority: Option<Tag>,
    rank: Option<u32>,
    weight: Option<u32>,
}

impl JsonSchema for Written {
    fn schema_name() -> Cow<'static, str> {
        "WrittenContract".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A statement, alone or with what it is worth beside the others.",
            "anyOf": [{ "type": "string" }, generator.subschema_for::<Fields>()],
        })
    }
}

impl<'de> Deserialize<'de> for Written {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Written;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a statement, or an object with `statement`")
            }

            fn visit_str<E: serde::de::Error>(self, statement: &str) -> Result<Written, E> {
                Ok(statement.into())
            }

            fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<Written, M::Error> {
                let Fields { statement, priority, rank, weight } =
                    Fields::deserialize(MapAccessDeserializer::new(map))?;
                if rank == Some(0) {
                    return Err(M::Error::custom("ranks begin with 1"));
                }
                Ok(Written { statement, priority, rank, weight })
            }
        }
        deserializer.deserialize_any(Either)
    }
}

/// Why contracts cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WrittenError {
    /// One of the statements.
    #[error(transparent)]
    Statement(#[from] StatementError),
    /// Not all have a rank, or a weight.
    #[error("contract {number} has no {what} and others have one; give one to each, or to none")]
    Some {
        /// The first without, from 1.
        number: usize,
        /// `rank` or `weight`.
        what: &'static str,
    },
    /// Two ways to say the same.
    #[error("`priority`, `rank` and `weight` exclude each other; keep one of them")]
    Mixed,
}

/// Contracts that are ready to be checked.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Compiled {
    /// The contracts, in order.
    pub contracts: Vec<Contract>,
    /// What matters more.
    pub priorities: Priorities,
    /// Ids of those where something had to be decided on the way, such as whether `3` means exactly 3.
    pub ambiguous: Vec<String>,
}

impl Compiled {
    /// Compiles contracts as they were written.
    ///
    /// # Errors
    /// A statement cannot be compiled, or what they are worth does not fit together.
    pub fn of(written: &[Written]) -> Result<Self, WrittenError> {
        let statements: Vec<&str> = written.iter().map(|one| one.statement.as_str()).collect();
        let mut contracts = Vec::with_capacity(written.len());
        let mut ambiguous = Vec::new();
        for ((mut contract, explanation), one) in compile_explained(&statements)?.into_iter().zip(written) {
            contract.priority = one.priority.map_or(Priority::MEDIUM, Tag::priority);
            if explanation.is_ambiguous() {
                ambiguous.push(contract.id.clone());
            }
            contracts.push(contract);
        }
        let ranks = all("rank", written.iter().map(|one| one.rank))?;
        let weights = all("weight", written.iter().map(|one| one.weight))?;
        let tagged = written.iter().any(|one| one.priority.is_some());
        let priorities = match (ranks, weights) {
            (None, None) => Priorities::Contracts,
            (Some(ranks), None) if !tagged => Priorities::Ranks(ranks),
            (None, Some(weights)) if !tagged => Priorities::Weights(weights),
            _ => return Err(WrittenError::Mixed),
        };
        Ok(Self { contracts, priorities, ambiguous })
    }
}

/// All of them, or none.
fn all(
    what: &'static str,
    values: impl Iterator<Item = Option<u32>> + Clone,
) -> Result<Option<Vec<u32>>, WrittenError> {
    if values.clone().all(|value| value.is_none()) {
        return Ok(None);
    }
    let each = values.enumerate().map(|(at, value)| value.ok_or(WrittenError::Some { number: at + 1, what }));
    each.collect::<Result<Vec<u32>, WrittenError>>().map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compiled(text: &str) -> Result<Compiled, String> {
        let written: Vec<Written> = serde_json::from_str(text).map_err(|error| error.to_string())?;
        Compiled::of(&written).map_err(|error| error.to_string())
    }

    #[test]
    fn a_contract_is_a_text_or_an_object() {
        let plain = compiled(r#"["Be kind.", {"statement": "Do not use commas."}]"#).unwrap();
        assert_eq!(plain.priorities, Priorities::Contracts);
        let tags = compiled(
            r#"[{"statement": "Be kind.", "priority": "HIGH_PRIORITY"}, {"statement": "Be brief.", "priority": "low"}]"#,
        );
        let priorities: Vec<Priority> = tags.unwrap().contracts.iter().map(|one| one.priority).collect();
        assert_eq!(priorities, [Priority::HIGH, Priority::LOW]);
        let weighed =
            compiled(r#"[{"statement": "Be kind.", "weight": 3}, {"statement": "Be brief.", "weight": 1}]"#);
        assert_eq!(weighed.unwrap().priorities, Priorities::Weights(vec![3, 1]));
        assert_eq!(compiled(r#"["Use three bullet points."]"#).unwrap().ambiguous, ["c1"]);
    }

    #[test]
    fn what_does_not_fit_together_is_an_error() {
        for (text, says) in [
            (r#"[{"statement": "Be kind.", "weight": 3}, "Be brief."]"#, "contract 2 has no weight"),
            (r#"[{"statement": "Be kind.", "weight": 3, "rank": 1}]"#, "exclude each other"),
            (r#"[{"statement": "Be kind.", "priority": "low", "rank": 1}]"#, "exclude each other"),
            (r#"[{"statement": "Be kind.", "rank": 0}]"#, "ranks begin with 1"),
            (r#"[{"statement": "Be kind.", "wieght": 3}]"#, "unknown field `wieght`"),
            (r#"[{"statement": " "}]"#, "empty"),
            ("[3]", "expected a statement, or an object with `statement`"),
        ] {
            let error = compiled(text).unwrap_err();
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
