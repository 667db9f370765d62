//! Crashes, and what an engine does when it opens the store again.

use std::time::Duration;

use workflow::store::StoreError;
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

// UA-32: one process owns the store. The one that comes while the other drains is told so, and then finds all of it.
#[tokio::test]
async fn a_process_that_comes_while_another_drains_is_refused_and_then_strands_no_run() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("runs.redb");
    let calls = Counter::default();
    let builder = || Engine::builder().state(calls.clone()).workflow(short);
    let first = builder().open(&path).await.unwrap();
    for run in 0..5 {
        first.start(format!("r{run}"), short()).await.unwrap();
    }
    let (second, drained) = tokio::join!(
        async { builder().open(&path).await.map(drop) },
        first.shutdown(Duration::ZERO)
    );
    drained.unwrap();
    assert!(
        matches!(
            second,
            Ok(()) | Err(workflow::BuildError::Store(StoreError::Locked { .. }))
        ),
        "{second:?}"
    );
    let second = builder().open(&path).await.unwrap();
    for run in 0..5 {
        let run = second.attach::<short>(format!("r{run}")).await.unwrap();
        run.result().await.unwrap();
    }
    second.shutdown(Duration::ZERO).await.unwrap();
}

#[workflow]
async fn short(#[state] calls: Counter) -> Result<usize, Failure> {
    quick(&calls).await
}

#[step]
async fn other(calls: &Counter) -> usize {
    calls.hit()
}

/// The same workflow as a later program has it.
mod later {
    use super::*;

    #[workflow(name = "working", shared_name)]
    pub(super) async fn changed(#[state] calls: Counter) -> Result<usize, Failure> {
        other(&calls).await
    }
}

// UA-34: there is room for one run in memory, and the one that was between two steps cannot go on.
#[tokio::test(start_paused = true)]
async fn a_run_recovered_between_its_steps_goes_on_or_is_parked_and_makes_room_for_the_next() {
    for changed in [false, true] {
        let (world, calls) = (World::new(), Counter::default());
        let first = engine(&world, &calls).await;
        first.start("between", working()).await.unwrap();
        pass(10).await;
        drop(first);
        let builder = world.crash().engine().in_memory(1).state(calls.clone());
        let builder = builder.workflow(short);
        let second = if changed {
            builder.workflow(later::changed)
        } else {
            builder.workflow(working)
        };
        let second = second.build().await.unwrap();
        let next = second.start("next", short()).await.unwrap();
        pass(5_000).await;
        assert!(next.try_result().await.unwrap().is_some(), "{changed}");
        let status = second.status("between").await.unwrap();
        if changed {
            assert_eq!(status.state, RunState::Parked);
            let why = status.parked.unwrap().detail;
            assert!(why.contains("`other`") || why.contains("other"), "{why}");
        } else {
            assert_eq!(status.state, RunState::Completed);
        }
    }
}
