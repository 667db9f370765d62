//! The inbox: who gets a message, and when.

use std::sync::Arc;

use workflow::replay::Body;
use workflow::{
    Channel, Engine, Failure, MemoryStore, RedbStore, RunId, join, recv, send, sleep, step,
    workflow,
};
use workflow_tests::{Counter, Fault, FaultStore, World, pass};

static ANY: Channel<String> = Channel::new("any");
static X: Channel<String> = Channel::new("x");
static ASK: Channel<u32, u32> = Channel::new("ask");

#[step]
async fn slow(calls: &Counter) -> usize {
    tokio::time::sleep(std::time::Duration::from_secs(5)).await;
    calls.hit()
}

#[workflow]
async fn after_a_step(#[state] calls: Counter) -> Result<String, Failure> {
    slow(&calls).await?;
    recv!(then, ANY).await
}

#[workflow]
async fn timed() -> Result<Option<String>, Failure> {
    recv!(early, ANY, timeout = "1h").await
}

#[workflow]
async fn polled() -> Result<Option<String>, Failure> {
    recv!(now, ANY, timeout = "0s").await
}

#[workflow]
async fn either_or() -> Result<(String, String), Failure> {
    join!(
        both,
        any = recv!(any, [ANY, X]).await?,
        x = recv!(x, X).await?
    )
    .await
}

#[workflow]
async fn two_askers() -> Result<(u32, u32), Failure> {
    join!(
        both,
        a = {
            let asked = recv!(asked, ASK).await?;
            let value = *asked;
            asked.reply(value * 2).await?;
            value
        },
        b = {
            let asked = recv!(asked, ASK).await?;
            let value = *asked;
            asked.reply(value * 3).await?;
            value
        }
    )
    .await
}

/// Sends before it waits.
#[workflow]
async fn sends_and_waits(to: RunId) -> Result<(), Failure> {
    send!(tell, &to, ANY, "once".to_owned()).await?;
    sleep!(nap, "1h").await;
    Ok(())
}

#[workflow]
async fn collects() -> Result<Vec<String>, Failure> {
    recv!(all, ANY, exactly = 9, timeout = "5h").await
}

/// Takes a run's id, hands it on, and gives it back.
#[workflow]
async fn tells_a_child(child: String) -> Result<RunId, Failure> {
    let id = timed().detach().await?;
    send!(by_id, &id, ANY, "to an id".to_owned()).await?;
    send!(by_text, &child, ANY, "to a text".to_owned()).await?;
    Ok(id)
}

async fn engine(world: &World, calls: &Counter) -> Engine {
    let builder = world.engine();
    builder
        .state(calls.clone())
        .workflow(after_a_step)
        .workflow(timed)
        .workflow(polled)
        .workflow(either_or)
        .workflow(two_askers)
        .workflow(sends_and_waits)
        .workflow(collects)
        .workflow(tells_a_child)
        .build()
        .await
        .unwrap()
}

fn text(text: &str) -> String {
    text.to_owned()
}

// RVT-MSG-12
#[tokio::test(start_paused = true)]
async fn a_message_that_comes_while_a_step_runs_is_there_for_the_receive_after_it() {
    let (world, calls) = (World::new(), Counter::default());
    let engine = engine(&world, &calls).await;
    let run = engine.start("a", after_a_step()).await.unwrap();
    pass(1_000).await;
    run.send(&ANY, &text("early")).await.unwrap();
    assert_eq!(run.result().await.unwrap(), "early");
    assert_eq!(calls.count(), 1);
}

// RVT-MSG-18: a receive is one record, its deadline included, so there is nothing to mark. What was taken in time stays taken.
#[tokio::test(start_paused = true)]
async fn a_timed_receive_that_got_its_message_is_one_record_and_its_deadline_is_gone() {
    let (world, calls) = (World::new(), Counter::default());
    let engine = engine(&world, &calls).await;
    let run = engine.start("a", timed()).await.unwrap();
    pass(10_000).await;
    run.send(&ANY, &text("in time")).await.unwrap();
    assert_eq!(run.result().await.unwrap(), Some(text("in time")));
    let history = run.history().await.unwrap();
    let outcomes = history
        .iter()
        .filter(|record| record.location.to_string() == "early")
        .filter(|record| !matches!(record.body, Body::Waiting(_)))
        .count();
    assert_eq!(outcomes, 1, "{history:?}");
    pass(4_000_000).await;
    assert_eq!(engine.in_memory(), 0);
}

// RVT-FIX-40
#[tokio::test(start_paused = true)]
async fn a_receive_without_time_takes_what_is_there_and_does_not_wait() {
    let (world, calls) = (World::new(), Counter::default());
    let engine = engine(&world, &calls).await;
    engine.send("a", &ANY, &text("there")).await.unwrap();
    assert_eq!(
        engine.run("a", polled()).await.unwrap(),
        Some(text("there"))
    );
    let before = tokio::time::Instant::now();
    assert_eq!(engine.run("b", polled()).await.unwrap(), None);
    assert!(before.elapsed().as_millis() < 100);
}

// RVT-FIX-31
#[tokio::test(start_paused = true)]
async fn a_message_wakes_the_branch_that_can_take_it() {
    let (world, calls) = (World::new(), Counter::default());
    let engine = engine(&world, &calls).await;
    let run = engine.start("a", either_or()).await.unwrap();
    pass(10_000).await;
    run.send(&ANY, &text("other")).await.unwrap();
    pass(10_000).await;
    assert_eq!(run.status().await.unwrap().waits_for, ["x"]);
    run.send(&X, &text("x")).await.unwrap();
    assert_eq!(run.result().await.unwrap(), (text("other"), text("x")));
}

// RVT-FIX-37
#[tokio::test(start_paused = true)]
async fn a_request_is_taken_by_one_of_two_branches() {
    let (world, calls) = (World::new(), Counter::default());
    let engine = engine(&world, &calls).await;
    let run = engine.start("a", two_askers()).await.unwrap();
    assert_eq!(run.request(&ASK, &10).await.unwrap(), 20);
    pass(10_000).await;
    assert_eq!(run.try_result().await.unwrap(), None);
    assert_eq!(run.request(&ASK, &100).await.unwrap(), 300);
    assert_eq!(run.result().await.unwrap(), (10, 100));
}

// RVT-FIX-36
#[tokio::test(start_paused = true)]
async fn a_message_whose_taking_could_not_be_stored_is_not_lost() {
    for fault in [Fault::Before, Fault::After] {
        let world = World::new();
        let store = Arc::new(FaultStore::over(&world.store, []));
        let build = async |store: Arc<FaultStore>| {
            let builder = Engine::builder().shared_store(store).clock(world.clock());
            builder.workflow(timed).build().await.unwrap()
        };
        let engine = build(store).await;
        let run = engine.start("a", timed()).await.unwrap();
        pass(10_000).await;
        drop((run, engine));
        let store = Arc::new(FaultStore::over(&world.store, [fault, fault]));
        let engine = build(Arc::clone(&store)).await;
        let run = engine.attach::<timed>("a").await.unwrap();
        run.send(&ANY, &text("kept")).await.unwrap();
        assert_eq!(run.result().await.unwrap(), Some(text("kept")));
        assert_eq!(store.left(), 0, "the store did fail");
    }
}

// RVT-FIX-44
#[tokio::test(start_paused = true)]
async fn what_is_sent_before_a_wait_is_sent_once_across_restarts() {
    let (mut world, calls) = (World::new(), Counter::default());
    let engine = engine(&world, &calls).await;
    let to = engine.start("to", collects()).await.unwrap().id().clone();
    engine.start("a", sends_and_waits(to)).await.unwrap();
    pass(1_000).await;
    drop(engine);
    for _ in 0..3 {
        world = world.crash();
        let engine = self::engine(&world, &calls).await;
        pass(1_500_000).await;
        drop(engine);
    }
    world = world.crash();
    let engine = self::engine(&world, &calls).await;
    let run = engine.attach::<sends_and_waits>("a").await.unwrap();
    run.result().await.unwrap();
    let run = engine.attach::<collects>("to").await.unwrap();
    assert_eq!(run.result().await.unwrap(), ["once"]);
}

// RVT-FIX-39: an answer and its record are one transaction, and asking again with the same key gives the same answer.
#[tokio::test(start_paused = true)]
async fn an_answer_is_given_once_whenever_the_process_dies() {
    for cut in 0..20 {
        let (world, calls) = (World::new(), Counter::default());
        let engine = engine(&world, &calls).await;
        let run = engine.start("a", two_askers()).await.unwrap();
        let asking = run.request_once(&ASK, "first", &10);
        // Cut off after so many turns of the executor.
        let _ = futures_in_turns(asking, cut).await;
        let world = world.crash();
        drop(engine);
        let engine = self::engine(&world, &calls).await;
        let Ok(run) = engine.attach::<two_askers>("a").await else {
            continue;
        };
        let again = run.request_once(&ASK, "first", &10).await.unwrap();
        assert!(again == 20 || again == 30);
        assert_eq!(run.request_once(&ASK, "first", &10).await.unwrap(), again);
        run.request_once(&ASK, "second", &7).await.unwrap();
        let (a, b) = run.result().await.unwrap();
        assert_eq!(a + b, 17, "each was taken once");
    }
}

/// What a future gives, if it does so within so many turns.
async fn futures_in_turns<F: Future>(future: F, turns: usize) -> Option<F::Output> {
    let mut future = std::pin::pin!(future);
    for _ in 0..=turns {
        let waker = std::task::Waker::noop();
        let polled = future
            .as_mut()
            .poll(&mut std::task::Context::from_waker(waker));
        if let std::task::Poll::Ready(value) = polled {
            return Some(value);
        }
        tokio::task::yield_now().await;
    }
    None
}

// UA-28
#[tokio::test]
async fn a_message_to_a_run_that_is_not_there_yet_is_kept_on_every_backend() {
    let folder = tempfile::tempdir().unwrap();
    let memory = Engine::builder().store(MemoryStore::new());
    let redb = Engine::builder().store(RedbStore::open(folder.path().join("runs")).unwrap());
    for builder in [memory, redb] {
        let engine = builder.workflow(polled).build().await.unwrap();
        engine.send("later", &ANY, &text("kept")).await.unwrap();
        assert_eq!(engine.in_memory(), 0, "nothing is waited for");
        let taken = engine.run("later", polled()).await.unwrap();
        assert_eq!(taken, Some(text("kept")));
    }
}

#[tokio::test(start_paused = true)]
async fn an_id_may_be_an_input_and_a_result_and_names_a_child_as_text_too() {
    let (world, calls) = (World::new(), Counter::default());
    let engine = engine(&world, &calls).await;
    let call = tells_a_child("other/timed".to_owned());
    let id = engine.run("a", call).await.unwrap();
    assert_eq!(id.as_str(), "a/timed");
    let run = engine.attach::<timed>("a/timed").await.unwrap();
    assert_eq!(run.result().await.unwrap(), Some(text("to an id")));
    // The other one is not there, and its message is kept.
    let call = tells_a_child("b/timed".to_owned());
    engine.run("other", call).await.unwrap();
    let run = engine.attach::<timed>("other/timed").await.unwrap();
    assert_eq!(run.result().await.unwrap(), Some(text("to a text")));
}
