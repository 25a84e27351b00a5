//! Which connections wait for a request, and for how long: the one that has waited longest is ended where there is no
//! room for another.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use axum::response::Response;
use hyper::Request;
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::service::Service;
use tokio::sync::Notify;

/// The connections of a listener that wait for a request, in the order in which they began to.
#[derive(Debug, Default)]
pub(super) struct IdleConnections(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    next: u64,
    since: BTreeMap<u64, Arc<Notify>>,
}

impl IdleConnections {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the connection that has waited longest, if one waits.
    pub(super) fn end_longest(&self) {
        if let Some((_, ended)) = self.lock().since.pop_first() {
            ended.notify_one();
        }
    }
}

/// A connection among the others of its listener.
#[derive(Debug)]
pub(super) struct Place {
    idle: Arc<IdleConnections>,
    /// Under which number it waits; none while a request is being answered.
    since: Mutex<Option<u64>>,
    ended: Arc<Notify>,
}

impl Place {
    /// A connection that was just accepted, and waits for its first request.
    pub(super) fn new(idle: &Arc<IdleConnections>) -> Arc<Self> {
        let place = Self { idle: Arc::clone(idle), since: Mutex::new(None), ended: Arc::new(Notify::new()) };
        place.wait();
        Arc::new(place)
    }

    /// Resolves when the connection has to end. One that took up a request in the last moment goes on.
    pub(super) async fn ended(&self) {
        loop {
            self.ended.notified().await;
            if self.since.lock().unwrap_or_else(PoisonError::into_inner).is_some() {
                return;
            }
        }
    }

    fn wait(&self) {
        let mut waiting = self.idle.lock();
        let number = waiting.next;
        waiting.next += 1;
        waiting.since.insert(number, Arc::clone(&self.ended));
        *self.since.lock().unwrap_or_else(PoisonError::into_inner) = Some(number);
    }

    fn work(&self) {
        let number = self.since.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(number) = number {
            self.idle.lock().since.remove(&number);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.work();
    }
}

/// A request of a connection that is being answered, until the last byte of the answer.
#[derive(Debug)]
struct Busy(Arc<Place>);

impl Busy {
    fn begin(place: &Arc<Place>) -> Self {
        place.work();
        Self(Arc::clone(place))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.wait();
    }
}

/// A service whose connection is not idle while it answers.
#[derive(Debug)]
pub(super) struct Noted<S> {
    inner: S,
    place: Arc<Place>,
}

impl<S> Noted<S> {
    pub(super) fn new(inner: S, place: Arc<Place>) -> Self {
        Self { inner, place }
    }
}

impl<S> Service<Request<Incoming>> for Noted<S>
where
    S: Service<Request<Incoming>, Response = Response>,
    S::Future: Send + 'static,
{
    type Response = Response<Answer>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, S::Error>> + Send>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let busy = Busy::begin(&self.place);
        let answered = self.inner.call(request);
        Box::pin(async move { Ok(answered.await?.map(|body| Answer { body, _busy: busy })) })
    }
}

/// The body of an answer.
#[derive(Debug)]
pub(super) struct Answer {
    body: Body,
    _busy: Busy,
}

impl hyper::body::Body for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
