//! The flow of the `wizard` example behind HTTP, with a page: every tab is a driver. `cargo run --example onboarding`.
//!
//! ```text
//! PORT=8080 DATA=/tmp/onboarding.redb cargo run --example onboarding
//! open http://localhost:8080/#acme        # in two tabs: what one does, the other shows
//!
//! curl -s localhost:8080/guides/acme                       # the view; begins the guide if it is new
//! curl -s 'localhost:8080/guides/acme?after=3'             # the next view after revision 3: waits for it, up to 20 s
//! curl -s 'localhost:8080/guides/acme?after=3&steps=7'     # the same, or when its steps are further than that view's `steps`
//! curl -sX POST localhost:8080/guides/acme/edit -H 'content-type: application/json' -d '{"revision":1,"set":{"name":"acme"}}'
//! curl -sX POST localhost:8080/guides/acme/next -H 'content-type: application/json' -d '{"revision":2}'
//! ```
//!
//! A button is pressed with the revision that the person saw, and with a key: pressed in two tabs, or sent twice because an answer was
//! lost, it moves the guide once; the other is told that the guide has moved (409) with the view as it is now.
#![expect(clippy::print_stdout, reason = "the log of a small service")]

#[path = "../wizard/project.rs"]
mod project;

use std::path::PathBuf;
use std::time::Duration;

use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use workflow::Engine;
use workflow::guided::{Guide, OpenError, Press, Progress, Refused, StageKey, View};
use workflow::operation::Snapshot;

use self::project::{Project, ProjectStage};

type Onboarding = Guide<Project, ProjectStage>;

/// How long one waits for the next view.
const PATIENCE: Duration = Duration::from_secs(20);

/// What a tab says with a button.
#[derive(Debug, Deserialize)]
struct Pressed {
    /// The revision that the person saw.
    revision: u64,
    /// The same for every attempt to send this.
    key: Option<String>,
    /// What they filled in.
    #[serde(default)]
    set: Filled,
}

/// What a person can fill in.
#[derive(Debug, Default, Deserialize)]
struct Filled {
    name: Option<String>,
    cloud: Option<bool>,
    region: Option<String>,
}

impl Filled {
    fn into(self, project: &mut Project) {
        if let Some(name) = self.name {
            project.name = name;
        }
        if let Some(cloud) = self.cloud {
            project.cloud = cloud;
        }
        project.region = self.region.or(project.region.take());
    }
}

#[derive(Debug, Deserialize)]
struct After {
    after: Option<u64>,
    /// How far the steps were that it showed.
    steps: Option<u64>,
}

/// What was not done, and why: for a person and for the page.
enum Wrong {
    Refused(Refused, Value),
    NoSuchButton,
    Open(OpenError),
}

impl IntoResponse for Wrong {
    fn into_response(self) -> Response {
        match self {
            Self::Refused(refused, view) => {
                let status = match refused {
                    Refused::Stopped(_) => StatusCode::SERVICE_UNAVAILABLE,
                    Refused::Invalid(_) => StatusCode::UNPROCESSABLE_ENTITY,
                    _ => StatusCode::CONFLICT,
                };
                let kind = match refused {
                    Refused::Stale { .. } => "stale",
                    Refused::Busy => "busy",
                    Refused::Invalid(_) => "invalid",
                    _ => "refused",
                };
                let text = refused.to_string();
                let body = json!({ "refused": kind, "text": text, "view": view });
                (status, Json(body)).into_response()
            }
            Self::NoSuchButton => StatusCode::NOT_FOUND.into_response(),
            Self::Open(error) => (StatusCode::BAD_REQUEST, error.to_string()).into_response(),
        }
    }
}

/// A view, as the page reads it.
fn shown(view: &View<Project, ProjectStage>) -> Value {
    let stages = view.stages.iter().map(|stage| {
        let progress = match stage.progress {
            Progress::Current => "current",
            Progress::Error => "error",
            Progress::Completed => "completed",
            Progress::Skipped => "skipped",
            Progress::Pending => "pending",
        };
        json!({
            "name": stage.name.name(),
            "title": stage.title,
            "help": stage.help,
            "progress": progress,
        })
    });
    let operations = view.operations.iter().map(|operation| {
        let progress = operation.progress();
        json!({
            "name": operation.title(),
            "status": operation.status().word(),
            "percent": progress.and_then(workflow::operation::Progress::percent),
            "says": progress.and_then(|progress| progress.message.clone()),
        })
    });
    let actions = view.actions;
    json!({
        "revision": view.revision,
        "status": view.status,
        "at": view.at.as_ref().map(StageKey::name),
        // What is asked at a stage: one that is added does not compile before the page can show it.
        "asks": view.at.map(|at| match at {
            ProjectStage::Name => "name",
            ProjectStage::Hosting => "cloud",
            ProjectStage::Region => "region",
            ProjectStage::Create | ProjectStage::Done => "nothing",
        }),
        "project": view.state,
        "stages": stages.collect::<Vec<_>>(),
        "operations": operations.collect::<Vec<_>>(),
        "steps": steps_of(view),
        "problems": view.problems,
        "failure": view.failure,
        "busy": view.busy,
        "actions": {
            "next": actions.next,
            "back": actions.back,
            "skip": actions.skip,
            "retry": actions.retry,
            "cancel": actions.cancel,
        },
    })
}

async fn open(engine: &Engine, id: String) -> Result<Onboarding, Wrong> {
    let guide = engine.guide(id).open_or_start(Project::default);
    guide.await.map_err(Wrong::Open)
}

/// How far the steps are that the view shows: that has no revision of its own.
fn steps_of(view: &View<Project, ProjectStage>) -> u64 {
    let steps = view.operations.iter();
    steps.map(Snapshot::revision).sum()
}

/// The view as it is, or the next one after a revision, and after steps that were that far.
async fn view(
    State(engine): State<Engine>,
    Path(id): Path<String>,
    Query(After { after, steps }): Query<After>,
) -> Result<Json<Value>, Wrong> {
    let guide = open(&engine, id).await?;
    let mut changes = guide.watch();
    let seen = |view: &View<Project, ProjectStage>| {
        after.is_some_and(|after| view.revision <= after)
            && steps.is_none_or(|steps| steps == steps_of(view))
    };
    let newer = async {
        while seen(&guide.view()) {
            if changes.next().await.is_none() {
                break;
            }
        }
    };
    // Who has waited long enough is given what there is, and asks again.
    let _ = tokio::time::timeout(PATIENCE, newer).await;
    Ok(Json(shown(&guide.view())))
}

/// A button. The answer is the view that it led to.
async fn press(
    State(engine): State<Engine>,
    Path((id, button)): Path<(String, String)>,
    Json(pressed): Json<Pressed>,
) -> Result<Json<Value>, Wrong> {
    let guide = open(&engine, id).await?;
    let Pressed { revision, key, set } = pressed;
    let given = match &*button {
        "edit" => given(guide.edit(|project| set.into(project)), revision, key).await,
        "next" => given(guide.next(), revision, key).await,
        "back" => given(guide.back(), revision, key).await,
        "skip" => given(guide.skip(), revision, key).await,
        "retry" => given(guide.retry(), revision, key).await,
        "cancel" => given(guide.cancel(), revision, key).await,
        "rollback" => given(guide.rollback(), revision, key).await,
        "start" => given(guide.start(Project::default()), revision, key).await,
        _ => return Err(Wrong::NoSuchButton),
    };
    let view = shown(&guide.view());
    match given {
        Ok(()) => Ok(Json(view)),
        Err(refused) => Err(Wrong::Refused(refused, view)),
    }
}

/// Gives a command as of the revision that the person saw, once for a key.
async fn given<T: 'static>(
    press: Press<Project, T>,
    revision: u64,
    key: Option<String>,
) -> Result<(), Refused> {
    let press = press.at(revision);
    match key {
        Some(key) => press.key(key).await.map(drop),
        None => press.await.map(drop),
    }
}

fn router(engine: Engine) -> Router {
    Router::new()
        .route("/", get(|| async { Html(include_str!("page.html")) }))
        .route("/guides/{id}", get(view))
        .route("/guides/{id}/{button}", post(press))
        .with_state(engine)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let port = std::env::var("PORT").map_or(Ok(8080), |port| port.parse())?;
    let data = std::env::var_os("DATA").map_or_else(
        || std::env::temp_dir().join("workflow-onboarding.redb"),
        PathBuf::from,
    );
    let engine = Engine::builder().guide::<Project>().open(&data).await?;
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    println!(
        "listening on {}, keeping guides in {}",
        listener.local_addr()?,
        data.display()
    );
    let told = engine.clone();
    let serving = axum::serve(listener, router(engine)).into_future();
    // Tabs that wait for a view are not waited for.
    tokio::select! {
        served = serving => served?,
        _ = tokio::signal::ctrl_c() => {}
    }
    told.shutdown(Duration::from_secs(5)).await?;
    println!("stopped");
    Ok(())
}
