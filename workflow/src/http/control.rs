//! What an operator does to a run.

use axum::http::StatusCode;
use axum::response::Response;
use serde::{Deserialize, Serialize};

use super::asked::{Asked, Count, Nothing, addressable, escaped};
use super::policy::Action;
use super::problem::Problem;
use super::reply;
use crate::replay::Message;
use crate::{AnyWorkflow, CancelError, Record, Rewound, RunState};

/// `POST /runs/{run}/cancel`: cancels it, after undoing what it did if that is asked for. Cancelling twice is once.
pub(super) async fn cancel(asked: Asked) -> Result<Response, Problem> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct How {
        #[serde(default)]
        undo: bool,
    }
    asked.allow(Action::Cancel)?;
    let How { undo } = asked.query()?;
    let cancel = asked.api.engine.cancel(asked.segment("run"));
    let cancelled = if undo {
        cancel.and_undo().await
    } else {
        cancel.await
    };
    match cancelled {
        Ok(())
        | Err(CancelError::Ended {
            state: RunState::Cancelled,
            ..
        }) => as_it_is(&asked).await,
        Err(error) => Err(error.into()),
    }
}

/// `POST /runs/{run}/recover`: retries one that failed.
pub(super) async fn recover(asked: Asked) -> Result<Response, Problem> {
    asked.allow(Action::Recover)?;
    asked.query::<Nothing>()?;
    asked.api.engine.recover(asked.segment("run")).await?;
    as_it_is(&asked).await
}

/// `POST /runs/{run}/resume`: drives one that is parked or was evicted.
pub(super) async fn resume(asked: Asked) -> Result<Response, Problem> {
    asked.allow(Action::Resume)?;
    asked.query::<Nothing>()?;
    asked.api.engine.resume(asked.segment("run")).await?;
    as_it_is(&asked).await
}

/// `POST /gc`: deletes what the engine's retention keeps no longer.
pub(super) async fn gc(asked: Asked) -> Result<Response, Problem> {
    #[derive(Serialize)]
    struct Deleted {
        deleted: u64,
        awaited: u64,
    }
    asked.allow(Action::Gc)?;
    asked.query::<Nothing>()?;
    let swept = asked.api.engine.gc().await?;
    let deleted = Deleted {
        deleted: swept.deleted,
        awaited: swept.awaited,
    };
    Ok(reply::value(StatusCode::OK, &deleted))
}

/// `POST /runs/{run}/rewind`: takes it back to a location, or says what that would do.
pub(super) async fn rewind(asked: Asked) -> Result<Response, Problem> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct How {
        #[serde(default)]
        dry_run: bool,
    }
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Where {
        to: String,
    }
    let How { dry_run } = asked.query()?;
    asked.allow(if dry_run {
        Action::Read
    } else {
        Action::Rewind
    })?;
    let (engine, run) = (asked.api.engine.clone(), asked.segment("run").to_owned());
    let Where { to } = asked.body().await?;
    let rewound = if dry_run {
        engine.rewind_dry_run(&run, to).await?
    } else {
        engine.rewind(&run, to).await?
    };
    Ok(reply::value(StatusCode::OK, &Shown::of(rewound, dry_run)))
}

/// What a rewind did, or would do.
#[derive(Serialize)]
struct Shown {
    dry_run: bool,
    to: String,
    generation: u32,
    removed: Vec<Record>,
    returned: Vec<Message>,
    cancelled: Vec<String>,
}

impl Shown {
    fn of(rewound: Rewound, dry_run: bool) -> Self {
        Self {
            dry_run,
            to: rewound.to.to_string(),
            generation: rewound.generation,
            removed: rewound.removed,
            returned: rewound.returned,
            cancelled: rewound.cancelled.iter().map(ToString::to_string).collect(),
        }
    }
}

/// `POST /runs/{run}/fork`: starts a run from a copy of its history.
pub(super) async fn fork(asked: Asked) -> Result<Response, Problem> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct How {
        id: String,
        at: Option<String>,
    }
    asked.allow(Action::Fork)?;
    asked.query::<Nothing>()?;
    let (api, prefix) = (asked.api.clone(), asked.prefix());
    let run = asked.segment("run").to_owned();
    let request = asked.without_body();
    let How { id, at } = asked.body().await?;
    request.allow_fork_as(&id)?;
    addressable(&id)?;
    let id = api.engine.fork(&run, &id, at.as_deref()).await?;
    let status = api.engine.status(id.as_str()).await?;
    let at = format!("{prefix}/runs/{}", escaped(id.as_str()));
    let shown = super::show::Run::from(status);
    Ok(reply::at(reply::value(StatusCode::CREATED, &shown), &at))
}

/// `POST /runs/{run}/skip-undo`: goes on rolling back without the undo that keeps failing.
pub(super) async fn skip_undo(asked: Asked) -> Result<Response, Problem> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct What {
        entry: Count,
        reason: String,
    }
    asked.allow(Action::SkipUndo)?;
    asked.query::<Nothing>()?;
    let (engine, run) = (asked.api.engine.clone(), asked.segment("run").to_owned());
    // Whether there is one is told before the body is looked at.
    engine.attach::<AnyWorkflow>(&run).await?;
    let What {
        entry: Count(entry),
        reason,
    } = asked.body().await?;
    engine.skip_undo(&run, entry, reason).await?;
    let status = engine.status(&run).await?;
    Ok(reply::value(
        StatusCode::OK,
        &super::show::Run::from(status),
    ))
}

/// The run as it is now.
async fn as_it_is(asked: &Asked) -> Result<Response, Problem> {
    Ok(reply::value(StatusCode::OK, &asked.status().await?))
}
