//! Hooks of coding agents: what an agent tells a hook on standard input, and what a hook may answer.
//!
//! One process is started for each event and gets one JSON object. [`Agent::parse`] reads it: the arguments of a tool
//! strictly, because they are judged; what a tool answered as it is, because it has already happened. Fields that we
//! do not know are left alone, events that we do not know are [`HookEvent::Other`], unless they are about a tool
//! call.
//!
//! ```text
//! {"session_id":"…","cwd":"/home/u/p","hook_event_name":"PreToolUse","tool_name":"Bash",
//!  "tool_input":{"command":"ls"},"tool_use_id":"toolu_…","permission_mode":"default","transcript_path":"…"}
//! ```
//!
//! The answer is one JSON object on standard output and exit code 0 ([`Agent::line`]). Exit code 2 blocks what the event is
//! about, with the reason on standard error; every agent takes it so.
//!
//! Agents differ in names and in what they let a hook do. [`shape`] has the table of names that each fills in; the file of
//! an agent has that table and its answers, and says which documentation it follows.

mod answer;
mod arguments;
mod claude_code;
mod cline;
mod codex;
mod copilot_cli;
mod crush;
mod cursor;
mod droid;
mod gemini_cli;
mod kimi_code;
mod kiro;
mod opencode;
mod pi;
mod qwen_code;
mod shape;
#[cfg(test)]
mod tests;
mod windsurf;

use serde_json::Value;

use crate::fields::FieldError;
use crate::strict::StrictError;
pub use answer::{Answer, Decision, ResultAnswer};
use shape::Shape;
pub use shape::Theirs;

/// Largest input of a hook, in bytes.
pub const INPUT_BYTES_MAX: usize = 16 << 20;
/// Longest text of a tool's answer, a prompt or a reply that is kept, in bytes. What is longer is cut and says so.
pub const TEXT_BYTES_MAX: usize = 8 << 20;
/// Longest name of a session, call, event, mode or tool, in bytes.
pub const NAME_BYTES_MAX: usize = 256;
/// Longest folder, in bytes.
pub const FOLDER_BYTES_MAX: usize = 4096;

/// A coding agent whose hooks are answered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Agent {
    /// Claude Code.
    #[default]
    ClaudeCode,
    /// Gemini CLI.
    GeminiCli,
    /// Codex CLI.
    Codex,
    /// Cursor.
    Cursor,
    /// GitHub Copilot CLI.
    CopilotCli,
    /// OpenCode.
    OpenCode,
    /// Qwen Code.
    QwenCode,
    /// Factory Droid.
    Droid,
    /// Kimi Code.
    KimiCode,
    /// Crush.
    Crush,
    /// pi.
    Pi,
    /// Windsurf, which is Devin Desktop by now.
    Windsurf,
    /// Kiro.
    Kiro,
    /// Cline, its CLI.
    Cline,
}

/// What an agent puts in the place of a tool's result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replaces {
    /// Nothing, as far as is known: it may have shown the result.
    Nothing,
    /// A value of the same shape.
    Value,
    /// A text.
    Text,
}

impl Agent {
    /// All of them.
    pub const ALL: [Self; 14] = [
        Self::ClaudeCode,
        Self::GeminiCli,
        Self::Codex,
        Self::Cursor,
        Self::CopilotCli,
        Self::OpenCode,
        Self::QwenCode,
        Self::Droid,
        Self::KimiCode,
        Self::Crush,
        Self::Pi,
        Self::Windsurf,
        Self::Kiro,
        Self::Cline,
    ];

    /// The word on the command line.
    #[must_use]
    pub const fn id(self) -> &'static str {
        self.shape().id
    }

    /// What people call it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.shape().name
    }

    /// The agent of a word on the command line.
    #[must_use]
    pub fn named(id: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|agent| agent.id() == id)
    }

    const fn shape(self) -> &'static Shape {
        match self {
            Self::ClaudeCode => &claude_code::SHAPE,
            Self::GeminiCli => &gemini_cli::SHAPE,
            Self::Codex => &codex::SHAPE,
            Self::Cursor => &cursor::SHAPE,
            Self::CopilotCli => &copilot_cli::SHAPE,
            Self::OpenCode => &opencode::SHAPE,
            Self::QwenCode => &qwen_code::SHAPE,
            Self::Droid => &droid::SHAPE,
            Self::KimiCode => &kimi_code::SHAPE,
            Self::Crush => &crush::SHAPE,
            Self::Pi => &pi::SHAPE,
            Self::Windsurf => &windsurf::SHAPE,
            Self::Kiro => &kiro::SHAPE,
            Self::Cline => &cline::SHAPE,
        }
    }

    /// Reads one input.
    ///
    /// # Errors
    /// [`HookError`] if it cannot be read, or two readers could read it differently.
    pub fn parse(self, input: &[u8]) -> Result<HookInput, HookError> {
        self.shape().parse(input)
    }

    /// Whether a hook can have it ask its user about a call.
    #[must_use]
    pub const fn asks(self) -> bool {
        self.shape().powers.asks
    }

    /// Whether command lines are rewritten so that they run contained. The others name no calls, run commands in a sandbox
    /// of their own, within which there is no way to the daemon, or check their user's rules against the line that runs.
    #[must_use]
    pub const fn runs_contained(self) -> bool {
        self.shape().powers.runs_contained
    }

    /// Whether a call can be made with other arguments, and its outcome still be known as that of the call.
    #[must_use]
    pub const fn changes_arguments(self) -> bool {
        self.shape().powers.changes_arguments
    }

    /// Whether changed arguments are put over those of the call, so that none can be taken away.
    const fn merges_arguments(self) -> bool {
        self.shape().powers.merges_arguments
    }

    /// Whether a hook can keep a prompt from the agent.
    #[must_use]
    pub const fn withholds_prompts(self) -> bool {
        self.shape().powers.withholds_prompts
    }

    /// Whether nothing is told of a call after it was made, or was not.
    #[must_use]
    pub const fn hides_outcomes(self) -> bool {
        self.shape().powers.hides_outcomes
    }

    /// Whether a call that was denied is told as one that failed.
    #[must_use]
    pub const fn tells_denials_as_failures(self) -> bool {
        self.shape().powers.tells_denials_as_failures
    }

    /// What it puts in the place of the result of a call.
    #[must_use]
    pub fn replaces(self, call: &HookCall, failed: bool) -> Replaces {
        let powers = &self.shape().powers;
        let shown = (failed && !powers.replaces_failures) || (powers.replaces_servers_only && !call.is_mcp());
        if shown { Replaces::Nothing } else { powers.replaces }
    }

    /// Why not, for an agent that is told so by exit code 2 with the reason on standard error, and reads nothing else; of a
    /// result, what it is told beside it.
    #[must_use]
    pub fn refusal(self, answer: &Answer, event: &HookEvent) -> Option<String> {
        let answer = answer.within(self, event);
        let why = match &answer {
            Answer::Call(Decision::Deny(why) | Decision::Ask(why, _)) | Answer::PromptBlocked(why) => why,
            Answer::Result(result) => result.context.as_ref().or(result.reason.as_ref())?,
            Answer::Nothing | Answer::Call(Decision::Allow(_)) | Answer::GoOn(_) => return None,
        };
        self.shape().powers.denies_by_code.then(|| answer::worded(why).to_owned())
    }

    /// An answer to an event, one line without its end, with a text for the user beside it. A blank for an agent that takes
    /// whatever is said for a part of the conversation, where there is nothing to say.
    #[must_use]
    pub fn line(self, answer: &Answer, note: Option<&str>, event: &HookEvent) -> String {
        let shape = self.shape();
        let mut fields = (shape.fields)(&answer.within(self, event), event);
        if let Some(note) = note.filter(|_| shape.powers.shows_notes) {
            fields.insert("systemMessage".to_owned(), note.into());
        }
        if fields.is_empty() && shape.powers.reads_any_output {
            return " ".to_owned();
        }
        Value::Object(fields).to_string()
    }
}

/// One event of an agent session.
#[derive(Debug, Clone, PartialEq)]
pub struct HookInput {
    /// Whose session it is.
    pub agent: Agent,
    /// The client's session.
    pub session: String,
    /// The agent's working directory, absolute.
    pub directory: Option<String>,
    /// How the client asks its user: `default`, `plan`, `acceptEdits`, `auto`, `dontAsk`, `bypassPermissions`.
    pub permission_mode: Option<String>,
    /// The event's name as sent.
    pub name: String,
    /// The agent goes on because it was kept from stopping, and wants to stop again.
    pub kept_going: bool,
    /// What happened.
    pub event: HookEvent,
}

/// What happened.
#[derive(Debug, Clone, PartialEq)]
pub enum HookEvent {
    /// A session began, or continues.
    SessionStart,
    /// The user said something.
    Prompt(String),
    /// The agent wants to call a tool.
    PreToolUse(HookCall),
    /// A tool answered.
    PostToolUse(HookCall, ToolResponse),
    /// A tool failed, with the client's words for it.
    PostToolUseFailure(HookCall, String),
    /// The client did not make the call: its user or its own rules said no.
    PermissionDenied(HookCall),
    /// The agent has finished its turn, with its reply if the client reports it.
    Stop(Option<String>),
    /// The session ended.
    SessionEnd,
    /// Something else.
    Other,
}

/// A tool call.
#[derive(Debug, Clone, PartialEq)]
pub struct HookCall {
    /// The tool, as bundles call it: one of the client's own, or `mcp__SERVER__TOOL`.
    pub tool: String,
    /// The arguments: an object, read strictly.
    pub arguments: Value,
    /// The client's id of the call; clients before 2.0.43 send none.
    pub id: Option<String>,
    /// What the client calls the tool and its arguments, where that is something else.
    pub theirs: Option<Theirs>,
}

impl HookCall {
    /// What the client calls the tool.
    #[must_use]
    pub fn shown(&self) -> &str {
        self.theirs.as_ref().map_or(&self.tool, |theirs| &theirs.tool)
    }

    /// Whether the tool is one of an MCP server. The client checks no schema of what is to be shown instead of its
    /// results.
    #[must_use]
    pub fn is_mcp(&self) -> bool {
        self.tool.starts_with("mcp__")
    }
}

/// What a tool answered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolResponse {
    /// The words, or the JSON text of what is not a string.
    pub text: String,
    /// Whether the text is JSON, as the client sent it.
    pub json: bool,
}

impl ToolResponse {
    /// What the client can show in its place so that the agent reads `text` instead. `None` if that would be a value
    /// of another shape, which the client ignores.
    #[must_use]
    pub fn replaced_by(&self, text: &str) -> Option<Value> {
        if !self.json {
            return Some(text.into());
        }
        let before = serde_json::from_str(&self.text).ok()?;
        let after = serde_json::from_str(text).ok()?;
        same_shape(&before, &after).then_some(after)
    }
}

/// Whether two values differ at most in what their strings say. Both were parsed, which bounds their depth.
fn same_shape(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::String(_), Value::String(_)) => true,
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same_shape(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(key, one)| other.get(key).is_some_and(|other| same_shape(one, other)))
        }
        (one, other) => one == other,
    }
}

/// Why an input cannot be read. What it is about must not happen.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HookError {
    /// Longer than [`INPUT_BYTES_MAX`].
    #[error("the hook input exceeds the limit of {INPUT_BYTES_MAX} bytes")]
    TooLarge,
    /// Not UTF-8.
    #[error("the hook input is not UTF-8 from byte {0}")]
    InvalidUtf8(usize),
    /// No JSON object, or one that says a field twice.
    #[error("the hook input cannot be read: {0}")]
    Field(#[from] FieldError),
    /// A field that has to be there is not, or is something else.
    #[error("the hook input needs `{field}`: {expected}")]
    Missing {
        /// The field.
        field: &'static str,
        /// What it has to be.
        expected: &'static str,
    },
    /// A field is longer than its limit.
    #[error("`{field}` has {bytes} bytes, more than the limit of {limit}")]
    TooLong {
        /// The field.
        field: &'static str,
        /// Its length.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// An unknown event about a tool call.
    #[error("unknown tool event `{name}`; `{judged}` is the one that is judged")]
    UnknownCall {
        /// Its name.
        name: String,
        /// The event before a call.
        judged: &'static str,
    },
    /// The arguments are ambiguous.
    #[error("`{field}` cannot be read: {why} of it")]
    Arguments {
        /// The field.
        field: &'static str,
        /// Where and why.
        why: StrictError,
    },
    /// A tool has the name under which bundles describe a tool of another kind.
    #[error("`{0}` is no tool of this agent's that is known; bundles mean another one by that name")]
    ForeignTool(String),
    /// An argument that the tool does not have, as far as is known, would change what the others mean.
    #[error(
        "`{argument}` is no argument of this agent's `{tool}` that is known, and would change how the others are judged; leave it out, and name folders in the other arguments"
    )]
    ForeignArgument {
        /// The tool, in the agent's words.
        tool: String,
        /// The argument.
        argument: String,
    },
    /// Two arguments say the same.
    #[error("two arguments are meant by `{0}`; it is not known which one the tool takes")]
    TwoNames(&'static str),
}
