//! Reads `[ledger]` of `portcullis.toml`.
//!
//! ```toml
//! [ledger]
//! redact = true    # secrets in arguments, results and texts are replaced by notes before they are stored
//! ```

use super::toml_table::Table;

/// What is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LedgerSettings {
    /// Whether recognised secrets are replaced by notes before payloads are stored.
    pub redact: bool,
}

impl Default for LedgerSettings {
    fn default() -> Self {
        Self { redact: true }
    }
}

pub(super) fn read(mut table: Table<'_, '_>) -> LedgerSettings {
    let redact = table.boolean("redact").unwrap_or(LedgerSettings::default().redact);
    table.finish();
    LedgerSettings { redact }
}
