//! HTTP/1.1 over the Unix socket, with connections that are kept.
//!
//! A connection carries one request at a time, and a held call keeps its connection for as long as it waits,
//! so there are as many connections as there are requests at once; the idle ones are kept for the next.
//! Dropping a request closes its connection: that is how a caller tells the daemon that it no longer waits.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use portcullis_hook::folder;
use tokio::net::UnixStream;
use tokio::task::JoinHandle;

use super::error::ClientError;

/// Most idle connections that are kept.
const IDLE_MAX: usize = 16;
/// How long a connection is kept: less than the daemon keeps one that is idle, which must not end between the two.
const IDLE: Duration = Duration::from_secs(15);

pub(super) type Body = Full<Bytes>;

/// One connection; its task ends with it.
#[derive(Debug)]
pub(super) struct Connection {
    sender: SendRequest<Body>,
    task: JoinHandle<()>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The connections to one daemon.
#[derive(Debug)]
pub(super) struct Pool {
    socket: PathBuf,
    idle: Mutex<Vec<(Connection, Instant)>>,
}

impl Pool {
    pub(super) fn new(socket: PathBuf) -> Self {
        Self { socket, idle: Mutex::new(Vec::new()) }
    }

    /// Sends a request; the response's head is there, its body still to be read from the connection.
    pub(super) async fn send(
        &self,
        mut request: Request<Body>,
    ) -> Result<(Response<Incoming>, Connection), ClientError> {
        while let Some(mut connection) = self.take() {
            if connection.sender.is_closed() || connection.sender.ready().await.is_err() {
                continue;
            }
            match connection.sender.try_send_request(request).await {
                Ok(response) => return Ok((response, connection)),
                // A daemon that went away meanwhile never saw it: the next connection may try.
                Err(mut error) => match error.take_message() {
                    Some(unsent) => request = unsent,
                    None => return Err(lost(&error.into_error())),
                },
            }
        }
        let mut connection = connect(&self.socket).await?;
        let response = connection.sender.send_request(request).await.map_err(|error| lost(&error))?;
        Ok((response, connection))
    }

    /// Reads a body of at most `limit` bytes to its end and keeps the connection.
    pub(super) async fn finish(
        &self,
        body: Incoming,
        connection: Connection,
        limit: usize,
    ) -> Result<Bytes, ClientError> {
        let whole = Limited::new(body, limit).collect().await.map_err(|error| {
            let why = if error.is::<LengthLimitError>() {
                format!("the answer is longer than {limit} bytes")
            } else {
                error.to_string()
            };
            ClientError::Lost(why)
        })?;
        self.keep(connection);
        Ok(whole.to_bytes())
    }

    pub(super) fn keep(&self, connection: Connection) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < IDLE_MAX && !connection.sender.is_closed() {
            idle.push((connection, Instant::now()));
        }
    }

    fn take(&self) -> Option<Connection> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let (connection, kept) = idle.pop()?;
        if kept.elapsed() < IDLE {
            return Some(connection);
        }
        // The others have been idle for longer.
        idle.clear();
        None
    }
}

async fn connect(socket: &Path) -> Result<Connection, ClientError> {
    let stream = UnixStream::connect(socket)
        .await
        .map_err(|source| ClientError::NotRunning { socket: socket.to_owned(), source })?;
    check_listener(socket, &stream)
        .map_err(|source| ClientError::Listener { socket: socket.to_owned(), source })?;
    let (sender, connection) = handshake(TokioIo::new(stream)).await.map_err(|error| lost(&error))?;
    let task = tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!("a connection to the daemon ended: {error}");
        }
    });
    Ok(Connection { sender, task })
}

/// The token is handed to the listener, and its word is trusted.
fn check_listener(socket: &Path, stream: &UnixStream) -> io::Result<()> {
    folder::check_listener(socket, stream.peer_cred()?.uid(), own_user()?)
}

/// The user of this process, as the system tells it to anyone who is at the other end of a socket.
pub(crate) fn own_user() -> io::Result<u32> {
    let (one, _other) = UnixStream::pair()?;
    one.peer_cred().map(|user| user.uid())
}

fn lost(error: &hyper::Error) -> ClientError {
    ClientError::Lost(error.to_string())
}
