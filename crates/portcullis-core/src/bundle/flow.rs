//! Reads `[flow]` of `portcullis.toml`.
//!
//! ```toml
//! [flow]
//! strict = true    # hold what goes to an address from running text or has no word in the request
//! excise = false   # leave planted orders in what tools return; calls are judged all the same
//! ```

use super::toml_table::Table;

/// How strictly calls are weighed against what tools returned and the user asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowSettings {
    /// Hold, besides, what goes to an address from running text or has no word in the request.
    pub strict: bool,
    /// Replace planted orders in what tools return.
    pub excise: bool,
}

impl Default for FlowSettings {
    fn default() -> Self {
        Self { strict: false, excise: true }
    }
}

pub(super) fn read(mut table: Table<'_, '_>) -> FlowSettings {
    let default = FlowSettings::default();
    let strict = table.boolean("strict").unwrap_or(default.strict);
    let excise = table.boolean("excise").unwrap_or(default.excise);
    table.finish();
    FlowSettings { strict, excise }
}
