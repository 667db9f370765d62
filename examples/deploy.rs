//! What a deploy asks before it lets a new program at the store: do all runs that are under way go on with it?
//!
//! ```text
//! cargo run --example deploy -- start 2000        # orders of the program of today; each waits for its parcel
//! cargo run --example deploy -- preflight renamed # a new program with a mistake: says which runs it would stop; exit code 2
//! cargo run --example deploy -- preflight gated   # the same change, made so that runs under way go on: exit code 0
//! cargo run --example deploy -- clean             # removes the file
//! ```
//!
//! A real program has one of these: `preflight` is a word on its command line, and the job that deploys it runs it between stopping the old
//! program and starting the new one, on the file itself, or earlier on a copy that was taken while nothing ran. No run goes
//! on meanwhile, nothing is written, and no step is run: the states that the workflows get may as well be empty.
//!
//! The store is a file (`DATA` says where).
#![expect(clippy::print_stdout, reason = "what the program is for")]

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use workflow::{
    Engine, Error, Failure, PreflightProgress, RedbStore, sleep, step, version, workflow,
};

/// A shop. What it is connected to matters to steps only.
#[derive(Clone)]
struct Shop;

#[step]
async fn reserve(_shop: &Shop, item: &str) -> usize {
    item.len()
}

#[step]
async fn pack(_shop: &Shop, item: &str) -> String {
    format!("a parcel with {item}")
}

#[step]
async fn weigh(parcel: &str) -> usize {
    parcel.len()
}

/// The program of today.
mod today {
    use super::{Failure, Shop, pack, reserve, sleep, workflow};

    #[workflow(name = "order", shared_name)]
    pub(crate) async fn order(item: String, #[state] shop: Shop) -> Result<String, Failure> {
        reserve(&shop, &item).await?;
        let parcel = pack(&shop, &item).await?;
        sleep!(pick_up, "12h").await;
        Ok(parcel)
    }
}

/// A new one: parcels are weighed. For runs under way that is a step where none was, and a wait has another name.
mod renamed {
    use super::{Failure, Shop, pack, reserve, sleep, weigh, workflow};

    #[workflow(name = "order", shared_name)]
    pub(crate) async fn order(item: String, #[state] shop: Shop) -> Result<String, Failure> {
        reserve(&shop, &item).await?;
        let parcel = pack(&shop, &item).await?;
        weigh(&parcel).await?;
        sleep!(collected, "12h").await;
        Ok(parcel)
    }
}

/// The same, so that both kinds of runs go on.
mod gated {
    use super::{Failure, Shop, pack, reserve, sleep, version, weigh, workflow};

    #[workflow(name = "order", shared_name)]
    pub(crate) async fn order(item: String, #[state] shop: Shop) -> Result<String, Failure> {
        reserve(&shop, &item).await?;
        let parcel = pack(&shop, &item).await?;
        if version!(weighing, 2).await >= 2 {
            weigh(&parcel).await?;
        }
        sleep!(pick_up, "12h").await;
        Ok(parcel)
    }
}

#[tokio::main]
async fn main() -> Result<ExitCode, Error> {
    let words: Vec<_> = std::env::args().skip(1).collect();
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    let data = std::env::var_os("DATA").map_or_else(|| "deploy.redb".into(), PathBuf::from);
    match words[..] {
        ["start"] => start(data, 2_000).await,
        ["start", orders] => start(data, orders.parse().unwrap_or(2_000)).await,
        ["preflight", code @ ("renamed" | "gated")] => preflight(data, code).await,
        ["clean"] => {
            // Nothing to remove is as good.
            let _ = std::fs::remove_file(data);
            Ok(ExitCode::SUCCESS)
        }
        _ => {
            println!("start [ORDERS] | preflight renamed | preflight gated | clean");
            Ok(ExitCode::FAILURE)
        }
    }
}

async fn start(data: PathBuf, orders: usize) -> Result<ExitCode, Error> {
    let engine = Engine::builder()
        .workflow(today::order)
        .state(Shop)
        .open(data)
        .await?;
    for order in 0..orders {
        engine
            .start(format!("order-{order}"), today::order("a book".to_owned()))
            .await?;
    }
    // Each is as far as it comes for now.
    engine.shutdown(Duration::from_secs(5)).await?;
    println!("{orders} orders are under way");
    Ok(ExitCode::SUCCESS)
}

async fn preflight(data: PathBuf, code: &str) -> Result<ExitCode, Error> {
    let builder = Engine::builder().state(Shop).store(RedbStore::open(data)?);
    let builder = match code {
        "renamed" => builder.workflow(renamed::order),
        _ => builder.workflow(gated::order),
    };
    let bar = bar();
    let shown = bar.clone();
    let told = move |progress: &PreflightProgress| {
        shown.set_length(progress.of);
        shown.set_position(progress.runs);
        shown.set_message(format!("{} would stop", progress.found));
    };
    let report = builder.preflight().on_progress(told).await?;
    bar.finish_and_clear();
    println!("{report}");
    Ok(report.exit_code())
}

/// A bar on a terminal, nothing elsewhere.
fn bar() -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} runs, {msg}");
    let bar = ProgressBar::new(0);
    match style {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
