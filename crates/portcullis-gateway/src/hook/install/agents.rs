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
/// The most that Codex gives a hook at the end of a session; of more it warns at each start.
const CODEX_END_S: u64 = 3;
/// Said, and code 2 ended with, where the program says nothing: it is gone, or was killed. Some agents take code 2 for a
/// failure to be ignored where nothing is on standard error. Every shell understands it.
const UNANSWERED: &str = " || sh -c 'echo \"portcullis: not permitted\" >&2; exit 2'";

/// What a file of settings looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// JSON with events under `hooks`.
    Settings,
    /// JSON that is nothing but events.
    Events,
    /// TOML with tables `[[hooks]]`.
    Tables,
    /// A module that the agent loads; it is the gate's alone.
    Plugin,
    /// JSON with a list of entries that name their events under `hooks`; it is the gate's alone.
    Listed,
    /// Scripts by the names of the events, in one folder.
    Scripts,
}

/// One agent's settings.
pub(super) struct Place {
    pub(super) form: Form,
    /// The file in a project.
    project: Option<&'static str>,
    /// The file in a project that is not shared.
    local: Option<&'static str>,
    /// The file in the user's home.
    user: &'static str,
    /// Variables that name another folder, the first one first, and the file in it.
    variables: &'static [(&'static str, &'static str)],
    /// Files beside it whose hooks the agent no longer reads once it is there.
    pub(super) shadows: &'static [&'static str],
    /// The events that are told to the gate, and whether a failure to tell must block.
    pub(super) events: &'static [(&'static str, bool)],
    /// The version that its file has to have.
    pub(super) version: Option<u64>,
    /// It takes comments out of its file before it reads it.
    pub(super) comments: bool,
    /// The programs by which one knows that it is installed.
    pub(super) programs: &'static [&'static str],
    /// The folder in the user's home by which one knows it.
    folder: &'static str,
    /// What its user has to do besides.
    pub(super) besides: Option<&'static str>,
}

/// What most have in common.
const USUAL: Place = Place {
    form: Form::Settings,
    project: None,
    local: None,
    user: "",
    variables: &[],
    shadows: &[],
    events: &[],
    version: None,
    comments: false,
    programs: &[],
    folder: "",
    besides: None,
};

static CLAUDE_CODE: Place = Place {
    project: Some(".claude/settings.json"),
    local: Some(".claude/settings.local.json"),
    user: ".claude/settings.json",
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
    programs: &["claude"],
    folder: ".claude",
    ..USUAL
};

static GEMINI_CLI: Place = Place {
    project: Some(".gemini/settings.json"),
    user: ".gemini/settings.json",
    events: &[
        ("BeforeTool", true),
        ("AfterTool", true),
        ("BeforeAgent", true),
        ("AfterAgent", false),
        ("SessionStart", false),
        ("SessionEnd", false),
    ],
    // `loadSettings` of its `packages/cli/src/config/settings.ts`, at 0038e45: `JSON.parse` of what `strip-json-comments` leaves.
    comments: true,
    programs: &["gemini"],
    folder: ".gemini",
    besides: Some(
        "Gemini CLI runs hooks of a project only in folders that it trusts, and works without them elsewhere; it warns \
         before it runs new ones",
    ),
    ..USUAL
};

static CODEX: Place = Place {
    project: Some(".codex/hooks.json"),
    user: ".codex/hooks.json",
    variables: &[("CODEX_HOME", "hooks.json")],
    // Releases before August 2026 do not know `SessionEnd`, and ignore it.
    events: &[
        ("PreToolUse", true),
        ("PostToolUse", true),
        ("UserPromptSubmit", true),
        ("SessionStart", false),
        ("SessionEnd", false),
        ("Stop", false),
    ],
    programs: &["codex"],
    folder: ".codex",
    besides: Some(
        "Codex skips it until you trust the project, and then the hook in `/hooks`, after each change of it too",
    ),
    ..USUAL
};

static CURSOR: Place = Place {
    project: Some(".cursor/hooks.json"),
    user: ".cursor/hooks.json",
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
    programs: &["cursor-agent", "cursor"],
    folder: ".cursor",
    besides: Some("Cursor runs hooks of a project in workspaces that it trusts"),
    ..USUAL
};

static COPILOT_CLI: Place = Place {
    project: Some(".github/hooks/portcullis.json"),
    user: ".copilot/hooks/portcullis.json",
    variables: &[("COPILOT_HOME", "hooks/portcullis.json")],
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
    programs: &["copilot"],
    folder: ".copilot",
    besides: Some(
        "Copilot CLI runs hooks of a repository only in folders that it trusts, and works without them elsewhere",
    ),
    ..USUAL
};

static OPENCODE: Place = Place {
    form: Form::Plugin,
    project: Some(".opencode/plugins/portcullis.js"),
    user: ".config/opencode/plugins/portcullis.js",
    variables: &[("XDG_CONFIG_HOME", "opencode/plugins/portcullis.js")],
    events: &[
        ("tool.execute.before", true),
        ("tool.execute.after", true),
        ("chat.message", true),
        ("session.created", false),
        ("session.deleted", false),
    ],
    programs: &["opencode"],
    folder: ".config/opencode",
    besides: Some("OpenCode reads its plugins when it starts"),
    ..USUAL
};

static QWEN_CODE: Place = Place {
    project: Some(".qwen/settings.json"),
    user: ".qwen/settings.json",
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
    // As Gemini CLI: the same file of its own, at 03330f7.
    comments: true,
    programs: &["qwen"],
    folder: ".qwen",
    besides: Some("Qwen Code runs hooks of a project in folders that it trusts"),
    ..USUAL
};

static DROID: Place = Place {
    form: Form::Events,
    project: Some(".factory/hooks.json"),
    user: ".factory/hooks.json",
    shadows: &["settings.json", "hooks/hooks.json"],
    events: &[
        ("PreToolUse", true),
        ("PostToolUse", true),
        ("UserPromptSubmit", true),
        ("SessionStart", false),
        ("SessionEnd", false),
        ("Stop", false),
    ],
    programs: &["droid"],
    folder: ".factory",
    besides: Some("Droid takes it up when it starts, or once you have reviewed it in `/hooks`"),
    ..USUAL
};

static KIMI_CODE: Place = Place {
    form: Form::Tables,
    user: ".kimi-code/config.toml",
    variables: &[("KIMI_CODE_HOME", "config.toml")],
    events: &[
        ("PreToolUse", true),
        ("PostToolUse", false),
        ("PostToolUseFailure", false),
        ("UserPromptSubmit", true),
        ("SessionStart", false),
        ("SessionEnd", false),
        ("Stop", false),
    ],
    programs: &["kimi"],
    folder: ".kimi-code",
    besides: Some("Kimi Code takes it up in new sessions"),
    ..USUAL
};

static CRUSH: Place = Place {
    project: Some("crush.json"),
    user: ".config/crush/crush.json",
    variables: &[("CRUSH_GLOBAL_CONFIG", "crush.json"), ("XDG_CONFIG_HOME", "crush/crush.json")],
    events: &[("PreToolUse", true)],
    programs: &["crush"],
    folder: ".config/crush",
    besides: Some("Crush reads its settings when it starts"),
    ..USUAL
};

static PI: Place = Place {
    form: Form::Plugin,
    project: Some(".pi/extensions/portcullis.ts"),
    user: ".pi/agent/extensions/portcullis.ts",
    events: &[
        ("tool_call", true),
        ("tool_result", true),
        ("input", true),
        ("session_start", false),
        ("session_shutdown", false),
    ],
    programs: &["pi"],
    folder: ".pi",
    besides: Some(
        "pi reads its extensions when it starts and at `/reload`, those of a project only if you trust it; it works \
         without them otherwise",
    ),
    ..USUAL
};

static WINDSURF: Place = Place {
    // Once it has hooks, those in the file of releases that were still called Windsurf are not read.
    project: Some(".devin/hooks.json"),
    user: ".codeium/windsurf/hooks.json",
    shadows: &["../.windsurf/hooks.json"],
    events: &[
        ("pre_run_command", true),
        ("pre_read_code", true),
        ("pre_write_code", true),
        ("pre_mcp_tool_use", true),
        ("pre_user_prompt", true),
        ("post_run_command", true),
        ("post_read_code", true),
        ("post_write_code", true),
        ("post_mcp_tool_use", true),
        ("post_cascade_response", false),
    ],
    programs: &["windsurf", "devin-desktop"],
    folder: ".codeium/windsurf",
    besides: Some(
        "Windsurf reads its hooks when it starts, and `.devin/hooks.json` since it is Devin Desktop",
    ),
    ..USUAL
};

static KIRO: Place = Place {
    form: Form::Listed,
    project: Some(".kiro/hooks/portcullis.json"),
    user: ".kiro/hooks/portcullis.json",
    variables: &[("KIRO_HOME", "hooks/portcullis.json")],
    // An event that it does not know might make it reject the whole file.
    events: &[
        ("PreToolUse", true),
        ("PostToolUse", true),
        ("UserPromptSubmit", true),
        ("SessionStart", false),
        ("Stop", false),
    ],
    programs: &["kiro", "kiro-cli"],
    folder: ".kiro",
    besides: Some("Kiro takes it up in new sessions; its CLI before 3.0 needs `--v3`"),
    ..USUAL
};

static CLINE: Place = Place {
    form: Form::Scripts,
    // The editor, whose calls cannot be read, has other folders.
    project: Some(".cline/hooks/PreToolUse"),
    user: ".cline/hooks/PreToolUse",
    variables: &[("CLINE_DIR", "hooks/PreToolUse")],
    events: &[("PreToolUse", true), ("PostToolUse", false), ("TaskComplete", false)],
    programs: &["cline"],
    folder: ".cline",
    besides: Some("Cline reads its hooks when a session starts"),
    ..USUAL
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
        Agent::Droid => &DROID,
        Agent::KimiCode => &KIMI_CODE,
        Agent::Crush => &CRUSH,
        Agent::Pi => &PI,
        Agent::Windsurf => &WINDSURF,
        Agent::Kiro => &KIRO,
        Agent::Cline => &CLINE,
    }
}

/// The file of an agent's settings: in `folder`, which is the user's home for [`Scope::User`]. `None` if the agent has
/// none for that scope.
#[must_use]
pub fn settings_file(agent: Agent, scope: Scope, folder: &Path) -> Option<PathBuf> {
    let place = place(agent);
    match scope {
        Scope::Project => place.project.map(|file| folder.join(file)),
        Scope::Local => place.local.map(|file| folder.join(file)),
        Scope::User => {
            let elsewhere = place.variables.iter().find_map(|(variable, file)| {
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

/// What stands behind the command of an event that must block.
pub(super) fn unanswered(agent: Agent) -> &'static str {
    if agent == Agent::ClaudeCode { " || exit 2" } else { UNANSWERED }
}

/// One entry of an event. A shell runs the command; whatever keeps the program from answering must block where blocking is
/// possible, and agents take any other code than 2 for a failure to be ignored.
pub(super) fn entry(agent: Agent, event: &str, blocks: bool, command: &str) -> Value {
    let command = if blocks { format!("{command}{}", unanswered(agent)) } else { command.to_owned() };
    match agent {
        Agent::ClaudeCode | Agent::Codex | Agent::Droid => {
            let timeout =
                if (agent, event) == (Agent::Codex, "SessionEnd") { CODEX_END_S } else { TIMEOUT_S };
            let hook = json!({"type": "command", "command": command, "timeout": timeout});
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
            if let (true, Some(hook)) = (blocks, hook.as_object_mut()) {
                // A hook that dies, is slow or is not understood is a denial then.
                hook.insert("failMode".to_owned(), "closed".into());
            }
            match event {
                "UserPromptSubmit" | "SessionStart" | "SessionEnd" | "Stop" => json!({ "hooks": [hook] }),
                _ => json!({"matcher": "*", "hooks": [hook]}),
            }
        }
        Agent::Cursor => json!({"command": command, "timeout": TIMEOUT_S, "failClosed": blocks}),
        Agent::Kiro => json!({
            "name": format!("portcullis {event}"),
            "trigger": event,
            "action": {"type": "command", "command": command},
            "timeout": TIMEOUT_S,
        }),
        Agent::Windsurf => json!({"command": command, "show_output": false}),
        Agent::Crush => json!({"name": "portcullis", "command": command, "timeout": TIMEOUT_S}),
        // Releases that do not know a member refuse the whole file.
        Agent::KimiCode => json!({"event": event, "command": command, "timeout": TIMEOUT_S}),
        // The plugins of OpenCode and pi and the scripts of Cline are no entries.
        Agent::CopilotCli | Agent::OpenCode | Agent::Pi | Agent::Cline => {
            json!({"type": "command", "bash": command, "timeoutSec": TIMEOUT_S})
        }
    }
}
