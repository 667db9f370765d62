//! Several drivers, and several commands at once.

use workflow::guided::{Moved, OpenError, Refused, Status, stage};
use workflow_tests::{World, pass};

use super::{Form, commits, engine, flow, history, questions, started, takes, told, trace};

// GDE-CON-01 GDE-CON-06
#[tokio::test(start_paused = true)]
async fn of_two_moves_at_once_one_moves_and_the_other_is_refused() {
    let flow = flow([
        stage("a").start().leave(takes("leave a", 100)).to("b"),
        told("b").to("c"),
        told("c").terminal(),
    ]);
    let guide = started(&World::new(), &flow).await;
    let other = guide.clone();
    let busy = async {
        pass(10).await;
        let view = guide.view();
        assert!(view.busy && !view.actions.next, "{view:?}");
    };
    let (one, two, ()) = tokio::join!(guide.next().into_future(), other.next().into_future(), busy);
    assert!(matches!(one, Ok(Moved::To(_))), "{one:?}");
    assert_eq!(two, Err(Refused::Busy));
    assert_eq!(trace().take(), ["leave a", "enter b"]);
    assert_eq!(history(&guide.view()), ["a", "b"]);
    assert!(!guide.view().busy);
}

// GDE-CON-02
#[tokio::test(start_paused = true)]
async fn while_a_body_runs_every_other_move_is_refused() {
    let flow = flow([
        stage("a").start().to("b"),
        stage("b").body(takes("work", 100)).to("c"),
        stage("c").terminal(),
    ]);
    let guide = started(&World::new(), &flow).await;
    let moving = tokio::spawn(guide.next().into_future());
    pass(10).await;
    assert_eq!(guide.next().await, Err(Refused::Busy));
    assert_eq!(guide.back().await, Err(Refused::Busy));
    assert_eq!(guide.skip().await, Err(Refused::Busy));
    assert_eq!(guide.retry().await, Err(Refused::Busy));
    assert_eq!(guide.check().await, Err(Refused::Busy));
    moving.await.unwrap().unwrap();
    assert_eq!(history(&guide.view()), ["a", "b"]);
}

// GDE-CON-06: also after a move that failed, and one that was cancelled.
#[tokio::test(start_paused = true)]
async fn a_guide_is_busy_during_a_move_and_never_after_it() {
    let failing = flow([
        stage("a").start().to("b"),
        stage("b").body(super::unlucky).to("c"),
        stage("c").terminal(),
    ]);
    let guide = started(&World::new(), &failing).await;
    assert!(matches!(guide.next().await, Err(Refused::Failed(_))));
    assert!(!guide.view().busy);

    let slow = flow([
        stage("a").start().to("b"),
        stage("b").body(takes("work", 100)).to("c"),
        stage("c").terminal(),
    ]);
    let guide = started(&World::new(), &slow).await;
    let moving = tokio::spawn(guide.next().into_future());
    pass(10).await;
    assert!(guide.view().busy);
    guide.cancel().await.unwrap();
    assert_eq!(moving.await.unwrap(), Err(Refused::Cancelled));
    assert!(!guide.view().busy);
    // GDE-CAN-02
    let view = guide.view();
    assert_eq!(view.status, Status::Cancelled);
    assert_eq!(view.at.as_ref().unwrap(), &"b");
    assert!(view.completed_at.is_some());
}

// GDE-CON-05 GDE-CON-08
#[tokio::test(start_paused = true)]
async fn a_command_decided_on_an_older_revision_is_refused() {
    let world = World::new();
    let guide = started(&world, &questions()).await;
    let seen = guide.view().revision;
    guide.next().at(seen).await.unwrap();
    let stale = Refused::Stale { revision: seen + 1 };
    assert_eq!(guide.next().at(seen).await, Err(stale.clone()));
    assert_eq!(
        guide.edit(|form| form.number = 1).at(seen).await,
        Err(stale)
    );
    assert_eq!(history(&guide.view()), ["a", "b"]);
    assert_eq!(guide.view().state.number, 0);
}

#[tokio::test(start_paused = true)]
async fn a_command_with_a_key_is_obeyed_once_also_across_a_restart() {
    let (world, flow) = (World::new(), questions());
    let guide = started(&world, &flow).await;
    let seen = guide.view().revision;
    guide.next().at(seen).key("click-1").await.unwrap();
    let cost = commits(&world).await;
    let again = guide.next().at(seen).key("click-1").await;
    assert!(matches!(again, Ok(Moved::To(stage)) if stage == "b"));
    assert_eq!(commits(&world).await, cost);
    let engine = engine(&world.crash(), &flow).await;
    let guide = engine.guided(&flow, "g").open().await.unwrap().unwrap();
    guide.next().at(seen).key("click-1").await.unwrap();
    assert_eq!(history(&guide.view()), ["a", "b"]);
}

// GDE-NAV-02
#[tokio::test(start_paused = true)]
async fn a_guide_is_started_once() {
    let (world, flow) = (World::new(), questions());
    let engine = engine(&world, &flow).await;
    let guide = engine
        .guided(&flow, "g")
        .start(Form::default())
        .await
        .unwrap();
    guide.next().await.unwrap();
    let before = guide.view();
    for number in [0, 1] {
        let form = Form {
            number,
            ..Form::default()
        };
        let again = engine.guided(&flow, "g").start(form).await;
        assert!(matches!(again, Err(OpenError::AlreadyStarted { .. })));
    }
    assert_eq!(*guide.view(), *before);
    let opened = engine.guided(&flow, "g").open_or_start(|| unreachable!());
    assert_eq!(*opened.await.unwrap().view(), *before);
}

// GDE-PER-10 GDE-DEF-13
#[tokio::test(start_paused = true)]
async fn two_guides_of_one_flow_know_nothing_of_each_other() {
    let (world, flow) = (World::new(), questions());
    let engine = engine(&world, &flow).await;
    let one = engine
        .guided(&flow, "one")
        .start(Form::default())
        .await
        .unwrap();
    let two = engine
        .guided(&flow, "two")
        .start(Form::default())
        .await
        .unwrap();
    one.edit(|form| form.number = 1).await.unwrap();
    one.next().await.unwrap();
    assert_eq!(history(&two.view()), ["a"]);
    assert_eq!(two.view().state, Form::default());
}
