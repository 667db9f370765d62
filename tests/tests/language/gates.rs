//! Gates and removals, one edit at a time under a live run.

use workflow::{
    Channel, Error, Failure, ParkReason, join, recv, removed, sleep, step, version, workflow,
};
use workflow_tests::{Counter, World, pass};

static NEWS: Channel<u32> = Channel::new("news");

#[step]
async fn noted(calls: &Counter, what: &str) -> String {
    calls.hit();
    what.to_owned()
}

/// With two gates side by side.
mod gated {
    use super::*;

    #[workflow(name = "flow")]
    pub async fn flow(#[state] calls: Counter) -> Result<String, Failure> {
        let first = version!(first, 2).await;
        let second = version!(second, 3).await;
        noted(&calls, "work").await?;
        sleep!(nap, "1h").await;
        Ok(format!("{first} {second}"))
    }
}

/// Both gone in one release.
mod cleaned {
    use super::*;

    #[workflow(name = "flow")]
    pub async fn flow(#[state] calls: Counter) -> Result<String, Failure> {
        removed!(first, kind = "version");
        removed!(second, kind = "version");
        noted(&calls, "work").await?;
        sleep!(nap, "1h").await;
        Ok("cleaned".to_owned())
    }
}

/// A release later, when no run needs the lines any more.
mod cleaner {
    use super::*;

    #[workflow(name = "flow")]
    pub async fn flow(#[state] calls: Counter) -> Result<String, Failure> {
        noted(&calls, "work").await?;
        sleep!(nap, "1h").await;
        Ok("cleaner".to_owned())
    }
}

/// The gate is reached for the first time after a wait.
mod late_gate {
    use super::*;

    #[workflow(name = "flow")]
    pub async fn flow(#[state] calls: Counter) -> Result<u32, Failure> {
        join!(
            both,
            a = noted(&calls, "a").await?,
            b = noted(&calls, "b").await?
        )
        .await?;
        sleep!(nap, "1h").await;
        Ok(version!(late, 2).await)
    }
}

/// A loop whose iterations do much.
mod busy {
    use super::*;

    #[workflow(name = "flow")]
    pub async fn flow(#[state] calls: Counter) -> Result<u32, Failure> {
        let mut rounds = 0;
        'rounds: while rounds < 2 {
            rounds += 1;
            recv!(news, NEWS).await?;
            join!(
                both,
                a = noted(&calls, "a").await?,
                b = noted(&calls, "b").await?
            )
            .await?;
            'items: for item in ["x", "y"] {
                noted(&calls, item).await?;
            }
            sleep!(nap, "1h").await;
        }
        Ok(rounds)
    }
}

/// The same loop, which does nothing but wait.
mod calm {
    use super::*;

    #[workflow(name = "flow")]
    pub async fn flow() -> Result<u32, Failure> {
        let mut rounds = 0;
        'rounds: while rounds < 2 {
            removed!(news, kind = "recv");
            removed!(both, kind = "join");
            removed!(items, kind = "loop");
            rounds += 1;
            sleep!(nap, "1h").await;
        }
        Ok(rounds)
    }
}

/// More than was recorded, twice.
mod grown {
    use super::*;

    #[workflow(name = "flow")]
    pub async fn flow(#[state] calls: Counter) -> Result<String, Failure> {
        let first = version!(first, 2).await;
        #[step(name = "extra")]
        noted(&calls, "extra").await?;
        #[step(name = "more")]
        noted(&calls, "more").await?;
        noted(&calls, "work").await?;
        sleep!(nap, "1h").await;
        Ok(first.to_string())
    }
}

// RVT-VER-04 UA-41
#[tokio::test(start_paused = true)]
async fn two_gates_side_by_side_go_in_one_release_and_their_removals_in_the_next() {
    let (world, calls) = (World::new(), Counter::default());
    let engine = world.engine().state(calls.clone()).workflow(gated::flow);
    let engine = engine.build().await.unwrap();
    engine.start("live", gated::flow()).await.unwrap();
    pass(1_000).await;
    let done = engine.start("done", gated::flow()).await.unwrap();
    drop(engine);
    let world = world.crash();
    drop(done);
    let engine = world
        .engine()
        .code_id(2)
        .state(calls.clone())
        .workflow(cleaned::flow);
    let engine = engine.build().await.unwrap();
    let run = engine.attach::<cleaned::flow>("live").await.unwrap();
    pass(1_000).await;
    // A run that is fresh under this code, and one that came through it.
    engine.start("fresh", cleaned::flow()).await.unwrap();
    pass(10_000).await;
    drop((run, engine));
    let world = world.crash();
    let engine = world
        .engine()
        .code_id(3)
        .state(calls.clone())
        .workflow(cleaner::flow);
    let engine = engine.build().await.unwrap();
    for id in ["live", "fresh"] {
        let run = engine.attach::<cleaner::flow>(id).await.unwrap();
        assert_eq!(run.result().await.unwrap(), "cleaner", "{id}");
    }
}

// RVT-FIX-13
#[tokio::test(start_paused = true)]
async fn a_gate_that_is_reached_first_after_a_wait_gives_the_newest() {
    let (world, calls) = (World::new(), Counter::default());
    for cut in [0, 1_000, 3_000_000] {
        let build = async |world: &World| {
            let builder = world.engine().state(calls.clone());
            builder.workflow(late_gate::flow).build().await.unwrap()
        };
        let engine = build(&world).await;
        let id = format!("cut-{cut}");
        engine.start(&id, late_gate::flow()).await.unwrap();
        pass(cut).await;
        drop(engine);
        let world = world.crash();
        let engine = build(&world).await;
        let call = late_gate::flow();
        assert_eq!(engine.run(&id, call).await.unwrap(), 2, "{cut}");
    }
}

// RVT-FIX-21
#[tokio::test(start_paused = true)]
async fn a_receive_a_join_and_a_loop_in_an_iteration_are_removed_with_all_that_is_in_them() {
    for news in [0, 1] {
        let (world, calls) = (World::new(), Counter::default());
        let builder = world.engine().state(calls.clone());
        let engine = builder.workflow(busy::flow).build().await.unwrap();
        let run = engine.start("a", busy::flow()).await.unwrap();
        for n in 0..news {
            run.send(&NEWS, &n).await.unwrap();
            pass(3_700_000).await;
        }
        pass(10_000).await;
        drop((run, engine));
        let world = world.crash();
        let builder = world.engine().code_id(2).workflow(calm::flow);
        let engine = builder.build().await.unwrap();
        let run = engine.attach::<calm::flow>("a").await.unwrap();
        // A run that waits for a message is looked at when one comes, or when it is told to go on.
        engine.resume("a").await.unwrap();
        assert_eq!(run.result().await.unwrap(), 2, "after {news} messages");
    }
}

// UA-09
#[tokio::test(start_paused = true)]
async fn the_first_site_that_is_too_many_is_what_is_reported() {
    let (world, calls) = (World::new(), Counter::default());
    let builder = world.engine().state(calls.clone());
    let engine = builder.workflow(gated::flow).build().await.unwrap();
    engine.start("a", gated::flow()).await.unwrap();
    pass(10_000).await;
    drop(engine);
    let world = world.crash();
    let builder = world.engine().code_id(2).state(calls.clone());
    let engine = builder.workflow(grown::flow).build().await.unwrap();
    let run = engine.attach::<grown::flow>("a").await.unwrap();
    let Error::Parked(parked) = run.result().await.unwrap_err() else {
        panic!()
    };
    assert_eq!(parked.reason, ParkReason::Diverged);
    assert!(parked.detail.contains("`extra`"), "{}", parked.detail);
    assert!(!parked.detail.contains("`more`"), "{}", parked.detail);
    assert_eq!(calls.count(), 1, "nothing was done");
}

// RVT-FIX-15
#[tokio::test(start_paused = true)]
async fn a_version_that_the_code_does_not_know_parks_the_run_and_undoes_nothing() {
    let (world, calls) = (World::new(), Counter::default());
    let builder = world.engine().state(calls.clone());
    let engine = builder.workflow(gated::flow).build().await.unwrap();
    let run = engine.start("a", gated::flow()).await.unwrap();
    pass(10_000).await;
    let before = run.history().await.unwrap();
    drop((run, engine));
    let world = world.crash();
    let builder = world.engine().code_id(2).state(calls.clone());
    let engine = builder.workflow(older::flow).build().await.unwrap();
    let run = engine.attach::<older::flow>("a").await.unwrap();
    let Error::Parked(parked) = run.result().await.unwrap_err() else {
        panic!()
    };
    assert_eq!(parked.reason, ParkReason::Version);
    assert!(
        parked.detail.contains("version 3 of `second`"),
        "{}",
        parked.detail
    );
    assert!(parked.detail.contains("up to 2"), "{}", parked.detail);
    assert_eq!(run.history().await.unwrap(), before);
    assert_eq!(calls.count(), 1);
}

mod older {
    use super::*;

    #[workflow(name = "flow")]
    pub async fn flow(#[state] calls: Counter) -> Result<String, Failure> {
        let first = version!(first, 2).await;
        let second = version!(second, 2).await;
        noted(&calls, "work").await?;
        sleep!(nap, "1h").await;
        Ok(format!("{first} {second}"))
    }
}
