//! Checks and guards of exits that are durable code.

use std::time::Duration;

use workflow::guided::{FailingKind, Fault, Flow, Moved, Problems, Refused, Stage, Status, stage};
use workflow::{Failure, fragment};
use workflow_tests::{World, pass};

use super::{
    Effect, Form, completed, described, engine, flow, have, history, killed, started, trace,
};

fn effect(name: String, millis: u64, fails: bool) -> Effect {
    Effect {
        name,
        millis,
        fails,
    }
}

/// Asks about the number, which takes its time; number 13 cannot be asked about.
#[fragment]
async fn is_free(stage: Stage<Form>) -> Result<Problems, Failure> {
    let number = stage.state().number;
    have(effect(format!("check {number}"), 20, number == 13)).await?;
    let mut problems = Problems::default();
    problems.when(number == 7, "number", "it is taken");
    Ok(problems)
}

#[fragment]
async fn is_large(stage: Stage<Form>) -> Result<bool, Failure> {
    let number = stage.state().number;
    have(effect(format!("guard {number}"), 20, number == 14)).await?;
    Ok(number > 100)
}

#[fragment]
async fn adds(mut stage: Stage<Form>) -> Result<(), Failure> {
    have(effect("leave".to_owned(), 0, false)).await?;
    stage.edit(|form| form.number += 1).await?;
    Ok(())
}

/// a asks whether the number is free, and leads to b when it is large; else to c.
fn asks() -> Flow<Form> {
    flow([
        stage("a")
            .start()
            .check(|form: &Form, problems| problems.when(form.name == "bad", "name", "no"))
            .check_async(is_free)
            .to_if_async("b", is_large)
            .to("c"),
        stage("b").to("c"),
        stage("c").terminal(),
    ])
}

fn to(stage: &str, moved: Result<Moved, Refused>) -> bool {
    matches!(moved, Ok(Moved::To(at)) if at == stage)
}

#[tokio::test(start_paused = true)]
async fn what_a_check_that_is_durable_code_finds_holds_and_it_is_asked_anew_each_time() {
    let (world, flow) = (World::new(), asks());
    let guide = started(&world, &flow).await;
    guide.edit(|form| form.number = 7).await.unwrap();
    for _ in 0..2 {
        let Err(Refused::Invalid(found)) = guide.next().await else {
            panic!()
        };
        assert_eq!(found[0].text, "it is taken");
        assert_eq!(guide.view().status, Status::Blocked);
        assert_eq!(trace().take(), ["check 7"]);
        guide.edit(|form| form.number = 7).await.unwrap();
    }
    // What needs no code is asked first.
    guide.edit(|form| form.name = "bad".into()).await.unwrap();
    assert!(matches!(guide.next().await, Err(Refused::Invalid(_))));
    assert_eq!(trace().take(), [""; 0]);
    guide.edit(|form| form.name.clear()).await.unwrap();
    // To look is to ask, too, and does not move.
    assert_eq!(guide.check().await.unwrap().len(), 1);
    assert_eq!(trace().take(), ["check 7"]);
    assert_eq!(guide.view().status, Status::Blocked);
    guide.edit(|form| form.number = 8).await.unwrap();
    assert!(to("c", guide.next().await));
    assert_eq!(trace().take(), ["check 8", "guard 8"]);
    assert_eq!(completed(&guide.view()), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn a_guard_that_is_durable_code_decides_where_the_way_leads() {
    let (world, flow) = (World::new(), asks());
    let guide = started(&world, &flow).await;
    // The way is not known before it is asked.
    assert!(guide.view().ahead.is_empty());
    guide.edit(|form| form.number = 200).await.unwrap();
    assert!(to("b", guide.next().await));
    assert_eq!(history(&guide.view()), ["a", "b"]);
    guide.back().await.unwrap();
    guide.edit(|form| form.number = 1).await.unwrap();
    trace().take();
    assert!(to("c", guide.next().await));
    assert_eq!(trace().take(), ["check 1", "guard 1"]);
}

// GDE-VAL-09 GDE-NAV-26
#[tokio::test(start_paused = true)]
async fn one_that_fails_is_told_and_changes_nothing() {
    let (world, flow) = (World::new(), asks());
    let guide = started(&world, &flow).await;
    for number in [13, 14] {
        guide.edit(move |form| form.number = number).await.unwrap();
        let before = guide.view();
        let Err(Refused::Check(failing)) = guide.next().await else {
            panic!()
        };
        assert_eq!(failing.kind, FailingKind::Error);
        let after = guide.view();
        assert_eq!(
            (after.revision, after.status, &after.at, after.busy),
            (before.revision, Status::Waiting, &before.at, false)
        );
    }
    guide.edit(|form| form.number = 1).await.unwrap();
    assert!(to("c", guide.next().await));
}

// GDE-EDT-03: what was answered was of other data.
#[tokio::test(start_paused = true)]
async fn what_is_edited_while_it_is_asked_is_asked_about_again() {
    let (world, flow) = (World::new(), asks());
    let guide = started(&world, &flow).await;
    let moving = tokio::spawn(guide.next().into_future());
    pass(10).await;
    assert!(guide.view().busy);
    assert_eq!(guide.next().await, Err(Refused::Busy));
    guide.edit(|form| form.number = 7).await.unwrap();
    assert!(matches!(moving.await.unwrap(), Err(Refused::Invalid(_))));
    assert_eq!(trace().take(), ["check 0", "check 7"]);
    guide.edit(|form| form.number = 1).await.unwrap();
    let moving = tokio::spawn(guide.next().into_future());
    pass(30).await;
    assert_eq!(trace().take(), ["check 1", "guard 1"]);
    guide.edit(|form| form.number = 200).await.unwrap();
    assert!(to("b", moving.await.unwrap()));
    assert_eq!(trace().take(), ["check 200", "guard 200"]);
}

// GDE-NAV-24
#[tokio::test(start_paused = true)]
async fn what_a_stage_does_to_the_data_as_it_is_left_is_seen_by_the_guards_that_are_code() {
    let stages = [
        stage("a")
            .start()
            .leave(adds)
            .to_if_async("b", is_large)
            .to("c"),
        stage("b").to("c"),
        stage("c").terminal(),
    ];
    let guide = started(&World::new(), &flow(stages)).await;
    guide.edit(|form| form.number = 100).await.unwrap();
    assert!(to("b", guide.next().await));
    assert_eq!(trace().take(), ["guard 100", "leave", "guard 101"]);
}

// GDE-CAN-04: nothing follows from what is answered while it is being decided.
#[tokio::test(start_paused = true)]
async fn a_guide_that_is_cancelled_while_a_guard_is_asked_is_not_moved() {
    let flow = described([
        stage("a").start().to_if_async("b", is_large).to("c"),
        stage("b").to("c"),
        stage("c").terminal(),
    ])
    .exit_guard_async(|_| async {
        pass(50).await;
        true
    });
    let guide = started(&World::new(), &flow.build().unwrap()).await;
    let moving = tokio::spawn(guide.next().into_future());
    pass(5).await;
    let cancelling = tokio::spawn(guide.cancel().into_future());
    pass(30).await;
    assert_eq!(history(&guide.view()), ["a"]);
    cancelling.await.unwrap().unwrap();
    assert_eq!(moving.await.unwrap(), Err(Refused::Cancelled));
    assert_eq!(history(&guide.view()), ["a"]);
}

// GDE-TMO-07
#[tokio::test(start_paused = true)]
async fn one_that_takes_too_long_is_given_up() {
    let flow = described([
        stage("a").start().check_async(is_free).to("c"),
        stage("c").terminal(),
    ])
    .hooks_timeout(Duration::from_millis(10));
    let guide = started(&World::new(), &flow.build().unwrap()).await;
    let Err(Refused::Check(failing)) = guide.next().await else {
        panic!()
    };
    assert_eq!(failing.kind, FailingKind::TimedOut);
    assert!(failing.text.contains("checking the stage `a`"), "{failing}");
    assert_eq!(guide.view().status, Status::Waiting);
}

// A crash while it is asked leaves the guide where it was.
#[tokio::test(start_paused = true)]
async fn what_was_asked_when_the_process_ended_is_asked_anew() {
    let (world, flow) = (World::new(), asks());
    let guide = started(&world, &flow).await;
    let moving = tokio::spawn(guide.next().into_future());
    pass(30).await;
    assert_eq!(trace().take(), ["check 0", "guard 0"]);
    moving.abort();
    let engine = engine(&killed(&world, guide).await, &flow).await;
    let guide = engine.guided(&flow, "g").open().await.unwrap().unwrap();
    pass(100).await;
    let view = guide.view();
    assert_eq!((view.status, view.busy), (Status::Waiting, false));
    assert_eq!(trace().take(), [""; 0]);
    assert!(to("c", guide.next().await));
    assert_eq!(trace().take(), ["check 0", "guard 0"]);
    // GDE-NAV-18: a skip asks where to go on, and no check.
    let flow = self::flow([
        stage("a")
            .start()
            .skippable()
            .check_async(is_free)
            .to_if_async("b", is_large)
            .to("c"),
        stage("b").to("c"),
        stage("c").terminal(),
    ]);
    let guide = started(&World::new(), &flow).await;
    assert!(to("c", guide.skip().await));
    assert_eq!(trace().take(), ["guard 0"]);
}

// GDE-DEF-11
#[test]
fn a_stage_that_may_be_passed_over_asks_no_code_where_to_go_on() {
    let built = described([
        stage("a").start().to("b"),
        stage("b")
            .when(|form: &Form| form.number > 0)
            .to_if_async("a", is_large)
            .to("c"),
        stage("c").terminal(),
    ]);
    let faults = built.build().unwrap_err();
    let expected = Fault::AskedInPassing { stage: "b".into() };
    assert_eq!(faults.faults(), [expected], "{faults}");
}
