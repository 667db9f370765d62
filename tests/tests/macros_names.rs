//! What the macros make of names and of unusual bodies, seen at run time: programs with the real macros, over an engine in
//! paused time.
#![allow(clippy::unwrap_used, reason = "tests")]

use workflow::{BuildError, Engine, Failure, fragment, join, race, sleep, step, uuid, workflow};
use workflow_tests::{Counter, World, pass};

#[step(timeout = "none")]
async fn count(calls: &Counter, n: u32) -> u32 {
    calls.hit();
    n
}

#[fragment]
async fn add(calls: &Counter, total: &mut u32, n: u32) -> Result<u32, Failure> {
    let counted = count(calls, n).await?;
    *total += counted;
    Ok(*total)
}

#[step]
async fn idle(n: u32) -> u32 {
    n
}

#[fragment]
async fn idle_in_a_fragment() -> Result<u32, Failure> {
    idle(5).await
}

mod shop {
    use workflow::workflow;

    #[workflow]
    pub(super) async fn checkout(order: u32) -> u32 {
        order
    }
}

mod bank {
    use workflow::workflow;

    #[workflow(name = "checkout")]
    pub(super) async fn withdraw(order: u32) -> u32 {
        order + 1
    }
}

// UA-05
#[tokio::test(start_paused = true)]
async fn two_workflows_of_one_name_are_refused_by_both_their_paths() {
    let engine = World::new()
        .engine()
        .workflow(shop::checkout)
        .workflow(bank::withdraw);
    let refused = engine.build().await.unwrap_err();
    assert!(
        matches!(
            refused,
            BuildError::SameName {
                name: "checkout",
                ..
            }
        ),
        "{refused:?}"
    );
    let text = refused.to_string();
    for path in ["shop::checkout", "bank::withdraw"] {
        assert!(text.contains(path), "{text}");
    }
}

/// Calls one helper at three sites: under its own name, under another, and in a loop.
#[workflow]
async fn helped(orders: Vec<u32>, #[state] calls: Counter) -> Result<u32, Failure> {
    let mut total = 0;
    add(&calls, &mut total, 1).await?;
    #[step(name = "add_more")]
    add(&calls, &mut total, 10).await?;
    'orders: for order in orders {
        #[step(name = "add_each")]
        let after = add(&calls, &mut total, order).await?;
        assert!(after >= order);
    }
    Ok(total)
}

/// Steps of all kinds, sleeps, fragments and nested branches beside each other.
#[workflow]
async fn mixed(#[state] calls: Counter) -> Result<(u32, String), Failure> {
    let ((a, nap, b, c), d) = join!(
        outer,
        inner = join!(
            both,
            step = count(&calls, 1).await?,
            nap = sleep!(nap, "5s").await,
            fragment = {
                let mut sum = 0;
                add(&calls, &mut sum, 2).await?;
                sum
            },
            in_place = #[step(name = "made")]
            get(&calls, 3).await?
        )
        .await?,
        raced = race!(
            first,
            sleep = {
                sleep!(long, "1h").await;
                0
            },
            work = {
                sleep!(short, "1s").await;
                count(&calls, 4).await?
            }
        )
        .await?
    )
    .await?;
    let () = nap;
    Ok((a + b + c + d.value, d.branch.to_string()))
}

async fn get(calls: &Counter, n: u32) -> Result<u32, std::io::Error> {
    calls.hit();
    pass(1).await;
    Ok(n)
}

/// Makes durable calls that it does not await, and then waits.
#[workflow]
async fn dropped(#[state] calls: Counter) -> Result<u32, Failure> {
    let made = idle(1);
    drop(made);
    drop(idle_in_a_fragment());
    sleep!(nap, "1m").await;
    let (a, b) = join!(
        both,
        a = {
            drop(idle(7));
            sleep!(nap, "1m").await;
            count(&calls, 2).await?
        },
        b = {
            let key = uuid!(key);
            key.get_version_num() as u32
        }
    )
    .await?;
    Ok(a + b)
}

async fn engine(world: &World, calls: &Counter) -> Engine {
    let engine = world.engine().state(calls.clone());
    let engine = engine.workflow(helped).workflow(mixed).workflow(dropped);
    engine.build().await.unwrap()
}

// UA-07
#[tokio::test(start_paused = true)]
async fn a_helper_called_at_several_sites_has_the_locations_of_each() {
    let (world, calls) = (World::new(), Counter::default());
    let engine = engine(&world, &calls).await;
    let handle = engine.start("r", helped(vec![100, 200])).await.unwrap();
    assert_eq!(handle.result().await.unwrap(), 311);
    let mut at: Vec<String> = handle
        .history()
        .await
        .unwrap()
        .iter()
        .map(|record| record.location.to_string())
        .filter(|location| location.ends_with("count"))
        .collect();
    at.dedup();
    assert_eq!(
        at,
        [
            "add/count",
            "add_more/count",
            "orders[0]/add_each/count",
            "orders[1]/add_each/count"
        ]
    );
}

// UA-23: what there is of it so far; messages and children are no operations yet.
#[tokio::test(start_paused = true)]
async fn steps_sleeps_fragments_and_branches_mix_and_replay() {
    let (world, calls) = (World::new(), Counter::default());
    let first = engine(&world, &calls).await;
    first.start("r", mixed()).await.unwrap();
    pass(2_000).await;
    assert_eq!(calls.count(), 4, "only the nap is left");
    let world = world.crash();
    drop(first);
    let second = engine(&world, &calls).await;
    let handle = second.attach::<mixed>("r").await.unwrap();
    assert_eq!(handle.result().await.unwrap(), (10, "work".to_owned()));
    assert_eq!(calls.count(), 4, "no step ran again");
}

// UA-17
#[tokio::test(start_paused = true)]
async fn a_durable_call_that_is_dropped_unawaited_leaves_nothing_behind() {
    let (world, calls) = (World::new(), Counter::default());
    let first = engine(&world, &calls).await;
    first.start("r", dropped()).await.unwrap();
    pass(90_000).await;
    assert_eq!(calls.count(), 0);
    let world = world.crash();
    drop(first);
    let second = engine(&world, &calls).await;
    let handle = second.attach::<dropped>("r").await.unwrap();
    assert_eq!(handle.result().await.unwrap(), 6);
    assert_eq!(calls.count(), 1);
    let recorded = handle.history().await.unwrap();
    assert!(
        recorded
            .iter()
            .all(|record| !record.location.to_string().contains("idle")),
        "{recorded:?}"
    );
}
