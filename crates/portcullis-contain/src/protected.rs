//! Files that something outside runs or obeys later, and that are therefore never written, even inside a project.

use std::path::{Path, PathBuf};

/// What is protected at the top of a folder that may be written, and in each folder between it and where the command
/// starts.
pub(crate) const NAMES: &[&str] = &[
    // Git runs hooks, and programs that its settings name.
    ".git/hooks",
    ".git/config",
    ".git/config.worktree",
    ".gitconfig",
    ".config/git/config",
    // Run when somebody enters the folder, or logs in.
    ".envrc",
    ".bashrc",
    ".bash_aliases",
    ".bash_login",
    ".bash_logout",
    ".bash_profile",
    ".profile",
    ".zlogin",
    ".zlogout",
    ".zprofile",
    ".zshenv",
    ".zshrc",
    ".config/fish/config.fish",
    ".config/fish/conf.d",
    ".inputrc",
    ".pam_environment",
    ".xinitrc",
    ".xprofile",
    ".xsessionrc",
    ".config/autostart",
    ".config/systemd/user",
    ".config/environment.d",
    ".ssh",
    // Editors run these, or start what they name.
    ".vimrc",
    ".exrc",
    ".nvimrc",
    ".nvim.lua",
    ".vim/vimrc",
    ".config/nvim/init.lua",
    ".config/nvim/init.vim",
    ".emacs",
    ".emacs.d/init.el",
    ".dir-locals.el",
    ".vscode/settings.json",
    ".vscode/tasks.json",
    ".vscode/launch.json",
    ".vscode/extensions.json",
    ".idea/workspace.xml",
    ".idea/runConfigurations",
    // Agents start these servers and hooks, and follow these instructions.
    ".mcp.json",
    ".vscode/mcp.json",
    "CLAUDE.md",
    "CLAUDE.local.md",
    ".claude/CLAUDE.md",
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".claude/agents",
    ".claude/commands",
    ".claude/hooks",
    ".claude/skills",
    ".claude/rules",
    "AGENTS.md",
    "AGENTS.override.md",
    ".codex/config.toml",
    ".codex/hooks.json",
    "GEMINI.md",
    ".gemini/settings.json",
    ".cursorrules",
    ".cursor/rules",
    ".cursor/mcp.json",
    ".cursor/hooks.json",
    ".windsurfrules",
    ".clinerules",
    ".aider.conf.yml",
    ".github/copilot-instructions.md",
];

/// The same, in a folder that is git's own.
const IN_GIT: &[&str] = &["hooks", "config", "config.worktree"];

/// Submodules and worktrees of one repository that are looked into.
const MODULES_MAX: usize = 64;

/// A folder that may be written, and what is protected in it.
#[derive(Debug)]
pub(crate) struct Guarded {
    /// The folder.
    pub(crate) root: PathBuf,
    /// Paths below it, whether they exist or not.
    pub(crate) names: Vec<PathBuf>,
}

/// What is protected when these folders may be written and the command starts in `folder`.
pub(crate) fn guarded(write: &[PathBuf], folder: &Path) -> Vec<Guarded> {
    let mut all: Vec<Guarded> = Vec::new();
    for root in write {
        let between = folder.ancestors().take_while(|above| *above != root && above.starts_with(root));
        for place in std::iter::once(root.as_path()).chain(between) {
            if all.iter().any(|guarded| guarded.root == place) {
                continue;
            }
            let mut names: Vec<PathBuf> = NAMES.iter().map(PathBuf::from).collect();
            if is_git(place) {
                names.extend(IN_GIT.iter().map(PathBuf::from));
                names.extend(modules(place, Path::new("")));
            }
            names.extend(modules(&place.join(".git"), Path::new(".git")));
            all.push(Guarded { root: place.to_owned(), names });
        }
    }
    all
}

/// The same without what a profile names itself.
pub(crate) fn unless_named(mut all: Vec<Guarded>, named: &[PathBuf]) -> Vec<Guarded> {
    for Guarded { root, names } in &mut all {
        names.retain(|name| !named.contains(&root.join(name)));
    }
    all
}

fn is_git(folder: &Path) -> bool {
    folder.join("HEAD").is_file() && folder.join("objects").is_dir()
}

/// Settings and hooks of the submodules and worktrees of a repository.
fn modules(git: &Path, shown: &Path) -> Vec<PathBuf> {
    let mut names = Vec::new();
    for kind in ["modules", "worktrees"] {
        let Ok(entries) = std::fs::read_dir(git.join(kind)) else { continue };
        for entry in entries.filter_map(Result::ok).take(MODULES_MAX) {
            let place = shown.join(kind).join(entry.file_name());
            names.extend(IN_GIT.iter().map(|name| place.join(name)));
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_between_the_folder_and_the_start_is_protected_too() {
        let all = guarded(&[PathBuf::from("/w")], Path::new("/w/a/b"));
        let roots: Vec<&Path> = all.iter().map(|guarded| guarded.root.as_path()).collect();
        assert_eq!(roots, ["/w", "/w/a/b", "/w/a"].map(Path::new));
        assert!(all[0].names.contains(&PathBuf::from(".git/hooks")));
    }

    #[test]
    fn what_is_named_itself_is_not_protected() {
        let all = unless_named(
            guarded(&[PathBuf::from("/w")], Path::new("/w")),
            &["/w/.envrc".into(), "/w".into()],
        );
        assert!(!all[0].names.contains(&PathBuf::from(".envrc")));
        assert!(all[0].names.contains(&PathBuf::from(".git/hooks")));
    }

    #[test]
    fn a_folder_of_gits_own_has_its_hooks_protected() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("HEAD"), "").unwrap();
        std::fs::create_dir_all(folder.path().join("objects")).unwrap();
        std::fs::create_dir_all(folder.path().join("modules/sub")).unwrap();
        let all = guarded(&[folder.path().to_owned()], folder.path());
        for name in ["hooks", "config", "modules/sub/hooks"] {
            assert!(all[0].names.contains(&PathBuf::from(name)), "{name}");
        }
    }
}
