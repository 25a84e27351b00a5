//! Finding the engine, and making sure that it is the one.

use std::fs::File;
use std::io::Read as _;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The engine's name, beside the program.
const NAME: &str = "portcullis-starlark";
/// The file beside it with its digest, as `sha256sum` writes it.
const DIGEST: &str = "portcullis-starlark.sha256";
/// Most bytes of the engine.
const BYTES_MAX: u64 = 256 << 20;
/// Most bytes of the toolbox's manual that are read.
const MANUAL_BYTES_MAX: u64 = 256 << 10;
/// Permission bits with which others than the owner may write.
const WRITABLE: u32 = 0o022;

/// The engine cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the engine of guard programs, `{}`, cannot be used: {problem}", path.display())]
pub struct EngineError {
    path: PathBuf,
    problem: String,
}

/// The engine, open: what was checked is what is executed, whatever becomes of its name.
#[derive(Debug)]
pub struct Engine {
    path: PathBuf,
    file: File,
}

impl Engine {
    /// The engine beside the running program.
    ///
    /// # Errors
    /// It is not there, others can write it, or it has another digest than was recorded when it was installed.
    pub fn beside_program() -> Result<Self, EngineError> {
        let program = std::env::current_exe()
            .map_err(|error| EngineError { path: NAME.into(), problem: error.to_string() })?;
        let program = program.canonicalize().unwrap_or(program);
        Self::open(&program.parent().unwrap_or(Path::new("/")).join(NAME))
    }

    /// The engine at this path.
    ///
    /// # Errors
    /// As [`Self::beside_program`].
    pub fn open(path: &Path) -> Result<Self, EngineError> {
        let wrong = |problem: String| EngineError { path: path.to_owned(), problem };
        let file = File::open(path).map_err(|error| {
            wrong(format!("{error}; it is installed beside `portcullis` by `cargo xtask install`"))
        })?;
        let meta = file.metadata().map_err(|error| wrong(error.to_string()))?;
        let owners = [0, rustix::process::geteuid().as_raw()];
        if !meta.is_file() || meta.len() > BYTES_MAX {
            return Err(wrong("not a program; install it again".to_owned()));
        }
        if meta.mode() & WRITABLE != 0 || !owners.contains(&meta.uid()) {
            return Err(wrong(format!(
                "others can write it: `chmod go-w {}`, and its owner has to be you or root",
                path.display()
            )));
        }
        let engine = Self { path: path.to_owned(), file };
        engine.check_digest().map_err(wrong)?;
        Ok(engine)
    }

    /// What programs may call, as the engine itself describes it, in Markdown. It is the one description that people and
    /// models get.
    ///
    /// # Errors
    /// The engine does not print it.
    pub fn toolbox(&self) -> Result<String, EngineError> {
        let mut child = Command::new(self.executable())
            .arg("toolbox")
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| self.wrong(format!("it cannot be started: {error}")))?;
        let mut manual = String::new();
        let read = match child.stdout.take() {
            Some(out) => out.take(MANUAL_BYTES_MAX).read_to_string(&mut manual).map(|_| ()),
            None => Ok(()),
        };
        // One that has more to say is not waited for.
        let _gone = child.kill();
        let _waited = child.wait();
        read.map_err(|error| self.wrong(format!("it does not say what programs may call: {error}")))?;
        if manual.trim().is_empty() {
            return Err(self.wrong("it does not say what programs may call; install it again".to_owned()));
        }
        Ok(manual)
    }

    /// How it is executed.
    pub(crate) fn executable(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.file.as_raw_fd()).into()
    }

    /// The same engine with another problem.
    pub(crate) fn wrong(&self, problem: String) -> EngineError {
        EngineError { path: self.path.clone(), problem }
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
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn engine(digest: Option<&str>, mode: u32) -> Result<Engine, EngineError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(NAME);
        std::fs::write(&path, "abc").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        if let Some(digest) = digest {
            std::fs::write(folder.path().join(DIGEST), digest).unwrap();
        }
        Engine::open(&path)
    }

    #[test]
    fn an_engine_that_others_can_write_or_that_was_changed_is_refused() {
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  portcullis-starlark\n";
        assert!(engine(None, 0o755).is_ok());
        assert!(engine(Some(abc), 0o755).is_ok());
        let changed = engine(Some(&abc.replace("ba", "bb")), 0o755).unwrap_err().to_string();
        assert!(changed.contains("records another"), "{changed}");
        assert!(engine(Some(""), 0o755).is_err());
        assert!(engine(None, 0o775).unwrap_err().to_string().contains("chmod go-w"));
        let missing = Engine::open(Path::new("/nonexistent/portcullis-starlark")).unwrap_err().to_string();
        assert!(missing.contains("cargo xtask install"), "{missing}");
    }
}
