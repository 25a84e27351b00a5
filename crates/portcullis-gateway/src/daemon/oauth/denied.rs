//! Requests that are not let in, as they are answered (RFC 6750, 3.1; RFC 9728, 5.1).

use axum::http::header::WWW_AUTHENTICATE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use portcullis_core::bundle::OauthSettings;
use url::Url;

use crate::api::code;
use crate::daemon::error::Failure;
use crate::oauth::challenge::Challenge;
use crate::oauth::metadata::of_resource;
use crate::oauth::token::Refused;

/// Why a request is not let in.
#[derive(Debug)]
pub(in crate::daemon) struct Denied {
    failure: Failure,
    challenge: Option<Challenge>,
}

impl Denied {
    fn new(status: StatusCode, code: &'static str, message: &str, challenge: Option<Challenge>) -> Self {
        Self { failure: Failure::new(status, code, message), challenge }
    }

    pub(super) fn internal(message: String) -> Self {
        let failure = Failure::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", message);
        Self { failure, challenge: None }
    }

    pub(super) fn malformed(why: &str) -> Self {
        let challenge = Challenge { error: Some("invalid_request".to_owned()), ..Challenge::default() };
        Self::new(StatusCode::BAD_REQUEST, "bad_request", why, Some(challenge))
    }

    pub(super) fn in_query() -> Self {
        Self::malformed(
            "a token in the address is not accepted, and may be in logs by now: revoke it, and send `Authorization: \
             Bearer TOKEN`",
        )
    }

    /// Nothing is said of an error where there was no token (RFC 6750, 3.1).
    pub(super) fn no_token(oauth: Option<&OauthSettings>) -> Self {
        let message = "send `Authorization: Bearer TOKEN` with a token for this gate";
        Self::new(StatusCode::UNAUTHORIZED, code::UNAUTHORIZED, message, Some(challenge(oauth, None)))
    }

    pub(super) fn unknown_token(oauth: Option<&OauthSettings>) -> Self {
        let message = "the token is not known to this daemon";
        let challenge = challenge(oauth, Some("invalid_token"));
        Self::new(StatusCode::UNAUTHORIZED, code::UNAUTHORIZED, message, Some(challenge))
    }

    pub(super) fn invalid_token(oauth: &OauthSettings, why: Refused) -> Self {
        let challenge = challenge(Some(oauth), Some("invalid_token"));
        let message = format!("{why}; get a new token for `{}`", oauth.resource);
        Self::new(StatusCode::UNAUTHORIZED, code::UNAUTHORIZED, &message, Some(challenge))
    }

    pub(super) fn insufficient_scope(oauth: &OauthSettings) -> Self {
        let message = format!("the token needs the scopes `{}`", oauth.scopes.join(" "));
        let challenge = challenge(Some(oauth), Some("insufficient_scope"));
        Self::new(StatusCode::FORBIDDEN, "insufficient_scope", &message, Some(challenge))
    }

    /// The token is right, and does not say what the bundle knows people by.
    pub(super) fn no_claim(claim: &str) -> Self {
        let message = format!(
            "the token has no claim `{claim}` with a text, by which this gate's bundle knows whom it stands for; its \
             operator names another with `claim` of the issuer"
        );
        Self::new(StatusCode::FORBIDDEN, code::FORBIDDEN, &message, None)
    }

    /// The token is right, and a new one would not be better.
    pub(super) fn unknown_subject() -> Self {
        let message = "the token stands for nobody whom this gate knows; its operator lists subjects in the bundle, \
                       under [[oauth.subject]]";
        Self::new(StatusCode::FORBIDDEN, code::FORBIDDEN, message, None)
    }

    pub(super) fn no_keys() -> Self {
        let message = "the keys of the token's issuer cannot be fetched, so that nothing can be checked; the daemon's \
                       log says why; try again";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "issuer_unreachable", message, None)
    }
}

/// The challenge of this gate.
fn challenge(oauth: Option<&OauthSettings>, error: Option<&str>) -> Challenge {
    let scopes = oauth.map(|oauth| oauth.scopes.join(" ")).filter(|scopes| !scopes.is_empty());
    let metadata = oauth.and_then(|oauth| Url::parse(&oauth.resource).ok());
    let metadata = metadata.and_then(|resource| of_resource(&resource).into_iter().next());
    Challenge {
        error: error.map(str::to_owned),
        scope: scopes,
        resource_metadata: metadata.map(String::from),
    }
}

impl IntoResponse for Denied {
    fn into_response(self) -> Response {
        let mut response = self.failure.into_response();
        let written = self.challenge.map(|challenge| challenge.written());
        if let Some(value) = written.and_then(|written| HeaderValue::from_str(&written).ok()) {
            response.headers_mut().insert(WWW_AUTHENTICATE, value);
        }
        response
    }
}
