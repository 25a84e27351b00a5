//! How each agent is set up and started without a person, and what it does.

/// An agent, at the version that `peers/agents*/package.json` names.
#[derive(Debug)]
pub(super) struct Agent {
    pub(super) id: &'static str,
    /// A large program, for the long tests.
    pub(super) native: bool,
    /// What a user sets up first, by path in the user's home; `{port}` is the model's.
    pub(super) files: &'static [(&'static str, &'static str)],
    /// Options of `hook install`.
    pub(super) install: &'static [&'static str],
    /// What `hook install` writes, by path from the folder that the user's home (`user`) and the project (`shop`) are in.
    pub(super) settings: &'static str,
    pub(super) variables: &'static [(&'static str, &'static str)],
    pub(super) command: &'static [&'static str],
    /// It tells the hook the end of a session.
    pub(super) closes: bool,
    /// It ends when a call is denied, instead of telling its model.
    pub(super) ends_at_denial: bool,
    /// Failures of the hook after which it makes the call all the same.
    pub(super) goes_on_after: &'static [Failure],
}

/// What may go wrong with the program that answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failure {
    /// It is not there.
    Missing,
    /// It ends with code 1.
    Dies,
    /// It is killed.
    Killed,
    /// It answers with words.
    Words,
    /// It answers with JSON that means nothing.
    List,
    /// The same, in an object.
    Unheard,
}

impl Failure {
    const ALL: [Self; 6] = [Self::Missing, Self::Dies, Self::Killed, Self::Words, Self::List, Self::Unheard];

    /// Those that are tried: all of them take minutes.
    pub(super) fn tried() -> impl Iterator<Item = Self> {
        let long = std::env::var_os("PORTCULLIS_TEST_LONG").is_some();
        Self::ALL.into_iter().filter(move |failure| long || matches!(failure, Self::Killed | Self::List))
    }

    /// The program, which answers whatever comes before the call as the hook does.
    pub(super) fn script(self) -> Option<&'static str> {
        match self {
            Self::Missing => None,
            Self::Dies => Some(script!("exit 1")),
            Self::Killed => Some(script!("kill -9 $$")),
            Self::Words => Some(script!("echo nonsense")),
            Self::List => Some(script!("echo '[]'")),
            Self::Unheard => Some(script!(r#"echo '{"unheardOf": {"answer": "deny"}}'"#)),
        }
    }
}

/// A program that fails at calls, by the names that agents give the event, and at nothing else.
macro_rules! script {
    ($failure:literal) => {
        concat!(
            "#!/bin/sh\ncase $(cat) in\n",
            "*PreToolUse*|*BeforeTool*|*tool_call*|*tool.execute.before*) ",
            $failure,
            ";;\n*) echo '{}';;\nesac\n"
        )
    };
}
use script;

const PROMPT: &str = "Make made.txt";

/// Answers that these agents take for nothing, by which the call is permitted.
const NOTHING_SAID: &[Failure] = &[Failure::Words, Failure::List, Failure::Unheard];

pub(super) const AGENTS: [Agent; 7] = [
    Agent {
        id: "gemini-cli",
        native: false,
        files: &[(
            ".gemini/settings.json",
            r#"{"security": {"auth": {"selectedType": "gemini-api-key"}}, "privacy": {"usageStatisticsEnabled": false}}"#,
        )],
        install: &[],
        settings: "shop/.gemini/settings.json",
        variables: &[
            ("GEMINI_API_KEY", "none"),
            ("GOOGLE_GEMINI_BASE_URL", "http://127.0.0.1:{port}"),
            // Without, it runs no hook of a project, while `--skip-trust` has it work there.
            ("GEMINI_CLI_TRUST_WORKSPACE", "true"),
        ],
        command: &["gemini", "--yolo", "--skip-trust", "--model", "gemini-2.5-flash", "--prompt", PROMPT],
        closes: true,
        ends_at_denial: false,
        goes_on_after: NOTHING_SAID,
    },
    Agent {
        id: "kimi-code",
        native: false,
        files: &[(
            ".kimi-code/config.toml",
            "default_model = \"scripted\"\n\n[providers.scripted]\ntype = \"openai\"\nbase_url = \
             \"http://127.0.0.1:{port}/v1\"\napi_key = \"none\"\n\n[models.scripted]\nprovider = \"scripted\"\nmodel = \
             \"scripted\"\nmax_context_size = 100000\n",
        )],
        install: &["--user"],
        settings: "user/.kimi-code/config.toml",
        variables: &[],
        command: &["kimi", "--prompt", PROMPT],
        closes: false,
        ends_at_denial: false,
        goes_on_after: NOTHING_SAID,
    },
    Agent {
        id: "pi",
        native: false,
        files: &[(
            ".pi/agent/models.json",
            r#"{"providers": {"scripted": {"baseUrl": "http://127.0.0.1:{port}/v1", "api": "openai-completions", "apiKey": "none", "models": [{"id": "scripted"}]}}}"#,
        )],
        install: &[],
        settings: "shop/.pi/extensions/portcullis.ts",
        variables: &[],
        command: &["pi", "--approve", "--provider", "scripted", "--model", "scripted", "--print", PROMPT],
        closes: true,
        ends_at_denial: false,
        goes_on_after: &[],
    },
    Agent {
        id: "qwen-code",
        native: false,
        files: &[],
        install: &[],
        settings: "shop/.qwen/settings.json",
        variables: &[
            ("OPENAI_API_KEY", "none"),
            ("OPENAI_BASE_URL", "http://127.0.0.1:{port}/v1"),
            ("OPENAI_MODEL", "scripted"),
        ],
        command: &["qwen", "--yolo", "--auth-type", "openai", "--prompt", PROMPT],
        closes: false,
        ends_at_denial: false,
        goes_on_after: NOTHING_SAID,
    },
    Agent {
        id: "cline",
        native: true,
        files: &[],
        install: &[],
        settings: "shop/.cline/hooks/PreToolUse",
        variables: &[],
        command: &[
            "sh",
            "-c",
            "cline auth --provider openai --apikey none --modelid scripted --baseurl http://127.0.0.1:{port}/v1 && \
             exec cline --provider openai --model scripted --auto-approve true 'Make made.txt'",
        ],
        closes: false,
        ends_at_denial: true,
        goes_on_after: NOTHING_SAID,
    },
    Agent {
        id: "codex",
        native: true,
        files: &[(
            ".codex/config.toml",
            "model = \"scripted\"\nmodel_provider = \"scripted\"\n\n[model_providers.scripted]\nname = \
             \"scripted\"\nbase_url = \"http://127.0.0.1:{port}/v1\"\nwire_api = \"responses\"\n",
        )],
        install: &[],
        settings: "shop/.codex/hooks.json",
        variables: &[],
        command: &[
            "codex",
            "exec",
            "--trust",
            "--dangerously-bypass-hook-trust",
            "--dangerously-bypass-approvals-and-sandbox",
            PROMPT,
        ],
        closes: true,
        ends_at_denial: false,
        goes_on_after: NOTHING_SAID,
    },
    Agent {
        id: "opencode",
        native: true,
        files: &[(
            ".config/opencode/opencode.json",
            r#"{"provider": {"scripted": {"npm": "@ai-sdk/openai-compatible", "options": {"baseURL": "http://127.0.0.1:{port}/v1", "apiKey": "none"}, "models": {"scripted": {}}}}, "model": "scripted/scripted", "small_model": "scripted/scripted", "autoupdate": false, "share": "disabled"}"#,
        )],
        install: &[],
        settings: "shop/.opencode/plugins/portcullis.js",
        variables: &[("OPENCODE_DISABLE_MODELS_FETCH", "1"), ("OPENCODE_DISABLE_DEFAULT_PLUGINS", "1")],
        command: &["opencode", "run", PROMPT],
        closes: false,
        ends_at_denial: false,
        goes_on_after: &[],
    },
];
