//! A server behind an address, which answers what a table says.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderName, StatusCode, Uri};
use serde_json::Value;
use tokio::net::TcpListener;

/// The field of `_meta` by which a request says which answer it wants.
pub(super) const WANTED: &str = "example.test/answer";

/// The messages that answer the request with this number in `_meta`. An answer that is JSON has room for the first.
pub(super) type Answers = Arc<dyn Fn(u64, &Value) -> Vec<Vec<u8>> + Send + Sync>;

/// Serves on loopback until the runtime ends; the address, without a path. Below `/events` answers are streams of
/// events, elsewhere JSON.
pub(super) async fn serve(answers: Answers) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let router = Router::new().fallback(answer).with_state(answers);
    tokio::spawn(async move { axum::serve(listener, router).await });
    url
}

async fn answer(
    State(answers): State<Answers>,
    uri: Uri,
    body: String,
) -> (StatusCode, [(HeaderName, &'static str); 1], Vec<u8>) {
    let (json, events) = ("application/json", "text/event-stream");
    let Ok(request) = serde_json::from_str::<Value>(&body) else {
        return (StatusCode::METHOD_NOT_ALLOWED, [(CONTENT_TYPE, json)], Vec::new());
    };
    if request.get("id").is_none() {
        return (StatusCode::ACCEPTED, [(CONTENT_TYPE, json)], Vec::new());
    }
    let wanted = request["params"]["_meta"][WANTED].as_u64().unwrap_or_default();
    let messages = answers(wanted, &request);
    if uri.path().starts_with("/events") {
        let event = |message: &Vec<u8>| [b"data: ", message.as_slice(), b"\n\n"].concat();
        return (StatusCode::OK, [(CONTENT_TYPE, events)], messages.iter().flat_map(event).collect());
    }
    (StatusCode::OK, [(CONTENT_TYPE, json)], messages.into_iter().next().unwrap_or_default())
}
