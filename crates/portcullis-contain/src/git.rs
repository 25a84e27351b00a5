//! What git runs because a file says so: hooks, settings, and files that settings include.
//!
//! Settings are read here for two questions: which other files do they make git obey, and is nothing in them that makes
//! git run a program. The second has a strict reader: what it does not know is not harmless.

mod following;

use std::path::{Component, Path, PathBuf};

pub(crate) use following::is_only_that as changes_only_what_branches_follow;

/// What git runs or obeys in a folder of its own.
pub(crate) const OBEYED: &[&str] = &["hooks", "config", "config.worktree", "commondir"];

/// Those of them that are settings.
pub(crate) const SETTINGS: &[&str] = &["config", "config.worktree"];

/// Most bytes of settings that are read.
pub(crate) const SETTINGS_BYTES_MAX: u64 = 256 << 10;
/// Most files that are followed from one file of settings.
const INCLUDED_MAX: usize = 32;
/// Folders of submodules and worktrees that are looked into, in all.
const FOLDERS_MAX: usize = 4096;
/// How deep submodules lie: their names have slashes.
const DEPTH_MAX: usize = 12;

/// Sections and keys of settings that make git run nothing. `*` stands for any name of a part.
const HARMLESS: &[(&str, &[&str])] = &[
    (
        "core",
        &[
            "repositoryformatversion",
            "filemode",
            "bare",
            "logallrefupdates",
            "ignorecase",
            "precomposeunicode",
            "symlinks",
            "autocrlf",
            "worktree",
            "sharedrepository",
        ],
    ),
    ("extensions", &["objectformat", "refstorage"]),
    ("init", &["defaultbranch"]),
    ("user", &["name", "email"]),
    ("remote", &["url", "fetch", "pushurl", "tagopt"]),
    ("branch", &["remote", "merge", "rebase", "description"]),
    ("submodule", &["url", "active", "branch"]),
    ("commit", &["gpgsign"]),
    ("gc", &["auto"]),
    ("pull", &["rebase", "ff"]),
];

/// Whether settings make git run nothing and obey no other file.
pub(crate) fn is_harmless(settings: &str) -> bool {
    let mut section = String::new();
    settings.lines().all(|line| {
        if line.chars().any(|c| c.is_control() && c != '\t') || line.ends_with('\\') {
            return false;
        }
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            return true;
        }
        if let Some(rest) = line.strip_prefix('[') {
            let name = rest.strip_suffix(']').and_then(section_name);
            section = name.unwrap_or_default();
            return !section.is_empty();
        }
        let key = line.split_once('=').map_or(line, |(key, _)| key).trim().to_ascii_lowercase();
        HARMLESS.iter().any(|(known, keys)| *known == section && keys.contains(&key.as_str()))
    })
}

/// The name of a section without that of its part: `remote` of `remote "origin"`.
fn section_name(header: &str) -> Option<String> {
    let (name, part) = header.split_once(char::is_whitespace).unwrap_or((header, "\"\""));
    let part = part.trim().strip_prefix('"')?.strip_suffix('"')?;
    let plain = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    (plain && !part.contains(['"', '\\', ']'])).then(|| name.to_ascii_lowercase())
}

/// Other files that git obeys because of the settings at a path: those that they include, and a folder of hooks.
/// `top` is where relative paths of hooks start.
pub(crate) fn obeyed_besides(settings: &Path, top: &Path, home: &Home) -> Vec<PathBuf> {
    let (mut found, mut files) = (Vec::new(), vec![settings.to_owned()]);
    let mut next = 0;
    while let Some(file) = files.get(next).cloned() {
        next += 1;
        let within = file.parent().unwrap_or(top);
        for (section, key, value) in values(&read(&file)) {
            match (section.as_str(), key.as_str()) {
                ("include" | "includeif", "path") => {
                    let Some(included) = home.path(within, &value) else { continue };
                    if files.len() <= INCLUDED_MAX && !files.contains(&included) {
                        files.push(included.clone());
                        found.push(included);
                    }
                }
                ("core", "hookspath") => found.extend(home.path(top, &value).map(|hooks| run(hooks, top))),
                _ => {}
            }
        }
    }
    found
}

/// The folder that hooks run from: husky's hooks in `.husky/_` run those of `.husky`.
fn run(hooks: PathBuf, top: &Path) -> PathBuf {
    match hooks.parent() {
        Some(above) if hooks.ends_with("_") && above != top && !top.starts_with(above) => above.to_owned(),
        _ => hooks,
    }
}

/// Section, key and value of each setting, with values as git reads them. It takes more for settings than git does:
/// a line that git would refuse does not end it.
fn values(settings: &str) -> Vec<(String, String, String)> {
    let (mut section, mut all) = (String::new(), Vec::new());
    let mut rest = settings.strip_prefix('\u{feff}').unwrap_or(settings);
    while !rest.is_empty() {
        rest = rest.trim_start();
        if let Some((header, after)) = rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            let name = header.split(|c: char| c.is_whitespace() || c == '.').next().unwrap_or(header);
            section = name.to_ascii_lowercase();
            rest = after;
            continue;
        }
        let end = rest.find(['=', '\n', '#', ';']).unwrap_or(rest.len());
        let (key, after) = rest.split_at_checked(end).unwrap_or((rest, ""));
        if let Some(after) = after.strip_prefix('=') {
            let (value, after) = value(after);
            all.push((section.clone(), key.trim().to_ascii_lowercase(), value));
            rest = after;
        } else {
            rest = after.split_once('\n').map_or("", |(_, next)| next);
        }
    }
    all
}

/// A value, up to a comment or the end of its line, and what follows: `git-config(1)`, *Syntax*.
fn value(text: &str) -> (String, &str) {
    let (mut value, mut blanks) = (String::new(), String::new());
    let mut is_quoted = false;
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        let taken = match letter {
            '\n' => break,
            '\r' if letters.as_str().starts_with('\n') => continue,
            '#' | ';' if !is_quoted => {
                return (value, letters.as_str().split_once('\n').map_or("", |(_, next)| next));
            }
            '"' => {
                is_quoted = !is_quoted;
                continue;
            }
            '\\' => match letters.next() {
                None | Some('\n') => continue,
                Some('n') => '\n',
                Some('t') => '\t',
                Some(other) => other,
            },
            blank if blank.is_whitespace() && !is_quoted => {
                // Those in the middle count, those around the value do not.
                if !value.is_empty() {
                    blanks.push(blank);
                }
                continue;
            }
            other => other,
        };
        value.push_str(&blanks);
        blanks.clear();
        value.push(taken);
    }
    (value, letters.as_str())
}

/// Where the settings are that git obeys in every repository, and the home folder that `~/` stands for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Home {
    folder: Option<PathBuf>,
    settings: Vec<PathBuf>,
}

impl Home {
    /// Those of whoever runs this.
    pub(crate) fn of_this_user() -> Self {
        let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let mut home = Self::at(named("HOME"), named("XDG_CONFIG_HOME"));
        home.settings.push(PathBuf::from("/etc/gitconfig"));
        home.settings.extend(["GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"].into_iter().filter_map(named));
        home
    }

    /// Those of a home folder.
    pub(crate) fn at(folder: Option<PathBuf>, config: Option<PathBuf>) -> Self {
        let config = config.or_else(|| Some(folder.as_ref()?.join(".config")));
        let own = folder.iter().map(|folder| folder.join(".gitconfig"));
        let settings = own.chain(config.map(|config| config.join("git/config"))).collect();
        Self { folder, settings }
    }

    /// Other files that git obeys in a repository because of these settings.
    pub(crate) fn obeyed_besides(&self, top: &Path) -> Vec<PathBuf> {
        self.settings.iter().flat_map(|settings| obeyed_besides(settings, top, self)).collect()
    }

    /// A path as settings write it, below the folder that relative ones start in.
    fn path(&self, within: &Path, value: &str) -> Option<PathBuf> {
        match value.strip_prefix('~') {
            // The home of another user.
            Some(rest) if !rest.starts_with('/') => None,
            Some(rest) => Some(plain(&self.folder.as_ref()?.join(rest.trim_start_matches('/')))),
            None => (!value.is_empty()).then(|| plain(&within.join(value))),
        }
    }
}

fn read(path: &Path) -> String {
    let is_small = |path: &Path| {
        std::fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.len() <= SETTINGS_BYTES_MAX)
    };
    let text = is_small(path).then(|| std::fs::read(path).unwrap_or_default());
    String::from_utf8_lossy(&text.unwrap_or_default()).into_owned()
}

/// Without `.` and `..`, by its text alone.
pub(crate) fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain
}

/// Whether a folder is one of git's own.
pub(crate) fn is_own_folder(folder: &Path) -> bool {
    folder.join("HEAD").is_file() && (folder.join("objects").is_dir() || folder.join("commondir").is_file())
}

/// The folders of the submodules of a repository, theirs included, below a folder of git's own.
pub(crate) fn submodules(git: &Path) -> Vec<PathBuf> {
    let (mut found, mut left) = (Vec::new(), FOLDERS_MAX);
    collect(&git.join("modules"), DEPTH_MAX, &mut left, &mut found);
    found
}

fn collect(folder: &Path, depth: usize, left: &mut usize, found: &mut Vec<PathBuf>) {
    let Some(depth) = depth.checked_sub(1) else { return };
    for entry in folders(folder) {
        let Some(fewer) = left.checked_sub(1) else { return };
        *left = fewer;
        if is_own_folder(&entry) {
            collect(&entry.join("modules"), depth, left, found);
            found.push(entry);
        } else {
            collect(&entry, depth, left, found);
        }
    }
}

/// The folders that a repository keeps for its worktrees.
pub(crate) fn worktrees(git: &Path) -> Vec<PathBuf> {
    folders(&git.join("worktrees")).into_iter().take(FOLDERS_MAX).collect()
}

fn folders(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let is_folder = |entry: &std::fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    entries.filter(is_folder).map(|entry| entry.path()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_run_nothing_are_told_from_others() {
        let made = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n[remote \"origin\"]\n\turl = https://x/y\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n[branch \"a/b\"]\n\tmerge = refs/heads/b\n";
        assert!(is_harmless(made) && is_harmless("# x\n\n[user]\nname = A B\n"));
        for harmful in [
            "[core]\nfsmonitor = ./x",
            "[core] fsmonitor = ./x",
            "[core]\nbare = false\n[include]\npath = x",
            "[includeIf \"gitdir:/\"]\npath = x",
            "[remote \"a\"]\nuploadpack = x",
            "[core]\nbare = a\\\nfsmonitor=x",
            "[CORE]\nFSMonitor=x",
            "bare = true",
            "[remote.origin]\nurl = x",
            "[core]\nbare = false\u{b}",
            "[core\nbare = false",
        ] {
            assert!(!is_harmless(harmful), "{harmful}");
        }
    }

    #[test]
    fn files_that_settings_make_git_obey_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at(".git")).unwrap();
        std::fs::write(at(".git/config"), "[core]\n hooksPath = .husky/_\n[include] path = ../shared\n")
            .unwrap();
        std::fs::write(at("shared"), "[includeIf \"onbranch:x\"]\npath = \"more\"\n[include]\npath=shared\n")
            .unwrap();
        let found = obeyed_besides(&at(".git/config"), folder.path(), &Home::default());
        assert_eq!(found, [at(".husky"), at("shared"), at("more")]);
    }

    #[test]
    fn values_are_read_as_git_reads_them() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config");
        for text in [
            "[core]\n\thooksPath = .githooks # team\n",
            "[core] hooksPath=.githooks;shared",
            "[core]\r\n  hookspath =  \".githooks\"  \r\n",
            "[core]\nhooksPath = .git\\\nhooks\n",
            "[core]\nhooksPath = .gi\"thoo\"ks ; x = \"y\n",
            "; [a]\n[core] # x\nx = \"a # b\"\n\nhooksPath = .githooks",
            "\u{feff}[user]name = a \\\" b\n[core]bare\nhooksPath = .githooks",
        ] {
            fs_write(&file, text);
            let git = std::process::Command::new("git")
                .args(["config", "--file", file.to_str().unwrap(), "core.hooksPath"])
                .output()
                .unwrap();
            assert_eq!(git.stdout, b".githooks\n", "{text:?}");
            let read = values(text).into_iter().find(|(_, key, _)| key == "hookspath");
            assert_eq!(read.unwrap().2, ".githooks", "{text:?}");
        }
        for (text, value) in [("a = \"x # y\" z", "x # y z"), ("a = x  y # z", "x  y"), ("a = \\\"x", "\"x")]
        {
            assert_eq!(values(text)[0].2, value, "{text:?}");
        }
    }

    #[test]
    fn settings_of_the_user_are_obeyed_in_every_repository() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir_all(at("home/.config/git")).unwrap();
        fs_write(
            &at("home/.gitconfig"),
            "[core]\nhooksPath = .githooks # ours\n[include]\npath = ~/work/shared",
        );
        fs_write(&at("home/.config/git/config"), "[include]\npath = more\n[core]\nhooksPath = ~other/x");
        let home = Home::at(Some(at("home")), None);
        let found = home.obeyed_besides(&at("project"));
        assert_eq!(found, [at("project/.githooks"), at("home/work/shared"), at("home/.config/git/more")]);
        let elsewhere = Home::at(Some(at("home")), Some(at("none")));
        assert_eq!(elsewhere.obeyed_besides(&at("project")).len(), 2);
    }

    fn fs_write(path: &Path, text: &str) {
        std::fs::write(path, text).unwrap();
    }

    #[test]
    fn submodules_with_slashes_in_their_names_and_below_others_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let git = folder.path();
        for name in ["modules/libs/a", "modules/libs/a/modules/b"] {
            std::fs::create_dir_all(git.join(name).join("objects")).unwrap();
            std::fs::write(git.join(name).join("HEAD"), "").unwrap();
        }
        let mut found = submodules(git);
        found.sort();
        assert_eq!(found, ["modules/libs/a", "modules/libs/a/modules/b"].map(|name| git.join(name)));
    }
}
