//! Opening a guide again: after a restart, after it left memory, after its end.

use std::time::Duration;

use workflow::guided::{Flow, OpenError, Refused, Status, stage};
use workflow::{ControlError, Failure, RunState, fragment, step, workflow};
use workflow_tests::{World, pass};

use super::{Form, engine, flow, history, questions, row, started, trace};

// GDE-RES-01
#[tokio::test(start_paused = true)]
async fn where_nothing_was_started_nothing_is_opened() {
    let (world, flow) = (World::new(), questions());
    let engine = engine(&world, &flow).await;
    assert!(engine.guided(&flow, "g").open().await.unwrap().is_none());
    assert!(engine.guided(&flow, "a/b").open().await.is_err());
}

// GDE-RES-02 GDE-PER-01 GDE-CRX-03
#[tokio::test(start_paused = true)]
async fn a_guide_is_opened_where_it_stood_and_no_body_runs() {
    let (world, flow) = (World::new(), row());
    let guide = started(&world, &flow).await;
    guide.next().await.unwrap();
    let before = guide.view();
    for _ in 0..2 {
        let engine = engine(&world.crash(), &flow).await;
        let guide = engine.guided(&flow, "g").open().await.unwrap().unwrap();
        assert_eq!(*guide.view(), *before);
        assert_eq!(trace().take(), [""; 0]);
    }
}

// GDE-RES-03 GDE-RES-17 GDE-RES-18
#[tokio::test(start_paused = true)]
async fn a_guide_that_has_ended_is_opened_as_it_ended() {
    for cancels in [false, true] {
        let (world, flow) = (World::new(), questions());
        let guide = started(&world, &flow).await;
        guide.next().await.unwrap();
        if cancels {
            guide.cancel().await.unwrap();
        } else {
            guide.next().await.unwrap();
            guide.next().await.unwrap();
        }
        let before = guide.view();
        pass(3_600_000).await;
        let engine = engine(&world.crash(), &flow).await;
        let guide = engine.guided(&flow, "g").open().await.unwrap().unwrap();
        assert_eq!(*guide.view(), *before);
        assert_eq!(guide.view().started_at.unwrap().as_millis(), 1_000_000);
        let state = engine.status("g").await.unwrap().state;
        if cancels {
            assert_eq!(state, RunState::Cancelled);
            assert_eq!(guide.back().await, Err(Refused::Cancelled));
        } else {
            assert_eq!(state, RunState::Completed);
            assert_eq!(guide.back().await, Err(Refused::Finished));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_guide_that_left_memory_comes_back_for_a_command() {
    let (world, flow) = (World::new(), row());
    let engine = engine(&world, &flow).await;
    let guide = engine
        .guided(&flow, "g")
        .start(Form::default())
        .await
        .unwrap();
    super::rested(&guide).await;
    for expected in ["b", "c"] {
        pass(10_000).await;
        assert_eq!(engine.in_memory(), 0);
        let status = engine.status("g").await.unwrap();
        assert_eq!(status.state, RunState::Waiting);
        assert_eq!(status.waits_for, [""; 0]);
        guide.next().await.unwrap();
        assert_eq!(guide.view().at.as_ref().unwrap(), &expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_guide_whose_run_is_cancelled_by_the_engine_is_cancelled() {
    let (world, flow) = (World::new(), questions());
    let engine = engine(&world, &flow).await;
    let guide = engine
        .guided(&flow, "g")
        .start(Form::default())
        .await
        .unwrap();
    engine.cancel("g").await.unwrap();
    pass(1).await;
    assert_eq!(guide.view().status, Status::Cancelled);
    assert_eq!(guide.next().await, Err(Refused::Cancelled));
    let again = engine.guided(&flow, "g").open().await.unwrap().unwrap();
    assert_eq!(again.view().status, Status::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn a_guide_of_a_stopped_engine_says_so_instead_of_waiting() {
    let (world, flow) = (World::new(), questions());
    let engine = engine(&world, &flow).await;
    let guide = engine
        .guided(&flow, "g")
        .start(Form::default())
        .await
        .unwrap();
    engine.shutdown(Duration::ZERO).await.unwrap();
    assert!(matches!(guide.next().await, Err(Refused::Stopped(_))));
    assert_eq!(history(&guide.view()), ["a"]);
}

// GDE-PER-12
#[tokio::test(start_paused = true)]
async fn a_guide_whose_data_no_longer_decodes_is_not_touched() {
    let (world, flow) = (World::new(), questions());
    let guide = started(&world, &flow).await;
    guide.next().await.unwrap();
    let world = world.crash();
    let other = Flow::<u32>::builder("flow")
        .stage(stage("a").start().to("b"))
        .stage(stage("b").terminal())
        .build()
        .unwrap();
    let engine = world.crash().engine().guided(&other).build().await.unwrap();
    let refused = engine.guided(&other, "g").open().await.unwrap_err();
    assert!(matches!(refused, OpenError::Stopped { .. }), "{refused}");
    assert!(refused.to_string().contains("`g`"), "{refused}");
    let engine = super::engine(&world, &flow).await;
    let guide = engine.guided(&flow, "g").open().await.unwrap().unwrap();
    assert_eq!(history(&guide.view()), ["a", "b"]);
}

// A stage that is gone: nothing is skipped or completed on the quiet.
#[tokio::test(start_paused = true)]
async fn a_guide_at_a_stage_that_the_flow_no_longer_has_waits_for_other_code() {
    let world = World::new();
    let guide = started(&world, &questions()).await;
    guide.next().await.unwrap();
    let world = world.crash();
    let without = flow([stage("a").start().to("c"), stage("c").terminal()]);
    let engine = engine(&world, &without).await;
    let refused = engine.guided(&without, "g").open().await.unwrap_err();
    assert!(refused.to_string().contains("stage `b`"), "{refused}");
    assert_eq!(engine.status("g").await.unwrap().state, RunState::Parked);
}

#[step]
async fn nothing() {}

#[workflow]
async fn plain() -> Result<(), Failure> {
    nothing().await?;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_run_of_a_workflow_is_no_guide() {
    let (world, flow) = (World::new(), questions());
    let engine = world.engine().workflow(plain).guided(&flow);
    let engine = engine.build().await.unwrap();
    engine.run("g", plain()).await.unwrap();
    let opened = engine.guided(&flow, "g").open().await;
    assert!(matches!(opened, Err(OpenError::OtherFlow { .. })));
    let started = engine.guided(&flow, "g").start(Form::default()).await;
    assert!(matches!(started, Err(OpenError::OtherFlow { .. })));
    let unknown = World::new().engine().build().await.unwrap();
    let started = unknown.guided(&flow, "g").start(Form::default()).await;
    assert!(matches!(started, Err(OpenError::NotRegistered { .. })));
}

#[derive(Debug, thiserror::Error)]
#[error("")]
struct Mute;

#[fragment]
async fn mute() -> Result<(), Mute> {
    Err(Mute)
}

// GDE-RES-19
#[tokio::test(start_paused = true)]
async fn a_failure_that_says_nothing_is_shown_with_a_line_all_the_same() {
    let flow = flow([
        stage("a").start().to("b"),
        stage("b").body(|_| mute()).to("c"),
        stage("c").terminal(),
    ]);
    let world = World::new();
    let guide = started(&world, &flow).await;
    guide.next().await.unwrap_err();
    let engine = engine(&world.crash(), &flow).await;
    let guide = engine.guided(&flow, "g").open().await.unwrap().unwrap();
    let view = guide.view();
    let failure = view.failure.as_ref().unwrap();
    assert!(failure.text.contains("does not say why"), "{failure:?}");
}

// GDE-RES-20: opening never overwrites, and starting is refused.
#[tokio::test(start_paused = true)]
async fn a_guide_that_is_driven_is_not_begun_again_by_whoever_opens_it() {
    let (world, flow) = (World::new(), questions());
    let engine = engine(&world, &flow).await;
    let first = engine.guided(&flow, "g").start(Form::default());
    let first = first.await.unwrap();
    first.next().await.unwrap();
    let again = engine.guided(&flow, "g").start(Form::default()).await;
    assert!(matches!(again, Err(OpenError::AlreadyStarted { .. })));
    let second = engine.guided(&flow, "g").open_or_start(Form::default);
    let second = second.await.unwrap();
    assert_eq!(*second.view(), *first.view());
    second.next().await.unwrap();
    assert_eq!(history(&first.view()), ["a", "b", "c"]);
}

// What is taken back is taken back by its drivers.
#[tokio::test(start_paused = true)]
async fn a_guide_is_not_rewound_recovered_or_forked() {
    let (world, flow) = (World::new(), questions());
    let engine = engine(&world, &flow).await;
    let guide = engine.guided(&flow, "g").start(Form::default());
    let guide = guide.await.unwrap();
    guide.next().await.unwrap();
    let before = guide.view();
    let is_guide = |error: &ControlError| matches!(error, ControlError::Guide { .. });
    let rewound = engine.rewind("g", "").await.unwrap_err();
    assert!(is_guide(&rewound), "{rewound}");
    assert!(is_guide(&engine.rewind_dry_run("g", "").await.unwrap_err()));
    assert!(is_guide(&engine.recover("g").await.unwrap_err()));
    assert!(is_guide(&engine.fork("g", "h", None).await.unwrap_err()));
    assert_eq!(*guide.view(), *before);
}
