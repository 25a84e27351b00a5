//! Which of many paths can be there: each folder on the way is listed once. Most of what is protected does not exist,
//! and to ask the kernel for every name takes longer than all else that is done before a command starts.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Entries of a folder beyond which it is not listed.
const LISTED_MAX: usize = 16_384;

/// What a folder was found to be.
pub(crate) enum Listed {
    /// A folder with these entries, all of them.
    Entries(HashSet<Vec<u8>>),
    /// It is not there, or is no folder.
    Absent,
    /// It could not be listed: everything may be in it.
    Unknown,
}

impl Listed {
    /// A folder's entries. Nobody knows which names a file system that ignores case takes for one that is not ASCII.
    pub(crate) fn of<'a>(names: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut all = HashSet::new();
        for name in names {
            if !name.is_ascii() || all.len() >= LISTED_MAX {
                return Self::Unknown;
            }
            all.insert(name.to_ascii_lowercase());
        }
        Self::Entries(all)
    }

    fn may_have(&self, name: &OsStr) -> bool {
        match self {
            Self::Entries(names) => names.contains(&name.as_encoded_bytes().to_ascii_lowercase()),
            Self::Absent => false,
            Self::Unknown => true,
        }
    }
}

/// The folders that were listed.
pub(crate) struct Present<F> {
    list: F,
    folders: HashMap<PathBuf, Listed>,
}

impl<F: Fn(&Path) -> Listed> Present<F> {
    /// With how a folder is listed; the first has no name.
    pub(crate) fn new(list: F) -> Self {
        Self { list, folders: HashMap::new() }
    }

    /// Whether something can be at a path, under a name that differs in case at most.
    pub(crate) fn may_be(&mut self, path: &Path) -> bool {
        let mut folder = PathBuf::new();
        for part in path {
            let listed = self.folders.entry(folder.clone()).or_insert_with(|| (self.list)(&folder));
            match listed {
                Listed::Unknown => return true,
                known if !known.may_have(part) => return false,
                _ => folder.push(part),
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_no_listing_has_is_absent() {
        let mut present = Present::new(|folder: &Path| match folder.to_str() {
            Some("") => Listed::of([b".GIT".as_slice(), b"a", b"shut", b"odd"]),
            Some(".git" | ".GIT") => Listed::of([b"config".as_slice()]),
            Some("odd") => Listed::of(["\u{17f}x".as_bytes()]),
            Some("shut") => Listed::Unknown,
            _ => Listed::Absent,
        });
        for there in [".git", ".git/config", "A", "shut/x/y", "odd/.envrc"] {
            assert!(present.may_be(Path::new(there)), "{there}");
        }
        for absent in [".envrc", ".git/hooks", "a/x", "b/x"] {
            assert!(!present.may_be(Path::new(absent)), "{absent}");
        }
    }
}
