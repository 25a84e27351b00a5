//! Variables whose value changes what programs do.

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
    /// The value runs in a way that is not followed.
    Unclear,
}

/// Variables that choose or change programs.
const PROGRAMS: [&str; 17] = [
    "PATH",
    "BASH_ENV",
    "ENV",
    "SHELLOPTS",
    "BASHOPTS",
    "CDPATH",
    "EXECIGNORE",
    "ZDOTDIR",
    "PERL5OPT",
    "PERL5DB",
    "RUBYOPT",
    "PYTHONSTARTUP",
    "PYTHONHOME",
    "JAVA_TOOL_OPTIONS",
    "GIT_EXEC_PATH",
    "GCONV_PATH",
    "PS4",
];

/// Variables that hold a command.
const COMMANDS: [&str; 16] = [
    "PROMPT_COMMAND",
    "PAGER",
    "GIT_PAGER",
    "MANPAGER",
    "EDITOR",
    "VISUAL",
    "GIT_EDITOR",
    "GIT_SEQUENCE_EDITOR",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_EXTERNAL_DIFF",
    "GIT_ASKPASS",
    "SSH_ASKPASS",
    "SUDO_ASKPASS",
    "BROWSER",
    "RUSTC_WRAPPER",
];

/// What a variable does to programs that run with it.
pub(super) fn influence(name: &str, value: Option<&str>) -> Influence {
    let runs = |text: &str| text.contains("$(") || text.contains('`');
    if name == "IFS" {
        return Influence::Splitting;
    }
    if COMMANDS.contains(&name) {
        return if value == Some("") { Influence::None } else { Influence::Command };
    }
    if PROGRAMS.contains(&name) || name.starts_with("LD_") || name.starts_with("DYLD_") {
        return Influence::Programs;
    }
    match name {
        "NODE_OPTIONS"
            if value.is_none_or(|text| {
                ["require", "import", "loader", "-r"].iter().any(|word| text.contains(word))
            }) =>
        {
            Influence::Programs
        }
        "PS0" | "PS1" | "PS2" | "PS3" if value.is_none_or(runs) => Influence::Unclear,
        "LESSOPEN" | "LESSCLOSE" => Influence::Unclear,
        name if name.starts_with("GIT_CONFIG") || name.starts_with("BASH_FUNC_") => Influence::Unclear,
        _ => Influence::None,
    }
}
