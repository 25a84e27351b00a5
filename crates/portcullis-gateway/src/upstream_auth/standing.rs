//! How things stand with the credentials for upstreams, without any secret.

use serde::Serialize;

use url::Url;

use super::secret::Secret;
use super::settings::{self, Grant, Source, same};
use super::store::{Store, now_s};
use crate::home::Home;

/// What there is for one upstream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Standing {
    /// Its name.
    pub name: String,
    /// Its address.
    pub url: String,
    /// Where its credential comes from: `file`, `command`, `client-credentials` or `login`.
    pub source: &'static str,
    /// Whether requests can be sent: `ready`, `renewable` (the token has ended, and the next request has a new one),
    /// `configured` (it is asked for with the first request), `login-needed`, `unusable`.
    pub state: &'static str,
    /// Why it is unusable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The authorization server.
    pub issuer: Option<String>,
    /// What the token may do, where there is one.
    pub scopes: Vec<String>,
    /// When the token ends, in seconds since 1970.
    pub expires_at_s: Option<u64>,
}

/// What there is for all upstreams that have an entry or a login, in the order of their names. No token is asked for.
///
/// # Errors
/// A file cannot be read or is wrong.
pub fn standings(home: &Home) -> Result<Vec<Standing>, String> {
    let mut all = Vec::new();
    for entry in settings::read(&home.upstreams_toml())?.upstreams {
        let mut why = None;
        let (source, state, issuer) = match entry.source {
            Source::File(file) => {
                why = Secret::read(&file).err();
                ("file", if why.is_none() { "ready" } else { "unusable" }, None)
            }
            Source::Command(_) => ("command", "configured", None),
            Source::Oauth(oauth) if oauth.grant == Grant::ClientCredentials => {
                ("client-credentials", "configured", oauth.issuer)
            }
            Source::Oauth(oauth) => ("login", "login-needed", oauth.issuer),
        };
        let url = entry.url.into();
        let (scopes, expires_at_s) = (Vec::new(), None);
        all.push(Standing { name: entry.name, url, source, state, why, issuer, scopes, expires_at_s });
    }
    for name in Store::names(home)? {
        let Some(kept) = Store::of(home, &name).read()? else { continue };
        let is_over = kept.expires_at_s.is_some_and(|at| at <= now_s());
        let state = match (&kept.access_token, &kept.refresh_token) {
            (None, _) => "login-needed",
            (Some(_), _) if !is_over => "ready",
            (Some(_), Some(_)) => "renewable",
            (Some(_), None) => "login-needed",
        };
        all.retain(|of| of.name != name || of.source != "login");
        all.push(Standing {
            name,
            url: kept.url,
            source: "login",
            state,
            why: None,
            issuer: Some(kept.issuer),
            scopes: kept.scopes,
            expires_at_s: kept.expires_at_s,
        });
    }
    all.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(all)
}

/// The name under which there is a login for an address: `name`, or that of the only other one. `name` if there is none.
///
/// # Errors
/// There are several others, or a login cannot be read.
pub fn login_for(home: &Home, name: &str, url: &Url) -> Result<String, String> {
    let mut found: Vec<String> = Vec::new();
    for kept_as in Store::names(home)? {
        let kept = Store::of(home, &kept_as).read()?;
        if kept.and_then(|kept| Url::parse(&kept.url).ok()).is_some_and(|kept| same(&kept, url)) {
            found.push(kept_as);
        }
    }
    match found.as_slice() {
        [only] => Ok(only.clone()),
        [] => Ok(name.to_owned()),
        several if several.iter().any(|found| found == name) => Ok(name.to_owned()),
        several => Err(format!(
            "there are several logins for `{url}`, none of which is called `{name}`: {}; log out of all but one, or name one",
            several.join(", ")
        )),
    }
}
