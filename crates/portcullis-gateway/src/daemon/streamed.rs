//! Bodies that come piece by piece, as somebody has them: the client reads meanwhile, and they are never held as a whole.

use std::convert::Infallible;
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

/// A body of the pieces that `next` gives, which is asked again once a piece was sent. It is dropped with the connection,
/// and so is what `next` holds.
pub(crate) fn pieces<E>(
    next: impl FnMut(&mut Context<'_>) -> Poll<Option<Result<Bytes, E>>> + Send + Unpin + 'static,
) -> Body
where
    E: Into<axum::BoxError> + 'static,
{
    Body::new(Pieces(next))
}

/// The same of pieces that cannot fail.
pub(crate) fn sure_pieces(
    mut next: impl FnMut(&mut Context<'_>) -> Poll<Option<Bytes>> + Send + Unpin + 'static,
) -> Body {
    pieces(move |context| next(context).map(|piece| piece.map(Ok::<_, Infallible>)))
}

struct Pieces<F>(F);

impl<F, E> hyper::body::Body for Pieces<F>
where
    F: FnMut(&mut Context<'_>) -> Poll<Option<Result<Bytes, E>>> + Unpin,
{
    type Data = Bytes;
    type Error = E;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, E>>> {
        (self.0)(context).map(|piece| piece.map(|piece| piece.map(Frame::data)))
    }
}

/// The body that `write` writes, off the async threads. Where it fails the body ends short of its end, which the client
/// sees as a connection that broke.
pub(super) fn body<E: std::fmt::Display + Send + 'static>(
    write: impl FnOnce(&mut dyn Write) -> Result<(), E> + Send + 'static,
) -> Body {
    let (sender, mut written) = mpsc::channel(PIECES);
    let runtime = Handle::current();
    tokio::task::spawn_blocking(move || {
        let mut out = io::BufWriter::with_capacity(PIECE, Sending { sender: sender.clone(), runtime });
        let done = write(&mut out).map_err(|error| error.to_string());
        let done = done.and_then(|()| out.flush().map_err(|error| error.to_string()));
        if let Err(why) = done {
            // Who went away need not be told.
            let _ = sender.try_send(Err(io::Error::other(why)));
        }
    });
    pieces(move |context| written.poll_recv(context))
}

struct Sending {
    sender: mpsc::Sender<io::Result<Bytes>>,
    runtime: Handle,
}

impl Write for Sending {
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
