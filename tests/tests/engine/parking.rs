//! What parks a run, and what takes it up again; starts that meet an id in use; storage faults; shutdown.

use std::sync::Arc;
use std::time::Duration;

use workflow::{Engine, Error, Failure, ParkReason, RunState, StartError, sleep, step, workflow};
use workflow_tests::{Counter, Fault, FaultStore, World, pass};

#[step]
async fn alpha(calls: &Counter) -> usize {
    calls.hit()
}

#[step]
async fn beta(calls: &Counter) -> usize {
    calls.hit() + 1_000
}

#[workflow(name = "flow")]
async fn old(n: u32, #[state] calls: Counter) -> Result<usize, Failure> {
    let alpha = alpha(&calls).await?;
    sleep!(pause, "1h").await;
    Ok(alpha + n as usize)
}

#[workflow(name = "flow")]
async fn edited(n: u32, #[state] calls: Counter) -> Result<usize, Failure> {
    let beta = beta(&calls).await?;
    Ok(beta + n as usize)
}

#[workflow(name = "flow")]
async fn widened(n: u32, more: u32, #[state] calls: Counter) -> Result<usize, Failure> {
    Ok(alpha(&calls).await? + (n + more) as usize)
}

#[workflow]
async fn other(n: u32) -> u32 {
    n
}

#[workflow]
async fn panicking(#[state] calls: Counter) -> Result<(), Failure> {
    alpha(&calls).await?;
    panic!("out of cheese");
}

macro_rules! smuggle {
    () => {
        std::future::pending::<()>().await
    };
}

#[workflow]
async fn smuggling() {
    smuggle!();
}

async fn with_old(world: &World, code: u64, calls: &Counter) -> Engine {
    let engine = world.engine().code_id(code).state(calls.clone());
    engine
        .workflow(old)
        .workflow(other)
        .workflow(panicking)
        .workflow(smuggling)
        .build()
        .await
        .unwrap()
}

fn parked<T: std::fmt::Debug>(result: Result<T, Error>) -> (ParkReason, String) {
    match result {
        Err(Error::Parked(parked)) => (parked.reason, parked.detail),
        other => panic!("{other:?}"),
    }
}

// UA-03 UA-46 UA-47 RVT-FIX-33
#[tokio::test(start_paused = true)]
async fn a_divergence_parks_the_run_until_code_that_fits_is_deployed() {
    let (world, calls) = (World::new(), Counter::default());
    let first = with_old(&world, 1, &calls).await;
    let run = first.start("a", old(5)).await.unwrap();
    pass(10).await;
    let before = run.history().await.unwrap();
    drop((run, first));

    let world = world.crash();
    let second = world
        .engine()
        .code_id(2)
        .state(calls.clone())
        .workflow(edited)
        .build()
        .await
        .unwrap();
    second.resume("a").await.unwrap();
    let run = second.attach::<edited>("a").await.unwrap();
    pass(10).await;
    let (reason, detail) = parked(run.result().await);
    assert_eq!(reason, ParkReason::Diverged);
    for word in ["alpha", "beta", "parking.rs"] {
        assert!(detail.contains(word), "{word} is not in: {detail}");
    }
    assert_eq!(calls.count(), 1);
    assert_eq!(run.history().await.unwrap(), before);
    drop((run, second));

    let world = world.crash();
    let third = with_old(&world, 3, &calls).await;
    let run = third.attach::<old>("a").await.unwrap();
    pass(10).await;
    assert_eq!(run.result().await.unwrap(), 6);
    assert_eq!(calls.count(), 1);
}

// UA-43
#[tokio::test(start_paused = true)]
async fn a_workflow_with_another_parameter_parks_and_keeps_its_input() {
    let (world, calls) = (World::new(), Counter::default());
    let first = with_old(&world, 1, &calls).await;
    first.start("a", old(5)).await.unwrap();
    pass(10).await;
    drop(first);
    let world = world.crash();
    let second = world
        .engine()
        .code_id(2)
        .state(calls.clone())
        .workflow(widened)
        .build()
        .await
        .unwrap();
    second.resume("a").await.unwrap();
    pass(10).await;
    let run = second.attach::<widened>("a").await.unwrap();
    assert_eq!(parked(run.result().await).0, ParkReason::Decode);
    drop((run, second));
    let third = with_old(&world.crash(), 1, &calls).await;
    pass(10).await;
    assert_eq!(third.run("a", old(5)).await.unwrap(), 6);
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_the_workflow_and_a_foreign_future_park_the_run_once_per_code() {
    let (world, calls) = (World::new(), Counter::default());
    let engine = with_old(&world, 1, &calls).await;
    let (reason, detail) = parked(engine.run("a", panicking()).await);
    assert_eq!(reason, ParkReason::Panicked);
    assert!(detail.contains("out of cheese"), "{detail}");
    assert_eq!(
        parked(engine.run("b", smuggling()).await).0,
        ParkReason::NotDurable
    );
    drop(engine);
    // The same code does not try again.
    pass(10).await;
    let world = world.crash();
    let same = with_old(&world, 1, &calls).await;
    pass(10).await;
    assert_eq!(same.in_memory(), 0);
    let status = same.status("a").await.unwrap();
    assert_eq!(status.state, RunState::Parked);
    assert_eq!(status.updated_at.as_millis(), 1_000_000);
}

// RVT-FIX-72 UA-40
#[tokio::test(start_paused = true)]
async fn an_id_names_one_run_with_one_input() {
    let (world, calls) = (World::new(), Counter::default());
    let engine = with_old(&world, 1, &calls).await;
    let starts = (0..50).map(|_| {
        let engine = engine.clone();
        tokio::spawn(async move { engine.run("a", old(5)).await.unwrap() })
    });
    for start in starts.collect::<Vec<_>>() {
        assert_eq!(start.await.unwrap(), 6);
    }
    assert_eq!(calls.count(), 1);
    assert!(matches!(
        engine.start("a", old(6)).await,
        Err(StartError::OtherInput { .. })
    ));
    assert!(matches!(
        engine.start("a", other(5)).await,
        Err(StartError::OtherWorkflow { .. })
    ));
}

// RVT-FIX-42
#[tokio::test(start_paused = true)]
async fn a_failing_store_uses_up_no_attempt_and_repeats_no_body() {
    for fault in [Fault::Before, Fault::After] {
        for at in 0..4 {
            let (world, calls) = (World::new(), Counter::default());
            let mut faults = vec![Fault::None; at];
            faults.extend([fault; 3]);
            let store = FaultStore::over(&world.store, faults);
            let engine = world
                .engine()
                .shared_store(Arc::new(store))
                .state(calls.clone());
            let engine = engine.workflow(old).build().await.unwrap();
            assert_eq!(
                engine.run("a", old(5)).await.unwrap(),
                6,
                "{fault:?} at {at}"
            );
            assert_eq!(calls.count(), 1);
        }
    }
}

// UA-37 RVT-HOST-10
#[tokio::test(start_paused = true)]
async fn after_shutdown_nothing_runs_and_the_file_opens_again() {
    let (folder, calls) = (tempfile::tempdir().unwrap(), Counter::default());
    let path = folder.path().join("runs.redb");
    let world = World::new();
    for round in 0..3 {
        let engine = Engine::builder()
            .clock(world.clock())
            .code_id(1)
            .state(calls.clone());
        let engine = engine.workflow(old).open(&path).await.unwrap();
        engine.start("a", old(5)).await.unwrap();
        engine.shutdown(Duration::from_secs(1)).await.unwrap();
        assert_eq!(engine.in_memory(), 0, "round {round}");
        assert!(matches!(
            engine.start("b", old(5)).await,
            Err(StartError::ShuttingDown)
        ));
    }
    assert!(calls.count() <= 1);
}

#[tokio::test(start_paused = true)]
async fn a_start_that_cannot_be_stored_is_told_so_and_can_be_made_again() {
    let (world, calls) = (World::new(), Counter::default());
    let store = FaultStore::over(&world.store, [Fault::Before; 26]);
    let engine = world
        .engine()
        .shared_store(Arc::new(store))
        .state(calls.clone());
    let engine = engine.workflow(old).build().await.unwrap();
    let error = tokio::time::timeout(Duration::from_mins(10), engine.start("a", old(5)))
        .await
        .unwrap();
    assert!(matches!(error, Err(StartError::Store(_))), "{error:?}");
    let error = tokio::time::timeout(Duration::from_mins(10), engine.run("a", old(5)))
        .await
        .unwrap();
    assert!(error.unwrap_err().is_retryable());
    // `run` began the first step while its beginning was being stored, in vain; it is begun again.
    assert_eq!(engine.run("a", old(5)).await.unwrap(), 7);
}

#[workflow]
async fn asleep() -> Result<u32, Failure> {
    sleep!(nap, "1h").await;
    Ok(7)
}

#[tokio::test(start_paused = true)]
async fn a_history_with_records_of_a_newer_version_parks_its_run_and_is_kept_for_it() {
    let world = World::new();
    let store = workflow_tests::SlowStore::over(&world.store);
    let newer = Arc::clone(&store.newer);
    let shared = Arc::new(store);
    let engine = world.engine().shared_store(shared).workflow(asleep);
    let engine = engine.build().await.unwrap();
    let run = engine.start("r", asleep()).await.unwrap();
    newer.store(true, std::sync::atomic::Ordering::SeqCst);
    let Err(Error::Parked(parked)) = run.result().await else {
        panic!("the run cannot be read and says nothing");
    };
    assert_eq!(parked.reason, ParkReason::NewerFormat);
    assert!(
        parked.detail.contains("kind 77") && parked.detail.contains("deploy"),
        "{}",
        parked.detail
    );
    drop(engine);
    // A program that can read it goes on by itself.
    let engine = world
        .crash()
        .engine()
        .code_id(2)
        .workflow(asleep)
        .build()
        .await
        .unwrap();
    assert_eq!(engine.run("r", asleep()).await.unwrap(), 7);
}
