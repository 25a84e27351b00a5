//! Secrets in memory: never shown, and wiped when they are dropped.

use std::fs::OpenOptions;
use std::io::Read as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use hyper::header::HeaderValue;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use tokio::io::AsyncReadExt as _;
use tokio::time::timeout;
use zeroize::Zeroizing;

/// The longest secret, in bytes: what fits the header of a request.
const SECRET_BYTES_MAX: u64 = 8 << 10;
/// How long a command may take that prints one. Keyrings may have to be unlocked by hand, but not while calls wait.
const COMMAND_MAX: Duration = Duration::from_secs(10);

/// A token or a client's secret.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Secret(Zeroizing<String>);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from).map(|text| Self(Zeroizing::new(text)))
    }
}

impl Secret {
    /// A secret that can stand in a header.
    pub(super) fn of(text: &str) -> Result<Self, String> {
        let fits = !text.is_empty()
            && text.len() as u64 <= SECRET_BYTES_MAX
            && text.bytes().all(|b| b.is_ascii_graphic());
        match fits {
            true => Ok(Self(Zeroizing::new(text.to_owned()))),
            false => Err("it is empty, too long, or has characters that no token has".to_owned()),
        }
    }

    /// The secret itself, for who sends it.
    pub(super) fn text(&self) -> &str {
        &self.0
    }

    /// It as the value of a header, which is not shown either.
    pub(super) fn header(&self, scheme: &str) -> Result<HeaderValue, String> {
        let text = Zeroizing::new(format!("{scheme}{}", self.text()));
        let mut value = HeaderValue::from_str(&text).map_err(|_| "it does not fit a header".to_owned())?;
        value.set_sensitive(true);
        Ok(value)
    }

    /// Reads a secret from a file that only this user can read.
    pub(super) fn read(path: &Path) -> Result<Self, String> {
        let wrong = |why: String| format!("`{}`: {why}", path.display());
        // A pipe in its place would be waited for.
        let opened = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path);
        let file = opened.map_err(|error| wrong(error.to_string()))?;
        let meta = file.metadata().map_err(|error| wrong(error.to_string()))?;
        if !meta.is_file() {
            return Err(wrong("it is not a regular file".to_owned()));
        }
        if meta.permissions().mode() & 0o077 != 0 {
            return Err(wrong("others can read it; run `chmod 600` on it".to_owned()));
        }
        let mut text = Zeroizing::new(String::new());
        let read = file.take(SECRET_BYTES_MAX + 2).read_to_string(&mut text);
        read.map_err(|error| wrong(error.to_string()))?;
        Self::of(text.trim()).map_err(wrong)
    }

    /// Has a command print a secret. What it says besides is not looked at: it may be secret, too.
    pub(super) async fn printed(command: &[String]) -> Result<Self, String> {
        let (program, arguments) = command.split_first().ok_or("the command is empty")?;
        let wrong = |why: String| format!("the command `{}`: {why}", program.escape_debug());
        let mut started = tokio::process::Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| wrong(error.to_string()))?;
        let out = started.stdout.take().ok_or_else(|| wrong("it has no output".to_owned()))?;
        let run = async {
            let mut text = Zeroizing::new(String::new());
            out.take(SECRET_BYTES_MAX + 2).read_to_string(&mut text).await?;
            Ok::<_, std::io::Error>((text, started.wait().await?))
        };
        let ended = timeout(COMMAND_MAX, run).await;
        let ended = ended.map_err(|_| wrong(format!("it did not end within {} s", COMMAND_MAX.as_secs())))?;
        let (text, status) = ended.map_err(|error| wrong(error.to_string()))?;
        if !status.success() {
            return Err(wrong(format!("it failed ({status})")));
        }
        Self::of(text.trim()).map_err(wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_secret_is_read_and_never_shown() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        std::fs::write(&file, "s3cret\n").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(Secret::read(&file).unwrap_err().contains("chmod 600"));
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        let secret = Secret::read(&file).unwrap();
        assert_eq!(secret.text(), "s3cret");
        let header = secret.header("Bearer ").unwrap();
        assert_eq!(header.as_bytes(), b"Bearer s3cret");
        assert!(!format!("{secret:?} {header:?}").contains("s3cret"));
        for wrong in ["", "two words", "a\nb", "ä", &"x".repeat(8193)] {
            std::fs::write(&file, wrong).unwrap();
            let error = Secret::read(&file).unwrap_err();
            assert!(error.contains("no token has") && !error.contains("words"), "{error}");
        }
        let printed = |command: &[&str]| {
            let command: Vec<String> = command.iter().map(|word| (*word).to_owned()).collect();
            async move { Secret::printed(&command).await }
        };
        assert_eq!(printed(&["printf", "s3cret"]).await.unwrap().text(), "s3cret");
        let failed = printed(&["sh", "-c", "echo s3cret; echo s3cret >&2; exit 3"]).await.unwrap_err();
        assert!(failed.contains("it failed") && !failed.contains("s3cret"), "{failed}");
        assert!(printed(&["/no/such/program"]).await.unwrap_err().contains("/no/such/program"));
        assert!(printed(&[]).await.is_err());
    }
}
