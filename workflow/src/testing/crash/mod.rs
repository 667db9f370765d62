//! A crash at each commit and each await.

mod difference;
mod event;
mod life;
mod recorder;
mod report;
mod store;

use std::any::TypeId;
use std::error::Error;
use std::fmt;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use super::place::Place;
use super::steps::Steps;
use crate::context::{Call, Channel, CurrentStep, Output, Recorded, Workflow};
use crate::engine::{Definition, Engine, EngineBuilder, RunHandle};
use crate::store::BoxFuture;
use difference::{Difference, unsteady};
use life::{DRIVEN, Drive, Effect, Fresh, Plan, Post, RUN};
use report::{Covered, Point, broken};

pub use report::{Broken, Crashes};

/// How long a run may take by its own clock.
const WITHIN: Duration = Duration::from_secs(366 * 86_400);

/// Runs a workflow once as it is, and then once for each place where its process may end, ending it there: before and after each
/// commit, where the body of each step is about to begin, where it waits, and where it has ended and nothing of that is recorded. After
/// each crash another process goes on to the end. It has to come to the same end, and to have had the same effects.
///
/// ```
/// # use std::sync::{Arc, Mutex};
/// use workflow::testing::crash_everywhere;
/// # use workflow::{Failure, current_step, sleep, step, workflow};
///
/// /// Stands for the bank: it takes a key's money once.
/// #[derive(Clone, Default)]
/// struct Bank(Arc<Mutex<std::collections::BTreeMap<String, u32>>>);
///
/// # impl Bank { fn taken(&self) -> u32 { self.0.lock().unwrap().values().sum() } }
/// #[step]
/// async fn charge(bank: &Bank, cents: u32) -> u32 {
///     bank.0.lock().unwrap().insert(current_step().idempotency_key(), cents);
///     cents
/// }
///
/// #[workflow]
/// async fn order(cents: u32, #[state] bank: Bank) -> Result<u32, Failure> {
///     let taken = charge(&bank, cents).await?;
///     sleep!(cool_off, "30d").await;
///     Ok(taken)
/// }
///
/// # #[tokio::main(flavor = "current_thread")] // as `#[tokio::test]`
/// # async fn main() -> Result<(), workflow::testing::Broken> {
/// let crashes = crash_everywhere(order(300))
///     .fresh(Bank::default)                  // a new bank for each crash, which outlives it, as the world does
///     .effect("taken", |bank: &Bank| bank.taken())
///     .await?;
/// assert_eq!(
///     crashes.to_string(),
///     "order: 10 crashes, 2 of 2 sites crashed"
/// );
/// # Ok(())
/// # }
/// ```
///
/// - **A crash** takes all memory of the process: the engine, its runs, and what tasks the steps have spawned. It leaves what was
///   committed, and what [`fresh`](CrashEverywhere::fresh) states hold: they are the world around.
/// - **The same** are the ends of all runs, of children, too, and what each [`effect`](CrashEverywhere::effect) counts. And the harness counts by
///   itself: no body is begun again unless the crash cut it off.
/// - **Time** jumps over all waits, as with [`engine`](super::engine). Each process has a tokio runtime of its own, so the test may run in
///   any. Steps may use tokio's timers and channels, and threads; they must not use what belongs to the runtime of the test.
/// - **A thread of a blocking step** runs in real time. Beside it, in another branch, that may decide what comes first.
/// - **It is repeatable.** What happens, and the numbers of the crashes, are the same each time: [`only`](CrashEverywhere::only) has one alone. What
///   is not the same in two runs without a crash is told of before anything else.
///
/// # Errors
/// [`Broken`]: the first crash after which something is otherwise, what, and the likely reason; or why there is nothing to be compared.
///
/// # Cancel safety
/// Dropped before its end, its thread goes on to it, and nobody is told.
#[must_use = "help: `.await` it: only that runs the workflow"]
pub fn crash_everywhere<W: Workflow>(call: Call<W>) -> CrashEverywhere<W> {
    let mut covered = Covered::default();
    covered.add(W::NAME, W::SITES);
    let (input, problem) = match call.into_json() {
        Ok(input) => (input, None),
        Err(error) => (Vec::new(), Some(error.to_string())),
    };
    let crashes = CrashEverywhere {
        name: W::NAME,
        covered,
        problem,
        steps: Some(Steps::of_workflow::<W>()),
        ..CrashEverywhere::new(Drive::Start(W::NAME, input))
    };
    crashes.engine(register::<W>)
}

/// The same for whatever else an engine runs: a guided flow, several runs. `drive` is what a process does: it starts or opens them, and
/// brings them to where they are to be compared; what it gives is compared, and how all runs ended that have. It is begun again in the next
/// process, so what it does has ids and keys.
///
/// The workflows and flows are those of [`engine`](CrashEverywhere::engine).
///
/// ```
/// # use workflow::testing::{Broken, crash_driven};
/// # use workflow::{Engine, Failure, sleep, workflow};
/// # #[workflow]
/// # async fn order(cents: u32) -> Result<u32, Failure> { sleep!(rest, "1d").await; Ok(cents) }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Broken> {
/// let two = async |engine: Engine| {
///     let one = engine.run("order-1", order(1)).await?;
///     Ok(one + engine.run("order-2", order(2)).await?)
/// };
/// crash_driven(move |engine| two(engine)).workflow(order).await?;
/// # Ok(())
/// # }
/// ```
pub fn crash_driven<T: Serialize, F>(
    drive: impl Fn(Engine) -> F + Send + Sync + 'static,
) -> CrashEverywhere<Driven>
where
    F: Future<Output = Result<T, Box<dyn Error + Send + Sync>>> + Send + 'static,
{
    let drive = move |engine| -> BoxFuture<'static, _> {
        let driven = drive(engine);
        Box::pin(async move {
            let came_to = driven.await.map_err(|error| error.to_string())?;
            serde_json::to_value(came_to).map_err(|error| error.to_string())
        })
    };
    CrashEverywhere::new(Drive::By(Box::new(drive)))
}

/// Stands in [`CrashEverywhere`] for the workflow, where the test drives what is crashed: [`crash_driven`].
#[derive(Debug, Clone, Copy)]
pub enum Driven {}

/// Crashes of a workflow, described. Made by [`crash_everywhere`], and awaited.
#[must_use = "help: `.await` it: only that runs the workflow"]
pub struct CrashEverywhere<W> {
    name: &'static str,
    plan: Plan,
    steps: Option<Steps>,
    covered: Covered,
    only: Option<u32>,
    at: Vec<Place>,
    problem: Option<String>,
    workflow: PhantomData<fn() -> W>,
}

impl<W> CrashEverywhere<W> {
    fn new(drive: Drive) -> Self {
        Self {
            name: DRIVEN,
            plan: Plan {
                drive,
                configure: Vec::new(),
                fresh: Vec::new(),
                effects: Vec::new(),
                posts: Vec::new(),
                steps: Vec::new(),
                within: WITHIN,
                outcome: None,
            },
            steps: None,
            covered: Covered::default(),
            only: None,
            at: Vec::new(),
            problem: None,
            workflow: PhantomData,
        }
    }

    /// Gives a value to the `#[state]` parameters of its type: the same in all runs. One that is changed by them is to be
    /// [`fresh`](Self::fresh).
    pub fn state<T: Clone + Send + Sync + 'static>(self, state: T) -> Self {
        self.engine(move |builder| builder.state(state.clone()))
    }

    /// Makes a value for the `#[state]` parameters of its type, anew for each crash. It stays over the crash, as the world does: a
    /// database, a bank, a mailbox. Of two of one type the later one holds.
    pub fn fresh<T: Clone + Send + Sync + 'static>(
        mut self,
        make: impl Fn() -> T + Send + Sync + 'static,
    ) -> Self {
        let type_id = TypeId::of::<T>();
        // One that no run sees would be counted in, and nothing be found there.
        self.plan.fresh.retain(|other| other.type_id != type_id);
        self.plan.fresh.push(Fresh {
            type_id,
            make: Box::new(move || Box::new(make())),
            give: |builder, state| match state.downcast_ref::<T>() {
                Some(state) => builder.state(state.clone()),
                None => builder,
            },
        });
        self
    }

    /// Counts effects, at the end, in a [`fresh`](Self::fresh) state: what comes out has to be what comes out without a crash.
    ///
    /// A step that a crash cuts off is run again, so an effect may be had twice: here it shows whether that comes to the same. Count what
    /// must not happen twice, by the keys that the other side knows it by, say.
    pub fn effect<T: Clone + Send + Sync + 'static, C: PartialEq + fmt::Debug + Send + 'static>(
        mut self,
        name: &'static str,
        count: impl Fn(&T) -> C + Send + Sync + 'static,
    ) -> Self {
        let of = TypeId::of::<T>();
        if !self.plan.fresh.iter().any(|fresh| fresh.type_id == of) {
            self.problem.get_or_insert_with(|| {
                let state = std::any::type_name::<T>();
                format!("the effect `{name}` is counted in a `{state}`, and no `.fresh(..)` before it makes one")
            });
        }
        self.plan.effects.push(Effect {
            name,
            of,
            count: Box::new(move |state| match state.downcast_ref::<T>() {
                Some(state) => Box::new(count(state)),
                None => Box::new(()),
            }),
        });
        self
    }

    /// Knows another workflow, which this one starts: crashes happen in it, too, and its sites are counted.
    pub fn workflow<Arguments, F: Definition<Arguments>>(mut self, _function: F) -> Self {
        self.covered.add(
            <F::Workflow as Workflow>::NAME,
            <F::Workflow as Workflow>::SITES,
        );
        self.engine(register::<F::Workflow>)
    }

    /// Describes the engine further: a codec, limits. Its store, clock and [`Steps`] are those of the crashes.
    pub fn engine(
        mut self,
        configure: impl Fn(EngineBuilder) -> EngineBuilder + Send + Sync + 'static,
    ) -> Self {
        self.plan.configure.push(Arc::new(configure));
        self
    }

    /// Does more to steps, and does it to those of another workflow, too. The counts of what is given here stay as they are.
    pub fn steps(mut self, steps: &Steps) -> Self {
        self.plan.steps.push(steps.clone());
        self
    }

    /// How long the run may take by its own clock; 366 days by default. One that has not ended then is told of as one that waits for
    /// ever.
    pub fn within(mut self, time: Duration) -> Self {
        self.plan.within = time;
        self
    }

    /// Has only the crash of this number: the one that a report told of.
    pub fn only(mut self, crash: u32) -> Self {
        self.only = Some(crash);
        self
    }

    /// All of it, on a thread that has no runtime.
    fn run(mut self) -> Result<Crashes, Broken> {
        self.plan.steps.splice(..0, self.steps.take());
        let workflow = self.name;
        if let Some(problem) = &self.problem {
            return Err(Broken::before(workflow, problem));
        }
        let without = self.plan.case(None);
        match &without.came_to {
            Err(error) => return Err(Broken::before(workflow, error)),
            Ok(ended) => {
                let open = ended
                    .iter()
                    .find(|(_, ended)| matches!(ended, life::Ended::Not(_)));
                if let Some((id, ended)) = open {
                    let text = format!("without any crash `{id}` {ended}");
                    return Err(Broken::before(workflow, text));
                }
            }
        }
        if let Some(text) = unsteady(&without, &self.plan.case(None)) {
            return Err(Broken::before(workflow, text));
        }
        let all = Point::of(&without.seen.events);
        let wanted = |point: &Point| {
            self.only.is_none_or(|only| point.number == only)
                && (self.at.is_empty() || self.is_at(point))
        };
        let points: Vec<_> = all.iter().filter(|point| wanted(point)).cloned().collect();
        if points.is_empty() {
            let text = format!("there is no such crash; there are {} in all", all.len());
            return Err(Broken::before(workflow, text));
        }
        let mut found = Vec::new();
        for (index, point) in points.iter().enumerate() {
            let with = self.plan.case(Some((point.at, point.cut)));
            if let Some(difference) = Difference::between(point, &without, &with) {
                found.push((index, difference));
            }
        }
        match broken(workflow, &self.covered, &points, &found) {
            Some(broken) => Err(broken),
            None => Ok(Crashes::new(workflow, &self.covered, &points)),
        }
    }

    fn is_at(&self, point: &Point) -> bool {
        let places = point.event.places.iter().map(ToString::to_string);
        let mut places = places.filter(|_| point.event.workflow == self.name);
        places.any(|at| self.at.iter().any(|place| place.is_text(&at)))
    }
}

impl<W: Workflow> CrashEverywhere<W> {
    /// Compares this of the run's value, in place of the whole: what of it has to be the same. The values of children are not compared
    /// then.
    pub fn outcome<K: Serialize>(
        mut self,
        of: impl Fn(Output<W>) -> K + Send + Sync + 'static,
    ) -> Self {
        self.plan.outcome = Some(Box::new(move |json| {
            let value = serde_json::from_slice(json)?;
            serde_json::to_value(of(value))
        }));
        self
    }

    /// Sends a message to the run as soon as it is stored. Whoever sends it outlives the crash, and sends it until it is known to have
    /// arrived, with a key: it arrives once.
    pub fn send<T: Recorded + Send + Sync + 'static, R: 'static>(
        self,
        channel: &'static Channel<T, R>,
        value: T,
    ) -> Self {
        self.send_after(Duration::ZERO, channel, value)
    }

    /// The same, so long after the run began.
    pub fn send_after<T: Recorded + Send + Sync + 'static, R: 'static>(
        mut self,
        after: Duration,
        channel: &'static Channel<T, R>,
        value: T,
    ) -> Self {
        let key = format!("message {}", self.plan.posts.len() + 1);
        let value = Arc::new(value);
        self.plan.posts.push(Post {
            after,
            what: Box::new(move |engine: Engine| {
                let (key, value) = (key.clone(), Arc::clone(&value));
                Box::pin(async move { Ok(engine.send_once(RUN, channel, key, &*value).await?) })
            }),
        });
        self
    }

    /// Does something from outside once the run is stored: requests, cancels, waits for what it publishes. After a crash it is done again
    /// from its beginning, so messages in it have keys (`send_once`, `request_once`). Several are done side by side.
    pub fn script<F>(mut self, script: impl Fn(RunHandle<W>) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<(), crate::Error>> + Send + 'static,
    {
        let script = Arc::new(script);
        self.plan.posts.push(Post {
            after: Duration::ZERO,
            what: Box::new(move |engine: Engine| {
                let script = Arc::clone(&script);
                Box::pin(async move { script(engine.attach::<W>(RUN).await?).await })
            }),
        });
        self
    }

    /// Runs this in place of a step's body. As [`Steps::mock`].
    ///
    /// # Panics
    /// When the workflow has no step there.
    #[track_caller]
    pub fn mock<T: Serialize>(
        mut self,
        location: &str,
        body: impl Fn(&CurrentStep) -> Result<T, Box<dyn Error + Send + Sync>> + Send + Sync + 'static,
    ) -> Self {
        self.steps = self.steps.map(|steps| steps.mock(location, body));
        self
    }

    /// Lets attempts of a step fail. As [`Steps::fail`]; what has failed before the crash has failed.
    ///
    /// # Panics
    /// When the workflow has no step there.
    #[track_caller]
    pub fn fail(mut self, location: &str, times: u32, message: impl Into<String>) -> Self {
        self.steps = self.steps.map(|steps| steps.fail(location, times, message));
        self
    }

    /// Has only the crashes at this location; called again, at that one, too.
    ///
    /// # Panics
    /// When the workflow has nothing there.
    #[track_caller]
    pub fn at(mut self, location: &str) -> Self {
        match Place::of_site(location, W::NAME, W::SITES) {
            Ok(place) => self.at.push(place),
            Err(unknown) => panic!("{unknown}"),
        }
        self
    }
}

impl<W: 'static> IntoFuture for CrashEverywhere<W> {
    type Output = Result<Crashes, Broken>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        let name = self.name;
        Box::pin(async move {
            let (tell, told) = tokio::sync::oneshot::channel();
            // Its runtimes are to be nobody's but its own.
            let thread = std::thread::Builder::new().name("crash-everywhere".to_owned());
            let spawned = thread.spawn(move || drop(tell.send(self.run())));
            let thread = match spawned {
                Ok(thread) => thread,
                Err(error) => return Err(Broken::before(name, error)),
            };
            match told.await {
                Ok(came_to) => came_to,
                Err(_) => match thread.join() {
                    Err(panic) => std::panic::resume_unwind(panic),
                    Ok(()) => Err(Broken::before(name, "its thread ended")),
                },
            }
        })
    }
}

impl<W> fmt::Debug for CrashEverywhere<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CrashEverywhere")
            .field("workflow", &self.name)
            .field("steps", &self.steps)
            .finish_non_exhaustive()
    }
}

fn register<W: Workflow>(builder: EngineBuilder) -> EngineBuilder {
    builder.registered::<W>()
}
