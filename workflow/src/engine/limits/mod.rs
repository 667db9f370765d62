//! How many runs of a workflow are under way at once, and how many begin in a time.
//!
//! 1. A run is driven only while it has what its gate asks for: of a limited workflow a slot of its group, that of its workflow or of
//!    its workflow and key; of one with a rate, when it was not begun, the right of its group to begin one more. It gets both at
//!    once or none. One that does not is in the gate's line, in the store, and not in memory.
//! 2. Of those who could go on, the one of the highest priority does, and of equals the one that was started first. That one is
//!    woken. Whoever comes new does not overtake. One that waits for its rate does not hold up those who need a slot only.
//! 3. Who holds a slot is not stored: it follows from the rows. Begins are: a value each (`begun`), in the transaction that says of the
//!    run that it is begun, which is durable before its code is polled. Until both are read nobody gets anything.
//! 4. A begin counts from when it is recorded, and not from when it was granted: between the two a run may wait for room.
//! 5. What is rolling back holds a slot without being asked to wait for one: its code is over, and whoever cancelled it must not
//!    wait for others.

mod begun;
mod gates;
mod rule;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub(super) use gates::{Gate, Granted};
pub(super) use rule::{Key, Rules};
pub use rule::{Limit, Queued, Rate};

use self::begun::Begun;
use self::gates::Gates;
use super::Inner;
use super::driver::Exit;
use super::live::Live;
use super::room::Place;
use crate::codec::{self, BoxError};
use crate::replay::{self, Body, Payload, RunKey, RunState, Timestamp};
use crate::store::{Append, Appended, InboxChange, Post, RunFilter, RunPatch, RunRow, StoreError};

/// The limits and rates of an engine.
#[derive(Default)]
pub(crate) struct Limits {
    rules: Arc<Rules>,
    gates: Mutex<Gates>,
}

/// What a begin writes beside what it begins.
pub(super) type Written = Vec<(String, Option<Payload>)>;

impl Limits {
    pub(super) fn new(rules: Rules) -> Self {
        let rules = Arc::new(rules);
        Self {
            gates: Mutex::new(Gates::new(Arc::clone(&rules))),
            rules,
        }
    }

    fn gates(&self) -> MutexGuard<'_, Gates> {
        self.gates.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there is none at all: then nothing here is asked.
    pub(super) fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// The gate of a new run, if its workflow has one. `json` gives its input.
    pub(super) fn gate(
        &self,
        workflow: &str,
        json: impl FnOnce() -> Option<Vec<u8>>,
    ) -> Option<Gate> {
        self.rules.gate(workflow, false, json)
    }

    /// Gives a run what its gate asks for, if it has that, or it is there and nobody is before it. It is in no line by this.
    pub(super) fn take(&self, gate: &Gate, place: Place, now: Timestamp) -> bool {
        self.gates().take(gate, place, now)
    }

    /// Gives a run a slot, whether there is one or not.
    pub(super) fn hold(&self, gate: &Gate, place: Place) {
        self.gates().hold(gate, place);
    }

    /// A run needs nothing any more, and is in no line.
    pub(super) fn release(&self, run: RunKey, now: Timestamp) -> Granted {
        if self.is_empty() {
            return Granted::new();
        }
        self.gates().release(run, now)
    }

    /// A run has left memory, and goes on later.
    pub(super) fn suspended(&self, run: RunKey, now: Timestamp) -> Granted {
        if self.is_empty() {
            return Granted::new();
        }
        let mut gates = self.gates();
        let limited = gates.limited(run);
        if limited.is_some_and(|workflow| self.rules.holds(workflow)) {
            return Granted::new();
        }
        gates.release(run, now)
    }

    /// Gives out what is there of what a run waits for that was put in line.
    pub(super) fn granted_with(&self, run: RunKey, now: Timestamp) -> Granted {
        self.gates().granted_with(run, now)
    }

    /// Time has passed: who may begin because of that does.
    pub(super) fn pass(&self, now: Timestamp) -> Granted {
        if self.is_empty() {
            return Granted::new();
        }
        self.gates().pass(now)
    }

    /// When somebody may begin because time has passed.
    pub(super) fn opens_at(&self) -> Option<Timestamp> {
        if self.is_empty() {
            return None;
        }
        self.gates().opens_at()
    }

    /// Whether a run waits here.
    pub(super) fn is_queued(&self, run: RunKey) -> bool {
        !self.is_empty() && self.gates().is_queued(run)
    }

    /// Whether somebody waits for the slot of a run that gives it back when it waits.
    pub(super) fn is_wanted(&self, workflow: &str, run: RunKey) -> bool {
        self.rules.gives_back(workflow) && self.gates().is_wanted(run)
    }

    /// What a run waits for here.
    pub(super) fn queued(&self, run: RunKey, now: Timestamp) -> Option<Queued> {
        if self.is_empty() {
            return None;
        }
        self.gates().queued(run, now)
    }
}

impl fmt::Debug for Limits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.rules.fmt(f)
    }
}

/// What a begin writes, as its batch has it.
pub(super) fn values(written: Written) -> Vec<Post> {
    if written.is_empty() {
        return Vec::new();
    }
    vec![Post::Values(written)]
}

/// How many rows are read at a time.
const PAGE: usize = 1_024;

impl Inner {
    /// Wakes those who have got what they waited for.
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

    /// Lets a run wait for what its gate asks for.
    pub(super) fn enqueue(&self, gate: &Gate, place: Place) {
        let holders = self.limits.gates().queue(gate, place);
        // Of a limit that is kept nobody leaves because of it.
        if let Some(group) = &gate.slot
            && self.limits.rules.gives_back(group.workflow)
        {
            self.tell_wanted(&holders);
        }
        if gate.begins() {
            // It may have to wait for a time.
            self.scheduler.look();
        }
    }

    /// The gate of a run that is loaded.
    pub(super) fn gate_of(&self, row: &RunRow, begun: Option<&replay::Begun>) -> Option<Gate> {
        if self.limits.is_empty() {
            return None;
        }
        self.limits.rules.gate(&row.workflow, row.has_begun(), || {
            let json = codec::open(&*self.codec, &begun?.input).ok()?;
            Some(json.to_vec())
        })
    }

    /// A run that was not begun is begun now: what that writes, in the transaction that says so. Nothing when nobody has to know
    /// after a crash: when its begin does not count, and its slot is not one that it keeps.
    ///
    /// # Errors
    /// When the codec does not seal the key by which it is counted.
    pub(super) fn begins(&self, gate: &Gate, run: RunKey) -> Result<Option<Written>, BoxError> {
        let Some(group) = &gate.begin else {
            let slot = gate.slot.as_ref();
            let keeps = slot.is_some_and(|group| self.limits.rules.holds(group.workflow));
            return Ok(keeps.then(Written::new));
        };
        let key = begun::seal(&*self.codec, group)?;
        let now = self.clock.now();
        let Some(stale) = self.limits.gates().begin(run, now) else {
            return Ok(None);
        };
        // Who waits for the rate waits for a time now, if nobody had begun before.
        self.scheduler.look();
        let begun = Begun { at: now, run };
        let mut written = vec![(begun.key(group.workflow), Some(key))];
        written.extend(stale.into_iter().map(|it| (it.key(group.workflow), None)));
        Ok(Some(written))
    }

    /// Says in the store that a run is begun which was let begin, before it is. Gives how the drive ends when that was refused.
    pub(super) async fn record_begin(
        &self,
        live: &Live,
        row: &mut RunRow,
        gate: Option<&Gate>,
    ) -> Option<Exit> {
        let gate = gate.filter(|_| !row.has_begun());
        let written = match gate.map(|gate| self.begins(gate, live.run)) {
            None | Some(Ok(None)) => return None,
            Some(Ok(Some(written))) => written,
            Some(Err(error)) => {
                let error = StoreError::Io {
                    operation: "sealing the key of a rate",
                    retryable: true,
                    source: error,
                };
                return Some(Exit::Storage {
                    error,
                    unborn: false,
                });
            }
        };
        let append = Append {
            run: live.run,
            epoch: self.identity.boot,
            number: live.number(),
            expected_seq: row.last_seq,
            create: None,
            records: Vec::new(),
            deletes: Vec::new(),
            patch: RunPatch {
                state: Some(RunState::Running),
                parked: row.parked.is_some().then_some(None),
                wake_at: Some(None),
                at: self.clock.now(),
                code: self.code,
                ..RunPatch::default()
            },
            inbox: InboxChange::default(),
            posts: values(written),
        };
        match self.store.append(append).await {
            Ok(Appended::Applied | Appended::AlreadyApplied) => {
                row.state = RunState::Running;
                row.parked = None;
                row.wake_at = None;
                None
            }
            Ok(refused) => Some(Exit::Refused(refused)),
            Err(error) => Some(Exit::Storage {
                error,
                unborn: false,
            }),
        }
    }

    /// Reads from the store who holds slots, who was begun lately, and who waits. Until this was done nobody gets anything.
    pub(super) async fn count_slots(self: &Arc<Self>) -> Result<(), StoreError> {
        if self.limits.is_empty() {
            return Ok(());
        }
        self.count_begins().await?;
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
        for workflow in self.limits.rules.holding() {
            let mut filter = RunFilter {
                workflow: Some(workflow.to_owned()),
                states: vec![RunState::Waiting],
                limit: PAGE,
                ..RunFilter::default()
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
        let granted = self.limits.gates().open(self.clock.now());
        self.grant(granted);
        Ok(())
    }

    /// Reads the begins of the last interval.
    async fn count_begins(&self) -> Result<(), StoreError> {
        let rules = &self.limits.rules;
        self.limits.gates().reread();
        let mut after: Option<String> = None;
        loop {
            let page = self
                .store
                .values(begun::PREFIX, after.as_deref(), PAGE)
                .await?;
            let Some((last, _)) = page.last() else {
                return Ok(());
            };
            after = Some(last.clone());
            let now = self.clock.now();
            for (key, sealed) in &page {
                let Some((workflow, begun)) = Begun::read(key) else {
                    continue;
                };
                let group = match begun::open(&*self.codec, sealed) {
                    Ok(key) => rules.rated(workflow, key),
                    Err(error) => {
                        tracing::error!(workflow, %error, "a begin cannot be read; it does not count for the workflow's rate");
                        None
                    }
                };
                let mut gates = self.limits.gates();
                match (group, rules.known(workflow)) {
                    (Some(group), _) => gates.counts(&group, begun, now),
                    (None, Some(workflow)) => gates.forget(workflow, begun),
                    (None, None) => {}
                }
            }
        }
    }

    async fn count(&self, row: &RunRow) -> Result<(), StoreError> {
        let rules = &self.limits.rules;
        if rules.known(&row.workflow).is_none() {
            return Ok(());
        }
        // One that was not begun because of its time is brought by that.
        if row.not_before.is_some_and(|at| at > self.clock.now()) && !row.has_begun() {
            return Ok(());
        }
        let first = if rules.has_keys(&row.workflow) {
            self.store.first(row.key).await?
        } else {
            None
        };
        let begun = first.as_ref().and_then(|record| match &record.body {
            Body::Begun(begun) => Some(&**begun),
            _ => None,
        });
        let Some(gate) = self.gate_of(row, begun) else {
            return Ok(());
        };
        let place = Place::new(row.priority, row.key);
        let keeps = rules.holds(&row.workflow) && row.has_begun();
        let mut gates = self.limits.gates();
        match row.state {
            RunState::Running | RunState::Waiting if keeps => gates.hold(&gate, place),
            RunState::RollingBack => gates.hold(&gate, place),
            RunState::Pending | RunState::Running => {
                gates.queue(&gate, place);
            }
            RunState::Waiting if !row.has_begun() => {
                gates.queue(&gate, place);
            }
            _ => {}
        }
        Ok(())
    }
}
