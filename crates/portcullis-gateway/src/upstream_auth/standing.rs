//! How things stand with the credentials for upstreams, without any secret.

use serde::Serialize;

use super::settings::{self, Grant, Source};
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
    /// `login-needed`.
    pub state: &'static str,
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
        let (source, issuer) = match entry.source {
            Source::File(_) => ("file", None),
            Source::Command(_) => ("command", None),
            Source::Oauth(oauth) if oauth.grant == Grant::ClientCredentials => {
                ("client-credentials", oauth.issuer)
            }
            Source::Oauth(oauth) => ("login", oauth.issuer),
        };
        let state = if source == "login" { "login-needed" } else { "ready" };
        let url = entry.url.into();
        let (scopes, expires_at_s) = (Vec::new(), None);
        all.push(Standing { name: entry.name, url, source, state, issuer, scopes, expires_at_s });
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
            issuer: Some(kept.issuer),
            scopes: kept.scopes,
            expires_at_s: kept.expires_at_s,
        });
    }
    all.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(all)
}
