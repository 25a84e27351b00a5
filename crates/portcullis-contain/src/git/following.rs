//! Which branch follows which: the part of a repository's settings that git itself changes as branches come and go.
//!
//! Nothing in it makes git run anything, if it is written so that nobody can read it in another way.

use super::section_name;

/// The section.
const BRANCH: &str = "branch";
/// What `rebase` of a branch may say.
const REBASES: &[&str] = &["true", "false", "merges", "interactive"];
/// The name of the repository itself where that of a remote is expected.
const ITSELF: &str = ".";

/// Whether settings differ only in which branch follows which, and name no repository that they did not name before.
pub(crate) fn is_only_that(before: &str, after: &str) -> bool {
    let (Some((was, _)), Some((now, branches))) = (taken_apart(before), taken_apart(after)) else {
        return false;
    };
    was == now && branches.iter().all(|line| is_plain(line, &was))
}

/// The lines outside of sections of branches, and those in them, without empty ones; nothing where a line could belong
/// to the one before it.
fn taken_apart(settings: &str) -> Option<(Vec<&str>, Vec<&str>)> {
    let (mut others, mut branches) = (Vec::new(), Vec::new());
    let (mut is_branch, mut goes_on) = (false, false);
    for line in settings.lines() {
        let text = line.trim();
        if text.starts_with('[') {
            let section =
                text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).and_then(section_name);
            is_branch = section.as_deref() == Some(BRANCH);
            if is_branch && goes_on {
                return None;
            }
        } else if is_branch {
            branches.push(line);
        }
        if !is_branch && !text.is_empty() {
            others.push(line);
        }
        goes_on = line.ends_with('\\');
    }
    Some((others, branches))
}

fn is_plain(line: &str, others: &[&str]) -> bool {
    let line = line.trim();
    if line.is_empty() {
        return true;
    }
    let Some((key, value)) = line.split_once('=').map(|(key, value)| (key.trim(), value.trim())) else {
        return false;
    };
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '/' | '-' | '_' | '.' | '@' | '+');
    value.chars().all(is_name)
        && match key.to_ascii_lowercase().as_str() {
            "remote" => value == ITSELF || others.contains(&format!("[remote \"{value}\"]").as_str()),
            "merge" => value.starts_with("refs/"),
            "rebase" => REBASES.contains(&value),
            _ => false,
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAS: &str = "[core]\n\tbare = false\n\thooksPath = .h\n[remote \"origin\"]\n\turl = git@h:o/r\n[branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n";

    #[test]
    fn branches_come_and_go() {
        for now in [
            format!("{WAS}[branch \"x/y\"]\n\tremote = origin\n\tmerge = refs/heads/x/y\n"),
            format!("{WAS}[branch \"y\"]\n\tremote = .\n\tmerge = refs/heads/main\n\trebase = true\n"),
            WAS.replace("\"main\"]", "\"renamed\"]"),
            WAS.split("[branch").next().unwrap().to_owned(),
        ] {
            assert!(is_only_that(WAS, &now), "{now}");
        }
    }

    #[test]
    fn anything_else_is_no_such_change() {
        for now in [
            WAS.replace("bare = false", "bare = false\n\tfsmonitor = ./x"),
            WAS.replace("\thooksPath = .h\n", ""),
            WAS.replace("git@h:o/r", "git@evil:o/r"),
            format!("{WAS}[core]\n\tfsmonitor = ./x\n"),
            format!("{WAS}[branch \"x\"]\n\tremote = ../elsewhere\n"),
            format!("{WAS}[branch \"x\"]\n\tremote = other\n"),
            format!("{WAS}[branch \"x\"]\n\tmergeoptions = --strategy=x\n"),
            format!("{WAS}[branch \"x\"]\n\tremote = origin\\\n[core]\n\tfsmonitor = ./x\n"),
            format!("{WAS}[branch \"x\"] fsmonitor = ./x\n"),
            format!("{WAS}[branch \"x\\\"]\n[core]\nfsmonitor=x\n"),
            format!("{WAS}[BRANCH.x]\n\tremote = origin\n"),
        ] {
            assert!(!is_only_that(WAS, &now), "{now}");
        }
        // What git reads as a part of the line before is no section.
        let goes_on = format!("{WAS}[alias]\n\tx = !y \\");
        assert!(!is_only_that(&goes_on, &format!("{goes_on}\n[branch \"x\"]\n\tremote = origin\n")));
    }

    #[test]
    fn what_git_writes_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let git = |arguments: &[&str]| {
            let mut git = std::process::Command::new("git");
            git.args(["-c", "user.name=a", "-c", "user.email=a@b"]).args(arguments);
            let output = git.current_dir(folder.path()).output().unwrap();
            assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        };
        git(&["init", "-q", "-b", "main"]);
        git(&["commit", "-q", "--allow-empty", "-m", "x"]);
        git(&["remote", "add", "origin", "."]);
        git(&["fetch", "-q"]);
        let read = || std::fs::read_to_string(folder.path().join(".git/config")).unwrap();
        let mut was = read();
        for change in [
            &["branch", "-u", "origin/main"][..],
            &["checkout", "-q", "-b", "feature/one", "--track", "origin/main"],
            &["checkout", "-q", "-b", "two", "--track", "main"],
            &["branch", "-m", "feature/one", "other"],
            &["branch", "-D", "other"],
            &["branch", "--unset-upstream", "main"],
        ] {
            git(change);
            let now = read();
            assert!(now != was && is_only_that(&was, &now), "{change:?}: {was}\n{now}");
            was = now;
        }
        git(&["config", "core.fsmonitor", "x"]);
        assert!(!is_only_that(&was, &read()));
    }
}
