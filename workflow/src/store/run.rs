//! The row of a run, as every store shows it.

use crate::replay::{CodeId, Location, ParkReason, RunId, RunKey, RunState, Standing, Timestamp};

/// Everything a store keeps of a run beside its history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRow {
    /// Its number.
    pub key: RunKey,
    /// Its id.
    pub id: RunId,
    /// The workflow's name.
    pub workflow: String,
    /// What it is doing.
    pub state: RunState,
    /// Why it is parked, if it is.
    pub parked: Option<Parked>,
    /// The code that last wrote to it.
    pub advanced_by: CodeId,
    /// The newest claim on it. Writers of an older one are refused.
    pub epoch: u64,
    /// The number of its last record.
    pub last_seq: u64,
    /// The epoch and number of its last append.
    pub last_append: (u64, u64),
    /// How many times it was rewound or compensated and recovered.
    pub generation: u32,
    /// When it is to be woken, if it waits for a time.
    pub wake_at: Option<Timestamp>,
    /// The channels it waits on; `Some(vec![])` for any.
    pub waits: Option<Vec<String>>,
    /// The newest arrival that was given in its inbox.
    pub inbox_seq: u64,
    /// The run that started it, and where.
    pub parent: Option<(RunId, Location)>,
    /// True when nobody awaits its result.
    pub detached: bool,
    /// What `progress!` last published, as JSON.
    pub progress: Option<String>,
    /// How many owners in a row are known to have died while they drove it, without anything it did becoming durable.
    pub unclean: u32,
    /// True when its last owner let go of it in the middle of something, and did not die.
    pub released: bool,
    /// Before which time it was not to begin, if its start said so.
    pub not_before: Option<Timestamp>,
    /// Where it stands among those that wait for a slot or for room: the higher goes first.
    pub priority: i32,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// When it became final.
    pub finished_at: Option<Timestamp>,
}

impl RunRow {
    /// Whether the run's code is over and what it did is being undone, or is stuck there.
    pub(crate) fn is_undone(&self) -> bool {
        let parked = self.parked.as_ref();
        self.state == RunState::RollingBack
            || parked.is_some_and(|parked| parked.reason.is_of_undo())
    }

    /// Whether it was begun: its code has run, or may have. One that was not is stored and waits for its time, for a slot, for
    /// room, or for a program that has its workflow.
    pub fn has_begun(&self) -> bool {
        match self.state {
            RunState::Pending => false,
            // Whoever waits in the middle of its code has recorded at what.
            RunState::Waiting => self.last_seq > 1,
            // Whose workflow nobody knew when it was to begin was not.
            RunState::Parked => {
                let parked = self.parked.as_ref();
                let unknown = parked.is_some_and(|it| it.reason == ParkReason::Unregistered);
                !unknown || self.last_seq > 1
            }
            _ => true,
        }
    }

    /// Whether it is to be driven: it was cut off in the middle of something, or its time has come.
    pub fn is_due(&self, now: Timestamp) -> bool {
        self.state.is_active()
            || (self.state == RunState::Waiting && self.wake_at.is_some_and(|at| at <= now))
    }

    /// What the row says of what the run is doing.
    pub fn standing(&self) -> Standing {
        Standing {
            state: self.state,
            wake_at: self.wake_at,
            waits: self.waits.clone(),
        }
    }
}

/// Why and for whom a run is parked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parked {
    /// Why.
    pub reason: ParkReason,
    /// The code that could not go on with it: only other code may try again.
    pub by: CodeId,
    /// The whole report, for people.
    pub detail: String,
}

/// What a batch says of the run it creates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRun {
    /// Its id.
    pub id: RunId,
    /// The workflow's name.
    pub workflow: String,
    /// The run that starts it, and where.
    pub parent: Option<(RunId, Location)>,
    /// True when nobody awaits its result.
    pub detached: bool,
    /// Not to begin before then: the run is `Waiting`, and wakes at that time. So its batch says no state.
    pub not_before: Option<Timestamp>,
    /// Where it stands among those that wait for a slot or for room: the higher goes first.
    pub priority: i32,
}

/// What a batch changes in a run's row. Absent is unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunPatch {
    /// The new state. A final one also clears `wake_at` and `waits` and sets `finished_at`.
    pub state: Option<RunState>,
    /// Parked, for this reason, or no longer.
    pub parked: Option<Option<Parked>>,
    /// The new wake time, or none any more.
    pub wake_at: Option<Option<Timestamp>>,
    /// The new waits, or none any more.
    pub waits: Option<Option<Vec<String>>>,
    /// What `progress!` published.
    pub progress: Option<String>,
    /// The new count of unclean claims.
    pub unclean: Option<u32>,
    /// The owner lets go of the run with this batch. Its next batch takes that back.
    pub released: bool,
    /// The new generation.
    pub generation: Option<u32>,
    /// When the batch closed; becomes `updated_at`.
    pub at: Timestamp,
    /// The code that wrote it.
    pub code: CodeId,
}

/// Which rows to list, and in which order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunFilter {
    /// Only runs of this workflow.
    pub workflow: Option<String>,
    /// Only runs in one of these states; none is all of them.
    pub states: Vec<RunState>,
    /// Only runs whose id begins with this.
    pub id_prefix: Option<String>,
    /// Only runs whose id has this somewhere in it.
    pub id_contains: Option<String>,
    /// Only runs that were created then or later.
    pub created_from: Option<Timestamp>,
    /// Only runs that were created before then.
    pub created_until: Option<Timestamp>,
    /// Only runs that last changed then or later.
    pub changed_from: Option<Timestamp>,
    /// The newest first: in falling order of their numbers.
    pub newest_first: bool,
    /// Only runs that come after this one, in that order.
    pub after: Option<RunKey>,
    /// At most so many.
    pub limit: usize,
    /// A page ends when so many rows were looked at, give or take a few hundred, however few of them fit: so that a call of which
    /// nothing comes is short, too. As many as there are unless it is said.
    pub look_at: usize,
}

impl Default for RunFilter {
    fn default() -> Self {
        Self {
            workflow: None,
            states: Vec::new(),
            id_prefix: None,
            id_contains: None,
            created_from: None,
            created_until: None,
            changed_from: None,
            newest_first: false,
            after: None,
            limit: 100,
            look_at: usize::MAX,
        }
    }
}

impl RunFilter {
    /// What stands first in a row decides, before the rest of it is read.
    pub(crate) fn takes(&self, id: &str, workflow: &str, state: RunState) -> bool {
        let is = |wanted: &Option<String>, fits: &dyn Fn(&str) -> bool| {
            wanted.as_deref().is_none_or(fits)
        };
        (self.states.is_empty() || self.states.contains(&state))
            && is(&self.workflow, &|wanted| workflow == wanted)
            && is(&self.id_prefix, &|prefix| id.starts_with(prefix))
            && is(&self.id_contains, &|part| id.contains(part))
    }

    pub(crate) fn takes_times(&self, created: Timestamp, changed: Timestamp) -> bool {
        self.created_from.is_none_or(|at| created >= at)
            && self.created_until.is_none_or(|at| created < at)
            && self.changed_from.is_none_or(|at| changed >= at)
    }

    /// Whether it asks for times at all.
    #[cfg(feature = "redb")]
    pub(crate) fn has_times(&self) -> bool {
        self.created_from.is_some() || self.created_until.is_some() || self.changed_from.is_some()
    }
}

impl RunRow {
    /// Whether a listing with this filter shows it; where it starts and ends is not asked here.
    pub(crate) fn fits(&self, filter: &RunFilter) -> bool {
        filter.takes(self.id.as_str(), &self.workflow, self.state)
            && filter.takes_times(self.created_at, self.updated_at)
    }
}

/// Rows that fit a filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The rows, in the order that was asked for.
    pub rows: Vec<RunRow>,
    /// Where to go on, if there are more: the last of the rows, unless the page ended because enough was looked at.
    pub next: Option<RunKey>,
}
