//! Edits: of what the person gave, at any time before the end.

use workflow::guided::{Event, Refused, Stage, Status, stage};
use workflow::{Failure, fragment, step};
use workflow_tests::{SlowStore, World, late, pass};

use super::{Effect, Form, engine, flow, have, history, killed, questions, started, takes, trace};

// GDE-EDT-01 GDE-EDT-09
#[tokio::test(start_paused = true)]
async fn an_edit_is_shown_and_stored_under_a_revision_of_its_own() {
    let (world, flow) = (World::new(), questions());
    let guide = started(&world, &flow).await;
    let before = guide.view().revision;
    let revision = guide.edit(|form| form.name = "n".into()).await.unwrap();
    assert_eq!(revision, before + 1);
    assert_eq!(guide.view().revision, revision);
    assert_eq!(guide.view().events, [Event::Edited]);
    let all = Form {
        name: "m".into(),
        number: 2,
    };
    let whole = all.clone();
    guide.edit(move |form| *form = whole).await.unwrap();
    let engine = engine(&world.crash(), &flow).await;
    let guide = engine.guided(&flow, "g").open().await.unwrap().unwrap();
    assert_eq!(guide.view().state, all);
}

// GDE-EDT-02
#[tokio::test(start_paused = true)]
async fn an_edit_does_not_hide_a_failure() {
    let flow = flow([
        stage("a").start().to("b"),
        stage("b").body(super::unlucky).to("c"),
        stage("c").terminal(),
    ]);
    let guide = started(&World::new(), &flow).await;
    let _ = guide.next().await;
    let failure = guide.view().failure.clone();
    assert!(failure.is_some());
    guide.edit(|form| form.number = 1).await.unwrap();
    let view = guide.view();
    assert_eq!((view.status, view.state.number), (Status::Failed, 1));
    assert_eq!(view.failure, failure);
}

// GDE-EDT-03 GDE-CON-02
#[tokio::test(start_paused = true)]
async fn edits_are_taken_while_a_body_runs() {
    let flow = flow([
        stage("a").start().to("b"),
        stage("b").body(takes("work", 100)).to("c"),
        stage("c").terminal(),
    ]);
    let guide = started(&World::new(), &flow).await;
    let moving = tokio::spawn(guide.next().into_future());
    pass(10).await;
    assert_eq!(guide.view().status, Status::Working);
    for _ in 0..3 {
        guide.edit(|form| form.number += 1).await.unwrap();
    }
    assert_eq!(guide.view().state.number, 3);
    assert!(guide.view().busy);
    moving.await.unwrap().unwrap();
    assert_eq!(guide.view().state.number, 3);
    assert!(!guide.view().busy);
}

// GDE-EDT-04
#[tokio::test(start_paused = true)]
async fn a_cancelled_guide_is_not_edited() {
    let guide = started(&World::new(), &questions()).await;
    guide.cancel().await.unwrap();
    assert_eq!(guide.edit(|_| {}).await, Err(Refused::Cancelled));
}

// GDE-EDT-05
#[tokio::test(start_paused = true)]
async fn an_edit_that_panics_changes_nothing() {
    let guide = started(&World::new(), &questions()).await;
    let before = guide.view();
    let edited = guide.edit(|form| {
        form.number = 9;
        panic!("halfway");
    });
    assert_eq!(edited.await, Err(Refused::Panicked("halfway".into())));
    assert_eq!(*guide.view(), *before);
    guide.edit(|form| form.number = 1).await.unwrap();
    assert_eq!(guide.view().state.number, 1);
}

// GDE-EDT-07 GDE-PER-03: what is shown is durable, in order.
#[tokio::test(start_paused = true)]
async fn edits_made_at_once_are_stored_in_order_also_when_the_store_is_slow() {
    let (world, flow) = (World::new(), questions());
    let store = SlowStore::over(&world.store);
    let engine = workflow::Engine::builder()
        .store(store.clone())
        .clock(world.clock())
        .guided(&flow)
        .build()
        .await
        .unwrap();
    let guide = engine
        .guided(&flow, "g")
        .start(Form::default())
        .await
        .unwrap();
    pass(10).await;
    late(&store.appends, [100, 100]);
    let first = tokio::spawn(guide.edit(|form| form.number = 1).into_future());
    pass(10).await;
    let second = tokio::spawn(guide.edit(|form| form.number = 2).into_future());
    pass(50).await;
    assert_eq!(guide.view().state.number, 0, "shown before it is durable");
    let (first, second) = (
        first.await.unwrap().unwrap(),
        second.await.unwrap().unwrap(),
    );
    assert_eq!(second, first + 1);
    assert_eq!(guide.view().state.number, 2);
}

fn slow(name: &str) -> Effect {
    Effect {
        name: name.to_owned(),
        millis: 100,
        fails: false,
    }
}

/// Works, and writes down what came of it.
#[fragment]
async fn works(mut stage: Stage<Form>) -> Result<(), Failure> {
    have(slow("before")).await?;
    stage.edit(|form| form.name.push_str("+body")).await?;
    trace().say(stage.state().name.clone());
    #[step(name = "after", retries = 0)]
    have(slow("after")).await?;
    stage.refresh().await?;
    trace().say(stage.state().name.clone());
    Ok(())
}

fn working() -> workflow::guided::Flow<Form> {
    flow([
        stage("a").start().to("b"),
        stage("b").body(works).to("c"),
        stage("c").terminal(),
    ])
}

// GDE-EDT-03: a body's own edits are ordered with those from outside, and what it sees is what it asked for.
#[tokio::test(start_paused = true)]
async fn a_bodys_edits_and_those_from_outside_are_all_kept_in_order() {
    let guide = started(&World::new(), &working()).await;
    let moving = tokio::spawn(guide.next().into_future());
    pass(50).await;
    guide.edit(|form| form.name.push_str("+one")).await.unwrap();
    pass(100).await;
    guide.edit(|form| form.name.push_str("+two")).await.unwrap();
    moving.await.unwrap().unwrap();
    assert_eq!(guide.view().state.name, "+one+body+two");
    assert_eq!(
        trace().take(),
        ["before", "+one+body", "after", "+one+body+two"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_replayed_sees_its_edits_as_they_were_and_makes_them_once() {
    let (world, flow) = (World::new(), working());
    let guide = started(&world, &flow).await;
    let moving = tokio::spawn(guide.next().into_future());
    pass(150).await;
    guide.edit(|form| form.name.push_str("+out")).await.unwrap();
    moving.abort();
    let world = killed(&world, guide).await;
    trace().take();
    let engine = engine(&world, &flow).await;
    let guide = engine.guided(&flow, "g").open().await.unwrap().unwrap();
    super::rested(&guide).await;
    assert_eq!(guide.view().status, Status::Failed);
    assert_eq!(guide.view().state.name, "+body+out");
    assert_eq!(trace().take(), ["+body"]);
    // Tried again it is another visit, and edits what is there by then.
    guide.retry().await.unwrap();
    assert_eq!(guide.view().state.name, "+body+out+body");
    assert_eq!(
        trace().take(),
        ["+body+out+body", "after", "+body+out+body"]
    );
}

/// Writes the name down that the guards ask for.
#[fragment]
async fn names(mut stage: Stage<Form>) -> Result<(), Failure> {
    stage.edit(|form| form.number = 1).await?;
    Ok(())
}

// GDE-NAV-24
#[tokio::test(start_paused = true)]
async fn guards_see_what_leaving_changed() {
    let flow = flow([
        stage("a")
            .start()
            .leave(names)
            .to_if("b", |form| form.number == 1)
            .to("c"),
        stage("b").to("c"),
        stage("c").terminal(),
    ]);
    let guide = started(&World::new(), &flow).await;
    guide.next().await.unwrap();
    assert_eq!(history(&guide.view()), ["a", "b"]);
}

/// An edit that panics.
#[fragment]
async fn trips(mut stage: Stage<Form>) -> Result<(), Failure> {
    stage.edit(|_| panic!("a bad edit")).await
}

#[tokio::test(start_paused = true)]
async fn a_bodys_edit_that_panics_fails_it_and_changes_nothing() {
    let flow = flow([
        stage("a").start().to("b"),
        stage("b").body(trips).to("c"),
        stage("c").terminal(),
    ]);
    let guide = started(&World::new(), &flow).await;
    let Err(Refused::Failed(failing)) = guide.next().await else {
        panic!("{:?}", guide.view());
    };
    assert!(failing.text.contains("a bad edit"), "{failing}");
    assert_eq!(guide.view().state, Form::default());
}
