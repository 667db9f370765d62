//! Sleeps: recorded deadlines, in memory and out of it.

use std::time::Duration;

use workflow::{Clock, Engine, Failure, RunState, Timestamp, join_all, sleep, step, workflow};
use workflow_tests::{Counter, SlowStore, World, late, pass};

#[step]
async fn counted(calls: &Counter) -> usize {
    calls.hit()
}

#[workflow]
async fn napping(millis: u64, #[state] calls: Counter) -> Result<String, Failure> {
    counted(&calls).await?;
    sleep!(nap, Duration::from_millis(millis)).await;
    Ok("done".into())
}

#[workflow]
async fn until(at: u64) -> String {
    sleep!(nap, until = Timestamp::from_millis(at as i64)).await;
    "done".into()
}

#[workflow]
async fn long(days: Duration) -> String {
    sleep!(nap, days).await;
    "done".into()
}

#[workflow]
async fn crowd(n: u64) -> Result<u64, Failure> {
    let all = join_all!(
        all,
        for i in 0..n {
            sleep!(nap, Duration::from_millis(1 + i % 50)).await;
            i
        }
    )
    .await?;
    Ok(all.iter().sum())
}

async fn engine(world: &World, calls: &Counter) -> Engine {
    world
        .engine()
        .state(calls.clone())
        .workflow(napping)
        .workflow(until)
        .workflow(long)
        .workflow(crowd)
        .build()
        .await
        .unwrap()
}

// RVT-SLEEP-01 RVT-SLEEP-06 RVT-EVICT-04 RVT-HANDLE-02
#[tokio::test(start_paused = true)]
async fn a_long_sleep_leaves_memory_and_wakes_by_itself() {
    let (world, calls) = (World::new(), Counter::default());
    let engine = engine(&world, &calls).await;
    let start = world.clock().now();
    let run = engine.start("a", napping(10_000)).await.unwrap();
    pass(100).await;
    assert_eq!(engine.in_memory(), 0);
    let status = run.status().await.unwrap();
    assert_eq!(status.state, RunState::Waiting);
    assert_eq!(
        status.wake_at.unwrap().since(start),
        Duration::from_secs(10)
    );
    assert_eq!(run.result().await.unwrap(), "done");
    assert_eq!(world.clock().now().since(start), Duration::from_secs(10));
    assert_eq!(run.status().await.unwrap().wake_at, None);
    assert_eq!(calls.count(), 1);
}

// RVT-SLEEP-02 RVT-SLEEP-05 RVT-ALARM-03
#[tokio::test(start_paused = true)]
async fn a_short_sleep_stays_in_memory() {
    let world = World::new();
    let engine = engine(&world, &Counter::default()).await;
    let run = engine.start("a", napping(500)).await.unwrap();
    pass(100).await;
    assert_eq!(engine.in_memory(), 1);
    assert_eq!(run.result().await.unwrap(), "done");
}

// RVT-SLEEP-03 RVT-FIX-68
#[tokio::test(start_paused = true)]
async fn a_sleep_goes_on_after_a_crash_at_the_same_deadline() {
    let (world, calls) = (World::new(), Counter::default());
    let start = world.clock().now();
    let first = engine(&world, &calls).await;
    first.start("a", napping(20_000)).await.unwrap();
    pass(5_000).await;
    drop(first);
    let world = world.crash();
    let second = engine(&world, &calls).await;
    let run = second.attach::<napping>("a").await.unwrap();
    assert_eq!(run.result().await.unwrap(), "done");
    assert_eq!(world.clock().now().since(start), Duration::from_secs(20));
    assert_eq!(calls.count(), 1);
}

// RVT-SLEEP-04 RVT-SLEEP-09
#[tokio::test(start_paused = true)]
async fn past_and_empty_sleeps_end_at_once() {
    let world = World::new();
    let engine = engine(&world, &Counter::default()).await;
    let start = world.clock().now();
    assert_eq!(engine.run("a", until(999_999)).await.unwrap(), "done");
    assert_eq!(engine.run("b", napping(0)).await.unwrap(), "done");
    assert_eq!(world.clock().now(), start);
}

// RVT-FIX-56
#[tokio::test(start_paused = true)]
async fn the_longest_sleep_saturates_and_the_shortest_is_not_lost() {
    let world = World::new();
    let engine = engine(&world, &Counter::default()).await;
    let run = engine.start("a", long(Duration::MAX)).await.unwrap();
    pass(100).await;
    assert_eq!(run.status().await.unwrap().state, RunState::Waiting);
    run.cancel().await.unwrap();
    let start = world.clock().now();
    engine
        .run("b", long(Duration::from_micros(500)))
        .await
        .unwrap();
    assert_eq!(world.clock().now().since(start), Duration::from_millis(1));
}

mod changed {
    use super::{Failure, sleep, workflow};

    #[workflow]
    pub(super) async fn napping(
        millis: u64,
        #[state] calls: super::Counter,
    ) -> Result<String, Failure> {
        assert_eq!(millis, 20_000);
        super::counted(&calls).await?;
        sleep!(nap, "30d").await;
        Ok("changed".into())
    }
}

// RVT-SLEEP-08 UA-26
#[tokio::test(start_paused = true)]
async fn a_recorded_deadline_holds_whatever_the_code_says_now() {
    let (world, calls) = (World::new(), Counter::default());
    let start = world.clock().now();
    let first = engine(&world, &calls).await;
    first.start("a", napping(20_000)).await.unwrap();
    pass(5_000).await;
    drop(first);
    let world = world.crash();
    let second = world
        .engine()
        .code_id(2)
        .state(calls)
        .workflow(changed::napping)
        .build()
        .await
        .unwrap();
    let run = second.attach::<changed::napping>("a").await.unwrap();
    assert_eq!(run.result().await.unwrap(), "changed");
    assert_eq!(world.clock().now().since(start), Duration::from_secs(20));
}

// RVT-SLEEP-10
#[tokio::test(start_paused = true)]
async fn an_evicted_sleep_ends_promptly_and_keeps_its_deadline() {
    let (world, calls) = (World::new(), Counter::default());
    let start = world.clock().now();
    let engine = world
        .engine()
        .linger(Duration::from_mins(1))
        .state(calls)
        .workflow(napping)
        .build()
        .await
        .unwrap();
    let run = engine.start("a", napping(3_000)).await.unwrap();
    pass(60).await;
    assert_eq!(engine.in_memory(), 1);
    assert!(run.evict(Duration::from_secs(5)));
    pass(1).await;
    assert_eq!(engine.in_memory(), 0);
    assert_eq!(run.result().await.unwrap(), "done");
    assert_eq!(world.clock().now().since(start), Duration::from_secs(3));
}

#[tokio::test(start_paused = true)]
async fn thousands_of_sleeps_all_end_across_crashes() {
    let mut world = World::new();
    let start = world.clock().now();
    let engine_1 = engine(&world, &Counter::default()).await;
    for i in 0..200 {
        engine_1.start(format!("r{i}"), crowd(10)).await.unwrap();
    }
    drop(engine_1);
    for _ in 0..4 {
        pass(9).await;
        world = world.crash();
        drop(engine(&world, &Counter::default()).await);
    }
    world = world.crash();
    let last = engine(&world, &Counter::default()).await;
    for i in 0..200 {
        assert_eq!(last.run(format!("r{i}"), crowd(10)).await.unwrap(), 45);
    }
    assert!(world.clock().now().since(start) <= Duration::from_millis(150));
}

/// An engine whose every append takes 10 ms, and `starts` starts at once of runs that sleep for long.
async fn burst(
    world: &World,
    calls: &Counter,
    starts: usize,
) -> (
    Engine,
    Vec<tokio::task::JoinHandle<Result<(), workflow::StartError>>>,
) {
    let store = SlowStore::over(&world.store);
    late(&store.appends, vec![10; 10 * starts]);
    let engine = Engine::builder()
        .store(store)
        .clock(world.clock())
        .workflow(napping)
        .state(calls.clone())
        .build()
        .await
        .unwrap();
    let starts = (0..starts).map(|i| {
        let engine = engine.clone();
        tokio::spawn(async move {
            let run = engine.start(format!("r{i}"), napping(60_000)).await;
            run.map(drop)
        })
    });
    let starts = starts.collect();
    (engine, starts)
}

#[tokio::test(start_paused = true)]
async fn a_burst_of_runs_that_soon_sleep_is_not_in_memory_at_once() {
    let (world, calls) = (World::new(), Counter::default());
    let (engine, starts) = burst(&world, &calls, 3_000).await;
    let mut most = 0;
    while starts.iter().any(|start| !start.is_finished()) {
        most = most.max(engine.in_memory());
        pass(1).await;
    }
    assert!(most > 100, "they run beside each other: {most}");
    assert!(most < 1_000, "{most} of 3,000 were in memory at once");
    for start in starts {
        start.await.unwrap().unwrap();
    }
    pass(70_000).await;
    assert_eq!(calls.count(), 3_000);
    for i in [0, 1_500, 2_999] {
        let run = engine.attach::<napping>(format!("r{i}")).await.unwrap();
        assert_eq!(run.result().await.unwrap(), "done");
    }
}

#[tokio::test(start_paused = true)]
async fn starts_that_a_shutdown_finds_waiting_are_told() {
    let (world, calls) = (World::new(), Counter::default());
    let (engine, starts) = burst(&world, &calls, 1_000).await;
    pass(5).await;
    engine.shutdown(Duration::from_secs(1)).await.unwrap();
    let mut refused = 0;
    for start in starts {
        match start.await.unwrap() {
            Ok(()) => {}
            Err(workflow::StartError::ShuttingDown) => refused += 1,
            Err(other) => panic!("{other}"),
        }
    }
    assert!(refused > 500, "{refused} were told");
}
