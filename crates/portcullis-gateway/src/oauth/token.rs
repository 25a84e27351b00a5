//! Access tokens as JSON Web Tokens (RFC 7519, RFC 9068), checked without any I/O.
//!
//! A token is opened first ([`Opened::of`]), which says whose it claims to be; the keys of that issuer are looked up by
//! the caller; then all of it is checked ([`Opened::check`]). Until then nothing that it says is believed.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use portcullis_wire::strict;
use serde_json::{Map, Value};

use super::jwk::{Algorithm, KeySet, NotSigned};

/// The longest token, in bytes: what fits the header of a request beside others.
pub(crate) const TOKEN_BYTES_MAX: usize = 8 << 10;
/// How far the clock of an issuer may be from ours, in seconds.
pub(crate) const LEEWAY_S: f64 = 30.0;
/// The most audiences, scopes or roles that are looked at.
const VALUES_MAX: usize = 256;

/// Why a token is not believed. The words go to whoever sent it, so that none of them is the token's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refused {
    /// Not three parts in base64url with JSON in the first two.
    #[error("the token is not a signed JSON Web Token")]
    Malformed,
    /// Too long.
    #[error("the token has more than {TOKEN_BYTES_MAX} bytes")]
    TooLong,
    /// `none`, a shared secret, or something else that is not on the list.
    #[error("the token is not signed with RS256, PS256, ES256 or EdDSA")]
    Algorithm,
    /// It asks for something that we do not do.
    #[error("the token has critical extensions, of which this gate knows none")]
    Critical,
    /// An ID token, a logout token, and so on.
    #[error("the token is not an access token")]
    Type,
    /// No key of the issuer is named so.
    #[error("the issuer has no such key")]
    UnknownKey,
    /// It names no key, and the issuer has several.
    #[error("the token does not say which of the issuer's keys signed it")]
    Ambiguous,
    /// Not signed by the issuer.
    #[error("the signature is not the issuer's")]
    Signature,
    /// Issued by somebody else.
    #[error("the token is from an issuer whose tokens are not accepted here")]
    Issuer,
    /// Meant for somebody else.
    #[error("the token is not meant for this gate: its audience is another")]
    Audience,
    /// No time at which it ends.
    #[error("the token does not say when it expires")]
    NoExpiry,
    /// Too old.
    #[error("the token has expired")]
    Expired,
    /// Too new.
    #[error("the token is not valid yet; compare the clocks")]
    NotYet,
    /// Bound to a key that the sender of a bearer token does not show.
    #[error("the token is bound to a key of its client (`cnf`), which this gate cannot check")]
    Bound,
}

/// What a token has to be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Expected<'a> {
    /// The issuer, exactly.
    pub(crate) issuer: &'a str,
    /// Whom it must be meant for, exactly.
    pub(crate) resource: &'a str,
    /// Now, in seconds since 1970.
    pub(crate) now_s: f64,
}

/// A token that was taken apart. Nothing of it is believed yet.
#[derive(Debug)]
pub(crate) struct Opened<'t> {
    algorithm: Algorithm,
    key: Option<String>,
    /// Header and claims, as they were signed.
    signed: &'t str,
    signature: Vec<u8>,
    claims: Map<String, Value>,
}

/// What a token that was checked says.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Claims(Map<String, Value>);

impl<'t> Opened<'t> {
    /// Takes a token apart.
    pub(crate) fn of(token: &'t str) -> Result<Self, Refused> {
        if token.len() > TOKEN_BYTES_MAX {
            return Err(Refused::TooLong);
        }
        let (signed, signature) = token.rsplit_once('.').ok_or(Refused::Malformed)?;
        let (header, claims) = signed.split_once('.').ok_or(Refused::Malformed)?;
        let header = object(header)?;
        let text =
            |name: &str| header.get(name).map(|value| value.as_str().ok_or(Refused::Malformed)).transpose();
        // Before the signature is looked at: without one it has none.
        let algorithm = text("alg")?.and_then(Algorithm::of).ok_or(Refused::Algorithm)?;
        if header.contains_key("crit") {
            return Err(Refused::Critical);
        }
        if text("typ")?.is_some_and(|of| !is_access_token(of)) {
            return Err(Refused::Type);
        }
        let key = text("kid")?.map(str::to_owned);
        let claims = object(claims)?;
        let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|_| Refused::Malformed)?;
        Ok(Self { algorithm, key, signed, signature, claims })
    }

    /// Whose it says it is: to find the keys, and for nothing else.
    pub(crate) fn issuer(&self) -> Option<&str> {
        self.claims.get("iss").and_then(Value::as_str)
    }

    /// Believes the token, or says why not.
    pub(crate) fn check(&self, keys: &KeySet, expected: Expected<'_>) -> Result<Claims, Refused> {
        let signed =
            keys.verify(self.key.as_deref(), self.algorithm, self.signed.as_bytes(), &self.signature);
        signed.map_err(|why| match why {
            NotSigned::UnknownKey => Refused::UnknownKey,
            NotSigned::Ambiguous => Refused::Ambiguous,
            NotSigned::Wrong => Refused::Signature,
        })?;
        if self.issuer() != Some(expected.issuer) {
            return Err(Refused::Issuer);
        }
        if !self.claims.get("aud").is_some_and(|audience| names(audience, expected.resource)) {
            return Err(Refused::Audience);
        }
        self.check_times(expected.now_s)?;
        if self.claims.contains_key("cnf") {
            return Err(Refused::Bound);
        }
        Ok(Claims(self.claims.clone()))
    }

    fn check_times(&self, now_s: f64) -> Result<(), Refused> {
        let time = |name: &str| match self.claims.get(name) {
            None => Ok(None),
            Some(value) => value.as_f64().filter(|time| time.is_finite()).map(Some).ok_or(Refused::Malformed),
        };
        let expires = time("exp")?.ok_or(Refused::NoExpiry)?;
        if now_s >= expires + LEEWAY_S {
            return Err(Refused::Expired);
        }
        for name in ["nbf", "iat"] {
            if time(name)?.is_some_and(|from| now_s + LEEWAY_S < from) {
                return Err(Refused::NotYet);
            }
        }
        Ok(())
    }
}

impl Claims {
    /// A claim that is text and not empty.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).and_then(Value::as_str).filter(|text| !text.is_empty())
    }

    /// The values of a claim that is text or a list of texts.
    pub(crate) fn texts(&self, name: &str) -> Vec<&str> {
        match self.0.get(name) {
            Some(Value::String(text)) => vec![text],
            Some(Value::Array(values)) => values.iter().take(VALUES_MAX).filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        }
    }

    /// Whether the token has a scope: in `scope`, separated by spaces (RFC 8693, 4.2), or in `scp`, as a list or a text.
    pub(crate) fn has_scope(&self, wanted: &str) -> bool {
        let in_claim =
            |name| self.texts(name).into_iter().flat_map(|text| text.split(' ')).any(|has| has == wanted);
        in_claim("scope") || in_claim("scp")
    }
}

/// Types that access tokens have: their own (RFC 9068), with or without `application/`, and the one of all tokens.
fn is_access_token(of: &str) -> bool {
    let of = of.to_ascii_lowercase();
    matches!(of.strip_prefix("application/").unwrap_or(&of), "at+jwt" | "jwt")
}

fn names(audience: &Value, resource: &str) -> bool {
    match audience {
        Value::String(one) => one == resource,
        Value::Array(several) => several.iter().take(VALUES_MAX).any(|one| one.as_str() == Some(resource)),
        _ => false,
    }
}

/// A part of a token: an object without two members of one name, which two readers would read differently.
fn object(part: &str) -> Result<Map<String, Value>, Refused> {
    let bytes = URL_SAFE_NO_PAD.decode(part).map_err(|_| Refused::Malformed)?;
    match strict::parse_recorded(&bytes, TOKEN_BYTES_MAX) {
        Ok(Value::Object(object)) => Ok(object),
        _ => Err(Refused::Malformed),
    }
}

#[cfg(test)]
mod tests;
