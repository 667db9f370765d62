//! Rolling a guide back.

use workflow::guided::{
    Event, Flow, Guide, Moved, Refused, Revisit, StageBuilder, Status, Undone, stage,
};
use workflow::{Failure, current_step, fragment, join, step};
use workflow_tests::{Counter, World, pass};

use super::{Effect, Form, Unlucky, engine, flow, have, history, killed, says, started, trace};

/// A stage with an undo that tells of itself.
fn undoable(name: &str) -> StageBuilder<Form> {
    stage(name)
        .body(says(name))
        .revisit(Revisit::Fresh)
        .undo(tells)
}

async fn tells(undone: Undone<Form>) -> Result<(), Unlucky> {
    let Undone {
        stage,
        visit,
        state,
        ..
    } = undone;
    trace().say(format!("undo {stage}[{visit}] of {}", state.number));
    Ok(())
}

fn undone(stages: &[&str]) -> Vec<String> {
    let told = stages.iter().map(|stage| format!("undo {stage} of 7"));
    told.collect()
}

fn row() -> Flow<Form> {
    flow([
        undoable("a")
            .start()
            .to_if("a", |form: &Form| form.number == 0)
            .to("b"),
        undoable("b").skippable().to("c"),
        undoable("c").to("d"),
        stage("d").terminal(),
    ])
}

// GDE-RBK-04 GDE-RBK-12 GDE-RBK-15 GDE-RBK-16 GDE-RBK-17
#[tokio::test(start_paused = true)]
async fn what_was_completed_is_undone_newest_first_and_the_guide_begins_again() {
    let (world, flow) = (World::new(), row());
    let guide = started(&world, &flow).await;
    guide.next().await.unwrap();
    guide.next().await.unwrap();
    guide.edit(|form| form.number = 7).await.unwrap();
    guide.next().await.unwrap();
    assert_eq!(history(&guide.view()), ["a", "a", "a", "b"]);
    guide.skip().await.unwrap();
    guide.next().await.unwrap();
    trace().take();
    let mut changes = guide.watch();
    let rolling = tokio::spawn(guide.rollback().into_future());
    changes.next().await.unwrap();
    rolling.await.unwrap().unwrap();
    // The skipped one is not among them; each visit has its own.
    assert_eq!(trace().take(), undone(&["c[1]", "a[3]", "a[2]", "a[1]"]));
    let view = guide.view();
    assert_eq!(
        (view.status, &view.events[..]),
        (Status::Idle, &[Event::RolledBack][..])
    );
    assert_eq!(view.state, Form::default());
    assert_eq!(
        (history(&view), view.at.clone(), view.started_at),
        (vec![], None, None)
    );
    assert!(view.completed.is_empty() && view.skipped.is_empty());
    assert_eq!(guide.next().await, Err(Refused::NotRunning(Status::Idle)));
    // GDE-VAL-11
    assert_eq!(guide.check().await, Ok(vec![]));
    assert_eq!(*guide.view(), *view);
    // GDE-RBK-09
    guide.rollback().await.unwrap();
    assert_eq!(trace().take(), [""; 0]);

    // GDE-RBK-11: a restart does not show what was taken back.
    let engine = engine(&killed(&world, guide).await, &flow).await;
    let guide = engine.guided(&flow, "g").open().await.unwrap().unwrap();
    assert_eq!(guide.view().status, Status::Idle);
    let again = Form {
        name: "again".into(),
        number: 7,
    };
    assert!(matches!(guide.start(again).await, Ok(Moved::To(stage)) if stage == "a"));
    assert_eq!(trace().take(), ["a"], "it is had again");
    assert_eq!(guide.view().state.name, "again");
    assert_eq!(history(&guide.view()), ["a"]);
    // GDE-NAV-02
    let twice = guide.start(Form::default()).await;
    assert_eq!(twice, Err(Refused::AlreadyStarted));
}

// GDE-RBK-17: a stage that was not left, or failed, only if it says so.
#[tokio::test(start_paused = true)]
async fn an_unfinished_stage_is_undone_only_if_it_says_so() {
    for unfinished in [false, true] {
        let last = stage("b")
            .body(super::unlucky)
            .undo(|undone: Undone<Form>| async move {
                trace().say(format!("undo b, finished: {}", undone.finished));
                Ok::<_, Unlucky>(())
            });
        let last = if unfinished {
            last.undo_unfinished()
        } else {
            last
        };
        let flow = flow([
            undoable("a").start().to("b"),
            last.to("c"),
            stage("c").terminal(),
        ]);
        let guide = started(&World::new(), &flow).await;
        guide.edit(|form| form.number = 7).await.unwrap();
        assert!(guide.next().await.is_err());
        trace().take();
        guide.rollback().await.unwrap();
        let told = trace().take();
        assert_eq!(told.last().unwrap(), "undo a[1] of 7");
        assert_eq!(told.len() == 2, unfinished);
        if unfinished {
            assert_eq!(told[0], "undo b, finished: false");
        }
    }
}

#[step(retries = 0, timeout = "none")]
async fn keyed(fails: bool) -> Result<String, Unlucky> {
    let key = current_step().idempotency_key();
    trace().say(key.clone());
    if fails {
        return Err(Unlucky("key".to_owned()));
    }
    Ok(key)
}

#[fragment]
async fn has_a_key(fails: bool) -> Result<(), Failure> {
    keyed(fails).await?;
    Ok(())
}

// A provider is asked to undo under the key that it was asked under.
#[tokio::test(start_paused = true)]
async fn the_undo_of_a_step_that_was_tried_again_in_another_visit_has_its_key() {
    let (world, flow) = (
        World::new(),
        flow([
            stage("a").start().to("b"),
            stage("b")
                .body(|stage: super::Stage<Form>| has_a_key(stage.state().number == 0))
                .undo_step("keyed", |gave: String, undone: Undone<Form>| async move {
                    assert_eq!(undone.visit, 2);
                    trace().say(gave);
                    trace().say(current_step().idempotency_key());
                    Ok::<_, Unlucky>(())
                })
                .to("c"),
            stage("c").terminal(),
        ]),
    );
    let guide = started(&world, &flow).await;
    guide.next().await.unwrap_err();
    guide.edit(|form| form.number = 1).await.unwrap();
    guide.retry().await.unwrap();
    // Also when only what is recorded is known.
    let guide = {
        let engine = engine(&killed(&world, guide).await, &flow).await;
        engine.guided(&flow, "g").open().await.unwrap().unwrap()
    };
    guide.rollback().await.unwrap();
    let [gave, undone] = &trace().take()[..] else {
        panic!()
    };
    assert_eq!(gave, undone);
}

fn failing(times: usize) -> (Flow<Form>, Counter) {
    let tries = Counter::default();
    let count = tries.clone();
    let flow = flow([
        undoable("a").start().to("b"),
        undoable("b")
            .undo(move |_: Undone<Form>| {
                let failed = count.hit() <= times;
                async move {
                    if failed {
                        return Err(Unlucky("undo".to_owned()));
                    }
                    trace().say("undo b");
                    Ok(())
                }
            })
            .to("c"),
        undoable("c").to("d"),
        stage("d").terminal(),
    ]);
    (flow, tries)
}

// GDE-RBK-18
#[tokio::test(start_paused = true)]
async fn an_undo_that_fails_is_tried_again() {
    let (flow, tries) = failing(2);
    let guide = started(&World::new(), &flow).await;
    guide.edit(|form| form.number = 7).await.unwrap();
    for _ in 0..3 {
        guide.next().await.unwrap();
    }
    trace().take();
    guide.rollback().await.unwrap();
    assert_eq!(tries.count(), 3);
    let mut expected = undone(&["c[1]", "a[1]"]);
    expected.insert(1, "undo b".to_owned());
    assert_eq!(trace().take(), expected);
}

// GDE-RBK-19
#[tokio::test(start_paused = true)]
async fn a_rollback_that_is_stuck_goes_on_where_it_was_and_nothing_else_moves_the_guide() {
    let (flow, tries) = failing(4);
    let world = World::new();
    let guide = started(&world, &flow).await;
    guide.edit(|form| form.number = 7).await.unwrap();
    for _ in 0..3 {
        guide.next().await.unwrap();
    }
    trace().take();
    let Err(Refused::Failed(failing)) = guide.rollback().await else {
        panic!("{:?}", guide.view());
    };
    assert!(failing.text.contains("b[1]"), "{failing}");
    assert_eq!(trace().take(), undone(&["c[1]"]));
    let stuck = Refused::NotRunning(Status::RollingBack);
    assert_eq!(guide.next().await, Err(stuck.clone()));
    assert_eq!(guide.back().await, Err(stuck.clone()));
    assert_eq!(guide.check().await, Err(stuck.clone()));
    assert_eq!(guide.edit(|_| {}).await, Err(stuck));
    // A restart finds it stuck, and does not begin by itself.
    let engine = engine(&killed(&world, guide).await, &flow).await;
    let guide = engine.guided(&flow, "g").open().await.unwrap().unwrap();
    pass(1_000).await;
    assert_eq!(
        (guide.view().status, tries.count()),
        (Status::RollingBack, 4)
    );
    guide.rollback().await.unwrap();
    let mut expected = undone(&["a[1]"]);
    expected.insert(0, "undo b".to_owned());
    assert_eq!(trace().take(), expected);
}

// No undo twice: one that ended is recorded, and a restart goes on with the next.
#[tokio::test(start_paused = true)]
async fn a_rollback_that_is_cut_off_goes_on_by_itself() {
    let flow = flow([
        undoable("a").start().to("b"),
        undoable("b")
            .undo(|_: Undone<Form>| async {
                trace().say("undo b");
                pass(100).await;
                Ok::<_, Unlucky>(())
            })
            .to("c"),
        undoable("c").to("d"),
        stage("d").terminal(),
    ]);
    let world = World::new();
    let guide = started(&world, &flow).await;
    guide.edit(|form| form.number = 7).await.unwrap();
    for _ in 0..3 {
        guide.next().await.unwrap();
    }
    let rolling = tokio::spawn(guide.rollback().into_future());
    pass(50).await;
    // GDE-CON-02
    assert_eq!(guide.rollback().await, Err(Refused::Busy));
    assert!(guide.view().busy);
    rolling.abort();
    let world = killed(&world, guide).await;
    trace().take();
    let engine = engine(&world, &flow).await;
    pass(1_000).await;
    let mut expected = undone(&["a[1]"]);
    expected.insert(0, "undo b".to_owned());
    assert_eq!(trace().take(), expected);
    let guide = engine.guided(&flow, "g").open().await.unwrap().unwrap();
    assert_eq!(guide.view().status, Status::Idle);
}

// GDE-CAN-06
#[tokio::test(start_paused = true)]
async fn a_cancel_stops_a_rollback_where_it_is() {
    let flow = flow([
        undoable("a").start().to("b"),
        stage("b")
            .undo(|_: Undone<Form>| async {
                pass(100).await;
                Ok::<_, Unlucky>(())
            })
            .to("c"),
        stage("c").terminal(),
    ]);
    let guide = started(&World::new(), &flow).await;
    guide.next().await.unwrap();
    guide.next().await.unwrap();
    trace().take();
    let rolling = tokio::spawn(guide.rollback().into_future());
    pass(50).await;
    guide.cancel().await.unwrap();
    assert_eq!(rolling.await.unwrap(), Err(Refused::Cancelled));
    assert_eq!(guide.view().status, Status::Cancelled);
    pass(1_000).await;
    assert_eq!(trace().take(), [""; 0]);
}

fn effect(name: &str) -> Effect {
    Effect {
        name: name.to_owned(),
        millis: 0,
        fails: false,
    }
}

/// Three branches, one of which may fail, and an operation after them.
#[fragment]
async fn branches(fails: bool) -> Result<(), Failure> {
    let late = |name, millis, fails| Effect {
        millis,
        fails,
        ..effect(name)
    };
    join!(
        both,
        p1 = have(late("p1", 0, false)).await?,
        p2 = have(late("p2", 10, fails)).await?,
        p3 = have(late("p3", 20, false)).await?
    )
    .await?;
    #[step(name = "o1", retries = 0)]
    have(effect("o1")).await?;
    Ok(())
}

#[fragment]
async fn operation(fails: bool) -> Result<(), Failure> {
    let effect = Effect {
        fails,
        ..effect("o3")
    };
    #[step(name = "o3", retries = 0)]
    have(effect.clone()).await?;
    Ok(())
}

/// The undo of a step, which says so.
async fn takes_back(gave: String, undone: Undone<Form>) -> Result<(), Unlucky> {
    trace().say(format!(
        "undo {gave} at {}",
        undone.step.unwrap_or_default()
    ));
    Ok(())
}

fn with_steps(luck: &Counter) -> Flow<Form> {
    let luck = luck.clone();
    flow([
        stage("s1")
            .start()
            .body(move |_| branches(luck.hit() == 1))
            .undo_step("o1", takes_back)
            .undo_step("both/p1/have", takes_back)
            .undo_step("both/p2/have", takes_back)
            .undo(tells)
            .to("s2"),
        stage("s2").undo(tells).to("s3"),
        stage("s3")
            .body(|_| operation(false))
            .undo_step("o3", takes_back)
            .to("s4"),
        stage("s4").terminal(),
    ])
}

async fn walked(world: &World, flow: &Flow<Form>) -> Guide<Form> {
    let guide = started(world, flow).await;
    guide.edit(|form| form.number = 7).await.unwrap();
    if guide.view().status == Status::Failed {
        guide.retry().await.unwrap();
    }
    guide.next().await.unwrap();
    guide.next().await.unwrap();
    guide
}

// GDE-RBK-01 GDE-RBK-02: also after a restart, when no body has run.
#[tokio::test(start_paused = true)]
async fn steps_and_stages_are_undone_newest_effect_first() {
    let luck = Counter::default();
    luck.hit();
    let (world, flow) = (World::new(), with_steps(&luck));
    let guide = walked(&world, &flow).await;
    let engine = engine(&killed(&world, guide).await, &flow).await;
    let guide = engine.guided(&flow, "g").open().await.unwrap().unwrap();
    assert_eq!(guide.view().at.as_ref().unwrap(), &"s3");
    trace().take();
    guide.rollback().await.unwrap();
    let expected = [
        "undo o3 at s3[1]/o3",
        "undo s2[1] of 7",
        "undo o1 at s1[1]/o1",
        "undo p2 at s1[1]/both/p2/have",
        "undo p1 at s1[1]/both/p1/have",
        "undo s1[1] of 7",
    ];
    assert_eq!(trace().take(), expected);
    guide.rollback().await.unwrap();
    assert_eq!(trace().take(), [""; 0]);
}

// GDE-RBK-03: what a retry keeps is undone where it was had.
#[tokio::test(start_paused = true)]
async fn a_branch_that_failed_first_is_undone_once_and_one_without_an_undo_not_at_all() {
    let (world, flow) = (World::new(), with_steps(&Counter::default()));
    let guide = walked(&world, &flow).await;
    trace().take();
    guide.rollback().await.unwrap();
    let expected = [
        "undo o3 at s3[1]/o3",
        "undo s2[1] of 7",
        "undo o1 at s1[2]/o1",
        "undo p2 at s1[2]/both/p2/have",
        "undo s1[2] of 7",
        "undo p1 at s1[1]/both/p1/have",
    ];
    assert_eq!(trace().take(), expected);
}

// GDE-RBK-05
#[tokio::test(start_paused = true)]
async fn a_step_that_failed_is_undone_with_no_result_if_its_undo_takes_that() {
    let told = |gave: Option<String>, undone: Undone<Form>| async move {
        trace().say(format!("undo {gave:?}, finished: {}", undone.finished));
        let step = current_step();
        assert_eq!(Some(step.location().to_string()), undone.step);
        Ok::<_, Unlucky>(())
    };
    let last = stage("b").body(|_| operation(true)).to("c");
    for (last, expected) in [
        (
            last.undo_step_unknown("o3", told),
            &["undo None, finished: false"][..],
        ),
        (
            stage("b")
                .body(|_| operation(true))
                .undo_step("o3", takes_back)
                .to("c"),
            &[],
        ),
    ] {
        let flow = flow([stage("a").start().to("b"), last, stage("c").terminal()]);
        let guide = started(&World::new(), &flow).await;
        assert!(guide.next().await.is_err());
        trace().take();
        guide.rollback().await.unwrap();
        assert_eq!(trace().take(), expected);
    }
}

// What visits recorded goes when nothing goes on from them; what they did is undone all the same.
#[tokio::test(start_paused = true)]
async fn a_guide_that_goes_round_does_not_grow() {
    let (world, flow) = (World::new(), row());
    let engine = engine(&world, &flow).await;
    let guide = engine.guided(&flow, "g").start(Form::default());
    let guide = guide.await.unwrap();
    let mut most = 0;
    for _ in 0..30 {
        guide.next().await.unwrap();
        let history = engine.export("g").await.unwrap();
        let of_a = history.records().iter();
        let of_a = of_a.filter(|record| record.location.to_string().starts_with("a["));
        most = most.max(of_a.count());
    }
    assert!(most <= 3, "{most}");
    guide.edit(|form| form.number = 7).await.unwrap();
    trace().take();
    guide.rollback().await.unwrap();
    let told = trace().take();
    assert_eq!((told.len(), &told[0][..]), (30, "undo a[30] of 7"));
}
