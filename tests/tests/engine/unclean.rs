//! Owners that die: what is in the middle of something when the process ends counts as an attempt, and nothing else does.

use std::time::Duration;

use workflow::{
    Engine, Error, Failure, FailureKind, RunState, current_step, sleep, step, workflow,
};
use workflow_tests::{Counter, World, pass};

/// What the process dies in: it never ends.
#[step(retries = 2, timeout = "none")]
async fn deadly(calls: &Counter) -> u32 {
    calls.hit();
    std::future::pending().await
}

/// Dies in the first attempts.
#[step(retries = 5, timeout = "none", backoff(fixed, wait = "1ms"))]
async fn shaky(calls: &Counter, dies: usize) -> u32 {
    if calls.hit() <= dies {
        std::future::pending::<()>().await;
    }
    let step = current_step();
    let last = step.last_failure().map(Failure::kind);
    assert_eq!(
        last.is_some(),
        step.attempt() > 1,
        "an attempt knows how the last one failed"
    );
    step.attempt()
}

#[workflow]
async fn dying(naps: bool, #[state] calls: Counter) -> Result<u32, Failure> {
    if naps {
        sleep!(nap, "1s").await;
    }
    deadly(&calls).await
}

#[workflow]
async fn recovering(dies: usize, #[state] calls: Counter) -> Result<(u32, u32), Failure> {
    let first = shaky(&calls, dies).await?;
    #[step(name = "second")]
    let second = shaky(&calls, 0).await?;
    Ok((first, second))
}

async fn opened(world: &World, calls: &Counter) -> Engine {
    let builder = world.engine().state(calls.clone());
    let builder = builder.workflow(dying).workflow(recovering);
    builder.build().await.unwrap()
}

/// Kills the process after a while, and starts another one.
async fn killed(world: World, engine: Engine, calls: &Counter) -> (World, Engine) {
    pass(12_000).await;
    let world = world.crash();
    drop(engine);
    let engine = opened(&world, calls).await;
    (world, engine)
}

// U19
#[tokio::test(start_paused = true)]
async fn a_body_that_the_process_dies_in_is_interrupted_when_its_attempts_are_used_up() {
    for naps in [false, true] {
        let calls = Counter::default();
        let mut world = World::new();
        let mut engine = opened(&world, &calls).await;
        engine.start("a", dying(naps)).await.unwrap();
        let mut deaths = 0;
        let failure = loop {
            (world, engine) = killed(world, engine, &calls).await;
            deaths += 1;
            assert!(deaths < 10);
            let run = engine.attach::<dying>("a").await.unwrap();
            let ended = tokio::time::timeout(Duration::from_secs(8), run.result()).await;
            match ended {
                Ok(Err(Error::Failed(failure))) => break failure,
                Ok(other) => panic!("{other:?}"),
                Err(_) => {}
            }
        };
        assert_eq!(failure.kind(), FailureKind::Interrupted);
        assert_eq!(failure.attempts(), 3);
        assert!((3..=5).contains(&calls.count()), "{}", calls.count());
    }
}

// U19
#[tokio::test(start_paused = true)]
async fn a_crash_is_an_attempt_and_an_outcome_takes_the_count_back() {
    let calls = Counter::default();
    let mut world = World::new();
    let mut engine = opened(&world, &calls).await;
    engine.start("a", recovering(2)).await.unwrap();
    for _ in 0..2 {
        (world, engine) = killed(world, engine, &calls).await;
    }
    let run = engine.attach::<recovering>("a").await.unwrap();
    let (first, second) = run.result().await.unwrap();
    assert!(first >= 2, "{first}");
    assert_eq!(second, 1);
    drop(world);
}

// U17: a polite end is no attempt, however often.
#[tokio::test(start_paused = true)]
async fn a_polite_shutdown_counts_for_nothing() {
    let calls = Counter::default();
    let mut world = World::new();
    for turn in 1..8 {
        let engine = opened(&world, &calls).await;
        engine.start("a", recovering(7)).await.unwrap();
        pass(20_000).await;
        assert_eq!(calls.count(), turn, "it is driven at once");
        let status = engine.status("a").await.unwrap();
        assert_eq!(status.state, RunState::Running);
        engine.shutdown(Duration::ZERO).await.unwrap();
        world = world.crash();
    }
    let engine = opened(&world, &calls).await;
    let run = engine.attach::<recovering>("a").await.unwrap();
    assert_eq!(run.result().await.unwrap(), (1, 1), "the first attempts");
}

// U19: openings that drive nothing are no attempts either.
#[tokio::test(start_paused = true)]
async fn an_opening_that_does_not_drive_the_run_counts_for_nothing() {
    let calls = Counter::default();
    let world = World::new();
    let engine = opened(&world, &calls).await;
    engine.start("a", recovering(1)).await.unwrap();
    pass(10).await;
    let mut world = world.crash();
    drop(engine);
    for _ in 0..6 {
        world = world.crash();
    }
    let engine = opened(&world, &calls).await;
    let run = engine.attach::<recovering>("a").await.unwrap();
    assert_eq!(run.result().await.unwrap(), (2, 1));
}

// U19: the suspect waits until the others are done, so they are done although it kills the process each time.
#[tokio::test(start_paused = true)]
async fn a_suspect_is_driven_when_the_others_have_come_to_rest() {
    let (calls, bad) = (Counter::default(), Counter::default());
    let mut world = World::new();
    let builder = world.engine().state(bad.clone()).workflow(dying);
    let mut engine = builder.build().await.unwrap();
    engine.start("bad", dying(false)).await.unwrap();
    for _ in 0..2 {
        pass(10).await;
        world = world.crash();
        drop(engine);
        let builder = world.engine().state(bad.clone()).workflow(dying);
        engine = builder.build().await.unwrap();
    }
    pass(10).await;
    let before = bad.count();
    world = world.crash();
    drop(engine);
    let engine = opened(&world, &calls).await;
    let good = engine.start("good", recovering(0)).await.unwrap();
    good.result().await.unwrap();
    // Three bodies ran of the good run, and none of the bad one so far.
    assert_eq!((calls.count(), bad.count()), (2, before));
    pass(6_000).await;
    assert!(calls.count() > 2, "then it is its turn");
}
