//! Joins and races through the engine.

use workflow::{Clock, Engine, Failure, FailureKind, critical, join, race, sleep, step, workflow};
use workflow_tests::{Counter, World, pass};

#[step(timeout = "none")]
async fn after(calls: &Counter, millis: u64, value: u32) -> u32 {
    calls.hit();
    pass(millis).await;
    value
}

#[step(retries = 0)]
async fn bad() -> Result<u32, workflow::Critical> {
    Err(critical("bad"))
}

#[workflow]
async fn both(#[state] calls: Counter) -> Result<u32, Failure> {
    let (a, b) = join!(
        both,
        a = after(&calls, 100, 1).await?,
        b = {
            let (c, d) = join!(
                inner,
                c = after(&calls, 100, 2).await?,
                d = after(&calls, 50, 3).await?
            )
            .await?;
            c + d
        }
    )
    .await?;
    Ok(a + b)
}

#[workflow]
async fn half(#[state] calls: Counter) -> Result<u32, Failure> {
    let (a, b) = join!(
        both,
        good = after(&calls, 100, 1).await?,
        bad = bad().await?
    )
    .await?;
    Ok(a + b)
}

#[workflow]
async fn fastest(#[state] calls: Counter) -> Result<(String, u32, usize), Failure> {
    let won = race!(
        first,
        fast = {
            let (a, b) = join!(
                inner,
                a = after(&calls, 20, 1).await?,
                b = after(&calls, 30, 2).await?
            )
            .await?;
            a + b
        },
        slow = after(&calls, 500, 9).await?
    )
    .await?;
    let b = after(&calls, 1_000, 4).await?;
    Ok((won.branch.to_string(), won.value + b, 0))
}

#[workflow]
async fn timer(#[state] calls: Counter) -> Result<u32, Failure> {
    let won = race!(
        first,
        timer = {
            sleep!(nap, "1s").await;
            1
        },
        work = after(&calls, 10_000, 2).await?
    )
    .await?;
    Ok(won.value)
}

#[workflow]
async fn nobody() -> Result<u32, Failure> {
    let won = race!(first, a = bad().await?, b = bad().await?).await?;
    Ok(won.value)
}

async fn engine(world: &World, calls: &Counter) -> Engine {
    world
        .engine()
        .state(calls.clone())
        .workflow(both)
        .workflow(half)
        .workflow(fastest)
        .workflow(timer)
        .workflow(nobody)
        .build()
        .await
        .unwrap()
}

// RVT-JOIN-01 RVT-JOIN-05
#[tokio::test(start_paused = true)]
async fn branches_run_at_once_and_are_not_run_again() {
    let (world, calls) = (World::new(), Counter::default());
    let start = world.clock().now();
    let first = engine(&world, &calls).await;
    assert_eq!(first.run("a", both()).await.unwrap(), 6);
    assert_eq!(world.clock().now().since(start).as_millis(), 100);
    drop(first);
    let second = engine(&world.crash(), &calls).await;
    assert_eq!(second.run("a", both()).await.unwrap(), 6);
    assert_eq!(calls.count(), 3);
}

// RVT-JOIN-02 RVT-JOIN-03
#[tokio::test(start_paused = true)]
async fn a_failed_branch_fails_the_join_once_the_others_have_ended() {
    let (world, calls) = (World::new(), Counter::default());
    let start = world.clock().now();
    let engine = engine(&world, &calls).await;
    let error = engine.run("a", half()).await.unwrap_err();
    let failure = error.failure().unwrap();
    assert_eq!(
        (failure.kind(), failure.branches().len()),
        (FailureKind::Join, 1)
    );
    assert_eq!(failure.branches()[0].location().to_string(), "both/bad/bad");
    assert_eq!(world.clock().now().since(start).as_millis(), 100);
}

#[tokio::test(start_paused = true)]
async fn a_join_cut_off_between_its_branches_repeats_only_the_unfinished() {
    let (world, calls) = (World::new(), Counter::default());
    let first = engine(&world, &calls).await;
    first.start("a", both()).await.unwrap();
    pass(60).await;
    drop(first);
    let second = engine(&world.crash(), &calls).await;
    assert_eq!(second.run("a", both()).await.unwrap(), 6);
    assert_eq!(calls.count(), 5);
}

// RVT-RACE-01 RVT-RACE-02 RVT-RACE-05 RVT-FIX-27 UA-13
#[tokio::test(start_paused = true)]
async fn the_first_success_wins_and_the_loser_is_dropped_for_good() {
    let (world, calls) = (World::new(), Counter::default());
    let first = engine(&world, &calls).await;
    let run = first.start("a", fastest()).await.unwrap();
    pass(600).await;
    let history = run.history().await.unwrap();
    assert!(
        history
            .iter()
            .all(|record| !record.location.to_string().starts_with("first/slow"))
    );
    assert_eq!(calls.count(), 4);
    drop((run, first));
    let second = engine(&world.crash(), &calls).await;
    let won = second.run("a", fastest()).await.unwrap();
    assert_eq!(won, ("fast".to_owned(), 7, 0));
    // Only the step after the race, which was cut off, was begun again.
    assert_eq!(calls.count(), 5);
}

// UA-14
#[tokio::test(start_paused = true)]
async fn a_timer_wins_against_a_longer_step_when_it_is_due() {
    let (world, calls) = (World::new(), Counter::default());
    let start = world.clock().now();
    let engine = engine(&world, &calls).await;
    assert_eq!(engine.run("a", timer()).await.unwrap(), 1);
    assert_eq!(world.clock().now().since(start).as_millis(), 1_000);
}

// RVT-RACE-03
#[tokio::test(start_paused = true)]
async fn a_race_that_nobody_wins_tells_of_every_branch() {
    let engine = engine(&World::new(), &Counter::default()).await;
    let error = engine.run("a", nobody()).await.unwrap_err();
    let failure = error.failure().unwrap();
    assert_eq!(
        (failure.kind(), failure.branches().len()),
        (FailureKind::Race, 2)
    );
}
