//! What a carried loop keeps, and that it stays as large as it is.

use std::collections::BTreeSet;

use workflow::{Engine, Failure, step, workflow};
use workflow_tests::{Counter, World, pass};

#[step]
async fn counted(calls: &Counter, n: u64) -> u64 {
    calls.hit();
    n
}

/// Stops when it has done `until` iterations, and keeps as many as `every` says.
#[workflow]
async fn counting(until: u64, every: u64, #[state] calls: Counter) -> Result<u64, Failure> {
    let mut count = 0;
    #[carry(count, every = every)]
    'again: loop {
        counted(&calls, count).await?;
        if count >= until {
            break 'again;
        }
        count += 1;
    }
    Ok(count)
}

#[workflow]
async fn keeping(until: u64, #[state] calls: Counter) -> Result<u64, Failure> {
    let mut count = 0;
    #[carry(count, every = 2, keep = 4)]
    'again: loop {
        count += counted(&calls, 1).await?;
        if count == until {
            break 'again;
        }
    }
    Ok(count)
}

/// Its pages have keys, which are in the values it carries: a carried loop counts its iterations itself.
#[workflow]
async fn pages(until: u64, #[state] calls: Counter) -> Result<u64, Failure> {
    let mut page = String::from("page-0");
    let mut count = 0;
    #[carry(page, count)]
    'pages: while count < until {
        count += counted(&calls, 1).await?;
        page = format!("page-{count}");
    }
    Ok(count)
}

/// Changes what it carries before it waits.
#[workflow]
async fn changes_first(#[state] calls: Counter) -> Result<Vec<u64>, Failure> {
    let mut seen = Vec::new();
    #[carry(seen)]
    'again: while seen.len() < 5 {
        seen.push(seen.len() as u64);
        counted(&calls, 1).await?;
        workflow::sleep!(nap, "1h").await;
    }
    Ok(seen)
}

async fn engine(world: &World, calls: &Counter) -> Engine {
    world
        .engine()
        .state(calls.clone())
        .workflow(counting)
        .workflow(keeping)
        .workflow(pages)
        .workflow(changes_first)
        .build()
        .await
        .unwrap()
}

/// The iterations of which something is stored.
async fn iterations(engine: &Engine, id: &str, of: &str) -> Vec<u64> {
    let history = if let Ok(run) = engine.attach::<counting>(id).await {
        run.history().await.unwrap()
    } else {
        let run = engine.attach::<keeping>(id).await.unwrap();
        run.history().await.unwrap()
    };
    let all: BTreeSet<u64> = history
        .iter()
        .filter_map(|record| {
            let location = record.location.to_string();
            let inside = location.strip_prefix(of)?.strip_prefix('[')?;
            let (index, rest) = inside.split_once(']')?;
            rest.starts_with("/counted").then(|| index.parse().unwrap())
        })
        .collect();
    all.into_iter().collect()
}

// RVT-LOOP-12
#[tokio::test(start_paused = true)]
async fn a_loop_that_breaks_between_two_prunings_keeps_no_more_than_one_that_reaches_them() {
    let (world, calls) = (World::new(), Counter::default());
    let engine = engine(&world, &calls).await;
    assert_eq!(engine.run("a", counting(5, 3)).await.unwrap(), 5);
    let kept = iterations(&engine, "a", "again").await;
    assert!(kept.first() >= Some(&3), "{kept:?}");
    assert_eq!(kept.last(), Some(&5));
}

// RVT-LOOP-14
#[tokio::test(start_paused = true)]
async fn a_loop_with_fewer_iterations_than_it_keeps_keeps_them_all() {
    let (world, calls) = (World::new(), Counter::default());
    let engine = engine(&world, &calls).await;
    assert_eq!(engine.run("a", counting(2, 10)).await.unwrap(), 2);
    assert_eq!(iterations(&engine, "a", "again").await, [0, 1, 2]);
}

// RVT-LOOP-17
#[tokio::test(start_paused = true)]
async fn a_loop_may_keep_more_than_it_takes_to_start_again() {
    let (world, calls) = (World::new(), Counter::default());
    let engine = engine(&world, &calls).await;
    assert_eq!(engine.run("a", keeping(7)).await.unwrap(), 7);
    assert_eq!(iterations(&engine, "a", "again").await, [3, 4, 5, 6]);
}

// RVT-LOOP-19: excluded by the design. A body is a block as in any loop: at its end the loop goes on.
#[tokio::test(start_paused = true)]
async fn a_carried_body_that_gives_nothing_goes_on_for_that_is_what_a_loop_does() {
    let (world, calls) = (World::new(), Counter::default());
    let engine = engine(&world, &calls).await;
    assert_eq!(engine.run("a", pages(3)).await.unwrap(), 3);
    assert_eq!(calls.count(), 3);
}

// RVT-FIX-61
#[tokio::test(start_paused = true)]
async fn a_change_before_a_wait_is_made_once_however_often_the_run_is_cut_off() {
    let (mut world, calls) = (World::new(), Counter::default());
    for _ in 0..12 {
        let engine = engine(&world, &calls).await;
        engine.start("a", changes_first()).await.unwrap();
        pass(1_500_000).await;
        drop(engine);
        world = world.crash();
    }
    let engine = engine(&world, &calls).await;
    let run = engine.attach::<changes_first>("a").await.unwrap();
    assert_eq!(run.result().await.unwrap(), [0, 1, 2, 3, 4]);
    assert_eq!(calls.count(), 5);
}

// RVT-FIX-70: what is stored depends on what is kept, and not on how long the loop has run. `#[carry]` refuses `#[key]`.
#[tokio::test(start_paused = true)]
async fn a_loop_of_twenty_thousand_iterations_is_stored_as_one_of_a_hundred() {
    let (world, calls) = (World::new(), Counter::default());
    let engine = engine(&world, &calls).await;
    let mut sizes = Vec::new();
    for until in [100, 20_000] {
        let id = format!("of-{until}");
        let run = engine.start(&id, pages(until)).await.unwrap();
        assert_eq!(run.result().await.unwrap(), until);
        sizes.push(run.history().await.unwrap().len());
    }
    assert_eq!(sizes[0], sizes[1]);
    assert!(sizes[0] < 100, "{sizes:?}");
    assert_eq!(calls.count(), 20_100);
}
