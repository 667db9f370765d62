//! Checks: what they find is shown, survives a restart, and holds the person back until something is done about it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use workflow::guided::{Event, Flow, Problem, Refused, Status, stage};
use workflow_tests::{Counter, World};

use super::{Form, commits, engine, flow, history, started, told, trace};

fn needs_a_name() -> Flow<Form> {
    flow([
        told("a")
            .start()
            .check(|form, problems| {
                problems.when(form.name.is_empty(), "name", "it needs a name");
                if form.number == 0 {
                    problems.add(Problem {
                        field: Some("number".into()),
                        code: Some("E7".into()),
                        text: "it needs a number".into(),
                    });
                }
            })
            .to("b"),
        told("b").terminal(),
    ])
}

fn texts(problems: &[Problem]) -> Vec<&str> {
    problems.iter().map(|found| found.text.as_str()).collect()
}

// GDE-VAL-01 GDE-VAL-10
#[tokio::test(start_paused = true)]
async fn what_a_check_finds_is_shown_in_order_and_nothing_is_left() {
    let guide = started(&World::new(), &needs_a_name()).await;
    trace().take();
    let Err(Refused::Invalid(problems)) = guide.next().await else {
        panic!("{:?}", guide.view());
    };
    assert_eq!(texts(&problems), ["it needs a name", "it needs a number"]);
    let view = guide.view();
    assert_eq!(view.status, Status::Blocked);
    assert_eq!(view.problems, problems);
    assert_eq!(trace().take(), [""; 0]);
    assert!(
        !view
            .events
            .iter()
            .any(|event| matches!(event, Event::Left(_)))
    );
}

// GDE-VAL-07 GDE-VAL-13 GDE-RES-03
#[tokio::test(start_paused = true)]
async fn a_blocked_guide_is_still_blocked_after_a_restart_with_all_that_was_found() {
    let (world, flow) = (World::new(), needs_a_name());
    let guide = started(&world, &flow).await;
    let _ = guide.next().await;
    let before = guide.view();
    let world = world.crash();
    let engine = engine(&world, &flow).await;
    let guide = engine.guided(&flow, "g").open().await.unwrap().unwrap();
    assert_eq!(*guide.view(), *before);
    assert_eq!(guide.view().problems[1].code.as_deref(), Some("E7"));
    assert_eq!(guide.view().problems[1].field.as_deref(), Some("number"));
}

// GDE-VAL-02
#[tokio::test(start_paused = true)]
async fn next_does_not_ask_again_while_blocked() {
    let (wrong, asked) = (Arc::new(AtomicBool::new(true)), Counter::default());
    let (is_wrong, ask) = (Arc::clone(&wrong), asked.clone());
    let flow = flow([
        stage("a")
            .start()
            .check(move |_: &Form, problems| {
                ask.hit();
                problems.when(is_wrong.load(Ordering::SeqCst), "x", "wrong");
            })
            .to("b"),
        stage("b").terminal(),
    ]);
    let guide = started(&World::new(), &flow).await;
    let _ = guide.next().await;
    wrong.store(false, Ordering::SeqCst);
    let before = asked.count();
    assert_eq!(
        guide.next().await,
        Err(Refused::NotRunning(Status::Blocked))
    );
    assert_eq!(asked.count(), before);
    // GDE-VAL-05
    assert_eq!(guide.check().await, Ok(vec![]));
    assert_eq!(guide.view().status, Status::Waiting);
    guide.next().await.unwrap();
}

// GDE-VAL-03
#[tokio::test(start_paused = true)]
async fn an_edit_unblocks_and_next_asks_anew() {
    let guide = started(&World::new(), &needs_a_name()).await;
    let _ = guide.next().await;
    guide.edit(|form| form.name = "n".into()).await.unwrap();
    assert_eq!(guide.view().status, Status::Waiting);
    assert_eq!(guide.view().problems, []);
    let Err(Refused::Invalid(left)) = guide.next().await else {
        panic!("{:?}", guide.view());
    };
    assert_eq!(texts(&left), ["it needs a number"]);
    guide.edit(|form| form.number = 1).await.unwrap();
    guide.next().await.unwrap();
    assert_eq!(history(&guide.view()), ["a", "b"]);
}

// GDE-VAL-04 GDE-VAL-05
#[tokio::test(start_paused = true)]
async fn a_check_shows_what_is_wrong_and_moves_nothing() {
    let world = World::new();
    let guide = started(&world, &needs_a_name()).await;
    let found = guide.check().await.unwrap();
    assert_eq!(found.len(), 2);
    let view = guide.view();
    assert_eq!((view.status, history(&view)), (Status::Blocked, vec!["a"]));
    assert_eq!(view.problems, found);
    assert!(matches!(&view.events[..], [Event::Checked(_)]));
    guide
        .edit(|form| {
            form.name = "n".into();
            form.number = 1;
        })
        .await
        .unwrap();
    let cost = commits(&world).await;
    assert_eq!(guide.check().await, Ok(vec![]));
    assert_eq!(guide.view().status, Status::Waiting);
    // Nothing changed, so nothing was written.
    assert_eq!(commits(&world).await, cost);
}

// GDE-VAL-08
#[tokio::test(start_paused = true)]
async fn a_retry_while_blocked_runs_the_body_again_and_does_not_check() {
    let guide = started(&World::new(), &needs_a_name()).await;
    let _ = guide.next().await;
    trace().take();
    guide.retry().await.unwrap();
    assert_eq!(trace().take(), ["enter a"]);
    assert_eq!(guide.view().status, Status::Waiting);
    assert_eq!(guide.view().problems, []);
}

// GDE-VAL-09
#[tokio::test(start_paused = true)]
async fn a_check_that_panics_changes_nothing() {
    let world = World::new();
    let flow = flow([
        told("a")
            .start()
            .check(|form, _| assert!(form.number > 0, "a bad check"))
            .to("b"),
        told("b").terminal(),
    ]);
    let guide = started(&world, &flow).await;
    trace().take();
    let (before, cost) = (guide.view(), commits(&world).await);
    let refused = guide.next().await.unwrap_err();
    assert_eq!(refused, Refused::Panicked("a bad check".into()));
    assert_eq!(*guide.view(), *before);
    assert_eq!(commits(&world).await, cost);
    assert_eq!(trace().take(), [""; 0]);
    guide.edit(|form| form.number = 1).await.unwrap();
    guide.next().await.unwrap();
}
