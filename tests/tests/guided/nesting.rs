//! Flows in stages of others.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use workflow::guided::{
    FailingKind, Flow, FlowBuilder, Guide, Moved, OpenError, Problem, Refused, Revisit, Stage,
    StageBuilder, Status, Told, View, stage,
};
use workflow::replay::RunId;
use workflow::store::Store as _;
use workflow::{Engine, Failure, Fragment, RunState, fragment, join, step, workflow};
use workflow_tests::{Fault, FaultStore, World, pass};

use super::{Effect, Form, completed, described, have, history, killed, rested, trace};

/// What the person gives in the flow within.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Bank {
    iban: String,
    fails: bool,
}

fn effect(name: &str) -> Effect {
    Effect {
        name: name.to_owned(),
        millis: 0,
        fails: false,
    }
}

/// Goes through the flow within, and says what came of it.
#[fragment]
async fn goes(flow: Flow<Bank>, iban: String) -> Result<(), Failure> {
    have(effect("before")).await?;
    let bank = flow
        .guide(Bank {
            iban,
            ..Bank::default()
        })
        .await?;
    #[step(name = "after", retries = 0)]
    have(effect(&format!("got {}", bank.iban))).await?;
    Ok(())
}

/// A stage that goes through a flow.
fn through(name: &str, flow: &Flow<Bank>) -> StageBuilder<Form> {
    let flow = flow.clone();
    stage(name).body(move |stage: Stage<Form>| goes(flow.clone(), stage.state().name.clone()))
}

fn billing() -> Flow<Bank> {
    questions().build().unwrap()
}

/// one and two, that only ask.
fn questions() -> FlowBuilder<Bank> {
    Flow::<Bank>::builder("billing")
        .stage(
            stage("one")
                .start()
                .check(|bank: &Bank, problems| {
                    problems.when(bank.iban == "bad", "iban", "no such iban");
                })
                .to("two"),
        )
        .stage(stage("two").terminal())
}

/// a, n with the flow within, and c.
fn around(inner: &Flow<Bank>) -> FlowBuilder<Form> {
    described([
        stage("a").start().to("n"),
        through("n", inner).to("c"),
        stage("c").terminal(),
    ])
    .nests(inner)
}

const PATH: &str = "n/guide";

fn inside(to: &str, moved: &Moved) -> bool {
    matches!(moved, Moved::Inside { path, to: at } if path == PATH && *at == to)
}

fn within(view: &View<Form>) -> (&str, Status) {
    let [.., innermost] = &view.nested[..] else {
        panic!("nothing is in the stage: {view:#?}");
    };
    (innermost.at.as_ref().unwrap().as_str(), innermost.status)
}

async fn engine(world: &World, flow: &Flow<Form>) -> Engine {
    super::engine(world, flow).await
}

/// A guide of the flow around, whose flow within waits at its first stage.
async fn in_n(world: &World, flow: &Flow<Form>) -> Guide<Form> {
    let guide = super::started(world, flow).await;
    let moved = guide.next().await.unwrap();
    assert!(inside("one", &moved), "{moved:?}");
    guide
}

async fn opened(world: &World, flow: &Flow<Form>) -> Guide<Form> {
    let engine = engine(world, flow).await;
    let guide = engine.guided(flow, "g").open().await.unwrap().unwrap();
    rested(&guide).await;
    guide
}

// GDE-NST-01 GDE-NST-02 GDE-NST-03 GDE-PER-09
#[tokio::test(start_paused = true)]
async fn a_flow_in_a_stage_is_gone_through_and_its_end_leads_on_in_one_press() {
    let (world, inner) = (World::new(), billing());
    let flow = around(&inner).build().unwrap();
    let guide = in_n(&world, &flow).await;
    let view = guide.view();
    assert_eq!(within(&view), ("one", Status::Waiting));
    assert_eq!((view.status, view.busy), (Status::Waiting, false));
    assert_eq!(view.at.as_ref().unwrap(), &"n");
    assert_eq!(view.nested[0].path, PATH);
    assert_eq!(view.nested[0].flow, "billing");
    assert!(view.actions.next && view.actions.back && view.actions.cancel);
    assert_eq!(trace().take(), ["before"]);

    let before = super::commits(&world).await;
    assert!(inside("two", &guide.next().await.unwrap()));
    assert_eq!(super::commits(&world).await, before + 1);
    assert_eq!(within(&guide.view()), ("two", Status::Waiting));
    assert_eq!(guide.view().at.as_ref().unwrap(), &"n");
    assert!(guide.view().revision > view.revision);
    // A button pressed twice.
    let stale = guide.next().at(view.revision).await;
    assert!(matches!(stale, Err(Refused::Stale { .. })), "{stale:?}");

    let edited = guide
        .within::<Bank>(PATH)
        .edit(|bank| bank.iban = "DE1".into());
    edited.await.unwrap();
    let before = super::commits(&world).await;
    assert_eq!(
        guide.next().await,
        Ok(Moved::To(flow.stage_name("c").unwrap()))
    );
    // Its end with what follows, the step after it, and the move.
    assert!(super::commits(&world).await <= before + 3);
    let view = guide.view();
    assert!(view.nested.is_empty());
    assert_eq!(history(&view), ["a", "n", "c"]);
    assert_eq!(completed(&view), ["a", "n"]);
    assert_eq!(trace().take(), ["got DE1"]);
}

// GDE-NST-04
#[tokio::test(start_paused = true)]
async fn a_check_of_the_stage_is_asked_when_the_flow_in_it_has_ended_and_not_the_flow_again() {
    let (world, inner) = (World::new(), billing());
    let flow = described([
        stage("a").start().to("n"),
        through("n", &inner)
            .check(|form: &Form, problems| problems.when(form.number == 0, "number", "which?"))
            .to("c"),
        stage("c").terminal(),
    ]);
    let flow = flow.nests(&inner).build().unwrap();
    let guide = in_n(&world, &flow).await;
    guide.next().await.unwrap();
    assert!(matches!(guide.next().await, Err(Refused::Invalid(_))));
    let view = guide.view();
    assert_eq!((view.status, view.nested.len()), (Status::Blocked, 0));
    assert_eq!(view.at.as_ref().unwrap(), &"n");
    trace().take();
    guide.edit(|form| form.number = 1).await.unwrap();
    assert!(matches!(guide.next().await, Ok(Moved::To(stage)) if stage == "c"));
    assert_eq!(trace().take(), [""; 0]);
}

// GDE-NST-05
#[tokio::test(start_paused = true)]
async fn back_goes_back_within_and_from_the_start_outward() {
    let (world, inner) = (World::new(), billing());
    let flow = around(&inner).build().unwrap();
    let guide = in_n(&world, &flow).await;
    guide.next().await.unwrap();
    assert!(inside("one", &guide.back().await.unwrap()));
    assert_eq!(within(&guide.view()), ("one", Status::Waiting));
    assert!(matches!(guide.back().await, Ok(Moved::To(stage)) if stage == "a"));
    let view = guide.view();
    assert_eq!((history(&view), view.nested.len()), (vec!["a"], 0));
    assert_eq!(guide.back().await, Err(Refused::AtStart));
    // It begins anew, and what its stage did is kept.
    trace().take();
    assert!(inside("one", &guide.next().await.unwrap()));
    assert_eq!(trace().take(), [""; 0]);
}

// GDE-NST-06 GDE-RES-07
#[tokio::test(start_paused = true)]
async fn a_flow_in_a_stage_is_where_it_was_after_a_kill() {
    let (world, inner) = (World::new(), billing());
    let flow = around(&inner).build().unwrap();
    let guide = in_n(&world, &flow).await;
    guide.next().await.unwrap();
    let before = guide.view();
    let world = killed(&world, guide).await;
    let guide = opened(&world, &flow).await;
    assert_eq!(within(&guide.view()), ("two", Status::Waiting));
    assert_eq!(*guide.view(), *before);
    assert_eq!(trace().take(), [""; 0]);
    assert!(matches!(guide.next().await, Ok(Moved::To(stage)) if stage == "c"));
    assert_eq!(trace().take(), ["got "]);
    // And once more: nothing of what is over is gone through again.
    let guide = opened(&killed(&world, guide).await, &flow).await;
    assert_eq!(history(&guide.view()), ["a", "n", "c"]);
    assert_eq!(guide.next().await, Ok(Moved::Finished));
}

// GDE-NST-07 GDE-NST-13 GDE-NST-14
#[tokio::test(start_paused = true)]
async fn two_stages_with_one_flow_have_each_their_own() {
    let (world, inner) = (World::new(), billing());
    let flow = described([
        through("n", &inner).start().to("m"),
        through("m", &inner).to("c"),
        stage("c").terminal(),
    ]);
    let flow = flow.nests(&inner).build().unwrap();
    let guide = super::started(&world, &flow).await;
    let edited = guide
        .within::<Bank>("n/guide")
        .edit(|bank| bank.iban = "first".into());
    edited.await.unwrap();
    guide.next().await.unwrap();
    let moved = guide.next().await.unwrap();
    assert!(matches!(&moved, Moved::Inside { path, to } if path == "m/guide" && *to == "one"));
    let edited = guide
        .within::<Bank>("m/guide")
        .edit(|bank| bank.iban = "second".into());
    edited.await.unwrap();
    assert_eq!(
        guide.within::<Bank>("n/guide").edit(|_| ()).await,
        Err(Refused::NotThere)
    );
    let guide = opened(&killed(&world, guide).await, &flow).await;
    let within = guide.within::<Bank>("m/guide").view().unwrap();
    assert_eq!(within.state.iban, "second");
    assert_eq!(within.at.as_ref().unwrap(), &"one");
    guide.next().await.unwrap();
    guide.next().await.unwrap();
    assert_eq!(trace().take(), ["got second"]);
}

// GDE-NST-10 GDE-NST-15
#[tokio::test(start_paused = true)]
async fn what_is_wrong_within_is_shown_around_it_and_is_mended_from_there() {
    let (world, inner) = (World::new(), billing());
    let flow = around(&inner).build().unwrap();
    let guide = super::started(&world, &flow).await;
    guide.edit(|form| form.name = "bad".into()).await.unwrap();
    guide.next().await.unwrap();
    assert!(matches!(guide.next().await, Err(Refused::Invalid(_))));
    let view = guide.view();
    assert_eq!(view.status, Status::Blocked);
    let told = |problem: &Problem| problem.text == "no such iban";
    assert!(view.problems.iter().any(told), "{view:#?}");
    let mut changes = guide.watch();
    let edited = guide
        .within::<Bank>(PATH)
        .edit(|bank| bank.iban = "DE1".into());
    let revision = edited.await.unwrap();
    let shown = changes.next().await.unwrap();
    assert_eq!(shown.revision, revision);
    assert_eq!(shown.nested[0].path, PATH);
    assert_eq!(shown.nested[0].state["iban"], "DE1");
    assert!(!shown.nested[0].events.is_empty());
    assert!(inside("two", &guide.next().await.unwrap()));
    guide.back().await.unwrap();
    assert_eq!(within(&guide.view()), ("one", Status::Waiting));
}

#[fragment]
async fn may_fail(fails: bool, name: String) -> Result<(), Failure> {
    have(effect(&format!("{name} begins"))).await?;
    #[step(name = "risky", retries = 0)]
    have(Effect {
        fails,
        ..effect(&name)
    })
    .await?;
    Ok(())
}

/// one, which has a body, and two, which has one, too.
fn working() -> FlowBuilder<Bank> {
    let works = |name: &str| {
        let at = name.to_owned();
        stage(name).body(move |stage: Stage<Bank>| may_fail(stage.state().fails, at.clone()))
    };
    Flow::<Bank>::builder("billing")
        .stage(works("one").start().to("two"))
        .stage(works("two").terminal())
}

// GDE-NST-11
#[tokio::test(start_paused = true)]
async fn what_fails_within_fails_the_stage_and_is_tried_again_within() {
    let (world, inner) = (World::new(), working().build().unwrap());
    let flow = around(&inner).build().unwrap();
    let guide = in_n(&world, &flow).await;
    let edited = guide.within::<Bank>(PATH).edit(|bank| bank.fails = true);
    edited.await.unwrap();
    trace().take();
    assert!(matches!(guide.next().await, Err(Refused::Failed(_))));
    assert_eq!(trace().take(), ["two begins", "two"]);
    let view = guide.view();
    assert_eq!(view.status, Status::Failed);
    assert!(view.failure.as_ref().unwrap().text.contains("no two today"));
    assert!(view.actions.retry && view.actions.back && !view.actions.next);
    let edited = guide.within::<Bank>(PATH).edit(|bank| bank.fails = false);
    edited.await.unwrap();
    // Also after a kill.
    let guide = opened(&killed(&world, guide).await, &flow).await;
    assert_eq!(guide.view().status, Status::Failed);
    assert!(inside("two", &guide.retry().await.unwrap()));
    assert_eq!(trace().take(), ["two"]);
    assert!(matches!(guide.next().await, Ok(Moved::To(stage)) if stage == "c"));
}

// GDE-NST-11: at its start.
#[tokio::test(start_paused = true)]
async fn a_flow_within_that_fails_at_its_start_is_tried_again_within() {
    let inner = Flow::<Bank>::builder("billing")
        .stage(
            stage("one")
                .start()
                .body(|stage: Stage<Bank>| may_fail(stage.state().iban.is_empty(), "one".into()))
                .to("two"),
        )
        .stage(stage("two").terminal())
        .build()
        .unwrap();
    let (world, flow) = (World::new(), around(&inner).build().unwrap());
    let guide = super::started(&world, &flow).await;
    assert!(matches!(guide.next().await, Err(Refused::Failed(_))));
    assert_eq!(guide.view().status, Status::Failed);
    let edited = guide
        .within::<Bank>(PATH)
        .edit(|bank| bank.iban = "DE1".into());
    edited.await.unwrap();
    trace().take();
    assert!(inside("one", &guide.retry().await.unwrap()));
    assert_eq!(trace().take(), ["one"]);
}

// What runs within was cut off within: the rest of the stage was not.
#[tokio::test(start_paused = true)]
async fn what_is_cut_off_within_is_interrupted_within() {
    let slow = Flow::<Bank>::builder("billing")
        .stage(stage("one").start().to("two"))
        .stage(
            stage("two")
                .body(|_: Stage<Bank>| {
                    super::one(Effect {
                        millis: 100,
                        ..effect("slow")
                    })
                })
                .terminal(),
        )
        .build()
        .unwrap();
    let (world, flow) = (World::new(), around(&slow).build().unwrap());
    let guide = in_n(&world, &flow).await;
    let moving = tokio::spawn(guide.next().into_future());
    pass(10).await;
    assert_eq!(guide.next().await, Err(Refused::Busy));
    moving.abort();
    let world = killed(&world, guide).await;
    trace().take();
    let guide = opened(&world, &flow).await;
    let view = guide.view();
    assert_eq!(within(&view), ("two", Status::Failed));
    let failure = view.failure.as_ref().unwrap();
    assert_eq!(failure.kind, FailingKind::Interrupted);
    assert_eq!(failure.at, ["n[1]/guide/two[1]/have"]);
    assert_eq!(trace().take(), [""; 0]);
    assert!(inside("two", &guide.retry().await.unwrap()));
    assert_eq!(trace().take(), ["slow"]);
    assert!(matches!(guide.next().await, Ok(Moved::To(stage)) if stage == "c"));
}

// GDE-CAN-15 GDE-CAN-16
#[tokio::test(start_paused = true)]
async fn guards_are_asked_from_the_outside_in_and_what_is_within_is_given_up_first() {
    let guarded = |name: &'static str| {
        move |open: bool| {
            trace().say(name);
            open
        }
    };
    let (outer, within) = (guarded("outer"), guarded("inner"));
    let inner = questions().exit_guard(move |bank| within(bank.iban == "open"));
    let inner = inner.build().unwrap();
    let flow = around(&inner).exit_guard(move |form| outer(form.number > 0));
    let (world, flow) = (World::new(), flow.build().unwrap());
    let guide = in_n(&world, &flow).await;
    trace().take();
    let before = guide.view();
    assert_eq!(guide.cancel().await, Err(Refused::GuardSaidNo));
    assert_eq!(trace().take(), ["outer"]);
    guide.edit(|form| form.number = 1).await.unwrap();
    assert_eq!(guide.cancel().await, Err(Refused::GuardSaidNo));
    assert_eq!(trace().take(), ["outer", "inner"]);
    assert_eq!(guide.view().status, Status::Waiting);
    assert_eq!(within_at(&guide), "one");
    let edited = guide
        .within::<Bank>(PATH)
        .edit(|bank| bank.iban = "open".into());
    edited.await.unwrap();
    guide.cancel().await.unwrap();
    assert_eq!(guide.view().status, Status::Cancelled);
    assert!(guide.view().revision > before.revision);
    let row = world.store.find(&RunId::new("g").unwrap()).await.unwrap();
    let loaded = world.store.load(row.unwrap().key).await.unwrap().unwrap();
    let positions: Vec<String> = loaded
        .history
        .iter()
        .filter(|record| matches!(record.body, workflow::replay::Body::State { .. }))
        .map(|record| record.location.to_string())
        .collect();
    let [.., first, second] = &positions[..] else {
        panic!("{positions:?}");
    };
    assert!(first.starts_with("n[1]/guide"), "{positions:?}");
    assert!(!second.starts_with("n[1]"), "{positions:?}");
}

fn within_at(guide: &Guide<Form>) -> String {
    within(&guide.view()).0.to_owned()
}

// GDE-CAN-23
#[tokio::test(start_paused = true)]
async fn a_flow_within_that_is_given_up_fails_its_stage_which_is_tried_anew_or_skipped() {
    for skips in [false, true] {
        let inner = billing();
        let flow = described([
            stage("a").start().to("n"),
            through("n", &inner).skippable().to("c"),
            stage("c").terminal(),
        ]);
        let (world, flow) = (World::new(), flow.nests(&inner).build().unwrap());
        let guide = in_n(&world, &flow).await;
        guide.next().await.unwrap();
        guide.within::<Bank>(PATH).cancel().await.unwrap();
        rested(&guide).await;
        let view = guide.view();
        assert_eq!((view.status, view.nested.len()), (Status::Failed, 0));
        let failure = view.failure.as_ref().unwrap();
        assert_eq!(failure.kind, FailingKind::NestedCancelled);
        assert!(failure.text.contains("billing"), "{failure}");
        assert!(view.actions.skip && view.actions.retry);
        let guide = opened(&killed(&world, guide).await, &flow).await;
        if skips {
            assert!(matches!(guide.skip().await, Ok(Moved::To(stage)) if stage == "c"));
        } else {
            assert!(inside("one", &guide.retry().await.unwrap()));
            assert_eq!(trace().take(), [""; 0]);
        }
    }
}

/// The flow in the middle of three.
fn middle(inner: &Flow<Bank>) -> Flow<Bank> {
    let flow = inner.clone();
    Flow::<Bank>::builder("middle")
        .stage(stage("x").start().to("y"))
        .stage(
            stage("y")
                .body(move |_: Stage<Bank>| goes(flow.clone(), "deep".into()))
                .undo(|_| {
                    trace().say("undo y");
                    async { Ok::<_, std::convert::Infallible>(()) }
                })
                .terminal(),
        )
        .nests(inner)
        .build()
        .unwrap()
}

// GDE-NST-12
#[tokio::test(start_paused = true)]
async fn of_three_levels_the_innermost_is_moved_and_all_are_undone_newest_first() {
    let undone = |name: &'static str| {
        move |_| {
            trace().say(name);
            async { Ok::<_, std::convert::Infallible>(()) }
        }
    };
    let inner = Flow::<Bank>::builder("billing")
        .stage(stage("one").start().undo(undone("undo one")).to("two"))
        .stage(stage("two").undo(undone("undo two")).terminal())
        .exit_guard(|bank: &Bank| bank.iban == "open")
        .build()
        .unwrap();
    let middle = middle(&inner);
    let flow = described([
        stage("a").start().undo(undone_form("undo a")).to("n"),
        through("n", &middle).undo(undone_form("undo n")).to("c"),
        stage("c").terminal(),
    ]);
    let (world, flow) = (World::new(), flow.nests(&middle).build().unwrap());
    let guide = super::started(&world, &flow).await;
    let deep = "n/guide/y/guide";
    assert!(matches!(guide.next().await, Ok(Moved::Inside { path, .. }) if path == "n/guide"));
    let moved = guide.next().await.unwrap();
    assert!(matches!(&moved, Moved::Inside { path, to } if path == deep && *to == "one"));
    assert_eq!(guide.view().nested.len(), 2);
    // Back falls out of the innermost, and in again.
    assert!(
        matches!(guide.back().await, Ok(Moved::Inside { path, to }) if path == "n/guide" && to == "x")
    );
    guide.next().await.unwrap();
    assert!(
        matches!(guide.next().await, Ok(Moved::Inside { path, to }) if path == deep && to == "two")
    );
    assert_eq!(guide.cancel().await, Err(Refused::GuardSaidNo));
    let guide = opened(&killed(&world, guide).await, &flow).await;
    assert_eq!(guide.view().nested.len(), 2);
    trace().take();
    // To the end of the innermost, of the middle, and of the stage: the middle is at its last stage.
    assert!(matches!(guide.next().await, Ok(Moved::To(stage)) if stage == "c"));
    assert_eq!(trace().take(), ["got deep", "got "]);
    guide.rollback().await.unwrap();
    let undone = trace().take();
    assert_eq!(
        undone,
        ["undo two", "undo one", "undo y", "undo n", "undo a"]
    );
    assert_eq!(guide.view().status, Status::Idle);
    guide.start(Form::default()).await.unwrap();
    guide.next().await.unwrap();
    assert_eq!(trace().take(), ["before"]);
}

fn undone_form(
    name: &'static str,
) -> impl Fn(workflow::guided::Undone<Form>) -> std::future::Ready<Result<(), std::convert::Infallible>>
{
    move |_| {
        trace().say(name);
        std::future::ready(Ok(()))
    }
}

// What waits within is over when all is undone.
#[tokio::test(start_paused = true)]
async fn a_rollback_while_a_flow_within_waits_undoes_what_it_did() {
    let inner = Flow::<Bank>::builder("billing")
        .stage(
            stage("one")
                .start()
                .undo(|undone: workflow::guided::Undone<Bank>| {
                    trace().say(format!("undo one of {}", undone.state.iban));
                    async { Ok::<_, std::convert::Infallible>(()) }
                })
                .to("two"),
        )
        .stage(stage("two").terminal())
        .build()
        .unwrap();
    let (world, flow) = (World::new(), around(&inner).build().unwrap());
    let guide = in_n(&world, &flow).await;
    let edited = guide
        .within::<Bank>(PATH)
        .edit(|bank| bank.iban = "DE1".into());
    edited.await.unwrap();
    guide.next().await.unwrap();
    trace().take();
    guide.rollback().await.unwrap();
    assert_eq!(trace().take(), ["undo one of DE1"]);
    let view = guide.view();
    assert_eq!((view.status, view.nested.len()), (Status::Idle, 0));
    guide.start(Form::default()).await.unwrap();
    assert!(inside("one", &guide.next().await.unwrap()));
}

#[fragment]
async fn pays(fails: bool) -> Result<(), Failure> {
    #[step(name = "pay", retries = 0)]
    have(Effect {
        fails,
        ..effect("pay")
    })
    .await?;
    Ok(())
}

fn told<S: std::fmt::Debug>(
    effect: String,
    undone: workflow::guided::Undone<S>,
) -> std::future::Ready<Result<(), std::convert::Infallible>> {
    let (step, visit) = (undone.step.unwrap(), undone.visit);
    trace().say(format!("undo {effect} at {step}, visit {visit}"));
    std::future::ready(Ok(()))
}

/// A flow within whose second stage has a step that is undone; so has the stage around it.
fn with_steps() -> (Flow<Bank>, Flow<Form>) {
    let inner = Flow::<Bank>::builder("billing")
        .stage(stage("one").start().to("two"))
        .stage(
            stage("two")
                .body(|stage: Stage<Bank>| pays(stage.state().fails))
                .undo_step(
                    "pay",
                    |effect: String, undone: workflow::guided::Undone<Bank>| {
                        told(format!("{effect} of {}", undone.state.iban), undone)
                    },
                )
                .undo(|undone: workflow::guided::Undone<Bank>| {
                    assert_eq!(undone.step, None);
                    trace().say(format!("undo two[{}]", undone.visit));
                    async { Ok::<_, std::convert::Infallible>(()) }
                })
                .terminal(),
        )
        .build()
        .unwrap();
    let outer = described([
        stage("a").start().to("n"),
        through("n", &inner)
            .revisit(Revisit::Fresh)
            .undo_step("have", told::<Form>)
            .undo_step("after", told::<Form>)
            .to("c"),
        stage("c").terminal(),
    ]);
    let outer = outer.nests(&inner).build().unwrap();
    (inner, outer)
}

// Also those of visits that nothing goes on from any more, and after a kill.
#[tokio::test(start_paused = true)]
async fn steps_within_and_around_are_undone_newest_first() {
    let (_, flow) = with_steps();
    let world = World::new();
    let guide = super::started(&world, &flow).await;
    guide.edit(|form| form.name = "DE1".into()).await.unwrap();
    assert!(inside("one", &guide.next().await.unwrap()));
    assert!(inside("two", &guide.next().await.unwrap()));
    assert!(matches!(guide.next().await, Ok(Moved::To(stage)) if stage == "c"));
    // Entered anew: what the first visit did is in the ledger.
    guide.back().await.unwrap();
    guide.next().await.unwrap();
    let guide = opened(&killed(&world, guide).await, &flow).await;
    assert_eq!(within(&guide.view()), ("two", Status::Waiting));
    trace().take();
    guide.rollback().await.unwrap();
    let expected = [
        "undo pay of DE1 at n[2]/guide/two[1]/pay, visit 1",
        "undo before at n[2]/have, visit 2",
        "undo got DE1 at n[1]/after, visit 1",
        "undo pay of DE1 at n[1]/guide/two[1]/pay, visit 1",
        "undo two[1]",
        "undo before at n[1]/have, visit 1",
    ];
    assert_eq!(trace().take(), expected);
    assert_eq!(guide.view().status, Status::Idle);
}

#[fragment]
async fn other() -> Result<(), Failure> {
    #[step(name = "other", retries = 0)]
    have(effect("other")).await?;
    Ok(())
}

#[fragment]
async fn fast_and_slow() -> Result<(), Failure> {
    have(effect("fast")).await?;
    #[step(name = "slow", retries = 0)]
    have(Effect {
        millis: 100,
        ..effect("slow")
    })
    .await?;
    Ok(())
}

fn slow_or_other(is_other: bool) -> Flow<Form> {
    let inner = Flow::<Bank>::builder("billing")
        .stage(stage("one").start().to("two"))
        .stage(
            stage("two")
                .body(
                    move |_: Stage<Bank>| {
                        if is_other { other() } else { fast_and_slow() }
                    },
                )
                .terminal(),
        )
        .build()
        .unwrap();
    around(&inner).build().unwrap()
}

// The stage within has failed, and not the one around it.
#[tokio::test(start_paused = true)]
async fn a_body_within_that_no_longer_fits_is_a_failure_within() {
    let (old, new) = (slow_or_other(false), slow_or_other(true));
    let world = World::new();
    let guide = in_n(&world, &old).await;
    let moving = tokio::spawn(guide.next().into_future());
    pass(10).await;
    moving.abort();
    let world = killed(&world, guide).await;
    trace().take();
    let guide = opened(&world, &new).await;
    let view = guide.view();
    assert_eq!(within(&view), ("two", Status::Failed));
    let failure = view.failure.as_ref().unwrap();
    assert_eq!(failure.kind, FailingKind::Diverged, "{failure}");
    assert_eq!(failure.at, ["n[1]/guide/two[1]"]);
    assert_eq!(trace().take(), [""; 0]);
    assert!(inside("two", &guide.retry().await.unwrap()));
    assert_eq!(trace().take(), ["other"]);
    assert!(matches!(guide.next().await, Ok(Moved::To(stage)) if stage == "c"));
}

#[tokio::test(start_paused = true)]
async fn a_guide_is_closed_while_something_within_is_awaited() {
    let (world, flow) = (World::new(), slow_or_other(false));
    let guide = in_n(&world, &flow).await;
    let moving = tokio::spawn(guide.next().into_future());
    pass(10).await;
    guide.close().await;
    assert_eq!(moving.await.unwrap(), Err(Refused::Closed));
    assert_eq!(guide.next().await, Err(Refused::Closed));
    let guide = opened(&killed(&world, guide).await, &flow).await;
    assert_eq!(within(&guide.view()), ("two", Status::Failed));
}

// It is the person who gave it up: they decide.
#[tokio::test(start_paused = true)]
async fn a_flow_within_that_is_given_up_is_not_begun_again_by_itself() {
    let inner = billing();
    let flow = described([
        stage("a").start().to("n"),
        through("n", &inner)
            .retries(3, workflow::Backoff::DEFAULT)
            .to("c"),
        stage("c").terminal(),
    ]);
    let (world, flow) = (World::new(), flow.nests(&inner).build().unwrap());
    let guide = in_n(&world, &flow).await;
    guide.within::<Bank>(PATH).cancel().await.unwrap();
    rested(&guide).await;
    let failure = guide.view().failure.clone().unwrap();
    assert_eq!(failure.kind, FailingKind::NestedCancelled);
    assert_eq!(guide.view().status, Status::Failed);
}

#[tokio::test(start_paused = true)]
async fn a_flow_that_is_not_declared_fails_the_stage_and_says_what_to_do() {
    let inner = billing();
    let flow = described([
        stage("a").start().to("n"),
        through("n", &inner).to("c"),
        stage("c").terminal(),
    ]);
    let guide = super::started(&World::new(), &flow.build().unwrap()).await;
    let Err(Refused::Failed(failing)) = guide.next().await else {
        panic!("{:#?}", guide.view());
    };
    assert!(failing.text.contains(".nests(&billing)"), "{failing}");
}

// GDE-RES-12
#[tokio::test(start_paused = true)]
async fn a_flow_within_of_another_version_is_migrated_with_what_it_is_in_or_nothing_is() {
    let (world, first) = (World::new(), billing());
    let flow = around(&first).build().unwrap();
    let guide = in_n(&world, &flow).await;
    guide.next().await.unwrap();
    let world = killed(&world, guide).await;
    let row = world.store.find(&RunId::new("g").unwrap()).await.unwrap();
    let key = row.unwrap().key;
    let before = world.store.load(key).await.unwrap().unwrap().history;

    let second = questions().version(2).build().unwrap();
    let flow = around(&second).build().unwrap();
    let engine = engine(&world, &flow).await;
    let refused = engine.guided(&flow, "g").open().await.unwrap_err();
    assert!(
        matches!(&refused, OpenError::NeedsMigration { flow, from: 1, to: 2, .. } if flow == "billing"),
        "{refused}"
    );
    let world = world.crash();
    let after = world.store.load(key).await.unwrap().unwrap().history;
    assert_eq!(after, before);

    let migrates = questions().version(2).migrate(1, |mut data| {
        data["iban"] = "migrated".into();
        Ok(data)
    });
    let flow = around(&migrates.build().unwrap()).build().unwrap();
    let world = world.crash();
    let guide = opened(&world, &flow).await;
    let inner = guide.within::<Bank>(PATH).view().unwrap();
    assert_eq!(inner.state.iban, "migrated");
    assert_eq!(inner.at.as_ref().unwrap(), &"two");
    drop(guide);
    // It is durable: this code calls no migration any more.
    let never = questions().version(2).migrate(1, |_| panic!("once"));
    let flow = around(&never.build().unwrap()).build().unwrap();
    let guide = opened(&world.crash(), &flow).await;
    assert!(matches!(guide.next().await, Ok(Moved::To(stage)) if stage == "c"));
    assert_eq!(trace().take(), ["got migrated"]);
}

// GDE-RES-11
#[tokio::test(start_paused = true)]
async fn where_the_migration_of_a_flow_within_is_given_up_all_is_as_it_was() {
    let (world, first) = (World::new(), billing());
    let guide = in_n(&world, &around(&first).build().unwrap()).await;
    let world = killed(&world, guide).await;
    let row = world.store.find(&RunId::new("g").unwrap()).await.unwrap();
    let key = row.unwrap().key;
    let before = world.store.load(key).await.unwrap().unwrap().history;
    let slow = questions()
        .version(2)
        .migrate_async(1, |_, _| std::future::pending());
    let flow = around(&slow.build().unwrap()).build().unwrap();
    let engine = engine(&world, &flow).await;
    let opening = tokio::spawn(engine.guided(&flow, "g").open());
    pass(10).await;
    opening.abort();
    pass(10).await;
    assert_eq!(engine.in_memory(), 0);
    let after = world.store.load(key).await.unwrap().unwrap().history;
    assert_eq!(after, before);
    let guide = opened(&world.crash(), &around(&first).build().unwrap()).await;
    assert_eq!(within(&guide.view()), ("one", Status::Waiting));
}

// One that was left outward is over: nobody asks for its migration.
#[tokio::test(start_paused = true)]
async fn a_flow_within_that_is_over_needs_no_migration() {
    let (world, first) = (World::new(), billing());
    let guide = in_n(&world, &around(&first).build().unwrap()).await;
    guide.back().await.unwrap();
    let world = killed(&world, guide).await;
    let second = questions().version(2).build().unwrap();
    let guide = opened(&world, &around(&second).build().unwrap()).await;
    assert_eq!(history(&guide.view()), ["a"]);
    assert!(inside("one", &guide.next().await.unwrap()));
}

// What waits within, and whoever waits for it, is over with the stage.
#[tokio::test(start_paused = true)]
async fn the_time_limit_of_a_stage_holds_for_the_flow_in_it() {
    let inner = Flow::<Bank>::builder("billing")
        .stage(stage("one").start().to("two"))
        .stage(
            stage("two")
                .body(|_: Stage<Bank>| {
                    super::one(Effect {
                        millis: 10_000,
                        ..effect("slow")
                    })
                })
                .terminal(),
        )
        .build()
        .unwrap();
    let flow = described([
        stage("a").start().to("n"),
        through("n", &inner).timeout(Duration::from_secs(1)).to("c"),
        stage("c").terminal(),
    ]);
    let flow = flow.nests(&inner).build().unwrap();
    let guide = in_n(&World::new(), &flow).await;
    let Err(Refused::Failed(failing)) = guide.next().await else {
        panic!("{:#?}", guide.view());
    };
    assert_eq!(failing.kind, FailingKind::TimedOut);
    let view = guide.view();
    assert_eq!((view.status, view.nested.len()), (Status::Failed, 0));
}

#[fragment]
async fn two_at_once(flow: Flow<Bank>) -> Result<(), Failure> {
    let (left, right) = join!(
        both,
        left = flow.guide(Bank::default()).await?,
        right = flow.guide(Bank::default()).await?,
    )
    .await?;
    have(effect(&format!("{} and {}", left.iban, right.iban))).await?;
    Ok(())
}

// GDE-NST-15 GDE-CAN-16
#[tokio::test(start_paused = true)]
async fn observers_of_the_guide_are_told_what_happens_within_and_where() {
    let (world, inner) = (World::new(), billing());
    let flow = around(&inner).build().unwrap();
    let guide = super::started(&world, &flow).await;
    let heard: Arc<std::sync::Mutex<Vec<String>>> = Arc::default();
    let ear = Arc::clone(&heard);
    let observer = guide.observe(move |told: &Told<Form>| {
        let at = told.path.as_deref().unwrap_or("guide");
        ear.lock().unwrap().push(format!("{at}: {:?}", told.event));
        Ok(std::ops::ControlFlow::Continue(()))
    });
    let since = || async {
        pass(1).await;
        std::mem::take(&mut *heard.lock().unwrap())
    };
    guide.next().await.unwrap();
    let n = "StageName(\"n\")";
    let (a, one, two) = (
        "StageName(\"a\")",
        "StageName(\"one\")",
        "StageName(\"two\")",
    );
    assert_eq!(
        since().await,
        [
            format!("guide: Checked({a})"),
            format!("guide: Left({a})"),
            format!("guide: Entered({n})"),
            format!("{PATH}: Started"),
            format!("{PATH}: Entered({one})"),
        ]
    );
    guide
        .within::<Bank>(PATH)
        .edit(|bank| bank.iban = "DE1".into())
        .await
        .unwrap();
    guide.next().await.unwrap();
    assert_eq!(
        since().await,
        [
            format!("{PATH}: Edited"),
            format!("{PATH}: Checked({one})"),
            format!("{PATH}: Left({one})"),
            format!("{PATH}: Entered({two})"),
        ]
    );
    guide.cancel().await.unwrap();
    assert_eq!(
        since().await,
        [format!("{PATH}: Cancelled"), "guide: Cancelled".to_owned()]
    );
    observer.stop();
}

// What strays is each flow's own, and each is tried again.
#[tokio::test(start_paused = true)]
async fn two_flows_in_one_stage_that_no_longer_fit_have_both_failed() {
    let flow = |is_other| {
        let inner = Flow::<Bank>::builder("billing")
            .stage(stage("one").start().to("two"))
            .stage(
                stage("two")
                    .body(
                        move |_: Stage<Bank>| {
                            if is_other { other() } else { fast_and_slow() }
                        },
                    )
                    .terminal(),
            )
            .build()
            .unwrap();
        let in_stage = inner.clone();
        described([
            stage("a").start().to("n"),
            stage("n")
                .body(move |_: Stage<Form>| two_at_once(in_stage.clone()))
                .to("c"),
            stage("c").terminal(),
        ])
        .nests(&inner)
        .build()
        .unwrap()
    };
    let (old, new) = (flow(false), flow(true));
    let world = World::new();
    let guide = super::started(&world, &old).await;
    guide.next().await.unwrap();
    // Both work at once, and both are cut off.
    let left = tokio::spawn(guide.next().into_future());
    pass(1).await;
    let right = tokio::spawn(guide.next().into_future());
    pass(1).await;
    left.abort();
    right.abort();
    let world = killed(&world, guide).await;
    trace().take();
    let guide = opened(&world, &new).await;
    let view = guide.view();
    assert_eq!(view.status, Status::Failed, "{view:#?}");
    for side in ["left", "right"] {
        let path = format!("n/both/{side}/guide");
        let within = guide.within::<Bank>(path).view().unwrap();
        let failure = within.failure.clone();
        assert_eq!(failure.unwrap().kind, FailingKind::Diverged, "{side}");
    }
    for _ in 0..2 {
        // One after the other, as they are gone through.
        assert!(matches!(guide.next().await, Err(Refused::NotRunning(_))));
        guide.retry().await.unwrap();
        assert_eq!(trace().take(), ["other"]);
        guide.next().await.unwrap();
    }
    assert_eq!(guide.view().at.as_ref().unwrap(), &"c");
}

#[tokio::test(start_paused = true)]
async fn of_two_flows_in_one_stage_one_is_gone_through_after_the_other() {
    let inner = billing();
    let in_stage = inner.clone();
    let flow = described([
        stage("a").start().to("n"),
        stage("n")
            .body(move |_: Stage<Form>| two_at_once(in_stage.clone()))
            .to("c"),
        stage("c").terminal(),
    ]);
    let (world, flow) = (World::new(), flow.nests(&inner).build().unwrap());
    let guide = super::started(&world, &flow).await;
    let paths = ["n/both/left/guide", "n/both/right/guide"];
    let to = |moved: Moved| match moved {
        Moved::Inside { path, to } => (path, to.to_string()),
        _ => panic!("{moved:?}"),
    };
    guide.next().await.unwrap();
    for (path, iban) in paths.iter().zip(["l", "r"]) {
        let edit = guide
            .within::<Bank>(*path)
            .edit(|bank| bank.iban = iban.into());
        edit.await.unwrap();
    }
    assert_eq!(
        to(guide.next().await.unwrap()),
        (paths[0].into(), "two".into())
    );
    assert_eq!(
        to(guide.next().await.unwrap()),
        (paths[1].into(), "one".into())
    );
    let guide = opened(&killed(&world, guide).await, &flow).await;
    assert_eq!(
        to(guide.next().await.unwrap()),
        (paths[1].into(), "two".into())
    );
    assert!(matches!(guide.next().await, Ok(Moved::To(stage)) if stage == "c"));
    assert_eq!(trace().take(), ["l and r"]);
}

// What flows in it did is undone with their data: as long as that is owed, a visit stays.
#[tokio::test(start_paused = true)]
async fn visits_with_flows_that_nobody_goes_on_from_are_deleted_unless_an_undo_is_owed() {
    for owes in [false, true] {
        let one = stage("one").start().to("two");
        let one = one.body(|_: Stage<Bank>| super::one(effect("one")));
        let one = if owes {
            one.undo_step("have", |_: String, _| async { Ok::<_, super::Unlucky>(()) })
        } else {
            one
        };
        let inner = Flow::<Bank>::builder("billing");
        let inner = inner.stage(one).stage(stage("two").terminal());
        let inner = inner.build().unwrap();
        let flow = described([
            stage("a").start().to("n"),
            through("n", &inner).revisit(Revisit::Fresh).to("c"),
            stage("c").terminal(),
        ]);
        let (world, flow) = (World::new(), flow.nests(&inner).build().unwrap());
        let guide = super::started(&world, &flow).await;
        for _ in 0..4 {
            guide.next().await.unwrap();
            guide.back().await.unwrap();
        }
        let row = world.store.find(&RunId::new("g").unwrap()).await.unwrap();
        let loaded = world.store.load(row.unwrap().key).await.unwrap().unwrap();
        let visit = |number| format!("n[{number}]/");
        let kept = (1..=4).filter(|number| {
            let mut records = loaded.history.iter();
            records.any(|record| record.location.to_string().starts_with(&visit(*number)))
        });
        let kept: Vec<i32> = kept.collect();
        let expected: &[i32] = if owes { &[1, 2, 3, 4] } else { &[4] };
        assert_eq!(kept, expected);
    }
}

/// What a person sees of where they are.
type Seen = (String, Option<String>, Status);

fn seen(view: &View<Form>) -> Seen {
    let within = view.nested.last().and_then(|inner| inner.at.as_ref());
    (
        view.at.as_ref().unwrap().to_string(),
        within.map(ToString::to_string),
        view.status,
    )
}

#[derive(Debug, Clone, Copy)]
enum Button {
    Next,
    Back,
}

/// Presses; false when the store says nothing any more.
async fn pressed(guide: &Guide<Form>, button: Button) -> bool {
    let press = match button {
        Button::Next => guide.next(),
        Button::Back => guide.back(),
    };
    let came = tokio::time::timeout(Duration::from_secs(1), press.into_future()).await;
    !matches!(
        came,
        Err(_) | Ok(Err(Refused::Stopped(_) | Refused::Store(_)))
    )
}

// GDE-NST-06 GDE-CRX-03
#[tokio::test(start_paused = true)]
async fn a_kill_after_any_commit_loses_no_level_and_repeats_nothing_that_succeeded() {
    let slow = |name: &'static str| {
        move |_: Stage<Bank>| {
            super::one(Effect {
                millis: 5,
                ..effect(name)
            })
        }
    };
    let inner = Flow::<Bank>::builder("billing")
        .stage(stage("one").start().to("two"))
        .stage(stage("two").body(slow("two")).terminal())
        .build()
        .unwrap();
    let flow = around(&inner).build().unwrap();
    let script = [
        Button::Next,
        Button::Next,
        Button::Back,
        Button::Next,
        Button::Back,
        Button::Back,
        Button::Next,
        Button::Next,
        Button::Next,
    ];
    let at = |stage: &str, within: Option<&str>| -> Seen {
        (stage.to_owned(), within.map(str::to_owned), Status::Waiting)
    };
    let expected = [
        at("a", None),
        at("n", Some("one")),
        at("n", Some("two")),
        at("n", Some("one")),
        at("n", Some("two")),
        at("n", Some("one")),
        at("a", None),
        at("n", Some("one")),
        at("n", Some("two")),
        at("c", None),
    ];
    let (mut cut, mut interrupted, mut whole) = (2, 0, false);
    while !whole {
        let world = World::new();
        let faults = (0..cut).map(|_| Fault::None);
        let faults = faults.chain(std::iter::repeat_n(Fault::Before, 1_000));
        let store = FaultStore::over(&world.store, faults);
        let first = world.engine().shared_store(Arc::new(store.clone()));
        let first = first.guided(&flow).build().await.unwrap();
        let starting = first.guided(&flow, "g").start(Form::default());
        let guide = tokio::time::timeout(Duration::from_secs(1), starting).await;
        let mut done = 0;
        if let Ok(Ok(guide)) = &guide {
            while done < script.len() && pressed(guide, script[done]).await {
                done += 1;
                assert_eq!(seen(&guide.view()), expected[done], "cut {cut}");
            }
        }
        whole = done == script.len();
        drop((guide, first));
        tokio::task::yield_now().await;
        let world = world.crash();
        let recorded = super::model::succeeded(&world).await;
        let engine = engine(&world, &flow).await;
        let guide = engine.guided(&flow, "g").open_or_start(Form::default);
        let guide = guide.await.unwrap();
        rested(&guide).await;
        if guide.view().status == Status::Failed {
            interrupted += 1;
            guide.retry().await.unwrap();
            if seen(&guide.view()) == at("n", None) {
                // What came after the flow within was cut off: the stage waits, as after any retry.
                guide.next().await.unwrap();
            }
        }
        // Also the `next` that ended the flow within, when no more than that was recorded: it goes on by itself.
        let now = seen(&guide.view());
        if now != expected[done] {
            done += 1;
            assert_eq!(now, expected[done], "cut {cut}");
        }
        while done < script.len() {
            assert!(pressed(&guide, script[done]).await);
            done += 1;
            assert_eq!(seen(&guide.view()), expected[done], "cut {cut}");
        }
        for again in trace().take() {
            assert!(!recorded.contains(&again), "cut {cut}: {again}");
        }
        cut += 1;
    }
    assert!(cut > 15 && interrupted > 1, "{cut} {interrupted}");
}

// ===== a guide in a workflow, and a workflow in a stage =====

#[workflow]
async fn onboarding(name: String) -> Result<String, Failure> {
    let asked = Bank {
        iban: name,
        ..Bank::default()
    };
    let bank = billing().guide(asked).await?;
    have(effect(&format!("paid to {}", bank.iban))).await?;
    Ok(bank.iban)
}

#[tokio::test(start_paused = true)]
async fn a_guide_in_a_workflow_is_a_child_run_that_is_driven_by_its_id() {
    let (world, inner) = (World::new(), billing());
    let build = || world.engine().workflow(onboarding).guided(&inner).build();
    let engine = build().await.unwrap();
    trace().take();
    let run = engine.start("w", onboarding("DE1".into())).await.unwrap();
    pass(10).await;
    assert_eq!(engine.status("w").await.unwrap().state, RunState::Waiting);
    let guide = engine
        .guided(&inner, "w/guide")
        .open()
        .await
        .unwrap()
        .unwrap();
    assert_eq!(guide.view().state.iban, "DE1");
    guide.next().await.unwrap();
    guide.edit(|bank| bank.iban = "DE2".into()).await.unwrap();
    assert_eq!(guide.next().await, Ok(Moved::Finished));
    assert_eq!(run.result().await.unwrap(), "DE2");
    assert_eq!(trace().take(), ["paid to DE2"]);
    // Given up, it fails the code that awaits it.
    let run = engine.start("v", onboarding("DE3".into())).await.unwrap();
    pass(10).await;
    let guide = engine
        .guided(&inner, "v/guide")
        .open()
        .await
        .unwrap()
        .unwrap();
    guide.cancel().await.unwrap();
    assert!(run.result().await.is_err());
}

#[workflow]
async fn ships(item: String) -> Result<String, Failure> {
    have(effect(&format!("ships {item}"))).await?;
    Ok(item)
}

#[fragment]
async fn calls(item: String) -> Result<(), Failure> {
    let shipped = ships(item).await?;
    have(effect(&format!("shipped {shipped}"))).await?;
    Ok(())
}

fn shipping(stage: Stage<Form>) -> Fragment<'static, Result<(), Failure>> {
    calls(stage.state().name.clone())
}

#[tokio::test(start_paused = true)]
async fn a_workflow_in_a_stage_is_a_child_run_and_is_kept() {
    let flow = super::flow([
        stage("a").start().to("b"),
        stage("b").body(shipping).to("c"),
        stage("c").terminal(),
    ]);
    let world = World::new();
    let engine = world.engine().workflow(ships).guided(&flow);
    let engine = engine.build().await.unwrap();
    trace().take();
    let guide = engine.guided(&flow, "g").start(Form {
        name: "book".into(),
        number: 0,
    });
    let guide = guide.await.unwrap();
    guide.next().await.unwrap();
    assert_eq!(trace().take(), ["ships book", "shipped book"]);
    let child = engine.status("g/b[1]/ships").await.unwrap();
    assert_eq!(child.state, RunState::Completed);
    guide.back().await.unwrap();
    guide.next().await.unwrap();
    assert_eq!(trace().take(), [""; 0]);
}
