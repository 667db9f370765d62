//! A cart per user, kept by a workflow that is asked and answers: requests and replies over HTTP.
//!
//! ```text
//! cargo run --example requests
//!
//! curl -sX POST localhost:8080/carts/ada -H 'content-type: application/json' -d '{"sku":"tea","quantity":2}'
//! curl -sX POST localhost:8080/carts/ada -H 'content-type: application/json' -H 'idempotency-key: 7f3a' -d '{"sku":"mug","quantity":1}'
//! curl -s localhost:8080/carts/ada              # what is in it
//! curl -sX POST localhost:8080/carts/ada/order  # orders it, and it is empty again
//! curl -sX DELETE localhost:8080/carts/ada      # closes it: what comes later is told so, with a 409
//! ```
//!
//! There is no table of carts: a cart is a local variable of a loop. The loop carries it, so the run may go on for years and its
//! history stays short, and between requests it costs no memory. Whoever got an answer finds what was answered
//! after any kill -9. A client that got none asks again with the same `idempotency-key`: it is done once, and gets the
//! first answer.
//!
//! `PORT=0` takes any free port, `DATA` says where runs are kept. Ctrl-C or SIGTERM ends it.
#![expect(clippy::print_stdout, reason = "the log of a small service")]

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use workflow::{Channel, Engine, Failure, current_step, recv, step, workflow};

/// What a cart is asked. Each request is answered with the cart as it is then, or a refusal.
static CART: Channel<Ask, Result<Cart, String>> = Channel::new("cart");

#[derive(Debug, Serialize, Deserialize)]
enum Ask {
    Show,
    Add(Item),
    Order,
    Close,
}

#[derive(Debug, Serialize, Deserialize)]
struct Item {
    sku: String,
    quantity: u32,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Cart {
    items: BTreeMap<String, u32>,
    /// The number of the last order.
    ordered: Option<String>,
}

/// The shop takes the key, so that an order cut off before it was recorded is not placed twice.
#[step(retries = 5, timeout = "10s")]
async fn place(user: &str, items: &BTreeMap<String, u32>) -> Result<String, io::Error> {
    let key = current_step().idempotency_key();
    println!("{user} orders {} kinds of things, {key}", items.len());
    tokio::time::sleep(Duration::from_millis(20)).await;
    Ok(format!("order {key}"))
}

/// One user's cart, for as long as it is open.
#[workflow]
async fn cart(user: String) -> Result<(), Failure> {
    let mut cart = Cart::default();
    #[carry(cart)]
    'asked: loop {
        let request = recv!(next, CART).await?;
        let mut refusal = None;
        match request.value() {
            Ask::Show | Ask::Close => {}
            Ask::Add(item) if item.quantity == 0 => {
                refusal = Some(format!("0 of {} is nothing", item.sku));
            }
            Ask::Add(item) => {
                let quantity = cart.items.entry(item.sku.clone()).or_default();
                *quantity = quantity.saturating_add(item.quantity);
            }
            Ask::Order if cart.items.is_empty() => refusal = Some("the cart is empty".to_owned()),
            Ask::Order => {
                cart.ordered = Some(place(&user, &cart.items).await?);
                cart.items.clear();
            }
        }
        let closes = matches!(request.value(), Ask::Close);
        let answer = refusal.map_or_else(|| Ok(cart.clone()), Err);
        request.reply(answer).await?;
        if closes {
            break 'asked;
        }
    }
    Ok(())
}

/// Asks the user's cart. Started before, it is the same run: one that is not there is begun.
async fn ask(
    engine: &Engine,
    user: String,
    headers: &HeaderMap,
    ask: Ask,
) -> Result<Response, workflow::Error> {
    let run = engine.start(format!("cart-{user}"), cart(user)).await?;
    let key = headers.get("idempotency-key").map(|key| key.to_str());
    let answer = match key {
        Some(Ok(key)) => run.request_once(&CART, key, &ask).await?,
        Some(Err(_)) => Err("the idempotency key is not text".to_owned()),
        None => run.request(&CART, &ask).await?,
    };
    Ok(match answer {
        Ok(cart) => Json(cart).into_response(),
        Err(refusal) => (StatusCode::UNPROCESSABLE_ENTITY, refusal).into_response(),
    })
}

type Answer = Result<Response, workflow::Error>;

async fn show(
    State(engine): State<Engine>,
    Path(user): Path<String>,
    headers: HeaderMap,
) -> Answer {
    ask(&engine, user, &headers, Ask::Show).await
}

async fn add(
    State(engine): State<Engine>,
    Path(user): Path<String>,
    headers: HeaderMap,
    Json(item): Json<Item>,
) -> Answer {
    ask(&engine, user, &headers, Ask::Add(item)).await
}

async fn order(
    State(engine): State<Engine>,
    Path(user): Path<String>,
    headers: HeaderMap,
) -> Answer {
    ask(&engine, user, &headers, Ask::Order).await
}

async fn close(
    State(engine): State<Engine>,
    Path(user): Path<String>,
    headers: HeaderMap,
) -> Answer {
    ask(&engine, user, &headers, Ask::Close).await
}

fn router(engine: Engine) -> Router {
    Router::new()
        .route("/carts/{user}", get(show).post(add).delete(close))
        .route("/carts/{user}/order", post(order))
        .with_state(engine)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let port = std::env::var("PORT").map_or(Ok(8080), |port| port.parse())?;
    let data = std::env::var_os("DATA").map_or_else(
        || std::env::temp_dir().join("workflow-requests.redb"),
        PathBuf::from,
    );

    let engine = Engine::builder().workflow(cart).open(&data).await?;
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    println!(
        "listening on {}, keeping carts in {}",
        listener.local_addr()?,
        data.display()
    );

    // The engine goes first: clients that wait for an answer are told at once to come again, and let go.
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
