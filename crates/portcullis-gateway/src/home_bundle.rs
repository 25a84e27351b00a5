//! Which bundle a state folder is served with.
//!
//! The daemon is started by whatever needs it first: `portcullis serve --bundle DIR`, but also a gate, `approvals
//! list` or a coding agent's hook, none of which knows the operator's choice. So the choice is kept in the state
//! folder, and stands until another is made or the file is deleted.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use crate::home::Home;
use crate::state_file;

/// Longest path in the file, in bytes: `PATH_MAX` of Linux.
const PATH_BYTES_MAX: u64 = 4_096;

/// Why it is not known which bundle a state folder is served with.
#[derive(Debug, thiserror::Error)]
pub enum HomeBundleError {
    /// The file cannot be read or written.
    #[error(
        "cannot use `{}`, which names the bundle of this state folder: {source}; set the bundle again with `portcullis serve --bundle DIR`, or remove the file to serve the shipped one", path.display()
    )]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file says something else.
    #[error(
        "`{}` must hold one line with the absolute path of a bundle, but {why}; set the bundle again with `portcullis serve --bundle DIR`, or delete the file to serve the shipped one", path.display()
    )]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What it is instead.
        why: String,
    },
}

impl HomeBundleError {
    fn malformed(path: PathBuf) -> Self {
        Self::Malformed { path, why: "it holds something else".to_owned() }
    }
}

/// The folder of the bundle that was chosen for a state folder, or `None` if none was, so that the shipped one is
/// served.
///
/// # Errors
/// [`HomeBundleError`]: what cannot be read is no choice of the shipped bundle.
pub fn chosen(home: &Home) -> Result<Option<PathBuf>, HomeBundleError> {
    let path = home.bundle();
    let failed = |source| HomeBundleError::Io { path: path.clone(), source };
    let text = match state_file::read(&path, PATH_BYTES_MAX + 1) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            return Err(HomeBundleError::Malformed { path, why: error.to_string() });
        }
        Err(error) => return Err(failed(error)),
    };
    let folder = text.strip_suffix('\n').unwrap_or(&text);
    let whole = folder.len() as u64 <= PATH_BYTES_MAX && !folder.contains('\n');
    if !whole || !folder.starts_with('/') {
        return Err(HomeBundleError::malformed(path));
    }
    Ok(Some(PathBuf::from(folder)))
}

/// Keeps the choice of a bundle. `folder` is absolute.
///
/// # Errors
/// [`HomeBundleError`].
pub(crate) fn choose(home: &Home, folder: &Path) -> Result<(), HomeBundleError> {
    let path = home.bundle();
    let Some(text) = folder.to_str().filter(|text| !text.contains('\n')) else {
        return Err(HomeBundleError::malformed(path));
    };
    let failed = |source| HomeBundleError::Io { path: path.clone(), source };
    // Put into place as a whole: anyone who reads it meanwhile reads the old or the new one.
    let aside = path.with_extension("tmp");
    // What lies there may be anything, and is not opened.
    match fs::remove_file(&aside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    let mut file =
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(&aside).map_err(failed)?;
    file.write_all(format!("{text}\n").as_bytes()).and_then(|()| file.sync_all()).map_err(failed)?;
    fs::rename(&aside, &path).map_err(failed)
}

/// Whether two names are those of one folder.
pub(crate) fn is_same(one: &Path, other: &Path) -> bool {
    one == other
        || matches!((fs::canonicalize(one), fs::canonicalize(other)), (Ok(one), Ok(other)) if one == other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_is_kept_and_nothing_else_is_read_as_one() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::at(dir.path()).unwrap();
        assert_eq!(chosen(&home).unwrap(), None);
        choose(&home, Path::new("/srv/bundle")).unwrap();
        assert_eq!(chosen(&home).unwrap(), Some(PathBuf::from("/srv/bundle")));
        for text in ["", "bundle\n", "/a\n/b\n", &format!("/{}\n", "x".repeat(5_000))] {
            fs::write(home.bundle(), text).unwrap();
            assert!(matches!(chosen(&home), Err(HomeBundleError::Malformed { .. })), "{text:?}");
        }
        // Neither is waited for, nor read to an end that never comes.
        for make in ["mkfifo", "ln -sf /dev/zero"] {
            fs::remove_file(home.bundle()).unwrap();
            let mut words = make.split(' ').map(std::ffi::OsStr::new).collect::<Vec<_>>();
            let path = home.bundle();
            words.push(path.as_os_str());
            assert!(std::process::Command::new(words[0]).args(&words[1..]).status().unwrap().success());
            let refused = chosen(&home).unwrap_err().to_string();
            assert!(refused.contains("bundle.path") && refused.contains("serve --bundle"), "{refused}");
        }
        choose(&home, Path::new("/srv/bundle")).unwrap();
        assert_eq!(chosen(&home).unwrap(), Some(PathBuf::from("/srv/bundle")));
    }
}
