//! Runs that are stored now and begun later.

use std::time::Duration;

use workflow::replay::Body;
use workflow::store::RunFilter;
use workflow::{
    CancelError, Channel, Engine, EngineBuilder, Failure, Limit, Rate, RunState, Timestamp, race,
    recv, sleep, step, workflow,
};
use workflow_tests::{Counter, World, pass};

use crate::either::Either;

const HOUR: Duration = Duration::from_hours(1);
const MILLIS: u64 = 3_600_000;

static GO: Channel<u32> = Channel::new("go");

#[step]
async fn tick(calls: &Counter) -> usize {
    calls.hit()
}

#[workflow]
async fn remind(name: String, #[state] calls: Counter) -> Result<String, Failure> {
    tick(&calls).await?;
    Ok(name)
}

#[workflow]
async fn listens() -> Result<u32, Failure> {
    recv!(go, GO, timeout = "0s", count = 9).await.map(|all| {
        let all: Vec<u32> = all;
        all.into_iter().sum()
    })
}

#[workflow]
async fn parent(name: String) -> Result<String, Failure> {
    let name = remind(name).delay(HOUR).await?;
    #[step(name = "later")]
    remind("later".to_owned()).delay(HOUR).detach().await?;
    Ok(name)
}

fn with(builder: EngineBuilder, calls: &Counter) -> EngineBuilder {
    builder
        .workflow(remind)
        .workflow(listens)
        .workflow(parent)
        .state(calls.clone())
}

fn call(name: &str) -> workflow::Call<remind> {
    remind(name.to_owned())
}

async fn state(engine: &Engine, id: &str) -> RunState {
    engine.status(id).await.unwrap().state
}

#[tokio::test(start_paused = true)]
async fn a_delayed_run_waits_in_no_memory_and_says_until_when() {
    for either in Either::each() {
        let calls = Counter::default();
        let engine = with(either.engine(), &calls).build().await.unwrap();
        let run = engine.start("a", call("x").delay(HOUR)).await.unwrap();
        let status = run.status().await.unwrap();
        let at = status.created_at.after(HOUR);
        assert_eq!((status.state, status.records), (RunState::Waiting, 1));
        assert_eq!((status.wake_at, status.not_before), (Some(at), Some(at)));
        let page = engine.list(&RunFilter::default()).await.unwrap();
        assert_eq!(page.rows[0].not_before, Some(at));
        pass(MILLIS - 1).await;
        assert_eq!((engine.in_memory(), calls.count()), (0, 0));
        assert_eq!(run.result().await.unwrap(), "x");
        let status = run.status().await.unwrap();
        assert_eq!(
            (status.finished_at, status.not_before),
            (Some(at), Some(at))
        );
        engine.shutdown(Duration::ZERO).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_delay_goes_on_while_the_process_is_dead() {
    for dead in [0, MILLIS / 2, 3 * MILLIS] {
        for either in Either::each() {
            let calls = Counter::default();
            let (early, late) = (format!("early-{dead}"), format!("late-{dead}"));
            let engine = with(either.engine(), &calls).build().await.unwrap();
            engine.start(&*early, call("x").delay(HOUR)).await.unwrap();
            engine
                .start(&*late, call("y").delay(9 * HOUR))
                .await
                .unwrap();
            pass(MILLIS / 4).await;
            let left = either.crash();
            drop(engine);
            pass(dead).await;
            let engine = with(left.engine(), &calls).build().await.unwrap();
            pass(1).await;
            assert_eq!(calls.count(), usize::from(dead > MILLIS));
            pass(MILLIS).await;
            assert_eq!(calls.count(), 1);
            assert_eq!(state(&engine, &early).await, RunState::Completed);
            assert_eq!(state(&engine, &late).await, RunState::Waiting);
            let run = engine.attach::<remind>(&*late).await.unwrap();
            assert_eq!(run.result().await.unwrap(), "y");
            let status = run.status().await.unwrap();
            assert_eq!(status.finished_at, Some(status.created_at.after(9 * HOUR)));
            drop(engine);
            pass(1).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_may_be_cancelled_before_it_begins() {
    for undo in [false, true] {
        for either in Either::each() {
            let calls = Counter::default();
            let id = format!("a-{undo}");
            let engine = with(either.engine(), &calls).build().await.unwrap();
            let run = engine.start(&*id, call("x").delay(HOUR)).await.unwrap();
            let cancel = run.cancel();
            if undo {
                cancel.and_undo().await.unwrap();
            } else {
                cancel.await.unwrap();
            }
            let result = run.result().await;
            assert!(matches!(result, Err(workflow::Error::Cancelled(_))));
            assert!(matches!(run.cancel().await, Err(CancelError::Ended { .. })));
            pass(2 * MILLIS).await;
            assert_eq!((calls.count(), engine.in_memory()), (0, 0));
            assert_eq!(state(&engine, &id).await, RunState::Cancelled);
            engine.shutdown(Duration::ZERO).await.unwrap();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_second_start_joins_and_what_it_says_of_the_time_counts_for_nothing() {
    let (world, calls) = (World::new(), Counter::default());
    let engine = with(world.engine(), &calls).build().await.unwrap();
    engine.start("a", call("x").delay(HOUR)).await.unwrap();
    let first = engine.status("a").await.unwrap();
    for again in [
        call("x"),
        call("x").delay(2 * HOUR).priority(7),
        call("x").not_before(Timestamp::MIN),
    ] {
        engine.start("a", again).await.unwrap();
        assert_eq!(engine.status("a").await.unwrap(), first);
    }
    let other = engine.start("a", call("y").delay(HOUR)).await;
    assert!(matches!(
        other,
        Err(workflow::StartError::OtherInput { .. })
    ));
    // Whoever runs it waits for its time, too.
    assert_eq!(engine.run("a", call("x")).await.unwrap(), "x");
    let ended = engine.status("a").await.unwrap();
    assert_eq!(ended.finished_at, first.not_before);
    assert_eq!(calls.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_time_that_is_not_ahead_is_now() {
    let (world, calls) = (World::new(), Counter::default());
    let engine = with(world.engine(), &calls).build().await.unwrap();
    let past = std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(9);
    for (id, call) in [
        ("a", call("x").delay(Duration::ZERO)),
        ("b", call("x").not_before(past)),
        (
            "c",
            call("x").delay(Duration::ZERO).not_before(Timestamp::MIN),
        ),
    ] {
        engine.run(id, call).await.unwrap();
        let status = engine.status(id).await.unwrap();
        assert_eq!((status.not_before, status.records), (None, 3));
        assert_eq!(status.finished_at, Some(status.created_at));
    }
    // Of two the later one counts, in whatever order they are said.
    let both = call("x").not_before(Timestamp::MIN).delay(HOUR);
    let both = engine
        .start("e", both)
        .await
        .unwrap()
        .status()
        .await
        .unwrap();
    assert_eq!(both.not_before, Some(both.created_at.after(HOUR)));
    let both = call("x")
        .not_before(both.created_at.after(2 * HOUR))
        .delay(HOUR);
    let both = engine
        .start("f", both)
        .await
        .unwrap()
        .status()
        .await
        .unwrap();
    assert_eq!(both.not_before, Some(both.created_at.after(2 * HOUR)));
    // One that never comes is as good as any.
    let run = engine.start("d", call("x").delay(Duration::MAX)).await;
    pass(100 * MILLIS).await;
    let status = run.unwrap().status().await.unwrap();
    assert_eq!(
        (status.state, status.wake_at),
        (RunState::Waiting, Some(Timestamp::MAX))
    );
}

#[tokio::test(start_paused = true)]
async fn nothing_begins_a_run_before_its_time() {
    let (world, calls) = (World::new(), Counter::default());
    let engine = with(world.engine(), &calls).build().await.unwrap();
    engine.start("a", listens().delay(HOUR)).await.unwrap();
    for number in [1, 2] {
        engine.send("a", &GO, &number).await.unwrap();
        engine.resume("a").await.unwrap();
        pass(1_000).await;
        assert_eq!(engine.status("a").await.unwrap().records, 1);
        assert_eq!(engine.in_memory(), 0);
    }
    assert_eq!(engine.run("a", listens()).await.unwrap(), 3);
    let status = engine.status("a").await.unwrap();
    assert_eq!(status.finished_at, status.not_before);
}

#[tokio::test(start_paused = true)]
async fn a_child_may_be_delayed_and_its_parent_waits_in_no_memory() {
    for either in Either::each() {
        let calls = Counter::default();
        let engine = with(either.engine(), &calls).build().await.unwrap();
        let run = engine.start("p", parent("x".to_owned())).await.unwrap();
        pass(10_000).await;
        assert_eq!(engine.in_memory(), 0);
        let child = engine.status("p/remind").await.unwrap();
        assert_eq!((child.state, child.records), (RunState::Waiting, 1));
        let left = either.crash();
        drop((run, engine));
        pass(1).await;
        let engine = with(left.engine(), &calls).build().await.unwrap();
        let run = engine.attach::<parent>("p").await.unwrap();
        assert_eq!(run.result().await.unwrap(), "x");
        let ended = engine.status("p/remind").await.unwrap();
        assert_eq!(ended.finished_at, child.not_before);
        let detached = engine.list(&RunFilter::default()).await.unwrap();
        let detached = detached.rows.last().unwrap().clone();
        assert_eq!(detached.state, RunState::Waiting);
        pass(MILLIS + 1).await;
        assert_eq!(calls.count(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn a_start_by_name_may_be_delayed() {
    let (world, calls) = (World::new(), Counter::default());
    let engine = with(world.engine(), &calls).build().await.unwrap();
    let start = engine.start_json("a", "remind", r#"{"name":"x"}"#);
    let run = start.delay(HOUR).priority(3).await.unwrap();
    let status = run.status().await.unwrap();
    assert_eq!(status.not_before, Some(status.created_at.after(HOUR)));
    assert_eq!(status.priority, 3);
    assert_eq!(run.result().await.unwrap().get(), "\"x\"");
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_not_yet_to_begin_holds_no_slot_and_is_not_ahead_of_anybody() {
    for limit in [Limit::unfinished(1), Limit::working(1)] {
        for either in Either::each() {
            let calls = Counter::default();
            let build = |either: &Either| with(either.engine(), &calls).limit(remind, limit);
            let engine = build(&either).build().await.unwrap();
            engine.start("late", call("x").delay(HOUR)).await.unwrap();
            assert_eq!(engine.status("late").await.unwrap().queued, None);
            engine.run("now", call("x")).await.unwrap();
            let left = either.crash();
            drop(engine);
            pass(1).await;
            let engine = build(&left).build().await.unwrap();
            engine.run("next", call("x")).await.unwrap();
            assert_eq!(calls.count(), 2);
            let late = engine.attach::<remind>("late").await.unwrap();
            late.result().await.unwrap();
            let history = late.history().await.unwrap();
            assert!(matches!(history[0].body, Body::Begun(_)));
            engine.shutdown(Duration::ZERO).await.unwrap();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_operator_without_workflows_stores_no_less() {
    let (world, calls) = (World::new(), Counter::default());
    let operator = with(world.engine(), &calls).drives_nothing();
    let operator = operator.build().await.unwrap();
    operator.start("a", call("x").delay(HOUR)).await.unwrap();
    operator.start("b", call("x").priority(9)).await.unwrap();
    let (a, b) = (operator.status("a").await, operator.status("b").await);
    assert_eq!(a.unwrap().state, RunState::Waiting);
    assert_eq!(b.unwrap().priority, 9);
    drop(operator);
    pass(1).await;
    let engine = with(world.engine(), &calls).build().await.unwrap();
    pass(1_000).await;
    assert_eq!(calls.count(), 1);
    pass(MILLIS).await;
    assert_eq!(calls.count(), 2);
    assert_eq!(state(&engine, "a").await, RunState::Completed);
}

#[tokio::test(start_paused = true)]
async fn one_that_is_taken_back_before_it_begins_begins_at_its_time() {
    for either in Either::each() {
        let calls = Counter::default();
        let engine = with(either.engine(), &calls).build().await.unwrap();
        // Longer than deadlines are read ahead.
        let run = engine
            .start("a", call("x").delay(900 * HOUR))
            .await
            .unwrap();
        engine.rewind("a", "").await.unwrap();
        pass(MILLIS).await;
        assert_eq!((engine.in_memory(), calls.count()), (0, 0));
        let left = either.crash();
        drop((run, engine));
        pass(1).await;
        let engine = with(left.engine(), &calls).build().await.unwrap();
        pass(899 * MILLIS).await;
        let status = engine.status("a").await.unwrap();
        assert_eq!(status.state, RunState::Completed);
        assert_eq!(status.finished_at, status.not_before);
        drop(engine);
        pass(1).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_child_that_was_not_begun_is_never_begun_once_its_parent_does_not_wait_for_it() {
    #[workflow]
    async fn hurries(by: u32) -> Result<String, Failure> {
        let won = race!(
            first,
            late = remind("late".to_owned()).delay(HOUR).await?,
            here = {
                sleep!(patience, "10s").await;
                by.to_string()
            }
        )
        .await?;
        Ok(won.value)
    }
    for either in Either::each() {
        let calls = Counter::default();
        let builder = with(either.engine(), &calls).workflow(hurries);
        let builder = builder.rate(remind, Rate::per(1, HOUR));
        let limited = builder.limit(remind, Limit::unfinished(1));
        let engine = limited.build().await.unwrap();
        for how in 0..3 {
            let id = format!("p{how}");
            let run = engine.start(&*id, hurries(how)).await.unwrap();
            pass(1_000).await;
            match how {
                0 => assert_eq!(run.result().await.unwrap(), "0"),
                1 => run.cancel().await.unwrap(),
                _ => run.cancel().and_undo().await.unwrap(),
            }
            pass(1_000).await;
            let rows = engine.list(&RunFilter::default()).await.unwrap().rows;
            let children = rows.iter().filter(|row| row.parent.is_some());
            let states: Vec<_> = children.map(|row| row.state).collect();
            assert_eq!(states.len(), how as usize + 1);
            assert!(states.iter().all(|state| *state == RunState::Cancelled));
            pass(2 * MILLIS).await;
            assert_eq!(calls.count(), how as usize);
            // They left nothing taken.
            engine.run(format!("free{how}"), call("x")).await.unwrap();
            assert_eq!(calls.count(), how as usize + 1);
        }
        engine.shutdown(Duration::ZERO).await.unwrap();
    }
}
