//! A run's records as server-sent events.
//!
//! 1. An event's id is the number of its record, so that a client that comes again, to this process or a later one, goes on after
//!    the last that it has.
//! 2. A stream ends when the run has, with an `end`. Who comes again after that is told to stop: 204.
//! 3. A stream whose client is slow holds back nothing but itself.

use std::convert::Infallible;
use std::time::Duration;

use axum::http::{HeaderName, StatusCode};
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::Stream;
use futures_util::stream::unfold;
use serde::Deserialize;

use super::asked::{Asked, Count};
use super::policy::Action;
use super::problem::{Kind, Problem};
use super::show::{Run, one_line};
use crate::{AnyWorkflow, RunHandle, Watch, Watched};

const LAST: HeaderName = HeaderName::from_static("last-event-id");
/// A stream on which nothing happens says so, or what stands in between takes it for dead.
const QUIET: Duration = Duration::from_secs(15);

/// `GET /runs/{run}/events`.
pub(super) async fn events(asked: Asked) -> Result<Response, Problem> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct From {
        after: Option<Count>,
    }
    asked.allow(Action::Read)?;
    let From { after } = asked.query()?;
    let after = last_event(&asked)?.or(after).unwrap_or_default().0;
    let run = asked.run().await?;
    let status = run.status().await?;
    if status.state.is_final() && after >= status.records {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let watch = run.watch(after.saturating_add(1));
    Ok(Sse::new(stream(run, watch)).into_response())
}

/// The number of the last event that the client has.
fn last_event(asked: &Asked) -> Result<Option<Count>, Problem> {
    let Some(given) = asked.header(&LAST) else {
        return Ok(None);
    };
    let number = str::from_utf8(given)
        .ok()
        .and_then(|text| text.parse().ok());
    number.map(|number| Some(Count(number))).ok_or_else(|| {
        Problem::new(
            Kind::BadCursor,
            "`Last-Event-ID` is the number of a record, as the events have it",
        )
    })
}

enum At {
    Records(Watch<AnyWorkflow>),
    End,
}

fn stream(
    run: RunHandle<AnyWorkflow>,
    watch: Watch<AnyWorkflow>,
) -> impl Stream<Item = Result<Event, Infallible>> {
    unfold((run, At::Records(watch)), |(run, at)| async move {
        let At::Records(mut watch) = at else {
            return None;
        };
        let event = match tokio::time::timeout(QUIET, watch.next()).await {
            Err(_) => Event::default().comment(""),
            Ok(Ok(Some(watched))) => told(&watched),
            Ok(Ok(None)) => return ended(&run).await.map(|event| (Ok(event), (run, At::End))),
            Ok(Err(error)) => {
                // The client comes again, and asks from where it was.
                tracing::warn!(run = %run.id(), %error, "a stream of events was cut off");
                return None;
            }
        };
        Some((Ok(event), (run, At::Records(watch))))
    })
}

fn told(watched: &Watched) -> Event {
    let (kind, id, data) = match watched {
        Watched::Record(record) => ("record", record.seq, serde_json::to_string(&**record)),
        Watched::Gap { from, to } => (
            "gap",
            *to,
            serde_json::to_string(&serde_json::json!({ "from": from, "to": to })),
        ),
    };
    // A record has text for keys, so it can be written.
    let data = one_line(data.unwrap_or_default());
    Event::default().event(kind).id(id.to_string()).data(data)
}

/// The end of the run; `None` when it has not ended, and only this engine has.
async fn ended(run: &RunHandle<AnyWorkflow>) -> Option<Event> {
    let status = run.status().await.ok()?;
    if !status.state.is_final() {
        return None;
    }
    let data = serde_json::to_string(&Run::from(status)).unwrap_or_default();
    Some(Event::default().event("end").data(one_line(data)))
}
