//! Command lines that start the hook: written for a shell, and found again in settings.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use portcullis_wire::hook::Agent;
use serde_json::Value;

use super::{InstallError, Settings};

/// The program that answers quickly where the daemon runs.
pub(super) const SMALL: &str = "portcullis-hook";

/// The command line of an installation, without what stands behind it where an event must block.
pub(super) fn command(settings: &Settings) -> Result<String, InstallError> {
    let small = settings.program.with_file_name(SMALL);
    let (program, hook) =
        if is_program(&small) { (small, None) } else { (settings.program.clone(), Some("hook")) };
    let unfit = |why: &str| InstallError::unfit(&program, why);
    let Some(path) = program.to_str() else {
        return Err(unfit("its path is not UTF-8, and settings can name no other; move the program"));
    };
    let agent = match settings.agent {
        Agent::ClaudeCode => Vec::new(),
        agent => vec!["--agent", agent.id()],
    };
    let arguments = settings.arguments.iter().map(String::as_str);
    let words: Vec<&str> = [path].into_iter().chain(hook).chain(agent).chain(arguments).collect();
    if let Some(word) = words.iter().find(|word| word.chars().any(char::is_control)) {
        let why = "its name has a control character, and one line of settings cannot hold it; rename it";
        return Err(InstallError::unfit(Path::new(word), why));
    }
    Ok(words.into_iter().map(quoted).collect::<Vec<_>>().join(" "))
}

pub(super) fn is_program(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// Whether a shell takes the letter for itself.
pub(super) fn is_plain(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "-_./=:@%+,".contains(letter)
}

/// A word for the shell.
fn quoted(word: &str) -> String {
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// The program that a command line starts, and the rest of the line; `None` where a quote is never closed.
pub(super) fn program_of(command: &str) -> Option<(PathBuf, &str)> {
    let mut word = String::new();
    let mut letters = command.trim_start().chars();
    let mut quote = None;
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (Some(open), letter) if letter == open => quote = None,
            (None, '\'' | '"') => quote = Some(letter),
            (None | Some('"'), '\\') => word.push(letters.next()?),
            (None, letter) if letter.is_whitespace() => return Some((word.into(), letters.as_str())),
            (_, letter) => word.push(letter),
        }
    }
    quote.is_none().then(|| (word.into(), ""))
}

/// Whether a command line starts `portcullis-hook`, or `portcullis` with `hook`.
pub(super) fn is_own(command: &str) -> bool {
    let Some((program, rest)) = program_of(command) else { return false };
    match program.file_name().and_then(OsStr::to_str) {
        Some(SMALL) => true,
        Some("portcullis") => rest.split_whitespace().next() == Some("hook"),
        _ => false,
    }
}

/// The command of a hook that starts the gate.
pub(super) fn own_command(hook: &Value) -> Option<&str> {
    // Copilot CLI names the shell, Kiro an action.
    let command = hook.get("command").or_else(|| hook.get("bash"));
    let command = command.or_else(|| hook.pointer("/action/command")).and_then(Value::as_str)?;
    is_own(command).then_some(command)
}

/// The hooks in an entry: those in its list, or itself.
pub(super) fn hooks_of(entry: &Value) -> Vec<&Value> {
    match entry.get("hooks").and_then(Value::as_array) {
        Some(hooks) => hooks.iter().collect(),
        None => vec![entry],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_again_however_a_shell_quotes_it() {
        for name in [
            "portcullis",
            "it's/portcullis",
            "a b/portcullis",
            "\"q\"/portcullis",
            "$x;\\y/portcullis",
            "ü/portcullis",
        ] {
            let program = format!("/opt/{name}");
            let line = format!("{} hook --agent pi", quoted(&program));
            assert_eq!(program_of(&line).unwrap().0, Path::new(&program), "{line}");
            assert!(is_own(&line), "{line}");
            assert!(!is_own(&format!("{} status", quoted(&program))));
        }
        for line in ["\"/a b/portcullis-hook\" --ask", r"/a\ b/portcullis-hook", "  /a/portcullis  hook"] {
            assert!(is_own(line), "{line}");
        }
        for line in
            ["", "'/opt/portcullis-hook", "/opt/portcullis-hook\\", "echo portcullis-hook", "portcullis"]
        {
            assert!(!is_own(line), "{line}");
        }
    }
}
