//! Guides that clients lead.
//!
//! A flow is served with its data as JSON: a view shows it, and an `edit` is a JSON merge patch (RFC 7396) of it. A patch that does
//! not give the person's data is refused before the guide is asked.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::asked::{Asked, Count, fit};
use super::policy::Action;
use super::problem::{Kind, Problem};
use super::{BoxFuture, reply};
use crate::guided::{
    Actions, Flow, FlowState, Guide, Moved, NestedView, OpenError, Press, Problem as Found,
    Progress, Refused, StageName, StageView, View,
};
use crate::{Bytes, Engine};

pub(super) type Flows = BTreeMap<String, Arc<dyn Flowing>>;

/// How often an edit that the client gave no revision for is made anew because the guide moved meanwhile.
const TRIES: u32 = 16;

/// A flow whose data is forgotten.
pub(super) trait Flowing: Send + Sync + fmt::Debug {
    /// The guide as it stands, or, within `wait`, as it stands after a revision.
    fn view(
        &self,
        engine: Engine,
        id: String,
        newer: Option<(u64, Duration)>,
    ) -> BoxFuture<Result<Value, Problem>>;

    /// Gives a command. A guide that was never started is by `start`.
    fn press(
        &self,
        engine: Engine,
        id: String,
        command: Command,
        pressed: Pressed,
    ) -> BoxFuture<Result<Pressing, Problem>>;
}

/// What came of a command: done, or, where the client waits no longer, still being done.
#[derive(Debug)]
pub(super) enum Pressing {
    Done(Value),
    Goes(Value),
}

/// What a guide is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Command {
    Next,
    Back,
    Skip,
    Retry,
    Resume,
    Release,
    Check,
    Edit,
    Cancel,
    Rollback,
    SkipUndo,
    Start,
}

impl Command {
    pub(super) const ALL: [(&'static str, Self); 12] = [
        ("next", Self::Next),
        ("back", Self::Back),
        ("skip", Self::Skip),
        ("retry", Self::Retry),
        ("resume", Self::Resume),
        ("release", Self::Release),
        ("check", Self::Check),
        ("edit", Self::Edit),
        ("cancel", Self::Cancel),
        ("rollback", Self::Rollback),
        ("skip-undo", Self::SkipUndo),
        ("start", Self::Start),
    ];

    fn of(word: &str) -> Result<Self, Problem> {
        let found = Self::ALL.iter().find(|(known, _)| *known == word);
        found.map(|(_, command)| *command).ok_or_else(|| {
            let words = Self::ALL.map(|(word, _)| word).join("`, `");
            let detail = format!("a guide has no command `{word}`; it has `{words}`");
            Problem::new(Kind::UnknownFlow, detail)
        })
    }
}

/// What comes with a command.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Said {
    /// The revision that the person saw.
    revision: Option<Count>,
    /// What is to be changed of the person's data: of `edit`.
    set: Option<Value>,
    /// The person's data: of `start`.
    state: Option<Value>,
    /// What the operation that was blocked is told: of `release`.
    with: Option<Value>,
    /// Why an undo is passed over: of `skip-undo`.
    reason: Option<String>,
}

/// A command as it was given.
#[derive(Debug)]
pub(super) struct Pressed {
    said: Said,
    key: Option<String>,
    /// How long what it leads to is waited for.
    wait: Duration,
}

/// `GET /guides/{flow}/{run}`: the view, or the next one after a revision.
pub(super) async fn view(asked: Asked) -> Result<Response, Problem> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Which {
        after: Option<Count>,
        wait: Option<u64>,
    }
    asked.allow(Action::Read)?;
    let Which { after, wait } = asked.query()?;
    let wait = asked.within_patience(wait.unwrap_or(0))?;
    let flow = asked.flow()?;
    let (engine, id) = (asked.api.engine.clone(), asked.segment("run").to_owned());
    let view = flow.view(engine, id, after.map(|Count(after)| (after, wait)));
    Ok(reply::value(StatusCode::OK, &view.await?))
}

/// `POST /guides/{flow}/{run}/{command}`: gives a command; the answer comes when what it led to has been done.
pub(super) async fn press(asked: Asked) -> Result<Response, Problem> {
    asked.allow(Action::Guide)?;
    let wait = asked.wait()?.unwrap_or(asked.api.patience);
    let flow = asked.flow()?;
    let command = Command::of(asked.segment("command"))?;
    let key = asked.key()?;
    let (engine, id) = (asked.api.engine.clone(), asked.segment("run").to_owned());
    let body: Option<Bytes> = asked.maybe_json().await?;
    let said: Said = body.map_or_else(|| Ok(Said::default()), |json| fit(&json))?;
    let only = [
        ("set", said.set.is_some(), Command::Edit, "edit"),
        ("state", said.state.is_some(), Command::Start, "start"),
        ("with", said.with.is_some(), Command::Release, "release"),
        (
            "reason",
            said.reason.is_some(),
            Command::SkipUndo,
            "skip-undo",
        ),
    ];
    for (name, is_said, of, at) in only {
        if is_said && command != of {
            let detail = format!("`{name}` is said with `{at}`, and with no other command");
            return Err(Problem::new(Kind::BadBody, detail));
        }
    }
    let pressed = Pressed { said, key, wait };
    let (status, answer) = match flow.press(engine, id, command, pressed).await? {
        Pressing::Done(answer) => (StatusCode::OK, answer),
        Pressing::Goes(answer) => (StatusCode::ACCEPTED, answer),
    };
    Ok(reply::value(status, &answer))
}

impl Asked {
    fn flow(&self) -> Result<Arc<dyn Flowing>, Problem> {
        let (name, flows) = (self.segment("flow"), &self.api.flows);
        flows.get(name).cloned().ok_or_else(|| {
            let known: Vec<_> = flows.keys().map(String::as_str).collect();
            let detail = match &*known {
                [] => "no flow was given to this API: `.guided(&flow)`".to_owned(),
                known => format!(
                    "there is no flow `{name}` here; there are `{}`",
                    known.join("`, `")
                ),
            };
            Problem::new(Kind::UnknownFlow, detail)
        })
    }
}

impl<S: FlowState> Flowing for Flow<S> {
    fn view(
        &self,
        engine: Engine,
        id: String,
        newer: Option<(u64, Duration)>,
    ) -> BoxFuture<Result<Value, Problem>> {
        let flow = self.clone();
        Box::pin(async move {
            let guide = opened(&engine, &flow, &id).await?;
            let mut changes = guide.watch();
            if let Some((after, wait)) = newer {
                let newer = async {
                    while guide.view().revision <= after && changes.next().await.is_some() {}
                };
                // Who has waited long enough is given what there is, and asks again.
                let _ = tokio::time::timeout(wait, newer).await;
            }
            Ok(shown(&guide))
        })
    }

    fn press(
        &self,
        engine: Engine,
        id: String,
        command: Command,
        mut pressed: Pressed,
    ) -> BoxFuture<Result<Pressing, Problem>> {
        let flow = self.clone();
        Box::pin(async move {
            if command == Command::Start {
                return start(&engine, &flow, &id, pressed).await;
            }
            let guide = opened(&engine, &flow, &id).await?;
            let given = match command {
                Command::Next => given(guide.next(), &pressed, moved).await,
                Command::Back => given(guide.back(), &pressed, moved).await,
                Command::Skip => given(guide.skip(), &pressed, moved).await,
                Command::Retry => given(guide.retry(), &pressed, moved).await,
                Command::Resume => given(guide.resume(), &pressed, moved).await,
                Command::Release => {
                    let with = pressed.said.with.take().unwrap_or_default();
                    given(guide.release(with), &pressed, moved).await
                }
                Command::SkipUndo => {
                    let reason = pressed.said.reason.take().ok_or_else(|| {
                        let detail = "say why the undo is passed over: `{\"reason\": \"..\"}`";
                        Problem::new(Kind::BadBody, detail)
                    })?;
                    given(guide.skip_undo(reason), &pressed, nowhere).await
                }
                Command::Check => given(guide.check(), &pressed, found).await,
                Command::Cancel => given(guide.cancel(), &pressed, nowhere).await,
                Command::Rollback => given(guide.rollback(), &pressed, nowhere).await,
                Command::Edit => return edit(&guide, pressed).await,
                Command::Start => unreachable!("it was started above"),
            };
            answered(&guide, given)
        })
    }
}

async fn opened<S: FlowState>(
    engine: &Engine,
    flow: &Flow<S>,
    id: &str,
) -> Result<Guide<S>, Problem> {
    let opened = engine.guided(flow, id).open().await?;
    opened.ok_or_else(|| {
        let detail = format!("there is no guide `{id}`: begin it with `start`");
        Problem::new(Kind::NotFound, detail)
    })
}

/// Gives a command as of the revision that the person saw, once for a key; `None` when what it leads to takes longer than is waited.
/// Then it was given all the same.
async fn given<S: FlowState, T: 'static>(
    press: Press<S, T>,
    pressed: &Pressed,
    read: fn(T) -> Value,
) -> Result<Option<Value>, Refused> {
    let press = match pressed.said.revision {
        Some(Count(at)) => press.at(at),
        None => press,
    };
    let press = match &pressed.key {
        Some(key) => press.key(key),
        None => press,
    };
    match tokio::time::timeout(pressed.wait, press.into_future()).await {
        Ok(done) => done.map(|done| Some(read(done))),
        Err(_) => Ok(None),
    }
}

async fn start<S: FlowState>(
    engine: &Engine,
    flow: &Flow<S>,
    id: &str,
    mut pressed: Pressed,
) -> Result<Pressing, Problem> {
    let state: S = data(pressed.said.state.take().unwrap_or_default(), "state")?;
    match engine.guided(flow, id).start(state.clone()).await {
        Ok(guide) => Ok(Pressing::Done(json!({ "view": shown(&guide) }))),
        // It was begun before: that may have been undone since, and if not, the guide says so.
        Err(OpenError::AlreadyStarted { .. }) => {
            let guide = opened(engine, flow, id).await?;
            let given = given(guide.start(state), &pressed, moved).await;
            answered(&guide, given)
        }
        Err(error) => Err(error.into()),
    }
}

/// Changes the person's data by a merge patch.
async fn edit<S: FlowState>(guide: &Guide<S>, mut pressed: Pressed) -> Result<Pressing, Problem> {
    let patch = pressed.said.set.take().ok_or_else(|| {
        let detail = "an edit says what to change: `{\"set\": {\"name\": \"acme\"}}`";
        Problem::new(Kind::BadBody, detail)
    })?;
    let seen = pressed.said.revision;
    for _ in 0..TRIES {
        let view = guide.view();
        let mut whole =
            serde_json::to_value(&view.state).map_err(|error| Problem::new(Kind::Flow, error))?;
        merge(&mut whole, patch.clone());
        let state: S = data(whole, "set")?;
        // As of what was merged: what somebody else changed meanwhile is not overwritten.
        pressed.said.revision = Some(seen.unwrap_or(Count(view.revision)));
        let edited = given(guide.edit(move |own| *own = state), &pressed, nowhere).await;
        match edited {
            Err(Refused::Stale { .. }) if seen.is_none() => {}
            edited => return answered(guide, edited),
        }
    }
    let detail = "the guide keeps moving: look at it, and edit what you see";
    Err(Problem::new(Kind::Stale, detail).with("view", shown(guide)))
}

/// The person's data.
fn data<S: FlowState>(json: Value, name: &str) -> Result<S, Problem> {
    serde_json::from_value(json).map_err(|error| {
        let wanted = std::any::type_name::<S>();
        let detail = format!("`{name}` does not give a `{wanted}`: {error}");
        Problem::new(Kind::BadBody, detail)
    })
}

/// RFC 7396.
fn merge(target: &mut Value, patch: Value) {
    let Value::Object(patch) = patch else {
        *target = patch;
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    if let Value::Object(fields) = target {
        for (name, value) in patch {
            if value.is_null() {
                fields.remove(&name);
            } else {
                merge(fields.entry(name).or_insert(Value::Null), value);
            }
        }
    }
}

/// What came of a command, with the guide as it stands then.
fn answered<S: FlowState>(
    guide: &Guide<S>,
    given: Result<Option<Value>, Refused>,
) -> Result<Pressing, Problem> {
    match given {
        Ok(Some(mut answer)) => {
            answer["view"] = shown(guide);
            Ok(Pressing::Done(answer))
        }
        Ok(None) => Ok(Pressing::Goes(json!({ "view": shown(guide) }))),
        Err(refused) => Err(Problem::refused(&refused, shown(guide))),
    }
}

fn moved(moved: Moved) -> Value {
    match moved {
        Moved::To(stage) => json!({ "moved": { "to": stage } }),
        Moved::Finished => json!({ "moved": { "finished": true } }),
        Moved::Inside { path, to } => json!({ "moved": { "within": path, "to": to } }),
    }
}

fn found(problems: Vec<Found>) -> Value {
    json!({ "problems": problems })
}

/// The revision stands in the view.
fn nowhere(_revision: u64) -> Value {
    json!({})
}

/// A view, as clients read it.
fn shown<S: FlowState>(guide: &Guide<S>) -> Value {
    let view: Arc<View<S>> = guide.view();
    json!({
        "id": guide.id().as_str(),
        "revision": view.revision,
        "status": view.status,
        "state": view.state,
        "at": view.at,
        "stages": view.stages.iter().map(stage).collect::<Vec<_>>(),
        "history": view.history,
        "completed": view.completed,
        "skipped": view.skipped,
        "ahead": view.ahead,
        "problems": view.problems,
        "attempts": view.attempts,
        "failure": view.failure,
        "actions": buttons(view.actions),
        "operations": view.operations,
        "orphans": view.orphans,
        "busy": view.busy,
        "nested": view.nested.iter().map(nested).collect::<Vec<_>>(),
        "durable": view.durable,
        "started_at": view.started_at,
        "completed_at": view.completed_at,
        "events": view.events,
    })
}

fn nested(view: &NestedView) -> Value {
    json!({
        "path": view.path,
        "flow": view.flow,
        "revision": view.revision,
        "status": view.status,
        "state": view.state,
        "at": view.at,
        "stages": view.stages.iter().map(stage).collect::<Vec<_>>(),
        "history": view.history,
        "completed": view.completed,
        "skipped": view.skipped,
        "problems": view.problems,
        "failure": view.failure,
        "actions": buttons(view.actions),
        "operations": view.operations,
        "busy": view.busy,
        "events": view.events,
    })
}

fn stage(stage: &StageView<StageName>) -> Value {
    #[derive(Serialize)]
    struct Stage<'a> {
        name: &'a StageName,
        title: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        help: Option<&'a str>,
        progress: &'static str,
    }
    let progress = match stage.progress {
        Progress::Current => "current",
        Progress::Error => "error",
        Progress::Completed => "completed",
        Progress::Skipped => "skipped",
        Progress::Pending => "pending",
    };
    json!(Stage {
        name: &stage.name,
        title: &stage.title,
        help: stage.help.as_deref(),
        progress,
    })
}

fn buttons(actions: Actions) -> Value {
    json!({
        "next": actions.next,
        "back": actions.back,
        "skip": actions.skip,
        "retry": actions.retry,
        "release": actions.release,
        "cancel": actions.cancel,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_changes_what_it_names_and_removes_what_it_says_is_null() {
        // The examples of RFC 7396.
        for (target, patch, merged) in [
            (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
            (
                json!({"a": "b"}),
                json!({"b": "c"}),
                json!({"a": "b", "b": "c"}),
            ),
            (
                json!({"a": "b", "b": "c"}),
                json!({"a": null}),
                json!({"b": "c"}),
            ),
            (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
            (
                json!({"a": {"b": "c"}}),
                json!({"a": {"b": "d", "c": null}}),
                json!({"a": {"b": "d"}}),
            ),
            (json!(["a", "b"]), json!(["c", "d"]), json!(["c", "d"])),
            (json!({"a": "b"}), json!(null), json!(null)),
            (
                json!({"e": null}),
                json!({"a": 1}),
                json!({"e": null, "a": 1}),
            ),
            (
                json!([1, 2]),
                json!({"a": "b", "c": null}),
                json!({"a": "b"}),
            ),
            (
                json!({}),
                json!({"a": {"bb": {"ccc": null}}}),
                json!({"a": {"bb": {}}}),
            ),
        ] {
            let mut whole = target;
            merge(&mut whole, patch);
            assert_eq!(whole, merged);
        }
    }
}
