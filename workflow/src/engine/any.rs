//! Runs whose workflow nobody knows at compile time: those of an API, a dashboard, a command line.

use std::collections::BTreeMap;
use std::fmt;
use std::future::IntoFuture;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;

use super::driver::panic_message;
use super::registry::Entry;
use super::rehearsal::Silent;
use super::start::derive_seed;
use super::{Engine, Inner, RunHandle, StartError};
use crate::context::{ArgError, Args, Body, Fallible, Noted, Run, StateType, Workflow};
use crate::replay::{Begun, Failure, Payload, Replay, RunId, Site, Terms, Timestamp};
use crate::store::BoxFuture;

/// The workflow of a run of which nobody knows at compile time which it is: `engine.attach::<AnyWorkflow>("order-17")` gives a
/// handle on any run. Its result is the JSON that was recorded, and its graph that of its own workflow.
///
/// ```
/// # use workflow::{AnyWorkflow, Engine, Failure, MemoryStore, workflow};
/// # #[workflow]
/// # async fn order(item: String) -> Result<usize, Failure> { Ok(item.len()) }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), workflow::Error> {
/// let engine = Engine::builder().workflow(order).store(MemoryStore::new()).build().await?;
/// engine.start_json("order-17", "order", br#"{"item":"book"}"#).await?;
///
/// let run = engine.attach::<AnyWorkflow>("order-17").await?;
/// assert_eq!(run.result().await?.get(), "4");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy)]
pub enum AnyWorkflow {}

// It is no workflow of anybody, so a message about one that is missing does not name it.
#[diagnostic::do_not_recommend]
impl Workflow for AnyWorkflow {
    const NAME: &'static str = "*";
    const SITES: &'static [Site] = &[];
    type Mark = Fallible;
    type Returns = Result<Box<RawValue>, Failure>;

    fn states() -> Vec<StateType> {
        Vec::new()
    }

    fn run(args: Args) -> Result<Body, ArgError> {
        // It stands for others and is never called itself; no engine has a state of this type, for there is no value of it.
        match args.state::<Self>("any")? {}
    }
}

/// A start of a workflow by its name, to be awaited. Made by [`Engine::start_json`].
#[must_use = "help: `.await` it: a start that is not awaited does nothing"]
pub struct StartJson {
    engine: Engine,
    id: String,
    workflow: String,
    input: Vec<u8>,
    terms: Terms,
}

impl StartJson {
    /// Begins the run so long from now, as [`Call::delay`](crate::Call::delay).
    pub fn delay(mut self, delay: Duration) -> Self {
        self.terms.delay = Some(delay);
        self
    }

    /// Does not begin the run before this time, as [`Call::not_before`](crate::Call::not_before).
    pub fn not_before(mut self, time: impl Into<Timestamp>) -> Self {
        self.terms.not_before = Some(time.into());
        self
    }

    /// Where the run stands among those that wait, as [`Call::priority`](crate::Call::priority).
    pub fn priority(mut self, priority: i32) -> Self {
        self.terms.priority = Some(priority);
        self
    }
}

impl IntoFuture for StartJson {
    type Output = Result<RunHandle<AnyWorkflow>, StartError>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let Self {
                engine,
                id,
                workflow,
                input,
                terms,
            } = self;
            let id = RunId::new(id)?;
            let inner = &engine.inner;
            let known = inner.registry.get(&workflow);
            let entry = known.filter(|entry| entry.alive.is_none());
            let entry = entry.ok_or_else(|| StartError::UnknownWorkflow {
                workflow,
                known: engine.workflows(),
            })?;
            let json = inner.read_input(&id, &entry, &input)?;
            engine.begin_json(id, entry, json, terms).await
        })
    }
}

impl fmt::Debug for StartJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StartJson")
            .field("run", &self.id)
            .field("workflow", &self.workflow)
            .field("terms", &self.terms)
            .finish_non_exhaustive()
    }
}

impl Engine {
    /// Starts a run of the workflow of that name, as [`start`](Self::start) does, when it is awaited. `input` is a JSON object with a
    /// field per parameter. When the run is to begin, and before whom, is said of what this gives.
    ///
    /// The input is read and written again by the types of the workflow's parameters before anything is stored. So what does not
    /// fit is refused here, and an input that says the same as one given to [`start`](Self::start) is the same.
    ///
    /// # Errors
    /// [`StartError::UnknownWorkflow`]; [`StartError::Input`] when an argument does not decode, or is of no parameter; and those of
    /// [`start`](Self::start).
    ///
    /// # Cancel safety
    /// As [`start`](Self::start).
    pub fn start_json(
        &self,
        id: impl Into<String>,
        workflow: impl Into<String>,
        input: impl AsRef<[u8]>,
    ) -> StartJson {
        StartJson {
            engine: self.clone(),
            id: id.into(),
            workflow: workflow.into(),
            input: input.as_ref().to_vec(),
            terms: Terms::default(),
        }
    }

    /// The names of the workflows that this engine runs, in order. Flows are not among them.
    pub fn workflows(&self) -> Vec<&'static str> {
        self.inner.registry.workflows()
    }
}

impl Inner {
    /// The input as the workflow's own types write it.
    fn read_input(&self, id: &RunId, entry: &Entry, json: &[u8]) -> Result<Vec<u8>, StartError> {
        let refused = |detail: String| StartError::Input {
            workflow: entry.name,
            detail,
        };
        let limit = self.payload_limit;
        if json.len() > limit {
            let size = json.len();
            return Err(refused(format!(
                "it is {size} bytes long, the limit is {limit}"
            )));
        }
        let given: BTreeMap<String, &RawValue> =
            serde_json::from_slice(json).map_err(|error| refused(error.to_string()))?;
        let begun = Begun {
            workflow: entry.name.to_owned(),
            input: Payload::json(json.to_vec()),
            input_hash: 0,
            seed: derive_seed(self.identity.id, id),
            generation: 0,
            parent: None,
            forked_from: None,
        };
        let input = begun.input.clone();
        // Nothing of it is polled, so nothing is asked of its host.
        let run = Run::new(
            id.clone(),
            Replay::begin(begun, self.code),
            Arc::new(Silent {
                now: self.clock.now(),
            }),
            Arc::clone(&self.codec),
            limit,
        );
        let noted = Arc::new(Noted::default());
        let read = catch_unwind(AssertUnwindSafe(|| {
            let args = Args::new(run, &input, Arc::clone(&self.states))?;
            (entry.run)(args.noting(Arc::clone(&noted))).map(drop)
        }));
        match read {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return Err(refused(error.refusal())),
            Err(panic) => {
                let said = panic_message(&*panic);
                return Err(refused(format!("the code that reads it panicked: {said}")));
            }
        }
        let (parameters, input) = noted.take();
        if let Some(unknown) = given.keys().find(|name| !parameters.contains(&&***name)) {
            let takes = match &*parameters {
                [] => "no arguments".to_owned(),
                all => format!("`{}`", all.join("`, `")),
            };
            return Err(refused(format!(
                "it has no parameter `{unknown}`; it takes {takes}"
            )));
        }
        input
            .into_json()
            .map_err(|error| refused(error.to_string()))
    }
}
