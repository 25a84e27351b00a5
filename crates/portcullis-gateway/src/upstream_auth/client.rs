//! Which client the gate is at an authorization server, in the order that MCP has: one that the operator registered there,
//! one whose metadata document the server reads, or one that the server registers now.

use hyper::Method;
use hyper::body::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use serde::Deserialize;
use serde_json::json;
use url::Url;

use super::document;
use super::login::Login;
use super::secret::Secret;
use super::store::ClientAuth;
use super::tokens::Client;
use crate::oauth::metadata::ServerMetadata;
use crate::oauth::outbound::{self, Asked, Place};
use crate::oauth::shown;

/// How the gate becomes a client of a server.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Way<'a> {
    /// It is registered, under this id.
    Registered(&'a str),
    /// The address of a document is its id.
    Document(&'a str),
    /// It registers itself here (RFC 7591).
    Register(&'a Url),
}

impl<'a> Way<'a> {
    /// The first that there is.
    pub(super) fn of(login: &'a Login, server: &'a ServerMetadata) -> Result<Self, String> {
        if let Some(id) = &login.client_id {
            return Ok(Self::Registered(id));
        }
        let reads = server.client_id_metadata_document_supported;
        if let Some(address) = &login.client_document {
            document::check(address)?;
            if reads {
                return Ok(Self::Document(address));
            }
        }
        server.registration_endpoint.as_ref().map(Self::Register).ok_or_else(|| {
            let issuer = shown(&server.issuer);
            match (reads, &login.client_document) {
                (false, Some(_)) => format!(
                    "the authorization server `{issuer}` neither reads client id metadata documents nor registers anybody by itself; register the gate there, and give `--client-id ID`"
                ),
                (true, _) => format!(
                    "the authorization server `{issuer}` registers nobody by itself, but reads client id metadata documents; host the one that `portcullis upstream document URL` prints, and give `--client-document URL`, or register the gate there, and give `--client-id ID`"
                ),
                (false, None) => format!(
                    "the authorization server `{issuer}` registers nobody by itself; register the gate there, and give `--client-id ID`"
                ),
            }
        })
    }

    /// The ports where the browser may come back to, unless one is named.
    pub(super) fn ports(&self) -> &'static [u16] {
        match self {
            Self::Document(_) => &document::PORTS,
            Self::Registered(_) | Self::Register(_) => &[0],
        }
    }

    /// The client, for this server alone.
    pub(super) async fn client(
        &self,
        login: &Login,
        (server, learned_from): (&ServerMetadata, Place),
        back: &str,
    ) -> Result<Client, String> {
        match self {
            Self::Registered(id) => {
                let secret = login.client_secret_file.as_deref().map(Secret::read).transpose()?;
                Client::of((*id).to_owned(), secret, server)
            }
            Self::Document(address) => {
                Ok(Client { id: (*address).to_owned(), secret: None, auth: ClientAuth::None })
            }
            Self::Register(at) => register(at, (server, learned_from), back).await,
        }
    }
}

/// Registers the gate for one login.
async fn register(
    at: &Url,
    (server, learned_from): (&ServerMetadata, Place),
    back: &str,
) -> Result<Client, String> {
    #[derive(Deserialize)]
    struct Registered {
        client_id: String,
        #[serde(default)]
        client_secret: Option<Secret>,
    }
    let issuer = shown(&server.issuer);
    let body = json!({
        "client_name": "Portcullis",
        "redirect_uris": [back],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
        // Without it, OpenID Connect takes the client for a web server's and refuses loopback.
        "application_type": "native",
    });
    let headers = vec![(CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    let asked = Asked { method: Method::POST, url: at, headers, body: Bytes::from(body.to_string()) };
    let answer = outbound::ask(asked, learned_from).await?;
    if !matches!(answer.status, 200 | 201) {
        return Err(format!(
            "`{issuer}` refuses to register the gate (HTTP status {}); register it there, and give `--client-id ID`",
            answer.status
        ));
    }
    let registered: Registered = serde_json::from_slice(&answer.body)
        .map_err(|_| format!("`{issuer}` registered the gate, but its answer has no `client_id`"))?;
    let secret = registered.client_secret.filter(|secret| !secret.text().is_empty());
    match secret {
        // It gave one that it may not want.
        Some(secret) if server.takes("client_secret_basic") || server.takes("client_secret_post") => {
            Client::of(registered.client_id, Some(secret), server)
        }
        _ => Ok(Client { id: registered.client_id, secret: None, auth: ClientAuth::None }),
    }
}
