//! Authentication. Every request carries a token; deciding needs the approver's, on every transport.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::{FromRequestParts, Request, State};
use axum::http::header::{AUTHORIZATION, HOST, ORIGIN};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use portcullis_core::principal::CredentialKind;
use portcullis_session::credentials::Identity;
use portcullis_session::gate::Gate;
use url::Url;

use super::Shared;
use super::error::Failure;
use crate::api::code;

/// Any known caller.
pub(super) struct Caller(pub(super) Identity);

/// A caller with the approver's credential.
pub(super) struct Approver(pub(super) Identity);

impl FromRequestParts<Shared> for Caller {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, shared: &Shared) -> Result<Self, Failure> {
        let unauthorized = |message| Failure::new(StatusCode::UNAUTHORIZED, code::UNAUTHORIZED, message);
        let header = parts.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let token = header.and_then(|value| value.strip_prefix("Bearer ")).ok_or_else(|| {
            unauthorized("send `Authorization: Bearer TOKEN` with a token that this daemon knows")
        })?;
        let (_, bundle) = shared.gate.bundles().get(None).map_err(|error| {
            Failure::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", error.to_string())
        })?;
        let identity = shared.credentials.authenticate(token.trim(), &bundle);
        identity.map(Caller).ok_or_else(|| unauthorized("the token is not known to this daemon"))
    }
}

impl FromRequestParts<Shared> for Approver {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, shared: &Shared) -> Result<Self, Failure> {
        let Caller(identity) = Caller::from_request_parts(parts, shared).await?;
        match identity.kind {
            CredentialKind::Approver => Ok(Self(identity)),
            CredentialKind::Agent => Err(Failure::not_an_approver()),
        }
    }
}

/// Where the daemon listens on TCP.
#[derive(Debug, Clone)]
pub(super) struct Own {
    pub(super) address: SocketAddr,
    /// Its bundle says under which name clients know it.
    pub(super) gate: Arc<Gate>,
}

/// On TCP, refuses requests that a web page could have caused: a `Host` that is not this address (DNS
/// rebinding) or an `Origin` that is not this host.
pub(super) async fn check_host_and_origin(State(own): State<Own>, request: Request, next: Next) -> Response {
    // What stands before the gate, and speaks TLS, passes the name on that clients know.
    let bundle = own.gate.bundles().get(None).ok().map(|(_, bundle)| bundle);
    let oauth = bundle.as_ref().and_then(|bundle| bundle.oauth.as_ref());
    let named = oauth.and_then(|oauth| Url::parse(&oauth.resource).ok());
    match foreign((own.address, named.as_ref()), request.headers(), request.uri()) {
        None => next.run(request).await,
        Some(message) => {
            Failure::new(StatusCode::FORBIDDEN, "foreign_host_or_origin", message).into_response()
        }
    }
}

fn foreign(own: (SocketAddr, Option<&Url>), headers: &HeaderMap, uri: &Uri) -> Option<String> {
    let (address, named) = own;
    // Of two, who serves the request and who looked at it may each take another one.
    if let Some(twice) = [HOST, ORIGIN].iter().find(|name| headers.get_all(*name).iter().nth(1).is_some()) {
        return Some(format!("the header `{twice}` occurs twice; send it once"));
    }
    let text = |name| headers.get(name).map(|value: &axum::http::HeaderValue| value.to_str().unwrap_or("?"));
    let host = text(HOST).or_else(|| uri.authority().map(|authority| authority.as_str()));
    let host = host.unwrap_or("");
    if !is_own(address, host) && named.is_none_or(|named| authority(named) != host) {
        return Some(format!("the Host `{host}` is not this daemon; use {address}"));
    }
    let origin = text(ORIGIN)?;
    let is_named = named.is_some_and(|named| named.origin().ascii_serialization() == origin);
    let is_foreign = !is_named && !is_own_origin(address, origin);
    is_foreign.then(|| format!("requests from the origin `{origin}` are refused"))
}

/// Whether a page is of the address that is listened on: on another port of the same machine it is somebody else's.
fn is_own_origin(own: SocketAddr, origin: &str) -> bool {
    let Ok(url) = Url::parse(origin) else { return false };
    url.port_or_known_default() == Some(own.port()) && url.host_str().is_some_and(|host| is_own(own, host))
}

/// Host and port of an address, as a request names them.
fn authority(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// Whether `host` names the address that is listened on: the address itself or, on loopback, `localhost`.
fn is_own(own: SocketAddr, host: &str) -> bool {
    let name = host.strip_suffix(&format!(":{}", own.port())).unwrap_or(host);
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    match bare.parse::<std::net::IpAddr>() {
        Ok(address) => address == own.ip() || (own.ip().is_unspecified() && !address.is_unspecified()),
        Err(_) => bare.eq_ignore_ascii_case("localhost") && (own.ip().is_loopback()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_own_host_and_origin_pass() {
        let own = "127.0.0.1:7777".parse().unwrap();
        let check = |host: &str, origin: Option<&str>| {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, host.parse().unwrap());
            if let Some(origin) = origin {
                headers.insert(ORIGIN, origin.parse().unwrap());
            }
            let named = Url::parse("https://gate.example/mcp").unwrap();
            foreign((own, Some(&named)), &headers, &Uri::from_static("/v1/health")).is_none()
        };
        assert!(check("gate.example", Some("https://gate.example")));
        assert!(!check("gate.example:7777", None) && !check("gate.example.evil", None));
        assert!(!check("gate.example", Some("http://gate.example")));
        assert!(check("127.0.0.1:7777", None));
        assert!(check("localhost:7777", Some("http://localhost:7777")));
        assert!(!check("evil.example:7777", None));
        assert!(!check("127.0.0.1.evil.example", None));
        assert!(!check("127.0.0.1:7777", Some("https://evil.example")));
        assert!(!check("127.0.0.1:7777", Some("null")));
        assert!(!check("127.0.0.1:7777", Some("http://localhost")), "another port of this machine");
        assert!(!check("127.0.0.1:7777", Some("http://localhost:8080")));
        assert!(!check("", None));
        for name in [HOST, ORIGIN] {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, "127.0.0.1:7777".parse().unwrap());
            for value in ["http://127.0.0.1:7777", "http://evil.example"] {
                headers.append(name.clone(), value.parse().unwrap());
            }
            let refused = foreign((own, None), &headers, &Uri::from_static("/mcp")).unwrap();
            assert!(refused.contains("occurs twice"), "{refused}");
        }
    }
}
