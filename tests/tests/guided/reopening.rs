//! Guides that had come to their end, and go on.

use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};

use workflow::guided::{Event, Flow, Moved, Refused, Status, Undone, stage};
use workflow::{Failure, RunState, fragment, step};
use workflow_tests::{World, pass};

use super::{
    Form, Unlucky, completed, described, engine, flow, history, killed, says, started, trace,
};

fn undoable() -> Flow<Form> {
    flow([
        stage("a")
            .start()
            .body(says("a"))
            .undo(|undone: Undone<Form>| async move {
                trace().say(format!(
                    "undo a[{}] of {}",
                    undone.visit, undone.state.number
                ));
                Ok::<_, Unlucky>(())
            })
            .to("b"),
        stage("b").terminal(),
    ])
}

// GDE-RBK-10
#[tokio::test(start_paused = true)]
async fn a_guide_that_has_ended_is_rolled_back_and_begins_again() {
    for cancels in [true, false] {
        let (world, flow) = (World::new(), undoable());
        let guide = started(&world, &flow).await;
        guide.edit(|form| form.number = 7).await.unwrap();
        guide.next().await.unwrap();
        let ended = if cancels {
            guide.cancel().await.unwrap();
            Status::Cancelled
        } else {
            guide.next().await.unwrap();
            Status::Completed
        };
        // Also where nobody has driven it since.
        let engine = engine(&killed(&world, guide).await, &flow).await;
        let guide = engine.guided(&flow, "g").open().await.unwrap().unwrap();
        let view = guide.view();
        assert_eq!(view.status, ended);
        trace().take();
        let stale = guide.rollback().at(view.revision - 1).await;
        let revision = view.revision;
        assert_eq!(stale, Err(Refused::Stale { revision }));
        assert_eq!(
            guide.rollback().at(revision).key("k").await,
            Ok(revision + 2)
        );
        assert_eq!(trace().take(), ["undo a[1] of 7"]);
        let view = guide.view();
        assert_eq!((view.status, view.completed_at), (Status::Idle, None));
        assert_eq!(engine.status("g").await.unwrap().state, RunState::Waiting);
        // Nobody does it twice.
        guide.rollback().key("k").await.unwrap();
        assert_eq!(guide.view().revision, revision + 2);
        guide.start(Form::default()).await.unwrap();
        assert_eq!(trace().take(), ["a"]);
        guide.next().await.unwrap();
        assert_eq!(guide.next().await, Ok(Moved::Finished));
        assert_eq!(engine.status("g").await.unwrap().state, RunState::Completed);
    }
}

// Two at once: one of them does it.
#[tokio::test(start_paused = true)]
async fn a_guide_that_has_ended_is_rolled_back_once() {
    let (world, flow) = (World::new(), undoable());
    let guide = started(&world, &flow).await;
    guide.next().await.unwrap();
    guide.next().await.unwrap();
    trace().take();
    let (one, two) = tokio::join!(
        guide.rollback().into_future(),
        guide.rollback().into_future()
    );
    assert!(one.is_ok());
    assert!(matches!(two, Err(Refused::Busy) | Ok(_)), "{two:?}");
    assert_eq!(trace().take(), ["undo a[1] of 0"]);
}

// What the engine has cancelled, nobody takes up again.
#[tokio::test(start_paused = true)]
async fn a_guide_that_the_engine_cancelled_stays_cancelled() {
    let (world, flow) = (World::new(), undoable());
    let engine = engine(&world, &flow).await;
    let guide = engine.guided(&flow, "g").start(Form::default());
    let guide = guide.await.unwrap();
    engine.cancel("g").await.unwrap();
    pass(1).await;
    assert_eq!(guide.view().status, Status::Cancelled);
    assert_eq!(guide.rollback().await, Err(Refused::Cancelled));
    assert_eq!(engine.status("g").await.unwrap().state, RunState::Cancelled);
}

// GDE-CAN-11
#[tokio::test(start_paused = true)]
async fn an_idle_guide_that_is_cancelled_begins_again_after_a_rollback_only() {
    let (world, flow) = (World::new(), undoable());
    let guide = started(&world, &flow).await;
    guide.rollback().await.unwrap();
    assert_eq!(guide.view().status, Status::Idle);
    guide.cancel().await.unwrap();
    assert_eq!(guide.view().status, Status::Cancelled);
    let refused = guide.start(Form::default()).await;
    assert_eq!(refused, Err(Refused::AlreadyStarted));
    guide.rollback().await.unwrap();
    guide.start(Form::default()).await.unwrap();
    assert_eq!(history(&guide.view()), ["a"]);
}

// GDE-NAV-14
#[tokio::test(start_paused = true)]
async fn back_takes_a_completed_guide_up_again_where_its_flow_allows_it() {
    for reopens in [true, false] {
        let flow = described([
            stage("a").start().to("b"),
            stage("b").body(says("b")).to("c"),
            stage("c").terminal(),
        ]);
        let (world, flow) = (World::new(), flow.reopen(reopens).build().unwrap());
        let guide = started(&world, &flow).await;
        for _ in 0..3 {
            guide.next().await.unwrap();
        }
        let ended = guide.view();
        assert_eq!(ended.actions.back, reopens);
        let came = guide.back().at(ended.revision).await;
        let view = guide.view();
        if reopens {
            assert!(matches!(came, Ok(Moved::To(stage)) if stage == "b"));
            assert_eq!((view.status, view.completed_at), (Status::Waiting, None));
            assert_eq!(history(&view), ["a", "b"]);
            assert_eq!(completed(&view), ["a", "c"]);
            assert_eq!(trace().take(), ["b"], "what succeeded is kept");
            guide.next().await.unwrap();
            assert_eq!(guide.next().await, Ok(Moved::Finished));
        } else {
            assert_eq!(came, Err(Refused::Finished));
            assert_eq!(*view, *ended);
        }
        let engine = engine(&killed(&world, guide).await, &flow).await;
        let guide = engine.guided(&flow, "g").open().await.unwrap().unwrap();
        assert_eq!(guide.view().status, Status::Completed);
        assert_eq!(guide.view().events.last(), Some(&Event::Completed));
    }
}

static HELD: Mutex<Option<Receiver<()>>> = Mutex::new(None);

#[step(blocking, retries = 0, timeout = "none")]
fn hold() -> u32 {
    let held = HELD.lock().unwrap().take();
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

// GDE-CAN-21 GDE-RBK-08: in real time, for a thread does not care about any other.
#[tokio::test(flavor = "multi_thread")]
async fn a_rollback_waits_for_a_thread_that_a_cancel_has_left_behind() {
    let (let_go, held) = channel();
    *HELD.lock().unwrap() = Some(held);
    let flow = flow([
        stage("a").start().to("b"),
        stage("b").body(|_| holds()).to("c"),
        stage("c").terminal(),
    ]);
    let engine = workflow::Engine::builder()
        .store(workflow::MemoryStore::new())
        .guided(&flow);
    let engine = engine.build().await.unwrap();
    let guide = engine.guided(&flow, "g").start(Form::default());
    let guide = guide.await.unwrap();
    let moving = tokio::spawn(guide.next().into_future());
    while HELD.lock().unwrap().is_some() {
        tokio::task::yield_now().await;
    }
    assert_eq!(guide.rollback().await, Err(Refused::Busy));
    guide.cancel().await.unwrap();
    assert_eq!(guide.view().status, Status::Cancelled);
    assert_eq!(moving.await.unwrap(), Err(Refused::Cancelled));
    assert_eq!(guide.rollback().await, Err(Refused::StillStopping));
    let_go.send(()).unwrap();
    let mut tries = 0;
    while let Err(refused) = guide.rollback().await {
        assert_eq!(refused, Refused::StillStopping);
        tokio::task::yield_now().await;
        tries += 1;
        assert!(tries < 1_000_000);
    }
    assert_eq!(guide.view().status, Status::Idle);
}
