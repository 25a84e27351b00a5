//! What is obeyed under another name: where links lead, and repositories that are not called `.git`.

use super::*;
use std::os::unix::fs::symlink;

const EVIL: &str = "[core]\n\tfsmonitor = ./evil\n";
const PLAIN: &str = "[core]\n\tbare = true\n";

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// A folder of git's own.
fn repository(at: &Path, settings: &str) {
    for name in ["objects", "refs/heads", "hooks"] {
        fs::create_dir_all(at.join(name)).unwrap();
    }
    write(&at.join("HEAD"), "ref: refs/heads/main\n");
    write(&at.join("config"), settings);
}

fn project() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    repository(&root.join(".git"), PLAIN);
    (folder, root)
}

/// What was put back after a change, by the names of things.
fn put_back(root: &Path, change: impl FnOnce(&dyn Fn(&str) -> PathBuf)) -> Vec<String> {
    let keep = kept(root);
    change(&|name| root.join(name));
    let done = keep.put_back(&Work::default());
    let failed: Vec<_> = done.iter().filter(|one| matches!(one.how, PutBackHow::Failed(_))).collect();
    assert!(failed.is_empty(), "{failed:?}");
    let mut names: Vec<String> =
        done.iter().map(|one| one.path.strip_prefix(root).unwrap().display().to_string()).collect();
    names.sort();
    names
}

#[test]
fn where_links_lead_is_protected_too() {
    let (_folder, root) = project();
    let at = |name: &str| root.join(name);
    for name in ["tools/check", "config/agent.json", "docs/rules.md", "skills/one/SKILL.md", "sub/x"] {
        write(&at(name), "old");
    }
    fs::create_dir_all(at(".claude/skills")).unwrap();
    for (target, link) in [
        ("../../by-the-way", ".git/hooks/pre-commit"),
        ("tools/check", "by-the-way"),
        ("../config/agent.json", ".claude/settings.json"),
        ("../../skills/one", ".claude/skills/one"),
        ("../config/absent.json", ".claude/settings.local.json"),
        ("../docs/rules.md", "sub/CLAUDE.md"),
    ] {
        symlink(target, at(link)).unwrap();
    }
    let done = put_back(&root, |at| {
        for name in
            ["tools/check", "config/agent.json", "docs/rules.md", "skills/one/SKILL.md", "skills/one/new"]
        {
            fs::write(at(name), "evil").unwrap();
        }
        fs::write(at("config/absent.json"), "evil").unwrap();
        fs::remove_file(at("by-the-way")).unwrap();
        symlink("evil", at("by-the-way")).unwrap();
        fs::write(at("config/other.json"), "work").unwrap();
        fs::write(at("sub/x"), "work").unwrap();
    });
    let expected = [
        "by-the-way",
        "config/absent.json",
        "config/agent.json",
        "docs/rules.md",
        "skills/one/SKILL.md",
        "skills/one/new",
        "tools/check",
    ];
    assert_eq!(done, expected);
    assert_eq!(fs::read_to_string(at("tools/check")).unwrap(), "old");
    assert_eq!(fs::read_link(at("by-the-way")).unwrap(), Path::new("tools/check"));
}

#[test]
fn a_new_repository_that_makes_git_run_something_is_none_afterwards() {
    let (_folder, root) = project();
    write(&root.join("src/hooks/use.js"), "work");
    let done = put_back(&root, |at| {
        repository(&at("docs"), EVIL);
        repository(&at("plain.git"), PLAIN);
        repository(&at(".git/modules/planted"), EVIL);
        repository(&at(".git/modules/a/b"), PLAIN);
        repository(&at("hooked"), PLAIN);
        write(&at("hooked/hooks/post-checkout"), "evil");
        // A folder of the project's own: only what makes it a repository goes.
        repository(&at("src"), PLAIN);
        // A worktree of something else.
        write(&at("tree/HEAD"), "x");
        write(&at("tree/commondir"), "../docs");
        // One of this one.
        write(&at(".git/worktrees/w/HEAD"), "x");
        write(&at(".git/worktrees/w/commondir"), "../..\n");
    });
    assert_eq!(done, [".git/modules/planted/HEAD", "docs/HEAD", "hooked/HEAD", "src/HEAD", "tree/HEAD"]);
    assert!(root.join("docs/HEAD.contained-1").exists() && root.join("src/hooks/use.js").exists());
    assert!(root.join("plain.git/HEAD").exists() && root.join(".git/worktrees/w/HEAD").exists());
}

#[test]
fn repositories_below_keep_their_hooks_and_settings() {
    let (_folder, root) = project();
    repository(&root.join("store.git"), PLAIN);
    repository(&root.join("sub/.git"), "[core]\n\thooksPath = .hooks\n");
    repository(&root.join("sub/.git/modules/deep"), PLAIN);
    write(&root.join("sub/.hooks/pre-commit"), "old");
    let done = put_back(&root, |at| {
        write(&at("store.git/hooks/post-receive"), "evil");
        write(&at("store.git/config"), EVIL);
        write(&at("store.git/commondir"), "../evil");
        write(&at("store.git/refs/heads/main"), "work");
        write(&at("sub/.hooks/pre-commit"), "evil");
        write(&at("sub/.git/modules/deep/config"), EVIL);
    });
    let expected = [
        "store.git/commondir",
        "store.git/config",
        "store.git/hooks/post-receive",
        "sub/.git/modules/deep/config",
        "sub/.hooks/pre-commit",
    ];
    assert_eq!(done, expected);
    assert_eq!(fs::read_to_string(root.join("store.git/config")).unwrap(), PLAIN);
    // It can be removed as a whole, and moved.
    let done = put_back(&root, |at| {
        fs::rename(at("store.git"), at("moved.git")).unwrap();
        fs::remove_dir_all(at("sub")).unwrap();
    });
    assert_eq!(done, [] as [&str; 0]);
}
