//! Many things at once, eight at a time: a link checker. `cargo run --example fan_out`.
//!
//! ```text
//! cargo run --example fan_out                 # checks 60 links; some are broken
//! kill -9 $(pgrep -x fan_out)                 # from another terminal, while it does
//! cargo run --example fan_out                 # checks those that are left, and reports on all
//! ```
//!
//! `join_all!` makes a branch per link. `limit` says how many are under way at a time, `key` what a branch is
//! called in the history (`check[/docs/7]/fetch`), so a list in another order would still find its results.
//! A link that stays broken after its retries is no reason to stop: its failure is collected, as data. Results come in the
//! order of the input, whichever was there first.
//!
//! The history is in a file (`DATA` says where) that is removed when all is done.
#![expect(clippy::print_stdout, reason = "what the program is for")]

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use workflow::{Engine, Failure, current_step, join_all, step, workflow};

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Link {
    path: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct Checked {
    path: String,
    /// How long its page is, or what is wrong with it.
    page: Result<usize, String>,
}

#[derive(Debug, thiserror::Error)]
enum FetchError {
    #[error("503 service unavailable")]
    Unavailable,
    #[error("404 not found")]
    NotFound,
}

/// Stands for a request to a site: it takes its time, some pages are not there, and some servers are down at first or for ever.
/// A process that is killed meanwhile counts as an attempt.
#[step(
    retries = 4,
    backoff(fixed, wait = "50ms"),
    retry_if(|e: &FetchError| matches!(e, FetchError::Unavailable))
)]
async fn fetch(path: &str) -> Result<usize, FetchError> {
    let attempt = current_step().attempt();
    let number: usize = path
        .trim_start_matches("/docs/")
        .parse()
        .unwrap_or_default();
    tokio::time::sleep(Duration::from_millis(60 + 7 * (number as u64 % 9))).await;
    let page = match number {
        _ if number % 19 == 5 => Err(FetchError::NotFound),
        _ if number % 23 == 7 => Err(FetchError::Unavailable),
        _ if number % 13 == 3 && attempt == 1 => Err(FetchError::Unavailable),
        _ => Ok(1000 + 37 * number),
    };
    match &page {
        Ok(bytes) => println!("  fetched {path}: {bytes} bytes"),
        Err(error) => println!("  attempt {attempt} at {path}: {error}"),
    }
    page
}

#[workflow]
async fn check_links(links: Vec<Link>) -> Result<Vec<Checked>, Failure> {
    join_all!(
        check,
        limit = 8,
        key = link.path,
        for link in links {
            // Without a `?` a failure is a value: it is put into the list, and the other branches never learn of it.
            let fetched = fetch(&link.path).await;
            Checked {
                path: link.path,
                page: fetched.map_err(|failure| failure.message().to_owned()),
            }
        }
    )
    .await
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let data = std::env::var_os("DATA").map_or_else(
        || std::env::temp_dir().join("workflow-fan-out.redb"),
        PathBuf::from,
    );
    let engine = Engine::builder().workflow(check_links).open(&data).await?;
    let links: Vec<Link> = (1..=60)
        .map(|number| Link {
            path: format!("/docs/{number}"),
        })
        .collect();

    let run = engine.start("links", check_links(links)).await?;
    let before = run.history().await?;
    let before = before
        .iter()
        .filter(|record| record.location.to_string().ends_with("/fetch"))
        .count();
    println!(
        "checking 60 links, 8 at a time; {before} attempts were recorded by an earlier process"
    );

    let checked = tokio::select! {
        checked = run.result() => checked?,
        _ = tokio::signal::ctrl_c() => {
            engine.shutdown(Duration::from_secs(5)).await?;
            println!("stopped; run it again to go on");
            return Ok(());
        }
    };
    let (mut pages, mut bytes) = (0, 0);
    println!();
    for Checked { path, page } in &checked {
        match page {
            Ok(length) => {
                pages += 1;
                bytes += length;
            }
            Err(reason) => println!("  broken: {path}: {reason}"),
        }
    }
    println!(
        "{pages} of {} links are good, {bytes} bytes in all",
        checked.len()
    );
    engine.shutdown(Duration::from_secs(5)).await?;
    std::fs::remove_file(&data)?;
    Ok(())
}
