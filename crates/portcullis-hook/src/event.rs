//! What is sent to the daemon about one event, and what it answers.

use std::borrow::Cow;
use std::fmt::Display;

use serde::{Deserialize, Serialize};

/// Where the daemon takes events.
pub const PATH: &str = "/v1/hook";
/// The exit code that blocks.
pub const BLOCKED: u8 = 2;

/// One event of a coding agent's session, to be answered in its client's format.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ReportHookEvent<'a> {
    /// The client's JSON, byte for byte.
    pub input: Cow<'a, str>,
    /// Which agent it is of, or `None` for Claude Code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Absolute path of the bundle's folder, or `None` for the shipped bundle of a developer's machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bundle: Option<String>,
    /// The runtime policy, or `None` for the bundle's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// Calls that a person has to decide on are left to the client's own prompt, where it shows one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ask: bool,
    /// Calls that are permitted are left to the client's own rules and prompts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub defer: bool,
    /// Command lines are left as they are, whatever the bundle contains.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub uncontained: bool,
    /// The folder that the agent works in, see [`place`](crate::place).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// The user's home folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub home: Option<String>,
}

/// What a hook's process says, and how it ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Answered {
    /// For standard output.
    pub output: String,
    /// For standard error.
    pub error: String,
    /// The exit code.
    pub exit: u8,
}

impl Answered {
    /// An answer in the client's format.
    #[must_use]
    pub fn with(output: impl Into<String>) -> Self {
        Self { output: output.into(), error: String::new(), exit: 0 }
    }

    /// Blocks what the event is about.
    #[must_use]
    pub fn blocked(why: impl Display) -> Self {
        let error = format!("portcullis: {why}; blocked because it could not be judged");
        Self { output: String::new(), error, exit: BLOCKED }
    }

    /// Writes the answer to standard output and standard error; the exit code to end with.
    #[must_use]
    pub fn say(self) -> u8 {
        use std::io::Write as _;
        let mut answered = self;
        if answered.exit == 0 {
            let mut out = std::io::stdout();
            if writeln!(out, "{}", answered.output).and_then(|()| out.flush()).is_err() {
                answered = Self::blocked("the answer could not be written");
            }
        }
        if !answered.error.is_empty() {
            // When even this cannot be written, the exit code says it.
            let _unwritten = writeln!(std::io::stderr(), "{}", answered.error);
        }
        answered.exit
    }
}
