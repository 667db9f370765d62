//! A service that runs, asked over its HTTP API.

use std::fmt::Write;
use std::io::{BufRead, BufReader};
use std::mem;
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use ureq::http::Response;
use ureq::{Agent, Body, RequestBuilder};
use workflow::{History, Timestamp};

use crate::backend::Filter;
use crate::fail::Fail;
use crate::shown::{Back, Backfilled, Run, Runs, Schedules, Swept};

/// The longest that an answer is waited for: a cancellation that undoes may wait half a minute for bodies to end.
const PATIENCE: Duration = Duration::from_secs(60);

/// The API at an address.
pub(crate) struct Service {
    agent: Agent,
    /// Without a slash at its end.
    at: String,
    token: Option<String>,
}

/// What an API answers when it does not do what it was asked.
#[derive(Deserialize)]
struct Problem {
    detail: String,
    #[serde(rename = "type")]
    kind: Option<String>,
}

/// An event of a stream.
#[derive(Debug, Default)]
pub(crate) struct Event {
    pub(crate) kind: String,
    pub(crate) id: Option<u64>,
    pub(crate) data: String,
}

/// How a stream ended.
#[derive(Debug)]
pub(crate) enum Followed {
    /// Nothing comes any more: the run has ended.
    ToTheEnd,
    /// There may be more.
    BrokenOff,
}

impl Event {
    /// Takes in a line of it; what is neither of its fields says nothing.
    fn take(&mut self, line: &str) {
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.kind),
            "id" => self.id = value.parse().ok(),
            "data" => {
                if !self.data.is_empty() {
                    self.data.push('\n');
                }
                self.data.push_str(value);
            }
            _ => {}
        }
    }
}

impl Service {
    pub(crate) fn new(url: &str, token: Option<&str>) -> Result<Self, Fail> {
        if !url.starts_with("http://") && !url.starts_with("https://") {
            return Err(Fail::Usage(format!(
                "`--url {url}`: give an address that begins with http:// or https://"
            )));
        }
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(PATIENCE))
            .build();
        Ok(Self {
            agent: config.new_agent(),
            at: url.trim_end_matches('/').to_owned(),
            token: token.map(|token| format!("Bearer {token}")),
        })
    }

    pub(crate) fn list(&self, filter: Filter<'_>) -> Result<Runs, Fail> {
        let mut path = format!("/runs?limit={}", filter.limit);
        for (name, value) in [
            ("workflow", filter.workflow),
            ("state", filter.state),
            ("cursor", filter.after),
        ] {
            if let Some(value) = value {
                // Writing to a string does not fail.
                let _ = write!(path, "&{name}={}", escaped(value));
            }
        }
        self.read(&path)
    }

    pub(crate) fn run(&self, id: &str) -> Result<Run, Fail> {
        self.read(&format!("/runs/{}", escaped(id)))
    }

    pub(crate) fn export(&self, id: &str) -> Result<History, Fail> {
        let text = self.get(&format!("/runs/{}/export", escaped(id)))?;
        History::from_json(&text).map_err(|error| unread(&error))
    }

    pub(crate) fn send(
        &self,
        to: &str,
        channel: &str,
        key: Option<&str>,
        value: &RawValue,
    ) -> Result<(), Fail> {
        let path = format!("/runs/{}/messages/{}", escaped(to), escaped(channel));
        self.post(&path, key, Some(value.get())).map(drop)
    }

    pub(crate) fn cancel(&self, id: &str, undo: bool) -> Result<(), Fail> {
        self.order(&format!("/runs/{}/cancel?undo={undo}", escaped(id)), None)
    }

    pub(crate) fn recover(&self, id: &str) -> Result<(), Fail> {
        self.order(&format!("/runs/{}/recover", escaped(id)), None)
    }

    pub(crate) fn resume(&self, id: &str) -> Result<(), Fail> {
        self.order(&format!("/runs/{}/resume", escaped(id)), None)
    }

    pub(crate) fn skip_undo(&self, id: &str, entry: u64, reason: &str) -> Result<(), Fail> {
        let body = serde_json::json!({"entry": entry, "reason": reason});
        let path = format!("/runs/{}/skip-undo", escaped(id));
        self.order(&path, Some(&body.to_string()))
    }

    pub(crate) fn rewind(&self, id: &str, to: &str, dry_run: bool) -> Result<Back, Fail> {
        let body = serde_json::json!({"to": to}).to_string();
        let path = format!("/runs/{}/rewind?dry_run={dry_run}", escaped(id));
        parse(&self.post(&path, None, Some(&body))?)
    }

    pub(crate) fn fork(&self, of: &str, id: &str, at: Option<&str>) -> Result<(), Fail> {
        let body = match at {
            Some(at) => serde_json::json!({"id": id, "at": at}),
            None => serde_json::json!({"id": id}),
        };
        let path = format!("/runs/{}/fork", escaped(of));
        self.order(&path, Some(&body.to_string()))
    }

    pub(crate) fn schedules(&self) -> Result<Schedules, Fail> {
        self.read("/schedules")
    }

    pub(crate) fn pause(&self, schedule: &str, reason: &str) -> Result<(), Fail> {
        let body = serde_json::json!({"reason": reason}).to_string();
        let path = format!("/schedules/{}/pause", escaped(schedule));
        self.order(&path, Some(&body))
    }

    pub(crate) fn resume_schedule(&self, schedule: &str) -> Result<(), Fail> {
        let path = format!("/schedules/{}/resume", escaped(schedule));
        self.order(&path, None)
    }

    pub(crate) fn trigger(&self, schedule: &str) -> Result<String, Fail> {
        let path = format!("/schedules/{}/trigger", escaped(schedule));
        let run: Run = parse(&self.post(&path, None, None)?)?;
        Ok(run.id)
    }

    pub(crate) fn backfill(
        &self,
        schedule: &str,
        from: Timestamp,
        to: Timestamp,
    ) -> Result<Backfilled, Fail> {
        let body = serde_json::json!({"from": from, "to": to}).to_string();
        let path = format!("/schedules/{}/backfill", escaped(schedule));
        parse(&self.post(&path, None, Some(&body))?)
    }

    /// Has the service delete what it keeps no longer, and waits for that, however long it takes.
    pub(crate) fn gc(&self) -> Result<Swept, Fail> {
        let request = self.known(self.agent.post(format!("{}/gc", self.at)));
        let request = request.config().timeout_global(None).build();
        parse(&self.answer(request.send_empty())?)
    }

    /// Tells of a run's events after a record, until there are no more.
    pub(crate) fn follow(
        &self,
        id: &str,
        after: u64,
        mut tell: impl FnMut(Event) -> Result<(), Fail>,
    ) -> Result<Followed, Fail> {
        let path = format!("{}/runs/{}/events?after={after}", self.at, escaped(id));
        let request = self.known(self.agent.get(path));
        let request = request.config().timeout_global(None).build();
        let response = match request.call() {
            Ok(response) if response.status().as_u16() == 204 => return Ok(Followed::ToTheEnd),
            Ok(response) if response.status().is_success() => response,
            // What stands between, or the service itself, while it starts again.
            Ok(response) if matches!(response.status().as_u16(), 502..=504) => {
                return Ok(Followed::BrokenOff);
            }
            refused => return self.answer(refused).map(|_| Followed::BrokenOff),
        };
        let mut event = Event::default();
        for line in BufReader::new(response.into_body().into_reader()).lines() {
            let Ok(line) = line else {
                return Ok(Followed::BrokenOff);
            };
            if !line.is_empty() {
                event.take(&line);
            } else if !event.kind.is_empty() {
                let event = mem::take(&mut event);
                let ends = event.kind == "end";
                tell(event)?;
                if ends {
                    return Ok(Followed::ToTheEnd);
                }
            }
        }
        Ok(Followed::BrokenOff)
    }

    fn known<B>(&self, request: RequestBuilder<B>) -> RequestBuilder<B> {
        match &self.token {
            Some(token) => request.header("authorization", token),
            None => request,
        }
    }

    fn order(&self, path: &str, body: Option<&str>) -> Result<(), Fail> {
        self.post(path, None, body).map(drop)
    }

    fn read<T: DeserializeOwned>(&self, path: &str) -> Result<T, Fail> {
        parse(&self.get(path)?)
    }

    fn get(&self, path: &str) -> Result<String, Fail> {
        let request = self.known(self.agent.get(format!("{}{path}", self.at)));
        self.answer(request.call())
    }

    fn post(&self, path: &str, key: Option<&str>, body: Option<&str>) -> Result<String, Fail> {
        let mut request = self.known(self.agent.post(format!("{}{path}", self.at)));
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        self.answer(match body {
            Some(json) => request
                .header("content-type", "application/json")
                .send(json),
            None => request.send_empty(),
        })
    }

    /// What was answered, if that is what was asked for.
    fn answer(&self, response: Result<Response<Body>, ureq::Error>) -> Result<String, Fail> {
        let unreached = |error: &ureq::Error| match error {
            // Said before anything was sent.
            ureq::Error::Http(_) | ureq::Error::BadUri(_) => Fail::Usage(error.to_string()),
            _ => Fail::Unopened(format!("`{}` cannot be reached: {error}", self.at)),
        };
        let mut response = response.map_err(|error| unreached(&error))?;
        let body = response.body_mut().with_config().limit(u64::MAX);
        let text = body.read_to_string().map_err(|error| unreached(&error))?;
        let status = response.status();
        if status.is_success() {
            return Ok(text);
        }
        match serde_json::from_str::<Problem>(&text) {
            Ok(Problem { detail, kind })
                if matches!(
                    kind.as_deref(),
                    Some("workflow:not_found" | "workflow:unknown_schedule")
                ) =>
            {
                Err(Fail::NotFound(detail))
            }
            Ok(Problem { detail, .. }) => Err(Fail::Refused(detail)),
            // A layer around the API, or something else that lives there.
            Err(_) => {
                let way_out = match status.as_u16() {
                    401 | 403 => ": `--token` says who asks",
                    404 => ": is the API nested under another path?",
                    _ => "",
                };
                Err(Fail::Refused(format!(
                    "`{}` answered {status}{way_out}",
                    self.at
                )))
            }
        }
    }
}

fn parse<T: DeserializeOwned>(text: &str) -> Result<T, Fail> {
    serde_json::from_str(text).map_err(|error| unread(&error))
}

fn unread(error: &dyn std::fmt::Display) -> Fail {
    Fail::Refused(format!(
        "the answer is not one of this API, or of a newer version of it: {error}"
    ))
}

/// Text as a part of a path or a query.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            escaped.push(byte.into());
        } else {
            // Writing to a string does not fail.
            let _ = write!(escaped, "%{byte:02X}");
        }
    }
    escaped
}
