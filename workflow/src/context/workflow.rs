//! A workflow as the engine and other workflows know it, and a call of one.

use std::fmt;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use super::wait::Operation;
use super::{
    ArgError, Args, Body, Cx, Durable, Input, InputError, Outcome, Recorded, StateType, StepError,
    Undo, opaque_debug,
};
use crate::codec::{self, BoxError};
use crate::graph::Graph;
use crate::replay::{ChildStart, Failure, FailureKind, Kind, Op, RunId, Site, Terms, Timestamp};

/// A durable function. `#[workflow]` implements it for the type it makes of the function's name.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a workflow",
    label = "not made by `#[workflow]`",
    note = "help: put `#[workflow]` on the function, and use its name as the type: `Engine::builder().workflow(checkout)`"
)]
pub trait Workflow: Sized + 'static {
    /// Its name in the store.
    const NAME: &'static str;
    /// Everything durable it does, in source order.
    const SITES: &'static [Site];
    /// How these stand in each other, as the macros print it.
    #[doc(hidden)]
    const OUTLINE: &'static str = "";
    /// How these stand in each other and follow each other.
    const GRAPH: Graph = Graph::new(Self::NAME, Self::SITES, Self::OUTLINE);
    /// The undos of its steps, by the paths of their sites.
    const UNDOS: &'static [Undo] = &[];
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

/// A workflow and its arguments: give it to the engine, or await it in another workflow, which makes it a child run.
///
/// A child run has a history of its own and is driven on its own. Its id is its parent's and the location of the call:
/// `order-17/parcel`. It is cancelled when its parent is, or when the branch that waits for it loses a race. Its failure is a
/// [`FailureKind::Child`](crate::FailureKind::Child) with the child's own inside. A workflow may call itself: each level is a run.
///
/// ```
/// # use workflow::{Failure, workflow};
/// #[workflow]
/// async fn parcel(item: String) -> Result<u32, Failure> {
///     Ok(item.len() as u32)
/// }
///
/// #[workflow]
/// async fn order(item: String) -> Result<u32, Failure> {
///     Ok(parcel(item).await?)
/// }
/// ```
#[must_use = "help: give it to the engine, or `.await` it in a workflow: one that was only called does nothing"]
pub struct Call<W> {
    input: Input,
    id: Option<String>,
    terms: Terms,
    workflow: PhantomData<fn() -> W>,
}

impl<W: Workflow> Call<W> {
    /// Gives the child run an id of its own, instead of its parent's and the location of the call. A run that has this id
    /// already is not started again.
    ///
    /// Asked only where the call is awaited in a workflow: a run that the engine starts has the id given there.
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Begins it so long from now: it is stored at once, is in no memory while it waits, and may be cancelled before it begins. Where
    /// [`not_before`](Self::not_before) is said, too, the later of the two times counts. Nothing and less is at once.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use workflow::{Engine, Failure, MemoryStore, RunState, workflow};
    /// # #[workflow]
    /// # async fn remind(order: String) -> Result<usize, Failure> { Ok(order.len()) }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), workflow::Error> {
    /// # let engine = Engine::builder().workflow(remind).store(MemoryStore::new()).build().await?;
    /// const DAY: Duration = Duration::from_secs(86_400);
    ///
    /// let run = engine.start("remind-17", remind("order-17".to_owned()).delay(3 * DAY)).await?;
    /// let status = run.status().await?;
    /// assert_eq!((status.state, status.wake_at), (RunState::Waiting, status.not_before));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// A run that was started before has begun, or begins, when its first start said: what a second one says of it counts for
    /// nothing.
    pub fn delay(mut self, delay: Duration) -> Self {
        self.terms.delay = Some(delay);
        self
    }

    /// Does not begin it before this time: a [`Timestamp`], or a [`SystemTime`](std::time::SystemTime). As [`delay`](Self::delay).
    pub fn not_before(mut self, time: impl Into<Timestamp>) -> Self {
        self.terms.not_before = Some(time.into());
        self
    }

    /// Where the run stands among those that wait for a slot of their workflow's [`Limit`](crate::Limit), for its
    /// [`Rate`](crate::Rate), or for [room in memory](crate::EngineBuilder::in_memory): the higher goes first, and of equals the one
    /// that was started first. 0 unless it is said; a child has its parent's. It is recorded with the run, and stays; what a second
    /// start of the run says of it counts for nothing.
    ///
    /// Nobody is put out of memory for a run of a higher priority, and nobody's own priority grows while it waits: as long as such
    /// runs keep coming, the lower ones wait.
    pub fn priority(mut self, priority: i32) -> Self {
        self.terms.priority = Some(priority);
        self
    }

    /// When it is to begin, and before whom.
    #[cfg(feature = "engine")]
    pub(crate) fn terms(&self) -> Terms {
        self.terms
    }

    /// Does not wait for the child: awaiting this gives its id as soon as it is stored, and it goes on whatever becomes of its
    /// parent.
    pub fn detach(self) -> Detached<W> {
        Detached(self)
    }

    fn start(self, cx: &Cx, site: &'static Site, detached: bool) -> (Operation, RunId) {
        let location = cx.location_of(site);
        let (_, generation) = cx.identity();
        let usual = RunId::child(cx.run().id(), &location, generation);
        let given = match &self.id {
            Some(id) => RunId::new(id).map_err(BoxError::from),
            None => Ok(usual.clone()),
        };
        let id = given.as_ref().map_or(usual, Clone::clone);
        let terms = self.terms;
        let op = given.and_then(|id| {
            let json = self.into_json()?;
            Ok(Op::Child(ChildStart {
                id,
                workflow: W::NAME,
                input_hash: codec::canonical_hash(&json),
                input: cx.run().seal(json)?,
                location: location.clone(),
                detached,
                terms,
            }))
        });
        let op = op.unwrap_or_else(|error| Op::Failed {
            kind: Kind::Child,
            failure: Failure::new(FailureKind::Encode, location, error.to_string()),
        });
        (Operation::new(cx, site, op), id)
    }
}

#[diagnostic::do_not_recommend]
impl<W: Workflow> Durable for Call<W> {
    type Output = Result<Output<W>, Failure>;
    type Future = ChildRun<W>;

    fn run(self, cx: &Cx, site: &'static Site) -> ChildRun<W> {
        let (operation, _) = self.start(cx, site, false);
        ChildRun {
            operation,
            workflow: PhantomData,
        }
    }
}

/// A child run that is waited for.
#[must_use = "futures do nothing unless polled"]
pub struct ChildRun<W> {
    operation: Operation,
    workflow: PhantomData<fn() -> W>,
}

impl<W: Workflow> Future for ChildRun<W> {
    type Output = Result<Output<W>, Failure>;

    fn poll(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Self::Output> {
        let run = Arc::clone(self.operation.cx.run());
        match ready!(self.operation.poll(task)).into_result() {
            Ok(payload) => match run.decode(&payload) {
                Ok(value) => Poll::Ready(Ok(value)),
                Err(error) => {
                    run.park_at_decode::<Output<W>>(&self.operation.location(), &error);
                    Poll::Pending
                }
            },
            Err(failure) => Poll::Ready(Err(codec::open_failure(run.codec(), failure))),
        }
    }
}

/// A child run that is not waited for.
#[must_use = "help: `.await` it in a workflow: one that was only called does nothing"]
pub struct Detached<W>(Call<W>);

#[diagnostic::do_not_recommend]
impl<W: Workflow> Durable for Detached<W> {
    type Output = Result<RunId, Failure>;
    type Future = Detaching;

    fn run(self, cx: &Cx, site: &'static Site) -> Detaching {
        let (operation, id) = self.0.start(cx, site, true);
        Detaching { operation, id }
    }
}

/// A child run on its way into the store.
#[must_use = "futures do nothing unless polled"]
pub struct Detaching {
    operation: Operation,
    id: RunId,
}

opaque_debug!(<W> ChildRun<W>, <W> Detached<W>, Detaching);

impl Future for Detaching {
    type Output = Result<RunId, Failure>;

    fn poll(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Self::Output> {
        let started = ready!(self.operation.poll(task)).into_result();
        Poll::Ready(started.map(|_| self.id.clone()))
    }
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

/// What may be awaited where no workflow is around: no workflow. It is only there to say so.
#[diagnostic::on_unimplemented(
    message = "a workflow is awaited in another workflow only",
    label = "there is no run here that it could be a child of",
    note = "help: give it to an engine instead: `engine.run(\"order-17\", {Self}(..)).await`, or `engine.start(..)`"
)]
pub trait Unattended {}

impl<W: Workflow + Unattended> Future for Call<W> {
    type Output = Result<Output<W>, Failure>;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        Poll::Pending
    }
}

impl<W: Unattended> Future for Detached<W> {
    type Output = Result<RunId, Failure>;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        Poll::Pending
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
        id: None,
        terms: Terms::default(),
        workflow: PhantomData,
    }
}
