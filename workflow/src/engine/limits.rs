//! How many runs of a workflow are under way at once.
//!
//! 1. A run of a limited workflow is driven only while it holds a slot of its gate: that of its workflow, or of its workflow and
//!    key. One that finds none is in the gate's queue, in the store, and not in memory.
//! 2. A free slot goes to the run in the queue that was started first, and that one is woken. Whoever comes new does not overtake.
//! 3. Nothing of this is stored: who holds a slot follows from the rows. Until those are read nobody gets one.
//! 4. What is rolling back holds a slot without being asked to wait for one: its code is over, and whoever cancelled it must not
//!    wait for others.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::de::{Deserialize, DeserializeOwned, Deserializer, MapAccess, Visitor};

use super::{Definition, Inner};
use crate::codec;
use crate::context::Workflow;
use crate::replay::{Begun, Body, RunKey, RunState};
use crate::store::{RunFilter, RunRow, StoreError};

/// How many runs of a workflow may be under way at once, and what counts as under way. For
/// [`EngineBuilder::limit`](super::EngineBuilder::limit).
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
    /// A run that waits less than the engine's [`linger`](super::EngineBuilder::linger) stays in memory, and keeps its slot as long
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

/// Why a run is not driven: it waits for a slot of its workflow's [`Limit`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Queued {
    /// How many slots there are.
    pub limit: usize,
    /// The key by which they are counted, if they are.
    pub key: Option<String>,
    /// How many runs are before it.
    pub ahead: usize,
}

/// The key of a run, by its input as JSON.
type KeyOf = dyn Fn(&[u8]) -> Option<String> + Send + Sync;

/// The limit of one workflow.
#[derive(Clone)]
pub(super) struct Rule {
    pub(super) workflow: &'static str,
    limit: Limit,
    key: Option<Arc<KeyOf>>,
}

impl Rule {
    pub(super) fn of<Arguments, F: Definition<Arguments>>(limit: Limit) -> Self {
        Self {
            workflow: F::Workflow::NAME,
            limit,
            key: None,
        }
    }

    pub(super) fn per<Arguments: DeserializeOwned>(
        mut self,
        key: impl Fn(&Arguments) -> String + Send + Sync + 'static,
    ) -> Self {
        self.key = Some(Arc::new(move |json| {
            let Values(values) = serde_json::from_slice(json).ok()?;
            let arguments = serde_json::from_value(serde_json::Value::Array(values)).ok()?;
            Some(key(&arguments))
        }));
        self
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

/// What slots are counted by: a workflow, or a workflow and a key.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Gate {
    workflow: &'static str,
    key: Option<Arc<str>>,
}

#[derive(Debug, Default)]
struct Slots {
    held: HashSet<RunKey>,
    queue: BTreeSet<RunKey>,
}

#[derive(Debug, Default)]
struct State {
    /// The rows were read: it is known who holds what.
    open: bool,
    gates: HashMap<Gate, Slots>,
    /// Where each run is that holds a slot or waits for one.
    runs: HashMap<RunKey, Gate>,
    /// Those that ended while the rows are read: what was read of them is past.
    ended: HashSet<RunKey>,
}

/// The limits of an engine.
#[derive(Default)]
pub(crate) struct Limits {
    rules: HashMap<&'static str, Rule>,
    state: Mutex<State>,
}

/// Runs that have got a slot and are to be woken.
pub(super) type Granted = Vec<RunKey>;

impl Limits {
    pub(super) fn new(rules: Vec<Rule>) -> Self {
        let rules = rules.into_iter().map(|rule| (rule.workflow, rule));
        Self {
            rules: rules.collect(),
            state: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there is none at all: then nothing here is asked.
    pub(super) fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// The gate of a run, if its workflow has one. `json` gives its input.
    pub(super) fn gate(
        &self,
        workflow: &str,
        json: impl FnOnce() -> Option<Vec<u8>>,
    ) -> Option<Gate> {
        let rule = self.rules.get(workflow)?;
        let key = rule.key.as_ref().and_then(|key| key(&json()?));
        Some(Gate {
            workflow: rule.workflow,
            key: key.map(Arc::from),
        })
    }

    fn limit(&self, gate: &Gate) -> Limit {
        // A gate is made of a rule.
        let rule = self.rules.get(gate.workflow);
        rule.map_or(Limit::working(usize::MAX), |rule| rule.limit)
    }

    /// Gives a run a slot, if it has one or there is one for it now. It is in no queue by this.
    pub(super) fn take(&self, gate: &Gate, run: RunKey) -> bool {
        let mut state = self.state();
        let open = state.open;
        let limit = self.limit(gate).runs;
        if let Some(slots) = state.gates.get_mut(gate) {
            if slots.held.contains(&run) {
                return true;
            }
            let first = slots.queue.first().is_none_or(|first| run <= *first);
            if !open || !first || slots.held.len() >= limit {
                return false;
            }
            slots.queue.remove(&run);
        } else if !open {
            return false;
        }
        state.hold(gate, run);
        true
    }

    /// Puts a run into the queue, unless it has a slot. Those who may give theirs back at once are to be told: they are returned.
    pub(super) fn queue(&self, gate: &Gate, run: RunKey) -> Vec<RunKey> {
        let gives_back = !self.limit(gate).holds;
        let mut state = self.state();
        let slots = state.gates.entry(gate.clone()).or_default();
        if slots.held.contains(&run) {
            return Vec::new();
        }
        let first = slots.queue.is_empty();
        slots.queue.insert(run);
        let told = if first && gives_back {
            slots.held.iter().copied().collect()
        } else {
            Vec::new()
        };
        state.runs.insert(run, gate.clone());
        told
    }

    /// Gives a run a slot, whether there is one or not.
    pub(super) fn hold(&self, gate: &Gate, run: RunKey) {
        self.state().hold(gate, run);
    }

    /// A run needs no slot any more, and is in no queue.
    pub(super) fn release(&self, run: RunKey) -> Granted {
        if self.is_empty() {
            return Granted::new();
        }
        let mut state = self.state();
        if !state.open {
            state.ended.insert(run);
        }
        let Some(gate) = state.runs.remove(&run) else {
            return Granted::new();
        };
        if let Some(slots) = state.gates.get_mut(&gate) {
            slots.held.remove(&run);
            slots.queue.remove(&run);
        }
        self.grant(&mut state, &gate)
    }

    /// A run has left memory, and goes on later.
    pub(super) fn suspended(&self, run: RunKey) -> Granted {
        if self.is_empty() {
            return Granted::new();
        }
        let gate = self.state().runs.get(&run).cloned();
        match gate {
            Some(gate) if !self.limit(&gate).holds => self.release(run),
            _ => Granted::new(),
        }
    }

    /// Gives out what is free at the gate of a run that was queued.
    pub(super) fn granted_with(&self, run: RunKey) -> Granted {
        let mut state = self.state();
        match state.runs.get(&run).cloned() {
            Some(gate) => self.grant(&mut state, &gate),
            None => Granted::new(),
        }
    }

    /// From now on slots are given out: those who wait get the first.
    fn open(&self) -> Granted {
        let mut state = self.state();
        state.open = true;
        let ended = std::mem::take(&mut state.ended);
        for run in ended {
            if let Some(gate) = state.runs.remove(&run)
                && let Some(slots) = state.gates.get_mut(&gate)
            {
                slots.held.remove(&run);
                slots.queue.remove(&run);
            }
        }
        let gates: Vec<_> = state.gates.keys().cloned().collect();
        let granted = gates.iter().map(|gate| self.grant(&mut state, gate));
        granted.collect::<Vec<_>>().concat()
    }

    fn grant(&self, state: &mut State, gate: &Gate) -> Granted {
        let mut granted = Granted::new();
        let limit = self.limit(gate).runs;
        let open = state.open;
        let Some(slots) = state.gates.get_mut(gate) else {
            return granted;
        };
        while open
            && slots.held.len() < limit
            && let Some(run) = slots.queue.pop_first()
        {
            slots.held.insert(run);
            granted.push(run);
        }
        if slots.held.is_empty() && slots.queue.is_empty() {
            state.gates.remove(gate);
        }
        granted
    }

    /// Whether a run waits for a slot.
    pub(super) fn is_queued(&self, run: RunKey) -> bool {
        !self.is_empty() && self.state().is_queued(run)
    }

    /// Whether somebody waits for the slot of a run that gives it back when it waits.
    pub(super) fn is_wanted(&self, workflow: &str, run: RunKey) -> bool {
        let holds = |rule: &Rule| rule.limit.holds;
        if self.rules.get(workflow).is_none_or(holds) {
            return false;
        }
        let state = self.state();
        let slots = state.runs.get(&run).and_then(|gate| state.gates.get(gate));
        slots.is_some_and(|slots| !slots.queue.is_empty())
    }

    /// What a run waits for here.
    pub(super) fn queued(&self, run: RunKey) -> Option<Queued> {
        if self.is_empty() {
            return None;
        }
        let state = self.state();
        let gate = state.runs.get(&run)?;
        let queue = &state.gates.get(gate)?.queue;
        queue.contains(&run).then(|| Queued {
            limit: self.limit(gate).runs,
            key: gate.key.as_deref().map(str::to_owned),
            ahead: queue.range(..run).count(),
        })
    }
}

impl State {
    fn hold(&mut self, gate: &Gate, run: RunKey) {
        let slots = self.gates.entry(gate.clone()).or_default();
        slots.queue.remove(&run);
        slots.held.insert(run);
        self.runs.insert(run, gate.clone());
    }

    fn is_queued(&self, run: RunKey) -> bool {
        let slots = self.runs.get(&run).and_then(|gate| self.gates.get(gate));
        slots.is_some_and(|slots| slots.queue.contains(&run))
    }
}

impl fmt::Debug for Limits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map()
            .entries(self.rules.values().map(|rule| (rule.workflow, rule.limit)))
            .finish()
    }
}

/// How many rows are read at a time.
const PAGE: usize = 1_024;

impl Inner {
    /// Wakes those who have got a slot.
    pub(super) fn grant(self: &Arc<Self>, granted: Granted) {
        for run in granted {
            self.wake(run);
        }
    }

    /// Tells the runs that hold a slot which others want: those that only linger leave.
    fn tell_wanted(&self, holders: &[RunKey]) {
        if holders.is_empty() {
            return;
        }
        let runs = self.runs();
        for live in holders.iter().filter_map(|run| runs.by_key.get(run)) {
            live.look();
        }
    }

    /// Lets a run wait for a slot.
    pub(super) fn enqueue(&self, gate: &Gate, run: RunKey) {
        let holders = self.limits.queue(gate, run);
        self.tell_wanted(&holders);
    }

    /// The gate of a run that is begun or loaded.
    pub(super) fn gate_of(&self, workflow: &str, begun: Option<&Begun>) -> Option<Gate> {
        if self.limits.is_empty() {
            return None;
        }
        self.limits.gate(workflow, || {
            let json = codec::open(&*self.codec, &begun?.input).ok()?;
            Some(json.to_vec())
        })
    }

    /// Reads from the store who holds slots and who waits for them. Until this was done nobody gets one.
    pub(super) async fn count_slots(self: &Arc<Self>) -> Result<(), StoreError> {
        if self.limits.is_empty() {
            return Ok(());
        }
        let mut after = None;
        loop {
            let page = self.store.active(after, PAGE).await?;
            let Some(&last) = page.last() else { break };
            after = Some(last);
            for run in page {
                if let Some(row) = self.store.row(run).await? {
                    self.count(&row).await?;
                }
            }
        }
        let holding = self.limits.rules.values().filter(|rule| rule.limit.holds);
        for rule in holding {
            let mut filter = RunFilter {
                workflow: Some(rule.workflow.to_owned()),
                state: Some(RunState::Waiting),
                after: None,
                limit: PAGE,
            };
            loop {
                let page = self.store.list(&filter).await?;
                for row in &page.rows {
                    self.count(row).await?;
                }
                let Some(next) = page.next else { break };
                filter.after = Some(next);
            }
        }
        let granted = self.limits.open();
        self.grant(granted);
        Ok(())
    }

    async fn count(&self, row: &RunRow) -> Result<(), StoreError> {
        let Some(rule) = self.limits.rules.get(&*row.workflow) else {
            return Ok(());
        };
        let first = match &rule.key {
            Some(_) => self.store.first(row.key).await?,
            None => None,
        };
        let begun = first.as_ref().and_then(|record| match &record.body {
            Body::Begun(begun) => Some(&**begun),
            _ => None,
        });
        let Some(gate) = self.gate_of(&row.workflow, begun) else {
            return Ok(());
        };
        match row.state {
            RunState::Running | RunState::Waiting if rule.limit.holds => {
                self.limits.hold(&gate, row.key);
            }
            RunState::RollingBack => self.limits.hold(&gate, row.key),
            RunState::Pending | RunState::Running => {
                self.limits.queue(&gate, row.key);
            }
            _ => {}
        }
        Ok(())
    }
}
