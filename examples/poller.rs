//! A loop that polls for ever, and listens while it waits. `cargo run --example poller`.
//!
//! ```text
//! cargo run --example poller                  # polls until Ctrl-C; type what it is to do:
//!     every 50ms                              #   poll that often from now on
//!     push late-news                          #   publish this at once; a webhook would send it
//!     stop                                    #   end, with a sum
//! cargo run --example poller -- --for 5s      # leaves after five seconds; the next one goes on
//! kill -9 $(pgrep -x poller)                  # at any moment: the next one goes on
//! ```
//!
//! The loop carries its cursor, its counts and its interval. They are the loop's whole past: a replay begins at the last
//! iteration, older ones are deleted, and the file stays as small as it is after years.
//!
//! While it waits for the next poll it receives messages. A message is taken in the transaction that records that it was, so none is
//! lost and none is taken twice, whenever the process dies. What is published ends with its step's
//! idempotency key: a step that was cut off before it was recorded publishes again, under the same key.
//!
//! The history is in a file (`DATA` says where) that is removed when the poller was told to stop.
#![expect(clippy::print_stdout, reason = "what the program is for")]

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use workflow::{
    Channel, Engine, Failure, RedbStore, RunHandle, current_step, recv, step, workflow,
};

static CONTROL: Channel<Control> = Channel::new("control");

#[derive(Debug, Serialize, Deserialize)]
enum Control {
    Every(Duration),
    Push(String),
    Stop,
}

#[derive(Debug, Serialize, Deserialize)]
struct Page {
    items: Vec<String>,
    next: u64,
}

#[derive(Debug, thiserror::Error)]
#[error("the feed is down")]
struct Down;

#[derive(Debug, Default, Serialize, Deserialize)]
struct Sum {
    polls: u64,
    found: u64,
    pushed: u64,
}

/// Stands for a feed: what is new after the cursor. Now and then it is down, for one attempt or for all.
#[step(retries = 1, backoff(fixed, wait = "20ms"))]
async fn fetch(cursor: u64) -> Result<Page, Down> {
    if cursor % 64 == 21 && current_step().attempt() == 1 {
        return Err(Down);
    }
    let next = cursor + 1 + cursor % 3;
    Ok(Page {
        items: (cursor..next).map(|item| format!("item-{item}")).collect(),
        next,
    })
}

/// Tells the world. A real one would give it the key, so that it can pass over what it has already. A process that is killed
/// meanwhile counts as an attempt, and here many are.
#[step(retries = 50)]
async fn publish(item: &str) {
    println!("published {item} {}", current_step().idempotency_key());
}

#[step]
async fn note(text: &str) {
    println!("  {text}");
}

#[workflow]
async fn poller() -> Result<Sum, Failure> {
    let (mut cursor, mut interval) = (0, Duration::from_millis(500));
    let mut sum = Sum::default();
    #[carry(cursor, interval, sum)]
    'poll: loop {
        sum.polls += 1;
        match fetch(cursor).await {
            Ok(page) => {
                'items: for item in &page.items {
                    #[step(name = "publish_found")]
                    publish(item).await?;
                }
                sum.found += page.next - cursor;
                cursor = page.next;
            }
            // The next poll asks again.
            Err(failure) => note(failure.message()).await?,
        }
        // Up to sixteen at a time; none when the interval is over. Messages bring the next poll forward.
        let told = recv!(listen, CONTROL, count = 16, timeout = interval).await?;
        'told: for control in told {
            match control {
                Control::Every(new) => interval = new,
                Control::Push(item) => {
                    publish(&item).await?;
                    sum.pushed += 1;
                }
                Control::Stop => break 'poll,
            }
        }
    }
    Ok(sum)
}

/// `90s`, `250ms`.
fn duration(text: &str) -> Result<Duration, String> {
    let unread = || format!("{text} is no duration: write 5s, or 250ms");
    let (digits, unit) = text.split_at(text.find(char::is_alphabetic).ok_or_else(unread)?);
    let number = digits.parse().map_err(|_| unread())?;
    match unit {
        "ms" => Ok(Duration::from_millis(number)),
        "s" => Ok(Duration::from_secs(number)),
        _ => Err(unread()),
    }
}

fn control(line: &str) -> Result<Control, String> {
    match line.trim().split_once(' ') {
        Some(("every", interval)) => Ok(Control::Every(duration(interval)?)),
        Some(("push", item)) => Ok(Control::Push(item.to_owned())),
        None if line.trim() == "stop" => Ok(Control::Stop),
        _ => Err("say `every 50ms`, `push NAME` or `stop`".to_owned()),
    }
}

/// The lines that are typed. On a thread of its own, which is left behind when the program ends.
fn lines() -> mpsc::Receiver<String> {
    let (typed, lines) = mpsc::channel(16);
    std::thread::spawn(move || {
        for line in std::io::stdin().lines().map_while(Result::ok) {
            if typed.blocking_send(line).is_err() {
                break;
            }
        }
    });
    lines
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let time = match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => None,
        ["--for", time] => Some(duration(time)?),
        _ => return Err("usage: cargo run --example poller -- [--for 5s]".into()),
    };
    let data = std::env::var_os("DATA").map_or_else(
        || std::env::temp_dir().join("workflow-poller.redb"),
        PathBuf::from,
    );
    // A store tidies up when nothing else happens, or after so many commits. A poller may never rest.
    let store = RedbStore::builder().fold_threshold(1_000).open(&data)?;
    let engine = Engine::builder()
        .workflow(poller)
        .store(store)
        .build()
        .await?;
    let run = engine.start("poller", poller()).await?;
    println!("polling; what is known is in {}", data.display());

    let stopped = tokio::select! {
        sum = run.result() => Some(sum?),
        said = listen(&run) => {
            said?;
            None
        }
        () = async {
            match time {
                Some(time) => tokio::time::sleep(time).await,
                None => std::future::pending().await,
            }
        } => None,
        _ = tokio::signal::ctrl_c() => None,
    };
    let (kept, all) = (run.history().await?.len(), run.status().await?.records);
    engine.shutdown(Duration::from_secs(5)).await?;
    println!("the history has {kept} records; {all} were written");
    match stopped {
        Some(sum) => {
            println!(
                "stopped after {} polls: {} items were found, {} were pushed",
                sum.polls, sum.found, sum.pushed
            );
            std::fs::remove_file(&data)?;
        }
        None => println!("left; run it again to go on"),
    }
    Ok(())
}

/// Sends what is typed, for as long as somebody types.
async fn listen(run: &RunHandle<poller>) -> Result<(), workflow::Error> {
    let mut lines = lines();
    while let Some(line) = lines.recv().await {
        match control(&line) {
            Ok(control) => {
                run.send(&CONTROL, &control).await?;
                // It is in the run's inbox, durably.
                println!("sent {}", line.trim());
            }
            Err(usage) => println!("{usage}"),
        }
    }
    std::future::pending().await
}
