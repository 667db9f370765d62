//! The HTTP API as a client sees it: the real router, nested in another, over engines whose time is paused.
#![allow(
    clippy::unwrap_used,
    clippy::too_long_first_doc_paragraph,
    reason = "tests"
)]

mod closed;
mod control;
mod counts;
mod description;
mod events;
mod guides;
mod hostile;
mod messages;
mod requests;
mod runs;
mod schedules;
mod values;

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Request, header};
use http_body_util::BodyExt;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tower::ServiceExt;
use utoipa::ToSchema;
use workflow::guided::{Flow, Stage, stage};
use workflow::http::{Api, Policy, Shape, router};
use workflow::{
    Channel, Engine, EngineBuilder, Failure, checkpoint, fragment, join, progress, recv, sleep,
    step, workflow,
};
use workflow_tests::{Counter, World, pass};

#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
struct Order {
    item: String,
    #[serde(default)]
    cents: u64,
}

static PAYMENT: Channel<u64> = Channel::new("payment");
static QUOTE: Channel<String, u64> = Channel::new("quote");

#[step(retries = 0)]
async fn pack(order: Order, calls: &Counter) -> Result<String, std::io::Error> {
    calls.hit();
    if order.item == "stone" {
        return Err(std::io::Error::other("too heavy"));
    }
    Ok(format!("{} packed", order.item))
}

/// Packs, rests for an hour, and is done.
#[workflow]
async fn order(
    order: Order,
    note: Option<String>,
    #[state] calls: Counter,
) -> Result<String, Failure> {
    let packed = pack(order, &calls).await?;
    progress!(json!({ "packed": packed }));
    sleep!(rest, "1h").await;
    Ok(match note {
        Some(note) => format!("{packed}, {note}"),
        None => packed,
    })
}

/// Waits until it is paid.
#[workflow]
async fn bill() -> Result<u64, Failure> {
    recv!(paid, PAYMENT).await
}

/// Takes all payments that have come within a second.
#[workflow]
async fn till() -> Result<Vec<u64>, Failure> {
    sleep!(open, "1s").await;
    recv!(paid, PAYMENT, timeout = "0s", count = 9).await
}

/// Answers so many questions, an hour after each.
#[workflow]
async fn clerk(questions: u32) -> Result<u32, Failure> {
    'asked: for _ in 0..questions {
        let asked = recv!(asked, QUOTE).await?;
        sleep!(thinks, "1h").await;
        let answer = asked.len() as u64;
        asked.reply(answer).await?;
    }
    Ok(questions)
}

/// Fails at its second step as long as the switch says so, and undoes its first.
#[workflow]
async fn shaky(#[state] switch: Switch) -> Result<u32, Failure> {
    let first = make(&switch).await?;
    let second = fails(&switch).await?;
    Ok(first + second)
}

#[derive(Debug, Clone, Default)]
struct Switch {
    made: Counter,
    unmade: Counter,
    failed: Counter,
}

#[step]
async fn make(switch: &Switch) -> u32 {
    u32::try_from(switch.made.hit()).unwrap()
}

/// Fails the first time.
#[step(retries = 0)]
async fn fails(switch: &Switch) -> Result<u32, std::io::Error> {
    if switch.failed.hit() == 1 {
        return Err(std::io::Error::other("not today"));
    }
    Ok(10)
}

async fn unmake(_: u32, switch: Switch) -> Result<(), std::io::Error> {
    switch.unmade.hit();
    Ok(())
}

/// Does what can be undone, and rests.
#[workflow]
async fn saga(#[state] switch: Switch) -> Result<(), Failure> {
    checkpoint!(begin);
    #[step(undo(unmake))]
    make(&switch).await?;
    sleep!(rest, "1d").await;
    Ok(())
}

/// Waits for a run of `order`.
#[workflow]
async fn parent() -> Result<String, Failure> {
    let thing = Order {
        item: "book".to_owned(),
        cents: 1,
    };
    let (child, _) = join!(
        both,
        ship = order(thing.clone(), None).await?,
        nap = sleep!(nap, "1ms").await
    )
    .await?;
    Ok(child)
}

/// Its own code panics.
#[workflow]
async fn broken() {
    sleep!(nap, "1ms").await;
    panic!("oh no");
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
struct Form {
    name: String,
    size: u32,
}

#[step]
async fn take_time() {
    pass(10_000).await;
}

/// Takes ten seconds for the slow.
#[fragment]
async fn measure(stage: Stage<Form>) -> Result<(), Failure> {
    if stage.state().name == "slow" {
        take_time().await?;
    }
    Ok(())
}

fn flow() -> Flow<Form> {
    Flow::<Form>::builder("signup")
        .stage(
            stage("name")
                .start()
                .check(|form: &Form, problems| {
                    problems.when(form.name.is_empty(), "name", "a name is needed");
                })
                .to("size"),
        )
        .stage(stage("size").skippable().body(measure).to("done"))
        .stage(stage("done").terminal())
        .build()
        .unwrap()
}

/// Where an engine lives, with what its workflows touch.
struct Shop {
    world: World,
    calls: Counter,
    switch: Switch,
    flow: Flow<Form>,
}

impl Shop {
    fn new() -> Self {
        Self {
            world: World::new(),
            calls: Counter::default(),
            switch: Switch::default(),
            flow: flow(),
        }
    }

    fn builder(&self) -> EngineBuilder {
        let engine = self.world.engine();
        let engine = engine.state(self.calls.clone()).state(self.switch.clone());
        let engine = engine.workflow(order).workflow(bill).workflow(clerk);
        let engine = engine.workflow(shaky).workflow(saga).workflow(parent);
        engine.workflow(broken).workflow(till).guided(&self.flow)
    }

    async fn engine(&self) -> Engine {
        self.builder().build().await.unwrap()
    }

    /// All that is served, open to everybody.
    fn api(&self, engine: &Engine) -> Api {
        router(engine.clone())
            .policy(Policy::open())
            .channel(&PAYMENT)
            .channel(&QUOTE)
            .guided(&self.flow)
            .describe(
                order,
                Shape::new()
                    .parameter::<Order>("order")
                    .optional::<String>("note")
                    .output::<String>(),
            )
            .describe_messages(&PAYMENT)
            .describe_requests(&QUOTE)
            .describe_flow(&self.flow)
    }

    async fn client(&self) -> (Engine, Client) {
        let engine = self.engine().await;
        let client = Client::of(self.api(&engine));
        (engine, client)
    }

    /// What a restart would find if the process were killed now.
    fn crash(&self) -> Self {
        Self {
            world: self.world.crash(),
            calls: self.calls.clone(),
            switch: self.switch.clone(),
            flow: self.flow.clone(),
        }
    }
}

/// Somebody who asks, at `/api`.
#[derive(Clone)]
struct Client(Router);

/// What was answered.
#[derive(Debug)]
struct Answer {
    status: u16,
    headers: HeaderMap,
    body: Value,
}

impl Client {
    fn of(api: Api) -> Self {
        Self(Router::new().nest("/api", api.into_router()))
    }

    async fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, &[], "").await
    }

    async fn post(&self, path: &str, body: impl ToString) -> Answer {
        self.ask("POST", path, &[], &body.to_string()).await
    }

    /// With an idempotency key.
    async fn once(&self, path: &str, key: &str, body: impl ToString) -> Answer {
        let key = [("idempotency-key", key)];
        self.ask("POST", path, &key, &body.to_string()).await
    }

    async fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let response = self.respond(method, path, headers, body).await;
        let (parts, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        let body = if body.is_empty() {
            Value::Null
        } else {
            serde_json::from_slice(&body)
                .unwrap_or_else(|_| Value::from(String::from_utf8_lossy(&body)))
        };
        Answer {
            status: parts.status.as_u16(),
            headers: parts.headers,
            body,
        }
    }

    async fn respond(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> axum::response::Response {
        let mut request = Request::builder().method(method).uri(format!("/api{path}"));
        if !body.is_empty() && !headers.iter().any(|(name, _)| *name == "content-type") {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::from(body.to_owned())).unwrap();
        self.0.clone().oneshot(request).await.unwrap()
    }

    /// Starts a run of `order` that packs a book.
    async fn start_order(&self, id: &str) -> Answer {
        let input = json!({ "order": { "item": "book", "cents": 7 } });
        self.once("/workflows/order/runs", id, input).await
    }
}

impl Answer {
    /// What is asked for, of a call that went well.
    #[track_caller]
    fn is(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{:#}", self.body);
        self.body
    }

    /// A problem of that kind: what it says.
    #[track_caller]
    fn refused(self, status: u16, kind: &str) -> String {
        assert_eq!(
            self.body["type"],
            format!("workflow:{kind}"),
            "{:#}",
            self.body
        );
        assert_eq!(self.status, status);
        assert_eq!(self.body["status"], status);
        assert_eq!(
            self.headers[header::CONTENT_TYPE],
            "application/problem+json"
        );
        assert!(self.body["title"].is_string());
        self.body["detail"].as_str().unwrap().to_owned()
    }
}

/// A long time, none of which passes in truth.
const HOUR: Duration = Duration::from_hours(1);
