//! What is said of workflows: how many of their runs may be under way at once, and how many may begin in a time.

use std::collections::HashMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use serde::de::{Deserialize, DeserializeOwned, Deserializer, MapAccess, Visitor};

use super::gates::{Gate, Group};
use crate::context::Workflow;
use crate::engine::Definition;
use crate::engine::driver::panic_message;
use crate::replay::Timestamp;

/// How many runs of a workflow may be under way at once, and what counts as under way. For
/// [`EngineBuilder::limit`](crate::EngineBuilder::limit).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    runs: usize,
    holds: bool,
}

impl Limit {
    /// At most `runs` at work. One that only waits, for a time, a message, a child or a step's next attempt, gives its slot back
    /// while it waits, and needs one again to go on. So many may be begun, and few do something: the limit for what is
    /// called from steps.
    ///
    /// A run that waits less than the engine's [`linger`](crate::EngineBuilder::linger) stays in memory, and keeps its slot as long
    /// as nobody else wants it.
    ///
    /// # Panics
    /// When `runs` is 0.
    pub fn working(runs: usize) -> Self {
        assert!(runs > 0, "a limit of no runs lets nothing be done");
        Self { runs, holds: false }
    }

    /// At most `runs` begun and not ended. One that waits keeps its slot, however long: the next is begun when it has ended or is
    /// parked. The limit for what is taken by a run as a whole, a machine or an account.
    ///
    /// A run that awaits a child of its own workflow then waits for a slot that it holds itself, if the limit is one. When an engine
    /// opens a store, it looks at all of its runs that wait, once, to know who holds a slot.
    ///
    /// # Panics
    /// When `runs` is 0.
    pub fn unfinished(runs: usize) -> Self {
        assert!(runs > 0, "a limit of no runs lets nothing be done");
        Self { runs, holds: true }
    }
}

/// How many runs of a workflow may begin in a time. For [`EngineBuilder::rate`](crate::EngineBuilder::rate).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    begins: usize,
    interval: Duration,
}

impl Rate {
    /// At most `begins` in any stretch of time that is as long as `interval`, wherever one lays it: not so many on either side of the
    /// turn of a minute.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use workflow::Rate;
    /// let rate = Rate::per(10, Duration::from_secs(60));
    /// ```
    ///
    /// # Panics
    /// When `begins` is 0, or `interval` is less than a millisecond.
    pub fn per(begins: usize, interval: Duration) -> Self {
        assert!(begins > 0, "a rate of no begins lets nothing be done");
        let least = Duration::from_millis(1);
        assert!(
            interval >= least,
            "the interval of a rate is a millisecond or more"
        );
        Self { begins, interval }
    }

    /// How many may begin.
    pub fn begins(&self) -> usize {
        self.begins
    }

    /// In which time.
    pub fn interval(&self) -> Duration {
        self.interval
    }
}

/// Why a run is not driven: it waits for a slot of its workflow's [`Limit`], for its [`Rate`] to let it begin, or for both.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Queued {
    /// How many slots there are, if its workflow has a limit.
    pub limit: Option<usize>,
    /// The rate, if its workflow has one and the run has not begun.
    pub rate: Option<Rate>,
    /// The key by which runs are counted, if they are: for its limit, or else for its rate.
    pub key: Option<String>,
    /// How many runs are before it.
    pub ahead: usize,
    /// Before which time its rate does not let it begin, as far as is known: runs that come before it and are not there yet put it
    /// off further.
    pub not_before: Option<Timestamp>,
}

/// The key of a run, by its input as JSON.
type KeyOf = dyn Fn(&[u8]) -> Option<String> + Send + Sync;

/// What is said of one workflow, and by which key its runs are counted for it.
#[derive(Clone)]
struct Counted<T> {
    what: T,
    key: Option<Arc<KeyOf>>,
}

impl<T> Counted<T> {
    fn group(&self, workflow: &'static str, json: Option<&[u8]>) -> Group {
        let key = self.key.as_ref().and_then(|key| key(json?));
        Group {
            workflow,
            key: key.map(Arc::from),
        }
    }
}

/// What is said of one workflow.
#[derive(Clone, Default)]
struct Rule {
    limit: Option<Counted<Limit>>,
    rate: Option<Counted<Rate>>,
}

/// The limits and rates of an engine's workflows.
#[derive(Default)]
pub(in crate::engine) struct Rules(HashMap<&'static str, Rule>);

/// A function that takes a key from the arguments of a workflow.
pub(in crate::engine) struct Key(Option<Arc<KeyOf>>);

impl Key {
    /// All runs of the workflow are counted together.
    pub(in crate::engine) const ALL: Self = Self(None);

    pub(in crate::engine) fn of<Arguments: DeserializeOwned>(
        key: impl Fn(&Arguments) -> String + Send + Sync + 'static,
    ) -> Self {
        Self(Some(Arc::new(move |json| {
            let Values(values) = serde_json::from_slice(json).ok()?;
            let arguments = serde_json::from_value(serde_json::Value::Array(values)).ok()?;
            // The code is the user's, and is asked where the engine counts all runs: one must not keep it from the others.
            let key = catch_unwind(AssertUnwindSafe(|| key(&arguments)));
            key.inspect_err(|panic| {
                let panic = panic_message(&**panic);
                tracing::error!(panic, "what gives the key by which a run is counted panicked; it counts as one without a key");
            })
            .ok()
        })))
    }
}

impl Rules {
    fn rule<Arguments, F: Definition<Arguments>>(&mut self) -> &mut Rule {
        self.0.entry(F::Workflow::NAME).or_default()
    }

    pub(in crate::engine) fn limit<Arguments, F: Definition<Arguments>>(
        &mut self,
        what: Limit,
        Key(key): Key,
    ) {
        self.rule::<Arguments, F>().limit = Some(Counted { what, key });
    }

    pub(in crate::engine) fn rate<Arguments, F: Definition<Arguments>>(
        &mut self,
        what: Rate,
        Key(key): Key,
    ) {
        self.rule::<Arguments, F>().rate = Some(Counted { what, key });
    }

    /// Each workflow of which something is said, and what.
    pub(in crate::engine) fn said(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.0.iter().map(|(workflow, rule)| {
            let what = if rule.limit.is_some() {
                "limit"
            } else {
                "rate"
            };
            (*workflow, what)
        })
    }

    /// Nothing is said of any.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What a run has to get, if anything is said of its workflow. `json` gives its input.
    pub(super) fn gate(
        &self,
        workflow: &str,
        begun: bool,
        json: impl FnOnce() -> Option<Vec<u8>>,
    ) -> Option<Gate> {
        let (&workflow, rule) = self.0.get_key_value(workflow)?;
        let (limit, rate) = (rule.limit.as_ref(), rule.rate.as_ref().filter(|_| !begun));
        let limit_key = limit.is_some_and(|limit| limit.key.is_some());
        let rate_key = rate.is_some_and(|rate| rate.key.is_some());
        let json = if limit_key || rate_key { json() } else { None };
        let json = json.as_deref();
        let gate = Gate {
            slot: limit.map(|limit| limit.group(workflow, json)),
            begin: rate.map(|rate| rate.group(workflow, json)),
        };
        (gate.slot.is_some() || gate.begin.is_some()).then_some(gate)
    }

    /// The group of a begin that was stored with this key, if the workflow has a rate still.
    pub(super) fn rated(&self, workflow: &str, key: Option<Arc<str>>) -> Option<Group> {
        let (&workflow, rule) = self.0.get_key_value(workflow)?;
        rule.rate.as_ref()?;
        Some(Group { workflow, key })
    }

    /// The name of a workflow of which something is said.
    pub(super) fn known(&self, workflow: &str) -> Option<&'static str> {
        self.0.get_key_value(workflow).map(|(name, _)| *name)
    }

    /// How many slots a group has.
    pub(super) fn slots(&self, group: &Group) -> usize {
        let rule = self.0.get(group.workflow);
        let limit = rule.and_then(|rule| rule.limit.as_ref());
        limit.map_or(usize::MAX, |limit| limit.what.runs)
    }

    /// How many of a group may begin in a time.
    pub(in crate::engine) fn rate_of(&self, group: &Group) -> Rate {
        let rule = self.0.get(group.workflow);
        let rate = rule.and_then(|rule| rule.rate.as_ref());
        // A group is made of a rule.
        rate.map_or(Rate::per(usize::MAX, Duration::from_millis(1)), |rate| {
            rate.what
        })
    }

    /// Whether a run of this workflow keeps its slot while it waits.
    pub(super) fn holds(&self, workflow: &str) -> bool {
        let rule = self.0.get(workflow);
        let limit = rule.and_then(|rule| rule.limit.as_ref());
        limit.is_some_and(|limit| limit.what.holds)
    }

    /// Whether a run of this workflow gives its slot back while it waits.
    pub(super) fn gives_back(&self, workflow: &str) -> bool {
        let rule = self.0.get(workflow);
        let limit = rule.and_then(|rule| rule.limit.as_ref());
        limit.is_some_and(|limit| !limit.what.holds)
    }

    /// The workflows whose runs keep their slots while they wait.
    pub(super) fn holding(&self) -> impl Iterator<Item = &'static str> {
        self.0
            .keys()
            .copied()
            .filter(|workflow| self.holds(workflow))
    }

    /// Whether runs of this workflow are counted by keys, so that their inputs have to be read.
    pub(super) fn has_keys(&self, workflow: &str) -> bool {
        self.0.get(workflow).is_some_and(|rule| {
            let limit = rule.limit.as_ref().is_some_and(|limit| limit.key.is_some());
            limit || rule.rate.as_ref().is_some_and(|rate| rate.key.is_some())
        })
    }
}

impl fmt::Debug for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let said = self.0.iter().map(|(workflow, rule)| {
            let limit = rule.limit.as_ref().map(|limit| limit.what);
            (workflow, (limit, rule.rate.as_ref().map(|rate| rate.what)))
        });
        f.debug_map().entries(said).finish()
    }
}

/// An object's values in the order in which they are written: an input's arguments in that of their parameters.
struct Values(Vec<serde_json::Value>);

impl<'de> Deserialize<'de> for Values {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        struct InOrder;

        impl<'de> Visitor<'de> for InOrder {
            type Value = Values;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the arguments of a workflow")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Values, A::Error> {
                let mut values = Vec::new();
                while let Some((_, value)) = map.next_entry::<serde::de::IgnoredAny, _>()? {
                    values.push(value);
                }
                Ok(Values(values))
            }
        }

        input.deserialize_map(InOrder)
    }
}
