//! Runs that may be what killed the process: they are driven one at a time, after the others.
//!
//! How often a run's owners died in a row is known from its row. That costs no commit per step: an owner that dies once leaves behind
//! a run in the middle of something, last written in an earlier opening of the store. Only who takes such a run over a second time says so in
//! the row, and who takes over a run that was overdue when the store was opened: it may have been woken and have died without a word.

use std::collections::{BTreeSet, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::task::JoinHandle;

use super::Inner;
use super::driver::Exit;
use super::live::Live;
use crate::replay::{ParkReason, RunKey, RunState};
use crate::store::{Append, Appended, InboxChange, RunPatch, RunRow};

/// From so many dead owners on, a run is driven alone.
const SUSPECT: u32 = 2;
/// After more than so many it is not driven any more without an operator.
const HOPELESS: u32 = 10;
/// So long the others may take to come to rest before a suspect is driven beside them.
const OTHERS: Duration = Duration::from_secs(5);
/// So long a suspect is driven alone before the next one is.
const ALONE: Duration = Duration::from_secs(30);
/// How often it is looked whether that is over.
const LOOK: Duration = Duration::from_millis(20);

/// The runs that are held back.
#[derive(Debug, Default)]
pub(crate) struct Quarantine(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Those that wait, the least suspect first.
    held: BTreeSet<(u32, RunKey)>,
    /// Those that may be driven now.
    free: HashSet<RunKey>,
    task: Option<JoinHandle<()>>,
}

impl Quarantine {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nothing more is let out.
    pub(crate) fn stop(&self) -> Option<JoinHandle<()>> {
        let task = self.state().task.take();
        task.inspect(JoinHandle::abort)
    }
}

/// What is known of a run's earlier owners.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Claim {
    /// How many in a row died while they drove it.
    pub(crate) died: u32,
    /// Whether the row has to say so before it is driven.
    says: bool,
}

impl Claim {
    /// Its hopeless state, as a report.
    pub(crate) fn hopeless(self) -> Option<(ParkReason, String)> {
        (self.died > HOPELESS).then(|| {
            let detail = format!(
                "the process ended {} times in a row while this run was driven, and nothing it did became durable: \
                 it may be what ends the process. Resume it when that is mended",
                self.died
            );
            (ParkReason::Panicked, detail)
        })
    }
}

impl Inner {
    /// What the row of a run that is to be driven says of its earlier owners.
    pub(super) fn claim_of(&self, row: &RunRow) -> Claim {
        let boot = self.identity.boot;
        let earlier = row.last_append.0 < boot;
        let cut_off = earlier
            && !row.released
            && matches!(row.state, RunState::Running | RunState::RollingBack);
        let overdue = earlier
            && row.state == RunState::Waiting
            && row.wake_at.is_some_and(|at| at <= self.opened_at);
        // Whether it was driven in an opening that left no trace is not known: it counts for nothing.
        let unsaid = row.unclean == 0 && row.last_append.0 + 1 == boot;
        Claim {
            died: row.unclean + u32::from(cut_off),
            says: overdue || (cut_off && !unsaid),
        }
    }

    /// Whether a run is held back for now, because it may be what killed the process.
    pub(super) fn holds_back(self: &Arc<Self>, run: RunKey, claim: Claim) -> bool {
        if claim.died < SUSPECT {
            return false;
        }
        let mut state = self.quarantine.state();
        if state.free.contains(&run) {
            return false;
        }
        if !state.held.iter().any(|(_, held)| *held == run) {
            tracing::warn!(
                ?run,
                died = claim.died,
                "the process ended more than once while this run was driven; it is driven alone"
            );
            state.held.insert((claim.died, run));
        }
        if state.task.is_none() && !self.is_closing() {
            state.task = Some(tokio::spawn(let_out(Arc::downgrade(self))));
        }
        true
    }

    /// Says in the row that the run is being driven, when it has to be said. Gives how the drive ends when that was refused.
    pub(super) async fn stake(&self, live: &Live, row: &mut RunRow, claim: Claim) -> Option<Exit> {
        if !claim.says {
            return None;
        }
        let state = match row.state {
            RunState::RollingBack => RunState::RollingBack,
            _ => RunState::Running,
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
                state: Some(state),
                unclean: Some(claim.died),
                at: self.clock.now(),
                code: self.code,
                ..RunPatch::default()
            },
            inbox: InboxChange::default(),
            posts: Vec::new(),
        };
        match self.store.append(append).await {
            Ok(Appended::Applied | Appended::AlreadyApplied) => {
                row.state = state;
                None
            }
            Ok(refused) => Some(Exit::Refused(refused)),
            Err(error) => Some(Exit::Storage {
                error,
                unborn: false,
            }),
        }
    }
}

/// Lets the held runs out, one at a time: each when the others have come to rest, or have had time to.
async fn let_out(inner: Weak<Inner>) {
    let mut alone = None;
    loop {
        until(&inner, OTHERS, |inner| {
            let runs = inner.runs();
            !inner.is_crowded()
                && runs.coming.is_empty()
                && runs.by_key.keys().all(|run| Some(*run) == alone)
        })
        .await;
        let Some(engine) = inner.upgrade() else {
            return;
        };
        let next = {
            let mut state = engine.quarantine.state();
            let next = state.held.pop_first();
            match next {
                Some((_, run)) => {
                    state.free.insert(run);
                }
                // Whoever is held from now on needs another one.
                None => state.task = None,
            }
            next
        };
        let Some((_, run)) = next else { return };
        alone = Some(run);
        engine.wake(run);
        let before = engine.store.row(run).await.ok().flatten();
        drop(engine);
        // Alone until it has gone, or something it did is durable.
        let begun = tokio::time::Instant::now();
        while begun.elapsed() < ALONE {
            tokio::time::sleep(LOOK).await;
            let Some(engine) = inner.upgrade() else {
                return;
            };
            let now = engine.store.row(run).await.ok().flatten();
            let seq = |row: &Option<RunRow>| row.as_ref().map(|row| row.last_seq);
            if seq(&now) != seq(&before) || !engine.is_coming(run) {
                break;
            }
        }
    }
}

/// Waits until it is so, but no longer than `limit`.
async fn until(inner: &Weak<Inner>, limit: Duration, is_so: impl Fn(&Inner) -> bool) {
    let begun = tokio::time::Instant::now();
    while begun.elapsed() < limit {
        tokio::time::sleep(LOOK).await;
        match inner.upgrade() {
            Some(inner) if !is_so(&inner) => {}
            _ => return,
        }
    }
}
