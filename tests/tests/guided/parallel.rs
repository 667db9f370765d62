//! Bodies of several effects: one after the other, and beside each other.

use std::time::Duration;

use workflow::guided::{FailingKind, Flow, OpenError, Refused, Stage, Status, Undone, stage};
use workflow::replay::Body;
use workflow::{Failure, Fragment, fragment, join, step};
use workflow_tests::{World, pass};

use super::{Effect, Form, Unlucky, engine, flow, have, killed, questions, rested, started, trace};

fn effect(name: &str, millis: u64, fails: bool) -> Effect {
    Effect {
        name: name.to_owned(),
        millis,
        fails,
    }
}

fn with(
    body: impl Fn(Stage<Form>) -> Fragment<'static, Result<(), Failure>> + Send + Sync + 'static,
) -> Flow<Form> {
    let back = |gave: String, _: Undone<Form>| async move {
        trace().say(format!("undo {gave}"));
        Ok::<_, Unlucky>(())
    };
    flow([
        stage("a").start().to("b"),
        stage("b")
            .body(body)
            .undo_step("all/p1/have", back)
            .undo_step("all/p2/have", back)
            .to("c"),
        stage("c").terminal(),
    ])
}

/// Three branches, and an operation that is given what they gave.
#[fragment]
async fn branches(failing: &'static [&'static str]) -> Result<(), Failure> {
    let fails = |name: &str| failing.contains(&name);
    have(effect("first", 0, fails("first"))).await?;
    let (one, two, three): (String, String, String) = join!(
        all,
        p1 = have(effect("p1", 10, fails("p1"))).await?,
        p2 = have(effect("p2", 20, fails("p2"))).await?,
        p3 = have(effect("p3", 30, fails("p3"))).await?
    )
    .await?;
    #[step(name = "last", retries = 0)]
    have(effect(&format!("{one} {two} {three}"), 0, false)).await?;
    Ok(())
}

// GDE-PAR-01
#[tokio::test(start_paused = true)]
async fn all_branches_run_to_their_ends_and_the_failure_tells_of_all() {
    let guide = started(&World::new(), &with(|_| branches(&["p1", "p2"]))).await;
    let Err(Refused::Failed(failing)) = guide.next().await else {
        panic!("{:?}", guide.view());
    };
    assert_eq!(trace().take(), ["first", "p1", "p2", "p3"]);
    assert!(
        failing.text.contains("no p1 today") && failing.text.contains("no p2 today"),
        "{failing}"
    );
    assert!(!failing.text.contains("p3"), "{failing}");
}

// GDE-PAR-02
#[tokio::test(start_paused = true)]
async fn what_follows_a_failure_is_not_begun() {
    let guide = started(&World::new(), &with(|_| branches(&["first"]))).await;
    assert!(guide.next().await.is_err());
    assert_eq!(trace().take(), ["first"]);
    let guide = started(&World::new(), &with(|_| branches(&["p3"]))).await;
    assert!(guide.next().await.is_err());
    assert_eq!(trace().take(), ["first", "p1", "p2", "p3"]);
}

// GDE-PAR-03
#[tokio::test(start_paused = true)]
async fn a_cancel_leaves_finished_branches_as_they_are() {
    let guide = started(&World::new(), &with(|_| branches(&[]))).await;
    let moving = tokio::spawn(guide.next().into_future());
    pass(15).await;
    guide.cancel().await.unwrap();
    assert_eq!(moving.await.unwrap(), Err(Refused::Cancelled));
    pass(1_000).await;
    assert_eq!(trace().take(), ["first", "p1", "p2", "p3"]);
    // The one that had ended is undone, and the others were not had.
    guide.rollback().await.unwrap();
    assert_eq!(trace().take(), ["undo p1"]);
}

// GDE-PAR-05
#[tokio::test(start_paused = true)]
async fn what_branches_give_is_given_to_the_stage() {
    let guide = started(&World::new(), &with(|_| branches(&[]))).await;
    guide.next().await.unwrap();
    assert_eq!(trace().take().last().unwrap(), "p1 p2 p3");
}

// GDE-PAR-07
#[tokio::test(start_paused = true)]
async fn a_branch_that_has_ended_is_in_the_store_before_its_stage_ends() {
    let (world, flow) = (World::new(), with(|_| branches(&[])));
    let engine = engine(&world, &flow).await;
    let guide = engine.guided(&flow, "g").start(Form::default());
    let guide = guide.await.unwrap();
    let moving = tokio::spawn(guide.next().into_future());
    pass(25).await;
    let history = engine.export("g").await.unwrap();
    let ended = history.records().iter();
    let ended: Vec<_> = ended
        .filter(|record| matches!(record.body, Body::Ended(_)))
        .map(|record| record.location.to_string())
        .collect();
    assert_eq!(ended, ["b[1]/have", "b[1]/all/p1/have", "b[1]/all/p2/have"]);
    moving.await.unwrap().unwrap();
}

// GDE-RES-05
#[tokio::test(start_paused = true)]
async fn branches_that_were_cut_off_are_told_and_only_they_run_again() {
    let (world, flow) = (World::new(), with(|_| branches(&[])));
    let guide = started(&world, &flow).await;
    let moving = tokio::spawn(guide.next().into_future());
    pass(15).await;
    moving.abort();
    let engine = engine(&killed(&world, guide).await, &flow).await;
    let guide = engine.guided(&flow, "g").open().await.unwrap().unwrap();
    rested(&guide).await;
    let failing = guide.view().failure.clone().unwrap();
    assert_eq!(
        (guide.view().status, failing.kind),
        (Status::Failed, FailingKind::Interrupted)
    );
    assert_eq!(failing.at, ["b[1]/all/p2/have", "b[1]/all/p3/have"]);
    guide.retry().await.unwrap();
    assert_eq!(trace().take(), ["p2", "p3", "p1 p2 p3"]);
}

// GDE-TMO-08
#[tokio::test(start_paused = true)]
async fn a_branch_that_is_late_has_not_succeeded() {
    let flow = flow([
        stage("a").start().to("b"),
        stage("b")
            .body(|_| branches(&[]))
            .timeout(Duration::from_millis(15))
            .to("c"),
        stage("c").terminal(),
    ]);
    let guide = started(&World::new(), &flow).await;
    let Err(Refused::Failed(failing)) = guide.next().await else {
        panic!("{:?}", guide.view());
    };
    assert!(failing.text.contains("15ms"), "{failing}");
    pass(1_000).await;
    trace().take();
    assert!(guide.retry().await.is_err());
    assert_eq!(trace().take(), ["p2", "p3"]);
}

#[fragment]
async fn in_turn(form: Form) -> Result<(), Failure> {
    have(effect(&form.name, 0, form.number == 1)).await?;
    #[step(name = "second", retries = 0)]
    have(effect("second", 0, false)).await?;
    Ok(())
}

// GDE-OPS-01 GDE-OPS-05
#[tokio::test(start_paused = true)]
async fn an_operation_begins_when_the_one_before_it_succeeded() {
    let flow = with(|stage: Stage<Form>| in_turn(stage.state().clone()));
    let guide = started(&World::new(), &flow).await;
    guide
        .edit(|form| {
            *form = Form {
                name: "mine".into(),
                number: 1,
            }
        })
        .await
        .unwrap();
    let Err(Refused::Failed(failing)) = guide.next().await else {
        panic!("{:?}", guide.view());
    };
    assert!(failing.text.contains("no mine today"), "{failing}");
    assert_eq!(trace().take(), ["mine"]);
    guide.edit(|form| form.number = 2).await.unwrap();
    guide.retry().await.unwrap();
    assert_eq!(trace().take(), ["mine", "second"]);
}

// GDE-OPS-03
#[tokio::test(start_paused = true)]
async fn an_operation_of_one_name_in_two_stages_is_two() {
    let flow = flow([
        stage("a").start().body(super::says("same")).to("b"),
        stage("b").body(super::says("same")).to("c"),
        stage("c").terminal(),
    ]);
    let guide = started(&World::new(), &flow).await;
    guide.next().await.unwrap();
    assert_eq!(trace().take(), ["same", "same"]);
}

/// An error that says nothing.
#[derive(Debug, thiserror::Error)]
#[error("")]
struct Speechless;

#[fragment]
async fn says_nothing() -> Result<(), Speechless> {
    Err(Speechless)
}

// GDE-RES-19
#[tokio::test(start_paused = true)]
async fn a_failure_without_a_text_has_one_line_all_the_same() {
    let flow = flow([
        stage("a").start().to("b"),
        stage("b").body(|_| says_nothing()).to("c"),
        stage("c").terminal(),
    ]);
    let (world, flow) = (World::new(), flow);
    let guide = started(&world, &flow).await;
    assert!(guide.next().await.is_err());
    let engine = engine(&killed(&world, guide).await, &flow).await;
    let guide = engine.guided(&flow, "g").open().await.unwrap().unwrap();
    rested(&guide).await;
    let text = guide.view().failure.clone().unwrap().text;
    assert_eq!(text, "it failed, and does not say why");
}

// GDE-RES-20 GDE-PER-08: in memory, as over any store.
#[tokio::test(start_paused = true)]
async fn a_guide_that_is_under_way_is_not_begun_over_by_opening_it() {
    let flow = questions();
    let engine = workflow::Engine::builder()
        .store(workflow::MemoryStore::new())
        .guided(&flow);
    let engine = engine.build().await.unwrap();
    assert!(engine.guided(&flow, "g").open().await.unwrap().is_none());
    let guide = engine.guided(&flow, "g").start(Form::default());
    let guide = guide.await.unwrap();
    guide.next().await.unwrap();
    let before = guide.view();
    let again = engine.guided(&flow, "g").start(Form::default()).await;
    assert!(matches!(again, Err(OpenError::AlreadyStarted { .. })));
    let other = engine.guided(&flow, "g").open().await.unwrap().unwrap();
    assert_eq!(*other.view(), *before);
    other.next().await.unwrap();
    assert_eq!(guide.view().revision, before.revision + 1);
}
