//! Undos: what takes an effect back.

use std::any::type_name;
use std::fmt;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use serde::de::DeserializeOwned;

use super::intervene::intervened;
use super::step::{InPlace, Renamed};
use super::wait::Operation;
use super::{BoxFut, CurrentStep, Cx, Park, Run, States, Values, opaque_debug};
use crate::codec::{self, BoxError};
use crate::replay::{Attempt, Backoff, Failure, FailureKind, LedgerEntry, Op, ParkReason, Site};

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
    /// The recorded output, and states; whoever polls the undo says which step it is of.
    pub fn of(output: Option<Bytes>, states: States) -> Self {
        Self::new(output, Arc::new(states), CurrentStep::alone())
    }

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
    note = "help: write a closure where the arguments do not fit: `undo(|hold: Hold, pay: Pay| async move {{ pay.refund(&hold).await }})`"
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
    note = "help: end it with `Ok(())`, or with `;`"
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
    note = "help: take the step's output first, `{Out}`, or an `Option` of it to undo also what may not have been done; states come after it"
)]
pub trait Undoes<Out, K> {}

/// The output itself.
#[derive(Debug)]
pub enum Itself {}
/// An option of it.
#[derive(Debug)]
pub enum Optional {}

#[diagnostic::do_not_recommend]
impl<Out> Undoes<Out, Itself> for Out {}
#[diagnostic::do_not_recommend]
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

/// Undoes what was done since a checkpoint, newest first, and goes on. `of` is the scope that the checkpoint stands in.
pub fn rollback(cx: &Cx, site: &'static Site, of: &Cx, checkpoint: &'static str) -> RollingBack {
    let to = of
        .run()
        .replay()
        .scope_location(of.scope())
        .site(checkpoint);
    RollingBack {
        operation: Operation::new(cx, site, Op::Rollback { to }),
        state: Rolling::Asking,
        tried: 0,
    }
}

/// How often an undo is tried in one go. After that the run is parked, and an operator decides.
pub(crate) const ATTEMPTS: u32 = 4;

/// How long an attempt may take, as a step may when nothing is said.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(30);

/// A rollback to a checkpoint, under way.
#[must_use = "futures do nothing unless polled"]
pub struct RollingBack {
    operation: Operation,
    state: Rolling,
    /// How often the undo at hand was tried in this go.
    tried: u32,
}

enum Rolling {
    Asking,
    /// The undo of this entry runs, until its time is up.
    Undoing(LedgerEntry, CurrentStep, Undone, BoxFut<'static, ()>),
    /// An attempt failed; the next one follows then.
    Waiting(BoxFut<'static, ()>),
    /// It ended, or it never will.
    Spent,
}

opaque_debug!(RollingBack);

impl Future for RollingBack {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let run = Arc::clone(this.operation.cx.run());
        loop {
            match &mut this.state {
                Rolling::Spent => return Poll::Pending,
                Rolling::Waiting(wait) => {
                    ready!(wait.as_mut().poll(task));
                    this.state = Rolling::Asking;
                }
                Rolling::Asking => {
                    if this.operation.poll(task).is_ready() {
                        this.state = Rolling::Spent;
                        return Poll::Ready(());
                    }
                    let Some(ticket) = this.operation.ticket() else {
                        return Poll::Pending;
                    };
                    let entry = ready!(run.replay().poll_undo(ticket, task.waker()));
                    match begin(&run, &entry) {
                        Ok((step, undoing)) => {
                            let timeout = run.host().sleep(TIMEOUT);
                            this.state = Rolling::Undoing(entry, step, undoing, timeout);
                        }
                        Err(park) => {
                            run.park(park);
                            this.state = Rolling::Spent;
                            return Poll::Pending;
                        }
                    }
                }
                Rolling::Undoing(entry, step, undoing, timeout) => {
                    let undoing = AssertUnwindSafe(|| undoing.as_mut().poll(task));
                    let ended = match catch_unwind(undoing) {
                        Ok(Poll::Pending) => {
                            ready!(timeout.as_mut().poll(task));
                            Err("it took longer than 30 seconds".into())
                        }
                        Ok(Poll::Ready(ended)) => ended,
                        Err(panic) => Err(super::body::panic_message(&*panic).into()),
                    };
                    let ended = ended.and_then(|()| run.seal_values(step.take_values()));
                    let entry = entry.clone();
                    this.ended(&run, &entry, ended);
                }
            }
        }
    }
}

impl RollingBack {
    /// An attempt ended, having put these values.
    fn ended(&mut self, run: &Run, entry: &LedgerEntry, ended: Result<Values, BoxError>) {
        let (outcome, values) = match ended {
            Ok(values) => (Ok(()), values),
            Err(error) => {
                let (kind, location) = (FailureKind::Exhausted, entry.location.clone());
                let failure = Failure::from_error(kind, location, "", &*error);
                (Err(failure), Values::new())
            }
        };
        let failed = outcome.as_ref().err().map(ToString::to_string);
        if let Some(ticket) = self.operation.ticket() {
            let attempt = entry.attempts + 1;
            run.replay()
                .undone(ticket, entry.number, attempt, outcome, values);
        }
        self.state = match failed {
            None => {
                self.tried = 0;
                Rolling::Asking
            }
            Some(failure) => {
                self.tried += 1;
                if self.tried == ATTEMPTS {
                    run.park(undo_failed(entry, &failure));
                    Rolling::Spent
                } else {
                    let wait = Backoff::DEFAULT.wait(self.tried, 0.0);
                    Rolling::Waiting(run.host().sleep(wait))
                }
            }
        };
    }
}

/// Begins the undo of an entry.
fn begin(run: &Run, entry: &LedgerEntry) -> Result<(CurrentStep, Undone), Park> {
    let Some((undo, states)) = run.undo(&entry.undo) else {
        return Err(undo_missing(entry));
    };
    let output = entry
        .output
        .as_ref()
        .map(|payload| codec::open(run.codec(), payload))
        .transpose();
    let seed = {
        let replay = run.replay();
        (replay.seed(), replay.generation())
    };
    let step = CurrentStep::recorded(
        run.id().clone(),
        entry.location.clone(),
        entry.location.clone(),
        Attempt {
            number: entry.attempts + 1,
            last: None,
        },
        Some(run.host().now().after(TIMEOUT)),
        seed,
    );
    let args = |output| UndoArgs::new(output, states, step.clone());
    let begun = output.and_then(|output| undo.begin(args(output)));
    let undoing = begun.map(|undoing| match run.host().intervening() {
        Some((intervening, workflow)) => intervened(Some(intervening), workflow, &step, undoing),
        None => undoing,
    });
    undoing
        .map(|undoing| (step.clone(), undoing))
        .map_err(|error| undo_failed(entry, &error.to_string()))
}

/// The run has to be parked: this code has no undo for an entry.
pub(crate) fn undo_missing(entry: &LedgerEntry) -> Park {
    Park {
        reason: ParkReason::UndoMissing,
        detail: format!(
            "`{}` is to be undone, and this code has no undo at `{}`\n  \
             ways out: deploy code that has it, or skip it: `engine.skip_undo(id, {}, \"why\")`",
            entry.location, entry.undo, entry.number
        ),
        location: Some(entry.location.clone()),
    }
}

/// The run has to be parked: an undo keeps failing.
pub(crate) fn undo_failed(entry: &LedgerEntry, failure: &str) -> Park {
    Park {
        reason: ParkReason::UndoFailed,
        detail: format!(
            "the undo of `{}` keeps failing: {failure}\n  \
             ways out: mend what it needs and `engine.resume(id)`, or skip it: `engine.skip_undo(id, {}, \"why\")`",
            entry.location, entry.number
        ),
        location: Some(entry.location.clone()),
    }
}
