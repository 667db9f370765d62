//! Which runs are driven, and when.
//!
//! The store's deadline index is the truth. The scheduler keeps the next stretch of it in memory: everything due up to
//! its `horizon` was read once, and a run that suspends with an earlier deadline is added directly. So a deadline is
//! looked up once, not at every tick, and a million sleeping runs cost nothing until their time comes near.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::Inner;
use super::room::Place;
use crate::replay::{RunKey, RunState, Timestamp};
use crate::store::{RunFilter, RunRow, StoreError};

/// How far ahead deadlines are read, in longest waits: a minute.
const STRETCH: u32 = 6;

/// When the deadlines could not be read, they are read again after this.
const READ_PAUSE: Duration = Duration::from_secs(1);

/// How many runs are read from an index at a time.
const PAGE: usize = 1_024;

#[derive(Debug)]
struct State {
    soon: BinaryHeap<Reverse<(Timestamp, RunKey)>>,
    /// Every deadline up to here was read.
    horizon: Timestamp,
    stopped: bool,
    task: Option<JoinHandle<()>>,
}

/// The timetable of runs that are not in memory.
#[derive(Debug)]
pub(crate) struct Scheduler {
    state: Mutex<State>,
    changed: Arc<Notify>,
}

impl Scheduler {
    pub(crate) fn new() -> Self {
        let state = State {
            soon: BinaryHeap::new(),
            horizon: Timestamp::MIN,
            stopped: false,
            task: None,
        };
        Self {
            state: Mutex::new(state),
            changed: Arc::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A run left memory; its row says that it is due then.
    pub(crate) fn suspended(&self, at: Timestamp, run: RunKey) {
        // Later ones are read when their time comes near.
        let near = at <= self.state().horizon;
        if near {
            self.at(at, run);
        }
    }

    /// A run is to be driven then, whatever its row says.
    pub(crate) fn at(&self, at: Timestamp, run: RunKey) {
        self.state().soon.push(Reverse((at, run)));
        self.changed.notify_one();
    }

    /// There may be something to do sooner than was thought.
    pub(crate) fn look(&self) {
        self.changed.notify_one();
    }

    pub(crate) fn stop(&self) {
        self.state().stopped = true;
        self.changed.notify_one();
    }

    /// Waits until the task is gone.
    pub(crate) async fn stopped(&self) {
        let task = self.state().task.take();
        if let Some(task) = task {
            // It ends by itself once told to; its error would be a panic, which was printed.
            let _ = task.await;
        }
    }

    /// Starts the task: first what was under way when the store was last closed or cut off, then the timetable.
    pub(crate) fn start(inner: &Arc<Inner>) {
        inner.opens_room();
        let weak = Arc::downgrade(inner);
        let task = tokio::spawn(async move {
            count_slots(&weak).await;
            if let Some(inner) = weak.upgrade()
                && let Err(error) = recover(&inner).await
            {
                tracing::error!(%error, "interrupted runs could not be read");
            }
            keep_time(weak).await;
        });
        inner.scheduler.state().task = Some(task);
    }

    /// Takes what is due, and says when to look again.
    fn due(&self, now: Timestamp) -> (Vec<RunKey>, Option<Timestamp>) {
        let mut state = self.state();
        let mut due = Vec::new();
        while let Some(&Reverse((at, run))) = state.soon.peek() {
            if at > now {
                break;
            }
            state.soon.pop();
            due.push(run);
        }
        (due, state.soon.peek().map(|Reverse((at, _))| *at))
    }
}

/// Finds out who holds the slots of limited workflows. Before that none of them is driven, so it is tried until it is known.
async fn count_slots(weak: &Weak<Inner>) {
    while let Some(inner) = weak.upgrade()
        && !inner.is_closing()
    {
        let Err(error) = inner.count_slots().await else {
            return;
        };
        tracing::error!(%error, "the runs of limited workflows could not be read; they are read again");
        drop(inner);
        tokio::time::sleep(READ_PAUSE).await;
    }
}

/// Drives every run that was in the middle of something, and tries those again that other code parked.
async fn recover(inner: &Arc<Inner>) -> Result<(), StoreError> {
    let mut after = None;
    let mut resumed = 0u64;
    loop {
        let page = inner.store.active(after, PAGE).await?;
        let Some(&last) = page.last() else { break };
        after = Some(last);
        let mut rows = Vec::with_capacity(page.len());
        for run in page {
            rows.extend(inner.store.row(run).await?);
        }
        resumed += rows.len() as u64;
        wake_all(inner, &rows);
        if inner.is_closing() {
            return Ok(());
        }
    }
    let mut filter = RunFilter {
        states: vec![RunState::Parked],
        limit: PAGE,
        ..RunFilter::default()
    };
    let (mut retried, mut left) = (0u64, 0u64);
    loop {
        let page = inner.store.list(&filter).await?;
        // One try per build: what this code could not go on with, it cannot go on with now.
        let (other, same): (Vec<_>, Vec<_>) = page.rows.into_iter().partition(|row| {
            let parked = row.parked.as_ref();
            parked.is_some_and(|parked| inner.may_try(parked))
        });
        left += same.len() as u64;
        retried += other.len() as u64;
        wake_all(inner, &other);
        if inner.is_closing() {
            return Ok(());
        }
        let Some(next) = page.next else { break };
        filter.after = Some(next);
    }
    if resumed + retried + left > 0 {
        tracing::info!(
            resumed,
            retried,
            parked = left,
            "runs taken up again; `parked` ones need other code or an operator"
        );
    }
    Ok(())
}

/// Wakes runs in the order in which they wait for room.
fn wake_all(inner: &Arc<Inner>, rows: &[RunRow]) {
    let mut places: Vec<_> = rows
        .iter()
        .map(|row| Place::new(row.priority, row.key))
        .collect();
    places.sort_unstable();
    for place in places {
        inner.wake_at(place);
    }
}

async fn keep_time(weak: Weak<Inner>) {
    loop {
        // Not held while waiting, so that the engine can be dropped.
        let Some(inner) = weak.upgrade() else { return };
        if inner.scheduler.state().stopped {
            return;
        }
        let now = inner.clock.now();
        // What is due is read again after a while; the horizon has not moved.
        let mut least = Duration::from_millis(1);
        if let Err(error) = read_ahead(&inner, now).await {
            tracing::error!(%error, "the deadlines could not be read");
            least = READ_PAUSE;
        }
        let (due, next) = inner.scheduler.due(now);
        for run in due {
            inner.wake(run);
        }
        inner.grant(inner.limits.pass(now));
        let opens_at = inner.limits.opens_at();
        let look = inner
            .scheduler
            .state()
            .horizon
            .min(next.unwrap_or(Timestamp::MAX))
            .min(opens_at.unwrap_or(Timestamp::MAX));
        let wait = look
            .since(inner.clock.now())
            .clamp(least, inner.longest_wait());
        let changed = Arc::clone(&inner.scheduler.changed);
        drop(inner);
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = changed.notified() => {}
        }
    }
}

/// Reads the deadlines of the next stretch, once half of the last one has passed.
async fn read_ahead(inner: &Inner, now: Timestamp) -> Result<(), StoreError> {
    let from = inner.scheduler.state().horizon;
    let stretch = inner.longest_wait() * STRETCH;
    if from > now.after(stretch / 2) {
        return Ok(());
    }
    let until = now.after(stretch);
    // Moved first: a run that suspends from now on adds itself, and one that is read twice is woken once.
    inner.scheduler.state().horizon = until;
    let mut after = (from != Timestamp::MIN).then_some((from, RunKey(u64::MAX)));
    loop {
        let page = match inner.store.due(after, until, PAGE).await {
            Ok(page) => page,
            Err(error) => {
                inner.scheduler.state().horizon = from;
                return Err(error);
            }
        };
        let Some(&last) = page.last() else {
            return Ok(());
        };
        after = Some(last);
        inner
            .scheduler
            .state()
            .soon
            .extend(page.into_iter().map(Reverse));
    }
}
