//! The operations of a stage, as a person who waits for them sees them.

use std::sync::Arc;
use std::time::Duration;

use workflow::guided::{
    Event, FailingKind, Flow, Guide, Moved, Refused, Stage, Status, Undone, View, stage,
};
use workflow::operation::{self, Indicator, Progress, Snapshot, Undo, feedback};
use workflow::{Failure, FailureKind, Fragment, blocked, current_step, fragment, join, step};
use workflow_tests::{Fault, FaultStore, SlowStore, World, late, pass};

use super::{Effect, Form, Unlucky, engine, flow, have, killed, rested, started, trace};

type BoxError = Box<dyn std::error::Error + Send + Sync>;

fn effect(name: &str, millis: u64) -> Effect {
    Effect {
        name: name.to_owned(),
        millis,
        fails: false,
    }
}

fn with(
    body: impl Fn(Stage<Form>) -> Fragment<'static, Result<(), Failure>> + Send + Sync + 'static,
) -> Flow<Form> {
    flow([
        stage("a").start().to("b"),
        stage("b").body(body).to("c"),
        stage("c").terminal(),
    ])
}

fn shown(view: &View<Form>) -> Vec<(&str, operation::Status)> {
    let shown = view.operations.iter();
    shown.map(|it| (it.name(), it.status())).collect()
}

fn named<'v>(view: &'v View<Form>, name: &str) -> &'v Snapshot {
    let found = view.operations.iter().find(|it| it.name() == name);
    found.unwrap_or_else(|| panic!("no {name}: {view:#?}"))
}

async fn again(world: &World, flow: &Flow<Form>) -> Guide<Form> {
    let engine = engine(world, flow).await;
    let guide = engine.guided(flow, "g").open().await.unwrap().unwrap();
    rested(&guide).await;
    guide
}

#[step(retries = 0, timeout = "none")]
async fn publish(name: String) -> Result<String, BoxError> {
    let step = current_step();
    let Some(by) = step.released::<String>() else {
        trace().say("asks");
        return Err(blocked(format!("`{name}` needs an approval")).into());
    };
    trace().say(format!("published by {by}"));
    pass(50).await;
    Ok(by)
}

#[fragment]
async fn needs_approval(mut stage: Stage<Form>) -> Result<(), Failure> {
    have(effect("draft", 0)).await?;
    let by = publish("x".to_owned()).await?;
    stage.edit(move |form| form.name = by).await?;
    Ok(())
}

// GDE-OPS-02
#[tokio::test(start_paused = true)]
async fn a_blocked_operation_blocks_the_flow_and_goes_on_from_there_when_it_is_released() {
    let (world, flow) = (World::new(), with(needs_approval));
    let guide = started(&world, &flow).await;
    let Err(Refused::Failed(failing)) = guide.next().await else {
        panic!("{:#?}", guide.view());
    };
    assert_eq!(failing.kind, FailingKind::Blocked);
    assert_eq!(failing.text, "`x` needs an approval");
    let view = guide.view();
    assert_eq!(view.status, Status::Blocked);
    assert_eq!(view.failure, Some(failing));
    assert!(view.actions.release && view.actions.retry && !view.actions.next);
    use operation::Status::{Blocked, Succeeded};
    assert_eq!(shown(&view), [("have", Succeeded), ("publish", Blocked)]);
    let waits = named(&view, "publish");
    assert_eq!(waits.reason(), Some("`x` needs an approval"));
    assert_eq!(waits.completed_at(), None);
    assert!(matches!(&view.events[..], [Event::Blocked(stage)] if *stage == "b"));
    assert_eq!(trace().take(), ["draft", "asks"]);
    // What the person edits is no approval, and neither is a check.
    guide.edit(|form| form.number = 3).await.unwrap();
    guide.check().await.unwrap();
    assert_eq!(guide.view().status, Status::Blocked);
    assert_eq!(
        guide.next().await,
        Err(Refused::NotRunning(Status::Blocked))
    );

    // It waits for as long as it takes, also over a restart.
    let world = killed(&world, guide).await;
    let guide = again(&world, &flow).await;
    assert_eq!(guide.view().status, Status::Blocked);
    assert_eq!(
        shown(&guide.view()),
        [("have", Succeeded), ("publish", Blocked)]
    );
    let moving = tokio::spawn(guide.release("ann").into_future());
    pass(10).await;
    assert_eq!(trace().take(), ["published by ann"]);
    moving.abort();
    // Cut off, it is tried again with what it was released with.
    let world = killed(&world, guide).await;
    let guide = again(&world, &flow).await;
    assert_eq!(guide.view().status, Status::Failed, "{:#?}", guide.view());
    assert_eq!(guide.release("bob").await, Err(Refused::NotBlocked));
    assert!(matches!(guide.retry().await, Ok(Moved::To(at)) if at == "b"));
    assert_eq!(trace().take(), ["published by ann"]);
    assert_eq!(guide.view().state.name, "ann");
    assert_eq!(guide.view().status, Status::Waiting);
    assert_eq!(guide.release("bob").await, Err(Refused::NotBlocked));
}

#[derive(Debug, thiserror::Error)]
enum Mine {
    #[error(transparent)]
    Step(#[from] Failure),
}

#[fragment]
async fn both_block() -> Result<(), Mine> {
    join!(
        both,
        one = publish("one".to_owned()).await?,
        two = publish("two".to_owned()).await?
    )
    .await?;
    Ok(())
}

// The error is the code's own, and each branch waits for somebody.
#[tokio::test(start_paused = true)]
async fn what_blocks_in_branches_and_in_an_error_of_the_codes_own_blocks_the_flow() {
    let flow = flow([
        stage("a").start().to("b"),
        stage("b").body(|_| both_block()).to("c"),
        stage("c").terminal(),
    ]);
    let guide = started(&World::new(), &flow).await;
    let refused = guide.next().await.unwrap_err();
    let Refused::Failed(failing) = refused else {
        panic!("{refused}");
    };
    assert_eq!(failing.kind, FailingKind::Blocked, "{failing:?}");
    assert_eq!(
        failing.at,
        ["b[1]/both/one/publish", "b[1]/both/two/publish"]
    );
    guide.release("ann").await.unwrap();
    assert_eq!(
        trace().take()[2..],
        ["published by ann", "published by ann"]
    );
}

#[step(retries = 1, backoff(fixed, wait = "1m"), timeout = "none")]
async fn copy(files: i64) -> Result<i64, Unlucky> {
    let step = current_step();
    for file in 0..files {
        step.progress(
            Progress::new(file)
                .of(files)
                .message(format!("file {file}")),
        );
        step.log(format!("copies {file}"));
        pass(400).await;
        if step.attempt() == 1 && file == 3 {
            return Err(Unlucky("line".to_owned()));
        }
    }
    step.waiting("the lorry", pass(300)).await;
    Ok(files)
}

#[fragment]
async fn copies() -> Result<(), Failure> {
    have(effect("first", 0)).await?;
    copy(10).await?;
    Ok(())
}

// GDE-OPS-04
#[tokio::test(start_paused = true)]
async fn progress_is_shown_live_in_order_and_the_last_survives_a_crash() {
    use operation::Status::{Failed, Queued, Retrying, Running, Succeeded, Waiting};
    let (world, flow) = (World::new(), with(|_| copies()));
    let guide = started(&world, &flow).await;
    let moving = tokio::spawn(guide.next().into_future());
    pass(900).await;
    let view = guide.view();
    assert_eq!(shown(&view), [("have", Succeeded), ("copy", Running)]);
    let copying = named(&view, "copy");
    assert_eq!(copying.progress().unwrap().percent(), Some(20));
    let lines: Vec<_> = copying.logs().map(|line| line.text.as_str()).collect();
    assert_eq!(lines, ["copies 0", "copies 1", "copies 2"]);
    assert_eq!(copying.attempt(), 1);
    // GDE-EVT-05: a view does not change.
    let seen = Arc::clone(&view);
    pass(900).await;
    assert_eq!(named(&seen, "copy").progress().unwrap().current, 2);

    let view = guide.view();
    let waiting = named(&view, "copy");
    assert_eq!(waiting.status(), Waiting);
    assert_eq!(waiting.failure().unwrap().message(), "no line today");
    assert_eq!(waiting.progress().unwrap().current, 3, "until it says more");
    assert!(waiting.retry_at().is_some());
    pass(60_000).await;
    let view = guide.view();
    let retrying = named(&view, "copy");
    assert_eq!((retrying.status(), retrying.attempt()), (Retrying, 2));
    assert_eq!(retrying.failure(), None);
    assert!(matches!(
        feedback(
            retrying,
            retrying.started_at().unwrap().after(Duration::from_mins(1))
        )
        .indicator,
        Indicator::Determinate { .. }
    ));
    pass(2_000).await;
    let said = named(&guide.view(), "copy").progress().unwrap().current;
    assert!(said >= 5, "{said}");

    // Nothing was recorded since the step began again.
    moving.abort();
    let world = killed(&world, guide).await;
    let guide = again(&world, &flow).await;
    let view = guide.view();
    assert_eq!(view.status, Status::Failed);
    let cut = named(&view, "copy");
    assert_eq!(cut.status(), Failed);
    assert_eq!(cut.failure().unwrap().kind(), FailureKind::Interrupted);
    assert!(cut.is_stale());
    let kept = cut.progress().unwrap().current;
    assert!((said - 3..=said).contains(&kept), "{kept} of {said}");
    assert!(cut.logs().len() > 3);

    let moving = tokio::spawn(guide.retry().into_future());
    pass(10).await;
    let view = guide.view();
    assert_eq!(shown(&view), [("have", Succeeded), ("copy", Running)]);
    let anew = named(&view, "copy");
    assert!(!anew.is_stale() && anew.progress().unwrap().current == 0);
    pass(65_000).await;
    pass(700).await;
    assert_eq!(named(&guide.view(), "copy").reason(), Some("the lorry"));
    assert_eq!(named(&guide.view(), "copy").status(), Waiting);
    moving.await.unwrap().unwrap();
    let view = guide.view();
    assert_eq!(shown(&view), [("have", Succeeded), ("copy", Succeeded)]);
    assert_ne!(Queued, Succeeded);
    // What the stage before did is not shown at the next.
    guide.next().await.unwrap();
    assert_eq!(shown(&guide.view()), []);
}

#[fragment]
async fn at_once(times: (u64, u64, u64)) -> Result<(), Failure> {
    join!(
        all,
        fast = have(effect("fast", times.0)).await?,
        slow = have(effect("slow", times.1)).await?,
        slower = {
            have(effect("slower", times.2)).await?;
        }
    )
    .await?;
    Ok(())
}

// GDE-CAN-20 GDE-PAR-03
#[tokio::test(start_paused = true)]
async fn what_is_in_flight_when_the_guide_is_cancelled_is_shown_as_cancelled_and_is_no_error() {
    use operation::Status::{Cancelled, Succeeded};
    let (world, flow) = (World::new(), with(|_| at_once((5, 500, 900))));
    let guide = started(&world, &flow).await;
    let told: Arc<std::sync::Mutex<Vec<Event>>> = Arc::default();
    let hears = Arc::clone(&told);
    let observer = guide.observe(move |told| {
        let events = told.view.events.iter().cloned();
        hears.lock().unwrap().extend(events);
        Ok(std::ops::ControlFlow::Continue(()))
    });
    let moving = tokio::spawn(guide.next().into_future());
    pass(50).await;
    guide.cancel().await.unwrap();
    assert_eq!(moving.await.unwrap(), Err(Refused::Cancelled));
    let expected = [
        ("all/fast/have", Succeeded),
        ("all/slow/have", Cancelled),
        ("all/slower/have", Cancelled),
    ];
    let view = guide.view();
    assert_eq!(shown(&view), expected);
    let reason = named(&view, "all/slow/have").reason().unwrap();
    assert_eq!(reason, "the guide was cancelled");
    tokio::task::yield_now().await;
    pass(10).await;
    let told = told.lock().unwrap().clone();
    assert!(told.contains(&Event::Cancelled), "{told:?}");
    let failed = |event: &&Event| matches!(event, Event::Failed(_) | Event::Blocked(_));
    assert_eq!(told.iter().find(failed), None);
    drop(observer);
    // So it is shown of one that has ended, too.
    let guide = again(&killed(&world, guide).await, &flow).await;
    assert_eq!(shown(&guide.view()), expected);
}

// GDE-TMO-08
#[tokio::test(start_paused = true)]
async fn what_the_time_limit_cuts_off_says_so() {
    use operation::Status::{Cancelled, Succeeded};
    let flow = flow([
        stage("a").start().to("b"),
        stage("b")
            .body(|_| at_once((5, 500, 900)))
            .timeout(Duration::from_millis(100))
            .to("c"),
        stage("c").terminal(),
    ]);
    let guide = started(&World::new(), &flow).await;
    assert!(guide.next().await.is_err());
    let view = guide.view();
    assert_eq!(named(&view, "all/fast/have").status(), Succeeded);
    let late = named(&view, "all/slow/have");
    assert_eq!(late.status(), Cancelled);
    assert!(late.reason().unwrap().contains("longer than 100ms"));
}

#[fragment]
async fn old() -> Result<(), Failure> {
    #[step(name = "kept", retries = 0)]
    have(effect("kept", 0)).await?;
    #[step(name = "dropped", retries = 0)]
    have(effect("dropped", 0)).await?;
    #[step(name = "plain", retries = 0)]
    have(effect("plain", 0)).await?;
    #[step(name = "luck", retries = 0)]
    have(Effect {
        fails: true,
        ..effect("luck", 0)
    })
    .await?;
    Ok(())
}

#[fragment]
async fn new() -> Result<(), Failure> {
    #[step(name = "kept", retries = 0)]
    have(effect("kept", 0)).await?;
    Ok(())
}

async fn takes_back(gave: String, _: Undone<Form>) -> Result<(), Unlucky> {
    trace().say(format!("undo {gave}"));
    Ok(())
}

// GDE-RES-16
#[tokio::test(start_paused = true)]
async fn what_the_code_no_longer_asks_for_is_listed_with_the_undo_that_it_is_owed_or_cannot_have() {
    let world = World::new();
    let before = flow([
        stage("a").start().to("b"),
        stage("b")
            .body(|_| old())
            .undo_step("kept", takes_back)
            .undo_step("dropped", takes_back)
            .to("c"),
        stage("c").terminal(),
    ]);
    let guide = started(&world, &before).await;
    assert!(guide.next().await.is_err());
    assert_eq!(named(&guide.view(), "kept").undo(), Undo::Owed);
    assert_eq!(named(&guide.view(), "plain").undo(), Undo::None);
    assert_eq!(guide.view().orphans, []);
    let world = killed(&world, guide).await;

    // The steps are gone, and the undo of one of them.
    let after = flow([
        stage("a").start().to("b"),
        stage("b")
            .body(|_| new())
            .undo_step("dropped", takes_back)
            .to("c"),
        stage("c").terminal(),
    ]);
    let guide = again(&world, &after).await;
    let orphans = |view: &View<Form>| -> Vec<(String, Undo)> {
        let orphans = view.orphans.iter();
        orphans
            .map(|it| (it.name().to_owned(), it.undo()))
            .collect()
    };
    let impossible = ("b[1]/kept".to_owned(), Undo::Impossible);
    assert_eq!(orphans(&guide.view()), std::slice::from_ref(&impossible));
    // GDE-CRX-04: it had come further than this code goes.
    let failure = guide.view().failure.clone().unwrap();
    assert_eq!(failure.kind, FailingKind::Diverged);
    assert!(failure.text.contains("dropped"), "{failure}");
    guide.retry().await.unwrap();
    let all = [
        impossible,
        ("b[1]/dropped".to_owned(), Undo::Owed),
        ("b[1]/plain".to_owned(), Undo::None),
    ];
    assert_eq!(orphans(&guide.view()), all);
    let world = killed(&world, guide).await;
    let guide = again(&world, &after).await;
    assert_eq!(orphans(&guide.view()), all, "also after a restart");
    trace().take();

    // A rollback does what it can, and says what it cannot.
    let Err(Refused::Failed(failing)) = guide.rollback().await else {
        panic!("{:#?}", guide.view());
    };
    assert!(failing.text.contains("b[1]/kept"), "{failing}");
    assert!(failing.text.contains("skip_undo"), "{failing}");
    assert_eq!(trace().take(), ["undo dropped"]);
    assert_eq!(guide.view().status, Status::RollingBack);
    guide.skip_undo("it is gone anyway").await.unwrap();
    assert_eq!(guide.view().status, Status::Idle);
    assert_eq!(guide.view().orphans, []);
    assert_eq!(trace().take(), [""; 0]);
    assert_eq!(guide.skip_undo("again").await, Err(Refused::NoUndoFails));
}

// GDE-PER-02
#[tokio::test(start_paused = true)]
async fn whoever_asked_for_what_the_store_failed_to_take_is_told_and_it_is_written_with_what_follows()
 {
    let world = World::new();
    let flow = super::questions();
    let faults = [Fault::None, Fault::Before, Fault::Before, Fault::None];
    let store = FaultStore::over(&world.store, faults);
    let engine = world.engine().shared_store(Arc::new(store)).guided(&flow);
    let engine = engine.build().await.unwrap();
    let guide = engine.guided(&flow, "g").start(Form::default());
    let guide = guide.await.unwrap();
    let first = tokio::spawn(guide.edit(|form| form.number = 1).key("one").into_future());
    tokio::task::yield_now().await;
    let second = tokio::spawn(guide.edit(|form| form.number += 1).into_future());
    let Err(Refused::Store(_)) = first.await.unwrap() else {
        panic!("{:#?}", guide.view());
    };
    assert!(!guide.view().durable);
    assert_eq!(
        guide.view().state.number,
        0,
        "nothing is shown before it is durable"
    );
    second.await.unwrap().unwrap();
    assert!(guide.view().durable);
    assert_eq!(guide.view().state.number, 2);
    // Given again, it is known.
    let again = guide.edit(|form| form.number = 100).key("one").await;
    assert_eq!(again, Ok(2));
    assert_eq!(guide.view().state.number, 2);
}

// GDE-PER-07
#[tokio::test(start_paused = true)]
async fn while_what_a_branch_did_cannot_be_saved_the_view_says_so() {
    let world = World::new();
    let flow = with(|_| at_once((5, 5, 5)));
    let faults = [Fault::None, Fault::None, Fault::Before, Fault::Before];
    let store = FaultStore::over(&world.store, faults);
    let engine = world.engine().shared_store(Arc::new(store)).guided(&flow);
    let engine = engine.build().await.unwrap();
    let guide = engine.guided(&flow, "g").start(Form::default());
    let guide = guide.await.unwrap();
    let mut changes = guide.watch();
    let moving = tokio::spawn(guide.next().into_future());
    while guide.view().durable {
        changes.next().await.unwrap();
    }
    let view = guide.view();
    assert_eq!(view.status, Status::Working);
    let fast = named(&view, "all/fast/have");
    assert_eq!(
        fast.status(),
        operation::Status::Running,
        "not before it is durable"
    );
    assert!(matches!(moving.await.unwrap(), Ok(Moved::To(at)) if at == "b"));
    assert!(guide.view().durable);
}

// What a step says costs one commit a second at most, and what it does not say none.
#[tokio::test(start_paused = true)]
async fn what_a_step_says_is_written_at_most_once_a_second() {
    let (world, flow) = (World::new(), with(|_| copies()));
    let guide = started(&world, &flow).await;
    let before = super::commits(&world).await;
    guide.next().await.unwrap();
    let cost = super::commits(&world).await - before;
    // The command and two steps with an attempt that failed; and about six seconds in which something was said.
    assert!((4..=12).contains(&cost), "{cost}");

    let (world, flow) = (World::new(), with(|_| at_once((5, 5_000, 9_000))));
    let guide = started(&world, &flow).await;
    let before = super::commits(&world).await;
    guide.next().await.unwrap();
    assert_eq!(super::commits(&world).await - before, 4);
}

// Whoever waits for it to have ended sees it end.
#[tokio::test(start_paused = true)]
async fn a_rollback_is_shown_as_being_done_until_it_is() {
    let flow = flow([
        stage("a").start().to("b"),
        stage("b")
            .body(|_| copies())
            .undo_step("have", takes_back)
            .to("c"),
        stage("c").terminal(),
    ]);
    let world = World::new();
    let store = SlowStore::over(&world.store);
    let engine = workflow::Engine::builder().store(store.clone());
    let engine = engine.clock(world.clock()).guided(&flow);
    let engine = engine.build().await.unwrap();
    let guide = engine.guided(&flow, "g").start(Form::default());
    let guide = guide.await.unwrap();
    guide.next().await.unwrap();
    late(&store.appends, [5; 30]);
    let mut changes = guide.watch();
    let rolling = tokio::spawn(guide.rollback().into_future());
    loop {
        let view = changes.next().await.unwrap();
        if view.status == Status::Idle {
            break;
        }
        assert!(view.busy || view.status != Status::RollingBack, "{view:#?}");
    }
    rolling.await.unwrap().unwrap();
}
