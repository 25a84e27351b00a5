//! The servers behind the gate: one that answers by script, in a thread of its own within the bench process.

use std::net::SocketAddr;
use std::task::Poll;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, Request, State};
use axum::http::{Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::any;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use portcullis_session::workload;
use portcullis_wire::jsonrpc::MESSAGE_BYTES_MAX;
use portcullis_wire::mcp::headers::SESSION_ID;
use portcullis_wire::mcp::{INITIALIZE, TOOLS_CALL, TOOLS_LIST, V_2025_11_25};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::super::BenchError;
use crate::daemon::streamed;

/// Tools of each server, of those that the workload knows.
pub(super) const TOOLS: usize = 10;
/// How long the servers take that take their time.
pub(super) const WORK: Duration = Duration::from_millis(500);
/// How long a connection stays on which nothing is asked: what servers on Node and uvicorn do unless they are told otherwise.
const IDLE: Duration = Duration::from_secs(5);

/// How a server answers calls of its tools. It is a part of its address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pace {
    AtOnce,
    /// After [`WORK`].
    Later,
    Never,
}

impl Pace {
    const ALL: [Self; 3] = [Self::AtOnce, Self::Later, Self::Never];

    pub(super) fn path(self) -> &'static str {
        match self {
            Self::AtOnce => "at-once",
            Self::Later => "later",
            Self::Never => "never",
        }
    }
}

/// The servers, at one address; they end with the bench process.
#[derive(Debug, Clone, Copy)]
pub(super) struct Upstream {
    address: SocketAddr,
}

impl Upstream {
    /// Starts the servers, and what an issuer of tokens publishes beside them.
    pub(super) fn start(keys: Value) -> Result<Self, BenchError> {
        let failed = || BenchError::io("start the servers behind the gate");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed())?;
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).map_err(failed())?;
        let address = listener.local_addr().map_err(failed())?;
        let router = Router::new()
            .route("/mcp/{pace}/{name}", any(serve))
            .route("/.well-known/{*of}", any(metadata))
            .route("/keys", any(publish))
            .with_state(Published { address, keys });
        std::thread::Builder::new()
            .name("bench-servers".to_owned())
            .spawn(move || runtime.block_on(listen(listener, router)))
            .map_err(failed())?;
        Ok(Self { address })
    }

    /// The address of the issuer.
    pub(super) fn issuer(self) -> String {
        format!("http://{}", self.address)
    }

    /// The address of a server, by which it is known to the gate.
    pub(super) fn url(self, pace: Pace, name: &str) -> String {
        format!("http://{}/mcp/{}/{name}", self.address, pace.path())
    }
}

async fn listen(listener: TcpListener, router: Router) {
    while let Ok((stream, _)) = listener.accept().await {
        let _slower = stream.set_nodelay(true);
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(IDLE)
            .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router.clone()));
        // Who goes away need not be told.
        tokio::spawn(async move { drop(connection.await) });
    }
}

#[derive(Debug, Clone)]
struct Published {
    address: SocketAddr,
    keys: Value,
}

async fn metadata(State(of): State<Published>) -> Response {
    let issuer = format!("http://{}", of.address);
    json_body(&json!({
        "issuer": issuer, "jwks_uri": format!("{issuer}/keys"), "response_types_supported": ["code"],
        "authorization_endpoint": format!("{issuer}/authorize"), "token_endpoint": format!("{issuer}/token"),
        "code_challenge_methods_supported": ["S256"],
    }))
}

async fn publish(State(of): State<Published>) -> Response {
    json_body(&of.keys)
}

fn json_body(value: &Value) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], value.to_string()).into_response()
}

/// A message of the gate, as far as it is looked at.
#[derive(Deserialize)]
struct Message<'m> {
    #[serde(borrow)]
    id: Option<&'m RawValue>,
    method: String,
}

async fn serve(Path((pace, _)): Path<(String, String)>, request: Request) -> Response {
    let pace = Pace::ALL.into_iter().find(|of| of.path() == pace);
    match (request.method(), pace) {
        (&Method::POST, Some(pace)) => {
            match axum::body::to_bytes(request.into_body(), MESSAGE_BYTES_MAX).await {
                Ok(body) => answer(pace, &body).await,
                Err(_) => StatusCode::BAD_REQUEST.into_response(),
            }
        }
        // The stream of its own messages, of which it has none.
        (&Method::GET, Some(_)) => {
            let silent = streamed::sure_pieces(|_| Poll::<Option<Bytes>>::Pending);
            ([(header::CONTENT_TYPE, "text/event-stream")], silent).into_response()
        }
        (&Method::DELETE, Some(_)) => StatusCode::NO_CONTENT.into_response(),
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

async fn answer(pace: Pace, body: &[u8]) -> Response {
    let Ok(Message { id, method }) = serde_json::from_slice(body) else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let Some(id) = id else { return StatusCode::ACCEPTED.into_response() };
    let result = match method.as_str() {
        INITIALIZE => json!({
            "protocolVersion": V_2025_11_25, "capabilities": {"tools": {}},
            "serverInfo": {"name": pace.path(), "version": "1"},
        }),
        TOOLS_LIST => {
            let schema = json!({"type": "object"});
            let tools =
                (0..TOOLS).map(|number| json!({"name": workload::tool(number), "inputSchema": schema}));
            json!({"tools": tools.collect::<Vec<_>>()})
        }
        TOOLS_CALL => {
            match pace {
                Pace::AtOnce => {}
                Pace::Later => tokio::time::sleep(WORK).await,
                Pace::Never => std::future::pending().await,
            }
            json!({"content": [{"type": "text", "text": "the note was filed"}]})
        }
        _ => json!({}),
    };
    let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
    let mut response = ([(header::CONTENT_TYPE, "application/json")], body).into_response();
    if method == INITIALIZE {
        let id = axum::http::HeaderValue::from_static("of-the-bench");
        response.headers_mut().insert(SESSION_ID, id);
    }
    response
}
