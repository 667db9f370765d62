//! Closing: what one process does to give a guide away, and not what the guide is told.

use workflow::guided::{FailingKind, Refused, Status, stage};
use workflow_tests::{World, pass};

use super::{Form, engine, flow, rested, started, takes, trace};

fn working() -> workflow::guided::Flow<Form> {
    flow([
        stage("a").start().to("b"),
        stage("b").body(takes("work", 100)).to("c"),
        stage("c").terminal(),
    ])
}

// GDE-DIS-01
#[tokio::test(start_paused = true)]
async fn a_guide_that_is_closed_stops_what_runs_and_shows_nothing_any_more() {
    let (world, flow) = (World::new(), working());
    let engine = engine(&world, &flow).await;
    let guide = engine.guided(&flow, "g").start(Form::default());
    let guide = guide.await.unwrap();
    let moving = tokio::spawn(guide.next().into_future());
    pass(10).await;
    let before = guide.view();
    assert_eq!(before.status, Status::Working);
    let mut changes = guide.watch();
    guide.close().await;
    assert_eq!(engine.in_memory(), 0);
    assert_eq!(moving.await.unwrap(), Err(Refused::Closed));
    pass(10_000).await;
    assert_eq!(*guide.view(), *before);
    assert!(changes.next().await.is_none());

    // Opened anew, it is as after a crash. The closed handle does not see that.
    let again = engine.guided(&flow, "g").open().await.unwrap().unwrap();
    rested(&again).await;
    let failing = again.view().failure.clone().unwrap();
    assert_eq!(failing.kind, FailingKind::Interrupted);
    again.retry().await.unwrap();
    assert_eq!(trace().take(), ["work", "work"]);
    assert_eq!(*guide.view(), *before);
}

// GDE-DIS-02
#[tokio::test(start_paused = true)]
async fn a_guide_is_closed_twice_and_takes_no_command_then() {
    let (world, flow) = (World::new(), working());
    let guide = started(&world, &flow).await;
    let other = guide.clone();
    guide.close().await;
    guide.close().await;
    assert_eq!(other.next().await, Err(Refused::Closed));
    assert_eq!(guide.back().await, Err(Refused::Closed));
    assert_eq!(guide.skip().await, Err(Refused::Closed));
    assert_eq!(guide.retry().await, Err(Refused::Closed));
    assert_eq!(guide.check().await, Err(Refused::Closed));
    assert_eq!(guide.edit(|_| {}).await, Err(Refused::Closed));
    assert_eq!(guide.cancel().await, Err(Refused::Closed));
    assert_eq!(guide.rollback().await, Err(Refused::Closed));
    assert_eq!(guide.start(Form::default()).await, Err(Refused::Closed));
}

// Whoever opens it while it is being closed has it when it is.
#[tokio::test(start_paused = true)]
async fn a_guide_is_opened_while_it_is_being_closed() {
    let (world, flow) = (World::new(), working());
    let engine = engine(&world, &flow).await;
    let guide = engine.guided(&flow, "g").start(Form::default());
    let guide = guide.await.unwrap();
    let (closed, opened) = tokio::join!(guide.close(), engine.guided(&flow, "g").open());
    let () = closed;
    let opened = opened.unwrap().unwrap();
    opened.next().await.unwrap();
    assert_eq!(opened.view().at.as_ref().unwrap(), &"b");
    assert_eq!(guide.view().at.as_ref().unwrap(), &"a");
}
