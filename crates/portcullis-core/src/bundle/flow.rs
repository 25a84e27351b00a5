//! Reads `[flow]` of `portcullis.toml`.
//!
//! ```toml
//! [flow]
//! strict = true   # hold what goes to an address from running text or has no word in the request
//! ```

use super::toml_table::Table;

/// How strictly calls are weighed against what tools returned and the user asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FlowSettings {
    /// Hold, besides, what goes to an address from running text or has no word in the request.
    pub strict: bool,
}

pub(super) fn read(mut table: Table<'_, '_>) -> FlowSettings {
    let strict = table.boolean("strict").unwrap_or_default();
    table.finish();
    FlowSettings { strict }
}
