//! A store's file, opened for an operator: no run in it is driven.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use workflow::replay::RunKey;
use workflow::store::{RunFilter, RunRow, Store, StoreError};
use workflow::{CancelError, Channel, Engine, History, RedbStore, RunId, RunState, ScheduleHandle};

use crate::fail::{Fail, whole};
use crate::shown::{Back, Run, Runs, Schedule, Schedules};

/// An open file.
pub(crate) struct File {
    pub(crate) path: PathBuf,
    pub(crate) store: Arc<RedbStore>,
    engine: Engine,
}

impl File {
    pub(crate) async fn open(path: &Path) -> Result<Self, Fail> {
        // A store opens what is not there by making it, and here that is a typing mistake.
        match std::fs::metadata(path) {
            Ok(found) if found.len() > 0 => {}
            Ok(_) => {
                let shown = path.display();
                return Err(Fail::Unopened(format!("`{shown}` is empty, and no store")));
            }
            Err(error) => {
                let shown = path.display();
                return Err(Fail::Unopened(format!(
                    "`{shown}` cannot be opened: {error}"
                )));
            }
        }
        let store = RedbStore::open(path).map_err(|error| unopened(&error))?;
        let store = Arc::new(store);
        let shared: Arc<dyn Store> = Arc::<RedbStore>::clone(&store);
        let engine = Engine::builder().shared_store(shared).drives_nothing();
        let engine = engine
            .build()
            .await
            .map_err(|error| Fail::Unopened(whole(&error)))?;
        Ok(Self {
            path: path.to_owned(),
            store,
            engine,
        })
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    pub(crate) async fn close(&self) -> Result<(), Fail> {
        Ok(self.engine.shutdown(Duration::ZERO).await?)
    }

    pub(crate) async fn list(
        &self,
        workflow: Option<&str>,
        state: Option<&str>,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Runs, Fail> {
        let filter = RunFilter {
            workflow: workflow.map(str::to_owned),
            states: state.and_then(state_of).into_iter().collect(),
            after: after.map(place).transpose()?,
            limit,
            ..RunFilter::default()
        };
        let page = self.engine.list(&filter).await?;
        Ok(Runs {
            runs: page.rows.into_iter().map(Run::from).collect(),
            next: page.next.map(|next| format!("{:x}", next.0)),
        })
    }

    pub(crate) async fn row(&self, id: &str) -> Result<RunRow, Fail> {
        let found = self.store.find(&RunId::from_stored(id)).await?;
        found.ok_or_else(|| Fail::NotFound(format!("there is no run `{id}`")))
    }

    pub(crate) async fn run(&self, id: &str) -> Result<Run, Fail> {
        Ok(self.row(id).await?.into())
    }

    pub(crate) async fn export(&self, id: &str) -> Result<History, Fail> {
        Ok(self.engine.export(id).await?)
    }

    pub(crate) async fn send(
        &self,
        to: &str,
        channel: &str,
        key: Option<&str>,
        value: Box<RawValue>,
    ) -> Result<(), Fail> {
        // A channel is a `static` of the program that has it. This one lives as long as this program, which ends soon.
        let channel: Channel<Box<RawValue>> = Channel::new(channel.to_owned().leak());
        // The id of a child has a `/` in it, which an id that a user gives has not: so it is the run's own where there is one.
        let to = match self.store.find(&RunId::from_stored(to)).await? {
            Some(row) => row.id,
            None => RunId::new(to).map_err(Fail::refused)?,
        };
        match key {
            Some(key) => self.engine.send_once(to, &channel, key, &value).await?,
            None => self.engine.send(to, &channel, &value).await?,
        }
        Ok(())
    }

    pub(crate) async fn cancel(&self, id: &str, undo: bool) -> Result<(), Fail> {
        let cancel = self.engine.cancel(id);
        let cancelled = if undo {
            cancel.and_undo().await
        } else {
            cancel.await
        };
        match cancelled {
            // Cancelling twice is once.
            Err(CancelError::Ended {
                state: RunState::Cancelled,
                ..
            }) => Ok(()),
            cancelled => Ok(cancelled?),
        }
    }

    pub(crate) async fn recover(&self, id: &str) -> Result<(), Fail> {
        Ok(self.engine.recover(id).await?)
    }

    pub(crate) async fn resume(&self, id: &str) -> Result<(), Fail> {
        Ok(self.engine.resume(id).await?)
    }

    pub(crate) async fn skip_undo(&self, id: &str, entry: u64, reason: &str) -> Result<(), Fail> {
        Ok(self.engine.skip_undo(id, entry, reason).await?)
    }

    pub(crate) async fn rewind(&self, id: &str, to: &str, dry_run: bool) -> Result<Back, Fail> {
        let rewound = if dry_run {
            self.engine.rewind_dry_run(id, to).await?
        } else {
            self.engine.rewind(id, to).await?
        };
        Ok(Back::of(rewound, dry_run))
    }

    pub(crate) async fn schedules(&self) -> Result<Schedules, Fail> {
        let schedules = self.engine.schedules().await?.into_iter();
        Ok(Schedules {
            schedules: schedules.map(Schedule::from).collect(),
        })
    }

    pub(crate) fn schedule(&self, name: &str) -> ScheduleHandle {
        self.engine.schedule(name)
    }

    pub(crate) async fn fork(&self, of: &str, id: &str, at: Option<&str>) -> Result<(), Fail> {
        self.engine.fork(of, id, at).await?;
        Ok(())
    }
}

fn unopened(error: &StoreError) -> Fail {
    Fail::Unopened(whole(error))
}

/// All states, in the order of a run's life.
pub(crate) const STATES: [RunState; 8] = [
    RunState::Pending,
    RunState::Running,
    RunState::Waiting,
    RunState::RollingBack,
    RunState::Parked,
    RunState::Completed,
    RunState::Failed,
    RunState::Cancelled,
];

fn state_of(word: &str) -> Option<RunState> {
    STATES.into_iter().find(|state| state.word() == word)
}

/// Where a list goes on.
fn place(cursor: &str) -> Result<RunKey, Fail> {
    let number = u64::from_str_radix(cursor, 16);
    number.map(RunKey).map_err(|_| {
        Fail::Usage(format!(
            "`--after {cursor}`: give what the page before ended with, or nothing to begin anew"
        ))
    })
}
