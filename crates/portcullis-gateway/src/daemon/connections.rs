//! Serving connections: how many at once, and for how long one may say nothing.
//!
//! Each listener has its own limit, so that connections over TCP cannot block the socket that the gates use.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::serve::Listener;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::sync::{Semaphore, watch};
use tracing::debug;

/// What the connections of one listener may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Connections at once.
    at_once: usize,
    /// Time for the head of a request, the wait for it included.
    head: Duration,
}

/// Connections over TCP.
pub(super) const TCP: Limits = Limits { at_once: 192, head: SILENT };
/// Connections over the Unix socket: each surface holds one, and one for each call that waits.
pub(super) const UNIX: Limits = Limits { at_once: 512, head: SILENT };
/// How long a client that is alive may say nothing.
const SILENT: Duration = Duration::from_secs(30);

/// Serves at most `at_once` connections until it is told to stop; those that are open may then finish what they do.
pub(super) async fn serve<L>(
    mut listener: L,
    router: Router,
    limits: Limits,
    mut stopped: watch::Receiver<bool>,
) where
    L: Listener,
    L::Addr: std::fmt::Debug,
{
    let room = Arc::new(Semaphore::new(limits.at_once));
    let graceful = GracefulShutdown::new();
    loop {
        let accepted = async {
            let place = Arc::clone(&room).acquire_owned().await;
            (listener.accept().await.0, place)
        };
        let (stream, place) = tokio::select! {
            accepted = accepted => accepted,
            // An error means that the sender is gone, which also means stop.
            _ = stopped.wait_for(|stop| *stop) => break,
        };
        let service = TowerToHyperService::new(router.clone());
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(limits.head)
            .serve_connection(TokioIo::new(stream), service);
        let connection = graceful.watch(connection);
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                debug!("a connection ended: {error}");
            }
            drop(place);
        });
    }
    graceful.shutdown().await;
}

/// Waits for a part of a request for as long as a client that is alive can need.
///
/// # Errors
/// [`io::ErrorKind::TimedOut`].
pub(super) async fn in_time<T>(part: impl Future<Output = T>) -> io::Result<T> {
    tokio::time::timeout(SILENT, part).await.map_err(|_| io::ErrorKind::TimedOut.into())
}

#[cfg(test)]
mod tests {
    use axum::routing::get;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    #[tokio::test]
    async fn who_says_nothing_makes_room_for_others() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = watch::channel(false);
        let router = Router::new().route("/", get(|| async { "here" }));
        let limits = Limits { at_once: 2, head: Duration::from_millis(200) };
        let served = tokio::spawn(serve(listener, router, limits, stopped));
        let mut idle = TcpStream::connect(address).await.unwrap();
        let mut half = TcpStream::connect(address).await.unwrap();
        half.write_all(b"GET / HTTP/1.1\r\nHost: x").await.unwrap();
        let mut third = TcpStream::connect(address).await.unwrap();
        third.write_all(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await.unwrap();
        let mut answer = String::new();
        third.read_to_string(&mut answer).await.unwrap();
        assert!(answer.ends_with("here"), "{answer}");
        let mut rest = Vec::new();
        idle.read_to_end(&mut rest).await.unwrap();
        half.read_to_end(&mut rest).await.unwrap();
        stop.send(true).unwrap();
        served.await.unwrap();
    }
}
