//! The steps on the way to a level, and how far this machine lets a command be confined.

use portcullis_core::profile::Level;
use serde::{Deserialize, Serialize};

/// A step on the way to a level.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Its name, such as `uid_map` or `landlock`.
    pub name: String,
    /// What it answered, if it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// What this machine can do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Probe {
    /// The highest level whose steps all worked.
    pub reached: Level,
    /// Landlock's ABI; 0 where the kernel has none.
    pub landlock: u32,
    /// Whether it can be seen which programs a command starts and what it is refused. Nothing that is held depends on it.
    pub watched: bool,
    /// The step that failed on the way to the next level, where there is one.
    pub failed: Option<Step>,
}
