//! Cancelling: who is asked, what is given up, and what a decision that takes its time holds back.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;
use workflow::guided::{Event, Flow, Moved, Refused, Status, stage};
use workflow::{RunState, fragment, step};
use workflow_tests::{Fault, FaultStore, World, pass};

use super::{
    Form, commits, described, engine, history, killed, questions, rested, started, takes, told,
    trace,
};

fn guarded() -> Flow<Form> {
    let flow = described([
        stage("a").start().to("b"),
        stage("b").body(takes("work", 100)).to("c"),
        stage("c").terminal(),
    ]);
    flow.exit_guard(|form| form.number == 0).build().unwrap()
}

// GDE-CAN-01
#[tokio::test(start_paused = true)]
async fn a_guard_that_says_no_refuses_and_nothing_changes() {
    let world = World::new();
    let guide = started(&world, &guarded()).await;
    guide.edit(|form| form.number = 1).await.unwrap();
    pass(1).await;
    let (before, cost) = (guide.view(), commits(&world).await);
    assert_eq!(guide.cancel().await, Err(Refused::GuardSaidNo));
    assert_eq!(*guide.view(), *before);
    assert_eq!(commits(&world).await, cost);
    guide.next().await.unwrap();
}

// GDE-CAN-02 GDE-EVT-09
#[tokio::test(start_paused = true)]
async fn a_cancelled_guide_is_stored_where_it_was() {
    let (world, flow) = (World::new(), guarded());
    let guide = started(&world, &flow).await;
    let cost = commits(&world).await;
    let revision = guide.cancel().await.unwrap();
    // The guide's end and that of its run are one commit.
    assert_eq!(commits(&world).await, cost + 1);
    let view = guide.view();
    assert_eq!(view.revision, revision);
    assert_eq!(
        (view.status, &view.events[..]),
        (Status::Cancelled, &[Event::Cancelled][..])
    );
    assert_eq!(view.at.as_ref().unwrap(), &"a");
    assert!(view.completed_at.is_some());
    let engine = engine(&world.crash(), &flow).await;
    let stored = engine.guided(&flow, "g").open().await.unwrap().unwrap();
    assert_eq!(*stored.view(), *view);
    assert_eq!(engine.status("g").await.unwrap().state, RunState::Cancelled);
}

// GDE-CAN-03
#[tokio::test(start_paused = true)]
async fn a_body_that_runs_is_given_up_and_the_move_ends_cancelled() {
    let (world, flow) = (World::new(), guarded());
    let guide = started(&world, &flow).await;
    let moving = tokio::spawn(guide.next().into_future());
    pass(10).await;
    guide.cancel().await.unwrap();
    assert_eq!(moving.await.unwrap(), Err(Refused::Cancelled));
    let view = guide.view();
    assert!(!view.busy);
    assert!(
        !view
            .events
            .iter()
            .any(|event| matches!(event, Event::Failed(_)))
    );
    pass(1_000).await;
    assert_eq!(guide.view().status, Status::Cancelled);
    let engine = engine(&killed(&world, guide).await, &flow).await;
    pass(1_000).await;
    assert_eq!(engine.in_memory(), 0);
}

// GDE-CAN-13
#[tokio::test(start_paused = true)]
async fn a_blocked_or_failed_guide_can_be_cancelled() {
    let flow = super::flow([
        stage("a")
            .start()
            .check(|form: &Form, problems| problems.when(form.number == 0, "number", "missing"))
            .to("b"),
        stage("b").body(super::unlucky).to("c"),
        stage("c").terminal(),
    ]);
    for number in [0, 1] {
        let guide = started(&World::new(), &flow).await;
        guide.edit(move |form| form.number = number).await.unwrap();
        assert!(guide.next().await.is_err());
        let expected = [Status::Blocked, Status::Failed][number as usize];
        assert_eq!(guide.view().status, expected);
        guide.cancel().await.unwrap();
        assert_eq!(guide.view().status, Status::Cancelled);
        assert_eq!(guide.retry().await, Err(Refused::Cancelled));
    }
}

/// Asks somebody else whether the guide may be cancelled.
#[derive(Clone, Default)]
struct Asked(Arc<Mutex<Vec<oneshot::Sender<bool>>>>);

impl Asked {
    fn guard(
        &self,
    ) -> impl Fn(Form) -> std::pin::Pin<Box<dyn Future<Output = bool> + Send>> + use<> {
        let asked = self.clone();
        move |_| {
            trace().say("asked");
            let (answer, answered) = oneshot::channel();
            asked.lock().push(answer);
            Box::pin(async move { answered.await.unwrap_or(false) })
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<oneshot::Sender<bool>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer(&self, may_leave: bool) {
        self.lock().pop().unwrap().send(may_leave).unwrap();
    }
}

fn asking(asked: &Asked) -> Flow<Form> {
    let flow = described([
        stage("a").start().leave(takes("leaving", 100)).to("b"),
        told("b").to("c"),
        told("c").terminal(),
    ]);
    flow.exit_guard_async(asked.guard()).build().unwrap()
}

// GDE-CAN-04
#[tokio::test(start_paused = true)]
async fn a_move_is_not_completed_while_it_is_being_decided_whether_the_guide_is_cancelled() {
    for may_leave in [true, false] {
        let asked = Asked::default();
        let guide = started(&World::new(), &asking(&asked)).await;
        let moving = tokio::spawn(guide.next().into_future());
        pass(10).await;
        let cancelling = tokio::spawn(guide.cancel().into_future());
        // The move is ready to arrive long before.
        pass(1_000).await;
        assert_eq!(history(&guide.view()), ["a"]);
        assert_eq!(guide.view().status, Status::Waiting);
        assert_eq!(trace().take(), ["leaving", "asked"]);
        guide.edit(|form| form.number = 3).await.unwrap();
        asked.answer(may_leave);
        let (cancelled, moved) = (cancelling.await.unwrap(), moving.await.unwrap());
        if may_leave {
            assert!(cancelled.is_ok());
            assert_eq!(moved, Err(Refused::Cancelled));
            assert_eq!(trace().take(), [""; 0], "b was entered");
            assert_eq!(guide.view().at.as_ref().unwrap(), &"a");
        } else {
            assert_eq!(cancelled, Err(Refused::GuardSaidNo));
            assert!(matches!(moved, Ok(Moved::To(stage)) if stage == "b"));
            assert_eq!(trace().take(), ["enter b"]);
        }
        assert_eq!(guide.view().state.number, 3);
    }
}

// GDE-CAN-04: a move that is asked for while it is being decided waits for that, too.
#[tokio::test(start_paused = true)]
async fn what_is_asked_while_it_is_being_decided_waits() {
    for may_leave in [true, false] {
        let asked = Asked::default();
        let guide = started(&World::new(), &asking(&asked)).await;
        let cancelling = tokio::spawn(guide.cancel().into_future());
        pass(10_000).await;
        let moving = tokio::spawn(guide.next().into_future());
        pass(10_000).await;
        assert_eq!(trace().take(), ["asked"]);
        asked.answer(may_leave);
        assert_eq!(cancelling.await.unwrap().is_ok(), may_leave);
        assert_eq!(moving.await.unwrap().is_ok(), !may_leave);
    }
}

// GDE-CAN-10
#[tokio::test(start_paused = true)]
async fn two_cancels_at_once_are_one_decision_and_a_third_comes_too_late() {
    let asked = Asked::default();
    let guide = started(&World::new(), &asking(&asked)).await;
    let one = tokio::spawn(guide.cancel().into_future());
    let two = tokio::spawn(guide.cancel().into_future());
    pass(10).await;
    assert_eq!(trace().take(), ["asked"]);
    // Whoever asked first may go.
    one.abort();
    asked.answer(true);
    assert!(two.await.unwrap().is_ok());
    assert_eq!(guide.cancel().await, Err(Refused::Cancelled));
    assert_eq!(trace().take(), [""; 0]);
}

// GDE-CAN-08 GDE-CAN-09: of two attempts to write it the first fails. The engine makes the second, and whoever asks again waits for it.
#[tokio::test(start_paused = true)]
async fn a_cancel_that_the_store_does_not_take_is_shown_as_such_until_it_does() {
    let flow = described([stage("a").start().to("b"), stage("b").terminal()]);
    let flow = flow.exit_guard(|_| {
        trace().say("asked");
        true
    });
    let (world, flow) = (World::new(), flow.build().unwrap());
    let store = FaultStore::over(
        &world.store,
        [Fault::None, Fault::Before, Fault::None, Fault::None],
    );
    let engine = world.engine().store(store.clone()).guided(&flow);
    let engine = engine.build().await.unwrap();
    let guide = engine.guided(&flow, "g").start(Form::default());
    let guide = guide.await.unwrap();
    assert_eq!(store.left(), 3);
    let cancelled = guide.cancel().await;
    assert!(
        matches!(&cancelled, Err(Refused::Store(text)) if text.contains("writing")),
        "{cancelled:?}"
    );
    let view = guide.view();
    assert_eq!((view.status, view.durable), (Status::Cancelled, false));
    assert_eq!(guide.edit(|_| {}).await, Err(Refused::Cancelled));
    assert_eq!(store.left(), 2);
    assert_eq!(guide.cancel().await, Ok(view.revision));
    assert!(guide.view().durable);
    assert_eq!(store.left(), 1);
    assert_eq!(guide.cancel().await, Err(Refused::Cancelled));
    assert_eq!((store.left(), trace().take().len()), (1, 1));
    assert_eq!(engine.status("g").await.unwrap().state, RunState::Cancelled);
}

// GDE-CAN-09: nobody asks again, and the process ends before it is durable.
#[tokio::test(start_paused = true)]
async fn a_cancel_that_was_never_written_did_not_happen_for_a_restart() {
    let (world, flow) = (World::new(), guarded());
    let faults = std::iter::once(Fault::None).chain([Fault::Before; 3]);
    let store = FaultStore::over(&world.store, faults);
    let engine = world.engine().store(store.clone()).guided(&flow);
    let engine = engine.build().await.unwrap();
    let guide = engine.guided(&flow, "g").start(Form::default());
    let guide = guide.await.unwrap();
    assert!(matches!(guide.cancel().await, Err(Refused::Store(_))));
    let early = world.crash();
    let early = super::engine(&early, &flow).await;
    let early = early.guided(&flow, "g").open().await.unwrap().unwrap();
    assert_eq!(early.view().status, Status::Waiting);
    // The engine went on trying.
    pass(1_000).await;
    assert_eq!(store.left(), 0);
    assert!(guide.view().durable);
}

#[tokio::test(start_paused = true)]
async fn a_guard_that_panics_is_no_yes_and_hurts_nobody_else() {
    let flow = described([
        stage("a").start().leave(takes("leaving", 100)).to("b"),
        stage("b").terminal(),
    ]);
    let flow = flow.exit_guard_async(|_| async {
        pass(10).await;
        panic!("a bad guard")
    });
    let guide = started(&World::new(), &flow.build().unwrap()).await;
    let moving = tokio::spawn(guide.next().into_future());
    pass(10).await;
    assert_eq!(
        guide.cancel().await,
        Err(Refused::Panicked("a bad guard".into()))
    );
    assert!(moving.await.unwrap().is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_guide_that_is_being_decided_on_stays_in_memory() {
    let (world, asked) = (World::new(), Asked::default());
    let flow = asking(&asked);
    let engine = engine(&world, &flow).await;
    let guide = engine
        .guided(&flow, "g")
        .start(Form::default())
        .await
        .unwrap();
    rested(&guide).await;
    let cancelling = tokio::spawn(guide.cancel().into_future());
    pass(3_600_000).await;
    assert_eq!(engine.in_memory(), 1);
    asked.answer(true);
    assert!(cancelling.await.unwrap().is_ok());
    assert_eq!(engine.in_memory(), 0);
    engine.shutdown(Duration::ZERO).await.unwrap();
}

/// A body that gives its own guide up.
#[step(retries = 0, timeout = "none")]
async fn gives_up() -> Result<(), super::Unlucky> {
    let guide = OWN.with_borrow(Clone::clone).unwrap();
    trace().say(format!("{:?}", guide.next().await));
    trace().say(format!("{:?}", guide.cancel().await.is_ok()));
    Ok(())
}

thread_local! {
    static OWN: std::cell::RefCell<Option<workflow::guided::Guide<Form>>> =
        const { std::cell::RefCell::new(None) };
}

#[fragment]
async fn drives_itself() -> Result<(), workflow::Failure> {
    gives_up().await?;
    Ok(())
}

// GDE-CON-03 GDE-CAN-19
#[tokio::test(start_paused = true)]
async fn a_body_that_drives_its_own_guide_is_a_driver_like_any_other() {
    let flow = super::flow([
        stage("a").start().to("b"),
        stage("b").body(|_| drives_itself()).to("c"),
        stage("c").terminal(),
    ]);
    let guide = started(&World::new(), &flow).await;
    OWN.set(Some(guide.clone()));
    assert_eq!(guide.next().await, Err(Refused::Cancelled));
    assert_eq!(trace().take(), ["Err(Busy)"]);
    assert_eq!(guide.view().status, Status::Cancelled);
    OWN.set(None);
}

// GDE-CAN-12
#[tokio::test(start_paused = true)]
async fn a_completed_guide_is_not_cancelled() {
    let guide = started(&World::new(), &questions()).await;
    for _ in 0..3 {
        guide.next().await.unwrap();
    }
    assert_eq!(guide.cancel().await, Err(Refused::Finished));
    assert_eq!(guide.view().status, Status::Completed);
}
