//! What arguments hold.

use serde::Serialize;

/// What an argument may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Holds {
    /// SQL.
    Sql,
    /// A shell command line.
    Shell,
    /// A path.
    Path,
    /// A URL.
    Url,
    /// Mail addresses.
    Email,
    /// An amount of money.
    Money,
    /// Python.
    Code,
    /// A task in plain language.
    Task,
    /// A patch of files.
    Patch,
}

impl Holds {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Sql,
        Self::Shell,
        Self::Path,
        Self::Url,
        Self::Email,
        Self::Money,
        Self::Code,
        Self::Task,
        Self::Patch,
    ];

    /// The word in bundles.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sql => "sql",
            Self::Shell => "shell",
            Self::Path => "path",
            Self::Url => "url",
            Self::Email => "email",
            Self::Money => "money",
            Self::Code => "code",
            Self::Task => "task",
            Self::Patch => "patch",
        }
    }

    pub(super) fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|holds| holds.as_str() == word)
    }

    /// Whether the text itself says what is done.
    pub const fn speaks_for_itself(self) -> bool {
        matches!(self, Self::Sql | Self::Shell | Self::Code | Self::Task | Self::Patch)
    }
}
