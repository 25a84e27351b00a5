//! Where the agent works.

use std::path::{Path, PathBuf};

/// The environment variable with which an agent tells its hooks the project's folder; no agent named: Claude Code. One
/// agent may have started another, so that the variables of both are there.
#[must_use]
pub fn project_variable(agent: Option<&str>) -> Option<&'static str> {
    match agent {
        None | Some("claude-code") => Some("CLAUDE_PROJECT_DIR"),
        Some("gemini-cli") => Some("GEMINI_PROJECT_DIR"),
        Some("cursor") => Some("CURSOR_PROJECT_DIR"),
        Some("qwen-code") => Some("QWEN_PROJECT_DIR"),
        Some("droid") => Some("FACTORY_PROJECT_DIR"),
        Some("crush") => Some("CRUSH_PROJECT_DIR"),
        // These tell none, and start hooks in the workspace.
        Some("windsurf" | "cline") => Some("PWD"),
        Some(_) => None,
    }
}

/// The project's folder, for the record, or `None` if there is none. A folder that holds the user's home, such as `/` or
/// a link to it, is no project: everything would lie inside.
#[must_use]
pub fn workspace(project: Option<&Path>, home: Option<&Path>) -> Option<String> {
    let project = project.filter(|project| !is_too_wide(project, home))?;
    absolute(project)
}

/// An absolute folder as text, or `None` for one that is not absolute or not text.
#[must_use]
pub fn absolute(folder: &Path) -> Option<String> {
    folder.to_str().filter(|folder| folder.starts_with('/')).map(str::to_owned)
}

fn is_too_wide(project: &Path, home: Option<&Path>) -> bool {
    let holds_home = |project: &Path, home: Option<&Path>| {
        project.parent().is_none() || home.is_some_and(|home| home.starts_with(project))
    };
    // A folder that is not there leads nowhere else.
    let real = |path: &Path| -> PathBuf { std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned()) };
    holds_home(project, home) || holds_home(&real(project), home.map(real).as_deref())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(project: &str, home: Option<&str>) -> Option<String> {
        workspace(Some(Path::new(project)), home.map(Path::new))
    }

    #[test]
    fn a_folder_that_holds_the_home_is_no_project() {
        let home = Some("/home/u");
        assert_eq!(of("/home/u/p", home).as_deref(), Some("/home/u/p"));
        for wide in ["/", "/home", "/home/u"] {
            assert_eq!(of(wide, home), None, "{wide}");
        }
        assert_eq!(of("/srv/p", None).as_deref(), Some("/srv/p"));
        assert_eq!(of("srv/p", None), None);
        assert_eq!(workspace(None, home.map(Path::new)), None);
    }

    #[test]
    fn a_link_to_a_folder_that_holds_the_home_is_no_project() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("u");
        std::fs::create_dir_all(home.join("p")).unwrap();
        for (name, target) in [("root", Path::new("/")), ("home", &home), ("above", folder.path())] {
            let link = home.join(name);
            std::os::unix::fs::symlink(target, &link).unwrap();
            assert_eq!(workspace(Some(&link), Some(&home)), None, "{name}");
        }
        let link = home.join("project");
        std::os::unix::fs::symlink(home.join("p"), &link).unwrap();
        assert_eq!(workspace(Some(&link), Some(&home)).as_deref(), link.to_str());
    }
}
