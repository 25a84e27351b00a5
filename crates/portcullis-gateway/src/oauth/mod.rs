//! OAuth 2.1 as MCP uses it, for both of the gate's roles: a resource server that reads the access tokens of others, and
//! a client that holds tokens of its own for upstreams. No I/O is in what decides ([`jwk`], [`token`], [`challenge`],
//! [`metadata`]); documents of others come through [`outbound`], which goes nowhere that it should not.

use portcullis_core::bundle::OauthSettings;

pub(crate) mod challenge;
pub(crate) mod jwk;
pub(crate) mod keys;
pub(crate) mod metadata;
pub(crate) mod outbound;
pub(crate) mod token;

/// The issuers of a bundle whose keys cannot be fetched now, and why.
pub async fn unreachable_issuers(oauth: &OauthSettings) -> Vec<(String, String)> {
    let mut asked = tokio::task::JoinSet::new();
    for issuer in &oauth.issuers {
        let url = issuer.url.clone();
        asked.spawn(async move {
            let failed = keys::Keys::default().of(&url).await.err();
            failed.map(|why| (url, why))
        });
    }
    let mut away: Vec<_> = asked.join_all().await.into_iter().flatten().collect();
    away.sort_unstable();
    away
}

/// Text of others that is shown: the start of it, without what cannot be seen.
pub(crate) fn shown(text: &str) -> String {
    /// As many characters as an address that is looked at has.
    const CHARS_MAX: usize = 200;
    let mut chars = text.chars();
    let start: String = chars.by_ref().take(CHARS_MAX).collect();
    let rest = if chars.next().is_some() { "…" } else { "" };
    format!("{}{rest}", start.escape_debug())
}
