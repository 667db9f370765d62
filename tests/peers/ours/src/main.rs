//! The library as one peer of a benchmark: a binary that does one scenario and prints one line of figures, so that a
//! runner can interleave it with other engines' binaries of the same protocol.
//!
//! ```text
//! ours seq DIR STEPS          one run of STEPS trivial steps on a fresh store     secs
//! ours conc DIR RUNS STEPS    RUNS runs of STEPS trivial steps, all at once       secs
//! ours lat DIR RUNS STEPS     as conc: a step as its workflow sees it, and how late a 1 ms ticker beside the engine wakes (us)
//!                                                                                 secs p50 p99 tick50 tick99 tickmax
//! ours fill DIR STEPS         leaves one run with STEPS recorded steps, unfinished (dies by SIGKILL)
//! ours resume DIR             brings the run left by `fill` to its end            open_secs secs
//! ours park DIR RUNS          RUNS runs: one step, then a sleep of an hour        secs bytes_each
//! ours unpark DIR RUNS        opens the store left by `park`                      secs bytes_each
//! ours crash DIR RUNS STEPS   as conc; steps log to DIR/effects; prints STARTED; the runner kills it
//! ours recover DIR RUNS STEPS finishes what `crash` left                          secs workflows
//! ```
//!
//! The line is `RESULT key=value ..`. Each scenario wants an empty DIR, but for those that go on with another's.

mod protocol;

use std::time::{Duration, Instant};

use protocol::{Args, die_if_armed, effect, result, step_begins, step_ended};
use workflow::{Engine, Failure, sleep, step, workflow};

type Outcome = Result<(), Box<dyn std::error::Error + Send + Sync>>;

#[step]
async fn one(run: u64, i: u64) -> u64 {
    effect(run, i)
}

#[workflow]
async fn steps(run: u64, n: u64, then_die: bool) -> Result<u64, Failure> {
    let mut sum = 0;
    'all: for i in 0..n {
        let since = step_begins();
        sum += one(run, i).await?;
        step_ended(since);
    }
    if then_die {
        die_if_armed();
    }
    Ok(sum)
}

#[workflow]
async fn sleeper(run: u64) -> Result<u64, Failure> {
    let x = one(run, 0).await?;
    sleep!(nap, "1h").await;
    Ok(x)
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Outcome {
    let Some(args) = Args::read() else {
        return Err("usage: ours SCENARIO DIR [A [B]]".into());
    };
    match args.scenario.as_str() {
        "seq" => seq(&args).await,
        "conc" => conc(&args).await,
        "lat" => lat(&args).await,
        "fill" => fill(&args).await,
        "resume" => resume(&args).await,
        "park" => park(&args).await,
        "unpark" => unpark(&args).await,
        "crash" => crash(&args).await,
        "recover" => recover(&args).await,
        other => Err(format!("no scenario `{other}`").into()),
    }
}

async fn seq(args: &Args) -> Outcome {
    let engine = open(args).await?;
    engine.run("warm", steps(0, 5, false)).await?;
    let since = Instant::now();
    engine.run("1", steps(1, args.a, false)).await?;
    result(&[("secs", since.elapsed().as_secs_f64())]);
    Ok(())
}

async fn conc(args: &Args) -> Outcome {
    let engine = open(args).await?;
    engine.run("warm", steps(0, 5, false)).await?;
    let secs = crowd(&engine, args).await?;
    result(&[("secs", secs)]);
    Ok(())
}

async fn lat(args: &Args) -> Outcome {
    protocol::time_steps();
    tokio::spawn(async {
        let wait = Duration::from_millis(1);
        loop {
            let since = Instant::now();
            tokio::time::sleep(wait).await;
            protocol::tick(since.elapsed().saturating_sub(wait));
        }
    });
    let engine = open(args).await?;
    let secs = crowd(&engine, args).await?;
    protocol::latencies(secs);
    leave()
}

async fn fill(args: &Args) -> Outcome {
    protocol::arm();
    let engine = open(args).await?;
    engine.run("fill", steps(0, args.a, true)).await?;
    Err("the run outlived its process".into())
}

async fn resume(args: &Args) -> Outcome {
    let since = Instant::now();
    let engine = open(args).await?;
    let open_secs = since.elapsed().as_secs_f64();
    let since = Instant::now();
    engine.attach::<steps>("fill").await?.result().await?;
    let secs = since.elapsed().as_secs_f64();
    assert_eq!(protocol::executed(), 0, "a recorded step ran again");
    result(&[("open_secs", open_secs), ("secs", secs)]);
    Ok(())
}

async fn park(args: &Args) -> Outcome {
    let engine = open(args).await?;
    let before = protocol::anonymous_bytes();
    let since = Instant::now();
    let starts: Vec<_> = (0..args.a)
        .map(|run| {
            let engine = engine.clone();
            tokio::spawn(async move { engine.start(run.to_string(), sleeper(run)).await.map(drop) })
        })
        .collect();
    for start in starts {
        start.await??;
    }
    while engine.in_memory() > 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let secs = since.elapsed().as_secs_f64();
    memory(secs, before, args.a)
}

async fn unpark(args: &Args) -> Outcome {
    let before = protocol::anonymous_bytes();
    let since = Instant::now();
    let _engine = open(args).await?;
    let secs = since.elapsed().as_secs_f64();
    memory(secs, before, args.a)
}

async fn crash(args: &Args) -> Outcome {
    args.log_effects();
    let engine = open(args).await?;
    let starts: Vec<_> = (0..args.a)
        .map(|run| {
            let (engine, n) = (engine.clone(), args.b);
            tokio::spawn(async move { engine.start(run.to_string(), steps(run, n, false)).await })
        })
        .collect();
    let mut handles = Vec::new();
    for start in starts {
        handles.push(start.await??);
    }
    protocol::say("STARTED");
    for handle in handles {
        handle.result().await?;
    }
    Ok(())
}

async fn recover(args: &Args) -> Outcome {
    args.log_effects();
    let since = Instant::now();
    let engine = open(args).await?;
    let mut found = 0.0;
    for run in 0..args.a {
        // The kill may have come before this run was started.
        if let Ok(handle) = engine.attach::<steps>(run.to_string()).await {
            handle.result().await?;
            found += 1.0;
        }
    }
    result(&[
        ("secs", since.elapsed().as_secs_f64()),
        ("workflows", found),
    ]);
    Ok(())
}

async fn open(args: &Args) -> Result<Engine, Box<dyn std::error::Error + Send + Sync>> {
    Ok(Engine::builder()
        .workflow(steps)
        .workflow(sleeper)
        .open(args.dir.join("w.redb"))
        .await?)
}

/// Runs `a` runs of `b` steps, all at once; seconds from the first start to the last end.
async fn crowd(
    engine: &Engine,
    args: &Args,
) -> Result<f64, Box<dyn std::error::Error + Send + Sync>> {
    let since = Instant::now();
    let runs: Vec<_> = (0..args.a)
        .map(|run| {
            let (engine, n) = (engine.clone(), args.b);
            tokio::spawn(async move { engine.run(run.to_string(), steps(run, n, false)).await })
        })
        .collect();
    protocol::say("STARTED");
    for run in runs {
        run.await??;
    }
    Ok(since.elapsed().as_secs_f64())
}

fn memory(secs: f64, before: f64, runs: u64) -> Outcome {
    #[allow(clippy::cast_precision_loss)]
    let each = (protocol::anonymous_bytes() - before) / runs.max(1) as f64;
    result(&[("secs", secs), ("bytes_each", each)]);
    leave()
}

/// Leaves at once: no scenario that calls this is about closing.
fn leave() -> Outcome {
    std::process::exit(0)
}
