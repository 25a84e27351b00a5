//! Connections to one server, kept while they last.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use http_body_util::Full;
use hyper::body::{Body as _, Bytes, Incoming};
use hyper::client::conn::http1::SendRequest;
use hyper::{Request, Response};
use tokio::time::{sleep, timeout};

use super::failure::Failure;
use crate::origin::Origin;

/// How long making a connection may take.
const CONNECT_MAX: Duration = Duration::from_secs(10);
/// Idle connections that are kept, and for how long: servers close theirs after five seconds and more, and what is sent at
/// that moment is lost, so that whether it was executed is not known.
const IDLE_MAX: usize = 16;
const IDLE_LASTS: Duration = Duration::from_secs(4);

type Sender = SendRequest<Full<Bytes>>;

#[derive(Debug)]
pub(super) struct Connections {
    origin: Origin,
    idle: Mutex<Idle>,
    idle_lasts: Duration,
}

#[derive(Debug, Default)]
struct Idle {
    kept: Vec<(Sender, Instant)>,
    /// Somebody will close them when their time is over.
    watched: bool,
}

/// An answer whose body is still to be read.
pub(super) struct Answered {
    pub(super) response: Response<Incoming>,
    /// The connection, to be [kept](Connections::keep) once the body was read to its end.
    pub(super) sender: Sender,
}

impl Connections {
    pub(super) fn new(origin: Origin) -> Self {
        Self { origin, idle: Mutex::default(), idle_lasts: IDLE_LASTS }
    }

    pub(super) fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Sends a request, once. A connection that the server had closed is replaced only where nothing of the request was
    /// written on it.
    pub(super) async fn send(
        &self,
        mut request: Request<Full<Bytes>>,
        patience: Duration,
    ) -> Result<Answered, Failure> {
        while let Some(mut sender) = self.kept() {
            if sender.ready().await.is_err() {
                continue;
            }
            match timeout(patience, sender.try_send_request(request)).await {
                Err(_) => return Err(Failure::Silent(patience)),
                Ok(Ok(response)) => return Ok(Answered { response, sender }),
                Ok(Err(mut error)) => match error.take_message() {
                    Some(unsent) => request = unsent,
                    None => return Err(Failure::broken(&error.into_error())),
                },
            }
        }
        let connected = timeout(CONNECT_MAX, self.origin.connect()).await;
        let mut sender = match connected {
            Ok(Ok(sender)) => sender,
            Ok(Err(error)) => return Err(Failure::NotSent(error.to_string())),
            Err(_) => {
                return Err(Failure::NotSent(format!("no connection within {} s", CONNECT_MAX.as_secs())));
            }
        };
        match timeout(patience, sender.try_send_request(request)).await {
            Err(_) => Err(Failure::Silent(patience)),
            Ok(Ok(response)) => Ok(Answered { response, sender }),
            Ok(Err(mut error)) => Err(match error.take_message() {
                Some(_) => Failure::NotSent(error.into_error().to_string()),
                None => Failure::broken(&error.into_error()),
            }),
        }
    }

    fn idle(&self) -> MutexGuard<'_, Idle> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn kept(&self) -> Option<Sender> {
        let mut idle = self.idle();
        loop {
            let (sender, since) = idle.kept.pop()?;
            if since.elapsed() < self.idle_lasts && !sender.is_closed() {
                return Some(sender);
            }
        }
    }

    /// Keeps a connection whose answer has no body.
    pub(super) fn keep_if_empty(self: &Arc<Self>, answered: Answered) {
        if answered.response.body().is_end_stream() {
            self.keep(answered.sender);
        }
    }

    /// Keeps a connection on which an answer was read to its end.
    pub(super) fn keep(self: &Arc<Self>, sender: Sender) {
        let mut idle = self.idle();
        if idle.kept.len() >= IDLE_MAX || sender.is_closed() {
            return;
        }
        idle.kept.push((sender, Instant::now()));
        if !std::mem::replace(&mut idle.watched, true) {
            let connections = Arc::clone(self);
            tokio::spawn(async move { connections.watch().await });
        }
    }

    /// Closes connections that nobody has used in time, so that a session that does nothing holds none.
    async fn watch(self: Arc<Self>) {
        loop {
            sleep(self.idle_lasts).await;
            let mut idle = self.idle();
            idle.kept.retain(|(sender, since)| since.elapsed() < self.idle_lasts && !sender.is_closed());
            if idle.kept.is_empty() {
                idle.watched = false;
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;
    use tokio::net::TcpListener;
    use url::Url;

    use super::*;

    #[tokio::test]
    async fn a_connection_that_nobody_uses_is_closed() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let origin = Origin::of(&Url::parse(&url).unwrap()).unwrap();
        let mut connections = Connections::new(origin);
        connections.idle_lasts = Duration::from_millis(50);
        let connections = Arc::new(connections);
        for _ in 0..2 {
            connections.keep(connections.origin.connect().await.unwrap());
            let (mut far, _) = listener.accept().await.unwrap();
            let closed = timeout(Duration::from_secs(10), far.read(&mut [0; 1])).await;
            assert_eq!(closed.expect("it stays open").unwrap(), 0);
        }
        assert!(connections.kept().is_none());
    }
}
