//! A workflow as the engine knows it, and a call of one.

use std::fmt;
use std::future::{Pending, pending};
use std::marker::PhantomData;

use super::{
    ArgError, Args, Body, Cx, Durable, Input, InputError, Outcome, Recorded, StateType, StepError,
};
use crate::replay::{Failure, Site};

/// A durable function. `#[workflow]` implements it for the type it makes of the function's name.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a workflow",
    label = "not made by `#[workflow]`",
    note = "put `#[workflow]` on the function, and use its name as the type: `Engine::builder().workflow(checkout)`"
)]
pub trait Workflow: Sized + 'static {
    /// Its name in the store.
    const NAME: &'static str;
    /// Everything durable it does, in source order.
    const SITES: &'static [Site];
    /// Whether its return type is a `Result`.
    type Mark: 'static;
    /// Its return type.
    type Returns: Outcome<Self::Mark, Value: Recorded + Send + 'static, Error: StepError> + 'static;

    /// The states it asks for.
    fn states() -> Vec<StateType>;

    /// Calls it.
    ///
    /// # Errors
    /// When its recorded input does not decode, or a state is missing.
    fn run(args: Args) -> Result<Body, ArgError>;
}

/// The value of a workflow: its return type, or the `T` of its `Result<T, E>`.
pub type Output<W> = <<W as Workflow>::Returns as Outcome<<W as Workflow>::Mark>>::Value;

/// A workflow that another may await. There is none yet: the bound is there for its words.
#[diagnostic::on_unimplemented(
    message = "the workflow `{Self}` cannot be awaited like a step",
    label = "this is a run of its own, not a step of this one",
    note = "to do this as part of this run, make the function a `#[fragment]`; to start another run, do it in a `#[step]` that has the engine"
)]
pub trait Awaitable {}

impl<W: Workflow + Awaitable> Durable for Call<W> {
    type Output = Result<Output<W>, Failure>;
    type Future = Pending<Self::Output>;

    fn run(self, _: &Cx, _: &'static Site) -> Self::Future {
        pending()
    }
}

/// A workflow and its arguments: give it to the engine.
#[must_use = "a workflow that was only called does nothing: give it to the engine"]
pub struct Call<W> {
    input: Input,
    workflow: PhantomData<fn() -> W>,
}

impl<W> Call<W> {
    /// The arguments, as the run's input.
    ///
    /// # Errors
    /// When an argument does not survive JSON.
    pub fn into_json(self) -> Result<Vec<u8>, InputError> {
        self.input.into_json()
    }
}

impl<W: Workflow> fmt::Debug for Call<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Call").field(&W::NAME).finish()
    }
}

/// Calls a workflow.
pub fn call<W>(input: Input) -> Call<W> {
    Call {
        input,
        workflow: PhantomData,
    }
}
