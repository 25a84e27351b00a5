//! Finding the helper, and making sure that it is the one.

use std::fs::File;
use std::io::Read as _;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::error::ContainError;

/// The helper's name, beside the program.
const NAME: &str = "portcullis-contain";
/// The file beside it with its digest, as `sha256sum` writes it.
const DIGEST: &str = "portcullis-contain.sha256";
/// Most bytes of the helper.
const BYTES_MAX: u64 = 256 << 20;
/// Permission bits with which others than the owner may write.
const WRITABLE: u32 = 0o022;

/// The helper, open: what was checked is what is executed, whatever becomes of its name.
#[derive(Debug)]
pub(super) struct Helper {
    path: PathBuf,
    file: File,
}

impl Helper {
    /// The helper beside the running program.
    pub(super) fn beside_program() -> Result<Self, ContainError> {
        let program =
            std::env::current_exe().map_err(ContainError::io("cannot tell where this program is"))?;
        let program = program.canonicalize().unwrap_or(program);
        Self::open(&program.parent().unwrap_or(Path::new("/")).join(NAME))
    }

    /// The helper at this path.
    pub(super) fn open(path: &Path) -> Result<Self, ContainError> {
        let wrong = |problem: String| ContainError::Helper { path: path.to_owned(), problem };
        let file = File::open(path).map_err(|error| {
            wrong(format!("{error}; it is installed beside `portcullis`: install both again"))
        })?;
        let meta = file.metadata().map_err(|error| wrong(error.to_string()))?;
        let owners = [0, rustix::process::geteuid().as_raw()];
        if !meta.is_file() || meta.len() > BYTES_MAX {
            return Err(wrong("not a program; install it again".to_owned()));
        }
        if meta.mode() & WRITABLE != 0 || !owners.contains(&meta.uid()) {
            return Err(wrong(format!(
                "others can write it, so nothing it promises can be believed: `chmod go-w {}`, and its owner has to be you or root",
                path.display()
            )));
        }
        let helper = Self { path: path.to_owned(), file };
        helper.check_digest().map_err(wrong)?;
        Ok(helper)
    }

    /// How it is executed.
    pub(super) fn executable(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.file.as_raw_fd()).into()
    }

    /// Its path, for messages.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Holds it to the digest that was recorded when it was installed, where one was.
    fn check_digest(&self) -> Result<(), String> {
        let beside = self.path.with_file_name(DIGEST);
        let recorded = match std::fs::read_to_string(&beside) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(format!("its recorded digest `{}`: {error}", beside.display())),
        };
        let mut bytes = Vec::new();
        (&self.file).take(BYTES_MAX).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
        let digest = ring::digest::digest(&ring::digest::SHA256, &bytes);
        let digest: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        if recorded.split_whitespace().next() == Some(digest.as_str()) {
            return Ok(());
        }
        Err(format!(
            "its digest is {digest}, and `{}` records another: run `cargo xtask install` again, and find out who changed it",
            beside.display()
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn helper(digest: Option<&str>, mode: u32) -> Result<Helper, ContainError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(NAME);
        std::fs::write(&path, "abc").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        if let Some(digest) = digest {
            std::fs::write(folder.path().join(DIGEST), digest).unwrap();
        }
        Helper::open(&path)
    }

    #[test]
    fn a_helper_that_others_can_write_or_that_was_changed_is_refused() {
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  portcullis-contain\n";
        assert!(helper(None, 0o755).is_ok());
        assert!(helper(Some(abc), 0o755).is_ok());
        let changed = helper(Some(&abc.replace("ba", "bb")), 0o755).unwrap_err().to_string();
        assert!(changed.contains("records another"), "{changed}");
        assert!(helper(Some(""), 0o755).is_err());
        assert!(helper(None, 0o775).unwrap_err().to_string().contains("chmod go-w"));
    }

    #[test]
    fn a_helper_that_is_missing_is_named_with_what_to_do() {
        let error = Helper::open(Path::new("/nonexistent/portcullis-contain")).unwrap_err().to_string();
        assert!(error.contains("install both again"), "{error}");
    }
}
