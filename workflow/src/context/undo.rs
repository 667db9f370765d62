//! Undos: what takes an effect back.

use std::any::type_name;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use bytes::Bytes;
use serde::de::DeserializeOwned;

use super::step::{InPlace, Renamed};
use super::{BoxFut, CurrentStep, Cx, States};
use crate::codec::BoxError;
use crate::replay::{Failure, Site};

/// The undo of a site, as the workflow's table has it.
#[derive(Clone, Copy)]
pub struct Undo {
    /// The path of its site.
    pub path: &'static str,
    run: fn(UndoArgs) -> UndoBegun,
}

/// An undo under way.
pub type Undone = BoxFut<'static, Result<(), BoxError>>;

/// An undo that was begun, or why it could not be.
pub type UndoBegun = Result<Undone, BoxError>;

impl Undo {
    /// The undo of a site.
    pub const fn new(path: &'static str, run: fn(UndoArgs) -> UndoBegun) -> Self {
        Self { path, run }
    }

    /// Begins it.
    ///
    /// # Errors
    /// When the recorded output does not decode, or a state is missing.
    pub fn begin(&self, args: UndoArgs) -> Result<Undone, BoxError> {
        let step = args.step.clone();
        let entered = step.enter();
        let mut undoing = (self.run)(args)?;
        drop(entered);
        Ok(Box::pin(std::future::poll_fn(move |cx| {
            let _entered = step.enter();
            undoing.as_mut().poll(cx)
        })))
    }
}

impl fmt::Debug for Undo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Undo").field(&self.path).finish()
    }
}

/// What an undo is called with.
#[derive(Debug)]
pub struct UndoArgs {
    /// What the step gave, as JSON; absent when it is unknown whether it did anything.
    output: Option<Bytes>,
    states: Arc<States>,
    /// The step that is undone.
    step: CurrentStep,
}

impl UndoArgs {
    /// The recorded output, the states that the engine holds, and the step that is undone.
    pub fn new(output: Option<Bytes>, states: Arc<States>, step: CurrentStep) -> Self {
        Self {
            output,
            states,
            step,
        }
    }
}

/// Calls an undo.
///
/// # Errors
/// When the recorded output does not decode, or a state is missing.
pub fn undo<A, H: UndoFn<A>>(handler: H, args: UndoArgs) -> Result<Undone, BoxError> {
    handler.call(args)
}

/// A function or closure that takes an effect back: of the step's output, and of states, each found by its type.
#[diagnostic::on_unimplemented(
    message = "this cannot undo a step",
    label = "not an async function of the step's output and of states that gives `()` or a `Result<(), E>`",
    note = "it takes the step's output by value, or an `Option` of it, then up to five states by value",
    note = "write a closure where the arguments do not fit: `undo(|hold: Hold, pay: Pay| async move {{ pay.refund(&hold).await }})`"
)]
pub trait UndoFn<A> {
    /// What it takes first.
    type First;

    /// Calls it.
    ///
    /// # Errors
    /// When the recorded output does not decode, or a state is missing.
    fn call(self, args: UndoArgs) -> Result<Undone, BoxError>;
}

/// What an undo gives.
#[diagnostic::on_unimplemented(
    message = "an undo gives `()` or a `Result<(), E>`, and not a `{Self}`",
    note = "end it with `Ok(())`, or with `;`"
)]
pub trait UndoResult {
    /// Whether it succeeded.
    ///
    /// # Errors
    /// Its own.
    fn into_result(self) -> Result<(), BoxError>;
}

impl UndoResult for () {
    fn into_result(self) -> Result<(), BoxError> {
        Ok(())
    }
}

impl<E: Into<BoxError>> UndoResult for Result<(), E> {
    fn into_result(self) -> Result<(), BoxError> {
        self.map_err(Into::into)
    }
}

macro_rules! undo_fns {
    ($($($state:ident)*;)*) => { $(
        impl<H, I, Fut, $($state,)*> UndoFn<(I, $($state,)*)> for H
        where
            H: Fn(I, $($state,)*) -> Fut,
            I: DeserializeOwned,
            Fut: IntoFuture<Output: UndoResult, IntoFuture: Send + 'static>,
            $($state: Clone + Send + Sync + 'static,)*
        {
            type First = I;

            fn call(self, args: UndoArgs) -> Result<Undone, BoxError> {
                let json = args.output.as_deref().unwrap_or(b"null");
                let first: I = serde_json::from_slice(json).map_err(|error| {
                    format!("what the step gave does not decode into `{}`: {error}", type_name::<I>())
                })?;
                let future = self(first, $(state::<$state>(&args.states)?,)*).into_future();
                Ok(Box::pin(async move { future.await.into_result() }))
            }
        }
    )* };
}

undo_fns! {
    ;
    S1;
    S1 S2;
    S1 S2 S3;
    S1 S2 S3 S4;
    S1 S2 S3 S4 S5;
}

fn state<S: Clone + Send + Sync + 'static>(states: &States) -> Result<S, BoxError> {
    let found = states.get::<S>().cloned();
    found.ok_or_else(|| {
        format!(
            "the undo asks for a state of type `{}`, which the engine was not given: `.state(..)`",
            type_name::<S>()
        )
        .into()
    })
}

/// What an undo takes first, to look methods up on.
pub struct FirstTag<I>(PhantomData<fn() -> I>);

impl<I> fmt::Debug for FirstTag<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FirstTag").field(&type_name::<I>()).finish()
    }
}

/// What this undo takes first.
pub fn first_of<A, H: UndoFn<A>>(handler: &H) -> FirstTag<H::First> {
    let _ = handler;
    FirstTag(PhantomData)
}

impl<I> FirstTag<Option<I>> {
    /// It also undoes what may not have been done.
    pub fn unknown(&self) -> bool {
        true
    }
}

/// Any other undo is called for what is known to have been done only.
pub trait KnownOnly {
    /// False.
    fn unknown(&self) -> bool {
        false
    }
}

impl<I> KnownOnly for FirstTag<I> {}

/// What an undo may take of a step that gives an `Out`: it, or an `Option` of it.
#[diagnostic::on_unimplemented(
    message = "the undo takes a `{Self}`, and the step gives a `{Out}`",
    label = "takes something else than the step gives",
    note = "the first argument of an undo is the step's output, or an `Option` of it to undo also what may not have been done"
)]
pub trait Undoes<Out, K> {}

/// The output itself.
#[derive(Debug)]
pub enum Itself {}
/// An option of it.
#[derive(Debug)]
pub enum Optional {}

impl<Out> Undoes<Out, Itself> for Out {}
impl<Out> Undoes<Out, Optional> for Option<Out> {}

impl<T, E> InPlace<'_, Result<T, E>> {
    /// Checks that the undo takes what the step gives.
    pub fn undoes<A, K, H: UndoFn<A>>(&self, handler: &H)
    where
        H::First: Undoes<T, K>,
    {
        let _ = handler;
    }
}

impl<T> InPlace<'_, Renamed<Result<T, Failure>>> {
    /// Checks that the undo takes what the step gives.
    pub fn undoes<A, K, H: UndoFn<A>>(&self, handler: &H)
    where
        H::First: Undoes<T, K>,
    {
        let _ = handler;
    }
}

/// An expression that cannot fail.
pub trait PlainUndoes<R> {
    /// Checks that the undo takes what the expression gives.
    fn undoes<A, K, H: UndoFn<A>>(&self, handler: &H)
    where
        H::First: Undoes<R, K>,
    {
        let _ = handler;
    }
}

impl<R> PlainUndoes<R> for InPlace<'_, R> {}

/// Begins the region in which failing means rolling back.
pub fn checkpoint(cx: &Cx, site: &'static Site) {
    cx.run().replay().checkpoint(cx.scope(), site);
}

/// Makes what was done so far final: it is not undone any more.
pub fn settle(cx: &Cx, site: &'static Site) {
    cx.run().replay().settle(cx.scope(), site);
}
