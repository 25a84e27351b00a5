//! Reads `[work]` of `portcullis.toml`.
//!
//! ```toml
//! [work]
//! attempts = 3                    # checks of one claim that give no answer, before a person is needed
//! revisions = 5                   # claims that are turned down, before a person is needed
//! steps = 500                     # steps of the run between starting an item and claiming it
//! accept_agent_criteria = false   # whether what an agent proposes to be measured by needs nobody's yes
//! ```

use super::toml_table::Table;

/// How far items go without a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkSettings {
    /// Checks of one claim that may give no answer.
    pub attempts: u32,
    /// Claims of one item that may be turned down.
    pub revisions: u32,
    /// Steps of the run between starting an item and claiming it.
    pub steps: u32,
    /// Whether what an agent proposes to be measured by needs nobody's yes.
    pub accept_agent_criteria: bool,
}

impl Default for WorkSettings {
    fn default() -> Self {
        Self { attempts: 3, revisions: 5, steps: 500, accept_agent_criteria: false }
    }
}

pub(super) fn read(mut table: Table<'_, '_>) -> WorkSettings {
    let default = WorkSettings::default();
    let attempts = table.integer("attempts", 1).unwrap_or(default.attempts);
    let revisions = table.integer("revisions", 0).unwrap_or(default.revisions);
    let steps = table.integer("steps", 1).unwrap_or(default.steps);
    let accept_agent_criteria =
        table.boolean("accept_agent_criteria").unwrap_or(default.accept_agent_criteria);
    table.finish();
    WorkSettings { attempts, revisions, steps, accept_agent_criteria }
}
