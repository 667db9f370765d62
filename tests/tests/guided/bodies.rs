//! Bodies of stages: durable code, cut off and tried again.

use std::time::Duration;

use workflow::guided::{
    Failing, FailingKind, Interrupt, Moved, Refused, Revisit, Stage, Status, View, stage,
};
use workflow::{Backoff, Failure, Fragment, fragment, join, recv, sleep, step};
use workflow_tests::{SlowStore, World, late, pass};

use super::{Effect, Form, engine, flow, have, history, killed, one, rested, started, trace};

fn effect(name: &str, millis: u64) -> Effect {
    Effect {
        name: name.to_owned(),
        millis,
        fails: false,
    }
}

/// Two effects, the second of which takes its time.
#[fragment]
async fn two(number: u32) -> Result<(), Failure> {
    have(effect("first", 0)).await?;
    #[step(name = "second", retries = 0, timeout = "none")]
    have(effect(&format!("second of {number}"), 100)).await?;
    Ok(())
}

#[fragment]
async fn waits() -> Result<(), Failure> {
    have(effect("before", 0)).await?;
    sleep!(night, "8h").await;
    #[step(name = "after", retries = 0)]
    have(effect("after", 0)).await?;
    Ok(())
}

fn with(
    body: impl Fn(Stage<Form>) -> Fragment<'static, Result<(), Failure>> + Send + Sync + 'static,
) -> workflow::guided::Flow<Form> {
    flow([
        stage("a").start().to("b"),
        stage("b").body(body).to("c"),
        stage("c").terminal(),
    ])
}

// GDE-PER-05 GDE-RES-04
#[tokio::test(start_paused = true)]
async fn a_body_that_was_cut_off_is_shown_as_interrupted_and_not_run_again_unasked() {
    let (world, flow) = (World::new(), with(|stage| two(stage.state().number)));
    let guide = started(&world, &flow).await;
    let moving = tokio::spawn(guide.next().into_future());
    pass(10).await;
    assert_eq!(trace().take(), ["first", "second of 0"]);
    moving.abort();
    let world = killed(&world, guide).await;
    let engine = engine(&world, &flow).await;
    let guide = engine.guided(&flow, "g").open().await.unwrap().unwrap();
    rested(&guide).await;
    let view = guide.view();
    assert_eq!(view.status, Status::Failed);
    assert_eq!(view.at.as_ref().unwrap(), &"b");
    assert_eq!(history(&view), ["a", "b"]);
    let Some(Failing { kind, at, .. }) = &view.failure else {
        panic!("{view:?}");
    };
    assert_eq!(
        (*kind, &at[..]),
        (FailingKind::Interrupted, &["b[1]/second".to_owned()][..])
    );
    assert!(view.actions.retry && !view.actions.next);
    pass(1_000).await;
    assert_eq!(trace().take(), [""; 0]);

    assert!(matches!(guide.resume().await, Ok(Moved::To(stage)) if stage == "b"));
    assert_eq!(guide.resume().await, Err(Refused::NothingToResume));
    // GDE-RTY-07: what had succeeded is not had again.
    assert_eq!(trace().take(), ["second of 0"]);
    assert_eq!(guide.view().status, Status::Waiting);
}

// What the crash took was only the word that it had ended.
#[tokio::test(start_paused = true)]
async fn a_body_whose_steps_had_all_ended_was_not_interrupted() {
    let (world, flow) = (World::new(), with(|stage| two(stage.state().number)));
    let store = SlowStore::over(&world.store);
    let building = workflow::Engine::builder().store(store.clone());
    let building = building.clock(world.clock()).guided(&flow).build();
    let guide = building.await.unwrap().guided(&flow, "g");
    let guide = guide.start(Form::default()).await.unwrap();
    pass(10).await;
    // The position, the first step, and the second, whose answer never comes.
    late(&store.appends, [0, 0, 10_000]);
    let moving = tokio::spawn(guide.next().into_future());
    pass(1_000).await;
    moving.abort();
    let world = killed(&world, guide).await;
    trace().take();
    let engine = engine(&world, &flow).await;
    let guide = engine.guided(&flow, "g").open().await.unwrap().unwrap();
    rested(&guide).await;
    let view = guide.view();
    assert_eq!((view.status, &view.failure), (Status::Waiting, &None));
    assert_eq!(history(&view), ["a", "b"]);
    assert_eq!(trace().take(), [""; 0]);
    guide.next().await.unwrap();
}

// GDE-EDT-03: an edit beside a body, and the body begins again with what it began with.
#[tokio::test(start_paused = true)]
async fn a_body_that_only_waits_goes_on_after_a_restart_with_what_it_began_with() {
    let (world, flow) = (World::new(), with(|_| waits()));
    let guide = started(&world, &flow).await;
    let moving = tokio::spawn(guide.next().into_future());
    pass(10).await;
    guide.edit(|form| form.number = 7).await.unwrap();
    assert_eq!(trace().take(), ["before"]);
    moving.abort();
    let world = killed(&world, guide).await;
    let engine = engine(&world, &flow).await;
    let guide = engine.guided(&flow, "g").open().await.unwrap().unwrap();
    assert_eq!(guide.view().status, Status::Working);
    assert_eq!(guide.next().await, Err(Refused::Busy));
    pass(9 * 3_600_000).await;
    rested(&guide).await;
    assert_eq!(trace().take(), ["after"]);
    let view = guide.view();
    assert_eq!((view.status, view.state.number), (Status::Waiting, 7));
}

// GDE-RTY-01 GDE-RTY-04
#[tokio::test(start_paused = true)]
async fn a_failed_body_may_be_tried_again_and_a_new_failure_takes_the_place_of_the_old() {
    let world = World::new();
    let flow = with(|stage| {
        one(Effect {
            name: format!("luck {}", stage.visit()),
            millis: 0,
            fails: stage.state().number == 0,
        })
    });
    let guide = started(&world, &flow).await;
    let Err(Refused::Failed(first)) = guide.next().await else {
        panic!("{:?}", guide.view());
    };
    assert!(first.text.contains("no luck 1 today"), "{first}");
    assert_eq!(first.at, ["b[1]/have"]);
    let Err(Refused::Failed(second)) = guide.retry().await else {
        panic!("{:?}", guide.view());
    };
    assert!(second.text.contains("no luck 2 today"), "{second}");
    assert_eq!(guide.view().failure.as_ref(), Some(&second));
    // GDE-RES-03
    let engine = engine(&world.crash(), &flow).await;
    let guide = engine.guided(&flow, "g").open().await.unwrap().unwrap();
    assert_eq!(guide.view().failure.as_ref(), Some(&second));
    let before = history(&guide.view()).len();
    guide.edit(|form| form.number = 1).await.unwrap();
    guide.retry().await.unwrap();
    let view = guide.view();
    assert_eq!((view.status, &view.failure), (Status::Waiting, &None));
    // GDE-RTY-08
    assert_eq!(history(&view).len(), before);
    // GDE-RTY-05
    assert_eq!(guide.retry().await, Err(Refused::NothingToRetry));
}

#[tokio::test(start_paused = true)]
async fn a_panicking_body_fails_its_stage_and_nothing_else() {
    let flow = with(|stage| {
        assert!(stage.state().number > 0, "a bad body");
        one(effect("good", 0))
    });
    let guide = started(&World::new(), &flow).await;
    let Err(Refused::Failed(failing)) = guide.next().await else {
        panic!("{:?}", guide.view());
    };
    assert!(failing.text.contains("a bad body"), "{failing}");
    guide.edit(|form| form.number = 1).await.unwrap();
    guide.retry().await.unwrap();
    assert_eq!(trace().take(), ["good"]);
}

/// What one wants to know of an effect's key.
#[step(retries = 0)]
async fn keyed(number: u32) -> Result<(), super::Unlucky> {
    let key = workflow::current_step().idempotency_key();
    trace().say(key);
    if number == 0 {
        return Err(super::Unlucky("key".to_owned()));
    }
    Ok(())
}

#[fragment]
async fn steps_in_a_row(number: u32) -> Result<(), Failure> {
    have(effect("first", 0)).await?;
    if number == 1 {
        #[step(name = "detour", retries = 0)]
        have(effect("detour", 0)).await?;
    }
    keyed(number).await?;
    Ok(())
}

// GDE-RTY-02 GDE-RTY-07
#[tokio::test(start_paused = true)]
async fn a_retry_keeps_what_succeeded_and_uses_the_same_keys_also_when_it_goes_another_way() {
    let (world, flow) = (
        World::new(),
        with(|stage| steps_in_a_row(stage.state().number)),
    );
    let guide = started(&world, &flow).await;
    assert!(guide.next().await.is_err());
    let first = trace().take();
    assert_eq!((first.len(), &first[0][..]), (2, "first"));
    assert!(guide.retry().await.is_err());
    assert_eq!(trace().take(), first[1..]);
    // After a restart, and with other data: another way, over a step that is new.
    let engine = engine(&world.crash(), &flow).await;
    let guide = engine.guided(&flow, "g").open().await.unwrap().unwrap();
    guide.edit(|form| form.number = 1).await.unwrap();
    guide.retry().await.unwrap();
    assert_eq!(trace().take(), ["detour", &first[1][..]]);
}

#[fragment]
async fn side_by_side(number: u32) -> Result<(), Failure> {
    join!(
        both,
        good = have(effect("good", 10)).await?,
        bad = {
            #[step(name = "bad", retries = 0)]
            have(Effect {
                fails: number == 0,
                ..effect("bad", 0)
            })
            .await?
        },
    )
    .await?;
    Ok(())
}

// GDE-RTY-03: all branches run to their end, and only the failed one is tried again.
#[tokio::test(start_paused = true)]
async fn a_retry_of_branches_runs_only_those_that_failed() {
    let (world, flow) = (
        World::new(),
        with(|stage| side_by_side(stage.state().number)),
    );
    let guide = started(&world, &flow).await;
    let Err(Refused::Failed(failing)) = guide.next().await else {
        panic!("{:?}", guide.view());
    };
    assert!(failing.text.contains("no bad today"), "{failing}");
    let mut had = trace().take();
    had.sort();
    assert_eq!(had, ["bad", "good"]);
    guide.edit(|form| form.number = 1).await.unwrap();
    guide.retry().await.unwrap();
    assert_eq!(trace().take(), ["bad"]);
}

#[tokio::test(start_paused = true)]
async fn a_stage_that_is_entered_again_keeps_or_begins_anew_as_it_says() {
    for (revisit, again) in [
        (Revisit::Keep, vec![]),
        (Revisit::Fresh, vec!["work".to_owned()]),
    ] {
        let flow = flow([
            stage("a").start().to("b"),
            stage("b")
                .body(super::says("work"))
                .revisit(revisit)
                .to("c"),
            stage("c").terminal(),
        ]);
        let guide = started(&World::new(), &flow).await;
        guide.next().await.unwrap();
        assert_eq!(trace().take(), ["work"]);
        guide.next().await.unwrap();
        guide.back().await.unwrap();
        assert_eq!(trace().take(), again);
        guide.back().await.unwrap();
        guide.next().await.unwrap();
        assert_eq!(trace().take(), again);
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_says_so_goes_on_by_itself_after_it_was_cut_off() {
    let flow = flow([
        stage("a").start().to("b"),
        stage("b")
            .body(|stage: Stage<Form>| two(stage.state().number))
            .on_interrupt(Interrupt::Rerun)
            .to("c"),
        stage("c").terminal(),
    ]);
    let world = World::new();
    let guide = started(&world, &flow).await;
    let moving = tokio::spawn(guide.next().into_future());
    pass(10).await;
    moving.abort();
    let world = killed(&world, guide).await;
    // Nobody opens it.
    let engine = engine(&world, &flow).await;
    pass(1_000).await;
    assert_eq!(trace().take(), ["second of 0"]);
    let guide = engine.guided(&flow, "g").open().await.unwrap().unwrap();
    assert_eq!(guide.view().status, Status::Waiting);
    assert_eq!(guide.view().at.as_ref().unwrap(), &"b");
}

#[fragment]
async fn leaves_in_two(number: u32) -> Result<(), Failure> {
    have(effect("first", 0)).await?;
    keyed(number).await?;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn what_leaving_did_is_not_done_again_when_it_is_tried_again() {
    let flow = flow([
        stage("a")
            .start()
            .leave(|stage: Stage<Form>| leaves_in_two(stage.state().number))
            .to("b"),
        stage("b").terminal(),
    ]);
    let world = World::new();
    let guide = started(&world, &flow).await;
    assert!(matches!(guide.next().await, Err(Refused::Leave(_))));
    let first = trace().take();
    assert_eq!(&first[0][..], "first");
    let engine = engine(&world.crash(), &flow).await;
    let guide = engine.guided(&flow, "g").open().await.unwrap().unwrap();
    assert!(matches!(guide.next().await, Err(Refused::Leave(_))));
    assert_eq!(trace().take(), first[1..]);
    guide.edit(|form| form.number = 1).await.unwrap();
    guide.next().await.unwrap();
    assert_eq!(trace().take(), first[1..]);
}

// GDE-CRX-03: that a body has ended follows from what is recorded, so it is shown before it is.
#[tokio::test(start_paused = true)]
async fn a_body_that_had_ended_when_the_process_was_killed_has_ended_for_a_restart() {
    for fails in [false, true] {
        let body = move |_: Stage<Form>| {
            one(Effect {
                name: "work".to_owned(),
                millis: 5,
                fails,
            })
        };
        let flow = flow([
            stage("a").start().to("b"),
            stage("b").body(body).to("c"),
            stage("c").terminal(),
        ]);
        let world = World::new();
        let guide = started(&world, &flow).await;
        assert_eq!(guide.next().await.is_err(), fails);
        let view = guide.view();
        let status = [Status::Waiting, Status::Failed][usize::from(fails)];
        assert_eq!(view.status, status);
        let engine = engine(&killed(&world, guide).await, &flow).await;
        let guide = engine.guided(&flow, "g").open().await.unwrap().unwrap();
        rested(&guide).await;
        let mut after = View::clone(&guide.view());
        let before = std::mem::replace(&mut after.operations, view.operations.clone());
        assert_eq!(before[0].status(), view.operations[0].status());
        assert_eq!(after, *view);
        assert_eq!(trace().take(), [""; 0]);
        // What was decided on it goes on from it.
        guide.back().at(view.revision).await.unwrap();
        assert_eq!(guide.view().at.as_ref().unwrap(), &"a");
    }
}

#[fragment]
async fn says_much() -> Result<(), super::Unlucky> {
    Err(super::Unlucky("much ".repeat(10_000)))
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_is_too_long_for_a_record_is_cut_short() {
    let flow = flow([
        stage("a").start().to("b"),
        stage("b").body(|_| says_much()).to("c"),
        stage("c").terminal(),
    ]);
    let world = World::new();
    let engine = world.engine().payload_limit(4_000).guided(&flow);
    let engine = engine.build().await.unwrap();
    let guide = engine.guided(&flow, "g").start(Form::default());
    let guide = guide.await.unwrap();
    let Err(Refused::Failed(failing)) = guide.next().await else {
        panic!("{:?}", guide.view());
    };
    assert!(failing.text.starts_with("no much much") && failing.text.len() < 1_000);
    assert_eq!(guide.view().status, Status::Failed);
    guide.back().await.unwrap();
}

/// Fails so often.
#[step(retries = 0, timeout = "none")]
async fn tries(fails: usize) -> Result<usize, super::Unlucky> {
    trace().say("try");
    let tried = TRIED.with(|tried| {
        tried.set(tried.get() + 1);
        tried.get()
    });
    if tried <= fails {
        return Err(super::Unlucky(format!("luck at try {tried}")));
    }
    Ok(tried)
}

thread_local! {
    static TRIED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

#[fragment]
async fn tries_after_one(fails: usize) -> Result<(), Failure> {
    have(effect("one", 0)).await?;
    tries(fails).await?;
    Ok(())
}

fn with_retries(fails: usize) -> workflow::guided::Flow<Form> {
    flow([
        stage("a").start().to("b"),
        stage("b")
            .body(move |_| tries_after_one(fails))
            .retries(2, Backoff::fixed(Duration::from_millis(100)))
            .to("c"),
        stage("c").terminal(),
    ])
}

// GDE-RTY-09
#[tokio::test(start_paused = true)]
async fn a_stage_with_retries_is_tried_again_before_it_is_shown_as_failed() {
    let guide = started(&World::new(), &with_retries(2)).await;
    let moving = tokio::spawn(guide.next().into_future());
    pass(50).await;
    let view = guide.view();
    assert_eq!((view.status, view.attempts), (Status::Working, 2));
    assert_eq!(trace().take(), ["one", "try"]);
    moving.await.unwrap().unwrap();
    assert_eq!(trace().take(), ["try", "try"], "what succeeded is kept");
    let view = guide.view();
    assert_eq!((view.status, view.attempts), (Status::Waiting, 3));

    TRIED.set(0);
    let guide = started(&World::new(), &with_retries(5)).await;
    let Err(Refused::Failed(failing)) = guide.next().await else {
        panic!("{:?}", guide.view());
    };
    assert!(failing.text.contains("luck at try 3"), "{failing}");
    assert_eq!(guide.view().attempts, 3);
    // A person has as many tries again.
    guide.retry().await.unwrap();
    assert_eq!(guide.view().attempts, 3);
    assert_eq!(
        trace().take(),
        ["one", "try", "try", "try", "try", "try", "try"]
    );
}

// GDE-RTY-09: also when the process ends while it waits to be tried again, and after that.
#[tokio::test(start_paused = true)]
async fn a_stage_with_retries_goes_on_trying_after_a_restart() {
    let (world, flow) = (World::new(), with_retries(2));
    let guide = started(&world, &flow).await;
    let moving = tokio::spawn(guide.next().into_future());
    pass(50).await;
    moving.abort();
    let world = killed(&world, guide).await;
    trace().take();
    let engine = engine(&world, &flow).await;
    let guide = engine.guided(&flow, "g").open().await.unwrap().unwrap();
    assert_eq!(
        (guide.view().status, guide.view().attempts),
        (Status::Working, 2)
    );
    assert_eq!(trace().take(), [""; 0]);
    rested(&guide).await;
    assert_eq!(trace().take(), ["try", "try"]);
    assert_eq!(
        (guide.view().status, guide.view().attempts),
        (Status::Waiting, 3)
    );
}

static ANSWER: workflow::Channel<u32> = workflow::Channel::new("answer");

#[fragment]
async fn takes_an_answer(fails: usize) -> Result<(), Failure> {
    let answer = recv!(answer, ANSWER).await?;
    trace().say(answer.to_string());
    tries(fails).await?;
    Ok(())
}

// A message that was taken is not taken again, and not waited for again, when the body is tried again.
#[tokio::test(start_paused = true)]
async fn a_retry_keeps_the_messages_that_were_taken() {
    let flow = flow([
        stage("a").start().to("b"),
        stage("b").body(|_| takes_an_answer(2)).to("c"),
        stage("c").terminal(),
    ]);
    let world = World::new();
    let engine = engine(&world, &flow).await;
    let guide = engine.guided(&flow, "g").start(Form::default());
    let guide = guide.await.unwrap();
    let moving = tokio::spawn(guide.next().into_future());
    engine.send("g", &ANSWER, &7).await.unwrap();
    assert!(moving.await.unwrap().is_err());
    engine.send("g", &ANSWER, &8).await.unwrap();
    assert_eq!(trace().take(), ["7", "try"]);
    assert!(guide.retry().await.is_err());
    assert_eq!(trace().take(), ["7", "try"]);
    // Also after a restart.
    drop(engine);
    let engine = super::engine(&killed(&world, guide).await, &flow).await;
    let guide = engine.guided(&flow, "g").open().await.unwrap().unwrap();
    rested(&guide).await;
    // Its plain code was replayed.
    assert_eq!(trace().take(), ["7"]);
    guide.retry().await.unwrap();
    assert_eq!(trace().take(), ["7", "try"]);
}
