//! An order and its parcels, each a workflow of its own. `cargo run --example child`.
//!
//! ```text
//! cargo run --example child                   # two orders; the second is cancelled by its customer
//! kill -9 $(pgrep -x child)                   # from another terminal, while it works
//! cargo run --example child                   # goes on where it was
//! ```
//!
//! Awaiting a workflow in a workflow starts a child run, with a history of its own, and an id made of its parent's and the place
//! where it is called: `order-1/parcels[tea]/parcel`. The parent waits for what it gives. A child's failure is a failure that the
//! parent can handle: a parcel that cannot be packed is left out of the bill, the rest is sent. When an order is
//! cancelled, so are the parcels that it waits for.
//!
//! `.detach()` starts a child and does not wait: the customer is asked for a review long after the order has ended,
//! also when it was cancelled. It is given an id of its own.
//!
//! The history is in a file (`DATA` says where) that is removed when all is done.
#![expect(clippy::print_stdout, reason = "what the program is for")]

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use workflow::store::RunFilter;
use workflow::{Engine, Failure, current_step, join_all, sleep, step, workflow};

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Order {
    id: String,
    customer: String,
    items: Vec<String>,
}

/// A bill: what was sent, and what could not be.
#[derive(Debug, Serialize, Deserialize)]
struct Bill {
    sent: Vec<String>,
    missing: Vec<String>,
}

#[derive(Debug, thiserror::Error)]
#[error("there is no {0} on the shelf")]
struct NotThere(String);

/// Something the shop does: here, a line.
fn done(what: &str) {
    println!("  {}: {what}", current_step().run_id());
}

#[step(retries = 1, backoff(fixed, wait = "50ms"))]
async fn pack(item: &str) -> Result<(), NotThere> {
    if item == "unicorn" {
        return Err(NotThere(item.to_owned()));
    }
    done(&format!("packed {item}"));
    Ok(())
}

#[step]
async fn hand_over(item: &str) -> String {
    done(&format!("handed {item} to the carrier"));
    format!("{item} by carrier")
}

#[step]
async fn ask_for_review(customer: &str) {
    done(&format!("dear {customer}, how did you like it?"));
}

#[workflow]
async fn parcel(item: String) -> Result<String, Failure> {
    pack(&item).await?;
    sleep!(pick_up, "400ms").await;
    hand_over(&item).await
}

#[workflow]
async fn review(customer: String) -> Result<(), Failure> {
    sleep!(let_them_try_it, "1500ms").await;
    ask_for_review(&customer).await
}

#[workflow]
async fn order(order: Order) -> Result<Bill, Failure> {
    review(order.customer.clone())
        .id(format!("review-{}", order.id))
        .detach()
        .await?;
    let parcels = join_all!(
        parcels,
        limit = 2,
        key = item,
        for item in order.items {
            // Its failure is data here.
            match parcel(item.clone()).await {
                Ok(sent) => Ok(sent),
                Err(failure) => Err(format!("{item} ({})", failure.message())),
            }
        }
    )
    .await?;
    let mut bill = Bill {
        sent: Vec::new(),
        missing: Vec::new(),
    };
    for parcel in parcels {
        match parcel {
            Ok(sent) => bill.sent.push(sent),
            Err(missing) => bill.missing.push(missing),
        }
    }
    Ok(bill)
}

fn an_order(id: &str, customer: &str, items: &[&str]) -> Order {
    Order {
        id: id.to_owned(),
        customer: customer.to_owned(),
        items: items.iter().map(ToString::to_string).collect(),
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let data = std::env::var_os("DATA").map_or_else(
        || std::env::temp_dir().join("workflow-child.redb"),
        PathBuf::from,
    );
    let engine = Engine::builder()
        .workflow(order)
        .workflow(parcel)
        .workflow(review)
        .open(&data)
        .await?;
    let worked = tokio::select! {
        worked = work(&engine) => Some(worked?),
        _ = tokio::signal::ctrl_c() => None,
    };
    engine.shutdown(Duration::from_secs(5)).await?;
    if worked.is_none() {
        println!("stopped; run it again to go on");
        return Ok(());
    }
    remove(&data)
}

async fn work(engine: &Engine) -> Result<(), workflow::Error> {
    let ada = an_order("1", "Ada", &["tea", "unicorn", "mug", "lamp"]);
    let alan = an_order("2", "Alan", &["chair", "clock", "print"]);
    let first = engine.start("order-1", order(ada)).await?;
    let second = engine.start("order-2", order(alan)).await?;

    // Alan thinks better of it. An earlier process may have told so already.
    tokio::time::sleep(Duration::from_millis(200)).await;
    match second.cancel().await {
        Ok(()) => println!("  order-2 is cancelled"),
        Err(error) => println!("  {error}"),
    }

    let bill = first.result().await?;
    println!(
        "order-1: sent {}; missing {}",
        bill.sent.join(", "),
        bill.missing.join(", ")
    );
    match second.result().await {
        Ok(bill) => println!("order-2: sent {}", bill.sent.join(", ")),
        Err(error) => println!("order-2: {error}"),
    }

    // The reviews are nobody's children any more.
    for id in ["review-1", "review-2"] {
        engine.attach::<review>(id).await?.result().await?;
    }
    println!("all runs:");
    for row in engine.list(&RunFilter::default()).await?.rows {
        println!("  {:<32} {}", row.id.to_string(), row.state);
    }
    Ok(())
}

fn remove(data: &Path) -> Result<(), Box<dyn std::error::Error>> {
    std::fs::remove_file(data)?;
    Ok(())
}
