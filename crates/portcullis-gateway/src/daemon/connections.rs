//! Serving connections: how many at once, and for how long one may say nothing.
//!
//! Each listener has its own limit, so that connections over TCP cannot block the socket that the gates use. A listener
//! that is full ends the connection that has been idle for longest, so that connections that are only held open do not
//! keep others out.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::serve::{Listener, ListenerExt as _};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tracing::debug;

use super::idle::{IdleConnections, Noted, Place};

/// What the connections of one listener may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Connections at once.
    at_once: usize,
    /// Time for the head of a request, the wait for it included.
    head: Duration,
}

/// Connections over TCP: an MCP client holds one for what its servers say of themselves.
pub(super) const TCP: Limits = Limits { at_once: 2048, head: SILENT };
/// Connections over the Unix socket: each surface holds one, and one for each call that waits.
pub(super) const UNIX: Limits = Limits { at_once: 512, head: SILENT };
/// How long a client that is alive may say nothing.
const SILENT: Duration = Duration::from_secs(30);

/// Connections over TCP on which what is said goes out at once: an event of a stream does not wait until the one before was
/// acknowledged.
pub(super) fn prompt(listener: TcpListener) -> impl Listener<Addr = std::net::SocketAddr> {
    listener.tap_io(|stream| {
        if let Err(error) = stream.set_nodelay(true) {
            debug!("a connection may be slow: {error}");
        }
    })
}

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
    let idle = Arc::new(IdleConnections::default());
    let graceful = GracefulShutdown::new();
    loop {
        let accepted = async {
            let stream = listener.accept().await.0;
            if room.available_permits() == 0 {
                idle.end_longest();
            }
            (stream, Arc::clone(&room).acquire_owned().await)
        };
        let (stream, permit) = tokio::select! {
            accepted = accepted => accepted,
            // An error means that the sender is gone, which also means stop.
            _ = stopped.wait_for(|stop| *stop) => break,
        };
        let place = Place::new(&idle);
        let service = Noted::new(TowerToHyperService::new(router.clone()), Arc::clone(&place));
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(limits.head)
            .serve_connection(TokioIo::new(stream), service);
        let connection = graceful.watch(connection);
        tokio::spawn(async move {
            tokio::select! {
                ended = connection => {
                    if let Err(error) = ended {
                        debug!("a connection ended: {error}");
                    }
                }
                () = place.ended() => debug!("an idle connection was ended to make room"),
            }
            drop(permit);
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
    use tokio::net::TcpStream;

    use super::*;

    #[tokio::test]
    async fn connections_that_are_only_held_open_make_room_at_once() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = watch::channel(false);
        let release = Arc::new(tokio::sync::Notify::new());
        let held = Arc::clone(&release);
        let slow = get(move || async move {
            held.notified().await;
            "slow"
        });
        let router = Router::new().route("/", get(|| async { "here" })).route("/slow", slow);
        let limits = Limits { at_once: 3, head: Duration::from_secs(3_600) };
        let served = tokio::spawn(serve(listener, router, limits, stopped));
        let ask = async |path: &str| {
            let mut stream = TcpStream::connect(address).await.unwrap();
            let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
            stream.write_all(request.as_bytes()).await.unwrap();
            stream
        };
        let mut busy = ask("/slow").await;
        // One request made, then silence: idle again.
        let mut kept = TcpStream::connect(address).await.unwrap();
        kept.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
        let mut head = [0; 12];
        kept.read_exact(&mut head).await.unwrap();
        let mut idle = Vec::new();
        for _ in 0..20 {
            idle.push(TcpStream::connect(address).await.unwrap());
            let mut answer = String::new();
            ask("/").await.read_to_string(&mut answer).await.unwrap();
            assert!(answer.ends_with("here"), "{answer}");
        }
        release.notify_one();
        let mut answer = String::new();
        busy.read_to_string(&mut answer).await.unwrap();
        assert!(answer.ends_with("slow"), "what is being answered is not ended: {answer}");
        drop((idle, kept));
        stop.send(true).unwrap();
        served.await.unwrap();
    }

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
