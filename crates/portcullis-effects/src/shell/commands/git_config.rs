//! Settings of git, of which some are commands.

use portcullis_core::effect::Verb::{Configure, Execute, Send, Write};
use portcullis_core::effect::{ResourceKind, Verb};

use super::super::interpreter::Interpreter;
use super::super::word::Word;
use super::options::Parsed;
use super::spec::*;
use super::words;

/// Keys whose value is a command, by their first and last part.
const COMMANDS: &[(&str, &str)] = &[
    ("core", "sshcommand"),
    ("core", "pager"),
    ("core", "editor"),
    ("core", "fsmonitor"),
    ("core", "askpass"),
    ("core", "gitproxy"),
    ("core", "alternaterefscommand"),
    ("sequence", "editor"),
    ("diff", "external"),
    ("diff", "command"),
    ("diff", "textconv"),
    ("difftool", "cmd"),
    ("mergetool", "cmd"),
    ("merge", "driver"),
    ("filter", "clean"),
    ("filter", "smudge"),
    ("filter", "process"),
    ("gpg", "program"),
    ("gpg", "defaultkeycommand"),
    ("uploadpack", "packobjectshook"),
    ("browser", "cmd"),
    ("man", "cmd"),
    ("trailer", "command"),
    ("trailer", "cmd"),
    ("tar", "command"),
    ("interactive", "difffilter"),
    ("sendemail", "sendmailcmd"),
    ("remote", "uploadpack"),
    ("remote", "receivepack"),
    ("guitool", "cmd"),
    ("gc", "recentobjectshook"),
    ("imap", "tunnel"),
    ("hook", "command"),
    ("instaweb", "httpd"),
];

/// Sections in which no key names code, a file or a machine.
const HARMLESS_SECTIONS: [&str; 9] =
    ["color", "advice", "column", "status", "user", "author", "committer", "versionsort", "index"];

/// The same of single keys, by their first and last part.
const HARMLESS: &[(&str, &str)] = &[
    ("blame", "date coloring showemail showroot blankboundary"),
    ("branch", "autosetupmerge autosetuprebase sort description"),
    ("checkout", "defaultremote guess workers"),
    ("clean", "requireforce"),
    ("commit", "gpgsign verbose cleanup status"),
    (
        "core",
        "abbrev autocrlf bigfilethreshold checkstat commentchar compression eol filemode ignorecase longpaths \
         precomposeunicode preloadindex quotepath safecrlf symlinks trustctime untrackedcache whitespace",
    ),
    (
        "diff",
        "algorithm colormoved colormovedws context indentheuristic interhunkcontext mnemonicprefix noprefix \
         relative renamelimit renames statgraphwidth statnamewidth submodule wordregex wserrorhighlight",
    ),
    ("feature", "experimental manyfiles"),
    ("fetch", "fsckobjects parallel prune prunetags writecommitgraph"),
    ("format", "pretty signoff numbered"),
    ("gc", "auto autodetach autopacklimit"),
    ("gpg", "format"),
    ("grep", "column extendedregexp fullname linenumber patterntype threads"),
    ("http", "lowspeedlimit lowspeedtime postbuffer version"),
    ("init", "defaultbranch defaultobjectformat"),
    ("log", "abbrevcommit date decorate diffmerges follow mailmap showroot showsignature"),
    ("maintenance", "auto strategy"),
    ("merge", "conflictstyle directoryrenames ff log renamelimit renames stat"),
    ("pack", "threads windowmemory compression depth window"),
    ("pull", "ff rebase octopus"),
    ("push", "autosetupremote default followtags gpgsign"),
    ("rebase", "autosquash autostash stat updaterefs missingcommitscheck"),
    ("rerere", "autoupdate enabled"),
    ("stash", "showpatch showstat showincludeuntracked"),
    ("submodule", "recurse fetchjobs"),
    ("tag", "forcesignannotated gpgsign sort"),
    ("transfer", "fsckobjects"),
];

/// The same of `KEY=VALUE`.
pub(super) fn assignment(word: &Word, shell: &mut Interpreter<'_, '_>) {
    if let Some((key, value)) = words::split(word, '=') {
        setting(words::text(&key), &value, shell);
    }
}

/// `KEY=VARIABLE`: the value is in a variable, which is not known.
pub(super) fn from_environment(word: &Word, shell: &mut Interpreter<'_, '_>) {
    if let Some((key, _)) = words::split(word, '=') {
        if words::text(&key).to_ascii_lowercase().starts_with("alias.") {
            shell.unknown("git", "an alias stands in a variable", word.range.clone());
        }
        setting(words::text(&key), &Word::unknown(word.range.clone()), shell);
    }
}

/// What a setting runs or reaches when git comes to it.
pub(super) fn setting(key: &str, value: &Word, shell: &mut Interpreter<'_, '_>) {
    let key = key.to_ascii_lowercase();
    let (first, last) =
        (key.split('.').next().unwrap_or_default(), key.rsplit('.').next().unwrap_or_default());
    let text = words::text(value);
    let harmless =
        matches!(text, "" | "cat" | "true" | "false" | ":" | "less" | "vim" | "vi" | "nano" | "code");
    match (first, last) {
        ("alias", _) => {
            if let Some(command) = words::strip(value, "!") {
                shell.script(&command);
            }
        }
        ("credential", "helper") => match words::strip(value, "!") {
            Some(command) => shell.script(&command),
            None if text.contains('/') => shell.script(value),
            None => {}
        },
        ("core", "hookspath") => shell.path(Execute, value),
        ("include" | "includeif", "path") => {
            shell.unknown("git", "settings stand in a file", value.range.clone())
        }
        ("init", "templatedir") => shell.path(Execute, value),
        ("core", "worktree") => shell.path(Write, value),
        ("http" | "https", "proxy") | ("remote", "proxy" | "url" | "pushurl") => {
            shell.resource(Send, ResourceKind::Repository, value, &[]);
            if text.contains("://") {
                shell.url(Send, value, &[]);
            }
            if let Some(command) = words::strip(value, "ext::") {
                shell.script(&command);
            }
        }
        ("url", _) => shell.unknown("git", "remotes are taken for others", value.range.clone()),
        ("protocol", _) => {
            shell.resource(Configure, ResourceKind::Setting, &words::prefixed("git/protocol=", value), &[])
        }
        ("http", "cookiefile" | "sslcert" | "sslkey") => shell.path(Verb::Read, value),
        ("pager", _) if !harmless && !matches!(text, "no" | "yes") => shell.script(value),
        _ if !harmless && COMMANDS.contains(&(first, last)) => shell.script(value),
        _ if value.value.is_none() && COMMANDS.contains(&(first, last)) => shell.script(value),
        ("submodule", "update") => match words::strip(value, "!") {
            Some(command) => shell.script(&command),
            None if matches!(text, "none" | "checkout" | "rebase" | "merge") => {}
            None => shell.sink.presume(),
        },
        ("pager", _) => {}
        _ if COMMANDS.contains(&(first, last)) || is_harmless(first, last) => {}
        _ => shell.sink.presume(),
    }
}

/// Whether a key changes only how much is shown, or how what git does anyway is done.
fn is_harmless(first: &str, last: &str) -> bool {
    let lists = |(section, keys): &(&str, &str)| {
        *section == first && keys.split_ascii_whitespace().any(|key| key == last)
    };
    HARMLESS_SECTIONS.contains(&first) || HARMLESS.iter().any(lists)
}

/// `git config [get|set|…] KEY VALUE`.
pub(super) fn config(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    const SUBCOMMANDS: [&str; 7] =
        ["list", "get", "set", "unset", "rename-section", "remove-section", "edit"];
    let named = SUBCOMMANDS.contains(&call.operand(0));
    let subcommand = if named { call.operand(0) } else { "" };
    let operands = call.rest(usize::from(named));
    let reads = call
        .found
        .iter()
        .any(|found| found.name.starts_with("--get") || matches!(found.name, "-l" | "--list"));
    let unsets =
        call.found.iter().any(|found| found.name.starts_with("--unset") || found.name.starts_with("--re"));
    let edits = call.has_any(&["-e", "--edit"]) || subcommand == "edit";
    let changes = match subcommand {
        "list" | "get" => false,
        "set" | "unset" | "rename-section" | "remove-section" | "edit" => true,
        _ => !reads && (edits || unsets || operands.len() > 1),
    };
    let file = call.values(&["-f", "--file"]).pop();
    let place = match &file {
        Some(file) => file.clone(),
        None if call.has("--global") => call.literal("~/.gitconfig"),
        None if call.has("--system") => call.literal("/etc/gitconfig"),
        None => call.literal("."),
    };
    if !changes {
        call.act(READ, &place, shell);
        return true;
    }
    call.act(Act::Path(Write), &place, shell);
    let scope = match (call.has("--global"), call.has("--system")) {
        (true, _) => "git-global/",
        (_, true) => "git-system/",
        _ => "git/",
    };
    let key = operands.first().cloned().unwrap_or_else(|| call.literal("*"));
    call.act(Act::Named(Configure, ResourceKind::Setting, scope), &key, shell);
    if let Some(value) = operands.get(1) {
        setting(words::text(&key), value, shell);
    }
    !edits
}
