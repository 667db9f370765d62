//! Next, back and skip: where they lead, what they run, and when they are refused.

use workflow::guided::{Event, Failing, Moved, Refused, Stage, StageName, Status, View, stage};
use workflow::{Failure, Fragment};
use workflow_tests::World;

use super::{
    Effect, Form, commits, completed, described, flow, history, one, questions, row, skipped,
    started, told, trace, unlucky,
};

fn to(stage: &str) -> impl Fn(Moved) -> bool + '_ {
    move |moved| matches!(&moved, Moved::To(at) if *at == stage)
}

// GDE-NAV-01
#[tokio::test(start_paused = true)]
async fn a_guide_begins_at_its_start() {
    let guide = started(&World::new(), &row()).await;
    let view = guide.view();
    assert_eq!(view.status, Status::Waiting);
    assert_eq!(view.at.as_ref().unwrap(), &"a");
    assert_eq!(history(&view), ["a"]);
    assert_eq!(completed(&view), [""; 0]);
    assert_eq!(trace().take(), ["enter a"]);
    assert_eq!(view.started_at.unwrap().as_millis(), 1_000_000);
}

// GDE-NAV-03 GDE-NAV-04
#[tokio::test(start_paused = true)]
async fn next_leaves_a_stage_and_enters_the_next_one_and_ends_at_the_terminal() {
    let guide = started(&World::new(), &row()).await;
    trace().take();
    assert!(to("b")(guide.next().await.unwrap()));
    assert_eq!(trace().take(), ["leave a", "enter b"]);
    let view = guide.view();
    assert_eq!(view.at.as_ref().unwrap(), &"b");
    assert_eq!(completed(&view), ["a"]);
    assert_eq!(history(&view), ["a", "b"]);
    assert!(to("c")(guide.next().await.unwrap()));
    assert_eq!(guide.next().await.unwrap(), Moved::Finished);
    let view = guide.view();
    assert_eq!(view.status, Status::Completed);
    assert!(view.completed_at.is_some());
    assert_eq!(view.at.as_ref().unwrap(), &"c");
    assert_eq!(completed(&view), ["a", "b", "c"]);
    assert!(trace().take().contains(&"leave c".to_owned()));
}

// GDE-NAV-05: guards decide in order, and the order of the stages does not.
#[tokio::test(start_paused = true)]
async fn the_first_open_exit_is_taken_and_later_guards_are_not_asked() {
    let flow = flow([
        stage("20").terminal(),
        stage("3").terminal(),
        stage("1")
            .start()
            .to_if("20", |_: &Form| false)
            .to_if("3", |_| {
                trace().say("second");
                true
            })
            .to_if("20", |_| {
                trace().say("third");
                true
            })
            .stay(),
    ]);
    let guide = started(&World::new(), &flow).await;
    // The view asks, too: what lies ahead.
    trace().take();
    assert!(to("3")(guide.next().await.unwrap()));
    let asked = trace().take();
    assert!(!asked.is_empty() && asked.iter().all(|asked| asked == "second"));
}

// GDE-NAV-06
#[tokio::test(start_paused = true)]
async fn where_no_exit_is_open_the_guide_stays_and_nothing_is_left() {
    let world = World::new();
    let flow = flow([
        told("a").start().to_if("b", |form| form.number > 0).stay(),
        told("b").terminal(),
    ]);
    let guide = started(&world, &flow).await;
    trace().take();
    let (before, cost) = (guide.view(), commits(&world).await);
    assert_eq!(guide.next().await, Err(Refused::NoRoute));
    assert_eq!(trace().take(), [""; 0]);
    assert_eq!(*guide.view(), *before);
    assert_eq!(commits(&world).await, cost);
    guide.edit(|form| form.number = 1).await.unwrap();
    assert!(to("b")(guide.next().await.unwrap()));
}

// GDE-NAV-07 GDE-NAV-30
#[tokio::test(start_paused = true)]
async fn a_stage_whose_condition_does_not_hold_is_passed_over_going_forward_only() {
    let flow = flow([
        told("a").start().to("b"),
        told("b").when(|form| form.number > 0).to("c"),
        told("c").to("d"),
        told("d").terminal(),
    ]);
    let guide = started(&World::new(), &flow).await;
    trace().take();
    assert!(to("c")(guide.next().await.unwrap()));
    let view = guide.view();
    assert_eq!(history(&view), ["a", "c"]);
    assert_eq!(skipped(&view), ["b"]);
    assert_eq!(trace().take(), ["leave a", "enter c"]);

    guide.back().await.unwrap();
    assert_eq!(skipped(&guide.view()), [""; 0]);
    guide.edit(|form| form.number = 1).await.unwrap();
    assert!(to("b")(guide.next().await.unwrap()));
    assert!(to("c")(guide.next().await.unwrap()));
    guide.edit(|form| form.number = 0).await.unwrap();
    assert!(to("b")(guide.back().await.unwrap()));
}

// GDE-NAV-08 GDE-NAV-09
#[tokio::test(start_paused = true)]
async fn a_guide_whose_first_stages_are_passed_over_begins_behind_them() {
    let some = flow([
        told("a").start().when(|_| false).to("b"),
        told("b").terminal(),
    ]);
    let guide = started(&World::new(), &some).await;
    assert_eq!(history(&guide.view()), ["b"]);
    assert_eq!(completed(&guide.view()), [""; 0]);

    let all = flow([
        told("a").start().when(|_| false).to("b"),
        told("b").when(|_| false).terminal(),
    ]);
    let guide = started(&World::new(), &all).await;
    let view = guide.view();
    assert_eq!(view.status, Status::Completed);
    assert_eq!((history(&view), view.at.clone()), (vec![], None));
    assert_eq!(skipped(&view), ["a", "b"]);
    assert_eq!(trace().take(), [""; 0]);
}

// GDE-NAV-11 GDE-NAV-12
#[tokio::test(start_paused = true)]
async fn back_leads_to_the_stage_before_and_its_body_runs_again() {
    let world = World::new();
    let guide = started(&world, &row()).await;
    let (before, cost) = (guide.view(), commits(&world).await);
    assert_eq!(guide.back().await, Err(Refused::AtStart));
    assert_eq!(*guide.view(), *before);
    assert_eq!(commits(&world).await, cost);

    guide.next().await.unwrap();
    trace().take();
    assert!(to("a")(guide.back().await.unwrap()));
    let view = guide.view();
    assert_eq!(history(&view), ["a"]);
    assert_eq!(completed(&view), [""; 0]);
    assert_eq!(view.status, Status::Waiting);
    assert_eq!(trace().take(), ["enter a"]);
}

// GDE-NAV-13
#[tokio::test(start_paused = true)]
async fn one_can_go_back_from_a_stage_that_failed_or_is_blocked() {
    let flow = flow([
        stage("a").start().to("b"),
        stage("b")
            .check(|form: &Form, problems| problems.when(form.number == 0, "number", "missing"))
            .to("c"),
        stage("c").body(unlucky).to("d"),
        stage("d").terminal(),
    ]);
    let guide = started(&World::new(), &flow).await;
    guide.next().await.unwrap();
    assert!(matches!(guide.next().await, Err(Refused::Invalid(_))));
    assert!(to("a")(guide.back().await.unwrap()));
    assert_eq!(guide.view().problems, []);
    guide.next().await.unwrap();
    guide.edit(|form| form.number = 1).await.unwrap();
    assert!(matches!(guide.next().await, Err(Refused::Failed(_))));
    assert_eq!(guide.view().status, Status::Failed);
    assert!(to("b")(guide.back().await.unwrap()));
    assert_eq!(guide.view().status, Status::Waiting);
    assert_eq!(guide.view().failure, None);
}

// GDE-NAV-14 GDE-NAV-20 GDE-NAV-28 GDE-RTY-05
#[tokio::test(start_paused = true)]
async fn a_guide_that_has_ended_does_nothing_more() {
    let world = World::new();
    let guide = started(&world, &questions()).await;
    for _ in 0..3 {
        guide.next().await.unwrap();
    }
    let (before, cost) = (guide.view(), commits(&world).await);
    assert_eq!(guide.next().await, Err(Refused::Finished));
    assert_eq!(guide.back().await, Err(Refused::Finished));
    assert_eq!(
        guide.skip().await,
        Err(Refused::NotRunning(Status::Completed))
    );
    assert_eq!(guide.retry().await, Err(Refused::NothingToRetry));
    assert_eq!(guide.edit(|_| {}).await, Err(Refused::Finished));
    // GDE-CAN-12
    assert_eq!(guide.cancel().await, Err(Refused::Finished));
    assert_eq!(*guide.view(), *before);
    assert_eq!(commits(&world).await, cost);
}

// GDE-NAV-16 GDE-NAV-17
#[tokio::test(start_paused = true)]
async fn back_takes_one_stop_off_the_way() {
    let round = flow([
        stage("a")
            .start()
            .to_if("a", |form: &Form| form.number == 7)
            .to("b"),
        stage("b")
            .to_if("a", |form: &Form| form.number == 0)
            .to("c"),
        stage("c").terminal(),
    ]);
    let guide = started(&World::new(), &round).await;
    guide.next().await.unwrap();
    guide.next().await.unwrap();
    assert_eq!(history(&guide.view()), ["a", "b", "a"]);
    assert!(to("b")(guide.back().await.unwrap()));
    assert_eq!(history(&guide.view()), ["a", "b"]);

    guide.back().await.unwrap();
    guide.edit(|form| form.number = 7).await.unwrap();
    assert!(to("a")(guide.next().await.unwrap()));
    assert_eq!(history(&guide.view()), ["a", "a"]);
    guide.back().await.unwrap();
    assert_eq!(history(&guide.view()), ["a"]);
}

// GDE-NAV-18 GDE-NAV-19
#[tokio::test(start_paused = true)]
async fn skip_asks_neither_the_checks_nor_what_leaving_does() {
    let flow = flow([
        told("a")
            .start()
            .skippable()
            .check(|_, problems| problems.say("never right"))
            .to("b"),
        told("b").terminal(),
    ]);
    let guide = started(&World::new(), &flow).await;
    trace().take();
    assert!(to("b")(guide.skip().await.unwrap()));
    assert_eq!(trace().take(), ["enter b"]);
    let view = guide.view();
    assert_eq!((skipped(&view), completed(&view)), (vec!["a"], vec![]));

    guide.back().await.unwrap();
    assert!(matches!(guide.next().await, Err(Refused::Invalid(_))));
    assert_eq!(guide.view().status, Status::Blocked);
    assert!(to("b")(guide.skip().await.unwrap()));
    assert_eq!(guide.view().status, Status::Waiting);
    assert_eq!(guide.view().problems, []);
}

// GDE-NAV-20 GDE-NAV-21
#[tokio::test(start_paused = true)]
async fn a_skipped_stage_before_the_end_is_not_completed() {
    let flow = flow([
        stage("a").start().to("b"),
        stage("b").skippable().to("c"),
        stage("c").when(|_: &Form| false).terminal(),
    ]);
    let guide = started(&World::new(), &flow).await;
    guide.next().await.unwrap();
    assert_eq!(guide.skip().await.unwrap(), Moved::Finished);
    let view = guide.view();
    assert_eq!(view.status, Status::Completed);
    assert_eq!(
        (completed(&view), skipped(&view)),
        (vec!["a"], vec!["b", "c"])
    );
}

// GDE-NAV-22
#[tokio::test(start_paused = true)]
async fn a_stage_that_is_not_skippable_is_not_skipped() {
    let guide = started(&World::new(), &questions()).await;
    assert!(!guide.view().actions.skip);
    assert_eq!(guide.skip().await, Err(Refused::NotSkippable));
    assert_eq!(history(&guide.view()), ["a"]);
}

// GDE-NAV-26 GDE-VAL-10
#[tokio::test(start_paused = true)]
async fn what_cannot_be_left_is_not_left_and_may_be_tried_again() {
    let world = World::new();
    let flow = flow([
        stage("a").start().leave(leaves).to("b"),
        told("b").terminal(),
    ]);
    let guide = started(&world, &flow).await;
    let before = guide.view();
    let refused = guide.next().await.unwrap_err();
    let Refused::Leave(Failing { text, .. }) = refused else {
        panic!("{refused}");
    };
    assert!(text.contains("no luck today"), "{text}");
    // What was tried is shown, and nothing else has changed.
    let mut after = View::clone(&guide.view());
    let tried = std::mem::take(&mut after.operations);
    assert_eq!(tried[0].name(), "leave[1]/have");
    assert_eq!(after, *before);
    guide.edit(|form| form.number = 1).await.unwrap();
    assert!(to("b")(guide.next().await.unwrap()));
}

fn leaves(stage: Stage<Form>) -> Fragment<'static, Result<(), Failure>> {
    one(Effect {
        name: "luck".to_owned(),
        millis: 0,
        fails: stage.state().number == 0,
    })
}

// GDE-NAV-27
#[tokio::test(start_paused = true)]
async fn a_long_way_is_kept_whole_or_up_to_a_cap() {
    let stages = || {
        [
            stage("a").start().to("b"),
            stage("b")
                .to_if("a", |form: &Form| form.number == 0)
                .to("c"),
            stage("c").terminal(),
        ]
    };
    let whole = started(&World::new(), &flow(stages())).await;
    let capped = described(stages()).history(3).build().unwrap();
    let capped = started(&World::new(), &capped).await;
    for _ in 0..11 {
        whole.next().await.unwrap();
        capped.next().await.unwrap();
    }
    assert_eq!(history(&whole.view()).len(), 12);
    for guide in [&whole, &capped] {
        assert_eq!(completed(&guide.view()), ["a", "b"]);
    }
    assert_eq!(history(&capped.view()), ["b", "a", "b"]);
    capped.back().await.unwrap();
    capped.back().await.unwrap();
    assert_eq!(capped.back().await, Err(Refused::AtStart));
}

// GDE-EVT-01 GDE-RTY-08
#[tokio::test(start_paused = true)]
async fn each_revision_says_what_it_did_in_order() {
    let flow = flow([
        stage("a").start().to("b"),
        stage("b").when(|_: &Form| false).to("c"),
        stage("c").terminal(),
    ]);
    let name = |name: &str| flow_stage(&flow, name);
    let guide = started(&World::new(), &flow).await;
    assert_eq!(
        guide.view().events,
        [Event::Started, Event::Entered(name("a"))]
    );
    guide.next().await.unwrap();
    assert_eq!(
        guide.view().events,
        [
            Event::Checked(name("a")),
            Event::Left(name("a")),
            Event::PassedOver(name("b")),
            Event::Entered(name("c")),
        ]
    );
    guide.next().await.unwrap();
    assert_eq!(
        guide.view().events,
        [
            Event::Checked(name("c")),
            Event::Left(name("c")),
            Event::Completed,
        ]
    );
}

/// The name of a stage, as views have it.
fn flow_stage(flow: &workflow::guided::Flow<Form>, name: &str) -> StageName {
    flow.stage_name(name).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_guard_that_panics_refuses_the_move_and_nothing_else() {
    let flow = flow([
        stage("a")
            .start()
            .to_if("b", |form: &Form| {
                assert!(form.number > 0, "a bad guard");
                true
            })
            .stay(),
        stage("b").terminal(),
    ]);
    let guide = started(&World::new(), &flow).await;
    assert_eq!(guide.view().ahead, [""; 0]);
    let refused = guide.next().await;
    assert_eq!(refused, Err(Refused::Panicked("a bad guard".into())));
    guide.edit(|form| form.number = 1).await.unwrap();
    assert_eq!(guide.view().ahead, ["b"]);
    guide.next().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_command_costs_one_commit_and_its_own_steps() {
    let world = World::new();
    let flow = flow([
        stage("a").start().to("b"),
        stage("b").to("c"),
        stage("c").body(super::says("c")).to("d"),
        stage("d").terminal(),
    ]);
    let guide = started(&world, &flow).await;
    // It rests: its row says so.
    workflow_tests::pass(1).await;
    let at = commits(&world).await;
    guide.next().await.unwrap();
    assert_eq!(commits(&world).await - at, 1);
    guide.edit(|form| form.number = 1).await.unwrap();
    assert_eq!(commits(&world).await - at, 2);
    guide.next().await.unwrap();
    // That its body has ended goes with what comes next.
    assert_eq!(commits(&world).await - at, 4);
    assert_eq!(guide.view().status, Status::Waiting);
    guide.back().await.unwrap();
    assert_eq!(commits(&world).await - at, 5);
    // The step is kept.
    guide.next().await.unwrap();
    assert_eq!(commits(&world).await - at, 6);
    workflow_tests::pass(1_000).await;
    assert_eq!(commits(&world).await - at, 6);
    guide.next().await.unwrap();
    let at = commits(&world).await;
    guide.next().await.unwrap();
    // The end of the guide and that of its run are one.
    assert_eq!(commits(&world).await - at, 1);
}
