//! A workflow's body: from its code to how the run ended.

use std::any::type_name;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::{
    Args, BoxFut, Cx, Outcome, Park, Recorded, Run, StepError, Undo, Via, Workflow, opaque_debug,
    thrown,
};
use crate::codec;
use crate::replay::{Failure, Finished, Location, ParkReason, Payload, Site};

/// A workflow's code under way. Ends with how the run ended, or with why it cannot go on.
#[must_use = "futures do nothing unless polled"]
pub struct Body {
    run: Arc<Run>,
    code: BoxFut<'static, Result<Finished, Park>>,
}

opaque_debug!(Body);

impl Future for Body {
    type Output = Result<Finished, Park>;

    fn poll(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        match catch_unwind(AssertUnwindSafe(|| this.code.as_mut().poll(task))) {
            Ok(Poll::Ready(ended)) => Poll::Ready(ended),
            Ok(Poll::Pending) => match this.run.parked() {
                Some(park) => Poll::Ready(Err(park.clone())),
                None => Poll::Pending,
            },
            Err(panic) => Poll::Ready(Err(Park {
                reason: ParkReason::Panicked,
                detail: format!(
                    "the workflow's own code panicked: {}",
                    panic_message(&*panic)
                ),
                location: None,
            })),
        }
    }
}

impl Body {
    /// A body from code that is the library's own.
    pub(super) fn of(run: Arc<Run>, code: BoxFut<'static, Result<Finished, Park>>) -> Self {
        Self { run, code }
    }
}

/// The body of a workflow, from its code.
pub fn body<W: Workflow>(
    args: Args,
    via: Via<W::Returns>,
    code: impl FnOnce(Cx) -> BoxFut<'static, W::Returns>,
) -> Body {
    let cx = begin(args, W::SITES, W::UNDOS);
    let code = code(cx.clone());
    returning(cx, via, code)
}

// What follows is compiled once, or once for all workflows that return the same: each line of `body` is compiled for each.

fn begin(args: Args, sites: &'static [Site], undos: &'static [Undo]) -> Cx {
    let states = args.states();
    let run = args.into_run();
    run.replay().knows(sites);
    if !undos.is_empty() {
        run.undone_by(undos, states);
    }
    Cx::root(run)
}

fn returning<R, M>(cx: Cx, via: Via<R>, code: BoxFut<'static, R>) -> Body
where
    R: Outcome<M, Value: Recorded, Error: StepError> + 'static,
{
    let run = Arc::clone(cx.run());
    let code = Box::pin(async move {
        let returned = code.await;
        end(cx.run(), &via, returned)
    });
    Body { run, code }
}

/// What a workflow returned, as how the run ended.
fn end<R, M>(run: &Run, via: &Via<R>, returned: R) -> Result<Finished, Park>
where
    R: Outcome<M, Value: Recorded, Error: StepError>,
{
    let typed = via.value(&returned);
    let seen = via
        .view(&returned)
        .map(|error| failure_of(error, via.error_name(), typed.clone()));
    match returned.split() {
        Ok(value) => encode_result(run, &value).map(Finished::Completed),
        Err(error) => {
            let failure = seen.unwrap_or_else(|| {
                let error = error.boxed();
                failure_of(&*error, via.error_name(), typed)
            });
            Ok(Finished::Failed(codec::seal_failure(run.codec(), failure)))
        }
    }
}

fn failure_of(
    error: &(dyn std::error::Error + 'static),
    name: &str,
    typed: Option<Vec<u8>>,
) -> Failure {
    if let Some(failure) = error.downcast_ref::<Failure>() {
        return failure.clone();
    }
    thrown::returned(error, name, Location::root(), typed.map(Payload::json))
}

pub(super) fn encode_result<T: Recorded>(run: &Run, value: &T) -> Result<Payload, Park> {
    let sealed = match codec::encode(value) {
        Ok(encoded) => run.seal(encoded.json),
        Err(error) => Err(error.into()),
    };
    sealed.map_err(|error| Park {
        reason: ParkReason::Encode,
        detail: format!(
            "the workflow's result, a `{}`, cannot be recorded: {error}",
            type_name::<T>()
        ),
        location: None,
    })
}

/// What a panic said.
pub fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    if let Some(text) = panic.downcast_ref::<&str>() {
        return (*text).to_owned();
    }
    match panic.downcast_ref::<String>() {
        Some(text) => text.clone(),
        None => "a value that is no text".to_owned(),
    }
}
