//! Reads `[loops]` of `portcullis.toml`.
//!
//! ```toml
//! [loops]
//! alike = 10      # the eleventh near-identical call among the latest 32 is denied; 0: never
//! denials = 12    # that many denials among the latest 20 calls pause the run; 0: never
//! ```

use super::toml_table::Table;

/// How much repetition is too much.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoopSettings {
    /// Near-identical calls among those remembered before a further one is denied; 0 for any number.
    pub alike: u32,
    /// Denials among the verdicts remembered that pause the run; 0 for any number.
    pub denials: u32,
}

impl Default for LoopSettings {
    fn default() -> Self {
        Self { alike: 10, denials: 12 }
    }
}

pub(super) fn read(mut table: Table<'_, '_>) -> LoopSettings {
    let default = LoopSettings::default();
    let alike = table.integer("alike", 0).unwrap_or(default.alike);
    let denials = table.integer("denials", 0).unwrap_or(default.denials);
    table.finish();
    LoopSettings { alike, denials }
}
