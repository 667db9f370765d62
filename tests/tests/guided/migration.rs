//! Guides that an older version of their flow recorded.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use workflow::guided::{
    Event, FailingKind, Fault, Flow, FlowBuilder, Guide, OpenError, Status, stage,
};
use workflow::replay::{Record, RunId};
use workflow::store::Store as _;
use workflow::{Engine, RunState};
use workflow_tests::{World, pass};

use super::{killed, row, started, takes, trace};

/// The form, as its second version has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Titled {
    title: String,
    number: u32,
}

/// The same three stages, of another version.
fn version(version: u32) -> FlowBuilder<Titled> {
    Flow::builder("flow")
        .version(version)
        .stage(stage("a").start().to("b"))
        .stage(stage("b").to("c"))
        .stage(stage("c").terminal())
}

fn titled(mut data: Value) -> Value {
    data["title"] = data["name"].take();
    data
}

async fn engine(world: &World, flow: &Flow<Titled>) -> Engine {
    world.engine().guided(flow).build().await.unwrap()
}

async fn opened(world: &World, flow: &Flow<Titled>) -> Result<Guide<Titled>, OpenError> {
    let engine = engine(world, flow).await;
    let opened = engine.guided(flow, "g").open().await;
    opened.map(Option::unwrap)
}

/// A guide of the first version, at b.
async fn at_b() -> World {
    let world = World::new();
    let guide = started(&world, &row()).await;
    guide.edit(|form| form.name = "acme".into()).await.unwrap();
    guide.next().await.unwrap();
    killed(&world, guide).await
}

async fn recorded(world: &World) -> Vec<Record> {
    let row = world.store.find(&RunId::new("g").unwrap()).await.unwrap();
    let loaded = world.store.load(row.unwrap().key).await.unwrap();
    loaded.unwrap().history
}

// GDE-RES-08 GDE-RES-13
#[tokio::test(start_paused = true)]
async fn what_an_older_version_recorded_is_migrated_once_and_recorded_before_it_is_seen() {
    let world = at_b().await;
    let calls = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&calls);
    let second = version(2).migrate(1, move |data| {
        // Its data, and what it began with.
        counted.fetch_add(1, Ordering::Relaxed);
        Ok(titled(data))
    });
    let second = second.build().unwrap();
    let guide = opened(&world, &second).await.unwrap();
    let view = guide.view();
    assert_eq!((&view.state.title[..], view.state.number), ("acme", 0));
    assert_eq!(view.at.as_ref().unwrap(), &"b");
    assert_eq!(view.status, Status::Waiting);
    assert_eq!(view.events, [Event::Migrated { from: 1, to: 2 }]);
    assert_eq!(calls.load(Ordering::Relaxed), 2);
    // Whatever happens now, it is there.
    let guide = opened(&world.crash(), &second).await.unwrap();
    assert_eq!(*guide.view(), *view);
    assert_eq!(calls.load(Ordering::Relaxed), 2);
    guide.next().await.unwrap();
    // What it goes back to is of this version, too.
    guide.rollback().await.unwrap();
    let view = guide.view();
    assert_eq!((view.status, &view.state.title[..]), (Status::Idle, ""));
}

#[tokio::test(start_paused = true)]
async fn migrations_are_called_in_a_row_from_the_version_that_recorded_it() {
    let world = at_b().await;
    let third = version(3)
        .migrate(2, |mut data| {
            data["number"] = json!(data["number"].as_u64().unwrap() * 10);
            Ok(data)
        })
        .migrate(1, |mut data| {
            data["number"] = json!(7);
            Ok(titled(data))
        });
    let guide = opened(&world, &third.build().unwrap()).await.unwrap();
    assert_eq!(guide.view().state.number, 70);
}

// GDE-RES-09
#[tokio::test(start_paused = true)]
async fn without_a_migration_it_is_refused_and_nothing_of_it_changes() {
    let world = at_b().await;
    let before = recorded(&world).await;
    let refused = opened(&world, &version(2).build().unwrap())
        .await
        .unwrap_err();
    let OpenError::NeedsMigration { flow, from, to, .. } = &refused else {
        panic!("{refused}");
    };
    assert_eq!((&flow[..], *from, *to), ("flow", 1, 2));
    assert!(refused.to_string().contains(".migrate(1, ..)"), "{refused}");
    assert_eq!(recorded(&world).await, before);
    // With the code that it is of it goes on.
    let world = world.crash();
    let engine = super::engine(&world, &row()).await;
    let guide = engine.guided(&row(), "g").open().await.unwrap().unwrap();
    assert_eq!(guide.view().at.as_ref().unwrap(), &"b");
    guide.next().await.unwrap();
}

// A newer version is never led back.
#[tokio::test(start_paused = true)]
async fn what_a_newer_version_recorded_is_refused() {
    let world = at_b().await;
    let second = version(2).migrate(1, |data| Ok(titled(data)));
    opened(&world, &second.build().unwrap()).await.unwrap();
    let world = world.crash();
    let engine = super::engine(&world, &row()).await;
    let refused = engine.guided(&row(), "g").open().await.unwrap_err();
    assert!(
        matches!(refused, OpenError::NeedsMigration { from: 2, to: 1, .. }),
        "{refused}"
    );
    assert_eq!(engine.status("g").await.unwrap().state, RunState::Parked);
}

type Wrong = fn(Value) -> Result<Value, Box<dyn std::error::Error + Send + Sync>>;

#[tokio::test(start_paused = true)]
async fn a_migration_that_fails_or_gives_what_does_not_read_leaves_the_guide_as_it_was() {
    let world = at_b().await;
    let before = recorded(&world).await;
    let wrongs: [Wrong; 3] = [
        |_| Err("not today".into()),
        Ok,
        |_| panic!("a bad migration"),
    ];
    let says = ["not today", "title", "a bad migration"];
    for (wrong, says) in wrongs.into_iter().zip(says) {
        let flow = version(2).migrate(1, wrong).build().unwrap();
        let refused = opened(&world.crash(), &flow).await.unwrap_err();
        assert!(
            matches!(&refused, OpenError::Migration { from: 1, detail, .. } if detail.contains(says)),
            "{refused}"
        );
        assert_eq!(recorded(&world).await, before);
    }
    let mended = version(2).migrate(1, |data| Ok(titled(data)));
    let guide = opened(&world.crash(), &mended.build().unwrap())
        .await
        .unwrap();
    assert_eq!(guide.view().state.title, "acme");
}

// GDE-RES-10
#[tokio::test(start_paused = true)]
async fn a_migration_that_nobody_waits_for_any_more_is_given_up_and_nothing_changes() {
    let world = at_b().await;
    let before = recorded(&world).await;
    let (called, told) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let (calls, tells) = (Arc::clone(&called), Arc::clone(&told));
    let slow = version(2).migrate_async(1, move |_, token| {
        calls.fetch_add(1, Ordering::Relaxed);
        let tells = Arc::clone(&tells);
        tokio::spawn(async move {
            token.cancelled().await;
            tells.fetch_add(1, Ordering::Relaxed);
        });
        pending()
    });
    let slow = slow.build().unwrap();
    let engine = engine(&world, &slow).await;
    let opening = tokio::spawn(engine.guided(&slow, "g").open());
    pass(10).await;
    assert_eq!(called.load(Ordering::Relaxed), 1);
    assert_eq!(told.load(Ordering::Relaxed), 0);
    opening.abort();
    pass(10).await;
    assert_eq!(told.load(Ordering::Relaxed), 1);
    assert_eq!(recorded(&world).await, before);
    assert_eq!(engine.in_memory(), 0);
    // Whoever waits longer gets it.
    let mended = version(2).migrate_async(1, |data, _| async move {
        pass(1_000).await;
        Ok(titled(data))
    });
    let guide = opened(&world.crash(), &mended.build().unwrap())
        .await
        .unwrap();
    assert_eq!(guide.view().state.title, "acme");
}

// The code of another version is not gone on with: it is over, and what it did is kept.
#[tokio::test(start_paused = true)]
async fn a_body_that_another_version_had_begun_is_cut_off_and_may_be_tried_again() {
    let world = World::new();
    let first = super::flow([
        stage("a").start().to("b"),
        stage("b").body(takes("work", 100)).to("c"),
        stage("c").terminal(),
    ]);
    let guide = started(&world, &first).await;
    let moving = tokio::spawn(guide.next().into_future());
    pass(10).await;
    moving.abort();
    let world = killed(&world, guide).await;
    trace().take();
    let second = Flow::<Titled>::builder("flow")
        .version(2)
        .migrate(1, |data| Ok(titled(data)))
        .stage(stage("a").start().to("b"))
        .stage(
            stage("b")
                .body(|_| {
                    super::one(super::Effect {
                        name: "other work".to_owned(),
                        millis: 0,
                        fails: false,
                    })
                })
                .to("c"),
        )
        .stage(stage("c").terminal())
        .build()
        .unwrap();
    let guide = opened(&world, &second).await.unwrap();
    let view = guide.view();
    let failure = view.failure.as_ref().unwrap();
    assert_eq!(failure.kind, FailingKind::Interrupted);
    assert!(failure.text.contains("version 1"), "{failure}");
    assert_eq!(trace().take(), [""; 0]);
    guide.retry().await.unwrap();
    assert_eq!(trace().take(), ["other work"]);
}

#[tokio::test(start_paused = true)]
async fn a_guide_that_had_ended_is_shown_as_this_version_has_it_and_not_written() {
    let world = World::new();
    let guide = started(&world, &row()).await;
    for _ in 0..3 {
        guide.next().await.unwrap();
    }
    let revision = guide.view().revision;
    let world = killed(&world, guide).await;
    let before = recorded(&world).await;
    let second = version(2).migrate(1, |data| Ok(titled(data)));
    let guide = opened(&world, &second.build().unwrap()).await.unwrap();
    let view = guide.view();
    assert_eq!((view.status, view.revision), (Status::Completed, revision));
    assert_eq!(recorded(&world).await, before);
    let refused = opened(&world.crash(), &version(2).build().unwrap())
        .await
        .unwrap_err();
    assert!(
        matches!(refused, OpenError::NeedsMigration { .. }),
        "{refused}"
    );
}

#[test]
fn migrations_have_to_lead_to_the_flows_own_version() {
    let gap = version(4).migrate(1, Ok).migrate(3, Ok).build();
    let fault = Fault::MigrationGap { version: 2 };
    assert_eq!(gap.unwrap_err().faults(), [fault]);
    let beyond = version(2).migrate(1, Ok).migrate(2, Ok).build();
    let fault = Fault::MigrationBeyond {
        from: 2,
        version: 2,
    };
    assert_eq!(beyond.unwrap_err().faults(), [fault]);
}
