//! Variables whose value changes what programs do.
//!
//! A program reads its environment as it reads its options, so `GIT_SSH_COMMAND=X git fetch` runs X just as
//! `git -c core.sshCommand=X fetch` does. Values are commands, places that code or settings come from, places that
//! are written, or machines that are reached; each has the effect that the same option would have.

use portcullis_core::effect::Verb;

/// What giving a variable a value does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Influence {
    /// Nothing to programs.
    None,
    /// Names of programs no longer say what runs.
    Programs,
    /// Values are split at other places.
    Splitting,
    /// The value is a command that programs run.
    Command,
    /// The value names places, separated by colons, to which this is done.
    Places(&'static [Verb]),
    /// The value names a machine, to which this is done.
    Contacts(Verb),
    /// The value runs in a way that is not followed.
    Unclear,
}

/// Variables that choose or change programs.
const PROGRAMS: [&str; 24] = [
    "PATH",
    "BASH_ENV",
    "ENV",
    "SHELLOPTS",
    "BASHOPTS",
    "CDPATH",
    "EXECIGNORE",
    "PERL5OPT",
    "PERL5DB",
    "RUBYOPT",
    "PYTHONHOME",
    "PYTHONBREAKPOINT",
    "JAVA_TOOL_OPTIONS",
    "_JAVA_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "GIT_EXEC_PATH",
    "GCONV_PATH",
    "GCC_EXEC_PREFIX",
    "COMPILER_PATH",
    "PS4",
    "TAR_OPTIONS",
    "LUA_INIT",
    "VIMINIT",
    "EXINIT",
];

/// Variables that hold a command.
const COMMANDS: [&str; 51] = [
    "KUBECTL_EXTERNAL_DIFF",
    "CLOUDSDK_PYTHON",
    "PROMPT_COMMAND",
    "PAGER",
    "GIT_PAGER",
    "MANPAGER",
    "SYSTEMD_PAGER",
    "PSQL_PAGER",
    "GH_PAGER",
    "BAT_PAGER",
    "DELTA_PAGER",
    "AWS_PAGER",
    "EDITOR",
    "VISUAL",
    "FCEDIT",
    "GIT_EDITOR",
    "GIT_SEQUENCE_EDITOR",
    "GH_EDITOR",
    "KUBE_EDITOR",
    "PSQL_EDITOR",
    "SVN_EDITOR",
    "HGEDITOR",
    "SYSTEMD_EDITOR",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_PROXY_COMMAND",
    "GIT_EXTERNAL_DIFF",
    "GIT_ASKPASS",
    "SSH_ASKPASS",
    "SUDO_ASKPASS",
    "RSYNC_RSH",
    "RSYNC_CONNECT_PROG",
    "CVS_RSH",
    "SVN_SSH",
    "BROWSER",
    "GH_BROWSER",
    "RUSTC",
    "RUSTDOC",
    "RUSTC_WRAPPER",
    "RUSTC_WORKSPACE_WRAPPER",
    "CARGO_BUILD_RUSTC",
    "CARGO_BUILD_RUSTC_WRAPPER",
    "CARGO_BUILD_RUSTC_WORKSPACE_WRAPPER",
    "CARGO_BUILD_RUSTDOC",
    "CC",
    "CXX",
    "LD",
    "AR",
    "AS",
    "CPP",
    "HOSTCC",
];

/// Places from which programs take code, or settings that can name programs.
const SOURCES: [&str; 43] = [
    "RIPGREP_CONFIG_PATH",
    "HELM_PLUGINS",
    "HOME",
    "XDG_CONFIG_HOME",
    "XDG_CONFIG_DIRS",
    "ZDOTDIR",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "PYTHONUSERBASE",
    "NODE_PATH",
    "PERL5LIB",
    "PERLLIB",
    "RUBYLIB",
    "CLASSPATH",
    "GIT_TEMPLATE_DIR",
    "MAKEFILES",
    "CMAKE_TOOLCHAIN_FILE",
    "CMAKE_PROJECT_INCLUDE",
    "CARGO_HOME",
    "RUSTUP_HOME",
    "GEM_HOME",
    "GEM_PATH",
    "BUNDLE_GEMFILE",
    "GNUPGHOME",
    "KUBECONFIG",
    "DOCKER_CONFIG",
    "AWS_CONFIG_FILE",
    "ANSIBLE_CONFIG",
    "TF_CLI_CONFIG_FILE",
    "OPENSSL_CONF",
    "PIP_CONFIG_FILE",
    "PSQLRC",
    "PHPRC",
    "PHP_INI_SCAN_DIR",
    "WGETRC",
    "CURL_HOME",
    "HGRCPATH",
    "R_PROFILE",
    "R_PROFILE_USER",
    "R_ENVIRON",
    "MYSQL_HOME",
    "PGSERVICEFILE",
    "PGSYSCONFDIR",
];

/// Repositories that git works on instead of the one that it is called in; theirs are also the settings.
const REPOSITORIES: [&str; 5] =
    ["GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY"];

/// Places that programs write.
const OUTPUTS: [&str; 22] = [
    "CARGO_TARGET_DIR",
    "CARGO_BUILD_TARGET_DIR",
    "CARGO_INSTALL_ROOT",
    "GOBIN",
    "GOPATH",
    "GOCACHE",
    "GOMODCACHE",
    "HISTFILE",
    "LESSHISTFILE",
    "SSLKEYLOGFILE",
    "LLVM_PROFILE_FILE",
    "GCOV_PREFIX",
    "NODE_V8_COVERAGE",
    "NODE_REPL_HISTORY",
    "COVERAGE_FILE",
    "PYTHONPYCACHEPREFIX",
    "PIP_TARGET",
    "PIP_PREFIX",
    "XDG_CACHE_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "INSTALL_ROOT",
];

/// Machines through which everything goes.
const RELAYS: [&str; 4] = ["http_proxy", "https_proxy", "all_proxy", "ftp_proxy"];

/// Machines that clients of databases connect to.
const SERVERS: [&str; 4] = ["PGHOST", "PGHOSTADDR", "MYSQL_HOST", "REDISCLI_HOST"];

/// Machines that packages and data come from.
const ORIGINS: [&str; 8] = [
    "PIP_INDEX_URL",
    "PIP_EXTRA_INDEX_URL",
    "UV_INDEX_URL",
    "UV_DEFAULT_INDEX",
    "GOPROXY",
    "AWS_ENDPOINT_URL",
    "ELECTRON_MIRROR",
    "RUSTUP_DIST_SERVER",
];

/// Settings of npm that change how much it says or which of the known packages it takes, and nothing else.
const NPM_HARMLESS: [&str; 18] = [
    "yes",
    "loglevel",
    "fund",
    "audit",
    "progress",
    "update_notifier",
    "color",
    "production",
    "omit",
    "include",
    "ignore_scripts",
    "legacy_peer_deps",
    "engine_strict",
    "offline",
    "prefer_offline",
    "save_exact",
    "tag",
    "node_version",
];

/// Shells that programs may be told to start.
const SHELLS: [&str; 8] = [
    "/bin/sh",
    "/bin/bash",
    "/bin/zsh",
    "/usr/bin/bash",
    "/usr/bin/zsh",
    "/usr/bin/fish",
    "/bin/dash",
    "/usr/bin/sh",
];

/// Variables that only say how much programs tell, in what shape, or for which machine they build.
const HARMLESS: &str = "LANG LANGUAGE TZ TERM COLORTERM COLUMNS LINES NO_COLOR FORCE_COLOR CLICOLOR CLICOLOR_FORCE \
    GREP_COLORS LS_COLORS JQ_COLORS BLOCK_SIZE POSIXLY_CORRECT CI DEBUG VERBOSE QUIET V NODE_ENV RAILS_ENV RACK_ENV \
    FLASK_ENV APP_ENV ENVIRONMENT LOG_LEVEL LOGLEVEL PORT HOST USER LOGNAME RUST_LOG RUST_BACKTRACE RUST_LIB_BACKTRACE \
    RUST_MIN_STACK RUST_TEST_THREADS PROPTEST_CASES PYTHONUNBUFFERED PYTHONDONTWRITEBYTECODE PYTHONIOENCODING \
    PYTHONUTF8 PYTHONHASHSEED PYTHONFAULTHANDLER CARGO_TERM_COLOR CARGO_INCREMENTAL CARGO_NET_OFFLINE \
    CARGO_BUILD_JOBS GIT_TERMINAL_PROMPT GIT_OPTIONAL_LOCKS GIT_LITERAL_PATHSPECS GIT_MERGE_AUTOEDIT \
    DEBIAN_FRONTEND GOOS GOARCH GOARM CGO_ENABLED GOMAXPROCS OMP_NUM_THREADS SOURCE_DATE_EPOCH DOCKER_BUILDKIT \
    BUILDKIT_PROGRESS AWS_REGION AWS_DEFAULT_REGION AWS_DEFAULT_OUTPUT PGUSER PGDATABASE PGPORT PGPASSWORD BLESS \
    UV_OFFLINE PIP_NO_INPUT PIP_DISABLE_PIP_VERSION_CHECK NEXT_TELEMETRY_DISABLED DO_NOT_TRACK CUDA_VISIBLE_DEVICES";

/// Whether a variable is known to change nothing that programs touch. Programs take none with small letters, but those
/// that are told apart by [`influence`].
pub(super) fn is_harmless(name: &str) -> bool {
    let begins = |starts: &[&str]| starts.iter().any(|start| name.starts_with(start));
    !name.contains(|letter: char| letter.is_ascii_uppercase())
        || begins(&["LC_", "GIT_AUTHOR_", "GIT_COMMITTER_", "HOMEBREW_NO_"])
        || HARMLESS.split_ascii_whitespace().any(|known| known == name)
}

/// What a variable does to programs that run with it.
pub(super) fn influence(name: &str, value: Option<&str>) -> Influence {
    if name == "IFS" {
        return Influence::Splitting;
    }
    if COMMANDS.contains(&name) || is_command_of_a_target(name) {
        return if value == Some("") { Influence::None } else { Influence::Command };
    }
    if PROGRAMS.contains(&name) || name.starts_with("LD_") || name.starts_with("DYLD_") {
        return Influence::Programs;
    }
    if SOURCES.contains(&name) {
        return Influence::Places(&[Verb::Execute]);
    }
    if REPOSITORIES.contains(&name) {
        return Influence::Places(&[Verb::Write, Verb::Execute]);
    }
    if OUTPUTS.contains(&name) {
        return Influence::Places(&[Verb::Write]);
    }
    if RELAYS.contains(&name.to_ascii_lowercase().as_str())
        || name == "DOCKER_HOST"
        || SERVERS.contains(&name)
    {
        return Influence::Contacts(Verb::Send);
    }
    if ORIGINS.contains(&name) {
        return Influence::Contacts(Verb::Read);
    }
    let lower = name.to_ascii_lowercase();
    if let Some(setting) = lower.strip_prefix("npm_config_") {
        return npm(setting);
    }
    by_value(name, value)
}

/// Whether some value of a variable is known to matter, so that any other is known not to.
pub(super) fn has_influence(name: &str) -> bool {
    influence(name, None) != Influence::None
}

/// Variables of which only some values matter.
fn by_value(name: &str, value: Option<&str>) -> Influence {
    let holds = |marks: &[&str]| value.is_none_or(|text| marks.iter().any(|mark| text.contains(mark)));
    let (programs, unclear) = match name {
        "NODE_OPTIONS" => (holds(&["require", "import", "loader", "-r"]), false),
        "RUSTFLAGS" | "RUSTDOCFLAGS" | "CARGO_ENCODED_RUSTFLAGS" | "CARGO_BUILD_RUSTFLAGS" => {
            (holds(&["linker=", "plugin", "@"]), false)
        }
        "GOFLAGS" => (holds(&["exec", "vettool", "overlay", "modfile"]), false),
        "CFLAGS" | "CXXFLAGS" | "CPPFLAGS" | "LDFLAGS" | "CGO_CFLAGS" | "CGO_LDFLAGS" => {
            (holds(&["plugin", "wrapper", "-B", "specs", "@", "$(", "`", ";"]), false)
        }
        "MAKEFLAGS" | "GNUMAKEFLAGS" | "MFLAGS" => {
            (holds(&["=", "eval", "-f", "-C", "-I", "-E", "file"]), false)
        }
        "SHELL" => (value.is_none_or(|shell| !SHELLS.contains(&shell)), false),
        "PYTHONWARNINGS" => (holds(&["."]), false),
        "PS0" | "PS1" | "PS2" | "PS3" => (false, holds(&["$(", "`"])),
        // A service is an entry of a file, with the machine that it means.
        "LESSOPEN" | "LESSCLOSE" | "PGSERVICE" => (false, true),
        _ if name.starts_with("GIT_TRACE") => {
            return if holds(&["/"]) { Influence::Places(&[Verb::Write]) } else { Influence::None };
        }
        _ => (false, name.starts_with("GIT_CONFIG") || name.starts_with("BASH_FUNC_")),
    };
    match (programs, unclear) {
        (true, _) => Influence::Programs,
        (_, true) => Influence::Unclear,
        _ => Influence::None,
    }
}

/// `CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER`, `CMAKE_C_COMPILER_LAUNCHER`.
fn is_command_of_a_target(name: &str) -> bool {
    let ends = |ends: &[&str]| ends.iter().any(|end| name.ends_with(end));
    name.starts_with("CARGO_TARGET_") && ends(&["_RUNNER", "_LINKER"])
        || name.starts_with("CMAKE_") && ends(&["_LAUNCHER"])
}

fn npm(setting: &str) -> Influence {
    match setting {
        "script_shell" | "shell" | "git" | "editor" | "browser" | "viewer" => Influence::Command,
        "registry" => Influence::Contacts(Verb::Read),
        "cache" | "prefix" => Influence::Places(&[Verb::Write]),
        _ if NPM_HARMLESS.contains(&setting) => Influence::None,
        _ => Influence::Unclear,
    }
}
