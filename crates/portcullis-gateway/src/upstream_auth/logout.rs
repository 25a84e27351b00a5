//! The end of a login: it is forgotten here, and its tokens are revoked where the server offers that (RFC 7009).

use serde::Serialize;
use url::Url;

use super::held::secret_of;
use super::settings::{self, Source, check_name, same};
use super::store::{Kept, Store};
use super::tokens::{self, Client};
use crate::home::Home;
use crate::oauth::keys::metadata;

/// What became of a login's tokens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Revocation {
    /// The authorization server takes them no more.
    Revoked,
    /// There were none: the login had ended.
    Ended,
    /// The server names no endpoint for it. They work until they expire.
    NotOffered,
    /// They may work until they expire, because of this.
    Failed(String),
}

/// A login that was forgotten.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedOut {
    /// The authorization server, where it could be read.
    pub issuer: Option<String>,
    /// What became of its tokens there.
    pub revocation: Revocation,
}

/// Forgets the login for an upstream, and has its tokens revoked. None: there was none.
///
/// # Errors
/// It cannot be removed. A server that does not revoke is no error: the login is gone here.
pub async fn logout(home: &Home, name: &str) -> Result<Option<LoggedOut>, String> {
    check_name(name)?;
    let store = Store::of(home, name);
    if store.read().is_ok_and(|kept| kept.is_none()) {
        return Ok(None);
    }
    // First here, so that nothing is sent with it any more, whatever the server does.
    let locked = store.lock().await?;
    let kept = store.read();
    if !store.remove(&locked)? {
        return Ok(None);
    }
    drop(locked);
    let kept = match kept {
        Ok(Some(kept)) => kept,
        Ok(None) => return Ok(None),
        Err(why) => return Ok(Some(LoggedOut { issuer: None, revocation: Revocation::Failed(why) })),
    };
    let revocation = revoked(home, &kept).await.unwrap_or_else(Revocation::Failed);
    Ok(Some(LoggedOut { issuer: Some(kept.issuer), revocation }))
}

/// Has the tokens of a login revoked: the refresh token, which ends the login, and the access token, since a server need not
/// end it with the other (RFC 7009, 2.1).
async fn revoked(home: &Home, kept: &Kept) -> Result<Revocation, String> {
    let tokens = [("refresh_token", &kept.refresh_token), ("access_token", &kept.access_token)];
    let tokens: Vec<_> =
        tokens.into_iter().filter_map(|(hint, token)| Some((hint, token.as_ref()?))).collect();
    if tokens.is_empty() {
        return Ok(Revocation::Ended);
    }
    let (server, place) = metadata(&kept.issuer, kept.learned_from).await?;
    let Some(endpoint) = &server.revocation_endpoint else { return Ok(Revocation::NotOffered) };
    let endpoint = Url::parse(endpoint)
        .map_err(|error| format!("the server's `revocation_endpoint` is no address: {error}"))?;
    let secret = secret_of(kept, secret_file(home, kept)?.as_deref())?;
    let client = Client { id: kept.client_id.clone(), secret, auth: kept.client_auth };
    let mut all = Ok(Revocation::Revoked);
    for (hint, token) in tokens {
        let revoked = tokens::revoke((&endpoint, place), &client, (hint, token)).await;
        // The other one is worth a request even if this one was not taken.
        if let Err(why) = revoked {
            all = all.and(Err(why.to_string()));
        }
    }
    all
}

/// The file with the client's secret, where the settings name one for the upstream.
fn secret_file(home: &Home, kept: &Kept) -> Result<Option<std::path::PathBuf>, String> {
    let Ok(url) = Url::parse(&kept.url) else { return Ok(None) };
    let entries = settings::read(&home.upstreams_toml())?.upstreams;
    let entry = entries.into_iter().find(|entry| same(&entry.url, &url));
    Ok(entry.and_then(|entry| match entry.source {
        Source::Oauth(oauth) if oauth.client_id.as_deref() == Some(kept.client_id.as_str()) => {
            oauth.client_secret_file
        }
        _ => None,
    }))
}
