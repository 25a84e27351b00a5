//! A body that is written on a blocking thread and read by the client meanwhile, never held as a whole.

use std::io::{self, Write};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use hyper::body::{Bytes, Frame};
use tokio::runtime::Handle;
use tokio::sync::mpsc;

/// Pieces that wait for the client.
const PIECES: usize = 8;
/// Size of a piece, in bytes.
const PIECE: usize = 64 << 10;
/// How long a client may take for a piece.
const PATIENCE: Duration = Duration::from_secs(60);

/// The body that `write` writes, off the async threads. Where it fails the body ends short of its end, which the client
/// sees as a connection that broke.
pub(super) fn body<E: std::fmt::Display + Send + 'static>(
    write: impl FnOnce(&mut dyn Write) -> Result<(), E> + Send + 'static,
) -> Body {
    let (sender, pieces) = mpsc::channel(PIECES);
    let runtime = Handle::current();
    tokio::task::spawn_blocking(move || {
        let mut out = io::BufWriter::with_capacity(PIECE, Pieces { sender: sender.clone(), runtime });
        let written = write(&mut out).map_err(|error| error.to_string());
        let written = written.and_then(|()| out.flush().map_err(|error| error.to_string()));
        if let Err(why) = written {
            // Who went away need not be told.
            let _ = sender.try_send(Err(io::Error::other(why)));
        }
    });
    Body::new(Streamed(pieces))
}

struct Pieces {
    sender: mpsc::Sender<io::Result<Bytes>>,
    runtime: Handle,
}

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let piece = Ok(Bytes::copy_from_slice(bytes));
        let sent = self.runtime.block_on(self.sender.send_timeout(piece, PATIENCE));
        sent.map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Streamed(mpsc::Receiver<io::Result<Bytes>>);

impl hyper::body::Body for Streamed {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        self.0.poll_recv(context).map(|piece| piece.map(|piece| piece.map(Frame::data)))
    }
}
