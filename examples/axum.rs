//! A small service: order processing over HTTP that survives kill -9.
//!
//! ```text
//! PORT=8080 DATA=/tmp/shop.redb cargo run --example axum
//!
//! curl -sX POST localhost:8080/orders/1 -H 'content-type: application/json' -d '{"item":"tea","cents":690}'    # waits for the receipt
//! curl -sX POST localhost:8080/orders/2/later -H 'content-type: application/json' -d '{"item":"mug","cents":1250}'  # 202, and where to look
//! curl -s localhost:8080/orders/2           # what it is doing
//! curl -s localhost:8080/orders/2/receipt   # waits for the receipt
//! curl -sX POST localhost:8080/orders/3/later -H 'content-type: application/json' -d '{"item":"lamp","cents":4500}'
//! curl -sX DELETE localhost:8080/orders/3   # cancels it
//! ```
//!
//! The order's number is the run's id: a client that got no answer asks again with the same number and body, and the
//! order is still processed once. `PORT=0` takes any free port; the one taken is printed. Ctrl-C or SIGTERM ends it
//! politely.
#![expect(clippy::print_stdout, reason = "the log of a small service")]

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use workflow::http::Accepted;
use workflow::{Engine, Failure, current_step, sleep, step, workflow};

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Order {
    item: String,
    cents: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Receipt {
    item: String,
    cents: u64,
    payment: String,
}

#[derive(Debug, Serialize)]
struct Standing {
    state: String,
    records: u64,
}

/// A payment provider takes the key, so that a charge cut off before it was recorded is not made twice.
#[step(retries = 5, timeout = "10s")]
async fn charge(cents: u64) -> Result<String, io::Error> {
    println!("charging {cents} for order {}", current_step().run_id());
    tokio::time::sleep(Duration::from_millis(20)).await;
    Ok(format!("payment {}", current_step().idempotency_key()))
}

#[step]
async fn ship(_item: &str) -> Result<(), io::Error> {
    tokio::time::sleep(Duration::from_millis(20)).await;
    Ok(())
}

#[workflow]
async fn order(order: Order) -> Result<Receipt, Failure> {
    let payment = charge(order.cents).await?;
    sleep!(packing, "300ms").await;
    ship(&order.item).await?;
    Ok(Receipt {
        item: order.item,
        cents: order.cents,
        payment,
    })
}

type Answer<T> = Result<T, workflow::Error>;

/// Processes the order and waits for its receipt.
async fn process(
    State(engine): State<Engine>,
    Path(id): Path<String>,
    Json(input): Json<Order>,
) -> Answer<Json<Receipt>> {
    Ok(Json(engine.run(id, order(input)).await?))
}

/// Begins to process the order. When this answers, that it will be processed is durable.
async fn later(
    State(engine): State<Engine>,
    Path(id): Path<String>,
    Json(input): Json<Order>,
) -> Answer<Accepted> {
    let run = engine.start(id, order(input)).await?;
    Ok(Accepted::at(format!("/orders/{}", run.id())))
}

async fn standing(State(engine): State<Engine>, Path(id): Path<String>) -> Answer<Json<Standing>> {
    let status = engine.status(&id).await?;
    Ok(Json(Standing {
        state: format!("{:?}", status.state).to_lowercase(),
        records: status.records,
    }))
}

async fn receipt(State(engine): State<Engine>, Path(id): Path<String>) -> Answer<Json<Receipt>> {
    Ok(Json(engine.attach::<order>(&id).await?.result().await?))
}

async fn cancel(State(engine): State<Engine>, Path(id): Path<String>) -> Answer<StatusCode> {
    engine.cancel(&id).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn router(engine: Engine) -> Router {
    Router::new()
        .route("/orders/{id}", post(process).get(standing).delete(cancel))
        .route("/orders/{id}/later", post(later))
        .route("/orders/{id}/receipt", get(receipt))
        .with_state(engine)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let port = std::env::var("PORT").map_or(Ok(8080), |port| port.parse())?;
    let data = std::env::var_os("DATA").map_or_else(
        || std::env::temp_dir().join("workflow-axum.redb"),
        PathBuf::from,
    );

    let engine = Engine::builder().workflow(order).open(&data).await?;
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    println!(
        "listening on {}, keeping runs in {}",
        listener.local_addr()?,
        data.display()
    );

    // The engine goes first: clients that wait for a result are told at once that it comes later, and let go.
    let told = engine.clone();
    let mut terminate = signal(SignalKind::terminate())?;
    axum::serve(listener, router(engine))
        .with_graceful_shutdown(async move {
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = terminate.recv() => {}
            }
            if let Err(error) = told.shutdown(Duration::from_secs(5)).await {
                println!("{error}");
            }
        })
        .await?;
    println!("stopped");
    Ok(())
}
