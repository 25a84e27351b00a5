//! How bytes get to a server and back: the seam at which cassettes are recorded and replayed.

use std::fmt;
use std::ops::ControlFlow;
use std::time::Duration;

use crate::clock::BoxFuture;
use crate::model::ModelError;

/// What the head of a response says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// HTTP status.
    pub status: u16,
    /// The media type, without parameters, in lower case.
    pub media_type: String,
    /// The header `Retry-After`, as it came.
    pub retry_after: Option<String>,
}

/// Who takes a response, piece by piece: its head once, then its bytes as they come.
pub trait Sink: Send {
    /// The head.
    fn head(&mut self, head: &Head);
    /// Some bytes. A break says that the rest is not wanted.
    fn bytes(&mut self, bytes: &[u8]) -> ControlFlow<()>;
}

/// A way to a server.
pub trait Transport: fmt::Debug + Send + Sync {
    /// Posts a body of JSON to where chats are completed. Any status is a success here; an error says that the response
    /// did not come, or not to its end.
    fn post<'a>(
        &'a self,
        body: &'a str,
        time_left: Option<Duration>,
        sink: &'a mut dyn Sink,
    ) -> BoxFuture<'a, Result<(), ModelError>>;

    /// Whether bytes hold a secret of this transport, and so must be neither shown nor recorded.
    fn is_secret(&self, bytes: &[u8]) -> bool {
        let _ = bytes;
        false
    }
}
