//! The code that an operation runs, without its types.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Attempt;
use super::failing::panic_text;
use crate::codec::{self, BoxError};

/// A future that is sent about.
pub(super) type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// How work ended by itself.
pub(super) enum Ended<T = String> {
    /// With a result, as JSON.
    Value(T),
    /// With an error.
    Error(BoxError),
    /// With a result that cannot be recorded.
    Encode(String),
    /// With a panic.
    Panicked(String),
}

/// What an operation does.
#[derive(Clone)]
pub(super) enum Work {
    Async(Arc<dyn Fn(Attempt) -> BoxFuture<Ended> + Send + Sync>),
    Blocking(Arc<dyn Fn(Attempt) -> Ended + Send + Sync>),
}

impl Work {
    pub(super) fn new<T, F, E>(work: impl Fn(Attempt) -> F + Send + Sync + 'static) -> Self
    where
        T: Serialize + DeserializeOwned,
        F: Future<Output = Result<T, E>> + Send + 'static,
        E: Into<BoxError> + 'static,
    {
        Self::Async(Arc::new(move |attempt| {
            let body = work(attempt);
            Box::pin(async move { encoded(body.await) })
        }))
    }

    pub(super) fn blocking<T, E>(
        work: impl Fn(Attempt) -> Result<T, E> + Send + Sync + 'static,
    ) -> Self
    where
        T: Serialize + DeserializeOwned,
        E: Into<BoxError> + 'static,
    {
        Self::Blocking(Arc::new(move |attempt| encoded(work(attempt))))
    }

    /// Begins an attempt.
    pub(super) fn begin(&self, attempt: Attempt) -> Body {
        match self {
            Self::Async(work) => Body::new(|| work(attempt)),
            Self::Blocking(work) => Body::on_a_thread(Arc::clone(work), attempt),
        }
    }
}

fn encoded<T, E>(returned: Result<T, E>) -> Ended
where
    T: Serialize + DeserializeOwned,
    E: Into<BoxError>,
{
    let value = match returned {
        Ok(value) => value,
        Err(error) => return Ended::Error(error.into()),
    };
    // Read back as well: a result that cannot be is to fail now, and not when it is restored.
    let json = codec::encode(&value).map_err(|error| error.to_string());
    match json.and_then(|encoded| String::from_utf8(encoded.json).map_err(|e| e.to_string())) {
        Ok(json) => Ended::Value(json),
        Err(reason) => Ended::Encode(reason),
    }
}

/// How what an operation did is undone.
#[derive(Clone)]
pub(super) struct UndoWork(Arc<Undoing>);

type Undoing = dyn Fn(Option<&str>, Attempt) -> BoxFuture<Ended<()>> + Send + Sync;

impl UndoWork {
    pub(super) fn new<T, F, E>(
        undo: impl Fn(Option<T>, Attempt) -> F + Send + Sync + 'static,
    ) -> Self
    where
        T: DeserializeOwned,
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<BoxError> + 'static,
    {
        Self(Arc::new(move |result, attempt| {
            let result = match result.map(serde_json::from_str::<T>).transpose() {
                Ok(result) => result,
                Err(error) => return Box::pin(async move { Ended::Error(error.into()) }),
            };
            let body = undo(result, attempt);
            Box::pin(async move {
                match body.await {
                    Ok(()) => Ended::Value(()),
                    Err(error) => Ended::Error(error.into()),
                }
            })
        }))
    }

    pub(super) fn begin(&self, result: Option<&str>, attempt: Attempt) -> Body<()> {
        Body::new(|| (self.0)(result, attempt))
    }
}

/// User code under way. Its panics end here, also those of its `Drop`.
pub(super) struct Body<T = String>(Option<BoxFuture<Ended<T>>>);

impl<T: Send + 'static> Body<T> {
    fn new(make: impl FnOnce() -> BoxFuture<Ended<T>>) -> Self {
        Self(Some(match catch_unwind(AssertUnwindSafe(make)) {
            Ok(body) => body,
            Err(panic) => {
                let said = panic_text(&*panic);
                Box::pin(async { Ended::Panicked(said) })
            }
        }))
    }

    /// Drops the code; gives what a panic said meanwhile.
    fn end(&mut self) -> Option<String> {
        let body = self.0.take();
        let dropped = catch_unwind(AssertUnwindSafe(|| drop(body)));
        dropped.err().map(|panic| panic_text(&*panic))
    }
}

impl Body {
    fn on_a_thread(work: Arc<dyn Fn(Attempt) -> Ended + Send + Sync>, attempt: Attempt) -> Self {
        let occupied = attempt.occupy();
        let thread = tokio::task::spawn_blocking(move || {
            // Nobody waits for it any more when it was given up before there was a thread for it.
            let ended = if attempt.cancellation().is_cancelled() {
                Ended::Panicked("it was given up before it began".to_owned())
            } else {
                catch_unwind(AssertUnwindSafe(|| work(attempt)))
                    .unwrap_or_else(|panic| Ended::Panicked(panic_text(&*panic)))
            };
            drop(work);
            drop(occupied);
            ended
        });
        Self(Some(Box::pin(async {
            thread
                .await
                .unwrap_or_else(|error| Ended::Panicked(error.to_string()))
        })))
    }
}

impl<T: Send + 'static> Future for Body<T> {
    type Output = Ended<T>;

    fn poll(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Ended<T>> {
        let Some(body) = &mut self.0 else {
            return Poll::Pending;
        };
        let polled = catch_unwind(AssertUnwindSafe(|| body.as_mut().poll(task)));
        let ended = match polled {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(ended)) => ended,
            Err(panic) => Ended::Panicked(panic_text(&*panic)),
        };
        // One that panicked may panic again when it is dropped; the first message is the one to tell.
        match (self.end(), ended) {
            (Some(said), Ended::Value(_)) => Poll::Ready(Ended::Panicked(said)),
            (_, ended) => Poll::Ready(ended),
        }
    }
}

impl<T> Drop for Body<T> {
    fn drop(&mut self) {
        let body = self.0.take();
        // A panic here is of work that nobody waits for any more.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(body)));
    }
}
