//! What the gate says of itself as a resource (RFC 9728), and of a caller.

use axum::extract::{Path, State};
use axum::http::header::CACHE_CONTROL;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde_json::json;
use url::Url;

use super::{Denied, McpCaller};
use crate::api::CallerInfo;
use crate::daemon::Shared;
use crate::daemon::error::Failure;

/// The well-known places of the metadata: at the root, and beside the path of the resource.
pub(in crate::daemon) fn routes(router: Router<Shared>) -> Router<Shared> {
    router
        .route("/.well-known/oauth-protected-resource", get(at_root))
        .route("/.well-known/oauth-protected-resource/{*path}", get(beside_path))
}

async fn at_root(State(shared): State<Shared>) -> Result<Response, Failure> {
    metadata(&shared, None)
}

async fn beside_path(State(shared): State<Shared>, Path(path): Path<String>) -> Result<Response, Failure> {
    metadata(&shared, Some(&path))
}

/// Nobody is asked for a token: who has none reads here where to get one.
fn metadata(shared: &Shared, path: Option<&str>) -> Result<Response, Failure> {
    let bundle = shared.gate.bundles().get(None).ok().map(|(_, bundle)| bundle);
    let oauth = bundle.as_ref().and_then(|bundle| bundle.oauth.as_ref());
    let oauth = oauth.ok_or_else(|| Failure::not_found("this gate takes no access tokens of others"))?;
    let own = Url::parse(&oauth.resource).map(|own| own.path().trim_matches('/').to_owned());
    if path.is_some_and(|path| path != "mcp" && own.as_deref() != Ok(path)) {
        return Err(Failure::not_found("this gate has no such resource"));
    }
    let servers: Vec<&str> = oauth.issuers.iter().map(|issuer| issuer.url.as_str()).collect();
    let mut document = json!({
        "resource": oauth.resource,
        "authorization_servers": servers,
        "bearer_methods_supported": ["header"],
        "resource_name": "Portcullis",
    });
    // An empty list would be asked for as it is.
    if let Some(document) = document.as_object_mut().filter(|_| !oauth.scopes.is_empty()) {
        document.insert("scopes_supported".to_owned(), json!(oauth.scopes));
    }
    Ok(([(CACHE_CONTROL, "max-age=300")], Json(document)).into_response())
}

/// `GET /v1/caller`: whom a token stands for, so that an operator sees what the bundle makes of it.
pub(in crate::daemon) async fn caller(McpCaller(identity): McpCaller) -> Result<Json<CallerInfo>, Denied> {
    Ok(Json(CallerInfo {
        kind: identity.kind,
        principal: identity.principal.id,
        roles: identity.principal.roles,
        policy: identity.policy,
    }))
}
