//! A scripted daemon stand-in for tests: a server on the Unix socket that answers `/v1` as the test says, keeps
//! what it was asked, and can die like a process: at once, with all its connections.

use std::fs;
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body, Bytes, Frame, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::UnixListener;
use tokio::task::{JoinHandle, JoinSet};

use crate::home::Home;

pub(crate) const RUN: &str = "11111111111111111111111111111111";
pub(crate) const TOKEN: &str = "agent-token";

pub(crate) type Answer = Pin<Box<dyn Future<Output = (u16, Value)> + Send>>;
type Handler = Arc<dyn Fn(&str, Value) -> Answer + Send + Sync>;

/// What the daemon was asked: method and path, and the body.
pub(crate) type Asked = Arc<Mutex<Vec<(String, Value)>>>;

#[derive(Debug)]
pub(crate) struct StandIn {
    pub(crate) asked: Asked,
    task: JoinHandle<()>,
}

impl Drop for StandIn {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A state folder with a token in it.
pub(crate) fn home(dir: &Path) -> Home {
    let home = Home::at(dir).unwrap();
    fs::create_dir_all(home.credentials()).unwrap();
    fs::write(dir.join("credentials/agent.token"), format!("{TOKEN}\n")).unwrap();
    home
}

/// An answer that is there at once.
pub(crate) fn now(status: u16, body: Value) -> Answer {
    Box::pin(async move { (status, body) })
}

pub(crate) fn refusal(status: u16, code: &str, message: &str) -> Answer {
    now(status, json!({"error": {"code": code, "message": message}}))
}

/// What an ordinary daemon says to what every client asks, or `None` for the rest.
pub(crate) fn usual(path: &str) -> Option<Answer> {
    let digest = "d".repeat(64);
    match path {
        "GET /v1/health" => Some(now(
            200,
            json!({"status": "ok", "version": "0", "pid": 1, "home": "/", "bundle": digest, "runs_live": 0,
                   "store": "ok", "log": "ok", "reload_error": null}),
        )),
        "POST /v1/runs" => Some(now(
            200,
            json!({"run": RUN, "segment": "2".repeat(32), "policy": "p", "bundle": digest, "mode": "enforce",
                   "shared": false, "disabled_tools": []}),
        )),
        _ if path.ends_with("/close") => Some(now(200, json!({}))),
        _ => None,
    }
}

impl StandIn {
    /// Answers on the socket of `home` with what `answer` makes of method, path and body.
    pub(crate) fn start(home: &Home, answer: impl Fn(&str, Value) -> Answer + Send + Sync + 'static) -> Self {
        let _ = fs::remove_file(home.socket());
        let listener = UnixListener::bind(home.socket()).unwrap();
        let asked = Asked::default();
        let (handler, log): (Handler, Asked) = (Arc::new(answer), Arc::clone(&asked));
        let task = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (handler, log) = (Arc::clone(&handler), Arc::clone(&log));
                connections.spawn(async move {
                    let service =
                        service_fn(move |request| respond(Arc::clone(&handler), Arc::clone(&log), request));
                    let server = hyper::server::conn::http1::Builder::new();
                    let _ = server.serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        Self { asked, task }
    }

    /// The bodies of what was asked of a path that ends like that.
    pub(crate) fn asked(&self, ending: &str) -> Vec<Value> {
        let asked = self.asked.lock().unwrap();
        asked.iter().filter(|(path, _)| path.ends_with(ending)).map(|(_, body)| body.clone()).collect()
    }
}

async fn respond(
    handler: Handler,
    log: Asked,
    request: Request<Incoming>,
) -> Result<Response<BoxBody<Bytes, std::convert::Infallible>>, hyper::Error> {
    let authorized =
        request.headers().get("authorization").is_some_and(|token| token == &format!("Bearer {TOKEN}"));
    let path = format!("{} {}", request.method(), request.uri());
    let body = request.into_body().collect().await?.to_bytes();
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    log.lock().unwrap().push((path.clone(), body.clone()));
    if path.ends_with("/attach") {
        return Ok(Response::new(Endless { greeted: false }.boxed()));
    }
    let (status, answer) = if authorized {
        handler(&path, body).await
    } else {
        refusal(401, "unauthorized", "the token is not known").await
    };
    let body = Full::new(Bytes::from(answer.to_string())).boxed();
    Ok(Response::builder().status(status).body(body).unwrap())
}

/// One heartbeat, and then nothing forever.
struct Endless {
    greeted: bool,
}

impl Body for Endless {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if std::mem::replace(&mut self.greeted, true) {
            Poll::Pending
        } else {
            Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"\n")))))
        }
    }
}
