//! `upstreams.toml` of the state folder: where the gate's credential for an upstream comes from.
//!
//! It is the owner's of the state folder, and nothing that an agent sends or a bundle says changes which secret goes to
//! which address: an entry is for one URL. It is read again when it has changed.
//!
//! ```toml
//! client_document = "https://gate.example/portcullis.json"   # the gate's id at servers that read such documents
//!
//! [[upstream]]
//! name = "tickets"
//! url = "https://mcp.tickets.example/mcp"
//! token_file = "/etc/portcullis/tickets.token"     # a file that only this user can read, or
//! token_command = ["pass", "show", "tickets"]      # a command that prints the token
//! header = "X-Api-Key"                             # absent: `Authorization: Bearer TOKEN`
//!
//! [[upstream]]
//! name = "files"
//! url = "https://files.example/mcp"
//! [upstream.oauth]
//! grant = "client-credentials"                     # or "login", the default
//! issuer = "https://login.example"
//! client_id = "gate"
//! client_secret_file = "/etc/portcullis/gate.secret"
//! scopes = ["read"]
//! ```

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use hyper::header::HeaderName;
use serde::Deserialize;
use url::Url;

use super::document;
use crate::oauth::metadata::secure;
use crate::state_file;

/// Longest file, in bytes.
const FILE_BYTES_MAX: u64 = 256 << 10;
/// Rights of others to write: who may write it chooses where secrets go.
const OTHERS_WRITE: u32 = 0o022;
/// The longest name, in bytes.
const NAME_BYTES_MAX: usize = 64;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default)]
    client_document: Option<String>,
    #[serde(default)]
    upstream: Vec<Entry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    url: String,
    #[serde(default)]
    token_file: Option<PathBuf>,
    #[serde(default)]
    token_command: Option<Vec<String>>,
    #[serde(default)]
    header: Option<String>,
    #[serde(default)]
    oauth: Option<Oauth>,
}

/// How a token is asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Oauth {
    #[serde(default)]
    pub(super) grant: Grant,
    #[serde(default)]
    pub(super) issuer: Option<String>,
    #[serde(default)]
    pub(super) client_id: Option<String>,
    #[serde(default)]
    pub(super) client_secret_file: Option<PathBuf>,
    #[serde(default)]
    pub(super) scopes: Vec<String>,
}

/// On whose behalf.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Grant {
    /// A person's, who logs in.
    #[default]
    Login,
    /// The gate's own.
    ClientCredentials,
}

/// Where a credential comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Source {
    File(PathBuf),
    Command(Vec<String>),
    Oauth(Oauth),
}

/// An entry that was checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Upstream {
    pub(super) name: String,
    pub(super) url: Url,
    pub(super) source: Source,
    /// The header of a static credential; none: `Authorization`, with the scheme Bearer.
    pub(super) header: Option<HeaderName>,
}

/// What the file says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Settings {
    /// The address of the gate's client id metadata document.
    pub(super) client_document: Option<String>,
    pub(super) upstreams: Vec<Upstream>,
}

/// What the file says; nothing without a file.
///
/// # Errors
/// The file cannot be read or is wrong, and what to do about it.
pub(super) fn read(file: &Path) -> Result<Settings, String> {
    let wrong = |why: String| format!("`{}`: {why}", file.display());
    let found = match std::fs::metadata(file) {
        Ok(found) => found,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Settings::default()),
        Err(error) => return Err(wrong(error.to_string())),
    };
    if found.mode() & OTHERS_WRITE != 0 {
        return Err(wrong("others may write it; run `chmod 600` on it".to_owned()));
    }
    let text = state_file::read(file, FILE_BYTES_MAX).map_err(|error| wrong(error.to_string()))?;
    let written: Written = toml::from_str(&text).map_err(|error| wrong(error.message().to_owned()))?;
    if let Some(address) = &written.client_document {
        document::check(address).map_err(|why| wrong(format!("`client_document`: {why}")))?;
    }
    let mut upstreams: Vec<Upstream> = Vec::with_capacity(written.upstream.len());
    for entry in written.upstream {
        let name = entry.name.escape_debug().to_string();
        let upstream = checked(entry).map_err(|why| wrong(format!("upstream `{name}`: {why}")))?;
        if upstreams.iter().any(|other| other.name == upstream.name || same(&other.url, &upstream.url)) {
            return Err(wrong(format!("upstream `{name}`: another entry has its name or its URL")));
        }
        upstreams.push(upstream);
    }
    Ok(Settings { client_document: written.client_document, upstreams })
}

fn checked(entry: Entry) -> Result<Upstream, String> {
    check_name(&entry.name)?;
    let url = Url::parse(&entry.url).map_err(|error| format!("its URL: {error}"))?;
    secure(&url)?;
    let source = match (entry.token_file, entry.token_command, entry.oauth) {
        (Some(file), None, None) => Source::File(file),
        (None, Some(command), None) => Source::Command(command),
        (None, None, Some(oauth)) => Source::Oauth(checked_oauth(oauth)?),
        _ => return Err("it needs one of `token_file`, `token_command` and `[upstream.oauth]`".to_owned()),
    };
    let header = match (entry.header, &source) {
        (Some(_), Source::Oauth(_)) => return Err("`header` is for tokens of files and commands".to_owned()),
        (Some(name), _) => {
            Some(HeaderName::try_from(name).map_err(|_| "`header` is no name of a header".to_owned())?)
        }
        (None, _) => None,
    };
    Ok(Upstream { name: entry.name, url, source, header })
}

fn checked_oauth(oauth: Oauth) -> Result<Oauth, String> {
    if let Some(issuer) = &oauth.issuer {
        secure(&Url::parse(issuer).map_err(|error| format!("its issuer: {error}"))?)?;
    }
    let own = oauth.grant == Grant::ClientCredentials;
    if own && (oauth.issuer.is_none() || oauth.client_id.is_none() || oauth.client_secret_file.is_none()) {
        return Err("client credentials need `issuer`, `client_id` and `client_secret_file`".to_owned());
    }
    // They would be shown to whatever server the upstream names.
    if oauth.client_secret_file.is_some() && oauth.issuer.is_none() {
        return Err("`client_secret_file` needs `issuer`: the server that knows the secret".to_owned());
    }
    Ok(oauth)
}

/// Whether two addresses are the same place: with or without a slash at the end.
pub(super) fn same(one: &Url, other: &Url) -> bool {
    one.as_str().trim_end_matches('/') == other.as_str().trim_end_matches('/')
}

/// Names are those of files, too.
pub(super) fn check_name(name: &str) -> Result<(), String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let fits =
        (1..=NAME_BYTES_MAX).contains(&name.len()) && name.chars().all(plain) && !name.starts_with('.');
    fits.then_some(()).ok_or_else(|| {
        format!(
            "a name has letters, digits, `-`, `_` and `.`, at most {NAME_BYTES_MAX}, and no `.` at its start"
        )
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn an_entry_is_for_one_address_and_has_one_source() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("upstreams.toml");
        assert_eq!(read(&file), Ok(Settings::default()), "there is no file");
        let read = |text: &str, mode: u32| {
            std::fs::write(&file, text).unwrap();
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
            read(&file)
        };
        let at = |name: &str, url: &str, more: &str| {
            format!("[[upstream]]\nname = '{name}'\nurl = '{url}'\n{more}\n")
        };
        let one = at("t", "https://t.example/mcp", "token_file = '/t'");
        let found = read(&one, 0o600).unwrap();
        assert_eq!(found.upstreams[0].source, Source::File("/t".into()));
        let documented = format!("client_document = 'https://gate.example/c'\n{one}");
        assert_eq!(
            read(&documented, 0o600).unwrap().client_document.as_deref(),
            Some("https://gate.example/c")
        );
        assert!(read(&one, 0o666).unwrap_err().contains("chmod 600"));
        let twice = format!("{one}{}", at("u", "https://t.example/mcp/", "token_file = '/u'"));
        let own = "[upstream.oauth]\ngrant = 'client-credentials'";
        for (text, says) in [
            (twice, "another entry"),
            (format!("client_document = 'https://gate.example'\n{one}"), "needs a path"),
            (at("t", "https://t.example", ""), "needs one of"),
            (at("t", "https://t.example", "token_file = '/t'\ntoken_command = ['x']"), "needs one of"),
            (at("t", "http://t.example", "token_file = '/t'"), "in clear"),
            (at("t", "https://me:s3cret@t.example", "token_file = '/t'"), "user or a password"),
            (at("../t", "https://t.example", "token_file = '/t'"), "a name has"),
            (at("t", "https://t.example", "token = 's3cret'"), "unknown field"),
            (at("t", "https://t.example", "token_file = '/t'\nheader = 'a b'"), "no name of a header"),
            (at("t", "https://t.example", own), "client credentials need"),
            (at("t", "https://t.example", "[upstream.oauth]\nclient_secret_file = '/s'"), "needs `issuer`"),
            (at("t", "https://t.example", "[upstream.oauth]\nissuer = 'http://login.example'"), "in clear"),
        ] {
            let error = read(&text, 0o600).unwrap_err();
            assert!(error.contains(says) && !error.contains("s3cret"), "{error}");
        }
    }
}
