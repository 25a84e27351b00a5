//! What is handed to somebody who may go away before it is taken.

use tokio::runtime::Handle;

/// A value on its way. If nobody takes it, wherever it is dropped, what is to be done then is done.
pub(crate) struct Handed<T, B>
where
    B: Future<Output = ()> + Send + 'static,
{
    value: Option<T>,
    back: fn(T) -> Option<B>,
    runtime: Handle,
}

impl<T, B> Handed<T, B>
where
    B: Future<Output = ()> + Send + 'static,
{
    /// A value, and what is done with it if nobody takes it. Within a runtime.
    pub(crate) fn new(value: T, back: fn(T) -> Option<B>) -> Self {
        Self { value: Some(value), back, runtime: Handle::current() }
    }

    /// Takes it. `None` never happens: it is taken once.
    pub(crate) fn take(mut self) -> Option<T> {
        self.value.take()
    }
}

impl<T, B> Drop for Handed<T, B>
where
    B: Future<Output = ()> + Send + 'static,
{
    fn drop(&mut self) {
        if let Some(back) = self.value.take().and_then(self.back) {
            self.runtime.spawn(back);
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::{mpsc, oneshot};

    use super::*;

    type Told = (u8, mpsc::UnboundedSender<u8>);

    fn back((value, told): Told) -> Option<impl Future<Output = ()> + Send + 'static> {
        (value > 0).then_some(async move { told.send(value).unwrap() })
    }

    #[tokio::test]
    async fn what_nobody_takes_comes_back() {
        let (told, mut heard) = mpsc::unbounded_channel();
        // Taken.
        let (answer, answered) = oneshot::channel();
        answer.send(Handed::new((1, told.clone()), back)).ok().unwrap();
        assert_eq!(answered.await.unwrap().take().unwrap().0, 1);
        // The receiver had gone before.
        let (answer, answered) = oneshot::channel();
        drop(answered);
        drop(answer.send(Handed::new((2, told.clone()), back)));
        assert_eq!(heard.recv().await, Some(2));
        // It goes when the value is there.
        let (answer, answered) = oneshot::channel();
        answer.send(Handed::new((3, told.clone()), back)).ok().unwrap();
        drop(answered);
        assert_eq!(heard.recv().await, Some(3));
        // There is nothing to be done.
        drop(Handed::new((0, told), back));
        assert_eq!(heard.recv().await, None);
    }
}
