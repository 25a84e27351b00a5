//! Principals: on whose behalf an agent acts. They come from credentials that the bundle maps, never from the
//! agent's own words.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The principal of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Principal {
    /// Unique name.
    pub id: String,
    /// Roles, for policies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<String>,
    /// Attributes, for policies.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: BTreeMap<String, Attribute>,
}

impl Principal {
    /// A principal without roles or attributes.
    pub fn named(id: impl Into<String>) -> Self {
        Self { id: id.into(), roles: Vec::new(), attributes: BTreeMap::new() }
    }
}

/// The value of an attribute, of a principal or of what it touches.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Attribute {
    /// True or false.
    Boolean(bool),
    /// A whole number.
    Integer(i64),
    /// A number with four decimal places.
    Decimal(Decimal),
    /// Text.
    Text(String),
}

/// A number with exactly four decimal places, as access policies compare them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Decimal {
    /// The number times ten thousand.
    pub ten_thousandths: i64,
}

impl std::fmt::Display for Decimal {
    /// `-12.5000`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sign = if self.ten_thousandths < 0 { "-" } else { "" };
        let value = self.ten_thousandths.unsigned_abs();
        write!(f, "{sign}{}.{:04}", value / 10_000, value % 10_000)
    }
}

impl From<bool> for Attribute {
    fn from(value: bool) -> Self {
        Self::Boolean(value)
    }
}

impl From<i64> for Attribute {
    fn from(value: i64) -> Self {
        Self::Integer(value)
    }
}

impl From<Decimal> for Attribute {
    fn from(value: Decimal) -> Self {
        Self::Decimal(value)
    }
}

impl From<String> for Attribute {
    fn from(value: String) -> Self {
        Self::Text(value)
    }
}

impl From<&str> for Attribute {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

/// What a credential entitles to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CredentialKind {
    /// May open runs, propose actions and report outcomes.
    Agent,
    /// May also decide approvals and take hold of runs.
    Approver,
}
