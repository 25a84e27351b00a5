//! One request to an upstream, to see whether it takes the gate's credential.

use hyper::Method;
use hyper::body::Bytes;
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use serde_json::json;
use url::Url;

use super::standing::standings;
use super::{AuthError, Authorization, Retry, UpstreamAuth};
use crate::home::Home;
use crate::oauth::outbound::{self, Answer, Asked, Place};

/// Asks the upstream of a name for nothing, as a request of an agent would be sent: with the credential that there is, and
/// once more if it could be renewed. Gives the HTTP status.
///
/// # Errors
/// There is no such upstream, it cannot be reached, or what a person has to do.
pub async fn probe(home: &Home, name: &str) -> Result<u16, AuthError> {
    let unusable = |why: String| AuthError::Unusable { name: name.escape_debug().to_string(), why };
    let all = standings(home).map_err(unusable)?;
    let found = all.into_iter().find(|of| of.name == name);
    let found = found
        .ok_or_else(|| unusable("there is none; log in, or add an entry to `upstreams.toml`".to_owned()))?;
    let url = Url::parse(&found.url).map_err(|error| unusable(error.to_string()))?;
    let auth = UpstreamAuth::new(home, name, url.clone())?;
    let used = auth.authorization().await?;
    let answer = ping(&url, used.as_ref()).await.map_err(unusable)?;
    if auth.challenged(answer.status, &answer.challenges, used.as_ref()).await? == Retry::No {
        return Ok(answer.status);
    }
    let used = auth.authorization().await?;
    let answer = ping(&url, used.as_ref()).await.map_err(unusable)?;
    match auth.challenged(answer.status, &answer.challenges, used.as_ref()).await? {
        Retry::No => Ok(answer.status),
        Retry::Again => Err(unusable("it was refused twice while it changed; try again".to_owned())),
    }
}

/// Sends a request that asks for nothing, and reads the head of the answer.
pub(super) async fn ping(url: &Url, used: Option<&Authorization>) -> Result<Answer, String> {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }).to_string();
    let mut headers = vec![
        (CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (ACCEPT, HeaderValue::from_static("application/json, text/event-stream")),
    ];
    headers.extend(used.cloned());
    let asked = Asked { method: Method::POST, url, headers, body: Bytes::from(body) };
    // The operator named the upstream, wherever it is.
    outbound::ask_head(asked, Place::Loopback).await
}
