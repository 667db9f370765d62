//! The main job: two thousand orders, one durable workflow each, many at a time.
//!
//!     cargo run --example checkout               runs every order of the file; goes on where it was when it was killed
//!     cargo run --example checkout -- --verify   and checks every effect against the store at the end
//!     cargo run --example checkout -- --fresh    begins anew
//!
//! Kill it with `kill -9` at any moment and run it again: it says what it resumed and goes on. Ctrl-C shuts down cleanly.
//!
//! Other options: `--dir PATH` (where the store and the effects file are; a folder under the system's temporary
//! directory by default), `--orders PATH` (another orders file).
//!
//! `flow.rs` is the workflow; `effects.rs` is the world outside, a file with a line per effect; `verify.rs` compares.
#![allow(clippy::print_stdout, reason = "an example talks")]
#![allow(
    missing_docs,
    unreachable_pub,
    missing_debug_implementations,
    reason = "nobody depends on an example"
)]

mod effects;
mod flow;
mod orders;
mod verify;

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use tokio::task::JoinSet;
use workflow::{Engine, Error, StartError};

use crate::effects::World;
use crate::flow::{Receipt, checkout};

struct Options {
    dir: PathBuf,
    orders: PathBuf,
    fresh: bool,
    verify: bool,
}

impl Options {
    fn read() -> Result<Self, String> {
        let mut options = Self {
            dir: std::env::temp_dir().join("workflow-checkout"),
            orders: PathBuf::from(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/checkout/orders.jsonl"
            )),
            fresh: false,
            verify: false,
        };
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            let mut path = || {
                words
                    .next()
                    .map(PathBuf::from)
                    .ok_or(format!("`{word}` needs a path"))
            };
            match word.as_str() {
                "--dir" => options.dir = path()?,
                "--orders" => options.orders = path()?,
                "--fresh" => options.fresh = true,
                "--verify" => options.verify = true,
                _ => {
                    return Err(format!(
                        "unknown option `{word}`; known: --dir PATH, --orders PATH, --fresh, --verify"
                    ));
                }
            }
        }
        Ok(options)
    }
}

/// How the orders came out.
#[derive(Default)]
struct Tally {
    shipped: usize,
    expired: usize,
    failed: usize,
    interrupted: usize,
}

impl Tally {
    fn count(&mut self, outcome: Result<Receipt, Error>) -> Result<(), Error> {
        match outcome {
            Ok(Receipt::Shipped { .. }) => self.shipped += 1,
            Ok(Receipt::Expired) => self.expired += 1,
            Err(Error::Failed(_)) => self.failed += 1,
            Err(Error::ShutDown(_) | Error::Start(StartError::ShuttingDown)) => {
                self.interrupted += 1;
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    let options = match Options::read() {
        Ok(options) => options,
        Err(why) => {
            println!("{why}");
            return ExitCode::from(2);
        }
    };
    match run(&options).await {
        Ok(code) => code,
        Err(error) => {
            println!("{error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(options: &Options) -> Result<ExitCode, Box<dyn std::error::Error>> {
    if options.fresh && options.dir.exists() {
        std::fs::remove_dir_all(&options.dir)?;
    }
    std::fs::create_dir_all(&options.dir)?;
    let (orders, malformed) = orders::read(&options.orders)?;
    println!(
        "{} orders, {} lines that are none:",
        orders.len(),
        malformed.len()
    );
    for line in malformed.iter().take(3) {
        println!("  line {}: {}", line.line, line.why);
    }
    if malformed.len() > 3 {
        println!("  .. and {} more", malformed.len() - 3);
    }

    let effects_file = options.dir.join("effects.log");
    let world = World::open(&effects_file)?;
    let engine = Engine::builder()
        .workflow(checkout)
        .state(world)
        .open(options.dir.join("checkout.redb"))
        .await?;
    resumed(&engine).await?;

    let total = u64::try_from(orders.len())?;
    let began = Instant::now();
    let progress = Progress::new(total);
    let mut running = JoinSet::new();
    for order in orders {
        let engine = engine.clone();
        running.spawn(async move { engine.run(order.id.clone(), checkout(order)).await });
    }
    let mut tally = Tally::default();
    let mut stopping = false;
    loop {
        tokio::select! {
            ended = running.join_next() => match ended {
                Some(ended) => {
                    tally.count(ended?)?;
                    progress.step();
                }
                None => break,
            },
            _ = tokio::signal::ctrl_c(), if !stopping => {
                stopping = true;
                progress.say("shutting down; run it again to go on");
                let engine = engine.clone();
                tokio::spawn(async move { engine.shutdown(Duration::from_secs(5)).await });
            }
        }
    }
    progress.finish();

    let took = began.elapsed();
    println!("\n  shipped      {:>6}", tally.shipped);
    println!("  expired      {:>6}", tally.expired);
    println!("  failed       {:>6}   (sold out)", tally.failed);
    println!("  to go on     {:>6}", tally.interrupted);
    println!("  took         {took:>6.1?}\n");
    if stopping {
        return Ok(ExitCode::SUCCESS);
    }
    let mut fine = true;
    if options.verify {
        let verdict = verify::verify(&engine, &effects_file).await?;
        println!(
            "{} recorded effects, each exactly once; {} more were cut off before they were recorded",
            verdict.recorded, verdict.unrecorded
        );
        println!("runs by state: {:?}", verdict.states);
        for wrong in verdict.wrong.iter().take(20) {
            println!("WRONG: {wrong}");
        }
        fine = verdict.wrong.is_empty();
        println!("{}", if fine { "verified" } else { "NOT verified" });
    }
    engine.shutdown(Duration::from_secs(5)).await?;
    Ok(if fine {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Says what an earlier run of this program left behind.
async fn resumed(engine: &Engine) -> Result<(), Error> {
    let mut filter = workflow::store::RunFilter {
        limit: 1_000,
        ..Default::default()
    };
    let (mut over, mut open) = (0usize, 0usize);
    loop {
        let page = engine.list(&filter).await?;
        over += page.rows.iter().filter(|row| row.state.is_final()).count();
        open += page.rows.iter().filter(|row| !row.state.is_final()).count();
        let Some(next) = page.next else { break };
        filter.after = Some(next);
    }
    if over + open > 0 {
        println!("resumed: {over} orders were done, {open} were under way and go on");
    }
    Ok(())
}

/// A bar on a terminal, plain lines elsewhere.
struct Progress {
    bar: Option<ProgressBar>,
    done: std::cell::Cell<u64>,
    total: u64,
}

impl Progress {
    fn new(total: u64) -> Self {
        let style =
            ProgressStyle::with_template("  {bar:40} {pos}/{len} orders, {per_sec}, {eta} left");
        let bar = io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(total);
            match style {
                Ok(style) => bar.with_style(style),
                Err(_) => bar,
            }
        });
        Self {
            bar,
            done: std::cell::Cell::new(0),
            total,
        }
    }

    fn step(&self) {
        let done = self.done.get() + 1;
        self.done.set(done);
        match &self.bar {
            Some(bar) => bar.inc(1),
            None if done.is_multiple_of(500) => println!("  {done} of {} orders", self.total),
            None => {}
        }
    }

    fn say(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.println(text),
            None => println!("{text}"),
        }
    }

    fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish();
        }
    }
}
