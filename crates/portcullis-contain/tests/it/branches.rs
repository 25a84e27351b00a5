//! Git under the profile that is made for it: its work gets done, and what it starts can do no more than other programs.

use std::fs;
use std::path::{Path, PathBuf};

use portcullis_contain::{Missing, Observed, Places, Profile, settle};
use portcullis_core::bundle::built_in_profile;

use super::day::{Day, are_there, text};

/// Hooks that run what is beside them in the project, as husky's do.
const HOOKS: &[&str] =
    &["pre-commit", "commit-msg", "post-commit", "post-checkout", "post-merge", "pre-rebase", "post-rewrite"];
const CALLS: &str = "#!/bin/sh\n[ ! -f .husky/${0##*/} ] || sh .husky/${0##*/} \"$@\"\n";

impl Day {
    /// The profile of git in the project.
    fn of_git(&self, remotes: &[&str]) -> Profile {
        let (project, home) = (self.project(), self.home());
        let places = Places { workspace: Some(&project), home: Some(&home), here: Some(&project) };
        let git = Profile {
            remotes: remotes.iter().map(|name| (*name).to_owned()).collect(),
            ..built_in_profile("git").unwrap().at(&places).unwrap()
        };
        settle(git, Some(&home), Missing::Refused).unwrap()
    }

    fn git_in(&self, folder: &Path, remotes: &[&str], script: &str) -> Observed {
        self.run_under(&self.of_git(remotes), folder, script)
    }

    /// Git's work: it succeeds, and nothing of it is put back.
    fn git(&self, remotes: &[&str], script: &str) {
        self.worked(script, &self.git_in(&self.project(), remotes, script));
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.project().join(name)).unwrap_or_default()
    }

    /// A project with instructions that differ between branches, hooks, and a bare repository that it came from.
    fn with_branches(&self) -> PathBuf {
        self.write(&[("file", "one\n"), ("AGENTS.md", "old\n"), (".vscode/settings.json", "{}\n")]);
        self.before(
            "git init -q; git add .; git commit -qm start
             ln -s AGENTS.md CLAUDE.md; git add .; git commit -qm link
             git checkout -qb other; echo new > AGENTS.md; git rm -q .vscode/settings.json; mkdir .claude
             echo '{}' > .claude/settings.json; git add .; git commit -qm other
             git checkout -q main; git clone -q --bare . ../bare; git remote add origin ../bare; git fetch -q
             git branch -q -u origin/main",
        );
        for hook in HOOKS {
            self.write(&[(&format!(".git/hooks/{hook}"), CALLS)]);
        }
        self.home().join("bare")
    }

    /// Somebody else commits to the bare repository.
    fn pushed_by_another(&self, script: &str) {
        self.before(&format!(
            "rm -rf ../another; git clone -q ../bare ../another; cd ../another; {script}
             git add -A; git commit -qm another; git push -q origin HEAD"
        ));
    }
}

#[test]
fn git_changes_branches_and_what_they_bring() {
    if !are_there(&["git"]) {
        return;
    }
    for day in Day::all() {
        day.with_branches();
        day.git(&[], "git checkout -q other");
        assert_eq!(
            (day.read("AGENTS.md").as_str(), day.read(".claude/settings.json").as_str()),
            ("new\n", "{}\n")
        );
        assert!(!day.project().join(".vscode/settings.json").exists(), "{}", day.who());
        day.git(&[], "git checkout -q -b tracking --track origin/main; git branch -m tracking followed");
        assert_eq!((day.read("AGENTS.md").as_str(), day.read("CLAUDE.md").as_str()), ("old\n", "old\n"));
        assert!(day.read(".git/config").contains("[branch \"followed\"]"));
        for script in [
            "git switch -q main; git branch -D followed; git branch -u origin/main",
            "git merge -q --no-edit other; git log --oneline -1; git reset -q --hard HEAD~1; git reset -q --hard @{1}",
            "git checkout -q HEAD~1; git checkout -q main -- AGENTS.md; git checkout -qf main",
            "git worktree add -q .w -b w; git -C .w status --short; test -f .w/AGENTS.md; git worktree remove .w; git branch -D w",
            "echo x >> file; git stash -q; git checkout -q other; git checkout -q -; git stash pop -q; git checkout -q file",
            "git rebase -q other; git cherry-pick --no-commit other 2>&1; git reset -q --hard",
        ] {
            day.git(&[], script);
        }
        assert!(!day.read(".git/config").contains("followed"));
    }
}

#[test]
fn git_fetches_and_pulls_from_where_the_project_came() {
    if !are_there(&["git"]) {
        return;
    }
    for day in Day::all() {
        day.with_branches();
        // Hooks run, and format what was brought; nothing is asked or undone.
        day.write(&[
            (".husky/post-merge", "sed -i s/one/two/ file\n"),
            (".husky/pre-commit", "git add file\n"),
        ]);
        day.pushed_by_another("echo newer > AGENTS.md; echo y > y");
        day.git(&["origin"], "git fetch -q; git log --oneline origin/main");
        day.git(&["origin"], "git pull -q; test -f y; git commit -qam 'as the hook formats it'");
        assert_eq!((day.read("AGENTS.md").as_str(), day.read("file").as_str()), ("newer\n", "two\n"));
        day.pushed_by_another("echo z > z; echo {} > .mcp.json");
        day.git(
            &["origin"],
            "git pull -q --rebase; test -f z; git fetch --all -q; git log --oneline | wc -l",
        );
        assert_eq!(day.read(".mcp.json"), "{}\n");
        assert!(!day.read(".git/config").contains("portcullis"));
    }
}

/// The program in place of `ssh` is outside of the project and says that it ran; the command itself cannot run it.
#[test]
fn what_is_reached_by_ssh_is_fetched_outside() {
    if !are_there(&["git"]) {
        return;
    }
    for day in Day::all() {
        let bare = day.with_branches();
        let said = day.home().join("said");
        let ssh = day.home().join("ssh");
        let script = format!(
            "#!/bin/sh\necho \"$@\" >> {}\nfor last; do :; done\ncd {}\nexec sh -c \"$last\"\n",
            said.display(),
            day.home().display()
        );
        day.write(&[("../ssh", &script)]);
        day.before(&format!(
            "git config core.sshCommand {}; git config ssh.variant ssh; git remote set-url origin git@h.example:bare
             git --git-dir {} update-ref refs/pull/7/head other; touch {} && chmod a+w {}",
            ssh.display(),
            bare.display(),
            said.display(),
            said.display()
        ));
        day.pushed_by_another("echo newer > AGENTS.md");
        day.git(
            &["origin"],
            "git pull -q; git fetch -q origin pull/7/head:proposed; git log --oneline proposed",
        );
        assert_eq!(day.read("AGENTS.md"), "newer\n", "{}", day.who());
        let told = fs::read_to_string(&said).unwrap();
        assert!(told.contains("git@h.example git-upload-pack 'bare'"), "{told}");
        day.pushed_by_another("echo x > x");
        day.git(&["origin"], "git commit -q --allow-empty -m mine; git pull -q --no-rebase --no-edit; git log -1 --format=%s > subject");
        assert_eq!(day.read("subject"), "Merge branch 'main' of h.example:bare\n");
        // Without a word of it in the profile nothing is fetched.
        let refused = day.git_in(&day.project(), &[], "git fetch");
        assert!(refused.ended.code() != 0, "{}: {}", day.who(), text(&refused.stderr));
    }
}

/// What a contained program leaves for hooks to call, and they do.
#[test]
fn what_git_starts_reaches_nothing_outside() {
    if !are_there(&["git"]) {
        return;
    }
    let evil = "echo ran >> ran
        echo evil > ../outside; echo evil > .git/hooks/pre-push; echo evil > .envrc; echo evil > AGENTS.md
        mkdir -p .claude; echo evil > .claude/settings.json; rm -f .vscode/settings.json; echo evil > .mcp.json
        printf '[core]\\nfsmonitor = ./evil\\n' >> .git/config; echo evil > .git/config.worktree
        printf '[branch \"x\"]\\nremote = ../elsewhere\\n' >> .git/config
        true";
    for day in Day::all() {
        day.with_branches();
        let put: String = HOOKS.iter().map(|hook| format!("cp evil .husky/{hook}; ")).collect();
        day.write(&[("evil", evil)]);
        let planted = day.run_in(&day.project(), &day.project(), &format!("mkdir -p .husky; {put}"));
        assert!(planted.ended.code() == 0 && planted.put_back.is_empty(), "{:?}", planted.put_back);
        day.pushed_by_another("echo x > x");
        let config = day.read(".git/config");
        for script in [
            "echo x >> file; git commit -qam x",
            "git checkout -q -b x",
            "git pull -q --no-rebase --no-edit origin main",
            "git rebase -q other",
        ] {
            let observed = day.git_in(&day.project(), &["origin"], script);
            let who = format!("{}: {script}: {}", day.who(), text(&observed.stderr));
            assert_eq!(
                fs::read_to_string(day.project().join("ran")).unwrap_or_default().lines().next(),
                Some("ran"),
                "{who}"
            );
            fs::remove_file(day.project().join("ran")).unwrap();
            assert!(!day.home().join("outside").exists(), "{who}");
            for absent in [
                ".envrc",
                ".mcp.json",
                ".git/hooks/pre-push",
                ".git/config.worktree",
                ".claude/settings.json",
            ] {
                let is_brought = script.contains("other") && absent.starts_with(".claude");
                assert!(is_brought || !day.project().join(absent).exists(), "{who}: {absent}");
            }
            assert!(["old\n", "new\n"].contains(&day.read("AGENTS.md").as_str()), "{who}");
            assert_ne!(day.read(".claude/settings.json"), "evil\n", "{who}");
            assert_eq!(day.read(".git/config"), config, "{who}");
        }
    }
}
