//! Two thousand orders, one workflow each, many at a time.
//!
//! ```text
//! cargo run --example checkout               # works the orders off; a few seconds
//! kill -9 $(pgrep -x checkout)               # from another terminal, at any moment
//! cargo run --example checkout -- --verify   # goes on where it was, and counts what was done
//! cargo run --example checkout -- --fresh    # from the beginning
//! ```
//!
//! Each order is reserved; then its payment races a window of time; what was paid is charged, rests for a moment, and is
//! packed and mailed at once (`shop.rs`). Everything the shop does to the world is a line in `effects.log`, outside the
//! store. `--verify` lays that file beside the histories: the effect of every step that was recorded is there exactly
//! once and last. What was cut off between its effect and its record is had again, and shown as "unrecorded".
//!
//! Some lines of the orders file are malformed on purpose, and some orders cannot be had: both are told of, neither
//! stops anything. Ctrl-C ends it politely.
#![expect(clippy::print_stdout, reason = "what the program is for")]

mod args;
mod crash;
mod effects;
mod orders;
mod progress;
mod shop;

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use workflow::store::RunFilter;
use workflow::{Engine, RedbStore};

use args::{Args, USAGE};
use effects::{Count, Effects, Written};
use orders::Order;
use progress::Progress;
use shop::{Outcome, Shop, checkout};

/// How many orders are under way at a time.
const AT_A_TIME: usize = 64;

#[tokio::main]
async fn main() -> Result<ExitCode, Box<dyn Error>> {
    let args = match Args::read(std::env::args().skip(1)) {
        Ok(Some(args)) => args,
        Ok(None) => {
            println!("{USAGE}");
            return Ok(ExitCode::SUCCESS);
        }
        Err(error) => {
            println!("{error}\n{USAGE}");
            return Ok(ExitCode::from(2));
        }
    };
    let began = Instant::now();
    if args.fresh && args.dir.join(EFFECTS).exists() {
        std::fs::remove_dir_all(&args.dir)?;
    }
    std::fs::create_dir_all(&args.dir)?;

    let (orders, malformed) = orders::read(&args.orders)?;
    println!("{} orders in {}", orders.len(), args.orders.display());
    for line in &malformed {
        println!("  line {}: {}", line.line, line.reason);
    }

    let engine = open(&args.dir).await?;
    let (done, under_way) = known(&engine).await?;
    println!("the store is in {}", args.dir.display());
    println!("  {done} orders are done, {under_way} are under way and go on");

    let worked = tokio::select! {
        summary = work(&engine, &orders, done) => Some(summary?),
        _ = tokio::signal::ctrl_c() => None,
    };
    let Some(mut summary) = worked else {
        engine.shutdown(Duration::from_secs(5)).await?;
        println!("stopped; run it again to go on");
        return Ok(ExitCode::from(130));
    };
    summary.malformed = malformed.len();
    summary.print(began.elapsed());

    let mut right = summary.stuck.is_empty();
    if args.verify {
        right &= verify(&engine, &orders, &args.dir).await?;
    } else if done == orders.len() {
        println!("all were done before; --fresh begins anew");
    }
    engine.shutdown(Duration::from_secs(5)).await?;
    Ok(if right {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

const EFFECTS: &str = "effects.log";

async fn open(dir: &Path) -> Result<Engine, Box<dyn Error>> {
    let shop = Shop {
        effects: Arc::new(Effects::open(&dir.join(EFFECTS))?),
    };
    let builder = Engine::builder().workflow(checkout).state(shop);
    let path = dir.join("checkout.redb");
    // Only the crash test sets it.
    let Ok(appends) = std::env::var("CHECKOUT_KILL_AT_COMMIT") else {
        return Ok(builder.open(path).await?);
    };
    let store = crash::Crashing {
        store: RedbStore::open(path)?,
        left: appends.parse::<u64>()?.into(),
    };
    Ok(builder.store(store).build().await?)
}

/// How many orders an earlier process brought to their end, and how many it began.
async fn known(engine: &Engine) -> Result<(usize, usize), workflow::Error> {
    let (mut done, mut under_way) = (0, 0);
    let mut filter = RunFilter::default();
    loop {
        let page = engine.list(&filter).await?;
        let ended = page.rows.iter().filter(|row| row.state.is_final()).count();
        done += ended;
        under_way += page.rows.len() - ended;
        if page.next.is_none() {
            return Ok((done, under_way));
        }
        filter.after = page.next;
    }
}

/// Runs each order to its end, [`AT_A_TIME`] at a time. Orders that were done before are only looked up.
async fn work(engine: &Engine, orders: &[Order], done: usize) -> Result<Summary, Box<dyn Error>> {
    let progress = Progress::new(orders.len(), done);
    let mut summary = Summary::default();
    let mut running = JoinSet::new();
    for order in orders {
        if running.len() == AT_A_TIME
            && let Some(ended) = running.join_next().await
        {
            summary.add(ended?);
            progress.show(summary.orders());
        }
        let (engine, order) = (engine.clone(), order.clone());
        running.spawn(async move {
            let id = order.id.clone();
            let result = engine.run(id.clone(), checkout(order)).await;
            (id, result)
        });
    }
    while let Some(ended) = running.join_next().await {
        summary.add(ended?);
        progress.show(summary.orders());
    }
    progress.finish();
    Ok(summary)
}

/// What became of the orders.
#[derive(Debug, Default)]
struct Summary {
    paid: usize,
    expired: usize,
    refused: usize,
    malformed: usize,
    stuck: Vec<String>,
    cents: u64,
}

impl Summary {
    fn add(&mut self, (id, result): (String, Result<shop::Receipt, workflow::Error>)) {
        match result {
            Ok(receipt) if receipt.outcome == Outcome::Paid => {
                self.paid += 1;
                self.cents += receipt.cents;
            }
            Ok(_) => self.expired += 1,
            Err(workflow::Error::Failed(_)) => self.refused += 1,
            Err(error) => self.stuck.push(format!("{id}: {error}")),
        }
    }

    fn orders(&self) -> usize {
        self.paid + self.expired + self.refused + self.stuck.len()
    }

    fn print(&self, took: Duration) {
        println!();
        println!("  paid       {:>8}", self.paid);
        println!(
            "  expired    {:>8}   nobody paid within the window",
            self.expired
        );
        println!("  refused    {:>8}   sold out", self.refused);
        println!("  malformed  {:>8}   lines of the file", self.malformed);
        println!("  stuck      {:>8}", self.stuck.len());
        println!(
            "  taken      {:>8}.{:02}",
            self.cents / 100,
            self.cents % 100
        );
        println!("  in         {:>8.1} s", took.as_secs_f64());
        for stuck in &self.stuck {
            println!("  {stuck}");
        }
    }
}

/// Lays the effects file beside the histories. False when they disagree.
async fn verify(engine: &Engine, orders: &[Order], dir: &Path) -> Result<bool, Box<dyn Error>> {
    let written = Written::read(&dir.join(EFFECTS))?;
    let mut count = Count::default();
    let mut open = 0;
    for order in orders {
        let run = engine.attach::<checkout>(&order.id).await?;
        open += usize::from(!run.status().await?.state.is_final());
        written.compare(&order.id, &run.history().await?, &mut count);
    }
    println!();
    println!("  effects in the file     {:>8}", written.lines());
    println!(
        "  steps recorded          {:>8}   each effect there once, and never again",
        count.recorded
    );
    println!(
        "  effects unrecorded      {:>8}   cut off before their record, then had again or given up",
        written.lines().saturating_sub(count.recorded)
    );
    println!("  orders not at their end {open:>8}");
    println!("  wrong                   {:>8}", count.wrong.len());
    for wrong in &count.wrong {
        println!("  {wrong}: its recorded effect is missing, double, or was had again");
    }
    Ok(open == 0 && count.wrong.is_empty())
}
