//! Principals: on whose behalf an agent acts. They come from credentials that the bundle maps, never from the
//! agent's own words.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Who stands behind a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Principal {
    /// Unique name.
    pub id: String,
    /// Roles, for policies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<String>,
    /// Attributes, for policies.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: BTreeMap<String, String>,
}

impl Principal {
    /// A principal without roles or attributes.
    pub fn named(id: impl Into<String>) -> Self {
        Self { id: id.into(), roles: Vec::new(), attributes: BTreeMap::new() }
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
