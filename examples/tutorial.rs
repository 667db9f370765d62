//! The program of the guide's tutorial, as it is at its end. `cargo run --example tutorial`.
#![expect(clippy::print_stdout, reason = "the log of a small service")]

use std::io;

use axum::Router;
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;
use workflow::dashboard;
use workflow::http::{Api, Policy, router};
use workflow::{Channel, Engine, Failure, current_step, recv, sleep, step, version, workflow};

#[derive(Debug, Serialize, Deserialize)]
struct Order {
    item: String,
    cents: u64,
}

#[derive(Debug, Serialize, Deserialize)]
struct Receipt {
    payment: String,
    parcel: String,
}

/// Where the customer says where to send it.
static ADDRESS: Channel<String> = Channel::new("address");

#[step(retries = 5, timeout = "10s")]
async fn charge(cents: u64) -> Result<String, io::Error> {
    println!("charging {cents} cents");
    // A provider charges once for this key, however often it is asked.
    Ok(format!("payment {}", current_step().idempotency_key()))
}

#[step]
async fn check(item: &str) -> Result<(), io::Error> {
    println!("checking that there is {item}");
    Ok(())
}

#[step]
async fn ship(item: &str, address: &str) -> Result<String, io::Error> {
    println!("shipping {item} to {address}");
    Ok(format!("{item}, on its way to {address}"))
}

#[workflow]
async fn order(order: Order) -> Result<Receipt, Failure> {
    if version!(with_check, 2).await >= 2 {
        check(&order.item).await?;
    }
    let payment = charge(order.cents).await?;
    let address = recv!(address, ADDRESS).await?;
    sleep!(packing, "5s").await;
    let parcel = ship(&order.item, &address).await?;
    Ok(Receipt { payment, parcel })
}

/// The engine over HTTP.
fn api(engine: &Engine) -> Api {
    router(engine.clone())
        .policy(Policy::open()) // whoever reaches it may do everything
        .channel(&ADDRESS)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let engine = Engine::builder().workflow(order).open("shop.redb").await?;
    let app = Router::new()
        .nest("/api", api(&engine).into_router())
        .nest_service("/dashboard", dashboard::router(api(&engine)));
    let listener = TcpListener::bind("localhost:8080").await?;
    println!("listening on http://localhost:8080");
    Ok(axum::serve(listener, app).await?)
}

#[test]
fn live_runs_survive_this_code() {
    workflow::lock!();
}
