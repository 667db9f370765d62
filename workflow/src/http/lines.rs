//! Channels that clients may send on.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use serde::{Deserialize, Serialize};

use super::asked::{Asked, Count, KEY};
use super::policy::Action;
use super::problem::{Kind, Problem};
use super::runs::{chosen, limit};
use super::{BoxFuture, reply};
use crate::replay::Message;
use crate::{
    AnyWorkflow, AttachError, Bytes, Channel, Engine, Recorded, RequestError, RunHandle, Timestamp,
};

/// So long an answer is waited for, unless the client says otherwise.
const PATIENCE: Duration = Duration::from_secs(20);

/// What [`Api::channel`](super::Api::channel) takes: a [`Channel`], which is a `static`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a channel that clients may send on",
    label = "not a `static` channel whose types are `Send` and `Sync`",
    note = "help: give it a reference to the channel, which is declared as `static NAME: Channel<T> = Channel::new(\"name\");`"
)]
pub trait Serves {
    #[doc(hidden)]
    fn line(&'static self) -> Line;
}

impl<T: Recorded + Send + Sync + 'static> Serves for Channel<T> {
    fn line(&'static self) -> Line {
        Line(Box::new(Messages::<T>(self)))
    }
}

impl<T, R> Serves for Channel<T, R>
where
    T: Recorded + Send + Sync + 'static,
    R: Recorded + Send + 'static,
{
    fn line(&'static self) -> Line {
        Line(Box::new(Requests::<T, R>(self, PhantomData)))
    }
}

/// A channel whose types are forgotten.
pub struct Line(Box<dyn Carries>);

impl Line {
    pub(super) fn name(&self) -> &'static str {
        self.0.name()
    }

    /// Whether what is sent on it is answered.
    pub(super) fn answers(&self) -> bool {
        self.0.answers()
    }
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Line").field(&self.name()).finish()
    }
}

/// What is done with JSON on a channel.
trait Carries: Send + Sync {
    fn name(&self) -> &'static str;
    fn answers(&self) -> bool;
    /// Sends it to a run: a message, or a request, whose answer it gives.
    fn carry(
        &self,
        engine: Engine,
        to: To,
        key: Option<String>,
        json: Bytes,
    ) -> BoxFuture<Result<Option<Vec<u8>>, Problem>>;
}

/// Whom it is for.
enum To {
    Run(RunHandle<AnyWorkflow>),
    /// Nobody has that id yet.
    Id(String),
}

struct Messages<T: 'static>(&'static Channel<T>);

impl<T: Recorded + Send + Sync + 'static> Carries for Messages<T> {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn answers(&self) -> bool {
        false
    }

    fn carry(
        &self,
        engine: Engine,
        to: To,
        key: Option<String>,
        json: Bytes,
    ) -> BoxFuture<Result<Option<Vec<u8>>, Problem>> {
        let channel = self.0;
        Box::pin(async move {
            let value: T = read(channel.name(), &json)?;
            match (to, key) {
                (To::Run(run), Some(key)) => run.send_once(channel, key, &value).await?,
                (To::Run(run), None) => run.send(channel, &value).await?,
                (To::Id(id), Some(key)) => engine.send_once(id, channel, key, &value).await?,
                (To::Id(id), None) => engine.send(id, channel, &value).await?,
            }
            Ok(None)
        })
    }
}

struct Requests<T: 'static, R: 'static>(&'static Channel<T, R>, PhantomData<fn() -> R>);

impl<T, R> Carries for Requests<T, R>
where
    T: Recorded + Send + Sync + 'static,
    R: Recorded + Send + 'static,
{
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn answers(&self) -> bool {
        true
    }

    fn carry(
        &self,
        _: Engine,
        to: To,
        key: Option<String>,
        json: Bytes,
    ) -> BoxFuture<Result<Option<Vec<u8>>, Problem>> {
        let channel = self.0;
        Box::pin(async move {
            let value: T = read(channel.name(), &json)?;
            let run = match to {
                To::Run(run) => run,
                To::Id(id) => return Err(AttachError::NotFound { id }.into()),
            };
            let answer: R = match key {
                Some(key) => run.request_once(channel, key, &value).await?,
                None => run.request(channel, &value).await?,
            };
            let unread = |error: serde_json::Error| RequestError::Answer {
                id: run.id().clone(),
                detail: error.to_string(),
            };
            let answer = serde_json::to_vec(&answer).map_err(unread)?;
            Ok(Some(answer))
        })
    }
}

fn read<T: Recorded>(channel: &str, json: &[u8]) -> Result<T, Problem> {
    serde_json::from_slice(json).map_err(|error| {
        let wanted = std::any::type_name::<T>();
        let detail = format!("channel `{channel}` takes a `{wanted}`: {error}");
        Problem::new(Kind::Message, detail)
    })
}

/// `POST /runs/{run}/messages/{channel}`: sends a message, once for a key.
pub(super) async fn send(asked: Asked) -> Result<Response, Problem> {
    #[derive(Serialize)]
    struct Sent {
        sent: bool,
    }
    asked.allow(Action::Send)?;
    asked.query::<super::asked::Nothing>()?;
    let key = asked.key()?;
    let line = asked.line(false)?;
    let to = asked.to().await?;
    let engine = asked.api.engine.clone();
    let json = asked.json().await?;
    line.0.carry(engine, to, key, json).await?;
    Ok(reply::value(StatusCode::ACCEPTED, &Sent { sent: true }))
}

/// `POST /runs/{run}/requests/{channel}`: sends a request and waits for its answer; made again with its key, it waits for the same
/// answer.
pub(super) async fn request(asked: Asked) -> Result<Response, Problem> {
    #[derive(Serialize)]
    struct Waiting {
        answered: bool,
        key: String,
    }
    asked.allow(Action::Request)?;
    let most = asked.api.patience;
    let wait = asked.wait()?.unwrap_or(PATIENCE.min(most));
    let key = asked.key()?.unwrap_or_else(chosen);
    let line = asked.line(true)?;
    let to = asked.to().await?;
    let engine = asked.api.engine.clone();
    let json = asked.json().await?;
    let carried = line.0.carry(engine, to, Some(key.clone()), json);
    let mut response = if let Ok(answer) = tokio::time::timeout(wait, carried).await {
        let answer = answer?.unwrap_or_default();
        reply::json(StatusCode::OK, reply::JSON, answer)
    } else {
        let key = key.clone();
        let answered = false;
        reply::value(StatusCode::ACCEPTED, &Waiting { answered, key })
    };
    if let Ok(key) = HeaderValue::from_str(&key) {
        response.headers_mut().insert(KEY, key);
    }
    Ok(response)
}

/// `GET /runs/{run}/dead-letters`: what the run could not read.
pub(super) async fn dead_letters(asked: Asked) -> Result<Response, Problem> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Which {
        after: Option<Count>,
        limit: Option<usize>,
    }
    #[derive(Serialize)]
    struct Letter {
        message: Message,
        reason: String,
        at: Timestamp,
    }
    #[derive(Serialize)]
    struct Letters {
        letters: Vec<Letter>,
        #[serde(skip_serializing_if = "Option::is_none")]
        next: Option<u64>,
    }
    asked.allow(Action::Read)?;
    let Which { after, limit: most } = asked.query()?;
    let most = limit(most)?;
    let run = asked.run().await?;
    // One more than is shown tells whether there are more.
    let mut letters = run
        .dead_letters(after.unwrap_or_default().0, most + 1)
        .await?;
    let more = letters.len() > most;
    letters.truncate(most);
    let last = letters.last().map(|letter| letter.message.arrival);
    let letters = letters.into_iter().map(|letter| Letter {
        message: letter.message,
        reason: letter.reason,
        at: letter.at,
    });
    let letters = Letters {
        letters: letters.collect(),
        next: last.filter(|_| more),
    };
    Ok(reply::value(StatusCode::OK, &letters))
}

impl Asked {
    /// The channel in the path, if it is one of requests, or of messages, as asked.
    fn line(&self, answers: bool) -> Result<std::sync::Arc<Line>, Problem> {
        let name = self.segment("channel");
        let unknown = |detail: String| Problem::new(Kind::UnknownChannel, detail);
        let Some(line) = self.api.lines.get(name) else {
            let known: Vec<_> = self.api.lines.keys().copied().collect();
            return Err(unknown(match &*known {
                [] => "no channel was given to this API: `.channel(&CHANNEL)`".to_owned(),
                known => format!(
                    "there is no channel `{name}` here; there are `{}`",
                    known.join("`, `")
                ),
            }));
        };
        if line.answers() == answers {
            return Ok(line.clone());
        }
        let (is_of, at) = if answers {
            ("messages", "messages")
        } else {
            ("requests", "requests")
        };
        Err(unknown(format!(
            "`{name}` is a channel of {is_of}: post to `{at}/{name}`"
        )))
    }

    /// Who is to get what is sent. There need not be such a run yet.
    async fn to(&self) -> Result<To, Problem> {
        let id = self.segment("run");
        match self.api.engine.attach::<AnyWorkflow>(id).await {
            Ok(run) => Ok(To::Run(run)),
            Err(AttachError::NotFound { id }) => Ok(To::Id(id)),
            Err(error) => Err(error.into()),
        }
    }
}
