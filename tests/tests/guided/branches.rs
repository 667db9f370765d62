//! Branches in the body of a stage: `join!`, with what a stage keeps.

use workflow::guided::{FailingKind, Flow, Refused, Stage, Status, stage};
use workflow::replay::{Body, RunId};
use workflow::store::Store as _;
use workflow::{Failure, Fragment, fragment, join, step};
use workflow_tests::{World, pass};

use super::{Effect, Form, engine, flow, have, killed, rested, started, trace};

fn effect(name: &str, millis: u64, fails: bool) -> Effect {
    Effect {
        name: name.to_owned(),
        millis,
        fails,
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

/// Work before, three branches, and work after. The digits of the number say what fails.
#[fragment]
async fn three(number: u32) -> Result<(), Failure> {
    #[step(name = "enter", retries = 0)]
    have(effect("enter", 0, number / 1_000 == 1)).await?;
    let (first, second, third) = join!(
        branches,
        first = {
            #[step(name = "work", retries = 0)]
            have(effect("first", 10, number / 100 % 10 == 1)).await?
        },
        second = {
            #[step(name = "work", retries = 0)]
            have(effect("second", 20, number / 10 % 10 == 1)).await?
        },
        third = {
            #[step(name = "work", retries = 0)]
            have(effect("third", 30, number % 10 == 1)).await?
        },
    )
    .await?;
    #[step(name = "operation", retries = 0)]
    have(effect(&format!("{first}, {second}, {third}"), 0, false)).await?;
    Ok(())
}

fn branches() -> Flow<Form> {
    with(|stage| three(stage.state().number))
}

/// All branches run to their end; what is said names those that failed.
#[tokio::test(start_paused = true)]
async fn all_branches_run_to_their_end_and_the_failure_names_those_that_failed() {
    let (world, flow) = (World::new(), branches());
    let guide = started(&world, &flow).await;
    guide.edit(|form| form.number = 110).await.unwrap();
    let Err(Refused::Failed(failing)) = guide.next().await else {
        panic!("{:?}", guide.view());
    };
    for told in ["no first today", "no second today"] {
        assert!(failing.text.contains(told), "{failing}");
    }
    assert!(!failing.text.contains("third"), "{failing}");
    assert_eq!(trace().take(), ["enter", "first", "second", "third"]);
    // What succeeded is kept, also after a restart.
    let world = killed(&world, guide).await;
    let engine = engine(&world, &flow).await;
    let guide = engine.guided(&flow, "g").open().await.unwrap().unwrap();
    guide.edit(|form| form.number = 0).await.unwrap();
    guide.retry().await.unwrap();
    let again = ["first", "second", "first, second, third"];
    assert_eq!(trace().take(), again);
}

// GDE-PAR-02
#[tokio::test(start_paused = true)]
async fn what_comes_after_a_failure_does_not_begin() {
    let flow = branches();
    let guide = started(&World::new(), &flow).await;
    guide.edit(|form| form.number = 1_000).await.unwrap();
    assert!(guide.next().await.is_err());
    assert_eq!(trace().take(), ["enter"]);
    guide.edit(|form| form.number = 1).await.unwrap();
    assert!(guide.retry().await.is_err());
    assert_eq!(trace().take(), ["enter", "first", "second", "third"]);
}

#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
struct Repo(u32);

#[step]
async fn repo() -> Repo {
    Repo(7)
}

#[fragment]
async fn typed() -> Result<(), Failure> {
    let (repo, name) = join!(
        both,
        repo = repo().await?,
        name = have(effect("name", 0, false)).await?,
    )
    .await?;
    let Repo(number) = repo;
    #[step(name = "use", retries = 0)]
    have(effect(&format!("{name} {number}"), 0, false)).await?;
    Ok(())
}

// GDE-PAR-05
#[tokio::test(start_paused = true)]
async fn a_stage_gets_what_its_branches_give_as_they_give_it() {
    let guide = started(&World::new(), &with(|_| typed())).await;
    guide.next().await.unwrap();
    assert_eq!(trace().take(), ["name", "name 7"]);
}

// GDE-PAR-07 GDE-RES-05
#[tokio::test(start_paused = true)]
async fn each_branch_is_recorded_when_it_ends_and_one_that_was_cut_off_fails_the_stage() {
    let (world, flow) = (World::new(), branches());
    let guide = started(&world, &flow).await;
    let moving = tokio::spawn(guide.next().into_future());
    pass(25).await;
    assert!(guide.view().busy);
    let row = world.store.find(&RunId::new("g").unwrap()).await.unwrap();
    let loaded = world.store.load(row.unwrap().key).await.unwrap().unwrap();
    let ended: Vec<String> = loaded
        .history
        .iter()
        .filter(|record| matches!(record.body, Body::Ended(_)))
        .map(|record| record.location.to_string())
        .collect();
    let expected = [
        "b[1]/enter",
        "b[1]/branches/first/work",
        "b[1]/branches/second/work",
    ];
    assert_eq!(ended, expected);
    moving.abort();
    let world = killed(&world, guide).await;
    trace().take();
    let engine = engine(&world, &flow).await;
    let guide = engine.guided(&flow, "g").open().await.unwrap().unwrap();
    rested(&guide).await;
    let view = guide.view();
    assert_eq!(view.status, Status::Failed);
    let failure = view.failure.as_ref().unwrap();
    assert_eq!(failure.kind, FailingKind::Interrupted);
    assert_eq!(failure.at, ["b[1]/branches/third/work"]);
    guide.retry().await.unwrap();
    assert_eq!(trace().take(), ["third", "first, second, third"]);
}

#[fragment]
async fn one_way(fails: bool) -> Result<(), Failure> {
    join!(
        both,
        good = {
            #[step(name = "work", retries = 0)]
            have(effect("good", 0, false)).await?
        },
        bad = {
            #[step(name = "work", retries = 0)]
            have(effect("bad", 0, fails)).await?
        },
    )
    .await?;
    Ok(())
}

#[fragment]
async fn other_way() -> Result<(), Failure> {
    join!(
        both,
        bad = {
            #[step(name = "work", retries = 0)]
            have(effect("bad", 0, false)).await?
        },
        good = {
            #[step(name = "work", retries = 0)]
            have(effect("good", 0, false)).await?
        },
    )
    .await?;
    Ok(())
}

// The other half of it, two branches of one name, is a compile error: `branch_twice_join` of the ui tests.
// GDE-PAR-04
#[tokio::test(start_paused = true)]
async fn branches_that_are_written_in_another_order_are_the_same() {
    let world = World::new();
    let guide = started(&world, &with(|_| one_way(true))).await;
    assert!(guide.next().await.is_err());
    let world = killed(&world, guide).await;
    let other = with(|_| other_way());
    let engine = engine(&world, &other).await;
    let guide = engine.guided(&other, "g").open().await.unwrap().unwrap();
    guide.retry().await.unwrap();
    assert_eq!(trace().take(), ["bad"]);
}
