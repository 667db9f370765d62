//! Schedules: looking at them, pausing them, starting what was missed.

use axum::http::StatusCode;
use axum::response::Response;
use serde::{Deserialize, Serialize};

use super::asked::{Asked, Nothing, fit};
use super::policy::Action;
use super::problem::Problem;
use super::{reply, show};
use crate::{ScheduleHandle, ScheduleStatus, Timestamp};

/// A schedule.
#[derive(Debug, Serialize)]
struct Shown {
    name: String,
    cron: String,
    zone: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    workflow: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last: Option<Last>,
    #[serde(skip_serializing_if = "Option::is_none")]
    paused: Option<Paused>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trouble: Option<String>,
}

#[derive(Debug, Serialize)]
struct Last {
    at: Timestamp,
    run: String,
}

#[derive(Debug, Serialize)]
struct Paused {
    at: Timestamp,
    reason: String,
}

impl From<ScheduleStatus> for Shown {
    fn from(status: ScheduleStatus) -> Self {
        Self {
            name: status.name,
            cron: status.cron,
            zone: status.zone,
            workflow: status.workflow,
            next: status.next,
            last: status.last.map(|(at, run)| Last {
                at,
                run: run.to_string(),
            }),
            paused: status.paused.map(|(at, reason)| Paused { at, reason }),
            trouble: status.trouble,
        }
    }
}

/// `GET /schedules`: all of them.
pub(super) async fn list(asked: Asked) -> Result<Response, Problem> {
    #[derive(Serialize)]
    struct All {
        schedules: Vec<Shown>,
    }
    asked.allow(Action::Describe)?;
    asked.query::<Nothing>()?;
    let schedules = asked.api.engine.schedules().await?;
    let schedules = schedules.into_iter().map(Shown::from).collect();
    Ok(reply::value(StatusCode::OK, &All { schedules }))
}

/// `GET /schedules/{schedule}`: one.
pub(super) async fn status(asked: Asked) -> Result<Response, Problem> {
    asked.allow(Action::Describe)?;
    asked.query::<Nothing>()?;
    as_it_is(&of(&asked)).await
}

/// `POST /schedules/{schedule}/pause`: starts nothing by itself from now on. Pausing twice is once.
pub(super) async fn pause(asked: Asked) -> Result<Response, Problem> {
    #[derive(Deserialize, Default)]
    #[serde(deny_unknown_fields)]
    struct Why {
        #[serde(default)]
        reason: String,
    }
    asked.allow(Action::Schedule)?;
    asked.query::<Nothing>()?;
    let schedule = of(&asked);
    // Whether there is one is told before the body is looked at.
    schedule.status().await?;
    let Why { reason } = match asked.maybe_json().await? {
        Some(body) => fit(&body)?,
        None => Why::default(),
    };
    schedule.pause(reason).await?;
    as_it_is(&schedule).await
}

/// `POST /schedules/{schedule}/resume`: goes on.
pub(super) async fn resume(asked: Asked) -> Result<Response, Problem> {
    asked.allow(Action::Schedule)?;
    asked.query::<Nothing>()?;
    let schedule = of(&asked);
    schedule.resume().await?;
    as_it_is(&schedule).await
}

/// `POST /schedules/{schedule}/trigger`: starts a run now.
pub(super) async fn trigger(asked: Asked) -> Result<Response, Problem> {
    asked.allow(Action::Schedule)?;
    asked.query::<Nothing>()?;
    let run = of(&asked).trigger().await?;
    let status = asked.api.engine.status(run.id().as_str()).await?;
    let at = asked.at_run(run.id().as_str());
    let shown = show::Run::from(status);
    Ok(reply::at(reply::value(StatusCode::ACCEPTED, &shown), &at))
}

/// `POST /schedules/{schedule}/backfill`: starts what has no run yet of the firings in a time that has passed.
pub(super) async fn backfill(asked: Asked) -> Result<Response, Problem> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct When {
        from: Timestamp,
        to: Timestamp,
    }
    #[derive(Serialize)]
    struct Done {
        started: u64,
        existing: u64,
    }
    asked.allow(Action::Schedule)?;
    asked.query::<Nothing>()?;
    let schedule = of(&asked);
    schedule.status().await?;
    let When { from, to } = asked.body().await?;
    let done = schedule.backfill(from, to).await?;
    let (started, existing) = (done.started, done.existing);
    Ok(reply::value(StatusCode::OK, &Done { started, existing }))
}

fn of(asked: &Asked) -> ScheduleHandle {
    asked.api.engine.schedule(asked.segment("schedule"))
}

/// The schedule as it is now.
async fn as_it_is(schedule: &ScheduleHandle) -> Result<Response, Problem> {
    let status = schedule.status().await?;
    Ok(reply::value(StatusCode::OK, &Shown::from(status)))
}
