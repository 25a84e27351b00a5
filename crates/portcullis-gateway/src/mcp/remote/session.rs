//! Sessions of revisions that have them: begun, opened again, and ended.

use std::time::Duration;

use hyper::body::Bytes;
use hyper::header::HeaderValue;
use hyper::{Method, Response};
use portcullis_wire::jsonrpc::{Message, peek};
use portcullis_wire::mcp::headers::SESSION_ID;
use portcullis_wire::mcp::{INITIALIZE, INITIALIZED};
use tokio::time::timeout;

use super::answer::Pending;
use super::failure::Failure;
use super::request::Mirrored;
use super::{Sent, Shared};

/// How long the end of a session may take to be told.
const FAREWELL_MAX: Duration = Duration::from_secs(1);

/// A session of a revision that has them.
#[derive(Debug, Clone, Default)]
pub(super) struct Session {
    pub(super) id: Option<HeaderValue>,
    pub(super) version: Option<String>,
    /// Counts the sessions.
    pub(super) generation: u64,
    /// The client's first messages, to open another session with.
    pub(super) hello: Option<Bytes>,
    pub(super) initialized: Option<Bytes>,
}

/// What a server says of a session that is opened.
#[derive(Debug, Default)]
pub(super) struct Opened {
    pub(super) id: Option<HeaderValue>,
    pub(super) version: Option<String>,
}

impl Session {
    /// The server has answered the client's first message.
    pub(super) fn begin(&mut self, id: Option<HeaderValue>, hello: Bytes) {
        let generation = self.generation + 1;
        *self = Self { id, hello: Some(hello), generation, ..Self::default() };
    }
}

impl Shared {
    /// Opens another session with the client's own first messages, unless that was done since `seen`.
    pub(super) async fn reopen(&self, seen: u64) -> Result<(), Failure> {
        let lost = |why: &str| Failure::SessionLost(why.to_owned());
        let _alone = self.reopening.lock().await;
        let before = self.session().clone();
        if before.generation != seen {
            return Ok(());
        }
        let (Some(hello), Some(initialized)) = (before.hello, before.initialized) else {
            return Err(lost("its first messages did not pass here"));
        };
        let Ok(Message::Request { id, .. }) = peek(&hello) else {
            return Err(lost("its first message is no request"));
        };
        let first = Sent {
            body: hello,
            mirrored: None,
            asked: vec![id.clone()],
            method: Some(INITIALIZE.to_owned()),
        };
        let mut pending = Pending {
            kept: Some(Vec::new()),
            again: Some(Opened::default()),
            ..Pending::new(vec![id], first.method.clone(), false)
        };
        let opened = self.ask_itself(&first, &mut pending).await;
        // What goes wrong is not the outcome of the call for which the session is opened.
        opened.map_err(|failure| lost(&failure.to_string()))?;
        let Opened { id, version } = pending.again.unwrap_or_default();
        if version != before.version {
            return Err(lost("it speaks another revision now; start the gate again"));
        }
        let mirrored = Mirrored::of_session(version.as_deref(), id.as_ref())?;
        let second = Sent {
            body: initialized.clone(),
            mirrored: Some(mirrored),
            asked: Vec::new(),
            method: Some(INITIALIZED.to_owned()),
        };
        let mut pending = Pending::new(Vec::new(), second.method.clone(), false);
        let told = self.ask_itself(&second, &mut pending).await;
        told.map_err(|failure| lost(&failure.to_string()))?;
        {
            // Only now, so that no other request comes into it before.
            let mut session = self.session();
            session.begin(id, first.body);
            (session.version, session.initialized) = (version, Some(initialized));
        }
        self.reopened.notify_waiters();
        tracing::warn!(
            "the server did not know the session any more; another one was opened, which is subscribed to no resources"
        );
        Ok(())
    }

    /// Waits until another session than the one of this generation is open.
    pub(super) async fn reopened_since(&self, generation: u64) {
        loop {
            let reopened = self.reopened.notified();
            if self.session().generation != generation {
                return;
            }
            reopened.await;
        }
    }

    /// Ends the session.
    pub(super) async fn take_leave(&self) {
        if self.session().id.is_none() {
            return;
        }
        let nothing = Sent { body: Bytes::new(), mirrored: None, asked: Vec::new(), method: None };
        let told = timeout(FAREWELL_MAX, self.send_once(Method::DELETE, None, &[], &nothing)).await;
        if !matches!(told, Ok(Ok(_))) {
            tracing::debug!("the server was not told that the session has ended");
        }
    }
}

/// The id of the session that an answer opens.
pub(super) fn session_id<B>(response: &Response<B>) -> Result<Option<HeaderValue>, Failure> {
    let Some(id) = response.headers().get(SESSION_ID) else { return Ok(None) };
    match id.as_bytes().iter().all(|byte| matches!(byte, 0x21..=0x7e)) && id.len() <= 1024 {
        // A copy: the header is a part of all that was read with it.
        true => HeaderValue::from_bytes(id.as_bytes())
            .map(Some)
            .map_err(|_| Failure::NotAResponse("its session id is invalid".to_owned())),
        false => Err(Failure::NotAResponse("its session id is invalid".to_owned())),
    }
}
