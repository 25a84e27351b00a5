//! Links to the console as messages.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Makes a link to the console that works once. Needs the approver's credential.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MakeLink {
    /// Whom it lets choose a password, or `None` for a link that signs in as the caller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invite: Option<String>,
    /// With `invite`: what they may do; `viewer` unless said otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
}

/// A link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MadeLink {
    /// The link.
    pub url: String,
    /// Where the console is.
    pub origin: String,
}
