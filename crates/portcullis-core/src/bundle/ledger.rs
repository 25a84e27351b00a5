//! Reads `[ledger]` of `portcullis.toml`.
//!
//! ```toml
//! [ledger]
//! redact = true           # secrets in arguments, results and texts are replaced by notes before they are stored
//! anchor = "background"   # or "before-effects": no effect before the transparency log has the run
//! ```

use super::toml_table::Table;

/// What is stored, and what has to be logged before anything happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LedgerSettings {
    /// Whether recognised secrets are replaced by notes before payloads are stored.
    pub redact: bool,
    /// When a run has to be in the transparency log.
    pub anchor: AnchorTime,
}

impl Default for LedgerSettings {
    fn default() -> Self {
        Self { redact: true, anchor: AnchorTime::Background }
    }
}

/// When a run has to be in the transparency log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnchorTime {
    /// Soon: no action waits for it.
    Background,
    /// Before its first action that may have an effect. While the log cannot go on, no such action does.
    BeforeEffects,
}

/// The words for it.
const TIMES: [(&str, AnchorTime); 2] =
    [("background", AnchorTime::Background), ("before-effects", AnchorTime::BeforeEffects)];

pub(super) fn read(mut table: Table<'_, '_>) -> LedgerSettings {
    let default = LedgerSettings::default();
    let redact = table.boolean("redact").unwrap_or(default.redact);
    let anchor = table.word("anchor", &TIMES).unwrap_or(default.anchor);
    table.finish();
    LedgerSettings { redact, anchor }
}
