//! The files that belong to the gate itself: its tokens, keys and store.
//!
//! It is known in two ways. By its names, wherever it lies: they are distinctive enough, and a file server that is
//! wrapped may be given a path that is relative to a folder which nobody here knows. And by the state folder that the
//! run names ([`mark`]): that may be called anything, and only where it lies is it known which folders hold it.

use std::sync::LazyLock;

use portcullis_core::effect::{Effect, Effects, Resource, ResourceKind, Verb};
use portcullis_core::tool::Tool;
use serde_json::{Map, Value};

use super::glob::{Component, Secret, taken_apart};

/// Names in a row that are the gate's tokens and keys, or the folders of them, in lower case. `agent.token` alone is what
/// others call theirs, too.
const SECRETS: [&[&str]; 5] = [
    &["portcullis", "credentials"],
    &["portcullis", "keys"],
    &["credentials", "agent.token"],
    &["credentials", "approver.token"],
    &["approver.token"],
];
/// Where the state folder is unless it was put elsewhere.
const STATE: [&str; 3] = [".local", "state", "portcullis"];
/// What of a process shows its memory, its environment, or files by another name.
const OF_A_PROCESS: [&str; 2] = ["mem", "environ"];
const FOLDERS_OF_A_PROCESS: [&str; 4] = ["fd", "map_files", "cwd", "root"];
/// Longest state folder that is looked at, in components.
const FOLDER_PARTS_MAX: usize = 64;

static SECRETS_APART: LazyLock<Vec<Vec<Secret>>> = LazyLock::new(|| {
    SECRETS.iter().map(|names| names.iter().map(|name| Secret::new(name)).collect()).collect()
});

static SECRET_FOLDERS_APART: LazyLock<[Secret; 2]> =
    LazyLock::new(|| [Secret::new("credentials"), Secret::new("keys")]);

/// What of the gate a path is, or is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Own {
    /// Nothing.
    Nothing,
    /// Its state.
    State,
    /// Its tokens or keys.
    Secret,
}

/// What of the gate a path is by its names. A pattern has to show that it is meant: half of the letters of each name,
/// and not too many expansions to look at them all.
pub(super) fn by_name(components: &[Component]) -> Own {
    let meant =
        |component: &Component, name: &Secret| component.is_looked_through() && component.may_be(name, true);
    let means = |names: &Vec<Secret>| {
        components
            .windows(names.len())
            .any(|run| run.iter().zip(names).all(|(component, name)| meant(component, name)))
    };
    if SECRETS_APART.iter().any(means) {
        return Own::Secret;
    }
    let state = components.windows(STATE.len()).position(|run| run.iter().map(Component::text).eq(STATE));
    match state {
        None => Own::Nothing,
        Some(at) if is_secret(components.get(at + STATE.len()..).unwrap_or_default()) => Own::Secret,
        Some(_) => Own::State,
    }
}

/// Whether what follows the state folder in a path is, or is in, a folder of tokens and keys. A pattern that may be
/// one names what is in it: `*/*` does, `*` lists the state folder.
fn is_secret(below: &[Component]) -> bool {
    below.split_first().is_some_and(|(first, rest)| {
        (!first.is_glob() || !rest.is_empty())
            && SECRET_FOLDERS_APART.iter().any(|name| first.may_be(name, false))
    })
}

/// Marks what is in the gate's state folder, and what is done to everything below a folder that holds its tokens and
/// keys, unless an argument of the call leaves them out.
pub(crate) fn mark(effects: Effects, folder: &str, tool: Option<&Tool>, arguments: &Value) -> Effects {
    let names: Vec<String> =
        folder.split('/').filter(|part| !matches!(*part, "" | ".")).map(str::to_lowercase).collect();
    if names.is_empty() || names.len() > FOLDER_PARTS_MAX || !folder.starts_with('/') {
        return effects;
    }
    let state = StateFolder { parts: names.iter().map(|name| Secret::new(name)).collect(), names };
    if !effects.iter().any(|effect| state.touches(effect)) {
        return effects;
    }
    // What a command, or a text that nobody could read, goes through is not for another argument to narrow.
    let runs =
        |effect: &Effect| matches!(effect.resource.kind, ResourceKind::Command | ResourceKind::Unknown);
    let tool = tool.filter(|_| !effects.iter().any(runs));
    // What is read and written as one is linked: the other name leads to everything below.
    let is_linked = |read: &Effect| {
        let written = |other: &&Effect| other.verb == Verb::Write && other.resource == read.resource;
        read.verb == Verb::Read && effects.iter().any(|other| written(&other))
    };
    let linked: Vec<Resource> =
        effects.iter().filter(|read| is_linked(read)).map(|read| read.resource.clone()).collect();
    effects.map(|effect| {
        let linked = effect.verb == Verb::Read && linked.contains(&effect.resource);
        state.mark(effect, linked, tool, arguments)
    })
}

/// Whether a path leads into another process than the one that asks: to its memory or environment, or through its links.
fn is_of_a_process(components: &[Component], deep: bool) -> bool {
    let names: Vec<&str> = components.iter().map(Component::text).collect();
    // A number, a pattern, or a variable; `self` is who asks, and `sys` no process.
    let is_process = |name: &str| {
        !name.is_empty()
            && !name.bytes().all(|byte| byte.is_ascii_alphabetic() || matches!(byte, b'-' | b'_'))
    };
    match names.as_slice() {
        ["proc"] => deep,
        ["proc", process, rest @ ..] if is_process(process) => match (rest, components.get(2)) {
            ([], _) | (_, None) => deep,
            ([_], Some(what)) if OF_A_PROCESS.iter().any(|name| what.may_be(&Secret::new(name), false)) => {
                true
            }
            (rest, Some(what)) => {
                (deep || rest.len() > 1)
                    && FOLDERS_OF_A_PROCESS.iter().any(|name| what.may_be(&Secret::new(name), false))
            }
        },
        _ => false,
    }
}

/// Where the gate keeps its state.
struct StateFolder {
    /// Its path, in lower case.
    names: Vec<String>,
    parts: Vec<Secret>,
}

impl StateFolder {
    /// Whether an effect is on a path that may be a folder of it, or be in it: the names so far are the same.
    fn touches(&self, effect: &Effect) -> bool {
        let first = self.names.first().map_or("", String::as_str);
        effect.resource.kind == ResourceKind::Path
            && effect.resource.name.strip_prefix('/').is_some_and(|path| {
                let head = path.split('/').next().unwrap_or_default();
                head.is_empty()
                    || effect.resource.is("glob")
                    || head.eq_ignore_ascii_case(first)
                    || head == "proc"
                    || !head.is_ascii()
            })
    }

    fn mark(&self, effect: Effect, linked: bool, tool: Option<&Tool>, arguments: &Value) -> Effect {
        if !self.touches(&effect) {
            return effect;
        }
        let names: Vec<String> =
            effect.resource.name.split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect();
        let components = taken_apart(&names);
        let deep =
            linked || effect.is("recursive") || components.iter().any(|component| component.text() == "**");
        let sweeps = deep
            && effect.verb != Verb::Execute
            && self.lies_below(&components)
            && !self.left_out(components.len(), tool, arguments);
        let process = is_of_a_process(&components, deep);
        let (own, secret) = self.holds(&components);
        let own = own || process && effect.verb != Verb::Read && effect.verb != Verb::Execute;
        let mut effect = effect;
        if own {
            effect.resource = effect.resource.with("gate", true);
        }
        if secret {
            effect.resource = effect.resource.with("secret", true);
        }
        if sweeps || process { effect.with("sweeps_gate", true) } else { effect }
    }

    /// Whether a path is in the state folder, and whether among its tokens and keys.
    fn holds(&self, components: &[Component]) -> (bool, bool) {
        let own = components.len() >= self.parts.len()
            && components.iter().zip(&self.parts).all(|(component, part)| component.may_be(part, false));
        (own, own && is_secret(components.get(self.parts.len()..).unwrap_or_default()))
    }

    /// Whether the tokens and keys are below what a path names.
    fn lies_below(&self, components: &[Component]) -> bool {
        let any = components.iter().position(|component| component.text() == "**");
        let named = components.get(..any.unwrap_or(components.len())).unwrap_or_default();
        let below = named.get(self.parts.len()..).unwrap_or_default();
        let within = match below {
            [] => true,
            // `portcullis/*`, with everything below.
            [only] => SECRET_FOLDERS_APART.iter().any(|name| only.may_be(name, false)),
            _ => false,
        };
        within && named.iter().zip(&self.parts).all(|(component, part)| component.may_be(part, false))
    }

    /// Whether an argument that the tool declares for it leaves out the state folder, or one that it is in. `root` is
    /// how many names the searched folder has: only names below it can be left out.
    fn left_out(&self, root: usize, tool: Option<&Tool>, arguments: &Value) -> bool {
        let argument = tool.and_then(Tool::exclusion_argument);
        let Some(given) =
            argument.and_then(|argument| arguments.as_object().and_then(|all: &Map<_, _>| all.get(argument)))
        else {
            return false;
        };
        let patterns: Vec<&str> = match given {
            Value::String(pattern) => vec![pattern],
            Value::Array(patterns) => patterns.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        let below = self.names.get(root..).unwrap_or_default();
        patterns.iter().any(|pattern| {
            let pattern = pattern.trim_start_matches('!').to_lowercase();
            let names: Vec<&str> =
                pattern.split('/').filter(|part| !matches!(*part, "" | "." | "*" | "**")).collect();
            !names.is_empty() && below.windows(names.len()).any(|run| run.iter().eq(names.iter()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(path: &str) -> Own {
        let names: Vec<String> = path.split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect();
        by_name(&taken_apart(&names))
    }

    #[test]
    fn tokens_and_keys_are_known_by_their_names() {
        for path in [
            "/home/u/.local/state/portcullis/credentials/approver.token",
            "/home/u/.local/state/Portcullis/Credentials/x",
            "/home/u/.local/state/portcullis/credentials",
            "/home/u/.local/state/portcullis/cred*/*",
            "/home/u/.local/state/portcullis/*/*",
            "/home/u/.local/state/{portcullis,x}/keys/log.key",
            "/srv/gate/credentials/agent.token",
            "credentials/approver.token",
            "approver.token",
            "/srv/gate/credentials/approver.*",
        ] {
            assert_eq!(own(path), Own::Secret, "{path}");
        }
        assert_eq!(own("/home/u/.local/state/portcullis/ledger/ledger.db"), Own::State);
        assert_eq!(own("/home/u/.local/state/portcullis"), Own::State);
        assert_eq!(own("/home/u/.local/state/portcullis/*"), Own::State);
    }

    #[test]
    fn what_others_call_alike_is_not() {
        for path in [
            "/etc/fleet/agent.token",
            "/srv/app/credentials/db.json",
            "/home/u/portcullis/src/main.rs",
            "/home/u/portcullis/docs/*",
            "/srv/*/keys/a.pub",
            "/home/u/*/credentials/*",
            "/home/u/.local/state/other/x",
        ] {
            assert_eq!(own(path), Own::Nothing, "{path}");
        }
    }

    #[test]
    fn what_was_presumed_stays_presumed_beside_the_state_folder() {
        let settings = portcullis_core::bundle::EffectSettings::default();
        let surroundings = crate::Surroundings {
            settings: &settings,
            workspace: Some("/home/u/project"),
            home: Some("/home/u"),
            directory: Some("/home/u/project"),
        };
        let seen = |command: &str, folder: &str| {
            let mut effects = Effects::none();
            crate::shell::read(
                command,
                &surroundings,
                &mut crate::Sink::new(&mut effects, "/arguments/command"),
            );
            mark(effects, folder, None, &Value::Null).are_seen()
        };
        for folder in ["/home/u/.local/state/portcullis", "/srv/gate", "/home/x"] {
            assert!(!seen("ls --foo src", folder), "{folder}");
            assert!(seen("ls -la src", folder), "{folder}");
        }
    }
}
