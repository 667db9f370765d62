//! How long runs are kept: from their end, by workflow and by how they ended; and what is left of one that was deleted.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use workflow::replay::Body;
use workflow::store::{BoxFuture, Deleted, Deletion, RunFilter, Store, StoreError};
use workflow::{
    AttachError, Channel, DeleteError, Engine, EngineBuilder, Error, Failure, MemoryStore,
    Retention, RunState, Swept, recv, sleep, step, workflow,
};
use workflow_tests::{Counter, World, pass, pass_on};

const HOUR: Duration = Duration::from_hours(1);
const DAY_MS: u64 = 86_400_000;

static QUESTION: Channel<u32, u32> = Channel::new("question");

#[step]
async fn effect(calls: &Counter) -> u32 {
    u32::try_from(calls.hit()).unwrap()
}

#[workflow]
async fn brief(#[state] calls: Counter) -> Result<u32, Failure> {
    effect(&calls).await
}

#[workflow]
async fn two_days() -> Result<(), Failure> {
    sleep!(long, "2d").await;
    Ok(())
}

#[workflow]
async fn fails() -> Result<(), String> {
    Err("no".to_owned())
}

#[workflow]
async fn parent(#[state] calls: Counter, days: u64) -> Result<u32, Failure> {
    let value = brief().await?;
    #[step(name = "own")]
    effect(&calls).await?;
    sleep!(long, Duration::from_secs(86_400 * days)).await;
    Ok(value)
}

#[workflow]
async fn starter() -> Result<(), Failure> {
    brief().detach().await?;
    Ok(())
}

#[workflow]
async fn answers() -> Result<(), Failure> {
    let request = recv!(question, QUESTION).await?;
    let twice = *request * 2;
    request.reply(twice).await?;
    Ok(())
}

fn all(world: &World, calls: &Counter) -> EngineBuilder {
    world
        .engine()
        .workflow(brief)
        .workflow(two_days)
        .workflow(fails)
        .workflow(parent)
        .workflow(starter)
        .workflow(answers)
        .state(calls.clone())
}

async fn ids(store: &dyn Store) -> Vec<String> {
    let page = store.list(&RunFilter::default()).await.unwrap();
    page.rows.iter().map(|row| row.id.to_string()).collect()
}

// UA-59
#[tokio::test(start_paused = true)]
async fn a_run_is_kept_for_its_time_from_its_end_and_not_from_its_beginning() {
    let (world, calls) = (World::new(), Counter::default());
    let builder = all(&world, &calls).retention(Retention::all(HOUR));
    let engine = builder.build().await.unwrap();
    engine.start("long", two_days()).await.unwrap();
    engine.run("short", brief()).await.unwrap();
    pass(3_500_000).await;
    assert_eq!(ids(&*world.store).await, ["long", "short"]);
    // Its hour, and a tenth of that until it is looked at.
    pass(2 * 360_000 + 100_000).await;
    assert_eq!(ids(&*world.store).await, ["long"]);
    pass(2 * DAY_MS - 4_000_000).await;
    assert_eq!(
        engine.status("long").await.unwrap().state,
        RunState::Completed
    );
    pass(3_000_000).await;
    let history = engine.export("long").await.unwrap();
    assert!(history.records().len() > 2);
    pass(2_000_000).await;
    assert_eq!(ids(&*world.store).await, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn how_long_depends_on_the_workflow_and_on_how_the_run_ended() {
    let (world, calls) = (World::new(), Counter::default());
    let builder = all(&world, &calls)
        .retention(Retention::all(2 * HOUR).failed(4 * HOUR))
        .retention_of(brief, Retention::forever())
        .retention_of(two_days, Retention::forever().cancelled(HOUR));
    let engine = builder.build().await.unwrap();
    engine.run("kept", brief()).await.unwrap();
    engine.run("failed", fails()).await.unwrap_err();
    engine.run("parent", parent(0)).await.unwrap();
    engine.start("cancelled", two_days()).await.unwrap();
    engine.cancel("cancelled").await.unwrap();
    pass(1_000).await;
    let left = [
        (
            3_500,
            vec!["kept", "failed", "parent", "parent/brief", "cancelled"],
        ),
        (7_100, vec!["kept", "failed", "parent", "parent/brief"]),
        (14_300, vec!["kept", "failed"]),
        (16_000, vec!["kept"]),
        (1_000_000, vec!["kept"]),
    ];
    let mut now = 0;
    for (second, expected) in left {
        pass((second - now) * 1_000).await;
        now = second;
        assert_eq!(ids(&*world.store).await, expected, "after {second} s");
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_retention_nothing_is_deleted() {
    let (world, calls) = (World::new(), Counter::default());
    let engine = all(&world, &calls).build().await.unwrap();
    engine.run("a", brief()).await.unwrap();
    pass(20 * DAY_MS).await;
    assert_eq!(engine.gc().await.unwrap(), Swept::default());
    assert_eq!(ids(&*world.store).await, ["a"]);
}

// UA-59
#[tokio::test(start_paused = true)]
async fn a_child_is_kept_as_long_as_its_parent_is_live() {
    let (world, calls) = (World::new(), Counter::default());
    let builder = all(&world, &calls)
        .retention_of(brief, Retention::all(HOUR))
        .retention_of(parent, Retention::all(24 * HOUR));
    let engine = builder.build().await.unwrap();
    engine.start("p", parent(3)).await.unwrap();
    pass(2 * DAY_MS).await;
    let child = ["p", "p/brief"];
    assert_eq!(ids(&*world.store).await, child);
    let swept = engine.gc().await.unwrap();
    assert_eq!((swept.deleted, swept.awaited), (0, 1));
    let refused = engine.delete("p/brief").await.unwrap_err();
    assert!(matches!(refused, DeleteError::Awaited { parent, .. } if parent.as_str() == "p"));
    pass(DAY_MS + 1_000_000).await;
    // The parent has ended: the child's own time counts, from its own end.
    assert_eq!(ids(&*world.store).await, ["p"]);
    pass(2 * DAY_MS).await;
    assert_eq!(ids(&*world.store).await, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_deleted_id_may_be_started_anew_with_all_its_children() {
    let (world, calls) = (World::new(), Counter::default());
    let engine = all(&world, &calls).build().await.unwrap();
    assert_eq!(engine.run("p", parent(0)).await.unwrap(), 1);
    engine.delete("p").await.unwrap();
    assert_eq!(ids(&*world.store).await, Vec::<String>::new());
    // Its effects are had again, and its child does not take the old one's place.
    assert_eq!(engine.run("p", parent(0)).await.unwrap(), 3);
    assert_eq!(calls.count(), 4);
    // A detached one that has ended is begun anew, too.
    for calls_so_far in [5, 6] {
        engine.run("s", starter()).await.unwrap();
        pass(1_000).await;
        assert_eq!(calls.count(), calls_so_far);
        engine.delete("s").await.unwrap();
    }
    // Another input is no other start: nobody remembers the first.
    engine.delete("p").await.unwrap();
    engine.run("p", parent(1)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_has_not_ended_is_not_deleted() {
    let (world, calls) = (World::new(), Counter::default());
    let engine = all(&world, &calls).build().await.unwrap();
    engine.start("a", two_days()).await.unwrap();
    pass(10_000).await;
    let refused = engine.delete("a").await.unwrap_err();
    assert!(matches!(
        refused,
        DeleteError::Live {
            state: RunState::Waiting,
            ..
        }
    ));
    assert_eq!(
        refused.to_string(),
        "run `a` is waiting, so it cannot be deleted: cancel it first"
    );
    let refused = engine.delete("b").await.unwrap_err();
    assert!(matches!(refused, DeleteError::NotFound { id } if id == "b"));
    engine.cancel("a").await.unwrap();
    engine.delete("a").await.unwrap();
    assert!(matches!(
        engine.delete("a").await.unwrap_err(),
        DeleteError::NotFound { .. }
    ));
}

#[tokio::test(start_paused = true)]
async fn who_asks_a_deleted_run_for_its_result_is_told() {
    let (world, calls) = (World::new(), Counter::default());
    let engine = all(&world, &calls).build().await.unwrap();
    engine.run("a", brief()).await.unwrap();
    let early = engine.attach::<brief>("a").await.unwrap();
    engine.delete("a").await.unwrap();
    let gone = |error: Error| matches!(error, Error::Attach(AttachError::NotFound { .. }));
    assert!(gone(early.result().await.unwrap_err()));
    assert!(gone(early.status().await.unwrap_err()));
    assert!(early.history().await.unwrap().is_empty());
    // After a restart nobody was told of it.
    engine.run("b", brief()).await.unwrap();
    let late = engine.attach::<brief>("b").await.unwrap();
    let other = all(&world.clone(), &calls).build().await.unwrap();
    other.delete("b").await.unwrap();
    assert!(gone(late.result().await.unwrap_err()));
}

#[tokio::test(start_paused = true)]
async fn the_answers_to_its_requests_go_with_a_run() {
    let (world, calls) = (World::new(), Counter::default());
    let engine = all(&world, &calls).build().await.unwrap();
    let run = engine.start("a", answers()).await.unwrap();
    assert_eq!(run.request(&QUESTION, &21).await.unwrap(), 42);
    run.result().await.unwrap();
    let history = run.history().await.unwrap();
    let request = history.iter().find_map(|record| match &record.body {
        Body::Taken(messages) => Some(messages[0].id),
        _ => None,
    });
    let request = request.unwrap();
    assert!(world.store.answer(request).await.unwrap().is_some());
    engine.delete("a").await.unwrap();
    assert_eq!(world.store.answer(request).await.unwrap(), None);
}

/// Notes how many runs are deleted at once, and fails now and then.
#[derive(Debug)]
struct Batches {
    store: Arc<MemoryStore>,
    sizes: Arc<Mutex<Vec<usize>>>,
    fails_at: u64,
    calls: AtomicU64,
}

impl Store for Batches {
    pass_on!(store: identity allocate append cancel rewrite find row load first due active deliver inbox dead_letters answer value values put list close);

    fn delete(&self, deletions: Vec<Deletion>) -> BoxFuture<'_, Result<Vec<Deleted>, StoreError>> {
        if self.calls.fetch_add(1, Ordering::SeqCst) == self.fails_at {
            return Box::pin(async { Err(StoreError::Closed) });
        }
        self.sizes.lock().unwrap().push(deletions.len());
        self.store.delete(deletions)
    }
}

// UA-59
#[tokio::test(start_paused = true)]
async fn a_sweep_deletes_in_batches_and_goes_on_after_it_was_cut_off() {
    let (world, calls) = (World::new(), Counter::default());
    let engine = all(&world, &calls).build().await.unwrap();
    for run in 0..500 {
        engine.run(format!("{run}"), brief()).await.unwrap();
    }
    engine.start("live", two_days()).await.unwrap();
    drop(engine);
    pass(10 * 3_600_000).await;
    let sizes = Arc::<Mutex<Vec<usize>>>::default();
    let swept = |fails_at| {
        let store = Batches {
            store: Arc::clone(&world.store),
            sizes: Arc::clone(&sizes),
            fails_at,
            calls: AtomicU64::new(0),
        };
        let builder = all(&world, &calls)
            .store(store)
            .retention(Retention::all(HOUR));
        async move {
            let engine = builder.build().await.unwrap();
            engine.gc().await
        }
    };
    swept(3).await.unwrap_err();
    assert_eq!(ids(&*world.store).await.len(), 100);
    let sizes_so_far = sizes.lock().unwrap().clone();
    assert_eq!(sizes_so_far, [64, 64, 64]);
    swept(u64::MAX).await.unwrap();
    assert_eq!(ids(&*world.store).await, ["live"]);
    let sizes = sizes.lock().unwrap();
    assert!(sizes.iter().all(|size| *size <= 64), "{sizes:?}");
    assert_eq!(sizes.iter().sum::<usize>(), 500);
}

#[tokio::test(start_paused = true)]
async fn a_sweeping_engine_shuts_down() {
    let (world, calls) = (World::new(), Counter::default());
    let builder = all(&world, &calls).retention(Retention::all(HOUR));
    let engine = builder.build().await.unwrap();
    for run in 0..200 {
        engine.run(format!("{run}"), brief()).await.unwrap();
    }
    pass(2 * 3_600_000).await;
    engine.shutdown(HOUR).await.unwrap();
    assert!(ids_of(&world.crash()).await.is_empty());
}

async fn ids_of(world: &World) -> Vec<String> {
    ids(&*world.store).await
}

#[tokio::test(start_paused = true)]
async fn a_run_that_was_recovered_is_kept_from_its_second_end() {
    let (world, calls) = (World::new(), Counter::default());
    let builder = all(&world, &calls).retention(Retention::all(HOUR));
    let engine: Engine = builder.build().await.unwrap();
    engine.run("a", fails()).await.unwrap_err();
    pass(3_000_000).await;
    engine.rewind("a", "").await.unwrap();
    pass(3_000_000).await;
    assert_eq!(ids(&*world.store).await, ["a"]);
    pass(2_000_000).await;
    assert!(ids(&*world.store).await.is_empty());
}
