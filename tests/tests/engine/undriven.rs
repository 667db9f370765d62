//! An engine that drives nothing: what an operator does is written down, and goes on when an engine that drives is there.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use workflow::store::{RunFilter, RunRow};
use workflow::{
    Channel, Engine, Failure, ParkReason, RunState, StartError, recv, sleep, step, workflow,
};
use workflow_tests::{Counter, World, pass};

static PAID: Channel<u32> = Channel::new("paid");

#[step]
async fn alpha(calls: &Counter) -> usize {
    calls.hit()
}

#[step(retries = 0)]
async fn flaky(calls: &Counter) -> Result<usize, std::io::Error> {
    match calls.hit() {
        1 => Err(std::io::Error::other("the first one fails")),
        hit => Ok(hit),
    }
}

#[workflow]
async fn bought(#[state] calls: Counter) -> Result<u32, Failure> {
    alpha(&calls).await?;
    recv!(paid, PAID).await
}

#[workflow]
async fn failing(#[state] calls: Counter) -> Result<usize, Failure> {
    flaky(&calls).await
}

#[workflow]
async fn resting(#[state] calls: Counter) -> Result<usize, Failure> {
    alpha(&calls).await?;
    sleep!(pause, "1h").await;
    #[step(name = "omega")]
    alpha(&calls).await
}

#[step]
async fn take(calls: &Counter) -> Result<usize, std::io::Error> {
    Ok(calls.hit())
}

/// Whether what was taken can be taken back.
static OPEN: AtomicBool = AtomicBool::new(false);

async fn take_back(_: usize, calls: Counter) -> Result<(), std::io::Error> {
    calls.hit();
    if OPEN.load(Ordering::SeqCst) {
        return Ok(());
    }
    Err(std::io::Error::other("it is closed"))
}

#[workflow]
async fn undone(#[state] calls: Counter) -> Result<(), Failure> {
    workflow::checkpoint!(begun);
    #[step(undo(take_back))]
    take(&calls).await?;
    sleep!(pause, "1h").await;
    Ok(())
}

/// What the world was like, which a workflow should not ask: a panic that is gone when it is tried again.
static CHEESE: AtomicBool = AtomicBool::new(false);

fn cheese() -> bool {
    CHEESE.load(Ordering::SeqCst)
}

#[workflow]
async fn panicking(#[state] calls: Counter) -> Result<(), Failure> {
    alpha(&calls).await?;
    assert!(cheese(), "out of cheese");
    Ok(())
}

async fn driver(world: &World, calls: &Counter) -> Engine {
    let engine = world.engine().state(calls.clone());
    let engine = engine.workflow(bought).workflow(failing).workflow(resting);
    let engine = engine.workflow(undone).workflow(panicking);
    engine.build().await.unwrap()
}

async fn operator(world: &World) -> Engine {
    world.engine().drives_nothing().build().await.unwrap()
}

async fn state(engine: &Engine, id: &str) -> RunState {
    engine.status(id).await.unwrap().state
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_drives_nothing_leaves_every_run_as_it_is() {
    let (world, calls) = (World::new(), Counter::default());
    let engine = driver(&world, &calls).await;
    engine.start("waits", bought()).await.unwrap();
    engine.start("sleeps", resting()).await.unwrap();
    pass(10).await;
    drop(engine);
    // Cut off in the middle of something, and due.
    let world = world.crash();
    let stored = world
        .engine()
        .in_memory(1)
        .workflow(resting)
        .state(calls.clone());
    let stored = stored.drives_nothing().build().await.unwrap();
    stored.start("pending", resting()).await.unwrap();
    let done = calls.count();
    let before = rows(&stored).await;
    drop(stored);

    let world = world.crash();
    let operator = operator(&world).await;
    pass(2 * 3_600_000).await;
    assert_eq!(operator.in_memory(), 0);
    assert_eq!(calls.count(), done, "a step was run");
    // Also the one whose workflow it does not know is not parked for that.
    assert_eq!(rows(&operator).await, before);
    assert_eq!(state(&operator, "pending").await, RunState::Pending);
    let refused = operator.start("new", resting()).await.unwrap_err();
    assert!(
        matches!(refused, StartError::NotRegistered { .. }),
        "{refused}"
    );
    operator.shutdown(Duration::ZERO).await.unwrap();

    let engine = driver(&world.crash(), &calls).await;
    let run = engine.attach::<resting>("pending").await.unwrap();
    run.result().await.unwrap();
}

async fn rows(engine: &Engine) -> Vec<RunRow> {
    engine.list(&RunFilter::default()).await.unwrap().rows
}

#[tokio::test(start_paused = true)]
async fn what_an_operator_did_goes_on_in_the_engine_that_comes_next() {
    let (world, calls) = (World::new(), Counter::default());
    let engine = driver(&world, &calls).await;
    let failed = engine.start("failed", failing()).await.unwrap();
    failed.result().await.unwrap_err();
    for id in ["paid", "stopped"] {
        engine.start(id, bought()).await.unwrap();
    }
    engine.start("rewound", resting()).await.unwrap();
    pass(10).await;
    let done = calls.count();
    drop((failed, engine));

    let world = world.crash();
    let operator = operator(&world).await;
    operator.recover("failed").await.unwrap();
    operator.send("paid", &PAID, &7).await.unwrap();
    operator.cancel("stopped").await.unwrap();
    operator.rewind("rewound", "pause").await.unwrap();
    operator.fork("rewound", "forked", None).await.unwrap();
    pass(60_000).await;
    assert_eq!(operator.in_memory(), 0);
    assert_eq!(calls.count(), done, "a step was run");
    for (id, expected) in [
        ("failed", RunState::Pending),
        ("paid", RunState::Waiting),
        ("stopped", RunState::Cancelled),
        ("rewound", RunState::Pending),
        ("forked", RunState::Pending),
    ] {
        assert_eq!(state(&operator, id).await, expected, "{id}");
    }
    drop(operator);

    let engine = driver(&world.crash(), &calls).await;
    let run = engine.attach::<failing>("failed").await.unwrap();
    assert!(run.result().await.unwrap() > 1);
    let run = engine.attach::<bought>("paid").await.unwrap();
    assert_eq!(run.result().await.unwrap(), 7);
    for id in ["rewound", "forked"] {
        let run = engine.attach::<resting>(id).await.unwrap();
        run.result().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_parked_run_that_an_operator_resumes_is_tried_again_by_the_next_engine() {
    let (world, calls) = (World::new(), Counter::default());
    let engine = driver(&world, &calls).await;
    let run = engine.start("a", panicking()).await.unwrap();
    run.result().await.unwrap_err();
    drop((run, engine));

    // The same code does not try by itself.
    let world = world.crash();
    let engine = driver(&world, &calls).await;
    pass(10).await;
    assert_eq!(state(&engine, "a").await, RunState::Parked);
    drop(engine);

    let world = world.crash();
    let operator = operator(&world).await;
    operator.resume("a").await.unwrap();
    assert_eq!(state(&operator, "a").await, RunState::Pending);
    assert_eq!(calls.count(), 1);
    drop(operator);

    CHEESE.store(true, Ordering::SeqCst);
    let engine = driver(&world.crash(), &calls).await;
    let run = engine.attach::<panicking>("a").await.unwrap();
    run.result().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_undo_that_an_operator_asks_for_is_done_by_the_next_engine_and_again_when_it_is_stuck() {
    let (world, calls) = (World::new(), Counter::default());
    let engine = driver(&world, &calls).await;
    engine.start("a", undone()).await.unwrap();
    pass(10).await;
    drop(engine);

    let world = world.crash();
    let operator_one = operator(&world).await;
    operator_one.cancel("a").and_undo().await.unwrap();
    assert_eq!(state(&operator_one, "a").await, RunState::RollingBack);
    assert_eq!(calls.count(), 1, "nothing is undone here");
    drop(operator_one);

    let world = world.crash();
    let engine = driver(&world, &calls).await;
    pass(24 * 3_600_000).await;
    let parked = engine.status("a").await.unwrap().parked.unwrap();
    assert_eq!(parked.reason, ParkReason::UndoFailed);
    drop(engine);

    OPEN.store(true, Ordering::SeqCst);
    let tried = calls.count();
    let world = world.crash();
    let operator_two = operator(&world).await;
    operator_two.cancel("a").and_undo().await.unwrap();
    assert_eq!(state(&operator_two, "a").await, RunState::RollingBack);
    drop(operator_two);

    let world = world.crash();
    let engine = driver(&world, &calls).await;
    pass(60_000).await;
    assert_eq!(state(&engine, "a").await, RunState::Cancelled);
    assert_eq!(calls.count(), tried + 1);
}
