//! Code that changes under live runs: gates and declared removals.

use workflow::{
    Engine, Error, Failure, ParkReason, RunState, removed, sleep, step, version, workflow,
};
use workflow_tests::{Counter, World, pass};

#[step]
async fn noted(calls: &Counter, what: &str) -> String {
    calls.hit();
    what.to_owned()
}

mod before {
    use super::*;

    #[workflow(name = "flow")]
    pub async fn flow(#[state] calls: Counter) -> Result<String, Failure> {
        let work = noted(&calls, "old").await?;
        sleep!(nap, "1h").await;
        #[step(name = "legacy")]
        let legacy = noted(&calls, "legacy").await?;
        sleep!(rest, "1h").await;
        Ok(format!("{work} {legacy}"))
    }
}

mod after {
    use super::*;

    // RVT-VER-02 RVT-REM-01
    #[workflow(name = "flow")]
    pub async fn flow(#[state] calls: Counter) -> Result<String, Failure> {
        let way = version!(way, 2).await;
        let work = noted(&calls, "new").await?;
        sleep!(nap, "1h").await;
        if way >= 2 {
            #[step(name = "extra")]
            noted(&calls, "extra").await?;
        }
        sleep!(rest, "1h").await;
        removed!(legacy, kind = "step");
        Ok(format!("{work} way {way}"))
    }
}

mod downgraded {
    use super::*;

    #[workflow(name = "flow")]
    pub async fn flow(#[state] calls: Counter) -> Result<String, Failure> {
        let way = version!(way, 1).await;
        let work = noted(&calls, "new").await?;
        sleep!(nap, "1h").await;
        sleep!(rest, "1h").await;
        Ok(format!("{work} way {way}"))
    }
}

async fn old_engine(world: &World, calls: &Counter) -> Engine {
    let builder = world.engine().code_id(1).state(calls.clone());
    builder.workflow(before::flow).build().await.unwrap()
}

async fn new_engine(world: &World, calls: &Counter) -> Engine {
    let builder = world.engine().code_id(2).state(calls.clone());
    builder.workflow(after::flow).build().await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_live_run_keeps_to_the_old_way_and_a_removed_step_is_passed_over() {
    for hours in [0, 1] {
        let (world, calls) = (World::new(), Counter::default());
        let engine = old_engine(&world, &calls).await;
        engine.start("a", before::flow()).await.unwrap();
        pass(1_000 + hours * 3_600_000).await;
        drop(engine);
        let world = world.crash();
        let engine = new_engine(&world, &calls).await;
        let run = engine.attach::<after::flow>("a").await.unwrap();
        assert_eq!(run.result().await.unwrap(), "old way 1");
        let noted = 1 + usize::try_from(hours).unwrap();
        assert_eq!(calls.count(), noted);
        let history = run.history().await.unwrap();
        let legacy = history
            .iter()
            .filter(|record| record.location.to_string() == "legacy")
            .count();
        assert_eq!(
            legacy,
            usize::try_from(hours).unwrap(),
            "only that it was removed"
        );
    }
}

// RVT-VER-01
#[tokio::test(start_paused = true)]
async fn a_fresh_run_goes_the_new_way_and_code_that_does_not_know_it_parks_the_run() {
    let (world, calls) = (World::new(), Counter::default());
    let engine = new_engine(&world, &calls).await;
    engine.start("a", after::flow()).await.unwrap();
    pass(1_000).await;
    drop(engine);
    let world = world.crash();
    let older = world.engine().code_id(3).state(calls.clone());
    let engine = older.workflow(downgraded::flow).build().await.unwrap();
    pass(3_600_000).await;
    let run = engine.attach::<downgraded::flow>("a").await.unwrap();
    let Error::Parked(parked) = run.result().await.unwrap_err() else {
        panic!()
    };
    assert_eq!(parked.reason, ParkReason::Version);
    assert!(
        parked.detail.contains("version 2 of `way`"),
        "{}",
        parked.detail
    );
    drop((run, engine));
    let world = world.crash();
    let engine = new_engine(&world, &calls).await;
    let run = engine.attach::<after::flow>("a").await.unwrap();
    assert_eq!(run.result().await.unwrap(), "new way 2");
    assert_eq!(run.status().await.unwrap().state, RunState::Completed);
}
