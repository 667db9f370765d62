//! What may stand between a step and its body: a test does.

use std::sync::Arc;
use std::task::{Context, Poll};

use super::undo::Undone;
use super::{BoxFut, CurrentStep};
use crate::codec::BoxError;

/// Who is asked before the body of an attempt, or of an undo, begins.
pub trait Intervening: Send + Sync {
    /// What is to stand before the body of this attempt of a run of this workflow; nothing in most cases.
    fn attempt(&self, workflow: &str, step: &CurrentStep) -> Option<Box<dyn Intervention>>;

    /// The same, for the undo of that step.
    fn undo(&self, workflow: &str, step: &CurrentStep) -> Option<Box<dyn Intervention>>;
}

/// What stands before one body. Polled in the body's place, within its span, and as long as the attempt has time.
pub trait Intervention: Send {
    /// Ready with what is to be taken in place of what the body gave; with nothing, when that stands. Then the body has ended.
    ///
    /// `body` polls the body, and makes it when it is called first. It is not called after it was ready.
    fn poll(
        &mut self,
        task: &mut Context<'_>,
        body: &mut dyn FnMut(&mut Context<'_>) -> Poll<()>,
    ) -> Poll<Option<Instead>>;
}

/// What is taken in place of what a body gave.
#[derive(Debug)]
pub enum Instead {
    /// This value, as JSON.
    Value(Vec<u8>),
    /// This error.
    Error {
        /// The error.
        error: BoxError,
        /// The name of its type, and its own value as JSON, where they are known.
        typed: Option<(&'static str, Vec<u8>)>,
    },
}

/// An undo with what stands before it.
pub(crate) fn intervened(
    intervening: Option<&Arc<dyn Intervening>>,
    workflow: &str,
    step: &CurrentStep,
    mut undoing: Undone,
) -> Undone {
    let intervention = intervening.and_then(|who| who.undo(workflow, step));
    let Some(mut intervention) = intervention else {
        return undoing;
    };
    let mut ended = None;
    let around: BoxFut<'static, _> = Box::pin(std::future::poll_fn(move |task| {
        let mut body =
            |task: &mut Context<'_>| undoing.as_mut().poll(task).map(|end| ended = Some(end));
        let instead = std::task::ready!(intervention.poll(task, &mut body));
        Poll::Ready(match instead {
            Some(Instead::Value(_)) => Ok(()),
            Some(Instead::Error { error, .. }) => Err(error),
            None => ended.take().unwrap_or(Ok(())),
        })
    }));
    around
}
