//! Standard input, read on a thread of its own.
//!
//! A read of standard input cannot be interrupted, and a runtime waits for its blocking reads before it ends. A
//! plain thread is not waited for: when the server is gone, the gate can exit though its client says nothing.

use std::io::{self, Read as _};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::thread;

use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::mpsc;

/// Bytes read at once, and how many such pieces may wait to be taken.
const READ_BYTES: usize = 64 * 1024;
const PIECES_MAX: usize = 4;

#[derive(Debug)]
pub(super) struct Stdin {
    pieces: mpsc::Receiver<io::Result<Vec<u8>>>,
    piece: Vec<u8>,
    taken: usize,
}

/// Standard input; to be called once.
pub(super) fn reader() -> Stdin {
    let (sender, pieces) = mpsc::channel(PIECES_MAX);
    let failed = sender.clone();
    let spawned = thread::Builder::new().name("stdin".to_owned()).spawn(move || {
        let mut stdin = io::stdin().lock();
        let mut chunk = vec![0; READ_BYTES];
        loop {
            let piece = match stdin.read(&mut chunk) {
                Ok(0) => return,
                Ok(read) => Ok(chunk.get(..read).unwrap_or_default().to_vec()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => Err(error),
            };
            let last = piece.is_err();
            if sender.blocking_send(piece).is_err() || last {
                return;
            }
        }
    });
    if let Err(error) = spawned {
        // The channel is empty, so there is room.
        let _ = failed.try_send(Err(error));
    }
    Stdin { pieces, piece: Vec::new(), taken: 0 }
}

impl AsyncRead for Stdin {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.taken >= self.piece.len() {
            match ready!(self.pieces.poll_recv(context)) {
                None => return Poll::Ready(Ok(())),
                Some(piece) => (self.piece, self.taken) = (piece?, 0),
            }
        }
        let rest = self.piece.get(self.taken..).unwrap_or_default();
        let part = rest.get(..buffer.remaining()).unwrap_or(rest);
        buffer.put_slice(part);
        let taken = part.len();
        self.taken += taken;
        Poll::Ready(Ok(()))
    }
}
