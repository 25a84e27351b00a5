//! What the paths of a profile are taken from. A bundle names folders that differ from machine to machine.

use std::path::{Component, Path, PathBuf};

use super::{Profile, Sockets};

/// Stands for git's folders of the worktrees that the profile lets be written; found when the command is run.
pub const GIT: &str = "{git}";
/// Stands for the caches of package managers below the home folder, as far as they exist.
pub const CACHES: &str = "{caches}";
/// Stands for the system's folder of temporary files.
pub const TEMPORARY: &str = "{tmp}";
/// Stands for the folder that the agent works in.
const WORKSPACE: &str = "{workspace}";
/// Stands for the user's home folder.
const HOME: &str = "{home}";

/// Where a profile applies.
#[derive(Debug, Clone, Copy, Default)]
pub struct Places<'a> {
    /// The folder that the agent works in.
    pub workspace: Option<&'a Path>,
    /// The user's home folder.
    pub home: Option<&'a Path>,
    /// What paths are taken from that are not absolute.
    pub here: Option<&'a Path>,
}

/// What a path of a profile begins with, if it is not absolute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Start {
    Workspace,
    Home,
    /// Known only when the command is run, and the whole of the path.
    Later,
    Here,
}

impl Start {
    /// `None` for an absolute path.
    ///
    /// # Errors
    /// A placeholder that means nothing.
    pub(crate) fn of(path: &Path) -> Result<Option<Self>, String> {
        let first = match path.components().next() {
            Some(Component::Normal(first)) => first.to_string_lossy(),
            Some(Component::RootDir | Component::Prefix(_)) => return Ok(None),
            _ => return Ok(Some(Self::Here)),
        };
        Ok(Some(match first.as_ref() {
            WORKSPACE => Self::Workspace,
            HOME | "~" => Self::Home,
            GIT | CACHES | TEMPORARY if path.components().count() == 1 => Self::Later,
            GIT | CACHES | TEMPORARY => return Err(format!("`{first}` is the whole of a path")),
            other if other.starts_with('{') => return Err(format!("`{other}` stands for nothing")),
            _ => Self::Here,
        }))
    }
}

/// Words that stand for folders, for who misspelt one.
pub(crate) const STARTS: [&str; 5] = [WORKSPACE, HOME, TEMPORARY, GIT, CACHES];

impl Places<'_> {
    /// The folder that a path is below, or `None` if that is not known here.
    fn start(&self, start: Start) -> Option<&Path> {
        match start {
            Start::Workspace => self.workspace,
            Start::Home => self.home,
            Start::Here => self.here,
            Start::Later => None,
        }
    }
}

impl Profile {
    /// The profile for these places: every path is absolute, but for `{git}`, `{caches}` and `{tmp}`, which are found
    /// when the command is run. What is read and executed below a folder that is not known is left out.
    ///
    /// # Errors
    /// A folder to write is below one that is not known, or a path cannot be read.
    pub fn at(&self, places: &Places<'_>) -> Result<Self, String> {
        let mut profile = self.clone();
        profile.read = placed(&self.read, places, false)?;
        profile.execute = placed(&self.execute, places, false)?;
        profile.write = placed(&self.write, places, true)?;
        if let Sockets::Paths(paths) = &self.sockets {
            profile.sockets = Sockets::Paths(placed(paths, places, false)?);
        }
        Ok(profile)
    }
}

fn placed(paths: &[PathBuf], places: &Places<'_>, required: bool) -> Result<Vec<PathBuf>, String> {
    let mut all = Vec::with_capacity(paths.len());
    for path in paths {
        let start = match Start::of(path)? {
            None | Some(Start::Later) => {
                all.push(path.clone());
                continue;
            }
            Some(start) => start,
        };
        let mut rest = path.components();
        if start != Start::Here {
            rest.next();
        }
        match places.start(start) {
            Some(folder) => all.push(folder.components().chain(rest).collect()),
            None if required => return Err(format!("`{}`: {}", path.display(), unknown(start))),
            None => {}
        }
    }
    Ok(all)
}

fn unknown(start: Start) -> &'static str {
    match start {
        Start::Home => "there is no HOME to take it from",
        Start::Workspace => "the folder that the agent works in is not known",
        _ => "the folder to take it from is not known",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bundle::built_in_profile;

    fn paths(names: &[&str]) -> Vec<PathBuf> {
        names.iter().map(PathBuf::from).collect()
    }

    #[test]
    fn folders_are_taken_from_where_the_profile_applies() {
        let profile = Profile {
            read: paths(&["~/a", "{home}", "/x"]),
            write: paths(&["{workspace}", "{workspace}/out", "b/../c", "{git}"]),
            ..built_in_profile("read-only").unwrap()
        };
        let places = Places {
            workspace: Some(Path::new("/w")),
            home: Some(Path::new("/h")),
            here: Some(Path::new("/w/here")),
        };
        let placed = profile.at(&places).unwrap();
        assert_eq!(placed.read, paths(&["/h/a", "/h", "/x"]));
        assert_eq!(placed.write, paths(&["/w", "/w/out", "/w/here/b/../c", "{git}"]));
    }

    #[test]
    fn an_unknown_folder_is_not_read_and_never_written() {
        let read = Profile { write: Vec::new(), ..built_in_profile("project").unwrap() };
        let placed = read.at(&Places::default()).unwrap();
        assert!(placed.read.iter().chain(&placed.execute).all(|path| path.is_absolute()), "{placed:?}");
        for name in ["{workspace}", "~/x", "out"] {
            let profile = Profile { write: paths(&[name]), ..read.clone() };
            assert!(profile.at(&Places::default()).unwrap_err().contains(name));
        }
    }

    #[test]
    fn what_stands_for_nothing_is_an_error() {
        for name in ["{worskpace}/x", "{git}/x"] {
            assert!(Start::of(Path::new(name)).is_err(), "{name}");
        }
        assert_eq!(Start::of(Path::new("a{b}")), Ok(Some(Start::Here)));
        assert_eq!(Start::of(Path::new("/{git}")), Ok(None));
    }
}
