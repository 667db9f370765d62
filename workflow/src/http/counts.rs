//! How many runs there are, and that something about them has changed.
//!
//! A stream of changes tells that, and not what: who shows runs asks anew for those that it shows. So it costs the same however much
//! happens, and misses nothing that another process did to the store.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::Duration;

use axum::http::StatusCode;
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::Stream;
use futures_util::stream::unfold;
use serde::Serialize;

use super::asked::{Asked, Nothing};
use super::policy::Action;
use super::problem::Problem;
use super::reply;
use crate::Engine;
use crate::store::Census;

/// How often it is looked whether something has changed, where that costs nothing.
const LOOK: Duration = Duration::from_millis(500);
/// And where every row has to be read for it.
const LOOK_HARD: Duration = Duration::from_secs(10);
/// A stream on which nothing happens says so after so many looks.
const QUIET: u32 = 30;

/// How many runs there are: in all, by state, and by workflow and state. What there is none of is left out.
#[derive(Debug, Serialize)]
struct Counts<'a> {
    runs: u64,
    states: BTreeMap<&'static str, u64>,
    workflows: BTreeMap<&'a str, BTreeMap<&'static str, u64>>,
}

impl<'a> Counts<'a> {
    fn of(census: &'a Census) -> Self {
        let mut counts = Self {
            runs: 0,
            states: BTreeMap::new(),
            workflows: BTreeMap::new(),
        };
        for count in &census.counts {
            let state = count.state.word();
            counts.runs += count.runs;
            *counts.states.entry(state).or_default() += count.runs;
            let workflow = counts.workflows.entry(&count.workflow).or_default();
            *workflow.entry(state).or_default() += count.runs;
        }
        counts
    }
}

/// `GET /counts`.
pub(super) async fn counts(asked: Asked) -> Result<Response, Problem> {
    asked.allow(Action::List)?;
    asked.query::<Nothing>()?;
    let census = asked.api.engine.census().await?;
    Ok(reply::value(StatusCode::OK, &Counts::of(&census)))
}

/// `GET /changes`: the counts as server-sent events, now and whenever something has changed, but not more often than somebody looks.
pub(super) async fn changes(asked: Asked) -> Result<Response, Problem> {
    asked.allow(Action::List)?;
    asked.query::<Nothing>()?;
    let census = asked.api.engine.census().await?;
    let engine = asked.api.engine.clone();
    Ok(Sse::new(stream(engine, census)).into_response())
}

enum At {
    /// To be told.
    New(Census),
    /// Told.
    Old(Census),
}

fn stream(engine: Engine, census: Census) -> impl Stream<Item = Result<Event, Infallible>> {
    unfold((engine, At::New(census)), |(engine, at)| async move {
        let told = match at {
            At::New(census) => return Some((Ok(told(&census)), (engine, At::Old(census)))),
            At::Old(census) => census,
        };
        let look = if told.commit.is_some() {
            LOOK
        } else {
            LOOK_HARD
        };
        for _ in 0..QUIET {
            tokio::time::sleep(look).await;
            // It is over when the engine is. The client comes again, and is told everything first.
            let census = engine.census().await.ok()?;
            if census != told {
                return Some((Ok(self::told(&census)), (engine, At::Old(census))));
            }
        }
        Some((Ok(Event::default().comment("")), (engine, At::Old(told))))
    })
}

fn told(census: &Census) -> Event {
    // Texts and numbers only: it can be written.
    let data = serde_json::to_string(&Counts::of(census)).unwrap_or_default();
    Event::default().event("changed").data(data)
}
