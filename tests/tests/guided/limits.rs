//! Time limits of stages, and what goes on after them.

use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use workflow::guided::{FailingKind, Flow, Refused, Stage, Status, stage};
use workflow::{Failure, Fragment, fragment, recv, sleep, step};
use workflow_tests::{World, pass};

use super::{Effect, Form, engine, flow, have, killed, started, takes, trace};

fn limited(
    millis: u64,
    body: impl Fn(Stage<Form>) -> Fragment<'static, Result<(), Failure>> + Send + Sync + 'static,
) -> Flow<Form> {
    flow([
        stage("a").start().to("b"),
        stage("b")
            .body(body)
            .timeout(Duration::from_millis(millis))
            .to("c"),
        stage("c").terminal(),
    ])
}

fn timed_out(refused: Result<workflow::guided::Moved, Refused>) -> String {
    let Err(Refused::Failed(failing)) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(failing.kind, FailingKind::TimedOut);
    failing.text
}

// GDE-TMO-01 GDE-TMO-10
#[tokio::test(start_paused = true)]
async fn a_body_that_takes_too_long_fails_its_stage_and_may_be_tried_again_at_once() {
    let (world, flow) = (World::new(), limited(50, takes("work", 80)));
    let guide = started(&world, &flow).await;
    let text = timed_out(guide.next().await);
    assert!(text.contains("`b`") && text.contains("50ms"), "{text}");
    let view = guide.view();
    assert_eq!((view.status, view.busy), (Status::Failed, false));
    let stored = engine(&world.crash(), &flow).await;
    let stored = stored.guided(&flow, "g").open().await.unwrap().unwrap();
    assert_eq!(*stored.view(), *view);
    timed_out(guide.retry().await);
    assert_eq!(guide.view().revision, view.revision + 2);
}

#[fragment]
async fn slow_in_all() -> Result<(), Failure> {
    let effect = |name: &str| Effect {
        name: name.to_owned(),
        millis: 40,
        fails: false,
    };
    have(effect("one")).await?;
    #[step(name = "two", retries = 0)]
    have(effect("two")).await?;
    #[step(name = "three", retries = 0)]
    have(effect("three")).await?;
    Ok(())
}

// GDE-TMO-06 GDE-RTY-02: what ended in time is kept.
#[tokio::test(start_paused = true)]
async fn one_limit_holds_for_all_that_a_body_does() {
    let guide = started(&World::new(), &limited(100, |_| slow_in_all())).await;
    timed_out(guide.next().await);
    assert_eq!(trace().take(), ["one", "two", "three"]);
    guide.retry().await.unwrap();
    assert_eq!(trace().take(), ["three"]);
}

// GDE-TMO-07
#[tokio::test(start_paused = true)]
async fn a_limit_of_zero_is_none() {
    let guide = started(&World::new(), &limited(0, takes("work", 1_000_000))).await;
    guide.next().await.unwrap();
}

static ANSWER: workflow::Channel<u32> = workflow::Channel::new("answer");

#[fragment]
async fn waits_for_an_answer() -> Result<(), Failure> {
    let answer = recv!(answer, ANSWER).await?;
    trace().say(answer.to_string());
    sleep!(nap, "1s").await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_limit_passes_while_nobody_drives_the_guide() {
    let flow = limited(3_600_000, |_| waits_for_an_answer());
    let world = World::new();
    let guide = started(&world, &flow).await;
    let moving = tokio::spawn(guide.next().into_future());
    pass(1_800_000).await;
    moving.abort();
    let world = killed(&world, guide).await;
    pass(1_000_000).await;
    let engine = engine(&world, &flow).await;
    let guide = engine.guided(&flow, "g").open().await.unwrap().unwrap();
    assert_eq!(guide.view().status, Status::Working);
    // It left memory, and its limit brings it back.
    pass(60_000).await;
    assert_eq!(engine.in_memory(), 0);
    pass(800_000).await;
    assert_eq!(guide.view().status, Status::Failed);
    assert_eq!(
        guide.view().failure.as_ref().unwrap().kind,
        FailingKind::TimedOut
    );
    assert_eq!(trace().take(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_body_in_time_takes_a_message_and_a_nap() {
    let flow = limited(3_600_000, |_| waits_for_an_answer());
    let world = World::new();
    let engine = engine(&world, &flow).await;
    let guide = engine.guided(&flow, "g").start(Form::default());
    let guide = guide.await.unwrap();
    let moving = tokio::spawn(guide.next().into_future());
    pass(60_000).await;
    engine.send("g", &ANSWER, &7).await.unwrap();
    moving.await.unwrap().unwrap();
    assert_eq!(trace().take(), ["7"]);
    pass(7_200_000).await;
    assert_eq!(guide.view().status, Status::Waiting);
}

static HELD: Mutex<Option<Receiver<()>>> = Mutex::new(None);

#[step(blocking, retries = 0, timeout = "none")]
fn hold() -> u32 {
    let held = HELD.lock().unwrap().take();
    // The first time it waits until it is let go of, whatever anybody wants.
    held.map_or(2, |held| {
        let _ = held.recv();
        1
    })
}

#[fragment]
async fn holds() -> Result<(), Failure> {
    hold().await?;
    Ok(())
}

// GDE-TMO-02 GDE-TMO-03: in real time, for a thread does not care about any other.
#[tokio::test(flavor = "multi_thread")]
async fn a_thread_that_ignores_the_limit_holds_back_the_next_try_until_it_ended() {
    let (let_go, held) = channel();
    *HELD.lock().unwrap() = Some(held);
    let flow = limited(20, |_| holds());
    let engine = workflow::Engine::builder()
        .store(workflow::MemoryStore::new())
        .guided(&flow);
    let engine = engine.build().await.unwrap();
    let guide = engine.guided(&flow, "g").start(Form::default());
    let guide = guide.await.unwrap();
    timed_out(guide.next().await);
    assert_eq!(guide.retry().await, Err(Refused::StillStopping));
    assert_eq!(guide.back().await, Err(Refused::StillStopping));
    assert_eq!(guide.rollback().await, Err(Refused::StillStopping));
    guide.edit(|form| form.number = 1).await.unwrap();
    let_go.send(()).unwrap();
    let mut tries = 0;
    while let Err(refused) = guide.retry().await {
        assert_eq!(refused, Refused::StillStopping);
        tokio::task::yield_now().await;
        tries += 1;
        assert!(tries < 1_000_000);
    }
    assert_eq!(guide.view().status, Status::Waiting);
}

// GDE-TMO-07: what a stage does when it is left, and the exit guard, have a limit of their own.
#[tokio::test(start_paused = true)]
async fn hooks_have_a_limit_of_their_own() {
    let flow = super::described([
        stage("a").start().leave(takes("leaving", 80)).to("b"),
        stage("b").body(takes("work", 80)).to("c"),
        stage("c").terminal(),
    ]);
    let flow = flow
        .hooks_timeout(Duration::from_millis(50))
        .exit_guard_async(|form: Form| async move {
            pass(u64::from(form.number)).await;
            true
        });
    let guide = started(&World::new(), &flow.build().unwrap()).await;
    let Err(Refused::Leave(failing)) = guide.next().await else {
        panic!("{:?}", guide.view());
    };
    assert_eq!(failing.kind, FailingKind::TimedOut);
    assert!(
        failing.text.contains("`a`") && failing.text.contains("50ms"),
        "{failing}"
    );
    let view = guide.view();
    assert_eq!((view.status, view.busy), (Status::Waiting, false));
    guide.edit(|form| form.number = 80).await.unwrap();
    let late = guide.cancel().await;
    assert!(
        matches!(&late, Err(Refused::Late(text)) if text.contains("50ms")),
        "{late:?}"
    );
    guide.edit(|form| form.number = 10).await.unwrap();
    guide.cancel().await.unwrap();
}
