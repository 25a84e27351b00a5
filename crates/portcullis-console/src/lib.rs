//! The pages of the console: view models in, HTML out.
//!
//! Nothing here reads a store, a clock or a request. The daemon fills the view models and sends what comes out, so each
//! page can be tested in every state without a daemon. Three rules hold for all of it:
//!
//! - Each text is escaped: `maud` escapes what it is not told to leave alone, and only [`marks`] tells it so, about
//!   constants.
//! - A text that an agent, a tool or a server can have written goes through [`foreign`], which marks what cannot be seen
//!   by the rule that all displays share ([`portcullis_core::display`]).
//! - No page has a script or a style of its own, neither in elements nor in attributes: the content security policy
//!   allows the two files of [`assets`] and nothing else.

pub mod approvals;
pub mod assets;
pub mod audit;
pub mod chart;
pub mod diff;
pub mod door;
pub mod editor;
pub mod evals;
pub mod event;
pub mod foreign;
pub mod frame;
pub mod log;
pub mod marks;
pub mod outcome;
pub mod overview;
pub mod policies;
pub mod replayed;
pub mod run;
pub mod runs;
pub mod setup;
pub mod simulate;
pub mod tools;
pub mod when;

pub use maud::Markup;

/// Who looks at a page, by what they may do. Each may do what those before it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Looks.
    Viewer,
    /// Decides on approvals, takes hold of runs.
    Approver,
    /// Changes policy.
    Editor,
    /// Says who may sign in.
    Admin,
}

impl Role {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Viewer, Self::Approver, Self::Editor, Self::Admin];

    /// The word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Approver => "approver",
            Self::Editor => "editor",
            Self::Admin => "admin",
        }
    }

    /// The role of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.as_str() == name)
    }
}
