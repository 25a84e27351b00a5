//! Tokens for the APIs of forges, which criteria about pull requests are checked with.
//!
//! They are the daemon's owner's: `forges.toml` of the state folder says which token goes to which URL, and nothing that an
//! agent sends does. It is read when it is needed, so that a new token needs no restart.
//!
//! ```toml
//! [[forge]]
//! url = "https://api.github.com"
//! token_env = "GITHUB_TOKEN"                  # a variable of the daemon's environment, or
//! token_file = "/etc/portcullis/github.token" # a file that only this user can read
//! ```

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use portcullis_session::credentials::read_token;
use serde::Deserialize;

use crate::state_file;

/// Longest file, in bytes.
const FILE_BYTES_MAX: u64 = 64 << 10;
/// Longest token, in bytes.
const TOKEN_BYTES_MAX: usize = 4 << 10;
/// Rights of others to write.
const OTHERS_WRITE: u32 = 0o022;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Forges {
    #[serde(default)]
    forge: Vec<Forge>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Forge {
    url: String,
    #[serde(default)]
    token_env: Option<String>,
    #[serde(default)]
    token_file: Option<PathBuf>,
}

/// The token for the API at a URL, if the file has one.
///
/// # Errors
/// The file or the token cannot be read, and what to do about it. Without a file there is no token.
pub(super) fn token(file: &Path, url: &str) -> Result<Option<String>, String> {
    let wrong = |why: String| format!("the tokens of forges in `{}`: {why}", file.display());
    let found = match std::fs::metadata(file) {
        Ok(found) => found,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(wrong(error.to_string())),
    };
    if found.mode() & OTHERS_WRITE != 0 {
        return Err(wrong("others may write it; run `chmod 600` on it".to_owned()));
    }
    let text = state_file::read(file, FILE_BYTES_MAX).map_err(|error| wrong(error.to_string()))?;
    let forges: Forges = toml::from_str(&text).map_err(|error| wrong(error.message().to_owned()))?;
    let same = |forge: &&Forge| forge.url.trim_end_matches('/') == url.trim_end_matches('/');
    let Some(forge) = forges.forge.iter().find(same) else { return Ok(None) };
    let token = match (&forge.token_env, &forge.token_file) {
        (Some(name), None) => std::env::var(name).map_err(|_| {
            wrong(format!("the daemon's environment has no `{name}`; start it with that, or name a file"))
        })?,
        (None, Some(path)) => read_token(path).map_err(|error| wrong(error.to_string()))?,
        _ => return Err(wrong(format!("`{url}` needs one of `token_env` and `token_file`"))),
    };
    let token = token.trim();
    let fits =
        (1..=TOKEN_BYTES_MAX).contains(&token.len()) && token.bytes().all(|byte| byte.is_ascii_graphic());
    if !fits {
        return Err(wrong(format!(
            "the token for `{url}` has no characters, too many, or some that no token has"
        )));
    }
    Ok(Some(token.to_owned()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn write(path: &Path, text: &str, mode: u32) {
        std::fs::write(path, text).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_token_belongs_to_one_url_and_to_its_owner() {
        let folder = tempfile::tempdir().unwrap();
        let (file, secret) = (folder.path().join("forges.toml"), folder.path().join("token"));
        assert_eq!(token(&file, "https://h/api/v1"), Ok(None), "there is no file");
        write(&secret, "s3cret\n", 0o600);
        let text = format!("[[forge]]\nurl = \"https://h/api/v1\"\ntoken_file = \"{}\"\n", secret.display());
        write(&file, &text, 0o600);
        assert_eq!(token(&file, "https://h/api/v1/"), Ok(Some("s3cret".to_owned())));
        for other in ["https://h/api", "https://h:8443/api/v1", "http://h/api/v1", "https://h.evil/api/v1"] {
            assert_eq!(token(&file, other), Ok(None), "{other}");
        }
        write(&secret, "two words\n", 0o600);
        assert!(token(&file, "https://h/api/v1").unwrap_err().contains("that no token has"));
        write(&secret, "s3cret\n", 0o644);
        assert!(token(&file, "https://h/api/v1").is_err(), "others can read it");
        write(&secret, "s3cret\n", 0o600);
        write(&file, &text, 0o666);
        assert!(token(&file, "https://h/api/v1").unwrap_err().contains("chmod 600"));
        for (text, says) in [
            ("[[forge]]\nurl = \"https://h\"\n", "needs one of"),
            (
                "[[forge]]\nurl = \"https://h\"\ntoken_env = \"PORTCULLIS_TEST_NO_SUCH\"\n",
                "has no `PORTCULLIS_TEST",
            ),
            ("[[forge]]\nurl = \"https://h\"\ntoken = \"x\"\n", "unknown field"),
        ] {
            write(&file, text, 0o600);
            let error = token(&file, "https://h").unwrap_err();
            assert!(error.contains(says), "{error}");
        }
    }
}
