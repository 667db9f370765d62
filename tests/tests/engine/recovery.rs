//! Crashes, and what an engine does when it opens the store again.

use std::time::Duration;

use workflow::{Engine, Failure, RunState, step, workflow};
use workflow_tests::{Counter, World, pass};

#[step]
async fn quick(calls: &Counter) -> usize {
    calls.hit()
}

#[step(timeout = "none")]
async fn cut_off(calls: &Counter) -> usize {
    let call = calls.hit();
    pass(1_000).await;
    call
}

#[step(timeout = "none", at_most_once)]
async fn once_only(calls: &Counter) -> usize {
    calls.hit();
    pass(1_000).await;
    1
}

#[workflow]
async fn working(#[state] calls: Counter) -> Result<(usize, usize), Failure> {
    Ok((quick(&calls).await?, cut_off(&calls).await?))
}

#[workflow]
async fn careful(#[state] calls: Counter) -> Result<usize, Failure> {
    once_only(&calls).await
}

#[workflow]
async fn idle() {}

async fn engine(world: &World, calls: &Counter) -> Engine {
    world
        .engine()
        .state(calls.clone())
        .workflow(working)
        .workflow(careful)
        .workflow(idle)
        .build()
        .await
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_dropped_engine_stops_its_runs_as_a_crash_would() {
    let (world, calls) = (World::new(), Counter::default());
    let first = engine(&world, &calls).await;
    first.start("a", working()).await.unwrap();
    pass(10).await;
    drop(first);
    pass(5_000).await;
    let second = engine(&world.crash(), &calls).await;
    let status = second.status("a").await.unwrap();
    assert_eq!(status.state, RunState::Running);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_was_under_way_goes_on_by_itself_and_repeats_only_what_was_cut_off() {
    let (world, calls) = (World::new(), Counter::default());
    let first = engine(&world, &calls).await;
    first.start("a", working()).await.unwrap();
    pass(10).await;
    assert_eq!(calls.count(), 2);
    drop(first);
    let second = engine(&world.crash(), &calls).await;
    pass(2_000).await;
    let run = second.attach::<working>("a").await.unwrap();
    assert_eq!(run.try_result().await.unwrap(), Some((1, 3)));
}

#[tokio::test(start_paused = true)]
async fn a_body_that_may_run_once_is_interrupted_by_a_crash() {
    let (world, calls) = (World::new(), Counter::default());
    let first = engine(&world, &calls).await;
    first.start("a", careful()).await.unwrap();
    pass(10).await;
    drop(first);
    let second = engine(&world.crash(), &calls).await;
    let error = second.run("a", careful()).await.unwrap_err();
    assert_eq!(
        error.failure().unwrap().kind(),
        workflow::FailureKind::Interrupted
    );
    assert_eq!(calls.count(), 1);
}

// UA-64 RVT-FIX-57
#[tokio::test(start_paused = true)]
async fn a_workflow_that_gives_nothing_is_told_from_one_that_has_not_ended() {
    let (world, calls) = (World::new(), Counter::default());
    let first = engine(&world, &calls).await;
    let slow = first.start("slow", working()).await.unwrap();
    first.run("unit", idle()).await.unwrap();
    assert_eq!(slow.try_result().await.unwrap(), None);
    drop((slow, first));
    let second = engine(&world.crash(), &calls).await;
    let unit = second.attach::<idle>("unit").await.unwrap();
    assert_eq!(unit.status().await.unwrap().state, RunState::Completed);
    assert_eq!(unit.try_result().await.unwrap(), Some(()));
}

#[tokio::test(start_paused = true)]
async fn a_stale_owner_writes_nothing_and_does_not_fail_the_run() {
    let (world, calls) = (World::new(), Counter::default());
    let engine = engine(&world, &calls).await;
    let run = engine.start("a", working()).await.unwrap();
    pass(10).await;
    // Somebody else ends the run behind the owner's back.
    let row = engine
        .list(&workflow::store::RunFilter {
            limit: 1,
            ..Default::default()
        })
        .await
        .unwrap();
    let key = row.rows[0].key;
    workflow::store::Store::cancel(&*world.store, key, workflow::Timestamp::from_millis(1))
        .await
        .unwrap();
    let before = run.history().await.unwrap();
    pass(5_000).await;
    assert_eq!(run.history().await.unwrap(), before);
    assert_eq!(run.status().await.unwrap().state, RunState::Cancelled);
    assert!(matches!(
        run.result().await,
        Err(workflow::Error::Cancelled(_))
    ));
    engine.shutdown(Duration::ZERO).await.unwrap();
}
