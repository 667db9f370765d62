//! What the code of a stage is given, and what it gives.

use std::fmt;

use super::position::{Entry, StageName};
use crate::codec::BoxError;
use crate::context::{BoxFut, Cx, Fragment, StepError, guiding};

/// What the code of a stage is given: the person's data as it was when the code began, and why it runs.
#[derive(Debug, Clone)]
pub struct Stage<S> {
    pub(super) name: StageName,
    pub(super) visit: u32,
    pub(super) entry: Entry,
    pub(super) state: S,
}

impl<S> Stage<S> {
    /// The stage's name.
    pub fn name(&self) -> &StageName {
        &self.name
    }

    /// How many times the stage was entered or tried again, this time included.
    pub fn visit(&self) -> u32 {
        self.visit
    }

    /// Why it runs.
    pub fn entry(&self) -> Entry {
        self.entry
    }

    /// The person's data, as it was when the code began. What is edited meanwhile does not show here, so that the code comes out the
    /// same when it is replayed.
    pub fn state(&self) -> &S {
        &self.state
    }
}

/// Durable code of a stage, whatever its error type.
pub(super) struct Work(Box<dyn FnOnce(Cx) -> BoxFut<'static, Result<(), BoxError>> + Send>);

impl Work {
    pub(super) fn of<E: StepError + 'static>(fragment: Fragment<'static, Result<(), E>>) -> Self {
        Self(Box::new(move |cx| {
            let code = guiding::begin(fragment, cx);
            Box::pin(async move { code.await.map_err(StepError::boxed) })
        }))
    }

    /// Begins it in this scope.
    pub(super) fn begin(self, cx: Cx) -> BoxFut<'static, Result<(), BoxError>> {
        (self.0)(cx)
    }
}

impl fmt::Debug for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Work").finish_non_exhaustive()
    }
}
