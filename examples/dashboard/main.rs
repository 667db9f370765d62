//! A shop with a dashboard that has something to show. `cargo run --example dashboard`, then open the address that it prints.
//!
//! ```text
//! PORT=8080 DATA=/tmp/shop.redb RUNS=100000 cargo run --release --example dashboard
//! ```
//!
//! An empty store is filled first: orders that wait, that are retried and that failed, a trip that was undone, one that is parked since
//! the code changed under it, a person in the middle of signing up; and `RUNS` small ones that are over. At `/dashboard` everything may
//! be done, at `/look` nothing may be changed. It is for this machine only: whoever reaches it may do everything.
#![expect(clippy::print_stdout, reason = "the log of a small service")]

mod shop;

use std::path::{Path, PathBuf};
use std::time::Duration;

use axum::Router;
use axum::response::Redirect;
use axum::routing::get;
use shop::{delivery, later, order, signup, tick, trip};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use workflow::guided::Flow;
use workflow::http::{Policy, router};
use workflow::{Engine, dashboard};

type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

#[tokio::main]
async fn main() -> Outcome<()> {
    let port = std::env::var("PORT").map_or(Ok(8080), |port| port.parse())?;
    let small = std::env::var("RUNS").map_or(Ok(200), |runs| runs.parse())?;
    let data = std::env::var_os("DATA").map_or_else(
        || std::env::temp_dir().join("workflow-dashboard.redb"),
        PathBuf::from,
    );
    let flow = signup()?;
    yesterday(&data).await?;
    let engine = open(&data, &flow).await?;
    fill(&engine, &flow, small).await?;

    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    println!(
        "listening on {}, keeping runs in {}",
        listener.local_addr()?,
        data.display()
    );
    println!(
        "the dashboard is at http://{}/dashboard",
        listener.local_addr()?
    );
    let told = engine.clone();
    axum::serve(listener, app(engine, &flow))
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

fn app(engine: Engine, flow: &Flow<shop::Person>) -> Router {
    let api = router(engine.clone())
        .policy(Policy::open())
        .channel(&shop::PAYMENT)
        .channel(&shop::QUESTION)
        .guided(flow);
    Router::new()
        .route("/", get(|| async { Redirect::temporary("/dashboard") }))
        .nest_service("/dashboard", dashboard::router(api))
        .nest_service("/look", dashboard::router(engine))
}

async fn open(data: &Path, flow: &Flow<shop::Person>) -> Outcome<Engine> {
    let engine = Engine::builder()
        .workflow(order)
        .workflow(trip)
        .workflow(later)
        .workflow(tick)
        .workflow(delivery)
        .guided(flow);
    Ok(engine.open(data).await?)
}

/// What the program of yesterday left: a delivery that waits for its courier.
async fn yesterday(data: &Path) -> Outcome<()> {
    let engine = Engine::builder().workflow(shop::before::delivery);
    let engine = engine.open(data).await?;
    if engine.census().await?.counts.is_empty() {
        engine
            .start("delivery-7", shop::before::delivery("a lamp".to_owned()))
            .await?;
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    engine.shutdown(Duration::from_secs(5)).await?;
    Ok(())
}

/// Starts what there is to be seen, if it is not there yet.
async fn fill(engine: &Engine, flow: &Flow<shop::Person>, small: usize) -> Outcome<()> {
    let runs: u64 = engine
        .census()
        .await?
        .counts
        .iter()
        .map(|count| count.runs)
        .sum();
    if runs > 1 {
        return Ok(());
    }
    let mut under_way = JoinSet::new();
    for number in 0..small {
        if under_way.len() >= 256 {
            under_way.join_next().await;
        }
        let engine = engine.clone();
        under_way.spawn(async move { engine.start(format!("tick-{number}"), tick(number)).await });
    }
    while let Some(started) = under_way.join_next().await {
        started??;
    }
    for (number, item) in ["tea", "mug", "stone", "lamp"].into_iter().enumerate() {
        engine
            .start(format!("order-{}", number + 1), order(item.to_owned(), 690))
            .await?;
    }
    engine.start("trip-1", trip("Lisbon".to_owned())).await?;
    engine
        .start("reminder-1", later("water the plants".to_owned()))
        .await?;
    // Its history is compared with the code of today when it goes on: now, and not only when its courier is due.
    engine.resume("delivery-7").await?;
    let guide = engine
        .guided(flow, "ann")
        .start(shop::Person::default())
        .await?;
    guide.next().await.ok();
    Ok(())
}
