//! Other code over the guides that there are: what a preflight says of them, and what becomes of them.

use workflow::guided::{FailingKind, Flow, Refused, Stage, Status, Undone, stage};
use workflow::replay::History;
use workflow::{Failure, Fragment, fragment, step};
use workflow_tests::{World, pass};

use super::{Effect, Form, Unlucky, engine, flow, have, killed, started, takes, trace};

fn effect(name: &str, millis: u64) -> Effect {
    Effect {
        name: name.to_owned(),
        millis,
        fails: false,
    }
}

#[fragment]
async fn before() -> Result<(), Failure> {
    have(effect("one", 0)).await?;
    #[step(name = "two", retries = 0)]
    have(effect("two", 100)).await?;
    Ok(())
}

/// The first effect is another one.
#[fragment]
async fn after() -> Result<(), Failure> {
    #[step(name = "other", retries = 0)]
    have(effect("other", 0)).await?;
    #[step(name = "two", retries = 0)]
    have(effect("two", 0)).await?;
    Ok(())
}

fn with(name: &str, body: fn(Stage<Form>) -> Fragment<'static, Result<(), Failure>>) -> Flow<Form> {
    flow([
        stage("a").start().to(name),
        stage(name).body(body).to("c"),
        stage("c").terminal(),
    ])
}

/// A guide that was cut off in the second effect of `b`.
async fn cut_off(world: &World, flow: &Flow<Form>) -> World {
    let guide = started(world, flow).await;
    let moving = tokio::spawn(guide.next().into_future());
    pass(10).await;
    moving.abort();
    killed(world, guide).await
}

#[fragment]
async fn edits(mut stage: Stage<Form>) -> Result<(), Failure> {
    have(effect("edits", 0)).await?;
    stage.edit(|form| form.number = 3).await?;
    Ok(())
}

// GDE-CRX-04
#[tokio::test(start_paused = true)]
async fn a_body_that_no_longer_fits_its_records_is_a_failure_of_its_stage() {
    let (old, new) = (with("b", |_| before()), with("b", |_| after()));
    let world = cut_off(&World::new(), &old).await;
    let engine = engine(&world, &new).await;
    let guide = engine.guided(&new, "g").open().await.unwrap().unwrap();
    let view = guide.view();
    assert_eq!((view.status, view.busy), (Status::Failed, false));
    let failing = view.failure.clone().unwrap();
    assert_eq!(
        (failing.kind, &failing.at[..]),
        (FailingKind::Diverged, &["b[1]".to_owned()][..])
    );
    for told in ["visit 1", "`b`", "b[1]/have", "b[1]/other"] {
        assert!(failing.text.contains(told), "{told}: {failing}");
    }
    assert_eq!(trace().take(), [""; 0]);

    // Nothing of that is recorded: code that fits goes on from where it was.
    let world = killed(&world, guide).await;
    {
        let engine = super::engine(&world, &old).await;
        let guide = engine.guided(&old, "g").open().await.unwrap().unwrap();
        super::rested(&guide).await;
        let failure = guide.view().failure.clone().unwrap();
        assert_eq!(failure.kind, FailingKind::Interrupted);
    }
}

#[tokio::test(start_paused = true)]
async fn a_stage_whose_body_no_longer_fits_is_tried_again_or_left() {
    let (old, new) = (with("b", |_| before()), with("b", |_| after()));
    for retries in [true, false] {
        let world = cut_off(&World::new(), &old).await;
        let engine = engine(&world, &new).await;
        let guide = engine.guided(&new, "g").open().await.unwrap().unwrap();
        let revision = guide.view().revision;
        if retries {
            // The second effect was cut off, and the first is another one.
            guide.retry().at(revision).await.unwrap();
            assert_eq!(trace().take(), ["other", "two"]);
            assert_eq!(guide.view().status, Status::Waiting);
        } else {
            guide.back().at(revision).await.unwrap();
            assert_eq!(guide.view().at.as_ref().unwrap(), &"a");
        }
        assert_eq!(guide.view().failure, None);
        let guide = {
            let engine = super::engine(&killed(&world, guide).await, &new).await;
            engine.guided(&new, "g").open().await.unwrap().unwrap()
        };
        assert_eq!(guide.view().failure, None);
    }
}

// A guide that was interrupted in a body goes on, also if that is to say so.
#[tokio::test(start_paused = true)]
async fn a_preflight_of_guides_is_clean_when_they_go_on() {
    let old = with("b", |_| before());
    let world = cut_off(&World::new(), &old).await;
    let report = world.engine().guided(&old).preflight().await.unwrap();
    assert_eq!((report.runs, report.is_clean()), (1, true), "{report}");
    assert_eq!(trace().take(), ["one", "two"], "of the first drive");
    // Renamed.
    let renamed = with("bb", |_| before());
    let report = world.engine().guided(&renamed).preflight().await.unwrap();
    assert!(!report.is_clean());
    assert!(report.to_string().contains("stage `b`"), "{report}");
    // Another body.
    let other = with("b", |_| after());
    let report = world.engine().guided(&other).preflight().await.unwrap();
    assert!(!report.is_clean());
    assert!(report.to_string().contains("b[1]"), "{report}");
    assert_eq!(trace().take(), [""; 0]);
}

// Nothing is done by looking.
#[tokio::test(start_paused = true)]
async fn a_preflight_of_a_rollback_undoes_nothing() {
    let undone = flow([
        stage("a")
            .start()
            .undo(|_: Undone<Form>| async {
                trace().say("undo");
                pass(100).await;
                Ok::<_, Unlucky>(())
            })
            .to("b"),
        stage("b").terminal(),
    ]);
    let world = World::new();
    let guide = started(&world, &undone).await;
    guide.next().await.unwrap();
    let rolling = tokio::spawn(guide.rollback().into_future());
    pass(10).await;
    rolling.abort();
    let world = killed(&world, guide).await;
    assert_eq!(trace().take(), ["undo"]);
    let report = world.engine().guided(&undone).preflight().await.unwrap();
    assert_eq!((report.runs, report.is_clean()), (1, true), "{report}");
    assert_eq!(trace().take(), [""; 0]);
    // The next drive does.
    let engine = engine(&world, &undone).await;
    let guide = engine.guided(&undone, "g").open().await.unwrap().unwrap();
    pass(1_000).await;
    assert_eq!(trace().take(), ["undo"]);
    assert_eq!(guide.view().status, Status::Idle);
    assert_eq!(guide.next().await, Err(Refused::NotRunning(Status::Idle)));
}

#[tokio::test(start_paused = true)]
async fn the_history_of_a_guide_is_exported_whole() {
    let whole = flow([
        stage("a")
            .start()
            .body(edits)
            .leave(takes("leave", 0))
            .undo(|_: Undone<Form>| async { Ok::<_, Unlucky>(()) })
            .undo_step("have", |_: String, _| async { Ok::<_, Unlucky>(()) })
            .to("b"),
        stage("b").body(|_| before()).to("c"),
        stage("c").terminal(),
    ]);
    let world = cut_off(&World::new(), &whole).await;
    let engine = engine(&world, &whole).await;
    let history = engine.export("g").await.unwrap();
    assert!(history.records().len() > 8);
    let again = History::from_json(&history.to_json()).unwrap();
    assert_eq!(again.records(), history.records());
    assert_eq!((again.id(), again.workflow()), (history.id(), "flow"));
}
