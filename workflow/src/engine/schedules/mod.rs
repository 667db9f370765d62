//! Schedules in an engine: `keeper` starts what is due, `rows` is what the store has of them. Here is what is asked of them.

mod keeper;
mod rows;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::task::JoinHandle;

use self::keeper::Trouble;
use self::rows::{Pause, Rows};
use super::{AnyWorkflow, BuildError, Engine, Inner, RunHandle, StartError};
use crate::replay::{RunId, Timestamp};
use crate::schedule::{Plan, Schedule};
use crate::store::StoreError;

/// The schedules that an engine was given.
#[derive(Default)]
pub(crate) struct Schedules {
    kept: BTreeMap<String, Arc<Kept>>,
    tasks: Mutex<Vec<JoinHandle<()>>>,
}

/// One of them.
struct Kept {
    plan: Plan,
    /// Something of it changed that its task does not know.
    changed: Notify,
    /// Held by who changes something of it.
    gate: tokio::sync::Mutex<()>,
    /// Why it could not fire when it last tried.
    trouble: Mutex<Option<String>>,
    /// The run of which the store did not say whether it was started.
    unsure: Mutex<Option<RunId>>,
}

impl Schedules {
    pub(super) fn new(schedules: Vec<Schedule>) -> Result<Self, BuildError> {
        let mut kept = BTreeMap::new();
        for schedule in schedules {
            let plan = schedule.plan()?;
            let name = plan.name().to_owned();
            let one = Kept {
                plan,
                changed: Notify::new(),
                gate: tokio::sync::Mutex::new(()),
                trouble: Mutex::default(),
                unsure: Mutex::default(),
            };
            if kept.insert(name.clone(), Arc::new(one)).is_some() {
                return Err(BuildError::SameSchedule { name });
            }
        }
        Ok(Self {
            kept,
            tasks: Mutex::default(),
        })
    }

    /// Notes in the store what is new, so that its firings count from now on, and starts what keeps them.
    pub(super) async fn start(inner: &Arc<Inner>) -> Result<(), StoreError> {
        for kept in inner.schedules.kept.values() {
            inner.look(kept).await?;
        }
        let schedules = inner.schedules.kept.values();
        let tasks = schedules.map(|kept| {
            let (inner, kept) = (Arc::downgrade(inner), Arc::clone(kept));
            tokio::spawn(keeper::keep(inner, kept))
        });
        inner.schedules.tasks().extend(tasks);
        Ok(())
    }

    pub(super) fn stop(&self) -> Vec<JoinHandle<()>> {
        let tasks = std::mem::take(&mut *self.tasks());
        tasks.iter().for_each(JoinHandle::abort);
        tasks
    }

    fn tasks(&self) -> MutexGuard<'_, Vec<JoinHandle<()>>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn names(&self) -> Vec<String> {
        self.kept.keys().cloned().collect()
    }
}

impl fmt::Debug for Schedules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plans = self.kept.values().map(|kept| &kept.plan);
        f.debug_list().entries(plans).finish()
    }
}

/// What a schedule is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScheduleStatus {
    /// Its name.
    pub name: String,
    /// Its expression.
    pub cron: String,
    /// Its time zone.
    pub zone: String,
    /// The workflow whose runs it starts; `None` in an engine that was not given the schedule.
    pub workflow: Option<&'static str>,
    /// The next time at which it fires; one that has passed when that is due and was not started yet. `None` while it is paused, and
    /// when no other comes. In an engine that was not given the schedule, as it was recorded with the last firing.
    pub next: Option<Timestamp>,
    /// The last firing that was started by itself: its time, and its run.
    pub last: Option<(Timestamp, RunId)>,
    /// Since when it is paused, and why.
    pub paused: Option<(Timestamp, String)>,
    /// Why what is due could not be started when that was last tried. It is tried again.
    pub trouble: Option<String>,
}

/// What a backfill did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Backfilled {
    /// How many runs it started.
    pub started: u64,
    /// How many firings had a run already.
    pub existing: u64,
}

/// Why a schedule did not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScheduleError {
    /// There is none of that name.
    #[error("there is no schedule `{name}` here; {}", known_ones(known))]
    NotFound {
        /// The name.
        name: String,
        /// Those that the engine has.
        known: Vec<String>,
    },
    /// The store knows it, and the engine was not given it: what it starts is in the program that has it.
    #[error(
        "schedule `{name}` was not given to this engine, which does not know what it starts: ask the program that has it"
    )]
    NotGiven {
        /// The name.
        name: String,
    },
    /// A backfill is of what has passed.
    #[error("a backfill ends now at the latest: what comes later is started when it is due")]
    NotYet,
    /// The code that gives the workflow's input panicked.
    #[error("what gives the input of schedule `{name}` panicked: {message}")]
    Panicked {
        /// The schedule.
        name: String,
        /// What it said.
        message: String,
    },
    /// The run could not be started.
    #[error(transparent)]
    Start(StartError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn known_ones(known: &[String]) -> String {
    match known {
        [] => "the engine has none".to_owned(),
        known => format!("there are `{}`", known.join("`, `")),
    }
}

impl From<StartError> for ScheduleError {
    fn from(error: StartError) -> Self {
        match error {
            StartError::Store(error) => Self::Store(error),
            error => Self::Start(error),
        }
    }
}

/// A schedule of an engine. From [`Engine::schedule`].
#[derive(Debug, Clone)]
#[must_use = "help: ask it for something: `.status()`, `.pause(..)`, `.trigger()`"]
pub struct ScheduleHandle {
    engine: Engine,
    name: String,
}

impl Engine {
    /// A schedule, by its name. Whether there is one is told by what is asked of it.
    pub fn schedule(&self, name: impl Into<String>) -> ScheduleHandle {
        ScheduleHandle {
            engine: self.clone(),
            name: name.into(),
        }
    }

    /// All schedules, by name: those that this engine was given, and those that the store knows.
    ///
    /// # Errors
    /// [`ScheduleError::Store`].
    pub async fn schedules(&self) -> Result<Vec<ScheduleStatus>, ScheduleError> {
        let inner = &self.inner;
        let mut all: BTreeMap<_, _> = Rows::all(&*inner.store).await?.into_iter().collect();
        for name in inner.schedules.names() {
            all.entry(name).or_default();
        }
        let all = all.into_iter();
        Ok(all
            .map(|(name, rows)| inner.status_of(name, &rows))
            .collect())
    }
}

impl ScheduleHandle {
    /// What it is doing.
    ///
    /// # Errors
    /// [`ScheduleError::NotFound`], or the store failed.
    pub async fn status(&self) -> Result<ScheduleStatus, ScheduleError> {
        let rows = self.rows().await?;
        Ok(self.engine.inner.status_of(self.name.clone(), &rows))
    }

    /// Starts nothing by itself from now on, also after a restart, until it is [resumed](Self::resume). When this was awaited it is
    /// durable, and nothing is being started any more. A schedule that is paused stays as it was paused first.
    ///
    /// # Errors
    /// [`ScheduleError::NotFound`], or the store failed.
    pub async fn pause(&self, reason: impl Into<String>) -> Result<(), ScheduleError> {
        self.set(true, reason.into()).await
    }

    /// Goes on. What came due while it was paused is not started, nor what had come due before and waited:
    /// [`backfill`](Self::backfill) does that.
    ///
    /// # Errors
    /// [`ScheduleError::NotFound`], or the store failed.
    pub async fn resume(&self) -> Result<(), ScheduleError> {
        self.set(false, String::new()).await
    }

    /// Starts a run now, beside what is under way, also while it is paused. Its id has this instant, to the millisecond; at the very
    /// instant of a firing the next one, for it is no firing of the expression: nothing else changes by it.
    ///
    /// # Errors
    /// [`ScheduleError`]: there is none, the engine was not given it, or the run could not be started.
    pub async fn trigger(&self) -> Result<RunHandle<AnyWorkflow>, ScheduleError> {
        let kept = self.given().await?;
        let now = self.engine.inner.clock.now().as_millis();
        let [before, at, later] = [-1, 0, 1].map(|it| Timestamp::from_millis(now + it));
        let is_firing = kept.plan.after(before) == Some(at);
        self.start(&kept, if is_firing { later } else { at }).await
    }

    /// Starts a run for each firing from `from` on and before `to`, as the schedule says it now, in order and beside each other,
    /// also while it is paused. A firing that has a run is not started again, so a backfill that was cut off is made again.
    ///
    /// One whose run was deleted is started again.
    ///
    /// # Errors
    /// [`ScheduleError`]: as [`trigger`](Self::trigger), or `to` has not come yet. Those before it were started.
    ///
    /// # Cancel safety
    /// When this future is dropped, some were started and the rest were not.
    pub async fn backfill(
        &self,
        from: Timestamp,
        to: Timestamp,
    ) -> Result<Backfilled, ScheduleError> {
        let kept = self.given().await?;
        let inner = &self.engine.inner;
        if to > inner.clock.now() {
            return Err(ScheduleError::NotYet);
        }
        let mut done = Backfilled::default();
        let mut at = Timestamp::from_millis(from.as_millis().saturating_sub(1));
        while let Some(next) = kept.plan.after(at).filter(|next| *next < to) {
            at = next;
            let id = kept.plan.firing(at).run();
            if inner.store.find(&id).await?.is_some() {
                done.existing += 1;
                continue;
            }
            self.start(&kept, at).await?;
            done.started += 1;
        }
        Ok(done)
    }

    async fn start(
        &self,
        kept: &Kept,
        at: Timestamp,
    ) -> Result<RunHandle<AnyWorkflow>, ScheduleError> {
        let asked = self.engine.inner.asked_by(kept, kept.plan.firing(at));
        let asked = asked.map_err(|trouble| match trouble {
            Trouble::Store(error) => ScheduleError::Store(error),
            Trouble::Start(error) => error.into(),
            Trouble::Panicked(message) => ScheduleError::Panicked {
                name: self.name.clone(),
                message,
            },
        })?;
        Ok(self.engine.begin_asked(asked).await?)
    }

    async fn set(&self, paused: bool, reason: String) -> Result<(), ScheduleError> {
        let inner = &self.engine.inner;
        let kept = inner.schedules.kept.get(&self.name);
        // Whoever is starting something has done so then.
        let _alone = match kept {
            Some(kept) => Some(kept.gate.lock().await),
            None => None,
        };
        let rows = self.rows().await?;
        if rows.paused().is_some() == paused {
            return Ok(());
        }
        let at = inner.clock.now();
        let pause = Pause { paused, at, reason };
        inner.store.put(vec![pause.value(&self.name)?]).await?;
        if let Some(kept) = kept {
            kept.changed.notify_one();
        }
        Ok(())
    }

    /// What the store has of it. Nothing yet, of one that the engine was just given.
    async fn rows(&self) -> Result<Rows, ScheduleError> {
        let inner = &self.engine.inner;
        let rows = Rows::of(&*inner.store, &self.name).await?;
        if rows.is_known() || inner.schedules.kept.contains_key(&self.name) {
            return Ok(rows);
        }
        Err(ScheduleError::NotFound {
            name: self.name.clone(),
            known: inner.schedules.names(),
        })
    }

    /// The schedule, which the engine has to have been given.
    async fn given(&self) -> Result<Arc<Kept>, ScheduleError> {
        if let Some(kept) = self.engine.inner.schedules.kept.get(&self.name) {
            return Ok(Arc::clone(kept));
        }
        // Known or not, that is another error.
        self.rows().await?;
        Err(ScheduleError::NotGiven {
            name: self.name.clone(),
        })
    }
}

impl Inner {
    fn status_of(&self, name: String, rows: &Rows) -> ScheduleStatus {
        let kept = self.schedules.kept.get(&name);
        let fired = rows.fired.as_ref();
        let paused = rows.paused();
        let next = match kept.map(|kept| &kept.plan) {
            _ if paused.is_some() => None,
            Some(plan) => {
                // What it said before is past.
                let same = fired.is_some_and(|fired| fired.says == plan.says());
                let now = plan.due(self.clock.now());
                plan.after(if same { rows.through(plan) } else { now })
            }
            None => fired.and_then(|fired| fired.next),
        };
        let recorded = |of: fn(&rows::Fired) -> &String| fired.map(of).cloned().unwrap_or_default();
        ScheduleStatus {
            cron: kept.map_or_else(|| recorded(|it| &it.cron), |it| it.plan.cron().to_string()),
            zone: kept.map_or_else(|| recorded(|it| &it.zone), |it| it.plan.zone().to_owned()),
            workflow: kept.map(|kept| kept.plan.workflow()),
            next,
            last: fired.and_then(|fired| {
                let (at, _) = fired.last.as_ref()?;
                Some((*at, fired.last_run()?))
            }),
            paused: paused.map(|pause| (pause.at, pause.reason.clone())),
            trouble: kept.and_then(|kept| {
                let trouble = kept.trouble.lock();
                trouble.unwrap_or_else(PoisonError::into_inner).clone()
            }),
            name,
        }
    }
}
