//! Files that something outside runs or obeys later, and that are therefore never written, even inside a project.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use crate::git::{self, Home};
use crate::links;
use crate::present::{Listed, Present};

/// What is protected at the top of a folder that may be written, and in each folder between it and where the command
/// starts: start-up files, which count in a home folder, and in whatever somebody takes for one.
const AT_HOME: &[&str] = &[
    ".gitconfig",
    ".config/git/config",
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
    ".vimrc",
    ".vim/vimrc",
    ".config/nvim/init.lua",
    ".config/nvim/init.vim",
    ".emacs",
    ".emacs.d/init.el",
    // Interpreters and debuggers run these of the folder that they are started in.
    ".Rprofile",
    ".gdbinit",
    ".ghci",
    ".iex.exs",
    ".irbrc",
    ".lldbinit",
    ".pdbrc",
    ".pryrc",
];

/// What is protected besides in each folder that may be written, however deep: it is run or obeyed by whoever enters
/// or opens that folder.
const ANYWHERE: &[&str] = &[
    // Run when somebody enters the folder.
    ".envrc",
    ".mise.toml",
    "mise.toml",
    // Editors run these, or start what they name.
    ".exrc",
    ".lvimrc",
    ".nvimrc",
    ".nvim.lua",
    ".dir-locals.el",
    ".vscode/settings.json",
    ".vscode/tasks.json",
    ".vscode/launch.json",
    ".vscode/extensions.json",
    ".idea/workspace.xml",
    ".idea/watcherTasks.xml",
    ".idea/runConfigurations",
    ".zed/settings.json",
    ".zed/tasks.json",
    ".helix",
    ".devcontainer",
    ".devcontainer.json",
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
    ".claude/output-styles",
    ".claude/plugins",
    ".claude/skills",
    ".claude/rules",
    "AGENTS.md",
    "AGENTS.override.md",
    ".agents/skills",
    ".codex/config.toml",
    ".codex/hooks.json",
    ".codex/prompts",
    ".codex/rules",
    ".codex/skills",
    ".codex/agents",
    "GEMINI.md",
    ".gemini/.env",
    ".gemini/GEMINI.md",
    ".gemini/commands",
    ".gemini/extensions",
    ".gemini/hooks",
    ".gemini/settings.json",
    ".gemini/skills",
    ".cursorrules",
    ".cursor/agents",
    ".cursor/commands",
    ".cursor/rules",
    ".cursor/skills",
    ".cursor/mcp.json",
    ".cursor/hooks.json",
    ".windsurfrules",
    ".windsurf",
    ".devin",
    ".codeium/windsurf/hooks.json",
    ".clinerules",
    ".cline/hooks",
    ".cline/plugins",
    ".roo",
    ".roorules",
    ".roomodes",
    ".rules",
    ".trae",
    "QWEN.md",
    ".qwen/commands",
    ".qwen/extensions",
    ".qwen/settings.json",
    ".qwen/skills",
    ".kiro",
    ".amazonq/cli-agents",
    ".amazonq/mcp.json",
    ".amazonq/rules",
    ".continue/config.yaml",
    ".continue/mcpServers",
    ".continue/rules",
    ".opencode/agent",
    ".opencode/agents",
    ".opencode/command",
    ".opencode/commands",
    ".opencode/opencode.json",
    ".opencode/opencode.jsonc",
    ".opencode/plugin",
    ".opencode/plugins",
    ".opencode/tool",
    ".opencode/tools",
    "opencode.json",
    "opencode.jsonc",
    ".factory",
    ".kimi-code",
    ".pi",
    "crush.json",
    ".crush.json",
    "crushrc",
    ".crushrc",
    ".goosehints",
    ".junie",
    ".aider.conf.yml",
    ".github/copilot-instructions.md",
    ".github/instructions",
    ".github/prompts",
    ".github/chatmodes",
    ".github/agents",
    ".github/hooks",
    ".github/skills",
];

/// The name of a repository's folder in its project; of a worktree and a submodule, the file that leads to it.
pub(crate) const GIT: &str = ".git";

/// Without this no folder is a repository's.
pub(crate) const HEAD: &str = "HEAD";

/// Folders of what others wrote: nobody works in them, so only repositories are looked for there.
const DEPENDENCIES: &[&str] =
    &["node_modules", "bower_components", "site-packages", "target", "vendor", ".venv", "venv", ".tox"];

/// Folders of package managers, which nobody works in at all and which hold whole repositories of others.
const CACHES: &[&str] =
    &[".bun", ".bundle", ".cache", ".cargo", ".composer", ".gem", ".m2", ".npm", ".nuget", "pnpm", "pkg"];

/// A folder that may be written, and what is protected in it. Paths are below it.
#[derive(Debug, Default)]
pub(crate) struct Guarded {
    /// The folder.
    pub(crate) root: PathBuf,
    /// What is protected, whether it exists or not.
    pub(crate) names: Vec<PathBuf>,
    /// Whether folders below are left out: somebody fetched what is in them.
    pub(crate) is_cache: bool,
    /// Those of them that are in a folder of git's own.
    pub(crate) own: BTreeSet<PathBuf>,
    /// Folders of git's own that may be removed as a whole, such as those of worktrees.
    pub(crate) removable: Vec<PathBuf>,
}

/// What is protected when these folders may be written and the command starts in `folder`. Folders below others are
/// taken together with them: a command could give them another name.
pub(crate) fn guarded(write: &[PathBuf], folder: &Path) -> Vec<Guarded> {
    let home = Home::of_this_user();
    let is_outermost = |root: &&PathBuf| !write.iter().any(|other| *root != other && root.starts_with(other));
    let mut roots: Vec<&PathBuf> = write.iter().filter(is_outermost).collect();
    roots.sort();
    roots.dedup();
    let mut all: Vec<Guarded> = roots.into_iter().map(|root| below(root, write, folder, &home)).collect();
    let mut obeyed = Vec::new();
    for Guarded { root, names, .. } in &all {
        let mut present = Present::new(|folder| listed(&root.join(folder)));
        obeyed.extend(names.iter().filter(|name| present.may_be(name)).map(|name| root.join(name)));
    }
    let targets = links::targets(obeyed.iter().map(PathBuf::as_path));
    for guarded in &mut all {
        guarded.add(targets.iter().filter(|target| !folder.starts_with(target)).cloned());
        guarded.names.sort();
        guarded.names.dedup();
    }
    all
}

/// The same without what a profile names itself.
pub(crate) fn unless_named(mut all: Vec<Guarded>, named: &[PathBuf]) -> Vec<Guarded> {
    for Guarded { root, names, .. } in &mut all {
        names.retain(|name| !named.contains(&root.join(name)));
    }
    all
}

fn below(root: &Path, write: &[PathBuf], folder: &Path, home: &Home) -> Guarded {
    let is_cache =
        root.iter().any(|part| CACHES.iter().any(|known| part == *known)) && !folder.starts_with(root);
    let mut guarded = Guarded { root: root.to_owned(), is_cache, ..Guarded::default() };
    let inside = |path: &&Path| path.starts_with(root);
    let starts = folder.ancestors().take_while(inside);
    let mut places: Vec<&Path> = write.iter().map(PathBuf::as_path).filter(inside).chain(starts).collect();
    places.sort();
    places.dedup();
    for place in places {
        let Ok(shown) = place.strip_prefix(root) else { continue };
        guarded.names.extend(AT_HOME.iter().chain(ANYWHERE).map(|name| shown.join(name)));
        guarded.add(home.obeyed_besides(place));
        guarded.repository(place, &place.join(GIT), home);
        if git::is_own_folder(place) {
            guarded.repository(place, place, home);
        }
    }
    guarded
}

fn listed(folder: &Path) -> Listed {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Listed::Absent;
        }
        Err(_) => return Listed::Unknown,
    };
    match entries.map(|entry| entry.map(|entry| entry.file_name())).collect::<Result<Vec<_>, _>>() {
        Ok(names) => Listed::of(names.iter().map(|name| name.as_encoded_bytes())),
        Err(_) => Listed::Unknown,
    }
}

impl Guarded {
    /// What git obeys in one of its folders, and in those of submodules and worktrees below it.
    fn repository(&mut self, top: &Path, own: &Path, home: &Home) {
        let submodules = git::submodules(own);
        for folder in std::iter::once(own).chain(submodules.iter().map(PathBuf::as_path)) {
            self.add_own(folder);
            for settings in git::SETTINGS {
                self.add(git::obeyed_besides(&folder.join(settings), top, home));
            }
        }
        for folder in git::worktrees(own) {
            self.add_own(&folder);
            self.removable.extend(folder.strip_prefix(&self.root).map(Path::to_owned));
        }
    }

    fn add_own(&mut self, folder: &Path) {
        let names = git::OBEYED.iter().map(|name| folder.join(name));
        let shown = names.filter_map(|path| path.strip_prefix(&self.root).ok().map(Path::to_owned));
        let shown: Vec<PathBuf> = shown.collect();
        self.own.extend(shown.iter().cloned());
        self.names.extend(shown);
    }

    /// Adds what lies below the root.
    fn add(&mut self, paths: impl IntoIterator<Item = PathBuf>) {
        for path in paths {
            match path.strip_prefix(&self.root) {
                Ok(shown) if !shown.as_os_str().is_empty() => self.names.push(shown.to_owned()),
                // It cannot be written; or it is the folder itself, and then nothing in it could be.
                _ => {}
            }
        }
    }
}

/// Whether something at this path is protected wherever its folder lies.
pub(crate) fn is_protected(path: &Path) -> bool {
    let ends = |name: &&str| path.ends_with(name);
    AT_HOME.iter().chain(ANYWHERE).any(ends)
        || git::OBEYED.iter().any(|name| path.ends_with(Path::new(GIT).join(name)))
}

/// What is protected in a folder below another one, where the name of an entry is the first part of it.
pub(crate) fn anywhere(folder: &Path, entry: &str) -> Vec<&'static str> {
    let is_it = |first: &&str| first.eq_ignore_ascii_case(entry);
    let is_dependency = || folder.iter().any(|part| DEPENDENCIES.iter().any(|known| part == *known));
    // Every file of a project comes by here.
    if !FIRST_PARTS.iter().any(is_it) || is_dependency() {
        return Vec::new();
    }
    ANYWHERE.iter().copied().filter(|name| is_it(&first_part(name))).collect()
}

fn first_part(name: &str) -> &str {
    name.split_once('/').map_or(name, |(first, _)| first)
}

static FIRST_PARTS: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let mut all: Vec<&'static str> = ANYWHERE.iter().copied().map(first_part).collect();
    all.sort_unstable();
    all.dedup();
    all
});

#[cfg(test)]
mod tests {
    use super::*;

    fn has(guarded: &Guarded, name: &str) -> bool {
        guarded.names.contains(&PathBuf::from(name))
    }

    #[test]
    fn what_is_between_the_folder_and_the_start_is_protected_too() {
        let all = guarded(&[PathBuf::from("/w"), PathBuf::from("/w/out")], Path::new("/w/a/b"));
        assert_eq!(all.len(), 1);
        for name in [".git/hooks", "a/.envrc", "a/b/.bashrc", "out/.git/config", "CLAUDE.md"] {
            assert!(has(&all[0], name), "{name}");
        }
        assert!(!has(&all[0], "a/b/c/.envrc"));
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
        for place in [".", "modules/libs/sub"] {
            std::fs::create_dir_all(folder.path().join(place).join("objects")).unwrap();
            std::fs::write(folder.path().join(place).join("HEAD"), "").unwrap();
        }
        std::fs::create_dir_all(folder.path().join("worktrees/one")).unwrap();
        std::fs::write(folder.path().join("config"), "[core]\nhooksPath = mine\n").unwrap();
        let all = guarded(&[folder.path().to_owned()], folder.path());
        for name in
            ["hooks", "config", "commondir", "modules/libs/sub/hooks", "worktrees/one/commondir", "mine"]
        {
            assert!(has(&all[0], name), "{name}");
        }
        assert_eq!(all[0].removable, [PathBuf::from("worktrees/one")]);
    }

    #[test]
    fn nobody_looks_below_a_cache_unless_the_command_starts_there() {
        let write = [PathBuf::from("/h/.cargo/registry"), PathBuf::from("/h/code")];
        let caches = |start: &str| {
            guarded(&write, Path::new(start)).iter().map(|all| all.is_cache).collect::<Vec<_>>()
        };
        assert_eq!(caches("/h/code/x"), [true, false]);
        assert_eq!(caches("/h/.cargo/registry/src"), [false, false]);
    }

    #[test]
    fn names_of_agents_and_editors_count_in_every_folder() {
        for name in ["opencode.jsonc", ".roomodes", ".rules", "QWEN.md", ".trae", "mise.toml", ".lvimrc"] {
            assert_eq!(anywhere(Path::new("packages/one"), name), [name]);
        }
        for (folder, name) in [
            (".opencode", ".opencode/plugins"),
            (".opencode", ".opencode/tools"),
            (".cursor", ".cursor/skills"),
            (".github", ".github/skills"),
            (".codex", ".codex/agents"),
        ] {
            assert!(anywhere(Path::new("a"), folder).contains(&name), "{name}");
        }
    }

    #[test]
    fn among_dependencies_only_repositories_count() {
        let names = |folder: &str| anywhere(Path::new(folder), "claude.MD");
        assert_eq!(names("packages/one"), ["CLAUDE.md"]);
        assert!(names("node_modules/x").is_empty());
    }
}
