//! The HTTP API of an engine, nested in a service of your own, with a policy. `cargo run --example service`.
//!
//! ```text
//! PORT=8080 DATA=/tmp/service.redb TOKEN=secret cargo run --example service
//!
//! api=localhost:8080/api auth='authorization: Bearer secret' json='content-type: application/json'
//!
//! # Starts an order; its key is the run's id, so that made again it is the same order. Waits up to 5 s for its end.
//! curl -s "$api/workflows/order/runs?wait=5" -H "$auth" -H "$json" -H 'idempotency-key: order-1' \
//!     -d '{"order":{"item":"tea","cents":690}}'
//! curl -s $api/runs/order-1                                             # what it is doing: it waits for `payment`
//! curl -s $api/runs/order-1/requests/question -H "$auth" -H "$json" -d '"when does it ship?"'   # asks it, and gets its answer
//! curl -s $api/runs/order-1/messages/payment -H "$auth" -H "$json" -H 'idempotency-key: pay-1' -d '{"reference":"tx 17"}'
//! curl -s "$api/runs/order-1/result?wait=20"                            # its receipt
//!
//! curl -sN $api/runs/order-1/events                                     # its records, as they come
//! curl -sN $api/runs/order-1/events -H 'last-event-id: 4'               # those after the fourth
//! curl -s "$api/runs?workflow=order&state=completed&limit=10"
//! curl -s $api/runs/order-1/rewind?dry_run=true -H "$json" -d '{"to":"ship"}'   # what doing that again would take back
//! curl -s $api/runs/order-1/cancel -X POST                              # 403: who has no token may only look
//!
//! # A person's way through a flow.
//! curl -s $api/guides/signup/ann/start -H "$auth" -H "$json" -d '{"state":{"name":"","newsletter":false}}'
//! curl -s $api/guides/signup/ann/edit -H "$auth" -H "$json" -d '{"set":{"name":"Ann"}}'
//! curl -s $api/guides/signup/ann/next -H "$auth" -X POST
//!
//! curl -s $api/openapi.json                                             # all of it, for tools
//! curl -s localhost:8080/metrics                                        # what happens, for Prometheus
//! open http://localhost:8080/dashboard                                  # all of it, to look at
//! ```
//!
//! Everybody may look; who has the token may change things. Nobody waits for longer than `PATIENCE` seconds, 60 unless it is said.
//! `PORT=0` takes any free port; the one taken is printed.
#![expect(clippy::print_stdout, reason = "the log of a small service")]

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::http::header::AUTHORIZATION;
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use axum::routing::get;
use metrics_exporter_prometheus::{BuildError, PrometheusBuilder, PrometheusHandle};
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;
use utoipa::ToSchema;
use workflow::guided::{Flow, stage};
use workflow::http::{Policy, Shape, router};
use workflow::{Channel, Engine, Failure, current_step, dashboard, race, recv, step, workflow};

#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
struct Order {
    item: String,
    cents: u32,
}

#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
struct Payment {
    reference: String,
}

#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
struct Receipt {
    item: String,
    paid_by: String,
    tracking: String,
}

/// What customers pay by.
static PAYMENT: Channel<Payment> = Channel::new("payment");
/// What customers ask, and what they are told.
static QUESTION: Channel<String, String> = Channel::new("question");

#[step(retries = 5, timeout = "10s")]
async fn ship(item: &str) -> Result<String, io::Error> {
    println!("shipping {item} for {}", current_step().run_id());
    tokio::time::sleep(Duration::from_millis(20)).await;
    Ok(format!("parcel {}", current_step().idempotency_key()))
}

/// Waits until it is paid, answers questions meanwhile, and ships.
#[workflow]
async fn order(order: Order) -> Result<Receipt, Failure> {
    let payment = 'open: loop {
        let came = race!(
            next,
            paid = Some(recv!(payment, PAYMENT).await?),
            asked = {
                let question = recv!(question, QUESTION).await?;
                let answer = format!("{}: once it is paid", question.value());
                question.reply(answer).await?;
                None
            },
        )
        .await?;
        if let Some(payment) = came.value {
            break 'open payment;
        }
    };
    let tracking = ship(&order.item).await?;
    Ok(Receipt {
        item: order.item,
        paid_by: payment.reference,
        tracking,
    })
}

/// What a person who signs up gives.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
struct Person {
    name: String,
    newsletter: bool,
}

fn signup() -> Result<Flow<Person>, workflow::guided::Faults> {
    Flow::<Person>::builder("signup")
        .stage(
            stage("name")
                .start()
                .title("What is your name?")
                .check(|person: &Person, problems| {
                    problems.when(person.name.is_empty(), "name", "a name is needed");
                })
                .to("news"),
        )
        .stage(
            stage("news")
                .title("Do you want our news?")
                .skippable()
                .to("done"),
        )
        .stage(stage("done").terminal())
        .build()
}

/// Somebody who may change things.
#[derive(Debug, Clone)]
struct Operator;

/// Your own authentication: whatever it finds out goes into the request, where the policy finds it.
async fn authenticate(token: String, mut request: Request, next: Next) -> Response {
    let given = request.headers().get(AUTHORIZATION);
    if given.is_some_and(|given| given.as_bytes() == token.as_bytes()) {
        request.extensions_mut().insert(Operator);
    }
    next.run(request).await
}

/// What Prometheus reads. It is installed before the engine is built, so that nothing is missed.
fn measured() -> Result<PrometheusHandle, BuildError> {
    PrometheusBuilder::new()
        .set_buckets(&[0.001, 0.005, 0.02, 0.1, 0.5, 2.0, 10.0, 60.0])?
        .install_recorder()
}

fn app(
    engine: Engine,
    signup: &Flow<Person>,
    metrics: PrometheusHandle,
    token: String,
    patience: Duration,
) -> Router {
    let policy =
        Policy::new(|ask| !ask.action().changes() || ask.extension::<Operator>().is_some());
    let api = router(engine.clone())
        .policy(policy)
        .longest_wait(patience)
        .channel(&PAYMENT)
        .channel(&QUESTION)
        .guided(signup)
        .describe(
            order,
            Shape::new().parameter::<Order>("order").output::<Receipt>(),
        )
        .describe_messages(&PAYMENT)
        .describe_requests(&QUESTION)
        .describe_flow(signup)
        .into_router();
    // It shows, and does nothing: a browser has no token.
    let shown = dashboard::router(router(engine).guided(signup));
    let token = format!("Bearer {token}");
    let authenticate = from_fn(move |request, next| authenticate(token.clone(), request, next));
    Router::new()
        .route(
            "/",
            get(|| async { "the API is at /api, the dashboard at /dashboard\n" }),
        )
        .route("/metrics", get(move || async move { metrics.render() }))
        .nest_service("/dashboard", shown)
        .nest("/api", api.layer(authenticate))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let port = std::env::var("PORT").map_or(Ok(8080), |port| port.parse())?;
    let token = std::env::var("TOKEN").unwrap_or_else(|_| "secret".to_owned());
    let patience = std::env::var("PATIENCE").map_or(Ok(60), |seconds| seconds.parse())?;
    let patience = Duration::from_secs(patience);
    let data = std::env::var_os("DATA").map_or_else(
        || std::env::temp_dir().join("workflow-service.redb"),
        PathBuf::from,
    );
    let metrics = measured()?;
    let signup = signup()?;
    let engine = Engine::builder().workflow(order).guided(&signup);
    let engine = engine.open(&data).await?;
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    println!(
        "listening on {}, keeping runs in {}",
        listener.local_addr()?,
        data.display()
    );

    // The engine goes first: streams of events end with it, and clients that wait are let go.
    let told = engine.clone();
    axum::serve(listener, app(engine, &signup, metrics, token, patience))
        .with_graceful_shutdown(async move {
            // Its error is that there are no signals here: then nothing is waited for.
            let _ = tokio::signal::ctrl_c().await;
            if let Err(error) = told.shutdown(Duration::from_secs(5)).await {
                println!("{error}");
            }
        })
        .await?;
    println!("stopped");
    Ok(())
}
