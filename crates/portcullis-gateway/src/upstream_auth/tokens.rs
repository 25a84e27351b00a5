//! The token endpoint of an authorization server (OAuth 2.1, 3.2), as a client uses it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::Method;
use hyper::body::Bytes;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue};
use serde::Deserialize;
use url::{Url, form_urlencoded};
use zeroize::Zeroizing;

use super::secret::Secret;
use super::store::{ClientAuth, now_s};
use crate::oauth::challenge::scopes;
use crate::oauth::metadata::ServerMetadata;
use crate::oauth::outbound::{self, Asked, Place};

/// Errors that are repeated: they are words of the specifications (RFC 6749, 5.2; RFC 8707; RFC 7591; RFC 7009), not a server's own.
const ERRORS: [&str; 10] = [
    "invalid_request",
    "invalid_client",
    "invalid_grant",
    "unauthorized_client",
    "unsupported_grant_type",
    "invalid_scope",
    "invalid_target",
    "invalid_redirect_uri",
    "invalid_client_metadata",
    "unsupported_token_type",
];
/// How a login says that it has ended.
pub(super) const ENDED: &str = "invalid_grant";

/// Who asks.
#[derive(Debug, Clone)]
pub(super) struct Client {
    pub(super) id: String,
    pub(super) secret: Option<Secret>,
    pub(super) auth: ClientAuth,
}

impl Client {
    /// A client with the way to show itself that the server takes.
    pub(super) fn of(id: String, secret: Option<Secret>, server: &ServerMetadata) -> Result<Self, String> {
        let auth = match &secret {
            None => ClientAuth::None,
            Some(_) if server.takes("client_secret_basic") => ClientAuth::Basic,
            Some(_) if server.takes("client_secret_post") => ClientAuth::Post,
            Some(_) => {
                return Err("the authorization server takes a client's secret in no way that is known here"
                    .to_owned());
            }
        };
        Ok(Self { id, secret, auth })
    }
}

/// Tokens as they were issued.
#[derive(Debug)]
pub(super) struct Issued {
    pub(super) access_token: Secret,
    pub(super) expires_at_s: Option<u64>,
    pub(super) refresh_token: Option<Secret>,
    /// None: those that were asked for.
    pub(super) scopes: Option<Vec<String>>,
}

/// Why there are none.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NotIssued {
    /// The server says no, with this error.
    Refused(&'static str),
    /// It cannot be asked, or what it answers is of no use.
    Failed(String),
}

impl std::fmt::Display for NotIssued {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Refused(error) => write!(f, "the authorization server refuses with `{error}`"),
            Self::Failed(why) => f.write_str(why),
        }
    }
}

#[derive(Deserialize)]
struct Written {
    access_token: Secret,
    token_type: String,
    #[serde(default)]
    expires_in: Option<f64>,
    #[serde(default)]
    refresh_token: Option<Secret>,
    #[serde(default)]
    scope: Option<String>,
}

#[derive(Deserialize)]
struct WrittenError {
    error: String,
}

/// Asks for tokens.
pub(super) async fn ask(
    (endpoint, learned_from): (&Url, Place),
    client: &Client,
    fields: &[(&str, &str)],
) -> Result<Issued, NotIssued> {
    let (headers, body) = request(client, fields).map_err(NotIssued::Failed)?;
    let asked = Asked { method: Method::POST, url: endpoint, headers, body: Bytes::from(body) };
    let answer = outbound::ask(asked, learned_from).await.map_err(NotIssued::Failed)?;
    let body = Zeroizing::new(answer.body);
    match answer.status {
        200 => read(&body).map_err(NotIssued::Failed),
        400..500 => Err(refused(("token", answer.status), &body)),
        other => Err(NotIssued::Failed(format!("the token endpoint answers with HTTP status {other}"))),
    }
}

/// Has a token revoked (RFC 7009, 2), of the kind that the hint says. One that the server does not know is revoked, too.
pub(super) async fn revoke(
    (endpoint, learned_from): (&Url, Place),
    client: &Client,
    (hint, token): (&str, &Secret),
) -> Result<(), NotIssued> {
    let fields = [("token", token.text()), ("token_type_hint", hint)];
    let (headers, body) = request(client, &fields).map_err(NotIssued::Failed)?;
    let asked = Asked { method: Method::POST, url: endpoint, headers, body: Bytes::from(body) };
    let answer = outbound::ask(asked, learned_from).await.map_err(NotIssued::Failed)?;
    match answer.status {
        200 => Ok(()),
        other => Err(refused(("revocation", other), &answer.body)),
    }
}

/// Headers and body of a request, with who asks.
fn request(
    client: &Client,
    fields: &[(&str, &str)],
) -> Result<(Vec<(HeaderName, HeaderValue)>, String), String> {
    let mut body = form_urlencoded::Serializer::new(String::new());
    body.extend_pairs(fields);
    let mut headers = vec![
        (CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded")),
        (ACCEPT, HeaderValue::from_static("application/json")),
    ];
    match (client.auth, &client.secret) {
        (ClientAuth::Basic, Some(secret)) => headers.push((AUTHORIZATION, basic(&client.id, secret)?)),
        (ClientAuth::Post, Some(secret)) => {
            body.append_pair("client_id", &client.id).append_pair("client_secret", secret.text());
        }
        (ClientAuth::None, _) => {
            body.append_pair("client_id", &client.id);
        }
        (ClientAuth::Basic | ClientAuth::Post, None) => {
            return Err("the client's secret is missing; name its file, or log in again".to_owned());
        }
    }
    Ok((headers, body.finish()))
}

/// RFC 6749, 2.3.1: both are encoded as in a form first.
fn basic(id: &str, secret: &Secret) -> Result<HeaderValue, String> {
    let encoded = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    let both = Zeroizing::new(format!("{}:{}", encoded(id), encoded(secret.text())));
    Secret::of(&STANDARD.encode(&*both)).and_then(|both| both.header("Basic "))
}

fn read(body: &[u8]) -> Result<Issued, String> {
    let wrong = |why: &str| format!("the answer of the token endpoint is of no use: {why}");
    let written: Written =
        serde_json::from_slice(body).map_err(|_| wrong("it is no JSON document with a token"))?;
    if !written.token_type.eq_ignore_ascii_case("bearer") {
        return Err(wrong("the token is not of the type Bearer"));
    }
    let checked = |secret: Secret| Secret::of(secret.text()).map_err(|why| wrong(&why));
    let lasts_s = match written.expires_in {
        None => None,
        Some(lasts) if lasts.is_finite() && lasts >= 0.0 => {
            Some(std::time::Duration::try_from_secs_f64(lasts))
        }
        Some(_) => return Err(wrong("`expires_in` is no time")),
    };
    let lasts_s = lasts_s.transpose().map_err(|_| wrong("`expires_in` is no time"))?;
    Ok(Issued {
        access_token: checked(written.access_token)?,
        expires_at_s: lasts_s.map(|lasts| now_s().saturating_add(lasts.as_secs())),
        refresh_token: written.refresh_token.map(checked).transpose()?,
        scopes: written.scope.as_deref().map(scopes),
    })
}

/// What a server says with its error is its own, and may repeat what was sent.
fn refused((endpoint, status): (&str, u16), body: &[u8]) -> NotIssued {
    let error = serde_json::from_slice::<WrittenError>(body).ok();
    let known = error.and_then(|error| ERRORS.into_iter().find(|known| *known == error.error));
    match known {
        Some(known) => NotIssued::Refused(known),
        None => NotIssued::Failed(format!("the {endpoint} endpoint answers with HTTP status {status}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_bearer_tokens_are_of_use() {
        let issued =
            read(br#"{"access_token":"a","token_type":"bEARER","expires_in":60.5,"scope":"x y"}"#).unwrap();
        assert!(issued.expires_at_s.is_some_and(|at| at >= now_s() + 59));
        assert_eq!(
            (issued.access_token.text(), issued.scopes),
            ("a", Some(vec!["x".to_owned(), "y".to_owned()]))
        );
        for wrong in [
            r#"{"access_token":"a","token_type":"DPoP"}"#,
            r#"{"access_token":"","token_type":"Bearer"}"#,
            r#"{"access_token":"a\nb","token_type":"Bearer"}"#,
            r#"{"access_token":"a","token_type":"Bearer","expires_in":-1}"#,
            r#"{"access_token":"a","token_type":"Bearer","expires_in":1e300}"#,
            r#"{"access_token":"s3cret","token_type":"Bearer","refresh_token":7}"#,
            r#"{"token_type":"Bearer"}"#,
            "access_token=s3cret&token_type=Bearer",
        ] {
            let error = read(wrong.as_bytes()).unwrap_err();
            assert!(error.contains("of no use") && !error.contains("s3cret"), "{error}");
        }
        let error = refused(("token", 400), br#"{"error":"invalid_grant","error_description":"s3cret"}"#);
        assert_eq!(error, NotIssued::Refused(ENDED));
        assert!(!refused(("token", 400), br#"{"error":"s3cret"}"#).to_string().contains("s3cret"));
    }

    #[test]
    fn a_client_is_encoded_before_it_is_sent() {
        let header = basic("a b:c", &Secret::of("p%/").unwrap()).unwrap();
        let encoded = header.to_str().unwrap().strip_prefix("Basic ").unwrap();
        assert_eq!(STANDARD.decode(encoded).unwrap(), b"a+b%3Ac:p%25%2F");
    }
}
