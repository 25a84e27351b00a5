//! What the tables of package managers do not tell.

use portcullis_core::effect::ResourceKind::{Package, Setting};
use portcullis_core::effect::Verb::{Configure, Delete, Execute, Read, Write};

use super::super::interpreter::Interpreter;
use super::super::word::Word;
use super::options::Parsed;
use super::spec::*;
use super::{find, words};

/// All operands are a command with its arguments.
pub(super) fn run_words(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    if !call.operands.is_empty() {
        shell.run(&call.operands, call.call.range.clone());
    }
    true
}

/// A command that comes with a package: its effects are told where it has a model.
fn run_if_modelled(command: &[Word], call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) {
    let Some((first, rest)) = command.split_first() else { return };
    // `rimraf@5` is `rimraf`.
    let name = words::split(first, '@').map_or_else(|| first.clone(), |(name, _)| name);
    if name.value.as_deref().is_some_and(|name| find(name).is_some()) {
        let mut command = vec![name];
        command.extend_from_slice(rest);
        shell.run(&command, call.call.range.clone());
    }
}

/// `yarn` alone installs; `yarn X` runs the script X of the project.
pub(super) fn node_alone(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    let runs_scripts = call.call.program != "npm" && !call.operand(0).is_empty();
    if call.operands.is_empty() && call.call.program == "yarn" && !call.unlisted {
        call.act(Act::Named(Read, Package, "npm:"), &call.literal("*"), shell);
        call.act(WRITE, &call.literal("."), shell);
    } else if runs_scripts {
        let script = call.operands.first().filter(|script| words::text(script).contains(['/', '.']));
        if let Some(script) = script {
            call.act(EXECUTE, script, shell);
        }
        call.always(WORKS_HERE, shell);
        // Without `run`, a name that is no script is that of a program.
        match call.operand(0) {
            "node" => shell.run(&call.operands, call.call.range.clone()),
            _ => run_if_modelled(&call.operands, call, shell),
        }
    }
    call.operands.is_empty() || runs_scripts && call.operands.first().is_some_and(|word| word.value.is_some())
}

/// `npm run SCRIPT`: the project's own code runs; that nothing should be changed is not for it to keep.
pub(super) fn node_script(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    let here = call.path(&call.literal("."));
    shell.path(Write, &here);
    shell.path(Execute, &here);
    true
}

/// Without names all that the project asks for is installed.
pub(super) fn node_install(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    if call.operands.is_empty() {
        call.act(Act::Named(Read, Package, "npm:"), &call.literal("*"), shell);
    }
    true
}

/// `npx PACKAGE ARGUMENTS…`.
pub(super) fn node_exec(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    let Some((first, _)) = call.operands.split_first() else { return true };
    if !call.has_any(&["-p", "--package"]) {
        let creates = matches!(call.subcommand.as_str(), "create" | "init" | "innit");
        let word = if creates { words::prefixed("create-", first) } else { first.clone() };
        call.act(Act::Package(Execute, "npm"), &word, shell);
    }
    call.act(WRITE, &call.literal("."), shell);
    run_if_modelled(&call.operands, call, shell);
    true
}

/// `npm config set KEY VALUE`, `npm set KEY=VALUE`.
pub(super) fn node_config(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    let sets =
        call.subcommand == "set" || matches!(call.operand(0), "set" | "delete" | "rm" | "edit" | "fix");
    if sets {
        let key = call.operands.get(usize::from(call.subcommand != "set"));
        let key = key.map_or_else(
            || call.literal("*"),
            |key| words::split(key, '=').map_or_else(|| key.clone(), |(key, _)| key),
        );
        call.act(Act::Named(Configure, Setting, "npm/"), &key, shell);
    } else {
        call.act(READ, &call.literal("~/.npmrc"), shell);
    }
    true
}

/// `nvm use`, `fnm install`, `volta run`.
pub(super) fn version_manager(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    match call.operand(0) {
        "exec" | "run" => return false,
        "" | "ls" | "list" | "ls-remote" | "current" | "which" | "use" | "env" | "version" | "help" => {}
        _ => call.act(Act::Named(Configure, Setting, "packages/"), &call.literal("node"), shell),
    }
    true
}

/// `pip install` into another place than the project's is told by its options.
pub(super) fn pip_install(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    if call.has_any(&["-r", "--requirement"]) {
        call.act(Act::Named(Read, Package, "pypi:"), &call.literal("*"), shell);
    }
    true
}

/// `uvx TOOL`, `pipx run TOOL`, `pipx install PACKAGE`.
pub(super) fn tool_runner(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    let pypi = |word: &Word, verb, shell: &mut Interpreter<'_, '_>| {
        call.act(Act::Package(verb, "pypi"), word, shell)
    };
    let command = match (call.call.program, call.operand(0)) {
        ("uvx", "") | ("pipx", "" | "list" | "environment" | "completions" | "help") => return true,
        ("uvx", _) => call.rest(0),
        ("pipx", "run") => call.rest(1),
        (
            "pipx",
            "install" | "inject" | "upgrade" | "upgrade-all" | "reinstall" | "uninstall" | "ensurepath",
        ) => {
            call.rest(1)
                .iter()
                .filter(|word| !words::text(word).starts_with('-'))
                .for_each(|word| pypi(word, Read, shell));
            call.act(Act::Named(Configure, Setting, "packages/"), &call.literal("pypi"), shell);
            return true;
        }
        _ => return false,
    };
    let command: Vec<Word> =
        command.iter().skip_while(|word| words::text(word).starts_with("--")).cloned().collect();
    if let Some(tool) = command.first() {
        if !call.has_any(&["--from", "--spec"]) {
            pypi(tool, Execute, shell);
        }
        call.act(WRITE, &call.literal("."), shell);
        run_if_modelled(&command, call, shell);
    }
    true
}

/// `uv run COMMAND…`, `uv run FILE.py`.
pub(super) fn uv_run(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    call.act(WRITE, &call.literal("."), shell);
    match call.operands.first() {
        Some(file) if words::text(file).ends_with(".py") => call.act(EXECUTE, file, shell),
        Some(_) if !call.has_any(&["-m", "--module"]) => shell.run(&call.operands, call.call.range.clone()),
        _ => {}
    }
    true
}

/// `poetry add X`; other subcommands of the same table name no packages.
pub(super) fn python_add(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    if matches!(call.subcommand.as_str(), "add" | "install" | "update" | "upgrade") {
        call.act_on_each(Act::Package(Read, "pypi"), &call.operands, shell);
        if call.operands.is_empty() {
            call.act(Act::Named(Read, Package, "pypi:"), &call.literal("*"), shell);
        }
    }
    true
}

/// `bundle` alone installs.
pub(super) fn bundle_alone(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    if call.operands.is_empty() {
        call.act(Act::Named(Read, Package, "gem:"), &call.literal("*"), shell);
        call.act(WRITE, &call.literal("."), shell);
    }
    call.operands.is_empty()
}

/// `cross-env NAME=VALUE COMMAND…`, `nodemon FILE`.
pub(super) fn wrapped(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    let is_setting =
        |word: &&Word| words::split(word, '=').is_some_and(|(name, _)| !words::text(&name).contains('/'));
    let skip = call.operands.iter().take_while(is_setting).count();
    let sets_path =
        call.rest(0).iter().take(skip).any(|word| {
            ["PATH=", "NODE_OPTIONS=", "LD_"].iter().any(|name| words::text(word).starts_with(name))
        });
    match call.rest(skip) {
        [file, ..] if call.call.program == "nodemon" => call.act(EXECUTE, file, shell),
        [] => {}
        command => shell.run(command, call.call.range.clone()),
    }
    !sets_path
}

/// Options of apt can run commands: `-o APT::Update::Pre-Invoke::=…`.
pub(super) fn apt_option(word: &Word, shell: &mut Interpreter<'_, '_>) {
    if let Some((key, value)) = words::split(word, '=') {
        let key = words::text(&key).to_ascii_lowercase();
        if key.contains("invoke") || key.contains("proxy") || key.starts_with("dir::bin") {
            shell.script(&value);
        }
    }
}

/// Without a subcommand apt says how it is used.
pub(super) fn apt(call: &Parsed<'_>, _: &mut Interpreter<'_, '_>) -> bool {
    call.operands.is_empty()
}

/// `dpkg -i FILE`, `dpkg -r NAME`, `dpkg -l`.
pub(super) fn dpkg(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    let given = |names: &[&str]| call.call.args.iter().any(|arg| names.contains(&words::text(arg)));
    let changes = setting("packages/");
    if given(&["-i", "--install", "--unpack", "-A"]) {
        call.act_on_each(Act::All(&[READ, EXECUTE]), &call.operands, shell);
        call.act(changes, &call.literal("deb"), shell);
    } else if given(&["-r", "--remove", "-P", "--purge"]) {
        call.act_on_each(Act::Package(Delete, "deb"), &call.operands, shell);
        call.act(changes, &call.literal("deb"), shell);
    } else if given(&["-x", "-X", "--extract", "--vextract", "-e", "--control"]) {
        call.act_on_each(READ, call.rest(0).get(..1).unwrap_or_default(), shell);
        call.act_on_each(Act::Tree(portcullis_core::effect::Verb::Write), call.rest(1), shell);
    } else {
        let asks =
            ["-l", "-L", "-s", "-S", "-p", "-C", "-c", "-I", "--list", "--listfiles", "--status", "--search"];
        let more = ["--print-architecture", "--get-selections", "--version", "--audit", "-V", "--verify"];
        return given(&asks) || given(&more);
    }
    true
}

/// `rpm -q…` asks, `-i -U -F -e` change.
pub(super) fn rpm(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    let starts = |letters: &[char]| {
        call.call
            .args
            .iter()
            .any(|arg| words::text(arg).strip_prefix('-').is_some_and(|rest| rest.starts_with(letters)))
    };
    if starts(&['q', 'V']) {
        return true;
    }
    let changes = starts(&['i', 'U', 'F', 'e'])
        || call.call.args.iter().any(|arg| {
            matches!(words::text(arg), "--install" | "--upgrade" | "--freshen" | "--erase" | "--import")
        });
    call.act_on_each(Act::Place(if starts(&['e']) { Delete } else { Read }), &call.operands, shell);
    call.act(setting("packages/"), &call.literal("rpm"), shell);
    changes
}

/// `pacman -S NAME`, `-R NAME`, `-U FILE`, `-Q`.
pub(super) fn pacman(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    let operation = call.call.args.iter().find_map(|arg| words::text(arg).strip_prefix('-'));
    let operation = operation.unwrap_or_default();
    let act = match operation.chars().next() {
        Some('S') if operation.contains(['s', 'i', 'l']) => return true,
        Some('S') => Act::Package(Read, "alpm"),
        Some('R') => Act::Package(Delete, "alpm"),
        Some('U') => Act::Place(Read),
        Some('Q' | 'F' | 'T') => return true,
        Some('D') => Act::Text,
        _ => return false,
    };
    call.act_on_each(act, &call.operands, shell);
    call.act(setting("packages/"), &call.literal("alpm"), shell);
    true
}
