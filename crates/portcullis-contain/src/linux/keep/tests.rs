//! What a command changed, and what is there afterwards.

mod elsewhere;

use super::*;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

fn kept(folder: &Path) -> Keep {
    Keep::new(crate::protected::guarded(&[folder.to_owned()], folder)).unwrap()
}

#[test]
fn changed_files_get_their_content_and_new_ones_another_name() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir_all(at(".git/hooks")).unwrap();
    fs::write(at(".git/config"), "old").unwrap();
    fs::write(at(".git/hooks/pre-push"), "old").unwrap();
    let keep = kept(folder.path());
    fs::write(at(".git/config"), "new").unwrap();
    fs::remove_file(at(".git/hooks/pre-push")).unwrap();
    fs::write(at(".git/hooks/pre-commit"), "new").unwrap();
    fs::write(at(".envrc"), "new").unwrap();
    fs::write(at("harmless"), "new").unwrap();
    let done = keep.put_back(&Work::default());
    assert_eq!(done.len(), 4, "{done:?}");
    assert_eq!(fs::read_to_string(at(".git/config")).unwrap(), "old");
    assert_eq!(fs::read_to_string(at(".git/hooks/pre-push")).unwrap(), "old");
    assert!(!at(".git/hooks/pre-commit").exists() && !at(".envrc").exists() && at("harmless").exists());
    assert_eq!(fs::read_to_string(at(".envrc.contained-1")).unwrap(), "new");
}

#[test]
fn nothing_is_written_through_a_link_in_the_way() {
    let (folder, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::create_dir(folder.path().join(".git")).unwrap();
    fs::write(folder.path().join(".git/config"), "old").unwrap();
    let keep = kept(folder.path());
    fs::rename(folder.path().join(".git"), folder.path().join("moved")).unwrap();
    fs::write(outside.path().join("config"), "theirs").unwrap();
    std::os::unix::fs::symlink(outside.path(), folder.path().join(".git")).unwrap();
    let done = keep.put_back(&Work::default());
    assert!(!done.iter().any(|one| matches!(one.how, PutBackHow::Failed(_))), "{done:?}");
    assert_eq!(fs::read_to_string(outside.path().join("config")).unwrap(), "theirs");
    assert_eq!(fs::read_to_string(folder.path().join(".git/config")).unwrap(), "old");
    assert!(folder.path().join(".git.contained-1").is_symlink());
}

#[test]
fn the_file_that_leads_to_a_worktrees_folder_is_protected() {
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join(".git");
    fs::write(&link, "gitdir: elsewhere").unwrap();
    let keep = kept(folder.path());
    assert_eq!(keep.existing(Git::Held).0, std::slice::from_ref(&link));
    fs::remove_file(&link).unwrap();
    fs::create_dir_all(link.join("hooks")).unwrap();
    keep.put_back(&Work::default());
    assert_eq!(fs::read_to_string(&link).unwrap(), "gitdir: elsewhere");
}

#[test]
fn what_was_not_touched_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("AGENTS.md"), "text").unwrap();
    let (shut, pinned) = kept(folder.path()).existing(Git::Held);
    assert_eq!((shut, pinned.len()), (vec![folder.path().join("AGENTS.md")], 0));
    assert_eq!(kept(folder.path()).put_back(&Work::default()), []);
}

/// What became of things in a folder with a hook, of which a command did something.
fn after(before: &[&str], change: impl Fn(&Path)) -> (tempfile::TempDir, Vec<PutBack>) {
    let folder = tempfile::tempdir().unwrap();
    for name in before {
        fs::create_dir_all(folder.path().join(name).parent().unwrap()).unwrap();
        fs::write(folder.path().join(name), "old").unwrap();
    }
    let keep = kept(folder.path());
    change(folder.path());
    let done = as_owner(|| keep.put_back(&Work::default()));
    assert!(!done.iter().any(|one| matches!(one.how, PutBackHow::Failed(_))), "{done:?}");
    (folder, done)
}

/// Does something without the rights that root has over every file.
fn as_owner<T>(what: impl FnOnce() -> T) -> T {
    let had = rustix::thread::capabilities(None).unwrap();
    let mut fewer = had;
    fewer.effective = rustix::thread::CapabilitySet::empty();
    rustix::thread::set_capabilities(None, fewer).unwrap();
    let done = what();
    rustix::thread::set_capabilities(None, had).unwrap();
    done
}

#[test]
fn more_than_can_be_looked_at_hides_nothing() {
    let (folder, _) = after(&[".git/hooks/pre-push"], |at| {
        fs::create_dir_all(at.join(".git/hooks").join(["d"; 40].join("/"))).unwrap();
        fs::write(at.join(".git/hooks/pre-commit"), "new").unwrap();
        fs::write(at.join(".envrc"), "new").unwrap();
    });
    let hooks = fs::read_dir(folder.path().join(".git/hooks")).unwrap().count();
    assert!(hooks == 1 && !folder.path().join(".envrc").exists());
}

#[test]
fn rights_that_were_taken_away_hide_nothing() {
    let (folder, done) = after(&[".git/hooks/pre-push", "sub/x"], |at| {
        fs::write(at.join(".git/hooks/pre-commit"), "new").unwrap();
        set(&at.join(".git/hooks"), 0o500);
        set(&at.join(".git"), 0o500);
        fs::write(at.join("sub/.envrc"), "new").unwrap();
        set(&at.join("sub"), 0o700);
    });
    assert!(!folder.path().join(".git/hooks/pre-commit").exists(), "{done:?}");
    assert!(!folder.path().join("sub/.envrc").exists(), "{done:?}");
}

fn set(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn rights_that_were_taken_from_the_folder_itself_hide_nothing() {
    for mode in [0o300, 0o400, 0o500, 0] {
        let (folder, done) = after(&["sub/CLAUDE.md", ".git/config"], |at| {
            fs::write(at.join("sub/CLAUDE.md"), "new").unwrap();
            fs::write(at.join(".git/config"), "new").unwrap();
            fs::write(at.join(".envrc"), "new").unwrap();
            fs::create_dir(at.join("sub/.git")).unwrap();
            fs::write(at.join("sub/.git/config"), "[core]\nfsmonitor = evil\n").unwrap();
            set(at, mode);
        });
        assert_eq!(fs::metadata(folder.path()).unwrap().permissions().mode() & 0o777, mode);
        let text = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
        assert_eq!((text("sub/CLAUDE.md"), text(".git/config")), ("old".to_owned(), "old".to_owned()));
        assert!(!folder.path().join(".envrc").exists() && !folder.path().join("sub/.git").exists());
        assert_eq!(done.len(), 4, "{mode:o}: {done:?}");
    }
}

#[test]
fn rights_that_were_taken_from_folders_below_hide_nothing() {
    let before = ["a/CLAUDE.md", "b/.git/config", "b/.git/HEAD", "c/.claude/CLAUDE.md", "d/x"];
    for mode in [0o300, 0o400, 0o500, 0] {
        let (folder, done) = after(&before, |at| {
            for name in ["a/CLAUDE.md", "b/.git/config", "c/.claude/CLAUDE.md", "d/CLAUDE.md"] {
                fs::write(at.join(name), "new").unwrap();
            }
            fs::create_dir_all(at.join("d/e/.claude")).unwrap();
            fs::write(at.join("d/e/.claude/settings.json"), "new").unwrap();
            for name in ["a", "b/.git", "c/.claude", "d/e/.claude", "d/e", "d"] {
                set(&at.join(name), mode);
            }
        });
        let text = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
        for name in ["a/CLAUDE.md", "b/.git/config", "c/.claude/CLAUDE.md"] {
            assert_eq!(text(name), "old", "{mode:o}: {done:?}");
        }
        assert!(!folder.path().join("d/CLAUDE.md").exists(), "{mode:o}: {done:?}");
        assert!(!folder.path().join("d/e/.claude/settings.json").exists(), "{mode:o}: {done:?}");
        let mode_of =
            |name: &str| fs::metadata(folder.path().join(name)).unwrap().permissions().mode() & 0o777;
        assert_eq!([mode_of("a"), mode_of("d"), mode_of("d/e")], [mode; 3]);
    }
}

#[test]
fn rights_that_an_owner_did_not_have_are_not_told_nor_given() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir_all(at("sub/.git")).unwrap();
    fs::create_dir_all(at(".git/hooks")).unwrap();
    fs::write(at("sub/.git/config"), "old").unwrap();
    fs::write(at(".git/hooks/pre-push"), "old").unwrap();
    let shut = [(".git/hooks", 0o500), (".git", 0o500), ("sub/.git", 0o400), ("sub", 0), ("", 0o300)];
    shut.iter().for_each(|(name, mode)| set(&at(name), *mode));
    assert_eq!(as_owner(|| kept(folder.path()).put_back(&Work::default())), []);
    let mode_of = |name: &str| fs::metadata(at(name)).unwrap().permissions().mode() & 0o777;
    shut.iter().for_each(|(name, mode)| assert_eq!(mode_of(name), *mode, "{name}"));
}

#[test]
fn paths_that_are_longer_than_the_kernel_takes_hide_nothing() {
    let long = "x".repeat(200);
    let open_last = |at: &Path| {
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let first = rustix::fs::open(at, flags, Mode::empty()).unwrap();
        (0..22).fold(first, |above, _| rustix::fs::openat(above, &long, flags, Mode::empty()).unwrap())
    };
    let (folder, done) = after(&[], |at| {
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let mut above = rustix::fs::open(at, flags, Mode::empty()).unwrap();
        for _ in 0..22 {
            rustix::fs::mkdirat(&above, &long, Mode::from_raw_mode(0o755)).unwrap();
            above = rustix::fs::openat(&above, &long, flags, Mode::empty()).unwrap();
        }
        let flags = OFlags::CREATE | OFlags::WRONLY;
        rustix::fs::openat(&above, "CLAUDE.md", flags, Mode::from_raw_mode(0o600)).unwrap();
    });
    let last = open_last(folder.path());
    let is_there = |name: &str| rustix::fs::statat(&last, name, rustix::fs::AtFlags::empty()).is_ok();
    assert!(!is_there("CLAUDE.md") && is_there("CLAUDE.md.contained-1"), "{done:?}");
}

#[test]
fn names_that_are_taken_or_long_hide_nothing() {
    let long = format!(".claude/commands/{}.md", "x".repeat(250));
    let (folder, _) = after(&[".claude/commands/old.md"], |at| {
        for number in 1..=2000 {
            fs::write(at.join(format!(".envrc.contained-{number}")), "").unwrap();
        }
        fs::write(at.join(".envrc"), "new").unwrap();
        fs::write(at.join(&long), "new").unwrap();
        fs::create_dir_all(at.join(".claude/skills/evil")).unwrap();
    });
    assert!(!folder.path().join(".envrc").exists() && !folder.path().join(&long).exists());
    assert!(!folder.path().join(".claude/skills").exists());
    assert_eq!(fs::read_dir(folder.path().join(".claude/commands")).unwrap().count(), 1);
}

#[test]
fn what_is_obeyed_in_folders_below_is_put_back_unless_they_are_gone() {
    let (folder, done) = after(&["a/CLAUDE.md", "b/AGENTS.md", "c/.git/config", "c/.git/HEAD"], |at| {
        fs::remove_dir_all(at.join("a")).unwrap();
        fs::write(at.join("b/AGENTS.md"), "new").unwrap();
        fs::write(at.join("b/.mcp.json"), "new").unwrap();
        fs::write(at.join("c/.git/config"), "new").unwrap();
        fs::create_dir_all(at.join("node_modules/d/.git")).unwrap();
        fs::write(at.join("node_modules/d/.git/config"), "[core]\nfsmonitor = evil\n").unwrap();
        fs::write(at.join("node_modules/d/CLAUDE.md"), "new").unwrap();
    });
    let text = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap_or_default();
    assert_eq!((text("b/AGENTS.md"), text("c/.git/config")), ("old".to_owned(), "old".to_owned()));
    assert!(!folder.path().join("a").exists() && !folder.path().join("b/.mcp.json").exists());
    assert!(!folder.path().join("node_modules/d/.git").exists(), "{done:?}");
    assert!(folder.path().join("node_modules/d/CLAUDE.md").exists());
}

#[test]
fn repositories_and_worktrees_that_run_nothing_are_left() {
    let git = |at: &Path, arguments: &[&str]| {
        let mut git = std::process::Command::new("git");
        git.current_dir(at).args(["-c", "user.name=a", "-c", "user.email=a@b"]).args(arguments);
        let status = git.env("GIT_CONFIG_GLOBAL", "/dev/null").stderr(std::process::Stdio::null()).status();
        assert!(status.unwrap().success(), "{arguments:?}");
    };
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().canonicalize().unwrap();
    let keep = kept(&at);
    git(&at, &["init", "-q", "."]);
    git(&at, &["commit", "-q", "--allow-empty", "-m", "x"]);
    git(&at, &["init", "-q", "inner"]);
    git(&at, &["worktree", "add", "-q", "tree"]);
    assert_eq!(keep.put_back(&Work::default()), []);
    let keep = kept(&at);
    git(&at, &["worktree", "remove", "tree"]);
    fs::create_dir(at.join("evil")).unwrap();
    fs::write(at.join("evil/.git"), "gitdir: ../elsewhere\n").unwrap();
    let done = keep.put_back(&Work::default());
    assert_eq!(done.len(), 1, "{done:?}");
    assert!(at.join("evil/.git.contained-1").exists());
}

#[test]
fn a_worktrees_folder_that_is_exchanged_for_a_link_is_put_back() {
    let (folder, done) = after(&[".git/HEAD", ".git/objects/x", ".git/worktrees/w/commondir"], |at| {
        fs::create_dir(at.join("evil")).unwrap();
        fs::write(at.join("evil/commondir"), "../evil").unwrap();
        fs::rename(at.join(".git/worktrees/w"), at.join("moved")).unwrap();
        std::os::unix::fs::symlink("../../evil", at.join(".git/worktrees/w")).unwrap();
    });
    let link = folder.path().join(".git/worktrees/w");
    assert!(!link.is_symlink() && link.join("commondir").exists(), "{done:?}");
    assert_eq!(fs::read_to_string(link.join("commondir")).unwrap(), "old");
}
