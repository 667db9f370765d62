//! Requests: messages that are answered.

use workflow::{Channel, Engine, Failure, RequestError, recv, step, workflow};
use workflow_tests::{Counter, World, pass};

static ADD: Channel<(u32, u32), u32> = Channel::new("add");

#[step]
async fn sum(calls: &Counter, numbers: (u32, u32)) -> u32 {
    calls.hit();
    numbers.0 + numbers.1
}

#[workflow]
async fn adder(turns: u32, answers: bool, #[state] calls: Counter) -> Result<u32, Failure> {
    let mut total = 0;
    'turns: for _ in 0..turns {
        let request = recv!(next, ADD).await?;
        let answer = sum(&calls, *request.value()).await?;
        total += answer;
        if answers {
            request.reply(answer).await?;
        }
    }
    Ok(total)
}

async fn engine(world: &World, calls: &Counter) -> Engine {
    let builder = world.engine().state(calls.clone()).workflow(adder);
    builder.build().await.unwrap()
}

// RVT-MSG-04 RVT-HOST-01
#[tokio::test(start_paused = true)]
async fn a_request_waits_for_its_answer() {
    let (world, calls) = (World::new(), Counter::default());
    let engine = engine(&world, &calls).await;
    let run = engine.start("a", adder(2, true)).await.unwrap();
    assert_eq!(run.request(&ADD, &(1, 2)).await.unwrap(), 3);
    pass(10_000).await;
    assert_eq!(engine.in_memory(), 0);
    assert_eq!(run.request(&ADD, &(3, 4)).await.unwrap(), 7);
    assert_eq!(run.result().await.unwrap(), 10);
}

#[tokio::test(start_paused = true)]
async fn a_request_made_again_with_its_key_gets_the_first_answer_also_after_a_crash() {
    let (world, calls) = (World::new(), Counter::default());
    let engine = engine(&world, &calls).await;
    let run = engine.start("a", adder(9, true)).await.unwrap();
    assert_eq!(run.request_once(&ADD, "k", &(1, 2)).await.unwrap(), 3);
    let world = world.crash();
    drop((run, engine));
    let engine = self::engine(&world, &calls).await;
    let run = engine.attach::<adder>("a").await.unwrap();
    assert_eq!(run.request_once(&ADD, "k", &(5, 5)).await.unwrap(), 3);
    assert_eq!(calls.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_not_answered_is_told_so_when_the_run_ends() {
    let (world, calls) = (World::new(), Counter::default());
    let engine = engine(&world, &calls).await;
    let run = engine.start("a", adder(1, false)).await.unwrap();
    let error = run.request(&ADD, &(1, 2)).await.unwrap_err();
    assert!(matches!(error, RequestError::NoReply { .. }), "{error}");
}

/// As a handler does that knows an id only.
#[tokio::test(start_paused = true)]
async fn a_run_is_started_again_for_each_request_and_answers_one_after_the_other() {
    let (world, calls) = (World::new(), Counter::default());
    let engine = engine(&world, &calls).await;
    for n in 1..=20 {
        let run = engine.start("a", adder(20, true)).await.unwrap();
        assert_eq!(run.request(&ADD, &(1, n)).await.unwrap(), n + 1);
    }
    assert_eq!(calls.count(), 20);
}
