//! Programs that belong to this one: found, held to their digest, and kept open, so that what was checked is what is
//! executed.

use std::fs::File;
use std::io::Read as _;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Most bytes of a program.
const BYTES_MAX: u64 = 256 << 20;
/// Permission bits with which others than the owner may write.
const WRITABLE: u32 = 0o022;
/// The ending of the file beside a program with its digest, as `sha256sum` writes it.
const DIGEST_ENDING: &str = ".sha256";

/// The program cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` cannot be used: {problem}", path.display())]
pub struct CompanionError {
    /// Where it was looked for.
    pub path: PathBuf,
    /// What is wrong with it, and what to do.
    pub problem: String,
}

/// A program, open: what was checked is what is executed, whatever becomes of its name.
#[derive(Debug)]
pub struct Companion {
    path: PathBuf,
    file: File,
}

impl Companion {
    /// The program of this name beside the running one.
    ///
    /// # Errors
    /// It is not there, others can write it, or it has another digest than was recorded when it was installed.
    pub fn beside_program(name: &str) -> Result<Self, CompanionError> {
        let program = std::env::current_exe()
            .map_err(|error| CompanionError { path: name.into(), problem: error.to_string() })?;
        let program = program.canonicalize().unwrap_or(program);
        Self::open(&program.parent().unwrap_or(Path::new("/")).join(name))
    }

    /// The program at this path. It is held to the digest that lies beside it, where there is one.
    ///
    /// # Errors
    /// As [`Self::beside_program`].
    pub fn open(path: &Path) -> Result<Self, CompanionError> {
        let found = Self::found(path, "; install all programs of Portcullis again, from one package")?;
        let beside = path.with_file_name({
            let mut name = path.file_name().unwrap_or_default().to_owned();
            name.push(DIGEST_ENDING);
            name
        });
        match std::fs::read_to_string(&beside) {
            Ok(recorded) => {
                let recorded = recorded.split_whitespace().next().unwrap_or_default();
                let advice = format!(
                    "`{}` records another: find out who changed it, and install all programs again, from one package",
                    beside.display()
                );
                found.holds_to(recorded, &advice)
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(found),
            Err(error) => Err(found.wrong(format!("its recorded digest `{}`: {error}", beside.display()))),
        }
    }

    /// The program at this path, which has to have this digest: 64 hexadecimal digits of its SHA-256. Others can write
    /// neither it nor its folder, so that it can be executed by its name as well.
    ///
    /// # Errors
    /// As [`Self::beside_program`].
    pub fn with_digest(path: &Path, sha256: &str) -> Result<Self, CompanionError> {
        let wrong = |problem: String| CompanionError { path: path.to_owned(), problem };
        let folder = path.parent().unwrap_or(Path::new("/"));
        let meta = folder.metadata().map_err(|error| wrong(format!("its folder: {error}")))?;
        if meta.mode() & WRITABLE != 0 {
            return Err(wrong(format!("others can write its folder: `chmod go-w {}`", folder.display())));
        }
        let advice = format!("{sha256} is required: review the new one, and then write its digest");
        Self::found(path, "")?.holds_to(sha256, &advice)
    }

    fn found(path: &Path, advice: &str) -> Result<Self, CompanionError> {
        let wrong = |problem: String| CompanionError { path: path.to_owned(), problem };
        let file = File::open(path).map_err(|error| wrong(format!("{error}{advice}")))?;
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
        Ok(Self { path: path.to_owned(), file })
    }

    fn holds_to(self, sha256: &str, advice: &str) -> Result<Self, CompanionError> {
        let mut bytes = Vec::new();
        let read = (&self.file).take(BYTES_MAX).read_to_end(&mut bytes);
        read.map_err(|error| self.wrong(error.to_string()))?;
        let digest = ring::digest::digest(&ring::digest::SHA256, &bytes);
        let digest: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        if digest == sha256 {
            Ok(self)
        } else {
            Err(self.wrong(format!("its digest is {digest}, and {advice}")))
        }
    }

    /// How it is executed by this process.
    #[must_use]
    pub fn executable(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.file.as_raw_fd()).into()
    }

    /// Its path, for messages.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The same program with a problem of its own.
    #[must_use]
    pub fn wrong(&self, problem: String) -> CompanionError {
        CompanionError { path: self.path.clone(), problem }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    const NAME: &str = "portcullis-contain";
    const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    fn companion(recorded: Option<&str>, mode: u32) -> Result<Companion, CompanionError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(NAME);
        std::fs::write(&path, "abc").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        if let Some(recorded) = recorded {
            std::fs::write(folder.path().join(format!("{NAME}.sha256")), recorded).unwrap();
        }
        Companion::open(&path)
    }

    #[test]
    fn a_program_that_others_can_write_or_that_was_changed_is_refused() {
        let abc = format!("{ABC}  {NAME}\n");
        assert!(companion(None, 0o755).is_ok());
        assert!(companion(Some(&abc), 0o755).is_ok());
        let changed = companion(Some(&abc.replace("ba", "bb")), 0o755).unwrap_err().to_string();
        assert!(changed.contains("records another"), "{changed}");
        assert!(companion(Some(""), 0o755).is_err());
        assert!(companion(None, 0o775).unwrap_err().to_string().contains("chmod go-w"));
        let missing = Companion::open(Path::new("/nonexistent/portcullis-contain")).unwrap_err().to_string();
        assert!(missing.contains("from one package"), "{missing}");
    }

    #[test]
    fn a_program_has_the_digest_that_is_required() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(NAME);
        std::fs::write(&path, "abc").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert!(Companion::with_digest(&path, ABC).is_ok());
        let other = Companion::with_digest(&path, &ABC.replace('a', "b")).unwrap_err().to_string();
        assert!(other.contains(ABC) && other.contains("is required"), "{other}");
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
        let open = Companion::with_digest(&path, ABC).unwrap_err().to_string();
        assert!(open.contains("its folder"), "{open}");
    }
}
