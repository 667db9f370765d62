//! What may be awaited in a workflow, and what may be recorded.

use std::pin::Pin;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Cx;
use crate::replay::Site;

/// A boxed future that may move between threads.
pub type BoxFut<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Boxes a future where the expansions need its output to be known and its type to have a name.
pub fn fut<'a, T>(future: impl Future<Output = T> + Send + 'a) -> BoxFut<'a, T> {
    Box::pin(future)
}

/// An operation that a workflow may await: its outcome is in the history, or follows from it.
#[diagnostic::on_unimplemented(
    message = "this `.await` is not durable",
    label = "not a durable operation",
    note = "a workflow is run again from its history, so everything it awaits must be recorded there",
    note = "help: to record it, put `#[step]` on this statement, or on the function that is called"
)]
pub trait Durable {
    /// What the workflow gets.
    type Output;
    /// The operation under way.
    type Future: Future<Output = Self::Output>;

    /// Begins it at a site.
    fn run(self, cx: &Cx, site: &'static Site) -> Self::Future;
}

/// A value that can be written to a run's history and read back.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be recorded",
    label = "this value would be written to the run's history",
    note = "help: derive `Serialize` and `Deserialize` for it, or give only the part of it that is data"
)]
pub trait Recorded: Serialize + DeserializeOwned {}

#[diagnostic::do_not_recommend]
impl<T: Serialize + DeserializeOwned> Recorded for T {}

/// Marks a function whose return type is a `Result` by name.
#[derive(Debug, Clone, Copy)]
pub struct Fallible;

/// Marks a function that cannot fail.
#[derive(Debug, Clone, Copy)]
pub struct Infallible;

/// A return type, taken apart: `Result<T, E>` of a [`Fallible`] function, any `T` of an [`Infallible`] one.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is named like a `Result` but is none",
    label = "the function counts as fallible because its return type is named `..Result`",
    note = "help: write `#[step(infallible)]` if it cannot fail, or return a `Result<T, E>`"
)]
pub trait Outcome<M> {
    /// The value of a success.
    type Value;
    /// The error.
    type Error;

    /// Takes it apart.
    ///
    /// # Errors
    /// The error that it holds.
    fn split(self) -> Result<Self::Value, Self::Error>;
}

#[diagnostic::do_not_recommend]
impl<T, E> Outcome<Fallible> for Result<T, E> {
    type Value = T;
    type Error = E;

    fn split(self) -> Self {
        self
    }
}

#[diagnostic::do_not_recommend]
impl<T> Outcome<Infallible> for T {
    type Value = T;
    type Error = std::convert::Infallible;

    fn split(self) -> Result<T, std::convert::Infallible> {
        Ok(self)
    }
}
