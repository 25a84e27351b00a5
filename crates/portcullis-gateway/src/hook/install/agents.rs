//! Where each agent reads which programs to start, and in which form. The facts are those of the documentation that
//! `portcullis_wire::hook` names for each.

use std::env;
use std::path::{Path, PathBuf};

use portcullis_hook::limit::WHOLE_MAX;
use portcullis_wire::hook::Agent;
use serde_json::{Value, json};

/// For whom an installation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Everybody who works in this folder.
    Project,
    /// You, in this folder.
    Local,
    /// You, in all folders.
    User,
}

/// What an agent gives a hook, in seconds: more than the hook takes.
const TIMEOUT_S: u64 = 60;
const _: () = assert!(TIMEOUT_S > WHOLE_MAX.as_secs(), "what comes later is not waited for");
/// Said, and code 2 ended with, where the program says nothing: it is gone, or was killed. Some agents take code 2 for a
/// failure to be ignored where nothing is on standard error. Every shell understands it.
const UNANSWERED: &str = " || sh -c 'echo \"portcullis: not permitted\" >&2; exit 2'";

/// One agent's settings.
pub(super) struct Place {
    /// The file in a project.
    project: &'static str,
    /// The file in a project that is not shared.
    local: Option<&'static str>,
    /// The file in the user's home.
    user: &'static str,
    /// The variable that names another folder, and the file in it.
    variable: Option<(&'static str, &'static str)>,
    /// The events that are told to the gate, and whether a failure to tell must block.
    pub(super) events: &'static [(&'static str, bool)],
    /// How its file begins, where that is not with `hooks`.
    pub(super) version: Option<u64>,
    /// The file is the gate's alone, and goes with the last entry.
    pub(super) own_file: bool,
    /// The programs by which one knows that it is installed.
    pub(super) programs: &'static [&'static str],
    /// The folder in the user's home by which one knows it.
    folder: &'static str,
    /// What its user has to do besides.
    pub(super) besides: Option<&'static str>,
}

static CLAUDE_CODE: Place = Place {
    project: ".claude/settings.json",
    local: Some(".claude/settings.local.json"),
    user: ".claude/settings.json",
    variable: None,
    events: &[
        ("PreToolUse", true),
        ("PostToolUse", true),
        ("PostToolUseFailure", true),
        ("UserPromptSubmit", true),
        ("PermissionDenied", false),
        ("SessionStart", false),
        ("SessionEnd", false),
        ("Stop", false),
        ("ConfigChange", false),
    ],
    version: None,
    own_file: false,
    programs: &["claude"],
    folder: ".claude",
    besides: None,
};

static GEMINI_CLI: Place = Place {
    project: ".gemini/settings.json",
    local: None,
    user: ".gemini/settings.json",
    variable: None,
    events: &[
        ("BeforeTool", true),
        ("AfterTool", true),
        ("BeforeAgent", true),
        ("AfterAgent", false),
        ("SessionStart", false),
        ("SessionEnd", false),
    ],
    version: None,
    own_file: false,
    programs: &["gemini"],
    folder: ".gemini",
    besides: Some(
        "Gemini CLI runs hooks of a project in folders that it trusts, and warns before it runs new ones",
    ),
};

static CODEX: Place = Place {
    project: ".codex/hooks.json",
    local: None,
    user: ".codex/hooks.json",
    variable: Some(("CODEX_HOME", "hooks.json")),
    // Not `SessionEnd`, which releases of this year do not know.
    events: &[
        ("PreToolUse", true),
        ("PostToolUse", true),
        ("UserPromptSubmit", true),
        ("SessionStart", false),
        ("Stop", false),
    ],
    version: None,
    own_file: false,
    programs: &["codex"],
    folder: ".codex",
    besides: Some("Codex skips it until you trust it: open `/hooks` in Codex, after each change of it too"),
};

static CURSOR: Place = Place {
    project: ".cursor/hooks.json",
    local: None,
    user: ".cursor/hooks.json",
    variable: None,
    // An event that it does not know makes Cursor reject the whole file.
    events: &[
        ("preToolUse", true),
        ("postToolUse", true),
        ("postToolUseFailure", true),
        ("beforeSubmitPrompt", true),
        ("sessionStart", false),
        ("sessionEnd", false),
        ("stop", false),
    ],
    version: Some(1),
    own_file: false,
    programs: &["cursor-agent", "cursor"],
    folder: ".cursor",
    besides: Some("Cursor runs hooks of a project in workspaces that it trusts"),
};

static COPILOT_CLI: Place = Place {
    project: ".github/hooks/portcullis.json",
    local: None,
    user: ".copilot/hooks/portcullis.json",
    variable: Some(("COPILOT_HOME", "hooks/portcullis.json")),
    events: &[
        ("PreToolUse", true),
        ("PostToolUse", true),
        ("PostToolUseFailure", true),
        ("UserPromptSubmit", true),
        ("SessionStart", false),
        ("SessionEnd", false),
        ("Stop", false),
    ],
    version: Some(1),
    own_file: true,
    programs: &["copilot"],
    folder: ".copilot",
    besides: None,
};

static OPENCODE: Place = Place {
    project: ".opencode/plugins/portcullis.js",
    local: None,
    user: ".config/opencode/plugins/portcullis.js",
    variable: Some(("XDG_CONFIG_HOME", "opencode/plugins/portcullis.js")),
    events: &[
        ("tool.execute.before", true),
        ("tool.execute.after", true),
        ("chat.message", true),
        ("session.created", false),
        ("session.deleted", false),
    ],
    version: None,
    own_file: true,
    programs: &["opencode"],
    folder: ".config/opencode",
    besides: Some("OpenCode reads its plugins when it starts"),
};

static QWEN_CODE: Place = Place {
    project: ".qwen/settings.json",
    local: None,
    user: ".qwen/settings.json",
    variable: None,
    events: &[
        ("PreToolUse", true),
        ("PostToolUse", true),
        ("PostToolUseFailure", true),
        ("UserPromptSubmit", true),
        ("PermissionDenied", false),
        ("SessionStart", false),
        ("SessionEnd", false),
        ("Stop", false),
    ],
    version: None,
    own_file: false,
    programs: &["qwen"],
    folder: ".qwen",
    besides: Some("Qwen Code runs hooks of a project in folders that it trusts"),
};

pub(super) fn place(agent: Agent) -> &'static Place {
    match agent {
        Agent::ClaudeCode => &CLAUDE_CODE,
        Agent::GeminiCli => &GEMINI_CLI,
        Agent::Codex => &CODEX,
        Agent::Cursor => &CURSOR,
        Agent::CopilotCli => &COPILOT_CLI,
        Agent::OpenCode => &OPENCODE,
        Agent::QwenCode => &QWEN_CODE,
    }
}

/// The file of an agent's settings: in `folder`, which is the user's home for [`Scope::User`]. `None` if the agent has
/// none for that scope.
#[must_use]
pub fn settings_file(agent: Agent, scope: Scope, folder: &Path) -> Option<PathBuf> {
    let place = place(agent);
    match scope {
        Scope::Project => Some(folder.join(place.project)),
        Scope::Local => place.local.map(|file| folder.join(file)),
        Scope::User => {
            let elsewhere = place.variable.and_then(|(variable, file)| {
                let base = env::var_os(variable).filter(|value| !value.is_empty())?;
                Some(PathBuf::from(base).join(file))
            });
            Some(elsewhere.unwrap_or_else(|| folder.join(place.user)))
        }
    }
}

/// What a user has to do besides installing, if anything.
#[must_use]
pub fn besides(agent: Agent) -> Option<&'static str> {
    place(agent).besides
}

/// Whether an agent is on this machine: its program on the search path, or its folder in the user's home.
#[must_use]
pub fn is_there(agent: Agent, home: &Path) -> bool {
    let place = place(agent);
    let on_path = |program: &&str| {
        env::var_os("PATH")
            .is_some_and(|path| env::split_paths(&path).any(|folder| folder.join(program).is_file()))
    };
    place.programs.iter().any(on_path) || home.join(place.folder).is_dir()
}

/// One entry of an event. A shell runs the command; whatever keeps the program from answering must block where blocking is
/// possible, and agents take any other code than 2 for a failure to be ignored.
pub(super) fn entry(agent: Agent, event: &str, blocks: bool, command: &str) -> Value {
    let unanswered = if agent == Agent::ClaudeCode { " || exit 2" } else { UNANSWERED };
    let command = if blocks { format!("{command}{unanswered}") } else { command.to_owned() };
    match agent {
        Agent::ClaudeCode | Agent::Codex => {
            let hook = json!({"type": "command", "command": command, "timeout": TIMEOUT_S});
            match event {
                "PreToolUse" | "PostToolUse" | "PostToolUseFailure" | "PermissionDenied" => {
                    json!({"matcher": "*", "hooks": [hook]})
                }
                _ => json!({ "hooks": [hook] }),
            }
        }
        Agent::GeminiCli => {
            let hook = json!({
                "name": "portcullis", "type": "command", "command": command, "timeout": TIMEOUT_S * 1000,
            });
            match event {
                "BeforeTool" | "AfterTool" => json!({"matcher": "*", "hooks": [hook]}),
                _ => json!({ "hooks": [hook] }),
            }
        }
        Agent::QwenCode => {
            let mut hook = json!({
                "name": "portcullis", "type": "command", "command": command, "timeout": TIMEOUT_S * 1000,
            });
            if blocks {
                // A hook that dies, is slow or is not understood is a denial then.
                hook["failMode"] = "closed".into();
            }
            match event {
                "UserPromptSubmit" | "SessionStart" | "SessionEnd" | "Stop" => json!({ "hooks": [hook] }),
                _ => json!({"matcher": "*", "hooks": [hook]}),
            }
        }
        Agent::Cursor => json!({"command": command, "timeout": TIMEOUT_S, "failClosed": blocks}),
        // OpenCode's plugin is no entry.
        Agent::CopilotCli | Agent::OpenCode => {
            json!({"type": "command", "bash": command, "timeoutSec": TIMEOUT_S})
        }
    }
}
