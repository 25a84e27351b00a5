//! The gate as a resource server of OAuth (RFC 9728): who may use `/mcp`, and what others are told.
//!
//! A request is let in by one of the gate's own tokens, as on `/v1`, or by an access token that an issuer of the bundle
//! meant for this gate ([`crate::oauth::token`]). The latter stands for a principal of the bundle and never decides on
//! approvals. It is looked at here and goes no further: upstreams get credentials of the gate's own.

mod denied;
mod served;

use std::time::{SystemTime, UNIX_EPOCH};

use axum::extract::FromRequestParts;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Uri};
use portcullis_core::bundle::{Bundle, Issuer, OauthSettings};
use portcullis_core::limits::NAME_BYTES_MAX;
use portcullis_core::principal::{CredentialKind, Principal};
use portcullis_session::credentials::{Credentials, Identity};

pub(super) use denied::Denied;
pub(super) use served::{caller, routes};

use super::Shared;
use crate::oauth::keys::Keys;
use crate::oauth::token::{Claims, Expected, Opened, Refused};

/// Checks tokens of others, with the keys of their issuers.
#[derive(Debug, Default)]
pub(super) struct ResourceServer {
    keys: Keys,
}

/// A caller of `/mcp`: with a token of this gate's, or of an issuer's.
pub(super) struct McpCaller(pub(super) Identity);

impl FromRequestParts<Shared> for McpCaller {
    type Rejection = Denied;

    async fn from_request_parts(parts: &mut Parts, shared: &Shared) -> Result<Self, Denied> {
        let (_, bundle) =
            shared.gate.bundles().get(None).map_err(|error| Denied::internal(error.to_string()))?;
        let identity =
            shared.oauth.identify(&shared.credentials, &bundle, &parts.headers, &parts.uri).await?;
        Ok(Self(identity))
    }
}

impl ResourceServer {
    /// Who sends a request.
    ///
    /// # Errors
    /// Why it is not let in, as it is answered.
    pub(super) async fn identify(
        &self,
        credentials: &Credentials,
        bundle: &Bundle,
        headers: &HeaderMap,
        uri: &Uri,
    ) -> Result<Identity, Denied> {
        let oauth = bundle.oauth.as_ref();
        if names_token(uri) {
            return Err(Denied::in_query());
        }
        let token = bearer(headers)?.ok_or_else(|| Denied::no_token(oauth))?;
        if let Some(identity) = credentials.authenticate(token, bundle) {
            return Ok(identity);
        }
        match oauth {
            Some(oauth) if token.contains('.') => self.of_issuer(oauth, bundle, token).await,
            _ => Err(Denied::unknown_token(oauth)),
        }
    }

    async fn of_issuer(
        &self,
        oauth: &OauthSettings,
        bundle: &Bundle,
        token: &str,
    ) -> Result<Identity, Denied> {
        let invalid = |why: Refused| Denied::invalid_token(oauth, why);
        let opened = Opened::of(token).map_err(invalid)?;
        let claimed = opened.issuer().ok_or_else(|| invalid(Refused::Issuer))?;
        let issuer = oauth.issuers.iter().find(|issuer| issuer.url == claimed);
        let issuer = issuer.ok_or_else(|| invalid(Refused::Issuer))?;
        let expected = Expected { issuer: &issuer.url, resource: &oauth.resource, now_s: now_s() };
        let kept = self.keys.of(&issuer.url).await.map_err(|_| Denied::no_keys())?;
        let claims = match opened.check(&kept.keys, expected) {
            Err(Refused::UnknownKey) => {
                let newer = self.keys.newer(&issuer.url, kept).await;
                opened.check(&newer.keys, expected)
            }
            checked => checked,
        };
        let claims = claims.map_err(invalid)?;
        if oauth.scopes.iter().any(|scope| !claims.has_scope(scope)) {
            return Err(Denied::insufficient_scope(oauth));
        }
        if claims.text(&issuer.claim).is_none() {
            return Err(Denied::no_claim(&issuer.claim));
        }
        identity(oauth, issuer, bundle, &claims).ok_or_else(Denied::unknown_subject)
    }
}

/// The principal that a token stands for: the listed one, or one that is named after the claim.
fn identity(oauth: &OauthSettings, issuer: &Issuer, bundle: &Bundle, claims: &Claims) -> Option<Identity> {
    let subject = claims.text(&issuer.claim)?;
    let listed = oauth.subjects.iter().find(|of| of.issuer == issuer.url && of.subject == subject);
    let (mut principal, policy) = match listed {
        Some(listed) => (listed.principal.clone(), listed.policy.as_ref()),
        None => (Principal::named(named(oauth, issuer, bundle, subject)?), None),
    };
    let given = issuer.roles_claim.as_deref().map(|name| claims.texts(name)).unwrap_or_default();
    for role in given.into_iter().filter_map(|value| issuer.roles.get(value)) {
        if !principal.roles.contains(role) {
            principal.roles.push(role.clone());
        }
    }
    let policy = policy.or(issuer.policy.as_ref()).cloned();
    Some(Identity { kind: CredentialKind::Agent, principal, policy, of_this_machine: false })
}

/// A name for a subject that no entry lists, which must not be one that somebody else has.
fn named(oauth: &OauthSettings, issuer: &Issuer, bundle: &Bundle, subject: &str) -> Option<String> {
    let name = format!("{}{subject}", issuer.prefix.as_deref()?);
    if name.len() > NAME_BYTES_MAX || name.chars().any(char::is_control) {
        return None;
    }
    let of_others = bundle.credentials.iter().map(|of| &of.principal.id);
    let of_others = of_others.chain(oauth.subjects.iter().map(|of| &of.principal.id));
    let is_taken = of_others.into_iter().any(|taken| *taken == name)
        || ["local-agent", "local-approver"].contains(&name.as_str());
    let of_other_issuer = oauth.issuers.iter().any(|other| {
        other.url != issuer.url
            && other.prefix.as_ref().is_some_and(|prefix| name.starts_with(prefix.as_str()))
    });
    (!is_taken && !of_other_issuer).then_some(name)
}

/// The token of a request, where it has one.
fn bearer(headers: &HeaderMap) -> Result<Option<&str>, Denied> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(Denied::malformed("the request has two `Authorization` headers"));
    }
    let malformed = || Denied::malformed("send `Authorization: Bearer TOKEN`");
    let (scheme, token) = value.to_str().ok().and_then(|text| text.split_once(' ')).ok_or_else(malformed)?;
    let token = token.trim();
    if !scheme.eq_ignore_ascii_case("bearer") || token.is_empty() || token.contains([' ', ',']) {
        return Err(malformed());
    }
    Ok(Some(token))
}

/// Whether the address has a token: it would be in logs and histories (RFC 6750, 5.3), so that it is not even looked at.
fn names_token(uri: &Uri) -> bool {
    let query = uri.query().unwrap_or_default();
    url::form_urlencoded::parse(query.as_bytes()).any(|(name, _)| name == "access_token")
}

fn now_s() -> f64 {
    // Before 1970 nothing is valid yet.
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}
