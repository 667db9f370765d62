//! A small service: orders are started, awaited, looked at and cancelled over HTTP.
//!
//!     cargo run --example axum
//!
//!     curl -i -X POST localhost:3000/orders/o1/wait  -d '{"item":"lamp","seconds":1}' -H 'content-type: application/json'
//!     curl -i -X POST localhost:3000/orders/o2       -d '{"item":"desk","seconds":600}' -H 'content-type: application/json'
//!     curl -i localhost:3000/orders/o2
//!     curl -i -X DELETE localhost:3000/orders/o2
//!
//! Kill it with `kill -9` while orders are under way and start it again: they go on. The same id with the same body is the
//! same order; with another body it is refused. `PORT` and `DATA` (a file) say where it listens and keeps its runs.
#![allow(clippy::print_stdout, reason = "an example talks")]

use std::time::Duration;

use axum::extract::{FromRef, Path, State};
use axum::routing::post;
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use workflow::http::Accepted;
use workflow::{Engine, Error, Failure, sleep, step, workflow};

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Order {
    item: String,
    /// How long the workshop takes.
    seconds: u64,
}

#[step]
async fn reserve(item: &str) -> Result<String, std::io::Error> {
    Ok(format!("hold-{item}"))
}

#[step(retries = 5, timeout = "10s")]
async fn ship(hold: &str) -> Result<String, std::io::Error> {
    Ok(format!("parcel for {hold}"))
}

#[workflow]
async fn fulfil(order: Order) -> Result<String, Failure> {
    let hold = reserve(&order.item).await?;
    sleep!(workshop, Duration::from_secs(order.seconds)).await;
    ship(&hold).await
}

/// What the handlers share. The engine is one part of it.
#[derive(Clone, FromRef)]
struct App {
    engine: Engine,
}

/// Runs the order and waits for it.
async fn wait(
    State(engine): State<Engine>,
    Path(id): Path<String>,
    Json(order): Json<Order>,
) -> Result<Json<String>, Error> {
    Ok(Json(engine.run(id, fulfil(order)).await?))
}

/// Starts the order, and answers 202 with a place to look.
async fn start(
    State(engine): State<Engine>,
    Path(id): Path<String>,
    Json(order): Json<Order>,
) -> Result<Accepted, Error> {
    let run = engine.start(id, fulfil(order)).await?;
    Ok(Accepted::at(format!("/orders/{}", run.id())))
}

#[derive(Serialize)]
struct Found {
    state: &'static str,
    parcel: Option<String>,
}

/// What became of the order so far.
async fn status(
    State(engine): State<Engine>,
    Path(id): Path<String>,
) -> Result<Json<Found>, Error> {
    let run = engine.attach::<fulfil>(&id).await?;
    let state = run.status().await?.state.word();
    // A run that failed answers with its failure.
    let parcel = if state == "completed" || state == "failed" {
        run.try_result().await?
    } else {
        None
    };
    Ok(Json(Found { state, parcel }))
}

async fn cancel(
    State(engine): State<Engine>,
    Path(id): Path<String>,
) -> Result<Json<Found>, Error> {
    engine.cancel(&id).await?;
    Ok(Json(Found {
        state: "cancelled",
        parcel: None,
    }))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let data = std::env::var("DATA").unwrap_or_else(|_| "/tmp/workflow-axum.redb".to_owned());
    let port = std::env::var("PORT").unwrap_or_else(|_| "3000".to_owned());
    let engine = Engine::builder().workflow(fulfil).open(data).await?;
    let app = Router::new()
        .route("/orders/{id}", post(start).get(status).delete(cancel))
        .route("/orders/{id}/wait", post(wait))
        .with_state(App {
            engine: engine.clone(),
        });
    let listener = tokio::net::TcpListener::bind(format!("127.0.0.1:{port}")).await?;
    println!("listening on http://{}", listener.local_addr()?);
    let stop = async {
        // Without a signal handler the service runs until it is killed, which is as good.
        let _ = tokio::signal::ctrl_c().await;
    };
    tokio::select! {
        served = axum::serve(listener, app) => served?,
        () = stop => println!("shutting down"),
    }
    engine.shutdown(Duration::from_secs(5)).await?;
    Ok(())
}
