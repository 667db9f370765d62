//! Steps: effects whose outcome is recorded.

mod alone;
mod attempt;
mod critical;
mod in_place;
mod options;
mod run;
mod source;
mod verdict;
mod via;

use std::sync::Arc;

use super::{BoxFut, Cx, Durable, Fallible, Outcome, Recorded, StepError, opaque_debug};
use crate::codec::{self, BoxError};
use crate::replay::Site;

pub use alone::Alone;
pub use critical::{Critical, critical};
pub use in_place::{
    Awaited, ChildOptioned, InPlace, Optioned, Renamed, RenamedChild, RenamedFragment, RenamedRun,
    RenamedStep, in_place,
};
pub use options::{StepOptions, millis};
pub use run::StepRun;
pub use via::{NoResult, Tag, Via, tag};

use source::Source;

/// Traits whose methods the expansions look up: imported as a whole, without names.
pub mod lookup {
    pub use super::super::undo::{KnownOnly as _, PlainUndoes as _};
    pub use super::in_place::{Foreign as _, Plain as _};
    pub use super::via::{Borrowed as _, PlainTag as _, Typed as _, Untyped as _, Viewed as _};
}

/// What a `#[step]` function returns: an effect, to be awaited in a workflow, where its outcome is recorded.
///
/// Awaited anywhere else, in a unit test, say, it runs once and gives what the function's code gives.
#[must_use = "help: `.await` it: a step that was only called does nothing"]
pub struct Step<'s, R: Outcome<M>, M = Fallible> {
    source: Source<'s, R>,
    options: StepOptions,
    typing: Typing<R, R::Value>,
    retry_if: Option<RetryIf<'s, R>>,
}

impl<R: Outcome<M>, M> std::fmt::Debug for Step<'_, R, M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Step")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// Whether an attempt that gave this may be followed by another.
type RetryIf<'s, R> = Box<dyn Fn(&R) -> bool + Send + Sync + 's>;

/// A step, from a body that can be made for each attempt. That comes last: what is made after it would have to know how to
/// drop it, in each function that is a step.
pub fn step<'s, R, M>(
    options: StepOptions,
    via: Via<R>,
    body: Box<dyn Fn() -> BoxFut<'s, R> + Send + 's>,
) -> Step<'s, R, M>
where
    R: Outcome<M>,
    R::Value: Recorded + Send,
    R::Error: StepError,
{
    Step::new(Source::Owned(body), options, via)
}

/// A step whose body runs on a thread that may block.
pub fn blocking_step<R, M>(
    options: StepOptions,
    via: Via<R>,
    body: Arc<dyn Fn() -> R + Send + Sync>,
) -> Step<'static, R, M>
where
    R: Outcome<M> + Send + 'static,
    R::Value: Recorded + Send,
    R::Error: StepError,
{
    Step::new(source::blocking(body), options, via)
}

impl<'s, R, M> Step<'s, R, M>
where
    R: Outcome<M>,
    R::Value: Recorded + Send,
    R::Error: StepError,
{
    fn new(source: Source<'s, R>, options: StepOptions, via: Via<R>) -> Self {
        Self {
            source,
            options,
            typing: Typing::of(via),
            retry_if: None,
        }
    }
}

impl<'s, T, E> Step<'s, Result<T, E>, Fallible> {
    /// An error for which `retry_if` is false ends the step: it is not tried again.
    pub fn retry_if(mut self, retry_if: impl Fn(&E) -> bool + Send + Sync + 's) -> Self {
        self.retry_if = Some(on_errors(retry_if));
        self
    }
}

impl<R: Outcome<M>, M> Step<'_, R, M> {
    /// The options of the site where it is awaited, over its own.
    fn overridden(mut self, options: StepOptions) -> Self {
        self.options = options.over(self.options);
        self
    }
}

fn on_errors<'s, T, E>(
    retry_if: impl Fn(&E) -> bool + Send + Sync + 's,
) -> RetryIf<'s, Result<T, E>> {
    Box::new(move |result| result.as_ref().err().is_none_or(&retry_if))
}

#[diagnostic::do_not_recommend]
impl<'s, R: Outcome<M>, M> Durable for Step<'s, R, M> {
    type Output = Result<R::Value, crate::replay::Failure>;
    type Future = StepRun<'s, R, R::Value>;

    fn run(self, cx: &Cx, site: &'static Site) -> Self::Future {
        StepRun::new(
            cx,
            site,
            self.source,
            self.options,
            self.typing,
            self.retry_if,
        )
    }
}

impl<'s, R: Outcome<M>, M> IntoFuture for Step<'s, R, M> {
    type Output = R;
    type IntoFuture = Alone<'s, R>;

    fn into_future(self) -> Alone<'s, R> {
        Alone::new(self.source)
    }
}

/// How what a body gives becomes bytes, and how these become a value again. Function pointers, so that only whoever defines
/// a step proves that its types can do it.
struct Typing<R, T> {
    split: fn(R) -> Result<T, BoxError>,
    encode: fn(&T) -> serde_json::Result<codec::Encoded<T>>,
    decode: fn(&[u8]) -> serde_json::Result<T>,
    via: Via<R>,
}

impl<R, T> Typing<R, T> {
    fn of<M>(via: Via<R>) -> Self
    where
        R: Outcome<M, Value = T>,
        T: Recorded,
        R::Error: StepError,
    {
        Self {
            split: |returned| returned.split().map_err(StepError::boxed),
            encode: codec::encode,
            decode: |json| serde_json::from_slice(json),
            via,
        }
    }
}

opaque_debug!(<R> Alone<'_, R>, <R> InPlace<'_, R>, <T> RenamedRun<'_, T>);
