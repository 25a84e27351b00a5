//! What runs by itself later, or decides what an agent may do.
//!
//! Repositories, editors, version managers and agents read files of a project and act on them without being asked
//! again: a git hook at the next commit, a task of an editor when the folder is opened, the settings of a coding
//! agent that say which hook judges it. Writing such a file decides about later actions; anyone who deletes it
//! may take a gate away. Build files (`package.json`, `Makefile`) are not among them: they run when someone says so.
//!
//! Each entry is a sequence of names anywhere in a path, and covers what is below. Letters match in both cases,
//! because some file systems do not tell them apart.

use std::sync::LazyLock;

use super::glob::{Component, Expansion, Secret, is_glob};

/// Folders and files, in lower case.
const CONTROL: [&[&str]; 60] = [
    &[".git"],
    &[".githooks"],
    &[".husky"],
    &[".pre-commit-config.yaml"],
    &["lefthook.yml"],
    &["lefthook.yaml"],
    &[".lefthook.yml"],
    &[".lefthook.yaml"],
    &[".envrc"],
    &[".vscode", "settings.json"],
    &[".vscode", "tasks.json"],
    &[".vscode", "launch.json"],
    &[".vscode", "mcp.json"],
    &[".idea", "runconfigurations"],
    &[".idea", "workspace.xml"],
    &[".idea", "watchertasks.xml"],
    &[".zed", "settings.json"],
    &[".zed", "tasks.json"],
    &[".devcontainer"],
    &[".devcontainer.json"],
    &[".claude"],
    &[".claude.json"],
    &[".mcp.json"],
    &[".cursor"],
    &[".cursorrules"],
    &[".windsurf"],
    &[".windsurfrules"],
    &[".cline"],
    &[".clinerules"],
    &["documents", "cline", "hooks"],
    &[".devin"],
    &[".kiro", "hooks"],
    &[".kiro", "agents"],
    &[".kiro", "settings"],
    &[".codeium", "windsurf", "hooks.json"],
    &[".gemini"],
    &[".qwen"],
    &[".codex"],
    &[".copilot"],
    &[".github", "hooks"],
    &[".github", "copilot"],
    &[".opencode"],
    &[".config", "opencode"],
    &["opencode.json"],
    &["opencode.jsonc"],
    &[".factory"],
    &[".kimi-code"],
    &[".pi"],
    &[".config", "crush"],
    &["crush.json"],
    &[".crush.json"],
    &["crushrc"],
    &[".crushrc"],
    &[".continue"],
    &[".roo"],
    &[".aider.conf.yml"],
    // The gate's own state, under whatever folder it was put.
    &[".local", "state", "portcullis"],
    &["gate.sock"],
    &["daemon.lock"],
    &["daemon.pid"],
];

/// How their names begin.
const BEGINNINGS: [char; 6] = ['.', 'c', 'd', 'g', 'l', 'o'];

/// Files of those folders that people and agents write in the course of work, and that nothing acts on.
const HARMLESS: [&[&str]; 4] = [
    &[".git", "info", "exclude"],
    &[".git", "commit_editmsg"],
    &[".git", "merge_msg"],
    &[".git", "description"],
];

/// Copies of the project that a client keeps for sub-agents: what is in them is judged by what follows.
const COPIES: [&str; 2] = [".claude", "worktrees"];

static TAKEN_APART: LazyLock<Vec<Vec<Secret>>> = LazyLock::new(|| {
    CONTROL.iter().map(|entry| entry.iter().map(|name| Secret::new(name)).collect()).collect()
});

/// Whether the path is, or is in, something of that kind. Patterns are taken as those of [`super::secret`] are: they
/// have to show that it is meant.
pub(super) fn is_control(components: &[Component]) -> bool {
    let lower: Vec<&str> = components.iter().map(Component::text).collect();
    let mut names = lower.as_slice();
    while let Some(at) = names.windows(2).position(|pair| pair == COPIES) {
        // The folder of all copies is nobody's work; one copy is.
        let Some((_, below)) = names.split_at_checked(at + 3) else { return true };
        names = below;
    }
    if names.iter().any(|name| is_glob(name)) {
        return may_be_control(names);
    }
    let harmless = || {
        HARMLESS.iter().any(|file| {
            let end = names.len().checked_sub(file.len()).and_then(|start| names.get(start..));
            end.is_some_and(|end| end == *file)
        })
    };
    let controls = |at: usize| {
        let below = names.get(at..).unwrap_or_default();
        if !below.first().is_some_and(|name| name.starts_with(BEGINNINGS)) {
            return false;
        }
        CONTROL.iter().any(|entry| entry.first() == below.first() && below.starts_with(entry))
    };
    (0..names.len()).any(controls) && !harmless()
}

fn may_be_control(names: &[&str]) -> bool {
    let mut left = Expansion::of_a_path();
    let components: Vec<Component> = names.iter().map(|name| Component::new(name, &mut left)).collect();
    // Shells leave hidden names out where the pattern does not begin with a dot.
    let seen =
        |component: &Component, name: &Secret| !name.is_hidden() || !component.text().starts_with(['*', '?']);
    TAKEN_APART.iter().any(|entry| {
        let alone = entry.len() == 1;
        let is_meant = |component: &Component, name: &Secret| {
            if alone { component.may_be_alone(name) } else { component.may_be(name, false) }
        };
        let may_be =
            |component: &Component, name: &Secret| seen(component, name) && is_meant(component, name);
        components
            .windows(entry.len())
            .any(|run| run.iter().zip(entry).all(|(component, name)| may_be(component, name)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn control(path: &str) -> bool {
        let names: Vec<String> = path.split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect();
        is_control(&super::super::glob::taken_apart(&names))
    }

    #[test]
    fn names_begin_as_is_said() {
        assert!(CONTROL.iter().all(|entry| entry[0].starts_with(BEGINNINGS)));
    }

    #[test]
    fn what_acts_by_itself_is_known_in_any_spelling() {
        for path in [
            "/p/.git/hooks/pre-commit",
            "/p/.GIT/Hooks/pre-commit",
            "/p/.git",
            "/p/.git/modules/a/hooks/x",
            "/p/.claude/settings.json",
            "/p/.Claude/Settings.local.json",
            "/p/.cla*/settings.json",
            "/p/.claude/sett*",
            "/p/.[!.]*",
            "/srv/gate/gate.*",
            "/p/{.claude,src}/x",
            "/p/.claude",
            "/p/.claude/worktrees",
            "/p/.claude/worktrees/a/.claude/settings.json",
            "/p/.vscode/tasks.json",
            "/p/.factory/hooks.json",
            "/home/u/.kimi-code/config.toml",
            "/p/crush.json",
            "/p/crush*.json",
            "/p/cr*.json",
            "/p/*h.json",
            "/p/?rush.json",
            "/p/*{h,x}.json",
            "/p/sub/.envrc",
            "/home/u/.local/state/portcullis/ledger/x",
            "/srv/gate/gate.sock",
        ] {
            assert!(control(path), "{path}");
        }
    }

    #[test]
    fn what_is_worked_on_is_not() {
        for path in [
            "/p/src/main.rs",
            "/p/package.json",
            "/p/.gitignore",
            "/p/.github/workflows/ci.yml",
            "/p/.git/info/exclude",
            "/p/.vscode/extensions.json",
            "/p/.claude/worktrees/a",
            "/p/.claude/worktrees/a/src/main.rs",
            "/p/*",
            "/p/*/settings.json",
            "/p/*.orig",
            "/p/*.json",
            "/p/*.{json,rs}",
            "/p/*.sock",
            "/p/src/*.rs",
            "/p/claude/settings.json",
        ] {
            assert!(!control(path), "{path}");
        }
    }
}
