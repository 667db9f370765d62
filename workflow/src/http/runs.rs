//! Starting runs, and looking at them.

use std::time::Duration;

use axum::http::StatusCode;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use super::api::Served;
use super::asked::{Asked, Count, Nothing, addressable};
use super::policy::Action;
use super::problem::{Kind, Problem};
use super::reply;
use super::show::{Ended, Excerpt, Run};
use crate::replay::RunKey;
use crate::store::RunFilter;
use crate::{AnyWorkflow, Error, RunHandle, RunState, StartJson, Status, Timestamp, Uuid};

/// `GET /workflows`: what may be started, sent on, and led.
pub(super) async fn describe(asked: Asked) -> Result<Response, Problem> {
    #[derive(Serialize)]
    struct Channel<'a> {
        name: &'a str,
        answers: bool,
    }
    #[derive(Serialize)]
    struct Described<'a> {
        workflows: Vec<&'static str>,
        may_start: Vec<&'static str>,
        channels: Vec<Channel<'a>>,
        flows: Vec<&'a str>,
    }
    asked.allow(Action::Describe)?;
    asked.query::<Nothing>()?;
    let api = &asked.api;
    let channels = api.lines.values().map(|line| Channel {
        name: line.name(),
        answers: line.answers(),
    });
    let described = Described {
        may_start: api
            .engine
            .workflows()
            .into_iter()
            .filter(|workflow| asked.allow_of(Action::Start, Some(workflow), None).is_ok())
            .collect(),
        workflows: api.engine.workflows(),
        channels: channels.collect(),
        flows: api.flows.keys().map(String::as_str).collect(),
    };
    Ok(reply::value(StatusCode::OK, &described))
}

/// When a run is to begin, and before whom; and how long to wait for its end.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Terms {
    /// In whole seconds.
    wait: Option<u64>,
    /// In whole seconds.
    delay: Option<u32>,
    /// In milliseconds since the Unix epoch.
    not_before: Option<Count>,
    priority: Option<i32>,
}

impl Terms {
    fn of(&self, mut start: StartJson) -> StartJson {
        if let Some(delay) = self.delay {
            start = start.delay(Duration::from_secs(delay.into()));
        }
        if let Some(Count(time)) = self.not_before {
            let time = i64::try_from(time).unwrap_or(i64::MAX);
            start = start.not_before(Timestamp::from_millis(time));
        }
        if let Some(priority) = self.priority {
            start = start.priority(priority);
        }
        start
    }
}

/// `POST /workflows/{workflow}/runs`: starts a run. Its id is the idempotency key.
pub(super) async fn start(asked: Asked) -> Result<Response, Problem> {
    let workflow = asked.segment("workflow").to_owned();
    let key = asked.key()?;
    asked.allow_of(Action::Start, Some(&workflow), key.as_deref())?;
    let terms: Terms = asked.query()?;
    let wait = terms.wait.map(|wait| asked.within_patience(wait));
    let wait = wait.transpose()?.unwrap_or_default();
    let id = key.unwrap_or_else(chosen);
    addressable(&id)?;
    let (api, at) = (asked.api.clone(), asked.at_run(&id));
    // Of a workflow without parameters there is nothing to say.
    let input = asked.maybe_json().await?.unwrap_or_else(|| "{}".into());
    let start = api.engine.start_json(id, &workflow, input);
    let run = terms.of(start).await?;
    Ok(reply::at(api.came(&run, wait).await?, &at))
}

/// `GET /runs/{run}/result`: how it ended, waiting for that for a while.
pub(super) async fn result(asked: Asked) -> Result<Response, Problem> {
    asked.allow(Action::Read)?;
    let wait = asked.wait()?.unwrap_or_default();
    let run = asked.run().await?;
    asked.api.came(&run, wait).await
}

impl Served {
    /// How a run ended: 200. When it does not within `wait`, or is parked, its status: 202.
    async fn came(
        &self,
        run: &RunHandle<AnyWorkflow>,
        wait: Duration,
    ) -> Result<Response, Problem> {
        let came = if wait.is_zero() {
            run.try_result().await.transpose()
        } else {
            tokio::time::timeout(wait, run.result()).await.ok()
        };
        let ended = match came {
            None => None,
            Some(result) => match Ended::of(run, result) {
                Ok(ended) => Some(ended),
                // Its status says so, and why.
                Err(Error::Parked(_)) => None,
                Err(error) => return Err(error.into()),
            },
        };
        if let Some(ended) = ended {
            return Ok(reply::value(StatusCode::OK, &ended));
        }
        Ok(reply::value(
            StatusCode::ACCEPTED,
            &Run::from(run.status().await?),
        ))
    }
}

impl Asked {
    /// The run in the path.
    pub(super) async fn run(&self) -> Result<RunHandle<AnyWorkflow>, Problem> {
        let id = self.segment("run");
        Ok(self.api.engine.attach::<AnyWorkflow>(id).await?)
    }

    /// The status of the run in the path.
    pub(super) async fn status(&self) -> Result<Run, Problem> {
        let id = self.segment("run");
        Ok(self.api.engine.status(id).await?.into())
    }
}

/// `GET /runs`: runs in the order in which they were started, or the newest first.
pub(super) async fn list(asked: Asked) -> Result<Response, Problem> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Filter {
        workflow: Option<String>,
        state: Option<String>,
        id_prefix: Option<String>,
        id_contains: Option<String>,
        created_from: Option<Count>,
        created_until: Option<Count>,
        changed_from: Option<Count>,
        order: Option<Order>,
        limit: Option<usize>,
        cursor: Option<String>,
    }
    #[derive(Deserialize, PartialEq)]
    #[serde(rename_all = "snake_case")]
    enum Order {
        Oldest,
        Newest,
    }
    #[derive(Serialize)]
    struct Listed {
        runs: Vec<Box<RawValue>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        next: Option<String>,
    }
    let filter: Filter = asked.query()?;
    asked.allow_of(Action::List, filter.workflow.as_deref(), None)?;
    let filter = RunFilter {
        workflow: filter.workflow,
        states: states(filter.state.as_deref().unwrap_or_default())?,
        id_prefix: filter.id_prefix,
        id_contains: filter.id_contains,
        created_from: filter.created_from.map(Count::instant),
        created_until: filter.created_until.map(Count::instant),
        changed_from: filter.changed_from.map(Count::instant),
        newest_first: filter.order == Some(Order::Newest),
        after: filter.cursor.as_deref().map(place).transpose()?,
        limit: limit(filter.limit)?,
        look_at: LOOK_AT,
    };
    let found = asked.api.engine.list(&filter).await?;
    let keys: Vec<_> = found.rows.iter().map(|row| row.key).collect();
    let rows = found.rows.into_iter();
    let runs = page(rows.map(|row| Run::from(Status::from(row))));
    let next = match runs.len().checked_sub(1).and_then(|last| keys.get(last)) {
        Some(last) if runs.len() < keys.len() => Some(*last),
        _ => found.next,
    };
    let listed = Listed {
        runs,
        next: next.map(|next| format!("{:x}", next.0)),
    };
    Ok(reply::value(StatusCode::OK, &listed))
}

/// `GET /runs/{run}`.
pub(super) async fn status(asked: Asked) -> Result<Response, Problem> {
    asked.allow(Action::Read)?;
    asked.query::<Nothing>()?;
    Ok(reply::value(StatusCode::OK, &asked.status().await?))
}

/// `GET /runs/{run}/history`: its records, some at a time.
pub(super) async fn history(asked: Asked) -> Result<Response, Problem> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Some {
        after: Option<Count>,
        limit: Option<usize>,
    }
    asked.allow(Action::Read)?;
    let Some { after, limit: most } = asked.query()?;
    let most = limit(most)?;
    let run = asked.run().await?;
    let all = run.history().await?;
    let first = all.partition_point(|record| record.seq <= after.unwrap_or_default().0);
    let rest = all.get(first..).unwrap_or_default();
    let records = page(rest.iter().take(most));
    let last = records.len().checked_sub(1).and_then(|last| rest.get(last));
    let excerpt = Excerpt {
        id: run.id().to_string(),
        next: last
            .filter(|_| records.len() < rest.len())
            .map(|last| last.seq),
        records,
    };
    Ok(reply::value(StatusCode::OK, &excerpt))
}

/// `GET /runs/{run}/export`: its whole history, as `workflow::testing` replays it.
pub(super) async fn export(asked: Asked) -> Result<Response, Problem> {
    asked.allow(Action::Read)?;
    asked.query::<Nothing>()?;
    let history = asked.api.engine.export(asked.segment("run")).await?;
    Ok(reply::json(StatusCode::OK, reply::JSON, history.to_json()))
}

/// The forms of a picture, each with the type of its text.
pub(super) const PICTURES: [(&str, &str); 3] = [
    ("json", reply::JSON),
    ("mermaid", "text/vnd.mermaid"),
    ("dot", "text/vnd.graphviz"),
];

/// `GET /runs/{run}/graph`: the run laid over the picture of its workflow.
pub(super) async fn graph(asked: Asked) -> Result<Response, Problem> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Which {
        format: Option<String>,
    }
    asked.allow(Action::Read)?;
    let Which { format } = asked.query()?;
    let format = format.as_deref().unwrap_or("json");
    let known = PICTURES.iter().find(|(name, _)| *name == format);
    let (name, content_type) = known.ok_or_else(|| {
        let names = PICTURES.map(|(name, _)| name).join("`, `");
        let detail = format!("a picture has no format `{format}`; there are `{names}`");
        Problem::new(Kind::BadParameter, detail)
    })?;
    let graph = asked.run().await?.graph().await?;
    let picture = match *name {
        "mermaid" => graph.mermaid(),
        "dot" => graph.dot(),
        _ => graph.json(),
    };
    Ok(reply::json(StatusCode::OK, content_type, picture))
}

/// So many at a time, unless it is said otherwise.
const PAGE: usize = 100;
/// So many at most.
pub(super) const LARGEST_PAGE: usize = 1_000;
/// So many rows are looked at for one page: some ten milliseconds. A client that is given a short page goes on with `next`.
const LOOK_AT: usize = 200_000;

/// A page ends when it has so many bytes, however few things that are: values may have a megabyte each, and a client goes on with `next`.
const PAGE_BYTES: usize = 4 << 20;

/// As many as fit into a page, one at least, as JSON.
fn page<T: Serialize>(all: impl Iterator<Item = T>) -> Vec<Box<RawValue>> {
    let mut bytes = 0;
    let mut fitting = Vec::new();
    // All that is shown has text for keys, so it can be written.
    for json in all.filter_map(|one| to_raw_value(&one).ok()) {
        bytes += json.get().len();
        if bytes > PAGE_BYTES && !fitting.is_empty() {
            break;
        }
        fitting.push(json);
    }
    fitting
}

pub(super) fn limit(asked: Option<usize>) -> Result<usize, Problem> {
    let limit = asked.unwrap_or(PAGE);
    if (1..=LARGEST_PAGE).contains(&limit) {
        return Ok(limit);
    }
    let detail = format!("`limit` is 1 to {LARGEST_PAGE}: go on with `next` for more");
    Err(Problem::new(Kind::BadParameter, detail))
}

/// States, with commas between them.
fn states(words: &str) -> Result<Vec<RunState>, Problem> {
    let words = words.split(',').filter(|word| !word.is_empty());
    words.map(state).collect()
}

fn state(word: &str) -> Result<RunState, Problem> {
    let found = RunState::ALL.into_iter().find(|state| state.word() == word);
    found.ok_or_else(|| {
        let words = RunState::ALL.map(RunState::word).join("`, `");
        let detail = format!("`{word}` is no state of a run; there are `{words}`");
        Problem::new(Kind::BadParameter, detail)
    })
}

/// Where a list goes on.
fn place(cursor: &str) -> Result<RunKey, Problem> {
    let usual = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let number = u64::from_str_radix(cursor, 16).ok();
    match number.filter(|_| cursor.bytes().all(usual)) {
        Some(number) => Ok(RunKey(number)),
        None => Err(Problem::new(
            Kind::BadCursor,
            "give the `next` of the page before as it was, or no cursor to begin anew",
        )),
    }
}

/// An id for a run whose client gave none.
pub(super) fn chosen() -> String {
    use std::hash::{BuildHasher, RandomState};
    // The randomness that the standard library seeds its hash maps with.
    let half = || {
        RandomState::new()
            .hash_one(std::process::id())
            .to_le_bytes()
    };
    let (one, two) = (half(), half());
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&one);
    bytes[8..].copy_from_slice(&two);
    uuid_of(bytes).to_string()
}

fn uuid_of(random: [u8; 16]) -> Uuid {
    uuid::Builder::from_random_bytes(random).into_uuid()
}
