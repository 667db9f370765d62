//! What a run publishes of how far it has come.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use workflow::{Engine, Error, Failure, progress, sleep, step, workflow};
use workflow_tests::{Counter, World, pass};

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Done {
    of: u32,
    done: u32,
}

#[step(timeout = "none")]
async fn ship(calls: &Counter, millis: u64) -> u32 {
    pass(millis).await;
    u32::try_from(calls.hit()).unwrap()
}

#[workflow]
async fn shipping(of: u32, #[state] calls: Counter) -> Result<u32, Failure> {
    let mut done = 0;
    'items: for _ in 0..of {
        progress!(Done { of, done });
        done = ship(&calls, 1_000).await?;
    }
    progress!(Done { of, done });
    sleep!(rest, "1h").await;
    Ok(done)
}

struct Unwritable;

impl Serialize for Unwritable {
    fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        Err(serde::ser::Error::custom("no"))
    }
}

#[workflow]
async fn odd(#[state] calls: Counter) -> Result<u32, Failure> {
    progress!("fine");
    progress!(Unwritable);
    progress!("x".repeat(5_000));
    ship(&calls, 1).await
}

async fn engine(world: &World, calls: &Counter) -> Engine {
    let builder = world.engine().state(calls.clone()).payload_limit(1_000);
    let builder = builder.workflow(shipping).workflow(odd);
    builder.build().await.unwrap()
}

async fn stored(world: &World, run: &str) -> Option<String> {
    use workflow::store::Store;
    let id = workflow::RunId::new(run).unwrap();
    world.store.find(&id).await.unwrap().unwrap().progress
}

// M16
#[tokio::test(start_paused = true)]
async fn progress_is_seen_at_once_and_stored_with_the_next_commit() {
    let (world, calls) = (World::new(), Counter::default());
    let engine = engine(&world, &calls).await;
    let run = engine.start("a", shipping(2)).await.unwrap();
    pass(500).await;
    assert_eq!(run.progress().await.unwrap(), Some(Done { of: 2, done: 0 }));
    assert_eq!(stored(&world, "a").await, None);
    pass(1_000).await;
    assert_eq!(run.progress().await.unwrap(), Some(Done { of: 2, done: 1 }));
    assert_eq!(
        stored(&world, "a").await.as_deref(),
        Some(r#"{"of":2,"done":0}"#)
    );
    assert!(matches!(
        run.progress::<u32>().await,
        Err(Error::Progress { .. })
    ));

    // In the sleep, and after the end, it is the store that tells.
    pass(2_000).await;
    assert_eq!(engine.in_memory(), 0);
    assert_eq!(run.progress().await.unwrap(), Some(Done { of: 2, done: 2 }));
    assert_eq!(run.result().await.unwrap(), 2);
    assert_eq!(
        run.status().await.unwrap().progress.as_deref(),
        Some(r#"{"of":2,"done":2}"#)
    );
}

// M16
#[tokio::test(start_paused = true)]
async fn a_replay_publishes_only_what_the_crash_took() {
    let (world, calls) = (World::new(), Counter::default());
    let engine = engine(&world, &calls).await;
    let run = engine.start("a", shipping(3)).await.unwrap();
    pass(2_500).await;
    // Two are done; that was published, and not stored.
    let world = world.crash();
    drop((run, engine));
    assert_eq!(
        stored(&world, "a").await.as_deref(),
        Some(r#"{"of":3,"done":1}"#)
    );
    let engine = self::engine(&world, &calls).await;
    let run = engine.attach::<shipping>("a").await.unwrap();
    pass(10).await;
    assert_eq!(run.progress().await.unwrap(), Some(Done { of: 3, done: 2 }));
    assert_eq!(calls.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_evicted_run_leaves_its_progress_behind() {
    let (world, calls) = (World::new(), Counter::default());
    let engine = engine(&world, &calls).await;
    let run = engine.start("a", shipping(3)).await.unwrap();
    pass(1_500).await;
    assert!(run.evict(Duration::ZERO));
    pass(10).await;
    assert_eq!(engine.in_memory(), 0);
    assert_eq!(run.progress().await.unwrap(), Some(Done { of: 3, done: 1 }));
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_written_is_passed_over() {
    let (world, calls) = (World::new(), Counter::default());
    let engine = engine(&world, &calls).await;
    let run = engine.start("a", odd()).await.unwrap();
    assert_eq!(run.result().await.unwrap(), 1);
    assert_eq!(run.progress().await.unwrap(), Some("fine".to_owned()));
}
