//! Where the runs are: in a file, or with a service that runs.

use workflow::{History, Timestamp};

use serde_json::value::RawValue;

use crate::arguments::At;
use crate::fail::Fail;
use crate::file::File;
use crate::service::Service;
use crate::shown::{Back, Backfilled, Run, Runs, Schedules};

/// What commands ask.
pub(crate) enum Backend {
    File(File),
    Service(Service),
}

/// Which runs to list.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Filter<'a> {
    pub(crate) workflow: Option<&'a str>,
    pub(crate) state: Option<&'a str>,
    pub(crate) after: Option<&'a str>,
    pub(crate) limit: usize,
}

impl Backend {
    pub(crate) async fn open(at: &At) -> Result<Self, Fail> {
        match (&at.store, &at.url) {
            (Some(path), None) => Ok(Self::File(File::open(path).await?)),
            (None, Some(url)) => Ok(Self::Service(Service::new(url, at.token.as_deref())?)),
            (None, None) => Err(Fail::Usage(
                "say where the runs are: `--store orders.redb` or WORKFLOW_STORE, `--url http://..` or WORKFLOW_URL"
                    .to_owned(),
            )),
            (Some(_), Some(_)) => Err(Fail::Usage(
                "a store and a URL were both given: leave one of the two (WORKFLOW_STORE and WORKFLOW_URL count)"
                    .to_owned(),
            )),
        }
    }

    pub(crate) async fn close(&self) -> Result<(), Fail> {
        match self {
            Self::File(file) => file.close().await,
            Self::Service(_) => Ok(()),
        }
    }

    /// What to tell of something that was done: when it takes effect.
    pub(crate) fn goes_on(&self) -> &'static str {
        match self {
            Self::File(_) => "; it goes on when its program opens the store",
            Self::Service(_) => "",
        }
    }

    pub(crate) async fn list(&self, filter: Filter<'_>) -> Result<Runs, Fail> {
        match self {
            Self::File(file) => {
                let Filter {
                    workflow,
                    state,
                    after,
                    limit,
                } = filter;
                file.list(workflow, state, after, limit).await
            }
            Self::Service(service) => service.list(filter),
        }
    }

    pub(crate) async fn run(&self, id: &str) -> Result<Run, Fail> {
        match self {
            Self::File(file) => file.run(id).await,
            Self::Service(service) => service.run(id),
        }
    }

    pub(crate) async fn export(&self, id: &str) -> Result<History, Fail> {
        match self {
            Self::File(file) => file.export(id).await,
            Self::Service(service) => service.export(id),
        }
    }

    pub(crate) async fn send(
        &self,
        to: &str,
        channel: &str,
        key: Option<&str>,
        value: Box<RawValue>,
    ) -> Result<(), Fail> {
        match self {
            Self::File(file) => file.send(to, channel, key, value).await,
            Self::Service(service) => service.send(to, channel, key, &value),
        }
    }

    pub(crate) async fn cancel(&self, id: &str, undo: bool) -> Result<(), Fail> {
        match self {
            Self::File(file) => file.cancel(id, undo).await,
            Self::Service(service) => service.cancel(id, undo),
        }
    }

    pub(crate) async fn recover(&self, id: &str) -> Result<(), Fail> {
        match self {
            Self::File(file) => file.recover(id).await,
            Self::Service(service) => service.recover(id),
        }
    }

    pub(crate) async fn resume(&self, id: &str) -> Result<(), Fail> {
        match self {
            Self::File(file) => file.resume(id).await,
            Self::Service(service) => service.resume(id),
        }
    }

    pub(crate) async fn skip_undo(&self, id: &str, entry: u64, reason: &str) -> Result<(), Fail> {
        match self {
            Self::File(file) => file.skip_undo(id, entry, reason).await,
            Self::Service(service) => service.skip_undo(id, entry, reason),
        }
    }

    pub(crate) async fn rewind(&self, id: &str, to: &str, dry_run: bool) -> Result<Back, Fail> {
        match self {
            Self::File(file) => file.rewind(id, to, dry_run).await,
            Self::Service(service) => service.rewind(id, to, dry_run),
        }
    }

    pub(crate) async fn schedules(&self) -> Result<Schedules, Fail> {
        match self {
            Self::File(file) => file.schedules().await,
            Self::Service(service) => service.schedules(),
        }
    }

    pub(crate) async fn pause(&self, schedule: &str, reason: &str) -> Result<(), Fail> {
        match self {
            Self::File(file) => Ok(file.schedule(schedule).pause(reason).await?),
            Self::Service(service) => service.pause(schedule, reason),
        }
    }

    pub(crate) async fn resume_schedule(&self, schedule: &str) -> Result<(), Fail> {
        match self {
            Self::File(file) => Ok(file.schedule(schedule).resume().await?),
            Self::Service(service) => service.resume_schedule(schedule),
        }
    }

    /// The id of the run that was started.
    pub(crate) async fn trigger(&self, schedule: &str) -> Result<String, Fail> {
        match self {
            Self::File(file) => {
                let run = file.schedule(schedule).trigger().await?;
                Ok(run.id().to_string())
            }
            Self::Service(service) => service.trigger(schedule),
        }
    }

    pub(crate) async fn backfill(
        &self,
        schedule: &str,
        from: Timestamp,
        to: Timestamp,
    ) -> Result<Backfilled, Fail> {
        match self {
            Self::File(file) => {
                let done = file.schedule(schedule).backfill(from, to).await?;
                Ok(done.into())
            }
            Self::Service(service) => service.backfill(schedule, from, to),
        }
    }

    pub(crate) async fn fork(&self, of: &str, id: &str, at: Option<&str>) -> Result<(), Fail> {
        match self {
            Self::File(file) => file.fork(of, id, at).await,
            Self::Service(service) => service.fork(of, id, at),
        }
    }
}
