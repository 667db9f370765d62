//! Channels: what is sent to a run, and received in it.

use std::time::Duration;

use workflow::{
    Channel, Clock, Engine, Failure, RunState, SendError, join, race, recv, send, sleep, step,
    workflow,
};
use workflow_tests::{Counter, World, pass};

static TEXT: Channel<String> = Channel::new("text");
static OTHER: Channel<String> = Channel::new("other");
static NUMBER: Channel<u32> = Channel::new("text");

#[step]
async fn noted(calls: &Counter, text: &str) -> String {
    calls.hit();
    format!("<{text}>")
}

#[workflow]
async fn one() -> Result<String, Failure> {
    recv!(first, TEXT).await
}

#[workflow]
async fn either() -> Result<String, Failure> {
    recv!(first, [TEXT, OTHER]).await
}

#[workflow]
async fn timed(millis: u64) -> Result<Option<String>, Failure> {
    recv!(first, &TEXT, timeout = Duration::from_millis(millis)).await
}

#[workflow]
async fn several(count: u32, seconds: u64) -> Result<Vec<String>, Failure> {
    let first = recv!(
        first,
        TEXT,
        count = count,
        timeout = Duration::from_secs(seconds)
    )
    .await?;
    let polled = recv!(polled, TEXT, timeout = "0s").await?;
    let mut all = first;
    all.push(format!("{}", polled.is_some()));
    Ok(all)
}

#[workflow]
async fn exact() -> Result<Vec<String>, Failure> {
    recv!(three, TEXT, exactly = 3, timeout = "1h").await
}

#[workflow]
async fn settle(#[state] calls: Counter) -> Result<String, Failure> {
    let won = race!(
        settle,
        paid = {
            let text = recv!(payment, TEXT).await?;
            // The other branch wins while this one works on its message.
            sleep!(think, "10s").await;
            text
        },
        late = {
            sleep!(window, "5s").await;
            "late".to_owned()
        }
    )
    .await?;
    let again = recv!(again, TEXT).await?;
    noted(&calls, &again).await?;
    Ok(format!("{} then {again}", won.branch))
}

#[workflow]
async fn both_wait() -> Result<(String, String), Failure> {
    join!(
        wait,
        a = recv!(m1, TEXT).await?,
        b = {
            sleep!(nap, "1h").await;
            recv!(m2, OTHER).await?
        }
    )
    .await
}

#[workflow]
async fn sender(to: String) -> Result<(), Failure> {
    send!(tell, &to, TEXT, "from a workflow".to_owned()).await?;
    send!(more, to, &TEXT, "and more".to_owned()).await
}

#[workflow]
async fn number() -> Result<u32, Failure> {
    recv!(first, NUMBER).await
}

async fn engine(world: &World, calls: &Counter) -> Engine {
    world
        .engine()
        .state(calls.clone())
        .workflow(one)
        .workflow(either)
        .workflow(timed)
        .workflow(several)
        .workflow(exact)
        .workflow(settle)
        .workflow(both_wait)
        .workflow(sender)
        .workflow(number)
        .build()
        .await
        .unwrap()
}

fn text(text: &str) -> String {
    text.to_owned()
}

// RVT-MSG-01 RVT-MSG-15
#[tokio::test(start_paused = true)]
async fn a_run_waits_out_of_memory_and_a_message_wakes_it() {
    let (world, calls) = (World::new(), Counter::default());
    let engine = engine(&world, &calls).await;
    let run = engine.start("a", one()).await.unwrap();
    pass(5_000).await;
    let status = run.status().await.unwrap();
    assert_eq!(status.state, RunState::Waiting);
    assert_eq!(status.waits_for, ["text"]);
    assert_eq!(engine.in_memory(), 0);
    run.send(&TEXT, &text("hello")).await.unwrap();
    assert_eq!(run.result().await.unwrap(), "hello");
    let ended = run.send(&TEXT, &text("again")).await.unwrap_err();
    assert!(matches!(
        ended,
        SendError::Ended {
            state: RunState::Completed,
            ..
        }
    ));
}

// RVT-MSG-02
#[tokio::test(start_paused = true)]
async fn several_channels_are_waited_for_in_the_order_in_which_they_are_named() {
    let (world, calls) = (World::new(), Counter::default());
    let engine = engine(&world, &calls).await;
    let run = engine.start("a", either()).await.unwrap();
    pass(5_000).await;
    assert_eq!(run.status().await.unwrap().waits_for, ["text", "other"]);
    run.send(&OTHER, &text("second")).await.unwrap();
    assert_eq!(run.result().await.unwrap(), "second");
}

// What was sent before the start is in the inbox from the run's first instant.
#[tokio::test(start_paused = true)]
async fn a_receive_that_only_looks_sees_what_was_sent_before_the_start() {
    let (world, calls) = (World::new(), Counter::default());
    let engine = engine(&world, &calls).await;
    let hello = "hello".to_owned();
    engine.send("early", &TEXT, &hello).await.unwrap();
    assert_eq!(engine.run("early", timed(0)).await.unwrap(), Some(hello));
    assert_eq!(engine.run("none", timed(0)).await.unwrap(), None);
}

// RVT-MSG-03
#[tokio::test(start_paused = true)]
async fn a_message_to_a_run_that_was_not_started_is_kept_for_it() {
    let (world, calls) = (World::new(), Counter::default());
    let engine = engine(&world, &calls).await;
    engine.send("a", &TEXT, &text("early")).await.unwrap();
    let world = world.crash();
    let engine = self::engine(&world, &calls).await;
    assert_eq!(engine.run("a", one()).await.unwrap(), "early");
}

// RVT-MSG-08 RVT-MSG-09 RVT-MSG-19
#[tokio::test(start_paused = true)]
async fn a_timed_receive_gives_nothing_when_its_time_is_over_also_after_a_restart() {
    let (world, calls) = (World::new(), Counter::default());
    let engine = engine(&world, &calls).await;
    assert_eq!(engine.run("a", timed(50)).await.unwrap(), None);
    let run = engine.start("b", timed(60_000)).await.unwrap();
    pass(10_000).await;
    assert_eq!(engine.in_memory(), 0);
    let world = world.crash();
    let engine = self::engine(&world, &calls).await;
    drop(run);
    let run = engine.attach::<timed>("b").await.unwrap();
    pass(40_000).await;
    assert_eq!(run.try_result().await.unwrap(), None);
    pass(20_000).await;
    assert_eq!(run.try_result().await.unwrap(), Some(None));
    engine.send("c", &TEXT, &text("here")).await.unwrap();
    assert_eq!(
        engine.run("c", timed(1_000)).await.unwrap(),
        Some(text("here"))
    );
}

// RVT-MSG-07 RVT-MSG-11 RVT-MSG-10 RVT-MSG-17
#[tokio::test(start_paused = true)]
async fn a_batch_takes_what_is_there_in_order_and_does_not_wait_to_be_filled() {
    let (world, calls) = (World::new(), Counter::default());
    let engine = engine(&world, &calls).await;
    for (id, count, expected) in [
        ("two", 2, vec!["1", "2", "true"]),
        ("ten", 10, vec!["1", "2", "3", "false"]),
        ("none", 0, vec!["1", "true"]),
    ] {
        for message in ["1", "2", "3"] {
            engine.send(id, &TEXT, &text(message)).await.unwrap();
        }
        assert_eq!(engine.run(id, several(count, 5)).await.unwrap(), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn an_exact_batch_waits_for_all_and_is_content_at_its_deadline() {
    let (world, calls) = (World::new(), Counter::default());
    let engine = engine(&world, &calls).await;
    let run = engine.start("a", exact()).await.unwrap();
    for message in ["1", "2"] {
        run.send(&TEXT, &text(message)).await.unwrap();
    }
    pass(60_000).await;
    assert_eq!(run.try_result().await.unwrap(), None);
    run.send(&TEXT, &text("3")).await.unwrap();
    assert_eq!(run.result().await.unwrap(), ["1", "2", "3"]);
    let run = engine.start("b", exact()).await.unwrap();
    run.send(&TEXT, &text("1")).await.unwrap();
    assert_eq!(run.result().await.unwrap(), ["1"]);
}

// U9
#[tokio::test(start_paused = true)]
async fn a_branch_that_loses_gives_its_message_back_at_every_crash() {
    for cut in [1_000, 4_000, 5_001, 6_000, 9_000] {
        let (world, calls) = (World::new(), Counter::default());
        let engine = engine(&world, &calls).await;
        let run = engine.start("a", settle()).await.unwrap();
        run.send(&TEXT, &text("paid")).await.unwrap();
        pass(cut).await;
        let world = world.crash();
        drop((engine, run));
        let engine = self::engine(&world, &calls).await;
        let run = engine.attach::<settle>("a").await.unwrap();
        assert_eq!(
            run.result().await.unwrap(),
            "late then paid",
            "cut at {cut}"
        );
        assert_eq!(calls.count(), 1);
    }
}

// RVT-JOIN-08 RVT-RACE-11
#[tokio::test(start_paused = true)]
async fn branches_wait_for_the_earliest_of_their_times_and_all_of_their_channels() {
    let (world, calls) = (World::new(), Counter::default());
    let engine = engine(&world, &calls).await;
    let start = world.clock().now();
    let run = engine.start("a", both_wait()).await.unwrap();
    pass(5_000).await;
    let status = run.status().await.unwrap();
    assert_eq!(status.waits_for, ["text"]);
    assert_eq!(status.wake_at.unwrap().since(start).as_secs(), 60 * 60);
    run.send(&OTHER, &text("b")).await.unwrap();
    run.send(&TEXT, &text("a")).await.unwrap();
    assert_eq!(run.result().await.unwrap(), (text("a"), text("b")));
}

#[tokio::test(start_paused = true)]
async fn a_workflow_sends_once_however_often_it_is_cut_off() {
    let (world, calls) = (World::new(), Counter::default());
    let engine = engine(&world, &calls).await;
    let receiver = engine.start("to", several(10, 3600)).await.unwrap();
    engine.run("from", sender("to".into())).await.unwrap();
    let world = world.crash();
    drop((engine, receiver));
    let engine = self::engine(&world, &calls).await;
    let receiver = engine.attach::<several>("to").await.unwrap();
    let all = receiver.result().await.unwrap();
    assert_eq!(all[0], "from a workflow");
    assert!(all.len() <= 3, "{all:?}");
}

#[tokio::test(start_paused = true)]
async fn a_message_with_a_key_is_delivered_once() {
    let (world, calls) = (World::new(), Counter::default());
    let engine = engine(&world, &calls).await;
    for _ in 0..3 {
        engine
            .send_once("a", &TEXT, "event-7", &text("once"))
            .await
            .unwrap();
    }
    assert_eq!(
        engine.run("a", several(9, 1)).await.unwrap(),
        ["once", "false"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_message_that_does_not_decode_goes_to_the_dead_letters_and_the_wait_goes_on() {
    let (world, calls) = (World::new(), Counter::default());
    let engine = engine(&world, &calls).await;
    let run = engine.start("a", number()).await.unwrap();
    run.send(&TEXT, &text("no number")).await.unwrap();
    pass(3_000).await;
    run.send(&NUMBER, &7).await.unwrap();
    assert_eq!(run.result().await.unwrap(), 7);
    let dead = run.dead_letters(0, 10).await.unwrap();
    assert_eq!(dead.len(), 1);
    assert!(
        dead[0].reason.contains("invalid type"),
        "{}",
        dead[0].reason
    );
}
